"""The diagrams of chapter 10: the family on a time line, shared blocks, teacher and
student, the masks and streams of XLNet, and text to text. Numbers, shapes and masks are
those of the functions and models that are drawn.
"""

from collections.abc import Sequence
from textwrap import fill

import torch
from torch import Tensor, nn

from course_lib.bert.model import BertForPreTraining
from course_lib.family.albert import AlbertForPreTraining
from course_lib.family.distilbert import DistilBertForMaskedLM
from course_lib.family.inputs import corrupt_spans, permutation_masks
from course_lib.figures.diagrams import Area, Diagram

LANES = ("decoder", "encoder", "both")
#: When a model was first published (a preprint, or a post), its lane, and its change.
FAMILY = (
    ("June 2018", "GPT", 0, "pre-train, then fine-tune"),
    ("Oct 2018", "BERT", 1, "sees both sides"),
    ("Feb 2019", "GPT-2", 0, "larger; tasks in the input"),
    ("Apr 2019", "ERNIE", 1, "masks whole names"),
    ("June 2019", "XLNet", 1, "predicts in random orders"),
    ("July 2019", "RoBERTa", 1, "more text, more steps"),
    ("Sept 2019", "ALBERT", 1, "one block for all layers"),
    ("Oct 2019", "DistilBERT", 1, "learns from a teacher"),
    ("Oct 2019", "T5", 2, "every task is text to text"),
    ("Mar 2020", "ELECTRA", 1, "finds replaced tokens"),
    ("Apr 2020", "ColBERT", 1, "a vector for each token"),
    ("May 2020", "GPT-3", 0, "examples in the prompt"),
    ("June 2020", "DeBERTa", 1, "content and position apart"),
    ("Dec 2024", "ModernBERT", 1, "long inputs, rotary positions"),
)
STREAMS = ("content", "query")
TEACHING = ("copied layers", "soft targets", "masked token", "cosine")


def time_line(here: str | None = None) -> Diagram:
    """Who was published when, and as which kind of Transformer."""
    high, top = 34, 44
    d = Diagram(
        f"time-line-{(here or 'all').lower()}",
        top + high * len(FAMILY) + 4,
        "The family on a time line" + f": {here}" * bool(here),
        "From top to bottom: "
        + "; ".join(
            f"{date}, {name} ({LANES[lane]}): {change}"
            for date, name, lane, change in FAMILY
        )
        + ".",
        here,
    )
    places = (102, 156, 202)
    for x, kind in zip(places, LANES, strict=True):
        d.label(x, 14, kind, "small")
        d.arrow((x, 28), (x, top + high * len(FAMILY)), head=False)
    for number, (date, name, lane, change) in enumerate(FAMILY):
        y = top + high * number
        with d.part(name):
            d.label(72, y + 9, date, "small soft end")
            d.group(places[lane] - 7, y + 2, 14, 14, here=True)
            d.label(222, y + 5, name, "bold start")
            d.label(222, y + 20, change, "small soft start")
    return d


def count(*modules: nn.Module) -> int:
    """The parameters of modules, each once."""
    return sum(p.numel() for p in nn.ModuleList(modules).parameters())


def shared_blocks(bert: BertForPreTraining, albert: AlbertForPreTraining) -> Diagram:
    """The weights of BERT, and those of an ALBERT with the same sizes."""
    layers = len(bert.bert.blocks)
    counts = [
        (count(model.bert.embeddings), count(*model.bert.blocks))
        for model in (bert, albert)
    ]
    narrow = albert.bert.embeddings.token.embedding_dim
    d = Diagram(
        "shared-blocks",
        64 + 46 * layers + 96,
        "Parameters that layers share",
        f"Read upwards. Left, BERT: embeddings with {counts[0][0]:,} parameters, then"
        f" {layers} blocks of their own with {counts[0][1]:,} together. Right, ALBERT:"
        f" embeddings of {narrow} features that a matrix widens, {counts[1][0]:,}"
        f" parameters, then {layers} times one block, {counts[1][1]:,} parameters.",
    )
    foot = 40 + 46 * layers
    for x, name, (first, blocks), own in zip(
        (100, 300), ("BERT", "ALBERT"), counts, (True, False), strict=True
    ):
        d.label(x, 14, name, "bold")
        d.arrow((x, 36), (x, 26), gap=0)
        for layer in range(layers):
            y = 36 + 46 * (layers - 1 - layer)
            text = f"block {layer + 1}" if own else "the block"
            box = d.box(x, y, 110, 30, text)
            d.arrow((x, y + 46), box.bottom, gap=0)
        embed = d.box(
            x, foot - 4, 156, 34, "embeddings" if own else f"{narrow} features, widened"
        )
        d.arrow((x, foot + 48), embed.bottom)
        d.label(x, foot + 58, "the cat sleeps", "small")
        d.label(x, foot + 88, f"{first:,}\n+ {blocks:,} parameters", "small")
    d.brace((362, 36), (362, foot - 14), 10, "")
    d.label(376, 18, "same\nweights", "small")
    return d


