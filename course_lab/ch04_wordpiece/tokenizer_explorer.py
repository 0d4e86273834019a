"""The tokenizer in a page: a reader types a sentence and sees its pieces, their ids and
where they come from.

A cell ends with `tokenizer_explorer(...)`. What it shows is plain HTML: a table of one
example that can be read without a script, and the vocabulary as JSON. In the browser
`book/_static/wordpiece.js` runs the chapter's algorithm on it, and `tokenizer.js` shows
what comes out. Nothing is fetched and nothing is stored.

What this module does not do: it knows no tokenizer. The vocabulary, the tables of
characters and the examples are given to it, and
`course_lab.ch04_wordpiece.wordpiece_page` takes them from the library's code.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_lib.figures.explorer import Explorer, script_safe

LARGEST = 500_000  # bytes of JSON in one explorer: what a page can carry without a wait
MOST_CHARACTERS = (
    2_000  # that a reader may type: each letter typed encodes all of them again
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CLASSES = ("removed", "space", "chinese", "punctuation")  # wordpiece.js reads them


@dataclass(frozen=True)
class Encoded:
    """A text and what a tokenizer made of it."""

    text: str
    tokens: Sequence[str]
    ids: Sequence[int]
    offsets: Sequence[tuple[int, int]]

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.ids) == len(self.offsets):
            raise ValueError(
                f"{self.text[:40]!r}: {len(self.tokens)} tokens, {len(self.ids)} ids"
                f" and {len(self.offsets)} offsets; give one of each for each piece"
            )


def character_ranges(code_points: Iterable[int]) -> list[int]:
    """Write a set of code points as closed ranges, flat: first, last, first, last."""
    ranges: list[int] = []
    for point in code_points:
        if ranges and point <= ranges[-1]:
            raise ValueError(
                f"code point {point} follows {ranges[-1]}; give them sorted, each once"
            )
        if ranges and point == ranges[-1] + 1:
            ranges[-1] = point
        else:
            ranges += [point, point]
    return ranges


def tokenizer_data(
    vocabulary: Sequence[str],
    classes: Mapping[str, Sequence[int]],
    letters: Mapping[str, str],
    longest: int = 100,
) -> dict[str, object]:
    """Write down a tokenizer as `book/_static/wordpiece.js` reads it."""
    if set(classes) != set(CLASSES):
        raise ValueError(
            f"classes are {sorted(classes)}; expected exactly {sorted(CLASSES)}"
        )
    if len(set(vocabulary)) < len(vocabulary):
        raise ValueError(
            "a piece occurs twice in the vocabulary; its id would not be known"
        )
    absent = [token for token in ("[UNK]", "[CLS]", "[SEP]") if token not in vocabulary]
    if absent:
        raise ValueError(
            f"the vocabulary lacks {absent[0]}; add the special tokens first"
        )
    return {
        "vocabulary": list(vocabulary),
        "classes": {
            **{name: list(classes[name]) for name in CLASSES},
            "letters": dict(letters),
        },
        "special": [token for token in SPECIAL if token in vocabulary],
        "unknown": "[UNK]",
        "first": "[CLS]",
        "last": "[SEP]",
        "prefix": "##",
        "longest": longest,
    }


def tokenizer_explorer(
    vocabulary: Sequence[str],
    classes: Mapping[str, Sequence[int]],
    letters: Mapping[str, str],
    example: Encoded,
    recorded: Sequence[Encoded] = (),
    recorded_by: str = "",
    longest: int = 100,
    title: str = "WordPiece in your browser",
) -> Explorer:
    """Lay out a tokenizer for a reader to type into."""
    if recorded and not recorded_by:
        raise ValueError(
            "say what encoded the recorded sentences: recorded_by='tokenizers 0.23'"
        )
    data = {
        **tokenizer_data(vocabulary, classes, letters, longest),
        "most_characters": MOST_CHARACTERS,
        "sentence": example.text,
    }
    sentences = [
        {
            "text": one.text,
            "ids": list(one.ids),
            "offsets": [list(o) for o in one.offsets],
        }
        for one in recorded
    ]
    scripts = [("tokenizer-data", script_safe(data))]
    if recorded:
        scripts.append(
            (
                "tokenizer-recorded",
                script_safe({"by": recorded_by, "sentences": sentences}),
            )
        )
    size = sum(len(text) for _, text in scripts)
    if size > LARGEST:
        raise ValueError(
            f"the tokenizer takes {size:,} bytes, more than the {LARGEST:,} that a page"
            f" should carry: {len(vocabulary):,} pieces and {len(recorded)} recorded"
            " sentences; show fewer of either"
        )
    name = html.escape(title)
    markup = (
        f'<div class="tokenizer-explorer" role="group" aria-label="{name}"><p'
        f' class="tokenizer-title">{name}</p>'
        + "".join(
            f'<script type="application/json" class="{kind}">{text}</script>'
            for kind, text in scripts
        )
        + '<details class="tokenizer-static" open><summary>As a table: one'
        " sentence</summary>" + f"{_table(example)}</details></div>"
    )
    return Explorer(markup, f"{title}: {len(vocabulary):,} pieces")


def _table(example: Encoded) -> str:
    rows = "".join(
        "<tr><th"
        f' scope="row"><code>{html.escape(token)}</code></th><td>{number}</td><td>{start}–{end}</td>'  # noqa: E501
        f"<td>{html.escape(example.text[start:end])}</td></tr>"
        for token, number, (start, end) in zip(
            example.tokens, example.ids, example.offsets, strict=True
        )
    )
    # A table may be wider than a phone: its frame scrolls, and takes the focus so that
    # a keyboard can scroll it.
    return (
        '<div class="tokenizer-frame" role="group" tabindex="0" aria-label="Pieces of'
        " one"
        f' sentence"><table><caption>{html.escape(example.text)}</caption><thead><tr><th'  # noqa: E501
        ' scope="col">piece</th><th scope="col">id</th><th'
        ' scope="col">characters</th><th'
        f' scope="col">text</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )
