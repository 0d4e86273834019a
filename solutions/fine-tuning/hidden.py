"""Legal inputs of each function of assignment 6, and references to compare with.

The references are written from the formulas and the sentences of the text, in plain
Python or in float64. `course_tools/grading/assignments/comparing.py` runs them.
"""

import math
from collections.abc import Iterator

import torch
from course_tools.grading.assignments.comparing import (
    SIZES,
    Case,
    Comparison,
    Draw,
    Misuse,
    filled,
    with_gradients,
)

DOUBLE, SINGLE = torch.float64, torch.float32
EXACT = ((DOUBLE, "float64"), (SINGLE, "float32"))
HALVES = ((torch.bfloat16, "bfloat16"), (torch.float16, "float16"))
IGNORE = -100

# ---- Part 1: senses


def cosines(vectors, common=None):
    wide = vectors.double() if common is None else vectors.double() - common.double()
    lengths = (wide**2).sum(-1).sqrt()
    products = (wide[:, None] * wide).sum(-1)
    return (products / lengths / lengths[:, None]).to(vectors.dtype)


def cosine_cases(draw: Draw) -> Iterator[Case]:
    hint = "Divide by the lengths as they are, with nothing added."
    for dtype, name in (*EXACT, *HALVES):
        for _ in range(3):
            for shape in (draw.sizes(2), (5, 5), (1, 7), (6, 1)):
                made = draw.normal(*shape, dtype=dtype)
                # of one feature a cosine is a sign: its gradient is rounding alone
                slopes = (dtype, name) in EXACT and shape[1] > 1
                yield Case(f"vectors in {name}", (made,), {}, hint, slopes)
    for scale, words in ((1e-6, "very short"), (1e-3, "short"), (1e4, "long")):
        for dtype, name in EXACT:
            for _ in range(3):
                made = draw.normal(*draw.sizes(2), dtype=dtype, scale=scale)
                yield Case(f"{words} vectors in {name}", (made,), {}, hint)
    hint = "Subtract `common` from each vector before anything else."
    for dtype, name in EXACT:
        for scale, words in ((1.0, "in common"), (7.0, "in common that is long")):
            for N, D in (draw.sizes(2), (5, 5), (1, 7), (6, 2)):
                both = draw.normal(N, D, dtype=dtype), draw.normal(D, dtype=dtype)
                yield Case(f"a vector {words}, in {name}", (both[0], scale * both[1]), {}, hint)
        nothing = torch.zeros(5, dtype=dtype, device=draw.device)
        args = draw.normal(3, 5, dtype=dtype), nothing
        yield Case(f"nothing but zeros in common, in {name}", args, {}, hint)
    hint = "Divide by the lengths as they are, with nothing added."
    made = draw.normal(7, 5) * torch.logspace(-5, 4, 7, device=draw.device)[:, None]
    yield Case("lengths from 1e-5 to 1e4", (made.double(),), {}, hint)


Comparison("cosines", cosine_cases, (cosines,), ("the table of cosines",))

NAMES = (
    (("food", "music", "sport"), "three senses"),
    (("bass", "Bass", "BASS"), "names that differ in capitals alone"),
    (("food", "fruit", "fish"), "names that begin with the same letter"),
    (("bass (fish)", "bass #2", "bäss"), "names of several words and signs"),
    ((300, 301, 7), "senses that are numbers"),
)


def some_senses(draw: Draw, names: tuple, count: int) -> list:
    """Names of which two differ and two are equal, each an object of its own."""
    while True:
        row = [draw.choice(names) for _ in range(count)]
        if 1 < len(set(row)) < count:
            return ["".join([*s]) if isinstance(s, str) else s for s in row]


def sense_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, vectors, senses):  # how exact cosines are, their own test asks
        return Case(kind, (vectors, senses), gradients=False, tolerance=1e-4)

    for names, words in NAMES:
        for dtype, name in EXACT:
            for _ in range(4):
                count, D = draw.choice(SIZES), draw.choice((2, 3, 5, 7))
                vectors = draw.normal(count, D, dtype=dtype)
                yield case(f"{words}, in {name}", vectors, some_senses(draw, names, count))
    for _ in range(4):
        senses, half = some_senses(draw, NAMES[0][0], 11), draw.normal(5, 3)
        vectors = torch.cat([half, 3 * half, draw.normal(1, 3)])
        yield case("equal directions among the uses", vectors, senses)
        vectors = torch.cat([half, -2 * half, draw.normal(1, 3)])
        yield case("opposite uses", vectors, senses)
    for senses in (["a1", "a2", "a1"], ["a1", "a1", "a2"], ["a2", "a1", "a1"]):
        yield case("three uses, the fewest that there may be", draw.normal(3, 4), senses)


def within_and_between(vectors, senses):
    table, pairs = cosines(vectors.double()).tolist(), {True: [], False: []}
    for i, row in enumerate(table):
        for j in range(i):
            pairs[senses[i] == senses[j]].append(row[j])
    return tuple(math.fsum(row) / len(row) for row in (pairs[True], pairs[False]))


MEANS = ("the mean cosine within senses", "the mean cosine between senses")
Comparison("within_and_between", sense_cases, (within_and_between,), MEANS)


def separation(vectors, senses):
    table, shares = cosines(vectors.double()).tolist(), {}
    for i, row in enumerate(table):
        own = [c for j, c in enumerate(row) if senses[j] == senses[i] and j != i]
        leads = [o - c for o in own for j, c in enumerate(row) if senses[j] != senses[i]]
        if leads:
            points = [0.5 if abs(lead) < 1e-6 else float(lead > 0) for lead in leads]
            shares.setdefault(senses[i], []).append(sum(points) / len(points))
    means = [sum(of_uses) / len(of_uses) for of_uses in shares.values()]
    return sum(means) / len(means)


