"""A platform's zip or folder as a list of plain files: trust no name, no size.

Nothing is unpacked to the disk. A file is read when somebody asks for it, and never
more of it than `LARGEST`, so an archive that unpacks too large costs what a notebook
costs. Names are taken apart and never used as a place to write.

nbgrader's own ``zip_collect`` unpacks with ``shutil.unpack_archive``: no limit, links
are made, and what it cannot place it skips with a line in a log. So its extractor is
not used here; its patterns for names are (``--pattern``).
"""

import contextlib
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from course_tools.grading.check.check import CannotCheck
from course_tools.grading.collect.intake import LARGEST, plain_bytes

# in an archive of a student's own: a whole download is as large as its class
MOST_FILES = 50_000
#: What systems leave behind; nobody handed it in.
LEFT_BY_SYSTEMS = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}
LEFT_BY_SYSTEMS |= {".ipynb_checkpoints"}
#: What reading a zip raises that is broken, or not as Python can read it.
BROKEN = (zipfile.BadZipFile, OSError, NotImplementedError, ValueError)


class CannotUnpack(Exception):
    """A file or an archive that is refused; the text says why."""


@dataclass(frozen=True)
class File:
    """A plain file of a download."""

    place: PurePosixPath  # where it lies there
    read: Callable[[], bytes]  # brings its bytes, or raises `CannotUnpack`


def contents(download: Path) -> tuple[list[File], list[str]]:
    """List the files of a download."""
    if download.is_dir():
        return _of_folder(download)
    if not download.exists():
        raise CannotUnpack(f"There is no {download}.")
    if not zipfile.is_zipfile(download):
        neither = f"{download} is neither a folder nor a zip file."
        raise CannotUnpack(f"{neither} Unpack it, and name the folder.")
    try:
        return of_zip(zipfile.ZipFile(download))
    except BROKEN as error:
        raise CannotUnpack(f"{download} cannot be read: {error}.") from error


def of_zip(archive: zipfile.ZipFile) -> tuple[list[File], list[str]]:
    """List the files of a zip that is open; as `contents`."""
    files: list[File] = []
    refused: list[str] = []
    for entry in archive.infolist():
        name = _name_of(entry)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        place = PurePosixPath(name)
        if entry.is_dir() or name.endswith("/") or _left_by_system(place):
            continue
        leads_out = re.match(r"/|[A-Za-z]:", name) or "\0" in name or not place.parts
        why = ""
        if leads_out or ".." in place.parts:
            why = "its name leads out of the archive"
        elif kind not in (0, stat.S_IFREG):
            why = "it is a link or a device, not a file"
        elif entry.flag_bits & 1:
            why = "it is locked with a password"
        if why:
            refused.append(f"{name} is refused: {why}.")
        else:
            files.append(File(place, partial(_from_zip, archive, entry)))
    return sorted(files, key=lambda file: file.place), refused


def inner_zip(data: bytes) -> tuple[list[File], list[str]]:
    """List the files of a zip that a student handed in; zips in it stay closed."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except BROKEN as error:
        raise CannotUnpack(f"it cannot be read: {error}") from error
    if (count := len(archive.infolist())) > MOST_FILES:
        most = f"more than {MOST_FILES} are not read"
        raise CannotUnpack(f"it holds {count} files; {most}")
    return of_zip(archive)


def _name_of(entry: zipfile.ZipInfo) -> str:
    """The name as it was meant, in UTF-8 and with slashes."""
    name = entry.filename
    if not entry.flag_bits & 0x800:
        with contextlib.suppress(UnicodeEncodeError, UnicodeDecodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _from_zip(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(entry) as file:
            data = file.read(LARGEST + 1)
    except (*BROKEN, zlib.error, EOFError, RuntimeError) as error:
        raise CannotUnpack(f"it cannot be unpacked: {error}") from error
    if len(data) > LARGEST:
        raise CannotUnpack(f"it unpacks to more than {LARGEST // 2**20} MiB")
    return data


def _of_folder(folder: Path) -> tuple[list[File], list[str]]:
    files: list[File] = []
    refused: list[str] = []
    waiting = [folder]
    # os.walk calls itself for each level, and a student's folder can have more levels
    # than Python takes
    while waiting:
        here = waiting.pop()
        try:
            entries = list(os.scandir(here))
        except OSError as error:
            why = f"it cannot be opened ({error.strerror})"
            refused.append(f"{here.relative_to(folder)} is refused: {why}.")
            continue
        for entry in entries:
            path = here / entry.name
            place = PurePosixPath(path.relative_to(folder).as_posix())
            if _left_by_system(place):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif entry.is_file(follow_symlinks=False):
                files.append(File(place, partial(_from_folder, path)))
            else:
                why = "it is a link or a device, not a file"
                refused.append(f"{place} is refused: {why}.")
    return sorted(files, key=lambda file: file.place), sorted(refused)


def _from_folder(path: Path) -> bytes:
    try:
        return plain_bytes(path)
    except CannotCheck as error:
        raise CannotUnpack(str(error)) from error


def _left_by_system(place: PurePosixPath) -> bool:
    return any(part in LEFT_BY_SYSTEMS or part.startswith("._") for part in place.parts)
