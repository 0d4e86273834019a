"""Legal inputs of each function of the assignment on BERT's family, and references.

The references are written from the formulas, one token after the other and in float64.
`course_tools/grading/assignments/comparing.py` runs them.
"""

import math
from collections.abc import Iterator

import torch
from course_tools.grading.assignments.comparing import Case, Comparison, Draw, Misuse

DOUBLE, SINGLE = torch.float64, torch.float32
PADDING = "What stands at padding may be any number, and nan: fill it before you compute."

# ---- Part 1: distillation


def normalised(logits):
    """Logarithms of the probabilities of one row of logits."""
    row = logits - logits.detach().amax()
    return row - row.exp().sum().log()


def soft_targets(student, teacher, mask, temperature):
    losses = []
    for b in range(len(mask)):
        total, count = 0.0 * student[b, :0].sum(), 0
        for t in mask[b].nonzero()[:, 0].tolist():
            log_p = normalised(teacher[b, t].detach().double() / temperature)
            log_q = normalised(student[b, t].double() / temperature)
            left = ~log_p.isinf()
            total = total + (log_p.exp() * (log_p - log_q))[left].sum()
            count += 1
        losses.append(temperature**2 * total / max(count, 1))
    return torch.stack(losses).to(student.dtype)


def padded(draw: Draw, mask: torch.Tensor, *sizes: int, dtype, scale=1.0, padding=1.0):
    """Random numbers with a size at padding, or with what is no finite number there."""
    made = draw.normal(*mask.shape, *sizes, dtype=dtype, scale=scale)
    other = padding * made if math.isfinite(padding) else torch.full_like(made, padding)
    return torch.where(mask[(..., *(None for _ in sizes))], made, other)


def soft_case(draw: Draw, kind: str, temperature=2.5, **about) -> Case:
    B, T, V = about.get("sizes") or draw.sizes(3)
    mask = draw.mask(B, T, share=about.get("share", 0.6))
    if about.get("empty"):
        mask[::2] = False
    dtype, scale = about.get("dtype", DOUBLE), about.get("scale", 1.0)
    given = {"dtype": dtype, "scale": scale, "padding": about.get("padding", 1.0)}
    student, teacher = padded(draw, mask, V, **given), padded(draw, mask, V, **given)
    if about.get("holes"):
        ruled_out = ~draw.mask(B, T, V, share=about["holes"]) & mask[..., None]
        teacher = teacher.masked_fill(ruled_out, -math.inf)
    args = (student, teacher, mask, temperature)
    slopes = dtype in (DOUBLE, SINGLE)
    return Case(kind, args, hint=about.get("hint", ""), gradients=slopes)


def soft_cases(draw: Draw) -> Iterator[Case]:
    for dtype, name in ((DOUBLE, "float64"), (SINGLE, "float32")):
        for temperature in (1.0, 1.5, 2.0, 4.0, 0.7):
            for _ in range(3):
                kind = f"temperature {temperature} in {name}"
                yield soft_case(draw, kind, temperature, dtype=dtype)
    for _ in range(3):
        yield soft_case(draw, "a high temperature", 300.0)
        yield soft_case(draw, "a low temperature", 0.05)
        yield soft_case(draw, "nothing padded", share=1.0)
        yield soft_case(draw, "one token in each sentence", share=0.0)
        for place, name in enumerate(("sentence", "token")):
            sizes = draw.sizes(3)
            sizes[place] = 1
            yield soft_case(draw, f"one {name}", sizes=sizes)
        yield soft_case(draw, "one word", sizes=[3, 5, 1])
        yield soft_case(draw, "many words", sizes=[3, 5, 130])
        yield soft_case(draw, "one size for everything", sizes=draw.sizes(1) * 3)
        hint = "Take log_softmax: the logarithm of a softmax is -inf for small ones."
        kind, sizes = "logits that lie far apart", [7, 6, 2]  # often both far below 0
        yield soft_case(draw, kind, scale=1e4, sizes=sizes, hint=hint)
        yield soft_case(draw, "small logits", scale=0.1)
        yield soft_case(draw, "half precision", scale=3.0, dtype=torch.bfloat16)
        one = soft_case(draw, "logits that were given before, at another temperature")
        yield one
        yield Case(one.kind, (*one.args[:3], 1.25))


