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
#   # Longer than 400 lines because an assignment is one notebook: six parts, each with its prose, skeleton and tests.
#   course:
#     chapter: family
#     seconds: 60
#     withholds:
#       - course_lib.family.colbert
#       - course_lib.family.distilbert
#       - course_lib.family.prompting
#       - torch.nn.KLDivLoss
#       - torch.nn.functional.kl_div
# ---

# %% [markdown]
# # Assignment 8 · The family's losses and scores
#
# Three of BERT's relatives need no new layer. DistilBERT is trained on what its teacher says, ColBERT compares a query and
# a document token by token, and GPT is asked for an answer in its prompt. What makes each of them work is a formula of one
# line, and in each formula there is something to get wrong that raises no error: padding that is counted, a factor that
# is left out, a short answer that always wins.
#
# You write these formulas, and with the first you train a student whose teacher is known exactly, so that you can see how
# much of her it has learned.
#
# You need chapter 10 of the book, PyTorch, and about three hours. There are {points:total} points. No GPU is needed; if there
# is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge cases, and
# in Part 4 another teacher. Do not change, copy or delete the test cells. You may add cells of your own. Before you hand
# in, restart the kernel and run everything from the top. In a terminal, `course check family.ipynb` tells you what is
# amiss.
#
# **What you may use.** Everything in PyTorch except what you build here. Withheld are: {withholds}. Read each task
# with care: its function is not quite the one of the book.
#
# **Letters for shapes.** B: sentences. T: tokens of a sentence or a query. V: words of the vocabulary. Q: queries.
# N: documents. S: tokens of a document. D: features. P: prompts. A: answers. M: tokens of the longest answer. Masks are bool,
# and True means: a real token, not padding.
#
# **Padding.** What stands at padding may be any number, and `nan`, too. Neither a result nor a gradient may depend on it.
#
# **Gradients.** Models are trained through these functions, so a gradient reaches all floats that go into a result, unless the
# task says otherwise.

# %%
import math
import random

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


# {source:course_tools.grading.assignments.student_checks.tensor}


# {source:course_tools.grading.assignments.student_checks.normal}


# {source:course_tools.grading.assignments.student_checks.check_given}


# {source:course_tools.grading.assignments.student_checks.check_same}


def check_no_loop(name):
    """Refuse a Python loop in the cell that defines a function."""
    import ast

    loops = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    for cell in cells_that_define(name)[-1:]:
        for node in ast.walk(ast.parse(cell)):
            assert not isinstance(node, loops), (
                f"The cell that defines {name} has a loop in line "
                f"{getattr(node, 'lineno', '?')}. Compute all pairs at once, with tensors."
            )


def real(lengths, T):
    """A mask [B, T]: True for the first tokens of each row, as many as its length."""
    return torch.arange(T, device=device) < tensor(lengths)[:, None]


# %% [markdown]
# ## Part 1 · Distillation ({points:distillation} points)
#
# **Question: what does a student learn from a teacher who says how likely every word is?**
#
# The teacher's logits are $z$, the student's are $u$. Both are divided by a temperature $\vartheta$ before the softmax
# (Hinton, Vinyals and Dean 2015, section 2):
#
# $$p = \operatorname{softmax}(z / \vartheta), \qquad q = \operatorname{softmax}(u / \vartheta), \qquad
# \text{soft} = \vartheta^2 \sum_v p_v \ln \frac{p_v}{q_v}$$
#
# The factor $\vartheta^2$ keeps the gradients at one size whatever the temperature is. Your function returns this loss **for each
# sentence**: the mean over the real tokens of that sentence. A sentence of padding alone costs 0.
#
# * The teacher is not trained: no gradient may reach her logits.
# * A teacher may rule out words. Then their logit is `-inf` and $p_v$ is 0, and they add 0 to the sum; at least one word of
#   each real token is left. The student's logits are finite.


# %% nbgrader={"grade": false, "grade_id": "soft", "locked": false, "schema_version": 3, "solution": true, "task": false}
def soft_targets(student, teacher, mask, temperature):
    """The loss of each sentence against the teacher's probabilities.

    student, teacher: float [B, T, V], logits
    mask:             bool [B, T], True = a real token
    temperature:      a Python float above 0
    returns float [B], of the dtype of student

    Example: student [[[0., 0.]]], teacher [[[2 ln 3, 0.]]], mask [[True]], temperature 2.0
             -> p = (3/4, 1/4), q = (1/2, 1/2), so [4 (3/4 ln 3/2 + 1/4 ln 1/2)] = [0.5232]
    """
    ### BEGIN SOLUTION
    student = student.masked_fill(~mask[..., None], 0)
    teacher = teacher.detach().masked_fill(~mask[..., None], 0)
    log_p = (teacher / temperature).log_softmax(dim=-1)  # [B, T, V]
    log_q = (student / temperature).log_softmax(dim=-1)
    parts = log_p.exp() * (log_p - log_q)
    divergence = torch.where(log_p.isinf(), 0, parts).sum(dim=-1)  # [B, T]
    return temperature**2 * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "distillation-soft", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("soft_targets")


