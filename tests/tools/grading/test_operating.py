"""*Operating the grader*, carried out: each command as it stands on the pages, in their
order, for a class of two. nbgrader's own commands are those of test_cycle.py."""

from __future__ import annotations

import shlex
import subprocess
import zipfile
from dataclasses import dataclass

import nbformat
import pytest
from classroom import REPOSITORY, Classroom
from guide import commands, steps
from sample_class import ASSIGNMENT, BEAM_TESTS, WRITTEN, WRONG_BEAM_SEARCH, cell_of
from walled import need_a_sandbox
from whole import whole_only

from course_tools.grading.assignments.source import answered, copy_idle

pytestmark = [pytest.mark.slow, whole_only]

CLASS = "id,first_name,last_name\nada,Ada,Lovelace\nbo,Bo,O'Neil\n"


@dataclass(frozen=True)
class Term:
    """What the commands left behind, and what each of them printed."""

    classroom: Classroom
    printed: dict[str, str]


def takes_a_step() -> list[str]:
    """The pages of the steps; three more are for reference."""
    return steps()[:-3]


def hand_in(classroom: Classroom) -> None:
    """What the platform hands out: ada's work is right, bo's search is not."""
    source = classroom.root / "solutions" / ASSIGNMENT / f"{ASSIGNMENT}.py"
    instructor = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    right = answered(classroom.released(ASSIGNMENT), instructor)
    with zipfile.ZipFile(classroom.root / "downloaded.zip", "w") as download:
        for name in ("Ada Lovelace_1", "Bo O'Neil_2"):
            place = f"{name}_assignsubmission_file_/{ASSIGNMENT}.ipynb"
            download.writestr(place, nbformat.writes(right))
            cell_of(right, "beam-search").source = WRONG_BEAM_SEARCH
    (classroom.root / "students.csv").write_text(CLASS, encoding="utf-8")


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    need_a_sandbox()
    classroom = Classroom.create(tmp_path_factory.mktemp("term") / "course")
    copy_idle(ASSIGNMENT, REPOSITORY, classroom.root)
    for git in ("init --quiet", "config user.name me", "config user.email me@x.org"):
        subprocess.run(["git", *git.split()], cwd=classroom.root, check=True)
    printed: dict[str, str] = {}
    for command in commands(*takes_a_step()):
        verb = " ".join(command.split()[:2])
        if verb == "course publish":  # which takes what is in git
            subprocess.run(["git", "add", "-A"], cwd=classroom.root, check=True)
        if verb == "course collect":
            hand_in(classroom)
        if command.startswith("git -C ../students"):
            who = ["-c", "user.name=me", "-c", "user.email=me@x.org"]
            git = ["git", *who, *shlex.split(command)[1:]]
            subprocess.run(git, cwd=classroom.root, check=True, capture_output=True)
        else:
            printed[command] = classroom.run(command)
    return Term(classroom, printed)


def test_all_commands_of_an_instructor_but_the_clusters_were_run(term):
    verbs = [command.split()[1] for command in term.printed]
    assert verbs == [
        *("init", "release", "db", "publish", "collect"),
        *("grade", "report", "export", "grade", "replay"),
    ]


def test_marks_are_those_of_the_answers(term):
    most = term.classroom.max_scores(ASSIGNMENT)
    right = most | {WRITTEN: None}
    assert term.classroom.scores_of_all(ASSIGNMENT) == {
        "ada": right,
        "bo": right | dict.fromkeys(BEAM_TESTS, 0.0),
    }


def test_what_each_step_leaves_is_where_the_pages_say(term):
    root = term.classroom.root
    for place in (
        "edition.txt",
        "course-secret.txt",
        f"exercises/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",
        f"../students/exercises/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",
        f"submitted/bo/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",
        f"autograded/ada/{ASSIGNMENT}/{ASSIGNMENT}.ipynb",
        f"feedback/ada/{ASSIGNMENT}/{ASSIGNMENT}.html",
        f"reports/{ASSIGNMENT}.html",
        f"exports/{ASSIGNMENT}-moodle.csv",
        "gradebook.db",
        "grading-log.jsonl",
        "grading-rounds",
    ):
        assert (root / place).exists(), place
    assert not (root / "../students/solutions").exists()


def test_the_last_commands_say_that_nothing_is_amiss(term):
    said = list(term.printed.values())
    assert "0 marks changed" in said[-2]
    assert said[-1].endswith("marks as in the gradebook.\n")
