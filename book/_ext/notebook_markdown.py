"""Turn a page's MyST Markdown into Markdown that Jupyter and Colab show: no directives,
no roles.

Each directive and each role has one small function here. One that has none fails the
build in words, so that no page loses part of its text on Colab unnoticed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from library_code import WITHOUT_DOCSTRING, without_docstring
from myst_nb.core.variables import format_plain_text
from pybtex.database import BibliographyData
from quiz_data import letter, parse_question
from sphinx.directives.code import LiteralInclude, LiteralIncludeReader
from sphinx.environment import BuildEnvironment

OPENING = re.compile(r"^ {0,3}(?P<fence>`{3,}|:{3,}|~{3,})(?P<info>.*)$")
DIRECTIVE = re.compile(r"^\{(?P<name>[^}]+)\}\s*(?P<argument>.*)$")
ROLE = re.compile(r"\{(?P<name>[a-z][\w:-]*)\}`(?P<text>[^`]+)`")
TITLED = re.compile(r"^(?P<title>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
LABEL = re.compile(r"^\((?P<label>[\w:.-]+)\)=\s*$")
OPTION = re.compile(r"^:(?P<name>[\w-]+):\s*(?P<value>.*)$")
CODE_SPAN = re.compile(r"(?<!\})(`+)(?!`).+?(?<!`)\1(?!`)")
REMEDY = f"use another, or add its form to book/_ext/{Path(__file__).name}"
ADMONITIONS = (
    "note",
    "tip",
    "hint",
    "important",
    "warning",
    "caution",
    "attention",
    "danger",
    "error",
    "seealso",
)


class NotebookError(ValueError):
    """A page cannot be shown as a notebook; the message says which part and
    what to do."""


@dataclass(frozen=True)
class Directive:
    """One directive of a page: its name, argument, options and body."""

    name: str
    argument: str
    options: dict[str, str]
    body: str


@dataclass(frozen=True)
class Page:
    """What the text of one page refers to: its environment, the values it glues, and
    where the site is published."""

    docname: str
    env: BuildEnvironment
    glued: Mapping[str, Mapping[str, Any]]
    bibliography: BibliographyData
    site_url: str
    notebook_links: Callable[[str], str]

    def url(self, docname: str, anchor: str = "") -> str:
        """Return the published address of a page, or of an anchor on it."""
        return f"{self.site_url}/{docname}.html" + (f"#{anchor}" if anchor else "")

    def glued_as(self, key: str, mime_type: str) -> str:
        """Return a glued value in one of its forms."""
        if key not in self.glued:
            raise NotebookError(
                f"{key!r} is pasted but never glued; glue() it in a cell of this page"
            )
        if mime_type not in self.glued[key]:
            raise NotebookError(
                f"{key!r} was glued as {', '.join(self.glued[key])}, not as {mime_type}"
            )
        return self.glued[key][mime_type]


def convert(text: str, page: Page) -> str:
    """Return the Markdown of one cell of a page without directives and roles."""
    lines = iter(text.splitlines())
    return "\n".join(_blocks(lines, page)).strip()


def _blocks(lines: Iterator[str], page: Page) -> Iterator[str]:
    for line in lines:
        opening = OPENING.match(line)
        label = LABEL.match(line)
        if opening:
            body = list(_until_closed(lines, opening["fence"]))
            directive = DIRECTIVE.match(opening["info"].strip())
            if directive:
                yield _render(
                    _parse(directive["name"], directive["argument"], body), page
                )
            else:
                yield from (line, *body, opening["fence"])
        elif label:
            yield f'<a id="{label["label"]}"></a>'
        elif not line.startswith("%"):
            yield _roles(line, page)


def _until_closed(lines: Iterator[str], fence: str) -> Iterator[str]:
    closing = re.compile(rf"^ {{0,3}}{fence[0]}{{{len(fence)},}}\s*$")
    for line in lines:
        if closing.match(line):
            return
        yield line
    raise NotebookError(f"a block opened by {fence} is never closed")


def _parse(name: str, argument: str, body: list[str]) -> Directive:
    options = {}
    while body and (option := OPTION.match(body[0])):
        options[option["name"]] = option["value"]
        body = body[1:]
    return Directive(name, argument.strip(), options, "\n".join(body).strip("\n"))


def _render(directive: Directive, page: Page) -> str:
    if directive.name in ADMONITIONS:
        text = "\n".join(
            filter(None, [directive.argument, directive.body])
        )  # it may begin on its first line
        return _quoted(directive.name.capitalize(), text, page)
    if directive.name not in DIRECTIVES:
        raise NotebookError(
            f"the directive {{{directive.name}}} has no form for notebooks; {REMEDY}"
        )
    return DIRECTIVES[directive.name](directive, page)


def _roles(line: str, page: Page) -> str:
    """Replace the roles of a line, and leave its plain `code` as it is."""
    pieces, end = [], 0
    for span in CODE_SPAN.finditer(ROLE.sub(lambda match: "\0" * len(match[0]), line)):
        pieces += [
            ROLE.sub(lambda match: _role(match, page), line[end : span.start()]),
            span[0],
        ]
        end = span.end()
    return "".join([*pieces, ROLE.sub(lambda match: _role(match, page), line[end:])])


def _role(match: re.Match[str], page: Page) -> str:
    name, text = match["name"], match["text"]
    titled = TITLED.match(text)
    title, target = (titled["title"], titled["target"]) if titled else (None, text)
    kind = "py" if name.startswith("py:") else name
    if kind not in ROLES:
        raise NotebookError(f"the role {{{name}}} has no form for notebooks; {REMEDY}")
    return ROLES[kind](title, target, page)


# Directives


def _quoted(title: str, body: str, page: Page) -> str:
    return "\n".join(
        f"> {line}".rstrip()
        for line in [f"**{title}**", "", *convert(body, page).splitlines()]
    )


def _admonition(directive: Directive, page: Page) -> str:
    return _quoted(_roles(directive.argument, page), directive.body, page)


def _math(directive: Directive, page: Page) -> str:
    label = directive.options.get("label")
    tag = f" \\tag{{{_equation_number(label, page)}}}" if label else ""
    return f"$$\n{directive.body}{tag}\n$$"


def _code_block(directive: Directive, page: Page) -> str:
    return f"```{directive.argument}\n{directive.body}\n```"


def _literalinclude(directive: Directive, page: Page) -> str:
    options = dict(directive.options)
    language = options.pop("language", "python")
    _, path = page.env.relfn2path(directive.argument, page.docname)
    bare = options.pop(WITHOUT_DOCSTRING, None) is not None
    options = {
        name: LiteralInclude.option_spec[name](value) for name, value in options.items()
    }
    text, _ = LiteralIncludeReader(path, options, page.env.config).read()
    text = without_docstring(text) if bare else text
    return (
        f"From `{Path(directive.argument).name}`:\n\n```{language}\n{text.strip()}\n```"
    )


def _live(directive: Directive, page: Page) -> str:
    """Only the site runs a model where it is read."""
    body = f"{directive.body}\n\nThis runs on the website: {{doc}}`bert-live`."
    return _quoted("BERT, live", body, page)


def _quiz(directive: Directive, page: Page) -> str:
    question = parse_question(
        "\n".join(filter(None, [directive.argument, directive.body]))
    )
    choices = [
        f"- {letter(n)}. {convert(choice.text, page)}"
        for n, choice in enumerate(question.choices)
    ]
    answers = [
        f"- **{letter(n)} is {'right' if choice.correct else 'wrong'}.**"
        f" {convert(choice.explanation, page)}"
        for n, choice in enumerate(question.choices)
    ]
    several = ["", "Several may be right."] if question.multiple else []
    hidden = [
        "",
        "<details><summary>Answers</summary>",
        "",
        *answers,
        "",
        "</details>",
        "",
    ]
    return "\n".join(
        [
            f"**Question.** {convert(question.text, page)}",
            *several,
            "",
            *choices,
            *hidden,
        ]
    )


def _exercise(directive: Directive, page: Page) -> str:
    title = _roles(directive.argument, page)
    label = directive.options.get("label", "")
    head = f'<a id="{label}"></a>**Exercise.** *{title}*'
    return "\n\n".join(filter(None, [head, convert(directive.body, page)]))


def _solution(directive: Directive, page: Page) -> str:
    text = convert(directive.body, page)
    return f"<details><summary>Solution</summary>\n\n{text}\n\n</details>\n"


def _solution_start(directive: Directive, page: Page) -> str:
    """A solution with cells cannot be folded in a notebook: details end with a cell."""
    return "**Solution.**"


def _end(directive: Directive, page: Page) -> str:
    return ""


def _glue_figure(directive: Directive, page: Page) -> str:
    caption = convert(directive.body, page)
    drawn = f"*Figure, drawn by the cell that makes `{directive.argument}`.*"
    return f"{drawn} {caption}".strip()


def _glue_markdown(directive: Directive, page: Page) -> str:
    return page.glued_as(directive.argument, "text/markdown")


def _figure(directive: Directive, page: Page) -> str:
    address = f"{page.site_url}/_images/{Path(directive.argument).name}"
    image = f"![{directive.options.get('alt', '')}]({address})"
    return f"{image}\n\n{convert(directive.body, page)}".strip()


def _table(directive: Directive, page: Page) -> str:
    caption = (
        [f"*{_roles(directive.argument, page)}*", ""] if directive.argument else []
    )
    return "\n".join([*caption, convert(directive.body, page)])


def _list_table(directive: Directive, page: Page) -> str:
    rows: list[list[str]] = []
    for line in directive.body.splitlines():
        if line.startswith("* -"):
            rows.append([line[3:].strip()])
        elif line.startswith("  -"):
            rows[-1].append(line[3:].strip())
        elif line.strip():
            rows[-1][-1] += f" {line.strip()}"
    if "header-rows" not in directive.options:
        rows.insert(0, [""] * len(rows[0]))
    cells = [f"| {' | '.join(_roles(cell, page) for cell in row)} |" for row in rows]
    body = "\n".join([cells[0], "|" + " --- |" * len(rows[0]), *cells[1:]])
    return "\n".join(
        [
            *(
                [f"*{_roles(directive.argument, page)}*", ""]
                if directive.argument
                else []
            ),
            body,
        ]
    )


def _bibliography(directive: Directive, page: Page) -> str:
    return f"See the [bibliography]({page.url('bibliography')})."


DIRECTIVES: dict[str, Callable[[Directive, Page], str]] = {
    "admonition": _admonition,
    "dropdown": _admonition,
    "math": _math,
    "code-block": _code_block,
    "code": _code_block,
    "literalinclude": _literalinclude,
    "live": _live,
    "quiz": _quiz,
    "exercise": _exercise,
    "exercise-start": _exercise,
    "exercise-end": _end,
    "solution": _solution,
    "solution-start": _solution_start,
    "solution-end": _end,
    "glue:": _glue_figure,
    "glue": _glue_figure,
    "glue:figure": _glue_figure,
    "glue:md": _glue_markdown,
    "figure": _figure,
    "image": _figure,
    "table": _table,
    "list-table": _list_table,
    "bibliography": _bibliography,
}

# Roles


def _equation_number(label: str, page: Page) -> int:
    _, number = page.env.domains["math"].data["objects"].get(label, (None, None))
    if number is None:
        raise NotebookError(f"no equation is labelled {label!r}")
    return number


def _eq(title: str | None, label: str, page: Page) -> str:
    return f"({_equation_number(label, page)})"


def _label(target: str, page: Page) -> tuple[str, str, str]:
    std = page.env.domains["std"]
    found = std.labels.get(target.lower()) or (
        *std.anonlabels.get(target.lower(), (None, None)),
        "",
    )
    if found[0] is None:
        raise NotebookError(f"nothing is labelled {target!r}")
    return found


def _ref(title: str | None, target: str, page: Page) -> str:
    docname, anchor, name = _label(target, page)
    return f"[{title or name}]({page.url(docname, anchor)})"


def _numref(title: str | None, target: str, page: Page) -> str:
    docname, anchor, _ = _label(target, page)
    for kind, words in (
        ("figure", "Figure"),
        ("table", "Table"),
        ("code-block", "Listing"),
    ):
        number = page.env.toc_fignumbers.get(docname, {}).get(kind, {}).get(anchor)
        if number:
            return (
                f"[{words} {'.'.join(map(str, number))}]({page.url(docname, anchor)})"
            )
    raise NotebookError(
        f"{target!r} has no number; only figures, tables and listings have"
    )


def _doc(title: str | None, target: str, page: Page) -> str:
    docname = page.env.relfn2path(target, page.docname)[0].removesuffix(".md")
    heading = page.env.titles.get(docname, nodes.title(docname, docname)).astext()
    return f"[{title or heading}]({page.url(docname)})"


def _py(title: str | None, target: str, page: Page) -> str:
    name = target.lstrip("~")
    shown = title or (name.rpartition(".")[2] if target.startswith("~") else name)
    entry = page.env.domains["py"].objects.get(name)
    return (
        f"[`{shown}`]({page.url(entry.docname, entry.node_id)})"
        if entry
        else f"`{shown}`"
    )


def _term(title: str | None, target: str, page: Page) -> str:
    return title or target


def _glue_text(title: str | None, target: str, page: Page) -> str:
    key, _, format_spec = target.partition(":")
    return html.unescape(
        format_plain_text(page.glued_as(key, "text/plain"), format_spec)
    )


def _math_role(title: str | None, text: str, page: Page) -> str:
    return f"${text}$"


def _literal(title: str | None, text: str, page: Page) -> str:
    return f"`{text}`"


def _author_year(key: str, page: Page) -> tuple[str, str]:
    if key not in page.bibliography.entries:
        raise NotebookError(f"{key!r} is not in references.bib")
    entry = page.bibliography.entries[key]
    names = [" ".join(person.last_names) for person in entry.persons["author"]]
    who = (
        names[0]
        if len(names) == 1
        else f"{names[0]} and {names[1]}"
        if len(names) == 2
        else f"{names[0]} et al."
    )
    return who.replace("{", "").replace("}", ""), entry.fields["year"]


def _cite_textual(title: str | None, keys: str, page: Page) -> str:
    cited = [_author_year(key.strip(), page) for key in keys.split(",")]
    works = ", ".join(f"{who} ({year})" for who, year in cited)
    return f"[{works}]({page.url('bibliography')})"


def _cite_parenthetical(title: str | None, keys: str, page: Page) -> str:
    cited = [_author_year(key.strip(), page) for key in keys.split(",")]
    works = "; ".join(f"{who}, {year}" for who, year in cited)
    return f"([{works}]({page.url('bibliography')}))"


def _assignment(title: str | None, name: str, page: Page) -> str:
    return f"[{title or f'{name}.ipynb'}]({page.notebook_links(name)})"


ROLES: dict[str, Callable[[str | None, str, Page], str]] = {
    "eq": _eq,
    "ref": _ref,
    "numref": _numref,
    "doc": _doc,
    "py": _py,
    "term": _term,
    "glue": _glue_text,
    "glue:text": _glue_text,
    "math": _math_role,
    "code": _literal,
    "cite:t": _cite_textual,
    "cite:p": _cite_parenthetical,
    "assignment": _assignment,
}
