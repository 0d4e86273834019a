"""The walls around submissions: which one a machine gives, what each asks of it, and
attacks on both.

Containers are tried where Podman or Docker starts one; elsewhere their command line
alone is compared.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ordinary_user
import psutil
import pytest
from attack_class import (
    ALL_ATTACKS,
    POINTS,
    answered,
    expected,
    hand_in,
    lives,
    load,
    open_class,
    processes_left,
)
from expect import refusal
from walled import need_a_sandbox
from whole import whole_only

from course_tools.grading.run.execute import Transcript, execute, visible_round
from course_tools.grading.run.grade import grade
from course_tools.grading.sandbox import confine, isolation, sandbox, system_calls, ways
from course_tools.grading.sandbox.devices import Device
from course_tools.grading.sandbox.isolation import (
    Bubblewrap,
    Container,
    NoIsolation,
    check_sandbox,
    wall,
)
from course_tools.grading.sandbox.ways import memory_of, resident, share, tree_of

#: What can tell a weak wall from a strong one.
TRIED = (
    "daemon",
    "disk_bomb",
    "hidden_memory",
    "kills_everything",
    "memory_of_many",
    "network",
    "reads_processes",
)
#: As `course grade` does it, with less time and memory, so that attacks are over
#: sooner.
GRADE = """from course_tools.grading.run.grade import grade
from course_tools.grading.sandbox.sandbox import Limits
grade("mini", limits=Limits(cell_seconds=3.0, total_seconds=60.0, memory=2**30))
"""


@pytest.fixture
def only(monkeypatch):
    """Let this machine give the named walls and no other."""

    def give(*names: str) -> None:
        for kind in (Bubblewrap, Container):
            why = "" if kind.name in names else f"no {kind.name} here."
            monkeypatch.setattr(kind, "available", lambda self, why=why: why)

    return give


def test_no_other_wall_is_taken_unless_it_is_asked_for_by_name(only):
    only("container")
    with refusal(
        r"no bubblewrap here.*if you ask for it by name: --isolation container",
        NoIsolation,
    ):
        wall("bubblewrap")
    assert wall("container").name == "container"


def test_where_nothing_is_given_nothing_is_offered(only):
    only()
    with refusal(r"no bubblewrap here\.$", NoIsolation):
        wall("bubblewrap")


@pytest.mark.parametrize("name", ["landlock", "users", "hope"])
def test_there_are_two_walls_and_no_other_has_a_name(name):
    with refusal(f"no isolation '{name}'; choose bubblewrap or container", NoIsolation):
        wall(name)


def test_without_the_programs_the_refusal_says_what_to_install(monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    with refusal(
        r"no program bwrap\. Install bubblewrap.*apt-get install bubblewrap",
        NoIsolation,
    ):
        wall("bubblewrap")
    with refusal(
        r"neither a program podman nor docker\. .*apt-get install podman runc",
        NoIsolation,
    ):
        wall("container")


def test_the_doctor_names_the_wall_and_how_to_get_bubblewrap(only):
    only("bubblewrap")
    assert check_sandbox().found == "bubblewrap"
    only("container")
    assert (
        check_sandbox().found
        == "only by name: --isolation container For bubblewrap: no bubblewrap here."
    )
    only()
    assert check_sandbox().found.startswith(
        "none, which those who run `course grade` need. bubblewrap: no bubblewrap"
    )


@pytest.mark.parametrize(
    ("wall", "program", "script", "said"),
    [
        (
            Bubblewrap,
            "bwrap",
            "echo 'uid map: Permission denied' >&2; exit 1",
            "uid map: Permission denied",
        ),
        (
            Container,
            "podman",
            "[ $1 = image ] || { echo 'mounts: no' >&2; exit 1; }",
            "(mounts: no)",
        ),
    ],
)
def test_a_kernel_that_refuses_namespaces_is_told_from_a_missing_program(
    monkeypatch, tmp_path, wall, program, script, said
):
    refusing = tmp_path / program
    refusing.write_text(f"#!/bin/sh\n{script}\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(isolation.shutil, "which", lambda name: str(refusing))
    why = wall().available()
    assert said in why
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in why


def test_a_container_gets_no_network_no_write_and_few_rights(monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda name: f"/usr/bin/{name}")
    line = Container().command(["python", "-m", "worker"], 2**30, "/somewhere/door")
    assert line[:2] == ["/usr/bin/podman", "run"]
    # what as many submissions as there are cores may take, and never all that the
    # machine has
    most = min((1 + os.cpu_count()) * 2**30, psutil.virtual_memory().total * 3 // 4)
    for word in (
        "--network=none",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--ipc=private",
        "--pids-limit=1024",
        f"--memory={most}",
        f"--memory-swap={most}",
        "--pull=never",
        "--security-opt=seccomp=unconfined",
        "--security-opt=apparmor=unconfined",
        "--security-opt=label=disable",
        "--volume=/somewhere/door:/run/course",
        f"--volume={sys.base_prefix}:{sys.base_prefix}:ro",
    ):
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
        f"--cap-add={right}"
        for right in ("SETUID", "SETGID", "KILL", "SYS_PTRACE", "DAC_READ_SEARCH")
    }
    writable = [
        word
        for word in line
        if word.startswith("--volume") and not word.endswith(":ro")
    ]
    assert writable == ["--volume=/somewhere/door:/run/course"]
    assert line[-4:] == [isolation.IMAGE, "python", "-m", "worker"]


def ran_in_a_sandbox(source: str, **limits: Any) -> Transcript:
    """What became of one cell."""
    step = {"kind": "student", "index": 0, "source": source, "names": []}
    need_a_sandbox()
    with sandbox.Worker(sandbox.Limits(**{"cell_seconds": 120.0, **limits})) as worker:
        return execute(worker, visible_round([step]), {})


def printed_in_a_sandbox(source: str) -> str:
    """What a cell prints, and what it raises."""
    cell = ran_in_a_sandbox(source).cells[0]
    return cell["printed"] + (str(cell["error"]["message"]) if cell["error"] else "")


def test_a_user_has_a_name_where_no_wall_has_a_list_of_users():
    """As torch asks at its import in some versions, to name a folder."""
    assert printed_in_a_sandbox("import getpass; print(getpass.getuser())") == (
        "student\n"
    )


# ---- the filter of system calls, interpreted here as the kernel's documentation says
# it is there --------------------


def verdict(
    code: list[system_calls.Instruction],
    nr: int,
    *arguments: int,
    token: int = 0xC000003E,
) -> int:
    """What the filter says: the kernel's small machine, with the five instructions that
    are used."""
    data = struct.pack("<IIQ6Q", nr, token, 0, *arguments, *[0] * (6 - len(arguments)))
    at = 0
    held = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x06:
            return value
        if operation in (0x20, 0x54):
            held = (
                struct.unpack_from("<I", data, value)[0]
                if operation == 0x20
                else held & value
            )
            continue
        at += (
            if_true
            if {0x15: held == value, 0x35: held >= value}[operation]
            else if_false
        )


REFUSED, ALLOWED = system_calls.FAIL | 1, system_calls.ALLOW
#: Calls and arguments that honest code needs, and beside them those that it does not:
#: by name as in the manual pages.
WITH_ARGUMENTS = {
    "clone": ([(0x00010F00 | 17,)], [(0x10000000 | 17,)]),  # a thread; CLONE_NEWUSER
    "fcntl": (
        [
            (3, command) for command in (0, 1, 2, 3, 4, 1030, 1032)
        ],  # F_DUPFD, flags, F_DUPFD_CLOEXEC, F_GETPIPE_SZ
        [
            (3, command) for command in (5, 6, 7, 36, 37, 38, 1024, 1026, 1031)
        ],  # locks, leases, notes, F_SETPIPE_SZ
    ),
    "madvise": (
        [
            (0, 4096, advice) for advice in (0, 4, 8, 14, 15, 25)
        ],  # DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE, COLLAPSE
        [
            (0, 4096, advice) for advice in (3, 12, 20, 21, 22, 23)
        ],  # WILLNEED, MERGEABLE, COLD, PAGEOUT, POPULATE_*
    ),
    "mmap": (
        [
            (0, 4096, 3, flags) for flags in (0x01, 0x02, 0x22)
        ],  # a file, a file of its own, memory of its own
        [
            (0, 4096, 3, flags) for flags in (0x21, 0x23, 0x8021)
        ],  # MAP_SHARED or _VALIDATE | MAP_ANONYMOUS; populated
    ),
    "socket": (
        [(1, 1)],
        [(2, 1), (16, 3), (38, 5), (40, 1)],
    ),  # AF_UNIX; AF_INET, AF_NETLINK, AF_ALG, AF_VSOCK
    "setsockopt": (
        [(3, 1, 2)],
        [(3, 1, 7), (3, 1, 32)],
    ),  # SO_REUSEADDR; SO_SNDBUF, SO_SNDBUFFORCE
    "prctl": ([(38, 1)], [(67, 1)]),  # PR_SET_NO_NEW_PRIVS; PR_SET_MEMORY_MERGE
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_it_names_and_nothing_else(machine):
    token, numbers = system_calls.MACHINES[machine]
    names = system_calls.DOORS + system_calls.SHARED
    code = system_calls.program(names, system_calls.BY_ARGUMENT, machine)
    known = numbers | system_calls.EVERYWHERE
    assert known.keys() == {*names, *system_calls.TOO_NEW, *WITH_ARGUMENTS} - (
        {"inotify_init"} if machine == "aarch64" else set()
    )
    for name, number in known.items():
        if name in WITH_ARGUMENTS:
            allowed, refused = WITH_ARGUMENTS[name]
            assert {
                verdict(code, number, *given, token=token) for given in allowed
            } == {ALLOWED}, name
            assert {
                verdict(code, number, *given, token=token) for given in refused
            } == {REFUSED}, name
            # the kernel takes 32 bits of these arguments, whatever the others are
            assert (
                verdict(
                    code, number, *(2**32 + word for word in refused[0]), token=token
                )
                == REFUSED
            ), name
        else:
            # ENOSYS: the library takes the older call
            too_new = name in system_calls.TOO_NEW
            assert verdict(code, number, token=token) == (
                system_calls.FAIL | 38 if too_new else REFUSED
            ), name
    assert verdict(code, known["mount"] + 1000, token=token) == ALLOWED
    # another processor's table
    assert verdict(code, 1, token=token ^ 1) == system_calls.KILL
    assert verdict(code, 0x40000000, token=token) == REFUSED
    assert len(code) < 4096  # BPF_MAXINSNS


def test_an_unknown_processor_is_refused_in_words():
    with refusal("'riscv64'; known are x86_64, aarch64", confine.CannotConfine):
        system_calls.program((), (), "riscv64")


#: 64-bit ARM has the kernel's generic table.
HEADERS = {
    "x86_64": (
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        r"#define __NR_(\w+)\s+(\d+)",
    ),
    "aarch64": (
        "/usr/include/asm-generic/unistd.h",
        r"#define __NR(?:3264)?_(\w+)\s+(\d+)",
    ),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_of_calls_are_those_of_the_headers(machine):
    place, pattern = HEADERS[machine]
    if not Path(place).exists():
        pytest.skip("the kernel's headers are not installed")
    numbers = {
        name: int(number)
        for name, number in re.findall(pattern, Path(place).read_text())
    }
    ours = system_calls.MACHINES[machine][1] | system_calls.EVERYWHERE
    assert {name: numbers[name] for name in ours if name in numbers} == {
        n: ours[n] for n in ours if n in numbers
    }
    assert len(ours.keys() & numbers.keys()) > 30


#: Makes each call that could leave a word for another submission, or hear one, and
#: prints those that do not fail.
EACH_CALL = """import ctypes, fcntl, os, pydoc_data.topics, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
file = os.open(pydoc_data.topics.__file__, os.O_RDONLY)
seen = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, 1, file, ctypes.c_long(0)))
room, lock = ctypes.create_string_buffer(4096), struct.pack("hhqqi", 0, 0, 0, 0, 0)
calls = {
    "evict": lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED),
    "fetch": lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED),
    "ask by reading": lambda: os.preadv(file, [bytearray(1)], 0, os.RWF_NOWAIT),
    "lock": lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "lock of POSIX": lambda: fcntl.fcntl(file, fcntl.F_SETLK, lock),
    "ask for a lock": lambda: fcntl.fcntl(file, fcntl.F_GETLK, lock),
    "lock of the open file": lambda: fcntl.fcntl(file, 37, lock),
    "lease": lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "watch": lambda: fcntl.fcntl(os.open("/usr", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS),
}
def told(result):
    if result == -1: raise OSError(ctypes.get_errno(), "")
