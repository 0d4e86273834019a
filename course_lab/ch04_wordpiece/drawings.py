"""The diagrams of chapter 4. What they show is computed with the tokenizer that a page
hands in.
"""

from collections.abc import Collection, Sequence

from course_lib.figures.diagrams import Diagram
from course_lib.figures.stepper import Step
from course_lib.wordpiece.normalize import normalize_text, split_words
from course_lib.wordpiece.tokenizer import WordPiece
from course_lib.wordpiece.training import PREFIX, first_pieces

__all__ = ["match_steps", "pipeline", "three_units"]

#: Units of width that a letter of a diagram takes, about.
LETTER = 9.0


def _row(
    diagram: Diagram, y: float | int, words: Sequence[str], role: str, gap: int = 8
) -> None:
    """Draw words in boxes, centred in the diagram."""
    widths = [max(18.0, LETTER * len(word) + 8) for word in words]
    x = 200 - (sum(widths) + gap * (len(words) - 1)) / 2
    for word, width in zip(words, widths, strict=True):
        diagram.box(x + width / 2, y, width, 26, word, role)
        x += width + gap


def pipeline(text: str, tokenizer: WordPiece, here: str | None = None) -> Diagram:
    """From a text to ids: normalise, split into words, match pieces, look up ids."""
    encoding = tokenizer.encode(text)
    pieces = encoding.tokens[1:-1]
    words = [word.text for word in split_words(text)]
    rows = (
        ("normalise", f"“{normalize_text(text).strip()}”", None, "r"),
        ("split into words", "", words, "r"),
        ("match pieces", "", pieces, "k"),
        ("add [CLS] and [SEP], look up", "", list(map(str, encoding.ids)), "v"),
    )
    diagram = Diagram(
        f"pipeline-{(here or 'all').split()[0]}",
        392,
        "From text to ids",
        f"The text {text!r} is normalised to {rows[0][1]}, split into the words"
        f" {', '.join(words)}, matched with the pieces {', '.join(pieces)}"
        f" and looked up as the ids {', '.join(map(str, encoding.ids))}.",
        here,
    )
    diagram.label(200, 18, f"“{text}”", "bold")
    for number, (step, sentence, boxes, role) in enumerate(rows):
        y = 34 + 92 * number
        with diagram.part(step):
            box = diagram.box(200, y + 12, 240, 28, step)
            diagram.arrow((200, y - 4), box.top, gap=0)
            diagram.arrow(box.bottom, (200, y + 54), gap=0)
            if boxes is None:
                diagram.label(200, y + 68, sentence)
            else:
                _row(diagram, y + 56, boxes, role, gap=6)
    return diagram


def three_units(word: str, tokenizer: WordPiece, words: int) -> Diagram:
    """One word in letters, in pieces and whole, with the size of each vocabulary."""
    letters, pieces = first_pieces(word), tokenizer.encode_word(word)
    alphabet = sum(len(piece.removeprefix(PREFIX)) == 1 for piece in tokenizer.pieces)
    rows = (
        ("characters", [piece.removeprefix(PREFIX) for piece in letters], alphabet),
        ("pieces", pieces, len(tokenizer.pieces)),
        ("words", [word], words),
    )
    diagram = Diagram(
        "three-units",
        216,
        "Characters, pieces, words",
        "; ".join(
            f"number of {name} in {word}: {len(units)}, in the vocabulary: {size:,}"
            for name, units, size in rows
        ),
    )
    for number, (name, units, size) in enumerate(rows):
        y = 26 + 70 * number
        diagram.label(4, y - 10, name, "bold start")
        units_are = "unit" if len(units) == 1 else "units"
        about = f"{len(units)} {units_are}, vocabulary of {size:,}"
        diagram.label(396, y - 10, about, "small soft end")
        role = "w" if units == ["[UNK]"] else "k"
        _row(diagram, y + 6, units, role, gap=4)
    return diagram


def match_steps(word: str, vocab: Collection[str]) -> list[Step]:
    """Greedy longest-match-first on one word: a step for each piece, with what was
    tried."""
    steps: list[Step] = []
    found: list[str] = []
    start = 0
    while start < len(word):
        tried = [
            (PREFIX if start else "") + word[start:end]
            for end in range(len(word), start, -1)
        ]
        fits = next((piece for piece in tried if piece in vocab), None)
        refused = tried[: tried.index(fits)] if fits else tried
        text = (
            f"{fits} is the longest piece that fits at letter {start + 1}."
            if fits
            else f"No piece fits at letter {start + 1}: the whole word becomes [UNK]."
        )
        title = f"Piece {len(found) + 1}: {fits or '[UNK]'}"
        steps.append(Step(title, (), text, _match(word, start, found, refused, fits)))
        if fits is None:
            break
        found.append(fits)
        start += len(fits.removeprefix(PREFIX))
    return steps


def _match(
    word: str,
    start: int,
    found: Sequence[str],
    refused: Sequence[str],
    fits: str | None,
) -> Diagram:
    end = start + len(fits.removeprefix(PREFIX)) if fits else start
    cell, left = 30, 200 - 15 * len(word)
    height = 118 + 20 * (len(refused) + bool(fits))
    tried = ", ".join(refused) or "nothing longer"
    diagram = Diagram(
        f"match-{word}-{start}",
        height,
        f"The word {word} from letter {start + 1}",
        f"Before: {', '.join(found) or 'nothing'}. Not in the vocabulary: {tried}."
        f" {f'Taken: {fits}.' if fits else 'No piece fits.'}",
    )
    for place, letter in enumerate(word):
        role = "k" if place < start else "w" if place < end else "n"
        diagram.tensor(left + cell * place, 12, 1, 1, role, (cell, 30), [[letter]])
    if start:
        done = (left, 48), (left + cell * start, 48)
        diagram.brace(*done, 8, "done")
    if fits:
        taken = (left + cell * start, 48), (left + cell * end, 48)
        diagram.brace(*taken, 8, "this piece")
    for number, piece in enumerate(refused):
        diagram.label(192, 96 + 20 * number, piece, "end soft")
        diagram.label(
            204, 96 + 20 * number, "not in the vocabulary", "small soft start"
        )
    if fits:
        y = 96 + 20 * len(refused)
        diagram.label(192, y, fits, "end bold tint w")
        diagram.label(204, y, "in the vocabulary: taken", "small start")
    return diagram
