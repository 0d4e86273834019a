"""Many cases of one property, in one test that lists those that fail."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable:
    """Do what `pytest.mark.parametrize` does, in one item instead of one a case.

    All cases run; those that fail are raised together, each with its values. Fixtures
    are made once for all of them, so a case must leave them as it found them.
    """
    told = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    rows = [case if len(told) > 1 else (case,) for case in cases]
    if not rows:
        raise ValueError(f"no case of {told}")

    def of_each_case(test: Callable) -> Callable:
        @functools.wraps(test)
        def in_all_cases(*args: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for row in rows:
                case = dict(zip(told, row, strict=True))
                try:
                    test(*args, **fixtures, **case)
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"where {case}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                message = f"{len(failures)} of {len(rows)} cases"
                raise BaseExceptionGroup(message, failures)

        signature = inspect.signature(test)
        rest = [p for name, p in signature.parameters.items() if name not in told]
        in_all_cases.__signature__ = signature.replace(parameters=rest)
        return in_all_cases

    return of_each_case
