"""Legal inputs of each function of assignment 1, and references to compare with.

The references are written from the formulas, in float64 and with as little of torch as
they can do with. `course_tools/grading/assignments/comparing.py` runs them.
"""

import math
from collections.abc import Iterator
from functools import partial

import torch
from course_tools.grading.assignments.comparing import Case, Comparison, Draw, Misuse

DOUBLE, SINGLE = torch.float64, torch.float32
HALVES = (torch.bfloat16, torch.float16)

# ---- Part 1: masked softmax

FILLED = "Mask before the softmax, and fill in -inf: -1e9 is not smaller than every score."
LARGE = "exp of a large score is inf: subtract the largest score first, or use torch.softmax."


def masked_softmax(scores, mask=None, sink=None):
    allowed = torch.ones(scores.shape) > 0 if mask is None else mask.expand(scores.shape)
    if sink is None and not allowed.any(-1).all():
        raise ValueError
    idle = -math.inf if sink is None else sink
    inside = torch.where(allowed, scores, 0).double()
    largest = inside.detach().masked_fill(~allowed, -math.inf).amax(-1, keepdim=True)
    largest = largest.clamp(min=idle)
    exponentials = torch.where(allowed, inside - largest, -math.inf).exp()
    total = exponentials.sum(-1, keepdim=True) + (idle - largest).exp()
    return (exponentials / total).to(scores.dtype)


def softmax_shapes(draw: Draw, dtype: torch.dtype, scale: float = 1.0) -> Iterator[tuple]:
    """Scores with a mask of each form, and what is said of it."""
    B, N, T, S = draw.sizes(4)
    scores = draw.normal(B, N, T, S, dtype=dtype, scale=scale)
    yield "a mask of their shape", (scores, draw.mask(B, N, T, S))
    yield "a mask that broadcasts over heads and targets", (scores, draw.mask(B, 1, 1, S))
    yield "a mask that broadcasts over sentences", (scores[:, 0], draw.mask(1, T, S))
    yield "a mask of fewer dimensions", (scores[0, 0], draw.mask(S))
    yield "a mask with one column for all", (scores[0], draw.mask(N, T, 1))
    yield "one row only", (scores[0, 0, 0], draw.mask(S))
    yield "one position only", (scores[..., :1], draw.mask(B, 1, 1, 1))
    yield "one allowed position in each row", (scores[0, 0], draw.mask(T, S, share=0.0))
    yield "nothing masked", (scores[0, 0], draw.mask(T, S, share=1.0))
    yield "five dimensions", (scores[None], draw.mask(1, B, 1, T, S))
    yield "mask None", (scores[0], None)
    yield "the mask left out", (scores,)


def softmax_rows(draw: Draw) -> Iterator[Case]:
    for dtype, name in ((DOUBLE, "float64"), (SINGLE, "float32")):
        for words, args in softmax_shapes(draw, dtype):
            yield Case(f"scores in {name} and {words}", args)
    for size, name in ((1e-6, "tiny"), (30.0, "large"), (0.0, "equal")):
        for words, args in softmax_shapes(draw, DOUBLE, size):
            yield Case(f"{name} scores and {words}", args)
    for sink in (0.0, 1.5, -2.0):
        for words, args in softmax_shapes(draw, DOUBLE):
            yield Case(f"a sink and {words}", args, {"sink": sink})


