"""The page on a class: what it measures of each question, whom it names, and that
nothing of a student's runs in it."""

from __future__ import annotations

import pytest

from course_tools.grading.reports.class_report import page, question
from course_tools.grading.reports.copies import Cluster, Copies

POINTS = {"easy": 2.0, "hard": 4.0, "odd": 3.0, "essay": 5.0}
#: Who knows more gets more, but for `odd`, where it is the other way round.
MARKS: dict[str, dict[str, float | None]] = {
    "ada": {"easy": 2.0, "hard": 4.0, "odd": 0.0, "essay": None},
    "bo": {"easy": 2.0, "hard": 3.0, "odd": 1.0, "essay": 4.0},
    "cy": {"easy": 2.0, "hard": 0.0, "odd": 3.0, "essay": 1.0},
    "dee": {"easy": 2.0, "hard": 0.0, "odd": 3.0, "essay": None},
    "eve": {"easy": 2.0, "hard": 4.0, "odd": 0.0, "essay": 5.0},
}


def test_a_question_s_mean_and_its_shares_of_full_and_no_marks():
    found = question("hard", 4.0, MARKS)
    assert (found.marked, found.mean, found.full, found.none) == (
        5,
        pytest.approx(11 / 20),
        2 / 5,
        2 / 5,
    )


def test_what_waits_for_a_person_is_no_mark():
    found = question("essay", 5.0, MARKS)
    assert (found.marked, found.mean) == (3, pytest.approx(10 / 15))


def test_discrimination_is_the_correlation_with_the_sum_of_the_others():
    """By hand: `odd` is 0, 1, 3, 3, 0, and the others sum to 6, 9, 3, 2, 11; means 1.4
    and 6.2."""
    deviations = zip(
        (-1.4, -0.4, 1.6, 1.6, -1.4), (-0.2, 2.8, -3.2, -4.2, 4.8), strict=True
    )
    products = sum(one * other for one, other in deviations)
    expected = products / (9.2**0.5 * 58.8**0.5)
    assert question("odd", 3.0, MARKS).discrimination == pytest.approx(expected)
    assert expected < -0.7


def test_a_question_that_all_answer_alike_discriminates_nobody():
    assert question("easy", 2.0, MARKS).discrimination is None


def test_a_question_that_nobody_has_a_mark_for_is_measured_as_nothing():
    nobody = {student: {"essay": None, "easy": 1.0} for student in ("ada", "bo")}
    found = question("essay", 5.0, nobody)
    assert (found.marked, found.mean, found.discrimination) == (0, 0.0, None)


def test_the_page_counts_students_by_tenths_and_names_what_was_noticed():
    lines = (("a = b.c(d)", "v = w.c(u)"),)
    pair = Cluster(("bo", "eve"), "course_lib", (0.625, 0.875), ("bo", "eve"), lines)
    text = page(
        "attention",
        MARKS,
        POINTS,
        {"cy": ["wrote into the pipe"], "dee": []},
        Copies([pair], ["each other", "course_lib"], {"dee": "It is no notebook."}),
    )
    assert "5 submissions, 14 points. Mean 7.6, median 6.0." in text
    assert "2 answers are still to be marked by hand" in text
    # The totals are 6, 10, 6, 5 and 11 of 14.
    # 5, 6, 6, 10, 11 of 14
    for tenth, count in (
        ("30 to 40%", 1),
        ("40 to 50%", 2),
        ("50 to 60%", 0),
        ("70 to 80%", 2),
    ):
        assert f'<th scope="row">{tenth}</th><td>{count}</td>' in text
    assert '<th scope="row">cy</th><td>wrote into the pipe</td>' in text
    assert text.count(">dee<") == 1
    found = "2 submissions are in large part one text, that of course_lib"
    assert f'<th scope="row">{found}</th><td>bo, eve</td><td>62% to 88%</td>' in text
    assert "<td><code>a = b.c(d)</code></td><td><code>v = w.c(u)</code></td>" in text
    assert (
        "at least 60% of what is their own, compared with each other, course_lib"
        in text
    )
    assert "a reason to look, and no proof." in text
    assert '<th scope="row">dee</th><td>It is no notebook.</td>' in text


def test_nothing_of_a_student_s_becomes_markup():
    evil = "<script>alert(1)</script>"
    one = Cluster((evil,), evil, (1.0, 1.0), (evil, evil), ((evil, evil),))
    text = page(
        evil,
        {evil: {"easy": 1.0}},
        {"easy": 2.0},
        {evil: [evil]},
        Copies([one], [evil], {evil: evil}),
    )
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 13
