"""What this machine has of what the course needs: OK, or what to do about it.

The console command `course doctor` prints the findings. A check never raises for a
machine that lacks something: it catches the error by which the lack shows, and no
other, and says in words what to do. Nothing here imports torch, jupyter or nbgrader
before the check that needs it runs, so that the doctor still answers without them.
"""

import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import Requirement

from course_tools.findings import Finding

GIB = 2**30
#: A chapter's kernel, with torch and one model in training, beside a browser.
MEMORY_NEEDED_GIB = 4.0
DISK_NEEDED_GIB = 2.0  # the built site, its execution cache and a class of submissions
KERNEL_SECONDS = 600  # for a slow machine; a kernel that dies is noticed at once

# Run by the kernel that the notebooks will use: does it see the same environment as you
# do?
KERNEL_QUESTION = "import sys, course_lib; print(sys.prefix)"


def _install(extra: str = "") -> str:
    what = f".[{extra}]" if extra else "."
    return f"Run: python -m pip install -c constraints.txt -e '{what}'"


def _finder(name: str) -> tuple[Callable[[str], Finding], Callable[..., Finding]]:
    """Make what says of this thing that it is as it must be, and that it is not."""
    return partial(Finding, name, True), partial(Finding, name, False)


def requirement(package: str) -> Requirement:
    """Return what course_lib's own metadata requires of a package, in any extra."""
    for line in metadata.requires("course_lib") or []:
        candidate = Requirement(line)
        if candidate.name == package:
            return candidate
    where = "name one of the packages in pyproject.toml"
    raise LookupError(f"course_lib does not depend on {package!r}; {where}")


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Check that Python is new enough."""
    good, bad = _finder("python")
    found = f"{version[0]}.{version[1]} in {sys.prefix}"
    make = "remove .venv and run: make setup PYTHON=python3.11"
    old = version < (3, 11)
    return bad(found, f"Install Python 3.11, {make}") if old else good(found)


def check_version(name: str, package: str, extra: str = "") -> Finding:
    """Check that a package is installed, imports, and is of a version in range."""
    (good, bad), wanted = _finder(name), requirement(package).specifier
    try:
        importlib.import_module(package)
        version = metadata.version(package)
    # OSError: a shared library of a broken installation does not load
    except (ImportError, OSError) as error:
        return bad(f"{package} does not import: {error}", _install(extra))
    found = f"{package} {version}"
    if not wanted.contains(version, prereleases=True):
        return bad(f"{found}; the course needs {package}{wanted}", _install(extra))
    return good(found)


def check_torch() -> Finding:
    """Check that torch is installed in a version that the course runs on."""
    return check_version("torch", "torch")


def check_device() -> Finding:
    """Check that the chapters' device computes a product of two matrices."""
    (good, bad), without = _finder("device"), "Unset COURSE_DEVICE."
    if "COURSE_DEVICE" not in os.environ:
        without = "Set COURSE_DEVICE=cpu to do without it."
    try:
        import torch

        from course_lib.training.loop import device

        where = device()
        product = torch.ones(2, 3, device=where) @ torch.ones(3, 5, device=where)
        total = float(product.sum())
    except ImportError as error:
        first = "Mend torch first, then run: course doctor"
        return bad(f"cannot ask torch: {error}", first)
    # AssertionError: torch built without this accelerator
    except (RuntimeError, ValueError, AssertionError) as error:
        return bad(f"no device answers: {error}", without)
    if total != 30.0:  # 2 rows x 5 columns x 3 products of ones
        wrong = f"a wrong product of matrices: {total} for 30.0"
        return bad(f"{where} computes {wrong}", without)
    name = f"{torch.get_num_threads()} threads"
    if where.type == "cuda":
        name = torch.cuda.get_device_name(where)
    return good(f"{where} ({name})")


def check_precision() -> Finding:
    """Measure float32 against bfloat16, and say which of them "auto" takes."""
    good, bad = _finder("precision")
    try:
        from course_lib.training.loop import device
        from course_lib.training.precision import describe_rates

        return good(describe_rates(device()))
    except (ImportError, RuntimeError, ValueError, AssertionError) as error:
        first = "Mend the device first, then run: course doctor"
        return bad(f"not measured: {error}", first)


