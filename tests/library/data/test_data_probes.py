"""Sets written by hand: the sizes they promise, marks that point where they should, and
no shortcut to a label."""

import json
import re
from collections import Counter

import pytest

from course_lib.data import load, probes
from course_lib.data.task_controls import CONTROLS


@pytest.fixture(scope="module")
def senses():
    return load("senses", source="embedded")["test"]


@pytest.fixture(scope="module")
def reviews():
    return load("reviews", source="embedded")


@pytest.fixture(scope="module")
def questions():
    return load("questions", source="embedded")


# -- senses
# --------------------------------------------------------------------------------------


def test_ten_words_or_more_have_two_senses_or_more_of_twelve_sentences_or_more(senses):
    counts = Counter(zip(senses["word"], senses["sense"], strict=True))
    per_word = Counter(word for word, _ in counts)
    assert len(per_word) >= 10
    assert min(per_word.values()) >= 2
    assert min(counts.values()) >= 12


def test_the_place_of_a_word_is_its_only_place(senses):
    for row in senses:
        assert row["text"][row["start"] : row["end"]].lower() == row["word"]
        assert len(re.findall(rf"\b{row['word']}\b", row["text"], re.IGNORECASE)) == 1
    assert len(set(senses["text"])) == len(senses)


def test_where_a_word_stands_does_not_tell_its_sense(senses):
    """A guess of the sense from the word's place in the sentence, fitted on the very
    rows that it is scored on."""
    right = 0
    for word in set(senses["word"]):
        rows = [row for row in senses if row["word"] == word]
        place = {
            row["text"]: min(4, len(row["text"][: row["start"]].split()))
            for row in rows
        }
        table = Counter((place[row["text"]], row["sense"]) for row in rows)
        right += sum(
            max(table[at, sense] for sense in {row["sense"] for row in rows})
            for at in set(place.values())
        )
    assert right / len(senses) < 0.7


# -- reviews
# --------------------------------------------------------------------------------------


def test_three_hundred_reviews_or_more_are_half_positive_and_all_different(reviews):
    texts = [text for rows in reviews.values() for text in rows["text"]]
    assert len(set(texts)) == len(texts) >= 300
    for rows in reviews.values():
        assert sum(rows["label"]) * 2 == len(rows)


def test_a_review_and_its_opposite_are_neighbours_and_share_words(reviews):
    for rows in reviews.values():
        for one, other in zip(rows[::2]["text"], rows[1::2]["text"], strict=True):
            assert {*one.lower().split()} & {*other.lower().split()}
        assert rows["label"][:] == [1, 0] * (len(rows) // 2)


def test_no_single_word_decides_a_review(reviews):
    """Of the reviews with a word that is in eight or more, at most 85% agree; no word
    parts more than 60% rightly."""
    rows = [row for part in reviews.values() for row in part]
    words = {
        word: [] for row in rows for word in re.findall(r"\w+", row["text"].lower())
    }
    for row in rows:
        for word in set(re.findall(r"\w+", row["text"].lower())):
            words[word].append(row["label"])
    for word, labels in words.items():
        if len(labels) >= 8:
            assert max(labels.count(0), labels.count(1)) <= 0.85 * len(labels), word
        difference = abs(labels.count(1) - labels.count(0))
        assert 0.5 + difference / (2 * len(rows)) < 0.6, word


def test_the_length_of_a_review_does_not_tell_its_label(reviews):
    rows = [
        (len(row["text"].split()), row["label"])
        for part in reviews.values()
        for row in part
    ]
    for limit in range(40):
        share = sum((length > limit) == label for length, label in rows) / len(rows)
        assert 0.44 < share < 0.56


def test_counting_words_gets_few_reviews_right(reviews):
    assert max(control.score for control in CONTROLS["reviews"][1](reviews)) < 75


# -- entities
# --------------------------------------------------------------------------------------


def test_marked_entities_become_tags_and_what_follows_them_does_not():
    row = probes.tagged(
        "[ORG Bank of England] met [PER O'Neill]'s aunt in [LOC Saint-Malo]."
    )
    names = [probes.ENTITY_TAGS[tag] for tag in row["ner_tags"]]
    assert list(zip(row["tokens"], names, strict=True)) == [
        *(("Bank", "B-ORG"), ("of", "I-ORG"), ("England", "I-ORG"), ("met", "O")),
        *(
            ("O'Neill", "B-PER"),
            ("'s", "O"),
            ("aunt", "O"),
            ("in", "O"),
            ("Saint-Malo", "B-LOC"),
            (".", "O"),
        ),
    ]


def test_no_mark_is_left_in_the_tokens_and_each_kind_is_frequent():
    data = load("entities", source="embedded")
    names = data["train"].features["ner_tags"].feature.names
    for rows in data.values():
        assert not [
            token
            for tokens in rows["tokens"]
            for token in tokens
            if re.search(r"[\[\]]", token)
        ]
        counts = Counter(names[tag] for tags in rows["ner_tags"] for tag in tags)
        assert min(counts[f"B-{kind}"] for kind in ("PER", "LOC", "ORG")) >= 25
        assert any(not any(tags) for tags in rows["ner_tags"])


def test_many_names_are_of_two_kinds_so_that_remembering_them_is_not_enough():
    kinds = {}
    for sentence in json.loads(
        (probes.Path(probes.__file__).parent / "entities.json").read_text(
            encoding="utf-8"
        )
    ):
        for kind, name in re.findall(r"\[([A-Z]{3}) ([^\]]+)\]", sentence):
            kinds.setdefault(name, set()).add(kind)
    assert sum(len(found) > 1 for found in kinds.values()) >= 15
    assert (
        max(
            control.score
            for control in CONTROLS["entities"][1](load("entities", source="embedded"))
        )
        < 60
    )


# -- questions
# --------------------------------------------------------------------------------------


def test_each_answer_stands_once_in_its_context(questions):
    """Where an answer stands twice, the first is the one that is meant; a reader saw to
    it."""
    twice = 0
    for rows in questions.values():
        for row in rows:
            for answer, start in zip(
                row["answers"]["text"], row["answers"]["answer_start"], strict=True
            ):
                assert row["context"][start : start + len(answer)] == answer
                twice += row["context"].count(answer) > 1
    assert twice <= 1


def test_a_quarter_to_a_third_of_a_paragraphs_questions_have_no_answer(questions):
    for rows in questions.values():
        empty = [not row["answers"]["text"] for row in rows]
        assert 0.25 < sum(empty) / len(rows) < 0.34
        for title in set(rows["title"]):
            own = [
                none
                for none, name in zip(empty, rows["title"], strict=True)
                if name == title
            ]
            assert 0 < sum(own) < len(own)


def test_no_paragraph_is_in_both_splits_and_ids_are_unique(questions):
    assert not {*questions["train"]["title"]} & {*questions["test"]["title"]}
    ids = [name for rows in questions.values() for name in rows["id"]]
    assert len(set(ids)) == len(ids) >= 200


@pytest.mark.parametrize("name", ["senses", "reviews", "entities", "questions"])
def test_a_probe_comes_from_files_of_the_course_and_says_so(name, capsys):
    load(name, source="embedded")
    assert capsys.readouterr().out.startswith(f"{name}: embedded, written by hand (")
