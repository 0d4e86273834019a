"""The book as a PDF: its pages on one long page, which Chromium prints.

Pages follow the table of contents, without those that code writes about code and data.
What is folded on the site stands open. Links lead within the book; Chromium makes the
bookmarks of the titles, and tags the text for screen readers. The page numbers of the
contents come from a first printing, in which each title says on which page it fell.

What this module does not do: it changes no page of the site.
"""

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup, Tag

from course_tools.site.chapter_parts import AWAY, element

TITLE = "From Attention to BERT"
#: What only a browser can use.
LIVE = [*AWAY, "quiz-check", "quiz-feedback", "live-part", "toctree-wrapper"]
STYLE = """
@page { size: A4; margin: 20mm 20mm 22mm; }
html { --pst-color-background: #fff; --pst-color-border: #8a919c; font-size: 10.5pt; }
body { color: #1d2430; font: 10.5pt/1.45 "DejaVu Serif", Georgia, serif; margin: 0; }
h1, h2, h3, h4, caption, th, figcaption, summary, .admonition-title, nav {
  font-family: "DejaVu Sans", Helvetica, Arial, sans-serif; }
h1 { break-before: page; font-size: 20pt; } nav h1 { break-before: auto; }
h2 { font-size: 15pt; } h3 { font-size: 12pt; }
h1, h2, h3, h4, h2 + p, .admonition-title, .stepper-title, .stepper-heading, summary,
p:has(+ div table) { break-after: avoid; }
a { color: #1e4b75; text-decoration: none; }
p, li { orphans: 3; widows: 3; }
.figure, svg, img, mjx-container[display="true"], tr, .quiz-choice, .stepper-step {
  break-inside: avoid; }
.figure { margin: 1em 0; } .figure svg, .figure img, svg.diagram { max-width: 125mm; }
img { height: auto; max-width: 100%; } svg.diagram { display: block; margin: 1em auto; }
figcaption, caption { color: #333; font-size: 9pt; text-align: left; }
pre { background: #f4f6f8; font: 8pt/1.35 "DejaVu Sans Mono", monospace; margin: .6em 0;
  overflow-wrap: anywhere; padding: 5pt 7pt; white-space: pre-wrap; }
code { font: .88em "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 8.5pt; margin: .8em 0; max-width: 100%; }
thead { display: table-header-group; }
th, td { border-bottom: .5pt solid #8a919c; padding: 2pt 6pt; text-align: left;
  vertical-align: top; }
td p, th p, li > p { margin: 0; }
.admonition { border-left: 2pt solid #1e5b8c; margin: 1em 0; padding: 1pt 10pt; }
.admonition-title { font-weight: 600; } details > summary { list-style: none; }
.eqno { float: right; } .stepper-steps { list-style: none; padding: 0; }
.quiz { border-top: .5pt solid #8a919c; } .quiz input { display: none; }
fieldset { border: 0; } .citation { display: grid; grid-template-columns: 24mm 1fr; }
.cover { box-sizing: border-box; height: 240mm; padding-top: 70mm;
  text-align: center; }
.verdict { border: .5pt solid; font-weight: 600; margin-right: 4pt; padding: 0 3pt; }
nav.contents { break-before: page; }
nav.contents ol { list-style: none; padding-left: 1.4em; }
nav.contents a { display: flex; justify-content: space-between; }
"""
#: Wide formulas and tables become as small as the line is wide, and a table that a page
#: has room for stays whole.
FIT = """() => {
  const room = document.querySelector("main").clientWidth;
  for (const part of document.querySelectorAll("mjx-container[display=true] mjx-math, table")) {
    const width = part.getBoundingClientRect().width;
    if (width > room) (part.closest("mjx-container") ?? part).style.zoom = 0.98 * room / width;
  }
  for (const table of document.querySelectorAll("table"))
    if (table.getBoundingClientRect().height < 900) table.style.breakInside = "avoid";
}"""  # noqa: E501
#: MathJax hides what it draws and writes MathML beside it, of which Chromium prints
#: nothing. In its place comes a picture of nothing, whose text is the formula's TeX.
SPEAK = """() => Promise.all([...MathJax.startup.document.math].map(({math, typesetRoot}) => {
  const text = new Image();
  text.alt = math.trim();
  text.style = "height: 100%; left: 0; position: absolute; top: 0; width: 100%";
  text.src = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
  typesetRoot.querySelector("mjx-assistive-mml").replaceWith(text);
  return text.decode();
}))"""  # noqa: E501
#: The site's own settings: text outside formulas may hold dollars and backslashes.
MATHJAX = {"options": {"enableMenu": False, "processHtmlClass": "math|output_area"}}
#: A4 within its margins, in CSS pixels: wide things are measured as they are printed.
PAPER = {"width": 642, "height": 963}
NUMBER = '<span class="pageNumber"></span>'
FOOT = f'<p style="font: 8px sans-serif; margin: 0 auto">{NUMBER}</p>'