def check_soft(seed, lengths, T, V, temperature, what):
    student, teacher = normal(seed, (len(lengths), T, V), (len(lengths), T, V))
    mask = real(lengths, T)
    log_p, log_q = (
        (teacher / temperature).log_softmax(-1),
        (student / temperature).log_softmax(-1),
    )

    def mean(each):
        return torch.stack([row[kept].mean() for row, kept in zip(each, mask)])

    forward = (log_p.exp() * (log_p - log_q)).sum(-1)
    backward = (log_q.exp() * (log_q - log_p)).sum(-1)
    square, slips = temperature**2, []
    for plain, words in (
        (backward, "Upside down: weigh by the teacher's p, and take ln p / q."),
        (-(log_p.exp() * log_q).sum(-1), "That is -p ln q: the teacher's p ln p is missing."),
        (
            (log_p.exp() * (log_p - student.log_softmax(-1))).sum(-1),
            "Divide the student's logits by the temperature, too.",
        ),
        (
            (teacher.softmax(-1) * (teacher.log_softmax(-1) - log_q)).sum(-1),
            "Divide the teacher's logits by the temperature, too.",
        ),
        (
            (teacher.softmax(-1) * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum(-1),
            "The logits must be divided by the temperature before the softmax.",
        ),
        (forward / V, "Add up over the vocabulary; yours takes the mean."),
        (forward / math.log(2), "Take the natural logarithm."),
    ):
        slips.append((square * mean(plain), words))
    kept = forward.masked_fill(~mask, 0)
    slips += [
        (mean(forward), "The factor temperature squared is missing."),
        (temperature * mean(forward), "The factor is the temperature squared."),
        (mean(forward) / square, "Multiply by the temperature squared; yours divides by it."),
        (square * forward.mean(1), "Padding is in it: leave its tokens out."),
        (
            square * kept.mean(1),
            f"You divide by T, {T}: divide by the real tokens of each row.",
        ),
        (square * kept.sum(1), "Divide by the number of real tokens of each sentence."),
        (
            square * kept.sum(1) / mask.sum(),
            "Divide each sentence by its own number of tokens; yours divides by the batch's.",
        ),
    ]
    got = soft_targets(student, teacher, mask, temperature)
    check_shape(got, [len(lengths)], f"{what}, the loss", "It is one number a sentence.")
    check_close(
        got,
        square * mean(forward),
        f"{what}, the loss",
        "Softmax at the temperature, p ln p / q, the sum over words, the mean over real tokens.",
        slips=slips,
    )


check_soft(1, [3, 5], T=6, V=4, temperature=3.0, what="For lengths 3 and 5")
check_close(
    soft_targets(tensor([[[0.0, 0.0]]]), tensor([[[2 * math.log(3), 0.0]]]), real([1], 1), 2.0),
    tensor([4 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5))]),
    "The example's loss",
    "Softmax at the temperature, then p ln p / q, times the temperature squared.",
    1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:soft_targets}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "distillation-edges", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("soft_targets")
student, teacher = normal(2, (2, 3, 5), (2, 3, 5), dtype=torch.float32)
teacher[0, 1, 2:4] = -torch.inf
given = student.requires_grad_(), teacher.requires_grad_()
loss = soft_targets(*given, real([3, 2], 3), 1.5)
check_shape(loss, [2], "For a teacher who rules out words, the loss")
assert loss.isfinite().all(), (
    f"For a teacher who rules out words, the loss is {loss.tolist()}. p is 0 there, and 0 times "
    "ln 0 is nan: let these words add 0."
)
loss.sum().backward()
assert teacher.grad is None or not teacher.grad.any(), (
    "A gradient reaches the teacher's logits, but she is not trained: detach them."
)
assert student.grad is not None and student.grad.isfinite().all() and student.grad.any(), (
    "The student's logits need a gradient, and it must be finite. Do you detach them, or compute "
    "0 times ln 0 on the way?"
)
short = soft_targets(*normal(3, (2, 3, 5), (2, 3, 5)), real([0, 2], 3), 1.5)
assert short[0].item() == 0, (
    f"A sentence of padding alone costs 0; yours costs {short[0].item()}. Mind the division."
)
### BEGIN HIDDEN TESTS
# {compare:soft_targets_edges}
### END HIDDEN TESTS

# %% [markdown]
# The *hard* loss asks for the right word: for each sentence the mean of $-\ln \operatorname{softmax}(u)_y$ over the tokens that
# have a label $y$, without any temperature. The loss that is trained is a mixture:
#
# $$\text{loss} = \text{mean over sentences of } \big( (1 - w) \cdot \text{soft} + w \cdot \text{hard} \big)$$
#
# So each sentence counts the same, however many labels it has. Each has one at least. A token without a label has the label -1.
# `soft` is given: what `soft_targets` returns, or any other numbers, and is trained, too.


# %% nbgrader={"grade": false, "grade_id": "mixed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mixed_loss(soft, logits, labels, weight):
    """Mix the soft losses of sentences with the hard ones.

    soft:   float [B]
    logits: float [B, T, V], the student's
    labels: int [B, T], -1 = no label
    weight: a Python float from 0 to 1, the share w of the hard loss
    returns (loss, hard): float [], and float [B]

    Example: soft [3.], logits [[[0., 0.], [5., 7.]]], labels [[1, -1]], weight 0.25
             -> hard [ln 2], loss 0.75 * 3 + 0.25 * ln 2 = 2.4233
    """
    ### BEGIN SOLUTION
    counted = labels >= 0
    log_q = logits.masked_fill(~counted[..., None], 0).log_softmax(dim=-1)  # [B, T, V]
    right = log_q.gather(2, labels.clamp(min=0)[..., None])[..., 0]  # [B, T]
    hard = -right.masked_fill(~counted, 0).sum(dim=1) / counted.sum(dim=1)  # [B]
    return ((1 - weight) * soft + weight * hard).mean(), hard
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "distillation-mixed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("mixed_loss")


def check_mixed(seed, lengths, T, V, weight, what):
    B = len(lengths)
    soft, logits = normal(seed, (B,), (B, T, V))
    soft, mask = soft.abs() + 1, real(lengths, T)
    labels = ((torch.arange(B * T, device=device) * 2 + 1) % V).reshape(B, T)
    picked = -logits.log_softmax(-1).gather(2, labels[..., None])[..., 0]
    labels = labels.masked_fill(~mask, -1)
    zeroed = -logits.log_softmax(-1).gather(2, labels.clamp(min=0)[..., None])[..., 0]
    hard = torch.stack([row[kept].mean() for row, kept in zip(picked, mask)])
    got = mixed_loss(soft, logits, labels, weight)
    loss, mine = check_pair(got, "mixed_loss must return (loss, hard)")
    check_shape(mine, [B], f"{what}, the hard loss", "It is one number a sentence.")
    check_close(
        mine,
        hard,
        f"{what}, the hard loss",
        "For each sentence the mean of -ln softmax(u) at the label.",
        slips=(
            (picked.mean(1), "Tokens without a label are in it: leave out label -1."),
            (zeroed.mean(1), "Tokens without a label are in it: leave out label -1."),
            (
                picked.masked_fill(~mask, 0).mean(1),
                f"You divide by T, {T}: divide by the labels of each sentence.",
            ),
            (
                picked.masked_fill(~mask, 0).sum(1),
                "Divide by the number of labels of each sentence.",
            ),
            (-hard, "The loss is minus the logarithm."),
        ),
    )
    check_shape(loss, [], f"{what}, the loss", "It is one number for the batch.")
    check_close(
        loss,
        ((1 - weight) * soft + weight * hard).mean(),
        f"{what}, the loss",
        "The mean over sentences of (1 - w) soft + w hard.",
        slips=(
            (
                (weight * soft + (1 - weight) * hard).mean(),
                "w is the share of the hard loss; yours gives it to the soft one.",
            ),
            ((soft + weight * hard).mean(), "The soft loss has the share 1 - w."),
            (((1 - weight) * soft + weight * hard).sum(), "Take the mean over sentences."),
            (
                (1 - weight) * soft.mean() + weight * picked[mask].mean(),
                "Each sentence counts the same; yours takes the mean over all labels.",
            ),
        ),
    )


