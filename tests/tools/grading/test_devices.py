"""An assignment that asks for a GPU: one worker a device, and each sees its own alone.

No test needs a GPU: the list of devices and their files are stand-ins.
"""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from expect import refusal
from walled import need_a_sandbox

from course_tools.grading.run import class_run
from course_tools.grading.run.assignment import Assignment
from course_tools.grading.run.class_run import OneWorkerADevice, on_what_it_asks_for
from course_tools.grading.run.execute import visible_round
from course_tools.grading.sandbox import devices, isolation
from course_tools.grading.sandbox.devices import Device
from course_tools.grading.sandbox.isolation import Bubblewrap, Container
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Warm

FIRST = Device("GPU-1111", ("/dev/nvidia1", "/dev/nvidiactl"))
SECOND = Device("GPU-0000", ("/dev/nvidia0", "/dev/nvidiactl"))


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """One with two GPUs, whose places on the bus and whose files are in different
    orders."""
    for bus, minor in (("0000:1b:00.0", 1), ("0000:a4:00.0", 0)):
        place = tmp_path / "proc/driver/nvidia/gpus" / bus
        place.mkdir(parents=True)
        (place / "information").write_text(
            f"Model: \t\t NVIDIA H200\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n"
        )
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    program = tmp_path / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\necho 'GPU-1111, 00000000:1B:00.0'; echo 'GPU-0000,"
        " 00000000:A4:00.0'\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(devices.shutil, "which", lambda name: str(program))
    monkeypatch.setattr(devices, "COUNT", "print(2)")
    return tmp_path


def test_each_device_has_the_file_that_the_driver_says(machine):
    # a device's number on the bus is not that of its file: see the README of NVIDIA's
    # driver, on /proc
    assert devices.devices(machine) == [FIRST, SECOND]


def test_a_torch_that_cannot_use_them_has_none(machine, monkeypatch):
    monkeypatch.setattr(devices, "COUNT", "print(0)")
    assert devices.devices(machine) == []


def test_a_machine_without_the_driver_has_none(monkeypatch):
    monkeypatch.setattr(devices.shutil, "which", lambda name: None)
    assert devices.devices() == []


@pytest.fixture
def warm(monkeypatch):
    """One that is never started."""
    monkeypatch.setattr(Warm, "_begin", lambda self, memory: None)
    return Warm("unsafe")


class OnOthers:
    """A cluster's place."""

    def hands(self, files, limits, chancy):
        return []


def test_who_asks_for_nothing_gets_no_device(warm, monkeypatch):
    monkeypatch.setattr(class_run, "devices", lambda: pytest.fail("nobody asked"))
    with on_what_it_asks_for("", warm, 2**30) as runs:
        assert runs is warm
    line = Bubblewrap().command(["program"], 2**30, "")
    assert "--dev-bind" not in line
    assert line[line.index("CUDA_VISIBLE_DEVICES") + 1] == ""


def test_without_a_device_the_grader_says_what_to_do(warm, monkeypatch):
    monkeypatch.setattr(class_run, "devices", list)
    with refusal(
        r"needs a GPU, and none is found on this machine.*nvidia-smi.*write device:"
        r" gpu or",
        NoIsolation,
    ):
        on_what_it_asks_for("gpu", warm, 2**30).__enter__()
    with refusal("none is found through Dask", NoIsolation):
        on_what_it_asks_for("gpu", OnOthers(), 2**30).__enter__()
    with refusal(
        "says device: 'tpu'; write 'gpu', or 'gpu or cpu', or nothing", NoIsolation
    ):
        on_what_it_asks_for("tpu", warm, 2**30).__enter__()


def test_who_takes_a_cpu_too_gets_it(warm, monkeypatch):
    monkeypatch.setattr(class_run, "devices", list)
    for runs_on_cpu in (warm, OnOthers()):
        with on_what_it_asks_for("gpu or cpu", runs_on_cpu, 2**30) as runs:
            assert runs is runs_on_cpu


