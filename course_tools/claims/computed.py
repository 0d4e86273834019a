"""What the ledger computes: `FIGURES`, of runs (`OF_A_RUN`), and of models (`fact`)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import nn

from course_lab.ch02_self_attention import attention_cost
from course_lab.ch03_transformer import transformer
from course_lab.ch04_wordpiece import wordpiece_page
from course_lab.ch06_pretraining.pretrain import ADAMW, plan_from
from course_lab.ch06_pretraining.pretraining_stories import LIVE
from course_lab.ch06_pretraining.shipped import CHECKPOINTS, read_log
from course_lab.ch08_finetuning.finetuning_plans import PLANS as FINETUNING
from course_lib.attention.multi_head import MultiHeadAttention
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.finetuning.tagging import align_labels
from course_lib.pretraining.masking import IGNORE, corrupt
from course_lib.transformer.blocks import EncoderBlock, FeedForward, layer_norm
from course_lib.transformer.model import TransformerConfig, TransformerEncoder
from course_lib.transformer.positions import one_hot_lookup, sinusoidal_positions
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece
from course_lib.wordpiece.training import (
    first_pieces,
    merge_pieces,
    pair_scores,
    train_wordpiece,
)
from course_tools.claims.rules import number

Run = Mapping[str, Any]
SEEDS = (0, 1, 2)
DIM = 64
#: The checkpoints that the book ships.
SHIPPED = ("tiny", "mini")
FAR = 32

#: The worked table of four positions with n = 100 and d = 4.
FOUR_POSITIONS = (
    (0.0, 1.0, 0.0, 1.0),
    (0.84147098, 0.54030231, 0.09983342, 0.99500417),
    (0.90929743, -0.41614684, 0.19866933, 0.98006658),
    (0.14112001, -0.9899925, 0.29552021, 0.95533649),
)


def recurrent_fading() -> list[float]:
    """Gradient of a fresh recurrent layer at distance 32 over that at 1, by seed."""
    return [_fading("GRU", seed) for seed in SEEDS]


def attention_fading() -> list[float]:
    """Return the same of a self-attention layer."""
    return [_fading("fused attention", seed) for seed in SEEDS]


def _fading(kind: str, seed: int) -> float:
    layer = attention_cost.make_layers(DIM, seed)[kind]
    near, far = attention_cost.gradient_by_distance(layer, DIM, [1, FAR], seed)
    return far / near


def future_leak() -> list[float]:
    """Most that earlier outputs of causal attention move with a last word, by seed."""
    moved = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        attention = MultiHeadAttention(dim=32, num_heads=4).double()
        sentence = torch.randn(1, 9, 32, dtype=torch.float64)
        changed = sentence.clone()
        changed[0, -1] += 1
        with torch.no_grad():
            before, after = (attention(x, causal=True) for x in (sentence, changed))
        moved.append((after - before)[0, :-1].abs().max().item())
    return moved


def look_up_difference() -> float:
    """Largest difference between one-hot rows times a matrix and rows looked up."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 50, (7,), generator=generator)
    table = torch.randn(50, 16, generator=generator)
    return (one_hot_lookup(ids, table) - table[ids]).abs().max().item()


def unordered_difference() -> list[float]:
    """How far shuffled words' outputs are from the shuffled outputs, by seed."""
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        config = TransformerConfig(50, 50, dim=64, num_heads=4, positions="none")
        encoder = TransformerEncoder(nn.Embedding(50, 64), config).double().eval()
        ids, order = torch.randint(0, 50, (1, 11)), torch.randperm(11)
        with torch.no_grad():
            difference = encoder(ids)[:, order] - encoder(ids[:, order])
        found.append(difference.abs().max().item())
    return found


