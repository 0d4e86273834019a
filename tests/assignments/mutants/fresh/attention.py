"""Wrong answers to the attention assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
attention`` says which get full marks.
"""

from fresh import Fresh

from course_tools.grading.assignments.mutants import RightAnswer

MUTANTS = [
    Fresh(
        "minus_ten_thousand_masks",
        "gives masked scores -10000, which is not below every score",
        "numerics",
        "masked-softmax-edges",
        {
            "masked-softmax": (
                'scores.masked_fill(~mask, float("-inf"))',
                "scores.masked_fill(~mask, -1e4)",
            )
        },
    )
]

RIGHT_ANSWERS = [
    RightAnswer(
        "softmax_by_where",
        "sets -inf by torch.where",
        {
            "masked-softmax": (
                'scores.masked_fill(~mask, float("-inf"))',
                'torch.where(mask, scores, float("-inf"))',
            )
        },
    )
]
