"""Slides of a chapter, made from its page: a deck that opens from disk.

`book/decks/NN-name.yml` lists the slides in order. A slide has a title, at most 40
words of text, and what it shows. That is taken from the page as it was built, so that
nothing is written twice:

    fig-paths            a figure, by its label
    eq-attention         a formula, by its label
    quiz-2               a question of the page, by its number
    code Decoder.look    a class, a function or a method, of the one listing that has it
    cell optimizer =     the one code cell or listing with this text
    output reference:    the one printed output with this text, from its line on
    table dot score      the one table with this text
    stepper Decoding     the one stepped figure whose name begins so
    section since-then   nothing, but the notes are those of this section

The speaker's notes are the prose of the page around what a slide shows, in the section
where it stands, and the answers to a question. The first slide and the last come from
the page as a whole. `decks.js` beside them shows one slide at a time.

What this module does not do: it writes no prose, and lays nothing out.
"""

import copy
import os
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from html import escape
from itertools import repeat
from pathlib import Path

import yaml
from bs4 import Tag

from course_lib.files import write_whole
from course_tools.site import chapter_parts
from course_tools.site.chapter_parts import ChapterPage, DeckError, Shown, element, tag

SOURCES = "book/decks"
FOLDER = "decks"  # in the site
WORDS = 40  # of a slide's prose at most, its title not counted
SLIDES = range(25, 41)  # of a deck
COURSE = "From Attention to BERT"
ALONE, SHOWN, STEPPED, ASKED = 1, 2, 1, 5  # minutes that a slide and its parts take
STEP = ".stepper-step > p:not(.stepper-heading)"  # what a step says
STYLES = ("../_static/pygments.css", "../_static/tokenizer.css", "decks.css")
SCRIPTS = ("../_static/stepper.js", "decks.js", "../_static/mathjax/tex-chtml.js")
#: A few of Markdown's marks, for the text of a slide.
MARKS = {
    r"`([^`]+)`": r"<code>\1</code>",
    r"\$([^$]+)\$": r'<span class="math">\\(\1\\)</span>',
    r"\*\*([^*]+)\*\*": r"<strong>\1</strong>",
    r"\*([^*]+)\*": r"<em>\1</em>",
}


@dataclass(frozen=True)
class Slide:
    """A slide as `book/decks` has it: `note` is for the speaker, besides the page; what
    is shown `later` comes at the next key, after the class has thought."""

    title: str
    text: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    note: str = ""
    later: bool = False


def decks(root: Path) -> list[Path]:
    """List the decks, in the order of their chapters."""
    return sorted((root / SOURCES).glob("*.yml"))


def read_deck(path: Path) -> list[Slide]:
    """Read the slides of a deck."""
    slides = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        listed = {
            key: (value,) if isinstance(value, str) else tuple(value)
            for key, value in entry.items()
            if key in ("text", "show")
        }
        try:
            slides.append(Slide(**{**entry, **listed}))
        except TypeError as error:
            raise DeckError(f"{path.name}, {entry}: {error}") from error
    return slides


def marked(text: str) -> str:
    """Turn the marks of a deck into HTML."""
    made = escape(text, quote=False)
    for pattern, replacement in MARKS.items():
        made = re.sub(pattern, replacement, made)
    return made


def lines(text: tuple[str, ...]) -> str:
    """Write one line as a paragraph, and several as a list."""
    if len(text) > 1:
        return f"<ul>{''.join(f'<li>{marked(line)}</li>' for line in text)}</ul>"
    return "".join(f"<p>{marked(line)}</p>" for line in text)


def ready(shown: Shown) -> Tag:
    """Copy a part for a slide: without its caption, and a question without answers."""
    part = copy.copy(shown.part)
    for away in part.select("figcaption, .eqno"):
        away.decompose()
    for said in part.select(STEP):
        if len(said.text.split()) > WORDS:
            said.decompose()  # the notes have it
    if part.name == "form":
        return question(part)
    if part.name == "pre":
        kind = "printed" if shown.place.find_parent(class_="cell_output") else "code"
        return tag(f'<div class="highlight {kind}">{part}</div>')
    return part


def question(quiz: Tag) -> Tag:
    """Write a question and its choices, of which `decks.js` shows the right ones."""
    for number in quiz.select(".quiz-number, .quiz-letter"):
        number.decompose()
    choices = [
        f'<li data-correct="{element(choice, "input")["data-correct"]}">'
        f"{element(choice, 'label').decode_contents()}</li>"
        for choice in quiz.select(".quiz-choice")
    ]
    asked = element(quiz, "legend").decode_contents()
    text = f"<p>{asked}</p><ol>{''.join(choices)}</ol>"
    return tag(f'<div class="question">{text}</div>')


def words(slide: Tag) -> int:
    """Count the words of prose that a slide shows at once: its text, a question with
    its choices, and the longest step of a stepped figure."""
    said = len(" ".join(p.text for p in slide.select(".text, .question")).split())
    steps = [
        sum(len(part.text.split()) for part in step.select(STEP))
        for step in slide.select(".stepper-step")
    ]
    return said + max(steps, default=0)


def minutes(parts: list[Shown]) -> int:
    """Estimate how long a slide takes: a question five minutes, as the plans for
    teaching have it; else one, two more for what it shows, and one for each step."""
    if any(part.part.name == "form" for part in parts):
        return ASKED
    seen = [part.part for part in parts if part.part.name != "i"]
    steps = sum(len(part.select(".stepper-step")) for part in seen)
    return ALONE + SHOWN * len(seen) + STEPPED * steps


