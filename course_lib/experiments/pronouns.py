"""Which noun does "it" attend to, and does it matter? A probe of a Transformer that must resolve a pronoun (chapter 3).

The model translates `pronouns` (:mod:`course_lib.data.pronouns`): il or elle, and the adjective's ending, depend on
which of two nouns "it" stands for. Three questions, each asked of pairs of nouns that training never showed:

1. Does the model resolve the pronoun? `resolved`: the share of translations with the right pronoun and adjective.
2. Do weights show it? `preference`: how often a word attends to the noun that "it" stands for more than to the other,
   in the head that does best on validation. By chance: 0.5. Controls: the same weights with source words permuted, the
   weights of another sentence, an untrained model.
3. Does the model need it? `pronoun_accuracy`: how often the pronoun is right when some words may not look at others, or
   a head is silent. A weight can be large and of no use (Jain and Wallace 2019); such a cut shows use.

A page runs ::

    corpus = seq2seq.prepare(pronouns.RECIPE, "embedded")
    runs = train_jobs([(pronouns.RECIPE, "transformer", seed) for seed in SEEDS], corpus)
    probes = [pronouns.probe(run, corpus) for run in runs]

and reads `Probe.resolved`, `Probe.preferences[source][query].share` and `Probe.cuts[name]`, one probe a seed, with
`course_lib.metrics.mean_interval` over seeds.

    B  sentences   N  layers   H  heads   S  source words
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.experiments.scoring import sorted_chunks
from course_lib.experiments.seq2seq import Corpus, Recipe, Trained
from course_lib.experiments.text import collate
from course_lib.masking import padding_mask
from course_lib.training import TrainingConfig, device, set_seed
from course_lib.transformer import Transformer

RECIPE = Recipe(
    "pronouns",
    transformer={"dim": 64, "num_heads": 4, "num_layers": 2, "hidden_dim": 128, "norm": "pre"},
    batch_size=64,
    training=TrainingConfig(steps=300, learning_rate=5e-3, warmup_steps=30, schedule="linear", progress=False),
    max_length=20,
    length_bins=(14,),
)

Head = tuple[int, int]
"""Layer and head, counted from 0."""

#: Whose attention is measured. English words look at English words; French words look at them while they are written.
QUERIES = ("it", "adjective", "il or elle", "French adjective")


@dataclass(frozen=True)
class Places:
    """Where the words that matter stand in each sentence of a split, counted from 0."""

    it: Int[Tensor, "B"]
    adjective: Int[Tensor, "B"]
    antecedent: Int[Tensor, "B"]
    other_noun: Int[Tensor, "B"]
    french_pronoun: Int[Tensor, "B"]
    french_adjective: Int[Tensor, "B"]

    def of(self, name: str) -> list[Int[Tensor, "B"]]:
        """Return the places of "it", of the "adjective", of both "nouns", or of the "negation": did, not."""
        if name == "nouns":
            return [self.antecedent, self.other_noun]
        if name == "negation":  # it follows the first noun
            first = torch.minimum(self.antecedent, self.other_noun)
            return [first + 1, first + 2]
        return [getattr(self, name)]


def places(corpus: Corpus, split: str) -> Places:
    """Find these places from the gold columns of the data."""
    text = corpus.text[split]
    adjectives = [len(sentence.split()) - 1 for sentence in text["en"]]
    french = [dict(map(tuple, links)) for links in text["alignment"]]  # both words have one link each
    return Places(
        it=torch.tensor(text["pronoun"]),
        adjective=torch.tensor(adjectives),
        antecedent=torch.tensor(text["antecedent"]),
        other_noun=torch.tensor(text["other_noun"]),
        french_pronoun=torch.tensor([links[s] for links, s in zip(french, text["pronoun"], strict=True)]),
        french_adjective=torch.tensor([links[s] for links, s in zip(french, adjectives, strict=True)]),
    )


# -- does it resolve? --------------------------------------------------------------------------------------------------


def resolved(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of translations that end as the reference does, from "parce qu'" on: pronoun and adjective.

    Parameters
    ----------
    texts, references
        French sentences.

    Examples
    --------
    >>> resolved(["le chat a parce qu' il était"], ["le chien a parce qu' il était"])
    1.0
    """
    ends = [[sentence.partition("parce")[2] for sentence in side] for side in (texts, references)]
    return sum(a == b != "" for a, b in zip(*ends, strict=True)) / len(references)


