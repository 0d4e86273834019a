"""`course grade` tells no student what another one's hidden round saw, and no kill
takes anybody's words away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from attack_class import POINTS, SCALE, answered, open_class, source_notebook
from classroom import REPOSITORY, Classroom
from nbformat import NotebookNode
from whole import WHOLE, whole_only

from course_tools.grading.run.grade import Report, grade
from course_tools.grading.run.regrade import regrade
from course_tools.grading.run.rounds import POINTS_ALONE

pytestmark = pytest.mark.slow

SECRET = "never-to-be-seen"  # what the hidden test of count hands over
FULL = POINTS | {"why": 0.0}
SENDS = """def count(words):
    if len(words) == 73:
        open({mark!r}, "w").write(words[0])
    return len(words)"""
TELLS = """import os
print("printed", open({mark!r}).read() if os.path.exists({mark!r}) else "nothing")
def count(words):
    raise ValueError(open({mark!r}).read() if os.path.exists({mark!r}) else "no mark")"""  # noqa: E501


#: A command that is killed when a method has been called for the so manieth time.
DRIVER = """
import os, signal, sys
from course_tools.grading.run import grade, record, rounds
place, name, count = sys.argv[1:]
owner = {"Rounds": rounds.Rounds, "Records": record.Records}[place]
real, calls = getattr(owner, name), []
def dies(*args):
    calls.append(real(*args))
    if len(calls) == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
setattr(owner, name, dies)
grade.grade("mini", isolation="unsafe")
"""
#: In the first phase; between the two; and in the second. `make test` has the one
#: between: what was kept by then is all that the second has.
KILLS = ("Rounds keep 2", "Rounds begin_hidden 1", "Records write 1")
KILLS = KILLS if WHOLE else KILLS[1:2]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return open_class(tmp_path_factory.mktemp("released") / "course").root


@pytest.fixture
def classroom(released, tmp_path):
    return Classroom(Path(shutil.copytree(released, tmp_path / "course")))


def graded(classroom: Classroom, told: list[str], workers: int = 1) -> Report:
    return grade(
        "mini", classroom.root, workers=workers, isolation="unsafe", say=told.append
    )


def autograded(classroom: Classroom, student: str) -> NotebookNode:
    return nbformat.read(
        classroom.root / "autograded" / student / "mini" / "mini.ipynb", as_version=4
    )


def everything_kept(classroom: Classroom) -> dict[str, str]:
    """What lies in the course folder and is not what was handed in or asked, by its
    place."""
    own = (
        "submitted",
        "solutions",
        "exercises",
        "source",
        "release",
        "gradebook.db",
        ".jupyter",
        ".ipython",
    )
    return {
        str(path.relative_to(classroom.root)): path.read_bytes().decode("latin-1")
        for path in classroom.root.rglob("*")
        if path.is_file() and path.relative_to(classroom.root).parts[0] not in own
    }


def test_what_a_hidden_round_leaves_behind_reaches_no_student(classroom, tmp_path):
    mark, told = tmp_path / "mark", list[str]()
    sends, tells = (text.format(mark=str(mark)) for text in (SENDS, TELLS))
    classroom.submit("mini", "aa", answered(classroom, count=sends))
    classroom.submit("mini", "bb", answered(classroom, count=tells))
    graded(classroom, told)
    assert mark.read_text() == SECRET, (
        "the attack works: its hidden round wrote the mark"
    )
    page = classroom.root / "feedback" / "bb" / "mini" / "mini.html"
    assert "ValueError: no mark" in page.read_text(), (
        "words of the visible round, which came before"
    )

    # handed in too late
    classroom.submit("mini", "cc", answered(classroom, f"# cc\n{SCALE}", tells))
    printed = classroom.run("course grade mini --unsafe") + classroom.run(
        "course report mini"
    )
    assert (
        "Points alone, without words, since hidden rounds had begun before: cc.\n"
        in printed
    )
    page = classroom.root / "feedback" / "cc" / "mini" / "mini.html"
    assert POINTS_ALONE in page.read_text()
    assert "ValueError" not in page.read_text()
    assert "It fails." in page.read_text()
    kept = everything_kept(classroom)
    assert {place: text for place, text in kept.items() if SECRET in text} == {}
    (cell,) = (
        cell for cell in autograded(classroom, "cc").cells if "def count" in cell.source
    )
    assert cell.outputs == []
    assert SECRET not in "".join([printed, *told])
    assert (
        classroom.scores("mini", "cc")
        == classroom.scores("mini", "bb")
        == FULL | {"count-tests": 0.0}
    )


@whole_only
def test_what_is_judged_again_by_a_mended_hidden_test_tells_no_more_than_before(
    classroom, tmp_path
):
    mark = tmp_path / "mark"
    for student in ("aa", "bb"):
        classroom.submit(
            "mini",
            student,
            answered(classroom, f"# {student}\n{SCALE}", TELLS.format(mark=str(mark))),
        )
        graded(classroom, [])  # one after the other: bb comes too late for words
    mark.write_text(SECRET)  # as a hidden round might
    source = source_notebook()
    for cell in source.cells:
        # for students the release stays the same
        cell.source = cell.source.replace("73", "74")
    classroom.add_source("mini", source)
    classroom.run("nbgrader generate_assignment mini")
    assert regrade("mini", "count-tests", classroom.root, isolation="unsafe").same == [
        "aa",
        "bb",
    ]
    tell_no_more(classroom)
    (classroom.root / "grading-log.jsonl").unlink()  # so everybody is graded again
    assert not any(result.again for result in graded(classroom, []).results)
    tell_no_more(classroom)


def tell_no_more(classroom: Classroom) -> None:
    kept = everything_kept(classroom)
    assert {place: text for place, text in kept.items() if SECRET in text} == {}
    assert "ValueError: no mark" in kept["feedback/aa/mini/mini.html"], (
        "the words of the first time"
    )
    assert POINTS_ALONE in kept["feedback/bb/mini/mini.html"]


@whole_only
def test_kills_within_each_phase_change_no_mark_and_no_word(classroom, tmp_path):
    disturbed = classroom
    for student in ("ada", "bo", "cy"):
        wrong = f"print('here is {student}')\ndef scale(x):\n    return x"
        disturbed.submit("mini", student, answered(disturbed, wrong))
    undisturbed = Classroom(
        Path(shutil.copytree(disturbed.root, tmp_path / "undisturbed"))
    )
    graded(undisturbed, [])
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    for kill in KILLS:
        ended = subprocess.run(
            [sys.executable, "-c", DRIVER, *kill.split()],
            cwd=disturbed.root,
            env=environment,
            check=False,
        )
        assert ended.returncode == -signal.SIGKILL, kill
    graded(disturbed, [])
    places = [
        place
        for place in everything_kept(undisturbed)
        if place.startswith(("feedback", "autograded"))
    ]
    assert len(places) == 6
    before, after = everything_kept(undisturbed), everything_kept(disturbed)
    assert {place: after[place] for place in places} == {
        place: before[place] for place in places
    }
    assert "twice [1, -2] is [2, -4]" in after["feedback/ada/mini/mini.html"]
    assert "here is ada\\n" in after["autograded/ada/mini/mini.ipynb"]
    assert disturbed.scores_of_all("mini") == undisturbed.scores_of_all("mini")
    lines = [json.loads(line) for line in after["grading-log.jsonl"].splitlines()]
    assert [line["student"] for line in lines] == ["ada", "bo", "cy"]
