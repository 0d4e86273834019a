"""From a Transformer to the attention explorer: its weights on chosen sentences, with
their words (chapter 3)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from course_lab.ch01_seq2seq.seq2seq import Corpus
from course_lab.ch01_seq2seq.text import BOS, EOS, collate
from course_lib.attention.weights import watch_attention
from course_lib.figures.explorer import View
from course_lib.training.loop import device
from course_lib.transformer.model import Transformer

#: The kinds of attention, in the order in which a sentence passes through them.
ENCODER = "encoder self-attention"
DECODER = "decoder self-attention (of the word read)"
CROSS = "cross-attention (of the word written)"


class AttentionMaps(NamedTuple):
    """All attention weights of one pass, for each layer ``(B, H, T, S)``: source words
    looking at source words, target positions at target positions up to their own, and
    target positions at source words."""

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


def attention_maps(model: Transformer, batch: Mapping[str, Tensor]) -> AttentionMaps:
    """Score a known target, and return what was attended to."""
    with watch_attention(model) as weights:
        model(batch["source_ids"], batch["source_lengths"], batch["target_ids"])
    maps = AttentionMaps([], [], [])
    for name, calls in weights.items():
        if name.startswith("encoder."):
            maps.encoder.extend(calls)
        elif name.endswith(".cross_attention"):
            maps.cross.extend(calls)
        else:
            maps.decoder.extend(calls)
    return maps


@torch.no_grad()
def attention_views(
    model: Transformer, corpus: Corpus, rows: Iterable[int], split: str = "test"
) -> list[View]:
    """Return all attention weights of some sentences, while the model reads the gold
    translation."""
    model.eval()
    english, french = (
        {number: word for word, number in side.get_vocab().items()}
        for side in corpus.tokenizers
    )
    views = []
    for row in rows:
        pair, sentence = corpus.pairs[split][row], corpus.text[split]["en"][row]
        batch = {name: tensor.to(device()) for name, tensor in collate([pair]).items()}
        maps = attention_maps(model, batch)
        source = [english[word] for word in pair.source]
        target = [french[word] for word in (BOS, *pair.target, EOS)]
        read, written = target[:-1], target[1:]
        for kind, layers, queries, keys, languages in (
            (ENCODER, maps.encoder, source, source, ("en", "en")),
            (DECODER, maps.decoder, read, read, ("fr", "fr")),
            (CROSS, maps.cross, written, source, ("fr", "en")),
        ):
            weights = torch.cat(layers).cpu()  # N times (1, H, T, S) -> (N, H, T, S)
            views.append(View(sentence, kind, queries, keys, weights, *languages))
    return views
