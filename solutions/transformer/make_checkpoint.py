"""Train the translator that assignment `transformer` ships, with the code that the assignment's solution consists of.

    python solutions/transformer/make_checkpoint.py

writes ``translator.safetensors`` beside this file; `course release transformer` then carries it into ``exercises/``. The
file holds, and nothing else:

- the weights, rounded to float16, under the names of the solution's modules (``source_embedding.weight``, ...);
- ``trace.*``: what the trained model computes on the way for three sentences, with which the notebook tells a student whose
  translations are wrong which part is the first to go another way;
- in the header, as JSON: both vocabularies, the sizes of the model, and where all this comes from.

The same seed on the same machine gives the same weights. It takes about ten minutes on one core.
"""

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from course_lab.ch01_seq2seq.text import (
    BOS,
    EOS,
    PAD,
    Pair,
    collate,
    encode_pairs,
    train_tokenizer,
)
from course_lib.data import load
from course_lib.training.batches import batches, set_seed
from course_lib.training.config import TrainingConfig
from course_lib.training.loop import train
from course_tools.grading.assignments.source import read_source
from IPython.core.interactiveshell import InteractiveShell
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from traitlets.config import Config

HERE = Path(__file__).parent
MAX_WORDS = 20  # of a source sentence in training
TEST_WORDS = 12  # of a source sentence that the notebook asks for
SIZES = {"dim": 48, "num_heads": 4, "num_layers": 2, "hidden_dim": 96}
RECIPE = TrainingConfig(
    steps=8_000,
    learning_rate=4e-3,
    schedule="cosine",
    warmup_steps=800,
    evaluate_every=2_000,
    clip_norm=1.0,
    progress=False,
)


def solution_parts() -> dict[str, Any]:
    """Run the solution's answers and the locked cell that assembles them, no tests; return what they define."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    for cell in read_source(HERE / "transformer.py").cells:
        role = cell.metadata.get("nbgrader", {})
        first = cell.cell_type == "code" and not role
        if first or (
            cell.cell_type == "code"
            and (role["solution"] or role["grade_id"] in ("setup", "model"))
        ):
            shell.run_cell(cell.source).raise_error()
    return shell.user_ns


def short_sentences(split: str, longest: int) -> tuple[list[str], list[str]]:
    """English and French of a split of the course's `translation` data, up to a number of English words."""
    rows = [
        row
        for row in load("translation", source="embedded")[split]
        if len(row["en"].split()) <= longest
    ]
    return [row["en"] for row in rows], [row["fr"] for row in rows]


def build(parts: dict[str, Any], source_words: int, target_words: int) -> nn.Module:
    """The assembled model, with weights that the training can start from."""
    model = parts["Transformer"](source_words, target_words, **SIZES)
    for name, parameter in model.named_parameters():
        if "embedding" in name:
            nn.init.normal_(
                parameter, std=SIZES["dim"] ** -0.5
            )  # embed() multiplies by the square root of dim
        elif parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return model


