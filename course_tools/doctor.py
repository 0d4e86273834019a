"""What this machine has of what the course needs: one small check a thing, each OK or
what to do about it.

The console command `course doctor` prints the findings. A check never raises for a
machine that lacks something: it catches the error by which the lack shows, and no
other, and says in words what to do. Nothing here imports torch, jupyter or nbgrader
before the check that needs it runs, so that the doctor still answers without them.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from course_tools.findings import Finding

GIB = 2**30
MEMORY_NEEDED_GIB = (
    4.0  # a chapter's kernel, with torch and one model in training, beside a browser
)
DISK_NEEDED_GIB = 2.0  # the built site, its execution cache and a class of submissions
KERNEL_SECONDS = 600  # for a slow machine; a kernel that dies is noticed at once

# Run by the kernel that the notebooks will use: does it see the same environment as you
# do?
KERNEL_QUESTION = "import sys, course_lib; print(sys.prefix)"


def _install(extra: str = "") -> str:
    return (
        "Run: python -m pip install -c constraints.txt -e"
        f" '.{f'[{extra}]' if extra else ''}'"
    )


def requirement(package: str) -> Requirement:
    """Return what course_lib's own metadata requires of a package, in any extra."""
    for line in metadata.requires("course_lib") or []:
        candidate = Requirement(line)
        if candidate.name == package:
            return candidate
    raise LookupError(
        f"course_lib does not depend on {package!r}; name one of the packages in"
        " pyproject.toml"
    )


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Check that Python is new enough."""
    found = f"{version[0]}.{version[1]} in {sys.prefix}"
    if version >= (3, 11):
        return Finding("python", True, found)
    return Finding(
        "python",
        False,
        found,
        "Install Python 3.11, remove .venv and run: make setup PYTHON=python3.11",
    )


def check_version(name: str, package: str, extra: str = "") -> Finding:
    """Check that a package is installed, imports, and has a version in the range that
    course_lib requires."""
    wanted = requirement(package)
    try:
        importlib.import_module(package)
        version = metadata.version(package)
    except (
        ImportError,
        OSError,
    ) as error:  # OSError: a shared library of a broken installation does not load
        return Finding(
            name, False, f"{package} does not import: {error}", _install(extra)
        )
    if not wanted.specifier.contains(version, prereleases=True):
        return Finding(
            name,
            False,
            f"{package} {version}; the course needs {package}{wanted.specifier}",
            _install(extra),
        )
    return Finding(name, True, f"{package} {version}")


def check_torch() -> Finding:
    """Check that torch is installed in a version that the course runs on."""
    return check_version("torch", "torch")


def check_device() -> Finding:
    """Check that the device which every chapter would use computes a product of two
    matrices."""
    without = (
        "Set COURSE_DEVICE=cpu to do without it."
        if "COURSE_DEVICE" not in os.environ
        else "Unset COURSE_DEVICE."
    )
    try:
        import torch

        from course_lib.training.loop import device

        where = device()
        product = torch.ones(2, 3, device=where) @ torch.ones(3, 5, device=where)
        total = float(product.sum())
    except ImportError as error:
        return Finding(
            "device",
            False,
            f"cannot ask torch: {error}",
            "Mend torch first, then run: course doctor",
        )
    except (
        RuntimeError,
        ValueError,
        AssertionError,
    ) as error:  # AssertionError: torch built without this accelerator
        return Finding("device", False, f"no device answers: {error}", without)
    if total != 30.0:  # 2 rows x 5 columns x 3 products of ones
        return Finding(
            "device",
            False,
            f"{where} computes a wrong product of matrices: {total} for 30.0",
            without,
        )
    name = (
        torch.cuda.get_device_name(where)
        if where.type == "cuda"
        else f"{torch.get_num_threads()} threads"
    )
    return Finding("device", True, f"{where} ({name})")


def check_precision() -> Finding:
    """Measure how fast the device multiplies in float32 and in bfloat16, and say which
    of them "auto" takes."""
    try:
        from course_lib.training.loop import device
        from course_lib.training.precision import describe_rates

        return Finding("precision", True, describe_rates(device()))
    except (ImportError, RuntimeError, ValueError, AssertionError) as error:
        return Finding(
            "precision",
            False,
            f"not measured: {error}",
            "Mend the device first, then run: course doctor",
        )


def check_memory(needed_gib: float = MEMORY_NEEDED_GIB) -> Finding:
    """Check that enough memory is free for a chapter's kernel."""
    memory = psutil.virtual_memory()
    found = f"{memory.available / GIB:.1f} GiB free of {memory.total / GIB:.1f} GiB"
    if memory.available >= needed_gib * GIB:
        return Finding("memory", True, found)
    return Finding(
        "memory", False, found, f"Close programs until {needed_gib:g} GiB are free."
    )


