"""Implementations of `complete` that a student's `check_complete` has to tell apart."""

FUNCTION = "complete"
VISIBLE = (
    "an I- may begin a name",
    "a name without an end is complete",
    "the end is the last word itself",
)

RIGHT = {
    "the reference": """
def complete(tags):
    found, lost, begun, last = [], [], [], None
    words = [tag for tag in tags if tag is not None]
    for place, tag in enumerate(words):
        sign, _, kind = tag.partition("-")
        if tag != "O" and (sign not in ("B", "I", "E", "S") or not kind):
            raise ValueError(f"{tag!r} is no tag")
        fits = bool(begun) and (sign == "I" or (sign == "E" and kind == last))
        if not fits:
            lost += begun
            begun = []
        if sign == "B" or (sign == "I" and fits):
            begun.append(place)
            last = last if fits else kind
        elif sign == "S" or (sign == "E" and fits):
            found.append((kind, [*begun, place][0], place + 1))
            begun = []
        elif sign != "O":
            lost.append(place)
    lost += begun
    return found, lost
""",
    "by a regular expression": """
import re
def complete(tags):
    words = [tag for tag in tags if tag is not None]
    numbers, signs = {}, ""
    for word in words:
        match = re.fullmatch("O|([BIES])-(.+)", word, re.DOTALL)
        if match is None:
            raise ValueError("a tag that is none: " + word)
        number = numbers.setdefault(match[2], len(numbers))
        signs += f"{match[1] or 'O'}{number:04d}"
    found, lost = [], set(range(len(words)))
    for match in re.finditer(r"S.{4}|B(.{4})(?:I.{4})*E\\1", signs):
        i, j = match.start() // 5, match.end() // 5
        found.append((words[i][2:], i, j))
        lost -= set(range(i, j))
    return found, sorted(n for n in lost if words[n] != "O")
""",
    "looks ahead from each B-": """
def complete(tags):
    pairs = []
    for tag in tags:
        if tag == "O":
            pairs.append(("O", ""))
        elif tag is not None:
            parts = tag.split("-", 1)
            if len(parts) < 2 or parts[0] not in {*"BIES"} or parts[1] == "":
                raise ValueError
            pairs.append(tuple(parts))
    pairs.append(("O", ""))
    names = {}
    for i, (sign, kind) in enumerate(pairs):
        j = i + 1
        if sign == "B":
            while pairs[j][0] == "I":
                j += 1
            if pairs[j] == ("E", kind):
                names[i] = (kind, i, j + 1)
        elif sign == "S":
            names[i] = (kind, i, j)
    inside = [n for _, i, j in names.values() for n in range(i, j)]
    lost = [n for n, (sign, _) in enumerate(pairs) if sign != "O" and n not in inside]
    return list(names.values()), lost
""",
    "from the end": """
def complete(tags):
    words = list(filter(lambda tag: tag is not None, tags))
    tags = [w for w in words if w != "O"]
    if any(len(w) < 3 or w[0] not in "BIES" or w[1] != "-" for w in tags):
        raise ValueError("unknown tag")
    found, lost, end = [], [], None
    for i in range(len(words) - 1, -1, -1):
        sign, kind = words[i][0], words[i][2:]
        if end is not None and sign != "I" and words[i] != "B" + words[end][1:]:
            lost[:0] = range(i + 1, end + 1)
            end = None
        if sign == "E":
            end = i
        elif sign == "S":
            found.insert(0, (kind, i, i + 1))
        elif sign == "B" and end is not None:
            found.insert(0, (kind, i, end + 1))
            end = None
        elif sign != "O" and end is None:
            lost.insert(0, i)
    return found, ([] if end is None else [*range(end + 1)]) + lost
""",
    "chains by neighbours": """
def complete(tags):
    words = [tag for tag in tags if tag is not None]
    for word in words:
        if word != "O" and not (word[:2] in ("B-", "I-", "E-", "S-") and word[2:]):
            raise ValueError(f"what is {word}?")
    joined = [a[0] in "BI" and b[0] in "IE" for a, b in zip(words, words[1:])]
    chains = []
    for n in range(len(words)):
        if n and joined[n - 1]:
            chains[-1].append(n)
        else:
            chains.append([n])
    found, lost = [], []
    for chain in chains:
        first, end = words[chain[0]], words[chain[-1]]
        if first[0] + end[0] in ("BE", "SS") and first[1:] == end[1:]:
            found.append((first[2:], chain[0], chain[-1] + 1))
        elif first != "O":
            lost.extend(chain)
    return found, lost
""",
    "a machine of two states": """
def complete(tags):
    word, begin, kind, found, lost = 0, -1, "", [], []
    for tag in [*tags, "O"]:
        if tag is None:
            continue
        sign = tag if tag == "O" else tag[:2]
        if sign not in ("O", "B-", "I-", "E-", "S-") or (sign != "O" and tag == sign):
            raise ValueError("neither O nor a sign and a type")
        if begin >= 0 and tag == "E-" + kind:
            found += [(kind, begin, word + 1)]
            begin = -1
        elif begin < 0 or sign != "I-":
            if begin >= 0:
                lost += list(range(begin, word))
                begin = -1
            if sign == "B-":
                begin, kind = word, tag[2:]
            elif sign == "S-":
                found += [(tag[2:], word, word + 1)]
            elif sign != "O":
                lost += [word]
        word += 1
    return found, lost
""",
}

