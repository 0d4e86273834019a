"""Legal inputs of each function of assignment 5, and references to compare with.

The references are written from definitions, loops and formulas. What chance decides is judged
by frequencies, those of two draws together as well: each bound fails a right answer at most
once in a million runs. `course_tools/grading/assignments/comparing.py` runs all of it.
"""

import functools
import itertools
import math
import random
from collections.abc import Iterator

import torch
from course_tools.grading.assignments.comparing import (
    Case,
    Comparison,
    Draw,
    Misuse,
    each,
    filled,
)

DOUBLE, SINGLE = torch.float64, torch.float32
IGNORE, IS_NEXT, NOT_NEXT = -100, 0, 1


def in_turn(function, calls):
    """What a function gives for one input after the other, asked for in one message."""
    many = getattr(function, "many", functools.partial(each, function))
    rows = zip(many(calls), calls, strict=True)
    return [r[1] if r[0] == "returned" else function(*a, **k) for r, (a, k) in rows]


def check_chance(table, shares, names, hint: str) -> None:
    """Refuse categories [B, T] that are not drawn one by one, each with its share.

    Compared are the shares of all, those of each long row and column, and, for each distance,
    how often what is so far apart agrees. Deviations are divided by what chance makes them.
    """
    shares = torch.as_tensor(shares, dtype=DOUBLE).clamp(min=1e-9)
    n, free = table.numel(), max(len(shares) - 1, 1)
    drawn = torch.nn.functional.one_hot(table, len(shares)).double()
    found = drawn.mean((0, 1))
    apart = (drawn - found) / torch.maximum(shares, found).sqrt()
    waves = torch.fft.fft2(apart, dim=(0, 1)).abs() ** 2
    pairs = torch.fft.ifft2(waves.sum(-1)).real
    pairs[0, 0] = 0.0
    if pairs.abs().max() > 8 * math.sqrt(n * free):
        raise Misuse(f"What is drawn for one tells what is drawn for another. {hint}")
    for axis in (axis for axis in (0, 1) if table.shape[axis] > 500):
        lines = (apart.sum(axis) ** 2).sum(-1) / table.shape[axis]
        if lines.max() > free + 2 * math.sqrt(20 * free) + 40:
            raise Misuse(f"The shares differ from place to place. {hint}")
    wrong = (found - shares).abs() > 6 * (shares * (1 - shares) / n).sqrt()
    if wrong.any():
        place = min(int(wrong.nonzero()[0]), len(names) - 1)
        raise Misuse(f"The share of {names[place]} is wrong. {hint}")


# ---- Part 1: holes


def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    lots = torch.rand(input_ids.shape, generator=generator, dtype=DOUBLE)  # decide everything
    special = torch.stack([input_ids == number for number in special_ids]).any(0)
    labels = input_ids.masked_fill(special | (lots >= rate), IGNORE)
    ordinary = torch.tensor(sorted({*range(vocab_size)} - {*special_ids}))
    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]
    seen = drawn.masked_fill(lots < 0.8 * rate, mask_id)
    return torch.where((labels == IGNORE) | (lots >= 0.9 * rate), input_ids, seen), labels


def holes(function, ids, special_ids, mask_id, vocab_size, seed, *rate):
    """What holds whatever is drawn."""
    chance = torch.Generator().manual_seed(seed)
    masked, labels = function(ids, special_ids, mask_id, vocab_size, chance, *rate)
    chosen = labels != IGNORE
    certain = torch.isin(ids, torch.tensor(special_ids)) | (rate in ((0.0,), (1.0,)))
    return chosen & certain, torch.where(chosen, labels, ids), torch.where(chosen, ids, masked)


