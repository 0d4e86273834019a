"""Windows over a context, answers as positions, and the best span, each against a
search through all there is."""

import itertools
import math
import random

import pytest
import torch
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_tokenizer

from course_lib.finetuning.spans import (
    NO_ANSWER,
    Span,
    Window,
    answer_positions,
    best_spans,
    null_score,
    windows,
)
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

PIECES = "who was jim hen ##son a b ##b ##a puppet ##er . ? é 1 ##1"
TOKENIZER = tiny_tokenizer(PIECES, WordPiece)
CLS, SEP = TOKENIZER.vocab["[CLS]"], TOKENIZER.vocab["[SEP]"]
CONTEXT = (  # 14 pieces: jim hen ##son was a puppet ##er . b ##a ##b was 1 ##1 .
    "Jim Henson was a puppeter. Bab  was 11."
)

words = st.sampled_from(
    ["Jim", "henson", "was", "a", "puppeter", ".", "Bab", "É", "11", "​", "", "xyz"]
)
contexts = st.lists(words, max_size=14).map(" ".join)


# -- windows
# --------------------------------------------------------------------------------------


def test_a_short_context_is_one_window_with_the_question_in_front():
    """Devlin et al. 2019, section 4.2: the question has segment 0, the passage segment
    1."""
    [window] = windows("Who was Jim?", "a puppeter", TOKENIZER)
    assert (
        TOKENIZER.decode(window.input_ids, False)
        == "[CLS] who was jim? [SEP] a puppeter [SEP]"
    )
    assert window.token_type_ids == [0] * 6 + [1] * 4
    assert window.offsets == [None] * 6 + [(0, 1), (2, 8), (8, 10), None]
    assert window.best_context == [False] * 6 + [True] * 3 + [False]


@pytest.mark.parametrize("kind", [WordPiece, FastWordPiece])
def test_windows_go_forward_by_the_stride_until_the_end_is_seen(kind):
    """15 pieces, room for 9 − 1 − 3 = 5 in a window, stride 3: 9 + 5 is less than 15,
    so one more begins at 12."""
    tokenizer = tiny_tokenizer(PIECES, kind)
    found = windows("who", CONTEXT, tokenizer, max_length=9, stride=3)
    read = tokenizer.encode(CONTEXT, add_special_tokens=False)
    assert len(read.ids) == 15
    assert [window.input_ids for window in found] == [
        [CLS, TOKENIZER.vocab["who"], SEP, *read.ids[begin : begin + 5], SEP]
        for begin in (0, 3, 6, 9, 12)
    ]


def test_a_context_that_just_fits_is_one_window():
    assert len(windows("who", CONTEXT, TOKENIZER, max_length=1 + 3 + 15, stride=1)) == 1
    assert len(windows("who", CONTEXT, TOKENIZER, max_length=1 + 3 + 14, stride=1)) == 2


@settings(deadline=None)  # a busy machine is no failure
@given(contexts, st.integers(6, 14), st.integers(1, 4))
def test_each_token_is_at_its_best_in_exactly_one_window_and_no_window_is_too_long(
    context, max_length, stride
):
    """Devlin et al. 2019, their code: the smaller of what is seen left and right
    decides."""
    read = TOKENIZER.encode(context, add_special_tokens=False)
    room = max_length - 4
    if stride > room:
        return
    found = windows("who", context, TOKENIZER, max_length, stride)
    begins = [stride * number for number in range(len(found))]
    for token in range(len(read.ids)):
        shown = {}
        for number, (begin, window) in enumerate(zip(begins, found, strict=True)):
            size = len(window.input_ids) - 4
            if begin <= token < begin + size:
                assert window.offsets[3 + token - begin] == read.offsets[token]
                shown[number] = (min(token - begin, begin + size - 1 - token), size)
        best = [n for n in shown if found[n].best_context[3 + token - begins[n]]]
        assert len(best) == 1, "each token in one window, and in one only"
        assert shown[best[0]] == max(shown.values())
    assert all(len(window.input_ids) <= max_length for window in found)
    assert sum(sum(window.best_context) for window in found) == len(read.ids)


