"""Several runs of an experiment side by side, one process each, so that a chapter can show three seeds in minutes.

Each process computes with its share of the cores. A run's figures do not depend on how many run beside it, but for the
order in which torch adds up numbers when a process has several threads.
"""

import os
from collections.abc import Sequence
from typing import TypeAlias

import torch

from course_lib.experiments.processes import side_by_side
from course_lib.experiments.seq2seq import Corpus, Recipe, Trained, train_and_score

_corpus: Corpus


Job: TypeAlias = tuple[Recipe, str | None, int]
"""What one run is: a recipe, an attention as in `course_lib.experiments.seq2seq.build`, and a seed."""


def train_all(
    recipe: Recipe, corpus: Corpus, attentions: Sequence[str | None], seeds: Sequence[int], processes: int = 2
) -> list[Trained]:
    """Train and score one model for each kind of attention and each seed.

    Parameters
    ----------
    recipe, corpus
        What is trained on what.
    attentions
        As in `course_lib.experiments.seq2seq.build`.
    seeds
        One run of each kind for each.
    processes
        How many run at once; 1 runs them here, one after the other.

    Returns
    -------
    list of Trained
        Kind by kind, and seed by seed within a kind.

    Raises
    ------
    ValueError
        If `processes` is below 1.
    """
    return train_jobs([(recipe, attention, seed) for attention in attentions for seed in seeds], corpus, processes)


def train_jobs(jobs: Sequence[Job], corpus: Corpus, processes: int = 2) -> list[Trained]:
    """Train and score one model for each job: runs that differ in more than the kind of attention.

    Parameters
    ----------
    jobs
        The recipes may differ in everything but the data and its preparation.
    corpus
        What all are trained on.
    processes
        How many run at once; 1 runs them here, one after the other.

    Returns
    -------
    list of Trained
        In the order of the jobs.

    Raises
    ------
    ValueError
        If `processes` is below 1.
    """
    if processes < 1:
        raise ValueError(f"processes is {processes}; choose at least 1")
    if processes == 1:
        return [train_and_score(recipe, corpus, attention, seed) for recipe, attention, seed in jobs]
    threads = max(1, (os.cpu_count() or 1) // processes)
    with side_by_side(processes, _begin, corpus, threads) as pool:
        return [future.result() for future in [pool.submit(_run, *job) for job in jobs]]


def _begin(corpus: Corpus, threads: int) -> None:
    global _corpus
    torch.set_num_threads(threads)
    _corpus = corpus


def _run(recipe: Recipe, attention: str | None, seed: int) -> Trained:
    trained = train_and_score(recipe, _corpus, attention, seed)
    trained.model.to("cpu")
    return trained
