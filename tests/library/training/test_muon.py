"""Muon and AdamW as one optimizer: Jordan et al. 2024; torch's own two are the
peers."""

import copy

import pytest
import torch
from torch import nn

from course_lib.training.loop import TrainingConfig, train
from course_lib.training.muon import MuonAdamW, muon


def model() -> nn.Sequential:
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Embedding(31, 17),
        nn.Linear(17, 23),
        nn.LayerNorm(23),
        nn.Tanh(),
        nn.Linear(23, 3),
    )


IDS = torch.arange(12).view(4, 3)


def steps(model, optimizers, rates, count=3):
    for step in range(count):
        model.zero_grad()
        model(IDS).square().sum().backward()
        for optimizer, rate in zip(optimizers, rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * (step + 1)  # as a schedule does
            optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_it_moves_as_torchs_two_optimizers_side_by_side():
    ours, theirs = model(), model()
    config = TrainingConfig(steps=1, learning_rate=0.01, weight_decay=0.3)
    found = steps(
        ours, [muon(ours, config, ratio=5.0, betas=(0.8, 0.9), eps=1e-5)], [0.01]
    )
    embedding, inner, norm, _, head = theirs
    adamw = {"betas": (0.8, 0.9), "eps": 1e-5}
    peers = [
        torch.optim.Muon(
            [inner.weight], weight_decay=0.3, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW([embedding.weight, head.weight], weight_decay=0.3, **adamw),
        torch.optim.AdamW(
            [inner.bias, *norm.parameters(), head.bias], weight_decay=0.0, **adamw
        ),
    ]
    expected = steps(theirs, peers, [0.05, 0.01, 0.01])
    for mine, its in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, its, rtol=0, atol=0)


def test_a_first_step_is_equally_long_in_all_directions_of_a_matrix():
    """Up to what five iterations leave: singular values from about 0.7 to 1.2 (Jordan
    et al. 2024)."""
    inner = model()[1]
    before = inner.weight.detach().clone()
    optimizer = MuonAdamW(
        [inner.weight], [{"params": [inner.bias]}], lr=0.1, weight_decay=0.0, ratio=2.0
    )
    (inner(torch.randn(50, 17)) ** 3).sum().backward()
    optimizer.step()
    moved = torch.linalg.svdvals(inner.weight.detach() - before) / (
        2.0 * 0.1 * 0.2 * 23**0.5
    )
    assert len(moved) == 17
    assert moved.min() > 0.6, moved
    assert moved.max() < 1.3, moved


def test_embeddings_small_heads_and_what_an_embedding_shares_are_left_to_adamw():
    shared = model()
    shared.append(nn.Linear(17, 31, bias=False))
    shared[-1].weight = shared[0].weight
    shared[2].requires_grad_(False)
    of_muon, matrices, vectors = muon(
        shared, TrainingConfig(steps=1, weight_decay=0.2)
    ).param_groups
    assert [parameter.shape for parameter in of_muon["params"]] == [(23, 17)]
    assert [parameter.shape for parameter in matrices["params"]] == [(31, 17), (3, 23)]
    assert [parameter.shape for parameter in vectors["params"]] == [(23,), (3,)]
    assert [group["weight_decay"] for group in (of_muon, matrices, vectors)] == [
        0.2,
        0.2,
        0.0,
    ]


def test_a_recurrent_layers_matrices_are_muons_and_its_biases_are_not():
    layer = nn.GRU(17, 19, bidirectional=True)
    of_muon, *others = muon(layer, TrainingConfig(steps=1)).param_groups
    assert [parameter.shape for parameter in of_muon["params"]] == [
        (57, 17),
        (57, 19),
    ] * 2
    assert [parameter.shape for group in others for parameter in group["params"]] == [
        (57,)
    ] * 4


def test_a_run_that_was_saved_goes_on_bit_for_bit(tmp_path):
    def loss(model, ids):
        return model(ids).square().sum(), 12

    def trained(network, steps, checkpoint=None):
        config = TrainingConfig(
            steps=steps,
            learning_rate=0.01,
            progress=False,
            checkpoint=checkpoint,
            checkpoint_every=1 if checkpoint else None,
        )
        train(network, lambda epoch: [IDS] * 9, loss, config, make_optimizer=muon)
        return network.state_dict()

    straight, path = trained(model(), 7), tmp_path / "run.safetensors"
    trained(model(), 4, path)
    again = trained(model(), 7, path)
    for name, tensor in straight.items():
        assert torch.equal(tensor, again[name]), name


def test_a_closure_is_asked_for_the_loss():
    network = model()
    optimizer = muon(network, TrainingConfig(steps=1, learning_rate=0.01))
    before = copy.deepcopy(network.state_dict())

    def closure():
        optimizer.zero_grad()
        loss = network(IDS).square().sum()
        loss.backward()
        return loss

    loss = network(IDS).square().sum().item()
    assert optimizer.step(closure).item() == pytest.approx(loss, rel=1e-6)
    assert all(
        not torch.equal(tensor, before[name])
        for name, tensor in network.state_dict().items()
    )
