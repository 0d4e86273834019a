"""Words and tokens: the label stands on the first piece, as in the lecture, and as
``transformers`` aligns words."""

import pytest
import torch
import transformers
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_tokenizer

from course_lib.finetuning.tagging import align_labels, align_words, chunks, word_logits
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

X = -100
PIECES = "jim hen ##son was a puppet ##er . ##s b ##b é un"
TOKENIZERS = [tiny_tokenizer(PIECES, kind) for kind in (WordPiece, FastWordPiece)]
REFERENCE = transformers.BertTokenizerFast(
    tokenizer_object=tiny_tokenizer(PIECES).tokenizer
)
BOTH = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["slow", "fast"])


@BOTH
def test_the_example_of_the_lecture(tokenizer):
    """Devlin et al. 2018, version 1, section 4.3: Jim Hen ##son was a puppet ##eer ->
    I-PER I-PER X O O O X."""
    ids, labels = align_labels(
        ["Jim", "Henson", "was", "a", "puppeteer"], [1, 2, 0, 0, 0], tokenizer
    )
    tokens = [tokenizer.pieces[index] for index in ids]
    assert tokens == ["[CLS]", "jim", "hen", "##son", "was", "a", "[UNK]", "[SEP]"]
    assert labels == [X, 1, 2, X, 0, 0, 0, X]
    ids, labels = align_labels(
        ["Jim", "Henson", "was", "a", "puppeter"], [1, 2, 0, 0, 5], tokenizer
    )
    assert [tokenizer.pieces[index] for index in ids][-3:] == [
        "puppet",
        "##er",
        "[SEP]",
    ]
    assert labels == [X, 1, 2, X, 0, 0, 5, X, X]


words = st.lists(
    st.text("jimhensoa.bé ", min_size=1, max_size=7).filter(str.strip),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)  # a busy machine is no failure
@given(words, st.integers(3, 20) | st.none(), st.data())
def test_words_are_aligned_as_transformers_aligns_them(sentence, max_length, data):
    """``is_split_into_words`` and ``word_ids``, with its usual recipe: the first token
    of a word has its label."""
    labels = data.draw(
        st.lists(st.integers(0, 9), min_size=len(sentence), max_size=len(sentence))
    )
    options = (
        {} if max_length is None else {"truncation": True, "max_length": max_length}
    )
    encoding = REFERENCE(sentence, is_split_into_words=True, **options)
    seen, expected = set(), []
    for word in encoding.word_ids():
        expected.append(labels[word] if word is not None and word not in seen else X)
        seen.add(word)
    for tokenizer in TOKENIZERS:
        assert align_labels(sentence, labels, tokenizer, max_length) == (
            encoding["input_ids"],
            expected,
        )


@BOTH
def test_a_word_of_which_nothing_is_left_is_unknown_and_keeps_its_label(tokenizer):
    """A zero-width space, and a variation selector as emoji carry it: both vanish when
    text is cleaned."""
    ids, labels = align_labels(
        ["jim", "​", "was", "\x00", "a"], [3, 4, 5, 6, 7], tokenizer
    )
    assert [tokenizer.pieces[index] for index in ids] == [
        "[CLS]",
        "jim",
        "[UNK]",
        "was",
        "[UNK]",
        "a",
        "[SEP]",
    ]
    assert labels == [X, 3, 4, 5, 6, 7, X]


@BOTH
def test_words_that_are_cut_off_have_no_position(tokenizer):
    """[CLS] jim hen ##son [SEP]: of three words two fit, of the second all; then only
    its first piece."""
    assert align_words(["jim", "henson", "was"], tokenizer, max_length=5).first == [
        1,
        2,
    ]
    aligned = align_words(["jim", "henson", "was"], tokenizer, max_length=4)
    assert aligned.input_ids == [2, 5, 6, 3]
    assert aligned.first == [1, 2]
    assert align_words(["jim", "henson", "was"], tokenizer, max_length=3).first == [1]


def test_the_guess_for_a_word_is_that_of_its_first_piece():
    logits = torch.tensor(
        [[9.0, 0, 0], [0, 1, 2], [0, 9, 0], [3, 2, 1], [0, 9, 0], [9, 0, 0]]
    )
    assert word_logits(logits, [1, 3]).tolist() == [[0, 1, 2], [3, 2, 1]]
    assert word_logits(logits, []).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([], []), "there is no word to tag"),
        ((["a"], [1, 2]), "there are 1 words but 2 labels"),
        (("jim was", [0] * 7), "words is the text 'jim was'; pass a list of words"),
    ],
)
def test_what_cannot_be_aligned_is_refused(arguments, expected):
    with refusal(expected):
        align_labels(*arguments, TOKENIZERS[0])


def test_there_must_be_room_for_a_word():
    with refusal(r"max_length is 2; with \[CLS\] and \[SEP\], a word needs at least 3"):
        align_words(["jim"], TOKENIZERS[0], max_length=2)


@settings(deadline=None)  # a busy machine is no failure
@given(words, st.integers(4, 15))
def test_parts_of_a_long_sentence_hold_each_word_once_and_as_many_as_fit(
    sentence, max_length
):
    tokenizer = TOKENIZERS[0]
    sizes = [len(align_words([word], tokenizer).input_ids) - 2 for word in sentence]
    parts = chunks(sentence, tokenizer, max_length)
    assert [begin for begin, _ in parts] == [0, *(end for _, end in parts[:-1])]
    assert parts[-1][1] == len(sentence)
    for begin, end in parts:
        assert end > begin
        assert sum(sizes[begin:end]) <= max_length - 2 or end == begin + 1
        if end < len(sentence):
            assert sum(sizes[begin : end + 1]) > max_length - 2, (
                "one more word would have fitted"
            )
