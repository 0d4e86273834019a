"""The tokenizer and the stepped figure in headless Chromium: the ids and offsets are
those of the library `tokenizers`.

What is expected comes from the library alone, built here from the vocabulary that
stands in the page: no code of the course takes part. Keyboard: WCAG 2.2, criteria 2.1.1
and 2.4.7. Names and roles: 4.1.2. Changes announced: 4.1.3. Reflow: 1.4.10.
"""

import json

import pytest
from pages import build_without_reference, lay_out_book, quiet_page, serious_violations
from tokenizers import (
    AddedToken,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from whole import whole_only

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abdefghimnoprstu東.,!</>&'0123[]"
VOCABULARY = [
    *SPECIAL,
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    "hug",
    "##gs",
    "##ug",
    "pun",
    "the",
    "##bot",
]
TYPED = [
    "The pugs hug 3 robots.",
    "hugs HUGS hUgs",
    "xylophone hug",  # x is unknown, and so is the whole word
    "",
    "   ",
    "a\u0301b \u00e9t\u00e9",  # accents typed apart and together
    # a character of two UTF-16 units, in a word and alone
    "\U0001f917hug \U0001f917 hug",
    "\U0001d400 \U00020000東東hug",
    # zero-width space and soft hyphen: gone, and the offsets bridge them
    "h\u200bu\u00adg s",
    "hug\u00a0pun\u3000the",
    "the [MASK] hugs a[SEP]b [mask]",
    "</script><b>hug</b> &amp; '",
    "a" * 100 + " " + "a" * 101,
    "\u0130stanbul STRASSE stra\u00dfe",
    "constructor __proto__ toString",
]
PAGE = """\
```{code-cell} ipython3
import json
from course_lab.ch04_wordpiece.wordpiece_page import character_tables
from course_lab.ch04_wordpiece.tokenizer_explorer import Encoded, tokenizer_explorer

stored = json.load(open("stored.json"))
recorded = [Encoded(**one) for one in stored["recorded"]]
tokenizer_explorer(stored["vocabulary"], *character_tables(), recorded[0], recorded, "the library")
```

```{code-cell} ipython3
from course_lib.figures.stepper import Row, Step, Table, stepped_figure

def step(number):
    rows = [Row(("h ##u", f"{number}/36"), marked=number == 2), Row(("<b>p</b>", "1/36"))]
    return Step(f"Step called {number}", [Table("Pairs", ("pair", "score"), rows)], f"Text of {number}.")

stepped_figure([step(number) for number in (1, 2, 3)], "Three steps")
```
"""  # noqa: E501


def library(vocabulary: list[str]) -> Tokenizer:
    """The library's BERT tokenizer, from its own parts."""
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(
        models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in SPECIAL]
    )
    return tokenizer


@pytest.fixture(scope="module")
def one_page(tmp_path_factory):
    """A built book of one page with a tokenizer and a stepped figure."""
    root = tmp_path_factory.mktemp("tokenizer")
    lay_out_book(root, PAGE)
    encodings = [(text, library(VOCABULARY).encode(text)) for text in TYPED]
    recorded = [
        {"text": t, "tokens": e.tokens, "ids": e.ids, "offsets": e.offsets}
        for t, e in encodings
    ]
    (root / "book" / "stored.json").write_text(
        json.dumps({"vocabulary": VOCABULARY, "recorded": recorded})
    )
    build_without_reference(root)
    return root, "index.html"


def tokenizer_of(page):
    return page.get_by_role("group", name="WordPiece in your browser")


def shown(tokenizer) -> list[tuple[str, int, tuple[int, int]]]:
    """What the list of pieces says: piece, id, offsets."""
    pieces = tokenizer.locator(".tokenizer-piece").all_text_contents()
    ids = [
        int(text.removeprefix("id "))
        for text in tokenizer.locator(".tokenizer-id").all_text_contents()
    ]
    offsets = [
        tuple(map(int, text.split("–")))
        for text in tokenizer.locator(".tokenizer-offsets").all_text_contents()
    ]
    return list(zip(pieces, ids, offsets, strict=True))


