"""Public benchmarks: the same columns from the hub and from a folder, labels by number
or name, a split by column."""

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value
from expect import refusal

from course_lib.data import DATASETS, load
from course_lib.data.benchmarks import BENCHMARKS, SENTENCE_BENCHMARKS, WNUT_TAGS
from course_lib.data.data_set import split_by


@pytest.fixture(autouse=True)
def no_default_source(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)


def folder_with(tmp_path, name, rows, *splits):
    (tmp_path / name).mkdir(parents=True)
    for split in splits:
        Dataset.from_dict(rows).to_parquet(str(tmp_path / name / f"{split}.parquet"))
    return tmp_path


def hub_with(monkeypatch, rows):
    asked = []

    def stream(path, **options):
        asked.append((path, options))
        return iter(
            [{column: row[column] for column in options["columns"]} for row in rows]
        )

    monkeypatch.setattr("course_lib.data.loading.load_dataset", stream)
    return asked


def test_labels_stored_as_numbers_get_the_names_of_the_card(tmp_path):
    rows = {"sentence": ["bad .", "good ."], "label": [0, 1], "idx": [7, 9]}
    data = load("sst2", folder_with(tmp_path, "sst2", rows, "train", "validation"))
    assert data["train"].features["label"] == ClassLabel(names=["negative", "positive"])
    assert data["validation"][1] == {"sentence": "good .", "label": 1}


def test_tags_stored_as_names_become_the_same_numbers_as_the_hub_s(
    tmp_path, monkeypatch
):
    rows = {
        "id": ["0"],
        "tokens": [["in", "Bad", "Ems"]],
        "ner_tags": [["O", "B-location", "I-location"]],
    }
    from_folder = load(
        "wnut17", folder_with(tmp_path, "wnut17", rows, "train", "validation", "test")
    )["test"]
    numbers = [WNUT_TAGS.index(tag) for tag in rows["ner_tags"][0]]
    asked = hub_with(
        monkeypatch, [{"id": "0", "tokens": rows["tokens"][0], "ner_tags": numbers}]
    )
    from_hub = load("wnut17", source="hub")["test"]
    assert (
        from_folder[0]
        == from_hub[0]
        == {"id": "0", "tokens": rows["tokens"][0], "ner_tags": numbers}
    )
    assert from_folder.features == from_hub.features
    assert asked[0][1]["revision"] == "refs/convert/parquet"


@pytest.mark.parametrize("label", [2, -1])
def test_a_number_that_stands_for_no_label_is_refused_in_words(tmp_path, label):
    """GLUE gives the rows of its test splits the label -1."""
    rows = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "label": [1, label]}
    words = (
        rf"train\.parquet: column 'label' holds {label}, .* expected 0 to 1:"
        r" entailment, not_entailment"
    )
    with refusal(words):
        load("rte", folder_with(tmp_path, "rte", rows, "train", "validation"))


def test_a_name_that_is_no_tag_is_refused_in_words(tmp_path):
    rows = {"id": ["0"], "tokens": [["Bad", "Ems"]], "ner_tags": [["B-place", "O"]]}
    with refusal(r"train\.parquet: .*B-place.*; wnut17 holds"):
        load(
            "wnut17",
            folder_with(tmp_path, "wnut17", rows, "train", "validation", "test"),
        )


def test_the_hub_s_scores_from_0_to_1_become_those_from_0_to_5(tmp_path, monkeypatch):
    hub_with(monkeypatch, [{"sentence1": "a", "sentence2": "b", "score": 0.76}])
    from_hub = load("stsb", source="hub")["test"]
    rows = {"sentence1": ["a"], "sentence2": ["b"], "label": [3.8]}
    from_folder = load(
        "stsb", folder_with(tmp_path, "stsb", rows, "train", "validation", "test")
    )["test"]
    assert from_hub[:] == from_folder[:]
    assert from_hub.features["label"] == Value("float32")


