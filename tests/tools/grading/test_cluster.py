"""`course grade` on a Dask cluster of three processes, of which two are killed: the
marks are those of one machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from attack_class import POINTS, SCALE, answered, open_class
from typer.testing import CliRunner
from walled import need_a_sandbox
from whole import whole_only

from course_tools.cli import app
from course_tools.grading.run.execute import (
    Transcript,
    environment,
    packed_transcript,
    unpacked_transcript,
)
from course_tools.grading.run.grade import grade
from course_tools.grading.sandbox import cluster
from course_tools.grading.sandbox.cluster import (
    Cluster,
    NoCluster,
    pack_files,
    unpack_files,
)
from course_tools.grading.sandbox.sandbox import Limits

STUDENTS = 12
FULL = POINTS | {"why": 0.0}


def test_shipped_files_come_back_byte_for_byte():
    files = {"one.safetensors": bytes(range(256)) * 3, "empty": b"", "é.txt": b"\n\n"}
    assert unpack_files(pack_files(files)) == files
    assert unpack_files(pack_files({})) == {}


def test_a_report_that_travelled_is_the_same_report():
    there = Transcript(
        cells={3: {"index": 3, "printed": "x\n"}},
        tests={"a": {"earned": 1.5}},
        marks={"a": {"earned": 0.25}},
        given=[{"name": "b"}],
        trouble="",
        over="more memory",
        seconds=1.25,
    )
    assert unpacked_transcript(packed_transcript(there)) == there


def test_another_environment_is_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr(cluster, "run_settled", lambda *_: pytest.fail("it ran"))
    with pytest.raises(NoCluster, match="the grader has Python 2"):
        cluster.there(b"", b"", "bubblewrap", "{}", "Python 2")


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("sandbox.cluster", {"torch", "nbgrader", "nbformat", "sqlalchemy"}),
        ("run.grade", {"torch"}),
    ],
)
def test_nothing_is_imported_that_only_makes_the_start_slow(module, unneeded):
    asked = (
        f"import sys, course_tools.grading.{module}; print(sorted({unneeded!r} &"
        " sys.modules.keys()))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", asked], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_nobody_at_the_address_is_said_in_words(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "SECONDS_TO_CONNECT", 1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nbgrader_config.py").touch()
    said = CliRunner().invoke(app, ["grade", "mini", "--dask", "tcp://127.0.0.1:1"])
    assert said.exit_code == 2
    assert "No Dask scheduler answers at tcp://127.0.0.1:1" in said.output


def test_a_worker_gets_ready_once_be_it_by_itself_or_for_a_grader(monkeypatch):
    hired: list[tuple[str, int, int]] = []
    monkeypatch.setattr(
        cluster.Crew, "__init__", lambda self, *asked: hired.append(asked)
    )
    monkeypatch.setattr(cluster, "_CREWS", {})
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=3))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    cluster.dask_setup(worker)
    cluster.get_ready("bubblewrap", Limits.memory)
    assert cluster.hire("bubblewrap", Limits.memory).result()
    assert hired == [("bubblewrap", Limits.memory, 3)]
    cluster.hire("bubblewrap", 2**20).result()  # another memory, another warm process
    assert hired[1:] == [("bubblewrap", 2**20, 3)]


@whole_only
@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_in_each_phase_gives_the_marks_of_one_machine(
    tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    need_a_sandbox()
    classroom = open_class(tmp_path / "course")
    for number in range(STUDENTS):
        scale = (
            f"# {number}\n{SCALE}"
            if number % 2
            else f"# {number}\ndef scale(x):\n    return x"
        )
        classroom.submit("mini", f"student-{number:02}", answered(classroom, scale))
    wanted = {
        f"student-{n:02}": FULL if n % 2 else FULL | {"scale-tests": 0.0}
        for n in range(STUDENTS)
    }

    killed: list[int] = []
    travelled: list[bytes] = []
    read = cluster.unpacked_transcript
    settings = {"distributed.worker.daemon": False}
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=None, config=settings
        ) as local,
        Cluster(local.scheduler_address, "bubblewrap") as machines,
    ):
        workers = machines.client.run(os.getpid)
        assert len(workers) == 3

        def kill_one(told: bytes) -> Transcript:
            travelled.append(told)
            # among the visible rounds, and among the hidden ones
            if len(travelled) in (3, STUDENTS + 3):
                killed.append(list(workers.values())[len(killed)])
                os.kill(killed[-1], signal.SIGKILL)
            return read(told)

        monkeypatch.setattr(cluster, "unpacked_transcript", kill_one)
        report = grade(
            "mini", classroom.root, limits=Limits(cell_seconds=60.0), warm=machines
        )
        # a machine that lacks what marks depend on is refused
        monkeypatch.setattr(cluster, "environment", lambda: f"{environment()} and more")
        classroom.submit("mini", "late", answered(classroom, f"# late\n{SCALE}"))
        with pytest.raises(NoCluster, match=r"and more\. Install the same"):
            grade("mini", classroom.root, warm=machines)
    assert len(killed) == 2
    assert not any(result.again or result.problem for result in report.results)
    assert classroom.scores_of_all("mini") == wanted
    log = [
        json.loads(line)["student"]
        for line in (classroom.root / "grading-log.jsonl").read_text().splitlines()
    ]
    assert sorted(log) == sorted(wanted), "each is recorded once"
    assert all(type(told) is bytes for told in travelled)
    rounds = [read(told) for told in travelled]
    assert [(bool(one.tests), bool(one.marks)) for one in rounds] == [
        (True, False)
    ] * STUDENTS + [(False, True)] * STUDENTS
    pages = [
        path.read_text() for path in (classroom.root / "feedback").rglob("mini.html")
    ]
    assert sum("twice [1, -2] is [2, -4]" in page for page in pages) == STUDENTS // 2
