"""A page's notebook runs where it is opened: an installed wheel has its records and
checkpoints."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jupytext
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from places import BOOK, ROOT
from whole import some, whole_only

REPOSITORY = "https://github.com/somebody/a-fork"
SHIPPED = (
    {name: name for name in ("course_lib", "course_lab", "course_tools")}
    | {"exercises": "course_lib/exercises"}
    | {f"book/{name}": f"course_lib/{name}" for name in ("checkpoints", "results")}
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The library's wheel, built from a copy, without a network."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for folder in SHIPPED:
        shutil.copytree(
            ROOT / folder,
            source / folder,
            ignore=shutil.ignore_patterns("__pycache__", ".*"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-build-isolation", "--wheel-dir", built, source)
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's content, and no second torch."""
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-compile", "--target", folder, wheel)
    return folder


def pip(*arguments) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        arguments[0],
        "--quiet",
        "--no-deps",
        "--no-index",
        *arguments[1:],
    ]
    subprocess.run(list(map(str, command)), check=True, cwd=ROOT.anchor)


def test_the_wheel_has_what_the_checkout_has(wheel):
    expected = {
        f"{inside}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, inside in SHIPPED.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
        and not any(
            part == "__pycache__" or part.startswith(".") for part in path.parts[-3:]
        )
    }
    with zipfile.ZipFile(wheel) as archive:
        assert {
            name for name in archive.namelist() if ".dist-info/" not in name
        } == expected


def code_of_pages() -> dict[str, list[str]]:
    """Page -> code of its notebook's cells, as they are in the download."""
    from student_notebook import GLUE_IMPORT, set_up_cell

    set_up = TransformerManager().transform_cell(set_up_cell(REPOSITORY))
    pages = {
        path.stem: jupytext.read(path, fmt="md:myst")
        for path in sorted(BOOK.glob("*.md"))
    }
    return {
        name: [
            set_up,
            *(
                GLUE_IMPORT.sub("", cell.source)
                for cell in page.cells
                if cell.cell_type == "code"
            ),
        ]
        for name, page in pages.items()
        if "kernelspec" in page.metadata
    }


@whole_only
def test_cells_that_load_run_in_an_empty_folder(installed, tmp_path, capsys):
    pages = dict(some(*code_of_pages().items()))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("loading_cells.py")],
        input=json.dumps(pages),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed), "MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    with capsys.disabled():
        print(
            f"\n{len(pages)} pages; cells that ran:"
            f" {sum(len(page['ran']) for page in told['pages'].values())}"
        )
        for name, page in told["pages"].items():
            print(
                f"{name}: {page['ran']}",
                *page["left_out"],
                sep="\n  trains, left out: ",
            )
    loading = {
        name
        for name, cells in pages.items()
        if re.search(r"\b(records|shipped)\.\w", "\n".join(cells))
    }
    assert {name for name in loading if not told["pages"][name]["ran"]} == set()
    read = {
        folder
        for path in told["opened"]
        for folder in SHIPPED.values()
        if path.startswith(f"{installed}/{folder}/")
    }
    assert read >= {"course_lib/checkpoints", "course_lib/results"}
    assert [
        path
        for path in told["opened"]
        if path.startswith(tuple(f"{ROOT}/{folder}/" for folder in SHIPPED))
    ] == []


def test_colab_and_binder_install_the_library_from_the_repository(tmp_path):
    from student_notebook import describe_binder, set_up_cell

    describe_binder(tmp_path / "binder", ROOT, REPOSITORY)
    assert f'%pip install --quiet "course_lib @ git+{REPOSITORY}"' in set_up_cell(
        REPOSITORY
    )
    assert (
        f"course_lib[student] @ git+{REPOSITORY}"
        in (tmp_path / "binder" / "requirements.txt").read_text()
    )
