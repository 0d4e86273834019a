"""Fill in the ledger of claims when all pages have been read: our figures, verdicts,
and how many there are of each.

A figure may be live, so it is known only when its chapter has been executed. At
reading, the roles leave a place; it is filled before the page is written, from the
executed pages that the same build has left. A figure that is not found is a warning,
and so a failure of the build, never a blank.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

LOGGER = logging.getLogger(__name__)
EMPHASIS = re.compile(r"\*([^*]+)\*")
MARK = "claims"


class claim_result(nodes.General, nodes.Inline, nodes.Element):
    """A place for a figure, a verdict or a count."""


class ClaimRole(SphinxRole):
    """{ours}`name`, {verdict}`name` or {verdicts}`word`: leave a place for what is
    known at the end."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.metadata[self.env.docname][MARK] = True
        place = claim_result(kind=self.name, of=self.text)
        place.source, place.line = self.get_source_info()
        return [place], []


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write pages with claims in each build: any chapter may have changed what they
    show."""
    return [page for page, data in env.metadata.items() if data.get(MARK)]


def _hold_all(app: Sphinx) -> dict[str, Any]:
    """Hold each claim against the evidence once a build; a claim whose figure is
    missing is its error."""
    if not hasattr(app, "claims_held"):
        from course_tools.claims.check import chapter_pages, claims_of, hold
        from course_tools.claims.sources import EXECUTED, Evidence, LedgerError

        book = Path(app.srcdir)
        executed = Path(app.outdir).parent / EXECUTED
        evidence = Evidence(chapter_pages(book), executed)
        held: dict[str, Any] = {}
        for claim in claims_of(book):
            try:
                held[claim.name] = hold(claim, evidence)
            except LedgerError as error:
                held[claim.name] = error
        app.claims_held = held
    return app.claims_held


def fill_in(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put figures, verdicts and counts where the roles left a place."""
    for place in list(doctree.findall(claim_result)):
        kind, of = place["kind"], place["of"]
        held = _hold_all(app)
        if kind == "verdicts":
            counts = Counter(
                found.verdict.value
                for found in held.values()
                if hasattr(found, "verdict")
            )
            place.replace_self(nodes.Text(str(counts[of])))
            continue
        found = held.get(of, LookupError(f"no claim has the name {of!r}"))
        if isinstance(found, Exception):
            LOGGER.warning(
                "claim %s: %s",
                of,
                found,
                location=place,
                type="course",
                subtype="claim",
            )
            place.replace_self(nodes.Text(f"[{of}]"))
        elif kind == "verdict":
            word = found.verdict.value
            place.replace_self(
                nodes.inline(
                    "",
                    word,
                    classes=["verdict", f"verdict-{word.replace(' ', '-')}"],
                    ids=[f"claim-{of}"],
                )
            )
        else:
            place.replace_self(_with_emphasis(found.figures()))


def _with_emphasis(text: str) -> list[nodes.Node]:
    parts = EMPHASIS.split(text)
    return [
        nodes.emphasis("", part) if odd % 2 else nodes.Text(part)
        for odd, part in enumerate(parts)
        if part
    ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(claim_result)
    for name in ("ours", "verdict", "verdicts"):
        app.add_role(name, ClaimRole())
    app.connect("env-updated", write_again)
    app.connect("doctree-resolved", fill_in)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
