"""What every figure of the course has in common: size, ink, one style for each model,
words that can replace it.

What this module does not do: it changes no global setting of matplotlib.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.typing import ColorType
from torch import Tensor

SIZE = (6.0, 4.0)
# the one grey with a contrast of 4.5 against white and against black (WCAG 2.2, 1.4.3)
INK = "#767676"
# even steps of lightness, the same with every kind of colour vision, readable in
# greyscale
HEAT = "cividis"
DIGITS_UP_TO = 12  # cells on a side: up to here each has room for its number


class Style(NamedTuple):
    """How a model is drawn: marker and dash repeat what the colour says, for those who
    cannot tell colours apart."""

    colour: str
    marker: str
    dash: str

    @property
    def line(self) -> dict[str, Any]:
        """How matplotlib is told to draw the model's line."""
        return {"color": self.colour, "linestyle": self.dash}


# Okabe and Ito's colour-blind safe hues, some darkened until the contrast is 3 against
# white and against black.
MODELS: dict[str, Style] = {
    "attention": Style("#0072b2", "o", "-"),
    "no attention": Style("#d55e00", "s", "--"),
    "dot": Style("#0072b2", "o", "-"),
    "additive": Style("#008a64", "^", "-."),
    "bilinear": Style("#b5638f", "D", ":"),
    "untrained": Style(INK, "x", ":"),
    "shuffled": Style("#927200", "v", "--"),
    "greedy": Style("#008a64", "P", "-"),
    "beam search": Style("#b5638f", "D", "--"),
    "sampling": Style("#927200", "X", ":"),
    "scaled": Style("#0072b2", "o", "-"),
    "unscaled": Style("#d55e00", "s", "--"),
    "divided by d": Style("#b5638f", "D", ":"),
    "uniform": Style(INK, "x", ":"),
    "fused attention": Style("#0072b2", "o", "-"),
    "explicit attention": Style("#008a64", "^", "-."),
    "self-attention": Style("#0072b2", "o", "-"),
    "GRU": Style("#d55e00", "s", "--"),
    "8 heads": Style("#0072b2", "o", "-"),
    "2 heads": Style("#008a64", "^", "-."),
    "1 head": Style("#d55e00", "s", "--"),
    "Transformer": Style("#008a64", "^", "-."),
    "GRU with attention": Style("#0072b2", "o", "-"),
    "WordPiece": Style("#0072b2", "o", "-"),
    "BPE": Style("#d55e00", "s", "--"),
    "pieces": Style("#d55e00", "s", "--"),
    "whole words": Style("#008a64", "^", "-."),
    "GELU": Style("#0072b2", "o", "-"),
    "ReLU": Style("#d55e00", "s", "--"),
    "with the mask": Style("#0072b2", "o", "-"),
    "mask forgotten": Style("#d55e00", "s", "--"),
    "tiny": Style("#d55e00", "s", "--"),
    "last layer for [CLS]": Style("#d55e00", "s", "--"),
    "last layer for every token": Style("#0072b2", "o", "-"),
    "sentence-transformers": Style("#008a64", "^", "-."),
    "mini": Style("#0072b2", "o", "-"),
    "base": Style("#008a64", "^", "-."),
    "masked tokens": Style("#0072b2", "o", "-"),
    "word frequencies": Style(INK, "x", ":"),
    "equal chances": Style("#927200", "v", "--"),
    "best n-grams": Style("#d55e00", "s", "--"),
    "grammar words": Style("#d55e00", "s", "--"),
    "names": Style("#008a64", "^", "-."),
    "pronouns": Style("#b5638f", "D", ":"),
    "times of day": Style("#927200", "v", "--"),
    "next sentence": Style("#0072b2", "o", "-"),
    "fine-tuned": Style("#0072b2", "o", "-"),
    "frozen": Style("#008a64", "^", "-."),
    "from scratch": Style("#d55e00", "s", "--"),
    "words": Style("#b5638f", "D", ":"),
    "states": Style("#927200", "v", "--"),
    "as trained": Style("#d55e00", "s", "--"),
    "with a temperature": Style("#0072b2", "o", "-"),
    "ELMo": Style("#d55e00", "s", "--"),
    "GPT": Style("#008a64", "^", "-."),
    "BERT": Style("#0072b2", "o", "-"),
    "rotary": Style("#d55e00", "s", "--"),
    "ModernBERT": Style("#008a64", "^", "-."),
}