def hole_cases(draw: Draw) -> Iterator[Case]:
    for special_ids, V, words in (
        ((0, 1, 2, 3, 4), 31, "the smallest ids special"),
        ((40, 3, 17, 8), 41, "special ids in the middle of the vocabulary"),
        ((6,), 7, "one special id"),
        ((3, 0, 2), 4, "one ordinary id"),
    ):
        for rate in ((), (0.5,), (1.0,), (0.0,)):
            B, T = draw.sizes(2)
            for shape in ((B, T), (B, T), (1, T), (B, 1), (1, 1)):
                ids = torch.randint(V, shape, generator=draw.tensors)
                about = special_ids, draw.choice(special_ids), V, draw.randint(0, 999), *rate
                kind = f"{f'rate {rate[0]:g}' if rate else 'no rate'} and {words}"
                yield Case(kind, (ids, *about))
        yield Case("sequences that are columns of a table", (ids.T, *about))
        special = torch.full((3, 7), special_ids[-1])
        yield Case("special tokens alone", (special, *about[:-1], 1.0))


HOLES = ("the choice of positions", "the label of a chosen position", "what is not chosen")
Comparison("holes", hole_cases, (mask_tokens,), HOLES, "mask_tokens", holes)


def choice(function, shape, special_ids, seed, *rate):
    """Judge which of many positions are chosen."""
    ids = torch.full(shape, 12)
    ids[:, 1::7] = special_ids[-1]
    chance = torch.Generator().manual_seed(seed)
    _, labels = function(ids, special_ids, 0, 13, chance, *rate)
    table = (labels != IGNORE)[ids == 12].view(len(ids), -1).long()
    rate = rate[0] if rate else 0.15
    hint = "Choose each position by itself with probability `rate`, whatever happens to others."
    check_chance(table, (1 - rate, rate), ("tokens not chosen", "chosen"), hint)


def choice_cases(draw: Draw) -> Iterator[Case]:
    for shape, *rate in (
        ((29, 701),),
        ((701, 29), 0.5),
        ((200, 100), 0.05),
        ((5003, 3), 0.4),
        ((3, 5003), 0.4),
        ((5003, 1), 0.7),
        ((2503, 7),),
    ):
        for special_ids in ((0,), (0, 1, 2)):
            args = (shape, special_ids, draw.randint(0, 999), *rate)
            yield Case("many tokens", args)


Comparison("choice", choice_cases, (mask_tokens,), ("nothing",), "mask_tokens", choice)


def fates(function, shape, special_ids, mask_id, vocab_size, own, calls, seed, rate):
    """Judge what becomes of a table of one ordinary id, made in one call or in many."""
    chance = torch.Generator().manual_seed(seed)
    ordinary = torch.tensor(sorted({*range(vocab_size)} - {*special_ids}))
    K, groups = len(ordinary), min(len(ordinary), 7)
    kinds = torch.full((vocab_size,), -1)
    kinds[ordinary] = 3 + torch.arange(K) * groups // K  # random tokens, by their size
    kinds[mask_id], kinds[own] = 0, 1
    given, rate = ([], 0.15) if rate is None else ([rate], rate)
    shares = 0.1 * rate * torch.bincount(kinds[ordinary], minlength=3 + groups).double() / K
    shares[:3] += torch.tensor([0.8 * rate, 0.1 * rate, 1 - rate])
    rows, about = [], (special_ids, mask_id, vocab_size, chance, *given)
    inputs = [((torch.full(shape, own), *about), {}) for _ in range(calls)]
    for masked, labels in in_turn(function, inputs):
        if not torch.isin(masked, torch.cat([ordinary, torch.tensor([mask_id])])).all():
            raise Misuse(
                "Among the random tokens are special ones, or ids that are not in the"
                " vocabulary. Draw from all ids that are not special."
            )
        rows.append(kinds[masked].masked_fill(labels == IGNORE, 2))
    names = ("[MASK]", "tokens that stay", "tokens not chosen", "some ids among random tokens")
    hint = "One draw decides what becomes of a chosen position, and every position has its own."
    hint += " Random tokens are drawn one by one, each ordinary id equally likely."
    table = torch.cat(rows)
    check_chance((table == 2).long(), (rate, 1 - rate), ("chosen tokens",), hint)
    check_chance(table, shares, names, hint)


