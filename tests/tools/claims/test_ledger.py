"""The ledgers: verdicts follow their rules, figures are found where they are said to
be, and nothing is left out."""

import json
import math
import re
from pathlib import Path

import nbformat
import pytest
from jupyter_cache import get_cache
from pybtex.database import parse_file

from course_tools.claims import claims as ledger
from course_tools.claims.claim import Claim, hold, once_recorded
from course_tools.claims.deviations import DEVIATIONS
from course_tools.claims.evidence import (
    Evidence,
    ExecutedPage,
    LedgerError,
    parse_figure,
    tables_of,
)
from course_tools.claims.measured import Measured, apart, exact, one_run, over
from course_tools.claims.pages import (
    claims_page,
    coverage_page,
    deviations_page,
    reading_page,
)
from course_tools.claims.reading import READING
from course_tools.claims.rows import ROWS, chapter_pages, row_labels
from course_tools.claims.sources import (
    Apart,
    Cell,
    Computed,
    Glued,
    GluedRange,
    Lead,
    Printed,
    Recorded,
)
from course_tools.claims.verdicts import (
    Even,
    Figure,
    Statement,
    Trend,
    Unmeasured,
    Verdict,
)

BOOK = Path(__file__).parents[3] / "book"
CLAIMS = ledger.claims_of(BOOK)
KEYS = set(parse_file(str(BOOK / "references.bib")).entries)
LABELS = {
    label
    for page in BOOK.glob("*.md")
    for label in re.findall(r"^\(([\w-]+)\)=$", page.read_text(), re.M)
}
by_name = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
REPRODUCED, DIRECTION, SCALE, CONTRADICTED = Verdict


def interval(low: float, high: float) -> Measured:
    return Measured((low + high) / 2, low, high, "by hand")


@pytest.mark.parametrize(
    ("rule", "measured", "verdict"),
    [
        (Statement(), interval(0.1, 0.9), REPRODUCED),
        (Statement(), interval(-0.1, 0.9), SCALE),
        (Statement(), interval(-0.9, -0.1), CONTRADICTED),
        (Statement("below", 2.0), interval(0.5, 1.9), REPRODUCED),
        (Statement("below", 2.0), interval(0.5, 2.1), SCALE),
        (Statement("below", 2.0), interval(2.1, 2.5), CONTRADICTED),
        (Statement(), one_run(7.0), SCALE),
        (
            Statement(),
            Measured(3.0, 3.0, math.inf, "the least of the seeds"),
            REPRODUCED,
        ),
        (
            Statement("below"),
            Measured(3.0, 3.0, math.inf, "the least of the seeds"),
            CONTRADICTED,
        ),
        (Trend(), interval(0.1, 0.9), DIRECTION),
        (Trend(), interval(-0.1, 0.9), SCALE),
        (Trend(), interval(-0.9, -0.1), CONTRADICTED),
        (Trend("above", 1.0), interval(1.1, 1.3), DIRECTION),
        (Trend("above", 1.0), interval(0.9, 1.3), SCALE),
        (Trend("below"), interval(-0.9, -0.1), DIRECTION),
        (Figure(2.0), interval(1.5, 2.1), REPRODUCED),
        (Figure(2.0), interval(1.5, 1.9), SCALE),
        (Figure(2.0, 0.2), interval(1.5, 1.9), REPRODUCED),
        (Figure(2.0), exact(2.0), REPRODUCED),
        (Figure(2.0), exact(2.1), CONTRADICTED),
        (Figure(2.0, 0.2), one_run(2.1), REPRODUCED),
        (Figure(2.0, 0.05), one_run(2.1), SCALE),
        (Even(0.5), interval(-0.4, 0.3), REPRODUCED),
        (Even(0.5), interval(-0.4, 0.6), SCALE),
        (Even(0.5), interval(0.6, 0.9), CONTRADICTED),
        (Even(0.5), interval(-0.9, -0.6), CONTRADICTED),
        (Even(0.5), one_run(0.0), SCALE),
        (Unmeasured("too dear"), interval(0.1, 0.9), SCALE),
    ],
)
def test_a_rule_gives_the_verdict_that_its_interval_asks_for(rule, measured, verdict):
    assert rule.judge(measured) is verdict
    assert rule.judge(None) is SCALE
    assert rule.words()


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (interval(1.0, 2.0), "1.5 ± 0.5 points"),
        (interval(-2.0, -1.0), "−1.5 ± 0.5 points"),
        (Measured(1.5, 1.0, 3.0, ""), "1.5 points (1.0 to 3.0)"),
        (exact(1234.5), "1,234.5 points"),
        (one_run(0.25), "0.2 points"),
        (Measured(3.0, 3.0, math.inf, ""), "at least 3.0 points"),
        (Measured(3.0, -math.inf, 3.0, ""), "at most 3.0 points"),
    ],
)
def test_a_figure_is_written_with_what_is_known_of_it(measured, text):
    assert measured.text(1, "points") == text


