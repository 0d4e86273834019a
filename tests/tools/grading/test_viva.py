"""`course viva`: its mistakes, what it asks, and what a stranger's code can
do to a sheet."""

from __future__ import annotations

import inspect
import random
import re
import runpy

import pytest
import torch
from cases import for_each
from classroom import REPOSITORY, write_notebook
from mini_assignment import released_notebook, source_notebook
from sample_class import cell_of
from walled import need_a_sandbox

from course_tools.grading.viva.changes import Change, changes
from course_tools.grading.viva.probe import VIVA_UNSET, viva_probe
from course_tools.grading.viva.questions import Asked, apart, questions, rows_of
from course_tools.grading.viva.viva import OPENING, viva

HONEST = """def squares(numbers):
    \"\"\"Each number times itself, é.\"\"\"
    found = []
    for number in numbers:
        if number < 0:
            number = -number
        found.append(number * number)
    return found"""
CALLS = """CALLS = {
    "squares": ["squares([2, 3])", "squares([-5])", "squares([0, 4, 1])", "squares([])"]
}"""

#: Tells something else each time, with half a character and markup in it.
FORGES = """

import builtins, itertools, json, sys
row = lambda n: [f"<script>{chr(0xD800)}{n}", [5]]
numbers = globals().get('numbers') or itertools.count()
builtins.print = lambda *_: sys.stdout.write(json.dumps([row(next(numbers))] * 4))"""


@for_each(
    ("line", "mistakes"),
    [
        ("a / b.sqrt()", "a | a * b.sqrt() | a / b"),
        ("(a + b) / 2", "(a + b) * 2 | (a + b) | (a - b) / 2 | (a + b) / 3"),
        ("f(a < b, 'é' == b)", "f(a <= b, 'é' == b) | f(a < b, 'é' != b)"),
        ("a.sum(dim=-1)", "a.mean(dim=-1) | a.sum(dim=-2) | a.sum(dim=0)"),
        ("a.max(dim=1, keepdim=True)", "a.max(dim=1, keepdim=False)"),
        (
            "a[1:].detach() & ~b",
            "a[2:].detach() & ~b | a[1:] & ~b | a[1:].detach() & b",
        ),
        ("torch.cat([a, b], 1)", "torch.cat([b, a], 1)"),
        ("f(a, b) and not b", "f(b, a) and not b | f(a, b) or not b | f(a, b) and b"),
        ("math.sqrt(a)", "a | math.sqrt(b)"),
    ],
)
def test_mistakes_that_people_make(line, mistakes):
    source = f"def f(a, b):\n    return {line}"
    made = changes(source, "f", set(), random.Random(0))
    found = {one.new.strip().removeprefix("return ") for one in made if one.line == 2}
    assert {*mistakes.split(" | ")} <= found


def test_a_line_that_was_given_is_not_changed():
    made = changes(
        HONEST, "squares", {"found.append(number * number)"}, random.Random(0)
    )
    assert {5, 6} <= {one.line for one in made}
    assert 7 not in {one.line for one in made}


def test_of_a_call_are_told_its_result_and_lines_and_none_of_chance_or_without_end(
    capsys,
):
    def endless():
        while True:
            pass

    calls = [lambda: (0.123456, {2}), lambda: [].pop(), random.random, endless, object]
    calls.append(lambda: VIVA_UNSET)
    inspect.unwrap(viva_probe)(calls)  # the checker of types is no cell
    rows = rows_of(capsys.readouterr().out, len(calls))
    texts = [text for text, _ in rows]
    assert texts == ["(0.1235, {2})", "raises IndexError", None, None, None, None]
    assert all(lines for _, lines in rows[:2])


def test_no_result_is_what_memory_held(tmp_path):
    (tmp_path / "cell.py").write_text(OPENING)
    try:
        runpy.run_path(str(tmp_path / "cell.py"))
        assert torch.empty(9, dtype=torch.long).tolist() == [VIVA_UNSET] * 9
    finally:
        torch.use_deterministic_algorithms(False)


