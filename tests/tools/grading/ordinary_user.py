"""Run a command as a user without rights, also where tests run as root and this Python
lies where root alone reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from classroom import REPOSITORY

NOBODY = 65534


def _closed(place: Path) -> Path | None:
    """The first folder on the way to a place that others may not enter."""
    return next(
        (
            folder
            for folder in reversed(place.parents)
            if not folder.stat().st_mode & 0o001
        ),
        None,
    )


def command(arguments: list[str]) -> list[str]:
    """Wrap a command: root first shows Python in a view of its own of the file system,
    then gives up being root."""
    if os.getuid() != 0:
        return arguments
    shown = ["bwrap", "--dev-bind", "/", "/", "--die-with-parent"]
    places = [Path(sys.base_prefix), Path(sys.prefix), REPOSITORY]
    closed = {folder: place for place in places if (folder := _closed(place))}
    for folder in closed:
        shown += ["--perms", "0755", "--tmpfs", str(folder)]
    for folder, place in closed.items():
        between = [
            parent for parent in reversed(place.parents) if folder in parent.parents
        ]
        shown += [
            item
            for parent in between
            for item in ("--perms", "0755", "--dir", str(parent))
        ]
        shown += ["--ro-bind", str(place), str(place)]
    return [
        *shown,
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--",
        *arguments,
    ]


def give(folder: Path) -> None:
    """Make a folder and all in it that user's; it must lie where others may enter."""
    if os.getuid() == 0:
        for place in (folder, *folder.rglob("*")):
            os.chown(place, NOBODY, NOBODY, follow_symlinks=False)


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command there as that user."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(REPOSITORY),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "JUPYTER_CONFIG_DIR": str(folder / ".jupyter"),
        "IPYTHONDIR": str(folder / ".ipython"),
        "JUPYTER_PREFER_ENV_PATH": "0",
    }
    return subprocess.run(
        command(arguments),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
