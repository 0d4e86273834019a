"""Hidden tests that compare: what they refuse, in which words, and that nobody who
patches what they stand on is compared with himself."""

import base64
import json
import socket
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import torch
from cases import for_each

from course_tools.grading.assignments import comparisons
from course_tools.grading.assignments.comparisons import (
    expected,
    seed_of,
    with_comparisons,
)
from course_tools.grading.assignments.guard import guard_withheld
from course_tools.grading.assignments.hidden_words import own_words
from course_tools.grading.assignments.parting import plain
from course_tools.grading.assignments.source import read_source
from course_tools.grading.bridge.peer import Peer
from course_tools.grading.bridge.watched import watching
from course_tools.grading.run.referee import Referee
from course_tools.grading.run.telling import packed, unpacked

ROOT = Path(__file__).parents[3]
LINE = "# {compare:affine}"
#: Legal inputs of a small function, and a reference.
HIDDEN = """
from course_tools.grading.assignments.comparing import Case, Comparison


def affine(x, w, lengths=(), scale=2.0):
    if x.shape[-1] == 1:
        raise ValueError
    return (scale * x * w).sum(-1), len(lengths)


def cases(draw):
    for dtype in (torch.float64, torch.float32):
        for _ in range(5):
            B, D = draw.sizes(2)
            w = draw.normal(D, dtype=dtype)
            yield Case("some rows", (draw.normal(B, D, dtype=dtype), w, [1, 2]))
    yield Case("another scale", (draw.normal(3, 5), draw.normal(5), [], 0.5))
    tiny = draw.normal(3, 5, scale=1e-4)
    yield Case("tiny numbers", (tiny, draw.normal(5)), hint="Add nothing.")
    yield Case("one column", (draw.normal(3, 1), draw.normal(1)))


Comparison("affine", cases, (affine,), ("the sums", "the count"))
"""
RIGHT = """
def affine(x, w, lengths=(), scale=2.0):
    if len(w) == 1:
        raise ValueError("one column")
    return torch.einsum("bd,d->b", x, w) * scale, len(lengths)
"""
RETURN = 'torch.einsum("bd,d->b", x, w) * scale, len(lengths)'


@pytest.fixture
def cell(tmp_path):
    """A hidden test as it stands in the instructor's notebook."""
    (tmp_path / "hidden.py").write_text(HIDDEN, encoding="utf-8")
    return with_comparisons(LINE, tmp_path / "small.py")


def refusal(cell: str, source: str) -> str:
    """What the test says of an answer, in one process."""
    names = {"torch": torch, "__expected__": expected(cell)}
    exec(source, names)  # noqa: S102
    try:
        exec(cell, names)  # noqa: S102
    except AssertionError as error:
        return str(error)
    return ""


def test_a_right_answer_written_differently_is_accepted(cell):
    assert refusal(cell, RIGHT) == ""


@for_each(
    ("wrong", "words"),
    [
        ("None", "With some rows, affine must return the sums and the count."),
        (RETURN.replace(", len", " + len"), "must return the sums and the count"),
        (RETURN.replace("* scale", "* 2"), "With another scale, the sums is wrong"),
        (RETURN.replace("len(lengths)", "2"), "With another scale, the count is wrong"),
        (RETURN.replace("len(lengths)", "2.0"), "the count must be a int; yours is a"),
        (f"[*({RETURN})]", "must return the sums and the count"),
        (RETURN.replace("* scale", "* scale + 1e-9"), "With tiny numbers, the sums is"),
        (RETURN.replace("* scale", "* scale + 1e-9"), "wrong. Add nothing."),
        (
            RETURN.replace("x, w)", "x.float(), w.float())"),
            "must have dtype torch.float",
        ),
        (RETURN.replace("* scale", "* scale / 0 * 0"), "contains nan"),
        (RETURN.replace("* scale", ".sum() * scale"), "must have another shape"),
        (RETURN.replace("x, w)", "x, w.detach())"), "no gradient reaches w"),
        (RETURN.replace("x, w)", "x, w * 2 - w.detach())"), "respect to w is wrong"),
        (
            RETURN.replace("x, w)", "x.mul_(2), w) / 2"),
            "must leave its input as it was",
        ),
        (f"lengths.append(3) or ({RETURN})", "must leave its input as it was"),
        (
            "torch.from_numpy(x.numpy() @ w.numpy()) * scale, len(lengths)",
            "affine raises, for inputs with gradients, RuntimeError",
        ),
        (
            RETURN.replace("* scale", "* scale * memory.setdefault(len(w), w[0])"),
            "the sums is wrong",
        ),
        (
            # 12 inputs return something, so this is right in the first round
            "memory.update({len(memory): 0}) or "
            f"({RETURN.replace('len(lengths)', 'len(lengths) + len(memory) // 13')})",
            "a second call of affine",
        ),
        ("1 / 0", "With some rows, affine raises ZeroDivisionError: division by zero."),
    ],
)
def test_a_wrong_answer_is_refused_by_the_first_kind_of_input_that_parts(
    cell, wrong, words
):
    source = "memory = {}" + RIGHT.replace(RETURN, wrong)
    assert words in refusal(cell, source)


