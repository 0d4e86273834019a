"""Static word vectors: one vector for each word, whatever stands around it; from
training or from a GloVe file.

What this module does not do: phrases ("New York" is two words), vectors of parts of
words, or training, which is :mod:`course_lib.embeddings.skip_gram`.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class StaticVectors:
    """Words and one vector for each, whatever stands around them.

    Parameters
    ----------
    words
        V words, all different.
    matrix
        Row v is the vector of word v.

    Raises
    ------
    ValueError
        If a word comes twice, or words and rows differ in number.

    Examples
    --------
    >>> vectors = StaticVectors(
    ...     ["river", "stream", "money"],
    ...     torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 2.0]]),
    ... )
    >>> vectors["money"].tolist(), vectors.nearest("river", most=1)[0][0]
    ([0.0, 2.0], 'stream')
    """

    def __init__(self, words: Sequence[str], matrix: Float[Tensor, "V D"]):
        if len(words) != len(matrix):
            raise ValueError(
                f"there are {len(words)} words but {len(matrix)} rows; give one row for"
                " each word"
            )
        self.words, self.matrix = list(words), matrix
        self.vocab = {word: index for index, word in enumerate(self.words)}
        if len(self.vocab) < len(self.words):
            twice = next(
                word for word, count in Counter(self.words).items() if count > 1
            )
            raise ValueError(
                f"the word {twice!r} comes more than once; a word has one vector, so"
                " keep one of them"
            )

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.vocab

    def __getitem__(self, word: str) -> Float[Tensor, "D"]:
        """Return the vector of a word; a KeyError says that it has none."""
        if word not in self.vocab:
            raise KeyError(
                f"{word!r} has no vector; ask with `in` first, or train on text that"
                " has the word"
            )
        return self.matrix[self.vocab[word]]

    def nearest(self, word: str, most: int = 5) -> list[tuple[str, float]]:
        """Return the words whose vectors point in the most similar directions, with
        their cosines; not the word."""
        unit = F.normalize(self.matrix, dim=1)
        cosines = unit @ F.normalize(self[word], dim=0)  # (V, D) @ (D) -> (V)
        cosines[self.vocab[word]] = -2.0  # below every cosine
        best = cosines.topk(min(most, len(self) - 1))
        return [
            (self.words[index], value)
            for value, index in zip(*map(Tensor.tolist, best), strict=True)
        ]

    @classmethod
    def from_glove(
        cls, path: Path | str, words: Collection[str] | None = None
    ) -> "StaticVectors":
        """Read a text file of vectors: a word and its numbers on each line, parted by
        single spaces.

        Parameters
        ----------
        path
            As published by Pennington et al. 2014 (``glove.6B.100d.txt``); a first line
            with the numbers of words and of features, as word2vec writes it, is
            understood too.
        words
            Read these only; the rest of a file of two million words then takes no
            memory. None reads all.

        Returns
        -------
        StaticVectors
            In the order of the file, in single precision. Of a word that comes again
            the first line counts, and a warning says how often that happened: some
            published files have such lines.

        Raises
        ------
        ValueError
            If a line has too few or too many numbers or one that is none, or no word is
            found.
        """
        path = Path(path)
        rows: dict[str, np.ndarray] = {}
        again, dim = 0, 0
        # newline="\n": a word may hold a character that Python takes for the end of a
        # line.
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                fields = line.rstrip("\r\n").rstrip(" ").split(" ")
                if (
                    number == 1
                    and len(fields) == 2
                    and all(field.isdecimal() for field in fields)
                ):
                    dim = int(fields[1])
                    continue
                dim = dim or len(fields) - 1
                word = " ".join(fields[:-dim])  # a few published words hold spaces
                if not dim or not word:
                    raise ValueError(
                        f"{path.name}, line {number}: expected a word and"
                        f" {dim or 'its'} numbers, found {len(fields)} fields; this is"
                        " no file of vectors, or it was cut off"
                    )
                if words is not None and word not in words:
                    continue
                if word in rows:
                    again += 1
                    continue
                rows[word] = _numbers(fields[-dim:], path, number)
        if not rows:
            raise ValueError(
                f"{path.name} holds a vector of none of the words that were asked for,"
                " or none at all"
            )
        if again:
            warnings.warn(
                f"{path.name}: {again} lines repeat a word; the first of each was kept",
                stacklevel=2,
            )
        return cls(list(rows), torch.from_numpy(np.stack(list(rows.values()))))

    def save_glove(self, path: Path | str) -> None:
        """Write the vectors as `from_glove` reads them, each number with the digits
        that give it back exactly."""
        with Path(path).open("w", encoding="utf-8", newline="\n") as file:
            for word, row in zip(self.words, self.matrix.tolist(), strict=True):
                file.write(
                    " ".join([word, *(f"{number:.9g}" for number in row)]) + "\n"
                )


def _numbers(fields: list[str], path: Path, line: int) -> np.ndarray:
    try:
        row = np.array([float(field) for field in fields], dtype=np.float32)
    except ValueError as error:
        raise ValueError(
            f"{path.name}, line {line}: {error}; each line is a word and {len(fields)}"
            " numbers"
        ) from error
    if not np.isfinite(row).all():
        raise ValueError(
            f"{path.name}, line {line}: a number is not finite; the file is damaged, so"
            " fetch it again"
        )
    return row
