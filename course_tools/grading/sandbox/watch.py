"""Look at what all processes of a submission take together, some times a second.

The kernel's own limits are for each process. The worker, which knows the first process
of each tree, adds up the rest: memory that several processes share counts once
(proportional set size), as long as they let themselves be asked, and a socket or pipe
as what the kernel may hold in it, since that is in no process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds between two looks; what is taken and given back between them is not seen.
SECONDS = 0.1
PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
#: Bytes that the kernel holds at most, where nobody asked it for more:
#: net.core.wmem_default, and 16 pages.
BUFFERS = {"socket": 212_992, "pipe": 16 * PAGE}


def tree_of(first: int) -> Iterator[int]:
    """Yield a process and all that descend from it; one that ends meanwhile is left
    out."""
    waiting, seen = [first], set()
    while waiting:
        process = waiting.pop()
        if process in seen:
            continue
        seen.add(process)
        yield process
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                waiting += map(
                    int,
                    Path(f"/proc/{process}/task/{task}/children").read_text().split(),
                )
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue


def resident(process: int) -> int:
    """Bytes of a process in memory, shared ones too; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def share(process: int) -> int:
    """Bytes of a process in memory, those that n processes share counted as one n-th;
    all, where it hides them."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resident(process)


def buffers(processes: Iterable[int]) -> int:
    """Bytes that sockets and pipes hold if they are full; one that several processes
    have open counts once."""
    found: set[str] = set()
    for process in processes:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{process}/fd") as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    found.add(os.readlink(file.path))
    return sum(BUFFERS.get(name.partition(":")[0], 0) for name in found)


def memory_of(first: int, enough: int) -> int:
    """Bytes that a tree of processes takes; exact only above ``enough``, as counting
    what is shared takes time."""
    processes = list(tree_of(first))
    held = buffers(processes)
    most = held + sum(map(resident, processes))
    return most if most <= enough else held + sum(map(share, processes))


@dataclass
class ProcessorTime:
    """Adds up, look by look, the processor time of a tree of processes."""

    ended: int = 0
    seen: dict[tuple[int, str], int] = field(default_factory=dict)

    def seconds(self, first: int) -> float:
        """Look, and say what the tree has taken so far."""
        now, waited_for = dict[tuple[int, str], int](), 0
        for process in tree_of(first):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                words = (
                    Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                )
                now[process, words[19]] = int(words[11]) + int(
                    words[12]
                )  # the same number may be given twice
                waited_for += int(words[13]) + int(words[14])
        self.ended += sum(
            time for process, time in self.seen.items() if process not in now
        )
        self.seen = now
        return (sum(now.values()) + max(self.ended, waited_for)) / TICKS
