"""Run a notebook as the grader will, in a fresh kernel, and survive it.

Code that students write loops for ever, floods the screen, waits for a key, leaves
Python, or kills its kernel. Each of these ends here in bounded time and as a
:class:`CellRun` that says what happened. The kernel is a process of its own but no
sandbox: it can do what its user can.
"""

import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from traitlets import HasTraits, Int

from course_tools.grading.check.check_structure import by_name, cell_name, grade_id

#: Characters of output that one cell may print; the rest is thrown away.
OUTPUT_LIMIT = 1_000_000
#: Seconds that a kernel has to answer after it was interrupted.
PATIENCE = 5
TIMEOUT = "CellTimeoutError"
PRINTS = {"stream", "display_data", "update_display_data", "execute_result"}
NOT_SHIPPED = ("*.ipynb", "*.py", ".ipynb_checkpoints", "__pycache__")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACE = re.compile(r"Cell In\s*\[(\d+)\], line (\d+)")


class KernelProblem(Exception):
    """No notebook can be run here; the message says what to install."""


@dataclass(frozen=True)
class CellRun:
    """What became of one code cell."""

    index: int  # its place in the notebook, from 0
    seconds: float = 0.0  # wall-clock time it took
    state: str = "done"  # done, error, stopped, deaf to interrupts, died, not run
    error: str = ""  # the exception's name, "" if there was none
    message: str = ""  # the exception's text
    place: str = ""  # in the notebook, as "masked-softmax, line 3"; "" if unknown
    flooded: bool = False  # it printed more than OUTPUT_LIMIT characters


def as_graded(submitted: NotebookNode, released: NotebookNode) -> NotebookNode:
    """Make the notebook that is graded: answers amid cells as released."""
    notebook = nbformat.from_dict(submitted)  # a copy, and faster than deepcopy
    notebook.metadata = nbformat.from_dict(released.metadata)
    python = {"name": "python3", "display_name": "Python 3"}
    notebook.metadata.setdefault("kernelspec", python)
    names = by_name(released.cells)
    for cell in notebook.cells:
        if grade_id(cell) not in names:
            cell.metadata.pop("nbgrader", None)
    marked = [grade_id(cell) for cell in notebook.cells]
    before = -1  # index of the released cell before this one
    for name, expected in names.items():
        places = [index for index, other in enumerate(marked) if other == name]
        for index in places[:-1]:
            del notebook.cells[index].metadata["nbgrader"]
            marked[index] = None
        if places:
            before = places[-1]
            cell = notebook.cells[before]
            restored = nbformat.from_dict(expected)
            if not expected.metadata.nbgrader.get("locked"):
                restored.source = cell.source
            notebook.cells[before] = restored
        else:
            before += 1
            notebook.cells.insert(before, nbformat.from_dict(expected))
            marked.insert(before, name)
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


class LimitedOutput(HasTraits):
    """For a client of nbclient's: throws away what a cell prints beyond a limit."""

    output_limit = Int(OUTPUT_LIMIT)
    printed: dict[int, int]  # characters by the place of the cell

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] in PRINTS:
            content = msg["content"]
            size = len(content.get("text", ""))
            size += sum(len(str(value)) for value in content.get("data", {}).values())
            self.printed[cell_index] = self.printed.get(cell_index, 0) + size
            if self.printed[cell_index] > self.output_limit:
                return None
        return super().process_message(msg, cell, cell_index)  # type: ignore[misc]


class _Client(LimitedOutput, NotebookClient):
    """nbclient's runner, with bounded output and a note of each exception."""

    def __init__(self, nb: NotebookNode, **options: Any) -> None:
        super().__init__(nb, on_cell_error=self._note_error, **options)
        self.printed: dict[int, int] = {}
        self.replies: dict[int, dict[str, Any]] = {}

    def _note_error(
        self, cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]
    ) -> None:
        self.replies[cell_index] = execute_reply["content"]

    def answers(self) -> bool:
        """Whether the kernel replies after an interrupt, which loops may swallow."""
        assert self.kc is not None
        before, self.timeout = self.timeout, PATIENCE
        try:
            return self.wait_for_reply(self.kc.kernel_info()) is not None
        except DeadKernelError:
            return False
        finally:
            self.timeout = before


