"""One way in to the data: the right source, said aloud; the same columns; errors in
words; nothing on the quiet."""

import dataclasses
import gzip
import logging
import re
from functools import partial

import pytest
from cases import for_each
from datasets import Dataset, DatasetDict, Features, List, Value
from expect import refusal
from typer.testing import CliRunner

from course_lib.data import DATASETS, cards, load
from course_lib.data.cards import available_source, card
from course_lib.data.catalogue import make_embedded
from course_lib.data.multi30k import convert
from course_tools.cli import app

ROWS = {
    "en": ["A man sleeps.", "Two dogs run.", "A red boat."],
    "fr": ["Un homme dort.", "Deux chiens courent.", "Un bateau rouge."],
    "de": ["Ein Mann schläft.", "Zwei Hunde rennen.", "Ein rotes Boot."],
}
SIZES = {"train": 3, "validation": 1, "test": 2}


@pytest.fixture(autouse=True)
def no_default_source(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)


def write(folder, name="multi30k", rows=ROWS, splits=SIZES):
    (folder / name).mkdir(parents=True)
    for split, size in splits.items():
        Dataset.from_dict(
            {column: values[:size] for column, values in rows.items()}
        ).to_parquet(str(folder / name / f"{split}.parquet"))
    return folder


# -- where the data comes from
# --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_embedded_is_the_default_and_is_announced(capsys):
    data = load("translation")
    announced = (
        "translation: embedded, generated on this machine (20,000 train, 1,000"
        " validation, 1,000 test)\n"
    )
    assert capsys.readouterr().out == announced
    assert {split: rows.num_rows for split, rows in data.items()} == {
        "train": 20_000,
        "validation": 1_000,
        "test": 1_000,
    }


def test_no_english_sentence_is_in_two_splits_or_twice_in_one():
    data = load("translation")
    sentences = [text for rows in data.values() for text in rows["en"]]
    assert len(set(sentences)) == len(sentences) == 22_000


def test_what_the_caller_does_to_the_splits_does_not_change_the_next_load():
    first = load("translation")
    del first["train"]
    first["test"] = first["test"].select([0])
    assert {split: len(rows) for split, rows in load("translation").items()} == {
        "train": 20_000,
        "validation": 1_000,
        "test": 1_000,
    }


def test_a_folder_is_read_and_announced(tmp_path, capsys):
    data = load("multi30k", write(tmp_path))
    assert (
        capsys.readouterr().out
        == f"multi30k: folder, {tmp_path / 'multi30k'} (3 train, 1 validation, 2"
        " test)\n"
    )
    assert data["train"][:] == ROWS
    assert data["test"][:] == {column: values[:2] for column, values in ROWS.items()}


def test_the_environment_sets_the_default_source_and_the_announcement_says_so(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("COURSE_DATA", str(write(tmp_path)))
    load("multi30k")
    assert "(set by COURSE_DATA)" in capsys.readouterr().out
    load("translation", source="embedded")
    assert "COURSE_DATA" not in capsys.readouterr().out


def test_the_announcement_can_be_silenced(capsys):
    logger = logging.getLogger("course_lib.data")
    logger.setLevel("WARNING")
    try:
        load("translation")
    finally:
        logger.setLevel("INFO")
    assert capsys.readouterr().out == ""


def test_it_never_falls_back_from_a_folder_to_what_is_embedded(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(write(tmp_path)))
    with refusal(
        r"train\.parquet does not exist.*set by COURSE_DATA.*embedded",
        FileNotFoundError,
    ):
        load("translation")


def test_the_columns_are_the_same_whatever_the_source(tmp_path):
    embedded = load("translation")
    (tmp_path / "translation").mkdir()
    for split, rows in embedded.items():
        rows.select(range(7)).to_parquet(
            str(tmp_path / "translation" / f"{split}.parquet")
        )
    from_folder = load("translation", tmp_path)
    assert (
        from_folder["train"].features
        == embedded["train"].features
        == DATASETS["translation"].features
    )
    assert from_folder["validation"][:] == embedded["validation"][:7]


def test_columns_that_the_card_does_not_list_are_left_out(tmp_path):
    data = load("multi30k", write(tmp_path, rows={"id": [1, 2, 3], **ROWS}))
    assert data["train"].column_names == ["en", "fr", "de"]


def test_german_is_there_only_where_the_source_has_it(tmp_path):
    without = load(
        "multi30k", write(tmp_path, rows={"fr": ROWS["fr"], "en": ROWS["en"]})
    )
    assert without["train"].column_names == ["en", "fr"]


# -- the hub, through datasets.load_dataset itself on a local repository of the same
# shape -----------------------------


@pytest.fixture
def hub_repository(tmp_path, monkeypatch):
    """A folder laid out as the hub copy is: parquet shards, a card that lists features,
    images not to be read."""
    folder = tmp_path / "repository"
    (folder / "data").mkdir(parents=True)
    features = Features(
        {name: Value("string") for name in ("en", "cs", "de", "fr")}
        | {"image": Value("binary")}
    )
    splits = ""
    for split, size in SIZES.items():
        rows = {name: values[:size] for name, values in ROWS.items()}
        rows |= {"cs": ["-"] * size, "image": [b"not to be read"] * size}
        Dataset.from_dict(rows, features).to_parquet(
            str(folder / "data" / f"{split}-00000-of-00001.parquet")
        )
        splits += f"  - split: {split}\n    path: data/{split}-*\n"
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{splits}---\n"
    )
    entry = DATASETS["multi30k"]
    local = dataclasses.replace(
        entry, hub=dataclasses.replace(entry.hub, path=str(folder))
    )
    monkeypatch.setitem(DATASETS, "multi30k", local)
    return folder


