"""ModernBERT agrees with `transformers` on shared random weights, padded and unpadded,
and reads and writes its checkpoints."""

import json

import pytest
import torch
import transformers
from expect import assert_near, refusal
from safetensors.torch import load_file, save_file
from torch import nn

from course_lib.modern.files import load_modern_bert, published_name
from course_lib.modern.model import (
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertModel,
    unpad,
)
from course_lib.sentence_bert.model import SentenceBert
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

# All different: layers, heads, features of a head, window, lengths. A window of 7 is
# not even; the first has one layer, the second a global one behind the local ones.
SIZES = {
    "one layer": (1, 2, 12, 20, 4, 3),
    "three kinds of layers": (4, 3, 24, 10, 6, 3),
    "every second global": (5, 5, 40, 36, 7, 2),
}
EVERY_KIND = SIZES["three kinds of layers"]
LENGTHS = (29, 11, 3)
sizes = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)


def settings(size):
    layers, heads, width, between, window, every = size
    return {
        "vocab_size": 61,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "hidden_size": width,
        "intermediate_size": between,
        "local_attention": window,
        "global_attn_every_n_layers": every,
        "max_position_embeddings": 37,
        "pad_token_id": 0,
    }


def theirs_of(size, kind="sdpa"):
    """A model of `transformers` with random weights, and gains away from 1."""
    torch.manual_seed(sum(size))
    config = transformers.ModernBertConfig(
        **settings(size),
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        attn_implementation=kind,
    )
    model = transformers.ModernBertForMaskedLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 1 / parameter.shape[-1] ** 0.5 if parameter.dim() == 2 else 0.2
            nn.init.normal_(parameter, mean=float(parameter.dim() == 1), std=spread)
        model.model.embeddings.tok_embeddings.weight[0] = 0
    return model.eval()


def padded():
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, 61, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return ids * mask, mask


def both(size, folder, unpadded=False):
    theirs = theirs_of(size)
    theirs.save_pretrained(folder)
    ours = load_modern_bert(folder, ModernBertForMaskedLM)
    ours.bert.unpadded = unpadded
    return ours, theirs


@sizes
@pytest.mark.parametrize("unpadded", [False, True], ids=["padded", "unpadded"])
def test_logits_and_gradients_are_those_of_transformers(size, unpadded, tmp_path):
    """Warner et al. 2024, section 2.1, as `transformers` computes it, in float32."""
    ours, theirs = both(size, tmp_path, unpadded)
    ids, mask = padded()
    logits = ours(ids, mask).prediction_logits
    expected = theirs(input_ids=ids, attention_mask=mask).logits
    assert_near(logits[mask], expected[mask], atol=5e-6)
    for found in (logits, expected):
        (found[mask].log_softmax(-1)[:, 7].mean()).backward()
    wanted = {
        name.removeprefix("model."): parameter.grad
        for name, parameter in theirs.named_parameters()
    }
    found = {
        published_name(name): parameter.grad
        for name, parameter in ours.named_parameters()
    }
    assert found.keys() == wanted.keys()
    for name, gradient in found.items():
        assert gradient.abs().max() > 1e-6, name
        assert_near(gradient, wanted[name], atol=5e-6)


@sizes
def test_states_are_those_of_transformers_without_padding(size, tmp_path):
    theirs = theirs_of(size, "eager").model
    theirs.save_pretrained(tmp_path)
    ids, mask = padded()
    ids, mask = ids[:1], mask[:1]
    assert mask.all()
    output = load_modern_bert(tmp_path)(ids, return_hidden_states=True)
    expected = theirs(input_ids=ids).last_hidden_state
    assert_near(output.last_hidden_state, expected, atol=5e-6)
    assert torch.equal(output.pooler_output, output.last_hidden_state[:, 0])
    assert len(output.hidden_states) == size[0] + 1
    assert torch.equal(output.hidden_states[-1], output.last_hidden_state)


def lively(unpadded=False, **changes):
    torch.manual_seed(5)
    config = ModernBertConfig(
        **settings(SIZES["three kinds of layers"])
        | {"initializer_range": 0.3, **changes}
    )
    return ModernBertForMaskedLM(config, unpadded).double().eval()