def position_difference() -> float:
    """Return the largest difference between our positions and the worked table."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        ours = sinusoidal_positions(length=4, dim=4, base=100.0)
    finally:
        torch.set_default_dtype(default)
    return (ours - torch.tensor(FOUR_POSITIONS, dtype=torch.float64)).abs().max().item()


def neighbour_spread() -> float:
    """Return how much the distance of neighbouring positions varies over 60 places."""
    positions = sinusoidal_positions(60, 64).double()
    steps = (positions[1:] - positions[:-1]).norm(dim=1)
    return (steps.max() - steps.min()).item()


def neighbour_offset() -> float:
    """How far a feed-forward layer is from giving each position what it gives alone."""
    torch.manual_seed(0)
    layer = FeedForward(16, 64).double().eval()
    hidden = torch.randn(1, 7, 16, dtype=torch.float64)
    with torch.no_grad():
        alone = torch.cat([layer(one) for one in hidden.split(1, dim=1)], dim=1)
        return (layer(hidden) - alone).abs().max().item()


def block_difference() -> float:
    """Return how far the encoder block is from its six lines, in double precision."""
    torch.manual_seed(0)
    block = EncoderBlock(dim=64, num_heads=4, hidden_dim=256, norm="post")
    block = block.double().eval()
    hidden = torch.randn(2, 7, 64, dtype=torch.float64)
    with torch.no_grad():
        first, second = (cast(nn.LayerNorm, x) for x in (block.norm1, block.norm2))
        middle = layer_norm(hidden + block.attention(hidden), first.weight, first.bias)
        outer = block.feed_forward(middle) + middle
        output = layer_norm(outer, second.weight, second.bias)
        return (block(hidden) - output).abs().max().item()


def _score_of(left: str, right: str) -> float:
    splits = {word: first_pieces(word) for word in wordpiece_page.BY_HAND}
    for pair in (("##g", "##s"), ("h", "##u")):
        splits = {word: merge_pieces(pieces, *pair) for word, pieces in splits.items()}
    return float(pair_scores(splits, wordpiece_page.BY_HAND)[left, right])


def score_of_hugs() -> float:
    """Return the score of *hu* and *##gs* after two merges of the worked example."""
    return _score_of("hu", "##gs")


def score_of_hug() -> float:
    """Return the score of *hu* and *##g* at the same step."""
    return _score_of("hu", "##g")


def unknown_words() -> float:
    """Count which of two unspellable words, by letter and by length, become [UNK]."""
    tokenizer = WordPiece(train_wordpiece(wordpiece_page.BY_HAND, vocab_size=17).vocab)
    found = [tokenizer.encode_word(word) for word in ("mug", "h" + 100 * "u")]
    return float(found.count(["[UNK]"]))


def parameters(size: str) -> float:
    """Return the millions of parameters of a published size with both heads."""
    with torch.device("meta"):
        model = BertForPreTraining(getattr(BertConfig, size)())
    return sum(parameter.numel() for parameter in model.parameters()) / 1e6


def masked_example() -> float:
    """Count the positions at which the worked example of masking comes out."""
    ids, chosen = torch.tensor([[21, 11987, 5438]]), torch.tensor([[True, False, True]])
    fates = torch.zeros(1, 3)
    masked, labels = corrupt(ids, chosen, fates=fates, random_ids=ids, mask_id=50001)
    expected = [(50001, 21), (11987, IGNORE), (50001, 5438)]
    found = zip(masked[0].tolist(), labels[0].tolist(), strict=True)
    pairs = zip(found, expected, strict=True)
    return float(sum(ours == theirs for ours, theirs in pairs))


def tagged_example() -> float:
    """Count the pieces of the published figure's sentence that have its tags."""
    pieces = ["jim", "hen", "##son", "was", "a", "puppet", "##eer"]
    words, expected = ["Jim", "Henson", "was", "a", "puppeteer"], [1, 1, IGNORE, 0]
    tokenizer = WordPiece([*SPECIAL_TOKENS, *pieces])
    _, labels = align_labels(words, [1, 1, 0, 0, 0], tokenizer)
    pairs = zip(labels[1:-1], [*expected, 0, 0, IGNORE], strict=True)
    return float(sum(ours == theirs for ours, theirs in pairs))


#: By the name that ``claims.yaml`` gives: one figure, or one for each seed.
_figures: list[Callable[..., float | list[float]]] = [
    *(recurrent_fading, attention_fading, future_leak, look_up_difference),
    *(unordered_difference, position_difference, neighbour_spread, neighbour_offset),
    *(block_difference, score_of_hugs, score_of_hug, unknown_words, parameters),
    *(masked_example, tagged_example),
]
FIGURES = {function.__name__: function for function in _figures}


def _seen(run: Run) -> tuple[list[Run], list[Run]]:
    """Part a run's lengths into those that it was trained on and longer ones."""
    limit = transformer.SHORT.max_source or 0
    rows = run["by_length"]
    return (
        [row for row in rows if row["longest"] <= limit],
        [row for row in rows if row["longest"] > limit],
    )


def exact_match_seen(run: Run) -> float:
    """Return exact match in percent over the lengths that a run was trained on."""
    rows, _ = _seen(run)
    right = sum(row["exact_match"] * row["pairs"] for row in rows)
    return float(100 * right / sum(row["pairs"] for row in rows))


def fall_beyond(run: Run) -> float:
    """Return the BLEU of the first lengths never seen minus that of the last seen."""
    seen, longer = _seen(run)
    return float(longer[0]["bleu"] - seen[-1]["bleu"])


