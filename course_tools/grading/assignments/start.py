"""`course start`: a student's own copies of assignments, in JupyterLab."""

import os
import shutil
import sys
from pathlib import Path

from course_lib.files import EXERCISES


class CannotStart(Exception):
    """There is nothing to open, or nothing to open it with; the text says why."""


def copy_assignments(folder: Path, released: Path = EXERCISES) -> list[Path]:
    """Copy released notebooks, and the files beside them, to a student's folder."""
    if not released.is_dir():
        raise CannotStart(
            f"There are no released assignments in {released}. Install course_lib"
            " again."
        )
    if folder.resolve() == released.resolve():
        raise CannotStart(
            f"{folder} holds the assignments as they were released. Name another folder"
            " for your copies."
        )
    copied = []
    for source in sorted(path for path in released.glob("*/*") if path.is_file()):
        target = folder / source.relative_to(released)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            copied.append(target)
    return copied


def open_jupyter(folder: Path) -> None:
    """Run JupyterLab in a folder, with `course` a command in its terminals."""
    try:
        from jupyterlab.labapp import main
    except ImportError as error:
        raise CannotStart(
            'JupyterLab is missing. Run: python -m pip install "course_lib[student]"'
        ) from error
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    )
    main([str(folder), *as_root()])


def as_root() -> list[str]:
    """What JupyterLab must be told before it runs as root, as in containers."""
    return ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