def separation_cases(draw: Draw) -> Iterator[Case]:
    hint = "Take the mean over the uses of each sense first, then the mean over the senses."
    for rare in (2, 3):
        for often in (4, 9):
            senses = ["eaten"] * rare + ["heard"] * often
            draw.shuffle(senses)
            kind = "a sense that is used more often than the other"
            yield Case(kind, (draw.normal(len(senses), 5), senses), {}, hint, False)
    hint = "A use that is the only one of its sense is left out of the mean."
    for _ in range(4):
        senses = ["eaten", "eaten", "heard", "eaten", "seen", "seen"]
        draw.shuffle(senses)
        yield Case("a sense that is used once", (draw.normal(6, 5), senses), {}, hint, False)
    yield from sense_cases(draw)
    for size, words in (
        (1e-9, "a difference of 1e-9, which is a tie"),
        (5e-7, "a difference just below 1e-6, which is a tie"),
        (8e-7, "a difference just below 1e-6, which is a tie"),
        (1.3e-6, "a difference just above 1e-6, which is no tie"),
        (4e-6, "a difference of some 1e-6, which is no tie"),
        (5e-5, "a small difference, which is no tie"),
        (5e-4, "a small difference, which is no tie"),
    ):
        for lead in (size, -size) * 3:
            near = draw.uniform(-0.9, 0.9)
            angles = [0.0, math.acos(near), math.acos(near - lead)]
            rows = [[n * math.cos(a), n * math.sin(a)] for n, a in enumerate(angles, 1)]
            vectors = torch.tensor(rows, dtype=DOUBLE, device=draw.device)
            senses = draw.choice((["x1", "x1", "x2"], ["x2", "x2", "x1"]))
            yield Case(words, (vectors, senses), {}, "", False)


Comparison("separation", separation_cases, (separation,), ("the separation",))

# ---- Part 2: a mix of layers


class LayerMix(torch.nn.Module):
    def __init__(self, num_states: int) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(num_states))
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, states, left_out=()):
        if len(states) != len(self.weights):
            raise ValueError
        kept = [number for number in range(len(states)) if number not in left_out]
        wide = self.weights[kept].double()
        powers = (wide - wide.detach().max()).exp()
        total = 0.0
        for power, number in zip(powers, kept, strict=True):
            total = total + self.scale * power / powers.sum() * states[number]
        return total.to(states[0].dtype)


def mix_with(LayerMix, weights, scale):
    mix = LayerMix(len(weights)).to(weights.device, weights.dtype)
    with torch.no_grad():
        mix.weights.copy_(weights)
        mix.scale.copy_(scale)
    return mix


def mixed(LayerMix, weights, scale, states, *left_out):
    return mix_with(LayerMix, weights, scale).eval()(states, *left_out)


def mix_learned(LayerMix, weights, scale, states, *left_out):
    """Gradients: of the states, of the scale and of the weights."""
    mix = mix_with(LayerMix, weights, scale)
    call = lambda *states: mix(list(states), *left_out)
    gradients = with_gradients(mix, call, *states)[1]
    return gradients[: len(states)], *gradients[len(states) :]


def mix_cases(draw: Draw, spread: float = 1.0, words: str = "") -> Iterator[Case]:
    for dtype, name in EXACT:
        for count in (1, 2, 3, 5, 13):
            for shape in (draw.sizes(3), draw.choice(((1, 5, 3), (6, 1, 1)))):
                states = [draw.normal(*shape, dtype=dtype) for _ in range(count)]
                weights = draw.normal(count, dtype=dtype, scale=spread)
                args = weights, draw.normal(dtype=dtype), states
                kind = "a single state" if count == 1 else f"{count} states"
                yield Case(f"{kind} in {name}{words}", args)
        for count, left_out in ((2, (0,)), (3, (2,)), (5, (3, 1)), (6, (0, 1, 2, 4, 5))):
            shape = draw.sizes(3)
            states = [draw.normal(*shape, dtype=dtype) for _ in range(count)]
            weights = draw.normal(count, dtype=dtype, scale=spread)
            weights[left_out[0]] += 300 * spread  # the rest is nothing beside it
            args = weights, draw.normal(dtype=dtype), states, left_out
            yield Case(f"{len(left_out)} of {count} states left out in {name}{words}", args)


def mix_edges(draw: Draw) -> Iterator[Case]:
    yield from mix_cases(draw)
    yield from mix_cases(draw, 1e-4, " and weights that differ little")
    for far, words in ((90.0, "large"), (-200.0, "very small"), (14.0, "far apart")):
        for dtype, name in EXACT:
            states = [draw.normal(2, 3, 5, dtype=dtype) for _ in range(4)]
            weights = draw.normal(4, dtype=dtype) + far
            if words == "far apart":
                weights[::2] = draw.normal(2, dtype=dtype)
            args = weights, draw.normal(dtype=dtype), states
            yield Case(f"{words} weights in {name}", args)
    for weights, states in ((3, 1), (3, 2), (3, 4), (1, 2), (7, 5)):
        states = [draw.normal(2, 3, 5) for _ in range(states)]
        args = draw.normal(weights), draw.normal(), states
        yield Case("more or fewer states than weights", args)
    states = [draw.normal(2, 3, 5) for _ in range(4)]
    args = draw.normal(3), draw.normal(), states, (3,)
    yield Case("a state too many, which is left out", args)
    args = draw.normal(4) - 1e9, draw.normal(), states, (1,)
    yield Case("one of four states left out, whose weights are all very small", args)


Comparison("layer_mix", mix_edges, (LayerMix,), ("the mix",), "LayerMix", use=mixed)
SLOPES = ("the gradient of the states", "the gradient of scale", "the gradient of weights")
Comparison("layer_mix_learned", mix_cases, (LayerMix,), SLOPES, "LayerMix", use=mix_learned)

# ---- Part 3: features of texts


def mean_pool(hidden, input_ids, attention_mask, special_ids):
    means = []
    for states, ids, real in zip(hidden, input_ids.tolist(), attention_mask.tolist()):
        total, count = 0 * states[0].double(), 0
        for state, number, counts in zip(states, ids, real):
            if counts and number not in special_ids:
                total, count = total + state.double(), count + 1
        means.append(total / max(count, 1))
    return torch.stack(means).to(hidden.dtype)


def texts(draw: Draw, B: int, T: int, V: int = 30) -> torch.Tensor:
    return torch.randint(V, (B, T), generator=draw.tensors).to(draw.device)


