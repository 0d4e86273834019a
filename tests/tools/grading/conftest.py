"""A course folder to grade in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from classroom import Classroom


@pytest.fixture(scope="session")
def empty_course(
    tmp_path_factory: pytest.TempPathFactory, empty_gradebook: Path
) -> Path:
    """A course folder with a gradebook in which nothing is."""
    root = Classroom.create(tmp_path_factory.mktemp("empty") / "course").root
    shutil.copy(empty_gradebook, root)
    return root


@pytest.fixture
def course(empty_course: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(empty_course, tmp_path / "course")
