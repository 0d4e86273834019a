"""The experiments: text to batches and back, runs, records."""

from dataclasses import replace

import pytest
import torch
from expect import assert_near, refusal
from whole import whole_only

from course_lab import records, study
from course_lab.ch01_seq2seq import (
    alignment,
    gradients,
    scoring,
    seq2seq,
    studies,
    translator_measures,
)
from course_lab.ch01_seq2seq.text import (
    BOS,
    EOS,
    PAD,
    Pair,
    collate,
    encode_pairs,
    train_tokenizer,
)
from course_lib.data.translation import generate
from course_lib.seq2seq.search import greedy
from course_lib.training.loop import TrainingConfig, device
from course_tools.record_command import ExperimentError, record_experiment

SENTENCES = [
    "Un homme, avec un chapeau orange.",
    "L'été, à la plage : deux chiens (noirs) jouent !",
    "Quelqu'un court…",
]


@pytest.fixture(scope="module")
def recipe():
    training = TrainingConfig(
        steps=6, learning_rate=1e-2, evaluate_every=3, progress=False
    )
    return seq2seq.Recipe(
        "translation",
        embedding_dim=10,
        hidden_dim=12,
        batch_size=16,
        training=training,
        length_bins=(8, 16),
    )


class TestText:
    def test_byte_pair_units_decode_to_the_very_text(self):
        """sacrebleu scores raw text, so spaces, apostrophes and punctuation must come
        back exactly."""
        tokenizer = train_tokenizer(SENTENCES, "bpe", vocab_size=90)
        ids = [encoding.ids for encoding in tokenizer.encode_batch(SENTENCES)]
        assert tokenizer.decode_batch(ids) == SENTENCES
        assert any(
            len(encoding) < len(sentence)
            for encoding, sentence in zip(ids, SENTENCES, strict=True)
        )

    def test_special_tokens_have_the_first_ids(self):
        for kind in ("word", "bpe"):
            tokenizer = train_tokenizer(SENTENCES, kind)
            assert [tokenizer.id_to_token(place) for place in range(4)] == [
                "<pad>",
                "<bos>",
                "<eos>",
                "<unk>",
            ]

    def test_an_unknown_kind_is_refused(self):
        with refusal("tokenizer kind is 'char'; choose 'word' or 'bpe'"):
            train_tokenizer(SENTENCES, "char")

    def test_the_decoder_reads_what_it_is_to_write_one_step_later(self):
        batch = collate([Pair([4, 5, 6], [7, 8]), Pair([9], [4, 5, 6, 7])])
        assert batch["target_ids"].tolist() == [
            [BOS, 7, 8, PAD, PAD],
            [BOS, 4, 5, 6, 7],
        ]
        assert batch["labels"].tolist() == [[7, 8, EOS, PAD, PAD], [4, 5, 6, 7, EOS]]
        assert batch["source_ids"].tolist() == [[4, 5, 6], [9, PAD, PAD]]
        assert batch["source_lengths"].tolist() == [3, 1]

    def test_an_empty_sentence_is_refused_in_words(self):
        tokenizer = train_tokenizer(["a b"], "word")
        with refusal("target sentence 1 is empty; drop the pair"):
            encode_pairs(["a", "b"], ["b", " "], (tokenizer, tokenizer))

    def test_sides_of_different_number_are_refused_in_words(self):
        tokenizer = train_tokenizer(["a b"], "word")
        with refusal("2 source sentences but 1 target sentences"):
            encode_pairs(["a", "b"], ["b"], (tokenizer, tokenizer))


