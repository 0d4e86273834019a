"""Legal inputs of each function and class of assignment 4, and references to compare with.

The references are written from the formulas. Their classes have the parts of the student's
under the same names, so both can be filled with the same numbers.
`course_tools/grading/assignments/comparing.py` runs them.
"""

import functools
import math
from collections.abc import Iterator
from types import SimpleNamespace

import torch
from course_tools.grading.assignments.comparing import (
    Case,
    Comparison,
    Draw,
    Misuse,
    filled,
    with_gradients,
)

DOUBLE, SINGLE = torch.float64, torch.float32
PRECISIONS = ((DOUBLE, "float64", 0.0), (SINGLE, "float32", 1e-4))
BertConfig = SimpleNamespace  # of the references; students' classes get the notebook's
NAMES = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size"
NAMES = f"{NAMES} max_position_embeddings type_vocab_size dropout layer_norm_eps".split()


def small(**changes) -> dict:
    """Sizes of a small model that all differ."""
    return dict(zip(NAMES, (17, 6, 2, 3, 7, 13, 2, 0.1, 1e-12))) | changes


# ---- Part 1: one sequence of two segments


def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    """Of all that has room, keep what is most even; the first segment may be longer by 1."""
    segments = [first] if second is None else [first, second]
    extra = [sep_id] * (between - 1) * (second is not None)
    room = max_length - 1 - len(segments) - len(extra)
    kept = [min(len(first), room)]
    if second is not None:
        kept = [len(first), len(second)]
        if sum(kept) > room:
            pairs = [(a, room - a) for a in range(len(first) + 1) if a <= room]
            legal = [(a, b) for a, b in pairs if b <= len(second)]
            kept = min(legal, key=lambda pair: (abs(pair[0] - pair[1]), pair[1]))
    positions = [(cls_id, 0)]
    for number, (segment, size) in enumerate(zip(segments, kept)):
        closing = [sep_id, *(extra if number == 0 else ())]
        positions += [(token, number) for token in [*segment[:size], *closing]]
    return [token for token, _ in positions], [number for _, number in positions]


SPECIAL = "Use the numbers that are passed in; an id among the words may be equal to sep_id."
EMPTY = "Only second=None says that there is one segment; an empty list is a segment, too."


def words(draw: Draw, count: int) -> list[int]:
    return [draw.randint(200, 900) for _ in range(count)]


def pair_cases(draw: Draw) -> Iterator[Case]:
    for special in ({}, {"cls_id": 1, "sep_id": 2}, {"cls_id": 0, "sep_id": 31000}):
        end = ", and other special ids" if special else ""
        for _ in range(2):
            a, b = draw.sizes(2)
            for kind, args in (
                ("two segments", (words(draw, a), words(draw, b))),
                ("one segment", (words(draw, a),)),
                ("second None", (words(draw, a), None)),
                ("one token in each segment", (words(draw, 1), words(draw, 1))),
                ("one token and many", (words(draw, 1), words(draw, b))),
                ("many tokens and one", (words(draw, a), words(draw, 1))),
                ("many tokens", (words(draw, 40), words(draw, 40))),
            ):
                yield Case(f"{kind}{end}", args, special, hint=SPECIAL)
                more = {**special, "between": draw.randint(2, 4)}
                yield Case(f"more than one [SEP] between, {kind}{end}", args, more)
            for args in (([], words(draw, b)), (words(draw, a), []), ([], []), ([],)):
                yield Case(f"an empty segment{end}", args, special, hint=EMPTY)
        cls_id, sep_id = special.get("cls_id", 101), special.get("sep_id", 102)
        for _ in range(2):
            first, second = (
                draw.choices([cls_id, sep_id, 5, 7], k=size) for size in draw.sizes(2)
            )
            for args in ((first, second), (second, first), (first,), (first, first)):
                kind = f"special ids among the words{end}"
                yield Case(kind, args, special, hint=SPECIAL)


def truncate_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, a: int, b: int | None, most: int | None) -> Case:
        args = words(draw, a), None if b is None else words(draw, b)
        limit = {} if most is None else {"max_length": most}
        single = "A single segment needs room for [CLS] and one [SEP]." if b is None else ""
        return Case(kind, args, limit, hint=single)

    for _ in range(2):
        a, b = sorted(draw.sizes(2))
        yield case("a sequence that just fits", a, b, a + b + 3)
        yield case("one token too many", a, b, a + b + 2)
        yield case("one token too many", b, a, a + b + 2)
        yield case("a first segment much longer", 9 * b, a, 2 * a + 7)
        yield case("a second segment much longer", a, 9 * b, 2 * a + 7)
        for most in range(3, a + b + 3):
            yield case("less room than tokens", a, b, most)
            yield case("less room than tokens", b, a, most)
        yield case("segments of one length", a, a, a + draw.randint(3, a))
        yield case("one segment and less room", b, None, draw.randint(3, b + 1))
        yield case("one segment that just fits", b, None, b + 2)
        yield case("one segment and room for special tokens alone", b, None, 2)
        yield case("two segments and room for special tokens alone", a, b, 3)
        yield case("an empty segment", 0, b, b)
        yield case("an empty segment", b, 0, b)
    for a, b in ((300, 290), (509, None), (511, None), (255, 254), (255, 255), (2, 520)):
        yield case("max_length left out", a, b, None)
    for a, b in ((280, 250), (300, 290), (620, None)):
        yield case("a max_length above 512", a, b, 560)
    for between in (2, 3):
        for a, b in ((5, 7), (7, 5), (6, 6), (1, 9), (9, None)):
            for most in range(3 + between, 14):
                args = words(draw, a), None if b is None else words(draw, b)
                given = {"max_length": most, "between": between}
                yield Case("less room and more than one [SEP] between", args, given)
    many = words(draw, 20)
    yield Case("the same list twice", (many, many), {"max_length": 12})


BOTH = ("the list of ids", "the list of segment ids")
Comparison("pair_input", pair_cases, (pair_input,), BOTH)
Comparison("pair_truncate", truncate_cases, (pair_input,), BOTH, "pair_input")


def make_batch(inputs, pad_id=0, multiple=1):
    sizes = [len(ids) for ids, _ in inputs]
    width = next(n for n in range(0, 10**4, multiple) if n >= max(sizes))
    batch = {
        "input_ids": torch.full((len(sizes), width), pad_id),
        "token_type_ids": torch.zeros(len(sizes), width, dtype=torch.long),
        "attention_mask": torch.arange(width) < torch.tensor(sizes)[:, None],
    }
    for row, (ids, types) in enumerate(inputs):
        for place, (token, segment) in enumerate(zip(ids, types)):
            batch["input_ids"][row, place] = token
            batch["token_type_ids"][row, place] = segment
    return batch


