"""Legal inputs of the capstone's functions, and references to compare with.

The references are written from the formulas, in float64, one sequence after the other
and without padding. Ids come from a table of a few words of the published vocabulary.
Models and heads are made up, so that nobody is right who asks the published ones.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from functools import partial
from itertools import cycle, pairwise

import torch
from course_tools.grading.assignments.comparing import Case, Comparison, Draw, Misuse

SINGLE = torch.float32

# ---- Parts 2 and 3: files with random numbers, the encoder and the head

SMALL = {"vocab_size": 17, "hidden_size": 6, "num_hidden_layers": 3, "num_attention_heads": 3}
SMALL |= {"intermediate_size": 10, "max_position_embeddings": 9}
SMALL |= {"type_vocab_size": 2, "layer_norm_eps": 1e-12}


def file_of(draw: Draw, sizes: dict) -> dict:
    """Random tensors under the published names."""
    D, inner, head = sizes["hidden_size"], sizes["intermediate_size"], "cls.predictions"
    shapes = {"bert.pooler.dense": (D, D), "bert.embeddings.LayerNorm": (D,)}
    shapes |= {f"{head}.transform.dense": (D, D), f"{head}.transform.LayerNorm": (D,)}
    for number in range(sizes["num_hidden_layers"]):
        stem = f"bert.encoder.layer.{number}."
        for part in ("query", "key", "value"):
            shapes[f"{stem}attention.self.{part}"] = D, D
        shapes |= {f"{stem}attention.output.dense": (D, D), f"{stem}output.dense": (D, inner)}
        shapes[f"{stem}intermediate.dense"] = inner, D
        shapes |= {f"{stem}{part}output.LayerNorm": (D,) for part in ("attention.", "")}
    rows = "vocab_size", "max_position_embeddings", "type_vocab_size"
    names = [
        f"bert.embeddings.{name}_embeddings" for name in ("word", "position", "token_type")
    ]
    every = {f"{name}.bias": shape[:1] for name, shape in shapes.items()}
    every |= {f"{name}.weight": shape for name, shape in shapes.items()}
    every |= {f"{name}.weight": (sizes[row], D) for name, row in zip(names, rows)}
    every[f"{head}.bias"] = (sizes["vocab_size"],)
    return {name: draw.normal(*form, dtype=SINGLE).cpu() for name, form in every.items()}


def gelu(x):
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def dense(tensors, name, x):
    return x @ tensors[f"{name}.weight"].double().T + tensors[f"{name}.bias"].double()


def norm(tensors, name, x, eps):
    apart = x - x.mean(-1, keepdim=True)
    x = apart / ((apart**2).mean(-1, keepdim=True) + eps).sqrt()
    return x * tensors[f"{name}.weight"].double() + tensors[f"{name}.bias"].double()


class Published(torch.nn.Module):
    """The encoder in formulas."""

    def __init__(self, sizes, tensors):
        super().__init__()
        self.sizes, self.named = sizes, tensors
        own = [tensor for name, tensor in tensors.items() if name.startswith("bert.")]
        self.numbers = torch.nn.ParameterList(own)

    def sequence(self, ids, types):
        eps, heads = self.sizes["layer_norm_eps"], self.sizes["num_attention_heads"]
        tensors, places = self.named, torch.arange(len(ids))
        x = 0.0
        for name, rows in (("word", ids), ("position", places), ("token_type", types)):
            x = x + tensors[f"bert.embeddings.{name}_embeddings.weight"].double()[rows]
        x = norm(tensors, "bert.embeddings.LayerNorm", x, eps)
        for number in range(self.sizes["num_hidden_layers"]):
            stem = f"bert.encoder.layer.{number}."
            q, k, v = (
                dense(tensors, f"{stem}attention.self.{part}", x).unflatten(1, (heads, -1))
                for part in ("query", "key", "value")
            )
            weights = torch.einsum("tnd,snd->nts", q, k) / math.sqrt(q.shape[-1])
            context = torch.einsum("nts,snd->tnd", weights.softmax(-1), v).flatten(1)
            x = x + dense(tensors, f"{stem}attention.output.dense", context)
            x = norm(tensors, f"{stem}attention.output.LayerNorm", x, eps)
            inner = gelu(dense(tensors, f"{stem}intermediate.dense", x))
            x = x + dense(tensors, f"{stem}output.dense", inner)
            x = norm(tensors, f"{stem}output.LayerNorm", x, eps)
        return x.float(), dense(tensors, "bert.pooler.dense", x[0]).tanh().float()

    def forward(self, input_ids, attention_mask, token_type_ids):
        rows = zip(input_ids, attention_mask, token_type_ids)
        states, pooled = zip(*(self.sequence(i[real], t[real]) for i, real, t in rows))
        return torch.nn.utils.rnn.pad_sequence(states, batch_first=True), torch.stack(pooled)


def run_published(sizes, tensors, batch):
    return Published(sizes, tensors)(**batch)


def load_bert(sizes, tensors):
    return Published(sizes, tensors).eval()


def run_loaded(load_bert, sizes, tensors, batch):
    model = load_bert(sizes, tensors)
    with torch.no_grad():
        states, _ = model(**batch)
    kept = [*model.parameters()]
    numbers = torch.cat([p.detach().flatten().cpu() for p in kept]).sort().values
    own = [tensor.flatten() for name, tensor in tensors.items() if name.startswith("bert.")]
    same = torch.equal(numbers, torch.cat(own).sort().values)
    trained = all(p.requires_grad for p in kept)
    return states * batch["attention_mask"][..., None], same, model.training, trained


def file_cases(draw: Draw, tolerance: float = 1e-4) -> Iterator[Case]:
    for kind, other in (
        ("a file of other sizes", {}),
        ("another file of the same sizes", {}),
        ("one layer", {"num_hidden_layers": 1, "vocab_size": 23}),
        ("another number of heads", {"num_attention_heads": 2, "hidden_size": 10}),
        ("another number of segments", {"type_vocab_size": 3}),
        ("layer_norm_eps 0.3", {"layer_norm_eps": 0.3}),
        ("a single feature in each head", {"num_attention_heads": 6}),
    ):
        sizes = SMALL | other
        real = torch.tensor([[t < length for t in range(7)] for length in (5, 7, 1)])
        ids, types = (
            torch.tensor([[draw.randrange(low, sizes[size]) for _ in range(7)] for _ in real])
            for size, low in (("vocab_size", 1), ("type_vocab_size", 0))
        )
        batch = {
            "input_ids": ids * real,
            "attention_mask": real,
            "token_type_ids": types * real,
        }
        batch = {name: tensor.to(draw.device) for name, tensor in batch.items()}
        args = sizes, file_of(draw, sizes), batch
        yield Case(kind, args, gradients=False, tolerance=tolerance)


RUN = ("the table of states", "the pooled state")
Comparison("run_published", file_cases, (run_published,), RUN)
LOADED = (
    "the table of states",
    "the set of the model's numbers",
    "the model's mode, training or evaluation,",
    "requires_grad of the model's parameters",
)
# what is wrong in the encoder itself, Part 1 says
loosely = partial(file_cases, tolerance=5e-3)
Comparison("load_bert", loosely, (load_bert,), LOADED, use=run_loaded)


def make_head(sizes, tensors):
    def head(hidden, only=None):
        x = gelu(dense(tensors, "cls.predictions.transform.dense", hidden.double()))
        x = norm(tensors, "cls.predictions.transform.LayerNorm", x, sizes["layer_norm_eps"])
        x = x @ tensors["bert.embeddings.word_embeddings.weight"].double().T
        x = (x + tensors["cls.predictions.bias"]).to(hidden.dtype)
        return x if only is None else x[..., only]

    return head


def through_head(make_head, sizes, tensors, hidden, only):
    head = make_head(sizes, tensors)
    logits, state = head(hidden), hidden.clone().requires_grad_()
    few = head(hidden, only=only)
    with torch.enable_grad():
        again = torch.cat([head(state), head(state, only=only)], dim=-1)
        total = (
            again * torch.arange(1.0, again.numel() + 1).to(again).cos().view_as(again)
        ).sum()
    if not total.requires_grad:
        raise Misuse(
            "Gradients must run through the head: no .detach(), .data or torch.no_grad()."
        )
    (gradient,) = torch.autograd.grad(total, state, allow_unused=True)
    if gradient is None:
        raise Misuse("No gradient reaches the state. Work with tensors all the way.")
    return logits.detach(), few.detach(), gradient


def head_cases(draw: Draw) -> Iterator[Case]:
    scales = cycle((1.0, 5.0, 1e-3))
    for eps in (0.3, 1e-12, 1e-5):
        for form in ((7,), (5, 7), (2, 3, 7), (2, 1, 3, 7), (1, 11)):
            sizes = SMALL | {"hidden_size": form[-1], "layer_norm_eps": eps}
            hidden = draw.normal(*form, dtype=SINGLE, scale=next(scales))
            kind = f"states {[*form]} and layer_norm_eps {eps}"
            sizes |= {"num_attention_heads": 1, "num_hidden_layers": 0}
            only = draw.sample(range(sizes["vocab_size"]), draw.choice((1, 3, 6)))
            only = torch.tensor([*only, only[0]], device=draw.device)
            args = sizes, file_of(draw, sizes), hidden, only
            yield Case(kind, args, tolerance=1e-4)
    yield Case("no piece that is asked for", (*args[:3], only[:0]), tolerance=1e-4)


HEAD = (
    "the table of logits",
    "the table of logits of `only`",
    "the gradient with respect to the state",
)
Comparison("make_head", head_cases, (make_head,), HEAD, use=through_head)

# ---- Part 2: texts, and their ids in published.safetensors

PAD, UNK, CLS, SEP, MASK = range(5)
TABLE = """the 128 a 83 list 343 value 319 file 412 of 150 is 151 returns 294 number 457
default 402 none 544 true 432 error 724 tensor 397 in 137 b 84 s 101 x 106 3 63 17 5948
mask 1024 sep 5838 cls 3426 pad 1811 queue 3022 queues 3022+36 cafe 1372+6959 naive 5055
zoe 5293+22 xmlrpc 2583+35+3944 unk 254+28 rereads 7805+552+36 2026 2932+10+14 python 623
! 5 # 7 ( 52 ) 53 , 56 - 57 . 58 : 70 = 73 [ 77 ] 79 _ 81"""
PAIRS = TABLE.split()
IDS = {word: [*map(int, ids.split("+"))] for word, ids in zip(PAIRS[::2], PAIRS[1::2])}
WORDS = [word for word in IDS if word.isalnum()]


