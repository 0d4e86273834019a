"""Claims of chapter 8: rows 37 to 42."""

from course_tools.claims import computed
from course_tools.claims.claim import Claim
from course_tools.claims.sources import Apart, Computed, Glued, Lead, Recorded
from course_tools.claims.verdicts import Figure, Statement, Trend, Unmeasured

SIX_LAYERS = "all-MiniLM-L6-v2"
TESTED = "a test set of 872 sentences, 51% of them in the larger class"


def _mini(task: str, metric: str, way: str, labels: int = 200) -> Recorded:
    return Recorded(
        f"finetuning-{task}",
        ("scores", metric),
        {"variant": f"mini, {way}, {labels}"},
        scale=100.0,
    )


def _over(task: str, metric: str, other: str, labels: int = 200) -> Lead:
    return Lead(
        _mini(task, metric, "fine-tuned", labels), _mini(task, metric, other, labels)
    )


def _once(task: str, metric: str, variant: str) -> Recorded:
    return Recorded(
        f"finetuning-{task}", ("scores", metric), {"variant": variant}, scale=100.0
    )


#: Of each GLUE task that was run: our record, metric, run, and the published score of
#: BERT-base.
GLUE = (
    ("CoLA", "cola", "matthews", "1000", 52.1),
    ("SST-2", "sst2", "accuracy", "all", 93.5),
    ("MRPC", "mrpc", "f1", "1000", 88.9),
    ("STS-B", "stsb", "spearman", "1000", 85.8),
    ("RTE", "rte", "accuracy", "1000", 66.4),
)

