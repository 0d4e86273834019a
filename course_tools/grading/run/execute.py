"""Run one round of a submission behind the wall, and bring back what the referee says.

The visible round runs the tests that students see, and its words are kept for the
student; it knows no hidden test. The hidden round runs whole tests, and gives points,
and sentences of the instructor's, alone (:mod:`course_tools.grading.run.rounds` says
why, and when each runs).

The grader starts two processes of a warm worker, hands the referee its job, gives it a
new student's process when it asks for one, and ends both when the referee is done or
the time is up. What arrives is read as JSON: the grader needs no torch.

A test that depends on chance, on time say, is declared by the tag ``flaky`` on its cell
in the assignment's source: where it fails it is run again, and the best counts. No
other test is ever run again, and a student's own tags count for nothing.
"""

import base64
import contextlib
import functools
import json
import math
import platform
import socket
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from course_tools.grading.assignments.comparisons import compares
from course_tools.grading.sandbox.sandbox import Worker

HEAD = struct.Struct("<Q")
REPORT_BYTES = 8 * 2**20
EXPECTED_BYTES = 64 * 2**20  # of what references give


@dataclass
class Transcript:
    """What the referee said."""

    cells: dict[int, dict[str, Any]] = field(default_factory=dict)
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    marks: dict[str, dict[str, Any]] = field(default_factory=dict)
    given: list[dict[str, Any]] = field(default_factory=list)
    trouble: str = ""  # why the report is incomplete, in words
    over: str = ""  # of what all its processes together took too much
    seconds: float = 0.0  # by the clock
    repeated: dict[str, int] = field(default_factory=dict)
    deadly: list[int] = field(default_factory=list)  # not to be run again
    late: list[str] = field(default_factory=list)  # "" if the whole round was
    late_beside: int = 0  # others that ran when it was late and run again
    points_alone: bool = False  # nothing but points may be told


Steps = list[dict[str, Any]]


@dataclass(frozen=True)
class Round:
    """What the referee is told of one round of a submission."""

    hidden: bool  # whether tests are whole, and no student's word is told
    steps: Steps  # of each test the source of this round alone
    deadly: list[int] = field(default_factory=list)  # cells that are not run
    spent: float = 0.0  # seconds of its time that another round has used up
    slow: list[str] = field(default_factory=list)  # late though it ran alone


#: Runs one round, here or elsewhere.
Run = Callable[[Round], Transcript]


def visible_round(steps: Steps) -> Round:
    """The round of the tests that students see: no hidden test is anywhere in it."""
    seen = [
        step | {"source": step["visible"]} if step["kind"] == "test" else step
        for step in steps
    ]
    return Round(False, seen)


def hidden_round(steps: Steps, visible: Transcript) -> Round:
    """The round of the whole tests, after what the visible round has found out."""
    return Round(True, steps, visible.deadly, visible.seconds, visible.late)


class _TimeUp(Exception):
    pass


class Unreadable(Exception):
    """A report that is none; the text says why."""


