"""Implementations of `negatives` that a student's `check_negatives` has to tell apart."""

FUNCTION = "negatives"
VISIBLE = (
    "nothing is left out for its score",
    "of equal scores the larger number first",
    "no rest for a query with too few",
)

RIGHT = {
    "the reference": """
import torch
def negatives(scores, relevant, k, margin):
    if k < 1 or margin < 0:
        raise ValueError("k must be at least 1, and margin at least 0")
    lowest = scores.masked_fill(~relevant, torch.inf).amin(dim=1, keepdim=True)
    allowed = scores <= lowest - margin
    allowed = allowed & ~relevant
    allowed = allowed & relevant.any(dim=1, keepdim=True)
    ranked = scores.masked_fill(~allowed, -torch.inf)
    found, numbers = ranked.sort(dim=1, descending=True, stable=True)
    found = torch.nn.functional.pad(found, (0, k - found.shape[1]), value=-torch.inf)
    numbers = torch.nn.functional.pad(numbers, (0, k - numbers.shape[1]), value=-1)
    return numbers.masked_fill(found == -torch.inf, -1), found
""",
    "sorted lists": """
import math
import torch
def negatives(scores, relevant, k, margin):
    if not (k >= 1 and margin >= 0):
        raise ValueError(f"k is {k}, margin is {margin}")
    rows = []
    for row, right in zip(scores.tolist(), relevant.tolist()):
        known = [s for s, yes in zip(row, right) if yes]
        limit = min(known) - margin if known else -math.inf
        pairs = [(-s, n) for n, s in enumerate(row) if not right[n] and -math.inf < s <= limit]
        rows.append([n for _, n in sorted(pairs)[:k]])
    numbers = torch.tensor([row + [-1] * (k - len(row)) for row in rows], device=scores.device)
    found = scores.gather(1, numbers.clamp(min=0))
    return numbers, found.masked_fill(numbers < 0, -math.inf)
""",
    "the best, again and again": """
import torch
def negatives(scores, relevant, k, margin):
    if k <= 0:
        raise ValueError("no k")
    if margin < 0:
        raise ValueError("a margin below 0")
    far = (scores.unsqueeze(1) + margin <= scores.unsqueeze(2)) | ~relevant.unsqueeze(2)
    left = far.all(dim=1) & relevant.any(dim=1)[:, None] & ~relevant & ~scores.isinf()
    every, numbers, found = torch.arange(len(scores), device=scores.device), [], []
    for _ in range(k):
        some = left.any(dim=1)
        best = torch.where(left, scores, -torch.inf).argmax(dim=1)
        numbers.append(torch.where(some, best, -1))
        found.append(torch.where(some, scores[every, best], -torch.inf))
        left = left.scatter(1, best[:, None], False)
    return torch.stack(numbers, 1), torch.stack(found, 1)
""",
    "places by comparing all with all": """
import torch
def negatives(scores, relevant, k, margin):
    if k < 1 or margin < 0.0:
        raise ValueError("see the text")
    Q, N = scores.shape
    numbers = torch.full((Q, k), -1, dtype=torch.long, device=scores.device)
    found = scores.new_full((Q, k), -torch.inf) + 0 * scores.masked_fill(scores.isinf(), 0).sum()
    for q in range(Q):
        row, right = scores[q], relevant[q]
        if not right.any():
            continue
        chosen = (~right & row.isfinite()).nonzero()[:, 0]
        chosen = chosen[(row[right][:, None] - row[chosen] >= margin).all(0)]
        values, order = row[chosen], torch.arange(len(chosen), device=row.device)
        ahead = values[None] > values[:, None]
        ahead |= (values[None] == values[:, None]) & (order[None] < order[:, None])
        place = ahead.sum(1)
        inside = place < k
        numbers[q, place[inside]] = chosen[inside]
        found[q, place[inside]] = values[inside]
    return numbers, found
""",
    "differences in float64": """
import torch
def negatives(scores, relevant, k, margin):
    if min(k - 1, margin) < 0:
        raise ValueError("too small")
    wide = scores.detach().double()
    lowest = torch.where(relevant, wide, torch.inf).min(dim=1).values
    bad = relevant | (lowest[:, None] - wide < margin) | lowest.isinf()[:, None] | wide.isinf()
    keys = torch.where(bad, torch.inf, -wide)
    order = torch.argsort(keys, dim=1, stable=True)[:, :k]
    numbers = torch.where(bad.gather(1, order), -1, order)
    rest = torch.full((len(scores), k - order.shape[1]), -1, device=scores.device)
    numbers = torch.cat([numbers, rest], dim=1)
    longer = torch.cat([torch.full_like(scores[:, :1], -torch.inf), scores], dim=1)
    return numbers, torch.gather(longer, 1, numbers + 1)
""",
    "passage by passage": """
import torch
def negatives(scores, relevant, k, margin):
    if k < 1:
        raise ValueError("k")
    if margin < 0:
        raise ValueError("margin")
    Q, N = scores.shape
    ruled_out = scores.new_tensor(float("-inf"))
    all_numbers, all_found = [], []
    for q in range(Q):
        known = [n for n in range(N) if relevant[q, n]]
        best = []
        for n in range(N):
            if n in known or not known or scores[q, n] == ruled_out:
                continue
            if any(scores[q, n].item() > scores[q, p].item() - margin for p in known):
                continue
            place = sum(1 for m in best if scores[q, m] >= scores[q, n])
            best.insert(place, n)
            del best[k:]
        all_found += [scores[q, n] for n in best] + [ruled_out] * (k - len(best))
        all_numbers += best + [-1] * (k - len(best))
    connected = scores.masked_fill(scores == ruled_out, 0).sum() * 0
    found = torch.stack(all_found).reshape(Q, k) + connected
    return torch.tensor(all_numbers, device=scores.device).reshape(Q, k), found
""",
}

