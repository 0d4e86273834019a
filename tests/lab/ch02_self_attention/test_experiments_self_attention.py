"""Chapter 2's experiments: the task asks what it says, the judge is right, and figures
show what was measured."""

import io
import math
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import for_each
from expect import assert_near, refusal
from PIL import Image
from torch import nn
from torch.nn.functional import one_hot, scaled_dot_product_attention

from course_lab.ch02_self_attention import self_attention
from course_lab.ch02_self_attention.self_attention import (
    LookBack,
    LookBackModel,
    Recurrent,
    SingleHead,
    build,
    fit,
    fit_seeds,
    score,
    weights_by_distance,
)
from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.figures.curves import growth_curves
from course_lib.figures.maps import ALLOWED, mask_panels
from course_lib.figures.style import MODELS, alt_text, contrast_ratio
from course_lib.training.loop import History


class Oracle(nn.Module):
    """Answers by copying: right where `distances` are those of the task, wrong where
    they are others."""

    def __init__(self, distances, vocab_size):
        super().__init__()
        self.distances, self.vocab_size = distances, vocab_size

    def forward(self, ids):
        copies = torch.stack(
            [ids.roll(distance, dims=1) for distance in self.distances], dim=-1
        )
        return one_hot(copies, self.vocab_size).float()


class TestLookBack:
    def test_answers_stand_where_the_task_says(self):
        task = LookBack(distances=(1, 3), vocab_size=10, length=6)
        ids = torch.tensor([[5, 9, 2, 7, 0, 4]])
        assert task.first == 3
        # for positions 3, 4 and 5
        assert task.answers(ids).tolist() == [[[2, 5], [7, 9], [0, 2]]]

    def test_the_first_word_is_asked_for_at_the_last_position_only(self):
        task = LookBack(distances=(6,), vocab_size=8, length=7)
        ids = torch.tensor([[3, 1, 4, 1, 5, 2, 6]])
        assert task.answers(ids).tolist() == [[[3]]]

    def test_chance_counts_each_word_that_must_be_guessed(self):
        assert LookBack((2, 5), vocab_size=16).chance == 1 / 256
        assert LookBack((2,), vocab_size=16).chance == 1 / 16
        assert LookBack((2, 2), vocab_size=16).chance == 1 / 16, (
            "the same word twice is one guess"
        )

    def test_all_words_are_drawn(self):
        ids = LookBack((2,), vocab_size=7, length=5).batch(
            200, torch.Generator().manual_seed(0)
        )
        assert ids.shape == (200, 5)
        assert ids.unique().tolist() == list(range(7))

    @pytest.mark.parametrize("distances", [(), (2, -1), (4, 16)])
    def test_a_distance_outside_the_sentence_is_refused_in_words(self, distances):
        with refusal("each from 0 to length - 1 = 15"):
            LookBack(distances)

    def test_a_perfect_answer_scores_one_and_the_order_of_answers_counts(self):
        task = LookBack(distances=(2, 5), vocab_size=16)
        assert score(task, Oracle((2, 5), 16)) == {
            "right": 1,
            "right at 2": 1,
            "right at 5": 1,
        }
        turned = score(task, Oracle((5, 2), 16))
        # only where both words happen to be the same
        assert turned["right"] == pytest.approx(1 / 16, abs=0.02)

    def test_one_right_answer_of_two_is_not_right(self):
        found = score(LookBack(distances=(2, 5), vocab_size=16), Oracle((2, 4), 16))
        assert found["right at 2"] == 1
        assert found["right"] == found["right at 5"] == pytest.approx(1 / 16, abs=0.02)

    def test_judged_by_the_answers_of_another_sentence_an_oracle_is_at_chance(self):
        task = LookBack(distances=(2,), vocab_size=8)
        assert score(task, Oracle((2,), 8), shuffled=True)["right"] == pytest.approx(
            task.chance, abs=0.02
        )
        # Nor is it judged by another position of the same sentence.
        assert score(task, Oracle((3,), 8), shuffled=True)["right"] == pytest.approx(
            task.chance, abs=0.02
        )

    def test_a_model_is_judged_at_rest(self):
        task = LookBack((1,), vocab_size=5, length=6)
        model = build(
            task, partial(MultiHeadAttention, num_heads=2, dropout=0.5), seed=0, dim=8
        )
        assert score(task, model.train()) == score(task, model.train())


