"""What stands on top of a stack of blocks: output layers, and the loss with smoothed
labels.

Other letters: N, predictions; C, classes.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class LanguageModelHead(nn.Linear):
    """Score every word at every position with the embedding matrix itself (Press and
    Wolf 2017).

    Parameters
    ----------
    embedding
        The embedding that is shared ("tied"): row v scores word v, so the head adds one
        bias a word and no matrix.

    Notes
    -----
    Vaswani et al. 2017, section 3.4.

    Examples
    --------
    >>> import torch
    >>> head = LanguageModelHead(nn.Embedding(9, 4))
    >>> head(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 9])
    """

    def __init__(self, embedding: nn.Embedding):
        vocab_size, dim = embedding.weight.shape
        super().__init__(dim, vocab_size, device="meta")  # no weights of its own:
        self.weight = embedding.weight  # tied
        self.bias = nn.Parameter(embedding.weight.new_zeros(vocab_size))


class ClassificationHead(nn.Module):
    """Score classes from the state of the first position, which has attended to the
    whole sentence.

    Parameters
    ----------
    dim
        Features D.
    num_classes
        Classes C.
    dropout
        Share of features set to zero in training.

    Notes
    -----
    Devlin et al. 2019, section 4.1, without the layer between.

    Examples
    --------
    >>> import torch
    >>> ClassificationHead(dim=4, num_classes=3)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, dim: int, num_classes: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(dim, num_classes)

    def forward(self, hidden: Float[Tensor, "B T D"]) -> Float[Tensor, "B C"]:
        """Return the logits of the classes."""
        return self.output(self.dropout(hidden[:, 0]))  # (B, T, D) -> (B, D) -> (B, C)


def label_smoothing_loss(
    logits: Float[Tensor, "N V"],
    labels: Int[Tensor, "N"],
    smoothing: float = 0.1,
    ignore_index: int = 0,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    r"""Sum the cross-entropy against targets that keep ε of their mass for all words
    (Szegedy et al. 2016, section 7).

    .. math:: -\sum_v \left((1 - \epsilon)\,[v = y] + \frac{\epsilon}{V}\right) \log p_v

    Parameters
    ----------
    logits
        Unnormalised scores of each prediction.
    labels
        The right words.
    smoothing
        The share ε; 0 is plain cross-entropy. Vaswani et al. 2017, section 5.4, use
        0.1.
    ignore_index
        Predictions with this label (padding) count for nothing.

    Returns
    -------
    tuple of Tensor
        The sum over predictions in nats, and the number of predictions in it.

    Raises
    ------
    ValueError
        If `smoothing` is not at least 0 and below 1.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[0.0, 2.0, 1.0], [5.0, 0.0, 0.0]])
    >>> labels = torch.tensor([1, 0])
    >>> total, count = label_smoothing_loss(logits, labels, smoothing=0.3)
    >>> round(total.item(), 4), count.item()
    (0.7076, 1)
    """
    if not 0 <= smoothing < 1:
        raise ValueError(
            f"smoothing is {smoothing}; it is a share, at least 0 and below 1, e.g. 0.1"
        )
    counted = labels != ignore_index
    precise = torch.promote_types(logits.dtype, torch.float32)
    log_probs = logits.to(precise).log_softmax(dim=-1)
    right = log_probs.gather(-1, labels[:, None]).squeeze(-1)  # (N, V) -> (N)
    losses = -(1 - smoothing) * right - smoothing * log_probs.mean(dim=-1)
    return losses.masked_fill(~counted, 0.0).sum(), counted.sum()
