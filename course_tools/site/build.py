"""Build the book as a website, and serve it.

A build has four steps: execute the pages that have changed, write the pages that come
from code (API reference, data cards, the table of mutants), let Jupyter Book lay out
all pages with every warning an error, and leave a mark that says the result is whole,
and of what it was made. If nothing of that has changed, the next build has nothing to
do. Without the mark it reads every page again, so that no fault is forgotten because
its page did not change.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from filelock import FileLock

from course_lib.files import write_whole
from course_tools.site.cache import PageCache, PageCost
from course_tools.site.execute import COSTS, PROCESSES, end_children, execute_pages
from course_tools.site.key import PACKAGES, digest_of_files
from course_tools.site.progress import clock, heartbeat

#: What a site is made of besides its pages, relative to the repository's root.
SOURCES = [*PACKAGES, "book/results", "constraints.txt", "_config.yml", "exercises"]
# with the wrong answers whose fate the instructors' pages tell
SOURCES += ["solutions", "tests/assignments/mutants"]
GENERATED = "_generated"
CODE_CELL = re.compile(r"^`{3,}\{code-cell\}", re.MULTILINE)


class SiteError(RuntimeError):
    """The site cannot be built or served; the message says why and what to do."""


def find_root(start: Path | None = None) -> Path:
    """Return the folder that holds the book's settings, here or above."""
    here = (start or Path.cwd()).resolve()
    files = ("_config.yml", "book/_toc.yml")
    for folder in (here, *here.parents):
        if all((folder / file).is_file() for file in files):
            return folder
    where = f"no book in {here} or above it (looked for {' and '.join(files)})"
    raise SiteError(f"{where}; run this in the repository")


def build(root: Path) -> Path:
    """Build the whole site, executing each page that has changed."""
    built = root / "_build"
    built.mkdir(exist_ok=True)
    # a second build would take away the pages that the first is reading
    with FileLock(built / ".lock"):
        return _build(root, built)


def _build(root: Path, built: Path) -> Path:
    from course_tools.site.pages import write_generated_pages

    whole, index = built / ".whole", built / "html" / "index.html"
    sources = _sources_of_site(root)
    before = whole.read_text(encoding="utf-8") if whole.exists() else ""
    if before == sources and index.is_file():
        return index
    if not whole.exists():
        for stale in (".doctrees", "html"):
            shutil.rmtree(built / stale, ignore_errors=True)
    whole.unlink(missing_ok=True)
    begun = time.monotonic()
    environment = _execute(root, executed_pages(root), cards=True)
    write_generated_pages(root)
    _jupyter_book(root, environment, "book", "-W", "--keep-going", "-n")
    if not index.is_file():
        raise SiteError(f"Jupyter Book reported success but {index} does not exist")
    write_whole(whole, sources)
    print(f"built in {clock(time.monotonic() - begun)} minutes")
    return index


def build_page(root: Path, name: str) -> Path:
    """Execute a page if it has changed, and lay it out alone, links unresolved."""
    page = find_page(root, name)
    built = root / "_build"
    built.mkdir(exist_ok=True)
    with FileLock(built / ".lock"):
        cells = page in executed_pages(root)
        environment = _execute(root, [page] if cells else [], cards=False)
        _jupyter_book(root, environment, f"book/{page.name}", "-qq")
    # Jupyter Book names the folder after the page and the folder that it comes from.
    return next((built / "_page").glob(f"*{page.stem}/html/{page.stem}.html"))


def find_page(root: Path, name: str) -> Path:
    """Find the page of the book whose name begins with `name`, e.g. 03."""
    pages = sorted((root / "book").glob("*.md"), key=lambda page: page.stem)
    for page in pages:
        if page.stem.startswith(name.removesuffix(".md")):
            return page
    known = ", ".join(page.stem for page in pages)
    raise SiteError(f"no page begins with {name!r}; there are {known}")


def why(root: Path, name: str) -> str:
    """Say what a page's results depend on, and what of it has changed."""
    page, cache = find_page(root, name), PageCache(root)
    if page not in executed_pages(root):
        return f"{page.stem} has no cells to execute"
    made_of, changed = cache.made_of(page), cache.changed(page)
    if changed is None:
        head = f"{page.stem} will be executed: it has not been yet"
    elif changed:
        head = f"{page.stem} will be executed: {', '.join(changed)} changed"
    else:
        head = f"{page.stem} will not be executed: nothing of it has changed"
    return "\n".join([head, "It is made of", *(f"  {name}" for name in made_of)])