def fate_cases(draw: Draw) -> Iterator[Case]:
    for shape, V, special_ids, rate, kind in (
        ((701, 29), 12, (11, 0, 5, 7), 1.0, "eight ordinary ids and rate 1"),
        ((29, 701), 5, (4, 1), 0.5, "three ordinary ids and rate 0.5"),
        ((2603, 7), 6, (0, 1, 2, 3, 4), None, "one ordinary id"),
        ((7, 2603), 4, (3, 1), 0.7, "two ordinary ids"),
        ((701, 29), 9, (5, 3, 2), 0.6, "special ids from large to small"),
        ((403, 41), 41003, (41002, 30000, 7), 1.0, "a large vocabulary"),
    ):
        own = draw.choice(sorted({*range(len(special_ids), V)} - {*special_ids}))
        seed = draw.randint(0, 999)
        yield Case(kind, (shape, special_ids, special_ids[-1], V, own, 1, seed, rate))
    args = ((1, 60), (0, 1, 2, 3, 4), 4, 9, 5, 100, draw.randint(0, 999), 1.0)
    yield Case("many calls with one generator", args)


def call_cases(draw: Draw) -> Iterator[Case]:
    for shape, calls in (((1, 7), 500), ((2, 3), 200)):
        args = (shape, (0, 1, 2, 3, 4), 4, 6, 5, calls, draw.randint(0, 999), None)
        yield Case("many calls with one generator", args)


Comparison("fates", fate_cases, (mask_tokens,), ("nothing",), "mask_tokens", fates)
Comparison("calls", call_cases, (mask_tokens,), ("nothing",), "mask_tokens", fates)

# ---- Part 2: pairs


def fill_segments(document, most):
    segments, rest = [], [sentence[:most] for sentence in document]
    while rest:
        lengths = itertools.accumulate(map(len, rest))
        count = sum(length <= most for length in lengths)
        segments.append([number for sentence in rest[:count] for number in sentence])
        rest = rest[count:]
    return segments


def fill_cases(draw: Draw) -> Iterator[Case]:
    def document(count: int, longest: int) -> list[list[int]]:
        lengths = [draw.randint(1, longest) for _ in range(count)]
        return [[draw.randint(0, 9) for _ in range(length)] for length in lengths]

    for most in (3, 1, 130):
        yield Case("no sentences", ([], most))
        yield Case("one sentence", (document(1, 4), most))
    for kind, count, longest, most in (
        ("sentences that have room", 9, 4, 7),
        ("sentences that fill segments exactly", 12, 2, 6),
        ("some sentences longer than most", 12, 9, 5),
        ("sentences as long as most, or longer", 9, 3, 1),
        ("one segment for everything", 7, 5, 130),
        ("segments of hundreds of ids", 9, 300, 700),
        ("sentences of hundreds of ids", 3, 700, 600),
    ):
        for _ in range(10 if most < 500 else 2):
            yield Case(kind, (document(count, longest), most))
    for length, most in ((1, 3), (2, 6), (2, 7), (4, 3)):
        yield Case("sentences that are equal", ([[5] * length] * 8, most))


Comparison("fill_segments", fill_cases, (fill_segments,), ("the list of segments",))


def sentence_pairs(documents, random):
    if len(documents) == 1:
        raise ValueError
    pairs = []
    for number, document in enumerate(documents):
        for first, second in itertools.pairwise(document):
            label, other = random.getrandbits(1), number
            while label == NOT_NEXT and other == number:
                other = random.randrange(len(documents))
            if label == NOT_NEXT:
                second = random.choice(documents[other])
            pairs.append((first, second, label))
    return pairs


def next_segments(function, documents, seed):
    """Whatever is drawn: the first segments, and whether each second one fits its label."""
    pairs, fits = function(documents, random.Random(seed)), []
    places = [(n, p) for n, document in enumerate(documents) for p in range(len(document) - 1)]
    for (n, p), (_, second, label) in zip(places, pairs):
        others = [s for m, document in enumerate(documents) if m != n for s in document]
        true = [documents[n][p + 1]] if label == IS_NEXT else others
        fits.append(label in (IS_NEXT, NOT_NEXT) and second in true)
    return [first for first, _, _ in pairs], fits