def expected(tokenizer: Tokenizer, text: str) -> list[tuple[str, int, tuple[int, int]]]:
    encoding = tokenizer.encode(text)
    return list(zip(encoding.tokens, encoding.ids, encoding.offsets, strict=True))


@whole_only
def test_the_chapter_gives_the_librarys_ids_and_offsets_for_100_recorded_sentences(
    browser, site
):
    with quiet_page(browser) as page:
        page.goto((site / "04-wordpiece.html").as_uri())
        tokenizer = tokenizer_of(page)
        data, recorded = (
            json.loads(tokenizer.locator(f"script.tokenizer-{name}").text_content())
            for name in ("data", "recorded")
        )
        peer = library(data["vocabulary"])
        sentences = recorded["sentences"]
        assert len({one["text"] for one in sentences}) == 100
        assert (
            sum(
                any(ord(character) > 127 for character in one["text"])
                for one in sentences
            )
            >= 20
        )
        unknown = data["vocabulary"].index("[UNK]")
        assert sum(unknown in one["ids"] for one in sentences) >= 5
        for one in sentences:
            encoding = peer.encode(one["text"])
            assert (one["ids"], one["offsets"]) == (
                encoding.ids,
                [list(pair) for pair in encoding.offsets],
            )
            # what a text field makes of it; both are spaces
            text = one["text"].replace("\r", "\n")
            tokenizer.get_by_role("textbox").fill(text)
            assert shown(tokenizer) == expected(peer, text), repr(text)
        tokenizer.get_by_role("button").click()
        assert (
            tokenizer.get_by_role("status")
            .nth(1)
            .inner_text()
            .startswith("100 of 100 recorded sentences have the ids")
        )


@pytest.mark.parametrize("text", TYPED)
def test_what_is_typed_gets_the_librarys_pieces_ids_and_offsets(
    browser, from_disk, text
):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        tokenizer = tokenizer_of(page)
        tokenizer.get_by_role("textbox").fill(text)
        assert shown(tokenizer) == expected(library(VOCABULARY), text)
        assert tokenizer.locator("b").count() == 0, "what is typed never becomes markup"


@whole_only
def test_characters_from_all_over_unicode_are_normalised_as_by_the_library(
    browser, from_disk
):
    """One code point in three, then one in seven, between two letters; the box takes
    2,000 UTF-16 units at a time."""
    pieces = "".join(
        chr(code) for code in [*range(0x20, 0xD800, 3), *range(0xE000, 0x20000, 7)]
    )
    peer = library(VOCABULARY)
    with quiet_page(browser) as page:
        page.goto(from_disk)
        tokenizer = tokenizer_of(page)
        box = tokenizer.get_by_role("textbox")
        for first in range(0, len(pieces), 390):
            text = " ".join(
                f"h{character}g" for character in pieces[first : first + 390]
            )
            box.fill(text)
            assert shown(tokenizer) == expected(peer, text), (
                f"from U+{ord(pieces[first]):04X}"
            )


