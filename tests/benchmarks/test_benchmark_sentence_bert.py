"""The benchmark of sentence vectors runs, and its table has all rows. No test here
asserts a time."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch

from course_lab import records

ROOT = Path(__file__).parents[2]
TEXTS = [
    "Sort a list.",
    "Close the file, and what was opened with it.",
    "Return the mean of an array.",
    "Nothing.",
]


@pytest.fixture
def benchmark(monkeypatch):
    """A program of benchmarks/, imported from its own folder; the number of threads is
    given back."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    before = torch.get_num_threads()
    yield importlib.import_module
    torch.set_num_threads(before)
    for module in ("side_by_side", "sentence_bert"):
        sys.modules.pop(module, None)


@pytest.mark.slow
def test_the_table_has_encoding_search_and_the_cost_of_pairs(
    benchmark, monkeypatch, capsys
):
    program = benchmark("sentence_bert")
    paragraphs = type("Paragraphs", (), {"texts": TEXTS})
    monkeypatch.setattr(program, "draw_paragraphs", lambda number: paragraphs)
    monkeypatch.setattr("course_lab.ch09_sentence_bert.sentence_cost.NUMBER", 40)
    sizes = [
        "--sentences",
        "4",
        "--collection",
        "50",
        "--queries",
        "3",
        "--features",
        "7",
        "--pairs",
        "2",
    ]
    program.main(
        [
            "--checkpoints",
            "tiny",
            *sizes,
            "--rounds",
            "2",
            "--lengths",
            "8",
            "--tokens",
            "16",
            "--real",
            "none",
        ]
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]
    assert [row[:3] for row in rows if row[2] != "faiss"] == [
        ["encode", "tiny", "sentence-transformers"],
        ["search", "50", "full matrix"],
        ["search", "50", "scikit-learn"],
        ["pairs", "tiny", "cross-encoder"],
        ["length", "tiny, 8", "first state"],
        ["length", "tiny, 8", "every state"],
        ["length", "tiny, 8", "sentence-transformers"],
    ]
    assert all(re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", row[-1]) for row in rows)


@pytest.mark.records
def test_recorded_encoding_beats_the_library_and_pairs_cost_thousands_of_times_more():
    """The same weights and texts of mixed lengths. Counting tokens, a cross-encoder
    reads 9,999 times as many."""
    rows = {
        (row["what"], row["mode"], row["peer"]): row
        for row in records.load("benchmark-sentence_bert").results
    }
    for name in ("tiny", "mini"):
        assert rows["encode", name, "sentence-transformers"]["ratio"] >= 1.1
        assert 6_000 < rows["pairs", name, "cross-encoder"]["ratio"] < 15_000


@pytest.mark.records
def test_recorded_costs_of_pairs_grow_with_length_and_the_last_layer():
    """Attention's square adds to what a count of tokens says; leaving out most of the
    last layer takes off."""
    rows = [
        row
        for row in records.load("benchmark-sentence_bert").results
        if row["what"] == "length"
    ]
    ratios = {(row["mode"], row["peer"], row["length"]): row["ratio"] for row in rows}
    shortest = min(row["length"] for row in rows)
    longest = max(row["length"] for row in rows)
    for mode in {row["mode"] for row in rows}:
        assert (
            ratios[mode, "first state", longest] < ratios[mode, "every state", longest]
        )
        assert (
            ratios[mode, "every state", shortest] < ratios[mode, "every state", longest]
        )