def next_cases(draw: Draw) -> Iterator[Case]:
    for kind, sizes, ids in (
        ("documents of several segments", (3, 6, 4), 999),
        ("two documents", (7, 5), 999),
        ("documents of one segment, which make no pair", (1, 3, 1, 1), 999),
        ("many documents", (2, 3, 1) * 10, 999),
        ("equal segments in a document", (12, 9, 1), 3),
    ):
        for _ in range(8):
            documents = [
                [[draw.randint(0, ids) for _ in range(draw.randint(1, 2))] for _ in range(size)]
                for size in sizes
            ]
            yield Case(kind, (documents, draw.randint(0, 999)))
    for sizes in ((4, 4), (1, 1), (3, 3, 3)):
        documents = [[[place, 7] for place in range(size)] for size in sizes]
        yield Case("documents that are equal", (documents, draw.randint(0, 999)))
    for size in (1, 2, 5):
        document = [[place] for place in range(size)]
        yield Case("one document only", ([document], draw.randint(0, 999)))


PAIRS = ("the list of first segments", "a second segment, for its label,")
Comparison("next", next_cases, (sentence_pairs,), PAIRS, "sentence_pairs", next_segments)


def coins(function, sizes, long, equal, seed):
    """Judge by frequencies. A segment is [10000 times its group + anything].

    `long` is a document of which all pairs are looked at, in their order; None: each document
    has two pairs, and a group is how far away the document of the random segment is.
    """
    group, N = itertools.count(10000, 10000), len(sizes)
    documents = [
        [[place if n == long else next(group)] for place in range(size)]
        for n, size in enumerate(sizes)
    ]
    if equal == "documents":
        documents[-1] = documents[long][:]
    elif equal == "segments" or long is None:
        documents = [[[5 if equal else n]] * size for n, size in enumerate(sizes)]
    pairs = function(documents, random.Random(seed))
    if len(pairs) != sum(sizes) - N:
        return  # the test before says so
    if long is None:
        far = [((second[0] - first[0] - 1) % N) * 4 // (N - 1) for first, second, _ in pairs]
        groups, weights = [min(group, 3) for group in far], torch.full((4,), 0.125)
    else:
        begin = sum(size - 1 for size in sizes[:long])
        pairs = pairs[begin : begin + sizes[long] - 1]
        groups = [second[0] // 10000 for _, second, _ in pairs]
        possible = [(n, s[0] // 10000) for n in range(N) if n != long for s in documents[n]]
        weights = torch.zeros(1 + max(group for _, group in possible))
        for n, group in possible:
            weights[group] += 0.5 / (N - 1) / sizes[n]
    kinds = [(1 + g) * (label == NOT_NEXT) for g, (_, _, label) in zip(groups, pairs)]
    table = torch.tensor(kinds).view((-1, 2) if long is None else (1, -1))
    hint = "Throw a coin for each pair, then draw one of the other documents, each equally"
    hint += " likely, before or after, short or long, and then any of its segments."
    names = ("pairs that are next", "some random segments")
    check_chance((table > 0).long(), (0.5, 0.5), names, hint)
    check_chance(table, [0.5, *weights], names, hint)
    check_chance(table[table > 0][None] - 1, 2 * weights, names[1:], hint)


def coin_cases(draw: Draw) -> Iterator[Case]:
    for kind, sizes, long, equal in (
        ("many short documents", (3,) * 3001, None, None),
        ("one long document", (2, 3, 3001, 4, 1), 2, None),
        ("one long document", (2501, 5), 0, None),
        ("one long document", (1, 2, 2, 2501), 3, None),
        ("documents that are equal", (1501, 1, 1501), 0, "documents"),
        ("segments that are equal", (1501, 1, 3), 0, "segments"),
    ):
        yield Case(kind, (sizes, long, equal, draw.randint(0, 999)))


def many_calls(function, sizes, seed):
    """Judge the labels of many calls with one generator."""
    chance = random.Random(seed)
    documents = [[[n, place] for place in range(size)] for n, size in enumerate(sizes)]
    made = in_turn(function, [((documents, chance), {})] * 300)
    calls = [[int(label) for *_, label in pairs] for pairs in made]
    if {*map(len, calls)} != {sum(sizes) - len(sizes)}:
        return  # the test before says so
    hint = "Throw a coin for each pair, whatever the others are."
    check_chance(torch.tensor(calls), (0.5, 0.5), ("pairs that are next", "others"), hint)


def many_cases(draw: Draw) -> Iterator[Case]:
    yield Case("many calls with one generator", ((3, 3), draw.randint(0, 999)))


ABOUT = (sentence_pairs,), ("nothing",), "sentence_pairs"
Comparison("coins", coin_cases, *ABOUT, coins)
Comparison("throws", many_cases, *ABOUT, many_calls)

NAMES = "input_ids", "token_type_ids", "attention_mask", "next_sentence_labels"


def pack_pairs(pairs, cls_id, sep_id, pad_id):
    T = 3 + max(len(first) + len(second) for first, second, _ in pairs)
    whole = [
        [cls_id, *first, sep_id, *second, sep_id] + [pad_id] * T for first, second, _ in pairs
    ]
    ends = [(len(first) + 2, len(first) + len(second) + 3) for first, second, _ in pairs]
    types = [[int(begin <= t < end) for t in range(T)] for begin, end in ends]
    masks = [[t < end for t in range(T)] for _, end in ends]
    made = [row[:T] for row in whole], types, masks, [label for *_, label in pairs]
    return dict(zip(NAMES, map(torch.tensor, made)))


def packed(function, *args):
    batch = function(*args)
    return tuple(batch[name] for name in NAMES)


def pack_cases(draw: Draw) -> Iterator[Case]:
    def pairs(count: int, longest: int, most: int = 30000) -> list[tuple]:
        def ids():
            return [draw.randint(0, most) for _ in range(draw.randint(1, longest))]

        return [(ids(), ids(), draw.randint(0, 1)) for _ in range(count)]

    for kind, count, longest, most in (
        ("pairs of several lengths", 5, 9, 30000),
        ("one pair", 1, 7, 30000),
        ("segments of one id", 3, 1, 30000),
        ("special ids that are ordinary ones, too", 7, 6, 9),
        ("segments of hundreds of ids", 2, 600, 30000),
    ):
        for _ in range(8 if longest < 500 else 2):
            special = draw.sample(range(10), 3) if most == 9 else draw.sample(range(200), 3)
            yield Case(kind, (pairs(count, longest, most), *special))
    uneven = [([5] * 9, [6], 1), ([7], [8] * 11, 0), ([5], [6], 1)]
    yield Case("the longest segments in different pairs", (uneven, 2, 3, 0))


Comparison("pack_pairs", pack_cases, (pack_pairs,), NAMES, use=packed)

# ---- Part 3: the loss


def masked_loss(logits, labels):
    rows = logits.reshape(-1, logits.shape[-1])
    asked = [(n, y) for n, y in enumerate(labels.flatten().tolist()) if y != IGNORE]
    total = rows[:0].double().sum()
    for n, label in asked:
        above = rows[n].double() - rows[n, label]  # exp of it is how many times as likely
        largest = above.detach().max()
        total = total + largest + (above - largest).exp().sum().log()
    return (total / max(len(asked), 1)).to(logits.dtype)


def labels_of(draw: Draw, shape, V: int, share: float = 0.5) -> torch.Tensor:
    """Labels, of which a share is asked for, but one at least."""
    made = torch.randint(V, shape, generator=draw.tensors)
    asked = torch.rand(shape, generator=draw.tensors) < share
    asked.view(-1)[draw.randrange(asked.numel())] = True
    return made.masked_fill(~asked, IGNORE).to(draw.device)


def loss_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, *shape: int, share=0.5, scale=3.0, dtype=DOUBLE, **about) -> Case:
        logits = draw.normal(*shape, dtype=dtype, scale=scale)
        return Case(kind, (logits, labels_of(draw, shape[:-1], shape[-1], share)), **about)

    one_step = {"hint": "Take log_softmax in one step, of the chosen positions alone."}
    for dtype in (DOUBLE, SINGLE):
        for _ in range(6):
            B, T, N, V = draw.sizes(4)
            name = f"logits in {str(dtype)[6:]}"
            for shape in ((B, T, V), (T, V), (B, N, T, V), (V,), (1, 1, V), (B, T, 1)):
                yield case(f"{name}", *shape, dtype=dtype)
            yield case(f"all positions chosen, {name}", B, T, V, share=1.0, dtype=dtype)
            yield case(f"one position chosen, {name}", B, T, V, share=0.0, dtype=dtype)
            wide = case(f"a part of a larger table, {name}", B, T, 2 * V, dtype=dtype)
            logits, labels = wide.args
            wide.args = (
                logits[..., ::2].transpose(0, 1),
                torch.where(labels < 0, labels, labels % V).T,
            )
            yield wide
    for scale, words in ((1e-6, "tiny"), (60.0, "large"), (1e4, "huge")):
        for _ in range(3):
            yield case(f"{words} logits", 3, 5, 7, scale=scale, **one_step)
    for far in (1e3, -1e3):
        made = case("rows that are far from each other", 3, 5, 7, share=1.0, **one_step)
        made.args[0][1] += far
        yield made
    yield case("many entries", 2, 3, 701)
    for bad in (math.inf, math.nan):
        made = case("no finite numbers where nobody asks", 3, 5, 7, gradients=False, **one_step)
        made.args[0][made.args[1] == IGNORE] = bad
        yield made
    for dtype in (torch.bfloat16, torch.float16):
        yield case("logits in half precision", 2, 3, 7, dtype=dtype, gradients=False)
    for dtype in (DOUBLE, SINGLE):
        for shape in ((3, 5, 7), (4, 2), (6,)):
            made = case("no chosen position", *shape, dtype=dtype)
            made.args[1].fill_(IGNORE)
            yield made


Comparison("masked_loss", loss_cases, (masked_loss,), ("the loss",))


def masked_logits(head, hidden, labels, most=None):
    B, T, _ = hidden.shape
    asked = [(b, t) for b in range(B) for t in range(T) if labels[b, t] != IGNORE]
    rows = torch.cat([hidden[:0, 0], *(hidden[b, t, None] for b, t in asked)])
    kept = torch.cat([labels[:0, 0], *(labels[b, t, None] for b, t in asked)])
    starts = range(0, max(len(rows), 1), most or max(len(rows), 1))
    return torch.cat([head(rows[i : i + (most or len(rows))]) for i in starts]), kept


def row_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, B: int, T: int, D: int, share=0.5, dtype=DOUBLE, most=None) -> Case:
        labels, calls = labels_of(draw, (B, T), 9, share), []
        if share < 0:
            labels.fill_(IGNORE)
        N, matrix = int((labels != IGNORE).sum()), draw.normal(D, 4, dtype=dtype)

        def head(rows):
            calls.append(rows.shape)
            left = N - (len(calls) - 1) * (most or N)
            if calls[-1] != (min(most or N, left), D) or (left <= 0 and len(calls) > 1):
                raise Misuse(
                    "head must be called once, or with each portion, with the hidden states"
                    " [N, D] of chosen positions alone; yours gives it another shape or"
                    " calls it again."
                )
            return (rows @ matrix).tanh()

        given = {} if most is None else {"most": most}
        return Case(kind, (head, draw.normal(B, T, D, dtype=dtype), labels), given)

    for dtype in (DOUBLE, SINGLE):
        for _ in range(5):
            sizes = draw.sizes(3)
            kind = f"hidden states in {str(dtype)[6:]}"
            yield case(kind, *sizes, dtype=dtype)
            yield case(f"portions, {kind}", *sizes, dtype=dtype, most=500)
            for share, words in ((0.0, "one chosen position"), (1.0, "all positions chosen")):
                yield case(f"{words}, {kind}", *sizes, share, dtype)
    for most in (1, 2, 3, 5):
        for sizes in ((2, 4, 3), (3, 5, 2)):
            yield case(f"portions of {most}", *sizes, most=most)
    for sizes in ((1, 6, 5), (6, 1, 5), (3, 5, 1), (1, 1, 1)):
        yield case("a size that is 1", *sizes)
    turned = case("sequences that are columns of a table", 5, 5, 3)
    head, hidden, labels = turned.args
    turned.args = head, hidden.transpose(0, 1), labels.T
    yield turned
    for _ in range(3):
        yield case("no chosen position", *draw.sizes(3), -1.0)
        yield case("no chosen position, in portions", *draw.sizes(3), -1.0, most=2)


ROWS = ("the table of logits", "the list of labels")
Comparison("masked_logits", row_cases, (masked_logits,), ROWS)


def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    pairs = masked_loss(pair_logits, next_sentence_labels)
    return masked_loss(token_logits, labels) + pairs


def total_cases(draw: Draw) -> Iterator[Case]:
    for kind, share, scale, dtype in (
        ("logits in float64", 0.5, 2.0, DOUBLE),
        ("logits in float32", 0.5, 2.0, SINGLE),
        ("one chosen position", 0.0, 2.0, DOUBLE),
        ("large pair logits", 0.5, 300.0, DOUBLE),
        ("no chosen position, where the pair loss is left", -1.0, 2.0, DOUBLE),
    ):
        for number in range(8):
            B, T, V, pairs = draw.sizes(4)
            pairs, shape = 1 if number == 0 else pairs, (T,) if number == 1 else (B, T)
            labels = labels_of(draw, shape, V, share)
            if share < 0:
                labels.fill_(IGNORE)
            following = torch.randint(2, (pairs,), generator=draw.tensors).to(draw.device)
            if number in (2, 3):
                following.fill_(number - 2)
            logits = draw.normal(*shape, V, dtype=dtype), draw.normal(pairs, 2, dtype=dtype)
            yield Case(kind, (logits[0], labels, scale * logits[1], following))


Comparison("pretraining_loss", total_cases, (pretraining_loss,), ("the whole loss",))

# ---- Part 4: the step


class Reader(torch.nn.Module):
    """A small model that leans on all that it is given, with dropout inside."""

    def __init__(self, V: int, D: int, dropout: float) -> None:
        super().__init__()
        self.word, self.kind = torch.nn.Embedding(V, D), torch.nn.Embedding(2, D)
        self.inner = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Dropout(dropout))
        self.tokens, self.pairs = torch.nn.Linear(D, V), torch.nn.Linear(D, 2)

    def forward(self, input_ids, attention_mask, token_type_ids):
        hidden = self.inner(self.word(input_ids) + self.kind(token_type_ids))
        mean = (hidden * attention_mask[..., None]).mean(1)
        return self.tokens(hidden + mean[:, None]), self.pairs(mean)


def batch_of(draw: Draw, B: int, T: int, V: int, share: float = 0.4) -> dict:
    cpu = Draw(draw.randint(0, 9999))  # whatever the device: dropout draws there

    def below(most: int, *shape: int) -> torch.Tensor:
        return torch.randint(most, shape, generator=cpu.tensors)

    return {
        "input_ids": below(V, B, T),
        "labels": labels_of(cpu, (B, T), V, share),
        "attention_mask": cpu.mask(B, T),
        "token_type_ids": below(2, B, T),
        "next_sentence_labels": below(2, B),
    }


def reader(seed: int, V: int, dropout: float, scale: float) -> Reader:
    model = filled(Reader(V, 5, dropout), seed, DOUBLE, "cpu")
    with torch.no_grad():
        model.tokens.weight *= scale
    torch.manual_seed(seed)
    return model


def forward(model, batch):
    """Token logits, and the whole loss."""
    inputs = (batch[name] for name in ("input_ids", "attention_mask", "token_type_ids"))
    tokens, pairs = model(*inputs)
    return tokens, pretraining_loss(
        tokens, batch["labels"], pairs, batch["next_sentence_labels"]
    )


def training_step(model, optimizer, batch, max_norm=1.0, spare=1e-6):
    model.train()
    (_, loss), parameters = forward(model, batch), list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = gradient * min(1.0, max_norm / (norm + spare))
    optimizer.step()
    return loss.item()


def trained(function, batches, V, device, kind, seed, dropout, scale, *max_norm):
    """The losses and the weights of some steps of one of torch's optimizers."""
    model, losses, weights = reader(seed, V, dropout, scale), [], []
    parameters = list(model.parameters())
    groups = [{"params": parameters[::2], "lr": 0.3}, {"params": parameters[1::2]}]
    optimizer = {
        "SGD": lambda: torch.optim.SGD(parameters, lr=0.5),
        "momentum": lambda: torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.1),
        "Adam": lambda: torch.optim.Adam(groups, lr=0.02),
    }[kind]()
    for number, batch in enumerate(batches):
        model.eval()
        for parameter in parameters[number:]:  # what somebody else has left
            parameter.grad = torch.ones_like(parameter)
        with torch.enable_grad():
            losses.append(function(model, optimizer, batch, *max_norm))
        weights.append(torch.cat([p.detach().flatten() for p in parameters]).to(device))
    return losses, weights, all(part.training for part in model.modules())