def test_half_widths_of_independent_means_add_as_sides_of_a_right_triangle():
    difference = apart(interval(7.0, 13.0), interval(1.0, 9.0))  # halves 3 and 4
    assert (difference.value, difference.low, difference.high) == (5.0, 0.0, 10.0)
    least, most = (
        Measured(9.0, 9.0, math.inf, "least"),
        Measured(2.0, -math.inf, 2.0, "most"),
    )
    assert apart(least, most).low == 7.0
    assert apart(least, most).high == math.inf
    assert apart(exact(9.0), exact(2.0)).certain


def test_a_single_value_has_no_interval():
    assert not over([3.0]).bounded
    assert over([3.0, 5.0]).bounded


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("1.2", (1.2, None, None)),
        ("**−1,234.5** ± 0.3", (-1234.5, 0.3, None)),
        ("4e-07", (4e-7, None, None)),
        ("1.93 (1.85 to 2.01)", (1.93, None, (1.85, 2.01))),
    ],
)
def test_figures_are_read_as_pages_write_them(text, figure):
    assert parse_figure(text) == figure


def test_words_are_no_figure():
    with pytest.raises(LedgerError, match="'not asked' is no figure"):
        parse_figure("not asked")


def test_tables_are_cut_out_of_markdown():
    text = "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nwords\n\n| c |\n| --- |\n| |\n| 3 |"
    assert tables_of(text) == [[["a", "b"], ["1", "2"]], [["c"], ["3"]]]


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """A page that was executed: it printed a line, showed two tables and glued two
    numbers."""
    first = (
        "| model | score |\n| --- | --- |\n| ours | 0.93 ± 0.07 |\n| theirs | 0.50"
        " (0.40 to 0.60) |"
    )
    second = (
        "| kind | share | of |\n| --- | --- | --- |\n| chosen | 80.1 ± 0.2 | a |\n|"
        " chosen | 10.0 | b |"
    )
    outputs = [nbformat.v4.new_output("stream", text="loss 1,234.5 nats\n")]
    outputs += [
        nbformat.v4.new_output("display_data", {"text/markdown": text})
        for text in (first, second)
    ]
    cells = [nbformat.v4.new_code_cell("SEEDS = [0, 1, 4]", outputs=outputs)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "07-page.ipynb")
    glue = {
        key: {"data": {"text/plain": value}}
        for key, value in (("mean", "3.5"), ("half", "0.5"))
    }
    (tmp_path / "07-page.glue.json").write_text(json.dumps(glue))
    return Evidence({7: "07-page", 8: "08-other"}, tmp_path)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Glued(7, "mean", "half"), (3.5, 3.0, 4.0, "95% interval over 3 seeds")),
        (
            Glued(7, "mean", "half", what="five words"),
            (3.5, 3.0, 4.0, "95% interval over five words"),
        ),
        (
            Glued(7, "mean", kind="least"),
            (3.5, 3.5, math.inf, "the least of the seeds"),
        ),
        (
            GluedRange(7, "mean", "half", "mean", "quartiles"),
            (3.5, 0.5, 3.5, "quartiles"),
        ),
        (Cell(7, "ours", "score"), (0.93, 0.86, 1.0, "95% interval over 3 seeds")),
        (Cell(7, "theirs", "score", what="days"), (0.5, 0.4, 0.6, "range over days")),
        (
            Cell(7, "chosen | 80.1 ± 0.2", "share", table="kind"),
            (80.1, 79.9, 80.3, "95% interval over 3 seeds"),
        ),
        (
            Printed(7, r"^loss ([\d.,]+) nats$"),
            (1234.5, 1234.5, 1234.5, "no chance in it"),
        ),
        (Computed(lambda: 4.5), (4.5, 4.5, 4.5, "no chance in it")),
    ],
)
def test_a_figure_is_read_off_an_executed_page(evidence, source, expected):
    found = source.read(evidence)
    assert (found.value, found.low, found.high) == pytest.approx(expected[:3])
    assert found.how == expected[3]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Glued(7, "meen"), "07-page glues no 'meen'; it glues: half, mean"),
        (Glued(8, "mean"), "08-other.ipynb has not been executed"),
        (Glued(9, "mean"), "the book has no chapter 9"),
        (
            Cell(7, "our", "score"),
            "07-page has 0 cells in a row 'our' and a column 'score'",
        ),
        (Cell(7, "chosen", "share"), "07-page has 2 cells"),
        (Printed(7, r"(\d) days"), "07-page printed 0 times"),
        (Recorded("no-such-record", ("x",)), "no recorded result 'no-such-record'"),
        (
            Recorded("seq2seq-multi30k", ("scores", "bleo"), {"attention": "dot"}),
            r"no 'bleo' at \['scores'\]",
        ),
        (
            Recorded("seq2seq-multi30k", ("seconds",), {"attention": "dott"}),
            "has no run with",
        ),
    ],
)
def test_a_figure_that_is_not_there_is_an_error_that_says_what_was_looked_for(
    evidence, source, words
):
    with pytest.raises(LedgerError, match=words):
        source.read(evidence)


