"""From a paragraph with markup to plain prose, or to nothing where it is not prose.

The rules are few and each has a reason that one can read; they were written by reading samples, and a reader's
verdicts on a sample that no rule has seen are in the data card (:mod:`course_lib.data.pydocs_reading`).

Chapter: wordpiece
"""

import re

SHORTEST = 5  # words: below, a paragraph is a label more often than a sentence
LONG_ENOUGH = 8  # words: from here on, what does not end as a sentence does may be one
LABEL_SHORTER_THAN = 13  # words

# Words that English needs to make a sentence of other words. Code, lists of names and tables have hardly any.
_FUNCTION_WORDS = """
a an the this that these those its it they them their which who whose what where when while if then than as of in on at
to by for from with without into onto over under between within through during before after about against and or but
nor not no is are was were be been being has have had do does did can cannot could may might must shall should will
would there here all any each every both either some such only also same other more most one two so because you your
we our us i how whether until since via per up out
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

_SIMPLE_MATH = re.compile(r"[A-Za-z0-9+\-, =<>/()\[\].']{1,24}")
_GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|epsilon|eta|theta|kappa|lambda|mu|nu|pi|rho|sigma|tau|phi|chi|psi|omega)(?![a-z])", re.I
)
_WORD = re.compile(r"[\"'(“‘]*[A-Za-zÀ-ɏ]+(?:['’-][A-Za-zÀ-ɏ]+)*['’]?[\"')”’]*[.,;:!?]*[\"')”]*")
_NOT_PROSE = re.compile(
    r">>>|\]_| [.,;](?: |$)|[.!?] :$|"
    r"https?://|www\.|%\(|::=|\{[\w.]*\}|\{\{|\$\$|\\[a-zA-Z]|==|!=|->|=>|&&|\|\||</|/>|:math:| {3,}|@\w|"
    r"\b(?:TODO|FIXME|XXX)\b|\w = \w|\b(?:et al\.|pp\.|vol\.|doi)\b|[^\x00-\u024f\u2000-\u206f]",
    re.IGNORECASE,
)
# "Abstract base class for visitors." is a label, "A tree is a connected graph." is not: see `_is_label`.
_LABEL_START = re.compile(
    r"(the|an?|abstract|base|class|colou?r|common|container|context|decorator|default|exception|fixture|formatter|generic|helper|"
    r"implementation|interface|internal|lexers?|list of|mixin|number of|simple|style|utility|whether|wrapper)\b",
    re.IGNORECASE,
)
_FINITE_WORDS = """
is are was were be been has have had do does did can cannot could may might must shall should will would that which who
if when where to return returns use used
"""
_FINITE = frozenset(_FINITE_WORDS.split())
_SENTENCE_END = re.compile(r"[.!?:][\"')”’]*$")


def plain(paragraph: str) -> str:
    """Return a paragraph without its inline markup: roles, emphasis, code marks, links, footnotes.

    Parameters
    ----------
    paragraph
        reStructuredText or Markdown, on one line.

    Returns
    -------
    str
        What a reader of the rendered page sees. Formulas that need more than letters keep their ``:math:``.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> plain("See :func:`~numpy.sum` and *the* `guide <https://numpy.org>`_ [1]_ for ``axis``.")
    'See sum and the guide for axis.'
    """
    text = re.sub(r":math:`([^`]*)`|\$([^$]+)\$", _formula, paragraph)
    text = re.sub(r"(\w*)\s*\[#?[\w*]+\]_+", _footnote, text)
    text = re.sub(r"(?<!\S)([A-Za-z][\w.-]*[A-Za-z0-9])__?(?=[\s.,;)]|$)", r"\1", text)  # names of links
    text = re.sub(r"\[`~?([^`]*)`\](?:\([^)]*\))?", _last_part, text)  # Markdown of the hub's packages
    text = re.sub(r"!?\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r":[a-zA-Z][\w:+-]*:`([^`]*)`", _role, text)
    text = re.sub(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}", r"\1", text)
    text = re.sub(r"``(.+?)``", r"\1", text)
    text = re.sub(r"`([^`]+)`_{0,2}", r"\1", text)
    text = re.sub(r"(?<![\w*])(\*{1,3})(?=\S)([^*]+?)(?<=\S)\1(?![\w*])", r"\2", text)
    text = re.sub(r"\|([\w ]+)\|", r"\1", text)
    text = re.sub(r"\\(?=\W)[, ]?", "", text)  # escapes, and the thin space of formulas
    return re.sub(r"\s+", " ", text.replace("\u00a0", " ")).strip()


def _formula(match: re.Match[str]) -> str:
    """A formula that reads as text: letters, numbers, names of Greek letters; another keeps its mark."""
    text = _GREEK.sub(lambda name: name[1], match[1] or match[2] or "")
    return text if _SIMPLE_MATH.fullmatch(text) else f":math:`{text}`"


def _footnote(match: re.Match[str]) -> str:
    """What stays of a footnote: nothing, save where its sentence cannot do without it ("as shown in [1]_")."""
    return match[0] if match[1].lower() in {"in", "by", "of", "to", "see", "and", "from", "e"} else match[1]


def _role(match: re.Match[str]) -> str:
    target = match[1]
    if match[0].startswith(":math:"):
        return match[0]
    if "<" in target:
        return target.split("<")[0].strip()
    return target[1:].split(".")[-1] if target.startswith("~") else target.lstrip("!.")


def _last_part(match: re.Match[str]) -> str:
    return match[1].split(".")[-1]


def prose(paragraph: str, summary: bool = False) -> str | None:
    """Return a paragraph as plain prose, or None where it is something else.

    Parameters
    ----------
    paragraph
        One paragraph of a docstring, on one line, with its markup.
    summary
        Whether it is the first of its docstring, which by custom may lack a capital and a full stop.

    Returns
    -------
    str or None
        Whole sentences in plain text.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> prose("Return the *sum* of the elements of ``x``.")
    'Return the sum of the elements of x.'
    >>> prose("x : array_like, optional") is None
    True
    """
    text = plain(paragraph)
    words = text.split()
    if len(words) < SHORTEST or _NOT_PROSE.search(text):
        return None
    if not _SENTENCE_END.search(text) and not (summary and words[-1].isalpha() and len(words) >= LONG_ENOUGH):
        return None
    if text.endswith(":") and len(words) < LONG_ENOUGH:
        return None
    code_first = paragraph[0] in "`:*" or "_" in words[0] or re.fullmatch(r"\w+\.\w[\w.]*", words[0])
    if not re.match(r"[\"'(“]?[A-Z0-9]", text) and not ((summary or code_first) and not words[0].endswith(":")):
        return None
    if _is_label(text, words):
        return None
    function_words = sum(word.strip("\"'(),.;:").lower() in FUNCTION_WORDS for word in words)
    plain_words = sum(bool(_WORD.fullmatch(word)) for word in words)
    if function_words < 0.1 * len(words) or plain_words < 0.7 * len(words):
        return None
    return text


def _is_label(text: str, words: list[str]) -> bool:
    """Whether a short paragraph is a noun phrase without a verb: it names a thing and says nothing about it."""
    if len(words) >= LABEL_SHORTER_THAN or not _LABEL_START.match(text):
        return False
    return not any(word.strip("\"'(),.;:").lower() in _FINITE for word in words)