check_mixed(4, [2, 5, 3], T=6, V=7, weight=0.3, what="For 2, 5 and 3 labels")
### BEGIN HIDDEN TESTS
# {compare:mixed_loss}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · MaxSim ({points:maxsim} points)
#
# **Question: which word of a document answers to a word of the query?**
#
# Each token of the query looks for the token of the document with the largest inner product, its *partner* (Khattab and
# Zaharia 2020, section 3.3). The score of a query and a document is the **mean** of these products over the real tokens of
# the query, so that queries of different lengths can be compared:
#
# $$s(q, d) = \frac{1}{\text{tokens of } q} \sum_t \max_s \; q_t \cdot d_s$$
#
# Return the partners, too: for each query, document and token of the query the position $s$ of its partner, in the document.
# If several tokens of the document give the same product, the partner is the first of them. A token of the query
# that is padding has the partner -1.
#
# A document may be all padding. Its scores are `-inf` and its partners -1. A query has one real token at least.
#
# There may be thousands of documents, so write no Python loop: no `for`, no `while`, no comprehension. The tests look.


# %% nbgrader={"grade": false, "grade_id": "late-interaction", "locked": false, "schema_version": 3, "solution": true, "task": false}
def maxsim(queries, documents, query_mask, document_mask):
    """Score every query against every document, token by token.

    queries:       float [Q, T, D]     query_mask:    bool [Q, T]
    documents:     float [N, S, D]     document_mask: bool [N, S]
    returns (scores, partners): float [Q, N] of the vectors' dtype, and int64 [Q, N, T]

    Example: queries [[[1., 0.], [0., 1.]]], documents [[[3., 1.], [2., 5.]]], nothing padded
             -> products [3, 2] and [1, 5], so scores [[4.]], partners [[[0, 1]]]
    """
    ### BEGIN SOLUTION
    queries = queries.masked_fill(~query_mask[..., None], 0)
    documents = documents.masked_fill(~document_mask[..., None], 0)
    products = torch.einsum("qtd,nsd->qnts", queries, documents)
    products = products.masked_fill(~document_mask[None, :, None], -torch.inf)
    best, partners = products.max(dim=-1)  # [Q, N, T]
    some = document_mask.any(dim=1)[None, :, None] & query_mask[:, None]  # [Q, N, T]
    best = best.masked_fill(~query_mask[:, None], 0)
    scores = best.sum(dim=-1) / query_mask.sum(dim=1)[:, None]
    return scores, partners.masked_fill(~some, -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "maxsim-scores", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check_withheld("maxsim")
check_no_loop("maxsim")


def pairs_of(queries, documents, query_mask, document_mask, number):
    """A number of each query and document, computed one pair at a time."""
    return torch.stack(
        [
            torch.stack([number(q[a] @ d[b].T) for d, b in zip(documents, document_mask)])
            for q, a in zip(queries, query_mask)
        ]
    )


def check_maxsim(seed, lengths, sizes, what):
    (T, S, D), (Q, N) = sizes, map(len, lengths)
    queries, documents = normal(seed, (Q, T, D), (N, S, D))
    documents = documents - 0.8
    masks = real(lengths[0], T), real(lengths[1], S)
    of = lambda number, *masks: pairs_of(queries, documents, *masks, number)
    mean = lambda table: table.max(1).values.mean()
    all_q, all_d = real([T] * Q, T), real([S] * N, S)
    got = maxsim(queries, documents, *masks)
    scores, partners = check_pair(got, "maxsim must return (scores, partners)")
    hint = "Rows are queries, columns are documents."
    check_shape(scores, [Q, N], f"{what}, the scores", hint)
    best = of(lambda table: table.max(1).values.sum(), *masks)
    check_close(
        scores,
        of(mean, *masks),
        f"{what}, the scores",
        "For each token of the query the largest product, then the mean.",
        slips=(
            (best, "Take the mean over the tokens of the query; yours is the sum."),
            (best / T, f"You divide by T, {T}: divide by the real tokens of each query."),
            (of(mean, all_q, masks[1]), "Padding of the query is in it."),
            (of(mean, masks[0], all_d), "Padding of the document is in it."),
            (of(mean, all_q, all_d), "Padding is in it: use both masks."),
            (
                of(lambda table: table.max(0).values.mean(), *masks),
                "The maximum runs over the document, the mean over the query.",
            ),
            (of(lambda table: table.mean(), *masks), "Take the maximum over the document."),
            (of(lambda table: table.max(), *masks), "Take the mean over the query's tokens."),
            (
                of(lambda table: table.max(1).values.clamp(min=0).mean(), *masks),
                "Padding takes part as 0, which is larger than a negative product: "
                "fill it with -inf.",
            ),
        ),
    )
    check_shape(
        partners,
        [Q, N, T],
        f"{what}, the table of partners",
        "One for each token of the query.",
    )
    wanted = torch.full((Q, N, T), -1, device=device)
    for q, length in enumerate(lengths[0]):
        for n, end in enumerate(lengths[1]):
            table = queries[q, :length] @ documents[n, :end].T
            wanted[q, n, :length] = table.argmax(1)
    assert (partners.masked_fill(~masks[0][:, None], -1) == wanted).all() or (
        partners.dtype != wanted.dtype
    ), f"{what}, a partner is wrong. It is the position of the largest product in the document."
    check_close(
        partners,
        wanted,
        f"{what}, the table of partners",
        "A token of the query that is padding has the partner -1.",
    )


check_maxsim(5, ([2, 4], [5, 3, 6]), (4, 7, 3), "For 2 queries and 3 documents")
### BEGIN HIDDEN TESTS
# {compare:maxsim}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "maxsim-edges", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("maxsim")
check_no_loop("maxsim")
query, document = tensor([[[1.0, 2.0]]]), tensor([[[9.0, 9.0], [2.0, 1.0], [0.0, 2.0]]])
keep = tensor([[False, True, True]])
scores, partners = maxsim(query, document, real([1], 1), keep)
assert scores.tolist() == [[4.0]] and partners.tolist() == [[[1]]], (
    "The first token of this document is padding, and the other two give the product 4: the score "
    f"is 4 and the partner 1, the first of the two, counted with padding. Yours are {scores.tolist()} and "
    f"{partners.tolist()}."
)
scores, partners = maxsim(query, document, real([1], 1), tensor([[False] * 3]))
assert scores.tolist() == [[-math.inf]] and partners.tolist() == [[[-1]]], (
    "A document of padding alone has the score -inf and the partner -1; "
    f"yours are {scores.tolist()} and {partners.tolist()}."
)
### BEGIN HIDDEN TESTS
# {compare:maxsim_edges}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · Answers to a prompt ({points:prompts} points)
#
# **Question: how do you ask a model that can only go on writing?**
#
# You show it solved examples, *shots*, and then the question (Brown et al. 2020, section 2). A model reads `longest` tokens
# at most. If the prompt is too long, leave out whole shots, the first one first, until it fits. Then the shots that stand
# nearest to the question are kept.


# %% nbgrader={"grade": false, "grade_id": "few-shot", "locked": false, "schema_version": 3, "solution": true, "task": false}
def build_prompt(start, shots, question, between, longest):
    """Write a prompt: the start, the shots, the question.

    start, question: lists of ids
    shots:           list of (question, answer), lists of ids
    between:         an id; it stands behind each shot
    longest:         how many tokens the prompt may have
    returns (prompt, kept): a list of ids, and how many shots are in it
    raises  ValueError if the start and the question alone are longer than longest

    Example: start [1], shots [([5, 6], [7]), ([8], [9])], question [4], between 0, longest 6
             -> ([1, 8, 9, 0, 4], 1), because both shots would make 9 tokens
    """
    ### BEGIN SOLUTION
    if len(start) + len(question) > longest:
        raise ValueError("the prompt is too long without any shot")
    shown = [[*asked, *answer, between] for asked, answer in shots]
    while len(start) + sum(map(len, shown)) + len(question) > longest:
        shown = shown[1:]
    return [*start, *(index for shot in shown for index in shot), *question], len(shown)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "prompts-build", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("build_prompt")
SHOTS = [([5, 6], [7]), ([8], [9]), ([3, 4, 5], [6, 7])]
for longest, wanted, why in (
    (40, ([1, 5, 6, 7, 0, 8, 9, 0, 3, 4, 5, 6, 7, 0, 2, 4], 3), "there is room for all"),
    (16, ([1, 5, 6, 7, 0, 8, 9, 0, 3, 4, 5, 6, 7, 0, 2, 4], 3), "they fit exactly"),
    (15, ([1, 8, 9, 0, 3, 4, 5, 6, 7, 0, 2, 4], 2), "one token too many"),
    (8, ([1, 2, 4], 0), "the last shot does not fit, so that none is left"),
):
    check_same(
        build_prompt([1], SHOTS, [2, 4], 0, longest),
        wanted,
        f"With longest {longest} ({why}), (prompt, kept)",
        "Leave out whole shots, the first one first, until it fits.",
    )
assert len(SHOTS) == 3, (
    "build_prompt must leave the caller's shots as they were; yours takes some out of the list."
)
try:
    answer = build_prompt([1], SHOTS, [2, 4], 0, 2)
except ValueError:
    pass
else:
    raise AssertionError(
        f"A start and a question that do not fit must raise ValueError; yours returned {answer}."
    )
### BEGIN HIDDEN TESTS
# {compare:build_prompt}
### END HIDDEN TESTS

# %% [markdown]
# Now the answers. A causal model gives at each position the logits of the **next** token, and does not see what comes later.
# So the log-probability of an answer's token is read one position earlier, from a row that holds the prompt and the answer.
#
# Call `model` **once**, with all answers in one batch [A, L]: in each row the prompt, one of the answers, and behind it `pad`
# as often as needed. L is the length of the prompt and the longest answer. `pad` is a word like any other, so an
# answer may contain it.


# %% nbgrader={"grade": false, "grade_id": "tokens", "locked": false, "schema_version": 3, "solution": true, "task": false}
def answer_log_probs(model, prompt, answers, pad):
    """Say how likely each token of each answer is after the prompt and the tokens before it.

    model:   function int64 [A, L] -> float [A, L, V]: at each position, the logits of the next token
    prompt:  list of ids, at least one
    answers: list of A lists of ids, each with at least one
    pad:     an id to fill up with
    returns (log_probs, mask): float [A, M], 0 at padding, and bool [A, M];
            log_probs in the dtype of the logits, both on their device

    Example: for logits that are all 0, 10 words, prompt [4], answers [[7], [8, 9]]
             -> [[-2.3026, 0.], [-2.3026, -2.3026]], [[True, False], [True, True]]
    """
    ### BEGIN SOLUTION
    M, begin = max(map(len, answers)), len(prompt)
    rows = [[*prompt, *answer, *[pad] * (M - len(answer))] for answer in answers]
    ids = torch.tensor(rows, device=device)  # [A, L]
    log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)  # [A, M, V]
    found = log_probs.gather(2, ids[:, begin:, None])[..., 0]  # [A, M]
    lengths = torch.tensor([[len(answer)] for answer in answers], device=device)
    mask = torch.arange(M, device=device) < lengths
    return found.masked_fill(~mask, 0), mask
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "prompts-tokens", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check_withheld("answer_log_probs")


