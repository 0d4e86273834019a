"""The slides: what each deck shows is on its page, fits its slides, and can be read and
operated."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup
from pages import AXE_OPTIONS, quiet_page
from places import BOOK, ROOT
from whole import first_or_all, whole_only

from course_tools.site.decks import FOLDER, SLIDES, WORDS, decks, words

# One worker builds and opens the site, however many there are.
pytestmark = [pytest.mark.slow]

DECKS = [path.stem for path in decks(ROOT)]
SMALLEST = 10  # pixels of a letter at 1280 by 720, sub- and superscripts aside

#: Of the slide that is shown: what reaches beyond its room, what lies on other text,
#: what must be scrolled, and letters that are too small.
FAULTS = """smallest => {
  const slide = document.querySelector(".slide.current"), box = slide.getBoundingClientRect();
  const floor = slide.querySelector("footer").getBoundingClientRect().top + 2;
  const seen = part => part.getClientRects().length && getComputedStyle(part).visibility === "visible";
  const parts = [...slide.querySelectorAll("h1, h2, .text *, .fit *")].filter(seen)
    .filter(part => !part.closest("mjx-assistive-mml, title, desc, style, marker, defs"));
  const faults = [];
  for (const part of parts) {
    const { left, right, top, bottom } = part.getBoundingClientRect();
    const name = `${part.tagName} ${part.textContent.trim().slice(0, 30)}`;
    if (!part.closest("mjx-container, svg") || part.matches("mjx-math, svg, svg text"))
      if (left < box.left || right > box.right + 1 || top < box.top || bottom > floor) faults.push(`outside: ${name}`);
    if (part.matches("pre, .stepper-frame") && part.scrollWidth > part.clientWidth + 1) faults.push(`scrolls: ${name}`);
    if (part.matches("p, li, td, th, pre, text:not(.sub)") && part.textContent.trim()) {
      const svg = part.closest("svg");
      const zoom = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : part.currentCSSZoom;
      const size = parseFloat(getComputedStyle(part).fontSize) * zoom;
      if (size < smallest) faults.push(`${size.toFixed(1)} pixels: ${name}`);
    }
  }
  const text = slide.querySelector(".text")?.getBoundingClientRect(), shown = slide.querySelector(".shown")?.getBoundingClientRect();
  if (text && shown && text.bottom > shown.top + 2 && text.right > shown.left + 2) faults.push("text on what is shown");
  return faults;
}"""  # noqa: E501


def slides(site, name):
    page = (site / FOLDER / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(page, "html.parser").select(".slide")


def open_deck(page, site, name, search=""):
    page.goto((site / FOLDER / f"{name}.html").as_uri() + search)
    page.wait_for_selector("html[data-ready]", state="attached")


def show(page, number):
    page.evaluate(f"location.hash = '#{number}'")
    page.wait_for_selector(f".slide.current:nth-child({number})")


def unveil(page):
    """Show also what a slide shows later."""
    for part in page.locator(".current .later").all():
        part.evaluate("part => part.classList.add('answered')")


def current(page):
    return int(page.evaluate("location.hash.slice(1)"))


def test_each_chapter_has_a_deck():
    chapters = {path.stem for path in BOOK.glob("[0-9][0-9]-*.md")}
    assert {name for name in chapters if not name.endswith("-lab")} == set(DECKS)


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_is_a_lecture_long_and_no_slide_is_full_of_prose(site, name):
    """The build fails where a label does not exist; here each slide has what it
    asked for."""
    found = slides(site, name)
    assert len(found) in SLIDES
    asked = {slide["data-minutes"] for slide in found if slide.select(".question")}
    assert asked <= {"5"}, "the plans for teaching give a question five minutes"
    full = {slide.h2.text: words(slide) for slide in found[1:] if words(slide) > WORDS}
    assert full == {}
    silent = [
        slide.h2.text
        for slide in found[2:]
        if slide.footer.a and not slide.select_one(".notes").text.strip()
    ]
    assert silent == [], "without notes"
    bare = [slide.h2.text for slide in found[1:] if not slide.select(".text, .fit")]
    assert bare == []


@pytest.mark.parametrize("name", DECKS)
def test_all_that_a_slide_loads_or_links_to_is_in_the_site(site, name):
    page = (site / FOLDER / f"{name}.html").read_text(encoding="utf-8")
    linked = re.findall(r'(?:href|src)="([^"#]+)(?:#([^"]+))?"', page)
    local = {(file, label) for file, label in linked if ":" not in file}
    missing = [file for file, _ in local if not (site / FOLDER / file).is_file()]
    own = [label for file, label in local if file == f"../{name}.html" and label]
    ids = set(re.findall(r'id="([^"]+)"', (site / f"{name}.html").read_text("utf-8")))
    assert (missing, set(own) - ids) == ([], set())
    assert len(own) > len(slides(site, name)) / 2, "most slides say where they are from"


@pytest.mark.browser
@pytest.mark.parametrize("name", [*first_or_all(*DECKS), "index"])
def test_nothing_is_cut_off_or_too_small_at_1280_by_720(browser, site, name):
    """Each slide, from disk, without a network."""
    faults = {}
    with quiet_page(browser, viewport={"width": 1280, "height": 720}) as page:
        open_deck(page, site, name)
        for number in range(1, len(slides(site, name)) + 1):
            show(page, number)
            unveil(page)
            if found := page.evaluate(FAULTS, SMALLEST):
                faults[number] = found
    assert faults == {}


@pytest.mark.browser
@pytest.mark.parametrize("name", first_or_all(*DECKS))
def test_axe_finds_nothing_on_a_slide_a_step_an_answer_or_the_controls(
    browser, site, name
):
    """Of moderate impact or more. The deck as printed has each step."""
    found = []
    with quiet_page(browser, viewport={"width": 1280, "height": 720}) as page:
        for search in ("", "?print-pdf"):
            open_deck(page, site, name, search)
            for violation in (
                Axe().run(page, options=AXE_OPTIONS).response["violations"]
            ):
                if violation["impact"] != "minor":
                    parts = [node["html"][:99] for node in violation["nodes"]]
                    found.append((violation["help"], parts[:3]))
    assert found == []


@pytest.mark.browser
def test_what_is_cut_off_or_small_is_seen(browser, site):
    name = DECKS[0]
    listing = next(
        n for n, one in enumerate(slides(site, name), 1) if one.select("pre")
    )
    with quiet_page(browser, viewport={"width": 1280, "height": 720}) as page:
        open_deck(page, site, name)
        show(page, listing)
        faults = []
        for zoom in (4, 0.4):
            page.locator(".current .fit").evaluate(
                "(part, zoom) => { part.style.zoom = zoom }", zoom
            )
            faults.append({found.split(":")[0] for found in page.evaluate(FAULTS, 10)})
    assert "outside" in faults[0]
    assert faults[1] == {"6.0 pixels"}


@pytest.mark.browser
def test_keys_go_through_steps_and_answers_before_they_turn_the_slide(browser, site):
    name = DECKS[0]
    found = slides(site, name)
    stepped = next(n for n, one in enumerate(found, 1) if one.select(".stepper"))
    asked = next(n for n, one in enumerate(found, 1) if one.select(".question"))
    later = next(n for n, one in enumerate(found, 1) if one.select(".later"))
    with quiet_page(browser, viewport={"width": 1280, "height": 720}) as page:
        open_deck(page, site, name)
        for key, at in [("ArrowRight", 2), ("PageDown", 3), (" ", 4), ("PageUp", 3)]:
            page.keyboard.press(key)
            assert current(page) == at, key
        page.keyboard.press("End")
        assert current(page) == len(found)
        page.keyboard.press("Home")
        assert current(page) == 1

        show(page, stepped)
        steps = len(found[stepped - 1].select(".stepper-step"))
        shown = page.locator(".current .stepper-step:not([hidden])")
        for step in range(1, steps):
            page.keyboard.press("ArrowRight")
            assert (current(page), shown.count()) == (stepped, 1)
            title = page.locator(".current .stepper-status").inner_text()
            assert title.startswith(f"Step {step + 1} of {steps}")
        page.keyboard.press("ArrowRight")
        assert current(page) == stepped + 1

        show(page, asked)
        assert page.locator(".answered").count() == 0
        page.keyboard.press("ArrowRight")
        assert page.locator(".current .answered").count() == 1
        assert current(page) == asked
        page.keyboard.press("ArrowRight")
        assert current(page) == asked + 1

        show(page, later)
        for seen in (False, True):
            assert page.locator(".current .fit").is_visible() == seen
            page.keyboard.press("ArrowRight")
        assert current(page) == later + 1


@pytest.mark.browser
def test_the_speakers_window_shows_the_notes_and_turns_with_the_slides(browser, site):
    """Both ways; each window is of a file, whose origin no other page has."""
    with quiet_page(browser, viewport={"width": 1280, "height": 720}) as page:
        open_deck(page, site, DECKS[0])
        with page.context.expect_page() as opened:
            page.keyboard.press("s")
        notes = opened.value
        notes.wait_for_selector("html[data-ready]", state="attached")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        notes.wait_for_function("location.hash === '#3'")
        said = slides(site, DECKS[0])[2].select_one(".notes").text.split()[:4]
        assert notes.locator(".panel .notes").inner_text().split()[:4] == said
        takes = [int(one["data-minutes"]) for one in slides(site, DECKS[0])]
        told = f"About {takes[2]} min, {sum(takes[:3])} of {sum(takes)} at its end"
        assert notes.locator(".panel .next").inner_text().startswith(told)
        notes.keyboard.press("ArrowRight")
        page.wait_for_function("location.hash === '#4'")


@pytest.mark.browser
@pytest.mark.parametrize("name", first_or_all(*DECKS))
def test_a_deck_is_printed_with_a_page_for_each_step_and_each_answer(
    browser, site, name
):
    pages = sum(
        max(1, len(one.select(".stepper-step")), 2 * len(one.select(".question")))
        for one in slides(site, name)
    )
    with quiet_page(browser) as page:
        open_deck(page, site, name, "?print-pdf")
        printed = page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == pages


@whole_only
@pytest.mark.browser
def test_without_a_script_all_slides_stand_on_the_page(browser, site):
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto((site / FOLDER / f"{DECKS[0]}.html").as_uri())
        count = len(slides(site, DECKS[0]))
        assert page.locator(".slide:visible").count() == count
