"""The slides: what each deck shows is on its page, fits its slides, and can be read and
operated."""

import re

import pytest
from bs4 import BeautifulSoup
from pages import ALL_BUT_CONTRAST, faint, quiet_page, run_axe
from places import BOOK, ROOT
from whole import some, whole_only

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


def test_a_deck_is_a_lecture_long_and_no_slide_is_full_of_prose(site):
    """The build fails where a label does not exist; here each slide has what it
    asked for."""
    faults = []
    for name in DECKS:
        found = slides(site, name)
        if len(found) not in SLIDES:
            faults.append(f"{name} has {len(found)} slides")
        asked = {slide["data-minutes"] for slide in found if slide.select(".question")}
        if asked - {"5"}:  # what the plans for teaching give a question
            faults.append(f"{name} has questions of {sorted(asked)} minutes")
        for number, slide in enumerate(found[1:], 2):
            told = f"{name}, {slide.h2.text}"
            if words(slide) > WORDS:
                faults.append(f"{told} has {words(slide)} words")
            notes = slide.select_one(".notes")
            if number > 2 and slide.footer.a and not notes.text.strip():
                faults.append(f"{told} has no notes")
            if not slide.select(".text, .fit"):
                faults.append(f"{told} is bare")
    assert faults == []


def test_all_that_a_slide_loads_or_links_to_is_in_the_site(site):
    faults = []
    for name in DECKS:
        page = (site / FOLDER / f"{name}.html").read_text(encoding="utf-8")
        linked = re.findall(r'(?:href|src)="([^"#]+)(?:#([^"]+))?"', page)
        local = {(file, label) for file, label in linked if ":" not in file}
        own = [label for file, label in local if file == f"../{name}.html" and label]
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        gone = [file for file, _ in local if not (site / FOLDER / file).is_file()]
        gone += set(own) - set(re.findall(r'id="([^"]+)"', text))
        faults += [f"{name} leads to {place}" for place in gone]
        if len(own) <= len(slides(site, name)) / 2:
            faults.append(f"few slides of {name} say where they are from")
    assert faults == []


def ugly(page, site, name: str) -> list[str]:
    """What is cut off or too small on each slide of the deck that is open."""
    found = []
    for number in range(1, len(slides(site, name)) + 1):
        show(page, number)
        unveil(page)
        faults = page.evaluate(FAULTS, SMALLEST)
        found += [f"slide {number}: {fault}" for fault in faults]
    return found


def barred(page, looks: set[str]) -> list[str]:
    """What axe finds, of moderate impact or more, and of colours in each new look."""
    found = run_axe(page, {}, ALL_BUT_CONTRAST)  # before words are made invisible
    return [
        f"{violation['help']}: {node['html'][:99]}"
        for violation in found
        if violation["impact"] != "minor"
        for node in violation["nodes"]
    ] + faint(page, looks)


@whole_only
@pytest.mark.browser
def test_all_can_be_seen_and_used_at_1280_by_720_and_printed_step_by_step(
    browser, site
):
    """From disk, without a network: each slide, what axe says of a slide and the
    controls, and of the deck as printed, which has each step and each answer."""
    found, looks = {}, set()
    with quiet_page(browser, viewport={"width": 1280, "height": 720}) as page:
        open_deck(page, site, "index")
        found["index"] = ugly(page, site, "index")
        for name in some(*DECKS):
            open_deck(page, site, name)
            wrong = ugly(page, site, name)
            show(page, 1)
            wrong += barred(page, looks)
            open_deck(page, site, name, "?print-pdf")
            printed = page.pdf(prefer_css_page_size=True, print_background=True)
            count = len(re.findall(rb"/Type\s*/Page\b(?!s)", printed))
            pages = sum(
                max(1, len(x.select(".stepper-step")), 2 * len(x.select(".question")))
                for x in slides(site, name)
            )
            if count != pages:
                wrong.append(f"{count} printed pages, not {pages}")
            found[name] = wrong + barred(page, looks)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


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


@whole_only
@pytest.mark.browser
def test_without_a_script_all_slides_stand_on_the_page(browser, site):
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto((site / FOLDER / f"{DECKS[0]}.html").as_uri())
        count = len(slides(site, DECKS[0]))
        assert page.locator(".slide:visible").count() == count
