"""What an examination of a machine (:mod:`course_tools.doctor`) found, and its telling.

The examination itself is :mod:`course_tools.doctor`.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rich.console import Console


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    name: str  # the thing that was examined
    ok: bool  # whether it is as the course needs it
    found: str  # what this machine has
    remedy: str = ""  # what to do; empty where all is well

    def __post_init__(self) -> None:
        if self.ok == bool(self.remedy):
            raise ValueError(
                f"finding {self.name!r} has ok={self.ok} and remedy={self.remedy!r}; "
                "a finding has a remedy exactly when it is not ok"
            )


def to_json(findings: Iterable[Finding]) -> str:
    """Write findings as JSON."""
    listed = [asdict(finding) for finding in findings]
    return json.dumps(
        {"ok": all(finding["ok"] for finding in listed), "findings": listed}, indent=2
    )


def render(findings: Iterable[Finding], console: Console | None = None) -> None:
    """Print findings, a line each, with the remedy under what is not OK."""
    console = console or Console()
    for finding in findings:
        verdict = "[green]OK[/green]" if finding.ok else "[red]NO[/red]"
        console.print(f"{finding.name:<9} {verdict}  ", end="")
        console.print(finding.found, markup=False, highlight=False, soft_wrap=True)
        if finding.remedy:
            words = f"{'':<14}-> {finding.remedy}"
            console.print(words, markup=False, highlight=False, soft_wrap=True)
