"""A log in which each line seals the ones before it: what is edited, taken out or put in later shows.

The last field of a line is the SHA-256 of the line before it (of its seal) and of itself. Who can write the file can
write a new one with new seals; so `course replay` prints the last seal, and one that you noted elsewhere binds the log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEAL = re.compile(rb', "chain": "([0-9a-f]{64})"\}$')


def append(log: Path, entry: dict[str, Any]) -> None:
    """Add a line, and wait until it is on the disk; a line that a crash cut off is closed first."""
    with log.open("a+b") as file:
        before = ""
        for line in _backwards(log):
            if _whole(line):
                before = seal(line)
                break
        body = json.dumps(entry, ensure_ascii=False).encode()
        line = body[:-1] + b', "chain": "' + _sealed(before, body).encode() + b'"}\n'
        if file.tell() and not _ends_with_newline(log):
            line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def seal(line: bytes) -> str:
    """The seal of a line; of one from before there were seals, its own SHA-256."""
    found = SEAL.search(line)
    return found[1].decode() if found else hashlib.sha256(line).hexdigest()


def broken(log: Path) -> tuple[list[str], str]:
    """Check a log.

    Returns:
        In words, each place where the chain breaks; and the last seal, "" if there is no line.
    """
    faults, before, sealed = [], "", False
    for number, line in enumerate(log.read_bytes().split(b"\n"), start=1) if log.exists() else []:
        if not _whole(line):
            continue  # nothing, or cut off by a crash: a whole line that was spoilt breaks the chain at the next one
        found = SEAL.search(line)
        if found is not None:
            sealed = True
            if found[1].decode() != _sealed(before, line[: found.start()] + b"}"):
                faults.append(
                    f"Line {number} of {log.name} is not what was written, or not what followed the line before."
                )
        elif sealed:
            faults.append(f"Line {number} of {log.name} has no seal, though lines before it have one.")
        before = seal(line)
    return faults, before


def lines(log: Path) -> Iterator[dict[str, Any]]:
    """Read the whole lines of a log, first to last; one that a crash cut off is left out."""
    for line in log.read_bytes().split(b"\n") if log.exists() else []:
        if _whole(line):
            yield json.loads(line)


def _sealed(before: str, body: bytes) -> str:
    return hashlib.sha256(before.encode() + body).hexdigest()


def _whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _backwards(log: Path) -> Iterator[bytes]:
    """The lines of a file, last to first, read in blocks: a log has a line for each mark of a term."""
    with log.open("rb") as file:
        place, rest = file.seek(0, os.SEEK_END), b""
        while place:
            size = min(place, 2**16)
            place -= size
            file.seek(place)
            parts = (file.read(size) + rest).split(b"\n")
            rest = parts[0]
            yield from reversed(parts[1:])
        yield rest


def _ends_with_newline(log: Path) -> bool:
    with log.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
