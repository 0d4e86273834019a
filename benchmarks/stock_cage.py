"""Stock `nbgrader autograde`, as a whole, in a cage: each attack has a course folder to
throw away and nothing else.

Stock nbgrader runs what students wrote beside the gradebook, so here nbgrader and the
gradebook are shut in with it, by the same pieces that shut in a submission of `course
grade`. Around all of it stands bubblewrap: no network, no view of this machine but
Python and what is needed to hand in, read-only. Inside it handing in, autograding,
reading what came of it and tidying up run one after the other, each in namespaces of
its own, whose processes the kernel ends with the first; memory, processes, disk, size
of files and time are limited. A process that runs no line of a student's starts these
steps, watches them, and says the result.

It differs from a machine without a cage in this: the network is 127.0.0.1 alone,
`/proc` has no processes, memory of no process (memfd and its like) is refused, and
every limit is lower.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_tools.grading.sandbox.isolation import INSTALL, NoIsolation, command
from course_tools.grading.sandbox.sandbox import Limits
from course_tools.grading.sandbox.system_calls import DOORS, refuse_system_calls
from course_tools.grading.sandbox.ways import Namespaces

ROOT = Path(__file__).parents[1]
#: What the cage shows of this repository, beside course_lib.
SHOWN = (ROOT / "benchmarks", ROOT / "tests" / "tools" / "grading")
#: A folder in memory, of a size that is capped; what one step leaves there the next one
#: finds.
STAGE = Path("/stage")
COURSE, SAID = STAGE / "course", STAGE / "said"
DISK = 512 * 2**20
#: One submission may have less; here nbgrader, its kernel and their threads count, too.
LIMITS = Limits(memory=2 * 2**30, processes=64, file_bytes=4 * 2**30, disk="64m")
#: Seconds for handing in, and for writing feedback and reading marks: stock code, which
#: the attack has left behind it.
ASIDE = 120.0
LARGEST_ANSWER = 2**16
#: The kernel's SIOCSIFFLAGS and IFF_UP.
SET_FLAGS, UP = 0x8914, 0x1
KILLED = "killed its grader"
#: What the programs keep in a home folder by themselves.
OWN_HABITS = (".ipython", ".local", ".cache", ".config", ".jupyter")


@dataclass(frozen=True)
class Caged:
    """What came of one attack on stock nbgrader.

    Attributes:
        state: "done"; "stops the class", where an honest student who comes later is not
            graded; "did not end"; or of what it took more than the cage gives, or
            "killed its grader".
        marks: by student and question, as the gradebook has them; a student whom it
        does not know is not there.
        leaks: students whose feedback holds words of a hidden test.
        processes: left when the command had ended.
        files: left outside the submission's own folders, by name.
        seconds: of autograding, by the clock.
        said: the end of what the command printed.
    """

    state: str
    marks: dict[str, dict[str, float]]
    leaks: list[str]
    processes: int
    files: list[str]
    seconds: float
    said: str


class Cage:
    """A cage in which attacks on stock nbgrader are tried, one after the other.

    Args:
        course: a released assignment "mini" with honest submissions; it stays as it is.
        secrets: words that stand in hidden tests alone.
        later: an honest student whom nbgrader grades after the attacker.
        seconds: by the clock, for autograding.

    Raises:
        NoIsolation: there is no bubblewrap.
    """

    def __init__(
        self, course: Path, secrets: tuple[str, ...], later: str, seconds: float
    ) -> None:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise NoIsolation(
                "Stock nbgrader is not run beside an attack: there is no program"
                f" bwrap. {INSTALL}"
            )
        for place in (course, *course.rglob("*")):
            place.chmod(place.stat().st_mode | (0o555 if place.is_dir() else 0o444))
        wall = command(bwrap)
        closing = wall.index("--remount-ro")  # from here on no folder can be made
        shown = [item for place in (*SHOWN, course) for item in _shown(place)]
        stage = ["--perms", "1777", "--size", str(DISK), "--tmpfs", str(STAGE)]
        paths = os.pathsep.join(map(str, (ROOT, *SHOWN)))
        self._job = {
            "course": str(course),
            "secrets": secrets,
            "later": later,
            "seconds": seconds,
        }
        line = [
            *wall[:closing],
            *shown,
            *stage,
            *wall[closing:],
            "--setenv",
            "PYTHONPATH",
            paths,
        ]
        self._process = subprocess.Popen(
            [*line, sys.executable, "-s", "-m", "stock_cage"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def grade(self, attack: Path) -> Caged:
        """Hand in an attack to a copy of the course, let stock nbgrader grade it, and
        say what came of it.

        Args:
            attack: a file of ``tests/tools/grading/attacks``; its name is the
            student's.

        Raises:
            NoIsolation: the cage has ended, or was left with something in it; what it
            said of it is on stderr.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(
            json.dumps({**self._job, "attack": str(attack)}).encode() + b"\n"
        )
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise NoIsolation(f"The cage ended at {attack.stem}.")
        return Caged(**json.loads(answer))

    def __enter__(self) -> Cage:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _shown(place: Path) -> list[str]:
    parents = [
        item
        for parent in reversed(place.parents[:-1])
        for item in ("--perms", "0755", "--dir", str(parent))
    ]
    return [*parents, "--ro-bind", str(place), str(place)]


