"""What must hold in every generated pair: elision, links, agreement, even lengths,
splits that share nothing."""

import re
from collections import Counter
from itertools import pairwise

from cases import for_each
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.data import lexicon as lex
from course_lib.data.translation import generate

# -- what must hold in every sentence
# ----------------------------------------------------------------------------------

VOWEL = re.compile(r"(?!hibou)[aeiouyàâéèêëîïôùûœh]")


def test_french_elides_exactly_before_vowels(sentences):
    whole = {"le", "la", "ne", "que", "de", "ce", "ma"}
    for pair in sentences:
        words = pair["fr"].split()
        for first, second in pairwise(words):
            if first.endswith("'") or first in ("cet", "vieil", "bel", "nouvel"):
                assert VOWEL.match(second), pair["fr"]
            if first in whole:
                assert not VOWEL.match(second), pair["fr"]


def test_no_preposition_stands_before_an_article_that_it_swallows(sentences):
    text = "\n".join(f" {pair['fr']} " for pair in sentences)
    for wrong in (
        " de le ",
        " de les ",
        " à le ",
        " à les ",
        " de des ",
        " du l' ",
        " du la ",
        " que il ",
        " est étudiants ",
    ):
        assert wrong not in text


def test_every_word_is_linked_but_the_english_article_of_a_profession(sentences):
    for pair in sentences:
        en, fr = pair["en"].split(), pair["fr"].split()
        assert {t for _, t in pair["alignment"]} == set(range(len(fr)))
        silent = set(range(len(en))) - {s for s, _ in pair["alignment"]}
        for s in silent:
            assert en[s] in ("a", "an")
            assert en[s + 1] in {profession[0] for profession in lex.PROFESSIONS}
            assert en[s - 1] in ("am", "is", "not")


def test_links_join_words_that_the_lexicon_joins(sentences):
    """A link between the wrong words would be grammatical and in range: only the
    lexicon can tell."""
    nouns = {entry.en: entry.fr for entry in lex.NOUNS} | {
        entry.en_plural: entry.fr_plural for entry in lex.NOUNS
    }
    for singular, plural, *french in lex.PROFESSIONS:
        assert nouns[singular] in french
        assert nouns[plural] in french
    feminine_titles = {profession[3] for profession in lex.PROFESSIONS}
    checked = 0
    for pair in sentences:
        en, fr = pair["en"].split(), pair["fr"].split()
        for s, t in pair["alignment"]:
            if en[s] in nouns:
                assert fr[t] == nouns[en[s]] or fr[t] in feminine_titles, pair
                checked += 1
    assert checked > 5000


def test_verbs_have_the_number_of_their_english(sentences):
    verbs = [
        *lex.TRANSITIVE,
        *lex.INTRANSITIVE,
        *lex.DITRANSITIVE,
        *lex.REPORTING,
        lex.SPEAK,
    ]
    singular = {(verb.en, verb.fr) for verb in verbs} | {
        ("does", verb.fr) for verb in verbs
    }
    plural = {(verb.en_plural, verb.fr_plural) for verb in verbs} | {
        ("do", verb.fr_plural) for verb in verbs
    }
    mixed = {(verb.en, verb.fr_plural) for verb in verbs} | {
        ("does", verb.fr_plural) for verb in verbs
    }
    mixed |= {("do", verb.fr) for verb in verbs} | {("are", "est")}
    seen: Counter[str] = Counter()
    for pair in sentences:
        en, fr = pair["en"].split(), pair["fr"].split()
        found = {(en[s], fr[t]) for s, t in pair["alignment"]}
        assert not found & (mixed - singular - plural), pair
        seen["singular"] += bool(found & singular)
        seen["plural"] += bool(found & plural)
    assert min(seen.values()) > 500


def test_words_are_lower_case_with_one_space_between(sentences):
    for pair in sentences:
        for text in (pair["en"], pair["fr"]):
            assert text == " ".join(text.lower().split())


# -- lengths, seeds, splits
# --------------------------------------------------------------------------------------


def test_lengths_are_spread_evenly(sentences):
    assert Counter(len(pair["en"].split()) for pair in sentences) == dict.fromkeys(
        range(3, 61), 26
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), length=st.integers(3, 60))
def test_any_seed_gives_the_length_that_was_asked_for(seed, length):
    (pair,) = generate(1, seed, length, length)
    assert len(pair["en"].split()) == length
    assert max(s for s, _ in pair["alignment"]) == length - 1
    assert pair == generate(1, seed, length, length)[0]


def test_another_seed_gives_other_sentences():
    first, second = (
        {pair["en"] for pair in generate(200, seed, 10, 30)} for seed in (1, 2)
    )
    assert len(first & second) == 0


def test_vocabulary_is_small_enough_to_learn_in_seconds(sentences):
    for language in ("en", "fr"):
        assert (
            150
            < len({word for pair in sentences for word in pair[language].split()})
            <= 250
        )


def test_excluded_sentences_do_not_come_back():
    short = generate(150, seed=5, min_length=3, max_length=3)
    other = generate(
        150, seed=5, min_length=3, max_length=3, exclude={pair["en"] for pair in short}
    )
    assert not {pair["en"] for pair in short} & {pair["en"] for pair in other}


def test_long_sentences_hold_many_choices(sentences):
    """A model that memorised would need each sentence: no five words in a row of a long
    one are common."""
    windows: Counter[tuple[str, ...]] = Counter()
    for pair in sentences:
        words = pair["en"].split()
        if (
            len(words) >= 40
            and "organisation" not in words
            and "committee" not in words
        ):
            windows.update({tuple(words[i : i + 8]) for i in range(len(words) - 7)})
    assert max(windows.values()) <= 3


@for_each(
    ("arguments", "words"),
    [
        ((1, 0, 9, 7), "choose 3 <= min_length <= max_length <= 60"),
        ((1, 0, 2, 7), "makes sentences of 3 to 60"),
        ((1, 0, 5, 61), "makes sentences of 3 to 60"),
        ((-1, 0, 3, 7), "ask for 0 or more"),
    ],
)
def test_a_range_that_the_grammar_cannot_fill_is_refused_in_words(arguments, words):
    with refusal(re.escape(words)):
        generate(*arguments)


def test_asking_for_more_sentences_than_there_are_says_how_many_there_were(monkeypatch):
    monkeypatch.setattr(
        lex, "NOUNS", tuple(entry for entry in lex.NOUNS if entry.en == "cat")
    )
    monkeypatch.setattr(lex, "INTRANSITIVE", lex.INTRANSITIVE[:1])
    with refusal(
        r"no new sentence of 3 English words after \d+ of 500 pairs; ask for fewer"
    ):
        generate(500, seed=0, min_length=3, max_length=3)
