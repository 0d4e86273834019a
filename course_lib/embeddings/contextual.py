"""Contextual embeddings: which layers' states make a word's vector, how pieces become
words, how well senses separate.

Other letters: W, words; N, uses of a word.

The models are :mod:`course_lib.embeddings.elmo`, :mod:`course_lib.embeddings.gpt` and
:mod:`course_lib.bert.model`; each hands out a tuple of hidden states, the embeddings
first.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import CLS, SEP, UNK, WordPiece, check_room

NO_WORD = -1
"""The word number of a piece that is of no word: a special token or padding."""

Selection: TypeAlias = Literal[
    "first", "last", "second_to_last", "sum_last_4", "concat_last_4", "sum"
]
SELECTIONS: tuple[Selection, ...] = (
    "first",
    "last",
    "second_to_last",
    "sum_last_4",
    "concat_last_4",
    "sum",
)

# cosines that differ by less are equal: rounding must not tell two equal vectors apart
TIE = 1e-6


def select_layers(
    hidden_states: Sequence[Float[Tensor, "B T D"]], how: Selection = "last"
) -> Float[Tensor, "B T _"]:
    """Make one vector for each piece of the states of several layers (Devlin et al.
    2019, table 7).

    Parameters
    ----------
    hidden_states
        The embeddings and then each layer's output, as ``BertModel(...,
        return_hidden_states=True)`` gives them.
    how
        "first": the embeddings, which know no context. "last", "second_to_last": the
        output of one layer. "sum_last_4", "concat_last_4": of the last four layers.
        "sum": of all layers; the embeddings are not among them.

    Returns
    -------
    Tensor
        D features; four times as many for "concat_last_4".

    Raises
    ------
    ValueError
        If the selection is not known, or there are too few layers for it.

    Notes
    -----
    The paper's sums are weighted; here all weights are 1, and `LayerMix` learns them.

    Examples
    --------
    >>> # the embeddings and five layers
    >>> states = [torch.full((1, 1, 2), float(layer)) for layer in range(6)]
    >>> (
    ...     select_layers(states, "second_to_last").tolist(),
    ...     select_layers(states, "sum_last_4").tolist(),
    ... )
    ([[[4.0, 4.0]]], [[[14.0, 14.0]]])
    """
    if how not in SELECTIONS:
        raise ValueError(f"how is {how!r}; choose one of {', '.join(SELECTIONS)}")
    layers = list(hidden_states[1:])
    needed = {"first": 0, "second_to_last": 2, "sum_last_4": 4, "concat_last_4": 4}.get(
        how, 1
    )
    if len(layers) < needed or not hidden_states:
        raise ValueError(
            f"{how} needs the embeddings and {needed} layers, but there are"
            f" {len(hidden_states)} states in all; ask the model for all its hidden"
            " states, or choose another selection"
        )
    match how:
        case "first":
            return hidden_states[0]
        case "last":
            return layers[-1]
        case "second_to_last":
            return layers[-2]
        case "sum_last_4":
            return torch.stack(layers[-4:]).sum(dim=0)  # (4, B, T, D) -> (B, T, D)
        case "concat_last_4":
            return torch.cat(layers[-4:], dim=-1)  # (B, T, 4 D)
        case "sum":
            return torch.stack(layers).sum(dim=0)


class LayerMix(nn.Module):
    r"""Average the layers with weights that a task learns (Peters et al. 2018, equation
    1).

    .. math:: \gamma \sum_j s_j h_j, \qquad s = \mathrm{softmax}(w)

    Parameters
    ----------
    num_states
        How many states are mixed: the embeddings and each layer, so one more than
        layers.

    Notes
    -----
    At the start all weights are equal and γ is 1: the mean.

    Examples
    --------
    >>> mix = LayerMix(3)
    >>> # leave the last layer out
    >>> _ = mix.weights.data.copy_(torch.tensor([0.0, 0.0, float("-inf")]))
    >>> mix(
    ...     [
    ...         torch.tensor([[[2.0]]]),
    ...         torch.tensor([[[4.0]]]),
    ...         torch.tensor([[[100.0]]]),
    ...     ]
    ... ).item()
    3.0
    """

    def __init__(self, num_states: int):
        super().__init__()
        if num_states < 1:
            raise ValueError(
                f"num_states is {num_states}; there must be at least 1 state to mix"
            )
        self.weights = nn.Parameter(torch.zeros(num_states))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(
        self, hidden_states: Sequence[Float[Tensor, "B T D"]]
    ) -> Float[Tensor, "B T D"]:
        """Return the mixed states."""
        if len(hidden_states) != len(self.weights):
            raise ValueError(
                f"there are {len(hidden_states)} states, but this mix has"
                f" {len(self.weights)} weights; pass the embeddings and the output of"
                " every layer"
            )
        shares = self.weights.softmax(dim=0)
        # (B, T, D, states) @ (states)
        return self.scale * torch.stack(list(hidden_states), dim=-1) @ shares


class EncodedWords(NamedTuple):
    """A text of given words, cut into pieces."""

    ids: list[int]
    word_ids: list[int]


def encode_words(
    tokenizer: WordPiece | FastWordPiece,
    words: Sequence[str],
    max_length: int | None = None,
) -> EncodedWords:
    """Cut a text that is given as words into pieces, and remember of which word each
    is."""
    check_room(max_length, 2)
    ids, word_ids = [tokenizer.vocab[CLS]], [NO_WORD]
    cut = tokenizer.encode_batch(
        words, padding=None, max_length=None, add_special_tokens=False
    )
    for number, encoding in enumerate(cut):
        pieces = encoding.ids or [tokenizer.vocab[UNK]]
        if max_length is not None and len(ids) + len(pieces) + 1 > max_length:
            break
        ids += pieces
        word_ids += [number] * len(pieces)
    return EncodedWords([*ids, tokenizer.vocab[SEP]], [*word_ids, NO_WORD])


def pool_words(
    hidden: Float[Tensor, "B T D"],
    word_ids: Int[Tensor, "B T"],
    how: Literal["mean", "first"] = "mean",
) -> Float[Tensor, "B W D"]:
    """Make one vector for each word of the vectors of its pieces."""
    if how not in ("mean", "first"):
        raise ValueError(f"how is {how!r}; choose mean or first")
    words = int(word_ids.max()) + 1 if word_ids.numel() else 0
    if words < 1:
        raise ValueError(
            f"no piece is of a word: word_ids holds nothing but {NO_WORD}; number the"
            " words from 0"
        )
    # (B, 1, T), (W, 1) -> (B, W, T)
    of_word = word_ids[:, None] == torch.arange(words, device=word_ids.device)[:, None]
    if how == "first":
        of_word &= of_word.cumsum(dim=-1) == 1
    weights = of_word.to(hidden.dtype)
    # (B, W, T) @ (B, T, D) -> (B, W, D)
    return weights @ hidden / weights.sum(dim=-1, keepdim=True).clamp(min=1)


def sense_separation(vectors: Float[Tensor, "N D"], senses: Sequence[object]) -> float:
    """Say how well the vectors of a word's uses tell its senses apart.

    Take a use, another of the same sense and one of another sense: how often is the one
    of the same sense the more similar, by cosine? A tie counts one half. So 0.5 is
    chance, which any static vector reaches exactly, and 1 is all.

    Parameters
    ----------
    vectors
        One for each use of the word.
    senses
        Of each use.

    Returns
    -------
    float
        The mean over uses of the share of such pairs; each is the area under a ROC
        curve. A use that is the only one of its sense is compared with, and has no pair
        of its own.

    Raises
    ------
    ValueError
        If vectors and senses differ in number, there is one sense only, or no sense has
        two uses.

    Notes
    -----
    A share of comparisons stays where cosines are all high or all low. A mean cosine
    within and between senses would not, and vectors of different models differ in that
    (Ethayarajh 2019).

    Examples
    --------
    >>> uses = torch.tensor([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [1.0, 1.0]])
    >>> senses = ["fruit", "fruit", "company", "company"]
    >>> sense_separation(uses, senses), sense_separation(torch.ones(4, 2), senses)
    (0.8125, 0.5)
    """
    if len(senses) != len(vectors):
        raise ValueError(
            f"there are {len(vectors)} vectors but {len(senses)} senses; give one sense"
            " for each use"
        )
    names = list(dict.fromkeys(senses))
    labels = torch.tensor(
        [names.index(sense) for sense in senses], device=vectors.device
    )
    unit = F.normalize(vectors.double(), dim=1)
    cosines = unit @ unit.T
    shares = []
    for use, sense in enumerate(labels.tolist()):
        same, other = labels == sense, labels != sense
        same[use] = False
        if same.any() and other.any():
            # (same, 1) - (other) -> (same, other)
            lead = cosines[use, same][:, None] - cosines[use, other]
            shares.append(((lead > TIE).double() + 0.5 * (lead.abs() <= TIE)).mean())
    if not shares:
        raise ValueError(
            f"{len(senses)} uses of {len(names)} senses hold nothing to compare; give"
            " two senses, one of them twice"
        )
    return torch.stack(shares).mean().item()
