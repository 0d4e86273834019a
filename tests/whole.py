"""Whether a test takes all of its cases, or one representative of each kind."""

import os
from typing import TypeVar

import pytest

#: `make test` takes what shows each kind of fault once, `make test-grading` ("rest")
#: all that it leaves out, `.ci/run` both ("whole"); the workflow's jobs, which share a
#: day's work among machines, take every known answer as well ("every").
TESTS = os.environ.get("COURSE_TESTS", "")
WHOLE = TESTS in ("whole", "rest", "every")
EVERY = TESTS == "every"
Case = TypeVar("Case")

#: A test that `make test` leaves out, because others show each of its parts.
whole_only = pytest.mark.whole_only


def first_or_all(*cases: Case) -> tuple[Case, ...]:
    """The first case stands for all in `make test`."""
    return cases if WHOLE else cases[:1]


def some(*cases: Case) -> tuple[Case, ...]:
    """Of many of one kind: the first in `make test`, every third in `make
    test-grading`."""
    return cases if EVERY else cases[::3] if WHOLE else cases[:1]


def leave_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Skip what takes long in `make test`; give what `make test-grading` need not
    repeat: tests that are made in `make test` as they are."""
    skip = pytest.mark.skip(reason="it takes long: make test-grading")
    repeated = []
    for item in items:
        long = item.get_closest_marker("whole_only") is not None
        if long and not WHOLE:
            item.add_marker(skip)
        names = vars(getattr(item, "module", None) or pytest).keys()
        if not long and not names & {"WHOLE", "first_or_all", "some", "run_known"}:
            repeated.append(item)
    return repeated if TESTS == "rest" else []
