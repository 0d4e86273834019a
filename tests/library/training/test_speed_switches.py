"""What makes a BERT faster changes no number: attention written out or fused, and
logits at some positions only."""

import copy

import pytest
import torch
import torch.nn.functional as F
from bert_peer import gradients, lively
from tiny import tiny_bert

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.bert.model import BertForPreTraining
from course_lib.training.cpu import FastLinear, FusedAttention, speed_up

# All sizes differ, so that a transposed pair shows.
B, T, D, H, V = 3, 7, 20, 5, 31
CONFIG = tiny_bert(
    vocab_size=V,
    hidden_size=D,
    num_attention_heads=H,
    intermediate_size=17,
    max_position_embeddings=11,
)
MASKS = {
    "none": None,
    "padding": (torch.arange(T) < torch.tensor([7, 2, 5])[:, None])[:, None],
    "one for each query": (torch.arange(T) + torch.arange(T)[:, None]) % 3 > 0,
}


def attention_layer(dtype: torch.dtype, dropout: float = 0.0) -> MultiHeadAttention:
    torch.manual_seed(0)
    layer = MultiHeadAttention(D, H, dropout).to(dtype)
    for projection in (layer.query, layer.key, layer.value):
        torch.nn.init.normal_(projection.weight, std=0.4)  # scores tell keys apart
    return layer


def attend_both_ways(written_out, hidden, **options):
    """Output and gradients with the fused kernel and without it."""
    found = []
    for layer in (speed_up(copy.deepcopy(written_out)), written_out):
        inputs = hidden.clone().requires_grad_()
        torch.manual_seed(1)
        output = layer(inputs, **options)
        slopes = torch.autograd.grad(
            output.square().sum(), [inputs, *layer.parameters()]
        )
        found.append([output, *slopes])
    return found


@pytest.fixture
def kernel_calls(monkeypatch):
    calls = []
    kernel = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F,
        "scaled_dot_product_attention",
        lambda *words, **names: calls.append(1) or kernel(*words, **names),
    )
    return calls


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_written_out_gives_the_fused_kernel_s_output_and_gradients(
    mask, causal, kernel_calls
):
    layer = attention_layer(torch.float64)
    hidden = torch.randn(
        B, T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    # A query that may see no key has no weights, so each keeps itself here.
    allowed = (
        None if MASKS[mask] is None else MASKS[mask] | torch.eye(T, dtype=torch.bool)
    )
    fused, written_out = attend_both_ways(layer, hidden, mask=allowed, causal=causal)
    assert len(kernel_calls) == 1
    for one, other in zip(fused, written_out, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_both_ways_drop_the_same_share_of_weights():
    """With values of 1 and no offsets an output is the sum of the kept weights, which
    is 1 on average."""
    layer = attention_layer(torch.float32, dropout=0.3)
    query = torch.randn(64, H, 50, D // H)
    ones = torch.ones_like(query)
    for kernel in (layer.kernel, FusedAttention(layer.kernel)):
        output, _ = kernel(query, query, ones, None, layer.dropout)
        assert output.mean().item() == pytest.approx(1, abs=0.01)
        assert output.std().item() > 0.05
        kept, _ = kernel(query, query, ones, None, layer.dropout.eval())
        torch.testing.assert_close(kept, ones)
        layer.train()


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("dtype", "calls"), [(torch.float32, 1), (torch.float64, 1), (torch.bfloat16, 0)]
)
def test_sped_up_attention_is_written_out_in_bfloat16_on_a_cpu(
    dtype, calls, kernel_calls
):
    layer = speed_up(attention_layer(dtype))
    layer(torch.randn(B, T, D, dtype=dtype))
    assert len(kernel_calls) == calls


def test_weights_come_where_they_were_asked_for_though_the_kernel_has_none():
    layer, hidden = attention_layer(torch.float64), torch.randn(B, T, D).double()
    expected = layer(hidden, return_weights=True)
    found = speed_up(layer)(hidden, return_weights=True)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_speeding_up_changes_layers_and_neither_weights_nor_hooks():
    """Twice is once; tied weights stay tied; outputs agree to rounding."""
    model, fired = lively(CONFIG).eval(), []
    tokens = torch.randint(1, V, (B, T), generator=torch.Generator().manual_seed(3))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    expected = model(tokens)
    for block in model.bert.blocks:
        block.attention.register_forward_hook(lambda *_: fired.append(1))
    speed_up(speed_up(model))
    found = tuple(model(tokens))
    torch.testing.assert_close(found, tuple(expected), rtol=0, atol=1e-12)
    assert len(fired) == 2
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert model.mlm_head.output.weight is model.bert.embeddings.token.weight
    kinds = {type(module) for module in model.modules()}
    assert not kinds & {torch.nn.Linear, torch.nn.Dropout}
    assert isinstance(model.mlm_head.output, FastLinear)
    assert isinstance(model.bert.blocks[0].attention.kernel, FusedAttention)


def test_the_loss_at_chosen_positions_has_the_gradients_of_ignored_labels():
    model = lively(CONFIG)
    generator = torch.Generator().manual_seed(4)
    tokens, segments = (
        torch.randint(high, (B, T), generator=generator) for high in (V, 2)
    )
    labels = torch.full((B * T,), -100)
    chosen = torch.tensor([2, 8, 9, 20])
    labels[chosen] = torch.tensor([4, 30, 0, 11])
    pairs = torch.tensor([0, 1, 1])
    found = []
    for positions, wanted in ((chosen, labels[chosen]), (None, labels.view(B, T))):
        model.zero_grad()
        output = model(tokens, None, segments, positions)
        loss = F.cross_entropy(
            output.prediction_logits.flatten(0, -2), wanted.flatten()
        )
        loss = loss + F.cross_entropy(output.seq_relationship_logits, pairs)
        loss.backward()
        found.append(
            (
                loss.detach(),
                {name: slope.clone() for name, slope in gradients(model).items()},
            )
        )
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)


@pytest.mark.cpu  # on a GPU no position is looked at
def test_a_position_outside_the_batch_is_refused():
    model, tokens = BertForPreTraining(CONFIG), torch.ones(B, T, dtype=torch.long)
    with pytest.raises(ValueError, match="positions holds 21, but goes from 0 to 20"):
        model(tokens, masked_positions=torch.tensor([B * T]))
