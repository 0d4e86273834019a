"""Probes: what makes a recorded variant stale, and what does not."""

import dataclasses

import torch
import typer.testing
from cases import for_each
from torch import nn
from whole import EVERY, WHOLE

from course_lab import configurations, probes, records
from course_lab.ch01_seq2seq import seq2seq
from course_lab.ch06_pretraining import pretraining_stories
from course_lab.probing import Probe, figures, fill, probing, start
from course_lib.transformer.model import Transformer, TransformerConfig
from course_tools.cli import app
from course_tools.record_command import states, told

NAME, VARIANT = "transformer-short", "Transformer"
RECORDED = [
    path.stem
    for path in sorted(records.RESULTS.glob("*.json"))
    if probes.study_of(path.stem) is not None
]


def of_all_code() -> list[tuple[str, str]]:
    """Each variant of each study once, and one of each record: records of one study run
    the same code. In `make test` the first of each study, in the workflow all."""
    chosen, seen = [], set()
    for name in RECORDED:
        study = name.partition("-")[0]
        for variant in dict.fromkeys(run["variant"] for run in records.load(name).runs):
            new = {name, (study, variant)} if WHOLE else {study}
            if EVERY or not new <= seen:
                chosen.append((name, variant))
            seen |= {study, name, (study, variant)}
    return chosen


def test_every_recorded_variant_is_current_or_known_to_be_stale(unchecked):
    """Design, "Live or recorded": a variant whose probe has other figures is stale, and
    pages say so of those in `records.STALE`. `course records` tries them all."""
    chosen = of_all_code()
    found = [
        state
        for name, variant in chosen
        for state in states([name], variants=[variant])
    ]
    offenders = [
        state
        for state in found
        if (state.state == "current") == (state.record in records.STALE)
    ]
    assert not offenders, "\n".join(map(told, offenders))
    assert [(state.record, state.variant) for state in found] == chosen


def test_every_run_says_how_it_was_made():
    for name in RECORDED:
        record = records.load(name)
        assert len(record.runs) == len(record.results), name
        for run, result in zip(record.runs, record.results, strict=True):
            assert run["variant"] == records.variant_of(result)
            assert run["seed"] == result["seed"]
            assert run["seconds"] == result.get("seconds")
            assert run["precision"] in ("float32", "bfloat16")
            settings = configurations.of_variant(record.configuration, run["variant"])
            assert run["configuration"] == configurations.digest(settings), name


def test_the_note_of_a_stale_record_says_so_and_of_a_current_one_does_not():
    old, current = (records.load(x) for x in ("pretraining-two-worlds", NAME))
    note = records.recorded_note(old, "The figure was").splitlines()
    assert note[-1].startswith("> **Stale.** The code has changed since: the last feed")
    assert "recorded by `course record pretraining --data two-worlds`" in note[0]
    assert "Stale" not in records.recorded_note(current, "The figure was")


def differences(variant: str = VARIANT, name: str = NAME) -> dict[str, str] | None:
    return probes.differences(records.load(name), variant)


def test_a_changed_sign_in_a_loss_makes_a_variant_stale(monkeypatch):
    right = seq2seq.loss_sum

    def wrong(model, batch):
        loss, count = right(model, batch)
        return -loss, count

    monkeypatch.setattr(seq2seq, "loss_sum", wrong)
    found = differences()
    assert found
    assert "loss 1" in found
    assert VARIANT in probes.stale(NAME)
    lines = [told(state) for state in states([NAME])]
    assert lines[0].startswith("stale")


def test_a_changed_mask_makes_a_variant_stale(monkeypatch):
    right = pretraining_stories.pretraining_loss_sum

    def unmasked(model, batch):
        return right(model, batch._replace(attention_mask=None))

    monkeypatch.setattr(pretraining_stories, "pretraining_loss_sum", unmasked)
    assert differences("as live", "pretraining-two-worlds")


def test_a_changed_default_makes_a_variant_stale(monkeypatch):
    plan = probes.study_of(NAME)
    short = plan.variants[VARIANT]
    training = dataclasses.replace(short.recipe.training, learning_rate=6e-3)
    recipe = dataclasses.replace(short.recipe, training=training)
    changed = dataclasses.replace(short, recipe=recipe)
    monkeypatch.setitem(plan.variants, VARIANT, changed)
    assert differences()


