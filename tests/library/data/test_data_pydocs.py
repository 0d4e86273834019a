"""The corpus from installed documentation: deterministic, split by module, no
near-duplicates, cached and large."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from cases import for_each
from datasets import Features, Value
from expect import refusal
from packaging.requirements import Requirement

from course_lib.data import arrow_cache, load, pydocs
from course_lib.data.near_duplicates import first_of_its_kind, shingles
from course_lib.data.readings import ENOUGH, PROSE, READ_FROM, SIZE, differences, sample

ROOT = Path(__file__).parents[3]
FEATURES = Features({"n": Value("int64")})


def jaccard(a, b):
    return len(a & b) / len(a | b)


# -- near-duplicates
# --------------------------------------------------------------------------------------

SENTENCES = [
    f"{verb} the {thing} of the {owner} {end}"
    for verb, thing, owner, end in itertools.product(
        ("Return", "Compute", "Set"),
        ("size", "mean value"),
        ("array", "sparse array", "table"),
        ("along an axis.", "along the given axis.", "once."),
    )
]


@for_each(("threshold", "n"), [(0.3, 2), (0.5, 3), (0.7, 2), (1.0, 1)])
def test_the_prefix_filter_finds_what_comparing_all_pairs_finds(threshold, n):
    sets = [shingles(text, n) for text in SENTENCES]
    kept = []
    for i, one in enumerate(sets):
        if not any(jaccard(one, sets[j]) >= threshold for j in kept):
            kept.append(i)
    assert 1 < len(kept) < len(SENTENCES) or threshold == 1.0
    answers = first_of_its_kind(SENTENCES, threshold, n)
    assert [i for i, answer in enumerate(answers) if answer] == kept


def test_a_threshold_that_is_no_share_is_refused_in_words():
    with refusal(r"threshold is 1.5; give a share above 0 and at most 1"):
        first_of_its_kind(["a"], 1.5, 3)


# -- what it is made from
# --------------------------------------------------------------------------------------


PINNED = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.skipif(
    f"transformers=={version('transformers')}" not in PINNED,
    reason="the corpus is that of the pinned versions; others may need other packages",
)
def test_every_package_of_the_corpus_comes_with_the_course_s_own_requirements():
    waiting, known = ["course_lib"], set()
    while waiting:
        name = waiting.pop()
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            wanted = requirement.marker is None or requirement.marker.evaluate(
                {"extra": ""}
            )
            if wanted and requirement.name.lower() not in known:
                known.add(requirement.name.lower())
                waiting.append(requirement.name)
    declared = {Requirement(line.strip(' ",')).name for line in _base_requirements()}
    missing = {name.replace("_", "-") for name in pydocs.PACKAGES} - {
        name.replace("_", "-") for name in known | declared
    }
    assert missing == {"python"}


def _base_requirements():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return text.split("\ndependencies = [\n")[1].split("\n]")[0].splitlines()


def test_the_fingerprint_changes_with_a_version_and_with_the_cleaning(monkeypatch):
    before = pydocs.fingerprint(["python", "numpy"])
    monkeypatch.setattr(pydocs, "version", lambda package: "0.0.1+local")
    after = pydocs.fingerprint(["python", "numpy"])
    assert (before["python"], before["cleaning"]) == (
        after["python"],
        after["cleaning"],
    )
    assert after["numpy"] == "0.0.1"
    assert arrow_cache.folder_for("pydocs", before) != arrow_cache.folder_for(
        "pydocs", after
    )


def test_a_missing_package_is_named_and_nothing_is_made_without_it():
    with refusal(r"documentation of no_such_package.*pip install", ModuleNotFoundError):
        pydocs.make(["psutil", "no_such_package"])


MAKE = (
    "import json, sys; from course_lib.data import pydocs; "
    "json.dump(pydocs.make(['click', 'psutil']), sys.stdout, sort_keys=True)"
)


@pytest.mark.slow
def test_another_process_with_another_hash_seed_makes_the_same_corpus(tmp_path):
    made = set()
    for seed in ("1", "2024"):
        own = {"PYTHONHASHSEED": seed, "HF_DATASETS_CACHE": str(tmp_path / seed)}
        command = [sys.executable, "-c", MAKE]
        made.add(subprocess.check_output(command, env=os.environ | own))
    (corpus,) = made
    assert len(json.loads(corpus)["train"]) > 100


# -- the cache
# --------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    made = []

    def ask(**ingredients):
        def make():
            made.append(ingredients)
            return {"train": [{"n": 3}, {"n": 5}], "test": [{"n": 7}]}

        splits = arrow_cache.cached("numbers", ingredients, FEATURES, make)
        return {split: rows["n"][:] for split, rows in splits.items()}, len(made)

    return ask


def test_rows_come_from_the_cache_and_another_version_makes_them_anew(cache):
    rows = {"train": [3, 5], "test": [7]}
    assert cache(numpy="1") == (rows, 1)
    assert cache(numpy="1") == (rows, 1)
    assert cache(numpy="2") == (rows, 2)


@pytest.mark.parametrize("fault", ["a bit", "half the file", "a file", "the record"])
def test_a_damaged_copy_is_reported_and_made_again(cache, tmp_path, fault, capsys):
    rows, _ = cache(numpy="1")
    folder = next(path for path in (tmp_path / "course_lib").iterdir() if path.is_dir())
    file = folder / ("record.json" if fault == "the record" else "train.arrow")
    content = file.read_bytes()
    if fault == "a file":
        file.unlink()
    elif fault == "a bit":
        file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    else:
        file.write_bytes(content[: len(content) // 2])
    assert cache(numpy="1") == (rows, 2)
    assert "numbers: the copy in" in capsys.readouterr().out
    assert cache(numpy="1") == (rows, 2)


# -- the corpus: made once for these versions, then read from the cache
# ------------------------------------------------


@pytest.fixture(scope="module")
def corpus():
    return load("pydocs", source="embedded")


@pytest.mark.slow
def test_at_least_one_and_a_half_million_words_of_prose(corpus):
    words = {
        split: sum(len(text.split()) for texts in rows["paragraphs"] for text in texts)
        for split, rows in corpus.items()
    }
    assert sum(words.values()) >= 1_500_000
    assert all(words[split] >= 50_000 for split in ("validation", "test"))


@pytest.mark.slow
def test_no_module_and_no_document_is_in_two_splits_and_names_are_unique(corpus):
    modules = [set(rows["module"]) for rows in corpus.values()]
    assert all(a.isdisjoint(b) for a, b in itertools.combinations(modules, 2))
    names = [name for rows in corpus.values() for name in rows["document"]]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_documents_keep_the_order_of_packages_and_of_modules(corpus):
    for rows in corpus.values():
        places = [
            (pydocs.PACKAGES.index(package), module)
            for package, module in zip(rows["package"], rows["module"], strict=True)
        ]
        assert [place[0] for place in places] == sorted(place[0] for place in places)


@pytest.mark.slow
def test_no_paragraph_of_validation_or_test_is_nearly_the_same_as_one_of_training(
    corpus,
):
    """Counted by shared shingles, without the prefix filter that made the corpus, for
    300 held-out paragraphs."""
    train = [
        shingles(text, pydocs.SHINGLE)
        for texts in corpus["train"]["paragraphs"]
        for text in texts
    ]
    holders = {}
    for i, found in enumerate(train):
        for shingle in found:
            holders.setdefault(shingle, []).append(i)
    held_out = sorted(
        (
            text
            for split in ("validation", "test")
            for texts in corpus[split]["paragraphs"]
            for text in texts
        ),
        key=lambda text: hashlib.sha256(text.encode()).digest(),
    )[:300]
    for text in held_out:
        mine = shingles(text, pydocs.SHINGLE)
        rivals = {i for shingle in mine for i in holders.get(shingle, ())}
        assert all(jaccard(mine, train[i]) < pydocs.THRESHOLD for i in rivals), text


@pytest.mark.slow
def test_a_reader_finds_prose_in_48_of_50_sampled_paragraphs(corpus):
    """A paragraph that nobody has read counts against the corpus: where it changed,
    read the new sample."""
    readings = sample("pydocs", corpus)
    assert len(readings) == SIZE
    assert sum(reading.verdict == PROSE for reading in readings) >= ENOUGH, (
        "unread or not prose:"
        f" {[reading for reading in readings if reading.verdict != PROSE]}; differences"
        f" from the corpus that was read: {differences(pydocs.fingerprint()) or 'none'}"
    )


def test_the_corpus_that_was_read_is_that_of_the_pins():
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
        if "==" in line
    )
    pinned = {name.lower().replace("_", "-"): version for name, version in pins.items()}
    read = {
        name.replace("_", "-"): version
        for name, version in READ_FROM.items()
        if name not in ("python", "cleaning")
    }
    assert {name: pinned[name] for name in read} == read
    assert set(READ_FROM) == {*pydocs.PACKAGES, "cleaning"}
