"""`pydocs`: real English prose for language models, read from the documentation that is
installed with the course.

The steps: docstrings in the source files of each package
(:mod:`course_lib.data.pydocs_extract`), their running text
(:mod:`course_lib.data.pydocs_blocks`), of that what is prose
(:mod:`course_lib.data.pydocs_prose`), and of prose the first of all paragraphs that say
nearly the same (:mod:`course_lib.data.near_duplicates`). A document is what one class
with its methods, one function, one module or one topic says about itself. A module's
documents are all in one split.
"""

import hashlib
import platform
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from datasets import Dataset, Features, Value

from course_lib.data import near_duplicates, pydocs_blocks, pydocs_extract, pydocs_prose
from course_lib.data.arrow_cache import cached
from course_lib.data.corpus import FEATURES, Row
from course_lib.files import digest_of_code

# All come with the course's own requirements (pyproject.toml), so that every student
# has the same corpus. The order is that of the corpus: of paragraphs that say nearly
# the same, the first is kept.
PACKAGES = (
    *(
        "python",
        "numpy",
        "scipy",
        "scikit-learn",
        "sympy",
        "networkx",
        "pandas",
        "matplotlib",
        "torch",
        "pyarrow",
    ),
    *(
        "datasets",
        "huggingface_hub",
        "mpmath",
        "sqlalchemy",
        "pydantic",
        "fonttools",
        "pillow",
        "setuptools",
        "jinja2",
    ),
    *(
        "pygments",
        "click",
        "typer",
        "rich",
        "fsspec",
        "pyparsing",
        "psutil",
        "packaging",
        "filelock",
        "portalocker",
    ),
    *("anyio", "lxml", "python-dateutil"),
)
SPLITS = ("train", "validation", "test")
DOCSTRINGS = Features(
    {name: Value("string") for name in ("package", "module", "owner", "text")}
)
HELD_OUT = 5  # percent of the modules in validation, and as many in test
# Two paragraphs are near-duplicates from this Jaccard index of their runs of three
# words.
THRESHOLD, SHINGLE = 0.7, 3


def split_of(module: str) -> str:
    """Return the split in which the documents of a module are, on every machine and for
    every version."""
    percent = int(hashlib.sha256(module.encode()).hexdigest(), 16) % 100
    return (
        "test"
        if percent < HELD_OUT
        else "validation"
        if percent < 2 * HELD_OUT
        else "train"
    )


def fingerprint(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return what the corpus is made from: the version of each package, and the code
    that cleans."""
    cleaners = (near_duplicates, pydocs_blocks, pydocs_extract, pydocs_prose)
    sources = [__file__, *(str(module.__file__) for module in cleaners)]
    code = digest_of_code(sources, imports=False)
    return {**_versions(packages), "cleaning": code[:16]}


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        if package != "python":
            pydocs_extract.installed_folder(package)
        versions[package] = (
            platform.python_version()
            if package == "python"
            else version(package).split("+")[0]
        )
    return versions


def docstrings(packages: Sequence[str] = PACKAGES) -> Dataset:
    """Return every docstring of the packages as its author wrote it, from the cache
    where it is there."""
    code = digest_of_code([__file__, pydocs_extract.__file__], imports=False)
    made_from = {**_versions(packages), "reading": code[:16]}

    def read() -> dict[str, list[dict[str, str]]]:
        parts = ((x, part) for x in packages for part in pydocs_extract.docstrings(x))
        return {"all": [{"package": x, **part._asdict()} for x, part in parts]}

    return cached("pydocs-docstrings", made_from, DOCSTRINGS, read)["all"]


def documents(packages: Sequence[str] = PACKAGES) -> Iterator[Row]:
    """Yield the documents of the packages in their order, near-duplicates still among
    them."""
    owned: dict[tuple[str, str, str], list[str]] = {}
    for package, *part in zip(*docstrings(packages)[:].values(), strict=True):
        found = pydocs_extract.Docstring(*part)
        owned.setdefault((package, found.module, found.title), []).append(found.text)
    for (package, module, title), texts in owned.items():
        if paragraphs := [one for text in texts for one in prose_of(text)]:
            name = f"{package}/{module}:{title.removeprefix(module).lstrip('.')}"
            yield Row(
                document=name,
                package=package,
                module=module,
                title=title,
                paragraphs=paragraphs,
            )


def prose_of(docstring: str) -> list[str]:
    """Return the paragraphs of prose in a docstring."""
    candidates = pydocs_blocks.paragraphs(docstring)
    texts = [
        pydocs_prose.prose(text, summary=place == 0)
        for place, text in enumerate(candidates)
    ]
    return [text for text in texts if text]


def make(packages: Sequence[str] = PACKAGES) -> dict[str, list[Row]]:
    """Make the corpus: all documents without near-duplicates, split by module."""
    found = list(documents(packages))
    keep = iter(
        near_duplicates.first_of_its_kind(
            [text for row in found for text in row["paragraphs"]], THRESHOLD, SHINGLE
        )
    )
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    for row in found:
        paragraphs = [text for text in row["paragraphs"] if next(keep)]
        if paragraphs:
            splits[split_of(row["module"])].append({**row, "paragraphs": paragraphs})
    return splits


def load() -> dict[str, Dataset]:
    """Return the corpus from the cache, or make it: about a minute of CPU time, once
    for each set of versions."""
    return cached("pydocs", fingerprint(), FEATURES, make)
