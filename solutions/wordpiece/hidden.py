"""Legal inputs of each function of assignment 3, and references to compare with.

The references go another way than the notebook does: training takes borders out of
words, encoding goes through the vocabulary, normalising lists characters and their
places. `course_tools/grading/assignments/comparing.py` runs them.
"""

import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from zlib import crc32

from course_tools.grading.assignments.comparing import Case, Comparison, Draw, Misuse

MARKS = ("@", "__", "▁", "~~~", "#")
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
LETTERS = {
    "two letters": "ab",
    "letters with accents": "éàe",
    "accents that are characters of their own": "ea\u0301",
    "small letters and capitals": "aAbB",
    "Greek letters": "αβγδ",
    "Chinese characters": "東京都",
    "signs": "a!.#",
    "characters beyond the first 65,536": "a\uffee\U0001f917",
}


def alphabets(times: int) -> list[tuple[str, str]]:
    return [(name, letters) for name, letters in LETTERS.items() for _ in range(times)]


def a_word(draw: Draw, letters: str, most: int = 9) -> str:
    """A word of some of these letters, which does not begin with #."""
    begin = draw.choice([letter for letter in letters if letter != "#"])
    return begin + "".join(draw.choices(letters, k=draw.randrange(most)))


def marked(word: str, start: int, end: int, mark: str = "##") -> str:
    return mark * (start > 0) + word[start:end]


def cut(draw: Draw, word: str, share: float = 0.6) -> list[str]:
    """Cut a word into pieces, at a share of the places."""
    inside = [place for place in range(1, len(word)) if draw.random() < share]
    return [marked(word, *span) for span in pairwise([0, *inside, len(word)])]


def corpus(draw: Draw, letters: str, words: int = 6, most: int = 4) -> dict[str, int]:
    """Words, and how often they occur."""
    return {a_word(draw, letters): draw.randint(1, most) for _ in range(words)}


def as_data(value):
    """Tables in one order, counts without zeros, and Fractions as two numbers."""
    if isinstance(value, Fraction):
        return "Fraction", value.numerator, value.denominator
    if isinstance(value, dict):
        kept = {k: x for k, x in value.items() if x != 0 or isinstance(x, Fraction)}
        rows = {key: as_data(number) for key, number in kept.items()}
        return {key: rows[key] for key in sorted(rows, key=repr)}
    return tuple(map(as_data, value)) if isinstance(value, tuple) else value


def tables(function, *args, **options):
    return as_data(function(*args, **options))


def called(function, *args, **options):
    """One call a message: what it changes in tables and lists is seen across the bridge."""
    return function(*args, **options)


# ---- Part 1: counts and scores

OVERLAP = (
    "Each place where two neighbours stand counts, also where a pair comes back in its word,"
    " and although two places overlap as in aaa."
)


def first_pieces(word, mark="##"):
    return [marked(word, place, place + 1, mark) for place in range(len(word))]


def first_cases(draw: Draw) -> Iterator[Case]:
    for name, letters in alphabets(12):
        yield Case(f"a word of {name}", (a_word(draw, letters),))
        yield Case(
            f"another mark and a word of {name}", (a_word(draw, letters), draw.choice(MARKS))
        )
    for kind, word in (("one character", "b"), ("#", "##a#"), ("150 characters", "abc" * 50)):
        yield Case(f"a word of {kind}", (word,))


def count_pieces(splits, counts, least=1):
    def table(parts):
        frequent = [word for word in splits if counts[word] >= least]
        stand = {word: [*parts(splits[word])] for word in frequent}
        things = {thing for word in stand for thing in stand[word]}
        times = {thing: [counts[w] * stand[w].count(thing) for w in stand] for thing in things}
        return {thing: sum(times[thing]) for thing in things}

    return table(list), table(pairwise)


def count_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, words: list[str], share: float = 0.6) -> Case:
        order = draw.sample(words, len(words))  # not that of the splits
        counts = {word: draw.randint(1, 9) for word in order}
        return Case(kind, ({w: cut(draw, w, share) for w in words}, counts), hint=OVERLAP)

    for name, letters in alphabets(7):
        yield case(f"words of {name}", [*corpus(draw, letters)])
        rare = case(f"rare words left out, and words of {name}", [*corpus(draw, letters)])
        rare.kwargs = {"least": draw.randint(2, 10)}
        yield rare
    for length in range(2, 12):
        yield case("one letter again and again", ["a" * length], 1.0)
        yield case("a pair that comes back in a word", ["ab" * length], 1.0)
    yield case("one word of one piece", ["ab"], 0.0)
    yield case("words of one piece each", ["a", "ab", "abc"], 0.0)
    yield Case("no words", ({}, {}))


