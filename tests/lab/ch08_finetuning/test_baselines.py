"""What fine-tuning has to beat: linear models of words and of frozen states."""

import random

import torch
from cases import for_each

from course_lab import stand_ins
from course_lab.ch08_finetuning.baselines import baseline_scores, reader_of
from course_lab.ch08_finetuning.finetuning_runs import Variant, _held_out
from course_lab.ch08_finetuning.finetuning_tasks import Rows, Task


def told(form, shuffled=False):
    """A task whose labels one word decides, or chance, and its two parts."""
    texts = [text.split() for text in stand_ins.sentences()]
    the = [int("the" in words) for words in texts]
    inputs = [" ".join(words) for words in texts]
    golds = the
    if form == "number":
        golds = [float(x) for x in the]
    if form == "choices":  # the ending that is the context again
        ends = [inputs[-1 - i : -4 - i : -1] for i in range(300)]
        golds = [i % 4 for i in range(300)]
        pairs = zip(inputs, ends, golds, strict=False)
        inputs = [(text, [*x[:gold], text, *x[gold:]]) for text, x, gold in pairs]
    if form == "tags":
        inputs = texts
        golds = [[int(word == "the") for word in words] for words in texts]
    if shuffled:
        random.Random(1).shuffle(golds)
    parts = [Rows(inputs[i : i + 150], golds[i : i + 150], []) for i in (0, 150)]
    labels = {"classes": ("0", "1"), "tags": ("O", "B-THE")}.get(form)
    name = "stsb" if form == "number" else "x"
    return Task(name, form, labels, *parts), *parts


METRIC = {
    "classes": "accuracy",
    "number": "pearson",
    "tags": "f1",
    "choices": "accuracy",
}


@for_each("form", METRIC)
@for_each(("use", "least"), [("words", 0.75), ("states", 0.35)])
def test_what_one_word_decides_is_learnt_and_shuffled_labels_are_not(form, use, least):
    reader = reader_of(stand_ins.checkpoint(), 32) if use == "states" else None
    metric = METRIC[form]
    score = baseline_scores(*told(form), reader)[metric]
    assert score > least
    if form != "tags":  # shuffled tags fit no sentence
        shuffled = baseline_scores(*told(form, shuffled=True), reader)[metric]
        assert shuffled < score - 0.1


def test_a_reader_reads_no_text_twice_and_padding_changes_nothing():
    reader = reader_of(stand_ins.checkpoint(), 32)
    short, long = sorted(stand_ins.sentences(), key=len)[
        :: len(stand_ins.sentences()) - 1
    ]
    both = torch.from_numpy(reader.states([short, long]))
    assert len({short, long} - set(reader.known)) == 0
    del reader.known[short], reader.known[long]
    alone = torch.from_numpy(reader.states([short]))
    torch.testing.assert_close(both[:1], alone, atol=1e-5, rtol=1e-5)
    assert long not in reader.known


def test_held_out_rows_are_others_than_those_that_all_variants_draw():
    rows = Rows(list("abcdefghij"), list(range(10)), [])
    for labels, number in ((4, 4), (None, 7)):
        drawn, held = _held_out(rows, Variant("words", labels, held=3), seed=5)
        assert drawn.inputs[:4] == rows.sample(4, 5).inputs
        assert (len(drawn.inputs), len(held.inputs)) == (number, 3)
        assert not set(drawn.inputs) & set(held.inputs)
