"""GPUs for an assignment that asks for one: as many workers as devices, and each sees
its own alone.

An assignment says so in its source's header, ``course: device: gpu``, or ``gpu or cpu``
where a machine without a GPU does as well. All others run on the CPU, wherever they are
graded. A worker's device is in its wall, not only in its environment: no node of
another one is there. Nothing asks for CUDA before a worker forks a submission, since a
process that has asked cannot be forked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from course_tools.grading.run.class_run import Elsewhere
from course_tools.grading.run.execute import Run
from course_tools.grading.run.flaky import run_settled
from course_tools.grading.sandbox.devices import Device, devices
from course_tools.grading.sandbox.sandbox import Limits, NoIsolation, Warm, Worker

#: What an assignment may say: it needs a GPU, or takes one.
NEEDS, TAKES = "gpu", "gpu or cpu"


class OneWorkerADevice:
    """A warm process behind a wall of its own for each device: what runs submissions in
    the place of one for all."""

    def __init__(self, isolation: str, found: list[Device], memory: int) -> None:
        self.warms: list[Warm] = [Warm(isolation, memory, device) for device in found]
        self._workers = ExitStack()

    def hands(
        self, files: dict[str, bytes], limits: Limits, chancy: Mapping[str, float]
    ) -> list[Run]:
        """Give a function for each device that runs one round of a submission there."""
        workers = [
            self._workers.enter_context(Worker(limits, warm, warm.fork(1)[0]))
            for warm in self.warms
        ]
        return [partial(run_settled, worker, files, chancy) for worker in workers]

    def close(self) -> None:
        """End all that runs on the devices."""
        self._workers.close()
        for warm in self.warms:
            warm.close()


@contextmanager
def on_what_it_asks_for(
    wish: str, warm: Warm | Elsewhere, memory: int
) -> Iterator[Warm | Elsewhere]:
    """Run an assignment's submissions on GPUs, if it asks for them."""
    if wish not in ("", NEEDS, TAKES):
        raise NoIsolation(
            f"The assignment's header says device: {wish!r}; write {NEEDS!r}, or"
            f" {TAKES!r}, or nothing."
        )
    found = devices() if wish and isinstance(warm, Warm) else []
    if wish == NEEDS and not found:
        where = (
            "on this machine, by its own torch"
            if isinstance(warm, Warm)
            else "through Dask"
        )
        raise NoIsolation(
            f"The assignment needs a GPU, and none is found {where}. Grade on a machine"
            " where nvidia-smi lists one and torch.cuda.is_available() is true,"
            f" without --dask; or, if a CPU does as well, write device: {TAKES} into"
            " the header of its source and release it again."
        )
    if not found or not isinstance(warm, Warm):
        yield warm
        return
    on_devices = OneWorkerADevice(warm.name, found, memory)
    try:
        yield on_devices
    finally:
        on_devices.close()
