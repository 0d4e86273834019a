"""`course viva`: from submissions to sheets.

A submission's cells run behind the wall as `course grade` runs them, without tests.
Then the cell of an asked function runs again with one line changed, and again with
another, each time followed by some small calls. These stand in
``solutions/NAME/viva.py`` or, where there is none, in the visible tests.

All chance comes from the names of assignment and student: the same work gets the same
sheet again. Text of a student's is parsed in the reader's child alone.
"""

import ast
import inspect
import queue
import random
import runpy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nbgrader.utils import is_grade

from course_lib.files import write_whole
from course_tools.grading.collect.intake import Submission, collect
from course_tools.grading.run.assignment import Assignment, CannotGrade
from course_tools.grading.run.class_run import MANY
from course_tools.grading.run.execute import Round, Steps, execute
from course_tools.grading.run.given_objects import parsed
from course_tools.grading.run.grade import course_of
from course_tools.grading.run.plain_course import load_notebook
from course_tools.grading.run.reader import CannotRead, Reader
from course_tools.grading.run.reading import prepared
from course_tools.grading.sandbox.sandbox import Limits, Warm, Worker
from course_tools.grading.viva import probe
from course_tools.grading.viva.changes import apply, changes, definition
from course_tools.grading.viva.questions import Asked, Question, questions, rows_of
from course_tools.grading.viva.sheet import listing, page, sections

FEWEST, MOST = 3, 5  # questions of a sheet
FUNCTIONS, CHANGES = 5, 16  # that are tried of a submission, and of a function
LONGEST = 40  # lines of a function that fits beside its questions
OURS = 10**6  # the index of the first cell that is ours
#: What runs before all calls. No result may be what memory held: torch.empty is filled.
OPENING = """if 'tensor' not in globals():
    from torch import tensor
from torch import use_deterministic_algorithms
use_deterministic_algorithms(True, warn_only=True)"""


@dataclass
class Viva:
    """The sheet of one submission, and its key."""

    student: str
    problem: str = ""  # why there is none, or too little of one
    sheet: str = ""
    key: str = ""
    questions: list[dict[str, Any]] = field(default_factory=list)


