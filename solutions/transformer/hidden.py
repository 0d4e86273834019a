"""Legal inputs of each function and class of assignment 2, and references to compare with.

The references are written from the formulas, head by head and sum by sum where the model
answer multiplies matrices. `course_tools/grading/assignments/comparing.py` runs them.
"""

import math
from collections.abc import Iterator

import torch
from course_tools.grading.assignments.comparing import (
    Case,
    Comparison,
    Draw,
    Misuse,
    filled,
    told,
    with_gradients,
)

DOUBLE, SINGLE = torch.float64, torch.float32
HALVES = (torch.bfloat16, torch.float16)
NAMES = {DOUBLE: "float64", SINGLE: "float32", HALVES[0]: "bfloat16", HALVES[1]: "float16"}
SMALL = (2, 3, 5, 6, 7)


def sizes_of(draw: Draw, *letters: str, times: int = 2) -> Iterator[tuple]:
    """Sizes by what they count, and words: all differ, each is 1 once, all are equal."""
    for _ in range(times):
        yield "sizes that all differ", draw.sample(SMALL, len(letters))
    for place, letter in enumerate(letters):
        sizes = draw.sample(SMALL, len(letters))
        sizes[place] = 1
        yield f"one {letter}", sizes
    yield "one size for everything", [3] * len(letters)


# ---- Part 1: attention

KEYS = "S is the number of keys and of values, E the size of a value; they need not be T and D."
ROW = "exp of a large score is inf: subtract the largest score of the row first."
ONE_QUERY = "D is the size of one query: not of all heads together, not the number of keys."
FILLED = "Fill in -inf before the softmax: -1e9 is not smaller than every score."
LARGE = "exp of a large score is inf: use torch.softmax, which subtracts the largest first."
LETTERS = ("query", "key", "feature", "feature of a value")


def attention(query, key, value, mask=None, cap=None):
    products = query.double().unsqueeze(-2) * key.double().unsqueeze(-3)  # [..., T, S, D]
    scores = products.sum(-1) / math.sqrt(query.shape[-1])
    if cap is not None:
        scores = cap * (1 - 2 / ((2 * scores / cap).exp() + 1))  # tanh
    allowed = torch.ones_like(scores) > 0 if mask is None else mask.expand(scores.shape)
    largest = scores.detach().masked_fill(~allowed, -math.inf).amax(-1, keepdim=True)
    exponentials = torch.where(allowed, scores - largest, -math.inf).exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    output = (weights.unsqueeze(-1) * value.double().unsqueeze(-3)).sum(-2)
    return output.to(query.dtype), weights.to(query.dtype)


def triple(draw: Draw, sizes, lead=(), dtype=DOUBLE, scale=1.0) -> tuple:
    """Queries, keys and values for the sizes T, S, D, E."""
    T, S, D, E = sizes
    query, key = (draw.normal(*lead, n, D, dtype=dtype, scale=scale) for n in (T, S))
    return query, key, draw.normal(*lead, S, E, dtype=dtype)


def hard(draw: Draw, hint: str) -> Iterator[Case]:
    """Scores that are far from each other, or all far from 0 and near each other."""
    for _ in range(3):
        apart, (query, key, value) = (
            triple(draw, draw.sample((2, 3, 5, 6), 4), scale=scale) for scale in (40.0, 1 / 30)
        )
        yield Case("scores that lie far apart", apart, hint=hint)
        yield Case("large scores", (query + 30, key + 30, value), hint=hint)
        yield Case("very negative scores", (query + 30, key - 30, value), hint=hint)
        yield Case("small numbers", (query * 1e-5, key, value))


def loop_cases(draw: Draw) -> Iterator[Case]:
    for few, many, D, E in ((2, 3, 5, 4), (2, 5, 3, 7), (3, 5, 2, 6)):
        yield Case("more keys than queries", triple(draw, (few, many, D, E)), hint=KEYS)
    for dtype in (DOUBLE, SINGLE):
        for words, sizes in sizes_of(draw, *LETTERS):
            given = triple(draw, [min(size, 5) for size in sizes], dtype=dtype)
            yield Case(f"{words}, in {NAMES[dtype]}", given, hint=KEYS)
            yield Case(f"a cap and {words}, in {NAMES[dtype]}", given, {"cap": 0.7})
    yield from hard(draw, ROW)
    given = triple(draw, (3, 5, 2, 6), dtype=SINGLE, scale=12.0)
    yield Case("large scores in float32", given, hint=ROW, tolerance=1e-3)