def soft_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(4):
        hint = "Where p is 0, the part is 0, at any temperature."
        for temperature in (1.0, 2.5, 40.0, 3e3):
            kind = "words that the teacher rules out"
            yield soft_case(draw, kind, temperature, holes=0.5, hint=hint)
        yield soft_case(draw, "one word that is left of each token", holes=1e-9, hint=hint)
        yield soft_case(draw, "words ruled out in float32", holes=0.5, dtype=SINGLE)
        for padding in (math.nan, math.inf, -math.inf):
            kind = "padding that is no finite number"
            yield soft_case(draw, kind, padding=padding, hint=PADDING)
        yield soft_case(draw, "large padding", padding=1e6, hint=PADDING)
        kind = "sentences of padding alone"
        yield soft_case(draw, kind, empty=True)
        yield soft_case(draw, f"{kind}, which is nan", empty=True, padding=math.nan)


LOSS = ("the loss of each sentence",)
Comparison("soft_targets", soft_cases, (soft_targets,), LOSS)
Comparison("soft_targets_edges", soft_edges, (soft_targets,), LOSS, "soft_targets")


def mixed_loss(soft, logits, labels, weight):
    hard = []
    for b, row in enumerate(labels.tolist()):
        told = [(t, y) for t, y in enumerate(row) if y != -1]
        costs = [-normalised(logits[b, t].double())[y] for t, y in told]
        hard.append(torch.stack(costs).mean())
    hard = torch.stack(hard)
    mixed = (1 - weight) * soft.double() + weight * hard
    return mixed.mean().to(logits.dtype), hard.to(logits.dtype)


def mixed_cases(draw: Draw) -> Iterator[Case]:
    def case(
        kind, weight=0.35, sizes=None, share=0.6, hint="", apart=False, below=False, **given
    ) -> Case:
        B, T, V = sizes or draw.sizes(3)
        mask = draw.mask(B, T, share=share)
        given = {"dtype": DOUBLE, **given}
        drawn = [[draw.randrange(V) for _ in range(T)] for _ in range(B)]
        labels = torch.tensor(drawn, device=draw.device).masked_fill(~mask, -1)
        soft = draw.normal(B, dtype=given["dtype"])
        soft = soft if below else soft.abs()
        logits = padded(draw, mask, V, **given)
        if apart:
            logits = logits.transpose(0, 2).contiguous().transpose(0, 2)
        return Case(kind, (soft, logits, labels, weight), hint=hint)

    for _ in range(8):
        yield case("labels at some tokens")
        yield case("labels at some tokens, in float32", dtype=SINGLE)
    for _ in range(3):
        yield case("share 0", 0.0)
        yield case("share 1", 1.0)
        yield case("a share above a half", 0.8)
        yield case("soft losses below 0", below=True)
        yield case("labels everywhere", share=1.0)
        yield case("one label in each sentence", share=0.0)
        for place, name in enumerate(("sentence", "token")):
            sizes = draw.sizes(3)
            sizes[place] = 1
            yield case(f"one {name}", sizes=sizes)
        yield case("one size for everything", sizes=draw.sizes(1) * 3)
        yield case("more than a hundred words", sizes=[3, 5, 130])
        yield case("a single word, which costs nothing", sizes=[3, 5, 1])
        yield case("logits that do not lie in a row", apart=True)
        yield case("logits that lie far apart", scale=1e4)
        yield case("large padding", padding=1e6, hint=PADDING)
        for padding in (math.nan, math.inf, -math.inf):
            kind = "padding that is no finite number"
            yield case(kind, padding=padding, hint=PADDING)


Comparison(
    "mixed_loss", mixed_cases, (mixed_loss,), ("the loss", "the hard loss of each sentence")
)

# ---- Part 2: MaxSim


