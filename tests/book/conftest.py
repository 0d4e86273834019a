"""The book's site, and a browser to open it with."""

import sys

import pytest
from pages import address_of
from places import BOOK, ROOT
from whole import first_or_all

sys.path.insert(0, str(BOOK / "_ext"))


@pytest.fixture(scope="session")
def site():
    """The built site, brought up to date: quick when `make book` has run."""
    from course_tools.site.build import build

    return build(ROOT).parent


@pytest.fixture(params=first_or_all("file", "http"))
def address(request, one_page):
    """Where the page of a module is, whose `one_page` builds it: on disk, and served by
    the loopback interface."""
    root, name = one_page
    with address_of(root, request.param) as found:
        yield f"{found}/{name}"


@pytest.fixture
def from_disk(one_page):
    root, name = one_page
    with address_of(root, "file") as found:
        return f"{found}/{name}"
