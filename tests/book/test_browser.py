"""The built site in headless Chromium, from disk and over HTTP, as a reader meets it.

What fails here: an error in the console, a request that leaves the machine, a page that
a screen reader or a keyboard cannot use, a figure that the dark page swallows.
"""

import io
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import numpy as np
import pytest
from pages import address_of, of_every_kind, pages_of, quiet_page, typeset, written
from PIL import Image
from places import ROOT
from whole import first_or_all

from course_tools.site.reference import sections, taught_in

# One worker builds and opens the site, however many there are.
pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: WCAG 2.2, success criterion 1.4.3: text of large size needs 3 to 1; figures' ink is
#: held to it.
FIGURE_CONTRAST = 3.0


@pytest.fixture(scope="session", params=first_or_all("file", "http"))
def address(request, site):
    """Where the site is: a folder on disk, or a server on the loopback interface."""
    with address_of(ROOT, request.param) as address:
        yield address


def chapters_of(site: Path) -> list[str]:
    chapters = [name for name in pages_of(site) if re.match(r"\d\d-(?!.*-lab)", name)]
    assert chapters, "the site has no chapter"
    return chapters


def test_every_page_loads_in_silence_and_describes_its_images(browser, site, address):
    """All pages that somebody wrote; from disk also some of every kind of the hundreds
    that code writes. Over HTTP chapters are loaded where formulas are looked at."""
    names = [*written(site), *of_every_kind(site)]
    if address.startswith("http:"):
        names = sorted({*written(site)} - {*chapters_of(site)})
    with quiet_page(browser) as page:
        for name in names:
            page.goto(f"{address}/{name}")
            typeset(page)
            text = page.inner_text("main")
            # The reference quotes doctests, and some of them expect an error.
            assert (
                name.startswith("_generated/api/")
                or "Traceback (most recent call last)" not in text
            ), name
            for image in page.locator("img").all():
                alt, source = image.get_attribute("alt"), image.get_attribute("src")
                # A writer that finds no text falls back on the file's name, which
                # describes nothing.
                decorative = image.evaluate(
                    "node => node.closest('a, button') !== null"
                )
                assert alt is not None, f"{name}: {source} has no alt text"
                assert decorative or (alt.strip() and Path(source).name not in alt), (
                    f"{name}: {source} has alt {alt!r}"
                )


def test_no_page_is_too_heavy_for_a_phone(site):
    """The largest chapter is half a megabyte; a constant that the reference prints
    whole can be twenty."""
    heavy = {
        name: size
        for name in pages_of(site)
        if (size := (site / name).stat().st_size) > 1_000_000
    }
    assert heavy == {}


def test_no_page_names_a_folder_of_the_machine_that_built_it(site):
    """The reference prints the values of constants, and a path among them is another
    one on each machine."""
    # the folder itself, or what is in it
    written_out = re.compile(re.escape(str(ROOT)) + r"['/]")
    assert [
        name
        for name in pages_of(site)
        if written_out.search((site / name).read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("03-transformer.html", "3. The Transformer"),
        ("_generated/api/chapter-01.html", "Library reference"),
        ("_generated/data/stories.html", "Data"),
    ],
)
def test_the_sidebar_names_every_chapter_by_its_number_and_marks_where_one_is(
    site, name, marked
):
    """Sphinx makes it of titles alone (`book/_ext/sidebar.py`), and has to find the
    numbers and the way down there."""
    sidebar = re.search(
        r'<nav class="bd-links bd-docs-nav".*?</nav>',
        (site / name).read_text(encoding="utf-8"),
        re.S,
    )
    entries = re.findall(
        r'<li class="toctree-l1([^"]*)"><a [^>]*>([^<]*)</a>', sidebar[0]
    )
    titles = [title for _, title in entries]
    assert [title.split(". ")[0] for title in titles if title[0].isdigit()] == [
        str(int(chapter[:2])) for chapter in chapters_of(site)
    ]
    assert [title for classes, title in entries if "current" in classes] == [marked]


