"""Masked language modelling: hide some tokens, and let the model guess what they were.

Of each sequence a share of the tokens is chosen, 15% in the paper. A chosen token is
replaced by [MASK] eight times in ten, by a random token once in ten, and once in ten it
stays. The loss is taken at the chosen positions only, so a label is the original id
there and `IGNORE` everywhere else.

Other letters: S, special tokens of the vocabulary.

Not here: where the sequences come from (`packing`, `next_sentence`), and the loss
(`pretraining`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.attention.masks import check_boolean
from course_lib.wordpiece.training import PREFIX, SPECIAL_TOKENS

IGNORE = -100
"""The label of a position that the loss leaves out;
``torch.nn.functional.cross_entropy`` ignores it."""

UNITS = ("token", "word", "span")
OTHERS = (
    0.05  # the share of the rate at which tokens are chosen where others are preferred
)


@dataclass(frozen=True)
class MaskingConfig:
    """How tokens are hidden; the defaults are the paper's.

    Parameters
    ----------
    rate
        Share of the tokens that are chosen.
    mask_share
        Share of the chosen that become [MASK].
    random_share
        Share of the chosen that become a random token; the rest stays as it is.
    unit
        What is chosen as a whole: "token", "word" (all pieces of a word) or "span" (a
        name, or several words). Of a word each piece then has a fate of its own; a span
        has one fate.
    mean_span_length
        For "span" where no spans are given: the mean length, in words, of those that
        `random_spans` draws.

    Raises
    ------
    ValueError
        If a share is not between 0 and 1, both shares are above 1 together, or the unit
        is not known.

    Notes
    -----
    Devlin et al. 2019, task 1 in section 3.1 and appendix C.2. Whole words: release
    notes of their code, May 2019; names: Sun et al. 2019 (ERNIE); random spans: Joshi
    et al. 2020 (SpanBERT), with mean length 3.8.

    Examples
    --------
    >>> MaskingConfig(rate=0.4).mask_share
    0.8
    """

    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    unit: str = "token"
    mean_span_length: float = 3.8

    def __post_init__(self) -> None:
        for name in ("rate", "mask_share", "random_share"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(
                    f"{name} is {value}; it is a share, so choose a number from 0 to 1,"
                    " e.g. 0.15"
                )
        if self.rate == 0:
            raise ValueError(
                "rate is 0, so there would be nothing to guess; choose a share above 0,"
                " e.g. 0.15"
            )
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(
                f"mask_share={self.mask_share} and random_share={self.random_share} are"
                " shares of the same tokens and must not exceed 1 together; the rest"
                " stays as it is"
            )
        if self.unit not in UNITS:
            raise ValueError(f"unit is {self.unit!r}; choose one of {', '.join(UNITS)}")
        if self.mean_span_length < 1:
            raise ValueError(
                f"mean_span_length is {self.mean_span_length}; a span has at least 1"
                " word"
            )


@dataclass(frozen=True)
class VocabIds:
    """What masking has to know of a vocabulary.

    Parameters
    ----------
    mask_id
        The id of [MASK].
    size
        Tokens in the vocabulary, V.
    special_ids
        The ids of special tokens, which are never chosen, and never drawn as a random
        token.
    continuation_ids
        The ids of pieces that continue a word ("##ing"); needed to find whole words.
    preferred_ids
        The ids that are chosen at the full rate, and all others at `OTHERS` of it; none
        given: all at the full rate.

    Raises
    ------
    ValueError
        If an id is not in the vocabulary, or no token is left to draw.

    Examples
    --------
    >>> VocabIds.of(
    ...     {
    ...         "[PAD]": 0,
    ...         "[UNK]": 1,
    ...         "[CLS]": 2,
    ...         "[SEP]": 3,
    ...         "[MASK]": 4,
    ...         "em": 5,
    ...         "##bed": 6,
    ...     }
    ... )
    VocabIds(mask_id=4, size=7, special_ids=(0, 1, 2, 3, 4), continuation_ids=(6,),
    preferred_ids=())
    """

    mask_id: int
    size: int
    special_ids: tuple[int, ...] = ()
    continuation_ids: tuple[int, ...] = ()
    preferred_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for index in (
            self.mask_id,
            *self.special_ids,
            *self.continuation_ids,
            *self.preferred_ids,
        ):
            if not 0 <= index < self.size:
                raise ValueError(
                    f"id {index} is not in a vocabulary of {self.size}; ids run from 0"
                    f" to {self.size - 1}"
                )
        if len({self.mask_id, *self.special_ids}) == self.size:
            raise ValueError(
                f"all {self.size} tokens of the vocabulary are special; none is left to"
                " draw at random"
            )

    @classmethod
    def of(
        cls, vocab: Mapping[str, int], preferred: Collection[str] = ()
    ) -> "VocabIds":
        """Read them off a tokenizer's vocabulary, token -> id; it must hold [MASK] and
        the preferred tokens."""
        if lacking := [
            token for token in (SPECIAL_TOKENS[-1], *preferred) if token not in vocab
        ]:
            raise ValueError(
                f"the vocabulary lacks {lacking[0]}; train it with the special tokens,"
                " or add it"
            )
        return cls(
            mask_id=vocab[SPECIAL_TOKENS[-1]],
            size=len(vocab),
            special_ids=tuple(
                vocab[token] for token in SPECIAL_TOKENS if token in vocab
            ),
            continuation_ids=tuple(
                index for token, index in vocab.items() if token.startswith(PREFIX)
            ),
            preferred_ids=tuple(vocab[token] for token in preferred),
        )

    @cached_property
    def relative_rates(self) -> Float[Tensor, "V"]:
        """For each id, the share of the full rate at which it is chosen where some are
        preferred."""
        preferred = torch.isin(
            torch.arange(self.size), torch.tensor(self.preferred_ids)
        )
        return torch.where(preferred, 1.0, OTHERS)

    @cached_property
    def is_special(self) -> Bool[Tensor, "V"]:
        """For each id, whether it is special; [MASK] always is."""
        table = torch.zeros(self.size, dtype=torch.bool)
        table[[self.mask_id, *self.special_ids]] = True
        return table

    @cached_property
    def ordinary(self) -> Int[Tensor, "_"]:
        """The ids that a random token is drawn from: all but the special ones."""
        return torch.nonzero(~self.is_special).flatten()

    def word_ids(self, input_ids: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """Number the words of each sequence: a piece that continues a word has the
        number of the piece before it.

        ValueError if no id of the vocabulary is known to continue a word.
        """
        if not self.continuation_ids:
            raise ValueError(
                "no id continues a word, so words cannot be told: make VocabIds with"
                " VocabIds.of(vocab)"
            )
        return (~self._continues.to(input_ids.device)[input_ids]).cumsum(dim=1) - 1

    @cached_property
    def _continues(self) -> Bool[Tensor, "V"]:
        table = torch.zeros(self.size, dtype=torch.bool)
        table[list(self.continuation_ids)] = True
        return table


def random_spans(
    word_ids: Int[Tensor, "B T"],
    mean_length: float,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B T"]:
    """Cut each sequence into spans of whole words whose lengths follow a geometric
    distribution."""
    starts = torch.ones_like(word_ids, dtype=torch.bool)
    starts[:, 1:] = word_ids[:, 1:] != word_ids[:, :-1]
    draws = torch.rand(word_ids.shape, generator=generator, device=word_ids.device)
    begins = starts & (draws < 1 / mean_length)
    begins[:, 0] = True
    return begins.cumsum(dim=1) - 1


def choose_positions(
    eligible: Bool[Tensor, "B T"],
    rate: float | Float[Tensor, "B T"],
    draws: Float[Tensor, "B T"],
    unit_ids: Int[Tensor, "B T"] | None = None,
) -> Bool[Tensor, "B T"]:
    """Choose the positions whose draw is below the rate, and in each sequence at least
    the one with the lowest draw."""
    if unit_ids is not None:
        first = _first_of_unit(eligible, unit_ids)
        draws = draws.gather(1, first)
        rate = rate.gather(1, first) if isinstance(rate, Tensor) else rate
    draws = draws.masked_fill(~eligible, 2.0)  # above every draw
    return eligible & ((draws < rate) | (draws == draws.amin(dim=1, keepdim=True)))


def _first_of_unit(eligible: Tensor, unit_ids: Tensor) -> Tensor:
    """For each position, the first position of its unit; one that is not eligible ends
    a unit."""
    begins = torch.ones_like(eligible)
    begins[:, 1:] = (unit_ids[:, 1:] != unit_ids[:, :-1]) | (
        eligible[:, 1:] != eligible[:, :-1]
    )
    places = torch.arange(eligible.shape[1], device=eligible.device).expand_as(unit_ids)
    return places.masked_fill(~begins, 0).cummax(dim=1).values


def corrupt(
    input_ids: Int[Tensor, "B T"],
    chosen: Bool[Tensor, "B T"],
    fates: Float[Tensor, "B T"],
    random_ids: Int[Tensor, "B T"],
    mask_id: int,
    config: MaskingConfig | None = None,
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Replace the chosen tokens as one number each decides, and label them with what
    they were.

    Parameters
    ----------
    input_ids
        The sequences; they are not changed.
    chosen
        True at the positions to guess.
    fates
        Numbers from 0 to 1: below `mask_share` the token becomes [MASK], in the next
        `random_share` a random token, above it stays. One number for both, because two
        independent ones would give the second only what the first has left over.
    random_ids
        The random tokens.
    mask_id
        The id of [MASK].
    config
        The shares; those of the paper if not given.

    Returns
    -------
    masked_ids, labels : Tensor
        The sequences that the model reads, and the original ids at chosen positions,
        `IGNORE` elsewhere.

    Notes
    -----
    Devlin et al. 2019, task 1 in section 3.1; Phuong and Hutter 2022, algorithm 12.

    Examples
    --------
    The first and the third of three tokens are hidden; the vocabulary's [MASK] is
    50001.

    >>> x = torch.tensor([[21, 11987, 5438]])
    >>> chosen = torch.tensor([[True, False, True]])
    >>> corrupt(x, chosen, fates=torch.zeros(1, 3), random_ids=x, mask_id=50001)
    (tensor([[50001, 11987, 50001]]), tensor([[  21, -100, 5438]]))
    """
    config = config or MaskingConfig()
    masked = chosen & (fates < config.mask_share)
    replaced = chosen & ~masked & (fates < config.mask_share + config.random_share)
    masked_ids = torch.where(
        replaced, random_ids, input_ids.masked_fill(masked, mask_id)
    )
    return masked_ids, input_ids.masked_fill(~chosen, IGNORE)