MAKE = "def complete(tags):\n    found, lost, begun, last = [], [], [], None\n"
WORDS = "    words = [tag for tag in tags if tag is not None]\n"
PARTS = '        sign, _, kind = tag.partition("-")\n'
ERROR = '            raise ValueError(f"{tag!r} is no tag")\n'
FITS = 'bool(begun) and (sign == "I" or (sign == "E" and kind == last))'
BROKEN = "        if not fits:\n            lost += begun\n            begun = []\n"
BEGIN = 'sign == "B" or (sign == "I" and fits)'
END = 'sign == "S" or (sign == "E" and fits)'
LOOSE = "            lost.append(place)\n"
BACK = "    return found, lost\n"
REST = "    lost += begun\n" + BACK
PLACES = "    at = [n for n, tag in enumerate(tags) if tag is not None]\n"


def known(line: str) -> str:
    """A line more, once a tag is known to be one."""
    return f"{ERROR}        {line}\n"


def ended(condition: str) -> str:
    """Names without an end, from place n up to j, are found, too."""
    return f"""    for n in [n for n in lost if words[n][0] == "B"]:
        j = n + 1
        while j < len(words) and words[j][0] == "I":
            j += 1
        if {condition}:
            found.append((words[n][2:], n, j))
    found.sort(key=lambda one: one[1])
    return found, [n for n in lost if not any(i <= n < j for k, i, j in found)]
"""


def given(entry: str, lost: str = "lost") -> str:
    """Something else for each name (k, i, j)."""
    return f"    return [{entry} for k, i, j in found], {lost}\n"


