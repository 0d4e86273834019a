"""Files of tokenizers: what one program writes the other reads, and a damaged or
foreign file says what is wrong."""

import json

import pytest
from expect import refusal
from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.processors import TemplateProcessing

from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.files import Settings, load
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

VOCAB = ["a", *SPECIAL_TOKENS, "##é", "É", "中", "##\U0001d165"]
TEXT = "aé É中[MASK] Aé\u200b"
BOTH = pytest.mark.parametrize("kind", [WordPiece, FastWordPiece])


@pytest.fixture
def content(tmp_path):
    """A good tokenizer.json, to be spoiled."""
    WordPiece(VOCAB).save(tmp_path)
    return json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))


@BOTH
class TestThereAndBack:
    @pytest.mark.parametrize("options", [(), (False,), (True, False), (False, True, 7)])
    def test_a_saved_tokenizer_is_the_same_after_loading(self, kind, tmp_path, options):
        made = kind(VOCAB, *options)
        made.save(tmp_path / "deep" / "folder")
        loaded = kind.load(tmp_path / "deep" / "folder")
        assert (loaded.pieces, loaded.settings) == (made.pieces, made.settings)
        assert loaded.encode(TEXT) == made.encode(TEXT)
        assert sorted(
            path.name for path in (tmp_path / "deep" / "folder").iterdir()
        ) == ["tokenizer.json", "vocab.txt"]

    def test_the_library_reads_what_we_write(self, kind, tmp_path):
        made = kind(VOCAB, lowercase=False)
        made.save(tmp_path)
        theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(TEXT)
        ours = made.encode(TEXT)
        assert (theirs.ids, theirs.offsets, theirs.tokens) == (
            ours.ids,
            ours.offsets,
            ours.tokens,
        )
        theirs = BertWordPieceTokenizer(
            str(tmp_path / "vocab.txt"), lowercase=False
        ).encode(TEXT)
        assert (theirs.ids, theirs.offsets) == (ours.ids, ours.offsets)

    def test_we_read_what_the_library_writes(self, kind, tmp_path):
        theirs = BertWordPieceTokenizer(
            {piece: index for index, piece in enumerate(VOCAB)}, strip_accents=False
        )
        theirs.save(str(tmp_path / "tokenizer.json"))
        loaded = kind.load(tmp_path / "tokenizer.json")
        assert loaded.settings == Settings(lowercase=True, strip=False)
        assert loaded.encode(TEXT).ids == theirs.encode(TEXT).ids

    def test_we_read_the_template_that_newer_files_have(self, kind, tmp_path):
        theirs = FastWordPiece(VOCAB).tokenizer
        theirs.post_processor = TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0",
            pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 3), ("[SEP]", 4)],
        )
        theirs.enable_padding()
        theirs.save(str(tmp_path / "tokenizer.json"))
        expected = theirs.encode("a É", "a")
        found = kind.load(tmp_path).encode("a É", "a")
        assert (found.ids, found.type_ids) == (expected.ids, expected.type_ids)

    def test_a_vocabulary_alone_is_the_uncased_kind(self, kind, tmp_path):
        # as an editor may leave it
        (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf[UNK]\r\na\r\n##b \r\n")
        assert kind.load(tmp_path).pieces == ["[UNK]", "a", "##b"]
        assert kind.load(tmp_path / "vocab.txt").settings == Settings()

    @pytest.mark.real_data
    def test_the_published_vocabulary_is_read_and_written_byte_for_byte(
        self, kind, tmp_path, real_data
    ):
        published = real_data / "bert_base_uncased" / "vocab.txt"
        made = kind.load(published)
        assert len(made) == 30_522
        made.save(tmp_path)
        assert (tmp_path / "vocab.txt").read_bytes() == published.read_bytes()


class TestBadFiles:
    @pytest.mark.parametrize(
        ("path", "value", "words"),
        [
            (
                ["model", "type"],
                "BPE",
                "model.type is 'BPE'; this course reads only 'WordPiece'",
            ),
            (
                ["model", "continuing_subword_prefix"],
                "@@",
                "model.continuing_subword_prefix is '@@'",
            ),
            (["model", "vocab"], {"[UNK]": 0, "a": 2}, "ids 0, 1, 2, ... without gaps"),
            (
                ["model", "vocab"],
                {"[UNK]": 0, "a": True},
                "ids 0, 1, 2, ... without gaps",
            ),
            (
                ["model", "vocab"],
                {"[UNK]": 0, "a": 1.0},
                "ids 0, 1, 2, ... without gaps",
            ),
            (["model", "vocab"], ["[UNK]"], "ids 0, 1, 2, ... without gaps"),
            (["model", "vocab"], {"a": 0}, r"the vocabulary lacks \[UNK\]"),
            (["model", "vocab"], {"[UNK]": 0, "\ud800": 1}, "half of a surrogate pair"),
            (
                ["model", "max_input_chars_per_word"],
                "100",
                "max_input_chars_per_word is '100'",
            ),
            (
                ["model", "max_input_chars_per_word"],
                True,
                "max_input_chars_per_word is True",
            ),
            (["model"], None, "it has no part 'model'"),
            (
                ["normalizer", "lowercase"],
                "yes",
                "normalizer.lowercase is true or false",
            ),
            (["normalizer", "type"], "NFKC", "normalizer.type is 'NFKC'"),
            (["normalizer", "clean_text"], False, "normalizer.clean_text is False"),
            (
                ["pre_tokenizer"],
                {"type": "ByteLevel"},
                "pre_tokenizer.type is 'ByteLevel'",
            ),
            (["post_processor"], None, r"post_processor does not put \[CLS\]"),
            (["added_tokens"], [], "added_tokens are not those of"),
        ],
    )
    def test_a_file_that_asks_for_something_else_is_refused(
        self, tmp_path, content, path, value, words
    ):
        part = content
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        file = tmp_path / "tokenizer.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        with refusal(words) as caught:
            WordPiece.load(file)
        assert str(caught.value).startswith(f"{file} is no WordPiece tokenizer: ")

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            '"a"',
            "[" * 100_000,
            "__import__('os').system('true')",
            '{"model": {"type": [1]}}',
        ],
    )
    def test_a_damaged_file_is_refused(self, tmp_path, text):
        (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
        with refusal("is no WordPiece tokenizer"):
            WordPiece.load(tmp_path)

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("vocab.txt", b"[UNK]\n\xff\n", "utf-8"),
            ("vocab.txt", b"[UNK]\n\na\n", "piece 1 of the vocabulary is ''"),
            ("vocab.txt", b"", "piece 0 of the vocabulary is ''"),
            ("tokenizer.json", b"\x80\x04K\x01.", "utf-8"),  # a pickle
        ],
    )
    def test_bytes_that_are_no_text_and_lines_that_are_no_piece_are_refused(
        self, tmp_path, name, content, words
    ):
        (tmp_path / name).write_bytes(content)
        with refusal(words):
            WordPiece.load(tmp_path / name)

    def test_a_missing_file_is_named(self, tmp_path):
        for path in (tmp_path, tmp_path / "vocab.txt"):
            with refusal(
                r"there is no tokenizer at .*pass a tokenizer\.json, a vocab\.txt",
                FileNotFoundError,
            ):
                load(path)