def test_without_executed_pages_nothing_live_is_made_up():
    with pytest.raises(LedgerError, match="no executed pages are at hand"):
        Glued(1, "mean").read(Evidence({1: "01-page"}))
    with pytest.raises(LedgerError, match="has not been executed"):
        ExecutedPage(Path("nowhere.ipynb"))


def test_a_page_that_was_not_executed_anew_is_read_from_the_cache_of_executions(
    tmp_path,
):
    """Jupyter Book leaves such a page without its outputs."""
    cell = nbformat.v4.new_code_cell("print(7)", execution_count=1)
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="seven is 7\n")
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "executed.ipynb")
    get_cache(str(tmp_path / "cache")).cache_notebook_file(
        tmp_path / "executed.ipynb", check_validity=False
    )

    page = tmp_path / "05-bert.ipynb"
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(7)")]), page
    )
    assert ExecutedPage(page).printed == ""
    assert ExecutedPage(page, tmp_path / "cache").printed == "seven is 7\n"

    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(8)")]), page
    )
    with pytest.raises(
        LedgerError, match="05-bert has no outputs, and the cache does not know it"
    ):
        _ = ExecutedPage(page, tmp_path / "cache").printed


def test_a_lead_is_taken_seed_by_seed(tmp_path: Path):
    """Both runs of a seed share its chance: 2, 2 and 5 ahead, though the scores
    themselves lie far apart."""
    runs = [
        {"variant": name, "seed": seed, "score": score}
        for name, scores in (("a", (12, 22, 45)), ("b", (10, 20, 40)))
        for seed, score in enumerate(scores)
    ]
    record = {
        "name": "x",
        "command": "",
        "configuration": {},
        "seeds": [0, 1, 2],
        "results": runs,
    }
    (tmp_path / "x.json").write_text(
        json.dumps({**record, "commit": "", "machine": {}, "date": ""})
    )
    evidence = Evidence({}, results=tmp_path)
    both = [Recorded("x", ("score",), {"variant": name}) for name in ("a", "b")]
    assert Lead(*both).read(evidence).value == 3.0
    assert Lead(*both).read(evidence).low > -1.5 > Apart(*both).read(evidence).low
    runs[5]["seed"] = 7  # now two seeds are in common
    (tmp_path / "x.json").write_text(
        json.dumps({**record, "commit": "", "machine": {}, "date": ""})
    )
    assert Lead(*both).read(Evidence({}, results=tmp_path)).value == 2.0
    for run in runs[3:]:
        run["seed"] += 10
    (tmp_path / "x.json").write_text(
        json.dumps({**record, "commit": "", "machine": {}, "date": ""})
    )
    with pytest.raises(LedgerError, match="no seed in common"):
        Lead(*both).read(Evidence({}, results=tmp_path))


