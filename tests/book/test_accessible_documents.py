"""What is read outside the site by those who may not see or use a mouse: released
notebooks as HTML, feedback pages, class reports; and two properties of every page.

WCAG 2.2: 1.1.1 for formulas, 1.3.1 and 2.4.6 for headings and tables, 1.4.3 for
colours, 1.4.10 for narrow windows, 2.1.1, 2.1.2 and 2.4.7 for the keyboard, 2.3.3 for
motion, 3.1.1 for the language.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from cases import for_each
from nbconvert.exporters import HTMLExporter
from pages import build_without_reference, lay_out_book, quiet_page, typeset, violations
from places import ROOT
from whole import some

from course_tools.grading.assignments.editions import EDITION
from course_tools.grading.reports.class_report import page as class_report
from course_tools.grading.reports.copies import Cluster, Copies
from course_tools.grading.run.assignment import Assignment
from course_tools.grading.run.judge import Mark
from course_tools.grading.run.judge import page as feedback

NOTEBOOKS = sorted((ROOT / "exercises").glob("*/*.ipynb"))
#: Where nbconvert's own colours stand, JupyterLab's: prompts, and the words of code.
NOT_OURS = (".jp-InputPrompt", ".jp-OutputPrompt", ".highlight")
LONG = "transposed_scores_of_" * 12
pytestmark = [pytest.mark.browser]
EMPTY = nbformat.v4.new_notebook()
DOCUMENTS = {
    "feedback": feedback(
        Assignment("attention", EMPTY, EMPTY, {}, ""),
        "zoë <b>",
        [
            Mark("rows", 3.0, 3.0),
            Mark("a-cell-of-a-very-long-name", 2.0, 0.0, f"expected [[1, 2]]\n{LONG}"),
            Mark("explain", 4.0, None),
        ],
        ["Handed in late: 2 days.", "A test was put back."],
    ),
    "feedback without a note": feedback(
        Assignment("bert", EMPTY, EMPTY, {}, ""), "bo", [Mark("one", 1.0, 1.0)], []
    ),
    "report": class_report(
        "attention",
        {
            "ada": {"rows": 3.0, "explain": None},
            "bo": {"rows": 0.0, "explain": 4.0},
            LONG: {"rows": 2.0, "explain": 1.0},
        },
        {"rows": 3.0, "explain": 4.0},
        {"bo": ["wrote into the pipe", LONG]},
        Copies(
            [
                Cluster(
                    ("ada", "bo"),
                    "course_lib",
                    (0.6, 0.9),
                    ("ada", "bo"),
                    (("a = b.c(d)", f"v = {LONG}.c(u)"),),
                )
            ],
            ["each other", "course_lib"],
            {LONG: "It is no notebook."},
        ),
    ),
    "report of nobody": class_report(
        "attention", {}, {"rows": 3.0}, {}, Copies([], [], {})
    ),
}
FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']"
#: Press Tab once, and look where one is: at something new that shows it, or past the
#: end.
LANDED = """() => {
  const here = document.activeElement;
  if (here === document.body || here.dataset.reached) return null;
  here.dataset.reached = "yes";
  const style = getComputedStyle(here), drawn = getComputedStyle(here, "::after");
  return [here.outerHTML.slice(0, 80),
          [style, drawn].some(one => one.outlineStyle !== "none") || style.boxShadow !== "none"];
}"""  # noqa: E501
MOVES = """[...document.querySelectorAll("*")].filter(part => ["", "::before", "::after"].some(which => {
  const style = getComputedStyle(part, which);
  return style.animationName !== "none" || style.transitionDuration.split(", ").some(time => time !== "0s");
})).map(part => part.tagName + "." + part.className)"""  # noqa: E501
TRIAL = """\
A root $\\sqrt{d_k}$ in a line, and

```{math}
\\operatorname{softmax}(QK^\\top)V
```

:::{dropdown} An answer
Hidden, with $x_1$.
:::

