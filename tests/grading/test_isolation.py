"""The walls around submissions: which one a machine gives, what each asks of it, and attacks on both.

Containers are tried where Podman or Docker starts one; elsewhere their command line alone is compared.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ordinary_user
import psutil
import pytest
from attack_class import ALL_ATTACKS, POINTS, answered, expected, hand_in, lives, load, open_class, processes_left

from course_lib.grading import confine, isolation, sandbox, system_calls
from course_lib.grading.devices import Device
from course_lib.grading.execute import execute
from course_lib.grading.grade import grade
from course_lib.grading.isolation import Bubblewrap, Container, NoIsolation, check_sandbox, wall
from course_lib.grading.watch import memory_of, resident, share, tree_of

#: What can tell a weak wall from a strong one.
TRIED = ("daemon", "disk_bomb", "hidden_memory", "kills_everything", "memory_of_many", "network", "reads_processes")
#: As `course grade` does it, with less time and memory, so that attacks are over sooner.
GRADE = """from course_lib.grading.grade import grade
from course_lib.grading.sandbox import Limits
grade("mini", limits=Limits(cell_seconds=3.0, total_seconds=60.0, memory=2**30, processes=24))
"""


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch):
    """Let this machine give the named walls and no other."""

    def give(*names: str) -> None:
        for kind in (Bubblewrap, Container):
            why = "" if kind.name in names else f"no {kind.name} here."
            monkeypatch.setattr(kind, "available", lambda self, why=why: why)

    return give


def test_no_other_wall_is_taken_unless_it_is_asked_for_by_name(only) -> None:
    only("container")
    with pytest.raises(NoIsolation, match=r"no bubblewrap here.*if you ask for it by name: --isolation container"):
        wall("bubblewrap")
    assert wall("container").name == "container"


def test_where_nothing_is_given_nothing_is_offered(only) -> None:
    only()
    with pytest.raises(NoIsolation, match=r"no bubblewrap here\.$"):
        wall("bubblewrap")


@pytest.mark.parametrize("name", ["landlock", "users", "hope"])
def test_there_are_two_walls_and_no_other_has_a_name(name: str) -> None:
    with pytest.raises(NoIsolation, match=f"no isolation '{name}'; choose bubblewrap or container"):
        wall(name)


def test_without_the_programs_the_refusal_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    with pytest.raises(NoIsolation, match=r"no program bwrap\. Install bubblewrap.*apt-get install bubblewrap"):
        wall("bubblewrap")
    with pytest.raises(NoIsolation, match=r"neither a program podman nor docker\. .*apt-get install podman runc"):
        wall("container")


def test_the_doctor_names_the_wall_and_how_to_get_bubblewrap(only) -> None:
    only("bubblewrap")
    assert check_sandbox().found == "bubblewrap"
    only("container")
    assert check_sandbox().found == "only by name: --isolation container For bubblewrap: no bubblewrap here."
    only()
    assert check_sandbox().found.startswith("none, which those who run `course grade` need. bubblewrap: no bubblewrap")


def test_a_kernel_that_refuses_namespaces_is_told_from_a_missing_program(monkeypatch, tmp_path) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(isolation.shutil, "which", lambda name: str(refusing))
    why = Bubblewrap().available()
    assert "setting up uid map: Permission denied" in why
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in why


def test_a_container_that_lets_nobody_have_namespaces_is_refused_with_the_remedy(monkeypatch, tmp_path) -> None:
    refusing = tmp_path / "podman"
    refusing.write_text("#!/bin/sh\n[ $1 = image ] || { echo 'private mounts: Permission denied' >&2; exit 1; }\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(isolation.shutil, "which", lambda name: str(refusing))
    why = Container().available()
    assert "(private mounts: Permission denied)" in why
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in why


def test_a_container_gets_no_network_no_write_and_few_rights(monkeypatch) -> None:
    monkeypatch.setattr(isolation.shutil, "which", lambda name: f"/usr/bin/{name}")
    line = Container().command(["python", "-m", "worker"], 2**30, "/somewhere/door")
    assert line[:2] == ["/usr/bin/podman", "run"]
    # what as many submissions as there are cores may take, and never all that the machine has
    most = min((1 + os.cpu_count()) * 2**30, psutil.virtual_memory().total * 3 // 4)
    for word in (
        "--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        "--ipc=private", "--pids-limit=1024", f"--memory={most}", f"--memory-swap={most}", "--pull=never",
        "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--security-opt=label=disable",
        "--volume=/somewhere/door:/run/course", f"--volume={sys.base_prefix}:{sys.base_prefix}:ro",
    ):  # fmt: skip
        assert word in line, word
    # Podman asks for a million open files else, which not every machine gives
    assert {word.split(":")[0] for word in line if word.startswith("--ulimit")} == {
        f"--ulimit={name}={min(4096, hard) if hard >= 0 else 4096}"
        for name, hard in (
            ("nofile", resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
            ("nproc", resource.getrlimit(resource.RLIMIT_NPROC)[1]),
        )
    }
    assert {word for word in line if word.startswith("--cap-add")} == {
        f"--cap-add={right}" for right in ("SETUID", "SETGID", "KILL", "SYS_PTRACE")
    }
    writable = [word for word in line if word.startswith("--volume") and not word.endswith(":ro")]
    assert writable == ["--volume=/somewhere/door:/run/course"]
    assert line[-4:] == [isolation.IMAGE, "python", "-m", "worker"]


# ---- the filter of system calls, interpreted here as the kernel's documentation says it is there --------------------


def verdict(code: list[system_calls.Instruction], nr: int, argument: int = 0, token: int = 0xC000003E) -> int:
    """What the filter says: the kernel's small machine, with the five instructions that are used."""
    data, at, held = struct.pack("<IIQQ", nr, token, 0, argument), 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
        at += if_true if holds else if_false


