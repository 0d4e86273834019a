"""Siamese training: sentences are read one by one, the encoder is shared, each
objective does its work."""

import pytest
import torch
from cases import for_each
from expect import refusal
from sentence_peer import SENTENCES, encoder

from course_lib.finetuning.examples import collate
from course_lib.finetuning.finetune import FineTuningConfig, evaluate, rate_factors
from course_lib.sentence_bert.losses import (
    CosineObjective,
    InBatchObjective,
    SoftmaxObjective,
    TripletObjective,
)
from course_lib.sentence_bert.model import SentenceBert
from course_lib.sentence_bert.training import (
    SiameseBert,
    sentence_examples,
    train_sentences,
)

PAIRS = [
    ("a film", "who was a good puppeter?"),
    ("bad", "a"),
    ("jim", "good film"),
    ("what", "was bad"),
]
TRIPLETS = [
    (*pair, other)
    for pair, other in zip(PAIRS, ["Henson", "good", "a", "puppet film"], strict=True)
]
CONFIG = FineTuningConfig(steps=30, batch_size=4, learning_rate=5e-3, progress=False)


def calm(**settings):
    """Without dropout, so that training and looking see the same vectors."""
    model = encoder(**settings)
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    return model


def vectors_of(model, row):
    """Each sentence by itself, straight from the definition."""
    return torch.stack([model.encode([sentence])[0] for sentence in row])


@pytest.mark.parametrize(
    "settings", [{}, {"pooling": "max", "normalize": True}, {"pooling": "cls"}]
)
def test_each_sentence_of_an_example_is_read_as_if_alone(settings):
    model = encoder(**settings)
    siamese = SiameseBert(model, TripletObjective()).eval()
    batch = collate(sentence_examples(TRIPLETS, None, model))
    assert batch.attention_mask is not None, "sentences differ in length"
    with torch.no_grad():
        found = siamese(batch.input_ids, batch.attention_mask, batch.token_type_ids)
    expected = torch.stack([vectors_of(model, row) for row in TRIPLETS])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_an_evaluation_is_the_mean_of_the_objective_over_examples():
    model, scores = encoder(), [0.9, 0.1, 0.4, 0.7]
    expected = [
        (torch.cosine_similarity(*vectors_of(model, row), dim=0).item() - score) ** 2
        for row, score in zip(PAIRS, scores, strict=True)
    ]
    figures = evaluate(
        SiameseBert(model, CosineObjective()),
        sentence_examples(PAIRS, scores, model),
        batch_size=3,
    )
    assert figures == {"loss": pytest.approx(sum(expected) / 4, abs=1e-6)}


def test_the_encoder_itself_is_trained_and_is_in_a_checkpoint_once():
    model = encoder()
    siamese = SiameseBert(model, SoftmaxObjective(15, 3))
    assert siamese.bert is model.bert
    assert {name.split(".")[0] for name in siamese.state_dict()} == {
        "bert",
        "objective",
    }
    assert sum(name.endswith("token.weight") for name in siamese.state_dict()) == 1
    factors = rate_factors(siamese, FineTuningConfig(frozen="encoder"))
    assert {name for name, factor in factors.items() if factor} == {
        "objective.classifier.weight",
        "objective.classifier.bias",
    }


@for_each(
    ("objective", "rows", "labels"),
    [
        (lambda: SoftmaxObjective(15, ["same", "near", "other"]), PAIRS, [0, 1, 2, 0]),
        (CosineObjective, PAIRS, [0.9, 0.1, 0.4, 0.7]),
        (lambda: TripletObjective(margin=2.0), TRIPLETS, None),
        (InBatchObjective, PAIRS, None),
        (lambda: InBatchObjective(both_ways=True), TRIPLETS, None),
    ],
)
def test_every_objective_trains_the_encoder_to_do_what_it_asks(objective, rows, labels):
    torch.manual_seed(3)
    model = calm()
    before = model.encode(SENTENCES)
    examples = sentence_examples(rows, labels, model)
    history = train_sentences(model, objective(), examples, examples, CONFIG)
    assert history.losses[-1] < history.losses[0] / 4
    assert history.metrics["loss"][-1] < history.losses[0] / 4
    assert (model.encode(SENTENCES) - before).norm() > 0.1
    assert not model.training
    if "accuracy" in history.metrics:
        assert history.metrics["accuracy"][-1] == 1.0


def test_vectors_of_length_one_are_trained_as_such():
    """A negative no farther than 2 from anything: a margin of 3 can never be met."""
    model = calm(normalize=True)
    examples = sentence_examples(TRIPLETS, None, model)
    assert (
        train_sentences(
            model, TripletObjective(margin=3.0), examples, config=CONFIG
        ).losses[-1]
        > 1.0
    )


def test_a_score_is_given_the_model_between_steps():
    model = calm()
    seen = []

    def score(siamese):
        seen.append(siamese.sentences is model)
        return {"norm": siamese.sentences.encode(["bad"]).norm().item()}

    history = train_sentences(
        model,
        InBatchObjective(),
        sentence_examples(PAIRS, None, model),
        None,
        CONFIG,
        score,
    )
    assert len(seen) > 0
    assert all(seen)
    assert len(set(history.metrics["norm"])) == len(seen)


def test_what_was_trained_is_kept_as_a_sentence_encoder(tmp_path):
    model = calm(normalize=True, max_length=9)
    siamese = SiameseBert(model, SoftmaxObjective(15, 2))
    siamese.save_pretrained(tmp_path)
    back = SentenceBert.from_pretrained(tmp_path)
    assert torch.equal(back.encode(SENTENCES), model.encode(SENTENCES))
    with refusal("an objective is not kept"):
        SiameseBert.from_pretrained(tmp_path)
    with refusal("has a tokenizer of its own"):
        siamese.save_pretrained(tmp_path, encoder().tokenizer.load(tmp_path))


def test_sentences_of_an_example_are_cut_where_the_model_cuts():
    model = encoder(max_length=5)
    [example] = sentence_examples([("a film was bad, was bad", "a")], None, model)
    assert [len(ids) for ids, _ in example.rows] == [5, 3]
    assert all(segments == [0] * len(ids) for ids, segments in example.rows)


def test_examples_that_do_not_fit_are_refused():
    model = encoder()
    with refusal("4 rows but 3 labels"):
        sentence_examples(PAIRS, [1, 0, 1], model)
    with refusal(r"rows have \[2, 3\] sentences"):
        sentence_examples([PAIRS[0], TRIPLETS[0]], None, model)
    with refusal(r"rows have \[1\] sentences"):
        sentence_examples([("a",)], None, model)
    with refusal("a row is one string"):
        sentence_examples(["ab", "cd"], None, model)
    with refusal("an example has 2 sentences, but a TripletObjective compares 3"):
        train_sentences(
            model,
            TripletObjective(),
            sentence_examples(PAIRS, None, model),
            config=CONFIG,
        )
    pairs = sentence_examples(PAIRS, [1.0] * 4, model)
    triplets = sentence_examples(TRIPLETS, None, model)
    with refusal("an example has 3 sentences, but a CosineObjective compares 2"):
        train_sentences(model, CosineObjective(), pairs, triplets, CONFIG)
