"""Chapter 9's experiments: BM25 and ranks by hand, controls that find nothing, runs
recorded once."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from datasets import Dataset
from expect import refusal
from sentence_peer import SENTENCES, TOKENIZER, encoder, lively_bert

from course_lab import records, study
from course_lab.ch09_sentence_bert import sentence_page, sentence_runs, sentences
from course_lab.ch09_sentence_bert.bm25 import K1, B, Bm25
from course_lab.ch09_sentence_bert.common_part import generated_pairs
from course_lab.ch09_sentence_bert.sentence_cost import (
    KINDS,
    Cost,
    both_sides,
    measure_cost,
    number_of_pairs,
)
from course_lab.ch09_sentence_bert.sentence_encoders import (
    StaticSentences,
    mean_cosine,
    read_encoder,
    remembered,
    static_from,
)
from course_lab.ch09_sentence_bert.sentences import (
    Paragraphs,
    Search,
    among_paragraphs,
    cluster_agreement,
    measure,
    ranks,
    rerank,
    search_scores,
    true_pairs,
)
from course_lab.records import Record
from course_lib.figures.bars import score_bars
from course_lib.finetuning.finetune import SequenceClassifier
from course_tools.record_command import ExperimentError, record_experiment

# -- encoders
# --------------------------------------------------------------------------------------


def test_static_vectors_are_averaged_over_pieces_whatever_their_order():
    """[CLS] and [SEP] are in every sentence, and are left out; a sentence without a
    piece has zeros."""
    matrix = torch.randn(len(TOKENIZER), 6)
    found = StaticSentences(matrix, TOKENIZER).encode(
        ["good film", "film good", "a", ""]
    )
    pieces = [TOKENIZER.vocab[word] for word in ("good", "film", "a")]
    torch.testing.assert_close(found[0], matrix[pieces[:2]].mean(dim=0))
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[2], matrix[pieces[2]])
    assert found[3].tolist() == [0] * 6


def test_static_vectors_of_a_bert_are_those_by_which_tokens_enter_it():
    bert = lively_bert(3)
    found = static_from(bert, TOKENIZER).encode(["bad"])
    assert torch.equal(found[0], bert.embeddings.token.weight[TOKENIZER.vocab["bad"]])
    assert not found.requires_grad


def test_the_mean_cosine_is_that_of_all_pairs():
    torch.manual_seed(5)
    vectors = torch.randn(9, 4) + 0.7
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    expected = [float(unit[i] @ unit[j]) for i in range(9) for j in range(9) if i != j]
    assert mean_cosine(vectors) == pytest.approx(np.mean(expected))
    assert mean_cosine(torch.randn(500, 64)) == pytest.approx(0, abs=0.01)
    with refusal("1 vector makes no pair"):
        mean_cosine(vectors[:1])


def test_a_remembered_encoder_reads_no_sentence_twice():
    read = []

    def encode(texts):
        read.extend(texts)
        return torch.tensor([[float(len(text))] for text in texts])

    look = remembered(encode)
    assert look(["a", "bbb", "a"]).tolist() == [[1], [3], [1]]
    assert look(["bbb", "cc"]).tolist() == [[3], [2]]
    assert read == ["a", "bbb", "cc"]


@pytest.fixture
def checkpoint(tmp_path):
    encoder().save_pretrained(tmp_path / "lively")
    return tmp_path / "lively"


def test_an_untrained_control_has_the_same_sizes_and_other_weights(checkpoint):
    real, control, again = (
        read_encoder(checkpoint, untrained=seed) for seed in (None, 1, 1)
    )
    assert real.bert.config == control.bert.config
    found = [model.encode(SENTENCES) for model in (real, control, again)]
    assert torch.equal(found[1], found[2])
    assert not torch.allclose(found[0], found[1], atol=1e-2)


# -- search
# --------------------------------------------------------------------------------------


def test_bm25_is_its_formula():
    """Robertson and Zaragoza 2009, section 3.4: by hand for one word in two of three
    documents."""
    documents = [
        "sort a list",
        "sort, sort a very long list of names",
        "close the file",
    ]
    found = Bm25(documents).scores(["Sort!", "nothing known"])
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    average = (3 + 8 + 3) / 3
    expected = [
        idf * f * (K1 + 1) / (f + K1 * (1 - B + B * length / average))
        for f, length in ((1, 3), (2, 8))
    ]
    assert found[0].tolist() == pytest.approx([*expected, 0])
    assert found[1].tolist() == [0, 0, 0]


def test_the_place_of_the_right_document_is_counted_from_one_and_ties_are_shared():
    scores = torch.tensor(
        [[0.3, 0.9, 0.5, 0.1], [0.7, 0.7, 0.7, 0.2], [0.0, 0.0, 0.0, 0.0]]
    )
    places = ranks(scores, [0, 1, 3])
    assert places.tolist() == [3, 2, 2.5]
    assert measure(places).mrr == pytest.approx((1 / 3 + 1 / 2 + 1 / 2.5) / 3, abs=1e-4)
    assert measure(torch.tensor([1.0, 10.0, 11.0, 40.0])) == (0.304, 0.25, 0.5)


def test_scores_are_cosines_so_lengths_do_not_matter():
    def encode(texts):
        return torch.tensor([[float(text), 1.0] for text in texts])

    found = search_scores(encode, Search(["2"], ["2", "0"], [0]))
    assert found[0].tolist() == pytest.approx([1.0, 1 / math.sqrt(5)])


def test_only_pairs_that_belong_together_are_trained_on():
    rows = Dataset.from_dict(
        {"sentence1": ["a", "b"], "sentence2": ["x", "y"], "label": [0, 1]}
    )
    assert true_pairs(rows) == [("b", "y")]


def test_a_cross_encoder_reorders_the_best_and_leaves_the_others_behind(monkeypatch):
    read = []

    def predict(model, tokenizer, pairs, max_length):
        read.extend(pairs)
        chances = {"w": 0.1, "x": 0.3, "y": 0.9, "z": 1.0}
        return [
            type("Guess", (), {"probabilities": (1 - chances[d], chances[d])})
            for _, d in pairs
        ]

    monkeypatch.setattr(sentences, "predict", predict)
    search = Search(["q"], ["w", "x", "y", "z"], [2])
    cross = SequenceClassifier(lively_bert(1).config, labels=2)
    found = rerank(
        torch.tensor([[5.0, 1.0, 4.0, 2.0]]), cross, TOKENIZER, search, most=2
    )
    assert read == [("q", "w"), ("q", "y")], (
        "z is no candidate, however sure the second stage would be of it"
    )
    assert found.argsort(dim=1, descending=True).tolist() == [[2, 0, 3, 1]]


def test_answers_are_hidden_among_paragraphs_of_which_none_holds_a_query_or_an_answer():
    search = Search(["Sort it.", "Close it."], ["by size", "wrong", "for good"], [0, 2])
    texts = ["one", "Sort it. And more", "two", "ordered by size", "three", "four"]
    large = among_paragraphs(search, Paragraphs(texts, ["p"] * 6))
    assert large.documents == ["by size", "for good", "one", "two", "three", "four"]
    assert [large.documents[index] for index in large.right] == ["by size", "for good"]


def test_clusters_agree_with_libraries_that_are_apart_and_not_with_shuffled_ones():
    torch.manual_seed(2)
    centres = 5 * torch.eye(7)[:3]
    packages = [name for name in "abc" for _ in range(40)]
    vectors = centres.repeat_interleave(40, dim=0) + 0.2 * torch.randn(120, 7)
    found, shuffled = cluster_agreement(vectors, packages, clusters=3)
    assert found == pytest.approx(1)
    assert abs(shuffled) < 0.05


# -- cost
# --------------------------------------------------------------------------------------


def test_the_cost_of_all_pairs_is_extrapolated_and_that_of_all_sentences_too():
    """10,000 sentences are 49,995,000 pairs: Reimers and Gurevych 2019, section 1."""
    assert number_of_pairs(10_000) == 49_995_000
    cost = Cost(
        pair=[0.002, 0.004, 0.003],
        sentence=[0.001, 0.001, 0.002],
        search=[0.0, 10.0, 10.0],
    )
    assert cost.bi.tolist() == pytest.approx([10, 20, 30])
    assert cost.ratio == pytest.approx((9999, 4999.5, 9999))


def test_cross_encoders_and_their_bi_encoders_read_the_same_either_way(checkpoint):
    """Scores of ours are equal, since only [CLS] is read; those of the library have a
    head of their own."""
    pairs = [(SENTENCES[0], SENTENCES[1]), (SENTENCES[3], SENTENCES[2])]
    first, every, library = (
        both_sides(checkpoint, kind, max_length=9) for kind in KINDS
    )
    assert every.read_pairs(pairs) == pytest.approx(first.read_pairs(pairs), abs=1e-5)
    assert len(library.read_pairs(pairs)) == 2
    vectors = first.read_alone(SENTENCES[:3])
    assert torch.allclose(
        torch.from_numpy(library.read_alone(SENTENCES[:3])), vectors, atol=1e-5
    )


def test_costs_by_length_are_shown_beside_what_tokens_alone_say():
    """Of 10 sentences of 4 tokens a pair has 7: 9 x 7 / 8 times as many tokens
    in all."""
    told = {
        "what": "length",
        "low": 6.0,
        "high": 11.0,
        "ratios": [6.0, 9.0, 11.0],
        "ratio": 9.0,
    }
    rows = [
        {**told, "mode": "mini", "peer": kind, "length": length}
        for kind in KINDS
        for length in (8, 4)
    ]
    rows[0]["ratio"] = 10.0
    record = Record(
        "benchmark",
        "",
        {},
        [],
        [*rows, {"what": "pairs", "ratio": 3.0}],
        "0" * 40,
        {},
        "2026-01-01",
    )
    assert sentence_page.lengths_of(record) == [4, 8]
    assert sentence_page.cost_runs(record, "mini")[
        "last layer for every token"
    ].tolist() == [[6, 6], [9, 9], [11, 11]]
    lines = sentence_page.cost_table(record, sentences=10).splitlines()
    assert lines[2] == "| mini | last layer for [CLS] | 9 (6 to 11) | 10 (6 to 11) |"
    assert lines[-1] == "| *tokens alone* |  | 8 | 8 |"
    assert (
        sentence_page.reaching(record, 10.0) == "mini, last layer for [CLS]: 8 tokens"
    )
    assert sentence_page.reaching(record, 12.0) == "nowhere"


def test_both_sides_are_timed_in_every_round_on_one_thread(checkpoint, monkeypatch):
    monkeypatch.setattr("course_lab.ch09_sentence_bert.sentence_cost.NUMBER", 50)
    threads = torch.get_num_threads()
    cost = measure_cost(
        checkpoint, SENTENCES, sentences=5, pairs=3, rounds=2, max_length=9
    )
    assert [len(times) for times in cost] == [2, 2, 2]
    assert min(map(min, cost)) > 0
    assert torch.get_num_threads() == threads


# -- recorded runs
# --------------------------------------------------------------------------------------

FLAT = sentence_runs.study_of(
    "nli",
    study.shortened(
        {
            "static": sentence_runs.SentenceVariant("static"),
            "pairs": sentence_runs.SentenceVariant(
                "raw",
                stages=(sentence_runs.Stage("pairs"), sentence_runs.Stage("scores")),
            ),
            "classes": sentence_runs.SentenceVariant(
                "raw", stages=(sentence_runs.Stage("classes"),)
            ),
            "published": sentence_runs.SentenceVariant("published"),
        },
        2,
    ),
    max_length=12,
    probes=("TREC", "MRPC"),
    probe_rows=11,
)
NLI = {
    "premise": [SENTENCES[0], SENTENCES[0], SENTENCES[3], SENTENCES[6]],
    "hypothesis": ["a film", "bad", "good", "who was good?"],
    "label": [0, 2, 0, 1],
}
PAIRS = {
    "sentence1": SENTENCES[:6],
    "sentence2": SENTENCES[1:],
    "label": [0.0, 1.0, 2.5, 3.0, 4.0, 5.0],
}
QUESTIONS = {"text": SENTENCES, "coarse_label": [0, 1, 0, 1, 0, 1, 2]}
TABLES = {
    "snli": {"train": NLI, "validation": NLI, "test": NLI},
    "mnli": {"train": NLI, "validation": NLI},
    "stsb": dict.fromkeys(("train", "validation", "test"), PAIRS),
    "mrpc": dict.fromkeys(
        ("train", "validation", "test"), PAIRS | {"label": [0, 1, 0, 1, 0, 1]}
    ),
    "trec": dict.fromkeys(("train", "test"), QUESTIONS),
}


@pytest.fixture
def source(tmp_path, monkeypatch):
    for name, splits in TABLES.items():
        (tmp_path / "data" / name).mkdir(parents=True)
        for split, rows in splits.items():
            Dataset.from_dict(rows).to_parquet(
                str(tmp_path / "data" / name / f"{split}.parquet")
            )
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    monkeypatch.setitem(sentence_runs.PLANS, "nli", FLAT)
    return str(tmp_path / "data")


def test_an_encoder_is_judged_after_each_stage_recorded_once_and_not_run_again(
    source, checkpoint, monkeypatch
):
    path = record_experiment(
        "sentences",
        "nli",
        source,
        ["static", "pairs", "classes"],
        [0],
        None,
        str(checkpoint),
    )
    record = records.load(path.stem, path.parent)
    assert record.command == "course record sentences --data nli --checkpoint lively"
    assert [run["variant"] for run in record.results] == [
        "lively, static",
        "lively, pairs",
        "lively, classes",
    ]
    assert [list(run["after"]) for run in record.results] == [
        ["start"],
        ["pairs", "scores"],
        ["classes"],
    ]
    assert [set(run["probes"]) for run in record.results] == [{"TREC", "MRPC"}] * 3
    assert FLAT.recorded(record.configuration) == FLAT
    again = replace(FLAT, run=lambda *_: pytest.fail("the record holds this run"))
    monkeypatch.setitem(sentence_runs.PLANS, "nli", again)
    record_experiment("sentences", "nli", source, ["pairs"], [0], None, str(checkpoint))


def test_a_premise_is_in_a_batch_of_pairs_only_once(source):
    """The sentence that follows from it would else be a wrong answer to itself."""
    _, examples = sentence_runs.stage_data(
        sentence_runs.Stage("pairs"), encoder(), source
    )
    assert len(examples) == 2, (
        "of both sets the same two premises have a sentence that follows"
    )
    _, examples = sentence_runs.stage_data(
        sentence_runs.Stage("classes"), encoder(), source
    )
    assert [example.label for example in examples] == [0, 2, 0, 1] * 2
    _, examples = sentence_runs.stage_data(
        sentence_runs.Stage("scores"), encoder(), source
    )
    assert [example.label for example in examples] == [0, 0.2, 0.5, 0.6, 0.8, 1]


def test_a_published_encoder_is_pooled_as_its_own_files_say(source, tmp_path):
    encoder(pooling="max", normalize=True).save_pretrained(tmp_path / "own")
    found = sentence_runs.make_encoder(
        FLAT.variants["published"], tmp_path / "own", 12, 0
    )
    assert (found.pooling, found.normalize) == ("max", True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("sentences", "nil", None, [], [0], None, "x"),
            "sentences has no study 'nil'; it has: nli",
        ),
        (
            ("sentences", "nli", None, ["max"], [0], None, "x"),
            "has no variant 'max'; choose among static",
        ),
        (("sentences", "nli", None, [], [0], None, None), "needs --checkpoint"),
    ],
)
def test_what_is_not_known_is_refused_in_words(words, message):
    with refusal(message, ExperimentError):
        record_experiment(*words)


def test_settings_that_cannot_be_are_refused():
    with refusal("objective is 'triplets'; choose one of classes, pairs, scores"):
        sentence_runs.Stage("triplets")
    with refusal("start is 'cooked'; choose one of static, raw"):
        sentence_runs.SentenceVariant("cooked")
    with refusal("treated is 'salted'; choose one of centred, whitened"):
        sentence_runs.SentenceVariant("static", treated="salted")
    with refusal("stages train states of a checkpoint"):
        sentence_runs.SentenceVariant("static", stages=(sentence_runs.Stage("pairs"),))


# -- the page
# --------------------------------------------------------------------------------------


def run(variant, seed, **after):
    scored = {
        stage: {"stsb": value, "cosine": value / 2} for stage, value in after.items()
    }
    return {
        "variant": f"mini, {variant}",
        "seed": seed,
        "after": scored,
        "probes": dict.fromkeys(sentence_page.PROBES, 0.5),
    }


RECORD = Record(
    "sentences-nli",
    "course",
    {},
    [0, 1, 2],
    [
        run("raw mean", 0, start=0.4),
        *(run("pairs", seed, pairs=0.5, scores=0.6 + seed / 100) for seed in range(3)),
    ],
    "0" * 40,
    {},
    "2026",
)


def test_tables_show_what_was_run_and_leave_out_what_was_not():
    lines = sentence_page.similarity_table(RECORD).splitlines()
    assert lines[2:] == [
        "| raw, mean | 40.0 | 46.4 | 0.20 |",
        "| NLI, in the batch | 50.0 ± 0.0 |  | 0.25 ± 0.00 |",
        "| NLI, in the batch, then STS-B | 61.0 ± 2.5 |  | 0.30 ± 0.01 |",
    ]
    probes = sentence_page.probe_table(RECORD).splitlines()
    assert probes[2] == "| raw, mean | 50.0 | 50.0 | 50.0 | 50.0 | 50.0 |"
    assert [line.split("|")[1].strip() for line in probes[3:5]] == [
        "NLI, in the batch, then STS-B",
        "*averaged GloVe, published*",
    ]


def test_bars_have_an_interval_where_there_are_seeds():
    bars = sentence_page.similarity_bars(RECORD)
    assert bars["raw, mean"] == (pytest.approx(40), 0)
    assert bars["NLI, in the batch, then STS-B"] == pytest.approx((61, 2.484), abs=1e-3)
    figure = score_bars(bars, {"raw, mean": 46.35}, "Spearman (× 100)")
    assert [patch.get_width() for patch in figure.axes[0].patches] == pytest.approx(
        [40, 50, 61]
    )
    with refusal("no scores"):
        score_bars({}, {}, "x")


def test_centring_takes_a_common_part_out_of_vectors_of_different_lengths(monkeypatch):
    """The common part of generated pairs costs rank correlation; their mean is it."""
    u, v, similarity, common = generated_pairs(lengths_vary=True, seed=0)
    known = {
        f"{name}{i}": x + 4 * common
        for name, of in (("u", u), ("v", v))
        for i, x in enumerate(of)
    }
    rows = {
        "sentence1": [f"u{i}" for i in range(len(u))],
        "sentence2": [f"v{i}" for i in range(len(v))],
        "label": similarity.tolist(),
    }
    monkeypatch.setattr(sentence_runs, "load", lambda *_: {"train": rows, "test": rows})

    def stsb(treated):
        def encode(texts):
            return torch.stack([known[x] for x in texts])

        return sentence_runs.judge_similarity(encode, None, treated)["stsb"]

    assert stsb("centred") > stsb("") + 0.1
    assert stsb("whitened") > stsb("") + 0.1