def padded(draw: Draw, B: int, T: int, left: int = 0) -> torch.Tensor:
    """A mask of texts of several lengths, with padding behind, or before, too."""
    places = torch.arange(T)
    lengths = torch.randint(left + 1, T + 1, (B, 1), generator=draw.tensors)
    lengths[0] = T
    return ((places < lengths) & (places >= left)).to(draw.device)


def pool_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, B, T, D, count, mask=None, dtype=DOUBLE, gradients=True):
        ids = texts(draw, B, T)
        special = tuple(draw.sample(range(30), count))
        mask = padded(draw, B, T) if mask is None else mask
        args = draw.normal(B, T, D, dtype=dtype), ids, mask, special
        return Case(kind, args, gradients=gradients)

    for dtype, name in EXACT:
        for count in (2, 3, 1, 7, 5, 20, 0) * 3:
            kind = f"{count or 'no'} special id{'s' * (count != 1)} in {name}"
            yield case(kind, *draw.sizes(3), count, dtype=dtype)
    for _ in range(3):
        B, T, D = draw.sizes(3)
        yield case("one text", 1, T, D, 5)
        yield case("one position", B, 1, D, 2)
        yield case("one feature", B, T, 1, 5)
        yield case("one size for everything", T, T, T, 5)
        yield case("padding on either side", B, T, D, 5, padded(draw, B, T, 1))
        yield case("padding amid the words", B, T, D, 5, draw.mask(B, T))
        nothing = padded(draw, B, T)
        nothing[-1] = False
        yield case("a text without a word", B, T, D, 5, nothing)
        yield case("special tokens alone", B, T, D, 30)
    for dtype, name in HALVES:
        for _ in range(3):
            kind = f"states in {name}"
            yield case(kind, *draw.sizes(3), 5, dtype=dtype, gradients=False)
        kind = f"a text without a word, in {name}"
        yield case(kind, B, T, D, 5, nothing, dtype, gradients=False)


Comparison("mean_pool", pool_cases, (mean_pool,), ("the table of means",))


class Encoder(torch.nn.Module):
    """Several layers that mix the real tokens, and something else while it trains."""

    def __init__(self, V: int, D: int, depth: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(V, D))
        self.held = torch.nn.Parameter(torch.zeros(D), requires_grad=False)
        self.inner = torch.nn.Dropout(0.5)
        self.depth = depth

    def forward(self, input_ids, attention_mask) -> list[torch.Tensor]:
        table = self.inner(self.table) * (3 if self.training else 1)
        states = [table[input_ids] + self.held]
        for layer in range(self.depth):
            real = states[-1] * attention_mask[..., None]
            states.append(states[-1].flip(-1) + real.sum(1, keepdim=True) / (layer + 2))
        return states


def left_of(module) -> tuple:
    """What a function may have changed: the mode, requires_grad and gradients."""
    named = sorted(module.named_parameters())
    wants = [name for name, parameter in named if parameter.requires_grad]
    have = [name for name, parameter in named if parameter.grad is not None]
    return module.training, wants, have


def features_by(text_features, given, special_ids, dtype, depth, training):
    encoder = filled(Encoder(30, 5, depth), depth, dtype, given[0]["input_ids"].device)
    encoder.table.grad = torch.ones_like(encoder.table)
    encoder.train(training)
    return text_features(encoder, given, special_ids), *left_of(encoder)


def text_features(encoder, batches, special_ids):
    training, rows = encoder.training, []
    with torch.no_grad():
        for batch in batches:
            ids, mask = batch["input_ids"], batch["attention_mask"]
            encoder.eval()
            rows += mean_pool(encoder(ids, mask)[-1], ids, mask, special_ids)
    encoder.train(training)
    return torch.stack(rows)


def feature_cases(draw: Draw) -> Iterator[Case]:
    for training, mode in ((True, "training"), (False, "evaluation")):
        for dtype, name in EXACT:
            for depth in (1, 2, 3, 4, 6):
                given = []
                for _ in range(draw.randint(2, 4)):
                    B, T = draw.choice((1, 2, 3, 5)), draw.choice((1, 3, 6, 7))
                    given.append(batch(texts(draw, B, T), padded(draw, B, T)))
                special = tuple(draw.sample(range(30), draw.choice((0, 2, 5))))
                kind = f"{depth} layer{'s' * (depth > 1)} in {name}, in {mode} mode"
                args = given, special, dtype, depth, training
                near = 2e-5 if dtype == SINGLE else 0.0
                yield Case(kind, args, tolerance=near)
    ids, special = texts(draw, 3, 5), (4, 7)
    ids[1] = torch.tensor([4, 7, 7, 4, 4])
    args = [batch(ids, padded(draw, 3, 5))], special, DOUBLE, 2, True
    yield Case("a text without a word", args)
    args = [batch(ids[1:2], ids[1:2] > 0)], special, DOUBLE, 2, True
    yield Case("one text alone", args)


def batch(ids, mask, labels=None) -> dict:
    labels = ids[:, 0] if labels is None else labels
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


LEFT = (
    "the mode in which the call leaves it",
    "the list of parameters that require gradients after the call",
    "the list of parameters that have gradients after the call",
)
MADE = ("the table of features", *LEFT)
Comparison("text_features", feature_cases, (text_features,), MADE, use=features_by)


def standardise(train, other):
    wide, more = train.double(), other.double()
    for column in range(wide.shape[1]):
        row = train[:, column].double().tolist()
        mean = math.fsum(row) / len(row)
        squares = math.fsum((number - mean) ** 2 for number in row)
        by = math.sqrt(squares / len(row)) if len({*row}) > 1 else 1.0
        wide[:, column] = (wide[:, column] - mean) / by
        more[:, column] = (more[:, column] - mean) / by
    return wide.to(train.dtype), more.to(train.dtype)


