"""What a hidden test may say to a student: its words, none of its lines and values.

A test cell knows in which of its lines it failed. Said is what the instructor wrote
there for the student: the message of an assert, the sentences that a helper was given,
or what a comparison says of the kind of input. Where a text has a value in it, or a
word that the student's code has chosen, an ellipsis stands. So a student's code can
choose among an instructor's sentences, and add nothing to them.
"""

import ast
import re
import traceback
from typing import Any

#: nbgrader's own marks around what is hidden.
MARKS = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"
LEFT_OUT = "…"
#: What a test says where an answer is as it was released: it raises an error.
NOT_STARTED = "cannot pass: a part that it needs is not started"
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
QUOTED = re.compile(r"(?<!\w)'[^']+'(?!\w)|\"[^\"]+\"|`[^`]+`")
#: In a comparison's words: where a student's own begin.
RAISES = re.compile(r" raises\b.*", re.DOTALL)
YOURS = re.compile(r"; yours is a .*|, not \w+$", re.DOTALL)
COMPARES = re.compile(r"hidden\[['\"](?:compare|complaints)['\"]\]")


def hidden_lines(source: str, marks: tuple[str, str] = MARKS) -> set[int]:
    """The lines of a cell, from 1, that students do not get, marks included."""
    found, inside = set(), False
    for number, line in enumerate(source.split("\n"), start=1):
        inside = inside or marks[0] in line
        if inside or marks[1] in line:
            found.add(number)
        inside = inside and marks[1] not in line
    return found


def visible(source: str, hidden: set[int]) -> str:
    """A cell as students get it."""
    lines = enumerate(source.split("\n"), start=1)
    return "\n".join(line for number, line in lines if number not in hidden)


def own_words(
    raised: BaseException | None, source: str, scope: dict[str, Any], job: dict
) -> str:
    """The instructor's own words of what a test raised in the referee's process."""
    if type(raised) is not AssertionError:
        return ""
    frames = [*traceback.walk_tb(raised.__traceback__)]
    line = next((n for frame, n in frames if frame.f_globals is scope), 0)
    # raised by a test, or by what a comparison carries with it? Else a student's
    # process has sent the message
    last = frames[-1][0].f_globals
    message = str(raised) if last is scope or "TEXT" in last else ""
    shown = [step for step in job["steps"] if step["kind"] in ("given", "test")]
    seen = "\n".join(step.get("visible", step["source"]) for step in shown)
    return in_words(source, line, message, seen)


def in_words(source: str, line: int, message: str, seen: str) -> str:
    """What a test that failed in a line says; nothing, where it was given no words.

    Parameters
    ----------
    source, line, message
        Of the cell, and of the error that it ended in.
    seen
        What students have of the notebook: a value that stands there is not hidden.
    """
    statement = _statement(source, line)
    if statement is None:
        return ""
    if COMPARES.search(ast.unparse(statement)):
        told = YOURS.sub("", RAISES.sub(" raises an error", message))
    elif isinstance(statement, ast.Assert):
        told = _text(statement.msg)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        texts = map(_text, [*call.args, *(word.value for word in call.keywords)])
        told = ". ".join(
            text.rstrip(".")
            for text in texts
            if len(text.split()) > 1
            if text.partition(LEFT_OUT)[0] in message
        )
    else:
        return ""
    return without_values(told, seen)


def without_values(text: str, seen: str) -> str:
    """A text without the numbers, and what is quoted, that students have not seen."""
    numbers = {*NUMBER.findall(seen)}
    text = QUOTED.sub(lambda at: at[0] if at[0][1:-1] in seen else LEFT_OUT, text)
    return NUMBER.sub(lambda at: at[0] if at[0] in numbers else LEFT_OUT, text)


def _statement(source: str, line: int) -> ast.stmt | None:
    """The innermost statement of a line."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):  # IPython's own, say
        return None
    found = [
        node
        for node in nodes
        if isinstance(node, ast.stmt)
        if node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(found, key=lambda node: (node.lineno, node.col_offset), default=None)


def _text(node: ast.expr | None) -> str:
    """The fixed parts of a text that stands in the code."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.FormattedValue):
        return LEFT_OUT
    plain = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if plain else ""  # type: ignore[union-attr]
