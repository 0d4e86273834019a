"""Claims, topics, deviations and reading, as the YAML beside states them, checked."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin
from typing import get_type_hints as hints_of

import yaml

from course_tools.claims.rules import RULES, Measured, Rule, Unmeasured, Verdict
from course_tools.claims.sources import SOURCES, Evidence, LedgerError, Origin, Source

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Beside:
    """Another figure that is shown with a claim's own."""

    what: str
    ours: Source
    unit: str = ""
    digits: int = 1


@dataclass(frozen=True)
class Claim:
    """A claim of the course, and how it is held against a measurement."""

    name: str  # short, in lower case with hyphens: an anchor on the page
    row: int  # the topic, by its number in ``rows.yaml``
    claim: str  # in our words
    published: str  # the figure, or what was said, in Markdown without citation
    rule: Rule  # gives the verdict
    cite: str = ""  # keys of references.bib; empty if the claim is the course's own
    what: str = ""
    ours: Source | None = None
    unit: str = ""
    digits: int = 1
    beside: tuple[Beside, ...] = ()  # other figures that are shown with it
    note: str = ""  # what a reader should know of the comparison
    section: str = ""  # of the experiment; by default that of the row

    @property
    def label(self) -> str:
        """The label of the section with the experiment."""
        return self.section or f"row-{self.row}"

    @property
    def chapter(self) -> int:
        """The chapter that teaches the claim's topic."""
        return rows()[self.row - 1].chapter

    def sources(self) -> list[Source]:
        """Return where its figures come from, its own first."""
        own = [self.ours] if self.ours else []
        return own + [other.ours for other in self.beside]

    def origins(self) -> tuple[Origin, ...]:
        """Say where the figures stand, each place once."""
        found = [origin for source in self.sources() for origin in source.origins()]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Deviation:
    """What we do otherwise than the original BERT, why, and what it changes."""

    what: str
    theirs: str
    cite: str
    course: str
    why: str
    changes: str = ""
    effect: Source | None = None


class Row(NamedTuple):
    """A topic of the course, 1 to 56, and the chapter that teaches it."""

    number: int
    chapter: int
    title: str


def build(kind: type[Thing], entry: Any, where: str) -> Thing:
    """Make a claim, rule or source of what a file says, or refuse in words."""
    hints = hints_of(kind)
    known = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    names = ", ".join(known)
    if not isinstance(entry, Mapping):
        raise LedgerError(f"{where} is {entry!r}; expected keys: {names}")
    for key in entry:
        if key not in known:
            raise LedgerError(f"{where} has the unknown key {key}; known are: {names}")
    for key, default in known.items():
        if default is MISSING and key not in entry:
            raise LedgerError(f"{where} lacks the key {key}")
    return kind(**{k: _typed(v, hints[k], f"{where}: {k}") for k, v in entry.items()})


def _typed(value: Any, hint: Any, where: str) -> Any:
    """Return a plain value of its field's type; a whole number does for any number."""
    if get_origin(hint) is Literal:
        fits, expected = value in get_args(hint), " or ".join(get_args(hint))
    elif hint is float:
        fits = type(value) in (int, float)
        expected = "a number (YAML reads 1.0e-5, not 1e-5)"
    elif hint in (str, int):
        fits = type(value) is hint
        expected = "text" if hint is str else "a whole number"
    else:
        return value
    if not fits:
        raise LedgerError(f"{where} is {value!r}; expected {expected}")
    return float(value) if hint is float else value


def rule_of(entry: Any, where: str) -> Rule:
    """Read a rule, e.g. ``{trend: above, bound: 1.0}``."""
    return _told_by_key(RULES, entry, f"the rule of {where}")


def source_of(entry: Any, where: str) -> Source:
    """Read a source, e.g. ``{page: 2, glued: peak_fused}``."""
    if isinstance(entry, Mapping) and "apart" in entry:
        both = entry["apart"]
        if not isinstance(both, list) or len(both) != 2:
            raise LedgerError(f"apart of {where} is {both!r}; give two figures")
        entry = {**entry, "apart": tuple(source_of(part, where) for part in both)}
    source: Source = _told_by_key(SOURCES, entry, f"a figure of {where}")
    return source


