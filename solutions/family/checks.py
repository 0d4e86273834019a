"""Implementations of `fill_in` that a student's `check_fill_in` has to tell apart."""

FUNCTION = "fill_in"
VISIBLE = (
    "spans are put in as they were written, one after the other",
    "what is behind the end counts",
    "a mark that was not written is taken out",
)

RIGHT = {
    "the reference": """
def fill_in(read, written, marks, end, longest):
    if longest < 0:
        raise ValueError("longest must be at least 0")
    if any(read.count(mark) > 1 for mark in marks):
        raise ValueError("each mark may be in read once")
    if end in written:
        written = written[: written.index(end)]
    spans, span = {}, []
    for token in written:
        if token in marks:
            span = []
            spans.setdefault(token, span)
        else:
            span.append(token)
    text, new, missing = [], [], []
    for token in read:
        if token in spans:
            span = spans[token][:longest]
            text.extend(span)
            new.extend([True] * len(span))
            continue
        text.append(token)
        new.append(False)
        if token in marks:
            missing.append(token)
    return text, new, missing
""",
    "by places": """
def fill_in(read, written, marks, end, longest):
    known = frozenset(marks)
    places = [token for token in read if token in known]
    if len(places) != len(set(places)) or longest < 0:
        raise ValueError(f"{places} has a mark twice, or {longest} is below 0")
    stop = next((i for i, token in enumerate(written) if token == end), len(written))
    starts = [i for i in range(stop) if written[i] in known] + [stop]
    spans = {}
    for first, behind in reversed(list(zip(starts, starts[1:]))):
        spans[written[first]] = written[first + 1 : min(behind, first + 1 + longest)]
    pairs = []
    for token in read:
        pairs += [(i, True) for i in spans[token]] if token in spans else [(token, False)]
    return (
        [token for token, _ in pairs],
        [was_written for _, was_written in pairs],
        [mark for mark in places if mark not in spans],
    )
""",
    "the span of one mark at a time": """
def fill_in(read, written, marks, end, longest):
    def span_of(mark):
        if mark not in written:
            return None
        span = []
        if end in written and written.index(end) < written.index(mark):
            return None
        for token in written[written.index(mark) + 1 :]:
            if token == end or token in marks:
                break
            span.append(token)
        return span[:longest]

    if longest < 0:
        raise ValueError("a negative number of ids")
    text, new, missing, seen = [], [], [], set()
    for token in read:
        span = None
        if token in marks:
            if token in seen:
                raise ValueError(f"the mark {token} is there twice")
            seen.add(token)
            span = span_of(token)
            if span is None:
                missing.append(token)
        text += [token] if span is None else span
        new += [False] if span is None else [True for _ in span]
    return text, new, missing
""",
    "from the last to the first": """
def fill_in(read, written, marks, end, longest):
    if longest < 0 or any(read.count(token) > 1 for token in read if token in marks):
        raise ValueError("no such text can be filled in")
    spans, tail = {}, []
    for token in reversed(written):
        if token == end:
            spans, tail = {}, []
        elif token in marks:
            spans[token], tail = tail[::-1], []
        else:
            tail.append(token)
    text, new = list(read), [False] * len(read)
    missing = [token for token in read if token in marks and token not in spans]
    for place in reversed(range(len(read))):
        if read[place] in spans:
            span = spans[read[place]][:longest]
            text[place : place + 1] = span
            new[place : place + 1] = [True] * len(span)
    return text, new, missing
""",
    "a generator": """
import itertools
def fill_in(read, written, marks, end, longest):
    def spans():
        mark, ids = None, []
        for token in itertools.takewhile(lambda token: token != end, written):
            if token in marks:
                yield mark, ids
                mark, ids = token, []
            elif len(ids) < longest:
                ids.append(token)
        yield mark, ids

    if longest <= -1:
        raise ValueError("longest is below 0")
    found = {}
    for mark, ids in spans():
        if mark is not None and mark not in found:
            found[mark] = ids
    counts = {mark: sum(token == mark for token in read) for mark in marks}
    if max(counts.values(), default=0) > 1:
        raise ValueError("a mark is in read more than once")
    parts = [(found.get(token, [token]), token in found) for token in read]
    text = [token for part, _ in parts for token in part]
    new = [flag for part, flag in parts for _ in part]
    return text, new, [mark for mark in read if counts.get(mark) and mark not in found]
""",
    "with tensors": """
import torch
def fill_in(read, written, marks, end, longest):
    if longest < 0:
        raise ValueError("longest")
    ids, special = (torch.tensor(row, dtype=torch.int64) for row in (written, marks))
    source = torch.tensor(read, dtype=torch.int64)
    if ((source[None] == special[:, None]).sum(1) > 1).any():
        raise ValueError("twice")
    ids = ids[(ids == end).cumsum(0) == 0]
    is_mark = torch.isin(ids, special)
    number = is_mark.cumsum(0)  # of the span that each id belongs to; 0 belongs to none
    order = ids[is_mark].tolist()
    text, new, missing = [], [], []
    for token, masked in zip(read, torch.isin(source, special).tolist()):
        if masked and token in order:
            span = ids[(number == order.index(token) + 1) & ~is_mark].tolist()[:longest]
            text, new = text + span, new + [True] * len(span)
        else:
            text, new = text + [token], new + [False]
            missing = missing + [token] * masked
    return text, new, missing
""",
}

