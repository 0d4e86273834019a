"""Legal inputs of each function of assignment 7, and references to compare with.

The references are written from the formulas, in float64, by loops and by sorting lists.
`course_tools/grading/assignments/comparing.py` runs them.
"""

import functools
import math
from collections.abc import Iterator

import torch
from course_tools.grading.assignments.comparing import Case, Comparison, Draw, Misuse

DOUBLE, SINGLE = torch.float64, torch.float32
HALVES = (torch.bfloat16, torch.float16)
FLOATS = ((DOUBLE, "float64"), (SINGLE, "float32"))

# ---- Part 1: pooling

PADDING = "Padding has no part, whatever its states are: 0 times nan is nan."
LOW = "Fill padding with -torch.inf, which every type has."
PRECISE = "float16 ends at 65504: add up in float32."
IN_DOUBLE = "Add up states in float64 in float64."
ROUNDED = "Add up in float32 at least, and round once, at the end."
BEGINS = {  # where the tokens of a row begin that leaves `room` for padding
    "behind": lambda draw, room: 0,
    "in front": lambda draw, room: room,
    "in front of some sentences": lambda draw, room: draw.choice((0, room)),
    "on both sides": lambda draw, room: draw.randint(0, room),
    "between tokens": None,
}


def tokens(draw: Draw, B: int, T: int, place: str) -> torch.Tensor:
    """A mask with padding in that place."""
    if BEGINS[place] is None:
        return draw.mask(B, T)
    rows = []
    for _ in range(B):
        length = draw.randint(1, T)
        begin = BEGINS[place](draw, T - length)
        rows.append([begin <= t < begin + length for t in range(T)])
    return torch.tensor(rows, device=draw.device)


def pool_by(take):
    def pool(hidden, mask):
        rows = zip(hidden, mask.tolist())
        kept = [[s for s, real in zip(states, row) if real] for states, row in rows]
        return torch.stack([take(states) for states in kept]).to(hidden.dtype)

    return pool


def pool_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in FLOATS:
        for place in BEGINS:
            for _ in range(2):
                B, T, D = draw.sizes(3)
                hidden = draw.normal(B, T, D, dtype=dtype)
                kind = f"states in {name} and padding {place}"
                yield Case(kind, (hidden, tokens(draw, B, T, place)))
    for bad in ("nan", "inf", "-inf", "1e30"):
        for place in BEGINS:
            B, T, D = draw.sizes(3)
            mask = tokens(draw, B, T, place)
            hidden = draw.normal(B, T, D).masked_fill(~mask[:, :, None], float(bad))
            yield Case(f"padding whose states are {bad}", (hidden, mask), hint=PADDING)
    for place, word in enumerate(("sentence", "position", "feature")):
        for _ in range(3):
            sizes = draw.sizes(3)
            sizes[place] = 1
            yield Case(f"one {word}", (draw.normal(*sizes), draw.mask(*sizes[:2])))
    for share, words in ((0.0, "one token in each sentence"), (1.0, "no padding")):
        for scale in (1.0, 1e-6, 1e4):
            B, T, D = draw.sizes(3)
            hidden = draw.normal(B, T, D, scale=scale)
            yield Case(words, (hidden, draw.mask(B, T, share=share)))
    for dtype, name in FLOATS:
        for least in (1, 2e4, 1e6, 1e10):
            hidden = -least * (1 + draw.normal(3, 7, 5, dtype=dtype).abs())
            kind = f"states in {name} that are all negative"
            yield Case(kind, (hidden, draw.mask(3, 7)), hint=LOW)
    hidden, mask = draw.normal(2, 517, 3), draw.mask(2, 517)
    yield Case("long sentences", (hidden, mask), gradients=False)
    for place in ("behind", "in front"):
        mask = tokens(draw, 3, 7, place)
        hidden = draw.normal(3, 7, 5)
        hidden[:, :, 2] = hidden[:, :, 2].masked_fill(mask, 0.0)
        yield Case("a feature that is 0", (hidden, mask), hint=PADDING, gradients=False)
    for dtype, size in ((SINGLE, 1e-25), (torch.float16, 3e3)):
        hidden, mask = draw.normal(4, 6, 5, dtype=dtype, scale=size), draw.mask(4, 6)
        kind = f"states about {size} in {str(dtype)[6:]}"
        yield Case(kind, (hidden, mask), gradients=False)
    for dtype in HALVES:
        for place in BEGINS:
            hidden, mask = draw.normal(3, 6, 5, dtype=dtype), tokens(draw, 3, 6, place)
            hidden = hidden.masked_fill(~mask[:, :, None], math.nan)
            kind = f"states in {str(dtype)[6:]}"
            yield Case(kind, (hidden, mask), hint=PADDING, gradients=False)


