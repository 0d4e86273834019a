"""The search among paragraphs in headless Chromium: pieces, vectors and hits are those
of the library.

The book of these tests has one page with the cell of book/search-pydocs.md, and the
data that this page has. What is expected comes from Python: `tokenizers` cuts, torch
averages, scikit-learn counts words. Keyboard: WCAG 2.2, criteria 2.1.1 and 2.4.7.
Changes announced: 4.1.3. Reflow: 1.4.10.
"""

import base64
import gzip
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pages import (
    address_of,
    build_without_reference,
    lay_out_named,
    quiet_page,
    serious_violations,
)
from whole import whole_only

from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch09_sentence_bert import static_search
from course_lab.ch09_sentence_bert.bm25 import Bm25
from course_lab.ch09_sentence_bert.search_explorer import restored
from course_lab.ch09_sentence_bert.sentence_encoders import StaticSentences
from course_lib.wordpiece.fast import FastWordPiece

pytestmark = [pytest.mark.browser, pytest.mark.slow, whole_only]

PAGE = """\
```{code-cell} ipython3
from course_lab.ch09_sentence_bert import static_search

static_search.make().explorer()
```
"""
HOSTILE = [
    "",
    "  ",
    "naïve Zürich",
    "\U0001f917 sort",
    "[MASK] list",
    "<b>bold</b> &amp;",
    "x" * 101,
    "İstanbul ẞ",
]
ASKED = "read the lines of a text file"


@pytest.fixture(scope="module")
def search_book(tmp_path_factory):
    """A built book with the search on a page of its own name."""
    root = tmp_path_factory.mktemp("search")
    lay_out_named(root, "search-pydocs", PAGE)
    build_without_reference(root)
    return root


@pytest.fixture(scope="module")
def data():
    """What the page loads, read by Python."""
    text = static_search.make().script.read_text()
    assert text.startswith("courseSearchData(")
    found = json.loads(text[len("courseSearchData(") : text.rindex(")")])
    return found | json.loads(gzip.decompress(base64.b64decode(found["collection"])))


@pytest.fixture(scope="module")
def peer(data):
    numbers = np.frombuffer(base64.b64decode(data["table"]), np.int8).reshape(
        -1, data["features"]
    )
    scales = np.frombuffer(base64.b64decode(data["scales"]), "<f4")
    return StaticSentences(
        torch.from_numpy(restored(numbers, scales)),
        FastWordPiece.load(CHECKPOINTS / "tiny"),
    )


def searcher_of(page):
    return page.get_by_role("group", name="Search in your browser")


def start(page):
    """Load the paragraphs by the keyboard: the box has the focus, Enter sends the
    question."""
    searcher_of(page).get_by_role("searchbox").press("Enter")
    searcher_of(page).get_by_role("list", name="By vectors").wait_for()


def shown(page, way: str) -> list[str]:
    return (
        searcher_of(page)
        .get_by_role("list", name=way)
        .locator("li p")
        .all_text_contents()
    )