def test_a_moved_renamed_and_faster_function_leaves_a_variant_current(monkeypatch):
    """Logits of all rows at once or row by row, under another name."""
    right = seq2seq.loss_sum

    def elsewhere(model, batch):
        """Another docstring."""
        return right(model, dict(reversed(batch.items())))

    monkeypatch.setattr(seq2seq, "loss_sum", elsewhere)
    assert differences() == {}


def test_drawing_weights_in_another_order_leaves_a_variant_current(monkeypatch):
    right = seq2seq.Transformer

    def after_other_draws(config):
        torch.randn(7)
        return right(config)

    monkeypatch.setattr(seq2seq, "Transformer", after_other_draws)
    assert differences() == {}


class Before(nn.Module):
    """Query, key and value in one matrix, and norms registered last."""

    def __init__(self):
        super().__init__()
        self.in_proj = nn.Linear(4, 12)
        self.out_proj = nn.Linear(4, 4)
        self.around = nn.LayerNorm(4)


class After(nn.Module):
    """The same weights under other names, in three matrices, norms first."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(4)
        self.query, self.key, self.value = (nn.Linear(4, 4) for _ in range(3))
        self.output = nn.Linear(4, 4)


def test_weights_are_filled_alike_whatever_they_are_called():
    before, after = Before(), After()
    fill(before)
    fill(after)
    parts = torch.cat([x.weight for x in (after.query, after.key, after.value)])
    assert torch.equal(before.in_proj.weight, parts)
    biases = torch.cat([x.bias for x in (after.query, after.key, after.value)])
    assert torch.equal(before.in_proj.bias, biases)
    assert torch.equal(before.out_proj.weight, after.output.weight)
    assert torch.equal(before.out_proj.bias, after.output.bias)
    assert torch.equal(before.around.weight, after.norm1.weight)
    assert torch.equal(before.around.bias, after.norm1.bias)
    assert not torch.equal(after.query.weight, after.key.weight)


def test_models_are_filled_and_their_dropout_is_zero_inside_a_probe_alone():
    config = TransformerConfig(7, 7, dim=8, num_heads=2, num_layers=1, dropout=0.3)
    models = [Transformer(config) for _ in range(3)]
    start(models[0])
    assert any(getattr(x, "p", 0.0) == 0.3 for x in models[0].modules())
    with probing():
        start(models[1])
        start(models[2])
    weights = [dict(model.named_parameters()) for model in models]
    assert all(torch.equal(weights[1][name], weights[2][name]) for name in weights[1])
    assert not any(getattr(x, "p", 0.0) for x in models[1].modules())


def test_a_probe_hears_the_losses_and_leaves_out_what_depends_on_speed():
    weight = torch.ones(2, requires_grad=True)
    with probing() as losses:
        assert torch.get_num_threads() == 1
        (weight * 3).sum().backward()
    (weight * 5).sum().backward()
    found = figures({"seconds": 9.0, "scores": {"f1": 0.5}, "name": "x"}, losses)
    assert found == {"loss 1": 6.0, "scores/f1": 0.5}


@for_each(("new", "stale"), [(2.001, False), (2.01, True), (-2.0, True), (None, True)])
def test_figures_agree_to_a_thousandth(new, stale):
    probe = Probe({"loss 1": 2.0}, taken_at="0" * 40)
    repeated = {} if new is None else {"loss 1": new}
    assert bool(probe.differences(repeated)) == stale
    assert probe.differences({"loss 1": 2.0, "loss 2": 1.0}), "a figure that is new"


def test_the_command_lists_what_is_current_and_refuses_an_unknown_record():
    runner = typer.testing.CliRunner()
    found = runner.invoke(app, ["records", NAME])
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[0].startswith(f"current  {NAME}: {VARIANT} (5 runs, float32")
    assert lines[-1] == "2 current, 0 stale"
    refused = runner.invoke(app, ["records", "nothing"])
    assert refused.exit_code == 1
    assert "no recorded result 'nothing'" in refused.output
