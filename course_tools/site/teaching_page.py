"""What *Teaching with this book* shows in tables: hours, points, plans, mistakes.

Nothing in them is typed: hours come from the chapters, points from the released
notebooks, mistakes from the wrong answers and the recorded run of all of them.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_tools.claims.check import chapter_pages
from course_tools.grading.assignments.mutants import load_cases
from course_tools.grading.assignments.mutants_page import plain, record_path
from course_tools.grading.assignments.release import assignments

CAPSTONE = "capstone"
STUDY = re.compile(r"\*\*Study time:\*\* about (\d+) hours(?:, and (\d+) for the)?")
TITLE = re.compile(r"^\(([\w-]+)\)=\n# ", re.MULTILINE)
LEADS_TO = re.compile(r"\{assignment\}`([\w-]+)`")


@dataclass(frozen=True)
class Chapter:
    """What a lecturer plans with: a chapter's label, hours and assignment."""

    label: str
    hours: int
    assignment: str  # handed in after it; "" if there is none
    assignment_hours: int


@dataclass(frozen=True)
class Size:
    """How much an assignment asks for."""

    tests: int
    by_tests: float  # points
    written: int
    by_hand: float  # points


@dataclass(frozen=True)
class Week:
    """A week, or a day, of a plan."""

    chapters: Sequence[int]  # to read
    assignments: Sequence[str]  # to work on
    what: str = ""


HALF = [
    Week([1], ["attention"]),
    Week([2, 3], []),
    Week([4], ["transformer"]),
    Week([5], ["bert"]),
    Week([6], ["pretraining"]),
    Week([8], ["fine-tuning"]),
]
FIVE_DAYS = [
    Week([1], ["attention"]),
    Week([2], [], "attention heads by hand, on paper"),
    Week([3], []),
    Week([5, 6], [], "{doc}`bert-live` in place of the laboratories"),
    Week([8], ["fine-tuning"]),
]
#: Kinds of mistakes: how one is told from the words that describe a wrong answer, and
#: one to show in class.
KINDS = {
    "a sum, a mean, a mean of means": (
        r"\bmeans?\b|\bsum(?:s|med)?\b|adds? up|divid",
        ("pretraining", "mean_of_means"),
    ),
    "padding, masks": (
        r"\bmask(?!ed_lang)|padding|filling",
        ("attention", "mask_after_softmax_renormalised"),
    ),
    "modes, steps, gradients": (
        r"gradient|detach|backward|\bsteps?\b|eval|dropout|drops out|freeze|mode\b",
        ("bert", "embedding_dropout_left_on"),
    ),
    "nothing, ties, infinities": (
        r"empty|nothing|without (?:words|a word)|\bties?\b|equal|\bnan\b|-inf\b",
        ("pretraining", "nothing_chosen_is_nan"),
    ),
    "a number written where an argument was meant": (
        r"whatever|takes no notice|is passed in|of its own",
        ("pretraining", "rate_typed_in"),
    ),
    "number types, rounding": (
        r"float|rounding|overflow|exponential|logarithm|small number",
        ("wordpiece", "scores_compared_as_floats"),
    ),
    "a wrong axis or shape": (
        r"\bax[ie]s\b|dimension|transpos|reshap|squeez|\[B|as rows|along the batch",
        ("transformer", "heads_merged_without_transpose"),
    ),
    "an argument changed in place": (
        r"in place\b(?! of)|that it (?:was|is) given",
        ("sentence-bert", "given_list_sorted"),
    ),
}


def chapters(book: Path) -> dict[int, Chapter]:
    """Read what each chapter says of its time and its assignment."""
    found = {}
    for number, stem in chapter_pages(book).items():
        text = (book / f"{stem}.md").read_text(encoding="utf-8")
        label, hours = TITLE.search(text), STUDY.search(text)
        if label is None or hours is None:
            raise ValueError(f"book/{stem}.md states no label or no study time")
        alone = int(hours[2] or 0)  # hours of an assignment that begins here
        name = LEADS_TO.findall(text)[0] if alone else ""
        found[number] = Chapter(label[1], int(hours[1]), name, alone)
    return found


def semester(book: Path) -> list[Week]:
    """Plan a chapter a week, each with the assignment of the one before."""
    planned = chapters(book)
    due = {number + 1: one.assignment for number, one in planned.items()}
    weeks = [
        Week(
            [number] if number in planned else [], [due[number]] if due[number] else []
        )
        for number in range(2, len(planned) + 2)
    ]
    last = Week([], [*weeks.pop().assignments, CAPSTONE])
    look_back = "reports on the capstone, a look at {doc}`the claims <claims>`"
    return [Week([1], []), *weeks, last, Week([], [], look_back)]


def size(name: str, root: Path) -> Size:
    """Count the graded cells of a released notebook, and their points."""
    path = root / "exercises" / name / f"{name}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    graded = [
        (cell["cell_type"] == "code", float(cell["metadata"]["nbgrader"]["points"]))
        for cell in cells
        if cell["metadata"].get("nbgrader", {}).get("grade")
    ]
    code = [points for is_code, points in graded if is_code]
    words = [points for is_code, points in graded if not is_code]
    return Size(len(code), sum(code), len(words), sum(words))


