"""Read a ModernBERT from a folder or the hub, in the layout of ``transformers``.

As in :mod:`course_lib.bert.files`, nothing in a file is run, and what would make the
numbers others is refused.
"""

import warnings
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from course_lib.bert.files import (
    CONFIG,
    checkpoint_folder,
    fill,
    read_config,
    weights_file,
)
from course_lib.bert.weights import some
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
    **dict.fromkeys(("hidden_activation", "classifier_activation"), ("gelu",)),
    **dict.fromkeys(("attention_bias", "mlp_bias"), (False,)),
    **dict.fromkeys(("norm_bias", "classifier_bias"), (False,)),
    **dict.fromkeys(("decoder_bias", "tie_word_embeddings"), (True,)),
    **dict.fromkeys(("quantization_config", "auto_map"), (None,)),
}
FULL, LOCAL = "full_attention", "sliding_attention"


def published_name(name: str) -> str:
    """Say what ``transformers`` calls one of our parameters, less ``model.``."""
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
    try:
        with safe_open(path, framework="pt") as file:
            names = {x.removeprefix("model."): x for x in file.keys()}  # noqa: SIM118
            there = {x: tuple(file.get_slice(names[x]).get_shape()) for x in names}
            if f"layers.{config.num_hidden_layers - 1}.mlp.Wo.weight" not in there:
                # before a model of a million layers is built
                raise ValueError(f"{path} has fewer layers than its configuration says")
            with torch.device("meta"):
                model = model_class(config)
            named = {published_name(x): x for x in model.state_dict() if x != TIED}
            ours = {x: tuple(model.state_dict()[named[x]].shape) for x in named}
            rest = sorted(there.keys() - ours.keys() - {"decoder.weight"})
            for name in [*ours, *(x for x in rest if x.startswith(ENCODER))]:
                if there.get(name) != ours.get(name):
                    raise ValueError(
                        f"{path} does not fit its configuration: {name} is"
                        f" {there.get(name, 'not')} in the file, but"
                        f" {ours.get(name, 'not')} in a {model_class.__name__}"
                    )
            tensors = {named[x]: file.get_tensor(names[x]) for x in ours}
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}); fetch it again") from error
    if rest:
        warnings.warn(f"{path}: left aside is {some(rest)}", stacklevel=2)
    wanted = dtype or torch.get_default_dtype()
    fill(model, {name: tensor.to(wanted) for name, tensor in tensors.items()})
    return model.eval()


def _our_names(content: dict[str, Any]) -> dict[str, Any]:
    """Call settings as `ModernBertConfig` does, in the older and the newer layout."""
    found = content | {x: content[y] for x, y in SETTINGS.items() if y in content}
    for kind, name in ((FULL, "global_rope_theta"), (LOCAL, "local_rope_theta")):
        rope = (content.get("rope_parameters") or {}).get(kind, {})
        if rope.get("rope_type", "default") != "default":
            raise ValueError(f"rope_type is {rope['rope_type']!r}, not 'default'")
        if "rope_theta" in rope:
            found[name] = float(rope["rope_theta"])
    if kinds := content.get("layer_types"):
        far = [layer for layer, kind in enumerate(kinds) if kind == FULL]
        every = found["global_attn_every_n_layers"] = (*far, len(kinds), 1)[1]
        layers = range(content.get("num_hidden_layers", len(kinds)))
        if kinds != [LOCAL if layer % every else FULL for layer in layers]:
            raise ValueError(f"layer_types is {kinds}; its kinds must alternate evenly")
    return found