class TestRuns:
    def test_a_recipe_is_trained_with_the_optimizer_that_it_names(
        self, recipe, corpus, monkeypatch
    ):
        used = []
        for name, make in seq2seq.OPTIMIZERS.items():
            spied = lambda model, config, name=name, make=make: (
                used.append(name) or make(model, config)
            )
            monkeypatch.setitem(seq2seq.OPTIMIZERS, name, spied)
        for name in ("muon", "adamw"):
            seq2seq.fit(
                study.shortened(replace(recipe, hidden_dim=18, optimizer=name), 1),
                corpus,
                "dot",
                seed=0,
            )
        assert used == ["muon", "adamw"]
        with refusal("optimizer is 'sgd'; choose adamw or muon"):
            replace(recipe, optimizer="sgd")

    def test_loss_ignores_padding_and_counts_eos(self, recipe, corpus):
        """Summed over the batch, so that it equals the sum over sentences alone."""
        model = seq2seq.build(recipe, corpus, "dot", seed=0).double().eval()
        pairs = corpus.pairs["train"][:5]
        together, count = seq2seq.loss_sum(
            model, {k: v.to(device()) for k, v in collate(pairs).items()}
        )
        alone = [
            seq2seq.loss_sum(
                model, {k: v.to(device()) for k, v in collate([pair]).items()}
            )
            for pair in pairs
        ]
        assert count == sum(len(pair.target) + 1 for pair in pairs)
        assert_near(together, sum(loss for loss, _ in alone), 0, 1e-5)

    def test_with_and_without_attention_begin_with_the_same_weights(
        self, recipe, corpus
    ):
        first, second = (
            seq2seq.build(recipe, corpus, kind, seed=4).state_dict()
            for kind in ("dot", None)
        )
        assert all(torch.equal(first[name], second[name]) for name in first)
        other = seq2seq.build(recipe, corpus, "dot", seed=5).state_dict()
        assert not torch.equal(first["bridge.weight"], other["bridge.weight"])

    def test_translations_come_back_in_the_order_given(self, recipe, corpus):
        """`translate` sorts by length inside; each sentence alone must give the same
        words."""
        model, _ = seq2seq.fit(recipe, corpus, "dot", seed=0)
        pairs = corpus.pairs["test"]
        together = [h.tokens for h in scoring.translate(model, pairs, max_length=20)]
        state_of = lambda pair: model.start(
            torch.tensor([pair.source]), torch.tensor([len(pair.source)])
        )
        with torch.no_grad():
            alone = [
                greedy(model.step, state_of(pair), 1, BOS, EOS, 20)[0].tokens
                for pair in pairs
            ]
        assert together == alone
        assert len({tuple(tokens) for tokens in together}) > 1

    def test_nothing_is_dropped_while_a_model_translates(self, recipe, corpus):
        model = seq2seq.build(replace(recipe, dropout=0.5), corpus, "dot", seed=0)
        pairs = corpus.pairs["test"]
        at_rest = scoring.translate(model.eval(), pairs, max_length=20)
        assert scoring.translate(model.train(), pairs, max_length=20) == at_rest

    def test_attention_weights_cover_the_words_of_each_pair_and_nothing_else(
        self, recipe, corpus
    ):
        model = seq2seq.build(recipe, corpus, "additive", seed=0)
        for table, pair in zip(
            alignment.attention_weights(model, corpus.pairs["test"]),
            corpus.pairs["test"],
            strict=True,
        ):
            assert table.shape == (len(pair.target), len(pair.source))
            torch.testing.assert_close(table.sum(dim=1), torch.ones(len(pair.target)))

    def test_a_model_without_attention_has_no_weights_to_show(self, recipe, corpus):
        with refusal("no attention, so there are no weights"):
            alignment.attention_weights(
                seq2seq.build(recipe, corpus, None, seed=0), corpus.pairs["test"]
            )

    def test_alignment_scores_are_zero_for_weights_that_equal_gold(
        self, recipe, corpus, monkeypatch
    ):
        """And the shuffled control loses nearly all of it."""
        tables = []
        for pair, links in zip(
            corpus.pairs["test"], corpus.text["test"]["alignment"], strict=True
        ):
            first = {t: s for s, t in reversed(links)}
            table = torch.zeros(len(pair.target), len(pair.source))
            for t in range(len(pair.target)):
                table[t, first.get(t, 0)] = 1.0
            tables.append(table)
        monkeypatch.setattr(alignment, "attention_weights", lambda model, pairs: tables)
        scores = alignment.alignment_scores(
            seq2seq.build(recipe, corpus, "dot", seed=0), corpus, seed=0
        )
        one_link_each = sum(t.shape[0] for t in tables) / sum(
            len(a) for a in corpus.text["test"]["alignment"]
        )
        assert scores["model"] < 0.1 + abs(1 - one_link_each)
        assert scores["shuffled"] > 0.6
        assert scores["model"] < scores["diagonal"] < scores["shuffled"]

    def test_quality_by_length_puts_each_sentence_in_one_group(self, corpus):
        english, french = corpus.text["test"]["en"], corpus.text["test"]["fr"]
        rows = scoring.quality_by_length(french, french, english, edges=(6, 11, 16))
        assert sum(row["pairs"] for row in rows) == len(corpus.text["test"]["fr"])
        assert [row["exact_match"] for row in rows] == [1.0, 1.0, 1.0]
        lengths = [len(sentence.split()) for sentence in corpus.text["test"]["en"]]
        assert rows[0]["pairs"] == sum(length <= 6 for length in lengths)

    @whole_only
    @pytest.mark.slow
    def test_attention_learns_what_the_bottleneck_cannot(self):
        """Chapter 1 in small: sentences of up to 12 words, one seed, a few seconds."""
        training = TrainingConfig(
            steps=300,
            learning_rate=1e-2,
            warmup_steps=30,
            schedule="linear",
            progress=False,
        )
        recipe = seq2seq.Recipe(
            "translation",
            embedding_dim=48,
            hidden_dim=96,
            training=training,
            length_bins=(12,),
        )
        rows = generate(4200, seed=8, min_length=6, max_length=12)
        parts = {
            "train": rows[:4000],
            "validation": rows[4000:4050],
            "test": rows[4050:],
        }
        text = {
            s: {n: [row[n] for row in part] for n in ("en", "fr", "alignment")}
            for s, part in parts.items()
        }
        tokenizers = tuple(
            train_tokenizer(text["train"][side], "word") for side in ("en", "fr")
        )
        pairs = {
            s: encode_pairs(columns["en"], columns["fr"], tokenizers)
            for s, columns in text.items()
        }
        corpus = seq2seq.Corpus(text, pairs, tokenizers)
        attention, without = (
            seq2seq.train_and_score(recipe, corpus, kind, seed=0)
            for kind in ("dot", None)
        )
        assert attention.scores["bleu"] > without.scores["bleu"] + 20
        scores = alignment.alignment_scores(attention.model, corpus, seed=0)
        assert scores["model"] < 0.3 < scores["shuffled"]


