"""A student's Markdown, so that no page that is made of it runs or fetches anything.

What a submission says is shown to instructors by nbgrader's formgrader and feedback
pages, which turn its Markdown into HTML themselves: raw tags stay, links may begin with
``javascript:``, pictures are fetched from anywhere. So the source is changed before it
is kept. A sign of no width is put in where a tag, a link, a picture or a formula with a
link would begin, unless it is known to be harmless: the text reads as before, and no
parser sees more than text in it.
"""

import re
from collections.abc import Collection
from functools import partial

from nbformat import NotebookNode

#: A space of no width: shown as nothing, and no part of any Markdown, HTML or TeX.
NOTHING = "\u200b"
#: Where a link may lead.
LINK = r"(?:https?://|mailto:|#)"
#: What a picture may be.
HERE = "(?:attachment:|data:image/(?:png|jpeg|gif);base64,)"
PICTURE = rf"\[[^\[\]]*\]\({HERE}"
#: What in TeX makes links, loads extensions, sets attributes of HTML, or makes commands
#: that do.
TEX = r"href|url|require|style|class|cssId|data|html\w*|unicode"
TEX += "|csname|def|let|newcommand|renewcommand"
ATTACHED = re.compile(r"attachment:([^\s()<>\"']*)")
RULES = (
    # a tag, a comment, a link in angle brackets
    (re.compile(r"<(?=[A-Za-z/!?])"), "<"),
    (re.compile(rf"!(?=\[)(?!{PICTURE})"), "!"),  # a picture: it becomes a link
    # a link
    (re.compile(rf"\](?=\()(?!\((?:{LINK}|{HERE}))"), "]"),
    # the target of a link, on a line of its own
    (re.compile(rf"\](?=:)(?!:[ \t]*{LINK})"), "]"),
    (re.compile(rf"\\(?=(?:{TEX})(?![a-z]))"), "\\\\"),
)


def harmless(source: str, attached: Collection[str] = ()) -> str:
    r"""Change a Markdown text so that it can be shown."""
    source = ATTACHED.sub(partial(_attachment, attached), source)
    for rule, kept in RULES:
        source = rule.sub(kept + NOTHING, source)
    return source


def _attachment(attached: Collection[str], found: re.Match[str]) -> str:
    return found[0] if found[1] in attached else f"attachment{NOTHING}:{found[1]}"


def make_harmless(notebook: NotebookNode) -> None:
    """Change all text cells of a notebook in place."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            cell.source = harmless(cell.source, cell.get("attachments", {}))
