"""Copies are found, disguised or not, and told apart from the common way: in a class of
200, whatever its share of copies, and with files as they are handed in."""

from __future__ import annotations

import functools
import json
import random

import pytest
from classroom import REPOSITORY
from copied_class import (
    DISGUISES,
    answers,
    disguised,
    hand_in,
    laboratory,
    model,
    notebook,
    released,
    right_answers,
    somebody,
    texts,
    usual,
)
from whole import whole_only

from course_tools.grading.assignments import right_answers as kept_answers
from course_tools.grading.assignments.release import assignments
from course_tools.grading.check.notebook_files import CannotCheck
from course_tools.grading.reports.copies import (
    LIBRARY,
    MODEL,
    RIGHT,
    Cluster,
    clusters,
    find_copies,
)
from course_tools.grading.reports.fingerprints import Lines, fingerprints, of
from course_tools.grading.run.reader import Bounds, CannotRead, Reader
from course_tools.grading.run.reading import written_code

ASSIGNMENTS = assignments(REPOSITORY)
TWO = ("transformer", "pretraining")


def lines_of(cells: dict[str, str]) -> Lines:
    lines, unread = fingerprints(cells.values())
    assert unread == 0
    return lines


@functools.cache
def known(name: str) -> dict:
    """What submissions of an assignment are compared with."""
    code = [cell.source for cell in released(name).cells if cell.cell_type == "code"]
    return {
        "model": lines_of(answers(model(name))),
        "given": of(fingerprints(code)[0]),
        "right": kept_answers.kept(name, REPOSITORY).values(),
    }


def found(name: str, work: dict[str, dict[str, str]]) -> list[Cluster]:
    return clusters(
        {who: lines_of(cells) for who, cells in work.items()}, **known(name)
    )


@functools.cache
def crowd(name: str, size: int) -> list[Lines]:
    """People who copy from nobody."""
    chance = random.Random(name)
    return [lines_of(somebody(name, chance)) for _ in range(size)]


@functools.cache
def copied(name: str, way: str, number: int) -> Lines:
    """The model answer in a disguise, by one of a few who use it."""
    chance = random.Random(f"{name}, {way}, {number}")
    return lines_of(disguised(answers(model(name)), way, chance))


