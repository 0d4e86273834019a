"""`pydocs-topic`: which library does a paragraph document?"""

import re
from collections.abc import Iterator, Mapping, Sequence

from datasets import Dataset

from course_lib.data import pydocs
from course_lib.data.data_set import labelled
from course_lib.data.pydocs_tasks import Row, at_most, distinct, drawn

# The area of a library, and the parts of it that are about something else: tests,
# tools, what installs it.
AREAS: Mapping[str, tuple[list[str], list[str]]] = {
    area: (inside.split(), outside.split())
    for area, inside, outside in (
        (
            "numerics",
            "numpy scipy",
            "numpy.distutils numpy.f2py numpy.testing numpy.typing scipy._lib"
            " scipy.datasets",
        ),
        (
            "learning",
            "sklearn",
            "sklearn.utils sklearn.externals sklearn._build_utils sklearn.conftest",
        ),
        (
            "symbols",
            "sympy",
            "sympy.testing sympy.utilities sympy.external sympy.release sympy.conftest",
        ),
        (
            "graphs",
            "networkx",
            "networkx.utils networkx.conftest networkx.lazy_imports",
        ),
        (
            "tables",
            "pandas",
            "pandas._testing pandas.util pandas.compat pandas._config pandas.errors",
        ),
        (
            "plots",
            "matplotlib mpl_toolkits",
            "matplotlib.testing matplotlib.sphinxext matplotlib._api",
        ),
        (
            "tensors",
            "torch",
            "torch.testing torch.utils torch.contrib torch.package torch.torch_version",
        ),
        (
            "databases",
            "sqlalchemy",
            "sqlalchemy.testing sqlalchemy.util sqlalchemy.log",
        ),
    )
}
FEATURES = labelled(tuple(AREAS), "text")
SHORTEST, LONGEST = 25, 120  # words: shorter, a paragraph may fit any library
# rows of an area, so that none is the answer by its number
MOST = {"train": 500, "validation": 100, "test": 100}
# rows: no area is one long module
OF_ONE_MODULE = {"train": 25, "validation": 20, "test": 20}
# Names that would tell the answer: of packages, and by which they are imported.
_NAMES = re.compile(
    r"(?i:\b(?:numpy|scipy|scikit|sklearn|sympy|mpmath|networkx|pandas|matplotlib|mpl|pyplot|mplot3d|axisartist|"
    r"torch\w*|pytorch|sql"
    r" ?alchemy|aten|dynamo|inductor|scikits|pylab|statsmodels|pyarrow)\b)|"
    r"\b(?:np|sp|nx|pd|plt|sa|sm|xp)\."
)
# What a library says about its own code, its versions and its documentation fits any
# library.
_ABOUT_CODE = re.compile(
    r"(?i:docstring|deprecat|compatib|\bprivate\b|internal|subclass|superclass|\bimport|\bversions?\b|\bimplementation|"
    r"\bapi\b|\bbug|\bissue|\brelease|copyright|licen[cs]e|\bwarning|\bexception|\bmethod|\bkwargs)"
)


def make() -> Mapping[str, Sequence[Row]]:
    """Make the task from the corpus."""
    found = distinct(
        {split: list(_rows(rows)) for split, rows in pydocs.load().items()},
        lambda row: str(row["text"]),
        0.5,
    )
    return {
        split: at_most(
            at_most(drawn(rows, _text), "module", OF_ONE_MODULE[split]),
            "label",
            MOST[split],
        )
        for split, rows in found.items()
    }


def area(module: str) -> str | None:
    """Return the area of a module."""
    for name, (inside, outside) in AREAS.items():
        if _within(module, inside):
            return None if _within(module, outside) else name
    return None


def _within(module: str, prefixes: Sequence[str]) -> bool:
    return any(f"{module}.".startswith(f"{prefix}.") for prefix in prefixes)


def _rows(documents: Dataset) -> Iterator[Row]:
    """Paragraphs in a row of one document, as many as it takes to say something."""
    for module, paragraphs in zip(
        documents["module"], documents["paragraphs"], strict=True
    ):
        name = area(module)
        waiting: list[str] = []
        for paragraph in paragraphs if name else ():
            waiting.append(paragraph)
            words = sum(len(text.split()) for text in waiting)
            if words < SHORTEST:
                continue
            text, waiting = " ".join(waiting), []
            if (
                words <= LONGEST
                and not _NAMES.search(text)
                and not _ABOUT_CODE.search(text)
            ):
                yield {
                    "text": text,
                    "label": list(AREAS).index(str(name)),
                    "module": module,
                }


def _text(row: Row) -> str:
    return str(row["text"])
