"""Processes that train side by side: each begins with what a training imports already in place.

A process forked from this one would inherit torch's threads in the middle of their work, and a fresh interpreter
imports for five seconds. A fork server does so once, without threads, and every process is forked from it. Of
environment variables it knows those that were set when the first pool was started.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["side_by_side"]

#: What takes long to import: a process's first optimizer imports the second.
IMPORTED_ONCE = ("torch", "torch._dynamo", "course_lib.data", "course_lib.metrics", "course_lib.training")


def side_by_side(processes: int, begin: Callable[..., object], *given: Any) -> ProcessPoolExecutor:
    """Start a pool of processes that know nothing of this one but what they are given.

    Parameters
    ----------
    processes
        How many.
    begin, given
        A function of a module, and its arguments: what each process calls first.

    Returns
    -------
    concurrent.futures.ProcessPoolExecutor
        To be used as a context.

    Raises
    ------
    ValueError
        If `processes` is below 1.

    Examples
    --------
    >>> import torch
    >>> with side_by_side(2, torch.set_num_threads, 1) as pool:
    ...     list(pool.map(abs, [-3, 4]))
    [3, 4]
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():  # Windows
        return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), begin, given)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED_ONCE))
    return ProcessPoolExecutor(processes, context, begin, given)
