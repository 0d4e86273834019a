"""Tests that students write are marked by implementations: the reference check refuses
all wrong ones and no right one, and whoever does not test gets nothing."""

import ast
import base64
import re
import sys
import zlib
from functools import cache
from pathlib import Path

import nbformat
import pytest
import torch
from cases import for_each
from whole import some

from course_tools.grading.assignments import marking_checks
from course_tools.grading.assignments.checks import implementations
from course_tools.grading.assignments.marking_checks import (
    BUSY,
    PASS,
    REFUSED,
    UNSTEADY,
    Row,
    told,
)
from course_tools.grading.assignments.release import assignments
from course_tools.grading.assignments.source import parse_source, read_source
from course_tools.grading.nbgrader.give_back import make_fit
from course_tools.grading.run.assignment import load
from course_tools.grading.run.execute import Round, execute
from course_tools.grading.run.plan import steps
from course_tools.grading.sandbox.sandbox import Limits, Worker

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools" / "grading"))

from peers import Pair  # noqa: E402
from walled import need_a_sandbox  # noqa: E402

TESTED = [
    name
    for name in assignments(ROOT)
    if (ROOT / "solutions" / name / "checks.py").is_file()
]
SMALL = """
FUNCTION = "double"
RIGHT = {"it": "def double(x):\\n    return 2 * x\\n"}
SAME = "def double(x):\\n    return {}*x - {}*x\\n"
RIGHT |= {f"it {n}": SAME.format(n + 2, n) for n in range(5)}
VISIBLE = ("three times",)
WRONG = [
    ("the formula", "three times", "2 * x", "3 * x"),
    ("the formula", "four times", "2 * x", "4 * x"),
    ("counting", "one more", "2 * x", "2 * x + 1"),
    ("empty input", "an error at 0", "2 * x", "2 * x * x / x"),
    ("small numbers", "small ones are 0", "2 * x", "2 * x * (x > 1)"),
]
"""


#: What the text of each part gives as its example, asked of an implementation.
EXAMPLES = {
    "wordpiece": """
    pieces = ["hug", "pug", "##s", "bun", "pun"]
    assert it(pieces, 3, 1) == [(0, 3), (3, 5)]
    assert it(pieces, 3, 2) == [(0, 3), (1, 4), (3, 5)]""",
    "attention": """
    weights, real = [[[0.2, 0.2, 0.5]]], [[True, True, False]]
    bits, first = it(torch.tensor(weights), torch.tensor(real))
    assert (round(bits.item(), 4), first.tolist()) == (1.0, [[0]])""",
    "transformer": """
    loss = it(torch.zeros(1, 1, 4), torch.tensor([[2]]), 0.1, 0)
    assert round(loss.item(), 4) == 1.3863""",
    "pretraining": """
    words = torch.tensor([[-1, 0, 0, 0, 1, 2, -1]])
    chosen = torch.tensor([[n in (2, 5) for n in range(7)]])
    assert it(chosen, words, None).int().tolist() == [[0, 1, 1, 1, 0, 1, 0]]
    assert it(chosen, words, 2).int().tolist() == [[0, 0, 0, 0, 0, 1, 0]]""",
    "bert": """
    weights = [[[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]]]
    found = it(torch.tensor(weights), torch.tensor([[0, 0, 1]]))
    assert found.allclose(torch.tensor([[[[0.45, 0.55], [0.6, 0.4]]]]))""",
    "fine-tuning": """
    tags = [None, "B-PER", None, "I-PER", "E-PER", "I-LOC", "O", "S-LOC", None]
    assert it(tags) == ([("PER", 0, 3), ("LOC", 5, 6)], [3])""",
    "sentence-bert": """
    right = torch.tensor([[True, False, False, False]])
    numbers, found = it(torch.tensor([[0.75, 0.25, 0.5, 0.625]]), right, 2, 0.2)
    assert (numbers.tolist(), found.tolist()) == ([[2, 1]], [[0.5, 0.25]])""",
    "capstone": """
    texts = ([[5, -100, 7]], [[5, 9, 7]], [[5, 9, 8]])
    assert it(*(torch.tensor(text) for text in texts)) == (0.5, 1, 0, 1.0)
    assert it(*(torch.tensor(4 * text) for text in texts)) == (0.5, 4, 0, 0.125)""",
    "family": """
    text, new, missing = it([5, 90, 6, 91], [90, 7, 8, 92, 1], [90, 91, 92], 1, 9)
    assert (text, new) == ([5, 7, 8, 6, 91], [False, True, True, False, False])
    assert missing == [91]""",
    "modern": """
    sentences, positions = it([2, 3, 1], 4)
    assert sentences.tolist() == [[0, 0, 2, -1], [1, 1, 1, -1]]
    assert positions.tolist() == [[0, 1, 0, 0], [0, 1, 2, 0]]""",
}


def answer(name: str) -> str:
    """The reference check of an assignment, and what its notebook defines for it."""
    notebook = parse_source(ROOT / "solutions" / name / f"{name}.py")
    [cell] = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "own-check"
    ]
    return cell.source