def scale_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, N, M, D, scale=1.0, centre=0.0, dtype=DOUBLE, same=(), hint=""):
        train = draw.normal(N, D, dtype=dtype, scale=scale) + centre
        other = draw.normal(M, D, dtype=dtype, scale=scale) + centre
        for column, value in same:
            train[:, column] = value
        return Case(kind, (train, other), hint=hint, gradients=False)

    for scale in (1e-8, 1e-5, 1e-2) * 3:
        hint = "Divide by the deviation as it is, with nothing added."
        yield case("features that differ little", *draw.sizes(3), scale, hint=hint)
    for dtype, name in EXACT:
        for _ in range(3):
            yield case(f"features in {name}", *draw.sizes(3), dtype=dtype)
    constant = "A feature that is the same in all training texts is divided by 1."
    for _ in range(3):
        N, M, D = draw.sizes(3)
        yield case("one other text", N, 1, D)
        yield case("one feature", N, M, 1)
        yield case("as many texts as features", D, D, D)
        yield case("features far from 0", N, M, D, centre=1e5)
        same = [(1, 5.0)]
        kind = "a feature that is the same in all training texts"
        yield case(kind, N, M, D, 0.7, same=same, hint=constant)
        same = [(0, 0.0), (2, -3.0)]
        yield case("two such features", N, M, D, 0.7, same=same, hint=constant)
        yield case("one training text", 1, M, D, hint=constant)
        train, other = draw.normal(N, D), draw.normal(M, D)
        other[0] = 30.0
        yield Case("an outlier among the others", (train, other), gradients=False)
        train[:, 1] = other[:, 1] = 2.0
        kind = "a feature that is the same in all texts"
        yield Case(kind, (train, other), {}, constant, False)
    table = [[0, 1, 2, 1e7], [0, 4, 3, 1e7 + 8], [6, 4, 2, 1e7], [6, 1, 3, 1e7 + 8]]
    train = torch.tensor(table, dtype=DOUBLE, device=draw.device)
    hint = "A feature that is not the same in all training texts has a deviation."
    kind = "features that are the same in some texts or nearly so in all"
    yield Case(kind, (train, train + 1), {}, hint, False)
    for dtype, name in EXACT[::-1]:
        for N, D in ((7, 1), (7, 3), (13, 1), (11, 2)):
            for value in (0.1, 0.3, 0.7):
                kind = f"a feature that is 0.1 or the like in all training texts, in {name}"
                hint = "Its deviation may be 7e-9: ask the values whether they are the same."
                yield case(kind, N, 5, D, dtype=dtype, same=[(0, value)], hint=hint)


SCALED = ("the table of the training texts", "the table of the other texts")
Comparison("standardise", scale_cases, (standardise,), SCALED)

# ---- Part 4: labels of words


def align_labels(pieces, labels, cls_id, sep_id, max_length):
    rows = [(cls_id, IGNORE)]
    for word, label in zip(pieces, labels, strict=True):
        for number, piece in enumerate(word):
            if len(rows) < max_length - 1:
                rows.append((piece, IGNORE if number else label))
    rows.append((sep_id, IGNORE))
    return [piece for piece, _ in rows], [label for _, label in rows]


def align_cases(draw: Draw) -> Iterator[Case]:
    def words(count: int, V: int) -> tuple[list, list]:
        lengths = [draw.choice((1, 1, 2, 3, 5)) for _ in range(count)]
        pieces = [[draw.randrange(V) for _ in range(length)] for length in lengths]
        return pieces, [draw.randrange(9) for _ in range(count)]

    for _ in range(10):
        both = words(draw.randint(2, 9), 30_000)
        cls, sep = draw.sample(range(30_000), 2)
        yield Case("room for all", (*both, cls, sep, 70))
    for _ in range(10):
        both = words(draw.randint(2, 9), 4)
        yield Case("words that hold the ids of [CLS] and [SEP]", (*both, 1, 3, 70))
    for _ in range(4):
        pieces, labels = words(6, 900)
        total = sum(map(len, pieces)) + 2
        for most in range(3, total + 3):
            kind = "a limit between tokens" if most < total else "a limit that just fits"
            yield Case(kind, (pieces, labels, 17, 5, most))
        labels = [label + 1 for label in labels]
        kind = "pieces that were given before, with other labels"
        yield Case(kind, (pieces, labels, 17, 5, total))
    yield Case("no word", ([], [], 7, 9, 5))
    yield Case("one word", ([[8]], [5], 7, 9, 3))
    long = words(300, 30_000)
    yield Case("more than 512 tokens", (*long, 101, 102, 5000))
    yield Case("more than 512 tokens", (*long, 101, 102, 600))


ALIGNED = ("the list of input_ids", "the list of token_labels")
Comparison("align_labels", align_cases, (align_labels,), ALIGNED)


def word_guesses(logits, token_labels, may_follow=None):
    guesses, right = [], 0
    for row, label in zip(logits.tolist(), token_labels):
        if label != IGNORE:
            order = sorted(range(len(row)), key=row.__getitem__)
            if guesses and may_follow is not None:
                allowed = may_follow[guesses[-1]].tolist()
                order = [guess for guess in order if allowed[guess]]
            guesses.append(order[-1])
            right += guesses[-1] == label
    return guesses, right


