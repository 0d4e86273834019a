"""Where something sits: one bar for each model, cut into parts that make up the
whole."""

from collections.abc import Mapping

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from course_lib.figures.style import INK, contrast_ratio, describe, new_figure

__all__ = ["share_bars"]

# A part keeps its place and its hatch in every bar, for those who cannot tell its
# colour.
PARTS = (
    ("#0072b2", ""),
    ("#d55e00", "//"),
    ("#008a64", ".."),
    ("#b5638f", "xx"),
    ("#927200", "--"),
)
ROOM_FOR_DIGITS = 0.06  # the least share in whose piece of the bar a number can be read


def share_bars(
    counts: Mapping[str, Mapping[str, int]], xlabel: str, title: str = ""
) -> Figure:
    """Draw how the parts of each model share what it has, in percent."""
    parts = list(next(iter(counts.values()), {}))
    if not 1 <= len(parts) <= len(PARTS):
        raise ValueError(f"there are {len(parts)} parts; expected 1 to {len(PARTS)}")
    figure, axes = new_figure(title)
    sentences = []
    for line, (model, of_model) in enumerate(counts.items()):
        whole = sum(of_model.values())
        if list(of_model) != parts or min(of_model.values()) < 0 or whole == 0:
            raise ValueError(
                f"{model} has {dict(of_model)}; expected a count of at least 0 for each"
                f" of {', '.join(parts)}"
            )
        shares = {part: count / whole for part, count in of_model.items()}
        start = 0.0
        for (part, share), (colour, hatch) in zip(shares.items(), PARTS, strict=False):
            bar = axes.barh(
                line,
                100 * share,
                left=start,
                height=0.7,
                color=colour,
                label=part if line == 0 else None,
            )
            bar.patches[0].set(
                hatch=hatch, edgecolor=to_rgba("white", 0.35), linewidth=0
            )
            if share >= ROOM_FOR_DIGITS:
                ink = max(
                    ("black", "white"), key=lambda ink: contrast_ratio(ink, colour)
                )
                box = {
                    "facecolor": colour,
                    "edgecolor": "none",
                    "pad": 1.5,
                }  # no hatch behind the digits
                middle = start + 50 * share
                axes.text(
                    middle,
                    line,
                    f"{100 * share:.0f}",
                    ha="center",
                    va="center",
                    color=ink,
                    fontsize=9,
                    bbox=box,
                )
            start += 100 * share
        sentences.append(
            f"{model}: "
            + ", ".join(f"{part} {100 * share:.0f}%" for part, share in shares.items())
            + "."
        )
    axes.set_yticks(range(len(counts)), list(counts))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(xlabel)
    columns = 3 if len(parts) > 3 else len(parts)
    figure.legend(
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        labelcolor=INK,
        fontsize=9,
    )
    return describe(figure, f"Bars of {xlabel}. " + " ".join(sentences))
