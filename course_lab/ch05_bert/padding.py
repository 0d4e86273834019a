"""What padding does to a BERT, with its mask and without (chapter 5).

Each text has one token masked. Padding is added after its last token, and two things
are looked at: the states of the real tokens, and the prediction of the masked one.

Dimension letters::

    B  texts in a batch     T  positions
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from course_lib.bert.model import BertForPreTraining
from course_lib.wordpiece.fast import FastWordPiece


class MaskedTexts(NamedTuple):
    """Texts of one length with one [MASK] each, at the same place."""

    ids: Int[Tensor, "B T"]
    masked: Int[Tensor, "B"]
    place: int


def mask_texts(
    texts: Iterable[str], tokenizer: FastWordPiece, number: int, length: int = 24
) -> MaskedTexts:
    """Take the first texts that are long enough, truncate them to one length, [CLS] and
    [SEP] included, and mask the token in the middle."""
    place, sep = length // 2, tokenizer.vocab["[SEP]"]
    encoded = (tokenizer.encode(text).ids for text in texts)
    enough = (ids for ids in encoded if len(ids) >= length)
    rows = [[*ids[: length - 1], sep] for ids in islice(enough, number)]
    if len(rows) < number:
        raise ValueError(
            f"{len(rows)} texts have {length} tokens or more, but {number} are needed"
        )
    batch = torch.tensor(rows)
    masked = batch[:, place].clone()
    batch[:, place] = tokenizer.vocab["[MASK]"]
    return MaskedTexts(batch, masked, place)


@dataclass
class Effect:
    """What one number of padded positions does, text by text.

    Parameters
    ----------
    moved
        Mean over the real positions of the change of a state, as a share of its length.
    changed
        1 if the masked token is predicted to be another than without padding, else 0.
    gained
        1 if only the prediction with padding is right, -1 if only that without is.
    """

    moved: list[float]
    changed: list[float]
    gained: list[float]


@torch.no_grad()
def padding_effect(
    model: BertForPreTraining,
    texts: MaskedTexts,
    padded: Sequence[int],
    with_mask: bool,
) -> list[Effect]:
    """Compare what the model computes with padding and without."""
    model.eval()
    length = texts.ids.shape[1]

    def look(number: int) -> tuple[Tensor, Tensor]:
        ids = F.pad(texts.ids, (0, number), value=model.config.pad_token_id or 0)
        real = F.pad(torch.ones_like(texts.ids, dtype=torch.bool), (0, number))
        states = model.bert(
            ids, real if with_mask and number else None
        ).last_hidden_state
        return states[:, :length], model.mlm_head(states[:, texts.place]).argmax(dim=-1)

    before, prediction = look(0)
    effects = []
    for number in padded:
        hidden, other = look(number)
        moved = (hidden - before).norm(dim=-1) / before.norm(dim=-1)
        right, was_right = (x == texts.masked for x in (other, prediction))
        gained = right.double() - was_right.double()
        changed = (other != prediction).double()
        effects.append(
            Effect(moved.mean(dim=1).tolist(), changed.tolist(), gained.tolist())
        )
    return effects