def test_a_claim_without_a_figure_has_to_say_why(evidence):
    with pytest.raises(ValueError, match="give one, or say Unmeasured"):
        hold(Claim("x", 1, "", "", "", Statement()), evidence)


def test_a_claim_whose_record_is_to_come_names_it_and_gets_no_figure(tmp_path: Path):
    claim = Claim(
        "x", 48, "", "", "", Statement(), "seconds", Recorded("family-x", ("seconds",))
    )
    waiting = once_recorded(claim, tmp_path)
    assert waiting.rule == Unmeasured("Not recorded yet: family-x.")
    assert waiting.ours is None
    (tmp_path / "family-x.json").write_text("{}")
    assert once_recorded(claim, tmp_path) is claim


def test_names_of_claims_are_unique_and_fit_an_address():
    names = [claim.name for claim in ledger.CLAIMS]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_each_topic_that_is_taught_has_a_claim():
    pages = chapter_pages(BOOK)
    assert {claim.row for claim in CLAIMS} == {
        row.number for row in ROWS if row.chapter in pages
    }


@by_name
def test_a_claim_cites_a_reference_and_links_to_a_section(claim):
    assert set(filter(None, claim.cite.split(","))) <= KEYS
    assert claim.cite or claim.published.startswith("not ")
    assert claim.label in LABELS
    assert claim.words.endswith(".")
    assert bool(claim.what) == (claim.ours is not None)
    if isinstance(claim.rule, Unmeasured):
        assert len(claim.rule.reason) > 10


@by_name
def test_a_claim_whose_figure_is_not_live_gets_its_verdict_without_a_build(claim):
    """So each key of a record that a claim names is there; what is live is looked for
    by the build itself."""
    if any(origin.kind == "live" for origin in claim.origins()):
        assert glued_keys(claim) <= all_keys(claim)
        return
    held = hold(claim, Evidence({}))
    assert isinstance(held.verdict, Verdict)
    assert held.figures()


def parts_of(source):
    """Yield a source and those that it is made of."""
    yield source
    for part in vars(source).values():
        if hasattr(part, "origins"):
            yield from parts_of(part)


def glued_keys(claim) -> set[tuple[int, str]]:
    """The chapters and keys of all that a claim expects to find glued."""
    keys = set()
    for source in filter(
        None, [claim.ours, *(source for _, source, _, _ in claim.beside)]
    ):
        for part in parts_of(source):
            if isinstance(part, Glued | GluedRange):
                names = (
                    [part.key, part.half]
                    if isinstance(part, Glued)
                    else [part.key, part.low, part.high]
                )
                keys |= {(part.chapter, name) for name in names if name}
    return keys


def all_keys(claim) -> set[tuple[int, str]]:
    """Of the keys that a claim expects, those that the pages glue, perhaps under a name
    that is put together."""
    found = set()
    for number, key in glued_keys(claim):
        text = (BOOK / f"{chapter_pages(BOOK)[number]}.md").read_text(encoding="utf-8")
        patterns = [
            re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(name))
            for name in re.findall(r'glue\(f?"([^"]+)"', text)
        ]
        shown = re.findall(r"\{glue:text\}`(\w+)", text)
        if key in shown or any(re.fullmatch(pattern, key) for pattern in patterns):
            found.add((number, key))
    return found