MAKE = "def fill_in(read, written, marks, end, longest):\n"
LONGEST = "    if longest < 0:\n"
TWICE = "    if any(read.count(mark) > 1 for mark in marks):\n"
END = "    if end in written:\n        written = written[: written.index(end)]\n"
NONE = "    spans, span = {}, []\n"
LOOP = "    for token in written:\n"
FIRST = "            spans.setdefault(token, span)\n"
OPEN = "            span = []\n" + FIRST
ELSE = "        else:\n            span.append(token)\n"
TEXT = "    text, new, missing = [], [], []\n"
READ = "    for token in read:\n"
CUT = "            span = spans[token][:longest]\n"
STAYS = "        text.append(token)\n        new.append(False)\n"
MISSING = "            missing.append(token)\n"
BACK = "    return text, new, missing\n"

# fmt: off
WRONG = [
    ("the order", "spans are put in as they were written, one after the other", TEXT, "    there = [token for token in read if token in spans]\n    spans = dict(zip(there, [spans[token] for token in spans if token in there]))\n" + TEXT),
    ("padding", "what is behind the end counts", END, "    written = [token for token in written if token != end]\n"),
    ("empty input", "a mark that was not written is taken out", STAYS, "        if token not in marks:\n            text.append(token)\n            new.append(False)\n"),
    ("the order", "all that comes out of order is dropped", FIRST, "            if token in read and (not spans or read.index(token) > max(map(read.index, spans))):\n                spans.setdefault(token, span)\n"),
    ("the order", "the first span written is that of the first of the marks", TEXT, "    spans = dict(zip(marks, spans.values()))\n" + TEXT),
    ("the order", "missing marks in the order of marks", BACK, "    missing.sort(key=marks.index)\n" + BACK),
    ("ties", "the last span of a repeated mark counts", FIRST, "            spans[token] = span\n"),
    ("ties", "the spans of a repeated mark are joined", OPEN, "            span = spans.setdefault(token, [])\n"),
    ("ties", "a repeated mark ends no span", OPEN, "            if token in spans:\n                continue\n" + OPEN),
    ("ties", "the first span that is not empty counts", FIRST, "            spans[token] = spans.get(token) or span\n"),
    ("padding", "the end belongs to the span", "written[: written.index(end)]", "written[: written.index(end) + 1]"),
    ("padding", "an end ends a span and no more", END + NONE + LOOP, NONE + LOOP + "        if token == end:\n            span = []\n            continue\n"),
    ("padding", "an end in what was read ends the text", READ, "    for token in read[: read.index(end)] if end in read else read:\n"),
    ("padding", "without an end the last span is dropped", END, "    if end not in written:\n        starts = [i for i, token in enumerate(written) if token in marks]\n        written = written[: starts[-1]] if starts else []\n" + END),
    ("counting", "what stands before the first mark belongs to it", OPEN, "            span = [] if spans else span\n" + FIRST),
    ("counting", "any id above the smallest mark is a mark", NONE, "    marks = [*marks, *(token for token in written + read if marks and token > min(marks) and token not in marks)]\n" + NONE),
    ("the formula", "a mark that was not read ends no span", "        if token in marks:\n" + OPEN, "        if token in marks and token not in read:\n            continue\n        if token in marks:\n" + OPEN),
    ("the formula", "a mark that was not read is an id like any other", "        if token in marks:\n" + OPEN, "        if token in marks and token in read:\n" + OPEN),
    ("errors that are not raised", "a mark twice in what was read", TWICE, "    if False:\n"),
    ("the formula", "all marks without a span are missing", BACK, "    missing += [token for token in marks if token not in spans and token not in read]\n" + BACK),
    ("empty input", "an empty span is no span", TEXT, "    spans = {token: span for token, span in spans.items() if span}\n" + TEXT),
    ("empty input", "an error where nothing was written", MAKE, MAKE + "    written[0]\n"),
    ("empty input", "an error where a mark is missing", MISSING, "            raise ValueError('a mark was not written')\n"),
    ("a tight fit", "longest is not looked at", CUT, "            span = spans[token]\n"),
    ("a tight fit", "one id fewer than longest", CUT, "            span = spans[token] if len(spans[token]) < longest else spans[token][: max(0, longest - 1)]\n"),
    ("a tight fit", "a longest of 0 is no limit", CUT, "            span = spans[token][:longest] if longest else spans[token]\n"),
    ("a tight fit", "longest is for all spans together", CUT, CUT + "            longest -= len(span)\n"),
    ("small numbers", "the id 0 is none", ELSE, "        elif token:\n            span.append(token)\n"),
    ("counting", "an id that was written somewhere is new", BACK, "    new = [token in written and token not in marks for token in text]\n" + BACK),
    ("counting", "places of the missing marks", BACK, "    missing = [read.index(mark) for mark in missing]\n" + BACK),
    ("errors that are not raised", "a longest below 0 is legal", LONGEST, "    longest = max(longest, 0)\n" + LONGEST),
    ("errors that are not raised", "another kind of error", LONGEST + "        raise ValueError(", LONGEST + "        raise IndexError("),
    ("errors that are not raised", "an error where any id is twice", TWICE, "    if any(read.count(token) > 1 for token in read):\n"),
    ("changed arguments", "the caller's text is filled in", BACK, "    read[:] = text\n" + BACK),
    ("changed arguments", "what was written is used up", END, "    if end in written:\n        del written[written.index(end) :]\n"),
    ("memory of earlier calls", "spans stay from call to call", NONE, "    spans, span = fill_in.__dict__.setdefault('spans', {}), []\n"),
]
# fmt: on