class TestGradients:
    def test_the_gradient_norm_is_that_of_the_embedding(self, recipe, corpus):
        """Against a finite difference: move one source embedding, and see the
        log-probability move."""
        model = seq2seq.build(recipe, corpus, "dot", seed=0).double()
        pairs, target = corpus.pairs["test"][:3], torch.tensor([1, 0, 2])
        batch = {name: tensor.to(device()) for name, tensor in collate(pairs).items()}
        norms = gradients.source_gradients(model, batch, target.to(device()))
        rows = torch.arange(3)

        def log_prob(offset):
            hook = model.encoder.embedding.register_forward_hook(
                lambda m, i, output: output + offset
            )
            logits = model(
                batch["source_ids"], batch["source_lengths"], batch["target_ids"]
            )
            hook.remove()
            return logits.log_softmax(-1)[rows, target, batch["labels"][rows, target]][
                1
            ].item()

        step, partial = 1e-6, []
        for feature in range(recipe.embedding_dim):
            offset = torch.zeros(
                *batch["source_ids"].shape,
                recipe.embedding_dim,
                dtype=torch.float64,
                device=device(),
            )
            offset[1, 2, feature] = step
            partial.append((log_prob(offset) - log_prob(-offset)) / (2 * step))
        assert norms[1, 2].item() == pytest.approx(
            torch.tensor(partial).norm().item(), rel=1e-4
        )
        assert (norms[batch["source_ids"] == PAD] == 0).all()

    def test_an_untrained_model_shares_its_gradient_about_evenly(self, recipe, corpus):
        shares = gradients.aligned_share(
            seq2seq.build(recipe, corpus, "dot", seed=0), corpus, edges=(8, 16)
        )
        assert 1 / 16 < shares[1] < 0.45
        assert shares[1] < shares[0] < 0.6


