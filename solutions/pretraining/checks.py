"""Implementations of `whole_words` that a student's `check_whole_words` has to tell apart."""

FUNCTION = "whole_words"
VISIBLE = (
    "a word is taken only if all its tokens are chosen",
    "special tokens that are chosen are taken",
    "the limit is overlooked",
)

RIGHT = {
    "the reference": """
import torch
def whole_words(chosen, words, most):
    if most is not None and most < 0:
        raise ValueError("most is negative")
    taken = torch.zeros_like(chosen)
    for b, (wanted, numbers) in enumerate(zip(chosen.tolist(), words.tolist())):
        T = len(numbers)
        starts = [t for t in range(T) if t == 0 or numbers[t] != numbers[t - 1]]
        spans = [(i, j) for i, j in zip(starts, [*starts[1:], T]) if numbers[i] >= 0]
        left = T if most is None else most
        for i, j in spans:
            if any(wanted[i:j]):
                if j - i <= left:
                    taken[b, i:j] = True
                    left -= j - i
    return taken
""",
    "groups of neighbours": """
from itertools import groupby
import torch
def whole_words(chosen, words, most):
    if (most or 0) < 0:
        raise ValueError(f"a limit of {most}")
    rows = []
    for places, row in zip(chosen.tolist(), words.tolist()):
        answer, room = [], float("inf") if most is None else most
        for number, group in groupby(zip(row, places), key=lambda pair: pair[0]):
            picks = [pick for _, pick in group]
            take = number >= 0 and True in picks and len(picks) <= room
            room -= take * len(picks)
            answer += [take] * len(picks)
        rows.append(answer)
    return torch.tensor(rows, dtype=torch.bool, device=chosen.device).reshape(chosen.shape)
""",
    "numbers of spans by a running sum": """
import torch
def whole_words(chosen, words, most):
    if most is not None and most < 0:
        raise ValueError
    B, T = chosen.shape
    if B * T == 0:
        return chosen.clone()
    begins = torch.ones_like(chosen)
    begins[:, 1:] = words[:, 1:] != words[:, :-1]
    span = begins.long().cumsum(1) - 1
    wanted = torch.zeros_like(span).scatter_add_(1, span, (chosen & (words >= 0)).long()) > 0
    sizes = torch.zeros_like(span).scatter_add_(1, span, torch.ones_like(span)) * wanted
    fits, used = torch.zeros_like(wanted), torch.zeros_like(span[:, 0])
    for s in range(T):
        fits[:, s] = wanted[:, s] if most is None else wanted[:, s] & (used + sizes[:, s] <= most)
        used += sizes[:, s] * fits[:, s]
    return fits.gather(1, span)
""",
    "spread to both sides": """
def whole_words(chosen, words, most):
    if most is not None and most < 0:
        raise ValueError("no such limit")
    real = words >= 0
    wide = chosen & real
    for _ in range(chosen.shape[1]):
        before, after = wide[:, :-1].clone(), wide[:, 1:].clone()
        same = words[:, 1:] == words[:, :-1]
        wide[:, 1:] |= before & same
        wide[:, :-1] |= after & same
    if most is None:
        return wide
    for b in range(wide.shape[0]):
        count, t = 0, 0
        while t < wide.shape[1]:
            size = 1
            while t + size < wide.shape[1] and words[b, t + size] == words[b, t]:
                size += 1
            if wide[b, t]:
                if count + size > most:
                    wide[b, t:t + size] = False
                else:
                    count += size
            t += size
    return wide
""",
    "one pass over the tokens": """
import torch
def whole_words(chosen, words, most):
    limit = words.numel() if most is None else most
    if limit < 0:
        raise ValueError("the limit must not be negative")
    result = torch.full(chosen.shape, False, device=chosen.device)
    for row, picks, out in zip(words.cpu(), chosen.cpu(), result):
        total, here, hit, last = 0, [], False, None
        for t, (number, pick) in enumerate([*zip(row.tolist(), picks.tolist()), (None, False)]):
            if number != last:
                if hit and last >= 0 and total + len(here) <= limit:
                    out[here] = True
                    total += len(here)
                here, hit, last = [], False, number
            here.append(t)
            hit = hit or pick
    return result
""",
    "sets of places": """
import torch
def whole_words(chosen, words, most):
    if most is not None and not most >= 0:
        raise ValueError(most)
    taken = {}
    for b, t in chosen.nonzero().tolist():
        row = words[b].tolist()
        if row[t] < 0 or (b, t) in taken:
            continue
        i, j = t, t
        while i > 0 and row[i - 1] == row[t]:
            i -= 1
        while j + 1 < len(row) and row[j + 1] == row[t]:
            j += 1
        before = sum(there for (a, _), there in taken.items() if a == b)
        room = most is None or before + j - i + 1 <= most
        taken.update({(b, place): room for place in range(i, j + 1)})
    answer = chosen & ~chosen
    for (b, t), there in taken.items():
        answer[b, t] = there
    return answer
""",
}

MAKE = "def whole_words(chosen, words, most):\n"
ERROR = '    if most is not None and most < 0:\n        raise ValueError("most is negative")\n'
STARTS = "numbers[t] != numbers[t - 1]"
LIMIT = "        left = T if most is None else most\n"
LOOP = "        for i, j in spans:\n"
ANY = "any(wanted[i:j])"
ROOM = "                if j - i <= left:\n"
TAKE = "                    taken[b, i:j] = True\n                    left -= j - i\n"
BACK = "    return taken\n"