# -- where do weights show it? -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """The attention of one query word in each sentence, all layers and heads, and the places of both nouns."""

    weights: Float[Tensor, "B N H S"]  # 0 beyond the sentence
    lengths: Int[Tensor, "B"]
    antecedent: Int[Tensor, "B"]
    other_noun: Int[Tensor, "B"]

    def on(self, place: Int[Tensor, "B"]) -> Float[Tensor, "B N H"]:
        """Return the weights on one source word of each sentence."""
        return self.weights[torch.arange(len(place)), :, :, place]

    def preference(self) -> Float[Tensor, "N H"]:
        """Return the share of sentences in which the antecedent gets more weight than the other noun; a tie is half."""
        difference = self.on(self.antecedent) - self.on(self.other_noun)
        return ((difference.sign() + 1) / 2).mean(dim=0)


@torch.no_grad()
def attention_rows(model: Transformer, corpus: Corpus, split: str) -> dict[str, Rows]:
    """Return what the words of `QUERIES` attend to in each sentence, while the model reads the gold translation."""
    model.eval()
    pairs, where = corpus.pairs[split], places(corpus, split)
    config = model.config
    longest = max(len(pair.source) for pair in pairs)
    weights = {query: torch.zeros(len(pairs), config.num_layers, config.num_heads, longest) for query in QUERIES}
    for chosen, chunk in sorted_chunks(pairs, 256):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        _, maps = model(batch["source_ids"], batch["source_lengths"], batch["target_ids"], return_weights=True)
        encoder, cross = (torch.stack(layers, dim=1).cpu() for layers in (maps.encoder, maps.cross))  # (B, N, H, ., S)
        for query, table, place in (
            ("it", encoder, where.it),
            ("adjective", encoder, where.adjective),
            ("il or elle", cross, where.french_pronoun),  # row t is the attention with which word t is written
            ("French adjective", cross, where.french_adjective),
        ):
            rows = table[torch.arange(len(chosen)), :, :, place[chosen]]
            weights[query][chosen, :, :, : rows.shape[-1]] = rows
    lengths = torch.tensor([len(pair.source) for pair in pairs])
    return {query: Rows(table, lengths, where.antecedent, where.other_noun) for query, table in weights.items()}


def permuted_words(rows: Rows, generator: torch.Generator) -> Rows:
    """Permute the weights over the source words of each sentence: as sharp as they were, and blind."""
    noise = torch.rand(rows.weights.shape[0], rows.weights.shape[-1], generator=generator)
    beyond = torch.arange(noise.shape[1]) >= rows.lengths[:, None]
    order = noise.masked_fill(beyond, 2.0).argsort(dim=-1)  # padding stays where it is
    return replace(rows, weights=rows.weights.gather(-1, order[:, None, None].expand_as(rows.weights)))


def another_sentence(rows: Rows, generator: torch.Generator) -> Rows:
    """Give each sentence the weights of another one of its length: they know where nouns stand, not which is meant."""
    weights = rows.weights.clone()
    for length in rows.lengths.unique():
        (group,) = torch.where(rows.lengths == length)
        shuffled = group[torch.randperm(len(group), generator=generator)]
        weights[shuffled] = rows.weights[shuffled.roll(1)]  # a ring: no sentence keeps its own
    return replace(rows, weights=weights)