def maxsim(queries, documents, query_mask, document_mask):
    Q, T, _ = queries.shape
    N = len(documents)
    partners = torch.full((Q, N, T), -1, device=queries.device)
    scores = [[] for _ in range(Q)]
    for q in range(Q):
        asked = query_mask[q].nonzero()[:, 0].tolist()
        for n in range(N):
            places = document_mask[n].nonzero()[:, 0].tolist()
            best = []
            for t in asked if places else ():
                products = [(queries[q, t] * documents[n, s]).sum() for s in places]
                values = [product.item() for product in products]
                first = values.index(max(values))
                partners[q, n, t] = places[first]
                best.append(products[first])
            none = queries.new_tensor(-math.inf)
            scores[q].append(torch.stack(best).mean() if best else none)
    return torch.stack([torch.stack(row) for row in scores]), partners


def maxsim_case(draw: Draw, kind: str, sizes=None, hint="", **about) -> Case:
    """Shares are of real tokens; where numbers are whole there are ties, exact ones."""
    Q, N, T, S, D = sizes or draw.sizes(5)
    masks = draw.mask(Q, T, share=about.get("share", 0.6)), draw.mask(N, S)
    if about.get("everything"):
        masks = tuple(torch.ones_like(mask) for mask in masks)
    if about.get("empty"):
        masks[1][1::2] = False
    given = {"dtype": about.get("dtype", DOUBLE), "scale": about.get("scale", 1.0)}
    given["padding"] = about.get("padding", 1.0)
    queries, documents = (padded(draw, mask, D, **given) for mask in masks)
    shift = about.get("shift", 0.0) * (1 if math.isfinite(given["padding"]) else 0)
    if about.get("whole"):
        queries, documents = queries.round(), documents.round()
    if about.get("close"):  # the first of two is behind by a rounding error's tenfold
        documents[:, 1::2] = documents[:, : S - S % 2 : 2] * (1 + 1e-9)
    exact = not (about.get("whole") or about.get("close"))
    args = (queries.abs() + shift, documents - shift, *masks) if shift else None
    return Case(kind, args or (queries, documents, *masks), hint=hint, gradients=exact)


def maxsim_cases(draw: Draw) -> Iterator[Case]:
    small = lambda: [draw.randint(2, 3), draw.randint(2, 4), *draw.sizes(3)]
    for _ in range(5):
        yield maxsim_case(draw, "sizes that all differ", small())
        yield maxsim_case(draw, "sizes that all differ, in float32", small(), dtype=SINGLE)
    for _ in range(2):
        yield maxsim_case(draw, "nothing padded", small(), everything=True)
        yield maxsim_case(draw, "one real token in each query", small(), share=0.0)
        for place, name in enumerate(
            ("query", "document", "token of a query", "token of a document", "feature")
        ):
            sizes = small()
            sizes[place] = 1
            yield maxsim_case(draw, f"one {name}", sizes)
        yield maxsim_case(draw, "one size for everything", [3] * 5)
        kind, hint = "products that are all negative", "No product has a least value."
        yield maxsim_case(draw, kind, small(), shift=2.0, hint=hint)
        kind = "products that are all very negative"
        for shift, sizes in ((3e5, small()), (3e9, [2, 9, 3, 2, 5])):
            hint = "Fill padding with -inf."
            yield maxsim_case(draw, kind, sizes, shift=shift, hint=hint)
        yield maxsim_case(draw, "tiny vectors", small(), scale=1e-4)
        yield maxsim_case(draw, "long vectors", small(), scale=50.0)
        yield maxsim_case(draw, "large padding", small(), padding=1e5, hint=PADDING)


