"""A semester: a class hands in every assignment, and every mark is compared with what
the answers are known to earn (``semester_class.py``).

For each assignment: release, a download of the first attempts, collect, grade; a second
download of those who hand in again; marks by hand, with comments and extra credit; late
penalties; the class report; tables for platforms, read again and compared; replay. Of
one assignment a hidden test is wrong until it is mended and its question judged again.
In another one some students copy, in clusters, and disguise it.

    python benchmarks/semester.py [--students 300] [--assignments all] [--record]

With ``COURSE_TERM=FOLDER`` before it, a term that was left goes on after its last whole
assignment: the same words again, at the same commit.
"""

import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.utils import is_grade
from semester_class import (
    DUE,
    PENALTY,
    PER_DAY,
    ROOT,
    Marks,
    Settings,
    Work,
    download,
    drawn,
    everybody,
    model,
)
from side_by_side import read_settings, save, show

from course_lib.files import write_whole
from course_tools.grading.assignments.release import CONFIG, assignments
from course_tools.grading.assignments.source import read_source
from course_tools.grading.reports.copies import find_copies

NAME = "benchmark-semester"
FORMS = ("canvas", "moodle", "blackboard", "csv")
END = "### END HIDDEN TESTS"
WRONG_TEST = f'assert False, "This hidden test is wrong."\n{END}'