def slides_of(page: ChapterPage, deck: list[Slide]) -> list[str]:
    """Write the slides of a deck, all but the first and the last, as HTML."""
    shown = [[page.find(wanted) for wanted in slide.show] for slide in deck]
    places = [parts[0].place if parts else None for parts in shown]
    made = []
    for at, (slide, parts) in enumerate(zip(deck, shown, strict=True)):
        notes = [f"<p>{marked(slide.note)}</p>"] if slide.note else []
        place = places[at]
        if place is not None:
            before = next((p for p in places[:at][::-1] if p), None)
            after = next((p for p in places[at + 1 :] if p), None)
            notes += [str(part) for part in page.notes(place, before, after)]
            notes += [str(part) for part in place.select(f".quiz-explanation, {STEP}")]
        sources = {  # a name once
            part.name: f'<a href="../{page.name}.html#{anchor(part.place)}">'
            f"{part.name}</a>"
            for part in parts
        }
        made.append(
            section(
                f"<h2>{marked(slide.title)}</h2>",
                lines(slide.text),
                "".join(str(ready(part)) for part in parts if part.part.name != "i"),
                " ".join(sources.values()),
                "".join(notes),
                slide.later,
                minutes(parts),
            )
        )
    return made


def anchor(place: Tag) -> str:
    """Return the id of a place, or of what it stands in."""
    holder = place if place.get("id") else place.find_parent(id=True)
    return str(holder["id"]) if isinstance(holder, Tag) else ""


def section(
    heading: str,
    text: str = "",
    shown: str = "",
    source: str = "",
    notes: str = "",
    later: bool = False,
    takes: int = ALONE,
) -> str:
    """Write one slide. `decks.js` makes what is shown as large as there is room."""
    picture = shown.startswith("<figure") and "stepper" not in shown
    kind = "alone" if not shown else "beside" if text and picture else ""
    text = text and f'<div class="text">{text}</div>'
    when = "shown later" if later else "shown"
    shown = shown and f'<div class="{when}"><div class="fit">{shown}</div></div>'
    return (
        f'<section class="slide" data-minutes="{takes}">{heading}'
        f'<div class="body {kind}">{text}{shown}</div>'
        f'<footer><span>{source}</span></footer><div class="notes">{notes}</div>'
        "</section>"
    )


def deck_html(page: ChapterPage, deck: list[Slide]) -> str:
    """Write a deck: the chapter's title and question, the slides, what to do next."""
    asked = element(element(page.article, "section"), "p").decode_contents()
    first = section(
        f"<h1>{page.title}</h1>",
        f"<p>{asked}</p><p>{COURSE}</p>",
        notes="".join(str(part) for part in page.select("div.tip > ul")),
    )
    chapter = f"../{page.name}"
    last = section(
        "<h2>After the lecture</h2>",
        f'<ul><li><a href="{chapter}.html">The chapter</a></li>'
        f'<li><a href="{chapter}-lab.html">Its laboratory</a></li>'
        f'<li><a href="{chapter}.html#exercises">Exercises, with solutions</a></li>'
        '<li><a href="index.html">All slides</a></li></ul>',
        notes="".join(str(part) for part in page.select("#summary > ul")),
    )
    return page_html(f"Slides: {page.title}", [first, *slides_of(page, deck), last])


def page_html(title: str, slides: list[str]) -> str:
    """Write a page of slides that needs the site's `_static` and nothing else."""
    styles = [f'<link rel="stylesheet" href="{name}">' for name in STYLES]
    scripts = [f'<script src="{name}" defer></script>' for name in SCRIPTS]
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        *styles,
        "<script>window.MathJax = {options: {enableMenu: false}}</script>",
        *scripts,
    ]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en" data-theme="light"><head>',
            *head,
            "</head><body><main>",
            *slides,
            "</main></body></html>\n",
        ]
    )


def write_deck(source: Path, site: Path) -> Path:
    """Write the deck of a chapter into the site, if it has changed."""
    deck = site / FOLDER / f"{source.stem}.html"
    code = [Path(__file__), Path(chapter_parts.__file__)]
    made_from = [source, site / deck.name, *code]
    newest = max(path.stat().st_mtime for path in made_from)
    if not deck.is_file() or deck.stat().st_mtime < newest:
        page = ChapterPage(site, source.stem)
        write_whole(deck, deck_html(page, read_deck(source)))
    return deck


def write_decks(root: Path, site: Path) -> list[Path]:
    """Write the decks into the site, side by side, and a list of all."""
    entries = []
    (site / FOLDER).mkdir(exist_ok=True)
    for name in ("decks.css", "decks.js"):
        shutil.copyfile(root / SOURCES / name, site / FOLDER / name)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(write_deck, decks(root), repeat(site)))
    for deck in made:
        written = deck.read_text("utf-8")
        title = re.findall("<title>Slides: (.*)</title>", written)[0]
        takes = [int(one) for one in re.findall('data-minutes="([0-9]+)"', written)]
        entries.append(
            f'<li><a href="{deck.name}">{title}</a> ({len(takes)} slides,'
            f" {sum(takes)} min)</li>"
        )
    listed = section(
        "<h1>Slides</h1>",
        "<p>Arrow keys turn the slides, S opens the speaker's notes with the minutes, F"
        " fills the screen. To print a deck, add <code>?print-pdf</code> to its"
        f' address.</p><ul class="decks">{"".join(entries)}</ul>',
    )
    index = page_html(f"Slides: {COURSE}", [listed])
    write_whole(site / FOLDER / "index.html", index)
    return made
