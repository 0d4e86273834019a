"""Which precision is computed in: decided once, from what the machine has and from what
it is faster in."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from expect import refusal

from course_lib.finetuning.finetune import FineTuningConfig
from course_lib.training import precision
from course_lib.training.config import read_settings
from course_lib.training.loop import TrainingConfig
from course_lib.training.precision import (
    agreed_precision,
    autocast,
    choose_precision,
    describe_rates,
    product_rates,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def fake(monkeypatch, capabilities, float32, bfloat16):
    rates = {"float32": float32, "bfloat16": bfloat16}
    monkeypatch.setattr(
        torch.cpu, "get_capabilities", lambda: capabilities, raising=False
    )
    monkeypatch.setattr(precision, "product_rates", lambda where: rates)


AVX2, AVX512 = {"avx2": True}, {"avx2": True, "avx512_f": True, "avx512_vnni": True}


@pytest.mark.parametrize(
    ("capabilities", "float32", "bfloat16", "taken"),
    [
        pytest.param(AVX2, 40e9, 0.3e9, "float32", id="AVX2 alone"),
        pytest.param(AVX2, 1e9, 9e9, "float32", id="a timing without the instructions"),
        pytest.param(
            AVX512 | {"avx512_bf16": False},
            80e9,
            40e9,
            "float32",
            id="AVX-512 without bfloat16",
        ),
        pytest.param(
            AVX512 | {"avx512_bf16": True},
            80e9,
            40e9,
            "float32",
            id="instructions that nothing uses",
        ),
        pytest.param(
            AVX512 | {"avx512_bf16": True}, 80e9, 170e9, "bfloat16", id="AVX512-BF16"
        ),
        pytest.param(AVX512 | {"amx_bf16": True}, 80e9, 900e9, "bfloat16", id="AMX"),
        pytest.param({"neon": True, "bf16": True}, 30e9, 60e9, "bfloat16", id="Arm"),
        pytest.param({}, 30e9, 60e9, "float32", id="torch does not tell"),
    ],
)
def test_auto_needs_the_instructions_and_the_faster_product(
    monkeypatch, capabilities, float32, bfloat16, taken
):
    fake(monkeypatch, capabilities, float32, bfloat16)
    assert choose_precision("auto", CPU) == taken
    assert choose_precision("float32", CPU) == "float32"
    assert choose_precision("bfloat16", CPU) == "bfloat16", (
        "what is asked for is not argued with"
    )


def test_the_words_tell_both_rates_and_what_is_taken(monkeypatch):
    fake(monkeypatch, AVX2, 31.25e9, 0.25e9)
    assert (
        describe_rates(CPU)
        == "float32 31.2, bfloat16 0.25 GFLOP/s a thread; precision auto takes float32"
    )


@pytest.mark.parametrize(
    ("reported", "taken"), [(True, "bfloat16"), (False, "float32")]
)
def test_a_gpu_is_asked_whether_it_has_bfloat16_without_emulating_it(
    monkeypatch, reported, taken
):
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: reported
    )
    monkeypatch.setattr(
        precision, "product_rates", lambda where: pytest.fail("a GPU is not timed")
    )
    assert choose_precision("auto", CUDA) == taken


def test_elsewhere_auto_is_float32():
    assert choose_precision("auto", torch.device("mps")) == "float32"


def test_all_processes_compute_in_what_the_first_chose(monkeypatch):
    fake(monkeypatch, AVX2, 2.0, 1.0)
    assert agreed_precision("auto", CPU) == "float32"
    # which timed another product
    monkeypatch.setattr(precision, "copy_from_first", lambda chosen: chosen.fill_(2))
    assert agreed_precision("auto", CPU) == "bfloat16"


def test_the_rates_are_measured_once_on_one_thread_and_the_threads_are_given_back():
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        product_rates.cache_clear()
        rates = product_rates(CPU)
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    assert product_rates(CPU) is rates
    assert list(rates) == ["float32", "bfloat16"]
    assert all(1e7 < rate < 1e14 for rate in rates.values())


def test_another_precision_is_refused_wherever_one_is_named():
    for refuse in (
        lambda: choose_precision("float16", CPU),
        lambda: TrainingConfig(steps=1, precision="float16"),
        lambda: FineTuningConfig(precision="float16"),
    ):
        with refusal("precision is 'float16'; choose one of auto, float32, bfloat16"):
            refuse()


def test_in_float32_an_autocast_changes_nothing():
    ones = torch.ones(2, 3)
    with autocast("float32", CPU):
        assert (ones @ ones.T).dtype == torch.float32


@pytest.mark.parametrize(("bf16", "name"), [(True, "bfloat16"), (False, "float32")])
def test_what_was_stored_as_bf16_is_read_as_a_precision(bf16, name):
    stored = {"seed": 5, "bf16": bf16}
    assert read_settings(stored) == {"seed": 5, "precision": name}
    assert stored == {"seed": 5, "bf16": bf16}, "what was stored is left as it is"
    assert FineTuningConfig(**read_settings(stored)) == FineTuningConfig(
        seed=5, precision=name
    )
    assert read_settings({"steps": 3, "precision": name}) == {
        "steps": 3,
        "precision": name,
    }


ASKS = """
import json, torch
from torch import nn
from course_lib.training.precision import choose_precision, has_bfloat16, product_rates
from course_lib.training.loop import TrainingConfig, set_seed, train

cpu = torch.device("cpu")
set_seed(0)
model, inputs, dtypes = nn.Linear(64, 64), torch.randn(128, 64), []

def loss(model, batch):
    outputs = model(batch)
    dtypes.append(str(outputs.dtype))
    return (outputs - 2 * batch).float().square().sum(), len(batch)

history = train(model, lambda epoch: [inputs], loss, TrainingConfig(steps=20, learning_rate=0.01, precision="auto"))
print(json.dumps({
    "chosen": choose_precision("auto", cpu), "instructions": has_bfloat16(cpu), "rates": product_rates(cpu),
    "history": history.precision, "dtypes": sorted(set(dtypes)), "losses": history.losses,
}))
"""  # noqa: E501
# Each a processor, whatever the real one has: AVX-512 without bfloat16, and AVX2 alone.
OLDER = {
    "AVX-512": {
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI",
        "ATEN_CPU_CAPABILITY": "avx2",
    },
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
}


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["as it is", *OLDER])
def test_a_process_of_its_own_asks_the_machine_and_trains_in_what_it_is_faster_in(
    processor,
):
    if processor in OLDER and platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip(
            f"the variables that make {processor} of a processor are for x86, not"
            f" {platform.machine()}"
        )
    inherited = {
        name: value for name, value in os.environ.items() if name not in OLDER["AVX2"]
    }
    environment = inherited | OLDER.get(processor, {}) | {"COURSE_DEVICE": "cpu"}
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    faster = told["rates"]["bfloat16"] > told["rates"]["float32"]
    assert told["chosen"] == (
        "bfloat16" if told["instructions"] and faster else "float32"
    )
    if processor in OLDER:
        assert told["chosen"] == "float32", told["rates"]
    assert told["history"] == told["chosen"]
    assert told["dtypes"] == [f"torch.{told['chosen']}"]
    assert told["losses"][-1] < told["losses"][0] / 2
