"""The book's site, and a browser to open it with."""

import sys

import pytest
from places import BOOK, ROOT

sys.path.insert(0, str(BOOK / "_ext"))


@pytest.fixture(scope="session")
def site():
    """The built site, brought up to date: quick when `make book` has run."""
    from course_tools.site.build import build

    return build(ROOT).parent
