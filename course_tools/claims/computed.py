"""Figures that are cheap enough to be computed whenever the ledger is written: worked
examples, counts, identities."""

from typing import cast

import torch
from torch import nn

from course_lab.ch02_self_attention import attention_cost
from course_lab.ch04_wordpiece import wordpiece_page
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

SEEDS = (0, 1, 2)
DIM = 64
FAR = 32

#: The worked table of four positions with n = 100 and d = 4.
FOUR_POSITIONS = (
    (0.0, 1.0, 0.0, 1.0),
    (0.84147098, 0.54030231, 0.09983342, 0.99500417),
    (0.90929743, -0.41614684, 0.19866933, 0.98006658),
    (0.14112001, -0.9899925, 0.29552021, 0.95533649),
)


def recurrent_fading() -> list[float]:
    """Return the gradient of a fresh recurrent layer at distance 32 as a share of that
    at distance 1, by seed."""
    return [_fading("GRU", seed) for seed in SEEDS]


def attention_fading() -> list[float]:
    """Return the same of a self-attention layer."""
    return [_fading("fused attention", seed) for seed in SEEDS]


def _fading(kind: str, seed: int) -> float:
    layer = attention_cost.make_layers(DIM, seed)[kind]
    near, far = attention_cost.gradient_by_distance(layer, DIM, [1, FAR], seed)
    return far / near


def future_leak() -> list[float]:
    """Return the most that earlier outputs of causal attention move when the last word
    is another, by seed."""
    moved = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        attention = MultiHeadAttention(dim=32, num_heads=4).double()
        sentence = torch.randn(1, 9, 32, dtype=torch.float64)
        changed = sentence.clone()
        changed[0, -1] += 1
        with torch.no_grad():
            difference = attention(changed, causal=True) - attention(
                sentence, causal=True
            )
        moved.append(difference[0, :-1].abs().max().item())
    return moved


def look_up_difference() -> float:
    """Return the largest difference between one-hot rows times a matrix and rows looked
    up."""
    generator = torch.Generator().manual_seed(0)
    ids, table = (
        torch.randint(0, 50, (7,), generator=generator),
        torch.randn(50, 16, generator=generator),
    )
    return (one_hot_lookup(ids, table) - table[ids]).abs().max().item()


def unordered_difference() -> list[float]:
    """Return how far a shuffled sentence is from the shuffled outputs, in an encoder
    without positions, by seed."""
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        config = TransformerConfig(50, 50, dim=64, num_heads=4, positions="none")
        encoder = TransformerEncoder(nn.Embedding(50, 64), config).double().eval()
        ids, order = torch.randint(0, 50, (1, 11)), torch.randperm(11)
        with torch.no_grad():
            found.append(
                (encoder(ids)[:, order] - encoder(ids[:, order])).abs().max().item()
            )
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
    """Return how far a feed-forward layer is from giving each position what it gives it
    alone."""
    torch.manual_seed(0)
    layer = FeedForward(16, 64).double().eval()
    hidden = torch.randn(1, 7, 16, dtype=torch.float64)
    with torch.no_grad():
        alone = torch.cat(
            [layer(hidden[:, place : place + 1]) for place in range(7)], dim=1
        )
        return (layer(hidden) - alone).abs().max().item()


def block_difference() -> float:
    """Return how far the encoder block is from its six lines, in double precision."""
    torch.manual_seed(0)
    block = (
        EncoderBlock(dim=64, num_heads=4, hidden_dim=256, norm="post").double().eval()
    )
    hidden = torch.randn(2, 7, 64, dtype=torch.float64)
    with torch.no_grad():
        first, second = (cast(nn.LayerNorm, x) for x in (block.norm1, block.norm2))
        middle = layer_norm(hidden + block.attention(hidden), first.weight, first.bias)
        output = layer_norm(
            block.feed_forward(middle) + middle, second.weight, second.bias
        )
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
    """Count which of two words that cannot be spelled become [UNK]: an unseen letter,
    and 101 characters."""
    tokenizer = WordPiece(train_wordpiece(wordpiece_page.BY_HAND, vocab_size=17).vocab)
    return float(
        sum(
            tokenizer.encode_word(word) == ["[UNK]"]
            for word in ("mug", "h" + 100 * "u")
        )
    )


def parameters(size: str) -> float:
    """Return the millions of parameters of a published size with both heads, counted in
    the code."""
    with torch.device("meta"):
        model = BertForPreTraining(getattr(BertConfig, size)())
    return sum(parameter.numel() for parameter in model.parameters()) / 1e6


def masked_example() -> float:
    """Count at how many of three positions the worked example of masking comes out:
    input and label."""
    ids, chosen = torch.tensor([[21, 11987, 5438]]), torch.tensor([[True, False, True]])
    masked, labels = corrupt(
        ids, chosen, fates=torch.zeros(1, 3), random_ids=ids, mask_id=50001
    )
    expected = [(50001, 21), (11987, IGNORE), (50001, 5438)]
    found = zip(masked[0].tolist(), labels[0].tolist(), strict=True)
    return float(
        sum(ours == theirs for ours, theirs in zip(found, expected, strict=True))
    )


def tagged_example() -> float:
    """Count the pieces of *Jim Henson was a puppeteer* whose tag is that of the
    published figure."""
    tokenizer = WordPiece(
        [*SPECIAL_TOKENS, "jim", "hen", "##son", "was", "a", "puppet", "##eer"]
    )
    _, labels = align_labels(
        ["Jim", "Henson", "was", "a", "puppeteer"], [1, 1, 0, 0, 0], tokenizer
    )
    return float(
        sum(
            a == b
            for a, b in zip(labels[1:-1], [1, 1, IGNORE, 0, 0, 0, IGNORE], strict=True)
        )
    )
