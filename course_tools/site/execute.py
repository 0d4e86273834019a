"""Execute the book's pages side by side, and make its data, before Sphinx lays the
pages out.

Sphinx executes one page at a time, and the small models of a page keep no two cores
busy. Here each page has one thread, whatever the machine, so that its figures do not
depend on the number of cores; what runs at the same time are other pages, the corpus
that some of them read, and the data cards. The page that took longest when pages were
last measured begins first.

What has been executed goes into the cache that Sphinx reads. A page that raises stops
no other: at the end all failures are told, with page, cell and the error's last line.
Ctrl-C ends all that runs; what was executed is kept.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import yaml

from course_tools.site.cost import processor_seconds
from course_tools.site.progress import Job, clock, median_cost, watch

if TYPE_CHECKING:
    from jupyter_cache.base import JupyterCacheAbstract
    from nbformat import NotebookNode

__all__ = ["PROCESSES", "PageCost", "end_children", "execute_pages", "page_costs"]

#: How many run at once: one a core, two at least, and not more than memory holds (a
#: page says what it took).
PROCESSES = max(2, min(4, os.cpu_count() or 1))
#: Seconds for which a page waits for its kernel or for a message of it: hours, since a
#: machine may be busy or slow.
PATIENCE = 4 * 3600
COSTS = "site-costs"  # the record in book/results
MAKE_CORPUS = "from course_lib.data import load; load('pydocs', source='embedded')"
WRITE_CARDS = (
    "import sys, pathlib, course_tools.site.pages as s;"
    " s.write_data_cards(pathlib.Path(sys.argv[1]))"
)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class PageCost:
    """What it took to execute a page: seconds by the clock, and processor seconds of
    all its processes."""

    wall_seconds: float
    processor_seconds: float


def execute_pages(
    root: Path,
    pages: list[Path],
    cache_folder: Path,
    environment: Mapping[str, str],
    processes: int = PROCESSES,
) -> list[str]:
    """Execute each page that the cache does not hold, make the corpus, and write the
    data cards."""
    from jupyter_cache import get_cache

    cache = get_cache(str(cache_folder))
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    extensions = settings["parse"]["myst_enable_extensions"]
    expected = _expected(root)
    one_at_a_time = threading.Lock()  # the cache is one writer's
    todo: list[tuple[Job, Callable[[Job], str | None]]] = []
    for path in pages:
        notebook = _notebook(path, extensions)
        if _held(cache, notebook) is None:
            cells = sum(cell.cell_type == "code" for cell in notebook.cells)
            steps = cache_folder.with_name(f".steps-{path.stem}")
            job = Job(
                path.stem, expected.get(path.stem, median_cost(expected)), cells, steps
            )
            todo.append(
                (
                    job,
                    partial(
                        _execute, path, notebook, cache, environment, one_at_a_time
                    ),
                )
            )
    todo.sort(key=lambda entry: -entry[0].expected)
    if "_generated/data/" in (root / "book" / "_toc.yml").read_text(encoding="utf-8"):
        if todo:  # first: a page that reads the corpus waits until it is there
            todo.insert(
                0,
                (
                    Job("pydocs"),
                    partial(
                        _run_program, [sys.executable, "-c", MAKE_CORPUS], environment
                    ),
                ),
            )
        cards = [sys.executable, "-c", WRITE_CARDS, str(root)]
        todo.append((Job("data cards"), partial(_run_program, cards, environment)))
    return _run(todo, processes)


def _run(
    todo: list[tuple[Job, Callable[[Job], str | None]]], at_once: int
) -> list[str]:
    """Do some jobs side by side, tell of each that ends, and return what failed."""
    failures = []
    with (
        watch([job for job, _ in todo], at_once) as say,
        ThreadPoolExecutor(at_once) as pool,
    ):

        def do(job: Job, work: Callable[[Job], str | None]) -> tuple[Job, str | None]:
            job.begin()
            try:
                return job, work(job)
            finally:
                job.end()

        running: set[Future[tuple[Job, str | None]]] = {
            pool.submit(do, *entry) for entry in todo
        }
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    job, failure = future.result()
                    if failure:
                        failures.append(failure)
                    say(
                        f"{job.name}: {'FAILED after' if failure else 'done in'}"
                        f" {clock(job.so_far())}"
                    )
        except BaseException:
            running = {future for future in running if not future.cancel()}
            while (
                running
            ):  # a page whose kernel is just being started ends at the second turn
                end_children()
                _, running = wait(running, timeout=0.5)
            raise
    return failures


def end_children() -> None:
    """End all processes that this one has started, and those that they have started, at
    once."""
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:  # it has ended by itself
            continue


def _run_program(
    command: list[str], environment: Mapping[str, str], job: Job
) -> str | None:
    done = subprocess.run(
        command,
        env=dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode == 0:
        return None
    return (
        f"{job.name}:"
        f" {(done.stderr.strip().splitlines() or [f'exit status {done.returncode}'])[-1]}"  # noqa: E501
    )


def _execute(
    path: Path,
    notebook: NotebookNode,
    cache: JupyterCacheAbstract,
    environment: Mapping[str, str],
    one_at_a_time: threading.Lock,
    job: Job,
) -> str | None:
    """Execute a page in a kernel of its own and keep it in the cache; return what went
    wrong, if anything did."""
    from jupyter_cache.base import CacheBundleIn
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    costs: dict[str, float] = {}
    code_cells = [
        index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"
    ]

    def note_start(cell: NotebookNode, cell_index: int) -> None:
        if cell.cell_type == "code":
            job.part = code_cells.index(cell_index) + 1

    def note_end(cell: NotebookNode, cell_index: int, **reply: Any) -> None:
        kernel: Any = client.km
        costs["processor_seconds"] = processor_seconds(kernel.provisioner.pid)
        if job.steps:
            job.steps.unlink(missing_ok=True)

    client = NotebookClient(
        notebook,
        timeout=None,
        # it would change the cells, by which the cache knows the page
        record_timing=False,
        startup_timeout=PATIENCE,
        iopub_timeout=PATIENCE,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=note_start,
        on_cell_executed=note_end,
    )
    try:
        client.execute(env={**environment, "COURSE_PROGRESS": str(job.steps)})
    except (CellExecutionError, DeadKernelError) as error:
        place = (
            f"{path.stem}, cell {job.part}{_line(notebook, code_cells[job.part - 1])}"
        )
        if isinstance(error, CellExecutionError):
            return f"{place}: {_last_line(f'{error.ename}: {error.evalue}')}"
        return (
            f"{place}: the kernel died; if memory ran out, close other programs and"
            " build again"
        )
    finally:
        if job.steps:
            job.steps.unlink(missing_ok=True)
    bundle = CacheBundleIn(
        notebook, str(path), data={"execution_seconds": job.so_far(), **costs}
    )
    with one_at_a_time:
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return None


def _line(notebook: NotebookNode, cell: int) -> str:
    lines = notebook.metadata.get("source_map", [])
    return f" (line {lines[cell] + 1})" if cell < len(lines) else ""


def _last_line(words: str) -> str:
    return (COLOURS.sub("", words).strip().splitlines() or ["no words"])[-1]


def page_costs(
    root: Path, pages: list[Path], cache_folder: Path
) -> dict[str, PageCost]:
    """Return what the pages in the cache have cost, by name."""
    from jupyter_cache import get_cache

    cache = get_cache(str(cache_folder))
    extensions = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))[
        "parse"
    ]["myst_enable_extensions"]
    held = {path.stem: _held(cache, _notebook(path, extensions)) for path in pages}
    return {
        name: PageCost(data["execution_seconds"], data["processor_seconds"])
        for name, data in held.items()
        if data is not None and "processor_seconds" in data
    }


def _expected(root: Path) -> dict[str, float]:
    """Return the seconds that pages took when they were recorded: for the order of the
    pages and for the estimate."""
    record = root / "book" / "results" / f"{COSTS}.json"
    if not record.is_file():
        return {}
    results = json.loads(record.read_text(encoding="utf-8"))["results"]
    return {result["page"]: result["wall_seconds"] for result in results}


def _notebook(path: Path, extensions: list[str]) -> NotebookNode:
    """Read a page as Sphinx will read it."""
    from myst_nb.core.read import read_myst_markdown_notebook
    from myst_parser.config.main import MdParserConfig

    config = MdParserConfig(enable_extensions=set(extensions))
    return read_myst_markdown_notebook(
        path.read_text(encoding="utf-8"), config, add_source_map=True, path=path
    )


def _held(cache: JupyterCacheAbstract, notebook: NotebookNode) -> dict[str, Any] | None:
    """Return what the cache notes of an executed page, or None if it does not
    hold it."""
    try:
        return dict(cache.match_cache_notebook(notebook).data or {})
    except KeyError:
        return None
