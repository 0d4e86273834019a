"""Two steps that nbgrader's autograde runs on a submission before it executes, beside
its own.

`nbgrader_config.py` puts them in `Autograde.sanitize_preprocessors`. Each does what no
setting of nbgrader 0.9.6 does. What runs is still the stock command; the sandbox that
keeps hostile code from the gradebook is not here.
"""

from __future__ import annotations

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook, Notebook
from nbgrader.preprocessors import NbGraderPreprocessor


class ForgetOldMarks(NbGraderPreprocessor):
    """Take away the marks that an earlier autograding gave this notebook."""

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Set each automatic mark to "not graded" and pass the notebook on
        unchanged."""
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            submitted = gradebook.find_submission_notebook(
                place["notebook"], place["assignment"], place["student"]
            )
            for grade in submitted.grades:
                grade.auto_score = None
                grade.needs_manual_grade = True
            gradebook.db.commit()
        return nb, resources


class RestoreReleasedCells(NbGraderPreprocessor):
    """Put back the nbgrader metadata of every released cell, and every deleted cell
    that is not a test."""

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook with the released cells' roles, and the released form of
        cells that are missing."""
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            released = gradebook.find_notebook(place["notebook"], place["assignment"])
            roles = _released_metadata(released)
            sources = {cell.name: cell.source for cell in released.source_cells}
        for cell in nb.cells:
            if (grade_id := _grade_id(cell)) in roles:
                cell.metadata.nbgrader = NotebookNode(roles[grade_id])
            else:
                cell.metadata.pop("nbgrader", None)
        self._restore_missing(nb, roles, sources)
        return nb, resources

    def _restore_missing(
        self, nb: NotebookNode, roles: dict[str, dict], sources: dict[str, str]
    ) -> None:
        before = -1  # index of the nearest earlier released cell that is there
        for grade_id, role in roles.items():
            here = [
                index
                for index, cell in enumerate(nb.cells)
                if _grade_id(cell) == grade_id
            ]
            if here:
                before = here[-1]
            elif role["solution"] or not role["grade"]:
                self.log.warning(
                    "Cell %s is missing from the submission; it is put back as it was"
                    " released",
                    grade_id,
                )
                new_cell = (
                    new_code_cell if role["cell_type"] == "code" else new_markdown_cell
                )
                before += 1
                restored = new_cell(
                    sources[grade_id], metadata={"nbgrader": dict(role)}
                )
                if (nb.nbformat, nb.nbformat_minor) < (4, 5):
                    # Colab writes nbformat 4.0, in which a cell has none
                    del restored["id"]
                nb.cells.insert(before, restored)


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _released_metadata(released: Notebook) -> dict[str, dict]:
    """The nbgrader metadata of each released cell, in the order of the notebook."""
    points = {
        cell.name: cell.max_score
        for cell in [*released.grade_cells, *released.task_cells]
    }
    grades = {cell.name for cell in released.grade_cells}
    tasks = {cell.name for cell in released.task_cells}
    solutions = {cell.name for cell in released.solution_cells}
    metadata = {}
    for cell in released.source_cells:
        metadata[cell.name] = {
            "grade_id": cell.name,
            "cell_type": cell.cell_type,
            "locked": cell.locked,
            "checksum": cell.checksum,
            "grade": cell.name in grades,
            "solution": cell.name in solutions,
            "task": cell.name in tasks,
            "schema_version": 3,
        }
        if cell.name in points:
            metadata[cell.name]["points"] = points[cell.name]
    return metadata
