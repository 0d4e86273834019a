"""A line of the audit log that is edited, taken out, put in or swapped shows; one that a crash cut off does no harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course_lib.grading import chain


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    for number, student in enumerate(("ada", "bo", "cy", "Zoë")):
        chain.append(path, {"student": student, "marks": {"part": float(number)}})
    return path


def test_a_log_as_it_was_written_holds(log: Path) -> None:
    faults, last = chain.broken(log)
    assert faults == []
    assert last == json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["chain"]
    assert [line["student"] for line in chain.lines(log)] == ["ada", "bo", "cy", "Zoë"]


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], lines[1].replace(b"1.0", b"9.0"), *lines[2:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: lines[1:],
        lambda lines: [lines[0], lines[2], lines[1], lines[3]],
        lambda lines: [*lines[:2], lines[0], *lines[2:]],
        lambda lines: [*lines[:2], b'{"student": "eve", "marks": {"part": 9.0}}', *lines[2:]],
        lambda lines: [lines[0], lines[1][:-1], *lines[2:]],
    ],
    ids=["edited", "taken out", "first taken out", "swapped", "repeated", "put in", "spoilt"],
)
def test_whatever_is_done_to_a_line_is_found(log: Path, change) -> None:
    log.write_bytes(b"\n".join(change(log.read_bytes().splitlines())) + b"\n")
    assert chain.broken(log)[0] != []


def test_lines_taken_from_the_end_leave_another_last_seal(log: Path) -> None:
    last = chain.broken(log)[1]
    log.write_bytes(b"\n".join(log.read_bytes().splitlines()[:-1]) + b"\n")
    faults, now = chain.broken(log)
    assert faults == []
    assert now != last


def test_a_line_that_a_crash_cut_off_is_closed_and_the_chain_goes_on(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b'{"time": "cut o')
    chain.append(log, {"student": "di", "marks": {}})
    assert chain.broken(log)[0] == []
    assert [line["student"] for line in chain.lines(log)][-1] == "di"
    assert b'cut o\n{"student"' in log.read_bytes()


def test_lines_from_before_there_were_seals_are_bound_by_the_first_that_has_one(tmp_path: Path) -> None:
    log = tmp_path / "old.jsonl"
    log.write_text('{"student": "ada"}\n{"student": "bo"}\n')
    chain.append(log, {"student": "cy"})
    assert chain.broken(log)[0] == []
    log.write_text(log.read_text().replace('"bo"', '"eve"'))
    assert len(chain.broken(log)[0]) == 1


def test_the_last_line_is_found_in_a_log_of_more_than_a_block(tmp_path: Path) -> None:
    log = tmp_path / "long.jsonl"
    chain.append(log, {"student": "ada"})
    with log.open("ab") as file:
        file.write(b"x" * 200_000 + b"\n")
    chain.append(log, {"student": "bo"})
    assert chain.broken(log)[0] == []


def test_no_log_is_no_fault(tmp_path: Path) -> None:
    assert chain.broken(tmp_path / "none.jsonl") == ([], "")