def test_the_hub_copy_gives_the_same_columns(hub_repository, capsys):
    data = load("multi30k", source="hub")
    assert data["train"][:] == ROWS
    assert {split: len(rows) for split, rows in data.items()} == SIZES
    assert (
        capsys.readouterr().out
        == f"multi30k: hub, {hub_repository} (3 train, 1 validation, 2 test)\n"
    )


def test_only_the_columns_of_text_are_asked_of_the_hub(monkeypatch):
    asked = []

    def record(path, **options):
        asked.append((path, options))
        return [{"en": "a", "fr": "b", "de": "c"}]

    monkeypatch.setattr("course_lib.data.loading.load_dataset", record)
    load("multi30k", source="hub")
    wanted = {"columns": ["en", "fr", "de"], "streaming": True}
    assert asked == [
        ("romrawinjp/multi30k", {"split": split, **wanted})
        for split in ("train", "validation", "test")
    ]


def test_a_hub_that_cannot_be_reached_is_said_in_words(monkeypatch):
    def fail(path, **options):
        raise ConnectionError("Couldn't reach 'romrawinjp/multi30k' on the Hub")

    monkeypatch.setattr("course_lib.data.loading.load_dataset", fail)
    with refusal(
        r"hub copy of multi30k .* could not be read: Couldn't reach .* or from a"
        r" folder",
        OSError,
    ):
        load("multi30k", source="hub")


def test_a_hub_copy_without_french_is_refused(monkeypatch):
    monkeypatch.setattr(
        "course_lib.data.loading.load_dataset",
        lambda path, **options: [{"en": "a", "de": "c"}],
    )
    with refusal(r"hub:romrawinjp/multi30k/train has no column 'fr'.*found en, de"):
        load("multi30k", source="hub")


# -- errors in words
# --------------------------------------------------------------------------------------


def test_an_unknown_data_set_names_the_known_ones_and_the_closest():
    known = (
        r"'translatoin'; did you mean 'translation'\? Known: cola, entities, .*,"
        r" translation, trec, .*, wnut17"
    )
    with refusal(known):
        load("translatoin")
    with refusal(r"no data set is called 'qqq'\. Known: cola"):
        load("qqq")


def test_a_benchmark_is_not_embedded_and_the_error_says_where_it_is():
    with refusal(
        r"multi30k is not embedded: it comes from hub or a folder.*convert-multi30k"
    ):
        load("multi30k")


def test_what_is_not_on_the_hub_is_not_looked_for_there():
    with refusal(
        "translation has no copy on the hub: it comes from embedded or a folder"
    ):
        load("translation", source="hub")


def test_a_source_that_is_no_folder_is_named(tmp_path):
    with refusal(
        r"huub' is neither 'embedded' nor 'hub' nor a folder that exists",
        FileNotFoundError,
    ):
        load("multi30k", tmp_path / "huub")


def test_a_missing_split_is_named(tmp_path):
    write(tmp_path, splits={"train": 3, "test": 1})
    with refusal(r"multi30k/validation\.parquet does not exist", FileNotFoundError):
        load("multi30k", tmp_path)


