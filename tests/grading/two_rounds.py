"""Both rounds of one submission on one worker, as the command runs them for a class of
one."""

from __future__ import annotations

from course_lib.grading.execute import (
    Steps,
    Transcript,
    execute,
    hidden_round,
    visible_round,
)
from course_lib.grading.rounds import joined
from course_lib.grading.sandbox import Worker


def two_rounds(worker: Worker, steps: Steps, files: dict[str, bytes]) -> Transcript:
    visible = execute(worker, visible_round(steps), files)
    assert visible.trouble == ""
    return joined(visible, execute(worker, hidden_round(steps, visible), files))
