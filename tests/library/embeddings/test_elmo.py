"""ELMo against two hand-wired chains of torch's LSTM, and what no reader may see
(Peters et al. 2018)."""

import math

import pytest
import torch
from cases import for_each
from torch import nn

from course_lib.embeddings.elmo import (
    ELMo,
    ELMoConfig,
    elmo_loss_sum,
    reverse_within_length,
)
from course_lib.embeddings.gpt import LanguageModelBatch

LENGTHS = [7, 4, 5]
IDS = torch.randint(1, 23, (3, 7), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]


def drawn(hidden_dim: int = 6, num_layers: int = 2, seed: int = 1) -> ELMo:
    """A model in double precision whose parameters all differ from their start."""
    model = (
        ELMo(
            ELMoConfig(
                23, dim=6, hidden_dim=hidden_dim, num_layers=num_layers, dropout=0.0
            )
        )
        .double()
        .eval()
    )
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return model


def chain(layers, words: torch.Tensor) -> list[torch.Tensor]:
    """One direction over one sentence without padding, layer after layer, residual from
    the second layer on."""
    states = [words]
    for number, weights in enumerate(layers):
        lstm = nn.LSTM(
            6, weights.hidden_size, batch_first=True, proj_size=weights.proj_size
        ).double()
        lstm.load_state_dict(weights.state_dict())
        output = lstm(states[-1][None])[0][0]
        states.append(output if number == 0 else output + states[-1])
    return states


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@for_each("hidden_dim", [6, 11])  # as wide as the states, and projected to them
@for_each("num_layers", [1, 2, 3])
def test_each_sentence_is_read_as_if_it_were_alone_by_two_chains_of_lstms(
    hidden_dim, num_layers
):
    model = drawn(hidden_dim, num_layers)
    with torch.no_grad():
        output = model(IDS, MASK)
        for row, length in enumerate(LENGTHS):
            words = model.embedding.weight[IDS[row, :length]] * math.sqrt(6)
            forward = chain(model.forward_layers, words)
            backward = [
                state.flip(0) for state in chain(model.backward_layers, words.flip(0))
            ]
            for layer in range(num_layers + 1):
                torch.testing.assert_close(
                    output.forward_states[layer][row, :length], forward[layer]
                )
                torch.testing.assert_close(
                    output.backward_states[layer][row, :length], backward[layer]
                )
                both = torch.cat([forward[layer], backward[layer]], dim=1)
                torch.testing.assert_close(
                    output.hidden_states[layer][row, :length], both
                )


@for_each("place", [0, 2, 3, 6])
def test_each_reader_sees_its_own_side_of_a_word_alone(place):
    model, ids = drawn(), IDS[:1]
    other = ids.clone()
    other[0, place] = ids[0, place] % 22 + 1
    with torch.no_grad():
        one, two = model(ids), model(other)
    for layer in (1, 2):
        moved = (one.forward_states[layer] != two.forward_states[layer])[0].any(dim=1)
        assert moved.tolist() == [t >= place for t in range(7)]
        moved = (one.backward_states[layer] != two.backward_states[layer])[0].any(dim=1)
        assert moved.tolist() == [t <= place for t in range(7)]


def test_no_guess_has_seen_the_word_that_it_guesses():
    """The loss at one place, differentiated: neither reader's guess of word 3 depends
    on word 3."""
    model = drawn()
    with torch.no_grad():
        clean = model(IDS[:1])
        other = IDS[:1].clone()
        other[0, 3] = IDS[0, 3] % 22 + 1
        changed = model(other)
    # guesses word 3
    assert torch.equal(clean.forward_states[-1][0, 2], changed.forward_states[-1][0, 2])
    # guesses word 3 too
    assert torch.equal(
        clean.backward_states[-1][0, 4], changed.backward_states[-1][0, 4]
    )
    assert not torch.equal(
        clean.forward_states[-1][0, 3], changed.forward_states[-1][0, 3]
    )
    assert not torch.equal(
        clean.backward_states[-1][0, 3], changed.backward_states[-1][0, 3]
    )