def use_batch(function, inputs, **options):
    batch = function(inputs, **options)
    return tuple(batch[name] for name in ("input_ids", "token_type_ids", "attention_mask"))


def batch_cases(draw: Draw) -> Iterator[Case]:
    def rows(*sizes: int, ids: tuple = (200, 900), second: bool = True) -> list:
        made = []
        for size in sizes:
            first = draw.randint(1, size - 1) if second else size
            numbers = [draw.randint(*ids) for _ in range(size)]
            made.append((numbers, [0] * first + [1] * (size - first)))
        return made

    hint = "Fill ids up with pad_id, segment ids with 0 and the mask with False."
    for pad in ({}, {"pad_id": 9}, {"pad_id": 1}):
        end = f", and pad_id {pad['pad_id']}" if pad else ""
        low = pad.get("pad_id", 0)
        for kind, inputs in (
            ("sequences of different lengths", rows(*draw.sizes(4))),
            ("one segment in each sequence", rows(*draw.sizes(3), second=False)),
            ("the longest sequence first", rows(13, 3, 5)),
            ("the longest sequence last", rows(2, 3, 10)),
            ("one sequence", rows(*draw.sizes(1))),
            ("sequences of one length", rows(7, 7, 7)),
            ("many sequences", rows(*draw.choices(range(2, 12), k=40))),
            ("pad_id among the real ids", rows(5, 11, 6, 3, ids=(low, low + 1))),
            ("0 among the real ids", rows(5, 11, 6, 3, ids=(0, 1))),
            ("ids above 65,536", rows(3, 7, ids=(10**5, 2 * 10**5))),
        ):
            yield Case(f"{kind}{end}", (inputs,), pad, hint=hint)
            more = {**pad, "multiple": draw.choice((2, 3, 5, 8))}
            yield Case(f"a multiple, {kind}{end}", (inputs,), more, hint=hint)
    yield Case("more than 512 positions", (rows(530, 3),), hint=hint)


FILLED = ("the table of ids", "the table of segment ids", "the mask")
Comparison("make_batch", batch_cases, (make_batch,), FILLED, use=use_batch)

# ---- What the classes are made of


def affine(x, linear):
    """The products of features and of each row of a matrix, summed."""
    return (x[..., None, :] * linear.weight).sum(-1) + linear.bias


