"""Senses of real words: how well the layers of a checkpoint tell the uses in `senses`
apart (chapter 7)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from course_lib.bert.model import BertModel
from course_lib.embeddings.contextual import NO_WORD, pool_words, sense_separation
from course_lib.wordpiece.fast import FastWordPiece


@torch.no_grad()
def states_of_words(
    model: BertModel,
    tokenizer: FastWordPiece,
    rows: Sequence[Mapping[str, Any]],
    batch: int = 32,
) -> list[torch.Tensor]:
    """Read sentences and return the vector of the marked word of each, the mean of its
    pieces."""
    found: list[list[torch.Tensor]] = []
    for begin in range(0, len(rows), batch):
        chosen = rows[begin : begin + batch]
        encodings = tokenizer.encode_batch([row["text"] for row in chosen])
        word_ids = torch.full((len(chosen), len(encodings[0].ids)), NO_WORD)
        for number, (row, encoding) in enumerate(zip(chosen, encodings, strict=True)):
            inside = [
                place
                for place, (start, end) in enumerate(encoding.offsets)
                if not encoding.special_tokens_mask[place]
                and start < row["end"]
                and end > row["start"]
            ]
            if not inside:
                raise ValueError(
                    f"no piece of {row['text']!r} lies between {row['start']} and"
                    f" {row['end']}"
                )
            word_ids[number, inside] = 0
        ids = torch.tensor([encoding.ids for encoding in encodings])
        mask = torch.tensor([encoding.attention_mask for encoding in encodings]).bool()
        states = model(ids, mask, return_hidden_states=True).hidden_states
        assert states is not None
        # (B, T, D) -> (B, 1, D) -> (B, D)
        found.append([pool_words(state, word_ids)[:, 0] for state in states])
    return [torch.cat(layer) for layer in zip(*found, strict=True)]


def sense_scores(
    model: BertModel, tokenizer: FastWordPiece, rows: Iterable[Mapping[str, Any]]
) -> list[list[float]]:
    """Return the separation of the senses of each word, layer by layer."""
    listed = list(rows)
    return separations(states_of_words(model, tokenizer, listed), listed)


def separations(
    layers: Iterable[torch.Tensor], rows: Sequence[Mapping[str, Any]]
) -> list[list[float]]:
    """Return how well vectors of the uses tell the senses of each word apart, layer by
    layer."""
    uses: defaultdict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        uses[row["word"]].append(number)
    return [
        [
            sense_separation(
                layer[numbers], [rows[number]["sense"] for number in numbers]
            )
            for numbers in uses.values()
        ]
        for layer in layers
    ]


def neighbour_averages(
    model: BertModel, tokenizer: FastWordPiece, rows: Sequence[Mapping[str, Any]]
) -> torch.Tensor:
    """Average the input vectors of the other words of each sentence, ``(N, D)``:
    trained, but blind to order and context."""
    table = model.embeddings.token.weight.detach()
    rest = [row["text"][: row["start"]] + row["text"][row["end"] :] for row in rows]
    encodings = tokenizer.encode_batch(rest, padding=None)
    return torch.stack([table[x.ids[1:-1]].mean(dim=0) for x in encodings])
