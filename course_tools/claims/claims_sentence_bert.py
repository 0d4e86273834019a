"""Claims of chapter 9: rows 43 to 47."""

from collections.abc import Mapping
from typing import Any

from course_tools.claims.claim import Claim
from course_tools.claims.sources import Apart, Cell, Glued, GluedRange, Lead, Recorded
from course_tools.claims.verdicts import Figure, Statement, Trend, Unmeasured

RECORD = "sentences-nli"
RANK = "MRR"
ONE_CHECKPOINT = (
    "One checkpoint, and nothing drawn: so no interval, and no chance but that of the"
    " test pairs."
)
ONE_SEED = (
    "One run, so the interval holds the chance of the queries and not that of training."
)


def mean_probe(run: Mapping[str, Any]) -> float:
    """Return the mean accuracy of a recorded encoder over its probes, in percent."""
    return 100 * float(sum(run["probes"].values()) / len(run["probes"]))


def _probes(variant: str) -> Recorded:
    return Recorded(RECORD, mean_probe, {"variant": variant})


def _exact(key: str) -> Glued:
    return Glued(9, key, kind="exact")


CLAIMS = (
    Claim(
        "pairs-of-ten-thousand",
        43,
        "10,000 sentences make 49,995,000 pairs.",
        "49,995,000",
        "reimers2019",
        Figure(49_995_000.0),
        "counted",
        _exact("pairs"),
        "pairs",
        0,
    ),
    Claim(
        "cost-of-pairs",
        43,
        "To find the closest pair of 10,000 sentences takes 65 hours by reading pairs,"
        " and 5 seconds by vectors.",
        "about 65 hours and about 5 seconds, a ratio of 46,800",
        "reimers2019",
        Trend("above", 1000.0),
        "cost of reading pairs over cost of vectors, equal model, one core",
        GluedRange(
            9,
            "cost_ratio",
            "cost_least",
            "cost_greatest",
            "least to greatest over the rounds",
        ),
        digits=0,
        beside=(
            ("hours, extrapolated", Glued(9, "cross_hours"), "", 0),
            ("seconds", Glued(9, "bi_seconds"), "", 0),
        ),
    ),
    Claim(
        "raw-loses-to-static",
        44,
        "The mean of BERT's raw states is worse than averaged static vectors.",
        "STS-B 46.4 for BERT, 58.0 for GloVe",
        "reimers2019",
        Trend(),
        "Spearman × 100 on STS-B, averaged static vectors minus mean of raw states",
        Apart(_exact("sts_static"), _exact("sts_mean")),
        "points",
        beside=(
            ("static", _exact("sts_static"), "", 1),
            ("raw", _exact("sts_mean"), "", 1),
        ),
        note=ONE_CHECKPOINT,
    ),
    Claim(
        "cls-is-worst",
        44,
        "[CLS] is worse still.",
        "STS-B 16.5 for [CLS], 46.4 for the mean",
        "reimers2019",
        Trend(),
        "Spearman × 100 on STS-B, mean of raw states minus [CLS]",
        Apart(_exact("sts_mean"), _exact("sts_cls")),
        "points",
        note=ONE_CHECKPOINT,
    ),
    Claim(
        "anisotropy",
        44,
        "Raw states lie in a narrow cone: any two sentences are similar.",
        "found in the upper layers of BERT, ELMo and GPT-2",
        "ethayarajh2019",
        Statement(),
        "mean cosine of unrelated sentences, raw states minus static vectors",
        Apart(_exact("cosine_mean"), _exact("cosine_static")),
        digits=2,
        beside=(("untrained", _exact("cosine_untrained"), "", 2),),
        note="An untrained model has it, too.",
    ),
    Claim(
        "siamese",
        45,
        "Siamese training makes a cosine mean similarity.",
        "STS-B 77.0 after training on inference pairs, 46.4 before",
        "reimers2019",
        Trend(),
        "Spearman × 100 on STS-B, after our best training minus raw, with each seed",
        Glued(9, "sts_least_lift", kind="least"),
        "points",
        beside=(
            ("after", Glued(9, "sts_best"), "", 1),
            ("inference pairs alone", Glued(9, "sts_pairs"), "", 1),
        ),
        section="row-46",
    ),
    Claim(
        "batch-negatives",
        45,
        "Pairs that belong together are enough: the rest of the batch gives the wrong"
        " answers.",
        "used for replies to mail",
        "henderson2017",
        Statement(),
        "mean reciprocal rank × 100 of the right description, trained minus raw",
        Glued(9, "siamese_gain", "siamese_gain_half", what="the queries"),
        "points",
        beside=(
            ("trained", Cell(9, "siamese", RANK, table="vectors"), "", 1),
            (
                "untrained",
                Cell(9, "untrained", RANK, table="vectors", kind="exact"),
                "",
                1,
            ),
        ),
        note=ONE_SEED,
    ),
    Claim(
        "published-encoder",
        46,
        "A published sentence encoder reaches 82.0 on STS-B.",
        "82.03 (all-MiniLM-L6-v2, in the metadata of its makers)",
        "reimers2019",
        Figure(82.03, 0.5, "half a point, for other versions of tokenizer and library"),
        "Spearman × 100, the same weights through our code",
        Recorded(
            RECORD,
            ("after", "start", "stsb"),
            {"variant": "all-MiniLM-L6-v2, published"},
            scale=100.0,
            kind="exact",
        ),
    ),
    Claim(
        "probes-of-raw-states",
        46,
        "In probes raw BERT beats averaged static vectors, though it loses on"
        " similarity.",
        "average of seven probes: 84.94 for BERT's mean, 84.66 for [CLS], 81.52 for"
        " GloVe",
        "reimers2019,conneau2018",
        Trend(),
        "mean of four probes, raw mean minus averaged static vectors",
        Lead(_probes("mini, raw mean"), _probes("mini, static")),
        "points",
    ),
    Claim(
        "probes-of-siamese",
        46,
        "Siamese training makes vectors better for probes, too.",
        "average of seven probes: 87.41 for SBERT-NLI-base, 87.69 for large, 84.94 for"
        " BERT's mean",
        "reimers2019",
        Trend(),
        "mean of four probes, trained in the batch and on STS-B minus raw mean",
        Apart(
            _probes("mini, pairs"),
            Recorded(RECORD, mean_probe, {"variant": "mini, raw mean"}, kind="exact"),
        ),
        "points",
        note=(
            "Our mini has read documentation; three of the probes are of films and"
            " opinions."
        ),
    ),
    Claim(
        "other-encoders",
        46,
        "InferSent and the Universal Sentence Encoder reach 85.59 and 85.10 on these"
        " probes.",
        "85.59; 85.10",
        "reimers2019",
        Unmeasured(
            "Neither is a Transformer of this course; their columns are quoted."
        ),
    ),
    Claim(
        "words-beat-vectors",
        47,
        "Search by common words is hard to beat for vectors that were trained on"
        " little.",
        "BM25 ahead of many neural models on data that they were not trained on",
        "thakur2021",
        Statement(),
        "mean reciprocal rank × 100, BM25 minus siamese vectors",
        Glued(9, "bm25_lead", "bm25_lead_half", what="the queries"),
        "points",
        beside=(("both added", Glued(9, "mrr_both"), "", 1),),
        note=ONE_SEED,
    ),
    Claim(
        "re-ranking",
        47,
        "A cross-encoder that orders the first ten finds makes search better.",
        "MS MARCO, reciprocal rank 36.5 after re-ranking, 16.7 before",
        "nogueira2019",
        Trend(),
        "mean reciprocal rank × 100, re-ranked minus BM25",
        Apart(Glued(9, "rerank_mrr"), _exact("mrr_bm25")),
        "points",
        note="One run of a cross-encoder with two layers.",
    ),
)
