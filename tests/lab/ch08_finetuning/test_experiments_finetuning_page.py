"""What chapter 8 and its laboratory show: features compared, and tables of recorded
runs."""

from dataclasses import replace

import numpy as np
import pytest
from expect import refusal
from sklearn.linear_model import LogisticRegression

from course_lab import records
from course_lab.ch08_finetuning import finetuning_page
from course_lab.ch08_finetuning.finetuning_page import (
    SPLITS,
    TASKS,
    WAYS,
    curve_of,
    feature_scores,
    feature_table,
    lead_cells,
    lead_table,
)
from course_lab.ch08_finetuning.finetuning_plans import PLANS
from course_lab.records import Record


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
    lead = curve_of(record(THREE), "mini").lead("fine-tuned", "frozen", 200)
    assert lead.mean == pytest.approx(5)
    assert lead.half_width == pytest.approx(0, abs=1e-9)
    runs = record(THREE)
    runs.results[0]["scores"]["accuracy"] += 0.03  # fine-tuned, 32, seed 2
    curve = curve_of(runs, "mini")
    lead = curve.lead("fine-tuned", "frozen", 32)
    assert lead.mean == pytest.approx(6)
    deviation = np.std([5, 5, 8], ddof=1)
    assert lead.half_width == pytest.approx(4.303 * deviation / np.sqrt(3), rel=1e-3)


def test_a_lead_is_bold_where_its_interval_leaves_0_out():
    runs = record(THREE)
    runs.results[0]["scores"]["accuracy"] += 0.09  # fine-tuned, 32, seed 2
    curves = {"pydocs-tag": curve_of(runs, "mini")}
    lines = lead_table(curves, "fine-tuned", "frozen", [32, 200]).splitlines()
    assert lines[2] == "| tags | +8.0 ± 12.9 | **+5.0 ± 0.0** |"


def test_a_curve_has_the_seeds_that_all_its_points_have():
    """A way may have been recorded with more seeds than another."""
    runs = record(THREE)
    runs.results.append(runs.results[0] | {"seed": 7})
    assert curve_of(runs, "mini").scores["fine-tuned"].shape == (3, 2)


def test_linear_models_are_compared_with_fine_tuning_where_there_are_any():
    runs = record({"fine-tuned": 0.5, "words": 0.4, "states": 0.6}, ("200",))
    both = {"pydocs-topic": runs, "pydocs-span": runs}
    curves = finetuning_page.linear_curves(both, [200])
    assert list(curves) == [("pydocs-topic", 200)]
    row = finetuning_page.linear_table(curves).splitlines()[-1]
    assert row.startswith("| topic | 200 | 60.0 ± ")
    assert row.endswith("| **+10.0 ± 0.0** | **\N{MINUS SIGN}10.0 ± 0.0** | 3 |")


def test_a_checkpoint_without_runs_in_all_ways_is_refused():
    with refusal(
        r"no runs of mini in all of these ways: fine-tuned, frozen, from scratch",
        LookupError,
    ):
        curve_of(record({"fine-tuned": 0.5, "frozen": 0.4}), "mini")


def test_every_task_of_the_page_has_a_plan_with_few_labels_and_many():
    for name in TASKS:
        assert {
            f"{way}, {labels}" for way in WAYS for labels in (32, 200, 2000)
        } <= set(PLANS[name].variants)


def test_features_are_scored_on_a_split_and_with_few_and_all_labels_on_the_test():
    """Features that give the label away are right everywhere; noise is not; and a
    shift of the test rows hurts there alone."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 800).tolist()
    test = generator.integers(0, 2, 400).tolist()
    both = [np.array(of)[:, None] * 2.0 - 1 for of in (labels, test)]
    noise = [generator.normal(size=x.shape) for x in both]
    linear = LogisticRegression()
    inputs = {
        "told": (linear, *both),
        "noise": (linear, *noise),
        "moved": (linear, both[0], -both[1]),
    }
    found = feature_scores(inputs, labels, test, few=50)
    assert found["told"] == [100, 100, 100]
    assert found["moved"] == [100, 0, 0]
    assert all(40 < score < 60 for score in found["noise"])
    lines = feature_table(found, labels, test).splitlines()
    assert lines[0] == f"| accuracy (%), features | {' | '.join(SPLITS)} |"
    assert lines[2] == "| told | 100.0 | 100.0 | 100.0 |"


def test_recorded_cells_have_an_interval_from_three_seeds_on_or_are_empty(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    runs = record({"fine-tuned": 0.5}, ("all",))
    records.save(replace(runs, name="finetuning-rte"), tmp_path)
    metrics = {"rte": "accuracy", "cola": "matthews"}
    labels = {"rte": "all", "cola": "all"}
    cells = finetuning_page.recorded_cells(metrics, "mini", labels)
    assert cells == {"rte": ["60.0 ± 24.8", "", ""], "cola": ["", "", ""]}
    assert records.mean_text([61.26, 61.30], least=3) == "61.3"


def test_a_lead_over_all_labels_is_taken_over_the_seeds_that_both_have(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    runs = record({"fine-tuned": 0.5, "states": 0.4}, ("all",))
    runs.results.append({**runs.results[0], "seed": 7, "scores": {"accuracy": 0.0}})
    records.save(replace(runs, name="finetuning-rte"), tmp_path)
    names = {"rte": "accuracy", "cola": "accuracy"}
    cells = lead_cells(names, "mini, fine-tuned", "mini, states")
    assert cells == {"rte": "**+10.0 ± 0.0**", "cola": ""}
    assert lead_cells(names, "mini, fine-tuned", "mini, words")["rte"] == ""
