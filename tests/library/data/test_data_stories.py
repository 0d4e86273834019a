"""Stories: whole sentences that depend on one another, in a small vocabulary, split by
what they are about."""

import random
import re
from collections import Counter

import pytest
from cases import for_each
from expect import refusal

from course_lib.data import load
from course_lib.data import stories_lexicon as lex
from course_lib.data.stories import (
    PEOPLE,
    SIZES,
    Entity,
    Teller,
    _draw,
    generate,
    split_of,
)
from course_lib.data.stories_lexicon import PLOTS


@pytest.fixture(scope="module")
def stories():
    return {
        split: generate(split, n=n)
        for split, n in {"train": 900, "validation": 170, "test": 230}.items()
    }


def text_of(story):
    return " ".join(story["paragraphs"])


def words_of(story):
    return re.findall(r"[a-z]+", text_of(story).lower())


@pytest.mark.slow
def test_the_data_set_has_its_sizes_and_its_columns_whatever_the_split():
    data = load("stories", source="embedded")
    assert {split: len(rows) for split, rows in data.items()} == SIZES
    assert data["test"].column_names == [
        "document",
        "package",
        "module",
        "title",
        "paragraphs",
    ]
    names = [name for rows in data.values() for name in rows["document"]]
    assert len(set(names)) == sum(SIZES.values())


@pytest.mark.slow
def test_some_1300_words_make_all_stories_and_those_of_the_tests_occur_in_training():
    made = {
        split: Counter(word for story in generate(split) for word in words_of(story))
        for split in SIZES
    }
    assert 1250 <= len(made["train"]) <= 1400
    assert set(made["validation"]) | set(made["test"]) <= set(made["train"])


def test_the_same_seed_gives_the_same_stories_and_another_gives_others():
    assert generate("test", n=7) == generate("test", n=7)
    assert generate("test", n=7, seed=1) != generate("test", n=7)


def test_stories_of_a_world_name_its_people_alone_and_no_world_has_no_story():
    heroes = {
        story["title"].split()[0] for story in generate("test", n=40, worlds=[lex.FARM])
    }
    assert heroes == {*lex.FARM.women, *lex.FARM.men}
    with refusal("no world is given"):
        generate("test", n=1, worlds=[])


def test_no_story_and_no_hero_with_thing_and_goal_is_in_two_splits(stories):
    told = [text_of(story) for rows in stories.values() for story in rows]
    assert len(set(told)) == len(told) == 1300
    cast = {
        "A": Entity("Ada", "f"),
        "T": Entity("red lamp", "thing", "lamp"),
        "P": Entity("mill", "place"),
    }
    split = split_of(cast)
    # adjectives make no new content
    assert split_of({**cast, "T": Entity("old blue lamp", "thing", "lamp")}) == split
    goals = {split_of({**cast, "P": Entity(place, "place")}) for place in lex.PLACES}
    assert goals == set(SIZES)


@for_each(
    "fault",
    [
        r"[{}\[\]|]",
        r"\b[aA] [aeio]\w+",
        r"\ban [bcdfgjklmnpqrstvwxz]\w+",
        r"  ",
        r"\.\.",
    ],
)
def test_no_slot_is_left_and_articles_fit_their_words(stories, fault):
    found = [
        match
        for rows in stories.values()
        for story in rows
        for match in re.findall(fault, text_of(story))
    ]
    assert found == []


def test_a_thing_and_a_pair_agree_with_verbs_and_pronouns(stories):
    for story in stories["train"]:
        kind = story["title"].split()[-1]
        pair = kind in lex.PAIRS
        wrong = {
            True: rf"\b{kind} (was|is)\b|\bIs this\b",
            False: rf"\b{kind} (were|are)\b|\bAre these\b",
        }[pair]
        assert not re.search(wrong, text_of(story)), text_of(story)


def test_the_hour_only_moves_forward(stories):
    hours = {
        phrase: hour for hour, phrases in enumerate(lex.TIMES) for phrase in phrases
    }
    longest_first = "|".join(sorted(hours, key=len, reverse=True))
    for story in stories["train"]:
        told = [
            hours[match.lower()]
            for match in re.findall(longest_first, text_of(story), re.IGNORECASE)
        ]
        assert told == sorted(told), text_of(story)


def test_events_keep_their_order_a_thing_is_missed_before_it_is_found(stories):
    lost = [text_of(story) for story in stories["train"] if story["module"] == "lost"]
    assert len(lost) > 100
    for text in lost:
        missed = re.search(r"could not find|(was|were) gone|(was|were) missing", text)
        found = re.search(r"had found|had been", text)
        assert missed, text
        assert found, text
        assert missed.start() < found.start(), text