def guess_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, T, L, share=0.5, scale=1.0, shift=0.0, dtype=DOUBLE, follow=()):
        logits = draw.normal(T, L, dtype=dtype, scale=scale) + shift
        best = logits.argmax(-1).tolist()
        labels = [draw.choice((guess, draw.randrange(L))) for guess in best]
        labels = [x if draw.random() < share else IGNORE for x in labels]
        args = logits, [IGNORE, *labels[1:-1], IGNORE], *follow
        return Case(kind, args, gradients=False)

    hint = "Go through the words from left to right, each after the guess before it."
    for dtype, name in EXACT:
        for L in (2, 3, 5, 7):
            for allowed in (0.3, 0.7):
                table = draw.mask(L, L, share=allowed)
                kind = f"labels that may not follow each other, in {name}"
                for about in ((0.8, 1.0, 0.0), (0.8, 9.0, -300.0)):
                    one = case(kind, 12, L, *about, dtype, [table])
                    yield Case(kind, one.args, hint=hint, gradients=False)
    every = torch.ones(3, 3, dtype=torch.bool, device=draw.device)
    yield case("labels that all may follow each other", 7, 3, 0.8, follow=[every])
    chain = torch.eye(5, device=draw.device).roll(1, 1) > 0
    yield case("labels each of which only one other may follow", 13, 5, 0.8, follow=[chain])
    yield case("no word, and labels that may not follow each other", 7, 5, 0, follow=[chain])

    for dtype, name in EXACT:
        for _ in range(5):
            yield case(f"logits in {name}", *draw.sizes(2), dtype=dtype)
        for scale, shift, words in (
            (1.0, -40.0, "negative logits"),
            (1.0, 90.0, "large logits"),
            (900.0, 0.0, "logits that lie far apart"),
            (1e-9, 0.0, "logits that lie close together"),
        ):
            for _ in range(3):
                T, L = draw.sizes(2)
                yield case(f"{words} in {name}", T, L, 0.7, scale, shift, dtype)
    for _ in range(3):
        yield case("one word", 3, draw.choice(SIZES), 1.0)
        yield case("no word", *draw.sizes(2), 0.0)
        yield case("a single label", 6, 1)
        yield case("as many tokens as labels", 5, 5)


GUESSED = ("the list of guesses", "the number of right guesses")
Comparison("word_guesses", guess_cases, (word_guesses,), GUESSED)

# ---- Part 5: answers


def best_span(start_logits, end_logits, offsets, max_tokens):
    start, end = start_logits.double().tolist(), end_logits.double().tolist()
    found = [
        (start[first] + end[last], first, last)
        for first in range(len(start))
        for last in range(len(end))
        if offsets[first] and offsets[last] and 0 <= last - first <= max_tokens - 1
    ]
    score, first, last = max(found)
    return first, last, score


def span_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, before, count, behind, most, scale=1.0, shift=0.0, **about):
        offsets = [None] * before + [(4 * i, 4 * i + 3) for i in range(count)]
        offsets += [None] * behind
        for place in about.get("holes", ()):
            offsets[place] = None
        dtype, T = about.get("dtype", DOUBLE), len(offsets)
        both = [draw.normal(T, dtype=dtype, scale=scale) + shift for _ in range(2)]
        for row in both:
            row[:before] += about.get("high", 0.0)
        return Case(kind, (*both, offsets, most), gradients=False)

    for dtype, name in EXACT:
        for most in range(1, 10):
            kind = f"max_tokens {most} in {name}"
            for _ in range(2):
                yield case(kind, 3, 8, 1, most, dtype=dtype)
        for shift, words in ((-500.0, "very negative"), (-9.0, "negative"), (90.0, "large")):
            yield case(f"{words} scores in {name}", 3, 7, 1, 5, shift=shift, dtype=dtype)
    for _ in range(6):
        yield case("a context that begins at position 0", 0, 6, 1, 4)
        yield case("a context up to the last position", 2, 6, 0, 4)
        kind = "a token amid the context that is no part of an answer"
        yield case(kind, 2, 9, 1, 5, holes=(4, 5, 8))
        yield case("two texts with a gap between them", 2, 12, 2, 12, holes=(7, 8, 9))
        yield case("a limit beyond the end", 2, 6, 1, 70)
        yield case("a question with high scores", 28, 9, 1, 5, high=6.0)
        for scale in (1e-3, 1e-6):
            yield case("scores that lie close together", 2, 7, 1, 4, scale)
    yield case("a context of one token", 1, 1, 0, 3)
    yield case("nothing but one token", 0, 1, 0, 1)
    for most in (35, 50):
        long = case("a long answer", 4, 60, 1, most)
        start, end = long.args[:2]
        start[5], end[5 + 33] = 9.0, 9.0
        yield long


SPAN = ("the position of the first token", "the position of the last", "the score")
Comparison("best_span", span_cases, (best_span,), SPAN)

CONTEXTS = (
    "The N7, which is red, leaves  Zürich at 0:10.",
    "(Jim Henson) was a puppeteer\n\tin U.S. TV ... #1",
    "Zu\u0308rich, E\u0301mile \u2013 \u201cna\u00efve\u201d caf\u00e9s [SEP] \U0001f40d  end. ",
)


ALWAYS = "Without a threshold there always is an answer."


def cut_cases(draw: Draw) -> Iterator[Case]:
    for context in CONTEXTS:
        for _ in range(14):
            ends = sorted(draw.sample(range(1, len(context)), 7))
            words = [*zip([0, *ends], [*ends, len(context)])]
            blanks = draw.random() < 0.5  # or tokens with a gap between them
            words = [(a, b) if blanks or b - a < 3 else (a + 1, b) for a, b in words]
            before = draw.randint(1, 5)
            offsets = [None] * before + words + [None]
            start, end = torch.zeros(2, len(offsets), dtype=DOUBLE, device=draw.device)
            first = draw.randrange(len(words))
            last = draw.randrange(first, len(words))
            start[before + first], end[before + last] = 4.0, 4.0
            yield Case("a text with signs", (context, start, end, offsets, 30))
            high = [row + 50 * (torch.arange(len(row)) == 0).to(row) for row in (start, end)]
            kind, hint = "a high score at [CLS]", ALWAYS
            yield Case(kind, (context, *high, offsets, 30), hint=hint)
            yield Case(kind, (context, *high, offsets, 30, None), hint=hint)
    for first in range(4):
        offsets = [None, *((4 * i, 4 * i + 3) for i in range(12)), None]
        start, end = torch.zeros(2, 14, device=draw.device)
        start[1 + first], end[2 + first], end[8 + first] = 4.0, 1.0, 3.0
        hint = "max_tokens must reach best_span."
        context = "The cat sat and the dog ran off now but who won?"
        args = context, start, end, offsets, 4
        yield Case("a limit of 4 tokens", args, hint=hint, gradients=False)


def said(answer, *args, **kwargs):
    found = answer(*args, **kwargs)
    return "" if found is None else found