def mean_cases(draw: Draw) -> Iterator[Case]:
    for case in pool_cases(draw):
        if case.args[0].dtype == DOUBLE and "one token" not in case.kind:
            case.tolerance = 2e-6  # 1 / length may be a float32
        yield case
    for most in (400.0, -400.0):
        hidden = draw.normal(2, 300, 3, dtype=torch.float16) + most
        kind = "many large states in float16"
        yield Case(kind, (hidden, draw.mask(2, 300)), hint=PRECISE, gradients=False)
    # three whole numbers, which float32 adds up and divides without a doubt in rounding
    for dtype, low in ((torch.bfloat16, 128), (torch.float16, 1024)):
        for _ in range(3):
            numbers = [draw.randrange(low, 2 * low) for _ in range(4 * 7 * 13)]
            hidden = torch.tensor(numbers, device=draw.device).view(4, 7, 13).to(dtype)
            rows = [draw.sample([1, 1, 1, 0, 0, 0, 0], 7) for _ in range(4)]
            mask = torch.tensor(rows, device=draw.device) > 0
            about = {"hint": ROUNDED, "gradients": False, "tolerance": 0.2 / low}
            yield Case(f"large states in {str(dtype)[6:]}", (hidden, mask), **about)
    for dtype, name in FLOATS:
        for place in BEGINS:
            for bad in (0.0, -3.0, math.nan, 1e30):
                B, T, D = draw.sizes(3)
                mask, hidden = tokens(draw, B, T, place), draw.normal(B, T, D, dtype=dtype)
                weights = draw.normal(B, T, dtype=dtype).abs() + 0.1
                given = {"weights": weights.masked_fill(~mask, bad)}
                kind = f"weights and padding {place}, in {name}"
                tolerance = 2e-6 if dtype == DOUBLE else 0.0
                yield Case(kind, (hidden, mask), given, PADDING, tolerance=tolerance)
    hidden, mask = draw.normal(3, 5, 4, dtype=torch.float16, scale=1e3), draw.mask(3, 5)
    given = {"weights": (100 + draw.normal(3, 5)).half()}
    about = {"hint": PRECISE, "gradients": False}
    yield Case("large states and weights in float16", (hidden, mask), given, **about)
    hidden, mask = draw.normal(3, 5, 4, dtype=DOUBLE), draw.mask(3, 5, share=1.0)
    hidden[:, 0], hidden[:, 3] = 1e9, -1e9
    about = {"hint": IN_DOUBLE, "gradients": False, "tolerance": 2e-6}
    yield Case("states in float64 that nearly cancel", (hidden, mask), **about)
    hidden, mask = draw.normal(3, 5, 4), draw.mask(3, 5, share=1.0)
    hidden[1, 2, 3] = math.nan
    about = {"gradients": False, "tolerance": 2e-6}
    yield Case("a token with a state that is nan", (hidden, mask), **about)


def mean_pool(hidden, mask, weights=None):
    if weights is None:
        take = pool_by(lambda states: sum(state.double() for state in states) / len(states))
        return take(hidden, mask)
    rows = []
    for states, real, row in zip(hidden, mask.tolist(), weights):
        kept = [(s.double(), w.double()) for s, yes, w in zip(states, real, row) if yes]
        rows.append(sum(s * w for s, w in kept) / sum(w for _, w in kept))
    return torch.stack(rows).to(hidden.dtype)


VECTORS = ("the table of vectors",)
Comparison(
    "mean_pool",
    mean_cases,
    (mean_pool,),
    VECTORS,
)


def no_negatives_of_others(halves):
    """Positive numbers get an even last bit and negative ones an odd one: the task leaves
    open which of two numbers that are equally far from 0 is taken."""
    bits = halves.view(torch.int16)
    apart = ((bits & ~1) | (bits < 0)).view(halves.dtype)
    return torch.where(halves.isfinite(), apart, halves)