@dataclass
class _Log:
    """The runs so far, and the cell of each execution count in a traceback."""

    notebook: NotebookNode
    runs: list[CellRun] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)

    def place(self, traceback: list[str]) -> str:
        """The last line in a cell that the student may change, else the last of all."""
        last = ""
        found = PLACE.findall(COLOUR.sub("", "\n".join(traceback)))
        for count, line in reversed(found):
            if (cell := self.counts.get(int(count))) is not None:
                here = f"{cell_name(self.notebook, cell)}, line {line}"
                metadata = self.notebook.cells[cell].metadata.get("nbgrader", {})
                if not metadata.get("locked"):
                    return here
                last = last or here
        return last


def run_notebook(
    notebook: NotebookNode, time_limit: int, files: Path | None = None
) -> list[CellRun]:
    """Run every code cell, in order, in a fresh kernel and an empty folder."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if files is not None:
            ignore = shutil.ignore_patterns(*NOT_SHIPPED)
            shutil.copytree(files, folder, dirs_exist_ok=True, ignore=ignore)
        kernel = notebook.metadata.kernelspec.name
        client = _Client(
            notebook,
            kernel_name=kernel,
            timeout=time_limit,
            allow_errors=True,
            interrupt_on_timeout=True,
            error_on_timeout={"ename": TIMEOUT, "evalue": "", "traceback": []},
            skip_cells_with_tag="",
            shutdown_kernel="immediate",
            shell_timeout_interval=1,
            # the kernel's own warnings are no findings
            extra_arguments=["--log-level=ERROR"],
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        # what nbclient logs is said in words by the report
        client.log.setLevel("CRITICAL")
        try:
            client.reset_execution_trackers()
            # One thread, as in grading: two of them wait for each other where another
            # program has one of two cores.
            with client.setup_kernel(env=os.environ | {"OMP_NUM_THREADS": "1"}):
                return _run_cells(client, notebook)
        except NoSuchKernel as error:
            raise KernelProblem(
                f"The Jupyter kernel {kernel!r} is not installed. Install it: python -m"
                " ipykernel install --sys-prefix"
            ) from error
        except RuntimeError as error:
            raise KernelProblem(
                f"The Jupyter kernel {kernel!r} does not start: {error}. Run `course"
                " doctor`."
            ) from error


def _run_cells(client: _Client, notebook: NotebookNode) -> list[CellRun]:
    log = _Log(notebook)
    gone = False
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        if gone:
            log.runs.append(CellRun(index, state="not run"))
            continue
        begin = time.monotonic()
        log.counts[client.code_cells_executed + 1] = index
        try:
            client.execute_cell(cell, index)
        except DeadKernelError:
            run = CellRun(index, time.monotonic() - begin, "died")
        else:
            run = _outcome(client, log, index, time.monotonic() - begin)
            if run.state == "stopped" and not client.answers():
                run = replace(run, state="deaf")
        gone = run.state in ("died", "deaf")
        log.runs.append(run)
    return log.runs


def _outcome(client: _Client, log: _Log, index: int, seconds: float) -> CellRun:
    flooded = client.printed.get(index, 0) > client.output_limit
    reply = client.replies.get(index)
    if reply is None:
        return CellRun(index, seconds, flooded=flooded)
    if reply["ename"] == TIMEOUT:
        return CellRun(index, seconds, "stopped", flooded=flooded)
    place = log.place(reply.get("traceback", []))
    return CellRun(
        index, seconds, "error", reply["ename"], reply["evalue"], place, flooded
    )
