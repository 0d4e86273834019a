"""Ways to shut in a warm worker and what it starts, from the strongest down; a weaker one is taken only by name.

Each is a rung with a name, a reason why this machine does not give it, and a command line that runs a program behind
its wall. What a rung does to each submission on its own is the way that it names (:mod:`course_lib.grading.ways`).
"""

from __future__ import annotations

import functools
import os
import platform
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Protocol, runtime_checkable

from course_lib.findings import Finding
from course_lib.grading import confine
from course_lib.grading.devices import Device
from course_lib.grading.landlock import NEEDED, landlock_version
from course_lib.grading.system_calls import MACHINES

OWN = confine.OWN
LIBRARY = Path(__file__).resolve().parents[1]
INSTALL = "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap)."
UBUNTU = (
    "Ubuntu 24.04 lets programs have no namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or "
    "an AppArmor profile for bwrap (the instructor's guide shows it)."
)
#: What the machine's own programs and libraries need; each is bound only where it is there.
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
#: Open files, and processes, of one user in a container.
FILES = 4096
#: What root needs there to give each process a user and a folder, to end it, and to count what it wrote.
CONTAINER_RIGHTS = ("SETUID", "SETGID", "KILL", "CHOWN", "DAC_READ_SEARCH")
#: Shuts itself in as a submission is: fails where the kernel refuses.
TRIAL = "from course_lib.grading import confine as c; c.become_nobody(); c.leave_the_world()"


class NoIsolation(Exception):
    """This machine cannot shut submissions in; the text says why and what to do."""


@runtime_checkable
class Isolation(Protocol):
    """One rung.

    Attributes:
        name: by which the instructor asks for it.
        way: how the worker shuts in each process: a key of `WAYS` in :mod:`course_lib.grading.ways`.
        by_socket: the worker cannot inherit a socket and connects to one that lies at :data:`DOOR`.
        count_disk: nothing else limits how much a submission writes.
    """

    name: str
    way: str
    by_socket: bool
    count_disk: bool

    def available(self) -> str:
        """Say why this machine does not give it, and what to do; "" if it does."""
        ...

    def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
        """Write the command line that runs a program behind the wall.

        Args:
            program: with its arguments.
            memory: bytes that one process of a submission may take.
            door: the folder of the socket, for a rung ``by_socket``.
            device: the GPU that is seen there, if any.
        """
        ...

    def environment(self) -> dict[str, str] | None:
        """Return the environment of the command, or None for the grader's own."""
        ...


def bound() -> list[Path]:
    """Folders of Python and of the course that are seen inside."""
    return [Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).resolve().parents[1], LIBRARY]


def _binds() -> list[str]:
    """Read-only views of the system's libraries, this Python and course_lib."""
    places = [Path(place) for place in SYSTEM if Path(place).exists()]
    arguments: list[str] = []
    for place in places:
        kind = ["--symlink", os.readlink(place)] if place.is_symlink() else ["--ro-bind", str(place)]
        arguments += [*kind, str(place)]
    seen: list[Path] = [place for place in places if not place.is_symlink()]
    made: set[Path] = set()
    for place in bound():
        if any(place == other or other in place.parents for other in seen):
            continue
        for parent in reversed(place.parents[:-1]):
            if parent not in made and not any(parent == other or other in parent.parents for other in seen):
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
        "PYTHONPATH": str(LIBRARY.parent),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "CUDA_VISIBLE_DEVICES": "",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }


def command(bwrap: str, device: Device | None = None) -> list[str]:
    """The command line that runs a program behind the wall.

    As root no user namespace is made here: the worker keeps the right to become nobody, and its children use it; and
    the rights to end its children, who then belong to nobody, and to ask them how much memory they share.
    """
    root = os.getuid() == 0
    apart = ["ipc", "pid", "net", "uts"] if root else ["user", "ipc", "pid", "net", "uts"]
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_PTRACE")
    rights = ["--cap-drop", "ALL", *(item for right in kept for item in ("--cap-add", right))] if root else []
    own = [item for name in ("/home", "/tmp", OWN) for item in ("--perms", "0755", "--tmpfs", name)]
    closed = [item for name in ("/home", "/tmp", "/") for item in ("--remount-ro", name)]
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
        *(item for node in (device.nodes if device else ()) for item in ("--dev-bind", node, node)),
        *own,
        *_binds(),
        *closed,
        *("--chdir", "/"),
        *(item for name, value in settings.items() for item in ("--setenv", name, value)),
    ]


