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

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

State: TypeAlias = Any
"""Nested tuples, lists, dicts and dataclasses of tensors with the batch first; None is
allowed anywhere."""

Step: TypeAlias = Callable[
    [State, Int[Tensor, "B"]], tuple[Float[Tensor, "B V"], State]
]
"""(state, the last tokens) -> (log-probabilities of the next token, the new state)."""


@dataclass
class Hypothesis:
    """One decoded sequence."""

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
    >>> # row: last, column: next
    >>> table = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]).log()
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
    return generate(
        step, state, batch_size, bos, eos, max_length, lambda scores: scores.argmax(-1)
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

    def draw(log_probs: Float[Tensor, "B V"]) -> Int[Tensor, "B"]:
        check_sampling(temperature, top_k, log_probs.shape[-1])
        scores = log_probs / temperature
        if top_k is not None:
            best, words = scores.topk(top_k, dim=-1)
            # Exactly k survive: a threshold at the k-th score would keep every word
            # that ties with it.
            scores = torch.full_like(scores, -math.inf).scatter(-1, words, best)
        probabilities = scores.softmax(dim=-1)
        return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)

    return generate(step, state, batch_size, bos, eos, max_length, draw)


@torch.no_grad()
def generate(
    step: Step,
    state: State,
    batch_size: int,
    bos: int,
    eos: int,
    max_length: int,
    choose: Callable[[Float[Tensor, "B V"]], Int[Tensor, "B"]],
) -> list[Hypothesis]:
    """Emit the token that `choose` makes of the log-probabilities, until <eos>."""
    check_search(state, batch_size, max_length)
    device = device_of(state)
    last = torch.full((batch_size,), bos, device=device)
    alive = torch.ones(batch_size, dtype=torch.bool, device=device)
    emitted, gains = [], []
    for _ in range(max_length):
        log_probs, state = step(state, last)
        log_probs = checked_log_probs(log_probs, batch_size, eos, alive)
        # What the model predicts after the end of a sentence means nothing; with zeros
        # the sentence's total stays as it is.
        log_probs = log_probs.masked_fill(~alive[:, None], 0.0)
        last = choose(log_probs).masked_fill(~alive, eos)
        emitted.append(last)
        gains.append(log_probs.gather(-1, last[:, None])[:, 0])  # 0 where finished
        alive = alive & (last != eos)
        if not alive.any():
            break
    total = functools.reduce(torch.add, gains)  # in order
    rows = torch.stack(emitted, dim=1).tolist()  # B rows of T tokens
    return [
        Hypothesis(until(row, eos), log_prob, not unfinished, log_prob)
        for row, log_prob, unfinished in zip(
            rows, total.tolist(), alive.tolist(), strict=True
        )
    ]


