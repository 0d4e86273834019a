"""What makes a BERT faster changes no number: attention written out or fused, and
states at some positions only."""

import pytest
import torch
import torch.nn.functional as F
from bert_peer import gradients, lively

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining, BertModel

# All sizes differ, so that a transposed pair shows.
B, T, D, H, V = 3, 7, 20, 5, 31
CONFIG = BertConfig(
    vocab_size=V,
    hidden_size=D,
    num_hidden_layers=2,
    num_attention_heads=H,
    intermediate_size=17,
    max_position_embeddings=11,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
MASKS = {
    "none": None,
    "padding": (torch.arange(T) < torch.tensor([7, 2, 5])[:, None])[:, None],
    "one for each query": (torch.arange(T) + torch.arange(T)[:, None]) % 3 > 0,
}


def attention_layer(dtype: torch.dtype, dropout: float = 0.0) -> MultiHeadAttention:
    torch.manual_seed(0)
    layer = MultiHeadAttention(D, H, dropout).to(dtype)
    torch.nn.init.normal_(
        layer.in_proj.weight, std=0.4
    )  # scores that tell the keys apart
    return layer


def attend_both_ways(layer, hidden, **options):
    """Output and gradients with the fused kernel and without it."""
    found = []
    for fused in (True, False):
        layer.fused = fused
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
    for fused in (True, False):
        layer.fused = fused
        output, _ = layer._attend(
            query,
            query,
            torch.ones_like(query),
            None,
            causal=False,
            return_weights=False,
        )
        assert output.mean().item() == pytest.approx(1, abs=0.01)
        assert output.std().item() > 0.05
        kept, _ = layer.eval()._attend(
            query,
            query,
            torch.ones_like(query),
            None,
            causal=False,
            return_weights=False,
        )
        torch.testing.assert_close(kept, torch.ones_like(kept))
        layer.train()


@pytest.mark.parametrize(
    ("dtype", "calls"), [(torch.float32, 1), (torch.float64, 1), (torch.bfloat16, 0)]
)
def test_left_alone_attention_is_written_out_in_bfloat16_on_a_cpu(
    dtype, calls, kernel_calls
):
    layer = attention_layer(dtype)
    hidden = torch.randn(B, T, D, dtype=dtype)
    by_choice = layer(hidden)
    assert len(kernel_calls) == calls
    layer.fused = True
    # bfloat16 has 8 bits of precision, and the two ways round at other places.
    torch.testing.assert_close(
        by_choice, layer(hidden), rtol=0, atol=0.05 if dtype == torch.bfloat16 else 0
    )


def test_weights_come_only_where_they_were_asked_for():
    layer, hidden = attention_layer(torch.float32), torch.randn(B, T, D)
    layer.fused = False
    assert isinstance(layer(hidden), torch.Tensor)
    _, weights = layer(hidden, return_weights=True)
    assert weights.shape == (B, H, T, T)


POSITIONS = torch.tensor(
    [16, 1, 5, 7, 16]
)  # in any order, of [CLS] too (7 = 1 · T), some twice; none of the rest


@pytest.mark.parametrize(
    "mask",
    [None, torch.arange(T) < torch.tensor([7, 2, 5])[:, None]],
    ids=["full", "padded"],
)
@pytest.mark.parametrize("training", [False, True])
def test_final_states_at_some_positions_are_those_of_all_positions_there(
    mask, training
):
    model = lively(CONFIG, BertModel).train(training)
    tokens = torch.randint(1, V, (B, T), generator=torch.Generator().manual_seed(3))
    everywhere, there = model(tokens, mask), model(tokens, mask, positions=POSITIONS)
    torch.testing.assert_close(
        there.last_hidden_state,
        everywhere.last_hidden_state.flatten(0, 1)[POSITIONS],
        rtol=0,
        atol=1e-12,
    )
    torch.testing.assert_close(
        there.pooler_output, everywhere.pooler_output, rtol=0, atol=1e-12
    )


def test_the_loss_at_chosen_positions_has_the_gradients_of_the_loss_with_labels_elsewhere_ignored():  # noqa: E501
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


def test_what_does_not_go_together_is_refused():
    model, tokens = BertModel(CONFIG), torch.ones(B, T, dtype=torch.long)
    with pytest.raises(
        ValueError, match="with positions there are final states at these only"
    ):
        model(tokens, return_hidden_states=True, positions=torch.tensor([3]))


@pytest.mark.cpu  # on a GPU no position is looked at
def test_a_position_outside_the_batch_is_refused():
    model, tokens = BertModel(CONFIG), torch.ones(B, T, dtype=torch.long)
    with pytest.raises(ValueError, match="positions holds 21, but goes from 0 to 20"):
        model(tokens, positions=torch.tensor([B * T]))


def test_only_the_last_layer_s_feed_forward_leaves_positions_out():
    model, rows = BertForPreTraining(CONFIG), []
    for block in model.bert.blocks:
        block.feed_forward.register_forward_hook(
            lambda module, inputs, output: rows.append(output.shape[:-1].numel())
        )
    model(torch.ones(B, T, dtype=torch.long), masked_positions=torch.tensor([4, 12]))
    assert rows == [B * T, B + 2]
