"""How well each model's vectors tell senses apart: of pseudo-words, with controls
(chapter 7).

Controls: the static vector of the word, which is the same in each use; the mean of the
static vectors of its neighbours, which knows their words and not their order; and the
same models untrained.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from course_lab.ch07_embeddings.context_models import hidden_states
from course_lab.ch07_embeddings.pseudo_words import Uses
from course_lab.records import mean_text
from course_lib.data.corpus import markdown_table
from course_lib.embeddings.contextual import sense_separation


def states_of_uses(model: nn.Module, uses: Uses) -> list[Tensor]:
    """Return the vectors of all uses at the word itself, layer by layer, the embeddings
    first: ``(N, D)`` each."""
    layers = hidden_states(model, uses.input_ids, uses.attention_mask)
    rows = torch.arange(len(uses.places))
    # (N, T, D) -> (N, D)
    return [states[rows, uses.places].float() for states in layers]


def neighbour_means(matrix: Tensor, uses: Uses, window: int = 5) -> Tensor:
    """Average the static vectors of the tokens around each use, at most `window` on
    each side; not the word's own."""
    # (N, T)
    distance = (torch.arange(uses.input_ids.shape[1]) - uses.places[:, None]).abs()
    near = (distance <= window) & (distance > 0) & uses.attention_mask
    weights = near.to(matrix.dtype) / near.sum(dim=1, keepdim=True)
    # (N, 1, T) @ (N, T, D) -> (N, D)
    return (weights[:, None] @ matrix[uses.input_ids]).squeeze(1)


def separations(vectors: Tensor, uses: Uses) -> list[float]:
    """Return the separation of the senses of each pseudo-word."""
    scores = []
    for word in range(int(uses.words.max()) + 1):
        own = uses.words == word
        scores.append(sense_separation(vectors[own], uses.senses[own].tolist()))
    return scores


def read_off(vectors: Tensor, uses: Uses) -> list[float]:
    """Say how well a linear probe reads senses that mean the same in every pseudo-word,
    such as *one* and *two*."""
    features, senses, words = vectors.numpy(), uses.senses.numpy(), uses.words.numpy()
    accuracies = []
    for word in range(int(words.max()) + 1):
        probe = make_pipeline(
            StandardScaler(),
            LogisticRegression(C=0.01, class_weight="balanced", max_iter=200),
        )
        probe.fit(features[words != word], senses[words != word])
        guesses, own = probe.predict(features[words == word]), senses[words == word]
        accuracies.append(
            float(
                np.mean(
                    [
                        (guesses[own == sense] == sense).mean()
                        for sense in np.unique(own)
                    ]
                )
            )
        )
    return accuracies


def separation_table(
    rows: Mapping[str, Sequence[Sequence[float]]], layers: Sequence[str]
) -> str:
    """Write separations as a Markdown table: mean over pseudo-words ± 95% interval, one
    column a layer."""
    cells = {
        name: [mean_text([100 * score for score in layer]) for layer in scores]
        for name, scores in rows.items()
    }
    return markdown_table(
        ("vectors of", *layers),
        [(x, *y, *[""] * (len(layers) - len(y))) for x, y in cells.items()],
    )


def plane_of(vectors: Tensor) -> np.ndarray:
    """Project vectors onto the two directions in which they differ most (principal
    components): ``(N, 2)``."""
    centred = vectors.double() - vectors.double().mean(dim=0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    signs = (
        directions[:2]
        .gather(1, directions[:2].abs().argmax(dim=1, keepdim=True))
        .sign()
    )  # the same on each machine
    return (centred @ (directions[:2] * signs).T).numpy()
