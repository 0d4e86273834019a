"""`pydocs-tag`: mentions of parameters and of types in sentences of documentation, as
BIO tags.

Authors mark code in their text, and a docstring says which names are its parameters:
together they give the tags. The marks are then removed. A name that is marked in one
sentence and not in the next would make the tags contradict each other, so a sentence is
kept only if the role of each word in it is certain: a word that could be a parameter or
a type is marked, or is no word of English.
"""

import builtins
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from course_lib.data import pydocs, pydocs_blocks, pydocs_entries, pydocs_prose
from course_lib.data.data_set import tagged_tokens
from course_lib.data.pydocs_tasks import Row, chosen, distinct, lot
from course_lib.data.sentences import split_sentences

TAGS = ("O", "B-PARAM", "I-PARAM", "B-TYPE", "I-TYPE")
FEATURES = tagged_tokens(TAGS)
SHORTEST, LONGEST = 5, 60  # tokens
MOST = {"train": 6_000, "validation": 800, "test": 800}
OF_ONE_MODULE = 60
WITHOUT = 3  # one in so many sentences without a mention is kept
COMMON = 3  # a name that so many docstrings have as a parameter may be one anywhere
# a word that is used so often where it is neither marked nor a parameter may be a word
# of English
ENGLISH = 8

_TOKEN = re.compile(r"(?:e\.g|i\.e)\.|\*\*(?=\w)|\w+(?:[-'’]\w+)*|\S")
_MARKED = re.compile(
    r"(?::[\w:]+:)?(`{1,2})(?!`)([^`]+?)\1(?!`)_{0,2}|(?<![\w*])\*(?=\w)([^*\s]+?)\*(?![\w*])"
)
_CODE_LIKE = re.compile(r".*[a-z0-9][A-Z].*|.*_.*|.*[a-z]\d.*")
_UNCLEAR = re.compile(r"~|`|\bmeth\b|(?<!\w)_\w+\.\w|\w\(|\[\d|\w = \w|(?<!\w)\.\w")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names of types that are no words of English: they are mentions wherever they stand.
_TYPES = _set("""
int str float bool dict tuple ndarray frozenset bytearray array_like array-like dtype
""")
# Names of types that are words of English, too: a marked one is a type, but a reader
# who sees no mark cannot know.
_WORDS = _set("""
list set object type map filter range property super zip slice complex bytes enumerate
reversed memoryview iterable callable function method
""")
_NO_TYPES = _set("""
NaN NaT Any Optional Union Default Examples Notes References Returns Parameters None
""")
_PROPER = _set("""
NumPy SciPy PyTorch SymPy NetworkX GitHub LaTeX OpenGL JavaScript MySQL PostgreSQL
SQLite SQLAlchemy PyArrow IPython CPython FreeType PyQt wxPython macOS McCabe
scikit-learn LaPack MathML
""")
_ASKS_FOR_A_NAME = _set("""
argument arguments parameter parameters keyword keywords kwarg option options
""")


class Vocabulary(NamedTuple):
    """What words mean: names of types, words that may be English, common names of
    parameters, those of each module."""

    types: Set[str]
    english: Set[str]
    common: Set[str]
    parameters: Mapping[str, Set[str]]


def make() -> Mapping[str, Sequence[Row]]:
    """Make the task from docstrings that list their parameters."""
    columns = pydocs.docstrings()[:]
    modules, texts = columns["module"], columns["text"]
    found = [pydocs_entries.entries(text) for text in texts]
    names = [
        {entry.name.lstrip("*") for entry in own if entry.kind == "parameter"}
        for own in found
    ]
    vocabulary = Vocabulary(
        type_names(columns["owner"]),
        _english(texts, names),
        _common(names),
        _of_modules(zip(modules, names, strict=True)),
    )
    rows: dict[str, list[Row]] = {split: [] for split in pydocs.SPLITS}
    for module, text, own, parameters in zip(modules, texts, found, names, strict=True):
        for paragraph in (
            (*pydocs_blocks.paragraphs(text), *(entry.description for entry in own))
            if parameters
            else ()
        ):
            for tokens, tags in tagged(paragraph, parameters, vocabulary, module):
                if any(tags) or not lot(" ".join(tokens), WITHOUT):
                    rows[pydocs.split_of(module)].append(
                        {"tokens": tokens, "ner_tags": tags, "module": module}
                    )
    left = distinct(rows, lambda row: " ".join(row["tokens"]))
    return chosen(
        left, lambda row: " ".join(row["tokens"]), MOST, "module", OF_ONE_MODULE
    )