def test_the_check_counts_sentences_that_differ(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        tokenizer = tokenizer_of(page)
        verdict = tokenizer.get_by_role("status").nth(1)
        tokenizer.get_by_role(
            "button", name="Check this browser against the library"
        ).click()
        assert (
            verdict.inner_text()
            == f"{len(TYPED)} of {len(TYPED)} recorded sentences have the ids and"
            " offsets of the library."
        )
        tokenizer.locator("script.tokenizer-recorded").evaluate(
            """node => { const recorded = JSON.parse(node.textContent);
                         recorded.sentences[0].ids[1] += 1;
                         recorded.sentences[1].offsets[2][1] += 1;
                         recorded.sentences[2].ids.pop();
                         node.textContent = JSON.stringify(recorded); }"""
        )
        tokenizer.get_by_role("button").click()
        assert verdict.inner_text().startswith(f"{len(TYPED) - 3} of {len(TYPED)} ")


def test_a_screen_reader_hears_the_box_the_counts_and_the_pieces(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        tokenizer = tokenizer_of(page)
        box = tokenizer.get_by_role("textbox", name="Your sentence")
        assert box.input_value() == TYPED[0]
        assert shown(tokenizer) == expected(library(VOCABULARY), TYPED[0])
        # the caret is at the end: an unknown letter follows the last full stop
        box.press_sequentially("x")
        status = tokenizer.get_by_role("status").first
        count = len(expected(library(VOCABULARY), TYPED[0] + "x"))
        assert (
            status.inner_text()
            == f"7 words in {count - 2} pieces, 1 unknown; with [CLS] and [SEP] {count}"
            " ids."
        )
        items = tokenizer.get_by_role(
            "list", name="Pieces, ids and offsets"
        ).get_by_role("listitem")
        assert items.count() == count
        kinds = items.evaluate_all(
            "nodes => nodes.map(node => node.dataset.kind || 'word')"
        )
        assert kinds[0] == kinds[-1] == "special"
        assert kinds[-2] == "unknown"
        assert {"word", "continuation"} <= set(kinds)


def test_without_a_script_tables_and_steps_stand_on_the_page(browser, from_disk):
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto(from_disk)
        rows = page.get_by_role("table", name=TYPED[0]).get_by_role("row")
        cells = [
            rows.nth(number).locator("th, td").all_inner_texts()
            for number in range(1, rows.count())
        ]
        wanted = expected(library(VOCABULARY), TYPED[0])
        assert cells == [
            [t, str(n), f"{a}–{b}", TYPED[0][a:b].strip()] for t, n, (a, b) in wanted
        ]
        assert page.locator(".stepper-step:visible").count() == 3
        assert page.locator(".stepper").get_by_role("button").count() == 0


def test_buttons_and_arrow_keys_go_through_the_steps(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        stepper = page.get_by_role("group", name="Three steps")
        visible = stepper.locator(".stepper-step:visible")
        status = stepper.get_by_role("status")
        back, following = (
            stepper.get_by_role("button", name=name) for name in ("Back", "Next")
        )

        def at(number: int) -> bool:
            assert visible.count() == 1
            assert f"Text of {number}." in visible.inner_text()
            return status.inner_text() == f"Step {number} of 3: Step called {number}"

        assert at(1)
        assert back.get_attribute("aria-disabled") == "true"
        back.focus()
        page.keyboard.press("Enter")
        assert at(1), "there is nothing before the first step"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert at(2)
        marked = (
            visible.locator("tr[data-marked]")
            .get_by_role("rowheader")
            .all_inner_texts()
        )
        assert marked == ["h ##u chosen"], "a screen reader hears which row is marked"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert at(3)
        assert following.get_attribute("aria-disabled") == "true"
        assert page.evaluate("document.activeElement.textContent") == "Next", (
            "the focus stays where it was"
        )
        page.keyboard.press("ArrowLeft")
        assert at(2)
        page.keyboard.press("Home")
        assert at(1)
        assert stepper.locator("b").count() == 0


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_no_serious_violation(browser, from_disk, theme):
    with quiet_page(browser, color_scheme=theme) as page:
        page.goto(from_disk)
        assert serious_violations(page) == []
        tokenizer_of(page).get_by_role("textbox").fill(
            "xylophone hugs \U0001f917 [MASK]"
        )
        tokenizer_of(page).locator("summary").click()
        page.get_by_role("button", name="Next").click()
        assert serious_violations(page) == []
        page_colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for box in page.locator(".text_html").all():
            colour = box.evaluate("node => getComputedStyle(node).backgroundColor")
            assert colour in (page_colour, "rgba(0, 0, 0, 0)"), (
                "the parts stand on the page, not on a box"
            )


def test_a_narrow_page_does_not_scroll_sideways(browser, from_disk):
    with quiet_page(browser, viewport={"width": 320, "height": 700}) as page:
        page.goto(from_disk)
        tokenizer_of(page).locator("summary").click()
        tokenizer_of(page).get_by_role("textbox").fill("a" * 100)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
