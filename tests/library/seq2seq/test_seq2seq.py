"""The encoder-decoder: against torch.nn run by hand, stepwise against all at once, and
blind to padding."""

from dataclasses import replace

import pytest
import torch
from cases import for_each
from expect import assert_near, refusal
from torch import nn

from course_lib.attention.scores import DotScore
from course_lib.seq2seq.model import Encoder, Seq2Seq, Seq2SeqConfig

KINDS = [
    {"attention": None},
    {"attention": "dot"},
    {"attention": "bilinear"},
    {"attention": "additive"},
    {"attention": "scaled", "conditional": True, "layer_norm": True},
    {"attention": "additive", "conditional": True},
    {"attention": None, "conditional": True},
]
every_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=lambda kind: " ".join([str(kind["attention"]), *list(kind)[1:]])
)
# All different: source and target vocabulary, embedding, hidden, batch, source length,
# target length.
SIZES = {"source_vocab": 13, "target_vocab": 11, "embedding_dim": 5, "hidden_dim": 8}
B, S, T = 3, 7, 4


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return {
        "source_ids": torch.randint(1, 13, (B, S), generator=generator),
        "source_lengths": torch.tensor([4, 7, 1]),
        "target_ids": torch.randint(1, 11, (B, T), generator=generator),
    }


def make(attention, **changes) -> Seq2Seq:
    torch.manual_seed(1)
    return (
        Seq2Seq(Seq2SeqConfig(**{**SIZES, "attention": attention, **changes}))
        .double()
        .eval()
    )


@every_kind
def test_padding_changes_nothing_whatever_it_holds(kind, batch):
    model = make(**kind)
    logits = model(**batch)
    padding = torch.arange(S) >= batch["source_lengths"][:, None]
    poisoned = {**batch, "source_ids": batch["source_ids"].masked_fill(padding, 12)}
    assert torch.equal(model(**poisoned), logits)
    longer = {
        **batch,
        "source_ids": nn.functional.pad(batch["source_ids"], (0, 5), value=3),
    }
    assert_near(model(**longer), logits, 1e-12)


@every_kind
def test_a_sentence_is_translated_the_same_alone_and_in_a_batch(kind, batch):
    model = make(**kind)
    together = model(**batch)
    for row, length in enumerate(batch["source_lengths"]):
        alone = model(
            batch["source_ids"][row : row + 1, :length],
            length[None],
            batch["target_ids"][row : row + 1],
        )
        assert_near(alone[0], together[row], 1e-12)


@every_kind
def test_step_by_step_gives_what_teacher_forcing_gives(kind, batch):
    model = make(**kind)
    logits = model(**batch)
    state = model.start(batch["source_ids"], batch["source_lengths"])
    for position in range(T):
        log_probs, state = model.step(state, batch["target_ids"][:, position])
        assert_near(log_probs, logits[:, position].log_softmax(-1), 1e-12)


@every_kind
def test_a_later_target_word_cannot_change_an_earlier_prediction(kind, batch):
    model = make(**kind)
    before = model(**batch)
    changed = batch["target_ids"].clone()
    changed[:, 2] = (changed[:, 2] + 1) % 11
    after = model(**{**batch, "target_ids": changed})
    assert torch.equal(after[:, :2], before[:, :2])
    assert (after[:, 2:] != before[:, 2:]).any(dim=-1).all()


def test_the_encoder_equals_a_bidirectional_gru_on_each_sentence_by_itself(batch):
    encoder = Encoder(13, 5, 8).double()
    states, last = encoder(batch["source_ids"], batch["source_lengths"])
    for row, length in enumerate(batch["source_lengths"]):
        expected, ends = encoder.gru(
            encoder.embedding(batch["source_ids"][row : row + 1, :length])
        )
        assert_near(states[row, :length], expected[0], 1e-12)
        assert_near(last[row], torch.cat([ends[0, 0], ends[1, 0]]), 1e-12)
        assert (states[row, length:] == 0).all()


