"""EM and F1 against the published rules of SQuAD's script, by hand and by an oracle
that works in another way.

The rules (Rajpurkar et al. 2016, section 6.1, and the script): small letters; ASCII
punctuation deleted; the words a, an, the deleted; white space to single spaces. Version
2 (Rajpurkar et al. 2018) adds questions without an answer.
"""

import string

import pytest
from cases import for_each
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.metrics.squad import (
    normalize_answer,
    squad_exact,
    squad_f1,
    squad_scores,
)


@for_each(
    ("text", "expected"),
    [
        ("Denver Broncos", "denver broncos"),
        ("the Denver Broncos", "denver broncos"),
        ("THE DENVER\tBroncos\n", "denver broncos"),
        ("  an  apple a day ", "apple day"),
        (
            "$1.5 million",
            "15 million",
        ),  # punctuation goes before words are looked at, and leaves no space
        ("co-operation", "cooperation"),
        ("state-of-the-art", "stateoftheart"),  # so no article is left in there
        ("A. A. Milne", "milne"),  # but these become articles
        ("theatre Anna aa", "theatre anna aa"),  # whole words only
        ("a–b", "–b"),  # a dash that is no ASCII ends a word and stays
        ("l’a", "l’"),  # as does a typographic apostrophe
        ("Ünïted À", "ünïted à"),  # accents stay
        ("the", ""),
        ("...", ""),
        ("a b", "b"),  # a no-break space is a space
    ],
)
def test_an_answer_is_normalised_by_the_published_rules(text, expected):
    assert normalize_answer(text) == expected


def by_characters(text):
    """The same rules without a regular expression: walk over the characters of
    words."""
    kept = [
        character for character in text.lower() if character not in string.punctuation
    ]
    words, word = [], ""
    for character in [*kept, " "]:
        if character.isalnum() or character == "_":
            word += character
            continue
        words.append(" " if word in ("a", "an", "the") else word)
        words.append(character)
        word = ""
    return " ".join("".join(words).split())


pieces = st.sampled_from(
    [
        "a",
        "an",
        "the",
        "The",
        "then",
        "x",
        "É",
        "12",
        " ",
        "  ",
        "\t",
        ".",
        "-",
        "–",
        "'",
        "_",
        "’",
    ]
)


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(pieces, max_size=9).map("".join))
def test_normalising_is_what_walking_over_characters_finds(text):
    assert normalize_answer(text) == by_characters(text)


def test_f1_by_hand():
    """3 of the guess's 4 words are among the gold answer's 5: 2·3/(4 + 5)."""
    assert squad_f1("red big dog barks", "The big, red dog of Paris") == pytest.approx(
        6 / 9, rel=1e-15
    )


def test_a_word_that_stands_twice_counts_twice():
    """Two of the guess's three "no" find a partner: 2·2/(3 + 2)."""
    assert squad_f1("no no no", "no no") == pytest.approx(4 / 5, rel=1e-15)


@for_each(
    ("guess", "gold", "of_version_1", "of_version_2"),
    [
        ("", "", 0, 1),
        ("the", "", 0, 1),
        ("", "Broncos", 0, 0),
        ("Broncos", "a", 0, 0),
        ("the", "An", 0, 1),
    ],
)
def test_what_is_left_empty_scores_as_each_version_of_the_script_has_it(
    guess, gold, of_version_1, of_version_2
):
    assert (squad_f1(guess, gold, version=1), squad_f1(guess, gold, version=2)) == (
        of_version_1,
        of_version_2,
    )


def test_exact_match_is_equality_of_what_is_left():
    assert squad_exact("The Broncos!", "broncos") == 1
    assert squad_exact("the Denver Broncos", "Broncos") == 0


def test_the_best_gold_answer_counts_for_each_score_on_its_own():
    """Exact with the third; F1 with the third too. In the second question: 2/3 with one
    answer, 0.8 with the other."""
    golds = [
        ["x", "Denver Broncos", "Broncos"],
        ["golden anniversary", "the gold themed"],
    ]
    score = squad_scores(["the Broncos", "gold themed anniversary"], golds, version=1)
    assert score.exact == pytest.approx(50, rel=1e-15)
    assert score.f1 == pytest.approx(100 * (1 + 4 / 5) / 2, rel=1e-15)


def test_scores_are_means_over_questions_in_percent():
    score = squad_scores(["a b c", "b", "q"], [["b c d"], ["b"], ["r", "s"]])
    assert score.exact == pytest.approx(100 / 3, rel=1e-15)
    assert score.f1 == pytest.approx(100 * (4 / 5 + 1 + 0) / 3, rel=1e-15)


def test_silence_is_right_exactly_where_there_is_no_answer():
    assert squad_scores(["", "", "Rome", "Rome"], [[], ["Rome"], [], ["Rome"]]) == (
        50,
        50,
    )


def test_gold_answers_of_which_nothing_is_left_do_not_count_in_version_2():
    """The question "which article?" has the gold answer "the": version 2 takes it for
    unanswerable."""
    assert squad_scores(["Rome"], [["the", "Rome"]]) == (100, 100)
    assert squad_scores(["Rome"], [["the"]]) == (0, 0)
    assert squad_scores([""], [["the"]]) == (100, 100)
    assert squad_scores([""], [["the", "Rome"]]) == (0, 0), (
        "silence is not right because one answer is an article"
    )
    assert squad_scores(["a"], [["the"]], version=1) == (100, 0)


def test_version_1_knows_no_question_without_an_answer():
    with refusal("question 1 has no gold answer; only version 2 knows"):
        squad_scores(["x", "y"], [["x"], []], version=1)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((["x"], []), "1 guesses but 0 lists of gold answers"),
        (([], []), "no guesses: there is nothing to score"),
        ((["x"], [["x"]], 3), "version is 3; SQuAD's script has versions 1 and 2"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, expected):
    with refusal(expected):
        squad_scores(*arguments)