def maxsim_edges(draw: Draw) -> Iterator[Case]:
    for _ in range(3):
        sizes = [2, 3, *draw.sizes(3)]
        hint = "Of equal products the first counts."
        yield maxsim_case(draw, "equal products", [2, 3, 5, 11, 2], whole=True, hint=hint)
        kind, hint = "products that are nearly equal", "They are not: take the largest."
        yield maxsim_case(draw, kind, sizes, close=True, everything=True, hint=hint)
        kind = "documents of padding alone"
        yield maxsim_case(draw, kind, sizes, empty=True, hint="-inf times 0 is nan.")
        yield maxsim_case(draw, f"{kind}, in float32", sizes, empty=True, dtype=SINGLE)
        for padding in (math.nan, math.inf, -math.inf):
            kind = "padding that is no finite number"
            yield maxsim_case(draw, kind, sizes, padding=padding, hint=PADDING)
    half = {"dtype": torch.bfloat16, "whole": True}
    yield maxsim_case(draw, "half precision", [2, 3, 5, 4, 2], **half)
    far = [[[1e9]]], [[[2.0], [-1e9]]], [[True]], [[False, True]]
    kind = "padding before the only token, whose product is very negative"
    yield Case(kind, tuple(torch.tensor(part, device=draw.device) for part in far))


FOUND = ("the table of scores", "the table of partners")
Comparison("maxsim", maxsim_cases, (maxsim,), FOUND)
Comparison("maxsim_edges", maxsim_edges, (maxsim,), FOUND, "maxsim")

# ---- Part 3: answers to a prompt


def build_prompt(start, shots, question, between, longest):
    for dropped in range(len(shots) + 1):
        prompt = list(start)
        for asked, answer in shots[dropped:]:
            prompt += list(asked) + list(answer) + [between]
        prompt += list(question)
        if len(prompt) <= longest:
            return prompt, len(shots) - dropped
    raise ValueError


def build_cases(draw: Draw) -> Iterator[Case]:
    def ids(least: int, most: int) -> list[int]:
        return [draw.randrange(50) for _ in range(draw.randint(least, most))]

    for number, name in ((0, "no shot"), (1, "one shot"), (4, "shots"), (23, "many shots")):
        for _ in range(4):
            shots = [(ids(1, 6), ids(1, 3)) for _ in range(number)]
            start, question, between = ids(1, 4), ids(1, 5), draw.randrange(50)
            least = len(start) + len(question)
            most = least + sum(len(a) + len(b) + 1 for a, b in shots)
            for longest, room in (
                (most + 100, "much room"),
                (most, "just enough room"),
                (most - 1, "a token too little"),
                (least + 8, "room for one or two"),
                (least + 1, "room for a token"),
                (least, "no room at all"),
                (least - 1, "a start and a question that do not fit"),
            ):
                args = ([*start], [*shots], [*question], between, longest)
                yield Case(f"{name} and {room}", args)
    for _ in range(5):
        shots = [(ids(1, 2), ids(1, 1)), (ids(20, 30), ids(1, 2)), (ids(1, 2), ids(1, 1))]
        kind = "a long shot between short ones"
        yield Case(kind, ([1], shots, [2, 3], 0, draw.randint(7, 30)))
        kind, shots = "shots that are equal", [([4, 5], [6])] * 3
        yield Case(kind, ([1], shots, [2, 3], 0, draw.randint(3, 14)))
        yield Case("an empty start", ([], shots, [2, 3], 0, draw.randint(7, 60)))
        kind, shots = "shots with an empty question or answer", [([], [7]), ([8], []), ([], [])]
        yield Case(kind, ([1], shots, [2, 3], 0, draw.randint(3, 9)))


Comparison("build_prompt", build_cases, (build_prompt,), ("the prompt", "the number of shots"))


class Causal:
    """A model whose next token depends on all before it, and that is called once."""

    def __init__(self, word, out, rows, pad: int, dtype, never) -> None:
        self.word, self.out, self.never = word, out, never
        self.rows, self.pad, self.dtype, self.calls = rows, pad, dtype, 0

    def logits(self, ids):
        order = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        seen = torch.tanh((self.word[ids] * order[:, None]).cumsum(1) / 3)
        logits = (seen @ self.out).to(self.dtype)
        return logits.index_fill(-1, self.never, -math.inf)

    def __call__(self, ids):
        self.calls += 1
        if self.calls > 1:
            raise Misuse("model was called again. Put all answers into one batch.")
        if not isinstance(ids, torch.Tensor) or ids.dtype != torch.int64:
            raise Misuse("model must be given ids in a tensor of dtype torch.int64.")
        longest = max(map(len, self.rows))
        wanted = [row + [self.pad] * (longest - len(row)) for row in self.rows]
        if ids.tolist() != wanted:
            raise Misuse(
                "model must be given, in each row, the prompt, an answer, and behind it"
                " pad; yours gives it something else."
            )
        return self.logits(ids)


