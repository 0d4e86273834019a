"""Make the file that the capstone ships: our published *tiny*, and what it gives when it is read rightly.

    python solutions/capstone/make_checkpoint.py

writes ``published.safetensors`` beside this file; `course release capstone` then carries it into ``exercises/``. The
tensors are those of ``book/checkpoints/tiny``, byte for byte. The header holds, as JSON, the vocabulary, the sizes, and
what the library gives for a few texts. Nothing is trained, and there is no chance in it.
"""

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from course_lab.ch06_pretraining.shipped import load_shipped
from course_lib.bert.model import BertForPreTraining
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
from safetensors.torch import load_file, save_file

HERE = Path(__file__).parent
NAME = "tiny"
TINY = HERE.parents[1] / "book" / "checkpoints" / NAME
TEXTS = (
    "Return the number of elements in the list.",
    "Raise a ValueError if the file does not exist.",
    "Close the connection.",
    "The default value is None.",
)
HOLES = (
    "Return the [MASK] of elements in the list.",
    "The default [MASK] is None.",
    "Raise a ValueError [MASK] the file does not exist.",
)
MOST = 4


def recorded(model: BertForPreTraining, tokenizer: FastWordPiece) -> dict[str, Any]:
    """Return what the library gives: ids, states and vectors of texts, logits, and what it puts into holes."""
    model.eval()
    encoded = [tokenizer.encode(text) for text in TEXTS]
    with torch.no_grad():
        states = [model.bert(torch.tensor([text.ids])).last_hidden_state[0] for text in encoded]
        logits = model(torch.tensor([encoded[0].ids])).prediction_logits[0]  # [T, V]
    vectors = torch.stack([state[1:-1].mean(dim=0) for state in states])
    return {
        "texts": TEXTS,
        "ids": [text.ids for text in encoded],
        "hidden": [state[:, :3].tolist() for state in states],
        "logits": [[row.argmax().item(), row.max().item()] for row in logits],
        "cosines": F.cosine_similarity(vectors[:, None], vectors[None], dim=-1).tolist(),
        "holes": {text: fillings(model, tokenizer, text) for text in HOLES},
    }


def fillings(
    model: BertForPreTraining, tokenizer: FastWordPiece, text: str
) -> list[tuple[str, float]]:
    """Return the likeliest pieces in the place of [MASK], special tokens left out, and their probabilities."""
    ids = torch.tensor([tokenizer.encode(text).ids])
    (place,) = (ids[0] == tokenizer.vocab["[MASK]"]).nonzero().flatten().tolist()
    with torch.no_grad():
        logits = model(ids).prediction_logits[0, place]
    logits[[tokenizer.vocab[piece] for piece in SPECIAL_TOKENS]] = -torch.inf
    chances, best = logits.softmax(dim=-1).topk(MOST)
    return [
        (tokenizer.pieces[index], chance)
        for index, chance in zip(best.tolist(), chances.tolist(), strict=True)
    ]


def main() -> None:
    model, tokenizer = load_shipped(NAME)
    config = model.config
    sizes = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "max_position_embeddings": config.max_position_embeddings,
        "type_vocab_size": config.type_vocab_size,
        "layer_norm_eps": config.layer_norm_eps,
    }
    facts = {"vocab": tokenizer.pieces, "sizes": sizes, "recorded": recorded(model, tokenizer)}
    metadata = {"format": "pt", "course": json.dumps(facts)}
    save_file(
        load_file(TINY / "model.safetensors"), HERE / "published.safetensors", metadata=metadata
    )


if __name__ == "__main__":
    main()
