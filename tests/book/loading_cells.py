"""A program: of each page, run the statements that load records, checkpoints and
corpora, with what they need.

A statement loads if it names a shipped folder or calls a function, of the library or of
the page, that comes to one or to `course_lib.data.load`. It runs after the earlier
statements that bind the names it uses; where one of these trains a model, it is left
out. Standard input: page -> the code of its cells, the set-up first. Standard output:
page -> the cells that ran and the statements that were left out; and all files that
were opened.
"""

import __future__

import ast
import contextlib
import inspect
import io
import json
import sys
import time
import types
from pathlib import Path

from course_lib.data import load
from course_lib.files import CHECKPOINTS, EXERCISES, RESULTS

PAGE = "page"  # the module of a page's own functions
OPENED = set()


def reaches(thing, wanted):
    """Whether `wanted` holds for a thing, or for what it uses where it is a function of
    the library or of a page."""
    waiting, seen = [thing], set()
    while waiting:
        thing = waiting.pop()
        if wanted(thing):
            return True
        thing = inspect.unwrap(thing) if callable(thing) else thing
        ours = ("course_lib", "course_lab", PAGE)
        if (
            isinstance(thing, types.FunctionType)
            and thing.__module__.partition(".")[0] in ours
        ):
            if thing not in seen:
                waiting += uses(thing)
            seen.add(thing)
    return False


def uses(function):
    """A function's default values, and all that it names: the words, and the objects
    that they stand for."""
    yield from function.__defaults__ or ()
    for code in codes(function.__code__):
        yield from code.co_names
        for name in code.co_names:
            found = function.__globals__.get(name)
            yield found
            if isinstance(found, types.ModuleType):
                yield from (getattr(found, other, None) for other in code.co_names)


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def loads(thing):
    folders = (RESULTS, CHECKPOINTS, EXERCISES)
    return reaches(
        thing,
        lambda it: (
            it is load
            or (isinstance(it, Path) and any(map(it.is_relative_to, folders)))
        ),
    )


def trains(thing):
    return reaches(thing, lambda it: isinstance(it, str) and it == "backward")


def named(node, namespace):
    """The objects that a statement names."""
    for part in ast.walk(node):
        with contextlib.suppress(KeyError, AttributeError):
            if isinstance(part, ast.Name):
                yield namespace[part.id]
            elif isinstance(part, ast.Attribute):
                yield part.attr
                yield dotted(part, namespace)


def dotted(node, namespace):
    if isinstance(node, ast.Name):
        return namespace[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(dotted(node.value, namespace), node.attr)
    raise KeyError(node)


def binds(node):
    """The names that a statement gives to the page: no variable of a comprehension."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    stored = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return stored & globals_of(node)


def reads(node):
    """The names that a statement takes from the page; a loop gives itself its
    variables."""
    loops = [part.target for part in ast.walk(node) if isinstance(part, ast.For)]
    own = {
        part.id
        for target in loops
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    }
    return {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name)
    } & globals_of(node) - own


def globals_of(node):
    return {
        name
        for code in codes(compile(ast.Module([node], []), PAGE, "exec"))
        for name in code.co_names
    }


def needed(last, statements):
    """Indices of a statement and of the earlier ones that bind what it uses, and what
    these use, in their order."""
    chosen, waiting = {last}, [last]
    while waiting:
        number = waiting.pop()
        names = reads(statements[number])
        found = {
            earlier for earlier in range(number) if binds(statements[earlier]) & names
        } - chosen
        chosen |= found
        waiting += found
    return sorted(chosen)


def execute(nodes, namespace):
    annotations = __future__.annotations.compiler_flag
    exec(compile(ast.Module(nodes, []), PAGE, "exec", annotations), namespace)  # noqa: S102


def definition(node):
    """A function of a page without what its definition would compute."""
    arguments = [
        ast.arg(part.arg) for part in ast.walk(node.args) if isinstance(part, ast.arg)
    ]
    plain = ast.FunctionDef(
        node.name, ast.arguments([], arguments, None, [], [], None, []), node.body, []
    )
    return ast.fix_missing_locations(ast.copy_location(plain, node))


def run_page(cells):
    pairs = [
        (cell, node) for cell, code in enumerate(cells) for node in ast.parse(code).body
    ]
    statements = [node for _, node in pairs]
    namespace, done = {"__name__": PAGE}, set()
    imports = [
        node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    functions = [
        definition(node) for node in statements if isinstance(node, ast.FunctionDef)
    ]
    known = {"__name__": PAGE}
    execute([*imports, *functions], known)
    ran, left_out, begin = [], [], time.process_time()
    for number, (cell, node) in enumerate(pairs):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) or not any(
            map(loads, named(node, known | namespace))
        ):
            continue
        chosen = needed(number, statements)
        if any(
            trains(thing)
            for other in chosen
            for thing in named(statements[other], known | namespace)
        ):
            left_out.append(f"cell {cell}: {ast.unparse(node)}")
            continue
        execute([statements[other] for other in chosen if other not in done], namespace)
        done |= set(chosen)
        ran.append(cell)
    return {
        "ran": sorted(set(ran)),
        "left_out": left_out,
        "seconds": time.process_time() - begin,
    }


if __name__ == "__main__":
    sys.addaudithook(
        lambda event, values: OPENED.add(str(values[0])) if event == "open" else None
    )
    pages = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        told = {page: run_page(cells) for page, cells in pages.items()}
    print(json.dumps({"pages": told, "opened": sorted(OPENED)}))
