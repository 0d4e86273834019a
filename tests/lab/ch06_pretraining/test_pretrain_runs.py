"""A pre-training in a folder: killed and resumed, prolonged, shared by two processes,
it gives the numbers of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from datasets import config as datasets_config
from expect import refusal
from safetensors.torch import load_file
from whole import whole_only

from ch06_pretraining import small_corpus
from course_lab.ch06_pretraining.pretrain_card import card, write_card
from course_lib.training.state import load_tensors
from course_tools.pretrain_command import CHECKPOINT, PretrainError, run_in_folder

OPTIONS = {
    "size": "tiny",
    "data": "stories",
    "vocab_size": small_corpus.VOCAB_SIZE,
    "max_length": 24,
    "batch_size": 8,
    "seed": 3,
    "precision": "float32",
}
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return str(small_corpus.write(tmp_path_factory.mktemp("data")))


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    monkeypatch.setattr(
        datasets_config, "HF_DATASETS_CACHE", tmp_path_factory.getbasetemp() / "cache"
    )
    # What the machine could do takes two seconds to measure, and plays no part here.
    monkeypatch.setattr(
        "course_lab.ch06_pretraining.pretrain_results.matrix_rate",
        lambda where, dtype: 1e10,
    )


def run(folder: Path, source: str, **changes) -> list[str]:
    said: list[str] = []
    options = OPTIONS | changes.pop("options", {})
    run_in_folder(
        folder,
        options,
        command=["course", "pretrain"],
        source=source,
        say=said.append,
        **changes,
    )
    return said


def curve(folder: Path) -> dict:
    return json.loads((folder / "log.json").read_text())["curve"]


def same_weights(folder: Path, other: Path) -> bool:
    ours, theirs = load_file(folder / WEIGHTS), load_file(other / WEIGHTS)
    return ours.keys() == theirs.keys() and all(
        torch.equal(ours[name], theirs[name]) for name in ours
    )


@pytest.fixture(scope="module")
def finished(source, tmp_path_factory):
    """A run of 30 steps in one go."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_DEVICE", "cpu")
        patch.setattr(
            datasets_config,
            "HF_DATASETS_CACHE",
            tmp_path_factory.getbasetemp() / "cache",
        )
        patch.setattr(
            "course_lab.ch06_pretraining.pretrain_results.matrix_rate",
            lambda where, dtype: 1e10,
        )
        run(folder, source, steps=30)
    return folder


def test_the_folder_holds_a_model_that_transformers_reads_and_a_log_of_every_step(
    finished,
):
    from transformers import AutoTokenizer, BertForPreTraining

    model = BertForPreTraining.from_pretrained(finished)
    tokenizer = AutoTokenizer.from_pretrained(finished)
    assert model.config.hidden_size == 128
    assert len(tokenizer) == model.config.vocab_size <= small_corpus.VOCAB_SIZE
    told = curve(finished)
    assert told["step"] == list(range(1, 31))
    assert told["loss"][-1] < told["loss"][0] - 0.5
    # 6% of 30 steps of warm-up, the last 20% of decay
    assert told["learning_rate"][:3] == pytest.approx([5e-4, 1e-3, 1e-3])
    assert told["learning_rate"][23:25] == pytest.approx(
        [1e-3, 1e-3 * (1 - (1 / 7) ** 0.5)]
    )


def test_the_card_is_made_from_the_log_alone_and_again_the_same(finished, tmp_path):
    text = (finished / "README.md").read_text()
    log = json.loads((finished / "log.json").read_text())
    (tmp_path / "log.json").write_text(json.dumps(log))
    assert write_card(tmp_path).read_text() == text == card(log)
    model = log["results"]["scores"]["test"]["model"]
    assert f"{model['mlm_accuracy']:.1%} ± {model['mlm_accuracy_interval']:.1%}" in text
    assert all(
        log["fingerprints"][split] in text for split in ("train", "validation", "test")
    )
    for control in ("untrained", "unigram", "bigram", "two-sided trigram"):
        assert (
            log["results"]["scores"]["test"][control]["hidden_tokens"]
            == model["hidden_tokens"]
        )
    (tmp_path / "log.json").write_text(json.dumps(log | {"results": None}))
    with refusal("has not ended; resume it first"):
        write_card(tmp_path)


