"""What must be true of an assignment before its release, and of a release.

Each function returns the faults it finds as lines in words, so that ``course release``
can show all of them at once. nbgrader 0.9.6 lets most of them through, and the students
meet them: a graded cell that tests nothing gives full marks to everybody, and so does
partial credit that is no plain Python float.
"""

import ast
import itertools
import json
import re
from collections import Counter
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_locked

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
        nothing = "the notebook's header names nothing that it withholds"
        faults.append(f"{nothing}: write course: withholds: [...]")
    faults += [
        f"{name!r} cannot be shipped: beside a notebook lie weights, as .safetensors,"
        " which carry no code"
        for name in ships(raw)
        if Path(name).name != name or Path(name).suffix != ".safetensors"
    ]
    marked = [cell for cell in raw.cells if "nbgrader" in cell.metadata]
    ids = Counter(cell.metadata.nbgrader.get("grade_id", "") for cell in marked)
    faults += [
        f"grade_id {name!r} is used by {count} cells; each needs its own"
        for name, count in ids.items()
        if count > 1
    ]
    locked = {
        node.name: node
        for cell in raw.cells
        if is_locked(cell) and cell.cell_type == "code"
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
    faults, name, nbgrader = [], _name(cell), cell.metadata.get("nbgrader")
    for begin, end in MARKERS:
        begins, ends = cell.source.count(begin), cell.source.count(end)
        if begins != ends:
            faults.append(f"{name} has {begins} {begin} and {ends} {end}")
    if nbgrader is None:
        return faults + [
            f"{name} holds {begin} but has no nbgrader metadata, so it would be handed"
            " out as it is"
            for begin, _ in MARKERS
            if begin in cell.source
        ]
    grade, solution = nbgrader.get("grade"), nbgrader.get("solution")
    if missing := ", ".join(sorted(REQUIRED - set(nbgrader))):
        faults.append(f"{name} lacks {missing} in its nbgrader metadata")
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
            nothing = f"{name} tests nothing: without an assert, a raise or a check"
            faults.append(f"{nothing} it gives full marks to everybody")
        versions = [cell.source, "\n".join(regions(cell.source, *MARKERS[1])[1])]
        found = (partial_credit_faults(source, name, locked) for source in versions)
        faults += sorted(set(itertools.chain(*found)))
    return faults


def _has_tests(tree: ast.Module, locked: dict[str, ast.FunctionDef]) -> bool:
    """Whether a cell can fail: assert, raise, partial credit or ``check_...``."""
    checks = {
        name
        for name in locked.keys() - PASSED_BY_BLANKS
        if name.startswith("check_") and _can_fail(locked[name])
    }
    called = {_called(node) for node in ast.walk(tree)}
    last = tree.body[-1] if tree.body else None
    return _is_float(last) or _can_fail(tree) or bool(called & checks)


def _can_fail(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(tree))


def _called(node: ast.AST) -> str:
    """The plain name that an expression calls, or nothing."""
    name = node.func if isinstance(node, ast.Call) else None
    return name.id if isinstance(name, ast.Name) else ""


def _is_float(statement: ast.stmt | None) -> bool:
    return isinstance(statement, ast.Expr) and _called(statement.value) == "float"


def partial_credit_faults(
    source: str, name: str, functions: dict[str, ast.FunctionDef] | None = None
) -> list[str]:
    """Find a last value that nbgrader takes for partial credit and is no float."""
    body = _parse(source).body
    if not body or not isinstance(body[-1], ast.Expr) or _is_float(body[-1]):
        return []
    value, name_called = body[-1].value, _called(body[-1].value)
    called = (functions or {}).get(name_called)
    if name_called == "print":
        return []
    if called and (_returns_nothing(called) or _name_of(called.returns) == "float"):
        return []
    return [
        f"{name} ends in the value `{ast.unparse(value)}`: nbgrader takes a cell's last"
        " value for partial credit, and all that is not printed as a plain number"
        " gives full marks. End in float(...), or in no value."
    ]


def _returns_nothing(function: ast.FunctionDef) -> bool:
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return all(node.value is None for node in returns)


def points_faults(released: NotebookNode) -> list[str]:
    """Compare the points that the text states with the ones in the metadata."""
    faults, total = [], 0.0
    sections: list[tuple[str, float]] = []  # heading, stated
    found: list[float] = []
    elsewhere: list[tuple[str, float]] = []
    for cell in released.cells:
        points = cell.metadata.nbgrader.get("points", 0) if is_grade(cell) else 0
        total += points
        if sections:
            found[-1] += points
        elif points:
            early = "stands before the first heading that states points"
            faults.append(f"{_name(cell)} is graded but {early}")
        lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
        for line in lines:
            for number in STATED_POINTS.findall(line):
                if line.startswith("#"):
                    sections.append((line, float(number)))
                    found.append(0.0)
                else:
                    heading = sections[-1][0] if sections else ""
                    elsewhere.append((heading, float(number)))
    faults += [
        f"{heading!r} states {stated:g} points, its cells have {has:g}"
        for (heading, stated), has in zip(sections, found, strict=True)
        if stated != has
    ]
    allowed = dict(zip((heading for heading, _ in sections), found, strict=True))
    faults += [
        f"the text under {heading!r} states {number:g} points; its cells have"
        f" {allowed.get(heading, total):g}"
        for heading, number in elsewhere
        if number not in (allowed.get(heading), total)
    ]
    return faults


def secret_lines(source: NotebookNode) -> list[str]:
    """List lines of solutions and hidden tests that stand nowhere else."""
    secret: set[str] = set()
    public: set[str] = set()
    for cell in source.cells:
        kept = cell.source.splitlines()
        for begin, end in MARKERS:
            inside, _ = regions(cell.source, begin, end)
            secret |= {line.strip() for line in inside}
            kept = regions("\n".join(kept), begin, end)[1]
        public |= {line.strip() for line in kept}
    long = [line for line in secret - public if len(line) >= 12]
    return sorted(line for line in long if not line.endswith(("(", "[", "{")))


def leaks(source: NotebookNode, released: Path, name: str) -> list[str]:
    """Search a released folder for solutions, hidden tests and stray files."""
    allowed = {f"{name}.ipynb", *ships(source)}
    missing = sorted(file for file in allowed if not (released / file).is_file())
    faults = [f"{file} is to be shipped, but is not there" for file in missing]
    needles = [*secret_lines(source), *(marker for pair in MARKERS for marker in pair)]
    for path in sorted(path for path in released.rglob("*") if path.is_file()):
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
    """The line as text, in JSON, and in JSON that is a string of JSON."""
    forms = {line}
    for ascii_only in (True, False):
        once = json.dumps(line, ensure_ascii=ascii_only)[1:-1]
        forms |= {once, json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    return forms


def _name(cell: NotebookNode) -> str:
    first = cell.source.splitlines()[0] if cell.source else ""
    return cell.metadata.get("nbgrader", {}).get("grade_id") or f"the cell {first!r}"


def _name_of(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _parse(source: str) -> ast.Module:
    return ast.parse(re.sub(r"^[ \t]*[%!].*", "pass", source, flags=re.MULTILINE))
