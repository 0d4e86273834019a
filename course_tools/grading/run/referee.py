"""The grader's process for one submission: it runs tests, and asks for answers.

Here run the cells that the notebook gives and the test cells with their hidden tests,
as the instructor wrote them. The names that the student was to define stand for
functions in the other process (:mod:`course_tools.grading.bridge.peer`). So no line of
a student's runs here, nor do hidden tests exist there; only arguments and results
cross, as data.

A referee runs one round. In a visible round the tests are those that students see, and
what is printed and said is kept for the student. In a hidden round, with a referee and
a student's process of its own, hidden tests run too, and nothing is kept but the points
and which of the instructor's own sentences a test ended in: a process that has seen
hidden tests can tell nobody
(:mod:`course_tools.grading.assignments.hidden_words`).

A submission's process may die or hang. It is then started anew, all its cells run again
but the one that killed it, and the next question is asked.
"""

import base64
import contextlib
import io
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from course_tools.grading.assignments.comparisons import expected
from course_tools.grading.assignments.hidden_words import own_words
from course_tools.grading.assignments.marking_checks import told
from course_tools.grading.bridge.codec import Handle, Refused
from course_tools.grading.bridge.held import declare
from course_tools.grading.bridge.peer import Peer, PeerGone
from course_tools.grading.bridge.torch_here import torch
from course_tools.grading.run.given_objects import given_classes
from course_tools.grading.run.shell import fresh_shell, put_files
from course_tools.grading.run.telling import (
    PRINTED,
    WORDS,
    bounded,
    hear,
    packed,
    tell,
    unpacked,
)

STARTS = 8
GRACE = 3.0
MUCH = "exit, a crash, or more memory or processor time than there is"
GONE = {
    "ended": f"Your code ended its process ({MUCH}).",
    "late": "Your code was still busy after {seconds:g} s and was stopped.",
    "garbled": "Your process wrote into the grader's pipe: this looks like tampering.",
}
DYING = "Your process ended or hung so often that the rest was not asked."


class TestTooSlow(BaseException):
    """A test cell that is still busy after its time."""

    __test__ = False


class OutOfStarts(BaseException):
    """The student's process died too often."""


class Opaque:
    """Something that is no data: a test sees the name of its type alone."""


def opaque(handle: Handle) -> Any:
    """Make a stand-in for a handle whose type has the name that the student's has."""
    name = handle.name if handle.name.isidentifier() else "object"
    made = type(name, (Opaque,), {})()
    made.__dict__["__course_key__"] = handle.key
    return made


