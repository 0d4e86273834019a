"""What parts an answer from its reference, in words: the other half of a comparison.

It travels with :mod:`course_tools.grading.assignments.comparing`, behind its text. The
reference is out of reach: what it gives is told by whoever starts the test before a
student's code runs (the referee, in whose process there is none), or else, under stock
nbgrader, by a fresh process that sees this text alone. Numbers are compared as plain
Python's, so a patched torch compares nothing.
"""

import contextlib
import json
import math
import re
import subprocess
import sys
from typing import Any

from course_tools.grading.assignments.comparing import (
    COMPARISONS,
    LEAVES,
    Comparison,
    Misuse,
    key,
    observe,
)

#: By dtype: the tolerance, and the size below which differences are rounding errors.
TOLERANCE = {
    "float64": (1e-9, 1e-6),
    "float32": (2e-5, 3e-2),
    "float16": (5e-3, 1.0),
    "bfloat16": (3e-2, 1.0),
}
#: What is said of values alone: there a case's own hint helps.
VALUES = re.compile("^(?!the gradient|a second).*(is wrong|not exactly 0|no number)$")
APART = """import json, sys
text, label, seed = json.load(sys.stdin)
exec(text, scope := {"TEXT": text, "__name__": "hidden"})
print(json.dumps(scope["references"](label, seed)))"""


def _apart(text: str, label: str, seed: int) -> Any:
    """The same from a process of its own: in this one a student's code may have run."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", APART],
        input=json.dumps([text, label, seed]),
        env={"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def plain(value: Any) -> Any:
    """What was observed, if all of it is of Python's own exact types: nobody else says
    then what equals what. Through JSON it takes ten times as long."""
    parts = value.values() if type(value) is dict else value
    if type(value) is dict or type(value) is list:
        if not LEAVES.issuperset(map(type, parts)):
            for part in parts:
                plain(part)
    elif type(value) not in LEAVES:
        raise TypeError(f"a {type(value).__name__} where a plain value must be")
    return value


def complaints(label: str, seed: int, names: dict[str, Any]) -> dict[str, str]:
    """By output, what is wrong with a student's function; under "" what is with all."""
    one, text = COMPARISONS[label], globals()["TEXT"]
    device = str(names.get("device", "cpu"))
    try:
        seen = observe(one, names[one.name], seed, device, names)
    except Misuse as misuse:
        raise AssertionError(str(misuse)) from None
    observed = plain(seen)
    # only now: while the student's function ran, this process did not have it
    ready = names.get("__expected__")
    ready = ready.get(key(text, label, seed)) if type(ready) is dict else None
    with names.get("withheld_allowed", contextlib.nullcontext)():  # it starts a Python
        expected = ready or _apart(text, label, seed)
    found: dict[str, str] = {}
    for got, (about, *wanted) in zip(observed, expected, strict=True):
        for output, words in _differ(one, about, got, wanted, device).items():
            hint = f" {about['hint']}" if about["hint"] and VALUES.search(words) else ""
            said = f"With {about['kind']}, {words.rstrip('.')}.{hint}"
            found.setdefault(output, said)
    return found


def compare(label: str, seed: int, names: dict[str, Any]) -> None:
    """Refuse, in words, an answer that parts from the reference."""
    words = next(iter(complaints(label, seed, names).values()), "")
    assert not words, words


def _differ(
    one: Comparison, about: Any, got: Any, wanted: list[Any], device: str
) -> dict[str, str]:
    """What parts in one case, by output."""
    name, (how, value, *rest), tolerance = one.name, got["result"], _tolerance(about)
    should, error, *_ = wanted[0]["result"]
    if should == "raised":
        kind = error[1][0][1]
        if how == "returned":
            return {"": f"{name} must raise {kind}; yours returns an answer"}
        raised = [told_kind[1] for told_kind in value[1]]
        right = kind in raised
        return {} if right else {"": f"{name} must raise {kind}, not {raised[0]}"}
    if how == "raised":
        return {"": f"{name} raises {value[1][0][1]}: {rest[0][1]}"}
    if got["changed"]:
        return {"": f"{name} must leave its input as it was; yours changes it"}
    all_of = [(one.outputs[0], [value, *(w["result"][1] for w in wanted)])]
    if len(one.outputs) > 1:
        pair, count = wanted[0]["result"][1][0], len(one.outputs)
        if value[0] != pair or len(value[1]) != count:
            return {"": f"{name} must return {' and '.join(one.outputs)}"}
        every = all_of[0][1]
        all_of = [
            (words, [whole[1][number] for whole in every])
            for number, words in enumerate(one.outputs)
        ]
    found = {}
    slopes = [values[1] for words, values in all_of if "gradient" in words]
    groups = [one[1] if one[0] in ("list", "tuple") else [one] for one in slopes]
    beside = _beside(tolerance, [part for group in groups for part in group])
    for words, (mine, *theirs) in all_of:
        near = beside if "gradient" in words else tolerance
        said = [_apart_from(words, mine, w, near, one) for w in theirs]
        if all(said):
            found[words] = said[0]
    if not found and got["devices"] not in ([], [device], [f"{device}:0"]):
        found[""] = f"{name} must stay on {device}"
    if not found:
        again = got["second"]
        whole = ""
        if one.use is None:  # else they are among what it gives
            whole = _gradients_part(about["names"], got, wanted[0], tolerance)
        if again and again[0] != "returned":
            whole = f"{name} raises, for inputs with gradients, {again[1][1][0][1]}"
            whole += f": {again[2][1]}"
        elif again and _apart_from("it", again[1], value, tolerance, one):
            whole = (
                f"a second call of {name} with the same input, after other calls and"
                " with gradients, gives something else"
            )
        found = {"": whole} if whole else {}
    return found


