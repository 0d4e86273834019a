"""A ModernBERT on disk and on the hub, in the layout of ``transformers``.

As in :mod:`course_lib.bert.files`, nothing in a file is run, and what would make the
numbers others is refused.
"""

import dataclasses
import warnings
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from course_lib.bert.files import (
    CONFIG,
    WEIGHTS,
    checkpoint_folder,
    fill,
    read_config,
    weights_file,
    write_json,
)
from course_lib.bert.weights import some
from course_lib.files import write_whole
from course_lib.modern.model import ModernBertConfig, ModernBertModel

Model = TypeVar("Model", bound=nn.Module)

#: Parts of our names of parameters, and of the published ones, in this order.
NAMES = (
    ("embeddings.token.", "embeddings.tok_embeddings."),
    ("blocks.", "layers."),
    ("norm1.", "attn_norm."),
    ("norm2.", "mlp_norm."),
    ("attention.qkv.", "attn.Wqkv."),
    ("attention.output.", "attn.Wo."),
    ("feed_forward.expand.", "mlp.Wi."),
    ("feed_forward.contract.", "mlp.Wo."),
    ("mlm_head.output.", "decoder."),
    ("mlm_head.", "head."),
)
TIED = "mlm_head.output.weight"
ENCODER = ("embeddings.", "layers.", "final_norm.")
SETTINGS = {
    "hidden_act": "hidden_activation",
    "layer_norm_eps": "norm_eps",
    "attention_probs_dropout_prob": "attention_dropout",
    "hidden_dropout_prob": "mlp_dropout",
}
#: What a configuration may say of the things that are done in one way only here.
ONLY: dict[str, tuple[Any, ...]] = {
    "model_type": ("modernbert",),
    "hidden_activation": ("gelu",),
    "classifier_activation": ("gelu",),
    **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias"), (False,)),
    "classifier_bias": (False,),
    **dict.fromkeys(("decoder_bias", "tie_word_embeddings"), (True,)),
    **dict.fromkeys(("quantization_config", "auto_map"), (None,)),
}
FULL, LOCAL = "full_attention", "sliding_attention"


def published_name(name: str) -> str:
    """Say what ``transformers`` calls one of our parameters, without the ``model.``
    that stands before the encoder's names in a checkpoint with a head."""
    name = name.removeprefix("bert.")
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    return name


def load_modern_bert(
    path_or_hub_id: str | Path,
    model_class: type[Model] = ModernBertModel,  # type: ignore[assignment]
    dtype: torch.dtype | None = None,
    revision: str | None = None,
) -> Model:
    """Build a `ModernBertModel`, or a `ModernBertForMaskedLM` with the head too, from a
    checkpoint; arguments, result and errors as in `course_lib.bert.files.load_bert`,
    but a weight that is missing is refused, not drawn."""
    folder = checkpoint_folder(path_or_hub_id, revision)
    config = read_config(folder / CONFIG, ModernBertConfig, ONLY, _our_names)
    path = weights_file(folder)
    with torch.device("meta"):
        model = model_class(config)  # type: ignore[call-arg]
    ours = {published_name(x): x for x in model.state_dict() if x != TIED}
    try:
        with safe_open(path, framework="pt") as file:
            theirs = {x.removeprefix("model."): x for x in file.keys()}  # noqa: SIM118
            rest = theirs.keys() - ours.keys() - {"decoder.weight"}
            foreign = [name for name in rest if name.startswith(ENCODER)]
            if wrong := sorted([*(ours.keys() - theirs.keys()), *foreign]):
                raise ValueError(
                    f"{path} does not fit a {model_class.__name__} of this"
                    f" configuration: only one of both has {some(wrong)}"
                )
            tensors = {ours[x]: file.get_tensor(theirs[x]) for x in ours}
    except SafetensorError as error:
        raise ValueError(
            f"{path} is no complete safetensors file ({error}); fetch it again"
        ) from error
    for name, tensor in tensors.items():
        if tensor.shape != (expected := model.state_dict()[name].shape):
            raise ValueError(
                f"{path} does not fit its configuration: {published_name(name)} is"
                f" {tuple(tensor.shape)} in the file, but {tuple(expected)} by that"
            )
    if rest:
        warnings.warn(f"{path}: left aside is {some(sorted(rest))}", stacklevel=2)
    wanted = dtype or torch.get_default_dtype()
    fill(model, {name: tensor.to(wanted) for name, tensor in tensors.items()})
    return model.eval()


def _our_names(content: dict[str, Any]) -> dict[str, Any]:
    """Call settings as `ModernBertConfig` does, in the older and the newer layout."""
    found = dict(content)
    for ours, theirs in SETTINGS.items():
        if theirs in content:
            found[ours] = content[theirs]
    for kind, name in ((FULL, "global_rope_theta"), (LOCAL, "local_rope_theta")):
        rope = (content.get("rope_parameters") or {}).get(kind, {})
        if rope.get("rope_type", "default") != "default":
            raise ValueError(f"rope_type is {rope['rope_type']!r}, not 'default'")
        if "rope_theta" in rope:
            found[name] = float(rope["rope_theta"])
    if kinds := content.get("layer_types"):
        far = [layer for layer, kind in enumerate(kinds) if kind == FULL]
        every = found["global_attn_every_n_layers"] = (*far, len(kinds), 1)[1]
        if kinds != [LOCAL if layer % every else FULL for layer in range(len(kinds))]:
            raise ValueError(f"layer_types is {kinds}; kinds must alternate evenly")
    return found


def save_modern_bert(model: nn.Module, folder: str | Path) -> None:
    """Write a model, with its head or without, so that `load_modern_bert` and
    ``transformers`` read it; each file is written whole or not at all."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        ("model." if name.startswith("bert.") else "") + published_name(name): tensor
        for name, tensor in model.state_dict().items()
        if name != TIED
    }
    settings = dataclasses.asdict(model.config)  # type: ignore[arg-type]
    settings = {SETTINGS.get(name, name): value for name, value in settings.items()}
    settings |= {
        "architectures": [type(model).__name__],
        "model_type": "modernbert",
        "embedding_dropout": settings["mlp_dropout"],
    }
    write_whole(
        folder / WEIGHTS,
        lambda path: save_file(weights, path, metadata={"format": "pt"}),
    )
    write_json(folder / CONFIG, settings)
