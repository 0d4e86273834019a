"""The walls around a warm worker and what it starts: bubblewrap, or a container where
you ask for one by name.

Each has a name, a reason why this machine does not give it, and a command line that
runs a program behind it. Behind both, each submission is shut in on its own by the
kernel's namespaces (:mod:`course_tools.grading.sandbox.ways`). Podman was run as root,
with runc, on a kernel with control groups of version 1; Podman without root, and
Docker, were not.
"""

from __future__ import annotations

import functools
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from course_tools.findings import Finding
from course_tools.grading.sandbox import confine
from course_tools.grading.sandbox.devices import Device

OWN = confine.OWN
#: Where the packages of the course lie, and they: read-only inside, hidden from
#: students.
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = tuple(ROOT / name for name in ("course_lib", "course_lab", "course_tools"))
INSTALL = "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap)."
INSTALL_CONTAINER = (
    "Install Podman and runc (Debian, Ubuntu: apt-get install podman runc)."
)
UBUNTU = (
    "Ubuntu 24.04 lets programs have no namespaces: sudo sysctl -w"
    " kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap"
    " (the instructor's guide shows it)."
)
#: What the machine's own programs and libraries need; each is bound only where it is
#: there.
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/alternatives",
)
#: Where the socket to the grader lies in a container.
DOOR = "/run/course/orders"
IMAGE = "course-grade-empty"
#: Filters and profiles of a container's program, which refuse all namespaces.
NO_SECOND_OPINION = ("seccomp=unconfined", "apparmor=unconfined", "label=disable")
#: Open files, and processes, of one user in a container; and processes in it.
FILES, PROCESSES = 4096, 1024
#: What a container may take of this machine's memory at most.
SHARE_OF_MEMORY = 0.75
#: What root keeps: to make each process nobody's, to end it, to ask it how much memory
#: it shares, and what it has open.
RIGHTS = ("SETUID", "SETGID", "KILL", "SYS_PTRACE", "DAC_READ_SEARCH")
#: Shuts itself in as a submission is: fails where the kernel refuses.
TRIAL = f"import {confine.__name__} as c; c.become_nobody(); c.leave_the_world()"


class NoIsolation(Exception):
    """This machine cannot shut submissions in; the text says why and what to do."""


class Isolation:
    """One wall; this one is none, and students' code runs as you.

    Attributes:
        name: by which the instructor asks for it.
        way: how the worker shuts in each process: a key of `WAYS` in
        :mod:`course_tools.grading.sandbox.ways`.
        by_socket: the worker cannot inherit a socket and connects to one that lies at
        :data:`DOOR`.
        hides: folders that a worker sees and a submission does not.
    """

    name = way = "unsafe"
    by_socket = False
    hides: tuple[str, ...] = ()

    def available(self) -> str:
        """Say why this machine does not give it, and what to do; "" if it does."""
        return ""

    def command(
        self, program: list[str], memory: int, door: str, device: Device | None = None
    ) -> list[str]:
        """Write the command line that runs a program behind the wall."""
        return program

    def environment(self) -> dict[str, str] | None:
        """Return the environment of the command, or None for the grader's own."""
        return {**os.environ, "PYTHONPATH": str(ROOT)}


def bound() -> list[Path]:
    """Folders of Python and of the course that are seen inside."""
    return [
        Path(sys.base_prefix),
        Path(sys.prefix),
        Path(sys.executable).resolve().parents[1],
        *PACKAGES,
    ]


def _binds() -> list[str]:
    """Read-only views of the system's libraries, this Python and course_lib."""
    places = [Path(place) for place in SYSTEM if Path(place).exists()]
    arguments: list[str] = []
    for place in places:
        kind = (
            ["--symlink", os.readlink(place)]
            if place.is_symlink()
            else ["--ro-bind", str(place)]
        )
        arguments += [*kind, str(place)]
    seen: list[Path] = [place for place in places if not place.is_symlink()]
    made: set[Path] = set()
    for place in bound():
        if any(place == other or other in place.parents for other in seen):
            continue
        for parent in reversed(place.parents[:-1]):
            if parent not in made and not any(
                parent == other or other in parent.parents for other in seen
            ):
                arguments += ["--perms", "0755", "--dir", str(parent)]
                made.add(parent)
        arguments += ["--ro-bind", str(place), str(place)]
        seen.append(place)
    return arguments


