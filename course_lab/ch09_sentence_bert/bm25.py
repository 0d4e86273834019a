"""BM25: how well a document matches the words of a query, the classic that search by
vectors is held against.

Q  queries     N  documents
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor

# how soon a repeated word counts no more, and how much a long document is held back
K1, B = (1.2, 0.75)


class Bm25:
    r"""An index of documents by their words."""

    def __init__(self, documents: Sequence[str]):
        self._words = CountVectorizer(token_pattern=r"\w+")
        counts = csr_matrix(self._words.fit_transform(documents), dtype=np.float64)
        found_in = np.asarray((counts > 0).sum(axis=0)).ravel()
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        idf = np.log1p((len(documents) - found_in + 0.5) / (found_in + 0.5))
        held_back = K1 * (1 - B + B * lengths / lengths.mean())
        per_entry = np.repeat(held_back, np.diff(counts.indptr))
        counts.data = (
            counts.data * (K1 + 1) / (counts.data + per_entry) * idf[counts.indices]
        )
        self._weights = counts

    def scores(self, queries: Sequence[str]) -> Tensor:
        """Score each document for each query, ``(Q, N)``; a word that no document has
        is passed over."""
        asked = csr_matrix(self._words.transform(queries), dtype=np.float64)
        return torch.from_numpy((asked @ self._weights.T).toarray()).float()