def test_unpadded_states_are_the_padded_ones_and_padding_is_zero():
    """Warner et al. 2024, section 2.1.2; on either side, and in the middle of none."""
    ids, mask = padded()
    for rows, kept in ((ids, mask), (ids.flip(1), mask.flip(1))):
        expected = lively().bert(rows, kept).last_hidden_state
        found = lively(unpadded=True).bert(rows, kept, return_hidden_states=True)
        assert_near(found.last_hidden_state[kept], expected[kept], atol=1e-12)
        for states in found.hidden_states:
            assert not states[~kept].any()


def test_what_stands_in_padding_and_in_other_sequences_changes_nothing():
    ids, mask = padded()
    poisoned = ids.masked_fill(~mask, 9)
    for unpadded in (False, True):
        model = lively(unpadded).bert
        before = model(ids, mask).last_hidden_state
        assert_near(model(poisoned, mask).last_hidden_state[mask], before[mask], 1e-12)
        alone = model(ids[1:2, :11]).last_hidden_state
        assert_near(before[1:2, :11], alone, atol=1e-12)


def test_joined_sequences_lose_no_token_and_see_no_other_sequence():
    ids, mask = padded()
    joined = unpad(ids, mask)
    assert joined.input_ids.tolist() == [ids[mask].tolist()]
    assert joined.positions.tolist() == [[k for n in LENGTHS for k in range(n)]]
    expected = torch.block_diag(*(torch.ones(n, n) for n in LENGTHS)).bool()
    assert torch.equal(joined.mask[0], expected)


def test_a_token_reaches_as_far_as_the_local_windows_of_the_layers():
    """Warner et al. 2024, section 2.1.2: each local layer adds half a window."""
    model = lively(global_attn_every_n_layers=9).bert
    model.blocks[0].attention.output.weight.data.zero_()  # the global layer: nothing
    states = model(padded()[0][:1], return_hidden_states=True).hidden_states
    states[0].retain_grad()
    states[-1][0, 14].pow(2).sum().backward()
    # local layers 1, 2, 3 with 6 // 2 neighbours on either side
    reached = states[0].grad[0].abs().amax(dim=-1) > 0
    assert reached.nonzero()[:, 0].tolist() == list(range(14 - 9, 14 + 10))


def test_order_is_known_by_rotary_positions_alone():
    """Su et al. 2021, section 3.4.3: products depend on distance, so a text that is
    shifted as a whole has the same states; one in another order has not."""
    model = lively().bert
    ids, _ = padded()
    ids = ids[:1]
    positions = torch.arange(29)[None]
    before = model.encode(ids, positions, None)[-1]
    assert_near(model.encode(ids, positions + 5, None)[-1], before, atol=1e-6)
    swapped = ids[:, [1, 0, *range(2, 29)]]
    after = model.encode(swapped, positions, None)[-1]
    assert (after[0, 2:] - before[0, 2:]).abs().max() > 0.01


def test_first_weights_are_bert_s_and_smaller_where_a_layer_adds_to_the_states():
    """Warner et al. 2024, section 2.3 (Megatron's initialisation, as in Shoeybi et al.
    2019): divided by the root of twice the layers."""
    config = ModernBertConfig.mini(vocab_size=61, pad_token_id=0)
    model = ModernBertModel(config)
    block = model.blocks[2]
    wide, small = block.feed_forward.expand.weight, block.feed_forward.contract.weight
    expected = 0.02 * 0.8796  # of a normal distribution cut off at two deviations
    assert float(wide.detach().std()) == pytest.approx(expected, rel=0.02)
    assert float(small.detach().std()) == pytest.approx(expected / 8**0.5, rel=0.02)
    assert not model.embeddings.token.weight[0].any()


def test_published_sizes_have_the_published_number_of_parameters():
    """Warner et al. 2024, section 2.1: 149 and 395 million; with their head."""
    with torch.device("meta"):
        counts = [
            sum(x.numel() for x in ModernBertForMaskedLM(config).parameters())
            for config in (ModernBertConfig.base(), ModernBertConfig.large())
        ]
    assert [round(count / 1e6) for count in counts] == [150, 396]


def test_a_sentence_encoder_can_stand_on_it():
    tokenizer = WordPiece([*SPECIAL_TOKENS, "a", "b", "c"])
    bert = lively(vocab_size=len(tokenizer)).bert.float()
    for unpadded in (False, True):
        bert.unpadded = unpadded
        vectors = SentenceBert(bert, tokenizer).encode(["a b c a b", "c"])
        alone = SentenceBert(bert, tokenizer).encode(["c"])
        assert_near(vectors[1:], alone, atol=5e-6)


