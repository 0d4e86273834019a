"""The checkpoints in book/checkpoints: small, safe, and measured by the numbers that
their cards tell."""

import dataclasses
import json
import shlex

import pytest
import torch
import typer.testing
from expect import assert_near
from safetensors.torch import load_file
from tiny import tiny_tokenizer
from whole import first_or_all

from course_lab.ch06_pretraining import shipped
from course_lab.ch06_pretraining.pretrain import Plan, build, plan_from
from course_lab.ch06_pretraining.pretrain_card import card
from course_lab.ch06_pretraining.pretrain_controls import NGrams, guess_from_counts
from course_lab.ch06_pretraining.pretrain_data import Corpus, prepare
from course_lab.ch06_pretraining.pretrain_scores import evaluation, hidden_tokens, score
from course_lib.bert.model import BertForPreTraining
from course_lib.training.config import read_settings
from course_lib.training.loop import TrainingConfig
from course_tools.cli import app

NAMES = ("mini", "tiny")


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_a_shipped_folder_holds_what_users_need_and_nothing_to_resume_from(name):
    files = {
        path.name: path.stat().st_size
        for path in (shipped.CHECKPOINTS / name).iterdir()
    }
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "vocab.txt",
        "log.json",
        "plan.json",
        "README.md",
    } <= set(files)
    assert "training.safetensors" not in files
    assert sum(files.values()) < 20e6
    tensors = load_file(shipped.CHECKPOINTS / name / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}


def test_a_card_is_what_its_log_says(name):
    folder = shipped.CHECKPOINTS / name
    log = shipped.read_log(name)
    assert (folder / "README.md").read_text(encoding="utf-8") == card(log)
    assert (
        log["plan"]
        == json.loads((folder / "plan.json").read_text(encoding="utf-8"))["plan"]
    )
    plan, defaults = (
        dataclasses.asdict(plan)
        for plan in (plan_from(log["plan"]), Plan(TrainingConfig(steps=1)))
    )
    stored = {**log["plan"], "training": read_settings(log["plan"]["training"])}
    assert {setting: plan[setting] for setting in stored} == stored
    later = plan.keys() - log["plan"].keys()
    assert all(plan[setting] == defaults[setting] for setting in later), (
        "what came after it has no effect on it"
    )


def test_the_commands_of_a_card_still_parse_and_ask_for_its_precision(
    name, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        "course_tools.pretrain_command.run_in_folder",
        lambda folder, options, **rest: asked.append(options["precision"]) or folder,
    )
    for sitting in shipped.read_log(name)["sittings"]:
        program, *words = shlex.split(sitting["command"])
        result = typer.testing.CliRunner().invoke(app, words)
        assert (program, result.exit_code) == ("course", 0), result.output
    assert (
        asked[0]
        == plan_from(shipped.read_log(name)["plan"]).training.precision
        == "bfloat16"
    )
    assert set(asked[1:]) == {None}, "one that goes on keeps it"


def test_a_shipped_model_knows_more_than_counts_of_pairs_and_tells_next_sentences(name):
    told = shipped.read_log(name)["results"]["scores"]["test"]
    margins = {
        "unigram": 0.25,
        "bigram": 0.15,
        "two-sided trigram": 0.04,
        "untrained": 0.3,
    }
    for control, margin in margins.items():
        assert told["model"]["mlm_accuracy"] > told[control]["mlm_accuracy"] + margin, (
            control
        )
        assert told["model"]["mlm_loss"] < told[control]["mlm_loss"] - 0.5, control
    assert told["model"]["mlm_accuracy"] >= 0.35
    assert told["model"]["nsp_accuracy"] >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", first_or_all("tiny", "mini"))