def softmax_edges(draw: Draw) -> Iterator[Case]:
    for dtype, huge in ((DOUBLE, 3e9), (SINGLE, 3e9), (HALVES[0], 3e9), (HALVES[1], 3e4)):
        for value, hint in ((-huge, FILLED), (huge, LARGE), (huge / 7, LARGE)):
            for S in (3, 6, 7):
                scores = torch.zeros(S, dtype=dtype, device=draw.device)
                scores[:-1] = value
                mask = torch.ones(1, S, device=draw.device) > 0
                mask[0, -1] = False
                words = f"scores that are {'huge' if value > 0 else 'very negative'}"
                kind = f"{words} in {str(dtype)[6:]}, the last one masked"
                yield Case(kind, (scores[None], mask), hint=hint, gradients=False)
    for dtype in HALVES:
        for words, args in softmax_shapes(draw, dtype):
            kind = f"scores in {str(dtype)[6:]} and {words}"
            yield Case(kind, args, gradients=False)
    for bad in (math.inf, -math.inf, math.nan):
        scores, mask = draw.normal(3, 5), draw.mask(3, 5, share=0.5)
        scores = scores.masked_fill(~mask, bad)
        kind = "scores that are no finite numbers where they are masked"
        yield Case(kind, (scores, mask), gradients=False)
    for form in ((3, 5), (1, 5), (5,), (3, 1), (2, 3, 5)):
        mask = draw.mask(*form)
        mask[(-1,) * (len(form) - 1)] = False
        kind = "a row that may attend to nothing, among others"
        yield Case(kind, (draw.normal(2, 3, 5), mask), gradients=False)
        sink = {"sink": draw.uniform(-1, 1)}
        yield Case(f"{kind}, and a sink", (draw.normal(2, 3, 5), mask), sink)
    for dtype, huge in ((SINGLE, 3e9), (HALVES[0], 3e9), (HALVES[1], 3e4)):
        for sink in (-huge, huge, 0.5):
            scores = draw.normal(3, 5, dtype=dtype, scale=huge / 7)
            kind = f"huge scores in {str(dtype)[6:]} and a sink"
            args = scores, draw.mask(3, 5)
            yield Case(kind, args, {"sink": sink}, LARGE, gradients=False)


WEIGHTS = ("the table of weights",)
Comparison("masked_softmax", softmax_rows, (masked_softmax,), WEIGHTS, exact_zeros=True)
Comparison(
    "masked_softmax_edges",
    softmax_edges,
    (masked_softmax,),
    WEIGHTS,
    "masked_softmax",
    exact_zeros=True,
)

# ---- Part 2: additive attention


def additive_scores(query, key, W, U, v, coverage=None, w=None):
    total = 0.0
    for h in range(v.shape[0]):  # one unit of the hidden layer after the other
        of_query = (query * W[h]).sum(-1)  # [B, T]
        of_key = (key * U[h]).sum(-1)  # [B, S]
        inside = of_query[:, :, None] + of_key[:, None, :]
        if coverage is not None:
            inside = inside + coverage * w[h]
        total = total + v[h] * inside.tanh()
    return total


def additive_cases(draw: Draw, seen: bool = False) -> Iterator[Case]:
    def case(kind: str, sizes: list[int], dtype=DOUBLE, scale=1.0) -> Case:
        B, T, S, Dq, Dk, H = sizes
        shapes = [(B, T, Dq), (B, S, Dk), (H, Dq), (H, Dk), (H,)]
        shapes += [(B, T, S), (H,)] * seen
        made = [draw.normal(*shape, dtype=dtype, scale=scale) for shape in shapes]
        return Case(kind, tuple(made), gradients=dtype not in HALVES)

    for dtype in HALVES:
        yield case(f"sizes that all differ, in {str(dtype)[6:]}", draw.sizes(6), dtype, 0.3)
    for dtype, name in ((DOUBLE, "float64"), (SINGLE, "float32")):
        for _ in range(4):
            yield case(f"sizes that all differ, in {name}", draw.sizes(6), dtype)
    letters = ("sentence", "target", "source position", "feature of a query")
    letters += ("feature of a key", "hidden unit")
    for _ in range(2):
        for place, name in enumerate(letters):
            sizes = draw.sizes(6)
            sizes[place] = 1
            yield case(f"one {name}", sizes)
        same = draw.sizes(6)
        same[4] = same[3]
        yield case("queries and keys of one size", same)
        yield case("one size for everything", draw.sizes(1) * 6)
        yield case("small numbers", draw.sizes(6), scale=1e-3)
        yield case("large numbers, where tanh is flat", draw.sizes(6), scale=1e2)
        one, kind = case("", draw.sizes(6)), "keys that were given before, with other weights"
        query, key, W, U, *rest = one.args
        yield Case(kind, one.args)
        yield Case(kind, (query, key, 0.5 * W, 2.0 * U, *rest))
    yield case("a single number of each", [1] * 6)


