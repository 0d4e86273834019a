"""The ways to shut submissions in: which one a machine gives, what each asks of it, and attacks on the weaker one.

Containers are tried where Podman or Docker starts one; elsewhere their command line is compared, and what happens
inside them is tried in a sandbox with the same rights. Landlock is tried as a user without rights, wherever the kernel
has it.
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

from course_lib.grading import confine, isolation, landlock, sandbox, system_calls
from course_lib.grading.devices import Device
from course_lib.grading.execute import execute
from course_lib.grading.grade import grade
from course_lib.grading.isolation import Bubblewrap, Container, Landlock, NoIsolation, check_sandbox, rung
from course_lib.grading.watch import disk_of, memory_of, resident, share, tree_of

#: What can tell a wall without namespaces from one with them.
TRIED = ("daemon", "hidden_memory", "kills_everything", "memory_of_many", "network")
#: The same for a container, which hides less and counts as well.
IN_A_CONTAINER = ("daemon", "kills_everything", "network", "reads_processes")
#: As `course grade` does it, with less time and memory, so that attacks are over sooner.
GRADE = """import sys
from course_lib.grading.grade import grade
from course_lib.grading.sandbox import Limits
grade("mini", limits=Limits(cell_seconds=3.0, total_seconds=60.0, memory=2**30, processes=24), isolation=sys.argv[1])
"""


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch):
    """Let this machine give the named rungs and no other."""

    def give(*names: str) -> None:
        for kind in (Bubblewrap, Landlock, Container):
            why = "" if kind.name in names else f"no {kind.name} here."
            monkeypatch.setattr(kind, "available", lambda self, why=why: why)

    return give


def test_no_weaker_rung_is_taken_unless_it_is_asked_for_by_name(only) -> None:
    only("landlock", "container")
    with pytest.raises(NoIsolation, match=r"no bubblewrap here.*if you ask for it by name: --isolation landlock"):
        rung("bubblewrap")
    assert rung("landlock").name == "landlock"


def test_where_nothing_is_given_nothing_is_offered(only) -> None:
    only()
    with pytest.raises(NoIsolation, match=r"no bubblewrap here\.$"):
        rung("bubblewrap")
    with pytest.raises(NoIsolation, match="choose bubblewrap, landlock, container"):
        rung("hope")


def test_the_doctor_names_the_best_rung_and_how_to_get_a_better_one(only) -> None:
    only("bubblewrap", "landlock")
    assert check_sandbox().found == "bubblewrap, the strongest"
    only("container")
    found = check_sandbox().found
    assert found.startswith("only by name: --isolation container For bubblewrap: no bubblewrap here.")
    assert "For landlock: no landlock here." in found
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


@pytest.mark.parametrize(("version", "words"), [(0, "has none of Landlock"), (5, "has version 5 of Landlock")])
def test_landlock_that_does_not_guard_other_processes_is_refused(monkeypatch, version, words) -> None:
    # signals are a scope of Landlock since its version 6: https://docs.kernel.org/userspace-api/landlock.html
    monkeypatch.setattr(isolation, "landlock_version", lambda: version)
    assert words in Landlock().available()


def test_root_is_told_that_landlock_is_for_others(monkeypatch) -> None:
    monkeypatch.setattr(isolation, "landlock_version", lambda: 6)
    monkeypatch.setattr(isolation.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(isolation.os, "getuid", lambda: 0)
    assert "Grade as an ordinary user" in Landlock().available()
    monkeypatch.setattr(isolation.os, "getuid", lambda: 1000)
    assert Landlock().available() == ""


def test_rules_give_files_no_rights_of_folders(tmp_path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    given = dict(landlock.rules([file, tmp_path / "missing"], [tmp_path]))
    assert given[file] == landlock.EXECUTE | landlock.READ_FILE  # the kernel refuses more for a file
    assert given[tmp_path] == landlock.OWN
    assert set(given) == {file, tmp_path, Path(os.devnull)}


def test_a_container_gets_no_network_no_write_and_few_rights(monkeypatch) -> None:
    monkeypatch.setattr(isolation.shutil, "which", lambda name: f"/usr/bin/{name}")
    line = Container().command(["python", "-m", "worker"], 2**30, "/somewhere/door")
    assert line[:2] == ["/usr/bin/podman", "run"]
    for word in (
        "--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--ipc=none",
        "--pids-limit=256", f"--memory={3 * 2**30}", f"--memory-swap={3 * 2**30}", "--pull=never",
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
        f"--cap-add={right}" for right in isolation.CONTAINER_RIGHTS
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
@pytest.mark.parametrize("alone", [False, True])
def test_the_filter_refuses_what_it_names_and_nothing_else(machine: str, alone: bool) -> None:
    token, numbers = system_calls.MACHINES[machine]
    names = system_calls.ALWAYS + (system_calls.ALONE if alone else ())
    code = system_calls.program(names, machine, alone)
    known = numbers | system_calls.EVERYWHERE
    for name, number in known.items():
        if name in ("clone", "clone3", "prlimit64"):
            continue
        assert verdict(code, number, token=token) == (REFUSED if name in names else ALLOWED), name
    assert verdict(code, known["clone3"], token=token) == system_calls.FAIL | 38  # ENOSYS: the library takes clone()
    assert verdict(code, known["clone"], 0x00010F00 | 17, token=token) == ALLOWED  # a thread
    assert verdict(code, known["clone"], 0x10000000 | 17, token=token) == REFUSED  # CLONE_NEWUSER
    assert verdict(code, known["prlimit64"], 0, token=token) == ALLOWED
    assert verdict(code, known["prlimit64"], 4321, token=token) == (REFUSED if alone else ALLOWED)
    assert verdict(code, 1, token=token ^ 1) == system_calls.KILL  # another processor's table
    assert verdict(code, 0x40000000, token=token) == REFUSED
    assert len(code) < 4096  # BPF_MAXINSNS


def test_an_unknown_processor_is_refused_in_words() -> None:
    with pytest.raises(confine.CannotConfine, match="'riscv64'; known are x86_64, aarch64"):
        system_calls.program((), "riscv64", False)


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
    assert len(ours.keys() & numbers.keys()) > 35


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


def test_the_size_of_a_folder_is_that_of_its_blocks(tmp_path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(bytes(3 * 2**20))
    assert 3 * 2**20 <= disk_of(tmp_path, 2**30) < 4 * 2**20


# ---- tried ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def course() -> Iterator[Path]:
    """A folder that a user without rights may enter and owns."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o755)
    ordinary_user.give(place)
    yield place
    shutil.rmtree(place)