def test_a_configuration_of_glue_is_asked_for_by_its_name(monkeypatch):
    asked = hub_with(monkeypatch, [{"sentence": "Dogs run.", "label": 1}])
    load("cola", source="hub")
    assert [(path, options["name"], options["split"]) for path, options in asked] == [
        ("nyu-mll/glue", "cola", "train"),
        ("nyu-mll/glue", "cola", "validation"),
    ]


def test_pairs_of_snli_without_an_agreed_label_are_left_out(monkeypatch):
    rows = [
        {"premise": f"p{i}", "hypothesis": f"h{i}", "label": label}
        for i, label in enumerate((2, -1, 0))
    ]
    hub_with(monkeypatch, rows)
    found = load("snli", source="hub")["test"]
    assert found[:] == {
        "premise": ["p0", "p2"],
        "hypothesis": ["h0", "h2"],
        "label": [2, 0],
    }


def test_mnli_is_validated_on_the_genres_it_is_trained_on(monkeypatch):
    asked = hub_with(monkeypatch, [{"premise": "p", "hypothesis": "h", "label": 1}])
    load("mnli", source="hub")
    assert [(options["name"], options["split"]) for _, options in asked] == [
        ("mnli", "train"),
        ("mnli", "validation_matched"),
    ]


ANSWERS = {"text": ["Ada"], "answer_start": [4]}
SQUAD = {
    "id": ["q"],
    "title": ["T"],
    "context": ["Was Ada"],
    "question": ["Who?"],
    "answers": [ANSWERS],
}


def test_squad_s_training_split_may_be_missing_and_answers_keep_their_form(
    tmp_path, capsys
):
    data = load("squad", folder_with(tmp_path, "squad", SQUAD, "validation"))
    assert ", without train (1 validation)" in capsys.readouterr().out
    assert data["validation"][0]["answers"] == ANSWERS
    assert data["validation"].features["answers"] == {
        "text": List(Value("string")),
        "answer_start": List(Value("int32")),
    }


def test_answers_of_another_form_are_refused(tmp_path):
    rows = SQUAD | {"answers": [["Ada"]]}
    with refusal(r"validation\.parquet: column 'answers' holds List.*; expected"):
        load("squad", folder_with(tmp_path, "squad", rows, "validation"))


def test_mctest_is_read_from_a_folder_alone(tmp_path):
    with refusal(r"mctest has no copy on the hub: it comes from a folder"):
        load("mctest", source="hub")


# -- a split by column
# --------------------------------------------------------------------------------------

ROWS = Dataset.from_dict(
    {"title": [f"t{i % 17}" for i in range(93)], "n": list(range(93))}
)


def test_rows_that_agree_in_the_column_stay_together_and_none_is_lost():
    splits = split_by(ROWS, "title")
    titles = {split: {*rows["title"]} for split, rows in splits.items()}
    assert {split: len(own) for split, own in titles.items()} == {
        "train": 14,
        "validation": 1,
        "test": 2,
    }
    assert len(set.union(*titles.values())) == 17
    assert sorted(n for rows in splits.values() for n in rows["n"]) == list(range(93))
    assert splits["train"]["n"][:] == sorted(splits["train"]["n"])


def test_another_seed_gives_another_split_and_the_same_seed_the_same():
    first, again, other = (
        split_by(ROWS, "title", seed=seed)["test"]["n"][:] for seed in (3, 3, 4)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"column": "titel"},
            r"no column 'titel' to split by; the columns are title, n",
        ),
        ({"shares": {"train": 0.5, "test": 0.4}}, r"must be positive and add up to 1"),
        ({"shares": {"train": 1.2, "test": -0.2}}, r"must be positive"),
    ],
)
def test_a_split_that_cannot_be_is_refused_in_words(options, words):
    with refusal(words):
        split_by(ROWS, **{"column": "title", **options})


def test_fewer_values_than_splits_are_refused():
    with refusal(r"has 2 different values: too few for 3 splits"):
        split_by(Dataset.from_dict({"title": ["a", "b", "b"]}), "title")


# -- the real copies
# --------------------------------------------------------------------------------------