```{code-cell} ipython3
print("a cell with a button that copies it")
```
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A page with formulas, a folded part and code, built with the real settings."""
    root = tmp_path_factory.mktemp("trial")
    lay_out_book(root, TRIAL)
    build_without_reference(root)
    return root / "_build" / "html"


def walked(page) -> tuple[list[str], list[str]]:
    """Go through a page by Tab alone: what is reached, and what of it shows no
    focus."""
    reached, unseen = [], []
    while True:
        page.keyboard.press("Tab")
        landed = page.evaluate(LANDED)
        if landed is None:
            return reached, unseen
        reached.append(landed[0])
        if not landed[1]:
            unseen.append(landed[0])


def missed(page) -> list[str]:
    """What is shown and can be used, and Tab did not reach.

    The link beside a heading shows only under a mouse; the list of contents beside the
    page has the same links.
    """
    return page.locator(FOCUSABLE).evaluate_all(
        "parts => parts.filter(part => !part.dataset.reached &&"
        " part.checkVisibility({visibilityProperty: true}))"
        ".map(part => part.outerHTML.slice(0, 80))"
    )


@for_each("document", DOCUMENTS.values())
def test_axe_finds_nothing_on_what_the_grader_writes(browser, document):
    for scheme in ("light", "dark"):
        with quiet_page(browser, color_scheme=scheme) as page:
            page.set_content(document)
            assert violations(page) == []


@for_each("document", DOCUMENTS.values())
def test_what_the_grader_writes_fits_a_narrow_window(browser, document):
    """What is wider scrolls in a box of its own, which the keyboard reaches."""
    with quiet_page(browser, viewport={"width": 320, "height": 700}) as page:
        page.set_content(document)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        scrolling = page.evaluate(
            "[...document.querySelectorAll('body *')].filter(part => part.scrollWidth >"
            " part.clientWidth && getComputedStyle(part).overflowX === 'auto')"
            ".map(part => part.tabIndex)"
        )
        assert set(scrolling) <= {0}
        walked(page)
        assert missed(page) == []


def test_the_report_of_a_class_is_reached_by_tab_and_shows_where_one_is(browser):
    with quiet_page(browser) as page:
        page.set_content(DOCUMENTS["report"])
        reached, unseen = walked(page)
        regions = page.locator("[role=region]")
        assert len(reached) == regions.count() == 5, "each box that can scroll"
        assert unseen == []


@pytest.mark.parametrize(
    ("content", "reached", "unreached", "unseen"),
    [
        ("<a href='#x'>one</a><button>two</button>", 2, 0, 0),
        ("<a href='#x'>one</a><input tabindex='-1'>", 1, 1, 0),
        ("<style>a:focus { outline: none }</style><a href='#x'>one</a>", 1, 0, 1),
    ],
)
def test_a_walk_tells_what_is_missed_and_what_shows_nothing(
    browser, content, reached, unreached, unseen
):
    with quiet_page(browser) as page:
        page.set_content(content)
        found, blind = walked(page)
        assert (len(found), len(missed(page)), len(blind)) == (
            reached,
            unreached,
            unseen,
        )


@pytest.fixture(scope="module")
def as_html(tmp_path_factory, trial):
    """A released notebook as nbconvert's HTML, with MathJax from disk."""
    folder = tmp_path_factory.mktemp("notebooks")
    mathjax = trial / "_static" / "mathjax" / "tex-chtml.js"
    exporter = HTMLExporter(
        mathjax_url=mathjax.as_uri(), require_js_url="", jquery_url=""
    )

    def write(path: Path) -> Path:
        place = folder / f"{path.stem}.html"
        place.write_text(exporter.from_filename(str(path))[0], encoding="utf-8")
        return place

    return write


@pytest.mark.slow
def test_axe_and_the_keyboard_go_through_released_notebooks(browser, as_html):
    for path in some(*NOTEBOOKS):
        with quiet_page(browser) as page:
            page.goto(as_html(path).as_uri())
            typeset(page)
            assert violations(page, NOT_OURS) == [], path.stem
            formulas = page.locator("mjx-container").count()
            assert page.locator("mjx-assistive-mml math").count() == formulas > 0
            walked(page)
            assert missed(page) == [], path.stem


@for_each("path", NOTEBOOKS)
def test_a_notebook_begins_with_its_title_and_skips_no_level_of_headings(path):
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    levels = [len(signs) for signs in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert [one for one in pairwise(levels) if one[1] > one[0] + 1] == []


@for_each("path", NOTEBOOKS)
def test_every_image_of_a_notebook_has_words(path):
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert re.findall(r"!\[\s*\]", text) == []
    assert re.findall(r"<img (?![^>]*\balt=\"[^\"])", text) == []


@pytest.mark.slow
def test_a_page_a_feedback_page_and_a_report_name_their_edition(trial):
    said = f"Edition {EDITION}"
    assert said in (trial / "index.html").read_text(encoding="utf-8")
    for name, text in DOCUMENTS.items():
        assert said in text, name


@pytest.mark.slow
def test_a_screen_reader_gets_each_formula_as_mathml(browser, trial):
    with quiet_page(browser) as page:
        page.goto((trial / "index.html").as_uri())
        typeset(page)
        shown = page.locator("mjx-container")
        assert shown.count() == 3
        assert page.locator("mjx-container mjx-assistive-mml math").count() == 3
        root = page.locator("mjx-assistive-mml math").first
        assert root.inner_html().startswith("<msqrt><msub><mi>d</mi><mi>k</mi>")
        hidden = shown.locator("mjx-math").evaluate_all(
            "parts => parts.map(part => part.getAttribute('aria-hidden'))"
        )
        assert hidden == ["true"] * 3, "what is drawn is not read a second time"


@pytest.mark.slow
def test_tab_goes_through_a_page_of_the_book_and_shows_where_one_is(browser, trial):
    with quiet_page(browser) as page:
        page.goto((trial / "index.html").as_uri())
        typeset(page)
        reached, unseen = walked(page)
        assert any("An answer" in part or "summary" in part for part in reached)
        assert not any("mjx-container" in part for part in reached)
        assert missed(page) == []
        assert unseen == []


@pytest.mark.slow
def test_nothing_moves_for_readers_who_want_no_motion(browser, trial):
    moving = {}
    for motion in ("reduce", "no-preference"):
        with quiet_page(browser, reduced_motion=motion) as page:
            page.goto((trial / "index.html").as_uri())
            moving[motion] = page.evaluate(MOVES)
    assert moving["reduce"] == []
    assert len(moving["no-preference"]) > 3