def test_the_encoder_of_a_checkpoint_with_a_head_is_read_with_a_warning(tmp_path):
    both(EVERY_KIND, tmp_path)
    with pytest.warns(UserWarning, match=r"left aside is decoder\.bias, head\.dense"):
        encoder = load_modern_bert(tmp_path, dtype=torch.float64)
    whole = load_modern_bert(tmp_path, ModernBertForMaskedLM, torch.float64)
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, whole.bert.state_dict()[name]), name
    assert whole.mlm_head.output.weight is whole.bert.embeddings.token.weight


def rewrite(folder, changes, without=()):
    path = folder / "config.json"
    kept = json.loads(path.read_text())
    kept = {name: kept[name] for name in kept.keys() - set(without)}
    path.write_text(json.dumps(kept | changes))


def test_the_older_layout_of_a_configuration_is_read_as_transformers_reads_it(tmp_path):
    """As on the hub: `global_attn_every_n_layers` and two thetas, no `layer_types`."""
    both(EVERY_KIND, tmp_path)
    older = {"global_attn_every_n_layers": 2, "global_rope_theta": 9000.0}
    older |= {"local_rope_theta": 500.0}
    rewrite(tmp_path, older, without=("layer_types", "rope_parameters"))
    ours = load_modern_bert(tmp_path, ModernBertForMaskedLM)
    theirs = transformers.ModernBertForMaskedLM.from_pretrained(tmp_path).eval()
    ids, mask = padded()
    expected = theirs(input_ids=ids, attention_mask=mask).logits[mask]
    assert_near(ours(ids, mask).prediction_logits[mask], expected, atol=5e-6)
    assert (ours.config.local_rope_theta, ours.config.global_rope_theta) == (500, 9000)


REFUSED = {
    "a bias": ({"attention_bias": True}, "attention_bias is True; .* only False"),
    "another model": ({"model_type": "bert"}, "model_type is 'bert'"),
    "another activation": (
        {"hidden_activation": "silu"},
        "hidden_activation is 'silu'",
    ),
    "code": ({"auto_map": {"AutoModel": "x.py"}}, "auto_map is"),
    "uneven layers": (
        {"layer_types": ["full_attention", "full_attention", "sliding_attention"]},
        "must alternate evenly",
    ),
    "stretched positions": (
        {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
        "rope_type is 'yarn'",
    ),
    "no window": (
        {"local_attention": 0},
        "local_attention, layers and thetas must be at least 1",
    ),
    "other sizes": (
        {"hidden_size": 48},
        r"tok_embeddings.weight is \(61, 24\) in the .*\(61, 48\)",
    ),
    "no table": ({"rope_parameters": ["default"]}, "describes no BERT"),
    "no list": ({"layer_types": 3}, "describes no BERT"),
    "more layers": ({"num_hidden_layers": 5}, "its kinds must alternate evenly"),
    "many layers": (
        {"num_hidden_layers": 9_999_999, "layer_types": None},
        "has fewer layers than its configuration says",
    ),
    "fewer layers": (
        {"num_hidden_layers": 3, "layer_types": None},
        r"layers.3.attn.Wo.weight is \(24, 24\) in the file, but not",
    ),
}


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_a_configuration_that_would_change_the_numbers_is_refused(
    changes, words, tmp_path
):
    both(EVERY_KIND, tmp_path)
    rewrite(tmp_path, changes)
    with refusal(words):
        load_modern_bert(tmp_path, ModernBertForMaskedLM)


def test_a_file_that_is_damaged_or_incomplete_is_refused(tmp_path):
    both(EVERY_KIND, tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    del tensors["head.norm.weight"]
    save_file(tensors, path)
    with refusal("head.norm.weight is not in the file"):
        load_modern_bert(tmp_path, ModernBertForMaskedLM)
    path.write_bytes(path.read_bytes()[:100])
    with refusal("is damaged"):
        load_modern_bert(tmp_path, ModernBertForMaskedLM)
    path.rename(tmp_path / "pytorch_model.bin")
    with refusal("is a pickle, which could run code", FileNotFoundError):
        load_modern_bert(tmp_path)
