"""Legal inputs of each function of the assignment on encoders of today, and references.

The references are written from the formulas, one number or one pair after the other and
in float64. `course_tools/grading/assignments/comparing.py` runs them.
"""

import math
from collections.abc import Iterator

import torch
from course_tools.grading.assignments.comparing import Case, Comparison, Draw

DOUBLE, SINGLE = torch.float64, torch.float32
EXACT = ((DOUBLE, "float64"), (SINGLE, "float32"))
DIFFER = "sizes that all differ, in"


def places(draw: Draw, *shape: int, least=0, most=30) -> torch.Tensor:
    """Whole numbers from a range, in any order."""
    made = [draw.randint(least, most) for _ in range(math.prod(shape))]
    return torch.tensor(made, device=draw.device).reshape(shape)


def one_of(draw: Draw, *names: str) -> Iterator[tuple[str, list[int]]]:
    """Sizes of which one is 1, each in its turn, and sizes that are all the same."""
    for place, name in enumerate(names):
        sizes = draw.sizes(len(names))
        sizes[place] = 1
        yield f"one {name}", sizes
    yield "one size for everything", [4] * len(names)


# ---- Part 1: rotary positions


def rotate(vectors, positions, base=10000.0, features=None):
    R, wide, parts = features or vectors.shape[-1], vectors.double(), []
    for i in range(R // 2):
        angle = positions.double()[:, None] * base ** (-2 * i / R)  # [B, 1, T]
        a, b = wide[..., 2 * i], wide[..., 2 * i + 1]
        parts.append(a * angle.cos() - b * angle.sin())
        parts.append(a * angle.sin() + b * angle.cos())
    return torch.cat([torch.stack(parts, -1), wide[..., R:]], -1).to(vectors.dtype)


def turn_case(draw: Draw, kind, sizes=None, dtype=DOUBLE, least=0, most=30, **kwargs) -> Case:
    B, H, T, D = sizes or (*draw.sizes(3), 2 * draw.randint(2, 5))
    positions = places(draw, B, T, least=least, most=most)
    return Case(kind, (draw.normal(B, H, T, D, dtype=dtype), positions), kwargs)


def turn_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        for dtype, name in EXACT:
            yield turn_case(draw, f"{DIFFER} {name}", dtype=dtype)
        yield turn_case(draw, "base 160,000", base=160000.0)
        yield turn_case(draw, "a base that is no whole number", base=draw.uniform(1.1, 9.9))
        yield turn_case(draw, "features None", features=None)
        for R in (2, 4, 6):
            sizes = [2, 3, 5, draw.randint(6, 13)]
            yield turn_case(draw, f"{R} turned features", sizes, features=R)
        yield turn_case(draw, "some features and a base", [3, 1, 2, 7], features=4, base=70.5)
        yield turn_case(draw, "two features", [3, 5, 2, 2])
        yield turn_case(draw, "positions in the thousands", most=9000)
        for kind, sizes in one_of(draw, "sentence", "head", "token"):
            yield turn_case(draw, kind, [*sizes, 10 if 1 in sizes else 4])


def turn_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        far = {"dtype": SINGLE, "least": 10**6, "most": 9 * 10**6}
        yield turn_case(draw, "positions in the millions, in float32", **far)
        far = {"dtype": SINGLE, "least": 5 * 10**7, "most": 5 * 10**7 + 9}
        yield turn_case(draw, "positions that float32 cannot tell apart", **far)
        yield turn_case(draw, "positions that are all 0", most=0)


TURNED = ("the table of turned vectors",)
Comparison("rotate", turn_cases, (rotate,), TURNED)
Comparison("rotate_edges", turn_edges, (rotate,), TURNED, "rotate")


def scores_by_distance(queries, keys, distance, base=10000.0):
    asked, seen, D = queries.double(), keys.double(), queries.shape[-1]
    total = torch.zeros((), dtype=DOUBLE, device=queries.device)
    for i in range(D // 2):
        angle = distance.double() * base ** (-2 * i / D)  # [T, S]
        a, b = asked[..., 2 * i, None], asked[..., 2 * i + 1, None]  # [B, T, 1]
        c, d = seen[:, None, :, 2 * i], seen[:, None, :, 2 * i + 1]  # [B, 1, S]
        turned = c * angle.cos() - d * angle.sin(), c * angle.sin() + d * angle.cos()
        total = total + a * turned[0] + b * turned[1]
    return total.to(queries.dtype)


def distance_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, sizes=None, dtype=DOUBLE, most=20, **kwargs) -> Case:
        B, T, S, D = sizes or (*draw.sizes(3), 2 * draw.randint(2, 5))
        both = (draw.normal(B, n, D, dtype=dtype) for n in (T, S))
        return Case(kind, (*both, places(draw, T, S, least=-most, most=most)), kwargs)

    for _ in range(6):
        for dtype, name in EXACT:
            yield case(f"{DIFFER} {name}", dtype=dtype)
        yield case("base 160,000", base=160000.0)
        yield case("a base that is no whole number", base=draw.uniform(1.1, 99.0))
        yield case("distances in the thousands", most=9000)
        yield case("distances in the millions, in float32", dtype=SINGLE, most=10**7)
        yield case("distances that are all 0", most=0)
        yield case("two features", [2, 3, 5, 2])
        for kind, sizes in one_of(draw, "sentence", "query", "key"):
            yield case(kind, [*sizes, 10 if 1 in sizes else 4])
    for D in (98, 206):
        yield case("about a hundred features and more", [2, 3, 2, D])


Comparison(
    "scores_by_distance", distance_cases, (scores_by_distance,), ("the table of scores",)
)

# ---- Part 2: GeGLU


def geglu(hidden, weight, output):
    states, gates = torch.zeros((), dtype=DOUBLE, device=hidden.device), []
    for f in range(len(weight) // 2):
        z, v = ((hidden * row).sum(-1).double() for row in weight[2 * f : 2 * f + 2])
        gates.append(0.5 * torch.special.erfc(-z / 2**0.5))
        states = states + (z * gates[-1] * v)[..., None] * output[:, f].double()
    return states.to(hidden.dtype), torch.stack(gates, -1).to(hidden.dtype)


def gate_case(draw: Draw, kind, sizes=None, dtype=DOUBLE, scale=1.0, shut=0) -> Case:
    B, T, D, F = sizes or draw.sizes(4)
    hidden = draw.normal(B, T, D, dtype=dtype, scale=scale)
    weight, output = draw.normal(2 * F, D, dtype=dtype), draw.normal(D, F, dtype=dtype)
    if shut:  # z is about -shut, and the states are about 1
        hidden, output = 1 + 0.01 * hidden, math.exp(shut**2 / 2) * output
        weight[0::2] = 0.1 * weight[0::2] - shut / D
    return Case(kind, (hidden, weight, output))


def gate_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        for dtype, name in EXACT:
            yield gate_case(draw, f"{DIFFER} {name}", dtype=dtype)
        for scale, name in ((1e-3, "small"), (1e3, "large"), (0.0, "all 0")):
            yield gate_case(draw, f"states that are {name}", scale=scale)
        for kind, sizes in one_of(draw, "sentence", "token", "feature", "feature between"):
            yield gate_case(draw, kind, sizes)


def gate_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(8):
        for shut in (draw.uniform(7, 9), draw.uniform(11, 15)):
            yield gate_case(draw, "gates that are nearly shut, before large weights", shut=shut)
        yield gate_case(draw, "gates that are open or shut", scale=30.0)


GATES = ("the table of states", "the table of gates")
Comparison("geglu", gate_cases, (geglu,), GATES)
Comparison("geglu_edges", gate_edges, (geglu,), GATES, "geglu")

# ---- Part 3: a local mask


def local_mask(sentences, reach=None):
    def sees(row, i, j):
        near = reach is None or abs(i - j) <= reach or row.index(row[i]) in (i, j)
        return i == j or (row[i] == row[j] != -1 and near)

    rows, each = sentences.tolist(), range(sentences.shape[1])
    table = [[[sees(row, i, j) for j in each] for i in each] for row in rows]
    return torch.tensor(table, device=sentences.device)


def mask_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, *reach, rows=3, longest=6, padding=0.3, parts=4, least=0, most=9) -> Case:
        made = [[] for _ in range(rows)]
        for row in made:
            for number in draw.sample(range(least, least + most + 1), parts):
                row += [number] * draw.randint(1, longest)
                row += [-1] * (draw.randint(1, 3) if draw.random() < padding else 0)
        T, left = max(map(len, made)), draw.random() < 0.3
        fills = [[-1] * (T - len(row)) for row in made]
        made = [f + row if left else row + f for f, row in zip(fills, made, strict=True)]
        args = (torch.tensor(made, device=draw.device), *reach)
        return Case(kind, args, gradients=False)

    for _ in range(8):
        for reach in (1, 2, 5):
            yield case(f"a reach of {reach}", reach, longest=11)
        yield case("a reach of 0", 0)
        yield case("no reach")
        yield case("reach None", None)
        yield case("a reach beyond the row", 1000)
        yield case("nothing padded", 3, padding=0.0, rows=1)
        yield case("much padding", 2, padding=1.0)
        yield case("one sentence", 2, parts=1, longest=13)
        yield case("sentences of one token", 1, longest=1)
        yield case("large numbers of sentences", 2, most=10**6)
        for least in (10_000, 2**24):
            yield case("large numbers of sentences that follow each other", 2, least=least)
    yield case("a reach above a hundred", 130, rows=1, longest=400, parts=2)
    yield case("many tokens", 7, rows=1, longest=60, parts=5)
    row = torch.full((1, 530), 3, device=draw.device)
    yield Case("a long row and no reach", (row,), gradients=False)
    yield Case(
        "padding alone", (torch.full((2, 5), -1, device=draw.device), 2), gradients=False
    )


Comparison("local_mask", mask_cases, (local_mask,), ("the mask",))

# ---- Part 4: InfoNCE


def info_nce(queries, documents, relation, temperature=0.05):
    unit = lambda vector: vector.double() / vector.double().square().sum().sqrt()
    losses, hardest = [], []
    for query, row in zip(queries, relation.tolist(), strict=True):
        cosines = [(unit(query) * unit(document)).sum() for document in documents]
        wrong, of = [n for n, kind in enumerate(row) if kind == 0], []
        for n in (n for n, kind in enumerate(row) if kind == 1):
            below = torch.stack([cosines[m] for m in (n, *wrong)]) / temperature
            of.append(-below.log_softmax(0)[0])
        losses.append(torch.stack(of).mean())
        hardest.append(max(wrong, key=lambda n: cosines[n].item(), default=-1))
    return torch.stack(losses).to(queries.dtype), torch.tensor(hardest, device=queries.device)


def contrast_case(draw: Draw, kind, sizes=None, kinds=(1, 0, 0, -1), hint="", **about) -> Case:
    (B, N, D), dtype = sizes or draw.sizes(3), about.get("dtype", DOUBLE)
    both = [draw.normal(n, D, dtype=dtype, scale=about.get("scale", 1.0)) for n in (B, N)]
    if about.get("axes"):  # each cosine is exactly 1, 0 or -1
        pairs = [(places(draw, n, most=D - 1), places(draw, n, 1, most=1)) for n in (B, N)]
        axes = torch.eye(D, dtype=dtype, device=draw.device)
        both = [(4.0 * sign - 2) * axes[which] for which, sign in pairs]
    if "close" in about:
        both[1][1::2] = both[1][: N - N % 2 : 2] + about["close"] * both[1][1::2]
    relation = torch.tensor([[draw.choice(kinds) for _ in range(N)] for _ in range(B)])
    relation[torch.arange(B), places(draw, B, most=N - 1).cpu()] = 1
    if about.get("no_wrong"):
        relation[::2] = 2 * relation[::2].clamp(min=0) - 1
    kwargs = {"temperature": about["at"]} if "at" in about else {}
    # of one feature a cosine is a sign, whose gradient is rounding alone
    exact = D > 1 and not about.get("axes")
    return Case(kind, (*both, relation.to(draw.device)), kwargs, hint, exact)


def contrast_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(5):
        for dtype, name in EXACT:
            yield contrast_case(draw, f"{DIFFER} {name}", dtype=dtype)
        for at in (1.0, 0.05, 0.1, 7.0):
            yield contrast_case(draw, f"temperature {at}", at=at)
        yield contrast_case(draw, "nothing unknown", kinds=(1, 0))
        yield contrast_case(draw, "one right document for each", kinds=(0, 0, -1))
        yield contrast_case(draw, "many right documents", kinds=(1, 1, 1, 0))
        yield contrast_case(draw, "much that is unknown", kinds=(1, -1, -1, 0))
        yield contrast_case(draw, "more queries than documents", [11, 3, 5], at=0.4)
        yield contrast_case(draw, "long vectors", scale=1e4)
        for kind, sizes in one_of(draw, "query", "document", "feature"):
            yield contrast_case(draw, kind, sizes)


def contrast_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(5):
        hint = "Compute the logarithm of a sum of powers without the powers."
        yield contrast_case(draw, "a small temperature", at=1e-3, hint=hint)
        yield contrast_case(draw, "a small temperature, in float32", at=1e-3, dtype=SINGLE)
        yield contrast_case(draw, "a tiny temperature", at=1e-6, no_wrong=True)
        yield contrast_case(draw, "queries without wrong documents", no_wrong=True)
        yield contrast_case(draw, "very short vectors", scale=1e-9)
        hint = "Of equal cosines the first counts, counted among all documents."
        yield contrast_case(draw, "equal cosines", [5, 11, 3], axes=True, hint=hint)
        hint = "They are not equal."
        yield contrast_case(draw, "cosines that are nearly equal", close=1e-6, hint=hint)


LOSSES = ("the loss of each query", "the hardest wrong document")
Comparison("info_nce", contrast_cases, (info_nce,), LOSSES)
Comparison("info_nce_edges", contrast_edges, (info_nce,), LOSSES, "info_nce")

# ---- Part 5: LoRA


def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    rank, rows = down.shape[1], []
    for x, a in zip(hidden, adapter.tolist(), strict=True):
        y = x.double() @ weight.detach().double().T
        y = y if bias is None else y + bias.detach().double()
        if a != -1:
            thin = x.double() @ down[a].double().T @ up[a].double().T
            y = y + (rank if alpha is None else alpha) * thin / rank
        rows.append(y.to(hidden.dtype))
    return torch.stack(rows)


def lora_case(draw: Draw, kind, sizes=None, dtype=DOUBLE, biased=True, **about) -> Case:
    B, T, D, E, A, r = sizes or draw.sizes(6)
    shapes = (B, T, D), (E, D), (E,), (A, r, D), (A, E, r)
    hidden, weight, bias, down, up = (draw.normal(*shape, dtype=dtype) for shape in shapes)
    adapter = places(draw, B, least=about.get("least", -1), most=about.get("most", A - 1))
    if "unasked" in about:
        adapter[adapter == 0] = -1
        down[0], up[0] = about["unasked"], about["unasked"]
    args = (hidden, weight, bias if biased else None, down, up, adapter)
    hint = "What an adapter holds must not matter to texts that do not ask for it."
    return Case(kind, args, about.get("kwargs", {}), hint if "unasked" in about else "")


def lora_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        for dtype, name in EXACT:
            yield lora_case(draw, f"{DIFFER} {name}", dtype=dtype)
        yield lora_case(draw, "no bias", biased=False)
        for alpha in (8, 0, 2.0, None):
            yield lora_case(draw, f"alpha {alpha}", kwargs={"alpha": alpha})
        kind, alpha = "an alpha that is no whole number", {"alpha": draw.uniform(0.1, 9.9)}
        yield lora_case(draw, kind, kwargs=alpha)
        yield lora_case(draw, "no text that asks for an adapter", most=-1)
        yield lora_case(draw, "an adapter for each text", least=0)
        names = ("text", "token", "feature that comes in", "feature that comes out")
        for kind, sizes in one_of(draw, *names, "adapter", "row in each adapter"):
            yield lora_case(draw, kind, sizes)


def lora_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        kind = "an adapter that is no number, and that no text asks for"
        for unasked in (math.nan, math.inf):
            yield lora_case(draw, kind, unasked=unasked)
        yield lora_case(draw, kind, most=-1, unasked=math.nan)
        yield lora_case(draw, "frozen weights", kwargs={"alpha": 3})
    asked = lora_case(draw, "an adapter that is no number, and that a text asks for", least=1)
    asked.args[3][0], asked.args[5][0], asked.gradients = math.nan, 0, False
    yield asked


Comparison("lora", lora_cases, (lora,), ("the result",))
Comparison("lora_edges", lora_edges, (lora,), ("the result",), "lora")


def merge(weight, down, up, shares, alpha=None):
    rank, total = down.shape[1], weight.detach().double()
    for g, A, B in zip(shares.detach(), down.detach(), up.detach(), strict=True):
        update = sum(B[:, i, None].double() * A[i].double() for i in range(rank))
        total = total + (rank if alpha is None else alpha) / rank * g.double() * update
    return total.to(weight.dtype)


def merge_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, sizes=None, dtype=DOUBLE, thin=None, hint="", **kwargs) -> Case:
        E, D, A, r = sizes or draw.sizes(4)
        shapes = (A, r, D), (A, E, r), (A,)
        down, up, shares = (draw.normal(*shape, dtype=thin or dtype) for shape in shapes)
        weight = draw.normal(E, D, dtype=dtype)
        if hint:
            large = torch.einsum("a,aer,ard->ed", shares, up, down := 1e3 * down)
            weight = (1e-4 * large.abs().max() * weight.double() - large).to(dtype)
        return Case(kind, (weight, down, up, shares), kwargs, hint)

    for _ in range(6):
        for dtype, name in EXACT:
            yield case(f"{DIFFER} {name}", dtype=dtype)
        mixed = {"dtype": SINGLE, "thin": DOUBLE}
        yield case("adapters that are more precise than the matrix", **mixed)
        kind, hint = "adapters that nearly take the matrix away", "Round once, at the end."
        yield case(kind, hint=hint, **mixed)
        for alpha in (8, 0, 2.5, None):
            yield case(f"alpha {alpha}", alpha=alpha)
        names = ("feature that comes out", "feature that comes in", "adapter", "row in each")
        for kind, sizes in one_of(draw, *names):
            yield case(kind, sizes)