SCORES = ("the table of scores",)
Comparison("additive_scores", additive_cases, (additive_scores,), SCORES)
Comparison(
    "additive_scores_coverage",
    partial(additive_cases, seen=True),
    (additive_scores,),
    SCORES,
    "additive_scores",
)

# ---- Part 3: scaled dot products, and their statistics

ONE_QUERY = "D is the size of one query, not of all heads together and not the number of keys."
SLOPE = "Slope times |t - j| is taken away from each score, whatever the sign of the slope."


def dot_scores(query, key, slope=0.0):
    products = query.double().unsqueeze(-2) * key.double().unsqueeze(-3)
    scores = products.sum(-1) / math.sqrt(query.size(-1))
    T, S = scores.shape[-2:]
    apart = [[abs(t - s) for s in range(S)] for t in range(T)]
    return (scores - slope * torch.tensor(apart, dtype=DOUBLE)).to(query.dtype)


def dot_cases(draw: Draw, sloping: bool = False) -> Iterator[Case]:
    def case(kind: str, *both: torch.Tensor, gradients: bool = True) -> Case:
        slope = (draw.choice((0.5, 1.25, -0.75)),) if sloping else ()
        hint = SLOPE if sloping else ONE_QUERY
        return Case(kind, (*both, *slope), hint=hint, gradients=gradients)

    for dtype in (DOUBLE, SINGLE, *HALVES):
        for _ in range(2):
            T, S, D, B, N = draw.sizes(5)
            for lead, words in (
                ((), "no leading dimension"),
                ((B,), "one leading dimension"),
                ((2, N), "heads side by side"),
                ((2, 1, 3), "three leading dimensions"),
                ((1,), "one sentence"),
            ):
                kind = f"{words} in {str(dtype)[6:]}"
                query = draw.normal(*lead, T, D, dtype=dtype)
                key = draw.normal(*lead, S, D, dtype=dtype)
                yield case(kind, query, key, gradients=dtype not in HALVES)
    for T, S, D, words in (
        (5, 6, 1, "one feature"),
        (1, 6, 7, "one query"),
        (5, 1, 7, "one key"),
        (6, 6, 6, "one size for everything"),
        (1, 1, 1, "a single number"),
        (3, 5, 130, "many features"),
    ):
        for scale, size in ((1.0, ""), (1e-6, ", tiny"), (1e4, ", large")):
            query, key = draw.normal(3, T, D, scale=scale), draw.normal(3, S, D, scale=scale)
            yield case(f"{words}{size}", query, key)
    for _ in range(3):
        both = draw.normal(*draw.sizes(3))
        yield case("query and key the same tensor", both, both)


Comparison("dot_scores", dot_cases, (dot_scores,), SCORES)
Comparison(
    "dot_scores_slope", partial(dot_cases, sloping=True), (dot_scores,), SCORES, "dot_scores"
)


def statistics_of(correction: int):
    def score_statistics(scores, mask=None):
        scores = scores.double()
        allowed = torch.ones(scores.shape) > 0 if mask is None else mask.expand(scores.shape)
        entropies = []
        S = scores.shape[-1]
        for row, some in zip(scores.reshape(-1, S), allowed.reshape(-1, S)):
            own = row[some] - row[some].max()
            total = own.exp().sum()
            entropies.append(total.log() - (own * own.exp()).sum() / total)
        apart = scores[allowed] - scores[allowed].mean()
        variance = (apart**2).sum() / (len(apart) - correction)
        return variance.item(), torch.stack(entropies).mean().item()

    return score_statistics


