"""Notebooks that look odd and are honest work: each gets the marks of its answers.

`make test` has some in which the code is odd, the outputs or the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from attack_class import LIMITS, POINTS, answered, open_class
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell
from walled import need_a_sandbox
from whole import WHOLE

from course_tools.grading.run.grade import grade

pytestmark = pytest.mark.slow
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ODD: dict[str, Callable[[NotebookNode], object]] = {}
TEXTS: dict[str, Callable[[dict], object]] = {}


def odd(change: Callable[[NotebookNode], object]) -> None:
    ODD[change.__name__] = change


def odd_text(change: Callable[[dict], object]) -> None:
    """Of the JSON, which nbformat would put in order before it writes it."""
    TEXTS[change.__name__] = change


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def answer(notebook: NotebookNode, name: str) -> NotebookNode:
    """The cell in which the student wrote this function."""
    return next(
        cell for cell in code(notebook) if cell.source.startswith(f"def {name}")
    )


@odd
def huge_outputs(notebook):
    code(notebook)[1].outputs = [
        new_output("stream", name="stdout", text="0123456789\n" * 400_000)
    ]


@odd
def pictures_as_outputs(notebook):
    code(notebook)[1].outputs = [
        new_output("display_data", {"image/png": PNG * 5000}) for _ in range(20)
    ]


@odd
def outputs_of_every_kind(notebook):
    data = {
        "text/html": "<b>x</b>",
        "application/vnd.jupyter.widget-view+json": {"model_id": "a"},
        "text/latex": "$x$",
    }
    error = new_output(
        "error", ename="ValueError", evalue="x", traceback=["\x1b[31mValueError\x1b[0m"]
    )
    code(notebook)[1].outputs = [
        new_output("display_data", data),
        new_output("execute_result", data),
        error,
    ]


@odd
def a_thousand_cells(notebook):
    notebook.cells[1:1] = [
        new_code_cell(f"cell_{number} = {number}") for number in range(1000)
    ]


@odd
def other_languages(notebook):
    notebook.cells.insert(
        1, new_markdown_cell("注意力就是你所需要的。 הקשב. الانتباه 👩🏽‍🔬 Ὦ ξεῖν’")
    )
    notebook.cells.insert(
        2, new_code_cell("größe = 'ﬁ'  # 変数\nprint('مرحبا', größe)")
    )


@odd
def attached_pictures(notebook):
    cell = new_markdown_cell(
        "![my plot](attachment:my%20plot.png)",
        attachments={"my plot.png": {"image/png": PNG}},
    )
    notebook.cells.insert(1, cell)


@odd
def sliders_that_left_megabytes(notebook):
    state = {
        f"{place:032x}": {"model_name": "FloatSliderModel", "state": {"value": place}}
        for place in range(20_000)
    }
    notebook.metadata.widgets = {
        "application/vnd.jupyter.widget-state+json": {
            "version_major": 2,
            "state": state,
        }
    }


@odd
def metadata_of_editors(notebook):
    for cell in notebook.cells:
        cell.metadata |= {
            "collapsed": False,
            "scrolled": True,
            "jupyter": {"outputs_hidden": True},
            "vscode": {},
        }
        cell.metadata |= {
            "id": "Xy_12",
            "colab": {"base_uri": "https://localhost:8080/", "height": 34},
            "trusted": True,
        }
    notebook.metadata |= {
        "colab": {"provenance": []},
        "toc": {"base_numbering": 1},
        "varInspector": {"cols": {"a": 4}},
    }


@odd
def a_slide_show(notebook):
    for cell in notebook.cells:
        cell.metadata.slideshow = {"slide_type": "slide"}


@odd
def tags_and_comments(notebook):
    for cell in notebook.cells:
        cell.metadata.tags = ["mine", "hide-input", "2026"]


@odd
def raw_cells(notebook):
    notebook.cells.insert(
        1,
        new_raw_cell(
            "---\ntitle: mine\n---", metadata={"raw_mimetype": "text/restructuredtext"}
        ),
    )


@odd
def html_in_text(notebook):
    notebook.cells.insert(
        1,
        new_markdown_cell(
            "<table><tr><td>a &lt; b<br>c</td></tr></table> <!-- mine -->"
        ),
    )


@odd
def much_latex(notebook):
    notebook.cells.insert(
        1, new_markdown_cell("$$\\sum_{i<j} \\left[\\frac{a_i}{b_j}\\right]$$\n" * 3000)
    )


@odd
def a_long_written_answer(notebook):
    notebook.cells[-1].source = "Because of the scale. " * 20_000


@odd
def magic_commands(notebook):
    notebook.cells.insert(
        1,
        new_code_cell(
            "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'"
        ),
    )
    notebook.cells.insert(2, new_code_cell("!echo mine\n?len"))
    notebook.cells.insert(3, new_code_cell("%%timeit -n 1 -r 1\nsum(range(10))"))


@odd
def a_cell_that_fails(notebook):
    notebook.cells.append(new_code_cell("this is no Python at all"))
    notebook.cells.append(new_code_cell("1 / 0"))


@odd
def empty_cells(notebook):
    notebook.cells = [
        part
        for cell in notebook.cells
        for part in (cell, new_code_cell(""), new_markdown_cell("\n"))
    ]


@odd
def a_table_of_numbers(notebook):
    notebook.cells.insert(
        1,
        new_code_cell(
            "table = [\n" + "    [0.123456789, 0.987654321, 42],\n" * 8000 + "]"
        ),
    )


@odd
def long_lines(notebook):
    notebook.cells.insert(1, new_code_cell("text = '" + "attention " * 20_000 + "'"))


@odd
def code_that_is_commented_out(notebook):
    answer(notebook, "scale").source += "\n" + "# a try that did not work\n" * 3000


@odd
def tabs_and_windows_line_ends(notebook):
    answer(notebook, "scale").source = "def scale(x):\r\n\treturn 2 * x\r\n"


@odd
def nested_as_people_nest(notebook):
    lines = ["    " * depth + f"if {depth} >= 0:" for depth in range(15)]
    notebook.cells.insert(
        1,
        new_code_cell(
            "\n".join([*lines, "    " * 15 + "deep = " + "(" * 30 + "1" + ")" * 30])
        ),
    )


@odd
def answers_in_several_cells(notebook):
    cell = answer(notebook, "scale")
    place = notebook.cells.index(cell)
    cell.source = "def scale(x):\n    return factor() * x"
    notebook.cells.insert(place, new_code_cell("def factor():\n    return 2"))


@odd
def a_right_answer_with_types_and_docstring(notebook):
    answer(notebook, "count").source = (
        'def count(words: list[str]) -> int:\n    """Count them."""\n    return sum(1'
        " for _ in words)"
    )


@odd
def execution_counts(notebook):
    for number, cell in enumerate(code(notebook)):
        cell.execution_count = 900 - number


@odd
def another_kernels_name(notebook):
    notebook.metadata.kernelspec = {
        "name": "conda-env-bert-py",
        "display_name": "bert (3.13)",
        "language": "python",
    }
    notebook.metadata.language_info = {
        "name": "python",
        "version": "3.13.1",
        "codemirror_mode": {"name": "ipython"},
    }


@odd_text
def format_4_0_without_ids(content):
    content["nbformat_minor"] = 0
    for cell in content["cells"]:
        cell.pop("id", None)


@odd_text
def ids_that_are_there_twice(content):
    for cell in content["cells"]:
        cell["id"] = "same"


@odd_text
def sources_as_lists_of_lines(content):
    for cell in content["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)


@odd_text
def a_kernel_that_is_not_named(content):
    content["metadata"] = {}


@odd_text
def keys_in_another_order(content):
    content["cells"] = [dict(reversed(cell.items())) for cell in content["cells"]]


@odd_text
def nothing_else_than_format_3(content):
    old = nbformat.convert(nbformat.from_dict(content), 3)
    content.clear()
    content.update(json.loads(json.dumps(old)))


#: What `make test` grades.
SOME = (
    "huge_outputs",
    "sliders_that_left_megabytes",
    "magic_commands",
    "a_cell_that_fails",
    "tabs_and_windows_line_ends",
    "answers_in_several_cells",
    "a_long_written_answer",
    "format_4_0_without_ids",
    "sources_as_lists_of_lines",
    "nothing_else_than_format_3",
)
CLASS = ODD | TEXTS if WHOLE else {name: (ODD | TEXTS)[name] for name in SOME}


@pytest.fixture(scope="module")
def marks(tmp_path_factory):
    """One class of all of them."""
    need_a_sandbox()
    classroom = open_class(tmp_path_factory.mktemp("odd") / "course")
    for name, change in CLASS.items():
        notebook = answered(classroom)
        if name in ODD:
            change(notebook)
        content = json.loads(json.dumps(notebook))
        if name in TEXTS:
            change(content)
        place = Path(classroom.root, "submitted", name, "mini", "mini.ipynb")
        place.parent.mkdir(parents=True)
        place.write_text(
            json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8"
        )
    report = grade("mini", classroom.root, workers=2, limits=LIMITS)
    assert [
        (result.student, result.problem) for result in report.results if result.problem
    ] == []
    return classroom.scores_of_all("mini")


def test_there_are_thirty_of_them():
    assert len(ODD | TEXTS) >= 30


@pytest.mark.parametrize("name", CLASS)
def test_an_odd_notebook_gets_the_marks_of_its_answers(marks, name):
    written = None if name == "a_long_written_answer" else 0.0
    assert marks[name] == POINTS | {"why": written}
