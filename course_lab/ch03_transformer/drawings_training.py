"""Diagrams of training and decoding: targets, learning rates, the cache (chapter 3)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from course_lab.ch03_transformer.drawings_whole import SOURCE, TARGET
from course_lib.figures.diagrams import Diagram, Number, Point
from course_lib.figures.explorer import Explorer
from course_lib.figures.stepper import Step, stepped_figure
from course_lib.training.schedules import learning_rate_at
from course_lib.transformer.model import Transformer, TransformerConfig


def smoothed_labels(
    words: Sequence[str], right: int, smoothing: float = 0.1
) -> Diagram:
    """Draw the target distribution of a word, one-hot and smoothed."""
    smoothed = (1 - smoothing) * F.one_hot(torch.tensor(right), len(words)).double()
    smoothed = smoothed + smoothing / len(words)
    diagram = Diagram(
        "smoothed-labels",
        40 + 24 * len(words),
        "One-hot and smoothed target",
        f"The right word is {words[right]}. One-hot, it has probability 1. Smoothed, it"
        f" has {smoothed[right]:.3f}, and each other word has"
        f" {smoothed.min().item():.3f}.",
    )
    diagram.label(70, 12, "one-hot", "bold start")
    diagram.label(234, 12, f"smoothed by {smoothing:g}", "bold start")
    for row, word in enumerate(words):
        y = 30 + 24 * row
        diagram.label(8, y + 8, word, "start" + " bold" * (row == right))
        for x, share in ((70, float(row == right)), (234, float(smoothed[row]))):
            if share:
                diagram.bar(x, y, 110 * share, "w")
            text = f"{share:.3f}" if 0 < share < 1 else f"{share:.0f}"
            diagram.label(x + 110 * share + 6, y + 8, text, "small start")
    return diagram


def learning_rates(dim: int = 512, warmup: int = 4000, steps: int = 40_000) -> Diagram:
    """Draw warm-up and decay: the schedule of Vaswani et al. 2017, equation 3, and the
    linear one of this chapter's models, at the same peak."""
    peak = (dim * warmup) ** -0.5  # where both terms of the equation are equal
    left, bottom, width, height = 46, 190, 330, 150
    diagram = Diagram(
        "learning-rates",
        236,
        "Learning rate: warm-up and decay",
        f"The learning rate rises in a straight line to {peak:.1e} at step"
        f" {warmup:,}. Then the published schedule falls as one over the root of the"
        f" step, and the linear one reaches zero at step {steps:,}.",
    )

    def place(step: Number, rate: Number) -> Point:
        return left + width * step / steps, bottom - height * rate / peak

    diagram.arrow((left, bottom), (left + width + 14, bottom))
    diagram.arrow((left, bottom), (left, bottom - height - 22))
    diagram.label(left, 10, "learning rate", "small soft start")
    diagram.label(399, 226, "training step", "small soft end")
    for step in (0, warmup, steps // 2, steps):
        diagram.label(place(step, 0)[0], bottom + 16, f"{step:,}", "small")
    for rate in (0.0, peak / 2, peak):
        diagram.label(left - 6, place(0, rate)[1], f"{rate * 1e4:.1f}", "small end")
    diagram.label(2, 226, "\N{MULTIPLICATION SIGN} 10^{\N{MINUS SIGN}4}", "small start")
    top = place(warmup, peak)
    diagram.arrow(place(0, 0), top, head=False, gap=0, role="w")
    diagram.label(top[0] - 4, 26, "warm-up", "small start bold")
    for schedule, role, text, at in (
        ("inverse_sqrt", "w", "inverse square root (published)", (left + 40, 162)),
        ("linear", "k", "linear (this chapter's models)", (left + 116, 66)),
    ):
        path = [
            place(step, learning_rate_at(step, peak, schedule, warmup, steps))
            for step in range(warmup, steps + 1, 1000)
        ]
        diagram.arrow(*path, head=False, gap=0, role=role, dash=schedule == "linear")
        diagram.label(*at, text, f"small start tint {role}")
    return diagram


@torch.no_grad()
def decoding_with_a_cache() -> Explorer:
    """Step through greedy decoding: what is kept of the source and of the words
    written, read from the caches of a real (untrained) model."""
    vocabulary = ["<bos>", *TARGET, "<eos>"]
    sizes = TransformerConfig(len(SOURCE), len(vocabulary), 8, 2, 1, 16)
    model = Transformer(sizes).eval()
    state = model.start(torch.arange(3)[None], torch.tensor([3]))
    steps = []
    for step, word in enumerate(vocabulary[:-1]):
        _, state = model.step(state, torch.tensor([step]))
        cache = state.caches[0]
        assert cache.written is not None
        source, written = cache.memory.key.shape[-2], cache.written.key.shape[-2]
        steps.append(
            Step(
                f"Read {word}, write {vocabulary[step + 1]}",
                text=(
                    f"The decoder computes query, key and value of {word} only. Key and"
                    f" value go into the cache, which now holds {written} of each, and"
                    " the query is compared with all keys in it. A second query then"
                    f" asks the {source} source words, whose keys and values were"
                    " computed once."
                ),
                diagram=_cache(step, vocabulary, source, written),
            )
        )
    return stepped_figure(steps, "Decoding the cat sleeps with a cache")


def _cache(step: int, vocabulary: list[str], source: int, written: int) -> Diagram:
    """Draw one step of `decoding_with_a_cache`."""
    word, answer = vocabulary[step], vocabulary[step + 1]
    diagram = Diagram(
        f"cache-{step + 1}",
        300,
        f"Decoding with a cache, step {step + 1}",
        f"The decoder reads {word}. Its query is compared with the key of each word"
        f" read so far ({written}; only the last is new), then with the keys of"
        f" {source} source words. It writes {answer}.",
    )
    diagram.label(2, 72, "source:\ncomputed\nonce", "small soft start")
    diagram.label(2, 206, "read so far:\none new\neach step", "small soft start")
    for y, words, fresh, name in (
        (40, SOURCE[:source], None, "cross-attention"),
        (174, vocabulary[:written], written - 1, "masked self-attention"),
    ):
        for at, text in enumerate(words):
            x, new = 99 + 53 * at, at == fresh
            diagram.label(x + 20, y - 10, text, "bold" if new else "")
            for down, role in ((0, "k"), (30, "v")):
                shade = [[1.0 if new else 0.0] * 4]
                diagram.tensor(x, y + down, 1, 4, role, (10, 24), shade=shade)
        diagram.label(84, y + 12, "K", "k tint bold end")
        diagram.label(84, y + 42, "V", "v tint bold end")
        frame = diagram.group(88, y - 22, 54 * 4, 80)
        diagram.label(196, y + 68, name, "small")
        query = diagram.tensor(340, y + 15, 1, 4, "q", (10, 24))
        diagram.label(360, y + 5, "Q", "q tint bold")
        diagram.arrow(query.left, (frame.right[0] + 2, query.left[1]), role="q")
    diagram.label(399, 284, f"reads {word}", "end")
    diagram.arrow((360, 274), (360, 214))
    diagram.arrow((360, 158), (360, 80))
    diagram.arrow((360, 32), (360, 20))
    diagram.label(399, 10, f"writes {answer}", "bold end")
    return diagram
