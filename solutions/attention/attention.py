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
#     seconds: 60
#     withholds:
#       - course_lib.attention.masks
#       - course_lib.attention.scores
#       - course_lib.attention.multi_head
#       - course_lib.seq2seq.model
#       - course_lib.seq2seq.search
#       - course_lib.seq2seq.batched_search
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
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge cases.
# Do not change, copy or delete the test cells. You may add cells of your own. Before you hand in, restart the kernel and
# run everything from the top. In a terminal, `course check attention.ipynb` tells you what is amiss.
#
# **What you may use.** Everything in PyTorch except ready-made attention. You build these, so they are withheld:
# {withholds}. Read each task with care: its function is not quite the one of the book.
#
# **Letters for shapes.** B: sentences in the batch. T: target positions (queries). S: source positions (keys).
# D: features of a state. H: hidden size. V: words in the vocabulary. K: beam size.

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


# {source:course_tools.grading.assignments.student_checks.check_pair}


# {source:course_tools.grading.assignments.student_checks.check_shape}


# {source:course_tools.grading.assignments.student_checks.alike}


# {source:course_tools.grading.assignments.student_checks.check_close}


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
#
# A **sink** gives attention somewhere else to go (Xiao et al. 2024). It is one more score $b$ in every row, of a position
# that does not exist, so the weights of a row sum to less than 1:
#
# $$\alpha_{j} = \frac{\exp(e_j)}{\exp(b) + \sum_{k \text{ allowed}} \exp(e_k)}$$
#
# With a sink a row may allow nothing at all: then all its weights are 0.


# %% nbgrader={"grade": false, "grade_id": "masked-softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_softmax(scores, mask=None, sink=None):
    """Softmax over the last dimension; masked positions get weight exactly 0.

    scores: float tensor [..., S], any number of leading dimensions
    mask:   bool tensor that broadcasts to the shape of scores; True = may attend. None: all may.
    sink:   a Python float, the score of the sink. None: there is no sink.
    returns [..., S], same dtype and device as scores; scores itself is unchanged
    raises  ValueError if a row has no position that may be attended to, and there is no sink

    Example: scores [[0., 0., 5.]], mask [[True, True, False]] -> [[0.5, 0.5, 0.0]];
             with sink 0. -> [[0.3333, 0.3333, 0.0]]
    """
    ### BEGIN SOLUTION
    if sink is not None:  # one more position, which every row may attend to
        mask = torch.ones_like(scores) > 0 if mask is None else mask.expand_as(scores)
        longer = torch.nn.functional.pad(scores, (0, 1), value=sink)
        allowed = torch.nn.functional.pad(mask, (0, 1), value=True)
        return masked_softmax(longer, allowed)[..., :-1]
    if mask is None:
        return torch.softmax(scores, dim=-1)
    mask = mask.expand_as(scores)
    if not mask.any(dim=-1).all():
        raise ValueError(
            "a row of the mask allows no position: softmax has nothing to share out"
        )
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "masked-softmax-rows", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("masked_softmax")
scores = torch.tensor([[0.0, 0.0, 5.0], [1.0, 2.0, 3.0]], device=device)
mask = torch.tensor([[True, True, False], [True, False, True]], device=device)
weights = masked_softmax(scores, mask)
check_shape(weights, [2, 3], "The table of weights")
for row, total in enumerate(weights.sum(-1).tolist()):
    assert abs(total - 1) < 1e-5, (
        f"The weights of each row must sum to 1; row {row} sums to {total:.2f}. "
        "Did you take the softmax over the wrong dimension, or mask after the softmax?"
    )
assert (weights[~mask] == 0).all(), (
    f"Masked positions must get weight 0; yours get {[round(w, 4) for w in weights[~mask].tolist()]}. "
    "True in the mask means: may attend."
)
check_close(
    weights,
    torch.tensor([[0.5, 0.5, 0.0], [0.1192, 0.0, 0.8808]], device=device),
    "The table of weights",
    tolerance=1e-3,
)
check_close(
    masked_softmax(scores, mask, sink=1.0),
    torch.tensor([[0.2119, 0.2119, 0.0], [0.1065, 0.0, 0.7870]], device=device),
    "With a sink of score 1, the table of weights",
    "Add exp(1) to the sum of each row, and give the sink no column.",
    tolerance=1e-3,
)
check_close(
    masked_softmax(scores),
    torch.tensor([[0.0066, 0.0066, 0.9867], [0.0900, 0.2447, 0.6652]], device=device),
    "Without a mask, the table of weights",
    "All positions of a row share its weight.",
    tolerance=1e-3,
)
check_close(
    masked_softmax(scores, sink=1.0),
    torch.tensor([[0.0065, 0.0065, 0.9692], [0.0826, 0.2245, 0.6103]], device=device),
    "With a sink of score 1 and no mask, the table of weights",
    "Add exp(1) to the sum of each row, and give the sink no column.",
    tolerance=1e-3,
)
### BEGIN HIDDEN TESTS
# {compare:masked_softmax}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "masked-softmax-edges", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
scores = torch.tensor([[1.0, 2.0]], device=device)
for rows in ([[False, False]], [[True, False], [False, False]]):
    try:
        answer = masked_softmax(scores.expand(len(rows), 2), torch.tensor(rows, device=device))
    except ValueError:
        pass
    else:
        raise AssertionError(
            f"A row that may attend to nothing must raise ValueError; yours returned {answer.tolist()}."
        )
masked_softmax(scores, torch.tensor([[True, False]], device=device))
assert scores.tolist() == [[1.0, 2.0]], (
    f"masked_softmax must leave its input as it was; yours changed the scores to {scores.tolist()}. "
    "Functions whose name ends in _ work in place: use the one without."
)
idle = masked_softmax(scores, torch.tensor([[False, False]], device=device), sink=0.5)
assert idle.tolist() == [[0.0, 0.0]], (
    f"With a sink, a row that may attend to nothing gets weights 0; yours are {idle.tolist()}."
)
### BEGIN HIDDEN TESTS
# {compare:masked_softmax_edges}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · Additive attention ({points:additive-scores} points)
#
# **Question: how well does source position j fit target position t?**
#
# Bahdanau, Cho and Bengio (2015, appendix A.1.2) let a small network with one hidden layer answer:
#
# $$e_{tj} = v^\top \tanh(W s_t + U h_j)$$
#
# The query $s_t$ is a decoder state, the key $h_j$ an encoder state. They may differ in size.
#
# A translator like that may look at one word twice and at another never. So See, Liu and Manning (2017, equation 11) tell it
# how much attention $c_{tj}$ position j has had before step t, its *coverage*, by one more vector $w$:
#
# $$e_{tj} = v^\top \tanh(W s_t + U h_j + w \, c_{tj})$$


