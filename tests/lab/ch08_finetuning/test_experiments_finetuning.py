"""Data sets as tasks, and recorded runs of all ways of using a checkpoint; on tables of
a few rows."""

import json

import pytest
import torch
from cases import for_each
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from expect import assert_near, refusal
from safetensors.torch import load_file
from tiny import tiny_bert, tiny_tokenizer

from course_lab import records
from course_lab.ch08_finetuning import (
    finetuning_plans,
    finetuning_runs,
    finetuning_tasks,
)
from course_lab.ch08_finetuning.finetuning_plans import PLANS, study_of
from course_lab.ch08_finetuning.finetuning_runs import Variant, build_model
from course_lab.ch08_finetuning.finetuning_tasks import SPECS, Task, read_task
from course_lib.bert.files import save_bert
from course_lib.bert.model import BertModel
from course_lib.data.data_set import as_squad, of_endings
from course_lib.finetuning.finetune import FineTuningConfig, evaluate
from course_lib.sentence_bert.model import SentenceClassifier
from course_tools.record_command import ExperimentError, record_experiment

TEXT = Value("string")
WORDS = "jim hen ##son was a puppet ##er who what . film good bad in rome"
TOKENIZER = tiny_tokenizer(WORDS)


def table(features, columns):
    return Dataset.from_dict(columns, features=Features(features))


REVIEWS = table(
    {"sentence": TEXT, "label": ClassLabel(names=["negative", "positive"])},
    {
        "sentence": ["a good film", "a bad film", "good", "bad", "good .", "bad ."],
        "label": [1, 0, 1, 0, 1, 0],
    },
)
TAGGED = table(
    {"tokens": List(TEXT), "ner_tags": List(ClassLabel(names=["O", "B-PER", "I-PER"]))},
    {
        "tokens": [["jim", "henson", "was"], [], ["a", "film"]],
        "ner_tags": [[1, 2, 0], [], [0, 0]],
    },
)
QUESTIONS = table(
    as_squad(),
    {
        "id": ["1", "2", "3"],
        "title": ["x", "y", "z"],
        "context": ["Jim was in Rome.", "A film.", "Jim was a puppeter."],
        "question": ["who", "what was bad", "what was Jim"],
        "answers": [
            {"text": ["Jim", "Jim was"], "answer_start": [0, 0]},
            {"text": [], "answer_start": []},
            {"text": ["a puppeter"], "answer_start": [8]},
        ],
    },
)
STORIES = table(
    of_endings("context", "question"),
    {
        "context": ["Jim was in Rome.", "A film was bad."],
        "question": ["who was in Rome", "what was bad"],
        **{
            f"ending{i}": [f"{word} .", f"a {word}"]
            for i, word in enumerate(["jim", "film", "who", "good"])
        },
        "label": [0, 1],
    },
)
ALIKE = table(
    {"sentence1": TEXT, "sentence2": TEXT, "label": Value("float32")},
    {
        "sentence1": ["good", "bad", "film"],
        "sentence2": ["good .", "good", "a film"],
        "label": [5.0, 0.5, 4.0],
    },
)
TABLES = {
    "sst2": REVIEWS,
    "wnut17": TAGGED,
    "squad": QUESTIONS,
    "mctest": STORIES,
    "stsb": ALIKE,
}


@pytest.fixture
def tables(monkeypatch):
    """Every split of a data set holds the same few rows; of the questions one article
    is for each split."""

    def load(name, source):
        return DatasetDict(dict.fromkeys(("train", "validation", "test"), TABLES[name]))

    monkeypatch.setattr(finetuning_tasks, "load", load)
    monkeypatch.setattr(records, "load_data", load)


@pytest.fixture
def checkpoint(tmp_path):
    torch.manual_seed(0)
    folder = tmp_path / "mini"
    config = tiny_bert(
        vocab_size=len(TOKENIZER), intermediate_size=14, max_position_embeddings=48
    )
    save_bert(BertModel(config), folder, TOKENIZER)
    return folder


def test_every_task_has_a_plan_and_every_plan_all_uses():
    """But those of SST-2 that ask only how to fine-tune, with whole sentences, more
    passes, remedies; and a control."""
    assert {study.shared["data"] for study in PLANS.values()} == set(SPECS)
    for name, study in PLANS.items():
        uses = {variant.use for variant in study.variants.values()}
        alone = {
            "sst2-mean": "averaged",
            "sst2-seeds": "averaged",
            "mctest-longest": "longest",
        }
        if name in alone:
            assert uses == {alone[name]}
            continue
        assert (
            uses == {"fine-tuned"}
            if name.startswith("sst2-")
            else uses >= {"fine-tuned", "frozen", "from scratch"}
        )