def answer(context, start_logits, end_logits, offsets, max_tokens, threshold=None):
    args = start_logits, end_logits, offsets, max_tokens
    first, last, score = best_span(*args)
    no_answer = start_logits[0].item() + end_logits[0].item()
    if threshold is not None and not score > no_answer + threshold:
        return None
    return "".join(context[i] for i in range(offsets[first][0], offsets[last][1]))


Comparison("answer", cut_cases, (answer,), ("the answer",), use=said)


def null_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, span, none, by, hint="", dtype=DOUBLE):
        start, end = torch.full((2, 6), -99.0, dtype=dtype, device=draw.device)
        at = draw.choice((-3.0, 0.5, 2.0))
        start[3], end[3], start[0], end[0] = at, span - at, none + at, -at
        offsets = [None, None, (0, 3), (4, 7), (8, 11), None]
        return Case(kind, ("its red car", start, end, offsets, 3, by), {}, hint)

    for dtype, name in EXACT:
        for _ in range(25):
            span, none = draw.uniform(0.5, 9.0), draw.gauss(0, 6)
            by = draw.choice((0, 0.0, -1.5, 2.0, 5, -7.0))
            yield case(f"random scores in {name}", span, none, by, dtype=dtype)
    for less in (1e-4, 1e-6, 1e-8):
        for by in (0.0, 2.5, -2.5):
            span = draw.uniform(1.0, 6.0)
            yield case("a narrow lead", span, span - by - less, by)
            yield case("a narrow lead of no answer", span, span - by + less, by)
    for none in (-20.0, -90.0):
        for span in (3.0, 7.0):
            kind = "a very negative score of no answer"
            yield case(kind, span, none, 5.0 - none)
    for by in (0.0, 0, 1.5, -1.5):
        hint = "At equal scores there is no answer: the span must have more."
        yield case("equal scores", 2.5 + by, 2.5, by, hint)


Comparison("answer_or_none", null_cases, (answer,), ("the answer",), "answer", use=said)

# ---- Part 6: choices


def scores_by(choice_logits, table, places, input_ids, attention_mask, types, counts):
    """The table of scores, the gradient of what scores them, and the texts it read."""
    T, read = input_ids.shape[2], []

    def score(*given):
        if [(row.dim(), row.shape[-1]) for row in given] != [(2, T)] * 3:
            raise Misuse(f"score takes three tables [N, T], here T = {T}.")
        if [row.dtype for row in given] != [torch.int64, torch.bool, torch.int64]:
            raise Misuse("score must get ids, mask and types in the dtypes they have.")
        ids, mask, types = given
        read.extend(ids.tolist())
        each = (leaf[ids] + 3 * types) * places
        return torch.where(mask, each, 0.1).sum(-1, keepdim=True)

    with torch.enable_grad():
        leaf = table.clone().requires_grad_()
        found = choice_logits(score, input_ids, attention_mask, types, counts)
        weights = torch.arange(1.0, found.numel() + 1, device=table.device)
        weights = weights.to(table).reshape(found.shape)
        loss = (found * weights)[found.isfinite()].sum() + 0 * leaf.sum()
        loss.backward()  # across a bridge, too, it reaches what score keeps to itself
    return found, leaf.grad, sorted(read)


def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    nothing, examples = torch.tensor(-math.inf, device=input_ids.device), []
    for *rows, count in zip(input_ids, attention_mask, token_type_ids, counts.tolist()):
        choices = [*zip(*rows)]
        scores = [score(*(row[None] for row in one))[0, 0] for one in choices[:count]]
        scores += [nothing.to(scores[0].dtype)] * (len(choices) - count)
        examples.append(torch.stack(scores))
    return torch.stack(examples)


def choice_cases(draw: Draw) -> Iterator[Case]:
    def case(kind, B, C, T, dtype=DOUBLE, every=False):
        ids, mask = texts(draw, B, C * T).view(B, C, T), draw.mask(B, C, T)
        types = texts(draw, B, C * T, 4).view(B, C, T)
        table, places = draw.normal(30, dtype=dtype), draw.normal(T, dtype=dtype)
        counts = [C if every else draw.randint(1, C) for _ in range(B)]
        counts = torch.tensor(counts, device=draw.device)
        return Case(kind, (table, places, ids, mask, types, counts))

    for dtype, name in EXACT:
        for _ in range(4):
            yield case(f"sizes that all differ, in {name}", *draw.sizes(3), dtype)
        yield case(f"choices that are all real, in {name}", *draw.sizes(3), dtype, True)
    for _ in range(2):
        B, C, T = draw.sizes(3)
        yield case("one example", 1, C, T)
        yield case("one choice", B, 1, T)
        yield case("one example of one choice", 1, 1, T)
        yield case("one position", B, C, 1)
        yield case("one size for everything", T, T, T)
        one = case("padding that all texts share", B, C, T)
        one.args[3][..., -1] = False
        yield one
        one = case("a choice without a real token", B, C, T)
        one.args[3][0, -1] = False
        yield one
        table, _, *rows, _ = case("", B, T, C).args
        turned = [row.transpose(1, 2) for row in rows]
        counts = torch.tensor([draw.randint(1, C) for _ in range(B)], device=draw.device)
        args = table, draw.normal(T), *turned, counts
        yield Case("tables that were transposed", args)


CHOICES = (
    "the table of scores",
    "the gradient that reaches score",
    "the list of texts that score reads",
)
Comparison("choice_logits", choice_cases, (choice_logits,), CHOICES, use=scores_by)


def choose(logits, least=0.0):
    rows, best = [], []
    for row in logits:
        wide = row.double()
        powers = [(one - wide.detach().max()).exp() for one in wide]
        rows.append(torch.stack(powers) / sum(powers))
        best.append(max(range(len(row)), key=row.tolist().__getitem__))
        best[-1] = -1 if rows[-1].detach().max() < least else best[-1]
    return torch.stack(rows).to(logits.dtype), torch.tensor(best, device=logits.device)


