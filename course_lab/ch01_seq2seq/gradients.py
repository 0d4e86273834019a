"""Where the gradient goes: from one predicted word back to the source words (chapter 1,
vanishing gradients).

Dimension letters::

    B  sentences in a batch    S  source length    T  target length
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lab.ch01_seq2seq.seq2seq import Corpus
from course_lab.ch01_seq2seq.text import collate
from course_lib.seq2seq.model import Seq2Seq
from course_lib.training.loop import device


def source_gradients(
    model: Seq2Seq, batch: dict[str, Tensor], positions: Tensor
) -> Float[Tensor, "B S"]:
    """Measure how much each source word's embedding sways the log-probability of one
    target word in each sentence."""
    embedded: list[Tensor] = []

    def keep(module: torch.nn.Module, inputs: object, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[0]

    model.eval()
    hook = model.encoder.embedding.register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = model(
                batch["source_ids"], batch["source_lengths"], batch["target_ids"]
            )
            rows = torch.arange(len(positions), device=logits.device)
            log_probs = logits.log_softmax(-1)[
                rows, positions, batch["labels"][rows, positions]
            ]
            (gradients,) = torch.autograd.grad(log_probs.sum(), embedded)
    finally:
        hook.remove()
    return gradients.norm(dim=-1)


def aligned_share(
    model: Seq2Seq, corpus: Corpus, edges: Sequence[int], seed: int = 0
) -> list[float]:
    """Return the share of the gradient that reaches the right source words, for each
    group of source lengths."""
    generator = torch.Generator().manual_seed(seed)
    pairs, alignments = corpus.pairs["test"], corpus.text["test"]["alignment"]
    shares: list[list[float]] = [[] for _ in edges]
    for start in range(0, len(pairs), 100):
        chunk = pairs[start : start + 100]
        links = alignments[start : start + 100]
        drawn = [
            row[int(torch.randint(len(row), (1,), generator=generator))][1]
            for row in links
        ]
        batch = {name: tensor.to(device()) for name, tensor in collate(chunk).items()}
        norms = source_gradients(
            model, batch, torch.tensor(drawn, device=device())
        ).cpu()
        for pair, row, target, norm in zip(chunk, links, drawn, norms, strict=True):
            sources = [s for s, t in row if t == target]
            group = next(
                place for place, edge in enumerate(edges) if len(pair.source) <= edge
            )
            shares[group].append(float(norm[sources].sum() / norm.sum()))
    return [sum(group) / len(group) for group in shares]