def ids_of(text, max_length=128):
    ids = []
    for part in re.split(r"(\[MASK\])", text):
        plain = unicodedata.normalize("NFD", part).lower()
        plain = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Cf"))
        words = [part] if part == "[MASK]" else re.findall(r"[a-z0-9☃]+|\S", plain)
        ids += [n for word in words for n in IDS.get(word, [MASK if word == "[MASK]" else UNK])]
    return [CLS, *ids[: max_length - 2], SEP]


def sentence(draw: Draw, words: int, holes: int = 0) -> str:
    """Words in any order, some of them in capitals, and holes."""
    chosen = [
        draw.choice((str, str.upper, str.title))(draw.choice(WORDS)) for _ in range(words)
    ]
    for _ in range(holes):
        chosen.insert(draw.randint(0, len(chosen)), "[MASK]")
    return " ".join(chosen)


CASES = {
    "capitals, accents and odd spaces": (
        ["The LIST\tof\nCAFÉ", "Zoé:NAÏVE", "\n a\xa0list "],
        ["Nai\u0308ve  li\u00adst", "a\nlist\r\nof\n\nqueues"],
    ),
    "signs": (["#list_of(a.b)=3", "##s", "[a] [list]"], ["(2026-17)", "a_b!", "rereads,"]),
    "characters that the vocabulary lacks": (["☃ is", "list☃ of x☃x"], ["☃", "☃ ☃ a"]),
    "[MASK] at an edge": (["[MASK] is", "the [MASK]"], ["[MASK]"], ["[MASK] [MASK]", "a"]),
    "[MASK] beside other characters": (
        ["x[MASK]s"],
        ["([MASK])."],
        ["[[MASK]]", "[MASK][MASK]"],
    ),
    "several [MASK]": (
        ["a [MASK] b [MASK] list [MASK] x"],
        ["[MASK], [MASK]", "[MASK] b[MASK]"],
    ),
    "what looks like [MASK], or another special token": (
        ["[mask] is", "[Mask]", "[ MASK ]", "MASK"],
        ["[SEP] a [CLS] [PAD]", "the [UNK] [MASK", "a [SEP] [MASK] [UNK]"],
    ),
    "empty texts": ([""], ["", "a list"], ["a", "  ", "the list"]),
    "a text that comes twice": (["a list", "the", "a list"], ["[MASK]", "[MASK]"]),
}


