"""Two hundred submissions, and a grader that is killed six times: the marks are
those of a run that nobody disturbed.

It takes long, so only `make test-grading` runs it. COURSE_TEST_STUDENTS and
COURSE_TEST_KILLS make it another size.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from attack_class import POINTS, SCALE, answered, open_class
from classroom import REPOSITORY, Classroom
from whole import whole_only

pytestmark = [pytest.mark.slow, whole_only]

STUDENTS = int(os.environ.get("COURSE_TEST_STUDENTS", "200"))
KILLS = int(os.environ.get("COURSE_TEST_KILLS", "6"))
COMMAND = [
    sys.executable,
    "-u",
    "-m",
    "course_tools.cli",
    "grade",
    "mini",
    "--workers",
    "2",
]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPOSITORY)}
FULL = POINTS | {"why": 0.0}
HALF = FULL | {"scale-tests": 0.0}


@dataclass(frozen=True)
class Terms:
    """Two classes of the same submissions: one graded at once, one by a command that
    was killed again and again."""

    undisturbed: Classroom
    seconds: float
    memory: list[int]  # bytes that the grader held after each submission
    disturbed: Classroom
    graded_by_then: list[int]  # how many submissions the log had after each kill


def logged(classroom: Classroom) -> list[str]:
    """Students in the log, whose last line a kill may have cut off."""
    log = classroom.root / "grading-log.jsonl"
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line)["student"] for line in lines if line.endswith("}")]


@pytest.fixture(scope="module")
def terms(tmp_path_factory):
    undisturbed = open_class(tmp_path_factory.mktemp("large") / "course")
    # each a text of its own: equal ones would be graded together
    for number in range(STUDENTS):
        scale = "def scale(x):\n    return x" if number % 3 else SCALE
        undisturbed.submit(
            "mini",
            f"student-{number:04}",
            answered(undisturbed, f"# {number}\n{scale}"),
        )
    disturbed = Classroom(
        Path(shutil.copytree(undisturbed.root, undisturbed.root.parent / "disturbed"))
    )

    memory, first, began = [], 0.0, time.monotonic()
    with subprocess.Popen(
        COMMAND,
        cwd=undisturbed.root,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as grader:
        assert grader.stdout is not None
        for line in grader.stdout:
            if f" of {STUDENTS}: " in line:
                first = first or time.monotonic() - began
                memory.append(psutil.Process(grader.pid).memory_info().rss)
    assert grader.returncode == 0
    seconds = time.monotonic() - began

    chance, by_then = random.Random(0), []
    each, most = (seconds - first) / STUDENTS, 2 * STUDENTS // (KILLS + 5)
    for _ in range(KILLS):
        # so many may be recorded, and a bit of the next
        wanted = chance.randrange(most)
        later = chance.uniform(0, 2 * each if wanted else first)
        with subprocess.Popen(
            COMMAND,
            cwd=disturbed.root,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        ) as grader:
            assert grader.stdout is not None
            for _ in range(wanted):
                grader.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                grader.wait(timeout=later)
            grader.kill()
        by_then.append(len(logged(disturbed)))
    disturbed.run("course grade mini --workers 2")
    told = (
        f"{STUDENTS} submissions in {seconds:.0f} s, first after {first:.1f} s; graded"
        f" after each kill: {by_then};"
    )
    print(told, f"{max(memory) / 2**20:.0f} MiB at most", file=sys.__stderr__)
    return Terms(undisturbed, seconds, memory, disturbed, by_then)


def test_the_marks_are_those_of_the_answers(terms):
    wanted = {
        f"student-{number:04}": HALF if number % 3 else FULL
        for number in range(STUDENTS)
    }
    assert terms.undisturbed.scores_of_all("mini") == wanted


def test_kills_change_no_mark_and_grade_nobody_twice(terms):
    assert len(set(terms.graded_by_then)) > KILLS / 2, (
        "most kills came in the middle of work"
    )
    assert terms.graded_by_then[-1] < STUDENTS
    assert Counter(logged(terms.disturbed)) == Counter(logged(terms.undisturbed))
    assert terms.disturbed.scores_of_all("mini") == terms.undisturbed.scores_of_all(
        "mini"
    )


def test_the_grader_does_not_grow_with_the_class(terms):
    assert len(terms.memory) == STUDENTS
    tenth = STUDENTS // 10
    growth = (max(terms.memory[-tenth:]) - max(terms.memory[:tenth])) / (
        STUDENTS - tenth
    )
    # A grader that keeps what it has read of each keeps 14 KiB, and one that keeps
    # nothing some 1.5.
    assert growth < 8 * 2**10, f"{growth / 2**10:.1f} KiB more after each submission"
