"""The raw lines of WikiText-2 (Merity et al. 2017) as documents: one row an article,
its paragraphs without headings."""

import re
from collections.abc import Sequence

from course_lib.data.corpus import Row

_HEADING = re.compile(r"((?:= )+)([^=].*?)((?: =)+)")


def articles(lines: Sequence[str], split: str) -> list[Row]:
    """Return the articles in the raw lines of a split."""
    texts = [line.strip() for line in lines]
    blank = [not text for text in texts]
    rows: list[Row] = []
    for i, text in enumerate(texts):
        alone = (i == 0 or blank[i - 1]) and (i + 1 == len(texts) or blank[i + 1])
        heading = _HEADING.fullmatch(text) if alone else None
        if heading and len(heading[1].split()) == len(heading[3].split()):
            if len(heading[1].split()) == 1:
                name = f"wikitext2_raw/{split}/{len(rows):04d}"
                rows.append(
                    Row(
                        document=name,
                        package="wikitext2_raw",
                        module=name,
                        title=heading[2],
                        paragraphs=[],
                    )
                )
        elif text:
            if not rows:
                raise ValueError(
                    f"line {i + 1} of {split} has text before the first title:"
                    f" {text[:60]!r}"
                )
            rows[-1]["paragraphs"].append(text)
    return [row for row in rows if row["paragraphs"]]
