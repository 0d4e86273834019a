"""Chapter 3's experiments: plans of variants, positions that fail, heads against gold,
time."""

from dataclasses import replace

import pytest
import torch
from cases import for_each
from expect import assert_near, refusal

from course_lab import records
from course_lab.ch01_seq2seq import alignment, seq2seq
from course_lab.ch01_seq2seq.positions import replace_positions
from course_lab.ch01_seq2seq.text import PAD, collate
from course_lab.ch03_transformer import speed, transformer
from course_lab.ch03_transformer.attention_views import attention_maps
from course_lab.ch03_transformer.plans import Variant
from course_lib.training.loop import TrainingConfig, device
from course_lib.transformer.model import Transformer, TransformerConfig
from course_tools.record_command import ExperimentError, record_experiment

SIZES = {"dim": 12, "num_heads": 3, "num_layers": 2, "hidden_dim": 20}


@pytest.fixture(scope="module")
def recipe():
    training = TrainingConfig(steps=5, learning_rate=1e-2, progress=False)
    return seq2seq.Recipe(
        "translation",
        batch_size=16,
        transformer=SIZES,
        training=training,
        length_bins=(8, 16),
    )


@pytest.fixture(scope="module")
def plan(recipe):
    return transformer.study_of(
        "short",
        {
            "Transformer": Variant(recipe),
            "GRU": Variant(replace(recipe, embedding_dim=10, hidden_dim=14), "dot"),
        },
    )


class TestTraining:
    def test_the_same_code_trains_a_transformer(self, recipe, corpus):
        run = seq2seq.train_and_score(recipe, corpus, "transformer", seed=0)
        assert isinstance(run.model, Transformer)
        assert len(run.texts) == 17
        assert run.summary()["attention"] == "transformer"
        assert run.history.losses[-1] < run.history.losses[0]

    def test_smoothed_labels_are_for_training_only(self, recipe, corpus):
        """Szegedy et al. 2016: with smoothing, training's loss differs from the
        cross-entropy that is reported."""
        model = seq2seq.build(recipe, corpus, "transformer", seed=0)
        batch = {
            name: tensor.to(device())
            for name, tensor in collate(corpus.pairs["test"]).items()
        }
        plain, count = seq2seq.loss_sum(model, batch)
        smoothed, same_count = seq2seq.smoothed_loss_sum(0.3)(model, batch)
        logits = model(
            batch["source_ids"], batch["source_lengths"], batch["target_ids"]
        )
        words = batch["labels"] != PAD
        uniform = -logits.log_softmax(dim=-1).mean(dim=-1)[words].sum()
        assert count == same_count == words.sum()
        assert_near(smoothed, 0.7 * plain + 0.3 * uniform, 0, 1e-5)
        assert seq2seq.smoothed_loss_sum(0.0) is seq2seq.loss_sum

    @pytest.mark.slow
    def test_sentences_can_be_kept_short_to_train_on_and_to_test_on(self):
        recipe = seq2seq.Recipe("translation", max_source=4, max_test=41, test_size=40)
        corpus = seq2seq.prepare(recipe, "embedded")
        lengths = {
            s: [len(pair.source) for pair in pairs] for s, pairs in corpus.pairs.items()
        }
        assert max(lengths["train"]) == max(lengths["validation"]) == 4
        assert max(lengths["test"]) in (40, 41)
        assert len(corpus.text["test"]["fr"]) == len(corpus.pairs["test"]) < 40
        assert (
            len(corpus.text["train"]["alignment"])
            == len(corpus.pairs["train"])
            == 2 * 345
        )
        english = [len(sentence.split()) for sentence in corpus.text["train"]["en"]]
        assert english == lengths["train"]


