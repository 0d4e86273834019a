"""The book's sources: no outputs in git, every page reachable, every symbol and
reference accounted for."""

import ast
import re
import subprocess
from itertools import chain

import nbformat
import yaml
from cases import for_each
from places import BOOK, ROOT
from pybtex.database import parse_file

from course_lab import records
from course_tools.claims.check import chapter_pages

CHAPTERS = [BOOK / f"{stem}.md" for stem in chapter_pages(BOOK).values()]
PAGES = sorted(BOOK.glob("*.md"))
ASSIGNMENT_TO_COME = re.findall(
    r"\(book/([\w-]+)\.md\).*\| to come \|$",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
CODE_CELL = re.compile(
    r"^```\{code-cell\}.*?\n(?:---\n(?P<options>.*?)^---\n)?(?P<code>.*?)^```",
    re.M | re.S,
)
ALT_OF_IMAGE = re.compile(r"^:alt: (.*)|!\[([^\]]*)\]", re.MULTILINE)
GLUED = re.compile(r"\{glue:text\}`[^`]*`")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
FEW = "an?|one|two|three|four|five|six|seven|eight|nine"
PART = (
    rf"(?:{FEW}) in (?:ten|a \w+)|(?:{FEW})"
    r" (?:third|quarter|fifth|eighth|tenth|sixteenth|twentieth)s?"
)
ROUGH = (
    r"(?:about|above|almost|below|near|nearly|under)"
    rf" (?:[1-9]\d*|0\.\d+|half(?!-)|{FEW.removeprefix('an?|')})"
)
MEASURED = re.compile(rf"\b(?:{PART}|{ROUGH})\b")
ARRAYS = {
    "Bool",
    "Complex",
    "Float",
    "Inexact",
    "Int",
    "Integer",
    "Num",
    "Real",
    "Shaped",
    "UInt",
}


def listed(node: object) -> list[str]:
    """All `file` and `glob` entries of the table of contents, at any depth."""
    if isinstance(node, dict):
        own = [value for key, value in node.items() if key in ("file", "glob", "root")]
        return own + list(chain.from_iterable(map(listed, node.values())))
    return (
        list(chain.from_iterable(map(listed, node))) if isinstance(node, list) else []
    )


def test_every_page_is_in_the_table_of_contents():
    entries = listed(yaml.safe_load((BOOK / "_toc.yml").read_text()))
    for page in PAGES:
        assert page.stem in entries or any(
            page.relative_to(BOOK).with_suffix("").match(entry) for entry in entries
        ), f"{page.name} cannot be reached; add it to book/_toc.yml"


def test_no_output_and_no_built_page_is_committed():
    tracked = subprocess.run(
        ["git", "ls-files", "book"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "book/_toc.yml" in tracked
    unwanted = re.compile(
        r"\.ipynb$|\.html$|^(?!book/_static/).*\.png$|_generated/|_build/"
    )
    assert [name for name in tracked.splitlines() if unwanted.search(name)] == []


def test_dimension_letters_of_the_library_are_those_of_the_notation_table():
    used = set()
    for module in (ROOT / "course_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id in ARRAYS
            ):
                shapes = [
                    part.value
                    for part in ast.walk(node.slice)
                    if isinstance(part, ast.Constant)
                ]
                used |= set(re.findall(r"\b[A-Z]\b", " ".join(map(str, shapes))))
    section = (
        (BOOK / "notation.md")
        .read_text(encoding="utf-8")
        .partition("(dimension-letters)=")[2]
    )
    explained = re.findall(r"^\| `([A-Z])` \|", section, re.MULTILINE)
    assert {"B", "T", "S", "V"} <= used
    assert len(explained) == len(set(explained))
    assert set(explained) == used


def test_every_reference_is_cited_and_every_citation_has_a_reference():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    cited = {
        key.strip()
        for keys in re.findall(r"\{cite:[tp]\}`([^`]+)`", text)
        for key in keys.split(",")
    }
    assert cited == set(parse_file(str(BOOK / "references.bib")).entries)


def test_each_slide_leads_to_a_section_and_only_to_labels_that_are_there():
    """Sphinx says so too, but only when all pages have been executed."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    labels = r"^(?:\(([\w-]+)\)=| +name: (fig-[\w-]+)|:label: (ex-[\w-]+))$"
    there = set(chain.from_iterable(re.findall(labels, text, re.MULTILINE)))
    rows = re.findall(
        r"^\| (?!on the|---).*", (BOOK / "coverage.md").read_text("utf-8"), re.MULTILINE
    )
    assert len(rows) > 40
    for row in rows:
        section, picture, exercise = row.split("|")[2:5]
        assert set(re.findall(r"ref\}`([\w-]+)`", row)) <= there, row
        assert "{ref}`" in section, row
        assert picture.strip() == "" or "{numref}`fig-" in picture, row
        assert exercise.strip() == "" or "{ref}`ex-" in exercise, row


@for_each("chapter", CHAPTERS)
def test_a_chapter_has_its_parts_in_order(chapter):
    text = chapter.read_text(encoding="utf-8")
    parts = [
        "What you will be able to do",
        "Time",
        "{math}",
        "{literalinclude}",
        "Where it breaks",
        "Check yourself",
        "{quiz}",
    ]
    # README's table says which chapter has none yet
    parts += [] if chapter.stem in ASSIGNMENT_TO_COME else ["{assignment}`"]
    parts += ["Summary", "Further reading"]
    places = [text.find(part) for part in parts]
    assert -1 not in places, (
        "missing:"
        f" {[part for part, place in zip(parts, places, strict=True) if place < 0]}"
    )
    assert places == sorted(places), f"out of order: {parts}"
    assert ("{assignment}`" in text) == ("{assignment}`" in parts)
    assert re.search(r"^\([\w-]+\)=\n# ", text, re.MULTILINE), (
        "a chapter has a label before its title"
    )


@for_each("chapter", CHAPTERS)
def test_the_time_of_a_chapter_is_measured_not_typed(chapter):
    text = chapter.read_text(encoding="utf-8")
    assert "{glue:text}`cpu_seconds" in text
    assert "{glue:text}`peak_memory_gib" in text
    assert "chapter_cost()" in text[text.rfind("```{code-cell}") :], (
        "the last cell measures the whole chapter"
    )


def typed_measurements(text: str) -> list[str]:
    """What is measured and typed in a page's alt texts: numbers that no cell sets,
    parts of a whole, rough numbers."""
    cells = list(CODE_CELL.finditer(text))
    set_by_cells = set(
        NUMBER.findall("\n".join(cell["code"] for cell in cells).replace("_", ""))
    )
    options = [yaml.safe_load(cell["options"]) for cell in cells if cell["options"]]
    alts = [
        option["mystnb"]["image"]["alt"]
        for option in options
        if "image" in option.get("mystnb", {})
    ]
    found = []
    for alt in [*alts, *map("".join, ALT_OF_IMAGE.findall(text))]:
        typed = GLUED.sub("", alt)
        numbers = NUMBER.findall(re.sub(r"(?<=\d),(?=\d)", "", typed))
        found += [
            number for number in numbers if number not in set_by_cells
        ] + MEASURED.findall(typed)
    return found


@for_each("page", PAGES)
def test_measured_numbers_in_an_alt_text_are_injected(page):
    """As in prose, {glue:text}`key:.1f`; else they go stale, and only who cannot see
    the figure reads them."""
    assert typed_measurements(page.read_text(encoding="utf-8")) == []


@for_each(
    ("alt", "found"),
    [
        ("The line begins above 87, at {glue:text}`first:.1f`.", ["87", "above 87"]),
        ("With attention nine in ten are exact.", ["nine in ten"]),
        ("It falls from about half to a twentieth.", ["about half", "a twentieth"]),
        (
            "Against width, from 4 to 1,024, three seeds: at 1,024 it ends at 0.31.",
            ["0.31"],
        ),
        ("It stays near {glue:text}`last:.2f` and far above zero.", []),
    ],
)
def test_a_typed_measurement_is_seen(alt, found):
    cell = (
        "```{code-cell} ipython3\n---\nmystnb:\n  image:\n    alt: >-\n     "
        f" {alt}\n---\nwidths = [4, 1024]\n```\n"
    )
    assert sorted(typed_measurements(cell)) == sorted(found)


def unmarked(text: str) -> list[str]:
    """Name the stale records that a page loads without showing their note."""
    cells = [cell["code"] for cell in CODE_CELL.finditer(text)]
    code = "\n".join(re.sub(r"^(?::tags:|[%!]).*", "", x, flags=re.M) for x in cells)
    statements = ast.parse(code).body
    noted = {
        name.id
        for call in ast.walk(ast.Module(statements, []))
        if isinstance(call, ast.Call) and "recorded_note" in ast.unparse(call.func)
        for name in ast.walk(call.args[0])
        if isinstance(name, ast.Name)
    }
    return [
        part.value
        for statement in statements
        for part in ast.walk(statement)
        if isinstance(part, ast.Constant) and part.value in records.STALE
        if not isinstance(statement, ast.Expr)  # where it has been loaded already
        if not (isinstance(statement, ast.Assign) and noted & names(statement.targets))
    ]


def names(targets: list[ast.expr]) -> set[str]:
    """What an assignment binds."""
    parts = chain.from_iterable(map(ast.walk, targets))
    return {part.id for part in parts if isinstance(part, ast.Name)}


@for_each("page", PAGES)
def test_a_page_that_shows_figures_of_a_stale_record_says_so(page):
    """`records.recorded_note` says it, beside figures, tables and glued numbers."""
    assert unmarked(page.read_text(encoding="utf-8")) == []


def test_a_stale_record_without_a_note_is_seen(monkeypatch):
    monkeypatch.setattr(records, "STALE", {"old": "another loss", "new": "same"})
    load = '```{code-cell}\nx = {n: load(n) for n in ("old", "fresh")}\n```\n'
    assert unmarked(load) == ["old"]
    told = '```{code-cell}\nrecorded_note(x["old"], "It was")\n```\n'
    assert unmarked(load + told) == []
    loop = '```{code-cell}\nfor y in load("new").results: pass\n```\n'
    assert unmarked(load + told + loop) == ["new"]


@for_each("chapter", CHAPTERS)
def test_chapters_state_no_points(chapter):
    """Points stand in the assignment's metadata, from which its prose is generated; a
    chapter could contradict them."""
    assert not re.search(
        r"\b\d+ (?:points|marks)\b", chapter.read_text(encoding="utf-8")
    )


def test_no_released_notebook_carries_outputs():
    released = sorted((ROOT / "exercises").glob("*/*.ipynb"))
    assert released
    for path in released:
        cells = nbformat.read(path, as_version=4).cells
        assert not any(cell.get("outputs") for cell in cells), path.name
