"""The layout of sentence-transformers: both ways, both generations of it, and in words
what is not read."""

import json
from pathlib import Path

import pytest
import torch
from expect import assert_near, refusal
from safetensors.torch import load_file, save_file
from sentence_peer import SENTENCES, TOKENIZER, encoder, lively_bert

from course_lib.bert.files import save_bert
from course_lib.sentence_bert.files import (
    POOLINGS,
    SentenceLayout,
    read_layout,
    write_layout,
)
from course_lib.sentence_bert.model import SentenceBert
from course_lib.wordpiece.fast import FastWordPiece


def change(path: Path, **settings: object) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | settings), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A saved sentence encoder that the test may spoil."""
    encoder(normalize=True, max_length=11).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(("normalize", "max_length"), [(True, 11), (False, None)])
def test_a_saved_model_comes_back_as_it_was(tmp_path, pooling, normalize, max_length):
    model = encoder(pooling=pooling, normalize=normalize, max_length=max_length)
    model.save_pretrained(tmp_path)
    back = SentenceBert.from_pretrained(tmp_path)
    assert (back.pooling, back.normalize, back.max_length) == (
        pooling,
        normalize,
        max_length or 19,
    )
    assert torch.equal(back.encode(SENTENCES), model.encode(SENTENCES))
    assert not back.training


def test_the_files_are_those_that_sentence_transformers_writes(folder):
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert names == sorted(
        [
            "1_Pooling",
            "1_Pooling/config.json",
            "2_Normalize",
            "config.json",
            "config_sentence_transformers.json",
            "model.safetensors",
            "modules.json",
            "sentence_bert_config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
        ]
    )
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    assert [(x["idx"], x["name"], x["path"], x["type"]) for x in modules] == [
        (0, "0", "", "sentence_transformers.models.Transformer"),
        (1, "1", "1_Pooling", "sentence_transformers.models.Pooling"),
        (2, "2", "2_Normalize", "sentence_transformers.models.Normalize"),
    ]
    assert json.loads(
        (folder / "1_Pooling" / "config.json").read_text(encoding="utf-8")
    ) == {
        "word_embedding_dimension": 15,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
    }


def test_weights_can_be_kept_in_half_the_size(folder):
    model = SentenceBert.from_pretrained(folder)
    model.save_pretrained(folder / "half", dtype=torch.float16)
    assert {
        tensor.dtype
        for tensor in load_file(folder / "half" / "model.safetensors").values()
    } == {torch.float16}
    back = SentenceBert.from_pretrained(folder / "half")
    assert_near(back.encode(SENTENCES), model.encode(SENTENCES), 5e-3)


def test_the_newer_names_of_the_library_are_read(folder):
    """As its version 6 writes them."""
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps(
            {"embedding_dimension": 15, "pooling_mode": "max", "include_prompt": True}
        ),
        encoding="utf-8",
    )
    kinds = [
        "base.modules.transformer.Transformer",
        "sentence_transformer.modules.pooling.Pooling",
    ]
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": path,
            "type": f"sentence_transformers.{kind}",
        }
        for i, (path, kind) in enumerate(zip(["", "1_Pooling"], kinds, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    assert read_layout(folder) == SentenceLayout("max", False, 11, False, 15, "", 19)


@pytest.mark.parametrize(
    ("length", "expected"), [(7, 7), (20, 19), (10**30, 19), (1e30, 19), (None, 19)]
)
def test_where_the_length_is_left_to_the_tokenizer_its_settings_are_read(
    folder, length, expected
):
    """As version 6 writes it: no max_seq_length, and a limit that may be above what the
    encoder has positions for."""
    settings = {
        "transformer_task": "feature-extraction",
        "modality_config": {
            "text": {"method": "forward", "method_output_name": "last_hidden_state"}
        },
        "module_output_name": "token_embeddings",
    }
    (folder / "sentence_bert_config.json").write_text(
        json.dumps(settings), encoding="utf-8"
    )
    change(folder / "tokenizer_config.json", model_max_length=length)
    assert SentenceBert.from_pretrained(folder).max_length == expected


def test_an_encoder_in_a_folder_of_its_own_is_found(tmp_path):
    """As versions before 2 of the library wrote it; no
    config_sentence_transformers.json, no length."""
    save_bert(lively_bert(4), tmp_path / "0_Transformer", TOKENIZER)
    write_layout(tmp_path, SentenceLayout("cls"), width=15)
    for name in ("sentence_bert_config.json", "config_sentence_transformers.json"):
        (tmp_path / name).unlink()
    modules = json.loads((tmp_path / "modules.json").read_text(encoding="utf-8"))
    modules[0]["path"] = "0_Transformer"
    (tmp_path / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    back = SentenceBert.from_pretrained(tmp_path)
    assert torch.equal(back.encode(SENTENCES), encoder(pooling="cls").encode(SENTENCES))


def test_a_file_without_a_pooler_is_read_quietly_and_gets_no_noise_for_one(
    folder, recwarn
):
    tensors = load_file(folder / "model.safetensors")
    kept = {
        name: tensor
        for name, tensor in tensors.items()
        if not name.startswith("pooler")
    }
    assert len(kept) == len(tensors) - 2
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    state = torch.random.get_rng_state()
    back = SentenceBert.from_pretrained(folder)
    assert torch.equal(torch.random.get_rng_state(), state), (
        "nobody's random numbers are used up"
    )
    assert [str(warning.message) for warning in recwarn] == []
    assert torch.equal(
        back.encode(SENTENCES), encoder(normalize=True, max_length=11).encode(SENTENCES)
    )
    back.save_pretrained(folder / "again")
    assert load_file(folder / "again" / "model.safetensors").keys() == kept.keys()


def test_small_letters_are_the_tokenizers_affair(folder):
    change(folder / "sentence_bert_config.json", do_lower_case=True)
    assert (
        SentenceBert.from_pretrained(folder)
        .encode(["BAD"])
        .equal(SentenceBert.from_pretrained(folder).encode(["bad"]))
    )
    FastWordPiece(TOKENIZER.pieces, lowercase=False).save(folder)
    with refusal("wants sentences in small letters, but its tokenizer keeps capitals"):
        SentenceBert.from_pretrained(folder)


MODULE = {
    "idx": 0,
    "name": "0",
    "path": "",
    "type": "sentence_transformers.models.Transformer",
}
POOLING = {
    "idx": 1,
    "name": "1",
    "path": "1_Pooling",
    "type": "sentence_transformers.models.Pooling",
}


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ({}, "holds no list of modules"),
        ([], "names no module; expected at least a Transformer and Pooling"),
        ([MODULE], "names Transformer; expected at least a Transformer and Pooling"),
        ([7], "a module has no type or no path"),
        ([MODULE | {"path": None}], "a module has no type or no path"),
        ([POOLING, MODULE], "module 0 is .*Pooling, where Transformer is expected"),
        ([MODULE, MODULE], "module 1 is .*Transformer, where Pooling is expected"),
        (
            [MODULE | {"type": "modeling.Transformer"}, POOLING],
            "module 0 is modeling.Transformer, where Transformer",
        ),
        (
            [MODULE, POOLING, POOLING | {"type": "sentence_transformers.models.Dense"}],
            "Dense, where Normalize is expe",
        ),
        ([MODULE | {"path": ".."}, POOLING], "the path of Transformer is '..'"),
        (
            [MODULE, POOLING | {"path": "../1_Pooling"}],
            "the path of Pooling is '../1_Pooling'",
        ),
        ([MODULE, POOLING | {"path": "/etc"}], "the path of Pooling is '/etc'"),
        ([MODULE, POOLING | {"path": "..\\x"}], "the path of Pooling is"),
        ([MODULE, POOLING | {"path": "a\0"}], "the path of Pooling is"),
    ],
)
def test_modules_that_are_not_known_are_refused(folder, modules, words):
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with refusal(words):
        SentenceBert.from_pretrained(folder)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True},
            "asks for the pooling .*'cls'.*'mean'",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_tokens": False},
            r"asks for the pooling \[\]",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode": "lasttoken"},
            "asks for the pooling .*'lasttoken'.*; this course",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode": ["mean", "max"]},
            "asks for the pooling",
        ),
        ("1_Pooling/config.json", {"pooling_mode": {"a": 1}}, "asks for the pooling"),
        ("1_Pooling/config.json", {"pooling_mode": [[]]}, "asks for the pooling"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_weightedmean_tokens": True},
            "asks for the pooling .*weightedmean",
        ),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt is False"),
        (
            "1_Pooling/config.json",
            {"word_embedding_dimension": 16},
            "states of 16 features, but its encoder has 15",
        ),
        (
            "1_Pooling/config.json",
            {"word_embedding_dimension": "15"},
            "the width of its states is '15'",
        ),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 20},
            "max_length is 20, but this BERT has 19 positions",
        ),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 0},
            "max_seq_length is 0; expected a whole number above 0",
        ),
        (
            "sentence_bert_config.json",
            {"max_seq_length": True},
            "max_seq_length is True",
        ),
        (
            "sentence_bert_config.json",
            {"transformer_task": "fill-mask"},
            "transformer_task is 'fill-mask'",
        ),
        (
            "sentence_bert_config.json",
            {"modality_config": {"image": {}}},
            "modality_config is",
        ),
        (
            "tokenizer_config.json",
            {"model_max_length": "8"},
            "model_max_length is '8'; expected a whole number",
        ),
        (
            "tokenizer_config.json",
            {"model_max_length": 0},
            "model_max_length is 0; expected a whole number",
        ),
        (
            "sentence_bert_config.json",
            {"do_lower_case": 1},
            "do_lower_case is 1; expected true or false",
        ),
        (
            "config_sentence_transformers.json",
            {"default_prompt_name": "query"},
            "default_prompt_name is 'query', a text",
        ),
    ],
)
def test_settings_that_would_change_the_vectors_are_refused(
    folder, name, settings, words
):
    change(folder / name, **settings)
    with refusal(words):
        SentenceBert.from_pretrained(folder)


def test_a_normalisation_of_something_else_is_refused(folder):
    (folder / "2_Normalize" / "config.json").write_text(
        '{"module_input_name": "token_embeddings"}', encoding="utf-8"
    )
    with refusal("module_input_name is 'token_embeddings'"):
        SentenceBert.from_pretrained(folder)


@pytest.mark.parametrize(
    "name", ["modules.json", "1_Pooling/config.json", "sentence_bert_config.json"]
)
@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"null", b"[" * 100_000], ids=repr
)
def test_a_damaged_file_is_named(folder, name, content):
    (folder / name).write_bytes(content)
    with refusal(f"{name} (is no JSON|holds no)"):
        SentenceBert.from_pretrained(folder)


def test_a_plain_bert_is_told_how_to_become_a_sentence_encoder(folder):
    (folder / "modules.json").unlink()
    with refusal(
        "For a plain BERT decide that yourself: SentenceBert", FileNotFoundError
    ):
        SentenceBert.from_pretrained(folder)


def test_what_is_missing_is_named(folder):
    (folder / "1_Pooling" / "config.json").unlink()
    with refusal(
        r"1_Pooling/config.json, which the sentence encoder needs", FileNotFoundError
    ):
        SentenceBert.from_pretrained(folder)


def test_a_hub_is_asked_for_the_layout_and_for_nothing_that_runs(folder, monkeypatch):
    asked = []

    def snapshot(name, revision, allow_patterns):
        asked.append((name, revision))
        kept = {
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file()
        }
        assert kept - set(allow_patterns) == set(), (
            "each file that we write would be fetched"
        )
        assert all(
            pattern.endswith((".json", ".txt", ".safetensors"))
            for pattern in allow_patterns
        )
        assert not any("*" in pattern for pattern in allow_patterns)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert (
        SentenceBert.from_pretrained("somebody/sentences", revision="abc").max_length
        == 11
    )
    assert asked == [("somebody/sentences", "abc")]


def test_pickled_weights_are_not_opened(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with refusal("is a pickle, which could run code", FileNotFoundError):
        SentenceBert.from_pretrained(folder)


@pytest.mark.real_data
def test_the_published_checkpoint_is_read_and_written_as_it_was_published(
    real_data, tmp_path
):
    """Its own files say mean pooling, normalisation and 256 tokens; what is saved says
    the same."""
    published = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if not published.is_dir():
        pytest.skip(f"no real checkpoint at {published}")
    model = SentenceBert.from_pretrained(published)
    assert (model.pooling, model.normalize, model.max_length, model.hidden_size) == (
        "mean",
        True,
        256,
        384,
    )
    texts = [
        "A man is eating food.",
        "A man eats a piece of bread.",
        "The girl is carrying a baby.",
    ]
    vectors = model.encode(texts)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.6 > 0.2 > cosines[0, 2], (
        "the model card's kind of sentences: food with bread, not a baby"
    )
    model.save_pretrained(tmp_path, dtype=torch.float16)
    ours, theirs = read_layout(tmp_path), read_layout(published)
    assert ours == theirs
    mine = load_file(tmp_path / "model.safetensors")
    other = load_file(published / "model.safetensors")
    assert all(torch.equal(mine[name], other[name]) for name in mine)
    assert other.keys() - mine.keys() <= {"embeddings.position_ids"}
    assert torch.equal(SentenceBert.from_pretrained(tmp_path).encode(texts), vectors)
