"""Sentences: the rule against examples of each kind, against a grammar that knows its
sentences, and on any text."""

import random
import time
from itertools import pairwise

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from course_lib.data import load
from course_lib.data.sentences import split_sentences
from course_lib.data.stories import Teller, _cast
from course_lib.data.stories_lexicon import PLOTS, WORLDS

# Written as they stand in documentation; | marks where a sentence ends.
CUT = [
    "Return the sum.| See numpy.sum and numpy.mean.| Both take an axis.",
    "It is 0.5 by default.| Version 3.11.2 made it 1.| The file setup.cfg says so!",
    "Is it sorted?| No.| Sort it (in place).| Then search.",
    'He said "stop."| Then it stopped.',
    "The matrix A.| The vector b.",
    "It is of the form A.| B is of another.",
    "Combine graphs G and H.| The nodes are those of both.",
    "Takes a, b, etc.| The rest is ignored.",
    "Use `x.`| Then `y`.",
    "(A remark.)| [Another one.]| End",
    "It costs 3.| 4 is more.",
    "No!| Éric said.| Ünal did not.",
    "First line.|\nSecond line.|\t Third line.",
]
WHOLE = [
    (
        "Some formats, e.g. PNG, i.e. Portable Network Graphics, cf. GIF, vs. JPEG, are"
        " read."
    ),
    "Found by Golub et al. Journal of Numbers, named after Dr. Who and Prof. Bell.",
    "See Fig. 3, Eq. (4), pp. 84-86, vol. 7 and No. 12 of it.",
    "Written by D. E. Knuth and J. H. Wilkinson, corrected by R. W. Hamming.",
    "1. Take the first one.",
    "(ii.) Take the second one.",
    "Given x1, x2, ... X is their sum.",
    "SELECT ... FROM makes a query.",
    '"Is this yours?" Anna asked.',
    '"What a day!" said Otto.',
    (  # a known fault: the second begins with a small letter
        "numpy.sum takes an axis. dtype is a type"
    ),
]


@for_each("marked", CUT)
def test_a_sentence_ends_at_its_mark_before_a_capital_or_a_digit(marked):
    parts = marked.split("|")
    assert split_sentences("".join(parts)) == [part.strip() for part in parts]


@for_each("text", WHOLE)
def test_abbreviations_initials_numbers_and_quotations_do_not_end_a_sentence(text):
    assert split_sentences(text) == [text]


def test_a_number_is_not_cut_from_what_it_numbers_but_other_text_is():
    assert split_sentences("As in Fig. 2.") == ["As in Fig. 2."]
    assert split_sentences("The answer is no. Ask again.") == [
        "The answer is no.",
        "Ask again.",
    ]


def test_every_sentence_of_the_stories_is_found_as_the_grammar_told_it():
    rng = random.Random(11)
    for _ in range(60):
        world = rng.choice(WORLDS)
        teller = Teller(rng, _cast(rng, world), world)
        for part in PLOTS[rng.choice(sorted(PLOTS))]:
            told = [
                teller.tell(sentence) for step in part for sentence in rng.choice(step)
            ]
            assert split_sentences(" ".join(told)) == told


@given(st.text(alphabet="aB1.!?\"') e.g.i\n…“”", max_size=60))
def test_nothing_is_lost_but_space_and_a_sentence_is_one(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)
    assert [split_sentences(sentence) for sentence in sentences] == [
        [sentence] for sentence in sentences
    ]


def test_a_text_without_words_has_no_sentence():
    assert split_sentences("") == split_sentences(" \n ") == []


def processor_seconds(text):
    """How long splitting a text takes, at the best of three times."""
    started = [time.process_time()]
    for _ in range(3):
        split_sentences(text)
        started.append(time.process_time())
    return min(end - begin for begin, end in pairwise(started))


@for_each("repeated", [".", ". ", ")", " "])
@for_each("first", ["", "!", "."])
def test_a_hostile_text_takes_time_in_proportion_to_its_length(first, repeated):
    """16 times the text takes 16 times as long; by a rule that looks back at all before
    it, it takes 256 times."""
    assert processor_seconds(first + repeated * 160_000) < 64 * processor_seconds(
        first + repeated * 10_000
    )


@pytest.mark.slow
def test_most_documents_of_pydocs_have_two_sentences_and_few_are_overlong():
    """Half a dozen words more in a rule would move these shares by tenths of a percent;
    a broken rule, by tens."""
    rows = load("pydocs", source="embedded")["train"]
    counts = [
        sum(len(split_sentences(text)) for text in paragraphs)
        for paragraphs in rows["paragraphs"]
    ]
    assert 0.5 < sum(count >= 2 for count in counts) / len(counts) < 0.65
    words = [
        len(part.split())
        for paragraphs in rows["paragraphs"]
        for text in paragraphs
        for part in split_sentences(text)
    ]
    assert sum(length > 60 for length in words) / len(words) < 0.01