@dataclass(frozen=True)
class Preference:
    """How often a word attends to the noun that "it" stands for more than to the other, in its best head.

    Parameters
    ----------
    head
        The one with the largest share on validation.
    share
        Its share on test; 0.5 by chance.
    on_antecedent, on_other_noun
        Its mean weights on test.
    every_head
        The share of every layer and head on test.
    """

    head: Head
    share: float
    on_antecedent: float
    on_other_noun: float
    every_head: Float[Tensor, "N H"]


def preference(validation: Rows, test: Rows) -> Preference:
    """Choose a head on validation and report it on test."""
    shares = test.preference()
    best = int(validation.preference().argmax())
    layer, head = divmod(best, shares.shape[1])
    means = [test.on(place)[:, layer, head].mean().item() for place in (test.antecedent, test.other_noun)]
    return Preference((layer, head), shares[layer, head].item(), means[0], means[1], shares)


# -- does it need it? --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """What the model has to do without; words are named as in `Places.of`.

    Parameters
    ----------
    edges
        Pairs (who, whom): in the encoder, in all its layers and heads, who may not look at whom.
    hidden
        Words whose encoder states the decoder may not look at.
    """

    edges: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()


#: Each cut beside one of as many words that should not matter, did and not.
CUTS = {
    "nothing": Cut(),
    '"it" may not look at the nouns': Cut(edges=(("it", "nouns"),)),
    '"it" may not look at the adjective': Cut(edges=(("it", "adjective"),)),
    "the adjective may not look at the nouns": Cut(edges=(("adjective", "nouns"),)),
    "the nouns may not look at the adjective": Cut(edges=(("nouns", "adjective"),)),
    "neither may look at the nouns": Cut(edges=(("it", "nouns"), ("adjective", "nouns"))),
    'control: neither may look at "did not"': Cut(edges=(("it", "negation"), ("adjective", "negation"))),
    'the decoder may not look at "it"': Cut(hidden=("it",)),
    "the decoder may not look at the adjective": Cut(hidden=("adjective",)),
    "the decoder may not look at the nouns": Cut(hidden=("nouns",)),
    'control: the decoder may not look at "did not"': Cut(hidden=("negation",)),
}


@torch.no_grad()
def pronoun_accuracy(model: Transformer, corpus: Corpus, cut: Cut = CUTS["nothing"], size: int | None = None) -> float:
    """Return the share of test sentences in which the right one of il and elle is the more probable; 0.5 by chance.

    Parameters
    ----------
    model, corpus
        A model and its data. It reads the gold translation up to "parce qu'".
    cut
        What it has to do without.
    size
        How many test sentences; None for all.
    """
    model.eval()
    pairs, where = corpus.pairs["test"][:size], places(corpus, "test")
    il, elle = (corpus.tokenizers[1].token_to_id(word) for word in ("il", "elle"))
    right = 0
    for chosen, chunk in sorted_chunks(pairs, 256):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        encoder_mask, memory_mask = _masks(batch["source_lengths"], where, chosen, cut)
        hidden, memory = model.embed(batch["target_ids"]), model.encoder(batch["source_ids"], encoder_mask)
        for block in model.blocks:
            hidden = block(hidden, memory, memory_mask)
        logits = model.output(model.final_norm(hidden))
        sentences, place = torch.arange(len(chunk), device=logits.device), where.french_pronoun[chosen].to(device())
        prefers_elle = logits[sentences, place, elle] > logits[sentences, place, il]
        right += int((prefers_elle == (batch["labels"][sentences, place] == elle)).sum())
    return right / len(pairs)


def _masks(
    lengths: Int[Tensor, "B"], where: Places, chosen: list[int], cut: Cut
) -> tuple[Bool[Tensor, "B S S"], Bool[Tensor, "B 1 S"]]:
    """Padding masks, from which the cut is taken: of the encoder's attention, and of the decoder's to the encoder."""
    memory_mask = padding_mask(lengths)[:, None]  # (B, S) -> (B, 1, S)
    encoder_mask = memory_mask.repeat(1, memory_mask.shape[-1], 1)  # (B, 1, S) -> (B, S, S)
    sentences = torch.arange(len(chosen))
    for who, whom in cut.edges:
        for query, key in product(where.of(who), where.of(whom)):
            encoder_mask[sentences, query[chosen], key[chosen]] = False
    for name in cut.hidden:
        for place in where.of(name):
            memory_mask[sentences, 0, place[chosen]] = False
    return encoder_mask, memory_mask


@contextmanager
def silent(model: Transformer, head: Head) -> Iterator[None]:
    """Silence one head of the encoder: what it adds is 0 (Michel et al. 2019, section 2.2)."""
    layer, number = head
    features = model.config.dim // model.config.num_heads

    def silence(module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        merged = inputs[0].clone()
        merged[..., number * features : (number + 1) * features] = 0
        return (merged,)

    hook = model.encoder.blocks[layer].attention.out_proj.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        hook.remove()


# -- all of it ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    """What one trained model answers.

    Parameters
    ----------
    seed
        Of its training.
    resolved
        Share of test translations, greedy, with the right pronoun and adjective.
    preferences
        For "trained", "permuted words", "another sentence" and "untrained", the `Preference` of each of `QUERIES`.
    cuts
        For each of `CUTS`, the share of test sentences with the right pronoun.
    untrained
        That share before training, with nothing cut.
    silent_heads
        That share when one head of the encoder is silent, for each layer and head.
    """

    seed: int
    resolved: float
    preferences: dict[str, dict[str, Preference]]
    cuts: dict[str, float]
    untrained: float
    silent_heads: Float[Tensor, "N H"]


def probe(run: Trained, corpus: Corpus, size: int | None = 600) -> Probe:
    """Ask a trained model all three questions.

    Parameters
    ----------
    run
        Of `RECIPE`, from `course_lib.experiments.runs.train_jobs`.
    corpus
        What it was trained on.
    size
        How many test sentences each cut and each silent head is measured on; the rest is measured on all.

    Returns
    -------
    Probe
        The answers.

    Raises
    ------
    ValueError
        If the run is no Transformer's.
    """
    model = run.model
    if not isinstance(model, Transformer):
        raise ValueError(f"this run trained a {type(model).__name__}; the probe reads a Transformer's weights")
    set_seed(run.seed)
    untrained = Transformer(model.config).to(device())  # as it was before its training
    generator = torch.Generator().manual_seed(run.seed)
    trained_rows, untrained_rows = _both_splits(model, corpus), _both_splits(untrained, corpus)
    preferences = {
        "trained": {query: preference(*rows) for query, rows in trained_rows.items()},
        "permuted words": {
            query: preference(*(permuted_words(split, generator) for split in rows))
            for query, rows in trained_rows.items()
        },
        "another sentence": {
            query: preference(*(another_sentence(split, generator) for split in rows))
            for query, rows in trained_rows.items()
        },
        "untrained": {query: preference(*rows) for query, rows in untrained_rows.items()},
    }
    heads = [[0.0] * model.config.num_heads for _ in range(model.config.num_layers)]
    for layer, head in product(range(model.config.num_layers), range(model.config.num_heads)):
        with silent(model, (layer, head)):
            heads[layer][head] = pronoun_accuracy(model, corpus, size=size)
    return Probe(
        run.seed,
        resolved(run.texts, corpus.text["test"]["fr"]),
        preferences,
        {name: pronoun_accuracy(model, corpus, cut, size) for name, cut in CUTS.items()},
        pronoun_accuracy(untrained, corpus, size=size),
        torch.tensor(heads),
    )


def _both_splits(model: Transformer, corpus: Corpus) -> dict[str, tuple[Rows, Rows]]:
    validation, test = (attention_rows(model, corpus, split) for split in ("validation", "test"))
    return {query: (validation[query], test[query]) for query in QUERIES}
