"""Public benchmarks for the five forms of fine-tuning, by the names and columns of the
Hugging Face hub.

None of them is part of the course: each is read from the hub or from a folder. Sizes,
examples' lengths and the shares of the labels are on the data cards, measured where the
data is at hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from datasets import ClassLabel, Features, List, Value

from course_lib.data.data_set import SPLITS, DataSet, Hub

_TEXT, _NUMBER = Value("string"), Value("int64")
_GLUE = (
    "Wang, Singh, Michael, Hill, Levy and Bowman (2019), GLUE: a multi-task benchmark"
    " and analysis platform."
)
_NO_TEST_LABELS = (
    "GLUE keeps the labels of its test split: the validation split is what papers'"
    " readers can check."
)
WNUT_TAGS = (
    "O",
    *(
        f"{prefix}-{kind}"
        for kind in (
            "corporation",
            "creative-work",
            "group",
            "location",
            "person",
            "product",
        )
        for prefix in "BI"
    ),
)
ANSWERS = {"text": List(Value("string")), "answer_start": List(Value("int32"))}


def as_squad() -> Features:
    """Return the columns of a data set of questions with answers that are spans of
    their context."""
    return Features(
        {
            **dict.fromkeys(("id", "title", "context", "question"), _TEXT),
            "answers": ANSWERS,
        }
    )


def of_endings(*before: str) -> Features:
    """Return the columns of a data set of four endings of which one is right."""
    columns = (*before, *(f"ending{i}" for i in range(4)))
    return Features(
        {
            **dict.fromkeys(columns, _TEXT),
            "label": ClassLabel(names=["0", "1", "2", "3"]),
        }
    )


def _sentences(labels: Sequence[str], *texts: str) -> Features:
    return Features(
        {**dict.fromkeys(texts, _TEXT), "label": ClassLabel(names=list(labels))}
    )


def _glue(config: str, features: Features, splits: Sequence[str]) -> Hub:
    return Hub(
        "nyu-mll/glue",
        {name: name for name in features},
        {split: split for split in splits},
        config,
    )


def how_to_get(name: str, hub: bool = True) -> str:
    """Say in words where a benchmark comes from, for its card and for errors."""
    folder = f"a folder that holds `{name}/<split>.parquet` with the columns below"
    return (
        f'From the hub with `load("{name}", source="hub")` (needs a network), or from'
        f" {folder}."
        if hub
        else (
            f"From {folder}. No copy on the hub can be read without running its script,"
            " so none is offered here."
        )
    )


def _sst2() -> DataSet:
    features = _sentences(("negative", "positive"), "sentence")
    return DataSet(
        name="sst2",
        title="SST-2: film reviews, negative or positive",
        description=(
            "Sentences of film reviews and, for training, the phrases in them, judged"
            " by people. One of GLUE."
        ),
        features=features,
        column_notes={
            "sentence": "lower case, words and punctuation separated by spaces",
            "label": "0 or 1",
        },
        splits=SPLITS[:2],
        licence="None stated formally; Stanford Sentiment Treebank, for research",
        citation=(
            "Socher and others (2013), Recursive deep models for semantic"
            f" compositionality. {_GLUE}"
        ),
        quirks=(
            (
                "Training rows are phrases cut out of trees, many of two or three"
                " words; validation rows are sentences."
            ),
            _NO_TEST_LABELS,
        ),
        get_it=how_to_get("sst2"),
        show_rows=False,
        hub=_glue("sst2", features, SPLITS[:2]),
    )


def _cola() -> DataSet:
    features = _sentences(("unacceptable", "acceptable"), "sentence")
    return DataSet(
        name="cola",
        title="CoLA: English sentences, acceptable or not",
        description=(
            "Example sentences of linguists, with what they say of them. One of GLUE,"
            " measured by Matthews correlation."
        ),
        features=features,
        column_notes={"sentence": "raw text", "label": "0 or 1"},
        splits=SPLITS[:2],
        licence="Text from published linguistics, for research; no licence stated",
        citation=(
            "Warstadt, Singh and Bowman (2019), Neural network acceptability"
            f" judgments. {_GLUE}"
        ),
        quirks=(
            (
                "Seven of ten sentences are acceptable: accuracy flatters who always"
                " says so."
            ),
            "Three sentences hold a backspace character, as released.",
            _NO_TEST_LABELS,
        ),
        get_it=how_to_get("cola"),
        show_rows=False,
        hub=_glue("cola", features, SPLITS[:2]),
    )


def _mrpc() -> DataSet:
    features = _sentences(("not_equivalent", "equivalent"), "sentence1", "sentence2")
    return DataSet(
        name="mrpc",
        title="MRPC: do two sentences from the news mean the same?",
        description=(
            "Pairs of sentences found in news reports and judged by people as"
            " paraphrases or not. One of GLUE."
        ),
        features=features,
        column_notes={
            "sentence1": "raw text",
            "sentence2": "raw text",
            "label": "0 or 1",
        },
        splits=SPLITS,
        licence=(
            "Microsoft Shared Source License: not commercial, redistribution under the"
            " same terms"
        ),
        citation=(
            "Dolan and Brockett (2005), Automatically constructing a corpus of"
            f" sentential paraphrases. {_GLUE}"
        ),
        quirks=(
            "Two of three pairs are paraphrases.",
            (
                "GLUE cuts the 4,076 training pairs into 3,668 and 408; other copies"
                " cut off 500 for validation."
            ),
            "Five test pairs occur in training too, up to spaces and case.",
        ),
        get_it=how_to_get("mrpc"),
        show_rows=False,
        hub=_glue("mrpc", features, SPLITS),
    )


def _rte() -> DataSet:
    features = _sentences(("entailment", "not_entailment"), "sentence1", "sentence2")
    return DataSet(
        name="rte",
        title="RTE: does one sentence follow from another?",
        description=(
            "Premises from news and Wikipedia, each with a sentence that follows from"
            " it or not. One of GLUE."
        ),
        features=features,
        column_notes={
            "sentence1": "premise",
            "sentence2": "hypothesis",
            "label": "0 where it follows, else 1",
        },
        splits=SPLITS[:2],
        licence=(
            "None stated; the sets RTE1, RTE2, RTE3 and RTE5 of the challenge, for"
            " research"
        ),
        citation=(
            "Dagan, Glickman and Magnini (2006), The PASCAL recognising textual"
            f" entailment challenge. {_GLUE}"
        ),
        quirks=(
            (
                "277 validation rows: one percentage point is less than three"
                " sentences. Give an interval."
            ),
            "A few rows carry encoding damage, as released.",
            _NO_TEST_LABELS,
        ),
        get_it=how_to_get("rte"),
        show_rows=False,
        hub=_glue("rte", features, SPLITS[:2]),
    )


def _stsb() -> DataSet:
    return DataSet(
        name="stsb",
        title="STS-B: how alike are two sentences, from 0 to 5?",
        description=(
            "Pairs of headlines, captions and forum sentences, each with people's mean"
            " score. One of GLUE."
        ),
        features=Features(
            {"sentence1": _TEXT, "sentence2": _TEXT, "label": Value("float32")}
        ),
        column_notes={
            "sentence1": "raw text",
            "sentence2": "raw text",
            "label": "mean score, 0 (unrelated) to 5 (same meaning)",
        },
        splits=SPLITS,
        licence=(
            "Scores CC BY-SA 4.0; texts from several sources with terms of their own"
        ),
        citation=(
            "Cer, Diab, Agirre, Lopez-Gazpio and Specia (2017), SemEval-2017 task 1."
            f" {_GLUE}"
        ),
        quirks=(
            (
                "The label is a number: a model of it is a regression, measured by"
                " Pearson's and Spearman's correlation."
            ),
            (
                "The hub copy stores the score divided by 5; loading multiplies it, so"
                " that all sources give 0 to 5."
            ),
            "Seven test pairs occur in training too.",
        ),
        get_it=how_to_get("stsb"),
        show_rows=False,
        hub=Hub(
            "sentence-transformers/stsb",
            {"sentence1": "sentence1", "sentence2": "sentence2", "label": "score"},
            {split: split for split in SPLITS},
            values={"label": lambda score: 5 * score},
        ),
    )


def _wnut17() -> DataSet:
    return DataSet(
        name="wnut17",
        title="WNUT-17: named entities in noisy text",
        description=(
            "Posts from social networks with people, places, companies, groups,"
            " products and works marked; the test split holds names that the training"
            " split does not."
        ),
        features=Features(
            {
                "id": _TEXT,
                "tokens": List(_TEXT),
                "ner_tags": List(ClassLabel(names=list(WNUT_TAGS))),
            }
        ),
        column_notes={
            "id": "number of the row",
            "tokens": "words and signs",
            "ner_tags": (
                "a tag for each token: B- begins an entity, I- goes on, O is outside"
            ),
        },
        splits=SPLITS,
        licence="CC BY 4.0, as its home page says",
        citation=(
            "Derczynski, Nichols, van Erp and Limsopatham (2017), Results of the"
            " WNUT2017 shared task."
        ),
        quirks=(
            "Posts are as people wrote them, with profanity: rows are not shown here.",
            (
                "Published systems reach an F1 between 0.4 and 0.65: rare names are"
                " what is asked for."
            ),
        ),
        get_it=how_to_get("wnut17"),
        show_rows=False,
        hub=Hub(
            "leondz/wnut_17",
            {name: name for name in ("id", "tokens", "ner_tags")},
            {split: split for split in SPLITS},
            revision="refs/convert/parquet",
        ),
    )


def _squad() -> DataSet:
    return DataSet(
        name="squad",
        title="SQuAD 1.1: questions whose answers are spans of a paragraph",
        description=(
            "Paragraphs of Wikipedia with questions that people asked and answered by"
            " marking words in them."
        ),
        features=as_squad(),
        column_notes={
            "id": "the question's",
            "title": "of the article: split by it, never by question",
            "context": "a paragraph, raw text",
            "question": "raw text",
            "answers": (
                "`text`: answers; `answer_start`: where each begins, in characters"
                " from 0"
            ),
        },
        splits=SPLITS[:2],
        licence="CC BY-SA 4.0, as its home page says",
        citation=(
            "Rajpurkar, Zhang, Lopyrev and Liang (2016), SQuAD: 100,000+ questions for"
            " machine comprehension."
        ),
        quirks=(
            "Validation questions have three answers or more; the best match counts.",
            (
                "A folder may lack the training split; `split_by(rows, 'title')` cuts"
                " the other one by article."
            ),
        ),
        get_it=how_to_get("squad"),
        hub=Hub(
            "rajpurkar/squad",
            {name: name for name in as_squad()},
            {split: split for split in SPLITS[:2]},
            "plain_text",
        ),
        optional_splits=("train",),
    )


def _mctest() -> DataSet:
    features = of_endings("id", "context", "question", "question_type")
    return DataSet(
        name="mctest",
        title="MCTest: four answers to questions about a children's story",
        description=(
            "Stories of some 200 words written for the test, four questions each, four"
            " answers a question."
        ),
        features=features,
        column_notes={
            "id": "story and question",
            "context": "the story",
            "question": "raw text",
            "question_type": (
                '"one" where one sentence tells the answer, else "multiple"'
            ),
            **_ENDINGS,
        },
        splits=SPLITS,
        licence="The data licence of Microsoft Research",
        citation=(
            "Richardson, Burges and Renshaw (2013), MCTest: a challenge dataset for"
            " open-domain comprehension."
        ),
        quirks=(
            (
                "Endings are statements that a program made of question and answer:"
                " some are ungrammatical."
            ),
            (
                "1,480 training rows are few: models of this size hardly pass chance (1"
                " in 4) without help from elsewhere."
            ),
        ),
        get_it=how_to_get("mctest", hub=False),
        show_rows=False,
    )


def _swag() -> DataSet:
    return DataSet(
        name="swag",
        title="SWAG: what happens next?",
        description=(
            "The beginning of a caption of a film, and four ways to go on: the real"
            " one, and three that a language model wrote and that another model could"
            " not tell from it."
        ),
        features=of_endings("sent1", "sent2"),
        column_notes={
            "sent1": "what happened",
            "sent2": "how the next sentence begins",
            **_ENDINGS,
        },
        splits=SPLITS[:2],
        licence="MIT, as its repository says",
        citation=(
            "Zellers, Bisk, Schwartz and Choi (2018), SWAG: a large-scale adversarial"
            " dataset."
        ),
        quirks=(
            (
                "The wrong endings were filtered against weaker models than BERT, which"
                " finds them easier than hoped."
            ),
            "Its test labels are not published.",
        ),
        get_it=how_to_get("swag"),
        hub=Hub(
            "allenai/swag",
            {name: name for name in of_endings("sent1", "sent2")},
            {split: split for split in SPLITS[:2]},
            "regular",
        ),
    )


_ENDINGS: Mapping[str, Any] = {
    **{f"ending{i}": "a possible ending" for i in range(4)},
    "label": "which ending is right, 0 to 3",
}
BENCHMARKS = (
    _sst2(),
    _cola(),
    _mrpc(),
    _rte(),
    _stsb(),
    _wnut17(),
    _squad(),
    _mctest(),
    _swag(),
)
