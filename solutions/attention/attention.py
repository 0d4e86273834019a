# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   course:
#     chapter: seq2seq-attention
#     withholds:
#       - course_lib.attention
#       - course_lib.seq2seq
#       - course_lib.decoding
#       - torch.nn.functional.scaled_dot_product_attention
#       - torch.nn.MultiheadAttention
#       - torch.nn.Transformer
# ---

# %% [markdown]
# # Assignment 1 · Build attention
#
# A translator reads *european economic area* and writes *zone économique européenne*. The words come out in the
# opposite order. Which source word does it look at while it writes each target word?
#
# In this notebook you build attention from tensors, piece by piece. In Part 5 your pieces train a small translation
# model, and you watch it align the two phrases, although nobody told it which word means which.
#
# You need chapter 1 of the book, PyTorch, and about three hours. There are {points:total} points. No GPU is needed;
# if there is one, the notebook uses it.
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge cases.
# Do not change the test cells, do not add or copy cells that are marked for grading, and do not add code to them.
#
# **What you may use.** Everything in PyTorch except ready-made attention. You build these, so they are withheld:
# `course_lib.attention`, `course_lib.seq2seq`, `course_lib.decoding`,
# `torch.nn.functional.scaled_dot_product_attention`, `torch.nn.MultiheadAttention`, `torch.nn.Transformer`.
#
# **Letters for shapes.** B: sentences in the batch. T: target positions (queries). S: source positions (keys).
# D: features of a state. H: hidden size. V: words in the vocabulary. K: beam size.

# %%
import math

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# The next cell holds what the tests need. Run it and leave it as it is.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
WITHHELD = ["course_lib.attention", "course_lib.seq2seq", "course_lib.decoding",
            "torch.nn.functional.scaled_dot_product_attention", "torch.nn.MultiheadAttention", "torch.nn.Transformer"]


# {source:course_lib.grading.withheld.withheld_uses}


def check_withheld():
    """Refuse, in words, code in this notebook that uses what you are to build."""
    for cell in In:
        uses = withheld_uses(cell, WITHHELD)
        assert not uses, f"{uses[0]}. Remove it, restart the kernel and run again."


def check_close(got, expected, what, hint="", tolerance=1e-5):
    """Compare a result with what is expected: type, shape, number type, device, then values."""
    assert isinstance(got, torch.Tensor), f"{what} must be a tensor; yours is a {type(got).__name__}."
    assert got.shape == expected.shape, (
        f"{what} must have shape {tuple(expected.shape)}; yours has {tuple(got.shape)}. {hint}")
    assert got.dtype == expected.dtype, f"{what} must keep the input's dtype {expected.dtype}; yours is {got.dtype}."
    assert got.device == expected.device, f"{what} must stay on {expected.device}; yours is on {got.device}."
    assert not got.isnan().any(), f"{what} contains nan. {hint}"
    wrong = ~torch.isclose(got.double(), expected.double(), rtol=tolerance, atol=tolerance)
    if wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        raise AssertionError(f"{what} is wrong at {list(where)}: expected {expected[where].item():.4f}, "
                             f"yours is {got[where].item():.4f}. {hint}")


# %% [markdown]
# ## Part 1 · Masked softmax ({points:masked-softmax} points)
#
# **Question: how do you give a position no attention at all?**
#
# Attention turns scores into weights that are at least 0 and sum to 1 along the source. Sentences in a batch have
# different lengths, so short ones are padded. Padding must get weight 0, exactly, whatever its score.
#
# $$\alpha_{j} = \frac{\exp(e_j)}{\sum_{k \text{ allowed}} \exp(e_k)} \text{ for allowed } j,
# \qquad \alpha_{j} = 0 \text{ otherwise}$$
#
# If no position is allowed there is nothing to share out. Raise a `ValueError` that says so.

# %% nbgrader={"grade": false, "grade_id": "masked-softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_softmax(scores, mask=None):
    """Softmax over the last dimension; masked positions get weight exactly 0.

    scores: float tensor [..., S], any number of leading dimensions
    mask:   bool tensor that broadcasts to the shape of scores; True = may attend. None: all may.
    returns [..., S], same dtype and device as scores; scores itself is unchanged
    raises  ValueError if a row has no position that may be attended to

    Example: scores [[0., 0., 5.]], mask [[True, True, False]] -> [[0.5, 0.5, 0.0]]
    """
    ### BEGIN SOLUTION
    if mask is None:
        return torch.softmax(scores, dim=-1)
    mask = mask.expand_as(scores)
    if not mask.any(dim=-1).all():
        raise ValueError("a row of the mask allows no position: softmax has nothing to share out")
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "masked-softmax-rows", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld()
scores = torch.tensor([[0.0, 0.0, 5.0], [1.0, 2.0, 3.0]], device=device)
mask = torch.tensor([[True, True, False], [True, False, True]], device=device)
weights = masked_softmax(scores, mask)
assert weights.shape == scores.shape, f"The weights must have the shape of the scores, [2, 3]; yours is {list(weights.shape)}."
for row, total in enumerate(weights.sum(-1).tolist()):
    assert abs(total - 1) < 1e-5, (
        f"The weights of each row must sum to 1; row {row} sums to {total:.2f}. Did you take the softmax over the wrong "
        "dimension, or mask after the softmax?")
