"""Which submissions are one text, and whose.

Submissions are compared with each other, with the model answer, with `course_lib`, with
the right answers of the graders' tests and, if asked for, with earlier classes. What
the released notebook gives is left out, and so is what is common: fingerprints that two
independently written right answers have, never what much of the class has. Right
answers are no reason to name one submission alone, since they show how people write who
know nothing of each other; two submissions of that text are named.

The measure: right answers that other authors wrote as whole cells have at most 0.05 of
what the model answer has of its own, one written in the most usual way a third; copies
that are renamed, reordered and reformatted have all of it. It is a reason to look, and
no proof. What else there is for this: DEPENDENCIES.md.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from nbgrader.utils import is_solution

import course_lib
from course_tools.grading.assignments.right_answers import kept
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.check.notebook_files import CannotCheck
from course_tools.grading.collect.intake import collect
from course_tools.grading.reports.fingerprints import Lines, fingerprints, of
from course_tools.grading.run.assignment import load
from course_tools.grading.run.plain_course import load_notebook
from course_tools.grading.run.reader import Reader
from course_tools.grading.run.reading import written_code
from course_tools.grading.shown import shown

#: Two are one text if they share this part of what the shorter has of its own, and
#: this part of what the model answer has; and no less than LEAST fingerprints.
PART, LEAST = 0.6, 12
#: From here on it is "one text", below it "in large part one text".
ONE_TEXT = 0.8
MODEL, LIBRARY = "the model answer", "course_lib"
RIGHT = "right answers of the graders' tests"
MOST_LINES = 3


@dataclass(frozen=True)
class Cluster:
    """Submissions that are one text."""

    students: tuple[str, ...]
    source: str  # whose text it is, if we know it: MODEL, LIBRARY, RIGHT, ada of 2025
    shares: tuple[float, float]  # of a student's own text: the least and the most
    between: tuple[str, str]  # whose lines stand side by side
    lines: tuple[tuple[str, str], ...]
    notebook: str = ""  # of an assignment that has several

    def __str__(self) -> str:
        count = len(self.students)
        many = f"{count} submissions are" if count > 1 else "1 submission is"
        text = "one text" if self.shares[0] >= ONE_TEXT else "in large part one text"
        text += f" in {self.notebook}" if self.notebook else ""
        return f"{many} {text}" + (f", that of {self.source}" if self.source else "")


@dataclass(frozen=True)
class Copies:
    """What was found in a class."""

    clusters: Sequence[Cluster]
    compared: Sequence[str]  # with what, in words
    not_compared: Mapping[str, str]  # whose work, and why


@dataclass(eq=False)
class Text:
    """A submission or what it is compared with, and the texts that are like it."""

    name: str
    lines: Lines
    own: frozenset[int]  # its fingerprints, without what is given or common
    handed_in: bool = True
    alike: dict["Text", float] = field(default_factory=dict)

    def compare(self, other: "Text", least: float) -> None:
        """Note how alike two are, if they are."""
        common, shorter = len(self.own & other.own), min(len(self.own), len(other.own))
        if common >= max(least, PART * shorter):
            self.alike[other] = other.alike[self] = common / shorter


def common_way(
    model: frozenset[int], right: Collection[frozenset[int]]
) -> frozenset[int]:
    """What two independently written right answers have."""
    having = Counter(mark for answer in (model, *right) for mark in answer)
    return frozenset(mark for mark, count in having.items() if count > 1)


def clusters(
    submissions: Mapping[str, Lines],
    model: Lines,
    given: frozenset[int] = frozenset(),
    right: Collection[frozenset[int]] = (),
    others: Mapping[str, Lines] | None = None,
) -> list[Cluster]:
    """Find what is one text among submissions, the largest first.

    Parameters
    ----------
    submissions, model
        The lines that each student wrote, and those of the model answer.
    given, right
        What everybody was given, and what each right answer of our tests has.
    others
        The lines of other known texts, by a name that the report calls them.
    """
    left_out = given | common_way(of(model), right)
    known = [
        Text(name, lines, of(lines) - left_out, handed_in=False)
        for name, lines in {MODEL: model, **(others or {})}.items()
    ]
    least = max(LEAST, PART * len(known[0].own))
    own = {student: of(lines) - left_out for student, lines in submissions.items()}
    texts = [
        Text(student, submissions[student], marks)
        for student, marks in sorted(own.items())
        if len(marks) >= least
    ]
    for one, other in combinations(texts, 2):
        one.compare(other, least)
    for one in texts:
        for other in known:
            one.compare(other, least)
    written = frozenset[int]().union(*right)
    found, seen = [], set[Text]()
    for text in texts:
        if text.alike and text not in seen:
            seen |= (inside := _linked(text))
            found.append(_cluster(inside, written, own))
    return sorted(found, key=lambda one: (-len(one.students), one.students))


def _linked(start: Text) -> set[Text]:
    seen, waiting = {start}, [start]
    while waiting:
        new = waiting.pop().alike.keys() - seen
        seen |= new
        waiting += new
    return seen


def _cluster(
    inside: Collection[Text], right: frozenset[int], own: Mapping[str, frozenset[int]]
) -> Cluster:
    students = sorted((t for t in inside if t.handed_in), key=lambda text: text.name)
    half = len(students) / 2
    sources = sorted(
        (t for t in inside if not t.handed_in and len(t.alike) >= half),
        key=lambda text: (-sum(text.alike.values()), text.name),
    )
    one = [*sources, *students][0]
    other = min(one.alike, key=lambda text: (-one.alike[text], text.name))
    shared = one.own & other.own
    source = one.name if sources else ""
    if not sources and len(shared & right) >= PART * len(shared):
        source = RIGHT
    names = {text.name for text in students}
    elsewhere = Counter(
        mark for name, marks in own.items() if name not in names for mark in marks
    )
    shares = [max(text.alike.values()) for text in students]
    return Cluster(
        tuple(sorted(names)),
        source,
        (min(shares), max(shares)),
        (one.name, other.name),
        tuple(_telling(one.lines, other.lines, shared, elsewhere)),
    )


def _telling(
    one: Lines, other: Lines, shared: frozenset[int], elsewhere: Mapping[int, int]
) -> Iterator[tuple[str, str]]:
    """The lines of both with most of what they share and others have not."""
    both = {line: shared.intersection(marks) for line, marks in one.items()}
    weights = {
        line: sum(1 / (1 + elsewhere.get(mark, 0)) for mark in marks)
        for line, marks in both.items()
    }
    for line in sorted(weights, key=lambda line: (-weights[line], line))[:MOST_LINES]:
        fits = {text: len(both[line].intersection(of)) for text, of in other.items()}
        yield line, max(fits, key=lambda text: (fits[text], text))


def find_copies(
    name: str,
    root: Path,
    submitted: Path,
    earlier: Sequence[Path] = (),
    notebook: str = "",
) -> Copies:
    """Compare what a class handed in; every notebook is read in a child."""
    if missing := [shown(folder) for folder in earlier if not folder.is_dir()]:
        raise CannotCheck(f"There is no folder {', '.join(missing)} to compare with.")
    assignment = load_notebook(name, notebook, root) if notebook else load(name, root)
    cells = [c for c in assignment.released.cells if c.cell_type == "code"]
    given, _ = fingerprints(cell.source for cell in cells)
    fixed = [grade_id(cell) or "" for cell in cells if not is_solution(cell)]
    answers = filter(is_solution, assignment.instructor.cells)
    model, _ = fingerprints(cell.source for cell in answers)
    written: dict[str, Lines] = {}
    others, not_compared = dict[str, Lines](), {}
    if not notebook:
        files = sorted(Path(course_lib.__file__).parent.rglob("*.py"))
        texts = (path.read_text(encoding="utf-8") for path in files)
        others[LIBRARY], _ = fingerprints(texts)
    with Reader({"look": partial(written_code, fixed)}) as reader:
        read = partial(reader.ask, "look")
        for folder in filter(Path.is_dir, (submitted, *earlier)):
            now = folder is submitted
            for one in collect(folder, name, read, notebook=notebook).submissions:
                who = one.student if now else f"{one.student} of {shown(folder)}"
                lines, unread = ({}, 0) if one.problem else one.content
                (written if now else others)[who] = lines
                if one.problem or unread:
                    no_python = f"Cells that are no Python: {unread}."
                    not_compared[who] = one.problem or no_python
    right = {} if notebook else kept(name, root)
    compared = ["each other", MODEL, *others.keys() & {LIBRARY}]
    compared += [RIGHT] if right else []
    compared += [f"the submissions in {shown(folder)}" for folder in earlier]
    found = clusters(written, model, of(given), right.values(), others)
    found = [replace(cluster, notebook=notebook) for cluster in found]
    return Copies(found, compared, not_compared)
