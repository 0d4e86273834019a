"""The attention explorer in headless Chromium: each weight that it shows is the true
one, however it is reached.

Keyboard: WCAG 2.2, criteria 2.1.1 and 2.4.7. Names and roles: 4.1.2. Changes announced:
4.1.3. Reflow: 1.4.10. Languages of parts: 3.1.2.
"""

import json
from itertools import product

import numpy as np
import pytest
from pages import build_without_reference, lay_out_book, quiet_page, serious_violations
from whole import whole_only

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LAYERS, HEADS = 3, 2
SENTENCES = {
    "the cat sat": (["the", "cat", "sat"], ["le", "chat", "était", "assis"]),
    # Words that would end the script, or become an element, if they were not escaped.
    "hostile words": (["</script>", "<b>bold</b>", "&lt;", '"', "it"], ["<!--", "il"]),
}
KINDS = ("self-attention", "cross-attention")
PAGE = """\
```{code-cell} ipython3
import json
import numpy as np
from course_lib.figures.explorer import View, attention_explorer

stored = np.load("weights.npz")
views = []
for name, (english, french) in json.load(open("words.json")).items():
    views.append(View(name, "self-attention", english, english, stored[f"{name}, self-attention"]))
    views.append(View(name, "cross-attention", french, english, stored[f"{name}, cross-attention"], "fr", "en"))
attention_explorer(views, "Two sentences")
```

```{code-cell} ipython3
attention_explorer([View("alone", "self-attention", ["un"], ["un"], np.ones((1, 1, 1, 1)), "fr", "fr")], "One word")
```
"""  # noqa: E501


def softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def weights():
    """Weights that differ in every place: layers, heads, query words, key words."""
    rng = np.random.default_rng(8)
    return {
        (name, kind): softmax(
            rng.normal(scale=1.5, size=(LAYERS, HEADS, len(queries), len(english)))
        )
        for name, (english, french) in SENTENCES.items()
        for kind, queries in zip(KINDS, (english, french), strict=True)
    }


@pytest.fixture(scope="module")
def one_page(tmp_path_factory, weights):
    """A built book of one page with two explorers."""
    root = tmp_path_factory.mktemp("explorer")
    lay_out_book(root, PAGE)
    np.savez(
        root / "book" / "weights.npz",
        **{", ".join(key): values for key, values in weights.items()},
    )
    (root / "book" / "words.json").write_text(json.dumps(SENTENCES))
    build_without_reference(root)
    return root, "index.html"


def explorers(page):
    return page.get_by_role(
        "group", name="Two sentences", exact=True
    ), page.get_by_role("group", name="One word")


def true_weights(
    weights, sentence: str, kind: str, layer: int, head: int | None, word: int
) -> list[str]:
    """As they should be shown; head None is the mean of the heads."""
    table = weights[sentence, kind][layer]
    row = table.mean(axis=0)[word] if head is None else table[head, word]
    return [f"{round(100 * value) / 100:.2f}" for value in row]


def shown_weights(explorer) -> list[str]:
    return explorer.locator(".explorer-weight").all_inner_texts()


def bar_heights(explorer) -> list[str]:
    return explorer.locator(".explorer-bar").evaluate_all(
        "bars => bars.map(bar => bar.style.height)"
    )


@whole_only
def test_every_choice_shows_the_true_weights(browser, from_disk, weights):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        explorer, _ = explorers(page)
        names = ("Sentence", "Attention", "Layer", "Head")
        menu = {
            name: explorer.get_by_role("combobox", name=name, exact=True)
            for name in names
        }
        seen = set()
        for (sentence, (english, french)), kind in product(SENTENCES.items(), KINDS):
            menu["Sentence"].select_option(sentence)
            menu["Attention"].select_option(kind)
            queries = english if kind == "self-attention" else french
            for layer, head, word in product(
                range(LAYERS), [*range(HEADS), None], range(len(queries))
            ):
                menu["Layer"].select_option(str(layer + 1))
                menu["Head"].select_option("mean" if head is None else str(head + 1))
                explorer.get_by_role("radio").nth(word).check()
                expected = true_weights(weights, sentence, kind, layer, head, word)
                assert shown_weights(explorer) == expected
                assert bar_heights(explorer) == [
                    f"{round(100 * float(figure))}%" for figure in expected
                ]
                seen.add(tuple(expected))
            assert (
                explorer.locator(".explorer-words label").all_inner_texts() == queries
            )
            keys = explorer.get_by_role("listitem")
            assert [text.split()[0] for text in keys.all_inner_texts()] == [
                word.split()[0] for word in english
            ]
        assert len(seen) > 50, (
            "the choices hardly differ: this test could not tell one from another"
        )


