"""The red team's attacks on stock nbgrader, beside what `course grade` gives them:
marks, leaks and leftovers.

`course grade` grades all attackers and two honest students as one class. Stock nbgrader
runs hostile code beside the gradebook, so it grades each attack in a course folder of
its own, inside a cage (`stock_cage.py`); there one honest student is graded before the
attacker and one after. It does so with its own settings, and with those of
`nbgrader_config.py`. What hidden tests say is known by words that stand in them alone,
and looked for in the pages that students get. `--record` saves after each row, and goes
on where a record of the same settings ends.

    python benchmarks/red_team.py [--attacks all] [--settings-of stock course]
    [--seconds 120] [--record]
"""

import contextlib
import functools
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from side_by_side import read_settings, setting, show
from stock_cage import SHOWN, Cage
from tqdm import tqdm

from course_lab import records

ROOT = Path(__file__).parents[1]
NAME, OURS = "benchmark-red_team", "course grade"
#: What commands, and the class itself, write into a course folder.
KNOWN = (
    *("submitted", "autograded", "feedback", "solutions", "exercises", "another.ipynb"),
    *("gradebook.db", "grading-log.jsonl", "grading-rounds", "nbgrader_config.py"),
)
#: What is no choice of how to mark: where folders lie, and what is found in none of
#: them.
PLACES = re.compile(r"^c\.CourseDirectory\.\w+_(directory|id) = .*$", re.MULTILINE)


@dataclass(frozen=True)
class Settings:
    """Which attacks meet which grader."""

    attacks: tuple[str, ...] = setting(
        ("all",), "names of files in tests/tools/grading/attacks"
    )
    settings_of: tuple[str, ...] = setting(
        ("stock", "course"), "nbgrader's settings: its own, and nbgrader_config.py"
    )
    seconds: float = setting(
        120.0, "by the clock, that nbgrader has for an attacker and an honest student"
    )
    threads: int = setting(1, "of torch")


def released(root: Path, settings_of: str) -> Any:
    """Make a course for stock nbgrader in which one honest student is graded and
    another has handed in."""
    from attack_class import HONEST, answered, source_notebook
    from classroom import Classroom

    classroom = Classroom.create(root)
    if settings_of == "stock":
        places = "\n".join(
            match[0]
            for match in PLACES.finditer((ROOT / "nbgrader_config.py").read_text())
        )
        (root / "nbgrader_config.py").write_text(f"c = get_config()\n{places}\n")
    classroom.add_source("mini", source_notebook())
    classroom.run("nbgrader generate_assignment mini")
    first, later = HONEST
    classroom.submit("mini", first, answered(classroom))
    classroom.run("nbgrader autograde mini --create")
    classroom.submit("mini", later, answered(classroom))
    return classroom


def judged(
    marks: Mapping[str, float | None], due: Mapping[str, float | None]
) -> dict[str, Any]:
    """Say how many points were given, and for which questions they are too many, or too
    few."""
    given = {name: marks.get(name) or 0.0 for name in due}
    return {
        "points": sum(given.values()),
        "too_many": [name for name, mark in due.items() if given[name] > (mark or 0.0)],
        "too_few": [name for name, mark in due.items() if given[name] < (mark or 0.0)],
    }


class ByStock:
    """Stock nbgrader, which grades each attack in a course folder of its own, in a
    cage."""

    def __init__(
        self,
        settings: Settings,
        settings_of: str,
        folder: Path,
        until: contextlib.ExitStack,
    ) -> None:
        self._settings, self._settings_of, self._folder, self._until = (
            settings,
            settings_of,
            folder,
            until,
        )

    @functools.cached_property
    def _cage(self) -> Cage:
        from attack_class import HONEST, SECRETS

        course = released(
            self._folder / self._settings_of / "course", self._settings_of
        ).root
        return self._until.enter_context(
            Cage(course, SECRETS, HONEST[1], self._settings.seconds)
        )

    def row(self, path: Path) -> dict[str, Any]:
        """Say what it gives an attack, and what is wrong besides."""
        from attack_class import HONEST, POINTS, expected

        came = self._cage.grade(path)
        return {
            **judged(came.marks.get(path.stem, {}), expected(path)),
            "state": came.state,
            "leaks": path.stem in came.leaks,
            "others": [
                who for who in HONEST if came.marks.get(who) != POINTS | {"why": 0.0}
            ],
            "processes": came.processes,
            "files": came.files,
            "seconds": round(came.seconds, 1),
        }


