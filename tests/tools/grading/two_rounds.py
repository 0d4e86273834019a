"""Both rounds of one submission on one worker, as the command runs them for a class of
one."""

from __future__ import annotations

from course_tools.grading.run.execute import (
    Steps,
    Transcript,
    execute,
    hidden_round,
    visible_round,
)
from course_tools.grading.run.rounds import joined
from course_tools.grading.sandbox.sandbox import Worker


def two_rounds(worker: Worker, steps: Steps, files: dict[str, bytes]) -> Transcript:
    visible = execute(worker, visible_round(steps), files)
    assert visible.trouble == ""
    return joined(visible, execute(worker, hidden_round(steps, visible), files))
