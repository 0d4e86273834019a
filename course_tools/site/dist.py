"""What a release hands out, in `_build/dist`: the site and the sources as archives, the
book and the slides as PDF, the notebooks, and checksums.

The sources come with the pages as they were executed, so that who unpacks them builds
the site without running a cell. An archive has no times of its files: the same site
gives the same bytes. What this module does not do: it builds no site.
"""

import hashlib
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_lib.files import write_whole
from course_tools.site.book_pdf import print_book
from course_tools.site.build import SiteError
from course_tools.site.decks import FOLDER, decks

NAME = "from-attention-to-bert"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: What a build has executed: pages, and the cards of the data.
EXECUTED = ("_build/.jupyter_cache", "book/_generated/data")
CARDS_KEY = "book/_generated/.data-cards"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that an archive can name


def distribute(root: Path) -> Iterator[str]:
    """Write all files anew, and say of each how large it is and how long it took."""
    site, folder = root / "_build" / "html", root / "_build" / "dist"
    if not (root / "_build" / ".whole").is_file():
        raise SiteError("there is no whole site to hand out; run: make dist")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def archive(kind: str, files: dict[str, Path]) -> Path:
        return zipped(folder / f"{NAME}-{kind}.zip", f"{NAME}-{kind}", files)

    yield from timed(lambda: archive("site", inside(site)))
    yield from timed(lambda: archive("sources", sources(root)))
    notebooks = {
        name: path
        for name, path in inside(site).items()
        if name.startswith(("notebooks/", "exercises/"))
    }
    yield from timed(lambda: archive("notebooks", notebooks))
    with chromium() as browser:
        printed = folder / "slides"
        printed.mkdir()

        def slides() -> Path:
            for path in decks(root):
                print_deck(browser, site, path.stem, printed)
            return archive("slides", inside(printed))

        yield from timed(slides)
        shutil.rmtree(printed)
        book = folder / f"{NAME}.pdf"
        pages = 0

        def whole_book() -> Path:
            nonlocal pages
            pages = print_book(root, browser, book)
            return book

        yield from timed(whole_book)
        yield f"{pages} pages"
    write_whole(folder / "SHA256SUMS", checksums(folder))


def timed(make: Any) -> Iterator[str]:
    """Make a file, and tell its size and the seconds."""
    begun = time.monotonic()
    made: Path = make()
    size, seconds = made.stat().st_size / 2**20, time.monotonic() - begun
    yield f"{made.name:<40}{size:>8.1f} MiB{seconds:>7.0f} s"


def inside(folder: Path) -> dict[str, Path]:
    """List the files of a folder by their names in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in files}


def sources(root: Path) -> dict[str, Path]:
    """List what is under version control, and what of the build was executed."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    for folder in EXECUTED:
        names += [f"{folder}/{name}" for name in inside(root / folder)]
    return {name: root / name for name in sorted([*names, CARDS_KEY])}


def zipped(target: Path, top: str, files: dict[str, Path]) -> Path:
    """Write an archive with all files in one folder."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(f"{top}/{name}", EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            archive.writestr(entry, path.read_bytes())
    return target


@contextmanager
def chromium() -> Iterator[Any]:
    """Open the system's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SiteError("no Chromium to print with; type: sudo make programs")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


def print_deck(browser: Any, site: Path, name: str, folder: Path) -> None:
    """Print a deck, with a page for each step and each answer."""
    page = browser.new_page()
    page.goto((site / FOLDER / f"{name}.html").as_uri() + "?print-pdf")
    page.wait_for_selector("html[data-ready]", state="attached", timeout=0)
    page.pdf(
        path=folder / f"{name}.pdf",
        prefer_css_page_size=True,
        print_background=True,
        outline=True,
        tagged=True,
    )
    page.close()


def checksums(folder: Path) -> str:
    """Name each file by its digest, as `sha256sum --check` reads it."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
        for name, path in inside(folder).items()
        if name != "SHA256SUMS"
    )