class Counted:
    """A causal model whose next token depends on all before it; it knows how often it was called."""

    def __init__(self, seed, V, D=4):
        self.word, self.out = normal(seed, (V, D), (D, V))
        self.calls = 0

    def __call__(self, ids):
        self.calls += 1
        assert isinstance(ids, torch.Tensor) and ids.dim() == 2 and ids.dtype == torch.int64, (
            "model must be given int64 ids [A, L]; yours gives it something else."
        )
        place = torch.arange(1, ids.shape[1] + 1, device=ids.device)[:, None]
        return 2 * torch.tanh((self.word[ids] * place).cumsum(1) / 3) @ self.out


def check_answers(seed, prompt, answers, pad, V, what):
    model, A, M = Counted(seed, V), len(answers), max(map(len, answers))
    wanted, early, late = (
        torch.zeros(A, M, dtype=torch.float64, device=device) for _ in range(3)
    )
    for a, answer in enumerate(answers):
        table = Counted(seed, V)(tensor([prompt + answer]))[0].log_softmax(-1)
        for t, index in enumerate(answer):
            place = len(prompt) + t
            wanted[a, t] = table[place - 1, index]
            late[a, t] = table[place, index]
            early[a, t] = table[max(place - 2, 0), index]
    got = answer_log_probs(model, list(prompt), [list(answer) for answer in answers], pad)
    log_probs, mask = check_pair(got, "answer_log_probs must return (log_probs, mask)")
    assert model.calls == 1, (
        f"{what}, model was called {model.calls} times. Put all answers into one batch."
    )
    hint = "One row for each answer, one column for each token of the longest."
    check_shape(mask, [A, M], f"{what}, the mask", hint)
    check_close(
        mask, real([len(answer) for answer in answers], M), f"{what}, the mask", "By lengths."
    )
    check_shape(log_probs, [A, M], f"{what}, the table", hint)
    kept = log_probs.masked_fill(~mask, 0)
    assert not alike(kept, wanted, 1e-5).all() or alike(log_probs, wanted, 1e-5).all(), (
        f"{what}, the table must be 0 at padding."
    )
    check_close(
        log_probs,
        wanted,
        f"{what}, the table",
        "ln softmax of the logits one position earlier, at the answer's token.",
        slips=(
            (late, "The logits at a position are those of the next token: read one earlier."),
            (early, "Read one position earlier, not two."),
            (wanted.exp() * mask, "Those are probabilities: take the logarithm."),
        ),
    )


