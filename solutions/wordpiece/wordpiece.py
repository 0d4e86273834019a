# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   # Longer than 400 lines because an assignment is one notebook: nine parts, each with its prose, skeleton and tests.
#   course:
#     chapter: wordpiece
#     seconds: 60
#     withholds:
#       - course_lib.wordpiece.normalize
#       - course_lib.wordpiece.training
#       - course_lib.wordpiece.tokenizer
#       - course_lib.wordpiece.fast
#       - tokenizers
# ---

# %% [markdown]
# # Assignment 3 · Build WordPiece
#
# BERT has never seen the word *unhuggable*. It reads it all the same: as *un*, *##hu*, *##gga*, *##ble*, four pieces
# out of 30,522. Nobody wrote that list of pieces. An algorithm found it, by counting, and a second one cuts every text with it.
#
# In this notebook you write both. Then you let yours loose on the documentation inside Python itself, and see which
# pieces it finds, what it does to words that it has never met, and what it cannot read at all.
#
# You need chapter 4 of the book, Python's standard library, and about three hours and a half.
# There are {points:total} points. You write nothing with PyTorch, and you need no GPU.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other words, other alphabets, edge cases.
# Every function must leave what it is given as it was.
# Do not change, copy or delete the test cells. You may add cells of your own. Before you hand in, restart the kernel and
# run everything from the top. In a terminal, `course check wordpiece.ipynb` tells you what is amiss.
#
# **What you may use.** Everything in Python's standard library. You build these, so they are withheld: {withholds}. Read each
# task with care: its function is not quite the one of the book.
#
# **Words for things.** A *word* is what stands between spaces. A *piece* is a part of a word. A piece that does not begin
# its word is written with `##` in front: *hugs* may be cut into `hug` and `##s`. `s` and `##s` are two different pieces.

# %%
import itertools
import unicodedata
from collections import Counter
from fractions import Fraction

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# %% [markdown]
# The next cell holds what the tests need. Run it and leave it as it is. Jupyter shows it folded.

# %% jupyter={"source_hidden": true} cellView="form" nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
WITHHELD = [
    "{withholds}",
]


# {source:course_tools.grading.assignments.withheld.withheld_uses}


# {source:course_tools.grading.assignments.student_checks.cells_that_define}


# {source:course_tools.grading.assignments.student_checks.check_withheld}


# {source:course_tools.grading.assignments.guard.guard_withheld}


withheld_allowed = guard_withheld(WITHHELD)


# {source:course_tools.grading.assignments.student_checks.check_pair}


# {source:course_tools.grading.assignments.student_checks.check_same}


# The example of the chapter: five words, and how often each occurs.
HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}


def limited(score, most=100):
    """The same score, for no more merges than the words of a test can have: a loop without end ends in words."""
    calls = itertools.count(1)

    def counted(piece_counts, pair_counts):
        assert next(calls) <= most, (
            f"train has asked for scores {most} times and would go on for ever. A pair that was merged must be gone from "
            "every word: look whether merge_pair finds pairs as count_pieces writes them, (left, right)."
        )
        return score(piece_counts, pair_counts)

    return counted


def frequency(piece_counts, pair_counts):
    """The score of byte-pair encoding."""
    return pair_counts


def check_merges(got, expected, what, hint, slips=()):
    """Say which step is the first that goes wrong."""
    assert isinstance(got, list), (
        f"{what}: merges must be a list; yours is a {type(got).__name__}."
    )
    for slip, words in slips:
        hint = words if got == slip else hint
    for step, (ours, wanted) in enumerate(zip(got, expected), start=1):
        assert ours == wanted, f"{what}: merge {step} must be {wanted}; yours is {ours}. {hint}"
    assert len(got) == len(expected), (
        f"{what}: there must be {len(expected)} merges; yours are {len(got)}. {hint}"
    )


# %% [markdown]
# ## Part 1 · Count, and score ({points:scores} points)
#
# **Question: which two neighbours belong together?**
#
# Training starts with single characters. A character that does not begin its word gets a mark in front. BERT's is `##`; other
# vocabularies have others.


# %% nbgrader={"grade": false, "grade_id": "first-pieces", "locked": false, "schema_version": 3, "solution": true, "task": false}
def first_pieces(word, mark="##"):
    """Cut a word into characters, all but the first with the mark in front.

    word, mark: strings of at least one character
    returns a list of strings

    Example: "hugs" -> ["h", "##u", "##g", "##s"]; with mark "_" -> ["h", "_u", "_g", "_s"]
    """
    ### BEGIN SOLUTION
    return [word[0], *(mark + character for character in word[1:])]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scores-first-pieces", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("first_pieces")
check_same(
    first_pieces("hugs"),
    ["h", "##u", "##g", "##s"],
    'first_pieces("hugs")',
    slips=(
        (["h", "u", "g", "s"], "Every character but the first gets ## in front."),
        (["##h", "##u", "##g", "##s"], "The first character begins the word: no ## there."),
        (
            ["h", "##u", "g", "s"],
            "Every character but the first gets ##, not the second alone.",
        ),
        (["h##", "u##", "g##", "s"], "## stands in front of a piece that continues a word."),
        (["h", "##ugs"], "Cut the rest of the word into characters, too."),
    ),
)
check_same(
    first_pieces("pun", mark="@@"),
    ["p", "@@u", "@@n"],
    'first_pieces("pun", mark="@@")',
    slips=((["p", "##u", "##n"], "Write the mark that is passed in."),),
)
### BEGIN HIDDEN TESTS
# {compare:first_pieces}
### END HIDDEN TESTS

# %% [markdown]
# Now count, over the whole corpus, how often each piece occurs and how often each pair of neighbours does. The corpus comes
# as a table of words. A word that occurs 10 times brings each of its pieces and each of its pairs 10 times. Pairs never
# reach from one word into the next.
#
# The rarest words of a corpus are mostly typing mistakes. So the caller may leave out, with all that they bring, the words that
# occur fewer than `least` times. The book counts all of them.


