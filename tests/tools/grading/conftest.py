"""A course folder to grade in."""

from __future__ import annotations

import shutil

import pytest
from classroom import Classroom


@pytest.fixture(scope="session")
def empty_course(tmp_path_factory, empty_gradebook):
    """A course folder with a gradebook in which nothing is."""
    root = Classroom.create(tmp_path_factory.mktemp("empty") / "course").root
    shutil.copy(empty_gradebook, root)
    return root


@pytest.fixture
def course(empty_course, tmp_path):
    """A copy of it."""
    return shutil.copytree(empty_course, tmp_path / "course")
