"""The lists in a docstring: its parameters, results and errors, in the three dialects
of Python's documentation.

:mod:`course_lib.data.pydocs_blocks` leaves them out, since they are not prose. Here
they are read, for the tasks that ask about them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The sections read, by their titles in NumPy's and in Google's dialect.
SECTIONS = {
    **dict.fromkeys(
        ("parameters", "other parameters", "args", "arguments", "keyword arguments"),
        "parameter",
    ),
    **dict.fromkeys(("keyword args", "params", "keyword parameters"), "parameter"),
    **dict.fromkeys(("raises", "raise"), "error"),
    **dict.fromkeys(("returns", "return", "yields"), "result"),
}
_NAME = r"\*{0,2}[A-Za-z_]\w*"
_NUMPY_ENTRY = re.compile(rf"`{{0,2}}({_NAME}(?:, ?{_NAME})*)`{{0,2}} ?: *(\S.*)?")
_GOOGLE_ENTRY = re.compile(rf"[*`]{{0,2}}?({_NAME})`{{0,2}}(?: \((.+?)\))? ?: +(\S.*)")
_GOOGLE_TITLE = re.compile(r"([A-Z][A-Za-z ]+?) ?:{1,2}")
_FIELD = re.compile(rf":(param|raises?) (?:([^:\n]+?) )?({_NAME}(?:\.\w+)*): *(.*)")
_ERROR = re.compile(r"[A-Z]\w*(?:Error|Exception|Warning)")


class Entry(NamedTuple):
    """One entry of a list: its kind ("parameter", "result" or "error"), name, type as
    written, and description."""

    kind: str
    name: str
    type: str
    description: str


def entries(docstring: str) -> list[Entry]:
    """Return the entries of the lists of parameters, results and errors."""
    lines = [line.rstrip() for line in docstring.expandtabs(4).splitlines()]
    return [
        entry
        for entry in _entries(lines)
        if entry.kind != "error" or _ERROR.fullmatch(entry.name)
    ]


def _entries(lines: Sequence[str]) -> Iterator[Entry]:
    at = 0
    while at < len(lines):
        line = lines[at]
        title = _GOOGLE_TITLE.fullmatch(line)
        field = _FIELD.match(line)
        if (
            at + 1 < len(lines)
            and line.lower() in SECTIONS
            and re.fullmatch(r"-{3,}|={3,}", lines[at + 1])
        ):
            end = _end_of_section(lines, at + 2)
            yield from _numpy(SECTIONS[line.lower()], lines[at + 2 : end])
            at = end
        elif (
            title
            and title[1].lower() in SECTIONS
            and at + 1 < len(lines)
            and lines[at + 1].startswith(" ")
        ):
            end = _end_of_indented(lines, at + 1)
            yield from _google(SECTIONS[title[1].lower()], lines[at + 1 : end])
            at = end
        elif field:
            end = _end_of_indented(lines, at + 1)
            kind = "parameter" if field[1] == "param" else "error"
            # a second paragraph is left out
            first = next((i for i in range(at + 1, end) if not lines[i]), end)
            text = " ".join(
                part.strip()
                for part in (field[4], *lines[at + 1 : first])
                if part.strip()
            )
            yield Entry(kind, field[3], field[2] or "", text)
            at = end
        else:
            at += 1


def _numpy(kind: str, lines: Sequence[str]) -> Iterator[Entry]:
    """Entries at the margin, each with its indented description; of that, the first
    paragraph."""
    at = 0
    while at < len(lines):
        line, end = lines[at], _end_of_indented(lines, at + 1)
        if line and line[0] != " ":
            entry = _NUMPY_ENTRY.fullmatch(line)
            text = _first_paragraph(lines[at + 1 : end])
            if entry and kind != "error":
                for name in entry[1].split(","):
                    yield Entry(kind, name.strip(), (entry[2] or "").strip(), text)
            elif kind == "result":
                yield Entry(kind, "", line, text)
            elif re.fullmatch(_NAME, line):
                yield Entry(kind, line, "", text)
        at = max(end, at + 1)


def _google(kind: str, lines: Sequence[str]) -> Iterator[Entry]:
    """Entries at the indentation of the first line, the description behind the colon
    and on deeper lines."""
    width = len(lines[0]) - len(lines[0].lstrip())
    inner = [
        line[width:] if not line[:width].strip() else line.lstrip() for line in lines
    ]
    at = 0
    while at < len(inner):
        end = _end_of_indented(inner, at + 1)
        entry = _GOOGLE_ENTRY.fullmatch(inner[at])
        if entry and kind != "result":
            more = (
                _first_paragraph(inner[at + 1 : end])
                if end > at + 1 and inner[at + 1]
                else ""
            )
            yield Entry(kind, entry[1], entry[2] or "", f"{entry[3]} {more}".strip())
        at = max(end, at + 1)


def _first_paragraph(lines: Sequence[str]) -> str:
    """The lines up to a blank one, or to what is no running text any more: a list or
    code."""
    kept: list[str] = []
    for line in (line.strip() for line in lines):
        if (not line and kept) or re.match(r"[-*•] |\d\.|>>>|\.\. |`{3}", line):
            break
        if line:
            kept.append(line)
    return " ".join(kept)


def _end_of_section(lines: Sequence[str], at: int) -> int:
    """Where the next underlined title stands, or the end."""
    while at < len(lines):
        if (
            at + 1 < len(lines)
            and lines[at]
            and lines[at][0] != " "
            and re.fullmatch(r"-{3,}|={3,}", lines[at + 1])
        ):
            return at
        at += 1
    return at


def _end_of_indented(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and (not lines[at] or lines[at].startswith(" ")):
        at += 1
    return at
