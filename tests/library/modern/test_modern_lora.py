"""LoRA: what is trained, what is frozen, and that merged weights compute the same."""

import torch
import torch.nn.functional as F
from expect import assert_near, refusal
from torch import nn

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertModel
from course_lib.finetuning.examples import Example
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.finetuning.heads import SequenceClassifier
from course_lib.modern.lora import LoRALinear, add_lora, merge_lora

CONFIG = BertConfig(
    vocab_size=31,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=9,
)
IDS = torch.tensor([[2, 7, 30, 3], [2, 8, 3, 0]])
MASK = IDS != 0


def adapted(rank=3, alpha=None):
    """A layer of 7 features to 5 whose B is no longer 0."""
    torch.manual_seed(1)
    layer = LoRALinear(nn.Linear(7, 5), rank, alpha)
    nn.init.normal_(layer.up, std=0.3)
    return layer


def test_the_output_is_that_of_the_sum_of_both_matrices():
    """Hu et al. 2022, equation 3 and section 4.1: scaled by α / r."""
    hidden = torch.randn(2, 4, 7, dtype=torch.float64)
    for alpha, scale in ((None, 1.0), (12.0, 4.0)):
        layer = adapted(alpha=alpha).double()
        weight = layer.linear.weight + scale * layer.up @ layer.down
        expected = F.linear(hidden, weight, layer.linear.bias)
        assert_near(layer(hidden), expected, atol=1e-13)


def test_nothing_changes_until_it_is_trained():
    """Hu et al. 2022, section 4.1: "zero for B"."""
    linear = nn.Linear(7, 5)
    hidden = torch.randn(3, 7)
    before = linear(hidden)
    layer = LoRALinear(linear, rank=2)
    assert torch.equal(layer(hidden), before)
    layer(hidden).sum().backward()
    assert layer.up.grad.abs().min() > 0
    assert not layer.down.grad.any()  # B is 0
    assert linear.weight.grad is None
    assert linear.bias.grad is None


def test_a_merged_layer_computes_the_same():
    hidden = torch.randn(11, 7)
    layer = adapted(alpha=6.0)
    expected = layer(hidden)
    merged = layer.merge()
    assert type(merged) is nn.Linear
    assert merged.weight.requires_grad
    assert_near(merged(hidden), expected, atol=1e-6)


def test_a_merged_bert_computes_the_same_and_is_a_plain_bert_again():
    torch.manual_seed(2)
    bert = BertModel(CONFIG).eval()
    names = list(bert.state_dict())
    add_lora(bert, rank=2, layers=("query", "value"), alpha=4.0)
    trained = {name for name, x in bert.named_parameters() if x.requires_grad}
    assert trained == {
        f"blocks.{block}.attention.{layer}.{part}"
        for block in range(2)
        for layer in ("query", "value")
        for part in ("down", "up")
    }
    before = bert(IDS, MASK).last_hidden_state
    for name, parameter in bert.named_parameters():
        if name.endswith("up"):
            nn.init.normal_(parameter, std=0.5)
    expected = bert(IDS, MASK).last_hidden_state
    assert (expected - before)[MASK].abs().max() > 1e-3
    merge_lora(bert)
    assert list(bert.state_dict()) == names
    assert_near(bert(IDS, MASK).last_hidden_state[MASK], expected[MASK], atol=1e-6)
    assert all(x.requires_grad for x in bert.parameters())


def test_fine_tuning_trains_the_thin_matrices_and_the_head_and_nothing_else():
    """Hu et al. 2022, section 4.2; also with a rate that falls from block to block."""
    torch.manual_seed(3)
    model = SequenceClassifier(CONFIG, 2)
    add_lora(model.bert, rank=2, layers=("query", "value"))
    before = {name: x.clone() for name, x in model.state_dict().items()}
    examples = [Example([([2, 5 + k, 3], [0, 0, 0])], k % 2) for k in range(8)]
    config = FineTuningConfig(
        steps=5, learning_rate=0.01, batch_size=4, layer_decay=0.9, warmup=0.0
    )
    finetune(model, examples, config=config)
    after = model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    head = {"classifier.weight", "classifier.bias"}
    assert head < changed
    assert {
        name for name in changed - head if not name.endswith(("down", "up"))
    } == set()
    assert len(changed - head) == 8
    assert not any(
        x.requires_grad for n, x in model.bert.named_parameters() if "linear" in n
    )


def test_ranks_and_names_that_cannot_be_are_refused():
    for rank in (0, 6):
        with refusal(
            rf"rank is {rank}; a matrix of \(5, 7\) has at least 1 and at most 5"
        ):
            LoRALinear(nn.Linear(7, 5), rank)
    with refusal("no linear layer is called quarry"):
        add_lora(BertModel(CONFIG), rank=2, layers=("query", "quarry"))
