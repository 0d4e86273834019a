"""What the book's settings cannot say in YAML: forks, the execution cache, alt text,
links both ways, launch buttons.

Everything here runs inside Sphinx, so `jupyter-book build` alone behaves as `course
build` does.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.core.variables import format_plain_text
from pybtex.backends.plaintext import Backend as PlainText
from pybtex.plugin import register_plugin
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from student_notebook import (
    ASSIGNMENTS,
    NOTEBOOKS,
    binder_url,
    colab_url,
    glued_values,
    is_notebook,
    write_notebooks,
)

from course_tools.grading.assignments.editions import EDITION
from course_tools.site.build import executed_pages
from course_tools.site.cache import PageCache
from course_tools.site.decks import FOLDER, SOURCES, decks, write_decks
from course_tools.site.key import PACKAGES, digest_of_files
from course_tools.site.reference import taught_in

LOGGER = logging.getLogger(__name__)
# Code in backticks, which stays as it is, or what reStructuredText would read as a
# substitution.
BARS = re.compile(r"`+[^`]+`+|\|[^|\s](?:[^|]*[^|\s])?\|")
GLUED = re.compile(r"\{glue:text\}`(?P<key>[^`:]+):?(?P<form>[^`]*)`")


def use_own_repository(app: Sphinx, config: Config) -> None:
    """Let the buttons of a fork open the fork: a workflow names its repository in
    GITHUB_REPOSITORY."""
    repository = os.environ.get("GITHUB_REPOSITORY")
    if repository:
        server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
        config.html_theme_options["repository_url"] = f"{server}/{repository}"


def name_the_edition(app: Sphinx, config: Config) -> None:
    """Say at the foot of each page which edition of the course it is of."""
    config.html_theme_options["extra_footer"] = f"Edition {EDITION}"


def use_cache_of_pages(app: Sphinx, config: Config) -> None:
    """Take executed pages from where `course build` leaves them, and read all pages
    again when an extension has changed."""
    config.nb_execution_cache_path = str(PageCache(Path(app.srcdir).parent).folder)
    config.course_fingerprint = digest_of_files([Path(__file__).parent])


def read_executed_again(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Read a page again that was executed since it was read, or has to be."""
    cache, before = PageCache(Path(app.srcdir).parent), getattr(env, "executed", {})
    env.executed = {}
    for page in executed_pages(cache.root):
        if page.stem not in env.found_docs:
            continue
        if cache.changed(page) != []:  # Sphinx will execute it
            cache.forget(page)
        env.executed[page.stem] = cache.executed_at(page)
    return [name for name, when in env.executed.items() if before.get(name) != when]


def own_all_nodes(app: Sphinx, doctree: nodes.document) -> None:
    """Make each node the page's own.

    reStructuredText inside Markdown leaves nodes of another document, which knows all
    of Sphinx's environment: it would be written with each page of the reference, a
    megabyte and a half, and read again twice.
    """
    for node in doctree.findall():
        node.document = doctree


def fill_in_alt_text(app: Sphinx, doctree: nodes.document) -> None:
    """Put glued values into alt text, which MyST-NB takes as it is:
    {glue:text}`key:.1f`, as in prose."""
    glued = glued_values(app, app.env.docname)

    def value(match: re.Match[str]) -> str:
        if match["key"] not in glued:
            LOGGER.warning(
                "alt text: %r is never glued",
                match["key"],
                location=app.env.docname,
                type="course",
            )
            return match[0]
        return format_plain_text(glued[match["key"]]["text/plain"], match["form"])

    for image in doctree.findall(
        lambda node: isinstance(node, nodes.image) and "alt" in node
    ):
        image["alt"] = GLUED.sub(value, image["alt"])


def require_alt_text(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Warn, and so fail the build, at each image that a reader who cannot see it would
    miss."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt", "").strip():
            LOGGER.warning(
                "image without alt text: say what it shows (at a code cell's figure:"
                " `mystnb: {image: {alt: ...}}`)",
                location=(docname, image.line),
                type="course",
                subtype="alt",
            )


