"""Claims of chapter 10: rows 48 to 50."""

from course_lab.ch06_pretraining.pretraining_plans import BASE
from course_tools.claims.claim import Claim, once_recorded
from course_tools.claims.sources import Cell, Glued, Lead, Recorded
from course_tools.claims.verdicts import Figure, Statement, Trend, Unmeasured

STORIES, PAIRS, PROMPTS, PRETRAINING = (
    "family-stories",
    "family-pydocs-pair",
    "family-prompts",
    "pretraining-stories",
)
FORM = "a sentence"


def _words(variant: str) -> Recorded:
    return Recorded(
        STORIES, ("scores", "mlm_accuracy"), {"variant": variant}, scale=100.0
    )


def _names(variant: str) -> Recorded:
    return Recorded(
        PRETRAINING, ("questions", "name"), {"variant": variant}, scale=100.0
    )


def _rank(variant: str) -> Recorded:
    return Recorded(PAIRS, ("scores", "mrr"), {"variant": variant}, scale=100.0)


def _asked(variant: str, how: str) -> Recorded:
    return Recorded(
        PROMPTS,
        ("scores", f"{FORM}, {how}, calibrated"),
        {"variant": variant},
        scale=100.0,
    )


_ALL = (
    Claim(
        "roberta-without-pairs",
        48,
        "BERT is as good without next sentences (RoBERTa).",
        "MNLI 84.7 without, 84.0 with; SQuAD 2.0 79.7 and 78.7",
        "liu2019",
        Statement("below"),
        "three probes of the last layer, with next sentences minus without",
        Lead(
            Recorded(PRETRAINING, ("downstream",), {"variant": BASE}, scale=100.0),
            Recorded(
                PRETRAINING,
                ("downstream",),
                {"variant": "no next sentence"},
                scale=100.0,
            ),
        ),
        "points",
    ),
    Claim(
        "roberta-with-more-text",
        48,
        "Most of RoBERTa's gain is more text and longer training.",
        "ten times the text: SQuAD 2.0 89.4 against 81.8 for BERT-large",
        "liu2019",
        Unmeasured("There is not ten times as much documentation on a machine."),
    ),
    Claim(
        "albert-at-equal-width",
        48,
        "One block shared by all layers costs some quality at equal width (ALBERT).",
        "average 80.1 for ALBERT-base, 82.3 for BERT-base",
        "lan2020",
        Trend(),
        "hidden words guessed, BERT minus ALBERT",
        Lead(_words("BERT"), _words("ALBERT")),
        "points",
    ),
    Claim(
        "albert-for-its-size",
        48,
        "For as many parameters, sharing pays.",
        "a wider ALBERT leads BERT-large with fewer parameters",
        "lan2020",
        Trend(),
        "hidden words guessed, ALBERT minus a BERT with about as many parameters",
        Lead(_words("ALBERT"), _words("BERT, as few parameters")),
        "points",
    ),
    Claim(
        "distilbert-size",
        48,
        "DistilBERT is 40% smaller than BERT-base.",
        "40%",
        "sanh2019",
        Figure(40.0, 0.5, "rounded to a whole percent"),
        "fewer parameters, counted",
        Glued(10, "distil_share", kind="exact"),
        "%",
    ),
    Claim(
        "distilbert-teacher",
        48,
        "Learning from a teacher's guesses is better than from hidden words alone.",
        "2.96 points lost without the teacher's guesses",
        "sanh2019",
        Trend(),
        "hidden words guessed, with a teacher minus without, both from copied layers",
        Lead(_words("DistilBERT"), _words("student, layers copied")),
        "points",
        note="Few steps, and a weak teacher.",
    ),
    Claim(
        "distilbert-start",
        48,
        "Starting from the teacher's layers is better than from random weights.",
        "3.69 points lost with a random start",
        "sanh2019",
        Trend(),
        "hidden words guessed, layers copied minus from scratch",
        Lead(_words("student, layers copied"), _words("student, from scratch")),
        "points",
    ),
    Claim(
        "ernie",
        48,
        "Hiding names makes a model learn names (ERNIE).",
        "less than one point on Chinese inference",
        "sun2019ernie",
        Trend(),
        "names guessed, subjects first minus all words from the start",
        Lead(_names(BASE), _names("all words from the start")),
        "points",
    ),
    Claim(
        "xlnet",
        48,
        "A causal model in all orders leads BERT (XLNet).",
        "ahead on 20 tasks",
        "yang2019",
        Unmeasured(
            "Two states at each position double the cost. The masks are tested, in"
            " every order of four."
        ),
    ),
    Claim(
        "colbert",
        48,
        "Comparing token by token finds better than comparing one vector (ColBERT).",
        "nearly as good as reading both texts, at a hundredth of the time",
        "khattab2020",
        Trend(),
        "mean reciprocal rank × 100 of the right description, late interaction minus"
        " one vector, both trained",
        Lead(_rank("late interaction"), _rank("single vector")),
        "points",
        beside=(
            (
                "both as pre-trained",
                Lead(
                    _rank("late interaction, as it is"),
                    _rank("single vector, as it is"),
                ),
                "points",
                1,
            ),
        ),
    ),
    Claim(
        "t5",
        48,
        "An encoder with a decoder, text to text, does all tasks (T5).",
        "in front on most benchmarks of its year, with 11 billion parameters",
        "raffel2020",
        Unmeasured("The class is chapter 3's; it was not pre-trained on text to text."),
    ),
    Claim(
        "few-shot",
        49,
        "Examples in the prompt teach a large model a task.",
        "SuperGLUE 71.8 with 32 examples; small models gain next to nothing",
        "brown2020",
        Trend(),
        "right answers with four examples minus with none, calibrated",
        Lead(_asked("prompted", "4 shots"), _asked("prompted", "0 shots")),
        "points",
        note=(
            "Our GPT has two layers and has read stories: too small to show the effect."
        ),
    ),
    Claim(
        "fine-tuning-beats-prompting",
        49,
        "Fine-tuning beats prompting.",
        "SuperGLUE 89.0 for the best fine-tuned model, 71.8 for GPT-3 with 32 examples",
        "brown2020",
        Trend(),
        "right answers, fine-tuned on 64 examples minus with four in the prompt,"
        " calibrated",
        Lead(_asked("fine-tuned", "0 shots"), _asked("prompted", "4 shots")),
        "points",
    ),
    Claim(
        "wrong-examples",
        49,
        "Wrong answers in the examples cost little.",
        "random labels cost 0 to 5 points",
        "min2022",
        Trend("below", 5.0),
        "right answers with four right examples minus with four wrong ones, calibrated",
        Lead(_asked("prompted", "4 shots"), _asked("prompted", "4 wrong shots")),
        "points",
    ),
    Claim(
        "pipelines",
        50,
        "Our checkpoints give the same answers in the pipelines of `transformers`.",
        "the published layout of files",
        "bert2018",
        Figure(20.0),
        "of 20 texts with equal label and probability",
        Cell(10, "text-classification", "agree", kind="exact"),
        digits=0,
        beside=(
            (
                "words tagged equally",
                Cell(10, "token-classification", "agree", kind="exact"),
                "",
                0,
            ),
        ),
    ),
)

CLAIMS = tuple(once_recorded(claim) for claim in _ALL)