#: By the name that ``claims.yaml`` gives as a record's figure.
OF_A_RUN: Mapping[str, Callable[[Run], float]] = {
    "exact_match_seen": exact_match_seen,
    "fall_beyond": fall_beyond,
}


def _size(plan: Any) -> str:
    config = plan.config(plan.vocab_size)
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    return f"{layers} layers, {config.hidden_size} features, {heads} heads"


def _rate(plan: Any) -> str:
    training = plan.training
    decay = training.decay_steps
    falls = f", then {decay:,} steps of decay" if decay else ""
    warm = (
        f"{training.learning_rate:g} after {training.warmup_steps:,} steps of warm-up"
    )
    return f"{warm}, {training.schedule}{falls}"


def _first_weights(plan: Any) -> str:
    width = plan.config(plan.vocab_size).hidden_size
    scaled = f"1/√d = {width**-0.5:.3f}, positions begin as sinusoids"
    return {"published": "as published", "scaled": scaled}[plan.start]


def _precision(plan: Any) -> str:
    low = plan.training.precision == "bfloat16"
    return "bfloat16 where it is safe" if low else "float32"


OPTIMIZERS = {
    "muon": "Muon for the matrices of the layers, AdamW for the rest",
    "adamw": "AdamW",
}
OF_A_PLAN: Mapping[str, Callable[[Any], str]] = {
    "vocabulary": lambda plan: f"at most {plan.vocab_size:,} pieces",
    "size": _size,
    "length": lambda plan: f"{plan.max_length} pieces",
    "batch": lambda plan: f"{plan.batch_size} sequences",
    "optimizer": lambda plan: OPTIMIZERS[plan.optimizer],
    "rate": _rate,
    "dropout": lambda plan: f"{plan.dropout:g}",
    "hidden_share": lambda plan: f"{100 * plan.masking.rate:.0f}%",
    "masks": lambda plan: (
        "drawn once" if plan.static_masking else "drawn anew in each epoch"
    ),
    "unit": lambda plan: f"single {plan.masking.unit}s",
    "first_weights": _first_weights,
    "precision": _precision,
}


def _steps(log: Run) -> str:
    passes = log["results"]["work"]["tokens"] / _pieces(log)
    return f"{log['plan']['training']['steps']:,}, {passes:.0f} passes"


def _pieces(log: Run) -> int:
    return int(log["results"]["sizes"]["train"]["tokens"])


def _stored() -> str:
    configs = [
        json.loads((CHECKPOINTS / name / "config.json").read_text(encoding="utf-8"))
        for name in SHIPPED
    ]
    return " and ".join(sorted({str(config["dtype"]) for config in configs}))


def _fine_tuning() -> str:
    config = FINETUNING["pydocs-topic"].variants["fine-tuned, 200"].config
    steps, size = config.steps or 0, config.batch_size
    rate = f"rate {number(config.learning_rate, -2)}"
    return f"{steps} steps of {size}, {steps * size / 200:.0f} passes, {rate}"


OF_THE_COURSE: Mapping[str, Callable[[], str]] = {
    "pieces_read": lambda: shipped(lambda log: f"{_pieces(log):,} pieces"),
    "steps": lambda: shipped(_steps),
    "live_steps": lambda: f"{LIVE.steps:,}",
    "second_moment": lambda: f"{ADAMW.keywords['betas'][1]:g}",
    "epsilon": lambda: f"{ADAMW.keywords['eps']:g}",
    "stored": _stored,
    "fine_tuning": _fine_tuning,
}


def fact(name: str) -> str:
    """Write what plans and logs say of our models."""
    if name in OF_A_PLAN:
        return everywhere(OF_A_PLAN[name])
    if name in OF_THE_COURSE:
        return OF_THE_COURSE[name]()
    known = ", ".join([*OF_A_PLAN, *OF_THE_COURSE])
    raise LookupError(f"no fact {name!r} of our models; known are: {known}")


def shipped(write: Callable[[Run], str]) -> str:
    """Write something of each shipped checkpoint, once if it is the same of all."""
    texts = {name: write(read_log(name)) for name in SHIPPED}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text}" for name, text in texts.items())


def everywhere(write: Callable[[Any], str]) -> str:
    """Write something of each plan of pre-training, once where it is the same."""
    plans = {name: plan_from(read_log(name)["plan"]) for name in SHIPPED}
    kinds: dict[str, list[str]] = {}
    for name, plan in (plans | {"live": LIVE.last}).items():
        kinds.setdefault(write(plan), []).append(name)
    if len(kinds) == 1:
        return next(iter(kinds))
    return "; ".join(f"{' and '.join(names)}: {text}" for text, names in kinds.items())