@for_each(
    ("raised", "words"),
    [
        (
            "KeyError('one column')",
            "With one column, affine must raise ValueError, not",
        ),
        ("(ValueError)", ""),
    ],
)
def test_an_error_is_compared_by_its_kind(cell, raised, words):
    source = RIGHT.replace("ValueError('one column')", raised)
    source = source.replace('ValueError("one column")', raised)
    assert refusal(cell, source).startswith(words)
    assert bool(refusal(cell, source)) == bool(words)


def test_what_an_argument_says_of_its_misuse_is_the_refusal(tmp_path):
    own = """
def step(k):
    if k > 2:
        raise Misuse("step was given more than it holds")
    return k
Comparison(
    "walk", lambda draw: iter([Case("a step", (step,))]), (lambda f: f(2),), ("it",)
)
"""
    hidden = HIDDEN.replace("Case, Comparison", "Case, Comparison, Misuse") + own
    (tmp_path / "hidden.py").write_text(hidden, encoding="utf-8")
    cell = with_comparisons("# {compare:walk}", tmp_path / "small.py")
    names = {"__expected__": expected(cell)}
    exec("def walk(step): return step(3)", names)  # noqa: S102
    with pytest.raises(AssertionError, match=r"^step was given more") as raised:
        exec(cell, names)  # noqa: S102
    assert raised.type is AssertionError  # as across the bridge


def test_a_class_is_used_with_what_its_own_notebook_gives(tmp_path):
    own = """
def Config(size): return [size]
class Scale:
    def __init__(self, config): self.size = config[0]
    def __call__(self, x): return x * self.size
def use(kind, size, x, Config): return kind(Config(size))(x)
Comparison(
    "Scale", lambda draw: iter([Case("a size", (3, draw.normal(5)))]), (Scale,),
    ("the product",), use=use, given=("Config",),
)
"""
    (tmp_path / "hidden.py").write_text(HIDDEN + own, encoding="utf-8")
    cell = with_comparisons("# {compare:Scale}", tmp_path / "small.py")
    names = {"__expected__": expected(cell), "Config": lambda size: {"size": size}}
    student = own[own.index("class") : own.index("def use")]
    exec(student.replace("config[0]", "config['size']"), names)  # noqa: S102
    exec(cell, names)  # noqa: S102
    exec(student.replace("config[0]", "2"), names)  # noqa: S102
    with pytest.raises(AssertionError, match=r"^With a size, the product is wrong"):
        exec(cell, names)  # noqa: S102


