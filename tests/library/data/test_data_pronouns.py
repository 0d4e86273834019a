"""The pronoun data: what "it" is can be known only by resolving it, and the gold says
what it is."""

from collections import Counter, defaultdict
from itertools import combinations, product

import pytest
from expect import refusal

from course_lib.data import load
from course_lib.data.pronouns import generate

# Written down here a second time, from a dictionary, so that a slip in the generator's
# tables shows.
FEMININE = {
    "vache",
    "chèvre",
    "souris",
    "tortue",
    "poule",
    "oie",
    "rue",
    "route",
    "rivière",
    "forêt",
    "plage",
    "avenue",
}
MASCULINE = {
    "animal",
    "chien",
    "chat",
    "cheval",
    "lapin",
    "canard",
    "pont",
    "sentier",
    "parc",
    "tunnel",
    "jardin",
    "escalier",
}
ANIMALS = {
    "animal",
    "dog",
    "cat",
    "horse",
    "rabbit",
    "duck",
    "cow",
    "goat",
    "mouse",
    "tortoise",
    "hen",
    "goose",
}
FITS_ANIMALS = {"tired", "hungry", "frightened", "lazy", "nervous", "proud"}


@pytest.fixture(scope="module")
def splits():
    return {split: generate(split) for split in ("train", "validation", "test")}


def nouns(row) -> tuple[str, str]:
    words = row["en"].split()
    return words[row["antecedent"]], words[row["other_noun"]]


def french(row) -> dict[int, list[str]]:
    """The French words that each English word is linked to."""
    words, linked = row["fr"].split(), defaultdict(list)
    for s, t in row["alignment"]:
        linked[s].append(words[t])
    return linked


def traits(row) -> tuple[bool, bool, bool]:
    """Whether the antecedent comes first, is an animal, is feminine."""
    word = nouns(row)[0]
    return (
        row["antecedent"] < row["other_noun"],
        word in ANIMALS,
        french(row)[row["antecedent"]][0] in FEMININE,
    )


@pytest.mark.parametrize(
    ("split", "size"), [("train", 13824), ("validation", 1728), ("test", 1728)]
)
def test_every_combination_of_traits_is_equally_frequent(splits, split, size):
    rows = splits[split]
    assert len({row["en"] for row in rows}) == len(rows) == size
    assert Counter(map(traits, rows)) == dict.fromkeys(
        product([False, True], repeat=3), size // 8
    )


def test_no_pair_of_nouns_is_in_two_splits_and_every_word_is_in_all(splits):
    pairs = {
        split: {frozenset(nouns(row)) for row in rows} for split, rows in splits.items()
    }
    assert [len(found) for found in pairs.values()] == [96, 12, 12]
    assert not any(pairs[a] & pairs[b] for a, b in combinations(pairs, 2))
    for side in ("en", "fr"):
        words = {
            split: {word for row in rows for word in row[side].split()}
            for split, rows in splits.items()
        }
        assert words["train"] == words["validation"] == words["test"]


def test_each_noun_is_as_often_what_it_stands_for_as_not(splits):
    for rows in splits.values():
        stands, other = (Counter(nouns(row)[place] for row in rows) for place in (0, 1))
        assert stands == other
        assert len(stands) == 24
        assert len(set(stands.values())) == 1


def test_the_last_word_alone_decides_which_noun_it_is(splits):
    """A Winograd schema: with another last word, the same sentence has the other
    antecedent."""
    for rows in splits.values():
        by_beginning = defaultdict(set)
        for row in rows:
            *beginning, last = row["en"].split()
            by_beginning[
                " ".join(beginning)
                .removeprefix("yesterday ")
                .removeprefix("this morning ")
            ].add((last in FITS_ANIMALS, nouns(row)[0]))
            assert (last in FITS_ANIMALS) == (nouns(row)[0] in ANIMALS)
        assert all(len(found) == 2 for found in by_beginning.values())
        assert all(
            {fits for fits, _ in found} == {True, False}
            for found in by_beginning.values()
        )


