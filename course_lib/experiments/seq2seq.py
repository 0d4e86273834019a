"""Translation experiments: train one model on sentence pairs, translate the test split, score it.

Chapter 1 compares encoder-decoders of recurrent units with attention and without; `RECIPES` holds its sizes for each
data set. Chapter 3 puts a Transformer beside them (:mod:`course_lib.experiments.transformer`). All are trained, decoded
and scored by the functions below. The chapters call them live; ``course experiment`` records what they return.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from course_lib import data
from course_lib.decoding import Hypothesis, beam_search, greedy
from course_lib.experiments.text import BOS, EOS, PAD, Pair, collate, encode_pairs, train_tokenizer
from course_lib.metrics import bleu, exact_match
from course_lib.seq2seq import Seq2Seq, Seq2SeqConfig
from course_lib.training import History, TrainingConfig, batches, device, set_seed, train
from course_lib.transformer import Transformer, TransformerConfig
from course_lib.transformer_heads import label_smoothing_loss

Translator: TypeAlias = Seq2Seq | Transformer
"""Both score a known target (`forward`) and write an unknown one word by word (`start`, `step`)."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the outcome of one run, but the seed.

    Parameters
    ----------
    data
        Name of the data set; it needs columns ``en`` and ``fr``.
    tokenizer
        "word" or "bpe".
    vocab_size
        Upper limit on each side's vocabulary.
    embedding_dim, hidden_dim, dropout
        Of a recurrent model, as in `Seq2SeqConfig`.
    transformer
        Of a Transformer: the settings of `TransformerConfig` but for the vocabularies.
    label_smoothing
        The share of `label_smoothing_loss`, in training only.
    batch_size
        Sentence pairs in a batch.
    training
        Steps, learning rate and the rest.
    beam_size, length_penalty
        Of the beam search that writes the scored translations; a beam of 1 is greedy.
    max_length
        Longest translation, in units of the target's vocabulary.
    length_bins
        Upper edges, in source words, of the groups that are scored apart.
    test_size
        Number of test pairs that are scored; None for all.
    """

    data: str
    tokenizer: str = "word"
    vocab_size: int = 6000
    embedding_dim: int = 128
    hidden_dim: int = 128
    dropout: float = 0.0
    batch_size: int = 64
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(steps=300))
    beam_size: int = 1
    length_penalty: float = 0.6
    max_length: int = 80
    length_bins: tuple[int, ...] = (10, 20, 30, 40, 50, 60)
    test_size: int | None = None
    transformer: dict[str, Any] = field(default_factory=dict)
    label_smoothing: float = 0.0


@dataclass
class Corpus:
    """A data set ready for training: the text, its ids, and the two tokenizers that lead from one to the other."""

    text: dict[str, dict[str, list]]
    pairs: dict[str, list[Pair]]
    tokenizers: tuple[Tokenizer, Tokenizer]

    def decode(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Turn hypotheses into French text."""
        return self.tokenizers[1].decode_batch([hypothesis.tokens for hypothesis in hypotheses])


def prepare(recipe: Recipe, source: str | None = None) -> Corpus:
    """Load the recipe's data and encode it; the tokenizers see the training split alone.

    Parameters
    ----------
    recipe
        Names the data and the tokenizer.
    source
        Where the data comes from, as in `course_lib.data.load`.

    Returns
    -------
    Corpus
        Splits ``train``, ``validation`` and ``test``.
    """
    dataset = data.load(recipe.data, source)
    text = {split: {name: rows[name] for name in rows.column_names} for split, rows in dataset.items()}
    text = {split: {name: list(column) for name, column in columns.items()} for split, columns in text.items()}
    if recipe.test_size is not None:
        text["test"] = {name: column[: recipe.test_size] for name, column in text["test"].items()}
    tokenizers = (
        train_tokenizer(text["train"]["en"], recipe.tokenizer, recipe.vocab_size),
        train_tokenizer(text["train"]["fr"], recipe.tokenizer, recipe.vocab_size),
    )
    pairs = {split: encode_pairs(columns["en"], columns["fr"], tokenizers) for split, columns in text.items()}
    return Corpus(text, pairs, tokenizers)


