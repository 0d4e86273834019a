"""From a paragraph with markup to plain prose, or to nothing where it is not prose.

Chapter: wordpiece
"""

import re

SHORTEST = 6  # words: below, a paragraph is a label more often than a sentence

# Words that English needs to make a sentence of other words. Code, lists of names and tables have hardly any.
_FUNCTION_WORDS = """
a an the this that these those its it they them their which who whose what where when while if then than as of in on at
to by for from with without into onto over under between within through during before after about against and or but
nor not no is are was were be been being has have had do does did can could may might must shall should will would there
here all any each every both either some such only also same other more most one two so because you your we our us i how
whether until since via per up out
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

_SIMPLE_MATH = re.compile(r"[A-Za-z0-9+\-, =<>/()\[\].']{1,24}")
_CODE_CHARACTERS = re.compile(r"[=_<>{}\[\]()\\/|*^@#&~$%+]|\d[.\d]*\d|::|\w\.\w")
_WORD = re.compile(r"[\"'(“‘]*[A-Za-zÀ-ɏ]+(?:['’-][A-Za-zÀ-ɏ]+)*['’]?[\"')”’]*[.,;:!?]*[\"')”]*")
_NOT_PROSE = re.compile(
    r">>>|https?://|www\.|%\(|::=|\{[\w.]*\}|\{\{|\$\$|\\[a-zA-Z]|==|!=|->|=>|&&|\|\||</|/>|:math:|\bself\.| {3,}|@\w|"
    r"\b(?:TODO|FIXME|XXX)\b|\w = \w|\b(?:et al\.|pp\.|vol\.|doi)\b|[^\x00-\u024f\u2000-\u206f]",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?][\"')”’]*$")


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
    text = re.sub(r":math:`([^`]*)`", lambda m: m[1] if _SIMPLE_MATH.fullmatch(m[1]) else m[0], paragraph)
    text = re.sub(r"\s*\[#?[\w*]+\]_+", "", text)  # footnotes
    text = re.sub(r"\[`~?([^`]*)`\](?:\([^)]*\))?", _last_part, text)  # Markdown of the hub's packages
    text = re.sub(r"!?\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r":[a-zA-Z][\w:+-]*:`([^`]*)`", _role, text)
    text = re.sub(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}", r"\1", text)
    text = re.sub(r"``(.+?)``", r"\1", text)
    text = re.sub(r"`([^`]+)`_{0,2}", r"\1", text)
    text = re.sub(r"(?<![\w*])(\*{1,3})(?=\S)([^*]+?)(?<=\S)\1(?![\w*])", r"\2", text)
    text = re.sub(r"\|([\w ]+)\|", r"\1", text)
    text = re.sub(r"(?<=\w)_{1,2}(?=[\s.,;)]|$)", "", text)
    return re.sub(r"\s+", " ", text.replace("\\ ", "").replace("\u00a0", " ")).strip()


def _role(match: re.Match[str]) -> str:
    target = match[1]
    if match[0].startswith(":math:"):
        return match[0]
    if "<" in target:
        return target.split("<")[0].strip()
    return target[1:].split(".")[-1] if target.startswith("~") else target.lstrip("!.")


def _last_part(match: re.Match[str]) -> str:
    return match[1].split(".")[-1]


def prose(paragraph: str) -> str | None:
    """Return a paragraph as plain prose, or None where it is something else.

    Parameters
    ----------
    paragraph
        One paragraph of a docstring, on one line, with its markup.

    Returns
    -------
    str or None
        Whole sentences in plain text. A last sentence that ends with a colon is left out: what it announced is gone.

    Notes
    -----
    Chapter: wordpiece

    Examples
    --------
    >>> prose("Return the *sum* of the elements of ``x``.  For example:")
    'Return the sum of the elements of x.'
    >>> prose("x : array_like, optional") is None
    True
    """
    if _NOT_PROSE.search(text := plain(paragraph)):
        return None
    if text.endswith(":"):
        text = text[: max(text.rfind(". "), text.rfind("? "), text.rfind("! ")) + 1]
    words = text.split()
    if len(words) < SHORTEST or not _SENTENCE_END.search(text) or not re.match(r"[\"'(“]?[A-Z0-9]", text):
        return None
    letters = sum(word.strip("\"'(),.;:").lower() in FUNCTION_WORDS for word in words)
    plain_words = sum(bool(_WORD.fullmatch(word)) for word in words)
    if letters < 0.15 * len(words) or plain_words < 0.75 * len(words):
        return None
    return text
