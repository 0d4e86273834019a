"""The heads of fine-tuning: a pre-trained BERT and one new layer for each kind of task
(Devlin et al. 2019, figure 4).

Other letters: L, labels; C, choices.

What a head reads and what it returns::

    SequenceClassifier       [CLS], pooled    a label or a number     section 4.1: C Wᵀ
    TokenClassifier          every state      a label for each token  section 5.3
    SpanClassifier           every state      a start and an end      4.2: S·T_i, E·T_i
    MultipleChoiceClassifier [CLS] of each    one of C inputs         4.4: V·C_j

The new parameters are called as in ``transformers``, so that a checkpoint goes both
ways (:mod:`course_lib.finetuning.task_model`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.layers import initialise
from course_lib.bert.model import BertModel
from course_lib.finetuning.task_model import TaskModel
from course_lib.pretraining.masking import IGNORE


class SequenceClassifier(TaskModel):
    """One label for a sentence or a pair of them, or one number: softmax(C Wᵀ) on the
    pooled state C of [CLS].

    Parameters
    ----------
    config
        Sizes and choices.
    labels
        The names of the labels, or how many there are. A single one is no class: then
        the model is to guess a number.

    Notes
    -----
    Devlin et al. 2019, section 4.1.

    Examples
    --------
    >>> model = SequenceClassifier(
    ...     BertConfig.tiny(vocab_size=50), ["negative", "positive"]
    ... )
    >>> model(torch.tensor([[2, 47, 3]])).shape
    torch.Size([1, 2])
    """

    head = "classifier"
    architecture = "BertForSequenceClassification"

    def __init__(self, config: BertConfig, labels: int | Sequence[str]):
        super().__init__(config, labels)
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = new_layer(config, len(self.labels))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B L"]:
        """Return the logits of the labels, or in one column the numbers; arguments as
        in `BertModel`."""
        output = self.bert(input_ids, attention_mask, token_type_ids)
        return self.classifier(self.dropout(output.pooler_output))

    def loss_sum(
        self,
        logits: Float[Tensor, "B L"],
        labels: Int[Tensor, "B"] | Float[Tensor, "B"],
    ) -> tuple[Float[Tensor, ""], int]:
        """Return the sum of the cross-entropies, or of the squared errors, and their
        number."""
        if self.guesses_number:
            # a score of 4.33 is none of bfloat16's numbers
            precise = torch.promote_types(logits.dtype, torch.float32)
            return F.mse_loss(
                logits[:, 0].to(precise), labels.to(precise), reduction="sum"
            ), len(labels)
        return F.cross_entropy(logits, labels, reduction="sum"), len(labels)

    def right(
        self, logits: Float[Tensor, "B L"], labels: Int[Tensor, "B"]
    ) -> Bool[Tensor, "B"]:
        """Say which guesses of a class are right."""
        return logits.argmax(dim=1) == labels


class TokenClassifier(TaskModel):
    """One label for each token, guessed from its state alone: no guess depends on its
    neighbours' guesses.

    Parameters
    ----------
    config
        Sizes and choices.
    labels
        The names of the labels, or how many there are.

    Notes
    -----
    Devlin et al. 2019, section 5.3. There is no pooler.

    Examples
    --------
    >>> model = TokenClassifier(BertConfig.tiny(vocab_size=50), ["O", "B-PER", "I-PER"])
    >>> model(torch.tensor([[2, 47, 11, 3]])).shape
    torch.Size([1, 4, 3])
    """

    head = "classifier"
    architecture = "BertForTokenClassification"
    pools = False

    def __init__(self, config: BertConfig, labels: int | Sequence[str]):
        super().__init__(config, labels)
        self.bert = without_pooler(BertModel(config))
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = new_layer(config, len(self.labels))

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T L"]:
        """Return the logits of the labels of each token; arguments as in
        `BertModel`."""
        hidden = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.classifier(self.dropout(hidden))

    def loss_sum(
        self, logits: Float[Tensor, "B T L"], labels: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, ""], int | Int[Tensor, ""]]:
        """Return the sum of the cross-entropies and their number; where the label is
        `IGNORE`, there is none."""
        loss = F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum"
        )
        return loss, (labels != IGNORE).sum()

    def right(
        self, logits: Float[Tensor, "B T L"], labels: Int[Tensor, "B T"]
    ) -> Bool[Tensor, "N"]:
        """Say of each label which is not `IGNORE` whether the guess is right."""
        asked = labels != IGNORE
        return logits.argmax(dim=2)[asked] == labels[asked]


class SpanLogits(NamedTuple):
    """Scores of each token as the first and as the last of the answer."""

    start_logits: Tensor
    end_logits: Tensor


class SpanClassifier(TaskModel):
    """Where an answer starts and where it ends: two vectors S and E, and a softmax over
    the positions for each.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Devlin et al. 2019, section 4.2. There is no pooler, and no dropout before the head.

    Examples
    --------
    >>> output = SpanClassifier(BertConfig.tiny(vocab_size=50))(
    ...     torch.tensor([[2, 47, 3, 11, 12, 3]])
    ... )
    >>> output.start_logits.shape, output.end_logits.shape
    (torch.Size([1, 6]), torch.Size([1, 6]))
    """

    head = "qa_outputs"
    architecture = "BertForQuestionAnswering"
    pools = False
    fixed_labels = ("start", "end")

    def __init__(self, config: BertConfig):
        super().__init__(config, self.fixed_labels)
        self.bert = without_pooler(BertModel(config))
        self.qa_outputs = new_layer(config, 2)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> SpanLogits:
        """Score each token as the answer's first and as its last; arguments as in
        `BertModel`."""
        hidden = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        # (B, T, 2) -> (B, T), (B, T)
        start, end = self.qa_outputs(hidden).unbind(dim=2)
        return SpanLogits(start, end)

    def loss_sum(
        self, logits: SpanLogits, labels: Int[Tensor, "B 2"]
    ) -> tuple[Float[Tensor, ""], int]:
        """Return the sum over examples of the mean of both cross-entropies, and the
        number of examples.

        The softmax goes over all positions of the batch, as in ``transformers``:
        padding too is to score low.
        """
        start = F.cross_entropy(logits.start_logits, labels[:, 0], reduction="sum")
        end = F.cross_entropy(logits.end_logits, labels[:, 1], reduction="sum")
        return (start + end) / 2, len(labels)

    def right(
        self, logits: SpanLogits, labels: Int[Tensor, "B 2"]
    ) -> Bool[Tensor, "B"]:
        """Say for which examples both positions are right, each guessed without regard
        to the other."""
        guesses = torch.stack(
            [logits.start_logits.argmax(dim=1), logits.end_logits.argmax(dim=1)], dim=1
        )
        return (guesses == labels).all(dim=1)


class MultipleChoiceClassifier(TaskModel):
    """Which of several endings: each is read with the context as an input of its own
    and gets one score, V · C_j.

    Parameters
    ----------
    config
        Sizes and choices.

    Notes
    -----
    Devlin et al. 2019, section 4.4. The softmax goes over the choices of one example.

    Examples
    --------
    >>> model = MultipleChoiceClassifier(BertConfig.tiny(vocab_size=50))
    >>> model(torch.randint(5, 50, (2, 4, 7))).shape
    torch.Size([2, 4])
    """

    head = "classifier"
    architecture = "BertForMultipleChoice"
    fixed_labels = ("score",)

    def __init__(self, config: BertConfig):
        super().__init__(config, self.fixed_labels)
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = new_layer(config, 1)

    def forward(
        self,
        input_ids: Int[Tensor, "B C T"],
        attention_mask: Bool[Tensor, "B C T"] | None = None,
        token_type_ids: Int[Tensor, "B C T"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Return the logits of the choices; arguments as in `BertModel`, with one row
        for each choice."""
        rows = [
            None if x is None else x.flatten(0, 1)
            for x in (input_ids, attention_mask, token_type_ids)
        ]
        pooled = self.bert(*rows).pooler_output  # (B C, D)
        scores = self.classifier(self.dropout(pooled))  # (B C, 1)
        return scores.view(input_ids.shape[:2])  # (B C, 1) -> (B, C)

    def loss_sum(
        self, logits: Float[Tensor, "B C"], labels: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, ""], int]:
        """Return the sum of the cross-entropies over the choices, and the number of
        examples."""
        return F.cross_entropy(logits, labels, reduction="sum"), len(labels)

    def right(
        self, logits: Float[Tensor, "B C"], labels: Int[Tensor, "B"]
    ) -> Bool[Tensor, "B"]:
        """Say for which examples the best choice is the right one."""
        return logits.argmax(dim=1) == labels


def new_layer(config: BertConfig, outputs: int) -> nn.Linear:
    """Return a head with first weights as `BertConfig.initializer_range` says."""
    layer = nn.Linear(config.hidden_size, outputs)
    initialise(layer, config.initializer_range)
    return layer


def without_pooler(bert: BertModel) -> BertModel:
    """Take the pooler off an encoder whose states are read one by one; ``transformers``
    does the same."""
    bert.pooler = nn.Identity()  # type: ignore[assignment]
    return bert
