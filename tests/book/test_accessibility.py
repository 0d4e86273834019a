"""The pages of the built site before axe, light and dark: a file of its own, so that
two workers share the pages."""

import pytest
from pages import (
    ALL_BUT_CONTRAST,
    CONTRAST,
    fade_repeats,
    hide_repeats,
    of_every_kind,
    quiet_page,
    serious_violations,
    typeset,
    written,
)
from whole import WHOLE

# One worker builds and opens the site, however many there are.
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIDEBAR = ".bd-sidebar-primary"
#: What `make test` looks at: one page of each kind, written and generated.
REPRESENTATIVES = {
    False: ["index.html", "01-seq2seq-attention.html", "teaching.html"],
    True: ["_generated/api/chapter-01.html", "_generated/data/stories.html"],
}


IS_DARK = (
    "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).slice(0,"
    " 3).every(part => part < 60)"
)


def colour(page, scheme: str) -> None:
    """Ask for a light or a dark page, and wait until its background is.

    Colours do not fade here: a long page would be looked at while some of its words
    still have the old one.
    """
    page.add_style_tag(
        content=(
            "*, *::before, *::after { transition: none !important; animation: none"
            " !important }"
        )
    )
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(IS_DARK if scheme == "dark" else f"!({IS_DARK})")


def test_code_is_hidden_from_axe_only_when_all_its_kinds_were_seen_in_the_same_place(
    browser,
):
    block = '<div class="highlight"><pre><span class="k">import</span></pre></div>'
    odd = block.replace('class="k"', 'class="k" style="color: rgb(250, 250, 250)"')
    cells = [
        block,
        block,
        f'<div class="warning">{block}</div>',
        odd,
        block.replace('"k"', '"n"'),
    ]
    seen = set()
    with quiet_page(browser, color_scheme="light") as page:
        for shown in ([True, False, True, True, True], [False] * 5):
            page.set_content(
                "<html lang='en'><title>t</title>"
                f"<body><main>{''.join(cells)}</main></body></html>"
            )
            hide_repeats(page, seen)
            assert [
                part.is_visible() for part in page.locator(".highlight").all()
            ] == shown
            found = serious_violations(page, which=CONTRAST)
            assert len(found) == sum(shown[3:4]), "pale on white, as long as it is new"


def test_an_element_is_hidden_from_axe_only_when_its_like_was_seen_in_its_colours(
    browser,
):
    cell = (
        '<p style="background: black"><b style="color: white">word <i style="color:'
        ' white">word</i></b></p>'
    )
    on_gold = cell.replace("black", "gold")
    struck = cell.replace("i>", "s>").replace("<i ", "<s ")
    grey = cell.replace("white", "dimgrey", 1)
    large = cell.replace('"color', '"font-size: 99px; color', 1)
    cells = [cell, on_gold, struck, grey, large]
    seen = set()
    with quiet_page(browser, color_scheme="light") as page:
        for number, (shown, pale) in enumerate(
            [(2, 0), (2, 2), (1, 0), (1, 1), (2, 0)]
        ):
            page.set_content(
                "<html lang='en'><title>t</title>"
                f"<main>{''.join(cells[: number + 1])}</main>"
            )
            # looked at again, as when a page turns dark, the same are shown
            for known in (set(seen), seen):
                fade_repeats(page, known)
            assert (
                sum(word.is_visible() for word in page.locator("b, i, s").all())
                == shown
            )
            assert len(serious_violations(page, which=CONTRAST)) == pale
        page.set_content(
            "<html lang='en'><title>t</title><main><b style='color:"
            " dimgrey'>word</b></main>"
        )
        # of the page itself, which has no word of its own
        for ground, pale in (("white", 0), ("black", 1)):
            page.evaluate(
                "ground => { document.body.style.background = ground }", ground
            )
            fade_repeats(page, seen)
            assert len(serious_violations(page, which=CONTRAST)) == pale


@pytest.mark.parametrize(
    "before",
    ["<p><s hidden>word</s></p>", "<p><s> </s></p>", "<nav><p><s>word</s></p></nav>"],
)
def test_what_axe_has_not_looked_at_hides_nothing_from_it(browser, before):
    """Not shown, without words, or left out."""
    seen, pale = set(), "<main><p><s>word</s></p></main>"
    with quiet_page(browser, color_scheme="light") as page:
        for part in (f"<main>{before}</main>", pale, pale.replace("main", "nav")):
            page.set_content(
                "<html lang='en'><title>t</title><style>s { color: silver"
                f" }}</style>{part}"
            )
            fade_repeats(page, seen, "nav")
            found = serious_violations(page, "nav", CONTRAST)
            assert len(found) == (part == pale)


@pytest.mark.parametrize(
    "generated", [False, True], ids=["written pages", "generated pages"]
)
def test_axe_finds_no_serious_violation_light_or_dark(browser, site, generated):
    """WCAG as axe checks it. A dark page differs from a light one by its colours alone.

    `make test` looks at a page of each kind, `make test-grading` at all. Of the
    generated pages that is enough to meet every kind of element that they have. The
    sidebar is one and the same on all pages; with 200 links it is most of a generated
    page, and is checked on the written ones. Of code and formulas it sees each kind of
    element once, and of colours each that a kind of element has on a background.
    """
    names = REPRESENTATIVES[generated]
    if WHOLE:
        names = of_every_kind(site) if generated else written(site)
        assert len(names) > len(REPRESENTATIVES[generated])
    leave_out = SIDEBAR if generated else None
    found, seen, coloured = [], set(), set()
    with quiet_page(browser, color_scheme="light") as page:
        for name in names:
            page.goto((site / name).as_uri())
            typeset(page)
            assert page.locator(SIDEBAR).count() == 1, name
            hide_repeats(page, seen)
            found += [
                f"{name}: {violation}"
                for violation in serious_violations(page, leave_out, ALL_BUT_CONTRAST)
            ]
            for scheme in ("light", "dark"):
                colour(page, scheme)
                fade_repeats(page, coloured, leave_out)
                found += [
                    f"{name}, {scheme}: {pale}"
                    for pale in serious_violations(page, leave_out, CONTRAST)
                ]
    assert found == []
