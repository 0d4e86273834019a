"""Chapter 2's experiments: the task asks what it says, the judge is right, and cost is counted as it is."""

import io
import math
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import one_hot, scaled_dot_product_attention

from course_lib.attention import MultiHeadAttention
from course_lib.experiments import attention_cost, score_scale
from course_lib.experiments.self_attention import (
    LookBack,
    LookBackModel,
    Recurrent,
    SingleHead,
    build,
    fit,
    fit_best,
    score,
    weights_by_distance,
)
from course_lib.figure_style import MODELS, alt_text, contrast_ratio
from course_lib.masking import causal_mask, padding_mask
from course_lib.plotting_growth import growth_curves
from course_lib.plotting_masks import ALLOWED, mask_panels


class Oracle(nn.Module):
    """Answers by copying: right where `distances` are those of the task, wrong where they are others."""

    def __init__(self, distances, vocab_size):
        super().__init__()
        self.distances, self.vocab_size = distances, vocab_size

    def forward(self, ids):
        copies = torch.stack([ids.roll(distance, dims=1) for distance in self.distances], dim=-1)
        return one_hot(copies, self.vocab_size).float()


class TestLookBack:
    def test_answers_stand_where_the_task_says(self):
        task = LookBack(distances=(1, 3), vocab_size=10, length=6)
        ids = torch.tensor([[5, 9, 2, 7, 0, 4]])
        assert task.first == 3
        assert task.answers(ids).tolist() == [[[2, 5], [7, 9], [0, 2]]]  # for positions 3, 4 and 5

    def test_the_first_word_is_asked_for_at_the_last_position_only(self):
        task = LookBack(distances=(6,), vocab_size=8, length=7)
        ids = torch.tensor([[3, 1, 4, 1, 5, 2, 6]])
        assert task.answers(ids).tolist() == [[[3]]]

    def test_chance_counts_each_word_that_must_be_guessed(self):
        assert LookBack((2, 5), vocab_size=16).chance == 1 / 256
        assert LookBack((2,), vocab_size=16).chance == 1 / 16

    @pytest.mark.parametrize("distances", [(), (2, -1), (4, 16)])
    def test_a_distance_outside_the_sentence_is_refused_in_words(self, distances):
        with pytest.raises(ValueError, match="each from 0 to length - 1 = 15"):
            LookBack(distances)

    def test_a_perfect_answer_scores_one_and_the_order_of_answers_counts(self):
        task = LookBack(distances=(2, 5), vocab_size=16)
        assert score(task, Oracle((2, 5), 16)) == {"right": 1, "right at 2": 1, "right at 5": 1}
        turned = score(task, Oracle((5, 2), 16))
        assert turned["right"] == pytest.approx(1 / 16, abs=0.02)  # only where both words happen to be the same

    def test_one_right_answer_of_two_is_not_right(self):
        found = score(LookBack(distances=(2, 5), vocab_size=16), Oracle((2, 4), 16))
        assert found["right at 2"] == 1
        assert found["right"] == found["right at 5"] == pytest.approx(1 / 16, abs=0.02)

    def test_judged_by_the_answers_of_another_sentence_an_oracle_is_at_chance(self):
        task = LookBack(distances=(2,), vocab_size=8)
        assert score(task, Oracle((2,), 8), shuffled=True)["right"] == pytest.approx(task.chance, abs=0.02)