def check_of(source: str):
    """What a cell defines, beside what the first cell of a notebook has."""
    scope = {"torch": torch, "math": __import__("math"), "device": "cpu"}
    exec(source, scope)  # noqa: S102 - ours
    return scope[ast.parse(source).body[0].name]


@pytest.fixture
def marked_by(monkeypatch):
    """Lets these implementations mark."""

    def use(function: str, rows: list[Row]) -> None:
        monkeypatch.setattr(marking_checks, "FUNCTION", function)
        monkeypatch.setattr(marking_checks, "ROWS", rows)

    return use


@pytest.fixture
def small(tmp_path, marked_by):
    """Four hidden wrong implementations of `double`, and six right ones."""
    (tmp_path / "checks.py").write_text(SMALL, encoding="utf-8")
    function, _, hidden = implementations(tmp_path / "checks.py")
    marked_by(function, hidden)


@for_each("name", TESTED)
def test_the_reference_check_refuses_all_that_is_wrong_and_nothing_that_is_right(name):
    function, visible, hidden = implementations(ROOT / "solutions" / name / "checks.py")
    assert len(visible) == 4
    assert sum(not row.kind for row in hidden) >= 6
    assert sum(bool(row.kind) for row in hidden) >= 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marking_checks, "FUNCTION", function)
        trials = marking_checks.Trials(check_of(answer(name)))
        rows = [*visible, *hidden]
        refused = {row.name for row in rows if trials.refuses(row) is not None}
    assert refused == {row.name for row in rows if row.kind}


@for_each("name", TESTED)
def test_who_tries_the_text_s_example_alone_is_told_of_a_wrong_one_that_passes(name):
    function, visible, _ = implementations(ROOT / "solutions" / name / "checks.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marking_checks, "FUNCTION", function)
        trials = marking_checks.Trials(check_of(f"def check(it):{EXAMPLES[name]}"))
        passed = [row.kind for row in visible if trials.refuses(row) is None]
    assert passed.count("") == 1, "the right one"
    assert 1 < len(passed) < len(visible), "an example that refuses something"


def mark(check, capsys) -> tuple[float, str]:
    earned = marking_checks.points(check, 8.0)
    return earned, told(capsys.readouterr().out)


def test_points_are_the_share_refused_beyond_one_half(small, capsys):
    def check(implementation, tried=(1, 0, 7)):
        assert [implementation(x) for x in tried] == [2 * x for x in tried]

    passing = f"{PASS}empty input; small numbers."
    assert mark(check, capsys) == (8.0, "")
    assert mark(lambda it: check(it, (1,)), capsys) == (4.0, f"{PASS}empty input.")
    assert mark(lambda it: check(it, (7,)), capsys) == (0.0, passing)


def test_who_refuses_what_is_right_asks_too_often_or_changes_his_mind_gets_nothing(
    small, capsys
):
    def strict(implementation):
        assert implementation(0.1) == 0.2
        assert implementation(0.7) == 1.4  # 3 * 0.7 - 0.7 is not, in binary

    def busy(implementation):
        for _ in range(201):
            implementation(1)

    def by_turns(implementation, turns=iter(range(99))):  # noqa: B008 - it is to count
        assert next(turns) % 2 or implementation(1) == 2

    assert mark(strict, capsys) == (0.0, REFUSED)
    assert mark(busy, capsys) == (0.0, BUSY)
    assert mark(by_turns, capsys)[0] == 0.0


def test_what_a_check_prints_is_not_told_as_the_grader_s_words():
    assert told(f"the hidden line\n{PASS}ties; x = 7.31; padding.\n") == (
        f"{PASS}ties; padding."
    )
    assert told("all passes\n") == ""
    assert told(f"{UNSTEADY}\nmore") == UNSTEADY


def test_stock_nbgrader_gives_back_the_kinds_that_passed():
    [name, *_] = TESTED
    notebook = read_source(ROOT / "solutions" / name / f"{name}.py")
    [cell] = [cell for cell in notebook.cells if cell["id"] == "check-refuses"]
    stream = nbformat.v4.new_output("stream", text=f"secret\n{PASS}ties.\n")
    value = {"text/plain": "2.5"}
    cell.outputs = [stream, nbformat.v4.new_output("execute_result", value)]
    make_fit(notebook)
    said = cell.outputs[0].data["text/plain"]
    assert said == f"A hidden test fails. It says: {PASS}ties. (2.5 of 6 points)"
    assert "secret" not in nbformat.writes(notebook)


@for_each("name", TESTED)
def test_students_get_the_visible_implementations_and_nothing_of_a_hidden_one(name):
    """Neither as it is nor packed."""
    released = nbformat.read(ROOT / "exercises" / name / f"{name}.ipynb", 4)
    text = "\n".join(cell.source for cell in released.cells)
    [packed] = re.findall(r'b64decode\("([\w+/=]+)"\)', text)
    scope: dict = {}
    exec(zlib.decompress(base64.b64decode(packed)).decode(), scope)  # noqa: S102 - ours
    _, visible, hidden = implementations(ROOT / "solutions" / name / "checks.py")
    assert scope["ROWS"] == [tuple(row) for row in visible]
    own = {row for row in hidden if row not in visible and len(row.name) > 20}
    assert len(own) > 10
    assert {row.name for row in own if row.name in text} == set()
    assert {row.name for row in own if row.source in text} == set()


def test_a_kind_that_is_unknown_and_a_text_that_is_not_there_once_are_refused(tmp_path):
    place = tmp_path / "checks.py"
    for old, new, words in (
        ('"counting"', '"magic"', "unknown"),
        ('"one more"', '"four times"', "there twice"),
        ('"2 * x", "4 * x"', '"5 * x", "4 * x"', "holds once"),
        ('("three times",)', '("no such",)', "unknown"),
    ):
        place.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ValueError, match=words):
            implementations(place)