Comparison("merge", merge_cases, (merge,), ("the merged matrix",))

# ---- Part 6: nDCG


def ndcg(scores, found, gains, k=10):
    values = []
    dcg = lambda row: sum((2.0**g - 1) / math.log2(1 + i) for i, g in enumerate(row[:k], 1))
    for score, there, gain in zip(scores.tolist(), found.tolist(), gains.tolist(), strict=True):
        ranked = sorted((-s, g) for s, t, g in zip(score, there, gain, strict=True) if t)
        best = dcg(sorted(gain, reverse=True))
        values.append(dcg([g for _, g in ranked]) / best if best else math.nan)
    return torch.tensor(values, dtype=scores.dtype, device=scores.device)


def rank_case(draw: Draw, kind, sizes=None, share=0.8, factor=1.0, shift=0.0, **about) -> Case:
    Q, N = sizes or draw.sizes(2)
    scores = factor * draw.normal(Q, N, dtype=about.get("dtype", DOUBLE))
    found = draw.mask(Q, N, share=share)
    chances = [0, 0, 0, *range(about.get("most", 3) + 1)]
    gains = [[draw.choice(chances) for _ in range(N)] for _ in range(Q)]
    gains = torch.tensor(gains, device=draw.device)
    if "empty" in about:
        (gains if about["empty"] == "gains" else found)[::2] = 0
    scores = (scores.round() if about.get("ties") else scores) + shift
    scores = scores.masked_fill(~found, about["lost"]) if "lost" in about else scores
    kwargs = {"k": about["k"]} if "k" in about else {}
    return Case(kind, (scores, found, gains), kwargs, about.get("hint", ""), False)


