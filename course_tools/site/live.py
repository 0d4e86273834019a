"""Put the book's own BERTs into the page: their weights, in whole numbers, as scripts.

A page that is opened from disk may load a script and nothing else. So `write_live`
leaves a model as a few scripts beside the site, each with a part of its bytes, and
`book/_static/live.js` loads them when a reader asks for the model. `unpack` and
`readWeights` in `book/_static/bert.js` read the bytes; `restored_model` gives Python
the same model, so that a page can say what the rounding changed.

What this module does not do: it trains nothing, and runs nothing but to compare.
"""

import base64
import copy
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from course_lib.attention.weights import watch_attention
from course_lib.bert.model import BertForPreTraining
from course_lib.data import load
from course_lib.data.sentences import split_sentences
from course_lib.figures.explorer import script_safe
from course_lib.wordpiece.fast import FastWordPiece

MODELS = ("tiny", "mini")
FOLDER = "_static/live"  # where the site has the scripts, from the page
PART = 600_000  # bytes of a part before they are written in characters
CALIBRATION = 256  # sentences of each training split that rounding looks at
POSITIONS = 128  # the longest sequence that the shipped models have read
#: Small tables, read at each token, stay as they are: rounding them costs most.
EXACT = ("bert.embeddings.segment", "nsp_head")
#: How many steps a matrix's root mean square has: the first part that its name holds.
#: Finer where a step moves attention more, as rounding each alone showed; what only the
#: predictions read is rounded most.
FINENESS = {
    "position": 768,
    "token": 144,
    "blocks.0.attention": 384,
    "blocks.0": 192,
    "query": 192,
    "key": 192,
    "": 64,
}
LOWER = 32  # a whole number is this times an int8, and a rest
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
    """Say whether a tensor is written in whole numbers."""
    return tensor.dim() == 2 and not name.startswith(EXACT)


def step_of(name: str, matrix: Float[Tensor, "R C"]) -> float:
    """Return the unit in which a matrix is written."""
    fineness = next(steps for part, steps in FINENESS.items() if part in name)
    return matrix.square().mean().sqrt().item() / fineness


def whole(numbers: Tensor, step: float) -> Tensor:
    """Round to whole numbers of steps, as far as their two bytes reach."""
    return (numbers / step).round().clamp(-128 * LOWER, 128 * LOWER - 1)


def rounded_for(
    matrix: Float[Tensor, "R C"], step: float, products: Float[Tensor, "C C"]
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
        numbers[:, column] = whole(left[:, column], step)
        lost = left[:, column] - numbers[:, column] * step
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
) -> dict[str, tuple[Tensor, float]]:
    """Return the numbers and the step of each tensor that is rounded, by name."""
    products = input_products(model, tokenizer, sentences)
    written = {}
    for name, tensor in tensors(model).items():
        if is_rounded(name, tensor):
            step = step_of(name, tensor)
            seen = products.get(name)
            numbers = (
                whole(tensor, step)
                if seen is None  # an embedding
                else rounded_for(tensor, step, seen)
            )
            written[name] = (numbers, step)
    return written


def weight_arrays(
    model: BertForPreTraining, numbers: Mapping[str, tuple[Tensor, float]]
) -> Iterator[bytes]:
    """Write each tensor as the upper bytes of its whole numbers and then the lower
    ones, or as float32."""
    for name, tensor in tensors(model).items():
        if name in numbers:
            upper, lower = np.divmod(numbers[name][0].numpy().astype(int), LOWER)
            yield upper.astype(np.int8).tobytes()
            yield lower.astype(np.uint8).tobytes()
        else:
            yield tensor.numpy().astype("<f4").tobytes()


def deflated(arrays: Iterable[bytes]) -> bytes:
    """Write frequent bytes in few bits (RFC 1951), with a code for each array. Weights
    repeat nothing, so only Huffman codes are used; a lower byte takes five bits."""
    writer = zlib.compressobj(9, wbits=-15, memLevel=9, strategy=zlib.Z_HUFFMAN_ONLY)
    written = [writer.compress(array) + writer.flush(zlib.Z_BLOCK) for array in arrays]
    return b"".join([*written, writer.flush()])


def characters(data: bytes) -> str:
    """Write four bytes as five of 85 characters that a script need not escape."""
    text = base64.b85encode(data, pad=True).decode("ascii")
    return text.translate(str.maketrans("&<>", ":,."))


def restored_model(
    model: BertForPreTraining, numbers: Mapping[str, tuple[Tensor, float]]
) -> BertForPreTraining:
    """Return the model that the page has: each matrix rounded and read again."""
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for name, tensor in tensors(rounded).items():
            if name in numbers:
                whole_numbers, step = numbers[name]
                tensor.copy_(whole_numbers * step)
    return rounded


def model_settings(
    model: BertForPreTraining, numbers: Mapping[str, tuple[Tensor, float]]
) -> dict[str, object]:
    """Return what a page must know of a model beside its bytes."""
    names = ("num_hidden_layers", "num_attention_heads", "layer_norm_eps")
    config = {name: getattr(model.config, name) for name in names}
    config |= {"max_position_embeddings": POSITIONS}
    config |= {"initializer_range": scaled_size(model.config)}  # the control's
    table = [
        [
            name,
            1 if tensor.dim() == 1 else len(tensor),
            tensor.shape[-1],
            numbers[name][1] if name in numbers else None,
        ]
        for name, tensor in tensors(model).items()
    ]
    return {"config": config, "table": table}


def model_scripts(
    name: str, model: BertForPreTraining, numbers: Mapping[str, tuple[Tensor, float]]
) -> Iterator[str]:
    """Write a model as scripts that call ``courseLivePart``, one for each part."""
    data = deflated(weight_arrays(model, numbers))
    parts = [data[start : start + PART] for start in range(0, len(data), PART)]
    for number, part in enumerate(parts):
        told = {"model": name, "part": number}
        if number == 0:
            told |= {**model_settings(model, numbers), "bytes": len(data)}
        told["data"] = characters(part)
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
        scripts = list(model_scripts(name, model, numbers))
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
    """Return sentences of 5 to 40 words, from rows all over a split."""
    rows = load(data)[split]
    every = [
        sentence
        for row in rows.select(range(0, len(rows), len(rows) // count or 1))
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
    """What rounding changed, on sentences with one masked token each."""

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
