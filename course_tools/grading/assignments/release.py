"""Release an assignment: solutions/<name>/<name>.py -> exercises/<name>/<name>.ipynb,
and the files that it ships.

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
    """Read what ``nbgrader_config.py`` of a course folder sets, for that folder
    wherever it is called from."""
    config = Config(PyFileConfigLoader(CONFIG, path=str(root)).load_config())
    config.CourseDirectory.root = str(root.resolve())
    return config


def build_source(name: str, root: Path = Path()) -> Path:
    """Write ``solutions/<name>/<name>.ipynb``, the build product that stock nbgrader
    commands read."""
    source = root / "solutions" / name / f"{name}.py"
    _refuse(source_faults(parse_source(source)), source)
    notebook = read_source(source)
    _refuse(points_faults(notebook), source)
    path = source.with_suffix(".ipynb")
    write_notebook(notebook, path)
    return path


def _refuse(faults: list[str], path: Path) -> None:
    if faults:
        raise AssignmentError(
            "\n".join(
                [
                    f"{path} is not fit to be released:",
                    *(f"  - {fault}" for fault in faults),
                ]
            )
        )


def release(name: str, root: Path = Path(), database: bool = True) -> Path:
    """Generate the student's notebook, and put it in ``exercises/`` if nothing
    leaks."""
    source = nbformat.read(build_source(name, root), as_version=4)
    with tempfile.TemporaryDirectory() as scratch:
        config = course_settings(root)
        config.CourseDirectory.release_directory = scratch
        config.CourseDirectory.assignment_id = name
        config.GenerateAssignment.force = True
        if not database:
            config.SaveCells.enabled = False
            config.GenerateAssignment.no_database = True
        result = capture_log(
            GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
        )
        if not result["success"]:
            raise AssignmentError(
                "nbgrader could not generate"
                f" {name}:\n{result.get('log') or result.get('error')}"
            )
        staged = Path(scratch) / name
        faults = leaks(source, staged, name) + points_faults(
            nbformat.read(staged / f"{name}.ipynb", as_version=4)
        )
        _refuse(faults, staged / f"{name}.ipynb")
        released = root / "exercises" / name
        if released.exists():
            shutil.rmtree(released)
        shutil.copytree(staged, released)
    return released / f"{name}.ipynb"
