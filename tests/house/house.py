"""Where the repository lies and what is in it: shared by the tests of the house."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "course_lib"

# design: one module a concept, in the order of the chapters
CONCEPTS = (
    "masking",
    "linear",
    "dropout",
    "scores",
    "attention",
    "seq2seq_config",
    "seq2seq",
    "decoding_state",
    "decoding",
    "positions",
    "transformer_layers",
    "transformer_decoder",
    "transformer_heads",
    "transformer",
    "unicode_classes",
    "text_normalization",
    "wordpiece_training",
    "wordpiece_encoding",
    "whole_file",
    "wordpiece_files",
    "wordpiece",
    "fast_wordpiece",
    "bert_config",
    "bert_weights",
    "bert_files",
    "bert_layers",
    "bert",
    "masked_language_model",
    "sequences",
    "packing",
    "next_sentence",
    "pretraining",
    "static_vectors",
    "skip_gram",
    "language_model",
    "elmo",
    "causal_lm",
    "embeddings",
    "finetuning_files",
    "finetuning_heads",
    "tagging",
    "span_decoding",
    "finetuning_examples",
    "finetuning_losses",
    "weight_average",
    "finetuning_prediction",
    "finetuning",
    "sentence_files",
    "sentence_bert",
    "sentence_classifier",
    "sentence_losses",
    "sentence_objectives",
    "sentence_training",
    "sentence_search",
    "sentence_evaluation",
    "family_albert",
    "family_distillation",
    "family_retrieval",
    "family_prompting",
    "family",
)
# Concepts that are a way of training stand on the one loop; one that reads many
# sentences may be told to hurry.
ON_THE_LOOP = {
    "finetuning": {"batching", "training"},
    "finetuning_losses": {"batching"},
    "sentence_bert": {"precision"},
    "sentence_training": {"training"},
}
# What serves all concepts, and imports none of them.
SERVICES = {
    "batching",
    "checkpoint",
    "data",
    "doctor",
    "explorer",
    "figure_style",
    "findings",
    "memory",
    "metrics",
    "model_errors",
    "muon",
    "metrics_entities",
    "metrics_squad",
    "metrics_tasks",
    "parallel",
    "plotting",
    "plotting_choices",
    "plotting_errors",
    "plotting_functions",
    "plotting_growth",
    "plotting_input",
    "plotting_labels",
    "plotting_ladder",
    "plotting_masks",
    "plotting_positions",
    "plotting_scores",
    "plotting_senses",
    "plotting_shares",
    "precision",
    "schedules",
    "search_explorer",
    "shipped_files",
    "stepper",
    "token_store",
    "token_store_writing",
    "tokenizer_explorer",
    "training",
    "training_config",
    "training_console",
    "training_state",
}
# What may import all.
HEADS = {
    *("cli", "cli_grading", "experiments", "grading", "ledger", "page_cost"),
    *("site", "site_execution", "site_key", "site_pages", "site_progress"),
}


def tracked_files() -> list[Path]:
    """Return the files under version control, or skip where there is no repository to
    ask."""
    if not (ROOT / ".git").exists():
        pytest.skip(
            "not a git checkout: nothing says which files are part of the course"
        )
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [
        ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()
    ]


def library_modules() -> list[Path]:
    """Return the Python files of course_lib, in alphabetical order."""
    return sorted(LIBRARY.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a file of course_lib, e.g.
    course_lib.data.translation."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def relative(path: Path) -> str:
    """Return a path as the repository names it."""
    return str(path.relative_to(ROOT))
