"""Chapter 2's small world: sentences of random words in which each position must say
what stood k places before it.

One layer mixes the positions, and a linear read-out answers. The layer is what the
chapter compares: one head or eight, scores divided by the root of their width or not,
self-attention or a recurrent layer. Nothing else differs.

Dimension letters, everywhere in this module::

    B  sentences in a batch     T  positions of a sentence     H  heads     D  features     N  answers a position gives
    V  words in the vocabulary  X  distances

What this module does not do: real text. `course_lab.ch01_seq2seq.seq2seq` does.
"""  # noqa: E501

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.metrics.scores import mean_interval
from course_lib.training.loop import History, TrainingConfig, device, set_seed, train

# far from the seeds of training, so that no run has seen the sentences it is judged by
EVALUATION_SEED = 20_170_612


@dataclass(frozen=True)
class LookBack:
    """Say which word stood `distances` places before you; several distances ask for
    several words, in that order.

    Parameters
    ----------
    distances
        How far back each answer stands, in words.
    vocab_size
        Words V, all equally likely and drawn independently: no answer can be guessed
        from another word.
    length
        Positions T of a sentence.
    """

    distances: tuple[int, ...]
    vocab_size: int = 32
    length: int = 16

    def __post_init__(self) -> None:
        if (
            not self.distances
            or min(self.distances) < 0
            or max(self.distances) >= self.length
        ):
            raise ValueError(
                f"distances are {self.distances}; give at least one, each from 0 to"
                f" length - 1 = {self.length - 1}"
            )

    @property
    def first(self) -> int:
        """The first position whose answers all lie inside the sentence."""
        return max(self.distances)

    @property
    def chance(self) -> float:
        """How often a blind guess gets all answers of a position right."""
        return self.vocab_size ** -len(set(self.distances))

    def batch(self, size: int, generator: torch.Generator) -> Int[Tensor, "B T"]:
        """Draw sentences."""
        return torch.randint(self.vocab_size, (size, self.length), generator=generator)

    def answers(self, ids: Int[Tensor, "B T"]) -> Int[Tensor, "B _ N"]:
        """Return the right answers of positions `first` and later."""
        ends = [self.length - distance for distance in self.distances]
        return torch.stack(
            [ids[:, self.first - self.length + end : end] for end in ends], dim=-1
        )


