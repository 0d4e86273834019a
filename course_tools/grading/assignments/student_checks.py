"""The checks that assignments share: what is wrong with an answer, in words.

A notebook's set-up cell names the functions that it needs (``#
{source:course_tools.grading.assignments.student_checks.check_pair}``) and ``course
release`` copies them in, so that the notebook runs where the course is not installed. A
function here may therefore use no more than ``torch``, what the set-up cell names
beside it, and Jupyter's ``In``.
"""

import torch

from course_tools.grading.assignments.withheld import withheld_uses

#: In a notebook Jupyter's: the text of every cell that has run; what the set-up cell
#: fills from the assignment's header; and what the first cell chooses.
In: list[str] = []
WITHHELD: list[str] = []
device = "cpu"


def tensor(numbers: object, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor where the notebook computes."""
    return torch.tensor(numbers, dtype=dtype, device=device)


def normal(
    seed: int, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float64
) -> list[torch.Tensor]:
    """Random tensors of these shapes, the same on every machine."""
    random = torch.Generator().manual_seed(seed)
    return [
        torch.randn(*shape, generator=random, dtype=torch.float64).to(device, dtype)
        for shape in shapes
    ]


def cells_that_define(name: str) -> list[str]:
    """The cells that have run and that define this function or class, the
    latest last."""
    heads = (f"def {name}(", f"class {name}(", f"class {name}:")
    return [cell for cell in In if any(head in cell for head in heads)]


def check_withheld(*names: str) -> None:
    """Refuse, in words, an answer that uses what the student is to build."""
    for name in names:
        uses = [
            use
            for cell in cells_that_define(name)[-1:]
            for use in withheld_uses(cell, WITHHELD)
        ]
        assert not uses, f"In the cell that defines {name}, {uses[0]}."


def check_given(*names: str) -> None:
    """Refuse a second definition of what the notebook gives."""
    for name in names:
        assert len(set(cells_that_define(name))) == 1, (
            f"{name} is given by the notebook, and one of your cells defines it, too."
            " Take that away."
        )


def check_pair(got: object, what: str) -> tuple:
    """Refuse what cannot be taken apart into two, and give back what can."""
    assert got is not None, f"{what}: yours returns nothing. Did you forget return?"
    if not isinstance(got, tuple) or len(got) != 2:
        raise AssertionError(
            f"{what}: yours returns a {type(got).__name__}, not two things with a comma"
            " between them."
        )
    return got


def check_shape(
    got: object, shape: list[int] | torch.Size, what: str, hint: str = ""
) -> torch.Tensor:
    """Refuse what is no tensor of this shape, and give back what is."""
    hint = f" {hint}" if hint else ""
    assert got is not None, (
        f"{what} must be a tensor; yours is None. Did you forget return?"
    )
    assert isinstance(got, torch.Tensor), (
        f"{what} must be a tensor; yours is a {type(got).__name__}."
    )
    assert list(got.shape) == list(shape), (
        f"{what} must have shape {list(shape)}; yours has {list(got.shape)}.{hint}"
    )
    return got


def alike(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Compare entry by entry."""
    return torch.isclose(
        got.double(), expected.double(), rtol=tolerance, atol=tolerance
    )


def check_close(
    got: object,
    expected: torch.Tensor,
    what: str,
    hint: str = "",
    tolerance: float = 1e-5,
    slips: tuple = (),
) -> None:
    """Compare a tensor with what is expected: type, shape, number type, device, then
    values."""
    got = check_shape(got, expected.shape, what, hint)
    space = f" {hint}" if hint else ""
    assert got.dtype == expected.dtype, (
        f"{what} must have dtype {expected.dtype}; yours is {got.dtype}.{space}"
    )
    assert got.device == expected.device, (
        f"{what} must be on {expected.device}; yours is on {got.device}."
    )
    assert not got.isnan().any(), f"{what} contains nan, which is no number.{space}"
    wrong = ~alike(got, expected, tolerance)
    if wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        wanted, yours = (
            (
                f"{table[where].item():.4f}"
                if table.is_floating_point()
                else table[where].item()
            )
            for table in (expected, got)
        )
        for slip, words in slips:
            slip = torch.as_tensor(slip, dtype=expected.dtype, device=expected.device)
            space = (
                f" {words}"
                if alike(got, slip.expand_as(got), tolerance).all()
                else space
            )
        place = f" at {list(where)}" if where else ""
        raise AssertionError(
            f"{what} is wrong{place}: expected {wanted}, yours is {yours}.{space}"
        )


def check_same(
    got: object, expected: object, what: str, hint: str = "", slips: tuple = ()
) -> None:
    """Compare a value of plain Python with what is expected: its type, then the first
    entry that differs."""
    kind = "string" if isinstance(expected, str) else type(expected).__name__
    assert got is not None, (
        f"{what} must be a {kind}; yours is None. Did you forget return?"
    )
    assert isinstance(got, type(expected)), (
        f"{what} must be a {kind}; yours is a {type(got).__name__}: {got!r:.200}."
    )
    if isinstance(got, dict) and isinstance(expected, dict):
        got = {key: value for key, value in got.items() if value != 0}
    if got == expected:
        return
    # Fraction(1, 2) == 0.5: a slip of the same types says better what the student did
    # than one that merely is equal.
    types = lambda value: (  # noqa: E731
        {key: type(value[key]) for key in value}
        if isinstance(value, dict)
        else type(value)
    )
    equal = [(types(slip) != types(got), words) for slip, words in slips if slip == got]
    hint = min(equal, key=lambda pair: pair[0], default=(False, hint))[1]
    if isinstance(got, dict) and isinstance(expected, dict):
        key = next(
            key
            for key in [*expected, *got]
            if key not in got or got[key] != expected.get(key)
        )
        wanted = expected.get(key, "nothing, it does not belong there")
        message = (
            f"{what} is wrong at {key!r}: expected {wanted}, yours is"
            f" {got.get(key, 'missing')}."
        )
    else:
        message = f"{what}: expected {expected!r}, yours is {got!r}."
    raise AssertionError(f"{message} {hint}".rstrip())
