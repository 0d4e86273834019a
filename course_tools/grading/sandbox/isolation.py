"""The walls around a warm worker: bubblewrap, or a container if asked for.

Each has a name, a reason why this machine does not give it, and a command line that
runs a program behind it. Behind both, each submission is shut in on its own by the
kernel's namespaces (:mod:`course_tools.grading.sandbox.ways`). Podman was run as root,
with runc, on a kernel with control groups of version 1; Podman without root, and
Docker, were not.
"""

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
#: Where the packages of the course lie, and those that are there (`course-grade` has no
#: laboratory): read-only inside, hidden from students.
ROOT = Path(__file__).resolve().parents[3]
PACKAGES = tuple(
    ROOT / name
    for name in ("course_lib", "course_lab", "course_tools")
    if (ROOT / name).is_dir()
)
INSTALL = "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap)."
INSTALL_BOTH = "Install Podman and runc (Debian, Ubuntu: apt-get install podman runc)."
UBUNTU = (
    "Ubuntu 24.04 lets programs have no namespaces: sudo sysctl -w"
    " kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap"
    " (the book's page operating-walls shows it)."
)
#: What the machine's own programs and libraries need; each is bound only where it is
#: there.
SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache"]
SYSTEM += ["/etc/localtime", "/etc/alternatives"]
#: Where the socket to the grader lies in a container.
DOOR = "/run/course/orders"
IMAGE = "course-grade-empty"
#: No filters and profiles of a container's program, which refuse all namespaces.
NO_SECOND_OPINION = ["no-new-privileges", "seccomp=unconfined", "apparmor=unconfined"]
NO_SECOND_OPINION += ["label=disable"]
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
    """One wall; this one is none, and students' code runs as you."""

    name = way = "unsafe"  # a key of `WAYS` in :mod:`...sandbox.ways`
    by_socket = False  # the worker connects to :data:`DOOR`, as it inherits none
    hides: tuple[str, ...] = ()  # folders that a worker sees and a submission does not

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
    own = Path(sys.executable).resolve().parents[1]
    return [Path(sys.base_prefix), Path(sys.prefix), own, *PACKAGES]


def _binds() -> list[str]:
    """Read-only views of the system's libraries, this Python and course_lib."""
    seen: list[Path] = []
    made: set[Path] = set()
    arguments: list[str] = []
    for place in (place for place in map(Path, SYSTEM) if place.exists()):
        if place.is_symlink():
            arguments += ["--symlink", os.readlink(place), str(place)]
        else:
            arguments += ["--ro-bind", str(place), str(place)]
            seen.append(place)
    for place in bound():
        if any(map(place.is_relative_to, seen)):
            continue
        for parent in reversed(place.parents[:-1]):
            if parent not in made and not any(map(parent.is_relative_to, seen)):
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
        "USER": "worker",  # some ask at import, and no wall has a list of users
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "CUDA_VISIBLE_DEVICES": "",
        **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    }


