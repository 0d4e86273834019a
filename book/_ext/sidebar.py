"""The sidebar, made in a fraction of the time: for each page, Sphinx copies the whole
table of contents of all others.

That is every function of the library, once for each page, and then all but the titles
of pages is thrown away again. Here it is thrown away once.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder


def titles_alone(toc: nodes.bullet_list) -> nodes.bullet_list:
    """Copy a page's table of contents without its sections: its title, and the pages
    that stand below it."""
    copy = toc.deepcopy()
    for top in copy.children:
        if len(top) > 1:
            below = list(top.findall(addnodes.toctree))
            if below:
                top[1][:] = below
            else:
                top.pop(1)
    return copy


class Sidebar:
    """What templates are given instead, and the titles that it is made of."""

    def __init__(self) -> None:
        self.titles: dict[str, nodes.bullet_list] = {}

    def gather(self, app: Sphinx, builder: Builder) -> None:
        """Take the titles of all pages."""
        self.titles = {
            page: titles_alone(toc) for page, toc in builder.env.tocs.items()
        }

    def offer(
        self,
        app: Sphinx,
        page: str,
        template: str,
        context: dict[str, Any],
        doctree: object,
    ) -> None:
        """Where a template asks for titles only, let Sphinx see no more than these."""
        from_whole, whole = context["toctree"], app.env.tocs

        def toctree(**settings: Any) -> str:
            if not settings.get("titles_only"):
                return from_whole(**settings)
            app.env.tocs = self.titles
            try:
                return from_whole(**settings)
            finally:
                app.env.tocs = whole

        context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, Any]:
    sidebar = Sidebar()
    app.connect(
        "write-started", sidebar.gather
    )  # when chapters have their numbers, and before processes are forked
    app.connect("html-page-context", sidebar.offer)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
