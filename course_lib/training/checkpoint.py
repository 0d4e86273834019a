"""Checkpoints: one safetensors file, written whole or not at all.

A checkpoint is a single file. Weights, optimizer state and the long series of the
history are its tensors; everything else (the position in the data, the settings, the
metrics) is JSON in the file's own header. One file cannot mix the halves of two saves,
and no byte of it is ever executed, as a pickle would be.

A save writes ``.<name>.partial`` beside the checkpoint, flushes it to the disk and
renames it. A rename within a folder is atomic, so a crash at any instant leaves either
the earlier checkpoint or the new one. A left-over partial file is overwritten by the
next save.

What this module does not do: keep several checkpoints, or lock a path against a second
run that writes to it.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor, nn

FORMAT = "course_lib-1"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written, read or applied; the message says which file
    and what to do."""


def save_tensors(
    path: str | Path,
    tensors: Mapping[str, Tensor],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write named tensors and JSON facts to one safetensors file, atomically."""
    path = Path(path)
    # Clones, because safetensors refuses tensors that share memory, as tied embeddings
    # do.
    host = {
        name: tensor.detach().to("cpu", copy=True).contiguous()
        for name, tensor in tensors.items()
    }
    told = json.dumps(dict(facts or {}))
    header = {"format": FORMAT, "checksum": str(_checksum(host, told)), "facts": told}
    _write_atomically(path, to_safetensors(host, metadata=header))


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, and check that no byte of it has changed."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(
            f"there is no checkpoint {path}; check the path, or train first"
        )
    remedy = (
        "The file was left untouched: restore it from a copy, or move it away and train"
        " anew."
    )
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is no complete safetensors file ({error}). {remedy}"
        ) from error
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} was not written by this course (format {header.get('format')!r})."
            f" {remedy}"
        )
    try:
        stored, facts = int(header["checksum"]), json.loads(header["facts"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"the header of {path} is damaged ({error}). {remedy}"
        ) from error
    if stored != _checksum(tensors, header["facts"]):
        raise CheckpointError(
            f"{path} is damaged: its content does not match its checksum. {remedy}"
        )
    return tensors, facts


def save_weights(
    model: nn.Module, path: str | Path, facts: Mapping[str, Any] | None = None
) -> None:
    """Save a model's weights (and JSON facts such as its configuration) to a
    safetensors file, atomically."""
    save_tensors(path, model.state_dict(), facts)


def load_weights(model: nn.Module, path: str | Path) -> dict[str, Any]:
    """Load weights that `save_weights` saved into a model of the same shape."""
    tensors, facts = load_tensors(path)
    check_weights(model, tensors, path)
    model.load_state_dict(tensors)
    return facts


def check_weights(
    model: nn.Module, tensors: Mapping[str, Tensor], path: str | Path
) -> None:
    """Raise in words unless `tensors` are exactly the weights that `model` has."""
    expected = model.state_dict()
    complaints = []
    if missing := sorted(expected.keys() - tensors.keys()):
        complaints.append(f"missing: {_some(missing)}")
    if unexpected := sorted(tensors.keys() - expected.keys()):
        complaints.append(f"unexpected: {_some(unexpected)}")
    if shapes := [
        f"{name} is {tuple(tensors[name].shape)} in the file,"
        f" {tuple(expected[name].shape)} in the model"
        for name in sorted(expected.keys() & tensors.keys())
        if tensors[name].shape != expected[name].shape
    ]:
        complaints.append(f"of another shape: {_some(shapes)}")
    if complaints:
        raise CheckpointError(
            f"{path} does not fit this model: {'; '.join(complaints)}. Build the model"
            " with the settings it was saved with, or choose another file."
        )


def _some(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def _checksum(tensors: Mapping[str, Tensor], facts: str) -> int:
    """CRC-32 over facts, names, shapes, types and bytes: it finds accidents and is no
    defence against forgery."""
    total = zlib.crc32(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(
            f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total
        )
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return total


def _write_atomically(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_and_rename(path.with_name(f".{path.name}.partial"), path, content)
    except OSError as error:
        kept = (
            "The earlier checkpoint is intact."
            if path.exists()
            else "There is no earlier checkpoint."
        )
        remedy = (
            f"free at least {len(content) / 1e6:.1f} MB there or choose another folder"
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            else "check that the folder exists and is writable"
        )
        raise CheckpointError(
            f"could not save {path}: {error.strerror or error}; {remedy}. {kept}"
        ) from error


def _write_and_rename(partial: Path, path: Path, content: bytes) -> None:
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:  # Ctrl-C as well: no debris
        partial.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can flush folders
    (POSIX)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
