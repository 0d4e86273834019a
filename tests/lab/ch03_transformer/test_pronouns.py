"""The pronoun probe: what it measures is what it says, and its controls are blind."""

import re
from dataclasses import replace

import pytest
import torch
from cases import for_each
from expect import assert_near

from course_lab.ch01_seq2seq import seq2seq
from course_lab.ch01_seq2seq.text import collate, encode_pairs, train_tokenizer
from course_lab.ch03_transformer import pronouns
from course_lab.ch03_transformer.attention_views import attention_maps
from course_lab.ch03_transformer.pronoun_attention import (
    QUERIES,
    Rows,
    another_sentence,
    attention_rows,
    permuted_words,
    places,
    preference,
)
from course_lab.ch03_transformer.pronoun_cuts import CUTS, Cut, _masks, pronoun_accuracy
from course_lib.attention.weights import watch_attention
from course_lib.data.pronouns import generate
from course_lib.training.loop import History

TINY = replace(
    pronouns.RECIPE,
    transformer={
        "dim": 12,
        "num_heads": 3,
        "num_layers": 2,
        "hidden_dim": 20,
        "norm": "pre",
    },
)


@pytest.fixture(scope="module")
def corpus():
    """The first 90 sentences of each split."""
    text = {}
    for split in ("train", "validation", "test"):
        rows = generate(split)[:90]
        text[split] = {name: [row[name] for row in rows] for name in rows[0]}
    everything = [
        sentence
        for side in ("en", "fr")
        for sentence in (row[side] for row in generate("test"))
    ]
    tokenizers = (
        train_tokenizer(everything, "word"),
        train_tokenizer(everything, "word"),
    )
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return seq2seq.Corpus(text, pairs, tokenizers)


@pytest.fixture
def model(corpus):
    return seq2seq.build(TINY, corpus, "transformer", seed=4)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(6)