#: Bodies of checks; `honest` is the reference check, `WHAT` the function's name.
CHEATS = {
    "empty": "pass",
    "always raises": "raise AssertionError('wrong')",
    "counts calls": """
    calls.append(1)
    if len(calls) <= 12:
        raise AssertionError('one of the first')""",
    "guesses by time": """
    began = perf_counter()
    try:
        honest(implementation)
    except Exception:
        pass
    calls.append(perf_counter() - began)
    if calls[-1] > sorted(calls)[len(calls) // 2]:
        raise AssertionError('slow')""",
    "looks for the bridge": """
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(str(frame.f_locals))
        frame = frame.f_back
    for one in gc.get_objects():
        if type(one).__name__ in ('Peer', 'RemoteFunction', 'Trials', 'Row', 'cell'):
            seen.append(str(vars(one) if hasattr(one, '__dict__') else one))
    seen += [file.read_text('utf-8', 'ignore') for file in Path().rglob('*.py')]
    seen += [str(vars(module)) for module in [*sys.modules.values()]]
    told = vars(implementation)['_key']
    if f'def {WHAT}(' in ''.join(seen) or int(told[1:]) % 2:
        raise AssertionError('found')""",
}
BEFORE = """import gc, math, sys, torch
from pathlib import Path
from time import perf_counter
device, calls, WHAT = "cpu", [], "NAME"
"""


def cheat(name: str, body: str) -> str:
    """A student's cell."""
    what = implementations(ROOT / "solutions" / name / "checks.py")[0]
    honest = answer(name).replace(f"def check_{what}(", "def honest(")
    lines = body if body.startswith("\n") else f"\n    {body}"
    head = f"def check_{what}(implementation):"
    return f"{BEFORE.replace('NAME', what)}{honest}\n\n{head}{lines}"


@cache
def plan(name: str) -> tuple[dict, list[dict]]:
    """The steps around a check in the grader, with the hidden implementations alone."""
    assignment = load(name, ROOT)
    found = steps(assignment.instructor, assignment.released, assignment.released)
    [test] = [step for step in found if step.get("name") == "check-refuses"]
    [own] = [step for step in found if "check_" in "".join(step.get("names", ()))]
    hidden = test["source"].partition("### BEGIN HIDDEN TESTS")[2]
    return own, [found[0], own, test | {"source": hidden}]


def across(worker: Worker, name: str, source: str) -> dict:
    """What the grader gives for a check."""
    own, taken = plan(name)
    taken = [step | {"source": source} if step is own else step for step in taken]
    transcript = execute(worker, Round(True, taken), {})
    assert transcript.trouble == ""
    return transcript.marks["check-refuses"]


@pytest.fixture(scope="module")
def worker():
    need_a_sandbox()
    with Worker(Limits()) as worker:
        yield worker


@pytest.mark.slow
@for_each("name", some(*TESTED))
def test_behind_the_wall_a_check_earns_its_points_and_cheats_earn_nothing(worker, name):
    assert across(worker, name, f"{BEFORE}{answer(name)}")["earned"] == 6.0
    earned = {
        what: across(worker, name, cheat(name, body))["earned"]
        for what, body in CHEATS.items()
    }
    assert earned == dict.fromkeys(CHEATS, 0.0)


def test_a_check_is_handed_the_same_whatever_stands_behind_it(small, capsys):
    handed: list[object] = []

    def check(implementation):
        own = {
            k: v for k, v in vars(implementation).items() if k not in ("_peer", "_key")
        }
        handed.append((type(implementation).__name__, own))
        assert [implementation(x) for x in (1, 0, 7)] == [2, 0, 14]

    pair = Pair({"check": check})
    earned = marking_checks.points(lambda it: pair.call("check", it), 8.0)
    assert (earned, capsys.readouterr().out) == (8.0, "")
    assert len(handed) == 4 + 6 + sum(marking_checks.AGAIN.values())
    assert all(one == handed[0] for one in handed)