# %% nbgrader={"grade": false, "grade_id": "additive-scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def additive_scores(query, key, W, U, v, coverage=None, w=None):
    """Score every query against every key with a one-layer network.

    query: [B, T, Dq]     W: [H, Dq]
    key:   [B, S, Dk]     U: [H, Dk]     v: [H]
    coverage: [B, T, S]   w: [H]         both None: the scores are those without coverage
    returns scores [B, T, S]

    Example: query [[[1.]]], key [[[0.], [-1.]]], W = U = [[1.]], v = [2.] -> [[[2 tanh(1), 0.]]];
             with coverage [[[1., 0.]]], w = [3.] -> [[[2 tanh(4), 0.]]]
    """
    ### BEGIN SOLUTION
    seen = 0 if coverage is None else coverage.unsqueeze(3) * w  # [B, T, S, H]
    hidden = torch.tanh((query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen)
    return hidden @ v
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "additive-scores-values", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check_withheld("additive_scores")
one = torch.ones(1, 1, device=device)
scores = additive_scores(
    one[None], torch.tensor([[[0.0], [-1.0]]], device=device), one, one, 2 * one[0]
)
check_close(
    scores,
    torch.tensor([[[2 * math.tanh(1), 0.0]]], device=device),
    "The example's table of scores",
    "Is tanh inside, around the sum, and v outside?",
)
B, T, S, Dq, Dk, H = 2, 3, 4, 5, 6, 7
numbers = torch.Generator().manual_seed(1)
query, key, W, U, v = (
    torch.randn(*shape, generator=numbers).to(device)
    for shape in ((B, T, Dq), (B, S, Dk), (H, Dq), (H, Dk), (H,))
)
scores = additive_scores(query, key, W, U, v)
check_shape(scores, [B, T, S], "The table of scores")
for b, t, s in ((0, 0, 0), (0, 2, 1), (1, 1, 3), (1, 2, 0)):
    check_close(
        scores[b, t, s],
        v @ (W @ query[b, t] + U @ key[b, s]).tanh(),
        f"The score of query {t} and key {s} of sentence {b}",
        "Inside tanh are W times the query and U times the key.",
        1e-4,
    )
### BEGIN HIDDEN TESTS
# {compare:additive_scores}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "additive-scores-coverage", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("additive_scores")
one = torch.ones(1, 1, device=device)
key = torch.tensor([[[0.0], [-1.0]]], device=device)
coverage = torch.tensor([[[1.0, 0.0]]], device=device)
check_close(
    additive_scores(one[None], key, one, one, 2 * one[0], coverage, 3 * one[0]),
    torch.tensor([[[2 * math.tanh(4), 0.0]]], device=device),
    "The example's table of scores with coverage",
    "w times the coverage stands inside tanh.",
)
B, T, S, Dq, Dk, H = 2, 3, 4, 5, 6, 7
numbers = torch.Generator().manual_seed(2)
query, key, W, U, v, coverage, w = (
    torch.randn(*shape, generator=numbers).to(device)
    for shape in ((B, T, Dq), (B, S, Dk), (H, Dq), (H, Dk), (H,), (B, T, S), (H,))
)
scores = additive_scores(query, key, W, U, v, coverage.abs(), w)
check_shape(scores, [B, T, S], "With coverage, the table of scores")
for b, t, s in ((0, 0, 0), (0, 2, 1), (1, 1, 3), (1, 2, 0)):
    inside = W @ query[b, t] + U @ key[b, s] + w * coverage[b, t, s].abs()
    check_close(
        scores[b, t, s],
        v @ inside.tanh(),
        f"With coverage, the score of query {t} and key {s} of sentence {b}",
        "Inside tanh are W times the query, U times the key and w times the coverage of the two.",
        1e-4,
    )
### BEGIN HIDDEN TESTS
# {compare:additive_scores_coverage}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · Dot attention, and why it is scaled ({points:dot} points)
#
# **Question: why divide by $\sqrt{D}$?**
#
# Luong, Pham and Manning (2015, equation 8) score with a dot product: no weights to learn, one matrix product for all
# pairs. Vaswani et al. (2017, equation 1) divide it by the square root of the size of a key:
#
# $$e_{tj} = \frac{q_t^\top k_j}{\sqrt{D}}$$
#
# The leading dimensions may be anything: [B, T, D] here, [B, N, T, D] with N heads side by side in chapter 2.
# D is the size of *one* query.
#
# A dot product does not know where its two words stand. A **slope** $m$ tells it: the farther apart, the lower the score
# (Press, Smith and Lewis 2022, who let each head have its own slope).
#
# $$e_{tj} = \frac{q_t^\top k_j}{\sqrt{D}} - m \, |t - j|$$


# %% nbgrader={"grade": false, "grade_id": "dot-scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dot_scores(query, key, slope=0.0):
    """Scaled dot product of every query with every key.

    query: [..., T, D]
    key:   [..., S, D]
    slope: a Python float
    returns scores [..., T, S], same dtype and device; query and key stay as they are

    Example: query [[1., 1., 1., 1.]], key [[1., 1., 1., 1.], [2., 0., 0., 0.]] -> [[2., 1.]];
             with slope 0.5 -> [[2., 0.5]]
    """
    ### BEGIN SOLUTION
    of_query, of_key = (
        torch.arange(part.shape[-2], device=part.device) for part in (query, key)
    )
    apart = (of_query.unsqueeze(1) - of_key).abs().to(query.dtype)  # [T, S]
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) - slope * apart
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "dot-scores-values", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check_withheld("dot_scores")
query = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 0.0, 0.0]], device=device)
key = torch.tensor(
    [[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 1.0]], device=device
)
scores = dot_scores(query, key)
check_shape(scores, [2, 3], "The table of scores of 2 queries and 3 keys")
factor = (scores[0, 0] / 2).item()
assert abs(factor - 1) < 1e-5, {
    2.0: "Your scores are 2 times too large for D = 4. Did you forget to divide by the square root of D?",
    0.5: "Your scores are 2 times too small for D = 4. Divide by the square root of D, not by D.",
}.get(
    round(factor, 4),
    f"Your scores are {factor:.3g} times what they should be for D = 4. Divide by the square root of "
    "D, the size of one query.",
)
check_close(
    scores,
    torch.tensor([[2.0, 1.0, 2.0], [1.0, 0.0, 3.0]], device=device),
    "The table of scores",
)
### BEGIN HIDDEN TESTS
# {compare:dot_scores}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "dot-scores-slope", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("dot_scores")
query = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 0.0, 0.0]], device=device)
key = torch.tensor(
    [[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 1.0]], device=device
)
check_close(
    dot_scores(query, key, slope=0.5),
    torch.tensor([[2.0, 0.5, 1.0], [0.5, 0.0, 2.5]], device=device),
    "With slope 0.5, the table of scores",
    "Take away slope times |t - j|: nothing where a query and a key stand at the same place.",
)
### BEGIN HIDDEN TESTS
# {compare:dot_scores_slope}
### END HIDDEN TESTS