def varied(option: str, words: str):
    def cases(draw: Draw) -> Iterator[Case]:
        yield from pool_cases(draw)
        for case in pool_cases(draw):
            case.kind, case.kwargs = f"{words}, and {case.kind}", {option: True}
            if case.args[0].element_size() == 2:
                case.args = (no_negatives_of_others(case.args[0]), *case.args[1:])
            yield case

    return cases


def cls_pool(hidden, mask, last=False):
    return pool_by(lambda states: states[-1 if last else 0])(hidden, mask)


def max_pool(hidden, mask, by_size=False):
    def greater(one, other):
        return torch.where(one.abs() >= other.abs(), one, other)

    return pool_by(functools.partial(functools.reduce, greater if by_size else torch.maximum))(
        hidden, mask
    )


Comparison("cls_pool", varied("last", "last"), (cls_pool,), VECTORS)
Comparison("max_pool", varied("by_size", "by_size"), (max_pool,), VECTORS)

# ---- Part 2: objectives

LARGE = "exp of a large logit is inf: torch's cross_entropy and log_softmax avoid it."
OWN = "Cosines over the temperature are logits over documents; that of query i is document i."


def cross_entropy(logits, labels):
    losses = []
    for row, label in zip(logits, labels):
        ahead = row - row[label]
        most = ahead.detach().max()
        losses.append(most + (ahead - most).exp().sum().log())
    return sum(losses) / len(losses)


def classify(u, v, weight, labels):
    apart = torch.maximum(u, v) - torch.minimum(u, v)
    both = u.double() * v.double()
    blocks = zip((u, v, apart, both), weight.double().chunk(4, dim=1))
    logits = sum((x.double()[:, None] * block).sum(-1) for x, block in blocks)
    loss = cross_entropy(logits, labels.tolist())
    return logits.to(u.dtype), loss.to(u.dtype)


def classify_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, sizes: list[int], dtype=DOUBLE, scale=1.0, size=1.0, **about) -> Case:
        B, D, L = sizes
        u, v = (draw.normal(B, D, dtype=dtype, scale=size) for _ in range(2))
        weight = draw.normal(L, 4 * D, dtype=dtype, scale=scale)
        labels = torch.tensor([draw.randrange(L) for _ in range(B)], device=draw.device)
        return Case(kind, (u, v, weight, labels), **about)

    for dtype, name in FLOATS:
        for _ in range(10):
            yield case(f"sizes that all differ, in {name}", draw.sizes(3), dtype)
    for _ in range(3):
        for place, word in enumerate(("pair", "feature", "label")):
            sizes = draw.sizes(3)
            sizes[place] = 1
            yield case(f"one {word}", sizes)
        yield case("one size for everything", draw.sizes(1) * 3)
        yield case("large weights", draw.sizes(3), scale=3e3, hint=LARGE)
        yield case("vectors that are nearly 0", draw.sizes(3), size=1e-6)
        yield case("many labels", [7, 3, 150])
        one = case("pairs that agree in a feature which the weight ignores", draw.sizes(3))
        u, v, weight, _ = one.args
        v[:, 1], weight[:, 2 * u.shape[1] + 1] = u[:, 1], 0.0
        yield one
        one = case("labels of which one is frequent", [13, 5, 3])
        one.args[3][1:] = 2
        yield one


Comparison("classify", classify_cases, (classify,), ("the table of logits", "the loss"))


def cosine(u, v):
    u, v = u.double(), v.double()
    return (u * v).sum(-1) / ((u**2).sum(-1).sqrt() * (v**2).sum(-1).sqrt())


def cosine_loss(u, v, scores, slack=0.0):
    total = 0.0
    for found, score in zip(cosine(u, v), scores.double()):
        beyond = (found - score).abs() - slack
        total = total + (beyond**2 if beyond > 0 else 0.0 * beyond)
    return (total / len(u)).to(u.dtype)