def matrix_cases(draw: Draw) -> Iterator[Case]:
    for dtype in NAMES:
        B, H = draw.sizes(2)
        for lead, words in (
            ((B, H), "heads side by side"),
            ((), "one sentence"),
            ((B,), "a batch"),
            ((1, 1), "a single head"),
            ((2, 1, 3), "three leading dimensions"),
        ):
            for _ in range(2):
                given, kind = triple(draw, draw.sizes(4), lead, dtype), NAMES[dtype]
                about = {"hint": ONE_QUERY, "gradients": dtype not in HALVES}
                yield Case(f"{words}, in {kind}", given, **about)
                about["kwargs"] = {"cap": draw.choice((0.5, 1.5, 30.0))}
                yield Case(f"a cap, {words}, in {kind}", given, **about)
    for words, sizes in sizes_of(draw, *LETTERS):
        yield Case(words, triple(draw, sizes, (3,)), hint=ONE_QUERY)
    yield Case("many features", triple(draw, (3, 5, 130, 6), (2, 3)), hint=ONE_QUERY)
    states = draw.normal(3, 5, 6)
    yield Case("queries, keys and values that are the same tensor", (states,) * 3)
    yield Case("mask None", (*triple(draw, draw.sizes(4), (3,)), None))
    yield from hard(draw, LARGE)


def masked(draw: Draw, dtype: torch.dtype) -> Iterator[Case]:
    """Masks of each form that broadcasts."""
    for _ in range(2):
        B, H, T, S, D = draw.sample(SMALL, 5)
        for lead, form, words in (
            ((B, H), (B, 1, 1, S), "heads and a mask [B, 1, 1, S]"),
            ((B, H), (B, H, T, S), "heads and a mask of the shape of the scores"),
            ((B, H), (1, 1, T, S), "heads and a mask [1, 1, T, S]"),
            ((B, H), (H, T, S), "a mask for each head"),
            ((B, H), (T, S), "heads and a mask [T, S]"),
            ((B, H), (S,), "heads and a mask [S]"),
            ((), (T, S), "one sentence and a mask [T, S]"),
            ((B,), (B, 1, S), "a batch and a mask [B, 1, S]"),
            ((2, 1, 3), (2, 1, 1, 1, S), "three leading dimensions and a mask"),
        ):
            given, mask = triple(draw, (T, S, D, 4), lead, dtype), draw.mask(*form)
            args, kwargs = ((*given, mask), {}) if len(lead) == 2 else (given, {"mask": mask})
            kind = f"{words}, in {NAMES[dtype]}"
            yield Case(kind, args, kwargs, ONE_QUERY, dtype not in HALVES)
            capped = {**kwargs, "cap": 0.8}
            yield Case(f"a cap, {kind}", args, capped, ONE_QUERY, dtype not in HALVES)


def mask_cases(draw: Draw) -> Iterator[Case]:
    yield from (case for dtype in (DOUBLE, SINGLE) for case in masked(draw, dtype))
    for share, words in ((0.0, "one allowed position for each query"), (1.0, "all allowed")):
        yield Case(words, (*triple(draw, (5, 7, 3, 6)), draw.mask(5, 7, share=share)))
    for dtype, name in NAMES.items():
        huge = 4e4 if name == "float16" else 4e9
        for size, words, hint in ((-huge, "very negative", FILLED), (huge, "huge", LARGE)):
            for S in (3, 6, 7):
                query, key = (draw.normal(n, 1, dtype=dtype) * 0 for n in (1, S))
                key[:-1] = 1.0
                args = (query + size, key, draw.normal(S, 2, dtype=dtype), key.mT != 0)
                kind = f"scores that are {words}, and 0 where masked, in {name}"
                yield Case(kind, args, hint=hint, gradients=dtype not in HALVES)
    yield from (case for dtype in HALVES for case in masked(draw, dtype))


def attention_by_loops(query, key, value, cap=None):
    return attention(query, key, value, cap=cap)[0]


OUTPUTS = ("the output", "the table of weights")
Comparison("attention_by_loops", loop_cases, (attention_by_loops,), OUTPUTS[:1])
Comparison("attention", matrix_cases, (attention,), OUTPUTS)
Comparison("attention_mask", mask_cases, (attention,), OUTPUTS, "attention", exact_zeros=True)

# ---- Part 2: multi-head attention

HEADS = ("sentence", "position", "head", "feature for each head")


def split_heads(hidden, num_heads, dealt=False):
    size = hidden.shape[-1] // num_heads
    if dealt:
        return torch.stack([hidden[:, :, h::num_heads] for h in range(num_heads)], 1)
    heads = [hidden[:, :, h * size : (h + 1) * size] for h in range(num_heads)]
    return torch.stack(heads, 1)


def merge_heads(heads, dealt=False):
    if dealt:
        return torch.cat([heads[..., n].mT for n in range(heads.shape[-1])], -1)
    return torch.cat([heads[:, h] for h in range(heads.shape[1])], -1)


def split_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in NAMES.items():
        for words, (B, T, H, N) in sizes_of(draw, *HEADS):
            hidden = draw.normal(B, T, H * N, dtype=dtype)
            yield Case(f"{words}, in {name}", (hidden, H))
            yield Case(f"features dealt out and {words}, in {name}", (hidden, H, True))
            swapped = draw.normal(T, B, H * N, dtype=dtype).transpose(0, 1)
            yield Case("states whose dimensions were swapped", (swapped, H))


