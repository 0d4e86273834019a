"""Chapter 2's measurements: scores and gradients by hand, cost counted as it is, clocks
that measure what they say."""

import math
import time

import numpy as np
import pytest
import torch
from torch import nn

from course_lab.ch02_self_attention import attention_cost, score_scale
from course_lab.ch02_self_attention.self_attention import Recurrent, Runs, SingleHead
from course_lib.training.loop import History


class TestScoreScale:
    def test_scores_spread_as_the_root_of_the_width(self):
        """Vaswani et al. 2017, footnote 4: the variance of q · k is d_k."""
        for dim in (16, 400):
            found = score_scale.score_statistics(dim, 1.0, seed=3)
            assert found.spread == pytest.approx(math.sqrt(dim), rel=0.05)
            assert score_scale.score_statistics(
                dim, math.sqrt(dim), seed=3
            ).spread == pytest.approx(1, rel=0.05)

    def test_scores_of_zero_give_uniform_weights_and_their_entropy(self):
        """A huge divisor leaves no scores; the gradient at score j is then (g_j - mean
        g) / S."""
        found = score_scale.score_statistics(dim=8, divisor=1e9, seed=0, keys=64)
        assert found.entropy == pytest.approx(math.log(64), abs=1e-6)
        values = torch.randn(100_000, 64) * torch.randn(100_000, 1)
        expected = (
            ((values - values.mean(dim=1, keepdim=True)) / 64)
            .norm(dim=1)
            .median()
            .item()
        )
        # the median of 256 draws
        assert found.score_gradient == pytest.approx(expected, rel=0.25)

    def test_gradients_are_those_of_the_formula(self):
        """d weight_i / d score_j = weight_i (delta_ij - weight_j), query by query, each
        with keys of its own."""
        found = score_scale.score_statistics(
            dim=5, divisor=2.0, seed=6, queries=5, keys=3
        )
        generator = torch.Generator().manual_seed(6)
        query, key, value, upstream = (
            torch.randn(shape, generator=generator)
            for shape in ((5, 1, 5), (5, 3, 5), (5, 3, 1), (5, 1, 1))
        )
        at_scores, at_queries = [], []
        for q, k, v, u in zip(query, key, value, upstream, strict=True):
            weights = (q @ k.T / 2.0).softmax(dim=-1)[0]
            jacobian = torch.diag(weights) - torch.outer(weights, weights)
            at_scores.append(jacobian @ (v[:, 0] * u.item()))
            at_queries.append((at_scores[-1] @ k / 2.0).norm().item())
        assert found.score_gradient == pytest.approx(
            np.median([each.norm().item() for each in at_scores]), rel=1e-5
        )
        assert found.query_gradient == pytest.approx(np.median(at_queries), rel=1e-5)
        assert found.query_gradient_mean == pytest.approx(np.mean(at_queries), rel=1e-5)

    def test_statistics_by_width_are_those_of_each_seed_width_and_divisor(self):
        found = score_scale.statistics_by_width([4, 9], seeds=[0, 1, 2])
        one = score_scale.score_statistics(9, 3.0, seed=2)
        assert found["entropy"]["scaled"].shape == (3, 2)
        assert found["entropy"]["scaled"][2, 1] == one.entropy
        assert found["spread"]["scaled"][2, 1] == one.spread

    def test_divisors_are_what_they_are_called(self):
        assert {name: divisor(9) for name, divisor in score_scale.DIVISORS.items()} == {
            "unscaled": 1,
            "scaled": 3,
            "divided by d": 9,
        }

    def test_each_kind_is_trained_with_its_divisor_at_each_width(self, monkeypatch):
        asked = []

        def fake(task, head, seeds, steps, learning_rate, batch_size):
            asked.append((head.func, task.distances, steps, learning_rate))
            key_dim, divisor = head.keywords["key_dim"], head.keywords["divisor"]
            return Runs(
                [],
                [
                    History(metrics={"right": [0.0, 100 * seed + key_dim / divisor]})
                    for seed in seeds
                ],
            )

        monkeypatch.setattr(score_scale, "fit_seeds", fake)
        found = score_scale.accuracy_after_training(
            [4, 25], 0.1, seeds=[1, 2, 3], steps=9
        )
        assert found == {
            "scaled": [[102, 105], [202, 205], [302, 305]],
            "unscaled": [[104, 125], [204, 225], [304, 325]],
        }
        assert set(asked) == {(SingleHead, (3,), 9, 0.1)}

    def test_accuracy_comes_back_by_seed_and_width(self):
        found = score_scale.accuracy_after_training(
            dims=[2, 3], learning_rate=1e-2, seeds=[0, 1, 2], steps=2
        )
        assert {name: np.shape(rows) for name, rows in found.items()} == {
            "scaled": (3, 2),
            "unscaled": (3, 2),
        }


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
        assert counter.launches == 3  # the view computes nothing
        assert (len(view), len(more)) == (240, 250)

    def test_a_change_in_place_needs_no_memory(self):
        numbers = torch.zeros(100)
        with attention_cost.AllocationCounter() as counter:
            numbers.add_(1)
        assert (counter.peak, counter.launches) == (
            400,
            1,
        )  # the tensor itself is met, and counted once

    def test_all_results_of_one_operation_are_counted(self):
        numbers = torch.zeros(2, 100)
        with attention_cost.AllocationCounter() as counter:
            values, places = numbers.max(dim=0)
        assert (values.dtype, places.dtype) == (torch.float32, torch.int64)
        assert (counter.peak, counter.launches) == (100 * (4 + 8), 1)

    def test_a_step_begins_without_gradients_of_the_one_before(self):
        layer, hidden = Recurrent(4), torch.randn(1, 3, 4, requires_grad=True)
        found = []
        for _ in range(2):
            attention_cost.training_step(layer, hidden)
            found.append(
                [tensor.grad.clone() for tensor in (hidden, *layer.parameters())]
            )
        for first, second in zip(*found, strict=True):
            assert first.any()
            torch.testing.assert_close(second, first)

    def test_layers_differ_in_how_they_attend_and_the_seed_decides_their_weights(self):
        layers, again, other = (
            attention_cost.make_layers(8, seed) for seed in (1, 1, 2)
        )
        explicit, fused = (layers["explicit attention"], layers["fused attention"])
        assert explicit.num_heads == fused.num_heads == 1
        for name, layer in layers.items():
            weights = [next(each[name].parameters()) for each in (layers, again, other)]
            assert torch.equal(weights[0], weights[1])
            assert not torch.equal(weights[0], weights[2]), name
            assert layer(torch.zeros(1, 3, 8)).shape == (1, 3, 8)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "length"),
        [("explicit attention", 512), ("fused attention", 512), ("GRU", 128)],
    )
    def test_memory_agrees_with_the_log_of_the_allocator(self, name, length):
        """torch.profiler writes down every allocation, kernels' workspaces included."""
        layer = attention_cost.make_layers(64)[name]
        counted = attention_cost.measure_allocations({name: layer}, 64, [length])[name][
            0
        ]
        hidden = torch.randn(1, length, 64, requires_grad=True)
        attention_cost.training_step(layer, hidden)
        hidden.grad = None
        layer.zero_grad(set_to_none=True)
        with torch.profiler.profile(profile_memory=True) as profile:
            layer(hidden).sum().backward()
        events = [
            event
            for event in profile.profiler.kineto_results.events()
            if event.name() == "[memory]"
        ]
        now = peak = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            now += event.nbytes()
            peak = max(peak, now)
        # What the step reads, weights and input, is met by the counter and was
        # allocated before the log began.
        read = sum(p.numel() for p in layer.parameters()) * 4 + hidden.numel() * 4
        assert peak - 0.1 * peak <= counted.peak <= peak + read + 0.1 * peak

    def test_explicit_attention_stores_the_matrix_and_the_fused_kernel_does_not(self):
        layers = attention_cost.make_layers(16)
        layers.pop("GRU")
        counted = attention_cost.measure_allocations(layers, 16, [64, 512])
        matrix = 512 * 512 * 4
        # weights, and two gradients of their size
        assert counted["explicit attention"][1].peak > 3 * matrix
        assert counted["fused attention"][1].peak < matrix
        assert (
            counted["fused attention"][0].launches
            == counted["fused attention"][1].launches
        )

    def test_a_recurrent_layer_issues_more_operations_for_each_token(self):
        counted = attention_cost.measure_allocations(
            {"GRU": Recurrent(8)}, 8, [3, 6, 12]
        )["GRU"]
        steps = np.diff([counter.launches for counter in counted])
        assert steps[1] == 2 * steps[0] > 0

    def test_seconds_come_back_by_repetition_and_length(self):
        layers = attention_cost.make_layers(8)
        seconds = attention_cost.measure_seconds(layers, 8, [4, 6, 9], repetitions=2)
        assert {
            name: np.shape(rows) for name, rows in seconds.items()
        } == dict.fromkeys(layers, (2, 3))
        assert min(map(np.min, seconds.values())) > 0

    def test_layers_are_timed_in_turn_on_one_thread_and_their_first_step_does_not_count(
        self, monkeypatch
    ):
        """By a clock that the work itself moves: a layer takes as many seconds as it
        has features and positions."""
        now, calls = [0.0], []
        layers = {"small": nn.Linear(4, 4), "large": nn.Linear(4, 9)}

        def step(layer, hidden):
            assert hidden.requires_grad
            assert torch.get_num_threads() == 1
            now[0] += (
                layer.out_features * hidden.shape[1] * (1 if len(calls) > 3 else 50)
            )
            calls.append((layer.out_features, hidden.shape))

        monkeypatch.setattr(attention_cost, "process_time", lambda: now[0])
        monkeypatch.setattr(attention_cost, "training_step", step)
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            seconds = attention_cost.measure_seconds(
                layers, 4, [3, 5, 7], repetitions=2
            )
        finally:
            torch.set_num_threads(threads)
        assert seconds == {"small": [[12, 20, 28]] * 2, "large": [[27, 45, 63]] * 2}
        assert [call[0] for call in calls] == [4, 9] * (len(calls) // 2)
        assert calls[-1] == (9, (1, 7, 4))

    def test_ways_are_timed_in_turn_each_after_a_call_that_does_not_count(
        self, monkeypatch
    ):
        now, calls = [0.0], []

        def way(name, took):
            def run():
                calls.append(name)
                now[0] += took

            return run

        monkeypatch.setattr(attention_cost, "process_time", lambda: now[0])
        found = attention_cost.compare_seconds(
            {"a": way("a", 2.0), "b": way("b", 3.0)}, repetitions=3
        )
        assert found == {"a": [2.0] * 3, "b": [3.0] * 3}
        assert calls == ["a", "a", "b", "b"] * 3

    def test_the_clock_stands_still_while_nothing_is_computed(self):
        (took,) = attention_cost.compare_seconds(
            {"sleep": lambda: time.sleep(0.1)}, repetitions=1
        )["sleep"]
        assert took < 0.05

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
        assert attention_cost.fitted_exponent(
            lengths, [3e-7 * n**1.7 for n in lengths]
        ) == pytest.approx(1.7, abs=1e-9)

    @pytest.mark.parametrize(
        ("lengths", "costs"), [([256], [1.0]), ([256, 512], [1.0, 0.0])]
    )
    def test_a_power_law_without_two_positive_points_is_refused(self, lengths, costs):
        with pytest.raises(ValueError, match="two or more positive points"):
            attention_cost.fitted_exponent(lengths, costs)

    def test_a_layer_that_copies_sends_the_gradient_to_the_last_input_alone(self):
        found = attention_cost.gradient_by_distance(
            nn.Identity(), 7, distances=[0, 1, 4], seed=2
        )
        generator = torch.Generator().manual_seed(2)
        torch.randn(1, 5, 7, generator=generator)
        assert found == [
            pytest.approx(torch.randn(7, generator=generator).norm().item()),
            0,
            0,
        ]

    def test_the_gradient_of_a_gru_fades_with_distance_and_that_of_attention_does_not(
        self,
    ):
        layers = attention_cost.make_layers(32, seed=5)
        recurrent = attention_cost.gradient_by_distance(
            layers["GRU"], 32, [1, 8, 32], seed=5
        )
        attention = attention_cost.gradient_by_distance(
            layers["fused attention"], 32, [1, 8, 32], seed=5
        )
        assert recurrent[0] > 10 * recurrent[1] > 1000 * recurrent[2]
        assert attention[2] > 0.1 * attention[0]
