"""Public benchmarks for the five forms of fine-tuning and for sentence vectors, by the
names and columns of the Hugging Face hub.

None of them is part of the course: each is read from the hub or from a folder. Sizes,
examples' lengths and the shares of the labels are on the data cards, measured where the
data is at hand.
"""

from datasets import Features, Value

from course_lib.data.data_set import (
    SPLITS,
    DataSet,
    as_squad,
    described,
    hub,
    labelled,
    of_endings,
    tagged_tokens,
    texts,
)

_ENTITIES = ["corporation", "creative-work", "group", "location", "person", "product"]
WNUT_TAGS = ("O", *(f"{prefix}-{kind}" for kind in _ENTITIES for prefix in "BI"))
_TAGGED = tagged_tokens(WNUT_TAGS, "id")
_SCORED = texts("sentence1", "sentence2", label=Value("float32"))
_INFERENCE = labelled(
    ("entailment", "neutral", "contradiction"), "premise", "hypothesis"
)
_KINDS = labelled(
    ("ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"), "text", label="coarse_label"
)
_SWAG = of_endings("sent1", "sent2")


def _glue(name: str, features: Features, splits: tuple[str, ...] = SPLITS) -> DataSet:
    copy = hub("nyu-mll/glue", features, name, splits)
    return described(name, features, splits, hub=copy)


BENCHMARKS = (
    _glue("sst2", labelled(("negative", "positive"), "sentence"), SPLITS[:2]),
    _glue("cola", labelled(("unacceptable", "acceptable"), "sentence"), SPLITS[:2]),
    _glue("mrpc", labelled(("not_equivalent", "equivalent"), "sentence1", "sentence2")),
    _glue(
        "rte",
        labelled(("entailment", "not_entailment"), "sentence1", "sentence2"),
        SPLITS[:2],
    ),
    described(
        "stsb",
        _SCORED,
        hub=hub(
            "sentence-transformers/stsb",
            _SCORED,
            columns={
                "sentence1": "sentence1",
                "sentence2": "sentence2",
                "label": "score",
            },
            values={"label": lambda score: 5 * score},
        ),
    ),
    described(
        "wnut17",
        _TAGGED,
        hub=hub("leondz/wnut_17", _TAGGED, revision="refs/convert/parquet"),
    ),
    described(
        "squad",
        as_squad(),
        SPLITS[:2],
        hub=hub("rajpurkar/squad", as_squad(), "plain_text", SPLITS[:2]),
        optional_splits=("train",),
    ),
    described("mctest", of_endings("id", "context", "question", "question_type")),
    described(
        "swag", _SWAG, SPLITS[:2], hub=hub("allenai/swag", _SWAG, "regular", SPLITS[:2])
    ),
)
# STS-B, MRPC and SST-2 serve sentence vectors too.
SENTENCE_BENCHMARKS = (
    described(
        "snli",
        _INFERENCE,
        hub=hub(
            "stanfordnlp/snli",
            _INFERENCE,
            "plain_text",
            kept=lambda row: row["label"] >= 0,
        ),
    ),
    described(
        "mnli",
        _INFERENCE,
        SPLITS[:2],
        hub=hub(
            "nyu-mll/glue",
            _INFERENCE,
            "mnli",
            {"train": "train", "validation": "validation_matched"},
        ),
    ),
    described(
        "trec",
        _KINDS,
        ("train", "test"),
        hub=hub(
            "CogComp/trec",
            _KINDS,
            splits=("train", "test"),
            revision="refs/convert/parquet",
        ),
    ),
    described("subj", labelled(("subjective", "objective"), "text"), ("all",)),
)
