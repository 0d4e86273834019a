"""A common part of all vectors: generated pairs to which one is added, and whitening,
which takes it out of real ones.

N  pairs or vectors     D  features
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def generated_pairs(
    lengths_vary: bool, seed: int, pairs: int = 2000, features: int = 64
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw u and v, ``(N, D)``, the similarity ``(N,)`` that their cosine shows but for
    noise, and a direction that a common part may have, as long as a vector."""
    generator = torch.Generator().manual_seed(seed)

    def unit(*shape: int) -> Tensor:
        return F.normalize(torch.randn(*shape, generator=generator), dim=-1)

    similarity = torch.rand(pairs, generator=generator)
    u, other, common = unit(pairs, features), unit(pairs, features), unit(features)
    across = F.normalize(other - (other * u).sum(dim=1, keepdim=True) * u, dim=1)
    noisy = similarity + 0.08 * torch.randn(pairs, generator=generator)
    cosine = noisy.clamp(-1, 1)[:, None]
    v = cosine * u + (1 - cosine.square()).sqrt() * across
    if lengths_vary:  # from half to twice the length, evenly in the logarithm
        u, v = (
            x * 4 ** (torch.rand(pairs, 1, generator=generator) - 0.5) for x in (u, v)
        )
    return u, v, similarity, common


def whitened(queries: Tensor, documents: Tensor) -> tuple[Tensor, Tensor]:
    """Subtract the documents' mean and give their principal directions equal variance
    (Su et al. 2021); directions without any are left out."""
    mean = documents.mean(dim=0)
    _, spread, directions = torch.linalg.svd(documents - mean, full_matrices=False)
    kept = spread > 1e-5 * spread[0]
    scaled = directions[kept].T * (len(documents) - 1) ** 0.5 / spread[kept]  # (D, D)
    return (queries - mean) @ scaled, (documents - mean) @ scaled
