"""Release: solutions/<name>/<name>.py -> exercises/<name>/, with its files.

The source is linted, jupytext reads it, nbgrader's own ``generate_assignment`` takes
out solutions and hidden tests, and what comes out is searched for anything that should
have stayed in. Only then does it replace the old release.
"""

import shutil
import tempfile
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from course_tools.grading.assignments import right_answers
from course_tools.grading.assignments.lint import leaks, points_faults, source_faults
from course_tools.grading.assignments.source import (
    AssignmentError,
    parse_source,
    read_source,
    write_notebook,
)

CONFIG = "nbgrader_config.py"


def assignments(root: Path = Path()) -> list[str]:
    """Name every assignment that has a source, in alphabetical order."""
    return sorted(
        path.parent.name
        for path in (root / "solutions").glob("*/*.py")
        if path.stem == path.parent.name
    )


def course_settings(root: Path) -> Config:
    """Read ``nbgrader_config.py`` of a folder, wherever it is called from."""
    config = Config(PyFileConfigLoader(CONFIG, path=str(root)).load_config())
    config.CourseDirectory.root = str(root.resolve())
    return config


def build_source(name: str, root: Path = Path()) -> Path:
    """Write ``solutions/<name>/<name>.ipynb``, which stock nbgrader reads."""
    source = root / "solutions" / name / f"{name}.py"
    _refuse(source_faults(parse_source(source)), source)
    notebook = read_source(source)
    _refuse(points_faults(notebook), source)
    path = source.with_suffix(".ipynb")
    write_notebook(notebook, path)
    return path


def _refuse(faults: list[str], path: Path) -> None:
    if faults:
        lines = [f"{path} is not fit to be released:", *faults]
        raise AssignmentError("\n  - ".join(lines))


def release(name: str, root: Path = Path(), database: bool = True) -> Path:
    """Generate the student's notebook; into ``exercises/`` if nothing leaks."""
    source = nbformat.read(build_source(name, root), as_version=4)
    with tempfile.TemporaryDirectory() as scratch:
        config = course_settings(root)
        config.CourseDirectory.release_directory = scratch
        config.CourseDirectory.assignment_id = name
        config.GenerateAssignment.force = True
        if not database:
            config.SaveCells.enabled = False
            config.GenerateAssignment.no_database = True
        coursedir = CourseDirectory(config=config)
        result = capture_log(GenerateAssignment(coursedir=coursedir, config=config))
        if not result["success"]:
            said = result.get("log") or result.get("error")
            raise AssignmentError(f"nbgrader could not generate {name}:\n{said}")
        staged = Path(scratch) / name
        notebook = staged / f"{name}.ipynb"
        faults = points_faults(nbformat.read(notebook, as_version=4))
        _refuse(leaks(source, staged, name) + faults, notebook)
        released = root / "exercises" / name
        if released.exists():
            shutil.rmtree(released)
        shutil.copytree(staged, released)
    right_answers.keep(name, source, root)
    return released / f"{name}.ipynb"
