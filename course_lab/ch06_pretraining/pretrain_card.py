"""The model card of a pre-training: a page that is made from its log alone, so that no
number in it is typed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_lab.ch06_pretraining.pretrain_results import LOG
from course_lib.data.corpus import markdown_table
from course_lib.files import write_whole
from course_lib.training.config import read_settings

CARD = "README.md"
COLUMNS = (
    "",
    "hidden tokens, accuracy",
    "loss (nats)",
    "next sentence, accuracy",
    "loss (nats)",
)
OPTIMIZERS = {
    "adamw": "AdamW",
    "muon": "Muon for the matrices of the layers, AdamW for the rest",
}
TITLES = {"model": "this model", "untrained": "the same model, untrained"}


def write_card(folder: Path) -> Path:
    """Write the model card of a folder from its log."""
    log = json.loads((folder / LOG).read_text(encoding="utf-8"))
    if log["results"] is None:
        raise ValueError(f"the run in {folder} has not ended; resume it first")
    write_whole(folder / CARD, card(log))
    return folder / CARD


def card(log: Mapping[str, Any]) -> str:
    """Return the model card of a run."""
    found, plan = log["results"], log["plan"]
    lines = ["---", "library_name: transformers", "language: en"]
    lines += ["license: bsd-3-clause", "---", ""]
    lines += [f"# BERT {plan['size']}, pre-trained on {plan['data']}", ""]
    lines += [
        "This page is made from `log.json` by the command that trained the model and"
        " measured every number here.",
        "Intervals are 95%, over documents.",
        "",
        markdown_table(("", ""), list(_facts(log).items())),
        "",
    ]
    for split in ("test", "validation"):
        size, scores = found["sizes"][split], found["scores"][split]
        lines += [f"## On the {split} split", ""]
        lines += [
            f"{size['documents']:,} documents, {size['tokens']:,} tokens, text"
            f" {log['fingerprints'][split]}.",
            "",
            markdown_table(COLUMNS, [_row(*told) for told in scores.items()]),
            "",
        ]
    lines += ["## Made by", ""]
    for sitting in log["sittings"]:
        machine = sitting["machine"]
        lines += [f"    {sitting['command']}", ""]
        lines += [
            f"Steps {sitting['from_step']:,} to {sitting['to_step']:,}, begun"
            f" {sitting['began']}, at commit {sitting['commit']},"
            f" {sitting['processes']} process(es) on {machine['name']}"
            f" ({machine['device']}, {machine['threads']} threads), Python"
            f" {machine['python']}, torch {machine['torch']}.",
            "",
        ]
    return "\n".join(lines)


def _facts(log: Mapping[str, Any]) -> dict[str, str]:
    """What is said of the run, and the value."""
    plan, found = log["plan"], log["results"]
    training, masking = read_settings(plan["training"]), plan["masking"]
    speed, work = found["speed"], found["work"]
    text = found["sizes"]["train"]["tokens"]
    pairs = " and next sentences" if plan["next_sentence"] else ""
    masks = "the same" if plan["static_masking"] else "others"
    kind = "bfloat16 autocast" if training["precision"] == "bfloat16" else "float32"
    rate = f"{speed['matrix_flops_per_second'] / 1e9:,.0f} GFLOP/s"
    return {
        "size": f"{plan['size']}, {found['parameters']:,} parameters, vocabulary of"
        f" {plan['vocab_size']:,}",
        "trained on": f"{plan['data']}, train split: {text:,} tokens, text"
        f" {log['fingerprints']['train']}",
        "read": f"{work['tokens']:,} tokens: {work['tokens'] / text:.1f} times the"
        f" text; {work['sequences']:,} sequences",
        "objective": f"hidden tokens{pairs}; {masking['rate']:.0%} of the"
        f" {masking['unit']}s hidden, {masks} in each epoch",
        "steps": f"{training['steps']:,} of {plan['batch_size']} sequences of"
        f" {plan['max_length']} tokens",
        "optimizer": OPTIMIZERS[plan["optimizer"]],
        "learning rate": f"{training['learning_rate']:g},"
        f" {training['warmup_steps']:,} steps of warm-up,"
        f" {training['decay_steps']:,} of decay",
        "regularisation": f"dropout {plan['dropout']:g}, weight decay"
        f" {training['weight_decay']:g}",
        "seed": str(training["seed"]),
        "arithmetic": f"{kind}{', compiled' if plan['compile'] else ''}",
        "time": f"{speed['seconds'] / 60:.1f} minutes, without evaluation and saving",
        "speed": f"{speed['tokens_per_second']:,.0f} tokens,"
        f" {speed['sequences_per_second']:,.0f} sequences a second",
        "work": f"{work['flops']:.3g} operations: {speed['utilisation']:.0%} of the"
        f" matrix rate of {rate}",
    }


def _row(name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
    def share(kind: str) -> str:
        right = f"{kind}_accuracy"
        return f"{told[right]:.1%} ± {told[f'{right}_interval']:.1%}"

    pairs = (
        (share("nsp"), f"{told['nsp_loss']:.3f}") if "nsp_loss" in told else ("", "")
    )
    return (TITLES.get(name, name), share("mlm"), f"{told['mlm_loss']:.3f}", *pairs)
