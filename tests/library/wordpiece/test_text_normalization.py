"""BERT's basic tokenizer against its definition, and character by character against the
library."""

import inspect
import sys

import pytest
from cases import for_each
from expect import refusal
from hostile_text import texts
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.normalizers import NFD, BertNormalizer, Lowercase
from tokenizers.pre_tokenizers import BertPreTokenizer

from course_lab.texts import every_character
from course_lib.wordpiece.normalize import (
    Character,
    check_text,
    clean,
    is_chinese,
    is_control,
    is_punctuation,
    is_space,
    normalize,
    normalize_text,
    separate_chinese,
    split_words,
    strip_accents,
)
from course_lib.wordpiece.unicode_classes import category, decompose, lower_case


def characters(text: str) -> list[Character]:
    return [
        Character(character, index, index + 1) for index, character in enumerate(text)
    ]


def words(text: str, **options) -> list[str]:
    return [word.text for word in split_words(text, **options)]


class TestEachStep:
    def test_control_format_and_private_characters_go_and_take_no_place(self):
        assert clean(characters("a\x00b\u200bc\ue000\ufffdd")) == [
            Character("a", 0, 1),
            Character("b", 2, 3),
            Character("c", 4, 5),
            Character("d", 7, 8),
        ]

    def test_tab_line_feed_and_return_are_spaces_and_no_other_control_character(self):
        """``_is_whitespace`` in the code of Devlin et al. 2019; U+0085 and U+001C are
        spaces for ``str.isspace``."""
        assert (
            "".join(
                part.text for part in clean(characters("a\tb\nc\rd\x85e\x1cf\u2028g"))
            )
            == "a b c def g"
        )

    def test_each_chinese_character_is_a_word_and_kana_and_hangul_are_not(self):
        assert words("日本のカタ 한국") == ["日", "本", "のカタ", *words("한국")]
        assert [part[1:] for part in separate_chinese(characters("x中"))] == [
            (0, 1),
            (1, 2),
            (1, 2),
            (1, 2),
        ]

    @for_each(
        ("code", "expected"),
        [
            (0x33FF, False),
            (0x3400, True),
            (0x4DFF, False),
            (0x4E00, True),
            (0x9FFF, True),
            (0xA000, False),
            (0x2B81F, True),
            (0x2B820, False),
            (0x2B91F, False),
            (0x2B920, True),
            (0x2CEB0, False),
            (0x2FA1F, True),
        ],
    )
    def test_the_chinese_blocks_have_the_bounds_of_the_library(self, code, expected):
        """BERT's own list has 2B820 where the library has 2B920."""
        assert is_chinese(chr(code)) == expected

    def test_accents_go_whether_typed_with_the_letter_or_after_it(self):
        assert strip_accents(characters("é")) == [Character("e", 0, 1)]
        assert strip_accents(characters("e\u0301x")) == [
            Character("e", 0, 1),
            Character("x", 2, 3),
        ]

    def test_a_mark_that_is_no_accent_stays(self):
        """U+302E is of class Mc; it changes places with the accent before it, and the
        accent goes."""
        assert [part.text for part in strip_accents(characters("a\u0301\u302e"))] == [
            "a",
            "\u302e",
        ]

    def test_lower_case_looks_at_one_character_at_a_time(self):
        # and not ς, which str.lower puts at the end of a word
        assert normalize_text("ΟΔΟΣ") == "οδοσ"
        assert normalize_text("İ") == "i"
        # i and a dot, from one letter
        assert [part[1:] for part in normalize("İ", strip=False)] == [(0, 1), (0, 1)]

    def test_a_cased_model_keeps_case_and_accents(self):
        assert words("Émile Zola", lowercase=False) == ["Émile", "Zola"]
        assert words("Émile Zola", lowercase=False, strip=True) == ["Emile", "Zola"]
        assert words("Émile Zola", strip=False) == ["émile", "zola"]

    def test_letters_become_signs_before_the_cut(self):
        """U+226E is < with a stroke, of class Sm; without its stroke it is ASCII's <,
        which stands alone."""
        assert words("a\u226eb") == ["a", "<", "b"]

    def test_all_of_ascii_s_signs_are_punctuation_and_unicode_s_symbols_are_not(self):
        assert words("a$b^c`d~e") == list("a$b^c`d~e")
        assert words("a€b©c") == ["a€b©c"]
        assert words("a«b»c…") == ["a", "«", "b", "»", "c", "…"]


