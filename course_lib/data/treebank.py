"""Text that was cut into words for a treebank, written again as people write it.

The Stanford Sentiment Treebank, and with it SST-2, holds "do n't" and `` for "don't"
and an opening quotation mark. A WordPiece tokenizer, which splits at punctuation, makes
"do n ' t" of the one and "don ' t" of the other. Most of the cutting it does not see:
"it's" and "it 's" become the same tokens.
"""

import re

WORDS = re.compile(r"\b(\w+) (n't)\b|\b(gon|wan) (na)\b|\b(got) (ta)\b", re.IGNORECASE)


def rejoin(text: str) -> str:
    r"""Undo what the Penn Treebank's tokenization does to a text, where a WordPiece
    tokenizer sees the difference."""
    joined = WORDS.sub(
        lambda found: "".join(part for part in found.groups() if part), text
    )
    return joined.replace("``", '"').replace("''", '"').replace("`", "'")
