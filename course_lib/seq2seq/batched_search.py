"""Beam search for many sentences at a time: the same search as
`course_lib.seq2seq.search.beam_search`, without a loop over hypotheses.

Letters of shapes: B sentences, K hypotheses in the beam, V words in the vocabulary, T
tokens emitted so far.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.seq2seq.search import (
    Hypothesis,
    State,
    Step,
    check_beam,
    check_search,
    checked_log_probs,
    device_of,
    length_penalty_at,
    reorder_state,
    until,
)


@torch.no_grad()
def beam_search_batch(
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
    """Search as `beam_search` does, for B sentences side by side, and return up to
    `n_best` hypotheses of each, best first; `state` has B rows, `step` gets B * K."""
    check_search(state, batch_size, max_length)
    check_beam(beam_size, length_penalty)
    if not 1 <= n_best <= beam_size:
        raise ValueError(
            f"n_best is {n_best}; choose between 1 and beam_size={beam_size}"
        )
    device = device_of(state)
    first_row = torch.arange(batch_size, device=device).unsqueeze(-1)  # [B, 1]
    state = reorder_state(state, first_row.expand(-1, beam_size).reshape(-1))
    last = torch.full((batch_size * beam_size,), bos, dtype=torch.long, device=device)

    # One live hypothesis to begin with: K equal ones would be extended K times alike.
    # Dead places hold -inf.
    live = torch.full((batch_size, beam_size), -math.inf, device=device)  # log P
    live[:, 0] = 0.0
    live_tokens = torch.empty(
        (batch_size, beam_size, 0), dtype=torch.long, device=device
    )
    # finished ones: log P / lp
    done_scores = torch.full((batch_size, n_best), -math.inf, device=device)
    done_log_probs = torch.full((batch_size, n_best), -math.inf, device=device)
    done_tokens = torch.full(
        (batch_size, n_best, max_length), eos, dtype=torch.long, device=device
    )

    for length in range(1, max_length + 1):
        log_probs, state = step(state, last)
        alive = live.isfinite()
        log_probs = checked_log_probs(
            log_probs, batch_size * beam_size, eos, alive.reshape(-1)
        )
        vocabulary = log_probs.shape[-1]
        # work in the step function's own precision: float64 stays float64
        if length == 1:
            live, done_scores, done_log_probs = (
                x.to(log_probs.dtype) for x in (live, done_scores, done_log_probs)
            )
        # [B, K, V]
        extended = live.unsqueeze(-1) + log_probs.view(
            batch_size, beam_size, vocabulary
        )
        # 2K are enough: at most K of them end in <eos>, one for each live hypothesis.
        best, place = extended.flatten(1).topk(2 * beam_size, dim=-1)  # [B, 2K]
        parent, word = place // vocabulary, place % vocabulary
        tokens = torch.cat(
            [live_tokens.gather(1, _like(parent, live_tokens)), word.unsqueeze(-1)],
            dim=-1,
        )
        ends = word == eos

        among_best = torch.arange(2 * beam_size, device=device) < beam_size
        finished = best.masked_fill(~(ends & among_best), -math.inf)
        scores = torch.cat(
            [done_scores, finished / length_penalty_at(length, length_penalty)], dim=-1
        )
        done_scores, kept = scores.topk(n_best, dim=-1)
        done_log_probs = torch.cat([done_log_probs, finished], dim=-1).gather(-1, kept)
        padded = torch.nn.functional.pad(tokens, (0, max_length - length), value=eos)
        done_tokens = torch.cat([done_tokens, padded], dim=1).gather(
            1, _like(kept, done_tokens)
        )

        # [B, K]
        live, chosen = best.masked_fill(ends, -math.inf).topk(beam_size, dim=-1)
        live_tokens = tokens.gather(1, _like(chosen, tokens))
        reachable = live[:, :1] / length_penalty_at(max_length, length_penalty)
        # Strictly better or nothing: a tie would not change what is returned.
        live = live.masked_fill(reachable <= done_scores[:, -1:], -math.inf)
        if length == max_length or not live.isfinite().any():
            break
        # [B, K], into the B * K rows of the state
        rows = first_row * beam_size + parent.gather(1, chosen)
        state = reorder_state(state, rows.reshape(-1))
        last = live_tokens[:, :, -1].reshape(-1)

    results = []
    penalty = length_penalty_at(max_length, length_penalty)
    for sentence in range(batch_size):
        hypotheses = [
            Hypothesis(until(tokens, eos), log_prob, True, score)
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


def _like(
    index: Int[Tensor, "B N"], tokens: Int[Tensor, "B M T"]
) -> Int[Tensor, "B N T"]:
    return index.unsqueeze(-1).expand(-1, -1, tokens.shape[-1])