def merge_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in NAMES.items():
        for words, (B, T, H, N) in sizes_of(draw, *HEADS):
            heads = draw.normal(B, H, T, N, dtype=dtype)
            yield Case(f"{words}, in {name}", (heads,))
            yield Case(f"features dealt out and {words}, in {name}", (heads, True))
            swapped = draw.normal(B, T, H, N, dtype=dtype).transpose(1, 2)
            yield Case("heads whose dimensions were swapped", (swapped,))


Comparison("split_heads", split_cases, (split_heads,), ("the table of heads",))
Comparison("merge_heads", merge_cases, (merge_heads,), ("the table of merged heads",))

GRADIENTS = (
    "the list of gradients with respect to what goes in",
    "the list of gradients with respect to the parameters",
)


def in_full(module, inputs, call) -> tuple:
    """What a call gives, and gradients with respect to inputs and to parameters."""

    def kept(*leaves):
        handed = [leaf * 1 for leaf in leaves]
        outputs = call(*handed)
        if told(handed) != told([*leaves]):
            name = type(module).__name__
            raise Misuse(f"{name} must leave its input as it was; yours changes it.")
        return outputs

    outputs, gradients = with_gradients(module, kept, *inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return *outputs, gradients[: len(inputs)], gradients[len(inputs) :]


class MultiHeadAttention(torch.nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("query", "key", "value", "output"):
            setattr(self, f"to_{name}", torch.nn.Linear(dim, dim))

    def forward(self, query, key, value, mask=None, active=None):
        mixed, tables, size = [], [], query.shape[-1] // self.num_heads
        layers = (self.to_query, query), (self.to_key, key), (self.to_value, value)
        for h in range(self.num_heads):
            own = slice(h * size, (h + 1) * size)
            of_head = [x @ layer.weight[own].T + layer.bias[own] for layer, x in layers]
            output, weights = attention(*of_head, mask)
            output = output * (1.0 if active is None else active[h])
            mixed.append(output @ self.to_output.weight[:, own].T)
            tables.append(weights)
        return sum(mixed) + self.to_output.bias, torch.stack(tables, 1)


def attend(kind, num_heads, inputs, mask=(), twice=False, **active):
    """Make a module, and let it attend: inputs are query, key and value, or fewer."""
    module = filled(kind(inputs[0].shape[-1], num_heads), 31, inputs[0].dtype, inputs[0].device)

    def call(*leaves):
        given = (leaves[0], *(leaves[1:] or leaves)[:1], leaves[-1])
        if twice:
            with torch.no_grad():
                module(*given)
                for parameter in module.parameters():
                    parameter.mul_(0.5)
        return module(*given, *mask, **active)

    return in_full(module, inputs, call)


def look(kind, num_heads, query, key, mask, *active):
    """Where a module attends, and where its output depends on keys that nobody may see."""
    module = filled(kind(query.shape[-1], num_heads), 32, query.dtype, query.device)
    changed = key + 5 * (~mask.any(1)).unsqueeze(-1)
    output, weights = module(query, key, key, mask, *active)
    moved = module(query, changed, changed, mask, *active)[0] - output
    return weights > 0, moved.abs() > 1e-4


OWN = "Query, key and value may be three different tensors: each goes through its own matrix."
PLACE = "Put the axis of the heads at place 1, so that the mask holds for every head."


def multi_head_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, sizes, count=3, dtype=DOUBLE, scale=1.0, hint=OWN, **about) -> Case:
        B, T, S, H, N = sizes
        shapes = [(B, n, H * N) for n in (T, S, S)[:count]]
        inputs = [draw.normal(*shape, dtype=dtype, scale=scale) for shape in shapes]
        return Case(kind, (H, inputs), about, hint)

    yield case("three different tensors of one length", (3, 5, 5, 2, 3))
    letters = ("sentence", "query", "key", "head", "feature for each head")
    for words, sizes in sizes_of(draw, *letters):
        yield case(f"three different tensors and {words}", sizes)
        active = draw.mask(sizes[3], share=0.5)
        yield case(f"heads that do not work and {words}", sizes, active=active, hint="")
    for dtype, name in ((DOUBLE, "float64"), (SINGLE, "float32")):
        yield case(f"three different tensors in {name}", draw.sample(SMALL, 5), 3, dtype)
        yield case(f"keys that are the values, in {name}", draw.sample(SMALL, 5), 2, dtype)
        yield case(f"self-attention in {name}", draw.sample(SMALL, 5), 1, dtype)
    for scale, words in ((1e-6, "small numbers"), (30.0, "large numbers")):
        yield case(words, draw.sample(SMALL, 5), scale=scale)
    for dtype in HALVES:
        sizes, kind = draw.sample(SMALL, 5), f"heads that do not work, in {str(dtype)[6:]}"
        active = draw.mask(sizes[3], share=0.5)
        yield case(kind, sizes, 1, dtype, 0.3, hint="", active=active)
    yield case("mask None", draw.sample(SMALL, 5), mask=(None,))
    sizes = draw.sample(SMALL, 5)
    none = torch.zeros(sizes[3], device=draw.device) > 0
    yield case("no head that works", sizes, active=none, hint="")
    kind = "weights that were changed between two calls with the same tensors"
    yield case(kind, draw.sample(SMALL, 5), hint="", twice=True)


def multi_head_masks(draw: Draw) -> Iterator[Case]:
    for sizes, words in (
        (draw.sample(SMALL, 5), "sizes that all differ"),
        ((4, 4, 4, 4, 2), "one size for sentences, positions and heads"),
        ((2, 3, 3, 2, 3), "as many sentences as heads"),
        ((3, 5, 5, 2, 3), "as many queries as keys"),
        ((3, 1, 5, 2, 3), "one query"),
        ((1, 5, 6, 3, 2), "one sentence"),
        ((3, 5, 6, 1, 4), "one head"),
    ):
        for dtype in (DOUBLE, SINGLE):
            B, T, S, H, N = sizes
            shapes = (B, T, H * N), (B, S, H * N)  # small numbers: no weight is 0 unmasked
            query, key = (draw.normal(*shape, dtype=dtype, scale=0.3) for shape in shapes)
            for rows, kind in ((1, "a mask [B, 1, S]"), (T, "a mask [B, T, S]")):
                args = (H, query, key, draw.mask(B, rows, S, share=0.5))
                yield Case(f"{kind} and {words}", args, hint=PLACE)
                args = (*args, draw.mask(H, share=0.5))
                yield Case(f"heads that do not work, {kind} and {words}", args, hint=PLACE)


KIND = (MultiHeadAttention,)
SEEN = ("where the weights are above 0", "where the output depends on masked keys")
Comparison("MultiHeadAttention", multi_head_cases, KIND, (*OUTPUTS, *GRADIENTS), use=attend)
Comparison("multi_head_mask", multi_head_masks, KIND, SEEN, "MultiHeadAttention", use=look)

# ---- Part 3: masks


def padding_mask(lengths, size, left=False):
    rows = [
        [[place < n for place in range(size)][:: -1 if left else 1]] for n in lengths.tolist()
    ]
    return torch.tensor(rows, device=lengths.device)


def causal_mask(size, device=None, window=None):
    seen = size if window is None else window
    rows = [[t - seen < s <= t for s in range(size)] for t in range(size)]
    return torch.tensor(rows, device=device)


def decoder_mask(lengths, size, window=None):
    seen = size if window is None else window
    rows = [
        [[t - seen < s <= t and s < n for s in range(size)] for t in range(size)]
        for n in lengths
    ]
    return torch.tensor(rows, device=lengths.device)


LONGEST = "The size may be more than the longest sentence."


def length_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in ((torch.int64, "int64"), (torch.int32, "int32")):
        for words, least, most, size, count in (
            ("sentences of different lengths", 1, 7, 7, 5),
            ("a size above the longest sentence", 1, 6, 11, 3),
            ("sentences of one length", 3, 3, 6, 4),
            ("one sentence", 1, 5, 6, 1),
            ("sentences of one word", 1, 1, 1, 3),
            ("many sentences", 1, 5, 5, 23),
        ):
            for _ in range(2):
                lengths = [draw.randint(least, most) for _ in range(count - 1)] + [most]
                given = torch.tensor(lengths, device=draw.device, dtype=dtype)
                yield Case(f"{words}, in {name}", (given, size), hint=LONGEST)


def long_cases(draw: Draw) -> Iterator[Case]:
    yield from length_cases(draw)
    for case in list(length_cases(draw)):
        yield Case(f"the filling on the left and {case.kind}", case.args, {"left": True})
    lengths = torch.tensor([3, 1100], device=draw.device)
    yield Case("a long sentence", (lengths, 1103), hint=LONGEST)


def causal_cases(draw: Draw) -> Iterator[Case]:
    for size in (1, 2, 3, 6, 7, 13, 70):
        words = "one position" if size == 1 else "several positions"
        yield Case(words, (size, draw.device))
        yield Case(f"{words} and no device", (size,))
        for window in {1, 2, 3, size, size + 2}:
            yield Case(f"{words} and a window", (size, draw.device, window))
    yield Case("many positions", (530, draw.device))


def both_cases(draw: Draw) -> Iterator[Case]:
    yield from length_cases(draw)
    for case in list(length_cases(draw)):
        window = {"window": draw.randint(1, 5)}
        yield Case(f"a window and {case.kind}", case.args, window)


Comparison("padding_mask", long_cases, (padding_mask,), ("the mask",))
Comparison("causal_mask", causal_cases, (causal_mask,), ("the mask",))
Comparison("decoder_mask", both_cases, (decoder_mask,), ("the mask",))

# ---- Part 4: positions

DEFAULT = "The base is 10,000 unless another is given."
TYPE = "embed must keep the dtype of the embedding, and use no more than its T positions."


def positional_encoding(length, dim, base=10000.0, first=0):
    rows = []
    for k in range(first, first + length):
        angles = [k / base ** (2 * i / dim) for i in range(dim // 2)]
        rows.append([f(angle) for angle in angles for f in (math.sin, math.cos)])
    return torch.tensor(rows)


def on_the_cpu(function, device, *args):
    """Call it; the table comes on the CPU, whichever device the notebook uses."""
    table = function(*args)
    if isinstance(table, torch.Tensor) and table.device.type != "cpu":
        raise Misuse("positional_encoding must return a table on the CPU.")
    return table.to(device) if isinstance(table, torch.Tensor) else table


def position_cases(draw: Draw) -> Iterator[Case]:
    for words, length, dim, tolerance in (
        ("some positions", 11, 6, 1e-4),
        ("some positions", 40, 10, 1e-4),
        ("one position", 1, 6, 1e-4),
        ("two features", 25, 2, 1e-4),
        ("more features than positions", 3, 34, 1e-4),
        ("hundreds of positions", 701, 6, 1e-3),
        ("thousands of positions", 5003, 2, 1e-3),
    ):
        args, kind = (draw.device, length, dim), f"{words} and no base"
        yield Case(kind, args, hint=DEFAULT, tolerance=tolerance)
        for base in (100.0, 2.5, 1e6, 10000.0) if length < 100 else ():
            yield Case(f"{words} and another base", (*args, base), tolerance=tolerance)
            given, kind = (*args, base, draw.randint(1, 9)), f"{words}, not from 0 on"
            yield Case(kind, given, tolerance=tolerance)


def embed(tokens, embedding):
    table = positional_encoding(tokens.shape[1], embedding.shape[1]).to(embedding)
    rows = [torch.stack([embedding[token] for token in row.tolist()]) for row in tokens]
    return torch.stack(rows) * embedding.shape[1] ** 0.5 + table


def embed_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, sizes, dtype=DOUBLE, scale=1.0, tolerance=1e-5) -> Case:
        B, T, V, D = sizes
        tokens = [[draw.randrange(V) for _ in range(T)] for _ in range(B)]
        table = draw.normal(V, D, dtype=dtype, scale=scale)
        args = torch.tensor(tokens, device=draw.device), table
        exact = dtype not in HALVES
        return Case(kind, args, {}, TYPE, exact, tolerance if exact else 0.0)

    for dtype, name in NAMES.items():
        for D in (2, 6, 10):
            yield case(f"sizes that all differ, in {name}", (*draw.sizes(3), D), dtype)
            yield case(f"words that come again, in {name}", (3, 7, 2, D), dtype)
    for words, (B, T, V, D) in sizes_of(draw, "sentence", "position", "word", "pair"):
        for scale, size in (
            (1.0, ""),
            (1e-6, " and tiny embeddings"),
            (1e4, " and large ones"),
        ):
            yield case(f"{words}{size}", (B, T, V, 2 * D), scale=scale)
    yield case("hundreds of words", (1, 530, 7, 2), tolerance=3e-4)
    yield case("thousands of words", (1, 5003, 7, 2), tolerance=1e-3)


TABLE = ("the table",)
KIND = (positional_encoding,)
Comparison("positional_encoding", position_cases, KIND, TABLE, use=on_the_cpu)
Comparison("embed", embed_cases, (embed,), TABLE)

# ---- Part 5: layer norm


class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5, centred=True):
        super().__init__()
        self.eps, self.centred = eps, centred
        self.gain = torch.nn.Parameter(torch.ones(dim))
        self.offset = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, hidden):
        x, D = hidden.double(), hidden.shape[-1]
        apart = x - x.sum(-1, keepdim=True) / D if self.centred else x
        deviation = ((apart**2).sum(-1, keepdim=True) / D + self.eps) ** 0.5
        return (apart / deviation * self.gain + self.offset).to(hidden.dtype)


