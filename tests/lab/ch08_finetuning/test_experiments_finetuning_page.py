"""What chapter 8 shows: models trained on the page in three ways, and tables of
recorded runs."""

import numpy as np
import pytest
import torch
from expect import refusal
from tiny import tiny_bert, tiny_tokenizer

from course_lab import records
from course_lab.ch08_finetuning import finetuning_page
from course_lab.ch08_finetuning.finetuning_page import (
    RATES,
    TASKS,
    WAYS,
    curve_of,
    score_table,
    train_ways,
)
from course_lab.ch08_finetuning.finetuning_plans import PLANS, study_of
from course_lab.ch08_finetuning.finetuning_runs import Variant
from course_lab.ch08_finetuning.finetuning_tasks import Rows, Task
from course_lab.records import Record
from course_lib.bert.files import load_bert, save_bert
from course_lib.bert.model import BertModel
from course_lib.finetuning.finetune import FineTuningConfig

TOKENIZER = tiny_tokenizer("jim was there who good bad")
CONFIG = tiny_bert(
    vocab_size=len(TOKENIZER), intermediate_size=14, max_position_embeddings=48
)


def record(scores, labels=("32", "200"), metric="accuracy"):
    """Runs of two checkpoints, the seeds not in order; a way's score is its number,
    plus the seed's tenth."""
    runs = [
        {
            "variant": f"{checkpoint}, {way}, {number}",
            "seed": seed,
            "scores": {"exact": 0.0, metric: score + seed / 10},
        }
        for checkpoint in ("mini", "other")
        for seed in (2, 0, 1)
        for number in labels
        for way, score in scores.items()
    ]
    return Record("finetuning-x", "course", {}, [0, 1, 2], runs, "0" * 40, {}, "2026")


THREE = {"fine-tuned": 0.5, "frozen": 0.45, "from scratch": 0.25}


def test_a_curve_has_a_row_for_each_seed_and_a_column_for_each_number_of_labels():
    curve = curve_of(record(THREE, ("2000", "32")), "mini")
    assert curve.labels == [32, 2000]
    assert curve.scores["frozen"].round(6).tolist() == [[45, 45], [55, 55], [65, 65]]
    assert curve.at("fine-tuned", 2000).round(6).tolist() == [50, 60, 70]


def test_a_lead_is_taken_seed_by_seed():
    """Seeds that are hard for both ways do not make the difference uncertain."""
    lead, error = curve_of(record(THREE), "mini").lead("fine-tuned", "frozen", 200)
    assert lead == pytest.approx(5)
    assert error == pytest.approx(0, abs=1e-9)
    runs = record(THREE)
    runs.results[0]["scores"]["accuracy"] += 0.03  # fine-tuned, 32, seed 2
    lead, error = curve_of(runs, "mini").lead("fine-tuned", "frozen", 32)
    assert lead == pytest.approx(6)
    assert error == pytest.approx(np.std([5, 5, 8], ddof=1) / np.sqrt(3))


def test_a_curve_has_the_seeds_that_all_its_points_have():
    """A way may have been recorded with more seeds than another."""
    runs = record(THREE)
    runs.results.append(runs.results[0] | {"seed": 7})
    assert curve_of(runs, "mini").scores["fine-tuned"].shape == (3, 2)


def test_a_checkpoint_without_runs_in_all_ways_is_refused():
    with refusal(
        r"no runs of mini in all of these ways: fine-tuned, frozen, from scratch",
        LookupError,
    ):
        curve_of(record({"fine-tuned": 0.5, "frozen": 0.4}), "mini")


def test_every_task_of_the_page_has_a_plan_with_few_labels_and_many():
    assert set(TASKS) == set(RATES)
    for name in TASKS:
        assert {
            f"{way}, {labels}" for way in WAYS for labels in (32, 200, 2000)
        } <= set(PLANS[name].variants)


@pytest.fixture
def page(monkeypatch, tmp_path):
    """A checkpoint of two layers and a task of a few words, under the name of one of
    the page's."""
    torch.manual_seed(0)
    save_bert(BertModel(CONFIG), tmp_path / "tiny", TOKENIZER)
    rows = Rows(
        [
            f"{word} {other}"
            for word in ("good", "bad")
            for other in ("jim", "was", "there")
        ],
        [1, 1, 1, 0, 0, 0],
        [],
    )
    config = FineTuningConfig(steps=30, batch_size=6, learning_rate=1e-2)
    frozen = FineTuningConfig(
        steps=2, batch_size=6, learning_rate=1e-3, frozen="encoder"
    )
    variants = {
        "fine-tuned, 200": Variant("fine-tuned", 200, config),
        "frozen, 200": Variant("frozen", 200, frozen),
        "from scratch, 200": Variant("from scratch", 200, config),
    }
    task = Task("pydocs-topic", "classes", ("no", "yes"), rows, rows)
    monkeypatch.setitem(
        finetuning_page.PLANS,
        "pydocs-topic",
        study_of("pydocs-topic", "pydocs-topic", variants, 16),
    )
    monkeypatch.setattr(finetuning_page, "read_task", lambda name, source: task)
    monkeypatch.setattr(finetuning_page, "CHECKPOINTS", tmp_path)
    return tmp_path / "tiny"


def test_a_task_is_learnt_by_what_may_learn_and_a_frozen_encoder_stays(page):
    live = train_ways("pydocs-topic", folder=page)
    assert list(live.models) == list(WAYS)
    assert live.scores["fine-tuned"] == {"accuracy": 1.0}
    before = load_bert(page).embeddings.token.weight
    assert torch.equal(live.models["frozen"].bert.embeddings.token.weight, before)
    assert not torch.equal(
        live.models["fine-tuned"].bert.embeddings.token.weight, before
    )


def test_the_table_of_a_task_has_the_page_beside_the_record(page):
    lines = score_table(
        record(THREE), train_ways("pydocs-topic", folder=page)
    ).splitlines()
    assert lines[0] == "| accuracy (%) | tiny, here | mini, recorded |"
    assert lines[2] == "| fine-tuned | 100.0 | 60.0 ± 24.8 |"  # 4.303 * 10 / sqrt(3)
    assert len(lines) == 5


def test_the_table_of_a_task_that_was_only_recorded_is_told_by_its_f1():
    lines = score_table(record(THREE, metric="f1")).splitlines()
    assert lines[0] == "| F1 (%) | mini, recorded |"
    assert lines[2:] == [
        f"| {way} | {10 + 100 * score:.1f} ± 24.8 |" for way, score in THREE.items()
    ]


def test_recorded_cells_have_an_interval_from_three_seeds_on_or_are_empty(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(finetuning_page, "RESULTS", tmp_path)
    (tmp_path / "finetuning-rte.json").touch()
    monkeypatch.setattr(
        finetuning_page,
        "load_record",
        lambda name: record({"fine-tuned": 0.5}, ("all",)),
    )
    metrics = {"rte": "accuracy", "cola": "matthews"}
    labels = {"rte": "all", "cola": "all"}
    cells = finetuning_page.recorded_cells(metrics, "mini", labels)
    assert cells == {"rte": ["60.0 ± 24.8", "", ""], "cola": ["", "", ""]}
    assert records.mean_text([61.26, 61.30], least=3) == "61.3"
