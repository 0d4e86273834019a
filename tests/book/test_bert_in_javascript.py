"""The BERT of book/_static/bert.js in headless Chromium: the numbers are the library's,
and each patient of the clinic has the numbers of the same mistake in Python.

`make test` takes a tenth of the sentences, `make test-grading` all.
"""

import base64
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pages import quiet_page
from places import BOOK, ROOT
from safetensors.torch import load_file
from whole import WHOLE, whole_only

from course_lab.ch06_pretraining.shipped import (
    CHECKPOINTS,
    load_shipped,
    load_untrained,
)
from course_lib.attention.weights import watch_attention
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertForPreTraining
from course_tools.grading.assignments.mutants import load_cases
from course_tools.grading.assignments.source import read_source
from course_tools.site import live

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SENTENCES = 200 if WHOLE else 20
STATIC = BOOK / "_static"
PAIRS = [  # each with the number of [PAD] behind it
    ("The messenger put the [MASK] lamp into a bag.", "She rode to the mine.", 3),
    ("Return a [MASK] of the array.", "The axis is given by the argument.", 0),
]
#: Makes `run(ids, types, mask, positions)` from a source, a config and weights.
HELPERS = """
globalThis.bytes = (text) => {
  const read = atob(text), made = new Uint8Array(read.length);
  for (let at = 0; at < read.length; at += 1) made[at] = read.charCodeAt(at);
  return made.buffer;
};
globalThis.text = (array) => {
  let made = "";
  for (const byte of new Uint8Array(array.buffer)) made += String.fromCharCode(byte);
  return btoa(made);
};
globalThis.made = (source, config, table, buffer) => {
  const module = (0, eval)(`(${source})`)();
  const model = new module.BertForPreTraining(config, module.readWeights(table, buffer));
  return (ids, types, mask, positions) => {
    const trace = {}, out = model.forward(ids, mask, types, positions, trace);
    const weights = trace.layers.flatMap(({ heads }) => heads.map((head) => text(head.weights.data)));
    return { logits: text(out.predictionLogits.data), next: [...out.seqRelationshipLogits.data], weights };
  };
};
"""  # noqa: E501


def numbers(text: str) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f4").copy())


def float32_script(model: BertForPreTraining) -> dict[str, object]:
    """What `made` needs, with every tensor as it is."""
    data = base64.b64encode(b"".join(live.weight_arrays(model, {}))).decode()
    return {**live.model_settings(model, {}), "data": data}


@pytest.fixture(scope="module")
def models():
    return {name: load_shipped(name) for name in live.MODELS}


@pytest.fixture(scope="module")
def scripts(site):
    """The folder that the build writes."""
    return site / live.FOLDER


@pytest.fixture
def page(browser):
    with quiet_page(browser) as page:
        page.goto("about:blank")
        for name in ("bert.js", "patients.js", "wordpiece.js"):
            page.add_script_tag(path=STATIC / name)
        page.add_script_tag(content=HELPERS)
        yield page


def load_float32(
    page, name: str, model: BertForPreTraining, source="String(courseBert)"
):
    page.evaluate(
        f"(it) => {{ globalThis.{name} = made({source}, it.config, it.table,"
        " bytes(it.data)); }",
        float32_script(model),
    )


def load_rounded(page, scripts, name: str) -> None:
    """Load the model as a reader gets it."""
    page.evaluate(
        "() => { globalThis.parts = []; globalThis.courseLivePart = (p) => {"
        " parts[p.part] = p; }; globalThis.courseLiveTokenizer = (t) => {"
        " globalThis.tokenizer = courseWordPiece.prepare(t); }; }"
    )
    files = sorted(scripts.glob(f"{name}-*.js"))
    assert sum(len(file.read_bytes()) for file in files[:-1]) <= live.LARGEST[name]
    for file in files:
        page.add_script_tag(path=file)
    page.evaluate(
        "async () => { const [{ config, table, bytes }] = parts;"
        " const buffer = await courseBert().unpack(parts.map((p) => p.data), bytes);"
        " globalThis.rounded = made(String(courseBert), config, table, buffer); }"
    )


