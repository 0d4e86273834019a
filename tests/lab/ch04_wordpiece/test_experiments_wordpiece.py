"""Chapter 4's experiments: each measure against a count by hand, on words and
frequencies that all differ."""

import math
import unicodedata
from itertools import chain

import pytest
from cases import for_each
from whole import whole_only

from course_lab.ch04_wordpiece import wordpiece, wordpiece_page
from course_lab.ch04_wordpiece.tokenizer_explorer import (
    CLASSES,
    Encoded,
    character_ranges,
    tokenizer_explorer,
)
from course_lab.ch04_wordpiece.wordpiece import (
    candidates,
    draw_samples,
    embedding_parameters,
    find_identifiers,
    layer_parameters,
    likelihood_gain,
    measure,
    most_frequent_words,
    nats_per_word,
    overlap,
    tokens_per_text,
    word_groups,
)
from course_lab.records import Record
from course_lib.figures.stepper import Row, Step, Table, stepped_figure
from course_lib.wordpiece.normalize import normalize_text
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece
from course_lib.wordpiece.training import pair_scores, train_wordpiece
from course_lib.wordpiece.unicode_classes import (
    is_chinese,
    is_control,
    is_punctuation,
    is_space,
)

NO_CLASSES: dict[str, list[int]] = {name: [] for name in CLASSES}
VOCAB = [*SPECIAL_TOKENS, "h", "##u", "##g", "hug", "##s", "p", "##n"]


def test_pieces_whole_words_and_unknown_words_are_counted_by_running_word():
    # hug: whole (7 times); hugs: 2 pieces (5); pun: 3 pieces (3); mug: [UNK], which is
    # one token (2)
    found = measure(VOCAB, {"hug": 7, "hugs": 5, "pun": 3, "mug": 2})
    assert found.pieces_per_word == (7 * 1 + 5 * 2 + 3 * 3 + 2 * 1) / 17
    assert found.unknown == 2 / 17
    assert found.whole == 7 / 17
    with pytest.raises(ValueError, match="no word"):
        measure(VOCAB, {})


def test_samples_share_no_document_and_reach_their_size():
    documents = [
        [f"d{number}p{place} a b" for place in range(number % 4 + 1)]
        for number in range(40)
    ]
    samples = draw_samples(documents, number=3, words=50, seed=6)
    names = [{text.split("p")[0] for text in sample} for sample in samples]
    assert all(not names[a] & names[b] for a, b in [(0, 1), (0, 2), (1, 2)])
    sizes = [sum(len(text.split()) for text in sample) for sample in samples]
    assert all(50 <= size < 50 + 12 for size in sizes), (
        "whole documents, of 12 words at most"
    )
    assert draw_samples(documents, 3, 50, seed=6) == samples
    assert draw_samples(documents, 3, 50, seed=7) != samples
    with pytest.raises(ValueError, match="not 3 samples of 500 words"):
        draw_samples(documents, 3, 500, seed=6)


def test_whole_words_are_the_most_frequent_and_ties_follow_string_order():
    assert most_frequent_words({"b": 3, "a": 3, "c": 9, "d": 1}, 8) == [
        *SPECIAL_TOKENS,
        "c",
        "a",
        "b",
    ]


def test_overlap_is_the_share_of_all_pieces_that_both_have():
    assert overlap(["a", "b", "c"], ["b", "c", "d", "e"]) == 2 / 5


def test_likelihood_of_a_text_by_hand():
    """Train: hug 3 times, hugs twice. Pieces: hug 5 and ##s 2, each of the 12 entries
    with one count more."""
    total = 5 + 2 + len(VOCAB)
    hug, s = -math.log(6 / total), -math.log(3 / total)
    found = nats_per_word(VOCAB, {"hug": 3, "hugs": 2}, {"hug": 4, "hugs": 1, "mug": 8})
    assert found == pytest.approx((4 * hug + 1 * (hug + s)) / 5, rel=1e-12), (
        "mug is unknown and left out"
    )


def test_the_gain_of_a_merge_is_the_difference_of_two_likelihoods():
    """The sum of f ln(f / F), counted on the pieces before and after merging h
    and ##u."""

    def log_likelihood(frequencies):
        total = sum(frequencies)
        return sum(f * math.log(f / total) for f in frequencies if f)

    before = [15, 36, 20, 17, 16, 4, 5]  # h, ##u, ##g, p, ##n, b, ##s of the five words
    after = [0, 36 - 15, 20, 17, 16, 4, 5, 15]
    gain = likelihood_gain(pair=15, left=15, right=36, total=sum(before))
    assert gain == pytest.approx(
        log_likelihood(after) - log_likelihood(before), rel=1e-12
    )


