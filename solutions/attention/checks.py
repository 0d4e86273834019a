"""Implementations of `focus` that a student's `check_focus` has to tell apart."""

FUNCTION = "focus"
VISIBLE = ("it measures in nats", "padding counts", "counted among tokens alone")

RIGHT = {
    "the reference": """
def focus(weights, real):
    kept = weights.masked_fill(~real[:, None], 0)
    total = kept.sum(-1, keepdim=True)
    share = kept / total.masked_fill(total == 0, 1)
    bits = -(share * share.masked_fill(share == 0, 1).log2()).sum(-1)
    first = kept.argmax(-1)
    return bits, first.masked_fill(total[..., 0] == 0, -1)
""",
    "row by row": """
import torch
def focus(weights, real):
    bits, first = [], []
    for table, there in zip(weights, real.tolist()):
        for row in table:
            kept = [(w, j) for j, (w, ok) in enumerate(zip(row, there)) if ok and w > 0]
            total = sum(w for w, _ in kept)
            none = 0 * row.masked_fill(~torch.tensor(there, device=row.device), 0).sum()
            bits.append(sum((-(w / total) * (w / total).log2() for w, _ in kept), none))
            best = max([w.item() for w, _ in kept], default=None)
            first.append(next((j for w, j in kept if w.item() == best), -1))
    shape = weights.shape[:2]
    return torch.stack(bits).reshape(shape), torch.tensor(first, device=weights.device).reshape(shape)
""",
    "the logarithm of the sum taken out": """
import torch
def focus(weights, real):
    kept = torch.where(real[:, None, :], weights, torch.zeros_like(weights))
    total = kept.sum(dim=2)
    safe = torch.where(total > 0, total, torch.ones_like(total))
    logs = torch.where(kept > 0, kept, torch.ones_like(kept)).log2()
    bits = safe.log2() - (kept * logs).sum(dim=2) / safe
    return bits, torch.where(total > 0, kept.argmax(dim=2), torch.full_like(kept.argmax(dim=2), -1))
""",
    "natural logarithms, divided": """
import math
def focus(weights, real):
    kept = weights.masked_fill(~real.unsqueeze(1), 0.0)
    largest = kept.amax(dim=-1, keepdim=True)
    first = ((kept == largest).cumsum(dim=-1) == 0).sum(dim=-1)
    empty = (largest == 0).squeeze(-1)
    share = kept / (kept.sum(dim=-1, keepdim=True) + empty.unsqueeze(-1))
    nats = -(share * (share + (share == 0)).log()).sum(dim=-1)
    first[empty] = -1
    return nats / math.log(2), first
""",
    "in float64": """
import torch
def focus(weights, real):
    wide = weights.double().masked_fill(~real[:, None], 0)
    order = wide.sort(dim=-1, descending=True, stable=True)
    some = order.values[..., 0] > 0
    share = wide / wide.sum(-1, keepdim=True).masked_fill(~some[..., None], 1)
    logs = torch.where(share > 0, share, 1.0).log2()
    bits = torch.einsum("bts,bts->bt", share, -logs)
    return bits.to(weights.dtype), torch.where(some, order.indices[..., 0], -1)
""",
    "sentence by sentence": """
import torch
def focus(weights, real):
    bits = 0 * weights.masked_fill(~real[:, None], 0).sum(-1)
    first = torch.full(weights.shape[:2], -1, dtype=torch.int64, device=weights.device)
    for b in range(len(weights)):
        where = real[b].nonzero()[:, 0]
        kept = weights[b][:, where]
        for t in range(weights.shape[1]):
            row = kept[t][kept[t] > 0]
            if len(row):
                share = row / row.sum()
                bits[b, t] = (share * -share.log2()).sum()
                first[b, t] = where[kept[t].tolist().index(row.max().item())]
    return bits, first
""",
}

BITS = "    bits = -(share * share.masked_fill(share == 0, 1).log2()).sum(-1)\n"
KEPT = "    kept = weights.masked_fill(~real[:, None], 0)\n"
FIRST = "    first = kept.argmax(-1)\n"
BACK = "    return bits, first.masked_fill(total[..., 0] == 0, -1)\n"

