"""Implementations of `windows` that a student's `check_windows` has to tell apart."""

FUNCTION = "windows"
VISIBLE = (
    "a window may cut a word",
    "the overlap is counted in words",
    "a word that is too long is cut short",
)

RIGHT = {
    "the reference": """
def windows(pieces, room, overlap):
    starts = [n for n, piece in enumerate(pieces) if n == 0 or not piece.startswith("##")]
    ends = starts[1:] + [len(pieces)]
    for start, end in zip(starts, ends):
        if end - start > room:
            raise ValueError(f"the word at {start} has {end - start} pieces")
    found, first, after = [], 0, 0
    while after < len(starts):
        while after < len(starts) and ends[after] - starts[first] <= room:
            after += 1
        found.append((starts[first], ends[after - 1]))
        if after < len(starts):
            first = after
            while first and ends[after - 1] - starts[first - 1] <= overlap:
                if ends[after] - starts[first - 1] > room:
                    break
                first -= 1
    return found
""",
    "a word enters, words leave": """
from collections import deque
def windows(pieces, room, overlap):
    words = []
    for n, piece in enumerate(pieces):
        if words and piece[:2] == "##":
            words[-1][1] += 1
        else:
            words.append([n, n + 1])
    if words and max(end - start for start, end in words) > room:
        raise ValueError("a word is too long")
    now, found = deque(), []
    for start, end in words:
        if now and end - now[0][0] > room:
            found.append((now[0][0], now[-1][1]))
            while now and (start - now[0][0] > overlap or end - now[0][0] > room):
                now.popleft()
        now.append((start, end))
    return found + [(now[0][0], now[-1][1])] if now else found
""",
    "bounds that may be taken": """
def windows(pieces, room, overlap):
    bounds = sorted({0, len(pieces)} | {n for n, p in enumerate(pieces) if not p.startswith("##")})
    if any(b - a > room for a, b in zip(bounds, bounds[1:])):
        raise ValueError
    start, found = 0, []
    while pieces:
        end = max(b for b in bounds if b <= start + room)
        found.append((start, end))
        if end == len(pieces):
            break
        after = min(b for b in bounds if b > end)
        start = min(b for b in bounds if b >= end - overlap and b >= after - room)
    return found
""",
    "words as lists": """
def windows(pieces, room, overlap):
    words = []
    for piece in pieces:
        if piece.startswith("##") and words:
            words[-1] = words[-1] + [piece]
        else:
            words.append([piece])
    size = lambda some: sum(len(word) for word in some)
    if any(len(word) > room for word in words):
        raise ValueError("no room for a word")
    found, begin, seen = [], 0, 0
    while seen < len(words):
        stop = len(words)
        while size(words[begin:stop]) > room:
            stop -= 1
        found.append((size(words[:begin]), size(words[:stop])))
        seen, begin = stop, begin + 1
        if seen < len(words):
            while size(words[begin:seen]) > overlap or size(words[begin : seen + 1]) > room:
                begin += 1
    return found
""",
    "by bisection": """
from bisect import bisect_left, bisect_right
def windows(pieces, room, overlap):
    cuts = [n for n in range(1, len(pieces)) if not pieces[n].startswith("##")]
    cuts = [0, *cuts, len(pieces)] if pieces else [0]
    for left, right in zip(cuts, cuts[1:]):
        if right - left > room:
            raise ValueError((left, right))
    answer = []
    start = 0
    while cuts[-1] > (answer[-1][1] if answer else 0):
        stop = bisect_right(cuts, start + room) - 1
        answer.append((start, cuts[stop]))
        if stop + 1 < len(cuts):
            start = cuts[bisect_left(cuts, max(cuts[stop] - overlap, cuts[stop + 1] - room))]
    return answer
""",
    "piece by piece": """
import re
def windows(pieces, room, overlap):
    signs = "".join("c" if piece.startswith("##") else "w" for piece in pieces)
    words = [found.span() for found in re.finditer("^c+|wc*", signs)]
    lengths = [end - start for start, end in words]
    if [length for length in lengths if length > room]:
        raise ValueError("words must fit")
    def steps():
        held = []
        for number, length in enumerate(lengths):
            if sum(map(lengths.__getitem__, held)) + length > room:
                yield words[held[0]][0], words[held[-1]][1]
                limit = min(overlap, room - length)
                while sum(lengths[word] for word in held) > limit:
                    held = held[1:]
            held = held + [number]
        if held:
            yield words[held[0]][0], words[held[-1]][1]
    return list(steps())
""",
}

MAKE = "def windows(pieces, room, overlap):\n"
STARTS = '[n for n, piece in enumerate(pieces) if n == 0 or not piece.startswith("##")]'
CONTINUES = 'not piece.startswith("##")'
LONG = "    for start, end in zip(starts, ends):\n"
RAISE = '            raise ValueError(f"the word at {start} has {end - start} pieces")\n'
CHECK = f"{LONG}        if end - start > room:\n{RAISE}"
FITS = "ends[after] - starts[first] <= room"
SHARED = "            while first and ends[after - 1] - starts[first - 1] <= overlap:\n"
LIMIT = (
    "                if ends[after] - starts[first - 1] > room:\n                    break\n"
)
PUT = "        found.append((starts[first], ends[after - 1]))\n"
AGAIN = "            first = after\n"
GO = "    while after < len(starts):\n"
GROW = f"{GO}        while after < len(starts) and {FITS}:\n"
BEGIN = "    found, first, after = [], 0, 0\n"
ALL = BEGIN + RIGHT["the reference"].partition(BEGIN)[2]
BACK = "    return found\n"