def mask_tokens(
    input_ids: Int[Tensor, "B T"],
    special_tokens_mask: Bool[Tensor, "B T"],
    generator: torch.Generator | None,
    vocab: VocabIds,
    config: MaskingConfig | None = None,
    word_ids: Int[Tensor, "B T"] | None = None,
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Hide tokens at random.

    Parameters
    ----------
    input_ids
        The sequences, padded; they are not changed.
    special_tokens_mask
        True at [CLS], [SEP] and padding: never chosen. Nor is what the vocabulary holds
        as special, e.g. an [UNK].
    generator
        For all draws; None for torch's own.
    vocab
        Of the ids.
    config
        Rate, shares and unit; those of the paper if not given.
    word_ids
        For the units "word" and "span": equal numbers at neighbours that belong
        together, such as the tokens of a name. If not given, words are told by their
        pieces, and spans of words are drawn with `random_spans`.

    Returns
    -------
    masked_ids, labels : Tensor
        The sequences that the model reads, and the original ids at chosen positions,
        `IGNORE` elsewhere. In each sequence at least one unit is chosen, unless all of
        it is special.

    Raises
    ------
    ValueError
        If the mask is not boolean, `word_ids` are given for the unit "token", or the
        vocabulary knows no words.

    Notes
    -----
    Devlin et al. 2019, task 1 in section 3.1.

    Examples
    --------
    >>> x = torch.tensor([[101, 21, 1987, 5438, 102]])
    >>> special = torch.tensor([[True, False, False, False, True]])
    >>> vocab = VocabIds(mask_id=103, size=30522, special_ids=(0, 100, 101, 102, 103))
    >>> masked_ids, labels = mask_tokens(
    ...     x, special, torch.Generator().manual_seed(1), vocab, MaskingConfig(rate=0.5)
    ... )
    >>> masked_ids.tolist(), labels.tolist()
    ([[101, 103, 103, 5438, 102]], [[-100, 21, 1987, -100, -100]])
    """
    config = config or MaskingConfig()
    check_boolean(special_tokens_mask, "special_tokens_mask", "special token")
    if word_ids is not None and config.unit == "token":
        raise ValueError(
            "word_ids are given, but single tokens are chosen; set unit='word' or"
            " unit='span'"
        )
    where = input_ids.device
    if config.unit != "token" and word_ids is None:
        word_ids = vocab.word_ids(input_ids)
        if config.unit == "span":
            word_ids = random_spans(word_ids, config.mean_span_length, generator)
    choice, fates = torch.rand(2, *input_ids.shape, generator=generator, device=where)
    ordinary = vocab.ordinary.to(where)
    random_ids = ordinary[
        torch.randint(len(ordinary), input_ids.shape, generator=generator, device=where)
    ]
    eligible = ~(special_tokens_mask | vocab.is_special.to(where)[input_ids])
    if config.unit == "span" and word_ids is not None:
        fates = fates.gather(1, _first_of_unit(eligible, word_ids))
    rate = (
        config.rate * vocab.relative_rates.to(where)[input_ids]
        if vocab.preferred_ids
        else config.rate
    )
    chosen = choose_positions(eligible, rate, choice, word_ids)
    return corrupt(input_ids, chosen, fates, random_ids, vocab.mask_id, config)
