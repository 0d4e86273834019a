"""Which of two nouns does a word attend to more? The weights of a model that translates
`pronouns`, and their controls.

`preference` is the measure, `permuted_words` and `another_sentence` the controls that
need no other model; :mod:`course_lab.ch03_transformer.pronouns` puts them together
(chapter 3).

    B  sentences   N  layers   H  heads   S  source words
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lab.ch01_seq2seq.scoring import sorted_chunks
from course_lab.ch01_seq2seq.seq2seq import Corpus
from course_lab.ch01_seq2seq.text import collate
from course_lab.ch03_transformer.attention_views import attention_maps
from course_lib.training.loop import device
from course_lib.transformer.model import Transformer

#: Whose attention is measured. English words look at English words; French words look
#: at them while they are written.
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
        """Return the places of "it", of the "adjective", of both "nouns", or of the
        "negation": did, not."""
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
    french = [
        dict(map(tuple, links)) for links in text["alignment"]
    ]  # both words have one link each
    return Places(
        it=torch.tensor(text["pronoun"]),
        adjective=torch.tensor(adjectives),
        antecedent=torch.tensor(text["antecedent"]),
        other_noun=torch.tensor(text["other_noun"]),
        french_pronoun=torch.tensor(
            [links[s] for links, s in zip(french, text["pronoun"], strict=True)]
        ),
        french_adjective=torch.tensor(
            [links[s] for links, s in zip(french, adjectives, strict=True)]
        ),
    )


@dataclass(frozen=True)
class Rows:
    """The attention of one query word in each sentence, all layers and heads, and the
    places of both nouns."""

    weights: Float[Tensor, "B N H S"]  # 0 beyond the sentence
    lengths: Int[Tensor, "B"]
    antecedent: Int[Tensor, "B"]
    other_noun: Int[Tensor, "B"]

    def on(self, place: Int[Tensor, "B"]) -> Float[Tensor, "B N H"]:
        """Return the weights on one source word of each sentence."""
        return self.weights[torch.arange(len(place)), :, :, place]

    def preference(self) -> Float[Tensor, "N H"]:
        """Return the share of sentences in which the antecedent gets more weight than
        the other noun; a tie is half."""
        difference = self.on(self.antecedent) - self.on(self.other_noun)
        return ((difference.sign() + 1) / 2).mean(dim=0)


@torch.no_grad()
def attention_rows(model: Transformer, corpus: Corpus, split: str) -> dict[str, Rows]:
    """Return what the words of `QUERIES` attend to in each sentence, while the model
    reads the gold translation."""
    model.eval()
    pairs, where = corpus.pairs[split], places(corpus, split)
    config = model.config
    longest = max(len(pair.source) for pair in pairs)
    weights = {
        query: torch.zeros(len(pairs), config.num_layers, config.num_heads, longest)
        for query in QUERIES
    }
    for chosen, chunk in sorted_chunks(pairs, 256):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        maps = attention_maps(model, batch)
        encoder, cross = (
            torch.stack(layers, dim=1).cpu() for layers in (maps.encoder, maps.cross)
        )  # (B, N, H, ., S)
        for query, table, place in (
            ("it", encoder, where.it),
            ("adjective", encoder, where.adjective),
            (
                "il or elle",
                cross,
                where.french_pronoun,
            ),  # row t is the attention with which word t is written
            ("French adjective", cross, where.french_adjective),
        ):
            rows = table[torch.arange(len(chosen)), :, :, place[chosen]]
            weights[query][chosen, :, :, : rows.shape[-1]] = rows
    lengths = torch.tensor([len(pair.source) for pair in pairs])
    return {
        query: Rows(table, lengths, where.antecedent, where.other_noun)
        for query, table in weights.items()
    }


def permuted_words(rows: Rows, generator: torch.Generator) -> Rows:
    """Permute the weights over the source words of each sentence: as sharp as they
    were, and blind."""
    noise = torch.rand(
        rows.weights.shape[0], rows.weights.shape[-1], generator=generator
    )
    beyond = torch.arange(noise.shape[1]) >= rows.lengths[:, None]
    order = noise.masked_fill(beyond, 2.0).argsort(dim=-1)  # padding stays where it is
    return replace(
        rows,
        weights=rows.weights.gather(-1, order[:, None, None].expand_as(rows.weights)),
    )


def another_sentence(rows: Rows, generator: torch.Generator) -> Rows:
    """Give each sentence the weights of another one of its length: they know where
    nouns stand, not which is meant."""
    weights = rows.weights.clone()
    for length in rows.lengths.unique():
        (group,) = torch.where(rows.lengths == length)
        shuffled = group[torch.randperm(len(group), generator=generator)]
        weights[shuffled] = rows.weights[
            shuffled.roll(1)
        ]  # a ring: no sentence keeps its own
    return replace(rows, weights=weights)


def preference(validation: Rows, test: Rows) -> float:
    """Return the share of test sentences in which the antecedent gets more weight, in
    the head with most on validation."""
    best = validation.preference().argmax()
    return test.preference().flatten()[best].item()