def check_class(name: str, size: int, copies: int, how: str) -> None:
    """A class in which some have the model answer, in one disguise or in all: they are
    one cluster, and nobody else is named."""
    chance = random.Random(copies)
    ways = [how] if how in DISGUISES else list(DISGUISES)
    work = {f"student-{n:03}": lines for n, lines in enumerate(crowd(name, size))}
    copying = chance.sample(sorted(work), copies)
    for number, who in enumerate(copying):
        work[who] = copied(name, ways[number % len(ways)], number // len(ways) % 5)
    [one] = clusters(work, **known(name))
    assert (one.students, one.source) == (tuple(sorted(copying)), MODEL)
    assert str(one) == f"{copies} submissions are one text, that of the model answer"


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("copies", [2, 10, 19])
def test_of_20_submissions_the_copies_are_found_and_nobody_else(name, copies):
    check_class(name, 20, copies, "each in its turn")


WAYS, SHARES = (*DISGUISES, "each in its turn"), (2, 50, 101, 150, 199)
#: Every disguise in every share of the class, each of either assignment.
CLASSES = [
    (TWO[(one + other) % 2], way, share)
    for one, way in enumerate(WAYS)
    for other, share in enumerate(SHARES)
]


@whole_only
@pytest.mark.parametrize(("name", "how", "copies"), CLASSES)
def test_of_200_submissions_the_copies_are_found_and_nobody_else(name, how, copies):
    check_class(name, 200, copies, how)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_of_a_class_of_right_answers_nobody_is_named(name):
    """Each has the cells that its author wrote, and not those of the model answer that
    it was tried in. The fresh ones are no part of what is known to be common."""
    assert len(right_answers(name)) > 2
    assert found(name, right_answers(name)) == []


@pytest.mark.parametrize("name", TWO)
def test_the_most_usual_answer_is_not_taken_for_a_copy_of_the_model_answer(name):
    work = {"ada": usual(name), "bo": answers(model(name)), "cy": answers(model(name))}
    assert [one.students for one in found(name, work)] == [("bo", "cy")]


def test_a_fellow_s_text_is_a_cluster_of_its_own_and_most_telling_lines_come_first():
    chance = random.Random(0)
    text = usual("transformer")
    work = {"ada": text, "bo": disguised(text, "renamed", chance)}
    work |= {"cy": answers(model("transformer"))}
    work |= {f"x{n}": somebody("transformer", chance) for n in range(5)}
    fellows, alone = found("transformer", work)
    assert (fellows.students, fellows.source) == (("ada", "bo"), "")
    assert fellows.between == ("ada", "bo")
    for one, other in fellows.lines:
        assert one in str(text)
        assert of(fingerprints([one])[0]) & of(fingerprints([other])[0])
    assert len(fellows.lines) == 3
    assert str(alone) == "1 submission is one text, that of the model answer"


def test_who_copies_most_answers_and_writes_the_rest_is_named_with_the_share():
    own, copied = usual("transformer"), answers(model("transformer"))
    written = ("by-loops", "masks", "norm", "search")
    mixed = copied | {cell: own[cell] for cell in written}
    [one] = found("transformer", {"ada": mixed})
    assert str(one) == (
        "1 submission is in large part one text, that of the model answer"
    )
    assert 0.6 < one.shares[0] < 0.8


def test_two_with_a_text_of_the_graders_right_answers_are_named_and_one_is_not():
    text = {cell: ways[0] for cell, ways in texts("pretraining").items()}
    assert found("pretraining", {"ada": text}) == []
    [one] = found("pretraining", {"ada": text, "bo": text})
    assert (one.students, one.source) == (("ada", "bo"), RIGHT)


def test_what_everybody_was_given_is_no_likeness_wherever_it_stands():
    given = {cell.id: cell.source for cell in released("transformer").cells}
    text = {"my-setup": given["setup"]} | answers(released("transformer"))
    assert len(of(lines_of(text))) > 200
    assert found("transformer", {"ada": text, "bo": text}) == []


# -- fingerprints

ANSWER = """def scores(query, key, mask: torch.Tensor = None):
    "Say how much each query wants each key."
    size = query.shape[-1] ** 0.5
    products = query @ key.transpose(-2, -1) / size
    if mask is not None:
        products = products.masked_fill(~mask, float("-inf"))
    return products.softmax(dim=-1)
"""
OTHER = """def scores(query, key, mask=None):
    result = torch.einsum("bqd,bkd->bqk", query, key).mul(query.size(-1) ** -0.5)
    if mask is None:
        return torch.softmax(result, -1)
    weights = torch.where(mask, result.exp(), torch.zeros(()))
    return weights / weights.sum(-1, keepdim=True)
"""


@pytest.mark.parametrize("how", DISGUISES)
def test_a_disguise_changes_no_fingerprint(how):
    copy = DISGUISES[how](ANSWER, random.Random(1))
    assert (copy == ANSWER) == (how in {"plain"})
    assert of(fingerprints([copy])[0]) == of(fingerprints([ANSWER])[0]) != set()


def test_another_way_to_the_same_result_shares_next_to_nothing():
    one, other = (of(fingerprints([text])[0]) for text in (ANSWER, OTHER))
    assert len(one & other) <= 1 < min(len(one), len(other))


@pytest.mark.parametrize("magic", ["%matplotlib inline\n!ls\n", "\n%%time\n", "\r\n\r"])
def test_magics_and_line_ends_hide_nothing_and_a_cell_that_is_no_python_is_counted(
    magic,
):
    lines, unread = fingerprints([magic + ANSWER, "def f(:", "x\0y"])
    assert (of(fingerprints([ANSWER])[0]) <= of(lines), unread) == (True, 2)


def test_lines_are_cut_and_made_fit_to_be_shown():
    [line] = fingerprints([f"x = f(a, b.c(d), '\x1b[31m{'y' * 500}')"])[0]
    assert line.startswith("x = f(a, b.c(d), '\\x1b[31my")
    assert len(line) == 100


# -- from files


def test_a_class_is_compared_as_it_was_handed_in(tmp_path):
    """Named after what they are compared with, too; a copy stands in cells of the
    student's own; last year's class is there."""
    chance = random.Random(2)
    text = answers(model("transformer"))
    layers = ("attention/scores", "attention/multi_head", "transformer/blocks")
    layers += ("transformer/positions", "seq2seq/search", "attention/masks")
    files = [REPOSITORY / "course_lib" / f"{layer}.py" for layer in layers]
    library = {path.stem: path.read_text(encoding="utf-8") for path in files}
    elsewhere = {f"my-{cell}": source for cell, source in text.items()}
    now = {"course_lib": disguised(elsewhere, "all_of_it", chance), "bo": library}
    now |= {"cy": usual("transformer"), "dee": {"by-loops": "def f(:"}}
    now |= {f"x{n}": somebody("transformer", chance) for n in range(3)}
    now["fay"] = {"all-there-is": "\n\n".join(laboratory())}
    submitted = hand_in(tmp_path / "submitted", "transformer", now)
    (submitted / "eve" / "transformer").mkdir(parents=True)
    (submitted / "eve/transformer/transformer.ipynb").write_text("[" * 10**5)
    last = {"zoe": disguised(usual("transformer"), "renamed", chance)}
    earlier = hand_in(tmp_path / "2025", "transformer", last)
    copies = find_copies("transformer", REPOSITORY, submitted, [earlier])
    sources = {one.students: one.source for one in copies.clusters}
    zoe = f"zoe of {earlier}"
    assert sources == {("course_lib",): MODEL, ("bo",): LIBRARY, ("cy",): zoe}
    assert copies.not_compared["dee"] == "Cells that are no Python: 1."
    assert "nested too deeply" in copies.not_compared["eve"]
    assert "too much code" in copies.not_compared["fay"]
    assert list(copies.compared[:4]) == ["each other", MODEL, LIBRARY, RIGHT]
    with pytest.raises(CannotCheck, match="no folder"):
        find_copies("transformer", REPOSITORY, submitted, [tmp_path / "2024"])


HOSTILE = {
    "brackets": "(" * 10**5,
    "signs": "x = " + "-" * 10**5 + "1",
    "terms": "x = " + "+".join("1" * 10**5),
    "attributes": "x" + ".x" * 10**5,
    "statements": "a=b(c,d)\n" * 10**5,
    "one-line": "f(" + ",".join(f"a{n}" for n in range(10**5)) + ")",
    "number": "x = f(a, b, c.d(0x" + "f" * 10**5 + "))\n" * 5 + "y = 1\n" * 11,
    "magics": "%x\n" * 10**5 + "(",
}


@pytest.mark.parametrize("trick", HOSTILE)
def test_no_cell_takes_more_than_its_bounds_and_none_is_passed_over(trick):
    """It is compared, counted as no Python, or refused in words."""
    text = json.dumps(notebook("transformer", {"own": HOSTILE[trick]}))
    look, few = functools.partial(written_code, []), Bounds(cpu_seconds=2)
    with Reader({"look": look}, few) as reader:
        try:
            lines, unread = reader.ask("look", text, "transformer.ipynb")
        except CannotRead as error:
            lines, unread = {str(error): []}, 1
        assert unread == 1 or lines.keys() - {""}
        assert reader.ask("look", json.dumps(released("transformer")), "x")[1] == 0


# -- what is common goes with the assignment


def test_a_course_without_the_graders_tests_keeps_what_it_was_given(tmp_path):
    place = kept_answers.place("transformer", tmp_path)
    place.parent.mkdir()
    kept_answers.keep("transformer", model("transformer"), tmp_path)
    assert kept_answers.kept("transformer", tmp_path) == {}
    place.write_text('{"way": [1, 2]}')
    kept_answers.keep("transformer", model("transformer"), tmp_path)
    assert kept_answers.kept("transformer", tmp_path) == {"way": {1, 2}}