def test_hero_thing_and_friend_stay_the_same_through_a_story(stories):
    people = set(lex.WOMEN) | set(lex.MEN)
    for story in stories["train"]:
        named = people.intersection(re.findall(r"[A-Z]\w+", text_of(story)))
        assert len(named) == 2, text_of(story)
        assert story["title"].split()[0] in named
        assert story["title"].split()[-1] in text_of(story)


def test_a_story_is_at_home_in_one_world(stories):
    of_world = {world: {*world.women, *world.men} for world in lex.WORLDS}
    homes = Counter()
    for story in stories["train"]:
        text = text_of(story)
        named = {
            world
            for world, people in of_world.items()
            if people.intersection(re.findall(r"[A-Z]\w+", text))
        }
        assert len(named) == 1, text
        world = named.pop()
        homes[world] += 1
        assert story["title"].split()[-1] in (*world.things, *world.pairs), text
        others = {place for world in lex.WORLDS for place in world.places} - set(
            world.places
        )
        assert not any(
            re.search(rf"\b(at|to|near|by|beside|left) the {place}\b", text)
            for place in others
        ), text
    assert min(homes.values()) > len(stories["train"]) / len(homes) / 2


def test_the_first_words_of_a_list_are_told_most_by_zipfs_law():
    """Zipf 1949: the word of rank r is 1/r as frequent as the first."""
    rng = random.Random(3)
    drawn = Counter(_draw(rng, "abcde") for _ in range(6_000))
    expected = {
        letter: 6_000 / rank / (137 / 60)
        for rank, letter in enumerate("abcde", start=1)
    }
    for letter, count in expected.items():
        assert abs(drawn[letter] - count) < 5 * count**0.5, drawn


def test_no_name_is_at_home_in_two_worlds():
    names = [name for world in lex.WORLDS for name in (*world.women, *world.men)]
    assert len(set(names)) == len(names) == 4 * len(lex.WORLDS)


def test_every_plot_is_told_in_three_paragraphs(stories):
    assert {story["module"] for story in stories["train"]} == set(PLOTS)
    assert {len(story["paragraphs"]) for story in stories["train"]} == {3}


# -- pronouns
# --------------------------------------------------------------------------------------


def teller(hero="f", friend="f"):
    cast = {
        "A": Entity("Ada", hero),
        "B": Entity("Ben" if friend == "m" else "Bella", friend),
        "T": Entity("red lamp", "thing", "lamp"),
        "S": Entity("old skis", "pair", "skis"),
        "P": Entity("mill", "place"),
    }
    return Teller(random.Random(0), cast, lex.SEA)


def test_a_pronoun_stands_for_the_only_woman_and_a_name_where_there_are_two():
    alone, two = teller(friend="m"), teller(friend="f")
    assert alone.tell("{A.name} met {B.name}.") == "Ada met Ben."
    assert alone.tell("{A} thanked {B.object}.") == "She thanked him."
    assert two.tell("{A.name} met {B.name}.") == "Ada met Bella."
    assert two.tell("{A} thanked {B.object}.") == "Ada thanked Bella."


def test_a_possessive_stands_for_the_person_named_just_before():
    two = teller()
    assert two.tell("{A.name} met {B.name}.") == "Ada met Bella."
    assert two.tell("{B} hurt {B.possessive} leg.") == "Bella hurt her leg."
    assert two.tell("{A} took {B.possessive} hand.") == "Ada took Bella's hand."


def test_it_stands_for_the_thing_only_if_no_place_or_other_thing_was_mentioned():
    tell = teller().tell
    assert tell("{A.name} had {T.new}.") == "Ada had a red lamp."
    assert tell("{A} liked {T.object}.") == "She liked it."
    assert (
        tell("{A} went to {P} with {T.name}.")
        == "She went to the mill with the red lamp."
    )
    assert tell("{A} liked {T.object}.") in (
        "She liked the red lamp.",
        "She liked the lamp.",
    )


def test_nobody_is_a_pronoun_before_being_named():
    for gender in PEOPLE:
        assert teller(hero=gender).tell("{A} slept.") == "Ada slept."


def test_an_unknown_split_and_a_negative_number_are_refused_in_words():
    with refusal("no split 'dev'; choose one of train, validation, test"):
        generate("dev")
    with refusal("n is -1; ask for 0 or more"):
        generate("test", n=-1)
