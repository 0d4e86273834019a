"""The map of the book and the table below it say what the chapters say."""

import re
from pathlib import Path

from course_lab.course_map import LEADS_TO, PLACES, course_map
from course_tools.claims.check import chapter_pages

BOOK = Path(__file__).parents[2] / "book"
TIME = re.compile(r"\*\*Study time:\*\* about (\d+) hours(?:, and (\d+) for the)?")
ROW = re.compile(r"^\* - (\d+)\n  - .*\n  - .*\n  - (\d+)(?: \(and (\d+)\))?$", re.M)


def test_the_map_has_every_chapter_and_leads_to_each_but_the_first_and_the_tokenizer():
    assert list(PLACES) == list(chapter_pages(BOOK)) == list(range(1, 12))
    assert {place for leads in LEADS_TO.values() for place in leads} == {*PLACES} - {
        1,
        4,
    }
    assert "6 (Pre-training) leads to 7, 8, 9, 10" in course_map().svg()


def test_the_hours_on_the_first_page_are_those_of_the_chapters():
    of_pages = {}
    for number, stem in chapter_pages(BOOK).items():
        found = TIME.search((BOOK / f"{stem}.md").read_text(encoding="utf-8"))
        assert found, f"{stem} says no study time"
        of_pages[number] = found.groups()
    text = (BOOK / "index.md").read_text(encoding="utf-8")
    assert {int(row[1]): row.groups()[1:] for row in ROW.finditer(text)} == of_pages
