"""Little data of the shapes that experiments read, all of it generated here: what
probes are taken on in place of folders, `pydocs` and large corpora.
"""

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from course_lab.probing import fill
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.data import translation
from course_lib.sentence_bert.model import SentenceBert
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

SIZES = {"train": 96, "validation": 24, "test": 24}  # rows of most tables
LONGEST = 16  # words of a sentence
Rows = list[dict[str, Any]]


@cache
def sentences() -> tuple[str, ...]:
    """Return different English sentences."""
    made = translation.generate(400, seed=1, max_length=LONGEST)
    return tuple(pair["en"] for pair in made)


@cache
def tokenizer() -> FastWordPiece:
    """Return a tokenizer of the words of `sentences`, and of all letters."""
    words = {word for sentence in sentences() for word in sentence.split()}
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = {*letters, *(f"##{x}" for x in letters), ".", "?", "'"}
    return FastWordPiece([*SPECIAL_TOKENS, *sorted(words | pieces)])


_folder = TemporaryDirectory(prefix="stand-ins-")


def new_folder() -> Path:
    """Return an empty folder, which is there until the process ends."""
    return Path(mkdtemp(dir=_folder.name))


@cache
def checkpoint() -> Path:
    """Return the folder of a small BERT, which is a sentence encoder too; its weights
    are `fill`'s."""
    config = BertConfig(
        vocab_size=len(tokenizer()),
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForPreTraining(config)
    fill(model, salt="checkpoint ")  # not what a model from scratch starts with
    folder = Path(_folder.name) / "checkpoint"
    SentenceBert(model.bert, tokenizer(), normalize=True).save_pretrained(folder)
    return folder


def table(columns: tuple[str, ...], classes: int, number: int, seed: int) -> Rows:
    """Return rows of sentences with a class that one of their words decides."""
    draw = random.Random(seed)
    rows = []
    for _ in range(number):
        texts = {name: f"{draw.choice(sentences())} ." for name in columns}
        rows.append({**texts, "label": len(texts[columns[0]].split()[0]) % classes})
    return rows


@cache
def folder_of_tables() -> str:
    """Return a folder that `course_lib.data.load` reads, with the tables of chapters 8
    to 10 and a corpus in place of WikiText."""
    root = Path(_folder.name) / "data"
    pair = ("sentence1", "sentence2")
    tables = {
        "snli": (("premise", "hypothesis"), 3),
        "mnli": (("premise", "hypothesis"), 3),
        "stsb": (pair, 6),
        "subj": (("text",), 2),
        "trec": (("text",), 3),
        "mrpc": (pair, 2),
        "sst2": (("sentence",), 2),
        "cola": (("sentence",), 2),
        "rte": (pair, 2),
        "pydocs-pair": (pair, 2),
    }
    for name, (columns, classes) in tables.items():
        splits = {"all": 80} if name == "subj" else SIZES
        for seed, (split, number) in enumerate(splits.items()):
            rows = table(columns, classes, number, seed)
            if name == "stsb":
                rows = [{**row, "label": float(row["label"])} for row in rows]
            if name == "trec":
                rows = [
                    {"text": row["text"], "coarse_label": row["label"]} for row in rows
                ]
            (root / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows), root / name / f"{split}.parquet")
    corpus = root / "wikitext2_raw"
    corpus.mkdir()
    for seed, split in enumerate(SIZES):
        told = [f"{sentence} ." for sentence in sentences()[100 * seed :][:100]]
        lines = [
            line
            for place in range(0, 100, 10)
            for line in (" = Title = ", "", " ".join(told[place : place + 10]), "")
        ]
        (corpus / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    return str(root)
