"""Decoding word by word: keys and values are kept from step to step, so that no word is
projected twice.

It computes what `course_lib.transformer.decoder.DecoderBlock` computes for the last
position; a test compares the two.

Other letters: N, features of one head.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import padding_mask
from course_lib.attention.multi_head import MultiHeadAttention, merge_heads, split_heads
from course_lib.transformer.decoder import DecoderBlock
from course_lib.transformer.positions import WordAndPosition


@dataclass
class KeyValue:
    """Keys and values of positions that were projected, split into heads: ``(B, H, S,
    N)`` each."""

    key: Tensor
    value: Tensor

    def append(self, other: "KeyValue") -> "KeyValue":
        """Return a cache that holds `other`'s positions after its own."""
        return KeyValue(
            torch.cat([self.key, other.key], dim=-2),
            torch.cat([self.value, other.value], dim=-2),
        )


@dataclass
class BlockCache:
    """What a decoder block keeps: of the words written, one position longer after each
    step (None before the first), and of the source, computed once."""

    written: KeyValue | None
    memory: KeyValue


@dataclass
class TransformerState:
    """What decoding carries from one step to the next; the first dimension of every
    tensor is the sentence."""

    source_mask: Tensor
    caches: list[BlockCache]


def project(attention: MultiHeadAttention, memory: Float[Tensor, "B S D"]) -> KeyValue:
    """Compute the keys and values of all positions once."""
    return KeyValue(
        split_heads(attention.key(memory), attention.num_heads),
        split_heads(attention.value(memory), attention.num_heads),
    )


def attend_cached(
    attention: MultiHeadAttention,
    query: Float[Tensor, "B T D"],
    cache: KeyValue,
    mask: Bool[Tensor, "#B #T S"] | None = None,
) -> Float[Tensor, "B T D"]:
    """Attend to keys and values that `project` made."""
    heads = split_heads(attention.query(query), attention.num_heads)
    mask = None if mask is None else mask[:, None]  # (B, T, S) -> (B, 1, T, S)
    mixed, _ = attention.kernel(heads, cache.key, cache.value, mask, attention.dropout)
    return attention.output(merge_heads(mixed))


def step_block(
    block: DecoderBlock,
    hidden: Float[Tensor, "B 1 D"],
    cache: BlockCache,
    memory_mask: Bool[Tensor, "B 1 S"] | None = None,
) -> tuple[Float[Tensor, "B 1 D"], BlockCache]:
    """Run one new position; what the block gives for it, without computing the others
    again."""

    def around(
        norm: nn.Module, x: Tensor, sublayer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        if block.pre_norm:
            return block.skip(x) + block.dropout(sublayer(norm(x)))
        return norm(block.skip(x) + block.dropout(sublayer(x)))

    def attend_to_written(query: Tensor) -> Tensor:
        new = project(block.attention, query)
        kept.append(new if cache.written is None else cache.written.append(new))
        return attend_cached(block.attention, query, kept[0])

    def attend_to_memory(query: Tensor) -> Tensor:
        return attend_cached(block.cross_attention, query, cache.memory, memory_mask)

    kept: list[KeyValue] = []
    hidden = around(block.norm1, hidden, attend_to_written)
    hidden = around(block.norm2, hidden, attend_to_memory)
    hidden = around(block.norm3, hidden, block.feed_forward)
    return hidden, BlockCache(kept[0], cache.memory)


class CachedDecoding(nn.Module):
    """What the searches of `course_lib.seq2seq.search` need of a Transformer."""

    encoder: nn.Module
    embed: WordAndPosition
    blocks: Any  # DecoderBlocks in a ModuleList, whose type does not say of what
    final_norm: nn.Module
    output: nn.Module

    def start(
        self, source_ids: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]
    ) -> TransformerState:
        """Encode the source and return the state before the first target word; the
        arguments are `forward`'s."""
        mask = padding_mask(source_lengths, source_ids.shape[1])[:, None]  # (B, 1, S)
        memory = self.encoder(source_ids, mask)
        caches = [
            BlockCache(None, project(block.cross_attention, memory))
            for block in self.blocks
        ]
        return TransformerState(mask, caches)

    def step(
        self, state: TransformerState, tokens: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B V"], TransformerState]:
        """Read one target word for each sentence and score the next."""
        written = state.caches[0].written
        first = 0 if written is None else written.key.shape[-2]
        hidden = self.embed(tokens[:, None], first=first)  # (B) -> (B, 1, D)
        caches = []
        for block, cache in zip(self.blocks, state.caches, strict=True):
            hidden, cache = step_block(block, hidden, cache, state.source_mask)
            caches.append(cache)
        logits = self.output(self.final_norm(hidden))[:, 0]  # (B, 1, V) -> (B, V)
        return logits.log_softmax(dim=-1), TransformerState(state.source_mask, caches)
