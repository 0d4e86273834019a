"""Put the book's own BERTs into the page: their weights, in whole numbers, as scripts.

A page that is opened from disk may load a script and nothing else. So `write_live`
leaves a model as a few scripts beside the site, each with a part of its bytes, and
`book/_static/live.js` loads them when a reader asks for the model. `readWeights` in
`book/_static/bert.js` reads the bytes; `restored_model` gives Python the same model, so
that a page can say what the rounding changed.

What this module does not do: it trains nothing, and runs nothing but to compare.
"""

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lab.ch04_wordpiece.tokenizer_explorer import tokenizer_data
from course_lab.ch04_wordpiece.wordpiece_page import character_tables
from course_lab.ch06_pretraining.pretrain import scaled_size
from course_lab.ch06_pretraining.shipped import load_shipped
from course_lab.ch09_sentence_bert.search_explorer import HIGHEST
from course_lib.attention.weights import watch_attention
from course_lib.bert.model import BertForPreTraining
from course_lib.data import load
from course_lib.data.sentences import split_sentences
from course_lib.figures.explorer import script_safe
from course_lib.wordpiece.fast import FastWordPiece

MODELS = ("tiny", "mini")
FOLDER = "_static/live"  # where the site has the scripts, from the page
PART = 600_000  # bytes of a part before they are written in base64
CALIBRATION = 256  # sentences of each training split that rounding looks at
POSITIONS = 128  # the longest sequence that the shipped models have read
#: Small tables, read at each token, stay as they are: rounding them costs most.
EXACT = ("bert.embeddings.position", "bert.embeddings.segment", "nsp_head")
SHARES = torch.linspace(0.8, 1.0, 9)  # of a row's largest number, for the scale
#: Bytes of all scripts of a model: what a reader can be asked to load.
LARGEST = {"tiny": 2_300_000, "mini": 7_800_000}


def tensors(model: BertForPreTraining) -> dict[str, Tensor]:
    """Return the weights by the library's names, positions as far as they were trained;
    the output layer's matrix is the embedding's, and left out."""
    state = model.state_dict()
    del state["mlm_head.output.weight"]
    name = "bert.embeddings.position.weight"
    return {**state, name: state[name][:POSITIONS]}


def is_rounded(name: str, tensor: Tensor) -> bool:
    """Say whether a tensor is written in int8."""
    return tensor.dim() == 2 and not name.startswith(EXACT)


def row_scales(matrix: Float[Tensor, "R C"]) -> Float[Tensor, "R"]:
    """Return for each row the scale that makes its squared error smallest when it is
    rounded: the largest number may be clipped for the others' sake."""
    candidates = matrix.abs().amax(dim=1) / HIGHEST * SHARES[:, None]  # (9, R)
    candidates = candidates.clamp(min=1e-12)
    errors = [
        (whole(matrix, scale) * scale[:, None] - matrix).square().sum(dim=1)
        for scale in candidates
    ]
    best = torch.stack(errors).argmin(dim=0, keepdim=True)
    return candidates.gather(0, best)[0]


def whole(matrix: Float[Tensor, "R C"], scale: Float[Tensor, "R"]) -> Tensor:
    """Round each row to whole numbers from -127 to 127, in units of its scale."""
    return (matrix / scale[:, None]).round().clamp(-HIGHEST, HIGHEST)


def rounded_for(
    matrix: Float[Tensor, "R C"],
    scale: Float[Tensor, "R"],
    products: Float[Tensor, "C C"],
) -> Float[Tensor, "R C"]:
    """Round a layer's matrix column by column, and let the columns that are still to
    come make up for what each one lost (Frantar et al. 2023, GPTQ).

    `products` are the sums of the products of the layer's inputs, X^T X, over sentences
    that it has read.
    """
    size = len(products)
    damped = products.double() + 0.01 * products.diagonal().mean() * torch.eye(size)
    factor = torch.linalg.cholesky(torch.linalg.inv(damped), upper=True)
    left, numbers = matrix.double(), torch.empty_like(matrix)
    for column in range(size):
        numbers[:, column] = whole(left[:, [column]], scale)[:, 0]
        lost = left[:, column] - numbers[:, column] * scale
        after = factor[column, column + 1 :] / factor[column, column]
        left[:, column + 1 :] -= torch.outer(lost, after)
    return numbers


@torch.no_grad()
def input_products(
    model: BertForPreTraining, tokenizer: FastWordPiece, sentences: Sequence[str]
) -> dict[str, Tensor]:
    """Sum the products of each linear layer's inputs over pairs of sentences with a
    masked token, by the name of the layer's matrix."""
    found: dict[str, Tensor] = {}

    def note(name: str, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        rows = inputs[0].flatten(0, -2)
        found[name] = found.get(name, 0) + rows.T @ rows

    hooks = [
        layer.register_forward_pre_hook(partial(note, f"{name}.weight"))
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear)
    ]
    for first, second in zip(sentences[::2], sentences[1::2], strict=True):
        ids, behind = tokenizer.encode(first).ids, tokenizer.encode(second).ids[1:]
        holed, place = masked(ids, tokenizer.vocab["[MASK]"])
        row = torch.tensor([holed + behind])[:, :POSITIONS]
        types = torch.tensor([[0] * len(ids) + [1] * len(behind)])[:, :POSITIONS]
        at = torch.tensor([place])
        model(row, token_type_ids=types, masked_positions=at)
    for hook in hooks:
        hook.remove()
    return found