def pair_scores(piece_counts, pair_counts, discount=0):
    times = {pair: Fraction(pair_counts[pair]) - discount for pair in pair_counts}
    return {(a, b): n / piece_counts[a] / piece_counts[b] for (a, b), n in times.items()}


def score_cases(draw: Draw) -> Iterator[Case]:
    for kind, scale in (("small counts", 1), ("pieces that occur up to 10^17 times", 10**16)):
        for _, letters in alphabets(6):
            pieces, pairs = {}, {}
            for split in (cut(draw, word) for word in corpus(draw, letters)):
                pairs |= {pair: draw.randint(1, scale) for pair in pairwise(split)}
                pieces |= {piece: draw.randint(scale, 9 * scale) for piece in split}
            yield Case(kind, (pieces, pairs))
            yield Case(f"a discount and {kind}", (pieces, pairs, draw.randint(1, scale)))
            yield Case(f"a discount below 0 and {kind}", (pieces, pairs, -scale))
    yield Case("a piece that is its own neighbour", ({"##a": 5}, {("##a", "##a"): 3}))
    yield Case("a score of 1", ({"a": 1, "##b": 1}, {("a", "##b"): 1}))
    yield Case("no pairs", ({"a": 3, "b": 2}, {}))


COUNTED = ("the table of pieces", "the table of pairs")
Comparison("first_pieces", first_cases, (first_pieces,), ("the list of pieces",))
Comparison("count_pieces", count_cases, (count_pieces,), COUNTED, use=tables)
Comparison("pair_scores", score_cases, (pair_scores,), ("the table of scores",), use=tables)

# ---- Part 2: the best pair, and merges

RULE = "Compare scores, then frequencies, then the pairs themselves."
CLOSE = "Scores may be close without being equal: compare the fractions, not floats."


def best_pair(scores, pair_counts):
    best = [pair for pair in scores if scores[pair] == max(scores.values())]
    most = max(pair_counts[pair] for pair in best)
    return sorted(pair for pair in best if pair_counts[pair] == most)[0]


def best_cases(draw: Draw) -> Iterator[Case]:
    def case(kind: str, letters: str, score, most: int = 2, hint: str = RULE) -> Case:
        words = [draw.choice(letters) + a_word(draw, letters, 3) for _ in range(9)]
        pairs = [pair for word in words for pair in pairwise(cut(draw, word))]
        pairs += [("a", "##z"), ("ab", "##c"), ("##a", "##b")]
        scores = {pair: score() for pair in draw.sample(pairs, len(pairs))}
        counts = {pair: draw.randint(1, most) for pair in scores}
        return Case(kind, (scores, counts), hint=hint)

    for name, letters in alphabets(6):
        yield case(f"equal scores and frequencies of {name}", letters, lambda: HALF, 1)
        yield case(f"equal scores of {name}", letters, lambda: HALF, 3)
        some = lambda: Fraction(1, draw.randint(1, 3))
        yield case(f"scores of {name} of which some are equal", letters, some)
    for about in (10**5, 10**8, 10**12, 10**20):
        close = lambda least=about: Fraction(1, least + draw.randint(1, 3))
        for _ in range(4):
            yield case("scores that are close", "abc", close, 9, CLOSE)
    for _ in range(6):
        yield case("scores below 0", "ab", lambda: -Fraction(draw.randint(1, 3), 7))
        yield case("scores of 0", "ab", lambda: 0 * HALF)
        yield case("whole numbers for scores", "ab", lambda: draw.randint(1, 3))
        yield case("floats for scores", "ab", lambda: -draw.random())
        for score, words in ((HALF, ""), (-HALF, ", all of them below 0")):
            more = case(f"more pairs than have a score{words}", "ab", lambda x=score: x)
            more.args[1].update({("!", "##!"): 99, ("x", "##y"): 99})
            yield more
    yield Case("a single pair", ({("a", "##b"): HALF}, {("a", "##b"): 1}))


HALF = Fraction(1, 2)


def join(left, right, mark="##"):
    return left + right[len(mark) :]