def answer_log_probs(model, prompt, answers, pad):
    longest = max(map(len, answers))
    device = model.word.device
    table = torch.zeros(len(answers), longest, dtype=model.dtype, device=device)
    mask = torch.zeros(len(answers), longest, device=device) > 0
    for row, answer in enumerate(answers):
        for place, word in enumerate(answer):
            before = torch.tensor([prompt + answer[:place]], device=device)
            log_probs = normalised(model.logits(before)[0, -1].double())
            table[row, place], mask[row, place] = log_probs[word], True
    return table, mask


def asked(function, word, out, prompt, answers, pad, dtype, never):
    """The table, the mask and the gradients of a model, and its table when it has learned."""
    rows = [prompt + answer for answer in answers]
    with torch.enable_grad():
        leaves = [weights.detach().clone().requires_grad_() for weights in (word, out)]
        model = Causal(*leaves, rows, pad, dtype, never)
        table, mask = function(model, prompt, answers, pad)
        chance = torch.Generator().manual_seed(1)
        weights = torch.randn(table.shape, generator=chance).to(table)
        loss = sum(leaf.sum() for leaf in leaves)  # for a table without gradients
        loss = loss + (table.masked_fill(table.isinf(), 0) * weights).sum()
        loss.backward()  # `grad` gives nothing for a model that is in another process
    model.out, model.calls = 0.5 * model.out, 0
    gradients = [weights.grad for weights in leaves]
    return table, mask, gradients, function(model, prompt, answers, pad)[0]


def answer_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, V=17, lengths=(3, 1, 5), begin=4, pad=3, **about) -> Case:
        ids = [[draw.randrange(V) for _ in range(n)] for n in (begin, *lengths)]
        prompt, *answers = ids
        if about.get("padlike"):
            answers = [[pad, *answer[1:-1], pad][: len(answer)] for answer in answers]
        dtype, scale = about.get("dtype", DOUBLE), about.get("scale", 2.0)
        never = torch.tensor([pad] if about.get("never") else [], device=draw.device).long()
        weights = draw.normal(V, 5), draw.normal(5, V, scale=scale)
        args = (*weights, prompt, answers, pad, dtype, never)
        return Case(kind, args, tolerance=1e-9 if dtype == DOUBLE else 2e-5)

    for _ in range(6):
        lengths = draw.sizes(4)
        yield case("answers of different lengths", lengths=lengths, begin=draw.randint(2, 9))
        yield case("logits in float32", lengths=lengths, dtype=SINGLE)
        yield case("answers that end in pad", lengths=lengths, padlike=True)
        yield case("another pad", lengths=lengths, pad=draw.randint(4, 16))
        yield case("pad 0", lengths=lengths, pad=0, padlike=True)
        yield case("one answer", lengths=lengths[:1])
        yield case("answers of one length", lengths=lengths[:1] * 3)
        yield case("answers of one token", lengths=(1, 1, 1, 1))
        yield case("a prompt of one token", begin=1, lengths=lengths)
        yield case("a prompt that is longer than every answer", begin=40, lengths=lengths)
        yield case("many words", V=130, lengths=lengths)
        yield case("logits that lie far apart", scale=1e4, lengths=lengths)
        yield case("a pad that is impossible", never=True, lengths=lengths)
    one, two = case("", begin=3), case("other answers")
    kind = "a prompt and answers that were given before, to another model"
    for other in (one.args[:2], two.args[:2]):
        yield Case(kind, (*other, *one.args[2:]))
    yield two


Comparison(
    "answer_log_probs",
    answer_cases,
    (answer_log_probs,),
    (
        "the table of log-probabilities",
        "the mask",
        "a gradient with respect to the model's weights",
        "the table of a model that has learned since",
    ),
    use=asked,
)