# fmt: off
WRONG = [
    ("sizes", "a window may cut a word", STARTS, "list(range(len(pieces)))"),
    ("counting", "the overlap is counted in words", "ends[after - 1] - starts[first - 1] <= overlap", "after - first < overlap"),
    ("the order", "it goes on behind the end of the text", BACK, "    again = [start for start in starts if len(pieces) - start <= overlap]\n    found += [(start, len(pieces)) for start in again[:1]]\n" + BACK),
    ("counting", "a first piece with ## begins no word", "if n == 0 or not", "if not"),
    ("counting", "a single # goes on with a word, too", CONTINUES, "not piece.startswith(\"#\")"),
    ("counting", "## goes on with a word wherever it stands in a piece", CONTINUES, "\"##\" not in piece"),
    ("counting", "## at the end of a piece counts, too", CONTINUES, "not (piece.startswith(\"##\") or piece.endswith(\"##\"))"),
    ("counting", "## alone begins a word", CONTINUES, "(piece == \"##\" or not piece.startswith(\"##\"))"),
    ("ties", "a piece that occurs again is looked for where it occurred first", STARTS, "sorted({pieces.index(piece) for n, piece in enumerate(pieces) if n == 0 or not piece.startswith(\"##\")})"),
    ("a tight fit", "no window is full to its last place", GROW, GROW.replace(GO, GO + "        seen = after\n").replace(FITS, f"({FITS} - (after > seen))")),
    ("a tight fit", "windows have one piece more", FITS, "ends[after] - starts[first] <= room + 1"),
    ("a tight fit", "the overlap stays below what is allowed", SHARED, SHARED.replace("<= overlap", "< overlap")),
    ("a tight fit", "the overlap has one piece more", SHARED, SHARED.replace("<= overlap", "<= overlap + 1")),
    ("a tight fit", "a word that fills a window is refused", "end - start > room:", "end - start >= room:"),
    ("a tight fit", "a new word has to leave a place free", LIMIT, LIMIT.replace("> room", ">= room")),
    ("sizes", "words are taken over although the next one has no room", ALL, ALL.replace(LIMIT, "").replace(GO, GO + "        seen = after\n").replace(FITS, f"(after == seen or {FITS})")),
    ("sizes", "what is taken over needs no room", GROW, GROW.replace(GO, GO + "        seen = after\n").replace("starts[first]", "starts[seen]")),
    ("the order", "no words are taken over", SHARED, SHARED.replace("while first", "while 0 and first")),
    ("the order", "one word is taken over, never more", SHARED, SHARED.replace("while first", "while first == after and first")),
    ("the order", "words are taken over until they reach the overlap", SHARED, SHARED.replace("ends[after - 1] - starts[first - 1] <= overlap", "ends[after - 1] - starts[first] < overlap")),
    ("the order", "nothing is taken over where not all has room", LIMIT, LIMIT.replace("break\n", "first = after\n                    break\n")),
    ("the order", "a full step, even behind a window that is not full", AGAIN + SHARED, "            step = starts[first] + room - overlap\n" + AGAIN + "            while first and starts[first - 1] >= step:\n"),
    ("the order", "the last window is filled from the front", BACK, "    if len(found) > 1:\n        found[-1] = (min(s for s in starts if len(pieces) - s <= room), len(pieces))\n" + BACK),
    ("the order", "the first window has the rest, as if cut from the end", ALL, "    n = len(pieces)\n    starts, ends = [n - end for end in ends[::-1]], [n - start for start in starts[::-1]]\n" + ALL.replace(BACK, "    return [(n - end, n - start) for start, end in found[::-1]]\n")),
    ("counting", "the last window is left out where it is short", BACK, "    if len(found) > 1 and 2 * (found[-1][1] - found[-1][0]) < room:\n        found.pop()\n" + BACK),
    ("counting", "an end is the place of the last piece", PUT, PUT.replace("ends[after - 1]", "ends[after - 1] - 1")),
    ("counting", "a start and a length", PUT, PUT.replace("ends[after - 1]", "ends[after - 1] - starts[first]")),
    ("counting", "places are counted in words", PUT, PUT.replace("(starts[first], ends[after - 1])", "(first, after)")),
    ("empty input", "an empty window of an empty text", BACK, "    return found or [(0, 0)]\n"),
    ("empty input", "an error for an empty text", MAKE, MAKE + "    pieces[0]\n"),
    ("errors that are not raised", "a word that is too long is cut short", RAISE, "            ends[starts.index(start)] = start + room\n"),
    ("errors that are not raised", "the last word may be too long", CHECK + BEGIN + GROW, CHECK.replace("zip(starts, ends)", "zip(starts[:-1], ends)") + BEGIN + GROW.replace(GO, GO + "        seen = after\n").replace(FITS, f"(after == seen or {FITS})")),
    ("errors that are not raised", "only the first word may not be too long", CHECK + BEGIN + GROW, CHECK.replace("zip(starts, ends)", "zip(starts[:1], ends)") + BEGIN + GROW.replace(GO, GO + "        seen = after\n").replace(FITS, f"(after == seen or {FITS})")),
    ("errors that are not raised", "another kind of error", RAISE, RAISE.replace("ValueError", "RuntimeError")),
    ("number types", "lists in the place of tuples", BACK, "    return [list(window) for window in found]\n"),
    ("changed arguments", "## is taken off the caller's pieces", BACK, "    pieces[:] = [piece.removeprefix(\"##\") for piece in pieces]\n" + BACK),
    ("memory of earlier calls", "windows of earlier texts come back", BEGIN, "    found = windows.__dict__.setdefault(\"found\", [])\n    first, after = 0, 0\n"),
    ("sizes", "sixty-four windows at most", GO, GO.replace("after < len(starts)", "after < len(starts) and len(found) < 64")),
]
# fmt: on
