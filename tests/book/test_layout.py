"""What a reader sees without scrolling sideways: code and outputs from 1,280 pixels on,
the page itself on a phone, and every letter of a diagram."""

import pytest
from pages import quiet_page, typeset, written

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE, LAPTOP, DESK = 390, 1280, 1440
#: Pixels of text below which a diagram cannot be read.
SMALLEST = 9
#: What closed parts hold is laid out, too.
OPEN = """() => document.querySelectorAll('details').forEach(e => { e.open = true; })"""
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


def test_no_code_scrolls_sideways_from_1280_pixels_on_and_no_page_and_letter_on_a_phone(
    browser, site
):
    """Each page is loaded once, on a phone, and then has more and more room."""
    cut, wide, faults = {}, {}, {}
    with quiet_page(browser) as page:
        for name in written(site):
            page.set_viewport_size({"width": PHONE, "height": 844})
            page.goto((site / name).as_uri())
            typeset(page)
            if (beyond := page.evaluate(BEYOND)) > 0:
                wide[name] = beyond
            if found := page.evaluate(FAULTS, SMALLEST):
                faults[name] = found
            page.evaluate(OPEN)
            for width in (LAPTOP, DESK):
                page.set_viewport_size({"width": width, "height": 900})
                if found := page.evaluate(CUT):
                    cut[f"{name} at {width}"] = found
    assert (cut, wide, faults) == ({}, {}, {})


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
