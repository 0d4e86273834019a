"""Claims of chapters 1 and 2: rows 1 to 10."""

from collections.abc import Mapping
from typing import Any

from course_tools.claims import computed
from course_tools.claims.claim import Claim
from course_tools.claims.sources import Apart, Cell, Computed, Glued, Lead, Recorded
from course_tools.claims.verdicts import Figure, Statement, Trend

TRANSLATION = "seq2seq-translation"
ATTENTION: Mapping[str, Any] = {"attention": "dot"}
BOTTLENECK: Mapping[str, Any] = {"attention": None}
WITH = Recorded(TRANSLATION, ("scores", "bleu"), ATTENTION)
WITHOUT = Recorded(TRANSLATION, ("scores", "bleu"), BOTTLENECK)
LONG_WITH = Recorded(TRANSLATION, ("by_length", -1, "bleu"), ATTENTION)
LONG_WITHOUT = Recorded(TRANSLATION, ("by_length", -1, "bleu"), BOTTLENECK)
TRAINED = Recorded(TRANSLATION, ("alignment", "model"), ATTENTION)
SENTENCES = "test sentences of one model"
PRONOUNS = "transformer-pronouns"
NOUNS_CUT = '"it" may not look at the nouns'
CONTROL_CUT = 'control: neither may look at "did not"'

HEADS = "all words right"
EXPONENT = "exponent of "


def _accuracy(cut: str) -> Recorded:
    return Recorded(PRONOUNS, ("probe", "cuts", cut), scale=100.0)