_alt_texts: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def style_of(label: str) -> Style:
    """Return how a model is drawn, the same in every figure."""
    name = label.split(",")[0].split("(")[0].strip()
    if name not in MODELS:
        raise ValueError(
            f"no colour is reserved for {label!r}; use one of {', '.join(MODELS)}, "
            "or add a row to course_lib.figures.style.MODELS"
        )
    return MODELS[name]


def contrast_ratio(first: ColorType, second: ColorType) -> float:
    """Return the contrast of two colours (WCAG 2.2, definition of contrast ratio)."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: ColorType) -> float:
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in to_rgb(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def alt_text(figure: Figure) -> str:
    """Say in words what a figure shows, with its main values."""
    if figure not in _alt_texts:
        raise ValueError(
            "this figure was not described by a figure of the course; write"
            " its alt text by hand"
        )
    return _alt_texts[figure]


def ink_on(colour: ColorType) -> str:
    """Return black or white, whichever can be read on a colour."""
    return max(("black", "white"), key=lambda ink: contrast_ratio(ink, colour))


def new_panels(
    rows: int, columns: int, height: float
) -> tuple[Figure, list[list[Axes]]]:
    """Make a figure of empty panels in the style of the course: transparent, and closed
    at once, since a notebook would draw one left open a second time."""
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(SIZE[0], min(SIZE[1], height)),
        dpi=144,
        layout="constrained",
        facecolor="none",
        squeeze=False,
    )
    plt.close(figure)
    for axes in grid.flat:
        axes.set_facecolor("none")
        axes.tick_params(colors=INK, labelcolor=INK)
        axes.xaxis.label.set_color(INK)
        axes.yaxis.label.set_color(INK)
        for spine in axes.spines.values():
            spine.set_color(INK)
    return figure, grid.tolist()


def new_figure(title: str) -> tuple[Figure, Axes]:
    """Make an empty figure in the style of the course."""
    figure, grid = new_panels(1, 1, SIZE[1])
    axes = grid[0][0]
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, color=INK, fontsize=11)
    return figure, axes


def add_legend(of: Axes | Figure, **places: Any) -> None:
    """Say which line is which, in ink, without a frame."""
    legend = of.legend(frameon=False, labelcolor=INK, **{"fontsize": 9, **places})
    legend.get_title().set_color(INK)


def add_colour_bar(
    figure: Figure, image: ScalarMappable, axes: Axes, label: str, **places: Any
) -> None:
    """Say which colour is which number, in ink."""
    bar = figure.colorbar(image, ax=axes, **places)
    bar.set_label(label, color=INK)
    bar.ax.tick_params(colors=INK, labelcolor=INK)
    bar.outline.set_edgecolor(INK)


def draw_cells(
    axes: Axes,
    values: np.ndarray,
    written: Callable[[int, int], str] | None,
    fontsize: float = 8,
) -> ScalarMappable:
    """Draw a cell for each value from 0 to 1, and write into it, in what can be read on
    its colour."""
    image = axes.imshow(
        values, cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    if written is None:
        return image
    for row, column in np.ndindex(*values.shape):
        axes.text(
            column,
            row,
            written(row, column),
            ha="center",
            va="center",
            fontsize=fontsize,
            color=ink_on(colormaps[HEAT](values[row, column])),
        )
    return image


def describe(figure: Figure, alt: str) -> Figure:
    """Attach the words that `alt_text` returns for a figure."""
    _alt_texts[figure] = alt
    return figure


def as_array(values: object) -> np.ndarray:
    """Return numbers, a tensor or not, as float64 on the host."""
    return (
        values.detach().cpu().double().numpy()
        if isinstance(values, Tensor)
        else np.asarray(values)
    ).astype(float)
