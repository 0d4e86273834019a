"""Tests that run submissions need a wall, and say so where there is none."""

from __future__ import annotations

import functools
import os

import pytest

from course_tools.grading.sandbox.sandbox import NoIsolation, isolation


def need_a_sandbox() -> None:
    """Skip a test where submissions cannot be shut in; on a CI machine they must be."""
    if why := _refused():
        (pytest.fail if "CI" in os.environ else pytest.skip)(
            f"no sandbox on this machine: {why}"
        )


@functools.cache
def _refused() -> str:
    try:
        isolation()
    except NoIsolation as error:
        return str(error)
    return ""
