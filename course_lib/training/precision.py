"""Which precision a machine computes in: float32, or bfloat16 where it multiplies
faster.

bfloat16 keeps float32's range and a third of its digits. Where the processor has
instructions for it, products of matrices take half the time or less; where it has none
they are emulated, and may take a hundred times as long. So ``"auto"`` asks the machine,
and this module is the only place that does.
"""

import math
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from course_lib.training.parallel import copy_from_first

PRECISIONS = ("auto", "float32", "bfloat16")
# AVX512-BF16, AMX, and Arm's, by the names of `torch.cpu.get_capabilities`.
INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")
TURNS, SECONDS = 5, 0.003  # of each precision, and how long a turn lasts at least


def choose_precision(precision: str, device: torch.device) -> str:
    """Return the precision that is computed in: as asked for, and for "auto" what the
    device is faster in."""
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision is {precision!r}; choose one of {', '.join(PRECISIONS)}"
        )
    if precision != "auto":
        return precision
    if not has_bfloat16(device):
        return "float32"
    if device.type == "cuda":
        return "bfloat16"
    rates = product_rates(device)
    return max(rates, key=lambda name: rates[name])


def agreed_precision(precision: str, device: torch.device) -> str:
    """Return what process 0 chooses: processes that time their products may differ, but
    must compute alike."""
    chosen = torch.tensor(
        PRECISIONS.index(choose_precision(precision, device)), device=device
    )
    copy_from_first(chosen)
    return PRECISIONS[int(chosen)]


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Return a context that computes in a precision; the weights stay as they are."""
    return torch.autocast(
        device.type,
        torch.bfloat16,
        enabled=choose_precision(precision, device) == "bfloat16",
    )


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        return any(capabilities.get(name, False) for name in INSTRUCTIONS)
    return False


@cache
def product_rates(device: torch.device) -> dict[str, float]:
    """Measure once a process how fast a device multiplies two matrices, in float32 and
    in bfloat16."""
    side = 256 if device.type == "cpu" else 4096
    factors = {
        name: torch.ones(side, side, device=device, dtype=getattr(torch, name))
        for name in PRECISIONS[1:]
    }
    best = dict.fromkeys(factors, math.inf)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name in TURNS * tuple(factors):
            began = time.perf_counter()
            while (started := time.perf_counter()) < began + SECONDS:
                (factors[name] @ factors[name])[0, 0].item()  # waits for the device
                best[name] = min(best[name], time.perf_counter() - started)
    finally:
        torch.set_num_threads(threads)
    return {name: 2 * side**3 / seconds for name, seconds in best.items()}


def describe_rates(device: torch.device) -> str:
    """Say how fast a device multiplies, and what "auto" takes there."""
    told = ", ".join(
        f"{name} {rate / 1e9:.3g}" for name, rate in product_rates(device).items()
    )
    unit = f"GFLOP/s {'a thread' if device.type == 'cpu' else f'on {device}'}"
    return f"{told} {unit}; precision auto takes {choose_precision('auto', device)}"
