"""A test that depends on chance, on time say, and is declared to: where it fails it is run again, and the best counts.

A declaration is the tag ``flaky`` on the test's cell in the assignment's source; the released notebook and the feedback
show it. No other test is ever run again, and a student's own tags count for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from course_lib.grading.execute import Steps, Transcript, execute
from course_lib.grading.sandbox import Worker

RUNS = 3


def settled(run: Callable[[], Transcript], flaky: Mapping[str, float]) -> Transcript:
    """Run a submission, and again while a declared test fails, `RUNS` times at most.

    Args:
        run: runs it once, whole and anew.
        flaky: :func:`course_lib.grading.plan.flaky_tests`.

    Returns:
        The first report, with the best result of each declared test and how often it was asked.
    """
    transcript = run()
    for count in range(2, RUNS + 1):
        failing = [name for name, points in flaky.items() if 0 <= _earned(transcript, name) < points]
        if not failing or transcript.trouble:
            break
        again = run()
        for name in failing:
            transcript.repeated[name] = count
            if _earned(again, name) > _earned(transcript, name) and name in again.tests:
                transcript.marks[name], transcript.tests[name] = again.marks[name], again.tests[name]
    return transcript


def run_settled(worker: Worker, files: dict[str, bytes], flaky: Mapping[str, float], steps: Steps) -> Transcript:
    """Run one submission on a worker, and again while a declared test fails."""
    return settled(partial(execute, worker, steps, files), flaky)


def words(transcript: Transcript) -> list[str]:
    """Tell the student which tests were run more than once."""
    return [
        f"{name} is declared to depend on chance. It was run {count} times, and the best counts."
        for name, count in transcript.repeated.items()
    ]


def _earned(transcript: Transcript, name: str) -> float:
    """What a test earned; less than nothing if it was not reached or looks tampered with: no second chance for that."""
    mark = transcript.marks.get(name)
    if mark is None or mark["tampering"] or type(mark["earned"]) not in (int, float):
        return -1.0
    return float(mark["earned"])
