"""A BERT's files: what one program writes the other reads, old names too, and what does not fit says so."""

import dataclasses
import json
import os
import shutil
import warnings
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from bert_peer import lively
from safetensors.torch import load_file, save_file

from course_lib.bert import BertForPreTraining, BertModel
from course_lib.bert_config import BertConfig
from course_lib.bert_files import checkpoint_folder
from course_lib.bert_weights import published_names
from course_lib.fast_wordpiece import FastWordPiece
from course_lib.wordpiece import SPECIAL_TOKENS, WordPiece

CONFIG = BertConfig(
    vocab_size=31,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=17,
    max_position_embeddings=11,
    type_vocab_size=4,
    layer_norm_eps=1e-7,
    hidden_act="relu",
    hidden_dropout_prob=0.3,
)
TOKENS = torch.tensor([[3, 9, 30, 4], [3, 8, 4, 0]])
MASK, SEGMENTS = TOKENS != 0, torch.tensor([[0, 3, 1, 1], [0, 2, 2, 0]])
BOTH = pytest.mark.parametrize("kind", [BertModel, BertForPreTraining])


def outputs(model: torch.nn.Module) -> list[torch.Tensor]:
    """All that a model, ours or theirs, says of three tokens and four in segments, in its own precision."""
    with torch.no_grad():
        output = model(input_ids=TOKENS, attention_mask=MASK, token_type_ids=SEGMENTS)
    names = ("last_hidden_state", "pooler_output", "prediction_logits", "seq_relationship_logits")
    return [getattr(output, name) for name in names if hasattr(output, name)]


def same(one: torch.nn.Module, other: torch.nn.Module, tolerance: float = 1e-6) -> None:
    pairs = list(zip(outputs(one), outputs(other), strict=True))
    assert len(pairs) == 2
    for mine, its in pairs:
        torch.testing.assert_close(mine, its, rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True)
def every_warning_is_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("default", category=DeprecationWarning)  # of torch and transformers among themselves
        yield


@pytest.fixture
def model():
    return lively(CONFIG).float().eval()


@pytest.fixture
def folder(tmp_path, model):
    """A good checkpoint for pre-training, to be spoiled."""
    model.save_pretrained(tmp_path / "good")
    return tmp_path / "good"


def rewrite(folder: Path, change) -> None:
    """Let `change` edit the tensors of a checkpoint."""
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors) or tensors, folder / "model.safetensors", metadata={"format": "pt"})


def configure(folder: Path, **settings: object) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(content | settings), encoding="utf-8")