check_answers(
    6, [3, 1], [[4, 2, 5], [6], [2, 2, 1, 0]], 0, 7, "For answers of 3, 1 and 4 tokens"
)
### BEGIN HIDDEN TESTS
# {compare:answer_log_probs}
### END HIDDEN TESTS

# %% [markdown]
# Every token makes a sum of log-probabilities smaller, so the shortest answer has an advantage. Divide the sum by a power of
# the number $n$ of tokens:
#
# $$\text{score} = \frac{1}{n^{\alpha}} \sum_{t=1}^{n} \ln p(o_t \mid \text{prompt}, o_{<t})$$
#
# Some answers are likely whatever was asked. If a `prior` is given, the log-probabilities of the same answers after an empty
# prompt, subtract its score, by the same formula, from that of each prompt (similarly Zhao et al. 2021, section 4). Then choose the answer
# with the largest score, and of equal ones the first. A log-probability may be `-inf`; those of a prior are finite.


# %% nbgrader={"grade": false, "grade_id": "choice", "locked": false, "schema_version": 3, "solution": true, "task": false}
def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    """Choose the best of the same answers for each prompt.

    log_probs: float [P, A, M], of the tokens of each answer after each prompt
    mask:      bool [A, M], at least one True in each row
    alpha:     a Python float, at least 0
    prior:     float [A, M], of the same tokens after an empty prompt, or None
    returns (best, scores): int64 [P], and float [P, A] in the dtype and precision of log_probs

    Example: log_probs [[[-1., 9.], [-0.8, -0.8]]], mask [[True, False], [True, True]]
             -> scores [[-1., -0.8]], best [1]; with alpha 0 scores [[-1., -1.6]], best [0]
    """
    ### BEGIN SOLUTION
    power = mask.sum(dim=-1).to(log_probs.dtype) ** alpha  # [A]
    scores = log_probs.masked_fill(~mask, 0).sum(dim=-1) / power  # [P, A]
    if prior is not None:
        scores = scores - prior.masked_fill(~mask, 0).sum(dim=-1) / power
    return scores.argmax(dim=-1), scores
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "prompts-choose", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("choose_answer")


def check_choice(seed, P, lengths, M, what, alpha=None, prior=False):
    A, mask = len(lengths), real(lengths, M)
    table, before = (-number.abs() for number in normal(seed, (P, A, M), (A, M)))
    total = lambda part: (part * mask).sum(-1)
    n = mask.sum(-1)
    power = n.double() ** (1.0 if alpha is None else alpha)
    given = ({} if alpha is None else {"alpha": alpha}) | ({"prior": before} if prior else {})
    wanted = total(table) / power - prior * total(before) / power
    got = choose_answer(table, mask, **given)
    best, scores = check_pair(got, "choose_answer must return (best, scores)")
    check_close(
        scores,
        wanted,
        f"{what}, the scores",
        "The sum over real tokens, divided by their number to the power alpha.",
        slips=(
            (
                total(table) - prior * total(before),
                "Divide by the number of tokens to the power alpha.",
            ),
            (table.sum(-1) / power - prior * before.sum(-1) / power, "Padding is in the sum."),
            (
                total(table) / M - prior * total(before) / M,
                "Divide by each answer's own length.",
            ),
            (total(table) / n - prior * total(before) / n, "The length has the power alpha."),
            (total(table) / power, "Subtract the score of the prior."),
            (total(table) / power - total(before), "Divide the prior's sum by the power, too."),
            (total(table) / power + total(before) / power, "Subtract the prior's score."),
        ),
    )
    check_close(best, wanted.argmax(1), f"{what}, the best", "The largest score.")