def small_calls(assignment: Assignment, root: Path) -> dict[str, Any]:
    """Read what ``viva.py`` says, or take the calls in the visible tests."""
    path = root / "solutions" / assignment.name / "viva.py"
    if path.is_file():
        return runpy.run_path(str(path))
    calls: dict[str, list[str]] = {}
    for cell in filter(is_grade, assignment.released.cells):
        code = cell.source if cell.cell_type == "code" else ""
        for node in ast.walk(parsed(code)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                if names <= {node.func.id, "tensor", "torch"}:
                    calls.setdefault(node.func.id, []).append(ast.unparse(node))
    return {"CALLS": {name: [*dict.fromkeys(of)] for name, of in calls.items()}}


class Sheets:
    """What is done with one submission in a reader's child."""

    def __init__(self, assignment: Assignment, root: Path) -> None:
        self.assignment, told = assignment, small_calls(assignment, root)
        self.calls: dict[str, list[str]] = told["CALLS"]
        self.setup = told.get("SETUP", "")
        self.words = " ".join(told.get("WORDS", "").split())

    def asked(self, student: str, steps: Steps) -> list[Asked]:
        """The functions that are tried, and the changes of each."""
        chance = random.Random(f"{self.assignment.name}/{student}")
        given = {cell.source for cell in self.assignment.released.cells}
        lines = {line.strip() for source in given for line in source.splitlines()}
        found: dict[str, Asked] = {}
        for source in (step.get("source", "") for step in steps):
            for name, calls in self.calls.items() if source not in given else ():
                with suppress(SyntaxError, ValueError):  # not defined in this cell
                    definition(source, name)
                    found[name] = Asked(name, source, calls)
        mixed = chance.sample([*found.values()], len(found))
        mixed.sort(key=lambda one: len(listing(one)) > LONGEST)
        for one in mixed[:FUNCTIONS]:
            one.changes = changes(one.source, one.name, lines, chance)[:CHANGES]
        return mixed[:FUNCTIONS]

    def planned(self, student: str, steps: Steps) -> Steps:
        """The cells that are run: the student's, then ours."""
        ours = [OPENING, self.setup, inspect.getsource(probe)]
        for one in self.asked(student, steps):
            tried = [one.source, *(apply(one.source, change) for change in one.changes)]
            calls = ", ".join(f"lambda: {call}" for call in one.calls)
            ours += [f"{source}\n\nviva_probe([{calls}])\n" for source in tried]
            ours.append(one.source)
        cells = [{"kind": "student", "source": source} for source in ours]
        kept = [step for step in steps if step["kind"] in ("student", "withhold")]
        kept += [cell | {"index": OURS + n} for n, cell in enumerate(cells)]
        return [step | {"names": []} for step in kept]

    def finished(
        self, student: str, steps: Steps, printed: dict[str, str]
    ) -> tuple[str, str, list[dict[str, Any]]]:
        """The sheet, its key and the questions, from what our cells printed."""
        asked = {one.name: one for one in self.asked(student, steps)}
        place, best = OURS + 3, list[Question]()
        for one in asked.values():
            cells = range(place, place + len(one.changes) + 1)
            texts = [printed.get(str(number), "") for number in cells]
            one.base, *one.after = [rows_of(text, len(one.calls)) for text in texts]
            place = cells.stop + 1
        title = f"{self.assignment.title}: {student}"
        write = partial(sections, title, asked=asked, words=self.words)
        # a short function leaves more room for questions than a long one
        by_length = sorted(asked.values(), key=lambda one: len(listing(one)))
        for order in ([*asked.values()], by_length):
            chosen: list[Question] = []
            for each in questions(order, random.Random(title)):
                if len(chosen) < MOST and write([*chosen, each])[2]:
                    chosen.append(each)
            best = max(best, chosen, key=len)
        return *write(best)[:2], [*map(asdict, best)]


def viva(
    name: str,
    root: Path = Path(),
    submitted: Path | None = None,
    workers: int = 1,
    isolation: str = "bubblewrap",
    notebook: str = "",
) -> Iterator[Viva]:
    """Write a sheet and a key for every submission, and all of each in one file."""
    assignment = load_notebook(name, notebook, root)
    title, made = assignment.title, list[Viva]()
    sheets = Sheets(assignment, root)
    if notebook and not sheets.calls:
        yield Viva(title, "No visible test has a call to ask about.")
        return
    if not sheets.calls:
        write = f"Write some: CALLS in solutions/{name}/viva.py."
        raise CannotGrade(f"No visible test of {name} has a call to ask about. {write}")
    folder = root / course_of(root, submitted).submitted_directory
    if not folder.is_dir():
        raise CannotGrade(f"There is no folder {folder} of submissions.")
    known: dict[str, Any] = {"planned": sheets.planned, "finished": sheets.finished}
    known["prepared"] = partial(prepared, assignment)
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    with ExitStack() as stack:
        reader = stack.enter_context(Reader(known))
        warm = stack.enter_context(Warm(isolation, Limits.memory))
        read = partial(reader.ask, "prepared")
        found = collect(folder, name, read, notebook=notebook).submissions
        count = max(1, min(workers, len(found)))
        for orders in warm.fork(count, len(found) >= MANY):
            free.put(stack.enter_context(Worker(Limits(), warm, orders)))
        one = partial(_one, reader, free, assignment.files)
        for result in stack.enter_context(ThreadPoolExecutor(count)).map(one, found):
            made.append(result)
            yield result
    for kind in ("sheet", "key"):
        place = root / "viva" / title / f"{kind}s"
        place.mkdir(parents=True, exist_ok=True)
        parts = {each.student: getattr(each, kind) for each in made if each.questions}
        for student, part in parts.items():
            write_whole(place / f"{student}.html", page(f"{title}: {student}", [part]))
        write_whole(place.with_suffix(".html"), page(title, [*parts.values()]))


def _one(
    reader: Reader,
    free: "queue.SimpleQueue[Worker]",
    files: dict[str, bytes],
    submission: Submission,
) -> Viva:
    """Make the sheet of one submission, on a worker that is free."""
    student, problem = submission.student, submission.problem
    if problem:
        return Viva(student, problem)
    worker, steps = free.get(), submission.content["steps"]
    try:
        plan = reader.ask("planned", student, steps)
        ran = execute(worker, Round(False, plan), files)
        printed = {number: cell["printed"] for number, cell in ran.cells.items()}
        made = reader.ask("finished", student, steps, printed)
    except CannotRead as error:
        return Viva(student, str(error))
    finally:
        free.put(worker)
    few = f"Only {len(made[2])} questions." if len(made[2]) < FEWEST else ""
    return Viva(student, " ".join(filter(None, [few, ran.trouble, ran.over])), *made)