def cosine_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, B: int, D: int, dtype=DOUBLE, scale=1.0, least=0.0) -> Case:
        u, v = (draw.normal(B, D, dtype=dtype, scale=scale) for _ in range(2))
        scores = [draw.uniform(least, 1) for _ in range(B)]
        return Case(kind, (u, v, torch.tensor(scores, dtype=dtype, device=draw.device)))

    for dtype, name in FLOATS:
        for _ in range(10):
            yield case(f"sizes that all differ, in {name}", *draw.sizes(2), dtype)
        yield case(f"long vectors in {name}", *draw.sizes(2), dtype, 1e6)
        yield case(f"short vectors in {name}", *draw.sizes(2), dtype, 1e-5)
        yield case(f"very long vectors in {name}", *draw.sizes(2), dtype, 1e12)
    for _ in range(5):
        yield case("one pair", 1, 7)
        yield case("one feature", 5, 1)
        yield case("as many pairs as features", 6, 6)
        yield case("scores of which some are negative", *draw.sizes(2), least=-1.0)
        for factor, words in ((3, "the same direction"), (-3, "opposite directions")):
            one = case(f"vectors of {words}", *draw.sizes(2))
            one.args[1][:] = factor * one.args[0]
            yield one
    one = case("pairs whose cosine is their score", 3, 3)
    for given, rows in zip(
        one.args,
        (
            [[2.0, 0, 0], [0, 3, 0], [0, 0, 5]],
            [[0, 1.0, 0], [0, 5, 0], [0, 0, -7]],
            [0.0, 1, -1],
        ),
    ):
        given[:] = torch.tensor(rows)
    yield one
    yield case("many pairs", 300, 3)
    for slack in (0.05, 0.3, 0.9, 3.0):
        for dtype, name in FLOATS:
            one = case(f"slack, in {name}", *draw.sizes(2), dtype, least=-1.0)
            one.args = (*one.args, slack)
            yield one


Comparison("cosine_loss", cosine_cases, (cosine_loss,), ("the loss",))

MARGIN = "Distance to the positive, less distance to the negative, plus the margin, at least 0."
NO_SLOPE = (
    "Where the anchor equals the positive or the negative, the gradient becomes nan: the root"
    " of 0 has no slope. norm() takes care of that."
)


def triplet_loss(anchor, positive, negative, margin, swap=False):
    total = 0.0
    for a, p, n in zip(anchor.double(), positive.double(), negative.double()):
        length = torch.linalg.vector_norm
        far = torch.minimum(length(a - n), length(p - n)) if swap else length(a - n)
        lead = length(a - p) - far + margin
        total = total + (lead if lead > 0 else 0.0 * lead)
    return (total / len(anchor)).to(anchor.dtype)


def triplet_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, B: int, D: int, margin: float, dtype=DOUBLE, **about) -> Case:
        vectors = [draw.normal(B, D, dtype=dtype) for _ in range(3)]
        # the text leaves open whether distances are torch's, with 1e-6 in each difference
        return Case(kind, (*vectors, margin), hint=MARGIN, tolerance=1e-4, **about)

    for dtype, name in FLOATS:
        for margin in (0.0, 0.05, 0.3, 1.0, 1.5, 5.0, -0.4):
            for D in (3, 7):
                yield case(f"margin {margin} in {name}", 13, D, margin, dtype)
                one = case(f"swap and margin {margin} in {name}", 13, D, margin, dtype)
                one.kwargs = {"swap": True}
                yield one
    for _ in range(4):
        yield case("one triplet", 1, 7, 4.0)
        yield case("one feature", 11, 1, 0.7)
        yield case("many triplets", 150, 3, 0.7)
        one = case("a positive that equals the negative and margin 0", 5, 3, 0.0)
        one.args[2][:], one.gradients = one.args[1], False
        yield one
        one = case("a positive that equals the negative and a small margin", 5, 3, 1e-3)
        one.args[2][:] = one.args[1]
        yield one
        one = case("triplets that keep the margin", 6, 5, 0.2)
        one.args[1][:] = one.args[0] + 0.01
        yield one
        for B in (6, 31):
            one = case("near vectors, far from 0, in float32", B, 5, 0.2, SINGLE)
            for vectors in one.args[:3]:
                vectors[:] = 100 + 0.1 * vectors
            yield one
        one = case(
            "positives that equal the anchors, and a margin that is just missed", 7, 5, 0
        )
        a, p, n, _ = one.args
        p[:], n[:] = a, a
        n[:, 1] += 0.5
        one.args, one.gradients, one.tolerance = (a, p, n, 0.501), False, 0.02
        yield one


def slopes(triplet_loss, anchor, positive, negative, margin, other):
    """The loss, and its gradient for the vectors that do not equal the anchor. With swap
    and all three equal, it has to be a number."""

    def taken(vectors, *swap):
        leaves = [vector.detach().clone().requires_grad_() for vector in vectors]
        loss = triplet_loss(*leaves, margin, *swap)
        return loss, torch.autograd.grad(loss, leaves, allow_unused=True)

    with torch.enable_grad():
        loss, found = taken((anchor, positive, negative))
        _, equal = taken((anchor, anchor, anchor), True)
    if any(slope is not None and not slope.isfinite().all() for slope in (*found, *equal)):
        raise Misuse(NO_SLOPE)
    return loss, torch.zeros_like(anchor) if found[other] is None else found[other]