def test_the_keyboard_alone_reaches_every_choice(browser, from_disk, weights):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        explorer, _ = explorers(page)

        def focused() -> str:
            return page.evaluate(
                "(document.activeElement.labels || [{}])[0].textContent"
            )

        def outlined(selector: str) -> bool:
            return explorer.locator(selector).evaluate(
                "node => getComputedStyle(node).outlineStyle !== 'none'"
            )

        explorer.evaluate("node => { node.tabIndex = -1; node.focus(); }")
        for name in ("Sentence", "Attention", "Layer", "Head"):
            page.keyboard.press("Tab")
            assert focused().startswith(f"{name} ")
            assert outlined("select:focus")
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        assert focused() == SENTENCES["hostile words"][1][0]
        assert outlined("label:has(input:focus)")
        page.keyboard.press("ArrowRight")
        assert focused() == "il"
        assert outlined("label:has(input:focus)")
        assert shown_weights(explorer) == true_weights(
            weights, "hostile words", "cross-attention", 1, 1, 1
        )
        page.keyboard.press("ArrowLeft")
        assert shown_weights(explorer) == true_weights(
            weights, "hostile words", "cross-attention", 1, 1, 0
        )
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY", (
            "the words are one stop of the Tab key"
        )


def test_a_pointer_previews_a_word_and_a_click_keeps_it(browser, from_disk, weights):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        explorer, _ = explorers(page)
        words = explorer.locator(".explorer-words label")

        def expected(word: int) -> list[str]:
            return true_weights(weights, "the cat sat", "self-attention", 0, 0, word)

        assert shown_weights(explorer) == expected(0)
        words.nth(1).hover()
        assert shown_weights(explorer) == expected(1)
        assert explorer.locator("label[data-shown]").all_inner_texts() == ["cat"]
        page.mouse.move(0, 0)
        assert shown_weights(explorer) == expected(0), (
            "what was previewed goes with the pointer"
        )
        words.nth(2).click()
        page.mouse.move(0, 0)
        assert shown_weights(explorer) == expected(2)
        words.nth(1).hover()
        # from the third word, which has the focus, to the second
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        assert shown_weights(explorer) == expected(0), (
            "the keyboard has the last word while the pointer rests"
        )


def test_a_touch_chooses_a_word(browser, from_disk, weights):
    with quiet_page(
        browser, has_touch=True, is_mobile=True, viewport={"width": 360, "height": 700}
    ) as page:
        page.goto(from_disk)
        explorer, _ = explorers(page)
        explorer.locator(".explorer-words label").nth(2).tap()
        assert shown_weights(explorer) == true_weights(
            weights, "the cat sat", "self-attention", 0, 0, 2
        )
        small = [
            box
            for label in explorer.locator(".explorer-words label").all()
            if (box := label.bounding_box())
        ]
        assert min(min(box["width"], box["height"]) for box in small) >= 24, (
            "WCAG 2.2, criterion 2.5.8"
        )


def test_a_screen_reader_hears_names_roles_and_the_strongest_weights(
    browser, from_disk, weights
):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        explorer, _ = explorers(page)
        explorer.get_by_role("combobox", name="Attention").select_option(
            "cross-attention"
        )
        explorer.get_by_role("combobox", name="Layer").select_option("3")
        explorer.get_by_role("combobox", name="Head").select_option("mean")
        words = explorer.get_by_role("group", name="Word that attends (query)")
        words.get_by_role("radio", name="chat", exact=True).check()
        assert words.get_by_role("radio").count() == 4
        assert (
            explorer.get_by_role("list", name="Key words and their weights")
            .get_by_role("listitem")
            .count()
            == 3
        )

        figures = true_weights(weights, "the cat sat", "cross-attention", 2, None, 1)
        row = weights["the cat sat", "cross-attention"][2].mean(axis=0)[1]
        best = ", ".join(
            f"{SENTENCES['the cat sat'][0][place]} {figures[place]}"
            for place in np.argsort(-row)
        )
        said = explorer.get_by_role("status").inner_text()
        assert (
            said
            == f"chat (word 2, layer 3, mean of the heads) attends most to: {best}."
        )
        spoken = (
            explorer.get_by_role("status")
            .locator("[lang]")
            .evaluate_all("nodes => nodes.map(node => node.lang)")
        )
        assert spoken == ["fr", "en", "en", "en"]
        assert (
            explorer.locator(".explorer-column").first.get_attribute("aria-hidden")
            == "true"
        )