def build(recipe: Recipe, corpus: Corpus, attention: str | None, seed: int) -> Translator:
    """Make an untrained model; with the same seed, "dot" and None start from the very same weights.

    Parameters
    ----------
    recipe, corpus
        For the sizes.
    attention
        "dot", "bilinear" or "additive": a recurrent model with this score. None: one without attention. "transformer":
        a Transformer.
    seed
        Decides the weights.

    Returns
    -------
    Seq2Seq or Transformer
        On the course's device.
    """
    set_seed(seed)
    source_vocab, target_vocab = (tokenizer.get_vocab_size() for tokenizer in corpus.tokenizers)
    if attention == "transformer":
        return Transformer(TransformerConfig(source_vocab, target_vocab, **recipe.transformer)).to(device())
    config = Seq2SeqConfig(
        source_vocab, target_vocab, recipe.embedding_dim, recipe.hidden_dim, attention, recipe.dropout
    )
    return Seq2Seq(config).to(device())


def loss_sum(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy of a batch, in nats, and the number of target words, `<eos>` included."""
    logits = model(batch["source_ids"], batch["source_lengths"], batch["target_ids"])
    labels = batch["labels"]
    loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=PAD, reduction="sum")
    return loss, (labels != PAD).sum()


def smoothed_loss_sum(smoothing: float) -> Callable[[nn.Module, dict[str, Tensor]], tuple[Tensor, Tensor]]:
    """Return what training minimises: `loss_sum`, with smoothed labels if `smoothing` is above 0."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        logits = model(batch["source_ids"], batch["source_lengths"], batch["target_ids"])
        return label_smoothing_loss(logits.flatten(0, 1), batch["labels"].flatten(), smoothing, PAD)

    return loss if smoothing else loss_sum


def perplexity_evaluator(recipe: Recipe, corpus: Corpus) -> Callable[[nn.Module], dict[str, float]]:
    """Return a function that measures a model's loss on the validation split, in nats per target word."""
    chunks = [collate(chunk) for _, chunk in sorted_chunks(corpus.pairs["validation"], 4 * recipe.batch_size)]

    @torch.no_grad()
    def evaluate(model: nn.Module) -> dict[str, float]:
        sums = [loss_sum(model, {name: tensor.to(device()) for name, tensor in chunk.items()}) for chunk in chunks]
        total, count = (torch.stack(parts).sum().item() for parts in zip(*sums, strict=True))
        return {"loss": total / count}

    return evaluate


def fit(
    recipe: Recipe, corpus: Corpus, attention: str | None, seed: int, checkpoint: Path | None = None
) -> tuple[Translator, History]:
    """Train one model by teacher forcing.

    Parameters
    ----------
    recipe, corpus
        What is trained on what.
    attention
        As in `build`.
    seed
        Decides the first weights, the order of batches and dropout.
    checkpoint
        Where to save at each evaluation, and to continue from.

    Returns
    -------
    tuple of model and History
        The model, and its losses.
    """
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

    evaluate = perplexity_evaluator(recipe, corpus) if recipe.training.evaluate_every else None
    every = recipe.training.evaluate_every if checkpoint else None
    config = replace(recipe.training, seed=seed, checkpoint=checkpoint, checkpoint_every=every)
    history = train(model, epoch_batches, smoothed_loss_sum(recipe.label_smoothing), config, evaluate)
    return model, history


def sorted_chunks(pairs: Sequence[Pair], size: int) -> Iterator[tuple[list[int], list[Pair]]]:
    """Yield the pairs with their places, sorted by length so that little is padding."""
    order = sorted(range(len(pairs)), key=lambda place: len(pairs[place].source))
    for start in range(0, len(order), size):
        places = order[start : start + size]
        yield places, [pairs[place] for place in places]


@torch.no_grad()
def translate(
    model: Translator, pairs: Sequence[Pair], beam_size: int = 1, length_penalty: float = 0.6, max_length: int = 80
) -> list[Hypothesis]:
    """Translate the source side of each pair: greedily if `beam_size` is 1, else with beam search.

    Returns
    -------
    list of Hypothesis
        The best translation of each pair, in the order given.
    """
    model.eval()
    found: dict[int, Hypothesis] = {}
    for places, chunk in sorted_chunks(pairs, 256 // beam_size + 1):
        batch = collate(chunk)
        state = model.start(batch["source_ids"].to(device()), batch["source_lengths"].to(device()))
        if beam_size == 1:
            best = greedy(model.step, state, len(chunk), BOS, EOS, max_length)
        else:
            beams = beam_search(model.step, state, len(chunk), BOS, EOS, max_length, beam_size, length_penalty)
            best = [beam[0] for beam in beams]
        found.update(zip(places, best, strict=True))
    return [found[place] for place in range(len(pairs))]


def quality(texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Score translations three ways.

    Returns
    -------
    dict of str to float
        ``bleu``: corpus BLEU of the raw text, 0 to 100. ``bleu_lowercase``: of lower-cased text with all punctuation
        split off, which is close to how the shared tasks on Multi30k scored. ``exact_match``: the share that equal
        their reference.
    """
    lower_texts, lower_references = ([text.lower() for text in side] for side in (texts, references))
    return {
        "bleu": bleu(texts, references),
        "bleu_lowercase": bleu(lower_texts, lower_references, tokenize="intl"),
        "exact_match": exact_match(texts, references),
    }


def quality_by_length(texts: Sequence[str], corpus: Corpus, edges: Sequence[int]) -> list[dict[str, int | float]]:
    """Score the test translations apart for each group of source lengths.

    Parameters
    ----------
    texts
        Translations of the test split, in order.
    corpus
        Holds the references.
    edges
        Upper edge of each group, in source words; a group without a sentence is left out.

    Returns
    -------
    list of dict
        ``longest``, ``pairs`` and the scores of each group.
    """
    lengths = [len(sentence.split()) for sentence in corpus.text["test"]["en"]]
    references = corpus.text["test"]["fr"]
    rows: list[dict[str, int | float]] = []
    lower = 0
    for upper in edges:
        places = [place for place, length in enumerate(lengths) if lower < length <= upper]
        if places:
            scores = quality([texts[place] for place in places], [references[place] for place in places])
            rows.append({"longest": upper, "pairs": len(places), **scores})
        lower = upper
    return rows


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
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "scores": self.scores,
            "by_length": self.by_length,
            "validation_loss": self.history.metrics.get("loss", []),
            "steps": len(self.history.steps),
            "final_training_loss": self.history.losses[-1],
            "seconds": round(self.seconds, 1),
        }


def train_and_score(
    recipe: Recipe, corpus: Corpus, attention: str | None, seed: int, checkpoint: Path | None = None
) -> Trained:
    """Train one model and score it on the test split; the arguments are those of `fit`.

    Returns
    -------
    Trained
        Test BLEU, exact match, both by length, and the seconds that the training steps took.
    """
    model, history = fit(recipe, corpus, attention, seed, checkpoint)
    hypotheses = translate(model, corpus.pairs["test"], recipe.beam_size, recipe.length_penalty, recipe.max_length)
    texts = corpus.decode(hypotheses)
    scores = quality(texts, corpus.text["test"]["fr"])
    return Trained(
        attention,
        seed,
        model,
        history,
        texts,
        scores,
        quality_by_length(texts, corpus, recipe.length_bins),
        history.seconds[-1],
    )


RECIPES = {
    "translation": Recipe(
        data="translation",
        embedding_dim=64,
        training=TrainingConfig(steps=350, learning_rate=1e-2, warmup_steps=30, schedule="linear", progress=False),
        test_size=300,
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
            bf16=True,
            evaluate_every=300,
            patience=12,
        ),
        beam_size=5,
        length_bins=(8, 12, 16, 20, 40),
    ),
}


def recipe_from(configuration: dict) -> Recipe:
    """Load a recipe back from a record's configuration."""
    settings = dict(configuration)
    settings["training"] = TrainingConfig(**settings["training"])
    settings["length_bins"] = tuple(settings["length_bins"])
    return Recipe(**settings)