def statistics_cases(draw: Draw) -> Iterator[Case]:
    for dtype, tolerance in ((DOUBLE, 1e-9), (SINGLE, 1e-3)):
        for scale, words in (
            (1.0, "scores of size 1"),
            (1e-4, "small scores"),
            (40.0, "rows that are decided"),
            (1e4, "huge scores"),
        ):
            for _ in range(2):
                B, N, T, S = draw.sizes(4)
                for form in ((S,), (T, S), (B, T, S), (B, N, T, S), (T, 1), (1, S)):
                    scores = draw.normal(*form, dtype=dtype, scale=scale)
                    kind = f"{words} and {len(form)} dimension{'s' * (len(form) > 1)}"
                    about = {"gradients": False, "tolerance": tolerance}
                    yield Case(f"{kind} in {str(dtype)[6:]}", (scores,), **about)
        far = draw.normal(5, 11, dtype=dtype) + 1000
        yield Case("scores far from 0", (far,), gradients=False, tolerance=1e-3)
        equal = torch.full((3, 7), 2.5, dtype=dtype, device=draw.device)
        yield Case("equal scores", (equal,), gradients=False)
        for scale in (1.0, 40.0):
            for form, shape in (
                ((5, 11), (5, 11)),
                ((3, 6, 7), (3, 1, 7)),
                ((3, 6, 7), (7,)),
                ((2, 3, 5, 6), (5, 6)),
            ):
                given = draw.normal(*form, dtype=dtype, scale=scale), draw.mask(*shape)
                kind = f"a mask of {len(shape)} dimensions in {str(dtype)[6:]}"
                yield Case(kind, given, gradients=False, tolerance=tolerance)
        for bad in (math.inf, -math.inf, math.nan):
            scores, mask = draw.normal(5, 11, dtype=dtype), draw.mask(5, 11, share=0.5)
            kind = "scores that are no finite numbers where they are masked"
            given = scores.masked_fill(~mask, bad), mask
            yield Case(kind, given, gradients=False, tolerance=tolerance)


Comparison(
    "score_statistics",
    statistics_cases,
    (statistics_of(1), statistics_of(0)),  # the text leaves open which variance
    ("variance", "entropy"),
)

# ---- Part 4: one step of a decoder


def decoder_step(state, encoder_states, mask, score, W_combine, W_output, sink=None):
    scores = score(state[:, None], encoder_states)[:, 0]
    weights = masked_softmax(scores, mask, sink)
    context = (weights[..., None] * encoder_states).sum(1)
    D = state.shape[1]
    hidden = (context @ W_combine[:, :D].T + state @ W_combine[:, D:].T).tanh()
    logits = (hidden[:, None] * W_output).sum(-1)
    largest = logits.detach().amax(-1, keepdim=True)
    total = (logits - largest).exp().sum(-1, keepdim=True).log()
    return logits - largest - total, weights


def score_functions(draw: Draw, B: int, S: int, D: int, dtype) -> list[tuple]:
    """Functions of queries [B, 1, D] and keys [B, S, D], and words for them."""
    matrix, place = draw.normal(D, D, dtype=dtype), draw.normal(S, dtype=dtype)

    def checked(function):
        def score(query, key):
            if [*query.shape] != [B, 1, D] or [*key.shape] != [B, S, D]:
                raise Misuse(
                    "score must be called with queries [B, T, D], here T = 1, and keys"
                    " [B, S, D]; yours gives it other shapes."
                )
            return function(query, key)

        return score

    return [
        (
            "a score that is a distance",
            checked(lambda query, key: -((query[:, :, None] - key[:, None]) ** 2).sum(-1) / 3),
        ),
        (
            "a score that treats query and key differently",
            checked(lambda query, key: (query @ matrix) @ key.mT),
        ),
        ("a score that is large", checked(lambda query, key: 9 * query @ key.mT)),
        (
            "a score that depends on the place",
            checked(lambda query, key: 0.3 * query @ key.mT + place),
        ),
    ]


