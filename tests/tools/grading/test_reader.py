"""What one submission costs or breaks while the grader looks at it is its own problem,
and ends there."""

from __future__ import annotations

import ast
import os
import threading

import pytest
from cases import for_each
from expect import refusal

from course_tools.grading.run.reader import Bounds, CannotRead, Reader


def busy() -> None:
    while True:
        pass


def waiting() -> None:
    threading.Event().wait()


def large(count: int) -> int:
    return len(bytearray(count))


def nested(levels: int) -> str:
    return ast.unparse(ast.parse("-" * levels + "1"))


def ended() -> None:
    os._exit(0)


def long_answer(count: int) -> str:
    return "x" * count


FUNCTIONS = {
    function.__name__: function
    for function in (busy, waiting, large, nested, ended, long_answer)
}
FUNCTIONS |= {
    "square": lambda number: number * number,
    "pid": os.getpid,
    "number": lambda text: int(text),
}
BOUNDS = Bounds(memory=2**28, cpu_seconds=1, answer=10_000)


@pytest.fixture(scope="module")
def reader():
    with Reader(FUNCTIONS, BOUNDS) as made:
        yield made


@for_each(
    ("name", "arguments", "words"),
    [
        ("busy", [], "it takes more than 1 s of processor time"),
        ("large", [2**32], "it takes more memory than there is for reading one"),
        (
            "nested",
            [50_000],
            "it",
        ),  # RecursionError or MemoryError, as this Python's parser likes
        ("ended", [], "it ends the process that reads it"),
        ("long_answer", [20_000], "it gives more than 0 MiB"),
        ("number", ["1" * 5000], "ValueError in test_reader.py, line"),
    ],
)
def test_a_look_that_fails_is_told_in_words_and_the_next_one_is_taken(
    reader, name, arguments, words
):
    with refusal("^The grader cannot read this notebook: " + words, CannotRead):
        reader.ask(name, *arguments)
    assert reader.ask("square", 7) == 49


def test_a_look_that_waits_is_ended():
    with (
        Reader(FUNCTIONS, Bounds(seconds=0.2)) as made,
        refusal(r"not done after 0\.2 s", CannotRead),
    ):
        made.ask("waiting")


def test_each_look_is_taken_in_a_process_of_its_own(reader):
    assert len({reader.ask("pid"), reader.ask("pid"), os.getpid()}) == 3


def test_two_threads_get_their_own_answers(reader):
    """Workers of a class ask while the grader asks."""
    found: dict[int, int] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: reader.ask("square", n)}))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: number * number for number in range(20)}


def test_the_server_ends_with_the_one_that_asks():
    made = Reader(FUNCTIONS, BOUNDS)
    server = made._server
    made.close()
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_where_no_process_can_be_forked_the_words_are_the_same(monkeypatch):
    """Windows, where `course check` runs and nothing else."""
    monkeypatch.delattr(os, "fork")
    with Reader(FUNCTIONS, BOUNDS) as made:
        assert made.ask("pid") == os.getpid()
        with refusal(r"ValueError in test_reader\.py, line", CannotRead):
            made.ask("number", "1" * 5000)
