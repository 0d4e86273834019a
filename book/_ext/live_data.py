"""Put the book's BERTs beside the page that runs them: scripts that only a reader who
asks for a model loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGE = "bert-live"


def write_live_data(app: Sphinx, exception: Exception | None) -> None:
    """Write tokenizer and weights as scripts."""
    if (
        exception is not None
        or app.builder.format != "html"
        or PAGE not in app.env.found_docs
    ):
        return
    from course_tools.site.live import FOLDER, write_live

    write_live(Path(app.outdir) / FOLDER)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_live_data)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
