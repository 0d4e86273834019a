"""Tasks derived from documentation: rules on small docstrings, and what holds of every
row that they make."""

import itertools
import re

import pytest
from cases import for_each
from datasets import ClassLabel, Dataset, DatasetDict

from course_lib.data import (
    DATASETS,
    load,
    pydocs,
    pydocs_choice,
    pydocs_span,
    pydocs_tag,
    pydocs_topic,
)
from course_lib.data.catalogue import TASKS
from course_lib.data.pydocs_entries import Entry, entries
from course_lib.data.pydocs_tasks import at_most, content_words, distinct, drawn, lot
from course_lib.data.readings import ENOUGH, RIGHT, SIZE, sample
from course_lib.data.task_controls import (
    CONTROLS,
    of_choices,
    of_pairs,
    of_spans,
    of_tags,
    of_texts,
)

# -- the lists of a docstring
# --------------------------------------------------------------------------------------

NUMPY = """Draw lots.

Parameters
----------
size, length : int, optional
    How many.

    A second paragraph.
*args
    Passed on.

Returns
-------
lots : list of str
    The lots.
bool

Raises
------
ValueError
    If there are none.
Some text.

Notes
-----
x : not a parameter
"""


def test_numpy_s_sections_give_names_types_and_first_paragraphs():
    assert entries(NUMPY) == [
        Entry("parameter", "size", "int, optional", "How many."),
        Entry("parameter", "length", "int, optional", "How many."),
        Entry("parameter", "*args", "", "Passed on."),
        Entry("result", "lots", "list of str", "The lots."),
        Entry("result", "", "bool", ""),
        Entry("error", "ValueError", "", "If there are none."),
    ]


def test_google_s_sections_end_where_the_indentation_does():
    text = (
        "Draw.\n\nArgs:\n    size (Tuple[int, str]): How\n        many.\n    **kwargs:"
        " The rest.\n\nx (int): Prose."
    )
    assert entries(text) == [
        Entry("parameter", "size", "Tuple[int, str]", "How many."),
        Entry("parameter", "**kwargs", "", "The rest."),
    ]


def test_fields_of_restructured_text_may_carry_a_type():
    text = (
        "Draw.\n\n:param int size: How\n  many.\n:raises OSError: If it is"
        " gone.\n:return: Lots."
    )
    assert entries(text) == [
        Entry("parameter", "size", "int", "How many."),
        Entry("error", "OSError", "", "If it is gone."),
    ]


@for_each(
    "text",
    [
        "",
        "Sum.\n\nParameters: none.",
        "Parameters\n\nx : int",
        "Args:\nx: not indented",
    ],
)
def test_what_only_looks_like_a_list_has_no_entries(text):
    assert entries(text) == []


# -- tags
# --------------------------------------------------------------------------------------

WORDS = pydocs_tag.Vocabulary(
    types={"int", "str", "list", "tuple", "DataFrame", "Index", "set"},
    english={"axis", "key"},
    common={"random_state"},
    parameters={"m": {"alpha"}},
)


def mentions(paragraph, parameters=("axis", "key", "n_samples", "kwargs"), module=""):
    found = []
    for tokens, tags in pydocs_tag.tagged(paragraph, set(parameters), WORDS, module):
        found += [
            (token, pydocs_tag.TAGS[tag])
            for token, tag in zip(tokens, tags, strict=True)
            if tag
        ]
    return found


def test_a_marked_name_of_a_parameter_is_a_mention_and_its_mark_is_gone():
    assert mentions("The values along ``axis`` are added to *key* of the table.") == [
        ("axis", "B-PARAM"),
        ("key", "B-PARAM"),
    ]


def test_an_unmarked_english_word_that_is_a_parameter_makes_a_sentence_uncertain():
    assert (
        list(
            pydocs_tag.tagged(
                "The values along axis are added to `key` now.", {"axis", "key"}, WORDS
            )
        )
        == []
    )


def test_an_unmarked_name_that_is_no_english_is_a_mention():
    assert mentions(
        "There must be at least n_samples values in each of the groups."
    ) == [("n_samples", "B-PARAM")]


def test_types_may_have_several_tokens():
    paragraph = (
        "It returns a pandas.DataFrame and a list of str, or a tuple of int, as"
        " `n_samples` says."
    )
    assert mentions(paragraph) == [
        *(("pandas", "B-TYPE"), (".", "I-TYPE"), ("DataFrame", "I-TYPE")),
        *(("list", "B-TYPE"), ("of", "I-TYPE"), ("str", "I-TYPE")),
        *(("tuple", "B-TYPE"), ("of", "I-TYPE"), ("int", "I-TYPE")),
        ("n_samples", "B-PARAM"),
    ]