REFUSED, ALLOWED = system_calls.FAIL | 1, system_calls.ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_it_names_and_nothing_else(machine: str) -> None:
    token, numbers = system_calls.MACHINES[machine]
    names = system_calls.REFUSED
    code = system_calls.program(names, machine)
    known = numbers | system_calls.EVERYWHERE
    for name, number in known.items():
        if name in ("clone", "clone3"):
            continue
        assert verdict(code, number, token=token) == (REFUSED if name in names else ALLOWED), name
    assert verdict(code, known["clone3"], token=token) == system_calls.FAIL | 38  # ENOSYS: the library takes clone()
    assert verdict(code, known["clone"], 0x00010F00 | 17, token=token) == ALLOWED  # a thread
    assert verdict(code, known["clone"], 0x10000000 | 17, token=token) == REFUSED  # CLONE_NEWUSER
    assert verdict(code, known["mount"] + 1000, token=token) == ALLOWED
    assert verdict(code, 1, token=token ^ 1) == system_calls.KILL  # another processor's table
    assert verdict(code, 0x40000000, token=token) == REFUSED
    assert len(code) < 4096  # BPF_MAXINSNS


def test_an_unknown_processor_is_refused_in_words() -> None:
    with pytest.raises(confine.CannotConfine, match="'riscv64'; known are x86_64, aarch64"):
        system_calls.program((), "riscv64")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the header on this machine lists another processor's calls")
def test_numbers_of_calls_are_those_of_the_headers() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    numbers = {}
    for line in header.read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[1].startswith("__NR_") and words[2].isdigit():
            numbers[words[1].removeprefix("__NR_")] = int(words[2])
    ours = system_calls.MACHINES["x86_64"][1] | system_calls.EVERYWHERE
    assert {name: numbers[name] for name in ours if name in numbers} == {n: ours[n] for n in ours if n in numbers}
    assert len(ours.keys() & numbers.keys()) > 20


# ---- the watch ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="processes are counted through /proc")
def test_shared_memory_counts_once_in_a_tree() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the other end is closed
        os._exit(0)
    here = os.getpid()
    try:
        assert {here, child} <= set(tree_of(here))
        each_by_itself, together = memory_of(here, 2**50), memory_of(here, 0)
    finally:
        os.close(reading)
        os.close(writing)
        os.waitpid(child, 0)
    assert each_by_itself > resident(here)
    assert 0.5 * share(here) < together < 0.9 * each_by_itself  # what is torch's is not there twice


