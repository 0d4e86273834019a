"""Decoding against enumeration, against a beam search written with plain lists, and
against its own promises."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import torch
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.seq2seq.batched_search import beam_search_batch
from course_lib.seq2seq.search import (
    Hypothesis,
    beam_search,
    greedy,
    length_penalty_at,
    reorder_state,
    sample,
)

BOS, EOS = 0, 1
EXACT = 1e-12  # sums of a few float64 logarithms
#: A search computes where its state lies; without one, on the CPU.
STATELESS = pytest.mark.cpu


class Recurrent:
    """A small recurrent model in float64 whose next token depends on all tokens before
    it and on the sentence."""

    def __init__(
        self, seed: int, vocabulary: int, hidden: int = 3, eos_bias: float = 0.0
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        draw = lambda *shape: torch.randn(
            *shape, generator=generator, dtype=torch.float64
        )
        self.embedding, self.recurrence = (
            2 * draw(vocabulary, hidden),
            draw(hidden, hidden),
        )
        self.output, self.sentences = (
            1.5 * draw(hidden, vocabulary),
            2 * draw(8, hidden),
        )
        self.bias = torch.zeros(vocabulary, dtype=torch.float64)
        self.bias[EOS] = eos_bias
        self.calls = 0

    def start(self, *sentences: int) -> dict[str, Any]:
        return {
            "hidden": self.sentences[list(sentences)],
            "history": ([None], torch.zeros(len(sentences), 1)),
        }

    def step(
        self, state: dict[str, Any], tokens: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        self.calls += 1
        hidden = torch.tanh(state["hidden"] @ self.recurrence + self.embedding[tokens])
        return (hidden @ self.output + self.bias).log_softmax(-1), {
            **state,
            "hidden": hidden,
        }

    def log_prob(self, sentence: int, tokens: list[int]) -> float:
        """The log-probability of emitting exactly ``tokens``, one forward step at a
        time."""
        state, total = self.start(sentence), 0.0
        for before, after in pairwise([BOS, *tokens]):
            log_probs, state = self.step(state, torch.tensor([before]))
            total += log_probs[0, after].item()
        return total


def every_finished(
    model: Recurrent, sentence: int, vocabulary: int, max_length: int, alpha: float
) -> list[Hypothesis]:
    """All sequences that end within ``max_length``, best score first: what no search
    can beat."""
    found = []

    def extend(tokens: list[int], log_prob: float, state: Any) -> None:
        log_probs, state = model.step(state, torch.tensor([([BOS, *tokens])[-1]]))
        for word in range(vocabulary):
            total = log_prob + log_probs[0, word].item()
            if word == EOS:
                found.append(
                    Hypothesis(
                        tokens,
                        total,
                        True,
                        total / ((5 + len(tokens) + 1) / 6) ** alpha,
                    )
                )
            elif len(tokens) + 1 < max_length:
                extend([*tokens, word], total, state)

    extend([], 0.0, model.start(sentence))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def beam_of_lists(
    model: Recurrent,
    sentence: int,
    max_length: int,
    beam_size: int,
    alpha: float,
    n_best: int,
) -> list[Hypothesis]:
    """The same search for one sentence, in plain lists, that never stops early."""
    live: list[tuple[float, list[int], Any]] = [(0.0, [], model.start(sentence))]
    finished: list[Hypothesis] = []
    for length in range(1, max_length + 1):
        candidates = []
        for log_prob, tokens, state in live:
            log_probs, after = model.step(state, torch.tensor([([BOS, *tokens])[-1]]))
            candidates += [
                (log_prob + p, [*tokens, word], after)
                for word, p in enumerate(log_probs[0].tolist())
            ]
        candidates.sort(key=lambda candidate: -candidate[0])
        for log_prob, tokens, _ in candidates[:beam_size]:
            if tokens[-1] == EOS:
                finished.append(
                    Hypothesis(
                        tokens[:-1],
                        log_prob,
                        True,
                        log_prob / ((5 + length) / 6) ** alpha,
                    )
                )
        live = [candidate for candidate in candidates if candidate[1][-1] != EOS][
            :beam_size
        ]
    finished.sort(key=lambda hypothesis: -hypothesis.score)
    last = ((5 + max_length) / 6) ** alpha
    return (finished or [Hypothesis(t, p, False, p / last) for p, t, _ in live])[
        :n_best
    ]


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [hypothesis.tokens for hypothesis in found] == [
        hypothesis.tokens for hypothesis in expected
    ]
    assert [hypothesis.finished for hypothesis in found] == [
        hypothesis.finished for hypothesis in expected
    ]
    for name in ("log_prob", "score"):
        assert [getattr(h, name) for h in found] == pytest.approx(
            [getattr(h, name) for h in expected], abs=EXACT
        )


def test_length_penalty_is_equation_14_of_wu_et_al_2016():
    assert length_penalty_at(13, 0.6) == pytest.approx(
        (5 + 13) ** 0.6 / (5 + 1) ** 0.6, rel=1e-15
    )
    assert length_penalty_at(13, 0.0) == 1.0


@for_each("alpha", [0.0, 0.6, 1.0, 2.5])
@for_each("seed", range(4))
def test_a_beam_as_wide_as_all_prefixes_finds_what_enumeration_finds(seed, alpha):
    vocabulary, max_length = 4, 4
    model = Recurrent(seed, vocabulary)
    # all live prefixes of the last step, times the vocabulary
    everything = 3**3 * vocabulary
    found = beam_search_batch(
        model.step,
        model.start(2, 5),
        2,
        BOS,
        EOS,
        max_length,
        everything,
        alpha,
        n_best=6,
    )
    for hypotheses, sentence in zip(found, (2, 5), strict=True):
        assert_same(
            hypotheses,
            every_finished(model, sentence, vocabulary, max_length, alpha)[:6],
        )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.integers(2, 6),
    beam_size=st.integers(1, 5),
    max_length=st.integers(1, 7),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0, 3.0]),
    eos_bias=st.sampled_from([-3.0, 0.0, 1.5]),
    data=st.data(),
)
def test_beam_search_equals_a_search_with_lists_that_never_stops_early(
    seed, vocabulary, beam_size, max_length, alpha, eos_bias, data
):
    model = Recurrent(seed, vocabulary, eos_bias=eos_bias)
    n_best = data.draw(st.integers(1, beam_size))
    found = beam_search_batch(
        model.step,
        model.start(4, 0, 7),
        3,
        BOS,
        EOS,
        max_length,
        beam_size,
        alpha,
        n_best,
    )
    for hypotheses, sentence in zip(found, (4, 0, 7), strict=True):
        assert_same(
            hypotheses,
            beam_of_lists(model, sentence, max_length, beam_size, alpha, n_best),
        )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), max_length=st.integers(1, 9))
def test_a_beam_of_one_without_penalty_is_greedy(seed, max_length):
    model = Recurrent(seed, 5)
    searched = beam_search_batch(
        model.step, model.start(1, 3, 6), 3, BOS, EOS, max_length, 1, 0.0
    )
    walked = greedy(model.step, model.start(1, 3, 6), 3, BOS, EOS, max_length)
    assert_same([best for (best,) in searched], walked)


@pytest.mark.parametrize("search", ["greedy", "sample", "beam"])
def test_log_prob_is_the_models_own_sum_with_the_end_token_when_it_was_emitted(search):
    model, sentences = Recurrent(3, 7, eos_bias=2.0), (0, 2, 4, 5, 7)
    arguments = (model.step, model.start(*sentences), len(sentences), BOS, EOS, 6)
    found = {
        "greedy": lambda: greedy(*arguments),
        "sample": lambda: sample(
            *arguments,
            temperature=1.7,
            top_k=4,
            generator=torch.Generator().manual_seed(5),
        ),
        "beam": lambda: [
            best
            for best, *_ in beam_search_batch(
                *arguments, beam_size=3, length_penalty=0.9
            )
        ],
    }[search]()
    # sentences end at different steps
    assert len({len(hypothesis.tokens) for hypothesis in found}) > 1
    for sentence, hypothesis in zip(sentences, found, strict=True):
        emitted = hypothesis.tokens + [EOS] * hypothesis.finished
        assert EOS not in hypothesis.tokens
        assert hypothesis.log_prob == pytest.approx(
            model.log_prob(sentence, emitted), abs=EXACT
        )


@STATELESS
def test_a_search_that_stops_at_the_first_end_would_miss_the_better_long_sentence():
    """P(<eos>) = .5 at once, but the long way has .4 at 4 steps: with alpha = 1 its
    score -0.92/1.5 beats -0.69."""
    table = torch.full((5, 5), -math.inf, dtype=torch.float64)
    table[BOS] = torch.tensor([0.0, 0.5, 0.4, 0.1, 0.0], dtype=torch.float64).log()
    table[2, 3] = table[3, 4] = table[4, EOS] = 0.0
    step = lambda state, last: (table[last], state)
    (with_penalty,), (without,) = (
        beam_search_batch(step, None, 1, BOS, EOS, 6, 2, alpha)[0]
        for alpha in (1.0, 0.0)
    )
    assert with_penalty.tokens == [2, 3, 4]
    assert with_penalty.score == pytest.approx(math.log(0.4) / 1.5, abs=EXACT)
    assert without.tokens == []


@STATELESS
def test_the_search_stops_as_soon_as_no_live_hypothesis_can_win():
    """<eos> has .9, so no other hypothesis has more than .1; 20 steps divide its log by
    25/6 at most: log(.1) / 4.17 is below log(.9)."""
    calls = []
    row = torch.tensor([[0.06, 0.9, 0.04]], dtype=torch.float64).log()

    def step(state: Any, last: Tensor) -> tuple[Tensor, Any]:
        calls.append(len(last))
        return row.expand(len(last), -1), state

    (best,) = beam_search_batch(step, None, 1, BOS, EOS, 20, 2, 1.0)[0]
    assert best.tokens == []
    assert calls == [2]


def test_one_sentence_that_is_done_does_not_stop_the_others():
    table = torch.full((2, 4, 4), -20.0, dtype=torch.float64)
    table[0, :, EOS] = table[1, BOS, 2] = table[1, 2, 3] = table[1, 3, EOS] = 0.0
    table = table.log_softmax(-1)
    step = lambda rows, last: (rows[torch.arange(len(last)), last], rows)
    for found in (
        [best for (best,) in beam_search_batch(step, table, 2, BOS, EOS, 9, 3)],
        greedy(step, table, 2, BOS, EOS, 9),
    ):
        assert [hypothesis.tokens for hypothesis in found] == [[], [2, 3]]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_decoding_sentences_together_or_alone_gives_the_same(beam_size):
    model = Recurrent(11, 6)
    together = beam_search_batch(
        model.step,
        model.start(0, 1, 2, 3, 4),
        5,
        BOS,
        EOS,
        8,
        beam_size,
        n_best=beam_size,
    )
    for sentence, hypotheses in enumerate(together):
        (alone,) = beam_search_batch(
            model.step,
            model.start(sentence),
            1,
            BOS,
            EOS,
            8,
            beam_size,
            n_best=beam_size,
        )
        assert_same(hypotheses, alone)


@STATELESS
def test_where_nothing_ends_in_time_the_best_unfinished_hypotheses_come_back_marked():
    table = torch.tensor([0.5, 0.0, 0.2, 0.3]).log().expand(4, 4)  # <eos> is impossible
    step = lambda state, last: (table[last], state)
    best, second, third = beam_search_batch(
        step, None, 1, BOS, EOS, 3, 4, 0.6, n_best=3
    )[0]
    assert (best.tokens, best.finished) == ([0, 0, 0], False)
    assert best.log_prob == pytest.approx(3 * math.log(0.5), abs=1e-6)
    assert best.score == pytest.approx(
        3 * math.log(0.5) / length_penalty_at(3, 0.6), abs=1e-6
    )
    assert (
        second.log_prob
        == third.log_prob
        == pytest.approx(math.log(0.5 * 0.5 * 0.3), abs=1e-6)
    )
    (walked,) = greedy(step, None, 1, BOS, EOS, 3)
    assert (walked.tokens, walked.finished) == ([0, 0, 0], False)


@STATELESS
def test_the_end_token_may_be_the_last_that_fits():
    table = torch.full((4, 4), -9.0)
    table[BOS, 2] = table[2, 3] = table[3, EOS] = 0.0
    table = table.log_softmax(-1)
    step = lambda state, last: (table[last], state)
    assert greedy(step, None, 1, BOS, EOS, 3)[0].finished
    assert not greedy(step, None, 1, BOS, EOS, 2)[0].finished
    assert beam_search_batch(step, None, 1, BOS, EOS, 3, 2)[0][0].tokens == [2, 3]


def test_a_finished_hypothesis_is_never_extended():
    """Every way on from <eos> is a certainty: a search that extended finished
    hypotheses could not resist."""
    model = Recurrent(8, 6, eos_bias=1.0)
    seen = []

    def step(state: Any, last: Tensor) -> tuple[Tensor, Any]:
        log_probs, state = model.step(state, last)
        seen.append(last)
        certain = torch.full_like(log_probs, -math.inf)
        certain[:, 5] = 0.0
        return torch.where((last == EOS).unsqueeze(-1), certain, log_probs), state

    for beam_size in (1, 4):
        found = beam_search_batch(
            step, model.start(0, 1, 2), 3, BOS, EOS, 7, beam_size, 1.0
        )
        for sentence, (best,) in enumerate(found):
            assert best.log_prob == pytest.approx(
                model.log_prob(sentence, [*best.tokens, EOS]), abs=EXACT
            )
    walked = greedy(step, model.start(0, 1, 2), 3, BOS, EOS, 7)
    assert_same(walked, greedy(model.step, model.start(0, 1, 2), 3, BOS, EOS, 7))


# The 99.9 % point of chi-square with 4 and 2 degrees of freedom (any table).
CHI_SQUARE_999 = {4: 18.467, 2: 13.816}


@STATELESS
@for_each(
    ("temperature", "top_k", "freedom"),
    [(1.0, None, 4), (0.6, None, 4), (2.5, None, 4), (1.8, 3, 2)],
)
def test_sampled_frequencies_follow_the_tempered_and_cut_distribution(
    temperature, top_k, freedom
):
    draws = 20_000
    weights = torch.tensor([0.05, 0.1, 0.15, 0.3, 0.4], dtype=torch.float64)
    step = lambda state, last: (weights.log().expand(len(last), -1), state)
    generator = torch.Generator().manual_seed(1)
    found = sample(step, None, draws, BOS, EOS, 1, temperature, top_k, generator)
    counts = Counter(
        EOS if hypothesis.finished else hypothesis.tokens[0] for hypothesis in found
    )
    kept = weights.clone()
    if top_k is not None:
        kept[: 5 - top_k] = 0.0
    expected = draws * kept ** (1 / temperature) / (kept ** (1 / temperature)).sum()
    assert set(counts) == set(kept.nonzero().flatten().tolist())
    statistic = sum(
        (counts[word] - expected[word].item()) ** 2 / expected[word].item()
        for word in counts
    )
    assert statistic < CHI_SQUARE_999[freedom]


@STATELESS
def test_sampling_the_top_one_is_greedy_and_a_tie_at_the_cut_keeps_exactly_k():
    model = Recurrent(2, 6)
    state = model.start(0, 1, 2, 3)
    assert_same(
        sample(model.step, state, 4, BOS, EOS, 7, 5.0, top_k=1),
        greedy(model.step, state, 4, BOS, EOS, 7),
    )
    tied = torch.full((64, 4), 0.25).log()
    drawn = sample(
        lambda s, last: (tied, s),
        None,
        64,
        BOS,
        EOS,
        1,
        top_k=2,
        generator=torch.Generator().manual_seed(0),
    )
    assert (
        len({(tuple(hypothesis.tokens), hypothesis.finished) for hypothesis in drawn})
        == 2
    )


def test_sampling_repeats_with_its_generator():
    model = Recurrent(4, 9)
    first, again, other = (
        sample(
            model.step,
            model.start(0, 1, 2),
            3,
            BOS,
            EOS,
            12,
            generator=torch.Generator().manual_seed(seed),
        )
        for seed in (6, 6, 7)
    )
    assert first == again
    assert first != other


class Pair(NamedTuple):
    left: Tensor
    right: Tensor | None


@dataclass
class Memory:
    keys: Tensor
    layers: list[Pair]


def test_reordering_reaches_every_tensor_of_a_nested_state():
    rows = torch.tensor([2, 0, 0, 1])
    plain = torch.arange(6.0).view(3, 2)
    state = {
        "memory": Memory(plain, [Pair(plain + 10, None)]),
        "pair": (plain + 20, [plain + 30]),
        "none": None,
    }
    moved = reorder_state(state, rows)
    assert isinstance(moved["memory"], Memory)
    assert isinstance(moved["memory"].layers[0], Pair)
    for tensor, offset in (
        (moved["memory"].keys, 0),
        (moved["memory"].layers[0].left, 10),
        (moved["pair"][0], 20),
        (moved["pair"][1][0], 30),
    ):
        assert torch.equal(tensor, plain[rows] + offset)
    assert moved["none"] is None
    assert moved["memory"].layers[0].right is None
    with pytest.raises(TypeError, match="holds a int; build it of tensors"):
        reorder_state({"length": 3}, rows)


def constant(scores: Tensor) -> Callable[[Any, Tensor], tuple[Tensor, Any]]:
    return lambda state, last: (scores.expand(len(last), -1), state)


@STATELESS
@for_each(
    ("scores", "words"),
    [
        (torch.tensor([0.1, math.nan, 0.2]), "returned NaN"),
        (torch.full((3,), -math.inf), "allow at least one"),
        (torch.tensor([2.0, 1.0, 0.5]), "apply log_softmax"),
        (torch.tensor([0.0]), "the vocabulary needs <eos> and at least one other word"),
    ],
)
@for_each(
    "search",
    [greedy, lambda *a: sample(*a), lambda *a: beam_search_batch(*a, beam_size=2)],
)
def test_scores_that_are_no_log_probabilities_are_refused_in_words(
    search, scores, words
):
    with pytest.raises(ValueError, match=words):
        search(constant(scores), None, 2, BOS, EOS, 4)


@STATELESS
@for_each(
    ("change", "words"),
    [
        ({"beam_size": 0}, "beam_size is 0; choose at least 1"),
        ({"n_best": 4}, "n_best is 4; choose between 1 and beam_size=3"),
        ({"length_penalty": -0.5}, "length_penalty is -0.5; choose 0"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
        ({"max_length": 0}, "max_length is 0; a sentence needs room"),
        ({"batch_size": 0}, "batch_size is 0; decode at least one"),
        ({"eos": 3}, "eos is 3, but the step function scores 3 words"),
        (
            {"state": torch.zeros(1, 2, 5)},
            r"shape \(1, 2, 5\), but batch_size is 2; put the batch first",
        ),
        (
            {"step": lambda state, last: (torch.zeros(1, 3), state)},
            r"shape \(1, 3\); expected \(6, V\)",
        ),
    ],
)
def test_beam_search_refuses_arguments_out_of_range_in_words(change, words):
    arguments: dict[str, Any] = {
        "step": constant(torch.tensor([0.2, 0.3, 0.5]).log()),
        "state": None,
        "batch_size": 2,
        "bos": BOS,
        "eos": EOS,
        "max_length": 4,
        "beam_size": 3,
    }
    assert len(beam_search_batch(**arguments)) == 2
    with pytest.raises(ValueError, match=words):
        beam_search_batch(**(arguments | change))


@STATELESS
@for_each(
    ("change", "words"),
    [
        ({"temperature": 0.0}, r"temperature is 0.0; .* use greedy\(\)"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"top_k": 0}, "top_k is 0; choose at least 1"),
        ({"top_k": 4}, "top_k is 4, but the vocabulary has 3 words"),
    ],
)
def test_sampling_refuses_arguments_out_of_range_in_words(change, words):
    with pytest.raises(ValueError, match=words):
        sample(
            constant(torch.tensor([0.2, 0.3, 0.5]).log()),
            None,
            2,
            BOS,
            EOS,
            4,
            **change,
        )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 9999),
    vocabulary=st.integers(2, 6),
    beam_size=st.integers(1, 6),
    max_length=st.integers(1, 7),
    alpha=st.sampled_from([0.0, 0.6, 1.5]),
    eos_bias=st.sampled_from([-30.0, -1.0, 2.0]),
)
def test_the_beam_search_that_is_read_finds_what_the_batched_one_finds(
    seed, vocabulary, beam_size, max_length, alpha, eos_bias
):
    model = Recurrent(seed, vocabulary, eos_bias=eos_bias)
    options = BOS, EOS, max_length, beam_size, alpha
    together = beam_search_batch(model.step, model.start(0, 1, 2), 3, *options)
    for sentence, (expected,) in enumerate(together):
        found = beam_search(model.step, model.start(sentence), *options)
        assert (found.tokens, found.finished) == (expected.tokens, expected.finished)
        assert found.log_prob == pytest.approx(expected.log_prob, abs=EXACT)
        assert found.score == pytest.approx(expected.score, abs=EXACT)


def test_the_beam_search_that_is_read_stops_as_early_as_the_batched_one():
    read, batched = Recurrent(3, 6, eos_bias=3.0), Recurrent(3, 6, eos_bias=3.0)
    beam_search(read.step, read.start(0), BOS, EOS, 50, 3)
    beam_search_batch(batched.step, batched.start(0), 1, BOS, EOS, 50, 3)
    assert read.calls == batched.calls < 50


@for_each(
    ("change", "words"),
    [
        ({"beam_size": 0}, "beam_size is 0; choose at least 1"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
        ({"max_length": 0}, "max_length is 0; a sentence needs room"),
        ({"state": torch.zeros(2, 5)}, "batch_size is 1; put the batch first"),
    ],
)
def test_the_beam_search_that_is_read_refuses_in_words(change, words):
    step = constant(torch.tensor([0.2, 0.3, 0.5]).log())
    options = {"bos": BOS, "eos": EOS, "max_length": 4, "beam_size": 3}
    with pytest.raises(ValueError, match=words):
        beam_search(**({"step": step, "state": None} | options | change))
