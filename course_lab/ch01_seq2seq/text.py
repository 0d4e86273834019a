"""Parallel text to padded batches and back, for the translation experiments of chapters
1 and 3.

Two tokenizers, both from the `tokenizers` library: whole words for generated text,
whose vocabulary is closed, and byte-pair encoding (Sennrich et al. 2016) for real text,
whose vocabulary is not. Chapter 4 opens that box.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from torch import Tensor

PAD, BOS, EOS, UNK = range(4)
SPECIAL_TOKENS = ["<pad>", "<bos>", "<eos>", "<unk>"]


def train_tokenizer(
    sentences: Iterable[str], kind: str, vocab_size: int = 6000
) -> Tokenizer:
    """Build a vocabulary from sentences."""
    trainer: trainers.Trainer
    if kind == "word":
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordLevelTrainer(
            vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, show_progress=False
        )
    elif kind == "bpe":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.NFC()
        # Metaspace writes a space as a visible mark, so that decoding gives the text
        # back exactly.
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Metaspace(),
                pre_tokenizers.Punctuation(behavior="isolated"),
            ]
        )
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, show_progress=False
        )
    else:
        raise ValueError(f"tokenizer kind is {kind!r}; choose 'word' or 'bpe'")
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


@dataclass
class Pair:
    """One sentence pair as word ids, without special tokens."""

    source: list[int]
    target: list[int]


def encode_pairs(
    source: Sequence[str],
    target: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> list[Pair]:
    """Turn sentence pairs into ids."""
    if len(source) != len(target):
        raise ValueError(
            f"{len(source)} source sentences but {len(target)} target sentences; each"
            " needs its partner"
        )
    sides = [
        [encoding.ids for encoding in tokenizer.encode_batch(list(sentences))]
        for tokenizer, sentences in zip(tokenizers, (source, target), strict=True)
    ]
    for name, side in zip(("source", "target"), sides, strict=True):
        if [] in side:
            raise ValueError(
                f"{name} sentence {side.index([])} is empty; drop the pair"
            )
    return [Pair(s, t) for s, t in zip(*sides, strict=True)]


def pad(sequences: Sequence[Sequence[int]]) -> Int[Tensor, "B L"]:
    """Put sequences of different lengths into one tensor, filled up with ``<pad>`` on
    the right."""
    rows = [torch.tensor(sequence, dtype=torch.long) for sequence in sequences]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def collate(pairs: Sequence[Pair]) -> dict[str, Tensor]:
    """Make a batch for teacher forcing: the decoder reads ``<bos> y1 y2`` and is to
    write ``y1 y2 <eos>``."""
    return {
        "source_ids": pad([pair.source for pair in pairs]),
        "source_lengths": torch.tensor([len(pair.source) for pair in pairs]),
        "target_ids": pad([[BOS, *pair.target] for pair in pairs]),
        "labels": pad([[*pair.target, EOS] for pair in pairs]),
    }