def genders(row) -> tuple[bool, bool]:
    """Whether the antecedent is feminine, and whether the other noun is."""
    links = french(row)
    found = [links[row[name]][0] for name in ("antecedent", "other_noun")]
    assert all((noun in FEMININE) is not (noun in MASCULINE) for noun in found)
    return found[0] in FEMININE, found[1] in FEMININE


def test_in_training_the_gender_of_one_noun_says_nothing_of_the_other(splits):
    assert Counter(map(genders, splits["train"])) == dict.fromkeys(
        product([False, True], repeat=2), 13824 // 4
    )


@pytest.mark.parametrize("split", ["validation", "test"])
def test_in_the_other_splits_who_takes_the_wrong_noun_gets_the_pronoun_wrong(
    splits, split
):
    assert all(
        antecedent is not other for antecedent, other in map(genders, splits[split])
    )


def test_the_french_pronoun_and_adjective_agree_with_the_antecedent(splits):
    forms = defaultdict(set)
    for row in splits["train"]:
        links = french(row)
        feminine, _ = genders(row)
        assert links[row["pronoun"]] == ["elle" if feminine else "il"]
        forms[row["en"].split()[-1]].add(
            (feminine, links[len(row["en"].split()) - 1][0])
        )
    assert {adjective: dict(found) for adjective, found in forms.items()} == {
        "tired": {False: "fatigué", True: "fatiguée"},
        "hungry": {False: "affamé", True: "affamée"},
        "frightened": {False: "effrayé", True: "effrayée"},
        "lazy": {False: "paresseux", True: "paresseuse"},
        "nervous": {False: "nerveux", True: "nerveuse"},
        "proud": {False: "fier", True: "fière"},
        "wide": {False: "large", True: "large"},
        "long": {False: "long", True: "longue"},
        "narrow": {False: "étroit", True: "étroite"},
        "dark": {False: "obscur", True: "obscure"},
        "dangerous": {False: "dangereux", True: "dangereuse"},
        "slippery": {False: "glissant", True: "glissante"},
    }


def test_articles_show_the_gender_of_their_noun_or_elide(splits):
    for row in splits["test"]:
        links = french(row)
        for place in (row["antecedent"], row["other_noun"]):
            (article,), (noun,) = links[place - 1], links[place]
            elided = noun in {"animal", "oie", "escalier", "avenue"}
            assert article == ("l'" if elided else "la" if noun in FEMININE else "le")


def test_links_join_every_french_word_to_the_english_word_it_stands_for(splits):
    for row in splits["validation"]:
        words, links = row["en"].split(), french(row)
        assert sorted(t for _, t in row["alignment"]) == list(
            range(len(row["fr"].split()))
        )
        assert set(links) == set(range(len(words)))
        assert words[row["pronoun"]] == "it"
        assert links[words.index("because")] == ["parce", "qu'"]
        assert links[words.index("not")] == ["n'", "pas"]
        assert links[words.index("did")] == ["a"]
        verb = links[words.index("not") + 1]
        assert len(verb) == 1
        assert verb[0].endswith(("é", "t", "s"))


def test_the_place_of_a_word_does_not_say_what_it_is(splits):
    places = Counter(row["pronoun"] for row in splits["train"])
    assert sorted(places) == [8, 9, 10]
    assert min(places.values()) > len(splits["train"]) / 4


def test_a_seed_chooses_openings_and_order_and_nothing_else():
    first, again, other = generate("test"), generate("test"), generate("test", seed=5)
    assert first == again
    assert first != other

    def core(rows):
        return {
            row["en"].removeprefix("yesterday ").removeprefix("this morning ")
            for row in rows
        }

    assert core(first) == core(other)


def test_the_catalogue_offers_it(splits):
    data = load("pronouns", "embedded")
    assert data["test"][3] == splits["test"][3]
    assert data["train"].num_rows == 13824


def test_a_split_that_does_not_exist_is_refused_in_words():
    with refusal("no split 'dev'; choose one of train, validation, test"):
        generate("dev")
