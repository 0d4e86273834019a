"""Two steps of nbgrader's autograde on a submission before it executes.

`nbgrader_config.py` puts them in `Autograde.sanitize_preprocessors`. Each does what no
setting of nbgrader 0.9.6 does. What runs is still the stock command; the sandbox that
keeps hostile code from the gradebook is not here.
"""

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
        """Set each automatic mark to "not graded"."""
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
    """Put back released cells' metadata, and deleted cells that are no tests."""

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Return the notebook with roles and missing cells as released."""
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            released = gradebook.find_notebook(place["notebook"], place["assignment"])
            roles = _released_metadata(released)
            sources = {cell.name: cell.source for cell in released.source_cells}
        for cell in nb.cells:
            if (name := _grade_id(cell)) in roles:
                cell.metadata.nbgrader = NotebookNode(roles[name])
            else:
                cell.metadata.pop("nbgrader", None)
        before = -1  # index of the nearest earlier released cell that is there
        for name, role in roles.items():
            here = [n for n, cell in enumerate(nb.cells) if _grade_id(cell) == name]
            if here:
                before = here[-1]
            elif role["solution"] or not role["grade"]:
                said = (
                    "is missing from the submission; it is put back as it was released"
                )
                self.log.warning("Cell %s %s", name, said)
                code = role["cell_type"] == "code"
                new_cell = new_code_cell if code else new_markdown_cell
                restored = new_cell(sources[name], metadata={"nbgrader": dict(role)})
                if (nb.nbformat, nb.nbformat_minor) < (4, 5):
                    # Colab writes nbformat 4.0, in which a cell has none
                    del restored["id"]
                before += 1
                nb.cells.insert(before, restored)
        return nb, resources


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _released_metadata(released: Notebook) -> dict[str, dict]:
    """The nbgrader metadata of each released cell, in the order of the notebook."""
    scored = [*released.grade_cells, *released.task_cells]
    points = {cell.name: cell.max_score for cell in scored}
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
