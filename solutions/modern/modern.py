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
#   # Longer than 400 lines because an assignment is one notebook: eight parts, each with its prose, skeleton and tests.
#   course:
#     chapter: encoders-today
#     seconds: 60
#     withholds:
#       - course_lib.modern
#       - course_lib.metrics.ranking
#       - course_lib.sentence_bert.losses
#       - torch.nn.GELU
#       - torch.nn.functional.gelu
# ---

# %% [markdown]
# # Assignment 9 · The parts of an encoder of today
#
# A modern encoder differs from BERT in a handful of formulas. It rotates queries and keys instead of adding positions, lets a gate
# decide which features pass, and looks at near tokens only. Then it is trained on pairs, adapted with thin matrices, and
# judged by a ranking. Each of these fits into ten lines, and in each there is something to get wrong that raises no error:
# a sentence that sees its neighbour, a false negative, an adapter that one text borrows from another.
#
# You write these formulas. At the end they work together: you adapt a frozen encoder and see how its rankings change.
#
# You need chapter 11 of the book, PyTorch, and about three hours. There are {points:total} points. No GPU is needed; if there
# is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge cases. Do not change,
# copy or delete the test cells. You may add cells of your own. Before you hand in, restart the kernel and run everything from the
# top. In a terminal, `course check modern.ipynb` tells you what is amiss.
#
# **What you may use.** Everything in PyTorch except what you build here. Withheld are: {withholds}. Read each task
# with care: its function is not quite the one of the book.
#
# **Letters for shapes.** B: sentences, or texts, or queries of a batch. T: tokens. S: tokens that are looked at. H: heads. D: features.
# F: features inside a feed-forward layer. E: features that come out of a layer. N: documents. Q: queries. A: adapters. r: rank of an adapter.
#
# **Rules for all functions.** Arguments stay as they are. Results have the dtype of the floats that come in. Gradients reach all floats
# that go into a float result, unless it moves in steps, as nDCG does, or the task says otherwise.

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


# {source:course_tools.grading.assignments.student_checks.tensor}


# {source:course_tools.grading.assignments.student_checks.normal}


def check_kept(before, after, what):
    """Refuse a function that has changed its arguments."""
    for old, new in zip(before, after):
        assert old.equal(new), (
            f"{what} must leave its arguments as they are; yours changes one."
        )


