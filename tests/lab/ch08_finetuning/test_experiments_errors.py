"""What a recorded model gets wrong: counted by hand on given guesses, and recorded of a
model of a few rows."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from cases import for_each
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from expect import refusal
from tiny import tiny_bert, tiny_tokenizer

from course_lab import records
from course_lab.ch08_finetuning import (
    error_runs,
    few_rows,
    finetuning_plans,
    finetuning_tasks,
)
from course_lab.ch08_finetuning.error_card import calibration_table, card, example_table
from course_lab.ch08_finetuning.error_runs import Judged, calibrate, calibrations, judge
from course_lab.ch08_finetuning.finetuning_runs import Variant
from course_lab.ch08_finetuning.finetuning_tasks import Rows, Task
from course_lib.bert.files import save_bert
from course_lib.bert.model import BertModel
from course_lib.finetuning.finetune import (
    FineTuningConfig,
    SequenceClassifier,
    TokenClassifier,
    predict,
)
from course_lib.metrics.errors import apply_temperature, calibration, fit_temperature
from course_tools.record_command import ExperimentError, record_experiment

WORDS = "jim hen ##son was a film good bad rome ."
TOKENIZER = tiny_tokenizer(WORDS)
CONFIG = tiny_bert(
    vocab_size=len(TOKENIZER), intermediate_size=14, max_position_embeddings=48
)


def test_the_surest_mistake_of_each_class_is_shown_and_all_are_counted():
    table = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.6, 0.4], [0.75, 0.25]])
    judged = Judged(table, golds=[0, 0, 0, 1, 1], of=[0, 1, 2, 3, 4])
    found = error_runs.mistakes_of_classes(
        judged, Rows(list("vwxyz"), judged.golds, []), ["bad", "good"], 1
    )
    assert found["kinds"] == {"bad taken for good": 2, "good taken for bad": 2}
    assert found["confusion"]["counts"] == [[1, 2], [2, 0]]
    assert [
        (x["input"], x["gold"], x["guess"], x["probability"]) for x in found["examples"]
    ] == [("x", "bad", "good", 0.8), ("z", "good", "bad", 0.75)]


def test_tags_are_counted_by_type_and_entities_by_their_mistake():
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    rows = Rows(
        [["jim", "henson", "was", "in", "rome"], ["a", "film"]],
        [[1, 2, 0, 0, 3], [0, 0]],
        [],
    )
    guesses = [["B-PER", "O", "O", "O", "B-PER"], ["O", "B-LOC"]]
    table = np.eye(5)[[labels.index(tag) for tags in guesses for tag in tags]]
    found = error_runs.mistakes_of_tags(
        Judged(table, [1, 2, 0, 0, 3, 0, 0], [0] * 5 + [1] * 2),
        guesses,
        rows,
        labels,
        1,
    )
    assert found["confusion"] == {
        "labels": ["O", "PER", "LOC"],
        "counts": [[3, 0, 1], [1, 1, 0], [0, 1, 0]],
    }
    assert found["kinds"] == {
        "right": 0,
        "type": 1,
        "borders": 1,
        "type and borders": 0,
        "missed": 0,
        "invented": 1,
    }
    assert found["examples"] == [
        {
            "kind": "type",
            "input": "jim henson was in rome",
            "gold": "LOC: rome",
            "guess": "PER: rome",
        },
        {
            "kind": "borders",
            "input": "jim henson was in rome",
            "gold": "PER: jim henson",
            "guess": "PER: jim",
        },
        {"kind": "invented", "input": "a film", "gold": "", "guess": "LOC: film"},
    ]


class Said(NamedTuple):
    text: str
    probability: float


def test_answers_are_counted_by_kind_and_the_surest_is_shown():
    rows = Rows(
        [("who", "x"), ("what", "x"), ("where", "x")],
        [["Jim"], ["a film", "film"], ["Rome"]],
        [],
    )
    found = error_runs.mistakes_of_spans(
        [Said("Jim was", 0.4), Said("film", 0.9), Said("in Rome", 0.6)], rows, 1
    )
    assert {kind: n for kind, n in found["kinds"].items() if n} == {
        "right": 1,
        "too long": 2,
    }
    assert found["examples"] == [
        {
            "kind": "too long",
            "input": "where",
            "gold": "Rome",
            "guess": "in Rome",
            "probability": 0.6,
        }
    ]
    assert found["calibration"]["as trained"]["error"] == pytest.approx(
        (0.4 + 0.6 + 0.1) / 3
    )


def test_no_guess_is_judged_by_a_temperature_that_it_had_a_part_in():
    """Inputs 0 and 2 are right three times of four, 1 and 3 every other time; each half
    has the other's temperature."""
    table, of = np.array([[0.9, 0.1]] * 16), [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    golds = [0, 0, 0, 1, 0, 1, 0, 1] * 2
    found = calibrate(Judged(table, golds, of), bins=10)
    of_even, of_odd = (
        fit_temperature(table[:8], golds)
        for golds in ([0, 0, 0, 1] * 2, [0, 1, 0, 1] * 2)
    )
    assert found["temperatures"] == pytest.approx([of_odd, of_even], rel=1e-6)
    cooled = np.concatenate(
        [apply_temperature(table[:4], of_odd), apply_temperature(table[:4], of_even)]
        * 2
    )
    assert found["calibration"]["with a temperature"]["error"] == pytest.approx(
        calibration(cooled.tolist(), golds).error
    )
    assert found["calibration"]["as trained"]["error"] == pytest.approx(0.9 - 10 / 16)


@pytest.mark.parametrize("kind", [SequenceClassifier, TokenClassifier])
def test_what_is_judged_is_what_predict_says(kind):
    """Words of several pieces, sentences of several lengths: the guess at each word is
    that of `predict`."""
    torch.manual_seed(1)
    model = kind(CONFIG, ["O", "B-PER", "I-PER"])
    sentences = [["jim", "henson", "was", "good"], ["a", "film"], ["henson"]]
    golds = [[1, 2, 0, 0], [0, 0], [1]]
    form = "tags" if kind is TokenClassifier else "classes"
    if form == "tags":
        rows = Rows(sentences, golds, [])
        told = [
            (x.label, x.probability)
            for words in predict(model, TOKENIZER, sentences)
            for x in words
        ]
    else:
        rows = Rows([" ".join(words) for words in sentences], [2, 0, 1], [])
        told = [
            (x.label, max(x.probabilities))
            for x in predict(model, TOKENIZER, rows.inputs)
        ]
    task = Task("made", form, model.labels, rows, rows)
    judged = judge(model, task.examples(rows, TOKENIZER, 32), batch_size=2)
    assert [model.labels[x] for x in judged.probabilities.argmax(axis=1)] == [
        label for label, _ in told
    ]
    assert judged.probabilities.max(axis=1).tolist() == pytest.approx(
        [share for _, share in told], abs=1e-6
    )
    assert judged.golds == ([1, 2, 0, 0, 0, 0, 1] if form == "tags" else [2, 0, 1])
    assert judged.of == ([0] * 4 + [1] * 2 + [2] if form == "tags" else [0, 1, 2])


TAGGED = Dataset.from_dict(
    {
        "tokens": [["jim", "henson", "was", "good"], ["a", "film"]] * 4,
        "ner_tags": [[1, 2, 0, 0], [0, 0]] * 4,
    },
    features=Features(
        {
            "tokens": List(Value("string")),
            "ner_tags": List(ClassLabel(names=["O", "B-PER", "I-PER"])),
        }
    ),
)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A tagger's mistakes, recorded by the command."""
    torch.manual_seed(0)
    save_bert(BertModel(CONFIG), tmp_path / "mini", TOKENIZER)
    variant = Variant("fine-tuned", 3, FineTuningConfig(steps=3))
    plan = finetuning_plans.study_of("wnut17", "wnut17", {"fine-tuned, 3": variant}, 32)
    study = error_runs.study_of(plan, "fine-tuned, 3", shown=1)
    monkeypatch.setitem(error_runs.STUDIES, "wnut17", study)
    monkeypatch.setitem(finetuning_plans.PLANS, "wnut17", plan)
    monkeypatch.setattr(finetuning_plans, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")

    def load(name, source):
        return DatasetDict(dict.fromkeys(("train", "test"), TAGGED))

    monkeypatch.setattr(finetuning_tasks, "load", load)
    monkeypatch.setattr(records, "load_data", load)
    return lambda name="errors": record_experiment(
        name, "wnut17", None, [], [0], None, str(tmp_path / "mini")
    )


def test_a_model_is_trained_once_and_its_mistakes_and_its_card_are_recorded(
    recorded, tmp_path
):
    path = recorded()
    record = records.load("errors-wnut17", path.parent)
    [result] = record.results
    assert record.command == "course record errors --data wnut17 --checkpoint mini"
    study = error_runs.STUDIES["wnut17"]
    assert study.recorded(record.configuration) == study
    assert (result["variant"], result["rows"]) == ("mini, fine-tuned, 3", 8)
    assert sum(map(sum, result["confusion"]["counts"])) == 4 * 6, "every word once"
    assert (
        sum(
            result["kinds"][kind]
            for kind in ("right", "type", "borders", "type and borders", "missed")
        )
        == 4
    )
    assert calibrations(result).keys() == {"as trained", "with a temperature"}
    page = (tmp_path / "kept" / "wnut17-mini-fine-tuned-3" / "README.md").read_text()
    assert page == card(record, result)
    assert "| trained on | wnut17, 3 rows, 3 steps in batches of 32 |" in page
    assert calibration_table(result) in page
    assert example_table(result) in page
    assert str(tmp_path) not in page
    before = path.read_text()
    assert recorded().read_text() == before, "kept, not measured again"


def test_the_model_that_finetuning_kept_is_used_if_it_is_the_one_that_is_recorded(
    recorded, tmp_path, monkeypatch
):
    recorded("finetuning")
    train = error_runs.run_variant

    def for_the_probe(task, *rest):
        assert len(task.test.inputs) == few_rows.ROWS, "only the probe trains anew"
        return train(task, *rest)

    monkeypatch.setattr(error_runs, "run_variant", for_the_probe)
    path = recorded()
    path.unlink()
    record = records.load("finetuning-wnut17", path.parent)
    record.results[0]["scores"]["f1"] += 0.1
    records.save(record, path.parent)
    with refusal(
        r"wnut17-mini-fine-tuned-3 scores .* its record .*; remove it", ExperimentError
    ):
        recorded()


@for_each(
    ("words", "expected"),
    [
        (("rte", None, [], [0], None, "x"), "errors has no study 'rte'; it has: sst2"),
        (("sst2", None, [], [0], 5, "x"), "trains nothing for a number of steps"),
        (("sst2", None, [], [1], None, "x"), r"runs with seed \(0,\) alone"),
        (
            ("sst2", None, ["frozen"], [0], None, "x"),
            "errors-sst2 has no variant 'frozen'",
        ),
        (("sst2", None, [], [0]), "needs --checkpoint"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(words, expected):
    with refusal(expected, ExperimentError):
        record_experiment("errors", *words)


def test_a_form_whose_mistakes_are_not_told_apart_is_refused():
    rows = Rows(["a", "film"], [1.0, 2.0], [])
    task = Task("stsb", "number", None, rows, rows)
    with pytest.raises(ValueError, match="mistakes in number are not told apart"):
        error_runs.examine(task, SequenceClassifier(CONFIG, 1), TOKENIZER, rows, 32)