def check_kernel(name: str = "python3") -> Finding:
    """Check that Jupyter starts the kernel of the notebooks, and that it runs in this
    environment."""
    register = f"Run: {sys.executable} -m ipykernel install --sys-prefix --name {name}"
    try:
        from jupyter_client.kernelspec import NoSuchKernel
        from jupyter_client.manager import start_new_kernel
    except ImportError as error:
        return Finding(
            "kernel", False, f"Jupyter is not installed: {error}", _install("book")
        )
    said: list[str] = []

    def listen(message: dict) -> None:
        said.append(
            message["content"].get("text") or message["content"].get("evalue", "")
        )

    with tempfile.TemporaryFile(
        "w+"
    ) as log:  # a kernel's own words, shown only when it fails
        try:
            manager, client = start_new_kernel(
                KERNEL_SECONDS, kernel_name=name, stdout=log, stderr=log
            )
        except NoSuchKernel:
            return Finding(
                "kernel", False, f"Jupyter knows no kernel called {name}", register
            )
        except (RuntimeError, OSError) as error:
            log.seek(0)
            words = "; ".join([str(error), *log.read().strip().splitlines()[-1:]])
            return Finding(
                "kernel", False, f"the kernel {name} does not start: {words}", register
            )
        try:
            reply = client.execute_interactive(
                KERNEL_QUESTION, timeout=KERNEL_SECONDS, output_hook=listen
            )
        except TimeoutError:
            return Finding(
                "kernel",
                False,
                f"the kernel {name} gives no answer in {KERNEL_SECONDS} s",
                register,
            )
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    answer = "".join(said).strip()
    if reply["content"]["status"] != "ok":
        return Finding(
            "kernel",
            False,
            f"the kernel {name} cannot import course_lib: {answer}",
            register,
        )
    if Path(answer).resolve() != Path(sys.prefix).resolve():
        return Finding(
            "kernel",
            False,
            f"the kernel {name} runs in {answer}, not in {sys.prefix}",
            register,
        )
    return Finding("kernel", True, f"{name} starts and runs in {answer}")


def check_nbgrader(root: Path | None = None) -> Finding:
    """Check that nbgrader is installed in the version the course is written for, and
    that its settings load."""
    installed = check_version("nbgrader", "nbgrader", extra="grading")
    if not installed.ok:
        return installed
    from traitlets.config.loader import ConfigError, PyFileConfigLoader

    root = root or Path.cwd()
    settings = root / "nbgrader_config.py"
    if not settings.is_file():
        remedy = "Run this in the root of the repository, where that file lies."
        return Finding("nbgrader", False, f"no nbgrader_config.py in {root}", remedy)
    try:
        PyFileConfigLoader(settings.name, path=str(root)).load_config()
    except (SyntaxError, NameError, ImportError, AttributeError, ConfigError) as error:
        remedy = "Restore it: git checkout nbgrader_config.py"
        return Finding("nbgrader", False, f"{settings} does not load: {error}", remedy)
    return Finding("nbgrader", True, f"{installed.found}, settings in {settings}")


def check_disk(
    folder: Path | None = None, needed_gib: float = DISK_NEEDED_GIB
) -> Finding:
    """Check that enough disk is free where the site is built."""
    folder = folder or Path.cwd()
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free at {folder}"
    if free >= needed_gib * GIB:
        return Finding("disk", True, found)
    return Finding(
        "disk",
        False,
        found,
        f"Free {needed_gib:g} GiB there; `make clean` removes what was built.",
    )


CHECKS: tuple[Callable[[], Finding], ...] = (
    check_python,
    check_torch,
    check_device,
    check_precision,
    check_memory,
    check_kernel,
    check_nbgrader,
    check_disk,
)


def examine(checks: Iterable[Callable[[], Finding]] = CHECKS) -> list[Finding]:
    """Run the checks, in order."""
    return [check() for check in checks]
