"""Figures say what the data says, can be read on white and on black, and can be
replaced by their words."""

import io
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import for_each
from expect import refusal
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from course_lib.figures.curves import learning_curves, score_by_length
from course_lib.figures.maps import alignment_map, attention_heatmap
from course_lib.figures.style import (
    HEAT,
    INK,
    MODELS,
    alt_text,
    contrast_ratio,
    describe,
    style_of,
)
from course_lib.metrics.scores import mean_interval

SOURCE = ["the", "european", "economic", "area", "grows"]
TARGET = ["la", "zone", "économique", "européenne"]
# source, target; not the same when turned
GOLD = [[0, 0], [3, 1], [4, 1], [2, 2], [1, 3]]
WEIGHTS = np.array(
    [
        [0.60, 0.10, 0.10, 0.15, 0.05],
        [0.05, 0.10, 0.20, 0.55, 0.10],
        [0.02, 0.18, 0.70, 0.06, 0.04],
        [
            0.10,
            0.25,
            0.15,
            0.40,
            0.10,
        ],  # the one mistake: it looks at "area" and not at "european"
    ]
)
RUNS = {
    "attention": np.array(
        [[0.2, 0.7, 0.90, 0.99], [0.1, 0.8, 0.94, 0.97], [0.3, 0.6, 0.95, 0.98]]
    ),
    "no attention": [[0.1, 0.3, 0.4, 0.5], [0.0, 0.2, 0.5, 0.4]],
}


def heat_of(figure):
    return figure.axes[0].images[0].get_array()


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def all_figures():
    return {
        "heat map": attention_heatmap(WEIGHTS, SOURCE, TARGET, "a title"),
        "alignment": alignment_map(WEIGHTS, SOURCE, TARGET, GOLD),
        "curves": learning_curves(
            [0, 50, 100, 150],
            RUNS,
            "training time (steps)",
            "accuracy (fraction)",
            "a title",
        ),
        "lengths": score_by_length(
            [10, 20, 30, 40], RUNS, "exact match (fraction)", limits=(0, 1)
        ),
    }


@pytest.fixture(scope="module")
def figures():
    return all_figures()


# -- heat maps
# --------------------------------------------------------------------------------------


def test_rows_are_target_words_and_columns_are_source_words(figures):
    axes = figures["heat map"].axes[0]
    np.testing.assert_array_equal(heat_of(figures["heat map"]), WEIGHTS)
    assert ticks(axes.xaxis) == SOURCE
    assert ticks(axes.yaxis) == TARGET
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("source word", "target word")
    top, bottom = sorted(axes.get_ylim())
    assert axes.yaxis_inverted(), "the first target word stands at the top"
    assert (top, bottom) == (-0.5, 3.5)


def test_colours_mean_the_same_in_every_heat_map():
    flat = attention_heatmap(np.full((2, 3), 1 / 3), ["a", "b", "c"], ["x", "y"])
    assert flat.axes[0].images[0].get_clim() == (0, 1)


def test_each_cell_of_a_small_map_states_its_weight(figures):
    texts = {
        text.get_position(): text.get_text()
        for text in figures["heat map"].axes[0].texts
    }
    assert texts[(3, 1)] == "55"
    assert texts[(0, 2)] == "2"
    assert len(texts) == WEIGHTS.size


def test_a_large_map_has_no_numbers_and_a_label_for_every_word():
    weights = np.eye(13, 20)
    figure = attention_heatmap(
        weights, [f"s{i}" for i in range(20)], [f"t{i}" for i in range(13)]
    )
    assert len(figure.axes[0].texts) == 0
    assert len(ticks(figure.axes[0].xaxis)) == 20


def test_numbers_can_be_read_on_every_colour_of_the_map():
    values = np.linspace(0, 1, 12)[None]
    for text in attention_heatmap(values, list("abcdefghijkl"), ["x"]).axes[0].texts:
        cell = colormaps[HEAT](values[0, int(text.get_position()[0])])
        assert contrast_ratio(text.get_color(), cell) >= 4.5


