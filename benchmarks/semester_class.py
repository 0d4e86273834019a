"""The class of ``semester.py``: who hands in what, when, and what it is known to earn.

What an answer earns is known without the grader: of the named wrong and right answers
(`tests/assignments/mutants`) from what is recorded beside them, of unfinished and
copied ones from a run of the notebook in one plain process, without wall and bridge.
Each student's text differs from all others, since equal ones would be run once.
"""

import itertools
import json
import math
import multiprocessing
import os
import random
import sys
import zipfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_solution
from side_by_side import setting

from course_tools.grading.assignments.mutants import Changes, change, load_cases
from course_tools.grading.assignments.mutants_page import record_path
from course_tools.grading.assignments.mutants_run import get_ready, in_processes
from course_tools.grading.assignments.source import answered, parse_source, read_source

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "tools" / "grading"))
from copied_class import answers, disguised, model, released, somebody  # noqa: E402

PENALTY = "late penalty"
DUE = datetime(2026, 11, 22, 22, 0)  # in UTC
PER_DAY, MOST, GRACE = 10.0, 50.0, 15  # percent off a day, at most; minutes
Marks = dict[str, float]


@dataclass(frozen=True)
class Settings:
    """How large the class is, and what it does."""

    students: int = setting(300, "in the class")
    assignments: tuple[str, ...] = setting(("all",), "which assignments")
    copied_in: str = setting("transformer", "the assignment in which some copy")
    clusters: tuple[int, ...] = setting((16, 8, 6), "how many copy one text")
    mended: str = setting("attention", "the assignment whose hidden test is wrong")
    late: float = setting(0.1, "share of those who hand in who are late")
    again: float = setting(0.1, "share of those who hand in who do so twice")
    absent: float = setting(0.03, "share of the class who hand in nothing")
    workers: int = setting(2, "submissions that `course grade` runs at a time")
    seed: int = setting(0, "of all that is drawn")

    def __post_init__(self) -> None:
        if sum(self.clusters) > self.students:
            raise ValueError(
                f"{self.students} students cannot be {sum(self.clusters)} copies"
            )


@dataclass
class Work:
    """What a student hands in, when, and what it earns."""

    changes: Changes
    marks: Marks  # by question, of the tests
    written: Marks = field(default_factory=dict)  # by question, of the person who marks
    answered: bool = True  # whether the written questions are
    extra: float = 0.0  # credit, for the first written question
    days_late: int = 0

    def wanted(self, wrong: Marks, by_hand: bool) -> Marks:
        """What the gradebook should say, before or after it was marked by hand."""
        marks = self.marks | wrong | dict.fromkeys(self.written, 0.0)
        if by_hand:
            marks |= self.written
            marks[next(iter(self.written))] += self.extra
        late = min(PER_DAY * self.days_late, MOST) / 100
        return marks | {PENALTY: late * sum(marks.values())}


# -- what answers are known to earn


def recorded(name: str) -> list[tuple[Changes, Marks]]:
    """The named answers of an assignment, with the marks that are recorded: of a test
    that gives a share of its points, no record says which, so its mistakes stay out."""
    kept = json.loads(record_path(name, ROOT).read_text(encoding="utf-8"))
    full, (wrong, right) = kept["points"], load_cases(name, ROOT)
    cells = parse_source(ROOT / "solutions" / name / f"{name}.py").cells
    shares = {c.metadata.nbgrader.grade_id for c in cells if "# {checks:" in c.source}
    known = [(one.changes, dict(full)) for one in right]
    for one in wrong:
        fate = kept["wrong"][one.name]
        fails = [*fate["also_fails"], *([one.cell] if fate["says"] else [])]
        if shares.isdisjoint(fails):
            known.append((one.changes, full | dict.fromkeys(fails, 0.0)))
    return known


def plain(name: str, cases: Mapping[str, Changes]) -> dict[str, Marks]:
    """What answers earn in a plain process: no wall, no bridge, no gradebook."""
    fresh = multiprocessing.get_context("spawn")  # it forks, so nothing may run in it
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        outcomes = pool.submit(_plain, name, cases).result()
    return {
        case: {cell: mark["points"] for cell, mark in outcomes[case]["grader"].items()}
        for case in cases
    }


