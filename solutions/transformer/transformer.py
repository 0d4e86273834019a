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
#   # Longer than 400 lines because an assignment is one notebook: ten parts, each with its prose, skeleton and tests.
#   course:
#     chapter: transformer
#     seconds: 60
#     ships:
#       - translator.safetensors
#     withholds:
#       - course_lib.attention.masks
#       - course_lib.attention.scores
#       - course_lib.attention.multi_head
#       - course_lib.transformer.positions
#       - course_lib.transformer.blocks
#       - course_lib.transformer.decoder
#       - course_lib.transformer.heads
#       - course_lib.transformer.model
#       - course_lib.bert.model
#       - course_lib.bert.layers
#       - course_lib.seq2seq.search
#       - course_lib.seq2seq.batched_search
#       - torch.nn.functional.scaled_dot_product_attention
#       - torch.nn.functional.multi_head_attention_forward
#       - torch.nn.MultiheadAttention
#       - torch.native_layer_norm
#       - torch.layer_norm
#       - torch.nn.functional.layer_norm
#       - torch.nn.LayerNorm
#       - torch.nn.Transformer
#       - torch.nn.TransformerEncoder
#       - torch.nn.TransformerEncoderLayer
#       - torch.nn.TransformerDecoder
#       - torch.nn.TransformerDecoderLayer
# ---

# %% [markdown]
# # Assignment 2 · Build a Transformer
#
# The file `translator.safetensors` beside this notebook holds 116,304 trained numbers and no code. They translate *he
# follows the european economic and social committee* into *il suit le comité économique et social européen*, but only
# when they sit in a Transformer whose every part does what it did in training. You write those parts. In Part 8 you
# load the numbers and read what your model writes: one wrong scale, mask or axis, and it may write nonsense.
#
# You need chapters 2 and 3 of the book, PyTorch, and about five hours. There are {points:total} points. No GPU is needed;
# if there is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge cases.
# Gradients must flow through what you write, because a model is trained with it, and no function may change its arguments.
# Do not change, copy or delete the test cells. You may add cells of your own. In classes, `__init__` is given: the trained
# numbers are stored under the names that it sets, so leave it as it is. Before you hand in, restart the kernel and
# run everything from the top. In a terminal, `course check transformer.ipynb` tells you what is amiss.
#
# **The file beside it.** Keep `translator.safetensors` in the folder of the notebook. On Colab, open the *Files* panel on
# the left and upload it there. Only Part 8 reads it. Hand in the notebook alone: the grader has the file.
#
# **What you may use.** Everything in PyTorch except ready-made Transformers and their parts. You build these, so they
# are withheld: {withholds}. Read each task with care: its function is not quite the one of the book.
#
# **Letters for shapes.** B: sentences in the batch. T: positions of the queries. S: positions of the keys. D: features
# of a position. H: heads. N = D / H: features of a head. E: features of a value. V: words in the vocabulary. Masks are
# bool, and True means: may attend.

# %%
import math

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# The next cell holds what the tests need. Run it and leave it as it is. Jupyter shows it folded.

# %% jupyter={"source_hidden": true} cellView="form" nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
WITHHELD = [
    "{withholds}",
]


# {source:course_tools.grading.assignments.withheld.withheld_uses}


# {source:course_tools.grading.assignments.student_checks.cells_that_define}


# {source:course_tools.grading.assignments.student_checks.check_withheld}


# {source:course_tools.grading.assignments.guard.guard_withheld}


withheld_allowed = guard_withheld(WITHHELD)


# {source:course_tools.grading.assignments.student_checks.check_given}


def check_no_loop(name):
    """Refuse a loop over positions in a function that is to work on whole matrices."""
    import ast

    for cell in cells_that_define(name)[-1:]:
        for function in ast.walk(ast.parse(cell)):
            if isinstance(function, ast.FunctionDef) and function.name == name:
                for node in ast.walk(function):
                    few = isinstance(getattr(node, "iter", None), (ast.Tuple, ast.List))
                    loops = isinstance(node, (ast.For, ast.comprehension)) and not few
                    assert not loops and not isinstance(node, ast.While), (
                        f"{name} loops. Here matrices do the work: "
                        "query @ key.transpose(-2, -1) is the table of all dot products."
                    )


# {source:course_tools.grading.assignments.student_checks.check_pair}


# {source:course_tools.grading.assignments.student_checks.check_shape}


# {source:course_tools.grading.assignments.student_checks.alike}


# {source:course_tools.grading.assignments.student_checks.check_close}


# {source:course_tools.grading.assignments.student_checks.tensor}


# {source:course_tools.grading.assignments.student_checks.normal}