def test_the_map_can_be_read_in_greyscale():
    """Lightness rises with the weight, in steps that are nowhere flat."""
    contrasts = [
        contrast_ratio(colormaps[HEAT](value), "black")
        for value in np.linspace(0, 1, 33)
    ]
    assert all(brighter > darker * 1.02 for darker, brighter in pairwise(contrasts))


def test_gold_links_are_outlined_at_source_across_and_target_down(figures):
    outlines = [
        patch
        for patch in figures["alignment"].axes[0].patches
        if isinstance(patch, Rectangle)
    ]
    centres = {
        (patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2)
        for patch in outlines
    }
    assert {(round(x, 9), round(y, 9)) for x, y in centres} == {
        (0, 0),
        (3, 1),
        (4, 1),
        (2, 2),
        (1, 3),
    }


def test_an_outline_stands_out_from_every_cell(figures):
    """It is black and white at once: one of the two has a contrast of 3 or more with
    any colour of the map."""
    outlines = [
        patch
        for patch in figures["alignment"].axes[0].patches
        if isinstance(patch, Rectangle)
    ]
    inks = {to_hex(patch.get_edgecolor()) for patch in outlines}
    assert inks == {"#000000", "#ffffff"}
    for value in np.linspace(0, 1, 65):
        assert max(contrast_ratio(ink, colormaps[HEAT](value)) for ink in inks) >= 3


def test_weights_may_be_a_tensor_in_half_precision_with_a_gradient():
    figure = attention_heatmap(
        torch.tensor(WEIGHTS, dtype=torch.bfloat16, requires_grad=True), SOURCE, TARGET
    )
    # bfloat16 keeps 8 bits
    np.testing.assert_allclose(heat_of(figure), WEIGHTS, atol=2e-3)


@for_each(
    ("weights", "source", "target", "words"),
    [
        (
            WEIGHTS.T,
            SOURCE,
            TARGET,
            (
                r"shape \(5, 4\), but there are 4 target words and 5 source"
                r" words.*transpose"
            ),
        ),
        (
            WEIGHTS,
            SOURCE[:4],
            TARGET,
            "4 target words and 4 source words; cut padding off",
        ),
        (
            WEIGHTS * 9 - 1,
            SOURCE,
            TARGET,
            "numbers from 0 to 1.*scores before the softmax",
        ),
        (WEIGHTS * np.nan, SOURCE, TARGET, "numbers from 0 to 1"),
        (np.zeros((0, 5)), SOURCE, [], "at least one"),
    ],
)
def test_weights_that_do_not_fit_are_refused_in_words(weights, source, target, words):
    with refusal(words):
        attention_heatmap(weights, source, target)


def test_a_gold_link_outside_the_map_is_refused():
    with refusal(
        r"gold links \[\(3, 4\)\] lie outside a map of 5 source and 4 target words"
    ):
        alignment_map(WEIGHTS, SOURCE, TARGET, [(3, 1), (3, 4)])


# -- curves
# --------------------------------------------------------------------------------------


def lines_of(figure):
    return {line.get_label().split(" (")[0]: line for line in figure.axes[0].lines}


def bands_of(figure):
    """For each band, lower and upper edge at each x."""
    bands = []
    for band in figure.axes[0].collections:
        points = band.get_paths()[0].vertices
        edges = {x: points[points[:, 0] == x, 1] for x in sorted(set(points[:, 0]))}
        bands.append(
            {float(x): (float(y.min()), float(y.max())) for x, y in edges.items()}
        )
    return bands


def test_the_line_is_the_mean_over_seeds(figures):
    line = lines_of(figures["curves"])["attention"]
    np.testing.assert_array_equal(line.get_xdata(), [0, 50, 100, 150])
    np.testing.assert_allclose(line.get_ydata(), [0.2, 0.7, 0.93, 0.98], rtol=1e-12)


