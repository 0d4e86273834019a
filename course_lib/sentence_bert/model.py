"""Sentence-BERT: one vector for a sentence, so that similar sentences have similar
vectors (Reimers and Gurevych 2019).

Other letters: N, sentences in all.

A BERT gives each token a state; pooling makes one vector of these. What such a model is
trained on stands in :mod:`course_lib.sentence_bert.losses` and
:mod:`course_lib.sentence_bert.training`, what its vectors are for in
:mod:`course_lib.sentence_bert.search`, and how it lies on disk in
:mod:`course_lib.sentence_bert.files`.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_mask
from course_lib.bert.config import BertConfig
from course_lib.bert.files import checkpoint_folder, read_bert, save_bert
from course_lib.bert.model import BertModel
from course_lib.finetuning.examples import Example, collate
from course_lib.finetuning.heads import SequenceClassifier, without_pooler
from course_lib.finetuning.task_model import looking
from course_lib.sentence_bert.files import (
    FILES,
    POOLINGS,
    Pooling,
    SentenceLayout,
    read_layout,
    write_layout,
)
from course_lib.training.precision import autocast, choose_precision
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece, check_room

# sentences that are sorted together: of a longer corpus, tokens and order are held for
# so many only
POOL = 65_536


def pool(
    hidden_states: Float[Tensor, "B T D"],
    attention_mask: Bool[Tensor, "B T"] | None = None,
    how: Pooling = "mean",
) -> Float[Tensor, "B D"]:
    r"""Make one vector of the states of a sentence's tokens; padding has no part in it.

    .. math:: \frac{\sum_t m_t h_t}{\sum_t m_t}, \qquad
       h_{\text{[CLS]}}, \qquad \max_{t:\, m_t = 1} h_t

    Parameters
    ----------
    hidden_states
        The states h of one layer.
    attention_mask
        The mask m: True at tokens, False at padding. None says that nothing is padded.
    how
        "mean" of all tokens, [CLS] and [SEP] among them; "cls": the state of the first
        token; "max": of each feature the largest.

    Returns
    -------
    Tensor
        One vector for each sentence. A mean is added up in float32 if the states are
        half as precise.

    Raises
    ------
    ValueError
        If the pooling is not known, the mask has another shape or is not boolean, or a
        sentence is all padding.

    Notes
    -----
    Reimers and Gurevych 2019, section 3: "MEAN", "CLS" and "MAX".

    Examples
    --------
    >>> # two tokens, and padding
    >>> hidden = torch.tensor([[[1.0, 8.0], [3.0, 4.0], [99.0, 99.0]]])
    >>> mask = torch.tensor([[True, True, False]])
    >>> [pool(hidden, mask, how).tolist() for how in ("mean", "cls", "max")]
    [[[2.0, 6.0]], [[1.0, 8.0]], [[3.0, 8.0]]]
    """
    if how not in POOLINGS:
        raise ValueError(f"the pooling is {how!r}; choose one of {', '.join(POOLINGS)}")
    if attention_mask is None:
        attention_mask = torch.ones(
            hidden_states.shape[:2], dtype=torch.bool, device=hidden_states.device
        )
    if attention_mask.shape != hidden_states.shape[:2]:
        raise ValueError(
            f"attention_mask is {tuple(attention_mask.shape)}, but there are states for"
            f" {tuple(hidden_states.shape[:2])} tokens; give one mark for each"
        )
    check_mask(attention_mask, name="attention_mask")
    if how == "cls":
        # 0, unless the padding stands in front
        first = attention_mask.int().argmax(dim=1)
        return hidden_states[torch.arange(len(first), device=first.device), first]
    padding = ~attention_mask[:, :, None]
    if how == "max":
        return hidden_states.masked_fill(padding, -torch.inf).amax(dim=1)
    precise = torch.promote_types(hidden_states.dtype, torch.float32)
    # (B, T, D) -> (B, D)
    total = hidden_states.masked_fill(padding, 0).sum(dim=1, dtype=precise)
    return (total / attention_mask.sum(dim=1, keepdim=True)).to(hidden_states.dtype)


def token_ids(
    tokenizer: WordPiece | FastWordPiece,
    sentences: Sequence[str],
    max_length: int | None = None,
) -> list[list[int]]:
    """Cut sentences into tokens, [CLS] before and [SEP] behind each, and return nothing
    but ids."""
    if isinstance(sentences, str):
        raise ValueError(
            f"sentences is one string, {sentences[:40]!r}; pass a list, if need be of"
            " one sentence"
        )
    # no offsets, no strings: they take longer than the tokens
    if isinstance(tokenizer, FastWordPiece):
        found = tokenizer.encode_in_rust(list(sentences), None, max_length)
        return [encoding.ids for encoding in found]
    return [x.ids for x in tokenizer.encode_batch(sentences, None, max_length)]


class SentenceBert(nn.Module):
    """A BERT with a pooling: sentences in, vectors out.

    Parameters
    ----------
    bert
        The encoder, a `BertModel` or one that is called as it is. It is not copied: who
        trains the one trains the other.
    tokenizer
        The one that it was trained with.
    pooling
        As in `pool`.
    normalize
        Whether vectors are given the length 1, so that an inner product is a cosine.
    max_length
        Tokens that are read of a sentence; as many as the encoder has positions if not
        given.

    Raises
    ------
    ValueError
        If the pooling is not known, the encoder has fewer positions than `max_length`,
        or fewer embeddings than the tokenizer has pieces.

    Notes
    -----
    Reimers and Gurevych 2019, section 3.

    Examples
    --------
    >>> from course_lib.bert.config import BertConfig
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = FastWordPiece([*SPECIAL_TOKENS, "a", "film", "good"])
    >>> model = SentenceBert(
    ...     BertModel(BertConfig.tiny(vocab_size=len(tokenizer))), tokenizer
    ... )
    >>> model.encode(["A good film", "A film"]).shape
    torch.Size([2, 128])
    """

    def __init__(
        self,
        bert: Any,
        tokenizer: WordPiece | FastWordPiece,
        pooling: Pooling = "mean",
        normalize: bool = False,
        max_length: int | None = None,
    ):
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(
                f"the pooling is {pooling!r}; choose one of {', '.join(POOLINGS)}"
            )
        positions = bert.config.max_position_embeddings
        if max_length is not None and max_length > positions:
            raise ValueError(
                f"max_length is {max_length}, but this BERT has {positions} positions;"
                " choose at most these"
            )
        check_room(max_length, 2)
        if len(tokenizer) > bert.config.vocab_size:
            raise ValueError(
                f"the tokenizer has {len(tokenizer)} pieces, but the model has"
                f" embeddings for {bert.config.vocab_size}; pass the tokenizer that it"
                " was trained with"
            )
        self.bert, self.tokenizer = bert, tokenizer
        self.pooling = pooling
        self.normalize = normalize
        self.max_length = max_length or positions

    @property
    def hidden_size(self) -> int:
        """Features of a vector."""
        return self.bert.config.hidden_size

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B D"]:
        """Return the vectors of tokenised sentences; arguments as in `BertModel`."""
        vectors = self._pooled(input_ids, attention_mask, token_type_ids)
        return F.normalize(vectors, dim=1) if self.normalize else vectors

    def _pooled(self, *inputs: Tensor | None) -> Tensor:
        assert inputs[0] is not None
        return pool(self.bert(*inputs).last_hidden_state, inputs[1], self.pooling)

    def encode(
        self,
        sentences: Sequence[str],
        batch_size: int = 32,
        normalize: bool | None = None,
        precision: str | None = None,
        progress: bool | None = None,
    ) -> Float[Tensor, "N D"]:
        """Return one vector for each sentence, in their order.

        Sentences of similar length share a batch, the longest come first: little is
        padding, and what is too much for the memory fails at once.

        Parameters
        ----------
        sentences
            As many as you like.
        batch_size
            How many are looked at together.
        normalize
            Whether vectors are given the length 1; as the model has it if not given.
        precision
            What matrix products are computed in (autocast): "float32", "bfloat16", or
            "auto" for the one that the device is faster in. As the weights are if not
            given.
        progress
            Whether to show a bar; if not given, only in a terminal or notebook.

        Returns
        -------
        Tensor
            float32 (float64 if the weights are), on the CPU, without gradients. The
            model is put into evaluation mode meanwhile and stays on the device where it
            is.

        Raises
        ------
        ValueError
            If `sentences` is one string, `batch_size` is below 1, or `precision` is
            another.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
        if isinstance(sentences, str):
            token_ids(self.tokenizer, sentences)  # which says what is wrong
        from tqdm.auto import tqdm  # its import warns in notebooks without widgets

        chosen = (
            None
            if precision is None
            else choose_precision(precision, next(self.bert.parameters()).device)
        )
        precise = torch.promote_types(next(self.bert.parameters()).dtype, torch.float32)
        found = torch.empty(len(sentences), self.hidden_size, dtype=precise)
        before: tuple[list[int], Tensor] | None = None
        with (
            looking(self) as where,
            tqdm(
                total=len(sentences),
                unit="sentence",
                disable=None if progress is None else not progress,
            ) as bar,
        ):
            for indices, *inputs in self._batches(sentences, batch_size):
                inputs = [
                    None if x is None else x.to(where, non_blocking=True)
                    for x in inputs
                ]
                with nullcontext() if chosen is None else autocast(chosen, where):
                    vectors = self._pooled(*inputs)
                vectors = vectors.to(precise)
                if self.normalize if normalize is None else normalize:
                    vectors = F.normalize(vectors, dim=1)
                # A device computes on its own: fetch a batch only when the next is
                # under way.
                if before is not None:
                    found[before[0]] = before[1].cpu()
                before = indices, vectors
                bar.update(len(indices))
            if before is not None:
                found[before[0]] = before[1].cpu()
        return found

    def _batches(
        self, sentences: Sequence[str], batch_size: int
    ) -> Iterator[tuple[list[int], Tensor, Tensor | None, Tensor]]:
        """Tokenise a part of the sentences at a time, sort it, and yield where each
        batch belongs and its inputs."""
        for start in range(0, len(sentences), POOL):
            ids = token_ids(
                self.tokenizer, sentences[start : start + POOL], self.max_length
            )
            order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
            for first in range(0, len(order), batch_size):
                rows = order[first : first + batch_size]
                examples = [Example([(ids[row], [0] * len(ids[row]))]) for row in rows]
                batch = collate(examples, self.bert.config.pad_token_id or 0)
                yield (
                    [start + row for row in rows],
                    batch.input_ids,
                    batch.attention_mask,
                    batch.token_type_ids,
                )

    @classmethod
    def from_pretrained(
        cls,
        path_or_hub_id: str | Path,
        dtype: torch.dtype | None = None,
        revision: str | None = None,
    ) -> "SentenceBert":
        """Build a model from a folder in the layout of sentence-transformers.

        Parameters
        ----------
        path_or_hub_id, dtype, revision
            As in `course_lib.bert.files.load_bert`.

        Returns
        -------
        SentenceBert
            In evaluation mode, on the CPU. BERT's own pooler is kept if the file has
            one; nothing here reads it.

        Raises
        ------
        FileNotFoundError
            If a file is missing.
        ValueError
            If a file is damaged, or asks for what this course does not do; and as
            `load_bert`.
        ConnectionError
            As in `course_lib.bert.files.checkpoint_folder`.
        """
        folder = checkpoint_folder(path_or_hub_id, revision, also=FILES)
        layout = read_layout(folder)
        encoder = folder / layout.encoder
        tokenizer = FastWordPiece.load(encoder)
        if layout.lowercase and not tokenizer.settings.lowercase:
            raise ValueError(
                f"{folder} wants sentences in small letters, but its tokenizer keeps"
                " capitals; save it with a tokenizer that has lowercase=True"
            )
        bert = _encoder(encoder, dtype)
        if layout.width not in (None, bert.config.hidden_size):
            raise ValueError(
                f"{folder}: pooling is set for states of {layout.width} features, but"
                f" its encoder has {bert.config.hidden_size}; the files are not of one"
                " model"
            )
        longest = layout.max_length
        if longest is None and layout.tokenizer_length is not None:
            longest = min(layout.tokenizer_length, bert.config.max_position_embeddings)
        return cls(bert, tokenizer, layout.pooling, layout.normalize, longest).eval()

    def save_pretrained(
        self, folder: str | Path, dtype: torch.dtype | None = None
    ) -> None:
        """Write encoder, tokenizer and pooling, so that `from_pretrained` and
        sentence-transformers read them.

        Parameters
        ----------
        folder
            Made if it is not there. Each file is written whole or not at all.
        dtype
            As in `course_lib.bert.files.save_bert`.
        """
        folder = Path(folder)
        save_bert(self.bert, folder, self.tokenizer, dtype)
        write_layout(
            folder,
            SentenceLayout(self.pooling, self.normalize, self.max_length),
            self.hidden_size,
        )