def length_penalty_at(length: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14: lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha."""
    return ((5 + length) / 6) ** alpha


@torch.no_grad()
def beam_search(
    step: Step,
    state: State,
    bos: int,
    eos: int,
    max_length: int,
    beam_size: int,
    length_penalty: float = 0.6,
) -> Hypothesis:
    """Keep the `beam_size` best unfinished hypotheses of one sentence, and rank the
    finished ones by length.

    At each step every live hypothesis is extended by every word. An extension by <eos>
    among the `beam_size` best is finished: it is set aside with its score log P / lp(Y)
    (Wu et al. 2016, equation 14) and never extended. The `beam_size` best other
    extensions live on. The search is over when none of them could still beat the best
    finished one: log P never grows, so the most that a live one can reach is its log P
    divided by the penalty of the greatest length.

    Parameters
    ----------
    step
        (state, tokens of shape [K]) -> (log-probabilities [K, V], state).
    state
        The state before the first token, one row in every tensor.
    bos
        The token that begins the sentence.
    eos
        The token that ends it.
    max_length
        How many tokens the sentence may emit, <eos> included.
    beam_size
        K, how many live hypotheses are kept.
    length_penalty
        Alpha of equation 14; 0 ranks by log-probability alone.

    Returns
    -------
    Hypothesis
        The best finished one; if none finished within `max_length`, the best
        unfinished one, with `finished=False`.

    Raises
    ------
    ValueError
        An argument is out of range, or the step function returns no log-probabilities.

    Notes
    -----
    `course_lib.seq2seq.batched_search.beam_search_batch` does the same for many
    sentences at a time.

    Examples
    --------
    >>> table = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]).log()
    >>> step = lambda state, last: (table[last], state)
    >>> best = beam_search(step, None, bos=0, eos=1, max_length=5, beam_size=2)
    >>> best.tokens, round(best.log_prob, 4)
    ([2], -0.7133)
    """
    check_search(state, 1, max_length)
    check_beam(beam_size, length_penalty)
    live, done = [Hypothesis([], 0.0, False, 0.0)], []
    last = torch.tensor([bos], device=device_of(state))
    for length in range(1, max_length + 1):
        log_probs, state = step(state, last)  # [K, V]
        log_probs = checked_log_probs(log_probs, len(live), eos)
        penalty = length_penalty_at(length, length_penalty)
        longer, parents = [], []
        # 2K are enough: at most K of them end in <eos>, one for each live hypothesis.
        for rank, extension in enumerate(extensions(live, log_probs, 2 * beam_size)):
            parent, word, log_prob = extension
            tokens, score = live[parent].tokens, log_prob / penalty
            if word != eos:
                longer.append(Hypothesis([*tokens, word], log_prob, False, score))
                parents.append(parent)
            elif rank < beam_size:
                done.append(Hypothesis(tokens, log_prob, True, score))
        live = longer[:beam_size]
        reachable = max((hypothesis.log_prob for hypothesis in live), default=-math.inf)
        reachable /= length_penalty_at(max_length, length_penalty)
        if done and reachable <= max(hypothesis.score for hypothesis in done):
            break
        state = reorder_state(state, torch.tensor(parents[:beam_size]))
        last = last.new_tensor([hypothesis.tokens[-1] for hypothesis in live])
    return max(done or live, key=lambda hypothesis: hypothesis.score)


def extensions(
    live: list[Hypothesis], log_probs: Float[Tensor, "K V"], count: int
) -> list[tuple[int, int, float]]:
    """Return the `count` best ways to extend a hypothesis by a word, best first: its
    place, the word, and the log-probability of both."""
    so_far = log_probs.new_tensor([hypothesis.log_prob for hypothesis in live])
    totals = (so_far[:, None] + log_probs).flatten()  # [K, V] -> [K * V]
    best, places = totals.topk(min(count, len(totals)))
    return [
        (*divmod(place, log_probs.shape[1]), log_prob)
        for place, log_prob in zip(places.tolist(), best.tolist(), strict=True)
        if log_prob > -math.inf
    ]


def until(tokens: list[int], eos: int) -> list[int]:
    """Return the tokens before the first <eos>."""
    return tokens[: tokens.index(eos)] if eos in tokens else tokens


def check_search(state: State, batch_size: int, max_length: int) -> None:
    """Refuse what no search can begin with."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; decode at least one sentence")
    if max_length < 1:
        raise ValueError(
            f"max_length is {max_length}; a sentence needs room for at least one token"
        )
    check_state(state, batch_size)


def check_beam(beam_size: int, length_penalty: float) -> None:
    """Refuse a beam without hypotheses, and a length penalty that is none."""
    if beam_size < 1:
        raise ValueError(
            f"beam_size is {beam_size}; choose at least 1 (1 is greedy decoding, 4 to"
            " 10 is usual)"
        )
    if not (math.isfinite(length_penalty) and length_penalty >= 0):
        raise ValueError(
            f"length_penalty is {length_penalty}; choose 0 (none) or more, e.g. 0.6"
        )


