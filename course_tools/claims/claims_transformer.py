"""Claims of chapter 3: rows 11 to 18."""

from collections.abc import Mapping
from typing import Any

from course_lab.ch03_transformer import transformer
from course_tools.claims import computed
from course_tools.claims.claim import Claim
from course_tools.claims.sources import (
    Cell,
    Computed,
    Glued,
    GluedRange,
    Lead,
    Printed,
    Recorded,
)
from course_tools.claims.verdicts import Even, Figure, Statement, Trend

PARTS = "transformer-parts"
SHORT = "transformer-short"
PERPLEXITY = "perplexity"
LIMIT = (
    transformer.SHORT.max_source or 0
)  # words of the longest sentence that both learned from
QUARTILES = "first to third quartile of seven repeats"


def exact_match_seen(run: Mapping[str, Any]) -> float:
    """Return exact match in percent over the lengths that a recorded run was trained
    on."""
    rows = [row for row in run["by_length"] if row["longest"] <= LIMIT]
    return 100 * float(
        sum(row["exact_match"] * row["pairs"] for row in rows)
        / sum(row["pairs"] for row in rows)
    )


def fall_beyond(run: Mapping[str, Any]) -> float:
    """Return the BLEU of the first lengths never seen minus that of the last ones
    seen."""
    last = [row["bleu"] for row in run["by_length"] if row["longest"] <= LIMIT][-1]
    return float(
        next(row["bleu"] for row in run["by_length"] if row["longest"] > LIMIT) - last
    )


def _parts(variant: str) -> Recorded:
    return Recorded(PARTS, exact_match_seen, {"variant": variant})


def _short(variant: str) -> Recorded:
    return Recorded(SHORT, exact_match_seen, {"variant": variant})


def _without(variant: str) -> Lead:
    return Lead(_parts("Transformer"), _parts(variant))