def test_each_device_has_a_warm_process_of_its_own(warm, monkeypatch):
    monkeypatch.setattr(class_run, "devices", lambda: [FIRST, SECOND])
    for wish in ("gpu", "gpu or cpu"):
        with on_what_it_asks_for(wish, warm, 2**30) as runs:
            assert isinstance(runs, OneWorkerADevice)
            assert [one.device for one in runs.warms] == [FIRST, SECOND]
            assert {one.name for one in runs.warms} == {"unsafe"}


def test_a_wall_has_its_own_device_and_no_other(monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda name: f"/usr/bin/{name}")
    line = Bubblewrap().command(["program"], 2**30, "", FIRST)
    binds = [
        line[at + 1 : at + 3] for at, word in enumerate(line) if word == "--dev-bind"
    ]
    assert binds == [
        ["/dev/nvidia1", "/dev/nvidia1"],
        ["/dev/nvidiactl", "/dev/nvidiactl"],
    ]
    assert line.index("--dev-bind") > line.index("--dev")  # which covers what was there
    words = Container().command(["program"], 2**30, "/door", SECOND)
    assert [word for word in words if "/dev/" in word] == [
        "--device=/dev/nvidia0",
        "--device=/dev/nvidiactl",
    ]


def test_the_header_of_the_source_says_what_it_asks_for():
    asks = nbformat.v4.new_notebook(metadata={"course": {"device": "gpu or cpu"}})
    silent = nbformat.v4.new_notebook()
    assert Assignment("a", asks, silent, {}, "").device == "gpu or cpu"
    assert Assignment("a", silent, silent, {}, "").device == ""


#: Raises where anybody asks for CUDA while the warm process gets ready; it is then
#: forked.
NOBODY_ASKS = """
import torch
def asked(*_): raise SystemExit("CUDA was asked for")
torch.cuda.is_available = torch.cuda.device_count = torch.cuda._lazy_init = asked
import socket, sys
from course_tools.grading.sandbox import worker
ours, theirs = socket.socketpair()
worker.connected = lambda where: theirs
worker.cheap_forks = lambda: print("ready to fork", torch.cuda.is_initialized())
socket.send_fds(ours, [b"many"], [])
ours.shutdown(socket.SHUT_WR)
sys.argv = ["worker", "", "unsafe"]
worker.main()
"""


@pytest.mark.slow
def test_nobody_asks_for_cuda_before_the_fork():
    # "Cannot re-initialize CUDA in forked subprocess":
    # https://pytorch.org/docs/stable/notes/multiprocessing.html
    done = subprocess.run(
        [sys.executable, "-c", NOBODY_ASKS], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("ready to fork False\n", 0), done.stderr


#: Character devices that many machines have and bubblewrap leaves out, as GPUs.
STAND_INS = (
    "/dev/autofs",
    "/dev/kmsg",
    "/dev/fuse",
    "/dev/vsock",
    "/dev/kvm",
    "/dev/loop-control",
)


@pytest.mark.slow
def test_two_workers_share_no_device():
    nodes = [node for node in STAND_INS if Path(node).exists()][:2]
    if len(nodes) < 2:
        pytest.skip("no two device files on this machine that could stand for GPUs")
    need_a_sandbox()
    source = (
        f"import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'], [n for n in {nodes} if"
        " os.path.exists(n)])"
    )
    step = {"kind": "student", "index": 3, "source": source, "names": []}
    found = [Device("GPU-a", (nodes[0],)), Device("GPU-b", (nodes[1],))]
    on_devices = OneWorkerADevice("bubblewrap", found, Limits.memory)
    try:
        told = [
            run(visible_round([step])).cells[3]["printed"]
            for run in on_devices.hands({}, Limits(), {})
        ]
    finally:
        on_devices.close()
    assert told == [f"GPU-a ['{nodes[0]}']\n", f"GPU-b ['{nodes[1]}']\n"]
