"""Sentence pairs with all that masking draws, so that the printed training algorithm
and the library's loop can read the same numbers.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.pretraining.batches import PreTrainingBatch, PreTrainingBatches
from course_lib.pretraining.masking import IGNORE, corrupt


class Drawn(NamedTuple):
    """Sentence pairs with all that masking draws, to be masked in more than one way."""

    ids: Tensor  # not masked
    real: Tensor
    segments: Tensor
    pair_labels: Tensor
    chosen: Tensor
    fates: Tensor
    random_ids: Tensor

    def batch(self, mask_id: int) -> PreTrainingBatch:
        """Return them as a batch of the library, masked as in the paper."""
        masked, labels = corrupt(
            self.ids, self.chosen, self.fates, self.random_ids, mask_id
        )
        places = self.chosen.flatten().nonzero().flatten()
        return PreTrainingBatch(
            masked,
            self.segments,
            self.real,
            places,
            labels.flatten()[places],
            self.pair_labels,
            mlm_weight=len(self.ids) / len(places),
            nsp_weight=1.0,
        )


def drawn_texts(
    data: PreTrainingBatches, batches: int, rows: int, seed: int
) -> list[Drawn]:
    """Take some sentence pairs of each of the first batches, and draw for them."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for batch in data(0)[:batches]:
        assert batch.next_sentence_labels is not None
        ids = batch.input_ids.flatten()
        ids = ids.scatter(0, batch.masked_positions, batch.masked_labels)
        pairs = (batch.next_sentence_labels != IGNORE).nonzero().flatten()[:rows]
        x = ids.view_as(batch.input_ids)[pairs]
        choice, fates = torch.rand(2, *x.shape, generator=generator)
        ordinary = data.vocab_ids.ordinary
        picks = torch.randint(len(ordinary), x.shape, generator=generator)
        eligible = ~data.vocab_ids.is_special[x]
        found.append(
            Drawn(
                x,
                x != data.vocab["[PAD]"],
                batch.token_type_ids[pairs],
                batch.next_sentence_labels[pairs],
                eligible & (choice < data.masking.rate),
                fates,
                ordinary[picks],
            )
        )
    return found