# %% nbgrader={"grade": false, "grade_id": "count", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_pieces(splits, counts, least=1):
    """Count pieces, and pairs of neighbours, in a corpus.

    splits: dict, word -> list of its pieces as they stand now
    counts: dict, word -> how often the word occurs in the corpus
    least:  how often a word must occur to be counted
    returns (piece_counts, pair_counts): dict piece -> int, and dict (left, right) -> int

    Example: splits {"so": ["s", "##o"], "sos": ["s", "##o", "##s"]}, counts {"so": 3, "sos": 2} ->
    ({"s": 5, "##o": 5, "##s": 2}, {("s", "##o"): 5, ("##o", "##s"): 2});
    with least 3 -> ({"s": 3, "##o": 3}, {("s", "##o"): 3})
    """
    ### BEGIN SOLUTION
    piece_counts, pair_counts = Counter(), Counter()
    for word, pieces in splits.items():
        if counts[word] < least:
            continue
        for piece in pieces:
            piece_counts[piece] += counts[word]
        for pair in itertools.pairwise(pieces):
            pair_counts[pair] += counts[word]
    return piece_counts, pair_counts
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scores-counts", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("count_pieces")
splits = {"so": ["s", "##o"], "sos": ["s", "##o", "##s"], "ohoho": ["o", "##ho", "##ho"]}
answer = count_pieces(splits, {"so": 3, "sos": 2, "ohoho": 4})
piece_counts, pair_counts = check_pair(
    answer, "count_pieces must return (piece_counts, pair_counts)"
)
each_word_once = {"s": 2, "##o": 2, "##s": 1, "o": 1, "##ho": 2}
check_same(
    piece_counts,
    {"s": 5, "##o": 5, "##s": 2, "o": 4, "##ho": 8},
    "With so 3 times, sos twice and ohoho 4 times, the table of pieces",
    "A piece that stands twice in a word counts twice for each time the word occurs.",
    slips=(
        (each_word_once, "Each word counts as often as counts says, not once."),
        (
            {"s": 5, "##o": 5, "##s": 2, "o": 4, "##ho": 4},
            "##ho stands twice in ohoho: it counts twice for each time the word occurs.",
        ),
        (
            {"s": 7, "o": 9, "ho": 8},
            "s and ##s are two different pieces: leave ## where it is.",
        ),
    ),
)
check_same(
    pair_counts,
    {("s", "##o"): 5, ("##o", "##s"): 2, ("o", "##ho"): 4, ("##ho", "##ho"): 4},
    "With so 3 times, sos twice and ohoho 4 times, the table of pairs",
    "Its keys are pairs (left, right) of neighbours in one word.",
    slips=(
        (
            {("s", "##o"): 2, ("##o", "##s"): 1, ("o", "##ho"): 1, ("##ho", "##ho"): 1},
            "Each word counts as often as counts says, not once.",
        ),
        (
            {("##o", "s"): 5, ("##s", "##o"): 2, ("##ho", "o"): 4, ("##ho", "##ho"): 4},
            "Your pairs are the wrong way round: the left neighbour comes first.",
        ),
        (
            {"s##o": 5, "##o##s": 2, "o##ho": 4, "##ho##ho": 4},
            "A key is a pair with a comma, (left, right), not one string.",
        ),
    ),
)
answer = count_pieces(splits, {"so": 3, "sos": 2, "ohoho": 4}, least=3)
frequent, pairs = check_pair(answer, "count_pieces must return (piece_counts, pair_counts)")
ALL = "Leave out the words that occur fewer than `least` times, here sos."
check_same(
    frequent,
    {"s": 3, "##o": 3, "o": 4, "##ho": 8},
    "With so 3 times, sos twice, ohoho 4 times and least 3, the table of pieces",
    ALL,
    slips=(
        ({"o": 4, "##ho": 8}, "A word that occurs just `least` times is counted."),
        (
            {"s": 5, "##o": 5, "o": 4, "##ho": 8},
            "It is words that must occur so often, not their pieces.",
        ),
    ),
)
check_same(
    pairs,
    {("s", "##o"): 3, ("o", "##ho"): 4, ("##ho", "##ho"): 4},
    "With so 3 times, sos twice, ohoho 4 times and least 3, the table of pairs",
    ALL,
)
### BEGIN HIDDEN TESTS
# {compare:count_pieces}
### END HIDDEN TESTS

# %% [markdown]
# A pair that is frequent because its parts are frequent says little. WordPiece (Schuster and Nakajima 2012) asks how much
# more often the two meet than their own frequencies would suggest:
#
# $$\mathrm{score}(a, b) = \frac{\mathrm{freq}(ab) - \delta}{\mathrm{freq}(a) \cdot \mathrm{freq}(b)}$$
#
# The discount $\delta$ is 0 in WordPiece. Mikolov et al. (2013, equation 6) joined words to phrases in this way, with a discount
# above 0, because two rare words that met once would get the greatest score of all.
#
# Scores will be compared, so let none be rounded: return them as `Fraction`, from Python's module `fractions`.
# `Fraction(6, 8)` is exactly 3/4, and equal scores are equal.


