"""WordPiece, the training: from words and how often they occur to a vocabulary of
pieces.

Each word starts as single characters; all but its first are written with ``##`` in
front. Again and again the best pair of neighbours becomes one piece, until the
vocabulary has the size that was asked for. What is best is the only difference between
WordPiece ("likelihood") and byte-pair encoding ("frequency").

`pair_scores` and `merge_pieces` are the definition, one step each. `train_wordpiece`
does the same with counts kept up to date instead of counted anew, so that a corpus of a
million words takes minutes at most. All arithmetic is on integers and fractions: no
score is rounded, no tie depends on the machine.

Over 400 lines, because the definition and the fast way to the same result are to be
read side by side.

Not here: how text becomes words (`text_normalization`), and how a vocabulary cuts words
(`wordpiece`).
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, get_args

from course_lib.wordpiece.normalize import SPACED, check_text, split_words

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PREFIX = "##"  # "continues a word"
# characters; a longer word is [UNK] at encoding, so training does not look at it either
MAX_WORD_LENGTH = 100
Score = Literal["likelihood", "frequency"]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Merge:
    """One step of training: two pieces became one."""

    left: str
    right: str
    merged: str
    score: Fraction
    frequency: int


@dataclass(frozen=True)
class Training:
    """What training found."""

    vocab: list[str]
    merges: list[Merge]


def count_words(
    texts: Iterable[str], lowercase: bool = True, strip: bool | None = None
) -> Counter[str]:
    """Count the words of a corpus, after normalisation.

    Parameters
    ----------
    texts
        Lines, paragraphs or documents.
    lowercase, strip
        As in `course_lib.wordpiece.normalize.normalize`.

    Returns
    -------
    Counter
        How often each word occurs.

    Examples
    --------
    >>> count_words(["To be, or not", "to be?"]).most_common(2)
    [('to', 2), ('be', 2)]
    """
    if isinstance(texts, str):
        raise TypeError(
            "texts is one string, whose items are characters; pass a list of texts,"
            " e.g. [text]"
        )
    # between plain spaces, across which no step of the normalisation looks
    chunks: Counter[str] = Counter()
    for text in texts:
        check_text(text)
        chunks.update(SPACED.findall(text))
    counts: Counter[str] = Counter()
    for chunk, times in chunks.items():  # each is split once
        for word in split_words(chunk, lowercase, strip):
            counts[word.text] += times
    return counts


def first_pieces(word: str) -> list[str]:
    """Cut a word into characters, all but the first with the prefix: where training
    starts.

    Parameters
    ----------
    word
        A normalised word.

    Returns
    -------
    list of str
        One piece for each character.

    Examples
    --------
    >>> first_pieces("hugs")
    ['h', '##u', '##g', '##s']
    """
    return [
        character if index == 0 else PREFIX + character
        for index, character in enumerate(word)
    ]


def join(left: str, right: str) -> str:
    """The piece that two neighbours make."""
    return left + right.removeprefix(PREFIX)


def merge_pieces(pieces: Sequence[str], left: str, right: str) -> list[str]:
    """Make one piece of each occurrence of a pair in a word, from left to right.

    Parameters
    ----------
    pieces
        A word, cut.
    left, right
        The pair.

    Returns
    -------
    list of str
        The word, cut into fewer pieces if the pair is in it.

    Examples
    --------
    >>> merge_pieces(["h", "##u", "##g", "##s"], "##g", "##s")
    ['h', '##u', '##gs']
    >>> merge_pieces(["a", "##a", "##a", "##a"], "##a", "##a")
    ['a', '##aa', '##a']
    """
    merged: list[str] = []
    index = 0
    while index < len(pieces):
        if (
            index + 1 < len(pieces)
            and pieces[index] == left
            and pieces[index + 1] == right
        ):
            merged.append(join(left, right))
            index += 2
        else:
            merged.append(pieces[index])
            index += 1
    return merged


def pair_scores(
    splits: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    score: Score = "likelihood",
) -> dict[Pair, Fraction]:
    """Score each pair of neighbours: how often it occurs, over how often its parts do.

    Parameters
    ----------
    splits
        For each word, its pieces as they stand.
    counts
        How often each word occurs.
    score
        "likelihood" for freq(ab) / (freq(a) · freq(b)), "frequency" for freq(ab), which
        is byte-pair encoding.

    Returns
    -------
    dict
        The exact score of each pair.

    Notes
    -----
    Schuster and Nakajima 2012, section 2, choose the pair that raises the likelihood of
    the corpus most; this score is how it is usually written down.

    Examples
    --------
    >>> counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> scores = pair_scores({word: first_pieces(word) for word in counts}, counts)
    >>> max(scores, key=scores.get), max(scores.values())
    (('##g', '##s'), Fraction(1, 20))
    """
    units: Counter[str] = Counter()
    pairs: Counter[Pair] = Counter()
    for word, pieces in splits.items():
        for piece in pieces:
            units[piece] += counts[word]
        for pair in pairwise(pieces):
            pairs[pair] += counts[word]
    if score == "frequency":
        return {pair: Fraction(frequency) for pair, frequency in pairs.items()}
    return {
        pair: Fraction(frequency, units[pair[0]] * units[pair[1]])
        for pair, frequency in pairs.items()
    }


def train_wordpiece(
    counts: Mapping[str, int],
    vocab_size: int,
    score: Score = "likelihood",
    min_frequency: int = 1,
    limit_alphabet: int | None = None,
    specials: Sequence[str] = SPECIAL_TOKENS,
) -> Training:
    """Learn a vocabulary: merge the best pair until the vocabulary is full or no pair
    is left.

    Of pairs with the same score the more frequent one is merged, then the first in
    string order.

    Parameters
    ----------
    counts
        How often each word occurs, as from `count_words`. Words of more than 100
        characters are left out.
    vocab_size
        Size of the vocabulary, special tokens and characters included.
    score
        "likelihood" for WordPiece, "frequency" for byte-pair encoding.
    min_frequency
        A rarer pair is never merged.
    limit_alphabet
        Keep only so many characters, the most frequent ones; words with another are
        left out. All, if not given.
    specials
        The first entries of the vocabulary.

    Returns
    -------
    Training
        Vocabulary and merges. It may be smaller than asked for if no pair is left.

    Raises
    ------
    ValueError
        If there is no word, a count is below 1, or the vocabulary has no room for the
        characters.

    Notes
    -----
    Schuster and Nakajima 2012, section 2; Sennrich et al. 2016 for the other score.

    Examples
    --------
    >>> counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> [merge.merged for merge in train_wordpiece(counts, vocab_size=15).merges]
    ['##gs', 'pu', 'hu']
    >>> [
    ...     merge.merged
    ...     for merge in train_wordpiece(
    ...         counts, vocab_size=15, score="frequency"
    ...     ).merges
    ... ]
    ['##ug', '##un', 'hug']
    """
    counts = _usable(counts, limit_alphabet)
    if score not in get_args(Score):
        raise ValueError(
            f"score={score!r} is unknown; choose one of"
            f" {', '.join(map(repr, get_args(Score)))}"
        )
    state = _State(counts, score, min_frequency)
    # a dict: in order, and each once
    vocab = dict.fromkeys([*specials, *sorted(state.units)])
    if len(vocab) > vocab_size:
        raise ValueError(
            f"vocab_size={vocab_size} has no room for {len(specials)} special tokens,"
            f" {len(state.units)} characters; pass at least {len(vocab)}, or keep fewer"
            " characters by limit_alphabet"
        )
    merges = []
    while len(vocab) < vocab_size and (pair := state.best()):
        merge = Merge(*pair, join(*pair), state.score_of(pair), state.pairs[pair])
        state.merge(merge)
        merges.append(merge)
        vocab[merge.merged] = None
    return Training(list(vocab), merges)


def _usable(counts: Mapping[str, int], limit_alphabet: int | None) -> dict[str, int]:
    """Leave out words that encoding would not cut, and check the rest."""
    for word, count in counts.items():
        if count < 1 or not word:
            raise ValueError(
                f"the word {word!r} has count {count}; pass words of 1 character or"
                " more, each counted"
            )
    usable = {
        word: count for word, count in counts.items() if len(word) <= MAX_WORD_LENGTH
    }
    if limit_alphabet is not None:
        frequencies: Counter[str] = Counter()
        for word, count in usable.items():
            for character in word:
                frequencies[character] += count
        known = set(
            sorted(
                frequencies, key=lambda character: (-frequencies[character], character)
            )[:limit_alphabet]
        )
        usable = {
            word: count for word, count in usable.items() if known.issuperset(word)
        }
    if not usable:
        raise ValueError(
            "there is no word to learn from; pass the counts of a corpus, e.g."
            " count_words(texts)"
        )
    return usable


class _State:
    """The corpus cut into pieces, and what is counted of it, kept up to date from merge
    to merge."""

    def __init__(
        self, counts: Mapping[str, int], score: Score, min_frequency: int
    ) -> None:
        self.score: Score = score
        self.min_frequency = min_frequency
        self.counts = list(counts.values())
        self.words = [first_pieces(word) for word in counts]
        self.units: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()
        # where a pair is, or was
        self.words_of: defaultdict[Pair, set[int]] = defaultdict(set)
        # the pairs that a piece is part of
        self.pairs_of: defaultdict[str, set[Pair]] = defaultdict(set)
        for index, pieces in enumerate(self.words):
            for piece in pieces:
                self.units[piece] += self.counts[index]
            self._count_pairs(index, pieces, self.counts[index])
        # Two different scores differ by at least 1 / total^4, so this many bits keep
        # their order in whole numbers.
        self.bits = 4 * sum(self.units.values()).bit_length()
        self.heap = [self._entry(pair) for pair in self.pairs]
        heapq.heapify(self.heap)

    def score_of(self, pair: Pair) -> Fraction:
        """The score of a pair, as in `pair_scores`."""
        if self.score == "frequency":
            return Fraction(self.pairs[pair])
        return Fraction(self.pairs[pair], self.units[pair[0]] * self.units[pair[1]])

    def best(self) -> Pair | None:
        """The pair to merge next; None if there is none."""
        while self.heap:
            entry = self.heap[0]
            pair = entry[2]
            if self.pairs[pair] >= max(1, self.min_frequency) and entry == self._entry(
                pair
            ):
                return pair
            heapq.heappop(self.heap)
        return None

    def merge(self, merge: Merge) -> None:
        """Make one piece of a pair wherever it stands, and bring the counts up
        to date."""
        changed: set[Pair] = set()
        for index in self.words_of.pop((merge.left, merge.right)):
            before, count = self.words[index], self.counts[index]
            after = merge_pieces(before, merge.left, merge.right)
            joined = len(before) - len(after)
            if joined == 0:
                continue
            self.units[merge.left] -= joined * count
            self.units[merge.right] -= joined * count
            self.units[merge.merged] += joined * count
            changed |= self._count_pairs(index, before, -count)
            changed |= self._count_pairs(index, after, count)
            self.words[index] = after
        if self.score == "likelihood":
            changed = set().union(
                *(
                    self.pairs_of[unit]
                    for unit in (merge.left, merge.right, merge.merged)
                ),
                changed,
            )
        for pair in changed:
            if self.pairs[pair] > 0:
                heapq.heappush(self.heap, self._entry(pair))
            else:
                self._forget(pair)

    def _entry(self, pair: Pair) -> tuple[int, int, Pair]:
        """What the heap sorts by, least first: score, frequency, string order."""
        frequency = self.pairs[pair]
        if self.score == "frequency":
            return -frequency, -frequency, pair
        return (
            -((frequency << self.bits) // (self.units[pair[0]] * self.units[pair[1]])),
            -frequency,
            pair,
        )

    def _count_pairs(self, index: int, pieces: Sequence[str], count: int) -> set[Pair]:
        pairs = list(pairwise(pieces))
        for pair in pairs:
            self.pairs[pair] += count
            if count > 0:
                self.words_of[pair].add(index)
                self.pairs_of[pair[0]].add(pair)
                self.pairs_of[pair[1]].add(pair)
        return set(pairs)

    def _forget(self, pair: Pair) -> None:
        del self.pairs[pair]
        self.words_of.pop(pair, None)
        for unit in pair:
            self.pairs_of[unit].discard(pair)