def join_cases(draw: Draw) -> Iterator[Case]:
    for name, letters in alphabets(6):
        for pair in pairwise(cut(draw, a_word(draw, letters))):
            yield Case(f"pieces of {name}", pair)
            mark = draw.choice(MARKS)
            other = [mark * (p[:2] == "##") + p.removeprefix("##") for p in pair]
            yield Case(f"another mark and pieces of {name}", (*other, mark))
    for right in ("###", "####", "###a", "##a##", "##a##b", "##a#"):
        for left in ("a", "##a", "###", "a#"):
            yield Case("pieces of words that hold a #", (left, right))


def merge_pair(pieces, pair, mark="##"):
    starts = []
    for place, neighbours in enumerate(pairwise(pieces)):
        if neighbours == pair and place - 1 not in starts:
            starts.append(place)
    left = [place for place in range(len(pieces)) if place - 1 not in starts]
    return [join(*pair, mark) if place in starts else pieces[place] for place in left]


def merge_cases(draw: Draw) -> Iterator[Case]:
    for name, letters in alphabets(12):
        split = cut(draw, a_word(draw, letters), share=0.8)
        other = cut(draw, a_word(draw, letters) + letters[0], share=0.9)
        pairs = [*pairwise(split)] * 3 + [*pairwise(other), ("a", "##b")]
        yield Case(f"pieces of {name}", (split, draw.choice(pairs)))
        mark, word = draw.choice(MARKS), a_word(draw, letters) + letters[0]
        marks = first_pieces(word, mark)
        pair = draw.choice([*pairwise(marks), ("a", f"{mark}b")])
        yield Case(f"another mark and pieces of {name}", (marks, pair, mark))
    for length in range(2, 9):
        for kind, letters, pair in (
            ("one letter again and again", "a", ("##a", "##a")),
            ("one letter again and again", "a", ("a", "##a")),
            ("a pair the wrong way round", "ab", ("##b", "a")),
            ("a full stop", "aba.", ("##a", "##.")),
            ("backslashes", "a\\1", ("##\\", "##1")),
        ):
            yield Case(kind, (first_pieces(letters * length), pair))


Comparison("best_pair", best_cases, (best_pair,), ("the pair",), use=called)
Comparison("join", join_cases, (join,), ("the piece",))
Comparison("merge_pair", merge_cases, (merge_pair,), ("the list of pieces",), use=called)

# ---- Part 3: training

ANEW = "Count and score anew after each merge, and break ties by the rule of Part 2."
ONCE = "No entry comes twice."
AGAIN = (
    "train has asked for scores 99 times and would go on for ever. A pair that was merged"
    " must be gone from every word."
)


def scored(formula, own=False):
    """A function for scores, from the frequencies of a pair and of its parts.

    Each pair may add a number of its own: then no scores are equal.
    """
    calls = []

    def score(pieces, pairs):
        calls.append(1)
        if len(calls) > 99:
            raise Misuse(AGAIN)
        scores = {(a, b): formula(n, pieces[a], pieces[b]) for (a, b), n in pairs.items() if n}
        number = {pair: Fraction(crc32(repr(pair).encode()), 2**32) for pair in scores}
        return {pair: scores[pair] + own * number[pair] for pair in scores}

    return score


def wordpiece(both, left, right):
    return Fraction(both, left * right)


def frequency(both, left, right):
    return both


def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=None):
    borders = {word: [*range(len(word) + 1)] for word in counts}
    score, merges = score or scored(wordpiece), []

    def split(word):
        return [marked(word, *span) for span in pairwise(borders[word])]

    first = {piece for word in counts for piece in split(word)}
    vocab = [*specials, *sorted(first - {*specials})]
    if len(vocab) > vocab_size:
        raise ValueError
    while len(vocab) < vocab_size:
        pieces, pairs = count_pieces({word: split(word) for word in counts}, counts)
        scores = score(pieces, pairs)
        ranked = [(-scores[p], -n, p) for p, n in pairs.items() if n >= min_frequency]
        if not ranked:
            break
        merges.append(min(ranked)[2])
        for word, places in borders.items():
            at = 1
            while at < len(places) - 1:
                parts = pairwise(places[at - 1 : at + 2])
                if tuple(marked(word, *span) for span in parts) == merges[-1]:
                    del places[at]
                at += 1
        new = join(*merges[-1])
        vocab += [new] * (new not in vocab)
    return vocab, merges