def rank_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        for dtype, name in EXACT:
            yield rank_case(draw, f"{DIFFER} {name}", dtype=dtype)
        for k in (1, 2, 5, 10, 100):
            yield rank_case(draw, f"k = {k}", [3, 23], k=k)
        yield rank_case(draw, "more than ten documents", [3, 37], most=1)
        yield rank_case(draw, "everything found", share=1.0)
        yield rank_case(draw, "one document found", share=0.0)
        yield rank_case(draw, "grades above 6", [5, 13], most=12)
        yield rank_case(draw, "scores that are very negative", factor=1e15, shift=-1e17)
        yield rank_case(draw, "grades up to 70", [3, 7], most=70)
        for kind, sizes in one_of(draw, "query", "document"):
            yield rank_case(draw, kind, sizes)


def rank_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(6):
        hint = "Of equal scores the least relevant document comes first."
        yield rank_case(draw, "equal scores", [3, 13], ties=True, hint=hint)
        yield rank_case(draw, "equal scores, and k = 3", [5, 11], ties=True, k=3, hint=hint)
        yield rank_case(draw, "equal scores of many", [3, 59], ties=True, k=31, hint=hint)
        yield rank_case(draw, "scores that are all equal", factor=0.0, hint=hint)
        near = {"factor": 1e-9, "shift": 0.5, "hint": "They are not equal."}
        yield rank_case(draw, "scores that are nearly equal", **near)
        yield rank_case(draw, "nothing that is relevant", empty="gains")
        yield rank_case(draw, "nothing found", empty="found")
        for lost in (math.nan, math.inf, -math.inf):
            kind = "scores of what was not found that are no numbers"
            yield rank_case(draw, kind, share=0.5, lost=lost)


Comparison("ndcg", rank_cases, (ndcg,), ("nDCG",))
Comparison("ndcg_edges", rank_edges, (ndcg,), ("nDCG",), "ndcg")
