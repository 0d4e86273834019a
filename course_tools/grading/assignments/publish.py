"""`course publish`: the repository that students get, made and searched.

In it are the released exercises with what they ship, the library, and what sets both
up. There are no solutions, no tests, no wrong answers and nothing that is not in git
here, so no gradebook and no student's work either. Files are chosen by what belongs in,
never by what belongs out.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from course_tools.grading.assignments.lint import MARKERS, leaks, regions
from course_tools.grading.assignments.release import assignments
from course_tools.grading.assignments.source import AssignmentError, read_source

#: Beside the exercises.
FILES = {"Makefile", "pyproject.toml", "constraints.txt", "LICENSE", "LICENSE-TEXT"}
FILES |= {"CITATION.cff"}
#: The library, and what it reads.
LIBRARY = ["course_lib/", "course_lab/", "course_tools/"]
LIBRARY += ["book/checkpoints/", "book/results/"]
#: What an earlier call wrote; nothing else in the folder is ever removed.
LISTING = ".published.json"
#: A shorter line of a hidden test may stand in the library by chance.
TELLING = 32

README = """# From Attention to BERT

Your assignments, and the library that they use. You need Python 3.11 or newer and 5 GiB
of disk.

    make student

installs what you need into `.venv` and opens your copies of the notebooks, in the
folder `assignments`. Without `make`:

    python3 -m venv .venv
    .venv/bin/pip install -c constraints.txt -e '.[student]'
    .venv/bin/course start

On Linux without an NVIDIA GPU, torch's build for CPUs saves gigabytes. Before either of
these, set `PIP_EXTRA_INDEX_URL` to the address ending in `/whl/cpu` that
https://pytorch.org/get-started/locally shows for Linux, Pip and CPU.

On Windows write `.venv\\Scripts\\` in place of `.venv/bin/`. Before you hand a notebook
in, ask what is wrong with it:

    .venv/bin/course check NAME.ipynb

| assignment | notebook |
| --- | --- |
{rows}

Code: BSD-3-Clause (LICENSE). Text and figures: CC BY-SA 4.0 (LICENSE-TEXT).
"""
IGNORED = ".venv/ /assignments/ __pycache__/ *.egg-info/ .ipynb_checkpoints/ .cache/"


class CannotPublish(Exception):
    """The students' repository is not fit to be handed out; the text says why."""


def publish(folder: Path, names: list[str], root: Path = Path()) -> list[str]:
    """Write the students' repository."""
    tracked = _tracked(root)
    exercises = [file for file in tracked if file.startswith("exercises/")]
    known = sorted({Path(file).parts[1] for file in exercises})
    if missing := ", ".join(sorted(set(names) - set(known))):
        there = f"There are: {', '.join(known)}."
        raise CannotPublish(f"Not in exercises/ or not in git: {missing}. {there}")
    chosen = names or known
    target = folder.resolve()
    if target.is_relative_to(root.resolve()):
        inside = f"{folder} lies in the repository with the solutions."
        raise CannotPublish(f"{inside} Name a folder outside.")
    earlier = _earlier(target)
    with tempfile.TemporaryDirectory() as scratch:
        stage = Path(scratch)
        folders = (*LIBRARY, *(f"exercises/{name}/" for name in chosen))
        for file in tracked:
            if file in FILES or file.startswith(folders):
                (stage / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / file, stage / file)
        rows = [f"| {name} | `exercises/{name}/{name}.ipynb` |" for name in chosen]
        readme = README.format(rows="\n".join(rows))
        (stage / "README.md").write_text(readme, encoding="utf-8")
        (stage / ".gitignore").write_text(IGNORED.replace(" ", "\n") + "\n")
        if faults := _faults(stage, chosen, root):
            lines = ["Nothing was written:", *(f"  - {fault}" for fault in faults)]
            raise CannotPublish("\n".join(lines))
        files = [path for path in stage.rglob("*") if path.is_file()]
        written = sorted(path.relative_to(stage).as_posix() for path in files)
        target.mkdir(parents=True, exist_ok=True)
        for file in set(earlier) - set(written):
            (target / file).unlink(missing_ok=True)
        shutil.copytree(stage, target, dirs_exist_ok=True)
        listing = json.dumps(written, indent=1) + "\n"
        (target / LISTING).write_text(listing, encoding="utf-8")
    return written


def _tracked(root: Path) -> list[str]:
    try:
        listing = subprocess.check_output(
            ["git", "ls-files", "-z"], cwd=root, stderr=subprocess.DEVNULL, text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotPublish(
            "git does not say which files belong to the course; run it in its"
            " repository."
        ) from error
    files = [file for file in listing.split("\0") if (root / file).is_file()]
    return [file for file in files if not (root / file).is_symlink()]


def _earlier(target: Path) -> list[str]:
    """What an earlier call wrote, as far as its listing stays in the folder."""
    if not target.exists() or not any(path.name != ".git" for path in target.iterdir()):
        return []
    try:
        listed = json.loads((target / LISTING).read_text(encoding="utf-8"))
        return [f for f in listed if (target / f).resolve().is_relative_to(target)]
    except (OSError, ValueError, TypeError) as error:
        raise CannotPublish(
            f"{target} holds something that was not published from here. Name another"
            " folder."
        ) from error


def _faults(stage: Path, names: list[str], root: Path) -> list[str]:
    """Search exercises for secret lines, all else for lines of hidden tests."""
    faults: list[str] = []
    cells: list[str] = []
    sources = assignments(root)
    for name in sources:
        try:
            notebook = read_source(root / "solutions" / name / f"{name}.py")
        except AssignmentError as error:
            faults.append(str(error))
            continue
        cells += [cell.source for cell in notebook.cells]
        if name in names:
            faults += leaks(notebook, stage / "exercises" / name, name)
    faults += [
        f"{name} has no source in solutions/, so nobody can say what it must not hold"
        for name in names
        if name not in sources
    ]
    # of all at once: what one assignment shows is no secret of another
    hidden = hidden_lines(cells)
    for path in sorted(path for path in stage.rglob("*") if path.is_file()):
        place, found = path.relative_to(stage).as_posix(), sorted(hidden & _lines(path))
        faults += [f"{place} holds {line!r}, from a hidden test" for line in found]
    return faults


def hidden_lines(cells: list[str]) -> set[str]:
    """List lines of hidden tests too long to stand elsewhere by chance."""
    parts = [regions(cell, *MARKERS[1]) for cell in cells]
    secret, public = (
        {line.strip() for part in parts for line in part[side]} for side in (0, 1)
    )
    return {line for line in secret - public if len(line) >= TELLING}


def _lines(path: Path) -> set[str]:
    """The lines of a text, and of a notebook's cells; of weights there are none."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return set()
    found = {line.strip() for line in text.splitlines()}
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            found |= {line.strip() for line in "".join(cell["source"]).splitlines()}
    return found
