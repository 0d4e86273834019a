"""Pseudo-words: two words that are written as one, so that each use has a sense that is
known (Schütze 1998).

Take *lamp* and *baker*, and write one and the same token for both, in training and in
test. A model meets a word with two meanings, and nobody has to label a use: what stood
there before is its sense. Here the second word of a pair takes the id of the first.

A use is shown in its context: whole sentences of its document around it, as in the
sequences that the models read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_lib.pretraining.packing import Corpus as Tokens
from course_lib.pretraining.sequences import Specials
from course_lib.wordpiece.fast import FastWordPiece


class PseudoWord(NamedTuple):
    """Two words that become one."""

    first: int
    second: int


@dataclass(frozen=True)
class Merged:
    """A corpus in which pairs of words have become one; it has the arrays of a
    `course_lib.pretraining.token_store.TokenStore`."""

    ids: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray


class Uses(NamedTuple):
    """Uses of pseudo-words in context."""

    input_ids: Tensor  # [CLS], the context, [SEP], padding: ``(N, T)``
    attention_mask: Tensor  # True at tokens, ``(N, T)``
    places: Tensor  # where the word stands, ``(N,)``
    words: Tensor  # which pseudo-word it is, its place in the list, ``(N,)``
    senses: Tensor  # 0 for its first word, 1 for its second, ``(N,)``


def draw_pseudo_words(
    corpus: Tokens,
    vocab: Mapping[str, int],
    classes: Mapping[str, str],
    number: int,
    seed: int,
    least: int = 100,
) -> list[PseudoWord]:
    """Draw pairs of words of different classes that are about equally frequent."""
    counts = np.bincount(corpus.ids, minlength=len(vocab))
    frequent = [
        word for word in classes if word in vocab and counts[vocab[word]] >= least
    ]
    left = sorted(frequent, key=lambda word: -counts[vocab[word]])
    random = np.random.default_rng(seed)
    pairs: list[PseudoWord] = []
    while len(pairs) < number:
        if len({classes[word] for word in left}) < 2:
            raise ValueError(
                f"{len(frequent)} words occur {least} times or more, which is enough"
                f" for {len(pairs)} pairs of two classes and not for {number}; draw"
                " fewer pairs, or lower least"
            )
        place = int(random.integers(len(left)))
        first = left.pop(place)
        others = [
            index for index, word in enumerate(left) if classes[word] != classes[first]
        ]
        if not others:  # of its class only are left; it stays without a partner
            continue
        second = left.pop(min(others, key=lambda index: abs(index - place)))
        pairs.append(PseudoWord(vocab[first], vocab[second]))
    return pairs


def merge(corpus: Tokens, pairs: Sequence[PseudoWord]) -> Merged:
    """Write the first word of each pair where the second stands."""
    ids = np.array(corpus.ids, dtype=np.int64)
    for pair in pairs:
        ids[ids == pair.second] = pair.first
    return Merged(
        ids, np.asarray(corpus.sentence_starts), np.asarray(corpus.document_starts)
    )


def find_uses(
    corpus: Tokens,
    pairs: Sequence[PseudoWord],
    specials: Specials,
    width: int,
    per_sense: int,
    seed: int,
    before: Collection[int] | None = None,
) -> Uses:
    """Draw uses of each sense and lay them out with their context."""
    random, merged = np.random.default_rng(seed), merge(corpus, pairs)
    original = np.asarray(corpus.ids)
    document_starts = merged.sentence_starts[merged.document_starts]
    rows, places, words, senses = [], [], [], []
    for number, pair in enumerate(pairs):
        for sense, word in enumerate(pair):
            found = np.flatnonzero(original == word)
            if before is not None:
                found = found[np.isin(np.append(original, -1)[found + 1], list(before))]
            for place in random.permutation(found)[:per_sense].tolist():
                begin, end = _context(
                    place, merged.sentence_starts, document_starts, width - 2
                )
                text = [
                    specials.cls_id,
                    *merged.ids[begin:end].tolist(),
                    specials.sep_id,
                ]
                rows.append(text + [specials.pad_id] * (width - len(text)))
                places.append(1 + place - begin)
                words.append(number)
                senses.append(sense)
    input_ids = torch.tensor(rows)
    lengths = (input_ids != specials.pad_id).sum(dim=1)
    mask = torch.arange(width) < lengths[:, None]
    return Uses(
        input_ids, mask, torch.tensor(places), torch.tensor(words), torch.tensor(senses)
    )


def _context(
    place: int, sentence_starts: np.ndarray, document_starts: np.ndarray, room: int
) -> tuple[int, int]:
    """Begin with a sentence, half of the room before the place at most, and fill the
    room or end with the document."""
    document = int(np.searchsorted(document_starts, place, side="right")) - 1
    earliest = max(int(document_starts[document]), place - room // 2)
    first = int(np.searchsorted(sentence_starts, earliest, side="left"))
    begin = int(sentence_starts[first])
    if begin > place:  # the word's own sentence began too long ago
        begin = earliest
    return begin, min(begin + room, int(document_starts[document + 1]))


def tokens_of(documents: Iterable[Sequence[str]], tokenizer: FastWordPiece) -> Merged:
    """Tokenise documents in memory."""
    of_documents = [list(sentences) for sentences in documents]
    encoded = tokenizer.encode_in_rust(
        [s for d in of_documents for s in d], add_special_tokens=False
    )
    ids = [encoding.ids for encoding in encoded]
    return Merged(
        np.array([index for sentence in ids for index in sentence], dtype=np.int64),
        np.cumsum([0, *map(len, ids)]),
        np.cumsum([0, *map(len, of_documents)]),
    )
