"""Where the repository lies and what is in it: shared by the tests of the house."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "course_lib"

#: What a student reads, what a chapter runs, what the team operates.
PACKAGES = ("course_lib", "course_lab", "course_tools")


def tracked_files() -> list[Path]:
    """Return the files under version control, or skip where there is no repository to
    ask."""
    if not (ROOT / ".git").exists():
        pytest.skip(
            "not a git checkout: nothing says which files are part of the course"
        )
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [
        ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()
    ]


def library_modules() -> list[Path]:
    """Return the Python files of the three packages, in alphabetical order."""
    return sorted(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a file of course_lib, e.g.
    course_lib.data.translation."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def relative(path: Path) -> str:
    """Return a path as the repository names it."""
    return str(path.relative_to(ROOT))
