"""What a published checkpoint computes: how it splits texts, the shapes of its states,
and one word in two senses (chapter 5). The record holds it, since a page fetches
nothing.
"""

from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from course_lib.bert.files import load_bert
from course_lib.bert.model import BertModel, BertOutput
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import Encoding

TEXTS = (
    ("the cat sleeps", "it dreams"),
    ("a visually stunning rumination on love", None),
)
#: *bank* is the second word of each, so that all six start from the same vector.
SENSES = {
    "river": (
        "the bank was steep and muddy",
        "the bank slopes down to the river",
        "the bank is covered with grass",
    ),
    "money": (
        "the bank was closed on monday",
        "the bank lends money to farmers",
        "the bank is owned by shareholders",
    ),
}
WORD = "bank"
SHOWN = 4  # features of a state


def run(folder: Path, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield what the checkpoint of a folder computes in float32, and an untrained model
    of its sizes beside it."""
    tokenizer = FastWordPiece.load(folder)
    model = load_bert(folder, dtype=torch.float32).eval()
    sizes = {x: getattr(model.config, x) for x in ("vocab_size", "hidden_size")}
    sizes["num_hidden_layers"] = model.config.num_hidden_layers
    sizes["num_attention_heads"] = model.config.num_attention_heads
    sizes["parameters"] = sum(x.numel() for x in model.parameters())
    weights = load_file(folder / "model.safetensors").values()
    stored = sorted(
        {str(weight.dtype) for weight in weights if weight.is_floating_point()}
    )
    yield {"what": "sizes", **sizes, "weights stored as": stored}
    for text, pair in TEXTS:
        encoding = tokenizer.encode(text, pair)
        output = encode(model, encoding)
        yield {
            "what": "text",
            "text": [text] if pair is None else [text, pair],
            "tokens": encoding.tokens,
            "ids": encoding.ids,
            "type_ids": encoding.type_ids,
            "last_hidden_state": list(output.last_hidden_state.shape),
            "pooler_output": list(output.pooler_output.shape),
            "first_state": output.last_hidden_state[0, 0, :SHOWN].tolist(),
        }
    torch.manual_seed(seed)
    untrained = BertModel(model.config).eval()
    for name, compared in (("published", model), ("untrained", untrained)):
        same, other = similarities(compared, tokenizer)
        yield {"what": WORD, "model": name, "same sense": same, "other sense": other}


@torch.no_grad()
def encode(model: BertModel, encoding: Encoding) -> BertOutput:
    """Return the states of one text or pair, of all layers."""
    ids, segments = torch.tensor([encoding.ids]), torch.tensor([encoding.type_ids])
    return model(ids, token_type_ids=segments, return_hidden_states=True)


def similarities(
    model: BertModel, tokenizer: FastWordPiece
) -> tuple[list[float], list[float]]:
    """Return the mean cosine of two states of `WORD`, layer by layer, the embeddings
    first: in sentences of the same sense, and of different ones."""

    def states(text: str) -> Float[Tensor, "N D"]:
        encoding = tokenizer.encode(text)
        hidden = encode(model, encoding).hidden_states or ()
        return torch.cat([layer[:, encoding.tokens.index(WORD)] for layer in hidden])

    river, money = ([states(text) for text in texts] for texts in SENSES.values())

    def mean(pairs: list[tuple[Tensor, Tensor]]) -> list[float]:
        cosines = [torch.cosine_similarity(one, two, dim=-1) for one, two in pairs]
        return torch.stack(cosines).mean(dim=0).tolist()

    same = [*combinations(river, 2), *combinations(money, 2)]
    return mean(same), mean(list(product(river, money)))