def train_case(kind: str, counts, more: int, hint: str = ANEW, **options) -> Case:
    """Training with room for so many new pieces."""
    specials, first = options.get("specials", SPECIALS), map(first_pieces, counts)
    size = more + len({*specials}.union(*first))
    options = {"score": scored(wordpiece, own=True)} | options
    return Case(kind, (dict(counts), size), options, hint)


def no_letter_twice(draw: Draw) -> dict[str, int]:
    """Words in which no pair can come back, and how often they occur."""
    words = [draw.sample("abcdef", draw.randint(2, 5)) for _ in range(6)]
    return {"".join(word): draw.randint(2, 9) for word in words}


def example_cases(draw: Draw) -> Iterator[Case]:
    for more in (0, 1, 2, 3, 4, 6, 7, 8, 9):
        kind, score = "the example's words and another number of entries", scored(wordpiece)
        yield train_case(kind, HUGS, more, score=score)
    for more in (1, 2, 3, 4, 5, 6, 7):
        yield train_case("other words", no_letter_twice(draw), more)
    for kind, formula in (
        ("a score that is mostly the frequency", frequency),
        ("scores below 0", lambda both, left, right: -Fraction(left + right, both)),
        ("a score that looks at the left piece", lambda both, left, right: Fraction(1, left)),
    ):
        for more in (1, 2, 3, 5, 7):
            score = scored(formula, own=True)
            yield train_case(kind, no_letter_twice(draw), more, score=score)
    kind, often = "words that occur 10^18 times", {"ab": 10**18, "cd": 10**18 + 1}
    yield train_case(kind, often, 1, CLOSE, score=scored(wordpiece))
    long = {"abcdefghijklmnopqrstuvwxyz0123456789": 2}
    yield train_case("a word of 36 characters", long, 35)


def rules_cases(draw: Draw) -> Iterator[Case]:
    for specials in ((), ("<s>",), ("</s>", "<s>", "[X]"), SPECIALS[::-1]):
        for _ in range(4):
            counts = no_letter_twice(draw)
            for kind, more in (
                ("other special tokens", 4),
                ("entries that are just enough", 0),
                ("too few entries", -1),
            ):
                yield train_case(kind, counts, more, specials=specials)
    yield train_case("room for first pieces, without the special tokens", HUGS, -4)
    for _ in range(6):
        counts = no_letter_twice(draw)
        word = max(counts, key=len)
        for special in (word, word[:2], word[0], f"##{word[-1]}"):
            specials = "[UNK]", special, "[PAD]"
            for more in (9, 0):
                kind = "a special token that is a piece of a word, too"
                yield train_case(kind, counts, more, ONCE, specials=specials)
    yield train_case("words with signs", {"a!b": 3, 'c"d#': 4, "!": 2}, 3)
    for words in ("a", "ab", "bca"):
        yield train_case("words of one character", dict.fromkeys(words, 2), 3)
    for least in (2, 3, 5, 8):
        for more in (3, 99):
            counts = {"q": 1, "zq": 1, **no_letter_twice(draw)}
            yield train_case("another min_frequency", counts, more, min_frequency=least)


def ties_cases(draw: Draw) -> Iterator[Case]:
    for name, letters in LETTERS.items():
        for most, formula in ((1, wordpiece), (2, wordpiece), (1, frequency), (3, frequency)):
            counts, score = corpus(draw, letters, 8, most), scored(formula)
            kind = f"small counts and {name}"
            yield train_case(kind, counts, 12, specials=("[UNK]",), score=score)


def merges_alone(function, *args, **options):
    return function(*args, **options)[1]


TRAINED = ("the vocabulary", "the list of merges")
Comparison("train_example", example_cases, (train,), TRAINED, "train", use=called)
Comparison("train_rules", rules_cases, (train,), TRAINED, "train", use=called)
Comparison("train_ties", ties_cases, (train,), TRAINED[1:], "train", use=merges_alone)

# ---- Part 4: encode a word

LONGEST = "From the left, take the longest piece each time, however long it is."
LENGTH = "Count characters, not bytes; a word of just max_length characters is not too long."


def encode_word(word, vocab, max_length=100, mark="##"):
    pieces, start = [], 0
    while start < len(word) <= max_length:
        begin = mark * (start > 0)
        rest = begin + word[start:]
        fit = [p for p in vocab if rest.startswith(p) and len(p) > len(begin)]
        if not fit:
            return ["[UNK]"]
        pieces.append(max(fit, key=len))
        start += len(pieces[-1]) - len(begin)
    return pieces or ["[UNK]"]


