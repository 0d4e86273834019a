"""Translation experiments: train one model on sentence pairs, translate the test split,
score it.

Chapter 1 compares encoder-decoders of recurrent units with attention and without;
`RECIPES` holds its sizes for each data set. Chapter 3 puts a Transformer beside them
(:mod:`course_lab.ch03_transformer.transformer`). All are trained, decoded and scored by
the functions below. The chapters call them live; ``course record`` records what
they return.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from course_lab.ch01_seq2seq.positions import replace_positions
from course_lab.ch01_seq2seq.scoring import (
    Translator,
    quality,
    quality_by_length,
    sorted_chunks,
    translate,
)
from course_lab.ch01_seq2seq.text import (
    PAD,
    Pair,
    collate,
    encode_pairs,
    train_tokenizer,
)
from course_lab.probing import start
from course_lib import data
from course_lib.seq2seq.model import Seq2Seq, Seq2SeqConfig
from course_lib.seq2seq.search import Hypothesis
from course_lib.training.loop import (
    History,
    TrainingConfig,
    adamw,
    batches,
    device,
    set_seed,
    train,
)
from course_lib.training.muon import muon
from course_lib.transformer.heads import label_smoothing_loss
from course_lib.transformer.model import Transformer, TransformerConfig

OPTIMIZERS: Mapping[
    str, Callable[[nn.Module, TrainingConfig], torch.optim.Optimizer]
] = {"adamw": adamw, "muon": muon}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the outcome of one run, but the seed."""

    data: str  # name of the data set; it needs columns ``en`` and ``fr``
    tokenizer: str = "word"  # "word" or "bpe"
    vocab_size: int = 6000  # upper limit on each side's vocabulary
    #: embedding_dim, hidden_dim, dropout, input_feeding, tie_output, conditional,
    #: layer_norm: of a recurrent model, as in `Seq2SeqConfig`.
    embedding_dim: int = 128
    hidden_dim: int = 128
    dropout: float = 0.0
    batch_size: int = 64  # sentence pairs in a batch
    #: Steps, learning rate and the rest.
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(steps=300))
    #: beam_size, length_penalty: of the beam search that writes the scored
    #: translations; a beam of 1 is greedy.
    beam_size: int = 1
    length_penalty: float = 0.6
    max_length: int = 80  # longest translation, in units of the target's vocabulary
    #: Upper edges, in source words, of the groups that are scored apart.
    length_bins: tuple[int, ...] = (10, 20, 30, 40, 50, 60)
    test_size: int | None = None  # number of test pairs that are scored; None for all
    #: Of a Transformer: the settings of `TransformerConfig` but for the vocabularies.
    transformer: dict[str, Any] = field(default_factory=dict)
    #: What a Transformer adds at position k instead of sines and cosines, as an
    #: ablation: "index" adds k to every feature, "share" adds k / `max_length`.
    position_table: str | None = None
    #: Train and validate on sentences of at most this many source words; None takes
    #: all. The test split keeps its longer sentences, up to `max_test`.
    max_source: int | None = None
    #: Score test sentences of at most this many source words; None takes all.
    max_test: int | None = None
    #: The share of `label_smoothing_loss`, in training only.
    label_smoothing: float = 0.0
    input_feeding: bool = False
    tie_output: bool = False
    conditional: bool = False
    layer_norm: bool = False
    #: "adamw", or "muon" for the matrices inside the model
    #: (`course_lib.training.muon`).
    optimizer: str = "adamw"
    #: The recurrent models that ``course record seq2seq`` compares, as it names them.
    attentions: tuple[str, ...] = ("dot", "none")

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer is {self.optimizer!r}; choose {' or '.join(OPTIMIZERS)}"
            )


