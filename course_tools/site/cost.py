"""What executing a page costs: processor time of all its processes, and memory."""

import sys
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class ChapterCost:
    """What a page has cost: processor time in seconds, largest memory in GiB."""

    cpu_seconds: float
    peak_memory_gib: float


def chapter_cost() -> ChapterCost:
    """Measure the process that runs a chapter, and all that it has started."""
    process = psutil.Process()
    peak = _peak_bytes(process.memory_info())
    return ChapterCost(
        cpu_seconds=processor_seconds(process.pid), peak_memory_gib=peak / 2**30
    )


def processor_seconds(pid: int) -> float:
    """Add up the processor time of a process and of all below it."""
    total = 0.0
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return total
    for member in family:
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:  # it ended just now, and its parent counts it
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _peak_bytes(memory: object) -> int:
    if sys.platform == "win32":
        return int(memory.peak_wset)  # type: ignore[attr-defined]
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts in KiB
