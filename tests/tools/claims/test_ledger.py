"""The ledgers: verdicts follow their rules, figures are found where they are said to
be, and nothing is left out."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import for_each
from expect import refusal
from pybtex.database import parse_file

from course_lab import records
from course_tools.claims.check import (
    build,
    chapter_pages,
    claim_of,
    claims,
    claims_of,
    deviation_of,
    deviations,
    hold,
    read,
    rows,
    source_of,
)
from course_tools.claims.computed import fact
from course_tools.claims.pages import (
    claims_page,
    coverage_page,
    deviations_page,
    reading_page,
    row_labels,
)
from course_tools.claims.rules import (
    Even,
    Figure,
    Measured,
    Statement,
    Trend,
    Unmeasured,
    Verdict,
    apart,
    exact,
    one_run,
    over,
)
from course_tools.claims.sources import Apart, Evidence, Glued, LedgerError

BOOK = Path(__file__).parents[3] / "book"
CLAIMS = claims_of(BOOK)
KEYS = set(parse_file(str(BOOK / "references.bib")).entries)
LABELS = {
    label
    for page in BOOK.glob("*.md")
    for label in re.findall(r"^\(([\w-]+)\)=$", page.read_text(), re.M)
}
REPRODUCED, DIRECTION, SCALE, CONTRADICTED = Verdict


def interval(low: float, high: float) -> Measured:
    return Measured((low + high) / 2, low, high, "by hand")


@for_each(
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


@for_each(
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
    least = Measured(9.0, 9.0, math.inf, "least")
    most = Measured(2.0, -math.inf, 2.0, "most")
    assert apart(least, most).low == 7.0
    assert apart(least, most).high == math.inf
    assert apart(exact(9.0), exact(2.0)).certain


def test_a_single_value_has_no_interval():
    assert not over([3.0]).bounded
    assert over([3.0, 5.0]).bounded


@pytest.fixture
def evidence(tmp_path):
    """A page that was executed and glued three things, one of them no number."""
    (tmp_path / "07-page.ipynb").write_text("{}")
    glued = {"mean": "3.5", "mean_half": "0.5", "far": "9.0", "word": "'few'"}
    glue = {key: {"data": {"text/plain": value}} for key, value in glued.items()}
    (tmp_path / "07-page.glue.json").write_text(json.dumps(glue))
    (tmp_path / "06-silent.ipynb").write_text("{}")
    return Evidence({6: "06-silent", 7: "07-page", 8: "08-other"}, tmp_path)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"page": 7, "glued": "mean"}, (3.5, -math.inf, math.inf, "one run")),
        ({"page": 7, "glued": "mean", "kind": "exact"}, (3.5, 3.5, 3.5, "no chance")),
        (
            {"page": 7, "glued": "mean", "over": "five words"},
            (3.5, 3.0, 4.0, "95% interval over five words"),
        ),
        (
            {"page": 7, "glued": "mean", "kind": "least"},
            (3.5, 3.5, math.inf, "the least of the seeds"),
        ),
        (
            {"page": 7, "glued": "mean", "kind": "most"},
            (3.5, -math.inf, 3.5, "the most of the seeds"),
        ),
        (
            {
                "page": 7,
                "glued": "mean",
                "low": "mean_half",
                "high": "far",
                "how": "quartiles",
            },
            (3.5, 0.5, 9.0, "quartiles"),
        ),
        (
            {
                "apart": [
                    {"page": 7, "glued": "far", "kind": "exact"},
                    {"page": 7, "glued": "mean", "over": "words"},
                ]
            },
            (5.5, 5.0, 6.0, "95% interval over words"),
        ),
        ({"computed": "masked_example"}, (3.0, 3.0, 3.0, "no chance in it")),
        ({"computed": "parameters", "of": "tiny"}, (4.433468,) * 3 + ("no chance",)),
        (
            {"log": "mini", "figure": ["results", "speed", "utilisation"]},
            (0.49, 0.49, 0.49, "no chance in it"),
        ),
    ],
)
def test_a_figure_is_read_where_the_claim_says(evidence, source, expected):
    found = source_of(source, "x").read(evidence)
    ends = (found.value, found.low, found.high)
    assert ends == pytest.approx(expected[:3], abs=5e-3)
    assert found.how.startswith(expected[3])


def test_the_interval_of_a_log_is_over_its_documents():
    path = ["results", "scores", "test", "model", "mlm_accuracy"]
    entry = {"log": "mini", "figure": path, "half": "mlm_accuracy_interval"}
    found = source_of({**entry, "scale": 100}, "x").read(Evidence({}))
    assert found.low < found.value < found.high < 100
    assert found.how == "95% interval over documents"


MULTI = {"record": "seq2seq-multi30k", "figure": ["scores", "bleu"]}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            {"page": 7, "glued": "meen"},
            "07-page glues no 'meen'; it glues: far, mean, mean_half, word",
        ),
        ({"page": 6, "glued": "mean"}, "06-silent glues no 'mean'; it glues: nothing"),
        ({"page": 7, "glued": "word"}, "which is no number; glue a plain float"),
        ({"page": 7, "glued": "far", "over": "days"}, "07-page glues no 'far_half'"),
        ({"page": 8, "glued": "mean"}, "08-other.ipynb has not been executed"),
        ({"page": 9, "glued": "mean"}, "the book has no chapter 9"),
        (
            {"record": "no-such-record", "figure": ["x"]},
            "no recorded result 'no-such-record'",
        ),
        (
            {**MULTI, "figure": ["scores", "bleo"], "runs": {"attention": "dot"}},
            r"no 'bleo' at \['scores'\]",
        ),
        ({**MULTI, "runs": {"attention": "dott"}}, "has no run with"),
        ({**MULTI, "figure": "bleo"}, "no function 'bleo' of a run; known are: exact"),
        ({**MULTI, "minus": {"run": {}}}, r"minus of seq2seq-multi30k has \['run'\]"),
        ({"computed": "wonders"}, "no function 'wonders' is computed"),
    ],
)
def test_a_figure_that_is_not_there_is_an_error_that_says_what_was_looked_for(
    evidence, source, words
):
    with refusal(words, LedgerError):
        source_of(source, "x").read(evidence)


def test_without_executed_pages_nothing_live_is_made_up():
    with refusal("no executed pages are at hand", LedgerError):
        Glued(1, "mean").read(Evidence({1: "01-page"}))


@pytest.fixture
def runs(monkeypatch):
    """Three seeds of two variants, in a record that is all there is."""
    runs = [
        {"variant": name, "seed": seed, "score": score, "by_word": {"x": score, "y": 0}}
        for name, scores in (("a", (12, 22, 45)), ("b", (10, 20, 40)))
        for seed, score in enumerate(scores)
    ]
    monkeypatch.setattr(records, "load", lambda name: SimpleNamespace(results=runs))
    return runs


def recorded(variant: str, **others) -> dict:
    entry = {"record": "x", "figure": ["score"], "runs": {"variant": variant}}
    return {**entry, **others}


def figure(entry: dict) -> Measured:
    return source_of(entry, "x").read(Evidence({}))


def test_a_lead_is_taken_seed_by_seed(runs):
    """Both runs of a seed share its chance: 2, 2 and 5 ahead, though the scores
    themselves lie far apart."""
    lead = recorded("a", minus={"runs": {"variant": "b"}})
    assert figure(lead).value == 3.0
    independent = {"apart": [recorded("a"), recorded("b")]}
    assert figure(lead).low > -1.5 > figure(independent).low
    runs[5]["seed"] = 7  # now two seeds are in common
    assert figure(lead).value == 2.0
    for run in runs[3:]:
        run["seed"] += 10
    with refusal("no seed in common", LedgerError):
        figure(lead)


def test_a_record_gives_the_mean_over_runs_of_a_number_or_of_several(runs):
    assert figure(recorded("b")).value == pytest.approx(70 / 3)
    assert figure(recorded("b")).how == "95% interval over 3 seeds"
    assert figure(recorded("b", scale=10)).value == pytest.approx(700 / 3)
    assert figure(recorded("b", figure=["by_word"])).value == pytest.approx(35 / 3)
    assert figure(recorded("b", kind="exact")) == exact(70.0)
    other_figure = recorded("a", minus={"figure": ["by_word"]})
    assert figure(other_figure).value == pytest.approx(79 / 6)


CLAIM = {
    "name": "x",
    "row": 1,
    "claim": "It is.",
    "published": "so",
    "rule": {"statement": "above"},
    "what": "it",
    "ours": {"page": 7, "glued": "mean", "kind": "exact"},
}


@for_each(
    ("change", "words"),
    [
        ({"sectoin": "row-1"}, "claim 'x' has the unknown key sectoin; known"),
        ({"row": "one"}, "claim 'x': row is 'one'; expected a whole number"),
        ({"published": 34.8}, "claim 'x': published is 34.8; expected text"),
        ({"rule": {"trent": "above"}}, "the rule of claim 'x' .* exactly one of: st"),
        ({"rule": "trend"}, "the rule of claim 'x' is 'trend'; it needs exactly one"),
        ({"rule": {"trend": "up"}}, "side is 'up'; expected above or below"),
        ({"rule": {"trend": "above", "bond": 1}}, "unknown key bond; known are: side"),
        ({"rule": {"even": "1e-5"}}, r"'1e-5'; expected a number .YAML reads 1.0e-5"),
        ({"rule": {"figure": True}}, "value is True; expected a number"),
        ({"rule": {"figure": 2, "value": 3}}, "unknown key value beside figure"),
        ({"ours": {"pag": 7}}, "a figure of claim 'x' is .* exactly one of: page"),
        ({"ours": {"page": 7}}, "a figure of claim 'x' lacks the key glued"),
        ({"ours": {"page": 7, "glued": "k", "kind": "sure"}}, "expected exact or one"),
        ({"ours": {"page": 7, "glued": "k", "record": "r"}}, "exactly one of"),
        ({"ours": {"apart": [{"page": 7, "glued": "k"}]}}, "give two figures"),
        ({"beside": [{"what": "a", "ours": {"page": 7}}]}, "lacks the key glued"),
        ({"beside": [{"ours": {"page": 7, "glued": "k"}}]}, "claim 'x' lacks"),
        ({"ours": None}, "it needs exactly one of"),
    ],
)
def test_what_the_file_of_claims_may_not_say_is_refused_in_words(change, words):
    with refusal(words, LedgerError):
        claim_of({**CLAIM, **change})


def test_what_is_no_claim_or_lacks_a_key_is_refused_in_words():
    with refusal("claim 'word' is 'word'; expected keys", LedgerError):
        claim_of("word")
    with refusal("claim 'x' lacks the key rule", LedgerError):
        claim_of({key: value for key, value in CLAIM.items() if key != "rule"})
    with refusal("deviation 'Text' lacks the key theirs", LedgerError):
        deviation_of({"what": "Text"})
    with refusal("the deviation is 3; expected keys", LedgerError):
        build(Glued, 3, "the deviation")
    with refusal("no fact 'colour' of our models; known are", LookupError):
        fact("colour")


def test_a_claim_without_a_figure_has_to_say_why():
    bare = {key: CLAIM[key] for key in ("name", "row", "claim", "published", "rule")}
    with refusal("give one, or say unmeasured", LedgerError):
        claim_of(bare)
    claim = claim_of({**bare, "rule": {"unmeasured": "The books are not public."}})
    held = hold(claim, Evidence({}))
    assert (held.verdict, held.figures()) == (SCALE, "No measurement.")


def test_a_claim_is_held_against_its_figure_and_shows_those_beside_it(evidence):
    beside = [{"what": "far", "ours": {"page": 7, "glued": "far"}, "digits": 0}]
    held = hold(claim_of({**CLAIM, "unit": "nats", "beside": beside}), evidence)
    assert held.verdict is REPRODUCED
    assert held.figures() == "it: 3.5 nats; far: 9."


def test_names_of_claims_are_unique_and_fit_an_address():
    names = [claim.name for claim in claims()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_claims_stand_in_the_order_of_the_course_and_each_taught_topic_has_one():
    pages = chapter_pages(BOOK)
    assert [claim.row for claim in claims()] == sorted(claim.row for claim in claims())
    assert {claim.row for claim in CLAIMS} == {
        row.number for row in rows() if row.chapter in pages
    }


def test_a_claim_cites_a_reference_and_links_to_a_section():
    wrong = [
        claim.name
        for claim in CLAIMS
        if not set(filter(None, claim.cite.split(","))) <= KEYS
        or not (claim.cite or claim.published.startswith("not "))
        or claim.label not in LABELS
        or not claim.claim.endswith(".")
        or bool(claim.what) != (claim.ours is not None)
        or (isinstance(claim.rule, Unmeasured) and len(claim.rule.reason) <= 10)
    ]
    assert not wrong


def test_a_claim_whose_figure_is_not_live_gets_its_verdict_without_a_build():
    """So each key of a record that a claim names is there."""
    for claim in CLAIMS:
        if all(origin.kind != "live" for origin in claim.origins()):
            held = hold(claim, Evidence({}))
            assert isinstance(held.verdict, Verdict)
            assert held.figures()


def test_each_key_that_a_claim_names_is_glued_by_its_page():
    """Or by the chapter's laboratory, perhaps under a name that is put together there;
    the build looks for the figures."""
    pages = chapter_pages(BOOK)
    texts = {
        number: "".join(page.read_text() for page in BOOK.glob(f"{number:02}-*.md"))
        for number in pages
    }
    patterns = {
        number: [
            re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(name))
            for name in re.findall(r'glue(?:_lead)?\(\s*f?"([^"]+)"', text)
            + re.findall(r"\{glue:text\}`(\w+)", text)
        ]
        for number, text in texts.items()
    }
    missing = {
        f"{claim.name}: {key}"
        for claim in CLAIMS
        for source in claim.sources()
        for part in (source.both if isinstance(source, Apart) else [source])
        if isinstance(part, Glued)
        for key in part.needs()
        if not any(re.fullmatch(name, key) for name in patterns[part.page])
    }
    assert not missing


def test_all_topics_are_on_the_page_of_what_is_taught_where():
    page = coverage_page(BOOK)
    assert [row.number for row in rows()] == list(range(1, 57))
    assert [
        int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    ] == list(range(1, 57))
    pages, labels = chapter_pages(BOOK), row_labels(BOOK)
    for row in rows():
        line = next(
            line for line in page.splitlines() if line.startswith(f"| {row.number} |")
        )
        assert (row.chapter in pages) == (f"{{ref}}`row-{row.number}`" in line)
        assert (row.chapter in pages) != line.endswith("not there yet |")
        assert labels.get(row.number, [""])[0] in ("", f"row-{row.number}")


def test_a_label_that_is_missing_or_doubled_is_refused(tmp_path):
    (tmp_path / "04-pieces.md").write_text(
        "(wordpiece)=\n# Pieces\n\n(row-19)=\n## A\n\n(row-20)=\n## B\n"
    )
    with refusal(r"teaches row 21: write \(row-21\)= before it"):
        row_labels(tmp_path)
    page = tmp_path / "04-pieces.md"
    page.write_text(page.read_text() + "\n(row-21)=\n## C\n\n(row-20)=\n## D\n")
    with refusal("two sections have the same label"):
        row_labels(tmp_path)


def test_a_book_of_one_chapter_says_what_is_not_there_yet(tmp_path):
    text = (
        "(wordpiece)=\n# Pieces\n\n(row-19)=\n## A\n\n(row-20)=\n##"
        " B\n\n(row-21)=\n## C\n"
    )
    (tmp_path / "04-pieces.md").write_text(text)
    assert coverage_page(tmp_path).count("not there yet") == 53
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


def test_a_deviation_says_theirs_ours_and_why():
    assert len(deviations()) == 17
    for deviation in deviations():
        assert set(deviation.cite.split(",")) <= KEYS
        assert deviation.theirs
        assert deviation.course
        assert deviation.why.endswith(".")
        assert bool(deviation.changes) == (deviation.effect is not None)
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
    assert set(read("reading")) == set(range(1, 12))
    cited = {
        key
        for keys in re.findall(r"\{cite:t\}`([^`]+)`", page)
        for key in keys.split(",")
    }
    assert cited <= KEYS
    assert all(
        "{cite:t}" in entry and entry[-1] in ".?"
        for entries in read("reading").values()
        for entry in entries
    )
