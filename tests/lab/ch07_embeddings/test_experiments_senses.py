"""Chapter 7's experiments: pseudo-words and their uses, three models on the same
batches, layers on tags."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, List, Value
from expect import refusal

from course_lab.ch06_pretraining.pretrain_data import documents
from course_lab.ch07_embeddings import context_runs, layer_table, word_vectors
from course_lab.ch07_embeddings.context_models import (
    KINDS,
    RECIPE,
    build,
    hidden_states,
    train_one,
)
from course_lab.ch07_embeddings.pseudo_words import (
    Merged,
    PseudoWord,
    draw_pseudo_words,
    find_uses,
    merge,
    tokens_of,
)
from course_lab.ch07_embeddings.real_senses import (
    neighbour_averages,
    sense_scores,
    states_of_words,
)
from course_lab.ch07_embeddings.sense_stories import SenseStories
from course_lab.ch07_embeddings.senses import (
    neighbour_means,
    plane_of,
    read_off,
    separations,
    states_of_uses,
)
from course_lib.bert.model import BertConfig, BertModel
from course_lib.data.stories import generate
from course_lib.embeddings.contextual import encode_words
from course_lib.embeddings.skip_gram import SkipGramConfig
from course_lib.pretraining.sequences import Specials
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.training import SPECIAL_TOKENS, count_words, train_wordpiece

SPECIALS = Specials(0, 2, 3)
# Two documents of three and two sentences; words 10 and 11 become one.
TEXT = Merged(
    np.array([10, 5, 6, 7, 11, 8, 9, 5, 10, 6, 20, 21, 11, 22, 10]),
    np.array([0, 4, 7, 10, 12, 15]),
    np.array([0, 3, 5]),
)
PAIR = PseudoWord(10, 11)


class TestPseudoWords:
    def test_only_the_second_word_of_a_pair_changes_and_the_corpus_does_not(self):
        merged = merge(TEXT, [PAIR, PseudoWord(6, 22)])
        assert merged.ids.tolist() == [
            10,
            5,
            6,
            7,
            10,
            8,
            9,
            5,
            10,
            6,
            20,
            21,
            10,
            6,
            10,
        ]
        assert TEXT.ids[4] == 11

    def test_a_use_stands_at_its_place_in_whole_sentences_with_its_sense(self):
        uses = find_uses(TEXT, [PAIR], SPECIALS, width=10, per_sense=9, seed=0)
        assert uses.senses.tolist() == [0] * 3 + [1] * 2
        assert (uses.input_ids[torch.arange(5), uses.places] == 10).all(), (
            "written as the first word, always"
        )
        rows = {tuple(row[row != 0].tolist()) for row in uses.input_ids}
        first, second = [10, 5, 6, 7, 10, 8, 9, 5, 10, 6], [20, 21, 10, 6, 10]
        assert (
            rows
            <= {
                (2, *first[0:8], 3),  # from the beginning, eight tokens of room
                # the second 10 is eight from the beginning: its sentence begins
                (2, *first[4:10], 3),
                (2, 20, 21, 10, 22, 10, 3),
            }
        )
        assert len(rows) == 3
        assert (
            uses.attention_mask.sum(dim=1) == (uses.input_ids != 0).sum(dim=1)
        ).all()
        assert first[8] == second[2] == 10

    def test_only_uses_before_some_tokens_are_found_if_asked(self):
        uses = find_uses(TEXT, [PAIR], SPECIALS, 10, 9, 0, before=[6, 22])
        assert uses.senses.tolist() == [0, 1]
        following = uses.input_ids[torch.arange(2), uses.places + 1].tolist()
        assert following == [6, 22]

    def test_a_word_at_the_end_of_the_corpus_stands_before_nothing(self):
        assert (
            len(
                find_uses(
                    TEXT, [PseudoWord(10, 20)], SPECIALS, 10, 9, 0, before=[10, 21]
                ).senses
            )
            == 1
        )

    def test_pairs_are_of_two_classes_and_of_neighbouring_frequency(self):
        words = [f"w{number}" for number in range(12)]
        vocab = {word: number for number, word in enumerate(words)}
        classes = {
            word: "odd" if number % 2 else "even" for number, word in enumerate(words)
        }
        text = Merged(
            np.repeat(np.arange(12), np.arange(20, 8, -1)),
            np.array([0, 174]),
            np.array([0, 1]),
        )
        for seed in range(5):
            pairs = draw_pseudo_words(text, vocab, classes, 4, seed, least=10)
            used = [word for pair in pairs for word in pair]
            assert len(set(used)) == 8
            assert max(used) <= 10, "w11 is too rare"
            assert all(sum(pair) % 2 for pair in pairs)
        assert draw_pseudo_words(text, vocab, classes, 4, 1, 10) != draw_pseudo_words(
            text, vocab, classes, 4, 2, 10
        )
        with refusal(r"enough for \d pairs of two classes and not for 7"):
            draw_pseudo_words(text, vocab, classes, 7, 0, least=10)


@pytest.fixture(scope="module")
def told():
    rows = generate("train", 60)
    texts = [paragraph for row in rows for paragraph in row["paragraphs"]]
    tokenizer = FastWordPiece(
        train_wordpiece(count_words(texts), vocab_size=600, score="frequency").vocab
    )
    return tokenizer, tokens_of(documents(rows), tokenizer)


class TestModels:
    recipe = replace(
        RECIPE,
        training=replace(RECIPE.training, steps=25, warmup_steps=5, learning_rate=0.03),
        hidden_size=16,
        batch_size=8,
    )

    def test_tokens_are_those_of_the_tokenizer_sentence_by_sentence(self, told):
        tokenizer, tokens = told
        first = next(documents(generate("train", 1)))
        ids = [
            tokenizer.encode(sentence, add_special_tokens=False).ids
            for sentence in first
        ]
        assert tokens.ids[: tokens.sentence_starts[len(ids)]].tolist() == [
            index for sentence in ids for index in sentence
        ]
        assert tokens.document_starts[1] == len(ids)
        assert len(tokens.document_starts) == 61

    @pytest.mark.parametrize("kind", KINDS)
    def test_each_model_learns_and_the_same_seed_gives_the_same_model(self, told, kind):
        tokenizer, tokens = told
        one, two = (
            train_one(kind, self.recipe, tokens, tokenizer.vocab) for _ in range(2)
        )
        assert np.mean(one.history.losses[-5:]) < np.mean(one.history.losses[:5]) - 0.2
        assert one.history.losses == two.history.losses
        fresh = build(kind, self.recipe, len(tokenizer))
        assert any(
            not torch.equal(a, b)
            for a, b in zip(fresh.parameters(), one.model.parameters(), strict=True)
        )

    def test_states_have_embeddings_first_and_the_width_of_each_model(self, told):
        tokenizer, _ = told
        ids = torch.tensor([[2, 9, 8, 3]])
        for kind, width in (("ELMo", 32), ("GPT", 16), ("BERT", 16)):
            states = hidden_states(
                build(kind, self.recipe, len(tokenizer)).eval(), ids, ids > 0
            )
            assert [tuple(state.shape) for state in states] == [(1, 4, width)] * 3

    def test_an_unknown_kind_is_refused(self):
        with refusal("there is no model 'T5'; choose one of ELMo, GPT, BERT"):
            build("T5", self.recipe, 9)

    def test_a_shortened_recipe_warms_up_for_the_same_share_and_keeps_the_rest(self):
        short = RECIPE.shortened(90)
        assert (short.training.steps, short.training.warmup_steps) == (90, 10)
        assert short.shortened(900) == RECIPE

    @pytest.mark.parametrize(("kind", "parts"), [("ELMo", 3), ("GPT", 1), ("BERT", 1)])
    def test_a_run_is_measured_before_and_after_and_static_vectors_tell_nothing(
        self, told, kind, parts
    ):
        tokenizer, tokens = told
        frequent = np.bincount(tokens.ids).argsort()[::-1].tolist()
        pairs = [PseudoWord(*frequent[4:6]), PseudoWord(*frequent[6:8])]
        uses = find_uses(
            tokens,
            pairs,
            Specials.of(tokenizer.vocab),
            self.recipe.max_length,
            per_sense=12,
            seed=0,
        )
        data = SenseStories(merge(tokens, pairs), {}, {"kind": uses, "number": uses})
        found = context_runs.run(kind, self.recipe, data, tokenizer.vocab)
        assert len(found["losses"]) == 2
        assert found["losses"][1] < found["losses"][0] - 0.2
        for state in ("untrained", "trained"):
            assert np.shape(found[state]["separation"]) == (3, 2)
            assert np.shape(list(found[state]["number"].values())) == (parts, 3, 2)
            assert np.shape(found[state]["plane"]) == (24, 2)
            if kind == "ELMo":  # the others' embeddings hold the position
                assert found[state]["separation"][0] == [0.5, 0.5]
        assert found["untrained"] != found["trained"]


class TestSenses:
    uses = find_uses(TEXT, [PAIR], SPECIALS, 10, 9, 0)

    def test_a_mean_of_neighbours_leaves_the_word_and_padding_out(self):
        matrix = torch.arange(30.0)[:, None] ** 2
        means = neighbour_means(matrix, self.uses, window=2)
        for row, place in enumerate(self.uses.places.tolist()):
            ids = self.uses.input_ids[row]
            near = [
                ids[p] for p in range(10) if 0 < abs(p - place) <= 2 and ids[p] != 0
            ]
            assert means[row].item() == pytest.approx(
                np.mean([matrix[i].item() for i in near])
            )

    def test_states_are_read_at_the_word(self):
        model = BertModel(BertConfig.tiny(vocab_size=30)).eval()
        states = states_of_uses(model, self.uses)
        with torch.no_grad():
            full = model(
                self.uses.input_ids, self.uses.attention_mask, return_hidden_states=True
            ).hidden_states
        for layer in range(3):
            for row, place in enumerate(self.uses.places.tolist()):
                assert torch.equal(states[layer][row], full[layer][row, place])

    def test_scores_are_per_word_and_a_probe_is_tested_on_a_word_that_it_has_not_seen(
        self,
    ):
        """Four words; feature 0 tells the sense in all, feature 1 only within each
        word."""
        words = torch.arange(4).repeat_interleave(20)
        senses = torch.arange(2).repeat(40)
        uses = self.uses._replace(words=words, senses=senses)
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(80, 2, generator=generator) * 0.1
        shared = torch.stack([senses - 0.5, torch.zeros(80)], dim=1) + noise
        own = (
            torch.stack(
                [(senses - 0.5) * (1 - 2 * (words % 2)), torch.zeros(80)], dim=1
            )
            + noise
        )
        assert min(read_off(shared, uses)) == 1.0
        assert max(read_off(own, uses)) < 0.7, (
            "what tells the sense in one word tells the opposite in the next"
        )
        assert min(separations(shared, uses)) > 0.95
        assert min(separations(own, uses)) > 0.95

    def test_who_always_names_the_more_frequent_sense_is_at_chance(self):
        words = torch.arange(3).repeat_interleave(20)
        senses = (torch.arange(60) % 10 == 0).long()  # nine of ten uses are of sense 0
        uses = self.uses._replace(words=words, senses=senses)
        assert read_off(torch.zeros(60, 2), uses) == [0.5] * 3

    def test_a_plane_shows_the_two_directions_of_the_largest_variance(self):
        generator = torch.Generator().manual_seed(1)
        points = (
            torch.randn(50, 3, generator=generator) * torch.tensor([0.01, 5.0, 1.0]) + 7
        )
        plane = plane_of(points)
        expected = (points - points.mean(dim=0)).double().numpy()[:, [1, 2]]
        for axis in (0, 1):
            assert abs(np.corrcoef(plane[:, axis], expected[:, axis])[0, 1]) > 0.999


class TestWordVectors:
    def test_words_that_share_neighbours_come_out_near(self):
        """Two families of words that never meet; within a family all contexts are
        alike."""
        random = np.random.default_rng(0)
        families = [["cat", "dog", "eats", "sleeps"], ["sum", "mean", "axis", "array"]]
        text = [list(random.choice(families[number % 2], 4)) for number in range(1500)]
        config = SkipGramConfig(
            dim=8, window=3, min_count=1, subsample=1.0, batch_size=256
        )
        vectors, history = word_vectors.skip_gram(text, config, steps=150)
        assert np.mean(history.losses[-9:]) < history.losses[0] - 0.5
        for family in families:
            for word in family:
                assert {other for other, _ in vectors.nearest(word, 3)} == set(
                    family
                ) - {word}

    def test_without_steps_vectors_are_those_before_training(self):
        text = [["a", "b"]] * 6
        vectors, history = word_vectors.skip_gram(
            text, SkipGramConfig(dim=4, min_count=1), steps=0
        )
        assert history.steps == []
        assert vectors.matrix.abs().max() <= 0.5 / 4

    def test_vectors_are_arranged_by_id(self):
        vectors, _ = word_vectors.skip_gram(
            [["a", "b"]] * 6, SkipGramConfig(dim=4, min_count=1), steps=0
        )
        matrix = word_vectors.token_vectors(vectors, ["[PAD]", "b", "a"])
        assert matrix[0].tolist() == [0] * 4
        assert torch.equal(matrix[1:], torch.stack([vectors["b"], vectors["a"]]))


class TestLayers:
    pieces = (*SPECIAL_TOKENS, *(f"n{number}" for number in range(10)), "the", "##x")
    sentences = tuple(
        [f"n{(7 * row + place) % 10}" for place in range(2 + row % 5)]
        for row in range(40)
    )

    def model(self, layers: int) -> BertModel:
        torch.manual_seed(0)
        return BertModel(
            BertConfig.tiny(vocab_size=len(self.pieces), num_hidden_layers=layers)
        ).eval()

    def test_words_are_read_in_the_order_given_as_each_sentence_alone_gives_them(self):
        model, tokenizer = self.model(2), FastWordPiece(self.pieces)
        sentences = [["n1", "n2x", "the"], ["n3"], ["the", "n4", "n5", "n6"]]
        read = layer_table.read_words(model, tokenizer, sentences, 96, batch=2)
        assert read.lengths == [3, 1, 4]
        row = 0
        for words in sentences:
            encoded = encode_words(tokenizer, words)
            with torch.no_grad():
                alone = model(
                    torch.tensor([encoded.ids]), return_hidden_states=True
                ).hidden_states
            for number in range(len(words)):
                first = encoded.word_ids.index(number)
                for layer in range(3):
                    torch.testing.assert_close(
                        read.layers[layer][0, row], alone[layer][0, first]
                    )
                row += 1

    def test_a_tag_that_is_in_the_word_is_learnt_from_every_selection_and_chance_is_not(
        self,
    ):
        """A name is a word with an even number: all selections of an untrained model
        hold which word it is."""
        tags = [
            ["B-EVEN" if int(word[1:]) % 2 == 0 else "O" for word in words]
            for words in self.sentences
        ]
        model, tokenizer = self.model(4), FastWordPiece(self.pieces)
        read = layer_table.read_words(model, tokenizer, self.sentences[:30], 96)
        held = layer_table.read_words(model, tokenizer, self.sentences[30:], 96)
        scores = layer_table.tag_scores(read, tags[:30], held, tags[30:], mix=True)
        assert set(scores) == set(layer_table.NAMES)
        assert min(score.f1 for score in scores.values()) == 1.0

    def test_words_beyond_the_cut_count_as_missed_and_small_models_have_no_last_four(
        self,
    ):
        tags = [["B-N"] * len(words) for words in self.sentences]
        tags[0][0] = "O"
        model, tokenizer = self.model(2), FastWordPiece(self.pieces)
        read = layer_table.read_words(model, tokenizer, self.sentences, 96)
        # [CLS] n1 n2 [SEP]
        held = layer_table.read_words(model, tokenizer, [["n1", "n2", "n3", "n4"]], 4)
        scores = layer_table.tag_scores(read, tags, held, [["B-N"] * 4])
        assert set(scores) == {"first", "last", "second_to_last", "sum"}
        assert scores["last"].recall == 0.5

    def test_selections_are_compared_with_the_last_layer_draw_by_draw(self):
        """What all layers find hard in a draw does not blur the difference; a selection
        that one task lacks has no row."""
        draws = [{"last": x, "first": x - 0.1, "sum": x + 0.05} for x in (0.2, 0.4)]
        other = [{"last": 0.5, "first": x} for x in (0.4, 0.6)]
        rows = layer_table.lead_rows({"one": draws, "two": other}).splitlines()
        assert rows[0] == "| minus the last layer | one | two |"
        minus = "\N{MINUS SIGN}"
        assert rows[2:] == [
            f"| first (embeddings) | **{minus}10.0 ± 0.0** | +0.0 ± 127.1 |"
        ]

    def test_a_split_is_read_with_the_names_of_its_tags(self):
        features = Features(
            {
                "tokens": List(Value("string")),
                "ner_tags": List(ClassLabel(names=["O", "B-X"])),
            }
        )
        rows = Dataset.from_dict(
            {"tokens": [["a", "b"]], "ner_tags": [[0, 1]]}, features=features
        )
        assert layer_table.tagged(rows) == ([["a", "b"]], [["O", "B-X"]])


class TestRealWords:
    pieces = (*SPECIAL_TOKENS, "the", "bank", "##s", "of", "river", "money", ".")

    def rows(self):
        texts = [
            "The river banks.",
            "Bank of money.",
            "The bank of the river.",
            "money. Banks",
        ]
        found = [(text, text.lower().index("bank")) for text in texts]
        return [
            {
                "word": "bank",
                "sense": sense,
                "text": text,
                "start": start,
                "end": start + 4 + text[start + 4 :].startswith("s"),
            }
            for (text, start), sense in zip(
                found, ["river", "money", "river", "money"], strict=True
            )
        ]

    def test_the_vector_is_the_mean_of_the_pieces_between_the_marks(self):
        torch.manual_seed(0)
        model = BertModel(BertConfig.tiny(vocab_size=len(self.pieces))).eval()
        tokenizer = FastWordPiece(self.pieces)
        layers = states_of_words(model, tokenizer, self.rows(), batch=3)
        # [CLS] the river bank ##s; [CLS] bank; [CLS] the bank; [CLS] money . bank ##s
        places = [[3, 4], [1], [2], [3, 4]]
        for number, (row, own) in enumerate(zip(self.rows(), places, strict=True)):
            ids = torch.tensor([tokenizer.encode(row["text"]).ids])
            with torch.no_grad():
                alone = model(ids, return_hidden_states=True).hidden_states
            for layer in range(3):
                torch.testing.assert_close(
                    layers[layer][number], alone[layer][0, own].mean(dim=0)
                )

    def test_each_word_is_scored_on_its_own_uses(self):
        torch.manual_seed(0)
        model = BertModel(BertConfig.tiny(vocab_size=len(self.pieces))).eval()
        rows = self.rows() + [{**row, "word": "other"} for row in self.rows()[::-1]]
        scores = sense_scores(model, FastWordPiece(self.pieces), rows)
        assert [len(layer) for layer in scores] == [2, 2, 2]
        for one, two in scores:
            assert one == pytest.approx(two, abs=1e-6), "the same uses in another order"

    def test_an_average_of_neighbours_leaves_the_word_itself_out(self):
        model = BertModel(BertConfig.tiny(vocab_size=len(self.pieces))).eval()
        row = {"word": "bank", "sense": "x", "text": "the bank", "start": 4, "end": 8}
        found = neighbour_averages(model, FastWordPiece(self.pieces), [row])
        the = model.embeddings.token.weight[FastWordPiece(self.pieces).vocab["the"]]
        torch.testing.assert_close(found[0], the.detach())

    def test_marks_beside_every_piece_are_refused(self):
        model = BertModel(BertConfig.tiny(vocab_size=len(self.pieces))).eval()
        row = {"word": "bank", "sense": "x", "text": "the bank", "start": 3, "end": 4}
        with refusal("no piece of 'the bank' lies between 3 and 4"):
            states_of_words(model, FastWordPiece(self.pieces), [row])