# %% [markdown]
# Now measure. Write a function that says how spread out scores are, and how undecided the weights made from them. What a
# mask does not allow counts neither here nor there.
#
# * The **variance** of all the allowed scores in the table.
# * The **entropy** of the weights, $-\sum_j \alpha_j \ln \alpha_j$ in nats, for each row, averaged over rows. It is
#   $\ln S$ when all S positions get the same weight, and 0 when one position gets everything. A weight of 0 adds 0, and so
#   does a position that is not allowed.


# %% nbgrader={"grade": false, "grade_id": "dot-statistics", "locked": false, "schema_version": 3, "solution": true, "task": false}
def score_statistics(scores, mask=None):
    """Measure the variance of scores, and the mean entropy of their softmax over the last dimension.

    scores: [..., S]
    mask:   bool tensor that broadcasts to the shape of scores; True = allowed, at least one in each row. None: all are.
    returns (variance, entropy): two Python floats, entropy in nats

    Example: scores [[0., 0.], [1., 1.]] -> (0.25 to 0.34, 0.6931): every row is undecided between two;
             with mask [[True, True], [True, False]] -> (0.22 to 0.34, 0.3466)
    """
    ### BEGIN SOLUTION
    allowed = torch.ones_like(scores) > 0 if mask is None else mask.expand_as(scores)
    log_weights = torch.log_softmax(scores.masked_fill(~allowed, -math.inf), dim=-1)
    log_weights = log_weights.masked_fill(~allowed, 0)  # -inf times 0 is nan
    entropy = -(log_weights.exp() * log_weights).sum(dim=-1)
    return scores[allowed].var().item(), entropy.mean().item()
    ### END SOLUTION


# %% [markdown]
# The next tests give partial credit: a point for each line that says "yes".

# %% nbgrader={"grade": true, "grade_id": "dot-statistics-values", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
random = torch.Generator().manual_seed(4)
table = (2 * torch.randn(5, 40, 30, generator=random)).to(device)
answer = score_statistics(table)
variance, entropy = check_pair(answer, "score_statistics must return (variance, entropy)")
assert isinstance(variance, float) and isinstance(entropy, float), (
    "Variance and entropy must be two Python floats. Average the entropy over rows, then use .item()."
)
hedged, decided = (
    score_statistics(torch.zeros(2, 7, device=device))[1],
    score_statistics(200 * torch.eye(7, device=device))[1],
)
some = torch.arange(30, device=device) < 20
fewer = score_statistics(table.masked_fill(~some, 50.0), some)
of_some = score_statistics(torch.zeros(2, 7, device=device), torch.arange(7, device=device) < 3)
### BEGIN HIDDEN TESTS
# {compare:score_statistics as wrong}
if "variance" in wrong or "" in wrong:
    variance = math.nan
if "entropy" in wrong or "" in wrong:
    entropy = math.nan
### END HIDDEN TESTS
points = 0.0
for earned, question, words in (
    (
        abs(variance - 4.0) < 0.2 and abs(fewer[0] - 4.0) < 0.2,
        "variance",
        "Take the variance of all scores at once that the mask allows, before any softmax.",
    ),
    (
        abs(hedged - math.log(7)) < 1e-3
        and 1.5 < entropy < 2.5
        and abs(of_some[1] - math.log(3)) < 1e-3,
        "entropy",
        "Seven equal scores have entropy ln 7 = 1.9459, three of them ln 3 where the mask allows no "
        "more. Use the natural logarithm, sum over the last dimension, average over rows.",
    ),
    (
        abs(decided) < 1e-3,
        "entropy of a row that is decided",
        f"It is 0; yours is {decided}. 0 times log 0 is nan: work with torch.log_softmax.",
    ),
):
    print(f"{question}: {'yes' if earned else 'not yet. ' + words}")
    points += 1.0 if earned else 0.0
float(points)

# %% [markdown]
# If the lines above say "yes", the next cell is your measurement. Queries and keys are random with variance 1, so a dot
# product adds up D products, each of variance 1. What happens to variance and entropy as D grows, without and with the scale?

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "measurement", "locked": true, "schema_version": 3, "solution": false, "task": false}
generator = torch.Generator().manual_seed(5)
print(
    f"{'D':>5} | {'without scale':^24} | {'with scale':^24}\n"
    f"{'':5} | {'variance':>12} {'entropy':>11} | {'variance':>12} {'entropy':>11}"
)
for D in (4, 16, 64, 256, 1024):
    query, key = (
        torch.randn(8, 20, D, generator=generator).to(device),
        torch.randn(8, 20, D, generator=generator).to(device),
    )
    scaled = dot_scores(query, key)
    rows = score_statistics(scaled * math.sqrt(D)) + score_statistics(scaled)
    print(f"{D:5} | {rows[0]:12.2f} {rows[1]:11.3f} | {rows[2]:12.2f} {rows[3]:11.3f}")
print(f"Entropy of 20 equal weights: {math.log(20):.3f}")

# %% [markdown]
# Without the scale the variance is about D, and with D = 1024 nearly all weight falls on one position, although the
# vectors are random. A softmax as sharp as that has almost no gradient, so the model cannot learn to look elsewhere.

# %% [markdown]
# ## Part 4 · One decoding step ({points:decoder-step} points)
#
# **Question: what does the decoder do with the weights?**
#
# Luong, Pham and Manning (2015, equations 5 and 6): mix the encoder states by their weights into a *context*, put it in
# front of the decoder state, and predict the next word from both.
#
# $$c_t = \sum_j \alpha_{tj} h_j, \qquad \tilde{s}_t = \tanh(W_c [c_t ; s_t]), \qquad
# \log p(y_t) = \log \operatorname{softmax}(W_y \tilde{s}_t)$$
#
# `score` is any function that takes queries [B, T, D] and keys [B, S, D] and returns scores [B, T, S], such as yours.
# Turn its scores into weights with your `masked_softmax`, which gets the mask and the sink. What goes to the sink is missing
# in the context, which is a sum, not a mean.