MAKE = "def negatives(scores, relevant, k, margin):\n"
LOWEST = "    lowest = scores.masked_fill(~relevant, torch.inf).amin(dim=1, keepdim=True)\n"
ALLOWED = "    allowed = scores <= lowest - margin\n"
OTHERS = "    allowed = allowed & ~relevant\n"
SOME = "    allowed = allowed & relevant.any(dim=1, keepdim=True)\n"
RANKED = "    ranked = scores.masked_fill(~allowed, -torch.inf)\n"
SORT = "    found, numbers = ranked.sort(dim=1, descending=True, stable=True)\n"
BACK = "    return numbers.masked_fill(found == -torch.inf, -1), found\n"
FOUND = (
    "    found = torch.nn.functional.pad(found, (0, k - found.shape[1]), value=-torch.inf)\n"
)
NUMBERS = (
    "    numbers = torch.nn.functional.pad(numbers, (0, k - numbers.shape[1]), value=-1)\n"
)
NONE = "masked_fill(found == -torch.inf, -1)"

# fmt: off
WRONG = [
    ("the formula", "nothing is left out for its score", ALLOWED, "    allowed = scores > -torch.inf\n"),
    ("ties", "of equal scores the larger number first", SORT, "    found, numbers = ranked.flip(1).sort(dim=1, descending=True, stable=True)\n    numbers = ranked.shape[1] - 1 - numbers\n"),
    ("empty input", "no rest for a query with too few", BACK, "    most = min(k, int(allowed.sum(1).max()))\n    return numbers[:, :most], found[:, :most]\n"),
    ("the formula", "the margin is forgotten", "lowest - margin", "lowest"),
    ("the formula", "the margin is a share of the right one's score", "lowest - margin", "lowest - margin * lowest.abs()"),
    ("the formula", "below the best of the right ones", LOWEST, "    lowest = scores.masked_fill(~relevant, -torch.inf).amax(dim=1, keepdim=True)\n"),
    ("sizes", "below the right ones of all queries", LOWEST, LOWEST.replace(".amin(dim=1, keepdim=True)", ".amin()")),
    ("the formula", "near scores on both sides are left out", ALLOWED, "    allowed = (scores - lowest).abs() >= margin\n"),
    ("a tight fit", "a score just at the limit is left out", "scores <= lowest", "scores < lowest"),
    ("a tight fit", "right ones are negatives where the margin is 0", OTHERS, ""),
    ("sizes", "right for one query, right for all", OTHERS, "    allowed = allowed & ~relevant.any(dim=0)\n"),
    ("counting", "right ones take up some of the k places", RANKED, "    first = scores.masked_fill(relevant, torch.inf).sort(dim=1, descending=True, stable=True)[1][:, :k]\n    allowed = allowed & torch.zeros_like(relevant).scatter(1, first, True)\n" + RANKED),
    ("counting", "left out after the k best are chosen", RANKED, "    first = scores.masked_fill(relevant, -torch.inf).sort(dim=1, descending=True, stable=True)[1][:, :k]\n    allowed = allowed & torch.zeros_like(relevant).scatter(1, first, True)\n" + RANKED),
    ("counting", "numbers from 1", NONE, "add(1)." + NONE),
    ("counting", "counted among passages that are not right", BACK, "    wrong = (~relevant).long().cumsum(1) - 1\n    place = wrong.gather(1, numbers.clamp(min=0))\n    return place.masked_fill(found == -torch.inf, -1), found\n"),
    ("the order", "the k largest, the smallest of them first", BACK, "    some = (found > -torch.inf).sum(1, keepdim=True)\n    place = torch.arange(k, device=scores.device).expand(found.shape)\n    place = torch.where(place < some, some - 1 - place, place)\n    found, numbers = found.gather(1, place), numbers.gather(1, place)\n" + BACK),
    ("ties", "equal scores are taken once", RANKED, "    same = (scores[:, :, None] == scores[:, None]) & allowed[:, None]\n    allowed = allowed & ~same.tril(-1).any(dim=2)\n" + RANKED),
    ("ties", "scores that differ by little are equal", SORT, "    numbers = ranked.mul(1000).round().argsort(dim=1, descending=True, stable=True)\n    found = ranked.gather(1, numbers)\n"),
    ("empty input", "no right passage, no limit", SOME, ""),
    ("empty input", "an error where no passage is right", SOME, "    if not relevant.any(dim=1).all():\n        raise ValueError('a query has no right passage')\n"),
    ("padding", "passages that are ruled out are negatives", RANKED, RANKED.replace("scores.", "scores.nan_to_num(neginf=-1e9).")),
    ("padding", "0 for the scores of the rest", BACK, BACK.replace("-1), found", "-1), found.masked_fill(found == -torch.inf, 0)")),
    ("padding", "passage 0 for the rest", NONE, "masked_fill(found == -torch.inf, 0)"),
    ("sizes", "no more columns than passages", BACK, "    found, numbers = found[:, : scores.shape[1]], numbers[:, : scores.shape[1]]\n" + BACK),
    ("sizes", "dimensions of size 1 are dropped", BACK, BACK.replace("-1), found", "-1).squeeze(), found.squeeze()")),
    ("small numbers", "scores end at -1", RANKED, RANKED + "    ranked = ranked.clamp(min=-1).masked_fill(~allowed, -torch.inf)\n"),
    ("small numbers", "compared in float32", SORT, "    numbers = ranked.float().argsort(dim=1, descending=True, stable=True)\n    found = ranked.gather(1, numbers)\n"),
    ("number types", "scores always in float32", FOUND, FOUND + "    found = found.float()\n"),
    ("number types", "numbers as floats", NONE, "to(found.dtype)." + NONE),
    ("a wrong gradient", "detached", RANKED, RANKED.replace("scores.", "scores.detach().") + "    ranked = ranked + 0 * scores.masked_fill(scores.isinf(), 0).sum()\n"),
    ("a wrong gradient", "equal scores share it", FOUND, FOUND + "    same = (scores[:, None] == found[:, :, None]) & allowed[:, None]\n    mean = ranked.nan_to_num(neginf=0)[:, None].mul(same).sum(2) / same.sum(2).clamp(min=1)\n    found = found.detach() + (mean - mean.detach())\n"),
    ("errors that are not raised", "a k of 0 is legal", "k < 1 or", "k < 0 or"),
    ("errors that are not raised", "a margin below 0 is legal", " or margin < 0", ""),
    ("errors that are not raised", "another kind of error", "raise ValueError(", "raise IndexError("),
    ("changed arguments", "right ones become -inf in the caller's scores", RANKED, "    with torch.no_grad():\n        kept = scores.clone()\n        scores.masked_fill_(relevant, -torch.inf)\n    scores = kept if not scores.requires_grad else scores\n" + RANKED),
    ("memory of earlier calls", "the margin of the first call", MAKE, "seen = []\n" + MAKE + "    seen.append(margin)\n    margin = seen[0]\n"),
]
# fmt: on
