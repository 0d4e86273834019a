"""What sentence vectors are trained by: formulas, one loss for each example, and the
objectives that a model is trained on with them.

B examples in a batch, C sentences of an example, D features of a vector, L labels, N
documents. What an example is, and what its vectors are to do:

- `SoftmaxObjective`: two sentences and a class; a linear layer on (u, v, abs(u - v))
  names the class.
- `CosineObjective`: two sentences and a number; their cosine is the number.
- `TripletObjective`: anchor, positive, negative; the positive is nearer to the anchor,
  by a margin.
- `InBatchObjective`: query, document, negatives; of all documents of the batch the
  query's own is the nearest.

The first three are those of Reimers and Gurevych 2019, section 3; the last is that of
Henderson et al. 2017, section 4.4, on cosines.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.finetuning.task_model import label_names


def softmax_features(
    u: Float[Tensor, "B D"], v: Float[Tensor, "B D"]
) -> Float[Tensor, "B 3*D"]:
    """Put two vectors and the distance of each feature beside one another: (u, v, abs(u
    - v)).

    Parameters
    ----------
    u, v
        The vectors of the first and of the second sentences.

    Returns
    -------
    Tensor
        Three times as many features. The difference has no sign: to a pair it makes no
        difference who comes first.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, and table 6 for what else was tried.

    Examples
    --------
    >>> softmax_features(
    ...     torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 4.0]])
    ... ).tolist()
    [[1.0, 5.0, 3.0, 4.0, 2.0, 1.0]]
    """
    return torch.cat([u, v, (u - v).abs()], dim=1)  # 3 x (B, D) -> (B, 3 D)


def cosine_losses(
    u: Float[Tensor, "B D"], v: Float[Tensor, "B D"], scores: Float[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """Square by how much the cosine of two vectors misses the similarity that people
    gave the sentences.

    Parameters
    ----------
    u, v
        The vectors of the first and of the second sentences.
    scores
        The cosines that are wanted: of graded similarity from 0 to 5, a fifth.

    Returns
    -------
    Tensor
        One loss for each pair.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, "regression objective function".

    Examples
    --------
    >>> u = torch.tensor([[3.0, 4.0]])
    >>> v = torch.tensor([[4.0, 3.0]])  # the cosine is 0.96
    >>> round(cosine_losses(u, v, torch.tensor([0.5])).item(), 4)
    0.2116
    """
    return (F.cosine_similarity(u, v) - scores.to(u.dtype)).square()


def triplet_losses(
    anchor: Float[Tensor, "B D"],
    positive: Float[Tensor, "B D"],
    negative: Float[Tensor, "B D"],
    margin: float = 1.0,
) -> Float[Tensor, "B"]:
    r"""Want the positive nearer to the anchor than the negative is, by a margin, and
    nothing more.

    .. math:: \max(\lVert a - p \rVert - \lVert a - n \rVert + \epsilon, 0)

    Parameters
    ----------
    anchor, positive, negative
        The vectors of the three sentences.
    margin
        The ε of the equation, in the unit of the vectors.

    Returns
    -------
    Tensor
        One loss for each triplet; 0 where it is as it should be.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, "triplet objective function", with Euclidean
    distance and ε = 1.

    Examples
    --------
    >>> a = torch.tensor([[0.0, 0.0]])
    >>> p = torch.tensor([[3.0, 4.0]])
    >>> n = torch.tensor([[0.0, 5.5]])
    >>> round(triplet_losses(a, p, n).item(), 3)
    0.5
    """
    # pairwise_distance adds 1e-6 to each difference: two equal vectors would lead to
    # the root of 0, which has no slope
    return F.relu(
        F.pairwise_distance(anchor, positive)
        - F.pairwise_distance(anchor, negative)
        + margin
    )


def in_batch_logits(
    queries: Float[Tensor, "B D"],
    documents: Float[Tensor, "N D"],
    temperature: float = 0.05,
) -> Float[Tensor, "B N"]:
    """Compare each query with each document of the batch: cosine over temperature."""
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be above 0, e.g. 0.05")
    # (B, D) @ (D, N) -> (B, N)
    return F.normalize(queries, dim=1) @ F.normalize(documents, dim=1).T / temperature


def in_batch_losses(
    queries: Float[Tensor, "B D"],
    documents: Float[Tensor, "N D"],
    temperature: float = 0.05,
    both_ways: bool = False,
) -> Float[Tensor, "B"]:
    r"""Let each query find its own document among all documents of the batch: the
    others' cost nothing to encode.

    .. math:: -\log \frac{\exp(\cos(q_i, d_i)/\tau)}{\sum_j \exp(\cos(q_i, d_j)/\tau)}

    Parameters
    ----------
    queries
        One for each example.
    documents
        First, in the order of the queries, the document that belongs to each; further
        rows are wrong for all of them.
    temperature
        The τ of the equation.
    both_ways
        Whether each document, too, is to find its query. The loss is then the mean of
        both.

    Returns
    -------
    Tensor
        One loss for each query; it depends on what else is in the batch. A batch that
        holds a document twice calls the right answer wrong once: leave duplicates out.

    Raises
    ------
    ValueError
        If there are fewer documents than queries, or the temperature is not above 0.

    Notes
    -----
    Henderson et al. 2017, section 4.4; van den Oord et al. 2018, equation 4, call it
    InfoNCE.

    Examples
    --------
    >>> vectors = torch.eye(2)
    >>> # log(1 + exp(-1))
    >>> round(in_batch_losses(vectors, vectors, temperature=1.0)[0].item(), 4)
    0.3133
    """
    if len(documents) < len(queries):
        raise ValueError(
            f"{len(queries)} queries but {len(documents)} documents; each query needs"
            " its own, in the same order"
        )
    logits = in_batch_logits(queries, documents, temperature)
    own = torch.arange(len(queries), device=logits.device)
    losses = F.cross_entropy(logits, own, reduction="none")
    if not both_ways:
        return losses
    # (B, B): a document -> its query
    back = F.cross_entropy(logits[:, : len(queries)].T, own, reduction="none")
    return (losses + back) / 2


class Objective(nn.Module):
    """What the four objectives share: how many sentences an example has, what its label
    is, and the loss."""

    sentences: range
    # where nothing is to be named, the label of an example says nothing
    labels: tuple[str, ...] = ("first",)
    guesses_number: bool = False

    def forward(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Float[Tensor, "B"]:
        """Return the loss of each example."""
        raise NotImplementedError

    def right(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Bool[Tensor, "B"]:
        """Say which examples the vectors get right."""
        raise NotImplementedError

    def split(self, vectors: Float[Tensor, "B C D"]) -> tuple[Tensor, ...]:
        """Return the vectors of the first sentences, of the second, and so on, ``(B,
        D)`` each."""
        if vectors.shape[1] not in self.sentences:
            least, most = self.sentences[0], self.sentences[-1]
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise ValueError(
                f"an example has {vectors.shape[1]} sentences, but a"
                f" {type(self).__name__} compares {wanted}; make the examples of as"
                " many columns"
            )
        return vectors.unbind(dim=1)


class SoftmaxObjective(Objective):
    """Name the class of a pair of sentences: softmax of W (u, v, abs(u - v)).

    Parameters
    ----------
    hidden_size
        Features of a sentence vector.
    labels
        The names of the classes, or how many there are.

    Raises
    ------
    ValueError
        If there is no label, or one name stands twice.

    Notes
    -----
    Reimers and Gurevych 2019, section 3, "classification objective function". W serves
    training only and is not kept.

    Examples
    --------
    >>> objective = SoftmaxObjective(4, ["entailment", "neutral", "contradiction"])
    >>> objective(torch.randn(5, 2, 4), torch.tensor([0, 2, 1, 1, 0])).shape
    torch.Size([5])
    """

    sentences = range(2, 3)

    def __init__(self, hidden_size: int, labels: int | Sequence[str]):
        super().__init__()
        self.labels = label_names(labels)
        self.classifier = nn.Linear(3 * hidden_size, len(self.labels))

    def logits(self, vectors: Float[Tensor, "B C D"]) -> Float[Tensor, "B L"]:
        """Score the classes of each pair."""
        u, v = self.split(vectors)
        return self.classifier(softmax_features(u, v))

    def forward(
        self, vectors: Float[Tensor, "B C D"], labels: Int[Tensor, "B"]
    ) -> Float[Tensor, "B"]:
        """Return the cross-entropy of each pair."""
        return F.cross_entropy(self.logits(vectors), labels, reduction="none")

    def right(
        self, vectors: Float[Tensor, "B C D"], labels: Int[Tensor, "B"]
    ) -> Bool[Tensor, "B"]:
        """Say for which pairs the most probable class is the right one."""
        return self.logits(vectors).argmax(dim=1) == labels


class CosineObjective(Objective):
    """Make the cosine of a pair the number that its label says: see `cosine_losses`.

    Examples
    --------
    >>> CosineObjective()(
    ...     torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([0.5])
    ... ).tolist()
    [0.25]
    """

    sentences = range(2, 3)
    guesses_number = True

    def forward(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Float[Tensor, "B"]:
        """Return the squared error of each pair."""
        u, v = self.split(vectors)
        return cosine_losses(u, v, labels.to(u.dtype))


class TripletObjective(Objective):
    """Bring the second sentence nearer to the first than the third is: see
    `triplet_losses`.

    Parameters
    ----------
    margin
        As in `triplet_losses`.

    Examples
    --------
    >>> triplet = torch.tensor([[[0.0, 0.0], [0.0, 2.0], [4.0, 0.0]]])
    >>> TripletObjective(margin=3.0)(triplet, torch.tensor([0])).round(
    ...     decimals=3
    ... ).tolist()
    [1.0]
    """

    sentences = range(3, 4)

    def __init__(self, margin: float = 1.0):
        super().__init__()
        if not margin >= 0:
            raise ValueError(f"margin is {margin}; it is a distance, at least 0")
        self.margin = margin

    def forward(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Float[Tensor, "B"]:
        """Return the loss of each triplet; labels say nothing here."""
        anchor, positive, negative = self.split(vectors)
        return triplet_losses(anchor, positive, negative, self.margin)

    def right(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Bool[Tensor, "B"]:
        """Say in which triplets the positive is the nearer one."""
        anchor, positive, negative = self.split(vectors)
        return F.pairwise_distance(anchor, positive) < F.pairwise_distance(
            anchor, negative
        )


class InBatchObjective(Objective):
    """Let each query find its document in the batch: see `in_batch_losses`.

    Parameters
    ----------
    temperature, both_ways
        As in `in_batch_losses`.

    Notes
    -----
    An example is a query, its document, and further sentences that answer neither it
    nor any other query of the batch.

    Examples
    --------
    >>> # three queries, each equal to its document
    >>> vectors = torch.eye(3)[:, None].expand(3, 2, 3)
    >>> InBatchObjective().right(vectors, torch.zeros(3)).tolist()
    [True, True, True]
    """

    sentences = range(2, 9)

    def __init__(self, temperature: float = 0.05, both_ways: bool = False):
        super().__init__()
        if not temperature > 0:
            raise ValueError(
                f"temperature is {temperature}; it must be above 0, e.g. 0.05"
            )
        self.temperature, self.both_ways = temperature, both_ways

    def forward(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Float[Tensor, "B"]:
        """Return the loss of each query; labels say nothing here."""
        queries, *documents = self.split(vectors)
        # (B (C - 1), D)
        return in_batch_losses(
            queries, torch.cat(documents), self.temperature, self.both_ways
        )

    def right(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Bool[Tensor, "B"]:
        """Say which queries have their own document as the nearest of the batch."""
        queries, *documents = self.split(vectors)
        nearest = in_batch_logits(queries, torch.cat(documents)).argmax(dim=1)
        return nearest == torch.arange(len(queries), device=nearest.device)


class MatryoshkaObjective(Objective):
    """Make the first features of a vector serve as a shorter vector: the mean of an
    objective's losses at several sizes.

    Parameters
    ----------
    objective
        One without weights of its own, which would fit one size only.
    sizes
        How many features each has; of all, the first are kept.

    Raises
    ------
    ValueError
        If there is no size, one is below 1 or above the vectors', or the objective has
        weights.

    Notes
    -----
    Kusupati et al. 2022, equation 1, with equal weights.

    Examples
    --------
    >>> vectors = torch.tensor([[[1.0, 0.0, 9.0], [0.0, 1.0, 9.0]]])
    >>> objective = MatryoshkaObjective(CosineObjective(), sizes=[2])
    >>> objective(vectors, torch.tensor([0.5])).tolist()
    [0.25]
    """

    def __init__(self, objective: Objective, sizes: Sequence[int]):
        super().__init__()
        if not sizes or min(sizes) < 1 or any(True for _ in objective.parameters()):
            raise ValueError(
                f"sizes is {list(sizes)}: give at least one, each at least 1, and an"
                " objective without weights"
            )
        self.objective, self.sizes = objective, tuple(sizes)
        self.sentences, self.labels = objective.sentences, objective.labels
        self.guesses_number = objective.guesses_number

    def forward(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Float[Tensor, "B"]:
        """Return the mean loss of each example over the sizes."""
        if max(self.sizes) > vectors.shape[-1]:
            raise ValueError(
                f"sizes go up to {max(self.sizes)}, but the vectors have"
                f" {vectors.shape[-1]} features"
            )
        losses = [self.objective(vectors[..., :size], labels) for size in self.sizes]
        return torch.stack(losses).mean(dim=0)

    def right(
        self, vectors: Float[Tensor, "B C D"], labels: Tensor
    ) -> Bool[Tensor, "B"]:
        """Say which examples the whole vectors get right."""
        return self.objective.right(vectors, labels)