def turn_all(vectors, positions, base):
    """Vectors [B, T, D] turned at T positions, pairs of neighbours as complex numbers."""
    D = vectors.shape[-1]
    powers = base ** (-torch.arange(0, D, 2, device=device, dtype=torch.float64) / D)
    angle = tensor(positions)[:, None] * powers
    pairs = torch.view_as_complex(vectors.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


# %% [markdown]
# ## Part 1 · Rotary positions ({points:rotary} points)
#
# **Question: how can a product of two vectors know how far apart they stand?**
#
# The features of a query or a key are taken in pairs of **neighbours**, $(x_0, x_1), (x_2, x_3), \dots$, and each pair is turned by an angle
# that grows with the position $k$ (Su et al. 2021, equation 15):
#
# $$\begin{pmatrix} a \\ b \end{pmatrix} \mapsto
# \begin{pmatrix} a \cos k\theta_i - b \sin k\theta_i \\ a \sin k\theta_i + b \cos k\theta_i \end{pmatrix}, \qquad
# \theta_i = n^{-2i/R}, \quad i = 0, 1, \dots, R/2 - 1$$
#
# where $n$ is the `base`. Only the first $R$ features are turned (GPT-NeoX does so), and the others stay as they are, so that a head can also compare
# what does not depend on positions.
#
# The positions are given, one for each token: several sentences may stand in one row, and each of them begins at 0. A position
# may be in the millions, where an angle in float32 is off by more than a degree. So compute the angles, their sines and their
# cosines in float64.


# %% nbgrader={"grade": false, "grade_id": "turn", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rotate(vectors, positions, base=10000.0, features=None):
    """Turn pairs of neighbouring features by angles that grow with the position.

    vectors:   float [B, H, T, D], queries or keys of H heads
    positions: int64 [B, T], at least 0
    base:      a Python float above 1
    features:  how many features R are turned, an even number from 2 to D; None: all D, which is even then
    returns float [B, H, T, D]

    Example: vectors [[[[1., 0., 7.]]]], positions [[1]], features 2
             -> [[[[cos 1, sin 1, 7.]]]] = [[[[0.5403, 0.8415, 7.]]]]
    """
    ### BEGIN SOLUTION
    R = vectors.shape[-1] if features is None else features
    step = torch.arange(0, R, 2, device=vectors.device, dtype=torch.float64)
    angles = positions[:, None, :, None] * base ** (-step / R)  # [B, 1, T, R/2]
    cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
    a, b = vectors[..., 0:R:2], vectors[..., 1:R:2]  # [B, H, T, R/2]
    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)
    return torch.cat([turned.flatten(-2), vectors[..., R:]], dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "rotary-values", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("rotate")


def turned_singly(vectors, angle):
    """Each pair of neighbours multiplied by its own matrix; angle is a function of the position and the pair's number."""
    wanted = vectors.clone()
    for i in range(vectors.shape[-1] // 2):
        turn = tensor(
            [
                [
                    [[math.cos(x), -math.sin(x)], [math.sin(x), math.cos(x)]]
                    for x in (angle(k, i) for k in row)
                ]
                for row in PLACES
            ],
            dtype=torch.float64,
        )
        wanted[..., 2 * i : 2 * i + 2] = torch.einsum(
            "btxy,bhty->bhtx", turn, vectors[..., 2 * i : 2 * i + 2]
        )
    return wanted


PLACES = [[0, 1, 2, 3, 4], [0, 1, 0, 1, 7]]


def check_rotate(seed, H, D, what, base=10000.0, R=None):
    (vectors,) = normal(seed, (len(PLACES), H, len(PLACES[0]), D))
    r = R or D
    given = ({} if base == 10000.0 else {"base": base}) | ({} if R is None else {"features": R})
    singly = lambda angle: torch.cat(
        [turned_singly(vectors[..., :r], angle), vectors[..., r:]], -1
    )
    halves = torch.stack([vectors[..., : r // 2], vectors[..., r // 2 : r]], -1).flatten(-2)
    other = turned_singly(halves, lambda k, i: k * base ** (-2 * i / r))
    other = torch.cat([other[..., 0::2], other[..., 1::2], vectors[..., r:]], -1)
    check_close(
        rotate(vectors, tensor(PLACES), **given),
        singly(lambda k, i: k * base ** (-2 * i / r)),
        f"{what}, the table of turned vectors",
        "Pair i is turned by k times n to the power -2i/R.",
        slips=(
            (other, "Neighbours are a pair, 0 and 1, 2 and 3; yours pairs the two halves."),
            (
                singly(lambda k, i: -k * base ** (-2 * i / r)),
                "Yours turns the other way round.",
            ),
            (
                singly(lambda k, i: (k + 1) * base ** (-2 * i / r)),
                "The position is k, not k + 1.",
            ),
            (singly(lambda k, i: k * base ** (-i / r)), "The exponent is -2i/R: mind the 2."),
            (singly(lambda k, i: k * base ** (2 * i / r)), "The exponent is negative."),
            (singly(lambda k, i: k * base ** (-2 * i / D)), "Divide 2i by R, not by D."),
            (singly(lambda k, i: k * 10000.0 ** (-2 * i / r)), "Use the base that is given."),
            (
                turned_singly(vectors, lambda k, i: k * base ** (-2 * i / D)),
                "Turn the first R features alone.",
            ),
            (vectors, "Nothing is turned."),
        ),
    )


check_rotate(1, 3, 8, "For 8 features")
check_rotate(2, 1, 6, "For base 50", base=50.0)
check_rotate(3, 3, 11, "For 6 of 11 features", R=6)
### BEGIN HIDDEN TESTS
# {compare:rotate}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "rotary-edges", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("rotate")
queries, keys = normal(4, (1, 2, 3, 10), (1, 2, 3, 10))
given, near = queries.clone(), tensor([[0, 4, 9]])
far = rotate(queries.float(), near + 5_000_000)
check_close(
    far,
    turn_all(queries[0], [5_000_000, 5_000_004, 5_000_009], 10000.0)[None].float(),
    "In float32, at positions above 5 million, a turned vector",
    "Compute angles, sines and cosines in float64.",
    1e-4,
)
rotate(given, near)
check_kept([given], [queries], "rotate")
products = [
    (rotate(queries, near + shift) * rotate(keys, near.flip(1) + shift)).sum(-1)
    for shift in (0, 1000)
]
check_close(
    products[1],
    products[0],
    "The product of a turned query and a turned key, 1000 positions later,",
    "It depends on the distance alone: all pairs turn by one more angle.",
    1e-6,
)
### BEGIN HIDDEN TESTS
# {compare:rotate_edges}
### END HIDDEN TESTS

# %% [markdown]
# Two vectors that are turned by $k\theta$ and by $l\theta$ have a product that depends on $l - k$ alone. **Prove it**: compute this product for each
# query and each key from the distance $\Delta = l - k$, without any position. Write the product of a query's pair $(a, b)$ with a
# key's pair $(c, d)$ as a sum of two terms, one with $\cos \Delta\theta_i$ and one with $\sin \Delta\theta_i$, and add up over the pairs. All $D$
# features are turned. The tests turn queries and keys at many positions and compare.


# %% nbgrader={"grade": false, "grade_id": "distance", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scores_by_distance(queries, keys, distance, base=10000.0):
    """The products of turned queries and turned keys, from their distances.

    queries:  float [B, T, D], not turned, D even
    keys:     float [B, S, D], not turned
    distance: int64 [T, S], the position of the key minus the position of the query, may be negative
    base:     a Python float above 1
    returns float [B, T, S], not divided by anything; angles are in float64, as in `rotate`

    Example: queries [[[1., 0.]]], keys [[[0., 1.]]], distance [[1]] -> [[[-sin 1]]] = [[[-0.8415]]]
    """
    ### BEGIN SOLUTION
    D = queries.shape[-1]
    step = torch.arange(0, D, 2, device=queries.device, dtype=torch.float64)
    angles = distance[..., None] * base ** (-step / D)  # [T, S, D/2]
    cosine, sine = angles.cos().to(queries.dtype), angles.sin().to(queries.dtype)
    a, b = queries[:, :, None, 0::2], queries[:, :, None, 1::2]  # [B, T, 1, D/2]
    c, d = keys[:, None, :, 0::2], keys[:, None, :, 1::2]  # [B, 1, S, D/2]
    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "rotary-shift", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("scores_by_distance")


def check_distance(seed, B, D, asked, seen, what, **base):
    queries, keys = normal(seed, (B, len(asked), D), (B, len(seen), D))
    n = base.get("base", 10000.0)
    product = lambda p, q: turn_all(queries, p, n) @ turn_all(keys, q, n).transpose(1, 2)
    got = scores_by_distance(queries, keys, tensor(seen) - tensor(asked)[:, None], **base)
    check_close(
        got,
        product(asked, seen),
        f"{what}, the table of scores",
        "(a c + b d) cos + (b c - a d) sin, added up over the pairs.",
        slips=(
            (
                product([-p for p in asked], [-p for p in seen]),
                "The sign of the term with the sine is wrong: a d counts negative.",
            ),
            (product([0] * len(asked), [0] * len(seen)), "The distances are not in it."),
            (product(asked, seen) / math.sqrt(D), "Do not divide by the root of D."),
            (product(asked, seen) / (D // 2), "Add up over the pairs; yours is the mean."),
        ),
    )


check_distance(5, 2, 6, [3, 0, 7, 8], [0, 1, 2], "For 4 queries and 3 keys")
check_distance(6, 1, 10, [1000, 1003], [1000, 1001, 1009], "For base 70", base=70.0)
### BEGIN HIDDEN TESTS
# {compare:scores_by_distance}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · GeGLU ({points:geglu} points)
#
# **Question: what does a gate let through?**
#
# The first linear map gives two numbers for each of the $F$ features between: $z$, which opens the gate, and $v$, which wants to pass (Shazeer 2020,
# equation 6):
#
# $$y = W_2 \, \bigl( z \, \Phi(z) \odot v \bigr)$$
#
# $\Phi(z)$ is the share of a standard normal distribution that lies below $z$, and $z \, \Phi(z)$ is the exact GELU. Return $y$ and also
# $\Phi(z)$, which says how far each gate is open.
#
# * Rows of `weight` alternate: row $2i$ gives $z_i$, and row $2i + 1$ gives $v_i$. There are no biases.
# * A gate that is nearly shut is not shut: $\Phi(-8)$ is $6.2 \cdot 10^{-16}$. The sum of 1 and a number next to -1 has lost all its digits by then,
#   so find a way without this sum. (`torch.special.ndtr` and `torch.distributions` compute it by this sum.)


# %% nbgrader={"grade": false, "grade_id": "gate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def geglu(hidden, weight, output):
    """A feed-forward layer with gates.

    hidden: float [B, T, D]
    weight: float [2F, D], rows for z and v in turn
    output: float [D, F], the W_2
    returns (states, open): float [B, T, D], and float [B, T, F], how far each gate is open

    Example: hidden [[[2.]]], weight [[1.], [3.]], output [[10.]]
             -> z = 2, v = 6, open [[[0.9772]]], states [[[117.27]]]
    """
    ### BEGIN SOLUTION
    z, v = hidden @ weight[0::2].T, hidden @ weight[1::2].T  # [B, T, F]
    open = 0.5 * torch.erfc(-z / math.sqrt(2))
    return (z * open * v) @ output.T, open
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "geglu-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("geglu")


def check_geglu(seed, B, T, D, F, what):
    hidden, weight, output = normal(seed, (B, T, D), (2 * F, D), (D, F))
    z, v = (torch.einsum("btd,fd->btf", hidden, weight[row::2]) for row in (0, 1))
    half = torch.einsum("btd,fd->btf", hidden, weight[:F])
    phi = lambda x: torch.distributions.Normal(0.0, 1.0).cdf(x)
    out = lambda x: torch.einsum("btf,df->btd", x, output)
    got = check_pair(geglu(hidden, weight, output), "geglu must return (states, open)")
    states, open = got
    check_shape(open, [B, T, F], f"{what}, the table of gates", "One number for each feature.")
    check_close(
        open,
        phi(z),
        f"{what}, the table of gates",
        "The normal distribution's share below z.",
        slips=(
            (phi(v), "Row 0 gives z and row 1 gives v; yours takes them the other way round."),
            (
                phi(half),
                "Rows alternate: 2i gives z, 2i + 1 gives v; yours takes the two halves.",
            ),
            (z.sigmoid(), "That is the logistic function; it is the normal distribution's."),
            (
                (1.702 * z).sigmoid(),
                "That is an approximation of the normal distribution's share.",
            ),
            (z * phi(z), "The gate is Phi(z); z times it is the GELU."),
            (1 - phi(z), "The share below z; yours is the share above."),
        ),
    )
    check_shape(states, [B, T, D], f"{what}, the table of states")
    check_close(
        states,
        out(z * phi(z) * v),
        f"{what}, the table of states",
        "z Phi(z) times v, then the output's matrix.",
        slips=(
            (out(phi(z) * v), "z is missing: GELU is z Phi(z)."),
            (out(z * phi(z)), "v is missing."),
            (out(z * phi(z) + v), "Multiply by v; yours adds it."),
            (out(v * phi(v) * z), "GELU is of z, not of v."),
            (out(z.relu() * v), "That is a ReLU."),
        ),
    )


check_geglu(7, 2, 3, 5, 7, "For 5 features, 7 between")
check_close(
    geglu(tensor([[[2.0]]]), tensor([[1.0], [3.0]]), tensor([[10.0]]))[0],
    tensor([[[117.27]]]),
    "The example's state",
    "z Phi(z) v = 2 * 0.9772 * 6.",
    1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:geglu}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "geglu-edges", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("geglu")
for dtype in (torch.float64, torch.float32):
    hidden, weight = tensor([[[-1.0], [1.0]]], dtype), tensor([[8.0], [1.0]], dtype)
    _, open = geglu(hidden, weight, tensor([[1.0]], dtype))
    check_shape(open, [1, 2, 1], "For z of -8 and 8, the table of gates")
    assert alike(open[0, 0] * 1e16, torch.full_like(open[0, 0], 6.220960574), 1e-3).all(), (
        f"For z = -8 in {dtype}, a gate is open by 6.2e-16; yours by {open[0, 0].item():.3g}. "
        "1 plus a number next to -1 has no digits left: is there a function that gives the share directly?"
    )
    assert alike(open[0, 1], torch.ones_like(open[0, 1]), 1e-6).all(), (
        f"For z = 8, a gate is all but open; yours is {open[0, 1].item()}."
    )
### BEGIN HIDDEN TESTS
# {compare:geglu_edges}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · A local mask for joined sentences ({points:mask} points)
#
# **Question: who may look at whom?**
#
# In a layer with local attention a token sees its neighbours (Warner et al. 2024, section 2.1.2). Sentences are joined in one row, so that
# little is padded. For each token you are given the number of its sentence, or -1 for padding. Token $i$ may see token $j$
#
# * if both belong to the same sentence, and are **at most `reach` positions apart**,
# * or if both belong to the same sentence, and one of them is **the first token** of it: [CLS] sees its whole sentence and is seen by all of it
#   (Beltagy et al. 2020 call this global attention),
# * or if $i = j$. So padding sees itself alone, and no row of a softmax is empty.
#
# If `reach` is None, the layer is a global one: each token sees its whole sentence, and no other.
#
# The tokens of a sentence stand next to each other, and no two sentences of a row have the same number. Padding may stand anywhere
# but inside a sentence.


# %% nbgrader={"grade": false, "grade_id": "near", "locked": false, "schema_version": 3, "solution": true, "task": false}
def local_mask(sentences, reach=None):
    """Say which token may see which.

    sentences: int64 [B, T], the number of each token's sentence, at least 0, or -1 = padding
    reach:     how many positions a token sees on each side, at least 0; None = its whole sentence
    returns bool [B, T, T]: True at [b, i, j] if token i may see token j, on the device of sentences

    Example: sentences [[4, 4, 4, 4, -1]], reach 1
             -> [[1, 1, 1, 1, 0],
                 [1, 1, 1, 0, 0],
                 [1, 1, 1, 1, 0],
                 [1, 0, 1, 1, 0],
                 [0, 0, 0, 0, 1]] as True and False, in a batch of one
    """
    ### BEGIN SOLUTION
    place = torch.arange(sentences.shape[1], device=sentences.device)
    apart = (place[:, None] - place).abs()  # [T, T]
    first = torch.ones_like(sentences, dtype=torch.bool)
    first[:, 1:] = sentences[:, 1:] != sentences[:, :-1]
    same = (sentences[:, :, None] == sentences[:, None]) & (sentences >= 0)[:, :, None]
    if reach is not None:
        same = same & ((apart <= reach) | first[:, :, None] | first[:, None])
    return same | (apart == 0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "mask-local", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("local_mask")


def check_mask(rows, reach, what):
    def table(same_alone=True, cls=True, reach=reach, padding=True, firsts=True):
        wanted = torch.zeros(len(rows), len(rows[0]), len(rows[0]), device=device) > 0
        for b, row in enumerate(rows):
            for i, mine in enumerate(row):
                for j, other in enumerate(row):
                    same = (mine == other and (mine >= 0 or not padding)) or not same_alone
                    begin = row.index(mine), row.index(other)
                    global_ = cls and (i == begin[0] or (firsts and j == begin[1]))
                    near = reach is None or abs(i - j) <= reach or global_
                    wanted[b, i, j] = (same and near) or i == j
        return wanted

    got = local_mask(tensor(rows), **({} if reach is None else {"reach": reach}))
    check_shape(got, [len(rows), len(rows[0]), len(rows[0])], f"{what}, the mask")
    assert got.dtype == torch.bool, f"{what}, the mask must be bool; yours is {got.dtype}."
    slips = [
        (table(same_alone=False), "A token sees its own sentence alone."),
        (
            table(cls=False),
            "The first token sees its whole sentence, and all of it sees the first.",
        ),
        (table(firsts=False), "All tokens of a sentence see its first one, too."),
        (table(firsts=False).transpose(1, 2), "The first token sees its whole sentence, too."),
        (table(padding=False), "Padding sees itself alone."),
        (table() & ~torch.eye(len(rows[0]), device=device).bool(), "Each token sees itself."),
        (~table(), "True means: may see."),
    ]
    if reach is not None:
        slips += [
            (table(reach=reach // 2), "`reach` counts on each side; yours halves it."),
            (table(reach=reach - 1), "At most `reach` apart; yours ends one before."),
            (table(reach=reach + 1), "At most `reach` apart; yours goes one further."),
            (table(reach=None), "The mask does not end at `reach`."),
        ]
    check_close(
        got, table(), f"{what}, the mask", "Read the three lines of the task.", slips=slips
    )


check_mask(
    [[0] * 7 + [1] * 4 + [-1] * 2, [-1] * 2 + [5] * 3 + [2] * 8], 3, "For joined sentences"
)
check_mask([[4, 4, 4, 4, -1]], 1, "For the example")
check_mask([[3] * 4 + [-1, -1] + [7] * 3], None, "For a global layer")
check_close(
    local_mask(tensor([[-1, 0, 0]]), 0),
    tensor([[[True, False, False], [False, True, True], [False, True, True]]]),
    "For a sentence of two tokens behind padding, the mask",
    "The first token of a sentence is not that of the row.",
)
### BEGIN HIDDEN TESTS
# {compare:local_mask}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · InfoNCE with what is known ({points:contrast} points)
#
# **Question: what does a query learn from documents that nobody has judged?**
#
# In a batch each query meets all documents. Of some it is known that they answer it, of others that they do not, and of the rest nobody knows:
# a mined "negative" may be a false one. The `relation` says 1, 0 or -1. A document with -1 is left out.
#
# With $s_{bd} = \cos(q_b, d) / \tau$, each right document $d$ of query $b$ competes with the wrong ones $\mathcal W_b$, and **not** with other right ones.
# The loss of the query is the mean over its right documents $\mathcal R_b$:
#
# $$\mathcal L_b = \frac{1}{|\mathcal R_b|} \sum_{d \in \mathcal R_b} - \ln
# \frac{e^{s_{bd}}}{e^{s_{bd}} + \sum_{w \in \mathcal W_b} e^{s_{bw}}}$$
#
# Return also the **hardest** wrong document of each query: that with the largest cosine, and of equal ones the first; -1 if a query has no
# wrong document, and the loss of that query is 0. (Where rounding alone decides between two documents, either is right.)
#
# Each query has one right document at least. A temperature of 0.001 is legal, and $e^{1000}$ is infinite.


# %% nbgrader={"grade": false, "grade_id": "contrast", "locked": false, "schema_version": 3, "solution": true, "task": false}
def info_nce(queries, documents, relation, temperature=0.05):
    """The loss of each query, and its hardest wrong document.

    queries:     float [B, D], none of them 0
    documents:   float [N, D], none of them 0
    relation:    int64 [B, N]: 1 = answers the query, 0 = does not, -1 = nobody knows
    temperature: a Python float above 0
    returns (losses, hardest): float [B], and int64 [B]

    Example: queries [[2., 0.]], documents [[3., 0.], [0., 1.], [5., 0.]], relation [[1, 0, -1]], temperature 1.0
             -> losses [ln(1 + 1/e)] = [0.3133], hardest [1]
    """
    ### BEGIN SOLUTION
    queries = queries / queries.norm(dim=1, keepdim=True)
    documents = documents / documents.norm(dim=1, keepdim=True)
    cosines = queries @ documents.T  # [B, N]
    wrong, right = relation == 0, relation == 1
    against = (cosines / temperature).masked_fill(~wrong, -torch.inf).logsumexp(dim=1)  # [B]
    losses = torch.nn.functional.softplus(against[:, None] - cosines / temperature)
    losses = losses.masked_fill(~right, 0).sum(dim=1) / right.sum(dim=1)
    hardest = cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)
    return losses, hardest.masked_fill(~wrong.any(dim=1), -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "contrast-losses", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("info_nce")


def check_contrast(seed, relation, D, what, temperature=None):
    B, N = len(relation), len(relation[0])
    queries, documents = normal(seed, (B, D), (N, D))
    t, related = 0.05 if temperature is None else temperature, tensor(relation)
    lengths = queries.norm(dim=1)[:, None] * documents.norm(dim=1)
    cosines = queries @ documents.T / lengths

    def mean(scores, pool=lambda row, d: (row == 0) | (d == torch.arange(N, device=device))):
        losses = []
        for row, score in zip(related, scores):
            of = [
                torch.logsumexp(score[pool(row, d)], 0) - score[d]
                for d in (row == 1).nonzero()[:, 0].tolist()
            ]
            losses.append(torch.stack(of).mean())
        return torch.stack(losses)

    wanted = mean(cosines / t)
    given = {} if temperature is None else {"temperature": temperature}
    got = info_nce(queries, documents, related, **given)
    losses, hardest = check_pair(got, "info_nce must return (losses, hardest)")
    check_shape(losses, [B], f"{what}, the row of losses", "It is one number for each query.")
    count = (related == 1).sum(1)
    check_close(
        losses,
        wanted,
        f"{what}, the row of losses",
        "For each right document minus the logarithm of its share, then the mean.",
        slips=(
            (
                mean(
                    cosines / t,
                    lambda row, d: (row != 1) | (d == torch.arange(N, device=device)),
                ),
                "Documents with -1 are left out.",
            ),
            (mean(cosines / t, lambda row, d: row >= 0), "Right documents do not compete."),
            (mean(queries @ documents.T / t), "Divide by the lengths: the score is a cosine."),
            (mean(cosines * t), "Divide by the temperature; yours multiplies."),
            (mean(cosines), "Divide by the temperature."),
            (mean(cosines / 0.05), "Use the temperature that is given."),
            (wanted * count, "Take the mean over the right documents; yours is the sum."),
            (wanted * count / N, "Divide by the number of right documents of each query."),
            (
                wanted * count / count.sum() * B,
                "Divide by the number of right documents of each query, not by the batch's.",
            ),
            (
                mean(cosines / t, lambda row, d: row == 0),
                "The right document itself stands below the line, too.",
            ),
            (-wanted, "The loss is minus the logarithm."),
        ),
    )
    best = cosines.masked_fill(related != 0, -torch.inf).argmax(1)
    check_close(
        hardest,
        best.masked_fill(~(related == 0).any(1), -1),
        f"{what}, the row of the hardest",
        "The wrong document with the largest cosine, -1 if there is none.",
        slips=(
            (cosines.argmax(1), "It is a wrong document, with relation 0."),
            (
                cosines.masked_fill(related == 1, -torch.inf).argmax(1),
                "Documents with -1 are left out.",
            ),
        ),
    )


check_contrast(
    8, [[1, 0, 0, -1, 1, 0, 0], [0, -1, 1, 0, 0, 1, 1]], 5, "For 2 queries, 7 documents"
)
check_contrast(
    9,
    [[1, 0, -1, 0], [-1, 1, 0, 0], [0, 0, 1, 0], [0, -1, 0, 1], [1, 1, 0, 1]],
    3,
    "For temperature 0.3",
    0.3,
)
check_close(
    info_nce(
        tensor([[2.0, 0.0]]),
        tensor([[3.0, 0.0], [0.0, 1.0], [5.0, 0.0]]),
        tensor([[1, 0, -1]]),
        1.0,
    )[0],
    tensor([0.3133]),
    "The example's loss",
    "ln(1 + 1/e).",
    1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:info_nce}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "contrast-edges", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("info_nce")
queries, documents = normal(10, (3, 6), (5, 6))
related = tensor([[1, 0, 0, 0, -1], [-1, 1, 1, -1, -1], [0, 0, 0, 0, 1]])
queries.requires_grad_(), documents.requires_grad_()
losses, hardest = info_nce(queries, documents, related, 0.001)
check_shape(losses, [3], "For temperature 0.001, the row of losses")
assert losses.isfinite().all(), (
    f"For temperature 0.001, the losses are {losses.tolist()}. e to the power 1000 is infinite: "
    "take logarithms of sums without computing the sums."
)
assert losses[1].item() == 0 and hardest[1].item() == -1, (
    "A query without wrong documents has the loss 0 and the hardest -1; "
    f"yours are {losses[1].item()} and {hardest[1].item()}."
)
losses.sum().backward()
for leaf, name in ((queries, "queries"), (documents, "documents")):
    assert leaf.grad is not None and leaf.grad.isfinite().all() and leaf.grad.any(), (
        f"A gradient must reach the {name}, and it must be finite. Do you detach them, or compute "
        "with infinity on the way?"
    )
### BEGIN HIDDEN TESTS
# {compare:info_nce_edges}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · LoRA for many tasks at once ({points:lora} points)
#
# **Question: how can one model serve a hundred tasks?**
#
# One large matrix $W$ is frozen and shared. Each task $a$ has an adapter of its own, two thin matrices $A_a$ and $B_a$ (Hu et al. 2022, section 4.1).
# In one batch each text asks for the adapter of its task:
#
# $$y_b = x_b W^\top + \text{bias} + \frac{\alpha}{r} \, x_b A_{a(b)}^\top B_{a(b)}^\top$$
#
# * A text with adapter -1 asks for none.
# * $W$ and the bias are frozen: no gradient reaches them. The text's features and the adapters get theirs.
# * What an adapter holds must not matter to texts that do not ask for it, neither for a result nor for a gradient, even if it is `nan`.
# * If `alpha` is None, it is $r$.


# %% nbgrader={"grade": false, "grade_id": "adapt", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    """A frozen linear layer, with an adapter for each text.

    hidden:  float [B, T, D]
    weight:  float [E, D]       bias: float [E], or None
    down:    float [A, r, D]    up:   float [A, E, r], A at least 1
    adapter: int64 [B], which adapter each text asks for, or -1 = none
    alpha:   a Python number, or None = r
    returns float [B, T, E]

    Example: hidden [[[1., 2.]]], weight [[3., 0.]], bias None, down [[[0., 1.]]], up [[[5.]]], adapter [0], alpha 2
             -> 3 + 2/1 * 2 * 5 = [[[23.]]]
    """
    ### BEGIN SOLUTION
    rank = down.shape[1]
    scale = (rank if alpha is None else alpha) / rank
    none = (adapter < 0)[:, None, None]
    chosen = adapter.clamp(min=0)
    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)
    frozen = hidden @ weight.detach().T  # [B, T, E]
    if bias is not None:
        frozen = frozen + bias.detach()
    return frozen + scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "lora-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("lora")


def check_lora(seed, T, D, E, A, r, adapter, what, alpha=None, biased=True):
    B = len(adapter)
    hidden, weight, bias, down, up = normal(seed, (B, T, D), (E, D), (E,), (A, r, D), (A, E, r))
    scale = 1.0 if alpha is None else alpha / r

    def result(scale=scale, of=lambda b: adapter[b], bias=bias if biased else 0.0, up=up):
        rows = [x @ weight.T + bias for x in hidden]
        for b, x in enumerate(hidden):
            if of(b) is not None:
                rows[b] = rows[b] + scale * (x @ down[of(b)].T @ up[of(b)].T)
        return torch.stack(rows)

    own = lambda b: adapter[b] if adapter[b] >= 0 else None
    given = {} if alpha is None else {"alpha": alpha}
    check_close(
        lora(hidden, weight, bias if biased else None, down, up, tensor(adapter), **given),
        result(of=own),
        f"{what}, the result",
        "The frozen layer, and alpha / r times the text's own adapter.",
        slips=(
            (result(), "A text with -1 asks for no adapter: index -1 is the last one."),
            (result(of=lambda b: max(adapter[b], 0)), "A text with -1 asks for no adapter."),
            (
                result(of=lambda b: None if adapter[b] < 0 else 0),
                "Each text has an adapter of its own.",
            ),
            (result(of=lambda b: None), "The adapters are not in it."),
            (result(of=own, bias=0.0), "The bias is missing."),
            (result(scale * r, own), "Divide alpha by the rank."),
            (result(1.0, own), "Multiply by alpha / r."),
            (result(1.0 / r, own), "If alpha is None, it is r."),
        ),
    )


check_lora(11, 3, 5, 7, 4, 2, [1, -1, 3, 0, 1, 2], "For 6 texts, 4 adapters")
check_lora(12, 2, 6, 3, 2, 4, [1, 0, -1], "For alpha 6", 6, biased=False)
example = tensor([[[1.0, 2.0]]]), tensor([[3.0, 0.0]]), None, tensor([[[0.0, 1.0]]])
check_close(
    lora(*example, tensor([[[5.0]]]), tensor([0]), 2),
    tensor([[[23.0]]]),
    "The example's result",
    "3 + 2/1 * 2 * 5.",
)
### BEGIN HIDDEN TESTS
# {compare:lora}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "lora-gradients", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("lora")
given = [t.requires_grad_() for t in normal(13, (4, 3, 5), (7, 5), (7,), (3, 2, 5), (3, 7, 2))]
lora(*given, tensor([2, -1, 0, 2])).square().sum().backward()
for leaf, name in zip(given[1:3], ("weight", "bias")):
    assert leaf.grad is None or not leaf.grad.any(), (
        f"A gradient reaches the {name}, but it is frozen: detach it."
    )
for leaf, name in zip((given[0], *given[3:]), ("hidden", "down", "up")):
    assert leaf.grad is not None and leaf.grad.any(), (
        f"No gradient reaches {name}. Work with tensors all the way."
    )
for leaf, name in zip(given[3:], ("down", "up")):
    assert not leaf.grad[1].any(), (
        f"No text asks for adapter 1, but its {name} gets a gradient."
    )
### BEGIN HIDDEN TESTS
# {compare:lora_edges}
### END HIDDEN TESTS

# %% [markdown]
# A model that serves one task need not pay for its adapter: the product is added to the matrix once. **Several** adapters can be merged,
# each with a share $g_a$, and a negative share takes one out again:
#
# $$W' = W + \frac{\alpha}{r} \sum_a g_a \, B_a A_a$$
#
# The result is a tensor of its own, which is not trained: no gradient reaches anything, and $W$ stays as it is. It has the dtype of $W$; shares and
# adapters may be more precise than $W$, and then everything is computed in their precision and rounded **once**, at the end.


# %% nbgrader={"grade": false, "grade_id": "fold", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge(weight, down, up, shares, alpha=None):
    """Add adapters to a matrix.

    weight: float [E, D]
    down:   float [A, r, D]    up: float [A, E, r], A at least 1
    shares: float [A], of the dtype of down and up
    alpha:  a Python number, or None = r
    returns float [E, D], of the dtype of weight, without a gradient

    Example: weight [[3., 0.]], down [[[0., 1.]]], up [[[5.]]], shares [2.], alpha 0.5
             -> [[3, 0 + 0.5 * 2 * 5]] = [[3., 5.]]
    """
    ### BEGIN SOLUTION
    rank = down.shape[1]
    scale = (rank if alpha is None else alpha) / rank
    product = torch.einsum("a,aer,ard->ed", shares, up, down)
    return (weight + scale * product).to(weight.dtype).detach()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "lora-merge", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("merge")


def check_merge(seed, E, D, A, r, what, alpha=None):
    weight, down, up, shares = normal(seed, (E, D), (A, r, D), (A, E, r), (A,))
    scale, before = 1.0 if alpha is None else alpha / r, weight.clone()
    one = [up[a] @ down[a] for a in range(A)]
    wanted = weight + scale * sum(g * product for g, product in zip(shares, one))
    given = {} if alpha is None else {"alpha": alpha}
    got = merge(weight, down, up, shares, **given)
    check_close(
        got,
        wanted,
        f"{what}, the matrix",
        "W, and alpha / r times the sum of share, up and down of each adapter.",
        slips=(
            (weight + scale * sum(one), "Multiply each adapter by its share."),
            (weight + scale * shares[0] * one[0], "Add all adapters, not the first alone."),
            (weight + r * (wanted - weight), "Divide alpha by the rank."),
            (wanted - weight, "W itself is missing."),
            (
                weight + scale * sum(g * p for g, p in zip(shares.softmax(0), one)),
                "The shares are as they are given; yours are made to add up to 1.",
            ),
            (
                weight + scale * (shares[:, None, None] * up).sum(0) @ down.sum(0),
                "Multiply up and down of each adapter, then add; yours adds first.",
            ),
        ),
    )
    check_kept([before], [weight], "merge")
    assert not got.requires_grad
    check_close(
        merge(got, down, up, -shares, **given),
        weight,
        f"{what}, the matrix with the adapters taken out again",
        "A negative share takes an adapter out.",
    )


check_merge(14, 7, 5, 3, 2, "For 3 adapters")
check_merge(15, 3, 6, 2, 4, "For alpha 10", 10)
weight, down, up = (t.requires_grad_() for t in normal(16, (3, 5), (2, 2, 5), (2, 3, 2)))
assert not merge(weight, down, up, tensor([1.0, 2.0], torch.float64)).requires_grad, (
    "A merged matrix is not trained: detach the result."
)
### BEGIN HIDDEN TESTS
# {compare:merge}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · nDCG without luck ({points:ndcg} points)
#
# **Question: how good is a ranking?**
#
# A document of relevance $g$ at place $i$, counted from 1, earns $(2^g - 1) / \log_2(1 + i)$ (Burges et al. 2005). DCG is the sum over the first $k$ places, and nDCG
# divides it by the DCG of the best order.
#
# * A search finds some documents and scores them; `found` says which. Those that it does not find stand nowhere in its ranking and earn nothing. What their score says does
#   not matter; it may be `nan`. The scores of the others are finite.
# * The best order is that of **all** documents, found or not, again with the first $k$. So who does not find loses.
# * Documents with equal scores are put into the **worst** order, the least relevant first, so that nobody is lucky. Scores that differ
#   in their last digit alone are not equal.
# * A query for which no document is relevant has the value `nan`: there was nothing to find.


# %% nbgrader={"grade": false, "grade_id": "rank", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ndcg(scores, found, gains, k=10):
    """How good the ranking of each query is, from 0 to 1.

    scores: float [Q, N]
    found:  bool [Q, N], False = the search has not found the document
    gains:  int64 [Q, N], the relevance g of each document, at least 0
    k:      how many places count, at least 1, may be more than N
    returns float [Q], of the dtype of scores

    Example: scores [[0.9, 0.5, 0.7]], all found, gains [[0, 1, 2]]
             -> (3/log2(3) + 1/2) / (3 + 1/log2(3)) = [0.6590]
    """
    ### BEGIN SOLUTION
    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]
    worst = earned.argsort(dim=1)  # the least relevant first
    ranked = scores.masked_fill(~found, -torch.inf).gather(1, worst)
    order = ranked.argsort(dim=1, descending=True, stable=True)
    earned = earned.gather(1, worst).gather(1, order)[:, :k]
    best = (2.0 ** gains.double() - 1).sort(dim=1, descending=True).values[:, :k]
    places = torch.arange(1, earned.shape[1] + 1, device=scores.device)
    discounts = 1 / (1 + places).double().log2()
    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "ndcg-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("ndcg")


def check_ndcg(seed, gains, missed, what, k=None):
    Q, N, cut = len(gains), len(gains[0]), 10 if k is None else k
    (scores,) = normal(seed, (Q, N))
    found = torch.ones(Q, N, device=device) > 0
    for q, n in missed:
        found[q, n], scores[q, n] = False, 9.0

    def value(gain=lambda g: 2**g - 1, cut=cut, all_=True, first=1, lost=False):
        values = []
        for row, score, there in zip(gains, scores.tolist(), found.tolist()):
            keep = [n for n in range(N) if there[n] or lost]
            order = sorted(keep, key=lambda n: -score[n])
            best = sorted(range(N) if all_ else keep, key=lambda n: -row[n])
            earned, most = (
                sum(gain(row[n]) / math.log2(1 + i) for i, n in enumerate(places[:cut], first))
                for places in (order, best)
            )
            values.append(earned / most)
        return tensor(values, torch.float64)

    check_close(
        ndcg(scores, found, tensor(gains), **({} if k is None else {"k": k})),
        value(),
        f"{what}, nDCG",
        "The sum of (2^g - 1) / log2(1 + place), divided by that of the best order.",
        slips=(
            (
                value(gain=lambda g: g),
                "A document earns 2 to the power g, minus 1; yours earns g.",
            ),
            (value(gain=lambda g: 2**g), "Subtract 1: what is not relevant earns nothing."),
            (value(all_=False), "The best order is that of all documents, found or not."),
            (value(lost=True), "What was not found stands nowhere in the ranking."),
            (value(cut=N), "Only the first k places count."),
            (value(first=2), "Places are counted from 1."),
        ),
    )


check_ndcg(
    17, [[0, 1, 3, 0, 2, 0, 1], [2, 0, 0, 1, 0, 4, 0]], [(0, 2), (1, 4)], "For 7 documents"
)
check_ndcg(18, [[0, 2, 1, 0, 3], [1, 0, 0, 0, 1], [0, 0, 1, 2, 1]], [(1, 3)], "For k = 3", 3)
everything = torch.ones(1, 3, device=device) > 0
check_close(
    ndcg(tensor([[0.9, 0.5, 0.7]]), everything, tensor([[0, 1, 2]])),
    tensor([0.6590]),
    "The example's nDCG",
    "(3 / log2(3) + 1/2) / (3 + 1 / log2(3)).",
    1e-4,
)
### BEGIN HIDDEN TESTS
# {compare:ndcg}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "ndcg-edges", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("ndcg")
scores, gains = tensor([[0.5, 0.5, 0.5, 0.1]]), tensor([[2, 0, 1, 0]])
everything = torch.ones(1, 4, device=device) > 0
worst = (1 / math.log2(3) + 3 / math.log2(4)) / (3 + 1 / math.log2(3))
for flipped in (False, True):
    turn = (lambda table: table.flip(1)) if flipped else (lambda table: table)
    check_close(
        ndcg(turn(scores), everything, turn(gains)),
        tensor([worst]),
        "With equal scores, nDCG",
        "Of equal scores the least relevant document comes first, wherever it stands.",
    )
scores, gains = tensor([[math.nan, 0.2, 0.1], [0.3, 0.2, 0.1]]), tensor([[1, 0, 1], [0, 0, 0]])
got = ndcg(scores, scores == scores, gains)
check_shape(
    got, [2], "For a document that is not found and a query without relevant ones, nDCG"
)
assert got[1].isnan(), (
    f"A query without any relevant document has the value nan; yours has {got[1].item()}."
)
check_close(
    got[:1],
    tensor([1 / math.log2(3) / (1 + 1 / math.log2(3))]),
    "For a document that is not found, nDCG",
    "Its score may be nan. It earns nothing, but counts in the best order.",
)
### BEGIN HIDDEN TESTS
# {compare:ndcg_edges}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 7 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# `local_mask` and `rotate` work on rows in which several sentences are joined. Somebody, or something, wrote the function that joins them:
# `join(lengths, width)`. You do not see its code. Write `check_join(implementation)`, which raises an error if an implementation is wrong and returns
# nothing if it is right. This is what a right one does:
#
# * `lengths` is a list of integers of at least 0, the tokens of each sentence, and `width`, at least 1, how many tokens a row has. Both stay as they are.
# * The sentences are taken in their order. Each is put into the **first** row that has room for all of it, or else into a new row at the end. There it
#   follows what is in the row already, without a gap. A row may be filled to its last place.
# * A sentence of no tokens stands nowhere, but it keeps its number.
# * It returns `(sentences, positions)`, two int64 tensors [R, width], where R is the number of rows that are needed, which may be 0. `sentences` has the number of each
#   token's sentence, its place in `lengths` counted from 0, and -1 = padding. `positions` has the token's position in its sentence, from 0, and 0 at padding.
# * A sentence that is longer than `width` raises a `ValueError`.
# * There may be hundreds of sentences, and an answer depends on no earlier call.
#
# For example, lengths [2, 3, 1] and width 4 give sentences [[0, 0, 2, -1], [1, 1, 1, -1]] and positions [[0, 1, 0, 0], [0, 1, 2, 0]].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_join(implementation):
    """Raise an error if an implementation of `join` is wrong; return nothing if it is right."""
    ### BEGIN SOLUTION
    examples = {  # width, lengths: by row the sentences with their lengths
        (7, (3, 5, 4, 2, 1, 2, 7)): [
            [0, 0, 0, 2, 2, 2, 2],
            [1, 1, 1, 1, 1, 3, 3],
            [4, 5, 5],
            [6] * 7,
        ],
        (4, (3, 3, 3, 1, 1, 1)): [[0, 0, 0, 3], [1, 1, 1, 4], [2, 2, 2, 5]],
        (6, (4, 5, 3, 2, 1)): [[0, 0, 0, 0, 3, 3], [1, 1, 1, 1, 1, 4], [2, 2, 2]],
        (6, (4, 5, 5, 1, 2)): [[0, 0, 0, 0, 3], [1] * 5, [2] * 5, [4, 4]],
        (9, (2, 0, 3, 0)): [[0, 0, 2, 2, 2]],
        (3, (2, 2, 0)): [[0, 0], [1, 1]],
        (1, (1, 0, 1)): [[0], [2]],
        (5, ()): [],
        (3, (0, 0)): [],
        (7, (1,) * 300): [[*range(n, min(n + 7, 300))] for n in range(0, 300, 7)],
    }
    for (width, lengths), rows in examples.items():
        given = list(lengths)
        sentences, positions = implementation(given, width)
        assert given == list(lengths), "the list is changed"
        for table in (sentences, positions):
            assert table.dtype == torch.int64 and list(table.shape) == [len(rows), width]
        assert sentences.tolist() == [row + [-1] * (width - len(row)) for row in rows]
        places = [[i - row.index(n) for i, n in enumerate(row)] for row in rows]
        assert positions.tolist() == [row + [0] * (width - len(row)) for row in places]
    for lengths in ([5], [2, 1, 6], [4, 5]):
        try:
            implementation(lengths, 4)
        except ValueError:
            continue
        raise AssertionError("a sentence that is longer than a row must raise ValueError")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_join}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_join hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ### What do your formulas show?
#
# The next cell uses your functions. Change nothing in it; read what it prints.
#
# * *Positions*: the product of one query and one key that stands 3 positions behind it, at several positions of the query. Once both are turned by `rotate`; once
#   the sines and cosines of BERT's predecessor, the Transformer, are added to them.
# * *Masks*: which share of all pairs of tokens a layer has to compute, for sentences of 20 tokens, 12 of them joined in one row: with a mask for the row's sentences alone, with
#   `reach` 4, and with padding (12 rows, each as long as the row).
# * *Adapters*: a frozen encoder, one random matrix, maps texts to vectors. A query and its document are alike in most directions of their features, but in 4 of
#   32 directions they hold noise, ten times as large. `info_nce` trains an adapter, and `ndcg` measures on 200 other queries whether each finds its document among
#   200. The last line trains the whole matrix. *Trained* counts trained numbers.
# * *Merged*: the largest difference between the layer with its adapter and the merged matrix.


# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "shown", "locked": true, "schema_version": 3, "solution": false, "task": false}
query, key = (vector.float() for vector in normal(30, (1, 1, 1, 64), (1, 1, 1, 64)))
print(f"{'Positions':20}" + "".join(f"{k:>10}" for k in (0, 10, 100, 1000)))
rows = {"turned": [], "added": []}
for k in (0, 10, 100, 1000):
    here, there = tensor([[k]]), tensor([[k + 3]])
    rows["turned"].append((rotate(query, here) * rotate(key, there)).sum().item())
    ones = torch.zeros_like(query)
    ones[..., 1::2] = 1.0  # turned, these are sines and cosines
    rows["added"].append(
        ((query + rotate(ones, here)) * (key + rotate(ones, there))).sum().item()
    )
for name, row in rows.items():
    print(f"{name:20}" + "".join(f"{product:10.3f}" for product in row))

row = tensor([[number // 20 for number in range(240)]])
padded = torch.where(torch.arange(240, device=device) < 20, 0, -1)[None].repeat(12, 1)
print(f"\n{'Masks':20}{'pairs':>10}{'computed':>10}")
for name, sentences, reach in (
    ("joined, global", row, None),
    ("joined, reach 4", row, 4),
    ("padded, global", padded, None),
):
    mask = local_mask(sentences, reach)
    print(f"{name:20}{mask.numel():10}{mask.double().mean().item():10.1%}")

weight, noisy, before, after = normal(31, (16, 32), (4, 32), (464, 32), (464, 32))
basis = torch.linalg.qr(noisy.T).Q  # [32, 4]
same = before - before @ basis @ basis.T
texts = [
    (same + 0.3 * other + 10 * seen @ basis.T).float()
    for other, seen in zip(normal(32, (464, 32), (464, 32)), normal(33, (464, 4), (464, 4)))
]
weight = weight.float() / 6


def found_by(layer, begin=264):
    """nDCG of the held-out queries, each of which has one document."""
    vectors = [torch.nn.functional.normalize(layer(part[begin:]), dim=1) for part in texts]
    table = vectors[0] @ vectors[1].T
    own = torch.eye(len(table), device=device).long()
    return ndcg(table, own >= 0, own).mean().item()


def train(layer, parameters, steps=200):
    """Train on the first 264 pairs, all of them in each step."""
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    own = torch.eye(264, device=device).long()
    for _ in range(steps):
        losses, _ = info_nce(layer(texts[0][:264]), layer(texts[1][:264]), own, 0.1)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()


print(f"\n{'Adapters':20}{'trained':>10}{'nDCG@10':>10}")
frozen = lambda hidden: hidden @ weight.T
print(f"{'frozen':20}{0:10}{found_by(frozen):10.3f}")
for rank in (1, 2, 3, 4, 8):
    down, up = (t.float() / 6 for t in normal(34, (1, rank, 32), (1, 16, rank)))
    down, up = down.requires_grad_(), (0 * up).requires_grad_()

    def adapted(hidden, down=down, up=up):
        return lora(hidden[None], weight, None, down, up, tensor([0]))[0]

    train(adapted, [down, up])
    with torch.no_grad():
        print(f"{f'rank {rank}':20}{down.numel() + up.numel():10}{found_by(adapted):10.3f}")
whole = weight.clone().requires_grad_()
train(lambda hidden: hidden @ whole.T, [whole])
with torch.no_grad():
    print(f"{'the whole matrix':20}{whole.numel():10}{found_by(lambda x: x @ whole.T):10.3f}")
    merged = merge(weight, down, up, tensor([1.0]))
    difference = (adapted(texts[0]) - texts[0] @ merged.T).abs().max().item()
    largest = adapted(texts[0]).abs().max().item()
print(f"\nMerged: largest difference {difference:.1e}, of numbers up to {largest:.1f}")

# %% [markdown]
# ## Part 8 · In your own words ({points:explain} points)
#
# Look at what the cell above printed. Then write at most 200 words:
#
# 1. Compare *turned* and *added*; cite numbers. Which property of attention do they show, and which of your two functions of Part 1 says why?
# 2. Compare the three *Masks*. What do joining and a local layer save, and what would a sentence lose if its first token saw its neighbours alone?
# 3. Look at *Adapters*. Cite the numbers that say at which rank most is won, and say what the adapter has to do with the noisy directions.
# 4. The merged matrix is not exactly equal. Why, and when would you merge, and when not?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * Numbers of both lines are cited, with the property and the reason for it.
# * The masks' shares are compared, with what is saved and what is lost.
# * Numbers are cited, with a reason why this rank.
# * There is a reason for the difference, and one for each choice.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It cites both lines and says that attention scores of rotary positions depend on the distance alone, because the product of two turned
#   pairs holds only the difference of their angles, as `scores_by_distance` shows; added positions also multiply with each other and the content.
# * It says that a joined row without padding and with a mask for each sentence needs a twelfth of the pairs that twelve padded rows have, and the
#   local layer half of the allowed ones; without a first token, what is farther away than `reach` is reached through several layers only.
# * It cites that nDCG jumps at rank 4, and says that the adapter can subtract four directions from what the matrix reads, as many as
#   there is noise in, so that more numbers, or the whole matrix, win nothing.
# * It says that the sums are rounded in another order; merging saves the time of two products for one task, but one batch for many tasks, or an
#   adapter that is still trained or exchanged, needs it apart.
#
# **All of it:**
#
# (Go by what the student's own cell printed; numbers differ a little between machines.)
#
# *Turned* prints -3.680 at all four positions, *added* 30.0, 28.6, 33.7 and 30.3. With rotary positions a score depends on the distance alone:
# in `scores_by_distance` only the angle between both is left. Added sines also multiply with the contents, which depends on the place. Joined rows need 57,600
# pairs instead of 691,200, of which the mask allows 8.3%, and with reach 4 half as many, 4.0%. Without a first token a token at the end of the
# sentence would learn of the beginning only after several layers. nDCG is 0.04 frozen, 0.52 with rank 3 and 0.996 with rank 4, which is as good as
# the whole matrix with 512 trained numbers. The noise lies in four directions, and an update of rank 4 can take just these out of what the
# matrix reads. The difference of 3e-6 comes from rounding in another order. I would merge when one task is served, which costs nothing then, and keep adapters apart
# when a batch mixes tasks or the training goes on.
#
# **Two of four:** *Turned* is -3.680 everywhere and *added* is not, so that with rotary positions the score depends on the distance, as the angles subtract.
# Rank 4 gives 0.996 and rank 3 only 0.52, since four directions are noise and each rank can remove one. The masks of the local layer are
# smaller, which is faster. The merged matrix is slightly different because of the training.
#
# **None of it:** Rotary positions are better because they are newer. A local mask is sparser than a global one. A higher rank is better because it
# has more parameters. The merged matrix is faster.
# ### END SOLUTION