check_choice(7, 3, [2, 4, 1, 3, 5], 6, "For 5 answers")
check_choice(8, 2, [3, 1, 4], 5, "With alpha 0.5", alpha=0.5)
check_choice(9, 4, [2, 3, 1], 6, "With a prior", alpha=2.0, prior=True)
### BEGIN HIDDEN TESTS
# {compare:choose_answer}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · How much of her teacher has a student learned? ({points:experiment} points)
#
# **Question: what can a student learn from 24 short stories?**
#
# In this small world 12 animals are in 8 places and do one of 16 things. The teacher knows how likely each thing is for each of the
# 96 pairs of an animal and a place, and her stories are drawn from just these probabilities. 24 stories of one to six events
# show about half of the pairs, most of them once. The student has the same form as the teacher, but has to learn its numbers.
#
# Write an experiment that trains a student and returns it. `data` holds `pairs`, int64 [B, T, 2], `mask`, bool [B, T], `labels`, int64
# [B, T], what the animal did or -1, and `teacher`, float [B, T, V], the teacher's logits. `student(pairs)` gives logits [B, T, V].
#
# The tests measure how far the student is from the teacher: $\sum_v p_v \ln (p_v / q_v)$ at temperature 1, on average over **all** 96
# pairs. It must be at most 0.03 nats. It needs about a second; the tests give it 30 seconds of processor time. They may
# take other stories of another teacher.


# %% nbgrader={"grade": false, "grade_id": "world", "locked": true, "schema_version": 3, "solution": false, "task": false}
import time

ANIMALS = ["cat", "dog", "owl", "fox", "bee", "ant", "cow", "hen", "pig", "rat", "bat", "frog"]
PLACES = ["garden", "kitchen", "forest", "river", "cellar", "tower", "meadow", "market"]
THINGS = [
    "sleeps",
    "eats",
    "hides",
    "runs",
    "sings",
    "waits",
    "digs",
    "jumps",
    "hunts",
    "drinks",
    "plays",
    "looks",
    "calls",
    "climbs",
    "swims",
    "dreams",
]


class Pairs(torch.nn.Module):
    """Logits of what an animal does in a place: some numbers for each animal, and some for each place."""

    def __init__(self, seed=0, scale=0.02):
        super().__init__()
        tables = normal(seed, (len(ANIMALS), len(THINGS)), (len(PLACES), len(THINGS)))
        self.animal, self.place = (
            torch.nn.Parameter(scale * table.float()) for table in tables
        )

    def forward(self, pairs):
        """pairs int64 [..., 2] -> logits [..., V]"""
        return self.animal[pairs[..., 0]] + self.place[pairs[..., 1]]


def make_student(seed=0):
    return Pairs(seed)


def make_data(seed, count=24, longest=6):
    """A teacher, and stories that are drawn from her probabilities."""
    teacher, chance = Pairs(seed, scale=1.5), random.Random(seed)
    draw = torch.Generator().manual_seed(seed)
    lengths = [chance.randint(1, longest) for _ in range(count)]
    events = [
        [
            [chance.randrange(len(ANIMALS)), chance.randrange(len(PLACES))]
            for _ in range(longest)
        ]
        for _ in range(count)
    ]
    mask = real(lengths, longest)
    pairs = tensor(events).masked_fill(~mask[..., None], 0)
    with torch.no_grad():
        logits = teacher(pairs)
    drawn = torch.multinomial(logits.softmax(-1).flatten(0, 1).cpu(), 1, generator=draw)
    labels = drawn.reshape(mask.shape).to(device).masked_fill(~mask, -1)
    logits = logits.masked_fill(~mask[..., None], math.nan)  # of padding
    data = {"pairs": pairs, "mask": mask, "labels": labels, "teacher": logits}
    return teacher, data


def distance(teacher, student):
    """How far a student is from the teacher on all pairs, in nats."""
    every = tensor([[[a, p] for p in range(len(PLACES))] for a in range(len(ANIMALS))])
    with torch.no_grad():
        log_p, log_q = (model(every).double().log_softmax(-1) for model in (teacher, student))
    return (log_p.exp() * (log_p - log_q)).sum(-1).mean().item()


teacher, data = make_data(1)
for row in range(3):
    events = zip(data["pairs"][row].tolist(), data["labels"][row].tolist())
    said = [
        f"the {ANIMALS[a]} {THINGS[y]} in the {PLACES[p]}" for (a, p), y in events if y >= 0
    ]
    print("; ".join(said))


