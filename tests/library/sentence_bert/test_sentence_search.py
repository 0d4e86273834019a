"""Search in blocks gives what the full matrix gives, and never makes it."""

import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import refusal
from sklearn.cluster import KMeans
from torch.utils._python_dispatch import TorchDispatchMode
from whole import whole_only

from course_lib.sentence_bert.search import closest_pairs, cluster, top_k

torch.manual_seed(6)
QUERIES, COLLECTION = torch.randn(7, 5), torch.randn(43, 5) * torch.rand(43, 1).add(0.1)
SCORES = F.normalize(QUERIES, dim=1) @ F.normalize(COLLECTION, dim=1).T


class LargestTensor(TorchDispatchMode):
    """Watches how many numbers the largest tensor that is made has."""

    largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        return made


@for_each("block", [1, 4, 42, 43, 1000])
@for_each("query_block", [1, 3, 1000])
@for_each("k", [1, 6, 43])
def test_blocks_of_any_size_find_what_the_full_matrix_holds(block, query_block, k):
    hits = top_k(QUERIES, COLLECTION, k, True, block, query_block)
    expected = SCORES.topk(k, dim=1)
    torch.testing.assert_close(hits.scores, expected.values)
    assert torch.equal(hits.indices, expected.indices)


def test_lengths_count_where_inner_products_are_compared():
    hits = top_k(QUERIES, COLLECTION, 3, cosine=False, block=10)
    expected = (QUERIES @ COLLECTION.T).topk(3, dim=1)
    torch.testing.assert_close(hits.scores, expected.values)
    assert torch.equal(hits.indices, expected.indices)
    assert not torch.equal(expected.indices, SCORES.topk(3, dim=1).indices)


def test_a_vector_of_zeros_is_like_none():
    assert top_k(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2), 1).scores.tolist() == [
        [0.0]
    ]


def test_no_tensor_is_larger_than_a_block_of_scores():
    collection = torch.randn(5000, 3)
    with LargestTensor() as watched:
        top_k(torch.randn(200, 3), collection, k=2, block=100, query_block=40)
    assert watched.largest <= collection.numel(), (
        "the collection itself, when it is cut into blocks"
    )
    small = torch.randn(1000, 1)
    with LargestTensor() as watched:
        top_k(torch.randn(1000, 1), small, k=2, block=100, query_block=40)
    assert watched.largest == 100 * 40, "the full matrix has 250 times as many"


def test_a_collection_in_half_precision_or_mapped_from_a_file_is_searched_as_it_is(
    tmp_path,
):
    half = COLLECTION.half()
    expected = top_k(QUERIES, half.float(), 4)
    found = top_k(QUERIES, half, 4, block=9)
    torch.testing.assert_close(found.scores, expected.scores)
    assert torch.equal(found.indices, expected.indices)
    np.save(tmp_path / "vectors.npy", COLLECTION.numpy())
    mapped = torch.from_numpy(np.load(tmp_path / "vectors.npy", mmap_mode="c"))
    assert torch.equal(
        top_k(QUERIES, mapped, 4).indices, top_k(QUERIES, COLLECTION, 4).indices
    )


def test_no_query_has_no_hits():
    hits = top_k(QUERIES[:0], COLLECTION, 4)
    assert hits.scores.shape == hits.indices.shape == (0, 4)
    assert hits.indices.dtype == torch.long


def test_what_cannot_be_searched_is_refused():
    with refusal("k is 44, but the collection has 43 vectors"):
        top_k(QUERIES, COLLECTION, 44)
    for name in ("k", "block", "query_block"):
        with refusal(f"{name} is 0; it must be at least 1"):
            top_k(QUERIES, COLLECTION, **{name: 0})
    with refusal("the queries have 4 features and the collection 5"):
        top_k.__wrapped__(QUERIES[:, :4], COLLECTION)
    broken = COLLECTION.clone()
    broken[17, 2] = torch.nan
    with refusal("a vector holds a number that is not finite"):
        top_k(QUERIES, broken, 1, block=5)
    with refusal("a vector holds a number that is not finite"):
        closest_pairs(broken, 1, block=5)


