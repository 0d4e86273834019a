"""Build the book as a website, and serve it.

A build has four steps: execute the pages that have changed, write the pages that come
from code (API reference, data cards, the table of mutants), let Jupyter Book lay out
all pages with every warning an error, and leave a mark that says the result is whole,
and of what it was made. If nothing of that has changed, the next build has nothing to
do. Without the mark it reads every page again, so that no fault is forgotten because
its page did not change.
"""

from __future__ import annotations

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

from course_lib._files import write_whole
from course_tools.site.cache import PageCache
from course_tools.site.execute import COSTS, PROCESSES, end_children, execute_pages
from course_tools.site.key import PACKAGES, digest_of_files
from course_tools.site.progress import clock, heartbeat

__all__ = [
    "SiteError",
    "build",
    "build_page",
    "costs_table",
    "executed_pages",
    "find_root",
    "record_costs",
    "server",
    "why",
]

#: What a site is made of besides its pages, relative to the repository's root.
SOURCES = (
    *PACKAGES,
    "book/results",
    "constraints.txt",
    "_config.yml",
    "exercises",
    "solutions",
    # the wrong answers whose fate the instructors' pages tell
    "tests/assignments/mutants",
)
GENERATED = "_generated"
CODE_CELL = re.compile(r"^`{3,}\{code-cell\}", re.MULTILINE)


class SiteError(RuntimeError):
    """The site cannot be built or served; the message says why and what to do."""


def find_root(start: Path | None = None) -> Path:
    """Return the folder that holds the book's settings: `start` (default: the current
    folder) or one above it."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "_config.yml").is_file() and (
            folder / "book" / "_toc.yml"
        ).is_file():
            return folder
    raise SiteError(
        f"no book in {here} or above it (looked for _config.yml and book/_toc.yml); run"
        " this in the repository"
    )


def build(root: Path) -> Path:
    """Build the whole site, executing each page whose cells or sources have changed
    since it was last executed."""
    built = root / "_build"
    built.mkdir(exist_ok=True)
    with FileLock(
        built / ".lock"
    ):  # a second build would take away the pages that the first is reading
        return _build(root, built)


def _build(root: Path, built: Path) -> Path:
    from course_tools.site.pages import write_generated_pages

    whole, index = built / ".whole", built / "html" / "index.html"
    sources = _sources_of_site(root)
    if (
        whole.exists()
        and whole.read_text(encoding="utf-8") == sources
        and index.is_file()
    ):
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
    """Execute one page, whose name begins as given, if something of it has changed, and
    lay it out alone: what it refers to on other pages stays unresolved."""
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
    """Say what the results of a page depend on, and what of it has changed since the
    page was executed."""
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
    """Execute those of some pages of which something has changed, and write the data
    cards; return the environment in which they were."""
    environment = _environment(root / "_build")
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
    program = Path(sys.executable).with_name(
        "jupyter-book"
    )  # of this environment, activated or not
    if not program.is_file():
        raise SiteError(
            f"{program} does not exist; run: pip install -c constraints.txt -e"
            " '.[book]'"
        )
    command = [str(program), "build", source, "--config", "_config.yml", *options]
    begun = time.monotonic()
    try:
        with heartbeat(
            lambda: f"[{clock(time.monotonic() - begun):>5}] laying out the pages",
            lambda line: print(line, flush=True),
        ):
            status = subprocess.run(
                command, cwd=root, env=environment, check=False
            ).returncode
    except KeyboardInterrupt:
        end_children()
        raise
    if status != 0:
        raise SiteError(
            "the book has not been built: mend the warnings and errors above (exit"
            f" status {status})"
        )


def executed_pages(root: Path) -> list[Path]:
    """List the pages that hold cells to execute, in the order of their names."""
    pages = sorted((root / "book").glob("*.md"))
    return [
        path for path in pages if CODE_CELL.search(path.read_text(encoding="utf-8"))
    ]


@dataclass(frozen=True)
class HowExecuted:
    """How many pages were executed at once, and with how many threads each."""

    at_once: int = PROCESSES
    threads: int = 1


def costs_table(root: Path) -> str:
    """Write what each executed page has cost, in seconds: by the clock, and of
    processors with all its processes."""
    costs = PageCache(root).costs(executed_pages(root))
    rows = [
        (name, cost.wall_seconds, cost.processor_seconds)
        for name, cost in costs.items()
    ]
    rows.append(("all pages", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = [
        f"{name:<24}{wall:>8.0f}{processor:>12.0f}" for name, wall, processor in rows
    ]
    return "\n".join([f"{'seconds':<24}{'by clock':>8}{'processors':>12}", *lines])


def record_costs(root: Path) -> Path:
    """Keep what the pages have cost in `book/results`, where the next build finds what
    to expect."""
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
    return records.save(
        records.make(COSTS, command, HowExecuted(), results), root / "book" / "results"
    )


def _sources_of_site(root: Path) -> str:
    """Name the state of all that a site is made of, and of the repository that its
    buttons open."""
    written = [path for path in (root / "book").iterdir() if path.name != GENERATED]
    files = digest_of_files([*(root / name for name in SOURCES), *sorted(written)])
    return " ".join(
        [
            files,
            os.environ.get("GITHUB_SERVER_URL", ""),
            os.environ.get("GITHUB_REPOSITORY", ""),
        ]
    )


def _environment(built: Path) -> dict[str, str]:
    """Give kernels a profile and a backend of their own: what a reader has set must not
    change what the book shows."""
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
    """Make an HTTP server of the built site that only this machine can reach; the
    caller runs and closes it."""
    site = root / "_build" / "html"
    if not (site / "index.html").is_file():
        raise SiteError(f"{site} holds no site; run `course build` first")
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise SiteError(
            f"cannot serve on port {port} ({error.strerror}); choose another with"
            " --port"
        ) from error
