"""A label for a sentence from the mean of its states, for encoders that were trained to
be read so (Sentence-BERT).

Such an encoder has learnt to spread what a sentence says over all its tokens; its [CLS]
was never asked for it.
"""

from collections.abc import Sequence

from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.bert.config import BertConfig
from course_lib.finetuning.heads import SequenceClassifier, without_pooler
from course_lib.sentence_bert.model import pool


class SentenceClassifier(SequenceClassifier):
    """One label for a sentence or a pair of them, or one number: a layer on the mean of
    all states.

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
    >>> import torch
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
