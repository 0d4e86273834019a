"""The features pipeline: each step by hand, padding that changes nothing, a test part
that nothing is learnt from."""

import random

import numpy as np
import pytest
import torch
from task_peer import CONFIG
from tiny import tiny_tokenizer
from whole import whole_only

from course_lab import stand_ins
from course_lab.ch08_finetuning.features import (
    WAYS,
    Way,
    classify,
    compare_features,
    majority,
    pad_ids,
    read_features,
    whole_sentences,
)
from course_lab.ch08_finetuning.review_notebook import cls_states
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertModel
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

TOKENIZER = tiny_tokenizer(
    "a visually stunning rumi ##nation on love good bad film . it is", WordPiece
)
SENTENCE = "a visually stunning rumination on love"
SENTENCES = ["a film", SENTENCE, "good", "it is a bad bad film.", "love"]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    # in training mode, with much dropout: reading must not depend on it
    return BertModel(CONFIG)


def test_the_mask_tells_padding_from_a_token_with_the_same_id():
    padded = pad_ids([[2, 0, 7], [2]], pad_id=0)
    assert padded.input_ids.tolist() == [[2, 0, 7], [2, 0, 0]]
    assert padded.attention_mask.tolist() == [[True, True, True], [True, False, False]]
    assert pad_ids([[1, 2], [3]], pad_id=9).input_ids.tolist() == [[1, 2], [3, 9]]


@pytest.mark.parametrize(
    "way", [Way("last", "first"), Way("second_to_last", "mean"), Way("sum", "first")]
)
def test_rows_are_those_of_each_sentence_alone_in_their_order(model, way):
    """Whatever is read together, and in training mode too; by hand from the states."""
    found = read_features(model.train(), TOKENIZER, SENTENCES, way, batch_size=2)
    assert model.training
    model.eval()
    for sentence, row in zip(SENTENCES, found, strict=True):
        ids = torch.tensor([TOKENIZER.encode(sentence).ids])
        layers = model(ids, return_hidden_states=True).hidden_states
        states = {
            "last": layers[2],
            "second_to_last": layers[1],
            "sum": layers[1] + layers[2],
        }[way.layers][0]
        expected = states[0] if way.pool == "first" else states.mean(dim=0)
        np.testing.assert_allclose(row, expected.detach().numpy(), rtol=0, atol=1e-5)


def test_batches_of_any_size_give_the_same_rows(model):
    one, all_together = (
        read_features(model, TOKENIZER, SENTENCES, batch_size=size) for size in (1, 5)
    )
    np.testing.assert_allclose(one, all_together, rtol=0, atol=1e-5)
    assert one.shape == (5, 15)


def test_long_sentences_are_cut_to_what_the_model_can_read(model):
    """19 positions: [CLS], 17 pieces, [SEP]."""
    long, cut = " ".join(["bad"] * 40), " ".join(["bad"] * 17)
    np.testing.assert_allclose(
        *(read_features(model, TOKENIZER, [text]) for text in (long, cut)),
        rtol=0,
        atol=1e-6,
    )


def test_the_model_is_not_trained(model):
    before = [parameter.clone() for parameter in model.parameters()]
    read_features(model, TOKENIZER, SENTENCES)
    assert all(
        torch.equal(x, y) and x.grad is None
        for x, y in zip(model.parameters(), before, strict=True)
    )


def blobs(count, seed, scale=1.0):
    """Two classes that differ in the first of 6 features; the others are noise, of
    other sizes."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    rows = generator.normal(size=(count, 6)) * [1, 100, 0.01, 1, 1, 1]
    rows[:, 0] += 3 * labels
    return (rows * scale).astype(np.float32), labels.tolist()


def test_a_classifier_finds_what_can_be_found_and_no_more():
    """The best possible is Φ(1.5) = 93.3%, the normal distribution's."""
    found = classify(*blobs(1500, 1), *blobs(4000, 2), strengths=[0.1])
    assert found.accuracy == pytest.approx(0.933, abs=0.012)
    assert len(found.folds) == 5
    assert found.cross_validated.mean == pytest.approx(found.accuracy, abs=0.03)
    rows, labels = blobs(4000, 2)
    assert np.mean(np.array(found.guesses) == labels) == found.accuracy
    shuffled = random.Random(0).sample(labels, len(labels))
    assert classify(
        *blobs(1500, 1), rows, shuffled, strengths=[0.1]
    ).accuracy == pytest.approx(0.5, abs=0.03)


def test_the_test_part_takes_no_part_in_standardising_choosing_or_fitting():
    """The same test rows, in the company of others of another size and class, get the
    same guesses."""
    train, labels = blobs(300, 3)
    rows, golds = blobs(50, 4)
    strange, of_strange = blobs(200, 5, scale=1000.0)
    strengths = [0.01, 1.0]
    alone = classify(train, labels, rows, golds, strengths)
    together = classify(
        train,
        labels,
        np.concatenate([rows, strange]),
        golds + [1 - x for x in of_strange],
        strengths,
    )
    assert together.guesses[:50] == alone.guesses
    assert (together.strength, together.folds) == (alone.strength, alone.folds)


