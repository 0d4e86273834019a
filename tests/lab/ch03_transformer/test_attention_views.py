"""What the explorer shows of a Transformer: each weight stands at its layer, its head
and its two words."""

import pytest
import torch

from course_lab.ch01_seq2seq import seq2seq
from course_lab.ch01_seq2seq.text import collate, encode_pairs, train_tokenizer
from course_lab.ch03_transformer.attention_views import (
    CROSS,
    DECODER,
    ENCODER,
    attention_maps,
    attention_views,
)
from course_lib.figures.explorer import attention_explorer

TEXT = {
    "en": ["the cat sat", "it was too long here", "a cat"],
    "fr": ["le chat était assis", "il était long", "un chat"],
}
SIZES = {"dim": 12, "num_heads": 3, "num_layers": 2, "hidden_dim": 20}


@pytest.fixture(scope="module")
def corpus():
    tokenizers = (
        train_tokenizer(TEXT["en"], "word"),
        train_tokenizer(TEXT["fr"], "word"),
    )
    return seq2seq.Corpus(
        {"test": TEXT},
        {"test": encode_pairs(TEXT["en"], TEXT["fr"], tokenizers)},
        tokenizers,
    )


def test_each_sentence_has_its_three_kinds_with_the_words_and_weights_of_the_model(
    corpus,
):
    model = seq2seq.build(
        seq2seq.Recipe("translation", transformer=SIZES), corpus, "transformer", seed=2
    )
    views = attention_views(model, corpus, [1, 0])
    assert [view.sentence for view in views] == [TEXT["en"][1]] * 3 + [
        TEXT["en"][0]
    ] * 3
    assert [view.kind for view in views] == [ENCODER, DECODER, CROSS] * 2
    source, target = TEXT["en"][1].split(), TEXT["fr"][1].split()
    encoder, decoder, cross = views[:3]
    assert (encoder.query_words, encoder.key_words) == (source, source)
    assert (decoder.query_words, decoder.key_words) == (
        ["<bos>", *target],
        ["<bos>", *target],
    )
    assert (cross.query_words, cross.key_words) == ([*target, "<eos>"], source)
    assert (cross.query_language, cross.key_language) == ("fr", "en")

    batch = collate([corpus.pairs["test"][1]])
    with torch.no_grad():
        maps = attention_maps(model, batch)
    for view, layers in zip(
        views[:3], (maps.encoder, maps.decoder, maps.cross), strict=True
    ):
        for layer, table in enumerate(layers):
            torch.testing.assert_close(
                torch.from_numpy(view.values()[layer]), table[0].double()
            )
    assert decoder.values()[:, :, 0, 1:].max() == 0, "the first word sees itself alone"
    assert repr(attention_explorer(views)).startswith(
        "Attention explorer: 2 sentences, encoder"
    )


def test_dropout_is_off_whatever_state_the_model_was_in(corpus):
    recipe = seq2seq.Recipe("translation", transformer={**SIZES, "dropout": 0.5})
    model = seq2seq.build(recipe, corpus, "transformer", seed=2).train()
    first, second = (attention_views(model, corpus, [2])[2].values() for _ in range(2))
    assert (first == second).all()
