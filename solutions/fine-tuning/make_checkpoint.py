"""Train the encoder that assignment `fine-tuning` ships, on the language that its notebook defines.

    python solutions/fine-tuning/make_checkpoint.py

writes ``reviewer.safetensors`` beside this file; `course release fine-tuning` then carries it into ``exercises/``. The
encoder is the notebook's `SmallBert`; it is trained to fill holes in reviews, and no label takes part. Its reviews hold all
adjectives, those of the hidden test among them, and mostly end in a sentence that tells what came of it ("she left ."),
which is never shown to students: it is what the encoder can learn from that two adjectives are alike.

The file holds the weights, rounded to float16, and in its header, as JSON, the words, the sizes, and where all this comes
from. The same seed on the same machine gives the same weights. It takes some three minutes on one core.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from course_lib.pretraining.masking import IGNORE, MaskingConfig, VocabIds, mask_tokens
from course_lib.training.batches import set_seed
from course_lib.training.config import TrainingConfig
from course_lib.training.loop import train
from course_tools.grading.assignments.source import parse_source
from IPython.core.interactiveshell import InteractiveShell
from safetensors.torch import save_file
from torch import Tensor, nn
from traitlets.config import Config

HERE = Path(__file__).parent
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SIZES = {"dim": 48, "layers": 2, "heads": 4, "hidden": 96, "longest": 24}
#: Adjectives that no student's reviews hold; the hidden test asks for them, by topic, good ones and bad ones.
TEST_ADJECTIVES = {
    "food": ("creamy spicy savoury", "mouldy watery sour"),
    "music": ("soothing graceful rousing", "jarring screechy plodding"),
    "sport": ("dramatic lively daring", "timid lifeless rigged"),
}
#: What somebody does after a bad one, and after a good one.
OUTCOMES = (
    ("complained", "frowned", "left", "yawned"),
    ("smiled", "cheered", "stayed", "applauded"),
)
WITH_OUTCOME = 0.85  # of the reviews; those of the students have none
BATCH = 64
MASKING = MaskingConfig(rate=0.2)  # more than BERT's 15%, since reviews are short
RECIPE = TrainingConfig(
    steps=4_000,
    learning_rate=3e-3,
    schedule="linear",
    warmup_steps=300,
    weight_decay=0.01,
    clip_norm=1.0,
    progress=False,
)


def language() -> dict[str, Any]:
    """Run the notebook's cells that define the encoder and the reviews; return what they define."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    for cell in parse_source(HERE / "fine-tuning.py").cells:
        role = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and role.get("grade_id", "language") == "language":
            shell.run_cell(cell.source).raise_error()
    return shell.user_ns


