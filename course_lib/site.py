"""Build the book as a website, serve it, and measure what a chapter costs.

A build has four steps: execute the chapters that have changed, write the pages that come from code (API reference, data
cards, the table of mutants), let Jupyter Book lay out all pages with every warning an error, and leave a mark that says
the result is whole, and of what it was made. If nothing of that has changed, the next build has nothing to do. Without
the mark it reads every page again, so that no fault is forgotten because its page did not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
from filelock import FileLock

from course_lib.whole_file import write_whole

__all__ = [
    "SOURCES_OF_RESULTS",
    "ChapterCost",
    "SiteError",
    "build",
    "cache_folder",
    "chapter_cost",
    "executed_pages",
    "find_root",
    "fingerprint",
    "server",
]

#: What a page's figures and numbers depend on besides its own cells, relative to the repository's root.
SOURCES_OF_RESULTS = ("course_lib", "book/results", "constraints.txt")


#: What else a site is made of: assignments, and the wrong answers whose fate the instructors' pages tell.
OTHER_SOURCES = ("_config.yml", "exercises", "solutions", "tests/assignments/mutants")
GENERATED = "_generated"
CODE_CELL = re.compile(r"^`{3,}\{code-cell\}", re.MULTILINE)


class SiteError(RuntimeError):
    """The site cannot be built or served; the message says why and what to do."""


@dataclass(frozen=True)
class ChapterCost:
    """What executing a page has cost so far: CPU time in seconds, and the largest memory in GiB."""

    cpu_seconds: float
    peak_memory_gib: float


def chapter_cost() -> ChapterCost:
    """Measure the process that runs a chapter, and the processes it has started and waited for.

    Returns
    -------
    ChapterCost
        CPU seconds over all cores, and the peak of resident memory in GiB.

    Examples
    --------
    >>> cost = chapter_cost()
    >>> cost.cpu_seconds > 0 and cost.peak_memory_gib > 0
    True
    """
    process = psutil.Process()
    times, memory = process.cpu_times(), process.memory_info()
    cpu_seconds = times.user + times.system + times.children_user + times.children_system
    return ChapterCost(cpu_seconds=cpu_seconds, peak_memory_gib=_peak_bytes(memory) / 2**30)


def _peak_bytes(memory: object) -> int:
    if sys.platform == "win32":
        return int(memory.peak_wset)  # type: ignore[attr-defined]
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts in KiB


def fingerprint(paths: Iterable[Path]) -> str:
    """Name the state of some files and folders, and of this Python, by 16 hexadecimal digits.

    Parameters
    ----------
    paths
        Files, and folders that are read to their depths; one that does not exist counts as empty.
    """
    digest = hashlib.sha256(sys.version.encode())
    for top in paths:
        files = [top] if top.is_file() else top.rglob("*")
        for file in sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts):
            digest.update(f"{file.relative_to(top.parent).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def find_root(start: Path | None = None) -> Path:
    """Return the folder that holds the book's settings: `start` (default: the current folder) or one above it.

    Raises
    ------
    SiteError
        If there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "_config.yml").is_file() and (folder / "book" / "_toc.yml").is_file():
            return folder
    raise SiteError(
        f"no book in {here} or above it (looked for _config.yml and book/_toc.yml); run this in the repository"
    )


def build(root: Path) -> Path:
    """Build the whole site, executing each page whose cells or sources have changed since it was last executed.

    Parameters
    ----------
    root
        The repository's root.

    Returns
    -------
    Path
        `_build/html/index.html` under `root`.

    Raises
    ------
    SiteError
        If any page warns, a cell raises, or a page cannot be written.
    """
    built = root / "_build"
    built.mkdir(exist_ok=True)
    with FileLock(built / ".lock"):  # a second build would take away the pages that the first is reading
        return _build(root, built)


