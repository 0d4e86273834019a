"""Reading book/instructors-guide.md as data: its commands and its table of settings."""

from __future__ import annotations

import re

from classroom import REPOSITORY

GUIDE = REPOSITORY / "book" / "instructors-guide.md"


def commands() -> list[str]:
    """Every command line in the page's ```bash blocks, in order."""
    blocks = re.findall(
        r"^```bash\n(.*?)^```",
        GUIDE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def settings() -> dict[str, str]:
    """The table of settings: name -> value, as the page shows them."""
    rows = re.findall(
        r"^\| `([A-Z]\w+\.\w+)` \| `(.*?)` \|",
        GUIDE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return dict(rows)
