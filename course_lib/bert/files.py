"""A BERT on disk and on the hub, in Hugging Face's layout: ``config.json``,
``model.safetensors``, tokenizer files.

Everything a file says is checked before a weight is read, and nothing in it is run: no
pickle, and no code that a repository brings along. What this module does not read:
weights split over several files, and quantised weights.
"""

import dataclasses
import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.bert.weights import PublishedWeights, published_name, some, to_published
from course_lib.files import write_whole
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TOKENIZER = ("tokenizer.json", "vocab.txt")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
# no size of a BERT is larger, and the sizes of its tensors still fit 64 bits
MOST = 10_000_000

# Parts that a checkpoint may lack: they are then new, and a warning says so.
PARTS = {
    "pooler": "the pooler",
    "mlm_head": "the head that predicts tokens",
    "nsp_head": "the next-sentence head",
}

# What a configuration may say of the things that this BERT does in one way only; absent
# is the same.
ONLY: dict[str, tuple[Any, ...]] = {
    "model_type": ("bert",),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "pruned_heads": ({},),
    "quantization_config": (None,),
    "auto_map": (None,),  # code of its own
}

KINDS = {int: "a whole number", float: "a number", str: "a word"}

Model = TypeVar("Model", bound=nn.Module)
Config = TypeVar("Config", bound=BertConfig)


def checkpoint_folder(
    path_or_hub_id: str | Path, revision: str | None = None, also: Sequence[str] = ()
) -> Path:
    """Find a checkpoint on this machine, or fetch it from the Hugging Face hub."""
    folder = Path(path_or_hub_id).expanduser()
    if folder.is_dir():
        return folder
    if isinstance(path_or_hub_id, Path) or not HUB_ID.fullmatch(path_or_hub_id):
        raise FileNotFoundError(
            f"there is no folder {path_or_hub_id}; pass one that holds {CONFIG} and"
            f" {WEIGHTS}, or the name of a checkpoint on the hub, such as"
            " google-bert/bert-base-uncased"
        )
    # only where a hub is asked for: it takes a second to import
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        wanted = [CONFIG, WEIGHTS, *TOKENIZER, *also]
        return Path(
            snapshot_download(path_or_hub_id, revision=revision, allow_patterns=wanted)
        )
    except (OSError, HFValidationError, LocalEntryNotFoundError) as error:
        raise ConnectionError(
            f"{path_or_hub_id} is no folder here, and the Hugging Face hub did not give"
            f" it ({type(error).__name__}): check the name and the network, or fetch"
            f" {CONFIG} and {WEIGHTS} by other means and pass their folder"
        ) from error


class LoadReport(NamedTuple):
    """What a checkpoint and a model did not have in common: parts that it lacks, which
    are new then, and names in it for which there is no place."""

    new: list[str]
    left_over: list[str]


@overload
def load_bert(
    path_or_hub_id: str | Path,
    *,
    dtype: torch.dtype | None = None,
    revision: str | None = None,
) -> BertModel: ...
@overload
def load_bert(
    path_or_hub_id: str | Path,
    model_class: type[Model],
    dtype: torch.dtype | None = None,
    revision: str | None = None,
) -> Model: ...
def load_bert(
    path_or_hub_id: str | Path,
    model_class: type[Any] = BertModel,
    dtype: torch.dtype | None = None,
    revision: str | None = None,
) -> Any:
    """Build a model from a checkpoint in Hugging Face's layout.

    Parameters
    ----------
    path_or_hub_id
        A folder, or the name of a checkpoint on the hub.
    model_class
        `BertModel`, or `BertForPreTraining` with the heads too.
    dtype
        Of the weights; torch's default if not given, whatever the file has.
    revision
        Of a checkpoint on the hub: a branch, a tag or a commit.

    Returns
    -------
    nn.Module
        In evaluation mode, on the CPU. One warning each says which parts the checkpoint
        lacks (they are new, to be trained) and what of it was left aside.

    Raises
    ------
    FileNotFoundError
        If a folder or a file is missing.
    ValueError
        If a file is damaged, or describes a model whose numbers would be others here.
    ConnectionError
        If the hub does not give the checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> model = BertModel(BertConfig.tiny(vocab_size=50))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_bert(model, folder)
    ...     again = load_bert(folder)
    >>> torch.equal(again.embeddings.token.weight, model.embeddings.token.weight)
    True
    """
    folder = checkpoint_folder(path_or_hub_id, revision)
    model, report = read_bert(folder, model_class, dtype)
    if report.left_over:
        warnings.warn(
            f"{folder / WEIGHTS}: left aside, since a {model_class.__name__} has no"
            f" place for it: {some(report.left_over)}",
            stacklevel=2,
        )
    if report.new:
        warnings.warn(
            f"{folder / WEIGHTS} lacks {' and '.join(report.new)}: new weights were"
            " drawn, to be trained",
            stacklevel=2,
        )
    return model


def read_bert(
    folder: Path, model_class: type[Model], dtype: torch.dtype | None = None
) -> tuple[Model, LoadReport]:
    """Do what `load_bert` does with a folder, and return what it warns of."""
    config: BertConfig = read_config(folder / CONFIG)
    path = weights_file(folder)
    try:
        with safe_open(path, framework="pt") as file:
            return _build(
                model_class,
                config,
                PublishedWeights(path, file),
                dtype or torch.get_default_dtype(),
            )
    except SafetensorError as error:
        raise ValueError(
            f"{path} is no complete safetensors file ({error}); fetch it again"
        ) from error


