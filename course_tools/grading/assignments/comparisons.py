"""Comparing hidden tests: put into an instructor's notebook, and told what to expect.

A line ``# {compare:function}`` of a hidden test in ``solutions/<name>/<name>.py``
becomes code that carries the text of
:mod:`course_tools.grading.assignments.comparing`, of
:mod:`course_tools.grading.assignments.parting` and of ``solutions/<name>/hidden.py``,
so that it runs wherever the notebook does. ``# {compare:function as wrong}`` refuses
nothing: it lets ``wrong`` be what is wrong, by output. ``# {compare:bert/function}``
takes what another assignment compares, of which this one has a part.
"""

import base64
import functools
import hashlib
import os
import re
import secrets
import zlib
from pathlib import Path
from typing import Any

LINE = re.compile(
    r"^# \{compare:(?:(?P<other>[\w-]+)/)?(?P<label>\w+)(?: as (?P<wrong>\w+))?\}$",
    re.MULTILINE,
)
OWN_IMPORT = re.compile(
    r"^from course_tools\.[\w.]+\.comparing import (?:\([^)]*\)|.*)$", re.MULTILINE
)
CODE = """\
import base64, zlib
hidden = {{"TEXT": zlib.decompress(base64.b64decode("{packed}")).decode()}}
exec(hidden["TEXT"], hidden)
{assigned}hidden["{verb}"]("{function}", {seed}, globals())"""
WRITTEN = re.compile(
    r'b64decode\("([\w+/=]+)"\).*\nexec.*\n.*hidden\["\w+"\]\("(\w+)", (\d+), globals'
)


#: Beside ``nbgrader_config.py``, and in no repository.
SECRET = "course-secret.txt"


def secret_of(root: Path) -> str:
    """The class's own secret; without one its hidden inputs are the public ones."""
    place = root / SECRET
    return place.read_text(encoding="ascii").strip() if place.is_file() else ""


def make_secret(root: Path) -> bool:
    """Draw a secret for the class of a folder; leave one that is there."""
    ignored = root / ".gitignore"
    lines = ignored.read_text("utf-8").splitlines() if ignored.is_file() else []
    if SECRET not in lines:
        ignored.write_text("\n".join([*lines, SECRET, ""]), encoding="utf-8")
    try:
        place = os.open(root / SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with open(place, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_hex(16)}\n")
    return True


def seed_of(assignment: str, function: str, secret: str = "") -> int:
    """The seed of a function's inputs: the one place where they are chosen."""
    state = hashlib.sha256(f"{secret}\0{assignment}\0{function}".encode()).digest()
    return int.from_bytes(state[:4], "big")


def with_comparisons(source: str, path: Path) -> str:
    """Put code in the place of the lines of a cell that ask for comparisons."""
    if not LINE.search(source):
        return source
    secret = secret_of(path.parents[2])  # the folder of solutions/NAME/NAME.py

    def code(found: re.Match[str]) -> str:
        function, wrong = found["label"], found["wrong"]
        place = path.parents[1] / (found["other"] or path.parent.name)
        return CODE.format(
            packed=_packed(place / "hidden.py"),
            assigned=f"{wrong} = " if wrong else "",
            verb="complaints" if wrong else "compare",
            function=function,
            seed=seed_of(path.stem, function, secret),
        )

    return LINE.sub(code, source)


def _packed(hidden: Path) -> str:
    """The text of an assignment's comparisons, as it stands in a notebook."""
    halves = [Path(__file__).with_name(name) for name in ("comparing.py", "parting.py")]
    own = "\n\n".join(file.read_text(encoding="utf-8") for file in [*halves, hidden])
    text = OWN_IMPORT.sub("", own)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def compares(source: str) -> bool:
    """Say whether a test cell compares an answer with a reference."""
    return WRITTEN.search(source) is not None


def asked_of(source: str) -> set[str]:
    """The names of the notebook that a cell's comparisons use."""
    found: set[str] = set()
    for packed, label, _ in WRITTEN.findall(source):
        one = _scope(packed)["COMPARISONS"][label]
        found |= {one.name, *one.given}
    return found


@functools.cache
def expected(source: str) -> dict[str, Any]:
    """What the references of a test cell give, told where no student's code runs."""
    found: dict[str, Any] = {}
    for packed, function, seed in WRITTEN.findall(source):
        scope = _scope(packed)
        name = scope["key"](scope["TEXT"], function, int(seed))
        found[name] = scope["references"](function, int(seed))
    return found


@functools.cache
def _scope(packed: str) -> dict[str, Any]:
    """What the text of an assignment's comparisons defines."""
    text = zlib.decompress(base64.b64decode(packed)).decode()
    scope: dict[str, Any] = {"TEXT": text, "__name__": "hidden"}
    exec(text, scope)  # noqa: S102 - the instructor's own
    return scope
