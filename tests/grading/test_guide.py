"""The instructor's guide says what the configuration does. Its commands are run by test_cycle.py."""

from __future__ import annotations

import subprocess
import sys

import pytest
from classroom import REPOSITORY
from guide import GUIDE, commands, settings
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

#: Settings that say where things lie, or the course's name: the guide shows them as its table of folders.
PLACES = {
    "course_id",
    "source_directory",
    "release_directory",
    "submitted_directory",
    "autograded_directory",
    "feedback_directory",
}


def configuration() -> Config:
    return PyFileConfigLoader("nbgrader_config.py", path=str(REPOSITORY)).load_config()


def added(values: list, stock: list) -> str:
    names = [value if isinstance(value, str) else value.__name__ for value in values if value not in stock]
    return f"{', '.join(names)} added"


def test_table_of_settings_is_the_configuration() -> None:
    config = configuration()
    shown = {
        f"{section}.{name}": value if isinstance(value, str) and value else f'"{value}"' if value == "" else str(value)
        for section, traits in config.items()
        for name, value in traits.items()
        if name not in PLACES
    }
    shown["Execute.shutdown_kernel"] = f'"{config.Execute.shutdown_kernel}"'
    shown["CourseDirectory.ignore"] = added(config.CourseDirectory.ignore, CourseDirectory().ignore)
    steps = config.Autograde.sanitize_preprocessors
    shown["Autograde.sanitize_preprocessors"] = added(steps, Autograde.sanitize_preprocessors.default_args[0])
    assert settings() == shown


def test_folders_in_the_guide_are_the_configured_ones() -> None:
    page = GUIDE.read_text(encoding="utf-8")
    for name in PLACES - {"course_id"}:
        assert f"`{configuration().CourseDirectory[name]}/" in page, name


def test_the_guide_walks_from_release_to_export_in_order() -> None:
    verbs = [" ".join(command.split()[:2]) for command in commands()]
    assert verbs == [
        "course release",
        "nbgrader generate_assignment",
        "nbgrader autograde",
        "nbgrader generate_feedback",
        "nbgrader export",
        "nbgrader autograde",
        "nbgrader generate_feedback",
    ]


@pytest.mark.slow
def test_formgrader_is_installed_for_marking_by_hand() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "jupyter", "server", "extension", "list"], capture_output=True, text=True, check=True
    )
    assert "nbgrader.server_extensions.formgrader" in listed.stdout + listed.stderr
