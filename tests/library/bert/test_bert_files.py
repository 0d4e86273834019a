"""A BERT's files: what one program writes the other reads, old names too."""

import dataclasses
import warnings
from pathlib import Path

import pytest
import torch
import transformers
from bert_checkpoint import CONFIG, rewrite
from bert_peer import lively
from expect import refusal
from safetensors.torch import load_file

from course_lib.bert.files import load_bert, save_bert
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.bert.weights import published_name
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

TOKENS = torch.tensor([[3, 9, 30, 4], [3, 8, 4, 0]])
MASK, SEGMENTS = TOKENS != 0, torch.tensor([[0, 3, 1, 1], [0, 2, 2, 0]])
BOTH = pytest.mark.parametrize("kind", [BertModel, BertForPreTraining])


def outputs(model: torch.nn.Module) -> list[torch.Tensor]:
    """All that a model, ours or theirs, says of three tokens and four in segments, in
    its own precision."""
    with torch.no_grad():
        output = model(input_ids=TOKENS, attention_mask=MASK, token_type_ids=SEGMENTS)
    names = (
        "last_hidden_state",
        "pooler_output",
        "prediction_logits",
        "seq_relationship_logits",
    )
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
        # of torch and transformers among themselves
        warnings.filterwarnings("default", category=DeprecationWarning)
        yield


@pytest.fixture
def model():
    return lively(CONFIG).float().eval()


@pytest.fixture
def folder(tmp_path, model):
    """A good checkpoint for pre-training, to be spoiled."""
    save_bert(model, tmp_path / "good")
    return tmp_path / "good"