def equal_cases(draw: Draw) -> Iterator[Case]:
    for equal, other, words in ((1, 2, "positive"), (2, 1, "negative")):
        for _ in range(4):
            B, D = draw.sizes(2)
            vectors = [draw.normal(B, D) for _ in range(3)]
            rows = draw.sample(range(B), 2)
            vectors[equal][rows] = vectors[0][rows]
            kind = f"anchors that equal the {words}"
            yield Case(kind, (*vectors, 9.0, other), hint=MARGIN, tolerance=2e-5)


Comparison("triplet_loss", triplet_cases, (triplet_loss,), ("the loss",))
Comparison(
    "triplet_loss_where_equal",
    equal_cases,
    (triplet_loss,),
    ("the loss", "the gradient of the others"),
    "triplet_loss",
    slopes,
)


def in_batch_loss(queries, documents, temperature, margin=0.0):
    cosines = cosine(queries[:, None], documents[None])
    rows = [[margin * (i == j) for j in range(len(documents))] for i in range(len(queries))]
    logits = (cosines - torch.tensor(rows, dtype=DOUBLE).to(cosines)) / temperature
    return cross_entropy(logits, range(len(queries))).to(queries.dtype)


def batch_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, B: int, N: int, D: int, temperature: float, dtype=DOUBLE, size=1.0):
        made = (draw.normal(rows, D, dtype=dtype, scale=size) for rows in (B, N))
        hint = LARGE if temperature < 0.02 else OWN
        tolerance = 1e-4 if dtype == SINGLE else 0.0
        return Case(kind, (*made, temperature), hint=hint, tolerance=tolerance)

    for dtype, name in FLOATS:
        for temperature in (1.0, 0.3, 3.0, 0.05, 0.01):
            for more in (0, 1, 5):
                B, D = draw.sizes(2)
                kind = f"temperature {temperature}, in {name}"
                yield case(kind, B, B + more, D, temperature, dtype)
                one = case(f"a margin, {kind}", B, B + more, D, temperature, dtype)
                one.kwargs = {"margin": draw.choice((0.1, 0.3))}
                yield one
    for _ in range(3):
        yield case("temperature 0.001", 5, 7, 6, 0.001)
        yield case("one query and one document", 1, 1, 5, 0.2)
        yield case("one query and several documents", 1, 5, 6, 0.2)
        yield case("one feature", 4, 7, 1, 0.2)
        yield case("short vectors", 5, 7, 6, 0.1, size=1e-5)
        yield case("long vectors", 5, 7, 6, 0.1, size=1e5)
        yield case("many documents", 3, 150, 5, 0.1)
        one = case("documents that equal each other", 4, 7, 5, 0.3)
        one.args[1][2], one.args[1][5] = one.args[1][1], one.args[1][0]
        yield one
        one = case("a query that lies opposite to all documents", 5, 7, 6, 0.01, SINGLE)
        one.args[1][:] = 1 + 0.1 * one.args[1]
        one.args[0][:] = 1 + 0.1 * one.args[0]
        one.args[0][2] *= -1
        yield one
        one = case("queries that equal their documents", 5, 7, 6, 0.01)
        one.args[1][:5], one.tolerance = one.args[0], 1e-4  # it is nearly 0
        yield one


Comparison("in_batch_loss", batch_cases, (in_batch_loss,), ("the loss",))

# ---- Part 3: many sentences


class Bag(torch.nn.Module):
    """Adds up what a table has for the tokens, the later the less; twice in training, and
    then a part is dropped. It computes in float64, whatever its table is in."""

    def __init__(self, table) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(table.clone())
        self.drop = torch.nn.Dropout()
        self.frozen = torch.nn.Parameter(table[:1].clone(), requires_grad=False)
        self.batches = []

    def forward(self, input_ids, attention_mask):
        self.batches.append(len(input_ids))
        places = torch.arange(1, input_ids.shape[1] + 1, device=input_ids.device)
        states = self.drop(self.table[input_ids].double()) / places[:, None]
        states = states.masked_fill(~attention_mask[:, :, None], 0.0)
        return states.sum(1) * (2 if self.training else 1)


