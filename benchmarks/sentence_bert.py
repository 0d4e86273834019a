"""Sentence vectors: encoding against sentence-transformers, search against the full matrix, pairs against vectors.

"encode" is our `SentenceBert.encode` and the library's, with the same files, texts of mixed lengths and batches; their
vectors are compared before anything is timed. "search" is `top_k` against all scores at once, and against the exact
neighbours of scikit-learn; faiss is raced where it is installed. "pairs" has no peer: it is the time of a cross-encoder
over that of a bi-encoder with the same weights, for the closest pair of 10,000 sentences, extrapolated from samples.

    OMP_NUM_THREADS=1 python benchmarks/sentence_bert.py [--rounds 11] [--record]
"""

import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from side_by_side import check_same, race, read_settings, save, setting, show
from sklearn.neighbors import NearestNeighbors

from course_lib.experiments.sentence_cost import measure_cost
from course_lib.experiments.sentence_encoders import read_encoder
from course_lib.experiments.sentences import draw_paragraphs
from course_lib.experiments.shipped import CHECKPOINTS
from course_lib.sentence_search import top_k


@dataclass(frozen=True)
class Settings:
    """What is measured."""

    checkpoints: tuple[str, ...] = setting(("tiny", "mini"), "shipped checkpoints")
    sentences: int = setting(1000, "paragraphs that are encoded in a round")
    batch: int = setting(32, "sentences in a batch")
    length: int = setting(128, "tokens of a sentence")
    collection: int = setting(100_000, "vectors that are searched")
    queries: int = setting(100, "queries of a search")
    features: int = setting(384, "features of a vector")
    pairs: int = setting(400, "pairs that the cross-encoder reads in a round")
    rounds: int = setting(11, "times that each of both is timed")
    threads: int = setting(1, "threads of the CPU")


def race_encoders(settings: Settings) -> Iterator[dict[str, Any]]:
    """Encode the same paragraphs with the same weights."""
    from sentence_transformers import SentenceTransformer

    texts = draw_paragraphs(settings.sentences).texts
    for name in settings.checkpoints:
        with tempfile.TemporaryDirectory() as folder:
            ours = read_encoder(CHECKPOINTS / name, "mean", settings.length).to("cpu")
            ours.save_pretrained(folder)
            theirs = SentenceTransformer(folder, device="cpu")
        encode = partial(ours.encode, texts, settings.batch, progress=False)
        other = partial(theirs.encode, texts, batch_size=settings.batch, show_progress_bar=False)
        check_same(name, encode(), torch.from_numpy(other()), "fp32")
        yield {"what": "encode", "mode": name, "peer": "sentence-transformers", **_race(encode, other, settings)}


def race_search(settings: Settings) -> Iterator[dict[str, Any]]:
    """Find the ten nearest of random vectors of length 1."""
    torch.manual_seed(0)
    collection, queries = (
        F.normalize(torch.randn(n, settings.features), dim=1) for n in (settings.collection, settings.queries)
    )
    ours = partial(top_k, queries, collection, 10, cosine=False)
    neighbours = NearestNeighbors(n_neighbors=10, algorithm="brute", metric="cosine").fit(collection.numpy())
    peers: dict[str, Callable[[], Any]] = {
        "full matrix": lambda: (queries @ collection.T).topk(10, dim=1),
        "scikit-learn": partial(neighbours.kneighbors, queries.numpy()),
    }
    if importlib.util.find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatIP(settings.features)
        index.add(collection.numpy())
        peers["faiss"] = partial(index.search, queries.numpy(), 10)
    check_same("search", ours().scores, peers["full matrix"]().values, "fp32")
    for name, peer in peers.items():
        yield {"what": "search", "mode": f"{settings.collection:,}", "peer": name, **_race(ours, peer, settings)}


def compare_costs(settings: Settings) -> Iterator[dict[str, Any]]:
    """Extrapolate all pairs of 10,000 paragraphs."""
    texts = draw_paragraphs(10_000).texts
    for name in settings.checkpoints:
        cost = measure_cost(
            CHECKPOINTS / name, texts, settings.sentences, settings.pairs, settings.rounds, settings.length
        )
        low, ratio, high = np.quantile(cost.cross / cost.bi, [0.25, 0.5, 0.75]).tolist()
        yield {
            "what": "pairs", "mode": name, "peer": "cross-encoder", "ratio": ratio, "low": low, "high": high,
            "milliseconds": 1000 * float(np.median(cost.bi)), "peer_milliseconds": 1000 * float(np.median(cost.cross)),
            "rounds": settings.rounds,
        }  # fmt: skip


def _race(ours: Callable[[], object], theirs: Callable[[], object], settings: Settings) -> dict[str, float]:
    return race(ours, theirs, torch.device("cpu"), settings.rounds)


def main(words: Sequence[str] | None = None) -> None:
    settings, record = read_settings(Settings, words, __doc__)
    torch.set_num_threads(settings.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        rows = [*race_encoders(settings), *race_search(settings), *compare_costs(settings)]
    show(
        f"Sentence vectors, {settings.threads} thread(s)",
        rows,
        {
            "what": lambda row: row["what"],
            "of": lambda row: row["mode"],
            "peer": lambda row: row["peer"],
            "ours, ms": lambda row: f"{row['milliseconds']:.1f}",
            "peer, ms": lambda row: f"{row['peer_milliseconds']:.1f}",
            "peer / ours": lambda row: f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
        },
    )
    if record:
        save("benchmark-sentence_bert", settings, rows)


if __name__ == "__main__":
    main()