def test_a_long_question_is_cut():
    [window] = windows("who was jim henson?", "a", TOKENIZER, max_question_length=2)
    assert TOKENIZER.decode(window.input_ids, False) == "[CLS] who was [SEP] a [SEP]"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"max_length": 4},
            (
                "max_length=4 leaves no room beside a question of 1 tokens; pass at"
                " least 5"
            ),
        ),
        (
            {"max_length": 6, "stride": 3},
            "stride=3 is more than the 2 tokens of context that a window holds",
        ),
        ({"stride": 0}, "stride is 0"),
    ],
)
def test_windows_that_would_leave_tokens_out_are_refused(options, expected):
    with pytest.raises(ValueError, match=expected):
        windows("who", CONTEXT, TOKENIZER, **options)


# -- answers to positions
# --------------------------------------------------------------------------------------


@for_each(
    ("answer", "tokens"),
    [
        ("Jim", ["jim"]),
        ("Henson", ["hen", "##son"]),
        ("Jim Henson was", ["jim", "hen", "##son", "was"]),
        ("Bab  was", ["b", "##a", "##b", "was"]),
        ("Hens", ["hen", "##son"]),  # within a token: that token
        ("ab", ["##a", "##b"]),
        ("11.", ["1", "##1", "."]),
    ],
)
def test_the_tokens_of_an_answer_are_those_that_its_characters_lie_in(answer, tokens):
    [window] = windows("who", CONTEXT, TOKENIZER)
    start = CONTEXT.index(answer)
    first, last = answer_positions(window, start, start + len(answer))
    assert [
        TOKENIZER.pieces[index] for index in window.input_ids[first : last + 1]
    ] == tokens


@settings(deadline=None)  # a busy machine is no failure
@given(contexts.filter(str.strip), st.data(), st.integers(7, 12), st.integers(1, 3))
def test_an_answer_lies_in_exactly_the_windows_that_hold_all_its_tokens(
    context, data, max_length, stride
):
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, len(context)))
    read = TOKENIZER.encode(context, add_special_tokens=False)
    wanted = [
        i
        for i, (first, last) in enumerate(read.offsets)
        if first < end and last > start
    ]
    for number, window in enumerate(
        windows("who", context, TOKENIZER, max_length, stride)
    ):
        begin, size = number * stride, len(window.input_ids) - 4
        held = wanted and begin <= wanted[0] and wanted[-1] < begin + size
        expected = (
            (3 + wanted[0] - begin, 3 + wanted[-1] - begin) if held else NO_ANSWER
        )
        assert answer_positions(window, start, end) == expected


@pytest.mark.parametrize("place", [(3, 3), (5, 4), (-1, 2)])
def test_an_answer_without_characters_is_refused(place):
    [window] = windows("who", CONTEXT, TOKENIZER)
    with pytest.raises(ValueError, match="leave start and end out if there is none"):
        answer_positions(window, *place)


# -- the best span
# --------------------------------------------------------------------------------------


def random_logits(of_windows, generator, padding=0):
    """As many of each as the widest window has tokens, and behind them padding that
    would win if it were looked at."""
    width = max(len(window.input_ids) for window in of_windows) + padding
    rows = torch.randn(2, len(of_windows), width, generator=generator) * 2
    for number, window in enumerate(of_windows):
        rows[:, number, len(window.input_ids) :] = 50
        rows[:, number, 1:3] += 40  # the question and its [SEP], which are no answer
        rows[:, number, len(window.input_ids) - 1] += 30  # nor is the last [SEP]
    return list(rows[0]), list(rows[1])


def search(starts, ends, of_windows, longest):
    """Every span that is allowed, by its characters, with its best score (Devlin et al.
    2019, section 4.2)."""
    found = {}
    for start, end, window in zip(starts, ends, of_windows, strict=True):
        tokens = [i for i, place in enumerate(window.offsets) if place is not None]
        for i, j in itertools.product(tokens, tokens):
            if i <= j < i + longest and window.best_context[i]:
                place = window.offsets[i][0], window.offsets[j][1]
                found[place] = max(
                    found.get(place, -math.inf), (start[i] + end[j]).item()
                )
    return sorted(found.items(), key=lambda item: -item[1])


@for_each(("max_length", "stride"), [(40, 10), (12, 4), (9, 1), (7, 3)])
@for_each(("n_best", "longest"), [(1, 30), (4, 1), (7, 3), (500, 4)])
def test_the_best_spans_are_those_of_a_search_through_all(
    max_length, stride, n_best, longest
):
    of_windows = windows("who", CONTEXT, TOKENIZER, max_length, stride)
    for seed in range(5):
        starts, ends = random_logits(
            of_windows, torch.Generator().manual_seed(seed), padding=3
        )
        expected = search(starts, ends, of_windows, longest)[:n_best]
        found = best_spans(starts, ends, of_windows, n_best, longest)
        assert [(span.start, span.end) for span in found] == [
            place for place, _ in expected
        ]
        assert [span.score for span in found] == pytest.approx(
            [score for _, score in expected], rel=1e-6
        )