def all_adjectives(parts: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """By topic, the adjectives of training, validation and test together."""
    tables = (parts["TRAINING_ADJECTIVES"], parts["VALIDATION_ADJECTIVES"], TEST_ADJECTIVES)
    return {
        topic: tuple(" ".join(table[topic][side] for table in tables) for side in (0, 1))
        for topic in TEST_ADJECTIVES
    }


def text(parts: dict[str, Any], chance: random.Random) -> list[str]:
    """One text to read: a review of any thing, also of those whose name means two, and mostly what came of it."""
    nouns = {
        topic: (*own, *(word for word, topics in parts["AMBIGUOUS"].items() if topic in topics))
        for topic, own in parts["NOUNS"].items()
    }
    words, label, _, pronoun = parts["review"](chance, all_adjectives(parts), nouns)
    told = chance.random() < WITH_OUTCOME
    return [*words, pronoun, chance.choice(OUTCOMES[label]), "."] if told else words


def vocabulary(parts: dict[str, Any]) -> list[str]:
    """Every word of the language in the order of the alphabet, so that a word's place says nothing of what it means."""
    chance, found = random.Random(0), set()
    for _ in range(20_000):
        found.update(text(parts, chance))
    return [*SPECIAL_TOKENS, *sorted(found)]


class MaskedModel(nn.Module):
    """The encoder with BERT's head for masked words (Devlin et al. 2019, section 3.1); the head is not kept."""

    def __init__(self, encoder: nn.Module, words: int):
        super().__init__()
        dim = SIZES["dim"]
        self.encoder = encoder
        self.transform = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Logits at the chosen positions."""
        hidden = self.encoder(batch["input_ids"], batch["attention_mask"])[-1]
        chosen = self.transform(hidden[batch["labels"] != IGNORE])
        return chosen @ self.encoder.word.weight.T + self.bias


def loss_sum(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
    """Cross-entropy in nats summed over the chosen positions, and their number."""
    labels = batch["labels"][batch["labels"] != IGNORE]
    return nn.functional.cross_entropy(model(batch), labels, reduction="sum"), len(labels)


def masked_batches(
    parts: dict[str, Any], words: list[str], seed: int, count: int
) -> Iterator[dict[str, Tensor]]:
    """Batches of a stream of texts that never repeats."""
    chance, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    place = {word: number for number, word in enumerate(words)}
    vocab = VocabIds.of(place)
    for _ in range(count):
        rows = [
            torch.tensor([2, *(place[word] for word in text(parts, chance)), 3])
            for _ in range(BATCH)
        ]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        seen, labels = mask_tokens(ids, ids < len(SPECIAL_TOKENS), generator, vocab, MASKING)
        yield {"input_ids": seen, "attention_mask": ids != 0, "labels": labels}


def told_apart(
    parts: dict[str, Any], model: MaskedModel, words: list[str], seed: int = 1
) -> float:
    """The share of reviews with test adjectives of which the encoder foretells what comes of them, good or bad."""
    chance, place = (
        random.Random(seed),
        {word: number for number, word in enumerate(words)},
    )
    rows, labels = [], []
    for _ in range(500):
        said, label, _, pronoun = parts["review"](chance, TEST_ADJECTIVES)
        rows.append(torch.tensor([2, *(place[w] for w in (*said, pronoun, "[MASK]", ".")), 3]))
        labels.append(label)
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    asked = torch.where(ids == 4, 0, IGNORE)
    with torch.no_grad():
        chances = model(
            {"input_ids": ids, "attention_mask": ids != 0, "labels": asked}
        ).softmax(-1)
    bad, good = (chances[:, [place[w] for w in side]].sum(1) for side in OUTCOMES)
    return ((good > bad).long() == torch.tensor(labels)).double().mean().item()


def make(config: TrainingConfig, path: Path) -> None:
    """Train, and write weights and facts, whole or not at all."""
    parts = language()
    words = vocabulary(parts)
    set_seed(config.seed)
    model = MaskedModel(parts["SmallBert"](len(words), **SIZES), len(words))
    history = train(
        model,
        lambda epoch: masked_batches(parts, words, config.seed + epoch, config.steps),
        loss_sum,
        config,
    )
    model = model.cpu().eval()
    weights = {name: tensor.half() for name, tensor in model.encoder.state_dict().items()}
    model.encoder.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    facts = {
        "words": words,
        "sizes": SIZES,
        "made_by": "solutions/fine-tuning/make_checkpoint.py",
        "trained_on": f"{config.steps * BATCH} generated reviews, {100 * MASKING.rate:.0f}% of the words masked, no labels",
        "steps": config.steps,
        "seed": config.seed,
        "loss_of_last_100_steps": round(sum(history.losses[-100:]) / 100, 4),
        "parameters": sum(parameter.numel() for parameter in model.encoder.parameters()),
        "outcomes_foretold": told_apart(parts, model, words),
        "torch": torch.__version__,
    }
    partial = path.with_suffix(".partial")
    save_file(weights, partial, {"course": json.dumps(facts)})
    partial.replace(path)
    print(json.dumps({name: fact for name, fact in facts.items() if name != "words"}, indent=2))
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=HERE / "reviewer.safetensors")
    torch.set_num_threads(1)
    make(RECIPE, arguments.parse_args().output)
