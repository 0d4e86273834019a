"""What runs in the student's process: small calls of code, unchanged or changed.

The text of this module goes in as a cell. What it prints is data that a student could
forge, and nothing rests on it but the student's own sheet.
"""

import contextlib
import io
import json
import random
import sys
from typing import Any

VIVA_LETTERS, VIVA_LINES = 110, 20_000  # of a result, and that a call runs
VIVA_UNSET = 2**63 - 1  # what torch writes into an empty tensor of whole numbers


class VivaEndless(BaseException):
    """A call runs more lines than any small one does."""


def viva_text(value: Any) -> str:
    """Write a value for the sheet, numbers with four digits; raise if it is no data."""
    if hasattr(value, "detach"):
        return viva_text(value.detach().tolist())
    if isinstance(value, float):
        return f"{round(value, 4) + 0.0:.7g}"
    if isinstance(value, dict):
        pairs = [f"{viva_text(key)}: {viva_text(value[key])}" for key in value]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, set):
        return "{" + ", ".join(sorted(map(viva_text, value))) + "}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(viva_text, value)) + "," * (len(value) == 1)
        tuple_ = isinstance(value, tuple)
        return f"({inside})" if tuple_ else f"[{inside.removesuffix(',')}]"
    if value is None or isinstance(value, bool | int | str):
        if value == VIVA_UNSET:
            raise ValueError("nobody wrote this number")
        return repr(value)
    return f"{value.numerator}/{value.denominator}"


def viva_result(call: Any, seed: int, cell: str, ran: list[int]) -> str | None:
    """Call once, and note the lines of a cell that run; None: nothing to ask about."""

    def trace(frame: Any, event: str, _: object) -> Any:
        if frame.f_code.co_filename == cell:
            ran.extend([frame.f_lineno] * (event == "line"))
            if len(ran) > VIVA_LINES:
                raise VivaEndless
            return trace
        return None

    random.seed(seed)
    if "torch" in sys.modules:  # torch.manual_seed notes who asked, for each GPU
        sys.modules["torch"].default_generator.manual_seed(seed)
    try:
        sys.settrace(trace)
        value = call()
    except VivaEndless:
        return None
    except Exception as error:
        return f"raises {type(error).__name__}"
    finally:
        sys.settrace(None)
    with contextlib.suppress(Exception):  # what is no data
        if len(text := viva_text(value)) <= VIVA_LETTERS:
            return text
    return None


def viva_probe(calls: list[Any]) -> None:
    """Print, as JSON, of each call the result, None if that is chance, and the lines of
    this cell that it runs."""
    cell, rows = sys._getframe(1).f_code.co_filename, []
    with contextlib.redirect_stdout(io.StringIO()):
        for call in calls:
            ran: list[int] = []
            one, other = (viva_result(call, seed, cell, ran) for seed in (0, 1))
            rows.append([one if one == other else None, sorted({*ran})])
    print("\n" + json.dumps(rows))