def normed(x, norm):
    if isinstance(norm, torch.nn.Identity):
        return x
    apart = x - x.mean(-1, keepdim=True)
    deviation = (apart.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    return apart / deviation * norm.weight + norm.bias


def gelu(x):
    """x times the integral of the standard normal density up to x."""
    exact = x.double()
    return (exact * torch.special.ndtr(exact)).to(x.dtype)


class BertEmbeddings(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.word = torch.nn.Embedding(config.vocab_size, D)
        self.position = torch.nn.Embedding(config.max_position_embeddings, D)
        self.token_type = torch.nn.Embedding(config.type_vocab_size, D)
        self.norm = torch.nn.LayerNorm(D, eps=config.layer_norm_eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        def rows(ids, table):
            every = torch.arange(len(table.weight), device=ids.device)
            return (ids[..., None] == every).to(table.weight.dtype) @ table.weight

        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        total = rows(input_ids, self.word) + rows(types, self.token_type)
        T = input_ids.shape[1]
        at = torch.arange(T, device=input_ids.device) if position_ids is None else position_ids
        total = total + rows(at, self.position)
        return self.dropout(normed(total, self.norm))


class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D, self.heads = config.hidden_size, config.num_attention_heads
        self.query, self.key, self.value = (torch.nn.Linear(D, D) for _ in range(3))
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        B, T, D = hidden.shape
        seen = torch.ones(B, T, device=hidden.device) > 0
        seen = (seen if attention_mask is None else attention_mask)[:, None]  # [B, 1, T]
        tables, mixed = [], []
        for head, own in enumerate(torch.arange(D).reshape(self.heads, -1).tolist()):
            query, key, value = (
                affine(hidden, part)[..., own] for part in (self.query, self.key, self.value)
            )
            scores = (query[:, :, None] * key[:, None]).sum(-1) / math.sqrt(len(own))
            if bias is not None:
                scores = scores + bias[head]
            largest = scores.detach().masked_fill(~seen, -math.inf).amax(-1, keepdim=True)
            exponentials = torch.where(seen, scores - largest, -math.inf).exp()
            tables.append(exponentials / exponentials.sum(-1, keepdim=True))
            mixed.append((self.dropout(tables[-1])[..., None] * value[:, None]).sum(2))
        return torch.cat(mixed, -1), torch.stack(tables, 1)


class BertLayer(torch.nn.Module):
    activation = staticmethod(gelu)

    def __init__(self, config):
        super().__init__()
        D, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_output = torch.nn.Linear(D, D)
        self.attention_norm = torch.nn.LayerNorm(D, eps=eps)
        self.intermediate = torch.nn.Linear(D, inner)
        self.output = torch.nn.Linear(inner, D)
        self.output_norm = torch.nn.LayerNorm(D, eps=eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        context = self.attention(hidden, attention_mask, bias)[0]
        said = self.dropout(affine(context, self.attention_output))
        attended = normed(hidden + said, self.attention_norm)
        inner = self.activation(affine(attended, self.intermediate))
        return normed(attended + self.dropout(affine(inner, self.output)), self.output_norm)


class Pooler(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden, attention_mask=None):
        first = hidden[:, 0]
        if attention_mask is not None:
            pairs = zip(hidden, attention_mask.tolist())
            first = torch.stack([states[row.index(True)] for states, row in pairs])
        return 2 * torch.sigmoid(2 * affine(first, self.dense)) - 1


class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        every = range(config.num_hidden_layers)
        self.layers = torch.nn.ModuleList([BertLayer(config) for _ in every])
        self.pooler = Pooler(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):
        states = [self.embeddings(input_ids, token_type_ids)]
        for layer in list(self.layers)[:depth]:
            states.append(layer(states[-1], attention_mask))
        return states[-1], self.pooler(states[-1])


def check_untouched(part, what, *inputs):
    """Refuse a part that works in place on what it is given."""
    given = [None if tensor is None else tensor.clone() for tensor in inputs]
    with torch.no_grad():
        part(*given)
    for tensor, own in zip(inputs, given):
        if tensor is not None and not torch.equal(tensor, own):
            raise Misuse(f"{what} must leave its input as it was; yours changes it.")


def put_right(exact, found, own):
    """What is exact, with the difference of two results in which one mistake is twice."""
    if isinstance(exact, torch.Tensor):
        return (exact + (found - own)).to(found.dtype)
    return [put_right(*three) for three in zip(exact, found, own)]


def check_draws(kept, rate, axes, what):
    """Refuse dropout at another rate, or whose draws are not each independent.

    kept: bools, drawn anew along each axis; axes: what the axes are, in words
    """
    kept, spread = kept.double(), math.sqrt(rate * (1 - rate))
    limit = 6 * spread / math.sqrt(kept.numel())  # six standard deviations
    if abs(kept.mean() - (1 - rate)) > limit:
        raise Misuse(f"In training, {what} must be dropped out with the rate of the config.")
    apart = (kept - (1 - rate)) / spread
    for axis, name in enumerate(axes):
        together = (apart * apart.roll(1, axis)).mean().abs()
        if together > 8 / math.sqrt(kept.numel()):
            raise Misuse(f"In training, {what} must be drawn anew for each {name}.")
    if ((kept.mean(0) - (1 - rate)).abs() > 6 * spread / math.sqrt(len(kept))).any():
        raise Misuse(f"In training, each of {what} must be dropped out at times.")


def check_scale(got, plain, rate, what):
    """Refuse what is neither 0 nor scaled up by 1 / (1 - rate); say what is kept."""
    scaled = plain / (1 - rate)
    kept = got.abs() > scaled.abs() / 2
    if ((got - torch.where(kept, scaled, 0.0)).abs() > 1e-9).any():
        raise Misuse(f"In training, {what} must be 0 or multiplied by 1 / (1 - rate).")
    return kept


def rate_cases(draw: Draw) -> Iterator[Case]:
    for rate in (0.3, 0.8):
        yield Case(f"a dropout of {rate}", (rate, draw.device))


def compare_dropout(label: str, kind: type, use) -> None:
    drawn = ("what dropout leaves",)
    Comparison(label, rate_cases, (kind,), drawn, kind.__name__, use, CONFIG)


CONFIG = ("BertConfig",)
OUTPUT = ("the output", "the gradients with respect to input and parameters")


# ---- Part 2: embeddings


def use_embeddings(kind, sizes, dtype, plain, *inputs, BertConfig):
    device = inputs[0].device
    part = filled(kind(BertConfig(**sizes)), 31, dtype, device).eval()
    if plain:
        part.norm = torch.nn.Identity()
    part(inputs[0][:, :1])  # what was read before is no matter
    hidden, gradients = with_gradients(part, lambda: part(*inputs))
    return hidden, gradients[plain:]  # without the norm, positions come first


def embedding_cases(plain: bool):
    def cases(draw: Draw) -> Iterator[Case]:
        def case(kind, B, T, dtype=DOUBLE, tolerance=0.0, types=True, places=False, **changes):
            sizes = small(**changes)
            numbers = torch.rand(2, B, T, generator=draw.tensors)
            ids, kinds = (
                (part * sizes.get(name, 2)).long().to(draw.device)
                for part, name in zip(numbers, ("vocab_size", "type_vocab_size"))
            )
            if not plain:  # both segments, one after the other
                kinds = (torch.arange(T, device=draw.device) >= T // 2).long().expand(B, T)
            inputs = (ids, kinds) if types is True else (ids, *types)
            if places:
                most = sizes["max_position_embeddings"]
                chosen = torch.rand(B, T, generator=draw.tensors) * most
                inputs = *inputs, chosen.long().to(draw.device)
            args = (sizes, dtype, plain, *inputs)
            hint = "Segment ids may change more than once, and a word may have any id."
            return Case(kind, args, hint=hint if plain else "", tolerance=tolerance)

        for dtype, name, tolerance in PRECISIONS:
            for _ in range(3):
                B, T, D = draw.sizes(3)
                kind = f"sizes that all differ, in {name}"
                yield case(kind, B, T, dtype, tolerance, hidden_size=D)
                kind = f"position ids and {kind}"
                yield case(kind, B, T, dtype, tolerance, places=True, hidden_size=D)
        yield case("one sequence", 1, 7)
        yield case("all positions that there are", 2, 13)
        yield case("more than 512 positions", 1, 530, max_position_embeddings=600)
        if not plain:
            for epsilon in (1e-3, 0.5):
                yield case("another epsilon", 3, 5, layer_norm_eps=epsilon)
            return
        yield case("one position", 5, 1)
        yield case("one feature", 5, 7, hidden_size=1)
        yield case("four kinds of segments", 5, 7, type_vocab_size=4)
        yield case("no segment ids", 3, 7, types=())
        yield case("segment ids None", 3, 7, types=(None,))
        yield case("position ids, and segment ids None", 3, 7, types=(None,), places=True)

    return cases


EMBEDDED = ("the sum", "the gradients with respect to words and segments")
NORMED = ("the output", "the gradients with respect to tables and norm")
EMBEDDINGS = ("BertEmbeddings", use_embeddings, CONFIG)
SUMMED, SUMS = embedding_cases(plain=True), embedding_cases(plain=False)
Comparison("embeddings_sum", SUMMED, (BertEmbeddings,), EMBEDDED, *EMBEDDINGS)
Comparison("embeddings_norm", SUMS, (BertEmbeddings,), NORMED, *EMBEDDINGS)


def drop_embeddings(kind, rate, device, *, BertConfig):
    part = kind(BertConfig(**small(dropout=rate))).to(device, DOUBLE).train()
    with torch.no_grad():
        part.norm.weight.zero_()
        part.norm.bias.fill_(1.0)
        torch.manual_seed(32)
        got = part(torch.zeros(300, 5, dtype=torch.long, device=device))
    kept = check_scale(got, torch.ones_like(got), rate, "the features of the output")
    axes = ("sequence", "position", "feature")
    check_draws(kept, rate, axes, "the features of the output")
    return True


compare_dropout("embeddings_dropout", BertEmbeddings, drop_embeddings)

# ---- Part 3: attention


def attention_of(kind, config, dtype, about, device):
    part = filled(kind(config), 41, dtype, device).eval()
    with torch.no_grad():
        if about == "far":  # all scores are about -40,000 times the root of N
            part.query.bias += 200
            part.key.bias -= 200
        if about == "loud":  # all queries are the same
            part.query.weight.zero_()
    return part


def use_attention(kind, sizes, dtype, about, hidden, *mask, BertConfig):
    part = attention_of(kind, BertConfig(**sizes), dtype, about, hidden.device)
    check_untouched(part, "SelfAttention", hidden, *mask)

    def call(states, *bias):  # which is learned, too
        context, weights = part(states, *mask[:1], *bias)
        return weights.detach(), context

    (weights, context), slopes = with_gradients(part, call, hidden, *mask[1:])
    return weights, context, slopes


def use_mask(kind, sizes, dtype, about, hidden, mask, bias=None, *, BertConfig):
    """What real positions get; a mistake that a part makes without a mask, too, is free."""

    def masked(part, states):
        context, weights = part(states, mask, bias)
        return weights.detach() * mask[:, None, :, None], context * mask[..., None]

    def alone(part, states):
        tables, contexts = [], []
        for b, own in enumerate(mask):
            places = torch.eye(len(own), device=own.device).to(states)[own]
            inner = None if bias is None else bias[:, own][:, :, own]
            context, weights = part(states[b : b + 1, own], None, inner)
            tables.append((places.mT @ weights[0] @ places).detach())
            contexts.append(places.mT @ context[0])
        return torch.stack(tables), torch.stack(contexts)

    results = []
    for made, run in ((SelfAttention, masked), (kind, masked), (kind, alone)):
        part = attention_of(made, BertConfig(**sizes), dtype, about, hidden.device)
        check_untouched(part, "SelfAttention", hidden, mask)
        call = functools.partial(run, part)
        results.append(with_gradients(part, call, hidden))
    (weights, context), slopes = put_right(*results)
    return weights, context, slopes


HEADS = "Head h owns the features from h N to (h + 1) N - 1, with N = D / H."


def attention_case(draw: Draw, kind: str, B, T, H, N, mask=(), **about) -> Case:
    dtype = about.get("dtype", DOUBLE)
    hidden = draw.normal(B, T, H * N, dtype=dtype, scale=about.get("scale", 1.0))
    if "padding" in about:
        hidden = torch.where(mask[0][..., None], hidden, about["padding"] * hidden)
    sizes = small(hidden_size=H * N, num_attention_heads=H)
    args = (sizes, dtype, about.get("how", ""), hidden, *mask)
    hint = about.get("hint", HEADS)
    return Case(kind, args, hint=hint, tolerance=about.get("tolerance", 0.0))


def value_cases(draw: Draw) -> Iterator[Case]:
    shapes = ((3, 2), (2, 5), (5, 3), (1, 7), (7, 1), (4, 3))
    for dtype, name, tolerance in PRECISIONS:
        for H, N in shapes[: 6 if dtype == DOUBLE else 2]:
            B, T = draw.sizes(2)
            kind = f"{H} heads of {N} features in {name}"
            about = {"dtype": dtype, "tolerance": tolerance}
            yield attention_case(draw, kind, B, T, H, N, **about)
            bias = draw.normal(H, T, T, dtype=dtype)
            kind = f"a bias and {kind}"
            yield attention_case(draw, kind, B, T, H, N, (None, bias), **about)
    for size, words_ in ((20.0, "large"), (1e-4, "small")):
        kind = f"{words_} hidden states"
        yield attention_case(draw, kind, 3, 5, 3, 2, scale=size)
    yield attention_case(draw, "scores far below 0", 3, 5, 3, 2, scale=0.01, how="far")
    yield attention_case(draw, "one position", 3, 1, 3, 2)
    yield attention_case(draw, "one sequence", 1, 6, 3, 2)
    yield attention_case(draw, "one size for everything", 3, 3, 3, 3)
    yield attention_case(draw, "mask None", 3, 5, 2, 3, (None,))


def mask_cases(draw: Draw) -> Iterator[Case]:
    hint = "Filling gets weight 0 from every query, wherever it stands."

    def case(kind: str, B: int, T: int, mask, **about) -> Case:
        mask, N = (mask.to(draw.device),), draw.choice((1, 3, 5))
        return attention_case(draw, kind, B, T, 2, N, mask, hint=hint, **about)

    for dtype, name, tolerance in PRECISIONS:
        for _ in range(2 if dtype == DOUBLE else 1):
            B, T = draw.sizes(2)
            about = {"dtype": dtype, "tolerance": tolerance}
            mask = draw.mask(B, T)
            yield case(f"a mask with gaps in {name}", B, T, mask, **about)
            one = case(f"a bias and a mask with gaps in {name}", B, T, mask, **about)
            one.args = (*one.args, draw.normal(2, T, T, dtype=dtype))
            yield one
            first = torch.arange(T) < torch.randint(1, T + 1, (B, 1), generator=draw.tensors)
            yield case(f"filling at the end in {name}", B, T, first, **about)
            yield case(f"filling at the start in {name}", B, T, first.flip(1), **about)
    yield case("one real token in each sequence", 5, 6, draw.mask(5, 6, share=0.0))
    yield case("a mask that is True everywhere", 3, 6, draw.mask(3, 6, share=1.1))
    yield case("one position", 3, 1, draw.mask(3, 1))
    yield case("as many sequences as positions", 5, 5, draw.mask(5, 5))
    for _ in range(2):
        kind = "filling whose scores are huge"
        loud = {"padding": 2000.0, "how": "loud"}
        yield case(kind, 3, 7, draw.mask(3, 7, share=0.5), **loud)
        kind = "scores far below 0, and filling"
        yield case(kind, 3, 7, draw.mask(3, 7, share=0.5), scale=0.01, how="far")


ATTENDED = ("the table of weights", "the context", OUTPUT[1])
ATTENTION = ("SelfAttention", use_attention, CONFIG)
Comparison("attention_values", value_cases, (SelfAttention,), ATTENDED, *ATTENTION)
MASKED = ("SelfAttention", use_mask, CONFIG)
Comparison("attention_mask", mask_cases, (SelfAttention,), ATTENDED, *MASKED)


def drop_attention(kind, rate, device, *, BertConfig):
    """The values are one-hot, so each number of the context is a weight that is left."""
    T, H = 5, 2
    sizes = small(hidden_size=H * T, num_attention_heads=H, dropout=rate)
    part = filled(kind(BertConfig(**sizes)), 42, DOUBLE, device).train()
    hidden = torch.eye(T, dtype=DOUBLE, device=device).repeat(300, 1, H)  # [B, T, H T]
    with torch.no_grad():
        part.value.weight.copy_(torch.eye(H * T))
        part.value.bias.zero_()
        torch.manual_seed(43)
        context, weights = part(hidden)
        plain, tables = part.eval()(hidden)
    if ((weights - tables).abs() > 1e-9).any():
        raise Misuse(
            "Return the weights as they were before the dropout: in training, they are"
            " those of evaluation."
        )
    kept = check_scale(context, plain, rate, "the weights that meet the values")
    kept = kept.reshape(300, T, H, T)  # [B, T, H, T]
    axes = ("sequence", "query", "head", "key")
    check_draws(kept, rate, axes, "the weights that meet the values")
    return True


compare_dropout("attention_dropout", SelfAttention, drop_attention)

# ---- Part 4: the layer


def gelu_cases(draw: Draw) -> Iterator[Case]:
    hint = "Compute in the type of x, without rounded constants."
    halves = (torch.bfloat16, torch.float16)
    for dtype in (DOUBLE, SINGLE, *halves):
        about = {"hint": hint, "gradients": dtype not in halves}
        name = str(dtype)[6:]
        for scale, words_ in ((1.0, "numbers"), (3.0, "numbers up to 9"), (1e-6, "tiny")):
            for form in ((7,), (3, 5), (2, 3, 7), ()):
                x = draw.normal(*form, dtype=dtype, scale=scale)
                yield Case(f"{words_} in {name}", (x,), **about)
        for low, high in ((-6, 6), (5, 9), (-9, -5)):
            x = torch.linspace(low, high, 61, dtype=DOUBLE).to(draw.device, dtype)
            yield Case(f"numbers from {low} to {high} in {name}", (x,), **about)
    for scale in (1e2, 1e4):
        yield Case("large numbers", (draw.normal(3, 7, scale=scale),), hint=hint)
    zeros = torch.zeros(3, 1, dtype=DOUBLE, device=draw.device)
    yield Case("zeros", (zeros,), hint=hint)


Comparison("gelu", gelu_cases, (gelu,), ("the GELU of each number",))


class Attention(torch.nn.Module):
    """In the place of SelfAttention: mixes what is real, without parameters."""

    def forward(self, hidden, attention_mask=None, bias=None):
        seen = torch.ones_like(hidden[..., 0])
        seen = (seen if attention_mask is None else attention_mask.to(hidden))[..., None]
        mean = (hidden * seen).sum(1, keepdim=True) / seen.sum(1, keepdim=True)
        moved = mean if bias is None else mean + bias.mean()
        return hidden.sin().flip(-1) + moved, mean[:, None]


def use_layer(kind, sizes, dtype, hidden, *mask, BertConfig, gelu):
    """What a layer gives; where its gelu is wrong, what it would give with a right one."""
    results = []
    for made in (kind, BertLayer, BertLayer):
        layer = filled(made(BertConfig(**sizes)), 51, dtype, hidden.device).eval()
        layer.attention = Attention()
        if len(results) == 1:
            layer.activation = gelu
        check_untouched(layer, "BertLayer", hidden, *mask)
        results.append(with_gradients(layer, lambda x, layer=layer: layer(x, *mask), hidden))
    found, own, exact = results
    return tuple(put_right(exact, found, own))


def layer_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, B, T, D, inner, *mask, dtype=DOUBLE, tolerance=0.0, scale=1.0, **changes):
        sizes = small(hidden_size=D, intermediate_size=inner, num_attention_heads=1, **changes)
        hidden = draw.normal(B, T, D, dtype=dtype, scale=scale)
        return Case(kind, (sizes, dtype, hidden, *mask), tolerance=tolerance)

    for dtype, name, tolerance in PRECISIONS:
        for _ in range(2 if dtype == DOUBLE else 1):
            B, T, D, inner = draw.sizes(4)
            about = {"dtype": dtype, "tolerance": tolerance}
            kind = f"sizes that all differ, in {name}"
            yield case(kind, B, T, D, inner, **about)
            kind = f"a mask with gaps, in {name}"
            yield case(kind, B, T, D, inner, draw.mask(B, T), **about)
            bias = draw.normal(1, T, T, dtype=dtype)
            kind = f"a bias and {kind}"
            yield case(kind, B, T, D, inner, draw.mask(B, T), bias, **about)
            yield case("a bias and mask None", B, T, D, inner, None, bias, **about)
    yield case("mask None", 3, 5, 6, 7, None)
    yield case("another epsilon", 3, 5, 6, 7, layer_norm_eps=0.5)
    yield case("one sequence", 1, 5, 6, 7)
    yield case("one position", 3, 1, 6, 7)
    yield case("an intermediate size of 1", 3, 5, 6, 1)
    yield case("one size for everything", 5, 5, 5, 5)
    yield case("large numbers", 3, 5, 6, 7, scale=1e3)


LAYER = ("BertLayer", use_layer, (*CONFIG, "gelu"))
Comparison("layer_wiring", layer_cases, (BertLayer,), OUTPUT, *LAYER)


def drop_layer(kind, rate, device, *, BertConfig):
    """Attention says 1 and the network G, to an input of 0: s, G s or both are left."""
    D = 7
    sizes = small(hidden_size=D, intermediate_size=D, num_attention_heads=1, dropout=rate)
    layer = kind(BertConfig(**sizes)).to(device, DOUBLE).train()
    layer.attention = Attention()
    layer.attention_norm, layer.output_norm = torch.nn.Identity(), torch.nn.Identity()
    with torch.no_grad():
        for linear, bias in (
            (layer.attention_output, 1.0),
            (layer.intermediate, 4.0),
            (layer.output, 0.0),
        ):
            linear.weight.zero_()
            linear.bias.fill_(bias)
        layer.output.weight.copy_(10 * torch.eye(D))
        hidden = torch.zeros(300, 5, D, dtype=DOUBLE, device=device)
        torch.manual_seed(52)
        bias = torch.zeros(1, 5, 5, dtype=DOUBLE, device=device)
        got = layer(hidden.clone(), None, bias) * (1 - rate)
        network = layer.eval()(hidden, None, bias) - 1  # about 40
    second = got > network.abs() / 2
    first = (got - torch.where(second, network, 0.0)) > 0.5
    whole = torch.where(second, network, 0.0) + first
    if ((got - whole).abs() > 1e-9 * network.abs().max()).any():
        raise Misuse(
            "In training, the layer gives other numbers than dropout in front of the two"
            " sums gives. There is no dropout between gelu and output."
        )
    axes = ("sequence", "position", "feature")
    check_draws(first, rate, axes, "what attention_output gives")
    check_draws(second, rate, axes, "what output gives")
    both = torch.stack([first, second], 1).flatten(0, 1)
    check_draws(both, rate, ("sum", *axes[1:]), "what is added at the two sums")
    return True


compare_dropout("layer_dropout", BertLayer, drop_layer)

# ---- Part 5: the model


def use_pooler(kind, sizes, dtype, hidden, *mask, BertConfig):
    pooler = filled(kind(BertConfig(**sizes)), 61, dtype, hidden.device)
    check_untouched(pooler, "Pooler", hidden, *mask)
    return with_gradients(pooler, lambda states: pooler(states, *mask), hidden)


def pooler_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, B, T, D, dtype=DOUBLE, tolerance=0.0, scale=1.0) -> Case:
        hidden = draw.normal(B, T, D, dtype=dtype, scale=scale)
        args = (small(hidden_size=D), dtype, hidden)
        return Case(kind, args, tolerance=tolerance)

    for dtype, name, tolerance in PRECISIONS:
        for _ in range(3):
            B, T, D = draw.sizes(3)
            yield case(f"sizes that all differ, in {name}", B, T, D, dtype, tolerance)
            one = case(f"a mask, in {name}", B, T, D, dtype, tolerance)
            one.args = (*one.args, draw.mask(B, T, share=0.3))
            yield one
    yield case("one position", 5, 1, 7)
    yield case("one sequence", 1, 5, 7)
    yield case("one feature", 3, 5, 1)
    yield case("a single number", 1, 1, 1)
    yield case("large numbers, where tanh is flat", 3, 5, 7, scale=4.0)
    yield case("huge numbers", 3, 5, 7, scale=1e4)
    yield case("tiny numbers", 3, 5, 7, scale=1e-6)


Comparison("pooler", pooler_cases, (Pooler,), OUTPUT, "Pooler", use_pooler, CONFIG)


class Part(torch.nn.Module):
    """In the place of a part: notes what it is given, and makes something else of it."""

    def __init__(self, D, result, notes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, D, dtype=DOUBLE))
        self.result, self.notes = result, notes

    def noted(self, first, second=None):
        other = None if second is None else second.clone()
        self.notes.append((first.detach().clone(), other))
        return self.result(first, self.weight)


class EmbeddingsPart(Part):
    def forward(self, input_ids, token_type_ids=None):
        return self.noted(input_ids, token_type_ids)


class LayerPart(Part):
    def forward(self, hidden, attention_mask=None):
        return self.noted(hidden, attention_mask)


class PoolerPart(Part):
    def forward(self, hidden, attention_mask=None):
        return self.noted(hidden)


class DroppingPart(torch.nn.Dropout):
    def forward(self, hidden, attention_mask=None):
        return super().forward(hidden)


def use_model(kind, layers, training, *inputs, BertConfig):
    """What the parts are given, and what comes out with the gradients of the parts."""
    D, device = 3, inputs[0].device
    model = kind(BertConfig(**small(hidden_size=D, num_hidden_layers=layers)))
    embedded, passed, pooled = [], [], []
    model.embeddings = EmbeddingsPart(D, lambda ids, w: (ids[..., None] * w).sin(), embedded)
    model.layers = torch.nn.ModuleList(
        LayerPart(D, lambda x, w, n=n: (x * w + n).cos() + x, passed) for n in range(layers)
    )
    model.pooler = PoolerPart(D, lambda x, w: (x[:, 0] * w).tanh(), pooled)
    if training:
        model.pooler = DroppingPart(1.0)  # 0 in training, the identity in evaluation
    model = model.to(device).train(training)
    if len(inputs) == 3:
        model(*inputs, depth=0)
        for notes in (embedded, passed, pooled):
            notes.clear()
    (hidden, out), gradients = with_gradients(model, lambda: model(*inputs))
    return embedded, passed, pooled, hidden, out, gradients


def model_cases(draw: Draw) -> Iterator[Case]:
    def ids(B: int, T: int, most: int = 17):
        made = torch.randint(most, (B, T), generator=draw.tensors)
        return made.to(draw.device)

    def case(kind, layers, B, T, mask=(), types=(), training=False, special=None) -> Case:
        read = ids(B, T)
        if special is not None:
            read[:, 1::3] = special
        return Case(kind, (layers, training, read, *mask, *types))

    for layers in (1, 3):
        B, T = draw.sizes(2)
        kind = f"{layers} layers" if layers > 1 else "one layer"
        yield case(kind, layers, B, T, (draw.mask(B, T),), (ids(B, T, 2),))
        for depth in range(layers):
            more = ids(B, T, 2), depth
            yield case(f"another depth and {kind}", layers, B, T, (draw.mask(B, T),), more)
    yield case("14 layers", 14, 2, 3, (draw.mask(2, 3),), (ids(2, 3, 2),))
    mask = draw.mask(3, 5, share=0.5)
    mask[1, :2] = torch.tensor([False, True])
    yield case("filling at the start", 2, 3, 5, (mask,), (ids(3, 5, 2),))
    for special in (0, 102):
        kind = "no mask (filling cannot be told from the ids)"
        yield case(kind, 2, 3, 7, special=special)
        yield case(kind, 2, 3, 7, (None,), (ids(3, 7, 2),), special=special)
        kind = "no segment ids"
        yield case(kind, 2, 3, 7, (draw.mask(3, 7),), special=special)
    yield case("one sequence of one position", 2, 1, 1, (draw.mask(1, 1),), (ids(1, 1, 2),))
    kind = "a model in training (eval() is for who uses the model)"
    yield case(kind, 2, 3, 5, (draw.mask(3, 5),), (ids(3, 5, 2),), training=True)


STATES = ("the table of hidden states", "the table of pooled vectors")
WIRED = ("what the embeddings get", "what the layers get", "what the pooler gets", *STATES)
WIRED = (*WIRED, "the gradients with respect to the parts")
MODEL = ("BertModel", use_model, CONFIG)
Comparison("model_wiring", model_cases, (BertModel,), WIRED, *MODEL)

# ---- Part 6: sizes


def count_parameters(config):
    D, inner = config.hidden_size, config.intermediate_size
    tables = [config.vocab_size, config.max_position_embeddings, config.type_vocab_size]
    matrices = [(D, D), (D, D), (D, D), (D, D), (D, inner), (inner, D)]
    shapes = {
        "embeddings": [*((rows, D) for rows in tables), (2, D)],
        "layers": [*matrices, *((1, outputs) for _, outputs in matrices), (4, D)],
        "pooler": [(D + 1, D)],
    }
    counts = {name: sum(map(math.prod, sizes)) for name, sizes in shapes.items()}
    return {**counts, "layers": config.num_hidden_layers * counts["layers"]}


def use_count(function, sizes, *, BertConfig):
    counts = function(BertConfig(**sizes))
    return sorted(counts), *(counts[name] for name in ("embeddings", "layers", "pooler"))


def count_cases(draw: Draw) -> Iterator[Case]:
    hint = "I need not be 4 D, nor the segments 2: take all numbers from the config."
    for D, L, H in ((128, 2, 2), (256, 4, 4), (512, 8, 8), (768, 12, 12), (1024, 24, 16)):
        sizes = dict(zip(NAMES, (30522, D, L, H, 4 * D, 512, 2)))
        yield Case("the sizes of a published BERT", (sizes,))
    for _ in range(4):
        V, L, H, inner, P, S = draw.sizes(6)
        sizes = dict(zip(NAMES, (V, 2 * H, L, H, inner, P, S)))
        yield Case("sizes that all differ", (sizes,), hint=hint)
    for name in NAMES[:1] + NAMES[2:7]:
        yield Case(f"a {name} of 1", (small(**{name: 1}),), hint=hint)
    yield Case("one feature", (small(hidden_size=1, num_attention_heads=1),), hint=hint)
    yield Case("heads of another size", (small(num_attention_heads=2),), hint=hint)


COUNTED = ("the list of keys", '"embeddings"', '"layers"', '"pooler"')
COUNT = ("count_parameters", use_count, CONFIG)
Comparison("count_parameters", count_cases, (count_parameters,), COUNTED, *COUNT)

# ---- Part 7: a published checkpoint

OF_EMBEDDINGS = {
    "word": "word_embeddings",
    "position": "position_embeddings",
    "token_type": "token_type_embeddings",
    "norm": "LayerNorm",
}
OF_LAYERS = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}


def published_name(name, old=False):
    *parts, kind = name.split(".")
    if old and parts[-1] in ("norm", "attention_norm", "output_norm"):
        name = ".".join([*parts, "gamma" if kind == "weight" else "beta"])
    first, *middle, kind = name.split(".")
    if first == "embeddings":
        return f"embeddings.{OF_EMBEDDINGS[middle[0]]}.{kind}"
    if first == "layers":
        return f"encoder.layer.{middle[0]}.{OF_LAYERS['.'.join(middle[1:])]}.{kind}"
    return name


def name_cases(draw: Draw) -> Iterator[Case]:
    groups = (
        ("one digit", (0, 1, 2, 9)),
        ("two digits", (10, 11, 23)),
        ("three digits", (100,)),
    )
    parts = {
        "a parameter of the embeddings": [f"embeddings.{part}" for part in OF_EMBEDDINGS],
        "a parameter of the pooler": ["pooler.dense"],
    }
    for digits, numbers in groups:
        for number in numbers:
            made = parts.setdefault(f"a layer number of {digits}", [])
            made += [f"layers.{number}.{part}" for part in OF_LAYERS]
    for kind, owners in parts.items():
        for owner in owners:
            table = owner.startswith("embeddings") and not owner.endswith("norm")
            for name in ("weight",) if table else ("weight", "bias"):
                yield Case(kind, (f"{owner}.{name}",))
                yield Case(f"an old file, and {kind}", (f"{owner}.{name}", True))


Comparison("published_name", name_cases, (published_name,), ("the published name",))


def checkpoint(draw: Draw, sizes: dict, prefix="", old=False, dtype=SINGLE, scale=0.5) -> dict:
    """Random numbers under published names."""
    tensors = {}
    for name, parameter in BertModel(BertConfig(**sizes)).named_parameters():
        wanted = published_name(name)
        if old:
            wanted = wanted.replace("LayerNorm.weight", "LayerNorm.gamma")
            wanted = wanted.replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[prefix + wanted] = draw.normal(*parameter.shape, dtype=dtype, scale=scale)
    return tensors


def load_published(model, tensors):
    places = {}
    for name, parameter in model.named_parameters():
        wanted = published_name(name)
        old = wanted.replace("LayerNorm.weight", "LayerNorm.gamma")
        old = old.replace("LayerNorm.bias", "LayerNorm.beta")
        names = {prefix + form for prefix in ("", "bert.") for form in (wanted, old)}
        places |= dict.fromkeys(names & {*tensors}, parameter)
        if not names & {*tensors}:
            raise ValueError(f"no {wanted}")
    for name, parameter in places.items():
        if tensors[name].shape != parameter.shape:
            raise ValueError(f"{name} has another shape")
    for name, parameter in places.items():
        parameter.data.copy_(tensors[name])
    return sorted({*tensors} - {*places})


def use_load(function, sizes, dtype, training, tensors, *, BertConfig, BertModel):
    model = filled(BertModel(BertConfig(**sizes)), 71, dtype, "cpu").train(training)
    model = model.to(next(iter(tensors.values())).device)
    before = dict(model.named_parameters())
    left = function(model, tensors)
    held = sorted(model.named_parameters())
    numbers = [parameter.detach().clone() for _, parameter in held]
    rest = [part.training for part in model.modules()]
    rest += [(name, p is before.get(name), p.requires_grad) for name, p in held]
    file = {name: tensor.clone() for name, tensor in tensors.items()}
    shared = []
    with torch.no_grad():
        for _, parameter in held:
            parameter += 1
        for name in [name for name in tensors if not torch.equal(tensors[name], file[name])]:
            shared.append(name)
            tensors[name].copy_(file[name])
    return left, numbers, str(rest), shared


def load_cases(draw: Draw) -> Iterator[Case]:
    hint = (
        "Copy each tensor into the parameter that there is, which stays one that can be"
        " trained, of its own type; nothing else of the model changes."
    )

    def case(kind, sizes, extra=(), held=SINGLE, training=False, first=False, **how) -> Case:
        left = {name: draw.normal(3) for name in extra}
        tensors = checkpoint(draw, sizes, **how)
        tensors = {**left, **tensors} if first else {**tensors, **left}
        args = (sizes, held, training, tensors)
        return Case(kind, args, hint=hint, gradients=False, tolerance=1e-9)

    one = small(num_hidden_layers=1)
    heads = ["cls.seq_relationship.bias", "cls.predictions.transform.LayerNorm.gamma"]
    heads += ["cls.predictions.transform.LayerNorm.weight", "bert.embeddings.position_ids"]
    for stored, held in (
        (torch.float16, SINGLE),
        (torch.bfloat16, DOUBLE),
        (DOUBLE, SINGLE),
    ):
        kind = f"{str(stored)[6:]} in the file, {str(held)[6:]} in the model"
        yield case(kind, one, heads, held, dtype=stored)
    for old in (False, True):
        for prefix in ("", "bert."):
            kind = f"{'gamma and beta' if old else 'weight and bias'} in the names of norms"
            kind += f" and {'bert. in front' if prefix else 'no prefix'}"
            about = {"prefix": prefix, "old": old, "first": bool(prefix)}
            sizes = small() if old else one
            yield case(kind, sizes, heads, **about)
    yield case("a model in training", one, training=True)
    yield case("square matrices alone", {**one, "intermediate_size": 6})
    yield case("11 layers", small(num_hidden_layers=11, hidden_size=3), prefix="bert.")
    yield case("a large vocabulary", {**one, "vocab_size": 700})
    yield case("four kinds of segments", {**one, "type_vocab_size": 4})
    yield case("names left that begin with large letters", one, ["a", "B", "c", "_", "Z"])
    ends = ["teacher.embeddings.word_embeddings.weight", "cls.pooler.dense.weight"]
    yield case("names left that end as others", one, ends, first=True)
    layer = "encoder.layer.7.attention.self.query.weight"
    yield case("a tensor of a layer that the model has not", one, [layer], first=True)
    yield case("numbers that are large", one, scale=1e4)


LOADED = (
    "the list of names that are left",
    "the list of numbers in the model",
    "what else there is of the model",
    "what the file holds once the model has been trained",
)
LOAD = ("load_published", use_load, (*CONFIG, "BertModel"))
Comparison("loading_places", load_cases, (load_published,), LOADED, *LOAD)


def use_refused(function, sizes, tensors, wanted, *, BertConfig, BertModel):
    model = filled(BertModel(BertConfig(**sizes)), 72, SINGLE, "cpu")
    model = model.to(next(iter(tensors.values())).device)
    try:
        function(model, tensors)
        said = "no error"
    except ValueError as error:
        said = "it is named" if wanted in str(error) else "it is not named"
    except Exception as error:
        said = type(error).__name__
    return said, [parameter.detach() for _, parameter in sorted(model.named_parameters())]


def refused_cases(draw: Draw) -> Iterator[Case]:
    sizes = small(num_hidden_layers=1)
    hint = "It must be a ValueError that names the tensor."

    def case(kind: str, wanted: str, change) -> Case:
        tensors = checkpoint(draw, sizes)
        tensors[wanted] = change(tensors[wanted])
        return Case(kind, (sizes, tensors, wanted), hint=hint, gradients=False)

    every = checkpoint(draw, sizes)
    names = [name for name in every if "query" not in name and "key" not in name]
    for name in [*names[::4], "pooler.dense.weight"]:
        fewer = {other: every[other] for other in every if other != name}
        args = (sizes, fewer, name)
        yield Case("a tensor that is missing", args, hint=hint, gradients=False)
    args = ({**sizes, "num_hidden_layers": 2}, every, "encoder.layer.1.")
    yield Case("a file with a layer less", args, hint=hint, gradients=False)
    matrix = "encoder.layer.0.intermediate.dense.weight"
    for kind, change in (
        ("a matrix that lies on its side", lambda tensor: tensor.mT),
        ("a matrix with its numbers in one row", lambda tensor: tensor.flatten()),
        ("a matrix of one column, which would broadcast", lambda tensor: tensor[:, :1]),
        ("a matrix with a column less", lambda tensor: tensor[:, 1:]),
    ):
        yield case(kind, matrix, change)
    changes = {
        "one row, which would broadcast": lambda tensor: tensor[:1],
        "one number, which would broadcast": lambda tensor: tensor.flatten()[0],
        "a row less": lambda tensor: tensor[1:],
        "a row more": lambda tensor: torch.cat([tensor, tensor[:1]]),
        "one axis more": lambda tensor: tensor[None],
    }
    names = ["embeddings.position_embeddings.weight", "encoder.layer.0.output.LayerNorm.bias"]
    for number, (kind, change) in enumerate(changes.items()):
        yield case(f"a tensor of {kind}", matrix, change)
        yield case(f"a tensor of {kind}", names[number % 2], change)


FAILED = ("the error", "the list of numbers in the model after it")
REFUSED = ("load_published", use_refused, (*CONFIG, "BertModel"))
Comparison("loading_refused", refused_cases, (load_published,), FAILED, *REFUSED)


def use_loaded(kind, sizes, dtype, tensors, ids, mask, types, *, BertConfig, load_published):
    model = kind(BertConfig(**sizes)).to(ids.device, dtype).eval()
    load_published(model, tensors)
    with torch.no_grad():
        hidden, pooled = model(ids, mask, types)
    return hidden[mask], pooled  # what stands at the filling is read by nobody


def agreement_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name, tolerance in PRECISIONS:
        for D, H, L, inner, B, T in (
            (12, 3, 3, 7, 3, 8),
            (10, 5, 2, 13, 5, 9),
            (4, 1, 5, 9, 3, 5),
            (15, 3, 1, 4, 1, 13),
        )[: 4 if dtype == DOUBLE else 1]:
            sizes = small(hidden_size=D, num_attention_heads=H, num_hidden_layers=L)
            sizes["intermediate_size"] = inner
            tensors = checkpoint(draw, sizes, "bert.", dtype=dtype)
            lengths = torch.randint(2, T + 1, (B, 1), generator=draw.tensors)
            lengths[0] = T
            made = (
                torch.randint(17, (B, T), generator=draw.tensors),
                torch.arange(T) < lengths,
                torch.randint(2, (B, T), generator=draw.tensors),
            )
            inputs = [tensor.to(draw.device) for tensor in made]
            args = (sizes, dtype, tensors, *inputs)
            kind = f"{L} layers of {H} heads and {D} features in {name}"
            yield Case(kind, args, gradients=False, tolerance=tolerance)


AGREE = ("BertModel", use_loaded, (*CONFIG, "load_published"))
Comparison("agreement", agreement_cases, (BertModel,), STATES, *AGREE)
