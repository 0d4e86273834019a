"""ColBERT: compare a query with a document token by token, each encoded on its own
(Khattab and Zaharia 2020).

Other letters: B, queries, or texts in a batch; N, documents; T, tokens of a
query or text; S, tokens of a document; D, features of a token's vector.

A cross-encoder reads each pair anew; a sentence vector squeezes a text into one point.
Late interaction stands between the two: documents are encoded once, but into a vector
for each token.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.attention.masks import check_mask
from course_lib.bert.model import BertModel


def maxsim(
    query: Float[Tensor, "B T D"],
    document: Float[Tensor, "N S D"],
    query_mask: Bool[Tensor, "B T"] | None = None,
    document_mask: Bool[Tensor, "N S"] | None = None,
) -> Float[Tensor, "B N"]:
    r"""For each token of the query take its most similar token of the document, and add
    up.

    .. math:: s(q, d) = \sum_t \max_s \; q_t \cdot d_s

    Parameters
    ----------
    query, document
        Vectors of tokens, of length 1 if the products are to be cosines.
    query_mask, document_mask
        True at tokens, False at padding; None says that nothing is padded.

    Returns
    -------
    Tensor
        A score for each query and each document. Padding has no part in it.

    Raises
    ------
    ValueError
        If a mask is not boolean, or a query or a document is all padding.

    Notes
    -----
    Khattab and Zaharia 2020, equation 3.

    Examples
    --------
    >>> query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> documents = torch.tensor([[[0.6, 0.8], [0.8, 0.6]], [[1.0, 0.0], [0.8, 0.6]]])
    >>> maxsim(query, documents)  # 0.8 + 0.8, and 1 + 0.6
    tensor([[1.6000, 1.6000]])
    """
    products = torch.einsum("btd,nsd->bnts", query, document)
    if document_mask is not None:
        check_mask(document_mask, name="document_mask")
        # (N, S) -> (1, N, 1, S)
        products = products.masked_fill(~document_mask[None, :, None], -torch.inf)
    best = products.amax(dim=-1)  # (B, N, T, S) -> (B, N, T)
    if query_mask is not None:
        check_mask(query_mask, name="query_mask")
        best = best.masked_fill(~query_mask[:, None], 0.0)  # (B, T) -> (B, 1, T)
    return best.sum(dim=-1)


class LateInteraction(nn.Module):
    """A BERT that gives each token a short vector of length 1.

    Parameters
    ----------
    bert
        The encoder. It is not copied.
    dim
        Features of a vector; 128 in the paper.

    Raises
    ------
    ValueError
        If `dim` is below 1.

    Notes
    -----
    Khattab and Zaharia 2020, section 3.2, without its padding of queries with [MASK]
    and without leaving out punctuation.

    Examples
    --------
    >>> from course_lib.bert.config import BertConfig
    >>> model = LateInteraction(BertModel(BertConfig.tiny(vocab_size=50)), dim=32)
    >>> model(torch.tensor([[2, 7, 8, 3]])).shape
    torch.Size([1, 4, 32])
    """

    def __init__(self, bert: BertModel, dim: int = 128):
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim is {dim}; it must be at least 1, e.g. 128")
        self.bert = bert
        self.shorten = nn.Linear(bert.config.hidden_size, dim, bias=False)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Return the vectors of all tokens; those of padding mean nothing."""
        hidden = self.bert(input_ids, attention_mask).last_hidden_state
        return F.normalize(self.shorten(hidden), dim=-1)  # shorter, and of length 1

    def score(
        self,
        queries: tuple[Tensor, Tensor | None],
        documents: tuple[Tensor, Tensor | None],
    ) -> Float[Tensor, "B N"]:
        """Compare each query with each document, both as ids and mask."""
        return maxsim(self(*queries), self(*documents), queries[1], documents[1])