def some_pieces(draw: Draw, letters: str) -> set[str]:
    words = [a_word(draw, letters) for _ in range(9)]
    return {piece for word in words for piece in cut(draw, word, 0.3)}


def longest_cases(draw: Draw) -> Iterator[Case]:
    for name, letters in alphabets(8):
        vocab = some_pieces(draw, letters) | {*letters, *(f"##{c}" for c in letters)}
        yield Case(f"a word of {name}", (a_word(draw, letters, 14), vocab), hint=LONGEST)
        mark, kind = draw.choice(("@", "__", "~~~")), f"another mark and a word of {name}"
        other = {mark * (p[:2] == "##") + p.removeprefix("##") for p in vocab}
        given = a_word(draw, letters, 14), other, 100, mark
        yield Case(kind, given, hint=LONGEST)
    word = "".join(chr(0x100 + place) for place in range(50))  # 100 bytes
    for most in (7, 20, 40, 49):
        for piece in (word[:most], f"##{word[1:most]}", f"##{word[5:most]}"):
            vocab = {*first_pieces(word), piece}
            yield Case("pieces of many characters", (word, vocab), hint=LONGEST)
    for piece in ("##b", "##bb", "b", "bb"):
        for word in ("b", "bb", "bbb"):
            vocab = {"b", "##b", "a", piece, f"c{piece}"}
            yield Case("a word that was given before, with other pieces", (word, vocab))


def unknown_cases(draw: Draw) -> Iterator[Case]:
    for name, letters in alphabets(8):
        vocab = some_pieces(draw, letters) | {"[UNK]", "[CLS]"}
        yield Case(f"pieces that do not always fit {name}", (a_word(draw, letters), vocab))
    for word in ("hugx", "xhug", "x", "hu#g", "#x", "#"):
        kind = "a vocabulary in which # is a word"
        yield Case(kind, (word, {"hu", "hug", "##g", "g", "#"}))
    for word in SPECIALS:
        for vocab in ({"[", "##X", "]"}, {"[", *(f"##{c}" for c in word)}, {*SPECIALS}):
            yield Case("a word that is typed as a special token is", (word, vocab))
    yield Case("a vocabulary without a piece", ("hug", set()))
    for limit in (3, 7, 8):
        known = "hugs" * 2, {"hugs", "##hugs"}
        yield Case("few pieces of many characters", known, {"max_length": limit}, LENGTH)
        known = "hugs" * 2, {"hugs" * 2}
        yield Case("a word that is one piece", known, {"max_length": limit}, LENGTH)
    for kind, limit in length_limits(1, 60, 300):
        for length in (1, 2, 59, 60, 61, 99, 100, 101, 250, 300, 301):
            args = ("é東" * length)[:length], {"é", "##é", "東", "##東"}
            yield Case(f"{kind} and characters of several bytes", args, limit, LENGTH)


def length_limits(*limits: int) -> list[tuple[str, dict[str, int]]]:
    named = [(f"max_length {limit}", {"max_length": limit}) for limit in limits]
    return [("max_length left out", {}), *named]


CUT = ("the list of pieces",)
Comparison("encode_word_longest", longest_cases, (encode_word,), CUT, "encode_word")
Comparison("encode_word_unknown", unknown_cases, (encode_word,), CUT, "encode_word")

# ---- Part 5: encode a text

SPANS = (
    "Use the spans: characters that leave nothing behind take up a place in the text, and an"
    " emoji takes up one."
)
TEXTS = {
    "spaces of several kinds": "ab \t\n\u3000",
    "punctuation and signs": "ab ,.#[]'$-",
    "capitals and letters with accents": "aÉbÇ ",
    "letters of other alphabets": "жΣ ß東京 ",
    "numbers and marks of punctuation": "19% €“”… ",
}
UNICODE = {
    "accents that are characters of their own": "aE\u0301\u0308 ",
    "characters that cannot be seen": "ab\u200b\x00\xad\ufeff ",
    "emoji": "a\U0001f917\U0001f60a! ",
    "typed characters that become several": "한국aİ ",
    "Chinese characters": "東京a\u0301 ",
}


