"""From a docstring to its running text: what is a paragraph, a list item, a table,
code, a list of parameters.

Python's documentation is written in three dialects: reStructuredText with NumPy's
underlined sections, Google's sections ("Args:"), and Markdown. This module reads just
enough of each to know which lines are running text and which are not. It keeps
paragraphs, items of lists and the content of notes, in their order, still with their
inline markup (see :mod:`course_lib.data.pydocs_prose`); it drops everything else.
"""

import re
from collections.abc import Generator, Iterator, Sequence

# Sections, in any dialect, whose content is a list: of parameters, of errors, of
# references.
LIST_SECTIONS = frozenset(
    {
        *(
            "parameters",
            "other parameters",
            "params",
            "args",
            "arguments",
            "kwargs",
            "keyword args",
            "attributes",
        ),
        *(
            "keyword arguments",
            "keyword parameters",
            "keywords",
            "optional arguments",
            "inputs",
            "input",
            "outputs",
        ),
        *(
            "output",
            "returns",
            "return",
            "yields",
            "yield",
            "receives",
            "raises",
            "raise",
            "warns",
            "exceptions",
        ),
        *(
            "methods",
            "properties",
            "members",
            "fields",
            "see also",
            "seealso",
            "references",
            "reference",
            "shape",
        ),
        *(
            "shapes",
            "todo",
            "authors",
            "author",
            "history",
            "table of contents",
            "contents",
            "index",
            "options",
        ),
        *(
            "type parameters",
            "return type",
            "rtype",
            "bibliography",
            "literature",
            "variables",
            "signature",
        ),
    }
)
# Sections whose content is code when Google's dialect announces them: "Example:" and an
# indented block.
CODE_SECTIONS = frozenset(
    {"example", "examples", "usage", "code", "sample", "demo", "syntax", "sample usage"}
)
# Directives whose content is running text.
TEXT_DIRECTIVES = frozenset(
    {"note", "warning", "tip", "important", "caution", "hint", "attention", "danger"}
)

_UNDERLINE = re.compile(r"([-=~^*+#\"'`.:_])\1{2,}\s*")
_TABLE_BORDER = re.compile(r"(=+|-+)( +(=+|-+))+\s*|[+|][-=+:| ]{3,}\s*")
_FIELD = re.compile(
    r"[:@\\](param|parameter|arg|key|type|rtype|returns?|raises?|yields?|var|ivar|cvar|keyword|meta)\b"
)
_DIRECTIVE = re.compile(r"\.\. +([\w-]+(?::[\w-]+)?)::")
_EXPLICIT = re.compile(r"\.\.( |$)")
_ITEM = re.compile(r"(?:[-*+•]|\(?(?:\d{1,2}|[a-zA-Z]|[ivx]{1,4})[.)])\s+(?=\S)")
_LABEL = re.compile(r"\**([A-Za-z][A-Za-z ]{2,24}?)\**\s*(?:\([^)]*\))?::?\**$")
_PROMPT = re.compile(r">>>|\.\.\. |In ?\[\d|Out ?\[\d|\$ |% |# ")


def paragraphs(docstring: str) -> list[str]:
    """Return the running text of a docstring: paragraphs and list items, each on one
    line, in their order."""
    return list(_running_text(docstring.expandtabs(4).splitlines()))


def _running_text(lines: Sequence[str]) -> Iterator[str]:
    """Read lines whose common indentation is 0."""
    at, skipping_section = 0, False
    while at < len(lines):
        line = lines[at].rstrip()
        heading = _heading(lines, at)
        if heading is not None:
            title, at = heading
            skipping_section = title.lower().strip(" :") in LIST_SECTIONS
        elif not line or skipping_section:
            at += 1
        # a block of its own: a quotation, or content of something not known here
        elif line[0] == " ":
            end = _end_of_block(lines, at, 1)
            yield from _running_text(_dedent(lines[at:end]))
            at = end
        else:
            at = yield from _element(lines, at, line)