def norm_filled(kind, hidden, *eps):
    module = filled(kind(hidden.shape[-1], *eps), 51, hidden.dtype, hidden.device)
    found = in_full(module, [hidden], module)
    return (found[0], [], []) if hidden.dtype in HALVES else found


def norm_as_made(kind, hidden, **centred):
    module = kind(hidden.shape[-1], **centred).to(hidden)
    output, (gradient,), _ = in_full(module, [hidden], module)
    return output, gradient.isfinite()


def norm_cases(draw: Draw) -> Iterator[Case]:
    B, H, T, D = draw.sizes(4)
    D += 3  # of three, some rows vary so little that rounding decides the gradient
    for dtype, name in NAMES.items():
        for form in ((B, T, D), (T, D), (D,), (B, H, T, D), (2, B, 1, T, D)):
            kind = f"{len(form)} dimension{'s' * (len(form) > 1)} in {name}"
            yield Case(kind, (3 * draw.normal(*form, dtype=dtype) + 2,))
    for D, words in ((1, "one feature"), (2, "two features")):
        yield Case(words, (draw.normal(B, T, D),))
    for scale, words in ((1e-3, "small"), (1e-6, "tiny"), (1e4, "large")):
        hidden = draw.normal(3, 5, 7, scale=scale)
        yield Case(f"{words} features", (hidden,))
        for eps in (0.5, 1e-3, 1e-12):
            yield Case(f"{words} features and another eps", (hidden, eps))
            yield Case(f"{words} features that are not centred", (hidden, eps, False))
    far = draw.normal(3, 5, 7)
    yield Case("features far from 0", (far + 1e5,))
    yield Case("features far from 0, in float32", (far.float() + 1e3,), tolerance=1e-3)
    outlier = draw.normal(3, 5, 53, scale=0.1)
    outlier[..., 7] = 20.0
    yield Case("one feature that is much larger than all others", (outlier,))