def words_of(text):
    """The characters of each word, each with its place in the text."""
    words = [[]]
    for place, typed in enumerate(text):
        for character in unicodedata.normalize("NFD", typed).lower():
            kind, name = unicodedata.category(character), unicodedata.name(character, "")
            sign = character.isascii() and character.isprintable() and not character.isalnum()
            if character.isspace():
                words.append([])
            elif kind[0] == "P" or sign or name.startswith("CJK UNIFIED"):
                words += [[(character, place)], []]
            elif kind not in ("Mn", "Cc", "Cf", "Co"):
                words[-1].append((character, place))
    return [("".join(c for c, _ in word), [p for _, p in word]) for word in words if word]


def encode(text, vocab, max_length=100, mark="##"):
    encoded = []
    for word, places in words_of(text):
        for piece in encode_word(word, vocab, max_length, mark):
            number = len(word if piece == "[UNK]" else piece.removeprefix(mark))
            encoded.append((piece, places[0], places[number - 1] + 1))
            places = places[number:]
    return encoded


def text_cases(draw: Draw, kinds: dict[str, str]) -> Iterator[Case]:
    """Texts, and vocabularies with pieces of most of their words."""
    for name, letters in kinds.items():
        for _ in range(9):
            typed = ["a", *draw.choices(letters + "ab", k=draw.randrange(25))]
            text = "".join(draw.sample(typed, len(typed)))
            known = [word for word, _ in words_of(text) if draw.random() < 0.8]
            vocab = {piece for word in known for piece in cut(draw, word, 0.4)}
            yield Case(name, (text, vocab), hint=SPANS)
            yield Case(f"{name}, and [UNK] in the vocabulary", (text, vocab | {"[UNK]"}))
            mark = draw.choice(("@@", "__", "~~~"))
            other = {mark * (p[:2] == "##") + p.removeprefix("##") for p in vocab}
            yield Case(f"another mark, and {name}", (text, other), {"mark": mark}, SPANS)


def span_cases(draw: Draw) -> Iterator[Case]:
    yield from text_cases(draw, TEXTS)
    for kind, limit in length_limits(1, 3, 120):
        for length in (1, 2, 3, 4, 99, 100, 101, 119, 120, 121):
            text = f"b {'a' * length}, {'a' * length}"
            vocab = {"a", "##a", "b", ","}
            yield Case(kind, (text, vocab), limit, "Hand max_length on to encode_word.")


def unicode_cases(draw: Draw) -> Iterator[Case]:
    yield from text_cases(draw, UNICODE)
    for text in ("", " \t\n \u3000", "\u0301\u200b"):
        yield Case("a text without a word", (text, {"a"}))


ENCODED = ("the list of pieces and places",)
Comparison("offsets_spans", span_cases, (encode,), ENCODED, "encode")
Comparison("offsets_unicode", unicode_cases, (encode,), ENCODED, "encode")

# ---- Part 6: decode

SILENT = {*SPECIALS} - {"[UNK]"}
NAMES = "Leave out special tokens by their names, not by their ids, and nothing else."
SIGNS = "Take away the ## that begins a piece, and no other sign."


def decode(ids, vocab):
    shown = [vocab[number] for number in ids if vocab[number] not in SILENT]
    return "".join(p[2:] if p.startswith("##") else f" {p}" for p in shown)[1:]


def decode_cases(draw: Draw) -> Iterator[Case]:
    letters = ["hug", "un", "a", "##s", "##able", "##ging"]
    signs = ["#", "###", "##a##b", "##.", "!", "'", "[", "]", "[unused1]"]
    for kind, pieces, shuffled in (
        ("pieces of letters", letters, True),
        ("special tokens among pieces of letters", [*SPECIALS, *letters], False),
        ("special tokens elsewhere in the vocabulary", [*letters, *SPECIALS], True),
        ("signs and brackets", [*letters, *signs, *SPECIALS], True),
    ):
        for _ in range(20):
            vocab = draw.sample(pieces, len(pieces)) if shuffled else pieces
            words = [piece for piece in vocab if piece[:2] != "##" and piece not in SILENT]
            shown = [draw.choice(words), *draw.choices(vocab, k=draw.randint(0, 12))]
            shown = ["[CLS]"] * (vocab.count("[CLS]") * draw.randint(0, 1)) + shown
            ids, hint = (
                [vocab.index(piece) for piece in shown],
                SIGNS if "#" in vocab else NAMES,
            )
            yield Case(kind, (ids, vocab), hint=hint)
    for ids in ([], [2], [2, 3, 0], [1], [1, 1], [2, 1, 3]):
        yield Case("ids that stand for no word", (ids, [*SPECIALS, "hug"]))


Comparison("decode", decode_cases, (decode,), ("the text",))