@pytest.mark.slow
def test_what_is_measured_is_the_model_as_it_was_written(source, tmp_path, finished):
    """In float16 the weights are others, half as large, and the figures are theirs."""
    run(tmp_path / "half", source, steps=30, half=True)
    half, full = load_file(tmp_path / "half" / WEIGHTS), load_file(finished / WEIGHTS)
    assert {tensor.dtype for tensor in half.values()} == {torch.float16}
    assert all(torch.equal(half[name], full[name].half()) for name in full)
    loss = [
        json.loads((folder / "log.json").read_text())["results"]["scores"]["test"][
            "model"
        ]["mlm_loss"]
        for folder in (tmp_path / "half", finished)
    ]
    assert loss[0] != loss[1]
    assert loss[0] == pytest.approx(loss[1], rel=1e-3)


@pytest.mark.slow
def test_a_run_is_prolonged_from_where_it_stands_as_if_its_end_had_been_planned_so(
    source, tmp_path, finished
):
    """A trapezoid does not look at its end: 20 steps and 10 more, the last 6 of them
    decay, are 30 with 6 of decay."""
    folder = tmp_path / "run"
    run(folder, source, steps=20, decay=0.0)
    assert not same_weights(folder, finished)
    run(folder, source, steps=10, decay=0.6, prolong=True)
    assert same_weights(folder, finished)
    assert curve(folder)["learning_rate"] == curve(finished)["learning_rate"]
    sittings = json.loads((folder / "log.json").read_text())["sittings"]
    assert [(sitting["from_step"], sitting["to_step"]) for sitting in sittings] == [
        (0, 20),
        (20, 30),
    ]
    with refusal(
        r"decay_steps was 6 and is now 1\. Restore them to resume", PretrainError
    ):
        # what has fallen does not rise again
        run(folder, source, steps=5, prolong=True)


def test_wishes_that_do_not_fit_the_folder_are_refused_in_words(
    source, tmp_path, finished
):
    def refused(words: str, folder: Path = finished, **changes) -> None:
        with refusal(words, PretrainError):
            run(folder, source, **changes)

    new = tmp_path / "new"
    refused("say how long to train: --minutes 10, or --steps 1000", new)
    refused(
        "a budget is either --minutes or --steps; leave one out",
        new,
        minutes=1.0,
        steps=5,
    )
    refused("minutes is 0; choose a positive number", new, minutes=0.0)
    refused(
        "--decay is 1.5; it is a share of the steps, from 0 to 1",
        new,
        steps=5,
        decay=1.5,
    )
    refused(
        "there is no pre-training in .*new to prolong; begin one without --prolong",
        new,
        steps=5,
        prolong=True,
    )
    refused(
        "--resume goes on to the end that was planned, --prolong plans another",
        new,
        resume=True,
        prolong=True,
    )
    refused(
        "size is 'huge'; choose one of tiny, mini",
        new,
        steps=5,
        options={"size": "huge"},
    )
    refused("--resume it, --prolong it, or choose another folder", steps=5)
    refused(
        "has size tiny, not mini; leave it out to go on with that plan",
        resume=True,
        options={"size": "mini"},
    )
    refused(
        r"has masking-rate 0\.15, not 0\.4; leave it out",
        resume=True,
        options={"masking_rate": 0.4},
    )
    refused("has steps 30, not 31; leave it out", resume=True, steps=31)
    assert not new.exists()
    new.mkdir()
    (new / "plan.json").write_text("{")
    refused(
        "plan.json is no plan .*; restore it, or choose another folder",
        new,
        resume=True,
    )