def batch_cases(draw: Draw) -> Iterator[Case]:
    for _ in range(5):
        yield Case("one text", ([sentence(draw, draw.randint(1, 12))],))
    for kind, rows in CASES.items():
        yield from (Case(kind, (row,)) for row in rows)
    for _ in range(5):
        texts = [sentence(draw, n, n % 2) for n in draw.sizes(4)]
        yield Case("texts of different lengths", (texts,))
    for most in (3, 5, 7, 12):
        for words in (most - 3, most - 2, most - 1, 40):
            texts = ["list " * words, sentence(draw, 6), "a" + " [MASK]" * (most - 3)]
            yield Case("max_length", (texts,), {"max_length": most})
    for words in (125, 126, 127, 200):
        yield Case("long texts and max_length left out", (["the " * words, "a [MASK]"],))
    yield Case("a max_length above 128", (["the list " * 150, "a"],), {"max_length": 290})
    yield Case("many texts", ([sentence(draw, n % 7) for n in range(60)],))


def to_batch(texts, max_length=128):
    rows = [ids_of(text, max_length) for text in texts]
    T = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (T - len(row)) for row in rows])
    real = torch.tensor([[t < len(row) for t in range(T)] for row in rows])
    return dict(zip(BATCH, (ids, torch.zeros_like(ids), real)))