CLAIMS = (
    Claim(
        "one-hot",
        11,
        "A one-hot row times the embedding matrix is a look-up.",
        "by definition",
        "vaswani2017",
        Figure(0.0),
        "largest difference",
        Computed(computed.look_up_difference),
    ),
    Claim(
        "permutation",
        12,
        "Self-attention without positions does not know order: shuffled words give the"
        " same vectors, shuffled.",
        "the reason for position encodings",
        "vaswani2017",
        Statement("below", 1e-12),
        "largest difference between shuffling before and after an encoder",
        Computed(computed.unordered_difference),
        digits=-2,
        beside=(
            (
                "with sinusoids",
                Printed(3, r"with sinusoidal positions ([\d.]+)$"),
                "",
                2,
            ),
        ),
    ),
    Claim(
        "four-positions",
        12,
        "The worked table of four positions with n = 100 and d = 4.",
        "sixteen numbers with eight digits, from the formula",
        "vaswani2017",
        Figure(0.0, 5e-9, "half of the last digit"),
        "largest difference from the table",
        Computed(computed.position_difference),
        digits=-2,
    ),
    Claim(
        "consistent-distances",
        12,
        "With sinusoids neighbours are equally far apart wherever they stand; with"
        " divided indices they are not.",
        "the same rotation takes each position to the next",
        "vaswani2017",
        Figure(0.0, 1e-4, "single precision"),
        "greatest minus least distance of neighbours among 60 places",
        Computed(computed.neighbour_spread),
        digits=-2,
        beside=(
            (
                "divided indices: greatest over least",
                Glued(3, "neighbour_ratio", kind="exact"),
                "",
                0,
            ),
        ),
    ),
    Claim(
        "plain-index",
        12,
        "A plain index added to the words fails as a position.",
        "argued, not measured",
        "vaswani2017",
        Statement(),
        "exact match with sinusoids minus with plain indices",
        _without("plain index"),
        "points",
        section="row-13-ablations",
    ),
    Claim(
        "order-matters",
        12,
        "Without positions a Transformer cannot translate properly.",
        "argued, not measured",
        "vaswani2017",
        Statement(),
        "exact match with sinusoids minus without positions",
        _without("no positions"),
        "points",
        section="row-13-ablations",
    ),
    Claim(
        "learned-positions",
        12,
        "Learned positions do as well as sinusoids.",
        "25.7 BLEU learned, 25.8 with sinusoids",
        "vaswani2017",
        Even(5.0),
        "exact match with sinusoids minus learned",
        _without("learned positions"),
        "points",
        note=(
            "Each row of a learned table is learned only from sentences that are long"
            " enough, and we have few."
        ),
        section="row-13-ablations",
    ),
    Claim(
        "longer-sentences",
        12,
        "Sinusoids let a model go on to longer sentences than it was trained on.",
        'hoped for: "may allow the model to extrapolate"',
        "vaswani2017",
        Statement("above", -5.0),
        "BLEU at the first lengths never seen minus the last ones seen",
        Recorded(PARTS, fall_beyond, {"variant": "Transformer"}),
        "BLEU",
        note=(
            "The vectors exist for every position; the model has not learned what to do"
            " with them."
        ),
        section="row-13-ablations",
    ),
    Claim(
        "residuals",
        13,
        "Residual connections are needed.",
        "deep networks without them train worse",
        "he2016",
        Statement(),
        "exact match with residuals minus without",
        _without("no residuals"),
        "points",
        section="row-13-ablations",
    ),
    Claim(
        "layer-norm-is-needed",
        13,
        "Layer norm is needed.",
        "it speeds up and steadies training",
        "ba2016",
        Statement(),
        "exact match with layer norm minus without",
        _without("no layer norm"),
        "points",
        note="Our model has two blocks on each side.",
        section="row-13-ablations",
    ),
    Claim(
        "layer-against-batch-norm",
        13,
        "Batch norm makes a sentence depend on its neighbours in the batch; layer norm"
        " does not.",
        "by construction",
        "ba2016,ioffe2015",
        Statement(),
        "how far batch norm moves the same sentence beside others (layer norm: not at"
        " all)",
        Glued(3, "batch_norm_moves", kind="exact"),
        digits=2,
    ),
    Claim(
        "pre-norm",
        13,
        "With the norm before the sub-layer, training is easier.",
        "no warm-up needed, and faster",
        "xiong2020",
        Statement(),
        "exact match of pre-norm minus post-norm, same recipe",
        _without("post-norm"),
        "points",
        note="They measure it in deeper models.",
        section="row-13-ablations",
    ),
    Claim(
        "position-wise",
        14,
        "The feed-forward layer works on each position alone, with the same weights.",
        "by definition",
        "vaswani2017",
        Statement("below", 1e-12),
        "largest difference between a position in company and alone",
        Computed(computed.neighbour_offset),
        digits=-2,
    ),
    Claim(
        "encoder-block",
        15,
        "The encoder block is six lines: attention, sum, norm, feed-forward, sum,"
        " norm.",
        "section 3.1 and figure 1",
        "vaswani2017",
        Statement("below", 1e-12),
        "largest difference between our block and the six lines, double precision",
        Computed(computed.block_difference),
        digits=-2,
    ),
    Claim(
        "six-words",
        16,
        "The loss of a target is the sum of cross-entropies with one-hot rows: 0.462"
        " nats for the worked example.",
        "six words, as drawn in lectures",
        "alammar2018",
        Figure(0.462, 0.0005, "the last digit"),
        "loss of *thanks <eos>*, by hand and by torch",
        Printed(3, r"^([\d.]+) nats$"),
        "nats",
        3,
    ),
    Claim(
        "six-words-decoded",
        16,
        "Trained on two pairs, a Transformer writes both, word by word, and stops.",
        "as drawn in lectures",
        "alammar2018",
        Statement("below", 0.05),
        "loss of the first sentence after training",
        Printed(3, r"nats before, ([\d.]+) after"),
        "nats",
        3,
        beside=(
            (
                "before",
                Printed(3, r"loss of the first sentence: ([\d.]+) nats before"),
                "nats",
                2,
            ),
        ),
    ),
    Claim(
        "transformer-against-recurrent",
        17,
        "The Transformer translates better than recurrent models.",
        "27.3 BLEU for the base model, 24.6 for the best single recurrent model"
        " (English to German)",
        "vaswani2017",
        Trend(),
        "BLEU on Multi30k, Transformer minus GRU with attention",
        GluedRange(
            3,
            "multi_gap",
            "multi_gap_low",
            "multi_gap_high",
            "95% interval of Welch's test",
        ),
        "BLEU",
        note=(
            "Two recipes are compared, so the difference need not be the architecture's"
            " alone."
        ),
        section="row-17-captions",
    ),
    Claim(
        "transformer-with-little-data",
        17,
        "So it does with few generated sentences.",
        "not claimed; the course asks",
        "",
        Statement(),
        "exact match at lengths seen in training, Transformer minus GRU with attention",
        Lead(_short("Transformer"), _short("GRU with attention")),
        "points",
    ),
    Claim(
        "transformer-trains-faster",
        17,
        "The Transformer needs less time for each word in training, since no word waits"
        " for the one before.",
        "trained in 12 hours on eight GPUs, with fewer operations than any earlier"
        " system",
        "vaswani2017",
        Trend("above", 1.0),
        "time of the GRU over time of the Transformer, training at 40 words on a CPU",
        GluedRange(
            3,
            "ratio_training_median",
            "ratio_training_low",
            "ratio_training_high",
            QUARTILES,
        ),
        digits=2,
        beside=(
            (
                "decoding one sentence",
                GluedRange(
                    3,
                    "ratio_decoding_one_median",
                    "ratio_decoding_one_low",
                    "ratio_decoding_one_high",
                    QUARTILES,
                ),
                "",
                2,
            ),
        ),
    ),
    Claim(
        "both-sides",
        18,
        "An encoder that sees both sides of a hidden word guesses it better than one"
        " that sees the left.",
        "the reason for a bidirectional model",
        "devlin2019",
        Statement(),
        "loss of the hidden word with the left side minus with both, sentence by"
        " sentence",
        Glued(
            3,
            "sides_gain",
            "sides_gain_half",
            what="test sentences of one model of each kind",
        ),
        "nats",
        digits=2,
        beside=(
            ("perplexity, left", Cell(3, "left side only (causal)", PERPLEXITY), "", 1),
            ("perplexity, both", Cell(3, "both sides", PERPLEXITY), "", 1),
        ),
    ),
)