def test_formulas_are_typeset(browser, site, address):
    with quiet_page(browser) as page:
        for name in chapters_of(site):
            page.goto(f"{address}/{name}")
            typeset(page)
            formulas = page.locator(".math").count()
            drawn = page.locator("mjx-container").count()
            assert formulas > 5
            assert drawn >= formulas, (
                f"{name}: {drawn} of {formulas} formulas are typeset"
            )
            assert page.locator("mjx-merror").count() == 0
            assert page.locator("mjx-container").first.bounding_box()["height"] > 5


def test_search_for_alignment_finds_chapter_1(browser, site, address):
    with quiet_page(browser) as page:
        page.goto(f"{address}/search.html?q=alignment")
        result = page.locator(
            "#search-results a", has_text="Sequence to sequence"
        ).first
        result.wait_for()
        result.click()
        page.wait_for_load_state()
        assert "/01-" in page.url


def test_quiz_explains_a_wrong_and_a_right_answer_by_keyboard_alone(
    browser, site, address
):
    with quiet_page(browser) as page:
        page.goto(f"{address}/{chapters_of(site)[0]}")
        quiz = page.locator("form.quiz", has=page.locator("input[type=radio]")).first
        inputs = quiz.locator("input")
        keys = inputs.evaluate_all(
            "nodes => nodes.map(node => node.dataset.correct === 'true')"
        )
        right, status = keys.index(True), quiz.locator("[role=status]")
        wrong = 0 if right else 1

        def answer(position: int) -> None:
            """Reach the group with Tab, choose with the arrow keys, and confirm with
            Enter on the button."""
            for _ in range(len(keys)):
                if inputs.nth(position).is_checked():
                    break
                page.keyboard.press("ArrowDown")
            if not inputs.nth(position).is_checked():
                page.keyboard.press("Space")
            assert inputs.nth(position).is_checked()
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.textContent") == "Check"
            page.keyboard.press("Enter")

        page.evaluate("node => node.scrollIntoView()", quiz.element_handle())
        # Start from what precedes the question, as a reader who tabs through the page
        # does.
        quiz.evaluate("node => { node.tabIndex = -1; node.focus(); }")
        # a question that shows code has a button to copy it before its choices
        for _ in range(3):
            page.keyboard.press("Tab")
            if quiz.locator("input:focus").count():
                break
        assert quiz.locator("input:focus").count() == 1

        answer(wrong)
        assert "Not right" in status.inner_text()
        shown = quiz.locator(".quiz-explanation:visible")
        assert shown.count() == 1, (
            "a wrong answer explains itself and does not give the key away"
        )
        assert len(shown.first.inner_text()) > len("A is wrong.") + 10

        page.keyboard.press("Shift+Tab")
        answer(right)
        assert "Right." in status.inner_text()
        assert quiz.locator(".quiz-explanation:visible").count() == len(keys), (
            "then every choice is explained"
        )


def test_quiz_without_javascript_keeps_its_answers(browser, site):
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto((site / chapters_of(site)[0]).as_uri())
        answers = page.locator("form.quiz details.quiz-answers").first
        answers.locator("summary").click()
        assert answers.locator(".quiz-explanation").first.is_visible()
        assert not page.locator(".quiz-check").first.is_visible()


def relative_luminance(rgb: np.ndarray) -> np.ndarray:
    """WCAG 2.2's relative luminance of colours in 0-255, along the last axis."""
    channel = rgb[..., :3] / 255
    linear = np.where(
        channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4
    )
    return linear @ np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("theme", first_or_all("dark", "light"))