def filled(module, seed, dtype=torch.float32):
    """A module with random weights that are the same on every machine."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=random))
    return module.to(device=device, dtype=dtype)


class StandIn(torch.nn.Module):
    """Takes the place of a part of a block and notes what it is given: a mistake in the real part costs nothing here."""

    def __init__(self, name, result, returns_pair=False):
        super().__init__()
        self.name, self.result, self.returns_pair = name, result, returns_pair
        self.calls, self.given = 0, {}

    def note(self, **given):
        self.calls, self.given = self.calls + 1, given
        result = self.result(*(given[name] for name in given if name != "mask"))
        return (result, None) if self.returns_pair else result

    def check(self, name, expected, hint, slips=()):
        """Refuse, in words, that the block gave this part something else."""
        assert self.calls > 0, f"The block never calls {self.name}."
        assert self.calls == 1, (
            f"The block calls {self.name} {self.calls} times instead of once."
        )
        assert self.given[name] is not None, f"{self.name} gets no {name}. {hint}"
        check_close(
            self.given[name], expected, f"The {name} that {self.name} gets", hint, slips=slips
        )


class AttentionStandIn(StandIn):
    def forward(self, query, key, value, mask=None):
        return self.note(query=query, key=key, value=value, mask=mask)


class LayerStandIn(StandIn):
    def forward(self, hidden):
        return self.note(input=hidden)


# %% [markdown]
# ## Part 1 · Scaled dot-product attention ({points:attention} points)
#
# **Question: how does a position look things up in all the others?**
#
# Each query is compared with every key. The scores become weights, and the weights mix the values (Vaswani et al. 2017,
# equation 1):
#
# $$\mathrm{Attention}(Q, K, V) = \operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{D}}\right) V$$
#
# First write it as you would explain it: one query at a time, one key at a time, in Python loops. For the
# query $q_t$ that is
#
# $$e_{tj} = \frac{1}{\sqrt{D}} \sum_{d} q_{td} k_{jd}, \qquad
# \alpha_{tj} = \frac{\exp e_{tj}}{\sum_{i} \exp e_{ti}}, \qquad o_t = \sum_j \alpha_{tj} v_j$$
#
# The exponential of a large score is infinite. Subtract the largest score of the row from all of them first: the
# weights stay the same.
#
# Some models keep scores from running away (Gemma Team 2024, section 2). With a **cap** $c$, each score $e$ becomes
# $c \tanh(e / c)$ before the softmax, so that it stays between $-c$ and $c$.


# %% nbgrader={"grade": false, "grade_id": "by-loops", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_by_loops(query, key, value, cap=None):
    """Attend, one query and one key at a time.

    query: [T, D]     key: [S, D]     value: [S, E]
    cap:   a Python float; None: scores are not capped
    returns [T, E], same dtype and device

    Example: query [[0., 0.]], key [[1., 0.], [0., 1.]], value [[10.], [20.]] -> [[15.]]:
    a query of zeros fits both keys equally well
    """
    ### BEGIN SOLUTION
    rows = []
    for q in query:
        scores = [sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in key]
        if cap is not None:
            scores = [cap * (score / cap).tanh() for score in scores]
        largest = max(scores)
        exponentials = [(score - largest).exp() for score in scores]
        total = sum(exponentials)
        rows.append(sum(e / total * v for e, v in zip(exponentials, value)))
    return torch.stack(rows)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "attention-loops", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("attention_by_loops")
query, key, value = (
    tensor([[2.0, 0.0], [0.0, 0.0]]),
    tensor([[1.0, 0.0], [0.0, 1.0]]),
    tensor([[10.0], [20.0]]),
)
check_close(
    attention_by_loops(query, key, value),
    tensor([[11.9557], [15.0]]),
    "The output",
    "For the first query the scores are 2 / sqrt(2) and 0, the weights 0.8044 and 0.1956.",
    tolerance=1e-4,
    slips=(
        ([[11.1920], [15.0]], "Did you forget to divide each score by the square root of D?"),
        ([[12.6894], [15.0]], "Divide each score by the square root of D, not by D."),
    ),
)
check_close(
    attention_by_loops(query, key, value, cap=2.0),
    tensor([[12.2834], [15.0]]),
    "With a cap of 2, the output",
    "Cap each score after it was divided by the square root of D: 2 tanh(2 / sqrt(2) / 2) = 1.2177, and 0.",
    tolerance=1e-4,
)
check_close(
    attention_by_loops(1000 * query - 1000, key, value),
    tensor([[10.0], [15.0]]),
    "For scores of hundreds, the output",
    "Subtract the largest score of the row before you take exponentials.",
    tolerance=1e-4,
)
query, key, value = normal(3, (2, 3), (4, 3), (4, 5), dtype=torch.float32)
output = attention_by_loops(query, key, value, cap=2.0)
check_shape(output, [2, 5], "For 2 queries, 4 keys and values of size 5, the output")
check_close(
    attention_by_loops(query[1:], key, value, cap=2.0)[0],
    output[1],
    "The output for the second query alone",
    "Each query attends by itself.",
)
### BEGIN HIDDEN TESTS
# {compare:attention_by_loops}
### END HIDDEN TESTS

# %% [markdown]
# Now the same for all queries and keys at once, without a loop, and for any number of leading dimensions: [T, D] for one
# sentence, [B, T, D] for a batch, [B, H, T, N] for a batch with heads. In the last case the D of the formula is N, the
# size of *one* query.
#
# Some positions must not be attended to. Where the mask is False, the weight must be exactly 0 and the rest of the row
# must still sum to 1. Each query may attend to at least one position; you need not test that. Scores are capped first, then
# masked.


# %% nbgrader={"grade": false, "grade_id": "by-matrices", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention(query, key, value, mask=None, cap=None):
    """Attend, all queries and keys at once.

    query: [..., T, D]     key: [..., S, D]     value: [..., S, E]
    mask:  bool, broadcasts to [..., T, S]; True = may attend. None: all may.
    cap:   as in attention_by_loops
    returns (output [..., T, E], weights [..., T, S]), same dtype and device

    Example: query [[0., 0.]], key [[1., 0.], [0., 1.]], value [[10.], [20.]], mask [[False, True]]
    -> ([[20.]], [[0., 1.]])
    """
    ### BEGIN SOLUTION
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # [..., T, S]
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "attention-matrices", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("attention")
check_no_loop("attention")
query, key, value = (
    tensor([[2.0, 0.0], [0.0, 0.0]]),
    tensor([[1.0, 0.0], [0.0, 1.0]]),
    tensor([[10.0], [20.0]]),
)
output, weights = check_pair(
    attention(query, key, value), "attention must return (output, weights)"
)
check_close(
    weights,
    tensor([[0.8044, 0.1956], [0.5, 0.5]]),
    "The table of weights",
    "The first query's scores are 2 / sqrt(2) and 0. Each row is one query and must sum to 1.",
    tolerance=1e-4,
    slips=(
        ([[0.8808, 0.1192], [0.5, 0.5]], "Did you forget to divide by the square root of D?"),
        (
            [[0.7311, 0.2689], [0.5, 0.5]],
            "Divide the scores by the square root of D, not by D.",
        ),
        (
            [[0.8044, 0.5], [0.1956, 0.5]],
            "Your columns sum to 1: take the softmax over the keys, the last dimension.",
        ),
    ),
)
check_close(output, tensor([[11.9557], [15.0]]), "The output", "It is weights @ value.", 1e-4)
output, weights = attention(*normal(4, (2, 3, 4), (2, 5, 4), (2, 5, 6)))
check_shape(weights, [2, 3, 5], "For 2 sentences, 3 queries and 5 keys, the table of weights")
check_shape(output, [2, 3, 6], "For 2 sentences, 3 queries and values of size 6, the output")
_, weights = attention(query, key, value, cap=2.0)
check_close(
    weights,
    tensor([[0.7717, 0.2283], [0.5, 0.5]]),
    "With a cap of 2, the table of weights",
    "Cap the scores after the division: 2 tanh(2 / sqrt(2) / 2) = 1.2177, and 0.",
    1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:attention}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "attention-mask", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
query, key, value = (
    tensor([[[2.0, 0.0], [0.0, 0.0]]]),
    tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]),
    tensor([[[10.0], [20.0], [900.0]]]),
)
mask = tensor([[[True, True, False], [False, True, False]]])
output, weights = check_pair(
    attention(query, key, value, mask), "attention must return (output, weights)"
)
check_shape(weights, [1, 2, 3], "With a mask, the table of weights")
assert not (weights[mask] == 0).all(), (
    "Your weights are 0 just where the mask is True. True in the mask means: may attend."
)
assert (weights[~mask] == 0).all(), (
    f"Masked positions must get weight exactly 0; yours get {[round(w, 4) for w in weights[~mask].tolist()]}."
)
for row, total in enumerate(weights.sum(-1).flatten().tolist()):
    assert abs(total - 1) < 1e-5, (
        f"The weights of each row must sum to 1; row {row} sums to {total:.2f}. "
        "Mask the scores, before the softmax."
    )
check_close(output, tensor([[[11.9557], [20.0]]]), "With a mask, the output", tolerance=1e-4)
_, weights = attention(query, key, value, mask, cap=1.0)
check_close(
    weights,
    tensor([[[0.7086, 0.2914, 0.0], [0.0, 1.0, 0.0]]]),
    "With a mask and a cap of 1, the table of weights",
    "Mask after the scores are capped: a capped score is finite.",
    1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:attention_mask}
### END HIDDEN TESTS

# %% [markdown]
# If both are right they agree, and only one of them is usable. The next cell measures it.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "clock", "locked": true, "schema_version": 3, "solution": false, "task": false}
import time


def seconds(function, *inputs):
    start = time.perf_counter()
    output = function(*inputs)
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, output


generator = torch.Generator().manual_seed(0)
for T in (4, 8, 16, 32):
    rows = torch.randn(T, 8, generator=generator).to(device)
    slow, by_loops = seconds(attention_by_loops, rows, rows, rows)
    fast, (by_matrices, _) = min(
        (seconds(attention, rows, rows, rows) for _ in range(5)), key=lambda run: run[0]
    )
    difference = (by_loops - by_matrices).abs().max().item()
    print(
        f"{T:3} positions: loops {1e3 * slow:7.2f} ms, matrices {1e3 * fast:6.3f} ms, "
        f"largest difference {difference:.0e}"
    )

# %% [markdown]
# Twice the length, four times the pairs: the loops take four times as long. The matrices do the same arithmetic.

# %% [markdown]
# ## Part 2 · Multi-head attention ({points:multi-head} points)
#
# **Question: how does a position look for several things at once?**
#
# One softmax can point at one place. So split the D features into H heads of N = D / H features, let each head attend on its
# own, put the results side by side again, and mix them with one more matrix (Vaswani et al. 2017, section 3.2.2):
#
# $$\mathrm{head}_h = \mathrm{Attention}(Q_h, K_h, V_h), \qquad
# \mathrm{MultiHead} = [\mathrm{head}_1; \dots; \mathrm{head}_H]\, W^O$$
#
# Head 0 owns the first N features, head 1 the next N, and so on. Or, if `dealt`, the features are dealt out like cards: head 0
# owns features 0, H, 2H and so on, head 1 owns 1, H + 1, 2H + 1. First the two functions that take the heads apart and
# put them together. Beware: a reshape that gives the right *shape* may put a feature of another *position* there.


# %% nbgrader={"grade": false, "grade_id": "heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(hidden, num_heads, dealt=False):
    """Give each head its share of the features.

    hidden: [B, T, D]
    returns [B, H, T, N] with N = D / H

    Example: [[[0, 1, 2, 3], [4, 5, 6, 7]]], 2 heads -> [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]];
             dealt -> [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]
    """
    ### BEGIN SOLUTION
    if dealt:
        return hidden.unflatten(2, (-1, num_heads)).permute(0, 3, 1, 2)
    B, T, D = hidden.shape
    return hidden.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)  # [B, H, T, N]
    ### END SOLUTION


def merge_heads(heads, dealt=False):
    """Put the heads side by side again: the inverse of split_heads, dealt or not.

    heads: [B, H, T, N]
    returns [B, T, D] with D = H N
    """
    ### BEGIN SOLUTION
    if dealt:
        return heads.permute(0, 2, 3, 1).flatten(2)
    B, H, T, N = heads.shape
    return heads.transpose(1, 2).reshape(B, T, H * N)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "multi-head-split", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("split_heads", "merge_heads")
hidden = tensor([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])
heads = tensor([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])
check_close(
    split_heads(hidden, 2),
    heads,
    "split_heads of the example",
    "Head 0 holds the first two features of both positions, head 1 the last two.",
    slips=(
        (
            hidden.reshape(1, 2, 2, 2),
            "A reshape to [B, H, T, N] alone gives head 0 the whole first position. Reshape to [B, T, H, N], "
            "then swap T and H with transpose(1, 2).",
        ),
        (
            hidden.reshape(1, 2, 2, 2).permute(0, 3, 1, 2),
            "Your head 0 owns every second feature. Reshape D to [H, N], with H first.",
        ),
    ),
)
check_close(
    merge_heads(heads),
    hidden,
    "merge_heads of the heads",
    "Swap T and H back first, then reshape to [B, T, H N].",
    slips=(
        (heads.reshape(1, 2, 4), "Swap T and H back with transpose(1, 2) before you reshape."),
    ),
)
hidden = torch.arange(72.0, device=device).reshape(2, 3, 12)
heads = split_heads(hidden, 4, dealt=True)
check_shape(heads, [2, 4, 3, 3], "For 2 sentences, 3 positions and 12 features, the 4 heads")
for head in range(4):
    check_close(
        heads[:, head],
        hidden[:, :, head::4],
        f"With features dealt out, head {head}",
        f"It owns features {head}, {head + 4} and {head + 8} of each position.",
    )
check_close(
    merge_heads(heads, dealt=True),
    hidden,
    "With features dealt out, merge_heads of these heads",
    "It is the inverse of split_heads.",
)
### BEGIN HIDDEN TESTS
# {compare:split_heads}
# {compare:merge_heads}
### END HIDDEN TESTS

# %% [markdown]
# Now the module. Its four matrices are given. Query, key and value go through the first three, are split into heads,
# attend, are merged, and go through the last. The query may come from elsewhere than key and value: then T and S differ.
#
# The mask comes as [B, 1, S] or [B, T, S] and holds for every head. The scores are [B, H, T, S]. Tensors are aligned from
# the right when they broadcast, so put the missing axis where it belongs.
#
# Not every head is needed (Michel, Levy and Neubig 2019). `active` says which heads work; what another one would give to the last
# matrix is 0. The weights stay what they are.


# %% nbgrader={"grade": false, "grade_id": "multi-head", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MultiHeadAttention(torch.nn.Module):
    """H attentions side by side."""

    def __init__(self, dim, num_heads):
        super().__init__()
        if dim % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {dim} features equally")
        self.num_heads = num_heads
        self.to_query = torch.nn.Linear(dim, dim)
        self.to_key = torch.nn.Linear(dim, dim)
        self.to_value = torch.nn.Linear(dim, dim)
        self.to_output = torch.nn.Linear(dim, dim)

    def forward(self, query, key, value, mask=None, active=None):
        """
        query: [B, T, D]     key, value: [B, S, D]
        mask:  bool [B, 1, S] or [B, T, S]; None: all may be attended to
        active: bool [H]; None: all heads work
        returns (output [B, T, D], weights [B, H, T, S])
        """
        ### BEGIN SOLUTION
        query = split_heads(self.to_query(query), self.num_heads)  # [B, H, T, N]
        key = split_heads(self.to_key(key), self.num_heads)  # [B, H, S, N]
        value = split_heads(self.to_value(value), self.num_heads)  # [B, H, S, N]
        if active is not None:
            value = value * active[:, None, None]
        if mask is not None:
            mask = mask.unsqueeze(1)  # [B, 1, 1 or T, S]: the same for every head
        mixed, weights = attention(query, key, value, mask)
        return self.to_output(merge_heads(mixed)), weights
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "multi-head-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("MultiHeadAttention")
module = MultiHeadAttention(4, 2).to(device)
with torch.no_grad():
    for linear, scale in (
        (module.to_query, 1.0),
        (module.to_key, 1.0),
        (module.to_value, 10.0),
        (module.to_output, 2.0),
    ):
        linear.weight.copy_(scale * torch.eye(4))
        linear.bias.zero_()
hidden = tensor([[[1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]]])
answer = module(hidden, hidden, hidden)
output, weights = check_pair(answer, "MultiHeadAttention must return (output, weights)")
check_close(
    weights,
    tensor([[[[0.8044, 0.1956], [0.5, 0.5]], [[0.9442, 0.0558], [0.5, 0.5]]]]),
    "The weights of the two heads",
    "Head 0 sees [1, 1] and [0, 0] as queries and keys, head 1 sees [0, 2] and [0, 0]. Split, then call your attention.",
    tolerance=1e-4,
    slips=(
        (
            [[[[0.7311, 0.2689], [0.5, 0.5]], [[0.8808, 0.1192], [0.5, 0.5]]]],
            "You divide by the square root of all features, 4. A query of one head has 2.",
        ),
    ),
)
expected = tensor([[[16.0878, 16.0878, 0.0, 37.7686], [10.0, 10.0, 0.0, 20.0]]])
check_close(
    output,
    expected,
    "The output",
    "to_value multiplies by 10 and to_output by 2; between them the heads are mixed by their weights and merged.",
    tolerance=1e-4,
    slips=(
        (expected / 2, "Is to_output forgotten? It comes last, after the heads are merged."),
        (
            expected / 10,
            "Is to_value forgotten? The values go through it, as the keys through to_key.",
        ),
    ),
)
mixed, table = filled(MultiHeadAttention(6, 2), 22)(
    *normal(21, (3, 4, 6), (3, 5, 6), (3, 5, 6), dtype=torch.float32)
)
check_shape(table, [3, 2, 4, 5], "For 3 sentences, 4 queries and 5 keys, the weights")
check_shape(mixed, [3, 4, 6], "For 3 sentences and 4 queries, the output")
output, found = module(hidden, hidden, hidden, active=tensor([False, True]))
check_close(
    output,
    expected * tensor([0.0, 0.0, 1.0, 1.0]),
    "With head 1 alone active, the output",
    "What head 0 gives is 0 when the heads are merged; the last matrix comes after that.",
    tolerance=1e-4,
)
check_close(found, weights, "With head 1 alone active, the weights", "They stay what they are.")
### BEGIN HIDDEN TESTS
# {compare:MultiHeadAttention}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "multi-head-mask", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
module = filled(MultiHeadAttention(4, 2), 23)
(hidden,) = normal(24, (2, 3, 4), dtype=torch.float32)
padded = tensor(
    [[[True, True, False]], [[True, True, True]]]
)  # the first sentence has two words
active = tensor([False, True])
output, weights = check_pair(
    module(hidden, hidden, hidden, padded, active),
    "MultiHeadAttention must return (output, weights)",
)
check_shape(weights, [2, 2, 3, 3], "The weights")
for head in (0, 1):
    assert (weights[0, head, :, 2] == 0).all() and (weights[1, head, :, 2] > 0).all(), (
        "In sentence 0 the third position is padding, in sentence 1 it is a word. "
        f"Head {head} gives it {weights[0, head, :, 2].max().item():.2f} in sentence 0 and "
        f"{weights[1, head, :, 2].max().item():.2f} in sentence 1. The mask [B, 1, S] has no axis for heads: "
        "put one at place 1, with mask.unsqueeze(1), so that it broadcasts to [B, H, T, S]."
    )
whole, _ = module(hidden, hidden, hidden, padded)
assert not torch.allclose(whole, output, atol=1e-3), (
    "With a mask, it must make a difference that head 0 does not work; your output stays the same."
)
alone, _ = module(hidden[:1, :2], hidden[:1, :2], hidden[:1, :2], active=active)
check_close(
    output[:1, :2],
    alone,
    "The output for a sentence in a padded batch",
    "It must be the one for the sentence alone.",
)
### BEGIN HIDDEN TESTS
# {compare:multi_head_mask}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · Masks ({points:masks} points)
#
# **Question: what may a position see?**
#
# Sentences in a batch have different lengths; short ones are filled up at the end. Nobody may attend to the filling. And
# a decoder that is trained to predict word t + 1 from words 0 to t must not see word t + 1: position t may attend
# to itself and to what stands before it. In the decoder both hold at once.
#
# Two conventions differ from model to model. The filling may stand in front, on the **left**, as it does where a batch is
# continued. And a position may see no more than a **window**, the last few positions with itself among them (Beltagy,
# Peters and Cohan 2020).


# %% nbgrader={"grade": false, "grade_id": "masks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def padding_mask(lengths, size, left=False):
    """Let everybody attend to the words of a sentence and to nothing behind them, or in front of them.

    lengths: int64 or int32 [B], words in each sentence, from 1 to size
    left:    True: the filling stands in front, and the last word at the last position
    returns bool [B, 1, size], on the device of lengths

    Example: lengths [2, 3], size 3 -> [[[True, True, False]], [[True, True, True]]];
             left -> [[[False, True, True]], [[True, True, True]]]
    """
    ### BEGIN SOLUTION
    places = torch.arange(size, device=lengths.device)
    if left:
        places = places.flip(0)
    return (places < lengths.unsqueeze(1)).unsqueeze(1)  # [B, 1, S]
    ### END SOLUTION


def causal_mask(size, device=None, window=None):
    """Let each position attend to itself and to those before it.

    window: the most positions that one may attend to, itself among them, at least 1; None: there is no window
    returns bool [size, size] on that device; row t belongs to the query at position t

    Example: size 2 -> [[True, False], [True, True]]; with window 1 -> [[True, False], [False, True]]
    """
    ### BEGIN SOLUTION
    mask = torch.ones(size, size, dtype=torch.bool, device=device).tril()
    return mask if window is None else mask.triu(1 - window)
    ### END SOLUTION


def decoder_mask(lengths, size, window=None):
    """Both: words only, filled up at the end, and none that comes later.

    lengths: int64 or int32 [B];  window: as in causal_mask
    returns bool [B, size, size], on the device of lengths
    """
    ### BEGIN SOLUTION
    return padding_mask(lengths, size) & causal_mask(size, lengths.device, window)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "masks-padding", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("padding_mask")
expected = tensor([[[True, True, False]], [[True, True, True]]])
check_close(
    padding_mask(tensor([2, 3]), 3),
    expected,
    "padding_mask of lengths 2 and 3, size 3,",
    "Position j holds a word if j < length; the axis in the middle is for the queries.",
    slips=(
        (~expected, "Yours is upside down. True means: may attend."),
        (
            tensor([[[True, True, True]], [[True, True, True]]]),
            "Positions count from 0: the last word of a sentence of length 2 stands at position 1.",
        ),
        (
            tensor([[[True, False, False]], [[True, True, False]]]),
            "The last word is missing: j < length, with positions from 0.",
        ),
    ),
)
check_close(
    padding_mask(tensor([2, 3]), 4, left=True),
    tensor([[[False, False, True, True]], [[False, True, True, True]]]),
    "With the filling on the left, padding_mask of lengths 2 and 3, size 4,",
    "The words stand at the end.",
)
### BEGIN HIDDEN TESTS
# {compare:padding_mask}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "masks-causal", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("causal_mask")
expected = tensor([[True, False, False], [True, True, False], [True, True, True]])
check_close(
    causal_mask(3, device),
    expected,
    "causal_mask of size 3",
    "Row t is True at columns 0 to t.",
    slips=(
        (~expected, "Yours is upside down. True means: may attend."),
        (
            expected.T,
            "Yours lets each position see itself and what comes later. Row t belongs to the query at t.",
        ),
        (
            expected.tril(-1),
            "A position may attend to itself. Your first position may attend to nothing at all.",
        ),
        (
            torch.ones_like(expected).tril(1),
            "Yours lets each position see the next one, which is the very word that it is to predict.",
        ),
        (
            expected.triu(1),
            "Yours is True at what comes later. Row t is True at columns 0 to t.",
        ),
    ),
)
check_close(
    causal_mask(4, device, window=2),
    tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]).bool(),
    "With a window of 2, causal_mask of size 4",
    "Each position sees itself and the one before it.",
)
### BEGIN HIDDEN TESTS
# {compare:causal_mask}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "masks-both", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("decoder_mask")
both = tensor([[[1, 0, 0], [1, 1, 0], [1, 1, 0]], [[1, 0, 0], [1, 1, 0], [1, 1, 1]]]).bool()
either = tensor([[[1, 1, 0], [1, 1, 0], [1, 1, 1]], [[1, 1, 1], [1, 1, 1], [1, 1, 1]]]).bool()
check_close(
    decoder_mask(tensor([2, 3]), 3),
    both,
    "decoder_mask of lengths 2 and 3, size 3,",
    "Sentence 0 has two words: its third column is False everywhere. In sentence 1 only what comes later is.",
    slips=((either, "Both conditions must hold, so join the masks with &, not with |."),),
)
check_close(
    decoder_mask(tensor([1, 3]), 4, window=2),
    tensor(
        [
            [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
            [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]],
        ]
    ).bool(),
    "With a window of 2, decoder_mask of lengths 1 and 3, size 4,",
    "Give the window to causal_mask.",
)
### BEGIN HIDDEN TESTS
# {compare:decoder_mask}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · Positions ({points:positions} points)
#
# **Question: how does the model know the order of the words?**
#
# Attention treats its keys as a set: mix up the words and each gets the same output as before. So the order must be
# in the numbers. Vaswani et al. (2017, section 3.5) add to position $k$ a row of sines and cosines, one pair for
# each wavelength, with $n$ = 10,000 (`base`):
#
# $$P_{k,\,2i} = \sin\left(\frac{k}{n^{2i/D}}\right), \qquad P_{k,\,2i+1} = \cos\left(\frac{k}{n^{2i/D}}\right)$$
#
# Sines stand in the even columns and cosines in the odd ones, so that the two of one wavelength are neighbours. Positions
# count from 0. D is even. A translator that writes word by word needs one row at a time, so the table may begin at another
# position, `first`.


# %% nbgrader={"grade": false, "grade_id": "encoding", "locked": false, "schema_version": 3, "solution": true, "task": false}
def positional_encoding(length, dim, base=10000.0, first=0):
    """The table of sines and cosines of positions first, first + 1, and so on.

    returns float32 [length, dim], on the CPU

    Example: length 2, dim 2 -> [[0., 1.], [0.8415, 0.5403]]: sin and cos of 0 and of 1;
             with first 1 -> [[0.8415, 0.5403], [0.9093, -0.4161]]
    """
    ### BEGIN SOLUTION
    place = torch.arange(first, first + length).unsqueeze(1)  # [T, 1]
    frequency = base ** (-torch.arange(0, dim, 2) / dim)  # [D/2]
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(place * frequency)
    table[:, 1::2] = torch.cos(place * frequency)
    return table
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "positions-encoding", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("positional_encoding")
table = torch.tensor(
    [
        [0.0, 1.0, 0.0, 1.0],
        [0.84147098, 0.54030231, 0.09983342, 0.99500417],
        [0.90929743, -0.41614684, 0.19866933, 0.98006658],
        [0.14112001, -0.9899925, 0.29552021, 0.95533649],
    ]
)
angles = torch.arange(4.0)[:, None] * torch.tensor([1.0, 100**-0.25])
check_close(
    positional_encoding(4, 4, base=100.0),
    table,
    "The table of 4 positions with 4 features and base 100",
    "Row k, columns 2i and 2i + 1: sin and cos of k divided by the base to the power 2i / D.",
    tolerance=1e-5,
    slips=(
        (
            table[:, [0, 2, 1, 3]],
            "Yours has all sines first. Sines go to columns 0, 2, 4, ..., table[:, 0::2].",
        ),
        (
            table[:, [1, 0, 3, 2]],
            "Sines belong to the even columns, 0, 2, ..., cosines to the odd ones.",
        ),
        (
            table[:, [1, 3, 0, 2]],
            "Sines belong to the even columns, 0, 2, ..., cosines to the odd ones.",
        ),
        (
            torch.stack([angles.sin(), angles.cos()], -1).flatten(1),
            "The exponent of the second pair is 2i / D = 2 / 4 with i = 1; yours is 1 / 4.",
        ),
    ),
)
check_close(
    positional_encoding(2, 4, base=100.0, first=2),
    table[2:],
    "The table of 2 positions from position 2 on",
    "Its first row is that of position 2.",
    tolerance=1e-5,
)
### BEGIN HIDDEN TESTS
# {compare:positional_encoding}
### END HIDDEN TESTS

# %% [markdown]
# A token becomes its row of the embedding matrix, times $\sqrt{D}$ (section 3.4), plus its position. Embeddings are
# trained with entries of size about $1/\sqrt{D}$; the factor brings them to the size of the sines.


# %% nbgrader={"grade": false, "grade_id": "embed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def embed(tokens, embedding):
    """Turn tokens into what the first block reads.

    tokens:    int [B, T]
    embedding: [V, D]
    returns [B, T, D], dtype and device of embedding
    """
    ### BEGIN SOLUTION
    T, D = tokens.shape[1], embedding.shape[1]
    return embedding[tokens] * math.sqrt(D) + positional_encoding(T, D).to(embedding)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "positions-embed", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("embed")
places = tensor([[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.0100, 0.9999]])
ones = torch.ones(3, 4, device=device)
embedding = tensor([[0.0], [1.0], [2.0]]) * ones
rows = tensor([[[2.0], [1.0]], [[0.0], [2.0]]]) * ones[:2]
check_close(
    embed(tensor([[2, 1], [0, 2]]), embedding),
    2 * rows + places,
    "What the tokens [[2, 1], [0, 2]] become",
    "Row of the embedding, times the square root of D (here 2), plus the row of the position.",
    tolerance=1e-3,
    slips=(
        (rows + places, "Multiply the embedding by the square root of D, here 2."),
        (2 * (rows + places), "Scale the embedding alone: positions are added after that."),
        (4 * rows + places, "Multiply by the square root of D, here 2, not by D."),
        (2 * rows, "The positions are missing."),
        (
            2 * rows + places[:, None],
            "Your positions run along the batch: every sentence starts with position 0.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:embed}
### END HIDDEN TESTS

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "distances", "locked": true, "schema_version": 3, "solution": false, "task": false}
table = positional_encoding(100, 48)
print(
    "dot product of the rows of two positions\n\ndistance "
    + "".join(f"{d:7}" for d in (0, 1, 2, 4, 8, 16, 32))
)
for first in (0, 20, 60):
    products = [(table[first] @ table[first + d]).item() for d in (0, 1, 2, 4, 8, 16, 32)]
    print(f"from {first:3} " + "".join(f"{p:7.2f}" for p in products))

# %% [markdown]
# The three lines are equal: the product depends on the distance alone, wherever you start. So a head can learn to look "two
# words to the left" once, for all positions.

# %% [markdown]
# ## Part 5 · Layer norm ({points:layer-norm} points)
#
# **Question: how do numbers stay of one size through many layers?**
#
# Ba, Kiros and Hinton (2016): bring the D features of *each position by itself* to mean 0 and variance 1, then let the
# model choose another scale and shift for each feature.
#
# $$\mu = \frac{1}{D} \sum_d x_d, \qquad \sigma^2 = \frac{1}{D} \sum_d (x_d - \mu)^2, \qquad
# y_d = \gamma_d \, \frac{x_d - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta_d$$
#
# $\gamma$ is `gain`, $\beta$ is `offset`. The small $\epsilon$ is for positions whose features are all equal.
#
# Zhang and Sennrich (2019) found that the scale matters and the mean does not. If the norm is not `centred`, $\mu$ is 0 in both
# formulas: nothing is taken away, and $\sigma^2$ is the mean of the squares.


# %% nbgrader={"grade": false, "grade_id": "norm", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5, centred=True):
        super().__init__()
        self.eps, self.centred = eps, centred
        self.gain = torch.nn.Parameter(torch.ones(dim))
        self.offset = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, hidden):
        """
        hidden: [..., D]
        returns [..., D], same dtype and device

        Example: [[1., 2., 3., 6.]] with eps = 0.5, gain 1 and offset 0 -> [[-1., -0.5, 0., 1.5]];
                 [[1., 1., 3., 3.]] with eps = 4 and not centred -> [[0.3333, 0.3333, 1., 1.]]
        """
        ### BEGIN SOLUTION
        if not self.centred:
            size = (self.eps + hidden.square().mean(-1, True)).sqrt()
            return self.gain * hidden / size + self.offset
        mean = hidden.mean(dim=-1, keepdim=True)
        variance = hidden.var(dim=-1, correction=0, keepdim=True)
        return self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "layer-norm-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("LayerNorm")
norm = LayerNorm(4, eps=0.5).to(device)
centred = tensor([[-2.0, -1.0, 0.0, 3.0]])
check_close(
    norm(tensor([[1.0, 2.0, 3.0, 6.0]])),
    centred / 2,
    "With eps = 0.5, the norm of [1, 2, 3, 6]",
    "The mean is 3, the variance (4 + 1 + 0 + 9) / 4 = 3.5, the root of 3.5 + 0.5 is 2.",
    slips=(
        (
            centred / (14 / 3 + 0.5) ** 0.5,
            "Divide the sum of squares by D = 4, not by D - 1: torch.var needs correction=0.",
        ),
        (centred / (3.5**0.5 + 0.5), "eps belongs under the root, beside the variance."),
        (
            centred / ((14 / 3) ** 0.5 + 0.5),
            "Divide by D, not by D - 1, and put eps under the root.",
        ),
        (centred / 3.5**0.5, "Where is eps? Use self.eps, here 0.5, under the root."),
        (centred / 4, "Divide by the standard deviation: the root of the variance plus eps."),
    ),
)
with torch.no_grad():
    norm.gain.copy_(tensor([1.0, 2.0, 3.0, 4.0]))
    norm.offset.copy_(tensor([10.0, 0.0, 0.0, -1.0]))
check_close(
    norm(tensor([[1.0, 2.0, 3.0, 6.0]])),
    tensor([[9.0, -1.0, 0.0, 5.0]]),
    "With gain [1, 2, 3, 4] and offset [10, 0, 0, -1], the norm",
    "Multiply by self.gain first, then add self.offset.",
    slips=((centred / 2, "Are self.gain and self.offset forgotten?"),),
)
check_shape(
    LayerNorm(5).to(device)(normal(5, (2, 3, 4, 5), dtype=torch.float32)[0]),
    [2, 3, 4, 5],
    "The norm",
)
norm = LayerNorm(4, eps=4.0, centred=False).to(device)
with torch.no_grad():
    norm.gain.copy_(tensor([1.0, 2.0, 3.0, 4.0]))
    norm.offset.copy_(tensor([10.0, 0.0, 0.0, -1.0]))
check_close(
    norm(tensor([[1.0, 1.0, 3.0, 3.0]])),
    tensor([[31 / 3, 2 / 3, 3.0, 3.0]]),
    "Not centred, with eps = 4, the norm of [1, 1, 3, 3]",
    "The mean of the squares is 5, the root of 5 + 4 is 3. Nothing is taken away; gain and offset as ever.",
)
### BEGIN HIDDEN TESTS
# {compare:LayerNorm}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "layer-norm-positions", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
norm = LayerNorm(4).to(device)
hidden = tensor(
    [[[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 0.0, 4.0]], [[5.0, 1.0, 1.0, 1.0], [2.0, 2.0, 4.0, 4.0]]]
)
before = norm(hidden.clone())
check_shape(before, [2, 2, 4], "The norm of [2, 2, 4]")
changed = hidden.clone()
changed[0, 0] = tensor([9.0, -7.0, 5.0, 1.0])
after = norm(changed)
assert torch.allclose(before[1], after[1], atol=1e-5), (
    "When sentence 0 changed, the result for sentence 1 changed, too. Take mean and variance over the features of "
    "one position, dim=-1, not over the batch."
)
assert torch.allclose(before[0, 1], after[0, 1], atol=1e-5), (
    "When position 0 changed, the result for position 1 changed, too. Take mean and variance over the features of "
    "one position alone, dim=-1."
)
assert hidden[0, 0].tolist() == [1.0, 2.0, 3.0, 6.0], "The input must stay as it is."
assert torch.allclose(norm(100 * hidden - 7), before, atol=1e-3), (
    "A hundred times the input, shifted by 7, must give nearly the same: mean 0 and variance 1 again."
)
raw = LayerNorm(4, centred=False).to(device)
check_close(
    raw(tensor([[3.0, 3.0, 3.0, 3.0], [-2.0, 0.0, 0.0, 0.0]])),
    tensor([[1.0, 1.0, 1.0, 1.0], [-2.0, 0.0, 0.0, 0.0]]),
    "Not centred, the norm of [3, 3, 3, 3] and [-2, 0, 0, 0]",
    "Each position is divided by the root of the mean of its own squares.",
    tolerance=1e-3,
)
### BEGIN HIDDEN TESTS
# {compare:equal_features}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · The encoder block ({points:encoder-block} points)
#
# **Question: what is one layer of a Transformer?**
#
# First the feed-forward network (Vaswani et al. 2017, equation 2). It works at each position by itself, with the same
# weights at all of them:
#
# $$\mathrm{FFN}(x) = \max(0, x W_1 + b_1)\, W_2 + b_2$$
#
# In newer models a third layer decides how much of each hidden unit comes through (Shazeer 2020). If the network is `gated`, the
# activation is that of the gate:
#
# $$\mathrm{FFN}(x) = \big(\max(0, x W_g + b_g) \odot (x W_1 + b_1)\big)\, W_2 + b_2$$
#
# Then the block. Self-attention, and the network; each is added to what went in (the residual), and the sum is normed.
# The norm comes *after* the sum, as in the paper. With $X$ for what goes in:
#
# $$A = \mathrm{LayerNorm}_1(\alpha X + \mathrm{SelfAttention}(X)), \qquad Y = \mathrm{LayerNorm}_2(\alpha A + \mathrm{FFN}(A))$$
#
# $\alpha$ is 1 in the paper. In a model of hundreds of layers it is larger, so that a layer changes little of what went in
# (Wang et al. 2022, *DeepNet*).


# %% nbgrader={"grade": false, "grade_id": "feed-forward", "locked": false, "schema_version": 3, "solution": true, "task": false}
class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden_dim, gated=False):
        super().__init__()
        self.inner = torch.nn.Linear(dim, hidden_dim)
        self.outer = torch.nn.Linear(hidden_dim, dim)
        self.gate = torch.nn.Linear(dim, hidden_dim) if gated else None

    def forward(self, hidden):
        """hidden: [..., D] -> [..., D]"""
        ### BEGIN SOLUTION
        if self.gate is not None:
            return self.outer(self.gate(hidden).relu() * self.inner(hidden))
        return self.outer(torch.relu(self.inner(hidden)))
        ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "encoder", "locked": false, "schema_version": 3, "solution": true, "task": false}
class EncoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.attention_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)

    def forward(self, hidden, mask=None):
        """
        hidden: [B, T, D]
        mask:   bool [B, 1, T] or [B, T, T], for the self-attention; None: all may be attended to
        returns [B, T, D]
        """
        ### BEGIN SOLUTION
        attended, _ = self.self_attention(hidden, hidden, hidden, mask)
        hidden = self.attention_norm(self.alpha * hidden + attended)
        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "encoder-block-feed-forward", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("FeedForward")
network = FeedForward(2, 3).to(device)
with torch.no_grad():
    network.inner.weight.copy_(tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    network.inner.bias.copy_(tensor([0.0, 0.0, 1.0]))
    network.outer.weight.copy_(tensor([[1.0, 2.0, 10.0], [0.0, 1.0, 0.0]]))
    network.outer.bias.copy_(tensor([0.5, -3.0]))
hidden = tensor([[[1.0, -2.0], [0.0, 0.0]]])
check_close(
    network(hidden),
    tensor([[[21.5, -3.0], [10.5, -3.0]]]),
    "The network's output for [1, -2] and [0, 0]",
    "For [1, -2] the inner layer gives [1, -2, 2], ReLU [1, 0, 2], the outer layer [21.5, -3].",
    slips=(
        ([[[17.5, -5.0], [10.5, -3.0]]], "Is ReLU between the two layers forgotten?"),
        ([[[21.5, 0.0], [10.5, 0.0]]], "ReLU belongs between the two layers, not at the end."),
        ([[[17.5, 0.0], [10.5, 0.0]]], "ReLU belongs between the two layers, not at the end."),
        ([[[22.5, -5.0], [10.5, -3.0]]], "The block adds the residual; the network does not."),
    ),
)
network = filled(FeedForward(3, 4, gated=True), 25)
with torch.no_grad():
    network.gate.weight.zero_()
    network.gate.bias.copy_(tensor([2.0, -1.0, 0.0, 0.5]))
    network.outer.weight.copy_(torch.ones(3, 4))
(hidden,) = normal(26, (2, 5, 3), dtype=torch.float32)
units = network.inner(hidden)
check_close(
    network(hidden),
    (2 * units[..., :1] + 0.5 * units[..., 3:]) + network.outer.bias,
    "With gates that are always 2, -1, 0 and 0.5, the network's output",
    "ReLU of the gate times the inner layer, unit by unit, then the outer layer. The inner layer has no ReLU then.",
    tolerance=1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:FeedForward}
### END HIDDEN TESTS

# %% [markdown]
# The next test does not use your parts. It puts simple ones in their place (attention becomes "times 10", a norm "plus 1") and
# looks what your block passes to which.

# %% nbgrader={"grade": true, "grade_id": "encoder-block-wiring", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("EncoderBlock")
block = EncoderBlock(2, 1, 4).to(device)
block.self_attention = AttentionStandIn("self_attention", lambda q, k, v: 10 * v, True)
block.attention_norm = LayerStandIn("attention_norm", lambda x: x + 1)
block.feed_forward = LayerStandIn("feed_forward", lambda x: 100 * x)
block.feed_forward_norm = LayerStandIn("feed_forward_norm", lambda x: x - 3)
X = tensor([[[1.0, 2.0], [3.0, 5.0]]])
mask = tensor([[[True, False]]])
Y = block(X.clone(), mask)
first = "Self-attention gets the block's input three times: as query, as key and as value."
for name in ("query", "key", "value"):
    block.self_attention.check(
        name,
        X,
        first,
        slips=((X + 1, "The norm comes after the sum, not before the attention."),),
    )
assert block.self_attention.given["mask"] is not None, (
    "The mask does not reach the self-attention: padding would be attended to."
)
check_close(block.self_attention.given["mask"], mask, "The mask that self_attention gets")
A = 11 * X + 1
block.attention_norm.check(
    "input",
    11 * X,
    "The first norm gets the sum of the block's input and the attended values.",
    slips=(
        (10 * X, "Add the block's input to what attention gives: the residual."),
        (X, "The norm comes after the sum, not before the attention."),
    ),
)
block.feed_forward.check(
    "input",
    A,
    "The network gets what the first norm gave.",
    slips=(
        (11 * X, "The first norm is left out."),
        (10 * X + 1, "The first residual is left out."),
    ),
)
block.feed_forward_norm.check(
    "input",
    101 * A,
    "The second norm gets the sum of what went into the network and what came out.",
    slips=(
        (100 * A, "The second residual is left out: add what went into the network."),
        (
            100 * A + X,
            "The second residual starts from the first norm's output, not from the block's input.",
        ),
        (
            100 * A + 11 * X,
            "The second residual starts from the first norm's output, not from the sum before it.",
        ),
        (A, "The norm comes after the sum, not before the network."),
    ),
)
check_close(Y, 101 * A - 3, "What the block returns", "It is what the second norm gives.")
block = EncoderBlock(2, 1, 4, alpha=3.0).to(device)
block.self_attention = AttentionStandIn("self_attention", lambda q, k, v: 10 * v, True)
block.attention_norm = LayerStandIn("attention_norm", lambda x: x + 1)
block.feed_forward = LayerStandIn("feed_forward", lambda x: 100 * x)
block.feed_forward_norm = LayerStandIn("feed_forward_norm", lambda x: x - 3)
X = normal(27, (3, 4, 2), dtype=torch.float32)[0]
A, Y = 13 * X + 1, block(X.clone())
times = "With alpha = 3, what went in counts three times in the sum, what attention or network gives once."
block.attention_norm.check("input", 13 * X, times)
block.feed_forward_norm.check("input", 103 * A, times)
check_close(Y, 103 * A - 3, "With alpha = 3, what the block returns", times)
### BEGIN HIDDEN TESTS
# {compare:EncoderBlock}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 7 · The decoder block ({points:decoder-block} points)
#
# **Question: how does what is written look at what was read?**
#
# A decoder block has three steps, each with its residual and its norm: self-attention over the words written so far
# (masked, so that none sees a later one), **cross-attention**, in which each written position asks the encoder's output, the
# *memory*, and the network. In cross-attention the queries come from the decoder, the keys and values from the memory.
#
# $$A = \mathrm{LayerNorm}_1(\alpha X + \mathrm{SelfAttention}(X)), \quad
# C = \mathrm{LayerNorm}_2(\alpha A + \mathrm{CrossAttention}(A, M, M)), \quad
# Y = \mathrm{LayerNorm}_3(\alpha C + \mathrm{FFN}(C))$$
#
# Two masks come in: `mask` for the self-attention, and `memory_mask` for the padding of the source.


# %% nbgrader={"grade": false, "grade_id": "decoder", "locked": false, "schema_version": 3, "solution": true, "task": false}
class DecoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.self_norm = LayerNorm(dim)
        self.cross_attention = MultiHeadAttention(dim, num_heads)
        self.cross_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)

    def forward(self, hidden, memory, mask=None, memory_mask=None):
        """
        hidden: [B, T, D]     mask: bool [B, 1, T] or [B, T, T]
        memory: [B, S, D]     memory_mask: bool [B, 1, S] or [B, T, S]
        a mask that is None allows everything
        returns [B, T, D]
        """
        ### BEGIN SOLUTION
        attended, _ = self.self_attention(hidden, hidden, hidden, mask)
        hidden = self.self_norm(self.alpha * hidden + attended)
        attended, _ = self.cross_attention(hidden, memory, memory, memory_mask)
        hidden = self.cross_norm(self.alpha * hidden + attended)
        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "decoder-block-wiring", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("DecoderBlock")


def decoder_block_of_stand_ins(*alpha):
    block = DecoderBlock(2, 1, 4, *alpha).to(device)
    block.self_attention = AttentionStandIn("self_attention", lambda q, k, v: 10 * v, True)
    block.self_norm = LayerStandIn("self_norm", lambda x: x + 1)
    block.cross_attention = AttentionStandIn("cross_attention", lambda q, k, v: 7 * q, True)
    block.cross_norm = LayerStandIn("cross_norm", lambda x: x - 5)
    block.feed_forward = LayerStandIn("feed_forward", lambda x: 100 * x)
    block.feed_forward_norm = LayerStandIn("feed_forward_norm", lambda x: x - 3)
    return block


block = decoder_block_of_stand_ins()
X, M = tensor([[[1.0, 2.0], [3.0, 5.0]]]), tensor([[[0.5, 0.1], [0.2, 0.4]]])
Y = block(X.clone(), M.clone())
before = "The norm comes after the sum, not before the attention."
for name in ("query", "key", "value"):
    block.self_attention.check(
        name, X, "Self-attention gets the block's input three times.", slips=((X + 1, before),)
    )
A = 11 * X + 1
block.self_norm.check(
    "input",
    11 * X,
    "The first norm gets the block's input plus what self-attention gave.",
    slips=((10 * X, "The first residual is left out."), (X, before)),
)
block.cross_attention.check(
    "query",
    A,
    "The queries of the cross-attention are what the first norm gave.",
    slips=(
        (
            X,
            "The queries of the cross-attention are what the first norm gave, not the block's input.",
        ),
        (M, "The queries come from the decoder; the memory gives keys and values."),
        (11 * X, "The first norm is left out."),
        (A - 5, before),
    ),
)
for name in ("key", "value"):
    words = f"The {name}s of the cross-attention come from the encoder: the memory."
    block.cross_attention.check(
        name,
        M,
        words,
        slips=(
            (A, f"{words} Yours come from the decoder."),
            (X, f"{words} Yours are the block's input."),
        ),
    )
C = 8 * A - 5
block.cross_norm.check(
    "input",
    8 * A,
    "The second norm gets what went into the cross-attention as query plus what came out.",
    slips=(
        (7 * A, "The second residual is left out."),
        (
            7 * A + X,
            "The second residual starts from the first norm's output, not from the block's input.",
        ),
        (
            7 * A + M,
            "The second residual starts from the first norm's output, not from the memory.",
        ),
        (A, before),
    ),
)
block.feed_forward.check(
    "input",
    C,
    "The network gets what the second norm gave.",
    slips=((8 * A, "The second norm is left out."),),
)
block.feed_forward_norm.check(
    "input",
    101 * C,
    "The third norm gets what went into the network plus what came out.",
    slips=(
        (100 * C, "The third residual is left out."),
        (100 * C + A, "The third residual starts from the second norm's output."),
        (
            100 * C + X,
            "The third residual starts from the second norm's output, not from the block's input.",
        ),
        (C, "The norm comes after the sum, not before the network."),
    ),
)
check_close(Y, 101 * C - 3, "What the block returns", "It is what the third norm gives.")
block = decoder_block_of_stand_ins(3.0)
X, M = normal(28, (3, 4, 2), (3, 5, 2), dtype=torch.float32)
Y = block(X.clone(), M.clone())
A = 13 * X + 1
C = 10 * A - 5
times = "With alpha = 3, what went in counts three times in the sum, what attention or network gives once."
block.self_norm.check("input", 13 * X, times)
block.cross_norm.check("input", 10 * A, times)
block.feed_forward_norm.check("input", 103 * C, times)
check_close(Y, 103 * C - 3, "With alpha = 3, what the block returns", times)
### BEGIN HIDDEN TESTS
# {compare:DecoderBlock}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "decoder-block-masks", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
block = decoder_block_of_stand_ins()
X, M = tensor([[[1.0, 2.0], [3.0, 5.0]]]), tensor([[[0.5, 0.1], [0.2, 0.4]]])
causal, source = tensor([[[True, False], [True, True]]]), tensor([[[False, True]]])
block(X, M, causal, source)
for part, mask, words in (
    (
        block.self_attention,
        causal,
        "mask says which written words may be seen: it belongs to the self-attention.",
    ),
    (
        block.cross_attention,
        source,
        "memory_mask says which source positions are words: it belongs to the cross-attention, which may look at "
        "all of the source, before and behind.",
    ),
):
    assert part.given["mask"] is not None, f"No mask reaches {part.name}. {words}"
    check_close(part.given["mask"], mask, f"The mask that {part.name} gets", words)
### BEGIN HIDDEN TESTS
# {compare:decoder_masks}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 8 · Greedy decoding, and the trained translator ({points:greedy} points)
#
# **Question: do your parts make a Transformer?**
#
# The next cell joins them: embeddings, two encoder blocks, two decoder blocks, and scores of the next word from the target
# embedding (Vaswani et al. 2017, section 3.4, share these weights). It also reads the file with the trained numbers. Run it.

# %% nbgrader={"grade": false, "grade_id": "model", "locked": true, "schema_version": 3, "solution": false, "task": false}
import hashlib
import json
import pathlib

from safetensors import safe_open

CHECKPOINT = "translator.safetensors"
CHECKSUM = "{sha256:translator.safetensors}"
PAD, BOS, EOS = 0, 1, 2


class Transformer(torch.nn.Module):
    """Your parts in the order of Figure 1 of Vaswani et al. (2017)."""

    def __init__(self, source_words, target_words, dim, num_heads, num_layers, hidden_dim):
        super().__init__()
        sizes = (dim, num_heads, hidden_dim)
        self.source_embedding = torch.nn.Embedding(source_words, dim)
        self.target_embedding = torch.nn.Embedding(target_words, dim)
        self.encoder = torch.nn.ModuleList(EncoderBlock(*sizes) for _ in range(num_layers))
        self.decoder = torch.nn.ModuleList(DecoderBlock(*sizes) for _ in range(num_layers))
        self.with_positions = self.with_causal_mask = (
            True  # switched off in the experiment below
        )

    def encode(self, source, lengths):
        """source [B, S], lengths [B] -> memory [B, S, D]"""
        hidden = embed(source, self.source_embedding.weight)
        if not self.with_positions:
            hidden = hidden - positional_encoding(*hidden.shape[1:]).to(hidden)
        for block in self.encoder:
            hidden = block(hidden, padding_mask(lengths, source.shape[1]))
        return hidden

    def decode(self, target, memory, lengths):
        """target [B, T] from <bos> on, memory [B, S, D], lengths [B] of the sources -> scores of words [B, T, V]"""
        B, T = target.shape
        mask = decoder_mask(torch.full((B,), T, device=target.device), T)
        mask = mask if self.with_causal_mask else torch.ones_like(mask)
        hidden = embed(target, self.target_embedding.weight)
        for block in self.decoder:
            hidden = block(hidden, memory, mask, padding_mask(lengths, memory.shape[1]))
        return hidden @ self.target_embedding.weight.T


def load_translator(trained=True):
    """Your Transformer with the trained weights, what the file says about itself, and the record of a run."""
    path = pathlib.Path(CHECKPOINT)
    if not path.is_file():
        raise FileNotFoundError(
            f"{CHECKPOINT} is not in the folder of this notebook ({pathlib.Path.cwd()}). It lies beside the notebook where you "
            "got that: download it, too, and put it here. On Colab, open the Files panel on the left and upload it."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != CHECKSUM:
        raise ValueError(
            f"{CHECKPOINT} is not the file that belongs to this notebook: it was changed, cut off on its way, or comes "
            "from another release. Get it anew from where you got the notebook."
        )
    with safe_open(path, "pt", device=device) as file:
        facts = json.loads(file.metadata()["course"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (a safe_open is no dict)
    record = {
        name[6:]: tensors.pop(name) for name in list(tensors) if name.startswith("trace.")
    }
    torch.manual_seed(0)
    sizes = (facts[size] for size in ("dim", "num_heads", "num_layers", "hidden_dim"))
    model = Transformer(len(facts["source_words"]), len(facts["target_words"]), *sizes)
    if trained:
        names = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
        stored = {name: list(weights.shape) for name, weights in tensors.items()}
        assert names == stored, (
            "Your modules have other parameters than the trained ones. Leave each __init__ as it was given; look at "
            f"{sorted(name for name in names.keys() | stored.keys() if names.get(name) != stored.get(name))[0]}."
        )
        model.load_state_dict({name: weights.float() for name, weights in tensors.items()})
    return model.to(device), facts, record


def first_wrong_part(model, record):
    """Go along the recorded run of the trained model, each step from its recorded input; say which step departs first."""
    r = type("Record", (), record)
    encoder, decoder = model.encoder[0], model.decoder[0]
    steps = (
        (
            "Part 1 (attention)",
            r.mixed,
            lambda: attention(r.query, r.key, r.value, r.padding[:, None])[0],
        ),
        (
            "Part 2 (split_heads)",
            r.query,
            lambda: split_heads(encoder.self_attention.to_query(r.embedded), r.query.shape[1]),
        ),
        (
            "Part 2 (MultiHeadAttention)",
            r.attended,
            lambda: encoder.self_attention(r.embedded, r.embedded, r.embedded, r.padding)[0],
        ),
        (
            "Part 2 (MultiHeadAttention)",
            r.told,
            lambda: decoder.cross_attention(r.written, r.memory, r.memory, r.padding)[0],
        ),
        (
            "Part 2 (MultiHeadAttention)",
            r.recalled,
            lambda: decoder.self_attention(r.written, r.written, r.written, r.written_mask)[0],
        ),
        (
            "Part 3 (padding_mask)",
            r.padding,
            lambda: padding_mask(r.lengths, r.source.shape[1]),
        ),
        (
            "Part 3 (decoder_mask)",
            r.written_mask,
            lambda: decoder_mask(r.written_lengths, r.target.shape[1]),
        ),
        ("Part 4 (embed)", r.embedded, lambda: embed(r.source, model.source_embedding.weight)),
        (
            "Part 5 (LayerNorm)",
            r.normed,
            lambda: encoder.attention_norm(r.embedded + r.attended),
        ),
        ("Part 6 (FeedForward)", r.fed, lambda: encoder.feed_forward(r.normed)),
        ("Part 6 (EncoderBlock)", r.encoded, lambda: encoder(r.embedded, r.padding)),
        (
            "Part 7 (DecoderBlock)",
            r.decoded,
            lambda: decoder(r.written, r.memory, r.written_mask, r.padding),
        ),
    )
    for part, expected, step in steps:
        try:
            with torch.no_grad():
                check_close(step(), expected, "the result", tolerance=1e-3)
        except (
            Exception
        ) as error:  # whatever a student's function raises, it is this part that is wrong
            return f"{part} is the first of your parts that departs from the recorded run: {type(error).__name__}: {error}"
    return "Parts 1 to 7 agree with the recorded run of the trained model. Look at Part 8, greedy_decode."


# %% [markdown]
# Now the search. The model reads the source once: `model.encode(source, lengths)` gives the memory. Then it writes, word by word:
# `model.decode(target, memory, lengths)` gives the scores [B, T, V] of the word *after* each of the T written ones. Only the
# scores after the last one are new. Take the best word for each sentence, append it, and go on.
#
# A sentence ends with `eos`. Others in the batch may go on: what stands behind `eos` does not count. Stop when all have
# ended, or have `max_length` words (`eos` counts as one).


# %% nbgrader={"grade": false, "grade_id": "search", "locked": false, "schema_version": 3, "solution": true, "task": false}
def greedy_decode(model, source, lengths, bos, eos, max_length):
    """Translate a batch, the best next word at each step.

    model:   model.encode(source, lengths) -> memory [B, S, D];
             model.decode(target [B, T], memory, lengths) -> scores [B, T, V]; target begins with bos
    source:  int [B, S]
    lengths: int [B], words in each source sentence
    returns a list of B lists of Python ints, without the bos at the beginning, and without eos and what comes after it
    """
    ### BEGIN SOLUTION
    memory = model.encode(source, lengths)
    target = torch.full((len(source), 1), bos, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    while not ended.all() and target.shape[1] <= max_length:
        best = model.decode(target, memory, lengths)[:, -1].argmax(dim=-1)
        target = torch.cat([target, best.unsqueeze(1)], dim=1)
        ended |= best == eos
    rows = target[:, 1:].tolist()
    return [row[: row.index(eos)] if eos in row else row for row in rows]
    ### END SOLUTION


# %% [markdown]
# The first two tests use no Transformer. Their model knows a text for each source, and follows it only as long as it is
# given all the words that it has written so far.

# %% nbgrader={"grade": true, "grade_id": "greedy-words", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("greedy_decode")


class Reciter:
    """Writes texts[first word of the source], and word 4 for ever after its end."""

    def __init__(self, texts, bos=0, eos=1, sources=None):
        self.texts, self.bos, self.eos = texts, bos, eos
        self.encoded, self.sources = 0, sources or len(texts)

    def encode(self, source, lengths):
        self.encoded += len(source)
        assert self.encoded <= self.sources, (
            "The source does not change: encode it once, before the loop."
        )
        return source.unsqueeze(-1)

    def decode(self, target, memory, lengths):
        assert target.dim() == 2 and len(target) == len(memory) == len(lengths), (
            f"decode needs a target [B, T] with one row for each of the {len(memory)} sources; "
            f"yours is {list(target.shape)}."
        )
        assert (target[:, 0] == self.bos).all(), (
            "The target must begin with bos and hold all words written so far, not the last one alone."
        )
        texts = [self.texts[row[0, 0].item()] for row in memory]
        most = max((text.index(self.eos) + 1 if self.eos in text else 99) for text in texts)
        assert target.shape[1] <= most, (
            f"decode is asked for word {target.shape[1]}, but every sentence has ended by then. "
            "Stop when each has written eos."
        )
        scores = torch.zeros(*target.shape, 9, device=target.device)
        for row, text, table in zip(target.tolist(), texts, scores):
            for t in range(len(row)):
                so_far = row[1 : t + 1]
                assert so_far == text[:t] or self.eos in so_far, (
                    f"After {so_far[:-1]} the best word is {text[t - 1]}, but the target goes on with {so_far[-1]}. "
                    "Take the scores after the last written word, [:, -1]: those at other positions are old."
                )
                table[t, text[t] if so_far == text[:t] and t < len(text) else 4] = 5.0
        return scores - 7


reciter = Reciter([[5, 6, 7, 5, 1]])
source, lengths = tensor([[0, 0]]), tensor([2])
words = greedy_decode(reciter, source, lengths, bos=0, eos=1, max_length=20)
assert isinstance(words, list) and len(words) == 1 and isinstance(words[0], list), (
    f"greedy_decode must return a list with a list for each sentence; yours is {words!r}."
)
assert all(type(word) is int for word in words[0]), (
    f"The words must be Python ints; yours are {words[0]}. Use .tolist() or .item()."
)
hint = "Leave bos out of the answer. " if 0 in words[0] else ""
hint += "Leave eos out of the answer, and what comes after it." if 1 in words[0] else ""
assert words == [[5, 6, 7, 5]], f"The text is [5, 6, 7, 5]; yours is {words[0]}. {hint}"
endless = greedy_decode(Reciter([[5, 6] * 9]), source, lengths, bos=0, eos=1, max_length=3)
assert endless == [[5, 6, 5]], (
    f"With max_length 3 a sentence without end is cut after three words, [5, 6, 5]; yours is {endless[0]}."
)
### BEGIN HIDDEN TESTS
# {compare:greedy_decode}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "greedy-batch", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
texts = [[5, 6, 7, 8, 5, 1], [7, 1], [8, 8, 6, 1]]
reciter = Reciter(texts)
words = greedy_decode(
    reciter, tensor([[0, 0], [1, 0], [2, 0]]), tensor([2, 1, 2]), bos=0, eos=1, max_length=20
)
assert len(words) == 3, f"Three sources need three translations; yours are {len(words)}."
for row, text in zip(words, texts):
    assert row[: len(text) - 1] == text[:-1], (
        f"In a batch of three, the text {text[:-1]} came out as {row}. "
        "One sentence that ends does not end the others: go on until all have."
    )
    assert row == text[:-1], (
        f"In a batch of three, the text {text[:-1]} came out as {row}. Cut each sentence at its own first eos."
    )
### BEGIN HIDDEN TESTS
# {compare:greedy_batch}
### END HIDDEN TESTS

# %% [markdown]
# And now the translator: the trained numbers in your modules, your search around them. None of these sentences was in the
# training data. If a translation is wrong, the test goes along a recorded run of the trained model and says which of your
# parts is the first that gives something else, even if its own tests above are content.

# %% nbgrader={"grade": true, "grade_id": "greedy-translation", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_given("Transformer", "load_translator", "first_wrong_part")
PAIRS = """
he follows the european economic and social committee = il suit le comité économique et social européen
three birds ' owl arrives under two newspapers = le hibou de trois oiseaux arrive sous deux journaux
every economic garden does not speak to the young white man = chaque jardin économique ne parle pas au jeune homme blanc
she does not love a man = elle n' aime pas un homme
our european island laughs on two doctors = notre île européenne rit sur deux médecins
this book 's economic house is small with my cars = la maison économique de ce livre est petite avec mes voitures
our beautiful modern actress laughs on every white minister who sleeps = notre belle actrice moderne rit sur chaque ministre blanc qui dort
these schools arrive = ces écoles arrivent
the european space agency does not hear our small bird = l' agence spatiale européenne n' entend pas notre petit oiseau
"""


def translate(model, facts, sentences):
    """English to French, in one batch; short sentences are filled up with a word, which the masks must hide."""
    place = {word: number for number, word in enumerate(facts["source_words"])}
    rows = [torch.tensor([place[word] for word in sentence.split()]) for sentence in sentences]
    source = torch.nn.utils.rnn.pad_sequence(
        rows, batch_first=True, padding_value=place["queens"]
    ).to(device)
    with torch.no_grad():
        words = greedy_decode(
            model, source, tensor([len(row) for row in rows]), BOS, EOS, max_length=30
        )
    return [" ".join(facts["target_words"][word] for word in row) for row in words]


def check_translations(pairs):
    """Translate; if anything is wrong, say what, and in which part of yours to look."""
    english, french = zip(*(line.split(" = ") for line in pairs.strip().splitlines()))
    model, facts, record = load_translator()
    try:
        ours = translate(model, facts, english)
    except NotImplementedError:
        raise
    except Exception as error:
        raise AssertionError(
            f"No translation: {type(error).__name__}: {error} {first_wrong_part(model, record)}"
        ) from error
    assert len(ours) == len(french), (
        f"{len(french)} sentences went in, {len(ours)} translations came out. {first_wrong_part(model, record)}"
    )
    wrong = [place for place in range(len(french)) if ours[place] != french[place]]
    assert not wrong, (
        f"{len(wrong)} of {len(french)} translations are wrong. {english[wrong[0]]!r} should be "
        f"{french[wrong[0]]!r}; yours is {ours[wrong[0]]!r}. {first_wrong_part(model, record)}"
    )


check_translations(PAIRS)
### BEGIN HIDDEN TESTS
check_translations(
    """