def test_start_and_end_are_chosen_together_and_never_in_the_wrong_order():
    """The best end stands before the best start, so neither argmax is part of the best
    span."""
    [window] = windows("who", "jim was a", TOKENIZER)
    start = torch.tensor([0.0, 0, 0, 1.0, 2.0, 5.0, 0])
    end = torch.tensor([0.0, 0, 0, 4.5, 3.0, -4.0, 0])
    assert best_spans([start], [end], [window], n_best=1)[0].text("jim was a") == "jim"
    assert best_spans([start], [end], [window], n_best=3)[1][:3] == (4, 7, 5.0)


def test_probabilities_are_shared_among_the_spans_that_are_returned():
    [window] = windows("who", "jim was", TOKENIZER)
    start = torch.tensor([0.0, 0, 0, 3.0, 1.0, 0])
    end = torch.tensor([0.0, 0, 0, 1.0, 1.5, 0])
    found = best_spans([start], [end], [window], n_best=2)
    assert [span.score for span in found] == [4.5, 4.0]
    expected = 1 / (1 + math.exp(-0.5))
    assert [span.probability for span in found] == pytest.approx(
        [expected, 1 - expected], rel=1e-12
    )


def test_an_answer_is_cut_out_of_the_text_as_it_was_typed():
    context = "The ÉTÉ  of  Jim\tHenson, was."
    [window] = windows("who", context, TOKENIZER)
    places = [place for place in window.offsets if place is not None]
    assert Span(places[2][0], places[4][1], 0.0, 1.0).text(context) == "of  Jim\tHen"
    assert Span(*NO_ANSWER, 0.0, 1.0).text(context) == ""


def test_of_equal_scores_the_first_and_then_the_shorter_span_comes_first():
    [window] = windows("who", "jim was a", TOKENIZER)
    nothing = torch.zeros(len(window.input_ids))
    places = [
        (span.start, span.end) for span in best_spans([nothing], [nothing], [window])
    ]
    assert places == [(0, 3), (0, 7), (0, 9), (4, 7), (4, 9), (8, 9)]


def test_of_tokens_that_stand_for_the_same_characters_the_better_one_counts():
    """One letter of the text can become two characters when it is normalised, and so
    two tokens."""
    inside = [False, False, True, True, False]
    window = Window(
        [CLS, SEP, 5, 6, SEP],
        [0, 0, 1, 1, 1],
        [None, None, (0, 1), (0, 1), None],
        inside,
        (0, 1),
    )
    for start, end in (
        ([0.0, 0, 3, 1, 0], [0.0, 0, 2, 1, 0]),
        ([0.0, 0, 1, 3, 0], [0.0, 0, 1, 2, 0]),
    ):
        found = best_spans([torch.tensor(start)], [torch.tensor(end)], [window])
        assert [(span.start, span.end, span.score) for span in found] == [(0, 1, 5.0)]


def test_half_precision_logits_are_added_in_single_precision():
    """256 + 1.5 is 257.5; the numbers of bfloat16 go in steps of 2 there."""
    [window] = windows("who", "jim was", TOKENIZER)
    start = torch.tensor([0.0, 0, 0, 256, 256, 0], dtype=torch.bfloat16)
    end = torch.tensor([0.0, 0, 0, 1.5, 1.0, 0], dtype=torch.bfloat16)
    assert best_spans([start], [end], [window], n_best=1)[0].score == 257.5


# -- no answer
# --------------------------------------------------------------------------------------

# best 4.5, none 3.5
START = torch.tensor([2.0, 0, 0, 3.0, 1.0, 0])
END = torch.tensor([1.5, 0, 0, 1.0, 1.5, 0])


@for_each(
    ("threshold", "answered"),
    [(0.0, True), (0.99, True), (1.0, False), (2.0, False), (-9.0, True)],
)
def test_there_is_an_answer_if_its_score_is_above_that_of_none_plus_the_threshold(
    threshold, answered
):
    """Devlin et al. 2019, section 4.3: a non-null answer when s_ij > s_null + τ."""
    [window] = windows("who", "jim was", TOKENIZER)
    found = best_spans([START], [END], [window], null_threshold=threshold)
    assert found[0].text("jim was") == ("jim was" if answered else "")
    assert len(found) == 4
    assert [span.score for span in found if (span.start, span.end) == NO_ANSWER] == [
        3.5
    ]