STEP = "Clear all gradients, go backward, cut the norm of all gradients together, then step."


def training_cases(draw: Draw) -> Iterator[Case]:
    for words, kind, dropout, scale, max_norm in (
        ("gradients that need no cut", "SGD", 0.0, 1.0, (100.0,)),
        ("gradients that are cut", "SGD", 0.0, 1.0, (0.07,)),
        ("max_norm left out", "SGD", 0.0, 9.0, ()),
        ("max_norm 0", "SGD", 0.0, 1.0, (0.0,)),
        ("a loss that is large", "SGD", 0.0, 90.0, (3.0,)),
        ("dropout", "SGD", 0.4, 1.0, (0.5,)),
        ("an optimizer with two groups of parameters", "momentum", 0.0, 1.0, (0.3,)),
        ("torch's Adam", "Adam", 0.2, 1.0, (0.3,)),
    ):
        for _ in range(2):
            V, *sizes = draw.sizes(3)
            batches = [batch_of(draw, *sizes, V) for _ in range(4)]
            about = V, draw.device, kind, draw.randint(0, 999), dropout, scale
            yield Case(words, (batches, *about, *max_norm), hint=STEP)


TRAINED = ("the losses", "what the optimizer makes of the weights", "the mode afterwards")
Comparison(
    "training_step",
    training_cases,
    (training_step, functools.partial(training_step, spare=0.0)),  # torch's cut adds 1e-6
    TRAINED,
    use=trained,
)