CLAIMS = (
    Claim(
        "vanishing-gradient",
        1,
        "In a recurrent network the gradient from a word far back all but vanishes.",
        "shown by analysis",
        "bengio1994",
        Statement("below", 0.01),
        "gradient at distance 32 as a share of that at distance 1, recurrent",
        Computed(computed.recurrent_fading),
        digits=-2,
        beside=(
            ("the same of self-attention", Computed(computed.attention_fading), "", 2),
        ),
        section="row-9",
    ),
    Claim(
        "attention-pays",
        2,
        "With attention, a translator of the same size translates better.",
        "26.75 BLEU with attention, 17.82 without (English to French news)",
        "bahdanau2015",
        Trend(),
        "BLEU with attention minus BLEU without, seed by seed",
        Lead(WITH, WITHOUT),
        "BLEU",
        beside=(("with", WITH, "", 1), ("without", WITHOUT, "", 1)),
        note=(
            "Our sentences are generated, theirs are news. Ours train until their"
            " validation loss stops falling."
        ),
        section="row-4",
    ),
    Claim(
        "attention-aligns",
        3,
        "Attention's weights find the word that is translated, though nobody"
        " labelled it.",
        "alignment error rate 0.34 on hand-aligned English-German sentences; 0.32 for"
        " an alignment tool",
        "luong2015",
        Trend(),
        "error of the diagonal minus error of the trained weights, seed by seed",
        Lead(Recorded(TRANSLATION, ("alignment", "diagonal"), ATTENTION), TRAINED),
        digits=3,
        beside=(
            ("trained", TRAINED, "", 3),
            (
                "untrained",
                Recorded(TRANSLATION, ("untrained", "alignment", "model"), ATTENTION),
                "",
                3,
            ),
            (
                "shuffled",
                Recorded(TRANSLATION, ("alignment", "shuffled"), ATTENTION),
                "",
                3,
            ),
            ("trained live for fewer steps", Glued(1, "aer_live"), "", 3),
        ),
        note="The diagonal is the best of three controls.",
    ),
    Claim(
        "long-sentences",
        4,
        "Without attention, quality collapses on long sentences; with it, it holds.",
        "a figure of BLEU against length up to 60 words",
        "bahdanau2015",
        Statement(),
        "BLEU with attention minus without, on sentences of 25 to 30 words, seed by"
        " seed",
        Lead(LONG_WITH, LONG_WITHOUT),
        "BLEU",
        beside=(
            ("with", LONG_WITH, "", 1),
            ("without", LONG_WITHOUT, "", 1),
            (
                "with, up to 6 words",
                Recorded(TRANSLATION, ("by_length", 0, "bleu"), ATTENTION),
                "",
                1,
            ),
            (
                "without, up to 6 words",
                Recorded(TRANSLATION, ("by_length", 0, "bleu"), BOTTLENECK),
                "",
                1,
            ),
        ),
        section="row-4",
    ),
    Claim(
        "attention-on-captions",
        4,
        "So it is on sentences that people wrote.",
        "26.75 BLEU with attention, 17.82 without (English to French news)",
        "bahdanau2015",
        Trend(),
        "BLEU on Multi30k with attention minus without, seed by seed",
        Lead(
            Recorded("seq2seq-multi30k", ("scores", "bleu"), {"attention": "dot"}),
            Recorded("seq2seq-multi30k", ("scores", "bleu"), {"attention": None}),
        ),
        "BLEU",
        section="row-4-captions",
    ),
    Claim(
        "beam-search",
        5,
        "Beam search translates better than greedy decoding.",
        "33.0 BLEU greedily, 34.8 with a beam of 12",
        "sutskever2014",
        Trend(),
        "BLEU with a beam of 5 minus greedy, sentence by sentence",
        Glued(1, "beam_bleu_gain", "beam_bleu_gain_half", what=SENTENCES),
        "BLEU",
        beside=(
            (
                "log-probability gained",
                Glued(
                    1, "beam_log_prob_gain", "beam_log_prob_gain_half", what=SENTENCES
                ),
                "nats",
                2,
            ),
        ),
    ),
    Claim(
        "length-normalisation",
        5,
        "Without length normalisation, beam search prefers translations that are too"
        " short.",
        "the reason for the length penalty",
        "wu2016",
        Statement(),
        "length with normalisation minus without, sentence by sentence",
        Glued(1, "normalisation_words", "normalisation_words_half", what=SENTENCES),
        "words",
        beside=(
            (
                "BLEU gained",
                Glued(
                    1, "normalisation_bleu", "normalisation_bleu_half", what=SENTENCES
                ),
                "",
                1,
            ),
        ),
    ),
    Claim(
        "sampling",
        5,
        "Sampling is for text that should vary; a translation that is drawn is worse.",
        "top-k sampling, proposed for stories",
        "fan2018",
        Statement(),
        "BLEU greedily minus BLEU drawn at temperature 1, sentence by sentence",
        Glued(1, "sampling_bleu", "sampling_bleu_half", what=SENTENCES),
        "BLEU",
        beside=(
            (
                "the same, drawn from the top 3",
                Glued(1, "top_bleu", "top_bleu_half", what=SENTENCES),
                "BLEU",
                1,
            ),
        ),
    ),
    Claim(
        "scores-grow",
        6,
        "Dot products of vectors with d independent features have a standard deviation"
        " of √d.",
        "√d, by counting variances (32 for 1,024 features)",
        "vaswani2017",
        Figure(32.0, 1.6, "5%, for a finite sample"),
        "standard deviation of unscaled scores with 1,024 features",
        Glued(2, "spread_unscaled", kind="exact"),
        section="row-6-scale",
    ),
    Claim(
        "divide-by-root",
        6,
        "Unless scores are divided by √d, wide attention learns badly.",
        "unscaled dot products: 22.3 BLEU with 256 features, 18.2 with 1,024",
        "britz2017",
        Trend(),
        "accuracy with the divisor minus without, 1,024 features",
        Apart(
            Glued(2, "learned_scaled", kind="least"),
            Glued(2, "learned_unscaled", kind="most"),
        ),
        digits=2,
        beside=(
            ("with", Glued(2, "learned_scaled", kind="least"), "", 2),
            ("without", Glued(2, "learned_unscaled", kind="most"), "", 2),
        ),
        section="row-6-scale",
    ),
    Claim(
        "three-ways",
        7,
        "Loops, matrix products and the fused kernel compute the same.",
        "the kernel is exact, not an approximation",
        "dao2022",
        Statement("below", 1e-5),
        "largest difference between any two, single precision",
        Glued(2, "difference_single", kind="exact"),
        digits=-2,
        beside=(
            ("double precision", Glued(2, "difference_double", kind="exact"), "", -2),
            (
                "loops take so many times as long as matrices",
                Glued(2, "speedup_median"),
                "",
                0,
            ),
        ),
    ),
    Claim(
        "causal-mask",
        8,
        "Under a causal mask no position sees what comes after it.",
        "by construction",
        "vaswani2017",
        Figure(0.0),
        "the most that earlier outputs move when the last word changes",
        Computed(computed.future_leak),
        digits=1,
    ),
    Claim(
        "quadratic-time",
        9,
        "The time of self-attention grows with the square of the length.",
        "exponent 2, by counting",
        "vaswani2017",
        Figure(2.0, 0.3, "caches and fixed costs move it"),
        "fitted exponent of time, weights written out",
        Cell(2, "explicit attention", EXPONENT + "time", what="three repetitions"),
        digits=2,
        beside=(
            (
                "of a recurrent layer",
                Cell(2, "GRU", EXPONENT + "time", what="three repetitions"),
                "",
                2,
            ),
        ),
    ),
    Claim(
        "quadratic-memory",
        9,
        "So does its memory, if the weights are written out.",
        "exponent 2, by counting",
        "vaswani2017",
        Figure(2.0, 0.2, "the projections grow with the length alone"),
        "fitted exponent of memory, weights written out",
        Cell(2, "explicit attention", EXPONENT + "memory", kind="exact"),
        digits=2,
    ),
    Claim(
        "linear-memory",
        9,
        "The fused kernel needs memory in proportion to the length.",
        "exponent 1, by counting",
        "rabe2021,dao2022",
        Figure(1.0, 0.1, "fixed costs"),
        "fitted exponent of memory, fused kernel",
        Cell(2, "fused attention", EXPONENT + "memory", kind="exact"),
        digits=2,
        beside=(
            ("MiB at 4,096 tokens, written out", Glued(2, "peak_explicit"), "", 0),
            ("MiB, fused", Glued(2, "peak_fused"), "", 1),
        ),
    ),
    Claim(
        "sequential-steps",
        9,
        "A recurrent layer takes one step after another for each token; attention takes"
        " the same few at any length.",
        "O(N) sequential operations against O(1)",
        "vaswani2017",
        Statement(),
        "operations of a recurrent layer for each further token",
        Glued(2, "per_step", kind="exact"),
        digits=0,
        beside=(
            (
                "time of the recurrent layer over that of attention, 256 tokens",
                Glued(2, "gru_slower_short"),
                "",
                1,
            ),
        ),
    ),
    Claim(
        "path-length",
        9,
        "In self-attention any two words are one step apart, so distance does not"
        " weaken the gradient.",
        "path length O(1) against O(N)",
        "vaswani2017",
        Statement("above", 0.1),
        "gradient at distance 32 as a share of that at distance 1, self-attention",
        Computed(computed.attention_fading),
        digits=2,
    ),
    Claim(
        "several-heads",
        10,
        "Eight heads are better than one, at equal cost.",
        "25.8 BLEU with eight heads, 24.9 with one",
        "vaswani2017",
        Trend(),
        "share of two look-ups right with eight heads minus one",
        Apart(
            Cell(2, "two look-ups, 8 heads", HEADS),
            Cell(2, "two look-ups, 1 head", HEADS),
        ),
        digits=2,
        beside=(
            ("eight heads", Cell(2, "two look-ups, 8 heads", HEADS), "", 3),
            ("one head", Cell(2, "two look-ups, 1 head", HEADS), "", 3),
        ),
        note="The task needs two look-ups, and its training is short.",
    ),
    Claim(
        "it-attends-to-its-noun",
        10,
        "In a trained Transformer, the weights of *it* show the noun that it stands"
        " for.",
        "a picture of one sentence, *animal* and *street*",
        "uszkoreit2017",
        Statement("above", 0.5),
        "share of sentences in which *it* prefers the right one of two nouns",
        Recorded(PRONOUNS, ("probe", "shares", "trained", "it")),
        digits=2,
        beside=(
            (
                "pronouns resolved",
                Recorded(PRONOUNS, ("probe", "resolved"), scale=100.0),
                "%",
                0,
            ),
        ),
        note="The model resolves the pronoun, and these weights do not show how.",
        section="row-10-pronoun",
    ),
    Claim(
        "pronoun-needs-nouns",
        10,
        "To resolve the pronoun, the model looks from *it* to the nouns.",
        "what a cut shows where a weight does not",
        "michel2019",
        Statement(),
        "accuracy lost when *it* may not look at the nouns, seed by seed",
        Lead(_accuracy("nothing"), _accuracy(NOUNS_CUT)),
        "points",
        beside=(
            (
                "lost by the control",
                Lead(_accuracy("nothing"), _accuracy(CONTROL_CUT)),
                "points",
                1,
            ),
        ),
        section="row-10-pronoun",
    ),
)