def around(body: str) -> str:
    """A function around the right one, which is then called `right`."""
    return f"{MAKE}{body}def right(chosen, words, most):\n"


# fmt: off
WRONG = [
    ("the formula", "a word is taken only if all its tokens are chosen", ANY, "all(wanted[i:j])"),
    ("padding", "special tokens that are chosen are taken", " if numbers[i] >= 0]", "]"),
    ("counting", "the limit is overlooked", LIMIT, "        left = T\n"),
    ("the formula", "only the first token of a word counts", ANY, "wanted[i]"),
    ("the formula", "only the last token of a word counts", ANY, "wanted[j - 1]"),
    ("the formula", "what is not chosen of a word stays behind", TAKE, TAKE.replace("= True", "= chosen[b, i:j]")),
    ("the formula", "extended to the right alone", TAKE, TAKE.replace("i:j]", "i + wanted[i:j].index(True):j]")),
    ("the formula", "extended to the left alone", TAKE, TAKE.replace("i:j]", "i:j - wanted[i:j][::-1].index(True)]")),
    ("the formula", "a number that comes again is the same word", ANY, "any(w for w, n in zip(wanted, numbers) if n == numbers[i])"),
    ("the formula", "a word begins only where the number rises", STARTS, "numbers[t] > numbers[t - 1] or min(numbers[t], numbers[t - 1]) < 0 <= max(numbers[t], numbers[t - 1])"),
    ("padding", "special is -1 alone", "numbers[i] >= 0]", "numbers[i] != -1]"),
    ("padding", "word 0 is taken for special", "numbers[i] >= 0]", "numbers[i] > 0]"),
    ("padding", "a word goes on behind a special token", MAKE, around("""    right(chosen, words, most)
    kept = torch.zeros_like(chosen)
    for b in range(len(words)):
        there = (words[b] >= 0).nonzero()[:, 0]
        kept[b, there] = right(chosen[b:b + 1, there], words[b:b + 1, there], most)[0]
    return kept
""")),
    ("padding", "chosen special tokens use up room", LIMIT, "        left = T if most is None else most - sum(w and n < 0 for w, n in zip(wanted, numbers))\n"),
    ("counting", "the limit counts words", ROOM + TAKE, "                if left > 0:\n" + TAKE.replace("left -= j - i", "left -= 1")),
    ("counting", "chosen tokens alone use up room", TAKE, TAKE.replace("left -= j - i", "left -= sum(wanted[i:j])")),
    ("counting", "only chosen tokens need room", ROOM, "                if sum(wanted[i:j]) <= left:\n"),
    ("counting", "each word has the whole limit", TAKE, TAKE.replace("left -= j - i", "pass")),
    ("counting", "words that have no room use it up", ROOM, "                if j - i > left:\n                    left -= j - i\n                else:\n"),
    ("counting", "one limit for the whole batch", MAKE, around("""    right(chosen, words, most)
    flat = torch.cat([words, -torch.ones_like(words[:, :1])], 1) if words.numel() else words
    picks = torch.cat([chosen, ~chosen[:, :1]], 1) if words.numel() else chosen
    kept = right(picks.reshape(1, -1), flat.reshape(1, -1), most).reshape(picks.shape)
    return kept[:, :chosen.shape[1]]
""")),
    ("counting", "without a limit 20 tokens", LIMIT, "        left = 20 if most is None else most\n"),
    ("a tight fit", "a word that would fill the last place is left out", ROOM, "                if j - i < left:\n"),
    ("a tight fit", "the last word may go beyond the limit", ROOM, "                if left > 0:\n"),
    ("a tight fit", "what has room of a word is taken", ROOM, "                j = min(j, i + left)\n                if i < j:\n"),
    ("a tight fit", "a limit of 0 is none", LIMIT, "        left = most or T\n"),
    ("the order", "it ends at the first word that has no room", ROOM, "                if j - i > left:\n                    break\n                else:\n"),
    ("the order", "from right to left", LOOP, "        for i, j in spans[::-1]:\n"),
    ("the order", "short words first", LOOP, "        for i, j in sorted(spans, key=lambda span: span[1] - span[0]):\n"),
    ("sizes", "a word goes on in the next row", MAKE, around("""    right(chosen, words, most)
    wide = right(chosen.reshape(1, -1), words.reshape(1, -1), None).reshape(chosen.shape)
    return right(wide, words, most)
""")),
    ("sizes", "a batch of one row loses a dimension", BACK, "    return taken[0] if len(taken) == 1 else taken\n"),
    ("empty input", "an error where there is no token", ERROR, ERROR + "    words.max()\n"),
    ("number types", "numbers for truth values", BACK, "    return taken.long()\n"),
    ("errors that are not raised", "a negative limit takes nothing", ERROR, ""),
    ("errors that are not raised", "a negative limit is noticed at a wanted word alone", ERROR, "    if most is not None and most < 0 and (chosen & (words >= 0)).any():\n        raise ValueError('most is negative')\n"),
    ("errors that are not raised", "a negative limit is an AssertionError", ERROR, "    assert most is None or most >= 0\n"),
    ("changed arguments", "the choice is extended in place", BACK, "    return chosen.copy_(taken)\n"),
    ("changed arguments", "special tokens get another number", BACK, "    words[words < 0] = -100\n    return taken\n"),
    ("memory of earlier calls", "the limit of the first call", MAKE, around("""    right(chosen, words, most)
    seen.append(most)
    return right(chosen, words, seen[0])
seen = []
""")),
]
# fmt: on
