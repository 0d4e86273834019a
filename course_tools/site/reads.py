"""Note in a page's kernel, before the first cell, which files it reads."""

import os
import sys
from typing import Any

#: The environment's name for the file that the paths are written to, one a line.
COURSE_READS = "COURSE_READS"
#: What a kernel does first.
START = f"import {__name__}; {__name__}.note_reads(); del course_tools"


def note_reads() -> None:
    """From now on, note each file that this process opens to read."""
    notes = open(os.environ[COURSE_READS], "a", encoding="utf-8", buffering=1)  # noqa: SIM115
    noted = set()

    def note(event: str, about: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(about[0], str):
            return
        path, _, flags = about
        if not flags & (os.O_WRONLY | os.O_RDWR) and path not in noted:
            noted.add(path)
            notes.write(f"{os.path.abspath(path)}\n")

    sys.addaudithook(note)
