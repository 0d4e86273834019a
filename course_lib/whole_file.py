"""A file is written whole or not at all: whoever reads it meanwhile, or after a crash, never finds half of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["write_whole"]


def write_whole(path: Path, content: str | Callable[[Path], Any]) -> None:
    r"""Write a file under another name beside its place, and give it its own name when it is complete.

    Parameters
    ----------
    path
        The file, in a folder that is there. An earlier file of that name stays as it is until then, and if writing
        fails.
    content
        The text, written in UTF-8 with ends of lines as they are; or a function that writes to the path that it is
        given.

    Raises
    ------
    OSError
        If it cannot be written there.

    Notes
    -----
    A rename within a folder is one step for who reads it (POSIX). It is not flushed to the disk: a checkpoint, which
    has to survive a power cut, is written by :mod:`course_lib.checkpoint`.

    Chapter: wordpiece

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vocab.txt"
    >>> write_whole(path, "[PAD]\n")
    >>> path.read_text(encoding="utf-8"), [file.name for file in path.parent.iterdir()]
    ('[PAD]\n', ['vocab.txt'])
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        if isinstance(content, str):
            unfinished.write_text(content, encoding="utf-8", newline="\n")
        else:
            content(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
