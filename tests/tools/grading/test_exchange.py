"""The page *On JupyterHub*, carried out by a class of two: what the hub's interface
does with nbgrader's exchange, its commands do here."""

from __future__ import annotations

import nbformat
import pytest
from attack_class import SCALE, answered, open_class
from classroom import write_notebook
from guide import commands
from walled import need_a_sandbox
from whole import whole_only

pytestmark = [pytest.mark.slow, whole_only]

COURSE = "from-attention-to-bert"
STUDENTS = {"ada": SCALE, "bo": "def scale(x):\n    return x"}


@pytest.fixture(scope="module")
def term(tmp_path_factory):
    need_a_sandbox()
    folder = tmp_path_factory.mktemp("hub")
    exchange, classroom = folder / "exchange", open_class(folder / "course")
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    settings = classroom.root / "nbgrader_config.py"
    with settings.open("a", encoding="utf-8") as file:
        file.write(f'\nc.Exchange.root = "{exchange}"\n')
        file.write("c.ExchangeCollect.check_owner = False\n")

    def as_student(verb: str, student: str) -> None:
        """With the settings of the page, in the student's folder."""
        here = type(classroom)(folder / student)
        here.root.mkdir(exist_ok=True)
        (here.root / "nbgrader_config.py").write_text(
            "c = get_config()\n"
            f'c.CourseDirectory.course_id = "{COURSE}"\n'
            f'c.Exchange.root = "{exchange}"\n'
            f'c.Exchange.cache = "{folder / student / "cache"}"\n'
            f'c.CourseDirectory.student_id = "{student}"\n'
        )
        here.run(f"nbgrader {verb} mini")

    release, *rest = (
        command.replace("attention", "mini")
        for command in commands("operating-jupyterhub")
    )
    classroom.run(release)
    for student, answer in STUDENTS.items():
        as_student("fetch_assignment", student)
        fetched = folder / student / "mini" / "mini.ipynb"
        assert nbformat.read(fetched, as_version=4) == classroom.released("mini")
        write_notebook(answered(classroom, answer), fetched)
        as_student("submit", student)
    for command in rest:
        classroom.run(command)
    for student in STUDENTS:
        as_student("fetch_feedback", student)
    return classroom, folder


def test_marks_are_those_of_the_answers(term):
    classroom, _ = term
    marks = classroom.scores_of_all("mini")
    assert marks["ada"]["scale-tests"] == classroom.max_scores("mini")["scale-tests"]
    assert marks["bo"]["scale-tests"] == 0


def test_each_student_fetches_the_page_that_the_grader_wrote(term):
    classroom, folder = term
    for student in STUDENTS:
        (fetched,) = (folder / student / "mini" / "feedback").rglob("*.html")
        wrote = classroom.root / "feedback" / student / "mini" / "mini.html"
        assert fetched.read_text("utf-8") == wrote.read_text("utf-8")
        assert f"mini: {student}" in wrote.read_text("utf-8")
