"""What must be true of an assignment before it is released, and of a release before it
is handed out.

Each function returns the faults it finds as lines in words, so that ``course release``
can show all of them at once. nbgrader 0.9.6 lets most of them through, and the students
meet them: a graded cell that tests nothing gives full marks to everybody, and so does
partial credit that is no plain Python float.
"""

import ast
import json
import re
from collections import Counter
from pathlib import Path

from nbformat import NotebookNode

from course_tools.grading.assignments.source import ships, with_library_sources

TYPED_POINTS = re.compile(r"\b\d+(?:\.\d+)?\s+points?\b")
STATED_POINTS = re.compile(r"\b(\d+(?:\.\d+)?) points?\b")
REQUIRED = {"grade", "grade_id", "locked", "schema_version", "solution", "task"}
# they look at how an answer is written, not at what it does
PASSED_BY_BLANKS = {"check_withheld", "check_given"}
MARKERS = (
    ("BEGIN SOLUTION", "END SOLUTION"),
    ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS"),
)


def regions(source: str, begin: str, end: str) -> tuple[list[str], list[str]]:
    """Split a cell into the lines between a pair of markers and the lines outside."""
    inside: list[str] = []
    outside: list[str] = []
    within = False
    for line in source.splitlines():
        if begin in line or end in line:
            within = begin in line
        else:
            (inside if within else outside).append(line)
    return inside, outside


def source_faults(raw: NotebookNode) -> list[str]:
    """Find what is wrong with a source, before placeholders are filled in."""
    faults = []
    if not raw.metadata.get("course", {}).get("withholds"):
        faults.append(
            "the notebook's header names nothing that it withholds: write course:"
            " withholds: [...]"
        )
    faults += [
        f"{name!r} cannot be shipped: beside a notebook lie weights, as .safetensors,"
        " which carry no code"
        for name in ships(raw)
        if Path(name).name != name or Path(name).suffix != ".safetensors"
    ]
    ids = Counter(
        c.metadata.nbgrader.get("grade_id", "")
        for c in raw.cells
        if "nbgrader" in c.metadata
    )
    faults += [
        f"grade_id {name!r} is used by {count} cells; each needs its own"
        for name, count in ids.items()
        if count > 1
    ]
    locked = {
        node.name: node
        for cell in raw.cells
        if cell.metadata.get("nbgrader", {}).get("locked") and cell.cell_type == "code"
        for node in ast.walk(_parse(with_library_sources(cell.source)))
        if isinstance(node, ast.FunctionDef)
    }
    for cell in raw.cells:
        if cell.cell_type == "markdown":
            faults += [
                f"{match!r} is typed in the text {cell.source.splitlines()[0]!r}:"
                " points come from the cells, write {points:part}"
                for match in TYPED_POINTS.findall(cell.source)
            ]
        faults += _cell_faults(cell, locked)
    return faults


def _cell_faults(cell: NotebookNode, locked: dict[str, ast.FunctionDef]) -> list[str]:
    faults = []
    nbgrader = cell.metadata.get("nbgrader")
    for begin, end in MARKERS:
        if cell.source.count(begin) != cell.source.count(end):
            faults.append(
                f"{_name(cell)} has {cell.source.count(begin)} {begin} and"
                f" {cell.source.count(end)} {end}"
            )
    if nbgrader is None:
        for begin, _ in MARKERS:
            if begin in cell.source:
                faults.append(
                    f"{_name(cell)} holds {begin} but has no nbgrader metadata, so it"
                    " would be handed out as it is"
                )
        return faults
    name, grade, solution = _name(cell), nbgrader.get("grade"), nbgrader.get("solution")
    if missing := REQUIRED - set(nbgrader):
        faults.append(
            f"{name} lacks {', '.join(sorted(missing))} in its nbgrader metadata"
        )
    if grade and not nbgrader.get("points", 0) > 0:
        faults.append(f"{name} is graded but has no points")
    if solution and "BEGIN SOLUTION" not in cell.source:
        faults.append(
            f"{name} has no ### BEGIN SOLUTION: nbgrader would take out the whole cell,"
            " skeleton and all"
        )
    if not solution and "BEGIN SOLUTION" in cell.source:
        faults.append(f"{name} holds a solution but is no solution cell")
    if not grade and "BEGIN HIDDEN TESTS" in cell.source:
        faults.append(f"{name} holds hidden tests but is not graded")
    if not solution and not nbgrader.get("locked"):
        faults.append(f"{name} is not locked, so a student's changes to it would stay")
    if grade and not solution and cell.cell_type == "code":
        if not _has_tests(_parse(cell.source), locked):
            faults.append(
                f"{name} tests nothing: without an assert, a raise or a check it gives"
                " full marks to everybody"
            )
        versions = {cell.source, "\n".join(regions(cell.source, *MARKERS[1])[1])}
        faults += sorted(
            {
                fault
                for source in versions
                for fault in partial_credit_faults(source, name, locked)
            }
        )
    return faults


