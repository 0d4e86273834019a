"""A token store gives back what streamed into it, and refuses to be anything else than
what was written."""

import json
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.pretraining.token_store import (
    TokenStoreError,
    build_token_store,
    cached_token_store,
    fingerprint,
    open_token_store,
)

VOCAB_SIZE = 300


def letters(texts: list[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]


@settings(max_examples=60, deadline=None)
@given(
    documents=st.lists(st.lists(st.text("abc", max_size=4), max_size=5), max_size=9),
    at_once=st.integers(1, 12),
)
def test_documents_come_back_without_their_empty_sentences(
    tmp_path_factory, documents, at_once
):
    """Whatever is tokenised together: the portions must not show in the result."""
    path = tmp_path_factory.mktemp("store") / "s"
    expected = [
        kept for sentences in documents if (kept := [s for s in sentences if s])
    ]
    if not expected:
        with refusal("the corpus has no token; check the documents and the tokenizer"):
            build_token_store(documents, letters, path, VOCAB_SIZE, at_once=at_once)
        assert not list(path.parent.iterdir())
        return
    built = build_token_store(documents, letters, path, VOCAB_SIZE, at_once=at_once)
    for store in (built, open_token_store(path)):
        found = [
            ["".join(map(chr, ids.tolist())) for ids in store.document(i)]
            for i in range(len(store))
        ]
        assert found == expected
        assert store.sentences == sum(map(len, expected))
        assert store.ids.tolist() == [
            ord(c) for sentences in expected for text in sentences for c in text
        ]


@pytest.mark.parametrize(("vocab_size", "width"), [(65_536, 2), (65_537, 4)])
def test_ids_take_two_bytes_as_long_as_the_largest_fits(tmp_path, vocab_size, width):
    store = build_token_store(
        [["x"]], lambda texts: [[vocab_size - 1, 3]], tmp_path / "s", vocab_size
    )
    assert (store.ids.tolist(), store.ids.itemsize) == ([vocab_size - 1, 3], width)
    assert (tmp_path / "s" / "ids.bin").stat().st_size == 2 * width
    with refusal("read-only"):
        store.ids[0] = 1


@pytest.mark.parametrize("wrong", [-1, VOCAB_SIZE])
def test_an_id_outside_the_vocabulary_is_refused_and_leaves_nothing(tmp_path, wrong):
    with refusal(f"encode returned id {wrong}; the vocabulary has ids 0 to 299"):
        build_token_store(
            [["a"], ["b"]], lambda texts: [[5], [wrong]], tmp_path / "s", VOCAB_SIZE
        )
    assert not list(tmp_path.iterdir())


def test_mistakes_of_the_caller_are_told_in_words(tmp_path):
    with refusal("encode was given 2 texts and returned 1; one each is needed"):
        build_token_store([["a", "b"]], lambda texts: [[5]], tmp_path / "s", VOCAB_SIZE)
    with refusal(
        r"a document is a list of its sentences; it was one string. Pass \[text\]"
    ):
        build_token_store(["a text"], letters, tmp_path / "s", VOCAB_SIZE)
    store = build_token_store([["a"], ["b"]], letters, tmp_path / "s", VOCAB_SIZE)
    with refusal("document 2 was asked for; s has documents 0 to 1", IndexError):
        store.document(2)
    with refusal("exists already; open it, or choose another name", TokenStoreError):
        build_token_store([["a"]], letters, tmp_path / "s", VOCAB_SIZE)


def damaged(path, kind: str) -> None:
    ids, record = path / "ids.bin", path / "store.json"
    if kind == "cut short":
        ids.write_bytes(ids.read_bytes()[:-2])
    elif kind == "missing":
        (path / "documents.bin").unlink()
    elif kind == "record":
        record.write_text(record.read_text()[:-40])
    else:
        facts = json.loads(record.read_text())
        facts |= {
            "format": {"format": "token-store-9"},
            "vocabulary": {"vocab_size": 99},
        }[kind]
        record.write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cut short", "ids.bin has 10 bytes, but 12 were written"),
        ("missing", "No such file or directory"),
        ("record", "store is damaged or no token store"),
        ("format", "its format is 'token-store-9', this course writes 'token-store-1'"),
        ("vocabulary", "ids.bin has id 102, but the vocabulary ends at 98"),
    ],
)
def test_a_damaged_store_is_refused_in_words(tmp_path, kind, words):
    path = tmp_path / "store"
    build_token_store([["ab", "c"], ["def"]], letters, path, VOCAB_SIZE)
    damaged(path, kind)
    with refusal(words, TokenStoreError) as error:
        open_token_store(path)
    assert "Remove it and build it again" in str(error.value)


@pytest.mark.parametrize(
    "starts", [[0, 3, 2, 6], [1, 2, 3, 6], [0, 2, 3, 5], [0, 2, 2, 6]]
)
def test_boundaries_that_do_not_rise_to_the_end_are_refused(tmp_path, starts):
    path = tmp_path / "store"
    build_token_store([["ab", "c"], ["def"]], letters, path, VOCAB_SIZE)
    np.array(starts, "<i8").tofile(path / "sentences.bin")
    with refusal(
        r"the boundaries in sentences.bin do not rise from 0 to 6", TokenStoreError
    ):
        open_token_store(path)


def test_a_run_that_breaks_off_leaves_no_half_of_a_store(tmp_path):
    def breaking() -> Iterator[list[str]]:
        yield ["a"] * 5000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_token_store(breaking(), letters, tmp_path / "s", VOCAB_SIZE)
    assert not list(tmp_path.iterdir())


def test_the_same_ingredients_open_the_store_and_others_make_one(tmp_path):
    made = []

    def make(data: str):
        def documents() -> list[list[str]]:
            made.append(data)
            return [[data]]

        return cached_token_store(
            tmp_path, "demo", {"data": data}, documents, letters, VOCAB_SIZE
        )

    first, again, other = make("one"), make("one"), make("two")
    assert made == ["one", "two"]
    assert first.path == again.path == tmp_path / f"demo-{fingerprint({'data': 'one'})}"
    assert (again.made_from, other.ids.tolist()) == (
        {"data": "one"},
        letters(["two"])[0],
    )
    damaged(first.path, "cut short")
    with refusal("were written", TokenStoreError):
        make("one")


def test_a_corpus_streams_by_without_being_held_in_memory(tmp_path):
    """16 MB of ids; what is tokenised together (200 sentences of 200) takes 1 MB. NumPy
    tells tracemalloc, too."""

    def documents() -> Iterator[list[str]]:
        for _ in range(400):
            yield ["abcdefghij" * 20] * 50

    tracemalloc.start()
    try:
        store = build_token_store(
            documents(), letters, tmp_path / "s", vocab_size=2**17, at_once=200
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert store.ids.nbytes == 400 * 50 * 200 * 4
    assert peak < 0.15 * store.ids.nbytes, (
        f"{peak:,} bytes were in use at once for {store.ids.nbytes:,} of ids"
    )
