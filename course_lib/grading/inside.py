"""Which test cells run in the student's own process, because what they need cannot cross a pipe as data; and why.

There a student's code stands beside the test and can lie to it, as in stock nbgrader, though it is shut in all the same
and of hidden tests nothing but the points is kept. What was judged so is said in the log, on the instructor's screen
and in the feedback. Every other test cell runs where no student's code runs.
"""

from __future__ import annotations

HANDED = "it hands over a model, an optimizer or a counting stand-in of its own."


def _cells(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


#: By assignment and test cell, what the test does that the bridge does not carry.
INSIDE: dict[str, dict[str, str]] = {
    "pretraining": _cells(HANDED, "step-training step-evaluate step-lowers"),
    "fine-tuning": _cells(HANDED, "features-extract tuning-evaluate tuning-train tuning-best experiment-reviews"),
    "sentence-bert": _cells(HANDED, "encode-order evaluate-ranks evaluate-spearman experiment-pairs"),
}