def test_the_loss_is_that_of_both_directions_word_by_word():
    model, total, count = drawn(), 0.0, 0
    with torch.no_grad():
        output = model(IDS, MASK)
        for row, length in enumerate(LENGTHS):
            for t in range(length):
                for states, target in (
                    (output.forward_states, t + 1),
                    (output.backward_states, t - 1),
                ):
                    if 0 <= target < length:
                        logits = (
                            model.embedding.weight @ states[-1][row, t]
                            + model.output.bias
                        )
                        total -= logits.log_softmax(dim=0)[IDS[row, target]].item()
                        count += 1
        loss, guesses = elmo_loss_sum(model, LanguageModelBatch(IDS, MASK))
    assert guesses == count == 2 * sum(length - 1 for length in LENGTHS)
    assert loss.item() == pytest.approx(total, rel=1e-12)


def test_padding_changes_no_gradient():
    model = drawn().train()  # where cuDNN has gradients; there is no dropout
    gradients = []
    for ids in (IDS, IDS.masked_fill(~MASK, 22)):
        model.zero_grad()
        elmo_loss_sum(model, LanguageModelBatch(ids, MASK))[0].backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(map(torch.equal, *gradients))


def test_directions_share_embedding_and_output_and_nothing_else():
    """Section 3.1: the parameters of token representation and softmax layer are tied in
    both directions."""
    model = ELMo(ELMoConfig(23, dim=6, hidden_dim=6))
    assert model.output.weight is model.embedding.weight
    names = [name for name, _ in model.named_parameters()]
    lstm = [name for name in names if "layers" in name]
    # directions, layers, and two matrices with two offsets
    assert len(lstm) == 2 * 2 * 4
    assert sorted(set(names) - set(lstm)) == ["embedding.weight", "output.bias"]


def test_before_training_a_guess_costs_about_the_logarithm_of_the_vocabulary():
    torch.manual_seed(0)
    model = ELMo(ELMoConfig(500, dim=32, hidden_dim=32))
    loss, count = elmo_loss_sum(model, LanguageModelBatch(torch.randint(500, (9, 31))))
    assert loss.item() / count == pytest.approx(math.log(500), abs=0.15)


def test_dropout_is_for_training_alone():
    torch.manual_seed(0)
    model = ELMo(ELMoConfig(23, dim=6, hidden_dim=6, dropout=0.5))
    with torch.no_grad():
        assert not torch.equal(
            model(IDS).forward_states[-1], model(IDS).forward_states[-1]
        )
        model.eval()
        assert torch.equal(model(IDS).forward_states[-1], model(IDS).forward_states[-1])


class TestTurning:
    def test_twice_is_as_before_and_padding_stays(self):
        rows = torch.randn(3, 7, 2)
        turned = reverse_within_length(rows, MASK)
        assert torch.equal(reverse_within_length(turned, MASK), rows)
        assert torch.equal(turned[1], torch.cat([rows[1, :4].flip(0), rows[1, 4:]]))
        assert torch.equal(reverse_within_length(rows, None), rows.flip(1))

    def test_padding_on_the_left_is_refused(self):
        with pytest.raises(ValueError, match="an RNN wants its padding on the right"):
            drawn()(IDS, MASK.flip(1))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dim": 8, "hidden_dim": 7}, "choose hidden_dim at least as large"),
        ({"num_layers": 0}, "num_layers is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ELMoConfig(vocab_size=9, **settings)


def test_it_learns_to_copy_from_the_side_that_knows():
    """Sentences a b a b ...: after few steps both readers know the next word; a leak
    would have known it at once."""
    torch.manual_seed(3)
    model = ELMo(ELMoConfig(9, dim=16, hidden_dim=16, dropout=0.0))
    # all pairs, (64, 8)
    ids = torch.cartesian_prod(torch.arange(1, 9), torch.arange(1, 9)).repeat(1, 4)
    batch = LanguageModelBatch(ids)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        loss, count = elmo_loss_sum(model, batch)
        optimizer.zero_grad()
        (loss / count).backward()
        optimizer.step()
        losses.append(loss.item() / count)
    # the second word of a pair cannot be known, each way: one of seven guesses
    floor = math.log(8) / 7
    assert losses[0] > 2.0
    assert floor - 0.02 < losses[-1] < floor + 0.15