def copied_from(teacher: BertForPreTraining, student: DistilBertForMaskedLM) -> list:
    """For each block of a student, the block of its teacher with equal weights."""

    def equal(one: nn.Module, other: nn.Module) -> bool:
        pairs = zip(one.parameters(), other.parameters(), strict=True)
        return all(torch.equal(a, b) for a, b in pairs)

    return [
        next(i for i, theirs in enumerate(teacher.bert.blocks) if equal(theirs, ours))
        for ours in student.bert.blocks
    ]


def teacher_and_student(
    teacher: BertForPreTraining,
    student: DistilBertForMaskedLM,
    words: Sequence[str],
    logits: Tensor,
    temperature: float,
    here: str | None = None,
) -> Diagram:
    """Distillation: what the student is given, and what it is asked for; `logits` are
    those of the teacher and of the student, ``(2, V)``."""
    soft = [[f"{x:.2f}" for x in row] for row in (logits / temperature).softmax(-1)]
    copied = copied_from(teacher, student)
    layers, top = len(teacher.bert.blocks), 164
    d = Diagram(
        f"teacher-student-{(here or 'all').replace(' ', '-')}",
        top + 46 * layers + 56,
        "Distillation: a teacher and its student" + f": {here}" * bool(here),
        f"Read upwards. Both read: the cat [MASK]. The teacher has {layers} blocks, the"
        f" student {len(copied)}, which start as the teacher's blocks"
        f" {', '.join(str(i + 1) for i in copied)}. Probabilities of"
        f" {', '.join(words)} at temperature {temperature:g}: teacher"
        f" {', '.join(soft[0])}, student {', '.join(soft[1])}. Three losses: the soft"
        " targets compare these, the masked token is the label sleeps, and the cosine"
        " compares the states below the heads.",
        here,
    )
    foot = top + 46 * layers
    places, stacks = (92, 308), (layers, len(copied))
    for x, name in zip(places, ("teacher", "student"), strict=True):
        d.label(x, foot + 44, name, "bold")
        d.label(x, foot + 24, "the cat [MASK]", "small")
    boxes: list[list[Area]] = [[], []]
    for side, (x, number) in enumerate(zip(places, stacks, strict=True)):
        for layer in range(number):
            room = 46 * layers / number
            y = foot - room * (layer + 0.5) - 15
            boxes[side].append(d.box(x, y, 100, 30, f"block {layer + 1}"))
        for low, high in zip(boxes[side], boxes[side][1:], strict=False):
            d.arrow(low.top, high.bottom)
        d.arrow((x, foot + 14), boxes[side][0].bottom)
        d.arrow(boxes[side][-1].top, (x, top - 8), head=False)
        d.tensor(x - 28, top - 22, 1, 4, "r", (14, 14))
        d.arrow((x, top - 22), (x, 106))
        d.tensor(x - 60, 80, 1, 3, "w", (40, 24), [soft[side]])
        for i, word in enumerate(words):
            d.label(x - 40 + 40 * i, 70, word, "small")
    with d.part(TEACHING[0]):
        for number, index in enumerate(copied):
            d.arrow(boxes[0][index].right, boxes[1][number].left, role="r", dash=True)
        d.label(200, foot + 4, "copied once", "small")
    with d.part(TEACHING[1]):
        d.arrow((154, 92), (246, 92), role="w")
        d.label(200, 106, "soft targets", "small")
    with d.part(TEACHING[2]):
        d.label(308, 14, "label: sleeps", "small")
        d.arrow((308, 24), (308, 58), role="w")
        d.label(316, 40, "masked token", "small start")
    with d.part(TEACHING[3]):
        d.arrow((122, top - 15), (278, top - 15), role="v")
        d.label(200, top - 1, "cosine", "small")
    d.label(92, 40, f"ϑ = {temperature:g}", "small soft")
    return d


