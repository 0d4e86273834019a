"""The book's BERTs in its pages: `{live}` puts parts of the page *BERT, live* into a
chapter, and the build leaves the models beside the pages, as scripts that only a reader
who asks for a model loads.

    ```{live} attention layer
    :text: The cat sleeps.

    Type a sentence, and choose a layer.
    ```

`_static/live.js` makes the parts. The options are what the page's address may say, such
as `text`, `second`, `layer` or `word1`.
"""

from __future__ import annotations

import subprocess
import sys
from html import escape
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

PAGE = "bert-live"
WRITE = (
    "import sys, pathlib, course_tools.site.live as live;"
    " live.write_live(pathlib.Path(sys.argv[1]) / live.FOLDER)"
)
PARTS = ("predict", "attention", "matrix", "layer", "compare", "word", "sentences")
GIVEN = ("model", "text", "second", "token", "layer", "head", "step", "word1", "word2")
WITHOUT_SCRIPT = "This part needs JavaScript. {doc}`bert-live` has a recorded example."


class Live(SphinxDirective):
    """Some parts of the page, below a text that says what to do with them."""

    required_arguments = 1
    optional_arguments = len(PARTS)
    option_spec = dict.fromkeys(GIVEN, directives.unchanged_required)
    has_content = True

    def run(self) -> list[nodes.Node]:
        if unknown := [name for name in self.arguments if name not in PARTS]:
            known = ", ".join(PARTS)
            raise self.error(f"live: no part is called {unknown[0]!r}; known: {known}")
        given = {"parts": " ".join(self.arguments), **self.options}
        data = " ".join(f'data-{name}="{escape(told)}"' for name, told in given.items())
        root = f'<div class="attention-explorer bert-live" {data}>'
        instead = self.parse_text_to_nodes(WITHOUT_SCRIPT)
        instead[0]["classes"] = ["live-instead"]
        return [
            nodes.raw("", root, format="html"),
            *self.parse_content_to_nodes(),
            *instead,
            nodes.raw("", "</div>", format="html"),
        ]


def begin_live_data(app: Sphinx, env: BuildEnvironment, names: list[str]) -> None:
    """Begin to write tokenizer and weights as scripts, while Sphinx reads the pages."""
    if app.builder.format == "html" and PAGE in env.found_docs:
        command = [sys.executable, "-c", WRITE, str(app.outdir)]
        app.live_data = subprocess.Popen(command)  # type: ignore[attr-defined]


def end_live_data(app: Sphinx, exception: Exception | None) -> None:
    """Wait until the scripts are written; a build that failed waits for nothing."""
    if writing := getattr(app, "live_data", None):
        if exception is not None:
            writing.kill()
        if writing.wait() != 0 and exception is None:
            raise ExtensionError("the scripts of the page's models were not written")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("live", Live)
    app.connect("env-before-read-docs", begin_live_data)
    app.connect("build-finished", end_live_data)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
