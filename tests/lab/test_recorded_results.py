"""What `book/results/` holds of trained models can be made again, and says what the
chapters say."""

import shlex
import subprocess

import pytest
import typer.testing
from cases import for_each

from course_lab import probes, records
from course_lab.ch08_finetuning import finetuning_plans
from course_tools.cli import app

KINDS = {
    path.stem: path.stem.partition("-")[0]
    for path in sorted(records.RESULTS.glob("*.json"))
}
recorded = for_each("name", [name for name in KINDS if probes.study_of(name)])


def test_every_record_is_of_a_kind_whose_tests_check_it():
    """Those of benchmarks are checked in tests/benchmarks/."""
    assert set(KINDS.values()) <= {*probes.EXPERIMENTS, "benchmark", "gpu", "site"}
    assert {
        "seq2seq-multi30k",
        "transformer-translation",
        "transformer-parts",
    } <= KINDS.keys()


@recorded
def test_its_command_still_parses_and_asks_for_it(name, monkeypatch):
    """The words go through the real command line, up to the point where training would
    begin."""
    asked = []
    monkeypatch.setattr(
        "course_tools.record_command.record_experiment",
        lambda *words: asked.append(words) or records.RESULTS / f"{name}.json",
    )
    program, command, *words = shlex.split(records.load(name).command)
    result = typer.testing.CliRunner().invoke(app, ["record", *words])
    assert (program, command) == ("course", "record")
    assert result.exit_code == 0, result.output
    assert "-".join(asked[0][:2]) == name


@recorded
def test_its_configuration_loads_as_a_study_of_the_kind_of_today(name):
    """What is another today than when it was recorded, `course records` lists; a
    setting that came later may stand beside those that were recorded."""
    record, study = records.load(name), probes.study_of(name)
    found = study.recorded(record.configuration).configuration
    assert _held_in(found, record.configuration)


def _held_in(found, stored):
    if not isinstance(stored, dict):
        return found == stored
    return all(x in found and _held_in(found[x], stored[x]) for x in stored)


def test_every_study_comes_back_from_json_as_it_was_and_is_called_by_its_record():
    for kind, studies in probes.EXPERIMENTS.items():
        for data, study in studies.items():
            assert study.name == f"{kind}-{data}"
            assert study.recorded(study.configuration) == study


@recorded
def test_it_says_where_when_and_with_what_it_was_made(name):
    record = records.load(name)
    assert len(record.commit) == 40, "recorded from files that no commit holds"
    assert record.date.startswith("20")
    assert record.machine["device"] in ("cpu", "cuda", "mps")
    assert sorted({run["seed"] for run in record.results}) == record.seeds


@recorded
def test_each_model_ran_with_three_seeds_or_more_and_with_none_twice(name):
    """Or once at least, where a run is dear, or where it is the mistakes of one model
    that are looked at."""
    record = records.load(name)
    kind, _, data = name.partition("-")
    dear = kind in ("errors", "sentences") or (
        kind == "finetuning" and data in finetuning_plans.DEAR
    )
    least = 1 if dear else 3
    of_models: dict[str, list[int]] = {}
    for run in record.results:
        of_models.setdefault(run.get("variant", run.get("attention")), []).append(
            run["seed"]
        )
    for model, seeds in of_models.items():
        assert len(set(seeds)) == len(seeds) >= least, model


@pytest.mark.records
def test_with_attention_captions_are_translated_better_with_every_seed():
    record = records.load("seq2seq-multi30k")
    scores = {
        (run["attention"], run["seed"]): run["scores"]["bleu"] for run in record.results
    }
    for seed in record.seeds:
        assert scores["dot", seed] > scores[None, seed] + 3


@pytest.mark.records
def test_a_conditional_gru_translates_captions_as_well_as_a_published_one():
    """59.02 in one run: monomodal-en-fr in the repository wmt17-mmt of Caglayan et al.
    2017, lower-cased, tokenised."""
    results = records.load("seq2seq-multi30k-conditional").results
    scores = [
        run["scores"]["bleu_lowercase"]
        for run in results
        if run["attention"] == "scaled"
    ]
    assert len(scores) >= 3
    assert sum(scores) / len(scores) > 59.02 - 0.5
    assert min(scores) > 58


@pytest.mark.records
def test_the_transformer_translates_99_of_100_generated_sentences_exactly():
    """On the held-out test of `translation`, at all lengths, with every seed."""
    results = records.load("transformer-translation").results
    scores = [
        run["scores"]["exact_match"]
        for run in results
        if run["variant"] == "Transformer"
    ]
    assert min(scores) >= 0.99


@pytest.mark.records
def test_frozen_features_of_2000_reviews_reach_four_of_five_and_less_than_tuning():
    """SST-2's 872 validation sentences; each seed draws other sentences to
    learn from."""
    scores: dict[str, list[float]] = {}
    for run in records.load("finetuning-sst2").results:
        scores.setdefault(run["variant"], []).append(run["scores"]["accuracy"])
    features = scores["all-MiniLM-L6-v2, features, 2000"]
    assert len(features) >= 3
    assert min(features) >= 0.80
    assert min(scores["all-MiniLM-L6-v2, fine-tuned, 2000"]) > max(features) + 0.02
    assert (
        min(scores["all-MiniLM-L6-v2, fine-tuned, all"])
        > min(scores["all-MiniLM-L6-v2, fine-tuned, 2000"]) + 0.03
    )


def test_changed_code_is_said_beside_the_commit_and_a_record_that_goes_on_is_no_change(
    monkeypatch, tmp_path
):
    def git(*words):
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *words],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    code = tmp_path / "course_lab" / "records.py"
    record = tmp_path / "book" / "results" / "one.json"
    for file in (code, record):
        file.parent.mkdir(parents=True)
        file.write_text("first")
    git("init", "--quiet")
    git("add", ".")
    git(
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "commit",
        "--quiet",
        "--message",
        "first",
    )
    monkeypatch.setattr(records, "__file__", str(code))
    head = git("rev-parse", "HEAD")
    record.write_text("second")
    assert records.commit() == head
    code.write_text("second")
    assert records.commit() == f"{head}+changes"


@pytest.mark.records
def test_with_every_seed_six_layers_reach_90_percent_of_rejoined_sst2():
    """SST-2's 872 validation sentences, where the paper's BERT-base has 93.5 on the
    test split (table 1)."""
    scores = [
        run["scores"]["accuracy"]
        for run in records.load("finetuning-sst2-rejoined").results
    ]
    assert len(scores) == 3
    assert min(scores) >= 0.90
    before = records.load("finetuning-sst2-steadied").results[0]["scores"]["accuracy"]
    assert min(scores) > before, "two remedies, but sentences as the treebank has them"


@pytest.mark.records
def test_siamese_training_lifts_raw_states_which_lose_to_static_vectors():
    """Reimers and Gurevych 2019, table 1, in direction; and the published 82.03 of a
    checkpoint, through our code."""
    runs = records.load("sentences-nli").results
    of = {
        (run["variant"], run["seed"]): {
            name: x["stsb"] for name, x in run["after"].items()
        }
        for run in runs
    }
    raw = of["mini, raw mean", 0]["start"]
    assert raw < of["mini, static", 0]["start"] - 0.03
    lifts = [
        found["scores"] - raw
        for (variant, _), found in of.items()
        if variant == "mini, pairs"
    ]
    assert len(lifts) >= 3
    assert min(lifts) > 0.15
    assert of["all-MiniLM-L6-v2, published", 0]["start"] == pytest.approx(
        0.820, abs=0.005
    )
