"""Probes of chapter 9's recorded sentence encoders."""

from dataclasses import replace
from typing import Any

from course_lab import stand_ins
from course_lab.ch09_sentence_bert.sentence_runs import SentenceStudy, run_variant

STEPS = 3


def probe_sentences(study: SentenceStudy, variant: str) -> dict[str, Any]:
    """Train an encoder for a few steps, and judge it as the runs are judged."""
    asked = study.variants[variant.partition(", ")[2]]
    stages = tuple(
        replace(
            stage,
            config=replace(
                stage.config, steps=STEPS, precision="float32", batch_size=8
            ),
        )
        for stage in asked.stages
    )
    return run_variant(
        replace(study, probe_rows=60, max_length=24),
        replace(asked, stages=stages),
        stand_ins.checkpoint(),
        0,
        stand_ins.folder_of_tables(),
    )