def check_memory(needed_gib: float = MEMORY_NEEDED_GIB) -> Finding:
    """Check that enough memory is free for a chapter's kernel."""
    (good, bad), memory = _finder("memory"), psutil.virtual_memory()
    found = f"{memory.available / GIB:.1f} GiB free of {memory.total / GIB:.1f} GiB"
    if memory.available >= needed_gib * GIB:
        return good(found)
    return bad(found, f"Close programs until {needed_gib:g} GiB are free.")


def check_kernel(name: str = "python3") -> Finding:
    """Check that Jupyter starts the notebooks' kernel, in this environment."""
    good, bad = _finder("kernel")
    kernel, patience = f"the kernel {name}", KERNEL_SECONDS
    register = f"Run: {sys.executable} -m ipykernel install --sys-prefix --name {name}"
    try:
        from jupyter_client.kernelspec import NoSuchKernel
        from jupyter_client.manager import start_new_kernel
    except ImportError as error:
        return bad(f"Jupyter is not installed: {error}", _install("book"))
    said: list[str] = []

    def listen(message: dict) -> None:
        content = message["content"]
        said.append(content.get("text") or content.get("evalue", ""))

    # a kernel's own words, shown only when it fails
    with tempfile.TemporaryFile("w+") as log:
        logs: dict[str, Any] = {"stdout": log, "stderr": log}
        try:
            manager, client = start_new_kernel(patience, name, **logs)
        except NoSuchKernel:
            return bad(f"Jupyter knows no kernel called {name}", register)
        except (RuntimeError, OSError) as error:
            log.seek(0)
            words = "; ".join([str(error), *log.read().strip().splitlines()[-1:]])
            return bad(f"{kernel} does not start: {words}", register)
        try:
            reply = client.execute_interactive(
                KERNEL_QUESTION, timeout=patience, output_hook=listen
            )
        except TimeoutError:
            return bad(f"{kernel} gives no answer in {patience} s", register)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    answer = "".join(said).strip()
    if reply["content"]["status"] != "ok":
        return bad(f"{kernel} cannot import course_lib: {answer}", register)
    if Path(answer).resolve() != Path(sys.prefix).resolve():
        return bad(f"{kernel} runs in {answer}, not in {sys.prefix}", register)
    return good(f"{name} starts and runs in {answer}")


def check_nbgrader(root: Path | None = None) -> Finding:
    """Check nbgrader's version, and that its settings load."""
    installed = check_version("nbgrader", "nbgrader", extra="grading")
    if not installed.ok:
        return installed
    from traitlets.config.loader import ConfigError, PyFileConfigLoader

    good, bad = _finder("nbgrader")
    root = root or Path.cwd()
    settings = root / "nbgrader_config.py"
    if not settings.is_file():
        remedy = "Run this in the root of the repository, where that file lies."
        return bad(f"no nbgrader_config.py in {root}", remedy)
    try:
        PyFileConfigLoader(settings.name, path=str(root)).load_config()
    except (SyntaxError, NameError, ImportError, AttributeError, ConfigError) as error:
        remedy = "Restore it: git checkout nbgrader_config.py"
        return bad(f"{settings} does not load: {error}", remedy)
    return good(f"{installed.found}, settings in {settings}")


def check_disk(
    folder: Path | None = None, needed_gib: float = DISK_NEEDED_GIB
) -> Finding:
    """Check that enough disk is free where the site is built."""
    folder = folder or Path.cwd()
    free = shutil.disk_usage(folder).free
    (good, bad), found = _finder("disk"), f"{free / GIB:.1f} GiB free at {folder}"
    if free >= needed_gib * GIB:
        return good(found)
    clean = "`make clean` removes what was built."
    return bad(found, f"Free {needed_gib:g} GiB there; {clean}")


CHECKS: list[Callable[[], Finding]] = [check_python, check_torch, check_device]
CHECKS += [check_precision, check_memory, check_kernel, check_nbgrader, check_disk]


def examine(checks: Iterable[Callable[[], Finding]] = CHECKS) -> list[Finding]:
    """Run the checks, in order."""
    return [check() for check in checks]