def test_the_stars_of_keyword_arguments_begin_the_mention():
    assert mentions("All that is left is passed on as ``**kwargs`` to it.") == [
        ("**", "B-PARAM"),
        ("kwargs", "I-PARAM"),
    ]


@for_each(
    "paragraph",
    [
        # a common parameter of others
        "The result depends on random_state if `axis` is not given.",
        # of a neighbour in the module
        "The value of `alpha` is used where `axis` is not given.",
        "See the `width` argument of it where `axis` is not given.",
        "It calls `f(key)` along the `axis` that is given to it.",
        "It calls DataFrame.mean along the `axis` that is given to it.",
        (  # a class, or the beginning of a sentence
            "Each Index of the `axis` that is given to it is kept."
        ),
    ],
)
def test_a_sentence_in_which_a_role_is_uncertain_is_left_out(paragraph):
    found = list(pydocs_tag.tagged(paragraph, {"axis", "key"}, WORDS, "m"))
    assert found == []


def test_a_mark_is_found_where_it_stands_and_not_at_the_same_word_before():
    """The unmarked "key" before the mark makes the sentence uncertain; a search for the
    first "key" would tag it."""
    assert (
        list(
            pydocs_tag.tagged(
                "Every key is sorted, and then `key` is applied to it.", {"key"}, WORDS
            )
        )
        == []
    )


# -- spans
# --------------------------------------------------------------------------------------

FUNCTION = """Find lots.

Parameters
----------
size : int or None, optional
    The number of lots in the box. Default is 7.
kind : {'red', 'blue'}, default='red'
    Specify the colour of all lots.
strict : bool
    Whether to stop at the first error.

Returns
-------
list of str
    The lots that were found.

Raises
------
KeyError
    If the box holds no lots at all. Or two.
"""


def test_each_kind_of_question_points_at_its_answer():
    context, spans = pydocs_span.context_of(FUNCTION)
    answers = {
        (span.kind, span.about): context[span.start : span.end] for span in spans
    }
    assert answers == {
        ("type", "size"): "int or None",
        ("default", "size"): "7",
        ("name", "the number of lots in the box"): "size",
        ("choices", "kind"): "{'red', 'blue'}",
        ("default", "kind"): "'red'",
        ("aim", "specifies the colour of all lots"): "kind",
        ("type", "strict"): "bool",
        ("aim", "says whether to stop at the first error"): "strict",
        ("result", ""): "list of str",
        ("error", "if the box holds no lots at all"): "KeyError",
    }


def test_the_answer_is_where_its_entry_stands_and_not_at_the_same_text_before():
    context, spans = pydocs_span.context_of(
        FUNCTION.replace("kind : {'red', 'blue'}", "kind : int or None")
    )
    starts = {span.about: span.start for span in spans if span.kind == "type"}
    assert context.count("int or None") == 2
    assert starts["size"] < starts["kind"] == context.rindex("int or None")


def test_a_question_with_two_answers_is_not_asked():
    twice = FUNCTION.replace(
        "Whether to stop at the first error.", "The number of lots in the box."
    )
    _, spans = pydocs_span.context_of(twice)
    assert not [span for span in spans if span.kind == "name"]


def test_a_short_list_is_no_context():
    assert (
        pydocs_span.context_of(
            "Sum.\n\nParameters\n----------\na : int\n    The first.\nb : int\n    The"
            " second."
        )
        is None
    )


# -- drawing, balance, near-duplicates
# ---------------------------------------------------------------------------------


def test_lots_are_spread_evenly_and_depend_on_the_text_alone():
    counts = [0] * 5
    for i in range(2_000):
        counts[lot(f"text {i}", 5)] += 1
    # 400 expected, standard deviation 18
    assert all(330 < count < 470 for count in counts)
    assert drawn(["b", "a", "c"], str) == drawn(["c", "b", "a"], str)


def test_of_near_duplicates_the_one_in_test_is_kept():
    rows = {
        "train": [
            {"text": "one two three four five"},
            {"text": "quite another text than that"},
        ],
        "validation": [{"text": "one two three four five"}],
        "test": [{"text": "one two three four five!"}],
    }
    left = distinct(rows, lambda row: row["text"])
    assert [len(left[split]) for split in ("train", "validation", "test")] == [1, 0, 1]


def test_at_most_keeps_the_order():
    rows = [{"m": m, "n": n} for n, m in enumerate("abaab")]
    assert [row["n"] for row in at_most(rows, "m", 2)] == [0, 1, 2, 4]


