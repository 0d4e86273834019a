"""`course report`: a static page on how a class did, and what to look at.

Marks come from ``gradebook.db``, so marks given by hand count; what was noticed comes
from the log of ``course grade``.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import is_solution

from course_lib.files import write_whole
from course_tools.grading.assignments.comparisons import secret_of
from course_tools.grading.assignments.release import course_settings
from course_tools.grading.reports.copies import PART, Cluster, Copies, find_copies
from course_tools.grading.reports.export import marks_of, points_of
from course_tools.grading.run.judge import EDITION_LINE
from course_tools.grading.run.plain_course import load_notebook, notebooks
from course_tools.grading.run.record import Records
from course_tools.grading.run.split import kept

BINS = 10
OWN_INPUTS = " Hidden tests ask for inputs that are this class's own."
PUBLIC_INPUTS = (
    " Hidden tests ask for the inputs that anybody can draw who has the repository;"
    " `course init` gives a class its own."
)
Marks = Mapping[str, Mapping[str, float | None]]

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'">
<style>:root {{ color-scheme: light dark }} body {{ font: 1rem/1.5 sans-serif;
max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
div {{ overflow-x: auto }} /* a wide table, which the keyboard can scroll */
table {{ border-collapse: collapse }} th, td {{ border-top: 1px solid;
padding: .3rem .8rem; text-align: left; vertical-align: top }}
tbody th {{ font-weight: normal }}
td.bar {{ width: 20rem }}
td.bar span {{ display: block; height: 1rem; background: currentColor }}</style></head>
<body><main><h1>{title}</h1><p>{summary}</p>
<h2>How many got how much</h2>{distribution}
<h2>Questions</h2>
<p>Discrimination is the correlation of a question's marks with the sum of all others.
Near 0, or below, the question does not tell those who know more from those who know
less: look at its wording and its tests.</p>{questions}
{tests}<h2>To look at</h2>{noticed}
<h2>Submissions that are one text</h2>
<p>Those that share at least {least} of what is their own, compared with {compared},
whatever the names, the order, the layout and the comments. What the released notebook
gives is left out, and so is what independently written right answers have in common. It
is a reason to look, and no proof.</p>{copies}
<h2>Not compared, or not whole</h2>{not_compared}
{edition}</main></body></html>
"""


IN_OURS = "apart from the student's code"
IN_THEIRS = "<strong>in the student's process</strong>"
TESTS = """<h2>Where tests run</h2>
<p>A test that runs apart sees data alone: the student's code can neither read it nor
change what it finds. One that runs in the student's process is as safe as under stock
nbgrader: that code can read its hidden lines, and can get its points without the work.
</p>"""


@dataclass(frozen=True)
class Question:
    """How a class did on one question."""

    name: str  # its ``grade_id``
    points: float  # the most it can earn
    marked: int  # how many students have a mark
    mean: float  # of the marks, as a share of the points
    full: float  # share of the marks that are full
    none: float  # share of the marks that are 0
    discrimination: float | None  # None where a mark or the rest never varies

    def cells(self) -> tuple[str, ...]:
        """What stands in its row of the page."""
        shares = [f"{100 * share:.0f}%" for share in (self.mean, self.full, self.none)]
        varies = self.discrimination is not None
        tells = f"{self.discrimination:.2f}" if varies else "never varies"
        head = (escape(self.name), f"{self.points:g}", str(self.marked))
        return (*head, *shares, tells)


def question(name: str, points: float, marks: Marks) -> Question:
    """Measure one question."""
    known = [of for of in marks.values() if of.get(name) is not None]
    values = [of[name] or 0.0 for of in known]
    rest = [sum(of[other] or 0.0 for other in of if other != name) for of in known]
    varies = len(set(values)) > 1 and len(set(rest)) > 1
    count = len(values) or 1
    return Question(
        name,
        points,
        len(values),
        sum(values) / count / points,
        sum(value >= points for value in values) / count,
        sum(value == 0 for value in values) / count,
        statistics.correlation(values, rest) if varies else None,
    )


