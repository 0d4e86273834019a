"""Words and positions: look-ups against one-hot products, the table of sines against
the formula and the lecture."""

import math

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import assert_near, refusal
from torch import Tensor, nn

from course_lib.transformer.positions import (
    LearnedPositions,
    WordAndPosition,
    one_hot_lookup,
    sinusoidal_positions,
)

T, D, V = 5, 12, 11


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(
        shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


@pytest.fixture
def in_double_precision():
    """The table comes in torch's default dtype; single precision has seven digits, and
    the lecture prints eight."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


class TestOneHotLookup:
    def test_one_hot_times_embedding_is_a_look_up_and_so_is_its_gradient(self):
        ids = torch.tensor([[4, 0, 10], [4, 7, 1]])
        direction = numbers(2, 3, D)
        gradients = []
        for look_up in (
            one_hot_lookup,
            lambda ids, embedding: F.embedding(ids, embedding),
        ):
            embedding = numbers(V, D).requires_grad_()
            rows = look_up(ids, embedding)
            # a row times 1 plus zeros: no rounding
            assert torch.equal(rows, embedding[ids])
            (rows * direction).sum().backward()
            gradients.append(embedding.grad)
        torch.testing.assert_close(*gradients, rtol=0, atol=1e-14)
        assert (gradients[0][2] == 0).all()  # a word that did not occur

    def test_no_words_have_no_rows(self):
        assert one_hot_lookup(
            torch.empty(0, 3, dtype=torch.long), numbers(V, D)
        ).shape == (0, 3, D)

    @pytest.mark.parametrize("word", [V, -1])
    def test_a_word_outside_the_vocabulary_is_refused_in_words(self, word):
        with refusal(rf"{word}.*{V}"):
            one_hot_lookup(torch.tensor([3, word]), numbers(V, D))


class TestSinusoidalPositions:
    """Vaswani et al. 2017, section 3.5."""

    # The lecture's table for n = 100 and d = 4, as printed: eight digits after the
    # point, trailing zeros left off.
    TABLE = (
        ("0", "1", "0", "1"),
        ("0.84147098", "0.54030231", "0.09983342", "0.99500417"),
        ("0.90929743", "-0.41614684", "0.19866933", "0.98006658"),
        ("0.14112001", "-0.9899925", "0.29552021", "0.95533649"),
    )

    def test_table_of_four_positions_from_lecture(self, in_double_precision):
        table = sinusoidal_positions(4, 4, base=100.0)
        printed = tuple(
            tuple(f"{number:.8f}".rstrip("0").rstrip(".") for number in row)
            for row in table.tolist()
        )
        assert printed == self.TABLE

    def test_every_entry_is_the_sine_or_cosine_of_the_formula(
        self, in_double_precision
    ):
        table = sinusoidal_positions(T, D)
        for k in range(T):
            for i in range(D // 2):
                angle = k / 10_000 ** (2 * i / D)
                assert table[k, 2 * i].item() == pytest.approx(
                    math.sin(angle), abs=1e-15
                )
                assert table[k, 2 * i + 1].item() == pytest.approx(
                    math.cos(angle), abs=1e-15
                )

    def test_single_precision_is_the_rounded_table_even_far_out(self):
        """Angles computed in float32 would be off by 2e-4 at position 4,095."""
        far = sinusoidal_positions(4096, 16)
        assert far.dtype == torch.float32
        angle = 4095 / 10_000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
        assert_near(far[-1, 0::2].double(), angle.sin(), 6e-8)
        assert_near(far[-1, 1::2].double(), angle.cos(), 6e-8)

    def test_a_table_of_no_positions_has_no_rows(self):
        assert sinusoidal_positions(0, D).shape == (0, D)

    def test_a_longer_table_begins_with_the_shorter_one(self):
        assert torch.equal(sinusoidal_positions(60, D)[:T], sinusoidal_positions(T, D))

    def test_positions_are_unique_bounded_and_as_far_apart_as_their_offset_says(
        self, in_double_precision
    ):
        """The wish list of the chapter; P(k) · P(k + o) is the sum of cos(o w),
        whatever k."""
        table = sinusoidal_positions(40, 16)
        assert table.abs().max() <= 1
        assert torch.pdist(table).min() > 0.1
        products = table @ table.T
        for offset in (1, 5, 17):
            diagonal = products.diagonal(offset)
            assert_near(diagonal, diagonal[:1].expand_as(diagonal), 1e-13)
        assert (products.diagonal(1) > products.diagonal(2)[0]).all()

    def test_a_shift_is_one_rotation_for_all_positions(self, in_double_precision):
        """Vaswani et al. 2017, section 3.5: P(k + o) is a linear function of P(k)."""
        table = sinusoidal_positions(30, 6)
        turn = torch.linalg.lstsq(table[:20], table[4:24]).solution
        assert_near(table[:26] @ turn, table[4:30], 1e-8)

    @for_each(
        ("length", "dim", "base", "message"),
        [
            (
                4,
                5,
                100.0,
                (
                    "dim is 5, but sines and cosines come in pairs; choose an even"
                    " number, e.g. 6"
                ),
            ),
            (4, 0, 100.0, "dim is 0"),
            (-1, 4, 100.0, "length=-1.*length must be at least 0"),
            (4, 4, 0.0, "base=0.0.*base positive"),
        ],
    )
    def test_a_table_that_cannot_be_is_refused_in_words(
        self, length, dim, base, message
    ):
        with refusal(message):
            sinusoidal_positions(length, dim, base)


class TestWordAndPosition:
    """Vaswani et al. 2017, sections 3.4 and 3.5."""

    IDS = torch.tensor([[4, 0, 10, 4, 7], [4, 7, 1, 1, 1]])

    @pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
    def test_is_the_row_times_the_root_of_the_width_plus_the_position(self, positions):
        layer = WordAndPosition(nn.Embedding(V, D), positions, max_length=9)
        if positions == "sinusoidal":
            added = sinusoidal_positions(T, D)
        else:
            added = (
                layer.learned.table.weight[:T]
                if positions == "learned"
                else torch.zeros(T, D)
            )
        expected = layer.embedding.weight[self.IDS] * math.sqrt(D) + added
        assert_near(layer(self.IDS), expected, 1e-6)

    @pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
    def test_words_may_begin_at_a_later_position(self, positions):
        """As decoding does, one word at a time."""
        layer = WordAndPosition(nn.Embedding(V, D), positions, max_length=9)
        assert_near(layer(self.IDS[:, 2:4], first=2), layer(self.IDS)[:, 2:4], 0)

    def test_only_learned_positions_are_parameters_and_are_saved(self):
        keys = {
            name: set(WordAndPosition(nn.Embedding(V, D), name).state_dict())
            for name in ("sinusoidal", "learned")
        }
        assert keys["sinusoidal"] == {"embedding.weight"}
        assert keys["learned"] == {"embedding.weight", "learned.table.weight"}

    def test_the_table_moves_with_the_model(self):
        """To another precision, as to another device: it is a buffer, though none that
        is saved."""
        layer = WordAndPosition(nn.Embedding(V, D)).double()
        assert layer.table.dtype == torch.float64
        assert layer(self.IDS).dtype == torch.float64

    @pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
    def test_dropout_falls_on_the_sum_and_in_training_alone(self, positions):
        layer = WordAndPosition(nn.Embedding(V, D), positions, dropout=0.5)
        torch.manual_seed(4)
        kept = layer(self.IDS)
        whole = layer.eval()(self.IDS)
        dropped = kept == 0
        assert 0.2 < dropped.float().mean() < 0.8
        torch.testing.assert_close(kept[~dropped], 2 * whole[~dropped])

    @pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
    def test_a_sentence_that_is_too_long_is_refused_in_words(self, positions):
        layer = WordAndPosition(nn.Embedding(V, D), positions, max_length=4)
        with refusal("the sequence is 5 words long, but max_length is 4"):
            layer(self.IDS)
        with refusal("the sequence is 5 words long, but max_length is 4"):
            layer(self.IDS[:, :2], first=3)

    def test_unknown_positions_are_refused_in_words(self):
        with refusal("positions is 'rotary'; choose one of sinusoidal, learned, none"):
            WordAndPosition(nn.Embedding(V, D), "rotary")


class TestLearnedPositions:
    def test_position_k_is_row_k_of_a_parameter(self):
        positions = LearnedPositions(max_length=9, dim=D)
        (parameter,) = positions.parameters()
        assert parameter.shape == (9, D)
        places = torch.tensor([[3, 0], [3, 7]])
        assert torch.equal(positions(places), parameter[places])
        positions(places).sum().backward()
        assert parameter.grad[:, 0].tolist() == [1, 0, 0, 2, 0, 0, 0, 1, 0]

    def test_they_begin_small_beside_the_words(self):
        """Devlin et al. 2019's initialiser: normal with a standard deviation of
        0.02."""
        torch.manual_seed(0)
        assert LearnedPositions(
            max_length=300, dim=40
        ).table.weight.std().item() == pytest.approx(0.02, rel=0.05)
