"""Chapter 5's pictures: shares of a whole, functions, a ladder. Words can
replace each of them."""

import numpy as np
import pytest
import torch
from cases import for_each

from course_lib.figures.bars import PARTS, ladder, share_bars
from course_lib.figures.curves import function_curves
from course_lib.figures.style import INK, alt_text, contrast_ratio, style_of

SHARES = {
    "tiny": {"embeddings": 90, "attention": 7, "heads": 3},
    "large": {"embeddings": 10, "attention": 80, "heads": 10},
}


class TestShares:
    def test_parts_lie_end_to_end_and_make_up_the_whole(self):
        axes = share_bars(SHARES, "share of the parameters (%)").axes[0]
        bars = [bar for container in axes.containers for bar in container]
        of_tiny = [
            (bar.get_x(), bar.get_width())
            for bar in bars
            if abs(bar.get_y() + 0.35) < 1e-9
        ]
        np.testing.assert_allclose(of_tiny, [(0, 90), (90, 7), (97, 3)])
        assert [tick.get_text() for tick in axes.get_yticklabels()] == ["tiny", "large"]
        assert axes.yaxis_inverted(), "the first model stands on top"

    def test_only_a_part_with_room_states_its_share(self):
        axes = share_bars(SHARES, "share (%)").axes[0]
        assert [text.get_text() for text in axes.texts] == ["90", "7", "10", "80", "10"]

    def test_a_part_has_one_colour_and_hatch_in_all_bars_and_one_entry_in_the_legend(
        self,
    ):
        figure = share_bars(SHARES, "share (%)")
        hatches = [
            bar.get_hatch()
            for container in figure.axes[0].containers
            for bar in container
        ]
        assert hatches == [hatch for _, hatch in PARTS[:3]] * 2
        assert [text.get_text() for text in figure.legends[0].get_texts()] == list(
            SHARES["tiny"]
        )
        for colour, _ in PARTS:
            assert (
                min(contrast_ratio(colour, "white"), contrast_ratio(colour, "black"))
                >= 3
            )

    def test_words_give_every_share(self):
        assert "large: embeddings 10%, attention 80%, heads 10%." in alt_text(
            share_bars(SHARES, "share (%)")
        )

    @for_each(
        ("counts", "message"),
        [
            ({}, "there are 0 parts"),
            ({"x": dict.fromkeys("abcdef", 1)}, "there are 6 parts; expected 1 to 5"),
            (
                {"x": {"a": 1}, "y": {"b": 1}},
                "y has .*expected a count of at least 0 for each of a",
            ),
            ({"x": {"a": 2, "b": -1}}, "x has"),
            ({"x": {"a": 0}}, "x has"),
        ],
    )
    def test_what_is_no_share_is_refused(self, counts, message):
        with pytest.raises(ValueError, match=message):
            share_bars(counts, "share (%)")


class TestFunctions:
    X = torch.linspace(-3, 2, 6)

    def test_each_function_is_drawn_in_its_own_style(self):
        axes = function_curves(
            self.X, {"GELU": self.X.sin(), "ReLU": self.X.relu()}, "input", "output"
        ).axes[0]
        curves = {
            line.get_label(): line
            for line in axes.lines
            if not line.get_label().startswith("_")
        }
        np.testing.assert_allclose(
            curves["ReLU"].get_ydata(), [0, 0, 0, 0, 1, 2], atol=1e-6
        )
        assert curves["GELU"].get_color() == style_of("GELU").colour
        zeros = [
            line.get_color() for line in axes.lines if line.get_label().startswith("_")
        ]
        assert zeros == [INK, INK]

    def test_words_say_where_a_function_is_least(self):
        words = alt_text(
            function_curves(self.X, {"GELU": (self.X + 1) ** 2 - 1}, "input", "output")
        )
        assert "GELU: from 3.00 to 8.00, least -1.00 at -1.00." in words

    @pytest.mark.parametrize(
        ("x", "curves"),
        [
            ([0.0], {"ReLU": [1.0]}),
            ([0.0, 0.0], {"ReLU": [1.0, 1.0]}),
            ([0.0, 1.0], {}),
        ],
    )
    def test_places_that_are_no_axis_are_refused(self, x, curves):
        with pytest.raises(ValueError, match="give increasing places"):
            function_curves(x, curves, "input", "output")

    def test_a_function_needs_a_value_at_each_place(self):
        with pytest.raises(ValueError, match="ReLU has values of shape"):
            function_curves([0.0, 1.0], {"ReLU": [1.0, 2.0, 3.0]}, "input", "output")


RUNGS = ("nothing", "no mask", "bf16")
RATIOS = {
    "tiny": {
        "nothing": (0.9, 1.0, 1.3),
        "no mask": (1.4, 1.5, 1.7),
        "bf16": (2.0, 2.5, 2.6),
    },
    "mini": {"nothing": (0.8, 0.9, 1.1), "bf16": (1.2, 1.6, 1.9)},
}


class TestLadder:
    def test_markers_are_medians_and_lines_reach_from_quartile_to_quartile(self):
        axes = ladder(RUNGS, RATIOS, "times as fast").axes[0]
        medians = {
            line.get_label(): list(line.get_xdata())
            for line in axes.lines
            if line.get_label() in RATIOS
        }
        assert medians == {"tiny": [1.0, 1.5, 2.5], "mini": [0.9, 1.6]}
        spans = [
            tuple(line.get_xdata())
            for line in axes.lines
            if len(line.get_xdata()) == 2 and line.get_linewidth() == 2
        ]
        assert spans[:3] == [(0.9, 1.3), (1.4, 1.7), (2.0, 2.6)]
        assert (1, 1) in [tuple(line.get_xdata()) for line in axes.lines]
        assert axes.yaxis_inverted(), "the first rung stands on top"

    def test_a_rung_that_a_model_lacks_leaves_its_row_empty(self):
        axes = ladder(RUNGS, RATIOS, "times as fast").axes[0]
        (mini,) = [line for line in axes.lines if line.get_label() == "mini"]
        assert [round(row) for row in mini.get_ydata()] == [0, 2]

    def test_words_give_every_median(self):
        words = alt_text(ladder(RUNGS, RATIOS, "times as fast"))
        assert (
            words
            == "times as fast, rung by rung. tiny: nothing 1.00, no mask 1.50, bf16"
            " 2.50. mini: nothing 0.90, bf16 1.60."
        )

    @for_each(
        ("rungs", "ratios", "message"),
        [
            ([], {"tiny": {}}, "0 rungs and 1 models"),
            (["a"], {}, "1 rungs and 0 models"),
            (
                ["a"],
                {"tiny": {"b": (1.0, 1.0, 1.0)}},
                "tiny, 'b'.*expected a rung of a",
            ),
            (["a"], {"tiny": {"a": (1.0, 2.0, 1.5)}}, "quartiles in order"),
            (["a"], {"tiny": {"a": (0.0, 1.0, 1.5)}}, "quartiles in order"),
        ],
    )
    def test_what_is_no_ladder_is_refused(self, rungs, ratios, message):
        with pytest.raises(ValueError, match=message):
            ladder(rungs, ratios, "times as fast")