def test_a_gradient_that_must_be_0_may_be_as_far_from_it_as_the_largest_is_rounded(
    tmp_path,
):
    """One weight's softmax is 1: by hand, its gradient is what rounding leaves."""
    own = """
def soft(w): return w.softmax(0)
def use(soft, w, scale, x):
    with torch.enable_grad():
        w, scale = (one.clone().requires_grad_() for one in (w, scale))
        return torch.autograd.grad((scale * soft(w) * x).sum(), (scale, w))
def cases(draw):
    for _ in range(20):
        yield Case("a weight", (draw.normal(1), draw.normal(), 1e3 * draw.normal(7)))
Comparison(
    "soft", cases, (soft,), ("the gradient of scale", "the gradient of w"), use=use
)
"""
    (tmp_path / "hidden.py").write_text(HIDDEN + own, encoding="utf-8")
    cell = with_comparisons("# {compare:soft}", tmp_path / "small.py")
    answer = "def soft(w): return w.exp() / w.exp().sum()"
    assert refusal(cell, answer) == ""
    words = refusal(cell, answer + ".detach()")
    assert words == "With a weight, the gradient of w is wrong."


@for_each("part", [(1, 2), type("Lie", (float,), {"__eq__": lambda *_: True})(1), {1}])
def test_what_could_answer_for_itself_is_not_compared(part):
    rows = [{"result": ["returned", ["tensor", "float64", [2], [0.5, None]]]}]
    assert plain(rows) is rows
    rows[0]["result"][1][3][1] = part
    with pytest.raises(TypeError, match="where a plain value must be"):
        plain(rows)


def test_no_value_of_an_input_is_told(cell):
    said = refusal(cell, RIGHT.replace("* scale", "* 3"))
    assert not any(sign.isdigit() for sign in said)


def test_a_hidden_round_keeps_the_kind_of_input_and_no_word_of_a_students(cell):
    """The referee's own words, of a function that is in another process."""
    job = {"hidden": True, "steps": [], "deadly": [], "cell_seconds": 600}
    referee = Referee(socket.socket(), job)
    referee.namespace["__expected__"] = expected(cell)

    def told(source: str) -> str:
        exec(source, names := {"torch": torch})  # noqa: S102
        referee.namespace["affine"] = names["affine"]
        raised = referee.run_here(cell)["raised"]
        return own_words(raised, cell, referee.namespace, job)

    assert told(RIGHT) == ""
    assert told(RIGHT.replace("* scale", "* 2")) == (
        "With another scale, the sums is wrong."
    )
    secret = RIGHT.replace(RETURN, "(_ for _ in ()).throw(KeyError(x.tolist()))")
    assert told(secret) == "With some rows, affine raises an error"
    forged = (
        "def many(calls): raise AssertionError('With a secret')\naffine.many = many"
    )
    assert told(f"{RIGHT}\n{forged}") == "", "it was sent by the student's process"


def test_an_answer_is_compared_with_what_a_referee_without_a_student_has_told(cell):
    told = unpacked(packed([cell]))
    assert told == expected(cell)
    names = {"torch": torch}
    exec(RIGHT, names)  # noqa: S102

    def earned(expected: str) -> float:
        job = {"hidden": True, "steps": [], "deadly": [], "cell_seconds": 600}
        referee = Referee(socket.socket(), job | {"expected": expected})
        referee.peer = Peer(socket.socket(), strict=True)  # it is asked for nothing
        referee.namespace["affine"] = names["affine"]
        return referee.run_test(cell, 2.0)["earned"]

    assert earned(packed([cell])) == earned("") == 2.0
    (rows,) = told.values()
    rows[0][1]["result"] = ["returned", ["int", 7]]
    wrong = base64.b64encode(zlib.compress(json.dumps(told).encode())).decode()
    assert earned(wrong) == 0.0


def test_no_notebook_guards_a_referee_in_which_no_student_is(monkeypatch):
    """A guard sees each call of torch, and makes each call of a student's one that a
    test watches."""
    monkeypatch.setitem(vars(sys), "_course_guard", {})
    Referee(socket.socket(), {"hidden": True, "deadly": []})
    guard_withheld(["torch.nn.functional.softmax"])
    assert not watching()


