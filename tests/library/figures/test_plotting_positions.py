"""Pictures of positions: each row is a position, each column a feature, and words can
replace them."""

import math

import numpy as np
import pytest
import torch

from course_lib.figures.maps import position_heatmap
from course_lib.figures.style import SIZE, alt_text
from course_lib.transformer.positions import sinusoidal_positions


def test_positions_run_downwards_and_features_to_the_right():
    table = sinusoidal_positions(length=7, dim=10)
    figure = position_heatmap(table)
    image = figure.axes[0].images[0]
    assert np.array_equal(image.get_array(), table.double().numpy())
    # white is 0 in every picture, whatever the values
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    assert image.origin == "upper"
    assert figure.axes[0].get_ylabel() == "position (words from the start)"
    assert tuple(figure.get_size_inches()) == SIZE


def test_words_tell_the_fast_side_from_the_slow_one():
    """The fastest wave, sin k, changes sign every pi words; the slowest not
    once in 60."""
    words = alt_text(position_heatmap(sinusoidal_positions(60, 64)))
    assert words.startswith("60 positions by 64 features.")
    # the cosine, half a step ahead of the sine, gets the last one in
    assert round(59 / math.pi) == 19
    assert (
        "on the left changes sign up to 19 times, one on the right up to 0 times"
        in words
    )


def test_values_that_no_colour_stands_for_are_refused():
    with pytest.raises(ValueError, match="values from -1 to 1"):
        position_heatmap(torch.arange(6.0).view(3, 2))
    with pytest.raises(ValueError, match="at least one"):
        position_heatmap(np.zeros((0, 4)))
