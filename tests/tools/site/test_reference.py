"""The reference, the contract of imports and README's table tell of the same library in
the same order as the stub."""

import re
import tomllib

import pytest
from places import BOOK, ROOT
from public_names import STUB, public_names

from course_tools.site.reference import Section, reference_pages, sections, taught_in

CHAPTERS = [section for section in sections(STUB) if section.chapter]
ROW = re.compile(r"^\| \[(\d+) · .*\]\((book/.*\.md)\) \| (.*?) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def pages():
    """The pages of the reference."""
    return reference_pages(ROOT)


def rooms(section: Section) -> list[str]:
    """The packages that hold a section's names, in their order."""
    return list(dict.fromkeys(home.split(".")[1] for home in section.names.values()))


def test_the_reference_describes_each_public_name_once_in_the_order_of_the_course(
    pages,
):
    text = "".join(pages[f"{section.page}.md"] for section in sections(STUB))
    described = re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)
    names = [f"{module}.{name}" for name, module in public_names().items()]
    assert described == names
    table = re.findall(r"^\| \{py:obj\}`\w+ <(\S+)>`", pages["_table.inc.md"], re.M)
    assert table == names


def test_each_name_of_a_chapter_has_a_page_that_teaches_it():
    taught = taught_in(ROOT)
    assert [
        name
        for section in CHAPTERS
        for name, module in section.names.items()
        if f"{module}.{name}" not in taught
    ] == []
    assert taught["course_lib.attention.masks.masked_softmax"].startswith("01-")
    assert taught["course_lib.data.load"] == "data"
    assert {
        page for page in taught.values() if not (BOOK / f"{page}.md").is_file()
    } == set()


def test_the_table_of_names_shows_no_role_as_text(pages):
    """Its lines are docstrings, which are reStructuredText; the page that includes them
    is Markdown."""
    assert re.findall(r"(?<!\{py):\w+:`", pages["_table.inc.md"]) == []


def test_the_contract_of_imports_has_the_chapters_in_the_order_of_the_stub():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one for one in contracts if one.get("containers") == ["course_lib"])
    order = list(dict.fromkeys(room for section in CHAPTERS for room in rooms(section)))
    services = {"files"}  # and those that stand side by side
    found = [layer for layer in reversed(layers["layers"]) if "|" not in layer]
    assert [layer for layer in found if layer not in services] == order


def test_readme_s_table_names_each_chapter_s_packages_in_the_order_of_the_course():
    rows = ROW.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert [int(number) for number, _, _ in rows] == [one.chapter for one in CHAPTERS]
    for section, (number, page, packages) in zip(CHAPTERS, rows, strict=True):
        assert (ROOT / page).name.startswith(f"{int(number):02d}-")
        assert (ROOT / page).is_file()
        assert re.findall(r"`(\w+)`", packages) == rooms(section)
