"""Controls of the recorded experiments, at the size of their probes: what is trained
beats what is not, and shuffled labels give chance."""

import random
from dataclasses import replace

import pytest
from cases import for_each
from whole import some

from course_lab import probes, stand_ins
from course_lab.ch08_finetuning.finetuning_tasks import Rows, Task
from course_lab.probing import figures, probing
from course_lab.study import shortened

#: A variant of each experiment that trains, steps, and a figure of rows that it did not
#: see which gets smaller. What "errors" trains is a variant of "finetuning"; "layers"
#: trains no model.
TRAINED = [
    ("seq2seq-multi30k", "dot", 15, None),
    ("transformer-short", "Transformer", 15, None),
    ("pretraining-two-worlds", "as live", 15, "scores/mlm_loss"),
    ("contexts-stories", "GPT", 12, None),
    ("contexts-stories", "ELMo", 12, None),
    ("finetuning-stsb", "fine-tuned, 1000", 20, None),
    ("finetuning-wnut17", "fine-tuned, 1000", 20, None),
    ("finetuning-squad", "fine-tuned, 600", 20, None),
    ("sentences-nli", "scores", 12, None),
    ("sentences-nli", "pairs", 12, None),
    ("family-ends", "DistilBERT", 12, "scores/mlm_loss"),
    ("family-pydocs-pair", "late interaction", 12, None),
    ("family-prompts", "fine-tuned", 12, None),
    ("encoders-stories", "ModernBERT", 12, "scores/up to 64/mlm_loss"),
    ("encoders-similarity", "SimCSE", 40, None),
    ("encoders-pydocs-pair", "sparse", 12, None),
    ("encoders-translation", "both languages", 12, None),
    ("encoders-adapting", "LoRA 4, 80", 20, None),
]


def run(name, variant, steps, inputs=None, **others):
    """The losses of a run of the probe's size, and what it found."""
    study = probes.study_of(name)
    with probing() as losses:
        short, read = study.probe(study, variant)
        del losses[:]
        longer = replace(
            short,
            variants=shortened(short.variants, steps, **others),
            shared=shortened(short.shared, steps, **others),
        )
        read = read if inputs is None else inputs(read)
        found = longer.run(longer, variant, 0, read)
    return losses, figures(found, [])


@pytest.mark.slow
@for_each("name variant steps figure", some(*TRAINED))
def test_a_trained_model_beats_the_same_untrained(name, variant, steps, figure):
    """On the batches that both read last; the other's learning rate is next to 0."""
    losses, found = run(name, variant, steps)
    others, untrained = run(name, variant, steps, learning_rate=1e-12)
    assert len(losses) == len(others) >= steps
    last = len(losses) // 4
    assert sum(losses[-last:]) < 0.95 * sum(others[-last:])
    if figure is not None:
        assert found[figure] < untrained[figure] - 0.5


@pytest.mark.slow
def test_a_fine_tuned_model_learns_the_labels_and_shuffled_ones_are_chance():
    """Whether a sentence has "the" in it."""

    def labelled(shuffled):
        texts = list(stand_ins.sentences())
        golds = [int("the" in text.split()) for text in texts]
        train, test = (
            Rows(texts[i:j], golds[i:j], []) for i, j in ((0, 200), (200, 400))
        )
        if shuffled:
            random.Random(1).shuffle(train.golds)
        task = Task("sst2", "classes", ("0", "1"), train, test)
        return lambda read: read._replace(task=task, tested=test)

    more = {"batch_size": 32, "learning_rate": 1e-3}
    accuracy = {
        shuffled: run(
            "finetuning-sst2", "fine-tuned, all", 90, labelled(shuffled), **more
        )[1]["scores/accuracy"]
        for shuffled in (False, True)
    }
    assert accuracy[False] > 0.7
    assert accuracy[True] < 0.63, "chance: 54% have it"