def test_a_missing_column_is_named_with_the_file_and_with_what_was_found(tmp_path):
    write(tmp_path, rows={"en": ROWS["en"], "french": ROWS["fr"]})
    with refusal(
        r"multi30k/train\.parquet has no column 'fr'; .* needs en, fr; found en,"
        r" french"
    ):
        load("multi30k", tmp_path)


def test_a_column_of_another_type_is_refused_and_not_turned_into_text(tmp_path):
    write(tmp_path, rows={"en": ROWS["en"], "fr": [1, 2, 3]})
    with refusal(
        r"train\.parquet: column 'fr' holds Value\('int64'\); expected"
        r" Value\('string'\)"
    ):
        load("multi30k", tmp_path)


def test_a_cell_without_text_is_refused(tmp_path):
    write(
        tmp_path,
        rows={"en": ROWS["en"], "fr": ["Un homme dort.", None, "Un bateau rouge."]},
    )
    with refusal(r"train\.parquet: column 'fr' has no value in 1 of 3 rows"):
        load("multi30k", tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    write(tmp_path)
    file = tmp_path / "multi30k" / "validation.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    with refusal(r"multi30k/validation\.parquet cannot be read as parquet"):
        load("multi30k", tmp_path)


def test_text_that_another_program_wrote_as_large_strings_is_accepted(tmp_path):
    write(tmp_path)
    large = Features({"en": Value("large_string"), "fr": Value("large_string")})
    rows = Dataset.from_dict({"en": ROWS["en"], "fr": ROWS["fr"]}, large)
    rows.to_parquet(str(tmp_path / "multi30k" / "train.parquet"))
    assert load("multi30k", tmp_path)["train"].features == DATASETS["multi30k"].features


# -- the catalogue and its cards
# --------------------------------------------------------------------------------------


@for_each("entry", DATASETS.values())
def test_every_row_of_the_catalogue_states_each_fact(entry):
    columns = {*entry.features, *(entry.optional_features or {})}
    assert set(entry.column_notes) == columns
    for fact in (
        entry.title,
        entry.description,
        entry.licence,
        entry.citation,
        entry.get_it,
        *entry.quirks,
    ):
        assert len(fact.split()) > 3, fact
    assert entry.embedded or entry.hub or "a folder" in entry.get_it


def test_a_card_shows_figures_that_were_measured():
    """Counted by hand: lengths 3, 2, 12 in English; words a b c, a b, a..l; one
    crossing sentence of three."""
    feature = DATASETS["translation"].features
    assert feature == Features(
        {
            "en": Value("string"),
            "fr": Value("string"),
            "alignment": List(List(Value("int64"))),
        }
    )
    rows = Dataset.from_dict(
        {
            "en": ["a b c", "a b", "a b c d e f g h i j k l"],
            "fr": ["x y z", "x x", "x"],
            "alignment": [[[0, 0], [2, 1], [1, 2]], [[0, 0], [0, 1]], [[3, 0], [4, 0]]],
        },
        feature,
    )
    page = card(DATASETS["translation"], DatasetDict(train=rows))
    assert "| train | 3 | `en` | 2 | 3 | 12 | 12 |" in page
    assert "| train | 3 | `fr` | 1 | 2 | 3 | 3 |" in page
    assert "| 1 to 10 | 66.7% | 100.0% |" in page
    assert "| 11 to 20 | 33.3% | 0.0% |" in page
    assert "| gold links | 7 |" in page
    assert "| links per linked French word | 1.17 |" in page
    assert "| English words linked to two French words or more | 1 |" in page
    assert "| sentences in which at least two links cross | 33.3% |" in page
    assert "- `alignment`: d–x, e–x" in page


def test_a_card_without_the_data_has_no_figures_and_says_why():
    page = card(DATASETS["multi30k"], None)
    figures = page.split("## Figures")[1]
    assert not re.search(r"\d", figures.replace("multi30k", ""))
    assert "measured, never typed" in figures


def test_rows_are_printed_only_where_the_licence_lets_a_page_print_them(tmp_path):
    page = card(DATASETS["multi30k"], load("multi30k", write(tmp_path)))
    assert "Un homme dort" not in page
    assert "| train | 3 | `fr` | 3 | 3 | 3 | 8 |" in page


def test_the_command_writes_a_page_for_each_data_set_with_its_label(
    tmp_path, monkeypatch
):
    """Of two data sets here; the pages of all are the site's (tests/book)."""
    names = ["senses", "trec"]
    monkeypatch.setattr(cards, "write_cards", partial(cards.write_cards, names=names))
    written = run("cards", tmp_path / "cards")
    pages = [tmp_path / "cards" / f"{name}.md" for name in names]
    assert written.exit_code == 0
    assert sorted((tmp_path / "cards").iterdir()) == pages
    for name, page in zip(names, pages, strict=True):
        assert page.read_text(encoding="utf-8").startswith(
            f"(data-{name})=\n# `{name}`\n"
        )
        assert f"wrote {page}" in written.stdout.replace("\n", "")


def test_a_card_is_measured_on_the_folder_in_course_data_where_it_has_the_data_set(
    tmp_path, monkeypatch
):
    assert available_source(DATASETS["multi30k"]) is None
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    assert available_source(DATASETS["multi30k"]) is None
    write(tmp_path)
    assert available_source(DATASETS["multi30k"]) == str(tmp_path)
    # needs a network: a build does not go there by itself
    monkeypatch.setenv("COURSE_DATA", "hub")
    assert available_source(DATASETS["multi30k"]) is None


def test_a_benchmark_cannot_be_generated():
    with refusal("multi30k is not embedded"):
        make_embedded(DATASETS["multi30k"])


# -- Multi30k from its repository, and the real thing
# ------------------------------------------------------------------


def raw_files(folder, counts=None):
    folder.mkdir()
    for stem, size in {"train": 3, "val": 1, "test_2016_flickr": 2}.items():
        for language, lines in ROWS.items():
            chosen = lines[: (counts or {}).get((stem, language), size)]
            with gzip.open(
                folder / f"{stem}.{language}.gz", "wt", encoding="utf-8"
            ) as file:
                file.write("".join(f"{line} \n" for line in chosen))
    return folder


def test_the_files_of_the_repository_become_a_folder_that_loads(tmp_path):
    written = convert(raw_files(tmp_path / "raw"), tmp_path / "data")
    assert [path.name for path in written] == [
        "train.parquet",
        "validation.parquet",
        "test.parquet",
    ]
    data = load("multi30k", tmp_path / "data")
    assert data["train"][:] == ROWS
    assert {split: len(rows) for split, rows in data.items()} == SIZES


def test_files_that_are_not_parallel_are_refused_before_anything_is_written(tmp_path):
    raw = raw_files(tmp_path / "raw", {("test_2016_flickr", "fr"): 1})
    with refusal(
        r"test_2016_flickr\.\*\.gz are not parallel: {'en': 2, 'fr': 1, 'de': 2}"
        r" lines"
    ):
        convert(raw, tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.real_data
def test_multi30k_has_its_published_size_and_is_raw_text(real_data):
    """Sizes: Elliott et al. (2016), table 1; test_2016_flickr."""
    data = load("multi30k", real_data)
    assert {split: len(rows) for split, rows in data.items()} == {
        "train": 29_000,
        "validation": 1_014,
        "test": 1_000,
    }
    assert data["train"].column_names == ["en", "fr", "de"]
    for rows in data.values():
        assert all(text.strip() for language in ("en", "fr") for text in rows[language])
    assert (
        data["train"][0]["fr"]
        == "Deux jeunes hommes blancs sont dehors près de buissons."
    )


# -- course data
# --------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_course_data_list_names_every_data_set():
    result = run("list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list(DATASETS)


def test_course_data_show_prints_the_card_of_a_folder(tmp_path):
    result = run("show", "multi30k", "--source", write(tmp_path))
    assert result.exit_code == 0
    assert "| validation | 1 | `de` | 3 | 3 | 3 | 3 |" in result.output


@pytest.mark.parametrize(
    ("name", "words"),
    [("multi31k", "did you mean 'multi30k'"), ("multi30k", "is not embedded")],
)
def test_course_data_show_fails_in_words_and_not_with_a_traceback(name, words):
    result = run("show", name)
    assert result.exit_code == 1
    assert words in result.output
    assert "Traceback" not in result.output


def test_course_data_converts_and_says_what_is_missing(tmp_path):
    assert (
        run(
            "convert-multi30k", raw_files(tmp_path / "raw"), tmp_path / "data"
        ).exit_code
        == 0
    )
    assert len(load("multi30k", tmp_path / "data")["train"]) == 3
    missing = run("convert-multi30k", tmp_path / "nothing", tmp_path / "other")
    assert missing.exit_code == 1
    assert "train.en.gz does not exist" in missing.output
