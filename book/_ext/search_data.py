"""Put the data of the search among paragraphs beside its page: a script that only a
reader who searches loads."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGE = "search-pydocs"


def write_search_data(app: Sphinx, exception: Exception | None) -> None:
    """Copy the script that the page's cells have made, or make it, if the page came
    from the cache of executions."""
    if (
        exception is not None
        or app.builder.format != "html"
        or PAGE not in app.env.found_docs
    ):
        return
    from course_lab.ch09_sentence_bert.static_search import SOURCE, make

    target = Path(app.outdir) / SOURCE
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(make().script, target)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_search_data)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