def check_sampling(temperature: float, top_k: int | None, words: int) -> None:
    """Refuse a temperature or a number of words that cannot be sampled with."""
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(
            f"temperature is {temperature}; it must be a positive number. For the limit"
            " of 0 use greedy()"
        )
    if top_k is not None and top_k < 1:
        raise ValueError(
            f"top_k is {top_k}; choose at least 1, or None for the whole vocabulary"
        )
    if top_k is not None and top_k > words:
        raise ValueError(
            f"top_k is {top_k}, but the vocabulary has {words} words; choose fewer"
        )


def reorder_state(state: State, index: Int[Tensor, "N"]) -> State:
    """Pick rows of every tensor in a nested state, as a beam does when hypotheses are
    dropped and copied."""
    return _map_state(
        lambda tensor: tensor.index_select(0, index.to(tensor.device)), state
    )


def _map_state(function: Callable[[Tensor], Any], state: State) -> State:
    if state is None:
        return None
    if isinstance(state, Tensor):
        return function(state)
    if isinstance(state, dict):
        return {key: _map_state(function, value) for key, value in state.items()}
    # a named tuple takes its fields one by one
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_map_state(function, value) for value in state))
    if isinstance(state, tuple | list):
        return type(state)(_map_state(function, value) for value in state)
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        fields = {
            field.name: getattr(state, field.name)
            for field in dataclasses.fields(state)
        }
        return dataclasses.replace(
            state,
            **{name: _map_state(function, value) for name, value in fields.items()},
        )
    raise TypeError(
        f"the state holds a {type(state).__name__}; build it of tensors, tuples, lists,"
        " dicts, dataclasses and None"
    )


def _tensors(state: State) -> list[Tensor]:
    found: list[Tensor] = []

    def keep(
        tensor: Tensor,
    ) -> Tensor:  # and hand it back: a dataclass may insist on tensors
        found.append(tensor)
        return tensor

    _map_state(keep, state)
    return found


def device_of(state: State) -> torch.device:
    """Return the device of a state's first tensor, or the CPU if it has none."""
    tensors = _tensors(state)
    return tensors[0].device if tensors else torch.device("cpu")


def check_state(state: State, batch_size: int) -> None:
    """Refuse a state whose tensors do not have the batch first."""
    for tensor in _tensors(state):
        if tensor.dim() == 0 or tensor.shape[0] != batch_size:
            raise ValueError(
                f"a tensor of the state has shape {tuple(tensor.shape)}, but batch_size"
                f" is {batch_size}; put the batch first in every tensor (a GRU's hidden"
                " state comes as [layers, batch, hidden])"
            )


def checked_log_probs(
    log_probs: Tensor, rows: int, eos: int, alive: Bool[Tensor, "B"] | None = None
) -> Float[Tensor, "B V"]:
    """Return a step function's answer in float32 or better, or refuse what would
    otherwise pass unseen."""
    if log_probs.dim() != 2 or log_probs.shape[0] != rows:
        raise ValueError(
            "the step function returned log-probabilities of shape"
            f" {tuple(log_probs.shape)}; expected ({rows}, V)"
        )
    if not 0 <= eos < log_probs.shape[1] or log_probs.shape[1] < 2:
        raise ValueError(
            f"eos is {eos}, but the step function scores {log_probs.shape[1]} words; "
            "the vocabulary needs <eos> and at least one other word"
        )
    if log_probs.dtype in (torch.float16, torch.bfloat16):
        log_probs = log_probs.float()
    total = log_probs.logsumexp(dim=-1)  # 0 for a distribution
    if alive is not None:
        total = total.masked_fill(~alive, 0.0)
    invalid, impossible, too_much = (
        torch.stack([total.isnan(), total == -math.inf, total > 0.1])
        .any(dim=1)
        .tolist()
    )
    if invalid:
        raise ValueError(
            "the step function returned NaN; check the model's weights and masks before"
            " decoding"
        )
    if impossible:
        raise ValueError(
            "the step function gives every next word the log-probability -inf; allow at"
            " least one"
        )
    if too_much:
        raise ValueError(
            "the step function returned scores whose exponentials sum to more than 1; "
            "apply log_softmax(dim=-1) to logits first"
        )
    return log_probs