def test_no_answer_has_its_place_among_the_others():
    """Scores 4.5, 4.0, 2.5 and none 3.5."""
    [window] = windows("who", "jim was", TOKENIZER)
    assert [
        x.score for x in best_spans([START], [END], [window], null_threshold=0.0)
    ] == [4.5, 4.0, 3.5, 2.5]
    assert [
        x.score for x in best_spans([START], [END], [window], null_threshold=9.0)
    ] == [3.5, 4.5, 4.0, 2.5]
    assert [
        x.score for x in best_spans([START], [END], [window], null_threshold=-9.0)
    ] == [4.5, 4.0, 3.5, 2.5]
    assert [
        x.score
        for x in best_spans(
            [START],
            [END + torch.tensor([9.0, 0, 0, 0, 0, 0])],
            [window],
            null_threshold=-99.0,
        )
    ] == [4.5, 12.5, 4.0, 2.5]


def test_without_a_threshold_there_always_is_an_answer():
    [window] = windows("who", "jim was", TOKENIZER)
    sure = START + torch.tensor([99.0, 0, 0, 0, 0, 0])
    assert all(span.end > 0 for span in best_spans([sure], [END], [window]))


def test_a_context_without_tokens_has_no_answer():
    [window] = windows("who", " ​ ", TOKENIZER)
    logits = torch.tensor([1.0, 9.0, 9.0, 9.0])
    assert best_spans([logits], [logits], [window]) == [Span(0, 0, 2.0, 1.0)]


def test_the_window_that_believes_least_in_no_answer_speaks_for_all():
    starts = [torch.tensor([4.0, 9]), torch.tensor([1.0, 0])]
    ends = [torch.tensor([1.0, 0]), torch.tensor([2.5, 9])]
    assert null_score(starts, ends) == 3.5


@for_each(
    ("change", "expected"),
    [
        ({"n_best": 0}, "n_best is 0"),
        ({"max_answer_length": 0}, "max_answer_length is 0"),
        (
            {"start_logits": []},
            "1 windows, but 0 rows of start logits and 1 of end logits",
        ),
        (
            {"end_logits": [torch.zeros(5)]},
            "a window of 6 tokens has 6 start logits and 5 end logits",
        ),
        ({"of_windows": [], "start_logits": [], "end_logits": []}, "0 windows"),
    ],
)
def test_logits_that_do_not_belong_to_the_windows_are_refused(change, expected):
    arguments = {
        "start_logits": [START],
        "end_logits": [END],
        "of_windows": windows("who", "jim was", TOKENIZER),
    }
    with pytest.raises(ValueError, match=expected):
        best_spans(**arguments | change)


@pytest.mark.real_data
def test_a_model_that_knows_the_answers_to_squad_gets_nearly_all_of_them_back(
    real_data,
):
    """Decoding from perfect logits, in windows, scores as the text of the answers does:
    99% of 600 questions."""
    import pyarrow.parquet as pq

    from course_lib.metrics.squad import squad_scores

    folder = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if not (folder / "vocab.txt").is_file():
        pytest.skip(
            f"no published vocabulary: there is no {folder.parent.name}/{folder.name}"
            " beside the public data"
        )
    tokenizer = FastWordPiece.load(folder)
    rows = pq.read_table(real_data / "squad" / "validation.parquet").to_pylist()
    rows = random.Random(0).sample(rows, 600)
    guesses = []
    for row in rows:
        start = row["answers"]["answer_start"][0]
        end = start + len(row["answers"]["text"][0])
        of_windows = windows(
            row["question"], row["context"], tokenizer, max_length=160, stride=50
        )
        starts, ends = (
            [torch.zeros(len(window.input_ids)) for window in of_windows]
            for _ in range(2)
        )
        for number, window in enumerate(of_windows):
            first, last = answer_positions(window, start, end)
            starts[number][first] += 5
            ends[number][last] += 5
        guesses.append(best_spans(starts, ends, of_windows)[0].text(row["context"]))
    score = squad_scores(guesses, [row["answers"]["text"] for row in rows], version=1)
    assert score.exact > 98.5
    assert score.f1 > 99