def decoder_cases(draw: Draw) -> Iterator[Case]:
    def cases(words: str, sizes: list[int], dtype=DOUBLE, scale=1.0, padding=1.0, **given):
        B, S, D, H, V = sizes
        for said, score in score_functions(draw, B, S, D, dtype):
            states, mask = draw.normal(B, S, D, dtype=dtype), draw.mask(B, S, share=0.7)
            states = torch.where(mask[..., None], states, padding * states)
            combine = draw.normal(H, 2 * D, dtype=dtype)
            output = draw.normal(V, H, dtype=dtype, scale=scale)
            state = draw.normal(B, D, dtype=dtype)
            args = (state, states, mask, score, combine, output)
            yield Case(f"{said} and {words}", args, given)

    for _ in range(3):
        yield from cases("sizes that all differ", draw.sizes(5))
    for sink in (0.0, 0.8, -1.2):
        yield from cases("a sink", draw.sizes(5), sink=sink)
    yield from cases("sizes that all differ, in float32", draw.sizes(5), SINGLE)
    yield from cases("words that lie far apart", draw.sizes(5), scale=1e3)
    yield from cases("large padding", draw.sizes(5), padding=1e3)
    for place, word in enumerate(
        ("sentence", "source position", "feature", "hidden unit", "word")
    ):
        sizes = draw.sizes(5)
        sizes[place] = 1
        yield from cases(f"one {word}", sizes)
    yield from cases("one size for everything", draw.sizes(1) * 5)


def decoder_edges(draw: Draw) -> Iterator[Case]:
    yield from decoder_cases(draw)
    B, S, D = 3, 5, 6
    for _, score in score_functions(draw, B, S, D, DOUBLE):
        mask = draw.mask(B, S)
        mask[1] = False
        states = draw.normal(B, D), draw.normal(B, S, D)
        args = (*states, mask, score, draw.normal(7, 2 * D), draw.normal(10, 7))
        yield Case("a sentence of padding alone", args)
        yield Case("a sentence of padding alone and a sink", args, {"sink": 0.3})


Comparison(
    "decoder_step",
    decoder_edges,
    (decoder_step,),
    ("the table of log-probabilities", "the table of weights"),
)

# ---- Part 5: alignment


def align(weights, source_length, target_length, least=0.0):
    table = weights.tolist()
    pairs = set()
    for target in range(target_length):
        row = table[target][:source_length]
        if max(row) >= least:
            best = sorted(range(source_length), key=lambda source: row[source])[-1]
            pairs.add((best, target))
    return pairs


def align_cases(draw: Draw) -> Iterator[Case]:
    hint = "Rows and columns beyond the lengths are padding."
    for _ in range(12):
        T, S = draw.sizes(2)
        table = draw.normal(T, S).softmax(-1)
        yield Case("no padding", (table, S, T), gradients=False)
        s, t = draw.randint(1, S), draw.randint(1, T)
        yield Case("padding", (table, s, t), hint=hint, gradients=False)
        padded = table.clone()
        padded[:, -1] = padded[-1] = 0.9
        args = (padded, S - 1, T - 1)
        yield Case("padding that gets most of the weight", args, hint=hint, gradients=False)
        yield Case("one source word", (table, 1, T), hint=hint, gradients=False)
        yield Case("no target word", (table, s, 0), hint=hint, gradients=False)
        yield Case("float32", (table.float(), s, t), hint=hint, gradients=False)
        close = 1 / S + 1e-12 * table
        yield Case("weights that nearly tie, in float64", (close, S, T), gradients=False)
        different = [[n / 64 for n in draw.sample(range(64), S)] for _ in range(T)]
        halves = torch.tensor(different, dtype=HALVES[0], device=draw.device)
        yield Case("bfloat16", (halves, S, T), gradients=False)
        few = table * 1e-3
        yield Case("rows of little weight", (few, s, t), gradients=False)
        yield Case("weights of a model in training", (table.clone(), s, t))
        for least in (0.25, 0.4, 0.7):
            kind = "target words whose weights are all small"
            yield Case(kind, (table, s, t, least), hint=hint, gradients=False)
        exact = table[0, :s].max().item() if t else 0.5
        yield Case(
            "a greatest weight that is just enough", (table, s, t, exact), gradients=False
        )


Comparison("align", align_cases, (align,), ("the set of pairs",))


def alignment_error_rate(predicted, sure, possible):
    both = [pair for pair in predicted if pair in sure]
    possibly = [pair for pair in predicted if pair in possible]
    total = len(predicted) + len(sure)
    return 1.0 - (len(both) + len(possibly)) / total if total else 0.0