def equal_cases(draw: Draw) -> Iterator[Case]:
    hint = "Without eps under the root, 0 is divided by 0, and the root of 0 has no gradient."
    for dtype in (DOUBLE, SINGLE):
        for form in ((1, 2, 4), (5,), (3, 5, 6), (2, 3, 5, 7)):
            hidden = draw.normal(*form[:-1], 1, dtype=dtype).round().expand(form).clone()
            yield Case("features that are all equal", (hidden,), hint=hint)
            raw = hidden, {"centred": False}
            yield Case("equal features that are not centred", raw[:1], raw[1])


FINITE = ("the norm", "where the gradient is a finite number")
KIND = (LayerNorm,)
Comparison("LayerNorm", norm_cases, KIND, ("the norm", *GRADIENTS), use=norm_filled)
Comparison("equal_features", equal_cases, KIND, FINITE, "LayerNorm", use=norm_as_made)

# ---- Part 6: the encoder block


class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden_dim, gated=False):
        super().__init__()
        self.inner = torch.nn.Linear(dim, hidden_dim)
        self.outer = torch.nn.Linear(hidden_dim, dim)
        self.gate = torch.nn.Linear(dim, hidden_dim) if gated else None

    def forward(self, hidden):
        total = self.outer.bias
        for h, bias in enumerate(self.inner.bias):  # one hidden unit after the other
            unit = (hidden * self.inner.weight[h]).sum(-1, keepdim=True) + bias
            gate = unit
            if self.gate is not None:
                gate = (hidden * self.gate.weight[h]).sum(-1, keepdim=True) + self.gate.bias[h]
            through = unit if self.gate is not None else 1.0
            total = total + torch.where(gate > 0, gate, 0.0) * through * self.outer.weight[:, h]
        return total