def in_order(to_batch, texts, **options):
    batch = to_batch(texts, **options)
    if not isinstance(batch, dict) or {*batch} != {*BATCH}:
        raise Misuse(f"to_batch must return a dict with {', '.join(BATCH)}.")
    return tuple(batch[name] for name in BATCH)


BATCH = ("input_ids", "token_type_ids", "attention_mask")
Comparison("to_batch", batch_cases, (to_batch,), BATCH, use=in_order)

# ---- Part 4: fill the hole

PIECES = {ids[0]: word for word, ids in IDS.items() if len(ids) == 1}
PIECES |= {36: "##s", 22: "##e", 35: "##r", 14: "##6", 6959: "##fe", 300: "##ated"}


class Reader(torch.nn.Module):
    """Stands in for a model: its states tell all that it reads, and its mode."""

    def __init__(self, draw: Draw, D: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(draw.normal(101, D, dtype=SINGLE))
        self.eval()

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        places = 7 * torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.table[(input_ids + places) % 101]
        real = real[..., None].to(x.dtype)
        x = x + (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True) + self.training
        return x, x[:, 0]


def states_of(bert, text):
    """The states of a text alone, and its ids."""
    ids = torch.tensor([ids_of(text)], device=bert.table.device)
    with torch.no_grad():
        return bert(ids, ids >= 0, torch.zeros_like(ids))[0][0], ids[0].tolist()


def head_of(draw: Draw, D: int, spread: float, shift: float, special: float):
    """Logits that stand out for some pieces and for the special ones, none of them equal."""
    weight, step = draw.normal(D, len(PIECES), dtype=SINGLE), torch.arange(len(PIECES)) / 4096

    def head(hidden, only=None):
        scores = (hidden @ weight * spread * 64).round() / 64 + step.to(hidden.device) + shift
        lowest = scores.amin(-1, keepdim=True) - 1
        logits = lowest.expand(*hidden.shape[:-1], 8192).clone()
        logits[..., list(PIECES)] = scores
        logits[..., :5] = shift + special
        return logits if only is None else logits[..., only]

    return head


def fill_mask(bert, head, text, most=4):
    if text.count("[MASK]") != 1:
        raise ValueError
    states, ids = states_of(bert, text)
    chances = head(states)[ids.index(MASK), 5:].double().softmax(0).tolist()
    order = sorted(PIECES, key=lambda n: -chances[n - 5])
    return [(PIECES[n], chances[n - 5]) for n in order[:most]]


def fill_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, text: str, most=None, spread=0.3, shift=0.0, special=0.0, hint=""):
        args = Reader(draw, 7), head_of(draw, 7, spread, shift, special), text
        options = {"most": most} if most else {}
        return Case(kind, args, options, hint, tolerance=3e-5)

    for _ in range(3):
        hint = "Leave them out before the softmax, not after it."
        kind = "special tokens that have the highest logits"
        yield case(kind, sentence(draw, 4, 1), special=50.0, hint=hint)
        yield case(
            "logits far below 0", sentence(draw, 4, 1), shift=-300.0, special=20.0, hint=hint
        )
        yield case("pieces that are almost equally likely", sentence(draw, 4, 1), 9, 1e-3)
        yield case("pieces that are almost certain", sentence(draw, 4, 1), 9, 9.0)
    for _ in range(4):
        yield case("most left out", sentence(draw, draw.randint(1, 9), 1))
        for most in (1, 3, 7, 15):
            yield case("another number of guesses", sentence(draw, 5, 1), most)
    texts = (
        "[MASK]",
        "[MASK] is",
        "of [MASK]",
        "x[MASK]s",
        "([MASK])",
        "[mask] [MASK]",
        "[SEP] [MASK]",
    )
    for text in (*texts, "the CAFÉ\n[MASK]", "☃ [MASK]", "[[MASK]]", "a " * 100 + "[MASK]"):
        yield case("a [MASK] at an edge or beside other characters", text)
    model, head = Reader(draw, 5), head_of(draw, 5, 0.3, 0.0, 0.0)
    for _ in range(4):
        args = model, head, sentence(draw, 5, 1)
        yield Case("one model for several texts", args, tolerance=3e-5)
    for text in ("", "No hole.", "[mask]", "MASK"):
        yield case("no [MASK]", text)
    for text in (
        "[MASK][MASK]",
        "a [MASK] b [MASK]",
        "[MASK].[MASK]",
        "[MASK] x[MASK]s [MASK]",
        "[MASK] " + "the " * 140 + "[MASK]",
    ):
        yield case("several [MASK]", text)


