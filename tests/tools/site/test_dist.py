"""What a release hands out: archives that are the same for the same site, and a book of
all pages whose contents say where they lie."""

import hashlib
import importlib
import os
import re
import zipfile
from pathlib import Path

import pytest
from house import ROOT
from PIL import Image

from course_tools.site import dist
from course_tools.site.book_pdf import (
    FIT,
    PAPER,
    book_html,
    pages_in_order,
    pages_of_labels,
    print_book,
    printable,
)
from course_tools.site.build import SiteError

MATHJAX = importlib.import_module("sphinx-mathjax-offline")
FIRST = """<html><body><article><section id="one"><h1>One</h1>
<p>See <a href="two.html#far">far</a>, <a href="#one">here</a>, <a href="api.html">the
reference</a>, <a href="https://example.org/">elsewhere</a>.</p>
<details class="hide"><summary>Show</summary><pre>hidden code</pre></details>
<details class="quiz-answers"><summary>Answers</summary><p>B is right.</p></details>
<div class="attention-explorer">live</div>
<figure><img src="_images/a.png" alt="A"><figcaption>A.</figcaption></figure>
<svg role="img" width="9" height="9" aria-labelledby="t d"><title id="t">T</title><desc
id="d">D</desc><rect width="9" height="9"/></svg></section></article></body></html>"""
SECOND = """<html><body><article><section id="two"><h1>Two</h1>
<section id="near"><h2>Near</h2><p style="height: 250mm">Long.</p></section>
<section id="far"><h2>Far away</h2><p style="break-before: page">Text.</p>
<div class="math" id="equation-e">\\[x^2\\]</div></section></section></article></body>
</html>"""


@pytest.fixture
def root(tmp_path):
    """A book of two pages, built."""
    site = tmp_path / "_build" / "html"
    (tmp_path / "_build" / "dist").mkdir(parents=True)
    (site / "_images").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(site / "_images" / "a.png")
    (site / "_static").mkdir()
    (site / "_static" / "pygments.css").write_text("")
    offline = Path(MATHJAX.__file__).parent / "static" / "mathjax"
    (site / "_static" / "mathjax").symlink_to(offline)
    (site / "one.html").write_text(FIRST)
    (site / "two.html").write_text(SECOND)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "_toc.yml").write_text(
        "format: jb-book\nroot: one\nparts:\n- chapters:\n  - file: two\n"
        "    sections: [{glob: '_generated/*'}]\n"
    )
    return tmp_path


def test_the_book_has_every_page_that_is_written_in_the_order_of_the_contents():
    names = pages_in_order(ROOT)
    assert names[0] == "index"
    chapters = [name for name in names if name[:2].isdigit()]
    assert chapters == sorted(chapters, key=lambda name: (name[:2], "-lab" in name))
    assert {f"{name}.md" for name in chapters} == {
        path.name for path in (ROOT / "book").glob("[0-9][0-9]-*.md")
    }


def test_a_page_is_unfolded_and_its_labels_and_links_are_those_of_the_whole_book(root):
    page = printable(root / "_build" / "html", "one", ["one", "two"])
    links = [link.get("href") for link in page.find_all("a")]
    assert links == ["#two--far", "#one--one", None, "https://example.org/"]
    assert page.section["id"] == "one--one"
    assert page.svg["aria-labelledby"] == "one--t one--d"
    assert page.img["src"] == "../html/_images/a.png"
    assert page.find("details")["open"] == ""
    assert page.find("div", class_="hide").text == "hidden code"
    assert "live" not in page.text


def test_the_contents_have_pages_sections_and_their_numbers(root):
    site = root / "_build" / "html"
    articles = [printable(site, name, ["one", "two"]) for name in ("one", "two")]
    text = book_html(articles, {"two": 5, "two--far": 7})
    assert '<a href="#two"><span>Two</span> 5</a>' in text
    assert '<a href="#two--far"><span>Far away</span> 7</a>' in text
    assert '<a href="#two--near"><span>Near</span> </a>' in text


@pytest.mark.browser
def test_a_printed_book_has_bookmarks_tags_and_knows_the_page_of_each_title(
    root, browser
):
    target = root / "_build" / "dist" / "book.pdf"
    count = print_book(root, browser, target)
    printed = target.read_bytes()
    numbers = pages_of_labels(printed)
    assert numbers["one"] == 3, "after cover and contents"
    assert numbers["one"] < numbers["two"] == numbers["two--near"] < numbers["two--far"]
    assert numbers["two--far"] in (count - 1, count)
    for part in (b"/Outlines", b"/StructTreeRoot", b"/Lang (en)"):
        assert part in printed
    pictures = re.findall(rb"/S /Figure(.*?)endobj", printed, re.DOTALL)
    texts = [re.search(rb"/Alt \((.*?)\)", picture) for picture in pictures]
    assert [text and text[1] for text in texts] == [b"A", b"T D", b"x^2"]
    assert [path.name for path in target.parent.iterdir()] == ["book.pdf"]


@pytest.mark.browser
def test_wide_tables_become_as_small_as_the_paper_and_short_ones_stay_whole(browser):
    cells = "".join(f"<td>{'wide' * 12}</td>" for _ in range(4))
    page = browser.new_page(viewport=PAPER)
    page.set_content(
        f"<main><table><tr>{cells}</table><table>{'<tr><td>a' * 99}</table></main>"
    )
    page.evaluate(FIT)
    wide, long = page.locator("table").all()
    assert wide.bounding_box()["width"] <= PAPER["width"]
    breaks = [one.evaluate("table => table.style.breakInside") for one in (wide, long)]
    assert breaks == ["avoid", ""]
    page.close()


def test_an_archive_is_the_same_whenever_its_files_were_written(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("word")
    made = []
    for second in (1_000_000_000, 1_500_000_000):
        os.utime(file, (second, second))
        archive = dist.zipped(tmp_path / f"{second}.zip", "top", {"in/a.txt": file})
        made.append(archive.read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(archive) as opened:
        assert opened.read("top/in/a.txt") == b"word"


def test_checksums_are_those_of_all_files_but_their_own(tmp_path):
    (tmp_path / "b.zip").write_bytes(b"bytes")
    (tmp_path / "SHA256SUMS").write_text("old")
    digest = hashlib.sha256(b"bytes").hexdigest()
    assert dist.checksums(tmp_path) == f"{digest}  b.zip\n"


def test_a_site_that_is_not_whole_is_not_handed_out(tmp_path):
    with pytest.raises(SiteError, match="make dist"):
        next(dist.distribute(tmp_path))
