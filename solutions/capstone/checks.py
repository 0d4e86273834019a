"""Implementations of `sign_test` that a student's `check_sign_test` has to tell apart."""

FUNCTION = "sign_test"
VISIBLE = ("padding counts", "each position votes", "one side alone")

RIGHT = {
    "the reference": """
import math
def sign_test(labels, first, second):
    real = labels != -100
    hits = [((ids == labels) & real).sum(1).tolist() for ids in (first, second)]
    won = sum(a > b for a, b in zip(*hits))
    lost = sum(a < b for a, b in zip(*hits))
    count = int(real.sum())
    difference = (sum(hits[0]) - sum(hits[1])) / max(1, count)
    n, k = won + lost, min(won, lost)
    tail = sum(math.comb(n, i) for i in range(k + 1))
    chance = min(1.0, 2 * tail / 2**n)
    return difference, won, lost, chance
""",
    "position by position": """
from fractions import Fraction
def sign_test(labels, first, second):
    votes, right, count = [0, 0], [0, 0], 0
    for row, one, other in zip(labels.tolist(), first.tolist(), second.tolist()):
        mine = [0, 0]
        for label, a, b in zip(row, one, other):
            if label != -100:
                count += 1
                mine[0] += a == label
                mine[1] += b == label
        right = [right[0] + mine[0], right[1] + mine[1]]
        if mine[0] != mine[1]:
            votes[mine[1] > mine[0]] += 1
    n, ways, both = sum(votes), 1, Fraction(0)
    for i in range(n + 1):
        if i <= min(votes) or n - i <= min(votes):
            both += ways
        ways = ways * (n - i) // (i + 1)
    share = [float(Fraction(r, count)) if count else 0.0 for r in right]
    return share[0] - share[1], votes[0], votes[1], float(both / 2**n)
""",
    "logarithms of the shares": """
import torch
def sign_test(labels, first, second):
    real = (labels != -100).cpu()
    labels, first, second = labels.cpu(), first.cpu(), second.cpu()
    sign = ((first == labels).long() - (second == labels).long()) * real
    lead = sign.sum(dim=1)
    won, lost = int((lead > 0).sum()), int((lead < 0).sum())
    n = torch.tensor(float(won + lost), dtype=torch.float64)
    i = torch.arange(min(won, lost) + 1, dtype=torch.float64)
    logs = (n + 1).lgamma() - (i + 1).lgamma() - (n - i + 1).lgamma() - n * torch.tensor(2.0).double().log()
    chance = 2 * logs.logsumexp(0).exp().item()
    if won == lost:
        chance = 1.0
    return sign.sum().item() / (real.sum().item() or 1), won, lost, min(chance, 1.0)
""",
    "as a bool and a sign": """
import math
import torch
def sign_test(labels, first, second):
    there = labels.ne(-100)
    a, b = (there & ids.eq(labels) for ids in (first, second))
    signs = (a.sum(-1) - b.sum(-1)).sign()
    won, lost = signs.eq(1).sum().item(), signs.eq(-1).sum().item()
    difference = (a[there].double().mean() - b[there].double().mean()).item() if there.any() else 0.0
    if won == lost:
        return difference, won, lost, 1.0
    n = won + lost
    inner = sum(math.comb(n, i) for i in range(min(won, lost) + 1, max(won, lost)))
    return difference, won, lost, (2**n - inner) / 2**n
""",
    "the padding taken out": """
from math import comb
def sign_test(labels, first, second):
    margins, gained, count = [], 0, 0
    for label, one, other in zip(labels, first, second):
        kept = label != -100
        margin = int((one[kept] == label[kept]).sum()) - int((other[kept] == label[kept]).sum())
        gained, count = gained + margin, count + int(kept.sum())
        if margin:
            margins.append(margin)
    won = len([m for m in margins if m > 0])
    lost = len(margins) - won
    k, total, row = min(won, lost), 0, 1
    for i in range(k + 1):
        total += row
        row = row * (len(margins) - i) // (i + 1)
    total *= 2
    if k * 2 == len(margins):
        total = 2 ** len(margins)
    return (gained / count if count else 0.0), won, lost, total / 2 ** len(margins)
""",
    "tosses one after the other": """
import torch
def sign_test(labels, first, second):
    labels, first, second = (part.to("cpu", torch.int64) for part in (labels, first, second))
    outside = labels == -100
    right = torch.stack([first == labels, second == labels]).masked_fill(outside, False)
    of_text = right.double().sum(2)
    votes = (of_text[0] > of_text[1]).sum().item(), (of_text[1] > of_text[0]).sum().item()
    n, k = sum(votes), min(votes)
    ways = [1]
    while len(ways) <= k:
        ways.append(ways[-1] * (n + 1 - len(ways)) // len(ways))
    twice = 2 * sum(ways[: k + 1])
    chance = 1.0 if twice >= 1 << n else twice / (1 << n)
    inside = (~outside).double().sum().item()
    shares = (right.double().sum((1, 2)) / max(inside, 1.0)).tolist()
    return shares[0] - shares[1], votes[0], votes[1], chance
""",
}

REAL = "    real = labels != -100\n"
HITS = "    hits = [((ids == labels) & real).sum(1).tolist() for ids in (first, second)]\n"
WON = "    won = sum(a > b for a, b in zip(*hits))\n"
LOST = "    lost = sum(a < b for a, b in zip(*hits))\n"
SHARE = "    difference = (sum(hits[0]) - sum(hits[1])) / max(1, count)\n"
SIDES = "    n, k = won + lost, min(won, lost)\n"
TAIL = "    tail = sum(math.comb(n, i) for i in range(k + 1))\n"
CHANCE = "    chance = min(1.0, 2 * tail / 2**n)\n"
BACK = "    return difference, won, lost, chance\n"

