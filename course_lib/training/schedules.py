"""Learning-rate schedules: every one begins with a linear warm-up and is a function of
the step alone."""

import math
from collections.abc import Callable

# The share of the peak, of a step behind the warm-up, the warm-up, all steps and those
# of the decay.
SCHEDULES: dict[str, Callable[[int, int, int, int], float]] = {
    "constant": lambda step, warmup, steps, decay: 1.0,
    "linear": lambda step, warmup, steps, decay: (
        1 - (step - warmup) / (steps + 1 - warmup)
    ),
    "cosine": lambda step, warmup, steps, decay: (
        (1 + math.cos(math.pi * (step - warmup) / (steps + 1 - warmup))) / 2
    ),
    "inverse_sqrt": lambda step, warmup, steps, decay: math.sqrt(warmup / step),
    "trapezoid": lambda step, warmup, steps, decay: (
        1 - math.sqrt(max(0, step - (steps - decay)) / (decay + 1))
    ),
}


def learning_rate_at(
    step: int,
    peak: float,
    schedule: str,
    warmup_steps: int,
    steps: int,
    decay_steps: int = 0,
) -> float:
    """The learning rate of one step: up to the peak in a straight line, then along the
    schedule.

    `constant` stays at the peak; `linear` and `cosine` fall and would reach 0 one step
    after the last, so that no step is wasted; `inverse_sqrt` falls as 1/sqrt(step),
    which is equation 3 of Vaswani et al. 2017, d^-0.5 * min(step^-0.5, step *
    warmup^-1.5), when the peak is (d * warmup)^-0.5. `trapezoid` stays at the peak and
    falls in the last `decay_steps` as 1 - sqrt(part of them made), which Hägele et al.
    2024 found best (section 3). It does not look at the end before it falls, so that
    one can decide late how long to train."""
    if schedule not in SCHEDULES:
        raise ValueError(
            f"there is no schedule {schedule!r}; choose one of {', '.join(SCHEDULES)}"
        )
    if step < warmup_steps:
        return peak * step / warmup_steps
    return peak * SCHEDULES[schedule](step, max(warmup_steps, 1), steps, decay_steps)
