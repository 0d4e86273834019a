"""Scores of several models side by side: a bar for each, and a mark where something
published stands."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from course_lib.figures.style import INK, describe, new_figure

__all__ = ["score_bars"]

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
    legend = axes.legend(
        frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2
    )
    for text in legend.get_texts():
        text.set_color(INK)
    told = [f"{name}: {score:.0f}" for name, (score, _) in ours.items()]
    told += [f"{name}, published: {score:.0f}" for name, score in published.items()]
    return describe(figure, f"{xlabel}. {'; '.join(told)}.")