# ---- tried ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def course() -> Iterator[Path]:
    """A folder that a user without rights may enter and owns."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o755)
    ordinary_user.give(place)
    yield place
    shutil.rmtree(place)


def bubblewrap_given_to_an_ordinary_user(folder: Path) -> None:
    if os.getuid() == 0 and not (shutil.which("bwrap") and shutil.which("setpriv")):
        pytest.skip("root cannot become an ordinary user here: bwrap and setpriv are needed")
    asked = "from course_lib.grading.isolation import Bubblewrap; print(Bubblewrap().available())"
    answer = ordinary_user.run([sys.executable, "-c", asked], folder)
    if answer.stdout.strip() or answer.returncode:
        pytest.skip(f"no bubblewrap for an ordinary user here: {answer.stdout.strip() or answer.stderr[-500:]}")


@pytest.mark.slow
def test_an_ordinary_user_grades_attackers_and_an_honest_student(course: Path) -> None:
    bubblewrap_given_to_an_ordinary_user(course)
    classroom = open_class(course / "course")
    classroom.submit("mini", "ada", answered(classroom))
    attacks = [path for path in ALL_ATTACKS if path.stem in TRIED]
    for path in attacks:
        hand_in(classroom, path)
    ordinary_user.give(course)
    with processes_left() as left:
        done = ordinary_user.run([sys.executable, "-c", GRADE], classroom.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left == []
    scores = classroom.scores_of_all("mini")
    assert scores == {"ada": POINTS | {"why": 0.0}, **{path.stem: expected(path) for path in attacks}}


@pytest.mark.slow
def test_processes_that_take_too_much_together_are_ended_for_it() -> None:
    try:
        worker = sandbox.Worker(sandbox.Limits(cell_seconds=120.0, memory=2**29, processes=24))
    except NoIsolation as error:
        pytest.skip(f"no sandbox on this machine: {error}")
    attack = load(next(path for path in ALL_ATTACKS if path.stem == "memory_of_many"))
    step = {"kind": "student", "index": 0, "source": f"{attack.SCALE}\nscale(1)", "names": []}
    with worker:
        transcript = execute(worker, [step], {})
    assert transcript.over == "more memory than the 0.5 GiB that a submission may take"
    assert "ended its process" in transcript.cells[0]["error"]["message"]


@pytest.mark.slow
def test_a_container_shuts_attackers_in_and_ends_with_the_command(tmp_path: Path) -> None:
    try:
        sandbox.isolation("container")
    except NoIsolation as error:
        pytest.skip(f"no container starts on this machine: {error}")
    classroom = open_class(tmp_path / "course")
    classroom.submit("mini", "ada", answered(classroom))
    attacks = [path for path in ALL_ATTACKS if path.stem in TRIED]
    for path in attacks:
        hand_in(classroom, path)
    limits = sandbox.Limits(cell_seconds=3.0, total_seconds=60.0, memory=2**30, processes=24)
    with sandbox.Warm("container", limits.memory) as warm:
        grade("mini", classroom.root, limits=limits, warm=warm)
    scores = classroom.scores_of_all("mini")
    assert scores == {"ada": POINTS | {"why": 0.0}, **{path.stem: expected(path) for path in attacks}}
    inside = [p for p in psutil.process_iter(["cmdline"]) if isolation.DOOR in (p.info["cmdline"] or [])]
    _, left = psutil.wait_procs(inside, timeout=60)  # ended, and not yet gone
    assert left == []


def test_a_container_that_ends_at_once_is_not_waited_for(monkeypatch) -> None:
    class Ends(Container):
        def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
            return ["sh", "-c", "echo 'no cgroups here' >&2; exit 126"]

    monkeypatch.setattr(sandbox, "wall", lambda name: Ends())
    with (
        sandbox.Warm("container") as warm,
        pytest.raises(NoIsolation, match="The worker does not start: no cgroups here"),
    ):
        warm.fork(1)


class UnsafeInside(Bubblewrap):
    """The way of ``--unsafe``, in a sandbox that ends with the test whatever it leaves."""

    way = "unsafe"


@pytest.mark.slow
def test_who_forks_and_leaves_python_leaves_nobody_behind_without_namespaces(monkeypatch) -> None:
    """No kernel ends the tree there: the first process of it does, once the one that matters has ended."""
    monkeypatch.setattr(sandbox, "wall", lambda name: UnsafeInside())
    source = """import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: signal.pause()
    os._exit(0)
os.wait()
os._exit(0)
"""
    step = {"kind": "student", "index": 3, "source": source, "names": []}
    with sandbox.Worker(sandbox.Limits(cell_seconds=20.0)) as worker:
        sandboxed = psutil.Process(worker._own._process.pid)
        execute(worker, [{**step, "source": "pass"}], {})  # by now the worker itself is there
        before = sandboxed.children(recursive=True)
        transcript = execute(worker, [step], {})
        started = set(sandboxed.children(recursive=True)) - set(before)
        _, living = psutil.wait_procs(started, timeout=60)  # killed, and not yet gone
        left = [str(process) for process in living if lives(process)]
    assert "ended its process" in transcript.cells[3]["error"]["message"]  # so nobody holds the pipe open
    assert left == []
