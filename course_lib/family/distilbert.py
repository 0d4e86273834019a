"""DistilBERT: half of BERT's layers, taught by the whole (Sanh et al. 2019).

Other letters: N, chosen positions of the whole batch.

The student has no segments and no pooler. It starts with every second layer of its
teacher and learns from three losses: the teacher's guesses, the hidden tokens
themselves, and the direction of the teacher's states.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.layers import (
    MaskedLanguageModelHead,
    check_positions,
    encoder_block,
    initialise,
)
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.pretraining.batches import PreTrainingBatch


class DistilBertEmbeddings(nn.Module):
    """The input without segments: token + position, then layer norm."""

    def __init__(self, config: BertConfig):
        super().__init__()
        width = config.hidden_size
        self.token = nn.Embedding(
            config.vocab_size, width, padding_idx=config.pad_token_id
        )
        self.position = nn.Embedding(config.max_position_embeddings, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the first hidden states; `token_type_ids` have no part in them."""
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = self.token(input_ids) + self.position(positions)
        return self.dropout(self.norm(hidden))


class FirstState(nn.Module):
    """What stands in for a pooler where there is none: the state of [CLS], as it is."""

    def forward(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """Return the vector of each sequence."""
        return hidden[:, 0]


class DistilBertModel(nn.Module):
    """A `BertModel` without segments and pooler.

    Parameters
    ----------
    config
        Sizes and choices; the published one is BERT-base with 6 layers.

    Notes
    -----
    Sanh et al. 2019, section 3.

    Examples
    --------
    >>> model = DistilBertModel(BertConfig.base(num_hidden_layers=6))
    >>> sum(parameter.numel() for parameter in model.parameters())
    66362880
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.embeddings = DistilBertEmbeddings(config)
        self.blocks = nn.ModuleList(
            encoder_block(config) for _ in range(config.num_hidden_layers)
        )
        self.pooler = FirstState()
        self.apply(lambda module: initialise(module, config.initializer_range))

    forward = BertModel.forward


class MaskedLanguageModelOutput(NamedTuple):
    """What a `DistilBertForMaskedLM` returns."""

    prediction_logits: Tensor
    hidden: Tensor


class DistilBertForMaskedLM(nn.Module):
    """A `DistilBertModel` with the head that predicts tokens, and no other."""

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.bert = DistilBertModel(config)
        self.mlm_head = MaskedLanguageModelHead(config, self.bert.embeddings.token)
        self.mlm_head.apply(lambda module: initialise(module, config.initializer_range))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        masked_positions: Int[Tensor, "N"] | None = None,
    ) -> MaskedLanguageModelOutput:
        """Score the tokens; arguments as in
        `course_lib.bert.model.BertForPreTraining`."""
        hidden = self.bert(input_ids, attention_mask).last_hidden_state
        if masked_positions is not None:
            check_positions(masked_positions, input_ids)
            hidden = hidden.flatten(0, 1)[masked_positions]  # (B, T, D) -> (N, D)
        return MaskedLanguageModelOutput(self.mlm_head(hidden), hidden)


def student_of(teacher: BertForPreTraining) -> DistilBertForMaskedLM:
    """Make a student of half the layers, and let it start with every second one of its
    teacher's.

    Sanh et al. 2019, section 3, "student initialization": "taking one layer out of
    two"."""
    kept = range(0, teacher.config.num_hidden_layers, 2)
    student = DistilBertForMaskedLM(
        replace(teacher.config, num_hidden_layers=len(kept))
    )
    of_teacher = teacher.state_dict()
    weights = dict(of_teacher)
    for new, old in enumerate(kept):
        theirs, ours = f"bert.blocks.{old}.", f"bert.blocks.{new}."
        for name in of_teacher:
            if theirs in name:
                weights[name.replace(theirs, ours)] = of_teacher[name]
    student.load_state_dict({name: weights[name] for name in student.state_dict()})
    return student


def soft_target_loss(
    student_logits: Float[Tensor, "N V"],
    teacher_logits: Float[Tensor, "N V"],
    temperature: float = 2.0,
) -> Float[Tensor, ""]:
    r"""Ask the student for all of the teacher's guesses, not for the best one only.

    .. math:: \frac{\tau^2}{N} \sum_n \sum_v p_{nv} \ln \frac{p_{nv}}{q_{nv}},
        \qquad p = \mathrm{softmax}(z / \tau)

    Parameters
    ----------
    student_logits
        Those that q is made of.
    teacher_logits
        The z that p is made of.
    temperature
        The τ: above 1, it shows more of what the teacher holds for possible. The factor
        τ² keeps the size of the gradient.

    Returns
    -------
    Tensor
        In nats, times τ²; 0 where the student guesses as its teacher.

    Raises
    ------
    ValueError
        If the temperature is not above 0.

    Notes
    -----
    Hinton et al. 2015, section 2; Sanh et al. 2019, section 2.

    Examples
    --------
    >>> logits = torch.tensor([[2.0, 0.0, 0.0]])
    >>> soft_target_loss(logits, logits).item()
    0.0
    >>> # ln 3 less the entropy of p
    >>> round(soft_target_loss(torch.zeros(1, 3), logits, temperature=1.0).item(), 4)
    0.433
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0, e.g. 2")
    guess = (student_logits / temperature).log_softmax(-1)
    wanted = (teacher_logits / temperature).log_softmax(-1)
    return temperature**2 * F.kl_div(
        guess, wanted, reduction="batchmean", log_target=True
    )


def cosine_distance(
    student_hidden: Float[Tensor, "N D"], teacher_hidden: Float[Tensor, "N D"]
) -> Float[Tensor, ""]:
    """Ask the student's states to point where the teacher's do: the mean of 1 -
    cosine."""
    return (1 - F.cosine_similarity(student_hidden, teacher_hidden, dim=-1)).mean()


class DistillationWeights(NamedTuple):
    """How much each of the three losses counts; the defaults are those of the published
    training."""

    soft: float = 5.0
    masked: float = 2.0
    cosine: float = 1.0
    temperature: float = 2.0


def distillation_loss_sum(
    teacher: BertForPreTraining, weights: DistillationWeights | None = None
) -> Callable[[nn.Module, PreTrainingBatch], tuple[Float[Tensor, ""], int]]:
    """Return the loss of a student, as `course_lib.training.loop.train` takes it."""
    share = weights or DistillationWeights()
    teacher.eval()

    def loss_sum(student: nn.Module, batch: PreTrainingBatch) -> tuple[Tensor, int]:
        found = student(batch.input_ids, batch.attention_mask, batch.masked_positions)
        loss = share.masked * F.cross_entropy(
            found.prediction_logits, batch.masked_labels
        )
        if share.soft or share.cosine:
            with torch.no_grad():
                states = teacher.bert(
                    batch.input_ids, batch.attention_mask, batch.token_type_ids
                ).last_hidden_state
                # (B, T, D) -> (N, D)
                states = states.flatten(0, 1)[batch.masked_positions]
                wanted = teacher.mlm_head(states)
            loss = loss + share.soft * soft_target_loss(
                found.prediction_logits, wanted, share.temperature
            )
            loss = loss + share.cosine * cosine_distance(found.hidden, states)
        return loss * len(batch.input_ids), len(batch.input_ids)

    return loss_sum
