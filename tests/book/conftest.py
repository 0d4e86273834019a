"""The book's site, and a browser to open it with."""

import sys

import pytest
from pages import address_of
from places import BOOK, ROOT

sys.path.insert(0, str(BOOK / "_ext"))


@pytest.fixture(scope="session")
def site():
    """The built site, brought up to date: quick when `make book` has run."""
    from course_tools.site.build import build

    return build(ROOT).parent


@pytest.fixture
def from_disk(one_page):
    """Where the page of a module is, whose `one_page` builds it. A browser allows less
    from a disk than from a server; `test_browser.py` opens the site from both."""
    root, name = one_page
    with address_of(root, "file") as found:
        return f"{found}/{name}"
