"""A test that depends on chance, on time say, and is declared to: where it fails it is
run again, and the best counts.

A declaration is the tag ``flaky`` on the test's cell in the assignment's source; the
released notebook and the feedback show it. No other test is ever run again, and a
student's own tags count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from course_tools.grading.run.execute import Round, Transcript, execute
from course_tools.grading.sandbox.sandbox import Worker

RUNS = 3


def settled(run: Callable[[], Transcript], flaky: Mapping[str, float]) -> Transcript:
    """Run a round of a submission, and again while a declared test fails, `RUNS` times
    at most."""
    transcript = run()
    for count in range(2, RUNS + 1):
        failing = [
            name
            for name, points in flaky.items()
            if 0 <= _earned(transcript, name) < points
        ]
        if not failing or transcript.trouble:
            break
        again = run()
        for name in failing:
            transcript.repeated[name] = count
            if _earned(again, name) > _earned(transcript, name):
                _results(transcript)[name] = _results(again)[name]
    return transcript


def run_settled(
    worker: Worker, files: dict[str, bytes], flaky: Mapping[str, float], one: Round
) -> Transcript:
    """Run one round of a submission on a worker, and again while a declared
    test fails."""
    return settled(partial(execute, worker, one, files), flaky)


def _results(transcript: Transcript) -> dict[str, dict[str, Any]]:
    """What the tests gave, in whichever round this is: a hidden one has marks, a
    visible one none."""
    return transcript.marks or transcript.tests


def _earned(transcript: Transcript, name: str) -> float:
    """What a test earned; less than nothing if it was not reached or looks tampered
    with: no second chance for that."""
    told = _results(transcript).get(name)
    if told is None or told["tampering"] or type(told["earned"]) not in (int, float):
        return -1.0
    return (
        math.inf if told.get("error") == "" else float(told["earned"])
    )  # of a hidden round no error is told