def _element(lines: Sequence[str], at: int, line: str) -> Generator[str, None, int]:
    """Read what starts at an unindented line; return where it ends."""
    below = _end_of_block(lines, at + 1, 1)
    directive, label, item = (
        _DIRECTIVE.match(line),
        _LABEL.match(line),
        _ITEM.match(line),
    )
    if _TABLE_BORDER.fullmatch(line):
        return _end_of_table(lines, at)
    if line.startswith(("```", "~~~")):
        return _end_of_fence(lines, at)
    if _PROMPT.match(line):
        return _end_of_paragraph(lines, at)
    if directive or _EXPLICIT.match(line):
        if directive and directive.group(1).lower() in TEXT_DIRECTIVES:
            inline = line[directive.end() :].strip()
            content = (
                [inline, *_dedent(lines[at + 1 : below])]
                if inline
                else _dedent(lines[at + 1 : below])
            )
            yield from _running_text(content)
        return below
    if _FIELD.match(line):
        return below
    if label and label.group(1).lower() in LIST_SECTIONS | CODE_SECTIONS:
        return max(below, _end_of_paragraph(lines, at))
    if label and label.group(1).lower().rstrip("s") in TEXT_DIRECTIVES:
        yield from _running_text(_dedent(lines[at + 1 : below]))
        return below
    if item:
        end = _end_of_block(lines, at + 1, 2)
        yield from _running_text([line[item.end() :], *_dedent(lines[at + 1 : end])])
        return end
    return (yield from _paragraph(lines, at))


def _paragraph(lines: Sequence[str], at: int) -> Generator[str, None, int]:
    """Read a paragraph, or the term of a definition; return where it ends."""
    end = at + 1
    while (
        end < len(lines)
        and lines[end].strip()
        and lines[end][0] != " "
        and not _interrupts(lines, end)
    ):
        end += 1
    if end < len(lines) and lines[end][:1] == " " and end == at + 1:
        return end  # a term, whose definition follows; or a signature
    text = " ".join(line.strip() for line in lines[at:end])
    literal = text.endswith(":")
    yield text[:-1] if text.endswith("::") else text
    below = _end_of_block(lines, end, 1)
    follows = next((line.strip() for line in lines[end:below] if line.strip()), "")
    # What a colon announces is code or a table, unless it is a list.
    return below if literal and follows and not _ITEM.match(follows) else end


def _interrupts(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    label = _LABEL.match(line.rstrip())
    if label and label.group(1).lower() in LIST_SECTIONS | CODE_SECTIONS:
        return True
    return bool(
        _ITEM.match(line)
        or _PROMPT.match(line)
        or line.startswith("```")
        or _FIELD.match(line)
    )


def _heading(lines: Sequence[str], at: int) -> tuple[str, int] | None:
    """The title that starts here, underlined and perhaps overlined, and the line after
    it."""
    line = lines[at].rstrip()
    ruled = bool(_UNDERLINE.fullmatch(line))
    if (
        ruled
        and at + 2 < len(lines)
        and lines[at + 1].strip()
        and _UNDERLINE.fullmatch(lines[at + 2])
    ):
        return lines[at + 1].strip(), at + 3
    if (
        line
        and line[0] != " "
        and at + 1 < len(lines)
        and _UNDERLINE.fullmatch(lines[at + 1])
    ):
        return line, at + 2
    if re.match(r"#{1,6} \S", line):
        return line.lstrip("# "), at + 1
    return ("", at + 1) if ruled and line[:3] not in ("```", "~~~") else None


def _end_of_block(lines: Sequence[str], at: int, indentation: int) -> int:
    """Where the lines end that are indented by this much or blank."""
    while at < len(lines) and (
        not lines[at].strip() or lines[at].startswith(" " * indentation)
    ):
        at += 1
    return at


def _end_of_paragraph(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and lines[at].strip():
        at += 1
    return at


def _end_of_fence(lines: Sequence[str], at: int) -> int:
    fence = lines[at].strip()[:3]
    end = at + 1
    while end < len(lines) and not lines[end].strip().startswith(fence):
        end += 1
    return end + 1


def _end_of_table(lines: Sequence[str], at: int) -> int:
    """A table ends with the last border that is separated from the one before by no
    blank line or by one."""
    end = _end_of_paragraph(lines, at)
    while end + 1 < len(lines):
        more = _end_of_paragraph(lines, end + 1)
        if not any(
            _TABLE_BORDER.fullmatch(line.strip()) for line in lines[end + 1 : more]
        ):
            break
        end = more
    return end


def _dedent(lines: Sequence[str]) -> list[str]:
    """Remove the indentation of the first line that has text; less indented lines lose
    what they have."""
    first = next((line for line in lines if line.strip()), "")
    width = len(first) - len(first.lstrip())
    return [line[min(width, len(line) - len(line.lstrip())) :] for line in lines]