def test_candidates_agree_with_the_librarys_scores():
    counts = wordpiece_page.BY_HAND
    splits = {word: [word[0], *(f"##{c}" for c in word[1:])] for word in counts}
    found = {candidate.pair: candidate for candidate in candidates(counts)}
    scores = pair_scores(splits, counts)
    frequencies = pair_scores(splits, counts, "frequency")
    assert set(found) == set(scores)
    for pair, candidate in found.items():
        assert candidate.score == pytest.approx(float(scores[pair]), rel=1e-15)
        assert candidate.frequency == frequencies[pair]
        f, s = candidate.frequency, candidate.score
        assert candidate.gain > f * math.log(113 * s) - f, (
            "eq. (2), of 113 letters, up to its first-order terms"
        )
    assert all(a != b for a, b in (c.pair for c in candidates({"aaa": 2, "abb": 1})))


def test_parameters_of_berts_layers_and_embedding():
    """Devlin et al. 2019, table of sizes: BERT-base has 110M; without positions,
    segments and pooling, 108.5M."""
    assert embedding_parameters(30_522) == 23_440_896
    # torch.nn.TransformerEncoderLayer(768, 12, 3072), twelve times
    assert layer_parameters() == 85_054_464


def test_words_are_grouped_by_what_training_saw():
    train = {"the": 100, "of": 99, "rare": 9, "once": 1, "2024": 1}
    test = {
        "the": 5,
        "of": 4,
        "rare": 3,
        "once": 2,
        "novel": 1,
        "2024": 6,
        "7": 8,
        ",": 9,
    }
    groups = word_groups(train, test)
    assert groups == {
        "seen 100 times or more": {"the": 5},
        "seen 1 to 9 times": {"rare": 3, "once": 2},
        "never seen": {"novel": 1},
        "numbers": {"2024": 6, "7": 8},
    }


def test_names_in_code_are_found_and_counted_whole():
    found = find_identifiers(
        [
            "Use array_like or np.float64.",
            "camelCase, array_like, LayerNorm; e.g. Title HTTP",
        ]
    )
    assert found == {"array_like": 2, "np.float64": 1, "camelCase": 1, "LayerNorm": 1}
    counted = tokens_per_text(
        [*VOCAB, "_", "."], {"hug_hugs": 3, "hug": 1, "mug.hug": 1}
    )
    assert counted.pieces_per_word == (3 * 4 + 1 + 3) / 5
    assert (counted.unknown, counted.whole) == (1 / 5, 1 / 5)


def test_training_by_hand_shows_each_fraction_and_marks_the_pair_that_is_merged():
    steps = wordpiece_page.merge_steps(wordpiece_page.BY_HAND, merges=5)
    assert len(steps) == 6
    merges = train_wordpiece(wordpiece_page.BY_HAND, 7 + 5, specials=()).merges
    for step, merge in zip(steps, merges, strict=False):
        (marked,) = [row.cells for row in step.tables[1].rows if row.marked]
        assert (marked[0], marked[4]) == (
            f"{merge.left} {merge.right}",
            str(merge.score),
        )
    first = {row.cells[0]: row.cells[1:] for row in steps[0].tables[1].rows}
    assert first["##g ##s"] == ("5", "20", "5", "1/20")
    assert {cells[3] for pair, cells in first.items() if pair != "##g ##s"} == {"1/36"}
    scores = {row.cells[0]: row.cells[4] for row in steps[4].tables[1].rows}
    assert (scores["hu ##gs"], scores["hu ##g"]) == ("1/15", "2/45"), (
        "the syllabus, row 20"
    )
    assert not any(row.marked for row in steps[-1].tables[1].rows)


@whole_only
@pytest.mark.slow
def test_tables_of_characters_say_what_the_normaliser_does_to_every_character():
    classes, letters = wordpiece_page.character_tables()
    assert set(classes) == set(CLASSES)
    members = {
        name: {
            code
            for a, b in zip(r[::2], r[1::2], strict=True)
            for code in range(a, b + 1)
        }
        for name, r in classes.items()
    }
    assert members["chinese"] == {
        code for code in range(0x110000) if is_chinese(chr(code))
    }
    for code in chain(range(0xD800), range(0xE000, 0x110000)):
        character = chr(code)
        if code in members["removed"]:
            became = ""
        elif code in members["space"]:
            became = " "
        elif 0xAC00 <= code <= 0xD7A3:
            became = unicodedata.normalize("NFD", character)
        else:
            became = letters.get(character, character)
        wanted = normalize_text(character)
        assert became == (wanted[1:-1] if code in members["chinese"] else wanted), (
            f"U+{code:04X}"
        )
        if became and not is_space(character) and not is_control(character):
            assert (code in members["punctuation"]) == is_punctuation(character), (
                f"U+{code:04X}"
            )