def faster_in(name: str, monkeypatch) -> None:
    """Make this machine one that is faster in a precision."""
    rates = {"float32": 1e9, "bfloat16": 1e9, name: 2e9}
    monkeypatch.setattr(
        "course_lib.training.precision.has_bfloat16", lambda where: True
    )
    monkeypatch.setattr(
        "course_lib.training.precision.product_rates", lambda where: rates
    )


def test_auto_is_decided_once_and_stands_in_plan_card_and_output(
    source, tmp_path, monkeypatch
):
    folder, auto = tmp_path / "run", {"precision": "auto"}
    faster_in("bfloat16", monkeypatch)
    told = "float32 1, bfloat16 2 GFLOP/s a thread; precision auto takes bfloat16"
    # auto, too
    assert f"computing in bfloat16; {told}" in run(
        folder, source, steps=2, options={"precision": None}
    )
    assert load_tensors(folder / CHECKPOINT)[1]["history"]["precision"] == "bfloat16"
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["plan"]["training"]["precision"] == "bfloat16"
    assert "bfloat16 autocast" in (folder / "README.md").read_text()

    faster_in("float32", monkeypatch)  # another machine
    told = "float32 2, bfloat16 1 GFLOP/s a thread; precision auto takes float32"
    said = run(folder, source, resume=True, options=auto)
    assert f"computing in bfloat16, as the run began; {told}" in said
    with refusal(
        "has precision bfloat16, not float32; leave it out to go on with that",
        PretrainError,
    ):
        run(folder, source, resume=True, options={"precision": "float32"})

    training = plan["plan"]["training"]
    del training["precision"]
    training["bf16"] = True  # as plans were written before
    (folder / "plan.json").write_text(json.dumps(plan))
    run(folder, source, resume=True, options=auto)
    assert (
        json.loads((folder / "plan.json").read_text())["plan"]["training"]["precision"]
        == "bfloat16"
    )


def test_another_text_than_at_the_beginning_is_refused(source, tmp_path):
    other = str(small_corpus.write(tmp_path / "data", documents=61))
    run(tmp_path / "run", source, steps=2)
    content = json.loads((tmp_path / "run" / "plan.json").read_text())
    (tmp_path / "run" / "plan.json").write_text(json.dumps(content | {"source": other}))
    with refusal(
        r"the train text of stories is not what the pre-training in .* began",
        PretrainError,
    ):
        run(tmp_path / "run", source, resume=True)


@pytest.mark.slow
def test_minutes_become_steps_once_and_leave_the_first_weights_as_they_were(
    source, tmp_path, finished
):
    said = run(tmp_path / "run", source, minutes=0.01, options={"dropout": 0.0})
    steps = json.loads((tmp_path / "run" / "plan.json").read_text())["plan"][
        "training"
    ]["steps"]
    assert any(
        f"0.01 minutes are {steps:,} steps at the speed of the first" in line
        for line in said
    )
    run(tmp_path / "same", source, steps=steps, options={"dropout": 0.0})
    assert same_weights(tmp_path / "run", tmp_path / "same")
    # the plan is not made again
    assert run(tmp_path / "run", source, resume=True, minutes=0.01)
    assert (
        json.loads((tmp_path / "run" / "plan.json").read_text())["plan"]["training"][
            "steps"
        ]
        == steps
    )


