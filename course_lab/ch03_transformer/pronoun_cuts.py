"""Which words does a model need to choose between il and elle? Take some away and count
again (chapter 3).

A weight can be large and of no use, or small and decisive (Jain and Wallace 2019). What
a model cannot do without, it uses.

    B  sentences   S  source words
"""

from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from course_lab.ch01_seq2seq.scoring import sorted_chunks
from course_lab.ch01_seq2seq.seq2seq import Corpus
from course_lab.ch01_seq2seq.text import collate
from course_lab.ch03_transformer.pronoun_attention import Places, places
from course_lib.attention.masks import padding_mask
from course_lib.training.loop import device
from course_lib.transformer.model import Transformer


@dataclass(frozen=True)
class Cut:
    """What the model has to do without; words are named as in `Places.of`.

    Parameters
    ----------
    edges
        Pairs (who, whom): in the encoder, in all its layers and heads, who may not look
        at whom.
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
    "neither may look at the nouns": Cut(
        edges=(("it", "nouns"), ("adjective", "nouns"))
    ),
    'control: neither may look at "did not"': Cut(
        edges=(("it", "negation"), ("adjective", "negation"))
    ),
    'the decoder may not look at "it"': Cut(hidden=("it",)),
    "the decoder may not look at the adjective": Cut(hidden=("adjective",)),
    "the decoder may not look at the nouns": Cut(hidden=("nouns",)),
    'control: the decoder may not look at "did not"': Cut(hidden=("negation",)),
}


@torch.no_grad()
def pronoun_accuracy(
    model: Transformer,
    corpus: Corpus,
    cut: Cut = CUTS["nothing"],
    size: int | None = None,
) -> float:
    """Return the share of test sentences in which the right one of il and elle is the
    more probable; 0.5 by chance."""
    model.eval()
    pairs, where = corpus.pairs["test"][:size], places(corpus, "test")
    il, elle = (corpus.tokenizers[1].token_to_id(word) for word in ("il", "elle"))
    right = 0
    for chosen, chunk in sorted_chunks(pairs, 256):
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        encoder_mask, memory_mask = _masks(batch["source_lengths"], where, chosen, cut)
        hidden, memory = (
            model.embed(batch["target_ids"]),
            model.encoder(batch["source_ids"], encoder_mask),
        )
        for block in model.blocks:
            hidden = block(hidden, memory, memory_mask)
        logits = model.output(model.final_norm(hidden))
        sentences, place = (
            torch.arange(len(chunk), device=logits.device),
            where.french_pronoun[chosen].to(device()),
        )
        prefers_elle = logits[sentences, place, elle] > logits[sentences, place, il]
        right += int(
            (prefers_elle == (batch["labels"][sentences, place] == elle)).sum()
        )
    return right / len(pairs)


def _masks(
    lengths: Int[Tensor, "B"], where: Places, chosen: list[int], cut: Cut
) -> tuple[Bool[Tensor, "B S S"], Bool[Tensor, "B 1 S"]]:
    """Padding masks, from which the cut is taken: of the encoder's attention, and of
    the decoder's to the encoder."""
    memory_mask = padding_mask(lengths)[:, None]  # (B, S) -> (B, 1, S)
    encoder_mask = memory_mask.repeat(
        1, memory_mask.shape[-1], 1
    )  # (B, 1, S) -> (B, S, S)
    sentences = torch.arange(len(chosen))
    for who, whom in cut.edges:
        for query, key in product(where.of(who), where.of(whom)):
            encoder_mask[sentences, query[chosen], key[chosen]] = False
    for name in cut.hidden:
        for place in where.of(name):
            memory_mask[sentences, 0, place[chosen]] = False
    return encoder_mask, memory_mask
