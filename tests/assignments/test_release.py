"""What students get: generated, the same bytes each time, no solution and no hidden
test in it, points that add up."""

import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from whole import first_or_all, whole_only

from course_tools.grading.assignments.comparisons import expected
from course_tools.grading.assignments.lint import leaks, regions, secret_lines
from course_tools.grading.assignments.release import assignments, build_source, release
from course_tools.grading.assignments.source import AssignmentError, read_source, ships

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENTS = assignments(ROOT)


@pytest.fixture
def course(tmp_path):
    """A copy of what a release needs, so that the real exercises and gradebook stay as
    they are."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    for name in ASSIGNMENTS:
        built = shutil.ignore_patterns("*.ipynb", ".*", "__pycache__")
        shutil.copytree(
            ROOT / "solutions" / name, tmp_path / "solutions" / name, ignore=built
        )
    return tmp_path


@pytest.fixture(scope="module", params=ASSIGNMENTS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def source(name):
    return read_source(ROOT / "solutions" / name / f"{name}.py")


@pytest.fixture(scope="module")
def released(name):
    return nbformat.read(ROOT / "exercises" / name / f"{name}.ipynb", as_version=4)


def change_source(course: Path, name: str, old: str, new: str) -> None:
    path = course / "solutions" / name / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_there_is_an_assignment():
    named = (
        "attention bert capstone family fine-tuning modern pretraining sentence-bert"
        " transformer wordpiece"
    )
    assert set(named.split()) <= set(ASSIGNMENTS)


def test_what_is_committed_of_a_release_is_what_the_source_gives(name, course):
    """The notebook, and what right answers have: a course that has `solutions/` without
    the graders' tests needs it."""
    catalogue = f"tests/assignments/mutants/{name}.py"
    (course / catalogue).parent.mkdir(parents=True)
    shutil.copy(ROOT / catalogue, course / catalogue)
    release(name, course, database=False)
    for file in (f"exercises/{name}/{name}.ipynb", f"solutions/{name}.right.json"):
        made, committed = ((root / file).read_bytes() for root in (course, ROOT))
        assert made == committed, f"run: course release {name}"


@pytest.mark.slow
def test_releasing_again_gives_the_same_bytes(course):
    """From another place, too: the committed one of each assignment is compared above
    with one that is made there."""
    first = release("capstone", course, database=False).read_bytes()
    assert release("capstone", course, database=False).read_bytes() == first


# One that is made of parts of the others and ships a file, and one that is neither.
@pytest.mark.slow
@pytest.mark.parametrize("name", first_or_all("capstone", "wordpiece"))
def test_the_stock_command_gives_the_same_bytes_and_fills_the_gradebook(
    name, course, empty_gradebook
):
    build_source(name, course)
    shutil.copy(empty_gradebook, course)
    nbgrader = Path(sys.executable).with_name("nbgrader")
    subprocess.run(
        [nbgrader, "generate_assignment", name],
        cwd=course,
        check=True,
        capture_output=True,
    )
    committed = (ROOT / "exercises" / name / f"{name}.ipynb").read_bytes()
    assert (course / "exercises" / name / f"{name}.ipynb").read_bytes() == committed
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        released = nbformat.reads(committed, as_version=4)
        points = sum(
            cell.metadata.get("nbgrader", {}).get("points", 0)
            for cell in released.cells
        )
        assert gradebook.find_assignment(name).max_score == points > 0
    for shipped in ships(read_source(course / "solutions" / name / f"{name}.py")):
        assert (course / "exercises" / name / shipped).read_bytes() == (
            course / "solutions" / name / shipped
        ).read_bytes()


def test_who_marks_by_hand_has_a_key_and_answers_at_three_levels(name, source):
    """In the solution's region: students see criteria, and no line of the key."""
    by_hand = [
        cell
        for cell in source.cells
        if cell.cell_type == "markdown"
        and cell.metadata.get("nbgrader", {}).get("grade")
    ]
    assert by_hand
    for cell in by_hand:
        most = cell.metadata.nbgrader.points
        key, *levels = re.split(r"^\*\*([\w ]+):\*\*", cell.source, flags=re.M)
        assert "**Key**" in key
        above = "lines above, a point each" in key
        assert key.count("\n* ") == (0 if above else most), "a point each"
        best, some, none = levels[::2]
        assert (best, none) == ("All of it", "None of it")
        assert some in ("Two of three", "Two of four", "Four of eight")
        assert min(len(answer.split()) for answer in levels[1::2]) > 15