# %% nbgrader={"grade": false, "grade_id": "decoder-step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decoder_step(state, encoder_states, mask, score, W_combine, W_output, sink=None):
    """Attend to the source from one decoder state per sentence, and predict the next word.

    state:          [B, D]         W_combine: [H, 2D], for the context first and the state second
    encoder_states: [B, S, D]      W_output:  [V, H]
    mask:           bool [B, S], True = a word, False = padding
    score:          function (query [B, T, D], key [B, S, D]) -> scores [B, T, S]
    sink:           as in masked_softmax
    returns (log_probs [B, V], weights [B, S])
    """
    ### BEGIN SOLUTION
    scores = score(state.unsqueeze(1), encoder_states).squeeze(1)  # [B, S]
    weights = masked_softmax(scores, mask, sink)  # [B, S]
    context = (weights.unsqueeze(1) @ encoder_states).squeeze(1)  # [B, D]
    combined = torch.tanh(torch.cat([context, state], dim=-1) @ W_combine.T)  # [B, H]
    return torch.log_softmax(combined @ W_output.T, dim=-1), weights
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "decoder-step-prediction", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("decoder_step")
state = torch.tensor([[1.0, 0.0]], device=device)
encoder_states = torch.tensor([[[0.0, 2.0], [0.0, 4.0]]], device=device)
everything, nothing = (
    torch.ones(1, 2, dtype=torch.bool, device=device),
    lambda query, key: 0 * query @ key.transpose(1, 2),
)
W_combine = torch.tensor([[0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], device=device)
answer = decoder_step(
    state, encoder_states, everything, nothing, W_combine, torch.eye(2, device=device)
)
log_probs, weights = check_pair(answer, "decoder_step must return (log_probs, weights)")
check_close(
    weights, torch.tensor([[0.5, 0.5]], device=device), "With all scores 0, the weights"
)
hint = (
    "The context is [0, 3], the mean of the two encoder states. Put it in front of the decoder "
    "state [1, 0], multiply by W_combine, take tanh, multiply by W_output, take log softmax."
)
assert (log_probs <= 0).all(), (
    f"Log-probabilities are never above 0; yours are {log_probs.tolist()}. Take log_softmax at the end."
)
check_close(
    log_probs,
    torch.tensor([[-0.6239, -0.7675]], device=device),
    "The table of log-probabilities",
    hint,
    1e-3,
)
B, S, D, H, V = 2, 3, 4, 5, 6
log_probs, weights = decoder_step(
    torch.ones(B, D, device=device),
    torch.ones(B, S, D, device=device),
    torch.ones(B, S, dtype=torch.bool, device=device),
    nothing,
    torch.ones(H, 2 * D, device=device),
    torch.ones(V, H, device=device),
)
check_shape(log_probs, [B, V], "For 2 sentences and 6 words, the table of log-probabilities")
check_shape(weights, [B, S], "For 2 sentences of 3 words, the table of weights")
answer = decoder_step(
    state, encoder_states, everything, nothing, W_combine, torch.eye(2, device=device), sink=0.0
)
check_close(
    answer[1],
    torch.tensor([[0.3333, 0.3333]], device=device),
    "With a sink of score 0, the weights",
    "Give the sink to masked_softmax.",
    1e-3,
)
check_close(
    answer[0],
    torch.tensor([[-0.6931, -0.6931]], device=device),
    "With a sink of score 0, the table of log-probabilities",
    "The context is [0, 2] then: two thirds of the mean.",
    1e-3,
)
### BEGIN HIDDEN TESTS
# {compare:decoder_step}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "decoder-step-padding", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
state = torch.tensor([[0.5, -1.0], [2.0, 1.0]], device=device)
encoder_states = torch.tensor(
    [[[1.0, 1.0], [0.0, 2.0], [9.0, 9.0]], [[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]]], device=device
)
mask = torch.tensor([[True, True, False], [True, True, True]], device=device)
W_combine, W_output = (
    torch.tensor([[0.3, -0.2, 0.1, 0.4]], device=device),
    torch.tensor([[1.0], [-1.0], [0.5]], device=device),
)
product = lambda query, key: query @ key.transpose(1, 2)
before = decoder_step(state, encoder_states, mask, product, W_combine, W_output, 0.5)[0].clone()
encoder_states[0, 2] = -7.0
after = decoder_step(state, encoder_states, mask, product, W_combine, W_output, 0.5)[0]
assert torch.allclose(before, after, atol=1e-5), (
    "The prediction changed when only the padding did. Give the mask to masked_softmax, so that "
    "padding gets weight 0."
)
### BEGIN HIDDEN TESTS
alone = decoder_step(
    state[:1], encoder_states[:1, :2], mask[:1, :2], product, W_combine, W_output, 0.5
)[0]
check_close(
    after[:1],
    alone,
    "The prediction for a sentence in a padded batch",
    "It must be the one for the sentence alone.",
)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · Alignment ({points:align} points)
#
# **Question: which source word does each target word come from?**
#
# Read it off the weights: each target word is aligned with the source word that it attends to most. A word that attends to
# nothing much may be a translation of nothing: if its greatest weight is below `least`, leave it out. To say how good an
# alignment is, compare it with one that people (or here: the grammar) made. Och and Ney (2003, equation 24) have two gold
# sets of pairs: *sure* S, and *possible* P, which holds all of S. With A for yours, the alignment error rate is
#
# $$\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$
#
# 0 is best, 1 is worst. A pair is (source index, target index), both from 0.


# %% nbgrader={"grade": false, "grade_id": "align", "locked": false, "schema_version": 3, "solution": true, "task": false}
def align(weights, source_length, target_length, least=0.0):
    """Align each target word with the source word of the greatest weight.

    weights: [T, S], one row for each target position; rows and columns beyond the lengths are padding.
             They may come from a model in training, with gradients, and stay as they are.
    least:   a Python float; a target word whose greatest weight (of a source word) is less has no pair
    returns a set of pairs (source index, target index) of Python ints, at most one for each target word

    Example: weights [[0.1, 0.9], [0.8, 0.2]], 2, 2 -> {(1, 0), (0, 1)}; with least 0.85 -> {(1, 0)}
    """
    ### BEGIN SOLUTION
    best = weights[:target_length, :source_length].argmax(dim=-1)
    pairs = {(source, target) for target, source in enumerate(best.tolist())}
    return {(source, target) for source, target in pairs if weights[target, source] >= least}
    ### END SOLUTION


def alignment_error_rate(predicted, sure, possible):
    """Compare an alignment with gold (Och and Ney 2003).

    All three are sets of pairs and stay as they are; possible holds all of sure.
    returns a Python float from 0 (best) to 1 (worst); 0.0 if predicted and sure are both empty

    Example: {(0, 0), (1, 2)}, {(0, 0)}, {(0, 0), (1, 1)} -> 1 - (1 + 1) / (2 + 1) = 0.3333
    """
    ### BEGIN SOLUTION
    if not predicted and not sure:
        return 0.0
    agreed = len(predicted & sure) + len(predicted & possible)
    return 1 - agreed / (len(predicted) + len(sure))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "align-pairs", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("align")
weights = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.3, 0.4, 0.3]], device=device)
pairs = align(weights, 3, 3)
assert isinstance(pairs, set), (
    f"align must return a set of pairs; yours returns a {type(pairs).__name__}."
)
assert all(type(index) is int for pair in pairs for index in pair), (
    f"The pairs must hold Python ints; yours are {sorted(pairs, key=str)}. Use .item() or .tolist()."
)
assert pairs != {(0, 1), (1, 0), (2, 1)}, (
    "Your pairs are the wrong way round: the source index comes first."
)
assert pairs == {(1, 0), (0, 1), (1, 2)}, (
    f"Expected {{(1, 0), (0, 1), (1, 2)}}, yours is {pairs}. "
    "Each row is one target word: look for its largest weight."
)
few = align(weights[:2], 3, 2, least=0.6)
assert few == {(1, 0)}, (
    f"With least 0.6 target word 1 has no pair, since its greatest weight is 0.5: expected {{(1, 0)}}, "
    f"yours is {few}."
)
few = align(weights, 3, 2, least=0.5)
assert few == {(1, 0), (0, 1)}, (
    "With target_length 2 the last row is padding, and a weight that equals least is not less: "
    f"expected {{(1, 0), (0, 1)}}, yours is {few}."
)
### BEGIN HIDDEN TESTS
# {compare:align}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "align-error-rate", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2)}
rate = alignment_error_rate({(0, 0), (2, 2), (3, 1)}, sure, possible)
assert isinstance(rate, float), (
    f"The rate must be a Python float; yours is a {type(rate).__name__}."
)
assert abs(rate - 0.4) < 1e-6, (
    f"Expected 1 - (1 + 2) / (3 + 2) = 0.4, yours is {rate:.4f}. "
    "Count with sure once and with possible once, and divide by the sizes of predicted and sure."
)
assert alignment_error_rate(sure, sure, possible) == 0, (
    "An alignment that equals the sure pairs has no error: 0."
)
assert alignment_error_rate(set(), set(), possible) == 0, (
    "If predicted and sure are both empty, the rate is 0."
)
assert alignment_error_rate(set(), sure, possible) == 1, (
    "An alignment without pairs finds none of the sure ones: 1."
)
### BEGIN HIDDEN TESTS
# {compare:alignment_error_rate}
### END HIDDEN TESTS

