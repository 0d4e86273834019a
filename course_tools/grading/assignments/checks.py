"""Implementations that mark a student's check, packed into the test cell of the check.

``solutions/<name>/checks.py`` has the name of the function (``FUNCTION``), texts of
right implementations by name (``RIGHT``; the first is the reference), ``WRONG`` ones,
each a kind of mistake, a name, a text in the reference and a text to put there, and
the names of the three that students know of (``VISIBLE``). A line ``# {checks:check}``
becomes code by which ``slipped`` has the words about these three and a right one;
``# {checks:check hidden}`` code by which ``points`` has what all others give
(:mod:`course_tools.grading.assignments.marking_checks`).
"""

import base64
import re
import runpy
import zlib
from pathlib import Path

from course_tools.grading.assignments import marking_checks
from course_tools.grading.assignments.marking_checks import KINDS, Row

#: What ``{marked-by}`` stands for in the text of such a part.
MARKED_BY = """\
**How your check is marked.** It is handed some thirty wrong implementations, each with
one mistake that people make, and six right ones that are written differently, in an
order that nobody knows, some of them twice. It sees what it puts in and what comes out,
and nothing else. If it refuses a right one, it earns nothing. Else it earns everything
if it refuses all wrong ones, less for each one that passes, and nothing if half of them
do. You know three of the wrong ones by name: the test below says whether they pass.

Test what the text demands, and nothing else. Any error refuses an implementation, be it
that of an `assert` of yours, or one that comes out of the call. Keep inputs small, with
1,000 entries at most, and call one implementation 200 times at most. What you draw at
random is the same for each of them, so you need no seed."""
LINE = re.compile(r"^# \{checks:(\w+)( hidden)?\}$", re.MULTILINE)
CODE = """\
import base64, zlib
tried = {{}}
exec(zlib.decompress(base64.b64decode("{packed}")).decode(), tried)
{does}"""
VISIBLE = 'slipped = tried["slipped"]({check})'
HIDDEN = 'points = tried["points"]({check}, {points:g})'


def implementations(path: Path) -> tuple[str, list[Row], list[Row]]:
    """Read a ``checks.py``: the function's name, what students have, what is hidden."""
    told = runpy.run_path(str(path))
    right = [Row("", name, source) for name, source in told["RIGHT"].items()]
    wrong = [
        Row(kind, name, _changed(right[0], old, new))
        for kind, name, old, new in told["WRONG"]
    ]
    seen = [row for row in wrong if row.name in told["VISIBLE"]]
    kinds, names = ({row[part] for row in wrong} for part in (0, 1))
    missing = len(seen) < len(told["VISIBLE"]) or len(names) < len(wrong)
    if missing or not kinds <= KINDS:
        raise ValueError(f"{path}: a kind or a name that is unknown or there twice")
    hidden = [row for row in wrong if row not in seen]
    return told["FUNCTION"], [*seen, right[0]], hidden + right


def _changed(reference: Row, old: str, new: str) -> str:
    if reference.source.count(old) != 1:
        raise ValueError(f"choose a text that the reference holds once, not {old!r}")
    return reference.source.replace(old, new)


def with_checks(source: str, path: Path, points: float) -> str:
    """Put code in the place of the lines of a cell that ask for implementations."""

    def code(found: re.Match[str]) -> str:
        name, visible, hidden = implementations(path.with_name("checks.py"))
        rows = [tuple(row) for row in (hidden if found[2] else visible)]
        text = Path(marking_checks.__file__).read_text(encoding="utf-8")
        text += f"\n\nFUNCTION = {name!r}\nROWS = [Row(*row) for row in {rows!r}]\n"
        packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        does = (HIDDEN if found[2] else VISIBLE).format(check=found[1], points=points)
        return CODE.format(packed=packed, does=does)

    return LINE.sub(code, source)