class Referee:
    """One round of a submission's tests, and the student's process that answers."""

    def __init__(self, control: socket.socket, job: dict[str, Any]) -> None:
        self.control, self.job, self.hidden = control, job, job["hidden"]
        self.shell, self.namespace = fresh_shell()
        # no student's code is here: a notebook's guard has nothing to refuse
        vars(sys)["_course_guard"] = {"allowed": contextlib.nullcontext}
        self.namespace["In"] = self.In = [""]
        self.peer: Peer | None = None
        self.starts = 0
        self.ran: list[dict[str, Any]] = []  # the student's cells so far
        # cells that end their process, or cannot be interrupted: they run once
        self.deadly = set(job["deadly"])
        self.late: set[str] = set()  # what the clock stopped
        self.step: dict[str, Any] = {}
        self.expected = unpacked(job["expected"]) if job.get("expected") else {}
        self.given: list[str] = []
        self.withheld: list[str] = []

    # ---- the student's process

    def student(self) -> Peer:
        """The student's process, started and brought to this place if need be."""
        if self.peer is None:
            if self.starts >= STARTS:
                raise OutOfStarts
            self.starts += 1
            tell(self.control, "student", None)
            _, pipes, _, _ = socket.recv_fds(self.control, 1, 1)
            peer = Peer(socket.socket(fileno=pipes[0]), strict=True)
            peer.make = self._stand_for
            peer.classes = given_classes(self.given, self.namespace)
            peer.randomness.watch_seeds()
            self.peer = peer
            peer.deadline = time.monotonic() + self.job["total_seconds"]
            peer.ask(("files", self.job["files"]))
            peer.ask(("withhold", self.withheld))
            for cell in self.ran:
                if cell["index"] not in self.deadly:
                    self._run_there(peer, cell)
            peer.ask(("classes", self.given))
        return self.peer

    def _stand_for(self, handle: Handle) -> Any:
        if handle.kind in ("function", "class"):
            return self.function(handle.key, handle.name, "")
        return opaque(handle)

    def _run_there(self, peer: Peer, cell: dict[str, Any]) -> dict[str, Any]:
        peer.deadline = time.monotonic() + self.job["cell_seconds"] + GRACE
        return peer.ask(("run", cell["source"], self.job["cell_seconds"]))

    def gone(self, error: PeerGone) -> str:
        """Part from a student's process that died or hangs, and say so in words."""
        self.part()
        if str(error) == "late":
            self.note_late()
        return GONE[str(error)].format(seconds=self.job["cell_seconds"])

    def note_late(self) -> None:
        """Note that the clock stopped the step that is being taken."""
        self.late.add(self.step.get("name") or f"cell {self.step.get('index')}")

    def function(self, key: str, name: str, text: str) -> Any:
        """A function here that stands for one of the student's."""

        def ask(*args: Any, **kwargs: Any) -> Any:
            peer = self.peer
            if peer is None:
                raise PeerGone("ended")
            return peer.call(key, args, kwargs)

        ask.__name__ = ask.__qualname__ = name if name.isidentifier() else "answer"
        ask.__doc__ = text
        ask.__dict__["__course_key__"] = key
        if key.startswith("name:"):
            # many calls in one message: a comparing test makes some hundreds
            each = key.replace("name:", "each:", 1)
            ask.__dict__["many"] = lambda calls: self.function(each, name, "")(calls)
        return ask

    def ask_module(
        self, method: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call a method that the student wrote, of a module of the grader's own."""
        if self.peer is None:
            raise PeerGone("ended")
        return self.peer.modules.ask(method, module, args, kwargs)

    def learn_names(self, names: list[str], interfaces: dict[str, str]) -> None:
        """Let names stand for what the student's process has under them."""
        peer = self.student()
        told = peer.ask(("names", names))
        for name in names:
            what = told.get(name) if type(told) is dict else None
            self.namespace.pop(name, None)
            if type(what) is not tuple or not what:
                continue
            if what[0] == "callable" and what[1:2] == (True,) and name in interfaces:
                self.shell.run_cell(interfaces[name], store_history=False).raise_error()
                declare(self.namespace[name], self.ask_module)
            elif what[0] == "callable":
                text = what[2] if len(what) == 3 and type(what[2]) is str else ""
                self.namespace[name] = self.function(f"name:{name}", name, text)
            else:
                self.namespace[name] = peer.ask(("value", name))

    # ---- cells

    def student_cell(self, step: dict[str, Any]) -> None:
        """Run a cell in the student's process, and learn what it defines."""
        told: dict[str, Any] = {"error": None, "printed": "", "result": None}
        try:
            peer = self.student()
            self.ran.append(step)
            if step["index"] in self.deadly:
                raise Refused("it ended its process before")
            answer = self._run_there(peer, step)
            if type(answer) is dict:
                told.update({key: answer.get(key) for key in told})
            error = told["error"]
            if type(error) is dict and error.get("type") == "CellTooSlow":
                self.note_late()  # it stopped itself
        except PeerGone as gone:
            self.deadly.add(step["index"])
            told["error"] = {"type": "Stopped", "message": self.gone(gone)}
        except Refused as refused:
            told["error"] = {"type": "Refused", "message": str(refused)}
        self.In.append(step["source"])
        if not self.hidden:
            tell(self.control, "cell", {"index": step["index"], **bounded(told)})
        self.learn(step)

    def learn(self, step: dict[str, Any]) -> None:
        """Learn what a step's names stand for now."""
        if step["names"]:
            with self._or_part():
                self.learn_names(step["names"], step.get("interfaces", {}))

    @contextlib.contextmanager
    def _or_part(self) -> Iterator[None]:
        """Part from a process that goes; pass by what is refused."""
        try:
            yield
        except PeerGone as error:
            self.gone(error)
        except Refused:
            pass

    def withhold(self, step: dict[str, Any]) -> None:
        """Hear what the assignment withholds; each student's process is told first."""
        self.withheld = step["withheld"]
        if self.peer is not None:
            self.peer.ask(("withhold", self.withheld))

    def given_cell(self, step: dict[str, Any]) -> None:
        """Run a given cell; its errors show in the tests that need it."""
        self.given.append(step["source"])
        if self.peer is not None:
            self.peer.deadline = time.monotonic() + self.job["cell_seconds"]
        outcome = self.run_here(step["source"])
        if self.peer is not None:
            self.peer.classes = given_classes(self.given, self.namespace)
            with self._or_part():
                self.peer.ask(("classes", self.given))
        if outcome["error"] and not self.hidden:
            del outcome["result"], outcome["raised"]
            tell(self.control, "given", {"name": step["name"], **outcome})

    def test_cell(self, step: dict[str, Any]) -> None:
        """Run a test cell; of a hidden round the grader hears no student's word."""
        run = self.run_test_there if step.get("there") else self.run_test
        outcome = run(step["source"], step["points"], step.get("stock", False))
        if self.hidden:
            kept = ("earned", "tampering", "said")
            outcome = {key: outcome[key] for key in kept}
        event = "mark" if self.hidden else "test"
        tell(self.control, event, {"name": step["name"], **outcome})

    def part(self) -> None:
        """Let go of the student's process; the next question gets a fresh one."""
        if self.peer is not None:
            self.peer.connection.close()
            self.peer = None

    def _asked_for(self) -> tuple[Peer | None, dict[str, Any]]:
        """The student's process for a test, and what is said if there is none."""
        said = {"earned": 0.0, "error": "Stopped", "printed": "", "tampering": ""}
        said |= {"said": "", "number": False, "words": ""}
        try:
            return self.student(), said
        except OutOfStarts:
            return None, {**said, "words": DYING}
        except PeerGone as gone:
            return None, {**said, "words": self.gone(gone)}
        except Refused as refused:
            return None, {**said, "words": str(refused)}

    def run_test_there(
        self, source: str, points: float, _: bool = True
    ) -> dict[str, Any]:
        """Run a test in the student's process, which can read it and lie to it."""
        peer, said = self._asked_for()
        if peer is None:
            return said
        try:
            answer = self._run_there(peer, {"source": source})
        except PeerGone as gone:
            return {**said, "words": self.gone(gone)}
        except Refused as refused:
            return {**said, "words": str(refused)}
        keys = ("error", "printed", "result")
        if type(answer) is not dict or not answer.keys() >= set(keys):
            return {**said, "words": GONE["garbled"]}
        told = bounded({key: answer[key] for key in keys})
        if answer["error"] is not None:
            error = told["error"] or {"type": "Failed", "message": ""}
            words = error["message"]
            if error["type"] != "AssertionError":
                words = f"{error['type']}: {words}"
            kind = error["type"]
            return {**said, "error": kind, "words": words, "printed": told["printed"]}
        earned = points if told["result"] is None else by_stock(told["result"], points)
        return {**said, "error": "", "earned": earned, "printed": told["printed"]}

    def run_test(
        self, source: str, points: float, stock: bool = False
    ) -> dict[str, Any]:
        """Run a version of a test and say what it earns, by nbgrader's rule."""
        peer, said = self._asked_for()
        if peer is None:
            return said
        # here, where no student's code is, before it is asked for anything
        self.namespace["__expected__"] = self.expected or expected(source)
        peer.deadline = time.monotonic() + self.job["cell_seconds"]
        outcome = self.run_here(source)
        peer.forget()
        earned, error, words = 0.0, outcome["error"], outcome["message"]
        result = outcome["result"]
        if not error and result is None:
            earned = points
        elif not error and type(result) in (int, float) and 0 <= result <= points:
            earned = float(result)
        elif not error and stock:
            earned = by_stock(repr(result), points)
        elif not error:
            error = "NoMark"
            words = "The test cell ends in what is no mark; tell your instructor."
        suspect = "tampering" in words and error == "Stopped"
        return {
            "earned": earned,
            "error": error,
            "words": words,
            "printed": outcome["printed"],
            "tampering": words if suspect else "",
            "number": type(result) in (int, float),
            "said": own_words(outcome["raised"], source, self.namespace, self.job)
            or told(outcome["printed"]),
        }

    def run_here(self, source: str) -> dict[str, Any]:
        """Run a cell of the instructor's in this process."""
        printed, rest = io.StringIO(), io.StringIO()
        self.In.append(source)
        outputs = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(rest)
        with outputs[0], outputs[1], self._in_time():
            done = self.shell.run_cell(source, store_history=False)
        raised = done.error_before_exec or done.error_in_exec
        error, message = "" if raised is None else type(raised).__name__, ""
        if isinstance(raised, PeerGone):
            error, message = "Stopped", self.gone(raised)
        elif isinstance(raised, TestTooSlow):
            self.note_late()
            busy = "The test was still busy with your answers after its time"
            error, message = "Stopped", f"{busy} and was stopped."
        elif isinstance(raised, Refused):
            message = f"What your code gives back cannot be read: {raised}."
        elif isinstance(raised, AssertionError):
            message = str(raised)
        elif raised is not None:
            message = f"{error}: {raised}"
        said = {"error": error, "printed": printed.getvalue()[:PRINTED]}
        if len(message) > WORDS:  # what to do about it often stands at the end
            message = f"{message[: WORDS - 600]} [...] {message[-500:]}"
        said["message"] = message
        return {**said, "result": done.result, "raised": raised}

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        def stop(*_: object) -> None:
            raise TestTooSlow

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self.job["cell_seconds"] + 2 * GRACE)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def play(self) -> None:
        """Take the steps in their order."""
        torch.manual_seed(0)
        random.seed(0)
        take = {
            "withhold": self.withhold,
            "student": self.student_cell,
            "given": self.given_cell,
            "learn": self.learn,
        }
        for step in self.job["steps"]:
            self.step = step
            with contextlib.suppress(OutOfStarts):
                take.get(step["kind"], self.test_cell)(step)
        self.part()


def by_stock(shown: str, points: float) -> float:
    """What nbgrader gives for a result as it is shown: all, if it is no number."""
    try:
        number = float(shown)
    except ValueError:
        return points
    return number if 0 <= number <= points else 0.0


def play(control: int) -> None:
    """Be the referee of the submission that the grader sends."""
    connection = socket.socket(fileno=control)
    job = hear(connection)
    if "asked" in job:
        tell(connection, "expected", packed(job["asked"]))
        return
    job["files"] = {name: base64.b64decode(data) for name, data in job["files"].items()}
    put_files(job["files"])
    referee = Referee(connection, job)
    referee.play()
    done = {"deadly": sorted(referee.deadly), "late": sorted(referee.late)}
    tell(connection, "done", done)
