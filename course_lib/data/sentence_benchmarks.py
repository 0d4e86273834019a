"""Public data that sentence vectors are trained and judged on: inference, questions,
opinions.

None of it is part of the course: each set is read from the hub or from a folder. STS-B,
MRPC and SST-2, which serve sentence vectors too, stand in
:mod:`course_lib.data.benchmarks`.
"""

from datasets import ClassLabel, Features, Value

from course_lib.data.benchmarks import how_to_get
from course_lib.data.data_set import SPLITS, DataSet, Hub

_TEXT = Value("string")
_NLI = Features(
    {
        "premise": _TEXT,
        "hypothesis": _TEXT,
        "label": ClassLabel(names=["entailment", "neutral", "contradiction"]),
    }
)
_NLI_NOTES = {
    "premise": "what is taken to be true",
    "hypothesis": "a sentence that someone wrote to it",
    "label": "0 if it follows, 1 if it may or may not be so, 2 if it cannot be",
}
_THREE_OF_ONE = (
    "People wrote three hypotheses to each premise, one for each label; a hypothesis"
    " alone gives much of its label away (Gururangan and others 2018)."
)


def _snli() -> DataSet:
    return DataSet(
        name="snli",
        title="SNLI: does a sentence follow from the caption of a picture?",
        description=(
            "Captions of photographs, each with sentences that follow from it, may be"
            " so, or contradict it."
        ),
        features=_NLI,
        column_notes=_NLI_NOTES,
        splits=SPLITS,
        licence="CC BY-SA 4.0, as its home page says",
        citation=(
            "Bowman, Angeli, Potts and Manning (2015), A large annotated corpus for"
            " natural language inference."
        ),
        quirks=(
            (
                "Pairs on which the annotators agreed on no label carry a -1 on the"
                " hub; loading leaves these rows out."
            ),
            _THREE_OF_ONE,
            (
                "Copies differ: some hold a part of the 549,367 training pairs, some"
                " part words from punctuation."
            ),
        ),
        get_it=how_to_get("snli"),
        hub=Hub(
            "stanfordnlp/snli",
            {name: name for name in _NLI},
            {split: split for split in SPLITS},
            "plain_text",
            kept=lambda row: row["label"] >= 0,
        ),
    )


def _mnli() -> DataSet:
    return DataSet(
        name="mnli",
        title="MultiNLI: does a sentence follow from another, in ten kinds of text?",
        description=(
            "As SNLI, with premises from letters, reports, fiction, telephone calls and"
            " more. One of GLUE."
        ),
        features=_NLI,
        column_notes=_NLI_NOTES,
        splits=SPLITS[:2],
        licence=(
            "That of the Open American National Corpus for most texts; others have"
            " terms of their own"
        ),
        citation=(
            "Williams, Nangia and Bowman (2018), A broad-coverage challenge corpus for"
            " sentence understanding."
        ),
        quirks=(
            (
                "GLUE has two validation splits; that of the hub here is the matched"
                " one, of the genres of training."
            ),
            _THREE_OF_ONE,
            "GLUE keeps the labels of its test splits.",
        ),
        get_it=how_to_get("mnli"),
        show_rows=False,
        hub=Hub(
            "nyu-mll/glue",
            {name: name for name in _NLI},
            {"train": "train", "validation": "validation_matched"},
            "mnli",
        ),
    )


def _trec() -> DataSet:
    features = Features(
        {
            "text": _TEXT,
            "coarse_label": ClassLabel(
                names=["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"]
            ),
        }
    )
    return DataSet(
        name="trec",
        title="TREC: what kind of answer does a question want?",
        description=(
            "Questions, sorted by what answers them: an abbreviation, a thing, a"
            " description, a person, ..."
        ),
        features=features,
        column_notes={
            "text": "a question, words and marks parted by spaces",
            "coarse_label": "one of six kinds",
        },
        splits=("train", "test"),
        licence="None stated by those who collected the questions",
        citation="Li and Roth (2002), Learning question classifiers.",
        quirks=(
            (
                "A probe of sentence vectors: the first words of a question give much"
                " of its kind away."
            ),
            "There are 50 finer kinds, which are not read here.",
        ),
        get_it=how_to_get("trec"),
        show_rows=False,
        hub=Hub(
            "CogComp/trec",
            {name: name for name in features},
            {split: split for split in ("train", "test")},
            revision="refs/convert/parquet",
        ),
    )


def _subj() -> DataSet:
    return DataSet(
        name="subj",
        title="SUBJ: an opinion or a plot?",
        description=(
            "Sentences about films: opinions from reviews, and sentences that tell a"
            " plot."
        ),
        features=Features(
            {"text": _TEXT, "label": ClassLabel(names=["subjective", "objective"])}
        ),
        column_notes={
            "text": "lower case, words and marks parted by spaces",
            "label": "0 or 1",
        },
        splits=("all",),
        licence="None stated by those who collected the sentences",
        citation=(
            "Pang and Lee (2004), A sentimental education: sentiment analysis using"
            " subjectivity summarization."
        ),
        quirks=(
            "No split is published: papers cross-validate, in ten parts.",
            "Labels come from the site that a sentence was found on, not from readers.",
        ),
        get_it=how_to_get("subj", hub=False),
        show_rows=False,
    )


SENTENCE_BENCHMARKS = (_snli(), _mnli(), _trec(), _subj())