def test_no_line_of_a_solution_or_hidden_test_is_in_exercises(name, source):
    """Counted here afresh, not by the function that guards the release."""
    secret = []
    for cell in source.cells:
        for begin, end in (
            ("### BEGIN SOLUTION", "### END SOLUTION"),
            ("### BEGIN HIDDEN", "### END HIDDEN"),
        ):
            for block in re.findall(f"{begin}.*?\n(.*?){end}", cell.source, re.DOTALL):
                lines = [line.strip() for line in block.splitlines()]
                secret += [
                    line for line in lines if len(line) > 20 and line[-1] not in "([{"
                ]
    for path in (ROOT / "solutions" / name).glob("hidden.py"):
        secret += [line for line in path.read_text().splitlines() if len(line) > 30]
    assert len(secret) > 80
    files = [
        path.read_bytes()
        for path in (ROOT / "exercises" / name).rglob("*")
        if path.is_file()
    ]
    handed_out = json.dumps(
        [file.decode("utf-8", errors="replace") for file in files], ensure_ascii=False
    )
    found = [
        line
        for line in secret
        if json.dumps(json.dumps(line, ensure_ascii=False))[2:-2] in handed_out
    ]
    said_openly = {
        line.strip()
        for cell in source.cells
        for line in regions(
            "\n".join(regions(cell.source, "BEGIN HIDDEN", "END HIDDEN")[1]),
            "BEGIN S",
            "END S",
        )[1]
    }
    assert [line for line in found if line.strip() not in said_openly] == []
    for marker in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS"):
        assert marker not in handed_out


@whole_only
def test_a_reference_raises_nothing_but_the_errors_that_texts_ask_for(source):
    """A comparison that calls its reference wrongly raises a TypeError, for any answer
    too, and they would all agree."""
    raised = {
        told["result"][1][1][0][1]  # the error's own class
        for cell in source.cells
        for rows in expected(cell.source).values()
        for row in rows
        for told in row[1:]
        if told["result"][0] == "raised"
    }
    assert raised <= {"ValueError"}


def test_exercises_hold_the_notebooks_and_what_they_ship_and_nothing_else():
    exercises = ROOT / "exercises"
    files = {
        path.relative_to(exercises).as_posix()
        for path in exercises.rglob("*")
        if path.is_file()
    }
    expected = {f"{name}/{name}.ipynb" for name in ASSIGNMENTS}
    for name in ASSIGNMENTS:
        for shipped in ships(read_source(ROOT / "solutions" / name / f"{name}.py")):
            assert (exercises / name / shipped).read_bytes() == (
                ROOT / "solutions" / name / shipped
            ).read_bytes()
            expected.add(f"{name}/{shipped}")
    assert files == expected


def test_the_search_for_leaks_finds_each_secret_line_in_source_metadata_and_other_files(
    name, source, released, tmp_path
):
    secret = secret_lines(source)
    assert leaks(source, ROOT / "exercises" / name, name) == []
    with_metadata = nbformat.from_dict(json.loads(json.dumps(released)))
    with_metadata.cells[3].metadata["note"] = secret[0]
    nbformat.write(with_metadata, tmp_path / f"{name}.ipynb")
    (tmp_path / "notes.txt").write_text(secret[-1], encoding="utf-8")
    found = "\n".join(leaks(source, tmp_path, name))
    assert repr(secret[0]) in found
    assert repr(secret[-1]) in found
    assert "notes.txt lies beside the notebook" in found


def test_points_in_the_text_are_points_of_the_cells(name, released):
    """Each heading with points speaks for the graded cells up to the next one; the
    introduction states the total."""
    stated: list[tuple[str, float]] = []
    found: list[float] = []
    for cell in released.cells:
        heading = (
            re.match(r"## (.*) \((\d+) points\)", cell.source)
            if cell.cell_type == "markdown"
            else None
        )
        if heading:
            stated.append((heading[1], float(heading[2])))
            found.append(0.0)
        if cell.metadata.get("nbgrader", {}).get("grade"):
            found[-1] += cell.metadata.nbgrader.points
    assert [points for _, points in stated] == found
    assert len(stated) >= 5
    total = re.search(r"There are (\d+) points", released.cells[0].source)
    assert total is not None
    assert float(total[1]) == sum(found)


def test_the_rubric_has_a_line_for_every_point(name, released):
    by_hand = [
        i
        for i, cell in enumerate(released.cells)
        if cell.metadata.get("nbgrader", {}).get("grade")
        and cell.cell_type == "markdown"
    ]
    assert by_hand
    for index in by_hand:
        rubric = [
            line
            for line in released.cells[index - 1].source.splitlines()
            if line.startswith("* ")
        ]
        assert len(rubric) == released.cells[index].metadata.nbgrader.points


def test_the_notebook_names_what_it_withholds_in_its_text_and_metadata(released):
    withheld = released.metadata.course.withholds
    # the capstone withholds all of it
    assert any(module.partition(".")[0] == "course_lib" for module in withheld)
    for module in withheld:
        assert f"`{module}`" in released.cells[0].source


def test_everything_that_is_withheld_exists(released):
    """A module that has been renamed would no longer be withheld, and nobody would
    notice."""
    for name in released.metadata.course.withholds:
        assert pkgutil.resolve_name(name) is not None