class ByCourseGrade:
    """`course grade`, which grades them all as one class; what is left and who else is
    hurt is the whole class's."""

    def __init__(self, attacks: list[Path], folder: Path) -> None:
        self._attacks, self._root = attacks, folder / "together" / "course"

    @functools.cached_property
    def _term(self) -> Any:
        from attack_class import LIMITS, graded_term

        # A machine that does much besides takes seconds for what is quick.
        return graded_term(
            self._root,
            self._attacks,
            replace(LIMITS, cell_seconds=15.0, total_seconds=240.0),
        )

    def row(self, path: Path) -> dict[str, Any]:
        """Say what it gives an attack, and what is wrong besides."""
        from attack_class import HONEST, POINTS, SECRETS, expected

        given = self._term.classroom.scores_of_all("mini")
        kept = [
            page
            for name in ("feedback", "autograded")
            for page in (self._root / name / path.stem).rglob("*.*")
        ]
        return {
            **judged(given.get(path.stem, {}), expected(path)),
            "state": "done",
            "leaks": any(
                word in page.read_text()
                for page in kept
                if page.is_file()
                for word in SECRETS
            ),
            "others": [
                who for who in HONEST if given.get(who) != POINTS | {"why": 0.0}
            ],
            "processes": len(self._term.processes_left),
            "files": sorted(
                place.name for place in self._root.iterdir() if place.name not in KNOWN
            ),
        }


def runs(
    settings: Settings, folder: Path, until: contextlib.ExitStack
) -> Iterator[records.Run]:
    """Yield which attack meets which grader, and what lets it; cages are open until the
    end of a context."""
    sys.path.insert(0, str(SHOWN[1]))
    from attack_class import ALL_ATTACKS, expected, load

    attacks = [
        path
        for path in ALL_ATTACKS
        if settings.attacks == ("all",) or path.stem in settings.attacks
    ]
    if settings.attacks != ("all",) and len(attacks) != len(set(settings.attacks)):
        raise ValueError(
            f"unknown among {settings.attacks}; known are"
            f" {', '.join(path.stem for path in ALL_ATTACKS)}"
        )
    graders: dict[str, ByStock | ByCourseGrade] = {OURS: ByCourseGrade(attacks, folder)}
    graders |= {
        f"nbgrader, {words}": ByStock(settings, words, folder, until)
        for words in settings.settings_of
    }
    for name, grader in graders.items():
        for path in attacks:
            tries = (
                (load(path).__doc__ or "")
                .split(" Expected:")[0]
                .split("\n\n")[0]
                .strip()
            )
            due = judged(expected(path), expected(path))["points"]
            key = {"grader": name, "attack": path.stem, "tries": tries, "due": due}
            yield key, functools.partial(grader.row, path)


def told(found: dict[str, Any]) -> str:
    """Write one cell of the table: points, and all that is wrong."""
    words = [
        f"{found['points']:g}{'+' if found['too_many'] else ''}{'-' if found['too_few'] else ''}"  # noqa: E501
    ]
    words += [found["state"]] if found["state"] != "done" else []
    words += ["leaks"] if found["leaks"] else []
    words += [f"hurts {', '.join(found['others'])}"] if found["others"] else []
    words += [f"{found['processes']} processes"] if found["processes"] else []
    words += [f"{len(found['files'])} files"] if found["files"] else []
    return "; ".join(words)


def table(rows: Sequence[dict[str, Any]]) -> None:
    """Print what each grader gave each attack, one beside the other."""
    found = {(row["attack"], row["grader"]): row for row in rows}
    graders = dict.fromkeys(row["grader"] for row in rows)
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "attack": lambda row: str(row["attack"]),
        "due": lambda row: f"{row['due']:g}",
    }
    columns |= {
        name: lambda row, name=name: told(found[row["attack"], name])
        for name in graders
    }  # type: ignore[misc]
    ours = [row for row in rows if row["grader"] == OURS]
    show(f"{len(ours)} attacks; + is too many points, - too few", ours, columns)


def main() -> None:
    settings, record = read_settings(Settings, None, __doc__)
    torch.set_num_threads(settings.threads)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as until:
        tried = tqdm(
            list(runs(settings, Path(folder), until)), disable=None, leave=False
        )
        if record:
            command = ["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
            records.run_missing(NAME, command, settings, tried)
            rows = records.load(NAME).results
        else:
            rows = [{**key, **run()} for key, run in tried]
    table(rows)


if __name__ == "__main__":
    main()
