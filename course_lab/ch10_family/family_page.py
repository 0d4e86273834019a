"""What chapter 10 shows: differences between functions as diffs, and tables of its
records.

The functions in pairs say the same thing for two members of the family; the page shows
where they differ. Tests hold them against the models themselves.
"""

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lab.ch06_pretraining.pretraining_page import lead_over, runs_of
from course_lab.records import (
    Record,
    lead_text,
    load,
    mean_text,
    not_yet,
    recorded_note,
    results_of,
)
from course_lib.bert.model import BertModel
from course_lib.data.corpus import markdown_table
from course_lib.embeddings.gpt import CausalLanguageModel
from course_lib.family.colbert import maxsim
from course_lib.family.inputs import entity_ids, permutation_masks
from course_lib.metrics.scores import Interval
from course_lib.pretraining.masking import MaskingConfig, VocabIds, mask_tokens
from course_lib.sentence_bert.model import pool

PAIR_KINDS = ("single vector", "late interaction")


def difference(old: Any, new: Any) -> str:
    """Show what changes between two functions, or two settings, as a diff in
    Markdown."""
    around = 0 if is_dataclass(old) else 1
    lines = list(difflib.unified_diff(_lines(old), _lines(new), lineterm="", n=around))[
        2:
    ]
    shown = [" ..." if line.startswith("@@") else line for line in lines]
    if around == 0:
        shown = [line for line in shown if line != " ..."]
    elif shown and shown[0] == " ...":
        shown = shown[1:]
    return "\n".join(["```diff", *shown, "```"])


def _lines(thing: Any) -> list[str]:
    if is_dataclass(thing) and not isinstance(thing, type):
        return [f"{name}={value!r}" for name, value in asdict(thing).items()]
    source = textwrap.dedent(inspect.getsource(thing))
    function = ast.parse(source).body[0]
    lines = source.splitlines()
    if isinstance(function, ast.FunctionDef) and ast.get_docstring(function):
        text = function.body[0]
        lines[text.lineno - 1 : text.end_lineno] = []
    return lines


def bert_states(model: BertModel, input_ids: Tensor) -> Tensor:
    """Every token sees every token."""
    hidden = model.embeddings(input_ids)
    for block in model.blocks:
        hidden = block(hidden)
    return hidden


def gpt_states(model: CausalLanguageModel, input_ids: Tensor) -> Tensor:
    """Every token sees itself and those before it."""
    hidden = model.token(input_ids) + model.position(torch.arange(input_ids.shape[1]))
    for block in model.blocks:
        hidden = block(hidden, causal=True)
    return hidden