CLAIMS = (
    Claim(
        "features",
        37,
        "Frozen states and a logistic regression classify film reviews well.",
        "frozen features come close to fine-tuning: F1 of names 96.1 and 96.4",
        "devlin2019",
        Trend("above", 51.0),
        "accuracy on SST-2, six layers, 2,000 labels",
        _once("sst2", "accuracy", f"{SIX_LAYERS}, features, 2000"),
        "%",
        note=f"Tested on {TESTED}.",
    ),
    Claim(
        "pre-training-pays",
        38,
        "Fine-tuning a pre-trained model beats training the same one from scratch.",
        "GLUE average 79.6 for BERT-base, 71.0 for a recurrent model with ELMo's"
        " vectors",
        "devlin2019",
        Trend(),
        "accuracy on topics, fine-tuned minus from scratch, 200 labels",
        _over("pydocs-topic", "accuracy", "from scratch"),
        "points",
        section="row-42-labels",
    ),
    Claim(
        "pre-training-pays-for-pairs",
        38,
        "So it is for pairs of texts.",
        "MNLI 84.6 for BERT-base, 76.4 for a recurrent model with ELMo's vectors",
        "devlin2019",
        Trend(),
        "accuracy on pairs, fine-tuned minus from scratch, 200 labels",
        _over("pydocs-pair", "accuracy", "from scratch"),
        "points",
        section="row-38-pairs",
    ),
    Claim(
        "first-piece",
        39,
        "The first piece of a word carries its tag; the others have none.",
        "Jim Hen ##son was a puppet ##er, in our pieces",
        "devlin2019",
        Figure(7.0),
        "of seven pieces right",
        Computed(computed.tagged_example),
        digits=0,
    ),
    Claim(
        "tagging",
        39,
        "A fine-tuned BERT tags well.",
        "CoNLL-2003 F1 92.4 for BERT-base",
        "devlin2019",
        Trend(),
        "F1 of mentions, fine-tuned minus from scratch, 200 labels",
        _over("pydocs-tag", "f1", "from scratch"),
        "points",
    ),
    Claim(
        "spans",
        40,
        "A start vector and an end vector find answers: 88.5 F1 on SQuAD 1.1 for"
        " BERT-base.",
        "F1 88.5, exact match 80.8 with 87,000 questions",
        "devlin2019",
        Figure(88.5),
        "F1 on SQuAD, six layers, 600 questions",
        _once("squad", "f1", f"{SIX_LAYERS}, fine-tuned, 600"),
    ),
    Claim(
        "spans-pre-trained",
        40,
        "Pre-training is what makes it possible.",
        "F1 88.5 for BERT-base, 85.6 for a recurrent model with ELMo's vectors",
        "devlin2019",
        Trend(),
        "F1 of our spans, fine-tuned minus from scratch, 200 labels",
        _over("pydocs-span", "f1", "from scratch"),
        "points",
    ),
    Claim(
        "best-valid-span",
        40,
        "The best start and the best end need not make a span, so the best valid pair"
        " is searched.",
        "the score of a span is the sum, over pairs in order",
        "devlin2019",
        Statement(),
        "how far the best end stands before the best start, in the page's example",
        Glued(8, "span_backwards", kind="exact"),
        "tokens",
        0,
        note=(
            "The scores of the example are set by hand: it shows that this can happen,"
            " not how often it does."
        ),
    ),
    Claim(
        "unanswerable",
        40,
        "With a score for *no answer*, the same head does SQuAD 2.0: 83.1 F1 for"
        " BERT-large.",
        "F1 83.1",
        "devlin2019",
        Unmeasured(
            "BERT-large and 130,000 questions are beyond these machines; threshold and"
            " scores are tested."
        ),
    ),
    Claim(
        "choices",
        41,
        "One vector and a softmax over four endings do SWAG: 86.3% for BERT-large.",
        "86.3%; GPT 78.0; ELMo 59.2",
        "devlin2019",
        Trend(),
        "accuracy among four continuations, fine-tuned minus from scratch, 200 labels",
        _over("pydocs-choice", "accuracy", "from scratch"),
        "points",
        beside=(
            ("fine-tuned", _mini("pydocs-choice", "accuracy", "fine-tuned"), "%", 1),
        ),
    ),
    *(
        Claim(
            f"glue-{record}",
            42,
            f"BERT-base reaches {theirs} on {task}.",
            f"{theirs}, test split, all labels",
            "devlin2019",
            Figure(theirs),
            f"{metric}, six layers, {'all' if labels == 'all' else '1,000'} labels",
            _once(record, metric, f"{SIX_LAYERS}, fine-tuned, {labels}"),
            beside=(
                (
                    "our mini",
                    _once(
                        record,
                        metric,
                        f"mini, fine-tuned, {2000 if labels == 'all' else 1000}",
                    ),
                    "",
                    1,
                ),
            ),
        )
        for task, record, metric, labels, theirs in GLUE
    ),
    Claim(
        "glue-others",
        42,
        "BERT-base reaches 71.2 on QQP, 84.6 on MNLI and 90.5 on QNLI.",
        "F1 71.2; accuracy 84.6 and 90.5",
        "devlin2019",
        Unmeasured(
            "Each has more than 100,000 labels; the loaders are there, no run was made."
        ),
    ),
    Claim(
        "fine-tuned-against-frozen",
        42,
        "Fine-tuning all weights beats a frozen encoder, with enough labels.",
        "F1 of names 96.4 fine-tuned, 96.1 from frozen vectors at best",
        "devlin2019",
        Trend(),
        "F1 of mentions, fine-tuned minus frozen, 2,000 labels",
        _over("pydocs-tag", "f1", "frozen", 2000),
        "points",
        beside=(
            ("topics", _over("pydocs-topic", "accuracy", "frozen", 2000), "points", 1),
            ("spans", _over("pydocs-span", "f1", "frozen", 2000), "points", 1),
            ("pairs", _over("pydocs-pair", "accuracy", "frozen", 2000), "points", 1),
            (
                "endings",
                _over("pydocs-choice", "accuracy", "frozen", 2000),
                "points",
                1,
            ),
        ),
        section="row-42-labels",
    ),
    Claim(
        "fine-tuned-with-few-labels",
        42,
        "It does so with few labels, too.",
        "not claimed; the course asks",
        "",
        Statement(),
        "accuracy on pairs, fine-tuned minus frozen, 200 labels",
        _over("pydocs-pair", "accuracy", "frozen"),
        "points",
        beside=(
            ("topics", _over("pydocs-topic", "accuracy", "frozen"), "points", 1),
            ("tags", _over("pydocs-tag", "f1", "frozen"), "points", 1),
            ("endings", _over("pydocs-choice", "accuracy", "frozen"), "points", 1),
        ),
        section="row-42-labels",
    ),
    Claim(
        "size-pays",
        42,
        "Larger models are better, even on small tasks.",
        "MNLI 77.9 with 3 layers, 84.4 with 12, 86.6 with 24",
        "devlin2019",
        Unmeasured(
            "We pre-trained no two sizes to their end. Two encoders that differ in more"
            " than size, one run each:"
        ),
        beside=(
            (
                "SST-2, 2,000 labels: six layers minus our mini",
                Apart(
                    _once("sst2", "accuracy", f"{SIX_LAYERS}, fine-tuned, 2000"),
                    _once("sst2", "accuracy", "mini, fine-tuned, 2000"),
                ),
                "points",
                1,
            ),
        ),
    ),
)
