"""What chapter 4's page shows beside its figures: training by hand step by step, and
what the tokenizer in it needs.

The tokenizer in the page runs in the browser; here are the tables of characters that it
reads, made by the library's own normaliser, and the sentences that another tokenizer
has encoded for it to be checked against.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from itertools import chain
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from course_lab.ch04_wordpiece.tokenizer_explorer import character_ranges
from course_lab.ch04_wordpiece.wordpiece import Candidate
from course_lab.records import Record
from course_lib.figures.stepper import Row, Step, Table
from course_lib.wordpiece.normalize import Character, lower, strip_accents
from course_lib.wordpiece.tokenizer import UNK
from course_lib.wordpiece.training import (
    Score,
    first_pieces,
    merge_pieces,
    pair_scores,
    train_wordpiece,
)
from course_lib.wordpiece.unicode_classes import (
    CHINESE,
    SMALL_LETTERS,
    is_control,
    is_punctuation,
    is_space,
)

#: The corpus of five words that is trained on by hand: how often each occurs.
BY_HAND = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
PRIVATE_PLANES = range(0xF0000, 0x110000)  # all their characters are alike
HANGUL = range(0xAC00, 0xD7A4)

#: Strings that trouble tokenizers. They stand here by their escapes, since many cannot
#: be seen.
HOSTILE = (
    "",
    " \t\n ",
    "\u00c9l\u00e8ve, na\u00efve, Z\u00fcrich, \u0141\u00f3d\u017a",
    "e\u0301le\u0300ve na\u0131\u0308ve",  # accents as characters of their own
    "\u1e69 s\u0323\u0307 s\u0307\u0323",  # two accents, in two orders
    "a\u0301\u0302\u0303\u0304b",
    "\u0301 starts with an accent",
    "\u0130stanbul \u0131\u015f\u0131k STRA\u1e9eE stra\u00dfe",
    # sigmas, inside a word and at its end
    "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u03a3",
    # ligatures, fractions, Roman numerals: no canonical decomposition
    "\ufb01nd \ufb03 \u00bd \u2168 \u2122",
    "\u212bngstr\u00f6m \u2126 \u212a",  # signs that are letters by their decomposition
    "\U0001d400\U0001d68e\U0001d7d8 math",  # letters of formulas, beyond 16 bits
    "\u0420\u043e\u0441\u0441\u0438\u044f \u0439\u043e\u0433 \u0451\u043b\u043a\u0430",
    # Chinese characters and kana
    "\u6771\u4eac\u306b\u884c\u304f\u3002Tokyo\u6771\u4eac",
    "\U00020000\U0002a6d6\uf900\ufa30 rare",  # beyond 16 bits; compatibility
    "\ud55c\uad6d\uc5b4 \ub9d0\ubb49\uce58",
    "\u0627\u0644\u0639\u064e\u0631\u064e\u0628\u0650\u064a\u0651\u064e\u0629 text",
    "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    (
        "\U0001f917 hug\U0001f917s \U0001f468\u200d\U0001f469\u200d\U0001f467"
        " \U0001f1eb\U0001f1f7 \u2764\ufe0f"
    ),
    "zero\u200bwidth soft\u00adhyphen join\u2060ed \ufeffmark",
    "left\u202eright\u202c \u2066inside\u2069",
    "nul\x00 bell\x07 escape\x1b[0m delete\x7f next\x85line",
    "no\u00a0break thin\u2009space wide\u3000space line\u2028separator",
    "tab\tline\nfeed\rreturn\r\nboth vertical\x0bform\x0cfeed",
    "damaged \ufffd text\ufffdhere",
    "private \ue000 use\U000f0000d",
    "unassigned \u0378 \U0001fbff noncharacter \uffff",
    "newer \u061d punctuation \u2e52 \u0890",  # of Unicode 14.0
    "x" * 100,
    "x" * 101,
    "e\u0301" * 60,  # 120 characters that become 60
    "!?.,;:'\"`~@#$%^&*()-_=+[]{}\\|/<>",
    (
        "\u00a1hola! \u00bfqu\u00e9? \u00abquoi\u00bb \u201cwhat\u201d \u2013 \u2014"
        " \u2026 \u20ac \u00b1 \u00a7"
    ),
    "don't can\u2019t o'clock rock-n-roll e.g. U.S.A. 3.14 1,000,000 -1e-9",
    "[MASK] [CLS] in[SEP]side [mask] [ MASK ] [[UNK]] [PAD",
    "##hash ##s # ## ###",
    "</script><!-- <b>bold</b> &amp; &#39;",
    "__init__ snake_case camelCase HTTPServer x86_64 np.float64 0xDEADBEEF",
    "constructor __proto__ toString hasOwnProperty",
    "WORD word Word wOrD",
)


def merge_steps(
    counts: Mapping[str, int], merges: int, score: Score = "likelihood"
) -> list[Step]:
    """Train by hand: before each merge, all words in pieces and all pairs with their
    scores."""
    splits = {word: first_pieces(word) for word in counts}
    letters = sorted({piece for pieces in splits.values() for piece in pieces})
    chosen = train_wordpiece(counts, len(letters) + merges, score, specials=()).merges
    steps = []
    for number, merge in enumerate([*chosen, None], start=1):
        units: Counter[str] = Counter()
        for word, pieces in splits.items():
            for piece in pieces:
                units[piece] += counts[word]
        scores = pair_scores(splits, counts, score)
        frequencies = pair_scores(splits, counts, "frequency")
        best_first = sorted(
            scores, key=lambda pair: (-scores[pair], -frequencies[pair], pair)
        )
        rows = [
            Row(
                (
                    f"{a} {b}",
                    str(frequencies[a, b]),
                    str(units[a]),
                    str(units[b]),
                    str(scores[a, b]),
                ),
                marked=merge is not None and (a, b) == (merge.left, merge.right),
            )
            for a, b in best_first
        ]
        words = [
            Row((word, str(counts[word]), " ".join(pieces)))
            for word, pieces in splits.items()
        ]
        tables = [
            Table("The corpus", ("word", "count", "pieces"), words),
            Table(
                "Pairs, best first",
                ("pair", "f(ab)", "f(a)", "f(b)", "score"),
                rows,
                mark="merged next",
            ),
        ]
        if merge is None:
            steps.append(
                Step(
                    f"After {len(chosen)} merges",
                    tables,
                    f"The vocabulary has {len(letters)} pieces.",
                )
            )
            continue
        best = [pair for pair, value in scores.items() if value == merge.score]
        reason = f"has the highest score, {merge.score}"
        if len(best) > 1:
            reason = (
                f"is one of {len(best)} pairs with the highest score, {merge.score},"
                " and the rule for ties chooses it"
            )
        text = (
            f"The pair {merge.left} {merge.right} {reason}. It becomes {merge.merged},"
            " a new piece."
        )
        steps.append(Step(f"Merge {number}: {merge.left} {merge.right}", tables, text))
        splits = {
            word: merge_pieces(pieces, merge.left, merge.right)
            for word, pieces in splits.items()
        }
        letters.append(merge.merged)
    return steps


@cache
def character_tables() -> tuple[dict[str, list[int]], dict[str, str]]:
    """Run the library's normaliser on each character, and write down what becomes of
    it."""
    classes: dict[str, list[int]] = {
        "removed": [0xFFFD],
        "space": [],
        "punctuation": [],
    }
    letters = {}
    for character in _characters_that_may_change():
        simple = "".join(
            part.text for part in lower(strip_accents([Character(character, 0, 1)]))
        )
        if is_space(character):
            classes["space"].append(ord(character))
        elif is_control(character) or not simple:
            classes["removed"].append(ord(character))
        elif is_punctuation(character):
            classes["punctuation"].append(ord(character))
        if simple not in ("", character):
            letters[character] = simple
    classes["removed"] += [code for code in PRIVATE_PLANES if is_control(chr(code))]
    chinese = list(chain(*sorted(CHINESE)))
    return {
        **{name: character_ranges(sorted(codes)) for name, codes in classes.items()},
        "chinese": chinese,
    }, letters


def _characters_that_may_change() -> Iterator[str]:
    """All but most of the letters without a case and the unassigned, which no step
    touches: 25,000 of a million."""
    for code in chain(range(0xD800), range(0xE000, PRIVATE_PLANES.start)):
        character = chr(code)
        plain = unicodedata.category(character) in (
            "Lo",
            "Cn",
        ) and not unicodedata.decomposition(character)
        if code not in HANGUL and (character in SMALL_LETTERS or not plain):
            yield character


def recorded_texts(documents: Sequence[Sequence[str]], number: int) -> list[str]:
    """Choose texts for the page to be checked on: all of `HOSTILE`, and paragraphs from
    all over a held-out corpus."""
    wanted = number - len(HOSTILE)
    short = list(
        dict.fromkeys(
            text for text in chain.from_iterable(documents) if 40 <= len(text) <= 300
        )
    )
    if not 1 <= wanted <= len(short):
        raise ValueError(
            f"number={number} leaves {wanted} paragraphs beside {len(HOSTILE)} hostile"
            f" strings, and there are {len(short)} of 40 to 300 characters; choose"
            f" between {len(HOSTILE) + 1} and {len(HOSTILE) + len(short)}"
        )
    return [*HOSTILE, *(short[place * len(short) // wanted] for place in range(wanted))]


def library_version() -> str:
    """Return the version of `tokenizers` that is installed."""
    return version("tokenizers")


def favourites_table(by_rule: Mapping[str, Sequence[Candidate]]) -> str:
    """Write what `favourites` found as a table in Markdown."""
    head = ["favourites by", "pair", "f(ab)", "s(a, b)", "gain in likelihood (nats)"]
    rows = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for rule, best in by_rule.items():
        rows += [
            f"| {rule} | `{' '.join(c.pair)}` | {c.frequency:,} | {c.score:.2g} |"
            f" {c.gain:,.0f} |"
            for c in best
        ]
    return "\n".join(rows)


def subword_methods(texts: Sequence[str], size: int) -> dict[str, Tokenizer]:
    """Train the field's four ways to subwords, as `tokenizers` has them, on the same
    texts."""
    unknown, every_byte = [UNK], pre_tokenizers.ByteLevel.alphabet()
    ways: dict[str, tuple[models.Model, pre_tokenizers.PreTokenizer, Any]] = {
        "WordPiece (BERT)": (
            models.WordPiece(unk_token=UNK),
            pre_tokenizers.BertPreTokenizer(),
            trainers.WordPieceTrainer(
                vocab_size=size, special_tokens=unknown, show_progress=False
            ),
        ),
        "byte-level BPE (GPT-2)": (
            models.BPE(),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            trainers.BpeTrainer(
                vocab_size=size, initial_alphabet=every_byte, show_progress=False
            ),
        ),
        "SentencePiece's BPE": (
            models.BPE(unk_token=UNK),
            pre_tokenizers.Metaspace(),
            trainers.BpeTrainer(
                vocab_size=size, special_tokens=unknown, show_progress=False
            ),
        ),
        "SentencePiece's unigram (T5)": (
            models.Unigram(),
            pre_tokenizers.Metaspace(),
            trainers.UnigramTrainer(
                vocab_size=size,
                special_tokens=unknown,
                unk_token=UNK,
                show_progress=False,
            ),
        ),
    }
    trained = {}
    for name, (model, pre_tokenizer, trainer) in ways.items():
        trained[name] = Tokenizer(model)
        if isinstance(model, models.WordPiece):
            trained[name].normalizer = normalizers.BertNormalizer()
        trained[name].pre_tokenizer = pre_tokenizer
        trained[name].train_from_iterator(texts, trainer)
    return trained


def methods_table(texts: Sequence[str], size: int, words: Sequence[str]) -> str:
    """Write how each way to subwords spells some words, as a table in Markdown."""
    rows = [f"| | {' | '.join(words)} |", "| --- " * (len(words) + 1) + "|"]
    for name, tokenizer in subword_methods(texts, size).items():
        # A unigram model keeps what it does not know as typed, under the id of [UNK].
        shown = [
            " ".join(
                tokenizer.id_to_token(index) or ""
                for index in tokenizer.encode(word).ids
            )
            for word in words
        ]
        rows.append(f"| {name} | {' | '.join(f'`{text}`' for text in shown)} |")
    return "\n".join(rows)


def benchmark_table(record: Record) -> str:
    """Write what ``benchmarks/tokenizer.py`` recorded as a table in Markdown."""
    head = [
        "",
        "threads",
        "words a second, ours",
        "words a second, `tokenizers`",
        "`tokenizers` is faster by",
    ]
    rows = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for result in record.results:
        times = (
            f"{1 / result['ratio']:.1f} ({1 / result['high']:.1f} to"
            f" {1 / result['low']:.1f})"
        )
        speeds = ["", ""]
        if (
            result["threads"] == 1
        ):  # processor time; with more, the wall clock of a machine in use
            speeds = [
                f"{1000 * result['words'] / result[key]:,.0f}"
                for key in ("milliseconds", "peer_milliseconds")
            ]
        rows.append(
            f"| {result['what']} | {result['threads']} | {speeds[0]} | {speeds[1]} |"
            f" {times} |"
        )
    return "\n".join(rows)
