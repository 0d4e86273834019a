"""Bars: ratios on top of each other, scores side by side, shares of a whole."""

from collections.abc import Mapping, Sequence

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from course_lib.figures.style import (
    INK,
    SIZE,
    add_legend,
    describe,
    ink_on,
    new_figure,
    style_of,
)

Ratio = tuple[float, float, float]


def ladder(
    rungs: Sequence[str],
    ratios: Mapping[str, Mapping[str, Ratio]],
    xlabel: str,
    title: str = "",
) -> Figure:
    """Draw the ratio of each rung for each model: its median, and a line from the lower
    to the upper quartile."""
    if not rungs or not ratios:
        raise ValueError(
            f"{len(rungs)} rungs and {len(ratios)} models: there must be one of each"
        )
    figure, axes = new_figure(title)
    figure.set_figheight(min(SIZE[1], 1.2 + 0.32 * len(rungs)))
    sentences = []
    for place, (model, of_model) in enumerate(ratios.items()):
        wrong = [
            rung
            for rung, values in of_model.items()
            if rung not in rungs or not 0 < values[0] <= values[1] <= values[2]
        ]
        if wrong:
            raise ValueError(
                f"{model}, {wrong[0]!r}: {of_model[wrong[0]]}; expected a rung of"
                f" {', '.join(rungs)}, and quartiles in order"
            )
        style = style_of(model)
        shift = 0.16 * (place - (len(ratios) - 1) / 2)  # models do not hide each other
        rows = [row for row, rung in enumerate(rungs) if rung in of_model]
        medians = [of_model[rungs[row]][1] for row in rows]
        for row in rows:
            low, _, high = of_model[rungs[row]]
            axes.plot([low, high], [row + shift] * 2, color=style.colour, linewidth=2)
        axes.plot(
            medians,
            [row + shift for row in rows],
            color=style.colour,
            marker=style.marker,
            linestyle="none",
            label=model,
        )
        told = ", ".join(
            f"{rungs[row]} {median:.2f}"
            for row, median in zip(rows, medians, strict=True)
        )
        sentences.append(f"{model}: {told}.")
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rungs)), rungs, fontsize=8)
    axes.set_ylim(len(rungs) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(xlabel)
    add_legend(axes)
    return describe(figure, f"{xlabel}, rung by rung. " + " ".join(sentences))


OURS, THEIRS = "#0072b2", "#d55e00"


def score_bars(
    ours: Mapping[str, tuple[float, float]],
    published: Mapping[str, float],
    xlabel: str,
    title: str = "",
) -> Figure:
    """Draw a bar for each model, from above to below in the order given, with its
    interval and the published score."""
    names = [*ours, *(name for name in published if name not in ours)]
    if not names:
        raise ValueError("no scores: give at least one model")
    figure, axes = new_figure(title)
    rows = {name: row for row, name in enumerate(names)}
    axes.barh(
        [rows[name] for name in ours],
        [score for score, _ in ours.values()],
        color=OURS,
        height=0.6,
        label="ours",
    )
    for name, (score, half) in ours.items():
        if half:
            axes.errorbar(score, rows[name], xerr=half, color=INK, capsize=3)
    if published:
        places = [rows[name] for name in published]
        axes.scatter(
            list(published.values()),
            places,
            color=THEIRS,
            marker="D",
            s=40,
            zorder=3,
            label="published",
        )
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel(xlabel)
    add_legend(axes, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    told = [f"{name}: {score:.0f}" for name, (score, _) in ours.items()]
    told += [f"{name}, published: {score:.0f}" for name, score in published.items()]
    return describe(figure, f"{xlabel}. {'; '.join(told)}.")


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
                axes.text(
                    start + 50 * share,
                    line,
                    f"{100 * share:.0f}",
                    ha="center",
                    va="center",
                    color=ink_on(colour),
                    fontsize=9,
                    # no hatch behind the digits
                    bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5},
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
    add_legend(figure, loc="outside upper center", ncols=min(3, len(parts)))
    return describe(figure, f"Bars of {xlabel}. " + " ".join(sentences))
