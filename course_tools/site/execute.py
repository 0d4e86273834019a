"""Execute the book's pages, and make its data, before Sphinx lays them out.

Sphinx executes one page at a time, and the small models of a page keep no two cores
busy. Here each page has one thread, whatever the machine, so that its figures do not
depend on the number of cores; what runs at the same time are other pages, the corpus
that some of them read, and the data cards. The page that took longest when pages were
last measured begins first.

What has been executed goes into the cache that Sphinx reads. A page that raises stops
no other: at the end all failures are told, with page, cell and the error's last line.
Ctrl-C ends all that runs; what was executed is kept.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from nbformat import NotebookNode

from course_tools.site.cache import PageCache
from course_tools.site.cost import processor_seconds
from course_tools.site.key import files_read
from course_tools.site.nest import Nest
from course_tools.site.progress import Job, clock, median_cost, watch
from course_tools.site.reads import COURSE_READS, START

#: How many run at once: one a core, two at least, and not more than memory holds (a
#: page says what it took).
PROCESSES = max(2, min(4, os.cpu_count() or 1))
#: From how many pages on they share a nest, whose imports take longer than a kernel's.
FORKED_FROM = 4
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


Work = Callable[[Job], str | None]


def execute_pages(
    cache: PageCache,
    pages: list[Path],
    environment: Mapping[str, str],
    cards: bool = True,
) -> list[str]:
    """Execute changed pages, make their corpus and the cards; return what failed."""
    root = cache.root
    expected = _expected(root)
    todo: list[tuple[Job, Work]] = []
    pages = [page for page in pages if cache.changed(page) != []]
    forked = sys.platform == "linux" and len(pages) >= FORKED_FROM
    nest = Nest(environment) if forked else None
    for page in pages:
        notebook = cache.notebook(page)
        cells = sum(cell.cell_type == "code" for cell in notebook.cells)
        steps = cache.folder.with_name(f".steps-{page.stem}")
        seconds = expected.get(page.stem, median_cost(expected))
        job = Job(page.stem, seconds, cells, steps)
        todo.append((job, partial(_execute, page, notebook, cache, environment, nest)))
    todo.sort(key=lambda entry: -entry[0].expected)
    if "_generated/data/" in (root / "book" / "_toc.yml").read_text(encoding="utf-8"):

        def program(name: str, code: str) -> tuple[Job, Work]:
            command = [sys.executable, "-c", code, str(root)]
            return Job(name), partial(_run_program, command, environment)

        if todo:  # first: a page that reads the corpus waits until it is there
            todo.insert(0, program("pydocs", MAKE_CORPUS))
        if cards:  # before the short pages, or one core would wait for it
            todo.insert(2, program("data cards", WRITE_CARDS))
    try:
        return _run(todo, PROCESSES)
    finally:
        if nest:
            nest.close()


def _run(todo: list[tuple[Job, Work]], at_once: int) -> list[str]:
    """Do some jobs side by side, tell of each that ends, and return what failed."""
    jobs, failures = [job for job, _ in todo], []

    def do(job: Job, work: Work) -> tuple[Job, str | None]:
        job.begin()
        try:
            return job, work(job)
        finally:
            job.end()

    with watch(jobs, at_once) as say, ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(do, *entry) for entry in todo}
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    job, failure = future.result()
                    if failure:
                        failures.append(failure)
                    how = "FAILED after" if failure else "done in"
                    say(f"{job.name}: {how} {clock(job.so_far())}")
        except BaseException:
            running = {future for future in running if not future.cancel()}
            # a page whose kernel is just being started ends at the second turn
            while running:
                end_children()
                _, running = wait(running, timeout=0.5)
            raise
    return failures


def end_children() -> None:
    """End all descendants of this process at once."""
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:  # it has ended by itself
            continue


def _run_program(
    command: list[str], environment: Mapping[str, str], job: Job
) -> str | None:
    nowhere, pipe = subprocess.DEVNULL, subprocess.PIPE
    settings = dict(environment)
    done = subprocess.run(command, env=settings, stdout=nowhere, stderr=pipe, text=True)
    if done.returncode == 0:
        return None
    words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return f"{job.name}: {words[-1]}"


def _execute(
    page: Path,
    notebook: NotebookNode,
    cache: PageCache,
    environment: Mapping[str, str],
    nest: Nest | None,
    job: Job,
) -> str | None:
    """Execute a page in its own kernel and keep it; return what went wrong."""
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    cost: dict[str, float] = {}
    reads = cache.folder.with_name(f".reads-{page.stem}")
    assert job.steps is not None
    cells = enumerate(notebook.cells)
    code_cells = [index for index, cell in cells if cell.cell_type == "code"]

    def note_start(cell: NotebookNode, cell_index: int) -> None:
        if cell.cell_type == "code":
            job.part = code_cells.index(cell_index) + 1

    def note_end(cell: NotebookNode, cell_index: int, **reply: Any) -> None:
        kernel: Any = client.km
        cost["processor_seconds"] = processor_seconds(kernel.provisioner.pid)
        steps.unlink(missing_ok=True)

    steps = job.steps
    client = _client(
        page, notebook, on_cell_start=note_start, on_cell_executed=note_end
    )
    if nest:
        client.km = nest.manager()
    state = cache.made_of(page)  # before: somebody may edit the library meanwhile
    files = {"COURSE_PROGRESS": str(steps), COURSE_READS: str(reads)}
    reads.unlink(missing_ok=True)
    try:
        client.execute(env={**environment, **files})
        paths = reads.read_text(encoding="utf-8").splitlines()
    except (CellExecutionError, DeadKernelError) as error:
        line = _line(notebook, code_cells[job.part - 1])
        place = f"{page.stem}, cell {job.part}{line}"
        if isinstance(error, CellExecutionError):
            return f"{place}: {_last_line(f'{error.ename}: {error.evalue}')}"
        again = "if memory ran out, close other programs and build again"
        return f"{place}: the kernel died; {again}"
    finally:
        steps.unlink(missing_ok=True)
        reads.unlink(missing_ok=True)
    # A busy kernel sends a printed line in two pieces, and the page would break it.
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    own = files_read(paths, cache.root)
    cost["execution_seconds"] = job.so_far()
    cache.keep(page, notebook, state, own, **cost)
    return None


def _client(page: Path, notebook: NotebookNode, **hooks: Any) -> Any:
    """Make what executes a page in its folder."""
    from nbclient import NotebookClient

    return NotebookClient(
        notebook,
        timeout=None,
        # it would change the cells, by which the cache knows the page
        record_timing=False,
        startup_timeout=PATIENCE,
        iopub_timeout=PATIENCE,
        extra_arguments=[f"--IPKernelApp.exec_lines={START}"],
        resources={"metadata": {"path": str(page.parent)}},
        **hooks,
    )


def errors_of(
    page: Path, notebook: NotebookNode, environment: Mapping[str, str]
) -> dict[str, str]:
    """Execute all cells of a page, whatever they raise, and keep nothing; return each
    error's last line by its cell."""
    client = _client(page, notebook, allow_errors=True)
    client.execute(env={**environment, COURSE_READS: os.devnull})
    cells = enumerate(notebook.cells)
    code = [(index, cell) for index, cell in cells if cell.cell_type == "code"]
    return {
        f"cell {number}{_line(notebook, index)}": _last_line(
            f"{output.ename}: {output.evalue}"
        )
        for number, (index, cell) in enumerate(code, start=1)
        for output in cell.outputs
        if output.output_type == "error"
    }


def _line(notebook: NotebookNode, cell: int) -> str:
    lines = notebook.metadata.get("source_map", [])
    return f" (line {lines[cell] + 1})" if cell < len(lines) else ""


def _last_line(words: str) -> str:
    return (COLOURS.sub("", words).strip().splitlines() or ["no words"])[-1]


def _expected(root: Path) -> dict[str, float]:
    """Return the seconds that pages took when they were recorded."""
    record = root / "book" / "results" / f"{COSTS}.json"
    if not record.is_file():
        return {}
    results = json.loads(record.read_text(encoding="utf-8"))["results"]
    return {result["page"]: result["wall_seconds"] for result in results}
