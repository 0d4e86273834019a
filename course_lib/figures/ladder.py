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
    axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="best")
    return describe(figure, f"{xlabel}, rung by rung. " + " ".join(sentences))