def test_the_band_is_the_t_interval_over_seeds_and_not_their_spread(figures):
    band = bands_of(figures["curves"])[0]
    mean, half = mean_interval([0.90, 0.94, 0.95])
    assert band[100] == pytest.approx((mean - half, mean + half), abs=1e-12)
    assert 2 * half > 2 * (0.95 - 0.90), (
        "the interval of three seeds is wider than their spread"
    )


def test_bands_stop_where_the_score_does(figures):
    band = bands_of(figures["lengths"])[1]
    assert band[0.0][0] == 0  # the interval of two seeds, 0.1 and 0.0, reaches below 0
    assert max(high for _, high in band.values()) == 1


def test_one_seed_has_no_band_and_the_legend_counts_seeds():
    figure = learning_curves(
        [1, 2],
        {"dot": [[0.5, 0.6]], "additive": [[0.4, 0.5], [0.5, 0.7]]},
        "x (steps)",
        "y (nats)",
    )
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["dot (1 seed)", "additive (2 seeds)"]
    assert len(figure.axes[0].collections) == 1


def test_where_each_model_ran_once_the_legend_speaks_of_one_run():
    figure = learning_curves(
        [1, 2], {"dot": [[0.5, 0.6]], "additive": [[0.4, 0.5]]}, "x (steps)", "y (nats)"
    )
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["dot", "additive"]
    assert legend.get_title().get_text() == "one run"


@pytest.mark.parametrize("count", [2, 5])
def test_a_legend_of_many_curves_stands_beside_them(count):
    figure = learning_curves(
        [1, 2],
        {name: [[0.1, 0.9]] for name in list(MODELS)[:count]},
        "x (steps)",
        "y (nats)",
    )
    figure.draw_without_rendering()
    axes = figure.axes[0]
    beside = axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
    assert beside == (count > 4)
    assert axes.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_groups_of_lengths_are_named_by_their_ends():
    figure = score_by_length(
        [10, 25, 60], {"attention": [[0.1, 0.2, 0.3]]}, "BLEU (0 to 100)", shortest=3
    )
    axes = figure.axes[0]
    assert ticks(axes.xaxis) == ["3–10", "11–25", "26–60"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "length of the source sentence (words)",
        "BLEU (0 to 100)",
    )


def test_a_model_looks_the_same_in_every_figure(figures):
    for name in RUNS:
        curve = lines_of(figures["curves"])[name]
        lengths = lines_of(figures["lengths"])[name]
        assert curve.get_color() == lengths.get_color() == MODELS[name].colour
        assert curve.get_linestyle() == lengths.get_linestyle() == MODELS[name].dash
        assert lengths.get_marker() == MODELS[name].marker