@torch.no_grad()
def library(model, ids, types, mask, positions):
    """The library's logits at positions, of next sentence, and attention weights."""
    inputs = (torch.tensor([ids]), torch.tensor([mask]), torch.tensor([types]))
    with watch_attention(model) as watched:
        output = model(*inputs, masked_positions=torch.tensor(positions))
    heads = [head for (layer,) in watched.values() for head in layer[0]]
    return output.prediction_logits[0], output.seq_relationship_logits[0], heads


@pytest.mark.parametrize("name", live.MODELS)
def test_the_control_starts_with_weights_of_the_size_that_training_started_with(
    page, models, name
):
    """Normal numbers cut off at two standard deviations; 64 rows tell their size within
    a fiftieth."""
    trained, untrained = models[name][0], load_untrained(name)
    part = "bert.blocks.0.attention.query.weight"
    size = live.model_settings(trained, {})["config"]["initializer_range"]
    drawn = page.evaluate(
        "([row, size]) => text(courseBert().untrainedWeights([row], size, 0)"
        ".get(row[0]).data)",
        [[part, 64, trained.config.hidden_size], size],
    )
    expected = untrained.state_dict()[part].std().item()
    assert numbers(drawn).std().item() == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("name", live.MODELS)
def test_ids_logits_attention_and_next_sentence_are_the_librarys(
    page, scripts, models, name
):
    """Of sentences of stories and of pydocs' test split: their ids; of every second
    what comes close with the weights that the page loads; and of every tenth, within
    float32's arithmetic, what comes out with the weights as they are."""
    model, tokenizer = models[name]
    load_float32(page, "exact", model)
    load_rounded(page, scripts, name)
    ask = "([run, ids, types, mask, at]) => globalThis[run](ids, types, mask, [at])"
    texts = [
        text
        for data in ("stories", "pydocs")
        for text in live.sentences_of(data, "test", SENTENCES)
    ]
    encoded = [tokenizer.encode(text).ids for text in texts]
    got = page.evaluate(
        "texts => texts.map((text) =>"
        " courseWordPiece.encode(text, tokenizer).pieces.map((p) => p.id))",
        texts,
    )
    for text, ids, found in zip(texts, encoded, got, strict=True):
        assert found == ids, text
    same = []
    for number in range(0, len(texts), 2):
        text, ids = texts[number], encoded[number]
        holed, place = live.masked(ids, tokenizer.vocab["[MASK]"])
        behind = encoded[number + 1][1:]
        row, types = holed + behind, [0] * len(ids) + [1] * len(behind)
        mask = [True] * len(row)
        logits, next_logits, weights = library(model, row, types, mask, [place])
        rounded = page.evaluate(ask, ["rounded", row, types, mask, place])
        chances = logits.softmax(-1)
        close = numbers(rounded["logits"]).softmax(-1)
        same.append(bool(close.argmax() == chances.argmax()))
        assert (close - chances).abs().max() < 0.03, text
        far = torch.tensor(rounded["next"]).softmax(0) - next_logits.softmax(0)
        assert far.abs().max() < 0.02, text
        for close, right in zip(rounded["weights"], weights, strict=True):
            assert (numbers(close) - right.flatten()).abs().max() < 0.01, text
        if number % 10 == 0:
            exact = page.evaluate(ask, ["exact", row, types, mask, place])
            assert (numbers(exact["logits"]) - logits).abs().max() < 1e-3, text
            far = torch.tensor(exact["next"]) - next_logits
            assert far.abs().max() < 1e-3, text
            for one, right in zip(exact["weights"], weights, strict=True):
                assert (numbers(one) - right.flatten()).abs().max() < 1e-4, text
    assert sum(same) >= 0.97 * len(same)


# -- the clinic
# --------------------------------------------------------------------------------------

CELLS = ("pair", "embed", "self-attention", "activation", "block", "pool", "whole")


def answers(assignment: str, cells: tuple[str, ...], changes: dict) -> dict:
    """The reference answers with a mistake in them."""
    known = {"torch": torch, "math": __import__("math")}
    for cell in read_source(ROOT / "solutions" / assignment / f"{assignment}.py").cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name not in cells:
            continue
        source = cell.source
        if name in changes:
            old, new = changes[name]
            assert source.count(old) == 1, (name, old)
            source = source.replace(old, new)
        exec(source, known)  # noqa: S102
    return known