# ---- inside: the process that starts, watches and ends
# --------------------------------------------------------------


def main() -> None:
    """Answer each job of a line with a line."""
    import attack_class  # noqa: F401 - what each step needs, imported once
    import nbgrader.apps.nbgraderapp  # noqa: F401

    from course_tools.grading.sandbox import worker

    worker.ROLES["step"] = play
    for line in sys.stdin:
        print(json.dumps(asdict(tried(json.loads(line)))), flush=True)


def tried(job: dict[str, Any]) -> Caged:
    """Hand in, autograde, look, and tidy up, each in namespaces of its own."""
    student = Path(job["attack"]).stem
    before, _, over = step({**job, "do": "hand in"}, ASIDE)
    if over or "error" in before:
        raise SystemExit(f"{student} could not be handed in: {over or before['error']}")
    began = time.monotonic()
    graded, processes, over = step({**job, "do": "autograde"}, job["seconds"])
    seconds = time.monotonic() - began
    seen, _, lost = step({**job, "do": "read", "before": before["files"]}, ASIDE)
    step({**job, "do": "tidy up"}, ASIDE)
    if left := os.listdir(STAGE):
        raise SystemExit(f"{student} left what cannot be removed: {left}")
    marks = seen.get("marks", {})
    state = over or graded.get("error") or (KILLED if graded["killed"] else "done")
    if state == "done" and any(
        mark is None for mark in marks.get(job["later"], {"": None}).values()
    ):
        state = "stops the class"
    given = {
        who: {name: mark or 0.0 for name, mark in found.items()}
        for who, found in marks.items()
    }
    return Caged(
        (
            f"{state}; then the gradebook cannot be read"
            if lost or "error" in seen
            else state
        ),
        given,
        seen.get("leaks", []),
        processes,
        seen.get("files", []),
        seconds,
        graded.get("said", "") + seen.get("error", ""),
    )


class ForKernels(Namespaces):
    """Namespaces with what stock nbgrader and its kernels need besides: 127.0.0.1, and
    a word about the processor.

    Without the word torch complains on stderr when it is imported, and stock nbgrader
    gives nobody a mark.
    """

    def first_of_tree(self, order: dict[str, Any]) -> None:
        """Switch the loopback device of the new network namespace on, and go on as for
        a submission."""
        about = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(
                any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP).ljust(40, b"\0")
            )
        super().first_of_tree(order)
        proc = Path(
            "/proc"
        )  # now an empty folder of this user's, with room for one page
        proc.chmod(0o755)
        (proc / "cpuinfo").write_text(about + "\n\n")
        proc.chmod(0o555)

    def before_the_role(self, order: dict[str, Any]) -> None:
        """Refuse what leads out, and no locks: the gradebook is a file of SQLite's."""
        refuse_system_calls(DOORS, ())


def step(job: dict[str, Any], seconds: float) -> tuple[dict[str, Any], int, str]:
    """Run one step behind a wall of its own, and end all that it has started.

    Returns:
        Its answer, the processes that were left beside it when it gave it, and why it
        was ended before, or "".
    """
    from course_tools.grading.sandbox.ways import SECONDS, tree_of
    from course_tools.grading.sandbox.worker import start, watch

    ours, theirs = socket.socketpair()
    order = {
        "role": "step",
        "number": 1,
        "limits": asdict(LIMITS),
        "hide": [],
        "device": "",
    }
    way, until = ForKernels(), time.monotonic() + seconds
    tree = start(order, [theirs.fileno()], way)
    theirs.close()
    ours.sendall(json.dumps(job).encode())
    ours.shutdown(socket.SHUT_WR)
    text, over = b"", ""
    try:
        while not text.endswith(b"\n"):
            if not select.select([ours], [], [], SECONDS)[0]:
                watch(tree, way)
                if time.monotonic() > until:
                    over = "did not end"
                    break
            elif not (more := ours.recv(LARGEST_ANSWER)) or len(text) > LARGEST_ANSWER:
                over = (
                    tree.over and f"took {tree.over.partition(' that ')[0]}"
                ) or KILLED
                break
            else:
                text += more
        left, patience = 0, time.monotonic() + 2
        while (
            not over
            and (left := sum(map(_lives, tree_of(tree.first))) - 2)
            and time.monotonic() < patience
        ):
            select.select([], [], [], SECONDS)  # what was killed is on its way out
    finally:
        way.end(tree.first, tree.folder)
        ours.close()
    return ({} if over else json.loads(text)), max(left, 0), over