class TestModel:
    def test_models_of_any_number_of_heads_have_as_many_parameters(self):
        task = LookBack((2, 5), vocab_size=16)
        models = [build(task, partial(MultiHeadAttention, num_heads=heads), seed=0, dim=24) for heads in (1, 2, 8)]
        assert len({sum(p.numel() for p in model.parameters()) for model in models}) == 1

    def test_with_and_without_the_divisor_models_begin_with_the_same_weights(self):
        task = LookBack((3,))
        first, second = (
            build(task, partial(SingleHead, key_dim=20, divisor=divisor), 4).state_dict() for divisor in (20**0.5, 1.0)
        )
        assert all(torch.equal(first[name], second[name]) for name in first)

    def test_a_single_head_with_the_published_divisor_is_scaled_dot_product_attention(self):
        """Vaswani et al. 2017, equation 1."""
        torch.manual_seed(0)
        head = SingleHead(dim=6, key_dim=5, divisor=math.sqrt(5)).double()
        hidden = torch.randn(2, 7, 6, dtype=torch.float64)
        expected = scaled_dot_product_attention(head.query(hidden), head.key(hidden), head.value(hidden))
        torch.testing.assert_close(head(hidden), expected, rtol=0, atol=1e-12)

    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self):
        task = LookBack((1,), vocab_size=5, length=6)
        make = partial(MultiHeadAttention, num_heads=2)
        losses = [fit(task, build(task, make, seed, dim=8), seed, steps=3).losses for seed in (0, 0, 1)]
        assert losses[0] == losses[1] != losses[2]
        assert losses[0][0] == pytest.approx(math.log(5), abs=0.7)  # untrained: about as good as a guess

    def test_training_teaches_the_look_up(self):
        task = LookBack((1,), vocab_size=5, length=6)
        runs = fit_best(
            task, partial(MultiHeadAttention, num_heads=1), seeds=[0], steps=60, learning_rates=[1e-5, 1e-2]
        )
        assert runs.learning_rate == 1e-2
        assert runs.right[0] > 0.9
        assert score(task, runs.models[0])["right"] == runs.right[0]

    def test_weights_are_read_off_the_right_diagonal(self):
        """A head that is made to look one place back shows all its weight in the column of distance 1."""
        task = LookBack((1,), vocab_size=4, length=6)
        model = LookBackModel(task, dim=6, mixer=MultiHeadAttention(6, num_heads=1))
        with torch.no_grad():
            model.words.weight.zero_()
            model.positions.weight.copy_(torch.eye(6))
            query, key, _ = model.mixer.in_proj.weight.chunk(3)
            query.copy_(100 * torch.eye(6))
            key.copy_(torch.eye(6).roll(1, dims=0))  # the key of position s is what the query of position s + 1 wants
        table = weights_by_distance(task, model.to("cpu"), distances=[0, 1, 2], sentences=3)
        torch.testing.assert_close(table, torch.tensor([[0.0, 1.0, 0.0]]), atol=1e-6, rtol=0)

    def test_untrained_heads_spread_their_weight_over_all_positions(self):
        task = LookBack((2, 5), vocab_size=16, length=12)
        model = build(task, partial(MultiHeadAttention, num_heads=4), seed=0)
        table = weights_by_distance(task, model, range(6))
        assert table.shape == (4, 6)
        torch.testing.assert_close(table.mean(dim=0), torch.full((6,), 1 / 12), atol=0.04, rtol=0)

    def test_a_layer_without_heads_has_no_weights_to_show(self):
        task = LookBack((2,))
        with pytest.raises(ValueError, match="mixes with Recurrent; heads are those of MultiHeadAttention"):
            weights_by_distance(task, build(task, Recurrent, seed=0, dim=8), [2])

    @pytest.mark.slow
    def test_two_look_ups_need_two_heads(self):
        """The chapter's claim, with other seeds than the chapter's."""
        task = LookBack((2, 5), vocab_size=16)
        right = {
            heads: fit_best(task, partial(MultiHeadAttention, num_heads=heads), [7, 8], 150, [3e-3]).right
            for heads in (1, 2)
        }
        assert min(right[2]) > 0.99
        assert max(right[1]) < 0.5


class TestScoreScale:
    def test_scores_spread_as_the_root_of_the_width(self):
        """Vaswani et al. 2017, footnote 4: the variance of q · k is d_k."""
        for dim in (16, 400):
            found = score_scale.score_statistics(dim, 1.0, seed=3)
            assert found.spread == pytest.approx(math.sqrt(dim), rel=0.05)
            assert score_scale.score_statistics(dim, math.sqrt(dim), seed=3).spread == pytest.approx(1, rel=0.05)

    def test_scores_of_zero_give_uniform_weights_and_their_entropy(self):
        """A huge divisor leaves no scores; the gradient at score j is then (g_j - mean g) / S."""
        found = score_scale.score_statistics(dim=8, divisor=1e9, seed=0, keys=64)
        assert found.entropy == pytest.approx(math.log(64), abs=1e-6)
        values = torch.randn(100_000, 64) * torch.randn(100_000, 1)
        expected = ((values - values.mean(dim=1, keepdim=True)) / 64).norm(dim=1).median().item()
        assert found.score_gradient == pytest.approx(expected, rel=0.25)  # the median of 256 draws

    def test_gradients_are_those_of_the_formula(self):
        """d weight_i / d score_j = weight_i (delta_ij - weight_j), for one query, by hand."""
        found = score_scale.score_statistics(dim=5, divisor=2.0, seed=6, queries=1, keys=3)
        generator = torch.Generator().manual_seed(6)
        query, key = torch.randn(1, 1, 5, generator=generator), torch.randn(1, 3, 5, generator=generator)
        value, upstream = torch.randn(1, 3, 1, generator=generator), torch.randn(1, 1, 1, generator=generator)
        weights = (query @ key.mT / 2.0).softmax(dim=-1)[0, 0]
        jacobian = torch.diag(weights) - torch.outer(weights, weights)
        at_scores = jacobian @ (value[0, :, 0] * upstream.item())
        assert found.score_gradient == pytest.approx(at_scores.norm().item(), rel=1e-5)
        assert found.query_gradient == pytest.approx((at_scores @ key[0] / 2.0).norm().item(), rel=1e-5)

    def test_accuracy_comes_back_by_seed_and_width(self):
        found = score_scale.accuracy_after_training(dims=[2, 3], learning_rates=[1e-2], seeds=[0, 1, 2], steps=2)
        assert {name: np.shape(rows) for name, rows in found.items()} == {"scaled": (3, 2), "unscaled": (3, 2)}


