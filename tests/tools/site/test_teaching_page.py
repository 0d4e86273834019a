"""The tables of *Teaching with this book* are counted, and each plan adds up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from course_tools.grading.assignments.mutants import load_cases
from course_tools.grading.assignments.release import assignments
from course_tools.site import teaching_page
from course_tools.site.teaching_page import (
    CAPSTONE,
    FIVE_DAYS,
    HALF,
    KINDS,
    Week,
    chapters,
    hardest,
    mistakes,
    plan,
    semester,
    size,
    sizes,
    teaching_tables,
)

ROOT = Path(__file__).parents[3]
BOOK = ROOT / "book"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows(table: str) -> list[list[str]]:
    return [cells(line) for line in table.splitlines() if line.startswith("| ")][2:]


def test_a_chapter_s_hours_are_read_off_its_page(tmp_path):
    for name, text in {
        "01-one.md": "(one)=\n# One\n\n- **Study time:** about 5 hours.\n",
        "02-two.md": (
            "(two)=\n# Two\n\n- **Study time:** about 7 hours, and 2 for the"
            " assignment.\n\n{assignment}`second`\n"
        ),
    }.items():
        (tmp_path / name).write_text(text)
    first, second = chapters(tmp_path).values()
    assert (first.label, first.hours, first.assignment) == ("one", 5, "")
    assert (second.label, second.hours) == ("two", 7)
    assert (second.assignment, second.assignment_hours) == ("second", 2)
    (tmp_path / "02-two.md").write_text("(two)=\n# Two\n")
    with pytest.raises(ValueError, match="states no label or no study time"):
        chapters(tmp_path)


def test_the_table_of_sizes_has_every_assignment_and_its_own_points():
    table = rows(sizes(ROOT))
    of = {row[2].strip("`"): row for row in table if row[2]}
    assert list(of) == [
        *(one.assignment for one in chapters(BOOK).values() if one.assignment),
        CAPSTONE,
    ]
    assert set(of) == set(assignments(ROOT))
    for name, row in of.items():
        recorded = json.loads(
            (ROOT / f"tests/assignments/mutants/{name}.json").read_text("utf-8")
        )["points"]
        assert float(row[5]) == sum(recorded.values()), name
        assert int(row[4]) == len(recorded), name
        assert int(row[6]) == size(name, ROOT).written > 0
    for column in (1, 3, 4, 5, 6, 7):
        numbers = [float(row[column] or 0) for row in table]
        assert numbers[-1] == sum(numbers[:-1]), column


def test_a_semester_has_every_chapter_once_and_each_assignment_after_its_chapter():
    weeks, planned = semester(BOOK), chapters(BOOK)
    assert len(weeks) == len(planned) + 2 == 13
    assert [one for week in weeks for one in week.chapters] == list(planned)
    given = {
        name: place for place, week in enumerate(weeks, 1) for name in week.assignments
    }
    assert set(given) == set(assignments(ROOT))
    for number, one in planned.items():
        assert not one.assignment or given[one.assignment] == number + 1
    hours = int(rows(plan(weeks, "week", ROOT))[-1][3])
    assert hours == sum(float(rows(sizes(ROOT))[-1][column]) for column in (1, 3))


@pytest.mark.parametrize("weeks", [HALF, FIVE_DAYS], ids=["half", "five days"])
def test_a_shorter_plan_adds_up_and_asks_for_nothing_before_its_chapter(weeks):
    table, planned = rows(plan(weeks, "week", ROOT)), chapters(BOOK)
    hours = [int(row[3]) for row in table]
    assert hours[-1] == sum(hours[:-1])
    assert max(hours[:-1]) <= 10
    read: set[str] = set()
    for week in weeks:
        read |= {planned[number].assignment for number in week.chapters}
        assert set(week.assignments) <= read


def test_a_plan_of_two_weeks_by_hand(monkeypatch, tmp_path):
    one = teaching_page.Chapter("one", 5, "first", 2)
    monkeypatch.setattr(teaching_page, "chapters", lambda book: {1: one})
    monkeypatch.setattr(teaching_page, "chapter_pages", lambda book: {1: "01-one"})
    monkeypatch.setattr(teaching_page, "capstone_hours", lambda root: 3)
    weeks = [Week([1], ["first"], "talk"), Week([], [])]
    slides = '<a href="decks/01-one.html">slides</a>'
    assert rows(plan(weeks, "day", tmp_path)) == [
        ["1", f"1: {{ref}}`one` ({slides}); talk", "`first`", "7"],
        ["2", "", "", ""],
        ["all", "", "", "7"],
    ]


def test_mistakes_are_counted_by_their_words_and_each_has_its_example():
    table, words = rows(mistakes(ROOT)), mistakes(ROOT)
    assert [row[0] for row in table] == list(KINDS)
    every = [one for name in assignments(ROOT) for one in load_cases(name, ROOT)[0]]
    assert f"There are {len(every)} wrong answers" in words
    for row in table:
        pattern, (assignment, mutant) = KINDS[row[0]]
        assert int(row[1]) == sum(
            bool(re.search(pattern, one.mistake)) for one in every
        )
        assert 0 < int(row[2]) < int(row[1])
        (shown,) = (x for x in load_cases(assignment, ROOT)[0] if x.name == mutant)
        assert f"(`{shown.cell}`, {shown.caught} test)" in row[3]


def test_every_test_that_is_named_as_the_hardest_refuses_that_many():
    for row in rows(hardest(ROOT)):
        name = re.search(r"`([\w-]+) <", row[0])[1]
        of = [mutant.cell for mutant in load_cases(name, ROOT)[0]]
        assert int(row[1]) == len(of)
        named = re.findall(r"`([\w-]+)` \((\d+)\)", row[3])
        assert named == [(cell, str(of.count(cell))) for cell, _ in named]
        others = {of.count(cell) for cell in set(of) - {cell for cell, _ in named}}
        assert min(int(count) for _, count in named) >= max(others)


def test_the_page_includes_every_table():
    page = (BOOK / "teaching.md").read_text(encoding="utf-8")
    included = re.findall(r"\{include\} _generated/teaching/(\S+)", page)
    assert sorted(included) == sorted(teaching_tables(ROOT))
