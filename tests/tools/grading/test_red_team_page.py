"""The guide's tables of attacks, from a record made here."""

from __future__ import annotations

from course_lab import records
from course_tools.site.graders_page import FAULTS, RED_TEAM, red_team

FINE = {
    "tries": "Tags the tests | skip.",
    "due": 4.0,
    "points": 4.0,
    "too_many": [],
    "too_few": [],
    "state": "done",
    "leaks": False,
    "others": [],
    "processes": 0,
    "files": [],
}
BAD = {
    "points": 7.0,
    "too_many": ["scale-tests"],
    "too_few": ["why"],
    "state": "did not end",
    "leaks": True,
    "others": ["zoe"],
    "processes": 1,
    "files": ["x"],
}


def test_each_fault_is_counted_for_each_grader_and_points_in_favour_are_told(tmp_path):
    rows = [
        FINE | {"grader": "course grade", "attack": name}
        for name in ("one", "two", "three")
    ]
    rows += [
        FINE | {"grader": "nbgrader, stock", "attack": name}
        for name in ("one", "three")
    ]
    rows += [FINE | BAD | {"grader": "nbgrader, stock", "attack": "two"}]
    machine = {"name": "a machine", "threads": 1, "torch": "2"}
    record = records.Record(
        RED_TEAM,
        "python x.py",
        {"seconds": 90.0},
        [],
        rows,
        "0" * 40,
        machine,
        "2026-01-02T03",
    )
    records.save(record, tmp_path)
    part = red_team(tmp_path)
    for fault in FAULTS:
        assert f"| {fault} | 0 | 1 |" in part
    assert "recorded by `python x.py` on 2026-01-02" in part
    assert (
        "| of 3 attacks, one … | `course grade` | stock nbgrader |\n| --- | --- | --- |"
        in part
    )
    assert part.endswith(
        "Too many points from stock nbgrader:\n\n| the attack … | due | given |\n"
        "| --- | --- | --- |\n| Tags the tests \\| skip | 4 | 7 |\n"
    )


def test_where_nothing_is_recorded_the_guide_says_how_to(tmp_path):
    assert "`python benchmarks/red_team.py --record`" in red_team(tmp_path)