@functools.cache
def _refused(bwrap: str) -> str:
    """Nest namespaces as a submission has them, once; say what the kernel says if it refuses."""
    whole = [*command(bwrap), sys.executable, "-s", "-c", TRIAL]
    tried = subprocess.run(whole, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else (tried.stderr.strip() or "it says nothing").splitlines()[-1]


class Bubblewrap:
    """Namespaces by bubblewrap around the worker, and by the worker around each submission."""

    name, way, by_socket, count_disk = "bubblewrap", "namespaces", False, False

    def available(self) -> str:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            return f"there is no program bwrap. {INSTALL}"
        said = _refused(bwrap)
        return f"the kernel lets no submission have namespaces of its own ({said}). {UBUNTU}" if said else ""

    def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
        return [*command(str(shutil.which("bwrap")), device), *program]

    def environment(self) -> dict[str, str] | None:
        return None


class Landlock:
    """Landlock, limits and refused system calls around each submission: no namespaces, no privilege."""

    name, way, by_socket, count_disk = "landlock", "landlock", False, True

    def available(self) -> str:
        version = landlock_version() if sys.platform == "linux" else 0
        if version < NEEDED:
            has = f"has version {version}" if version else "has none"
            return f"the kernel {has} of Landlock, and {NEEDED} (Linux 6.12) is the first that guards other processes."
        if platform.machine() not in MACHINES:
            return f"no list of system calls for a processor {platform.machine()!r}."
        if os.getuid() == 0:
            return "root keeps rights that Landlock does not take away. Grade as an ordinary user."
        return ""

    def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
        return program

    def environment(self) -> dict[str, str] | None:
        return worker_settings(os.environ.get("TMPDIR", "/tmp"))


def _few_files_and_processes() -> list[str]:
    """More than a worker needs; where nothing is said, Podman asks for more than a machine may be allowed to give."""
    here = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: resource.getrlimit(number)[1] for name, number in here.items()}
    most = {name: FILES if limit == resource.RLIM_INFINITY else min(FILES, limit) for name, limit in hard.items()}
    return [f"--ulimit={name}={limit}:{limit}" for name, limit in most.items()]


class Container:
    """A container of Docker or Podman around the worker, and in it a user of its own for each process."""

    name, way, by_socket, count_disk = "container", "users", True, True

    def program(self) -> str | None:
        """The program that runs containers; the one that needs no root first."""
        return shutil.which("podman") or shutil.which("docker")

    def available(self) -> str:
        program = self.program()
        if program is None:
            return "there is neither a program podman nor docker."
        asked = subprocess.run([program, "info"], capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            return f"{Path(program).name} does not answer: {(asked.stderr.strip() or 'no word').splitlines()[-1]}"
        return ""

    def make_image(self) -> None:
        """Make an image with nothing in it: what runs there is this machine's own, bound read-only.

        Raises:
            NoIsolation: the program refuses.
        """
        nothing = bytes(1024)  # a tar file ends by two empty blocks
        line = [str(self.program()), "import", "-", IMAGE]
        made = subprocess.run(line, input=nothing, capture_output=True, check=False)
        if made.returncode != 0:
            raise NoIsolation(f"No image for containers: {made.stderr.decode(errors='replace').strip()[-300:]}")

    def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
        places = [Path(place) for place in SYSTEM if Path(place).exists()]
        binds = dict.fromkeys([*places, *bound()])
        return [
            str(self.program()), "run", "--rm", "--pull=never", "--network=none", "--ipc=none", "--read-only",
            f"--tmpfs={OWN}:rw,nosuid,nodev,size=512m,mode=0755", "--user=0:0", "--workdir=/",
            f"--memory={2 * memory + 2**30}", f"--memory-swap={2 * memory + 2**30}", "--pids-limit=256",
            "--cap-drop=ALL", *(f"--cap-add={right}" for right in CONTAINER_RIGHTS),
            "--security-opt=no-new-privileges", *_few_files_and_processes(),
            *(f"--volume={place}:{place}:ro" for place in binds),
            f"--volume={door}:{Path(DOOR).parent}",
            *(f"--device={node}" for node in (device.nodes if device else ())),
            *(f"--env={name}={value}" for name, value in worker_settings(OWN).items()),
            IMAGE,
            *program,
        ]  # fmt: skip

    def environment(self) -> dict[str, str] | None:
        return None


class Nothing:
    """No wall: students' code runs as you."""

    name, way, by_socket, count_disk = "unsafe", "unsafe", False, False

    def available(self) -> str:
        return ""

    def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
        return program

    def environment(self) -> dict[str, str] | None:
        return {**os.environ, "PYTHONPATH": str(LIBRARY.parent)}


#: From the strongest down.
RUNGS: tuple[Isolation, ...] = (Bubblewrap(), Landlock(), Container())
NAMES = tuple(rung.name for rung in RUNGS)


def rung(name: str) -> Isolation:
    """Find a rung by its name.

    Raises:
        NoIsolation: there is no such rung, or this machine does not give it; the text names those that it gives.
    """
    if name == Nothing.name:
        return Nothing()
    found = next((rung for rung in RUNGS if rung.name == name), None)
    if found is None:
        raise NoIsolation(f"There is no isolation {name!r}; choose {', '.join(NAMES)}.")
    if why := found.available():
        others = [other.name for other in RUNGS if other is not found and not other.available()]
        instead = f" This machine gives, if you ask for it by name: --isolation {others[0]}." if others else ""
        raise NoIsolation(f"Submissions cannot be shut in by {name}: {why}{instead}")
    return found


def check_sandbox() -> Finding:
    """Say, for `course doctor`, how submissions are shut in here; who grades nobody needs nothing."""
    refused = {rung.name: rung.available() for rung in RUNGS}
    given = [name for name, why in refused.items() if not why]
    if not given:
        reasons = "; ".join(f"{name}: {why.rstrip('.')}" for name, why in refused.items())
        return Finding("sandbox", True, f"none, which those who run `course grade` need. {reasons}.")
    best = f"{given[0]}, the strongest" if given[0] == NAMES[0] else f"only by name: --isolation {given[0]}"
    stronger = [f"For {name}: {refused[name]}" for name in NAMES[: NAMES.index(given[0])]]
    return Finding("sandbox", True, " ".join([best, *stronger]))
