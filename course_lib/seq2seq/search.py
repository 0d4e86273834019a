"""Decoding: from a model that predicts the next token to a whole sequence.

Three searches over one interface. A *step function* takes a state and the tokens just
emitted and returns the log-probabilities of the next token and the new state; what the
state holds (recurrent states, encoder outputs, a cache) is the model's affair, as long
as it is built of tensors whose first dimension is the batch.

Letters of shapes: B sentences, K hypotheses in the beam, V words in the vocabulary, T
tokens emitted so far.

What this module does not do: constrain, penalise repetition or sample by nucleus. A
step function that sets log-probabilities to minus infinity does the first.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.seq2seq.state import (
    State,
    check_state,
    checked_log_probs,
    device_of,
    reorder_state,
)

__all__ = [
    "Hypothesis",
    "State",
    "Step",
    "beam_search",
    "greedy",
    "length_penalty_of",
    "reorder_state",
    "sample",
]

Step: TypeAlias = Callable[
    [State, Int[Tensor, "B"]], tuple[Float[Tensor, "B V"], State]
]
"""(state, the last tokens) -> (log-probabilities of the next token, the new state)."""


@dataclass
class Hypothesis:
    """One decoded sequence.

    Parameters
    ----------
    tokens
        What was emitted, without <bos> and <eos>.
    log_prob
        The model's log-probability of all tokens emitted, <eos> included when it was,
        in nats.
    finished
        Whether <eos> was emitted before `max_length` ran out.
    score
        What the search ranked by: `log_prob`, divided by the length penalty in beam
        search.

    Examples
    --------
    >>> Hypothesis(tokens=[4, 7], log_prob=-1.5, finished=True, score=-1.5).tokens
    [4, 7]
    """

    tokens: list[int]
    log_prob: float
    finished: bool
    score: float


def greedy(
    step: Step, state: State, batch_size: int, bos: int, eos: int, max_length: int
) -> list[Hypothesis]:
    """Emit the most probable token at every step, until <eos>.

    Parameters
    ----------
    step
        (state, tokens of shape [B]) -> (log-probabilities [B, V], state).
    state
        The state before the first token, B rows in every tensor.
    batch_size
        B, the number of sentences decoded side by side.
    bos
        The token that begins every sentence.
    eos
        The token that ends it.
    max_length
        How many tokens a sentence may emit, <eos> included.

    Returns
    -------
    list[Hypothesis]
        One hypothesis per sentence; `finished` is False where `max_length` cut it off.

    Raises
    ------
    ValueError
        An argument is out of range, or the step function returns no log-probabilities.

    Examples
    --------
    >>> table = torch.tensor(
    ...     [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]
    ... ).log()  # row: last, column: next
    >>> greedy(
    ...     lambda state, last: (table[last], state),
    ...     None,
    ...     1,
    ...     bos=0,
    ...     eos=1,
    ...     max_length=5,
    ... )
    [Hypothesis(tokens=[2], log_prob=-0.71..., finished=True, score=-0.71...)]
    """
    return _one_by_one(
        step,
        state,
        batch_size,
        bos,
        eos,
        max_length,
        lambda log_probs: log_probs.argmax(dim=-1),
    )


def sample(
    step: Step,
    state: State,
    batch_size: int,
    bos: int,
    eos: int,
    max_length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> list[Hypothesis]:
    """Draw every token from the model's distribution, sharpened by a temperature and
    cut to the top k.

    Token w is drawn with probability proportional to p(w)^(1/temperature) among the
    `top_k` most probable (Fan et al. 2018, section 5.1, for top-k).

    Parameters
    ----------
    step
        (state, tokens of shape [B]) -> (log-probabilities [B, V], state).
    state
        The state before the first token, B rows in every tensor.
    batch_size
        B, the number of sentences decoded side by side.
    bos
        The token that begins every sentence.
    eos
        The token that ends it.
    max_length
        How many tokens a sentence may emit, <eos> included.
    temperature
        Above 1 flattens the distribution, below 1 sharpens it.
    top_k
        Draw among this many of the most probable tokens; None for all.
    generator
        The source of randomness, on the device of the log-probabilities; None for
        torch's default.

    Returns
    -------
    list[Hypothesis]
        One hypothesis per sentence. `log_prob` is the model's own, before temperature
        and top-k.

    Raises
    ------
    ValueError
        An argument is out of range, or the step function returns no log-probabilities.

    Examples
    --------
    >>> table = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]).log()
    >>> generator = torch.Generator().manual_seed(1)
    >>> step = lambda state, last: (table[last], state)
    >>> [
    ...     drawn.tokens
    ...     for drawn in sample(
    ...         step, None, 3, bos=0, eos=1, max_length=5, generator=generator
    ...     )
    ... ]
    [[2], [2], [2, 0, 2, 2]]
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(
            f"temperature is {temperature}; it must be a positive number. For the limit"
            " of 0 use greedy()"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(
            f"top_k is {top_k}; choose at least 1, or None for the whole vocabulary"
        )

    def draw(log_probs: Float[Tensor, "B V"]) -> Int[Tensor, "B"]:
        scores = log_probs / temperature
        if top_k is not None:
            if top_k > scores.shape[-1]:
                raise ValueError(
                    f"top_k is {top_k}, but the vocabulary has {scores.shape[-1]}"
                    " words; choose fewer"
                )
            best, words = scores.topk(top_k, dim=-1)
            # Exactly k survive: a threshold at the k-th score would keep every word
            # that ties with it.
            scores = torch.full_like(scores, -math.inf).scatter(-1, words, best)
        return torch.multinomial(
            scores.softmax(dim=-1), 1, generator=generator
        ).squeeze(-1)

    return _one_by_one(step, state, batch_size, bos, eos, max_length, draw)


def length_penalty_of(length: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14: lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha."""
    return ((5 + length) / 6) ** alpha


@torch.no_grad()
def beam_search(
    step: Step,
    state: State,
    batch_size: int,
    bos: int,
    eos: int,
    max_length: int,
    beam_size: int,
    length_penalty: float = 0.6,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """Keep the `beam_size` best unfinished hypotheses of every sentence and rank the
    finished ones by length.

    At each step every live hypothesis is extended by every word. An extension by <eos>
    among the `beam_size` best is finished: it is set aside with its score log P / lp(Y)
    (Wu et al. 2016, equation 14) and never extended. The `beam_size` best other
    extensions live on. A sentence is done when no live hypothesis could still beat the
    worst finished one that would be returned: log P never grows, so the most that a
    live one can reach is its log P divided by the penalty of the greatest length.

    Parameters
    ----------
    step
        (state, tokens of shape [B * K]) -> (log-probabilities [B * K, V], state).
    state
        The state before the first token, B rows in every tensor; the search repeats
        them K times.
    batch_size
        B, the number of sentences decoded side by side.
    bos
        The token that begins every sentence.
    eos
        The token that ends it.
    max_length
        How many tokens a sentence may emit, <eos> included.
    beam_size
        K, how many live hypotheses are kept for each sentence.
    length_penalty
        Alpha of equation 14; 0 ranks by log-probability alone.
    n_best
        How many hypotheses to return for each sentence, at most `beam_size`.

    Returns
    -------
    list[list[Hypothesis]]
        For each sentence up to `n_best` finished hypotheses, best score first. Where
        none finished within `max_length`, the best unfinished ones, with
        `finished=False`.

    Raises
    ------
    ValueError
        An argument is out of range, or the step function returns no log-probabilities.

    Examples
    --------
    >>> table = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]).log()
    >>> best = beam_search(
    ...     lambda state, last: (table[last], state),
    ...     None,
    ...     1,
    ...     bos=0,
    ...     eos=1,
    ...     max_length=5,
    ...     beam_size=2,
    ... )
    >>> best[0][0].tokens, round(best[0][0].log_prob, 4)
    ([2], -0.7133)
    """
    _check_arguments(batch_size, max_length)
    if beam_size < 1:
        raise ValueError(
            f"beam_size is {beam_size}; choose at least 1 (1 is greedy decoding, 4 to"
            " 10 is usual)"
        )
    if not 1 <= n_best <= beam_size:
        raise ValueError(
            f"n_best is {n_best}; choose between 1 and beam_size={beam_size}"
        )
    if not (math.isfinite(length_penalty) and length_penalty >= 0):
        raise ValueError(
            f"length_penalty is {length_penalty}; choose 0 (none) or more, e.g. 0.6"
        )

    where = device_of(state)
    check_state(state, batch_size)
    first_row = torch.arange(batch_size, device=where).unsqueeze(-1)  # [B, 1]
    state = reorder_state(state, first_row.expand(-1, beam_size).reshape(-1))
    last = torch.full((batch_size * beam_size,), bos, dtype=torch.long, device=where)

    # One live hypothesis to begin with: K equal ones would be extended K times alike.
    # Dead places hold -inf.
    live = torch.full((batch_size, beam_size), -math.inf, device=where)  # log P
    live[:, 0] = 0.0
    live_tokens = torch.empty(
        (batch_size, beam_size, 0), dtype=torch.long, device=where
    )
    done_scores = torch.full(
        (batch_size, n_best), -math.inf, device=where
    )  # finished ones: log P / lp
    done_log_probs = torch.full((batch_size, n_best), -math.inf, device=where)
    done_tokens = torch.full(
        (batch_size, n_best, max_length), eos, dtype=torch.long, device=where
    )

    for length in range(1, max_length + 1):
        log_probs, state = step(state, last)
        alive = live.isfinite()
        log_probs = checked_log_probs(
            log_probs, batch_size * beam_size, eos, alive.reshape(-1)
        )
        vocabulary = log_probs.shape[-1]
        if (
            length == 1
        ):  # work in the step function's own precision: float64 stays float64
            live, done_scores, done_log_probs = (
                x.to(log_probs.dtype) for x in (live, done_scores, done_log_probs)
            )
        extended = live.unsqueeze(-1) + log_probs.view(
            batch_size, beam_size, vocabulary
        )  # [B, K, V]
        # 2K are enough: at most K of them end in <eos>, one for each live hypothesis.
        best, place = extended.flatten(1).topk(2 * beam_size, dim=-1)  # [B, 2K]
        parent, word = place // vocabulary, place % vocabulary
        tokens = torch.cat(
            [live_tokens.gather(1, _like(parent, live_tokens)), word.unsqueeze(-1)],
            dim=-1,
        )
        ends = word == eos

        among_best = torch.arange(2 * beam_size, device=where) < beam_size
        finished = best.masked_fill(~(ends & among_best), -math.inf)
        scores = torch.cat(
            [done_scores, finished / length_penalty_of(length, length_penalty)], dim=-1
        )
        done_scores, kept = scores.topk(n_best, dim=-1)
        done_log_probs = torch.cat([done_log_probs, finished], dim=-1).gather(-1, kept)
        padded = torch.nn.functional.pad(tokens, (0, max_length - length), value=eos)
        done_tokens = torch.cat([done_tokens, padded], dim=1).gather(
            1, _like(kept, done_tokens)
        )

        live, chosen = best.masked_fill(ends, -math.inf).topk(
            beam_size, dim=-1
        )  # [B, K]
        live_tokens = tokens.gather(1, _like(chosen, tokens))
        reachable = live[:, :1] / length_penalty_of(max_length, length_penalty)
        # Strictly better or nothing: a tie would not change what is returned.
        live = live.masked_fill(reachable <= done_scores[:, -1:], -math.inf)
        if length == max_length or not live.isfinite().any():
            break
        rows = first_row * beam_size + parent.gather(
            1, chosen
        )  # [B, K], into the B * K rows of the state
        state, last = (
            reorder_state(state, rows.reshape(-1)),
            live_tokens[:, :, -1].reshape(-1),
        )

    results = []
    penalty = length_penalty_of(max_length, length_penalty)
    for sentence in range(batch_size):
        hypotheses = [
            Hypothesis(_until(tokens, eos), log_prob, True, score)
            for tokens, log_prob, score in zip(
                done_tokens[sentence].tolist(),
                done_log_probs[sentence].tolist(),
                done_scores[sentence].tolist(),
                strict=True,
            )
            if score > -math.inf
        ]
        if not hypotheses:
            hypotheses = [
                Hypothesis(tokens, log_prob, False, log_prob / penalty)
                for tokens, log_prob in zip(
                    live_tokens[sentence].tolist(), live[sentence].tolist(), strict=True
                )
                if log_prob > -math.inf
            ][:n_best]
        results.append(hypotheses)
    return results


@torch.no_grad()
def _one_by_one(
    step: Step,
    state: State,
    batch_size: int,
    bos: int,
    eos: int,
    max_length: int,
    choose: Callable[[Tensor], Tensor],
) -> list[Hypothesis]:
    """Greedy and sampled decoding: they differ only in how the next token is chosen."""
    _check_arguments(batch_size, max_length)
    check_state(state, batch_size)
    where = device_of(state)
    last = torch.full((batch_size,), bos, dtype=torch.long, device=where)
    alive = torch.ones(batch_size, dtype=torch.bool, device=where)
    emitted: list[Tensor] = []
    total: Tensor | None = None
    for _ in range(max_length):
        log_probs, state = step(state, last)
        log_probs = checked_log_probs(log_probs, batch_size, eos, alive)
        # A finished row may hold anything (the model has moved past the end): give it a
        # harmless distribution.
        log_probs = log_probs.masked_fill(~alive.unsqueeze(-1), 0.0)
        last = choose(log_probs).masked_fill(~alive, eos)
        gained = log_probs.gather(-1, last.unsqueeze(-1)).squeeze(
            -1
        )  # 0 where finished
        total = gained if total is None else total + gained
        emitted.append(last)
        alive = alive & (last != eos)
        if not alive.any():
            break
    assert total is not None  # max_length >= 1
    rows = torch.stack(emitted, dim=1).tolist()
    return [
        Hypothesis(_until(row, eos), log_prob, not unfinished, log_prob)
        for row, log_prob, unfinished in zip(
            rows, total.tolist(), alive.tolist(), strict=True
        )
    ]


def _until(tokens: list[int], eos: int) -> list[int]:
    return tokens[: tokens.index(eos)] if eos in tokens else tokens


def _like(
    index: Int[Tensor, "B N"], tokens: Int[Tensor, "B M T"]
) -> Int[Tensor, "B N T"]:
    return index.unsqueeze(-1).expand(-1, -1, tokens.shape[-1])


def _check_arguments(batch_size: int, max_length: int) -> None:
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; decode at least one sentence")
    if max_length < 1:
        raise ValueError(
            f"max_length is {max_length}; a sentence needs room for at least one token"
        )
