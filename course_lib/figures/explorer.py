"""The attention explorer: a part of a page in which a reader picks a word, a layer and
a head, and sees the weights.

A cell ends with `attention_explorer(views)`. What it shows is plain HTML: the weights
as JSON, and tables that can be read without a script. `book/_static/explorer.js`, one
script for all pages, turns the JSON into menus, words to choose and bars. Nothing is
fetched and nothing is stored.

    N  layers   H  heads   T  query words   S  key words

What this module does not do: it computes no attention and knows no model. Where no
script runs, in a notebook on Colab for one, the tables stand for the whole.
"""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from course_lib.figures.style import as_array

Weights = Float[Tensor, "N H T S"] | Float[np.ndarray, "N H T S"]

LARGEST = 500_000  # bytes of JSON in one explorer: what a page can carry without a wait
# columns of a table without a script; with more heads than that, a column is a layer
WIDEST_TABLE = 16
MEAN = "mean"  # explorer.js reads it
SUM_TOLERANCE = (
    0.02  # what bf16 loses in a row of 60 weights; a forgotten softmax is further off
)
LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, eq=False)
class View:
    """One kind of attention in one sentence, for `attention_explorer`."""

    sentence: str
    kind: str
    query_words: Sequence[str]
    key_words: Sequence[str]
    weights: Weights
    query_language: str = "en"
    key_language: str = "en"

    def __post_init__(self) -> None:
        where = f"{self.sentence}, {self.kind}"
        values = self.values()
        expected = (len(self.query_words), len(self.key_words))
        if values.ndim != 4 or values.shape[2:] != expected or 0 in values.shape:
            raise ValueError(
                f"{where}: weights have shape {values.shape}; expected (layers, heads,"
                f" {expected[0]}, {expected[1]}) for {expected[0]} query words and"
                f" {expected[1]} key words, at least one of each; cut padding off, or"
                " transpose: the last dimension is the keys"
            )
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(
                f"{where}: a weight is negative or not a number; are these scores"
                " before the softmax?"
            )
        sums = values.sum(axis=-1)
        layer, head, query = np.unravel_index(np.abs(sums - 1).argmax(), sums.shape)
        if abs(sums[layer, head, query] - 1) > SUM_TOLERANCE:
            raise ValueError(
                f"{where}: the weights of query word {query + 1}"
                f" ({self.query_words[query]!r}) in layer {layer + 1}, head {head + 1}"
                f" sum to {sums[layer, head, query]:.3f}, not to 1; call model.eval(),"
                " since dropout takes weights away, and cut off padding only"
            )
        for language in (self.query_language, self.key_language):
            if not LANGUAGE.fullmatch(language):
                raise ValueError(
                    f"{where}: {language!r} is no code of a language; write one like"
                    " 'en' or 'fr'"
                )

    def values(self) -> Float[np.ndarray, "N H T S"]:
        """Return the weights in NumPy's float64, off their device."""
        return as_array(self.weights)


@dataclass(frozen=True)
class Explorer:
    """What a cell shows: an explorer as HTML."""

    markup: str
    summary: str

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return self.summary


