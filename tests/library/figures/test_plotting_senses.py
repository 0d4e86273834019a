"""Chapter 7's picture: uses of a word as points, by model and by sense. Words can
replace it."""

import numpy as np
import pytest
from cases import for_each
from matplotlib.colors import to_hex

from course_lib.figures.panels import SENSES, sense_panels
from course_lib.figures.style import SIZE, alt_text, contrast_ratio

USES = ["fruit", "company", "fruit", "fruit"]
PANELS = {
    row: {
        name: np.arange(8.0).reshape(4, 2) * scale
        for name, scale in (("static", 0), ("GPT", 1), ("BERT", 2))
    }
    for row in ("untrained", "trained")
}


def test_each_use_is_a_point_in_the_colour_and_the_marker_of_its_sense():
    axes = sense_panels(PANELS, USES).axes[2]  # BERT, untrained
    fruit, company = axes.collections
    assert fruit.get_offsets().tolist() == [[0, 2], [8, 10], [12, 14]]
    assert company.get_offsets().tolist() == [[4, 6]]
    assert [to_hex(c.get_edgecolor()[0]) for c in (fruit, company)] == [
        colour for colour, _ in SENSES[:2]
    ]
    assert len(fruit.get_paths()[0].vertices) != len(company.get_paths()[0].vertices), (
        "circles and squares"
    )


def test_models_stand_above_columns_and_states_beside_rows():
    axes = sense_panels(PANELS, USES).axes
    assert [a.get_title() for a in axes] == ["static", "GPT", "BERT", "", "", ""]
    assert [a.get_ylabel() for a in axes] == ["untrained", "", "", "trained", "", ""]
    assert not any(len(a.get_xticks()) for a in axes)


def test_words_say_what_is_counted_and_the_legend_names_the_senses():
    figure = sense_panels(PANELS, USES)
    assert alt_text(figure).startswith(
        "Uses of one word as points, by sense (fruit 3, company 1)."
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "fruit",
        "company",
    ]


def test_colours_can_be_seen_on_white_and_black_and_the_figure_fits():
    assert all(
        contrast_ratio(colour, page) >= 3
        for colour, _ in SENSES
        for page in ("white", "black")
    )
    width, height = sense_panels(PANELS, USES).get_size_inches()
    assert width <= SIZE[0]
    assert height <= SIZE[1]


@for_each(
    ("rows", "senses", "words"),
    [
        ({}, USES, "no panels"),
        ({"trained": {}}, USES, "no panels"),
        (
            {"a": {"GPT": np.zeros((4, 2))}, "b": {"BERT": np.zeros((4, 2))}},
            USES,
            "every row must have the panels GPT",
        ),
        ({"a": {"GPT": np.zeros((3, 2))}}, USES, "4 senses; give one for each"),
        (
            {"a": {"GPT": np.zeros((4, 2))}},
            list("wxyz"),
            "there are 4 senses; a picture tells 3 apart",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(rows, senses, words):
    with pytest.raises(ValueError, match=words):
        sense_panels(rows, senses)