def _lives(process: int) -> bool:
    try:
        return (
            Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


# ---- inside that: the steps
# --------------------------------------------------------------------------------------


def play(pipe: int) -> None:
    """Do the step that the other end asks for, answer, and wait to be ended."""
    with socket.socket(fileno=pipe) as asking:
        job = json.loads(asking.makefile("rb").read())
        try:
            steps = {
                "hand in": hand_in,
                "autograde": autograde,
                "read": read,
                "tidy up": tidy_up,
            }
            answer = steps[job["do"]](job)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:1000]}
        asking.sendall(json.dumps(answer).encode() + b"\n")
        select.select([], [], [])


def hand_in(job: dict[str, Any]) -> dict[str, Any]:
    """Copy the course onto the stage, with the attack among the submissions."""
    import attack_class
    from classroom import Classroom

    shutil.copytree(job["course"], COURSE)
    for name in ("home", "tmp"):
        (STAGE / name).mkdir()
    SAID.touch()
    attack_class.hand_in(Classroom(COURSE), Path(job["attack"]))
    return {"files": sorted(_files(Path(job["attack"]).stem, job["later"]))}


def autograde(job: dict[str, Any]) -> dict[str, Any]:
    """Let nbgrader grade who is not graded yet."""
    killed = _nbgrader("autograde", "mini")
    with SAID.open("rb") as said:
        said.seek(max(0, SAID.stat().st_size - 1500))
        return {"killed": killed, "said": said.read().decode(errors="replace")}


def read(job: dict[str, Any]) -> dict[str, Any]:
    """Write feedback as an instructor does, and look at what there is now."""
    from nbgrader.api import Gradebook

    student = Path(job["attack"]).stem
    _nbgrader("generate_feedback", "mini", "--student", student)
    with Gradebook(f"sqlite:///{COURSE / 'gradebook.db'}") as gradebook:
        marks = {
            submission.student.id: {
                grade.name: (
                    None
                    if grade.auto_score is None and grade.manual_score is None
                    else _plain(grade.score)
                )
                for notebook in submission.notebooks
                for grade in notebook.grades
            }
            for submission in gradebook.assignment_submissions("mini")
        }
    pages = [
        page
        for page in (COURSE / "feedback").rglob("*.html")
        if page.is_file() and not page.is_symlink()
    ]
    leaks = {
        p.relative_to(COURSE).parts[1]
        for p in pages
        if any(word in p.read_text() for word in job["secrets"])
    }
    new = sorted(set(_files(student, job["later"])) - set(job["before"]))
    return {"marks": marks, "leaks": sorted(leaks), "files": new[:20]}


def tidy_up(job: dict[str, Any]) -> dict[str, Any]:
    """Leave an empty stage."""
    for folder, _, _ in os.walk(STAGE):
        os.chmod(folder, 0o700) if folder != str(STAGE) else None
    for place in STAGE.iterdir():
        (
            shutil.rmtree(place)
            if place.is_dir() and not place.is_symlink()
            else place.unlink()
        )
    return {}


def _plain(mark: float) -> float:
    return mark if math.isfinite(mark) else 0.0


def _nbgrader(*words: str) -> bool:
    """Run a command of nbgrader in a process that need not import it anew, and say
    whether something killed it."""
    from nbgrader.apps.nbgraderapp import main

    child = os.fork()
    if child == 0:
        try:
            said = os.open(SAID, os.O_WRONLY | os.O_TRUNC)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.chdir(COURSE)
            os.environ.update(
                HOME=str(STAGE / "home"),
                TMPDIR=str(STAGE / "tmp"),
                PYTHONPATH=str(ROOT),
            )
            # nbgrader starts its helper program alembic by name.
            os.environ["PATH"] = os.pathsep.join(
                [str(Path(sys.executable).parent), os.environ["PATH"]]
            )
            sys.argv = ["nbgrader", *words]
            main()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _files(*students: str) -> Iterator[str]:
    """Names on the stage, but for what nbgrader itself writes for these students."""
    own = {
        COURSE / "feedback",
        *(COURSE / "autograded" / student for student in students),
    }
    own |= {STAGE / "home" / name for name in OWN_HABITS}
    for folder, names, files in os.walk(STAGE):
        names[:] = [name for name in names if Path(folder, name) not in own]
        yield from (str(Path(folder, name).relative_to(STAGE)) for name in files)


if __name__ == "__main__":
    main()
