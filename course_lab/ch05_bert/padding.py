"""What padding does to a BERT, with its mask and without: untrained, and trained to
tell a story's plot (chapter 5).

The model reads the beginning of a story and names the plot. It is trained on batches in
which nothing is padded, so that padding is new to it; all positions that padding can
reach were trained.

Dimension letters::

    B  stories in a batch     T  positions     C  plots
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertModel
from course_lib.training.loop import TrainingConfig, set_seed, train
from course_lib.transformer.heads import ClassificationHead
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.training import count_words, train_wordpiece

LONGEST = 48  # pieces: what is read of a story in training
SHORTEST = 8


@dataclass
class Stories:
    """The beginnings of stories as ids, and their plots as numbers; the two splits
    differ in size."""

    train_ids: Int[Tensor, "_ T"]
    train_plots: Int[Tensor, "_"]
    test_ids: Int[Tensor, "_ T"]
    test_plots: Int[Tensor, "_"]
    vocab_size: int
    sep_id: int


class PlotReader(nn.Module):
    """A BERT with a classification head on [CLS]."""

    def __init__(self, config: BertConfig, num_plots: int):
        super().__init__()
        self.bert = BertModel(config)
        self.head = ClassificationHead(config.hidden_size, num_plots)

    def forward(
        self, ids: Int[Tensor, "B T"], attention_mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B C"]]:
        """Return the states and the logits of the plots."""
        hidden = self.bert(ids, attention_mask).last_hidden_state
        return hidden, self.head(hidden)


def prepare(
    stories: Mapping[str, Any], number: int = 3000, vocab_size: int = 2000
) -> Stories:
    """Train a vocabulary on the training split and cut the beginnings of the first
    stories to `LONGEST` pieces."""
    # The course's trainer: the library's breaks ties another way in each process
    # (github.com/huggingface/tokenizers, issue 1794), and what a model learns would
    # differ from run to run.
    words = count_words(chain.from_iterable(stories["train"]["paragraphs"][:number]))
    tokenizer = FastWordPiece(
        train_wordpiece(words, vocab_size, score="frequency").vocab
    )
    plots = sorted(set(stories["train"]["module"]))
    ids, numbers = {}, {}
    for split in ("train", "test"):
        rows = stories[split][:number]
        texts = [" ".join(paragraphs) for paragraphs in rows["paragraphs"]]
        beginnings = [
            encoding.ids[:LONGEST]
            for encoding in tokenizer.encode_batch(texts, padding=None)
        ]
        short = [
            text
            for text, of_text in zip(texts, beginnings, strict=True)
            if len(of_text) < LONGEST
        ]
        if short:
            raise ValueError(
                f"{len(short)} stories have fewer than {LONGEST} pieces, e.g."
                f" {short[0]!r}"
            )
        ids[split] = torch.tensor(beginnings)
        numbers[split] = torch.tensor([plots.index(plot) for plot in rows["module"]])
    vocab_size, sep_id = len(tokenizer), tokenizer.vocab["[SEP]"]
    return Stories(
        ids["train"], numbers["train"], ids["test"], numbers["test"], vocab_size, sep_id
    )


def cut(ids: Int[Tensor, "B T"], length: int, sep_id: int) -> Int[Tensor, "B _"]:
    """Keep the first pieces of each sequence and close it with [SEP]."""
    return torch.cat([ids[:, : length - 1], torch.full_like(ids[:, :1], sep_id)], dim=1)


def train_reader(
    stories: Stories, seed: int, steps: int = 120, batch_size: int = 32
) -> PlotReader:
    """Train a BERT of the tiny size on batches of one length each, from `SHORTEST` to
    `LONGEST`, without padding."""
    set_seed(seed)
    config = BertConfig.tiny(
        vocab_size=stories.vocab_size,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = PlotReader(config, int(stories.train_plots.max()) + 1)

    def epoch_batches(epoch: int) -> list[dict[str, Tensor]]:
        generator = torch.Generator().manual_seed(1000 * seed + epoch)
        order = torch.randperm(len(stories.train_ids), generator=generator)
        lengths = torch.randint(
            SHORTEST, LONGEST + 1, (len(order) // batch_size,), generator=generator
        )
        return [
            {
                "ids": cut(stories.train_ids[rows], int(length), stories.sep_id),
                "plots": stories.train_plots[rows],
            }
            for rows, length in zip(order.split(batch_size), lengths, strict=False)
        ]

    settings = TrainingConfig(
        steps=steps, learning_rate=1e-3, warmup_steps=20, seed=seed, progress=False
    )
    train(model, epoch_batches, _loss, settings)
    return model.eval()


def _loss(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
    _, logits = model(batch["ids"])
    return F.cross_entropy(logits, batch["plots"], reduction="sum"), len(logits)


@dataclass
class Effect:
    """What one number of padded positions does.

    Parameters
    ----------
    moved
        Mean over the real positions of the change of a state, as a share of its length.
    answers
        Share of the stories whose most probable plot is another than without padding.
    """

    moved: float
    answers: float


@torch.no_grad()
def padding_effect(
    model: PlotReader, ids: Int[Tensor, "B T"], padded: Sequence[int], with_mask: bool
) -> list[Effect]:
    """Compare what the model computes with padding and without."""
    model.eval()
    ids = ids.to(next(model.parameters()).device)
    pad_id = model.bert.config.pad_token_id or 0
    before, logits_before = model(ids)
    effects = []
    for number in padded:
        mask = (
            F.pad(torch.ones_like(ids, dtype=torch.bool), (0, number))
            if with_mask
            else None
        )
        hidden, logits = model(F.pad(ids, (0, number), value=pad_id), mask)
        moved = (hidden[:, : ids.shape[1]] - before).norm(dim=-1) / before.norm(dim=-1)
        answers = (logits.argmax(dim=-1) != logits_before.argmax(dim=-1)).double()
        effects.append(Effect(moved.mean().item(), answers.mean().item()))
    return effects


@torch.no_grad()
def accuracy(
    model: PlotReader, ids: Int[Tensor, "B T"], plots: Int[Tensor, "B"]
) -> float:
    """Return the share of stories whose plot is named."""
    _, logits = model.eval()(ids.to(next(model.parameters()).device))
    return (logits.argmax(dim=-1).cpu() == plots).double().mean().item()
