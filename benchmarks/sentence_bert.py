"""Sentence vectors: encoding against sentence-transformers, search against the full
matrix, pairs against vectors.

"encode" is our `SentenceBert.encode` and the library's, with the same files, texts of
mixed lengths and batches; their vectors are compared before anything is timed. "search"
is `top_k` against all scores at once, and against the exact neighbours of scikit-learn;
faiss is raced where it is installed. "pairs" has no peer: it is the time of a
cross-encoder over that of a bi-encoder with the same weights, for the closest pair of
10,000 sentences, extrapolated from samples. "length" is the same for texts that all
have so many tokens, and for three ways of reading a pair: with the last layer for [CLS]
alone, with the last layer for every position, and with the library's own two models.

    OMP_NUM_THREADS=1 python benchmarks/sentence_bert.py [--rounds 11] [--record]
"""

import importlib.util
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from side_by_side import check_same, race, read_settings, save, setting, show
from sklearn.neighbors import NearestNeighbors

from course_lab.ch06_pretraining.shipped import CHECKPOINTS
from course_lab.ch09_sentence_bert.sentence_cost import (
    KINDS,
    Cost,
    measure_cost,
    texts_of_length,
)
from course_lab.ch09_sentence_bert.sentence_encoders import read_encoder
from course_lab.ch09_sentence_bert.sentences import draw_paragraphs
from course_lib.sentence_bert.search import top_k


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
    lengths: tuple[int, ...] = setting(
        (16, 32, 64, 128, 250), "tokens of sentences that are all equally long"
    )
    tokens: int = setting(
        6000, "tokens of such sentences, and of such pairs, that are read in a round"
    )
    real: str = setting(
        "../shared/models/all-MiniLM-L6-v2",
        "folder of a published encoder; left out if absent",
    )
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
        other = partial(
            theirs.encode, texts, batch_size=settings.batch, show_progress_bar=False
        )
        check_same(name, encode(), torch.from_numpy(other()), "fp32")
        yield {
            "what": "encode",
            "mode": name,
            "peer": "sentence-transformers",
            **_race(encode, other, settings),
        }


def race_search(settings: Settings) -> Iterator[dict[str, Any]]:
    """Find the ten nearest of random vectors of length 1."""
    torch.manual_seed(0)
    collection, queries = (
        F.normalize(torch.randn(n, settings.features), dim=1)
        for n in (settings.collection, settings.queries)
    )
    ours = partial(top_k, queries, collection, 10, cosine=False)
    neighbours = NearestNeighbors(
        n_neighbors=10, algorithm="brute", metric="cosine"
    ).fit(collection.numpy())
    peers: dict[str, Callable[[], Any]] = {
        "full matrix": lambda: (queries @ collection.T).topk(10, dim=1),
        "scikit-learn": partial(neighbours.kneighbors, queries.numpy()),
    }
    if importlib.util.find_spec("faiss"):
        import faiss

        faiss.omp_set_num_threads(settings.threads)
        index = faiss.IndexFlatIP(settings.features)
        index.add(collection.numpy())
        peers["faiss"] = partial(index.search, queries.numpy(), 10)
        check_same(
            "faiss", ours().scores, torch.from_numpy(peers["faiss"]()[0]), "fp32"
        )
        if not torch.equal(ours().indices, torch.from_numpy(peers["faiss"]()[1])):
            raise RuntimeError(
                "search: ours and faiss's neighbours differ; a ratio would mean nothing"
            )
    check_same("search", ours().scores, peers["full matrix"]().values, "fp32")
    for name, peer in peers.items():
        yield {
            "what": "search",
            "mode": f"{settings.collection:,}",
            "peer": name,
            **_race(ours, peer, settings),
        }


def compare_costs(settings: Settings) -> Iterator[dict[str, Any]]:
    """Extrapolate all pairs of 10,000 paragraphs."""
    texts = draw_paragraphs(10_000).texts
    for name in settings.checkpoints:
        cost = measure_cost(
            CHECKPOINTS / name,
            texts,
            settings.sentences,
            settings.pairs,
            settings.rounds,
            settings.length,
        )
        yield {"what": "pairs", "mode": name, "peer": "cross-encoder", **told(cost)}


def compare_lengths(settings: Settings) -> Iterator[dict[str, Any]]:
    """Extrapolate all pairs of 10,000 texts of one length, for each way of reading a
    pair."""
    texts = draw_paragraphs(10_000).texts
    folders = {name: CHECKPOINTS / name for name in settings.checkpoints}
    if Path(settings.real).is_dir():
        folders[Path(settings.real).name] = Path(settings.real)
    for (name, folder), length in product(folders.items(), settings.lengths):
        long = texts_of_length(texts, length)
        sentences = max(settings.tokens // length, 2)
        for kind in KINDS:
            cost = measure_cost(
                folder, long, sentences, sentences // 2, settings.rounds, length, kind
            )
            reads = {
                "length": length,
                "ratios": (cost.cross / cost.bi).round(1).tolist(),
            }
            reads["pair_over_sentence"] = float(
                np.median(np.array(cost.pair) / np.array(cost.sentence))
            )
            yield {"what": "length", "mode": name, "peer": kind, **reads, **told(cost)}


def told(cost: Cost) -> dict[str, float]:
    low, ratio, high = np.quantile(cost.cross / cost.bi, [0.25, 0.5, 0.75]).tolist()
    seconds = {"milliseconds": cost.bi, "peer_milliseconds": cost.cross}
    medians = {
        name: 1000 * float(np.median(values)) for name, values in seconds.items()
    }
    return {
        "ratio": ratio,
        "low": low,
        "high": high,
        **medians,
        "rounds": len(cost.pair),
    }


def _race(
    ours: Callable[[], object], theirs: Callable[[], object], settings: Settings
) -> dict[str, float]:
    return race(ours, theirs, torch.device("cpu"), settings.rounds)


def main(words: Sequence[str] | None = None) -> None:
    settings, record = read_settings(Settings, words, __doc__)
    torch.set_num_threads(settings.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        rows = [
            *race_encoders(settings),
            *race_search(settings),
            *compare_costs(settings),
            *compare_lengths(settings),
        ]
    show(
        f"Sentence vectors, {settings.threads} thread(s)",
        rows,
        {
            "what": lambda row: row["what"],
            "of": lambda row: (
                f"{row['mode']}, {row['length']}" if "length" in row else row["mode"]
            ),
            "peer": lambda row: row["peer"],
            "ours, ms": lambda row: f"{row['milliseconds']:.1f}",
            "peer, ms": lambda row: f"{row['peer_milliseconds']:.1f}",
            "peer / ours": lambda row: (
                f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
            ),
        },
    )
    if record:
        save("benchmark-sentence_bert", settings, rows)


if __name__ == "__main__":
    main()
