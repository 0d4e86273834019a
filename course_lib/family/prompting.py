"""Prompting: put a task to a causal model in its input, and leave its weights alone
(Brown et al. 2020).

*Zero-shot* shows the task only, *one-shot* and *few-shot* put solved examples before
it. The answer is the option that the model holds for the likeliest continuation.
"""

from collections.abc import Sequence

import torch
from torch import nn


def prompt(
    query: Sequence[int],
    shots: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    start: Sequence[int] = (),
) -> list[int]:
    """Write solved examples, one behind the other, and then the one to solve.

    Parameters
    ----------
    query
        The ids of the task to solve, ending where the answer would begin.
    shots
        Solved ones: the ids of a task and of its answer.
    start
        What a sequence begins with, e.g. the id of [CLS].

    Returns
    -------
    list of int
        One sequence. Nothing in it says what is an example: the model has to see the
        pattern.

    Notes
    -----
    Brown et al. 2020, section 2 and figure 2.1.

    Examples
    --------
    >>> prompt([7, 8], shots=[([5, 6], [50]), ([9], [51])], start=[2])
    [2, 5, 6, 50, 9, 51, 7, 8]
    """
    return [
        *start,
        *(index for task, answer in shots for index in (*task, *answer)),
        *query,
    ]


@torch.no_grad()
def score_continuations(
    model: nn.Module, prompts: Sequence[Sequence[int]], options: Sequence[Sequence[int]]
) -> torch.Tensor:
    r"""Say how likely each option is as the continuation of each prompt.

    .. math:: \ln P(o \mid p) = \sum_i \ln P(o_i \mid p, o_{<i})

    Brown et al. 2020, section 2.4."""
    if not prompts or not options or not all(prompts) or not all(options):
        raise ValueError(
            "a prompt or an option has no token, or there is none; give each at"
            " least one"
        )
    where = next(model.parameters()).device
    scores = torch.empty(len(prompts), len(options))
    for column, option in enumerate(options):
        rows = [[*begin, *option] for begin in prompts]
        ids = torch.zeros(
            len(rows), max(map(len, rows)), dtype=torch.long, device=where
        )
        for row, sequence in enumerate(rows):
            ids[row, : len(sequence)] = torch.tensor(sequence)
        hidden = model(
            ids
        ).last_hidden_state  # padding stands on the right, where nobody looks
        places = torch.tensor(
            [[len(begin) - 1 + i for i in range(len(option))] for begin in prompts],
            device=where,
        )
        picked = hidden.gather(1, places[:, :, None].expand(-1, -1, hidden.shape[-1]))
        head = model.get_submodule("output")
        guesses = head(picked).log_softmax(-1)  # (prompts, tokens of the option, V)
        wanted = torch.tensor(list(option), device=where)[None, :, None].expand(
            len(rows), -1, 1
        )
        scores[:, column] = guesses.gather(2, wanted).sum(dim=(1, 2)).cpu()
    return scores


def choose_continuation(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    options: Sequence[Sequence[int]],
    calibrated: bool = False,
) -> list[int]:
    """Return for each prompt the index of its likeliest option.

    Zhao et al. 2021, section 4, take away what the model says to an empty task; here,
    the mean over the tasks."""
    scores = score_continuations(model, prompts, options)
    if calibrated:
        scores = scores - scores.mean(dim=0)
    return scores.argmax(dim=1).tolist()