for name, *given in (
    ("mincore", seen, ctypes.c_size_t(4096), room), ("readahead", file, ctypes.c_long(0), ctypes.c_size_t(4096)),
    ("inotify_init",), ("inotify_init1", 0), ("name_to_handle_at", -100, b"/usr", room, room, 0),
    *(("madvise", seen, ctypes.c_size_t(4096), advice) for advice in (3, 20, 21, 22, 23)),
):
    calls[" ".join(map(str, (name, *given)))] = lambda name=name, given=given: told(getattr(libc, name)(*given))
for name, call in calls.items():
    try: call(); print(name, "is there")
    except PermissionError: pass
    except OSError as error: print(name, error)
print("done")
"""  # noqa: E501


@pytest.mark.slow
def test_no_call_leaves_a_word_in_files_of_all():
    """The page cache and locks carried what a hidden test asks from one submission into
    the words for another one."""
    assert printed_in_a_sandbox(EACH_CALL) == "done\n"


#: What notebooks do beside computing, and could need one of the refused calls for.
HONEST = """import asyncio, importlib, multiprocessing, pathlib, shutil, subprocess, tempfile
import numpy, tokenizers, torch
from concurrent.futures import ThreadPoolExecutor
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader
numpy.save("a.npy", numpy.arange(3.0)); assert numpy.load("a.npy", mmap_mode="r").sum() == 3
torch.save(torch.ones(3), "a.pt"); assert torch.load("a.pt", mmap=True).sum() == 3
save_file({"a": torch.ones(3)}, "a.st"); assert load_file("a.st")["a"].sum() == 3
with tempfile.TemporaryDirectory() as folder: shutil.copy("a.st", folder)
pathlib.Path("a").write_text("a\\n" * 9); assert pathlib.Path("a").stat().st_size == 18
tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="?"))
tokenizer.train_from_iterator(["a b"] * 9, tokenizers.trainers.WordPieceTrainer(special_tokens=["?"]))
assert sum(batch.sum() for batch in DataLoader(torch.arange(9), batch_size=2, num_workers=2)) == 36
with multiprocessing.get_context("fork").Pool(2) as pool: assert pool.map(abs, [-1, 1]) == [1, 1]
with ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1] * 9)) == [1] * 9
assert asyncio.run(asyncio.sleep(0, 1)) == 1
assert subprocess.run(["echo", "1"], capture_output=True).stdout == b"1\\n"
torch.nn.Linear(3, 3)(torch.ones(3)).sum().backward()
importlib.reload(pathlib)
print("done")
"""  # noqa: E501


@pytest.mark.slow
def test_honest_code_misses_none_of_the_refused_calls():
    assert printed_in_a_sandbox(HONEST) == "done\n"


# ---- the watch
# --------------------------------------------------------------------------------------


@pytest.mark.skipif(
    sys.platform != "linux", reason="processes are counted through /proc"
)
def test_shared_memory_counts_once_in_a_tree():
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
    # what is torch's is not there twice
    assert 0.5 * share(here) < together < 0.9 * each_by_itself


# ---- tried
# --------------------------------------------------------------------------------------


@pytest.fixture
def course():
    """A folder that a user without rights may enter and owns."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o755)
    ordinary_user.give(place)
    yield place
    shutil.rmtree(place)


