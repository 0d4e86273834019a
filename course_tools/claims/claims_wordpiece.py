"""Claims of chapter 4: rows 19 to 21."""

from course_tools.claims import computed
from course_tools.claims.claim import Claim
from course_tools.claims.sources import Apart, Cell, Computed, Glued, Recorded
from course_tools.claims.verdicts import Figure, Statement, Unmeasured

BY_SCORE, BY_FREQUENCY = "WordPiece: score `s(a, b)`", "BPE: frequency `f(ab)`"
PARTS = "three parts of the held-out text"
SAMPLES = "three samples of text"

CLAIMS = (
    Claim(
        "pieces-spell-what-comes",
        19,
        "With sub-word pieces hardly a word is unknown; with whole words many are, at"
        " the same size.",
        "the reason for pieces",
        "schuster2012,wu2016",
        Statement(),
        "unknown held-out words with 8,000 whole words minus with 8,000 pieces",
        Apart(
            Cell(4, "8,000", "with whole words", what=PARTS),
            Cell(4, "8,000", "unknown words", what=PARTS),
        ),
        "points",
        beside=(
            ("whole words", Cell(4, "8,000", "with whole words", what=PARTS), "%", 1),
            ("pieces", Cell(4, "8,000", "unknown words", what=PARTS), "%", 2),
        ),
        section="row-19-size",
    ),
    Claim(
        "thirty-thousand-pieces",
        19,
        "About 30,000 pieces are a good size for English: BERT's uncased vocabulary has"
        " 30,522.",
        "30,000; 30,522 in the released file",
        "devlin2019,bert2018",
        Unmeasured(
            "We count what sizes cost, and have not pre-trained a model for each."
        ),
        beside=(
            (
                "pieces a word saved by the doubling from 1,000",
                Glued(4, "first_doubling"),
                "",
                2,
            ),
            ("by that from 8,000", Glued(4, "last_doubling"), "", 2),
            (
                "share of BERT-base that the 30,522 rows take",
                Glued(4, "bert_share"),
                "%",
                0,
            ),
        ),
        section="row-19-size",
    ),
    Claim(
        "multilingual-vocabulary",
        19,
        "A hundred languages need a larger vocabulary, of about 110,000 pieces.",
        "about 110,000 pieces for the hundred largest Wikipedias",
        "bert2018",
        Unmeasured(
            "The course has no corpus of a hundred languages. Instead: what French"
            " costs with an English vocabulary."
        ),
        beside=(
            ("pieces a word, French", Glued(4, "french_cost"), "", 1),
            ("frequent English words", Glued(4, "common_cost"), "", 1),
        ),
    ),
    Claim(
        "unknown",
        19,
        "A word is [UNK] if it has a character that training never saw there, or is too"
        " long.",
        "as the released tokenizer does",
        "bert2018",
        Figure(2.0),
        "of two such words, [UNK] are",
        Computed(computed.unknown_words),
        digits=0,
        section="row-21-match",
    ),
    Claim(
        "hugs-by-hand",
        20,
        "In the worked example *hu* and *##gs* score 1/15.",
        "1/15, by the formula",
        "schuster2012",
        Figure(1 / 15, 1e-12, "rounding"),
        "score after two merges",
        Computed(computed.score_of_hugs),
        digits=4,
    ),
    Claim(
        "hug-in-the-course",
        20,
        "So do *hu* and *##g*, as earlier editions of a well-known online course"
        " had it.",
        "1/15; since corrected",
        "hfcourse2022",
        Figure(1 / 15, 1e-12, "rounding"),
        "score after the same merges",
        Computed(computed.score_of_hug),
        digits=4,
        note="The score is 2/45.",
    ),
    Claim(
        "score-against-frequency",
        20,
        "Merged by that score, a vocabulary cuts new text into more pieces than one"
        " merged by frequency.",
        "not published; the course asks",
        "",
        Statement(),
        "pieces per held-out word, by score minus by frequency",
        Apart(
            Cell(4, BY_SCORE, "pieces per word", what=SAMPLES),
            Cell(4, BY_FREQUENCY, "pieces per word", what=SAMPLES),
        ),
        digits=2,
        beside=(
            (
                "pieces that both vocabularies have",
                Glued(4, "overlap", "overlap_half", what=SAMPLES),
                "%",
                0,
            ),
        ),
        section="row-20-corpus",
    ),
    Claim(
        "equal-to-the-library",
        21,
        "Our tokenizer is equal, string for string, to the one that published models"
        " run on.",
        "the library `tokenizers`",
        "bert2018",
        Figure(0.0),
        "disagreements in pieces, ids or offsets",
        Recorded("benchmark-tokenizer_agreement", ("disagreements",), kind="exact"),
        digits=0,
        beside=(
            (
                "texts",
                Recorded("benchmark-tokenizer_agreement", ("texts",), kind="exact"),
                "",
                0,
            ),
        ),
        section="row-21-match",
    ),
)
