"""An assignment of a plain nbgrader course, which knows nothing of ours.

It has one notebook or several. Tests are what nbgrader's gradebook keeps, as for
``nbgrader autograde``; what students see is in ``release/``, and in ``source/`` are the
model answers, which say what an answer defines, and which tests can be split from it
(:mod:`course_tools.grading.run.split`).
"""

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import find_all_files, is_locked, is_solution

from course_tools.grading.assignments.release import course_settings
from course_tools.grading.check.check_structure import by_name, grade_id
from course_tools.grading.check.notebook_files import CannotCheck, read_notebook
from course_tools.grading.run.assignment import (
    Assignment,
    CannotGrade,
    is_ours,
    load,
    made,
)


def notebooks(name: str, root: Path) -> list[str]:
    """Name the notebooks of an assignment of a plain course; one of ours has a single
    one, which has no name here."""
    courses = CourseDirectory(config=course_settings(root))
    source = _place(courses, courses.source_directory, name)
    if is_ours(name, root) or not source.is_dir():
        return [""]
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        try:
            known = [each.name for each in gradebook.find_assignment(name).notebooks]
        except MissingEntry:
            known = []
    if not known:
        no = f"The gradebook knows no notebook of {name}"
        raise CannotGrade(f"{no}. Run: nbgrader generate_assignment {name}")
    return sorted(known)


def notebook_of(name: str, question: str, root: Path) -> str:
    """Name the notebook of an assignment that has a question; the first if none has."""
    names = notebooks(name, root)
    having = [n for n in names if n and question in load_notebook(name, n, root).cells]
    if len(having) > 1:
        many = f"{' and '.join(having)} both have a test {question}"
        raise CannotGrade(f"{many}. Give one another name, or grade {name} again.")
    return [*having, *names][0]


def load_notebook(name: str, notebook: str, root: Path) -> Assignment:
    """Read one notebook of an assignment as the grader needs it; without a name, the
    only one of an assignment of ours."""
    if not notebook:
        return load(name, root)
    courses = CourseDirectory(config=course_settings(root))
    release = _place(courses, courses.release_directory, name)
    source = _place(courses, courses.source_directory, name) / f"{notebook}.ipynb"
    try:
        released = read_notebook(release / f"{notebook}.ipynb")
        answers = by_name(filter(is_solution, read_notebook(source).cells))
    except CannotCheck as error:
        again = f"Run: nbgrader generate_assignment {name} --force"
        raise CannotGrade(f"{error} {again}") from error
    language = released.metadata.get("kernelspec", {}).get("language", "python")
    if language != "python":
        raise CannotGrade(f"{notebook} is a notebook in {language}, not in Python.")
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        given = gradebook.find_notebook(notebook, name).source_cells
        locked = {cell.name: cell.source for cell in given if cell.locked}
        known = {cell.name for cell in given}
    for number, cell in enumerate(released.cells):
        if grade_id(cell) not in known:
            cell.metadata.pop("nbgrader", None)
        cell.id = f"cell-{number}"
    released.nbformat_minor = 5
    with_locks(released)
    instructor = nbformat.from_dict(released)
    for cell in instructor.cells:
        cell_name = grade_id(cell)
        if cell_name in locked:
            cell.source = locked[cell_name]
        elif cell_name in answers:
            cell.source = answers[cell_name].source
    left_out = [*courses.ignore, "*.ipynb"]
    files = {
        Path(path).relative_to(release).as_posix(): Path(path).read_bytes()
        for path in sorted(find_all_files(str(release), left_out))
    }
    return made(name, instructor, released, files, notebook)


def _place(courses: CourseDirectory, folder: str, name: str) -> Path:
    return Path(courses.format_path(folder, ".", name))


def with_locks(notebook: NotebookNode) -> None:
    """Write down which cells are locked, as nbgrader finds it out, in place."""
    for cell in notebook.cells:
        if grade_id(cell) is not None:
            cell.metadata.nbgrader.locked = bool(is_locked(cell))