class TestModel:
    def test_models_of_any_number_of_heads_have_as_many_parameters(self):
        task = LookBack((2, 5), vocab_size=16)
        models = [
            build(task, partial(MultiHeadAttention, num_heads=heads), seed=0, dim=24)
            for heads in (1, 2, 8)
        ]
        assert (
            len({sum(p.numel() for p in model.parameters()) for model in models}) == 1
        )

    def test_with_and_without_the_divisor_models_begin_with_the_same_weights(self):
        task = LookBack((3,))
        first, second = (
            build(
                task, partial(SingleHead, key_dim=20, divisor=divisor), 4
            ).state_dict()
            for divisor in (20**0.5, 1.0)
        )
        assert all(torch.equal(first[name], second[name]) for name in first)

    def test_a_single_head_with_the_published_divisor_is_scaled_dot_product_attention(
        self,
    ):
        """Vaswani et al. 2017, equation 1."""
        torch.manual_seed(0)
        head = SingleHead(dim=6, key_dim=5, divisor=math.sqrt(5)).double()
        hidden = torch.randn(2, 7, 6, dtype=torch.float64)
        expected = scaled_dot_product_attention(
            head.query(hidden), head.key(hidden), head.value(hidden)
        )
        assert_near(head(hidden), expected, 1e-12)

    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self):
        task = LookBack((1,), vocab_size=5, length=6)
        make = partial(MultiHeadAttention, num_heads=2)
        losses = [
            fit(task, build(task, make, seed, dim=8), seed, steps=3).losses
            for seed in (0, 0, 1)
        ]
        assert losses[0] == losses[1] != losses[2]
        # untrained: about as good as a guess
        assert losses[0][0] == pytest.approx(math.log(5), abs=0.7)

    def test_the_seed_decides_the_first_weights_and_the_sentences(self, monkeypatch):
        task, read, draw = LookBack((1,), vocab_size=5, length=6), [], LookBack.batch

        def watched(task, size, generator):
            read.append(draw(task, size, generator))
            return read[-1]

        make = partial(MultiHeadAttention, num_heads=2)
        first, again, other = (build(task, make, seed, dim=8) for seed in (3, 3, 4))
        assert torch.equal(first.words.weight, again.words.weight)
        assert not torch.equal(first.words.weight, other.words.weight)
        monkeypatch.setattr(LookBack, "batch", watched)
        for seed in (3, 3, 4):
            fit(task, first, seed, steps=2, batch_size=7, evaluate_every=1000)
        of_runs = [
            torch.stack([ids for ids in read if len(ids) == 7][at : at + 2])
            for at in (0, 2, 4)
        ]
        assert torch.equal(of_runs[0], of_runs[1])
        assert not torch.equal(of_runs[0], of_runs[2])
        assert not torch.equal(of_runs[0][0], of_runs[0][1]), (
            "sentences never come twice"
        )

    def test_each_seed_has_a_model_of_its_own_trained_as_asked(self, monkeypatch):
        task, fitted = LookBack((1,), vocab_size=5, length=6), []

        def fake(task, model, seed, steps, rate, batch_size, evaluate_every):
            fitted.append((seed, steps, rate, batch_size, evaluate_every))
            return History(metrics={"right": [0.0, seed / 10]})

        monkeypatch.setattr(self_attention, "fit", fake)
        make = partial(MultiHeadAttention, num_heads=2)
        runs = fit_seeds(task, make, [7, 8], 20, 0.3, batch_size=6, evaluate_every=5)
        assert fitted == [(seed, 20, 0.3, 6, 5) for seed in (7, 8)]
        assert runs.right == [0.7, 0.8]
        assert not torch.equal(runs.models[0].words.weight, runs.models[1].words.weight)

    def test_training_teaches_the_look_up(self):
        task = LookBack((1,), vocab_size=5, length=6)
        runs = fit_seeds(
            task,
            partial(MultiHeadAttention, num_heads=1),
            seeds=[0],
            steps=60,
            learning_rate=1e-2,
        )
        assert runs.right[0] > 0.9
        assert score(task, runs.models[0])["right"] == runs.right[0]

    def test_weights_are_read_off_the_right_diagonal(self):
        """A head that is made to look one place back shows all its weight in the column
        of distance 1."""
        task = LookBack((1,), vocab_size=4, length=6)
        model = LookBackModel(task, dim=6, mixer=MultiHeadAttention(6, num_heads=1))
        with torch.no_grad():
            model.words.weight.zero_()
            model.positions.weight.copy_(torch.eye(6))
            query, key = model.mixer.query.weight, model.mixer.key.weight
            query.copy_(100 * torch.eye(6))
            # the key of position s is what the query of position s + 1 wants
            key.copy_(torch.eye(6).roll(1, dims=0))
        table = weights_by_distance(
            task, model.to("cpu"), distances=[0, 1, 2], sentences=3
        )
        assert_near(table, torch.tensor([[0.0, 1.0, 0.0]]), 1e-6)

    def test_weights_are_averaged_over_the_positions_that_are_asked(self):
        task = LookBack((3,), vocab_size=4, length=7)
        model = (
            build(task, partial(MultiHeadAttention, num_heads=2), seed=1, dim=8)
            .to("cpu")
            .eval()
        )
        with torch.no_grad():
            for layer in (model.mixer.query, model.mixer.key, model.mixer.value):
                layer.weight.mul_(5)  # far from uniform
            table = weights_by_distance(task, model, distances=[1, 3, 5], sentences=9)
            ids = task.batch(
                9, torch.Generator().manual_seed(self_attention.EVALUATION_SEED)
            )
            weights = model.mixer(model.embed(ids), return_weights=True)[1].mean(dim=0)
        for column, back in enumerate((1, 3, 5)):
            asked = [weights[:, t, t - back] for t in range(3, 7) if t >= back]
            torch.testing.assert_close(table[:, column], torch.stack(asked).mean(dim=0))

    def test_untrained_heads_spread_their_weight_over_all_positions(self):
        task = LookBack((2, 5), vocab_size=16, length=12)
        model = build(task, partial(MultiHeadAttention, num_heads=4), seed=0)
        table = weights_by_distance(task, model, range(6))
        assert table.shape == (4, 6)
        assert_near(table.mean(dim=0), torch.full((6,), 1 / 12), 0.04)

    def test_a_layer_without_heads_has_no_weights_to_show(self):
        task = LookBack((2,))
        with refusal("mixes with Recurrent; heads are those of MultiHeadAttention"):
            weights_by_distance(task, build(task, Recurrent, seed=0, dim=8), [2])

    @pytest.mark.slow
    def test_two_look_ups_need_two_heads(self):
        """The chapter's claim, with other seeds than the chapter's."""
        task = LookBack((2, 5), vocab_size=16)
        right = {
            heads: (
                fit_seeds(
                    task,
                    partial(MultiHeadAttention, num_heads=heads),
                    [7, 8],
                    150,
                    3e-3,
                ).right
            )
            for heads in (1, 2)
        }
        assert min(right[2]) > 0.99
        assert max(right[1]) < 0.5


