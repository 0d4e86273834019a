"""Chapter 4's experiments: vocabularies of pieces, measured on text that they were not
trained on.

A text is here what `course_lib.wordpiece.training.count_words` makes of it: its words
and how often each occurs. Each word is cut once, however often it occurs, so that even
the teaching code measures a corpus in a second.

What depends on chance is done with several samples of the corpus: whole documents,
drawn without replacement.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece
from course_lib.wordpiece.training import Score, Training, first_pieces, train_wordpiece

UNK = "[UNK]"
#: The trainers that are compared: score, and how often a pair must occur to be merged.
TRAINERS: dict[str, tuple[Score, int]] = {
    "WordPiece": ("likelihood", 1),
    "BPE": ("frequency", 1),
}
#: Examples of lectures, and how BERT's released uncased vocabulary splits them.
OF_LECTURES = {
    "Jim Henson was a puppeteer": "jim henson was a puppet ##eer",
    "a visually stunning rumination on love": (
        "a visually stunning rum ##ination on love"
    ),
    "improvisation in this skit": "improvisation in this ski ##t",
    "penguins are flightless birds": "penguins are flight ##less birds",
    "water droplets collide": "water droplets col ##lide",
    "sea otter => loutre de mer": "sea otter = > lou ##tre de mer",
    "gun": "gun",
    "Harbin": "ha ##rbin",
    "\u54c8\u5c14\u6ee8": "[UNK] [UNK] [UNK]",  # Harbin in Chinese
}
#: A word as a programmer writes it: parts joined by underscores or dots, or a capital
#: inside. "e.g." is none.
IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z]\w+[_.](?=\w))+\w+|\b[A-Za-z][a-z]+(?:[A-Z][a-z]+)+\b"
)


@dataclass(frozen=True)
class Measure:
    """What a vocabulary does to a text.

    Parameters
    ----------
    pieces_per_word
        Mean number of tokens that a running word becomes; an unknown word is one.
    unknown
        Share of running words that become [UNK].
    whole
        Share of running words that stay whole: one token, and known.
    """

    pieces_per_word: float
    unknown: float
    whole: float


def measure(vocab: Sequence[str], counts: Mapping[str, int]) -> Measure:
    """Cut every word of a text with a vocabulary."""
    tokenizer = WordPiece(vocab)
    words = sum(counts.values())
    if words == 0:
        raise ValueError(
            "the text has no word; pass the counts of a held-out text, e.g."
            " count_words(texts)"
        )
    pieces = unknown = whole = 0
    for word, count in counts.items():
        cut = tokenizer.encode_word(word)
        pieces += count * len(cut)
        unknown += count * (cut == [UNK])
        whole += count * (cut == [word])
    return Measure(pieces / words, unknown / words, whole / words)


def draw_samples(
    documents: Sequence[Sequence[str]], number: int, words: int, seed: int
) -> list[list[str]]:
    """Draw samples of a corpus that share no document."""
    order = list(documents)
    random.Random(seed).shuffle(order)
    remaining = iter(order)
    samples = []
    for _ in range(number):
        sample: list[str] = []
        size = 0
        while size < words:
            document = next(remaining, None)
            if document is None:
                raise ValueError(
                    f"the corpus has not {number} samples of {words} words; ask for"
                    " fewer or smaller ones"
                )
            sample += document
            size += sum(len(text.split()) for text in document)
        samples.append(sample)
    return samples


def train_all(
    samples: Sequence[Mapping[str, int]], vocab_size: int
) -> dict[str, list[Training]]:
    """Train each of `TRAINERS` on each sample; the first pieces of a vocabulary are the
    vocabulary of that size."""
    return {
        name: [
            train_wordpiece(sample, vocab_size, score, min_frequency)
            for sample in samples
        ]
        for name, (score, min_frequency) in TRAINERS.items()
    }


def most_frequent_words(counts: Mapping[str, int], size: int) -> list[str]:
    """The vocabulary of whole words that a control has: special tokens and the most
    frequent words."""
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return [*SPECIAL_TOKENS, *(word for word in words if word not in SPECIAL_TOKENS)][
        :size
    ]


def overlap(first: Iterable[str], second: Iterable[str]) -> float:
    """Share of pieces that two vocabularies have in common, of all that either has
    (Jaccard index)."""
    one, other = set(first), set(second)
    return len(one & other) / len(one | other)


def nats_per_word(
    vocab: Sequence[str], train: Mapping[str, int], test: Mapping[str, int]
) -> float:
    """Say how likely a text is if pieces are drawn one by one, each with its own
    probability."""
    tokenizer = WordPiece(vocab)
    units = Counter(dict.fromkeys(vocab, 1))
    for word, count in train.items():
        for piece in tokenizer.encode_word(word):
            units[piece] += count
    total = sum(units.values())
    cost, words = 0.0, 0
    for word, count in test.items():
        cut = tokenizer.encode_word(word)
        if cut != [UNK]:
            cost -= count * sum(math.log(units[piece] / total) for piece in cut)
            words += count
    return cost / words


@dataclass(frozen=True)
class Candidate:
    """A pair of neighbours at the start of training, and what three rules think of it.

    Parameters
    ----------
    pair
        The two pieces.
    frequency
        f(ab): what byte-pair encoding looks at.
    score
        f(ab) / (f(a) f(b)): what WordPiece looks at.
    gain
        By how many nats the log-likelihood of the corpus rises when the pair becomes
        one piece, exactly.
    """

    pair: tuple[str, str]
    frequency: int
    score: float
    gain: float


def candidates(counts: Mapping[str, int]) -> list[Candidate]:
    """Judge every pair of neighbouring characters in a corpus by three rules."""
    units: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in counts.items():
        pieces = first_pieces(word)
        for piece in pieces:
            units[piece] += count
        for pair in pairwise(pieces):
            pairs[pair] += count
    total = sum(units.values())
    return [
        Candidate(
            (a, b),
            f,
            f / (units[a] * units[b]),
            likelihood_gain(f, units[a], units[b], total),
        )
        for (a, b), f in pairs.items()
        if a != b
    ]


def favourites(judged: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Return the three pairs that each rule would merge first; of equals the more
    frequent, then the first in string order."""
    rules = {
        "score": lambda c: -c.score,
        "frequency": lambda c: -c.frequency,
        "likelihood": lambda c: -c.gain,
    }
    return {
        name: sorted(judged, key=lambda c: (rule(c), -c.frequency, c.pair))[:3]
        for name, rule in rules.items()
    }


