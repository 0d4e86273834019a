"""Reading *Operating the grader* as data: its commands and its table of settings."""

from __future__ import annotations

import re

import yaml
from classroom import REPOSITORY

BOOK = REPOSITORY / "book"
INDEX = "operating-the-grader"


def steps() -> list[str]:
    """The pages below the index, in the order of the table of contents."""
    contents = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    (index,) = (
        entry
        for part in contents["parts"]
        for entry in part["chapters"]
        if entry["file"] == INDEX
    )
    return [below["file"] for below in index["sections"]]


def text(*pages: str) -> str:
    """What stands on pages; on all of them if none is named."""
    return "\n".join(
        (BOOK / f"{page}.md").read_text(encoding="utf-8")
        for page in pages or [INDEX, *steps()]
    )


def commands(*pages: str) -> list[str]:
    """Every command line in the pages' ```bash blocks, in order."""
    blocks = re.findall(r"^```bash\n(.*?)^```", text(*pages), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def settings() -> dict[str, str]:
    """The table of settings: name -> value, as the page shows them."""
    rows = re.findall(r"^\| `([A-Z]\w+\.\w+)` \| `(.*?)` \|", text(), re.MULTILINE)
    return dict(rows)