# %% [markdown]
# ### Your attention, trained
#
# The next cells put your functions into a small translator and train it for a few seconds on 2,000 sentences made by a
# grammar. It sees pairs of sentences, never an alignment. *european*, *economic* and *area* never occur together in
# them. There are no points here, but if a part above is wrong you may see it.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "sentences", "locked": true, "schema_version": 3, "solution": false, "task": false}
import random as chance

NOUNS = [
    "area zone f",
    "market marché m",
    "law loi f",
    "council conseil m",
    "union union f",
    "treaty traité m",
    "policy politique f",
    "report rapport m",
]
ADJECTIVES = [
    "european européen européenne",
    "economic économique économique",
    "national national nationale",
    "legal juridique juridique",
    "foreign étranger étrangère",
    "common commun commune",
]
FRONT_ADJECTIVES = ["new nouveau nouvelle", "big grand grande", "small petit petite"]
VERBS = ["supports soutient", "rejects rejette", "needs demande", "changes modifie"]


def noun_phrase(noun, front, behind):
    """English, French, and the pairs: most French adjectives follow the noun, the last one first."""
    (english, french, gender), m = noun.split(), 1 + (noun[-1] == "f")
    front, behind = [a.split() for a in front], [a.split() for a in behind]
    last = 1 + len(front) + len(behind)
    order = [*range(1 + len(front)), last, *reversed(range(1 + len(front), last))]
    return (
        ["the", *(a[0] for a in front + behind), english],
        [
            "la" if gender == "f" else "le",
            *(a[m] for a in front),
            french,
            *(a[m] for a in reversed(behind)),
        ],
        [(source, target) for target, source in enumerate(order)],
    )


def sentence(subject, verb, complement):
    (e1, f1, a1), (e2, f2, a2), (ev, fv) = subject, complement, verb.split()
    shifted = [(source + len(e1) + 1, target + len(f1) + 1) for source, target in a2]
    return [*e1, ev, *e2], [*f1, fv, *f2], {*a1, (len(e1), len(f1)), *shifted}


def random_phrase():
    noun, behind = chance.choice(NOUNS), chance.sample(ADJECTIVES, chance.choice([0, 1, 2, 2]))
    if noun == NOUNS[0] and {*behind} == {*ADJECTIVES[:2]}:
        return random_phrase()  # "european economic area" is kept for the test
    return noun_phrase(noun, chance.sample(FRONT_ADJECTIVES, chance.random() < 0.4), behind)


chance.seed(0)
sentences = [
    sentence(random_phrase(), chance.choice(VERBS), random_phrase()) for _ in range(2100)
]
training, held_out = sentences[:2000], sentences[2000:]
example = sentence(
    noun_phrase(NOUNS[0], [], ADJECTIVES[:2]),
    VERBS[0],
    noun_phrase(NOUNS[5], FRONT_ADJECTIVES[:1], []),
)
PAD, BOS, EOS = 0, 1, 2
source_ids = {
    w: i for i, w in enumerate(["<pad>", *sorted({w for e, _, _ in training for w in e})])
}
target_ids = {
    w: i
    for i, w in enumerate(
        ["<pad>", "<bos>", "<eos>", *sorted({w for _, f, _ in training for w in f})]
    )
}
print(" ".join(example[0]), "\n" + " ".join(example[1]))


# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "translator", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Translator(torch.nn.Module):
    """A bidirectional GRU reads, a GRU cell writes, and your functions connect them."""

    def __init__(self, size=32):
        super().__init__()
        self.source = torch.nn.Embedding(len(source_ids), size)
        self.target = torch.nn.Embedding(len(target_ids), size)
        self.encoder = torch.nn.GRU(size, size // 2, batch_first=True, bidirectional=True)
        self.decoder = torch.nn.GRUCell(size, size)
        self.W, self.U, self.v, self.W_combine, self.W_output = (
            torch.nn.Parameter(torch.randn(*shape) / math.sqrt(size))
            for shape in (
                (size, size),
                (size, size),
                (size,),
                (size, 2 * size),
                (len(target_ids), size),
            )
        )

    def encode(self, source):
        mask = source != PAD
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.source(source), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        states = torch.nn.utils.rnn.pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True
        )[0]
        return states, mask, states.sum(1) / mask.sum(1, keepdim=True)

    def step(self, tokens, state, states, mask):
        state = self.decoder(self.target(tokens), state)
        score = lambda query, key: additive_scores(query, key, self.W, self.U, self.v)
        log_probs, weights = decoder_step(
            state, states, mask, score, self.W_combine, self.W_output
        )
        return log_probs, weights, state

    def forward(self, source, target):
        states, mask, state = self.encode(source)
        log_probs, weights = [], []
        for tokens in target.unbind(1):
            now, where, state = self.step(tokens, state, states, mask)
            log_probs.append(now)
            weights.append(where)
        return torch.stack(log_probs, 1), torch.stack(weights, 1)


def batch(pairs):
    """Padded source [B, S], target after <bos> [B, T], target before <eos> [B, T]."""
    sources = [torch.tensor([source_ids[w] for w in e]) for e, _, _ in pairs]
    targets = [torch.tensor([BOS, *(target_ids[w] for w in f), EOS]) for _, f, _ in pairs]
    pad = lambda rows: torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
    return pad(sources), pad([t[:-1] for t in targets]), pad([t[1:] for t in targets])


def train(model, steps=300):
    chance.seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(1, steps + 1):
        source, target, wanted = batch(chance.sample(training, 32))
        log_probs = model(source, target)[0]
        loss = torch.nn.functional.nll_loss(
            log_probs.flatten(0, 1), wanted.flatten(), ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f} nats per word")


def weights_of(model, pairs):
    """The weights [T, S] of each pair while the model is fed the right translation."""
    with torch.no_grad():
        weights = model(*batch(pairs)[:2])[1]
    return [w[: len(f), : len(e)].cpu() for w, (e, f, _) in zip(weights, pairs)]


def mean_error_rate(tables, pairs):
    rates = [
        alignment_error_rate(align(w, len(e), len(f)), gold, gold)
        for w, (e, f, gold) in zip(tables, pairs)
    ]
    return sum(rates) / len(rates)


torch.set_num_threads(
    1
)  # for tensors this small, several threads wait for each other more than they work
torch.manual_seed(0)
model = Translator().to(device)
untrained = weights_of(model, held_out)
train(model)
trained = weights_of(model, held_out)
shuffled = [w[:, torch.randperm(w.shape[1])] for w in trained]
for name, tables in (
    ("trained", trained),
    ("untrained", untrained),
    ("trained, source order shuffled", shuffled),
):
    print(f"alignment error rate, {name}: {mean_error_rate(tables, held_out):.2f}")

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "picture", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt

english, french, gold = example
picture = weights_of(model, [example])[0]
figure, axes = plt.subplots(figsize=(5.5, 4))
image = axes.imshow(picture, cmap="Blues", vmin=0, vmax=1)
for source, target in gold:
    axes.add_patch(
        plt.Rectangle(
            (source - 0.5, target - 0.5), 1, 1, fill=False, edgecolor="tab:orange", linewidth=2
        )
    )
axes.set_xticks(range(len(english)), english, rotation=45, ha="right")
axes.set_yticks(range(len(french)), french)
axes.set_xlabel("source word")
axes.set_ylabel("target word")
axes.set_title("Weights (blue) and gold alignment (orange)")
figure.colorbar(image, label="attention weight")
figure.tight_layout()
plt.show()
for target, word in enumerate(french):
    print(f"{word:>12} looks at {english[picture[target].argmax()]}")

# %% [markdown]
# *zone économique européenne* runs down the picture while *european economic area* runs up: the model found the
# order on its own, in a phrase that it never saw.

# %% [markdown]
# ## Part 6 · Beam search ({points:beam-search} points)
#
# **Question: how do you find a translation that is better as a whole than the one found word by word?**
#
# Greedy decoding takes the best next word and can never go back. A beam keeps the K best beginnings. Do this:
#
# 1. Start with one hypothesis: no tokens, log-probability 0, last token `bos`.
# 2. Call `step` once for all live hypotheses and extend each by every word. Its log-probability is the sum over its tokens.
# 3. Among the K best of *all* extensions, those that end in `eos` are finished: set them aside.
#    The K best extensions that do not end in `eos` live on, each with the state of the hypothesis it extends.
# 4. Repeat until nothing lives or `max_length` tokens (with `eos`) are out.
# 5. Return the finished hypothesis with the best score. Score: log-probability divided by a length penalty
#    (Wu et al. 2016, equation 14), because every token makes a log-probability smaller, so that without it short wins.
#    If nothing finished, choose among the live ones in the same way.
#
# $$\mathrm{score}(Y) = \frac{\log P(Y)}{lp(Y)}, \qquad lp(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha},
# \qquad |Y| = \text{number of tokens, with eos}$$
#
# In step 3 there may be fewer than K extensions: then keep them all.
#
# A translation may not be shorter than `least` tokens, eos among them: in step 2 a hypothesis that would end before is not
# extended by `eos`.


# %% nbgrader={"grade": false, "grade_id": "beam-search", "locked": false, "schema_version": 3, "solution": true, "task": false}
def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6, least=1):
    """Search for the best translation of one sentence, for any step function.

    step:  function (state [k, ...], tokens [k]) -> (log_probs [k, V], state [k, ...]);
           row i is hypothesis i
    state: tensor [1, ...], the state before the first token
    least: an int, the fewest tokens of what is finished, eos among them
    returns (tokens, score): a list of Python ints, and a Python float. The bos before the first
            token and the eos at the end are left out; a bos that is chosen later is a word as any other.
    """
    ### BEGIN SOLUTION
    live, finished = [([], 0.0)], []
    tokens = torch.tensor([bos], device=state.device)
    penalty = lambda length: ((5 + length) / 6) ** alpha
    for length in range(1, max_length + 1):
        log_probs, state = step(state, tokens)
        so_far = torch.tensor([[total] for _, total in live], device=log_probs.device)
        totals = so_far + log_probs  # [k, V]
        order = totals.flatten().argsort(descending=True).tolist()
        extended = []
        for rank, index in enumerate(order):
            parent, word = divmod(index, log_probs.shape[-1])
            total = totals[parent, word].item()
            if word == eos:
                if rank < beam_size and length >= least:
                    finished.append((live[parent][0], total / penalty(length)))
            elif len(extended) < beam_size:
                extended.append((parent, word, total))
        live = [(live[parent][0] + [word], total) for parent, word, total in extended]
        if not live:
            break
        state = state[torch.tensor([parent for parent, _, _ in extended], device=state.device)]
        tokens = torch.tensor([word for _, word, _ in extended], device=state.device)
    unfinished = [(words, total / penalty(len(words))) for words, total in live]
    return max(finished or unfinished, key=lambda pair: pair[1])
    ### END SOLUTION