def halves(function, *args, **options):
    """What a function returns as pairs, as two lists."""
    pairs = function(*args, **options)
    return [text for text, _ in pairs], [number for _, number in pairs]


GUESSES = ("the list of pieces", "the list of probabilities")
Comparison("fill_mask", fill_cases, (fill_mask,), GUESSES, use=halves)

# ---- Part 6: vectors of texts


def embed_texts(bert, texts):
    rows = []
    for text in texts:
        states, ids = states_of(bert, text)
        words = [x for x, n in zip(states, ids) if n >= 5] or [0 * states[0]]
        rows.append(torch.stack(words).double().mean(0))
    return torch.stack(rows).float()


def embed_cases(draw: Draw) -> Iterator[Case]:
    for D in (3, 5, 7, 133):
        bert, texts = Reader(draw, D), [sentence(draw, n) for n in draw.sizes(4)]
        yield Case("texts of different lengths", (bert, texts), tolerance=1e-5)
        yield Case("one text", (bert, texts[:1]), tolerance=1e-5)
        yield Case("another model", (Reader(draw, D), texts), tolerance=1e-5)
        for kind, rows in CASES.items() if D == 5 else ():
            for row in (row for row in rows if "[MASK]" not in " ".join(row)):
                yield Case(kind, (Reader(draw, D), row), tolerance=1e-5)
    long = [sentence(draw, n) for n in (30, 33, 60, 50, 1)]
    yield Case("long texts", (Reader(draw, 5), long), tolerance=1e-5)
    many = [sentence(draw, n % 7 + 1) for n in range(40)]
    yield Case("many texts", (Reader(draw, 5), many), tolerance=1e-5)


