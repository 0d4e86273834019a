"""What chapter 5 shows of a BERT: where parameters sit, an old checkpoint, the price of
a step."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from course_lab.records import Record
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.bert.weights import published_name
from course_lib.transformer.blocks import EncoderBlock

MINUS = "\N{MINUS SIGN}"
PARTS = ("embeddings", "attention", "feed-forward", "pooler and heads")


def part_of(name: str) -> str:
    """Say which of `PARTS` a parameter of a `BertForPreTraining` belongs to; each layer
    norm counts with its sub-layer."""
    rules = {
        "embeddings": (".embeddings.",),
        "attention": ("attention", ".norm1."),
        "feed-forward": ("feed_forward", ".norm2."),
    }
    for part, words in rules.items():
        if any(word in name for word in words):
            return part
    if "pooler" in name or "_head" in name:
        return "pooler and heads"
    raise ValueError(f"{name} is no parameter of a BertForPreTraining")


def parameters_by_part(config: BertConfig) -> dict[str, int]:
    """Count the parameters of each part of a `BertForPreTraining`, on the meta device:
    of any size, without memory."""
    with torch.device("meta"):
        model = BertForPreTraining(config)
    counts = dict.fromkeys(PARTS, 0)
    # a tied parameter comes once, as the embedding
    for name, parameter in model.named_parameters():
        counts[part_of(name)] += parameter.numel()
    return counts


def size_table(names: Sequence[str]) -> str:
    """Count the parameters of BERT's sizes, by name, and of the original encoder's
    blocks; the whole as a Markdown table."""
    with torch.device("meta"):
        vaswani = [EncoderBlock(512, 8, 2048) for _ in range(6)]
        of_vaswani = sum(x.numel() for block in vaswani for x in block.parameters())
        rows = [
            "| size | layers | hidden size | heads | blocks | encoder | with heads |",
            "| --- " * 7 + "|",
            f"| *Transformer (2017)* | 6 | 512 | 8 | {of_vaswani:,} | | |",
        ]
        for name in names:
            model = BertForPreTraining(config := getattr(BertConfig, name)())
            parts = [model.bert.blocks, model.bert, model]
            counts = [sum(x.numel() for x in part.parameters()) for part in parts]
            sizes = [config.num_hidden_layers, config.hidden_size]
            cells = [name, *sizes, config.num_attention_heads]
            cells += [f"{count:,}" for count in counts]
            rows.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(rows)


def name_table() -> str:
    """Write some of our parameters' names beside the published ones, as a Markdown
    table."""
    names = (
        "embeddings.token.weight",
        "embeddings.segment.weight",
        "blocks.0.attention.query.weight",
        "blocks.0.norm1.weight",
        "blocks.0.feed_forward.expand.weight",
        "pooler.dense.weight",
    )
    rows = [f"| `{name}` | `{published_name(name)}` |" for name in names]
    return "\n".join(["| ours | published |", "| --- | --- |", *rows])


def published_table(results: Sequence[Mapping[str, Any]]) -> str:
    """Write the recorded texts of a published checkpoint, token by token, as Markdown
    tables."""
    tables = []
    for row in results:
        if row["what"] == "text":
            first = ", ".join(f"{x:.2f}" for x in row["first_state"])
            lines = {"token": "tokens", "id": "ids", "segment": "type_ids"}
            rows = [
                f"| {name} | " + " | ".join(map(str, row[key])) + " |"
                for name, key in lines.items()
            ]
            rows.insert(1, "| --- " * (len(row["ids"]) + 1) + "|")
            shape = tuple(row["last_hidden_state"])
            tables.append(
                "\n".join(rows)
                + f"\n\nHidden states of shape `{shape}`; that of [CLS] begins with"
                f" ({first.replace('-', MINUS)}, …)."
            )
    return "\n\n".join(tables)


def sense_table(results: Sequence[Mapping[str, Any]]) -> str:
    """Write the recorded cosines of a word in two senses, layer by layer, as a Markdown
    table."""
    rows = ["| after layer | same sense | other sense | untrained, other sense |"]
    rows.append("| --- " * 4 + "|")
    trained, untrained = (row for row in results if row["what"] == "bank")
    cosines = (trained["same sense"], trained["other sense"], untrained["other sense"])
    for layer, of_layer in enumerate(zip(*cosines, strict=True)):
        cells = [str(layer or "0 (input)"), *(f"{x:.2f}" for x in of_layer)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def draw_all(model: nn.Module, seed: int) -> None:
    """Give every parameter another value than it starts with, so that one left out of a
    computation shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if re.search(r"norm\d?\.weight$", name) else 0.0
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(centre + 0.1 * drawn)


def make_old(folder: Path) -> None:
    """Rewrite a saved checkpoint as one of 2018: gains γ and biases β under their
    Greek names, and a tensor too many."""
    path = folder / "model.safetensors"
    greek = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {
        re.sub("|".join(greek), lambda found: greek[found[0]], name): t
        for name, t in load_file(path).items()
    }
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    # never learned, and saved all the same
    positions = torch.arange(config["max_position_embeddings"])
    tensors["bert.embeddings.position_ids"] = positions[None]
    save_file(tensors, path, metadata={"format": "pt"})


def ladder_of(
    record: Record, device: str = "cpu"
) -> tuple[list[str], dict[str, dict[str, tuple[float, float, float]]]]:
    """Read the ladder of a training step from the record of ``benchmarks/bert.py``."""
    asked = ("ladder", device)
    rows = [row for row in record.results if (row["what"], row["device"]) == asked]
    if not rows:
        raise LookupError(
            f"{record.name} holds no ladder of the device {device!r}; record it with"
            " ladder_rounds above 0"
        )
    ratios: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in rows:
        quartiles = row["low"], row["ratio"], row["high"]
        ratios.setdefault(row["size"], {})[row["mode"]] = quartiles
    return list(dict.fromkeys(row["mode"] for row in rows)), ratios


def rows_that_learn(model: BertModel, length: int) -> torch.Tensor:
    """Say which rows of the position embedding get a gradient from sequences of one
    length."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, model.config.vocab_size, (4, length), generator=generator)
    rows = model.embeddings.position.weight
    (gradient,) = torch.autograd.grad(model(ids).pooler_output.square().sum(), rows)
    return gradient.abs().sum(dim=1) > 0