def feed(kind, hidden_dim, hidden, biases=1.0, **gated):
    module = kind(hidden.shape[-1], hidden_dim, **gated)
    filled(module, 61, hidden.dtype, hidden.device)
    with torch.no_grad():
        module.inner.bias.mul_(biases)
        module.outer.bias.mul_(biases)
    return in_full(module, [hidden], module)


def network_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in ((DOUBLE, "float64"), (SINGLE, "float32")):
        B, H, T, D, F = draw.sizes(5)
        for form in ((B, T, D), (T, D), (D,), (B, H, T, D)):
            kind = f"{len(form)} dimension{'s' * (len(form) > 1)} in {name}"
            yield Case(kind, (F, draw.normal(*form, dtype=dtype)))
            given = F, draw.normal(*form, dtype=dtype)
            yield Case(f"a gate and {kind}", given, {"gated": True})
        for words, (B, T, D, F) in sizes_of(draw, *HEADS[:2], "feature", "hidden unit"):
            yield Case(f"{words}, in {name}", (F, draw.normal(B, T, D, dtype=dtype)))
    for _ in range(2):
        yield Case("large features", (7, draw.normal(3, 5, 6, scale=1e4)))
        yield Case("tiny features", (7, draw.normal(3, 5, 6, scale=1e-5), 1e-5))


WORDS = ("the output of the network", *GRADIENTS)
Comparison("FeedForward", network_cases, (FeedForward,), WORDS, use=feed)


