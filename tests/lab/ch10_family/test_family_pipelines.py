"""What the pipelines of `transformers` say of our checkpoints is what our own `predict`
says."""

from functools import cache

import pytest
import torch

from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch08_finetuning.finetuning_runs import Variant, build_model
from course_lab.ch08_finetuning.finetuning_tasks import read_task
from course_lab.ch10_family import family_pipelines
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.wordpiece.fast import FastWordPiece

pytestmark = pytest.mark.slow
TINY = CHECKPOINTS / "tiny"


@cache
def trained(name):
    """A head on the shipped tiny checkpoint after a few steps: enough that it does not
    say the same of all."""
    task, tokenizer = read_task(name, "embedded"), FastWordPiece.load(TINY)
    examples = task.examples(task.train.sample(64, 0), tokenizer, 128)
    model = build_model(task, Variant("fine-tuned"), TINY, seed=0)
    finetune(
        model,
        examples,
        config=FineTuningConfig(epochs=2, learning_rate=1e-3, batch_size=16),
    )
    return task, model, tokenizer


def test_a_gap_is_filled_with_the_same_pieces_and_probabilities():
    texts = [
        "The function returns a [MASK] of strings.",
        "If the file does not [MASK], an error is raised.",
    ]
    for theirs, ours in family_pipelines.fill_mask(TINY, texts):
        assert [piece for piece, _ in theirs] == [piece for piece, _ in ours]
        assert [chance for _, chance in theirs] == pytest.approx(
            [chance for _, chance in ours], abs=1e-5
        )


def test_a_text_gets_the_same_class_and_probability(tmp_path):
    task, model, tokenizer = trained("pydocs-topic")
    found = family_pipelines.classify(model, tokenizer, tmp_path, task.test.inputs[:12])
    assert len({label for _, (label, _) in found}) > 1
    for theirs, ours in found:
        assert theirs[0] == ours[0]
        assert theirs[1] == pytest.approx(ours[1], abs=1e-5)


def test_each_word_gets_the_same_tag(tmp_path):
    task, model, tokenizer = trained("pydocs-tag")
    texts = [" ".join(words) for words in task.test.inputs[:6]]
    for theirs, ours in family_pipelines.tag(model, tokenizer, tmp_path, texts):
        assert theirs.keys() == ours.keys()
        for start, (label, chance) in ours.items():
            assert theirs[start][0] == label
            assert theirs[start][1] == pytest.approx(chance, abs=1e-5)


def test_a_question_gets_the_same_answer(tmp_path):
    task, model, tokenizer = trained("pydocs-span")
    found = family_pipelines.answer(model, tokenizer, tmp_path, task.test.inputs[:8])
    assert [theirs for theirs, _ in found] == [ours for _, ours in found]
    assert all(ours for _, ours in found)


def test_features_are_the_same_states():
    for theirs, ours in family_pipelines.features(
        TINY, ["Return the mean of an array.", "Short"]
    ):
        torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
