"""Where figures of ours are read from: executed pages, records, and the logs of shipped
checkpoints.

Nothing here guesses. What is not found is an error that says what was looked for,
where, and what is there instead.
"""

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat

from course_lab import records
from course_lab.ch06_pretraining import shipped

#: Jupyter Book leaves each page here as it was executed, and beside it what the page
#: glued.
EXECUTED = "jupyter_execute"
SEEDS = re.compile(r"^SEEDS = [\[(]([\d, ]+)[\])]$", re.MULTILINE)
INTERVAL = re.compile(
    r"([-+−]?[\d.,]+(?:e-?\d+)?)(?:%)?(?: ± ([\d.,]+))?(?: \(([-+−\d.,]+) to"
    r" ([-+−\d.,]+)\))?"
)


class LedgerError(LookupError):
    """A figure that the ledger needs is not where it should be; the message says what
    is missing and where."""


class ExecutedPage:
    """What an executed page printed, showed as tables and glued."""

    def __init__(self, path: Path, cache: Path | None = None) -> None:
        if not path.is_file():
            raise LedgerError(
                f"{path.name} has not been executed: build the book, or mend the page's"
                " own error first"
            )
        self.name = path.stem
        self._path = path
        self._cache = cache

    @cached_property
    def _notebook(self) -> Any:
        notebook = nbformat.read(self._path, as_version=4)
        if self._cache is None or any(cell.get("outputs") for cell in notebook.cells):
            return notebook
        from jupyter_cache import get_cache

        try:
            _, executed = get_cache(str(self._cache)).merge_match_into_notebook(
                notebook
            )
        except KeyError as error:
            raise LedgerError(
                f"{self.name} has no outputs, and the cache does not know it; build it"
                " anew"
            ) from error
        return executed

    @cached_property
    def _glue(self) -> dict[str, Any]:
        file = self._path.with_suffix(".glue.json")
        return (
            dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}
        )

    def glued(self, key: str) -> float:
        """Return a number that the page glued under a key."""
        if key not in self._glue:
            raise LedgerError(
                f"{self.name} glues no {key!r}; it glues:"
                f" {', '.join(sorted(self._glue)) or 'nothing'}"
            )
        text = self._glue[key]["data"].get("text/plain", "")
        try:
            return float(text)
        except ValueError as error:
            raise LedgerError(
                f"{self.name} glues {text!r} as {key!r}, which is no number; glue a"
                " plain float"
            ) from error

    @cached_property
    def _outputs(self) -> list[Any]:
        return [
            output
            for cell in self._notebook.cells
            for output in cell.get("outputs", [])
        ]

    @cached_property
    def printed(self) -> str:
        """All that the page's cells printed."""
        return "".join(
            str(output.text)
            for output in self._outputs
            if output.output_type == "stream"
        )

    @cached_property
    def tables(self) -> list[list[list[str]]]:
        """The tables that cells wrote in Markdown: rows of cells, the head first."""
        shown = [output.get("data", {}) for output in self._outputs]
        texts = [
            str(data["text/markdown"]) for data in shown if "text/markdown" in data
        ]
        return [table for text in texts for table in tables_of(text)]

    def cell(self, row: str, column: str, table: str = "") -> str:
        """Return the text of one cell; it is an error if more than one, or none,
        answers the description."""
        wanted = row.split(" | ")
        found = []
        for head, *body in self.tables:
            places = [
                place for place, name in enumerate(head) if name.startswith(column)
            ]
            if head[0].startswith(table) and places:
                found += [
                    line[places[0]]
                    for line in body
                    if line[: len(wanted)] == wanted and line[places[0]]
                ]
        if len(found) != 1:
            heads = "; ".join(" | ".join(head) for head, *_ in self.tables)
            raise LedgerError(
                f"{self.name} has {len(found)} cells in a row {row!r} and a column"
                f" {column!r}, and one is needed; the heads of its tables are: {heads}"
            )
        return found[0]

    @cached_property
    def seeds(self) -> int:
        """How many seeds the page's experiments have, as its cells say."""
        found = SEEDS.search("\n".join(cell.source for cell in self._notebook.cells))
        if found is None:
            raise LedgerError(f"{self.name} has no line such as 'SEEDS = [0, 1, 2]'")
        return len(found[1].split(","))


class Evidence:
    """All that a build of the book has measured, and all that was recorded before."""

    def __init__(
        self,
        pages: dict[int, str],
        executed: Path | None = None,
        results: Path = records.RESULTS,
        cache: Path | None = None,
    ) -> None:
        self._cache = cache
        self._pages = pages
        self._executed = executed
        self._results = results
        self._read: dict[int, ExecutedPage] = {}
        self._records: dict[str, records.Record] = {}

    def page(self, chapter: int) -> ExecutedPage:
        """Return a chapter's page as executed."""
        if self._executed is None:
            raise LedgerError(
                f"chapter {chapter} is asked for a live figure, but no executed pages"
                " are at hand"
            )
        if chapter not in self._pages:
            raise LedgerError(f"the book has no chapter {chapter}")
        if chapter not in self._read:
            self._read[chapter] = ExecutedPage(
                self._executed / f"{self._pages[chapter]}.ipynb", self._cache
            )
        return self._read[chapter]

    def record(self, name: str) -> records.Record:
        """Return a record; it is an error if there is none."""
        if name not in self._records:
            try:
                self._records[name] = records.load(name, self._results)
            except FileNotFoundError as error:
                raise LedgerError(str(error)) from error
        return self._records[name]

    def checkpoint(self, name: str) -> dict[str, Any]:
        """Return the log of a shipped checkpoint."""
        return shipped.read_log(name)


def tables_of(markdown: str) -> list[list[list[str]]]:
    """Cut a Markdown text into its tables."""
    tables: list[list[list[str]]] = []
    before = ""
    for line in markdown.splitlines():
        if line.startswith("|"):
            cells = [
                cell.strip()
                for cell in line.strip().removeprefix("|").removesuffix("|").split("|")
            ]
            if not before.startswith("|"):
                tables.append([cells])
            elif set("".join(cells)) - set("-: "):
                tables[-1].append(cells)
        before = line
    return tables


def parse_figure(text: str) -> tuple[float, float | None, tuple[float, float] | None]:
    """Read a figure as pages write it: ``1.2``, ``1.2 ± 0.3`` or ``1.2 (0.9 to
    1.4)``."""
    found = INTERVAL.fullmatch(text.replace("*", "").strip())
    if found is None:
        raise LedgerError(
            f"{text!r} is no figure: expected e.g. '1.2', '1.2 ± 0.3' or '1.2 (0.9 to"
            " 1.4)'"
        )
    value, half, low, high = (
        None if part is None else float(part.replace(",", "").replace("−", "-"))
        for part in found.groups()
    )
    if value is None:
        raise LedgerError(f"{text!r} holds no number")
    return value, half, (low, high) if low is not None and high is not None else None
