"""Claims of chapter 6: rows 27 to 32."""

from course_lab.ch06_pretraining.pretraining_plans import BASE
from course_tools.claims import computed
from course_tools.claims.claim import Claim
from course_tools.claims.sources import (
    Apart,
    Cell,
    Computed,
    Glued,
    Lead,
    Logged,
    Printed,
    Recorded,
)
from course_tools.claims.verdicts import Even, Figure, Statement, Trend, Unmeasured

STORIES = "pretraining-stories"
SHARE = "share (%)"
TOKENS = "an epoch's tokens"


def _runs(variant: str, *path: str | int) -> Recorded:
    return Recorded(
        STORIES, path or ("scores", "mlm_accuracy"), {"variant": variant}, scale=100.0
    )


def _longer(*path: str | int) -> Recorded:
    return Recorded(
        "pretraining-stories-long", path, {"variant": "subjects first"}, scale=100.0
    )


def _lead(ahead: str, behind: str, *path: str | int) -> Lead:
    return Lead(_runs(ahead, *path), _runs(behind, *path))


def _mini(who: str) -> Logged:
    path = ("results", "scores", "test", who, "mlm_accuracy")
    return Logged("mini", path, half="mlm_accuracy_interval", scale=100.0)


CLAIMS = (
    Claim(
        "masked-example",
        27,
        "In the worked example the model reads 50001, 11987, 50001, and is asked for"
        " the first and the third piece.",
        "three pieces, two of them masked",
        "phuong2022",
        Figure(3.0),
        "of three positions right, input and label",
        Computed(computed.masked_example),
        digits=0,
    ),
    Claim(
        "fifteen-percent",
        27,
        "15% of the positions are chosen, special tokens never.",
        "15%",
        "devlin2019",
        Figure(15.0, 0.2, "in each sequence at least one piece is chosen"),
        "chosen of all but special tokens",
        Cell(6, "all but [CLS], [SEP], [PAD]", SHARE, what=TOKENS),
        "%",
        2,
        section="row-27-fates",
    ),
    *(
        Claim(
            f"fate-{name}",
            27,
            f"Of the chosen, {value:.0f}% {becomes}.",
            f"{value:.0f}%",
            "devlin2019",
            Figure(value, 0.1, "rounding, and a random piece may be the right one"),
            "of the chosen",
            Cell(6, f"chosen | {row}", SHARE, what=TOKENS),
            "%",
            2,
            section="row-27-fates",
        )
        for name, value, becomes, row in (
            ("masked", 80.0, "become [MASK]", "[MASK]"),
            ("random", 10.0, "become a random piece", "another piece"),
            ("kept", 10.0, "stay as they are", "the same piece"),
        )
    ),
    Claim(
        "not-always-masked",
        27,
        "Some chosen pieces should stay visible: a model that is always shown [MASK] is"
        " worth less without it.",
        "F1 of names from frozen vectors 94.9 with 80/10/10, 94.0 with [MASK] alone;"
        " fine-tuned on MNLI 84.2 and 84.3",
        "devlin2019",
        Trend(),
        "hidden words guessed with 80/10/10 minus with [MASK] alone",
        _lead(BASE, "always [MASK]"),
        "points",
        note=(
            "The test hides words in all three ways, so part of the lead is the test's."
        ),
        section="row-32",
    ),
    Claim(
        "hiding-too-little",
        28,
        "Hiding too little makes learning slow.",
        "argued; a sweep of rates confirms it",
        "devlin2019,wettig2023",
        Statement(),
        "hidden words guessed after training with 15% minus with 5%",
        _lead("rate 0.15", "rate 0.05"),
        "points",
    ),
    Claim(
        "hiding-too-much",
        28,
        "Hiding too much leaves too little context.",
        "with 80% hidden, BERT-large keeps 95% of its fine-tuned quality",
        "wettig2023",
        Statement(),
        "hidden words guessed after training with 30% minus with 75%",
        _lead("rate 0.30", "rate 0.75"),
        "points",
        beside=(
            (
                "next sentences, 30% minus 75%",
                _lead("rate 0.30", "rate 0.75", "scores", "nsp_accuracy"),
                "points",
                1,
            ),
        ),
        note="The test hides 15% whatever was hidden in training.",
    ),
    Claim(
        "fifteen-is-best",
        28,
        "15% is the best rate.",
        "chosen without a sweep; 40% is better for BERT-large",
        "devlin2019,wettig2023",
        Statement(),
        "hidden words guessed after training with 15% minus with 40%",
        _lead("rate 0.15", "rate 0.40"),
        "points",
    ),
    Claim(
        "half-true-pairs",
        29,
        "Half of the pairs are true, half are not.",
        "50%",
        "devlin2019",
        Figure(50.0, 1.0, "the share is drawn"),
        "true pairs in an epoch",
        Glued(6, "is_next_share", kind="exact"),
        "%",
    ),
    Claim(
        "next-sentence-helps",
        29,
        "Predicting the next sentence helps.",
        "MNLI 84.4 with, 83.9 without; later work found no gain",
        "devlin2019,liu2019",
        Trend(),
        "three probes of the last layer, with minus without",
        _lead(BASE, "no next sentence", "downstream"),
        "points",
        section="row-32",
    ),
    Claim(
        "first-loss",
        30,
        "Before the first step the loss is ln |V| + ln 2.",
        "by counting",
        "devlin2019",
        Figure(0.0, 0.1, "weights are drawn, not 0"),
        "measured minus expected",
        Apart(
            Printed(6, r"^ln \d+ \+ ln 2 = [\d.]+, measured ([\d.]+)$"),
            Printed(6, r"^ln \d+ \+ ln 2 = ([\d.]+), measured"),
        ),
        "nats",
        3,
    ),
    Claim(
        "more-than-neighbours",
        30,
        "Trained so, a model guesses hidden pieces of real text better than counts of"
        " its neighbours do.",
        "not published; the course asks",
        "",
        Statement(),
        "hidden pieces guessed by our mini minus by triples on both sides",
        Apart(_mini("model"), _mini("two-sided trigram")),
        "points",
        beside=(
            ("mini", _mini("model"), "%", 1),
            ("triples", _mini("two-sided trigram"), "%", 1),
            ("untrained", _mini("untrained"), "%", 1),
        ),
        section="real-text",
    ),
    Claim(
        "corpus",
        31,
        "BERT read 800 million words of books and 2,500 million of Wikipedia.",
        "3,300 million words",
        "devlin2019",
        Unmeasured(
            "The books are not public and the rest is too large for a course. Ours"
            " instead:"
        ),
        beside=(
            ("million pieces of documentation", Glued(6, "shipped_pieces"), "", 1),
            ("pieces of stories", Glued(6, "story_pieces"), "", 0),
        ),
        section="real-text",
    ),
    Claim(
        "four-days-base",
        31,
        "Pre-training BERT-base took four days on 4 cloud TPUs, 16 chips.",
        "4 days, 16 chips",
        "devlin2019",
        Unmeasured("It would take years here; the cost model says how many."),
        beside=(
            (
                "years on the machine that built this book",
                Glued(6, "base_years"),
                "",
                0,
            ),
            (
                "of what a chip could, if of the second generation, each computed",
                Glued(6, "chip_share"),
                "%",
                0,
            ),
        ),
    ),
    Claim(
        "four-days-large",
        31,
        "Pre-training BERT-large took four days on 16 cloud TPUs, 64 chips.",
        "4 days, 64 chips",
        "devlin2019",
        Unmeasured("As for BERT-base."),
    ),
    Claim(
        "academic-budget",
        31,
        "A BERT as good as the original can be trained in 24 hours on eight GPUs of"
        " 12 GB.",
        "quality of BERT-base in 24 hours",
        "izsak2021",
        Unmeasured(
            "We have no such machine for a day. What the original's work would ask of"
            " each of the eight:"
        ),
        beside=(("TFLOP/s without a pause", Glued(6, "academic"), "", 0),),
    ),
    Claim(
        "cost-model",
        31,
        "The operations of training can be counted in advance: six for each weight and"
        " token, and attention's.",
        "6 N for each token",
        "kaplan2020",
        Statement("below", 100.0),
        "of the machine's matrix rate that the counted operations take; above 100 the"
        " count would be wrong",
        Printed(6, r"utilisation (\d+)%$"),
        "%",
        0,
        beside=(
            (
                "the same for the recorded mini",
                Logged("mini", ("results", "speed", "utilisation"), scale=100.0),
                "%",
                0,
            ),
        ),
    ),
    Claim(
        "dynamic-masking",
        32,
        "New masks in each epoch are better than masks drawn once.",
        "SQuAD 2.0 F1 78.7 dynamic, 78.3 static; MNLI 84.0 and 84.3; SST-2 92.9 and"
        " 92.5",
        "liu2019",
        Trend(),
        "hidden words guessed with new masks minus with masks drawn once",
        _lead(BASE, "static masking"),
        "points",
        note="Our model reads each text a few times only.",
    ),
    Claim(
        "dynamic-is-even",
        32,
        "The difference is small.",
        "within half a point on each of the three",
        "liu2019",
        Even(0.5),
        "hidden words guessed with new masks minus with masks drawn once",
        _lead(BASE, "static masking"),
        "points",
    ),
    Claim(
        "whole-words",
        32,
        "Hiding whole words is better than hiding single pieces.",
        "SQuAD 1.1 F1 92.8 against 91.0 for BERT-large",
        "bert2018",
        Unmeasured(
            "Each word of the stories is one piece, so both are the same there; on"
            " documentation it was not run."
        ),
    ),
    Claim(
        "subjects-first",
        32,
        "Asking first for names and things makes a model learn more of a text.",
        "hiding entities as a whole: better on five Chinese tasks",
        "sun2019ernie",
        Trend(),
        "hidden words guessed, subjects first minus all words from the start",
        _lead(BASE, "all words from the start"),
        "points",
        note=(
            "The idea is borrowed; ours changes the order of questions, theirs what is"
            " hidden together."
        ),
    ),
    Claim(
        "context-comes-with-depth",
        32,
        "What needs context is found in higher layers.",
        "some 150 studies of BERT-base, summed up",
        "rogers2020",
        Statement(),
        "probe for a hidden person, last layer minus embeddings",
        Lead(
            _longer("probes", "hidden person", -1),
            _longer("probes", "hidden person", 0),
        ),
        "points",
        section="row-32-layers",
    ),
    Claim(
        "classes-at-the-bottom",
        32,
        "What a word is in itself is known at the bottom.",
        "lexical knowledge in the embeddings and lower layers",
        "rogers2020",
        Statement("above", 50.0),
        "probe for the class of an unseen word, embeddings",
        _longer("probes", "word class", 0),
        "%",
        section="row-32-layers",
    ),
)
