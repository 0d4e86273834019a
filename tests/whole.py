"""Whether a test takes all of its cases, or one representative of each kind."""

import os
from typing import TypeVar

import pytest

#: `make test-grading` takes all; `make test` what shows each kind of fault once.
WHOLE = os.environ.get("COURSE_TESTS") == "whole"
Case = TypeVar("Case")

#: A test that `make test` leaves out, because others show each of its parts.
whole_only = pytest.mark.skipif(not WHOLE, reason="it takes long: make test-grading")


def first_or_all(*cases: Case) -> tuple[Case, ...]:
    """The first case stands for all in `make test`."""
    return cases if WHOLE else cases[:1]