def _execute(root: Path, pages: list[Path], cards: bool) -> dict[str, str]:
    """Execute changed pages and write data cards; return their environment."""
    environment = kernel_environment(root / "_build")
    try:
        failures = execute_pages(PageCache(root), pages, environment, cards)
    except KeyboardInterrupt:
        end_children()
        raise
    if failures:
        head = f"{len(failures)} failed; mend this and build again:"
        raise SiteError("\n".join([head, *failures]))
    return environment


def _jupyter_book(
    root: Path, environment: dict[str, str], source: str, *options: str
) -> None:
    # of this environment, activated or not
    program = Path(sys.executable).with_name("jupyter-book")
    if not program.is_file():
        install = "run: pip install -c constraints.txt -e '.[book]'"
        raise SiteError(f"{program} does not exist; {install}")
    command = [str(program), "build", source, "--config", "_config.yml", *options]
    begun = time.monotonic()

    def state() -> str:
        return f"[{clock(time.monotonic() - begun):>5}] laying out the pages"

    try:
        with heartbeat(state, partial(print, flush=True)):
            status = subprocess.call(command, cwd=root, env=environment)
    except KeyboardInterrupt:
        end_children()
        raise
    if status != 0:
        mend = "mend the warnings and errors above"
        raise SiteError(f"the book has not been built: {mend} (exit status {status})")


def executed_pages(root: Path) -> list[Path]:
    """List the pages that hold cells to execute, in the order of their names."""
    pages = sorted((root / "book").glob("*.md"))
    return [page for page in pages if CODE_CELL.search(page.read_text("utf-8"))]


@dataclass(frozen=True)
class HowExecuted:
    """How many pages were executed at once, and with how many threads each."""

    at_once: int = PROCESSES
    threads: int = 1


def costs_table(root: Path) -> str:
    """Write what pages cost in seconds: by the clock, and of processors."""
    costs = PageCache(root).costs(executed_pages(root))
    wall = sum(cost.wall_seconds for cost in costs.values())
    whole = PageCost(wall, sum(cost.processor_seconds for cost in costs.values()))
    lines = [
        f"{name:<24}{cost.wall_seconds:>8.0f}{cost.processor_seconds:>12.0f}"
        for name, cost in {**costs, "all pages": whole}.items()
    ]
    return "\n".join([f"{'seconds':<24}{'by clock':>8}{'processors':>12}", *lines])


def record_costs(root: Path) -> Path:
    """Keep what pages have cost in `book/results`, for the next build."""
    from course_lab import records

    results = [
        {
            "page": name,
            "wall_seconds": round(cost.wall_seconds, 1),
            "processor_seconds": round(cost.processor_seconds, 1),
        }
        for name, cost in PageCache(root).costs(executed_pages(root)).items()
    ]
    command = ["course", "build", "--costs", "--record"]
    made = records.make(COSTS, command, HowExecuted(), results)
    return records.save(made, root / "book" / "results")


def _sources_of_site(root: Path) -> str:
    """Name the state of all that a site and its buttons are made of."""
    written = [path for path in (root / "book").iterdir() if path.name != GENERATED]
    files = digest_of_files([*(root / name for name in SOURCES), *sorted(written)])
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY")
    return " ".join([files, *(os.environ.get(name, "") for name in names)])


def kernel_environment(built: Path) -> dict[str, str]:
    """Give kernels a profile and a backend of their own, not the reader's."""
    profile = built / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    # 40 is ERROR: the kernel otherwise warns in every build that it talks over the
    # loopback interface.
    (profile / "ipython_kernel_config.json").write_text(
        json.dumps({"IPKernelApp": {"log_level": 40}})
    )
    return os.environ | {
        "IPYTHONDIR": str(built / ".ipython"),
        # With any other backend, e.g. agg for a machine without a screen, a figure
        # prints its type and draws nothing.
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # Sums of floats depend on how they are shared out, so a chapter's figures
        # would on the number of cores.
        "OMP_NUM_THREADS": "1",
        # Sphinx tells of each page when it is read, not when a buffer is full
        "PYTHONUNBUFFERED": ("1"),
    }


def server(root: Path, port: int = 8000) -> ThreadingHTTPServer:
    """Make an HTTP server of the built site that only this machine can reach."""
    site = root / "_build" / "html"
    if not (site / "index.html").is_file():
        raise SiteError(f"{site} holds no site; run `course build` first")
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        why = f"cannot serve on port {port} ({error.strerror})"
        raise SiteError(f"{why}; choose another with --port") from error