def page(
    assignment: str,
    marks: Marks,
    points: Mapping[str, float],
    noticed: Mapping[str, Sequence[str]],
    copies: Copies,
    about: str = "",
    tests: Sequence[Sequence[str]] | None = None,
) -> str:
    """Write the page; of a plain course it says where each test runs."""
    most = sum(points.values())
    totals = [sum(mark or 0.0 for mark in of.values()) for of in marks.values()]
    waiting = sum(mark is None for of in marks.values() for mark in of.values())
    summary = f"{len(totals)} submissions, {most:g} points."
    if totals:
        mean, median = statistics.mean(totals), statistics.median(totals)
        summary += f" Mean {mean:.1f}, median {median:.1f}."
    if waiting:
        by_hand = "answers are still to be marked by hand"
        summary += f" {waiting} {by_hand} and count as 0 until then."
    summary += about
    bins = [0] * BINS
    for total in totals:
        bins[min(int(BINS * total / most), BINS - 1)] += 1
    largest = max(bins) or 1
    width = 100 // BINS
    distribution = [
        (
            f"{width * place} to {width * (place + 1)}%",
            str(count),
            f'<span style="width: {100 * count / largest:.0f}%"></span>',
        )
        for place, count in enumerate(bins)
    ]
    measured = [question(name, full, marks) for name, full in points.items()]
    seen = [
        (escape(student), "<br>".join(map(escape, filter(None, words))))
        for student, words in noticed.items()
        if any(words)
    ]
    unread = [(escape(who), escape(why)) for who, why in copies.not_compared.items()]
    return PAGE.format(
        title=escape(f"{assignment}: the class"),
        summary=escape(summary),
        distribution=_table("of all points,students,drawn", distribution, bars=True),
        questions=_table(
            "question,points,marked,mean,full marks,nothing,discrimination",
            [found.cells() for found in measured],
        ),
        noticed=_table("student,noticed", seen),
        copies=_table(
            "what,who,share,lines side by side", list(map(_row, copies.clusters))
        ),
        least=f"{100 * PART:.0f}%",
        compared=escape(", ".join(copies.compared)),
        not_compared=_table("student,why", unread),
        edition=EDITION_LINE if tests is None else "",
        tests="" if tests is None else TESTS + _table("test,points,runs,why", tests),
    )


def _row(cluster: Cluster) -> tuple[str, ...]:
    least, most = (f"{100 * share:.0f}%" for share in cluster.shares)
    head = "".join(f'<th scope="col">{escape(who)}</th>' for who in cluster.between)
    lines = [
        "".join(f"<td><code>{escape(line)}</code></td>" for line in pair)
        for pair in cluster.lines
    ]
    return (
        escape(str(cluster)),
        escape(", ".join(cluster.students)),
        least if least == most else f"{least} to {most}",
        f"<table><tr>{'</tr><tr>'.join([head, *lines])}</tr></table>",
    )


def _table(head: str, rows: Sequence[Sequence[str]], bars: bool = False) -> str:
    if not rows:
        return "<p>None.</p>"
    last = ' class="bar"' if bars else ""
    cells = [
        f'<th scope="row">{row[0]}</th>'
        + "".join(f"<td>{cell}</td>" for cell in row[1:-1])
        + f"<td{last}>{row[-1]}</td>"
        for row in rows
    ]
    heads = "".join(f'<th scope="col">{name}</th>' for name in head.split(","))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    label = head.rstrip(",").replace(",", ", ")
    return f'<div role="region" tabindex="0" aria-label="{label}">{table}</div>'


def report(name: str, root: Path = Path(), earlier: Sequence[Path] = ()) -> Path:
    """Write ``reports/<name>.html`` from what `course grade` has recorded.

    Parameters
    ----------
    name, root
        The assignment, and the folder of the course.
    earlier
        Folders of earlier classes' submissions, to be compared with.
    """
    courses, named = (
        CourseDirectory(config=course_settings(root)),
        notebooks(name, root),
    )
    logs = [Records(courses, name, one).done() for one in named]
    with Gradebook(courses.db_url, courses.course_id) as gradebook:
        points = points_of(gradebook.find_assignment(name))
        submissions = gradebook.assignment_submissions(name)
        marks = {each.student.id: marks_of(each) for each in submissions}
    submitted = root / courses.submitted_directory
    each = [find_copies(name, root, submitted, earlier, one) for one in named]
    unread = {who: why for one in each for who, why in one.not_compared.items()}
    found = [cluster for one in each for cluster in one.clusters]
    copies = Copies(found, each[0].compared, unread)
    noticed: dict[str, list[str]] = {}
    for student in sorted({student for log in logs for student in log}):
        for line in (log[student] for log in logs if student in log):
            said = [*line["tampering"], line["problem"], *line["notes"]]
            noticed.setdefault(student, []).extend(said)
    rows = [row for one in filter(None, named) for row in _tests(name, one, root)]
    tests = rows if any(named) else None
    place = root / "reports" / f"{name}.html"
    place.parent.mkdir(exist_ok=True)
    about = ""
    if (root / "solutions" / name / "hidden.py").is_file():
        about = OWN_INPUTS if secret_of(root) else PUBLIC_INPUTS
    write_whole(place, page(name, marks, points, noticed, copies, about, tests))
    return place


def _tests(name: str, notebook: str, root: Path) -> Iterator[tuple[str, ...]]:
    """Of each test of a plain course's notebook, where it runs, and why."""
    assignment = load_notebook(name, notebook, root)
    split = kept(assignment, root)
    for cell in (cell for cell in assignment.tests if not is_solution(cell)):
        test = cell.metadata.nbgrader
        why = split.there.get(test.grade_id, "") if split else "it has not run yet"
        where = (IN_THEIRS if why else IN_OURS) if split else ""
        yield (
            escape(f"{notebook}/{test.grade_id}"),
            f"{test.points:g}",
            where,
            escape(why),
        )