def rate_cases(draw: Draw) -> Iterator[Case]:
    def some(pairs, most: int) -> set:
        return set(draw.sample(sorted(pairs), min(len(pairs), draw.randint(0, most))))

    every = {(source, target) for source in range(7) for target in range(5)}
    for words, most in (("few pairs", 4), ("many pairs", 35)):
        for _ in range(30):
            possible = some(every, most)
            yield Case(words, (some(every, most), some(possible, most), possible))
    some_pairs, few = some(every, 30) | {(0, 0)}, {(1, 2), (3, 1)}
    for words, args in (
        ("no predicted pair", (set(), few, some_pairs | few)),
        ("no sure pair", (few, set(), few)),
        ("no sure and no possible pair", (few, set(), set())),
        ("neither predicted nor sure pairs", (set(), set(), few)),
        ("no pair at all", (set(), set(), set())),
        ("the sure pairs predicted", (few, set(few), some_pairs | few)),
        ("all possible pairs predicted", (some_pairs | few, few, some_pairs | few)),
        ("no pair in common", ({(6, 6)}, few, few)),
    ):
        yield Case(words, args)


Comparison("alignment_error_rate", rate_cases, (alignment_error_rate,), ("the rate",))

# ---- Part 6: beam search


class Language:
    """A step function: a table of the next word's log-probabilities by place (which
    comes round again) and two last words.

    The state of a hypothesis is the word before its last, so one that gets another's
    state reads another row. Without places, sentences that take the same rows in another
    order would tie. It refuses more hypotheses than the beam may hold.
    """

    def __init__(self, table, beam_size: int, most: int, form: tuple, dtype) -> None:
        self.table, self.beam_size, self.most = table, beam_size, most
        self.whole = table.isfinite().all()  # an impossible word need not live on
        self.form, self.dtype, self.calls, self.live = form, dtype, 0, 1

    def start(self, bos: int) -> torch.Tensor:
        form = (1, *self.form)
        return torch.full(form, bos, device=self.table.device, dtype=self.dtype)

    def __call__(self, state, tokens):
        self.calls += 1
        if tokens.dim() != 1 or state.shape != (len(tokens), *self.form):
            raise Misuse(
                "step must be given a state [k, ...] and tokens [k], row i for hypothesis"
                " i; yours gives it other shapes."
            )
        if len(tokens) > self.beam_size:
            raise Misuse(
                "step was given more hypotheses than beam_size. Keep the K best extensions"
                " of all hypotheses together, not K of each."
            )
        if len(tokens) < self.live:
            raise Misuse(
                "step was given fewer hypotheses than live on: those are the K best"
                " extensions that do not end in eos, however many do."
            )
        words = self.table.shape[-1] - 1
        self.live = min(self.beam_size, words * len(tokens)) * bool(self.whole)
        if self.calls > self.most:
            raise Misuse("step was called although max_length tokens were out.")
        before, last = state.reshape(len(tokens), -1)[:, 0].long(), tokens.long()
        after = last.reshape(-1, *(1 for _ in self.form)).expand(state.shape)
        place = (self.calls - 1) % len(self.table)
        return self.table[place, before, last], after.to(self.dtype)


def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6, least=1):
    def score(tokens, total):
        return total / ((5 + len(tokens)) / 6) ** alpha

    table = step.table.double().tolist()
    live, ended = [((), 0.0)], []
    for place in range(max_length):
        longer = []
        for tokens, total in live:
            before, last = (bos, bos, *tokens)[-2:]
            longer += [
                ((*tokens, word), total + chance)
                for word, chance in enumerate(table[place % len(table)][before][last])
                if word != eos or len(tokens) + 1 >= least
            ]
        longer.sort(key=lambda hypothesis: -hypothesis[1])
        ended += [one for one in longer[:beam_size] if one[0][-1] == eos]
        live = [one for one in longer if one[0][-1] != eos][:beam_size]
        if not live:
            break
    best = max(ended or live, key=lambda hypothesis: score(*hypothesis))
    words = [word for word in best[0] if not (ended and word == eos)]
    return words, score(*best)