def type_names(owners: Sequence[str]) -> frozenset[str]:
    """Return the names of types: those of Python, and the classes among the owners of
    docstrings."""
    of_python = {
        name for name, value in vars(builtins).items() if isinstance(value, type)
    }
    classes = {
        name
        for owner in owners
        for name in owner.split(".")
        if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name)
    }
    return frozenset(of_python | classes | _TYPES | _WORDS) - _NO_TYPES


def _english(texts: Sequence[str], names: Sequence[Set[str]]) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for text, own in zip(texts, names, strict=True):
        counts.update(
            set(re.findall(r"(?<![\w`*.])[a-z]{2,}(?![\w`*.(=])", text)) - own
        )
    return frozenset(
        {word for word, count in counts.items() if count >= ENGLISH} | set("aAiIeEst")
    )


def _common(names: Sequence[Set[str]]) -> frozenset[str]:
    counts = Counter(name for own in names for name in own)
    return frozenset(name for name, count in counts.items() if count >= COMMON)


def _of_modules(pairs: Iterator[tuple[str, Set[str]]]) -> Mapping[str, Set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for module, names in pairs:
        found[module] |= names
    return found


def tagged(
    paragraph: str, parameters: Set[str], vocabulary: Vocabulary, module: str = ""
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the sentences of a paragraph in which the role of each word is certain."""
    if not (
        _MARKED.search(paragraph)
        or not parameters.isdisjoint(re.findall(r"\w+", paragraph))
    ):
        return
    text = pydocs_prose.prose(paragraph)
    if text is None:
        return
    rebuilt, marked = _places(paragraph)
    if rebuilt != text:
        return
    at = 0
    for sentence in split_sentences(text):
        begin = text.index(sentence, at)
        at = begin + len(sentence)
        inside = [
            (start - begin, end - begin)
            for start, end in marked
            if begin <= start and end <= at
        ]
        spans = [match.span() for match in _TOKEN.finditer(sentence)]
        if SHORTEST <= len(spans) <= LONGEST and not _UNCLEAR.search(sentence):
            tags = _Reader(
                sentence, spans, inside, parameters, vocabulary, module
            ).tags()
            if tags is not None:
                yield [sentence[start:end] for start, end in spans], tags


def _places(paragraph: str) -> tuple[str, list[tuple[int, int]]]:
    """The plain text, and where in it stands what was marked as code: found by a word
    in the place of each mark."""
    shown: list[str] = []

    def hide(match: re.Match[str]) -> str:
        shown.append(pydocs_prose.plain(match[0]))
        return f"Qz{len(shown) - 1}zQ"

    text, places = "", []
    for i, part in enumerate(
        re.split(r"Qz(\d+)zQ", pydocs_prose.plain(_MARKED.sub(hide, paragraph)))
    ):
        if i % 2:
            places.append((len(text), len(text) + len(shown[int(part)])))
        text += shown[int(part)] if i % 2 else part
    return text, places


class _Reader(NamedTuple):
    """A sentence, its tokens, what was marked in it, and what is known of words."""

    sentence: str
    spans: Sequence[tuple[int, int]]
    marked: Sequence[tuple[int, int]]
    parameters: Set[str]
    vocabulary: Vocabulary
    module: str

    def tags(self) -> list[int] | None:
        """Tag the tokens, or return None where the role of one is uncertain."""
        tags = []
        for i in range(len(self.spans)):
            role = self._role(i)
            if role is None:
                return None
            tags.append(role)
        for i in range(1, len(tags)):
            if tags[i] == 1 and self._word(i - 1) == "**":
                tags[i - 1 : i + 1] = [1, 2]
            elif (
                tags[i] == 3
                and i > 1
                and self._word(i - 1) in ("of", "[")
                and tags[i - 2] in (3, 4)
            ):
                tags[i - 1 : i + 1] = [4, 4]  # list of str
                if self._word(i - 1) == "[" and self._word(i + 1) == "]":
                    tags[i + 1] = 4
            elif (
                tags[i] == 3
                and self._word(i - 1) == "."
                and self._joined(i - 1)
                and self._joined(i)
            ):
                first = i - 2
                while (
                    first > 1 and self._word(first - 1) == "." and self._joined(first)
                ):
                    first -= 2
                tags[first : i + 1] = [3] + [4] * (i - first)  # pandas.DataFrame
        return tags

    def _word(self, i: int) -> str:
        return self.sentence[slice(*self.spans[i])] if 0 <= i < len(self.spans) else ""

    def _joined(self, i: int) -> bool:
        """Whether a token follows the one before without a space."""
        return 0 < i < len(self.spans) and self.spans[i - 1][1] == self.spans[i][0]

    def _role(self, i: int) -> int | None:
        """The tag of a token by itself; None where it is uncertain."""
        word, (start, end) = self._word(i), self.spans[i]
        mark = next(
            (self.sentence[a:b] for a, b in self.marked if a <= start and end <= b),
            None,
        )
        dotted = self._word(i - 1) == "." and self._joined(i)
        goes_on = self._word(i + 1) == "." and self._joined(i + 2)
        is_parameter, is_type = word in self.parameters, word in self.vocabulary.types
        if "-" in word and not self.parameters.isdisjoint(word.split("-")):
            return None
        if (
            is_type
            and goes_on
            and self.vocabulary.types.isdisjoint((self._word(i + 2),))
        ):
            return None  # DataFrame.mean
        if (is_parameter and (is_type or dotted or goes_on)) or (
            not is_parameter and self._may_be_anothers(i, mark)
        ):
            return None
        if (
            mark is not None
            and mark.strip("*") != word
            and (is_parameter or (is_type and not dotted))
        ):
            # "axis=0" mentions axis, but who can say what x is in "f(x)"?
            return (
                1
                if is_parameter and re.fullmatch(rf"{re.escape(word)} ?=[^=].*", mark)
                else None
            )
        if is_parameter:
            quoted = self._word(i - 1) in ("'", '"')
            return (
                None
                if quoted or (mark is None and word in self.vocabulary.english)
                else 1
            )
        if is_type:
            return self._type(i, word, mark, dotted)
        singular = word.removesuffix("s")
        if (
            singular != word
            and singular in self.vocabulary.types
            and singular not in _WORDS
        ):
            return self._type(i, singular, mark, dotted)
        unknown = (
            mark is None
            and re.fullmatch(r".*[a-z][A-Z].*", word)
            and word not in _PROPER
        )
        return None if unknown else 0

    def _type(self, i: int, word: str, mark: str | None, dotted: bool) -> int | None:
        """The tag of the name of a type: certain where it is marked, or no word of
        English."""
        if word in _TYPES or _CODE_LIKE.fullmatch(word):
            return 3
        if word == "list" and self._word(i - 1).lower() in ("a", "python", "nested"):
            return 3
        if word in _WORDS:
            return (
                0
                if mark is None and word not in ("list", "iterable", "callable")
                else None
            )
        return 3 if mark is not None or dotted else None

    def _may_be_anothers(self, i: int, mark: str | None) -> bool:
        """Whether a token may be a parameter of something else: the sentence alone
        would not tell."""
        word = self._word(i)
        looks_like_code = mark is not None or _CODE_LIKE.fullmatch(word)
        neighbours = {self._word(i - 1).lower(), self._word(i + 1).lower()}
        return bool(
            looks_like_code
            and re.fullmatch(r"[a-z]\w*", word)
            and (
                word in self.vocabulary.common
                or word in self.vocabulary.parameters.get(self.module, ())
                or neighbours & _ASKS_FOR_A_NAME
            )
        )
