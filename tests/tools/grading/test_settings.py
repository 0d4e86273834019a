"""The settings in nbgrader_config.py that touch a mark are needed: without them, stock
nbgrader 0.9.6 marks wrongly. `make test` asks what is released and that a clone can be
graded."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import Classroom
from mini_assignment import solve, source_notebook
from nbformat import NotebookNode
from sample_class import cell_of, delete
from whole import WHOLE

pytestmark = pytest.mark.slow

NAME = "mini"
FULL = {"margin-tests": 3.0, "squares-tests": 4.0, "squares-why": None}
UNGRADED = dict.fromkeys(FULL)
WRONG_MARGIN = "def margin(high, low):\n    return 0"
AUTOGRADE = f"nbgrader autograde {NAME}"


def right(notebook: NotebookNode) -> None:
    """Everything is right."""


def tagged(notebook: NotebookNode) -> None:
    cell_of(notebook, "margin").source = WRONG_MARGIN
    cell_of(notebook, "margin-tests").metadata.tags = ["skip-execution"]


def warns(notebook: NotebookNode) -> None:
    cell_of(notebook, "margin").source = (
        "import sys\ndef margin(high, low):\n    print('slow', file=sys.stderr)\n   "
        " return high - low"
    )


def copied(notebook: NotebookNode) -> None:
    twin = copy.deepcopy(cell_of(notebook, "margin-tests"))
    twin.id = "twin"
    notebook.cells.insert(2, twin)


def wrong_without_test(notebook: NotebookNode) -> None:
    cell_of(notebook, "margin").source = WRONG_MARGIN
    delete(notebook, "margin-tests")


def whole_part_deleted(notebook: NotebookNode) -> None:
    delete(notebook, "squares", "squares-tests")


def part_deleted_in_colab(notebook: NotebookNode) -> None:
    """Colab writes nbformat 4.0, in which cells have no id."""
    whole_part_deleted(notebook)
    notebook.nbformat_minor = 0
    for cell in notebook.cells:
        del cell["id"]


def kills_its_kernel(notebook: NotebookNode) -> None:
    cell_of(notebook, "margin").source = "import os\nos._exit(1)"


def leaves_a_file_at_exit(notebook: NotebookNode) -> None:
    cell_of(notebook, "margin").source += (
        "\nimport atexit, pathlib\natexit.register(lambda:"
        " pathlib.Path('../../../left').touch())"
    )


def reads_the_solutions(notebook: NotebookNode) -> None:
    cell_of(notebook, "margin").source = (
        "from pathlib import Path\nknown = 'return high - low' in"
        " Path('../../../solutions/mini/mini.ipynb').read_text()\ndef margin(high,"
        " low):\n    return high - low if known else None"
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    classroom = Classroom.create(tmp_path_factory.mktemp("released") / "course")
    classroom.add_source(NAME, source_notebook())
    classroom.run(f"nbgrader generate_assignment {NAME}")
    return classroom


def without(released: Classroom, root: Path, *settings: str) -> Classroom:
    """A copy of the released course whose configuration lacks some settings."""
    classroom = Classroom.create(root, settings)
    for folder in ("solutions", "exercises"):
        shutil.copytree(released.root / folder, root / folder)
    shutil.copy(released.root / "gradebook.db", root / "gradebook.db")
    return classroom


def hand_in(classroom: Classroom, **changes: Callable[[NotebookNode], None]) -> None:
    for student, change in changes.items():
        notebook = solve(classroom.released(NAME))
        change(notebook)
        classroom.submit(NAME, student, notebook)


@pytest.fixture(scope="module")
def ours(released, tmp_path_factory):
    """The whole configuration, everybody graded once."""
    if not WHOLE:
        pytest.skip("a kernel for each of ten students: make test-grading")
    classroom = without(released, tmp_path_factory.mktemp("ours") / "course")
    hand_in(
        classroom,
        right=right,
        tagged=tagged,
        warns=warns,
        copied=copied,
        deleted=wrong_without_test,
    )
    hand_in(
        classroom,
        part=whole_part_deleted,
        hook=leaves_a_file_at_exit,
        spy=reads_the_solutions,
    )
    hand_in(classroom, dies=right, colab=part_deleted_in_colab)
    classroom.run(AUTOGRADE)
    return classroom


def test_stderr_tags_and_exit_hooks_need_their_settings(ours, released, tmp_path):
    settings = (
        "c.Execute.skip_cells_with_tag",
        "c.IgnorePattern.enabled",
        "c.Execute.shutdown_kernel",
    )
    stock = without(released, tmp_path / "stock", *settings)
    hand_in(stock, tagged=tagged, warns=warns, hook=leaves_a_file_at_exit)
    stock.run(AUTOGRADE)
    assert stock.scores(NAME, "tagged") == FULL  # for a wrong answer
    assert ours.scores(NAME, "tagged") == FULL | {"margin-tests": 0.0}
    # for a right one
    assert stock.scores(NAME, "warns") == FULL | {"margin-tests": 0.0}
    assert ours.scores(NAME, "warns") == FULL
    assert (stock.root / "left").exists()
    assert not (ours.root / "left").exists()


def test_deleted_tests_and_copied_cells_need_settings(ours, released, tmp_path):
    settings = (
        "c.OverwriteCells.add_missing_cells",
        "c.Autograde.sanitize_preprocessors",
    )
    stock = without(released, tmp_path / "stock", *settings)
    hand_in(stock, again=right)
    stock.run(AUTOGRADE)
    hand_in(stock, again=wrong_without_test)
    stock.run(f"{AUTOGRADE} --student again --force")
    assert stock.scores(NAME, "again") == FULL  # the marks of the submission before
    assert ours.scores(NAME, "deleted") == FULL | {"margin-tests": 0.0}

    hand_in(stock, copied=copied, right=right)
    assert "use an old version" in stock.run(AUTOGRADE, exit_code=1)
    assert not (stock.root / "autograded" / "right").exists()  # the class stopped
    assert ours.scores(NAME, "copied") == ours.scores(NAME, "right") == FULL


def test_deleted_parts_and_dead_kernels_need_our_steps(ours, released, tmp_path):
    stock = without(released, tmp_path / "stock", "c.Autograde.sanitize_preprocessors")
    hand_in(stock, dies=right, part=whole_part_deleted)
    stock.run(AUTOGRADE, exit_code=1)
    assert stock.scores(NAME, "part") == UNGRADED
    assert (
        ours.scores(NAME, "part")
        == ours.scores(NAME, "colab")
        == FULL | {"squares-tests": 0.0}
    )

    for classroom, expected in ((stock, FULL), (ours, UNGRADED)):
        hand_in(classroom, dies=kills_its_kernel)
        classroom.run(f"{AUTOGRADE} --student dies --force", exit_code=1)
        assert classroom.scores(NAME, "dies") == expected


def test_a_forced_second_run_gives_the_same_marks(ours):
    students = ("copied", "part", "warns")
    first = {student: ours.scores(NAME, student) for student in students}
    for student in students:
        ours.run(f"{AUTOGRADE} --student {student} --force")
    assert {student: ours.scores(NAME, student) for student in students} == first


def test_the_guide_is_right_that_a_submission_can_read_the_solutions(ours):
    """When a grader of ours shuts submissions in, this fails, and the warning in the
    guide goes."""
    assert ours.scores(NAME, "spy") == FULL


def test_without_ignore_the_solutions_are_released(released, tmp_path):
    stock = without(released, tmp_path / "stock", "c.CourseDirectory.ignore")
    for classroom, files in (
        (stock, ["mini.ipynb", "mini.py"]),
        (released, ["mini.ipynb"]),
    ):
        (classroom.root / "solutions" / NAME / "mini.py").write_text(
            "def margin(high, low):\n    return high - low\n"
        )
        classroom.run(f"nbgrader generate_assignment {NAME}")
        assert (
            sorted(
                path.name for path in (classroom.root / "exercises" / NAME).iterdir()
            )
            == files
        )


def test_without_force_a_fresh_clone_has_no_assignment_to_grade(released, tmp_path):
    for settings, exit_code in ((("c.GenerateAssignment.force",), 1), ((), 0)):
        clone = without(released, tmp_path / f"clone{exit_code}", *settings)
        (
            clone.root / "gradebook.db"
        ).unlink()  # a clone has exercises/, and no gradebook
        clone.run(f"nbgrader generate_assignment {NAME}")
        hand_in(clone, ada=right)
        clone.run(AUTOGRADE, exit_code=exit_code)