class TestPlans:
    def test_a_plan_comes_back_from_its_record(self, plan, tmp_path):
        made = records.make("small", ["course"], plan.configuration, [{"seed": 0}])
        records.save(made, tmp_path)
        assert plan.recorded(records.load("small", tmp_path).configuration) == plan

    @for_each(
        "change",
        [
            {"data": "pronouns"},
            {"tokenizer": "bpe"},
            {"vocab_size": 9},
            {"test_size": 9},
            {"max_source": 9},
            {"max_test": 9},
        ],
    )
    def test_variants_on_different_data_cannot_be_compared(self, recipe, change):
        with pytest.raises(ValueError, match="read their data in 2 ways"):
            transformer.study_of(
                "short",
                {"one": Variant(recipe), "other": Variant(replace(recipe, **change))},
            )

    def test_a_plan_needs_a_variant(self):
        with pytest.raises(ValueError, match="at least one variant"):
            transformer.study_of("short", {})

    def test_shortened_plans_differ_in_steps_only(self, plan):
        short = plan.shortened(2)
        assert all(
            variant.recipe.training.steps == 2 for variant in short.variants.values()
        )
        assert replace(short.shortened(5), name=plan.name) == plan

    def test_plans_of_the_chapter_say_what_they_change(self):
        """Each part that is taken away differs from the Transformer in one setting."""
        variants = transformer.PLANS["parts"].variants
        base = variants["Transformer"].recipe
        for name, variant in variants.items():
            changed = {
                k
                for k, v in variant.recipe.transformer.items()
                if base.transformer.get(k) != v
            }
            changed |= {"table"} if variant.recipe.position_table else set()
            assert len(changed) == (name != "Transformer"), (name, changed)
            assert (
                replace(
                    variant.recipe, transformer=base.transformer, position_table=None
                )
                == base
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("data", ["translation", "short"])
    def test_rivals_have_the_same_number_of_parameters(self, data):
        """Within 1%, at the vocabularies of the generated data."""
        plan = transformer.PLANS[data]
        corpus = seq2seq.prepare(plan.recipe, "embedded")
        sizes = [
            sum(
                p.numel()
                for p in seq2seq.build(
                    variant.recipe, corpus, variant.attention, 0
                ).parameters()
            )
            for variant in plan.variants.values()
        ]
        assert max(sizes) < 1.01 * min(sizes)


class TestPositionsThatFail:
    def test_the_index_is_added_to_every_feature(self):
        model = Transformer(TransformerConfig(9, 8, **SIZES, max_length=6))
        replace_positions(model, "index")
        assert model.encoder.embed.table.tolist() == [[float(k)] * 12 for k in range(6)]
        replace_positions(model, "share")
        torch.testing.assert_close(model.embed.table[:, 5], torch.arange(6) / 6)

    def test_what_cannot_be_replaced_is_refused_in_words(self):
        with refusal("position_table is 'angle'; choose 'index' or 'share'"):
            replace_positions(Transformer(TransformerConfig(9, 8, **SIZES)), "angle")
        with refusal("leave positions at 'sinusoidal'"):
            replace_positions(
                Transformer(TransformerConfig(9, 8, **SIZES, positions="none")), "index"
            )

    def test_a_recipe_builds_with_them(self, recipe, corpus):
        model = seq2seq.build(
            replace(recipe, position_table="index"), corpus, "transformer", seed=0
        )
        assert model.embed.table[7, 3] == 7


class TestAlignmentOfHeads:
    def test_weights_are_those_of_the_words_and_sum_to_one(self, recipe, corpus):
        model = seq2seq.build(recipe, corpus, "transformer", seed=0)
        tables = alignment.cross_attention_weights(model, corpus.pairs["test"])
        for table, pair in zip(tables, corpus.pairs["test"], strict=True):
            assert table.shape == (2, 3, len(pair.target), len(pair.source))
            torch.testing.assert_close(
                table.sum(dim=-1), torch.ones(2, 3, len(pair.target))
            )

    def test_weights_come_back_in_the_order_given(self, recipe, corpus):
        """They are computed sorted by length; each pair alone must give the same."""
        model = seq2seq.build(recipe, corpus, "transformer", seed=0)
        pairs = corpus.pairs["test"][:5]
        together = alignment.cross_attention_weights(model, pairs)
        for pair, table in zip(pairs, together, strict=True):
            assert_near(
                alignment.cross_attention_weights(model, [pair])[0], table, 1e-6, 1e-4
            )

    def test_layers_come_in_order_and_row_t_is_the_attention_that_writes_word_t(
        self, recipe, corpus
    ):
        model = seq2seq.build(recipe, corpus, "transformer", seed=0).eval()
        pair = corpus.pairs["test"][2]
        batch = {name: tensor.to(device()) for name, tensor in collate([pair]).items()}
        with torch.no_grad():
            maps = attention_maps(model, batch)
        (table,) = alignment.cross_attention_weights(model, [pair])
        for layer, expected in zip(table, maps.cross, strict=True):
            # all rows but that of <eos>
            torch.testing.assert_close(layer, expected[0, :, :-1].cpu())

    def test_each_head_is_scored_alone_and_the_mean_last(self):
        """Head 0 of layer 0 follows gold, head 1 goes the other way; their mean, 0.6 to
        0.4, follows the louder one."""
        right = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        quiet, loud = 0.8 * right + 0.1, right.flip(1)
        # layers, heads, T, S
        table = torch.stack([torch.stack([quiet, loud]), torch.stack([right, right])])
        rates = alignment.error_rate_of_heads([table], [[[0, 0], [1, 1]]])
        assert rates.tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


class TestSpeed:
    def test_every_model_is_measured_at_every_length(self, recipe, corpus):
        models = {
            "Transformer": seq2seq.build(recipe, corpus, "transformer", 0),
            "GRU": seq2seq.build(recipe, corpus, "dot", 0),
        }
        times = speed.microseconds_per_word(models, [3, 7], batch_size=2, repeats=3)
        for of_model in times.values():
            assert list(of_model) == ["training", "decoding", "decoding one"]
            for repeats in of_model.values():
                assert [len(values) for values in repeats] == [2, 2, 2]
                assert all(value > 0 for values in repeats for value in values)

    def test_measuring_leaves_weights_and_gradients_alone(self, recipe, corpus):
        model = seq2seq.build(recipe, corpus, "transformer", 0)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        speed.microseconds_per_word(
            {"Transformer": model}, [4], batch_size=2, repeats=1
        )
        assert all(
            torch.equal(value, before[name])
            for name, value in model.state_dict().items()
        )
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_a_word_costs_what_the_clock_says_whatever_length_and_batch(
        self, recipe, corpus, monkeypatch
    ):
        """By a clock that the work itself moves: 3 µs a word of training, 5 of
        decoding; a first call costs more."""
        models = {
            name: seq2seq.build(recipe, corpus, "transformer", 0)
            for name in ("first", "second")
        }
        now, calls = [0.0], []

        def work(kind, microseconds):
            def run(model, pairs):
                name = next(name for name, each in models.items() if each is model)
                call = (name, kind, len(pairs), len(pairs[0].source))
                now[0] += (
                    microseconds
                    * 1e-6
                    * len(pairs)
                    * (len(pairs[0].target) + 1)
                    * (1 if call in calls else 50)
                )
                calls.append(call)

            return run

        monkeypatch.setattr(speed.time, "perf_counter", lambda: now[0])
        monkeypatch.setattr(speed, "_train", work("training", 3))
        monkeypatch.setattr(speed, "_decode", work("decoding", 5))
        times = speed.microseconds_per_word(models, [4, 9], batch_size=6, repeats=2)
        for of_model in times.values():
            for kind, cost in {"training": 3, "decoding": 5, "decoding one": 5}.items():
                assert of_model[kind] == [pytest.approx([cost, cost])] * 2
        assert {call[1:] for call in calls} == {
            (kind, size, length)
            for kind, size in (("training", 6), ("decoding", 6), ("decoding", 1))
            for length in (4, 9)
        }
        assert [call[0] for call in calls] == ["first", "second"] * (len(calls) // 2), (
            "they take turns"
        )

    @pytest.mark.parametrize("attention", ["transformer", "dot"])
    def test_training_is_a_pass_back_and_forth_and_decoding_goes_word_by_word(
        self, recipe, corpus, attention
    ):
        model = seq2seq.build(recipe, corpus, attention, 0)
        passes, states, step = [], [], model.step
        model.register_forward_hook(
            lambda *_: passes.append((model.training, torch.is_grad_enabled()))
        )
        next(model.parameters()).register_hook(
            lambda gradient: passes.append("backward")
        )

        def watched(state, tokens):
            assert not model.training
            assert not torch.is_grad_enabled()
            assert not states or state is states[-1], (
                "each step goes on from the one before"
            )
            log_probs, state = step(state, tokens)
            states.append(state)
            return log_probs, state

        model.step = watched
        pairs = corpus.pairs["test"][:3]
        speed._train(model.eval(), pairs)
        assert passes == [(True, True), "backward"]
        speed._decode(model.train(), pairs)
        assert len(states) == max(len(pair.target) for pair in pairs) + 1


class TestCommand:
    def test_what_cannot_run_is_refused_in_words(self, tmp_path, monkeypatch):
        monkeypatch.setattr(records, "RESULTS", tmp_path)
        with refusal(
            "no study 'sst2'; it has: translation, short, parts, pronouns, multi30k",
            ExperimentError,
        ):
            record_experiment("transformer", "sst2", None, [], [0])
        with refusal(
            "has no variant 'two heads'; choose among Transformer; post-norm",
            ExperimentError,
        ):
            record_experiment("transformer", "parts", None, ["two heads"], [0])

    @pytest.mark.slow
    def test_commands_side_by_side_keep_each_others_runs(
        self, tmp_path, monkeypatch, corpus, plan
    ):
        """A run that another command recorded in the meantime is neither lost nor made
        again."""
        monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(seq2seq, "prepare", lambda recipe, source: corpus)
        monkeypatch.setitem(transformer.PLANS, "short", plan)
        monkeypatch.chdir(tmp_path)
        record_experiment("transformer", "short", None, ["GRU"], [2])
        first = records.load("transformer-short", tmp_path / "results").results
        record_experiment("transformer", "short", None, [], [2])
        second = records.load("transformer-short", tmp_path / "results").results
        assert second[0] == first[0]
        assert [(run["variant"], run["attention"], run["seed"]) for run in second] == [
            ("GRU", "dot", 2),
            ("Transformer", "transformer", 2),
        ]
        other = replace(plan.shortened(3), name=plan.name)
        monkeypatch.setitem(transformer.PLANS, "short", other)
        with pytest.raises(ExperimentError, match="made with another configuration"):
            record_experiment("transformer", "short", None, [], [2])