# %% nbgrader={"grade": false, "grade_id": "experiment", "locked": false, "schema_version": 3, "solution": true, "task": false}
def experiment(make_student, data):
    """Train a student on the stories, and return it.

    make_student: function of a seed, gives a student
    data:         dict of pairs, mask, labels and teacher; all stays as it is
    """
    ### BEGIN SOLUTION
    student = make_student()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.15)
    for _ in range(80):
        logits = student(data["pairs"])
        soft = soft_targets(logits, data["teacher"], data["mask"], 2.0)
        loss, _ = mixed_loss(soft, logits, data["labels"], 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return student
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "experiment-student", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check_withheld("experiment")
check_given("Pairs", "make_student", "make_data", "distance")


def check_experiment(seed, what, most=0.03):
    teacher, data = make_data(seed)
    before = {name: table.clone() for name, table in data.items()}
    begin = time.process_time()
    made = []
    make = lambda *args, **named: made.append(make_student(*args, **named)) or made[-1]
    student = experiment(make, data)
    spent = time.process_time() - begin
    assert isinstance(student, Pairs), (
        f"experiment must return a student, as make_student gives it; yours returns "
        f"{'nothing' if student is None else 'a ' + type(student).__name__}."
    )
    assert made, "experiment did not call make_student: train a student that it gives you."
    assert spent < 30, f"The experiment took {spent:.0f} s; it must take less than 30."
    pairs = [(table, data[name]) for name, table in before.items()]
    # nan stays where it was
    same = [(a.nan_to_num() == b.nan_to_num()) & ((a == a) == (b == b)) for a, b in pairs]
    assert all(part.all() for part in same), (
        "experiment must leave the stories as they are; yours changes them."
    )
    found, untrained = distance(teacher, student), distance(teacher, make_student())
    hint = "More steps, another rate, another share of the hard loss?"
    if abs(found - untrained) < 1e-3:
        hint = "That is an untrained student. Does the optimizer know its parameters, and does it step?"
    elif found > 0.2:
        hint = (
            "So far away is who learns from the labels alone, or from padding: what the teacher "
            "says about the other words is what 24 stories do not show."
        )
    assert found <= most, (
        f"{what}, the student must be at most {most} nats from the teacher; yours is "
        f"{found:.3f}, an untrained one {untrained:.3f}. {hint}"
    )


check_experiment(1, "For 24 stories of one teacher")
### BEGIN HIDDEN TESTS
check_experiment(25, "For 24 stories of another teacher")
### END HIDDEN TESTS

# %% [markdown]
# ### What do your formulas show?
#
# The next cell uses all of your functions. Change nothing in it; read what it prints.
#
# * *Students*: how far from the teacher, after 150 steps on the same stories, for shares $w$ of the hard loss from 0 to 1.
#   *On pairs in the stories* and *on others* split the 96 pairs by whether a story tells of them.
# * *Gradients*: the size of the soft loss's gradient for logits of the student, at five temperatures, with and without $\vartheta^2$.
# * *Search*: 100 queries of three words, and 100 documents. The right document has the three words of the query, each with some noise, and more
#   and more other words. *MaxSim* is yours; *one vector* takes the mean of the words' vectors on both sides.
# * *Answers*: a model that has a weak notion of which of eight answers, of one to six tokens, is right. What share is right, and how many
#   tokens has the chosen answer on average? (All answers are right equally often; their mean length is 3.25.)


# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "shown", "locked": true, "schema_version": 3, "solution": false, "task": false}
def trained(weight, temperature=2.0):
    """A student of the first teacher, trained with this share of the hard loss."""
    student = make_student()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.1)
    for _ in range(150):
        logits = student(data["pairs"])
        soft = soft_targets(logits, data["teacher"], data["mask"], temperature)
        loss, _ = mixed_loss(soft, logits, data["labels"], weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return student


def apart(student):
    """How far a student is from the teacher, on pairs in the stories and on the others."""
    every = tensor([[[a, p]] for a in range(len(ANIMALS)) for p in range(len(PLACES))])
    told = {tuple(pair) for pair in data["pairs"][data["mask"]].tolist()}
    seen = tensor([tuple(pair[0]) in told for pair in every.tolist()])
    with torch.no_grad():
        far = soft_targets(
            student(every), teacher(every), torch.ones_like(every[..., 0]) > 0, 1.0
        )
    return far[seen].mean().item(), far[~seen].mean().item()


print(f"{'Students':28}{'in the stories':>16}{'others':>10}")
for name, student in (
    ("untrained", make_student()),
    *((f"w = {weight}", trained(weight)) for weight in (0.0, 0.25, 0.5, 0.75, 1.0)),
):
    told, others = apart(student)
    print(f"{name:28}{abs(told):16.2f}{abs(others):10.2f}")

print(f"\n{'Gradients, temperature':28}" + "".join(f"{t:>10}" for t in (1, 2, 4, 8, 16)))
sizes = []
for temperature in (1.0, 2.0, 4.0, 8.0, 16.0):
    logits = make_student()(data["pairs"]).detach().requires_grad_()
    soft_targets(logits, data["teacher"], data["mask"], temperature).mean().backward()
    sizes.append(logits.grad.norm().item())
print(f"{'with the factor':28}" + "".join(f"{size:10.4f}" for size in sizes))
print(
    f"{'without':28}"
    + "".join(f"{size / t**2:10.4f}" for size, t in zip(sizes, (1, 2, 4, 8, 16)))
)

print(f"\n{'Search, other words':28}" + "".join(f"{n:>10}" for n in (0, 5, 20, 80)))
queries, noise = normal(60, (100, 3, 16), (100, 3, 16))
found = {"MaxSim": [], "one vector": []}
for number in (0, 5, 20, 80):
    others = normal(61, (100, number, 16))[0]
    documents = torch.nn.functional.normalize(
        torch.cat([others, queries + 0.7 * noise], 1), dim=2
    )
    unit = torch.nn.functional.normalize(queries, dim=2)
    masks = [torch.ones(part.shape[:2], device=device) > 0 for part in (unit, documents)]
    tables = {
        "MaxSim": maxsim(unit, documents, *masks)[0],
        "one vector": torch.nn.functional.normalize(unit.mean(1), dim=1)
        @ torch.nn.functional.normalize(documents.mean(1), dim=1).T,
    }
    for name, table in tables.items():
        right = table.argmax(1) == torch.arange(100, device=device)
        found[name].append(right.double().mean().item())
for name, shares in found.items():
    print(f"{name:28}" + "".join(f"{share:10.2f}" for share in shares))

chance, V = random.Random(70), 40
answers = [
    [chance.randrange(9, V) for _ in range(length)] for length in (1, 2, 2, 3, 3, 4, 5, 6)
]
base = normal(71, (V, V))[0]


def hinting(ids):
    """Next-token logits: a table by the last token, and more for the tokens of the answer that the prompt hints at."""
    logits = base[ids]
    for row, first in enumerate(ids[:, 0].tolist()):
        if first < 8:
            logits[row, :, sorted({*answers[first]})] += 1.0
    return logits


prompts = [(a, [a, chance.randrange(9, V)]) for a in range(8) for _ in range(50)]
tables, mask = zip(*(answer_log_probs(hinting, prompt, answers, 0) for _, prompt in prompts))
empty, _ = answer_log_probs(hinting, [8], answers, 0)
gold = tensor([a for a, _ in prompts])
print(f"\n{'Answers':28}{'right':>10}{'tokens':>10}")
for name, alpha, prior in (
    ("the sum", 0.0, None),
    ("the mean", 1.0, None),
    ("the sum, less the prior", 0.0, empty),
    ("the mean, less the prior", 1.0, empty),
):
    best, _ = choose_answer(torch.stack(tables), mask[0], alpha, prior)
    right = (best == gold).double().mean().item()
    print(f"{name:28}{right:10.2f}{mask[0].sum(1)[best].double().mean().item():10.2f}")

# %% [markdown]
# ## Part 5 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# T5 reads a text in which *marks* stand for missing spans, and writes each mark again with the span behind it (Raffel et al.
# 2020, section 3.1.4). Put the spans back, and the text is whole. But a model may forget a mark, repeat it or make one up.
# Somebody, or something, wrote `fill_in(read, written, marks, end, longest)`, which takes what comes. You do not see its
# code. Write `check_fill_in(implementation)`, which raises an error if an implementation is wrong and returns nothing if it
# is right. This is what a right one does:
#
# * `read` and `written` are lists of ids, what the model read and what it wrote. An id is an int of at least 0. `marks` is a
#   list of the ids that are marks, in any order, each once. `end`, the id that ends what a model writes, is none of them.
#   `longest` is an int. Any list may be empty.
# * From the first `end` on, nothing in `written` counts. There may be no `end`.
# * In what is left, a mark begins a span: the ids behind it, up to the next mark, whichever that is, or up to where `written`
#   ends. A span may be empty. What stands before the first mark belongs to no span.
# * If a mark was written more than once, its first span counts, and the others are dropped. So is the span of a mark that
#   `read` does not have.
# * Of each span the first `longest` ids count, and the others are dropped.
# * In `read`, every mark that was written is replaced by its span, in whichever order they were written. A mark that was not
#   written stays. In `read`, `end` is an id like any other.
# * It returns `(text, new, missing)`, three lists: the ids of the whole text; for each of them a bool, True if it was written
#   and False if it was read; and the marks in `read` that were not written, in the order of `read`.
# * A mark that `read` has more than once raises a ValueError, and so does a `longest` below 0.
# * The lists that it is given stay as they are, and an answer depends on no earlier call.
#
# For example, read [5, 90, 6, 91], written [90, 7, 8, 92, 1], marks [90, 91, 92], end 1 and longest 9 give text [5, 7, 8, 6,
# 91], new [False, True, True, False, False] and missing [91].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_fill_in(implementation):
    """Raise an error if an implementation of `fill_in` is wrong; return nothing if it is right."""
    ### BEGIN SOLUTION
    marks = [92, 90, 93, 91]  # the end is 1
    cases = [  # read, written, longest, the text with what is new in brackets, what is missing
        ([5, 90, 6, 91], [91, 0, 7, 90, 8, 1, 9], 9, [5, [8], 6, [0, 7]], []),
        ([91, 5, 90, 92], [90, 6, 93, 7, 90, 8], 9, [91, 5, [6], 92], [91, 92]),
        ([0, 92, 90], [4, 92, 90, 3, 92, 8], 9, [0, [], [3]], []),
        ([91, 90, 1, 96], [90, 3, 96, 1, 91, 7, 1], 9, [91, [3, 96], 1, 96], [91]),
        ([90, 5, 91, 5], [90, 2, 3, 4, 91, 6, 7], 2, [[2, 3], 5, [6, 7], 5], []),
        ([90, 5], [90, 2], 0, [[], 5], []),
        ([5, 91], [], 3, [5, 91], [91]),
        ([], [90, 2], 3, [], []),
    ]
    for read, written, longest, parts, lost in cases:
        given = read[:], written[:], marks[:]
        text, new, missing = implementation(*given, 1, longest)
        assert given == (read, written, marks)
        parts = [(part, True) if isinstance(part, list) else ([part], False) for part in parts]
        assert text == [token for part, _ in parts for token in part]
        assert new == [flag for part, flag in parts for _ in part]
        assert missing == lost
    assert list(implementation([5, 90], [90, 2], [], 1, 3)) == [[5, 90], [False] * 2, []]
    for read, longest in (([90, 5, 90], 3), ([90, 5], -1)):
        try:
            implementation(read, [90, 2], marks, 1, longest)
        except ValueError:
            continue
        raise AssertionError("a ValueError is missing")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_fill_in}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_fill_in hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · In your own words ({points:explain} points)