def _told_by_key(kinds: Mapping[str, Any], entry: Any, where: str) -> Any:
    """Build what one key of an entry tells; its value is the first field."""
    found = [key for key in kinds if isinstance(entry, Mapping) and key in entry]
    if len(found) != 1:
        raise LedgerError(
            f"{where} is {entry!r}; it needs exactly one of: {', '.join(kinds)}"
        )
    others = dict(entry)
    first = fields(kinds[found[0]])[0].name
    value = others.pop(found[0])
    if first in others:
        raise LedgerError(f"{where} has the unknown key {first} beside {found[0]}")
    return build(kinds[found[0]], {**others, first: value}, where)


def claim_of(entry: Any) -> Claim:
    """Read a claim."""
    where = _named(entry, "claim", "name")
    claim = build(Claim, _with(entry, where), where)
    if claim.ours is None and not isinstance(claim.rule, Unmeasured):
        raise LedgerError(f"{where} has no figure; give one, or say unmeasured")
    return claim


def deviation_of(entry: Any) -> Deviation:
    """Read a deviation."""
    where = _named(entry, "deviation", "what")
    return build(Deviation, _with(entry, where), where)


def _named(entry: Any, kind: str, key: str) -> str:
    return f"{kind} {entry.get(key) if isinstance(entry, Mapping) else entry!r}"


def _with(entry: Any, where: str) -> Any:
    """Build the parts of an entry that are not plain: rule, sources, figures beside."""
    if not isinstance(entry, Mapping):
        return entry
    made = dict(entry)
    if "rule" in made:
        made["rule"] = rule_of(made["rule"], where)
    for key in made.keys() & {"ours", "effect"}:
        made[key] = source_of(made[key], where)
    if "beside" in made:
        others = [_with(other, where) for other in made["beside"]]
        made["beside"] = tuple(build(Beside, other, where) for other in others)
    return made


def read(name: str) -> Any:
    """Read a file that lies beside this module."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@cache
def claims() -> tuple[Claim, ...]:
    """Return all claims, in the order of the course."""
    return tuple(claim_of(entry) for entry in read("claims"))


@cache
def deviations() -> tuple[Deviation, ...]:
    """Return what we do otherwise, in the order of the page."""
    return tuple(deviation_of(entry) for entry in read("deviations"))


@cache
def rows() -> tuple[Row, ...]:
    """Return the topics, in the order of the course."""
    titles = [(chapter, title) for chapter, of in read("rows").items() for title in of]
    return tuple(Row(number, *row) for number, row in enumerate(titles, start=1))


def chapter_pages(book: Path) -> dict[int, str]:
    """Return the names of the chapters' pages that the book has, by number.

    A chapter that teaches is `NN-name.md`; its laboratory is `NN-name-lab.md`.
    """
    stems = sorted(page.stem for page in book.glob("[0-9][0-9]-*.md"))
    return {int(stem[:2]): stem for stem in stems if not stem.endswith("-lab")}


def claims_of(book: Path) -> list[Claim]:
    """Return the claims of the chapters that a book has."""
    pages = chapter_pages(book)
    return [claim for claim in claims() if claim.chapter in pages]


@dataclass(frozen=True)
class Held:
    """A claim held against the evidence: its rule's verdict, and our figures."""

    claim: Claim
    verdict: Verdict
    measured: Measured | None
    beside: tuple[Measured, ...]

    def figures(self) -> str:
        """Write our figures, each with what it is and its interval."""
        claim = self.claim
        parts = []
        if self.measured is not None:
            shown = self.measured.text(claim.digits, claim.unit)
            how = "" if self.measured.certain else f" ({self.measured.how})"
            parts.append(f"{claim.what}: {shown}{how}")
        parts += [
            f"{other.what}: {found.text(other.digits, other.unit)}"
            for other, found in zip(claim.beside, self.beside, strict=True)
        ]
        return "; ".join(parts) + "." if parts else "No measurement."


def hold(claim: Claim, evidence: Evidence) -> Held:
    """Read a claim's figures and let its rule judge."""
    measured = claim.ours.read(evidence) if claim.ours else None
    beside = tuple(other.ours.read(evidence) for other in claim.beside)
    return Held(claim, claim.rule.judge(measured), measured, beside)