def bubblewrap_given_to_an_ordinary_user(folder: Path) -> None:
    if os.getuid() == 0 and not (shutil.which("bwrap") and shutil.which("setpriv")):
        pytest.skip(
            "root cannot become an ordinary user here: bwrap and setpriv are needed"
        )
    asked = (
        "from course_tools.grading.sandbox.isolation import Bubblewrap;"
        " print(Bubblewrap().available())"
    )
    answer = ordinary_user.run([sys.executable, "-c", asked], folder)
    if answer.stdout.strip() or answer.returncode:
        pytest.skip(
            "no bubblewrap for an ordinary user here:"
            f" {answer.stdout.strip() or answer.stderr[-500:]}"
        )


@whole_only
@pytest.mark.slow
def test_an_ordinary_user_grades_attackers_and_an_honest_student(course):
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
    assert scores == {
        "ada": POINTS | {"why": 0.0},
        **{path.stem: expected(path) for path in attacks},
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["memory_of_many", "buffers_of_many"])
def test_processes_that_take_too_much_together_are_ended_for_it(name):
    attack = load(next(path for path in ALL_ATTACKS if path.stem == name))
    source = f"{attack.SCALE}\nscale(1)"
    transcript = ran_in_a_sandbox(source, memory=2**29)
    assert transcript.over == "more memory than the 0.5 GiB that a submission may take"
    assert "ended its process" in transcript.cells[0]["error"]["message"]


