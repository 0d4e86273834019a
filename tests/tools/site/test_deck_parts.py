"""Slides take from a page what they name, once and whole, and say so where they
cannot."""

import os

import pytest
from bs4 import BeautifulSoup

from course_tools.site.chapter_parts import ChapterPage, DeckError
from course_tools.site.decks import (
    Slide,
    deck_html,
    marked,
    read_deck,
    words,
    write_decks,
)

PAGE = """<html><body><article><section id="title"><h1>7. Title<a class="headerlink"
href="#title">#</a></h1><p>Why?</p>
<section id="one"><h2>One</h2><p>Before.</p>
<figure id="fig-a"><img src="_images/a.png" alt="A"><figcaption><p><span
class="caption-number">Fig. 7.1 </span>A caption.</p></figcaption></figure>
<p>Between, see <a href="#two">two</a>.</p>
<div class="math" id="equation-eq-b"><span class="eqno">(1)</span>\\[x\\]</div>
<p>After.</p></section>
<section id="two"><h2>Two</h2><p>Prose of two.</p>
<div class="highlight-python"><pre><span class="k">class</span> A:
    <span class="k">def</span> first(
        self
    ) -> int:
        return 1

    <span class="k">def</span> second(self):
        return 2
</pre></div>
<div class="highlight-python"><pre>else</pre></div>
<div class="cell_output"><div class="output stream highlight-none"><div
class="highlight"><pre>read 7 rows
loss 0.5
loss 0.4</pre></div></div></div>
<form class="quiz" id="quiz-1"><fieldset><legend><span class="quiz-number">Question
1.</span> Which?</legend><div class="quiz-choice"><input
data-correct="false"><label><span class="quiz-letter">A.</span> This.</label></div>
<div class="quiz-choice"><input data-correct="true"><label><span
class="quiz-letter">B.</span> That
one.</label></div></fieldset><ul><li class="quiz-explanation">B is
right.</li></ul></form></section></section></article></body></html>"""


@pytest.fixture
def page(tmp_path):
    (tmp_path / "07-title.html").write_text(PAGE)
    return ChapterPage(tmp_path, "07-title")


def made(page, *slides):
    """The slides of a deck, without the first and the last."""
    html = BeautifulSoup(deck_html(page, [*slides]), "html.parser")
    return html.select(".slide")[1:-1]


def test_a_method_is_cut_out_of_its_class_and_moved_to_the_left(page):
    shown = page.find("code A.first").part
    assert shown.text == "def first(\n    self\n) -> int:\n    return 1"
    assert len(shown.select("span.k")) == 1, "with its colours"
    assert page.find("code A.second").part.text == "def second(self):\n    return 2"
    assert page.find("code A").part.text.count("return") == 2


def test_an_output_begins_with_the_line_that_is_named(page):
    assert page.find("output loss 0.5").part.text == "loss 0.5\nloss 0.4"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("fig-b", "has 0 of 'fig-b'"),
        ("code A.third", "has 0 of 'code A.third'"),
        ("output 0.9", "has 0 of 'output 0.9'"),
        ("cell e", "has 2 of 'cell e'"),
        ("section three", "has 0 of 'section three'"),
        ("picture a", "no kind"),
    ],
)
def test_what_is_not_there_or_not_one_thing_is_a_fault(page, wanted, said):
    with pytest.raises(DeckError, match=said):
        page.find(wanted)


def test_a_slide_shows_a_figure_without_its_caption_and_says_where_it_is_from(page):
    [slide] = made(page, Slide("It", ("Look.",), ("fig-a",)))
    assert slide.figure.img["src"] == "../_images/a.png"
    assert "caption" not in slide.select_one(".shown").text
    assert slide.footer.a["href"] == "../07-title.html#fig-a"
    assert slide.footer.a.text == "Fig. 7.1"


def test_notes_are_the_prose_of_the_section_between_the_slides_before_and_after(page):
    first, second = made(
        page, Slide("A", show=("fig-a",)), Slide("B", show=("eq-b",), note="Ask.")
    )
    assert "Before." in first.select_one(".notes").text
    assert "Between" in first.select_one(".notes").text
    assert "After." not in first.select_one(".notes").text
    notes = second.select_one(".notes")
    assert notes.text.startswith("Ask.")
    assert "After." in notes.text
    assert "Before." not in notes.text
    assert "Prose of two." not in notes.text
    assert notes.a["href"] == "../07-title.html#two"


def test_a_question_has_its_choices_on_the_slide_and_its_answer_in_the_notes(page):
    [slide] = made(page, Slide("Ask", show=("quiz-1",)))
    assert [choice["data-correct"] for choice in slide.select("li[data-correct]")] == [
        "false",
        "true",
    ]
    assert words(slide) == 4, "Which? This. That one."
    assert "B is right." in " ".join(slide.select_one(".notes").text.split())
    assert "right" not in slide.select_one(".shown").text


def test_marks_become_html_and_nothing_else_does():
    assert marked("`a < b` *c* **d**") == (
        "<code>a &lt; b</code> <em>c</em> <strong>d</strong>"
    )
    assert marked("$x_1$") == '<span class="math">\\(x_1\\)</span>'


def test_a_deck_is_written_anew_when_its_page_or_its_slides_changed(tmp_path):
    site, sources = tmp_path / "html", tmp_path / "book" / "decks"
    sources.mkdir(parents=True)
    site.mkdir()
    for name in ("decks.css", "decks.js"):
        (sources / name).write_text("")
    (site / "07-title.html").write_text(PAGE)
    source = sources / "07-title.yml"
    source.write_text("- title: One\n  text: Word.\n")
    [deck] = write_decks(tmp_path, site)
    assert "7. Title" in (site / "decks" / "index.html").read_text()
    deck.write_text(deck.read_text() + "kept")
    write_decks(tmp_path, site)
    assert deck.read_text().endswith("kept")
    later = deck.stat().st_mtime + 10
    os.utime(source, (later, later))
    write_decks(tmp_path, site)
    assert not deck.read_text().endswith("kept")


def test_a_misspelt_entry_of_a_deck_is_named(tmp_path):
    path = tmp_path / "deck.yml"
    path.write_text("- title: One\n  shows: fig-a\n")
    with pytest.raises(DeckError, match="shows"):
        read_deck(path)
