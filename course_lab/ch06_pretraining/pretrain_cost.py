"""What a pre-training costs in floating-point operations, and what share of the
machine's matrix rate it reached.

Only matrix products count, as in Kaplan et al. 2020 (section 2.1) and Chowdhery et al.
2022 (appendix B): two operations for each weight that a token meets, and twice as many
again for the gradients. An embedding is looked up, not multiplied. Nothing is counted
that is not done: the last feed-forward and the output layer are asked only where their
answer is read (`course_lib.bert.model`), and padding is no work.
"""

import time
from dataclasses import dataclass

import numpy as np
import torch

from course_lib.bert.model import BertConfig


@dataclass(frozen=True)
class Work:
    """What a run has read, and what that cost."""

    #: sequences, tokens: Read in training, special tokens included and padding not.
    sequences: int
    tokens: int
    flops: float  # floating-point operations of forward and backward passes


def training_flops(
    config: BertConfig, lengths: np.ndarray, chosen: float | int
) -> float:
    """Return the operations of forward and backward passes over some sequences."""
    width = config.hidden_size
    inner = config.intermediate_size
    tokens = int(lengths.sum())
    layers = config.num_hidden_layers
    in_attention = layers * (
        8 * width**2 * tokens + 4 * width * int(np.square(lengths).sum())
    )
    in_feed_forward = 4 * width * inner * layers * tokens
    in_mlm_head = 2 * (width**2 + width * config.vocab_size) * chosen
    in_pooler_and_nsp_head = 2 * (width**2 + 2 * width) * len(lengths)
    return 3.0 * (in_attention + in_feed_forward + in_mlm_head + in_pooler_and_nsp_head)


def matrix_rate(
    where: torch.device,
    dtype: torch.dtype,
    seconds: float = 2.0,
    side: int | None = None,
) -> float:
    """Measure how fast this machine multiplies large square matrices."""
    side = side or (8192 if where.type == "cuda" else 2048)
    left, right = (torch.randn(side, side, device=where, dtype=dtype) for _ in range(2))
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < seconds or best == float("inf"):
        started = time.perf_counter()
        product = left @ right
        product[0, 0].item()  # waits for the device
        best = min(best, time.perf_counter() - started)
    return 2 * side**3 / best