def given_to_an_ordinary_user(name: str, folder: Path) -> None:
    if os.getuid() == 0 and not (shutil.which("bwrap") and shutil.which("setpriv")):
        pytest.skip("root cannot become an ordinary user here: bwrap and setpriv are needed")
    asked = f"from course_lib.grading.isolation import RUNGS; print({{r.name: r.available() for r in RUNGS}}[{name!r}])"
    answer = ordinary_user.run([sys.executable, "-c", asked], folder)
    if answer.stdout.strip() or answer.returncode:
        pytest.skip(f"no {name} for an ordinary user here: {answer.stdout.strip() or answer.stderr[-500:]}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
def test_an_ordinary_user_grades_attackers_and_an_honest_student(name: str, course: Path) -> None:
    given_to_an_ordinary_user(name, course)
    classroom = open_class(course / "course")
    classroom.submit("mini", "ada", answered(classroom))
    attacks = [path for path in ALL_ATTACKS if path.stem in TRIED]
    for path in attacks:
        hand_in(classroom, path)
    ordinary_user.give(course)
    with processes_left() as left:
        done = ordinary_user.run([sys.executable, "-c", GRADE, name], classroom.root)
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


class UsersInside(Bubblewrap):
    """What happens in a container, in a sandbox that gives the worker a container's rights and no more."""

    way = "users"

    def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
        line = super().command(program, memory, door, device)
        rights = [item for right in isolation.CONTAINER_RIGHTS for item in ("--cap-add", f"CAP_{right}")]
        place = line.index("--die-with-parent")
        return [*line[:place], *rights, *line[place:]]


@pytest.mark.slow
def test_a_container_shuts_attackers_in_and_ends_with_the_command(tmp_path: Path) -> None:
    try:
        sandbox.isolation("container")
    except NoIsolation as error:
        pytest.skip(f"no container starts on this machine: {error}")
    classroom = open_class(tmp_path / "course")
    classroom.submit("mini", "ada", answered(classroom))
    attacks = [path for path in ALL_ATTACKS if path.stem in IN_A_CONTAINER]
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
        def make_image(self) -> None:
            pass

        def command(self, program: list[str], memory: int, door: str, device: Device | None = None) -> list[str]:
            return ["sh", "-c", "echo 'no cgroups here' >&2; exit 126"]

    monkeypatch.setattr(sandbox, "rung", lambda name: Ends())
    with (
        sandbox.Warm("container") as warm,
        pytest.raises(NoIsolation, match="The worker does not start: no cgroups here"),
    ):
        warm.fork(1)


def _of_a_submission(process: psutil.Process) -> bool:
    try:
        return process.uids().real >= 10_000
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root gives its processes users of their own")
def test_users_of_their_own_cannot_reach_each_other(monkeypatch) -> None:
    monkeypatch.setattr(sandbox, "rung", lambda name: UsersInside())
    source = """import glob, os, signal
reached = []
for process in (int(p[6:]) for p in glob.glob("/proc/[0-9]*")):
    if process != os.getpid():
        try: os.kill(process, 0); reached.append(process)
        except PermissionError: pass
        try: open(f"/proc/{process}/mem", "rb").close(); reached.append(-process)
        except OSError: pass
for place in ("/", "/own", "/tmp", "/home", "/dev/shm"):
    try: open(f"{place}/left", "w").close(); reached.append(place)
    except OSError: pass
open("mine", "w").close()
if os.fork() == 0: os.setsid(); signal.pause()
print(os.getuid() >= 10000, reached)
"""
    step = {"kind": "student", "index": 3, "source": source, "names": []}
    with sandbox.Worker(sandbox.Limits(cell_seconds=5.0)) as worker:
        transcripts = [execute(worker, [step], {}) for _ in range(2)]
        inside = psutil.Process(worker._own._process.pid).children(recursive=True)
        _, left = psutil.wait_procs(filter(_of_a_submission, inside), timeout=60)  # killed, and not yet gone
    assert [t.cells[3]["printed"] for t in transcripts] == ["True []\n"] * 2
    assert left == []


class LandlockInside(Bubblewrap):
    """The way of Landlock, in a sandbox that ends with the test whatever it leaves."""

    way = "landlock"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not landlock.landlock_version(), reason="no Landlock on this machine")
def test_who_forks_and_leaves_python_leaves_nobody_behind_without_namespaces(monkeypatch) -> None:
    """No kernel ends the tree there: the first process of it does, once the one that matters has ended."""
    monkeypatch.setattr(sandbox, "rung", lambda name: LandlockInside())
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
