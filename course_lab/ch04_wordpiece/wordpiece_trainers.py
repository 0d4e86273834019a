"""What the trainer of the library `tokenizers` learns, beside ours: the same vocabulary
size, the same text.

The library's ``WordPieceTrainer`` merges the most frequent pair, so it should learn
what our score "frequency" learns, up to ties and to its alphabet, and not what
"likelihood" learns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece
from course_lib.wordpiece.training import (
    PREFIX,
    SPECIAL_TOKENS,
    count_words,
    train_wordpiece,
)

__all__ = ["Trainer", "compare_trainers"]


@dataclass(frozen=True)
class Trainer:
    """One trainer's vocabulary, measured.

    Parameters
    ----------
    name
        "likelihood" and "frequency" are ours; "tokenizers" is the library's.
    vocab_size
        Pieces, with special tokens.
    shared
        Share of them that the library's vocabulary has, too.
    idle
        Pieces of one character without prefix with which no word of the training text
        begins.
    pieces_per_word
        On held-out text, mean over running words.
    characters_per_piece
        Mean length of the pieces in the vocabulary, without prefix and special tokens.
    """

    name: str
    vocab_size: int
    shared: float
    idle: int
    pieces_per_word: float
    characters_per_piece: float


def compare_trainers(
    train: Sequence[str], held_out: Sequence[str], vocab_size: int
) -> list[Trainer]:
    """Train with both of our scores and with the library, and measure all three."""
    counts, test = count_words(train), count_words(held_out)
    if not test:
        raise ValueError(
            "the held-out texts have no word; pass texts that were not trained on"
        )
    vocabularies = {
        "likelihood": train_wordpiece(counts, vocab_size, "likelihood").vocab,
        "frequency": train_wordpiece(counts, vocab_size, "frequency").vocab,
        "tokenizers": FastWordPiece.train(train, vocab_size).pieces,
    }
    first = {word[0] for word in counts}
    library = set(vocabularies["tokenizers"])
    found = []
    for name, vocab in vocabularies.items():
        tokenizer = WordPiece(vocab)
        pieces = sum(
            count * len(tokenizer.encode_word(word)) for word, count in test.items()
        )
        lengths = [
            len(piece.removeprefix(PREFIX))
            for piece in vocab
            if piece not in SPECIAL_TOKENS
        ]
        found.append(
            Trainer(
                name,
                len(vocab),
                len(library.intersection(vocab)) / len(vocab),
                sum(len(piece) == 1 and piece not in first for piece in vocab),
                pieces / sum(test.values()),
                sum(lengths) / len(lengths),
            )
        )
    return found