class TestMeasures:
    def test_of_attention_everything_is_measured_beside_the_untrained_model_of_its_seed(
        self, recipe, corpus
    ):
        run = seq2seq.train_and_score(recipe, corpus, "dot", seed=3)
        found = translator_measures.of_translation(run, recipe, corpus)
        untrained = seq2seq.build(recipe, corpus, "dot", seed=3)
        edges = recipe.length_bins
        assert found["aligned_share"] == pytest.approx(
            gradients.aligned_share(run.model, corpus, edges, 3)
        )
        assert found["alignment"] == pytest.approx(
            alignment.alignment_scores(run.model, corpus, 3)
        )
        assert found["untrained"]["aligned_share"] == pytest.approx(
            gradients.aligned_share(untrained, corpus, edges, 3)
        )
        assert found["untrained"]["alignment"] == pytest.approx(
            alignment.alignment_scores(untrained, corpus, 3)
        )
        assert found["searches"].keys() == translator_measures.SEARCHES.keys()

    def test_without_attention_there_is_no_weight_to_align_and_no_search_to_compare(
        self, recipe, corpus
    ):
        run = seq2seq.train_and_score(recipe, corpus, None, seed=3)
        assert translator_measures.of_translation(run, recipe, corpus).keys() == {
            "aligned_share"
        }

    def test_a_search_is_scored_on_the_sentences_that_it_translated(
        self, recipe, corpus
    ):
        """A beam of 1 is greedy: what it finds are the run's own translations."""
        run = seq2seq.train_and_score(recipe, corpus, "dot", seed=0)
        greedy_found = translator_measures.search(
            run.model, corpus, recipe.max_length, seed=0, beam_size=1
        )
        assert corpus.decode(greedy_found) == run.texts
        figures = translator_measures.of_translation(run, recipe, corpus)["searches"][
            "greedy (beam 1)"
        ]
        assert figures["bleu"] == pytest.approx(run.scores["bleu"])
        assert figures["length"] == pytest.approx(
            sum(len(text.split()) for text in run.texts) / len(run.texts)
        )
        draws = [
            translator_measures.search(run.model, corpus, recipe.max_length, seed)
            for seed in (1, 1, 2)
        ]
        assert draws[0] == draws[1] != draws[2]


class TestRecords:
    def test_a_record_comes_back_as_it_was_saved(self, tmp_path, recipe):
        record = records.make(
            "small",
            ["course", "experiment", "seq2seq"],
            recipe,
            [{"seed": 1, "bleu": 3.5}],
        )
        records.save(record, tmp_path)
        loaded = records.load("small", tmp_path)
        assert loaded.results == [{"seed": 1, "bleu": 3.5}]
        assert loaded.seeds == [1]
        again = studies.STUDIES["translation"].recorded(loaded.configuration)
        assert seq2seq.Recipe(**again.shared) == replace(
            recipe, attentions=("dot", "none")
        )
        assert [path.name for path in tmp_path.iterdir()] == ["small.json"]

    def test_a_record_that_is_not_there_names_those_that_are(self, tmp_path, recipe):
        records.save(records.make("small", ["course"], recipe, []), tmp_path)
        with refusal(
            r"no recorded result 'big'.*recorded are: small", FileNotFoundError
        ):
            records.load("big", tmp_path)

    def test_a_damaged_record_is_refused_in_words(self, tmp_path):
        (tmp_path / "half.json").write_text('{"name": "half"')
        with refusal(r"half\.json is not a recorded result"):
            records.load("half", tmp_path)


