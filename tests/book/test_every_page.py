"""Every page of the built site in headless Chromium, in one visit: on a phone, on a
desk and before axe, light and dark.

What fails here: an error in the console, a request that leaves the machine, an image
without words, a formula that is not typeset, code that is cut off, a page that scrolls
sideways, letters of a diagram that cannot be read, what keeps a screen reader from a
page, pale words, a figure that the dark page swallows.
"""

import io
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import numpy as np
import pytest
from pages import (
    ALL_BUT_CONTRAST,
    CONTRAST,
    address_of,
    drop_repeats,
    faint,
    generated,
    of_every_kind,
    quiet_page,
    serious_violations,
    typeset,
    written,
)
from PIL import Image
from places import ROOT
from whole import WHOLE, whole_only

# One worker builds and opens the site, however many there are.
pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIDEBAR = ".bd-sidebar-primary"
#: What `make test` looks at: one page of each kind, written and generated.
REPRESENTATIVES = [
    "index.html",
    "01-seq2seq-attention.html",
    "teaching.html",
    "_generated/api/chapter-01.html",
    "_generated/data/stories.html",
]
CHAPTER = re.compile(r"\d\d-(?!.*-lab)")
#: WCAG 2.2, success criterion 1.4.3: text of large size needs 3 to 1; figures' ink is
#: held to it.
FIGURE_CONTRAST = 3.0
PHONE, LAPTOP, DESK = 390, 1280, 1440
#: Pixels of text below which a diagram cannot be read.
SMALLEST = 9
#: What closed parts hold is laid out, too.
OPEN = """() => document.querySelectorAll('details:not([open])')
  .forEach(e => { e.open = true; e.dataset.opened = ''; })"""
CLOSE = """() => document.querySelectorAll('[data-opened]')
  .forEach(e => { e.open = false; })"""
CUT = """() => [...document.querySelectorAll('article pre')]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 2)
  .map(e => e.textContent.trim().split('\\n').sort((a, b) => b.length - a.length)[0])"""
BEYOND = """() => document.documentElement.scrollWidth
  - document.documentElement.clientWidth"""
#: Of each visible diagram: text that is too small, outside, or on other text.
FAULTS = """smallest => [...document.querySelectorAll('svg.diagram')].flatMap(svg => {
  if (!svg.checkVisibility()) return [];
  const view = svg.viewBox.baseVal, scale = svg.clientWidth / view.width, faults = [];
  const texts = [...svg.querySelectorAll('text')].map(e => {
    const {x, y, width, height} = e.getBBox();
    // A line's box is higher than its letters.
    return {words: e.textContent, left: x, right: x + width,
            top: y + 2.5, bottom: y + height - 2.5, e};
  });
  texts.forEach((one, number) => {
    for (const part of [one.e, ...one.e.querySelectorAll('tspan')]) {
      const size = parseFloat(getComputedStyle(part).fontSize) * scale;
      if (size < smallest) faults.push(`${size.toFixed(1)} pixels: ${one.words}`);
    }
    if (one.left < -1 || one.right > view.width + 1
        || one.top < -3 || one.bottom > view.height + 3)
      faults.push(`outside: ${one.words}`);
    for (const other of texts.slice(number + 1))
      if (one.left + 2 < other.right && other.left + 2 < one.right
          && one.top + 2 < other.bottom && other.top + 2 < one.bottom)
        faults.push(`on each other: ${one.words} | ${other.words}`);
  });
  return faults.map(fault => svg.querySelector('title').textContent + ': ' + fault);
})"""

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


def relative_luminance(rgb: np.ndarray) -> np.ndarray:
    """WCAG 2.2's relative luminance of colours in 0-255, along the last axis."""
    channel = rgb[..., :3] / 255
    linear = np.where(
        channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4
    )
    return linear @ np.array([0.2126, 0.7152, 0.0722])


IMAGES = """() => [...document.images].map(image =>
  [...["src", "alt"].map(name => image.getAttribute(name)),
   image.closest("a, button") !== null])"""
FORMULAS = """() => ["main .math", "mjx-container", "mjx-merror"]
  .map(kind => document.querySelectorAll(kind).length)"""