def sizes(root: Path) -> str:
    """Write the table of chapters and assignments: hours, questions, points."""
    lines = [
        "| chapter | hours | assignment | hours | tests | points | written | points |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    counts: list[list[float]] = []
    planned = chapters(root / "book")
    capstone = Chapter(CAPSTONE, 0, CAPSTONE, capstone_hours(root))
    for number, one in [*planned.items(), (0, capstone)]:
        head = f"{number}: {{ref}}`{one.label}`" if number else "{doc}`capstone`"
        row = [head, str(one.hours or ""), "", "", "", "", "", ""]
        if one.assignment:
            of = size(one.assignment, root)
            counts.append([of.tests, of.by_tests, of.written, of.by_hand])
            said = [f"{count:g}" for count in counts[-1]]
            row[2:] = [f"`{one.assignment}`", str(one.assignment_hours), *said]
        lines.append(f"| {' | '.join(row)} |")
    own = sum(one.assignment_hours for one in [*planned.values(), capstone])
    read = sum(one.hours for one in planned.values())
    totals = " | ".join(f"{sum(column):g}" for column in zip(*counts, strict=True))
    lines.append(f"| all | {read} | | {own} | {totals} |")
    return "\n".join(lines) + "\n"


def capstone_hours(root: Path) -> int:
    """Read how long the capstone says that it takes, in words."""
    notebook = root / "exercises" / CAPSTONE / f"{CAPSTONE}.ipynb"
    found = re.search(r"about (\w+) hours", notebook.read_text(encoding="utf-8"))
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    if found is None or found[1] not in words:
        raise ValueError(f"{notebook} does not say about how many hours it takes")
    return words.index(found[1]) + 1


def plan(weeks: Sequence[Week], unit: str, root: Path) -> str:
    """Write a plan: what is read and worked on, and the hours that it takes."""
    planned, stems = chapters(root / "book"), chapter_pages(root / "book")
    takes = {one.assignment: one.assignment_hours for one in planned.values()}
    takes[CAPSTONE] = capstone_hours(root)
    lines = [f"| {unit} | chapters | assignment | hours |", "| --- | --- | --- | --- |"]
    whole = 0
    for number, week in enumerate(weeks, 1):
        hours = sum(planned[chapter].hours for chapter in week.chapters)
        hours += sum(takes[name] for name in week.assignments)
        whole += hours
        read = [
            f"{one}: {{ref}}`{planned[one].label}`"
            f' (<a href="decks/{stems[one]}.html">slides</a>)'
            for one in week.chapters
        ]
        names = ", ".join(f"`{name}`" for name in week.assignments)
        what = "; ".join([*read, *filter(None, [week.what])])
        lines.append(f"| {number} | {what} | {names} | {hours or ''} |")
    lines.append(f"| all | | | {whole} |")
    return "\n".join(lines) + "\n"


def mistakes(root: Path) -> str:
    """Write which kinds of mistakes the wrong answers make, and what finds them."""
    cases = [
        (name, mutant, _fates(name, root).get(mutant.name, {}).get("caught", "nobody"))
        for name in assignments(root)
        for mutant in load_cases(name, root)[0]
    ]
    lines = [
        "| mistake | wrong answers | hidden tests alone | for example, one … |",
        "| --- | --- | --- | --- |",
    ]
    named = set()
    for kind, (pattern, example) in KINDS.items():
        told = [case for case in cases if re.search(pattern, case[1].mistake)]
        named |= {(name, mutant.name) for name, mutant, _ in told}
        shown = next(
            f"{plain(mutant.mistake)} (`{mutant.cell}`, {caught} test)"
            for name, mutant, caught in told
            if (name, mutant.name) == example
        )
        hidden = sum(caught == "hidden" for *_, caught in told)
        lines.append(f"| {kind} | {len(told)} | {hidden} | {shown} |")
    hidden = sum(caught == "hidden" for *_, caught in cases)
    rest = len(cases) - len(named)
    lines += [
        "",
        f"There are {len(cases)} wrong answers, of which {hidden} fall to hidden tests"
        f" alone. One that makes two kinds of mistakes counts twice, and {rest} make"
        " mistakes of their assignment alone, such as segments that begin one token"
        " too early.",
    ]
    return "\n".join(lines) + "\n"


def hardest(root: Path) -> str:
    """Write for each assignment which tests refuse the most wrong answers."""
    lines = [
        "| assignment | wrong answers | hidden tests alone | most fall to |",
        "| --- | --- | --- | --- |",
    ]
    for name in assignments(root):
        mutants, fates = load_cases(name, root)[0], _fates(name, root)
        hidden = sum(fate["caught"] == "hidden" for fate in fates.values())
        of: dict[str, int] = {}
        for mutant in mutants:
            of[mutant.cell] = of.get(mutant.cell, 0) + 1
        most = sorted(of.items(), key=lambda item: -item[1])[:3]
        told = ", ".join(f"`{cell}` ({count})" for cell, count in most)
        page = f"{{doc}}`{name} <_generated/mutants/{name}>`"
        lines.append(f"| {page} | {len(mutants)} | {hidden} | {told} |")
    return "\n".join(lines) + "\n"


def _fates(name: str, root: Path) -> dict[str, dict[str, str]]:
    kept = record_path(name, root).read_text(encoding="utf-8")
    wrong: dict[str, dict[str, str]] = json.loads(kept)["wrong"]
    return wrong


def teaching_tables(root: Path) -> dict[str, str]:
    """Write all tables of the page, by the names under which it includes them."""
    return {
        "sizes.inc.md": sizes(root),
        "semester.inc.md": plan(semester(root / "book"), "week", root),
        "half.inc.md": plan(HALF, "week", root),
        "five-days.inc.md": plan(FIVE_DAYS, "day", root),
        "mistakes.inc.md": mistakes(root),
        "hardest.inc.md": hardest(root),
    }
