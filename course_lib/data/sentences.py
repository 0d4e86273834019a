"""Paragraphs into sentences, by a rule that is short enough to be read.

A sentence ends at a full stop, question mark or exclamation mark, with the quotes and
brackets that close behind it, where a space follows and then a capital or a digit. So
``numpy.sum``, ``0.5`` and ``file.txt`` are never cut. It does not end

- behind an abbreviation that goes on: *e.g.*, *i.e.*, *cf.*, *vs.*, *et al.*, *Dr.*;
- behind *Fig.*, *Eq.*, *p.*, *No.* and their kin, where a number follows;
- behind an initial: *by D. E. Knuth*; but *the matrix A.* ends one;
- behind the number of a list's entry: *1. Take the first*;
- behind an ellipsis that stands for items left out: *a, b, ... Z*;
- in front of who said it: *"Is it yours?" Anna asked.*

What this rule gets wrong: a sentence that begins with a name in small letters stays
with the one before it.
"""

import re

# A gap between sentences: behind a mark, what closes, and a space; before what opens,
# and a capital or a digit.
_GAP = re.compile(r"(?<=[.!?])([\"')\]}”’»`*]*)\s+(?=[\"'(\[{“‘«`*]*([A-Z0-9À-ÖØ-Þ]))")
_GOES_ON = re.compile(
    r"(?:^|[\s(\[\"'])(?:e\.?g|i\.?e|cf|vs|al|viz|approx|resp|w\.r\.t|a\.k\.a|Dr|Mr|Mrs|Ms|Prof|St)\.$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"(?:^|[\s(\[])(?:figs?|eqs?|secs?|ch|chap|nos?|vol|pp?|pg|refs?|art|thm|tab)\.$",
    re.IGNORECASE,
)
_INITIAL = re.compile(
    r"(?:^|\b(?:by|and) |[,&(\[] ?|\b[A-Z]\.[ -]?|\b[A-Z][a-z]+ )[A-Z]\.$"
)
_NO_SURNAME = re.compile(
    r"(?:A|An|As|For|If|In|It|Its|Note|On|Since|That|The|Then|There|These|This|When)\b"
)
_ENTRY = re.compile(r"^[(\[]?(?:\d{1,2}|[a-zA-Z]|[ivx]+)\.$")
_LEFT_OUT = re.compile(r"[\s,(\[]\.{2,3}$")
_WHO_SAID_IT = re.compile(
    r"[\"”’']\s+(?:[A-Z]\w+"
    r" )?(?:answered|asked|called|cried|declared|explained|laughed|mumbled|replied|said|shouted|"  # noqa: E501
    r"sighed|whispered)\b"
)
# characters before a mark that are looked at: more than the longest of these patterns
# needs
_TAIL = 40


_PARTED = re.compile(
    r"\b(\w+) (n't)\b|\b(gon|wan) (na)\b|\b(got) (ta)\b", re.IGNORECASE
)


def split_sentences(paragraph: str) -> list[str]:
    """Cut a paragraph into sentences."""
    sentences, begin = [], 0
    for gap in _GAP.finditer(paragraph):
        before = paragraph[max(begin, gap.start() - _TAIL) : gap.start()]
        if not _is_inside(before, gap, paragraph):
            sentences.append(paragraph[begin : gap.end(1)])
            begin = gap.end()
    sentences.append(paragraph[begin:])
    return [sentence for sentence in map(str.strip, sentences) if sentence]


def _is_inside(before: str, gap: re.Match[str], paragraph: str) -> bool:
    """Whether the sentence goes on behind a gap."""
    return bool(
        _GOES_ON.search(before)
        or (gap[2].isdigit() and _NUMBERED.search(before))
        or (_INITIAL.search(before) and not _NO_SURNAME.match(paragraph, gap.end()))
        or _ENTRY.search(before)
        or _LEFT_OUT.search(before)
        or (gap[1] and _WHO_SAID_IT.match(paragraph, gap.start()))
    )


def rejoin(text: str) -> str:
    r"""Undo what the Penn Treebank's tokenization does to a text, where a WordPiece
    tokenizer sees the difference.

    The Stanford Sentiment Treebank, and with it SST-2, holds "do n't" and `` for
    "don't" and an opening quotation mark. A WordPiece tokenizer, which splits at
    punctuation, makes "do n ' t" of the one and "don ' t" of the other; but "it's" and
    "it 's" become the same tokens."""
    joined = _PARTED.sub(
        lambda found: "".join(part for part in found.groups() if part), text
    )
    return joined.replace("``", '"').replace("''", '"').replace("`", "'")