def test_rows_are_read_from_the_columns_of_each_form(tables):
    assert read_task("sst2").train.inputs[:2] == ["a good film", "a bad film"]
    assert read_task("sst2").labels == ("negative", "positive")
    assert read_task("stsb").train.inputs[1] == ("bad", "good")
    assert read_task("stsb").train.golds == [5.0, 0.5, 4.0]
    assert read_task("wnut17").train.inputs == [
        ["jim", "henson", "was"],
        ["a", "film"],
    ], "without the empty one"
    assert read_task("wnut17").train.golds == [[1, 2, 0], [0, 0]]
    context, endings = read_task("mctest").train.inputs[1]
    assert context == "A film was bad. what was bad"
    assert endings == ["a jim", "a film", "a who", "a good"]


def test_questions_are_split_by_article_and_know_where_their_answers_are(
    tables, monkeypatch
):
    monkeypatch.setattr(
        finetuning_tasks,
        "split_by",
        lambda rows, column: DatasetDict(
            {"train": rows, "validation": rows, "test": rows.select([2])}
        ),
    )
    task = read_task("squad")
    assert task.train.places == [(0, 3), None, (8, 18)]
    assert task.train.golds == [["Jim", "Jim was"], [], ["a puppeter"]]
    assert task.test.inputs == [("what was Jim", "Jim was a puppeter.")]
    [_, _, last] = task.examples(task.train, TOKENIZER, 40)
    assert (
        TOKENIZER.decode(last.rows[0][0][last.label[0] : last.label[1] + 1])
        == "a puppeter"
    )


def test_rows_are_drawn_by_the_seed_and_keep_together(tables):
    rows = read_task("sst2").train
    drawn = rows.sample(4, seed=3)
    assert (
        drawn.inputs == rows.sample(4, seed=3).inputs != rows.sample(4, seed=4).inputs
    )
    assert {
        (text, gold) for text, gold in zip(drawn.inputs, drawn.golds, strict=True)
    } <= {(text, gold) for text, gold in zip(rows.inputs, rows.golds, strict=True)}
    assert len(set(drawn.inputs)) == 4
    assert rows.sample(None, 0) == rows.sample(6, 0) == rows


@pytest.mark.parametrize(
    ("name", "figures", "least"),
    [
        ("sst2", {"accuracy"}, 1.0),
        ("stsb", {"pearson", "spearman"}, 0.8),
        ("wnut17", {"f1", "precision", "recall"}, 1.0),
        ("mctest", {"accuracy"}, 0.5),
        ("squad", {"exact", "f1"}, 1.0),
    ],
)
def test_each_form_is_trained_and_scored_by_its_metric(
    name, figures, least, tables, checkpoint, monkeypatch
):
    monkeypatch.setattr(
        finetuning_tasks,
        "split_by",
        lambda rows, column: DatasetDict(
            {"train": rows, "validation": rows, "test": rows}
        ),
    )
    task = read_task(name)
    config = FineTuningConfig(steps=50, learning_rate=0.02, batch_size=6)
    variant = Variant("fine-tuned", config=config)
    found = finetuning_runs.run_variant(task, variant, checkpoint, 2, 40, task.train)
    assert found["scores"].keys() == figures
    assert found["rows"] == len(task.train.inputs)
    assert found["steps"] == 50
    assert min(found["scores"].values()) >= least, "a few rows are learnt by heart"


def test_phrases_cut_out_of_sentences_are_left_out_where_whole_ones_are_asked_for(
    tables, checkpoint, monkeypatch
):
    task, drawn = read_task("sst2"), []
    task.train.inputs[3], task.train.inputs[5] = (
        "bad bad bad bad .",
        "good film good film .",
    )
    examples = finetuning_tasks.Task.examples
    monkeypatch.setattr(
        finetuning_tasks.Task,
        "examples",
        lambda self, rows, *words: drawn.append(rows) or examples(self, rows, *words),
    )
    variant = Variant("fine-tuned", 5, FineTuningConfig(steps=1), whole=True)
    assert (
        finetuning_runs.run_variant(task, variant, checkpoint, 1, 40, task.test)["rows"]
        == 2
    )
    assert sorted(drawn[0].inputs) == ["bad bad bad bad .", "good film good film ."]
    assert sorted(drawn[0].golds) == sorted([task.train.golds[3], task.train.golds[5]])


def test_the_longest_ending_is_a_guess_that_reads_nothing(tables, checkpoint):
    """Of the row that is tested the second ending is right, and of the two longest the
    first; no shortest one is."""
    task = read_task("mctest")
    tested = task.test.select([1])
    assert [len(ending) for ending in tested.inputs[0][1]] == [5, 6, 5, 6]
    assert tested.golds == [1]
    found = finetuning_runs.run_variant(
        task, Variant("longest"), checkpoint, 0, 40, tested
    )
    assert found["scores"] == {"accuracy": 1.0}
    assert (found["rows"], found["steps"]) == (0, 0)


