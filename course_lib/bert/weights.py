"""The weights of a BERT under two sets of names: ours, and those that published
checkpoints use.

Each side calls the same numbers differently (`published_name`). `PublishedWeights`
reads a file's header first, so that a file that does not fit is refused before a weight
is read.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

# Our layers and the published ones; # is the number of a block.
LAYERS: dict[str, str] = {
    "embeddings.token": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.segment": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "blocks.#.attention.query": "encoder.layer.#.attention.self.query",
    "blocks.#.attention.key": "encoder.layer.#.attention.self.key",
    "blocks.#.attention.value": "encoder.layer.#.attention.self.value",
    "blocks.#.attention.output": "encoder.layer.#.attention.output.dense",
    "blocks.#.norm1": "encoder.layer.#.attention.output.LayerNorm",
    "blocks.#.feed_forward.expand": "encoder.layer.#.intermediate.dense",
    "blocks.#.feed_forward.contract": "encoder.layer.#.output.dense",
    "blocks.#.norm2": "encoder.layer.#.output.LayerNorm",
    "pooler.dense": "pooler.dense",
    "mlm_head.dense": "cls.predictions.transform.dense",
    "mlm_head.norm": "cls.predictions.transform.LayerNorm",
    "mlm_head.output": "cls.predictions",
    "nsp_head.output": "cls.seq_relationship",
}
ENCODER = ("embeddings.", "encoder.", "pooler.")
TIED = "embeddings.word_embeddings.weight"
DECODER = {
    "cls.predictions.decoder.weight": TIED,
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
POSITION_IDS = "embeddings.position_ids"
FLOATS = ("F16", "BF16", "F32", "F64")


def published_name(name: str) -> str:
    """Say what published checkpoints call one of our parameters.

    Parameters
    ----------
    name
        Of a parameter of `BertModel` or `BertForPreTraining`.

    Returns
    -------
    str
        The name without the ``bert.`` that stands before the encoder's names in a
        checkpoint with heads.

    Examples
    --------
    >>> published_name("bert.blocks.3.feed_forward.expand.bias")
    'encoder.layer.3.intermediate.dense.bias'
    >>> published_name("blocks.0.attention.key.weight")
    'encoder.layer.0.attention.self.key.weight'
    """
    layer, _, kind = name.removeprefix("bert.").rpartition(".")
    if name == "mlm_head.output.weight":  # the output layer is the token embedding
        return TIED
    number = re.search(r"(?<=blocks\.)\d+", layer)
    if number is None:
        return f"{LAYERS[layer]}.{kind}"
    theirs = LAYERS[layer.replace(number[0], "#", 1)]
    return f"{theirs}.{kind}".replace("#", number[0])


def to_published(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give a model's weights their published names."""
    return {
        ("bert." if name.startswith("bert.") else "") + published_name(name): tensor
        for name, tensor in weights.items()
        if name != "mlm_head.output.weight"
    }


class PublishedWeights:
    """An open safetensors file, by the names of today without the prefix ``bert.``."""

    def __init__(self, path: Path, file: Any):
        self.path, self._file = path, file
        self.names: dict[str, str] = {}  # today's name -> the name in the file
        for name in file.keys():  # noqa: SIM118 (no mapping)
            today = name.removeprefix("bert.")
            today = today.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
                "LayerNorm.beta", "LayerNorm.bias"
            )
            if today in self.names:
                self._refuse(
                    f"it has {today} twice, as {self.names[today]} and as {name}"
                )
            self.names[today] = name
        for copy, original in DECODER.items():
            if copy in self.names and original not in self.names:
                self.names[original] = self.names.pop(copy)

    def read(self, published: str) -> Tensor:
        """Return the tensor of this name."""
        tensor: Tensor = self._file.get_tensor(self.names[published])
        return tensor

    def has(self, published: str) -> bool:
        """Say whether the file holds this name; the token embedding is in all."""
        return published in self.names and published != TIED

    def check_layers(self, expected: int) -> None:
        """Refuse a file with more or fewer blocks."""
        numbers = {
            match[1]
            for name in self.names
            if (match := re.match(r"encoder\.layer\.(\d+)\.", name))
        }
        if len(numbers) != expected:
            self._refuse(
                f"its configuration says num_hidden_layers={expected}, but the file has"
                f" {len(numbers)} layers"
            )

    def check_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuse a file that lacks a tensor, or has one of another shape or type;
        `shapes` has ours, by their names."""
        if missing := sorted(shapes.keys() - self.names.keys()):
            self._refuse(
                f"the file lacks {some(missing)}; is it a BERT's, and complete?"
            )
        for name, expected in shapes.items():
            found, kind = self._header(name)
            if found != expected:
                self._refuse(
                    f"{self.names[name]} is {found} in the file, but {expected} by the"
                    " configuration"
                )
            if kind not in FLOATS:
                self._refuse(
                    f"{self.names[name]} is of type {kind}; only {', '.join(FLOATS)}"
                    " can be read"
                )

    def left_over(self, used: Iterable[str]) -> list[str]:
        """List what the file holds beside the names used, and refuse it where it would
        change the numbers."""
        # an older version wrote 0, 1, 2, ... down
        rest = self.names.keys() - set(used) - {POSITION_IDS}
        if DECODER["cls.predictions.decoder.bias"] in used:
            for copy, original in DECODER.items():
                if copy in rest and not self._equal(copy, original):
                    self._refuse(
                        f"{copy} is not equal to {original}, but here both are one"
                        " (tied)"
                    )
            rest -= DECODER.keys()
        if foreign := sorted(name for name in rest if name.startswith(ENCODER)):
            self._refuse(
                f"its encoder has {some(foreign)}, which this BERT lacks, so its"
                " numbers would be others"
            )
        return [self.names[name] for name in sorted(rest)]

    def _header(self, name: str) -> tuple[tuple[int, ...], str]:
        header = self._file.get_slice(self.names[name])
        return tuple(header.get_shape()), header.get_dtype()

    def _equal(self, copy: str, original: str) -> bool:
        return self._header(copy) == self._header(original) and torch.equal(
            self.read(copy), self.read(original)
        )

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self.path} does not fit this BERT: {why}")


def some(names: Iterable[str], most: int = 8) -> str:
    """Join names for a message, the first few of many."""
    names = list(names)
    return ", ".join(names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )
