"""One kind of study: what its runs are kept by, and what is refused."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
import typer.testing

from course_lab import configurations, probes, records, study
from course_lab.probing import Probe
from course_lab.study import Study
from course_lib.training.config import TrainingConfig
from course_tools.cli import app

WORDS = ["course", "record", "race"]


@dataclass(frozen=True)
class Racer:
    """What decides a run."""

    speed: int
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(steps=50))


SLOW, FAST = {"slow": Racer(5)}, {"fast": Racer(9)}


class Track:
    """The code of an experiment, and which runs it did."""

    def __init__(self):
        self.ran, self.length = [], 2

    def read(self, study, source, checkpoint):
        return self.ran

    def run(self, study, variant, seed, ran):
        if ran is not None:
            ran.append((variant, seed))
        racer = study.variants[variant]
        return {"way": racer.speed * self.length, "steps": racer.training.steps}

    def probe(self, study, variant):
        return study.shortened(3), None

    def race(self, variants, **shared):
        return Study("race", variants, self.read, self.run, self.probe, shared)


@pytest.fixture
def track(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    monkeypatch.setattr(records, "edition", lambda data, source: "edition")
    return Track()


def record(race, variants=(), seeds=(0,), **more):
    study.record(race, WORDS, variants or list(race.variants), seeds, **more)
    return records.load("race", records.RESULTS)


def test_an_added_baseline_or_seed_repeats_no_other_run(track):
    before = record(track.race(SLOW))
    assert track.ran == [("slow", 0)]
    after = record(track.race({**SLOW, **FAST}), seeds=(0, 1))
    assert track.ran == [("slow", 0), ("fast", 0), ("slow", 1), ("fast", 1)]
    assert after.results[0] == before.results[0]
    assert after.runs[0] == before.runs[0]
    assert after.probes["slow"] == before.probes["slow"]
    assert after.seeds == [0, 1]
    assert list(after.configuration["variants"]) == ["slow", "fast"]
    content = (records.RESULTS / "race.json").read_bytes()
    record(track.race({**SLOW, **FAST}), seeds=(0, 1))
    assert (records.RESULTS / "race.json").read_bytes() == content
    assert len(track.ran) == 4


def test_a_page_shows_variants_once_they_have_the_seeds_of_an_interval(track):
    assert records.results_of("race") == []
    record(track.race(SLOW | FAST), ["fast"], seeds=(0,))
    assert records.results_of("race", least=2) == []
    record(track.race(SLOW | FAST), ["slow"], seeds=(0, 1))
    shown = [(x["variant"], x["seed"]) for x in records.results_of("race", least=2)]
    assert shown == [("slow", 0), ("slow", 1)]
    assert len(records.results_of("race")) == 3


def test_commands_that_record_at_the_same_time_lose_no_run(track):
    race = track.race(SLOW | FAST)

    def command(number):
        study.record(race, WORDS, [("slow", "fast")[number % 2]], [number // 2])

    with ThreadPoolExecutor(8) as commands:
        list(commands.map(command, range(24)))
    found = records.load("race", records.RESULTS)
    runs = {(result["variant"], result["seed"]) for result in found.results}
    assert runs == {(way, seed) for way in ("slow", "fast") for seed in range(12)}
    assert found.probes.keys() == {"slow", "fast"}


def test_a_run_of_a_stale_variant_is_refused_in_words_and_others_are_not(track):
    record(track.race(SLOW))
    track.length = 3  # as if a loss or a default had changed
    message = (
        r"'slow' of race is stale, and no run is added to it: since it was recorded the"
        r" code computes something else \(way: 10.0 -> 15.0\); give what it"
    )
    with pytest.raises(ValueError, match=message):
        record(track.race(SLOW), seeds=(1,))
    assert track.ran == [("slow", 0)], "refused before any work"
    record(track.race(SLOW))  # nothing is missing
    both = record(track.race({**SLOW, **FAST}), ["fast"], seeds=(1,))
    assert track.ran == [("slow", 0), ("fast", 1)]
    assert both.probes["fast"].figures["way"] == 27


def test_the_command_says_so_and_knows_a_study_by_the_name_of_its_record(
    track, monkeypatch
):
    race = replace(track.race(SLOW), name="race-short")
    monkeypatch.setattr(probes, "EXPERIMENTS", {"race": {"short": race}})
    run = partial(typer.testing.CliRunner().invoke, app)
    assert run(["record", "race-short", "--seed", "0"]).exit_code == 0
    made = records.load("race-short", records.RESULTS)
    assert made.command == "course record race --data short"
    track.length = 3
    refused = run(["record", "race", "--data", "short", "--seed", "1"])
    assert refused.exit_code == 1
    assert "'slow' of race-short is stale, and no run is added" in refused.output


def test_a_changed_variant_is_refused_and_says_in_what(track):
    record(track.race(SLOW, length=16))
    message = (
        r"race\.json was made with another configuration of 'slow' \(variant.speed"
    )
    with pytest.raises(ValueError, match=message):
        record(track.race({"slow": Racer(6)}, length=16), seeds=(1,))
    record(track.race({"slow": Racer(6), **FAST}, length=16), ["fast"])
    assert track.ran == [("slow", 0), ("fast", 0)]
    with pytest.raises(ValueError, match="length, 16 and not 17"):
        record(track.race(SLOW, length=17))


def test_settings_that_a_record_does_not_have_yet_change_nothing(track):
    record(track.race(SLOW))
    stored = json.loads((records.RESULTS / "race.json").read_text())
    del stored["configuration"]["variants"]["slow"]["training"]
    old = configurations.of_variant(stored["configuration"], "slow")
    stored["runs"][0]["configuration"] = configurations.digest(old)
    (records.RESULTS / "race.json").write_text(json.dumps(stored))
    record(track.race(SLOW, added_later=3))
    assert track.ran == [("slow", 0)]
    found = record(track.race(SLOW, added_later=3), seeds=(1,))
    assert track.ran == [("slow", 0), ("slow", 1)]
    now = configurations.of_variant(found.configuration, "slow")
    assert now != old
    assert {run["configuration"] for run in found.runs} == {configurations.digest(now)}


def test_each_run_says_with_what_it_was_made(track):
    training = TrainingConfig(steps=5, precision="bfloat16")
    [run] = record(track.race({"slow": Racer(5, training)})).runs
    machine = records.machine()
    assert run["precision"] == "bfloat16"
    assert run["data"] == "edition"
    assert run["threads"] == machine["threads"]
    assert run["processor"] == machine["name"]
    assert run["versions"]["torch"] == machine["torch"]
    assert run["commit"] == records.commit()
    assert run["date"].startswith("20")


def test_no_variant_has_runs_of_two_precisions_so_no_mean_mixes_them(
    track, monkeypatch
):
    """ "auto" is another precision on another machine."""
    chosen = ["bfloat16"]
    monkeypatch.setattr(configurations, "choose_precision", lambda *_: chosen[-1])
    auto = TrainingConfig(steps=5, precision="auto")
    race = track.race({"slow": Racer(5, auto), "fast": Racer(9, auto)})
    record(race, ["slow"])
    chosen.append("float32")
    with pytest.raises(
        ValueError, match=r"'slow' of race was recorded in bfloat16, an"
    ):
        record(race, ["slow"], seeds=(1,))
    mixed = [run["precision"] for run in record(race, ["fast"]).runs]
    assert mixed == ["bfloat16", "float32"], "of two variants"
    stored = json.loads((records.RESULTS / "race.json").read_text())
    stored["runs"][1]["variant"] = "slow"
    (records.RESULTS / "race.json").write_text(json.dumps(stored))
    with pytest.raises(ValueError, match="a mean over them would mix precisions"):
        records.load("race", records.RESULTS)


def test_a_variant_is_called_by_its_checkpoint_too_and_probed_without_it(track):
    race = replace(track.race({**SLOW, "very slow": Racer(1)}), of_checkpoint=True)
    made = record(race, checkpoint="/somewhere/mini")
    assert [run["variant"] for run in made.runs] == ["mini, slow", "mini, very slow"]
    assert [probe.figures["way"] for probe in made.probes.values()] == [10, 2]
    with pytest.raises(ValueError, match="race has no variant 'mini, quick' today"):
        race.own("mini, quick")


def test_what_is_done_with_a_run_comes_after_its_record_and_once(track):
    done = []
    race = replace(
        track.race(SLOW),
        finish=lambda record, result, ran: done.append((record.name, result["seed"])),
    )
    record(race)
    record(race, seeds=(0, 1))
    assert done == [("race", 0), ("race", 1)]


def test_a_shortened_study_has_a_record_and_a_name_of_its_own(track):
    plan = {"slow": Racer(5, TrainingConfig(steps=50, warmup_steps=20))}
    short = track.race(plan, stages=(plan["slow"], 7)).shortened(4)
    assert short.name == "race-4-steps"
    for racer in (short.variants["slow"], short.shared["stages"][0]):
        assert racer == Racer(5, TrainingConfig(steps=4, warmup_steps=4))
    with pytest.raises(ValueError, match="trains nothing for a number of steps"):
        short.shortened(4)
    little = study.shortened(plan["slow"], 4, warmup=1, speed=2, elsewhere=9)
    assert little == Racer(2, TrainingConfig(steps=4, warmup_steps=1))


def test_a_study_whose_variants_read_other_data_or_that_has_none_is_refused(track):
    with pytest.raises(ValueError, match="race needs at least one variant"):
        track.race({})
    with pytest.raises(ValueError, match=r"read their data in 2 ways.*5 and 9"):
        replace(track.race({**SLOW, **FAST}), alike=lambda racer: racer.speed)


def test_figures_that_depend_on_more_than_the_code_are_not_probed(track):
    race = replace(track.race(SLOW), unprobed=("steps",))
    assert record(race).probes["slow"] == Probe({"way": 10.0}, records.commit())