#: Asks for memory that is counted as no process's, and prints what is given.
UNCOUNTED = """import ctypes, fcntl, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def shared_pages_of_zeros():
    with open("/dev/zero", "r+b", buffering=0) as zeros: mmap.mmap(zeros.fileno(), 4096, mmap.MAP_SHARED)
def larger_pipe(): fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 2**20)
def larger_buffer(): socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)
def semaphores():
    if libc.semget(0, 32000, 0o1600) < 0: raise OSError(ctypes.get_errno(), "")
for ask in (
    lambda: mmap.mmap(-1, 4096), lambda: mmap.mmap(-1, 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS),
    shared_pages_of_zeros, larger_pipe, larger_buffer, semaphores,
    lambda: socket.socket(socket.AF_ALG), lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
):
    try: ask(); print(ask.__name__, "is there")
    except OSError: pass
print("done")
"""  # noqa: E501


@pytest.mark.slow
def test_there_is_no_memory_that_belongs_to_no_process():
    """Anonymous shared pages, let go of by MADV_DONTNEED, took 3.5 GB of a machine
    behind a limit of 1 GiB."""
    assert printed_in_a_sandbox(UNCOUNTED) == "done\n"


#: Children each of which takes less than a process may; ``{child}`` says what becomes
#: of one that has ended.
BUSY_CHILDREN = """import os, signal, time
signal.signal(signal.SIGCHLD, signal.{handler})
def busy():
    if os.fork() == 0:
        while time.process_time() < 1: pass
        os._exit(0)
while True:
    try: busy(); busy(); os.wait()
    except (ChildProcessError, BlockingIOError): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "handler", ["SIG_DFL", "SIG_IGN"], ids=["waited for", "waited for by nobody"]
)
def test_processor_time_is_that_of_the_whole_tree(handler):
    """Forty busy children of one submission kept an honest one from being done in time,
    each below its own limit."""
    transcript = ran_in_a_sandbox(BUSY_CHILDREN.format(handler=handler), cpu_seconds=4)
    assert (
        transcript.over == "more processor time than the 4 s that a submission may take"
    )


@pytest.mark.slow
def test_students_processes_give_way():
    """To the grader and to referees: they have the processor first, and are not the
    first to go where memory ends."""
    with sandbox.Worker(sandbox.Limits()) as worker:
        pairs = [socket.socketpair() for _ in range(2)]
        for role, (_, there) in zip(("student", "referee"), pairs, strict=True):
            worker.start(role, [there])
        inside = psutil.Process(worker._own._process.pid).children(recursive=True)
        given = [
            (int(Path(f"/proc/{one.pid}/oom_score_adj").read_text()), one.nice())
            for one in inside
        ]
        for pair in pairs:
            for end in pair:
                end.close()
    # the student's, and the one that it descends from
    assert given.count((1000, 10)) == 2
    assert set(given) == {(0, 0), (1000, 10)}


@pytest.mark.parametrize(("device", "shares"), [("", False), ("GPU-1111", True)])
def test_with_a_device_alone_pages_of_no_file_are_shared(device, shares, monkeypatch):
    given = []
    monkeypatch.setattr(ways, "refuse_system_calls", lambda rules: given.extend(rules))
    ways.Namespaces().before_the_role({"device": device})
    assert ({"mmap"} <= {name for name, *_ in given}) == (not shares)
    assert {"fcntl", "madvise", "socket"} <= {name for name, *_ in given}


@pytest.mark.slow
def test_a_container_shuts_attackers_in_and_ends_with_the_command(tmp_path):
    try:
        sandbox.isolation("container")
    except NoIsolation as error:
        pytest.skip(f"no container starts on this machine: {error}")
    classroom = open_class(tmp_path / "course")
    classroom.submit("mini", "ada", answered(classroom))
    attacks = [path for path in ALL_ATTACKS if path.stem in TRIED]
    for path in attacks:
        hand_in(classroom, path)
    limits = sandbox.Limits(cell_seconds=3.0, total_seconds=60.0, memory=2**30)
    with sandbox.Warm("container", limits.memory) as warm:
        grade("mini", classroom.root, limits=limits, warm=warm)
    scores = classroom.scores_of_all("mini")
    assert scores == {
        "ada": POINTS | {"why": 0.0},
        **{path.stem: expected(path) for path in attacks},
    }
    inside = [
        p
        for p in psutil.process_iter(["cmdline"])
        if isolation.DOOR in (p.info["cmdline"] or [])
    ]
    _, left = psutil.wait_procs(inside, timeout=60)  # ended, and not yet gone
    assert left == []


def test_a_container_that_ends_at_once_is_not_waited_for(monkeypatch):
    class Ends(Container):
        def command(
            self,
            program: list[str],
            memory: int,
            door: str,
            device: Device | None = None,
        ) -> list[str]:
            return ["sh", "-c", "echo 'no cgroups here' >&2; exit 126"]

    monkeypatch.setattr(sandbox, "wall", lambda name: Ends())
    with (
        sandbox.Warm("container") as warm,
        refusal("The worker does not start: no cgroups here", NoIsolation),
    ):
        warm.fork(1)


class UnsafeInside(Bubblewrap):
    """The way of ``--unsafe``, in a sandbox that ends with the test whatever it
    leaves."""

    way = "unsafe"


@pytest.mark.slow
def test_who_forks_and_leaves_python_leaves_nobody_behind_without_namespaces(
    monkeypatch,
):
    """No kernel ends the tree there: the first process of it does, once the one that
    matters has ended."""
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
        # by now the worker itself is there
        execute(worker, visible_round([{**step, "source": "pass"}]), {})
        before = sandboxed.children(recursive=True)
        transcript = execute(worker, visible_round([step]), {})
        started = set(sandboxed.children(recursive=True)) - set(before)
        until = time.monotonic() + 60  # they are killed, and may not yet be gone
        while any(map(lives, started)) and time.monotonic() < until:
            time.sleep(0.01)
        left = [str(process) for process in started if lives(process)]
    # so nobody holds the pipe open
    assert "ended its process" in transcript.cells[3]["error"]["message"]
    assert left == []
