"""Batches: every row once, the same order for the same seed and epoch, little
padding."""

import random
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.training.batches import batches, set_seed, stream, to_device

sizes = st.integers(1, 9)


@settings(deadline=None)
@given(
    rows=st.lists(st.text(max_size=6), min_size=1, max_size=60),
    size=sizes,
    pool=sizes,
    seed=sizes,
    epoch=sizes,
)
def test_every_row_is_in_exactly_one_batch(rows, size, pool, seed, epoch):
    cut = list(batches(rows, size, seed, epoch, length=len, pool=pool))
    assert sorted(row for batch in cut for row in batch) == sorted(rows)
    assert sorted(map(len, cut)) == sorted(
        [size] * (len(rows) // size) + ([len(rows) % size] if len(rows) % size else [])
    )


@settings(deadline=None)
@given(
    size=sizes,
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 1000),
    bucketed=st.booleans(),
)
def test_the_order_depends_on_seed_and_epoch_alone(size, seed, epoch, bucketed):
    rows = [[row] * (1 + row % 7) for row in range(50)]
    order = lambda seed, epoch: list(
        batches(rows, size, seed, epoch, length=len if bucketed else None)
    )
    first = order(seed, epoch)
    torch.manual_seed(4)
    np.random.seed(4)  # noqa: NPY002 (the point: global state plays no part)
    random.seed(4)
    assert order(seed, epoch) == first
    assert order(seed, epoch + 1) != first
    assert order(seed + 1, epoch) != first


def test_rows_of_similar_length_share_a_batch_and_batches_are_not_sorted():
    generator = np.random.default_rng(0)
    rows = [list(range(length)) for length in generator.integers(1, 61, size=2000)]

    def padding(cut: list[list[list[int]]]) -> float:
        places = sum(len(batch) * max(map(len, batch)) for batch in cut)
        return 1 - sum(map(len, rows)) / places

    bucketed, shuffled = (
        list(batches(rows, 32, 1, 0, length=key)) for key in (len, None)
    )
    assert padding(shuffled) > 0.4
    assert padding(bucketed) < 0.04
    means = [sum(map(len, batch)) / len(batch) for batch in bucketed]
    # short and long come in random order
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.3


def test_collate_makes_the_batch():
    rows = [{"ids": [1, 2]}, {"ids": [3]}]
    (batch,) = batches(
        rows, 2, 0, 0, collate=lambda chosen: sum(sum(row["ids"]) for row in chosen)
    )
    assert batch == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dataset": []}, "the data set has no rows; check the split"),
        ({"batch_size": 0}, "batch_size is 0 and pool is 50; both must be at least 1"),
        ({"pool": 0}, "pool is 0"),
    ],
)
def test_batches_refuses_in_words_before_the_first_batch_is_asked_for(arguments, words):
    with refusal(words):
        batches(
            **({"dataset": ["a"], "batch_size": 2, "seed": 0, "epoch": 0} | arguments)
        )


@settings(deadline=None)
@given(skip=st.integers(0, 5), taken=st.integers(1, 20))
def test_a_stream_that_begins_later_is_the_rest_of_the_one_that_began_at_first(
    skip, taken
):
    epochs = lambda epoch: [10 * epoch + batch for batch in range(5 + epoch % 2)]
    whole = stream(epochs)
    for _ in range(skip):
        next(whole)
    rest = stream(epochs, 0, skip)
    assert [next(whole) for _ in range(taken)] == [next(rest) for _ in range(taken)]


@pytest.mark.parametrize("kind", [list, iter])
def test_a_stream_of_any_iterable_goes_on_where_it_stopped_and_says_what_is_missing(
    kind,
):
    epochs = lambda epoch: kind([10 * epoch + batch for batch in range(3)])
    rest = stream(epochs, 1, 2)
    assert [next(rest) for _ in range(3)] == [(1, 3, 12), (2, 1, 20), (2, 2, 21)]
    at_the_end = stream(epochs, 1, 3)
    assert next(at_the_end) == (2, 1, 20)
    with refusal("epoch 1 has 3 batches, but the checkpoint has used 4 of it"):
        next(stream(epochs, 1, 4))
    with refusal("epoch 0 has no batches"):
        next(stream(lambda epoch: kind([])))


def test_batches_of_a_sequence_that_were_used_before_are_not_made_again():
    class Made(Sequence):
        asked: ClassVar[list[int]] = []

        def __len__(self):
            return 4

        def __getitem__(self, index):
            self.asked.append(index)
            return "abcd"[index]

    assert next(stream(lambda epoch: Made(), 0, 3)) == (0, 4, "d")
    assert Made.asked == [3]


def test_set_seed_reaches_python_numpy_and_torch():
    draw = lambda: (random.random(), np.random.rand(), torch.rand(2).tolist())  # noqa: NPY002
    own = set_seed(12)
    first, from_own = draw(), torch.rand(2, generator=own).tolist()
    own = set_seed(12)
    # the generator is independent of what else draws
    assert torch.rand(2, generator=own).tolist() == from_own
    assert draw() == first
    set_seed(13)
    assert all(a != b for a, b in zip(draw(), first, strict=True))
    for seed in (-1, 2**32):
        with refusal("choose a whole number from 0 to 4294967295"):
            set_seed(seed)


class Named(NamedTuple):
    ids: torch.Tensor
    text: str


def test_to_device_moves_every_tensor_and_keeps_the_structure():
    there = torch.device("meta")
    ids = torch.arange(3)
    moved = to_device({"a": [ids, (ids, 2)], "b": Named(ids, "two"), "c": None}, there)
    assert isinstance(moved["b"], Named)
    assert {
        tensor.device.type
        for tensor in (moved["a"][0], moved["a"][1][0], moved["b"].ids)
    } == {"meta"}
    assert (moved["a"][1][1], moved["b"].text, moved["c"]) == (2, "two", None)