@for_each(
    ("curves", "words"),
    [
        ({}, "no curves"),
        (
            {"attention": [[0.1, 0.2, 0.3]]},
            r"attention: runs have shape \(1, 3\); expected \[seeds, 2\]",
        ),
        ({"attention": np.zeros((0, 2))}, r"shape \(0, 2\)"),
        (
            {"mystery": [[0.1, 0.2]]},
            "no colour is reserved for 'mystery'; use one of attention, no attention",
        ),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused_in_words(curves, words):
    with refusal(words):
        learning_curves([0, 1], curves, "x (steps)", "y (nats)")


def test_groups_must_come_in_order():
    with refusal(r"upper_edges \[20, 10\] must increase"):
        score_by_length([20, 10], {"attention": [[0.1, 0.2]]}, "BLEU (0 to 100)")


# -- ink, size, words
# --------------------------------------------------------------------------------------


@for_each("name", MODELS)
def test_the_colour_of_a_model_stands_out_from_white_and_from_black(name):
    """WCAG 2.2, 1.4.11: 3 to 1 for the parts of a graphic."""
    assert (
        min(contrast_ratio(MODELS[name].colour, page) for page in ("white", "black"))
        >= 3
    )


def test_text_can_be_read_on_white_and_on_black(figures):
    """WCAG 2.2, 1.4.3: 4.5 to 1. Numbers in cells stand on their cell and are tested
    above."""
    assert min(contrast_ratio(INK, page) for page in ("white", "black")) >= 4.5
    for figure in figures.values():
        for axes in figure.axes:
            texts = [
                axes.title,
                axes.xaxis.label,
                axes.yaxis.label,
                *axes.get_xticklabels(),
                *axes.get_yticklabels(),
            ]
            legend = axes.get_legend()
            texts += [legend.get_title(), *legend.get_texts()] if legend else []
            assert {to_hex(text.get_color()) for text in texts if text.get_text()} <= {
                INK
            }


def test_contrast_as_the_standard_defines_it():
    assert contrast_ratio("black", "white") == pytest.approx(21)
    # the standard's well-known near miss
    assert contrast_ratio("white", "#777777") == pytest.approx(4.478, abs=1e-3)
    assert contrast_ratio("#ff0000", "#ff0000") == 1


@pytest.mark.parametrize(
    "group",
    [
        ["dot", "additive", "bilinear", "no attention", "untrained", "shuffled"],
        ["greedy", "beam search", "sampling"],
    ],
)
def test_models_that_meet_in_a_figure_differ_in_more_than_colour(group):
    for part in ("colour", "marker"):
        assert len({getattr(MODELS[name], part) for name in group}) == len(group)


def test_figures_are_small_and_their_background_is_clear(figures):
    for figure in figures.values():
        width, height = figure.get_size_inches()
        assert width <= 6
        assert height <= 4
        with io.BytesIO() as file:
            figure.savefig(file, dpi=40)
            image = Image.open(file).convert("RGBA")
        assert image.size == (240, 160), "nothing hangs over the edge"
        corners = [
            image.getpixel(place)[3]
            for place in ((0, 0), (239, 0), (0, 159), (239, 159))
        ]
        assert corners == [0, 0, 0, 0]


def test_ink_stays_within_the_figure(figures):
    """Long words and slanted labels must not be cut off."""
    long_words = ["the", "international", "organisation", "organisation"]
    longest = attention_heatmap(
        np.eye(3, 4), long_words, ["l'", "organisation", "internationale"], "a title"
    )
    for figure in [*figures.values(), longest]:
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= 6
        assert box.y1 <= 4


def test_axes_are_labelled(figures):
    for figure in figures.values():
        for axes in figure.axes:
            assert axes.get_ylabel(), "the colour bar is an axis too"
        assert figure.axes[0].get_xlabel()


def test_no_figure_is_left_open():
    """A notebook draws what pyplot holds: a figure returned and left open is shown
    twice."""
    before = plt.get_fignums()
    all_figures()
    assert plt.get_fignums() == before


def test_nothing_global_changes():
    before = dict(plt.rcParams)
    all_figures()
    assert dict(plt.rcParams) == before


def test_words_say_what_a_heat_map_shows(figures):
    assert (
        alt_text(figures["heat map"])
        == "Heat map of attention weights, 4 target words by 5 source words. Largest"
        " weight of each target word: la on the 0.60, zone on area 0.55, économique"
        " on economic 0.70, européenne on area 0.40."
    )


def test_words_count_how_often_attention_agrees_with_gold(figures):
    words = "3 of 4 target words attend most to a word that gold links them to"
    assert words in alt_text(figures["alignment"])


def test_words_give_the_ends_of_each_curve(figures):
    text = alt_text(figures["lengths"])
    assert (
        "attention: from 0.2 at the left to 0.98 at the right, mean of 3 seeds" in text
    )
    assert (
        "no attention: from 0.05 at the left to 0.45 at the right, mean of 2 seeds"
        in text
    )
    assert "up to 10, 20, 30, 40 words" in text


def test_a_figure_from_elsewhere_has_no_words():
    with refusal("write its alt text by hand"):
        alt_text(Figure())
    assert (
        alt_text(describe(Figure(), "Two lines that cross.")) == "Two lines that cross."
    )


def test_a_label_may_say_more_than_the_name_of_the_model():
    assert (
        style_of("no attention (training)")
        == style_of("no attention, seed 2")
        == MODELS["no attention"]
    )
