"""The pages as they were last executed, what they were made of, what they cost."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from nbformat import NotebookNode

from course_tools.site.key import code_state, files_state

CELLS = "its own cells"
#: Python before 3.11.8 may fail when two threads parse (python/cpython#106905).
PARSING = threading.Lock()


@dataclass(frozen=True)
class PageCost:
    """A page's seconds by the clock, and of processors with its processes."""

    wall_seconds: float
    processor_seconds: float


class PageCache:
    """The executed pages of a repository's book."""

    def __init__(self, root: Path) -> None:
        from jupyter_cache import get_cache

        self.root = root
        self.folder = root / "_build" / ".jupyter_cache"
        self._cache = get_cache(str(self.folder))
        self._one_at_a_time = threading.Lock()  # the cache is one writer's

    def notebook(self, page: Path) -> NotebookNode:
        """Read a page as Sphinx will read it."""
        from myst_nb.core.read import read_myst_markdown_notebook
        from myst_parser.config.main import MdParserConfig

        settings = yaml.safe_load((self.root / "_config.yml").read_text("utf-8"))
        extensions = settings["parse"]["myst_enable_extensions"]
        return read_myst_markdown_notebook(
            page.read_text(encoding="utf-8"),
            MdParserConfig(enable_extensions=set(extensions)),
            add_source_map=True,
            path=page,
        )

    def made_of(self, page: Path) -> dict[str, str]:
        """Name the state of what a page depends on, with the files it last read."""
        _, cells = self._cache.create_hashed_notebook(self.notebook(page))
        reads = files_state(self._data(page).get("reads", []), self.root)
        with PARSING:
            return {CELLS: cells, **code_state(page, self.root), **reads}

    def changed(self, page: Path) -> list[str] | None:
        """Return what has changed since a page ran; None if it never did."""
        before = self._data(page).get("made_of")
        if before is None:
            return None
        now = self.made_of(page)
        names = sorted(before.keys() | now.keys())
        return [name for name in names if before.get(name) != now.get(name)]

    def keep(
        self,
        page: Path,
        executed: NotebookNode,
        state: dict[str, str],
        reads: list[str],
        **cost: float,
    ) -> None:
        """Keep an executed page, instead of what was kept of it before."""
        from jupyter_cache.base import CacheBundleIn

        state = state | files_state(reads, self.root)
        data = {"reads": reads, "made_of": state, **cost}
        bundle = CacheBundleIn(executed, str(page), data=data)
        with self._one_at_a_time:
            self.forget(page)
            self._cache.cache_notebook_bundle(
                bundle, check_validity=False, overwrite=True
            )

    def forget(self, page: Path) -> None:
        """Keep a page no longer."""
        for record in self._records(page):
            self._cache.remove_cache(record.pk)

    def executed_at(self, page: Path) -> str:
        """Say when a page was executed, or nothing."""
        return " ".join(str(record.created) for record in self._records(page))

    def costs(self, pages: Iterable[Path]) -> dict[str, PageCost]:
        """Return what executed pages have cost, by name."""
        held = {page.stem: self._data(page) for page in pages}
        return {
            name: PageCost(data["execution_seconds"], data["processor_seconds"])
            for name, data in held.items()
            if "processor_seconds" in data
        }

    def _records(self, page: Path) -> list[Any]:
        records = self._cache.list_cache_records()
        return [record for record in records if Path(record.uri).name == page.name]

    def _data(self, page: Path) -> dict[str, Any]:
        records = self._records(page)
        return dict(records[-1].data or {}) if records else {}
