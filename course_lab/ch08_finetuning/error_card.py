"""The model card of a fine-tuned model: a page that is made from the record of its
mistakes alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course_lab.records import Record
from course_lib.data.corpus import markdown_table
from course_lib.files import write_whole

CARD = "README.md"


def write_card(folder: Path, record: Record, result: Mapping[str, Any]) -> Path:
    """Write the card of a model into its folder."""
    write_whole(folder / CARD, card(record, result))
    return folder / CARD


def card(record: Record, result: Mapping[str, Any]) -> str:
    """Return the model card of a fine-tuned model."""
    plan = record.configuration["plan"]
    [variant] = plan["variants"].values()
    checkpoint = result["variant"].split(",")[0]
    machine = record.machine
    counts = list(result["kinds"].items())
    lines = [
        f"# {checkpoint}, fine-tuned on {plan['data']}",
        f"This page is made from the record `{record.name}` by the command that"
        " measured every number here.",
        markdown_table(("", ""), _facts(plan, variant, result)),
        "## What it gets wrong",
        f"On {result['rows']:,} rows that it was not trained on.",
        markdown_table(("kind", "number"), counts),
    ]
    if "confusion" in result:
        labels, table = result["confusion"]["labels"], result["confusion"]["counts"]
        rows = [
            (f"**{label}**", *row) for label, row in zip(labels, table, strict=True)
        ]
        lines.append(markdown_table(("gold, then predicted", *labels), rows))
    lines += [
        "For example:",
        example_table(result),
        "## How far its probabilities can be believed",
        calibration_table(result),
        "## Made by",
        f"    {record.command}",
        f"At commit {record.commit}, {record.date}, on {machine['name']}"
        f" ({machine['device']}, {machine['threads']} thread(s)), Python"
        f" {machine['python']}, torch {machine['torch']}.\n",
    ]
    return "\n\n".join(lines)


def example_table(result: Mapping[str, Any]) -> str:
    """Write the mistakes that a record shows as a Markdown table."""
    rows = [
        (
            shown["kind"],
            *(_plain(shown[name]) for name in ("input", "gold", "guess")),
            f"{shown['probability']:.1%}" if "probability" in shown else "",
        )
        for shown in result["examples"]
    ]
    return markdown_table(("mistake", "input", "gold", "predicted", "confidence"), rows)


def calibration_table(result: Mapping[str, Any]) -> str:
    """Write the calibrations of a record as a Markdown table."""
    rows = []
    for name, told in result["calibration"].items():
        if name == "with a temperature":
            name += " of " + " and ".join(f"{x:.2f}" for x in result["temperatures"])
        means = [
            np.average(told[column], weights=told["guesses"])
            for column in ("confidence", "accuracy")
        ]
        rows.append((name, *(f"{x:.1%}" for x in (*means, told["error"]))))
    return markdown_table(
        ("", "mean confidence", "accuracy", "expected calibration error"), rows
    )


def _plain(text: str) -> str:
    """As it is read, not as Markdown would set it."""
    return "".join(f"\\{x}" if x in "\\*_`[]<>#$" else x for x in text)


def _facts(
    plan: Mapping[str, Any], variant: Mapping[str, Any], result: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """What is said of the model, and the value."""
    config, labels = variant["config"], variant["labels"]
    rows = "all rows" if labels is None else f"{labels:,} rows"
    length = f"{config['steps']} steps" if config["steps"] else None
    length = length or f"{config['epochs']} passes"
    batches = f"in batches of {config['batch_size']}"
    rate = f"{config['learning_rate']:g}, warm-up {config['warmup']:.0%} of the steps"
    return [
        ("trained on", f"{plan['data']}, {rows}, {length} {batches}"),
        ("learning rate", rate),
        ("reads", f"up to {plan['max_length']} tokens"),
        ("seed", str(result["seed"])),
        *((name, f"{value:.3f}") for name, value in result["scores"].items()),
    ]
