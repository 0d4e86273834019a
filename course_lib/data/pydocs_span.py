"""`pydocs-span`: questions about the parameters, results and errors of a function,
answered by a span of its reference."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from course_lib.data import pydocs, pydocs_entries
from course_lib.data.data_set import as_squad
from course_lib.data.pydocs_entries import Entry
from course_lib.data.pydocs_prose import plain
from course_lib.data.pydocs_tasks import Row, chosen, distinct, drawn, lot

FEATURES = as_squad()
SHORTEST, LONGEST = 30, 150  # words of a context
ENTRIES = 3  # as few as a context may have: with one, there is nothing to choose
QUESTIONS = 3  # at most, on one context, each of another kind
MOST = {"train": 4_000, "validation": 600, "test": 600}
OF_ONE_MODULE = 40  # rows: no split is one long module
# contexts share parameters: they are compared more strictly than paragraphs are
SIMILAR = 0.5
# Each kind of question in several forms; {} is a name, or what a parameter is said to
# be.
FORMS: Mapping[str, tuple[str, ...]] = {
    "type": (
        "What type is {}?",
        "What type of value is {}?",
        "Which type should {} have?",
        "What should {} be?",
    ),
    "choices": ("Which values may {} take?", "What are the possible values of {}?"),
    "default": (
        "What is the default of {}?",
        "What does {} default to?",
        "Which value does {} have if not given?",
    ),
    "name": (
        "Which parameter is {}?",
        "Which parameter gives {}?",
        "Which parameter stands for {}?",
    ),
    "aim": ("Which parameter {}?", "What {}?"),
    "result": ("What type is returned?", "What type of value does it return?"),
    "error": ("Which error is raised {}?", "What is raised {}?"),
}
_DEFAULT = re.compile(
    r"(?:[Dd]efault(?:s)?(?: value)?(?: is|:|=| =| to) ?|\(default(?:s to|:|=)? ?)"
    r"(None|True|False|-?\d[\d.e+-]*\d|\d|['\"][\w-]+['\"])(?=[\s.,;)]|$)"
)
_BEHIND_TYPE = re.compile(
    r",? *(?:\b(?:of|with|in))? *\b(?:optional|defaults?|keyword|required|shape)\b|,?"
    r" *[(]"
)
_NOUN_PHRASE = re.compile(r"(?:The|A|An) (?!following|same\b)[a-z]")
_VERB_FIRST = re.compile(
    r"(Specif(?:y|ies)|Determines?|Controls?|Indicates?|Sets?|Defines?) (?=[a-z])"
)
_THIRD_PERSON = {
    "Specify": "specifies",
    "Determine": "determines",
    "Control": "controls",
    "Indicate": "indicates",
}
_FINITE = re.compile(
    r"\b(?:is|are|was|will|can|must|should|may|has|have|does|if|see|e\.g|i\.e|default|defaults|only|used|none)\b|[:;()]",
    re.IGNORECASE,
)
_UNREADABLE = re.compile(
    r"`|::|:math:|\\|\||\{\{|%\(|https?:|>>>|[^\x00-\u024f\u2000-\u206f]"
)


class SpanQuestion(NamedTuple):
    """A question of some kind, and where its answer stands in the context."""

    kind: str
    about: str
    start: int
    end: int


def make() -> Mapping[str, Sequence[Row]]:
    """Make the task from docstrings that describe at least three parameters, results or
    errors."""
    contexts: dict[str, list[dict[str, object]]] = {
        split: [] for split in pydocs.SPLITS
    }
    columns = pydocs.docstrings()[:]
    names = ("module", "owner", "text")
    for module, owner, text in zip(*(columns[name] for name in names), strict=True):
        made = context_of(text)
        if made is not None:
            contexts[pydocs.split_of(module)].append(
                {"context": made[0], "spans": made[1], "id": (module, owner)}
            )
    left = distinct(contexts, lambda row: str(row["context"]), SIMILAR)
    rows = {
        split: [row for own in left[split] for row in _questions(own)]
        for split in pydocs.SPLITS
    }
    return chosen(rows, lambda row: str(row["id"]), MOST, "title", OF_ONE_MODULE)


def context_of(docstring: str) -> tuple[str, list[SpanQuestion]] | None:
    """Lay out the lists of a docstring as one text, and say what can be asked about
    it."""
    spans: list[SpanQuestion] = []
    context = ""
    seen = 0
    for entry in pydocs_entries.entries(docstring):
        type_, text = plain(entry.type).rstrip("."), plain(entry.description)
        if (
            _UNREADABLE.search(entry.name + type_ + text)
            or len(text.split()) > LONGEST // 3
        ):
            continue
        lead = {"error": "Raises ", "result": "Returns "}.get(entry.kind, "")
        piece = f"{lead}{entry.name}{' : ' if entry.name and type_ else ''}{type_}"
        piece += f"{'. ' if type_ else ': '}{text}" if text else ""
        piece = piece if piece[-1] in ".!?" else f"{piece}."
        if len(context.split()) + len(piece.split()) > LONGEST:
            break
        offset = len(context) + bool(context)
        context = f"{context} {piece}".strip()
        spans += _of_entry(entry, type_, text, context, offset, len(lead))
        seen += 1
    if seen < ENTRIES or len(context.split()) < SHORTEST:
        return None
    return context, [span for span in spans if _one_answer(span, spans, context)]


def _of_entry(
    entry: Entry, type_: str, text: str, context: str, offset: int, lead: int
) -> Iterator[SpanQuestion]:
    name_at = offset + lead
    type_at = context.index(type_, name_at + len(entry.name)) if type_ else -1
    kept = _BEHIND_TYPE.split(type_)[0].strip(" ,;")
    if kept and entry.kind != "error" and len(kept.split()) <= 8:
        start = context.index(kept, type_at)
        if (
            kept.startswith("{")
            and kept.endswith("}")
            and entry.kind == "parameter"
            and "," in kept
        ):
            yield SpanQuestion("choices", entry.name, start, start + len(kept))
        elif re.fullmatch(r"\w[\w., \[\]/-]*[\w\]]", kept):
            kind = "type" if entry.kind == "parameter" else "result"
            yield SpanQuestion(kind, entry.name, start, start + len(kept))
    if entry.kind == "parameter":
        found = _DEFAULT.search(context, name_at)
        if found and len(re.findall(r"(?i)default", context[name_at:])) == 1:
            yield SpanQuestion("default", entry.name, found.start(1), found.end(1))
        yield from _of_description(entry.name, text, name_at)
    elif entry.kind == "error" and re.match(r"(?:If|When) [a-z]", text):
        condition = re.split(r"(?<=[\w)])[.;](?: |$)", text)[0]
        if 4 <= len(condition.split()) <= 16 and ":" not in condition:
            yield SpanQuestion(
                "error",
                condition[0].lower() + condition[1:],
                name_at,
                name_at + len(entry.name),
            )


def _of_description(name: str, text: str, at: int) -> Iterator[SpanQuestion]:
    """Ask for the name of what the first sentence of a description says a parameter is,
    or does."""
    first = re.split(r"(?<=[\w)])[.,](?: |$)", text)[0]
    if not 4 <= len(first.split()) <= 14 or re.search(rf"\b{re.escape(name)}\b", first):
        return
    verb = _VERB_FIRST.match(first)
    if verb and not re.search(r"[:;()]", first):
        word = _THIRD_PERSON.get(
            verb[1], verb[1].lower() if verb[1].endswith("s") else f"{verb[1].lower()}s"
        )
        yield SpanQuestion("aim", f"{word} {first[verb.end() :]}", at, at + len(name))
    elif first.startswith("Whether to "):
        yield SpanQuestion(
            "aim", f"says {first[0].lower()}{first[1:]}", at, at + len(name)
        )
    elif _NOUN_PHRASE.match(first) and not _FINITE.search(first):
        yield SpanQuestion("name", first[0].lower() + first[1:], at, at + len(name))


def _one_answer(
    span: SpanQuestion, spans: Sequence[SpanQuestion], context: str
) -> bool:
    """Whether the question has one answer: no other entry has the same name, or is said
    to be the same."""
    twins = [
        other for other in spans if (other.kind, other.about) == (span.kind, span.about)
    ]
    if span.kind == "result":
        return sum(other.kind == "result" for other in spans) == 1
    if span.kind in ("name", "aim", "error"):
        return len(twins) == 1
    return (
        len(twins) == 1
        and len(re.findall(rf"(?<!\w){re.escape(span.about)} : ", context)) <= 1
    )


def _questions(own: Row) -> Iterator[Row]:
    module, owner = own["id"]
    context = str(own["context"])
    asked: set[str] = set()
    for span in drawn(
        own["spans"], lambda span: f"{module}.{owner} {span.kind} {span.about}"
    ):
        if span.kind in asked or len(asked) == QUESTIONS:
            continue
        asked.add(span.kind)
        key = f"{module}:{owner}:{span.kind}:{span.about}"
        forms = FORMS[span.kind]
        yield {
            "id": key,
            "title": module,
            "context": context,
            "question": forms[lot(key, len(forms))].format(span.about),
            "answers": {
                "text": [context[span.start : span.end]],
                "answer_start": [span.start],
            },
        }
