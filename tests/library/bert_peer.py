"""The same BERT twice: ours and that of ``transformers``, with one set of weights."""

import dataclasses

import torch
import transformers
from torch import Tensor, nn

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.bert.weights import to_published


def theirs_for(ours: nn.Module, attention: str = "sdpa") -> nn.Module:
    """Build the model of ``transformers`` with our weights, in our mode."""
    kind = {
        BertModel: transformers.BertModel,
        BertForPreTraining: transformers.BertForPreTraining,
    }[type(ours)]
    settings = transformers.BertConfig(
        **dataclasses.asdict(ours.config), attn_implementation=attention
    )
    theirs = kind(settings).to(next(ours.parameters()).dtype)
    told = theirs.load_state_dict(to_published(ours.state_dict()), strict=False)
    tied = {
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    } & theirs.state_dict().keys()
    assert set(told.missing_keys) == tied
    assert told.unexpected_keys == []
    return theirs.train(ours.training)


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter's gradient by its published name."""
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert None not in found.values()
    return (
        to_published(found)
        if isinstance(model, BertModel | BertForPreTraining)
        else found
    )


def lively(
    config: BertConfig, kind: type[nn.Module] = BertForPreTraining, seed: int = 0
) -> nn.Module:
    """Give every parameter a value that the initialisation to 0 or 1 would hide; what
    is computed stays unsaturated."""
    model = kind(config).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.5 / parameter.shape[-1] ** 0.5 if parameter.dim() == 2 else 0.2
            parameter.copy_(
                spread
                * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )
            if parameter.dim() == 1:
                parameter.add_(0.6)
    return model
