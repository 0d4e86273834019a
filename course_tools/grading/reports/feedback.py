"""The page that a student gets: each question, its mark, and in words what failed; of
hidden tests no more than that.

Everything that could come from a student is escaped, and the page runs no script and
loads nothing.
"""

from __future__ import annotations

from html import escape

from course_tools.grading.run.judge import Mark

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body {{ font: 1rem/1.5 sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }} th, td {{ border-top: 1px solid; padding: .4rem; text-align: left;
vertical-align: top }} pre {{ white-space: pre-wrap; margin: 0 }}</style></head>
<body><h1>{title}</h1>{notes}<p>{total}</p>
<table><thead><tr><th scope="col">Question</th><th scope="col">Points</th><th scope="col">What to mend</th></tr></thead>
<tbody>
{rows}
</tbody></table></body></html>
"""  # noqa: E501


def page(assignment: str, student: str, marks: list[Mark], notes: list[str]) -> str:
    """Write the feedback page of one submission."""
    rows = "\n".join(
        f"<tr><td>{escape(mark.cell)}</td><td>{_points(mark)}</td><td><pre>{escape(mark.words)}</pre></td></tr>"
        for mark in marks
    )
    waits = any(mark.earned is None for mark in marks)
    total = (
        f"{sum(mark.earned or 0.0 for mark in marks):g} of"
        f" {sum(mark.points for mark in marks):g} points"
    )
    total += "; written answers are still to be marked." if waits else "."
    return PAGE.format(
        title=escape(f"{assignment}: {student}"),
        notes="".join(f"<p>{escape(note)}</p>" for note in notes),
        total=total,
        rows=rows,
    )


def _points(mark: Mark) -> str:
    return (
        f"by hand, of {mark.points:g}"
        if mark.earned is None
        else f"{mark.earned:g} of {mark.points:g}"
    )