KILLS = """
import json, os, random, signal, sys, time
from pathlib import Path
import course_tools.pretrain_command as command
import course_lab.ch06_pretraining.pretrain_results as pretrain_results
from course_lib.training.state import load_tensors

pretrain_results.matrix_rate = lambda where, dtype: 1e10
folder, source, options = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def run(where):
    quiet = lambda text: None
    command.run_in_folder(where, options, command=["course"], source=source, steps=80, resume=True, say=quiet)

def child(where):
    # A copy of this process, so that ten runs need not begin with ten imports; nothing in it has been computed yet.
    number = os.fork()
    if number == 0:
        try:
            run(where)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return number

def changed(path):
    return path.stat().st_mtime_ns if path.exists() else 0

assert os.waitpid(child(folder / "straight"), 0)[1] == 0
draw, stood, saved = random.Random(11), [], folder / "killed" / command.CHECKPOINT
for kill in range(10):
    number = child(folder / "killed")
    # Some saves from now, then some time: at the start, in a step, in a save; the last while the model is measured.
    for _ in range(draw.randrange(8) if kill < 9 else 1):
        watched = saved if kill < 9 else folder / "killed" / "model.safetensors"
        before = changed(watched)
        while changed(watched) == before:
            assert os.waitpid(number, os.WNOHANG) == (0, 0), "it ended before it was killed"
            time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.1))
    os.kill(number, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(number, 0)[1])
    stood.append(load_tensors(saved)[1]["history"]["steps"] if saved.exists() else 0)
assert os.waitpid(child(folder / "killed"), 0)[1] == 0
print(json.dumps(stood))
"""  # noqa: E501


@whole_only
@pytest.mark.slow
def test_ten_kills_at_random_moments_cost_nothing_but_time(source, tmp_path):
    """SIGKILL leaves no chance to tidy up: it may come while a batch is made, in a
    step, in a save, in the last log."""
    environment = os.environ | {
        "COURSE_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
        "HF_DATASETS_CACHE": str(tmp_path / "cache"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    done = subprocess.run(
        [sys.executable, "-c", KILLS, str(tmp_path), source, json.dumps(OPTIONS)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stood = json.loads(done.stdout.splitlines()[-1])
    assert len(set(stood)) > 3, (
        f"the kills came at too few places to say anything: {stood}"
    )
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert same_weights(straight, killed)
    (tensors, facts), (others, other_facts) = (
        load_tensors(folder / CHECKPOINT) for folder in (straight, killed)
    )
    assert facts == other_facts
    for name, tensor in tensors.items():
        assert name == "history.seconds" or torch.equal(others[name], tensor), name
    log, other = (
        json.loads((folder / "log.json").read_text()) for folder in (straight, killed)
    )
    assert log["results"]["scores"] == other["results"]["scores"]
    assert log["evaluations"] == other["evaluations"]


@whole_only
@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [4, 1])
def test_two_processes_give_the_loss_curve_of_one(source, tmp_path, accumulate):
    """Sums in another order: 1e-5. One batch a step is cut for them; of four each takes
    two."""
    options = [
        "--size",
        "tiny",
        "--data",
        "stories",
        "--source",
        source,
        "--vocab-size",
        str(small_corpus.VOCAB_SIZE),
    ]
    options += [
        "--max-length",
        "24",
        "--batch-size",
        "8",
        "--steps",
        "12",
        "--accumulate",
        str(accumulate),
    ]
    options += ["--precision", "float32"]
    # its draws are those of a batch, so not cut
    options += ["--dropout", "0.0" if accumulate == 1 else "0.1"]
    environment = os.environ | {
        "COURSE_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
        "HF_DATASETS_CACHE": str(tmp_path / "cache"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name, launcher in (
        ("one", []),
        ("two", ["torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m"]),
    ):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                *launcher,
                "course_tools.cli",
                "pretrain",
                "--out",
                str(tmp_path / name),
                *options,
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        # one process speaks
        assert done.stdout.count("measuring the model as it was written") == 1
    one, two = (curve(tmp_path / name) for name in ("one", "two"))
    assert len(one["loss"]) == 12
    for series in ("loss", "gradient_norm", "learning_rate", "sequences"):
        assert two[series] == pytest.approx(one[series], abs=1e-5), series
    ours, theirs = (load_file(tmp_path / name / WEIGHTS) for name in ("one", "two"))
    for weight, tensor in ours.items():
        torch.testing.assert_close(theirs[weight], tensor, atol=2e-4, rtol=0)