def test_a_part_of_a_library_that_is_about_something_else_has_no_area():
    assert pydocs_topic.area("scipy.stats._entropy") == "numerics"
    assert pydocs_topic.area("scipy._lib.doccer") is None
    # a prefix of the name, not of the path
    assert pydocs_topic.area("torchvision.ops") is None


def test_wrong_endings_share_as_many_words_with_the_context_as_the_right_one():
    texts = [
        pydocs_choice._Text(
            "p",
            f"m{i}",
            f"The mean of the {word} is wanted now.",
            f"It is a number that {end} has here.",
        )
        for i, (word, end) in enumerate(
            itertools.product(
                ("box", "lot", "jar", "cup", "pot"), ("mean", "box", "day", "lot")
            )
        )
    ]
    for row in pydocs_choice._rows(texts, 20):
        context = content_words(row["context"])
        shared = [len(context & content_words(row[f"ending{i}"])) for i in range(4)]
        assert len(set(shared)) == 1
        assert any(
            text.ending == row[f"ending{row['label']}"]
            and text.context == row["context"]
            for text in texts
        )


# -- guesses that read nothing
# --------------------------------------------------------------------------------------


def test_a_guess_of_the_most_common_label_is_fitted_on_training():
    train = Dataset.from_dict({"text": ["x", "y", "z"], "label": [1, 1, 0]})
    test = Dataset.from_dict({"text": ["x", "y", "z", "w"], "label": [0, 0, 0, 1]})
    assert of_texts(DatasetDict(train=train, test=test))[0].score == 25


def test_an_ending_that_shares_most_words_by_a_tie_counts_in_part():
    """Two of four endings share one word with the context, and the right one is among
    them: one half."""
    endings = {
        "ending0": ["No mean."],
        "ending1": ["The mean."],
        "ending2": ["Ink."],
        "ending3": ["Red."],
    }
    rows = Dataset.from_dict(
        {"context": ["We want the mean."], **endings, "label": [1]}
    )
    assert of_choices(DatasetDict(train=rows, test=rows))[-1].score == 50


def test_a_word_s_usual_tag_and_the_words_of_pairs_are_learnt_from_training_alone():
    features = DATASETS["entities"].features
    train = Dataset.from_dict(
        {"tokens": [["Ada", "left", "."]], "ner_tags": [[1, 0, 0]]}, features
    )
    test = Dataset.from_dict(
        {
            "tokens": [["Bo", "left", "."], ["Ada", "."]],
            "ner_tags": [[1, 0, 0], [1, 0]],
        },
        features,
    )
    usual = of_tags(DatasetDict(train=train, test=test))[1]
    assert usual.score == pytest.approx(200 / 3)  # precision 1, recall 1/2
    pairs = Dataset.from_dict(
        {
            "sentence1": ["a mean"] * 4,
            "sentence2": ["mean", "ink"] * 2,
            "label": [1, 0] * 2,
        }
    )
    assert of_pairs(DatasetDict(train=pairs, test=pairs))[-1].score == 100


def test_no_answer_is_a_guess_only_where_some_questions_have_none():
    columns = {
        "context": ["Ink is red."] * 2,
        "question": ["What is red?", "What is blue?"],
    }
    answers = [{"text": ["Ink"], "answer_start": [0]}, {"text": [], "answer_start": []}]
    rows = Dataset.from_dict({**columns, "answers": answers})
    names = [control.name for control in of_spans(DatasetDict(train=rows, test=rows))]
    assert names == [
        "the usual answer to questions that begin so",
        "no answer to any question",
    ]
    whole = rows.select([0])
    assert len(of_spans(DatasetDict(train=whole, test=whole))) == 1


# -- the tasks themselves: made once for these versions, then read from the cache
# --------------------------------------


@pytest.fixture(scope="module", params=list(TASKS))
def task(request):
    return request.param, load(request.param, source="embedded")


def texts_of(row):
    kept = re.compile(r"text|sentence\d|context|tokens|ending\d")
    return [
        value if isinstance(value, str) else " ".join(value)
        for name, value in row.items()
        if kept.fullmatch(name)
    ]


@pytest.mark.slow
def test_every_task_has_thousands_of_rows_to_train_on_and_hundreds_to_test(task):
    """400 test rows where the corpus gives them; it gives 336 sentences with certain
    tags."""
    name, data = task
    assert len(data["train"]) >= 2_000
    assert len(data["test"]) >= (300 if name == "pydocs-tag" else 400)


@pytest.mark.slow
def test_no_text_of_the_test_split_is_in_training(task):
    _, data = task
    train = {text for row in data["train"] for text in texts_of(row)}
    for split in ("validation", "test"):
        assert not [
            text for row in data[split] for text in texts_of(row) if text in train
        ]


