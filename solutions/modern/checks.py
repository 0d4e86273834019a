"""Implementations of `join` that a student's `check_join` has to tell apart."""

FUNCTION = "join"
VISIBLE = (
    "it looks at the last row alone",
    "positions go on from sentence to sentence",
    "a sentence of no tokens has no number",
)

RIGHT = {
    "the reference": """
import torch
def join(lengths, width):
    rows = []
    for number, length in enumerate(lengths):
        if length > width:
            raise ValueError(f"sentence {number} has {length} tokens; a row has {width}")
        if length == 0:
            continue
        for row in rows:
            if len(row) + length <= width:
                break
        else:
            row = []
            rows.append(row)
        row.extend((number, place) for place in range(length))
    table = [row + [(-1, 0)] * (width - len(row)) for row in rows]
    both = torch.tensor(table, dtype=torch.int64).reshape(len(rows), width, 2)
    return both[..., 0], both[..., 1]
""",
    "room is counted": """
import torch
def join(lengths, width):
    if any(length > width for length in lengths):
        raise ValueError("a sentence is longer than a row")
    room, placed = [], []
    for number, length in enumerate(lengths):
        if length:
            row = next((r for r, left in enumerate(room) if left >= length), len(room))
            if row == len(room):
                room.append(width)
            placed.append((number, row, width - room[row], length))
            room[row] -= length
    sentences = torch.full((len(room), width), -1)
    positions = torch.zeros(len(room), width, dtype=torch.long)
    for number, row, start, length in placed:
        sentences[row, start : start + length] = number
        positions[row, start : start + length] = torch.arange(length)
    return sentences, positions
""",
    "row by row": """
import torch
def join(lengths, width):
    left = [(n, length) for n, length in enumerate(lengths) if length > 0]
    if max([length for _, length in left], default=0) > width:
        raise ValueError("too long")
    tables = [], []
    while left:
        later, used, numbers, places = [], 0, [], []
        for n, length in left:
            if used + length > width:
                later.append((n, length))
                continue
            used += length
            numbers += [n] * length
            places += list(range(length))
        tables[0].append(numbers + [-1] * (width - used))
        tables[1].append(places + [0] * (width - used))
        left = later
    return tuple(torch.tensor(t, dtype=torch.long).view(-1, width) for t in tables)
""",
    "by masks": """
import torch
def join(lengths, width):
    ends, rows, starts = [], [], []
    for length in lengths:
        if length > width:
            raise ValueError(f"{length} > {width}")
        r = 0
        while length and r < len(ends) and ends[r] + length > width:
            r += 1
        if length and r == len(ends):
            ends.append(0)
        rows.append(r)
        starts.append(ends[r] if length else 0)
        if length:
            ends[r] += length
    sentences = -torch.ones(len(ends), width, dtype=torch.int64)
    positions = 0 * sentences
    column = torch.arange(width)
    for n, (length, r, start) in enumerate(zip(lengths, rows, starts)):
        if length:
            inside = (column >= start) & (column < start + length)
            sentences[r] = torch.where(inside, n, sentences[r])
            positions[r] = torch.where(inside, column - start, positions[r])
    return sentences, positions
""",
    "token by token": """
import torch
def join(lengths, width):
    too_long = [length for length in lengths if length > width]
    if too_long:
        raise ValueError(str(too_long))
    cells, used = {}, {}
    for n, length in enumerate(lengths):
        r = 0
        while used.get(r, 0) + length > width:
            r += 1
        for k in range(length):
            cells[r, used.get(r, 0)] = n, k
            used[r] = used.get(r, 0) + 1
    R = len(used)
    values = [[cells.get((r, c), (-1, 0)) for c in range(width)] for r in range(R)]
    table = torch.tensor(values, dtype=torch.int64).reshape(R, width, 2)
    return tuple(table.unbind(-1))
""",
    "recursively": """
import torch
def join(lengths, width):
    def put(rows, item):
        n, length = item
        if not rows:
            return [[item]]
        if sum(size for _, size in rows[0]) + length <= width:
            return [[*rows[0], item], *rows[1:]]
        return [rows[0], *put(rows[1:], item)]
    if not all(length <= width for length in lengths):
        raise ValueError("width is too small")
    rows = []
    for item in enumerate(lengths):
        rows = put(rows, item) if item[1] else rows
    out = torch.zeros(2, len(rows), width, dtype=torch.int64)
    out[0] = -1
    for r, row in enumerate(rows):
        at = 0
        for n, length in row:
            out[0, r, at : at + length] = n
            out[1, r, at : at + length] = torch.arange(length)
            at += length
    return out[0], out[1]
""",
}

FITS = "            if len(row) + length <= width:\n                break\n"
SEARCH = "        for row in rows:\n" + FITS
LOOP = "    for number, length in enumerate(lengths):\n"
PUT = "        row.extend((number, place) for place in range(length))\n"
TABLE = "    table = [row + [(-1, 0)] * (width - len(row)) for row in rows]\n"
BACK = "    return both[..., 0], both[..., 1]\n"
LONG = "        if length > width:\n"
NONE = "        if length == 0:\n            continue\n"
ERROR = "            raise ValueError("
MAKE = "def join(lengths, width):\n"
NEW = "        else:\n            row = []\n            rows.append(row)\n"

