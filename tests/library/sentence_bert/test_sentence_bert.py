"""Sentence vectors: poolings by hand, and an encode that changes nothing but
the speed."""

import io
from contextlib import redirect_stderr

import pytest
import torch
from cases import for_each
from expect import assert_near, refusal
from sentence_peer import CONFIG, SENTENCES, TOKENIZER, encoder, lively_bert

import course_lib.sentence_bert.model as module
from course_lib.sentence_bert.files import POOLINGS
from course_lib.sentence_bert.model import SentenceBert, pool, token_ids
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

STATES = torch.tensor(
    [[[1.0, -8.0], [3.0, -4.0], [5.0, -6.0]], [[-2.0, 7.0], [-4.0, 1.0], [99.0, 99.0]]]
)
MASK = torch.tensor([[True, True, True], [True, True, False]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mean", [[3.0, -6.0], [-3.0, 4.0]]),
        ("cls", [[1.0, -8.0], [-2.0, 7.0]]),
        ("max", [[5.0, -4.0], [-2.0, 7.0]]),
    ],
)
def test_padding_has_no_part_in_a_vector(how, expected):
    """Worked out by hand; the largest of the second sentence's negative features is no
    zero of the padding."""
    assert pool(STATES, MASK, how).tolist() == expected
    poisoned = STATES.masked_fill(~MASK[:, :, None], torch.nan)
    assert pool(poisoned, MASK, how).tolist() == expected, (
        "whatever stands at the padding"
    )
    assert pool(STATES[:1], None, how).tolist() == expected[:1]


def test_the_first_token_is_found_behind_padding():
    assert pool(STATES.flip(1), MASK.flip(1), "cls").tolist() == [
        [5.0, -6.0],
        [-4.0, 1.0],
    ]


def test_a_mean_of_half_precision_is_added_up_in_single():
    """In bfloat16, 256 + 1 is 256: a sum of 512 ones would stop there."""
    ones = torch.ones(1, 512, 1, dtype=torch.bfloat16)
    assert pool(ones).item() == 1
    assert pool(ones).dtype == torch.bfloat16


def test_what_cannot_be_pooled_is_refused():
    with refusal("the pooling is 'median'; choose one of mean, cls, max"):
        pool.__wrapped__(STATES, MASK, "median")
    with refusal(
        r"attention_mask is \(2, 2\), but there are states for \(2, 3\) tokens"
    ):
        pool.__wrapped__(STATES, MASK[:, :2])
    with refusal("leave at least one True"):
        pool(STATES, MASK & torch.tensor([[True], [False]]))


@for_each("pooling", POOLINGS)
@for_each("normalize", [False, True])
def test_vectors_depend_neither_on_batches_nor_on_order_nor_on_the_models_mode(
    pooling, normalize
):
    model = encoder(pooling=pooling, normalize=normalize).train()
    alone = torch.cat([model.encode([sentence]) for sentence in SENTENCES])
    assert model.training, "the mode is as before"
    for size in (1, 3, 99):
        assert_near(model.encode(SENTENCES, size), alone, 1e-6, 1e-5)
        assert_near(model.encode(SENTENCES[::-1], size).flip(0), alone, 1e-6, 1e-5)
    distances = torch.cdist(alone, alone)
    assert distances[2, 5] < 1e-5, "the same sentence"
    assert (distances + torch.eye(7) * 9 > 0.05).sum() == 49 - 2, (
        "vectors that are all alike would show nothing"
    )


def test_a_vector_is_the_pooled_last_state():
    model = encoder(pooling="max").eval()
    ids = torch.tensor([TOKENIZER.encode(SENTENCES[0]).ids])
    expected = model.bert(ids).last_hidden_state.amax(dim=1)
    assert_near(model.encode(SENTENCES[:1]), expected.detach(), 1e-6, 1e-5)
    torch.testing.assert_close(model(ids), expected)


def test_long_corpora_are_sorted_in_parts_and_keep_their_order(monkeypatch):
    model, many = encoder(), SENTENCES * 3
    whole = model.encode(many, batch_size=4)
    monkeypatch.setattr(module, "POOL", 5)
    assert_near(model.encode(many, batch_size=4), whole, 1e-6, 1e-5)


def test_sentences_of_similar_length_share_a_batch_and_the_longest_come_first():
    model, seen = encoder(), []
    model.bert.register_forward_pre_hook(
        lambda bert, inputs: seen.append((inputs[0].shape, inputs[1]))
    )
    model.encode(["a", "a film was bad ."] * 4, batch_size=4)
    assert [tuple(shape) for shape, _ in seen] == [(4, 7), (4, 3)]
    assert all(mask is None for _, mask in seen), "no padding, so no mask"