def encode(model, sentences, batch_size):
    rows = []
    for sentence in sentences:
        pairs = enumerate(sentence, 1)
        states = [model.table[token].double() / place for place, token in pairs]
        rows.append(sum(states).detach())
    return torch.stack(rows)


def encode_twice(encode, table, sentences, batch_size, training):
    """The vectors of a model, and those after a step of training."""
    model, vectors, states = Bag(table).train(training), [], []
    model.table.grad = torch.ones_like(model.table)
    for _ in range(2):
        torch.rand(1)
        vectors.append(encode(model, sentences, batch_size))
        states.append(torch.random.get_rng_state())
        kept = model.table.grad is not None and bool((model.table.grad == 1).all())
        if sum(size < batch_size for size in model.batches) > 1:
            raise Misuse("Only one batch may have fewer than batch_size sentences.")
        model.batches.clear()
        if not (kept and model.table.requires_grad and not model.frozen.requires_grad):
            raise Misuse("encode must leave the model and its gradients as they were.")
        with torch.no_grad():
            model.table.copy_(1 - model.table)
    if torch.equal(*states):
        raise Misuse("encode must not set the seed of random numbers.")
    return tuple(vectors)


def encode_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, N: int, longest: int, batch_size: int, D=3, dtype=DOUBLE) -> Case:
        table = draw.normal(23, D, dtype=dtype)
        sentences = [
            [draw.randrange(23) for _ in range(draw.randint(1, longest))] for _ in range(N)
        ]
        return Case(kind, (table, sentences, batch_size, draw.random() < 0.5))

    for dtype, name in FLOATS:
        for batch_size in (2, 3):
            yield case(f"a model in {name}", 7, 9, batch_size, dtype=dtype)
    yield case("one sentence", 1, 5, 3)
    yield case("one feature", 5, 6, 2, D=1)
    yield case("batches of 1", 4, 7, 1)
    yield case("a batch larger than the list", 6, 9, 1000)
    yield case("many sentences", 75, 5, 41)
    yield case("long sentences", 3, 700, 2)
    one = case("sentences that occur twice", 6, 4, 3)
    one.args[1][4] = list(one.args[1][1])
    yield one


Comparison(
    "encode",
    encode_cases,
    (encode,),
    ("the table of vectors", "the table of vectors after a step of training"),
    use=encode_twice,
)

# ---- Part 4: search

FIRST_INDEX = "Of equal scores, the smaller index comes first: use a stable sort."
FEWER = "A block, or the whole collection, may hold fewer than k vectors."


def search(queries, collection, k, block):
    scores, indices = [], []
    for row in cosine(queries[:, None], collection[None]).tolist():
        order = sorted(range(len(row)), key=lambda place: (-row[place], place))[:k]
        indices.append(order)
        scores.append([row[place] for place in order])
    return torch.tensor(scores, dtype=queries.dtype), torch.tensor(indices)


def search_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, Q, N, D, k, block, dtype=DOUBLE, scale=1.0, hint="") -> Case:
        queries = draw.normal(Q, D, dtype=dtype, scale=scale)
        collection = draw.normal(N, D, dtype=dtype, scale=scale)
        lengths = draw.normal(N, 1, dtype=dtype).exp()  # all vectors have their own
        args = (queries, lengths * collection, k, block)
        return Case(kind, args, hint=hint, gradients=False)

    for dtype, name in FLOATS:
        for block in (1, 2, 3, 5, 7, 100):
            Q, N, D = draw.sizes(3)
            kind = f"vectors in {name}"
            yield case(kind, Q, N, D, draw.randint(1, N), block, dtype)
    for _ in range(3):
        yield case("k larger than a block", 3, 13, 5, 7, 3)
        yield case("k larger than the collection", 2, 5, 6, 9, 3, hint=FEWER)
        yield case("as many hits as vectors", 2, 7, 3, 7, 4)
        yield case("one hit", 5, 11, 3, 1, 4)
        yield case("one query", 1, 11, 3, 3, 4)
        yield case("one vector", 3, 1, 5, 2, 4, hint=FEWER)
        yield case("short vectors", 3, 11, 5, 4, 3, scale=1e-5)
        yield case("long vectors", 3, 11, 5, 4, 3, scale=1e5)
        far = case("vectors that all point away", 2, 11, 3, 4, 3)
        far.args[0][:] = far.args[0].abs()
        far.args[1][:] = -far.args[1].abs()
        yield far
    yield case("a large collection", 3, 1100, 3, 150, 70)
    # cosines of such vectors have no rounding error
    quarters = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, 1], [-1, -1, -1, -1]]
    for signs, words in ((quarters, ""), ([[1], [-1]], "one feature: ")):
        for N, k, block in ((11, 5, 3), (11, 11, 4), (70, 23, 13), (70, 3, 100)):
            for dtype, name in FLOATS:
                lengths = [2.0 ** draw.randint(-3, 3) for _ in range(N)]
                rows = [[x * sign for sign in draw.choice(signs)] for x in lengths]
                given = [
                    torch.tensor(x, dtype=dtype, device=draw.device) for x in (signs, rows)
                ]
                kind = f"{words}cosines of which many are equal, in {name}"
                yield Case(kind, (*given, k, block), hint=FIRST_INDEX, gradients=False)
    for apart in (1e-5, 1e-7, 1e-9):
        angles = [1 + apart * place for place in draw.sample(range(30), 30)]
        collection = torch.tensor(
            [[math.cos(angle), math.sin(angle), 0] for angle in angles], dtype=DOUBLE
        ).to(draw.device)
        queries = torch.tensor([[3, 0, 0], [0, 2, 0]], dtype=DOUBLE, device=draw.device)
        hint = "Scores that differ are not equal, however little: compare them as they are."
        for k, block in ((5, 7), (30, 11)):
            kind = "cosines of which some are nearly equal, in float64"
            yield Case(kind, (queries, collection, k, block), hint=hint, gradients=False)