def in_whole_numbers(
    model: BertForPreTraining, tokenizer: FastWordPiece, sentences: Sequence[str]
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the numbers and scales of each tensor that is rounded, by name."""
    products = input_products(model, tokenizer, sentences)
    written = {}
    for name, tensor in tensors(model).items():
        if is_rounded(name, tensor):
            scale = row_scales(tensor)
            seen = products.get(name)
            numbers = (
                whole(tensor, scale)
                if seen is None  # an embedding
                else rounded_for(tensor, scale, seen)
            )
            written[name] = (numbers, scale)
    return written


def weight_bytes(
    model: BertForPreTraining, numbers: Mapping[str, tuple[Tensor, Tensor]]
) -> bytes:
    """Write each tensor as a scale a row and int8, or as float32."""
    written = []
    for name, tensor in tensors(model).items():
        if name in numbers:
            rows, scale = numbers[name]
            written += [scale.numpy().astype("<f4").tobytes()]
            written += [rows.numpy().astype(np.int8).tobytes()]
        else:
            written.append(tensor.numpy().astype("<f4").tobytes())
    return b"".join(written)


def restored_model(
    model: BertForPreTraining, numbers: Mapping[str, tuple[Tensor, Tensor]]
) -> BertForPreTraining:
    """Return the model that the page has: each matrix rounded and read again."""
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for name, tensor in tensors(rounded).items():
            if name in numbers:
                rows, scale = numbers[name]
                tensor.copy_(rows * scale[:, None])
    return rounded


def model_settings(model: BertForPreTraining) -> dict[str, object]:
    """Return what a page must know of a model beside its numbers."""
    names = ("num_hidden_layers", "num_attention_heads", "layer_norm_eps")
    config = {name: getattr(model.config, name) for name in names}
    config |= {"max_position_embeddings": POSITIONS}
    config |= {"initializer_range": scaled_size(model.config)}  # the control's
    table = [
        [
            name,
            1 if tensor.dim() == 1 else len(tensor),
            tensor.shape[-1],
            is_rounded(name, tensor),
        ]
        for name, tensor in tensors(model).items()
    ]
    return {"config": config, "table": table}


def model_scripts(name: str, model: BertForPreTraining, data: bytes) -> Iterator[str]:
    """Write a model as scripts that call ``courseLivePart``, one for each part."""
    settings = model_settings(model)
    parts = [data[start : start + PART] for start in range(0, len(data), PART)]
    for number, part in enumerate(parts):
        told = {"model": name, "part": number, "bytes": len(data)}
        if number == 0:
            told |= settings
        told["data"] = base64.b64encode(part).decode("ascii")
        yield f"courseLivePart({script_safe(told)});\n"


def write_live(folder: Path) -> None:
    """Write the tokenizer and the models as scripts into a folder of the site."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.js"):
        old.unlink()
    sentences = calibration()
    for name in MODELS:
        model, tokenizer = load_shipped(name)
        numbers = in_whole_numbers(model, tokenizer, sentences)
        scripts = list(model_scripts(name, model, weight_bytes(model, numbers)))
        size = sum(map(len, scripts))
        if size > LARGEST[name]:
            raise ValueError(
                f"the scripts of {name} take {size:,} bytes, more than the"
                f" {LARGEST[name]:,} that a reader can be asked to load"
            )
        for number, script in enumerate(scripts):
            (folder / f"{name}-{number}.js").write_text(script, encoding="utf-8")
        counts = {"model": name, "parts": len(scripts), "bytes": size}
        data = {**tokenizer_data(tokenizer.pieces, *character_tables()), **counts}
        text = f"courseLiveTokenizer({script_safe(data)});\n"
        (folder / f"{name}-tokenizer.js").write_text(text, encoding="utf-8")


def sentences_of(data: str, split: str, count: int) -> list[str]:
    """Return sentences of 5 to 40 words, from all over a split."""
    every = [
        sentence
        for row in load(data)[split]
        for paragraph in row["paragraphs"]
        for sentence in split_sentences(paragraph)
        if 5 <= len(sentence.split()) <= 40
    ]
    return every[:: len(every) // count][:count]


def calibration() -> list[str]:
    """Return the sentences that rounding looks at."""
    return [
        sentence
        for data in ("pydocs", "stories")
        for sentence in sentences_of(data, "train", CALIBRATION)
    ]


class Rounding(NamedTuple):
    """What int8 changed, on sentences with one masked token each."""

    sentences: int
    same: float
    largest: float
    attention: float
    accuracy: float
    accuracy_rounded: float


def masked(ids: Sequence[int], mask_id: int) -> tuple[list[int], int]:
    """Mask the token in the middle of a sequence, and say where that is."""
    place = len(ids) // 2
    return [*ids[:place], mask_id, *ids[place + 1 :]], place


@torch.no_grad()
def rounding(
    model: BertForPreTraining,
    rounded: BertForPreTraining,
    tokenizer: FastWordPiece,
    sentences: Sequence[str],
) -> Rounding:
    """Compare a model with what the page has of it, at a masked token of each
    sentence."""
    rows = []
    with watch_attention(model) as exact, watch_attention(rounded) as close:
        for sentence in sentences:
            ids = tokenizer.encode(sentence).ids[:POSITIONS]
            holed, place = masked(ids, tokenizer.vocab["[MASK]"])
            before, after = (
                one(torch.tensor([holed]), masked_positions=torch.tensor([place]))[0]
                .softmax(-1)
                .flatten()
                for one in (model, rounded)
            )
            best, other = int(before.argmax()), int(after.argmax())
            far = float((before - after).abs().max())
            rows.append((best == other, far, best == ids[place], other == ids[place]))
    moved = max(
        float((before - after).abs().max())
        for layer, weights in exact.items()
        for before, after in zip(weights, close[layer], strict=True)
    )
    table = torch.tensor(rows, dtype=torch.float64)
    same, _, right, still = table.mean(dim=0).tolist()
    return Rounding(len(rows), same, float(table[:, 1].max()), moved, right, still)
