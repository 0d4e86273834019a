"""The probes of all recorded experiments: what a variant's code computes today."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from course_lab.ch01_seq2seq import seq2seq
from course_lab.ch01_seq2seq.probes import probe_seq2seq
from course_lab.ch03_transformer import transformer
from course_lab.ch03_transformer.probes import probe_transformer
from course_lab.ch06_pretraining import pretraining_plans
from course_lab.ch06_pretraining.probes import probe_pretraining
from course_lab.ch07_embeddings import context_runs, layer_table
from course_lab.ch07_embeddings.probes import probe_contexts, probe_layers
from course_lab.ch08_finetuning import error_runs, finetuning_plans
from course_lab.ch08_finetuning.probes import probe_errors, probe_finetuning
from course_lab.ch09_sentence_bert import sentence_plans
from course_lab.ch09_sentence_bert.probes import probe_sentences
from course_lab.ch10_family import family_runs
from course_lab.ch10_family.probes import probe_pairs, probe_prompts, probe_stories
from course_lab.probing import figures, probing
from course_lab.records import RESULTS, Record, load

Take = Callable[[Any, Any], dict[str, Any]]
#: Experiment -> its studies by the name of their data, and what probes a variant.
EXPERIMENTS: Mapping[str, tuple[Mapping[str, Any], Take]] = {
    "seq2seq": (seq2seq.RECIPES, probe_seq2seq),
    "transformer": (transformer.PLANS, probe_transformer),
    "pretraining": (pretraining_plans.PLANS, probe_pretraining),
    "layers": (layer_table.STUDIES, probe_layers),
    "finetuning": (finetuning_plans.PLANS, probe_finetuning),
    "errors": (error_runs.STUDIES, probe_errors),
    "contexts": (context_runs.STUDIES, probe_contexts),
    "sentences": (sentence_plans.PLANS, probe_sentences),
}
FAMILY: Mapping[str, Take] = {
    "stories": probe_stories,
    "pydocs-pair": probe_pairs,
    "prompts": probe_prompts,
}


def study_of(name: str) -> Any | None:
    """Return the study of a record as it is today; None if the record is of no
    experiment."""
    kind, _, data = name.partition("-")
    studies = (
        family_runs.STUDIES if kind == "family" else EXPERIMENTS.get(kind, [{}])[0]
    )
    return studies.get(data)


def take(name: str, variant: str) -> dict[str, float]:
    """Take the probe of a variant of a record, with today's code."""
    kind, _, data = name.partition("-")
    probe = FAMILY[data] if kind == "family" else EXPERIMENTS[kind][1]
    with probing() as losses:
        return figures(probe(study_of(name), variant), losses)


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