SIZES = {
    "sst2": {"train": 67_349, "validation": 872},  # Wang et al. (2019), table 1
    "cola": {"train": 8_551, "validation": 1_043},
    "mrpc": {
        "train": 3_576,
        "validation": 500,
        "test": 1_725,
    },  # 4,076 cut at another place than GLUE does
    "rte": {"train": 2_490, "validation": 277},
    "stsb": {
        "train": 5_749,
        "validation": 1_500,
        "test": 1_379,
    },  # Cer et al. (2017), table 2
    "wnut17": {
        "train": 3_394,
        "validation": 1_009,
        "test": 1_287,
    },  # Derczynski et al. (2017), table 1, and its home
    "squad": {"validation": 10_570},  # Rajpurkar et al. (2016), section 5.1
    "mctest": {
        "train": 1_480,
        "validation": 320,
        "test": 840,
    },  # Richardson et al. (2013): 370, 80, 210 stories by 4
}
SENTENCE_SIZES = {
    "snli": {
        "train": 20_000,
        "validation": 9_842,
        "test": 9_824,
    },  # Bowman et al. (2015); train is a part of 549,367
    "mnli": {"train": 9_888, "validation": 6_238},  # parts of 392,702 and 9,815
    "trec": {"train": 5_452, "test": 500},  # Li and Roth (2002)
    "subj": {"all": 10_000},  # Pang and Lee (2004)
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", [*SIZES, *SENTENCE_SIZES])
def test_a_real_copy_has_its_published_size_and_the_columns_of_the_card(
    real_data, name
):
    data = load(name, real_data)
    assert {split: len(rows) for split, rows in data.items()} == {
        **SIZES,
        **SENTENCE_SIZES,
    }[name]
    for rows in data.values():
        assert rows.features == DATASETS[name].features
        labels = rows.features.get("label")
        if isinstance(labels, ClassLabel):
            assert {*rows["label"]} == {*range(len(labels.names))}


@pytest.mark.real_data
def test_the_first_of_the_named_labels_is_the_one_that_its_rows_have(real_data):
    """Read off rows that leave no doubt: a copy whose numbers mean other names would
    score like chance."""
    label = DATASETS["snli"].features["label"]
    rows = load("snli", real_data)["validation"]
    named = dict(
        zip(rows["hypothesis"], map(label.int2str, rows["label"]), strict=True)
    )
    assert named["Two woman are holding packages ."] == "entailment"
    kinds = load("trec", real_data)["train"]
    who = [
        kinds.features["coarse_label"].int2str(x["coarse_label"])
        for x in kinds
        if x["text"].startswith("Who ")
    ]
    assert who.count("HUM") > 0.9 * len(who)
    opinion = load("subj", real_data)["all"][0]
    assert "small gem" in opinion["text"]
    assert DATASETS["subj"].features["label"].int2str(opinion["label"]) == "subjective"


@pytest.mark.real_data
def test_squad_s_answers_stand_where_they_say_and_its_articles_can_be_parted(real_data):
    rows = load("squad", real_data)["validation"]
    for context, answers in zip(rows["context"], rows["answers"], strict=True):
        for text, start in zip(answers["text"], answers["answer_start"], strict=True):
            assert context[start : start + len(text)] == text
    parts = split_by(rows, "title")
    assert (
        sum(len({*part["title"]}) for part in parts.values())
        == len({*rows["title"]})
        == 48
    )


@pytest.mark.real_data
def test_swag_s_ten_rows_have_the_columns_of_the_card(real_data, tmp_path):
    """Of SWAG only a sample is at hand; its shape is that of the whole."""
    (tmp_path / "swag").mkdir()
    for split in ("train", "validation"):
        (tmp_path / "swag" / f"{split}.parquet").write_bytes(
            (real_data / "swag" / "sample.parquet").read_bytes()
        )
    data = load("swag", tmp_path)
    assert len(data["train"]) == 10
    assert (
        data["train"].features
        == DATASETS["swag"].features
        == Features(data["validation"].features)
    )


def test_every_benchmark_has_a_row_of_its_own():
    assert [row.name for row in BENCHMARKS] == [*SIZES, "swag"]
    assert [row.name for row in SENTENCE_BENCHMARKS] == [*SENTENCE_SIZES]