def choose_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in EXACT:
        for scale, shift, words in (
            (1.0, 0.0, "scores"),
            (0.1, 0.0, "scores without a favourite"),
            (9.0, 900.0, "large scores"),
            (9.0, -900.0, "very negative scores"),
            (300.0, 0.0, "scores that lie far apart"),
            (1e-9, 0.0, "scores that lie close together"),
        ):
            for shape in (draw.sizes(2), draw.sizes(2), (4, 4), (1, 5), (6, 1)):
                made = draw.normal(*shape, dtype=dtype, scale=scale) + shift
                near = 1e-3 if dtype == SINGLE and scale > 1 else 0.0
                yield Case(f"{words} in {name}", (made,), tolerance=near)
        apart = draw.normal(5, 4, dtype=dtype)
        apart[::2] -= 1000
        near = 1e-3 if dtype == SINGLE else 0.0
        yield Case(f"one example far below another in {name}", (apart,), tolerance=near)
        for least in (0.35, 0.55, 0.9):
            for shift in (0.0, -40.0):
                made = draw.normal(13, draw.choice((2, 3, 5)), dtype=dtype, scale=2.0)
                likely = made.double().softmax(1).amax(1)
                made = made[(likely - least).abs() > 0.01] + shift
                kind = f"probabilities above and below `least`, in {name}"
                yield Case(kind, (made, least))
        hint = "A probability that is exactly `least` is enough."
        made = draw.normal(5, 1, dtype=dtype)
        yield Case(f"one choice and a `least` of 1 in {name}", (made, 1.0), {}, hint)
        real = torch.arange(6, device=draw.device) < torch.tensor([[2], [6], [1]]).to(
            draw.device
        )
        made = draw.normal(3, 6, dtype=dtype).masked_fill(~real, -math.inf)
        yield Case(f"places that hold no choice, in {name}", (made, 0.5))
    for dtype, name in HALVES:
        made = draw.normal(5, 6, dtype=dtype)
        yield Case(f"scores in {name}", (made,), gradients=False)


CHOSEN = ("the table of probabilities", "the row of best choices")
Comparison("choose", choose_cases, (choose,), CHOSEN)

# ---- Part 7: fine-tuning


class Guesser(torch.nn.Module):
    """Adds a row of a table for each real token, and other rows while it trains."""

    def __init__(self, V: int, L: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(V, L))
        self.held = torch.nn.Parameter(torch.zeros(L), requires_grad=False)

    def forward(self, input_ids, attention_mask) -> torch.Tensor:
        rows = self.table.roll(1, 1) if self.training else self.table
        return (rows[input_ids] * attention_mask[..., None]).sum(1) + self.held


def accuracy_by(evaluate, given, labels, dtype, training):
    """The accuracy, what is left of the model, and what chance gives afterwards."""
    model = filled(Guesser(30, labels), labels, dtype, given[0]["labels"].device)
    model.table.grad = torch.ones_like(model.table)
    model.train(training)
    torch.manual_seed(labels)
    accuracy = evaluate(model, given)
    return accuracy, *left_of(model), torch.rand(3)


def evaluate(model, batches):
    training, hits = model.training, []
    for one in batches:
        model.training = False
        with torch.no_grad():
            rows = model(one["input_ids"], one["attention_mask"]).tolist()
        for row, label in zip(rows, one["labels"].tolist()):
            hits.append(row[label] == max(row))
    model.training = training
    return sum(hits) / len(hits)


def evaluate_cases(draw: Draw) -> Iterator[Case]:
    for training, mode in ((True, "training"), (False, "evaluation")):
        for dtype, name in EXACT:
            for sizes in ((7,), (6, 6, 1), (3, 10, 5, 11), (1, 1), (13, 2)):
                given, labels = [], draw.choice((2, 3, 5, 7))
                for B in sizes:
                    T = draw.choice((1, 3, 6))
                    rows = texts(draw, B, T), padded(draw, B, T)
                    given.append(batch(*rows, texts(draw, B, 1, labels)[:, 0]))
                batches = f"{len(sizes)} batch{'es' * (len(sizes) > 1)}"
                kind = f"{batches} and a model in {mode} mode in {name}"
                yield Case(kind, (given, labels, dtype, training))


MEASURED = ("the accuracy", *LEFT, "what chance gives after the call")
Comparison("evaluate", evaluate_cases, (evaluate,), MEASURED, use=accuracy_by)


class Layer(torch.nn.Module):
    def __init__(self, V: int, D: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(V, D))
        self.bias = torch.nn.Parameter(torch.zeros(D))

    def forward(self, input_ids, attention_mask) -> torch.Tensor:
        real = attention_mask[..., None]
        return ((self.table[input_ids] + self.bias).tanh() * real).sum(1)


class Noted(torch.nn.Module):
    """A classifier that notes its weights at each training step and after each epoch.

    Validation texts begin with id 0, then their number and their label; of those of
    epoch e it guesses the first ``right[e]`` right, whatever its weights are. Other
    texts it reads as a classifier does, and otherwise while it is not training.
    """

    def __init__(self, right: list[int], D: int = 3) -> None:
        super().__init__()
        self.encoder, self.head = Layer(12, D), torch.nn.Linear(D, 2)
        self.encoder_scale = torch.nn.Parameter(torch.zeros(D))  # no part of the encoder
        self.register_buffer("steps", torch.zeros(1))
        self.right, self.steps_seen, self.epochs, self.trained = right, [], [], False

    def weights(self):
        rows = [p.detach().flatten() for _, p in sorted(self.named_parameters())]
        return torch.cat([*rows, self.steps.flatten()])

    def forward(self, input_ids, attention_mask) -> torch.Tensor:
        if input_ids[0, 0] > 0:
            if torch.is_grad_enabled():
                self.steps_seen.append(self.weights())
                self.trained = True
            self.steps += self.training
            hidden = self.encoder(input_ids, attention_mask) * self.encoder_scale
            return self.head(hidden) * (1 if self.training else 2)
        if self.trained or not self.epochs:
            self.epochs.append(None)
        self.epochs[-1], self.trained = self.weights(), False
        right = self.right[(len(self.epochs) - 1) % len(self.right)]
        wrong = (input_ids[:, 1] >= right).long()
        guesses = torch.nn.functional.one_hot((input_ids[:, 2] + wrong) % 2, 2)
        # the best epoch has the greatest loss: it is surest of what is wrong
        sure = 9.0 if right == max(self.right) else 0.1
        return sure * guesses + 0 * self.head.weight.sum()


