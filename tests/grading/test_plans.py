"""Plans of submissions are made by several threads: two of them in Python 3.11's parser at once can make it fail."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course_lib.grading.grade import load, plan_of
from course_lib.grading.intake import read

ROOT = Path(__file__).parents[2]


def test_plans_that_are_made_at_the_same_time_are_those_that_are_made_one_by_one() -> None:
    """Without the lock, "AST constructor recursion depth mismatch" came within ten submissions to this assignment."""
    assignment = load("attention", ROOT)
    submission = read("ada", ROOT / "exercises" / "attention", "attention")
    alone = plan_of(assignment, submission)
    assert len(alone) > 20
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda _: plan_of(assignment, submission), range(60)))
    assert all(plan == alone for plan in together)