class _Control:
    """The grader's end of the referee's pipe, with bounds of time and size."""

    def __init__(
        self, connection: socket.socket, seconds: float, most: int = REPORT_BYTES
    ) -> None:
        self.connection, self.most = connection, most
        self.until = time.monotonic() + seconds
        self.taken = 0

    def _wait(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise _TimeUp
        self.connection.settimeout(left)

    def send(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self._wait()
        self.connection.sendall(HEAD.pack(len(data)) + data)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._wait()
            part = self.connection.recv(min(size - len(parts), 2**20))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def hear(self) -> tuple[str, Any]:
        size = HEAD.unpack(self._exactly(HEAD.size))[0]
        self.taken += size
        if self.taken > self.most:
            raise Unreadable("it is too long")
        try:
            event, content = json.loads(self._exactly(size))
        except (ValueError, TypeError, RecursionError) as error:
            raise Unreadable("it is of a form that no report has") from error
        return event, content


def execute(worker: Worker, one_round: Round, files: dict[str, bytes]) -> Transcript:
    """Run one round of a submission."""
    transcript, began, started = Transcript(), time.monotonic(), []
    ours, theirs = socket.socketpair()
    student = 0
    try:
        with theirs:
            started.append(worker.start("referee", [theirs]))
        limits = worker.limits
        control = _Control(ours, limits.total_seconds - one_round.spent)
        job: dict[str, Any] = {
            name: getattr(one_round, name) for name in ("hidden", "steps", "deadly")
        }
        job["expected"] = _expected(worker, one_round) if one_round.hidden else ""
        job["cell_seconds"] = limits.cell_seconds
        job["total_seconds"] = limits.total_seconds
        packed = {name: base64.b64encode(data).decode() for name, data in files.items()}
        control.send(job | {"files": packed})
        while True:
            event, content = control.hear()
            if event == "done":
                transcript.deadly, transcript.late = content["deadly"], content["late"]
                break
            if event == "student":
                if student:
                    transcript.over = worker.end(student) or transcript.over
                one, other = socket.socketpair()
                with one, other:
                    student = worker.start("student", [other])
                    started.append(student)
                    socket.send_fds(ours, [b"s"], [one.fileno()])
            elif event == "cell":
                transcript.cells[content["index"]] = content
            elif event == "test":
                transcript.tests[content["name"]] = content
            elif event == "mark":
                transcript.marks[content["name"]] = content
            elif event == "given":
                transcript.given.append(content)
    except (_TimeUp, TimeoutError):
        transcript.trouble = (
            f"It was not done after {worker.limits.total_seconds:g} s and was stopped."
        )
        transcript.late = [""]
    except (EOFError, OSError):
        transcript.trouble = "The referee's process ended before it was done."
    except Unreadable as error:
        transcript.trouble = f"The referee's report cannot be read: {error}."
    finally:
        ours.close()
        for number in started:
            transcript.over = worker.end(number) or transcript.over
    transcript.seconds = time.monotonic() - began
    return transcript


def _expected(worker: Worker, one_round: Round) -> str:
    """What the references of the tests give: a referee that meets no student tells it,
    once for all submissions of a worker."""
    tests = [step["source"] for step in one_round.steps if step["kind"] == "test"]
    comparing = tuple(filter(compares, tests))
    if comparing and comparing not in worker.expected:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                number = worker.start("referee", [theirs])
            try:
                seconds = worker.limits.total_seconds
                control = _Control(ours, seconds, EXPECTED_BYTES)
                control.send({"asked": comparing})
                worker.expected[comparing] = control.hear()[1]
            finally:
                worker.end(number)
    return worker.expected.get(comparing, "")


def packed_transcript(transcript: Transcript) -> bytes:
    """Write a report as compressed JSON."""
    return zlib.compress(json.dumps(vars(transcript)).encode())


def unpacked_transcript(data: bytes) -> Transcript:
    """Read it again; JSON writes the places of cells as texts."""
    fields: dict[str, Any] = json.loads(zlib.decompress(data))
    fields["cells"] = {int(index): told for index, told in fields["cells"].items()}
    return Transcript(**fields)


@functools.cache
def environment() -> str:
    """Name it; machines that say the same give the same marks."""
    names, packages = ("torch", "numpy", "ipython", "nbgrader"), ""
    for name in names:
        with contextlib.suppress(PackageNotFoundError):  # a plain course needs no torch
            packages += f" {name} {version(name)}"
    return f"Python {platform.python_version()}{packages} {platform.machine()}"


RUNS = 3


def settled(run: Callable[[], Transcript], flaky: Mapping[str, float]) -> Transcript:
    """Run a round, and again while a declared test fails, `RUNS` times at most."""
    transcript = run()
    for count in range(2, RUNS + 1):
        earned = {name: _earned(transcript, name) for name in flaky}
        failing = [name for name in flaky if 0 <= earned[name] < flaky[name]]
        if not failing or transcript.trouble:
            break
        again = run()
        for name in failing:
            transcript.repeated[name] = count
            if _earned(again, name) > earned[name]:
                _results(transcript)[name] = _results(again)[name]
    return transcript


def run_settled(
    worker: Worker, files: dict[str, bytes], flaky: Mapping[str, float], one: Round
) -> Transcript:
    """Run one round on a worker, and again while a declared test fails."""
    return settled(partial(execute, worker, one, files), flaky)


def _results(transcript: Transcript) -> dict[str, dict[str, Any]]:
    """What the tests gave: a hidden round has marks, a visible one none."""
    return transcript.marks or transcript.tests


def _earned(transcript: Transcript, name: str) -> float:
    """What a test earned; -1, so no second chance, if not reached or tampered."""
    told = _results(transcript).get(name)
    if told is None or told["tampering"] or type(told["earned"]) not in (int, float):
        return -1.0
    # of a hidden round no error is told
    return math.inf if told.get("error") == "" else float(told["earned"])