def test_from_scratch_is_the_same_model_with_other_weights(tables, checkpoint):
    task = read_task("sst2")
    models = {
        use: build_model(task, Variant(use), checkpoint, 1)
        for use in ("fine-tuned", "frozen", "from scratch")
    }
    sizes = {
        use: [x.shape for x in model.parameters()] for use, model in models.items()
    }
    assert sizes["fine-tuned"] == sizes["from scratch"]
    tokens = {use: model.bert.embeddings.token.weight for use, model in models.items()}
    assert torch.equal(tokens["fine-tuned"], tokens["frozen"])
    assert not torch.equal(tokens["fine-tuned"], tokens["from scratch"])
    again = build_model(task, Variant("from scratch"), checkpoint, 1)
    assert torch.equal(tokens["from scratch"], again.bert.embeddings.token.weight)


def small_study():
    config = FineTuningConfig(steps=2, batch_size=3)
    variants = {
        "fine-tuned, 4": Variant("fine-tuned", 4, config),
        "features, all": Variant("features"),
    }
    return study_of("sst2", "sst2", variants, max_length=16)


def test_runs_are_recorded_kept_and_not_run_again(
    tables, checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setitem(PLANS, "sst2", small_study())
    monkeypatch.setattr(finetuning_plans, "KEPT", tmp_path / "kept")
    words = ("finetuning", "sst2", None, [])
    path = record_experiment(*words, [0, 1], None, str(checkpoint))
    record = records.load("finetuning-sst2", tmp_path / "results")
    assert [(run["variant"], run["seed"]) for run in record.results] == [
        ("mini, fine-tuned, 4", 0),
        ("mini, features, all", 0),
        ("mini, fine-tuned, 4", 1),
        ("mini, features, all", 1),
    ]
    assert [run["rows"] for run in record.results] == [4, 6, 4, 6]
    assert record.results[1]["scores"] == {"accuracy": 1.0}
    assert record.command == "course record finetuning --data sst2 --checkpoint mini"
    assert str(tmp_path) not in path.read_text()
    study = small_study()
    assert study.recorded(json.loads(path.read_text())["configuration"]) == study
    assert [x.name for x in (tmp_path / "kept").iterdir()] == ["sst2-mini-fine-tuned-4"]
    before = path.read_text()
    record_experiment(*words, [0, 1], None, str(checkpoint))
    assert path.read_text() == before
    changed = study_of("sst2", "sst2", small_study().variants, max_length=17)
    monkeypatch.setitem(PLANS, "sst2", changed)
    message = r"made with another configuration.*\(max_length, 16 and not 17\)"
    with refusal(message, ExperimentError):
        record_experiment(*words, [0], None, str(checkpoint))


def test_the_mean_of_kept_models_is_scored_as_one_model_and_a_missing_one_is_named(
    tables, checkpoint, tmp_path, monkeypatch
):
    """Wortsman et al. 2022, section 2: one model whose weights are means, not a vote of
    several."""
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(finetuning_plans, "KEPT", tmp_path / "kept")
    runs = {
        f"at {rate}": FineTuningConfig(steps=3, batch_size=3, learning_rate=rate)
        for rate in (1e-3, 3e-3)
    }
    for plan, config in runs.items():
        monkeypatch.setitem(
            PLANS,
            plan,
            study_of(
                plan, "sst2", {"fine-tuned": Variant("fine-tuned", None, config)}, 16
            ),
        )
    averaged = {"mean": Variant("averaged", plans=tuple(runs))}
    mean = study_of("mean", "sst2", averaged, 16)
    monkeypatch.setitem(PLANS, "mean", mean)
    record_experiment("finetuning", "at 0.001", None, [], [0], None, str(checkpoint))
    with refusal(
        r"at 0\.003-mini-fine-tuned does not exist: first run the plan", ExperimentError
    ):
        record_experiment("finetuning", "mean", None, [], [0], None, str(checkpoint))
    record_experiment("finetuning", "at 0.003", None, [], [0], None, str(checkpoint))
    scored = []
    monkeypatch.setattr(
        Task,
        "score",
        lambda self, model, *rest: scored.append(model) or {"accuracy": 1.0},
    )
    path = record_experiment("finetuning", "mean", None, [], [0], None, str(checkpoint))
    assert mean.recorded(json.loads(path.read_text())["configuration"]) == mean
    one, other = (
        load_file(tmp_path / "kept" / f"{plan}-mini-fine-tuned" / "model.safetensors")
        for plan in runs
    )
    for name, tensor in scored[0].classifier.state_dict().items():
        name = f"classifier.{name}"
        assert not torch.equal(one[name], other[name])
        assert_near(tensor, (one[name] + other[name]) / 2, 0, 1e-6)


def test_a_mean_of_seeds_takes_the_models_of_each_and_no_others_are_kept(
    tables, checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(finetuning_plans, "KEPT", tmp_path / "kept")
    variant = Variant(
        "fine-tuned", None, FineTuningConfig(steps=3, batch_size=3), mean=True
    )
    monkeypatch.setitem(PLANS, "one", study_of("one", "sst2", {"tuned": variant}, 16))
    mean = study_of(
        "seeds",
        "sst2",
        {"mean": Variant("averaged", plans=("one",), seeds=(0, 2), mean=True)},
        16,
    )
    monkeypatch.setitem(PLANS, "seeds", mean)
    record_experiment("finetuning", "one", None, [], [0, 1, 2], None, str(checkpoint))
    assert sorted(x.name for x in (tmp_path / "kept").iterdir()) == [
        "one-mini-tuned",
        "one-mini-tuned-seed-2",
    ]
    scored = []
    monkeypatch.setattr(
        Task,
        "score",
        lambda self, model, *rest: scored.append(model) or {"accuracy": 1.0},
    )
    path = record_experiment(
        "finetuning", "seeds", None, [], [0], None, str(checkpoint)
    )
    assert mean.recorded(json.loads(path.read_text())["configuration"]) == mean
    assert isinstance(scored[0], SentenceClassifier)
    one, other = (
        load_file(tmp_path / "kept" / name / "model.safetensors")
        for name in ("one-mini-tuned", "one-mini-tuned-seed-2")
    )
    name = "bert.embeddings.word_embeddings.weight"
    assert not torch.equal(one[name], other[name])
    assert_near(
        scored[0].state_dict()["bert.embeddings.token.weight"],
        (one[name] + other[name]) / 2,
        1e-9,
        1e-6,
    )


def test_sentences_are_rejoined_for_learning_and_for_the_test(
    tables, checkpoint, monkeypatch
):
    task, read = read_task("sst2"), []
    task.train.inputs[:] = ["it is n't good"] * len(task.train.inputs)
    examples, score = Task.examples, Task.score
    monkeypatch.setattr(
        Task,
        "examples",
        lambda self, rows, *x: read.extend(rows.inputs) or examples(self, rows, *x),
    )
    monkeypatch.setattr(
        Task,
        "score",
        lambda self, m, t, rows, n: (
            read.extend(rows.inputs) or score(self, m, t, rows, n)
        ),
    )
    variant = Variant("fine-tuned", None, FineTuningConfig(steps=1), rejoined=True)
    finetuning_runs.run_variant(task, variant, checkpoint, 0, 16, task.train)
    assert set(read) == {"it isn't good"}
    assert len(read) == 2 * len(task.train.inputs)


def test_a_shortened_study_has_a_record_of_its_own(
    tables, checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setitem(PLANS, "sst2", small_study())
    monkeypatch.setattr(finetuning_plans, "KEPT", tmp_path / "kept")
    path = record_experiment(
        "finetuning", "sst2", None, ["fine-tuned, 4"], [0], 1, str(checkpoint)
    )
    assert not (tmp_path / "kept").exists(), "the plan's own model is kept, no other"
    assert path.name == "finetuning-sst2-1-steps.json"
    assert records.load(path.stem, path.parent).results[0]["steps"] == 1


@for_each(
    ("words", "expected"),
    [
        (("finetuning", "sst2", None, [], [0]), "needs --checkpoint"),
        (("layers", "wnut17", None, [], [0], None, "x"), "takes no --checkpoint"),
        (
            ("finetuning", "imdb", None, [], [0], None, "x"),
            "finetuning has no study 'imdb'; it has: sst2",
        ),
        (
            ("finetuning", "rte", None, ["half"], [0], None, "x"),
            "has no variant 'half'; choose among fine-tuned, 1000",
        ),
        (
            ("finetuning", "rte", None, [], [0], None, "./nowhere"),
            "there is no folder ./nowhere",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(words, expected):
    with refusal(expected, ExperimentError):
        record_experiment(*words)


def test_a_use_and_a_task_must_be_known():
    with refusal("use is 'half'; choose one of fine-tuned"):
        Variant("half")
    with refusal("there is no task 'imdb'"):
        read_task("imdb")


@pytest.mark.parametrize(("name", "answered"), [("squad", False), ("sst2", True)])
def test_a_task_knows_whether_all_its_questions_have_answers(name, answered, tables):
    assert read_task(name).always_answered is answered


def test_models_of_a_task_are_told_their_labels(tables, checkpoint):
    task = read_task("wnut17")
    model = build_model(task, Variant("fine-tuned"), checkpoint, 0)
    assert model.labels == ("O", "B-PER", "I-PER")
    assert evaluate(model, task.examples(task.train, TOKENIZER, 20))["loss"] > 0
