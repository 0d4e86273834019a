"""Every test runs with the shapes in the library's signatures checked: a wrong shape is
a failing test.

And files with long tests begin first, so that no process is left alone with one of them
at the end.
"""

import contextlib
import gc
import os
import shutil
import sys
from pathlib import Path

import jaxtyping
import pytest
from jaxtyping import install_import_hook
from on_device import OnDevice
from whole import leave_out

# Imported before the hook, hence left out of it: no shapes there, and a million calls
# to generate a corpus, to look at each character of one or to cut it into pieces; and
# functions inside a function, which the hook would compile anew for each cell.
import course_lib.data
import course_lib.wordpiece.fast
import course_lib.wordpiece.normalize
import course_lib.wordpiece.tokenizer  # noqa: F401
import course_tools.grading.assignments.withheld  # noqa: F401

install_import_hook(["course_lib", "course_lab", "course_tools"], "beartype.beartype")

# Set-up cells of notebooks run in this process, too. The guard of what they withhold
# could not be taken out of it again, so there is one already, which refuses nothing.
vars(sys)["_course_guard"] = {"allowed": contextlib.nullcontext}

# Nearly a million objects of tests and modules stay to the end. Python would look
# through them for garbage again and again; this, and freezing them below, saves a fifth
# of the processor time of the fast tests.
gc.set_threshold(50_000, 20, 50)

#: Files of this folder that hold the slowest tests (`pytest --durations=40`). Their
#: order changes no result.
LONG = (
    "assignments/test_mutants.py",
    "tools/grading/test_through_bridge.py",
    "assignments/test_viva_keys.py",
    "assignments/test_through_nbgrader.py",
    "tools/grading/test_any_course.py",
    "book/test_every_page.py",
    "tools/grading/test_fuzz.py",
    "tools/grading/test_nbgraders_own_tests.py",
    "benchmarks/test_gpu.py",
    "tools/grading/test_large_class.py",
    "assignments/test_shipped_files.py",
    "tools/grading/test_semester_page.py",
    "tools/grading/test_cycle.py",
    "assignments/test_words_given_back.py",
    "book/test_decks.py",
    "tools/grading/test_attacks.py",
    "tools/site/test_site_build.py",
    "lab/test_probes.py",
    "lab/ch06_pretraining/test_pretrain_runs.py",
)


ROOT = Path(__file__).parents[1]
ON_DEVICE = pytest.StashKey[OnDevice]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        help="where tests that name no device make tensors and models, e.g. cuda",
    )


def pytest_configure(config: pytest.Config) -> None:
    # nbgrader starts `alembic` by name wherever it makes a gradebook; `make` activates
    # no environment.
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    )
    if device := config.getoption("--device"):
        config.stash[ON_DEVICE] = OnDevice(device).__enter__()


def pytest_unconfigure(config: pytest.Config) -> None:
    if mode := config.stash.get(ON_DEVICE, None):
        mode.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def _note_what_computed_on_the_device(request, record_property):
    """Under `--device`: the report of a test (`--junitxml`) says how many calls of
    torch computed there."""
    mode = request.config.stash.get(ON_DEVICE, None)
    before = mode.computed if mode else 0
    yield
    if mode and mode.computed > before:
        record_property("computed_on_device", mode.computed - before)


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory):
    """A gradebook in which nothing is. To make one takes nbgrader seconds, to copy one
    no time."""
    from nbgrader.api import Gradebook

    path = tmp_path_factory.mktemp("empty") / "gradebook.db"
    Gradebook(f"sqlite:///{path}").close()
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONG)}
    if gone := [str(path) for path in places if not path.is_file()]:
        raise pytest.UsageError(
            f"tests/conftest.py begins with {', '.join(gone)}, which is not there; mend"
            " its list"
        )
    if repeated := leave_out(items):
        items[0].config.hook.pytest_deselected(items=repeated)
        kept = {*items} - {*repeated}
        items[:] = [item for item in items if item in kept]
    if device := items and items[0].config.getoption("--device"):
        for item in items:
            if item.get_closest_marker("cpu"):
                item.add_marker(
                    pytest.mark.skip(reason=f"holds on the CPU alone, not on {device}")
                )
    # stable: all else stays as it was collected
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """Take what is there out of all later searches for garbage."""
    gc.collect()
    gc.freeze()


#: Milliseconds until a browser that does not start says so: more than any machine
#: needs.
LAUNCH = 1_200_000
#: Chromium in a container, as root, and silent: it must not look anything up by itself.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium. On a CI machine it must be there; elsewhere its tests skip and
    say so."""
    from playwright.sync_api import sync_playwright

    program = next(
        filter(
            None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
        ),
        None,
    )
    if program is None:
        message = "no Chromium found; type: sudo make programs"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=CHROMIUM_FLAGS, timeout=LAUNCH
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def real_data():
    """The folder of public data sets outside the repository; without it, the test is
    skipped and says why."""
    folder = Path(
        os.environ.get("COURSE_DATA") or ROOT.parent / "shared" / "data"
    ).expanduser()
    if not (folder / "multi30k").is_dir():
        pytest.skip(
            f"no public data: neither COURSE_DATA nor {ROOT.name}/../shared/data holds"
            " a folder multi30k"
        )
    return folder


@pytest.fixture(scope="session")
def sentences():
    """Generated pairs of every length from 3 to 60 English words, 26 of each."""
    from course_lib.data.translation import generate

    return generate(26 * 58, seed=41)


@pytest.fixture(scope="session")
def corpus():
    """A small corpus from the real grammar: 60 pairs to train on, 12 to validate, 17 to
    test."""
    from course_lab.ch01_seq2seq.seq2seq import Corpus
    from course_lab.ch01_seq2seq.text import encode_pairs, train_tokenizer
    from course_lib.data.translation import generate

    rows = generate(89, seed=3, min_length=4, max_length=16)
    parts = {"train": rows[:60], "validation": rows[60:72], "test": rows[72:]}
    text = {
        s: {name: [row[name] for row in part] for name in ("en", "fr", "alignment")}
        for s, part in parts.items()
    }
    tokenizers = (
        train_tokenizer([row["en"] for row in rows], "word"),
        train_tokenizer([row["fr"] for row in rows], "word"),
    )
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return Corpus(text, pairs, tokenizers)


@pytest.fixture
def unchecked():
    """Without the tests' checker of shapes, which would refuse such a mask before the
    library sees it."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