# fmt: off
WRONG = [
    ("the formula", "it measures in nats", ".log2()", ".log()"),
    ("padding", "padding counts", KEPT, "    kept = weights\n"),
    ("the formula", "what is left is not divided by its sum", "share = kept / total.masked_fill(total == 0, 1)", "share = kept"),
    ("the formula", "no minus", "bits = -(share", "bits = (share"),
    ("the formula", "the mean over positions", ".log2()).sum(-1)", ".log2()).mean(-1)"),
    ("the formula", "a share of the largest entropy", BITS, BITS + "    bits = bits / real.sum(-1, keepdim=True).clamp(min=2).to(bits.dtype).log2()\n"),
    ("the formula", "a softmax", "share = kept / total.masked_fill(total == 0, 1)", "share = kept.masked_fill(~real[:, None], -1e9).softmax(-1) * (total > 0)"),
    ("the formula", "two to the power of the entropy", BITS, BITS + "    bits = 2 ** bits\n"),
    ("the formula", "divided by the sum only if that is above 1", "total.masked_fill(total == 0, 1)", "total.clamp(min=1)"),
    ("the formula", "decimal digits", ".log2()", ".log10()"),
    ("padding", "the mask upside down", "~real[:, None]", "real[:, None]"),
    ("padding", "the first sentence's mask for all", "~real[:, None]", "~real[:1, None]"),
    ("padding", "left out after dividing", "    total = kept.sum(-1, keepdim=True)\n", "    total = weights.masked_fill(weights.isnan(), 0).sum(-1, keepdim=True) * (kept.sum(-1, keepdim=True) > 0)\n"),
    ("padding", "nan at padding stays", KEPT, "    kept = weights * real[:, None]\n"),
    ("padding", "padding may come first", FIRST, "    first = weights.nan_to_num().argmax(-1)\n"),
    ("padding", "padding at the end alone", KEPT, "    count = real.sum(-1)[:, None]\n    ends = __import__('torch').arange(real.shape[1], device=real.device) < count\n    kept = weights.masked_fill(~ends[:, None], 0)\n"),
    ("ties", "the last of equal weights", FIRST, "    first = kept.shape[-1] - 1 - kept.flip(-1).argmax(-1)\n"),
    ("ties", "weights that differ by little are equal", FIRST, "    first = (kept >= kept.amax(-1, keepdim=True) - 1e-3).int().argmax(-1)\n"),
    ("counting", "counted among tokens alone", FIRST, "    first = kept.argmax(-1)\n    first = (real.long().cumsum(-1) - 1).clamp(min=0)[:, None].expand(kept.shape).gather(-1, first[..., None])[..., 0]\n"),
    ("counting", "counted from 1", FIRST, "    first = kept.argmax(-1) + 1\n"),
    ("the order", "the smallest weight", FIRST, "    first = kept.masked_fill(~real[:, None], 9e9).argmin(-1)\n"),
    ("empty input", "0 where nothing is left", BACK, "    return bits, first\n"),
    ("empty input", "nan where nothing is left", "total.masked_fill(total == 0, 1)", "total"),
    ("empty input", "only padding is nothing", BACK, "    return bits, first.masked_fill(~real.any(-1, keepdim=True), -1)\n"),
    ("empty input", "an error where nothing is left", FIRST, FIRST + "    if not (total > 0).all():\n        raise ValueError('nothing is left')\n"),
    ("a wrong gradient", "detached", KEPT, "    weights = weights.detach()\n" + KEPT),
    ("a wrong gradient", "not finite at weights of 0", BITS, "    bits = -share.xlogy(share).sum(-1) / 0.6931471805599453\n"),
    ("a wrong gradient", "the sum counts as a constant", "kept.sum(-1, keepdim=True)", "kept.sum(-1, keepdim=True).detach()"),
    ("number types", "always float32", BACK, "    return bits.float(), first.masked_fill(total[..., 0] == 0, -1)\n"),
    ("number types", "places as int32", BACK, "    return bits, first.masked_fill(total[..., 0] == 0, -1).int()\n"),
    ("small numbers", "weights below a thousandth are 0", "share == 0, 1).log2()", "share < 1e-3, 1).log2()"),
    ("changed arguments", "padding is taken out of the caller's weights", KEPT, "    with __import__('torch').no_grad():\n        weights.masked_fill_(~real[:, None], 0)\n    kept = weights * real[:, None]\n"),
    ("sizes", "dimensions of size 1 are dropped", BACK, "    return bits.squeeze(), first.masked_fill(total[..., 0] == 0, -1).squeeze()\n"),
    ("memory of earlier calls", "the answer to the first input of a shape", BACK, BACK.replace("return ", "return seen.setdefault(weights.shape, (") .rstrip("\n") + "))\nseen = {}\n"),
]
# fmt: on