def _tolerance(about: Any) -> tuple[float, float]:
    """How far numbers may be apart, relatively, and what counts as 0."""
    order = [name for name in TOLERANCE if name in about["dtypes"]]
    relative, least = TOLERANCE[order[-1] if order else "float64"]
    return about["tolerance"] or relative, least


def _apart_from(
    what: str, got: Any, wanted: Any, tolerance: tuple[float, float], one: Comparison
) -> str:
    """In words how a value differs from what it should be; nothing if it agrees."""
    yours = f"yours is {'' if got[0] == 'NoneType' else 'a '}{got[0]}"
    if got[0] == "NoneType" != wanted[0]:
        yours = "yours is None. Did you forget return?"
    if got[0] != wanted[0]:
        return f"{what} must be a {wanted[0]}; {yours}"
    if got[0] == "tensor":
        if got[1] != wanted[1]:
            return f"{what} must have dtype torch.{wanted[1]}; yours is torch.{got[1]}"
        if got[2] != wanted[2]:
            return f"{what} must have another shape: yours is wrong"
        return _numbers(what, got[3], wanted[3], tolerance, one.exact_zeros)
    if got[0] == "float":
        return _numbers(what, got[1:], wanted[1:], tolerance, one.exact_zeros)
    if got[0] in ("list", "tuple") and len(got[1]) == len(wanted[1]):
        if one.use:
            tolerance = _beside(tolerance, wanted[1])
        pairs = zip(got[1], wanted[1], strict=True)
        said = (_apart_from(f"a part of {what}", *p, tolerance, one) for p in pairs)
        return next((words for words in said if words), "")
    return "" if got == wanted else f"{what} is wrong"


def _beside(tolerance: tuple[float, float], values: list[Any]) -> tuple[float, float]:
    """The tolerance of gradients: what must be 0 is small beside the largest of all."""
    rows = [part[3] for part in values if part[0] == "tensor"]
    sizes = [abs(number) for row in rows for number in row]
    return tolerance[0], max([tolerance[1], *filter(math.isfinite, sizes)])


def _numbers(
    what: str, got: Any, wanted: Any, tolerance: tuple[float, float], zeros: bool
) -> str:
    """The same of rows of numbers."""
    relative, least = tolerance
    absolute = relative * max([least, *map(abs, filter(math.isfinite, wanted))])
    for mine, theirs in zip(got, wanted, strict=True):
        if mine == theirs:
            continue
        if math.isnan(mine):
            if math.isnan(theirs):
                continue
            return f"{what} contains nan, which is no number"
        if zeros and theirs == 0:
            return f"{what} is not exactly 0 where it must be"
        if not abs(mine - theirs) <= absolute:
            return f"{what} is wrong"
    return ""


def _gradients_part(
    names: list[str], got: Any, wanted: Any, tolerance: tuple[float, float]
) -> str:
    """In words which gradient parts."""
    relative, least = tolerance
    pairs = list(zip(got["gradients"], wanted["gradients"], strict=True))
    sizes = [abs(number) for _, w in pairs if w for number in w[3]]
    least = max([100 * least, *filter(math.isfinite, sizes)])
    for number, (mine, theirs) in enumerate(pairs):
        numbers = theirs[3] if theirs else [0.0] * len(mine[3] if mine else [])
        own = mine[3] if mine else [0.0] * len(numbers)
        if words := _numbers("", own, numbers, (5 * relative, least), False):
            name = names[number]
            if "nan" in words:
                return f"the gradient with respect to {name} contains nan"
            what = f"the gradient with respect to {name} is wrong"
            if not any(own):
                what = f"no gradient reaches {name}"
            way = "Work with tensors all the way: no .detach(), .data or .item()"
            return f"{what}. {way}"
    return ""