# fmt: off
WRONG = [
    ("padding", "padding counts", REAL, "    real = labels == labels\n"),
    ("the formula", "each position votes", HITS, "    hits = [((ids == labels) & real).flatten().long().tolist() for ids in (first, second)]\n"),
    ("the formula", "one side alone", "2 * tail / 2**n", "tail / 2**n"),
    ("the formula", "a chance above 1", "min(1.0, 2 * tail / 2**n)", "2 * tail / 2**n"),
    ("the formula", "a chance above 1 where as many vote for each", "min(1.0, 2 * tail / 2**n)", "2 * tail / 2**n if n else 1.0"),
    ("the formula", "more uneven splits alone", "range(k + 1)", "range(k)"),
    ("the formula", "this split alone", TAIL, "    tail = math.comb(n, k)\n"),
    ("the formula", "half of this split", CHANCE, "    chance = min(1.0, (2 * tail - math.comb(n, k)) / 2**n) if n else 1.0\n"),
    ("the formula", "a normal distribution, corrected", CHANCE, "    chance = math.erfc(max(0, abs(won - lost) - 1) / math.sqrt(2 * max(1, n)))\n"),
    ("the formula", "chance 1 where the second model is better", SIDES, "    n, k = won + lost, lost\n"),
    ("the formula", "the mean of the texts' accuracies", SHARE, "    sizes = real.sum(1).tolist()\n    parts = [(a - b) / size for a, b, size in zip(*hits, sizes) if size]\n    difference = sum(parts) / max(1, len(parts))\n"),
    ("the formula", "the share of votes", SHARE, "    difference = (won - lost) / max(1, won + lost)\n"),
    ("the order", "the second model minus the first", "(sum(hits[0]) - sum(hits[1]))", "(sum(hits[1]) - sum(hits[0]))"),
    ("ties", "a tie votes for the first model", "a > b", "a >= b"),
    ("ties", "a tie is half a vote for each", SIDES, "    ties = len(labels) - won - lost\n    n, k = won + lost + ties, min(won, lost) + ties // 2\n"),
    ("ties", "ties are tosses, too", SIDES, "    n, k = len(labels), min(won, lost)\n"),
    ("ties", "a lead of one is a tie", SIDES, "    won = sum(a > b + 1 for a, b in zip(*hits))\n    lost = sum(a + 1 < b for a, b in zip(*hits))\n" + SIDES),
    ("counting", "a vote for each position of the lead", WON + LOST, "    won = sum(max(0, a - b) for a, b in zip(*hits))\n    lost = sum(max(0, b - a) for a, b in zip(*hits))\n"),
    ("padding", "divided by all positions", "    count = int(real.sum())\n", "    count = real.numel()\n"),
    ("padding", "label 0 is padding, too", REAL, "    real = labels > 0\n"),
    ("padding", "padding at the end alone", REAL, "    real = (labels != -100).flip(1).cumsum(1).flip(1) > 0\n"),
    ("padding", "one text's padding for all", REAL, "    real = (labels[:1] != -100).expand_as(labels)\n"),
    ("empty input", "an error where nothing counts", "max(1, count)", "count"),
    ("empty input", "chance 0 where nobody votes", CHANCE, "    chance = min(1.0, 2 * tail / 2**n) if n else 0.0\n"),
    ("empty input", "an error without texts", REAL, "    labels[0]\n" + REAL),
    ("sizes", "texts for columns", ".sum(1).tolist()", ".sum(0).tolist()"),
    ("sizes", "a normal distribution from 26 votes on", CHANCE, CHANCE + "    if n > 25:\n        chance = math.erfc(max(0, abs(won - lost) - 1) / math.sqrt(2 * n))\n"),
    ("small numbers", "no chance below 1e-12", CHANCE, CHANCE + "    chance = max(chance, 1e-12)\n"),
    ("small numbers", "powers of two in float32", "2 * tail / 2**n", "2 * tail * float(real.new_tensor(0.5, dtype=__import__('torch').float32) ** n)"),
    ("small numbers", "1 minus the rest", CHANCE, "    rest = sum(math.comb(n, i) / 2**n for i in range(k + 1, n - k))\n    chance = max(0.0, 1 - rest)\n"),
    ("small numbers", "rounded to four digits", BACK, "    return round(difference, 4), won, lost, round(chance, 4)\n"),
    ("number types", "accuracies in float32", SHARE, SHARE + "    difference = real.new_tensor(difference, dtype=__import__('torch').float32).item()\n"),
    ("number types", "a tensor", SHARE, SHARE + "    difference = real.new_tensor(difference, dtype=__import__('torch').float64)\n"),
    ("number types", "votes as floats", BACK, "    return difference, float(won), float(lost), chance\n"),
    ("changed arguments", "ids at padding become -1", HITS, "    first.masked_fill_(~real, -1)\n    second.masked_fill_(~real, -1)\n" + HITS),
    ("changed arguments", "labels at padding become 0", HITS, HITS + "    labels.masked_fill_(~real, 0)\n"),
    ("memory of earlier calls", "the answer to the first input of a shape", BACK, "    return seen.setdefault(labels.shape, (difference, won, lost, chance))\nseen = {}\n"),
]
# fmt: on