def test_c_is_the_smallest_whose_folds_are_within_one_standard_error_of_the_best():
    """Noise in 80 features for 60 rows, so that the choice matters; Hastie et al. 2009,
    section 7.10."""
    generator = np.random.default_rng(3)
    drawn = generator.integers(0, 2, 60)
    noisy = generator.normal(size=(60, 80)) + 0.25 * drawn[:, None]
    labels = drawn.tolist()
    strengths = (1e-5, 1e-4, 1e-3, 1e-2, 1.0)
    alone = {
        c: classify(noisy, labels, noisy, labels, strengths=[c]) for c in strengths
    }
    means = {c: np.mean(found.folds) for c, found in alone.items()}
    best = max(strengths, key=means.get)
    error = np.std(alone[best].folds, ddof=1) / np.sqrt(5)
    expected = min(c for c in strengths if means[c] >= means[best] - error)
    found = classify(noisy, labels, noisy, labels, strengths=strengths[::-1])
    assert found.strength == expected
    assert found.folds == alone[expected].folds
    assert strengths[0] < expected < best, "neither the smallest of all nor the best"


def test_words_can_be_counted_instead():
    good = ["good film", "a good love", "it is good"] * 4
    bad = ["bad film", "a bad love", "it is bad"] * 4
    found = classify(
        good + bad,
        [1] * 12 + [0] * 12,
        ["good rumination", "bad rumination"],
        [1, 0],
        strengths=[10.0],
    )
    assert found.accuracy == 1


def test_the_majority_is_that_of_the_training_part():
    assert majority([1, 1, 0], [0, 0, 0, 1]) == 0.25


def test_a_model_is_compared_with_its_controls(model):
    sentences, labels = SENTENCES * 6, [0, 1, 1, 0, 1] * 6
    found = compare_features(
        model, TOKENIZER, (sentences, labels), (SENTENCES, labels[:5]), WAYS[1:2]
    )
    assert list(found) == ["last, mean", "untrained, last, mean", "words"]
    assert found["words"].accuracy == 1


def test_whole_sentences_are_told_from_phrases():
    assert whole_sentences(
        ["a film", "it is a good film .", "is it ?", "love it or leave it !", "good ."]
    ) == [1, 3]


def test_what_cannot_be_pooled_or_padded_is_refused(model):
    with pytest.raises(ValueError, match="there is no sentence to pad"):
        pad_ids([])
    with pytest.raises(ValueError, match="pool is 'max'; choose one of first, mean"):
        read_features(model, TOKENIZER, SENTENCES, Way("last", "max"))


@whole_only
@pytest.mark.slow
@pytest.mark.real_data
def test_frozen_features_of_a_published_model_tell_good_reviews_from_bad(real_data):
    """2,000 sentences of SST-2 to fit and choose on, its 872 validation sentences to
    test on."""
    from course_lib.data import load

    folder = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if (
        not (folder / "model.safetensors").is_file()
        or not (real_data / "sst2").is_dir()
    ):
        pytest.skip(
            f"no published weights or no sst2: {folder.parent.name}/{folder.name}"
            f" beside {real_data.name}/sst2"
        )
    data = load("sst2", real_data)
    whole = whole_sentences(data["train"]["sentence"][:])
    train = data["train"].select(random.Random(0).sample(whole, 2000))
    parts = [
        (part["sentence"][:], part["label"][:]) for part in (train, data["validation"])
    ]
    model, tokenizer = load_bert(folder), FastWordPiece.load(folder)
    rows = [
        read_features(model, tokenizer, sentences, Way("concat_last_4", "mean"))
        for sentences, _ in parts
    ]
    found = classify(rows[0], parts[0][1], rows[1], parts[1][1])
    assert found.accuracy >= 0.80
    assert majority(parts[0][1], parts[1][1]) < 0.52


def test_the_notebooks_features_depend_on_other_reviews_without_the_mask_alone():
    """The longest review decides how far all are padded."""
    folder = stand_ins.checkpoint()
    encoder, tokenizer = load_bert(folder).eval(), FastWordPiece.load(folder)
    texts = [text for text in stand_ins.sentences() if len(text.split()) == 4][:3]
    longer = [*texts, " ".join(stand_ins.sentences()[:4])]
    for masked, moves in ((True, False), (False, True)):
        alone = cls_states(encoder, tokenizer, texts, masked)
        together = cls_states(encoder, tokenizer, longer, masked)[:3]
        assert (np.abs(alone - together).max() > 1e-4) == moves