@for_each("block", [1, 4, 42, 43, 1000])
@for_each("k", [1, 9, 43 * 42 // 2])
def test_the_closest_pairs_are_those_of_the_full_triangle(block, k):
    unit = F.normalize(COLLECTION, dim=1)
    first, second = torch.triu_indices(43, 43, offset=1)
    expected = (unit @ unit.T)[first, second].topk(k)
    found = closest_pairs(COLLECTION, k, block)
    torch.testing.assert_close(found.scores, expected.values)
    assert found.indices.tolist() == [
        [int(first[i]), int(second[i])] for i in expected.indices
    ]


class CallsOf(TorchDispatchMode):
    """Counts how often an operation is called."""

    def __init__(self, name):
        super().__init__()
        self.name, self.calls = name, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += function.overloadpacket.__name__ == self.name
        return function(*args, **(kwargs or {}))


def test_blocks_with_nothing_closer_are_not_sorted_but_checked_for_finiteness():
    """The two nearest stand in the first of 5 + 4 + 3 + 2 + 1 blocks; sorting takes two
    calls, of block and of all."""
    vectors = torch.cat(
        [torch.tensor([[1.0, 0.0, 0.0], [1.0, 1e-3, 0.0]]), COLLECTION[:41, :3]]
    )
    with CallsOf("topk") as watched:
        assert closest_pairs(vectors, k=1, block=10).indices.tolist() == [[0, 1]]
    assert watched.calls == 2
    vectors[-1, 0] = torch.nan
    with refusal("a vector holds a number that is not finite"):
        closest_pairs(vectors, k=1, block=10)


def test_equal_vectors_are_a_pair_and_no_vector_is_one_with_itself():
    found = closest_pairs(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), k=3)
    assert found.indices[0].tolist() == [0, 2]
    assert found.scores.tolist() == [1.0, 0.0, 0.0]


def test_no_more_pairs_than_there_are_can_be_asked_for():
    with refusal("k is 4, but 3 vectors make 3 pairs"):
        closest_pairs(torch.eye(3), k=4)
    with refusal("block is 0"):
        closest_pairs(torch.eye(3), k=1, block=0)


def test_clusters_are_found_whatever_the_lengths_of_the_vectors():
    generator = torch.Generator().manual_seed(1)
    truth = torch.tensor([0] * 20 + [1] * 9 + [2] * 14)[
        torch.randperm(43, generator=generator)
    ]
    vectors = 9 * torch.eye(3, 8)[truth] + torch.randn(43, 8, generator=generator)
    vectors *= torch.rand(43, 1, generator=generator) + 0.1
    found = cluster(vectors, 3, seed=2, restarts=3)
    assert found.labels.tolist() == [{0: 0, 2: 1, 1: 2}[int(name)] for name in truth], (
        "numbered by size"
    )
    unit = F.normalize(vectors, dim=1)
    for index in range(3):
        members = (found.labels == index).nonzero()[:, 0]
        torch.testing.assert_close(found.centres[index], unit[members].mean(dim=0))
        distances = (unit[members] - found.centres[index]).norm(dim=1)
        assert int(found.nearest[index]) == int(members[distances.argmin()])
    again = cluster(vectors, 3, seed=2, restarts=3)
    assert torch.equal(again.labels, found.labels)


def test_the_first_centres_are_drawn_from_the_seed():
    """As those of scikit-learn, whose numbers of clusters are others."""
    unit, groups = F.normalize(COLLECTION, dim=1), []
    for seed in range(4):
        theirs = torch.tensor(
            KMeans(7, n_init=1, random_state=seed).fit_predict(unit.numpy())
        )
        ours = cluster(COLLECTION, 7, seed=seed).labels
        groups.append((ours[:, None] == ours).tolist())
        assert groups[-1] == (theirs[:, None] == theirs).tolist()
    assert any(group != groups[0] for group in groups)


def test_what_cannot_be_grouped_is_refused():
    with refusal("43 vectors cannot make 44 clusters"):
        cluster(COLLECTION, 44)
    with refusal("clusters is 0"):
        cluster(COLLECTION, 0)
    with refusal("not finite"):
        cluster(COLLECTION / 0 * 0, 2)


# Linux's own count: what `resource` gives begins with the peak of the process that
# started this one.
MEMORY = """
import pathlib, re, torch
from course_lib.sentence_bert.search import top_k
torch.manual_seed(0)
collection = torch.randn(1_000_000, 384)
hits = top_k(collection[:64] + 0.01, collection, k=10)
assert hits.indices[:, 0].tolist() == list(range(64))
print(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""  # noqa: E501


@whole_only
@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of memory is read where Linux gives it"
)
def test_a_million_vectors_are_searched_in_under_4_gigabytes():
    """The vectors themselves take 1.54 GB; a normalised copy of them would
    double that."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < 2.5e9