def test_figures_are_legible_on_a_page_of_either_colour(browser, site, theme):
    figures = 0
    with quiet_page(
        browser, color_scheme="light", viewport={"width": 1400, "height": 1000}
    ) as page:
        for name in chapters_of(site):
            page.goto((site / name).as_uri())
            for _ in range(3):  # the button goes round auto, light and dark
                if page.evaluate("document.documentElement.dataset.theme") == theme:
                    break
                page.locator("button.theme-switch-button:visible").first.click()
            assert page.evaluate("document.documentElement.dataset.theme") == theme
            background = page.evaluate(
                "getComputedStyle(document.body).backgroundColor"
            )
            paper = relative_luminance(
                np.array([float(n) for n in re.findall(r"[\d.]+", background)[:3]])
            )
            for image in page.locator("main figure img").all():
                figures += 1
                pixels = np.asarray(
                    Image.open(io.BytesIO(image.screenshot())).convert("RGB"),
                    dtype=float,
                )
                luminance = relative_luminance(pixels)
                # The corner is the figure's own background: it must be the page, not a
                # box.
                assert abs(luminance[2, 2] - paper) < 0.01, (
                    f"{name}: a figure stands in a box"
                )
                contrast = (np.maximum(luminance, paper) + 0.05) / (
                    np.minimum(luminance, paper) + 0.05
                )
                # The margin left of the axes holds labels and tick labels, and nothing
                # else.
                margin = contrast[:, : contrast.shape[1] // 12]
                assert margin.max() >= FIGURE_CONTRAST, (
                    f"{name}: labels reach a contrast of {margin.max():.1f} only"
                )
    assert figures >= 3


def test_launch_and_download_buttons_lead_to_notebooks_that_exist(browser, site):
    with quiet_page(browser) as page:
        for name in chapters_of(site):
            page.goto((site / name).as_uri())
            links = page.locator(".article-header-buttons a").evaluate_all(
                "nodes => nodes.map(node => node.href)"
            )
            colab = next(link for link in links if "colab.research.google.com" in link)
            binder = next(link for link in links if "mybinder.org" in link)
            download = next(
                link
                for link in links
                if link.endswith(".ipynb") and link.startswith("file:")
            )
            targets = [
                site / colab.partition("/blob/gh-pages/")[2],
                site / unquote(binder).partition("urlpath=lab/tree/")[2],
                Path(unquote(urlsplit(download).path)),
            ]
            assert len(set(targets)) == 1
            notebook = nbformat.read(targets[0], as_version=4)
            nbformat.validate(notebook)
            text = "\n".join(
                cell.source for cell in notebook.cells if cell.cell_type == "markdown"
            )
            assert not re.search(r"\{[a-z:]+\}`|```\{|:::", text), (
                "a directive or role is left"
            )
            assert "**Question.**" in text
            assert "google.colab" in notebook.cells[0].source
            assert not any(cell.get("outputs") for cell in notebook.cells)


def test_assignments_lie_in_the_site_byte_for_byte_and_pages_link_to_them(
    browser, site
):
    released = sorted((ROOT / "exercises").glob("*/*.ipynb"))
    assert released
    own_pages = [
        page
        for page in (path.with_suffix(".html").name for path in released)
        if (site / page).exists()
    ]
    assert own_pages == ["capstone.html"]
    text = "".join(
        (site / name).read_text(encoding="utf-8")
        for name in [*chapters_of(site), *own_pages]
    )
    for path in released:
        place = path.relative_to(ROOT).as_posix()
        assert (site / place).read_bytes() == path.read_bytes()
        assert f'href="{place}"' in text
        assert f"/blob/gh-pages/{place}" in text


def test_a_keyboard_reader_can_skip_to_the_content(browser, site):
    with quiet_page(browser) as page:
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("Tab")
        assert "Skip to main content" in page.evaluate(
            "document.activeElement.textContent"
        )
        page.keyboard.press("Enter")
        assert page.evaluate("document.getElementById('main-content') !== null")


def test_every_public_name_links_to_the_page_that_teaches_it_and_back(site):
    taught = taught_in(ROOT)
    faults = []
    for section in sections(ROOT / "course_lib" / "__init__.pyi"):
        address = f"_generated/api/{section.page}.html"
        entries = (site / address).read_text(encoding="utf-8").split('<dl class="py ')
        for name, module in section.names.items():
            full = f"{module}.{name}"
            (entry,) = [text for text in entries if f'id="{full}"' in text]
            if full not in taught:
                continue
            page = (site / f"{taught[full]}.html").read_text(encoding="utf-8")
            if f'href="{address}#{full}"' not in page:
                faults.append(f"{taught[full]} has no link to {full}")
            if section.chapter and f'href="../../{taught[full]}.html"' not in "".join(
                entries
            ):
                faults.append(f"{full} has no link to {taught[full]}")
            assert entry
    assert faults == []