def beam_case(draw: Draw, kind: str, V: int, beam_size: int, most: int, **about) -> Case:
    """A random language of V words and a search in it."""
    bos, eos = draw.sample(range(V), 2)
    logits = draw.normal(min(most, 12), V, V, V, scale=about.get("spread", 2.0))
    logits[..., eos] += about.get("end", 0.0)
    if about.get("holes"):
        holes = draw.normal(*logits.shape) < -0.8
        holes[..., eos] = False
        logits = logits.masked_fill(holes, -math.inf)
    table = logits.log_softmax(-1).to(about.get("dtype", DOUBLE))
    form, dtype = about.get("form", (2, 3)), about.get("state", torch.long)
    step = Language(table, beam_size, most, form, dtype)
    given = {name: about[name] for name in ("alpha", "least") if name in about}
    args = (step, step.start(bos), bos, eos, beam_size, most)
    return Case(kind, args, given, about.get("hint", STATE), False, tolerance=1e-5)


STATE = "Does each hypothesis carry on with the state of the one that it extends?"
WIDE = "A beam wide enough to hold everything must find the best of all sentences."
UNFINISHED = "If nothing has finished, return the best live hypothesis."
FINISHED = "A finished hypothesis stays in the race against all later ones."


def beam_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(4):
        kind = "a beam that holds everything"
        yield beam_case(draw, kind, 4, 60, 4, hint=f"{WIDE} {STATE}")
        for beam_size in (1, 2, 3, 5):
            yield beam_case(draw, "a narrow beam", draw.randint(4, 9), beam_size, 6)
    for _ in range(3):
        yield beam_case(draw, "words that are impossible", 6, 3, 5, holes=True)
        yield beam_case(draw, "a state of floats", 5, 3, 5, state=SINGLE)
        yield beam_case(draw, "a state [k]", 5, 3, 5, form=())
        for K in (2, 3, 4):
            kind = "an end that is often among the best"
            yield beam_case(draw, kind, 7, K, 6, end=1.5, alpha=1.5)
        yield beam_case(draw, "probabilities in float32", 5, 3, 5, dtype=SINGLE)
        yield beam_case(draw, "a beam wider than the vocabulary", 3, 7, 3)
        for least in (2, 4, 6, 9):
            kind = "an end that may not come early"
            yield beam_case(draw, kind, 7, draw.randint(1, 4), 6, end=1.5, least=least)


def length_cases(draw: Draw) -> Iterator[Case]:
    kind = "a long sentence"
    yield beam_case(draw, kind, 23, 1, 300, end=-99.0, spread=0.5, hint=UNFINISHED)
    for _ in range(2):
        for alpha in (0.0, 1.0, 2.0):
            V, K = draw.randint(4, 7), draw.randint(2, 4)
            yield beam_case(draw, "another length penalty", V, K, 5, alpha=alpha)
            kind = "another length penalty and words that are almost certain"
            yield beam_case(draw, kind, V, K, 7, alpha=alpha, spread=5.0, hint=FINISHED)
        for K in (2, 3, 4):
            kind = "a length penalty by which a longer sentence may still win"
            about = {"alpha": 4.0, "spread": 5.0, "end": 2.0, "hint": FINISHED}
            yield beam_case(draw, kind, draw.randint(4, 7), K, 12, **about)
        for K, most in ((1, 1), (1, 4), (2, 1), (2, 3), (3, 2), (3, 5)):
            kind = "an end that never comes"
            yield beam_case(draw, kind, 6, K, most, end=-15.0, hint=UNFINISHED)
            kind = "an end that comes early"
            yield beam_case(draw, kind, 6, K, most, end=3.0, hint=FINISHED)
            kind = "an end that would come early"
            yield beam_case(draw, kind, 6, K, most, end=3.0, least=most, hint=FINISHED)


FOUND = ("the list of tokens", "the score")
Comparison("beam_search", beam_cases, (beam_search,), FOUND)
Comparison("beam_search_length", length_cases, (beam_search,), FOUND, "beam_search")
