"""The page *BERT, live* and its clinic in headless Chromium, as a reader uses them.

The book of these tests has one page with the parts of book/bert-live.md, another with
those of the chapters, and the scripts that the build writes. Keyboard: WCAG 2.2,
criteria 2.1.1 and 2.4.7. Changes announced: 4.1.3. Reflow: 1.4.10.
"""

import re

import pytest
import torch
from pages import build_without_reference, lay_out_named, quiet_page, serious_violations
from places import BOOK
from whole import whole_only

from course_lab.ch06_pretraining.shipped import load_shipped
from course_tools.site import live

pytestmark = [pytest.mark.browser, pytest.mark.slow, whole_only]

TEXT = "Return the number of lists in the list."
MASKED = 5  # its token "lists"
CHAPTERS = ("05-bert", "06-pretraining", "07-contextual-embeddings", "09-sentence-bert")
LIVE = re.compile(r"^```\{live\}.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def one_page(tmp_path_factory):
    """A built book with the parts of the page, on a page of its own name."""
    root = tmp_path_factory.mktemp("live")
    lines = (BOOK / "bert-live.md").read_text(encoding="utf-8").splitlines()
    parts = [line for line in lines if line.startswith("<div")]
    assert len(parts) == 5
    lay_out_named(root, "bert-live", "\n\n".join(parts) + "\n")
    blocks = [
        block
        for stem in CHAPTERS
        for block in LIVE.findall((BOOK / f"{stem}.md").read_text(encoding="utf-8"))
    ]
    assert len(blocks) == 4
    with (root / "book" / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n\n".join(blocks) + "\n")
    build_without_reference(root)
    return root, "bert-live.html"


@pytest.fixture
def chapters(from_disk):
    """The page with the parts of the chapters."""
    return from_disk.replace("bert-live", "index")


@pytest.fixture(scope="module")
def peer():
    """The model that the page has, in Python."""
    model, tokenizer = load_shipped("tiny")
    numbers = live.in_whole_numbers(model, tokenizer, live.calibration())
    return live.restored_model(model, numbers), tokenizer


def part(page, name: str):
    return page.locator(f"[data-live={name}]")


def status(page):
    return part(page, "write").get_by_role("status")


def said(page, words: str) -> str:
    """Wait until the page announces something, and return it."""
    status(page).filter(has_text=re.compile(words)).wait_for()
    return status(page).inner_text()


def settled(page) -> None:
    """Wait until what was asked last is on the page."""
    page.locator("[data-live=write]:not([aria-busy])").wait_for()


def start(page, text: str = TEXT, second: str = "") -> None:
    """Load tiny and type, by keyboard."""
    part(page, "write").get_by_role("button", name="Load BERT tiny").press("Enter")
    said(page, "Position")
    for box, words in (("Your sentence", text), ("A second sentence", second)):
        field = page.get_by_role("textbox", name=box)
        field.press("Control+a")
        field.press("Delete")
        field.press_sequentially(words)
    settled(page)


def mask(page, token: str):
    part(page, "write").get_by_role("button", name=token, exact=True).press("Enter")
    settled(page)


def test_a_typed_sentence_gets_the_librarys_prediction_beside_the_untrained_models(
    browser, from_disk, peer
):
    model, tokenizer = peer
    ids = tokenizer.encode(TEXT).ids
    holed = [*ids[:MASKED], tokenizer.vocab["[MASK]"], *ids[MASKED + 1 :]]
    with torch.no_grad():
        at = torch.tensor([MASKED])
        chances = model(torch.tensor([holed]), masked_positions=at)[0][0].softmax(-1)
    best = tokenizer.pieces[int(chances.argmax())]
    with quiet_page(browser) as page:
        page.goto(from_disk)
        start(page)
        mask(page, "lists")
        told = said(page, f"Position {MASKED}: ")
        told = said(page, re.escape(f"{best} {100 * chances.max():.0f} %"))
        assert told.startswith(f"Position {MASKED}: {best} ")
        for name in ("BERT tiny", "the same, untrained"):
            rows = page.get_by_role("list", name=name).get_by_role("listitem")
            rows.nth(4).wait_for()
            assert rows.count() == 5
        masked = part(page, "write").locator("[aria-pressed=true]")
        assert masked.inner_text() == "[MASK]"
        masked.press("Enter")
        said(page, "^Position 5")
        assert masked.count() == 0, "pressed again it is there again"
        assert tokenizer.pieces[ids[MASKED]] in part(page, "write").inner_text()


def test_a_mask_stays_with_its_token_while_the_reader_types(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        start(page)
        mask(page, "lists")
        said(page, f"^Position {MASKED}:")
        box = page.get_by_role("textbox", name="Your sentence")
        box.press("Home")
        box.press_sequentially("Now ")
        said(page, f"^Position {MASKED + 1}:")
        box.press("Control+End")
        box.press_sequentially(" The end.")
        said(page, f"^Position {MASKED + 1}:")


def test_two_sentences_get_a_chance_of_being_next_and_cosines_by_layer(
    browser, from_disk, peer
):
    model, tokenizer = peer
    first, second = (
        model.bert(
            torch.tensor([tokenizer.encode(text).ids]), return_hidden_states=True
        ).hidden_states
        for text in ("The key is a string.", "Press the key.")
    )
    expected = [
        [
            torch.cosine_similarity(x, y, dim=0).item()
            for x, y in ((one[0, 2], two[0, 3]), (one[0].mean(0), two[0].mean(0)))
        ]
        for one, two in zip(first, second, strict=True)
    ]
    with quiet_page(browser) as page:
        page.goto(from_disk)
        start(page, "The key is a string.", "Press the key.")
        assert re.search(
            r"follows the first: [\d.]+ %", said(page, "follows.*untrained")
        )
        compare = part(page, "compare")
        compare.get_by_role("combobox", name="Word in the first").select_option("2 key")
        compare.get_by_role("combobox", name="Word in the second").select_option(
            "3 key"
        )
        table = compare.get_by_role("table")
        table.get_by_text("sentences, untrained").wait_for()
        rows = [row.get_by_role("cell") for row in table.get_by_role("row").all()[1:]]
        shown = [[float(text) for text in row.all_inner_texts()] for row in rows]
        assert [len(row) for row in shown] == [4, 4, 4], "embeddings, two layers"
        for row, words_and_means in zip(shown, expected, strict=True):
            assert row[:2] == pytest.approx(words_and_means, abs=0.011)


def test_layer_head_and_token_choose_the_weights_and_the_numbers(browser, from_disk):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        start(page)
        attention = part(page, "attention")
        for name, choice in (("Layer", "2"), ("Head", "2")):
            attention.get_by_role("combobox", name=name, exact=True).select_option(
                choice
            )
        attention.get_by_role("combobox", name="Token that attends").select_option(
            "2 the"
        )
        attention.get_by_text("“the” attends to:").wait_for()
        weights = attention.locator(".explorer-weight").all_inner_texts()
        assert sum(map(float, weights)) == pytest.approx(1, abs=0.005 * len(weights))
        table = attention.get_by_role("table", name="layer 2, head 2")
        row = table.get_by_role("row").nth(3).get_by_role("cell").all_inner_texts()
        assert row == weights, "the matrix says the same"
        steps = part(page, "layer")
        steps.get_by_role("button", name="Scores and softmax").press("Enter")
        shown = steps.get_by_role("table")
        shown.get_by_text("From scores to weights: “the”").wait_for()
        column = [
            float(row.get_by_role("cell").nth(3).inner_text())
            for row in shown.get_by_role("row").all()[1:]
        ]
        assert column == pytest.approx([float(one) for one in weights], abs=0.006)
        sum_of = steps.locator(".live-sum").inner_text()
        assert "divided by √64" in sum_of


def test_a_link_restores_what_was_typed_and_nothing_becomes_markup(browser, from_disk):
    typed = "<b>bold</b> & the list."
    with quiet_page(browser) as page:
        page.goto(from_disk)
        start(page, typed)
        mask(page, "list")
        told = said(page, r"^Position 12")
        link = page.url
        assert part(page, "write").locator("b").count() == 0
    with quiet_page(browser) as page:
        page.goto(link)
        assert said(page, r"^Position 12") == told
        assert page.get_by_role("textbox", name="Your sentence").input_value() == typed


def small(page, parts: str, text: str, second: str | None = None):
    """Load tiny in a part of a chapter and type there, by keyboard."""
    root = page.locator(f"[data-parts='{parts}']")
    assert re.search("Load the model", root.inner_text()), "until then it is empty"
    root.get_by_role("button", name="Load BERT tiny").press("Enter")
    announced(root, r"\d")
    for box, words in (("Your sentence", text), ("A second sentence", second)):
        if words is not None:
            field = root.get_by_role("textbox", name=box)
            field.press("Control+a")
            field.press_sequentially(words)
    root.locator("[aria-busy]").wait_for(state="detached")
    return root


def announced(root, words: str) -> str:
    status = root.get_by_role("status")
    status.filter(has_text=re.compile(words)).wait_for()
    return status.inner_text()


def test_chapter_5_shows_where_a_token_attends_and_follows_it_through_a_layer(
    browser, chapters, peer
):
    model, tokenizer = peer
    ids = torch.tensor([tokenizer.encode("The key is new.").ids])
    with torch.no_grad():
        states = model.bert(ids, return_hidden_states=True).hidden_states
    with quiet_page(browser) as page:
        page.goto(chapters)
        root = small(page, "attention layer", "The key is new.")
        announced(root, "^“key” attends most to")
        root.get_by_role("combobox", name="Layer").select_option("2")
        root.get_by_role("button", name="Feed-forward, add and norm").press("Enter")
        row = root.get_by_role("row", name="after layer norm").get_by_role("cell")
        root.locator("[aria-current=step]").get_by_text("Feed-forward").wait_for()
        row.last.wait_for()
        numbers = [float(text) for text in row.all_inner_texts()]
        assert numbers == pytest.approx(states[2][0, 2, :8].tolist(), abs=0.006)


def test_chapter_6_predicts_and_its_link_takes_the_sentence_to_the_page(
    browser, chapters
):
    with quiet_page(browser) as page:
        page.goto(chapters)
        root = small(page, "predict", TEXT, "It is.")
        root.get_by_role("button", name="lists", exact=True).press("Enter")
        told = announced(root, rf"^Position {MASKED}: .*follows the first.*untrained")
        root.locator("[aria-busy]").wait_for(state="detached")
        assert "#" not in page.url, "the chapter's own address stays"
        root.get_by_role("link", name="BERT, live").click()
        assert said(page, rf"^Position {MASKED}: .*untrained") == told


@pytest.mark.parametrize("what", ["word", "sentences"])
def test_chapters_7_and_9_compare_by_layer_beside_an_untrained_model(
    browser, chapters, peer, what
):
    model, tokenizer = peer
    texts = "The key is a string.", "Press a key."
    ids = [torch.tensor([tokenizer.encode(text).ids]) for text in texts]
    with torch.no_grad():
        one, two = (model.bert(row)[0][0] for row in ids)
    pair = (one[2], two[3]) if what == "word" else (one.mean(0), two.mean(0))
    expected = torch.cosine_similarity(*pair, dim=0).item()
    with quiet_page(browser) as page:
        page.goto(chapters)
        root = small(page, what, *texts)
        told = announced(root, rf"Cosine after the last layer: {what}.*untrained")
        shown = re.search(rf"{what} (-?\d\.\d\d); {what}, untrained (-?\d\.\d\d)", told)
        assert float(shown[1]) == pytest.approx(expected, abs=0.011)
        row = root.get_by_role("row", name="after layer 2").get_by_role("cell")
        assert row.all_inner_texts() == list(shown.groups())
        assert root.get_by_role("row").count() == 1 + 3, "embeddings, two layers"


def test_a_patient_is_named_and_its_line_shown(browser, from_disk):
    """By keyboard; a wrong answer is taken off the list, and what was found is kept."""
    with quiet_page(browser) as page:
        page.goto(f"{from_disk}#bert?patient=7")
        clinic = page.locator("[data-clinic]")
        patient = page.evaluate("coursePatients[7]")
        clinic.get_by_text("healthy: attention in layer 1").wait_for()
        assert clinic.get_by_text("Lengths inside layer 1, healthy").count() == 1
        wrong = clinic.get_by_role("radio", name="Positions are counted from 1")
        wrong.press("Space")
        clinic.get_by_role("button", name="That is it").press("Enter")
        told = clinic.get_by_role("status")
        told.filter(has_text="Not that").wait_for()
        assert not wrong.is_visible()
        clinic.get_by_role("button", name="Show fewer").press("Enter")
        assert clinic.get_by_role("radio").locator("visible=true").count() == 11
        clinic.get_by_role("radio", name=patient["fault"]).press("Space")
        clinic.get_by_role("button", name="That is it").press("Enter")
        told.filter(has_text=f"Yes: {patient['fault']}").wait_for()
        for words in (patient["library"], patient["test"], patient["from"]):
            assert words in clinic.inner_text()
        page.reload()
        clinic.get_by_text("1 of 24 faults found").wait_for()


DIFFERS = """async () => {
  const { sequence, load } = courseLive, files = await load("tiny"), { settings, parts } = files;
  const buffer = await courseBert().unpack(parts, settings.bytes);
  const look = (source) => {
    const module = (0, eval)(`(${source})`)();
    const model = new module.BertForPreTraining(settings.config, module.readWeights(settings.table, buffer));
    return courseClinic.TEXTS.map((_, place) => {
      const input = courseClinic.inputOf(files.tokenizer, place, source), trace = {};
      const out = model.forward(input.ids, input.mask, input.types, input.positions, trace);
      const seen = [...module.softmax(out.predictionLogits).data, module.softmax(out.seqRelationshipLogits).data[0]];
      trace.layers.forEach(({ heads }) => heads.forEach(({ weights }) => seen.push(...weights.data)));
      return [...input.types, ...seen];
    });
  };
  const healthy = look(String(courseBert));
  return coursePatients.map((patient) => look(coursePatched(patient)).filter((seen, place) =>
    seen.some((x, i) => !(Math.abs(x - healthy[place][i]) < 0.02))).length);
}"""  # noqa: E501


def test_each_patient_differs_visibly_on_most_of_the_prepared_texts(browser, from_disk):
    """A segment, a probability or an attention weight differs by two hundredths, on at
    least five of the eight texts."""
    with quiet_page(browser) as page:
        page.goto(from_disk)
        counts = page.evaluate(DIFFERS)
        assert len(counts) == 24
        assert min(counts) >= 5, counts


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_no_serious_violation_and_a_phone_does_not_scroll_sideways(
    browser, from_disk, chapters, theme
):
    with quiet_page(
        browser, color_scheme=theme, viewport={"width": 390, "height": 800}
    ) as page:
        page.goto(f"{from_disk}#bert?text={TEXT}&second=It is.&patient=3&step=2")
        said(page, "untrained")
        page.locator("[data-clinic] table").last.wait_for()
        assert serious_violations(page, leave_out="#pst-back-to-top") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto(chapters)
        for root in page.locator("[data-parts]").all():
            root.get_by_role("button", name="Load BERT tiny").press("Enter")
            root.locator(":is(table, .live-predictions)").first.wait_for()
        assert serious_violations(page, leave_out="#pst-back-to-top") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("() => { Worker = class { constructor() { throw Error('no'); } } }", "no"),
        (
            "async () => { (await courseLive.load('tiny')).parts.reverse(); }",
            "the weights cannot be read",
        ),
    ],
    ids=["no worker", "damaged weights"],
)
def test_weights_that_do_not_arrive_are_reported_in_words(
    browser, from_disk, fault, told
):
    with quiet_page(browser) as page:
        page.goto(from_disk)
        page.evaluate(fault)
        button = part(page, "write").get_by_role("button", name="Load BERT tiny")
        button.press("Enter")
        said(page, f"The model cannot start: {told}")
        assert button.get_attribute("aria-disabled") is None


def test_without_a_script_pages_say_where_the_recorded_example_is(
    browser, from_disk, chapters
):
    with quiet_page(browser, java_script_enabled=False) as page:
        page.goto(from_disk)
        assert "recorded example" in part(page, "write").inner_text()
        page.goto(chapters)
        for root in page.locator("[data-parts]").all():
            assert "recorded example" in root.inner_text()
            page_itself = root.get_by_role("link", name="Trial")
            assert page_itself.get_attribute("href") == "bert-live.html"
