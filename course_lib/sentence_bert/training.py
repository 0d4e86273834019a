"""Siamese training: one BERT reads each sentence of an example on its own, and the
vectors are compared.

Other letters: C, sentences of an example.

The towers of the paper's figures are one and the same encoder. So the sentences of a
batch are read together, as rows of one larger batch, and
:func:`course_lib.finetuning.finetune.finetune` trains it as it trains any model.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.finetuning.examples import Example
from course_lib.finetuning.finetune import FineTuningConfig, finetune
from course_lib.finetuning.task_model import TaskModel
from course_lib.sentence_bert.losses import Objective
from course_lib.sentence_bert.model import SentenceBert, token_ids
from course_lib.training.loop import History
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece


class SiameseBert(TaskModel):
    """A sentence encoder with what it is trained on."""

    head = "objective"
    architecture = "SentenceTransformer"

    def __init__(self, sentences: SentenceBert, objective: Objective):
        super().__init__(sentences.bert.config, objective.labels)
        self.bert = sentences.bert
        self.objective = objective
        # In a tuple, where torch does not see it: the encoder would else be twice in
        # each checkpoint.
        self._sentences = (sentences,)

    @property
    def sentences(self) -> SentenceBert:
        """The model whose encoder is trained."""
        return self._sentences[0]

    @property
    def guesses_number(self) -> bool:
        """Whether its label is a number."""
        return self.objective.guesses_number

    def forward(
        self,
        input_ids: Int[Tensor, "B C T"],
        attention_mask: Bool[Tensor, "B C T"] | None = None,
        token_type_ids: Int[Tensor, "B C T"] | None = None,
    ) -> Float[Tensor, "B C D"]:
        """Return the vector of each sentence of each example; arguments as in
        `BertModel`."""
        rows = [
            None if x is None else x.flatten(0, 1)
            for x in (input_ids, attention_mask, token_type_ids)
        ]
        # (B C, D) -> (B, C, D)
        return self.sentences(*rows).view(*input_ids.shape[:2], -1)

    def loss_sum(
        self, logits: Float[Tensor, "B C D"], labels: Tensor
    ) -> tuple[Float[Tensor, ""], int]:
        """Return the sum of the losses of a batch, and the number of its examples."""
        # a cosine of 0.999 is none of bfloat16's
        precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return self.objective(precise, labels).sum(), len(labels)

    def right(
        self, logits: Float[Tensor, "B C D"], labels: Tensor
    ) -> Bool[Tensor, "B"]:
        """Say which examples the vectors get right."""
        return self.objective.right(logits, labels)

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> "SiameseBert":
        """Refuse: a sentence encoder is kept without its objective."""
        raise ValueError(
            "an objective is not kept; read a SentenceBert, and give it a new one:"
            " SiameseBert(it, objective)"
        )

    def save_pretrained(
        self,
        folder: str | Path,
        tokenizer: WordPiece | FastWordPiece | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Write the sentence encoder with its own tokenizer, as
        `SentenceBert.save_pretrained`; not the objective."""
        if tokenizer is not None and tokenizer is not self.sentences.tokenizer:
            raise ValueError(
                "the sentence encoder has a tokenizer of its own, which is written;"
                " leave tokenizer out"
            )
        self.sentences.save_pretrained(folder, dtype)


def sentence_examples(
    rows: Sequence[Sequence[str]],
    labels: Sequence[int | float] | None,
    model: SentenceBert,
) -> list[Example]:
    """Make examples of sentences that are read one by one and compared."""
    if labels is not None and len(labels) != len(rows):
        raise ValueError(
            f"{len(rows)} rows but {len(labels)} labels; give each row one"
        )
    if any(isinstance(row, str) for row in rows):
        raise ValueError(
            "a row is one string; each row holds the sentences that are compared, two"
            " or more"
        )
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1 or widths[:1] in ([0], [1]):
        raise ValueError(
            f"rows have {widths} sentences; give each row equally many, at least 2"
        )
    flat = token_ids(
        model.tokenizer,
        [sentence for row in rows for sentence in row],
        model.max_length,
    )
    inputs = [(ids, [0] * len(ids)) for ids in flat]
    known = labels if labels is not None else [0] * len(rows)
    return [
        Example(inputs[i * widths[0] : (i + 1) * widths[0]], label)
        for i, label in enumerate(known)
    ]


def train_sentences(
    model: SentenceBert,
    objective: Objective,
    train_examples: Sequence[Example],
    validation_examples: Sequence[Example] | None = None,
    config: FineTuningConfig | None = None,
    score: Any = None,
) -> History:
    """Train a sentence encoder in place, on the course's one loop.

    Parameters
    ----------
    model
        Its encoder is trained, and left in evaluation mode on the device where it was
        trained.
    objective
        What its vectors are to do. Its own weights, if it has any, are trained too.
    train_examples, validation_examples
        As `sentence_examples` makes them.
    config, score
        As in `course_lib.finetuning.finetune.finetune`; `score` is given the
        `SiameseBert`.

    Returns
    -------
    History
        As `course_lib.finetuning.finetune.finetune`.

    Raises
    ------
    ValueError
        If examples and objective do not fit together; and as
        `course_lib.finetuning.finetune.finetune`.

    Notes
    -----
    The loss of an `InBatchObjective` depends on what shares a batch, so its validation
    figures do on the batch size.

    Examples
    --------
    >>> from course_lib.bert.model import BertModel
    >>> from course_lib.bert.config import BertConfig
    >>> from course_lib.sentence_bert.losses import CosineObjective
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> _ = torch.manual_seed(0)
    >>> encoder = SentenceBert(
    ...     BertModel(BertConfig.tiny(vocab_size=8)),
    ...     WordPiece([*SPECIAL_TOKENS, "a", "b", "c"]),
    ... )
    >>> examples = sentence_examples([("a b", "a c"), ("c", "a")], [0.9, 0.1], encoder)
    >>> history = train_sentences(
    ...     encoder, CosineObjective(), examples, config=FineTuningConfig(steps=2)
    ... )
    >>> len(history.losses)
    2
    """
    siamese = SiameseBert(model, objective)
    for example in (*train_examples[:1], *(validation_examples or ())[:1]):
        if len(example.rows) not in objective.sentences:
            # which says what is wrong
            objective.split(torch.empty(1, len(example.rows), 1))
    history = finetune(siamese, train_examples, validation_examples, config, score)
    model.eval()
    return history
