"""A graded notebook, made fit to be given back: hidden tests fail in words alone.

`nbgrader_config.py` puts :class:`GiveBack` at the end of autograding, so a notebook in
`autograded/` may go back to its student, and at the beginning of feedback, for
notebooks that were graded before. Formgrader makes feedback by the same settings.
Marks are in the gradebook by then, and whoever regrades begins with `submitted/`.
"""

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade, is_grade, is_solution
from traitlets import Enum, List

from course_tools.grading.assignments.hidden_words import (
    MARKS,
    NOT_STARTED,
    hidden_lines,
    in_words,
    visible,
)
from course_tools.grading.assignments.marking_checks import told
from course_tools.grading.check.check_run import COLOUR, PLACE

HIDDEN = "# Hidden tests follow here when it is graded."
FAILS = "A hidden test fails."
LEAST = 8  # letters of a line that tell something


class GiveBack(NbGraderPreprocessor):
    """Takes from a notebook what a student must not see of its hidden tests."""

    feedback = Enum(
        ["words", "outputs", "code"],
        "words",
        help="Of hidden tests: words alone, what is printed too, or everything.",
    ).tag(config=True)
    # nbconvert sets it, and would say that it is unknown
    display_data_priority: List = List().tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Make a notebook fit to be given back."""
        if self.feedback != "code":
            marks = self.config.ClearHiddenTests
            begin = marks.get("begin_test_delimeter", MARKS[0])
            end = marks.get("end_test_delimeter", MARKS[1])
            make_fit(nb, self.feedback == "outputs", (begin, end))
        return nb, resources


def make_fit(
    notebook: NotebookNode, printed: bool = False, marks: tuple[str, str] = MARKS
) -> None:
    """Put words in the place of hidden tests, and of what they say, in place."""
    hidden = [hidden_lines(cell.source, marks) for cell in notebook.cells]
    whole = [cell.source for cell in notebook.cells]
    for cell, lines in zip(notebook.cells, hidden, strict=True):
        if lines:
            cell.source = f"{visible(cell.source, lines).rstrip()}\n{HIDDEN}"
    given = [cell.source for cell in notebook.cells if not is_solution(cell)]
    rows = [
        row.strip()
        for source, lines in zip(whole, hidden, strict=True)
        for number, row in enumerate(source.split("\n"), start=1)
        if number in lines and len(row.strip()) >= LEAST
    ]
    for cell, source, lines in zip(notebook.cells, whole, hidden, strict=True):
        if cell.cell_type != "code":
            continue
        if lines:
            cell.outputs = _told(cell, source, lines, "\n".join(given), printed)
        elif HIDDEN in source and not printed:  # it was made fit with what is printed
            cell.outputs = [o for o in cell.outputs if o.output_type != "stream"]
        for output in cell.outputs:
            trace = COLOUR.sub("", "\n".join(output.get("traceback", [])))
            if any(row in trace for row in rows):
                output.traceback = [f"{output.ename}: {output.evalue}"]


def _told(
    cell: NotebookNode, source: str, lines: set[int], seen: str, printed: bool
) -> list[NotebookNode]:
    """The outputs of a cell with hidden tests: words, and its points."""
    outputs = [out for out in cell.outputs if printed and out.output_type == "stream"]
    earned, most = determine_grade(cell) if is_grade(cell) else (None, None)
    points = "" if earned is None else f" ({earned:g} of {most:g} points)"
    errors = [out for out in cell.outputs if out.output_type == "error"]
    for error in errors:
        place = PLACE.search(COLOUR.sub("", "\n".join(error.traceback)))
        line = int(place[2]) if place else 0
        words = error.evalue if line and line not in lines else ""
        if error.ename == "NotImplementedError":
            words = f"{NOT_STARTED.capitalize()}."
        if not words and error.ename == "AssertionError":
            said = in_words(source, line, error.evalue, seen)
            words = f"{FAILS} It says: {said}" if said else ""
        words = (words or FAILS) + points
        outputs.append(
            new_output("error", ename="Failed", evalue=words, traceback=[words])
        )
    if not errors and earned is not None and earned != most:
        prints = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        words = f"{FAILS} It says: {said}" if (said := told(prints)) else FAILS
        outputs.append(new_output("display_data", {"text/plain": f"{words}{points}"}))
        outputs.append(new_output("execute_result", {"text/plain": repr(earned)}))
    return outputs