class Attention(torch.nn.Module):
    """Stands for the attention of a block: without weights to learn."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, query, key, value, mask=None):
        return attention(query @ self.own[0], key @ self.own[1], value @ self.own[2], mask)


def parts_of(hidden) -> Iterator[tuple]:
    """A part for each name that a block has, each another function."""
    random, D = torch.Generator().manual_seed(71), hidden.shape[-1]
    for name in ("self_attention", "cross_attention"):
        yield name, Attention(torch.randn(3, D, D, generator=random, dtype=DOUBLE).to(hidden))
    # layers of torch: where they are used, they run
    yield "attention_norm", torch.nn.Tanh()
    yield "self_norm", torch.nn.Softsign()
    yield "cross_norm", torch.nn.Mish()
    yield "feed_forward", torch.nn.LogSoftmax(-1)
    yield "feed_forward_norm", torch.nn.ELU()


class EncoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, hidden, mask=None):
        found = self.self_attention(hidden, hidden, hidden, mask)[0]
        A = self.attention_norm(found + hidden * self.alpha)
        return self.feed_forward_norm(self.feed_forward(A) + A * self.alpha)


class DecoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, hidden, memory, mask=None, memory_mask=None):
        found = self.self_attention(hidden, hidden, hidden, mask)[0]
        A = self.self_norm(found + hidden * self.alpha)
        found = self.cross_attention(A, memory, memory, memory_mask)[0]
        C = self.cross_norm(found + A * self.alpha)
        return self.feed_forward_norm(self.feed_forward(C) + C * self.alpha)


def wire(kind, inputs, *masks, alpha=(), twice=False, **named):
    """Use a block with parts that are given instead of its own, also for other tensors first."""
    block = kind(inputs[0].shape[-1], 1, 4, *alpha)
    for name, part in parts_of(inputs[0]):
        if len(inputs) == 2 or name not in ("cross_attention", "cross_norm", "self_norm"):
            setattr(block, name, part)
    if twice:
        block(*(2 * x for x in inputs), *masks, **named)
    return in_full(block, inputs, lambda *given: block(*given, *masks, **named))[:2]


def encoder_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in ((DOUBLE, "float64"), (SINGLE, "float32")):
        for words, (B, T, D) in sizes_of(draw, *HEADS[:2], "feature", times=1):
            hidden, words = [draw.normal(B, T, D, dtype=dtype)], f"{words} in {name}"
            yield Case(f"{words} and no mask", (hidden,))
            yield Case(f"{words} and a mask [B, 1, T]", (hidden, draw.mask(B, 1, T)))
            rows = {"mask": draw.mask(B, T, T)}
            yield Case(f"{words} and a mask [B, T, T]", (hidden,), rows)
            yield Case(f"{words} and another alpha", (hidden,), {"alpha": (1.7,), **rows})
    yield Case("mask None", (hidden, None))


# ---- Part 7: the decoder block


def decoder_inputs(draw: Draw) -> Iterator[tuple]:
    letters = ("sentence", "written word", "source position", "feature")
    for words, (B, T, S, D) in sizes_of(draw, *letters, times=1):
        for dtype in (DOUBLE, SINGLE)[: 2 if words.startswith("sizes") else 1]:
            inputs = [draw.normal(B, n, D, dtype=dtype) for n in (T, S)]
            yield f"{words} in {NAMES[dtype]}", inputs, (B, T, S)


def decoder_cases(draw: Draw) -> Iterator[Case]:
    for words, inputs, _ in decoder_inputs(draw):
        yield Case(f"{words} and no mask", (inputs,))
        yield Case(f"{words} and another alpha", (inputs,), {"alpha": (1.7,)})
    yield Case("masks that are None", (inputs, None, None))
    yield Case("tensors of a size that came before", (inputs,), {"twice": True})


def decoder_masks(draw: Draw) -> Iterator[Case]:
    for words, inputs, (B, T, S) in decoder_inputs(draw):
        causal = torch.ones(B, T, T, device=draw.device).tril() > 0
        own, source = draw.mask(B, T, T, share=0.5), draw.mask(B, 1, S, share=0.5)
        yield Case(f"{words} and both masks", (inputs, causal, source))
        yield Case(f"{words} and mask alone", (inputs, own))
        yield Case(f"{words} and memory_mask alone", (inputs,), {"memory_mask": source})
        other = {"mask": draw.mask(B, 1, T), "memory_mask": draw.mask(B, T, S, share=0.5)}
        yield Case(f"{words} and masks of the other form", (inputs,), other)
        other["alpha"] = (0.6,)
        yield Case(f"{words}, both masks and another alpha", (inputs,), other)


BLOCK, KIND = ("what the block returns", GRADIENTS[0]), (DecoderBlock,)
Comparison("EncoderBlock", encoder_cases, (EncoderBlock,), BLOCK, use=wire)
Comparison("DecoderBlock", decoder_cases, KIND, BLOCK, use=wire)
Comparison("decoder_masks", decoder_masks, KIND, BLOCK, "DecoderBlock", use=wire)

# ---- Part 8: greedy decoding


class Model:
    """A model of few words: which is best depends on the source and on all words written.

    Both add up to the number of a row in a table of scores. It refuses to read a source
    again, and to write on when all have ended.
    """

    __module__ = "__main__"  # as what a test writes: else no method crosses the bridge

    def __init__(self, table, by_place, bos: int, eos: int, most: int, sources: int) -> None:
        self.table, self.by_place, self.bos, self.eos = table, by_place, bos, eos
        self.most, self.sources, self.encoded = most, sources, 0
        self.rows, self.places = table.double().tolist(), by_place.double().tolist()

    def encode(self, source, lengths):
        self.encoded += len(source)
        if self.encoded > self.sources:
            raise Misuse("The source does not change: encode it once, before the loop.")
        places = torch.arange(source.shape[1], device=source.device)
        words = torch.where(places < lengths[:, None], source, 0)
        return torch.stack([words * (2 * places + 3), words], -1).to(self.table)

    def decode(self, target, memory, lengths):
        if target.dim() != 2 or not len(target) == len(memory) == len(lengths):
            raise Misuse("decode needs a target [B, T] with one row for each source.")
        if (target[:, 0] != self.bos).any():
            raise Misuse("The target must begin with bos and hold all words written so far.")
        first = memory[:, :, 0].sum(1).long() + 7 * lengths
        if all(map(self.ended, first.tolist(), target[:, 1:].tolist())):
            raise Misuse("All sentences have ended by then. Stop when each has written eos.")
        places = torch.arange(target.shape[1], device=target.device)
        row = first[:, None] + (target * (places + 2)).cumsum(1)
        return self.table[row % len(self.table)] + self.by_place[: target.shape[1]]

    def ended(self, first: int, words: list[int]) -> bool:
        """Whether these are the best words, and eos is among them."""
        text = self.text(first)
        return self.eos in text and words[: len(text)] == text

    def text(self, first: int) -> list[int]:
        """The best words, with eos if it comes, for a source's number."""
        words = [self.bos]
        while self.eos not in words[1:] and len(words) <= self.most:
            row = first + sum((place + 2) * word for place, word in enumerate(words))
            pairs = zip(self.rows[row % len(self.rows)], self.places[len(words) - 1])
            scores = [score + more for score, more in pairs]
            words.append(scores.index(max(scores)))
        return words[1:]