def xlnet_states(
    model: BertModel, input_ids: Tensor, order: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Return XLNet's content states, and the query states of all words but the first of
    the order, in a BERT without dropout (Yang et al. 2019, section 2.3)."""
    masks = permutation_masks(order)
    predicted = masks.query.any(dim=1)  # the first of the order sees nothing
    content = model.embeddings(input_ids)  # word and position
    blank = torch.zeros_like(input_ids)  # one and the same id everywhere
    query = model.embeddings(blank)[:, predicted]  # position, but not the word
    block: Any  # an EncoderBlock
    for block in model.blocks:
        seen = block.attention(query, content, mask=masks.query[predicted])
        query = block.norm1(query + seen)
        query = block.norm2(query + block.feed_forward(query))
        content = block(content, masks.content[None])
    return content, query


def hide_tokens(
    ids: Tensor, vocab: VocabIds, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """BERT: each token is chosen on its own."""
    special = vocab.is_special[ids]
    config = MaskingConfig(unit="token")
    return mask_tokens(ids, special, generator, vocab, config)


def hide_entities(
    ids: Tensor,
    vocab: VocabIds,
    generator: torch.Generator,
    entities: Sequence[Sequence[int]],
) -> tuple[Tensor, Tensor]:
    """ERNIE: an entity is chosen as a whole."""
    special = vocab.is_special[ids]
    config = MaskingConfig(unit="span")
    return mask_tokens(
        ids, special, generator, vocab, config, entity_ids(ids, entities)
    )


def compare_vectors(
    query: Tensor, query_mask: Tensor, document: Tensor, document_mask: Tensor
) -> Tensor:
    """Sentence-BERT: one vector for each text, from the states of its tokens, and one
    product."""
    query, document = pool(query, query_mask), pool(document, document_mask)
    return query @ document.T


def compare_tokens(
    query: Tensor, query_mask: Tensor, document: Tensor, document_mask: Tensor
) -> Tensor:
    """ColBERT: a vector for each token, and the best product for each token of the
    query."""
    return maxsim(query, document, query_mask, document_mask)


def score_table(
    results: Sequence[Mapping[str, Any]],
    variants: Sequence[str],
    columns: Mapping[str, tuple[str, str]],
    also: Mapping[str, Callable[[Mapping[str, Any]], str]] | None = None,
) -> str:
    """Write recorded runs as a table: the mean over seeds ± its 95% interval, in
    percent."""
    runs, more = runs_of(results), also or {}
    rows = [
        (
            variant,
            *(tell(runs[variant][0]) for tell in more.values()),
            *(
                mean_text([100 * run[table][name] for run in runs[variant]])
                for table, name in columns.values()
            ),
        )
        for variant in variants
    ]
    return markdown_table(("model", *more, *columns), rows)


def mean_score(
    results: Sequence[Mapping[str, Any]], variant: str, name: str, table: str = "scores"
) -> float:
    """Return a figure of a variant in percent, the mean over seeds."""
    return float(np.mean([100 * run[table][name] for run in runs_of(results)[variant]]))


def told(record: Record, table: str, what: str = "The next table was") -> str:
    """A table with what it was recorded by."""
    return f"{recorded_note(record, what)}\n\n{table}"


def ends_tables(variants: Sequence[str], leads: Sequence[tuple[str, str]]) -> str:
    """Models that were trained until their validation loss stopped falling, on masked
    tokens of the test split, and by how much some lead others, seed by seed; the
    command that makes the runs, where they are missing."""
    results = results_of("family-ends")
    if not set(variants) <= set(runs_of(results)):
        return not_yet("course record family --data ends")
    columns = {
        "masked tokens (%)": ("scores", "mlm_accuracy"),
        "names, things and places (%)": ("scores", "entity_accuracy"),
    }

    def steps(run: Mapping[str, Any]) -> str:
        of_all = [x["steps"] for x in runs_of(results)[run["variant"]]]
        return f"{min(of_all):,} to {max(of_all):,}"

    also = {"parameters": lambda run: f"{run['parameters']:,}", "steps": steps}
    rows = []
    for one, other in leads:
        lead = lead_over(results, one, other)
        points = Interval(100 * lead.mean, 100 * lead.half_width)
        rows.append((f"{one} minus {other}", lead_text(points)))
    table = score_table(results, variants, columns, also)
    differences = markdown_table(("masked tokens", "points"), rows)
    return told(load("family-ends"), f"{table}\n\n{differences}", "These runs were")


def pairs_table(record: Record) -> str:
    """The recorded ways to find a description."""
    names = [f"{kind}{how}" for how in (", as it is", "") for kind in PAIR_KINDS]
    columns = {
        "MRR (%)": ("scores", "mrr"),
        "first (%)": ("scores", "recall_1"),
        "among ten (%)": ("scores", "recall_10"),
    }
    also = {"vectors kept": lambda run: f"{run['vectors']:,}"}
    table = score_table(record.results, [*names, "BM25"], columns, also)
    documents = record.results[0]["documents"]
    return told(record, table, f"These runs, on {documents} documents, were")


#: What a prompt holds, the variant of the record, and the key of its scores.
PROMPTS = (
    ("zero-shot", "prompted", "0 shots"),
    ("one-shot", "prompted", "1 shots"),
    ("few-shot: 4 examples", "prompted", "4 shots"),
    ("control: 4 examples, all wrong", "prompted", "4 wrong shots"),
    ("fine-tuned on 64 examples", "fine-tuned", "0 shots"),
    ("control: the same from scratch", "from scratch", "0 shots"),
)


def prompt_rows(record: Record) -> list[dict[str, Any]]:
    """The scores of each way to put the task, by seed: in two forms, as they are and
    calibrated."""
    return [
        {
            "variant": title,
            "seed": run["seed"],
            "scores": {
                f"{form}{how}": run["scores"][f"{form}, {key}{how}"]
                for form in ("a sentence", "a list")
                for how in ("", ", calibrated")
            },
        }
        for title, variant, key in PROMPTS
        for run in record.results
        if run["variant"] == variant
    ]


def prompts_table(record: Record, calibrated_only: bool = True) -> str:
    """All ways to put the task, in percent of right answers."""
    columns = {
        f"{form}{how}": ("scores", f"{form}{how}")
        for form in ("a sentence", "a list")
        for how in ("", ", calibrated")
        if how or not calibrated_only
    }
    titles = [title for title, _, _ in PROMPTS]
    return told(record, score_table(prompt_rows(record), titles, columns))
