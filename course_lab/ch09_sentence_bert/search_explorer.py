"""Search in a page: a reader types a question and sees what words, and what vectors,
find among many paragraphs.

A cell ends with `search_explorer(...)`. What it shows is plain HTML: a box to type
into, once a script runs, and a table of one question that can be read without one. The
paragraphs are too many for the page itself. They lie beside it in a script, which
`search_data` writes and `book/_static/searcher.js` loads when the reader asks for it: a
page that is opened from disk may load a script, and nothing else. Nothing is sent and
nothing is stored.

    V  pieces of the vocabulary     D  features of a vector

What this module does not do: it trains nothing and measures nothing.
`course_lab.ch09_sentence_bert.static_search` does.
"""

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from course_lib.figures.explorer import Explorer, script_safe

HIGHEST = 127  # of an int8, so that the range is the same on both sides of 0
LARGEST = 6_000_000  # bytes of the script: what a reader can be asked to load
CALL = "courseSearchData"  # searcher.js defines it


class Document(NamedTuple):
    """What one class, function, module or topic says of itself."""

    package: str
    title: str
    paragraphs: Sequence[str]


class Licence(NamedTuple):
    """Under which terms a package gives its text."""

    version: str
    name: str
    text: str


def quantised(
    matrix: Float[np.ndarray, "V D"],
) -> tuple[Int[np.ndarray, "V D"], Float[np.ndarray, "V"]]:
    """Write each row in whole numbers from -127 to 127, times a scale of its own: a
    quarter of the bytes."""
    if not np.isfinite(matrix).all():
        raise ValueError(
            "the matrix holds a number that is not finite; look at the training that it"
            " came from"
        )
    scales = (np.abs(matrix).max(axis=1) / HIGHEST).astype(np.float32)
    return (
        np.rint(matrix / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8),
        scales,
    )


def restored(
    numbers: Int[np.ndarray, "V D"], scales: Float[np.ndarray, "V"]
) -> Float[np.ndarray, "V D"]:
    """Return what is left of a matrix after `quantised`."""
    return numbers.astype(np.float32) * scales[:, None]


def search_data(
    tokenizer: Mapping[str, object],
    numbers: Int[np.ndarray, "V D"],
    scales: Float[np.ndarray, "V"],
    documents: Sequence[Document],
    licences: Mapping[str, Licence],
    bm25: tuple[float, float],
) -> str:
    """Write the script that `searcher.js` loads: tokenizer, vectors of pieces, and the
    paragraphs, compressed."""
    vocabulary = tokenizer["vocabulary"]
    assert isinstance(vocabulary, Sequence)
    if not len(vocabulary) == len(numbers) == len(scales):
        raise ValueError(
            f"{len(vocabulary)} pieces, {len(numbers)} vectors, {len(scales)} scales;"
            " give as many of each"
        )
    packages = sorted({document.package for document in documents})
    if absent := [package for package in packages if package not in licences]:
        raise ValueError(
            f"no licence is known for {absent[0]}; its text must not be shown without"
        )
    if broken := [
        text for document in documents for text in document.paragraphs if "\n" in text
    ]:
        raise ValueError(
            "a paragraph has a line break, by which paragraphs are told apart:"
            f" {broken[0][:60]!r}"
        )
    collection = {
        "packages": [[name, *licences[name]] for name in packages],
        "documents": [
            [packages.index(d.package), d.title, len(d.paragraphs)] for d in documents
        ],
        "paragraphs": "\n".join(
            text for document in documents for text in document.paragraphs
        ),
    }
    data = {
        "tokenizer": tokenizer,
        "features": numbers.shape[1],
        "table": _base64(numbers.astype(np.int8).tobytes()),
        "scales": _base64(scales.astype("<f4").tobytes()),
        "bm25": list(bm25),
        "collection": _base64(
            gzip.compress(
                json.dumps(collection, ensure_ascii=False).encode(), 9, mtime=0
            )
        ),
    }
    text = f"{CALL}({script_safe(data)});\n"
    if len(text) > LARGEST:
        raise ValueError(
            f"the script takes {len(text):,} bytes, more than the {LARGEST:,} that a"
            " reader can be asked to load; give it fewer paragraphs, or vectors of"
            " fewer features"
        )
    return text


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def search_explorer(
    source: str,
    size: int,
    paragraphs: int,
    question: str,
    found: Mapping[str, Sequence[tuple[str, str]]],
    title: str = "Search in your browser",
) -> Explorer:
    """Lay out a search for a reader to type into."""
    if "//" in source or source.startswith("/") or ":" in source:
        raise ValueError(
            f"source is {source!r}; give a path from the page, such as"
            " _static/search/data.js"
        )
    name = html.escape(title)
    data = script_safe(
        {
            "source": source,
            "megabytes": f"{size / 1e6:.1f}",
            "paragraphs": paragraphs,
            "question": question,
        }
    )
    rows = "".join(
        "<tr><th"
        f' scope="row">{html.escape(way) if place == 1 else ""}</th><td>{place}</td><td><code>{html.escape(where)}</code>'  # noqa: E501
        f" {html.escape(text)}</td></tr>"
        for way, hits in found.items()
        for place, (where, text) in enumerate(hits, start=1)
    )
    markup = (
        f'<div class="searcher" role="group" aria-label="{name}"><p'
        f' class="searcher-title">{name}</p>'
        f'<script type="application/json">{data}</script>'
        '<details class="searcher-static" open><summary>As a table: one'
        " question</summary>"
        '<div class="searcher-frame" role="group" tabindex="0" aria-label="Hits of one'
        ' question"><table>'
        f"<caption>{html.escape(question)}</caption>"
        '<thead><tr><th scope="col">way</th><th scope="col">place</th><th'
        ' scope="col">paragraph</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details></div>"
    )
    return Explorer(markup, f"{title}: {paragraphs:,} paragraphs")