def prepared(right, held, stale, dtype, at):
    model = filled(Noted(right), 5, dtype, at)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in held)
        if stale and name not in held:
            parameter.grad = torch.ones_like(parameter)
    return model


def tuned_by(finetune, train, right, rate, runs, dtype=DOUBLE, held=(), stale=False):
    """The weights at each training step, requires_grad and the mode afterwards.

    The weights at the end are those of the best epoch, and there if it is the only one.
    """
    at = train[0]["labels"].device
    model = prepared(right, held, stale, dtype, at)
    for frozen in runs:
        given = {} if frozen is None else {"frozen": frozen}
        with torch.enable_grad():
            finetune(model, train, judges(at), len(right), rate, **given)
    end = [model.weights()] if len(right) == 1 else []
    return torch.stack([*model.steps_seen, *end]), left_of(model)[1], model.training


def judges(at) -> list:
    """Two batches of validation texts."""
    numbers = torch.arange(250, device=at)
    ids = torch.stack([0 * numbers, numbers, numbers * 7 % 3 % 2], dim=1)
    return [batch(ids, ids >= 0, ids[:, 2]) for _ in range(2)]


def finetune(model, train, validation, epochs, rate, frozen=False):
    """AdamW as its paper has it, with the defaults of torch."""
    accuracies, kept, best = [], None, -1.0
    trained = [
        parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and not (frozen and name.startswith("encoder."))
    ]
    moments = [[0.0 * parameter.detach()] * 2 for parameter in trained]
    step = 0
    for _ in range(epochs):
        for one in train:
            step += 1
            model.training = True
            with torch.enable_grad():
                logits = model(one["input_ids"], one["attention_mask"])
                largest = logits.detach().amax(1, keepdim=True)
                total = (logits - largest).exp().sum(1).log() + largest[:, 0]
                own = logits[torch.arange(len(logits)), one["labels"]]
                found = torch.autograd.grad((total - own).mean(), trained)
            for number, (parameter, slope) in enumerate(zip(trained, found)):
                first, second = moments[number]
                first = 0.9 * first + 0.1 * slope
                second = 0.999 * second + 0.001 * slope**2
                moments[number] = [first, second]
                size = (second / (1 - 0.999**step)).sqrt() + 1e-8
                with torch.no_grad():
                    parameter *= 1 - 0.01 * rate
                    parameter -= rate * first / (1 - 0.9**step) / size
        accuracies.append(evaluate(model, validation))
        if accuracies[-1] > best:
            best = accuracies[-1]
            kept = [t.clone() for t in model.state_dict().values()]
    for tensor, value in zip(model.state_dict().values(), kept):
        tensor.copy_(value)
    model.training = False
    return accuracies


def tune_cases(draw: Draw) -> Iterator[Case]:
    def lessons(count: int) -> list:
        made = []
        for number in range(count):
            B, T = 3 + number % 4, draw.choice((2, 3, 5))
            ids = 1 + texts(draw, B, T, 11)
            made.append(batch(ids, padded(draw, B, T), texts(draw, B, 1, 2)[:, 0]))
        return made

    right = [3, 9]
    for rate, frozen in ((1e-3, None), (0.02, True), (0.3, False), (0.02, False)):
        words = "left out" if frozen is None else frozen
        kind = f"rate {rate} and frozen {words}"
        yield Case(kind, (lessons(3), right, rate, (frozen,)))
    for count, script in ((1, [3, 9, 5]), (7, [4])):
        kind = f"{count} training batch{'es' * (count > 1)} and {len(script)} epoch"
        args = lessons(count), script, 0.05, (None,)
        yield Case(kind + "s" * (len(script) > 1), args)
    args = lessons(2), right, 0.02, (None,), SINGLE
    yield Case("a model in float32", args, tolerance=1e-3)
    for held, frozen in (
        (("encoder.table",), False),
        (("encoder.table", "head.weight"), True),
        (("encoder.bias", "head.bias"), True),
        (("head.weight",), False),
    ):
        args = lessons(2), right, 0.02, (frozen,), DOUBLE, held
        yield Case(f"{held[0]} that was not to be trained before", args)
    args = lessons(2), right, 0.02, (None,), DOUBLE, (), True
    yield Case("gradients that somebody else has left", args)
    for runs in ((True, False), (False, False)):
        yield Case("one fine-tuning after another", (lessons(2), [4], 0.02, runs))


TUNED = (
    "the table of weights at each training step",
    "the list of parameters that require gradients afterwards",
    "the mode afterwards",
)
Comparison("finetune", tune_cases, (finetune,), TUNED, use=tuned_by)


def kept_by(finetune, train, right):
    """The accuracies, and the epochs whose weights are those that the model has."""
    at = train[0]["labels"].device
    model = prepared(right, (), False, DOUBLE, at)
    with torch.enable_grad():
        found = finetune(model, train, judges(at), len(right), 0.05)
    same = [torch.equal(model.weights(), weights) for weights in model.epochs]
    return found, same.index(True) if any(same) else None


def kept_cases(draw: Draw) -> Iterator[Case]:
    for right, words in (
        ([100, 180, 150], "the best epoch in the middle"),
        ([200, 180, 120], "the best epoch at the beginning"),
        ([20, 80, 220], "the best epoch at the end"),
        ([10, 125, 126, 30], "two epochs that are nearly as good"),
        ([126, 125, 30], "two epochs that are nearly as good"),
        ([90, 30, 200, 60, 220, 10], "accuracies that go up and down"),
        ([50], "one epoch"),
        ([0], "an epoch in which nothing is right"),
        ([250, 240], "an epoch in which all is right"),
    ):
        ids = 1 + texts(draw, 5, 3, 11)
        train = [batch(ids, ids > 0, texts(draw, 5, 1, 2)[:, 0])]
        yield Case(words, (train, right))


KEPT = ("the list of accuracies", "the epoch whose weights the model has in the end")
Comparison("finetune_best", kept_cases, (finetune,), KEPT, "finetune", use=kept_by)
