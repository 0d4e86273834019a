"""What a caller of attention gets wrong, said in words; looks at no values of a tensor
on a GPU, which would wait for all work before it."""

import torch
from torch import Tensor

from course_lib.attention.masks import check_boolean, check_mask
from course_lib.attention.scores import check_same_features


def check_divides(dim: int, num_heads: int) -> None:
    """Refuse heads that do not share the features evenly."""
    if num_heads < 1 or dim % num_heads:
        divisors = [str(n) for n in range(1, dim + 1) if dim % n == 0]
        raise ValueError(
            f"the features, {dim}, do not divide into num_heads={num_heads}; choose one"
            f" of {', '.join(divisors)}"
        )


def check_heads(dim: int, num_heads: int, dropout: float) -> None:
    """Refuse sizes of which no multi-head attention can be made."""
    check_divides(dim, num_heads)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; it is a share, at least 0 and below 1")


def check_scores(query: Tensor, key: Tensor, mask: Tensor | None) -> None:
    """Refuse features that cannot be multiplied one by one, and a mask that is not
    boolean or, on a CPU, leaves a query no key."""
    check_same_features(query, key)
    if mask is None:
        return
    if mask.device.type == "cpu" and not torch.compiler.is_compiling():
        check_mask(mask)
    else:
        check_boolean(mask)


def check_attention_inputs(
    dim: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
) -> None:
    """Refuse what torch would refuse without naming the argument, or not at all."""
    for name, hidden in (("query", query), ("key", key), ("value", value)):
        if hidden.dim() != 3 or len(hidden) != len(query):
            raise ValueError(
                f"{name} is {tuple(hidden.shape)}; expected (batch, length, features),"
                " with the batch of the query: make a single sentence a batch by"
                f" {name}[None]"
            )
        if hidden.shape[-1] != dim:
            raise ValueError(
                f"{name} has {hidden.shape[-1]} features, but this attention is made"
                f" for {dim}"
            )
    length, key_length = query.shape[1], key.shape[1]
    if key_length == 0:
        raise ValueError(
            "there are 0 keys to attend to, so no weights can sum to 1; leave out"
            " empty sentences"
        )
    if mask is not None:
        check_boolean(mask)
        if mask.shape[-1] != key_length:
            raise ValueError(
                f"the mask speaks of {mask.shape[-1]} keys, but there are {key_length}"
            )
    if causal and length != key_length:
        raise ValueError(
            f"causal=True compares positions one by one, but there are {length} queries"
            f" and {key_length} keys; pass a mask of shape (T, S) that says which key"
            " comes after which query"
        )
