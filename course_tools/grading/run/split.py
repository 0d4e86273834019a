"""Which tests of a plain course can be kept out of the student's process.

A test that sees data alone runs in the referee's process, with its hidden lines. One
that looks at the student's objects themselves, at code, figures, names or what was
printed, runs in the student's process, as under stock nbgrader: the student's code can
read it and lie to it. The instructor is told which those are, and why.

Two things decide. Code that could pass for the wrong reason is recognised by the names
in it. For all else the model answer decides: what it passes in one process and not in
two needs one.
"""

import ast
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from course_lib.files import write_whole
from course_tools.grading.assignments.reach import used_in, with_what_they_use
from course_tools.grading.check.check_structure import by_name
from course_tools.grading.run.assignment import Assignment
from course_tools.grading.run.class_run import Elsewhere
from course_tools.grading.run.execute import Round, Run, execute
from course_tools.grading.run.given_objects import answer_names, imported_in, parsed
from course_tools.grading.run.plan import Split, role, steps
from course_tools.grading.run.rounds import FOLDER
from course_tools.grading.sandbox.sandbox import Limits, Warm, Worker
from course_tools.grading.shown import shown

#: What a test looks at by these names, in words.
LOOKS = {
    "it reads the code of an answer": "inspect getsource signature dis __code__"
    " __globals__ __closure__ __defaults__ __annotations__ get_type_hints",
    "it puts something in another's place": "mock patch monkeypatch setattr delattr",
    "it looks at figures": "plt pyplot matplotlib gca gcf sns seaborn plotly",
    "it looks around in the notebook": "globals locals vars dir eval exec get_ipython"
    " In Out _ih _oh _i __main__",
    "it looks at what is printed": "stdout stderr redirect_stdout redirect_stderr"
    " StringIO capture_output capsys",
}
WHY = {name: why for why, names in LOOKS.items() for name in names.split()}
REPLACES = WHY["setattr"]


def looks_at(source: str, answers: set[str], modules: set[str]) -> str:
    """Say why a test must see the student's own objects, if names in it tell."""
    tree = parsed(source)
    names = used_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
            root = ast.unparse(node).partition(".")[0]
            replaces = not isinstance(node.ctx, ast.Load)
            if replaces and root in answers | modules | imported_in(tree):
                return REPLACES
        elif isinstance(node, ast.alias):
            names |= {*node.name.split(".")}
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if node.id in answers:
                return REPLACES
        elif isinstance(node, ast.Global):
            return REPLACES
    return next((WHY[name] for name in sorted(names & WHY.keys())), "")


def decide(assignment: Assignment, run: Run) -> Split:
    """Find out where each test runs, by its names and by running the model answer."""
    code = [cell for cell in assignment.instructor.cells if cell.cell_type == "code"]
    tests = by_name(cell for cell in code if role(cell) == "test")
    trees = [parsed(cell.source) for cell in code if role(cell) != "test"]
    modules = {name for tree in trees for name in imported_in(tree)}
    given = [cell.source for cell in code if role(cell) == "answer"]
    answers = {name for source in given for name in answer_names(source)}
    found = {n: looks_at(cell.source, answers, modules) for n, cell in tests.items()}
    there = {name: why for name, why in found.items() if why}
    while True:
        for name in with_what_they_use(code, there.keys()) - there.keys():
            there[name] = "it defines what such a test uses"
        split = Split(there, frozenset())
        plan = steps(
            assignment.instructor, assignment.released, assignment.instructor, split
        )
        transcript = run(Round(False, plan))
        failing = {}
        for name, cell in tests.items():
            told = transcript.tests.get(name, {"words": transcript.trouble})
            if told.get("earned") != float(cell.metadata.nbgrader.points):
                failing[name] = shown(told["words"] or "an assertion fails", 200)
        if not failing.keys() - there.keys():
            break
        there |= {
            name: f"the model answer passes it in one process only: {words}"
            for name, words in failing.items()
            if name not in there
        }
    for name, words in failing.items():
        there[name] = f"the model answer does not pass it, there either: {words}"
    numbers = {name for name, told in transcript.tests.items() if told["number"]}
    return Split(there, frozenset(numbers))


def with_split(
    assignment: Assignment,
    root: Path,
    isolation: str,
    limits: Limits,
    elsewhere: Warm | Elsewhere | None = None,
) -> Assignment:
    """Decide once for a release, and keep it; an assignment of ours needs nothing."""
    if not assignment.notebook:
        return assignment
    split = kept(assignment, root)
    if split is None:
        with ExitStack() as stack:
            if isinstance(elsewhere, Elsewhere):
                run = elsewhere.hands(assignment.files, limits, {})[0]
            else:
                warm = stack.enter_context(Warm(isolation, limits.memory))
                worker = Worker(limits, warm, warm.fork(1)[0])
                run = _running(stack.enter_context(worker), assignment.files)
            split = decide(assignment, run)
        told = [assignment.digest, split.there, sorted(split.numbers)]
        place = _place(assignment, root)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps(told))
    return replace(assignment, split=split)


def _running(worker: Worker, files: dict[str, bytes]) -> Run:
    return lambda one: execute(worker, one, files)


def kept(assignment: Assignment, root: Path) -> Split | None:
    """What was decided for this release, if it was."""
    place = _place(assignment, root)
    if not place.is_file():
        return None
    digest, there, numbers = json.loads(place.read_text(encoding="utf-8"))
    return Split(there, frozenset(numbers)) if digest == assignment.digest else None


def _place(assignment: Assignment, root: Path) -> Path:
    return root / FOLDER / f"{assignment.title}.split.json"
