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
from course_tools.claims.sources import Evidence

TITLE = re.compile(r"^(?:\(([\w-]+)\)=\n)# (.+)$", re.MULTILINE)
LABEL = re.compile(r"^\((row-(\d+)(?:-[a-z-]+)?)\)=$", re.MULTILINE)
FACT = re.compile(r"\{(\w+)\}")
MEANINGS = """\
reproduced: the figure is ours within interval and tolerance, or the statement holds
direction only: same direction; the figures are of other data, sizes or units
not at this scale: too small, too few seeds, or no measurement: nothing follows from it
contradicted: our interval lies on the other side"""


def pages(book: Path) -> dict[str, str]:
    """Return the parts that the closing pages include, by file name."""
    return {
        "claims.inc.md": claims_page(book),
        "coverage.inc.md": coverage_page(book),
        "deviations.inc.md": deviations_page(),
        "reading.inc.md": reading_page(book),
    }


def claims_page(book: Path) -> str:
    """Write the ledger: how many claims have which verdict, then each by chapter."""
    claims = claims_of(book)
    lines = ["| verdict | claims | what it means |", "| --- | --- | --- |"]
    for line in MEANINGS.splitlines():
        word, meaning = line.split(": ", maxsplit=1)
        lines.append(f"| {word} | {{verdicts}}`{word}` | {meaning} |")
    for chapter, (label, title) in _titles(book).items():
        about = f"Claims that {{ref}}`chapter {chapter} <{label}>` is about."
        lines += ["", f"## {chapter}. {title}", "", about]
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
    rule = f"{claim.rule.words().removesuffix('.')}. {claim.note}".rstrip()
    return [
        f"{{verdict}}`{claim.name}` {claim.claim}",
        f": **Published:** {_cited(claim.published, claim.cite)}.",
        f": **Ours:** {{ours}}`{claim.name}`",
        f": **Rule:** {rule}",
        f": **Where:** {'; '.join(where)}.",
    ]


def _places(claim: Claim) -> Iterable[str]:
    for origin in claim.origins():
        name = origin.name
        if origin.kind == "live":
            yield f"live, in the build of chapter {name}"
        elif origin.kind == "recorded":
            yield f"recorded, {_download(name)}"
        elif origin.kind == "checkpoint":
            log = f"</checkpoints/{name}/log.json>"
            yield f"logged, {{download}}`log of {name} {log}`"
        else:
            yield "computed for this page"


def _download(record: str) -> str:
    """Link to a record; a stale one says so."""
    link = f"{{download}}`{record}.json </results/{record}.json>`"
    return link + (f" (stale: {STALE[record]})" if record in STALE else "")


def coverage_page(book: Path) -> str:
    """Write what is taught where: rows of the syllabus with links to sections."""
    labels, titles = row_labels(book), _titles(book)
    lines: list[str] = []
    for chapter in dict.fromkeys(row.chapter for row in rows()):
        title, intro = "In preparation", "These topics have no chapter yet:"
        if chapter in titles:
            label, title = titles[chapter]
            intro = f"In {{ref}}`chapter {chapter} <{label}>`:"
        lines += ["", f"### {chapter}. {title}", "", intro]
        lines += ["", "| topic | what | where |", "| --- | --- | --- |"]
        for row in (row for row in rows() if row.chapter == chapter):
            places = [f"{{ref}}`{label}`" for label in labels.get(row.number, [])]
            where = "; ".join(places) or "not there yet"
            lines.append(f"| {row.number} | {row.title} | {where} |")
    return "\n".join(lines).strip() + "\n"


def row_labels(book: Path) -> dict[int, list[str]]:
    """Return the labels of the sections that teach each row, ``row-12`` first."""
    found: dict[int, list[str]] = {}
    pages = chapter_pages(book)
    for stem in pages.values():
        for page in (book / f"{stem}.md", book / f"{stem}-lab.md"):
            text = page.read_text(encoding="utf-8") if page.is_file() else ""
            for label, number in LABEL.findall(text):
                found.setdefault(int(number), []).append(label)
    for row in rows():
        labels, own = found.get(row.number, []), f"row-{row.number}"
        if row.chapter in pages and own not in labels:
            teaches = f"{pages[row.chapter]}.md teaches row {row.number}"
            raise ValueError(f"{teaches}: write ({own})= before it")
        if len(labels) != len(set(labels)):
            same = f"two sections have the same label: {labels}"
            raise ValueError(f"{same}; number them {own}-<word>")
        # the main section first, the others as they come
        labels.sort(key=lambda label: label.count("-"))
    return found


def reading_page(book: Path) -> str:
    """Write what to read next, chapter by chapter."""
    lines: list[str] = []
    reading = read("reading")
    for chapter, (_, title) in _titles(book).items():
        lines += [f"## {chapter}. {title}", ""]
        lines += [*(f"- {entry}" for entry in reading[chapter]), ""]
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
        files = [_download(origin.name) for origin in deviation.effect.origins()]
        how = f"{measured.text(1, 'points')} ({measured.how}), from {', '.join(files)}"
        lines.append(f": **Measured:** {deviation.changes}: {how}.")
    return lines
