"""A tokenizer on disk: ``vocab.txt`` as BERT was published with, and ``tokenizer.json``
of the library `tokenizers`.

Both are data. What a file says is checked before it is used, and nothing in it is run.
A file that asks for something that `wordpiece.WordPiece` does not do is refused, not
read in part; only its settings for truncation and padding are left aside, because here
each call says these.
"""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.files import write_whole
from course_lib.wordpiece.normalize import check_text
from course_lib.wordpiece.training import PREFIX, SPECIAL_TOKENS

UNK, CLS, SEP = SPECIAL_TOKENS[1:4]


@dataclass(frozen=True)
class Settings:
    """How a tokenizer treats text, beside its vocabulary."""

    lowercase: bool = True
    strip: bool | None = None
    max_word_length: int = 100


def check_vocab(pieces: Sequence[str]) -> dict[str, int]:
    """Number the pieces, and refuse a list that is no vocabulary."""
    vocab: dict[str, int] = {}
    if isinstance(pieces, Mapping | Set):
        raise TypeError(
            "the vocabulary is a table or a set; pass a list of its pieces, in the"
            " order of their ids"
        )
    for index, piece in enumerate(pieces):
        check_text(piece)
        # nothing, or with a space or the end of a line, which would also break
        # vocab.txt
        if piece.split() != [piece]:
            raise ValueError(
                f"piece {index} of the vocabulary is {piece!r}; a piece has a character"
                " or more, no space"
            )
        if piece in vocab:
            raise ValueError(
                f"the vocabulary has {piece!r} twice, as {vocab[piece]} and as {index};"
                " remove one"
            )
        vocab[piece] = index
    if UNK not in vocab:
        raise ValueError(
            f"the vocabulary lacks {UNK}, which stands for words that it cannot write;"
            " add it"
        )
    return vocab


def save(folder: Path, pieces: Sequence[str], settings: Settings) -> None:
    """Write ``vocab.txt`` and ``tokenizer.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(
        _as_json(check_vocab(pieces), settings), ensure_ascii=False, indent=2
    )
    for name, text in (
        ("vocab.txt", "".join(f"{piece}\n" for piece in pieces)),
        ("tokenizer.json", content + "\n"),
    ):
        write_whole(folder / name, text)


def load(path: Path) -> tuple[list[str], Settings]:
    """Read a tokenizer."""
    if path.is_dir():
        path = next(
            (
                path / name
                for name in ("tokenizer.json", "vocab.txt")
                if (path / name).is_file()
            ),
            path,
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no tokenizer at {path}: pass a tokenizer.json, a vocab.txt or"
            " their folder"
        )
    try:
        # with or without a mark of the byte order in front
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix != ".json":
            pieces = [line.rstrip() for line in text.removesuffix("\n").split("\n")]
            check_vocab(pieces)
            return pieces, Settings()
        return _from_json(json.loads(text))
    except (
        ValueError,
        TypeError,
        RecursionError,
    ) as error:  # of encoding, of JSON, or of ours
        raise ValueError(f"{path} is no WordPiece tokenizer: {error}") from error


def _as_json(vocab: dict[str, int], settings: Settings) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocab),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": settings.strip,
            "lowercase": settings.lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _post_processors(vocab)[0],
        "decoder": {"type": "WordPiece", "prefix": PREFIX, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": UNK,
            "continuing_subword_prefix": PREFIX,
            "max_input_chars_per_word": settings.max_word_length,
            "vocab": vocab,
        },
    }


def _added_tokens(vocab: dict[str, int]) -> list[dict[str, Any]]:
    """The special tokens, as the library describes them: found in a text as they stand,
    before it is normalised."""
    flags = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    present = sorted(
        (token for token in SPECIAL_TOKENS if token in vocab), key=vocab.__getitem__
    )
    return [{"id": vocab[token], "content": token, **flags} for token in present]


def _post_processors(vocab: dict[str, int]) -> list[dict[str, Any] | None]:
    """The two ways in which the library writes down that [CLS] stands before a text and
    [SEP] behind it."""
    if SEP not in vocab or CLS not in vocab:
        return [None]
    single = [_mark(CLS, 0), _text("A", 0), _mark(SEP, 0)]
    marks = {
        token: {"id": token, "ids": [vocab[token]], "tokens": [token]}
        for token in (CLS, SEP)
    }
    return [
        {"type": "BertProcessing", "sep": [SEP, vocab[SEP]], "cls": [CLS, vocab[CLS]]},
        {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, _text("B", 1), _mark(SEP, 1)],
            "special_tokens": marks,
        },
    ]


def _mark(token: str, type_id: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": type_id}}


def _text(name: str, type_id: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": type_id}}


def _from_json(content: Any) -> tuple[list[str], Settings]:
    model = _part(
        content,
        "model",
        {"type": "WordPiece", "unk_token": UNK, "continuing_subword_prefix": PREFIX},
    )
    normalizer = _part(
        content,
        "normalizer",
        {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    )
    _part(content, "pre_tokenizer", {"type": "BertPreTokenizer"})
    vocab, length = model.get("vocab"), model.get("max_input_chars_per_word")
    lowercase, strip = normalizer.get("lowercase"), normalizer.get("strip_accents")
    if not isinstance(vocab, dict) or sorted(map(repr, vocab.values())) != sorted(
        map(repr, range(len(vocab)))
    ):
        raise ValueError(
            "model.vocab is not a table of pieces and their ids 0, 1, 2, ... without"
            " gaps"
        )
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise ValueError(
            f"model.max_input_chars_per_word is {length!r}; expected a whole number"
            " above 0"
        )
    if not isinstance(lowercase, bool) or not (
        strip is None or isinstance(strip, bool)
    ):
        raise ValueError(
            "normalizer.lowercase is true or false, and strip_accents is true, false or"
            " null"
        )
    pieces = sorted(vocab, key=vocab.__getitem__)
    check_vocab(pieces)
    if content.get("added_tokens") != _added_tokens(vocab):
        raise ValueError(
            f"added_tokens are not those of {', '.join(SPECIAL_TOKENS)} that its"
            " vocabulary has, each with its id, special and not normalized; other"
            " tokens beside the model's cannot be read"
        )
    if content.get("post_processor") not in _post_processors(vocab):
        raise ValueError(
            "post_processor does not put [CLS] before a text and [SEP] behind it, as"
            " BERT's does"
        )
    return pieces, Settings(lowercase, strip, length)


def _part(content: Any, name: str, expected: dict[str, Any]) -> dict[str, Any]:
    part = content.get(name) if isinstance(content, dict) else None
    if not isinstance(part, dict):
        raise ValueError(f"it has no part {name!r}")
    for key, value in expected.items():
        if part.get(key) != value:
            raise ValueError(
                f"{name}.{key} is {part.get(key)!r}; this course reads only {value!r}"
            )
    return part