class TestFigures:
    WORDS = ("I", "am", "home", "<pad>")

    @pytest.fixture(scope="class")
    def masks(self):
        return mask_panels(
            {
                "padding": padding_mask(torch.tensor([3]), 4).expand(4, 4),
                "causal": causal_mask(4),
            },
            self.WORDS,
            self.WORDS,
        )

    @pytest.fixture(scope="class")
    def curves(self):
        runs = {
            "GRU": [[2.0, 4.0, 9.0], [2.2, 4.1, 8.0], [1.9, 5.0, 8.5]],
            "fused attention": [[1.0, 4.0, 0.0]],
        }
        return growth_curves(
            [256, 512, 1024], runs, "length (tokens)", "time (seconds)"
        )

    def test_squares_are_filled_where_a_query_may_attend(self, masks):
        for axes, expected in zip(
            masks.axes,
            (padding_mask(torch.tensor([3]), 4).expand(4, 4), causal_mask(4)),
            strict=True,
        ):
            filled = {
                (round(patch.get_y() + 0.44), round(patch.get_x() + 0.44))
                for patch in axes.patches
                if patch.get_fill()
            }
            assert filled == {tuple(place) for place in expected.nonzero().tolist()}
            assert axes.yaxis_inverted(), "the first query stands at the top"

    def test_words_say_what_each_query_may_see(self, masks):
        text = alt_text(masks)
        assert "causal: I may attend to I; am may attend to I, am;" in text
        assert "<pad> may attend to I, am, home." in text

    def test_a_mask_that_does_not_fit_is_refused_in_words(self):
        with refusal(r"shape \(3, 4\).*give a boolean mask, one row for each query"):
            mask_panels(
                {"wrong": torch.ones(3, 4, dtype=torch.bool)}, self.WORDS, self.WORDS
            )
        with refusal("no masks"):
            mask_panels({}, self.WORDS, self.WORDS)

    def test_filled_squares_stand_out_on_white_and_on_black(self):
        assert min(contrast_ratio(ALLOWED, page) for page in ("white", "black")) >= 3

    def test_the_line_is_the_median_and_the_band_the_range(self, curves):
        line = curves.axes[0].lines[0]
        np.testing.assert_array_equal(line.get_ydata(), [2.0, 4.1, 8.5])
        points = curves.axes[0].collections[0].get_paths()[0].vertices
        at_512 = points[points[:, 0] == 512, 1]
        assert (at_512.min(), at_512.max()) == (4.0, 5.0)

    def test_both_axes_are_logarithmic_and_what_has_no_logarithm_is_left_out(
        self, curves
    ):
        axes = curves.axes[0]
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        np.testing.assert_array_equal(axes.lines[1].get_xdata(), [256, 512])
        linear = growth_curves(
            [1, 2], {"GRU": [[0.0, 1.0]]}, "x", "y", logarithmic_y=False
        )
        np.testing.assert_array_equal(linear.axes[0].lines[0].get_ydata(), [0, 1])

    @for_each(
        ("x", "curves", "words"),
        [
            ([512, 256], {"GRU": [[1, 2]]}, "must be positive and increase"),
            ([0, 256], {"GRU": [[1, 2]]}, "must be positive and increase"),
            ([1, 2], {}, "no curves"),
            (
                [1, 2],
                {"GRU": [[1, 2, 3]]},
                r"GRU: runs have shape \(1, 3\); expected \[runs, 2\]",
            ),
            ([1, 2], {"LSTM": [[1, 2]]}, "no colour is reserved for 'LSTM'"),
        ],
    )
    def test_curves_that_cannot_be_drawn_are_refused_in_words(self, x, curves, words):
        with refusal(words):
            growth_curves(x, curves, "x", "y")

    def test_figures_are_small_clear_and_not_left_open(self, masks, curves):
        for figure in (masks, curves):
            width, height = figure.get_size_inches()
            assert width <= 6
            assert height <= 4
            with io.BytesIO() as file:
                figure.savefig(file, dpi=40)
                image = Image.open(file).convert("RGBA")
            assert image.getpixel((0, 0))[3] == 0
            figure.draw_without_rendering()
            box = figure.get_tightbbox()
            assert box.x0 >= 0
            assert box.y0 >= 0
            assert box.x1 <= width
            assert box.y1 <= height
        assert plt.get_fignums() == []

    @for_each(
        "group",
        [
            ["scaled", "unscaled", "divided by d", "uniform"],
            ["explicit attention", "fused attention", "GRU"],
            ["self-attention", "GRU"],
            ["1 head", "2 heads", "8 heads"],
        ],
    )
    def test_models_that_meet_in_a_figure_differ_in_more_than_colour(self, group):
        for part in ("colour", "marker"):
            assert len({getattr(MODELS[name], part) for name in group}) == len(group)


def test_heads_are_judged_beside_their_controls():
    task, heads = LookBack((1, 2), vocab_size=4, length=6), self_attention.heads_of
    runs = {
        name: fit_seeds(task, heads(name), [0, 1], steps=2, learning_rate=1e-3)
        for name in ("1 head", "8 heads")
    }
    judged = self_attention.judge_heads(task, runs, [0, 1], rate=1e-2)
    untrained = [score(task, build(task, heads("8 heads"), n))["right"] for n in (0, 1)]
    assert judged["two look-ups, 8 heads, untrained"] == untrained
    assert judged["two look-ups, 1 head"] == runs["1 head"].right
    assert min(judged["one look-up, 8 heads"]) > 0.5 > max(untrained)
    *_, last = self_attention.judged_table(judged, task).splitlines()
    assert last.startswith("| one look-up, 8 heads |")
    assert last.endswith("| 0.250 |")
