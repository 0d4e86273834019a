"""Compile a Transformer, its encoder, a BERT and a dropout as one graph each, and print
what came of it, as JSON.

`test_compiled.py` runs this in a process of its own: the checks of shapes, with which
all tests run, cannot be traced.
"""

import json
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.attention.masks import padding_mask
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.training.cpu import FastDropout
from course_lib.transformer.model import Transformer, TransformerConfig

B, S, T = 4, 7, 5
LENGTHS = torch.tensor([4, 7, 1, 6])


def words(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(3, 11, shape, generator=torch.Generator().manual_seed(seed))


def make(norm: str) -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig(
        13, 11, dim=12, num_heads=3, num_layers=2, hidden_dim=17, norm=norm
    )
    return Transformer(config).double()


def compiled(model: nn.Module) -> Callable[..., Tensor]:
    """Trace forward and backward, without a compiler of C++; with `fullgraph`, code
    that cannot be traced raises."""
    return torch.compile(model, fullgraph=True, backend="aot_eager")


def difference(norm: str) -> float:
    """The largest difference that compiling makes, in logits and in the gradient of
    every parameter."""
    model, results = make(norm), []
    for run in (model, compiled(model)):
        model.zero_grad()
        logits = run(words(B, S), LENGTHS, words(B, T, seed=1))
        logits.square().sum().backward()
        results.append(
            [logits.detach(), *(parameter.grad for parameter in model.parameters())]
        )
    return max(
        (one - other).abs().max().item() for one, other in zip(*results, strict=True)
    )


def make_bert() -> BertForPreTraining:
    torch.manual_seed(1)
    sizes = {
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 17,
    }
    return (
        BertForPreTraining(
            BertConfig(vocab_size=13, max_position_embeddings=9, **sizes)
        )
        .double()
        .eval()
    )


def bert_difference(padded: bool) -> float:
    """As `difference`, for a step of pre-training: chosen positions, both heads, two
    segments."""
    model, results = make_bert(), []
    mask = padding_mask(LENGTHS) if padded else None
    for run in (model, compiled(model)):
        model.zero_grad()
        logits = run(
            words(B, S),
            mask,
            words(B, S, seed=2) % 2,
            masked_positions=torch.tensor([0, 9, 10]),
        )
        sum(part.square().sum() for part in logits).backward()
        results.append(
            [
                *(part.detach() for part in logits),
                *(parameter.grad for parameter in model.parameters()),
            ]
        )
    return max(
        (one - other).abs().max().item() for one, other in zip(*results, strict=True)
    )


def refusal(run: Callable[..., Tensor], *inputs: Tensor, **options: bool) -> str:
    try:
        run(*inputs, **options)
    except RuntimeError as error:
        return str(error)
    return "nothing was refused"


def main() -> None:
    answers: dict[str, object] = {norm: difference(norm) for norm in ("post", "pre")}
    run, empty, long = compiled(make("post")), LENGTHS.clone(), LENGTHS.clone()
    empty[2], long[2] = 0, S + 1
    answers["empty sentence"] = refusal(run, words(B, S), empty, words(B, T))
    answers["sentence too long"] = refusal(run, words(B, S), long, words(B, T))
    encoder, nothing = compiled(make("post").encoder), padding_mask(LENGTHS)[:, None]
    nothing[2] = False
    for causal in (False, True):
        answers[f"mask, causal={causal}"] = refusal(
            encoder, words(B, S), nothing, causal=causal
        )
    answers["bert, padded"], answers["bert, full"] = (
        bert_difference(True),
        bert_difference(False),
    )
    answers["bert, all padding"] = refusal(
        compiled(make_bert()), words(B, S), nothing[:, 0]
    )
    dropped = compiled(FastDropout(0.25).train())(torch.ones(300, 400)) == 0
    answers["dropout"] = dropped.double().mean().item()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