def _build(
    model_class: Callable[[BertConfig], Model],
    config: BertConfig,
    file: PublishedWeights,
    dtype: torch.dtype,
) -> tuple[Model, LoadReport]:
    """Check names and shapes against a model that takes no memory, and only then read
    the weights."""
    # first: a model of a billion layers takes memory after all
    file.check_layers(config.num_hidden_layers)
    with torch.device("meta"):
        model = model_class(config)
    names = {name: published_name(name) for name in model.state_dict()}
    there = {_part(name) for name, published in names.items() if file.has(published)}
    new = [part for part in PARTS if part in {_part(name) for name in names} - there]
    names = {
        name: published for name, published in names.items() if _part(name) not in new
    }
    shapes = {
        published: tuple(model.state_dict()[name].shape)
        for name, published in names.items()
    }
    file.check_shapes(shapes)
    report = LoadReport([PARTS[part] for part in new], file.left_over(shapes))
    if new:
        model = model_class(config)
    fill(
        model,
        {name: file.read(published).to(dtype) for name, published in names.items()},
    )
    return model.to(dtype).eval(), report


def _part(name: str) -> str:
    return name.removeprefix("bert.").split(".")[0]


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a model new parameters; those that were one before (tied) are one again."""
    owners: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owners.setdefault(parameter, []).append(name)
    for names in owners.values():
        found = [nn.Parameter(tensors[name]) for name in names if name in tensors]
        for name in names if found else ():
            layer, _, kind = name.rpartition(".")
            setattr(model.get_submodule(layer), kind, found[0])


def read_config(
    path: Path,
    config_class: type[Config] = BertConfig,  # type: ignore[assignment]
    only: Mapping[str, tuple[Any, ...]] = ONLY,
    our_names: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Config:
    """Take from config.json what this BERT can do, and refuse what it cannot."""
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}, which says how large the model is; pass the folder"
            " that has it"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it holds no table of settings")
        for name, accepted in only.items():
            if name in content and content[name] not in accepted:
                raise ValueError(
                    f"{name} is {content[name]!r}; this BERT knows only {accepted[0]!r}"
                )
        content = our_names(content)
        fields = dataclasses.fields(config_class)
        return config_class(
            **{x.name: setting(content[x.name], x) for x in fields if x.name in content}
        )
    except (
        ValueError,
        AttributeError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:  # of encoding, of JSON, of BertConfig, or of ours
        raise ValueError(
            f"{path} describes no BERT that this course can build: {error}"
        ) from error


def setting(value: Any, field: Any) -> Any:
    """Return the value of a setting if it is of the default's kind; JSON knows no
    difference between 0 and 0.0."""
    if value is None and field.name == "pad_token_id":
        return None
    expected = type(field.default)
    if isinstance(value, bool) or not isinstance(
        value, (int, float) if expected is float else expected
    ):
        raise ValueError(f"{field.name} is {value!r}; expected {KINDS[expected]}")
    if expected is int and value > MOST:
        raise ValueError(f"{field.name} is {value}; no BERT is so large")
    return expected(value)


def weights_file(folder: Path) -> Path:
    """Find a checkpoint's weights, or say why what is there is not read."""
    path = folder / WEIGHTS
    if path.is_file():
        return path
    if (folder / f"{WEIGHTS}.index.json").is_file():
        reason = "its weights are split over several files; join them into one"
    elif (folder / "pytorch_model.bin").is_file():
        reason = (
            "pytorch_model.bin is a pickle, which could run code; convert it with a"
            " program that you trust"
        )
    else:
        reason = "pass the folder that has it"
    raise FileNotFoundError(f"there is no {path}: {reason}")


def save_bert(
    model: BertModel | BertForPreTraining,
    folder: str | Path,
    tokenizer: WordPiece | FastWordPiece | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a model so that `load_bert` and ``transformers`` read it.

    Parameters
    ----------
    model
        With heads or without; it is not changed.
    folder
        Made if it is not there. Each file is written whole or not at all.
    tokenizer
        The one that the model was trained with.
    dtype
        Of the weights in the file, as the model's if not given.

    Raises
    ------
    ValueError
        If the tokenizer has more tokens than the model has embeddings.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_bert(BertModel(BertConfig.tiny(vocab_size=50)), folder)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['config.json', 'model.safetensors']
    """
    config = model.config
    if tokenizer is not None and len(tokenizer) > config.vocab_size:
        raise ValueError(
            f"the tokenizer has {len(tokenizer)} pieces, but the model has embeddings"
            f" for {config.vocab_size}; pass the tokenizer that it was trained with"
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: tensor.detach().to("cpu", dtype or tensor.dtype)
        for name, tensor in model.state_dict().items()
    }
    published = {
        name: tensor.contiguous() for name, tensor in to_published(weights).items()
    }
    kind = str(next(iter(published.values())).dtype).removeprefix("torch.")
    settings = {
        "architectures": [type(model).__name__],
        "model_type": "bert",
        "dtype": kind,
    }
    write_whole(
        folder / WEIGHTS,
        lambda path: save_file(published, path, metadata={"format": "pt"}),
    )
    write_json(folder / CONFIG, settings | dataclasses.asdict(config))
    if tokenizer is not None:
        tokenizer.save(folder)
        write_json(
            folder / "tokenizer_config.json", _tokenizer_config(tokenizer, config)
        )


def _tokenizer_config(
    tokenizer: WordPiece | FastWordPiece, config: BertConfig
) -> dict[str, Any]:
    special = {
        f"{token.strip('[]').lower()}_token": token
        for token in SPECIAL_TOKENS
        if token in tokenizer.vocab
    }
    settings = tokenizer.settings
    return {
        "tokenizer_class": "BertTokenizer",
        "model_max_length": config.max_position_embeddings,
        "do_lower_case": settings.lowercase,
        "strip_accents": settings.strip,
        "tokenize_chinese_chars": True,
        **special,
    }


def write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    """Write a file of settings, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2, sort_keys=True) + "\n")