# %% [markdown]
# A table of next-word probabilities is a step function too: `table[last]`. The tests use small tables, where the best
# translation can be found by hand.

# %% nbgrader={"grade": true, "grade_id": "beam-search-finds", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("beam_search")
#                 <bos> <eos>  a     b     c    (column: next word; row: last word)
table = torch.tensor(
    [
        [0.0, 0.0, 0.6, 0.4, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.4, 0.3, 0.0, 0.3],
        [0.0, 0.9, 0.0, 0.1, 0.0],
        [0.0, 0.5, 0.5, 0.0, 0.0],
    ],
    device=device,
).log()
most = 1


def last_word(state, tokens):
    assert len(tokens) <= most, (
        f"step was given {len(tokens)} hypotheses with beam_size {most}. "
        "Keep the K best extensions of all hypotheses together, not K of each."
    )
    return table[tokens], state


start = torch.zeros(1, 1, device=device)
answer = beam_search(last_word, start, bos=0, eos=1, beam_size=1, max_length=6, alpha=0.0)
tokens, score = check_pair(answer, "beam_search must return (tokens, score)")
assert isinstance(tokens, list) and isinstance(score, float), (
    f"tokens must be a list and score a Python float; yours are {tokens} and {score}. "
    "Use .tolist() and .item()."
)
assert (tokens, round(score, 3)) == ([2], round(math.log(0.24), 3)), (
    f"With beam_size 1 the search is greedy: [2], then the end, log-probability {math.log(0.24):.3f}. "
    f"Yours: {tokens}, {score:.3f}."
)
most = 2
tokens, score = beam_search(
    last_word, start, bos=0, eos=1, beam_size=2, max_length=6, alpha=0.0
)
assert tokens == [3], (
    "With beam_size 2, b (0.4 x 0.9 = 0.36) beats a (0.6 x 0.4 = 0.24): "
    f"expected [3], yours is {tokens}. "
    "Do you keep the two best beginnings, and compare finished ones at the end?"
)
assert abs(score - math.log(0.36)) < 1e-4, (
    f"With alpha 0 the score is the log-probability {math.log(0.36):.4f}; yours is {score:.4f}."
)
tokens, score = beam_search(
    last_word, start, bos=0, eos=1, beam_size=2, max_length=6, alpha=0.0, least=3
)
assert (tokens, round(score, 3)) == ([2, 4], round(math.log(0.09), 3)), (
    "With least 3 no translation ends before its third token: expected a c (0.6 x 0.3 x 0.5 = 0.09), "
    f"that is [2, 4], {math.log(0.09):.3f}; yours is {tokens}, {score:.3f}."
)
### BEGIN HIDDEN TESTS
# {compare:beam_search}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "beam-search-length", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
#                     <bos> <eos>  a    b
words = torch.tensor(
    [[0.0, 0.45, 0.55, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.8, 0.2, 0.0]],
    device=device,
).log()
one_word = lambda state, tokens: (words[tokens], state)
start = torch.zeros(1, 1, device=device)
short, _ = beam_search(one_word, start, bos=0, eos=1, beam_size=2, max_length=8, alpha=0.0)
assert short == [], (
    f"With alpha 0 the empty sentence wins (0.45 against 0.55 x 0.8 = 0.44); yours is {short}."
)
longer, score = beam_search(one_word, start, bos=0, eos=1, beam_size=2, max_length=8, alpha=1.0)
assert longer == [2, 3], (
    "With alpha 1, a b wins: log 0.44 / (8 / 6) = -0.616 beats log 0.45 / (6 / 6) = -0.799. "
    f"Expected [2, 3], yours is {longer}. "
    "Is the length of each hypothesis, with eos, in its score?"
)
assert abs(score - math.log(0.44) * 6 / 8) < 1e-4, (
    f"The score of a b is {math.log(0.44) * 6 / 8:.4f}; yours is {score:.4f}."
)
forced, _ = beam_search(
    one_word, start, bos=0, eos=1, beam_size=2, max_length=8, alpha=0.0, least=2
)
assert forced == [2, 3], (
    f"With alpha 0 and least 2 the empty sentence may not win: expected [2, 3], yours is {forced}."
)
cut, score = beam_search(
    one_word, start, bos=0, eos=1, beam_size=2, max_length=2, alpha=1.0, least=2
)
assert (cut, round(score, 3)) == ([2, 3], round(math.log(0.55) * 6 / 7, 3)), (
    "After max_length 2 nothing has ended: choose among the live ones, a b with "
    f"log 0.55 / (7 / 6) = {math.log(0.55) * 6 / 7:.3f}; yours is {cut}, {score:.3f}."
)
### BEGIN HIDDEN TESTS
# {compare:beam_search_length}
### END HIDDEN TESTS

# %% [markdown]
# ### Your beam, on your model
#
# The whole thing: your attention inside, your search outside.


# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "translate", "locked": true, "schema_version": 3, "solution": false, "task": false}
def translate(words, beam_size):
    states, mask, state = model.encode(batch([(words, [], None)])[0])

    def step(state, tokens):
        k = len(tokens)
        log_probs, _, state = model.step(
            tokens, state, states.expand(k, -1, -1), mask.expand(k, -1)
        )
        return log_probs, state

    with torch.no_grad():
        tokens, score = beam_search(step, state, BOS, EOS, beam_size, max_length=20)
    french = {i: w for w, i in target_ids.items()}
    return [french[i] for i in tokens], score


print(" ".join(example[0]), "\n" + " ".join(translate(example[0], 4)[0]))
for beam_size in (1, 4):
    right = sum(translate(english, beam_size)[0] == french for english, french, _ in held_out)
    print(
        f"beam {beam_size}: {right} of {len(held_out)} held-out sentences translated without a mistake"
    )

