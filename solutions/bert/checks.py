"""Implementations of `word_attention` that a student's `check_word_attention` has to tell
apart."""

FUNCTION = "word_attention"
VISIBLE = (
    "both sides are summed",
    "giving and getting are exchanged",
    "a weight of nan that does not matter makes others nan",
)

RIGHT = {
    "the reference": """
import torch
def word_attention(weights, words):
    W = int(words.max()) + 1
    of_word = words[..., None] == torch.arange(W, device=words.device)
    there = words >= 0
    both = there[:, None, :, None] & there[:, None, None, :]
    kept = weights.masked_fill(~both, 0)
    pieces = of_word[:, None].to(kept.dtype)
    getting = kept @ pieces
    giving = pieces.transpose(2, 3) @ getting
    count = of_word.sum(1)[:, None, :, None]
    return giving / count.clamp(min=1)
""",
    "sequence by sequence, word by word": """
import torch
def word_attention(weights, words):
    W = max(max(row) for row in words.tolist()) + 1
    tables = []
    for table, row in zip(weights, words.tolist()):
        places = [[t for t, word in enumerate(row) if word == number] for number in range(W)]
        none = 0 * table[:, :1, 0].masked_fill(torch.ones_like(table[:, :1, 0]) > 0, 0)[:, 0]
        out = table.new_zeros(len(table), W, W) + none[:, None, None]
        for i, queries in enumerate(places):
            for j, keys in enumerate(places):
                if queries and keys:
                    out[:, i, j] = table[:, queries][:, :, keys].sum(2).mean(1)
        tables.append(out)
    return torch.stack(tables)
""",
    "added up by index": """
import torch
def word_attention(weights, words):
    B, H, T, _ = weights.shape
    W = words.amax().item() + 1
    to = torch.where(words < 0, W, words)
    outside = words < 0
    kept = weights.masked_fill(outside[:, None, :, None] | outside[:, None, None], 0.0)
    columns = kept.new_zeros(B, H, T, W + 1).scatter_add(3, to[:, None, None].expand_as(kept), kept)
    index = to[:, None, :, None].expand(B, H, T, W + 1)
    rows = kept.new_zeros(B, H, W + 1, W + 1).scatter_add(2, index, columns)
    count = torch.zeros(B, W + 1, dtype=torch.int64, device=words.device)
    count.scatter_add_(1, to, torch.ones_like(to))
    return (rows / count.clamp(min=1)[:, None, :, None])[:, :, :W, :W]
""",
    "the mean first, in float64": """
import torch
def word_attention(weights, words):
    numbers = torch.arange(words.max() + 1, device=words.device)
    to = (numbers[None, :, None] == words[:, None]).double()
    share = to / to.sum(-1, keepdim=True).clamp_min(1)
    real = (words > -1).unsqueeze(1)
    kept = torch.where(real.unsqueeze(3) & real.unsqueeze(2), weights, torch.zeros_like(weights))
    given = torch.einsum("bit,bhts->bhis", share, kept.double())
    return torch.einsum("bhis,bjs->bhij", given, to).to(weights.dtype)
""",
    "one-hot vectors with a place for no word": """
import torch
def word_attention(weights, words):
    W = words.max() + 1
    hot = torch.nn.functional.one_hot(words + 1, int(W) + 1)[..., 1:].to(weights)
    out = torch.zeros_like(weights)
    there = words != -1
    inside = (there.unsqueeze(1) * there.unsqueeze(2)).unsqueeze(1).expand_as(weights)
    out = out.masked_scatter(inside, weights.masked_select(inside))
    summed = torch.einsum("bhts,bsw->bhtw", out, hot)
    total = torch.einsum("bhtw,btv->bhvw", summed, hot)
    pieces = hot.sum(1)[:, None, :, None]
    return total / (pieces + (pieces == 0))
""",
    "weight by weight": """
import torch
def word_attention(weights, words):
    B, H, T, _ = weights.shape
    W = int(words.max()) + 1
    nothing = torch.zeros_like(weights[0, :, 0, 0]) + 0 * weights.masked_fill(weights == weights, 0).nan_to_num().sum()
    cells = [[[nothing for _ in range(W)] for _ in range(W)] for _ in range(B)]
    for b, row in enumerate(words.tolist()):
        for t, i in enumerate(row):
            for s, j in enumerate(row):
                if min(i, j) >= 0:
                    cells[b][i][j] = cells[b][i][j] + weights[b, :, t, s] / row.count(i)
    if W == 0:
        return nothing.expand(B, H)[:, :, None, None].expand(B, H, 1, 1)[:, :, :0, :0]
    return torch.stack([torch.stack([torch.stack(line, -1) for line in table], -2) for table in cells])
""",
}

MAKE = "def word_attention(weights, words):\n"
SIZE = "    W = int(words.max()) + 1\n"
OF = "    of_word = words[..., None] == torch.arange(W, device=words.device)\n"
BOTH = "    both = there[:, None, :, None] & there[:, None, None, :]\n"
KEPT = "    kept = weights.masked_fill(~both, 0)\n"
PIECES = "    pieces = of_word[:, None].to(kept.dtype)\n"
GETTING = "    getting = kept @ pieces\n"
GIVING = "    giving = pieces.transpose(2, 3) @ getting\n"
COUNT = "    count = of_word.sum(1)[:, None, :, None]\n"
BACK = "    return giving / count.clamp(min=1)\n"
FIRST = "(pieces * (pieces.cumsum(2) == 1))"

