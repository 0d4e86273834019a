"""What a claim is: our words for it, who published it, where our figure comes from, and
the rule of the verdict."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from course_lab.records import RESULTS
from course_tools.claims.evidence import Evidence
from course_tools.claims.measured import Measured
from course_tools.claims.sources import Origin, Source
from course_tools.claims.verdicts import Rule, Unmeasured, Verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the syllabus, and how it is held against a measurement.

    Parameters
    ----------
    name
        Short, in lower case with hyphens; the page has an anchor of it.
    row
        Of the syllabus.
    words
        The claim, in ours.
    published
        The figure as published, or what was said; in Markdown, without the citation.
    cite
        Keys of ``book/references.bib``, separated by commas; empty if the claim is the
        course's own.
    rule
        Gives the verdict.
    what
        What our figure is, e.g. "BLEU with attention minus BLEU without".
    ours
        Where it comes from; none where there is no measurement.
    unit, digits
        How it is written.
    beside
        Other figures that are shown with it: what they are, source, unit and digits.
    note
        What a reader should know of the comparison.
    section
        A label of the section with the experiment; by default that of the row.
    """

    name: str
    row: int
    words: str
    published: str
    cite: str
    rule: Rule
    what: str = ""
    ours: Source | None = None
    unit: str = ""
    digits: int = 1
    beside: tuple[tuple[str, Source, str, int], ...] = field(default=())
    note: str = ""
    section: str = ""

    @property
    def label(self) -> str:
        """The label of the section with the experiment."""
        return self.section or f"row-{self.row}"

    def origins(self) -> tuple[Origin, ...]:
        """Say where the figures stand, each place once."""
        sources = ([self.ours] if self.ours else []) + [
            source for _, source, _, _ in self.beside
        ]
        return tuple(
            dict.fromkeys(origin for source in sources for origin in source.origins())
        )


def once_recorded(claim: Claim, folder: Path = RESULTS) -> Claim:
    """Return a claim as it is if its records have been made, or else one that says
    which are missing."""
    names = [origin.name for origin in claim.origins() if origin.kind == "recorded"]
    missing = [name for name in names if not (folder / f"{name}.json").is_file()]
    if not missing:
        return claim
    reason = f"Not recorded yet: {', '.join(missing)}."
    return replace(claim, rule=Unmeasured(reason), what="", ours=None, beside=())


@dataclass(frozen=True)
class Held:
    """A claim held against the evidence.

    Parameters
    ----------
    claim
        The claim.
    verdict
        What its rule says.
    measured
        Our figure; none where there is no measurement.
    beside
        The other figures, in order.
    """

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
            f"{what}: {found.text(digits, unit)}"
            for (what, _, unit, digits), found in zip(
                claim.beside, self.beside, strict=True
            )
        ]
        return "; ".join(parts) + "." if parts else "No measurement."


def hold(claim: Claim, evidence: Evidence) -> Held:
    """Read a claim's figures and let its rule judge."""
    measured = claim.ours.read(evidence) if claim.ours else None
    if measured is None and not isinstance(claim.rule, Unmeasured):
        raise ValueError(
            f"claim {claim.name!r} has the rule {claim.rule} and no figure; give one,"
            " or say Unmeasured"
        )
    beside = tuple(source.read(evidence) for _, source, _, _ in claim.beside)
    return Held(claim, claim.rule.judge(measured), measured, beside)
