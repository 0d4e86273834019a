"""The text of the closing pages in Markdown, made from claims, rows and deviations.

What is live, figures and verdicts, is left to roles: ``{ours}`name` ``,
``{verdict}`name` `` and ``{verdicts}`word` ``, which ``book/_ext/claim_results.py``
fills when all pages have been executed.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from course_lab.records import STALE
from course_tools.claims.check import (
    Claim,
    Deviation,
    chapter_pages,
    claims_of,
    deviations,
    read,
    rows,
)
from course_tools.claims.computed import fact
from course_tools.claims.rules import Verdict
from course_tools.claims.sources import Evidence

TITLE = re.compile(r"^(?:\(([\w-]+)\)=\n)# (.+)$", re.MULTILINE)
LABEL = re.compile(r"^\((row-(\d+)(?:-[a-z-]+)?)\)=$", re.MULTILINE)
FACT = re.compile(r"\{(\w+)\}")
MEANINGS = {
    Verdict.REPRODUCED: (
        "the figure is ours, too, within interval and tolerance, or the statement holds"
    ),
    Verdict.DIRECTION_ONLY: (
        "same direction; the figures are of other data, sizes or units"
    ),
    Verdict.NOT_AT_THIS_SCALE: (
        "too small, too few seeds, or no measurement: nothing follows from ours"
    ),
    Verdict.CONTRADICTED: "our interval lies on the other side",
}


def pages(book: Path) -> dict[str, str]:
    """Return the parts that the closing pages include, by file name."""
    return {
        "claims.inc.md": claims_page(book),
        "coverage.inc.md": coverage_page(book),
        "deviations.inc.md": deviations_page(),
        "reading.inc.md": reading_page(book),
    }


def claims_page(book: Path) -> str:
    """Write the ledger of claims: how many have which verdict, then each claim under
    its chapter."""
    claims = claims_of(book)
    lines = ["| verdict | claims | what it means |", "| --- | --- | --- |"]
    lines += [
        f"| {word.value} | {{verdicts}}`{word.value}` | {meaning} |"
        for word, meaning in MEANINGS.items()
    ]
    for chapter, (label, title) in _titles(book).items():
        lines += [
            "",
            f"## {chapter}. {title}",
            "",
            f"Claims that {{ref}}`chapter {chapter} <{label}>` is about.",
        ]
        for claim in claims:
            if claim.chapter == chapter:
                lines += ["", *_claim_lines(claim)]
    return "\n".join(lines) + "\n"


def _titles(book: Path) -> dict[int, tuple[str, str]]:
    found = {}
    for chapter, stem in chapter_pages(book).items():
        title = TITLE.search((book / f"{stem}.md").read_text(encoding="utf-8"))
        if title is None:
            raise ValueError(f"{stem}.md has no title with a label before it")
        found[chapter] = (title[1], title[2])
    return found


def _cited(text: str, keys: str) -> str:
    return f"{text} {{cite:p}}`{keys}`" if keys else text


def _claim_lines(claim: Claim) -> list[str]:
    where = [f"topic {claim.row}", f"{{ref}}`{claim.label}`", *_places(claim)]
    rule = claim.rule.words()
    return [
        f"{{verdict}}`{claim.name}` {claim.claim}",
        f": **Published:** {_cited(claim.published, claim.cite)}.",
        f": **Ours:** {{ours}}`{claim.name}`",
        (
            ": **Rule:**"
            f" {rule.removesuffix('.')}.{' ' + claim.note if claim.note else ''}"
        ),
        f": **Where:** {'; '.join(where)}.",
    ]


def _places(claim: Claim) -> Iterable[str]:
    for origin in claim.origins():
        if origin.kind == "live":
            yield f"live, in the build of chapter {origin.name}"
        elif origin.kind == "recorded":
            yield f"recorded, {_download(origin.name)}"
        elif origin.kind == "checkpoint":
            yield (
                f"logged, {{download}}`log of {origin.name}"
                f" </checkpoints/{origin.name}/log.json>`"
            )
        else:
            yield "computed for this page"


def _download(record: str) -> str:
    """Link to a record; a stale one says so."""
    link = f"{{download}}`{record}.json </results/{record}.json>`"
    return link + (f" (stale: {STALE[record]})" if record in STALE else "")


def coverage_page(book: Path) -> str:
    """Write what is taught where: each row of the syllabus with links to its
    sections."""
    labels, titles = row_labels(book), _titles(book)
    lines: list[str] = []
    for chapter in dict.fromkeys(row.chapter for row in rows()):
        if chapter in titles:
            label, title = titles[chapter]
            lines += [
                "",
                f"## {chapter}. {title}",
                "",
                f"In {{ref}}`chapter {chapter} <{label}>`:",
            ]
        else:
            lines += [
                "",
                f"## {chapter}. In preparation",
                "",
                "These topics have no chapter yet:",
            ]
        lines += ["", "| topic | what | where |", "| --- | --- | --- |"]
        for row in rows():
            if row.chapter == chapter:
                where = (
                    "; ".join(
                        f"{{ref}}`{label}`" for label in labels.get(row.number, [])
                    )
                    or "not there yet"
                )
                lines.append(f"| {row.number} | {row.title} | {where} |")
    return "\n".join(lines).strip() + "\n"


def row_labels(book: Path) -> dict[int, list[str]]:
    """Return the labels of the sections that teach each row, as they stand in the
    chapters: ``row-12`` first."""
    found: dict[int, list[str]] = {}
    pages = chapter_pages(book)
    for stem in pages.values():
        for page in (book / f"{stem}.md", book / f"{stem}-lab.md"):
            text = page.read_text(encoding="utf-8") if page.is_file() else ""
            for label, number in LABEL.findall(text):
                found.setdefault(int(number), []).append(label)
    for row in rows():
        labels = found.get(row.number, [])
        if row.chapter in pages and f"row-{row.number}" not in labels:
            raise ValueError(
                f"{pages[row.chapter]}.md teaches row {row.number}: write"
                f" (row-{row.number})= before it"
            )
        if len(labels) != len(set(labels)):
            raise ValueError(
                f"two sections have the same label: {labels}; number them"
                f" row-{row.number}-<word>"
            )
        labels.sort(
            key=lambda label: label.count("-")
        )  # the main section first, the others as they come
    return found


def reading_page(book: Path) -> str:
    """Write what to read next, chapter by chapter."""
    lines: list[str] = []
    reading = read("reading")
    for chapter, (_, title) in _titles(book).items():
        lines += [
            f"## {chapter}. {title}",
            "",
            *(f"- {entry}" for entry in reading[chapter]),
            "",
        ]
    return "\n".join(lines)


def deviations_page() -> str:
    """Write what we do otherwise than the original BERT."""
    evidence = Evidence({})
    parts = [_deviation_lines(deviation, evidence) for deviation in deviations()]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _deviation_lines(deviation: Deviation, evidence: Evidence) -> list[str]:
    lines = [
        deviation.what,
        f": **Theirs:** {_cited(deviation.theirs, deviation.cite)}.",
        f": **Ours:** {FACT.sub(lambda name: fact(name[1]), deviation.course)}.",
        f": **Why:** {deviation.why}",
    ]
    if deviation.effect is not None:
        measured = deviation.effect.read(evidence)
        records = ", ".join(_download(x.name) for x in deviation.effect.origins())
        lines.append(
            f": **Measured:** {deviation.changes}: {measured.text(1, 'points')}"
            f" ({measured.how}), from {records}."
        )
    return lines