#
# Look at what the last cell of Part 4 printed. Then write at most 200 words:
#
# 1. Compare the students with $w = 0$ and $w = 1$; cite their four distances. Both have read the same stories. What does
#    the one know that the other does not, and why does it know even pairs that no story tells of?
# 2. Somebody trains with $w = 0.5$ at temperature 16 and forgets the factor. Cite the two numbers of the table that say what
#    happens, and say what the student learns from then.
# 3. Compare *MaxSim* and *one vector* as documents grow; cite numbers. Why does the one suffer and the other hardly, and what
#    does MaxSim cost?
# 4. Look at *Answers*. What is wrong with the sum, and what does the prior repair that the mean does not?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * The four distances are cited, with a reason for the difference and one for the unseen pairs.
# * Both numbers are cited, and you say which part of the loss is left.
# * Numbers are cited, with a reason on each side and a price.
# * You tell apart what the mean and what the prior corrects, with numbers.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It cites the four distances, says that a label is one draw while the teacher gives all 16 probabilities of an event, and that
#   the student's form puts together what it knows of an animal and of a place, so that pairs need not be read.
# * It cites the gradients at temperature 16 with and without the factor, about 250 times apart, and says that the soft loss
#   hardly counts then, so that the student learns from the labels alone.
# * It cites numbers, says that in a mean each word of the query has a smaller share the longer the document is, while a
#   maximum finds it wherever it stands, and that a vector for each token must be kept and compared.
# * It says that the sum prefers short answers, that the mean corrects the length alone, and that the prior takes away how
#   likely an answer is whatever was asked, its length among the reasons; with numbers.
#
# **All of it:**
#
# (Go by what the student's own cell printed; numbers differ a little between machines.)
#
# With w = 0 the student is 0.00 nats from the teacher on pairs in the stories and 0.00 on others; with w = 1 it is 3.17 and
# 3.74, farther than untrained. For each event the label is one draw, and the teacher says how likely all 16 things are. The
# student adds numbers of the animal and of the place, so it needs each of these, not each pair. Without the factor the gradient at
# temperature 16 is 0.0003 instead of 0.07, so the soft loss hardly counts beside the hard one, and the student learns the
# labels by heart. One vector finds nearly all documents without other words and a few per cent with 80: the three words that matter are
# three of 83 in the mean. The maximum passes the others by. For that, MaxSim keeps a vector for each token, and
# computes all products. The sum always chooses the answer of one token. The mean corrects the length, and is right in
# 0.56; less the prior, the sum is right in 0.67, because the prior also takes away that some words are likely after anything.
#
# **Two of four:** The student with w = 0 is at 0.00 and 0.00, the one with w = 1 at 3.17 and 3.74. The teacher gives the
# probabilities of all things for each event and the labels only one, and a place that was read with one animal helps with
# another. MaxSim finds nearly all documents, one vector only 0.04 of them with 80 other words, since the mean mixes everything; but
# MaxSim has to store all tokens. Without the factor the temperature is wrong. The mean is better than the sum.
#
# **None of it:** The student with w = 0 is better because the soft loss is better than the hard one. The factor is needed by
# the formula. MaxSim is more exact than one vector. The mean is better than the sum because it is normalised.
# ### END SOLUTION
