"""Positions that fail: plain and divided indices in place of sines and cosines, for an
ablation (chapter 3)."""

import torch

from course_lib.transformer.model import Transformer


def replace_positions(model: Transformer, kind: str) -> None:
    """Overwrite a model's table of positions."""
    if kind not in ("index", "share"):
        raise ValueError(f"position_table is {kind!r}; choose 'index' or 'share'")
    for embed in (model.encoder.embed, model.embed):
        if embed.table is None:
            raise ValueError(
                "position_table stands in for sines and cosines; leave positions at"
                " 'sinusoidal'"
            )
        index = torch.arange(len(embed.table), dtype=embed.table.dtype)[
            :, None
        ].expand_as(embed.table)
        embed.table = (index if kind == "index" else index / len(index)).clone()
