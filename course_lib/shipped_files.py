"""Where the files lie that come with the library and are no code: records, checkpoints
and released assignments.

In a checkout they lie in ``book/`` and ``exercises/``. A wheel has them inside the
package, where ``pyproject.toml`` maps them, so that a notebook finds them wherever it
is opened.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def shipped_folder(path: str, package: Path = PACKAGE) -> Path:
    """Return a folder of the checkout or, where the library is installed from a wheel,
    the package's copy of it."""
    inside = package / Path(path).name
    return inside if inside.is_dir() else package.parent / path


RESULTS = shipped_folder("book/results")
CHECKPOINTS = shipped_folder("book/checkpoints")
EXERCISES = shipped_folder("exercises")
