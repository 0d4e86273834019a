"""Word by word, with keys and values kept, gives what all words at once give: step by
step, greedily and in a beam."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from course_lib.seq2seq.batched_search import beam_search_batch
from course_lib.seq2seq.search import Hypothesis, check_state, greedy, reorder_state
from course_lib.transformer.cache import TransformerState
from course_lib.transformer.model import Transformer, TransformerConfig

BOS, EOS = 1, 2
SIZES = {
    "source_vocab": 13,
    "target_vocab": 11,
    "dim": 12,
    "num_heads": 3,
    "num_layers": 2,
    "hidden_dim": 17,
}
B, S, T = 4, 7, 9
EXACT = 1e-12  # sums of a few float64 logarithms
VARIANTS = [
    {},
    {"norm": "pre"},
    {"norm": "none"},
    {"positions": "learned"},
    {"positions": "none"},
    {"tie_output": False},
]


def sources() -> tuple[Tensor, Tensor]:
    """Sentences of unequal length, whose padding holds words too."""
    return torch.randint(
        3, 13, (B, S), generator=torch.Generator().manual_seed(0)
    ), torch.tensor([4, 7, 1, 6])


def make(seed: int = 1, steps: int = 0, **changes) -> Transformer:
    """A model that has learned a few translations by heart: one with random weights
    says the same word for ever."""
    torch.manual_seed(seed)
    model = Transformer(TransformerConfig(**{**SIZES, **changes})).double()
    words = torch.randint(3, 11, (B, T), generator=torch.Generator().manual_seed(2))
    for row, length in enumerate((5, 8, 3, 6)):
        words[row, length:] = EOS
    known = torch.cat([torch.full((B, 1), BOS), words], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = F.cross_entropy(
            model(*sources(), known[:, :-1]).flatten(0, 1), known[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(
    scope="module",
    params=VARIANTS,
    ids=lambda changes: "-".join(map(str, changes)) or "paper",
)
def model(request):
    return make(steps=30, **request.param)


@pytest.fixture
def batch():
    return sources()


class Uncached:
    """The same model without a cache: every step runs all words again, as `forward`
    does in training."""

    def __init__(self, model: Transformer):
        self.model = model

    def start(self, source_ids: Tensor, source_lengths: Tensor) -> dict[str, Tensor]:
        written = torch.empty(len(source_ids), 0, dtype=torch.long)
        return {
            "source_ids": source_ids,
            "source_lengths": source_lengths,
            "written": written,
        }

    def step(
        self, state: dict[str, Tensor], tokens: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        written = torch.cat([state["written"], tokens[:, None]], dim=1)
        logits = self.model(state["source_ids"], state["source_lengths"], written)
        return logits[:, -1].log_softmax(-1), {**state, "written": written}


def same(ours: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [hypothesis.tokens for hypothesis in ours] == [
        hypothesis.tokens for hypothesis in expected
    ]
    for one, other in zip(ours, expected, strict=True):
        assert one.finished == other.finished
        assert one.log_prob == pytest.approx(other.log_prob, abs=EXACT)


@torch.no_grad()
def test_every_step_gives_what_teacher_forcing_gives(model, batch):
    target = torch.randint(0, 11, (B, T), generator=torch.Generator().manual_seed(3))
    expected = model(*batch, target).log_softmax(-1)
    state = model.start(*batch)
    for position in range(T):
        log_probs, state = model.step(state, target[:, position])
        torch.testing.assert_close(log_probs, expected[:, position], rtol=0, atol=EXACT)


@torch.no_grad()
def test_greedy_with_a_cache_writes_what_it_writes_without(model, batch):
    ours, without = model, Uncached(model)
    first = greedy(ours.step, ours.start(*batch), B, BOS, EOS, max_length=T)
    same(first, greedy(without.step, without.start(*batch), B, BOS, EOS, max_length=T))
    assert len({len(hypothesis.tokens) for hypothesis in first}) > 1, (
        "a model that says one thing tests nothing"
    )


@torch.no_grad()
def test_beam_search_with_a_cache_finds_what_it_finds_without(model, batch):
    """The search drops and copies hypotheses: the cache of each must go along
    with it."""
    ours, without = model, Uncached(model)
    options = {"bos": BOS, "eos": EOS, "max_length": T, "beam_size": 3, "n_best": 3}
    found = beam_search_batch(ours.step, ours.start(*batch), B, **options)
    expected = beam_search_batch(without.step, without.start(*batch), B, **options)
    for mine, other in zip(found, expected, strict=True):
        same(mine, other)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 9999),
    beam=st.integers(1, 4),
    lengths=st.lists(st.integers(1, S), min_size=1, max_size=3),
)
def test_a_batch_is_searched_as_its_sentences_are_alone(seed, beam, lengths):
    model = make(seed)
    source = torch.randint(
        3, 13, (len(lengths), S), generator=torch.Generator().manual_seed(seed)
    )
    options = {"bos": BOS, "eos": EOS, "max_length": 6, "beam_size": beam}
    with torch.no_grad():
        together = beam_search_batch(
            model.step,
            model.start(source, torch.tensor(lengths)),
            len(lengths),
            **options,
        )
        for row, length in enumerate(lengths):
            state = model.start(source[row : row + 1, :length], torch.tensor([length]))
            same(together[row], beam_search_batch(model.step, state, 1, **options)[0])


@torch.no_grad()
def test_the_log_probability_of_a_translation_is_that_of_teacher_forcing(model, batch):
    for row, found in enumerate(
        greedy(model.step, model.start(*batch), B, BOS, EOS, max_length=T)
    ):
        words = torch.tensor(
            [[BOS, *found.tokens, EOS][: len(found.tokens) + 1 + found.finished]]
        )
        source = batch[0][row : row + 1], batch[1][row : row + 1]
        log_probs = model(*source, words[:, :-1]).log_softmax(-1)
        total = log_probs.gather(-1, words[:, 1:, None]).sum().item()
        assert found.log_prob == pytest.approx(total, abs=EXACT)


@torch.no_grad()
def test_the_state_has_the_batch_first_and_grows_by_one_key_a_step(batch):
    model, tokens = make(), torch.full((B,), BOS)
    state = model.start(*batch)
    assert isinstance(state, TransformerState)
    check_state(state, B)
    for step in range(1, 4):
        _, state = model.step(state, tokens)
        check_state(state, B)
        assert all(cache.written.key.shape == (B, 3, step, 4) for cache in state.caches)
        assert all(cache.memory.key.shape == (B, 3, S, 4) for cache in state.caches)
    assert reorder_state(state, torch.tensor([2, 2])).caches[1].written.value.shape == (
        2,
        3,
        3,
        4,
    )


@torch.no_grad()
def test_a_step_leaves_the_state_before_it_as_it_was(batch):
    """Two hypotheses may go on from one state."""
    model = make()
    _, state = model.step(model.start(*batch), torch.full((B,), BOS))
    first, _ = model.step(state, torch.full((B,), 5))
    model.step(state, torch.full((B,), 6))
    again, _ = model.step(state, torch.full((B,), 5))
    assert torch.equal(first, again)


@torch.no_grad()
def test_a_step_projects_each_word_once_and_the_source_not_again(batch, monkeypatch):
    """What the cache is for: every linear layer sees one position a step, however many
    were written before."""
    model = make()
    state = model.start(*batch)
    seen, original = [], F.linear
    monkeypatch.setattr(
        F, "linear", lambda x, *rest: (seen.append(x.shape[-2]), original(x, *rest))[1]
    )
    for _ in range(3):
        _, state = model.step(state, torch.full((B,), BOS))
    assert set(seen) == {1}