class TestThereAndBack:
    @BOTH
    def test_a_saved_model_is_the_same_after_loading(self, kind, tmp_path):
        made = lively(CONFIG, kind).float()
        made.save_pretrained(tmp_path / "deep" / "folder")
        loaded = kind.from_pretrained(tmp_path / "deep" / "folder")
        assert loaded.config == made.config
        assert loaded.state_dict().keys() == made.state_dict().keys()
        for name, tensor in made.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], tensor), name
        files = sorted(path.name for path in (tmp_path / "deep" / "folder").iterdir())
        assert files == ["config.json", "model.safetensors"]

    def test_a_loaded_model_does_not_drop_out_can_be_trained_and_is_tied(self, folder):
        loaded = BertForPreTraining.from_pretrained(folder)
        assert not any(module.training for module in loaded.modules())
        assert all(parameter.requires_grad and parameter.is_leaf for parameter in loaded.parameters())
        assert loaded.mlm_head.output.weight is loaded.bert.embeddings.token.weight
        assert len(list(loaded.parameters())) == len(list(BertForPreTraining(CONFIG).parameters()))

    def test_loading_draws_no_random_number(self, folder):
        torch.manual_seed(4)
        BertForPreTraining.from_pretrained(folder)
        found = torch.rand(3)
        torch.manual_seed(4)
        assert torch.equal(found, torch.rand(3))

    def test_training_a_loaded_model_leaves_its_file_alone(self, folder):
        before = (folder / "model.safetensors").read_bytes()
        loaded = BertForPreTraining.from_pretrained(folder)
        with torch.no_grad():
            for parameter in loaded.parameters():
                parameter.add_(1)
        assert (folder / "model.safetensors").read_bytes() == before
        loaded.save_pretrained(folder)  # over the file that it came from
        assert (folder / "model.safetensors").read_bytes() != before
        same(BertForPreTraining.from_pretrained(folder), loaded)

    def test_half_precision_in_the_file_is_float32_in_memory_unless_asked(self, tmp_path, model):
        model.save_pretrained(tmp_path, dtype=torch.float16)
        stored = load_file(tmp_path / "model.safetensors")
        assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
        loaded = BertForPreTraining.from_pretrained(tmp_path)
        assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
        same(loaded, model, tolerance=2e-2)
        double = BertForPreTraining.from_pretrained(tmp_path, dtype=torch.float64)
        assert {parameter.dtype for parameter in double.parameters()} == {torch.float64}
        assert model.mlm_head.dense.weight.dtype == torch.float32, "saving changed the model itself"

    @pytest.mark.parametrize("tokenizer_kind", [WordPiece, FastWordPiece])
    def test_the_tokenizer_goes_with_the_model(self, tmp_path, model, tokenizer_kind):
        tokenizer = tokenizer_kind([*SPECIAL_TOKENS, "We", "em", "##bed", "##s", "."], lowercase=False)
        model.save_pretrained(tmp_path, tokenizer)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
        loaded = tokenizer_kind.load(tmp_path)
        assert (loaded.pieces, loaded.settings) == (tokenizer.pieces, tokenizer.settings)
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert theirs("We embeds.")["input_ids"] == tokenizer.encode("We embeds.").ids == [2, 5, 6, 7, 8, 9, 3]
        assert theirs("we.")["input_ids"] == [2, 1, 9, 3]
        assert (theirs.model_max_length, theirs.mask_token_id, theirs.pad_token_id) == (11, 4, 0)

    def test_a_tokenizer_with_more_pieces_than_the_model_has_embeddings_is_refused(self, tmp_path, model):
        tokenizer = WordPiece([*SPECIAL_TOKENS, *(f"a{i}" for i in range(27))])
        with pytest.raises(ValueError, match="the tokenizer has 32 pieces, but the model has embeddings for 31"):
            model.save_pretrained(tmp_path / "none", tokenizer)
        assert not (tmp_path / "none").exists()

    def test_a_save_that_fails_leaves_the_earlier_checkpoint_and_no_debris(self, folder, model, monkeypatch):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}

        def full_disk(tensors, path, metadata):
            Path(path).write_bytes(b"half of it")
            raise OSError("No space left on device")

        monkeypatch.setattr("course_lib.bert_files.save_file", full_disk)
        with pytest.raises(OSError, match="No space left"):
            lively(CONFIG, seed=1).save_pretrained(folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


class TestTheirs:
    """transformers.BertModel and BertForPreTraining, through files in both directions."""

    @BOTH
    def test_they_read_what_we_write_and_miss_nothing(self, kind, tmp_path):
        ours = lively(CONFIG, kind).float().eval()
        ours.save_pretrained(tmp_path)
        theirs, told = getattr(transformers, kind.__name__).from_pretrained(tmp_path, output_loading_info=True)
        assert not any(told.values()), told
        same(ours, theirs.eval())
        assert theirs.config.to_dict()["architectures"] == [kind.__name__]
        automatic = transformers.AutoModel.from_pretrained(tmp_path).eval()
        same(ours if kind is BertModel else ours.bert, automatic)

    @BOTH
    def test_we_read_what_they_write(self, kind, tmp_path):
        settings = transformers.BertConfig(**dataclasses.asdict(CONFIG))
        torch.manual_seed(2)
        theirs = getattr(transformers, kind.__name__)(settings).eval()
        for parameter in theirs.parameters():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
        theirs.save_pretrained(tmp_path)
        ours = kind.from_pretrained(tmp_path)
        assert ours.config == CONFIG
        same(ours, theirs)

    def test_the_names_in_the_file_are_theirs(self, folder):
        with torch.device("meta"):
            theirs = transformers.BertForPreTraining(transformers.BertConfig(**dataclasses.asdict(CONFIG)))
        expected = {name: tuple(tensor.shape) for name, tensor in theirs.named_parameters()}
        stored = load_file(folder / "model.safetensors")
        assert {name: tuple(tensor.shape) for name, tensor in stored.items()} == expected


class TestOldAndOther:
    def test_gamma_and_beta_are_weight_and_bias(self, folder, model):
        """As the first published checkpoints name a layer norm's, after TensorFlow."""

        def old(tensors):
            return {
                name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
                for name, tensor in tensors.items()
            }

        rewrite(folder, old)
        assert "bert.embeddings.LayerNorm.gamma" in load_file(folder / "model.safetensors")
        same(BertForPreTraining.from_pretrained(folder), model)

    @pytest.mark.parametrize("prefix", [True, False])
    def test_the_encoder_s_names_may_have_the_prefix_or_not(self, tmp_path, model, prefix):
        model.bert.save_pretrained(tmp_path)
        names = list(load_file(tmp_path / "model.safetensors"))
        assert not any(name.startswith("bert.") for name in names)
        if prefix:
            rewrite(tmp_path, lambda tensors: {f"bert.{name}": tensor for name, tensor in tensors.items()})
        same(BertModel.from_pretrained(tmp_path), model.bert)

    def test_position_ids_and_a_second_copy_of_tied_weights_are_no_surprise(self, folder, model):
        def older(tensors):
            words, bias = tensors["bert.embeddings.word_embeddings.weight"], tensors["cls.predictions.bias"]
            copies = {"cls.predictions.decoder.weight": words.clone(), "cls.predictions.decoder.bias": bias.clone()}
            return tensors | copies | {"bert.embeddings.position_ids": torch.arange(11)[None]}

        rewrite(folder, older)
        same(BertForPreTraining.from_pretrained(folder), model)

    def test_the_output_layer_s_bias_may_have_its_other_name_alone(self, folder, model):
        rewrite(folder, lambda x: {n.replace("predictions.bias", "predictions.decoder.bias"): t for n, t in x.items()})
        same(BertForPreTraining.from_pretrained(folder), model)

    def test_heads_of_the_file_that_the_model_lacks_are_named(self, folder, model):
        rewrite(folder, lambda tensors: tensors | {"classifier.weight": torch.ones(2, 12)})
        with pytest.warns(
            UserWarning, match="left aside, since a BertModel has no place for it: classifier.weight, cls."
        ) as told:
            loaded = BertModel.from_pretrained(folder)
        assert len(told) == 1
        same(loaded, model.bert)
        with pytest.warns(UserWarning, match="a BertForPreTraining has no place for it: classifier.weight$"):
            same(BertForPreTraining.from_pretrained(folder), model)

    def test_heads_that_the_file_lacks_are_new_and_named(self, tmp_path, model):
        model.bert.save_pretrained(tmp_path)
        torch.manual_seed(6)
        with pytest.warns(
            UserWarning, match="lacks the head that guesses tokens and the next-sentence head: new wei"
        ) as told:
            loaded = BertForPreTraining.from_pretrained(tmp_path)
        assert len(told) == 1
        same(loaded.bert, model.bert)
        assert loaded.mlm_head.output.weight is loaded.bert.embeddings.token.weight
        torch.manual_seed(6)
        fresh = BertForPreTraining(CONFIG)
        assert torch.equal(loaded.nsp_head.output.weight, fresh.nsp_head.output.weight)
        assert torch.equal(loaded.mlm_head.dense.weight, fresh.mlm_head.dense.weight)
        assert (loaded.mlm_head.norm.weight == 1).all()
        assert not any(module.training for module in loaded.modules())

    @BOTH
    def test_a_masked_language_model_has_no_pooler_and_that_is_said(self, kind, folder, model):
        rewrite(folder, lambda x: {n: t for n, t in x.items() if "pooler" not in n and "seq_relationship" not in n})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            loaded = kind.from_pretrained(folder)
        text = " ".join(str(warning.message) for warning in told)
        assert ("lacks the pooler: " if kind is BertModel else "lacks the pooler and the next-sentence head: ") in text
        encoder = loaded if kind is BertModel else loaded.bert
        torch.testing.assert_close(outputs(encoder)[0], outputs(model.bert)[0])


def without(end: str):
    return lambda tensors: {name: tensor for name, tensor in tensors.items() if not name.endswith(end)}


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
            (without("self.key.weight"), r"lacks encoder\.layer\.0\.attention\.self\.key\.weight, encoder\.layer\.1"),
            (without("word_embeddings.weight"), r"the file lacks embeddings\.word_embeddings\.weight"),
            (without("pooler.dense.bias"), r"the file lacks pooler\.dense\.bias"),
            (without("transform.LayerNorm.bias"), r"the file lacks cls\.predictions\.transform\.LayerNorm\.bias"),
            (
                with_(f"{LAYER}attention.self.value.weight", torch.ones(12, 13)),
                r"layer\.1\.attention\.self\.value\.weight is \(12, 13\) in the file, but \(12, 12\) by the conf",
            ),
            (
                with_("bert.embeddings.word_embeddings.weight", torch.ones(30, 12)),
                r"word_embeddings\.weight is \(30, 12\) in the file, but \(31, 12\) by the configuration",
            ),
            (
                with_(f"{LAYER}intermediate.dense.bias", torch.ones(17, dtype=torch.int8)),
                r"intermediate\.dense\.bias is of type I8; only F16, BF16, F32, F64 can be read",
            ),
            (
                with_(f"{LAYER}attention.self.distance_embedding.weight", torch.ones(21, 4)),
                r"its encoder has encoder\.layer\.1\.attention\.self\.distance_embedding\.weight, which this",
            ),
            (
                with_("bert.encoder.layer.2.output.dense.bias", torch.ones(12)),
                "num_hidden_layers=2, but the file has 3",
            ),
            (
                with_("cls.predictions.decoder.weight", torch.ones(31, 12)),
                r"cls\.predictions\.decoder\.weight is not equal to embeddings\.word_embeddings\.weight, but",
            ),
            (
                with_("cls.predictions.decoder.bias", torch.ones(31)),
                r"decoder\.bias is not equal to cls\.predictions\.bias",
            ),
            (with_("pooler.dense.bias", torch.ones(12)), r"it has pooler\.dense\.bias twice, as .*pooler\.dense\.bias"),
            (with_("bert.embeddings.LayerNorm.gamma", torch.ones(12)), r"it has embeddings\.LayerNorm\.weight twice"),
            (lambda _: {"a": torch.ones(2)}, "num_hidden_layers=2, but the file has 0 layers"),
        ],
    )
    def test_weights_that_do_not_fit_are_refused_in_words(self, folder, change, message):
        rewrite(folder, change)
        with pytest.raises(ValueError, match=message) as error:
            BertForPreTraining.from_pretrained(folder)
        assert str(error.value).startswith(f"{folder / 'model.safetensors'} does not fit this BERT: ")

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            (
                {"position_embedding_type": "relative_key"},
                "position_embedding_type is 'relative_key'; .* only 'absolute'",
            ),
            ({"hidden_act": "gelu_new"}, "hidden_act is 'gelu_new'; choose one of relu, gelu"),
            ({"is_decoder": True}, "is_decoder is True; this BERT knows only False"),
            ({"add_cross_attention": True}, "add_cross_attention is True; this BERT knows only False"),
            ({"model_type": "roberta"}, "model_type is 'roberta'; this BERT knows only 'bert'"),
            ({"pruned_heads": {"0": [1]}}, r"pruned_heads is \{'0': \[1\]\}; this BERT knows only \{\}"),
            ({"quantization_config": {"bits": 4}}, "quantization_config is .*; this BERT knows only None"),
            ({"auto_map": {"AutoModel": "evil.Model"}}, r"auto_map is .*; this BERT knows only None"),
            ({"hidden_size": "12"}, "hidden_size is '12'; expected a whole number"),
            ({"hidden_size": True}, "hidden_size is True; expected a whole number"),
            ({"hidden_size": 12.0}, r"hidden_size is 12\.0; expected a whole number"),
            ({"hidden_act": ["gelu"]}, r"hidden_act is \['gelu'\]; expected a word"),
            ({"layer_norm_eps": None}, "layer_norm_eps is None; expected a number"),
            ({"layer_norm_eps": 10**400}, "int too large to convert to float"),
            ({"num_attention_heads": 5}, "hidden_size 12 does not divide into num_attention_heads=5"),
            ({"intermediate_size": 10**12}, "intermediate_size is 1000000000000; no BERT is so large"),
        ],
    )
    def test_a_configuration_of_something_else_is_refused_in_words(self, folder, settings, message):
        configure(folder, **settings)
        with pytest.raises(ValueError, match=message) as error:
            BertForPreTraining.from_pretrained(folder)
        assert str(error.value).startswith(f"{folder / 'config.json'} describes no BERT that this course can build: ")

    def test_a_configuration_of_a_giant_is_refused_before_memory_is_taken(self, folder):
        """Ten million everywhere would be 300 terabytes and, as many layers, days of building."""
        configure(folder, hidden_size=9_999_999, intermediate_size=10**7, vocab_size=10**7)
        with pytest.raises(
            ValueError, match=r"word_embeddings\.weight is \(31, 12\) in the file, but \(10000000, 9999999"
        ):
            BertModel.from_pretrained(folder)
        configure(folder, num_hidden_layers=10**7)
        with pytest.raises(ValueError, match="num_hidden_layers=10000000, but the file has 2 layers"):
            BertModel.from_pretrained(folder)

    def test_settings_that_are_absent_are_the_published_ones_and_others_do_not_matter(self, folder):
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        for name in ("hidden_dropout_prob", "initializer_range", "model_type", "architectures", "pad_token_id"):
            del content[name]
        others = {"transformers_version": "4.8.2", "gradient_checkpointing": False, "id2label": {"0": "x"}}
        (folder / "config.json").write_text(json.dumps(content | others), encoding="utf-8")
        loaded = BertForPreTraining.from_pretrained(folder)
        assert loaded.config == dataclasses.replace(CONFIG, hidden_dropout_prob=0.1)
        configure(folder, pad_token_id=None, layer_norm_eps=1)
        assert BertForPreTraining.from_pretrained(folder).bert.embeddings.token.padding_idx is None

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"{", "Expecting property name"),
            (b"[1, 2]", "it holds no table of settings"),
            (b"\xff\xfe", "codec can't decode"),
            (b"[" * 100_000, "recursion"),
        ],
    )
    def test_a_damaged_configuration_is_refused_in_words(self, folder, content, message):
        (folder / "config.json").write_bytes(content)
        with pytest.raises(ValueError, match=f"config.json describes no BERT that this course can build: .*{message}"):
            BertModel.from_pretrained(folder)

    @pytest.mark.parametrize("part", [0, 7, 200, -1])
    def test_a_truncated_file_of_weights_is_refused_in_words(self, folder, part):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:part])
        with pytest.raises(
            ValueError, match=r"model\.safetensors is no complete safetensors file \(.*\); fetch it again"
        ):
            BertModel.from_pretrained(folder)

    @pytest.mark.parametrize(
        ("present", "message"),
        [
            ([], "pass the folder that has it"),
            (["pytorch_model.bin"], "pytorch_model.bin is a pickle, which could run code"),
            (["model.safetensors.index.json"], "its weights are split over several files; join them"),
        ],
    )
    def test_a_folder_without_weights_says_what_is_there_instead(self, folder, present, message):
        (folder / "model.safetensors").unlink()
        for name in present:
            (folder / name).write_bytes(b"")
        with pytest.raises(FileNotFoundError, match=rf"there is no .*model\.safetensors: {message}"):
            BertModel.from_pretrained(folder)

    def test_a_pickle_is_never_opened(self, folder):
        """It lies where transformers would find it, and would leave a file if anything loaded it."""
        proof = folder / "proof"
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch " + os.fsencode(proof) + b"'\ntR.")
        with pytest.raises(FileNotFoundError, match="pickle"):
            BertModel.from_pretrained(folder)
        assert not proof.exists()

    def test_a_folder_without_configuration_is_refused_in_words(self, folder):
        (folder / "config.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"there is no .*config\.json, which says how large the model is"):
            BertModel.from_pretrained(folder)


class TestHub:
    def test_a_name_is_fetched_as_data_and_no_code(self, folder, model, monkeypatch):
        asked = []

        def snapshot(name, revision, allow_patterns):
            asked.append((name, revision, sorted(allow_patterns)))
            return str(folder)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
        same(BertForPreTraining.from_pretrained("someone/some-bert", revision="abc"), model)
        files = ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"]
        assert asked == [("someone/some-bert", "abc", files)]

    def test_a_folder_comes_before_the_hub(self, folder, monkeypatch):
        monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
        shutil.copytree(folder, folder.parent / "google-bert" / "bert-base-uncased")
        monkeypatch.chdir(folder.parent)
        assert BertForPreTraining.from_pretrained("google-bert/bert-base-uncased").config == CONFIG

    def test_without_a_network_the_error_says_what_to_do(self, monkeypatch, tmp_path):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        message = (
            r"someone/no-such-bert is no folder here, and the Hugging Face hub did not give it \(\w+\): check the name"
        )
        with pytest.raises(ConnectionError, match=message):
            BertModel.from_pretrained("someone/no-such-bert")

    @pytest.mark.parametrize(
        "name", ["./some/bert", "some/deep/bert", "../bert", "~/bert", "a b", "x/../y", "http://h/x"]
    )
    def test_what_cannot_be_a_name_on_the_hub_is_a_missing_folder(self, name):
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*; pass one that holds config"):
            checkpoint_folder(name)

    def test_a_path_is_never_looked_up_on_the_hub(self):
        with pytest.raises(FileNotFoundError, match="there is no folder someone/bert"):
            checkpoint_folder(Path("someone/bert"))


def test_every_parameter_has_a_published_name_of_its_own():
    with torch.device("meta"):
        model = BertForPreTraining(CONFIG)
    names = [name for ours, _ in model.named_parameters() for name in published_names(ours)]
    assert len(names) == len(set(names)) == 2 * 16 + 5 + 2 + 5 + 2
    assert published_names("mlm_head.output.weight") == published_names("bert.embeddings.token.weight")
