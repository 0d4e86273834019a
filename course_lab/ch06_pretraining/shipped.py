"""The checkpoints that the course ships: what their logs tell, and what they put into
gaps."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from course_lab.ch06_pretraining.pretrain import plan_from, untrained
from course_lab.ch06_pretraining.pretrain_results import LOG
from course_lab.ch06_pretraining.pretrain_scores import Guess
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertForPreTraining
from course_lib.files import CHECKPOINTS
from course_lib.pretraining.batches import PreTrainingBatch
from course_lib.wordpiece.fast import FastWordPiece

TOLD = {
    "model": "this model",
    "untrained": "the same model, untrained",
    "unigram": "word frequencies",
    "bigram": "counts of pairs",
    "two-sided bigram": "counts of pairs, on both sides",
    "two-sided trigram": "counts of triples, on both sides",
}


def read_log(name: str, folder: Path = CHECKPOINTS) -> dict[str, Any]:
    """Read all figures of a shipped checkpoint."""
    path = folder / name / LOG
    if not path.is_file():
        raise FileNotFoundError(
            f"no checkpoint {name!r} is shipped: there is no"
            f" {path.relative_to(folder.parent)}"
        )
    return dict(json.loads(path.read_text(encoding="utf-8")))


def load_shipped(
    name: str, folder: Path = CHECKPOINTS
) -> tuple[BertForPreTraining, FastWordPiece]:
    """Load a shipped checkpoint in float32, to be asked."""
    model = load_bert(folder / name, BertForPreTraining, dtype=torch.float32).eval()
    return model, FastWordPiece.load(folder / name)


def load_untrained(name: str, folder: Path = CHECKPOINTS) -> BertForPreTraining:
    """Return what a shipped checkpoint was before its first step: the control."""
    log = read_log(name, folder)
    return untrained(plan_from(log["plan"]), log["plan"]["vocab_size"]).eval()


def fill_gaps(
    guess: Guess, texts: Sequence[str], tokenizer: FastWordPiece, most: int = 3
) -> list[list[tuple[str, float]]]:
    """Let something guess the [MASK] of texts."""
    encodings, vocab = tokenizer.encode_batch(texts), tokenizer.vocab
    input_ids = torch.tensor([encoding.ids for encoding in encodings])
    hidden = input_ids == vocab["[MASK]"]
    if (counts := hidden.sum(dim=1)).ne(1).any():
        wrong = int(counts.ne(1).nonzero()[0])
        raise ValueError(
            f"{texts[wrong]!r} has {int(counts[wrong])} [MASK]; each text needs one"
        )
    batch = PreTrainingBatch(
        input_ids,
        torch.zeros_like(input_ids),
        input_ids != vocab["[PAD]"],
        hidden.flatten().nonzero().flatten(),
        torch.full((len(texts),), vocab["[MASK]"]),  # nobody knows the answer
        None,
        1.0,
        1.0,
    )
    with torch.no_grad():
        chances, best = guess(batch)[0].exp().topk(most, dim=-1)
    return [
        [(tokenizer.pieces[index], chance) for index, chance in zip(*row, strict=True)]
        for row in zip(best.tolist(), chances.tolist(), strict=True)
    ]


def result_rows(log: dict[str, Any], split: str = "test") -> list[str]:
    """Write what a checkpoint and its controls reach on a split, as lines of a Markdown
    table."""
    lines = [
        "| predicted by | masked tokens (%) | their loss (nats) | next sentence (%) |",
        "| --- | --- | --- | --- |",
    ]
    for name, told in log["results"]["scores"][split].items():
        cells = [
            (
                f"{100 * told[f'{kind}_accuracy']:.1f} ±"
                f" {100 * told[f'{kind}_accuracy_interval']:.1f}"
                if f"{kind}_accuracy" in told
                else ""
            )
            for kind in ("mlm", "nsp")
        ]
        lines.append(
            f"| {TOLD.get(name, name)} | {cells[0]} | {told['mlm_loss']:.2f} |"
            f" {cells[1]} |"
        )
    return lines
