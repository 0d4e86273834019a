"""What an assignment withholds refuses who reaches it, by whatever name.

The guard cannot be taken away again, so each way round runs in a process of its own,
forked from one that has imported torch.
"""

import json
import subprocess
import sys
import textwrap

import pytest
from mini_assignment import released_notebook, source_notebook
from nbformat.v4 import new_code_cell
from two_rounds import two_rounds
from walled import need_a_sandbox

from course_tools.grading.run.plan import steps
from course_tools.grading.sandbox.sandbox import Limits, Worker

WITHHELD = [
    "course_lib.attention.masks",
    "course_lib.wordpiece",
    "sklearn",
    "torch.nn.CrossEntropyLoss",
    "torch.nn.TransformerEncoderLayer",
    "torch.nn.functional.cosine_similarity",
    "torch.nn.functional.cross_entropy",
    "torch.nn.functional.gelu",
    "torch.nn.functional.scaled_dot_product_attention",
]
IN_GRADER = (
    "vars(sys)['_course_guard'] = {}; guard_withheld(withheld, beside_tests=False)\n"
)
WAYS_ROUND = {
    "another name": "f = torch.nn.functional.cross_entropy; f(x, y)",
    "a helper": "def help(a, b): return F.cross_entropy(a, b)\nhelp(x, y)",
    "getattr": "getattr(torch.nn.functional, 'cross' + '_entropy')(x, y)",
    "a module's table of names": "vars(F)['cross_' + 'entropy'](x, y)",
    "a text": "exec('F.cross_' + 'entropy(x, y)')",
    "a method of a module": "torch.nn.GELU().forward(x)",
    "a module": "torch.nn.CrossEntropyLoss()(x, y)",
    "a module's subclass": "class Mine(torch.nn.CrossEntropyLoss): pass\nMine()(x, y)",
    "a module without init": (
        "torch.nn.CrossEntropyLoss.forward(types.SimpleNamespace(weight=None,"
        " ignore_index=-100, reduction='mean', label_smoothing=0.0), x, y)"
    ),
    "the module's source": (
        "exec(inspect.getsource(F.cross_entropy), vars(F)); F.cross_entropy(x, y)"
    ),
    "a copy of the function": (
        "f = F.cross_entropy\n"
        "types.FunctionType(f.__code__, vars(F), argdefs=f.__defaults__)(x, y)"
    ),
    "the operator": "torch.ops.aten.cross_entropy_loss(x, y)",
    "an overload": "torch.ops.aten.gelu.default(x)",
    "torch's own names": "torch._C._nn.gelu(x)",
    "the registry": "torch._C._jit_get_operation('aten::gelu')[0](x)",
    "in place": "torch._C._nn.gelu_(x.clone())",
    "vmap": "torch.vmap(F.gelu)(x)",
    "partial": "functools.partial(F.cosine_similarity, x)(x)",
    "a script": "torch.jit.script(torch.nn.GELU())(x)",
    "a compiled function": "torch.compile(F.gelu, backend='eager')(x)",
    "the fused kernel": "F.scaled_dot_product_attention(x[None], x[None], x[None])",
    "a whole layer": "torch.nn.TransformerEncoderLayer(6, 2)(x[None])",
    "a thread": (
        "import concurrent.futures as c\n"
        "c.ThreadPoolExecutor().submit(F.cross_entropy, x, y).result()"
    ),
    "a raw thread": (
        "import _thread, queue; got = queue.Queue()\n"
        "def run():\n"
        "    try: got.put(F.gelu(x))\n"
        "    except RuntimeError as error: got.put(error)\n"
        "_thread.start_new_thread(run, ())\n"
        "found = got.get()\n"
        "if isinstance(found, Exception): raise found"
    ),
    "a program": (
        "import subprocess\n"
        "subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    ),
    "after a test": "with allowed(): pass\nF.gelu(x)",
    "an import": "import sklearn.metrics",
    "an import by text": "importlib.import_module('skl' + 'earn')",
    "an import by another": "import pkgutil; pkgutil.resolve_name('sklearn.metrics')",
    "a peer that imports it": "import seqeval.metrics",
    "the library": "from course_lib.attention.masks import masked_softmax",
    "the library's public name": "import course_lib; course_lib.masked_softmax",
    "the library's name by text": (
        "import course_lib; getattr(course_lib, 'masked_' + 'softmax')"
    ),
    "the room's siblings": "from course_lib.attention import multi_head",
    "what was loaded before": "sys.modules['course_lib.wordpiece.tokenizer']",
    "the file's text": (
        "import course_lib; from pathlib import Path\n"
        "(Path(course_lib.__file__).parent / 'attention' / 'masks.py').read_text()"
    ),
    "a test's own way, in the grader": (
        IN_GRADER + "with allowed(), guard_withheld(withheld)(): F.cross_entropy(x, y)"
    ),
    "a name that is the grader's": (
        "__name__ = 'course_tools.mine'; import course_lib.wordpiece.tokenizer"
    ),
}
OPEN = {
    "what else torch has": "torch.nn.Linear(6, 2)(x).relu().logsumexp(-1).sum()",
    "a layer norm": "torch.nn.functional.layer_norm(x, (6,))",
    "binary cross-entropy": "F.binary_cross_entropy(x.sigmoid(), x.sigmoid())",
    "another room": "import course_lib.data.stories",
    "pip": "import subprocess; subprocess.run([sys.executable, '-m', 'pip', '-V'])",
    "a test": "with allowed(): F.cross_entropy(x, y); F.gelu(x)",
    "a test within a test": "with allowed():\n with allowed(): pass\n F.gelu(x)",
    "a set-up that ran twice": (
        "with guard_withheld(withheld)(): F.cross_entropy(x, y); F.gelu(x)"
    ),
    "a set-up cell in the grader, which adds no second guard": (
        f"{IN_GRADER}modes = torch._C._len_torch_function_stack()\n"
        "guard_withheld(withheld)\n"
        "assert torch._C._len_torch_function_stack() == modes"
    ),
    "torch's first optimizer, which looks for packages": (
        "layer = torch.nn.Linear(6, 2); torch.optim.AdamW(layer.parameters())"
    ),
}
PROGRAM = """
import functools, importlib, inspect, json, os, sys, types
import torch, torch.nn.functional as F
import course_lib.wordpiece.tokenizer
from course_tools.grading.assignments.guard import guard_withheld

withheld, ways = json.load(sys.stdin)
x, y = torch.rand(4, 6), torch.tensor([0, 3, 5, 2])
told = {}
for way, code in ways.items():
    reading, writing = os.pipe()
    if os.fork() == 0:
        names = dict(globals(), __name__="__main__", allowed=guard_withheld(withheld))
        try:
            exec(code, names)
            said = ""
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    told[way] = os.fdopen(reading).read()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def said():
    """What each way round was told, "" where it went through."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        input=json.dumps([WITHHELD, WAYS_ROUND | OPEN]),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_no_way_round_reaches_what_is_withheld_and_each_is_told_so(said):
    got_through = {
        way: said[way] for way in WAYS_ROUND if "this assignment" not in said[way]
    }
    assert got_through == {
        "what was loaded before": "KeyError: " + repr("course_lib.wordpiece.tokenizer")
    }


def test_what_is_not_withheld_works_and_a_test_may_use_all(said):
    assert {way: said[way] for way in OPEN} == dict.fromkeys(OPEN, "")


def test_in_the_grader_a_helper_in_another_cell_is_refused_and_the_student_is_told():
    """`getattr` hides the name from the scan, and there is no notebook's guard."""
    need_a_sandbox()
    instructor, released, submitted = (
        source_notebook(),
        released_notebook(),
        released_notebook(),
    )
    released.metadata["course"] = {
        "edition": "2026.12",
        "withholds": ["torch.nn.functional.cross_entropy"],
    }
    helper = """import sys
vars(sys)["_course_guard"] = {}
import torch
def helper(high, low):
    loss = getattr(torch.nn.functional, "cross" + "_entropy")
    return high - low + 0 * loss(torch.ones(2, 3), torch.zeros(2).long()).item()"""
    answer = next(c for c in submitted.cells if "def margin" in c.source)
    answer.source = "def margin(high, low):\n    return helper(high, low)"
    submitted.cells.insert(0, new_code_cell(helper))
    with Worker(Limits()) as worker:
        found = two_rounds(worker, steps(instructor, released, submitted), {})
    assert found.marks["margin-tests"]["earned"] == 0
    assert "this assignment withholds" in found.tests["margin-tests"]["words"]