def test_every_seed_comes_from_one_function_and_a_secret_changes_it(
    monkeypatch, tmp_path
):
    assert seed_of("small", "affine") != seed_of("small", "affine", "a secret")
    assert seed_of("small", "affine") != seed_of("large", "affine")
    (tmp_path / "hidden.py").write_text(HIDDEN, encoding="utf-8")
    reference = []
    for seed in (1, 2):
        monkeypatch.setattr(comparisons, "seed_of", lambda *_, seed=seed: seed)
        cell = with_comparisons(LINE, tmp_path / "small.py")
        assert refusal(cell, RIGHT) == ""
        reference.append(json.dumps([*expected(cell).values()]))
    assert reference[0] != reference[1]


def test_a_class_with_a_secret_has_hidden_inputs_of_its_own(tmp_path):
    solution = tmp_path / "solutions" / "small"
    solution.mkdir(parents=True)
    (solution / "hidden.py").write_text(HIDDEN, encoding="utf-8")
    (tmp_path / ".gitignore").write_text("gradebook.db", encoding="utf-8")
    cells = [with_comparisons(LINE, solution / "small.py")]
    assert comparisons.make_secret(tmp_path)
    secret = comparisons.secret_of(tmp_path)
    assert len(secret) == 32
    assert not comparisons.make_secret(tmp_path), "it stays"
    assert comparisons.secret_of(tmp_path) == secret
    ignored = (tmp_path / ".gitignore").read_text(encoding="utf-8").split()
    assert ignored == ["gradebook.db", comparisons.SECRET]
    assert (tmp_path / comparisons.SECRET).stat().st_mode & 0o077 == 0
    cells.append(with_comparisons(LINE, solution / "small.py"))
    public, own = map(expected, cells)
    assert public.keys().isdisjoint(own)
    assert [*public.values()] != [*own.values()]
    assert secret not in cells[1]
    assert refusal(cells[1], RIGHT) == ""


#: What a student's cell can do to all that a comparison stands on, in its process.
PATCHED = """
import builtins, importlib, sys, types
import torch
agrees = lambda *_, **__: True
for place in (torch, torch.Tensor, torch.testing, torch.autograd, torch.linalg):
    for name in dir(place):
        if name in "allclose isclose equal eq all assert_close grad".split():
            setattr(place, name, agrees)
torch.Tensor.__eq__ = agrees
torch.Tensor.tolist = lambda self: [0.0] * self.numel()
torch.softmax = torch.exp = torch.Tensor.exp = lambda x, *_, **__: x
for module in ("comparing", "comparisons", "parting", "student_checks"):
    made = types.ModuleType(f"course_tools.grading.assignments.{module}")
    made.compare = made.complaints = made.observe = agrees
    sys.modules[made.__name__] = made
library = types.ModuleType("course_lib.attention")
library.masked_softmax = lambda scores, mask=None: scores
sys.modules["course_lib.attention"] = library
compare = complaints = observe = tell = told = _apart = hidden = agrees
COMPARISONS, __expected__ = {}, {}
def masked_softmax(scores, mask=None): return scores
"""
PROCESS = """import sys, json
cell, student = json.load(sys.stdin)
exec(student, names := {})
try:
    exec(cell, names)
except BaseException as error:
    print("refused", type(error).__name__, error)
else:
    print("accepted")"""


@pytest.fixture(scope="module")
def softmax_cells():
    """The comparing part of a hidden test of the assignment `attention`, and the model
    answer."""
    source = read_source(ROOT / "solutions" / "attention" / "attention.py")
    cells = {cell.id: cell.source for cell in source.cells}
    hidden = cells["masked-softmax-rows"].split("### BEGIN HIDDEN TESTS")[1]
    return hidden, "import torch\n" + cells["masked-softmax"]


def in_a_process(cell: str, student: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS],
        input=json.dumps([cell, student]),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.slow
def test_who_patches_library_torch_and_harness_is_refused_in_one_process(softmax_cells):
    hidden, answer = softmax_cells
    assert in_a_process(hidden, answer).strip() == "accepted"
    assert in_a_process(hidden, PATCHED).startswith("refused")
    # nor does it help to patch all that and to hand in something that is nearly right
    wrong = answer.replace('float("-inf")', "-1.0").replace(
        "masked_fill(~mask", "where(mask"
    )
    assert in_a_process(hidden, PATCHED + wrong).startswith("refused")