for method in (Model.encode, Model.decode):
    method.__module__ = "__main__"


def greedy_decode(model, source, lengths, bos, eos, max_length):
    found = []
    for row, length in zip(source.tolist(), lengths.tolist()):
        sums = ((2 * place + 3) * word for place, word in enumerate(row[:length]))
        found.append([word for word in model.text(sum(sums) + 7 * length) if word != eos])
    return found


def greedy_case(draw: Draw, kind: str, B: int, most: int, hint: str = "", **about) -> Case:
    """A random model and sources; `at` says which word is best at which place."""
    V, S = draw.randint(7, 12), draw.randint(3, 7)
    bos, eos, other = draw.sample(range(1 if "at" in about else 0, V), 3)
    bos, eos = (bos, eos) if B == 1 else (0, 1)
    table = draw.normal(101, V, scale=about.get("scale", 1.0)) + about.get("far", 0.0)
    by_place = torch.zeros(most + 9, V, dtype=DOUBLE, device=draw.device)
    by_place[:, eos] = about.get("end", -0.5)
    named = {"bos": bos, "eos": eos, "other": other, "0": 0}
    for place, word in about.get("at", {}).items():
        by_place[place] = 0.0
        by_place[place, named[word]] = 99.0
    lengths = [draw.randint(1, S) for _ in range(B)]
    source = [[draw.randrange(1, 50) for _ in range(S)] for _ in range(B)]
    source[-1], lengths[-1] = source[0], lengths[0]
    given = (torch.tensor(numbers, device=draw.device) for numbers in (source, lengths))
    dtype = about.get("dtype", SINGLE)
    model = Model(table.to(dtype), by_place.to(dtype), bos, eos, most, B)
    return Case(kind, (model, *given, bos, eos, most), {}, hint, False)


def word_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, most: int, **about) -> Case:
        return greedy_case(draw, kind, 1, most, **about)

    for _ in range(3):
        yield case("one sentence", 12)
        yield case("one sentence and scores in float64", 12, dtype=DOUBLE)
    for _ in range(2):
        yield case("a sentence that ends at once", 9, at={0: "eos"})
        yield case("a sentence in which bos comes again", 9, at={2: "bos"}, end=-2.0)
        words = {0: "0", 2: "0", 5: "eos"}
        yield case("a sentence with word 0 in it", 9, at=words, end=-99.0)
        yield case("scores far above 0", 9, far=1000.0)
        yield case("scores far below 0", 9, far=-1000.0)
        yield case("scores that nearly tie", 9, far=5.0, scale=1e-4, end=0.0)
        about = {"far": 5.0, "scale": 1e-9, "end": 0.0, "dtype": DOUBLE}
        yield case("scores that nearly tie, in float64", 9, **about)
        yield case("tiny scores", 9, scale=1e-9, end=0.0)
    repeated = dict.fromkeys(range(14), "other")
    yield case("one word that comes again and again", 25, at=repeated)
    hint = "eos counts as one of the max_length words."
    for most in (1, 2, 5, 75):
        yield case("a sentence without an end", most, end=-99.0, hint=hint)
    for most in (1, 2, 5):
        kind = "a sentence that ends with the last word allowed"
        yield case(kind, most, end=-99.0, at={most - 1: "eos"}, hint=hint)


def batch_cases(draw: Draw) -> Iterator[Case]:
    hint = "Cut each sentence at its own first eos, and go on until all have ended."
    for words, most, end in (
        ("sentences of different lengths", 12, -0.5),
        ("sentences that mostly end soon", 9, 1.5),
        ("sentences that mostly have no end", 6, -1.5),
    ):
        for B in (2, 3, 5):
            yield greedy_case(draw, words, B, most, hint, end=end)
    yield greedy_case(draw, "sentences that all end at once", 3, 9, hint, at={0: "eos"})


FOUND, KIND = ("the list of translations",), (greedy_decode,)
Comparison("greedy_decode", word_cases, KIND, FOUND)
Comparison("greedy_batch", batch_cases, KIND, FOUND, "greedy_decode")