# fmt: off
WRONG = [
    ("the formula", "both sides are summed", BACK, "    return giving\n"),
    ("the order", "giving and getting are exchanged", COUNT, COUNT.replace("[:, None, :, None]", "[:, None, None, :]")),
    ("padding", "a weight of nan that does not matter makes others nan", KEPT, "    kept = weights * both\n"),
    ("the formula", "the mean on both sides", BACK, "    return giving / count.clamp(min=1) / count.clamp(min=1).transpose(2, 3)\n"),
    ("the order", "the answer is transposed", BACK, BACK.rstrip("\n").replace("giving / count.clamp(min=1)", "(giving / count.clamp(min=1)).transpose(2, 3)") + "\n"),
    ("the formula", "what words give is divided by its sum", BACK, "    out = giving / count.clamp(min=1)\n    total = out.sum(-1, keepdim=True)\n    return out / total.masked_fill(total == 0, 1)\n"),
    ("the formula", "a word gives what its first piece gives", GIVING + COUNT + BACK, f"    return {FIRST}.transpose(2, 3) @ getting\n"),
    ("the formula", "a word gets what its first piece gets", GETTING, f"    getting = kept @ {FIRST}\n"),
    ("the formula", "the largest weight in the place of a sum", GETTING, "    getting = torch.stack([(kept * one[:, :, None]).amax(3) for one in pieces.unbind(3)], 3) if W else kept @ pieces\n"),
    ("the formula", "the largest weight in the place of a mean", GIVING + COUNT + BACK, "    return torch.stack([(getting * one[..., None]).amax(2) for one in pieces.unbind(3)], 2) if W else pieces.transpose(2, 3) @ getting\n"),
    ("the formula", "a word gives itself nothing", BACK, "    return giving / count.clamp(min=1) * (1 - torch.eye(W, dtype=giving.dtype, device=giving.device))\n"),
    ("counting", "pieces are counted in the whole batch", COUNT, "    count = of_word.sum((0, 1))[:, None]\n"),
    ("counting", "pieces of the first sequence are counted for all", COUNT, "    count = of_word[:1].sum(1)[:, None, :, None]\n"),
    ("counting", "only pieces side by side are one word", OF, OF + "    of_word = of_word & ((of_word.int().diff(dim=1, prepend=0 * of_word[:, :1].int()) == 1).cumsum(1) == 1)\n"),
    ("counting", "numbers that a sequence lacks are closed up", SIZE, "    words = torch.stack([torch.unique(torch.cat([row, row.new_tensor([-1])]), return_inverse=True)[1][:-1] - 1 for row in words])\n" + SIZE),
    ("padding", "a position without a word counts for word 0", SIZE, "    words = words.clamp(min=0)\n" + SIZE),
    ("padding", "a position without a word counts for the last word", SIZE, SIZE + "    words = words.masked_fill(words < 0, W - 1)\n"),
    ("padding", "nan given by a position without a word stays", BOTH, BOTH.replace("there[:, None, :, None] & ", "")),
    ("padding", "nan given to a position without a word stays", BOTH, BOTH.replace(" & there[:, None, None, :]", "")),
    ("padding", "nan is taken out, but not inf", KEPT, "    kept = torch.where(weights.isnan() & ~both, 0, weights) * both\n"),
    ("padding", "positions without a word are thought to be last", OF, OF + "    of_word = of_word & (torch.arange(words.shape[1], device=words.device) < (words >= 0).sum(1, keepdim=True))[..., None]\n"),
    ("padding", "the first position is always left out", OF, OF + "    of_word = of_word & (torch.arange(words.shape[1], device=words.device) > 0)[:, None]\n"),
    ("padding", "the words of the first sequence for all", SIZE, SIZE + "    words = words[:1].expand_as(words)\n"),
    ("sizes", "as many words as there are different numbers", SIZE, "    W = len(words[words >= 0].unique())\n"),
    ("sizes", "as many words as the first sequence has", SIZE, "    W = int(words[0].max()) + 1\n"),
    ("sizes", "at least one word", SIZE, "    W = max(1, int(words.max()) + 1)\n"),
    ("sizes", "dimensions of size 1 are dropped", BACK, "    return (giving / count.clamp(min=1)).squeeze()\n"),
    ("sizes", "the mean over heads", KEPT, KEPT + "    kept = kept.mean(1, keepdim=True)\n"),
    ("sizes", "the first head for all", KEPT, KEPT + "    kept = kept[:, :1].expand_as(kept)\n"),
    ("empty input", "nan for a word that has no piece", BACK, "    return giving / count\n"),
    ("empty input", "an error where there is no word", SIZE, SIZE + "    if W == 0:\n        raise ValueError('there is no word')\n"),
    ("a wrong gradient", "detached", KEPT, "    kept = weights.detach().masked_fill(~both, 0)\n"),
    ("a wrong gradient", "no gradient of what a word gives itself", KEPT, KEPT + "    own = words[:, None, :, None] == words[:, None, None, :]\n    kept = torch.where(own, kept.detach(), kept)\n"),
    ("number types", "always float32", BACK, "    return (giving / count.clamp(min=1)).float()\n"),
    ("small numbers", "weights below a thousandth are 0", KEPT, KEPT + "    kept = kept.masked_fill(kept.abs() < 1e-3, 0)\n"),
    ("small numbers", "float64 is counted in float32", KEPT, "    dtype, kept = weights.dtype, weights.float().masked_fill(~both, 0).to(weights.dtype)\n"),
    ("changed arguments", "what does not matter becomes 0 in the caller's weights", KEPT, "    weights.data.masked_fill_(~both, 0)\n" + KEPT),
    ("changed arguments", "-1 becomes a number of its own", BACK, "    words.masked_fill_(words < 0, W)\n" + BACK),
    ("memory of earlier calls", "as many words as the largest number so far", MAKE + SIZE, "seen = []\n" + MAKE + SIZE + "    seen.append(W)\n    W = max(seen)\n"),
]
# fmt: on