# %% [markdown]
# ## Part 7 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# Somebody, or something, wrote a function for you. `focus(weights, real)` says of each query how widely it looks, and where it looks first. You do not
# see its code. Write `check_focus(implementation)`, which raises an error if an implementation is wrong and returns nothing if it is right.
# This is what a right one does:
#
# * `weights` is a float32 or float64 tensor [B, T, S] of numbers that are at least 0, and `real` a bool tensor [B, S] in which False = padding, which may stand anywhere.
# * What stands at padding does not count, whatever it is, even `nan`. What is left of each row is divided by its sum, whatever that is.
# * It returns `(bits, first)`: the entropy of each row in bits, $-\sum_j p_j \log_2 p_j$, a tensor [B, T] of the dtype of `weights`, and an int64 tensor [B, T],
#   the position of the largest weight, counted from 0 among all S positions. Of equal ones it is the first. A weight of 0 adds 0 to the entropy.
# * Where nothing is left, because all is padding or all that is left is 0, the entropy is 0 and the position is -1.
# * A gradient flows from `bits` to `weights`. It is finite everywhere, also at weights of 0, and 0 at padding.
# * Numbers are as exact as their dtype allows; their last digits may differ. `weights` and `real` stay as they are, and an answer depends on no earlier call.
#
# For example, weights [[[0.2, 0.2, 0.5]]] and real [[True, True, False]] give bits [[1.0]] and first [[0]].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_focus(implementation):
    """Raise an error if an implementation of `focus` is wrong; return nothing if it is right."""
    ### BEGIN SOLUTION
    nan = math.nan
    rows = [  # of a sentence with five positions, of which the second is padding
        ([0.5, nan, 0.25, 0.25, 0.0], 1.5, 0),
        ([0.1, 9.0, 0.1, 0.3, 0.3], 1.811278124459133, 3),  # ties; the sum is 0.8
        ([0.0, 1.0, 2.0, 0.0, 0.0], 0.0, 2),  # the sum is above 1
        ([0.0, 5.0, 0.0, 0.0, 0.0], 0.0, -1),  # nothing is left
        ([0.4998, 0.0, 0.5, 0.0002, 0.0], 1.0025558793, 2),  # small and nearly equal weights
        ([0.1, 0.0, 0.1, 0.1, 0.1], 2.0, 0),
    ]
    shorter = ([1.0, 1.0, nan, nan, nan], 1.0, 0)
    empty = ([1.0, 2.0, 3.0, 4.0, 5.0], 0.0, -1)
    everything = torch.tensor([True, False, True, True, True], device=device)
    some = torch.arange(5, device=device) < 2
    batch = [
        (rows, everything),
        ([shorter] * len(rows), some),
        ([empty] * len(rows), torch.zeros_like(some)),
    ]
    real = torch.stack([mask for _, mask in batch])
    for dtype, near in ((torch.float64, 1e-8), (torch.float32, 1e-4)):
        for chosen in ([0, 1, 2], [1, 0], [0]):
            table = [[row for row, _, _ in batch[b][0]] for b in chosen]
            weights = torch.tensor(table, dtype=dtype, device=device)
            kept, mask = weights.clone(), real[chosen]
            bits, first = implementation(weights, mask)
            assert weights.nan_to_num(-1).equal(kept.nan_to_num(-1)) and mask.equal(
                real[chosen]
            )
            assert bits.dtype == dtype and first.dtype == torch.int64
            wanted = [[bits for _, bits, _ in batch[b][0]] for b in chosen]
            wanted = torch.tensor(wanted, dtype=dtype, device=device)
            assert bits.shape == wanted.shape and torch.allclose(bits, wanted, atol=near)
            assert first.tolist() == [[place for _, _, place in batch[b][0]] for b in chosen]
    one = torch.ones(1, 1, 1, dtype=torch.float64, device=device)
    bits, first = implementation(one, one[0] > 0)
    assert (bits.tolist(), first.tolist()) == ([[0.0]], [[0]])
    for weights in ([0.2, 0.3, 0.1, 0.6], [0.2, 0.0, 0.0, 0.6]):
        leaf = torch.tensor([[weights]], dtype=torch.float64, device=device, requires_grad=True)
        mask = torch.tensor([[True, True, True, False]], device=device)
        (found,) = torch.autograd.grad(implementation(leaf, mask)[0].sum(), leaf)
        assert found.isfinite().all() and found[..., 3].item() == 0
        step = torch.tensor([[[1e-5, 0.0, 0.0, 0.0]]], dtype=torch.float64, device=device)
        higher, lower = (implementation(leaf.detach() + s, mask)[0] for s in (step, -step))
        slope = (higher - lower).item() / 2e-5
        assert abs(found[0, 0, 0].item() - slope) < 1e-4
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_focus}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_focus hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 8 · In your own words ({points:explain} points)
#
# Look at the picture in Part 5 and at the three error rates above it. Then write at most 150 words:
#
# 1. Which target words does the trained model align otherwise than gold? Where do they look instead, and what does the model
#    need from there to choose the right word?
# 2. Is the model wrong, then? Say what the alignment error rate measures, and what it does not.
# 3. A friend shows you a heat map as proof that his model has learned to align. What would you ask him to show beside it?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * What you say about the alignment is read off your own picture.
# * The reason follows from what the decoder has to do at that word.
# * You say what the rate measures, and what it leaves out.
# * What you ask your friend for could show that he is wrong, and you say how.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It names the words and where they look, from your own picture.
# * It gives the reason: what the decoder has to decide at that word, and where it can find out.
# * It says that the rate compares with gold pairs, and that it does not measure how good the translation is.
# * It names a control (an untrained model, shuffled weights) and says what must be different there.
#
# **All of it:**
#
# The articles, *la* and *le*: gold aligns them with *the*, but they look at the noun. English *the* does not say which article is
# right; the gender of the noun does, so the weight is where the information is. The translation is right, and the
# model is not wrong. The error rate measures agreement with pairs that a person or a grammar chose, not whether the
# words are right; it can rise while the translations get better. I would ask for the same picture from
# the model before training, and the error rate for it and for shuffled weights. If they look alike, the picture
# shows the data or the drawing, not learning.
#
# **Two of four:** The picture shows that *la* and *le* look at the noun and not at *the*. The alignment error rate
# compares the pairs that the model finds with gold pairs, so it says nothing about whether the translation is good. I
# would ask my friend for more examples.
#
# **None of it:** The model aligns most words rightly but makes some mistakes, because it was trained on few sentences.
# With more data the error rate would fall. I would ask my friend how long he trained.
# ### END SOLUTION
