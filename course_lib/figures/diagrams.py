"""The vocabulary of the book's diagrams: tensor, box, arrow, brace, label, group.

A diagram is inline SVG whose text is text, 400 units wide, so that letters have one
size throughout the book; y grows downwards. Each role has one colour and one meaning:

    q  a query                  w  weights: what sums to one, and layers with a softmax
    k  a key                    r  hidden states, and the residual path (always dashed)
    v  a value, and mixtures    n  any other layer or number

The drawings of a chapter stand in its package of `course_lab`, and take their numbers
and shapes from the model that they draw. What this module does not do: it knows no
model, and it lays nothing out by itself.

A cell ends with `diagram.shown()`. Steps of a `stepped_figure` may hold diagrams, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import NamedTuple

from course_lib.figures.explorer import Explorer

Number = float | int
Point = tuple[Number, Number]
WIDTH = 400
#: Distance of two lines of a label, and of a line's centre from its baseline.
LINE, BASELINE = 15, 4.5

#: Every diagram carries its style, so that it looks the same on the site, in Jupyter
#: and on Colab. Lines and coloured text have a contrast of 4.7 or more with the page;
#: no two roles are told apart by colour alone.
STYLE = """
.diagram{--ink:#1d2430;--soft:#4d5663;--q:#2050e8;--k:#bf5200;--v:#00604a;--w:#8f1f7c;
--r:#6c737d;--hi:#ffefbf;--edge:#a67c00;--paper:var(--pst-color-background,#fff);
display:block;width:100%;max-width:480px;height:auto;margin:1.2rem auto;
font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
-webkit-text-size-adjust:none;text-size-adjust:none}
html[data-theme="dark"] .diagram,[data-jp-theme-light="false"] .diagram{--ink:#e9edf2;
--soft:#b3bcc8;--q:#7392ff;--k:#ec8f2e;--v:#6eecb4;--w:#ffb8f4;--r:#959ca6;--hi:#453909;
--edge:#e0b73c;--paper:var(--pst-color-background,#14181e)}
.diagram *{--c:var(--soft)}.diagram .q{--c:var(--q)}.diagram .k{--c:var(--k)}
.diagram .v{--c:var(--v)}.diagram .w{--c:var(--w)}.diagram .r{--c:var(--r)}
.diagram text{fill:var(--ink);text-anchor:middle}.diagram .start{text-anchor:start}
.diagram .end{text-anchor:end}.diagram .small{font-size:12px}
.diagram .sub{font-size:12px}.diagram .bold{font-weight:600}
.diagram .soft{fill:var(--soft)}.diagram .tint{fill:var(--c)}
.diagram .paper{fill:var(--paper)}.diagram .cell,.diagram .box{fill:var(--c);
fill-opacity:.17;stroke:var(--c)}.diagram .cell.n,.diagram .box.n{fill-opacity:.04}
.diagram .box{stroke-width:1.5}
.diagram .line{fill:none;stroke:var(--c);stroke-width:1.6}
.diagram .dash{stroke-dasharray:5 3}.diagram .head{fill:var(--c)}
.diagram .group{fill:none;stroke:var(--r);stroke-opacity:.8}
.diagram .hi{fill:var(--hi);stroke:var(--edge);stroke-width:1.5}
.diagram .faded{opacity:.4}
"""


class Area(NamedTuple):
    """Where something was drawn; arrows start and end at its sides."""

    x: Number
    y: Number
    width: Number
    height: Number

    def at(self, across: Number, down: Number) -> Point:
        """The point at a share of the width and of the height."""
        return self.x + self.width * across, self.y + self.height * down

    @property
    def top(self) -> Point:
        return self.at(0.5, 0)

    @property
    def bottom(self) -> Point:
        return self.at(0.5, 1)

    @property
    def left(self) -> Point:
        return self.at(0, 0.5)

    @property
    def right(self) -> Point:
        return self.at(1, 0.5)


class Diagram:
    """A picture that is built by saying what stands where."""

    def __init__(
        self,
        name: str,
        height: Number,
        title: str,
        description: str,
        here: str | None = None,
    ) -> None:
        self.title, self.here = title, here
        self._lit = False
        self._parts: set[str | None] = {None}
        self._markup = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img"'
            f' viewBox="0 0 {WIDTH} {height}"'
            f' aria-labelledby="{name}-title {name}-desc">'
            f'<title id="{name}-title">{escape(title)}</title>'
            f'<desc id="{name}-desc">{escape(description)}</desc>'
            f"<style>{STYLE}</style>"
        ]

    def svg(self) -> str:
        """Return the picture as one SVG element."""
        if self.here not in self._parts:
            known = sorted(part for part in self._parts if part)
            raise ValueError(f"here={self.here!r} is no part; there are: {known}")
        return "".join(self._markup) + "</svg>"

    def shown(self) -> Explorer:
        """Return what a cell shows, to be its last line."""
        return Explorer(self.svg(), f"Diagram: {self.title}")

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What is drawn inside belongs to a part, which is lit if it is `here`."""
        before, self._lit = self._lit, self.here == name
        self._parts.add(name)
        faded = self.here is not None and not self._lit
        self._markup.append('<g class="faded">' if faded else "<g>")
        yield
        self._markup.append("</g>")
        self._lit = before

    def label(self, x: Number, y: Number, text: str, classes: str = "") -> None:
        """Write text whose vertical centre is y. A newline breaks the line, ``W_{Q}``
        sets a subscript and ``e^{2}`` a superscript. Classes: start, end, small, bold,
        soft, tint with a role.
        """
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if line:
                down = BASELINE + (number - (len(lines) - 1) / 2) * LINE
                self._element("text", _raised(escape(line)), classes, x=x, y=y + down)

    def tensor(
        self,
        x: Number,
        y: Number,
        rows: int,
        columns: int,
        role: str,
        cell: tuple[Number, Number] = (14, 14),
        numbers: Sequence[Sequence[object]] | None = None,
        shade: Sequence[Sequence[Number]] | None = None,
        label: str = "",
        beside: bool = False,
    ) -> Area:
        """Draw a grid of cells with its corner at (x, y). `numbers` are written into
        the cells, `shade` in 0 to 1 tints them; the label is below, or beside.
        """
        width, height = cell
        area = Area(x, y, columns * width, rows * height)
        self._rectangle(area, "paper")
        for i in range(rows):
            for j in range(columns):
                style = f"fill-opacity:{0.08 + 0.5 * shade[i][j]:.2f}" if shade else ""
                corner = Area(x + j * width, y + i * height, width, height)
                self._rectangle(corner, f"cell {role}", style=style)
                if numbers:
                    text = str(numbers[i][j]).replace("-", "\N{MINUS SIGN}")
                    self.label(*corner.at(0.5, 0.5), text)
        if label and beside:
            self.label(area.right[0] + 8, area.right[1], label, "small start")
        elif label:
            self.label(area.bottom[0], area.bottom[1] + 11, label, "small")
        return area

    def box(
        self,
        x: Number,
        y: Number,
        width: Number,
        height: Number,
        text: str,
        role: str = "n",
    ) -> Area:
        """Draw a layer, centred on x, with its upper edge at y."""
        area = Area(x - width / 2, y, width, height)
        if self._lit:
            around = Area(area.x - 6, y - 6, width + 12, height + 12)
            self._rectangle(around, "hi", rx=10)
        self._rectangle(area, "paper", rx=6)
        self._rectangle(area, f"box {role}", rx=6)
        self.label(*area.at(0.5, 0.5), text)
        return area

    def group(
        self, x: Number, y: Number, width: Number, height: Number, here: bool = False
    ) -> Area:
        """Frame what belongs together, or highlight it."""
        area = Area(x, y, width, height)
        self._rectangle(area, "hi" if here else "group", rx=10)
        return area

    def arrow(
        self,
        *points: Point | str,
        role: str = "",
        label: str = "",
        at: Point | None = None,
        dash: bool = False,
        head: bool = True,
        gap: Number = 1,
    ) -> None:
        """Draw an arrow through points, with round corners. Between two points "-"
        (across first) or "|" (up or down first) makes an elbow.
        """
        path = _with_elbows(points)
        path[0] = _toward(path[0], path[1], gap)
        tip = _toward(path[-1], path[-2], gap)
        path[-1] = _toward(tip, path[-2], 6 if head else 0)
        text = "M{:g} {:g}".format(*path[0])
        for before, corner, after in zip(path, path[1:], path[2:], strict=False):
            radius = min(7, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
            enter, leave = (_toward(corner, end, radius) for end in (before, after))
            text += "L{:g} {:g}Q{:g} {:g} {:g} {:g}".format(*enter, *corner, *leave)
        text += "L{:g} {:g}".format(*path[-1])
        self._element("path", None, f"line {role}" + " dash" * dash, d=text)
        if head:
            back = _toward(tip, path[-2], 8)
            dx, dy = (back[1] - tip[1]) / 2, (tip[0] - back[0]) / 2
            sides = (back[0] + dx, back[1] + dy, back[0] - dx, back[1] - dy)
            triangle = "M{:g} {:g}L{:g} {:g} {:g} {:g}z".format(*tip, *sides)
            self._element("path", None, f"head {role}", d=triangle)
        if label:
            middle = (path[-2][0] + tip[0]) / 2 + 6, (path[-2][1] + tip[1]) / 2
            tint = f" {role} tint bold" if role else ""
            self.label(*(at or middle), label, "small start" + tint)

    def brace(self, start: Point, end: Point, depth: Number, label: str) -> None:
        """Draw a curly brace along a horizontal or vertical line; its point is `depth`
        away, to the side that the sign says, and the label beyond it.
        """
        flat = start[1] == end[1]
        length = end[0] - start[0] + end[1] - start[1]
        half = depth / 2

        def place(along: Number, away: Number) -> Point:
            across = (along, away) if flat else (away, along)
            return start[0] + across[0], start[1] + across[1]

        middle = length / 2
        # A quarter circle, a line, two quarters that meet in the point, and so on.
        turns = [(0, half), (5, half), (middle - 5, half), (middle, half)]
        turns += [(middle, depth), (middle, half), (middle + 5, half)]
        turns += [(length - 5, half), (length, half), (length, 0)]
        drawn = ["{:g} {:g}".format(*place(*turn)) for turn in turns]
        commands = zip("Q LQ Q LQ ", drawn, strict=True)
        begin = "M{:g} {:g}".format(*place(0, 0))
        path = begin + "".join(f"{command} {point}" for command, point in commands)
        self._element("path", None, "line", d=path)
        x, y = place(middle, depth + math.copysign(9 if flat else 5, depth))
        side = "" if flat else " start" if depth > 0 else " end"
        self.label(x, y, label, "small" + side)

    def bar(
        self, x: Number, y: Number, length: Number, role: str, height: Number = 15
    ) -> Area:
        """Draw a bar that starts at x, for a share or a probability."""
        area = Area(x, y, length, height)
        self._rectangle(area, f"cell {role}")
        return area

    def _rectangle(self, area: Area, classes: str, **attributes: object) -> None:
        x, y, width, height = area
        self._element(
            "rect", None, classes, x=x, y=y, width=width, height=height, **attributes
        )

    def _element(
        self, tag: str, body: str | None, classes: str, **attributes: object
    ) -> None:
        attributes = {"class": " ".join(classes.split()), **attributes}
        written = "".join(
            f' {name}="{f"{value:.5g}" if isinstance(value, float) else value}"'
            for name, value in attributes.items()
            if value != ""
        )
        end = "/>" if body is None else f">{body}</{tag}>"
        self._markup.append(f"<{tag}{written}{end}")


def _raised(line: str) -> str:
    """Set ``_{...}`` lower and ``^{...}`` higher, and what follows where it was."""

    def moved(match: re.Match[str]) -> str:
        down = 3 if match[1] == "_" else -4
        rest = f"<tspan dy='{-down}'>{match[3]}</tspan>" if match[3] else ""
        return f"<tspan class='sub' dy='{down}'>{match[2]}</tspan>{rest}"

    return re.sub(r"([_^])\{(.*?)\}([^_^]*)", moved, line)


def _toward(start: Point, end: Point, distance: Number) -> Point:
    share = distance / (math.dist(start, end) or 1)
    return start[0] + (end[0] - start[0]) * share, start[1] + (
        end[1] - start[1]
    ) * share


def _with_elbows(points: Sequence[Point | str]) -> list[Point]:
    path: list[Point] = []
    for number, point in enumerate(points):
        if isinstance(point, str):
            before, after = points[number - 1], points[number + 1]
            assert not isinstance(before, str)
            assert not isinstance(after, str)
            point = (after[0], before[1]) if point == "-" else (before[0], after[1])
        if not path or path[-1] != point:
            path.append(point)
    return path
