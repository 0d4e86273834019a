"""A ladder of measures, each on top of those before it: how many times as fast each
rung is as where it all began."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_lib.figures.style import INK, SIZE, describe, new_figure, style_of

__all__ = ["ladder"]

Ratio = tuple[float, float, float]


def ladder(
    rungs: Sequence[str],
    ratios: Mapping[str, Mapping[str, Ratio]],
    xlabel: str,
    title: str = "",
) -> Figure:
    """Draw the ratio of each rung for each model: its median, and a line from the lower
    to the upper quartile.

    Parameters
    ----------
    rungs
        The measures, in the order in which they are taken, from top to bottom.
    ratios
        For each model of `course_lib.figures.style.MODELS`, by rung: lower quartile,
        median and upper quartile, each above 0. A rung that a model lacks is left out.
    xlabel
        What the ratio says: "times as fast as before".
    title
        A line above the figure.

    Returns
    -------
    Figure
        One line of markers for each model, one row for each rung, and a line at 1.

    Raises
    ------
    ValueError
        If there is nothing to draw, a model has a rung that is not listed, or quartiles
        and median are out of order.

    Notes
    -----
    Chapter: bert

    Examples
    --------
    >>> of_tiny = {"no mask": (1.0, 1.1, 1.2), "bf16": (1.9, 2.0, 2.2)}
    >>> figure = ladder(["no mask", "bf16"], {"tiny": of_tiny}, "times as fast")
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['no mask', 'bf16']
    """
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
    axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="best")
    return describe(figure, f"{xlabel}, rung by rung. " + " ".join(sentences))
