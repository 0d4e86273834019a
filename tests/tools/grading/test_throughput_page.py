"""What the book says of speed is what the benchmark recorded, and nothing where
nothing is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course_lab import records
from course_tools.site.graders_page import THROUGHPUT, throughput

RESULT = {
    "ratio": 9.26,
    "low": 9.14,
    "high": 9.37,
    "seconds_each": 0.25,
    "peer_seconds_each": 2.315,
    "marks": 1234,
    "different": [],
    "dask_ratio": 1.12,
}
SETTINGS = {"assignment": "attention", "submissions": 60, "workers": 2, "rounds": 3}


def record(folder: Path, result: dict) -> None:
    content = {
        "name": THROUGHPUT,
        "command": "python x.py",
        "configuration": SETTINGS,
        "seeds": [],
        "results": [result],
        "commit": "c0ffee",
        "machine": {},
        "date": "2030-01-02T03:04:05+00:00",
    }
    (folder / f"{THROUGHPUT}.json").write_text(json.dumps(content))


def test_without_a_record_no_figure_is_shown(tmp_path):
    assert "`python benchmarks/grading.py --record`" in throughput(tmp_path)
    assert not any(letter.isdigit() for letter in throughput(tmp_path))


def test_the_table_has_the_recorded_figures(tmp_path):
    record(tmp_path, RESULT)
    lines = throughput(tmp_path).splitlines()
    assert lines[2] == "| `course grade`, with its sandbox | 0.25 |  |"
    assert lines[3] == "| the same through Dask | 0.28 | 1.12 |"
    assert lines[4] == "| `nbgrader autograde`, without any | 2.31 | 9.3 (9.1 to 9.4) |"
    assert (
        "60 submissions to *attention*, 2 at a time; medians over 3 rounds" in lines[6]
    )
    assert lines[7].startswith("All three gave the same marks (1234).")


def test_marks_that_differ_are_said(tmp_path):
    record(tmp_path, RESULT | {"different": [["ada", "scores-tests"]]})
    assert "Of the marks, 1 are not the same for all three (1234)." in throughput(
        tmp_path
    )


@pytest.mark.records
def test_what_is_recorded_is_as_fast_as_promised():
    """At least eight times nbgrader's speed, and through Dask on one machine at most
    15% slower."""
    (result,) = records.load(THROUGHPUT).results
    assert result["different"] == []
    assert result["ratio"] >= 8
    assert result["dask_ratio"] <= 1.15
