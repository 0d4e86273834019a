"""A checkpoint of a BERT that tests may spoil."""

import json
from pathlib import Path

from safetensors.torch import load_file, save_file
from tiny import tiny_bert

CONFIG = tiny_bert(
    vocab_size=31,
    intermediate_size=17,
    max_position_embeddings=11,
    type_vocab_size=4,
    layer_norm_eps=1e-7,
    hidden_act="relu",
    dropout=(0.3, 0.1),
)


def rewrite(folder: Path, change) -> None:
    """Let `change` edit the tensors of a checkpoint."""
    tensors = load_file(folder / "model.safetensors")
    save_file(
        change(tensors) or tensors,
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )


def configure(folder: Path, **settings: object) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(
        json.dumps(content | settings), encoding="utf-8"
    )
