"""A class from the mean of all states: what it computes, that padding has no part in
it, and that it can be kept."""

import warnings

import torch
from expect import assert_near
from task_peer import CONFIG, TaskInputs
from tiny import tiny_bert

from course_lib.finetuning.examples import Example
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.finetuning.heads import SequenceClassifier
from course_lib.sentence_bert.model import SentenceClassifier

LABELS = ["neutral", "good", "bad", "mixed"]


def classifier(config=CONFIG, seed=3):
    torch.manual_seed(seed)
    return SentenceClassifier(config, LABELS).double().eval()


def test_logits_are_the_layer_s_on_the_mean_of_all_states():
    model, inputs = classifier(), TaskInputs("classes").inputs()
    hidden = model.bert(**inputs).last_hidden_state
    for row, mask in enumerate(inputs["attention_mask"]):
        mean = hidden[row, mask].mean(dim=0)
        expected = model.classifier.weight @ mean + model.classifier.bias
        assert_near(model(**inputs)[row], expected, 1e-14, 1e-12)


def test_what_stands_on_padding_changes_nothing():
    model, inputs = classifier(), TaskInputs("classes").inputs()
    other = inputs | {
        "input_ids": torch.where(inputs["attention_mask"], inputs["input_ids"], 7)
    }
    assert not torch.equal(other["input_ids"], inputs["input_ids"])
    assert_near(model(**other), model(**inputs), 1e-14, 1e-12)


def test_it_learns_what_stands_anywhere_but_first():
    """The class is the second token's: four sentences of each class, all right after a
    few steps."""
    steady = tiny_bert(
        vocab_size=17,
        num_hidden_layers=1,
        intermediate_size=14,
        max_position_embeddings=7,
    )
    examples = [
        Example([([2, 5 + 3 * (label % 4), 4, 3], [0] * 4)], label)
        for label in (0, 1, 2, 3)
    ] * 4
    model = classifier(steady).float()
    history = finetune(
        model,
        examples,
        examples,
        FineTuningConfig(steps=60, batch_size=16, learning_rate=0.02, progress=False),
    )
    assert history.metrics["accuracy"][-1] == 1.0


def test_it_comes_back_from_its_folder_with_its_labels(tmp_path):
    model, inputs = classifier(), TaskInputs("classes").inputs()
    model.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = SentenceClassifier.from_pretrained(tmp_path, dtype=torch.float64)
    assert again.labels == tuple(LABELS)
    assert_near(again(**inputs), model(**inputs), 0)


def test_its_head_is_not_taken_for_one_on_the_first_token(tmp_path):
    classifier().save_pretrained(tmp_path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        other = SequenceClassifier.from_pretrained(tmp_path, labels=LABELS)
    assert any(
        "the head of this SequenceClassifier are new" in str(one.message)
        for one in said
    )
    assert not torch.equal(
        other.classifier.weight, classifier().classifier.weight.float()
    )