def contents(page, name: str) -> list[str]:
    """What is wrong with the words, images and formulas of a page."""
    found = []
    # The reference quotes doctests, and some of them expect an error.
    if "Traceback (most recent call last)" in page.inner_text("main"):
        found += [] if name.startswith("_generated/api/") else ["a traceback"]
    for source, alt, decorative in page.evaluate(IMAGES):
        # A writer that finds no text falls back on the file's name, which describes
        # nothing.
        if alt is None or not (
            decorative or (alt.strip() and Path(source).name not in alt)
        ):
            found.append(f"{source} has alt {alt!r}")
    formulas, drawn, faulty = page.evaluate(FORMULAS)
    if drawn < formulas or faulty or (CHAPTER.match(name) and formulas <= 5):
        found.append(f"{drawn} of {formulas} formulas are typeset, {faulty} faulty")
    elif formulas and page.locator("mjx-container").first.bounding_box()["height"] <= 5:
        found.append("formulas have no height")
    return found


def layout(page) -> list[str]:
    """What a reader does not see without scrolling sideways, on a phone, which the page
    is open on, and on a desk, which it is left on."""
    beyond = page.evaluate(BEYOND)
    found = [f"{beyond} pixels too wide for a phone"] if beyond > 0 else []
    found += page.evaluate(FAULTS, SMALLEST)
    page.evaluate(OPEN)
    for width in (DESK, LAPTOP):
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"cut off at {width}: {line}" for line in page.evaluate(CUT)]
    page.evaluate(CLOSE)
    return found


