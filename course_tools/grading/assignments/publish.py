"""`course publish`: the repository that students get, made anew from this one, and
searched before it is written.

In it are the released exercises with what they ship, the library, and what sets both
up. There are no solutions, no tests, no wrong answers and nothing that is not in git
here, so no gradebook and no student's work either. Files are chosen by what belongs in,
never by what belongs out.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from course_tools.grading.assignments.lint import MARKERS, leaks, regions
from course_tools.grading.assignments.source import AssignmentError, read_source

#: Beside the exercises.
FILES = (
    "Makefile",
    "pyproject.toml",
    "constraints.txt",
    "LICENSE",
    "LICENSE-TEXT",
    "CITATION.cff",
)
#: The library, and what it reads.
LIBRARY = (
    "course_lib/",
    "course_lab/",
    "course_tools/",
    "book/checkpoints/",
    "book/results/",
)
#: What an earlier call wrote; nothing else in the folder is ever removed.
LISTING = ".published.json"
#: A shorter line of a hidden test may stand in the library by chance.
TELLING = 32

README = """# {title}

Your assignments, and the library that they use. You need Python 3.11 or newer and 5 GiB of disk.

    make student

installs what you need into `.venv` and opens your copies of the notebooks, in the folder `assignments`. Without `make`:

    python3 -m venv .venv
    .venv/bin/pip install -c constraints.txt -e '.[student]'
    .venv/bin/course start

On Windows write `.venv\\Scripts\\` in place of `.venv/bin/`. Before you hand a notebook in, ask what is wrong with it:

    .venv/bin/course check assignments/NAME/NAME.ipynb

| assignment | notebook |
| --- | --- |
{rows}

Code: BSD-3-Clause (LICENSE). Text and figures: CC BY-SA 4.0 (LICENSE-TEXT).
"""  # noqa: E501
IGNORED = (
    ".venv/\n/assignments/\n__pycache__/\n*.egg-info/\n.ipynb_checkpoints/\n.cache/\n"
)


class CannotPublish(Exception):
    """The repository for students would not be fit to be handed out; the text
    says why."""


def publish(folder: Path, names: list[str], root: Path = Path()) -> list[str]:
    """Write the students' repository."""
    tracked = _tracked(root)
    known = sorted(
        {Path(file).parts[1] for file in tracked if file.startswith("exercises/")}
    )
    if missing := sorted(set(names) - set(known)):
        raise CannotPublish(
            f"Not in exercises/ or not in git: {', '.join(missing)}. There are:"
            f" {', '.join(known)}."
        )
    chosen = names or known
    target = folder.resolve()
    if target.is_relative_to(root.resolve()):
        raise CannotPublish(
            f"{folder} lies in the repository with the solutions. Name a folder"
            " outside."
        )
    earlier = _earlier(target)
    with tempfile.TemporaryDirectory() as scratch:
        stage = Path(scratch)
        for file in tracked:
            if file in FILES or file.startswith(
                (*LIBRARY, *(f"exercises/{name}/" for name in chosen))
            ):
                (stage / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / file, stage / file)
        rows = "\n".join(
            f"| {name} | `exercises/{name}/{name}.ipynb` |" for name in chosen
        )
        (stage / "README.md").write_text(
            README.format(title="From Attention to BERT", rows=rows), encoding="utf-8"
        )
        (stage / ".gitignore").write_text(IGNORED, encoding="utf-8")
        if faults := _faults(stage, chosen, root):
            raise CannotPublish(
                "\n".join(
                    ["Nothing was written:", *(f"  - {fault}" for fault in faults)]
                )
            )
        written = sorted(
            path.relative_to(stage).as_posix()
            for path in stage.rglob("*")
            if path.is_file()
        )
        target.mkdir(parents=True, exist_ok=True)
        for file in set(earlier) - set(written):
            (target / file).unlink(missing_ok=True)
        shutil.copytree(stage, target, dirs_exist_ok=True)
        (target / LISTING).write_text(
            json.dumps(written, indent=1) + "\n", encoding="utf-8"
        )
    return written


def _tracked(root: Path) -> list[str]:
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotPublish(
            "git does not say which files belong to the course; run it in its"
            " repository."
        ) from error
    return [
        file
        for file in listing.split("\0")
        if file and (root / file).is_file() and not (root / file).is_symlink()
    ]


def _earlier(target: Path) -> list[str]:
    """What an earlier call wrote there, as far as its listing names places inside the
    folder."""
    if not target.exists() or not any(path.name != ".git" for path in target.iterdir()):
        return []
    try:
        listed = json.loads((target / LISTING).read_text(encoding="utf-8"))
        files = [
            file for file in listed if (target / file).resolve().is_relative_to(target)
        ]
    except (OSError, ValueError, TypeError) as error:
        raise CannotPublish(
            f"{target} holds something that was not published from here. Name another"
            " folder."
        ) from error
    return files


def _faults(stage: Path, names: list[str], root: Path) -> list[str]:
    """Search what would be handed out: exercises for every secret line, all else for
    whole lines of hidden tests."""
    faults: list[str] = []
    cells: list[str] = []
    for source in sorted((root / "solutions").glob("*/*.py")):
        if source.stem != source.parent.name:
            continue
        try:
            notebook = read_source(source)
        except AssignmentError as error:
            faults.append(str(error))
            continue
        cells += [cell.source for cell in notebook.cells]
        if source.stem in names:
            faults += leaks(notebook, stage / "exercises" / source.stem, source.stem)
    for name in names:
        if not (root / "solutions" / name / f"{name}.py").is_file():
            faults.append(
                f"{name} has no source in solutions/, so nobody can say what it must"
                " not hold"
            )
    # of all at once: what one assignment shows is no secret of another
    hidden = hidden_lines(cells)
    for path in sorted(path for path in stage.rglob("*") if path.is_file()):
        place = path.relative_to(stage).as_posix()
        faults += [
            f"{place} holds {line!r}, from a hidden test"
            for line in sorted(hidden & _lines(path))
        ]
    return faults


def hidden_lines(cells: list[str]) -> set[str]:
    """List the lines of hidden tests that are long enough to stand nowhere else by
    chance."""
    begin, end = MARKERS[1]
    secret: set[str] = set()
    public: set[str] = set()
    for cell in cells:
        inside, outside = regions(cell, begin, end)
        secret |= {line.strip() for line in inside}
        public |= {line.strip() for line in outside}
    return {line for line in secret - public if len(line) >= TELLING}


def _lines(path: Path) -> set[str]:
    """The lines of a text, and of the cells of a notebook; of weights there are
    none."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return set()
    found = {line.strip() for line in text.splitlines()}
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            found |= {line.strip() for line in "".join(cell["source"]).splitlines()}
    return found