def command(bwrap: str, device: Device | None = None) -> list[str]:
    """The command line that runs a program behind the wall."""
    line = [bwrap, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    line += ["--unshare-cgroup-try"]
    if os.getuid() == 0:
        line += ["--cap-drop", "ALL"]
        for right in RIGHTS:
            line += ["--cap-add", f"CAP_{right}"]
    else:
        line += ["--unshare-user"]
    line += ["--die-with-parent", "--new-session", "--clearenv"]
    line += ["--proc", "/proc", "--dev", "/dev"]
    for node in device.nodes if device else ():
        line += ["--dev-bind", node, node]
    for own in ("/home", "/tmp", OWN):
        line += ["--perms", "0755", "--tmpfs", own]
    line += _binds()
    for closed in ("/home", "/tmp", "/"):
        line += ["--remount-ro", closed]
    line += ["--chdir", "/"]
    for name, value in worker_settings(OWN).items():
        line += ["--setenv", name, value]
    return line


@functools.cache
def _refused(wall: tuple[str, ...]) -> str:
    """Nest namespaces as a submission has them; say why if the kernel refuses."""
    trial = [*wall, sys.executable, "-s", "-c", TRIAL]
    tried = subprocess.run(trial, capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return ""
    said = (tried.stderr.strip() or "it says nothing").splitlines()[-1]
    refused = "the kernel lets no submission have namespaces of its own"
    return f"{refused} ({said}). {UBUNTU}"


class Bubblewrap(Isolation):
    """Namespaces by bubblewrap, and by the worker around each submission."""

    name, way = "bubblewrap", "namespaces"

    def available(self) -> str:
        if bwrap := shutil.which("bwrap"):
            return _refused(tuple(command(bwrap)))
        return f"there is no program bwrap. {INSTALL}"

    def command(
        self, program: list[str], memory: int, door: str, device: Device | None = None
    ) -> list[str]:
        return [*command(str(shutil.which("bwrap")), device), *program]

    def environment(self) -> dict[str, str] | None:
        return None


def _few_files_and_processes() -> list[str]:
    """Limit both, since Podman asks for more than a machine may give."""
    limits = []
    for name in ("nofile", "nproc"):
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        limits.append(f"--ulimit={name}={most}:{most}")
    return limits


class Container(Isolation):
    """A container of Podman or Docker; the worker adds namespaces for each."""

    name, way, by_socket = "container", "namespaces", True
    hides = ("/run", "/sys")

    def program(self) -> str | None:
        """The program that runs containers; the one that needs no root first."""
        return shutil.which("podman") or shutil.which("docker")

    def available(self) -> str:
        program = self.program()
        if program is None:
            return f"there is neither a program podman nor docker. {INSTALL_BOTH}"
        # An image with nothing in it: what runs there is this machine's own, bound
        # read-only.
        nothing = bytes(1024)  # a tar file ends by two empty blocks
        line = [program, "image", "inspect", IMAGE]
        made = subprocess.run(line, capture_output=True, check=False)
        if made.returncode != 0:
            line = [program, "import", "-", IMAGE]
            made = subprocess.run(line, input=nothing, capture_output=True, check=False)
        if made.returncode != 0:
            said = made.stderr.decode(errors="replace").strip() or "no word"
            return f"{Path(program).name} makes no image: {said.splitlines()[-1]}"
        return _refused(tuple(self.command([], 2**30, "")))

    def command(
        self, program: list[str], memory: int, door: str, device: Device | None = None
    ) -> list[str]:
        places = [Path(place) for place in SYSTEM if Path(place).exists()]
        binds = dict.fromkeys([*places, *bound()])
        here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most = min(int(SHARE_OF_MEMORY * here), 2**30 + (os.cpu_count() or 1) * memory)
        line = [str(self.program()), "run", "--rm", "--pull=never", "--network=none"]
        line += ["--ipc=private", "--read-only", "--user=0:0", "--workdir=/"]
        own = "rw,nosuid,nodev,size=1m,mode=0755"
        line += [f"--tmpfs={place}:{own}" for place in (OWN, "/home", "/tmp")]
        line += [f"--memory={most}", f"--memory-swap={most}"]
        line += [f"--pids-limit={PROCESSES}", *_few_files_and_processes()]
        line += ["--cap-drop=ALL", *(f"--cap-add={right}" for right in RIGHTS)]
        line += [f"--security-opt={word}" for word in NO_SECOND_OPINION]
        line += [f"--volume={place}:{place}:ro" for place in binds]
        line += [f"--volume={door}:{Path(DOOR).parent}"] if door else []
        line += [f"--device={node}" for node in (device.nodes if device else ())]
        line += [f"--env={name}={said}" for name, said in worker_settings(OWN).items()]
        return [*line, IMAGE, *program]

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
        others = [other for other in WALLS if other is not found]
        for other in (other.name for other in others if not other.available()):
            given = "This machine gives, if you ask for it by name"
            why += f" {given}: --isolation {other}."
        raise NoIsolation(f"Submissions cannot be shut in by {name}: {why}")
    return found


def check_sandbox() -> Finding:
    """Say, for `course doctor`, how submissions are shut in here."""
    refused = {wall.name: wall.available() for wall in WALLS}
    given = [name for name, why in refused.items() if not why]
    if not given:
        whys = "; ".join(f"{name}: {why.rstrip('.')}" for name, why in refused.items())
        words = f"none, which those who run `course grade` need. {whys}."
    elif given[0] == NAMES[0]:
        words = given[0]
    else:
        why = f"For {NAMES[0]}: {refused[NAMES[0]]}"
        words = f"only by name: --isolation {given[0]} {why}"
    return Finding("sandbox", True, words)
