"""Docstrings: one sentence everywhere, all of numpydoc for the public names (design,
"Library conventions"). Each test lists its offenders."""

import ast
import re

from house import library_modules, module_name, parse
from public_names import public_names


def docstring(node):
    return ast.get_docstring(node) or ""


def definitions(tree):
    """Return a module's functions and classes that are not hidden: name -> syntax."""
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not node.name.endswith("Error")
        and not {ast.unparse(mark) for mark in node.decorator_list}
        & {"overload", "typing.overload"}
    }


def of_public_names():
    """Yield each public name of the library with its syntax."""
    trees = {module_name(path): parse(path) for path in library_modules()}
    for name, module in public_names().items():
        found = definitions(trees[module]).get(name)
        if found is not None:  # not one that a package only hands on
            yield f"{module}.{name}", found


def test_every_module_and_every_name_begins_with_one_sentence():
    without = []
    for path in library_modules():
        tree = parse(path)
        parts = {"the module": tree, **definitions(tree)}
        without += [
            f"{module_name(path)}: {name}"
            for name, node in parts.items()
            if not docstring(node).split("\n\n")[0].endswith((".", "::", "?"))
        ]
    assert without == []


def shows_an_example(node):
    """Say whether a name has a doctest, in one of its methods perhaps, or is a record
    of fields, which needs none."""
    methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
    marks = [*node.decorator_list, *getattr(node, "bases", [])]
    records = ("dataclass", "NamedTuple", "Protocol", "TypedDict")
    is_record = any(ast.unparse(mark).startswith(records) for mark in marks)
    return is_record or any(">>> " in docstring(part) for part in [node, *methods])


def test_every_public_name_shows_an_example_that_runs():
    assert [
        name for name, node in of_public_names() if not shows_an_example(node)
    ] == []


def test_no_example_is_skipped():
    skip = "doctest: " + "+SKIP"
    assert [path for path in library_modules() if skip in path.read_text("utf-8")] == []


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
    return [each.arg for each in names if each and each.arg not in {"self", "cls"}]


def test_every_parameter_of_a_public_function_is_described_in_its_order():
    functions = {
        name: node
        for name, node in of_public_names()
        if isinstance(node, ast.FunctionDef) and parameters(node)
    }
    differing = {
        name: (parameters(node), documented_parameters(docstring(node)))
        for name, node in functions.items()
        if parameters(node) != documented_parameters(docstring(node))
    }
    assert differing == {}, "numpydoc: a section Parameters, each name, in this order"


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