# fmt: off
WRONG = [
    ("the order", "it looks at the last row alone", "        for row in rows:\n", "        for row in rows[-1:]:\n"),
    ("counting", "positions go on from sentence to sentence", "(number, place) for place in range(length)", "(number, place) for place in range(len(row), len(row) + length)"),
    ("counting", "each row numbers its sentences anew", PUT, "        number = row[-1][0] + 1 if row else 0\n" + PUT),
    ("the order", "the fullest row that has room", "        for row in rows:\n", "        for row in sorted(rows, key=len, reverse=True):\n"),
    ("the order", "the emptiest row", "        for row in rows:\n", "        for row in sorted(rows, key=len):\n"),
    ("the order", "the last row that has room", "        for row in rows:\n", "        for row in rows[::-1]:\n"),
    ("the order", "a row for each sentence", "        for row in rows:\n", "        for row in []:\n"),
    ("the order", "only the last two rows", "        for row in rows:\n", "        for row in rows[-2:]:\n"),
    ("the order", "only the first two rows", "        for row in rows:\n", "        for row in rows[:2]:\n"),
    ("the order", "long sentences first", LOOP, "    for number, length in sorted(enumerate(lengths), key=lambda pair: -pair[1]):\n"),
    ("the order", "short sentences first", LOOP, "    for number, length in sorted(enumerate(lengths), key=lambda pair: pair[1]):\n"),
    ("the order", "rows from the last to the first", TABLE, TABLE + "    table = table[::-1]\n"),
    ("the order", "new sentences in front", PUT, "        row[:0] = [(number, place) for place in range(length)]\n"),
    ("the order", "two sentences in a row at most", "len(row) + length <= width", "len(row) + length <= width and len({n for n, _ in row}) < 2"),
    ("a tight fit", "one token must stay free", "len(row) + length <= width", "len(row) + length < width"),
    ("a tight fit", "a sentence of the width is too long", LONG, "        if length >= width:\n"),
    ("counting", "sentences from 1", "(number, place) for", "(number + 1, place) for"),
    ("counting", "positions from 1", "(number, place) for", "(number, place + 1) for"),
    ("counting", "positions backwards", "for place in range(length)", "for place in reversed(range(length))"),
    ("counting", "numbers in the order of the rows", BACK, "    old, names = both[..., 0].tolist(), {-1: -1}\n    for n in sum(old, []):\n        names.setdefault(n, len(names) - 1)\n    new = torch.tensor([[names[n] for n in row] for row in old], dtype=torch.int64).reshape(len(rows), width)\n    return new, both[..., 1]\n"),
    ("padding", "padding is sentence 0", "[(-1, 0)]", "[(0, 0)]"),
    ("padding", "padding has position -1", "[(-1, 0)]", "[(-1, -1)]"),
    ("padding", "padding in front", "row + [(-1, 0)] * (width - len(row))", "[(-1, 0)] * (width - len(row)) + row"),
    ("padding", "padding between sentences", PUT, "        if row and len(row) + length < width:\n            row.append((-1, 0))\n" + PUT),
    ("sizes", "rows as long as the longest", TABLE, "    width = max(map(len, rows), default=width)\n" + TABLE),
    ("sizes", "a row of padding at the end", TABLE, "    rows.append([])\n" + TABLE),
    ("errors that are not raised", "long sentences are truncated", LONG + ERROR, "        length = min(length, width)\n        if False:\n" + ERROR),
    ("errors that are not raised", "long sentences are left out", ERROR, "            continue\n" + ERROR),
    ("errors that are not raised", "another kind of error", ERROR, "            raise IndexError("),
    ("empty input", "no sentence gives one row", TABLE, "    rows = rows or [[]]\n" + TABLE),
    ("empty input", "no sentence raises an error", MAKE, MAKE + "    max(lengths)\n"),
    ("empty input", "a sentence of no tokens raises an error", NONE, "        if length == 0:\n            raise ValueError('no tokens')\n"),
    ("empty input", "a sentence of no tokens has no number", LOOP, "    for number, length in enumerate(n for n in lengths if n):\n"),
    ("empty input", "a sentence of no tokens begins a row", NONE + SEARCH + NEW, SEARCH.replace("if len", "if length and len") + NEW),
    ("number types", "int32", "dtype=torch.int64", "dtype=torch.int32"),
    ("number types", "numbers up to 127", "(number, place) for", "((number + 128) % 256 - 128, place) for"),
    ("changed arguments", "the list is emptied", TABLE, TABLE + "    lengths.clear()\n"),
    ("memory of earlier calls", "rows stay from call to call", "def join(lengths, width):\n    rows = []\n", "def join(lengths, width, rows=[]):\n"),
]
# fmt: on
