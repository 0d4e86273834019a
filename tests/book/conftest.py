"""The book's site, and a browser to open it with."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import PATIENCE
from places import BOOK, ROOT

sys.path.insert(0, str(BOOK / "_ext"))

#: Chromium in a container, as root, and silent: it must not look anything up by itself.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site, brought up to date: quick when `make book` has run."""
    from course_lib.site import build

    return build(ROOT).parent


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Headless Chromium. On a CI machine it must be there; elsewhere its tests skip and say so."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        message = "no Chromium found; type: sudo make programs"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS, timeout=PATIENCE)
        yield chromium
        chromium.close()
