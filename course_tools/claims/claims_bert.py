"""Claims of chapter 5: rows 22 to 26."""

from functools import partial

from course_tools.claims import computed
from course_tools.claims.claim import Claim
from course_tools.claims.sources import Apart, Cell, Computed, Glued, Printed
from course_tools.claims.verdicts import Figure, Statement

LINES = "the twelve lines"
ALL_ADDED = "the twelve lines + segments + first norm + output offsets"
#: Millions of parameters as published, and half of the last digit given.
SIZES = {
    "tiny": (4.4, 0.05, "turc2019", "4.4 million"),
    "mini": (11.3, 0.05, "turc2019", "11.3 million"),
    "small": (29.1, 0.05, "turc2019", "29.1 million"),
    "medium": (41.7, 0.05, "turc2019", "41.7 million"),
    "base": (110.0, 5.0, "devlin2019", "about 110 million"),
    "large": (340.0, 5.0, "devlin2019", "about 340 million"),
}

CLAIMS = (
    Claim(
        "padding",
        22,
        "With the mask, padding changes nothing.",
        "by construction",
        "devlin2019",
        Statement("below", 100.0),
        "the most that states move, in 10⁻⁷ of their length",
        Glued(5, "masked_moved", kind="exact"),
        section="row-22-padding",
    ),
    Claim(
        "padding-without-mask",
        22,
        "Without the mask, it changes what a text means.",
        "not published; the course asks",
        "",
        Statement("above", 1.0),
        "states of trained models move, as a share of their length",
        Glued(5, "trained_moved_least", kind="least"),
        "%",
        beside=(
            (
                "of untrained models, at most",
                Glued(5, "untrained_moved_most", kind="one run"),
                "%",
                1,
            ),
        ),
        section="row-22-padding",
    ),
    Claim(
        "twelve-lines",
        23,
        "The printed algorithm of twelve lines is BERT's forward pass, once segments,"
        " the first norm and output offsets are added.",
        "algorithm 9",
        "phuong2022",
        Statement("below", 1e-4),
        "largest difference of a log-probability",
        Cell(5, ALL_ADDED, "largest difference", kind="exact"),
        "nats",
        -2,
        beside=(
            (
                "the twelve lines as printed",
                Cell(5, LINES, "largest difference"),
                "nats",
                -2,
            ),
        ),
    ),
    *(
        Claim(
            f"size-of-{size}",
            24,
            f"BERT-{size} has {words} parameters.",
            words,
            cite,
            Figure(value, tolerance, "the last digit given"),
            "counted with both heads",
            Computed(partial(computed.parameters, size)),
            "million",
        )
        for size, (value, tolerance, cite, words) in SIZES.items()
    ),
    Claim(
        "deeply-bidirectional",
        25,
        "BERT's states depend on both sides in every layer; those of ELMo are two"
        " halves that see one side each.",
        "figure 3: deeply against shallowly bidirectional",
        "devlin2019",
        Figure(100.0),
        "units of BERT's first layer that depend on both sides",
        Cell(5, "BERT", "layer 1", kind="exact"),
        "%",
        0,
        beside=(
            ("ELMo", Cell(5, "ELMo", "layer 1", kind="exact"), "%", 0),
            ("GPT", Cell(5, "GPT", "layer 1", kind="exact"), "%", 0),
            (
                "BERT's second layer minus ELMo's",
                Apart(
                    Cell(5, "BERT", "layer 2", kind="exact"),
                    Cell(5, "ELMo", "layer 2", kind="exact"),
                ),
                "points",
                0,
            ),
        ),
    ),
    Claim(
        "checkpoints-travel",
        26,
        "A checkpoint that was saved and read back, even in the old format, is the same"
        " model.",
        "the published files",
        "bert2018",
        Figure(0.0),
        "largest difference of a logit",
        Printed(5, r"after saving and loading: ([\d.e-]+)$"),
        note=(
            "Agreement with the library `transformers` is a test:"
            " tests/library/bert/test_bert_agreement.py."
        ),
    ),
)
