"""All recorded studies, and whether the code of a variant still computes what it did
when it was recorded."""

from collections.abc import Mapping
from pathlib import Path

from course_lab.ch01_seq2seq import studies as seq2seq
from course_lab.ch03_transformer import transformer
from course_lab.ch06_pretraining import pretraining_plans
from course_lab.ch07_embeddings import context_runs, layer_table
from course_lab.ch08_finetuning import error_runs, finetuning_plans, review_notebook
from course_lab.ch09_sentence_bert import sentence_runs
from course_lab.ch10_family import family_pairs, family_prompts, family_stories
from course_lab.ch11_encoders_today import (
    adapting,
    contrastive_runs,
    modern_stories,
    retrieval_runs,
    two_languages,
)
from course_lab.records import RESULTS, Record, load
from course_lab.study import Study

#: Experiment -> its studies by the name of what they read or compare.
EXPERIMENTS: Mapping[str, Mapping[str, Study]] = {
    "seq2seq": seq2seq.STUDIES,
    "transformer": transformer.PLANS,
    "pretraining": pretraining_plans.PLANS,
    "layers": layer_table.STUDIES,
    "finetuning": finetuning_plans.PLANS,
    "errors": error_runs.STUDIES,
    "notebook": {"sst2": review_notebook.STUDY},
    "contexts": context_runs.STUDIES,
    "sentences": sentence_runs.PLANS,
    "family": {
        "ends": family_stories.STUDY,
        "pydocs-pair": family_pairs.STUDY,
        "prompts": family_prompts.STUDY,
    },
    "encoders": {
        **modern_stories.STUDIES,
        "similarity": contrastive_runs.STUDY,
        "pydocs-pair": retrieval_runs.STUDY,
        "adapting": adapting.STUDY,
        **two_languages.STUDIES,
    },
}


def study_of(name: str) -> Study | None:
    """Return the study of a record as it is today; None if the record is of none."""
    kind, _, data = name.partition("-")
    return EXPERIMENTS.get(kind, {}).get(data)


def take(name: str, variant: str) -> dict[str, float]:
    """Take the probe of a variant of a record, with today's code."""
    study = study_of(name)
    if study is None:
        raise ValueError(f"no study of today is called {name!r}")
    return study.fingerprint(variant)


def differences(record: Record, variant: str) -> dict[str, str] | None:
    """Repeat a variant's probe and say which figures are others now, and how; None if
    it has none."""
    if variant not in record.probes:
        return None
    return record.probes[variant].differences(take(record.name, variant))


def stale(name: str, folder: Path = RESULTS) -> list[str]:
    """Name the variants of a record whose code computes something else today."""
    record = load(name, folder)
    return [variant for variant in record.probes if differences(record, variant)]