def _encoder(folder: Path, dtype: torch.dtype | None) -> BertModel:
    """Read the encoder, without a pooler where the file has none: a new one would be
    noise that is then saved."""
    with torch.random.fork_rng(devices=[]):
        bert, report = read_bert(folder, BertModel, dtype)
    return without_pooler(bert).eval() if report.new else bert


class SentenceClassifier(SequenceClassifier):
    """One label for a sentence or a pair of them, or one number: a layer on the mean of
    all states, for an encoder that was trained to be read so.

    Parameters
    ----------
    config
        Sizes and choices.
    labels
        The names of the labels, or how many there are. A single one is no class: then
        the model is to guess a number.

    Notes
    -----
    Pooling: Reimers and Gurevych 2019, section 3. ``transformers`` has no model of this
    kind, so it reads the encoder alone.

    Examples
    --------
    >>> model = SentenceClassifier(
    ...     BertConfig.tiny(vocab_size=50), ["negative", "positive"]
    ... )
    >>> model(torch.tensor([[2, 47, 3]])).shape
    torch.Size([1, 2])
    """

    architecture = "SentenceClassifier"
    pools = False

    def __init__(self, config: BertConfig, labels: int | Sequence[str]):
        super().__init__(config, labels)
        without_pooler(self.bert)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B L"]:
        """Return the logits of the labels, or in one column the numbers; arguments as
        in `BertModel`."""
        hidden = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.classifier(self.dropout(pool(hidden, attention_mask)))