def test_a_release_has_no_outputs_no_execution_counts_and_no_path(released):
    for cell in released.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert str(ROOT) not in json.dumps(released)


FAULTS = {
    "a grade_id twice": (
        '"grade_id": "align-pairs"',
        '"grade_id": "dot-scores"',
        "'dot-scores' is used by 2 cells",
    ),
    "typed points": (
        "({points:dot} points)",
        "(7 points)",
        "'7 points' is typed in the text",
    ),
    "points of another part": (
        "({points:dot} points)",
        "({points:beam-search} points)",
        "its cells have",
    ),
    "an unknown part": (
        "({points:dot} points)",
        "({points:dots} points)",
        "no graded cell has a grade_id",
    ),
    "no marker": (
        "    ### BEGIN SOLUTION\n    of_query, of_key",
        "    of_query, of_key",
        "0 BEGIN SOLUTION and 1 END SOLUTION",
    ),
    "a solution outside": (
        '"dot-scores", "locked": false, "schema_version": 3, "solution": true',
        '"dot-scores", "locked": true, "schema_version": 3, "solution": false',
        "holds a solution but is no solution cell",
    ),
    "an open test cell": (
        '"dot-scores-values", "locked": true',
        '"dot-scores-values", "locked": false',
        "dot-scores-values is not locked",
    ),
    "no points": (
        '"align-pairs", "locked": true, "points": 3',
        '"align-pairs", "locked": true, "points": 0',
        "align-pairs is graded but has no points",
    ),
    "a tensor for partial credit": (
        "\nfloat(points)\n",
        "\ntorch.tensor(points)\n",
        "End in float(...)",
    ),
    "a bool for partial credit": (
        "\nfloat(points)\n",
        "\npoints > 2\n",
        "End in float(...)",
    ),
    "a bare name for partial credit": (
        "\nfloat(points)\n",
        "\npoints\n",
        "End in float(...)",
    ),
    "nothing withheld": (
        "    withholds:",
        "    withheld:",
        "names nothing that it withholds",
    ),
    "an unknown placeholder": (
        "withheld.withheld_uses}",
        "withheld.no_such_thing}",
        "no_such_thing",
    ),
}


@pytest.mark.parametrize(("old", "new", "words"), FAULTS.values(), ids=FAULTS)
def test_a_source_with_this_fault_is_refused_in_words_and_the_old_release_stays(
    course, old, new, words
):
    shutil.copytree(ROOT / "exercises", course / "exercises")
    before = (course / "exercises" / "attention" / "attention.ipynb").read_bytes()
    change_source(course, "attention", old, new)
    with pytest.raises(AssignmentError) as refusal:
        release("attention", course, database=False)
    assert words in str(refusal.value)
    assert (
        course / "exercises" / "attention" / "attention.ipynb"
    ).read_bytes() == before


def test_a_graded_cell_that_tests_nothing_is_refused(course):
    path = course / "solutions" / "attention" / "attention.py"
    text = path.read_text(encoding="utf-8")
    start = text.index("\n", text.index('"grade_id": "align-pairs"'))
    path.write_text(
        text[:start] + "\nalign\n" + text[text.index("\n# %%", start) :],
        encoding="utf-8",
    )
    with pytest.raises(AssignmentError, match="align-pairs tests nothing"):
        release("attention", course, database=False)


def test_a_graded_cell_that_only_looks_at_how_an_answer_is_written_is_refused(course):
    """`check_withheld` passes a blank answer, so it is no test; a check of values is
    one, wherever it is defined."""
    path = course / "solutions" / "wordpiece" / "wordpiece.py"
    text = path.read_text(encoding="utf-8")
    start = text.index("\n", text.index('"grade_id": "scores-first-pieces"'))
    rest = text[text.index("\n# %%", start) :]
    path.write_text(
        f'{text[:start]}\ncheck_withheld("first_pieces")\n{rest}', encoding="utf-8"
    )
    with pytest.raises(AssignmentError, match="scores-first-pieces tests nothing"):
        release("wordpiece", course, database=False)
    path.write_text(
        f'{text[:start]}\ncheck_same(first_pieces("a"), ["a"], "a")\n{rest}',
        encoding="utf-8",
    )
    release("wordpiece", course, database=False)


def test_a_file_beside_the_source_does_not_reach_the_students(course):
    (course / "solutions" / "attention" / "model_answer.txt").write_text(
        "return query @ key.transpose(-2, -1)"
    )
    with pytest.raises(
        AssignmentError, match=r"model_answer\.txt lies beside the notebook"
    ):
        release("attention", course, database=False)
    assert not (course / "exercises").exists()


def test_an_unknown_assignment_is_named(course):
    with pytest.raises(
        AssignmentError, match=r"solutions/atention/atention\.py does not exist"
    ):
        release("atention", course, database=False)
