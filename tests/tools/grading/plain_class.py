"""A plain nbgrader course that knows nothing of ours, and a class that hands in.

``ps1`` is nbgrader's own quick start, as its command makes it. ``ps2`` has two
notebooks, hidden tests, partial credit, a folder of data, a module beside the
notebooks, and tests that need the student's own objects.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from attack_class import source_notebook
from classroom import Classroom, write_notebook
from mini_assignment import graded_cell, nbgrader_metadata, solution_cell
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

DUE = "2026-03-01 12:00:00 UTC"
LATE = "2026-03-03 12:00:00 UTC"


class PlainClassroom(Classroom):
    """A folder as nbgrader's quick start makes it, in which its commands run."""

    def released(self, assignment: str, notebook: str = "") -> NotebookNode:
        name = f"{notebook or assignment}.ipynb"
        return nbformat.read(self.root / "release" / assignment / name, as_version=4)

    def add_source(
        self, assignment: str, notebook: NotebookNode, name: str = ""
    ) -> None:
        folder = self.root / "source" / assignment
        write_notebook(notebook, folder / f"{name or assignment}.ipynb")


def quick_start(root: Path) -> PlainClassroom:
    """Let nbgrader make its example course, and release it."""
    root.parent.mkdir(parents=True, exist_ok=True)
    # nbgrader starts alembic by its name when it makes a gradebook
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "quickstart", root.name],
        cwd=root.parent,
        capture_output=True,
        check=True,
    )
    with (root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    classroom = PlainClassroom(root)
    classroom.run("nbgrader generate_assignment ps1")
    return classroom


def open_attacked(root: Path) -> PlainClassroom:
    """The course that the red team attacks, as one that knows nothing of ours."""
    root.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    classroom = PlainClassroom(root)
    notebook = source_notebook()
    notebook.metadata.pop("course")
    classroom.add_source("mini", notebook)
    classroom.run("nbgrader generate_assignment mini")
    return classroom


def solved(name: str, body: str) -> NotebookNode:
    """A cell with a head and a body that nbgrader takes out."""
    head, _, rest = body.partition("\n")
    text = f"{head}\n    ### BEGIN SOLUTION\n{rest}\n    ### END SOLUTION"
    return solution_cell(name, text)


def by_hand(name: str, points: float) -> NotebookNode:
    about = nbgrader_metadata(
        name, grade=True, solution=True, locked=False, points=points
    )
    return new_markdown_cell("An answer.", metadata=about)


WORDS = {
    "longest": "def longest(words):\n    return max(words, key=len)",
    "tally": """def tally(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts""",
    "half": """def half(numbers):
    import numpy as np
    return np.array(numbers) / 2""",
    "ranks": """def ranks(scores):
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    result = [0.0] * len(scores)
    place = 0
    while place < len(order):
        last = place
        here = scores[order[place]]
        while last + 1 < len(order) and scores[order[last + 1]] == here:
            last += 1
        mean = (place + last) / 2 + 1
        for number in range(place, last + 1):
            result[order[number]] = mean
        place = last + 1
    return result""",
}
WORDS_TESTS = {
    "longest-tests": (
        2,
        """assert longest(LINES) == "attention", "the file's longest word is asked for"
### BEGIN HIDDEN TESTS
assert longest(["a", "bbbb", "cc"]) == "bbbb", "the longest may stand in the middle"
### END HIDDEN TESTS""",
    ),
    "tally-tests": (
        4,
        """mark = 0
if tally(["a", "b", "a"]) == {"a": 2, "b": 1}:
    mark += 1.5
### BEGIN HIDDEN TESTS
if tally([]) == {}:
    mark += 2.5
### END HIDDEN TESTS
mark""",
    ),
    "favourite-tests": (
        1,
        "assert isinstance(favourite, str)\nassert favourite in LINES",
    ),
    "ranks-tests": (
        3,
        """assert ranks([3, 1, 2]) == [1, 3, 2], "the best is first"
### BEGIN HIDDEN TESTS
assert ranks([5, 7, 5]) == [2.5, 1, 2.5], "equal scores share the mean of their ranks"
### END HIDDEN TESTS""",
    ),
    "half-tests": (
        1.5,
        "import numpy as np\n\nassert np.allclose(half([1, 3]), [0.5, 1.5])\nhalf([2])",
    ),
}
SHAPES = {
    "square": """class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2""",
    "double": "def double(x):\n    return x + x",
    "flip": """def flip():
    import random
    return "heads" if random.random() < 0.5 else "tails\"""",
    "greet": "def greet(name):\n    print(f'Hello, {name}!')",
    "perimeter": "def perimeter(side):\n    return 4 * side",
}
SHAPES_TESTS = {
    "square-tests": (
        2,
        "s = Square(3)\nassert isinstance(s, Square)\nassert s.area() == 9",
    ),
    "double-tests": (
        1,
        """import inspect

assert double(4) == 8
### BEGIN HIDDEN TESTS
assert "*" not in inspect.getsource(double), "double without multiplying"
### END HIDDEN TESTS""",
    ),
    "flip-tests": (
        2,
        """import random

before, random.random = random.random, lambda: 0.9
try:
    given = flip()
finally:
    random.random = before
mark = 1.0 * isinstance(given, str)
mark += given == "tails"
mark""",
    ),
    "greet-tests": (
        1,
        """import contextlib, io

with contextlib.redirect_stdout(io.StringIO()) as text:
    greet("Ada")
assert text.getvalue().strip() == "Hello, Ada!"
""",
    ),
    "perimeter-tests": (
        1,
        """assert perimeter(2) == 8
### BEGIN HIDDEN TESTS
assert perimeter(0) == 0, "a square may be a point"
### END HIDDEN TESTS""",
    ),
}
#: What cannot be split, and words of the reason.
THERE = {
    "words": {},
    "shapes": {
        "square-tests": "the model answer passes it in one process only",
        "double-tests": "it reads the code of an answer",
        "flip-tests": "it puts something in another's place",
        "greet-tests": "it looks at what is printed",
    },
}


def second_assignment() -> dict[str, NotebookNode]:
    """The instructor's notebooks of ``ps2``."""
    words = [
        new_code_cell(
            "from helpers import lines_of\n\nLINES = lines_of('data/words.txt')"
        ),
        new_code_cell("LINES[:2]"),
    ]
    for name, text in WORDS.items():
        points, test = WORDS_TESTS[f"{name}-tests"]
        words += [solved(name, text), graded_cell(f"{name}-tests", test, points)]
    favourite = "### BEGIN SOLUTION\nfavourite = LINES[0]\n### END SOLUTION"
    points, test = WORDS_TESTS["favourite-tests"]
    words += [
        solution_cell("favourite", favourite),
        graded_cell("favourite-tests", test, points),
        by_hand("why", 2),
    ]
    shapes = []
    for name, text in SHAPES.items():
        points, test = SHAPES_TESTS[f"{name}-tests"]
        shapes += [solved(name, text), graded_cell(f"{name}-tests", test, points)]
    return {"words": new_notebook(cells=words), "shapes": new_notebook(cells=shapes)}


def open_course(root: Path) -> PlainClassroom:
    """Make the course with both assignments, released."""
    classroom = quick_start(root)
    for name, notebook in second_assignment().items():
        notebook.metadata.kernelspec = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        classroom.add_source("ps2", notebook, name)
    source = root / "source" / "ps2"
    (source / "data").mkdir()
    (source / "data" / "words.txt").write_text("attention\nis\nall\nyou\nneed\n")
    (source / "helpers.py").write_text(
        "from pathlib import Path\n\n\ndef lines_of(place):\n"
        "    return Path(place).read_text().split()\n"
    )
    classroom.run(f"nbgrader db assignment add ps2 --duedate='{DUE}'")
    classroom.run("nbgrader generate_assignment ps2")
    return classroom


@dataclass(frozen=True)
class Work:
    """What somebody hands in."""

    assignment: str
    answers: Mapping[str, str] = field(default_factory=dict)  # the rest is the model's
    started: bool = True  # or nothing but `answers` is answered
    missing: tuple[str, ...] = ()  # notebooks
    late: bool = False
    own: Mapping[str, str] = field(default_factory=dict)  # cells before named ones


def hand_in(classroom: PlainClassroom, student: str, work: Work) -> None:
    """Put a submission where nbgrader collects it."""
    folder = classroom.root / "submitted" / student / work.assignment
    source = classroom.root / "source" / work.assignment
    for path in sorted(source.glob("*.ipynb")):
        if path.stem in work.missing:
            continue
        model = nbformat.read(path, as_version=4)
        named = {grade_id(cell): cell.source for cell in model.cells}
        notebook = classroom.released(work.assignment, path.stem)
        cells = []
        for cell in notebook.cells:
            name = grade_id(cell)
            if cell.metadata.get("nbgrader", {}).get("solution"):
                if work.started:
                    cell.source = named[name]
                cell.source = work.answers.get(name, cell.source)
            if name in work.own:
                cells.append(new_code_cell(work.own[name]))
            cells.append(cell)
        for cell in cells:
            cell.pop("id", None)
        notebook.cells = cells
        notebook.nbformat_minor = 4
        write_notebook(notebook, folder / path.name)
    shipped = classroom.root / "release" / work.assignment
    shutil.copytree(
        shipped, folder, ignore=shutil.ignore_patterns("*.ipynb"), dirs_exist_ok=True
    )
    if work.late:
        (folder / "timestamp.txt").write_text(LATE)


def grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def recorded(classroom: Classroom, assignment: str) -> dict[str, dict[str, object]]:
    """All that the gradebook says of each submission."""
    found = {}
    with Gradebook(f"sqlite:///{classroom.root / 'gradebook.db'}") as gradebook:
        for one in gradebook.assignment_submissions(assignment):
            told: dict[str, object] = {
                "score": one.score,
                "late": one.total_seconds_late,
                "penalty": one.late_submission_penalty or 0.0,
            }
            for notebook in one.notebooks:
                for grade in notebook.grades:
                    by_hand = grade.needs_manual_grade
                    mark = "by hand" if by_hand else grade.auto_score
                    told[f"{notebook.name}/{grade.name}"] = mark
                for comment in notebook.comments:
                    told[f"{notebook.name}/{comment.name} says"] = comment.auto_comment
            found[one.student.id] = told
    return found


SQUARES = "def squares(n):\n    if n < 1:\n        raise ValueError('too small')\n    "
WRONG = "def squares(n):\n    return [i * 2 for i in range(1, n + 1)]"
NO_ERROR = "def squares(n):\n    return [i * i for i in range(1, n + 1)]"
OWN_SUM = "def sum_of_squares(n):\n    return n * (n + 1) * (2 * n + 1) // 6"
#: Twenty of each assignment.
WORKS: dict[str, Work] = {
    "right": Work("ps1"),
    "partly": Work("ps1", {"squares": NO_ERROR, "sum_of_squares": OWN_SUM}),
    "empty": Work("ps1", started=False),
    "lacks_the_first": Work("ps1", missing=("problem1",)),
    "moved": Work(
        "ps1",
        {"squares": "# above", "sum_of_squares_equation": "$n$"},
        started=False,
        own={"squares": SQUARES + "return [i * i for i in range(1, n + 1)]"},
    ),
    "wrong": Work("ps1", {"squares": WRONG}),
    "other_way": Work(
        "ps1",
        {"squares": SQUARES + "return list(map(lambda i: i**2, range(1, n + 1)))"},
    ),
    "tuple": Work(
        "ps1", {"squares": SQUARES + "return tuple(i * i for i in range(1, n + 1))"}
    ),
    "none": Work("ps1", {"squares": "def squares(n):\n    pass"}),
    "prints": Work(
        "ps1",
        {"squares": "def squares(n):\n    print([i * i for i in range(1, n + 1)])"},
    ),
    "syntax": Work("ps1", {"squares": "def squares(n)\n    return"}),
    "raises": Work("ps1", {"squares": "def squares(n):\n    return undefined"}),
    "other_error": Work(
        "ps1",
        {
            "squares": NO_ERROR.replace(
                "return", "if n < 1:\n        raise TypeError\n    return"
            )
        },
    ),
    "only_sum": Work("ps1", {"sum_of_squares": OWN_SUM}),
    "wrong_sum": Work(
        "ps1", {"sum_of_squares": "def sum_of_squares(n):\n    return squares(n)[-1]"}
    ),
    "written_only": Work(
        "ps1", {"sum_of_squares_equation": "$x$", "part-a": "It adds."}, started=False
    ),
    "not_written": Work("ps1", {"sum_of_squares_application": ""}),
    "lacks_the_second": Work("ps1", missing=("problem2",)),
    "no_name": Work("ps1", {"squares": "def quares(n):\n    return []"}),
    "recurses": Work(
        "ps1",
        {"squares": SQUARES + "return (squares(n - 1) if n > 1 else []) + [n * n]"},
    ),
    "fine": Work("ps2"),
    "some": Work(
        "ps2",
        {
            "tally": "def tally(words):\n    return {'a': 2, 'b': 1}",
            "double": "def double(x):\n    return 2 * x",
            "flip": "def flip():\n    return 'heads'",
        },
    ),
    "late": Work(
        "ps2", {"longest": "def longest(words):\n    return words[0]"}, late=True
    ),
    "blank": Work("ps2", started=False),
    "lacks_shapes": Work("ps2", missing=("shapes",), late=True),
    "lacks_words": Work("ps2", missing=("words",)),
    "first_word": Work("ps2", {"longest": "def longest(words):\n    return words[0]"}),
    "counter": Work(
        "ps2",
        {
            "tally": "from collections import Counter\n\n\n"
            "def tally(words):\n    return Counter(words)"
        },
    ),
    "no_tally": Work("ps2", {"tally": "def tally(words):\n    return []"}),
    "tally_raises": Work("ps2", {"tally": "def tally(words):\n    return words[0]"}),
    "other_favourite": Work("ps2", {"favourite": "favourite = 'nothing'"}),
    "no_string": Work("ps2", {"favourite": "favourite = 7"}),
    "no_favourite": Work("ps2", {"favourite": "pass"}),
    "lists": Work(
        "ps2", {"half": "def half(numbers):\n    return [n / 2 for n in numbers]"}
    ),
    "whole_numbers": Work(
        "ps2", {"half": "def half(numbers):\n    return [n // 2 for n in numbers]"}
    ),
    "no_class": Work("ps2", {"square": "def Square(side):\n    return side"}),
    "wrong_area": Work("ps2", {"square": SHAPES["square"].replace("**2", " * 4")}),
    "quiet": Work("ps2", {"greet": "def greet(name):\n    return f'Hello, {name}!'"}),
    "exits_late": Work(
        "ps2",
        {"perimeter": "def perimeter(side):\n    return 4 * side if side else None"},
    ),
    "own_helper": Work(
        "ps2",
        {"perimeter": "def perimeter(side):\n    return times_four(side)"},
        own={"perimeter-tests": "def times_four(x):\n    return 4 * x"},
    ),
}
