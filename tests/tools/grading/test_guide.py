"""*Operating the grader* says what the configuration does. Its commands are run by
test_operating.py and test_cycle.py."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
from cases import for_each
from classroom import REPOSITORY
from guide import commands, settings, text
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader
from typer.main import get_command

from course_tools.cli import app
from course_tools.cli_grading import grading_app
from course_tools.grading.assignments.release import assignments
from course_tools.grading.assignments.source import read_source

#: Settings that say where things lie, or the course's name: the guide shows them as its
#: table of folders.
PLACES = {
    "course_id",
    "source_directory",
    "release_directory",
    "submitted_directory",
    "autograded_directory",
    "feedback_directory",
}


#: Assignments that end in more than one written answer.
WRITTEN_AT_THE_END = {"wordpiece": 2}


@for_each("name", assignments(REPOSITORY))
def test_the_last_part_of_each_assignment_is_a_written_answer(name):
    cells = read_source(REPOSITORY / "solutions" / name / f"{name}.py").cells
    kinds = [
        cell.cell_type
        for cell in cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    ]
    written = WRITTEN_AT_THE_END.get(name, 1)
    assert kinds[-written:] == ["markdown"] * written
    assert kinds[-written - 1] == "code"


def configuration() -> Config:
    return PyFileConfigLoader("nbgrader_config.py", path=str(REPOSITORY)).load_config()


def added(values: list, stock: list) -> str:
    names = [
        value if isinstance(value, str) else value.__name__
        for value in values
        if value not in stock
    ]
    return f"{', '.join(names)} added"


def test_table_of_settings_is_the_configuration():
    config = configuration()
    shown = {
        f"{section}.{name}": (
            value
            if isinstance(value, str) and value
            else f'"{value}"'
            if value == ""
            else str(value)
        )
        for section, traits in config.items()
        for name, value in traits.items()
        if name not in PLACES
    }
    shown["Execute.shutdown_kernel"] = f'"{config.Execute.shutdown_kernel}"'
    shown["CourseDirectory.ignore"] = added(
        config.CourseDirectory.ignore, CourseDirectory().ignore
    )
    for step, name in (
        (Autograde, "sanitize_preprocessors"),
        (Autograde, "autograde_preprocessors"),
        (GenerateFeedback, "preprocessors"),
    ):
        stock = getattr(step, name).default_args[0]
        place = step.__name__
        shown[f"{place}.{name}"] = added(config[place][name], stock)
    assert settings() == shown


def test_folders_in_the_guide_are_the_configured_ones():
    page = text()
    for name in PLACES - {"course_id"}:
        assert f"`{configuration().CourseDirectory[name]}/" in page, name


def test_nbgraders_page_walks_from_release_to_export_in_order():
    page = "operating-nbgrader"
    verbs = [" ".join(command.split()[:2]) for command in commands(page)]
    assert verbs == [
        "course release",
        "nbgrader generate_assignment",
        "nbgrader autograde",
        "nbgrader generate_feedback",
        "nbgrader export",
        "nbgrader autograde",
        "nbgrader generate_feedback",
    ]


def said_commands() -> list[tuple[str, str]]:
    """Each `course ...` of the pages with what follows it, in their text and in lines
    of their own."""
    pattern = r"`(course [a-z][^`]*)`|^(?: {4})?(course .*)$"
    return re.findall(pattern, text(), re.MULTILINE)


@for_each("said", sorted({inline or line for inline, line in said_commands()}))
def test_every_command_of_the_course_on_the_pages_is_one_and_takes_what_it_is_given(
    said,
):
    name, *arguments = shlex.split(said)[1:]
    command = get_command(app).commands[name]
    context = command.make_context(name, arguments, resilient_parsing=True)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {part for part in arguments if part.startswith("--")} <= known
    assert context.args == []


def test_the_pages_name_every_command_of_an_instructor():
    named = {shlex.split(inline or line)[1] for inline, line in said_commands()}
    assert {
        command.callback.__name__ for command in grading_app.registered_commands
    } <= named


@pytest.mark.slow
def test_formgrader_is_installed_for_marking_by_hand():
    listed = subprocess.run(
        [sys.executable, "-m", "jupyter", "server", "extension", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nbgrader.server_extensions.formgrader" in listed.stdout + listed.stderr
