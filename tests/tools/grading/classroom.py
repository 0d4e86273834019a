"""A course folder of its own, in which tests run the stock nbgrader commands as an
instructor types them."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, SubmittedAssignment

REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True)
class Classroom:
    """A folder with the course's `nbgrader_config.py`, `solutions/` and what the
    commands write."""

    root: Path

    @classmethod
    def create(cls, root: Path, settings_removed: tuple[str, ...] = ()) -> Classroom:
        """Set up the folder. Assignments to `settings_removed`, such as
        "c.Execute.timeout", are left out."""
        root.mkdir(parents=True)
        module = ast.parse((REPOSITORY / "nbgrader_config.py").read_text())
        for setting in settings_removed:
            kept = [
                line
                for line in module.body
                if not ast.unparse(line).startswith(f"{setting} = ")
            ]
            assert len(kept) == len(module.body) - 1, (
                f"the configuration does not assign {setting} once"
            )
            module.body = kept
        (root / "nbgrader_config.py").write_text(ast.unparse(module))
        return cls(root)

    def add_source(self, assignment: str, notebook: NotebookNode) -> None:
        write_notebook(
            notebook, self.root / "solutions" / assignment / f"{assignment}.ipynb"
        )

    def released(self, assignment: str) -> NotebookNode:
        return nbformat.read(
            self.root / "exercises" / assignment / f"{assignment}.ipynb", as_version=4
        )

    def submit(self, assignment: str, student: str, notebook: NotebookNode) -> None:
        write_notebook(
            notebook,
            self.root / "submitted" / student / assignment / f"{assignment}.ipynb",
        )

    def run(self, command: str, exit_code: int = 0) -> str:
        """Run one command line, given as an instructor types it, and return what it
        printed."""
        program, *arguments = shlex.split(command)
        module = {"nbgrader": "nbgrader", "course": "course_tools.cli"}[program]
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JUPYTER_", "IPYTHON"))
        }
        # Nothing of this user's own configuration may change a mark.
        environment |= {
            "JUPYTER_CONFIG_DIR": str(self.root / ".jupyter"),
            "IPYTHONDIR": str(self.root / ".ipython"),
            "PYTHONPATH": str(REPOSITORY),
            "OMP_NUM_THREADS": "1",
        }
        finished = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        printed = finished.stdout + finished.stderr
        assert finished.returncode == exit_code, (
            f"{command}: exit code {finished.returncode}\n{printed}"
        )
        return printed

    def scores(self, assignment: str, student: str) -> dict[str, float | None]:
        """Marks of one submission, cell by cell; None where the cell waits for a
        hand-given mark or was not graded."""
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            return _marks(gradebook.find_submission(assignment, student))

    def scores_of_all(self, assignment: str) -> dict[str, dict[str, float | None]]:
        """Marks of every submission, by student."""
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            return {
                found.student.id: _marks(found)
                for found in gradebook.assignment_submissions(assignment)
            }

    def max_scores(self, assignment: str) -> dict[str, float]:
        with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
            found = gradebook.find_assignment(assignment)
            return {
                cell.name: cell.max_score
                for notebook in found.notebooks
                for cell in notebook.grade_cells
            }


def _marks(submission: SubmittedAssignment) -> dict[str, float | None]:
    return {
        grade.name: None if grade.needs_manual_grade else grade.auto_score
        for notebook in submission.notebooks
        for grade in notebook.grades
    }


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