def test_each_module_of_claims_is_listed():
    files = {path.stem for path in Path(ledger.__file__).parent.glob("claims_*.py")}
    assert files == {module.__name__.rpartition(".")[2] for module in ledger.MODULES}


def test_all_fifty_topics_are_on_the_page_of_what_is_taught_where():
    page = coverage_page(BOOK)
    assert [row.number for row in ROWS] == list(range(1, 51))
    assert [
        int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    ] == list(range(1, 51))
    pages, labels = chapter_pages(BOOK), row_labels(BOOK)
    for row in ROWS:
        line = next(
            line for line in page.splitlines() if line.startswith(f"| {row.number} |")
        )
        assert (row.chapter in pages) == (f"{{ref}}`row-{row.number}`" in line)
        assert (row.chapter in pages) != line.endswith("not there yet |")
        assert labels.get(row.number, [""])[0] in ("", f"row-{row.number}")


def test_a_label_that_is_missing_or_doubled_is_refused(tmp_path: Path):
    (tmp_path / "04-pieces.md").write_text(
        "(wordpiece)=\n# Pieces\n\n(row-19)=\n## A\n\n(row-20)=\n## B\n"
    )
    with pytest.raises(
        ValueError, match=r"teaches row 21: write \(row-21\)= before it"
    ):
        row_labels(tmp_path)
    page = tmp_path / "04-pieces.md"
    page.write_text(page.read_text() + "\n(row-21)=\n## C\n\n(row-20)=\n## D\n")
    with pytest.raises(ValueError, match="two sections have the same label"):
        row_labels(tmp_path)


def test_a_book_of_one_chapter_says_what_is_not_there_yet(tmp_path: Path):
    text = (
        "(wordpiece)=\n# Pieces\n\n(row-19)=\n## A\n\n(row-20)=\n##"
        " B\n\n(row-21)=\n## C\n"
    )
    (tmp_path / "04-pieces.md").write_text(text)
    assert coverage_page(tmp_path).count("not there yet") == 47
    page = claims_page(tmp_path)
    assert "{verdict}`hugs-by-hand`" in page
    assert "{verdict}`beam-search`" not in page


def test_the_page_of_claims_leaves_a_place_for_each_verdict_and_types_none():
    page = claims_page(BOOK)
    assert re.findall(r"^\{verdict\}`([^`]+)`", page, re.MULTILINE) == re.findall(
        r"\{ours\}`([^`]+)`", page
    )
    assert len(re.findall(r"^\{verdict\}", page, re.MULTILINE)) == len(CLAIMS)
    assert page.count("{verdicts}`") == len(Verdict)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.what)
def test_a_deviation_says_theirs_ours_and_why(deviation):
    assert set(deviation.cite.split(",")) <= KEYS
    assert deviation.ours()
    assert deviation.why.endswith(".")
    assert bool(deviation.what_changes) == (deviation.effect is not None)
    if deviation.effect:
        assert deviation.effect.read(Evidence({})).bounded


def test_deviations_are_read_off_the_checkpoints():
    page = deviations_page()
    log = json.loads(
        (BOOK / "checkpoints" / "mini" / "log.json").read_text(encoding="utf-8")
    )
    assert f"mini: {log['plan']['training']['steps']:,}" in page
    assert f"{log['results']['sizes']['train']['tokens']:,} pieces" in page
    assert "Muon for the matrices of the layers" in page


def test_the_reading_list_has_each_chapter_and_cites_references():
    page = reading_page(BOOK)
    assert re.findall(r"^## (\d+)\.", page, re.MULTILINE) == [
        str(number) for number in chapter_pages(BOOK)
    ]
    assert set(READING) == set(range(1, 11))
    cited = {
        key
        for keys in re.findall(r"\{cite:t\}`([^`]+)`", page)
        for key in keys.split(",")
    }
    assert cited <= KEYS
    assert all(
        "{cite:t}" in entry and entry[-1] in ".?"
        for entries in READING.values()
        for entry in entries
    )