class TestCost:
    def test_tensors_are_counted_from_their_creation_to_their_end(self):
        with attention_cost.AllocationCounter() as counter:
            kept = torch.zeros(250)  # 1,000 bytes
            lost = torch.ones(500)
            view = kept[10:]
            del lost
            more = kept + 1
        assert counter.peak == 3000
        assert counter.now == 2000
        assert counter.operations == 4
        assert (len(view), len(more)) == (240, 250)

    def test_a_change_in_place_needs_no_memory(self):
        numbers = torch.zeros(100)
        with attention_cost.AllocationCounter() as counter:
            numbers.add_(1)
        assert (counter.peak, counter.operations) == (400, 1)  # the tensor itself is met, and counted once

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "length"), [("explicit attention", 512), ("fused attention", 512), ("GRU", 128)])
    def test_memory_agrees_with_the_log_of_the_allocator(self, name, length):
        """torch.profiler writes down every allocation, kernels' workspaces included."""
        layer = attention_cost.make_layers(64)[name]
        counted = attention_cost.measure_allocations({name: layer}, 64, [length])[name][0]
        hidden = torch.randn(1, length, 64, requires_grad=True)
        attention_cost.training_step(layer, hidden)
        hidden.grad = None
        layer.zero_grad(set_to_none=True)
        with torch.profiler.profile(profile_memory=True) as profile:
            layer(hidden).sum().backward()
        events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
        now = peak = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            now += event.nbytes()
            peak = max(peak, now)
        # What the step reads, weights and input, is met by the counter and was allocated before the log began.
        read = sum(p.numel() for p in layer.parameters()) * 4 + hidden.numel() * 4
        assert peak - 0.1 * peak <= counted.peak <= peak + read + 0.1 * peak

    def test_explicit_attention_stores_the_matrix_and_the_fused_kernel_does_not(self):
        layers = attention_cost.make_layers(16)
        layers.pop("GRU")
        counted = attention_cost.measure_allocations(layers, 16, [64, 512])
        matrix = 512 * 512 * 4
        assert counted["explicit attention"][1].peak > 3 * matrix  # weights, and two gradients of their size
        assert counted["fused attention"][1].peak < matrix
        assert counted["fused attention"][0].operations == counted["fused attention"][1].operations

    def test_a_recurrent_layer_issues_more_operations_for_each_token(self):
        counted = attention_cost.measure_allocations({"GRU": Recurrent(8)}, 8, [3, 6, 12])["GRU"]
        steps = np.diff([counter.operations for counter in counted])
        assert steps[1] == 2 * steps[0] > 0

    def test_seconds_come_back_by_repetition_and_length(self):
        layers = attention_cost.make_layers(8)
        seconds = attention_cost.measure_seconds(layers, 8, [4, 6, 9], repetitions=2)
        assert {name: np.shape(rows) for name, rows in seconds.items()} == dict.fromkeys(layers, (2, 3))
        assert min(map(np.min, seconds.values())) > 0

    def test_the_number_of_threads_is_given_back_even_after_an_error(self):
        threads = torch.get_num_threads()
        inside = []

        def fail():
            inside.append(torch.get_num_threads())
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), attention_cost.one_thread():
            fail()
        assert inside == [1]
        assert torch.get_num_threads() == threads

    def test_the_exponent_of_a_power_law_is_found_exactly(self):
        lengths = [256, 512, 2048]
        assert attention_cost.fitted_exponent(lengths, [3e-7 * n**1.7 for n in lengths]) == pytest.approx(1.7, abs=1e-9)

    @pytest.mark.parametrize(("lengths", "costs"), [([256], [1.0]), ([256, 512], [1.0, 0.0])])
    def test_a_power_law_without_two_positive_points_is_refused(self, lengths, costs):
        with pytest.raises(ValueError, match="two or more positive points"):
            attention_cost.fitted_exponent(lengths, costs)

    def test_a_layer_that_copies_sends_the_gradient_to_the_last_input_alone(self):
        found = attention_cost.gradient_by_distance(nn.Identity(), 7, distances=[0, 1, 4], seed=2)
        generator = torch.Generator().manual_seed(2)
        torch.randn(1, 5, 7, generator=generator)
        assert found == [pytest.approx(torch.randn(7, generator=generator).norm().item()), 0, 0]

    def test_the_gradient_of_a_gru_fades_with_distance_and_that_of_attention_does_not(self):
        layers = attention_cost.make_layers(32, seed=5)
        recurrent = attention_cost.gradient_by_distance(layers["GRU"], 32, [1, 8, 32], seed=5)
        attention = attention_cost.gradient_by_distance(layers["fused attention"], 32, [1, 8, 32], seed=5)
        assert recurrent[0] > 10 * recurrent[1] > 1000 * recurrent[2]
        assert attention[2] > 0.1 * attention[0]