@pytest.mark.slow
def test_rows_are_in_the_split_of_their_module():
    """Seen in the one task whose rows name their module; the other four split by the
    same function."""
    for split, rows in load("pydocs-span", source="embedded").items():
        assert {pydocs.split_of(module) for module in rows["title"]} == {split}


@pytest.mark.slow
def test_prose_of_a_task_is_that_of_the_corpus_s_own_split():
    corpus = {
        split: " ".join(text for texts in rows["paragraphs"] for text in texts)
        for split, rows in pydocs.load().items()
        if split != "train"
    }
    for split, prose in corpus.items():
        for row in load("pydocs-topic", source="embedded")[split]:
            assert row["text"] in prose
        for row in load("pydocs-pair", source="embedded")[split]:
            assert row["sentence1"] in prose
            assert row["sentence2"] in prose


@pytest.mark.slow
def test_no_topic_names_a_package():
    names = re.compile(
        r"(?i)\b(numpy|scipy|sklearn|scikit-learn|sympy|networkx|pandas|matplotlib|torch|sqlalchemy)\b"
    )
    data = load("pydocs-topic", source="embedded")
    assert not [
        text for rows in data.values() for text in rows["text"] if names.search(text)
    ]


@pytest.mark.slow
def test_every_answer_stands_where_the_row_says():
    for rows in load("pydocs-span", source="embedded").values():
        for row in rows:
            (answer,), (start,) = row["answers"]["text"], row["answers"]["answer_start"]
            assert row["context"][start : start + len(answer)] == answer


@pytest.mark.slow
def test_tags_are_well_formed_and_as_many_as_tokens():
    data = load("pydocs-tag", source="embedded")
    names = data["train"].features["ner_tags"].feature.names
    for rows in data.values():
        for row in rows:
            tags = ["O", *(names[tag] for tag in row["ner_tags"])]
            assert len(row["tokens"]) == len(tags) - 1
            assert all(
                before[2:] == tag[2:]
                for before, tag in itertools.pairwise(tags)
                if tag.startswith("I-")
            ), row["tokens"]


@pytest.mark.slow
def test_each_text_of_a_pair_is_in_one_row_and_the_endings_of_a_choice_all_differ():
    pairs = load("pydocs-pair", source="embedded")
    for column in ("sentence1", "sentence2"):
        texts = [text for rows in pairs.values() for text in rows[column]]
        assert len(set(texts)) == len(texts)
    choices = load("pydocs-choice", source="embedded")["test"]
    assert all(len({row[f"ending{i}"] for i in range(4)}) == 4 for row in choices)


@pytest.mark.slow
def test_labels_cannot_be_guessed_without_reading(task):
    """Chance within three standard errors for guesses from half of the input; far from
    all for the others."""
    name, data = task
    scores = {control.name: control.score for control in CONTROLS[name][1](data)}
    blind = {
        "pydocs-pair": (
            "logistic regression on the words of `sentence1`",
            "logistic regression on the words of `sentence2`",
        ),
        "pydocs-choice": (
            "logistic regression on the endings alone",
            "always the most common place of training",
        ),
    }
    for control in blind.get(name, ()):
        chance = 25 if name == "pydocs-choice" else 50
        assert (
            abs(scores[control] - chance)
            < 300 * (chance / 100 * (1 - chance / 100) / len(data["test"])) ** 0.5
        )
    # the shape of a word tells much about names
    assert max(scores.values()) < (90 if name == "pydocs-tag" else 80)


@pytest.mark.slow
def test_a_reader_finds_48_of_50_sampled_labels_right(task):
    """A row that nobody has read counts against the task: where it changed, read the
    new sample."""
    name, data = task
    readings = sample(name, data)
    assert len(readings) == SIZE
    assert sum(reading.verdict == RIGHT for reading in readings) >= ENOUGH, [
        reading for reading in readings if reading.verdict != RIGHT
    ]


@pytest.mark.slow
def test_a_second_load_comes_from_the_cache(task, monkeypatch):
    """The rows are not made again: making them fails here."""
    name, data = task
    monkeypatch.setattr(TASKS[name], "make", lambda: pytest.fail("made again"))
    again = DATASETS[name].embedded()
    assert {split: len(rows) for split, rows in again.items()} == {
        split: len(rows) for split, rows in data.items()
    }


def test_labels_have_names():
    for name in TASKS:
        for feature in DATASETS[name].features.values():
            inner = getattr(feature, "feature", feature)
            assert not isinstance(inner, ClassLabel) or len(inner.names) >= 2
