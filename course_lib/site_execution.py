"""Execute the book's chapters, measure its data and grade its graders side by side, before the pages are laid out.

Sphinx executes one chapter at a time, and the small models of a chapter keep no two cores busy. Here each chapter has
one thread, whatever the machine, so that its figures do not depend on the number of cores; what runs at the same time
are other chapters, the data cards, and the wrong answers of the assignments, which the instructors' pages tell of.

What has been executed goes into the cache that Sphinx reads. A chapter that raises is left to Sphinx: it executes the
page again and says what is wrong.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from course_lib.grading.mutants import run_cases
from course_lib.grading.release import assignments
from course_lib.site import executed_pages
from course_lib.site_pages import write_data_cards

if TYPE_CHECKING:
    from jupyter_cache.base import JupyterCacheAbstract
    from nbformat import NotebookNode

__all__ = ["PROCESSES", "execute_ahead"]

#: How many run at once: one a core, two at least, and not more than memory holds (a page says what it took).
PROCESSES = max(2, min(4, os.cpu_count() or 1))


def execute_ahead(root: Path, cache_folder: Path, processes: int = PROCESSES) -> list[str]:
    """Execute each page that the cache does not hold, write the data cards, and run each assignment's wrong answers.

    Parameters
    ----------
    root
        The repository's root, with `_config.yml` and `book/`.
    cache_folder
        Where jupyter-cache keeps executed pages; made if it does not exist.
    processes
        How many run at once.

    Returns
    -------
    list of str
        The names of the pages that have been executed without an error.

    Raises
    ------
    course_lib.grading.source.AssignmentError
        If an assignment's wrong and right answers cannot be run.
    """
    from jupyter_cache import get_cache

    cache = get_cache(str(cache_folder))
    settings = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    one_at_a_time = threading.Lock()  # the cache is one writer's
    done: list[str] = []

    def execute(path: Path, notebook: NotebookNode) -> None:
        from jupyter_cache.base import CacheBundleIn
        from jupyter_cache.executors.utils import single_nb_execution

        result = single_nb_execution(notebook, str(path.parent), settings["execute"]["timeout"], allow_errors=False)
        if result.err is not None:
            print(f"{path.stem}: {type(result.err).__name__} after {result.time:.0f} s; Sphinx will say more")
            return
        bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": result.time})
        with one_at_a_time:
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            done.append(path.stem)
            print(f"{path.stem}: executed in {result.time:.0f} s", flush=True)

    extensions = settings["parse"]["myst_enable_extensions"]
    jobs: list[Callable[[], object]] = [
        partial(execute, path, notebook)
        for path in executed_pages(root)
        if not _holds(cache, notebook := _notebook(path, extensions))
    ]
    if "_generated/data/" in (root / "book" / "_toc.yml").read_text(encoding="utf-8"):
        jobs.append(partial(write_data_cards, root))
    jobs += [partial(run_cases, name, root, processes=1) for name in assignments(root)]
    with ThreadPoolExecutor(processes) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()
    return done


def _notebook(path: Path, extensions: list[str]) -> NotebookNode:
    """Read a page as Sphinx will read it."""
    from myst_nb.core.read import read_myst_markdown_notebook
    from myst_parser.config.main import MdParserConfig

    config = MdParserConfig(enable_extensions=set(extensions))
    return read_myst_markdown_notebook(path.read_text(encoding="utf-8"), config, add_source_map=True, path=path)


def _holds(cache: JupyterCacheAbstract, notebook: NotebookNode) -> bool:
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True


if __name__ == "__main__":
    execute_ahead(Path(sys.argv[1]), Path(sys.argv[2]))