class LookBackModel(nn.Module):
    """Word and position embeddings, one layer that mixes positions, a linear read-out;
    no residual, no feed-forward."""

    def __init__(self, task: LookBack, dim: int, mixer: nn.Module):
        super().__init__()
        self.answers_wanted = len(task.distances)
        self.words = nn.Embedding(task.vocab_size, dim)
        self.positions = nn.Embedding(task.length, dim)
        self.mixer = mixer
        self.read_out = nn.Linear(dim, self.answers_wanted * task.vocab_size)

    def embed(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Add to each word the vector of its place."""
        return self.words(ids) + self.positions.weight

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T N V"]:
        """Return the logits of each answer at each position."""
        return self.read_out(self.mixer(self.embed(ids))).unflatten(
            -1, (self.answers_wanted, -1)
        )


class Recurrent(nn.Module):
    """A gated recurrent layer that returns its states, so that it can stand where
    attention stands."""

    def __init__(self, dim: int):
        super().__init__()
        self.layer = nn.GRU(dim, dim, batch_first=True)

    def forward(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Return the state at each position."""
        return self.layer(hidden)[0]


class SingleHead(nn.Module):
    """One head of self-attention whose divisor of the scores can be chosen (Vaswani et
    al. 2017, equation 1)."""

    def __init__(self, dim: int, key_dim: int, divisor: float):
        super().__init__()
        self.query, self.key = nn.Linear(dim, key_dim), nn.Linear(dim, key_dim)
        self.value = nn.Linear(dim, dim)
        self.divisor = divisor

    def forward(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Attend from each position to all of its sentence."""
        scores = (
            self.query(hidden) @ self.key(hidden).mT / self.divisor
        )  # (B, T, K) @ (B, K, T) -> (B, T, T)
        return scores.softmax(dim=-1) @ self.value(hidden)


def build(
    task: LookBack, make_mixer: Callable[[int], nn.Module], seed: int, dim: int = 64
) -> LookBackModel:
    """Make an untrained model; `make_mixer` is given the number of features."""
    set_seed(seed)
    return LookBackModel(task, dim, make_mixer(dim)).to(device())


def fit(
    task: LookBack,
    model: LookBackModel,
    seed: int,
    steps: int,
    learning_rate: float = 3e-3,
    batch_size: int = 64,
    evaluate_every: int | None = None,
) -> History:
    """Train a model in place on sentences that never come twice; the history's figure
    ``right`` is of `score`."""

    def sentences(epoch: int) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            yield task.batch(batch_size, generator)

    def loss_sum(model: nn.Module, ids: Tensor) -> tuple[Tensor, int]:
        answers = task.answers(ids).flatten()
        logits = model(ids)[:, task.first :].flatten(0, 2)
        return F.cross_entropy(logits, answers, reduction="sum"), len(answers)

    config = TrainingConfig(
        steps=steps,
        learning_rate=learning_rate,
        seed=seed,
        evaluate_every=evaluate_every,
        progress=False,
    )
    return train(model, sentences, loss_sum, config, lambda model: score(task, model))


@torch.no_grad()
def score(
    task: LookBack, model: nn.Module, sentences: int = 512, shuffled: bool = False
) -> dict[str, float]:
    """Judge a model on fresh sentences, the same for every model."""
    model.eval()
    ids = task.batch(sentences, torch.Generator().manual_seed(EVALUATION_SEED)).to(
        device()
    )
    wanted = task.answers(ids)
    if shuffled:
        wanted = wanted.roll(1, dims=0)
    right = model(ids)[:, task.first :].argmax(dim=-1) == wanted
    each = right.float().mean(dim=(0, 1)).tolist()
    named = {
        f"right at {distance}": fraction
        for distance, fraction in zip(task.distances, each, strict=True)
    }
    return {"right": right.all(dim=-1).float().mean().item(), **named}


@dataclass(frozen=True)
class Runs:
    """Models of one kind, one for each seed."""

    models: list[LookBackModel]
    histories: list[History]

    @property
    def right(self) -> list[float]:
        """The accuracy of each model at the end of its training."""
        return [history.metrics["right"][-1] for history in self.histories]


def fit_seeds(
    task: LookBack,
    make_mixer: Callable[[int], nn.Module],
    seeds: Sequence[int],
    steps: int,
    learning_rate: float,
    batch_size: int = 64,
    evaluate_every: int | None = None,
) -> Runs:
    """Build and train one model for each seed."""
    models = [build(task, make_mixer, seed) for seed in seeds]
    histories = [
        fit(task, model, seed, steps, learning_rate, batch_size, evaluate_every)
        for model, seed in zip(models, seeds, strict=True)
    ]
    return Runs(models, histories)


def judge_heads(
    task: LookBack, runs: Mapping[str, Runs], seeds: Sequence[int], rate: float
) -> dict[str, list[float]]:
    """Return the accuracy of each run, and of the controls: untrained, judged by the
    answers to other sentences, and trained on the first look-up alone."""
    most, single = list(runs)[-1], replace(task, distances=task.distances[:1])
    untrained = [build(task, heads_of(most), seed) for seed in seeds]
    judged = {f"two look-ups, {name}": of_kind.right for name, of_kind in runs.items()}
    for name, models, shuffled in (
        ("untrained", untrained, False),
        ("answers shuffled", runs[most].models, True),
    ):
        judged[f"two look-ups, {most}, {name}"] = [
            score(task, model, shuffled=shuffled)["right"] for model in models
        ]
    for name in (next(iter(runs)), most):
        easy = fit_seeds(single, heads_of(name), seeds, 75, rate)
        judged[f"one look-up, {name}"] = easy.right
    return judged


def heads_of(name: str) -> Callable[[int], nn.Module]:
    """Return what makes a layer with as many heads as the name says, "8 heads"."""
    return partial(MultiHeadAttention, num_heads=int(name.split()[0]))


def judged_table(judged: Mapping[str, list[float]], task: LookBack) -> str:
    """Return a table of `judge_heads`, in Markdown."""
    single = replace(task, distances=task.distances[:1])
    lines = [
        "| | all words right (fraction), mean ± 95% interval | chance |",
        "| --- | --- | --- |",
    ]
    for name, values in judged.items():
        interval = mean_interval(values)
        chance = (single if name.startswith("one") else task).chance
        lines.append(
            f"| {name} | {interval.mean:.3f} ± {interval.half_width:.3f} |"
            f" {chance:.3f} |"
        )
    return "\n".join(lines)


def find_far_words(
    distances: Sequence[int], seeds: Sequence[int], steps: int
) -> dict[str, np.ndarray]:
    """Train attention and a GRU to say which word stood so far back, for each distance;
    one row for each seed. The GRU's rate is the better of two."""
    layers: dict[str, tuple[Callable[[int], nn.Module], float]] = {
        "self-attention": (heads_of("1 head"), 1e-3),
        "GRU": (Recurrent, 1e-2),
    }
    tasks = [LookBack((far,), vocab_size=8, length=far + 1) for far in distances]
    return {
        name: np.array(
            [fit_seeds(t, make, seeds, steps, rate, batch_size=32).right for t in tasks]
        ).T
        for name, (make, rate) in layers.items()
    }


@torch.no_grad()
def weights_by_distance(
    task: LookBack, model: LookBackModel, distances: Sequence[int], sentences: int = 64
) -> Float[Tensor, "H X"]:
    """Measure how much weight each head puts how far back, in the mean over sentences
    and positions."""
    if not isinstance(model.mixer, MultiHeadAttention):
        raise ValueError(
            f"the model mixes with {type(model.mixer).__name__}; heads are those of"
            " MultiHeadAttention"
        )
    model.eval()
    ids = task.batch(sentences, torch.Generator().manual_seed(EVALUATION_SEED)).to(
        device()
    )
    _, weights = model.mixer(model.embed(ids), return_weights=True)
    mean = weights.mean(dim=0)  # (B, H, T, T) -> (H, T, T)
    # Only positions that are asked, and whose key at this distance exists.
    rows = [
        mean.diagonal(-back, -2, -1)[:, max(task.first - back, 0) :].mean(dim=-1)
        for back in distances
    ]
    return torch.stack(rows, dim=-1).cpu()
