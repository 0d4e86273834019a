"""WikiText-2 from raw lines: articles with their boundaries, wherever the lines come
from."""

import pytest
from datasets import Dataset
from expect import refusal

from course_lib.data import load
from course_lib.data.corpus import articles

LINES = [
    "",
    " = Tea = ",
    "",
    " Tea is a drink . ",
    "",
    " = = Kinds of tea = = ",
    "",
    " = = = Green = = = ",
    "",
    " It is green . ",
    " = 2 = ",  # a formula between two paragraphs, not a title
    " It is old . ",
    "",
    " = Coffee ( drink ) = ",
    "",
    " Coffee is another . ",
    "",
]


def test_an_article_begins_at_a_title_and_keeps_its_paragraphs_without_headings():
    rows = articles(LINES, "test")
    assert [row["title"] for row in rows] == ["Tea", "Coffee ( drink )"]
    assert rows[0]["paragraphs"] == [
        "Tea is a drink .",
        "It is green .",
        "= 2 =",
        "It is old .",
    ]
    assert [row["document"] for row in rows] == [
        "wikitext2_raw/test/0000",
        "wikitext2_raw/test/0001",
    ]


def test_text_before_the_first_title_is_refused_in_words():
    with refusal(r"line 2 of test has text before the first title: 'Tea is"):
        articles(["", " Tea is a drink . "], "test")


def folder_with(tmp_path, *splits):
    (tmp_path / "wikitext2_raw").mkdir()
    for split in splits:
        (tmp_path / "wikitext2_raw" / f"{split}.txt").write_text(
            "\n".join(LINES), encoding="utf-8"
        )
    return tmp_path


def test_a_folder_of_raw_lines_is_read_and_a_missing_training_split_is_announced(
    tmp_path, capsys
):
    data = load("wikitext2_raw", folder_with(tmp_path, "validation", "test"))
    assert ", without train (2 validation, 2 test)" in capsys.readouterr().out
    assert data["validation"]["title"][:] == ["Tea", "Coffee ( drink )"]


def test_only_the_training_split_may_be_missing(tmp_path):
    with refusal(r"test\.parquet does not exist", FileNotFoundError):
        load("wikitext2_raw", folder_with(tmp_path, "train", "validation"))


def test_a_folder_of_parquet_files_with_the_same_columns_is_read_too(tmp_path):
    folder = folder_with(tmp_path)
    for split in ("validation", "test"):
        Dataset.from_list(articles(LINES, split)).to_parquet(
            str(folder / "wikitext2_raw" / f"{split}.parquet")
        )
    assert load("wikitext2_raw", folder)["test"]["paragraphs"][1] == [
        "Coffee is another ."
    ]


def test_the_hub_s_lines_give_the_same_articles(monkeypatch):
    asked = []

    def stream(path, split, columns, streaming, name):
        asked.append((path, name, split, columns, streaming))
        return iter({"text": line} for line in LINES)

    monkeypatch.setattr("course_lib.data.loading.load_dataset", stream)
    data = load("wikitext2_raw", source="hub")
    assert asked[0] == (
        "Salesforce/wikitext",
        "wikitext-2-raw-v1",
        "train",
        ["text"],
        True,
    )
    assert [rows["title"][:] for rows in data.values()] == [
        ["Tea", "Coffee ( drink )"]
    ] * 3


@pytest.mark.real_data
def test_the_released_validation_and_test_splits_have_sixty_articles_each(real_data):
    """Merity et al. (2017), table 1: 60 articles for validation and 60 for test; the
    folder's own table agrees."""
    import pyarrow.parquet as pq

    data = load("wikitext2_raw", real_data)
    known = pq.read_table(real_data / "wikitext2_raw" / "documents.parquet").to_pylist()
    for split in ("validation", "test"):
        expected = [
            (row["title"], row["paragraphs"]) for row in known if row["split"] == split
        ]
        assert len(expected) == 60
        assert (
            list(zip(data[split]["title"], data[split]["paragraphs"], strict=True))
            == expected
        )