class TestThereAndBack:
    @BOTH
    def test_a_saved_model_is_the_same_after_loading(self, kind, tmp_path):
        made = lively(CONFIG, kind).float()
        save_bert(made, tmp_path / "deep" / "folder")
        loaded = load_bert(tmp_path / "deep" / "folder", kind)
        assert loaded.config == made.config
        assert loaded.state_dict().keys() == made.state_dict().keys()
        for name, tensor in made.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], tensor), name
        files = sorted(path.name for path in (tmp_path / "deep" / "folder").iterdir())
        assert files == ["config.json", "model.safetensors"]

    def test_a_loaded_model_does_not_drop_out_can_be_trained_and_is_tied(self, folder):
        loaded = load_bert(folder, BertForPreTraining)
        assert not any(module.training for module in loaded.modules())
        assert all(
            parameter.requires_grad and parameter.is_leaf
            for parameter in loaded.parameters()
        )
        assert loaded.mlm_head.output.weight is loaded.bert.embeddings.token.weight
        assert len(list(loaded.parameters())) == len(
            list(BertForPreTraining(CONFIG).parameters())
        )

    def test_loading_draws_no_random_number(self, folder):
        torch.manual_seed(4)
        load_bert(folder, BertForPreTraining)
        found = torch.rand(3)
        torch.manual_seed(4)
        assert torch.equal(found, torch.rand(3))

    def test_training_a_loaded_model_leaves_its_file_alone(self, folder):
        before = (folder / "model.safetensors").read_bytes()
        loaded = load_bert(folder, BertForPreTraining)
        with torch.no_grad():
            for parameter in loaded.parameters():
                parameter.add_(1)
        assert (folder / "model.safetensors").read_bytes() == before
        save_bert(loaded, folder)  # over the file that it came from
        assert (folder / "model.safetensors").read_bytes() != before
        same(load_bert(folder, BertForPreTraining), loaded)

    def test_half_precision_in_the_file_is_float32_in_memory_unless_asked(
        self, tmp_path, model
    ):
        save_bert(model, tmp_path, dtype=torch.float16)
        stored = load_file(tmp_path / "model.safetensors")
        assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
        loaded = load_bert(tmp_path, BertForPreTraining)
        assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
        same(loaded, model, tolerance=2e-2)
        double = load_bert(tmp_path, BertForPreTraining, dtype=torch.float64)
        assert {parameter.dtype for parameter in double.parameters()} == {torch.float64}
        assert model.mlm_head.dense.weight.dtype == torch.float32, (
            "saving changed the model itself"
        )

    @pytest.mark.parametrize("tokenizer_kind", [WordPiece, FastWordPiece])
    def test_the_tokenizer_goes_with_the_model(self, tmp_path, model, tokenizer_kind):
        tokenizer = tokenizer_kind(
            [*SPECIAL_TOKENS, "We", "em", "##bed", "##s", "."], lowercase=False
        )
        save_bert(model, tmp_path, tokenizer)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
        }
        loaded = tokenizer_kind.load(tmp_path)
        assert (loaded.pieces, loaded.settings) == (
            tokenizer.pieces,
            tokenizer.settings,
        )
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert (
            theirs("We embeds.")["input_ids"]
            == tokenizer.encode("We embeds.").ids
            == [2, 5, 6, 7, 8, 9, 3]
        )
        assert theirs("we.")["input_ids"] == [2, 1, 9, 3]
        assert (theirs.model_max_length, theirs.mask_token_id, theirs.pad_token_id) == (
            11,
            4,
            0,
        )

    def test_a_tokenizer_with_more_pieces_than_the_model_has_embeddings_is_refused(
        self, tmp_path, model
    ):
        tokenizer = WordPiece([*SPECIAL_TOKENS, *(f"a{i}" for i in range(27))])
        with refusal(
            "the tokenizer has 32 pieces, but the model has embeddings for 31"
        ):
            save_bert(model, tmp_path / "none", tokenizer)
        assert not (tmp_path / "none").exists()

    def test_a_save_that_fails_leaves_the_earlier_checkpoint_and_no_debris(
        self, folder, model, monkeypatch
    ):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}

        def full_disk(tensors, path, metadata):
            Path(path).write_bytes(b"half of it")
            raise OSError("No space left on device")

        monkeypatch.setattr("course_lib.bert.files.save_file", full_disk)
        with refusal("No space left", OSError):
            save_bert(lively(CONFIG, seed=1), folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


class TestTheirs:
    """transformers.BertModel and BertForPreTraining, through files in both
    directions."""

    @BOTH
    def test_they_read_what_we_write_and_miss_nothing(self, kind, tmp_path):
        ours = lively(CONFIG, kind).float().eval()
        save_bert(ours, tmp_path)
        theirs, told = getattr(transformers, kind.__name__).from_pretrained(
            tmp_path, output_loading_info=True
        )
        assert not any(told.values()), told
        same(ours.double(), theirs.double().eval())
        assert theirs.config.to_dict()["architectures"] == [kind.__name__]
        automatic = transformers.AutoModel.from_pretrained(tmp_path).double().eval()
        same(ours if kind is BertModel else ours.bert, automatic)

    @BOTH
    def test_we_read_what_they_write(self, kind, tmp_path):
        settings = transformers.BertConfig(**dataclasses.asdict(CONFIG))
        torch.manual_seed(2)
        theirs = getattr(transformers, kind.__name__)(settings).eval()
        for parameter in theirs.parameters():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
        theirs.save_pretrained(tmp_path)
        ours = load_bert(tmp_path, kind)
        assert ours.config == CONFIG
        same(ours, theirs)

    def test_the_names_in_the_file_are_theirs(self, folder):
        with torch.device("meta"):
            theirs = transformers.BertForPreTraining(
                transformers.BertConfig(**dataclasses.asdict(CONFIG))
            )
        expected = {
            name: tuple(tensor.shape) for name, tensor in theirs.named_parameters()
        }
        stored = load_file(folder / "model.safetensors")
        assert {
            name: tuple(tensor.shape) for name, tensor in stored.items()
        } == expected


class TestOldAndOther:
    def test_gamma_and_beta_are_weight_and_bias(self, folder, model):
        """As the first published checkpoints name a layer norm's, after TensorFlow."""

        def old(tensors):
            return {
                name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                    "LayerNorm.bias", "LayerNorm.beta"
                ): tensor
                for name, tensor in tensors.items()
            }

        rewrite(folder, old)
        assert "bert.embeddings.LayerNorm.gamma" in load_file(
            folder / "model.safetensors"
        )
        same(load_bert(folder, BertForPreTraining), model)

    @pytest.mark.parametrize("prefix", [True, False])
    def test_the_encoder_s_names_may_have_the_prefix_or_not(
        self, tmp_path, model, prefix
    ):
        save_bert(model.bert, tmp_path)
        names = list(load_file(tmp_path / "model.safetensors"))
        assert not any(name.startswith("bert.") for name in names)
        if prefix:
            rewrite(
                tmp_path,
                lambda tensors: {
                    f"bert.{name}": tensor for name, tensor in tensors.items()
                },
            )
        same(load_bert(tmp_path), model.bert)

    def test_position_ids_and_a_second_copy_of_tied_weights_are_no_surprise(
        self, folder, model
    ):
        def older(tensors):
            words = tensors["bert.embeddings.word_embeddings.weight"]
            bias = tensors["cls.predictions.bias"]
            copies = {
                "cls.predictions.decoder.weight": words.clone(),
                "cls.predictions.decoder.bias": bias.clone(),
            }
            return (
                tensors
                | copies
                | {"bert.embeddings.position_ids": torch.arange(11)[None]}
            )

        rewrite(folder, older)
        same(load_bert(folder, BertForPreTraining), model)

    def test_the_output_layer_s_bias_may_have_its_other_name_alone(self, folder, model):
        rewrite(
            folder,
            lambda x: {
                n.replace("predictions.bias", "predictions.decoder.bias"): t
                for n, t in x.items()
            },
        )
        same(load_bert(folder, BertForPreTraining), model)

    def test_heads_of_the_file_that_the_model_lacks_are_named(self, folder, model):
        rewrite(
            folder, lambda tensors: tensors | {"classifier.weight": torch.ones(2, 12)}
        )
        with pytest.warns(
            UserWarning,
            match=(
                "left aside, since a BertModel has no place for it: classifier.weight,"
                " cls."
            ),
        ) as told:
            loaded = load_bert(folder)
        assert len(told) == 1
        same(loaded, model.bert)
        with pytest.warns(
            UserWarning,
            match="a BertForPreTraining has no place for it: classifier.weight$",
        ):
            same(load_bert(folder, BertForPreTraining), model)

    def test_heads_that_the_file_lacks_are_new_and_named(self, tmp_path, model):
        save_bert(model.bert, tmp_path)
        torch.manual_seed(6)
        with pytest.warns(
            UserWarning,
            match=(
                "lacks the head that predicts tokens and the next-sentence head: new w"
            ),
        ) as told:
            loaded = load_bert(tmp_path, BertForPreTraining)
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
    def test_a_masked_language_model_has_no_pooler_and_that_is_said(
        self, kind, folder, model
    ):
        rewrite(
            folder,
            lambda x: {
                n: t
                for n, t in x.items()
                if "pooler" not in n and "seq_relationship" not in n
            },
        )
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            loaded = load_bert(folder, kind)
        text = " ".join(str(warning.message) for warning in told)
        assert (
            "lacks the pooler: "
            if kind is BertModel
            else "lacks the pooler and the next-sentence head: "
        ) in text
        encoder = loaded if kind is BertModel else loaded.bert
        torch.testing.assert_close(outputs(encoder)[0], outputs(model.bert)[0])


def test_every_parameter_has_a_published_name_of_its_own():
    with torch.device("meta"):
        model = BertForPreTraining(CONFIG)
    names = [published_name(ours) for ours, _ in model.named_parameters()]
    assert len(names) == len(set(names)) == 2 * 16 + 5 + 2 + 5 + 2
    assert published_name("mlm_head.output.weight") == published_name(
        "bert.embeddings.token.weight"
    )
