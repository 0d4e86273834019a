"""One run at a time in a course folder: whoever writes marks holds a lock.

Two runs at once would grade everybody twice and write each other's pages. The lock is
the kernel's (``flock``), so it ends with the process, however that ends. The file
itself says who holds it, and stays.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from course_tools.grading.shown import shown

LOCK = ".grading.lock"


class AnotherRun(Exception):
    """Somebody else writes marks here, or there are no locks; the text says more."""


@contextmanager
def only_run(root: Path, command: str) -> Iterator[None]:
    """Hold the lock of a course folder."""
    try:
        import fcntl  # not on Windows, where students' commands run all the same
    except ImportError as error:
        raise AnotherRun(
            "This system has no file locks (fcntl): grade on Linux, on Windows in WSL."
        ) from error
    place = root.resolve() / LOCK
    with place.open("a+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            who = shown(file.read(500)) or "it has just begun"
            raise AnotherRun(
                f"Another run is going on in {place.parent}: {who}. Wait until it is"
                " over, and start this again: work that is graded is not graded twice."
            ) from error
        file.truncate(0)
        where = f"process {os.getpid()} on {socket.gethostname()}"
        file.write(f"{command}, {where}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        file.flush()
        yield
