"""Chapter 6's experiments: questions that one kind of knowledge answers, the start,
probes, plans."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from expect import refusal
from whole import whole_only

from course_lab import records
from course_lab.ch06_pretraining import pretraining_page, pretraining_plans
from course_lab.ch06_pretraining.few_stories import (
    FEW_STORIES,
    NUMBER,
    little,
    story_corpus,
)
from course_lab.ch06_pretraining.pretrain import build
from course_lab.ch06_pretraining.pretraining_plans import (
    BASE,
    PLAIN,
    PLANS,
    operations,
    study_of,
)
from course_lab.ch06_pretraining.pretraining_probes import (
    CLASSES,
    HELD_OUT,
    TASKS,
    probe,
    read_places,
)
from course_lab.ch06_pretraining.pretraining_questions import (
    GENDER,
    GENDERED,
    GRAMMAR,
    KINDS,
    TIMES,
    Question,
    as_batch,
    ask,
    share_right,
)
from course_lab.ch06_pretraining.pretraining_stories import (
    LIVE,
    RECIPE,
    STUDIED,
    Recipe,
    read_stories,
    train_on_stories,
)
from course_lab.ch06_pretraining.textbook import drawn_texts
from course_lib.data import stories_lexicon as lex
from course_lib.figures.tables import choice_heatmap
from course_lib.pretraining.masking import MaskingConfig
from course_tools import record_command as command


@pytest.fixture(scope="module")
def corpus():
    return read_stories(source="embedded")


@pytest.fixture(scope="module")
def two_worlds():
    return read_stories(LIVE, source="embedded")


@pytest.fixture(scope="module")
def questions(corpus):
    return ask(corpus, max_length=57, number=60)


def other_words(question):
    return [
        word
        for number, sentence in enumerate(question.sentences)
        for place, word in enumerate(sentence)
        if (number, place) != (question.sentence, question.place)
    ]


def said_by(scores):
    """A guesser that gives the same score to a word wherever it is asked."""

    def guess(batch):
        table = torch.zeros(len(batch.masked_labels), scores["size"])
        for word, value in scores["of"].items():
            table[:, word] = value
        return table, None

    return guess


# -- questions
# --------------------------------------------------------------------------------------


def test_each_kind_has_as_many_questions_as_were_asked_for_and_all_fit(
    questions, corpus
):
    assert tuple(questions) == KINDS
    for of_kind in questions.values():
        assert len(of_kind) == 60
        assert (
            as_batch(of_kind, corpus.tokenizer.vocab).attention_mask.sum(dim=1).max()
            <= 57
        )


def test_a_hidden_name_stands_elsewhere_and_must_beat_all_other_names(questions):
    for question in questions["name"]:
        assert question.right in other_words(question)
        assert len(question.wrong) == len(lex.WOMEN) + len(lex.MEN) - 1
        assert question.right not in question.wrong


def test_a_hidden_pronoun_agrees_with_who_is_named_and_not_with_its_sentence(questions):
    for question in questions["pronoun"]:
        named = {
            GENDER[word]
            for word in other_words(question)
            if word in GENDER and word not in GENDERED
        }
        assert named == {GENDER[question.right]} != {GENDER[question.wrong[0]]}
        assert (
            sum(word in GENDERED for word in question.sentences[question.sentence]) == 1
        )


def test_the_wrong_time_is_as_often_too_early_as_too_late_and_the_right_one_is_neither(
    questions,
):
    def hour(question, word):
        sentence = list(question.sentences[question.sentence])
        sentence[question.place] = word
        return next(
            TIMES[phrase]
            for length in (4, 3, 2)
            if (
                phrase := tuple(
                    sentence[max(0, question.place + 1 - length) : question.place + 1]
                )
            )
            in TIMES
        )

    later = [
        hour(question, question.right) > hour(question, question.wrong[0])
        for question in questions["time"]
    ]
    assert sum(later) == 30


def test_a_grammar_word_may_lose_to_no_word_at_all(questions, corpus):
    assert {question.right for question in questions["grammar"]} <= GRAMMAR
    vocab = corpus.tokenizer.vocab
    right = sum(question.right == "the" for question in questions["grammar"])
    always_the = said_by({"size": len(vocab), "of": {vocab["the"]: 1.0}})
    assert share_right(always_the, questions["grammar"], vocab) == pytest.approx(
        right / 60
    )


def test_whoever_always_says_late_or_she_is_right_as_often_as_chance(questions, corpus):
    vocab = corpus.tokenizer.vocab
    late = {
        vocab[phrase[-1]]: float(hour)
        for phrase, hour in TIMES.items()
        if len(phrase) == 2
    }
    always_late = share_right(
        said_by({"size": len(vocab), "of": late}), questions["time"], vocab
    )
    assert 0.4 < always_late < 0.65
    she = share_right(
        said_by({"size": len(vocab), "of": {vocab["she"]: 1.0}}),
        questions["pronoun"],
        vocab,
    )
    assert she == pytest.approx(
        np.mean([question.right == "she" for question in questions["pronoun"]])
    )


def test_a_question_is_laid_out_as_a_pair_of_segments_with_one_mask():
    vocab = {
        word: index
        for index, word in enumerate(
            ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", ".", "c", "d", "e"]
        )
    }
    question = Question(
        [["a", "b", "."], ["c", "."], ["d", "e", "."]], sentence=2, place=1
    )
    batch = as_batch([question], vocab)
    assert batch.input_ids.tolist() == [
        [2, 5, 6, 7, 3, 8, 7, 9, 4, 7, 3, 0, 0, 0, 0, 0]
    ]
    assert batch.token_type_ids.tolist() == [[0] * 5 + [1] * 6 + [0] * 5]
    assert batch.attention_mask.sum().item() == 11
    assert (batch.masked_positions.tolist(), batch.masked_labels.tolist()) == (
        [8],
        [vocab["e"]],
    )


def test_questions_and_probes_stay_in_the_worlds_of_the_stories(two_worlds):
    vocab = two_worlds.tokenizer.vocab
    asked = ask(two_worlds, max_length=57, number=20)
    assert {
        word
        for of_kind in asked.values()
        for question in of_kind
        for word in question.wrong
    } <= vocab.keys()
    names = {
        name.lower()
        for world in (lex.SEA, lex.FARM)
        for name in (*world.women, *world.men)
    }
    assert all({question.right, *question.wrong} == names for question in asked["name"])
    told = [
        place.questions
        for pair in read_places(two_worlds, 61, number=20).values()
        for place in pair
    ]
    sentences = [
        words for part in told for question in part for words in question.sentences
    ]
    assert {word for words in sentences for word in words} <= vocab.keys()


def test_a_length_that_no_two_sentences_fit_into_is_refused_in_words(corpus):
    with refusal("only 0 questions of the kind 'grammar' were found; 3 were asked for"):
        ask(corpus, max_length=4, number=3)


# -- probes
# --------------------------------------------------------------------------------------


def test_the_probe_for_classes_is_tested_on_words_that_it_never_saw(corpus):
    train, test = read_places(corpus, 61, number=90)["word class"]
    assert {question.right for question in train.questions}.isdisjoint(
        {question.right for question in test.questions}
    )
    assert all(
        CLASSES[question.right] == label
        for question, label in zip(test.questions, test.labels, strict=True)
    )
    assert 0.4 < len(HELD_OUT) / len(CLASSES) < 0.6


@whole_only
@pytest.mark.slow
def test_who_is_hidden_is_told_by_a_mixture_of_words_and_not_by_mask_and_position(
    corpus,
):
    """The control of the chapter: random attention brings *she* and *he* to the hidden
    name."""
    places = read_places(corpus, 64, number=300)
    probed = probe(build(RECIPE.last, corpus).eval(), corpus.tokenizer.vocab, places)
    assert tuple(probed.accuracy) == TASKS
    assert all(len(layers) == 3 for layers in probed.accuracy.values())
    below = probed.accuracy["hidden person"][0]
    above = max(probed.accuracy["hidden person"][1:])
    assert below < 0.6 < above


# -- the page
# --------------------------------------------------------------------------------------


def test_a_guesser_that_knows_frequencies_only_paints_equal_rows(corpus):
    vocab = corpus.tokenizer.vocab
    _, places = read_places(corpus, 61, number=200)["word class"]
    log_shares = {
        vocab[word]: -1.0 - index % 7
        for index, word in enumerate(CLASSES)
        if word in vocab
    }
    table, names = pretraining_page.class_choices(
        said_by({"size": len(vocab), "of": log_shares}), places, vocab
    )
    assert table.shape == (len(names), len(names))
    np.testing.assert_allclose(table, np.broadcast_to(table[0], table.shape), rtol=1e-4)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)


def test_gaps_are_filled_with_the_likeliest_words(corpus):
    vocab = corpus.tokenizer.vocab
    scores = {
        "size": len(vocab),
        "of": {vocab["lamp"]: math.log(0.6), vocab["mill"]: math.log(0.3)},
    }
    guess = lambda batch: (
        said_by(scores)(batch)[0].masked_fill_(said_by(scores)(batch)[0] == 0, -30),
        None,
    )
    (found,) = pretraining_page.fill_in(
        guess, ["ruth owned a red [MASK] ."], vocab, most=2
    )
    assert [(word, round(chance, 2)) for word, chance in found] == [
        ("lamp", 0.6),
        ("mill", 0.3),
    ]


def test_a_study_is_told_as_means_over_seeds_and_what_was_not_asked_is_said():
    runs = [
        {
            "variant": name,
            "seed": seed,
            "downstream": 0.5 + 0.1 * seed,
            "scores": {"mlm_accuracy": 0.7, "mlm_loss": 1.25},
        }
        for name in ("as live", "no next sentence")
        for seed in (0, 1, 2)
    ]
    for run in runs[:3]:
        run["scores"] = {**run["scores"], "nsp_accuracy": 0.8}
    _, _, first, second = pretraining_page.study_table(
        runs, ["no next sentence", "as live"]
    ).split("\n")
    # Student's t with two degrees of freedom: 4.303 · 10 / √3
    assert (
        first
        == "| no next sentence | 70.0 ± 0.0 | 1.250 ± 0.000 | not asked | 60.0 ± 24.8 |"
    )
    assert (
        second == "| as live | 70.0 ± 0.0 | 1.250 ± 0.000 | 80.0 ± 0.0 | 60.0 ± 24.8 |"
    )
    with refusal("was not recorded; recorded are: as live, no next sentence"):
        pretraining_page.study_table(runs, ["rate 0.30"])


def test_the_lead_of_a_variant_is_taken_seed_by_seed():
    """Both share what is easy about a seed: the lead is 5, 7 and 9 points, though the
    scores go up and down."""
    scores = {"as live": (0.65, 0.87, 0.79), "AdamW": (0.60, 0.80, 0.70)}
    runs = [
        {
            "variant": name,
            "seed": seed,
            "scores": {"mlm_accuracy": values[seed], "nsp_accuracy": 0.5},
        }
        for name, values in scores.items()
        for seed in (2, 0, 1)
    ]
    lead = pretraining_page.lead_over(runs, "as live", "AdamW")
    assert lead.mean == pytest.approx(0.07, abs=1e-12)
    # Student's t, 2 degrees
    assert lead.half_width == pytest.approx(4.302653 * 0.02 / math.sqrt(3), rel=1e-6)
    assert (
        pretraining_page.lead_over(runs, "as live", "AdamW", "nsp_accuracy").mean == 0
    )
    with refusal(
        r"'as live' has the seeds \[0, 1, 2\], 'AdamW' \[0, 1\]; record the same"
    ):
        pretraining_page.lead_over(
            [run for run in runs if run is not runs[3]], "as live", "AdamW"
        )


def test_a_choice_that_is_no_share_is_refused():
    with refusal("divide each row by its sum"):
        choice_heatmap(np.array([[3.0, 1.0]]), ["told"], ["one", "two"], "next", "told")


# -- plans
# --------------------------------------------------------------------------------------


def test_a_study_survives_being_written_as_json():
    for study in PLANS.values():
        assert study.recorded(study.configuration) == study


def test_each_variant_changes_one_thing_of_the_same_recipe():
    variants = PLANS["stories"].variants
    base = variants[BASE]
    for name, recipe in variants.items():
        changed = {
            key
            for plan, plan_of_base in zip(recipe.stages, base.stages, strict=True)
            for key, value in asdict(plan).items()
            if value != asdict(plan_of_base)[key]
        }
        assert len(changed - {"training"}) == (name != BASE), name
        settings = {
            key
            for plan, plan_of_base in zip(recipe.stages, base.stages, strict=True)
            for key, value in asdict(plan.training).items()
            if value != asdict(plan_of_base.training)[key]
        }
        # A larger model has fewer steps for the same work; an optimizer has a learning
        # rate of its own.
        allowed = {
            "mini, equal compute": {"steps", "warmup_steps"},
            "AdamW": {"learning_rate"},
        }
        assert settings == allowed.get(name, set()), name


def test_the_plain_study_begins_with_the_papers_recipe_and_changes_one_thing():
    """Devlin et al. 2019, section 3.1 and appendix A.2."""
    variants = PLANS["plain"].variants
    base = variants[PLAIN]
    for plan in base.stages:
        assert (plan.optimizer, plan.preferred, plan.heads) == ("adamw", (), None)
        assert plan.masking == MaskingConfig(0.15, 0.8, 0.1)
        assert plan.next_sentence
    for name, recipe in variants.items():
        changed = {
            key
            for plan, of_base in zip(recipe.stages, base.stages, strict=True)
            for key in asdict(plan)
            if getattr(plan, key) != getattr(of_base, key)
        }
        assert len(changed - {"training"}) == (name != PLAIN), name
        assert ("training" in changed) == (name == "Muon")


def test_the_longer_recipe_has_larger_steps_and_moves_matrices_as_fast():
    for long, studied in zip(RECIPE.stages, STUDIED.stages, strict=True):
        assert (
            long.training.steps * long.batch_size
            < studied.training.steps * studied.batch_size
        )
        assert long.batch_size > studied.batch_size
        rates = [
            plan.training.learning_rate * plan.muon_ratio for plan in (long, studied)
        ]
        assert rates[0] == rates[1]


def test_a_larger_model_has_as_many_operations_in_fewer_steps():
    one, other = (
        PLANS["stories"].variants[name] for name in (BASE, "mini, equal compute")
    )
    assert operations(other) == pytest.approx(operations(one), rel=0.01)
    assert other.steps < one.steps / 5


def test_a_study_that_is_measured_on_different_texts_is_refused():
    with pytest.raises(ValueError, match="read their data in 2 ways"):
        study_of("x", {"one": RECIPE, "two": RECIPE.changed(max_length=32)})


def test_stages_of_two_models_or_two_seeds_are_refused():
    first, second = RECIPE.stages
    with refusal("2 kinds of model, text, start or seed"):
        Recipe((first, replace(second, size="mini")))
    with refusal("2 kinds of model"):
        Recipe((first, replace(second, training=replace(second.training, seed=5))))


def test_a_shorter_recipe_keeps_its_proportions():
    half = RECIPE.shortened(0.5)
    for long, short in zip(RECIPE.stages, half.stages, strict=True):
        for name in ("steps", "warmup_steps", "decay_steps"):
            assert 2 * getattr(short.training, name) == getattr(long.training, name)


@pytest.mark.slow
def test_stages_go_on_where_the_last_one_ended_and_are_numbered_through(corpus):
    recipe = RECIPE.shortened(0.01).changed(batch_size=16)
    recipe = recipe.trained(evaluate_every=None)
    run = train_on_stories(recipe, corpus, {})
    assert run.history.steps == list(range(1, recipe.steps + 1))
    assert run.history.metric_steps == [recipe.stages[0].training.steps, recipe.steps]
    assert sorted(run.history.seconds) == run.history.seconds
    assert (
        run.history.losses[recipe.stages[0].training.steps] < run.history.losses[0] - 1
    ), "it began anew"


@whole_only
@pytest.mark.slow
def test_the_first_live_steps_lead_from_equal_chances_to_word_frequencies(two_worlds):
    told = []
    recipe = LIVE.shortened(0.05).trained(evaluate_every=None)
    losses = train_on_stories(
        recipe, two_worlds, {}, report=lambda history: told.append(history.steps[-1])
    ).history.losses
    shares = np.bincount(two_worlds.stores["train"].ids) / len(
        two_worlds.stores["train"].ids
    )
    at_frequencies = -(
        shares[shares > 0] * np.log(shares[shares > 0])
    ).sum() + math.log(2)
    assert losses[0] > math.log(len(two_worlds.tokenizer)) + math.log(2)
    assert np.mean(losses[-10:]) == pytest.approx(at_frequencies, abs=0.4)
    assert told == [len(losses)]


@pytest.mark.slow
def test_a_study_is_recorded_run_by_run_and_not_run_twice(
    monkeypatch, tmp_path, caplog
):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    for name, number in (("PLACES", NUMBER), ("QUESTIONS", NUMBER), ("PASSES", 1)):
        monkeypatch.setattr(pretraining_plans, name, number)
    corpus = story_corpus("stories", FEW_STORIES)
    monkeypatch.setattr(pretraining_plans, "read_stories", lambda *_: corpus)
    wanted = ["always [MASK]", "no next sentence"]
    small = {variant: little(PLANS["stories"].variants[variant]) for variant in wanted}
    monkeypatch.setitem(PLANS, "stories", study_of("stories", small))
    path = command.record_experiment(
        "pretraining", "stories", "embedded", wanted, [1], steps=10
    )
    record = records.load(path.stem, tmp_path)
    assert [run["variant"] for run in record.results] == wanted
    assert record.seeds == [1]
    assert "nsp_accuracy" in record.results[0]["scores"]
    assert "nsp_accuracy" not in record.results[1]["scores"]
    assert all(
        0 < run["downstream"] < 1 and run["steps"] == 20 for run in record.results
    )
    monkeypatch.setattr(pretraining_plans, "train_on_stories", None)
    assert (
        command.record_experiment(
            "pretraining", "stories", "embedded", wanted, [1], steps=10
        )
        == path
    )


def test_a_variant_that_no_plan_has_is_refused_in_words():
    with refusal(
        "pretraining-stories has no variant 'rate 2'; choose among rate",
        command.ExperimentError,
    ):
        command.record_experiment("pretraining", "stories", None, ["rate 2"], [0])
    with pytest.raises(
        command.ExperimentError,
        match="pretraining has no study 'tales'; it has: stories",
    ):
        command.record_experiment("pretraining", "tales", None, [], [0])


def test_a_loss_has_three_regions_and_one_that_never_leaves_the_first_is_refused(
    two_worlds,
):
    store = two_worlds.stores["train"]
    chances = math.log(store.vocab_size) + math.log(2)
    counts = np.bincount(store.ids) / len(store.ids)
    entropy = -sum(share * math.log(share) for share in counts if share)
    level = entropy + math.log(2)
    losses = [chances] * 4 + [level + 0.1] * 30 + [level - 0.6] * 30
    found = pretraining_page.regions(losses, store)
    assert found.chances == chances
    assert found.frequencies == pytest.approx(level)
    # means over the last tenth: of step 35 over 32 to 35, of step 38 over 35 to 38
    assert (found.reached, found.left) == (5, 38)
    with refusal("never falls below"):
        pretraining_page.regions([chances] * 9, store)


def test_tables_have_a_row_for_each_guesser_and_text_and_nothing_for_what_is_missing():
    table = pretraining_page.score_table({"counts": {"mlm_accuracy": 0.125}})
    assert table.split("\n")[2] == "| counts | 12.5 |  |  |  |  |  |"
    table = pretraining_page.gap_table(["a [MASK]"], {"x": [[("b", 0.5), ("c", 0.25)]]})
    assert table.split("\n")[2] == "| a [MASK] | `b` 50%, `c` 25% |"


def test_a_lead_is_bold_where_its_interval_leaves_out_0():
    kinds = ("grammar", "name", "pronoun", "time")
    runs = [
        {
            "variant": variant,
            "seed": seed,
            "scores": {"mlm_accuracy": right, "nsp_accuracy": 0.5 + 0.1 * seed * other},
            "questions": dict.fromkeys(kinds, 0.5),
        }
        for variant, right, other in (("base", 0.7, 0), ("other", 0.6, 1))
        for seed in (0, 1, 2)
    ]
    row = pretraining_page.lead_table(runs, "base", ["other"]).split("\n")[2]
    cells = row.split(" | ")
    assert cells[1] == "**\N{MINUS SIGN}10.0 ± 0.0**"
    # Student's t with two degrees of freedom: 4.303 · 10 / √3
    assert cells[2] == "+10.0 ± 24.8"
    for run in runs:
        run["scores"]["mask_accuracy"] = run["scores"]["mlm_accuracy"] / 2
    scores = pretraining_page.SCORES_AT_MASK
    row = pretraining_page.lead_table(runs, "base", ["other"], scores).split("\n")[2]
    assert row.split(" | ")[1:3] == [
        "**\N{MINUS SIGN}5.0 ± 0.0**",
        "**\N{MINUS SIGN}10.0 ± 0.0**",
    ]
    del runs[3]["scores"]["nsp_accuracy"]
    row = pretraining_page.lead_table(runs, "base", ["other"]).split("\n")[2]
    assert row.split(" | ")[2] == "not trained"


def test_what_is_drawn_for_the_printed_algorithm_is_what_its_batch_holds(two_worlds):
    data, mask_id = LIVE.last.batches(two_worlds), two_worlds.tokenizer.vocab["[MASK]"]
    drawn = drawn_texts(data, batches=2, rows=5, seed=0)
    for text in drawn:
        batch = text.batch(mask_id)
        places = batch.masked_positions
        assert torch.equal(text.ids.flatten()[places], batch.masked_labels)
        assert torch.equal(text.chosen.flatten().nonzero().flatten(), places)
        kept = ~text.chosen
        assert torch.equal(text.ids[kept], batch.input_ids[kept])
        assert not data.vocab_ids.is_special[text.ids][text.chosen].any()
        assert not (text.ids == mask_id).any()
        assert len(batch.next_sentence_labels) == 5
        assert set(batch.next_sentence_labels.tolist()) <= {0, 1}
        assert batch.mlm_weight == 5 / len(places)
