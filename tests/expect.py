"""What tests expect, in a few words: a refusal, or numbers that agree."""

from typing import Any

import pytest
import torch


def refusal(words: str, error: type[Exception] = ValueError) -> Any:
    """Expect an error whose message holds the words, a regular expression."""
    return pytest.raises(error, match=words)


def assert_near(got: Any, expected: Any, atol: float, rtol: float = 0) -> None:
    """Compare tensors, of one type and shape, by default with no relative tolerance."""
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
