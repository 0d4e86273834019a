"""What marks could depend on beside submission and tests, by name."""

from __future__ import annotations

import functools
import platform
from importlib.metadata import version


@functools.cache
def environment() -> str:
    """Name it; machines that say the same give the same marks."""
    packages = " ".join(
        f"{name} {version(name)}" for name in ("torch", "numpy", "ipython", "nbgrader")
    )
    return f"Python {platform.python_version()} {packages} {platform.machine()}"