class TestCommand:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                ("bert", "translation", None, ["dot"], [0]),
                "no experiment 'bert'; there is: seq2seq, transformer",
            ),
            (
                ("seq2seq", "sst2", None, ["dot"], [0]),
                "no study 'sst2'; it has: translation, multi30k",
            ),
            (
                ("seq2seq", "translation", None, ["cosine"], [0]),
                "has no variant 'cosine'",
            ),
            (("seq2seq", "multi30k", "nowhere", ["dot"], [0]), "nowhere"),
        ],
    )
    def test_what_cannot_run_is_refused_in_words(
        self, words, message, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(records, "RESULTS", tmp_path)
        monkeypatch.chdir(tmp_path)
        with refusal(message, ExperimentError):
            record_experiment(*words)

    def test_without_a_choice_it_runs_the_models_that_the_recipe_names(
        self, tmp_path, monkeypatch, corpus, recipe
    ):
        monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(seq2seq, "prepare", lambda recipe, source: corpus)
        named = replace(recipe, hidden_dim=18, attentions=("scaled",), optimizer="muon")
        asked = studies.study_of("translation", named)
        monkeypatch.setitem(studies.STUDIES, "translation", asked)
        monkeypatch.chdir(tmp_path)
        record_experiment("seq2seq", "translation", None, [], [3])
        record = records.load("seq2seq-translation", tmp_path / "results")
        assert [(run["attention"], run["seed"]) for run in record.results] == [
            ("scaled", 3)
        ]
        assert "alignment" in record.results[0], (
            "what chapter 1 measures besides the scores"
        )
        assert asked.recorded(record.configuration) == asked

    @pytest.mark.slow
    def test_runs_that_are_recorded_are_kept_and_the_others_added(
        self, tmp_path, monkeypatch, corpus, recipe
    ):
        monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(seq2seq, "prepare", lambda recipe, source: corpus)
        asked = studies.study_of("translation", recipe)
        monkeypatch.setitem(studies.STUDIES, "translation", asked)
        monkeypatch.chdir(tmp_path)
        record_experiment("seq2seq", "translation", None, ["dot"], [0])
        first = records.load("seq2seq-translation", tmp_path / "results").results
        record_experiment("seq2seq", "translation", None, ["dot", "none"], [0])
        second = records.load("seq2seq-translation", tmp_path / "results").results
        assert second[0] == first[0]
        assert [run["attention"] for run in second] == ["dot", None]
        other = studies.study_of("translation", replace(recipe, hidden_dim=14))
        monkeypatch.setitem(studies.STUDIES, "translation", other)
        with pytest.raises(ExperimentError, match="made with another configuration"):
            record_experiment("seq2seq", "translation", None, ["dot"], [0])


@whole_only
@pytest.mark.real_data
@pytest.mark.slow
def test_multi30k_trains_on_the_real_sentences(real_data, tmp_path, monkeypatch):
    """A few steps on the 29,000 real pairs: the loss falls from ln |V| by more than two
    nats."""
    recipe = seq2seq.RECIPES["multi30k"]
    training = replace(
        recipe.training,
        steps=30,
        warmup_steps=10,
        evaluate_every=None,
        patience=None,
        progress=False,
        precision="float32",  # many processors are slow in the recorded one
    )
    recipe = replace(
        recipe, training=training, test_size=20, beam_size=2, max_length=20
    )
    corpus = seq2seq.prepare(recipe, str(real_data))
    assert {split: len(pairs) for split, pairs in corpus.pairs.items()} == {
        "train": 29000,
        "validation": 1014,
        "test": 20,
    }
    run = seq2seq.train_and_score(recipe, corpus, "dot", seed=0)
    assert run.history.losses[0] == pytest.approx(8.29, abs=0.05)  # ln 4000
    assert run.history.losses[-1] < run.history.losses[0] - 2