def escape_bars(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keep a docstring's `|A|` as the size of A."""
    lines[:] = [BARS.sub(_escape_bars, line) for line in lines]


def _escape_bars(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("`") else match[0].replace("|", "\\|")


def link_reference(app: Sphinx, doctree: nodes.document) -> None:
    """Let a page end with links to what it teaches, in the library's reference."""
    docname = app.env.docname
    taught = taught_in(Path(app.srcdir).parent)
    names = [name for name, page in taught.items() if page == docname]
    section = next(iter(doctree.findall(nodes.section)), None)
    if not names or section is None:
        return
    line = nodes.paragraph("", "", nodes.strong("", "In the reference:"))
    for name in names:
        text = nodes.literal("", name.rpartition(".")[2], classes=["xref", "py"])
        about = {"refdomain": "py", "reftype": "obj", "reftarget": name}
        link = addnodes.pending_xref("", text, refdoc=docname, refwarn=True, **about)
        line += [nodes.Text(" " if name is names[0] else ", "), link]
    section += line


def show_as_code(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.Element
) -> nodes.Element | None:
    """Show a name of ours that the reference does not describe as code, without a link;
    a name that does not exist remains a fault."""
    parts = node["reftarget"].split(".")
    if node.get("refdomain") != "py" or parts[0] not in PACKAGES:
        return None
    return text if _exists(parts) else None


def _exists(parts: list[str]) -> bool:
    found: Any = importlib.import_module(parts[0])
    for end in range(2, len(parts) + 1):
        part, whole = parts[end - 1], ".".join(parts[:end])
        if hasattr(found, "__path__") and importlib.util.find_spec(whole):
            found = importlib.import_module(whole)
        elif part in getattr(found, "__annotations__", {}):  # a field without default
            return end == len(parts)
        elif (found := getattr(found, part, None)) is None:
            return False
    return True


def add_buttons(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Offer a chapter's notebook for download, and on Colab and Binder, next to its
    title."""
    if doctree is None or not is_notebook(app.env, page):
        return
    repository, path = (
        app.config.html_theme_options["repository_url"],
        f"{NOTEBOOKS}/{page}.ipynb",
    )
    colab, binder = colab_url(repository, path), binder_url(repository, path)
    launch = [
        _button(
            "Colab",
            "Open this chapter on Google Colab",
            colab,
            "_static/images/logo_colab.png",
        ),
        _button(
            "Binder",
            "Open this chapter on Binder",
            binder,
            "_static/images/logo_binder.svg",
        ),
    ]
    context["header_buttons"].insert(
        0,
        {
            "type": "group",
            "tooltip": "Run this chapter",
            "icon": "fas fa-rocket",
            "buttons": launch,
            "label": "launch-buttons",
        },
    )
    download = _button(
        ".ipynb",
        "Download this chapter as a notebook",
        context["pathto"](path, 1),
        "fas fa-code",
    )
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            group["buttons"].insert(0, download | {"label": "download-notebook-button"})
    if (Path(app.srcdir).parent / SOURCES / f"{page}.yml").is_file():
        address = context["pathto"](f"{FOLDER}/{page}.html", 1)
        slides = _button("", "Slides of this chapter", address, "fas fa-chalkboard")
        context["header_buttons"].insert(1, slides | {"label": "slides-button"})


def _button(text: str, tooltip: str, url: str, icon: str) -> dict[str, str]:
    return {"type": "link", "text": text, "tooltip": tooltip, "url": url, "icon": icon}


def mend_bibliography_roles(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    """Take away the roles that docutils gives a bibliography: links stand beside the
    entries, which no list allows."""
    if "citation-list" in context.get("body", ""):
        body = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )
        context["body"] = body.replace(' role="doc-biblioentry"', "")


class AssignmentLinks(SphinxRole):
    """{assignment}`attention`: the student's notebook, to open on Colab or to download,
    and what it ships."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        path = f"{ASSIGNMENTS}/{self.text}/{self.text}.ipynb"
        if not (Path(self.env.srcdir).parent / path).is_file():
            message = self.inliner.reporter.error(
                f"no assignment {self.text!r}: {path} does not exist", line=self.lineno
            )
            return [], [message]
        repository = self.config.html_theme_options["repository_url"]
        up = "../" * self.env.docname.count("/")
        links: list[nodes.Node] = [
            nodes.reference(
                "",
                f"open {self.text}.ipynb on Colab",
                refuri=colab_url(repository, path),
            ),
            nodes.Text(" or "),
            nodes.reference("", "download it", refuri=f"{up}{path}", internal=False),
        ]
        for file in sorted(
            (Path(self.env.srcdir).parent / ASSIGNMENTS / self.text).glob(
                "*.safetensors"
            )
        ):
            address = f"{up}{ASSIGNMENTS}/{self.text}/{file.name}"
            links += [
                nodes.Text(", with "),
                nodes.reference("", file.name, refuri=address, internal=False),
            ]
        return links, []


def write_slides(app: Sphinx, exception: Exception | None) -> None:
    """Make the slides of each chapter once its page has been written."""
    out, root = Path(app.outdir), Path(app.srcdir).parent
    whole = out.parents[1].name != "_page"  # a page laid out alone has none
    if whole and exception is None and app.builder.format == "html" and decks(root):
        write_decks(root, out)


def write_side_by_side(app: Sphinx, env: object) -> None:
    """Lay out as many pages at once as there are cores. They are read one by one: not
    every extension can otherwise."""
    app.parallel = os.cpu_count() or 1


def setup(app: Sphinx) -> dict[str, Any]:
    # Pages are millions of small objects that stay. Python would look through them for
    # garbage every 700 new ones.
    gc.set_threshold(500_000, 20, 20)
    # For each citation pybtex would read the metadata of all packages to find this one.
    register_plugin("pybtex.backends", "plaintext", PlainText, force=True)
    app.add_config_value("course_fingerprint", "", "env", types=[str])
    app.add_role("assignment", AssignmentLinks())
    app.connect("config-inited", use_own_repository)
    app.connect("config-inited", name_the_edition)
    app.connect("config-inited", use_cache_of_pages)
    app.connect("env-get-outdated", read_executed_again)
    app.connect("missing-reference", show_as_code)
    app.connect("doctree-read", link_reference)
    app.connect("doctree-read", own_all_nodes)
    app.connect("doctree-read", fill_in_alt_text)
    app.connect("env-updated", write_side_by_side)
    app.connect("doctree-resolved", require_alt_text)
    # Before napoleon (priority 500) has turned the sections into fields.
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    # After the theme (501) has listed its own buttons.
    app.connect("html-page-context", add_buttons, priority=502)
    app.connect("html-page-context", mend_bibliography_roles)
    app.connect("build-finished", write_notebooks)
    app.connect("build-finished", write_slides)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