Comparison("embed_texts", embed_cases, (embed_texts,), ("the table of vectors",))


def find_alike(bert, query, texts, most=3, same=None):
    query, vectors = (embed_texts(bert, rows).double() for rows in ([query], texts))
    scores, taken = torch.cosine_similarity(query, vectors).tolist(), []
    table = torch.cosine_similarity(vectors[:, None], vectors, dim=-1).tolist()
    for n in sorted(range(len(texts)), key=lambda n: -scores[n]):
        if same is None or all(table[n][m] < same for m in taken):
            taken.append(n)
    return [(texts[n], scores[n]) for n in taken[:most]]


def texts_and_cosines(find_alike, *args, **options):
    texts, cosines = halves(find_alike, *args, **options)
    return texts, torch.tensor(cosines)


def alike_cases(draw: Draw) -> Iterator[Case]:
    for kind, count, most, repeated in (
        ("most left out", 7, None, 0),
        ("another number of hits", 11, 1, 0),
        ("another number of hits", 11, 5, 0),
        ("as many hits as texts", 10, 10, 0),
        ("many texts", 70, 6, 0),
        ("a text that comes twice", 7, 6, 2),
        ("the query in other letters among the texts", 6, 4, 1),
    ):
        for _ in range(4):
            bert, query = Reader(draw, 5), sentence(draw, 3)
            while True:  # no two of them as good as equal
                texts = [sentence(draw, draw.randint(1, 5)) for _ in range(count)]
                found = find_alike(bert, query, texts, (most or 3) + 1)
                if all(a - b > 1e-3 for (_, a), (_, b) in pairwise(found)):
                    break
            texts += [texts[0]] if repeated == 2 else [query.swapcase()] * repeated
            options = {"most": most} if most else {}
            yield Case(kind, (bert, query, texts), options, tolerance=1e-5)
            if kind == "many texts":
                break
    texts = [sentence(draw, n) for n in (1, 2, 3, 4, 5)]
    for _ in range(3):
        yield Case("another model", (Reader(draw, 5), texts[2], texts), tolerance=1e-5)
    pairs = [(0.999, 2), (0.9, 5), (0.9, 2), (0.6, 20), (0.6, 2), (0.2, 5)]
    for same, most in pairs:
        while True:  # nothing that rounding decides
            bert, query = Reader(draw, 3), sentence(draw, 3)
            texts = [sentence(draw, n % 4 + 1) for n in range(11)]
            vectors = embed_texts(bert, [query, *texts]).double()
            table = torch.cosine_similarity(vectors[:, None], vectors, dim=-1)
            apart = table[0, 1:].sort().values.diff().min() > 1e-3
            if apart and (table - same).abs().min() > 1e-3:
                break
        hint = "Pass over what is like a text that is taken, and take the next nearest."
        nearest = texts[table[0, 1:].argmax()]
        args = bert, query, [*texts, *[nearest] * (1 if most > 2 else 60)], most, same
        kind = f"texts that say the same from {same} on"
        yield Case(kind, args, {}, hint, tolerance=1e-5)


ALIKE = ("the list of texts", "the list of cosines")
Comparison("find_alike", alike_cases, (find_alike,), ALIKE, use=texts_and_cosines)
