"""Carry home what a call changed in lists, dicts and sets that were its arguments."""

from __future__ import annotations

from typing import Any


def transplant(mine: Any, theirs: Any, depth: int = 0) -> None:
    """Make the lists, dicts and sets of ``mine`` hold what those of ``theirs`` hold,
    object by object."""
    if depth > 40 or type(mine) is not type(theirs):
        return
    if isinstance(mine, tuple):
        for one, other in zip(mine, theirs, strict=False):
            transplant(one, other, depth + 1)
    elif isinstance(mine, list):
        kept = list(mine)
        mine[:] = [
            _kept(kept[i] if i < len(kept) else None, value, depth)
            for i, value in enumerate(theirs)
        ]
    elif isinstance(mine, dict):
        kept_pairs = dict(mine)
        mine.clear()
        mine.update(
            {
                key: _kept(kept_pairs.get(key), value, depth)
                for key, value in theirs.items()
            }
        )
    elif isinstance(mine, set):
        mine.clear()
        mine.update(theirs)


def _kept(mine: Any, theirs: Any, depth: int) -> Any:
    """The old object with its new content where it is a container still, else the new
    one."""
    if isinstance(mine, list | dict | set) and type(mine) is type(theirs):
        transplant(mine, theirs, depth + 1)
        return mine
    return theirs