def test_pieces_vectors_and_hits_are_those_of_python(browser, search_book, data, peer):
    """50 questions; BM25's sums are in float32 in Python and in float64 here, cosines
    in float32 in both."""
    paragraphs = data["paragraphs"].split("\n")
    questions = [
        *HOSTILE,
        *(
            text.split(". ")[0][:120]
            for text in paragraphs[:: len(paragraphs) // 42][:42]
        ),
    ]
    assert len(questions) == 50
    words = Bm25(paragraphs).scores(questions).double()
    cosines = (
        F.normalize(peer.encode(questions), dim=1)
        @ F.normalize(peer.encode(paragraphs), dim=1).T
    ).double()
    both = words / words.amax(dim=1, keepdim=True).clamp(min=1e-9) + cosines
    with quiet_page(browser) as page, address_of(search_book, "file") as address:
        page.goto(f"{address}/search-pydocs.html")
        start(page)
        ask = (
            "(root, text) => { const { encode, search } = root.courseSearch, { ids,"
            " vector } = encode(text);               return { ids, vector:"
            " Array.from(vector), found: search(text, 10) }; }"
        )
        for row, question in enumerate(questions):
            got = searcher_of(page).evaluate(ask, question)
            assert got["ids"] == peer.pieces([question])[0], question
            expected = F.normalize(peer.encode([question]), dim=1)[0]
            assert torch.allclose(
                torch.tensor(got["vector"], dtype=torch.float32), expected, atol=1e-5
            ), question
            for scores, hits in zip(
                (words[row], cosines[row], both[row]), got["found"], strict=True
            ):
                best = [
                    score for score in scores.topk(10).values.tolist() if score > 1e-6
                ]
                assert [hit["score"] for hit in hits][: len(best)] == pytest.approx(
                    best, abs=1e-4
                ), question
                own = scores[[hit["place"] for hit in hits]].tolist()
                assert [hit["score"] for hit in hits] == pytest.approx(own, abs=1e-4), (
                    question
                )


def test_a_question_typed_by_keyboard_is_answered_and_announced(browser, search_book):
    """Three lists, of what is in the paragraphs, and nothing that is typed becomes
    markup."""
    with quiet_page(browser) as page, address_of(search_book, "file") as address:
        page.goto(f"{address}/search-pydocs.html")
        searcher = searcher_of(page)
        box = searcher.get_by_role("searchbox", name="Your question")
        status = searcher.get_by_role("status")
        assert box.input_value() == static_search.QUESTION
        assert searcher.get_by_role("button").inner_text().endswith("MB)")
        box.focus()
        assert box.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
        start(page)
        found = static_search.make().told["found"]
        for way in (static_search.WORDS, static_search.VECTORS, static_search.BOTH):
            hits = shown(page, way)
            assert len(hits) == 5
            assert hits[:3] == [text for _, text in found[way]], (
                "as the table says, which Python wrote"
            )
        box.press("Control+a")
        box.press_sequentially(ASKED)
        searcher.get_by_text(f"Found for “{ASKED}”").wait_for()
        assert f"Found for “{ASKED}”" in status.inner_text()
        assert any("file" in text for text in shown(page, static_search.VECTORS))
        box.fill("<b>bold</b>")
        box.press("Enter")
        assert searcher.locator("b").count() == 0
        box.fill("")
        box.press("Enter")
        assert status.inner_text() == "Type a question."
        assert searcher.get_by_role("listitem").count() == 0


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_no_serious_violation_and_a_narrow_page_does_not_scroll(
    browser, search_book, theme
):
    with quiet_page(
        browser, color_scheme=theme, viewport={"width": 320, "height": 700}
    ) as page:
        page.goto((search_book / "_build" / "html" / "search-pydocs.html").as_uri())
        assert serious_violations(page) == []
        start(page)
        searcher_of(page).get_by_text("Licences of the texts").click()
        searcher_of(page).get_by_text("numpy").first.click()
        # the theme's, which fades in
        assert serious_violations(page, leave_out="#pst-back-to-top") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_without_a_script_the_example_stands_on_the_page(browser, search_book):
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto((search_book / "_build" / "html" / "search-pydocs.html").as_uri())
        table = page.get_by_role("table")
        assert static_search.QUESTION in table.inner_text()
        assert table.get_by_role("row").count() == 1 + 3 * static_search.SHOWN


def test_data_that_do_not_arrive_are_reported_in_words(browser, search_book):
    """The reader may press the button again."""
    with quiet_page(browser) as page:
        page.goto((search_book / "_build" / "html" / "search-pydocs.html").as_uri())
        settings = searcher_of(page).locator("script[type='application/json']")
        assert "_static/search/pydocs.js" in settings.text_content()
        page.evaluate(
            "() => { DecompressionStream = class { constructor() { throw new Error('no"
            " gzip here'); } }; }"
        )
        searcher_of(page).get_by_role("button").press("Enter")
        page.wait_for_function(
            "document.querySelector('.searcher-status').textContent.includes('no gzip"
            " here')"
        )
        assert (
            searcher_of(page).get_by_role("button").get_attribute("aria-disabled")
            is None
        )