def figures(page, scheme: str) -> list[str]:
    """Which figures of a page stand in a box, or have labels that cannot be read."""
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    paper = relative_luminance(
        np.array([float(n) for n in re.findall(r"[\d.]+", background)[:3]])
    )
    found = []
    for number, image in enumerate(page.locator("main figure img").all(), 1):
        shot = Image.open(io.BytesIO(image.screenshot())).convert("RGB")
        luminance = relative_luminance(np.asarray(shot, dtype=float))
        # The corner is the figure's own background: it must be the page, not a box.
        if abs(luminance[2, 2] - paper) >= 0.01:
            found.append(f"figure {number} stands in a box")
        contrast = (np.maximum(luminance, paper) + 0.05) / (
            np.minimum(luminance, paper) + 0.05
        )
        # The margin left of the axes holds labels and tick labels, and nothing else.
        most = contrast[:, : contrast.shape[1] // 12].max()
        if most < FIGURE_CONTRAST:
            found.append(f"labels of figure {number} reach a contrast of {most:.1f}")
    return found


def notebooks(page, site: Path) -> list[str]:
    """What is wrong with the notebook that a chapter's buttons lead to."""
    links = page.locator(".article-header-buttons a").evaluate_all(
        "nodes => nodes.map(node => node.href)"
    )
    colab = next(link for link in links if "colab.research.google.com" in link)
    binder = next(link for link in links if "mybinder.org" in link)
    download = next(
        link for link in links if link.endswith(".ipynb") and link.startswith("file:")
    )
    targets = {
        site / colab.partition("/blob/gh-pages/")[2],
        site / unquote(binder).partition("urlpath=lab/tree/")[2],
        Path(unquote(urlsplit(download).path)),
    }
    if len(targets) > 1 or not min(targets).is_file():
        return [f"buttons lead to {sorted(map(str, targets))}"]
    notebook = nbformat.read(targets.pop(), as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(
        cell.source for cell in notebook.cells if cell.cell_type == "markdown"
    )
    left = re.findall(r"\{[a-z:]+\}`|```\{|:::", text)
    found = [f"its notebook has a directive or role: {left[0]}"] if left else []
    if "**Question.**" not in text:
        found.append("its notebook has no question")
    if "google.colab" not in notebook.cells[0].source:
        found.append("its notebook does not set up Colab")
    if any(cell.get("outputs") for cell in notebook.cells):
        found.append("its notebook has outputs")
    return found


def test_every_page_can_be_read_by_anyone_on_a_phone_and_a_desk_light_and_dark(
    browser, site
):
    """From disk; of the hundreds of pages that code writes, some of every kind.

    WCAG as axe checks it; a dark page differs from a light one by its colours alone.
    `make test` takes a page of each kind, `make test-grading` all. The sidebar is one
    and the same on all pages; with 200 links it is most of a generated page, and is
    checked on the written ones. Of code and formulas axe sees each kind of element
    once, and of colours each that a kind of element has on a background.
    """
    by_hand, by_code = written(site), generated(site)
    every = [*by_hand, *of_every_kind(site, by_code)]
    names = every if WHOLE else REPRESENTATIVES
    chapters = [name for name in names if CHAPTER.match(name)]
    assert chapters, "the site has no chapter"
    code, looks, drawn, found = set(), set(), 0, {}
    with quiet_page(browser, color_scheme="light") as page:
        for name in names:
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": PHONE, "height": 844})
            page.goto((site / name).as_uri())
            typeset(page)
            assert page.locator(SIDEBAR).count() == 1, name
            wrong = contents(page, name)
            if name in chapters:
                wrong += notebooks(page, site)
            wrong += layout(page) if name in by_hand else []
            page.set_viewport_size({"width": LAPTOP, "height": 900})
            leave_out = None if name in by_hand else SIDEBAR
            drop_repeats(page, code)
            wrong += serious_violations(page, leave_out, ALL_BUT_CONTRAST)
            for scheme in ("light", "dark"):
                colour(page, scheme)
                wrong += [f"{scheme}: {x}" for x in faint(page, looks, leave_out)]
                if name in chapters:
                    wrong += [f"{scheme}: {x}" for x in figures(page, scheme)]
            drawn += page.locator("main figure img").count()
            if wrong:
                found[name] = wrong
    assert found == {}
    assert drawn >= 3


@whole_only
def test_pages_of_every_kind_load_in_silence_over_http_too(browser, site):
    names = of_every_kind(site, written(site), placed=False)
    with address_of(ROOT, "http") as address, quiet_page(browser) as page:
        found = {}
        for name in names:
            page.goto(f"{address}/{name}")
            typeset(page)
            if wrong := contents(page, name):
                found[name] = wrong
    assert found == {}


def test_the_button_goes_round_the_systems_colours_light_and_dark(browser, site):
    with quiet_page(browser, color_scheme="light") as page:
        page.goto((site / "index.html").as_uri())
        met = []
        for _ in range(3):
            page.locator("button.theme-switch-button:visible").first.click()
            mode = page.evaluate("document.documentElement.dataset.mode")
            met.append((mode, page.evaluate("document.documentElement.dataset.theme")))
    assert sorted(met) == [("auto", "light"), ("dark", "dark"), ("light", "light")]


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
                f"<body><main><section>{'</section><section>'.join(cells)}</section>"
                "</main></body></html>"
            )
            drop_repeats(page, seen)
            left = page.locator("section").evaluate_all(
                "parts => parts.map(part => part.textContent === 'import')"
            )
            assert left == shown
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
                assert len(faint(page, known)) == pale
            assert (
                sum(word.is_visible() for word in page.locator("b, i, s").all())
                == shown
            )
        page.set_content(
            "<html lang='en'><title>t</title><main><b style='color:"
            " dimgrey'>word</b></main>"
        )
        # of the page itself, which has no word of its own
        for ground, pale in (("white", 0), ("black", 1)):
            page.evaluate(
                "ground => { document.body.style.background = ground }", ground
            )
            assert len(faint(page, seen)) == pale


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
            assert len(faint(page, seen, "nav")) == (part == pale)


def test_faults_of_a_diagram_are_seen(browser):
    """Text that is small, outside, or on other text, and nothing else."""
    texts = [
        "<text x='10' y='30'>fine</text>",
        "<text x='10' y='60' style='font-size:8px'>small</text>",
        "<text x='390' y='90'>outside</text>",
        "<text x='10' y='120'>one</text><text x='12' y='122'>two</text>",
    ]
    with quiet_page(browser, viewport={"width": PHONE, "height": 844}) as page:
        page.set_content(
            "<html lang='en'><title>t</title><main style='width: 400px'><svg"
            " class='diagram' viewBox='0 0 400 130' style='font: 13px sans-serif'>"
            f"<title>It</title>{''.join(texts)}</svg></main>"
        )
        assert page.evaluate(FAULTS, SMALLEST) == [
            "It: 8.0 pixels: small",
            "It: outside: outside",
            "It: on each other: one | two",
        ]