class Term:
    """A course folder, and what its commands took and said."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root, self.log = root, list[dict[str, Any]]()
        if (root / CONFIG).is_file():
            return
        text = (ROOT / CONFIG).read_text(encoding="utf-8")
        text = re.sub(r"(percent_per_day = )0\.0", rf"\g<1>{PER_DAY}", text)
        root.mkdir()
        (root / CONFIG).write_text(text, encoding="utf-8")
        shutil.copytree(
            ROOT / "solutions",
            root / "solutions",
            ignore=shutil.ignore_patterns("*.ipynb"),
        )
        rows = [f"{who},A,{who.title()}" for who in everybody(settings)]
        text = "\n".join(["id,first_name,last_name", *rows, ""])
        (root / "students.csv").write_text(text, encoding="utf-8")
        (root / "course-secret.txt").write_text(f"{settings.seed:032x}\n")
        self.run("course init")

    def run(self, command: str) -> None:
        """Run a command as an instructor types it, and log what it said."""
        program, *words = command.split()
        module = {"nbgrader": "nbgrader", "course": "course_tools.cli"}[program]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        line = {
            "command": command,
            "says": (done.stdout.strip().splitlines() or [""])[-1],
            "for_a_person": done.stderr.splitlines() if done.returncode else [],
            "seconds": round(time.perf_counter() - began, 2),
        }
        if done.returncode > 1:
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
        self.log.append(line)
        print(*line.values(), flush=True)

    def gradebook(self) -> Gradebook:
        return Gradebook(f"sqlite:///{self.root / 'gradebook.db'}")


def teach(term: Term, name: str, settings: Settings) -> dict[str, Any]:
    """Hold one assignment from its release to the tables for platforms."""
    attempts, copied = drawn(name, settings)
    source, term.log = term.root / "solutions" / name / f"{name}.py", []
    right, wrong = source.read_text(encoding="utf-8"), Marks()
    if name == settings.mended:
        source.write_text(right.replace(END, WRONG_TEST, 1), encoding="utf-8")
        cells = read_source(source).cells
        [question] = [cell["id"] for cell in cells if WRONG_TEST in cell.source]
        wrong = {question: 0.0}
    term.run(f"course release {name}")
    term.run(f"nbgrader db assignment add {name} --duedate={DUE:%Y-%m-%dT%H:%M}")
    place = term.root / "exercises" / name / f"{name}.ipynb"
    grade = f"course grade {name} --workers {settings.workers}"
    last, different = dict[str, Work](), list[list[Any]]()
    for attempt in range(max(map(len, attempts.values()))):
        now = {s: all_[attempt] for s, all_ in attempts.items() if attempt < len(all_)}
        last |= now
        download(term.root / "downloaded.zip", place, name, now)
        term.run(f"course collect {name} downloaded.zip --students students.csv")
        term.run(grade)
        different += compare(term, name, last, wrong, by_hand=False)
    mark_by_hand(term, name, last)
    term.run(grade)  # late penalties follow the marks
    different += compare(term, name, last, wrong, by_hand=True)
    if wrong:
        source.write_text(right, encoding="utf-8")
        term.run(f"course release {name}")
        term.run(f"{grade} --question {question}")
        different += compare(term, name, last, {}, by_hand=True)
    term.run(f"course report {name}")
    for form in FORMS:
        term.run(f"course export {name} --to {form}")
        different += compare_table(term, name, form, last, everybody(settings))
    term.run(f"course replay {name}")
    wanted = [work.wanted({}, by_hand=True) for work in last.values()]
    row: dict[str, Any] = {
        "assignment": name,
        "students": len(last),
        "submissions": sum(map(len, attempts.values())),
        "late": sum(work.days_late > 0 for work in last.values()),
        "marks": sum(len(marks) - 1 for marks in wanted),
        "points": sum(sum(marks.values()) - marks[PENALTY] for marks in wanted),
        "penalties": sum(marks[PENALTY] for marks in wanted),
        "judged_again": [*wrong],
        "exported": dict.fromkeys(FORMS, settings.students),
        "different": different,
        "log": term.log,
    }
    if copied:
        found = find_copies(name, term.root, term.root / "submitted").clusters
        row["clusters"] = [[str(cluster), *cluster.students] for cluster in found]
        row["copied"] = [sorted(members) for members in copied]
    return row


def mark_by_hand(term: Term, name: str, works: Mapping[str, Work]) -> None:
    """Mark the written questions, as formgrader writes it into the gradebook."""
    with term.gradebook() as gradebook:
        for student, work in works.items():
            for question, mark in work.written.items() if work.answered else ():
                grade = gradebook.find_grade(question, name, name, student)
                grade.manual_score, grade.needs_manual_grade = mark, False
                if question == next(iter(work.written)):
                    grade.extra_credit = work.extra
                comment = gradebook.find_comment(question, name, name, student)
                comment.manual_comment = f"{student} has {mark:g}."
        gradebook.db.commit()


def compare(
    term: Term, name: str, works: Mapping[str, Work], wrong: Marks, by_hand: bool
) -> list[list[Any]]:
    """List every mark of the gradebook that is not what the answer earns."""
    found: dict[str, Marks] = {}
    with term.gradebook() as gradebook:
        for submission in gradebook.assignment_submissions(name):
            [each] = submission.notebooks
            marks = {grade.name: grade.score for grade in each.grades}
            penalty = submission.late_submission_penalty or 0.0
            found[submission.student.id] = marks | {PENALTY: penalty}
    wanted = {who: work.wanted(wrong, by_hand) for who, work in works.items()}
    return differences(f"gradebook, {name}", wanted, found)


def compare_table(
    term: Term, name: str, form: str, works: Mapping[str, Work], people: list[str]
) -> list[list[Any]]:
    """List every number of an exported table that is not what answers earn."""
    place = term.root / "exports" / f"{name}-{form}.csv"
    with place.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    [key] = {"SIS Login ID", "Username", "id"} & {*rows[0]}
    [score] = {name, "score", f"{name} [Total Pts: {_most(name)} Score]"} & {*rows[0]}
    wanted, found = dict[str, Marks](), dict[str, Marks]()
    for who in people:
        marks = works[who].wanted({}, by_hand=True) if who in works else Marks()
        penalty = marks.pop(PENALTY, 0.0)
        wanted[who] = {"score": sum(marks.values()) - penalty}
        if form == "csv":  # which has each question, too
            sums = {"raw": sum(marks.values()), "late_penalty": penalty, "to_mark": 0.0}
            wanted[who] |= marks | sums
    for row in rows:
        if row[key]:  # Canvas has a row of points, which is nobody's
            numbers = {of: row[of] for of in wanted.get(row[key], {}) if of != "score"}
            cells = numbers | {"score": row[score]}
            found[row[key]] = {of: float(cell) for of, cell in cells.items()}
    return differences(f"{name}, {form}", wanted, found)


def _most(name: str) -> str:
    graded = filter(is_grade, model(name).cells)
    return f"{sum(cell.metadata.nbgrader.points for cell in graded):g}"


def differences(
    where: str, wanted: Mapping[str, Marks], found: Mapping[str, Marks]
) -> list[list[Any]]:
    """List what is not the same: where, whose, which, and the one and the other."""
    keys = {(who, of) for side in (wanted, found) for who in side for of in side[who]}
    pairs = {
        (who, of): [s.get(who, {}).get(of) for s in (wanted, found)] for who, of in keys
    }
    return [
        [where, *key, *pair]
        for key, pair in sorted(pairs.items())
        if None in pair or not math.isclose(*pair, rel_tol=1e-5, abs_tol=1e-9)
    ]


def measure(settings: Settings, record: bool, place: str = "") -> list[dict[str, Any]]:
    """Hold a term, or go on with it; save what is known after each assignment."""
    names = [*settings.assignments]
    names = assignments(ROOT) if names == ["all"] else names
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, root = Path(place or scratch), Path(scratch) / "course"
        if (told := folder / "term.json").is_file():
            held, rows = json.loads(told.read_text(encoding="utf-8"))
            if held != repr(settings):
                raise ValueError(f"{place} holds another term: {held}")
            shutil.copytree(folder / f"after-{len(rows)}", root)
        term = Term(root, settings)
        for name in names[len(rows) :]:
            rows.append(teach(term, name, settings))
            if place:
                shutil.copytree(root, folder / f"after-{len(rows)}", dirs_exist_ok=True)
                write_whole(told, json.dumps([repr(settings), rows]))
                if len(rows) > 1:
                    shutil.rmtree(folder / f"after-{len(rows) - 1}")
            if record:
                save(NAME, settings, rows)
    return rows


def main() -> None:
    settings, record = read_settings(Settings, None, __doc__)
    rows = measure(settings, record, os.environ.get("COURSE_TERM", ""))
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "assignment": lambda row: str(row["assignment"]),
        "submissions": lambda row: str(row["submissions"]),
        "marks": lambda row: str(row["marks"]),
        "points": lambda row: f"{row['points']:g}",
        "late, points off": lambda row: f"{row['late']}, {row['penalties']:g}",
        "minutes": lambda row: f"{sum(one['seconds'] for one in row['log']) / 60:.1f}",
        "different": lambda row: str(len(row["different"])),
        "clusters right": lambda row: str(clusters_right(row)),
    }
    show(f"{settings.students} students", rows, columns)


def clusters_right(row: dict[str, Any]) -> bool:
    """Say whether those who were named are those who copied, cluster by cluster."""
    named = sorted(sorted(members) for _, *members in row.get("clusters", []))
    return named == sorted(row.get("copied", []))


if __name__ == "__main__":
    main()
