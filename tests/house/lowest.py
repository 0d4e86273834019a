"""Print the lowest versions that pyproject.toml allows, one requirement a line.

    .venv/bin/python tests/house/lowest.py > lowest.txt

`make lowest` installs them and runs the fast tests of the library there: the bounds are
true, and agree with one another, as long as both succeed.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
BOUND = re.compile(r"([\w.-]+)(?:>=|==)([\d.]+)")


def lowest() -> list[str]:
    """Return `name==version` of each requirement, of the extras too."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    found = [
        BOUND.match(line) for line in lines if not line.startswith(project["name"])
    ]
    assert all(found), "a requirement without a lower bound"
    return sorted({f"{bound[1]}=={bound[2]}" for bound in found if bound})


if __name__ == "__main__":
    print("\n".join(lowest()))