# %% nbgrader={"grade": false, "grade_id": "score", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pair_scores(piece_counts, pair_counts, discount=0):
    """Score each pair of neighbours.

    piece_counts, pair_counts: as count_pieces returns them
    discount: an int; a score may be below 0
    returns dict (left, right) -> Fraction

    Example: {"s": 5, "##o": 5, "##s": 2}, {("s", "##o"): 5, ("##o", "##s"): 2} ->
    {("s", "##o"): Fraction(1, 5), ("##o", "##s"): Fraction(1, 5)};
    with discount 2 -> {("s", "##o"): Fraction(3, 25), ("##o", "##s"): Fraction(0, 1)}
    """
    ### BEGIN SOLUTION
    return {
        (left, right): Fraction(count - discount, piece_counts[left] * piece_counts[right])
        for (left, right), count in pair_counts.items()
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scores-values", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("pair_scores")
pieces = {"h": 15, "p": 17, "b": 4, "##u": 36, "##g": 20, "##n": 16, "##s": 5}
pairs = {
    ("h", "##u"): 15,
    ("p", "##u"): 17,
    ("b", "##u"): 4,
    ("##u", "##g"): 20,
    ("##u", "##n"): 16,
    ("##g", "##s"): 5,
}
scores = pair_scores(dict(pieces), dict(pairs))
expected = {pair: Fraction(1, 36) for pair in pairs} | {("##g", "##s"): Fraction(1, 20)}
check_same(
    scores,
    expected,
    "With hug 10, pug 5, pun 12, bun 4 and hugs 5 times, the table of scores",
    "Divide the frequency of the pair by the product of the frequencies of its two parts.",
    slips=(
        (pairs, "Yours is the frequency alone: that is byte-pair encoding, not WordPiece."),
        (
            {pair: Fraction(pairs[pair], pieces[pair[0]]) for pair in pairs},
            "Divide by the frequencies of both parts, not of the left one alone.",
        ),
        (
            {pair: Fraction(pairs[pair], pieces[pair[1]]) for pair in pairs},
            "Divide by the frequencies of both parts, not of the right one alone.",
        ),
        (
            {pair: Fraction(pairs[pair], pieces[pair[0]] + pieces[pair[1]]) for pair in pairs},
            "Multiply the frequencies of the two parts; yours adds them.",
        ),
        (
            {pair: pairs[pair] / pieces[pair[0]] / pieces[pair[1]] for pair in pairs},
            "The formula is right, but floats are rounded: write Fraction(freq_ab, freq_a * freq_b).",
        ),
        (
            {
                pair: Fraction(pairs[pair] / (pieces[pair[0]] * pieces[pair[1]]))
                for pair in pairs
            },
            "The formula is right, but / rounds before Fraction sees the number: give Fraction two ints, Fraction(freq_ab, freq_a * freq_b).",
        ),
        (
            {pair: pairs[pair] / (pieces[pair[0]] * pieces[pair[1]]) for pair in pairs},
            "The formula is right, but floats are rounded: write Fraction(freq_ab, freq_a * freq_b).",
        ),
    ),
)
check_same(
    pair_scores({"a": 6, "##b": 5, "##c": 4}, {("a", "##b"): 3, ("##b", "##c"): 1}, discount=2),
    {("a", "##b"): Fraction(1, 30), ("##b", "##c"): Fraction(-1, 20)},
    "With a discount of 2, the table of scores",
    "Take the discount from the frequency of the pair, before you divide.",
)
for pair, score in scores.items():
    assert isinstance(score, Fraction), (
        f"The score of {pair} must be a Fraction; yours is a {type(score).__name__}. "
        "Write Fraction(freq_ab, freq_a * freq_b)."
    )
### BEGIN HIDDEN TESTS
# {compare:pair_scores}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · Choose, and merge ({points:merge} points)
#
# **Question: what is one step of training?**
#
# The pair with the greatest score becomes one piece. Often several pairs share the greatest score: in the example above, five
# pairs have 1/36. If chance decided between them, two runs would give two vocabularies, and a model trained with one
# could not read the other. So there is a rule, and it leaves nothing open:
#
# 1. the greatest score;
# 2. among equal scores, the most frequent pair;
# 3. among equally frequent ones, the first in string order, as Python compares pairs: `("##a", "##b") < ("a", "##b")`,
#    because `#` comes before all letters; `("a", "##b") < ("a", "##c") < ("b", "##a")`.


# %% nbgrader={"grade": false, "grade_id": "best", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_pair(scores, pair_counts):
    """Choose the pair to merge.

    scores:      dict (left, right) -> number, a Fraction if it is from pair_scores; at least one pair
    pair_counts: dict (left, right) -> int; it has all the pairs of scores, and maybe more
    returns the pair (left, right)

    Example: scores {("b", "##u"): Fraction(1, 9), ("p", "##u"): Fraction(1, 9)},
    pair_counts {("b", "##u"): 4, ("p", "##u"): 17} -> ("p", "##u")
    """
    ### BEGIN SOLUTION
    return min(scores, key=lambda pair: (-scores[pair], -pair_counts[pair], pair))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "merge-best", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("best_pair")


def check_best(scores, pair_counts, expected, hint):
    got = best_pair(dict(scores), dict(pair_counts))
    lines = [
        f"{pair}: score {score}, {pair_counts[pair]} times" for pair, score in scores.items()
    ]
    assert got == expected, (
        f"Of {'; '.join(lines)}, the best pair is {expected}; yours is {got}. {hint}"
    )


U, N, G = ("p", "##u"), ("##u", "##n"), ("##g", "##s")
check_best(
    {U: Fraction(1, 36), G: Fraction(1, 20), N: Fraction(1, 30)},
    {U: 17, G: 5, N: 16},
    G,
    "Take the greatest score, whatever the frequencies.",
)
check_best(
    {N: Fraction(1, 9), U: Fraction(1, 9), G: Fraction(1, 10)},
    {N: 3, U: 7, G: 9},
    U,
    "Two share the greatest score: of these, take the more frequent.",
)
# Twelve ties, each of six pairs that come in another order. An answer that leaves ties to the order of a dict, or to the
# order of a set, which changes from run to run, gets through one of them by luck, and not through twelve.
letters = "kqxzmfw"
for turn in range(12):
    left = letters[turn % 7]
    tied = [(left, f"##{letters[(turn * 3 + place) % 7]}") for place in range(6)]
    check_best(
        {pair: Fraction(1, 4 + turn) for pair in tied},
        dict.fromkeys(tied, 2),
        min(tied),
        "All are equal: take the first in string order, not the first that the dict or a set happens to give.",
    )
### BEGIN HIDDEN TESTS
# {compare:best_pair}
### END HIDDEN TESTS

# %% [markdown]
# Merging writes the pair as one piece wherever it stands. The new piece keeps the left one's mark, if it has one, and
# drops the right one's: `hu` and `##g` make `hug`, `##u` and `##g` make `##ug`. Go from left to right; a piece
# that has been used up in a merge is not there for the next: in *aaa*, (##a, ##a) stands once, in *aaaa* also once.


# %% nbgrader={"grade": false, "grade_id": "merge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def join(left, right, mark="##"):
    """The piece that two neighbours make; right begins with the mark.

    Example: "hu", "##gs" -> "hugs";  "##g", "##s" -> "##gs";  "@g", "@s", mark "@" -> "@gs"
    """
    ### BEGIN SOLUTION
    return left + right.removeprefix(mark)
    ### END SOLUTION


def merge_pair(pieces, pair, mark="##"):
    """Make one piece of each occurrence of a pair in a word, from left to right.

    pieces: list of the pieces of one word; it stays as it is
    pair:   (left, right);  mark: that of the pieces
    returns a new list

    Example: ["h", "##u", "##g", "##s"], ("##g", "##s") -> ["h", "##u", "##gs"]
    """
    ### BEGIN SOLUTION
    merged, place = [], 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            merged.append(join(*pair, mark))
            place += 2
        else:
            merged.append(pieces[place])
            place += 1
    return merged
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "merge-pair", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("join", "merge_pair")
check_same(
    join("hu", "##gs"),
    "hugs",
    'join("hu", "##gs")',
    slips=(
        ("hu##gs", "The ## of the right piece goes: it is inside the word now."),
        ("##hugs", "The left piece begins the word, so the new piece does: no ##."),
    ),
)
check_same(
    join("##g", "##s"),
    "##gs",
    'join("##g", "##s")',
    slips=(
        ("##g##s", "The ## of the right piece goes: it is inside the word now."),
        ("gs", "The left piece does not begin the word, so the new piece keeps its ##."),
    ),
)
check_same(
    join("@u", "@ps", mark="@"),
    "@ups",
    'join("@u", "@ps", mark="@")',
    slips=(("@u@ps", "The mark that is passed in goes from the right piece."),),
)
pieces = ["h", "##u", "##g", "##s"]
check_same(
    merge_pair(pieces, ("##g", "##s")),
    ["h", "##u", "##gs"],
    "With (##g, ##s) merged, h ##u ##g ##s",
)
assert pieces == ["h", "##u", "##g", "##s"], (
    f"merge_pair must leave the list that it is given as it was; yours changes it to {pieces}. Build a new list."
)
check_same(
    merge_pair(["##s", "##g"], ("##g", "##s")),
    ["##s", "##g"],
    "With (##g, ##s) merged, ##s ##g",
    "The left one must come first: here nothing is merged.",
)
check_same(
    merge_pair(["b", "##an", "##an", "##a"], ("##an", "##a")),
    ["b", "##an", "##ana"],
    "With (##an, ##a) merged, b ##an ##an ##a",
    "Compare whole pieces; the end of one and the start of the next do not count.",
)
check_same(
    merge_pair(["a", "##a", "##a", "##a"], ("##a", "##a")),
    ["a", "##aa", "##a"],
    "With (##a, ##a) merged, a ##a ##a ##a",
    "After a merge go on behind both pieces.",
    slips=(
        (
            ["a", "##aa", "##aa"],
            "Yours uses the middle ##a twice. After a merge go on behind both.",
        ),
        (["##aa", "##aa"], "a and ##a are two different pieces: the pair is (##a, ##a)."),
        (
            ["a", "##a", "##aa"],
            "Go from left to right: the first two are merged, the last is left.",
        ),
    ),
)
check_same(
    merge_pair(["l", "##o", "##l", "##o", "##l", "##o"], ("##l", "##o")),
    ["l", "##o", "##lo", "##lo"],
    "With (##l, ##o) merged, l ##o ##l ##o ##l ##o",
    "Merge the pair wherever it stands, not only the first time; l and ##l are two different pieces.",
)
check_same(
    merge_pair(["p", "@u", "@p", "@s"], ("@u", "@p"), mark="@"),
    ["p", "@up", "@s"],
    "With mark @ and (@u, @p) merged, p @u @p @s",
    "Pass the mark on to join.",
)
### BEGIN HIDDEN TESTS
# {compare:join}
# {compare:merge_pair}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · Train ({points:train} points)
#
# **Question: how does a vocabulary come out of a corpus?**
#
# 1. Cut each word into its first pieces. The vocabulary begins with the special tokens, in the order in which they are given. Then
#    come all first pieces that occur and are not there yet, in string order.
# 2. Count, score, choose the best pair, merge it in every word. Write the pair down, and append the new piece to the
#    vocabulary if it is not there yet.
# 3. Again, from counting on: a merge changes the frequencies of its two parts, so old scores are worth nothing. Stop when
#    the vocabulary has `vocab_size` entries, or when no pair is left.
#
# Two more rules. A pair that occurs fewer than `min_frequency` times is never chosen. And if the special tokens and first
# pieces alone are more than `vocab_size`, raise a `ValueError` that says so.
#
# `score` is a function. `pair_scores` makes it WordPiece. With `lambda piece_counts, pair_counts: pair_counts` the most frequent
# pair wins, and you have trained byte-pair encoding (Sennrich, Haddow and Birch 2016): one line is all the difference.


# %% nbgrader={"grade": false, "grade_id": "train", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=pair_scores):
    """Learn a vocabulary.

    counts: dict, word -> how often it occurs in the corpus; it stays as it is
    score:  function (piece_counts, pair_counts) -> dict (left, right) -> number
    returns (vocab, merges): a list of strings without duplicates, and a list of pairs (left, right) in the order in
            which they were merged
    raises  ValueError if vocab_size has no room for the special tokens and the first pieces

    Example: {"hug": 10, "pug": 5}, vocab_size 7, specials ("[UNK]",) ->
    (["[UNK]", "##g", "##u", "h", "p", "##ug", "hug"], [("##u", "##g"), ("h", "##ug")])
    """
    ### BEGIN SOLUTION
    splits = {word: first_pieces(word) for word in counts}
    vocab = [*specials, *sorted({piece for pieces in splits.values() for piece in pieces})]
    vocab = list(dict.fromkeys(vocab))  # a special token may be a first piece, too
    if len(vocab) > vocab_size:
        raise ValueError(f"vocab_size={vocab_size} is less than the {len(vocab)} first entries")
    merges = []
    while len(vocab) < vocab_size:
        piece_counts, pair_counts = count_pieces(splits, counts)
        scores = score(piece_counts, pair_counts)
        frequent = {p: scores[p] for p in scores if pair_counts[p] >= min_frequency}
        if not frequent:
            break
        pair = best_pair(frequent, pair_counts)
        splits = {word: merge_pair(pieces, pair) for word, pieces in splits.items()}
        merges.append(pair)
        if join(*pair) not in vocab:
            vocab.append(join(*pair))
    return vocab, merges
    ### END SOLUTION


# %% [markdown]
# First the example of the chapter: *hug* 10, *pug* 5, *pun* 12, *bun* 4, *hugs* 5 times. Older editions
# of a well-known course got its arithmetic wrong. Once `hu` is a piece, `hu` with `##gs` scores 5 / (15 · 5) = 1/15, and `hu` with `##g` scores
# 10 / (15 · 15) = 2/45, which is less: *hugs* becomes one piece before *hug* does, although it is rarer.

# %% nbgrader={"grade": true, "grade_id": "train-example", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("train")
merges_of_hugs = [("##g", "##s"), ("p", "##u"), ("h", "##u"), ("b", "##u"), ("hu", "##gs")]
merges_of_hugs += [("hu", "##g"), ("bu", "##n"), ("pu", "##n"), ("pu", "##g")]
by_frequency = [("##u", "##g"), ("##u", "##n"), ("h", "##ug"), ("p", "##un"), ("hug", "##s")]
first = [*SPECIALS, "##g", "##n", "##s", "##u", "b", "h", "p"]
answer = train(dict(HUGS), 17, score=limited(pair_scores))
vocab, merges = check_pair(answer, "train must return (vocab, merges)")
check_merges(
    merges,
    merges_of_hugs[:5],
    "For the words of the example and 17 entries",
    "Count and score anew after each merge. If a test of Parts 1 and 2 fails, mend that first.",
    slips=(
        (by_frequency, "That is byte-pair encoding: you do not use the scores of `score`."),
        (
            merges_of_hugs[:4],
            "You stop one merge early: go on while there are fewer than 17 entries.",
        ),
        (
            merges_of_hugs[:6],
            "You go on one merge too long: with 17 entries the vocabulary is full.",
        ),
    ),
)
check_same(
    vocab,
    [*first, "##gs", "pu", "hu", "bu", "hugs"],
    "For the words of the example and 17 entries, the vocabulary",
    "Special tokens, then first pieces in string order, then new pieces as they were made.",
)
check_same(
    train(dict(HUGS), 17)[1],
    merges,
    "For the words of the example and 17 entries, the list of merges without a score passed in",
    "It must be that of pair_scores: leave the first line of train as it was given.",
)
_, merges = train(dict(HUGS), 16, score=limited(frequency))
check_merges(
    merges,
    by_frequency[:4],
    "With frequencies for scores, and 16 entries",
    "Take scores from the function `score` that is passed in.",
    slips=(
        (merges_of_hugs[:4], "You use pair_scores even though another `score` is passed in."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:train_example}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "train-rules", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
others = ("<pad>", "<unk>", "<cls>", "<sep>", "<mask>")
vocab, merges = train({"hug": 10, "pug": 5}, 11, specials=others, score=limited(pair_scores))
check_same(
    vocab,
    [*others, "##g", "##u", "h", "p", "##ug", "hug"],
    "For hug 10 and pug 5 times, 11 entries and other special tokens, the vocabulary",
    "Begin with the special tokens that are passed in, then the first pieces in string order. If a test of Parts 1 and 2 "
    "fails, mend that first.",
    slips=(
        (
            [*others, "g", "h", "p", "u", "##ug", "hug"],
            "First pieces inside a word are written with ##.",
        ),
        (
            [*others, "g", "h", "p", "u", "ug", "hug"],
            "First pieces inside a word are written with ##.",
        ),
        (
            [*others, "h", "##u", "##g", "p", "##ug", "hug"],
            "Put the first pieces in string order: sorted().",
        ),
    ),
)
counts = dict(HUGS)
try:
    vocab, merges = train(counts, 1000, score=limited(pair_scores))
except (NotImplementedError, AssertionError):
    raise
except Exception as error:
    raise AssertionError(
        "For the example and room for 1000 entries, no pair is left after nine merges: stop then. "
        f"Yours fails with {type(error).__name__}: {error}."
    ) from error
assert counts == HUGS, "train must leave the table of words as it was; yours changes it."
check_merges(
    merges,
    merges_of_hugs,
    "For the example and room for 1000 entries",
    "When every word is one piece, no pair is left: stop.",
)
assert len(vocab) == 21, (
    f"For the example there are 21 entries at most; yours has {len(vocab)}."
)
check_merges(
    train(dict(HUGS), 1000, min_frequency=5, score=limited(pair_scores))[1],
    [
        ("##g", "##s"),
        *merges_of_hugs[1:3],
        ("hu", "##gs"),
        ("hu", "##g"),
        ("pu", "##g"),
        ("pu", "##n"),
    ],
    "For the example with min_frequency 5",
    "A pair that occurs fewer than 5 times in the corpus is never merged; one that occurs 5 times may be.",
    slips=(
        (merges_of_hugs, "You do not use min_frequency: (b, ##u) occurs 4 times."),
        (
            [("##u", "##g"), ("##u", "##n"), ("h", "##ug"), ("p", "##un")],
            "Fewer than 5 times is too rare; 5 times is not.",
        ),
    ),
)
try:
    answer = train(dict(HUGS), 11)
except ValueError:
    pass
else:
    raise AssertionError(
        "The 5 special tokens and 7 first pieces of the example are 12 entries. With vocab_size 11 raise a "
        f"ValueError; yours returned {answer!r}."
    )
check_same(
    train(dict(HUGS), 12),
    (first, []),
    "For the example and 12 entries, what train returns",
    "The first 12 entries have room, and nothing else.",
)
### BEGIN HIDDEN TESTS
# {compare:train_rules}
### END HIDDEN TESTS

# %% [markdown]
# Now a test on words with no meaning, full of ties: here a rule that is only nearly right goes another way sooner or later.

# %% nbgrader={"grade": true, "grade_id": "train-ties", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Twelve words that share no letter: all their pairs are equal, and chance would have to hit one order out of 479,001,600.
strangers = ["wm", "xk", "ql", "zt", "pj", "hv", "db", "ys", "fn", "gr", "ca", "eo"]
check_merges(
    train(dict.fromkeys(strangers, 1), 60, score=limited(pair_scores))[1],
    [(word[0], f"##{word[1]}") for word in sorted(strangers)],
    "For twelve words of two letters, each once, none with a letter of another",
    "Scores and frequencies are all equal: take the first in string order, by best_pair.",
)
words = {"abab": 1, "baba": 1, "aabb": 1, "bbaa": 1, "abba": 1, "baab": 1}
expected = """
a ##b / a ##a / aa ##b / aab ##b / ab ##b / ab ##a / aba ##b / abb ##a / ##a ##b / b ##b / b ##ab / ##a ##ab / b ##aab /
bab ##a / bb ##a / bba ##a
"""
expected = [tuple(pair.split()) for pair in expected.split("/")]
check_merges(
    train(words, 40, specials=("[UNK]",), score=limited(pair_scores))[1],
    expected,
    "For the six words with two a and two b, each once",
    "Count and score anew after each merge; among equal scores take the more frequent, then the first in string order.",
)
### BEGIN HIDDEN TESTS
# {compare:train_ties}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · Encode a word ({points:encode-word} points)
#
# **Question: of all the ways to cut a word, which is taken?**
#
# The longest piece that the word begins with, then the longest that the rest begins with, and so on: *greedy
# longest-match-first* (Wu et al. 2016, section 4.1). The rest of a word is looked up with the mark in front. Merges play no part any more; the vocabulary alone is used.
#
# If at some place not even one character is in the vocabulary, the *whole* word is `[UNK]`, also when its beginning was
# found, and also when another cut would have worked: nobody goes back. So is a word of more than `max_length` characters.


# %% nbgrader={"grade": false, "grade_id": "word", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode_word(word, vocab, max_length=100, mark="##"):
    """Cut a word into pieces, the longest first.

    word:  a string of at least one character
    vocab: set of pieces; it may be empty
    mark:  what stands in front of pieces that do not begin a word
    returns a list of pieces, or ["[UNK]"]

    Example: "hugs" with {"h", "hu", "hug", "##s", "##gs"} -> ["hug", "##s"]
    """
    ### BEGIN SOLUTION
    if len(word) > max_length:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = (mark if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "encode-word-longest", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("encode_word")
pieces = {"h", "hu", "hug", "s", "gs", "##h", "##u", "##g", "##s", "##gs", "##ug", "##ugs"}
check_same(
    encode_word("hugs", pieces),
    ["hug", "##s"],
    "The pieces of hugs with h, hu, hug, s, gs, ##h, ##u, ##g, ##s, ##gs, ##ug and ##ugs",
    "The longest beginning of hugs that is a piece is hug; what is left, s, is looked up as ##s.",
    slips=(
        (["h", "##u", "##g", "##s"], "Yours takes the shortest piece. Try the longest first."),
        (
            ["h", "##ugs"],
            "Take the longest from the left: hug. Yours takes the longest from the right.",
        ),
        (["hu", "##gs"], "Take the longest from the left: hug is longer than hu."),
        (
            ["hug", "s"],
            "What does not begin the word is looked up with ## in front: ##s, not s.",
        ),
        (["hug"], "Go on with what is left of the word, until nothing is."),
        (
            ["[UNK]"],
            "Look the rest up with ## in front, and its beginnings down to one character.",
        ),
    ),
)
check_same(
    encode_word("hush", pieces),
    ["hu", "##s", "##h"],
    "The pieces of hush",
    "Every piece but the first has ##, the third as well as the second.",
)
check_same(encode_word("hug", pieces), ["hug"], "The pieces of hug (a piece itself)")
check_same(
    encode_word("hugs", {"h", "hu", "ug", "s", "##g", "@g", "@gs", "@s", "@h"}, mark="@"),
    ["hu", "@gs"],
    "The pieces of hugs with mark @ and h, hu, ug, s, ##g, @g, @gs, @s and @h",
    "The rest is looked up with the mark that is passed in.",
)
### BEGIN HIDDEN TESTS
# {compare:encode_word_longest}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "encode-word-unknown", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
pieces = {"h", "hu", "hug", "un", "una", "s", "##u", "##g", "##s", "##able"}
for word, why in (
    ("hugx", "x is in no piece. The whole word is [UNK], although hug was found."),
    ("xhug", "x is in no piece. The whole word is [UNK], although hug would come after it."),
    ("huh", "h begins words only: ##h is no piece."),
    ("gs", "g continues words only: ##g is no beginning."),
    (
        "unable",
        "una is the longest beginning, and ##ble is no piece. That un and ##able would fit does not help: nobody goes back.",
    ),
):
    got = encode_word(word, pieces)
    rest = "One [UNK] stands for the whole word, and nothing beside it. "
    check_same(
        got,
        ["[UNK]"],
        f"The pieces of {word}",
        rest * (isinstance(got, list) and "[UNK]" in got) + why,
    )
letters = {"a", "##a", "é", "##é"}
for length, what in ((3, "with max_length 3"), (100, "if max_length is not given")):
    options = {"max_length": 3} if length == 3 else {}
    check_same(
        encode_word("a" * length, letters, **options),
        ["a"] + ["##a"] * (length - 1),
        f"The pieces of a word of {length} characters {what}",
        f"More than {length} is too long; {length} is not.",
        slips=((["[UNK]"], f"More than {length} characters is too long; {length} is not."),),
    )
    got = encode_word("a" * (length + 1), letters, **options)
    assert got == ["[UNK]"], (
        f"A word of {length + 1} characters {what} is too long, so it is [UNK]; yours has {len(got)} pieces."
    )
### BEGIN HIDDEN TESTS
# {compare:encode_word_unknown}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · Encode a text, and remember where each piece came from ({points:offsets} points)
#
# **Question: the model marks three pieces as an answer. Which characters of the text are they?**
#
# Before a text is cut into pieces it is *normalised*: capitals become small letters, accents go, characters that cannot be
# seen go. Then it is cut into words at spaces, and around each mark of punctuation and each Chinese character. The next cell
# does all that. It keeps, for each character of each word, its *span*: from where to where it stood in the text that was typed.
# Run it, and look at what it returns.

# %% nbgrader={"grade": false, "grade_id": "normaliser", "locked": true, "schema_version": 3, "solution": false, "task": false}
CHINESE = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))


def stands_alone(character):
    """Punctuation, ASCII's signs, and Chinese characters are words by themselves."""
    sign = "!" <= character <= "~" and not character.isalnum()
    chinese = any(first <= ord(character) <= last for first, last in CHINESE)
    return sign or chinese or unicodedata.category(character).startswith("P")


def split_words(text):
    """Normalise a text and cut it into words.

    returns a list of (word, spans): word[i] is what became of text[start:end] with (start, end) = spans[i]
    """
    words, open_word = [], False
    for place, typed in enumerate(text):
        for character in unicodedata.normalize("NFD", typed).lower():
            if character.isspace():
                open_word = False
            elif unicodedata.category(character) in ("Mn", "Cc", "Cf", "Co"):
                continue  # accents and what cannot be seen leave nothing behind
            elif open_word and not stands_alone(character):
                words[-1][0].append(character)
                words[-1][1].append((place, place + 1))
            else:
                words.append(([character], [(place, place + 1)]))
                open_word = not stands_alone(character)
    return [("".join(characters), spans) for characters, spans in words]


for word, spans in split_words("Crème  BRÛLÉE!"):
    print(word, spans)

# %% [markdown]
# Now encode a text. Each piece gets `(piece, start, end)`: `start` is where the span of its first character begins, `end`
# where the span of its last character ends, so that `text[start:end]` is what the piece stands for. The mark of a piece, `##` or
# another that is passed in, is not in the text. A word that is `[UNK]` gets one entry, from its first character to its last.


# %% nbgrader={"grade": false, "grade_id": "text", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(text, vocab, max_length=100, mark="##"):
    """Cut a text into pieces, each with its place in the text.

    vocab, max_length, mark: as in encode_word
    returns a list of tuples (piece, start, end)

    Example: "A hug" with {"a", "hu", "##g"} -> [("a", 0, 1), ("hu", 2, 4), ("##g", 4, 5)];
             with {"a", "hu", "@@g"} and mark "@@" -> [("a", 0, 1), ("hu", 2, 4), ("@@g", 4, 5)]
    """
    ### BEGIN SOLUTION
    encoded = []
    for word, spans in split_words(text):
        place = 0
        for piece in encode_word(word, vocab, max_length, mark):
            length = len(word) if piece == "[UNK]" else len(piece.removeprefix(mark))
            encoded.append((piece, spans[place][0], spans[place + length - 1][1]))
            place += length
    return encoded
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "offsets-spans", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("encode")
vocab = {"cre", "##me", "bru", "##lee", ",", "hug", "##s", "!"}
text = "Crème  brûlée, hugs!"
names = ["cre", "##me", "bru", "##lee", ",", "hug", "##s", "!"]
right = [(0, 3), (3, 5), (7, 10), (10, 13), (13, 14), (15, 18), (18, 19), (19, 20)]
with_places = lambda places: [(name, *place) for name, place in zip(names, places)]
in_bytes = [tuple(len(text[:place].encode()) for place in span) for span in right]
single = [(a - (a > 6), b - (b > 6)) for a, b in right]
inside = [(0, 3), (3, 5), (0, 3), (3, 6), (0, 1), (0, 3), (3, 4), (0, 1)]
glued = [(0, 3), (3, 5), (5, 8), (8, 11), (11, 12), (12, 15), (15, 16), (16, 17)]
whole = [(0, 5), (0, 5), (7, 13), (7, 13), (13, 14), (15, 19), (15, 19), (19, 20)]
check_same(
    encode(text, vocab),
    with_places(right),
    f"What becomes of {text!r}",
    "Its start is that of the span of its first character, its end that of its last: spans[place + length - 1][1].",
    slips=(
        (names, "Each entry is a tuple (piece, start, end)."),
        (with_places(in_bytes), "You count bytes; è is two bytes but one character."),
        (
            with_places(single),
            "Your places are those in the normalised text. There are two spaces here.",
        ),
        (
            with_places(inside),
            "You count from the start of each word, not of the text: use the spans.",
        ),
        (
            [(name, start, start + len(name)) for name, (start, _) in zip(names, right)],
            "## is not in the text: do not count it for the length of a piece.",
        ),
        (with_places(glued), "Your places leave out the spaces: use the spans."),
        (
            with_places(whole),
            "Every piece of a word gets the span of the whole word. Count on from piece to piece.",
        ),
        (
            with_places([(a, b - 1) for a, b in right]),
            "The end is the place behind the last character, as in text[start:end].",
        ),
        (
            [(piece, [start, end]) for piece, start, end in with_places(right)],
            "Each entry is a tuple of three, (piece, start, end).",
        ),
        (
            [(piece, (start, end)) for piece, start, end in with_places(right)],
            "Each entry is a tuple of three, (piece, start, end).",
        ),
    ),
)
check_same(
    encode("Waffles, hugs", vocab),
    [("[UNK]", 0, 7), (",", 7, 8), ("hug", 9, 12), ("##s", 12, 13)],
    "What becomes of 'Waffles, hugs' (no piece fits waffles)",
    "[UNK] stands for all of the word, whose 7 characters begin at 0; what comes after it is found as before.",
    slips=(
        (
            [("[UNK]", 0, 5), (",", 7, 8), ("hug", 9, 12), ("##s", 12, 13)],
            "[UNK] has 5 characters, but the word that it stands for has 7.",
        ),
    ),
)
check_same(
    encode("Hugs, crème", {"cre", "@@me", ",", "hug", "@@s"}, mark="@@"),
    [("hug", 0, 3), ("@@s", 3, 4), (",", 4, 5), ("cre", 6, 9), ("@@me", 9, 11)],
    "With mark @@, what becomes of 'Hugs, crème'",
    "Hand the mark on to encode_word, and do not count it for the length of a piece.",
)
### BEGIN HIDDEN TESTS
# {compare:offsets_spans}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "offsets-unicode", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
vocab = {"cafe", "ca", "##fe", "noir", "hug", "東", "京"}
typed = "Cafe\u0301 noir"  # é typed as e and an accent of its own: two characters, of which one is left
check_same(
    encode(typed, vocab),
    [("cafe", 0, 4), ("noir", 6, 10)],
    "What becomes of 'Cafe\\u0301 noir' (its accent is a character of its own)",
    "The accent leaves nothing behind, but it takes up a place in the text. Use the spans; do not count up yourself.",
)
check_same(encode("", vocab), [], "What becomes of an empty text")
check_same(
    encode("東京", vocab),
    [("東", 0, 1), ("京", 1, 2)],
    "What becomes of 東京 (two words)",
    "Each word begins anew: no ## there.",
)
check_same(
    encode(typed, {"ca", "~~~fe", "no", "~~~ir"}, mark="~~~"),
    [("ca", 0, 2), ("~~~fe", 2, 4), ("no", 6, 8), ("~~~ir", 8, 10)],
    "With mark ~~~, what becomes of 'Cafe\\u0301 noir'",
    "Hand the mark on to encode_word, and do not count it for the length of a piece.",
)
### BEGIN HIDDEN TESTS
# {compare:offsets_unicode}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · Decode ({points:decode} points)
#
# **Question: what can be read back from ids?**
#
# The id of a piece is its place in the vocabulary. To read ids, write the pieces with a space between two, except before
# a piece with `##`, which is glued to what stands before it, without its `##`. `[PAD]`, `[CLS]`, `[SEP]` and `[MASK]` stand for
# no text: leave them out. `[UNK]` stays, to show that something was lost. Spaces before punctuation stay, too.


# %% nbgrader={"grade": false, "grade_id": "ids-to-text", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode(ids, vocab):
    """Read ids as text.

    ids:   list of ints; the first piece that is not left out begins a word
    vocab: list of pieces
    returns a string, without spaces at its ends

    Example: [1, 3, 4, 0], vocab ["[PAD]", "[CLS]", "[SEP]", "hug", "##s"] -> "hugs"
    """
    ### BEGIN SOLUTION
    text = ""
    for piece in (vocab[number] for number in ids):
        if piece.startswith("##"):
            text += piece[2:]
        elif piece not in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"):
            text += " " + piece
    return text.strip()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "decode-text", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("decode")
vocab = [*SPECIALS, "a", "hug", "##s", "##ging", "un", "##hug", "##able", "!", "#"]
check_same(
    decode([9, 10, 11, 6, 7, 12], vocab),
    "unhugable hugs !",
    "The text of un ##hug ##able hug ##s !",
    "A space between two pieces, but none before a piece with ##.",
    slips=(
        (
            "un ##hug ##able hug ##s !",
            "Glue a piece with ## to what stands before it, and drop the ##.",
        ),
        (
            "un hug able hug s !",
            "Glue a piece with ## to what stands before it: no space there.",
        ),
        ("un##hug##able hug##s !", "Drop the ## when you glue."),
        ("unhugablehugs!", "Words are separated by a space; only pieces with ## are glued."),
        (
            "unhugable hugs!",
            "Leave the space before punctuation; it is simpler, and what is asked for.",
        ),
        (" unhugable hugs !", "There is a space at the start."),
        ("unhugable hugs ! ", "There is a space at the end."),
    ),
)
check_same(
    decode([2, 6, 1, 4, 5, 3, 0, 0], vocab),
    "hug [UNK] a",
    "The text of [CLS] hug [UNK] [MASK] a [SEP] [PAD] [PAD]",
    "[PAD], [CLS], [SEP] and [MASK] stand for no text, [UNK] does; and there are no spaces at the ends.",
    slips=(
        (
            "[CLS] hug [UNK] [MASK] a [SEP] [PAD] [PAD]",
            "Leave out [PAD], [CLS], [SEP] and [MASK].",
        ),
        ("hug a", "[UNK] stays: it shows that something was lost."),
        ("hug [UNK] [MASK] a", "[MASK] stands for no text either."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:decode}
### END HIDDEN TESTS

# %% [markdown]
# ### Your pieces, on real words
#
# Python's own modules bring their documentation with them: real English, on any machine, without a network. The next cells train
# on the words that occur there at least eight times, once with WordPiece's score and once with plain frequency, and then let your
# `encode` loose on words that are not there. They take a few seconds. The counts depend a little on your version of Python.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "corpus", "locked": true, "schema_version": 3, "solution": false, "task": false}
import importlib
import inspect
import time

MODULES = """
argparse ast asyncio calendar collections configparser contextlib copy csv dataclasses datetime decimal difflib email
fractions functools heapq html http.client imaplib inspect io ipaddress itertools json logging mailbox math numbers os
pathlib pickle pickletools platform pprint random re sched shutil smtplib socket sqlite3 ssl statistics string
subprocess tarfile tempfile textwrap threading timeit traceback typing unittest urllib.request uuid warnings
weakref xml.etree.ElementTree zipfile
"""


def documentation(names):
    """What the modules say about themselves, their functions and their classes."""
    for name in names:
        module = importlib.import_module(name)
        yield inspect.getdoc(module) or ""
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) == module.__name__:
                methods = vars(thing).values() if inspect.isclass(thing) else ()
                for described in (thing, *filter(inspect.isfunction, methods)):
                    yield inspect.getdoc(described) or ""


words = Counter(w for text in documentation(MODULES.split()) for w, _ in split_words(text))
often = sorted(word for word in words if words[word] >= 8 and word.isascii() and word.isalpha())
held_out = often[::10]  # every tenth word is kept back
training = {word: words[word] for word in often if word not in set(held_out)}
print(
    f"{sum(training.values())} words, {len(training)} different; {len(held_out)} others are kept back"
)

found = {}
for name, score in (
    ("WordPiece", pair_scores),
    ("frequency", frequency),
):
    start = time.process_time()
    found[name] = train(training, 250, score=score)
    print(
        f"\n{name}: {len(found[name][0])} entries in {time.process_time() - start:.0f} s; the first merges,"
    )
    counts_at_start = count_pieces({word: first_pieces(word) for word in training}, training)[1]
    print(
        ", ".join(
            f"{join(*pair)} ({counts_at_start[pair] or 'new'})" for pair in found[name][1][:12]
        )
    )
print("\nIn brackets: how often the pair occurs before anything is merged.")

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "pieces-per-word", "locked": true, "schema_version": 3, "solution": false, "task": false}
characters = [piece for piece in found["WordPiece"][0] if len(piece.removeprefix("##")) == 1]
print("pieces per word, on the words kept back\n")
print(f"{'entries':>20} {'characters':>11} {'WordPiece':>11} {'frequency':>11}")
for size in (100, 150, 200, 250):
    row = [
        set(characters),
        *(set(found[name][0][:size]) for name in ("WordPiece", "frequency")),
    ]
    means = [sum(len(encode_word(w, vocab)) for w in held_out) / len(held_out) for vocab in row]
    print(f"{size:20} " + " ".join(f"{mean:11.2f}" for mean in means))
print()
for name, (vocab, _) in found.items():
    for text in ("undocumented exceptions", "zeitgeist", "naïve café", "ελληνικά"):
        encoded = encode(text, set(vocab))
        ids = [vocab.index(piece) for piece, _, _ in encoded]
        print(f"{name}: {text} -> {' '.join(p for p, _, _ in encoded)} -> {decode(ids, vocab)}")

# %% [markdown]
# ## Part 7 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# A model reads so many pieces at once and no more, BERT 512. A longer text is read in *windows*, and each begins with some words of the one before, so that no word is read
# without its neighbours. Somebody, or something, wrote `windows(pieces, room, overlap)`. You do not see its code. Write `check_windows(implementation)`, which raises an error if
# an implementation is wrong and returns nothing if it is right. This is what a right one does:
#
# * `pieces` is a list of strings, a text that is cut into pieces. It stays as it is. `room` is how many pieces a window may have, at least 1; `overlap` is an integer from 0
#   to `room` - 1.
# * A piece that begins with `##`, be it `##` and nothing else, goes on with the word before it. Every other piece begins a word, and so does the first of the list, whatever it is.
# * A window holds words that follow each other, each with all its pieces. The first window begins with the first word.
# * A window takes as many words as have room in it. A window that has the last word is the last one.
# * Each later window repeats the last words of the one before: as many whole words as have at most `overlap` pieces together. But it must have room for the next word,
#   the first that no window has yet. If it has not, it repeats fewer words, as many as leave that room, or none.
# * It returns a list of tuples `(start, end)`, one for each window in their order: the window is `pieces[start:end]`. Without pieces there are no windows.
# * A word of more than `room` pieces raises a `ValueError`, wherever it stands.
# * There may be hundreds of windows, and an answer depends on no earlier call.
#
# For example, the pieces hug, pug, ##s, bun, pun with room 3 and overlap 1 give [(0, 3), (3, 5)]: two pieces, pug and ##s, are more than 1. With overlap 2 they
# give [(0, 3), (1, 4), (3, 5)].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_windows(implementation):
    """Raise an error if an implementation of `windows` is wrong; return nothing if it is right."""
    ### BEGIN SOLUTION
    words, signs = "a b ##c d ##e ##f g", "##x ##y # #z x## ## x##"
    examples = [  # words: 1, 2, 3 and 1 piece; signs: 2, 1, 1, 2 and 1
        (words, 3, 2, [(0, 3), (3, 6), (6, 7)]),
        (words, 4, 2, [(0, 3), (3, 7)]),
        (words, 5, 3, [(0, 3), (1, 6), (3, 7)]),
        (words, 6, 2, [(0, 6), (6, 7)]),
        (words, 6, 3, [(0, 6), (3, 7)]),
        (words, 7, 6, [(0, 7)]),
        (signs, 2, 1, [(0, 2), (2, 4), (4, 6), (6, 7)]),
        (signs, 3, 2, [(0, 3), (2, 4), (3, 6), (4, 7)]),
        ("a b c d ##e g", 4, 3, [(0, 3), (1, 5), (2, 6)]),
        ("a b ##c d e", 4, 3, [(0, 4), (1, 5)]),
        ("a b ##c d e ##f ##g", 5, 3, [(0, 4), (3, 7)]),
        ("a a a a a a", 5, 0, [(0, 5), (5, 6)]),
        ("a a a a a", 4, 1, [(0, 4), (3, 5)]),
        ("a " * 300, 3, 2, [(n, n + 3) for n in range(298)]),
        ("##a", 1, 0, [(0, 1)]),
        ("", 1, 0, []),
    ]
    for text, room, overlap, wanted in examples:
        pieces = text.split()
        assert implementation(pieces, room, overlap) == wanted, text
        assert pieces == text.split(), "the list is changed"
    for text, room in ((words, 2), ("a ##b", 1), ("##a ##b c", 1), ("a b ##c ##d e", 2)):
        try:
            implementation(text.split(), room, 0)
        except ValueError:
            continue
        raise AssertionError(f"{text}: a word has more than {room} pieces")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_windows}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_windows hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 8 · What the two scores prefer ({points:explain-scores} points)
#
# Look at what the two cells under *Your pieces, on real words* printed. In at most 150 words:
#
# 1. How frequent are the first pairs that WordPiece's score merges, and how frequent those that plain frequency merges? Say from
#    the formula why.
# 2. At 250 entries, which vocabulary cuts unseen words into fewer pieces? Give both numbers, and the reason.
# 3. Which column is the control, and what would you conclude if the other two looked like it?
#
# **How it is marked.** Each line earns one of the {points:explain-scores} points:
#
# * Pairs and frequencies are those of your own lists.
# * The reason is read off the formula.
# * Both numbers at 250 entries are cited, with a reason.
# * The control is named, with what it would mean if the others looked like it.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain-scores", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It names pairs and frequencies from the printed lists: with plain frequency all are frequent, with WordPiece's
#   score most are much rarer.
# * It says that dividing by the parts' frequencies favours a part that occurs hardly anywhere else, as q before u.
# * It gives both numbers at 250 entries, and says that pieces made of rare pairs fit few words.
# * It names the column of characters, and says that vocabularies which do no better have learned nothing of use.
#
# **All of it:**
#
# (The numbers are those of Python 3.11's documentation; go by what the student's own cells printed.)
#
# WordPiece's score begins with bj, ex, eq, qu and xz: none occurs a thousand times, xz only 8 times. Plain frequency begins
# with he, er, on and in, each of which occurs thousands of times. The score divides by the frequencies of both parts. So it is
# greatest where one part hardly occurs without the other: j after b, q before u. At 250 entries plain frequency cuts an unseen
# word into 4.1 pieces, WordPiece's score into 6.3: its entries come from rare pairs and fit few words. The characters are the
# control, with 6.6 pieces. If both vocabularies looked like that, their entries would not occur in other words at all,
# and training would have learned nothing of use.
#
# **Two of four:** WordPiece merges bj, ex and eq first, which are rare, plain frequency he, er and on, which are
# frequent (counts cited). At 250 entries frequency needs fewer pieces (both numbers cited), because rare pairs fit
# few words. The score is normalised. The characters are the smallest vocabulary.
#
# **None of it:** WordPiece is the better score because it is used in BERT. It finds pairs that belong together, and
# frequency finds pairs that are frequent. The larger the vocabulary, the fewer pieces.
# ### END SOLUTION

# %% [markdown]
# ## Part 9 · What is lost ({points:explain-lost} points)
#
# In at most 100 words: of *naïve café* and *ελληνικά*, what comes back after decoding, and what is lost at which step
# (normalising, or encoding)? The loss of one of the two could be mended by another corpus. Which one, and how?
#
# **How it is marked.** Each line earns one of the {points:explain-lost} points:
#
# * You say what becomes of the first text, and at which step.
# * You say what becomes of the second, and at which step.
# * You say which of the two losses another corpus mends, and why not the other.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain-lost", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It says that the accents of *naïve café* are lost in normalising, before any piece is looked up.
# * It says that *ελληνικά* is lost in encoding, as [UNK], because the training corpus had no Greek letter.
# * It says that a corpus with Greek words would put Greek letters into the vocabulary, but that no corpus brings the
#   accents back.
#
# **All of it:**
#
# *naïve café* comes back as naive cafe. The accents went in normalising, before a piece was looked up, so no vocabulary can
# bring them back; only another normaliser could. *ελληνικά* comes back as [UNK]: its letters are not in the
# vocabulary, because the corpus held none, so encoding fails at the first character. A corpus with Greek words would put
# the letters among the first pieces, and the word could at least be spelled.
#
# **Two of three:** The accents are gone after normalising. The Greek word is [UNK], because its letters are not in the
# vocabulary. A larger corpus would mend both.
#
# **None of it:** Both lose something because the tokenizer was trained on English. A larger vocabulary would help.
# ### END SOLUTION