# fmt: off
WRONG = [
    ("the formula", "an I- may begin a name", ERROR, known('sign = "B" if sign == "I" and not begun else sign')),
    ("the formula", "a name without an end is complete", BACK, ended("True")),
    ("counting", "the end is the last word itself", BACK, given("(k, i, j - 1)")),
    ("the formula", "an E- of any type ends a name", FITS, 'bool(begun) and sign in ("I", "E")'),
    ("the formula", "an I- of another type breaks a name off", FITS, 'bool(begun) and sign in ("I", "E") and kind == last'),
    ("the formula", "an end must have the type of the word before", "last if fits else kind", "kind"),
    ("the formula", "a B- of the same type goes on, too", ERROR, known('sign = "I" if sign == "B" and begun and kind == last else sign')),
    ("the formula", "an S- of the same type may be an end", ERROR, known('sign = "E" if sign == "S" and begun and kind == last else sign')),
    ("the formula", "an S- breaks nothing off", ERROR, known('if sign == "S":\n            found.append((kind, place, place + 1))\n            continue')),
    ("the formula", "an O breaks nothing off", BROKEN, BROKEN.replace("not fits", 'not fits and sign != "O"')),
    ("the formula", "an E- of another type breaks nothing off", BROKEN, BROKEN.replace("not fits", 'sign in "BSO"')),
    ("the formula", "an E- by itself is a name", END, 'sign in ("S", "E")'),
    ("the formula", "a B- by itself is a name", BACK, ended("j == n + 1")),
    ("the formula", "a B- that breaks a name off begins none", BROKEN, BROKEN.replace("begun = []", 'sign, begun = "I" if sign == "B" and begun else sign, []')),
    ("the formula", "the type is what stands behind the last dash", ERROR, known('kind = kind.split("-")[-1] or kind')),
    ("the formula", "small letters and capitals are the same", FITS, FITS.replace("kind == last", "kind.lower() == last.lower()")),
    ("counting", "tokens are counted", BACK, PLACES + given("(k, at[i], at[j - 1] + 1)", "[at[n] for n in lost]")),
    ("counting", "lost words that begin nothing are not told", LOOSE, "            pass\n"),
    ("counting", "of a name that was broken off the first word alone is told", BROKEN, BROKEN.replace("+= begun", "+= begun[:1]")),
    ("counting", "what the end of the text breaks off is not told", REST, BACK),
    ("counting", "a name that ends with the text is broken off", BACK, "    if found and found[-1][2] == len(words):\n        lost += range(*found.pop()[1:])\n" + BACK),
    ("padding", "None breaks a name off", FITS, FITS + " and tags[[n for n, tag in enumerate(tags) if tag is not None][place] - 1] is not None"),
    ("padding", "None is taken for O", WORDS, '    words = ["O" if tag is None else tag for tag in tags]\n'),
    ("padding", "the text ends at the first None behind the first token", WORDS, WORDS.replace("in tags", "in (tags[:tags.index(None, 1)] if None in tags[1:] else tags)")),
    ("the order", "the word that breaks a name off is told before it", ERROR, known('if begun and sign == "E" and kind != last:\n            lost += [place, *begun]\n            begun = []\n            continue')),
    ("ties", "one name of each type", BACK, "    return list({one[0]: one for one in found[::-1]}.values())[::-1], lost\n"),
    ("sizes", "a name of two words is none", END, 'sign == "S" or (sign == "E" and fits and len(begun) > 1)'),
    ("sizes", "at most one I- in a name", BEGIN, 'sign == "B" or (sign == "I" and fits and len(begun) < 2)'),
    ("sizes", "512 entries are read", WORDS, WORDS.replace("in tags", "in tags[:512]")),
    ("number types", "lists for tuples", BACK, given("[k, i, j]")),
    ("empty input", "an error where there is no word", WORDS, WORDS + '    if not words:\n        raise ValueError("no word")\n'),
    ("errors that are not raised", "what is no tag ends an open name", ERROR, "            if not begun:\n    " + ERROR + '            tag = sign = "O"\n'),
    ("errors that are not raised", "a KeyError", ERROR, ERROR.replace("ValueError", "KeyError")),
    ("errors that are not raised", "a type may be empty", " or not kind)", ")"),
    ("errors that are not raised", "an O may have a type", 'tag != "O" and', 'tag[:1] != "O" and'),
    ("errors that are not raised", "signs may be small letters", PARTS, "        tag = tag[:1].upper() + tag[1:]\n" + PARTS),
    ("errors that are not raised", "L- for E- and U- for S- are known, too", PARTS, PARTS + '        sign = {"L": "E", "U": "S"}.get(sign, sign)\n'),
    ("changed arguments", "None is taken out of the list", WORDS, "    tags[:] = [tag for tag in tags if tag is not None]\n    words = tags\n"),
    ("memory of earlier calls", "the names of earlier calls", MAKE, "def complete(tags, found=[]):\n    lost, begun, last = [], [], None\n"),
]
# fmt: on
