"""The studies of ``course record sentences``, and how their runs are recorded one
by one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from course_lab import records
from course_lab.ch09_sentence_bert import sentence_runs
from course_lab.ch09_sentence_bert.sentence_runs import SentenceStudy
from course_lib.bert.files import checkpoint_folder

PLANS: Mapping[str, SentenceStudy] = {"nli": sentence_runs.NLI}


def record_sentences(
    label: str,
    command: Sequence[str],
    study: SentenceStudy,
    checkpoint: str,
    variants: Sequence[str],
    seeds: Sequence[int],
    source: str | None,
    say: Callable[[str], None] = print,
) -> Path:
    """Do the runs that a record lacks, and save it after each."""

    def runs() -> Iterator[records.Run]:
        folder, name = checkpoint_folder(checkpoint), Path(checkpoint).name
        for seed in seeds:
            for variant in variants:
                yield (
                    {"variant": f"{name}, {variant}", "seed": seed},
                    partial(study.run, variant, folder, seed, source),
                )

    read = partial(records.edition, sentence_runs.data_of(study), source)
    return records.run_missing(label, command, study, runs(), say, data=read)
