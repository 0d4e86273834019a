"""What slides take from a chapter's page: figures, formulas, code, results, prose.

`ChapterPage` reads a page as it was built, and `find` returns the one part of it that a
slide names; `course_tools.site.decks` lists the ways to name one. What this module does
not do: it knows no slide.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

LISTING = "div[class*=highlight-]:not(.output) pre"
PRINTED = "div.output.stream pre, div.output.text_plain pre"
#: What is found by an id, made from how a slide names it.
BY_LABEL = {"fig": "{}", "eq": "equation-{}", "quiz": "{}"}
#: Where text is no prose that a speaker could say: elements, and classes.
APART = {"form", "table", "details", "stepper", "admonition"}
#: What no slide shows: links to a heading itself, and widgets of many elements.
AWAY = ["headerlink", "attention-explorer", "tokenizer-explorer", "searcher"]


class DeckError(RuntimeError):
    """A deck asks for what its page does not have; the message says for what."""


class Shown(NamedTuple):
    """A part of a page that a slide shows, where it stands, and what it is called."""

    part: Tag
    place: Tag
    name: str


class ChapterPage:
    """A built page, seen from a folder beside it."""

    def __init__(self, site: Path, name: str) -> None:
        self.name = name
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        self.article = element(BeautifulSoup(text, "html.parser"), "article")
        for away in self.article.find_all(class_=AWAY):
            away.decompose()
        for key in ("href", "src"):
            for part in self.article.select(f"[{key}]"):
                part[key] = self._from_beside(str(part[key]))
        self.order = {id(part): at for at, part in enumerate(self.article.find_all())}
        self.labelled = {part["id"]: part for part in self.article.find_all(id=True)}
        self.select = cache(self.article.select)
        prose = self.select("section > :is(p, ul, ol), figcaption")
        self.prose = [part for part in prose if not part.find_parent(_is_apart)]

    def _from_beside(self, address: str) -> str:
        if address.startswith("#"):
            return f"../{self.name}.html{address}"
        return address if re.match("[a-z]+:", address) else f"../{address}"

    @property
    def title(self) -> str:
        """Return the chapter's number and title."""
        return element(self.article, "h1").text

    def find(self, wanted: str) -> Shown:
        """Find the one thing that a slide calls so."""
        kind, _, text = wanted.partition(" ")
        ways: dict[str, Callable[[str], Iterator[Shown]]] = {
            "code": self._blocks,
            "cell": lambda text: self._holding(LISTING, text),
            "table": lambda text: self._holding("table", text),
            "output": self._printed,
            "stepper": self._steppers,
            "section": self._sections,
        }
        sort = kind.partition("-")[0]
        if kind in ways:
            found = list(ways[kind](text))
        elif sort in BY_LABEL:
            part = self.labelled.get(BY_LABEL[sort].format(kind))
            found = [Shown(part, part, _number(part))] if part else []
        else:
            raise DeckError(f"{self.name}: {wanted!r} is of no kind that slides show")
        if len(found) != 1:
            raise DeckError(f"{self.name} has {len(found)} of {wanted!r}, not one")
        return found[0]

    def _holding(self, selector: str, text: str) -> Iterator[Shown]:
        for part in self.select(selector):
            if text in part.text:
                yield Shown(part, part, section_title(part))

    def _printed(self, text: str) -> Iterator[Shown]:
        """Find outputs with a text, without the lines before it."""
        for _, part, name in self._holding(PRINTED, text):
            lines = part.get_text().split("\n")
            first = next(n for n, line in enumerate(lines) if text in line)
            yield Shown(_lines_of(part, first, len(lines)), part, name)

    def _steppers(self, text: str) -> Iterator[Shown]:
        for part in self.select(".stepper"):
            if str(part["aria-label"]).startswith(text):
                yield Shown(part, part, text)

    def _sections(self, text: str) -> Iterator[Shown]:
        for title in self.article.find_all(["h2", "h3"]):
            if title.parent and title.parent.get("id") == text:
                yield Shown(Tag(name="i"), title, title.text)

    def _blocks(self, name: str) -> Iterator[Shown]:
        """Cut a class, function or method out of each listing that has it."""
        for listing in self.select(LISTING):
            lines = listing.get_text().split("\n")
            first, last = 0, len(lines)
            for part in name.split("."):
                begins = re.compile(rf"\s*(class|def) {part}\b")
                starts = (n for n in range(first, last) if begins.match(lines[n]))
                first = next(starts, last)
                last = _end_of_block(lines, first, last)
            if first < last:
                yield Shown(_lines_of(listing, first, last), listing, name)

    def notes(self, place: Tag, before: Tag | None, after: Tag | None) -> list[Tag]:
        """Return the prose of a place's section: that between two other places, or else
        all of it."""
        section = place.find_parent("section")
        begin = self.order[id(before)] if before else -1
        end = self.order[id(after)] if after else len(self.order)
        inside = [part for part in self.prose if part.find_parent("section") is section]
        return [p for p in inside if begin < self.order[id(p)] < end] or inside


def element(soup: Tag, name: str) -> Tag:
    """Return the first element of a kind, which must be there."""
    found = soup.find(name)
    if not isinstance(found, Tag):
        raise DeckError(f"there is no <{name}> in {str(soup)[:80]!r}")
    return found


def tag(text: str) -> Tag:
    """Read HTML of one element."""
    return element(BeautifulSoup(text, "html.parser"), re.findall(r"\w+", text)[0])


def section_title(part: Tag) -> str:
    """Return the title of the section in which something stands."""
    title = part.find_previous(["h1", "h2", "h3"])
    return title.text if title else ""


def _is_apart(part: Tag) -> bool:
    return bool(APART & {part.name, *part.get_attribute_list("class")})


def _number(part: Tag) -> str:
    """Return what the page calls a thing: Fig. 1.5, or (6)."""
    number = part.select_one(".caption-number, .eqno, .quiz-number")
    return number.text.strip(" .") if number else ""


def _lines_of(listing: Tag, first: int, last: int) -> Tag:
    """Cut lines out of a listing with their colours, as far left as they go."""
    plain, lines = listing.get_text().split("\n"), listing.decode_contents().split("\n")
    indent = " " * (len(plain[first]) - len(plain[first].lstrip()))
    cut = [line.removeprefix(indent) for line in lines[first:last]]
    return tag(f"<pre>{chr(10).join(cut)}</pre>")


def _end_of_block(lines: list[str], first: int, last: int) -> int:
    """Return the line after the indented block that begins at a line."""
    if first == last:
        return last
    indent = len(lines[first]) - len(lines[first].lstrip())
    end = first + 1
    for number in range(first + 1, last):
        line = lines[number].strip()
        deep = len(lines[number]) - len(lines[number].lstrip()) > indent
        if line and not deep and not line.startswith(")"):
            break
        if line:
            end = number + 1
    return end
