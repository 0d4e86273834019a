"""What ``course pretrain`` does: a pre-training that lives in a folder.

The folder holds, from the beginning, ``plan.json``: all that decides the run, and its
sittings; and, once the first steps are saved, ``training.safetensors``: where it
stands. At the end of each sitting come the model in Hugging Face's layout, ``log.json``
with every figure, and ``README.md``, the model card, which is made from the log alone.

A budget in minutes is turned into steps once, from the speed of the first steps, and
written into the plan: what is trained does not depend on the clock afterwards, so that
a killed run is resumed exactly.
"""

import dataclasses
import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from course_lab import records
from course_lab.ch06_pretraining.pretrain import (
    Plan,
    build,
    plan_from,
    pretrain,
    steps_for,
)
from course_lab.ch06_pretraining.pretrain_card import write_card
from course_lab.ch06_pretraining.pretrain_data import Corpus, prepare
from course_lab.ch06_pretraining.pretrain_results import results, write_log
from course_lib.bert.files import load_bert, save_bert
from course_lib.bert.model import BertForPreTraining
from course_lib.files import write_whole
from course_lib.pretraining.masking import MaskingConfig
from course_lib.pretraining.token_store import TokenStoreError
from course_lib.training.loop import History, TrainingConfig, TrainingError, device
from course_lib.training.parallel import copy_from_first, join_processes
from course_lib.training.precision import agreed_precision, describe_rates
from course_lib.training.state import CheckpointError, load_tensors

PLAN, CHECKPOINT = "plan.json", "training.safetensors"
# The peak by size. Tiny and mini: from trials on `stories` and `pydocs`, where three
# times as much kept the model on the plateau of word frequencies as long as it was
# watched; base and large: Devlin et al. 2019, appendix A.2.
LEARNING_RATES = {"tiny": 1e-3, "mini": 3e-4, "small": 3e-4}
LEARNING_RATES |= {"medium": 2e-4, "base": 1e-4, "large": 1e-4}
WARM_UP = 0.06  # of the first budget
# Part of a plan that TrainingConfig and MaskingConfig hold.
TRAINING = ("learning_rate", "weight_decay", "precision", "seed", "accumulate")
MASKING = {"masking_rate": "rate", "mask_share": "mask_share"}
MASKING |= {"random_share": "random_share", "masking_unit": "unit"}
DECAY = 0.2  # of a budget, where nobody says another share


#: What stops a pre-training, beside what stops any reading and writing.
ERRORS = (CheckpointError, TrainingError, TokenStoreError)


class PretrainError(RuntimeError):
    """A pre-training cannot begin or go on; the message says why and what to do."""