def _has_tests(tree: ast.Module, locked: dict[str, ast.FunctionDef]) -> bool:
    """Whether a cell can fail: by an assert, a raise, partial credit, or a call of a
    notebook's ``check_...``."""
    if _is_float(tree.body[-1] if tree.body else None):
        return True
    return any(
        isinstance(node, ast.Assert | ast.Raise)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id.startswith("check_")
            and node.func.id in locked.keys() - PASSED_BY_BLANKS
            and any(
                isinstance(part, ast.Assert | ast.Raise)
                for part in ast.walk(locked[node.func.id])
            )
        )
        for node in ast.walk(tree)
    )


def _is_float(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id == "float"
    )


def partial_credit_faults(
    source: str, name: str, functions: dict[str, ast.FunctionDef] | None = None
) -> list[str]:
    """Find a test cell whose last value nbgrader would take for partial credit, but
    that is no plain Python float."""
    body = _parse(source).body
    if not body or not isinstance(body[-1], ast.Expr) or _is_float(body[-1]):
        return []
    value = body[-1].value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        called = (functions or {}).get(value.func.id)
        if value.func.id == "print" or (called and _returns_nothing(called)):
            return []
        if (
            called
            and isinstance(called.returns, ast.Name)
            and called.returns.id == "float"
        ):
            return []
    return [
        f"{name} ends in the value `{ast.unparse(value)}`: nbgrader takes a cell's last"
        " value for partial credit, and all that is not printed as a plain number"
        " gives full marks. End in float(...), or in no value."
    ]


def _returns_nothing(function: ast.FunctionDef) -> bool:
    return not any(
        isinstance(node, ast.Return) and node.value is not None
        for node in ast.walk(function)
    )


def points_faults(released: NotebookNode) -> list[str]:
    """Compare the points that a notebook's text states with the ones in its cells'
    metadata."""
    faults = []
    sections: list[tuple[str, float, float]] = []  # heading, stated, found
    total = 0.0
    stated_elsewhere: list[tuple[str, float]] = []
    for cell in released.cells:
        points = (
            cell.metadata.get("nbgrader", {}).get("points", 0)
            if cell.metadata.get("nbgrader", {}).get("grade")
            else 0
        )
        total += points
        if sections:
            sections[-1] = (*sections[-1][:2], sections[-1][2] + points)
        elif points:
            faults.append(
                f"{_name(cell)} is graded but stands before the first heading that"
                " states points"
            )
        if cell.cell_type != "markdown":
            continue
        for line in cell.source.splitlines():
            for number in STATED_POINTS.findall(line):
                if line.startswith("#"):
                    sections.append((line, float(number), 0.0))
                else:
                    stated_elsewhere.append(
                        (sections[-1][0] if sections else "", float(number))
                    )
    for heading, stated, found in sections:
        if stated != found:
            faults.append(
                f"{heading!r} states {stated:g} points, its cells have {found:g}"
            )
    allowed = {heading: found for heading, _, found in sections}
    for heading, number in stated_elsewhere:
        if number not in (allowed.get(heading), total):
            faults.append(
                f"the text under {heading!r} states {number:g} points; its cells have"
                f" {allowed.get(heading, total):g}"
            )
    return faults


def secret_lines(source: NotebookNode) -> list[str]:
    """List the lines that a release must not hold: those of solutions and hidden tests
    that stand nowhere else."""
    secret: set[str] = set()
    public: set[str] = set()
    for cell in source.cells:
        kept = cell.source.splitlines()
        for begin, end in MARKERS:
            inside, _ = regions(cell.source, begin, end)
            secret |= {line.strip() for line in inside}
            kept = regions("\n".join(kept), begin, end)[1]
        public |= {line.strip() for line in kept}
    return sorted(
        line
        for line in secret - public
        if len(line) >= 12 and not line.endswith(("(", "[", "{"))
    )


def leaks(source: NotebookNode, released: Path, name: str) -> list[str]:
    """Search a released folder, all files in it, for solutions, hidden tests, and files
    that do not belong there."""
    allowed = {f"{name}.ipynb", *ships(source)}
    faults = [
        f"{file} is to be shipped, but is not there"
        for file in sorted(allowed)
        if not (released / file).is_file()
    ]
    needles = [*secret_lines(source), *(marker for pair in MARKERS for marker in pair)]
    for path in sorted(released.rglob("*")):
        if not path.is_file():
            continue
        relative = path.relative_to(released).as_posix()
        if relative not in allowed:
            faults.append(f"{relative} lies beside the notebook; students would get it")
        text = path.read_bytes().decode("utf-8", errors="replace")
        faults += [
            f"{relative} holds {needle!r}, from a solution or a hidden test"
            for needle in needles
            if any(form in text for form in _written_forms(needle))
        ]
    return faults


def _written_forms(line: str) -> set[str]:
    """The line as it stands in a text, in JSON, and in JSON that is a string of JSON
    (the header of safetensors)."""
    forms = {line}
    for ascii_only in (True, False):
        once = json.dumps(line, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    return forms


def _name(cell: NotebookNode) -> str:
    grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
    return (
        grade_id or f"the cell {cell.source.splitlines()[0] if cell.source else ''!r}"
    )


def _parse(source: str) -> ast.Module:
    lines = [
        "pass" if line.lstrip().startswith(("%", "!")) else line
        for line in source.splitlines()
    ]
    return ast.parse("\n".join(lines))
