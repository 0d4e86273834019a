"""Our BERT is `transformers`' BERT: outputs, losses and gradients, random and published
weights, both ways."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
import transformers
from bert_peer import gradients, lively, theirs_for
from cases import for_each
from torch import Tensor

from course_lib.attention.weights import watch_attention
from course_lib.bert.config import BertConfig
from course_lib.bert.files import load_bert, save_bert
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.bert.weights import to_published
from course_lib.training.cpu import speed_up
from course_lib.wordpiece.fast import FastWordPiece

SIZES = ("tiny", "mini", "small", "medium", "base", "large")
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-10), (torch.float32, 1e-5)],
    ids=["float64", "float32"],
)
ATTENTION = pytest.mark.parametrize("attention", ["eager", "sdpa"])


def random_config(seed: int, **changes: object) -> BertConfig:
    """No two sizes alike, none a multiple of what is usual, and everything that can be
    chosen chosen otherwise."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    heads = draw(2, 5)
    settings = {
        "vocab_size": draw(37, 61),
        "hidden_size": heads * draw(3, 7),
        "num_hidden_layers": draw(1, 4),
        "num_attention_heads": heads,
        "intermediate_size": draw(11, 50),
        "hidden_act": ("gelu", "relu")[seed % 2],
        "hidden_dropout_prob": 0.3,
        "attention_probs_dropout_prob": 0.2,
        "max_position_embeddings": draw(14, 23),
        "type_vocab_size": draw(2, 4),
        "layer_norm_eps": (1e-12, 0.03)[seed // 2 % 2],
        "pad_token_id": (0, 5, None)[seed % 3],
    }
    return BertConfig(**settings | changes)


class Batch:
    """Sequences of unequal lengths in all segments that there are, padded in front or
    behind with any ids."""

    def __init__(self, config: BertConfig, seed: int, length: int = 13, size: int = 4):
        generator = torch.Generator().manual_seed(seed)

        def draw(high: int) -> Tensor:
            return torch.randint(high, (size, length), generator=generator)

        self.input_ids, self.token_type_ids = (
            draw(config.vocab_size),
            draw(config.type_vocab_size).sort(dim=1).values,
        )
        self.lengths = torch.tensor([length, 1, length - 4, 5])[:size]
        self.attention_mask = torch.arange(length) < self.lengths[:, None]
        self.attention_mask[2:3] = self.attention_mask[2:3].flip(1)  # padded in front
        if config.pad_token_id is not None:
            # there is padding, and the same id stands among tokens too
            self.input_ids[1:, -2] = config.pad_token_id
            self.input_ids[0, 3] = config.pad_token_id
        chosen = (draw(3) == 0) & self.attention_mask
        self.labels = draw(config.vocab_size).where(chosen, -100)
        self.next_sentence_label = torch.tensor([1, 0, 0, 1])[:size]

    def inputs(self, padded: bool = True) -> dict[str, Tensor]:
        given = {"input_ids": self.input_ids, "token_type_ids": self.token_type_ids}
        return given | ({"attention_mask": self.attention_mask} if padded else {})


def loss(logits: Tensor, next_sentence_logits: Tensor, batch: Batch) -> Tensor:
    """Mean over the chosen positions plus mean over the pairs (Devlin et al. 2019,
    appendix A.2)."""
    chosen = batch.labels.flatten() != -100
    token_loss = F.cross_entropy(
        logits.flatten(0, -2)[chosen], batch.labels.flatten()[chosen]
    )
    return token_loss + F.cross_entropy(next_sentence_logits, batch.next_sentence_label)


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@ATTENTION
@PRECISIONS
@for_each("seed", range(4))
@for_each("padded", [True, False])
def test_outputs_loss_and_gradients_are_those_of_transformers(
    attention, dtype, tolerance, seed, padded
):
    config = random_config(seed)
    ours = lively(config, seed=seed).to(dtype).eval()
    theirs, batch = theirs_for(ours, attention), Batch(config, seed)
    found = ours(**batch.inputs(padded))
    ours_loss = loss(found.prediction_logits, found.seq_relationship_logits, batch)
    expected = theirs(
        **batch.inputs(padded),
        labels=batch.labels,
        next_sentence_label=batch.next_sentence_label,
    )
    close(found.prediction_logits, expected.prediction_logits, tolerance)
    close(found.seq_relationship_logits, expected.seq_relationship_logits, tolerance)
    close(ours_loss, expected.loss, tolerance)
    assert found.prediction_logits.std() > 0.3, (
        "logits that hardly differ would hide a mistake"
    )
    ours_loss.backward()
    expected.loss.backward()
    mine, its = gradients(ours), gradients(theirs)
    assert mine.keys() == its.keys()
    for name in its:
        close(mine[name], its[name], tolerance)
        assert its[name].abs().max() > 1e-6 or name.endswith("key.bias"), (
            f"no gradient reaches {name}"
        )


@ATTENTION
def test_at_a_published_size_all_agrees_too(attention):
    """Products as large as `course_lib.training.cpu` gives to another library, and the
    first weights that a model has."""
    torch.manual_seed(0)
    config = BertConfig.mini(vocab_size=997)
    ours = speed_up(BertForPreTraining(config).eval())
    theirs, batch = theirs_for(ours, attention), Batch(config, 0, length=70)
    found = ours(**batch.inputs())
    expected = theirs(
        **batch.inputs(),
        labels=batch.labels,
        next_sentence_label=batch.next_sentence_label,
    )
    ours_loss = loss(found.prediction_logits, found.seq_relationship_logits, batch)
    close(found.prediction_logits, expected.prediction_logits, 1e-5)
    close(ours_loss, expected.loss, 1e-5)
    ours_loss.backward()
    expected.loss.backward()
    mine, its = gradients(ours), gradients(theirs)
    # the largest slopes are some 0.01; a key's offset has none but by rounding
    for name in its:
        tolerance = max(1e-4 * its[name].abs().max().item(), 1e-8)
        torch.testing.assert_close(mine[name], its[name], rtol=0, atol=tolerance)


@ATTENTION
@PRECISIONS
def test_every_layer_and_every_attention_weight_agrees(attention, dtype, tolerance):
    config = random_config(5, num_hidden_layers=3)
    ours = lively(config, BertModel, seed=5).to(dtype).eval()
    theirs, batch = theirs_for(ours, attention), Batch(config, 5)
    with watch_attention(ours) as kept:
        found = ours(**batch.inputs(), return_hidden_states=True)
    expected = theirs(
        **batch.inputs(),
        output_hidden_states=True,
        output_attentions=attention == "eager",
    )
    close(found.last_hidden_state, expected.last_hidden_state, tolerance)
    close(found.pooler_output, expected.pooler_output, tolerance)
    assert len(found.hidden_states) == len(expected.hidden_states) == 4
    for mine, its in zip(found.hidden_states, expected.hidden_states, strict=True):
        close(mine, its, tolerance)
    if attention == "eager":  # their other kind cannot show its weights
        assert len(kept) == len(expected.attentions) == 3
        for (mine,), its in zip(kept.values(), expected.attentions, strict=True):
            close(mine, its, tolerance)


@ATTENTION
def test_dropout_falls_where_theirs_falls(attention):
    """Seeded alike, both draw the same places in the same order: embeddings, weights,
    and both sums of each layer."""
    config = random_config(7, num_hidden_layers=2)
    ours = lively(config, BertModel, seed=7).train()
    theirs, batch = theirs_for(ours, attention), Batch(config, 7)
    torch.manual_seed(8)
    found = ours(**batch.inputs()).last_hidden_state
    torch.manual_seed(8)
    expected = theirs(**batch.inputs()).last_hidden_state
    close(found, expected, 1e-10)
    assert (found - ours.eval()(**batch.inputs()).last_hidden_state).abs().max() > 0.1


@for_each("size", SIZES)
def test_parameter_counts_are_theirs_at_all_sizes(size):
    config = getattr(BertConfig, size)()
    with torch.device("meta"):  # counted, not allocated
        ours = BertForPreTraining(config)
        theirs = transformers.BertForPreTraining(
            transformers.BertConfig(**dataclasses.asdict(config))
        )
    for mine, its in ((ours, theirs), (ours.bert, theirs.bert)):
        assert sum(x.numel() for x in mine.parameters()) == sum(
            x.numel() for x in its.parameters()
        )
    shapes = {name: tuple(x.shape) for name, x in theirs.named_parameters()}
    assert {
        name: tuple(x.shape)
        for name, x in to_published(dict(ours.named_parameters())).items()
    } == shapes


def test_our_defaults_are_theirs():
    theirs = transformers.BertConfig().to_dict()
    for name, value in dataclasses.asdict(BertConfig()).items():
        assert theirs[name] == value, name
    assert BertConfig() == BertConfig.base()


@pytest.fixture(scope="session")
def published(real_data):
    """A published BERT of 6 layers (22.7 million parameters) that lies beside the
    public data sets."""
    folder = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if not (folder / "model.safetensors").is_file():
        pytest.skip(
            f"no published weights: there is no {folder.parent.name}/{folder.name}"
            " beside the public data"
        )
    return folder


SENTENCES = [
    ("Attention is all you need.", "BERT reads both ways, GPT reads one way."),
    ("A bank by the river.", "She pays the unhuggable bank."),
    ("Naïve café, 中文!", "x"),
]


@pytest.mark.real_data
def test_published_weights_give_the_published_numbers(published):
    tokens = [
        FastWordPiece.load(published).encode(one, other) for one, other in SENTENCES
    ]
    reference = transformers.AutoTokenizer.from_pretrained(published)
    batch = reference(
        [one for one, _ in SENTENCES],
        [other for _, other in SENTENCES],
        padding=True,
        return_tensors="pt",
    )
    for row, encoding in zip(batch["input_ids"].tolist(), tokens, strict=True):
        assert row[: len(encoding.ids)] == encoding.ids
    assert not batch["attention_mask"].all()
    mine = {**batch, "attention_mask": batch["attention_mask"].bool()}
    ours = load_bert(published)
    theirs = transformers.BertModel.from_pretrained(published, dtype=torch.float32)
    with torch.no_grad():
        found = ours(**mine, return_hidden_states=True)
        expected = theirs(**batch, output_hidden_states=True)
    for layer, its_layer in zip(
        found.hidden_states, expected.hidden_states, strict=True
    ):
        close(layer, its_layer, 1e-4)
    close(found.pooler_output, expected.pooler_output, 1e-4)
    assert sum(x.numel() for x in ours.parameters()) == 22_713_216


@pytest.mark.real_data
def test_published_weights_that_we_saved_load_with_automodel(published, tmp_path):
    tokenizer = FastWordPiece.load(published)
    save_bert(load_bert(published), tmp_path, tokenizer)
    model, told = transformers.AutoModel.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(told.values())
    original = transformers.AutoModel.from_pretrained(published, dtype=torch.float32)
    ours, theirs = (
        transformers.AutoTokenizer.from_pretrained(folder)
        for folder in (tmp_path, published)
    )
    texts = [text for pair in SENTENCES for text in pair]
    assert ours(texts)["input_ids"] == theirs(texts)["input_ids"]
    batch = ours(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        found, expected = model.eval()(**batch), original.eval()(**batch)
    assert torch.equal(found.last_hidden_state, expected.last_hidden_state)