def worker_settings(home: str) -> dict[str, str]:
    """The whole environment of a worker: nothing of the grader's."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "CUDA_VISIBLE_DEVICES": "",
        **dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
        ),
    }


def command(bwrap: str, device: Device | None = None) -> list[str]:
    """The command line that runs a program behind the wall."""
    root = os.getuid() == 0
    apart = (
        ["ipc", "pid", "net", "uts"] if root else ["user", "ipc", "pid", "net", "uts"]
    )
    kept = [item for right in RIGHTS for item in ("--cap-add", f"CAP_{right}")]
    rights = ["--cap-drop", "ALL", *kept] if root else []
    own = [
        item
        for name in ("/home", "/tmp", OWN)
        for item in ("--perms", "0755", "--tmpfs", name)
    ]
    closed = [
        item for name in ("/home", "/tmp", "/") for item in ("--remount-ro", name)
    ]
    settings = worker_settings(OWN)
    return [
        bwrap,
        *(f"--unshare-{space}" for space in apart),
        "--unshare-cgroup-try",
        *rights,
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        *("--proc", "/proc", "--dev", "/dev"),
        *(
            item
            for node in (device.nodes if device else ())
            for item in ("--dev-bind", node, node)
        ),
        *own,
        *_binds(),
        *closed,
        *("--chdir", "/"),
        *(
            item
            for name, value in settings.items()
            for item in ("--setenv", name, value)
        ),
    ]


@functools.cache
def _refused(wall: tuple[str, ...]) -> str:
    """Nest namespaces behind a wall as a submission has them, once; say what the kernel
    says if it refuses."""
    tried = subprocess.run(
        [*wall, sys.executable, "-s", "-c", TRIAL],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode == 0:
        return ""
    said = (tried.stderr.strip() or "it says nothing").splitlines()[-1]
    return (
        f"the kernel lets no submission have namespaces of its own ({said}). {UBUNTU}"
    )


class Bubblewrap(Isolation):
    """Namespaces by bubblewrap around the worker, and by the worker around each
    submission."""

    name, way = "bubblewrap", "namespaces"

    def available(self) -> str:
        bwrap = shutil.which("bwrap")
        return (
            _refused(tuple(command(bwrap)))
            if bwrap
            else f"there is no program bwrap. {INSTALL}"
        )

    def command(
        self, program: list[str], memory: int, door: str, device: Device | None = None
    ) -> list[str]:
        return [*command(str(shutil.which("bwrap")), device), *program]

    def environment(self) -> dict[str, str] | None:
        return None


def _few_files_and_processes() -> list[str]:
    """More than a worker needs; where nothing is said, Podman asks for more than a
    machine may be allowed to give."""
    here = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: resource.getrlimit(number)[1] for name, number in here.items()}
    most = {
        name: FILES if limit == resource.RLIM_INFINITY else min(FILES, limit)
        for name, limit in hard.items()
    }
    return [f"--ulimit={name}={limit}:{limit}" for name, limit in most.items()]


class Container(Isolation):
    """A container of Podman or Docker around the worker, which itself puts namespaces
    around each submission."""

    name, way, by_socket = "container", "namespaces", True
    hides = ("/run", "/sys")

    def program(self) -> str | None:
        """The program that runs containers; the one that needs no root first."""
        return shutil.which("podman") or shutil.which("docker")

    def available(self) -> str:
        program = self.program()
        if program is None:
            return f"there is neither a program podman nor docker. {INSTALL_CONTAINER}"
        # An image with nothing in it: what runs there is this machine's own, bound
        # read-only.
        nothing = bytes(1024)  # a tar file ends by two empty blocks
        there = subprocess.run(
            [program, "image", "inspect", IMAGE], capture_output=True, check=False
        )
        line = [program, "import", "-", IMAGE]
        made = (
            there
            if there.returncode == 0
            else subprocess.run(line, input=nothing, capture_output=True, check=False)
        )
        if made.returncode != 0:
            said = (
                made.stderr.decode(errors="replace").strip() or "no word"
            ).splitlines()[-1]
            return f"{Path(program).name} makes no image: {said}"
        return _refused(tuple(self.command([], 2**30, "")))

    def command(
        self, program: list[str], memory: int, door: str, device: Device | None = None
    ) -> list[str]:
        places = [Path(place) for place in SYSTEM if Path(place).exists()]
        binds = dict.fromkeys([*places, *bound()])
        here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most = min(int(SHARE_OF_MEMORY * here), 2**30 + (os.cpu_count() or 1) * memory)
        return [
            str(self.program()), "run", "--rm", "--pull=never", "--network=none", "--ipc=private", "--read-only",  # noqa: E501
            *(f"--tmpfs={place}:rw,nosuid,nodev,size=1m,mode=0755" for place in (OWN, "/home", "/tmp")),  # noqa: E501
            "--user=0:0", "--workdir=/",
            f"--memory={most}", f"--memory-swap={most}", f"--pids-limit={PROCESSES}",
            "--cap-drop=ALL", *(f"--cap-add={right}" for right in RIGHTS), *_few_files_and_processes(),  # noqa: E501
            *(f"--security-opt={word}" for word in ("no-new-privileges", *NO_SECOND_OPINION)),  # noqa: E501
            *(f"--volume={place}:{place}:ro" for place in binds),
            *([f"--volume={door}:{Path(DOOR).parent}"] if door else []),
            *(f"--device={node}" for node in (device.nodes if device else ())),
            *(f"--env={name}={value}" for name, value in worker_settings(OWN).items()),
            IMAGE,
            *program,
        ]  # fmt: skip

    def environment(self) -> dict[str, str] | None:
        return None


WALLS: tuple[Isolation, ...] = (Bubblewrap(), Container())
NAMES = tuple(wall.name for wall in WALLS)


def wall(name: str) -> Isolation:
    """Find a wall by its name."""
    if name == Isolation.name:
        return Isolation()
    found = next((wall for wall in WALLS if wall.name == name), None)
    if found is None:
        raise NoIsolation(
            f"There is no isolation {name!r}; choose {' or '.join(NAMES)}."
        )
    if why := found.available():
        others = [
            other.name
            for other in WALLS
            if other is not found and not other.available()
        ]
        instead = (
            f" This machine gives, if you ask for it by name: --isolation {others[0]}."
            if others
            else ""
        )
        raise NoIsolation(f"Submissions cannot be shut in by {name}: {why}{instead}")
    return found


def check_sandbox() -> Finding:
    """Say, for `course doctor`, how submissions are shut in here; who grades nobody
    needs nothing."""
    refused = {wall.name: wall.available() for wall in WALLS}
    given = [name for name, why in refused.items() if not why]
    if not given:
        reasons = "; ".join(
            f"{name}: {why.rstrip('.')}" for name, why in refused.items()
        )
        return Finding(
            "sandbox",
            True,
            f"none, which those who run `course grade` need. {reasons}.",
        )
    if given[0] == NAMES[0]:
        return Finding("sandbox", True, given[0])
    return Finding(
        "sandbox",
        True,
        f"only by name: --isolation {given[0]} For {NAMES[0]}: {refused[NAMES[0]]}",
    )