def attention_explorer(
    views: Sequence[View], title: str = "Attention explorer"
) -> Explorer:
    """Lay out attention weights for a reader to explore, with the keyboard, a pointer
    or a screen reader.

    Parameters
    ----------
    views
        One for each sentence and each kind of attention. The menus list both in the
        order of their first view.
    title
        A line above it; also its name for screen readers.

    Returns
    -------
    Explorer
        To be the last line of a cell.

    Raises
    ------
    ValueError
        If there is no view, a sentence lacks a kind or has it twice, numbers of layers
        or heads differ, or the weights would make the page heavy.

    Examples
    --------
    >>> # 1 layer, 1 head, 2 query words, 2 key words
    >>> weights = np.array([[[[0.75, 0.25], [0.5, 0.5]]]])
    >>> explorer = attention_explorer(
    ...     [View("old cat", "self-attention", ["old", "cat"], ["old", "cat"], weights)]
    ... )
    >>> explorer
    Attention explorer: 1 sentence, self-attention, 1 layer, 1 head
    >>> '"weights":[[[[75,25],[50,50]]]]' in explorer.markup
    True
    """
    views = list(views)
    if not views:
        raise ValueError(
            "no views: give one for each sentence and each kind of attention"
        )
    sentences = list(dict.fromkeys(view.sentence for view in views))
    kinds = list(dict.fromkeys(view.kind for view in views))
    grid = {(view.sentence, view.kind): view for view in views}
    places = [(sentence, kind) for sentence in sentences for kind in kinds]
    missing = [
        f"{kind} of {text!r}" for text, kind in places if (text, kind) not in grid
    ]
    if missing:
        raise ValueError(
            f"no view for the {missing[0]}; each sentence needs the same kinds:"
            f" {', '.join(kinds)}"
        )
    if len(grid) < len(views):
        raise ValueError(
            f"{len(views)} views, but only {len(grid)} differ in sentence or kind; give"
            " each once"
        )
    sizes = {view.values().shape[:2] for view in views}
    if len(sizes) > 1:
        raise ValueError(
            f"views differ in (layers, heads): {sorted(sizes)}; make one explorer for"
            " each size"
        )
    layers, heads = sizes.pop()
    data = {
        "sentences": sentences,
        "kinds": kinds,
        "layers": [str(number + 1) for number in range(layers)],
        "heads": [str(number + 1) for number in range(heads)] + [MEAN] * (heads > 1),
        "views": [
            [_as_json(grid[sentence, kind]) for kind in kinds] for sentence in sentences
        ],
    }
    text = script_safe(data)
    if len(text) > LARGEST:
        longest = max(max(view.values().shape[2:]) for view in views)
        raise ValueError(
            f"the explorer's weights take {len(text):,} bytes, more than the"
            f" {LARGEST:,} that a page should carry: {len(sentences)} sentences of up"
            f" to {longest} words, {len(kinds)} kinds, {layers} layers, {heads} heads;"
            " show fewer or shorter sentences, or fewer layers"
        )
    tables = "".join(
        _tables(sentence, [grid[sentence, kind] for kind in kinds])
        for sentence in sentences
    )
    name = html.escape(title)
    markup = (
        f'<div class="attention-explorer" role="group" aria-label="{name}"><p'
        f' class="explorer-title">{name}</p><script'
        f' type="application/json">{text}</script><details class="explorer-tables"'
        " open><summary>As tables: the largest weight of each"
        f" word</summary>{tables}</details></div>"
    )
    counts = [
        _count(len(sentences), "sentence"),
        *kinds,
        _count(layers, "layer"),
        _count(heads, "head"),
    ]
    return Explorer(markup, f"{title}: {', '.join(counts)}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _as_json(view: View) -> dict[str, object]:
    """Weights in hundredths, which is as exactly as they are shown; the mean over heads
    as one head more."""
    values = view.values()
    if values.shape[1] > 1:
        values = np.concatenate([values, values.mean(axis=1, keepdims=True)], axis=1)
    return {
        "queries": list(view.query_words),
        "keys": list(view.key_words),
        "languages": [view.query_language, view.key_language],
        "weights": np.rint(100 * values).astype(int).tolist(),
    }


def script_safe(data: object) -> str:
    """Write JSON that can stand inside a script element: no word in it can end the
    element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _tables(sentence: str, views: Sequence[View]) -> str:
    tables = "".join(_table(view) for view in views)
    return f"<details><summary>{html.escape(sentence)}</summary>{tables}</details>"


def _table(view: View) -> str:
    """For each query word the key word with the largest weight, in each head, or in
    each layer's mean over heads."""
    values = view.values()
    layers, heads = values.shape[:2]
    if layers * heads > WIDEST_TABLE:
        values = values.mean(axis=1, keepdims=True)
        names = [f"layer {layer + 1}, mean of the heads" for layer in range(layers)]
    else:
        places = np.ndindex(layers, heads)
        names = [f"layer {layer + 1}, head {head + 1}" for layer, head in places]
    columns = values.reshape(len(names), *values.shape[2:])  # [N H T S] -> [N·H T S]
    best = columns.argmax(axis=-1)
    head_row = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = ""
    for place, word in enumerate(view.query_words):
        cells = "".join(
            f'<td lang="{view.key_language}">{html.escape(view.key_words[key])}'
            f" {column[place, key]:.2f}</td>"
            for column, key in zip(columns, best[:, place], strict=True)
        )
        rows += (
            '<tr><th scope="row"'
            f' lang="{view.query_language}">{html.escape(word)}</th>{cells}</tr>'
        )
    # A table may be wider than a phone: its frame scrolls, and takes the focus so that
    # a keyboard can scroll it.
    name = html.escape(f"{view.kind}: {view.sentence}")
    return (
        '<div class="explorer-frame" role="group" tabindex="0"'
        f' aria-label="{name}"><table>'
        f"<caption>{html.escape(view.kind)}</caption>"
        "<thead><tr><th"
        f' scope="col">word</th>{head_row}</tr></thead><tbody>{rows}</tbody></table></div>'  # noqa: E501
    )