@dataclass
class Corpus:
    """A data set ready for training: the text, its ids, and the two tokenizers that
    lead from one to the other."""

    text: dict[str, dict[str, list]]
    pairs: dict[str, list[Pair]]
    tokenizers: tuple[Tokenizer, Tokenizer]

    def decode(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Turn hypotheses into French text."""
        return self.tokenizers[1].decode_batch(
            [hypothesis.tokens for hypothesis in hypotheses]
        )


def prepare(recipe: Recipe, source: str | None = None) -> Corpus:
    """Load the recipe's data and encode it; the tokenizers see the training split
    alone."""
    dataset = data.load(recipe.data, source)
    text = {
        split: {name: rows[name] for name in rows.column_names}
        for split, rows in dataset.items()
    }
    text = {
        split: {name: list(column) for name, column in columns.items()}
        for split, columns in text.items()
    }
    if recipe.test_size is not None:
        text["test"] = {
            name: column[: recipe.test_size] for name, column in text["test"].items()
        }
    limits = {
        "train": recipe.max_source,
        "validation": recipe.max_source,
        "test": recipe.max_test,
    }
    for split, limit in limits.items():
        if limit is not None:
            short = [len(sentence.split()) <= limit for sentence in text[split]["en"]]
            text[split] = {
                name: list(compress(column, short))
                for name, column in text[split].items()
            }
    tokenizers = (
        train_tokenizer(text["train"]["en"], recipe.tokenizer, recipe.vocab_size),
        train_tokenizer(text["train"]["fr"], recipe.tokenizer, recipe.vocab_size),
    )
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return Corpus(text, pairs, tokenizers)


def build(
    recipe: Recipe, corpus: Corpus, attention: str | None, seed: int
) -> Translator:
    """Make an untrained model; with the same seed, "dot" and None start from the very
    same weights."""
    set_seed(seed)
    source_vocab, target_vocab = (
        tokenizer.get_vocab_size() for tokenizer in corpus.tokenizers
    )
    if attention == "transformer":
        model = Transformer(
            TransformerConfig(source_vocab, target_vocab, **recipe.transformer)
        )
        if recipe.position_table is not None:
            replace_positions(model, recipe.position_table)
        return start(model).to(device())
    config = Seq2SeqConfig(
        source_vocab,
        target_vocab,
        recipe.embedding_dim,
        recipe.hidden_dim,
        attention,
        recipe.dropout,
        recipe.tie_output,
        recipe.conditional,
        recipe.layer_norm,
    )
    return start(Seq2Seq(config)).to(device())


def loss_sum(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy of a batch, in nats, and the number of target
    words, `<eos>` included."""
    logits = model(batch["source_ids"], batch["source_lengths"], batch["target_ids"])
    labels = batch["labels"]
    loss = F.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=PAD,
        reduction="sum",
    )
    return loss, (labels != PAD).sum()


def smoothed_loss_sum(
    smoothing: float,
) -> Callable[[nn.Module, dict[str, Tensor]], tuple[Tensor, Tensor]]:
    """Return what training minimises: `loss_sum`, with smoothed labels if `smoothing`
    is above 0."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits = model(
            batch["source_ids"], batch["source_lengths"], batch["target_ids"]
        )
        return label_smoothing_loss(
            logits.flatten(0, 1), batch["labels"].flatten(), smoothing, PAD
        )

    return loss if smoothing else loss_sum


def perplexity_evaluator(
    recipe: Recipe, corpus: Corpus
) -> Callable[[nn.Module], dict[str, float]]:
    """Return a function that measures a model's loss on the validation split, in nats
    per target word."""
    chunks = [
        collate(chunk)
        for _, chunk in sorted_chunks(corpus.pairs["validation"], 4 * recipe.batch_size)
    ]

    @torch.no_grad()
    def evaluate(model: nn.Module) -> dict[str, float]:
        sums = [
            loss_sum(
                model, {name: tensor.to(device()) for name, tensor in chunk.items()}
            )
            for chunk in chunks
        ]
        total, count = (
            torch.stack(parts).sum().item() for parts in zip(*sums, strict=True)
        )
        return {"loss": total / count}

    return evaluate


def fit(
    recipe: Recipe,
    corpus: Corpus,
    attention: str | None,
    seed: int,
    checkpoint: Path | None = None,
) -> tuple[Translator, History]:
    """Train one model by teacher forcing."""
    model = build(recipe, corpus, attention, seed)

    def epoch_batches(epoch: int) -> Iterator[dict[str, Tensor]]:
        return batches(
            corpus.pairs["train"],
            recipe.batch_size,
            seed=seed,
            epoch=epoch,
            length=lambda pair: len(pair.source) + len(pair.target),
            collate=collate,
        )

    evaluate = (
        perplexity_evaluator(recipe, corpus) if recipe.training.evaluate_every else None
    )
    every = recipe.training.evaluate_every if checkpoint else None
    config = replace(
        recipe.training, seed=seed, checkpoint=checkpoint, checkpoint_every=every
    )
    make_optimizer = OPTIMIZERS[recipe.optimizer]
    history = train(
        model,
        epoch_batches,
        smoothed_loss_sum(recipe.label_smoothing),
        config,
        evaluate,
        make_optimizer,
    )
    return model, history


@dataclass
class Trained:
    """One trained model with its scores on the test split."""

    attention: str | None
    seed: int
    model: Translator
    history: History
    texts: list[str]
    scores: dict[str, float]
    by_length: list[dict[str, int | float]]
    seconds: float

    def summary(self) -> dict:
        """Return the figures alone, ready for JSON."""
        return {
            "attention": self.attention,
            "seed": self.seed,
            "parameters": sum(
                parameter.numel() for parameter in self.model.parameters()
            ),
            "scores": self.scores,
            "by_length": self.by_length,
            "validation_loss": self.history.metrics.get("loss", []),
            "steps": len(self.history.steps),
            "final_training_loss": self.history.losses[-1],
            "seconds": round(self.seconds, 1),
        }


def train_and_score(
    recipe: Recipe,
    corpus: Corpus,
    attention: str | None,
    seed: int,
    checkpoint: Path | None = None,
) -> Trained:
    """Train one model and score it on the test split; the arguments are those of
    `fit`."""
    model, history = fit(recipe, corpus, attention, seed, checkpoint)
    hypotheses = translate(
        model,
        corpus.pairs["test"],
        recipe.beam_size,
        recipe.length_penalty,
        recipe.max_length,
    )
    texts = corpus.decode(hypotheses)
    english, french = corpus.text["test"]["en"], corpus.text["test"]["fr"]
    return Trained(
        attention,
        seed,
        model,
        history,
        texts,
        quality(texts, french),
        quality_by_length(texts, french, english, recipe.length_bins),
        history.seconds[-1],
    )


RECIPES = {
    # without attention, validation stops improving long after the model with attention
    # is done
    "translation": Recipe(
        data="translation",
        embedding_dim=64,
        training=TrainingConfig(
            steps=6000,
            learning_rate=1e-2,
            warmup_steps=300,
            schedule="inverse_sqrt",
            evaluate_every=150,
            patience=4,
        ),
        max_source=30,
        max_test=30,
        length_bins=(6, 12, 18, 24, 30),
    ),
    "multi30k": Recipe(
        data="multi30k",
        tokenizer="bpe",
        vocab_size=4000,
        embedding_dim=256,
        hidden_dim=320,
        dropout=0.3,
        batch_size=96,
        training=TrainingConfig(
            steps=3600,
            learning_rate=1.5e-3,
            warmup_steps=200,
            schedule="linear",
            precision="bfloat16",
            evaluate_every=300,
            patience=12,
        ),
        beam_size=5,
        length_bins=(8, 12, 16, 20, 40),
    ),
    "multi30k-conditional": Recipe(
        data="multi30k",
        tokenizer="bpe",
        vocab_size=4000,
        embedding_dim=320,
        hidden_dim=320,
        dropout=0.3,
        tie_output=True,
        conditional=True,
        layer_norm=True,
        label_smoothing=0.1,
        batch_size=64,
        optimizer="muon",
        training=TrainingConfig(
            steps=3600,
            learning_rate=1.5e-3,
            warmup_steps=200,
            schedule="linear",
            weight_decay=0.1,
            precision="bfloat16",
            evaluate_every=300,
        ),
        beam_size=5,
        length_penalty=1.0,
        length_bins=(8, 12, 16, 20, 40),
        attentions=("scaled",),
    ),
}
