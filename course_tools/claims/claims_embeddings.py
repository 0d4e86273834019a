"""Claims of chapter 7: rows 33 to 36."""

from statistics import fmean

from course_lab.ch07_embeddings.layer_table import MINILM
from course_tools.claims.claim import Claim
from course_tools.claims.sources import Apart, Cell, Lead, Recorded, Run
from course_tools.claims.verdicts import Figure, Statement, Trend, Unmeasured

WORDS = "ten pseudo-words"
REAL = "the words of the probe"
TAGS = "layers-pydocs-tag"
CONTEXTS = "contexts-stories"


def _f1(how: str) -> Recorded:
    return Recorded(TAGS, ("f1", how), {"variant": MINILM}, scale=100.0)


def _trained_more(run: Run) -> float:
    """By how much training raises the separation in the first layer, the mean over the
    pseudo-words."""
    return fmean(run["trained"]["separation"][1]) - fmean(
        run["untrained"]["separation"][1]
    )


def _raised(kind: str) -> Recorded:
    return Recorded(CONTEXTS, _trained_more, {"variant": kind}, scale=100.0)


def _number(kind: str) -> Recorded:
    """How well *one* and *two* are read off the first layer of a trained model."""
    return Recorded(
        CONTEXTS,
        lambda run: fmean(run["trained"]["number"][kind][1]),
        {"variant": kind},
        scale=100.0,
    )


def _last_loss(kind: str) -> Recorded:
    return Recorded(CONTEXTS, ("losses", -1), {"variant": kind})


def _senses(row: str, column: str, what: str = WORDS) -> Cell:
    return Cell(7, row, column, table="vectors of", what=what)


#: What is claimed to be better than what, the names of the two in our record, and the
#: published F1 of both.
LAYERS = (
    (
        "first-against-last",
        "The last layer is better than the embeddings.",
        "last",
        "first",
        94.9,
        91.0,
    ),
    (
        "second-to-last",
        "The second-to-last layer is better than the last.",
        "second_to_last",
        "last",
        95.6,
        94.9,
    ),
    (
        "sum-of-four",
        "The sum of the last four beats the second-to-last.",
        "sum_last_4",
        "second_to_last",
        95.9,
        95.6,
    ),
    (
        "four-side-by-side",
        "The last four side by side beat the last.",
        "concat_last_4",
        "last",
        96.1,
        94.9,
    ),
    (
        "four-against-all",
        "The last four side by side beat the sum of all.",
        "concat_last_4",
        "sum",
        96.1,
        95.5,
    ),
)

CLAIMS = (
    Claim(
        "static-has-one-vector",
        33,
        "A static vector cannot tell two senses of a word apart.",
        "one vector for each word, by construction",
        "mikolov2013a,pennington2014",
        Figure(50.0, 0.05, "the last digit; 50 is chance"),
        "separation of senses by the word's own vector",
        _senses("static, the word's own", "separation"),
        "%",
    ),
    Claim(
        "neighbours-tell-senses",
        33,
        "The words around it can.",
        "contexts of a word fall into groups, one for each sense",
        "schutze1998",
        Statement("above", 50.0),
        "separation by the mean of the nearest neighbours' static vectors",
        _senses("static, mean of the neighbours up to 1 away", "separation"),
        "%",
    ),
    Claim(
        "training-tells-senses",
        33,
        "Training makes a bidirectional Transformer tell senses apart, beyond what"
        " random weights do.",
        "examples; a layer of ELMo: 69.0 F1 against 65.9 for the most frequent sense",
        "peters2018",
        Trend(),
        "separation in BERT's first layer, trained minus untrained, seed by seed",
        _raised("BERT"),
        "points",
        section="row-35",
    ),
    Claim(
        "real-senses",
        33,
        "A published encoder tells *apple* the fruit from *apple* the company.",
        "examples",
        "peters2018",
        Statement(),
        "separation in the fifth layer, published weights minus random ones",
        Apart(
            _senses("all-MiniLM-L6-v2", "layer 5", what=REAL),
            _senses("random weights, mean of three", "layer 5", what=REAL),
        ),
        "points",
        beside=(
            (
                "published weights",
                _senses("all-MiniLM-L6-v2", "layer 5", what=REAL),
                "%",
                1,
            ),
        ),
        section="row-33-real",
    ),
    Claim(
        "taglm",
        34,
        "A tagger gets better with the states of a language model beside its word"
        " vectors (TagLM).",
        "CoNLL-2003 F1 91.93 with, 90.87 without",
        "peters2017",
        Unmeasured(
            "The data has a licence that does not let us ship it, and no such tagger"
            " was trained here."
        ),
    ),
    Claim(
        "elmo",
        34,
        "The states of two recurrent readers, trained on text, tell senses apart.",
        "word senses: 69.0 F1 from the second layer, 65.9 for the most frequent sense",
        "peters2018",
        Trend(),
        "separation in ELMo's first layer, trained minus untrained, seed by seed",
        _raised("ELMo"),
        "points",
        section="row-35",
    ),
    Claim(
        "right-side",
        35,
        "A model that sees both sides beats one that sees the left, where the right"
        " side knows more.",
        "MNLI 84.4 bidirectional, 82.1 from left to right; SQuAD 88.5 and 77.8",
        "devlin2019",
        Trend(),
        "*one* or *two* read from the first layer: BERT minus GPT, seed by seed",
        Lead(_number("BERT"), _number("GPT")),
        "points",
        beside=(("BERT", _number("BERT"), "%", 0), ("GPT", _number("GPT"), "%", 0)),
    ),
    Claim(
        "lessons-per-text",
        35,
        "A masked model learns more slowly, since it is asked for 15% of the words"
        " only.",
        "slower at first, better soon",
        "devlin2019",
        Statement(),
        "loss of BERT minus loss of GPT at the end of the same short training, seed by"
        " seed",
        Lead(_last_loss("BERT"), _last_loss("GPT")),
        "nats",
        2,
        note="Their questions differ.",
    ),
    *(
        Claim(
            name,
            36,
            words,
            f"F1 of names {theirs} and {others}",
            "devlin2019",
            Trend(),
            "F1 of mentions, the first minus the second, draw by draw",
            Lead(_f1(ours), _f1(other)),
            "points",
            beside=(
                ("the first", _f1(ours), "%", 1),
                ("the second", _f1(other), "%", 1),
            ),
            note=(
                "Another encoder of six layers, another task, and a plain logistic"
                " regression on top."
            ),
        )
        for name, words, ours, other, theirs, others in LAYERS
    ),
)