class TestWords:
    def test_a_word_knows_where_each_of_its_letters_comes_from(self):
        (word,) = split_words("  nai\u0308\u200bve ")
        assert word.text == "naive"
        assert word.spans == ((2, 3), (3, 4), (4, 5), (7, 8), (8, 9))
        assert (word.start, word.end) == (2, 9)

    def test_a_text_of_nothing_visible_has_no_word(self):
        assert words("") == words(" \t\u200b\u0301 ") == []

    @pytest.mark.parametrize("half", [0xD800, 0xDFFF])
    def test_half_a_surrogate_pair_is_refused(self, half):
        with refusal(rf"character 2 of the text is U\+{half:04X}, half of a surrogate"):
            split_words(f"ab{chr(half)}c")

    @pytest.mark.parametrize("text", [b"bytes", None, 7])
    def test_what_is_no_text_is_refused(self, text):
        """In the tests, beartype refuses first; the plain function is what a reader
        meets."""
        with refusal(f"of type {type(text).__name__}; pass a string", TypeError):
            inspect.unwrap(check_text)(text)

    @given(texts(), st.booleans(), st.sampled_from([None, True, False]))
    @settings(max_examples=40, deadline=None)
    def test_offsets_run_forward_within_the_text_and_words_are_what_they_span(
        self, text, lowercase, strip
    ):
        found = split_words(text, lowercase, strip)
        spans = [span for word in found for span in word.spans]
        assert all(0 <= start < end <= len(text) for start, end in spans)
        assert spans == sorted(spans)
        for word in found:
            assert len(word.spans) == len(word.text) > 0
            assert not any(
                is_space(character) or is_control(character) for character in word.text
            )
            assert len(word.text) == 1 or not any(map(is_punctuation, word.text))

    @given(texts())
    @settings(max_examples=40, deadline=None)
    def test_words_do_not_depend_on_what_stands_beyond_a_space(self, text):
        """What makes it right to look words up that were seen before."""
        assert words(f"{text} {text}") == 2 * words(text)

    @given(texts(), st.booleans(), st.sampled_from([None, True, False]))
    @settings(max_examples=100, deadline=None)
    def test_the_normalised_text_is_the_library_s(self, text, lowercase, strip):
        theirs = BertNormalizer(lowercase=lowercase, strip_accents=strip).normalize_str(
            text
        )
        assert normalize_text(text, lowercase, strip) == theirs
        assert words(text, lowercase=lowercase, strip=strip) == [
            word for word, _ in BertPreTokenizer().pre_tokenize_str(theirs)
        ]


class TestEveryCharacterOfUnicode:
    """All 1,112,064 of them. Python's tables are of one year, the library's of three
    others."""

    def test_there_are_as_many_as_unicode_says(self):
        assert len(every_character()) == sys.maxunicode + 1 - 2048 == 1_112_064

    @pytest.mark.slow
    def test_space_and_control_are_the_library_s(self):
        cleaner = BertNormalizer(
            handle_chinese_chars=False, strip_accents=False, lowercase=False
        )
        removed = {"\ufffd"}
        for character in every_character():
            expected = cleaner.normalize_str(f"a{character}b")
            found = (
                "ab"
                if is_control(character) or character in removed
                else f"a{character}b"
            )
            assert (("a b" if is_space(character) else found), character) == (
                expected,
                character,
            )

    @pytest.mark.slow
    def test_accents_are_the_library_s(self):
        stripper = BertNormalizer(
            clean_text=False,
            handle_chinese_chars=False,
            strip_accents=True,
            lowercase=False,
        )
        for character in every_character():
            found = "".join(
                part for part, _ in decompose(character) if category(part) != "Mn"
            )
            assert (found, character) == (stripper.normalize_str(character), character)

    @pytest.mark.slow
    def test_decomposition_and_lower_case_are_the_library_s(self):
        apart, small = NFD(), Lowercase()
        for character in every_character():
            assert "".join(
                part for part, _ in decompose(character)
            ) == apart.normalize_str(character), character
            assert lower_case(character) == small.normalize_str(character), character

    @pytest.mark.slow
    def test_punctuation_and_chinese_are_the_library_s(self):
        cutter = BertPreTokenizer()
        spacer = BertNormalizer(clean_text=False, strip_accents=False, lowercase=False)
        for character in every_character():
            alone = len(cutter.pre_tokenize_str(f"a{character}b")) == 3
            assert is_punctuation(character) == alone, character
            assert is_chinese(character) == (
                spacer.normalize_str(character) != character
            ), character