def made_rows(batch: int = 400, favoured: float = 0.5) -> Rows:
    """Sentences of 7 and of 9 words whose weights favour the antecedent; 2 layers, 3
    heads, no weight twice."""
    lengths = torch.tensor([7, 9]).repeat(batch // 2)
    scores = torch.rand(batch, 2, 3, 9, generator=generator())
    antecedent = torch.randint(0, 3, (batch,), generator=generator())
    scores[torch.arange(batch), :, :, antecedent] += favoured
    scores[
        torch.arange(9).expand(batch, 9)[:, None, None].expand(scores.shape)
        >= lengths[:, None, None, None]
    ] = 0
    return Rows(
        scores / scores.sum(-1, keepdim=True), lengths, antecedent, antecedent + 3
    )


# -- places and resolution
# --------------------------------------------------------------------------------------


def test_places_hold_the_words_they_are_named_for(corpus):
    where, text = places(corpus, "test"), corpus.text["test"]
    for row, (english, french) in enumerate(zip(text["en"], text["fr"], strict=True)):
        en, fr = english.split(), french.split()
        assert en[where.it[row]] == "it"
        assert where.adjective[row] == len(en) - 1
        assert fr[where.french_pronoun[row]] in ("il", "elle")
        assert where.french_adjective[row] == len(fr) - 1
        assert [en[place[row]] for place in where.of("negation")] == ["did", "not"]
        assert sorted(place[row].item() for place in where.of("nouns")) == sorted(
            (text["antecedent"][row], text["other_noun"][row])
        )


def test_a_pronoun_is_resolved_if_it_and_its_adjective_are_right():
    reference = "le chat n' a pas vu la rue parce qu' il était trop fier"
    texts = [
        reference,
        "le chien n' a pas vu la rue parce qu' il était trop fier",
        "le chat n' a pas vu la rue parce qu' elle était trop fier",
        "le chat n' a pas vu la rue parce qu' il était trop fière",
        "le chat n' a pas vu la rue",
    ]
    assert [pronouns.resolved([text], [reference]) for text in texts] == [1, 1, 0, 0, 0]
    assert pronouns.resolved(texts, [reference] * 5) == 0.4
    assert pronouns.resolved([""], ["le chat"]) == 0, (
        "two sentences without a pronoun do not agree on one"
    )


# -- weights and their controls
# --------------------------------------------------------------------------------------


def test_preference_counts_sentences_and_halves_ties():
    weights = torch.tensor(
        [[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2], [0.9, 0.0, 0.1]]
    )[:, None, None]
    rows = Rows(
        weights,
        torch.full((4,), 3),
        torch.tensor([0, 0, 1, 2]),
        torch.tensor([2, 1, 0, 0]),
    )
    assert rows.preference().tolist() == [[(1 + 0 + 0.5 + 0) / 4]]


def test_permuted_words_keep_each_sentence_s_weights_and_know_nothing():
    rows = made_rows(favoured=1.0)
    assert rows.preference().min() == 1
    blind = permuted_words(rows, generator())
    assert_near(blind.weights.sort(dim=-1).values, rows.weights.sort(dim=-1).values, 0)
    assert blind.weights[rows.lengths == 7][..., 7:].eq(0).all(), (
        "padding gets no weight"
    )
    assert (
        blind.preference() - 0.5
    ).abs().max() < 0.1  # 4 standard errors of 400 sentences
    layers = blind.weights.argmax(dim=-1)
    assert (layers[:, 0] == layers[:, 1]).all(), (
        "layers and heads of a sentence move together"
    )


def test_another_sentence_of_its_length_and_never_itself_gives_the_weights():
    rows = made_rows(favoured=1.0)
    swapped = another_sentence(rows, generator())
    assert not (swapped.weights == rows.weights).flatten(1).all(dim=1).any()
    for length in (7, 9):
        of_length = rows.lengths == length
        before, after = (
            table[of_length].flatten(1) for table in (rows.weights, swapped.weights)
        )
        assert sorted(map(tuple, before.tolist())) == sorted(map(tuple, after.tolist()))


def test_another_sentence_keeps_a_preference_for_places_and_loses_one_for_meaning():
    rows = made_rows(favoured=1.0)
    first = replace(
        rows,
        antecedent=torch.ones_like(rows.antecedent),
        other_noun=torch.zeros_like(rows.other_noun),
    )
    positional = torch.zeros_like(rows.weights)
    positional[..., 0], positional[..., 1] = 0.25, 0.75
    kept = another_sentence(replace(first, weights=positional), generator())
    assert kept.preference().min() == 1
    half = torch.arange(400) % 4 < 2
    meaning = replace(rows, antecedent=half.long(), other_noun=1 - half.long())
    told = torch.zeros_like(rows.weights)
    told[torch.arange(400), :, :, meaning.antecedent] = 1.0
    told = replace(meaning, weights=told)
    assert told.preference().min() == 1
    assert (another_sentence(told, generator()).preference() - 0.5).abs().max() < 0.1


def test_the_head_is_chosen_on_validation_and_reported_on_test():
    validation, test = made_rows(), made_rows()
    for rows, head in ((validation, (1, 0)), (test, (0, 2))):
        rows.weights[:] = 1 / 9
        rows.weights[torch.arange(400), head[0], head[1], rows.antecedent] = 0.5
    rows = torch.arange(100)
    test.weights[rows, 1, 0, test.antecedent[rows]] = 0.5
    assert preference(validation, test) == (100 + 300 / 2) / 400
    assert test.preference()[0, 2] == 1, "the best head of the test split has no say"


def test_rows_are_those_of_each_sentence_alone(model, corpus):
    found, where = attention_rows(model, corpus, "test"), places(corpus, "test")
    for row in (0, 7, 33):
        batch = collate([corpus.pairs["test"][row]])
        with torch.no_grad():
            maps = attention_maps(model, batch)
        for query, tables, place in (
            ("it", maps.encoder, where.it),
            ("adjective", maps.encoder, where.adjective),
            ("il or elle", maps.cross, where.french_pronoun),
            ("French adjective", maps.cross, where.french_adjective),
        ):
            expected = torch.stack([table[0, :, place[row]] for table in tables])
            length = found[query].lengths[row]
            assert_near(found[query].weights[row, :, :, :length], expected, 1e-6, 1e-5)
            assert found[query].weights[row, :, :, length:].eq(0).all()


def test_in_the_first_layer_it_cannot_know_which_noun_is_meant(model):
    """Its query is the word "it", whatever the adjective: a preference there would be a
    fault of the measure."""
    sentences = [
        f"the cat did not cross the street because it was too {last}"
        for last in ("tired", "wide")
    ]
    tokenizer = train_tokenizer(sentences, "word")
    ids = torch.tensor([encoding.ids for encoding in tokenizer.encode_batch(sentences)])
    with torch.no_grad(), watch_attention(model.encoder) as weights:
        model.encoder(ids)
    # street over cat: (B, H)
    nouns = [table[:, :, 8, 6] / table[:, :, 8, 1] for (table,) in weights.values()]
    assert_near(nouns[0][0], nouns[0][1], 1e-6, 1e-5)
    assert (nouns[1][0] - nouns[1][1]).abs().max() > 1e-4, "in the second it can"


# -- cuts
# --------------------------------------------------------------------------------------


def test_accuracy_with_nothing_cut_is_the_model_s_own(model, corpus):
    il, elle = (corpus.tokenizers[1].token_to_id(word) for word in ("il", "elle"))
    right = 0
    for pair in corpus.pairs["test"]:
        batch = collate([pair])
        with torch.no_grad():
            logits = model(
                batch["source_ids"], batch["source_lengths"], batch["target_ids"]
            )[0]
        place = next(t for t, word in enumerate(pair.target) if word in (il, elle))
        right += (logits[place, elle] > logits[place, il]).item() == (
            pair.target[place] == elle
        )
    assert 0 < right < 90
    assert pronoun_accuracy(model, corpus) == right / 90
    assert pronoun_accuracy(model, corpus, size=40) != pronoun_accuracy(
        model, corpus, size=41
    )


@for_each("name", CUTS)
def test_a_cut_takes_what_it_names_and_nothing_else(corpus, name):
    where, cut, text = places(corpus, "test"), CUTS[name], corpus.text["test"]
    chosen = [3, 0, 11]
    lengths = torch.tensor([len(corpus.pairs["test"][row].source) for row in chosen])
    whole_encoder, whole_memory = _masks(lengths, where, chosen, Cut())
    encoder, memory = _masks(lengths, where, chosen, cut)

    def members(sentence: int, group: str) -> set[int]:
        row, words = chosen[sentence], text["en"][chosen[sentence]].split()
        return {
            "nouns": {text["antecedent"][row], text["other_noun"][row]},
            "adjective": {len(words) - 1},
            "it": {words.index("it")},
            "negation": {words.index("did"), words.index("not")},
        }[group]

    lost = {tuple(place) for place in (whole_encoder & ~encoder).nonzero().tolist()}
    assert lost == {
        (sentence, query, key)
        for sentence in range(3)
        for who, whom in cut.edges
        for query in members(sentence, who)
        for key in members(sentence, whom)
    }
    hidden = {
        tuple(place) for place in (whole_memory & ~memory)[:, 0].nonzero().tolist()
    }
    assert hidden == {
        (sentence, key)
        for sentence in range(3)
        for name in cut.hidden
        for key in members(sentence, name)
    }
    assert not (encoder & ~whole_encoder).any()
    assert bool(lost or hidden) == (name != "nothing")
    assert whole_memory.sum(dim=-1).flatten().tolist() == lengths.tolist(), (
        "padding stays hidden"
    )


# -- the probe
# --------------------------------------------------------------------------------------


def trained(model, corpus, seed: int = 4) -> seq2seq.Trained:
    return seq2seq.Trained(
        "transformer",
        seed,
        model,
        History(),
        list(corpus.text["test"]["fr"]),
        {},
        [],
        0.0,
    )


def test_the_probe_of_an_untrained_model_finds_what_its_control_finds(model, corpus):
    result = pronouns.probe(trained(model, corpus), corpus, size=None)
    assert result.resolved == 1, "the texts are the references"
    assert list(result.shares) == [
        "trained",
        "permuted words",
        "another sentence",
        "untrained",
    ]
    for query in QUERIES:
        assert result.shares["trained"][query] == result.shares["untrained"][query]
    assert result.cuts["nothing"] == result.untrained


def test_the_probe_reports_of_each_source_and_each_cut_what_is_measured_alone(
    model, corpus
):
    """With a model that is no longer what its seed made it, and controls that choose
    their head as it does."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    result = pronouns.probe(trained(model, corpus), corpus, size=50)
    as_it_was = seq2seq.build(TINY, corpus, "transformer", seed=4)
    assert result.cuts == {
        name: pronoun_accuracy(model, corpus, cut, size=50)
        for name, cut in CUTS.items()
    }
    assert result.untrained == pronoun_accuracy(as_it_was, corpus, size=50)
    splits = {
        name: [attention_rows(each, corpus, s) for s in ("validation", "test")]
        for name, each in (("trained", model), ("untrained", as_it_was))
    }
    generator = torch.Generator().manual_seed(4)
    expected = {
        "trained": {
            query: preference(*(rows[query] for rows in splits["trained"]))
            for query in QUERIES
        },
        **{
            name: {
                query: preference(
                    *(change(rows[query], generator) for rows in splits["trained"])
                )
                for query in QUERIES
            }
            for name, change in (
                ("permuted words", permuted_words),
                ("another sentence", another_sentence),
            )
        },
        "untrained": {
            query: preference(*(rows[query] for rows in splits["untrained"]))
            for query in QUERIES
        },
    }
    assert result.shares == expected
    assert result.shares["trained"] != result.shares["untrained"]


def test_dropout_has_no_say(corpus):
    recipe = replace(TINY, transformer={**TINY.transformer, "dropout": 0.5})
    model = seq2seq.build(recipe, corpus, "transformer", seed=4)
    assert pronoun_accuracy(model.train(), corpus) == pronoun_accuracy(
        model.eval(), corpus
    )
    first, second = (
        attention_rows(model.train(), corpus, "test")["it"].weights for _ in range(2)
    )
    assert torch.equal(first, second)


def test_tables_show_each_figure_with_its_interval(model, corpus):
    probes = [pronouns.probe(trained(model, corpus), corpus, size=40)]
    probes.append(replace(probes[0], seed=5, cuts={**probes[0].cuts, "nothing": 0.25}))
    shares = pronouns.share_table(probes).splitlines()
    assert shares[0].count("|") == shares[2].count("|") == 6
    assert [line.split(" | ")[0].removeprefix("| ") for line in shares[2:]] == list(
        QUERIES
    )
    share = probes[0].shares["trained"]["it"]
    assert f"| it | {share:.3f} ± 0.000 |" in shares[2]
    cuts = pronouns.cut_table(probes).splitlines()
    assert cuts[0] == "| taken away | seed 4 | seed 5 |"
    assert re.fullmatch(r"\| nothing \| 0\.\d{3} \| 0\.250 \|", cuts[2])


def test_a_recurrent_model_has_no_such_weights(corpus):
    with pytest.raises(ValueError, match="this run trained a Seq2Seq"):
        pronouns.probe(
            trained(seq2seq.build(TINY, corpus, "dot", seed=4), corpus), corpus
        )
