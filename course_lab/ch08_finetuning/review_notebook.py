"""The notebook that lectures show: 2,000 film reviews in one padded matrix, the state
of [CLS] of a frozen encoder, and a logistic regression; with the attention mask and
without it.

The reviews are the first whole sentences of SST-2. A seed decides the split alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from course_lab import stand_ins
from course_lab.ch08_finetuning.features import pad_ids, whole_sentences
from course_lab.study import Study
from course_lib.bert.files import checkpoint_folder, load_bert
from course_lib.bert.model import BertModel
from course_lib.data import load
from course_lib.files import CHECKPOINTS
from course_lib.wordpiece.fast import FastWordPiece

BATCH = 50


class Inputs(NamedTuple):
    """Reviews, an encoder, and the features that it gave them so far."""

    texts: list[str]
    labels: list[int]
    encoder: BertModel
    tokenizer: FastWordPiece
    known: dict[str, np.ndarray]


def cls_states(
    encoder: BertModel, tokenizer: FastWordPiece, texts: Sequence[str], masked: bool
) -> np.ndarray:
    """Pad all texts to the longest, and return the last state at position 0 of each."""
    rows = [x.ids for x in tokenizer.encode_batch(texts, padding=None)]
    ids, mask = pad_ids(rows, encoder.config.pad_token_id or 0)
    found = []
    with torch.no_grad():
        for start in range(0, len(ids), BATCH):
            part = slice(start, start + BATCH)
            output = encoder(ids[part], mask[part] if masked else None)
            found.append(output.last_hidden_state[:, 0])
    return torch.cat(found).numpy()


def read(study: Study, source: str | None, checkpoint: str | None) -> Inputs:
    """Read the reviews and an encoder."""
    train = load("sst2", source)["train"]
    texts = train["sentence"][:]
    chosen = whole_sentences(texts)[: study.shared["reviews"]]
    name = str(checkpoint)
    shipped = CHECKPOINTS / name
    folder = shipped if shipped.is_dir() else checkpoint_folder(name)
    labels = [int(train[i]["label"]) for i in chosen]
    return _inputs([texts[i] for i in chosen], labels, folder)


def _inputs(texts: list[str], labels: list[int], folder: Path) -> Inputs:
    encoder = load_bert(folder).eval()
    return Inputs(texts, labels, encoder, FastWordPiece.load(folder), {})


def run(study: Study, variant: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Split the reviews, and score a logistic regression on the held-out quarter."""
    if variant != "words" and variant not in inputs.known:
        masked = variant == "with the mask"
        inputs.known[variant] = cls_states(
            inputs.encoder, inputs.tokenizer, inputs.texts, masked
        )
    train, test = train_test_split(
        np.arange(len(inputs.texts)),
        test_size=study.shared["held_out"],
        random_state=seed,
        stratify=inputs.labels,
    )
    words = variant == "words"
    rows: Any = inputs.texts if words else inputs.known[variant]
    model = LogisticRegression(max_iter=1000)
    fitted = make_pipeline(CountVectorizer(), model) if words else model
    labels = np.array(inputs.labels)
    fitted.fit([rows[i] for i in train], labels[train])
    accuracy = fitted.score([rows[i] for i in test], labels[test])
    return {"accuracy": float(accuracy), "reviews": len(inputs.texts)}


def probe(study: Study, _: str) -> tuple[Study, Inputs]:
    """Return the study with a stand-in of its checkpoint, and few sentences."""
    rows = stand_ins.table(("sentence",), 2, 80, seed=0)
    texts = [str(row["sentence"]) for row in rows]
    labels = [int(row["label"]) for row in rows]
    return study, _inputs(texts, labels, stand_ins.checkpoint())


STUDY = Study(
    "notebook-sst2",
    dict.fromkeys(("with the mask", "without the mask", "words")),
    read,
    run,
    probe,
    {"reviews": 2000, "held_out": 0.25},
    ("sst2",),
    of_checkpoint=True,
)