def run_in_folder(
    folder: Path,
    options: Mapping[str, Any],
    *,
    command: Sequence[str],
    minutes: float | None = None,
    steps: int | None = None,
    decay: float | None = None,
    resume: bool = False,
    prolong: bool = False,
    source: str | None = None,
    half: bool = False,
    evaluations: int = 20,
    say: Callable[[str], None] = print,
) -> Path:
    """Begin, resume or prolong a folder's pre-training; leave model, log, card."""
    try:
        rank, processes = join_processes(device())
        tell = say if rank == 0 else (lambda text: None)
        held, fall, first = _read(folder), DECAY if decay is None else decay, 0
        # no process writes before all have read
        copy_from_first(torch.zeros(1, device=device()))
        _check_wishes(folder, held, minutes, steps, decay, resume, prolong)
        if held is None:
            plan = plan_of(options, processes)
            # now in the plan: where it goes on, too
            precision = agreed_precision(plan.training.precision, device())
            plan = _training(plan, precision=precision)
            corpus = prepare(plan.data, plan.vocab_size, source)
            model = build(plan, corpus)
            count = _budget(plan, corpus, model, minutes, steps, tell)
            plan = _planned(plan, count, fall, evaluations)
            content: dict[str, Any] = {"source": source, "sittings": []}
            content["fingerprints"] = corpus.identity()
        else:
            plan, content = plan_from(held["plan"]), dict(held)
            _check_same(folder, plan, options, minutes, steps, held, prolong)
            corpus = prepare(plan.data, plan.vocab_size, content["source"])
            _check_text(folder, content["fingerprints"], corpus)
            model = build(plan, corpus)
            first = _made(folder)
            if prolong:
                count = _budget(plan, corpus, model, minutes, steps, tell)
                plan = plan.lasting(first + count, math.ceil(count * fall))
                plan = _training(plan, evaluate_every=max(1, count // evaluations))
        began = "" if held is None else ", as the run began"
        rates = describe_rates(device())
        tell(f"computing in {plan.training.precision}{began}; {rates}")
        sitting = {
            "command": shlex.join(command),
            "from_step": first,
            "to_step": plan.training.steps,
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": records.commit(),
            "machine": records.machine(),
            "processes": processes,
        }
        if held is None or prolong:
            content["minutes"] = minutes
        content["plan"] = dataclasses.asdict(plan)
        content["sittings"] = [*content["sittings"], sitting]
        if rank == 0:
            _write(folder, content)
        here = _saving_in(folder, plan)
        report = _reporter(folder, content, plan, tell)
        model, history = pretrain(here, corpus, model, report=report)
        if rank == 0:
            save_bert(model, folder, corpus.tokenizer, torch.float16 if half else None)
            tell("measuring the model as it was written, and its controls")
            saved = load_bert(folder, BertForPreTraining, dtype=torch.float32)
            found = results(plan, corpus, saved.to(device()), history)
            write_log(folder, content, history, found)
            write_card(folder)
        return folder / "README.md"
    except (ValueError, OSError, *ERRORS) as error:
        raise PretrainError(str(error)) from error


def _training(plan: Plan, **changes: Any) -> Plan:
    """The plan with something of its training changed."""
    return replace(plan, training=replace(plan.training, **changes))


def plan_of(options: Mapping[str, Any], processes: int = 1) -> Plan:
    """Make a plan of what was asked for."""
    given = {name: value for name, value in options.items() if value is not None}
    training = {name: given.pop(name) for name in TRAINING if name in given}
    known = [(name, field) for name, field in MASKING.items() if name in given]
    masking = {field: given.pop(name) for name, field in known}
    training.setdefault("precision", "auto")
    rate = LEARNING_RATES.get(given.get("size", "mini"), 1e-3)
    training.setdefault("learning_rate", rate)
    given.setdefault("start", "scaled")  # what a small model learns from sooner
    batches = training.get("accumulate", 1)
    training["accumulate"] = math.lcm(batches, processes)
    config = TrainingConfig(steps=1, schedule="trapezoid", **training)
    split = training["accumulate"] // batches
    return Plan(config, masking=MaskingConfig(**masking), split=split, **given)


def _planned(plan: Plan, steps: int, share: float, evaluations: int) -> Plan:
    """Give a new plan its budget."""
    fall = math.ceil(steps * share)
    return _training(
        plan,
        steps=steps,
        warmup_steps=min(math.ceil(WARM_UP * steps), steps - fall),
        decay_steps=fall,
        evaluate_every=max(1, steps // evaluations),
    )


def _saving_in(folder: Path, plan: Plan) -> Plan:
    """The plan with what does not change its numbers."""
    every = max(1, min(plan.training.steps // 50, 200))
    return _training(plan, checkpoint=folder / CHECKPOINT, checkpoint_every=every)


def _budget(
    plan: Plan,
    corpus: Corpus,
    model: BertForPreTraining,
    minutes: float | None,
    steps: int | None,
    tell: Callable[[str], None],
) -> int:
    if steps is not None:
        return steps
    assert minutes is not None
    count = steps_for(plan, corpus, model, minutes)
    many = f"{minutes:g} minutes are {count:,} steps at the speed of the first"
    tell(f"{many}; this is now the plan")
    return count


def _check_wishes(
    folder: Path,
    held: Mapping[str, Any] | None,
    minutes: float | None,
    steps: int | None,
    decay: float | None,
    resume: bool,
    prolong: bool,
) -> None:
    if minutes is not None and steps is not None:
        raise PretrainError("a budget is either --minutes or --steps; leave one out")
    if steps is not None and steps < 1:
        raise PretrainError(f"--steps is {steps}; choose at least 1")
    if decay is not None and not 0 <= decay <= 1:
        share = "it is a share of the steps, from 0 to 1"
        raise PretrainError(f"--decay is {decay}; {share}")
    if resume and prolong:
        one = "--resume goes on to the end that was planned, --prolong plans another"
        raise PretrainError(f"{one}; choose one")
    if prolong and held is None:
        nothing = f"there is no pre-training in {folder} to prolong"
        raise PretrainError(f"{nothing}; begin one without --prolong")
    if held is not None and not (resume or prolong):
        other = "--resume it, --prolong it, or choose another folder"
        raise PretrainError(f"{folder} holds a pre-training; {other}")
    if (held is None or prolong) and minutes is None and steps is None:
        raise PretrainError("say how long to train: --minutes 10, or --steps 1000")


def _check_same(
    folder: Path,
    plan: Plan,
    options: Mapping[str, Any],
    minutes: float | None,
    steps: int | None,
    held: Mapping[str, Any],
    prolong: bool,
) -> None:
    """What is asked for again must be what the plan says."""
    named = {
        **{f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)},
        **{name: getattr(plan.training, name) for name in TRAINING},
        **{name: getattr(plan.masking, field) for name, field in MASKING.items()},
        "accumulate": plan.training.accumulate // plan.split,
    }
    if not prolong:
        named |= {"minutes": held["minutes"], "steps": plan.training.steps}
        options = {**options, "minutes": minutes, "steps": steps}
    for name, value in options.items():
        if (name, value) == ("precision", "auto"):
            continue  # auto takes what the run began with
        if value is not None and value != named[name]:
            raise PretrainError(
                f"the pre-training in {folder} has {name.replace('_', '-')}"
                f" {named[name]}, not {value}; leave it out to go on with that plan, or"
                " choose another folder"
            )


def _check_text(folder: Path, fingerprints: Mapping[str, str], corpus: Corpus) -> None:
    now = corpus.identity()
    for name, fingerprint in fingerprints.items():
        if now[name] != fingerprint:
            what = "vocabulary" if name == "vocabulary" else f"{name} text"
            raise PretrainError(
                f"the {what} of {corpus.name} is not what the pre-training in {folder}"
                f" began with ({now[name]} instead of {fingerprint}); restore it, or"
                " choose another folder"
            )


def _made(folder: Path) -> int:
    """The number of steps that are saved."""
    path = folder / CHECKPOINT
    return int(load_tensors(path)[1]["history"]["steps"]) if path.exists() else 0


def _read(folder: Path) -> dict[str, Any] | None:
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise PretrainError(
            f"{path} is no plan ({error}); restore it, or choose another folder"
        ) from error


def _write(folder: Path, content: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / PLAN, json.dumps(content, indent=1) + "\n")


def _reporter(
    folder: Path, content: Mapping[str, Any], plan: Plan, tell: Callable[[str], None]
) -> Callable[[History], None]:
    """Write the log as the run goes on, and tell what an evaluation found."""

    def report(history: History) -> None:
        write_log(folder, content, history, None)
        if history.metric_steps and history.metric_steps[-1] == history.steps[-1]:
            figures = {name: values[-1] for name, values in history.metrics.items()}
            pairs = ""
            if "nsp_accuracy" in figures:
                pairs = f", next sentence {figures['nsp_accuracy']:.1%}"
            tell(
                f"step {history.steps[-1]:,} of {plan.training.steps:,},"
                f" {history.seconds[-1] / 60:.1f} min: loss {history.losses[-1]:.3f};"
                f" validation: hidden tokens {figures['mlm_accuracy']:.1%}"
                f" ({figures['mlm_loss']:.3f} nats){pairs}"
            )

    return report
