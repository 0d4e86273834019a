"""Configurations as records hold them: JSON, in which each variant of a study has its
settings. They are compared variant by variant, so that another one may be added.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from course_lib.training.loop import device
from course_lib.training.precision import choose_precision

#: Where a configuration names its variants: each with its settings, or a list.
VARIANTS = ("variants", "models", "attentions")


def as_json(configuration: Any) -> dict[str, Any]:
    """Return a configuration as a record holds it."""
    return dict(json.loads(json.dumps(configuration, default=dataclasses.asdict)))


def read(kind: Any, stored: Any) -> Any:
    """Read settings back from a record, as a dataclass or another type."""
    inner = [one for one in get_args(kind) if one is not type(None)]
    if stored is None:
        return None
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        if isinstance(stored, list):  # JSON has no named tuples
            stored = dict(zip(hints, stored, strict=True))
        return kind(**{name: read(hints.get(name), x) for name, x in stored.items()})
    if get_origin(kind) is UnionType:
        return read(inner[0], stored)
    if isinstance(stored, list) and tuple in (kind, get_origin(kind)):
        return tuple(read(inner[0] if inner else Any, x) for x in stored)
    if isinstance(stored, Mapping) and inner:
        return {name: read(inner[-1], x) for name, x in stored.items()}
    return stored


def of_variant(configuration: Mapping[str, Any], variant: str) -> dict[str, Any]:
    """Return the part of a record's configuration that decides the runs of a variant,
    which may be called by its checkpoint and the variant."""
    shared = {k: value for k, value in configuration.items() if k not in VARIANTS}
    named = configuration.get("variants")
    if not isinstance(named, Mapping):
        return shared
    key = key_of(named, variant)
    return shared if key is None else {**shared, "variant": named[key]}


def key_of(named: Mapping[str, Any], variant: str) -> str | None:
    """Find a variant, which may have its checkpoint's name before its own."""
    keys = [key for key in named if f", {variant}".endswith(f", {key}")]
    return max(keys, key=len, default=None)


def disagreement(old: Any, new: Any, place: str = "") -> str | None:
    """Name the first setting of which both configurations speak and say different
    things."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        inner = (
            disagreement(old[name], new[name], f"{place}.{name}".lstrip("."))
            for name in old.keys() & new.keys()
        )
        return next((found for found in inner if found), None)
    return None if old == new else f"{place}, {old!r} and not {new!r}"


def merged(
    old: Mapping[str, Any], new: Mapping[str, Any], variant: str
) -> dict[str, Any]:
    """Return the configuration of a record to which a run of a variant is added; what
    it says of the others stays."""
    both = {**old, **new}
    for name in VARIANTS:
        if name in old and name in new:
            if isinstance(new[name], Mapping):
                ran = key_of(new[name], variant)
                added = {
                    key: settings
                    for key, settings in new[name].items()
                    if key == ran or key not in old[name]
                }
                both[name] = {**old[name], **added}
            else:
                both[name] = list(dict.fromkeys([*old[name], *new[name]]))
    return both


#: Precisions as benchmarks name them.
BENCHMARKS_SAY = {"fp32": "float32", "bf16": "bfloat16"}


def precision_of(configuration: Any) -> str:
    """Return what a variant is trained in on this machine; float32 if it is not
    trained."""
    if isinstance(configuration, Mapping):
        if "precision" in configuration:
            asked = configuration["precision"]
            return choose_precision(BENCHMARKS_SAY.get(asked) or asked, device())
        parts = {precision_of(part) for part in configuration.values()}
        return next(iter(parts - {"float32"}), "float32")
    if isinstance(configuration, list):
        return precision_of(dict(enumerate(configuration)))
    return "float32"


def digest(content: Any) -> str:
    """Return 16 letters that stand for something that JSON can hold."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