def test_the_numbers_of_the_card_come_out_again(name):
    """On the text of this machine; with other packages it is another text, and nothing
    can be said."""
    log = shipped.read_log(name)
    plan = plan_from(log["plan"])
    corpus = prepare(plan.data, plan.vocab_size, source="embedded")
    if corpus.identity()["test"] != log["fingerprints"]["test"]:
        pytest.skip(
            "the packages on this machine hold another documentation than that of the"
            " card"
        )
    model, tokenizer = shipped.load_shipped(name)
    assert tokenizer.pieces == corpus.tokenizer.pieces
    found = evaluation(corpus, "test", plan.max_length, passes=2)(model).figures()
    told = log["results"]["scores"]["test"]
    for figure, value in found.items():
        assert value == pytest.approx(told["model"][figure], abs=2e-3), figure
    data = hidden_tokens(corpus.stores["test"], corpus.tokenizer.vocab, plan.max_length)
    counts = score(
        guess_from_counts(NGrams(corpus.stores["train"]), "bigram"), data, passes=2
    ).figures()
    assert counts["mlm_accuracy"] == pytest.approx(
        told["bigram"]["mlm_accuracy"], abs=1e-6
    )


def test_the_reference_library_loads_it_and_computes_the_same(name):
    transformers = pytest.importorskip("transformers")
    folder = shipped.CHECKPOINTS / name
    theirs = transformers.BertForPreTraining.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    ours, tokenizer = shipped.load_shipped(name)
    ids = torch.tensor([tokenizer.encode("Return the sum of", "two arrays.").ids])
    with torch.no_grad():
        mine, its = ours(ids), theirs(ids)
    assert_near(mine.prediction_logits, its.prediction_logits, 2e-5)
    assert_near(mine.seq_relationship_logits, its.seq_relationship_logits, 2e-5)


def test_the_untrained_control_starts_where_the_run_started(name):
    log = shipped.read_log(name)
    corpus = Corpus("pydocs", shipped.load_shipped(name)[1], {}, {})
    expected = build(plan_from(log["plan"]), corpus).state_dict()
    for key, tensor in shipped.load_untrained(name).state_dict().items():
        assert torch.equal(tensor, expected[key]), key


def test_a_checkpoint_that_is_not_shipped_is_named():
    with pytest.raises(FileNotFoundError, match="no checkpoint 'huge' is shipped"):
        shipped.read_log("huge")


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer("the cat sat on .")


def test_gaps_are_filled_where_they_are(tokenizer):
    def guess(batch):
        ids = batch.input_ids.flatten()
        assert (ids[batch.masked_positions] == tokenizer.vocab["[MASK]"]).all()
        before = ids[batch.masked_positions - 1]
        # whatever stands before
        logits = torch.nn.functional.one_hot(before, len(tokenizer)).float() * 2
        return logits.log_softmax(-1), None

    answers = shipped.fill_gaps(
        guess, ["the [MASK] sat on the cat.", "[MASK]"], tokenizer, most=1
    )
    ((first, chance),) = answers[0]
    assert first == "the"
    assert chance == pytest.approx(
        torch.tensor(2.0).exp().item() / (torch.tensor(2.0).exp().item() + 9)
    )
    assert answers[1][0][0] == "[CLS]"


@pytest.mark.parametrize(("text", "count"), [("the cat", 0), ("[MASK] cat [MASK]", 2)])
def test_a_text_needs_one_gap(tokenizer, text, count):
    with pytest.raises(ValueError, match=rf"has {count} \[MASK\]"):
        shipped.fill_gaps(lambda batch: None, ["the [MASK]", text], tokenizer)


def test_the_table_has_a_row_for_each_guesser_and_no_cell_for_what_was_not_asked():
    told = {"mlm_accuracy": 0.314, "mlm_accuracy_interval": 0.012, "mlm_loss": 4.5678}
    pairs = {"nsp_accuracy": 0.75, "nsp_accuracy_interval": 0.021}
    log = {
        "results": {
            "scores": {
                "test": {"model": told | pairs, "bigram": told},
                "validation": {},
            }
        }
    }
    assert shipped.result_rows(log)[2:] == [
        "| this model | 31.4 ± 1.2 | 4.57 | 75.0 ± 2.1 |",
        "| counts of pairs | 31.4 ± 1.2 | 4.57 |  |",
    ]


def test_a_model_of_another_start_is_not_taken_for_the_control(name):
    """A control that shared the trained weights would be none."""
    trained, untrained = shipped.load_shipped(name)[0], shipped.load_untrained(name)
    assert isinstance(untrained, BertForPreTraining)
    difference = (
        trained.bert.embeddings.token.weight - untrained.bert.embeddings.token.weight
    )
    assert difference.abs().mean() > 0.01
