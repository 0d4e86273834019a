"""Look at what all processes of a submission take together, some times a second.

The kernel's own limits are for each process. The worker, which knows the first process of each tree, adds up the rest:
memory that several processes share counts once (proportional set size), as long as they let themselves be asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: Seconds between two looks; what is taken and given back between them is not seen.
SECONDS = 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")


def tree_of(first: int) -> Iterator[int]:
    """Yield a process and all that descend from it; one that ends meanwhile is left out."""
    waiting, seen = [first], set()
    while waiting:
        process = waiting.pop()
        if process in seen:
            continue
        seen.add(process)
        yield process
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                waiting += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue


def resident(process: int) -> int:
    """Bytes of a process in memory, shared ones too; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def share(process: int) -> int:
    """Bytes of a process in memory, those that n processes share counted as one n-th; all, where it hides them."""
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resident(process)


def memory_of(first: int, enough: int) -> int:
    """Bytes that a tree of processes takes; exact only above ``enough``, as counting what is shared takes time."""
    processes = list(tree_of(first))
    most = sum(map(resident, processes))
    return most if most <= enough else sum(map(share, processes))
