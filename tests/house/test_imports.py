"""The library reads in the order of the chapters: who may import whom (design, "The
house")."""

import ast
from pathlib import Path

import pytest
from house import (
    CONCEPTS,
    HEADS,
    ON_THE_LOOP,
    SERVICES,
    library_modules,
    module_name,
    parse,
)


def imported_modules(
    tree: ast.Module, module: str, is_package: bool = False
) -> set[str]:
    """Return the top-level modules of course_lib that a module imports, anywhere in its
    text."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, node.module] if node.module else base)
            names.add(stem)
            names.update(f"{stem}.{alias.name}" for alias in node.names)
    parts = [name.split(".") for name in names]
    return {name[1] for name in parts if name[0] == "course_lib" and len(name) > 1}


def forbidden_imports(path: Path) -> set[str]:
    """Return the imports of a module that the direction of imports forbids."""
    module = module_name(path)
    imports = imported_modules(
        parse(path), module, is_package=path.name == "__init__.py"
    )
    known = {*CONCEPTS, *SERVICES, *HEADS}
    own = module.split(".")[1] if "." in module else ""
    imports = {name for name in imports if name in known} - {own}
    if own in CONCEPTS:
        return (
            imports - set(CONCEPTS[: CONCEPTS.index(own)]) - ON_THE_LOOP.get(own, set())
        )
    if own in SERVICES:
        return imports & {*CONCEPTS, *HEADS}
    return set()


@pytest.mark.parametrize("path", library_modules(), ids=module_name)
def test_imports_run_in_the_order_of_the_chapters(path):
    assert not forbidden_imports(path), (
        f"{module_name(path)} imports {sorted(forbidden_imports(path))}: a concept"
        " imports only earlier concepts ({}), and a service imports no concept".format(
            ", ".join(CONCEPTS)
        )
    )


def test_every_module_has_its_place_in_the_house():
    top_level = {
        module_name(path).split(".")[1]
        for path in library_modules()
        if "." in module_name(path)
    }
    assert top_level <= {*CONCEPTS, *SERVICES, *HEADS}, (
        f"{sorted(top_level - {*CONCEPTS, *SERVICES, *HEADS})} is new: say in"
        " tests/house what it is, a concept (and where in the order), a service, or a"
        " head"
    )


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("import course_lib.seq2seq as s", "course_lib.attention", {"seq2seq"}),
        ("from course_lib import decoding", "course_lib.attention", {"decoding"}),
        (
            "from course_lib.data.translation import generate",
            "course_lib.attention",
            {"data"},
        ),
        ("from . import cli", "course_lib.attention", {"cli"}),
        ("from .plotting import heatmap", "course_lib.attention", {"plotting"}),
        ("from ..plotting import heatmap", "course_lib.data.cards", {"plotting"}),
        (
            "def f():\n    from course_lib.training import device",
            "course_lib.attention",
            {"training"},
        ),
        ("import torch\nfrom collections import abc", "course_lib.attention", set()),
    ],
)
def test_every_way_to_write_an_import_is_seen(source, module, expected):
    assert (
        imported_modules(ast.parse(source), module) & {*CONCEPTS, *SERVICES, *HEADS}
        == expected
    )