@torch.no_grad()
def in_python(name: str, model, pair, vocab, patch):
    """What the same mistake gives in Python: in the reference answers where the
    assignment on BERT has it, with the library's heads on top."""
    known_mistakes = {
        mutant.name: (assignment, mutant)
        for assignment in ("transformer", "bert")
        for mutant in load_cases(assignment, ROOT)[0]
    }
    assignment, mutant = known_mistakes[name]
    changes = mutant.changes if assignment == "bert" else {}
    known = answers("bert", (*CELLS, "names", "load"), changes)
    if assignment == "transformer":
        norm = answers("transformer", ("norm",), mutant.changes)["LayerNorm"]
        patch.setattr(
            torch.nn.LayerNorm,
            "forward",
            lambda self, hidden: norm.forward(
                SimpleNamespace(
                    eps=self.eps, gain=self.weight, offset=self.bias, centred=True
                ),
                hidden,
            ),
        )
    config = SimpleNamespace(**vars(model.config), dropout=0.0)
    body = known["BertModel"](config).eval()
    tensors = load_file(CHECKPOINTS / "tiny" / "model.safetensors")
    known["load_published"](body, {k: v.float() for k, v in tensors.items()})
    first, second, padding = pair
    ids, types = known["pair_input"](
        first, second, vocab["[CLS]"], vocab["[SEP]"], live.POSITIONS
    )
    mask = torch.tensor([[True] * len(ids) + [False] * padding])
    ids, types = ids + [0] * padding, types + [0] * padding
    hidden, pooled = body(torch.tensor([ids]), mask, torch.tensor([types]))
    model.mlm_head.activation = known["gelu"]
    place = ids.index(vocab["[MASK]"])
    return model.mlm_head(hidden[0, [place]]), model.nsp_head(pooled)[0]


@whole_only
def test_each_patient_has_the_numbers_of_the_same_mistake_in_python(page, models):
    _, tokenizer = models["tiny"]
    model = load_bert(CHECKPOINTS / "tiny", BertForPreTraining).float().eval()
    vocab = tokenizer.vocab
    page.evaluate("(it) => { globalThis.it = it; }", float32_script(model))
    names = page.evaluate("coursePatients.map((patient) => patient.name)")
    assert len(set(names)) == 24
    for number, name in enumerate(names):
        page.evaluate(
            "(number) => { globalThis.source = coursePatched(coursePatients[number]);"
            " globalThis.sick = made(source, it.config, it.table, bytes(it.data)); }",
            number,
        )
        for one, other, padding in PAIRS:
            pair = [tokenizer.encode(text).ids[1:-1] for text in (one, other)]
            got = page.evaluate(
                "([first, second, cls, sep, pad, hole]) => { const { inputIds, "
                "tokenTypeIds } = (0, eval)(`(${source})`)().pairInput(first, second,"
                " cls, sep, 128); const fill = (row, x) => [...row,"
                " ...new Array(pad).fill(x)]; return sick(fill(inputIds, 0),"
                " fill(tokenTypeIds, 0), fill(inputIds.map(() => true), false),"
                " [inputIds.indexOf(hole)]); }",
                [*pair, vocab["[CLS]"], vocab["[SEP]"], padding, vocab["[MASK]"]],
            )
            with pytest.MonkeyPatch.context() as patch:
                logits, chances = in_python(name, model, (*pair, padding), vocab, patch)
            torch.testing.assert_close(
                numbers(got["logits"]), logits[0], atol=1e-3, rtol=0, equal_nan=True
            )
            torch.testing.assert_close(
                torch.tensor(got["next"]), chances, atol=1e-3, rtol=0, equal_nan=True
            )


def test_each_patient_shows_a_line_of_the_page_and_one_of_the_library(page):
    """Each once, and a patient is one change of the text, not a switch in it."""
    source = page.evaluate("String(courseBert)")
    for patient in page.evaluate("coursePatients"):
        for old, _ in [(patient["from"], patient["to"]), *patient.get("also", [])]:
            assert source.count(old) == 1, patient["name"]
        text = (ROOT / patient["file"]).read_text(encoding="utf-8")
        assert text.count(patient["library"]) == 1, patient["name"]
        assert (BOOK / f"{patient['chapter'][0]}.md").is_file()
