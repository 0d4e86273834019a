"""Files of a BERT that do not fit, are damaged, dangerous or missing are refused in
words, before a weight is read."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import huggingface_hub
import pytest
import torch
from bert_checkpoint import CONFIG, configure, rewrite
from bert_peer import lively
from cases import for_each
from expect import refusal

from course_lib.bert.files import checkpoint_folder, load_bert, save_bert
from course_lib.bert.model import BertForPreTraining


@pytest.fixture
def folder(tmp_path):
    """A good checkpoint for pre-training, to be spoiled."""
    save_bert(lively(CONFIG).float(), tmp_path / "good")
    return tmp_path / "good"


def without(end: str):
    return lambda tensors: {
        name: tensor for name, tensor in tensors.items() if not name.endswith(end)
    }


def with_(name: str, tensor: torch.Tensor):
    return lambda tensors: tensors | {name: tensor}


LAYER = "bert.encoder.layer.1."


class TestWhatDoesNotFit:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                without("layer.1.output.dense.bias"),
                r"the file lacks encoder\.layer\.1\.output\.dense\.bias; is it a BERT",
            ),
            (
                without("self.key.weight"),
                (
                    r"lacks encoder\.layer\.0\.attention\.self\.key\.weight,"
                    r" encoder\.layer\.1"
                ),
            ),
            (
                without("word_embeddings.weight"),
                r"the file lacks embeddings\.word_embeddings\.weight",
            ),
            (without("pooler.dense.bias"), r"the file lacks pooler\.dense\.bias"),
            (
                without("transform.LayerNorm.bias"),
                r"the file lacks cls\.predictions\.transform\.LayerNorm\.bias",
            ),
            (
                with_(f"{LAYER}attention.self.value.weight", torch.ones(12, 13)),
                (
                    r"layer\.1\.attention\.self\.value\.weight is \(12, 13\) in the"
                    r" file, but \(12, 12\) by the conf"
                ),
            ),
            (
                with_("bert.embeddings.word_embeddings.weight", torch.ones(30, 12)),
                (
                    r"word_embeddings\.weight is \(30, 12\) in the file, but \(31, 12\)"
                    r" by the configuration"
                ),
            ),
            (
                with_(
                    f"{LAYER}intermediate.dense.bias", torch.ones(17, dtype=torch.int8)
                ),
                (
                    r"intermediate\.dense\.bias is of type I8; only F16, BF16, F32, F64"
                    r" can be read"
                ),
            ),
            (
                with_(
                    f"{LAYER}attention.self.distance_embedding.weight",
                    torch.ones(21, 4),
                ),
                (
                    r"its encoder has"
                    r" encoder\.layer\.1\.attention\.self\.distance_embedding\.weight,"
                    r" which this"
                ),
            ),
            (
                with_("bert.encoder.layer.2.output.dense.bias", torch.ones(12)),
                "num_hidden_layers=2, but the file has 3",
            ),
            (
                with_("cls.predictions.decoder.weight", torch.ones(31, 12)),
                (
                    r"cls\.predictions\.decoder\.weight is not equal to"
                    r" embeddings\.word_embeddings\.weight, but"
                ),
            ),
            (
                with_("cls.predictions.decoder.bias", torch.ones(31)),
                r"decoder\.bias is not equal to cls\.predictions\.bias",
            ),
            (
                with_("pooler.dense.bias", torch.ones(12)),
                r"it has pooler\.dense\.bias twice, as .*pooler\.dense\.bias",
            ),
            (
                with_("bert.embeddings.LayerNorm.gamma", torch.ones(12)),
                r"it has embeddings\.LayerNorm\.weight twice",
            ),
            (
                lambda _: {"a": torch.ones(2)},
                "num_hidden_layers=2, but the file has 0 layers",
            ),
        ],
    )
    def test_weights_that_do_not_fit_are_refused_in_words(
        self, folder, change, message
    ):
        rewrite(folder, change)
        with refusal(message) as error:
            load_bert(folder, BertForPreTraining)
        assert str(error.value).startswith(
            f"{folder / 'model.safetensors'} does not fit this BERT: "
        )

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            (
                {"position_embedding_type": "relative_key"},
                "position_embedding_type is 'relative_key'; .* only 'absolute'",
            ),
            (
                {"hidden_act": "gelu_new"},
                "hidden_act is 'gelu_new'; choose one of relu, gelu",
            ),
            ({"is_decoder": True}, "is_decoder is True; this BERT knows only False"),
            (
                {"add_cross_attention": True},
                "add_cross_attention is True; this BERT knows only False",
            ),
            (
                {"model_type": "roberta"},
                "model_type is 'roberta'; this BERT knows only 'bert'",
            ),
            (
                {"pruned_heads": {"0": [1]}},
                r"pruned_heads is \{'0': \[1\]\}; this BERT knows only \{\}",
            ),
            (
                {"quantization_config": {"bits": 4}},
                "quantization_config is .*; this BERT knows only None",
            ),
            (
                {"auto_map": {"AutoModel": "evil.Model"}},
                r"auto_map is .*; this BERT knows only None",
            ),
            ({"hidden_size": "12"}, "hidden_size is '12'; expected a whole number"),
            ({"hidden_size": True}, "hidden_size is True; expected a whole number"),
            ({"hidden_size": 12.0}, r"hidden_size is 12\.0; expected a whole number"),
            ({"hidden_act": ["gelu"]}, r"hidden_act is \['gelu'\]; expected a word"),
            ({"layer_norm_eps": None}, "layer_norm_eps is None; expected a number"),
            ({"layer_norm_eps": 10**400}, "int too large to convert to float"),
            (
                {"num_attention_heads": 5},
                "hidden_size 12 does not divide into num_attention_heads=5",
            ),
            (
                {"intermediate_size": 10**12},
                "intermediate_size is 1000000000000; no BERT is so large",
            ),
        ],
    )
    def test_a_configuration_of_something_else_is_refused_in_words(
        self, folder, settings, message
    ):
        configure(folder, **settings)
        with refusal(message) as error:
            load_bert(folder, BertForPreTraining)
        assert str(error.value).startswith(
            f"{folder / 'config.json'} describes no BERT that this course can build: "
        )

    def test_a_configuration_of_a_giant_is_refused_before_memory_is_taken(self, folder):
        """Ten million everywhere would be 300 terabytes and, as many layers, days of
        building."""
        configure(
            folder, hidden_size=9_999_999, intermediate_size=10**7, vocab_size=10**7
        )
        with refusal(
            r"word_embeddings\.weight is \(31, 12\) in the file, but \(10000000,"
            r" 9999999"
        ):
            load_bert(folder)
        configure(folder, num_hidden_layers=10**7)
        with refusal("num_hidden_layers=10000000, but the file has 2 layers"):
            load_bert(folder)

    def test_settings_that_are_absent_are_the_published_ones_and_others_do_not_matter(
        self, folder
    ):
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        for name in (
            "hidden_dropout_prob",
            "initializer_range",
            "model_type",
            "architectures",
            "pad_token_id",
        ):
            del content[name]
        others = {
            "transformers_version": "4.8.2",
            "gradient_checkpointing": False,
            "id2label": {"0": "x"},
        }
        (folder / "config.json").write_text(
            json.dumps(content | others), encoding="utf-8"
        )
        loaded = load_bert(folder, BertForPreTraining)
        assert loaded.config == dataclasses.replace(CONFIG, hidden_dropout_prob=0.1)
        configure(folder, pad_token_id=None, layer_norm_eps=1)
        assert (
            load_bert(folder, BertForPreTraining).bert.embeddings.token.padding_idx
            is None
        )

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"{", "Expecting property name"),
            (b"[1, 2]", "it holds no table of settings"),
            (b"\xff\xfe", "codec can't decode"),
            (b"[" * 100_000, "recursion"),
        ],
    )
    def test_a_damaged_configuration_is_refused_in_words(
        self, folder, content, message
    ):
        (folder / "config.json").write_bytes(content)
        with refusal(
            f"config.json describes no BERT that this course can build: .*{message}"
        ):
            load_bert(folder)

    @pytest.mark.parametrize("part", [0, 7, 200, -1])
    def test_a_truncated_file_of_weights_is_refused_in_words(self, folder, part):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:part])
        with refusal(
            r"model\.safetensors is no complete safetensors file \(.*\); fetch it"
            r" again"
        ):
            load_bert(folder)

    @pytest.mark.parametrize(
        ("present", "message"),
        [
            ([], "pass the folder that has it"),
            (
                ["pytorch_model.bin"],
                "pytorch_model.bin is a pickle, which could run code",
            ),
            (
                ["model.safetensors.index.json"],
                "its weights are split over several files; join them",
            ),
        ],
    )
    def test_a_folder_without_weights_says_what_is_there_instead(
        self, folder, present, message
    ):
        (folder / "model.safetensors").unlink()
        for name in present:
            (folder / name).write_bytes(b"")
        with refusal(
            rf"there is no .*model\.safetensors: {message}", FileNotFoundError
        ):
            load_bert(folder)

    def test_a_pickle_is_never_opened(self, folder):
        """It lies where transformers would find it, and would leave a file if anything
        loaded it."""
        proof = folder / "proof"
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(
            b"cos\nsystem\n(S'touch " + os.fsencode(proof) + b"'\ntR."
        )
        with refusal("pickle", FileNotFoundError):
            load_bert(folder)
        assert not proof.exists()

    def test_a_folder_without_configuration_is_refused_in_words(self, folder):
        (folder / "config.json").unlink()
        with refusal(
            r"there is no .*config\.json, which says how large the model is",
            FileNotFoundError,
        ):
            load_bert(folder)


class TestHub:
    def test_a_name_is_fetched_as_data_and_no_code(self, folder, monkeypatch):
        asked = []

        def snapshot(name, revision, allow_patterns):
            asked.append((name, revision, sorted(allow_patterns)))
            return str(folder)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
        found = load_bert(
            "someone/some-bert", BertForPreTraining, revision="abc"
        ).state_dict()
        assert torch.equal(
            found["bert.pooler.dense.weight"],
            lively(CONFIG).bert.pooler.dense.weight.float(),
        )
        files = ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]
        assert asked == [("someone/some-bert", "abc", files)]

    def test_a_folder_comes_before_the_hub(self, folder, monkeypatch):
        monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
        shutil.copytree(folder, folder.parent / "google-bert" / "bert-base-uncased")
        monkeypatch.chdir(folder.parent)
        assert (
            load_bert("google-bert/bert-base-uncased", BertForPreTraining).config
            == CONFIG
        )

    def test_without_a_network_the_error_says_what_to_do(self, monkeypatch, tmp_path):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        message = (
            r"someone/no-such-bert is no folder here, and the Hugging Face hub did not"
            r" give it \(\w+\): check the name"
        )
        with refusal(message, ConnectionError):
            load_bert("someone/no-such-bert")

    @for_each(
        "name",
        [
            "./some/bert",
            "some/deep/bert",
            "../bert",
            "~/bert",
            "a b",
            "x/../y",
            "http://h/x",
        ],
    )
    def test_what_cannot_be_a_name_on_the_hub_is_a_missing_folder(self, name):
        with refusal(
            r"there is no folder .*; pass one that holds config", FileNotFoundError
        ):
            checkpoint_folder(name)

    def test_a_path_is_never_looked_up_on_the_hub(self):
        with refusal("there is no folder someone/bert", FileNotFoundError):
            checkpoint_folder(Path("someone/bert"))