def _build(root: Path, built: Path) -> Path:
    from course_lib.site_pages import write_generated_pages

    whole, index = built / ".whole", built / "html" / "index.html"
    sources = _sources_of_site(root)
    if whole.exists() and whole.read_text(encoding="utf-8") == sources and index.is_file():
        return index
    if not whole.exists():
        for stale in (".doctrees", "html"):
            shutil.rmtree(built / stale, ignore_errors=True)
    whole.unlink(missing_ok=True)
    environment = _environment(built)
    if len(executed_pages(root)) > 1:
        command = [sys.executable, "-m", "course_lib.site_execution", str(root), str(cache_folder(root, built))]
        if subprocess.run(command, env=environment, check=False).returncode != 0:
            raise SiteError("the pages have not been executed: mend the error above")
    write_generated_pages(root)
    program = Path(sys.executable).with_name("jupyter-book")  # of this environment, activated or not
    if not program.is_file():
        raise SiteError(f"{program} does not exist; run: pip install -c constraints.txt -e '.[book]'")
    command = [str(program), "build", "book", "--config", "_config.yml", "-W", "--keep-going", "-n"]
    status = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    if status != 0:
        raise SiteError(f"the book has not been built: mend the warnings and errors above (exit status {status})")
    if not index.is_file():
        raise SiteError(f"Jupyter Book reported success but {index} does not exist")
    write_whole(whole, sources)
    _drop_stale_caches(root, built)
    return index


def executed_pages(root: Path) -> list[Path]:
    """List the pages that hold cells to execute, in the order of their names."""
    pages = sorted((root / "book").glob("*.md"))
    return [path for path in pages if CODE_CELL.search(path.read_text(encoding="utf-8"))]


def cache_folder(root: Path, built: Path) -> Path:
    """Name the folder that keeps executed pages.

    jupyter-cache compares a notebook's cells alone. A folder that is named by the sources behind them never answers for
    other sources.
    """
    return built / f".jupyter_cache-{fingerprint(root / name for name in SOURCES_OF_RESULTS)}"


def _sources_of_site(root: Path) -> str:
    """Name the state of all that a site is made of, and of the repository that its buttons open."""
    written = [path for path in (root / "book").iterdir() if path.name != GENERATED]
    files = fingerprint([*(root / name for name in (*SOURCES_OF_RESULTS, *OTHER_SOURCES)), *sorted(written)])
    return " ".join([files, os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", "")])


def _environment(built: Path) -> dict[str, str]:
    """Give kernels a profile and a backend of their own: what a reader has set must not change what the book shows."""
    profile = built / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    # 40 is ERROR: the kernel otherwise warns in every build that it talks over the loopback interface.
    (profile / "ipython_kernel_config.json").write_text(json.dumps({"IPKernelApp": {"log_level": 40}}))
    return os.environ | {
        "IPYTHONDIR": str(built / ".ipython"),
        # With any other backend, e.g. agg for a machine without a screen, a figure prints its type and draws nothing.
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # Sums of floats depend on how they are shared out, so a chapter's figures would on the number of cores.
        "OMP_NUM_THREADS": "1",
    }


def _drop_stale_caches(root: Path, built: Path) -> None:
    current = cache_folder(root, built)
    for cache in built.glob(".jupyter_cache-*"):
        if cache != current:
            shutil.rmtree(cache)


def server(root: Path, port: int = 8000) -> ThreadingHTTPServer:
    """Make an HTTP server of the built site that only this machine can reach; the caller runs and closes it.

    Parameters
    ----------
    root
        The repository's root.
    port
        TCP port on the loopback interface; 0 takes a free one.

    Raises
    ------
    SiteError
        If the site has not been built, or the port is taken.
    """
    site = root / "_build" / "html"
    if not (site / "index.html").is_file():
        raise SiteError(f"{site} holds no site; run `course build` first")
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise SiteError(f"cannot serve on port {port} ({error.strerror}); choose another with --port") from error