def loss_sum(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Cross-entropy in nats summed over words, labels smoothed by 0.1 (Vaswani et al. 2017, section 5.4), and its count."""
    memory = model.encode(batch["source_ids"], batch["source_lengths"])
    scores = model.decode(batch["target_ids"], memory, batch["source_lengths"])
    labels = batch["labels"].flatten()
    loss = nn.functional.cross_entropy(
        scores.flatten(0, 1), labels, ignore_index=PAD, label_smoothing=0.1, reduction="sum"
    )
    return loss, (labels != PAD).sum()


def translate(parts: dict[str, Any], model: nn.Module, pairs: list[Pair]) -> list[list[int]]:
    """Greedy translations by the solution's own search, in the order given."""
    with torch.no_grad():
        words: list[list[int]] = []
        for start in range(0, len(pairs), 50):
            batch = collate(pairs[start : start + 50])
            words += parts["greedy_decode"](
                model, batch["source_ids"], batch["source_lengths"], BOS, EOS, 40
            )
    return words


def exact_match(parts: dict[str, Any], model: nn.Module, pairs: list[Pair]) -> float:
    """The share of sentences that are translated without a mistake."""
    found = translate(parts, model, pairs)
    return sum(words == pair.target for words, pair in zip(found, pairs, strict=True)) / len(
        pairs
    )


def trace(parts: dict[str, Any], model: nn.Module, pairs: list[Pair]) -> dict[str, Tensor]:
    """What the model computes on the way to three translations; the notebook's first_wrong_part reads it step by step."""
    batch, encoder, decoder = collate(pairs), model.encoder[0], model.decoder[0]
    source, lengths, target = batch["source_ids"], batch["source_lengths"], batch["target_ids"]
    written_lengths = torch.tensor([len(pair.target) + 1 for pair in pairs])
    with torch.no_grad():
        padding = parts["padding_mask"](lengths, source.shape[1])
        written_mask = parts["decoder_mask"](written_lengths, target.shape[1])
        embedded = parts["embed"](source, model.source_embedding.weight)
        attend = encoder.self_attention
        query, key, value = (
            parts["split_heads"](project(embedded), attend.num_heads)
            for project in (attend.to_query, attend.to_key, attend.to_value)
        )
        attended, _ = attend(embedded, embedded, embedded, padding)
        normed = encoder.attention_norm(embedded + attended)
        written = parts["embed"](target, model.target_embedding.weight)
        memory = model.encode(source, lengths)
        tensors = {
            "source": source,
            "lengths": lengths,
            "target": target,
            "written_lengths": written_lengths,
            "padding": padding,
            "written_mask": written_mask,
            "embedded": embedded,
            "query": query,
            "key": key,
            "value": value,
            "mixed": parts["attention"](query, key, value, padding[:, None])[0],
            "attended": attended,
            "told": decoder.cross_attention(written, memory, memory, padding)[0],
            "recalled": decoder.self_attention(written, written, written, written_mask)[0],
            "normed": normed,
            "fed": encoder.feed_forward(normed),
            "encoded": encoder(embedded, padding),
            "written": written,
            "memory": memory,
            "decoded": decoder(written, memory, written_mask, padding),
        }
    return {f"trace.{name}": tensor.contiguous().clone() for name, tensor in tensors.items()}


def fit(
    parts: dict[str, Any], config: TrainingConfig
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Train; return the weights in float16, and the facts that the file's header states."""
    english, french = short_sentences("train", MAX_WORDS)
    tokenizers = train_tokenizer(english, "word"), train_tokenizer(french, "word")
    pairs = encode_pairs(english, french, tokenizers)
    test = encode_pairs(*short_sentences("test", TEST_WORDS), tokenizers)
    validation = encode_pairs(*short_sentences("validation", TEST_WORDS), tokenizers)
    set_seed(config.seed)
    sizes = [tokenizer.get_vocab_size() for tokenizer in tokenizers]
    model = build(parts, *sizes)

    def epoch_batches(epoch: int) -> Iterator[dict[str, Tensor]]:
        return batches(pairs, 64, config.seed, epoch, collate, lambda pair: len(pair.target))

    def evaluate(model: nn.Module) -> dict[str, float]:
        figures = {"validation exact match": exact_match(parts, model, validation)}
        print(figures, flush=True)
        return figures

    history = train(model, epoch_batches, loss_sum, config, evaluate)
    model = model.cpu().eval()
    weights = {name: tensor.half() for name, tensor in model.state_dict().items()}
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    words = [
        [tokenizer.id_to_token(number) for number in range(size)]
        for tokenizer, size in zip(tokenizers, sizes, strict=True)
    ]
    return weights, {
        **SIZES,
        "source_words": words[0],
        "target_words": words[1],
        "made_by": "solutions/transformer/make_checkpoint.py",
        "trained_on": f"translation, train split, {len(pairs)} sentences of at most {MAX_WORDS} English words",
        "steps": config.steps,
        "seed": config.seed,
        "loss_of_last_step": round(history.losses[-1], 4),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "test_exact_match": exact_match(parts, model, test),
        "test_sentences": f"{len(test)} of the test split, at most {TEST_WORDS} English words",
        "torch": torch.__version__,
    }


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights and the facts of a file that was written before."""
    with safe_open(path, "pt") as file:
        names = [name for name in file.keys() if not name.startswith("trace.")]  # noqa: SIM118
        return {name: file.get_tensor(name) for name in names}, json.loads(
            file.metadata()["course"]
        )


def write(
    path: Path, parts: dict[str, Any], weights: dict[str, Tensor], facts: dict[str, Any]
) -> None:
    """Record the trace of three validation sentences and write everything, whole or not at all."""
    model = build(parts, len(facts["source_words"]), len(facts["target_words"]))
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    places = [
        {word: number for number, word in enumerate(facts[side])}
        for side in ("source_words", "target_words")
    ]
    pairs = [
        Pair(
            *(
                [place[w] for w in text.split()]
                for place, text in zip(places, texts, strict=True)
            )
        )
        for texts in zip(*short_sentences("validation", TEST_WORDS), strict=True)
    ]
    traced = [
        next(pair for pair in pairs if len(pair.source) == length) for length in (7, 4, 5)
    ]
    partial = path.with_suffix(".partial")
    tensors = {**weights, **trace(parts, model.eval(), traced)}
    save_file(tensors, partial, {"course": json.dumps(facts, ensure_ascii=False)})
    partial.replace(path)
    said = {name: fact for name, fact in facts.items() if not name.endswith("_words")}
    print(json.dumps(said, indent=2))
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=RECIPE.steps)
    arguments.add_argument("--seed", type=int, default=RECIPE.seed)
    arguments.add_argument("--output", type=Path, default=HERE / "translator.safetensors")
    arguments.add_argument(
        "--keep-weights",
        action="store_true",
        help="train nothing: write the trace of OUTPUT anew",
    )
    given = arguments.parse_args()
    torch.set_num_threads(1)
    definitions = solution_parts()
    if given.keep_weights:
        made = read(given.output)
    else:
        warmup = min(RECIPE.warmup_steps, math.ceil(given.steps / 10))
        made = fit(
            definitions,
            replace(RECIPE, steps=given.steps, seed=given.seed, warmup_steps=warmup),
        )
    write(given.output, definitions, *made)