def pages_in_order(root: Path) -> list[str]:
    """List the pages that a person has written, in the order of the contents."""
    toc = yaml.safe_load((root / "book" / "_toc.yml").read_text(encoding="utf-8"))

    def files(entries: list[dict[str, Any]]) -> Iterator[str]:
        for entry in entries:
            if "file" in entry:
                yield entry["file"]
            yield from files(entry.get("sections", []))

    listed = [name for part in toc["parts"] for name in files(part["chapters"])]
    return [toc["root"], *listed]


def printable(site: Path, name: str, names: list[str]) -> Tag:
    """Take a page's text for print: unfolded, without what is live, its labels its own
    and its links within the book."""
    text = (site / f"{name}.html").read_text(encoding="utf-8")
    article = element(BeautifulSoup(text, "html.parser"), "article")
    for away in article.find_all(class_=LIVE):
        away.decompose()
    for folded in article.find_all("details"):
        folded["open"] = ""
        if "hide" in folded.get_attribute_list("class"):
            element(folded, "summary").decompose()
            folded.name = "div"
    for key in ("id", "aria-labelledby", "for"):
        for held in article.select(f"[{key}]"):
            labels = str(held[key]).split()
            held[key] = " ".join(label(name, one) for one in labels)
    for figure in article.find_all("figure"):  # in a PDF, the picture alone is one
        figure.name, figure["class"] = "div", "figure"
    for image in article.select("[src]"):
        image["src"] = f"../html/{image['src']}"
    for link in article.select("a[href]"):
        address = str(link["href"])
        file, _, place = address.partition("#")
        target = file.removesuffix(".html") or name
        if target in names:
            link["href"] = f"#{label(target, place)}"
        elif not re.match("[a-z]+:", address):
            del link["href"]  # a page that the book leaves out, or a file
    article.name = "section"
    article["id"] = label(name, "")
    return article


def label(page: str, part: str) -> str:
    """Name a place of the whole book."""
    return f"{page}--{part}" if part else page


def contents(articles: list[Tag], numbers: dict[str, int]) -> str:
    """Write the contents: pages and their sections, with page numbers if known."""

    def line(target: str, title: str) -> str:
        number = numbers.get(target, "")
        return f'<a href="#{target}"><span>{escape(title)}</span> {number}</a>'

    entries = []
    for article in articles:
        inside = [
            f"<li>{line(str(h2.parent['id']), h2.text)}</li>"
            for h2 in article.find_all("h2")
            if h2.parent is not None and h2.parent.get("id")
        ]
        title = element(article, "h1").text
        below = f"<ol>{''.join(inside)}</ol>" if inside else ""
        entries.append(f"<li>{line(str(article['id']), title)}{below}</li>")
    return f'<nav class="contents"><h1>Contents</h1><ol>{"".join(entries)}</ol></nav>'


def book_html(articles: list[Tag], numbers: dict[str, int]) -> str:
    """Write the whole book as one page."""
    head = [
        f'<meta charset="utf-8"><title>{TITLE}</title>',
        '<link rel="stylesheet" href="../html/_static/pygments.css">',
        f"<style>{STYLE}</style>",
        f"<script>window.MathJax = {json.dumps(MATHJAX)}</script>",
        '<script src="../html/_static/mathjax/tex-chtml.js" defer></script>',
    ]
    cover = f'<div class="cover"><p style="font-size: 30pt">{TITLE}</p></div>'
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en" data-theme="light"><head>',
            *head,
            f"</head><body><main>{cover}",
            contents(articles, numbers),
            *map(str, articles),
            "</main></body></html>\n",
        ]
    )


def pages_of_labels(printed: bytes) -> dict[str, int]:
    """Return the number of the page on which each label of a printed book lies, as
    Chromium writes it: a dictionary of destinations, each with its page's object."""
    objects = re.findall(rb"(\d+) 0 obj\s*<<[^>]*?/Type\s*/Page\b(?!s)", printed)
    number = {page: at for at, page in enumerate(objects, start=1)}
    places = re.findall(rb"/([^\s/\[\]<>()]+)\s*\[(\d+) 0 R\s*/XYZ", printed)
    return {
        re.sub(rb"#([0-9A-F]{2})", lambda m: bytes.fromhex(m[1].decode()), name).decode(
            "utf-8", "replace"
        ): number[page]
        for name, page in places
        if page in number
    }


def print_book(root: Path, browser: Any, target: Path) -> int:
    """Print the book into a file, and return the number of its pages."""
    site, names = root / "_build" / "html", pages_in_order(root)
    articles = [printable(site, name, names) for name in names]
    written, numbers = target.with_suffix(".html"), dict[str, int]()
    for _ in ("without numbers", "with"):
        written.write_text(book_html(articles, numbers), encoding="utf-8")
        page = browser.new_page(viewport=PAPER)
        page.set_default_timeout(0)
        page.goto(written.as_uri())
        page.wait_for_function("MathJax.startup.promise.then(() => true)")
        page.evaluate(SPEAK)
        page.evaluate(FIT)
        printed = page.pdf(
            prefer_css_page_size=True,
            print_background=True,
            outline=True,
            tagged=True,
            display_header_footer=True,
            header_template="<p></p>",
            footer_template=FOOT,
        )
        page.close()
        numbers = pages_of_labels(printed)
    written.unlink()
    target.write_bytes(printed)
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", printed))