class TestFigures:
    WORDS = ("I", "am", "home", "<pad>")

    @pytest.fixture(scope="class")
    def masks(self):
        return mask_panels(
            {"padding": padding_mask(torch.tensor([3]), 4).expand(4, 4), "causal": causal_mask(4)},
            self.WORDS,
            self.WORDS,
        )

    @pytest.fixture(scope="class")
    def curves(self):
        runs = {"GRU": [[2.0, 4.0, 9.0], [2.2, 4.1, 8.0], [1.9, 5.0, 8.5]], "fused attention": [[1.0, 4.0, 0.0]]}
        return growth_curves([256, 512, 1024], runs, "length (tokens)", "time (seconds)")

    def test_squares_are_filled_where_a_query_may_attend(self, masks):
        for axes, expected in zip(
            masks.axes, (padding_mask(torch.tensor([3]), 4).expand(4, 4), causal_mask(4)), strict=True
        ):
            filled = {
                (round(patch.get_y() + 0.44), round(patch.get_x() + 0.44)) for patch in axes.patches if patch.get_fill()
            }
            assert filled == {tuple(place) for place in expected.nonzero().tolist()}
            assert axes.yaxis_inverted(), "the first query stands at the top"

    def test_words_say_what_each_query_may_see(self, masks):
        text = alt_text(masks)
        assert "causal: I may attend to I; am may attend to I, am;" in text
        assert "<pad> may attend to I, am, home." in text

    def test_a_mask_that_does_not_fit_is_refused_in_words(self):
        with pytest.raises(ValueError, match=r"shape \(3, 4\).*give a boolean mask, one row for each query"):
            mask_panels({"wrong": torch.ones(3, 4, dtype=torch.bool)}, self.WORDS, self.WORDS)
        with pytest.raises(ValueError, match="no masks"):
            mask_panels({}, self.WORDS, self.WORDS)

    def test_filled_squares_stand_out_on_white_and_on_black(self):
        assert min(contrast_ratio(ALLOWED, page) for page in ("white", "black")) >= 3

    def test_the_line_is_the_median_and_the_band_the_range(self, curves):
        line = curves.axes[0].lines[0]
        np.testing.assert_array_equal(line.get_ydata(), [2.0, 4.1, 8.5])
        points = curves.axes[0].collections[0].get_paths()[0].vertices
        at_512 = points[points[:, 0] == 512, 1]
        assert (at_512.min(), at_512.max()) == (4.0, 5.0)

    def test_both_axes_are_logarithmic_and_what_has_no_logarithm_is_left_out(self, curves):
        axes = curves.axes[0]
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        np.testing.assert_array_equal(axes.lines[1].get_xdata(), [256, 512])
        linear = growth_curves([1, 2], {"GRU": [[0.0, 1.0]]}, "x", "y", logarithmic_y=False)
        np.testing.assert_array_equal(linear.axes[0].lines[0].get_ydata(), [0, 1])

    @pytest.mark.parametrize(
        ("x", "curves", "words"),
        [
            ([512, 256], {"GRU": [[1, 2]]}, "must be positive and increase"),
            ([0, 256], {"GRU": [[1, 2]]}, "must be positive and increase"),
            ([1, 2], {}, "no curves"),
            ([1, 2], {"GRU": [[1, 2, 3]]}, r"GRU: runs have shape \(1, 3\); expected \[runs, 2\]"),
            ([1, 2], {"LSTM": [[1, 2]]}, "no colour is reserved for 'LSTM'"),
        ],
    )
    def test_curves_that_cannot_be_drawn_are_refused_in_words(self, x, curves, words):
        with pytest.raises(ValueError, match=words):
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

    @pytest.mark.parametrize(
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
