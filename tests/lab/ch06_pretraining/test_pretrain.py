"""Plans, the parts of a batch, scores, controls and costs of a pre-training, against
numbers worked out by hand."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import for_each
from datasets import config as datasets_config
from expect import assert_near, refusal

from ch06_pretraining import small_corpus
from course_lab.ch06_pretraining.pretrain import (
    Plan,
    build,
    cut,
    plan_from,
    pretrain,
    tokens_of_steps,
)
from course_lab.ch06_pretraining.pretrain_controls import (
    CONTROLS,
    NGrams,
    guess_from_counts,
)
from course_lab.ch06_pretraining.pretrain_cost import matrix_rate, training_flops
from course_lab.ch06_pretraining.pretrain_data import documents, prepare
from course_lab.ch06_pretraining.pretrain_results import curve, work_of
from course_lab.ch06_pretraining.pretrain_scores import (
    ONLY_MASK,
    evaluation,
    hidden_tokens,
    score,
    share_with_interval,
)
from course_lib.bert.model import BertConfig
from course_lib.pretraining.batches import PreTrainingBatch, pretraining_loss_sum
from course_lib.pretraining.masking import MaskingConfig
from course_lib.pretraining.token_store import TokenStore
from course_lib.training.loop import History, TrainingConfig


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            datasets_config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache")
        )
        source = small_corpus.write(tmp_path_factory.mktemp("data"))
        yield prepare("stories", small_corpus.VOCAB_SIZE, str(source))


PLAN = Plan(
    TrainingConfig(steps=3, accumulate=2, seed=4),
    "tiny",
    "stories",
    max_length=24,
    batch_size=12,
    dropout=0.0,
)


def test_a_plan_comes_back_from_json_as_it_was():
    plan = dataclasses.replace(
        PLAN, masking=MaskingConfig(rate=0.3, unit="word"), split=2
    )
    assert plan_from(json.loads(json.dumps(dataclasses.asdict(plan)))) == plan
    with refusal(r"this is no plan of a pre-training .*speed"):
        plan_from(dataclasses.asdict(plan) | {"speed": 1})


def test_a_plan_whose_step_cannot_be_shared_evenly_is_refused():
    with refusal("batch_size=12 sequences cannot be made of accumulate=5 equal parts"):
        dataclasses.replace(PLAN, training=TrainingConfig(steps=1, accumulate=5))
    with refusal("accumulate=2 parts are no whole batches of split=4"):
        dataclasses.replace(PLAN, split=4)


@for_each("parts", [1, 2, 3, 5])
def test_the_parts_of_a_batch_are_its_sequences_with_their_hidden_tokens_and_their_loss(
    corpus, parts
):
    model = build(PLAN, corpus)
    for batch in PLAN.batches(corpus)(0)[:3]:
        found = cut(batch, parts)
        assert torch.cat([part.input_ids for part in found]).equal(batch.input_ids)
        assert torch.cat([part.token_type_ids for part in found]).equal(
            batch.token_type_ids
        )
        assert torch.cat([part.masked_labels for part in found]).equal(
            batch.masked_labels
        )
        read = [part.input_ids.flatten()[part.masked_positions] for part in found]
        assert torch.cat(read).equal(batch.input_ids.flatten()[batch.masked_positions])
        sums = [pretraining_loss_sum(model, part) for part in found]
        whole, count = pretraining_loss_sum(model, batch)
        assert sum(number for _, number in sums) == count
        assert sum(loss.item() for loss, _ in sums) == pytest.approx(
            whole.item(), rel=1e-6
        )


def test_a_scaled_start_has_weights_of_size_one_over_root_d_and_positions_that_turn(
    corpus,
):
    """Tiny has 128 features: 0.088, cut off at twice that; the published start 0.02. A
    normal cut off at two standard deviations has 0.8796 of its spread."""
    for start, size in (("scaled", 128**-0.5), ("published", 0.02)):
        model = build(dataclasses.replace(PLAN, start=start), corpus)
        for weight in (
            model.bert.blocks[1].feed_forward.expand.weight,
            model.mlm_head.dense.weight,
        ):
            assert weight.std().item() == pytest.approx(0.8796 * size, rel=0.03)
        positions = model.bert.embeddings.position.weight.detach()
        if start == "published":
            assert positions.std().item() == pytest.approx(0.8796 * size, rel=0.03)
            continue
        assert positions.square().mean().sqrt().item() == pytest.approx(size, rel=1e-4)
        # of places three apart: everywhere the same
        near = (positions[:-3] * positions[3:]).sum(dim=1)
        assert_near(near, near[:1].expand_as(near), 1e-3, 1e-3)
    with refusal("start is 'warm'; choose published or scaled"):
        dataclasses.replace(PLAN, start="warm")


def test_a_plan_may_make_a_size_narrower_and_its_feed_forward_with_it():
    config = dataclasses.replace(PLAN, width=48, heads=3).config(vocab_size=90)
    assert (
        config.hidden_size,
        config.intermediate_size,
        config.num_attention_heads,
    ) == (48, 192, 3)
    assert config.num_hidden_layers == PLAN.config(90).num_hidden_layers


def test_a_plan_names_its_optimizer_and_runs_with_it(corpus):
    """AdamW's first step moves each number by the rate; Muon's moves a matrix as a
    whole, so its numbers differ."""
    spread = {}
    for name in ("adamw", "muon"):
        training = dataclasses.replace(
            PLAN.training, steps=1, learning_rate=1e-3, weight_decay=0.0
        )
        plan = dataclasses.replace(PLAN, optimizer=name, training=training)
        before = build(plan, corpus).bert.blocks[0].feed_forward.expand.weight
        after = (
            pretrain(plan, corpus, evaluate_on=None)[0]
            .bert.blocks[0]
            .feed_forward.expand.weight
        )
        moved = (after - before).detach().abs()
        spread[name] = (moved.quantile(0.9) / moved.quantile(0.5)).item()
    assert spread["adamw"] < 1.1
    assert spread["muon"] > 1.5
    with refusal("optimizer is 'sgd'; choose adamw or muon"):
        dataclasses.replace(PLAN, optimizer="sgd")


def test_a_plan_says_how_much_further_muon_moves_than_adamw(corpus):
    training = dataclasses.replace(PLAN.training, steps=1, weight_decay=0.0)
    moves = {}
    for ratio in (1.0, 2.5):
        plan = dataclasses.replace(
            PLAN, optimizer="muon", muon_ratio=ratio, training=training
        )
        before, after = build(plan, corpus), pretrain(plan, corpus, evaluate_on=None)[0]
        for name in (
            "blocks.0.feed_forward.expand.weight",
            "embeddings.position.weight",
        ):
            moves[name, ratio] = after.bert.get_parameter(
                name
            ) - before.bert.get_parameter(name)
    for name, factor in (
        ("blocks.0.feed_forward.expand.weight", 2.5),
        ("embeddings.position.weight", 1.0),
    ):
        assert_near(moves[name, 2.5], factor * moves[name, 1.0], 1e-7, 1e-3)


def test_a_split_plan_reads_what_the_whole_one_reads(corpus):
    """Two processes on a step of one batch: two parts a step, of the same sequences and
    masks."""
    whole = dataclasses.replace(
        PLAN, training=dataclasses.replace(PLAN.training, accumulate=1)
    )
    halves = dataclasses.replace(PLAN, split=2)
    parts = list(halves.parts(corpus)(1))
    steps = list(whole.parts(corpus)(1))
    assert len(parts) == 2 * len(steps) > 8
    for number, batch in enumerate(steps):
        pair = parts[2 * number : 2 * number + 2]
        assert torch.cat([part.input_ids for part in pair]).equal(batch.input_ids)
        assert {part.mlm_weight for part in pair} == {batch.mlm_weight}


def test_the_work_of_a_run_is_that_of_the_batches_it_reads(corpus):
    """Counted from the plan of an epoch, without making a batch: tokens are what is no
    padding."""
    steps = len(PLAN.batches(corpus)(0)) // 2 + 2  # into the second epoch
    read = [batch for epoch in (0, 1) for batch in PLAN.batches(corpus)(epoch)][
        : 2 * steps
    ]
    tokens = [
        b.input_ids.numel() if b.attention_mask is None else int(b.attention_mask.sum())
        for b in read
    ]
    lengths = list(tokens_of_steps(PLAN.batches(corpus), steps))
    assert [int(step.sum()) for step in lengths] == [
        sum(tokens[2 * i : 2 * i + 2]) for i in range(steps)
    ]
    work = work_of(PLAN, corpus, steps)
    assert (work.tokens, work.sequences) == (
        sum(tokens),
        sum(len(batch.input_ids) for batch in read),
    )


def test_where_some_words_are_preferred_the_mean_rate_is_the_share_that_is_hidden(
    corpus,
):
    ids, pieces = corpus.stores["train"].ids, corpus.tokenizer.pieces
    preferred = tuple(pieces[index] for index in np.unique(ids)[::5])
    plan = dataclasses.replace(
        PLAN, preferred=preferred, masking=MaskingConfig(rate=0.9)
    )
    batches = [batch for epoch in range(6) for batch in plan.batches(corpus)(epoch)]
    hidden = sum(len(batch.masked_labels) for batch in batches)
    # [MASK] stands for a word
    ordinary = sum(int((batch.input_ids.flatten() > 3).sum()) for batch in batches)
    rate = plan.mean_rate(corpus)
    assert PLAN.mean_rate(corpus) == PLAN.masking.rate
    assert 0.9 * 0.05 < rate < 0.9 * 0.6
    assert abs(hidden / ordinary - rate) < 5 * (rate / ordinary) ** 0.5


def test_flops_of_a_small_model_counted_by_hand():
    """Two layers of 2 heads, D = 4, I = 6; sequences of 3 and 5 tokens, 2 hidden ones,
    a vocabulary of 10.

    Forward, two operations a weight. Attention, twice: 8 tokens x 2 x 4 x 16 = 1,024
    and 4 x 4 x (9 + 25) = 544 for scores and sums. Feed-forward: 2 x 2 x 24 = 96 a
    token, for 8 in both layers: 1,536. Output: 2 x 2 x (16 + 40) = 224; pooler and
    pairs: 2 x 2 x (16 + 8) = 96. Three times as much with the gradients.
    """
    config = BertConfig(10, 4, 2, 2, 6)
    assert training_flops(config, np.array([3, 5]), chosen=2) == 3 * (
        2 * (1024 + 544) + 1536 + 224 + 96
    )


@pytest.mark.parametrize(("size", "length"), [("mini", 128), ("base", 512)])
def test_flops_are_those_that_torch_counts(size, length):
    """By torch's own counter of the products of forward and backward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    from course_lib.bert.model import BertForPreTraining

    config = getattr(BertConfig, size)(
        vocab_size=600, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    with torch.device("meta"):
        model = BertForPreTraining(config)
        ids = torch.zeros(2, length, dtype=torch.long)
        with FlopCounterMode(display=False) as counter:
            output = model(ids, masked_positions=torch.arange(40))
            (
                output.prediction_logits.sum() + output.seq_relationship_logits.sum()
            ).backward()
    counted = counter.get_total_flops()
    assert training_flops(config, np.array([length] * 2), chosen=40) == counted


def test_the_matrix_rate_is_that_of_a_product():
    assert (
        1e8
        < matrix_rate(torch.device("cpu"), torch.float32, seconds=0.01, side=256)
        < 1e15
    )


def store_of(*texts: str):
    """One letter a token, a = 1; each text a document."""
    ids = np.concatenate([[ord(letter) - 96 for letter in text] for text in texts])
    starts = np.cumsum([0, *map(len, texts)])
    return TokenStore(Path("letters"), ids, starts, np.arange(len(texts) + 1), 9, {})


def test_neighbours_are_counted_within_documents_and_smoothed_by_witten_and_bell():
    """In "abac" and "ca", a is followed by b and c, once each, and c by nothing: the a
    behind it is another text's."""
    ngrams = NGrams(store_of("abac", "ca"))
    counts = np.array([0, 3, 1, 2, 0, 0, 0, 0, 0])
    share = (counts + 3 * np.full(9, 1 / 9)) / (6 + 3)
    np.testing.assert_allclose(ngrams.share, share, rtol=1e-12)
    after_a = (np.array([0, 0, 1, 1, 0, 0, 0, 0, 0]) + 2 * share) / (2 + 2)
    np.testing.assert_allclose(ngrams.after(np.array([[1]]))[0], after_a, rtol=1e-12)
    # "ca" alone
    after_c = (np.array([0, 1, 0, 0, 0, 0, 0, 0, 0]) + 1 * share) / (1 + 1)
    np.testing.assert_allclose(ngrams.after(np.array([[3]]))[0], after_c, rtol=1e-12)
    # never seen, as [MASK]
    np.testing.assert_allclose(ngrams.after(np.array([[8]]))[0], share, rtol=1e-12)
    before_a = (np.array([0, 0, 1, 1, 0, 0, 0, 0, 0]) + 2 * share) / (2 + 2)  # ba, ca
    np.testing.assert_allclose(ngrams.before(np.array([[1]]))[0], before_a, rtol=1e-12)
    # c after "ba": nearest first
    two = (np.array([0, 0, 0, 1, 0, 0, 0, 0, 0]) + 1 * after_a) / (1 + 1)
    np.testing.assert_allclose(ngrams.after(np.array([[1, 2]]))[0], two, rtol=1e-12)
    both = after_a * before_a / share
    np.testing.assert_allclose(
        ngrams.both_sides(np.array([[1]]), np.array([[1]]))[0],
        both / both.sum(),
        rtol=1e-12,
    )


def test_all_controls_give_distributions_at_the_ends_and_beside_the_unseen_too():
    ngrams = NGrams(store_of("abcabdabc", "ccba"))
    ids = torch.tensor([[1, 8, 3, 1, 2], [8, 8, 8, 8, 8]])
    batch = PreTrainingBatch(
        ids,
        ids,
        None,
        torch.tensor([0, 1, 4, 7, 9]),
        torch.tensor([1, 2, 3, 1, 1]),
        None,
        1.0,
        1.0,
    )
    for name in CONTROLS:
        logs, pairs = guess_from_counts(ngrams, name)(batch)
        assert logs.shape == (5, 9)
        assert pairs is None
        torch.testing.assert_close(logs.exp().sum(dim=1), torch.ones(5))
        if name != "unigram":
            assert logs[1].argmax() == 2, f"{name}: b stands between a and c"
        np.testing.assert_allclose(
            logs[3].exp().numpy(),
            ngrams.share,
            rtol=1e-5,
            err_msg="[MASK] on both sides",
        )
    with refusal(
        "there is no control 'fourgram'; choose one of unigram, bigram, two-sided"
    ):
        guess_from_counts(ngrams, "fourgram")


def test_more_neighbours_guess_better_and_all_guess_the_same_tokens(corpus):
    ngrams = NGrams(corpus.stores["train"])
    data = hidden_tokens(corpus.stores["test"], corpus.tokenizer.vocab, 24)
    scores = [score(guess_from_counts(ngrams, name), data) for name in CONTROLS]
    losses = [found.figures()["mlm_loss"] for found in scores]
    assert losses == sorted(losses, reverse=True)
    untrained = evaluation(corpus, "test", 24)(build(PLAN, corpus))
    for found in scores:
        assert (found.token_document == untrained.token_document).all()
        assert found.figures().keys() == {"mlm_accuracy", "mlm_loss"}
    assert untrained.figures()["mlm_loss"] == pytest.approx(
        math.log(len(corpus.tokenizer)), abs=0.15
    )
    assert untrained.figures()["nsp_loss"] == pytest.approx(math.log(2), abs=0.01)


def test_with_mask_alone_the_same_tokens_are_scored_and_all_of_them_are_masked(corpus):
    """So a model that was trained without the 80/10/10 rule is judged by what it has
    read."""
    store, vocab = corpus.stores["test"], corpus.tokenizer.vocab
    both = zip(
        hidden_tokens(store, vocab, 24)(0),
        hidden_tokens(store, vocab, 24, ONLY_MASK)(0),
        strict=True,
    )
    shares = []
    for mixed, masked in both:
        assert torch.equal(mixed.masked_positions, masked.masked_positions)
        assert torch.equal(mixed.masked_labels, masked.masked_labels)
        read = masked.input_ids.flatten()[masked.masked_positions]
        assert (read == vocab["[MASK]"]).all()
        read = mixed.input_ids.flatten()[mixed.masked_positions]
        shares.append((read == vocab["[MASK]"]).float().mean().item())
    assert 0.7 < np.mean(shares) < 0.9


def test_scores_name_the_document_of_each_hidden_token_and_repeat_exactly(corpus):
    """A control that knows each token's document by its animal: guesses are right where
    the owner's animal is asked."""
    store, vocab = corpus.stores["test"], corpus.tokenizer.vocab
    data = hidden_tokens(store, vocab, 24)
    first = score(guess_from_counts(NGrams(corpus.stores["train"]), "unigram"), data)
    again = score(guess_from_counts(NGrams(corpus.stores["train"]), "unigram"), data)
    np.testing.assert_array_equal(first.token_loss, again.token_loss)
    assert set(first.token_document) <= set(range(len(store)))
    assert len(set(first.token_document)) > len(store) // 2
    # Each document's tokens are hidden in proportion to their number: that ties tokens
    # to owners.
    sizes = np.diff(store.sentence_starts[store.document_starts])
    hidden = np.bincount(first.token_document, minlength=len(store))
    assert np.corrcoef(sizes, hidden)[0, 1] > 0.5


def test_an_interval_counts_documents_not_tokens():
    """Three documents of 4, 2 and 2 guesses with 4, 1 and 0 right: 5/8 ± 1.96 sqrt(3/2
    Σ(hits - 5/8 n)²) / 8."""
    right = np.array([1, 1, 1, 1, 1, 0, 0, 0], dtype=bool)
    document = np.array([7, 7, 7, 7, 2, 2, 9, 9])
    share, half = share_with_interval(right, document)
    spread = (4 - 2.5) ** 2 + (1 - 1.25) ** 2 + (0 - 1.25) ** 2
    assert share == 5 / 8
    assert half == pytest.approx(1.96 * math.sqrt(1.5 * spread) / 8, rel=1e-12)
    with refusal("an interval needs guesses from two documents or more"):
        share_with_interval(right, np.zeros(8, dtype=int))


def test_a_curve_of_many_steps_is_thinned_to_means():
    steps = list(range(1, 1202))
    told = curve(
        History(
            steps,
            [float(s) for s in steps],
            [0.1] * 1201,
            [1.0] * 1201,
            [2.0 * s for s in steps],
            [0.5] * 1201,
        )
    )
    assert len(told["step"]) == 401
    assert (told["step"][0], told["loss"][0], told["sequences"][0]) == (3, 2.0, 6.0)
    assert (told["step"][-1], told["loss"][-1]) == (1201, 1201.0)


def test_rows_that_agree_in_the_keys_and_stand_together_are_one_document():
    rows = [
        {"module": module, "paragraphs": paragraphs}
        for module, paragraphs in (
            ("a", ["One. Two."]),
            ("a", ["Three."]),
            ("b", ["Four."]),
            ("a", ["Five."]),
        )
    ]
    assert list(documents(rows, ("module",))) == [
        ["One.", "Two.", "Three."],
        ["Four."],
        ["Five."],
    ]
    assert list(documents(rows)) == [["One.", "Two."], ["Three."], ["Four."], ["Five."]]


@pytest.mark.slow
def test_a_corpus_is_made_once_and_names_what_it_was_made_from(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets_config, "HF_DATASETS_CACHE", tmp_path / "cache")
    source = str(small_corpus.write(tmp_path / "data"))
    first, again = prepare("stories", 90, source), prepare("stories", 90, source)
    assert first.identity() == again.identity()
    assert [store.path for store in first.stores.values()] == [
        store.path for store in again.stores.values()
    ]
    smaller = prepare("stories", 60, source)
    assert len(smaller.tokenizer) <= 60 < len(first.tokenizer) <= 90
    assert smaller.identity()["train"] == first.identity()["train"]
    assert smaller.identity()["vocabulary"] != first.identity()["vocabulary"]
    ids = first.stores["train"].ids
    assert int(ids.max()) < len(first.tokenizer)
    text = first.tokenizer.decode(
        np.concatenate(first.stores["train"].document(0)).tolist()
    )
    assert text.startswith("the ")
    with refusal(
        r"translation has no train split with paragraphs; choose a corpus, e\.g\."
        r" pydocs"
    ):
        prepare("translation", 90, "embedded")
    with refusal(
        r"vocab_size=7 has no room for 5 special tokens, \d+ characters; pass at"
        r" least"
    ):
        prepare("stories", 7, source)
