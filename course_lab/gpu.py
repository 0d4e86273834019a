"""What `benchmarks/gpu.py` has recorded on a GPU, as pages show it: a table for each of
its steps, or nothing where no GPU was at hand."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from course_lab import records
from course_lib.data.corpus import markdown_table, plain_text
from course_lib.files import RESULTS

if TYPE_CHECKING:
    from IPython.display import Markdown

Results: TypeAlias = Sequence[Mapping[str, Any]]


def on_a_gpu(step: str, folder: Path = RESULTS) -> "Markdown | None":
    """Show what a step found, with device and date; nothing if there is no record."""
    name = f"gpu-{step}"
    try:
        # not `is_file`: a build notes what a page opens, and so executes it anew once
        # the record is there
        with (folder / f"{name}.json").open():
            pass
    except FileNotFoundError:
        return None
    record = records.load(name, folder)
    note = records.recorded_note(record, "The next table was")
    # a machine that only measures may lack it
    from IPython.display import Markdown

    found = table(step, record.results)
    return Markdown(f"**On a GPU**\n\n{note}\n\n{found}")


def table(step: str, results: Results) -> str:
    """Write what a step found as a table."""
    return TABLES[step](results)


def _tests(results: Results) -> str:
    passed, computed, skipped = (
        sum(row[what] for row in results) for what in ("passed", "on_device", "skipped")
    )
    failed = [
        (row["file"], name, words)
        for row in results
        for name, words in row["failed"].items()
    ]
    told = (
        f"{len(results)} files: {passed} tests passed, of which {computed} computed on"
        f" the device; {skipped} skipped; {len(failed)} failed."
    )
    return _with_failures(told, ("file", "test", "what it said"), failed)


def _with_failures(
    told: str, heads: tuple[str, ...], failed: Sequence[tuple[str, ...]]
) -> str:
    """Write a sentence, and below it what failed, if anything did."""
    safe = [[plain_text(" ".join(cell.split())) for cell in row] for row in failed]
    return f"{told}\n\n{markdown_table(heads, safe)}" if failed else told


def _bert(results: Results) -> str:
    rows = []
    for row in results:
        for who, side in (("ours", ""), ("transformers", "peer_")):
            compiled = ", compiled" if row[f"{who}_compiled"] else ""
            rows.append(
                (
                    row["mode"],
                    who + compiled,
                    f"{row[f'{side}milliseconds']:.1f}",
                    f"{row[f'{side}tokens_a_second']:,.0f}",
                    f"{row[f'{side}utilisation']:.0%}",
                    f"{row[f'{side}peak_bytes'] / 1e9:.2f}",
                )
            )
    heads = ("", "", "ms", "tokens a second", "of the matrix rate", "GB at most")
    return markdown_table(heads, rows)


def _ladder(results: Results) -> str:
    rows = [
        (
            row["mode"],
            f"{row['milliseconds']:.1f}",
            f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
            f"{row['utilisation']:.0%}" if "utilisation" in row else "",
        )
        for row in results
    ]
    heads = (
        "training step",
        "ms",
        "times as fast as transformers by default",
        "of the matrix rate",
    )
    return markdown_table(heads, rows)


def _answers(results: Results) -> str:
    full = sum(row["points"] == row["most"] and not row["failed"] for row in results)
    computed = sum(row["bytes_on_device"] > 0 for row in results)
    failed = [
        (row["assignment"], row["answer"], cell, words)
        for row in results
        for cell, words in row["failed"].items()
    ]
    told = (
        f"{len(results)} right answers: {full} have full marks, {computed} computed on"
        " the device."
    )
    heads = ("assignment", "answer", "test", "what it said")
    return _with_failures(told, heads, failed)


def _grading(results: Results) -> str:
    rows = [
        (row["wall"], row["refused"])
        if "refused" in row
        else (
            row["wall"],
            f"{row['points']:g} of {row['most']:g} points {row['problem']}".strip(),
        )
        for row in results
    ]
    return markdown_table(("wall", "the reference"), rows)


def _attention(results: Results) -> str:
    lengths = sorted({row["length"] for row in results})
    ways: dict[tuple[str, ...], dict[int, str]] = {}
    for row in results:
        shown = "too large"
        if row["bytes"] is not None:
            shown = f"{row['milliseconds']:.1f} ms, {row['bytes'] / 2**20:,.0f} MiB"
        way = (row["who"], row["path"], row["precision"])
        ways.setdefault(way, {})[row["length"]] = shown
    rows = [
        (*way, *(of_way.get(length, "") for length in lengths))
        for way, of_way in ways.items()
    ]
    heads = ("layer", "weights", "precision", *(f"{x:,} tokens" for x in lengths))
    return markdown_table(heads, rows)


def _words(results: Results) -> str:
    rows = []
    for row in results:
        of_models = {x: row[x] for x in row if x != "length"}
        for kind in next(iter(of_models.values())):
            medians = {x: float(np.median(of_models[x][kind])) for x in of_models}
            rows.append(
                (kind, f"{row['length']}", *(f"{x:.1f}" for x in medians.values()))
            )
    models = [x for x in results[0] if x != "length"]
    return markdown_table(
        ("microseconds a target word", "words a sentence", *models), rows
    )


def _pretraining(results: Results) -> str:
    rows = []
    for row in results:
        controls = row["test"].items()
        best = max(x["mlm_accuracy"] for who, x in controls if who != "model")
        found = row["test"]["model"]
        rows.append(
            (
                f"{row['size']}, {row['data']}",
                f"{row['seconds']:.0f} s, {row['steps']:,} steps",
                f"{row['flops']:.1e}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['utilisation']:.0%}",
                f"{found['mlm_accuracy']:.1%} ± {found['mlm_accuracy_interval']:.1%}",
                f"{best:.1%}",
            )
        )
    heads = (
        "model, corpus",
        "trained for",
        "operations",
        "tokens a second",
        "of the matrix rate",
        "masked tokens predicted (test)",
        "best control",
    )
    return markdown_table(heads, rows)


def _finetuning(results: Results) -> str:
    found: dict[str, dict[str, list[float]]] = {}
    for row in results:
        of_variant = found.setdefault(row["variant"], {})
        for metric, value in row["scores"].items():
            of_variant.setdefault(metric, []).append(value)
    rows = []
    for variant, of_variant in found.items():
        task, _, use = variant.partition(", ")
        for metric, values in of_variant.items():
            mean = records.mean_text([100 * x for x in values])
            rows.append((task, use, metric, mean, f"{len(values)}"))
    return markdown_table(
        ("task", "model", "score", "mean, in hundredths", "seeds"), rows
    )


def _pairs(results: Results) -> str:
    rows = [
        (
            row["size"],
            row["kind"],
            f"{row['peer_milliseconds'] / 3.6e6:,.2f} h",
            f"{row['milliseconds'] / 1000:,.1f} s",
            f"{row['ratio']:,.0f} ({row['low']:,.0f} to {row['high']:,.0f})",
        )
        for row in results
    ]
    heads = (
        "model",
        "last layer",
        "all pairs of 10,000 sentences",
        "all sentences and the search",
        "ratio",
    )
    return markdown_table(heads, rows)


def _pages(results: Results) -> str:
    failed = [
        (row["page"], cell, words)
        for row in results
        for cell, words in row["errors"].items()
    ]
    whole = sum(not row["errors"] for row in results)
    told = f"{len(results)} pages: {whole} without an error."
    return _with_failures(told, ("page", "cell", "error"), failed)


TABLES: Mapping[str, Callable[[Results], str]] = {
    "tests": _tests,
    "bert": _bert,
    "ladder": _ladder,
    "answers": _answers,
    "grading": _grading,
    "attention": _attention,
    "words": _words,
    "pretraining": _pretraining,
    "finetuning": _finetuning,
    "pairs": _pairs,
    "pages": _pages,
}