def test_recorded_texts_are_hostile_ones_and_paragraphs_from_all_over():
    documents = [
        [f"paragraph {number} of a document, long enough to be chosen"] * 2 + ["short"]
        for number in range(200)
    ]
    texts = wordpiece_page.recorded_texts(documents, number=100)
    assert len(set(texts)) == 100
    assert set(wordpiece_page.HOSTILE) < set(texts)
    assert texts[-1].split()[1] > "190"
    with pytest.raises(ValueError, match="leaves 500 paragraphs"):
        wordpiece_page.recorded_texts(
            documents, number=len(wordpiece_page.HOSTILE) + 500
        )


@pytest.mark.real_data
def test_lectures_examples_are_split_as_berts_released_vocabulary_splits_them(
    real_data,
):
    """And the ids of one of them are those that lectures print."""
    released = WordPiece.load(real_data / "bert_base_uncased" / "vocab.txt")
    split = {
        text: " ".join(released.encode(text, add_special_tokens=False).tokens)
        for text in wordpiece.OF_LECTURES
    }
    assert split == wordpiece.OF_LECTURES
    ids = released.encode("a visually stunning rumination on love").ids
    assert ids == [101, 1037, 17453, 14726, 19379, 12758, 2006, 2293, 102]


def test_the_table_turns_times_into_words_a_second_and_the_ratio_around():
    result = {
        "what": "encode",
        "threads": 1,
        "words": 5_000,
        "milliseconds": 200.0,
        "peer_milliseconds": 8.0,
    }
    result |= {"ratio": 0.04, "low": 0.02, "high": 0.05}
    results = [result, result | {"threads": 2}]
    record = Record(
        "benchmark-tokenizer",
        "python x.py",
        {},
        [],
        results,
        "unknown",
        {},
        "2026-01-01",
    )
    one, two = wordpiece_page.benchmark_table(record).splitlines()[-2:]
    assert one == "| encode | 1 | 25,000 | 625,000 | 25.0 (20.0 to 50.0) |"
    assert two == "| encode | 2 |  |  | 25.0 (20.0 to 50.0) |", (
        "the wall clock says nothing about words a second"
    )


def test_ranges_of_code_points_are_closed_and_sorted():
    assert character_ranges([]) == []
    assert character_ranges([3, 5, 6, 7, 9]) == [3, 3, 5, 7, 9, 9]
    with pytest.raises(ValueError, match="5 follows 7"):
        character_ranges([6, 7, 5])


def test_the_page_refuses_what_it_could_not_show():
    classes, example = NO_CLASSES, Encoded("hug", ["hug"], [8], [(0, 3)])
    shown = tokenizer_explorer(
        VOCAB, classes, {}, example, [example], "the library"
    ).markup
    assert '"vocabulary":["[PAD]"' in shown
    assert '"ids":[8],"offsets":[[0,3]]' in shown
    for arguments, message in [
        ((VOCAB, {"space": []}, {}, example), "classes are"),
        (([*VOCAB, "hug"], classes, {}, example), "occurs twice"),
        ((VOCAB[3:], classes, {}, example), r"lacks \[UNK\]"),
        ((VOCAB, classes, {}, example, [example]), "what encoded"),
        (
            ([*VOCAB, *map(str, range(90_000))], classes, {}, example),
            "bytes, more than",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            tokenizer_explorer(*arguments)
    with pytest.raises(ValueError, match="1 tokens, 2 ids"):
        Encoded("hug", ["hug"], [8, 9], [(0, 3)])


@for_each("hostile", ["</script>", "<b>&amp;", '"', "'"])
def test_no_text_can_leave_its_place_in_the_page(hostile):
    example = Encoded(hostile, ["[UNK]"], [1], [(0, len(hostile))])
    shown = tokenizer_explorer(
        VOCAB, NO_CLASSES, {}, example, [example], hostile, title=hostile
    ).markup
    step = Step(
        hostile,
        [Table(hostile, (hostile,), [Row((hostile,), marked=True)], mark=hostile)],
        hostile,
    )
    for markup in (shown, stepped_figure([step], hostile).markup):
        assert markup.count("</script>") == markup.count("<script")
        assert "<b>" not in markup
        assert 'aria-label="""' not in markup


def test_a_stepped_figure_needs_steps_and_rows_that_fit():
    with pytest.raises(ValueError, match="no steps"):
        stepped_figure([], "Empty")
    with pytest.raises(ValueError, match="2 cells, but the header has 1"):
        Table("Pairs", ("pair",), [Row(("a b", "1/2"))])
    assert wordpiece.TRAINERS["WordPiece"][0] == "likelihood"