assert (weights[~mask] == 0).all(), (
    f"Masked positions must get weight 0; yours get {weights[~mask].tolist()}. True in the mask means: may attend.")
check_close(weights, torch.tensor([[0.5, 0.5, 0.0], [0.1192, 0.0, 0.8808]], device=device), "The table of weights", tolerance=1e-3)
### BEGIN HIDDEN TESTS
random = torch.Generator().manual_seed(1)
scores = (3 * torch.randn(2, 3, 4, 5, generator=random)).to(device)
mask = torch.rand(2, 1, 1, 5, generator=random).to(device) < 0.6
mask[..., 2] = True
exponentials = scores.double().exp() * mask
check_close(masked_softmax(scores, mask), (exponentials / exponentials.sum(-1, keepdim=True)).float(),
            "With a mask [2, 1, 1, 5] for scores [2, 3, 4, 5], the table of weights")
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "masked-softmax-edges", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
scores = torch.tensor([[1.0, 2.0]], device=device)
try:
    answer = masked_softmax(scores, torch.tensor([[False, False]], device=device))
except ValueError:
    pass
else:
    raise AssertionError(f"A row that may attend to nothing must raise ValueError; yours returned {answer.tolist()}.")
masked_softmax(scores, torch.tensor([[True, False]], device=device))
assert scores.tolist() == [[1.0, 2.0]], (
    f"masked_softmax must leave its input as it was; yours changed the scores to {scores.tolist()}. "
    "Functions whose name ends in _ work in place: use the one without.")
### BEGIN HIDDEN TESTS
hint = "Is the number that you fill in smaller than every score? -1e9 is not; -inf is."
for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
    low = -3e4 if dtype == torch.float16 else -3e9
    scores = torch.tensor([[low, low, 0.0]], dtype=dtype, device=device)
    mask = torch.tensor([[True, True, False]], device=device)
    check_close(masked_softmax(scores, mask), torch.tensor([[0.5, 0.5, 0.0]], dtype=dtype, device=device),
                f"With scores [{low:g}, {low:g}, 0] in {dtype} and the third masked, the table of weights", hint)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · Additive attention ({points:additive-scores} points)
#
# **Question: how well does source position j fit target position i?**
#
# Bahdanau, Cho and Bengio (2015, appendix A.1.2) let a small network with one hidden layer answer:
#
# $$e_{ij} = v^\top \tanh(W s_i + U h_j)$$
#
# The query $s_i$ is a decoder state, the key $h_j$ an encoder state. They may differ in size.

# %% nbgrader={"grade": false, "grade_id": "additive-scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def additive_scores(query, key, W, U, v):
    """Score every query against every key with a one-layer network.

    query: [B, T, Dq]     W: [H, Dq]
    key:   [B, S, Dk]     U: [H, Dk]     v: [H]
    returns scores [B, T, S]

    Example: query [[[1.]]], key [[[0.], [-1.]]], W = U = [[1.]], v = [2.] -> [[[2 tanh(1), 0.]]]
    """
    ### BEGIN SOLUTION
    hidden = torch.tanh((query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1))  # [B, T, S, H]
    return hidden @ v
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "additive-scores-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
one = torch.ones(1, 1, device=device)
scores = additive_scores(one[None], torch.tensor([[[0.0], [-1.0]]], device=device), one, one, 2 * one[0])
check_close(scores, torch.tensor([[[2 * math.tanh(1), 0.0]]], device=device), "The example's table of scores",
            "Is tanh inside, around the sum, and v outside?")
### BEGIN HIDDEN TESTS
random = torch.Generator().manual_seed(2)
B, T, S, Dq, Dk, H = 2, 3, 4, 5, 6, 7
query, key, W, U, v = (torch.randn(*shape, generator=random, dtype=torch.float64).to(device)
                       for shape in ((B, T, Dq), (B, S, Dk), (H, Dq), (H, Dk), (H,)))
expected = torch.stack([torch.stack([torch.stack([v @ torch.tanh(W @ query[b, i] + U @ key[b, j])
                                                  for j in range(S)]) for i in range(T)]) for b in range(B)])
check_close(additive_scores(query, key, W, U, v), expected, "For sizes that all differ, the table of scores", tolerance=1e-9)
### END HIDDEN TESTS