def evaluate(model, batch):
    training = model.training
    model.eval()
    with torch.no_grad():
        token_logits, loss = forward(model, batch)
    model.train(training)
    pairs = zip(token_logits.flatten(0, 1).tolist(), batch["labels"].flatten().tolist())
    right = [row[label] == max(row) for row, label in pairs if label != IGNORE]
    return loss.item(), sum(right) / len(right)


def evaluated(function, batch, V, seed, training, scale, shift):
    """What evaluate returns and leaves of the model, and what is drawn after it."""
    model = reader(seed, V, 0.4, scale).train(training)
    with torch.no_grad():
        model.tokens.bias += shift
    model.kind.requires_grad_(False)
    model.pairs.weight.grad = torch.ones(2, 5, dtype=DOUBLE)
    loss, accuracy = function(model, batch)
    left = [(p.tolist(), p.requires_grad, p.grad) for p in model.parameters()]
    modes = [part.training for part in model.modules()]
    return loss, accuracy, str((left, modes)), torch.rand(()).item()


COUNT = "Count the chosen positions alone, each alike, and leave the model as it was."


def evaluate_cases(draw: Draw) -> Iterator[Case]:
    for words, share, scale, shift in (
        ("some chosen positions", 0.4, 1.0, 0.0),
        ("one chosen position", 0.0, 1.0, 0.0),
        ("all positions chosen", 1.0, 1.0, 0.0),
        ("small logits", 0.7, 0.1, 0.0),
        ("large logits", 0.7, 100.0, 0.0),
        ("logits that are large and close to each other", 0.7, 1e-6, 1e3),
    ):
        for training in (True, False) * 4:
            B, T, V = draw.sizes(3)
            about = (V, draw.randint(0, 999), training, scale, shift)
            yield Case(words, (batch_of(draw, B, T, V, share), *about), hint=COUNT)


LEFT = ("the loss", "the accuracy", "what is left of the model", "the next random number")
Comparison("evaluate", evaluate_cases, (evaluate,), LEFT, use=evaluated)
