"""The benchmark of BERT compares programs that compute the same, and its ladder
switches what it says.

No test asserts a time; what is recorded is held against the course's own targets.
"""

import dataclasses
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from expect import refusal
from whole import whole_only

from course_lab import records
from course_lib.training import cpu

ROOT = Path(__file__).parents[2]
SMALL = {
    "length": 14,
    "vocab": 60,
    "tiny_batch": 3,
    "rounds": 2,
    "ladder_rounds": 2,
    "threads": 1,
}
CPU = torch.device("cpu")


@pytest.fixture
def bert(monkeypatch):
    """The program, imported as Python runs it: from its own folder, whose names mean
    nothing elsewhere."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    modules = ("side_by_side", "bert_sides", "bert")
    for module in modules:  # the mutants of an assignment have such names, too
        monkeypatch.delitem(sys.modules, module, raising=False)
    yield importlib.import_module("bert")
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def sides(bert):
    return sys.modules["bert_sides"]


def small(bert):
    return bert.Settings(sizes=("tiny",), **SMALL)


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("peer", ["transformers", "torch.nn"])
def test_losses_gradients_and_states_are_those_of_the_peer(
    bert, sides, peer, precision, padded
):
    """`check_same` raises where they are not: the next test."""
    settings = small(bert)
    batch = bert.batch_of(settings, "tiny", padded, CPU)
    ours = sides.Ours(bert.make_ours(settings, "tiny", 0.1, CPU))
    sides.check_same(ours, sides.PEERS[peer](ours.model), batch, precision, CPU)


def triple_a_gradient(side):
    side.model.nsp_head.output.weight.register_hook(lambda slope: 3 * slope)


def change_weight(side):
    with torch.no_grad():
        side.model.mlm_head.output.bias[7] += 5


def ask_elsewhere(side):
    """A loss over other positions."""
    loss = side.loss
    side.loss = lambda batch: loss(
        dataclasses.replace(batch, labels=batch.labels.roll(1, 0))
    )


@pytest.mark.parametrize(
    ("mistake", "what"),
    [(triple_a_gradient, "gradient"), (change_weight, "loss"), (ask_elsewhere, "loss")],
)
@pytest.mark.parametrize("peer", ["transformers", "torch.nn"])
def test_programs_that_compute_different_things_are_not_timed(
    bert, sides, peer, mistake, what
):
    settings = small(bert)
    batch = bert.batch_of(settings, "tiny", True, CPU)
    ours = sides.Ours(bert.make_ours(settings, "tiny", 0.1, CPU))
    theirs = sides.PEERS[peer](ours.model)
    mistake(ours)
    with refusal(f"^{what}: ours and {re.escape(peer)} differ by", RuntimeError):
        sides.check_same(ours, theirs, batch, "fp32", CPU)


def test_both_sides_drop_the_same_shares_at_the_same_number_of_places(bert, sides):
    """Each layer: attention weights, and the output of both sub-layers; and the
    embeddings. Nothing in between."""
    ours = sides.Ours(bert.make_ours(small(bert), "tiny", 0.1, CPU))
    for side in (ours, sides.Transformers(ours.model), sides.Torch(ours.model)):
        modules = [
            module.p
            for module in side.model.modules()
            if isinstance(module, torch.nn.Dropout) and module.p
        ]
        attention = [
            module.dropout
            for module in side.model.modules()
            if isinstance(getattr(module, "dropout", None), float) and module.dropout
        ]
        if side is ours:  # a block calls its one layer behind both sub-layers
            modules += [block.dropout.p for block in side.model.bert.blocks]
        assert modules + attention == [0.1] * 7, side.name


def test_a_batch_asks_for_real_tokens_behind_cls_and_says_where_they_are(bert):
    settings = bert.Settings(length=100, tiny_batch=40)
    for padded in (False, True):
        batch = bert.batch_of(settings, "tiny", padded, CPU)
        chosen = batch.labels != -100
        assert not chosen[:, 0].any()
        assert chosen[batch.attention_mask].float().mean().item() == pytest.approx(
            0.15, abs=0.02
        )
        assert not chosen[~batch.attention_mask].any()
        assert chosen.any(1).all()
        assert torch.equal(chosen.flatten().nonzero().flatten(), batch.positions)
        assert torch.equal(
            batch.input_ids.flatten()[batch.positions], batch.masked_labels
        )
        assert batch.attention_mask.all() != padded
        assert (batch.needed_mask is None) != padded
        assert (
            batch.attention_mask.sum(1).min(),
            batch.attention_mask.sum(1).max(),
        ) == (50 if padded else 100, 100)


def test_each_rung_of_the_ladder_computes_the_same_and_switches_what_it_says(
    bert, sides, monkeypatch
):
    settings = small(bert)
    batch = bert.batch_of(settings, "tiny", False, CPU)
    reference = sides.Transformers(bert.make_ours(settings, "tiny", 0.1, CPU))
    everywhere, there = batch.input_ids.numel(), len(batch.positions)
    switches = bert.Switches()
    seen = {}
    kernel = F.scaled_dot_product_attention
    product = cpu._product
    drawn = cpu._WordDropout.apply
    monkeypatch.setattr(cpu, "SMALLEST_DROPOUT", 1)  # these tensors are small
    for name, change in bert.LADDER.items():
        switches = dataclasses.replace(switches, **change)
        if switches.compiled:  # slow; the test of the whole program runs it
            continue
        side = bert.Rung(
            bert.make_ours(settings, "tiny", switches.dropout, CPU), switches
        )
        sides.check_same(side, reference, batch, switches.precision, CPU)
        found = seen[name] = {
            "fused": 0,
            "mask": False,
            "onednn": False,
            "words": False,
        }
        found |= {"dropout": switches.dropout, "dtype": None}

        def note(query, key, value, mask, *words, found=found, **names):
            found["fused"] += 1
            return kernel(query, key, value, mask, *words, **names)

        def multiply(*words, found=found):
            found["onednn"] = True
            return product(*words)

        def draw(*words, found=found):
            found["words"] = True
            return drawn(*words)

        def count(key, found=found):
            def hook(module, inputs, output):
                found[key], found["dtype"] = output.shape[:-1].numel(), output.dtype

            return hook

        def look(module, inputs, options, found=found):
            found["mask"] = options["mask"] is not None

        attention = side.model.bert.blocks[0].attention
        attention.register_forward_pre_hook(look, with_kwargs=True)
        side.model.mlm_head.register_forward_hook(count("logits"))
        side.model.bert.blocks[-1].feed_forward.register_forward_hook(count("last"))
        with monkeypatch.context() as patch:
            patch.setattr(F, "scaled_dot_product_attention", note)
            patch.setattr(cpu, "_product", multiply)
            patch.setattr(cpu, "_WordDropout", SimpleNamespace(apply=draw))
            bert.steps_of(side, "training step", batch, switches.precision, CPU)()
        assert side.model.training
        assert side.model.bert.blocks[0].attention.dropout.p == switches.dropout
    plain = {
        "fused": 0,  # with dropout, on a CPU
        "mask": True,
        "onednn": False,
        "words": False,
        "dropout": 0.1,
        "dtype": torch.float32,
    }
    plain |= {"logits": everywhere, "last": everywhere}
    changes = [
        {},
        {"logits": there},
        {"mask": False},
        {"onednn": cpu._has_onednn()},
        {"words": True},
        {"dropout": 0.0, "words": False, "fused": 2},
        {
            "dtype": torch.bfloat16,
            "onednn": False,  # autocast has it multiply in any case
            "fused": 0,  # slower there
        },
        {"fused": 0},
    ]
    expected = []
    for change in changes:
        plain = plain | change
        expected.append(plain)
    assert list(seen.values()) == expected


def test_a_gpu_climbs_at_base_too_and_without_the_rungs_that_pay_on_cpus_alone(
    bert, monkeypatch
):
    monkeypatch.setattr(bert, "precisions", lambda device: ["fp32", "bf16"])
    assert bert.rungs_of(CPU, bert.LADDER) == bert.LADDER
    switched = bert.Switches()
    for change in bert.rungs_of(torch.device("cuda"), bert.LADDER).values():
        switched = dataclasses.replace(switched, **change)
    expected = bert.Switches(
        masked_logits=True,
        no_mask=True,
        dropout=0.0,
        bf16=True,
        fused=True,
        compiled=True,
    )
    assert switched == expected
    assert set(bert.LADDER_SIZES["cuda"]) - set(bert.LADDER_SIZES["cpu"]) == {"base"}


def test_where_bfloat16_is_slow_its_rungs_are_left_out_and_said_to_be(
    bert, monkeypatch, capsys
):
    monkeypatch.setattr(
        "course_lib.training.precision.has_bfloat16", lambda where: False
    )
    assert bert.precisions(CPU) == ["fp32"]
    assert re.match(
        r"bf16 is left out on cpu: float32 .* GFLOP/s a thread; .* takes float32$",
        capsys.readouterr().out,
    )
    assert bert.rungs_of(CPU, bert.LADDER).keys() == bert.LADDER.keys() - {
        "bf16 autocast"
    }
    assert list(bert.rungs_of(CPU, bert.THEIR_LADDER)) == ["transformers, dropout 0"]


def test_utilisation_is_operations_in_a_second_over_the_matrix_rate_of_a_gpu(
    bert, monkeypatch
):
    """A product of 3 by 5 and 5 by 7 makes 3 * 5 * 7 multiplications and as many
    additions."""
    asked = []

    def rate(device, dtype):
        asked.append(dtype)
        return 1e6

    monkeypatch.setattr(bert, "matrix_rate", rate)

    def step():
        return torch.ones(3, 5) @ torch.ones(5, 7)

    for precision in ("bf16", "bf16", "fp32"):
        found = bert.utilisation(step, 3.0, precision, torch.device("cuda"))
        assert found == {"utilisation": pytest.approx(210 / 0.003 / 1e6, rel=1e-12)}
    assert asked == [torch.bfloat16, torch.float32], (
        "the rate is measured once for each precision"
    )
    assert bert.utilisation(step, 3.0, "bf16", CPU) == {}


@whole_only
@pytest.mark.slow
def test_it_runs_at_a_small_size_and_its_table_has_all_rows():
    words = [
        word
        for name, value in SMALL.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    done = subprocess.run(
        [
            sys.executable,
            "benchmarks/bert.py",
            "--sizes",
            "tiny",
            "--cuda-batch",
            "2",
            "--cuda-length",
            "32",
            *words,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in done.stdout.splitlines()
        if "│" in line
    ]
    races = [
        ("transformers", "inference", "0.0"),
        ("transformers", "training step", "0.0"),
        ("transformers", "training step", "0.1"),
        ("transformers", "with optimizer", "0.1"),
        ("torch.nn", "inference", "0.0"),
        ("torch.nn", "training step", "0.1"),
    ]
    slow = "bf16 is left out on cpu" in done.stdout
    expected = [
        ["cpu", precision, peer, "tiny", batch, mode, dropout]
        for precision in (("fp32",) if slow else ("fp32", "bf16"))
        for peer_name in ("transformers", "torch.nn")
        for batch in ("full", "padded")
        for peer, mode, dropout in races
        if peer == peer_name
    ]
    measured = [row for row in rows if row[0] == "cpu"]
    assert [row[:7] for row in measured if row[2] != "ladder"] == expected
    assert len([row for row in measured if row[2] == "ladder"]) == (9 if slow else 11)
    assert all(
        re.fullmatch(r"\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)", row[9])
        for row in measured
    )


NAME = "benchmark-bert"


@pytest.mark.records
def test_a_recorded_training_step_is_faster_than_transformers_by_what_the_course_asks():
    """With equal dropout, padded and full, in single precision and in bfloat16."""
    least = {"tiny": 2.5, "mini": 1.8, "base": 1.0}
    rows = [
        row
        for row in records.load(NAME).results
        if (row["what"], row["device"]) == ("transformers", "cpu")
        and row["mode"] != "inference"
    ]
    # sizes, precisions, batches; two shares of dropout, and with the optimizer
    assert len(rows) == 3 * 2 * 2 * 3
    assert [
        row
        for row in rows
        if row["mode"] == "training step" and row["ratio"] < least[row["size"]]
    ] == []
    assert [row for row in rows if row["ratio"] < 1] == []


@pytest.mark.records
def test_recorded_inference_is_faster_than_transformers():
    rows = [
        row
        for row in records.load(NAME).results
        if (row["what"], row["mode"]) == ("transformers", "inference")
    ]
    assert len([row for row in rows if row["device"] == "cpu"]) == 12
    assert [row for row in rows if row["ratio"] < 1.05] == []


@pytest.mark.records
def test_the_recorded_ladder_has_every_rung_and_the_last_are_the_fastest():
    rows = [
        row
        for row in records.load(NAME).results
        if (row["what"], row["device"]) == ("ladder", "cpu")
    ]
    for size in ("tiny", "mini"):
        ours = [
            row
            for row in rows
            if row["size"] == size and not row["mode"].startswith("transformers")
        ]
        assert len(ours) == 10
        assert max(row["ratio"] for row in ours[:7]) < min(
            row["ratio"] for row in ours[8:]
        )