def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    def score(row, a):
        kept = row[a][mask[a]]
        return kept.sum() / len(kept) ** alpha

    scores = []
    for table in log_probs:
        own = [score(table, a) for a in range(len(mask))]
        if prior is not None:
            own = [mine - score(prior, a) for a, mine in enumerate(own)]
        scores.append(torch.stack(own))
    values = [[value.item() for value in row] for row in scores]
    best = [row.index(max(row)) for row in values]
    return torch.tensor(best, device=log_probs.device), torch.stack(scores)


def choice_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, sizes=None, hint="", kwargs=None, **about) -> Case:
        P, A, M = sizes or draw.sizes(3)
        mask = draw.mask(A, M, share=about.get("share", 0.6))
        given = {"dtype": about.get("dtype", DOUBLE), "padding": about.get("padding", 1.0)}
        scale = about.get("scale", 1.0)
        one = lambda: padded(draw, mask, dtype=given["dtype"], scale=scale).abs()
        table, kwargs = -torch.stack([one() for _ in range(P)]), dict(kwargs or {})
        if kwargs.pop("prior", None):
            kwargs["prior"] = -one()
            kwargs["prior"][0] *= 0.0 if about.get("certain") else 1.0
            if not math.isfinite(given["padding"]):
                kwargs["prior"][~mask] = given["padding"]
        if not math.isfinite(given["padding"]):
            table[:, ~mask] = given["padding"]
        if about.get("impossible"):
            table[0, :, :] = -math.inf
            table[1, ::2] = -math.inf
        if about.get("sure"):
            table[:, :, 0] = 0.0
        if about.get("close"):
            table[:, 1] = table[:, 0] * (1 - about["close"])
            mask[1] = mask[0]
        if about.get("equal"):
            table, mask = (4 * table).round() / 4, torch.ones_like(mask)
            table[:, -2:], table[:, 1] = table[:, :2], table[:, 0]
            if (prior := kwargs.get("prior")) is not None:
                prior[:] = (4 * prior[:1]).round() / 4
        args, exact = (table, mask), not (about.get("equal") or about.get("impossible"))
        return Case(kind, args, kwargs, hint, gradients=exact)

    for name, kwargs in (
        ("alpha left out", {}),
        ("alpha 1", {"alpha": 1.0}),
        ("alpha 0", {"alpha": 0.0}),
        ("alpha 0.6", {"alpha": 0.6}),
        ("alpha 2", {"alpha": 2.0}),
        ("a prior", {"prior": True}),
        ("prior None", {"prior": None}),
        ("alpha 0 and a prior", {"alpha": 0.0, "prior": True}),
        ("alpha 0.7 and a prior", {"alpha": 0.7, "prior": True}),
    ):
        for _ in range(3):
            yield case(name, kwargs=kwargs)
            yield case(f"{name}, and scores far below 0", kwargs=kwargs, scale=1e4)
        yield case(f"{name}, in float32", kwargs=kwargs, dtype=SINGLE)
        for padding in (math.nan, math.inf, -math.inf):
            kind = f"{name}, and padding that is no finite number"
            yield case(kind, kwargs=kwargs, padding=padding, hint=PADDING)
    for _ in range(3):
        for place, name in enumerate(("prompt", "answer", "token")):
            sizes = draw.sizes(3)
            sizes[place] = 1
            yield case(f"one {name}", sizes)
        yield case("one size for everything", draw.sizes(1) * 3)
        yield case("one token in each answer", share=0.0)
        yield case("nothing padded", share=1.0)
        yield case("a prior that is sure of an answer", kwargs={"prior": True}, certain=True)
        yield case("answers that are impossible", impossible=True)
        yield case("tokens of which a model is sure", sure=True)
        yield case("impossible answers of one token", impossible=True, share=0.0)
        yield case("scores that are nearly equal", close=1e-9, hint="They are not equal.")
        kind, hint = "equal scores", "Of equal ones the first is chosen."
        for prior in (None, True):
            kwargs = {"alpha": 0.0, "prior": prior}
            yield case(kind, [5, 6, 2], hint, kwargs, equal=True)


Comparison(
    "choose_answer", choice_cases, (choose_answer,), ("the best answer", "the table of scores")
)
