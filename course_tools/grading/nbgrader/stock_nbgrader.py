"""Stock `nbgrader autograde` with its kernels shut in: for its `Execute`.

Answers and tests still run in one process, so that a student's code can read hidden
tests and lie to them; what it cannot do here is to reach the gradebook, other
submissions, the network or the files of this machine, or to use more memory, processes
or time than it is given. `course grade` defends marks, too. Turn this on in
`nbgrader_config.py`:

    from course_tools.grading.nbgrader.stock_nbgrader import shut_in
    c.Autograde.autograde_preprocessors = shut_in()
"""

import json
import os
import shutil
import stat
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute
from traitlets import Instance, Int

from course_tools.grading.check.check_run import LimitedOutput
from course_tools.grading.nbgrader.give_back import GiveBack
from course_tools.grading.sandbox import kernel_inside
from course_tools.grading.sandbox.confine import NOBODY
from course_tools.grading.sandbox.isolation import (
    INSTALL,
    PACKAGES,
    NoIsolation,
    command,
)
from course_tools.grading.sandbox.sandbox import Limits

#: Variables of the grader's environment that the kernel sees: nbgrader's own sign that
#: this is grading.
SEEN = {"NBGRADER_EXECUTION", "NBGRADER_VALIDATING"}
BROUGHT_BACK = 64 * 2**20


class ShutInKernelManager(AsyncKernelManager):
    """Starts a kernel behind the wall, reached by sockets in a folder."""

    # holds work/, the kernel's working directory, and wire/, its sockets
    folder = Instance(Path)
    limits = Instance(Limits)

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """The command line of the kernel, with bubblewrap before it."""
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise NoIsolation(
                f"The kernel cannot be shut in: there is no program bwrap. {INSTALL}"
            )
        if os.getuid() == 0:
            for place in (self.folder, *self.folder.rglob("*")):
                os.chown(place, NOBODY, NOBODY, follow_symlinks=False)
        work, wire = self.folder / "work", self.folder / "wire"
        seen: list[str] = []
        for name in SEEN & os.environ.keys():
            seen += ["--setenv", name, os.environ[name]]
        about = {"hide": [*map(str, PACKAGES)], "work": str(work)}
        inside = [sys.executable, "-s", "-m", kernel_inside.__name__]
        limits = json.dumps(asdict(self.limits) | about)
        kernel = super().format_kernel_cmd(extra_arguments)
        wall = command(bwrap)
        closing = wall.index("--remount-ro")  # from here on no folder can be made
        folders = [*_writable(work), *_writable(wire)]
        wall[closing:closing] = folders
        return [*wall, *seen, *inside, limits, *kernel]


def _writable(place: Path) -> list[str]:
    made: list[str] = []
    for parent in reversed(place.parents[:-1]):
        made += ["--perms", "0755", "--dir", str(parent)]
    return [*made, "--bind", str(place), str(place)]


class ShutInExecute(LimitedOutput, Execute):
    """nbgrader's `Execute`, whose settings it takes, with a kernel that is shut in."""

    memory_mib = Int(
        2048, help="MiB that the kernel may use; one that uses more is given up."
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: ResourcesDict, km: Any = None
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Run the notebook on a copy of its folder, and bring new files back."""
        there = Path(resources["metadata"]["path"])
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            self.folder = Path(folder)
            shutil.copytree(there, self.folder / "work", symlinks=True)
            (self.folder / "wire").mkdir()
            self.printed: dict[int, int] = {}
            done = super().preprocess(nb, resources, km)
            bring_back(self.folder / "work", there)
        return done

    def create_kernel_manager(self) -> AsyncKernelManager:
        """Make the manager of a kernel that is shut in."""
        self.kernel_manager_class = ShutInKernelManager
        manager: Any = super().create_kernel_manager()
        manager.transport = "ipc"
        manager.connection_file = str(self.folder / "wire" / "kernel.json")
        manager.ip = str(self.folder / "wire" / "kernel")
        manager.folder = self.folder
        manager.limits = Limits(memory=self.memory_mib * 2**20, processes=48)
        # no signal gets through the wall
        manager.kernel_spec.interrupt_mode = "message"
        return manager

    def on_cell_executed(self, **kwargs: Any) -> None:
        """Give up a kernel without memory: what it says from then on is chance."""
        super().on_cell_executed(**kwargs)
        if kwargs["execute_reply"]["content"].get("ename") == "MemoryError":
            raise DeadKernelError(f"The kernel has used up its {self.memory_mib} MiB.")


def bring_back(work: Path, there: Path) -> None:
    """Copy plain files, not too large, that a kernel wrote to the submission's."""
    left = BROUGHT_BACK
    for folder, names, files in os.walk(work):
        target = there / Path(folder).relative_to(work)
        names[:] = [name for name in names if not (target / name).is_symlink()]
        for name in files:
            source, place = Path(folder, name), target / name
            about = source.lstat()
            plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
            if not plain or place.suffix == ".ipynb" or place.is_symlink():
                continue
            left -= about.st_size
            if left < 0:
                return
            if not place.exists() or place.read_bytes() != source.read_bytes():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, place, follow_symlinks=False)


def shut_in() -> list[Any]:
    """nbgrader's steps of autograding, with the kernel shut in, and what is given
    back without hidden tests."""
    steps = [*Autograde().autograde_preprocessors, GiveBack]
    return [ShutInExecute if step is Execute else step for step in steps]
