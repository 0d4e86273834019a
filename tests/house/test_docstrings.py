"""Each public name says what it does, shows it, and names its chapter (design, "Library
conventions")."""

import ast
import re

import pytest
from house import CONCEPTS, HEADS, LIBRARY, ROOT, library_modules, module_name, parse

MODULES = [
    path for path in library_modules() if path.read_text(encoding="utf-8").strip()
]
CONCEPT_MODULES = [
    LIBRARY / f"{concept}.py"
    for concept in CONCEPTS
    if (LIBRARY / f"{concept}.py").exists()
]
# A command, an experiment or a grader acts on files and machines: tests show these at
# work better than a docstring can.
READ_BY_STUDENTS = [
    path
    for path in MODULES
    if module_name(path).split(".")[1:2] not in [[head] for head in HEADS]
]
CHAPTER = re.compile(r"^ *Chapter: ([a-z0-9-]+)$", re.MULTILINE)


def public_definitions(path):
    """Return the public functions and classes of a module, without errors and
    overloads: name -> syntax."""
    nodes = [
        node
        for node in parse(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return {
        node.name: node
        for node in nodes
        if not node.name.startswith("_")
        and not node.name.endswith("Error")
        and not {"overload", "typing.overload"}
        & {ast.unparse(decorator) for decorator in node.decorator_list}
    }


def docstring(node):
    return ast.get_docstring(node) or ""


def shows_an_example(node):
    """Say whether a name has a doctest, in one of its methods perhaps, or is a record
    of fields, which needs none."""
    methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
    marks = [*node.decorator_list, *getattr(node, "bases", [])]
    declared = any(
        ast.unparse(mark).startswith(
            ("dataclass", "NamedTuple", "Protocol", "TypedDict")
        )
        for mark in marks
    )
    is_record = declared or (
        isinstance(node, ast.ClassDef)
        and {method.name for method in methods} == {"__init__"}
    )
    return is_record or any(">>> " in docstring(part) for part in [node, *methods])


def labels_of_the_book():
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "book").glob("*.md")]
    return {
        label
        for page in pages
        for label in re.findall(r"^\(([a-z0-9-]+)\)=$", page, re.MULTILINE)
    }


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_module_and_public_name_begins_with_one_sentence(path):
    first_paragraphs = {
        name: docstring(node).split("\n\n")[0]
        for name, node in {
            "the module": parse(path),
            **public_definitions(path),
        }.items()
    }
    assert {
        name
        for name, first in first_paragraphs.items()
        if not first.endswith((".", "::", "?"))
    } == set()


@pytest.mark.parametrize("path", READ_BY_STUDENTS, ids=module_name)
def test_every_public_name_shows_an_example_that_runs(path):
    assert {
        name
        for name, node in public_definitions(path).items()
        if not shows_an_example(node)
    } == set()


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_no_example_is_skipped(path):
    assert "doctest: " + "+SKIP" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", CONCEPT_MODULES, ids=module_name)
def test_every_name_of_a_concept_links_to_the_chapter_that_teaches_it(path):
    chapters = {
        name: CHAPTER.findall(docstring(node))
        for name, node in public_definitions(path).items()
    }
    assert {
        name: labels for name, labels in chapters.items() if len(labels) != 1
    } == {}, "Chapter: <label>, once"
    assert {
        label for labels in chapters.values() for label in labels
    } <= labels_of_the_book()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """F.\n\n    >>> f()\n    1\n    """', True),
        (
            (
                'class A:\n    def f(self):\n        """F.\n\n        >>> A().f()\n    '
                '    1\n        """'
            ),
            True,
        ),
        ('@dataclass(frozen=True)\nclass Record:\n    """R."""\n    field: int', True),
        ('def f():\n    """F."""', False),
        ('class A:\n    """A."""\n    def f(self):\n        """F."""', False),
    ],
)
def test_an_example_is_seen_where_it_may_stand(source, expected):
    assert shows_an_example(ast.parse(source).body[0]) is expected


def documented_parameters(text):
    """Return the names in the numpydoc section Parameters, several on a line perhaps;
    None without such a section."""
    section = re.search(
        r"^Parameters\n-+\n((?:(?:\S| {4}).*\n?|\n(?! *\S+\n *-+\n))*)",
        text + "\n",
        re.MULTILINE,
    )
    if section is None:
        return None
    heads = [
        line.split(":")[0]
        for line in section[1].splitlines()
        if line and not line.startswith(" ")
    ]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def parameters(node):
    """Return the names that a caller of a function passes."""
    arguments = node.args
    names = [
        *arguments.posonlyargs,
        *arguments.args,
        arguments.vararg,
        *arguments.kwonlyargs,
        arguments.kwarg,
    ]
    return [
        argument.arg
        for argument in names
        if argument and argument.arg not in {"self", "cls"}
    ]


def functions_with_parameters(path):
    return {
        name: node
        for name, node in public_definitions(path).items()
        if isinstance(node, ast.FunctionDef) and parameters(node)
    }


@pytest.mark.parametrize("path", READ_BY_STUDENTS, ids=module_name)
def test_every_parameter_of_a_function_is_described_in_its_order(path):
    differing = {
        name: (parameters(node), documented_parameters(docstring(node)))
        for name, node in functions_with_parameters(path).items()
        if parameters(node) != documented_parameters(docstring(node))
    }
    assert differing == {}, (
        "numpydoc: a section Parameters with each name of the signature, in the same"
        " order"
    )


def test_the_names_of_parameters_are_read_off_a_docstring():
    text = """One.

Parameters
----------
query, key : Tensor
    Both.
mask
    It.

    More of it.

Returns
-------
Tensor
    Sum.
"""
    assert documented_parameters(text) == ["query", "key", "mask"]
    assert documented_parameters("One.") is None