def _plain(name: str, cases: Mapping[str, Changes]) -> dict[str, Any]:
    get_ready()
    notebook = read_source(ROOT / "solutions" / name / f"{name}.py")
    os.chdir(ROOT / "solutions" / name)
    return in_processes(notebook, cases)


def unfinished(name: str) -> list[tuple[Changes, Marks]]:
    """Who stopped after a third or two of the tasks, or before the first one."""
    blank = [*answers(released(name)).items()]
    cases = {f"from-{n}": dict(blank[n * len(blank) // 3 :]) for n in range(3)}
    earned = plain(name, cases)
    return [(cases[case], earned[case]) for case in cases]


def lone(name: str, chance: random.Random) -> Changes:
    """Who copies from nobody: a few tasks in a known way, far below what names a copy,
    the rest in words of their own."""
    cells, own = answers(model(name)), somebody(name, chance)
    most = sum(map(len, cells.values())) / 3
    for cell in chance.sample(sorted(cells), len(cells)):
        if len(cells[cell]) <= most:
            own[cell], most = cells[cell], most - len(cells[cell])
    return own


# -- a class


def everybody(settings: Settings) -> list[str]:
    return [f"student-{n:03}" for n in range(1, settings.students + 1)]


def drawn(
    name: str, settings: Settings
) -> tuple[dict[str, list[Work]], list[set[str]]]:
    """Draw by student the attempts at an assignment; and who copied one text."""
    chance = random.Random(f"{settings.seed} {name}")
    absent = round(settings.absent * settings.students)
    there = sorted(chance.sample(everybody(settings), settings.students - absent))
    copied: list[set[str]] = []
    if name == settings.copied_in:
        cases = {student: lone(name, chance) for student in there}
        left = chance.sample(there, len(there))
        for place, size in enumerate(settings.clusters):
            members, left = left[:size], left[size:]
            text = answers(model(name)) if not place else cases[members[0]]
            for student in members[bool(place) :]:
                cases[student] = disguised(text, "all_of_it", chance)
            copied.append(set(members))
        marks = plain(name, cases)
        first = [(cases[student], marks[student]) for student in there]
    else:
        known = recorded(name)
        finished = [chance.random() < 0.8 for _ in there]
        stopped = [] if all(finished) else unfinished(name)
        first = [chance.choice(known if done else stopped) for done in finished]
    attempts = {s: [Work(*one)] for s, one in zip(there, first, strict=True)}
    again = round(settings.again * len(there)) if not copied else 0
    for student in chance.sample(there, again):
        attempts[student].append(Work(*chance.choice(known)))
    for student in chance.sample(there, math.ceil(settings.late * len(there))):
        attempts[student][-1].days_late = chance.randint(1, 7)
    questions = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
        for cell in model(name).cells
        if is_grade(cell) and is_solution(cell)
    }
    for work in itertools.chain.from_iterable(attempts.values()):
        work.written = dict.fromkeys(questions, 0.0)
        work.answered = chance.random() < 0.9
        if work.answered:
            marks = {q: chance.randint(0, 2 * p) / 2 for q, p in questions.items()}
            work.written, work.extra = marks, float(chance.random() < 0.1)
    return attempts, copied


def notebook(given: NotebookNode, name: str, who: str, work: Work) -> NotebookNode:
    """The released notebook as a student hands it in."""
    made = answered(given, change(model(name), work.changes))
    for cell, blank in zip(made.cells, given.cells, strict=True):
        if is_grade(cell) and is_solution(cell):
            cell.source = f"An answer of {who}." if work.answered else blank.source
    first = next(c for c in made.cells if is_solution(c) and not is_grade(c))
    first.source += f"\n# {who}"  # a text of its own
    return made


def download(place: Path, released: Path, name: str, works: Mapping[str, Work]) -> None:
    """Write what Blackboard gives an instructor."""
    given = nbformat.read(released, as_version=4)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
        for student, work in works.items():
            # a day has begun an hour after the time of grace
            late = timedelta(days=work.days_late - 1, hours=1, minutes=GRACE)
            when = DUE + (late if work.days_late else -timedelta(hours=1))
            title = f"{name}_{student}_attempt_{when:%Y-%m-%d-%H-%M-%S}"
            made = nbformat.writes(notebook(given, name, student, work))
            file.writestr(f"{title}_{name}.ipynb", made)
