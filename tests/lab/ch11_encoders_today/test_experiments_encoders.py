"""Chapter 11's experiments: each change is what its name says, and controls are what
they should be."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lab import probes
from course_lab.ch09_sentence_bert.bm25 import Bm25
from course_lab.ch11_encoders_today import (
    encoders_page,
    modern_stories,
    retrieval_runs,
    two_languages,
)
from course_lab.ch11_encoders_today.modern_stories import CHANGES, WINDOW, Change
from course_lib.modern.layers import GeGLU

VOCABULARY = 2733
STORIES = modern_stories.STUDIES["stories"].variants


def built(*changes):
    variant = Change(STORIES["BERT"].recipe, changes)
    return modern_stories.build(variant, VOCABULARY).eval()


def states(model, ids):
    return model.bert(ids).last_hidden_state


def test_a_change_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'relative'} is no change; choose of sinus"):
        built("relative")


def test_all_changes_have_nearly_as_many_weights_as_bert():
    counts = {
        name: sum(x.numel() for x in modern_stories.build(v, VOCABULARY).parameters())
        for name, v in STORIES.items()
    }
    for name, count in counts.items():
        lacking = 512 * 64 + 64 * 67 if name == "ModernBERT" else 0
        assert count == pytest.approx(counts["BERT"] - lacking, rel=0.01), name


def test_costs_are_those_of_the_recorded_models_beside_bert():
    rows = [x.split("|") for x in encoders_page.costs_table(rounds=1).splitlines()[2:]]
    cells = {row[1].strip(): [cell.strip() for cell in row[2:4]] for row in rows}
    assert cells["BERT"][1] == "1.00"
    for name, (weights, _) in cells.items():
        recorded = encoders_page.runs("encoders-stories", name)[0]["parameters"]
        assert weights == f"{recorded:,}", name


def test_only_rotary_positions_do_not_see_where_a_text_begins():
    """Su et al. 2021, section 3.4.3; a learned and a sinusoidal table do."""
    ids = torch.randint(5, VOCABULARY, (1, 20), generator=torch.manual_seed(1))
    blank = torch.full((1, 4), 7)
    mask = torch.tensor([[False] * 4 + [True] * 20])
    moved = torch.cat([blank, ids], dim=1)
    for changes, same in ((("rotary",), True), (("sinusoidal",), False), ((), False)):
        model = built(*changes)
        later = model.bert(moved, mask).last_hidden_state[:, 4:]
        apart = (later - states(model, ids)).abs().max()
        assert bool(apart < 1e-4) is same, changes


def test_order_is_seen_by_all_and_a_local_layer_sees_half_a_window_on_either_side():
    ids = torch.randint(5, VOCABULARY, (1, 40), generator=torch.manual_seed(2))
    swapped = ids[:, [1, 0, *range(2, 40)]]
    for changes in ((), ("sinusoidal",), ("rotary",)):
        model = built(*changes)
        before, after = states(model, ids), states(model, swapped)
        assert (before[:, 2:] - after[:, 2:]).abs().max() > 1e-3
    model = built("local")
    model.bert.blocks[0].attention.output.weight.data.zero_()  # the global layer
    changed = ids.index_fill(1, torch.tensor([20]), 9)
    moved = (states(model, ids) - states(model, changed)).abs().amax(dim=-1)[0] > 1e-6
    reach = WINDOW // 2
    assert moved.nonzero()[:, 0].tolist() == list(range(20 - reach, 21 + reach))


def test_pre_norm_has_no_biases_in_its_blocks_and_ends_normalised():
    model = built("pre-norm")
    names = [name for name, _ in model.bert.blocks.named_parameters()]
    assert [name for name in names if "bias" in name] == []
    hidden = states(model, torch.tensor([[2, 9, 11, 3]]))
    assert hidden.mean(dim=-1).abs().max() < 1e-5
    assert (hidden.std(dim=-1, unbiased=False) - 1).abs().max() < 1e-3
    kinds = [type(block.feed_forward) for block in built("GeGLU").bert.blocks]
    assert kinds == [GeGLU] * len(kinds)


def test_positions_that_are_computed_are_not_trained():
    for name in ("sinusoidal", "rotary"):
        table = built(name).bert.embeddings.position.weight
        assert not table.requires_grad
        assert bool(table.any()) == (name == "sinusoidal")
    assert set(CHANGES) < set(STORIES)


def test_without_next_sentences_pairs_are_read_but_their_head_learns_nothing():
    study = modern_stories.STUDIES["stories"]
    for name in ("BERT", "no next sentence"):
        short, corpus = study.probe(study, name)
        model, _ = modern_stories.train_variant(short.variants[name], corpus)
        second = model.bert.embeddings.segment.weight[1]
        begun = modern_stories.build(short.variants[name], len(corpus.tokenizer))
        assert (second - begun.bert.embeddings.segment.weight[1]).abs().max() > 1e-5
        assert bool(model.nsp_head.output.bias.any()) == (name == "BERT")


def test_a_perfect_ranking_has_1_in_all_measures():
    found = retrieval_runs.measured(torch.eye(12))
    assert set(found.values()) == {1.0}
    found = retrieval_runs.measured(-torch.eye(12))
    assert found == {
        "recall_1": 0,
        "recall_10": 0,
        "mrr": pytest.approx(1 / 12),
        "ndcg_10": 0,
    }


def test_a_cross_encoder_orders_the_first_documents_and_no_others():
    study = retrieval_runs.STUDY
    short, inputs = study.probe(study, "re-ranked")
    variant = short.variants["re-ranked"]
    words = Bm25(inputs.test.documents).scores(inputs.test.queries)
    with pytest.warns(UserWarning, match="is new, to be trained"):
        found = retrieval_runs.reranked_scores(
            replace(variant, reranked=5), inputs, seed=0
        )
    kept = words.topk(5, dim=1).indices
    read = torch.zeros_like(words, dtype=torch.bool).scatter(1, kept, True)
    assert torch.equal(found[~read], words[~read])
    first = found.topk(5, dim=1).indices.sort(dim=1).values
    assert torch.equal(first, kept.sort(dim=1).values)
    assert not torch.equal(found.argsort(dim=1), words.argsort(dim=1))


def test_both_scores_count_alike_though_their_units_differ():
    study = retrieval_runs.STUDY
    short, inputs = study.probe(study, "re-ranked by both")
    variant = replace(short.variants["re-ranked by both"], reranked=6)
    both = retrieval_runs.reranked_scores(variant, inputs, seed=0)
    alone = retrieval_runs.reranked_scores(replace(variant, way="chosen"), inputs, 0)
    words = Bm25(inputs.test.documents).scores(inputs.test.queries)
    read = words.topk(6, dim=1).indices
    parts = [x.gather(1, read).numpy() for x in (alone, words)]
    added = sum((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) for x in parts)
    found = both.gather(1, read).numpy()
    assert np.corrcoef(added.ravel(), found.ravel())[0, 1] > 1 - 1e-6


def pairs_of(*texts):
    return [{"en": english, "fr": french} for english, french in texts]


def test_words_find_a_translation_where_both_languages_have_them_and_only_there():
    known = ("anna sees paris", "anna voit paris"), ("tom eats", "tom mange")
    test = pairs_of(("the dog", "le chien"), *known)  # of equal ones, the last is first
    read = two_languages.prepared(pairs_of(*known), test)
    study = two_languages.STUDIES["translation"]
    found = study.run(study, "BM25", 0, read)
    assert found["sentences"] == 3
    shares = [scores["recall_1"] for scores in found["scores"].values()]
    assert shares == [pytest.approx(2 / 3)] * 2


def test_of_pairs_with_one_french_sentence_one_is_kept_and_long_ones_are_left_out():
    long = "word " * (two_languages.WORDS + 1)
    train = pairs_of(("hello", "salut"), ("hi", "salut"), (long, "mot"), ("yes", "oui"))
    read = two_languages.prepared(train, train[-1:])
    assert read.train == [("hi", "salut"), ("yes", "oui")]
    assert read.test == [("yes", "oui")]
    assert {"hi", "oui"} <= set(read.tokenizer.vocab), "a vocabulary of both languages"


@pytest.mark.slow
def test_lora_is_merged_without_a_change_and_trains_fewer_weights_the_lower_its_rank():
    study = probes.study_of("encoders-adapting")
    found = {}
    for name in ("LoRA 1, 80", "LoRA 16, 80", "frozen, 80", "fine-tuned, 80"):
        short, inputs = study.probe(study, name)
        found[name] = short.run(short, name, 0, inputs)
    sizes = [found[x]["size"] for x in ("frozen, 80", "LoRA 1, 80", "LoRA 16, 80")]
    assert sizes == sorted(sizes)
    assert sizes[-1] < found["fine-tuned, 80"]["size"] / 3
    assert max(found[x]["moved"] for x in ("LoRA 1, 80", "LoRA 16, 80")) < 1e-5
