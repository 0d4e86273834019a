"""What nbgrader shows of a student's Markdown runs nothing, fetches nothing, and leads
nowhere but where it says."""

from __future__ import annotations

import os
from html.parser import HTMLParser

import nbformat
import nbgrader
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from mini_assignment import released_notebook
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html
from nbconvert.filters.markdown_mistune import InvalidNotebook
from nbformat.v4 import new_markdown_cell
from traitlets.config import Config

from course_tools.grading.nbgrader.harmless import NOTHING, harmless
from course_tools.grading.run.execute import Transcript
from course_tools.grading.run.judge import judge

#: What was clickable, loaded or run on nbgrader's pages before.
PAYLOADS = [
    "[x](javascript:document.title='ran')",
    "[x](java&#115;cript:document.title='ran')",
    "[x](JaVaScRiPt:document.title='ran')",
    "[x]( \n javascript:document.title='ran')",
    "[x](<javascript:document.title='ran'>)",
    "[x](data:text/html,<script>1</script>)",
    "[x](vbscript:1)",
    "[x][r]\n\n[r]: javascript:document.title='ran'",
    "[r]\n\n[r]:\n  javascript:document.title='ran'",
    "|a|\n|-|\n|[x](javascript:document.title='ran')|",
    "<javascript:document.title='ran'>",
    "![](https://evil.example/who.png)",
    "![x][p]\n\n[p]: https://evil.example/who.png",
    "![a [b](https://evil.example) c](https://evil.example/who.png)",
    "<img src=x onerror=\"document.title='ran'\">",
    "<script>document.title='ran'</script>",
    "<svg onload=\"document.title='ran'\">",
    "<a href='javascript:document.title=1'>x</a>",
    "</div></div><iframe srcdoc='<script>top.document.title=1</script>'>",
]
#: No tag yet: MathJax makes one of the first, and the second breaks out of an attribute
#: where nobody escapes it.
LATER = [
    "$\\href{javascript:document.title='ran'}{x}$",
    "[x](http://ok.example\" onmouseover=\"document.title='ran')",
]
SCHEMES = ("https://", "http://", "mailto:", "#")
PARTS = [*PAYLOADS, *"[]()<>!:\\`*_#|&;\"'\n x"]
PARTS += [
    "](",
    "]:",
    "![",
    "http://",
    "javascript:",
    "&#106;",
    "data:image/png;base64,",
    "\n\n",
]


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def faults(page: str) -> list[str]:
    """Tags that run, fetch or lead astray."""
    found = []
    for tag, attributes in Tags(page).tags:
        link, picture = attributes.get("href") or "", attributes.get("src") or ""
        if tag in (
            "script",
            "iframe",
            "object",
            "embed",
            "svg",
            "form",
            "style",
            "link",
            "base",
            "meta",
        ):
            found.append(tag)
        found += [name for name in attributes if name.startswith("on")]
        if link and not link.lower().strip().startswith(SCHEMES):
            found.append(link)
        if picture and not picture.startswith(("data:image/", "attachment:")):
            found.append(picture)
    return found


def test_the_payloads_are_faults_where_nothing_is_changed():
    """Else the tests below could not fail."""
    assert [payload for payload in PAYLOADS if not faults(markdown2html(payload))] == []


@for_each("payload", PAYLOADS + LATER)
def test_no_payload_makes_a_tag_that_runs_fetches_or_leads_astray(payload):
    assert faults(markdown2html(harmless(payload))) == []


def test_tex_that_makes_links_is_broken():
    assert harmless(LATER[0]) == LATER[0].replace("\\href", f"\\{NOTHING}href")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_no_text_of_such_parts_does(text):
    assert faults(markdown2html(harmless(text))) == []


@for_each(
    "text",
    [
        "See [the paper](https://arxiv.org/abs/1706.03762), section 3.2.",
        "`a < b`, $a < b$, `x[i](0)`, $\\left(\\frac{1}{2}\\right)$ and a > b",
        "![dot](data:image/png;base64,iVBORw0KGgo=)",
        "| a | b |\n|---|---|\n| 1 | [x](#heading) |",
        "[1]: https://example.org/first 'title'",
        "Why? Because!",
    ],
)
def test_an_honest_answer_stays_as_it_is(text):
    assert harmless(text).replace(NOTHING, "") == text
    assert markdown2html(harmless(text)).replace(NOTHING, "") == markdown2html(text)


def formgrader(notebook: nbformat.NotebookNode) -> str:
    """The page that nbgrader's formgrader shows of a graded notebook, by its own
    template and exporter."""
    folder = os.path.join(
        os.path.dirname(nbgrader.__file__),
        "server_extensions",
        "formgrader",
        "templates",
    )
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [folder]
    told = dict.fromkeys(
        (
            "base_url",
            "submission_id",
            "notebook_path",
            "student",
            "last_name",
            "first_name",
        ),
        "",
    )
    told |= {"assignment_id": "mini", "notebook_id": "mini", "total": 1, "index": 0}
    return HTMLExporter(config=config).from_notebook_node(notebook, resources=told)[0]


def test_a_picture_that_is_attached_is_shown_and_one_that_is_not_stops_no_page():
    """nbconvert raises InvalidNotebook at a name that is not attached: formgrader
    showed no page of that student."""
    handed_in = released_notebook()
    text = "![attention](attachment:scores.png) ![lost](attachment:lost.png)"
    handed_in.cells.append(
        new_markdown_cell(
            text, attachments={"scores.png": {"image/png": "iVBORw0KGgo="}}
        )
    )
    with pytest.raises(InvalidNotebook):
        formgrader(handed_in)
    judged, _ = judge(handed_in, Transcript(), handed_in)
    assert "data:image/png;base64,iVBORw0KGgo=" in formgrader(judged)


def test_the_formgraders_page_runs_and_fetches_nothing_of_a_students_in_a_browser(
    browser,
):
    handed_in = released_notebook()
    handed_in.cells += [new_markdown_cell(payload) for payload in PAYLOADS + LATER]
    judged, _ = judge(handed_in, Transcript(), handed_in)
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/*", lambda route: route.abort())
    page.set_content(formgrader(judged), wait_until="domcontentloaded")
    assert page.title() == "mini"
    assert not [url for url in asked if "evil" in url]
    links = page.evaluate("[...document.links].map(link => link.protocol)")
    assert len(links) > 5
    # the last two: the template's own, which has no server here
    assert set(links) <= {"http:", "https:", "about:", ":"}
    assert page.evaluate("document.images.length") == 0
    assert (
        page.evaluate(
            "document.querySelectorAll('.text_cell_render script, .text_cell_render"
            " iframe').length"
        )
        == 0
    )
    page.close()