def test_the_decoder_equals_its_equations_worked_by_hand(batch):
    """Luong et al. 2015, equations 4 and 5, one sentence and one step at a time."""
    model = make("dot")
    logits, weights = model(**batch, return_weights=True)
    decoder = model.decoder
    for row, length in enumerate(batch["source_lengths"]):
        encoder_states, last = model.encoder(
            batch["source_ids"][row : row + 1, :length], length[None]
        )
        hidden = torch.tanh(model.bridge(last))
        for position in range(T):
            read = decoder.embedding(batch["target_ids"][row, position])
            _, hidden_next = decoder.gru(read[None, None], hidden[None])
            hidden = hidden_next[0]
            attention = torch.softmax(encoder_states[0] @ hidden[0], dim=0)
            context = sum(
                weight * state
                for weight, state in zip(attention, encoder_states[0], strict=True)
            )
            combined = torch.tanh(
                decoder.combine.weight @ torch.cat([context, hidden[0]])
                + decoder.combine.bias
            )
            expected = decoder.output.weight @ combined + decoder.output.bias
            assert_near(logits[row, position], expected, 1e-12)
            assert_near(weights[row, position, :length], attention, 1e-12)


@pytest.mark.parametrize("layer_norm", [False, True], ids=["", "layer norm"])
def test_a_conditional_decoder_equals_its_equations_worked_by_hand(layer_norm, batch):
    """Sennrich et al. 2017, section 2: s' from the word, the context from s', s from
    the context; one step at a time. The output reads s, the context and the word
    (Bahdanau et al. 2015, appendix A.2.2).
    """
    model = make("dot", conditional=True, layer_norm=layer_norm)
    encoder, decoder = model.encoder, model.decoder
    for norm in (encoder.norm, decoder.norm):
        for gain in norm.parameters():
            nn.init.normal_(gain)
    logits, weights = model(**batch, return_weights=True)

    def normalised(vector, norm):
        if not layer_norm:
            return vector
        centred = vector - vector.mean()
        return (
            centred / (centred.square().mean() + 1e-5).sqrt() * norm.weight + norm.bias
        )

    for row, length in enumerate(batch["source_lengths"]):
        raw, ends = encoder.gru(
            encoder.embedding(batch["source_ids"][row : row + 1, :length])
        )
        encoder_states = torch.stack(
            [normalised(state, encoder.norm) for state in raw[0]]
        )
        hidden = torch.tanh(model.bridge(ends.flatten()))[None]
        for position in range(T):
            word = decoder.embedding(batch["target_ids"][row, position])
            _, half = decoder.gru(word[None], hidden)
            attention = torch.softmax(encoder_states @ half[0], dim=0)
            context = attention @ encoder_states
            _, hidden = decoder.second(context[None], half)
            read = torch.cat([context, hidden[0], word])
            combined = torch.tanh(normalised(decoder.combine(read), decoder.norm))
            assert_near(logits[row, position], decoder.output(combined), 1e-12)
            assert_near(weights[row, position, :length], attention, 1e-12)


def test_a_conditional_decoder_drops_encoder_states_and_begins_from_all_of_the_last(
    batch,
):
    """Caglayan et al. 2017, section 3.1, put dropout there too."""
    model = make("dot", conditional=True, dropout=0.5).train()
    model.encoder.dropout.eval()
    state = model.start(batch["source_ids"], batch["source_lengths"])
    assert (state.encoder_states[1] == 0).any(dim=-1).all()
    assert (state.summary != 0).all()
    plain = make("dot", dropout=0.5).train()
    plain.encoder.dropout.eval()
    assert (
        plain.start(batch["source_ids"], batch["source_lengths"]).encoder_states[1] != 0
    ).all()


def test_a_conditional_model_begins_with_embeddings_of_length_one():
    model = Seq2Seq(
        Seq2SeqConfig(601, 701, embedding_dim=25, hidden_dim=6, conditional=True)
    )
    for embedding in (model.encoder.embedding, model.decoder.embedding):
        assert embedding.weight.square().sum(dim=1).mean().item() == pytest.approx(
            1, rel=0.05
        )


def test_without_attention_the_decoder_sees_the_source_through_the_last_state_alone(
    batch,
):
    """The bottleneck: change the other encoder states, and nothing happens."""
    model = make(None)
    state = model.start(batch["source_ids"], batch["source_lengths"])
    blind = replace(state, encoder_states=torch.full_like(state.encoder_states, 99.0))
    for first, second in zip(
        model.decoder(batch["target_ids"], state),
        model.decoder(batch["target_ids"], blind),
        strict=True,
    ):
        if isinstance(first, torch.Tensor):
            assert torch.equal(first, second)
    assert model(**batch, return_weights=True)[1] is None