def two_streams(words: Sequence[str], order: Sequence[int], word: int) -> Diagram:
    """The masks of an order of prediction, and the two states of one word."""
    masks, size, cell = permutation_masks(order), len(words), 36
    plain = permutation_masks(range(size))
    grids = (
        ("text order", plain.content),
        ("content h", masks.content),
        ("query g", masks.query),
    )
    sees = {
        stream: [words[j] for j in range(size) if getattr(masks, stream)[word, j]]
        for stream in STREAMS
    }
    foot = 66 + cell * size
    d = Diagram(
        "two-streams",
        foot + 152,
        "Permutation masks and two streams",
        f"Order of prediction: {', '.join(words[i] for i in order)}. Rows attend to"
        " columns. "
        + " ".join(
            f"{name}: "
            + "; ".join(
                f"{words[i]} sees "
                + (", ".join(words[j] for j in range(size) if mask[i, j]) or "nothing")
                for i in range(size)
            )
            + "."
            for name, mask in grids
        )
        + f" Below, the two states of {words[word]}: the content state is made of"
        f" {', '.join(sees['content'])}; the query state of {', '.join(sees['query'])}"
        " and of its own position.",
    )
    width = cell * size
    for number, (name, mask) in enumerate(grids):
        left = 52 + number * (width + 10)
        d.label(left + width / 2, 12, name, "bold")
        for j, text in enumerate(words):
            d.label(left + cell * (j + 0.5), 36, text, "sub")
        numbers = [[int(x) if x else "" for x in row] for row in mask.tolist()]
        d.tensor(
            left, 48, size, size, "w", (cell, cell), numbers, mask.float().tolist()
        )
    for i, text in enumerate(words):
        d.label(46, 48 + cell * (i + 0.5), text, "small end")
    for x, stream, letter, middle in (
        (10, "content", "h", 102),
        (210, "query", "g", 302),
    ):
        state = d.box(middle, foot + 4, 90, 26, f"{letter}_{{{words[word]}}}", "v")
        for j, text in enumerate(words):
            place = (x + 32 + 61 * j, foot + 78)
            own = j == word and stream == "query"
            d.box(*place, 54, 24, f"pos. {j + 1}" if own else f"h_{{{text}}}", "r")
            if getattr(masks, stream)[word, j] or own:
                end = state.at(0.5 + 0.3 * (j - (size - 1) / 2), 1)
                d.arrow(place, end, dash=own)
        d.label(middle, foot + 124, f"{stream} stream", "small")
    d.label(
        200, foot + 144, "order: " + ", ".join(words[i] for i in order), "small soft"
    )
    return d


def denoising(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """What T5 reads and writes in pre-training, as words."""
    words = [*text.split(), "<X>", "<Y>", "<Z>"]
    numbers = range(len(words))
    source, target = corrupt_spans(numbers[:-3], spans, numbers[-3:][: len(spans) + 1])
    return " ".join(words[i] for i in source), " ".join(words[i] for i in target)


def text_to_text(text: str, spans: Sequence[tuple[int, int]]) -> Diagram:
    """Four tasks, one encoder with one decoder."""
    read, written = denoising(text, spans)
    tasks = (
        ("translate English to\nFrench: the cat sleeps", "le chat dort"),
        ("sst2 sentence:\na stunning film", "positive"),
        ("stsb sentence1: the cat\nsleeps sentence2:\nthe cat is asleep", "4.8"),
        (f"pre-training:\n{read}", written),
    )
    high = 58
    d = Diagram(
        "text-to-text",
        30 + high * len(tasks),
        "Text to text",
        "One encoder with a decoder reads and writes text. "
        + " ".join(
            f"Reads: {' '.join(source.split())}. Writes: {target}."
            for source, target in tasks
        ),
    )
    d.label(4, 12, "reads", "bold start")
    d.label(282, 12, "writes", "bold start")
    tall = high * len(tasks) - 14
    model = d.box(218, 28, 72, tall, "encoder\n\nand\n\ndecoder")
    for number, (source, target) in enumerate(tasks):
        y = 30 + high * (number + 0.5) - 8
        d.label(4, y, source, "small start")
        d.arrow((154, y), (model.x, y))
        d.arrow((model.x + model.width, y), (276, y))
        d.label(282, y, fill(target, 14), "start small")
    return d
