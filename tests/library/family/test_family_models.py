"""ALBERT and DistilBERT agree with `transformers` on shared random weights, and the
losses with torch's own."""

import pytest
import torch
import transformers
from expect import assert_near
from torch import nn

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.family.albert import AlbertForPreTraining, AlbertModel
from course_lib.family.distilbert import (
    DistilBertForMaskedLM,
    DistilBertModel,
    DistillationWeights,
    cosine_distance,
    distillation_loss_sum,
    soft_target_loss,
    student_of,
)
from course_lib.pretraining.batches import PreTrainingBatch

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 17,
}
CONFIG = BertConfig(
    **SIZES,
    initializer_range=0.2,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
IDS = torch.tensor([[2, 7, 60, 31, 9, 3], [2, 8, 15, 3, 0, 0]])
MASK = IDS != 0
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]])
precisions = pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-10), (torch.float32, 1e-5)],
    ids=["float64", "float32"],
)


def give(target, names, source):
    """Copy weights: our layer -> their layer, or theirs of query, key and value."""
    weights = dict(source.state_dict())
    there = target.state_dict()
    for ours, theirs in names.items():
        for kind in ("weight", "bias"):
            if f"{ours}.{kind}" in weights:
                parts = weights[f"{ours}.{kind}"].chunk(len(theirs))
                for name, part in zip(theirs, parts, strict=True):
                    assert there[f"{name}.{kind}"].shape == part.shape, name
                    there[f"{name}.{kind}"].copy_(part)


def randomised(model, dtype):
    """Gains and offsets away from 1 and 0, so that a forgotten one shows."""
    torch.manual_seed(7)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=0.5, std=0.3)
    return model.to(dtype).eval()


EMBEDDINGS = {
    "embeddings.token": ["embeddings.word_embeddings"],
    "embeddings.position": ["embeddings.position_embeddings"],
    "embeddings.segment": ["embeddings.token_type_embeddings"],
    "embeddings.norm": ["embeddings.LayerNorm"],
}
GROUP = "encoder.albert_layer_groups.0.albert_layers.0."
ALBERT = {
    **EMBEDDINGS,
    "embeddings.widen": ["encoder.embedding_hidden_mapping_in"],
    "blocks.0.attention.query": [f"{GROUP}attention.query"],
    "blocks.0.attention.key": [f"{GROUP}attention.key"],
    "blocks.0.attention.value": [f"{GROUP}attention.value"],
    "blocks.0.attention.output": [f"{GROUP}attention.dense"],
    "blocks.0.norm1": [f"{GROUP}attention.LayerNorm"],
    "blocks.0.feed_forward.expand": [f"{GROUP}ffn"],
    "blocks.0.feed_forward.contract": [f"{GROUP}ffn_output"],
    "blocks.0.norm2": [f"{GROUP}full_layer_layer_norm"],
    "pooler.dense": ["pooler"],
}
ALBERT_HEAD = {
    "mlm_head.dense": ["predictions.dense"],
    "mlm_head.norm": ["predictions.LayerNorm"],
    "mlm_head.output": ["predictions.decoder"],
    "nsp_head.output": ["sop_classifier.classifier"],
}


def distilbert_names(layers):
    names = {key: value for key, value in EMBEDDINGS.items() if "segment" not in key}
    for number in range(layers):
        ours, theirs = f"blocks.{number}.", f"transformer.layer.{number}."
        names |= {
            f"{ours}attention.query": [f"{theirs}attention.q_lin"],
            f"{ours}attention.key": [f"{theirs}attention.k_lin"],
            f"{ours}attention.value": [f"{theirs}attention.v_lin"],
            f"{ours}attention.output": [f"{theirs}attention.out_lin"],
            f"{ours}norm1": [f"{theirs}sa_layer_norm"],
            f"{ours}feed_forward.expand": [f"{theirs}ffn.lin1"],
            f"{ours}feed_forward.contract": [f"{theirs}ffn.lin2"],
            f"{ours}norm2": [f"{theirs}output_layer_norm"],
        }
    return names


def under(prefix, theirs_prefix, names):
    return {
        f"{prefix}{ours}": [f"{theirs_prefix}{x}" for x in theirs]
        for ours, theirs in names.items()
    }