def likelihood_gain(pair: int, left: int, right: int, total: int) -> float:
    """By how much the log-likelihood of a corpus rises when a pair becomes one
    piece."""

    def term(frequency: int) -> float:
        return frequency * math.log(frequency) if frequency else 0.0

    before = term(left) + term(right) - term(total)
    after = term(left - pair) + term(right - pair) + term(pair) - term(total - pair)
    return after - before


def embedding_parameters(vocab_size: int, dim: int = 768) -> int:
    """How many numbers a vocabulary's embedding has: a row of `dim` features for each
    piece."""
    return vocab_size * dim


def layer_parameters(layers: int = 12, dim: int = 768) -> int:
    """How many numbers an encoder's layers have: projections, feed-forward layers four
    times as wide, layer norms."""
    return layers * (12 * dim**2 + 13 * dim)


def word_groups(
    train: Mapping[str, int], test: Mapping[str, int]
) -> dict[str, Counter[str]]:
    """Sort the words of a held-out text by how often training saw them, numbers
    apart."""
    groups: dict[str, Counter[str]] = {
        name: Counter()
        for name in (
            "seen 100 times or more",
            "seen 1 to 9 times",
            "never seen",
            "numbers",
        )
    }
    for word, count in test.items():
        seen = train.get(word, 0)
        if word.isdecimal():
            groups["numbers"][word] = count
        elif not word.isalpha():
            continue
        elif seen >= 100:
            groups["seen 100 times or more"][word] = count
        elif 1 <= seen <= 9:
            groups["seen 1 to 9 times"][word] = count
        elif seen == 0:
            groups["never seen"][word] = count
    return groups


def find_identifiers(texts: Iterable[str]) -> Counter[str]:
    """Count what looks like a name in a program: ``snake_case``, ``camelCase`` or
    ``module.name``."""
    return Counter(match for text in texts for match in IDENTIFIER.findall(text))


def tokens_per_text(vocab: Sequence[str], counts: Mapping[str, int]) -> Measure:
    """As `measure`, for texts that are not yet normalised and split, such as
    identifiers."""
    tokenizer = WordPiece(vocab)
    total = sum(counts.values())
    if total == 0:
        raise ValueError("there is no text to measure")
    pieces = unknown = whole = 0
    for text, count in counts.items():
        tokens = tokenizer.encode(text, add_special_tokens=False).tokens
        pieces += count * len(tokens)
        unknown += count * (UNK in tokens)
        whole += count * (len(tokens) == 1 and tokens != [UNK])
    return Measure(pieces / total, unknown / total, whole / total)
