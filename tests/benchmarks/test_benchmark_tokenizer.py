"""The benchmarks of tokenizers run, compare what is the same, and their records hold
what the chapter quotes."""

import importlib
import os
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from expect import refusal

from course_lab import records

ROOT = Path(__file__).parents[2]
MODULES = ("side_by_side", "tokenizer", "tokenizer_agreement")
TEXTS = [
    "The cat sat on the mat.",
    "A cat is a cat, and so is that cat!",
    "Naïve 東京 [MASK]",
]


@pytest.fixture
def benchmark(monkeypatch):
    """A program of benchmarks/, imported from its own folder; what it sets for this
    process is undone."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for name in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    before = torch.get_num_threads()
    yield importlib.import_module
    torch.set_num_threads(before)
    for module in MODULES:
        sys.modules.pop(module, None)


def test_the_table_has_both_tasks_on_one_thread_and_on_several(
    benchmark, monkeypatch, capsys
):
    tokenizer = benchmark("tokenizer")
    monkeypatch.setattr(tokenizer, "paragraphs", lambda number: TEXTS[:number])
    tokenizer.main(
        ["--rounds", "2", "--paragraphs", "3", "--vocab", "90", "--threads", "2"]
    )
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in capsys.readouterr().out.splitlines()
    ]
    rows = [row for row in rows if row]
    assert [row[:2] for row in rows] == [
        ["train", "1"],
        ["train", "2"],
        ["encode", "1"],
        ["encode", "2"],
    ]
    assert all(re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", row[-1]) for row in rows)


def test_threads_are_asked_for_and_given_back(benchmark):
    tokenizer = benchmark("tokenizer")
    before = os.environ["TOKENIZERS_PARALLELISM"], torch.get_num_threads()
    for number, word in ((1, "false"), (3, "true")):
        with tokenizer.threads(number):
            assert (os.environ["TOKENIZERS_PARALLELISM"], torch.get_num_threads()) == (
                word,
                number,
            )
    assert (os.environ["TOKENIZERS_PARALLELISM"], torch.get_num_threads()) == before


def test_tokenizers_that_differ_are_not_raced(benchmark, monkeypatch):
    tokenizer = benchmark("tokenizer")
    monkeypatch.setattr(
        tokenizer.WordPiece, "encode_word", lambda self, word: ["[UNK]"]
    )
    with refusal("the two tokenizers give different ids", RuntimeError):
        tokenizer.contests(TEXTS, 90)


def test_the_comparison_fails_and_shows_the_text_where_there_is_a_disagreement(
    benchmark, monkeypatch, capsys, tmp_path
):
    agreement = benchmark("tokenizer_agreement")
    (tmp_path / "bert_base_uncased").mkdir()
    (tmp_path / "bert_base_uncased" / "vocab.txt").write_text(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n"
    )
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.setattr(agreement, "public_lines", lambda folder: iter(()))
    monkeypatch.setattr(agreement, "pydocs", lambda: iter(["ab a", "ü"]))
    assert agreement.main(["--generated", "6"]) == 0
    assert re.search(r"│ all +│ 8 ", capsys.readouterr().out)
    monkeypatch.setattr(agreement, "pydocs", lambda: iter(["ab a", "ü"]))
    monkeypatch.setattr(
        agreement.WordPiece, "encode_word", lambda self, word: ["[UNK]"]
    )
    assert agreement.main(["--generated", "6"]) == 1
    assert "differs, pydocs: 'ab a'" in capsys.readouterr().out


def test_every_source_is_read_with_columns_of_its_own(benchmark, tmp_path):
    """Also when all sources are asked for before the first is read."""
    agreement = benchmark("tokenizer_agreement")
    for name, columns in agreement.COLUMNS.items():
        (tmp_path / name).mkdir()
        table = pa.table(
            {
                **{column: [f"{name} {column}", None] for column in columns},
                "label": ["no", "text"],
            }
        )
        pq.write_table(table, tmp_path / name / "train.parquet")
    read = {
        name: list(texts)
        for name, texts in list(agreement.public_lines(tmp_path))
        if name in agreement.COLUMNS
    }
    assert read == {
        name: [f"{name} {column}" for column in columns]
        for name, columns in agreement.COLUMNS.items()
    }


def test_a_source_without_a_text_is_no_agreement(benchmark):
    agreement = benchmark("tokenizer_agreement")
    pair = (
        tokenizer(["[UNK]", "[CLS]", "[SEP]"])
        for tokenizer in (agreement.WordPiece, agreement.FastWordPiece)
    )
    with refusal("sst2 has no text: that nothing differs would mean nothing"):
        agreement.compare("sst2", [], *pair)


def test_without_the_published_vocabulary_the_comparison_says_what_is_missing(
    benchmark, monkeypatch, capsys, tmp_path
):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    assert benchmark("tokenizer_agreement").main([]) == 2
    assert (
        "set COURSE_DATA to the folder of public data sets" in capsys.readouterr().err
    )


@pytest.mark.records
def test_the_recorded_race_has_four_rows_of_thirty_rounds():
    rows = records.load("benchmark-tokenizer").results
    assert [(row["what"], row["threads"]) for row in rows] == [
        ("train", 1),
        ("train", 2),
        ("encode", 1),
        ("encode", 2),
    ]
    assert all(
        row["rounds"] >= 30 and row["low"] <= row["ratio"] <= row["high"]
        for row in rows
    )
    assert all(row["ratio"] < 1 for row in rows)  # the teaching code is the slower one


@pytest.mark.records
def test_the_recorded_agreement_is_of_enough_texts_and_without_exception():
    """At least 200,000 real lines and 10,000 generated texts in one run."""
    rows = records.load("benchmark-tokenizer_agreement").results
    generated = sum(
        row["texts"] for row in rows if row["source"].startswith("generated")
    )
    assert generated >= 10_000
    assert sum(row["texts"] for row in rows) - generated >= 200_000
    assert {row["disagreements"] for row in rows} == {0}
    assert all(row["texts"] > 0 for row in rows)
    assert {"wikitext2_raw", "sst2", "pydocs"} <= {row["source"] for row in rows}
