"""What is recorded of the red team: `course grade` marks as it should, and nothing
leaks or is left."""

from pathlib import Path

import pytest

from course_lab import records

pytestmark = pytest.mark.records
ATTACKS = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "tools" / "grading" / "attacks").glob(
        "*.py"
    )
)


def test_every_attack_of_today_has_met_every_grader():
    rows = records.load("benchmark-red_team").results
    graders = {row["grader"] for row in rows}
    assert {"course grade", "nbgrader, stock"} <= graders
    assert sorted((row["grader"], row["attack"]) for row in rows) == sorted(
        (g, a) for g in graders for a in ATTACKS
    )


def test_course_grade_gives_what_is_due_leaks_nothing_leaves_nothing_and_hurts_nobody():
    for row in records.load("benchmark-red_team").results:
        if row["grader"] == "course grade":
            assert row["points"] == row["due"], row["attack"]
            assert not any(
                row[fault]
                for fault in (
                    "too_many",
                    "too_few",
                    "leaks",
                    "others",
                    "processes",
                    "files",
                )
            )


def test_stock_nbgrader_gets_the_faults_that_the_settings_name():
    """Of `nbgrader_config.py`; tests/tools/grading/test_settings.py sees them one by
    one."""
    rows = {
        row["attack"]: row
        for row in records.load("benchmark-red_team").results
        if "stock" in row["grader"]
    }
    assert rows["skip_tag"]["too_many"] == ["scale-tests"]
    assert "scale-tests" in rows["warns"]["too_few"]
    assert rows["duplicated_cells"]["state"] == "stops the class"
    assert rows["writes_gradebook"]["others"]
    assert rows["daemon"]["processes"] == 1