Comparison("search", search_cases, (search,), ("the table of scores", "the table of indices"))

# ---- Part 5: evaluation

TIES = "Equal numbers share the mean of the ranks that they take up together."
NEAR = "Numbers that differ are not equal, however little: compare them as they are."


def ranked(values) -> list[float]:
    less = (sum(other < value for other in values) for value in values)
    same = (sum(other == value for other in values) for value in values)
    return [x + (y + 1) / 2 for x, y in zip(less, same)]


def ranks(values):
    return torch.tensor(ranked(values.tolist()), dtype=DOUBLE, device=values.device)


def numbers(draw: Draw, N: int, dtype=DOUBLE) -> Iterator[tuple[str, torch.Tensor, str]]:
    """Kinds of numbers to rank, none of them all equal, and a hint where ties count."""
    yield "numbers that all differ", draw.normal(N, dtype=dtype), ""
    for different in (2, 3, N // 2 + 1):
        few = [0, 1] + [draw.randrange(different) for _ in range(N - 2)]
        draw.shuffle(few)
        made = torch.tensor(few, device=draw.device)
        yield "numbers of which some are equal", (made / 7 - 0.2).to(dtype), TIES
    tiny = 1e-30 if dtype == SINGLE else 1e-170
    for size, words in ((tiny, "tiny"), (1e-6, "small"), (1e4, "large"), (1e30, "huge")):
        made = (size * draw.normal(N)).to(dtype)
        yield f"{words} numbers", made, NEAR
    step, order = torch.finfo(dtype).eps, draw.sample(range(N), N)
    for far in (1.0, 300.0, 1e5):
        made = 1 + far * step * torch.tensor(order, dtype=dtype, device=draw.device)
        yield "numbers that are nearly equal", made, NEAR


def rank_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in FLOATS:
        for N in (2, 5, 13, 31):
            for words, made, hint in numbers(draw, N, dtype):
                yield Case(f"{words}, in {name}", (made,), hint=hint, gradients=False)
    for dtype, name in FLOATS:
        made = draw.normal(9, dtype=dtype)
        for place, sign in zip(draw.sample(range(9), 5), (1, -1, 1, -1, -1)):
            made[place] = sign * math.inf
        yield Case(f"infinite numbers, in {name}", (made,), hint=TIES, gradients=False)
    for N in (1, 2, 7):
        made = torch.full((N,), 0.1, dtype=DOUBLE, device=draw.device)
        yield Case("numbers that are all equal", (made,), hint=TIES, gradients=False)
    for dtype in HALVES:
        made = draw.normal(300, dtype=dtype)
        about = {"hint": TIES, "gradients": False, "tolerance": 1e-9}
        yield Case(f"many numbers in {str(dtype)[6:]}", (made,), **about)


Comparison("ranks", rank_cases, (ranks,), ("the tensor of ranks",))


def spearman(x, y):
    parts = []
    for places in (ranked(x.tolist()), ranked(y.tolist())):
        mean = sum(places) / len(places)
        parts.append([place - mean for place in places])
    r, s = parts
    if not any(r) or not any(s):
        raise ValueError
    squares = sum(a * a for a in r) * sum(b * b for b in s)
    return sum(a * b for a, b in zip(r, s)) / math.sqrt(squares)


def spearman_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in FLOATS:
        for N in (2, 3, 7, 40):
            for words, x, hint in numbers(draw, N, dtype):
                y = draw.normal(N, dtype=dtype)
                y = x + y * x.abs().max() if draw.random() < 0.5 else y
                few = (2 * draw.normal(N, dtype=dtype)).round() / 7
                few[:2] = torch.tensor([0.1, 0.2])
                kind = f"{words}, in {name}"
                tolerance = 1e-8 if dtype == DOUBLE else 2e-5
                about = {"hint": hint, "gradients": False, "tolerance": tolerance}
                for args in ((x, y), (y, x), (x, few)):
                    yield Case(kind, args, **about)
    for N in (3, 11):
        for _, near, _ in numbers(draw, N):
            args = (draw.normal(N, dtype=SINGLE), near)
            kind = "x in float32 and y in float64"
            yield Case(kind, args, hint=NEAR, gradients=False)
    for N in (2, 3, 7, 30):
        for value in (0.0, 0.1, -3e7):
            equal = torch.full((N,), value, dtype=DOUBLE, device=draw.device)
            for args in ((equal, draw.normal(N)), (draw.normal(N), equal), (equal, equal)):
                yield Case("numbers that are all equal", args, gradients=False)


Comparison("spearman", spearman_cases, (spearman,), ("the correlation",))

NO_RIGHT = "A query without a right document is worth 0; yours leaves it out of the mean."
FIRST = "Only the first right document of a query counts."
SAME = "A wrong document with the same score stands before the right one; a right one does not."


def mean_reciprocal_rank(scores, relevant):
    total = 0.0
    for row, right in zip(scores.tolist(), relevant.tolist()):
        order = sorted(range(len(row)), key=lambda place: (-row[place], right[place]))
        places = [rank for rank, place in enumerate(order, 1) if right[place]]
        total += 1 / places[0] if places else 0.0
    return total / len(scores)


def reciprocal_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, scores, share=0.3, hint="", none=False) -> Case:
        relevant = draw.mask(*scores.shape, share=share)
        if none:
            relevant[draw.randrange(len(relevant))] = False
        # 1 / rank may be a float32
        return Case(kind, (scores, relevant), hint=hint, gradients=False, tolerance=1e-6)

    for dtype, name in FLOATS:
        for _ in range(6):
            scores = draw.normal(*draw.sizes(2), dtype=dtype)
            yield case(f"one right document, in {name}", scores, share=0.0)
            yield case(f"several right documents, in {name}", scores, hint=FIRST)
            kind = f"a query without a right document, in {name}"
            yield case(kind, scores, hint=NO_RIGHT, none=True)
            few = (2 * scores).round() / 7
            yield case(f"scores of which some are equal, in {name}", few, hint=SAME)
            yield case(f"low scores in {name}", scores - 3e5, share=0.0)
            yield case(f"tiny scores in {name}", 1e-6 * scores, hint=NEAR)
        yield case(f"many documents in {name}", draw.normal(5, 150, dtype=dtype), share=0.0)
        near = [[1e-9 * p for p in draw.sample(range(30), 30)] for _ in range(7)]
        near = torch.tensor(near, dtype=dtype, device=draw.device)
        yield case(f"scores that are nearly equal, in {name}", near, share=0.0, hint=NEAR)
    near = 1 + near.double()  # as far apart as float64 can tell, and float32 cannot
    yield case("scores that are nearly equal, in float64", near, share=0.0, hint=NEAR)
    for Q, N, words in ((1, 6, "one query"), (6, 1, "one document"), (1, 1, "one of each")):
        yield case(words, draw.normal(Q, N))
        yield case(f"{words}, and nothing right", draw.normal(Q, N), hint=NO_RIGHT, none=True)
    yield case("every score the same", torch.full((3, 5), 0.1, device=draw.device), hint=SAME)
    yield case("every document right", draw.normal(3, 5), share=1.0)


Comparison("mean_reciprocal_rank", reciprocal_cases, (mean_reciprocal_rank,), ("the mean",))