def test_explorers_on_one_page_do_not_disturb_each_other(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        first, second = explorers(page)
        first.get_by_role("combobox", name="Sentence").select_option("hostile words")
        first.get_by_role("radio").nth(4).check()
        assert second.get_by_role("radio", name="un").is_checked()
        assert shown_weights(second) == ["1.00"]
        assert second.get_by_role("combobox").count() == 0, (
            "a menu without a choice is left out"
        )
        second.get_by_role("radio").first.check()
        assert first.get_by_role("radio").nth(4).is_checked()


def test_words_stay_words_and_never_become_markup(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        explorer, _ = explorers(page)
        explorer.get_by_role("combobox", name="Sentence").select_option("hostile words")
        assert (
            explorer.locator(".explorer-words label").all_inner_texts()
            == SENTENCES["hostile words"][0]
        )
        assert explorer.locator("b").count() == 0


@pytest.mark.parametrize("script", [True, False])
def test_tables_say_the_largest_weight_of_each_word_with_and_without_the_script(
    browser, from_disk, weights, script
):
    with quiet_page(browser, java_script_enabled=script) as page:
        page.goto(from_disk)
        tables = page.locator(".explorer-tables").first
        inner = tables.locator("details").first
        assert inner.is_visible() is not script, (
            "tables are open where they are all there is"
        )
        if script:
            tables.locator("summary").first.click()
        inner.locator("summary").click()
        rows = inner.get_by_role("table", name="cross-attention").get_by_role("row")
        assert rows.nth(0).locator("th").nth(4).inner_text() == "layer 2, head 2"
        english = SENTENCES["the cat sat"][0]
        for place, word in enumerate(SENTENCES["the cat sat"][1]):
            columns = weights["the cat sat", "cross-attention"].reshape(
                LAYERS * HEADS, 4, 3
            )[:, place]
            cells = [f"{english[row.argmax()]} {row.max():.2f}" for row in columns]
            assert rows.nth(place + 1).locator("th, td").all_inner_texts() == [
                word,
                *cells,
            ]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_no_serious_violation(browser, from_disk, theme):
    with quiet_page(browser, color_scheme=theme) as page:
        page.goto(from_disk)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert serious_violations(page) == []
        for summary in page.locator(".explorer-tables summary").all():
            summary.click()
        assert serious_violations(page) == []
        page_colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        box = page.locator(".text_html").first.evaluate(
            "node => getComputedStyle(node).backgroundColor"
        )
        assert box in (page_colour, "rgba(0, 0, 0, 0)"), (
            "the explorer stands on the page, not on a box"
        )


def test_a_narrow_page_does_not_scroll_sideways(browser, from_disk):
    with quiet_page(browser, viewport={"width": 320, "height": 700}) as page:
        page.goto(from_disk)
        for summary in page.locator(".explorer-tables summary").all():
            summary.click()
        widths = page.locator(".attention-explorer").evaluate_all(
            "nodes => nodes.map(node => [node.scrollWidth, node.clientWidth])"
        )
        assert all(scroll <= client for scroll, client in widths)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_bars_jump_for_readers_who_want_no_motion(browser, from_disk):
    durations = []
    for motion in ("reduce", "no-preference"):
        with quiet_page(browser, reduced_motion=motion) as page:
            page.goto(from_disk)
            bar = page.locator(".explorer-bar").first
            durations.append(
                bar.evaluate("node => getComputedStyle(node).transitionDuration")
            )
    assert durations == ["0s", "0.15s"]
