"""A gradebook takes seconds to make, a copy of one no time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from classroom import Classroom
from nbgrader.api import Gradebook


@pytest.fixture(scope="session")
def empty_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course folder with a gradebook in which nothing is."""
    root = Classroom.create(tmp_path_factory.mktemp("empty") / "course").root
    Gradebook(f"sqlite:///{root / 'gradebook.db'}").close()
    return root


@pytest.fixture
def course(empty_course: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(empty_course, tmp_path / "course")