@pytest.mark.parametrize("conditional", [False, True], ids=["", "conditional"])
def test_models_with_and_without_dot_attention_have_the_same_parameters(conditional):
    """So that a comparison of the two is a comparison of attention, not of size."""
    with_attention = make("dot", conditional=conditional)
    without = make(None, conditional=conditional)
    assert isinstance(with_attention.decoder.score, DotScore)
    names = dict(with_attention.named_parameters())
    assert names.keys() == dict(without.named_parameters()).keys()
    for name, parameter in without.named_parameters():
        assert torch.equal(parameter, names[name])


class Reads(nn.Module):
    """An encoder that has read: its states and the last one lie on the device of the
    words, where packing and gated units have kernels."""

    def forward(self, words, lengths):
        states = torch.zeros(*words.shape, 12, dtype=torch.double, device=words.device)
        return states, states[:, 0]


def test_lengths_may_lie_on_the_cpu_where_torch_wants_them():
    """`pack_padded_sequence` takes them there alone, wherever the words are."""
    model, words = make("dot"), torch.ones(2, 4, dtype=torch.long, device="meta")
    model.encoder, model.bridge = Reads(), nn.Identity()
    state = model.start(words, torch.tensor([3, 1], device="cpu"))
    assert state.source_mask.device == words.device


def test_a_tied_output_layer_is_the_target_embedding_and_learns_with_it(batch):
    """Press and Wolf 2017: one matrix, so a word that is only read moves its
    score too."""
    model = make("dot", embedding_dim=8, tie_output=True)
    separate = make("dot", embedding_dim=8)
    assert model.decoder.output.weight is model.decoder.embedding.weight
    sizes = [
        sum(p.numel() for p in either.parameters()) for either in (model, separate)
    ]
    assert sizes[1] - sizes[0] == 11 * 8
    assert model.decoder.embedding.weight.std().item() == pytest.approx(
        8**-0.5, rel=0.2
    )
    model.train()  # where cuDNN has gradients
    model(**batch)[..., 3].sum().backward()
    read = set(batch["target_ids"].flatten().tolist())
    touched = {
        row
        for row, grad in enumerate(model.decoder.embedding.weight.grad)
        if grad.abs().sum() > 0
    }
    assert touched == read | {3}


def test_parameter_count_is_the_sum_of_the_layers_by_hand():
    source_vocab, target_vocab, embedding, hidden = SIZES.values()
    half = hidden // 2
    encoder = source_vocab * embedding + 2 * (3 * half * (embedding + half) + 6 * half)
    bridge = hidden * hidden + hidden
    decoder = target_vocab * embedding + 3 * hidden * (embedding + hidden) + 6 * hidden
    output = 2 * hidden * hidden + hidden + hidden * target_vocab + target_vocab
    assert (
        sum(p.numel() for p in make("dot").parameters())
        == encoder + bridge + decoder + output
    )
    second_half = 6 * hidden * hidden + 6 * hidden
    word = embedding * hidden
    norms = 2 * 2 * hidden
    grown = make("dot", conditional=True, layer_norm=True)
    assert (
        sum(p.numel() for p in grown.parameters())
        == encoder + bridge + decoder + output + second_half + word + norms
    )


def test_dropout_is_active_in_training_and_only_there(batch):
    model = make("dot", dropout=0.5)
    assert torch.equal(model(**batch), model(**batch))
    model.train()
    assert not torch.equal(model(**batch), model(**batch))


@for_each(
    ("change", "message"),
    [
        (
            {"hidden_dim": 7},
            (
                "hidden_dim is 7, but the encoder's two directions share it; choose an"
                " even number, e.g. 8"
            ),
        ),
        (
            {"attention": "cosine"},
            (
                "attention is 'cosine'; choose 'dot', 'bilinear', 'scaled', 'additive'"
                " or None"
            ),
        ),
        ({"embedding_dim": 0}, "embedding_dim is 0; it must be at least 1"),
        ({"dropout": 1.0}, "dropout is 1.0; it is a share, at least 0 and below 1"),
        (
            {"tie_output": True},
            "one matrix between embedding_dim 5 and hidden_dim 8; make them equal",
        ),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_in_words(change, message):
    with refusal(message):
        Seq2SeqConfig(**{**SIZES, **change})


def test_an_empty_sentence_is_refused_in_words(batch):
    with refusal("sentence 1 has length 0; every sentence needs at least one word"):
        make("dot")(batch["source_ids"], torch.tensor([4, 0, 1]), batch["target_ids"])
