"""Chapter 8's learning curves: scores against labels, a panel for each task. Words can
replace them."""

import numpy as np
import pytest
from cases import for_each

from course_lib.figures.panels import label_curves
from course_lib.figures.style import SIZE, alt_text, style_of

LABELS = [32, 200, 2000]
PANELS = {
    task: (
        LABELS,
        {
            "fine-tuned": [[30.0, 50.0, 70.0 + number], [34.0, 52.0, 80.0 + number]],
            "frozen": [[20.0, 30.0, 35.0], [21.0, 31.0, 39.0]],
        },
    )
    for number, task in enumerate(["topic", "pair", "tag", "span"])
}


def test_a_line_is_the_mean_over_seeds_and_its_band_their_range():
    axes = label_curves(PANELS).axes[1]
    assert axes.get_title() == "pair"
    tuned = axes.get_lines()[0]
    assert tuned.get_xdata().tolist() == LABELS
    assert tuned.get_ydata().tolist() == [32, 51, 76]
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert {30, 50, 71, 34, 52, 81} <= set(heights.tolist())


def test_a_way_looks_the_same_in_every_panel():
    for axes in label_curves(PANELS).axes:
        for line in axes.get_lines():
            assert (line.get_color(), line.get_marker()) == style_of(line.get_label())[
                :2
            ]


def test_tasks_with_other_numbers_of_labels_share_the_axis():
    few = ([200], {"fine-tuned": [[50.0], [60.0]]})
    first, second = label_curves({"topic": PANELS["topic"], "pair": few}).axes
    assert first.get_xlim() == second.get_xlim()
    assert second.get_lines()[0].get_xdata().tolist() == [200]
    spread = second.collections[-1].get_segments()[0]
    assert spread.tolist() == [[200, 50], [200, 60]], (
        "its band has no width, so a line shows it"
    )
    assert [tick.get_text() for tick in second.get_xticklabels()] == [
        "32",
        "200",
        "2,000",
    ]


def test_words_tell_the_scores_and_the_figure_fits_the_page():
    figure = label_curves(PANELS, "F1 (%)")
    assert alt_text(figure).startswith(
        "F1 (%) with 32, 200, 2,000 labels. topic, fine-tuned: 32, 51, 75. topic,"
        " frozen"
    )
    assert len(figure.axes) == 4, "no empty panel"
    assert (figure.get_size_inches() <= SIZE).all()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "fine-tuned",
        "frozen",
    ]


@for_each(
    ("panels", "words"),
    [
        ({}, "no curves"),
        ({"tag": ([], {"frozen": np.zeros((2, 3))})}, "no curves"),
        ({"tag": (LABELS, {})}, "no curves"),
        (
            {"tag": (LABELS, {"frozen": np.zeros((3, 2))})},
            r"tag, frozen: scores have shape \(3, 2\)",
        ),
        (
            {"tag": (LABELS, {"frozen": [[1.0, 2.0], [3.0, 4.0]]})},
            r"scores have shape \(2, 2\)",
        ),
        (
            {"tag": (LABELS, {"thawed": np.zeros((2, 3))})},
            "no colour is reserved for 'thawed'",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(panels, words):
    with pytest.raises(ValueError, match=words):
        label_curves(panels)