he protects our tree = il protège notre arbre
the king is black = le roi est noir
some newspapers are big = quelques journaux sont grands
she finds the horse = elle trouve le cheval
the boats are big = les bateaux sont grands
he sees the factory = il voit l' usine
she speaks to three owls = elle parle à trois hiboux
she looks for our doctor = elle cherche notre médecin
he sleeps with every hospital = il dort avec chaque hôpital
a school knows our doctor = une école connaît notre médecin
she protects this european girl = elle protège cette fille européenne
every beautiful hospital chooses my school = chaque bel hôpital choisit mon école
the new cats find the actress = les nouveaux chats trouvent l' actrice
he sleeps on a tree 's factory = il dort sur l' usine d' un arbre
this cat is dangerous under three dogs = ce chat est dangereux sous trois chiens
these red queens love an economic newspaper = ces reines rouges aiment un journal économique
this economic child chooses my new friend = cet enfant économique choisit mon nouvel ami
the european newspaper waits for the schools = le journal européen attend les écoles
this economic actress speaks to these owls = cette actrice économique parle à ces hiboux
the european union thinks that we are students = l' union européenne pense que nous sommes étudiants
the foreign school says that our horse sleeps = l' école étrangère dit que notre cheval dort
the green newspapers are strange in my gardens = les journaux verts sont étranges dans mes jardins
our green economic island chooses my new minister = notre île économique verte choisit mon nouveau ministre
the modern horses never speak to the actress = les chevaux modernes ne parlent jamais à l' actrice
some modern kings always laugh without three islands = quelques rois modernes rient toujours sans trois îles
my doctors hope that some factories are strange = mes médecins espèrent que quelques usines sont étranges
our small european bird speaks to three old queens = notre petit oiseau européen parle à trois vieilles reines
the foreign girl is new on the united nations = la fille étrangère est nouvelle sur les nations unies
he knows a foreign student of our foreign woman = il connaît un étudiant étranger de notre femme étrangère
the economic child speaks to three big dangerous factories = l' enfant économique parle à trois grandes usines dangereuses
a strange horse says that i am a lawyer = un cheval étrange dit que je suis avocat
this house hopes that he often knows a european woman = cette maison espère qu' il connaît souvent une femme européenne
the north atlantic treaty organisation chooses the north atlantic treaty organisation = l' organisation du traité de l' atlantique nord choisit l' organisation du traité de l' atlantique nord
our black man thinks that three birds see the united nations = notre homme noir pense que trois oiseaux voient les nations unies
the world health organisation says that this book sees the newspaper = l' organisation mondiale de la santé dit que ce livre voit le journal
some men are beautiful and strange in the world trade organisation = quelques hommes sont beaux et étranges dans l' organisation mondiale du commerce
every man often sings without the beautiful white house which works = chaque homme chante souvent sans la belle maison blanche qui travaille
this red european idea follows this factory which chooses our idea = cette idée européenne rouge suit cette usine qui choisit notre idée
some newspapers without every book are not famous near our big cars = quelques journaux sans chaque livre ne sont pas célèbres près de nos grandes voitures
he works behind every strange european newspaper in this boat 's book = il travaille derrière chaque journal européen étrange dans le livre de ce bateau
"""
)
### END HIDDEN TESTS

# %% [markdown]
# ### What each part is for
#
# The next cell translates sentences of your choice, shows where the decoder looks, and then damages the model, one part at a
# time. Change nothing in it; read what it prints. You may call `translate` with other sentences in cells of your own, as
# long as the model knows the words.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "experiment", "locked": true, "schema_version": 3, "solution": false, "task": false}
model, facts, _ = load_translator()
example = "he follows the european economic and social committee"
print(example, "\n" + translate(model, facts, [example])[0], "\n")

looks = {}
layer = model.decoder[-1].cross_attention
hook = layer.register_forward_hook(lambda module, inputs, output: looks.update(last=output[1]))
french = translate(model, facts, [example])[0].split()
hook.remove()
print(
    "where the top decoder block looks while it writes a word (mean of its heads; <eos> comes last)"
)
print(" " * 12 + "".join(f"{word:>10}" for word in example.split()))
for word, row in zip([*french, "<eos>"], looks["last"][0].mean(0).tolist()):
    print(f"{word:>12}" + "".join(f"{weight:10.2f}" for weight in row))

english, french = zip(*(line.split(" = ") for line in PAIRS.strip().splitlines()))


def right(model, sources=english):
    ours = translate(model, facts, sources)
    words = [sorted(a.split()) == sorted(b.split()) for a, b in zip(ours, french)]
    return sum(a == b for a, b in zip(ours, french)), sum(words), ours[0][:60]


print(
    f"\n{len(english)} sentences: translated right, right words in any order, and what became of {english[0]!r}"
)
for name, change in (
    ("as trained", {}),
    ("positions not added to the source", {"with_positions": False}),
    ("decoder without the causal mask", {"with_causal_mask": False}),
):
    for switch, value in change.items():
        setattr(model, switch, value)
    print("{:36} {:3} {:3}   {}".format(name, *right(model)))
    model.with_positions = model.with_causal_mask = True
backwards = [" ".join(reversed(sentence.split())) for sentence in english]
print("{:36} {:3} {:3}   {}".format("source read backwards", *right(model, backwards)))
print(
    "{:36} {:3} {:3}   {}".format(
        "untrained weights", *right(load_translator(trained=False)[0])
    )
)

# %% [markdown]
# ## Part 9 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# A Transformer is trained with *smoothed* targets (Vaswani et al. 2017, section 5.4): the right word gets less than everything, so that the model does not become too sure of
# itself. Somebody, or something, wrote `smoothed_loss(logits, targets, smoothing, padding)`. You do not see its code. Write
# `check_smoothed_loss(implementation)`, which raises an error if an implementation is wrong and returns nothing if it is right.
# This is what a right one does:
#
# * `logits` is a float32 or float64 tensor [B, T, V], `targets` an int64 tensor [B, T] of words from 0 to V - 1, `smoothing` a Python float from 0 to below 1, and `padding`
#   the number of the word that stands for padding, which may be any. V is at least 3.
# * A position whose target is `padding` does not count, wherever it stands. What its logits are does not matter for the loss, even if they are `nan`; if they are, their own
#   gradient may be anything.
# * At each other position the target is a distribution over words: the right word has $1 - \epsilon$, where $\epsilon$ is the `smoothing`, the padding has 0, and the
#   $V - 2$ other words share $\epsilon$ in equal parts. The position's loss is the cross-entropy, $-\sum_v p_v \ln q_v$, where $q$ is the softmax of its logits over
#   all V words, padding included.
# * It returns the mean over all positions of the batch that count, a tensor without dimensions, of the dtype of `logits`; it is 0 if none counts.
# * A gradient flows to `logits`, and is that of the formula. Logits of several thousand are legal.
# * Numbers are as exact as their dtype allows; their last digits may differ. `logits` and `targets` stay as they are, and an answer depends on no earlier call.
#
# For example, logits [[[0., 0., 0., 0.]]], targets [[2]], smoothing 0.1 and padding 0 give $\ln 4 = 1.3863$.
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_smoothed_loss(implementation):
    """Raise an error if an implementation of `smoothed_loss` is wrong; return nothing if it is right."""

    ### BEGIN SOLUTION
    def wanted(logits, targets, smoothing, padding):
        losses = []
        for row, word in zip(logits.double().flatten(0, -2), targets.flatten().tolist()):
            if word != padding:
                shares = [smoothing / (len(row) - 2)] * len(row)
                shares[padding], shares[word] = 0.0, 1 - smoothing
                logs = (row - row.max() - (row - row.max()).exp().sum().log()).tolist()
                losses.append(-sum(s * log for s, log in zip(shares, logs) if s))
        return sum(losses) / max(1, len(losses))

    def compare(logits, targets, smoothing, padding, near=1e-9):
        copies = logits.clone(), targets.clone()
        loss = implementation(logits, targets, smoothing, padding)
        assert logits.equal(copies[0]) and targets.equal(copies[1])
        assert loss.dtype == logits.dtype and loss.shape == ()
        expected = wanted(logits, targets, smoothing, padding)
        assert abs(loss.item() - expected) <= near * max(1, abs(expected))

    for B, T, V in ((3, 4, 7), (1, 1, 3), (2, 5, 5)):
        for padding, smoothing in ((0, 0.1), (V - 1, 0.3), (1, 0.0), (V // 2, 0.25)):
            targets = torch.randint(0, V, (B, T), device=device)
            logits = 3 * torch.randn(B, T, V, dtype=torch.float64, device=device)
            compare(logits, targets, smoothing, padding)
            compare(logits.float(), targets, smoothing, padding, 1e-4)
    some, words = torch.tensor([[1, 0, 2, 0], [0, 0, 0, 3]], device=device), logits[:, :4]
    compare(words, some, 0.2, 0)
    compare(words, 0 * some, 0.2, 0)
    compare(900 * words, some, 0.2, 0)
    compare(900 * words.float(), some, 0.2, 0, 1e-4)
    unknown = torch.where(some[..., None] == 0, math.nan, words)
    assert implementation(unknown, some, 0.2, 0) == implementation(words, some, 0.2, 0)
    leaf = words.clone().requires_grad_()
    (slope,) = torch.autograd.grad(implementation(leaf, some, 0.2, 0), leaf)
    shares = torch.full_like(words, 0.2 / 3).scatter(2, some[..., None], 0.8)
    shares[..., 0] = 0.0
    right = (words.softmax(2) - shares).masked_fill((some == 0)[..., None], 0) / 3
    assert torch.allclose(slope, right, atol=1e-9)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_smoothed_loss}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_smoothed_loss hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 10 · In your own words ({points:explain} points)
#
# Look at what the last cell of Part 8 printed. Then write at most 200 words:
#
# 1. Without positions in the source, what does the encoder know about a sentence? Use your numbers, and say which property of
#    attention makes it so.
# 2. At decoding time nothing stands behind the last written word, so nothing can be peeked at. Why does the translation
#    still change when the causal mask is taken away?
# 3. Suppose the model had been *trained* without the causal mask. What would the training loss do, and what would the
#    model write?
# 4. Which line of the table is the control, and what would you conclude if it looked like the first?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * Your numbers are cited, and the property of attention is called by its name.
# * You say what the last position reads, and what of it has changed.
# * You say what the loss does and what is written, and why.
# * The control is named, with what it would mean if it looked like the first line.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It says that self-attention treats its inputs as a set (permutation-equivariant), and cites what became of the
#   sentences.
# * It says that earlier written positions now attend to later ones, so that the keys and values which the last
#   position reads are other than those of training.
# * It says that each position could copy the next word, so that the loss falls towards nothing while the model has
#   not learned to translate, and writes nonsense when the next word is not there.
# * It names the untrained weights, and says that what both lines show would not have been learned.
#
# **All of it:**
#
# Without positions the encoder knows which words there are, not their order: attention adds up over its keys, so a
# permutation of the source permutes the memory and changes nothing else. Hardly any sentence comes out right; the
# model writes familiar words in an order that it guesses. The causal mask matters although the last position sees no
# future. The positions before it do: their states now mix in words that came after them, and the last position
# reads these states as keys and values. In training they were never like that. Trained without the mask, each position would
# find the word it is to predict one place to its right and copy it. The loss would fall close to nothing, and the model
# would write nonsense, since in decoding that place is empty. The untrained weights are the control: if they
# translated as well as the trained ones, the architecture or the test would be doing the work, not learning.
#
# **Two of four:** Without positions attention is permutation-equivariant, so the encoder does not know the order; only
# some sentences stay right (number cited). The control is the model with untrained weights: if it were as good,
# nothing of this would have been learned. The mask matters because the model was trained with it. Without it the loss
# would be lower.
#
# **None of it:** Without positions the model does not know where words stand, so it is worse. The causal mask hides the
# future, so without it the model can cheat. Training without it would not work.
# ### END SOLUTION
