"""The built site in headless Chromium, from disk and over HTTP, as a reader meets it.

What fails here: an error in the console, a request that leaves the machine, a search, a
quiz or a way to the content that a keyboard cannot use, a link that leads nowhere.
"""

import re
from pathlib import Path

import pytest
from pages import address_of, pages_of, quiet_page
from places import ROOT

from course_tools.site.reference import sections, taught_in

# One worker builds and opens the site, however many there are.
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session", params=["file", "http"])
def address(request, site):
    """Where the site is: a folder on disk, or a server on the loopback interface."""
    with address_of(ROOT, request.param) as address:
        yield address


def chapters_of(site: Path) -> list[str]:
    chapters = [name for name in pages_of(site) if re.match(r"\d\d-(?!.*-lab)", name)]
    assert chapters, "the site has no chapter"
    return chapters


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
