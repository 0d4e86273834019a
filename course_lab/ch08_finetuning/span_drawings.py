"""The diagrams of answers in a text: windows over a long one, and the sums of a start
and an end. Numbers are those of the functions that are drawn."""

from collections.abc import Sequence

from torch import Tensor

from course_lab.ch08_finetuning.drawings import Tokenizer, draw_token
from course_lib.figures.diagrams import Diagram, Number, Point
from course_lib.figures.stepper import Step
from course_lib.finetuning.spans import (
    NO_ANSWER,
    Window,
    answer_positions,
    best_spans,
    windows,
)


def window_steps(
    question: str,
    text: str,
    answer: tuple[int, int],
    tokenizer: Tokenizer,
    max_length: int,
    stride: int,
) -> list[Step]:
    """A step for each window over a text: what it holds and where it is trained to
    point; the last says which window decides on each token."""
    found = windows(question, text, tokenizer, max_length, stride)
    whole = tokenizer.encode(text, add_special_tokens=False)
    begins = [number * stride for number in range(len(found))]
    steps = []
    for number, (window, begin) in enumerate(zip(found, begins, strict=True), 1):
        held = sum(place is not None for place in window.offsets)
        target = answer_positions(window, *answer)
        says = (
            "It does not hold the whole answer, so it is trained to point at [CLS]:"
            " start 0, end 0."
            if target == NO_ANSWER
            else "It holds the whole answer, so it is trained to point at it: start"
            f" {target[0]}, end {target[1]}."
        )
        picture = _window(
            f"window-{number}",
            tokenizer,
            window,
            whole.tokens,
            range(begin, begin + held),
            target,
        )
        title = f"Window {number} of {len(found)}"
        steps.append(Step(title, text=says, diagram=picture))
    best = [
        next(
            number
            for number, (window, begin) in enumerate(zip(found, begins, strict=True), 1)
            if begin <= token < begin + sum(x is not None for x in window.offsets)
            and [
                yes
                for yes, x in zip(window.best_context, window.offsets, strict=True)
                if x is not None
            ][token - begin]
        )
        for token in range(len(whole.tokens))
    ]
    picture = _decides(whole.tokens, best)
    says = (
        "A token that several windows hold may begin an answer only in the window that"
        " shows most of the text around it."
    )
    return [*steps, Step("Which window decides", text=says, diagram=picture)]


def _window(
    name: str,
    tokenizer: Tokenizer,
    window: Window,
    tokens: Sequence[str],
    held: range,
    target: tuple[int, int],
) -> Diagram:
    """The text with a window over it, and the window as an input."""
    pieces = [tokenizer.pieces[index] for index in window.input_ids]
    d = Diagram(
        name,
        210,
        f"Tokens {held.start} to {held.stop - 1} of the text",
        f"The window's input: {' '.join(pieces)}. Its target: positions {target[0]} to"
        f" {target[1]}.",
    )
    d.label(8, 14, "the text; the window is coloured", "small soft start")
    for i, token in enumerate(tokens):
        x, y = _place(i)
        draw_token(d, x, y, token, "q" if i in held else "n")
    d.label(8, 106, "the window as an input, with its positions", "small soft start")
    for i, piece in enumerate(pieces):
        x, y = _place(i, 116, 44)
        inside = target[0] <= i <= target[1]
        draw_token(d, x, y, piece, "w" if inside else "n")
        d.label(x, y + 31, str(i), "small bold" if inside else "small soft")
    return d


def _decides(tokens: Sequence[str], best: Sequence[int]) -> Diagram:
    d = Diagram(
        "window-decides",
        122,
        "The window that decides on each token",
        ", ".join(f"{t}: window {n}" for t, n in zip(tokens, best, strict=True)) + ".",
    )
    for i, (token, number) in enumerate(zip(tokens, best, strict=True)):
        x, y = _place(i, 10, 52)
        draw_token(d, x, y, token, "wqkv"[number % 4])
        d.label(x, y + 32, str(number), "small bold")
    return d


def _place(index: int, top: Number = 26, high: Number = 28) -> Point:
    """Where a token stands, eight in a line."""
    return 28 + 49 * (index % 8), top + high * (index // 8)


def span_sums(
    question: str, text: str, start: Tensor, end: Tensor, tokenizer: Tokenizer
) -> Diagram:
    """The sum of each start (a row) and each end (a column), and which may be
    chosen."""
    [window] = windows(question, text, tokenizer)
    best = best_spans([start], [end], [window])[0]
    tokens = [tokenizer.pieces[index] for index in window.input_ids]
    inside = [i for i, place in enumerate(window.offsets) if place is not None]
    high, wide = 24, 34
    n = len(tokens)
    d = Diagram(
        "span-sums",
        70 + high * n,
        "Sums of start and end scores",
        "A grid with a row for each start and a column for each end:"
        f" {' '.join(tokens)}. Only spans inside the text that do not end"
        f" before they start may be chosen; the best is {best.text(text)!r}"
        f" with {best.score:.0f}.",
    )
    left, top = 400 - wide * n - 4, 62
    d.label(left - 8, 16, "as end", "small soft end")
    d.label(left - 8, 48, "start", "small soft end")
    for i, token in enumerate(tokens):
        d.label(left + wide * (i + 0.5), 16, token, "small")
        d.label(left + wide * (i + 0.5), 34, f"{end[i]:.0f}", "small bold")
        d.label(left - 26, top + high * (i + 0.5), token, "small end")
        d.label(left - 12, top + high * (i + 0.5), f"{start[i]:.0f}", "small bold")
    for i in range(n):
        for j in range(n):
            may = i in inside and j in inside and i <= j
            span = (window.offsets[i], window.offsets[j])
            chosen = may and (span[0][0], span[1][1]) == (best.start, best.end)  # type: ignore[index]
            x, y = left + wide * j, top + high * i
            role = "w" if chosen else "q" if may else "n"
            d.tensor(x, y, 1, 1, role, (wide, high), shade=[[0.8 * chosen + 0.2 * may]])
            look = "bold" if chosen else "" if may else "small soft"
            d.label(x + wide / 2, y + high / 2, f"{start[i] + end[j]:.0f}", look)
    return d
