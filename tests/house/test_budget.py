"""Small is a feature: how large the course may be, and how large it should become.

A change may lower a number of this file and raises none; an issue that adds something
says by how much.
"""

import ast
from pathlib import Path

import grimp  # what import-linter stands on
from house import ROOT, library_modules, relative, tracked_files

#: Of each measure: what the design asks for, and what it may be at most today.
BUDGET = {
    "lines of course_lib": (16_000, 24_303),
    "lines of course_lab": (8_500, 20_203),
    "lines of course_tools": (11_000, 20_289),
    "lines of tests": (33_000, 60_836),
    "modules below course_lib.bert.model": (8, 8),
    "entries in course_lib": (18, 19),
}
#: What tests read as data: wrong and right answers to the assignments.
DATA = "tests/assignments/mutants/"

#: Modules that are longer than they should be, and by how much at most.
LONGER = {
    "course_lab/ch01_seq2seq/seq2seq.py": 334,
    "course_lib/data/grammar.py": 301,
    "course_tools/grading/bridge/codec.py": 370,
    "course_tools/grading/bridge/modules.py": 363,
    "course_tools/grading/bridge/peer.py": 415,
    "course_tools/grading/run/referee.py": 327,
}


def lines(folder: str) -> int:
    """Count the lines of the Python files of a folder, docstrings included."""
    return sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked_files()
        if path.suffix in {".py", ".pyi"}
        and relative(path).startswith(f"{folder}/")
        and not relative(path).startswith(DATA)
    )


def modules_below(module: str) -> set[str]:
    """Return the modules of the library that one imports, directly or not."""
    graph = grimp.build_graph("course_lib", cache_dir=None)
    return graph.find_upstream_modules(module)


def entries(folder: str) -> set[str]:
    """Return what `ls` shows of a folder under version control."""
    inside = (path.relative_to(ROOT).parts for path in tracked_files())
    return {parts[1] for parts in inside if parts[0] == folder}


def today() -> dict[str, int]:
    """Return the number of each row of the budget."""
    folders = ("course_lib", "course_lab", "course_tools", "tests")
    return {
        **{f"lines of {folder}": lines(folder) for folder in folders},
        "modules below course_lib.bert.model": len(
            modules_below("course_lib.bert.model")
        ),
        "entries in course_lib": len(entries("course_lib")),
    }


def test_the_course_does_not_grow():
    now = today()
    assert list(now) == list(BUDGET)
    grown = {name: number for name, number in now.items() if number > BUDGET[name][1]}
    assert grown == {}, "take something away, or say in the issue what it is worth"


def test_answers_of_assignments_are_no_lines_of_tests_and_model_code_is_below_bert():
    assert lines(DATA.rstrip("/")) == 0 < lines("tests/assignments")
    assert "course_lib.attention.multi_head" in modules_below("course_lib.bert.model")


def lines_of_code(path: Path) -> int:
    """Count lines but for docstrings, comments and blank lines."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    documented: set[int] = set()
    for node in ast.walk(tree):
        may_have_one = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if may_have_one and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            documented.update(range(text.lineno, (text.end_lineno or 0) + 1))
    return sum(
        number not in documented
        and bool(line.strip())
        and not line.strip().startswith("#")
        for number, line in enumerate(source.splitlines(), start=1)
    )


def test_a_module_has_at_most_300_lines_of_code():
    """Docstrings do not count, so that nothing is cut in two for its docstrings."""
    lines = {relative(path): lines_of_code(path) for path in library_modules()}
    longer = {path: n for path, n in lines.items() if n > LONGER.get(path, 300)}
    assert longer == {}, "make two modules of it where it does two things"
    assert not {path for path in LONGER if lines.get(path, 0) <= 300}, "shorter: mend"