def test_lengths_are_ignored_where_it_is_asked_for():
    model = encoder(normalize=True)
    raw, unit = model.encode(SENTENCES, normalize=False), model.encode(SENTENCES)
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(7))
    torch.testing.assert_close(raw / raw.norm(dim=1, keepdim=True), unit)
    assert (raw.norm(dim=1) - 1).abs().min() > 0.1
    torch.testing.assert_close(encoder().encode(SENTENCES, normalize=True), unit)


def test_a_sentence_is_cut_where_the_model_says():
    model = encoder(max_length=6)
    long, cut, shorter = model.encode(
        ["good bad film a who who who", "good bad film a", "good bad film"]
    )
    assert_near(long, cut, 1e-6, 1e-5)
    assert (long - shorter).norm() > 0.05
    assert encoder().encode(["a " * 99]).shape == (1, 15), "as many as it has positions"


def test_bfloat16_gives_nearly_the_same_vectors_in_single_precision():
    model = encoder()
    full, half = model.encode(SENTENCES), model.encode(SENTENCES, precision="bfloat16")
    assert half.dtype == torch.float32
    assert not torch.equal(full, half), "it was computed in bfloat16"
    assert torch.cosine_similarity(full, half).min() > 0.999
    assert torch.equal(full, model.encode(SENTENCES, precision="float32"))


@pytest.mark.cpu  # a GPU that has bfloat16 is faster in it
@pytest.mark.parametrize("faster", ["float32", "bfloat16"])
def test_auto_encodes_in_what_the_machine_is_faster_in(faster, monkeypatch):
    monkeypatch.setattr(
        "course_lib.training.precision.has_bfloat16", lambda where: True
    )
    rates = {"float32": 1.0, "bfloat16": 1.0, faster: 2.0}
    monkeypatch.setattr(
        "course_lib.training.precision.product_rates", lambda where: rates
    )
    model = encoder()
    assert_near(
        model.encode(SENTENCES, precision="auto"),
        model.encode(SENTENCES, precision=faster),
        0,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_half_precision_give_nearly_the_same_vectors_in_single(dtype):
    full = encoder().encode(SENTENCES)
    weights = SentenceBert(lively_bert(4).to(dtype), TOKENIZER).encode(SENTENCES)
    assert weights.dtype == torch.float32
    assert torch.cosine_similarity(full, weights).min() > 0.99


def test_both_tokenizers_lead_to_the_same_vectors():
    slow = SentenceBert(lively_bert(4), WordPiece(TOKENIZER.pieces))
    assert_near(slow.encode(SENTENCES), encoder().encode(SENTENCES), 1e-6, 1e-5)


def test_no_sentence_has_no_vector():
    assert encoder().encode([]).shape == (0, 15)


def test_vectors_carry_no_gradient_and_those_in_training_do():
    model = encoder()
    assert not model.encode(["bad"]).requires_grad
    model(torch.tensor([[2, 7, 3]])).sum().backward()
    assert model.bert.embeddings.token.weight.grad.abs().sum() > 0


def test_progress_is_shown_where_it_is_asked_for():
    # None: a test is no terminal
    for wanted, shown in ((True, True), (False, False), (None, False)):
        with redirect_stderr(io.StringIO()) as text:
            encoder().encode(SENTENCES, progress=wanted)
        assert ("7/7" in text.getvalue()) is shown


def test_what_cannot_be_encoded_is_refused():
    model = encoder()
    with refusal("sentences is one string, 'a film'; pass a list"):
        model.encode("a film")
    with refusal("sentences is one string"):
        token_ids(TOKENIZER, "a film")
    with refusal("batch_size is 0"):
        model.encode(["a"], batch_size=0)
    with refusal("precision is 'float64'; choose one of auto, float32, bfloat16"):
        model.encode(["a"], precision="float64")
    with refusal("max_length is 20, but this BERT has 19 positions"):
        encoder(max_length=20)
    with refusal("max_length"):
        encoder(max_length=1)
    with refusal(
        "the tokenizer has 21 pieces, but the model has embeddings for"
        f" {len(TOKENIZER)}"
    ):
        SentenceBert(
            lively_bert(1), FastWordPiece([*SPECIAL_TOKENS, *"abcdefghijklmnop"])
        )
    assert CONFIG.vocab_size == 20