def albert_peer(dtype):
    config = transformers.AlbertConfig(
        **SIZES,
        embedding_size=10,
        hidden_act="gelu",
        type_vocab_size=2,
        layer_norm_eps=1e-12,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.AlbertForPreTraining(config).to(dtype).eval()


@precisions
def test_albert_is_theirs(dtype, tolerance):
    """States, pooled states and the logits of both heads, with padding and two
    segments."""
    ours = randomised(AlbertForPreTraining(CONFIG, embedding_size=10), dtype)
    theirs = albert_peer(dtype)
    give(theirs, under("bert.", "albert.", ALBERT) | ALBERT_HEAD, ours)
    theirs.predictions.bias.data.copy_(ours.mlm_head.output.bias)
    with torch.no_grad():
        states = ours.bert(IDS, MASK, SEGMENTS)
        expected = theirs.albert(
            IDS, attention_mask=MASK.long(), token_type_ids=SEGMENTS
        )
        assert_near(
            states.last_hidden_state[MASK],
            expected.last_hidden_state[MASK],
            tolerance,
            tolerance,
        )
        assert_near(states.pooler_output, expected.pooler_output, tolerance, tolerance)
        found = ours(IDS, MASK, SEGMENTS)
        heads = theirs(IDS, attention_mask=MASK.long(), token_type_ids=SEGMENTS)
        assert_near(
            found.prediction_logits[MASK],
            heads.prediction_logits[MASK],
            10 * tolerance,
            10 * tolerance,
        )
        assert_near(
            found.seq_relationship_logits, heads.sop_logits, tolerance, tolerance
        )


@precisions
def test_distilbert_is_theirs(dtype, tolerance):
    ours = randomised(DistilBertModel(CONFIG), dtype)
    config = transformers.DistilBertConfig(
        vocab_size=61,
        dim=24,
        n_layers=3,
        n_heads=4,
        hidden_dim=40,
        max_position_embeddings=17,
        dropout=0.0,
        attention_dropout=0.0,
    )
    theirs = transformers.DistilBertModel(config).to(dtype).eval()
    give(theirs, distilbert_names(3), ours)
    with torch.no_grad():
        found = ours(IDS, MASK).last_hidden_state
        expected = theirs(IDS, attention_mask=MASK.long()).last_hidden_state
    assert_near(found[MASK], expected[MASK], tolerance, tolerance)


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameters_are_counted_as_published():
    """Lan et al. 2020, table 1: 12M for base; Sanh et al. 2019, table 3: 66M. To the
    last, transformers' own models."""
    with torch.device("meta"):
        albert = transformers.AlbertModel(
            transformers.AlbertConfig(
                hidden_size=768, num_attention_heads=12, intermediate_size=3072
            )
        )
        distilbert = transformers.DistilBertModel(transformers.DistilBertConfig())
        ours = (
            AlbertModel(BertConfig.base(vocab_size=30_000)),
            DistilBertModel(BertConfig.base(num_hidden_layers=6)),
        )
    assert count(ours[0]) == count(albert) == 11_683_584
    assert count(ours[1]) == count(distilbert) == 66_362_880


def test_all_layers_of_albert_are_one_and_learn_together():
    model = AlbertModel(CONFIG, embedding_size=10)
    assert len({id(block) for block in model.blocks}) == 1
    assert len(model.blocks) == 3
    model(IDS, MASK).last_hidden_state.square().sum().backward()
    assert (
        model.blocks[2].feed_forward.expand.weight.grad
        is model.blocks[0].feed_forward.expand.weight.grad
    )
    with pytest.raises(ValueError, match="embedding_size is 0; it must be at least 1"):
        AlbertModel(CONFIG, embedding_size=0)


def test_albert_with_as_wide_embeddings_differs_from_bert_by_the_widening_alone():
    """With the identity for the widening and one layer, it is BERT."""
    config = BertConfig(**{**SIZES, "num_hidden_layers": 1})
    bert = BertModel(config).eval()
    albert = AlbertModel(config, embedding_size=24).eval()
    weights = bert.state_dict()
    weights |= {
        "embeddings.widen.weight": torch.eye(24),
        "embeddings.widen.bias": torch.zeros(24),
    }
    albert.load_state_dict(weights)
    with torch.no_grad():
        found, expected = albert(IDS, MASK, SEGMENTS), bert(IDS, MASK, SEGMENTS)
    torch.testing.assert_close(found.last_hidden_state, expected.last_hidden_state)


def test_a_student_begins_with_layers_0_2_4_and_shares_nothing():
    teacher = BertForPreTraining(BertConfig(**{**SIZES, "num_hidden_layers": 6}))
    student = student_of(teacher)
    assert len(student.bert.blocks) == 3
    for new, old in enumerate((0, 2, 4)):
        for ours, theirs in zip(
            student.bert.blocks[new].parameters(),
            teacher.bert.blocks[old].parameters(),
            strict=True,
        ):
            assert torch.equal(ours, theirs)
            assert ours.data_ptr() != theirs.data_ptr()
    assert student.mlm_head.output.weight is student.bert.embeddings.token.weight
    assert not any(
        "segment" in name or "pooler" in name for name in student.state_dict()
    )


def test_a_student_of_one_layer_guesses_as_a_teacher_of_one_layer_without_segments():
    teacher = BertForPreTraining(BertConfig(**{**SIZES, "num_hidden_layers": 1})).eval()
    nn.init.zeros_(teacher.bert.embeddings.segment.weight)
    student = student_of(teacher).eval()
    with torch.no_grad():
        found = student(IDS, MASK).prediction_logits
        expected = teacher(IDS, MASK).prediction_logits
    torch.testing.assert_close(found, expected)


def test_soft_targets_are_those_of_hinton():
    """Hinton et al. 2015, section 2: softmax(z / T); Sanh et al.'s code: KL times T
    squared."""
    generator = torch.Generator().manual_seed(8)
    student, teacher = torch.randn(2, 5, 7, generator=generator, dtype=torch.float64)
    for temperature in (1.0, 2.0, 3.5):
        p, q = (teacher / temperature).softmax(-1), (student / temperature).softmax(-1)
        expected = temperature**2 * (p * (p / q).log()).sum() / 5
        torch.testing.assert_close(
            soft_target_loss(student, teacher, temperature), expected
        )
    with pytest.raises(ValueError, match="temperature is 0"):
        soft_target_loss(student, teacher, 0.0)


def test_the_cosine_is_that_of_torchs_loss():
    generator = torch.Generator().manual_seed(9)
    student, teacher = torch.randn(2, 5, 7, generator=generator)
    expected = nn.CosineEmbeddingLoss()(student, teacher, torch.ones(5))
    torch.testing.assert_close(cosine_distance(student, teacher), expected)


def batch():
    places = torch.tensor([1, 4, 8])
    return PreTrainingBatch(
        IDS, SEGMENTS, MASK, places, torch.tensor([11, 12, 13]), None, 1.0, 1.0
    )


def test_the_loss_is_the_weighted_sum_of_three_and_leaves_the_teacher_alone():
    teacher, student = BertForPreTraining(CONFIG), DistilBertForMaskedLM(CONFIG)
    made = batch()
    parts = []
    for weights in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        loss, sequences = distillation_loss_sum(
            teacher, DistillationWeights(*map(float, weights))
        )(student, made)
        assert sequences == 2
        parts.append(loss)
    whole, _ = distillation_loss_sum(teacher)(student, made)
    torch.testing.assert_close(whole, 5 * parts[0] + 2 * parts[1] + parts[2])
    logits = student(IDS, MASK).prediction_logits.flatten(0, 1)[made.masked_positions]
    torch.testing.assert_close(
        parts[1], 2 * nn.functional.cross_entropy(logits, made.masked_labels)
    )
    whole.backward()
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert not teacher.training


def test_a_student_learns_its_teachers_guesses():
    """The gap to the teacher falls to a small part within a few steps on one batch."""
    torch.manual_seed(10)
    teacher = BertForPreTraining(CONFIG)
    student = student_of(teacher)
    loss_sum = distillation_loss_sum(teacher, DistillationWeights(1.0, 0.0, 0.0))
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss, _ = loss_sum(student, batch())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