@for_each("printed", ["no JSON", "[" * 10**5, "[[1]]", '[["2", ["x"]]]', "[]", ""])
def test_what_no_probe_prints_is_nothing_to_ask_about(printed):
    assert rows_of(printed, 1) == [(None, [])]


def test_results_that_one_cannot_tell_apart_by_hand():
    assert not apart("[1, 2.5]", "[1, 2.51]")
    assert not apart("[100]", "[101]")
    assert apart("[1, 2.5]", "[1, 3]")
    assert apart("[1]", "[[1]]")
    assert apart("nan", "1")


def test_a_question_has_one_answer():
    rows = {"base": "2 2 2", "after": ("2 2 5", "5 7 9", "2.01 2 2", "3 4 2", "5 8 2")}
    of = lambda texts: [(text, [2]) for text in texts.split()]
    tried = [Change(2, f"    return {n}") for n in range(5)]
    asked = Asked("f", "def f(a):\n    return a", ["f(1)", "f(2)", "f(3)"], tried)
    asked.base, asked.after = of(rows["base"]), [of(one) for one in rows["after"]]
    found = [*questions([asked], random.Random(1))]
    assert len(found) == 1, "no two questions are about one line"
    asked.changes = [Change(2 + n, "") for n in range(5)]
    found = [*questions([asked], random.Random(1))]
    which = [(one.calls[one.answer], one.value) for one in found if one.kind == "which"]
    assert which == [("f(3)", "5")], "2.01 for 2 is none that one can tell"
    for one in found:
        assert one.kind == "which" or one.options.count(one.value) == 1
        assert "2" not in one.options


@pytest.mark.slow
def test_a_plain_course_and_strangers(tmp_path):
    """Without viva.py the visible tests' calls are asked; nothing stops the class."""
    need_a_sandbox()
    (tmp_path / "nbgrader_config.py").symlink_to(REPOSITORY / "nbgrader_config.py")
    write_notebook(released_notebook(), tmp_path / "exercises" / "mini" / "mini.ipynb")
    write_notebook(source_notebook(), tmp_path / "solutions" / "mini" / "mini.ipynb")
    answers = {
        "honest": HONEST,
        "endless": HONEST.replace("if number < 0", "while True"),
        "leaves": HONEST.replace(
            "found = []", "found = exit() or __import__('os')._exit(0)"
        ),
        "forges": HONEST + FORGES,
        "markup": HONEST.replace("found = []", "found = ['<b>&']"),
    }
    for student, answer in answers.items():
        notebook = released_notebook()
        cell_of(notebook, "squares").source = answer
        write_notebook(notebook, tmp_path / f"submitted/{student}/mini/mini.ipynb")
    (plain,) = (one for one in viva("mini", tmp_path) if one.student == "honest")
    assert {one["calls"][0] for one in plain.questions} <= {
        "squares([2, 3])",
        "squares([-5])",
    }
    (tmp_path / "solutions" / "mini" / "viva.py").write_text(CALLS)
    made = {one.student: one for one in viva("mini", tmp_path, workers=2)}
    assert [*made] == sorted(answers)
    for student in ("honest", "markup"):
        assert len(made[student].questions) == 2, made[student].problem
        page = tmp_path / "viva" / "mini" / "sheets" / f"{student}.html"
        assert made[student].sheet in page.read_text()
        assert (tmp_path / "viva/mini/keys.html").read_text().count(
            made[student].key
        ) == 1
    for student in ("endless", "leaves"):
        assert made[student].problem.startswith("Only ")
    assert "&lt;script&gt;" in made["forges"].sheet
    tags = {tag for one in made.values() for tag in re.findall(r"</?(\w+)", one.sheet)}
    assert tags <= {"section", "h1", "p", "pre", "code", "ol", "li", "b", "hr"}
