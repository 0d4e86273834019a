"""Wrong answers to the WordPiece assignment that people give, and right answers that people write differently.

A change is either a pair (text in the reference, text to put there) or the whole cell. "visible" means that the tests
that the student has refuse it already; "hidden" that only the grader's do. Longer than 400 lines because it is a
catalogue: look an entry up, do not read it through.
"""

from course_tools.grading.assignments.mutants import (
    Changes,
    Mutant,
    RightAnswer,
    wrong_checks,
)

TRAIN = ("train-example", "train-rules", "train-ties")
OFFSETS = ("offsets-spans", "offsets-unicode")


def mutants_of(solution: str, cell: str, *rows: tuple) -> list[Mutant]:
    """Mutants of one solution cell that one test cell must refuse.

    A row is (name, mistake, change, words, caught), and the cells that fail with it, if any.
    """
    return [
        Mutant(name, mistake, cell, words, caught, {solution: change}, tuple(also))
        for name, mistake, change, words, caught, *also in rows
    ]


FIRST_PIECES = mutants_of(
    "first-pieces",
    "scores-first-pieces",
    (
        "characters_without_prefix",
        "cuts the word into characters and forgets ##",
        ("[word[0], *(mark + character for character in word[1:])]", "list(word)"),
        "Every character but the first gets ## in front.",
        "visible",
        *TRAIN,
    ),
    (
        "prefix_on_all_characters",
        "puts ## in front of the first character, too",
        (
            "[word[0], *(mark + character for character in word[1:])]",
            "[mark + character for character in word]",
        ),
        "The first character begins the word",
        "visible",
        *TRAIN,
    ),
    (
        "prefix_on_the_second_character_alone",
        "puts ## where the rest begins, and not in front of each character of it",
        (
            "*(mark + character for character in word[1:])",
            "*(mark * (i == 0) + c for i, c in enumerate(word[1:]))",
        ),
        "not the second alone",
        "visible",
        *TRAIN,
    ),
    (
        "prefix_behind",
        "writes the mark behind the piece that goes on",
        (
            "[word[0], *(mark + character for character in word[1:])]",
            "[*(character + mark for character in word[:-1]), word[-1]]",
        ),
        "in front of a piece that continues a word",
        "visible",
        *TRAIN,
    ),
    (
        "mark_of_bert_alone",
        "writes ## whatever mark is passed in",
        ("(mark + character", '("##" + character'),
        "Write the mark that is passed in",
        "visible",
    ),
    (
        "rest_in_one_piece",
        "cuts off the first character only",
        (
            "*(mark + character for character in word[1:])",
            "*[mark + word[1:]] * (len(word) > 1)",
        ),
        "Cut the rest of the word into characters",
        "visible",
        *TRAIN,
    ),
    (
        "characters_as_bytes",
        "cuts the word into bytes, which are characters in English only",
        (
            "return [word[0], *(mark + character for character in word[1:])]",
            "letters = [chr(byte) for byte in word.encode()]\n    return [letters[0], *(mark + c for c in letters[1:])]",
        ),
        "With a word of letters with accents, the list of pieces",
        "hidden",
        "train-ties",
    ),
)

COUNTS = mutants_of(
    "count",
    "scores-counts",
    (
        "words_counted_once_for_pieces",
        "ignores how often a word occurs when it counts pieces",
        ("piece_counts[piece] += counts[word]", "piece_counts[piece] += 1"),
        "Each word counts as often as counts says",
        "visible",
        *TRAIN,
    ),
    (
        "words_counted_once_for_pairs",
        "ignores how often a word occurs when it counts pairs",
        ("pair_counts[pair] += counts[word]", "pair_counts[pair] += 1"),
        "Each word counts as often as counts says",
        "visible",
        *TRAIN,
    ),
    (
        "pieces_once_a_word",
        "counts a piece once a word, however often it stands there",
        ("for piece in pieces:", "for piece in set(pieces):"),
        "it counts twice",
        "visible",
        "train-ties",
    ),
    (
        "pairs_once_a_word",
        "counts a pair once a word, however often it stands there",
        ("itertools.pairwise(pieces)", "set(itertools.pairwise(pieces))"),
        "also where a pair comes back in its word",
        "hidden",
        "train-ties",
    ),
    (
        "pairs_that_do_not_overlap",
        "jumps over both parts after each pair, as a merge does",
        (
            "        for pair in itertools.pairwise(pieces):\n",
            "        place = -1\n        for start, pair in enumerate(itertools.pairwise(pieces)):\n"
            "            if pair[0] == pair[1] and start == place + 1 and start > 0 and pieces[start - 1] == pair[0]:\n"
            "                continue\n            place = start\n",
        ),
        "although two places overlap",
        "hidden",
        "train-ties",
    ),
    (
        "pairs_across_words",
        "lines all words up before it looks for neighbours",
        (
            "        for pair in itertools.pairwise(pieces):\n            pair_counts[pair] += counts[word]\n",
            "    lined_up = [(p, w) for w, pieces in splits.items() for p in pieces]\n"
            "    for (left, word), (right, _) in itertools.pairwise(lined_up):\n"
            "        pair_counts[left, right] += counts[word]\n",
        ),
        "of neighbours in one word",
        "visible",
        *TRAIN,
    ),
    (
        "pairs_wrong_way_round",
        "puts the right neighbour first",
        ("pair_counts[pair] +=", "pair_counts[pair[::-1]] +="),
        "the wrong way round",
        "visible",
        *TRAIN,
    ),
    (
        "pieces_without_prefix",
        "counts s and ##s as one piece",
        ("piece_counts[piece] +=", 'piece_counts[piece.removeprefix("##")] +='),
        "two different pieces",
        "visible",
        *TRAIN,
    ),
    (
        "pairs_as_strings",
        "writes a pair as one string",
        ("pair_counts[pair] +=", 'pair_counts["".join(pair)] +='),
        "A key is a pair with a comma",
        "visible",
        *TRAIN,
    ),
    (
        "rare_words_counted",
        "counts all words, as the library does",
        ("        if counts[word] < least:\n            continue\n", ""),
        "Leave out the words that occur fewer than `least` times",
        "visible",
    ),
    (
        "words_of_just_least_left_out",
        "leaves words out that occur just often enough",
        ("if counts[word] < least:", "if counts[word] <= least and least > 1:"),
        "A word that occurs just `least` times is counted",
        "visible",
    ),
    (
        "rare_pieces_left_out",
        "counts all words, and leaves out pieces and pairs that are rare",
        (
            "return piece_counts, pair_counts",
            "piece_counts, pair_counts = Counter(), Counter()\n"
            "    for word, pieces in splits.items():\n"
            "        for piece in pieces:\n            piece_counts[piece] += counts[word]\n"
            "        for pair in itertools.pairwise(pieces):\n            pair_counts[pair] += counts[word]\n"
            "    return tuple(Counter({k: n for k, n in table.items() if n >= least}) for table in (piece_counts, pair_counts))",
        ),
        "It is words that must occur so often",
        "visible",
    ),
    (
        "counts_in_a_list",
        "returns a list of the two tables",
        ("return piece_counts, pair_counts", "return [piece_counts, pair_counts]"),
        "yours returns a list",
        "visible",
    ),
    (
        "counts_not_returned",
        "counts, and returns nothing",
        ("return piece_counts, pair_counts", "piece_counts, pair_counts"),
        "Did you forget return?",
        "visible",
        *TRAIN,
    ),
)

FRACTION = "Fraction(count - discount, piece_counts[left] * piece_counts[right])"
SCORES = mutants_of(
    "score",
    "scores-values",
    (
        "frequency_for_a_score",
        "takes the frequency of the pair, as byte-pair encoding does",
        (FRACTION, "Fraction(count - discount)"),
        "byte-pair encoding, not WordPiece",
        "visible",
        *TRAIN,
    ),
    (
        "divided_by_the_left_part",
        "divides by the frequency of the left part alone: the probability of the right one after it",
        (FRACTION, "Fraction(count - discount, piece_counts[left])"),
        "not of the left one alone",
        "visible",
        *TRAIN,
    ),
    (
        "divided_by_the_right_part",
        "divides by the frequency of the right part alone",
        (FRACTION, "Fraction(count - discount, piece_counts[right])"),
        "not of the right one alone",
        "visible",
        *TRAIN,
    ),
    (
        "divided_by_the_sum",
        "adds the frequencies of the parts",
        (
            FRACTION,
            "Fraction(count - discount, piece_counts[left] + piece_counts[right])",
        ),
        "yours adds them",
        "visible",
        *TRAIN,
    ),
    (
        "discount_from_the_score",
        "takes the discount from the score, after the division",
        (
            FRACTION,
            "Fraction(count, piece_counts[left] * piece_counts[right]) - discount",
        ),
        "Take the discount from the frequency of the pair",
        "visible",
    ),
    (
        "score_as_a_float",
        "divides with /, one part after the other, so that equal scores differ in the last digit",
        (FRACTION, "(count - discount) / piece_counts[left] / piece_counts[right]"),
        "floats are rounded",
        "visible",
        "train-example",
        "train-rules",
    ),
    (
        "score_as_one_float",
        "divides with /, once",
        (FRACTION, "(count - discount) / (piece_counts[left] * piece_counts[right])"),
        "The formula is right, but floats are rounded",
        "visible",
    ),
    (
        "fraction_of_a_float",
        "makes a fraction of a number that is rounded already",
        (
            FRACTION,
            "Fraction((count - discount) / (piece_counts[left] * piece_counts[right]))",
        ),
        "/ rounds before Fraction sees the number",
        "visible",
    ),
    (
        "fraction_with_a_small_denominator",
        "rounds the fraction, which small counts do not show",
        (FRACTION, f"{FRACTION}.limit_denominator(10**6)"),
        "10^17",
        "hidden",
    ),
    (
        "tables_used_up",
        "takes each pair out of the table that it is given",
        (
            "    return {\n        (left, right): "
            + FRACTION
            + "\n        for (left, right), count in pair_counts.items()\n    }",
            "    scores = {}\n    while pair_counts:\n        (left, right), count = pair_counts.popitem()\n"
            "        scores[left, right] = " + FRACTION + "\n    return scores",
        ),
        "must leave its input as it was",
        "hidden",
        *TRAIN,
    ),
)

KEY = "(-scores[pair], -pair_counts[pair], pair)"
BEST = mutants_of(
    "best",
    "merge-best",
    (
        "ties_by_the_order_of_the_dict",
        "leaves ties to max(), which takes the first that it meets",
        (f"min(scores, key=lambda pair: {KEY})", "max(scores, key=scores.get)"),
        "Two share the greatest score",
        "visible",
        *TRAIN,
    ),
    (
        "ties_by_hash_order",
        "looks through a set, whose order changes from run to run",
        (
            f"min(scores, key=lambda pair: {KEY})",
            f"min(set(scores), key=lambda pair: {KEY[:-7]}))",
        ),
        "not the first that the dict or a set happens to give",
        "visible",
        "train-ties",
    ),
    (
        "ties_by_order_of_the_dict_after_frequency",
        "compares scores and frequencies, and leaves the rest to the order of the dict",
        (KEY, f"{KEY[:-7]})"),
        "not the first that the dict or a set happens to give",
        "visible",
        "train-ties",
    ),
    (
        "ties_without_frequency",
        "goes from the score to string order at once",
        (KEY, "(-scores[pair], pair)"),
        "of these, take the more frequent",
        "visible",
        *TRAIN,
    ),
    (
        "ties_to_the_rarest",
        "takes the rarest pair among equal scores",
        (KEY, "(-scores[pair], pair_counts[pair], pair)"),
        "of these, take the more frequent",
        "visible",
        *TRAIN,
    ),
    (
        "ties_to_the_last_in_string_order",
        "takes the greatest of everything, the string, too",
        (
            f"min(scores, key=lambda pair: {KEY})",
            "max(scores, key=lambda p: (scores[p], pair_counts[p], p))",
        ),
        "take the first in string order",
        "visible",
        "train-ties",
    ),
    (
        "string_order_without_prefix",
        "drops ## before it compares strings",
        (KEY, f"{KEY[:-7]}, [piece.removeprefix('##') for piece in pair])"),
        "then the pairs themselves",
        "hidden",
        "train-ties",
    ),
    (
        "ties_by_the_new_piece",
        "compares what the pairs would make, not the pairs",
        (KEY, f"{KEY[:-7]}, pair[0] + pair[1][2:])"),
        "then the pairs themselves",
        "hidden",
        "train-ties",
    ),
    (
        "scores_compared_as_floats",
        "turns scores into floats, in which close ones are equal",
        ("-scores[pair]", "-float(scores[pair])"),
        "compare the fractions, not floats",
        "hidden",
        "train-example",
    ),
    (
        "smallest_score",
        "takes the smallest score",
        ("-scores[pair]", "scores[pair]"),
        "Take the greatest score",
        "visible",
        *TRAIN,
    ),
    (
        "most_frequent_pair",
        "takes the most frequent pair, whatever the scores",
        (KEY, "(-pair_counts[pair], pair)"),
        "Take the greatest score, whatever the frequencies",
        "visible",
        *TRAIN,
    ),
    (
        "pairs_without_a_score",
        "chooses among all pairs that were counted, also those that were left out",
        ("min(scores,", "min(pair_counts,"),
        "KeyError",
        "hidden",
        "train-rules",
    ),
)

JOIN = "left + right.removeprefix(mark)"
LOOP = """    merged, place = [], 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            merged.append(join(*pair, mark))
            place += 2
        else:
            merged.append(pieces[place])
            place += 1
    return merged"""
MERGE = mutants_of(
    "merge",
    "merge-pair",
    (
        "prefix_inside",
        "leaves the ## of the right piece in the middle",
        (JOIN, "left + right"),
        "it is inside the word now",
        "visible",
        *TRAIN,
    ),
    (
        "prefix_lost",
        "drops both ##",
        (JOIN, '(left + right).replace(mark, "")'),
        "keeps its ##",
        "visible",
        *TRAIN,
    ),
    (
        "prefix_always",
        "puts ## in front of everything that comes from a merge",
        (JOIN, 'mark + (left + right).replace(mark, "")'),
        "The left piece begins the word",
        "visible",
        *TRAIN,
    ),
    (
        "mark_not_passed_to_join",
        "joins with ## whatever the pieces are marked with",
        ("join(*pair, mark)", "join(*pair)"),
        "Pass the mark on to join",
        "visible",
    ),
    (
        "merges_overlap",
        "uses a piece again that has been merged already",
        (
            LOOP,
            "    merged = [pieces[0]]\n    for left, right in itertools.pairwise(pieces):\n"
            "        if (left, right) == pair:\n            merged[-1:] = [join(*pair, mark)]\n"
            "            if len(merged) > 1 and left == right and merged[-2] == merged[-1]:\n                pass\n"
            "        else:\n            merged.append(right)\n"
            "    runs = [join(*pair, mark) for p in itertools.pairwise(pieces) if p == pair]\n"
            "    return merged if len(runs) < 2 or pair[0] != pair[1] else [pieces[0], *runs][: len(pieces) - 1]",
        ),
        "uses the middle ##a twice",
        "visible",
        "train-ties",
    ),
    (
        "first_occurrence_only",
        "merges the pair where it stands first, and no further",
        (
            "if tuple(pieces[place : place + 2]) == pair:",
            "if tuple(pieces[place : place + 2]) == pair and join(*pair, mark) not in merged:",
        ),
        "wherever it stands, not only the first time",
        "visible",
        "train-ties",
    ),
    (
        "merges_from_the_right",
        "goes from right to left",
        (
            LOOP,
            "    merged, place = [], len(pieces)\n    while place > 0:\n"
            "        if place > 1 and tuple(pieces[place - 2 : place]) == pair:\n"
            "            merged.insert(0, join(*pair, mark))\n            place -= 2\n"
            "        else:\n            merged.insert(0, pieces[place - 1])\n            place -= 1\n    return merged",
        ),
        "Go from left to right",
        "visible",
        "train-ties",
    ),
    (
        "list_changed_in_place",
        "changes the list that it is given",
        (
            LOOP,
            "    place = 0\n    while place < len(pieces) - 1:\n        if tuple(pieces[place : place + 2]) == pair:\n"
            "            pieces[place : place + 2] = [join(*pair, mark)]\n        place += 1\n    return pieces",
        ),
        "must leave the list that it is given as it was",
        "visible",
    ),
    (
        "merge_by_replacing_text",
        "joins the word with spaces and replaces text, which also finds the end of one piece and the start of the next",
        (
            LOOP,
            '    return " ".join(pieces).replace(" ".join(pair), join(*pair, mark)).split(" ")',
        ),
        "Compare whole pieces",
        "visible",
        *TRAIN,
    ),
    (
        "either_order_merged",
        "merges the two in either order",
        (
            "tuple(pieces[place : place + 2]) == pair",
            "sorted(pieces[place : place + 2]) == sorted(pair)",
        ),
        "The left one must come first",
        "visible",
        *TRAIN,
    ),
    (
        "prefix_ignored_in_comparison",
        "takes l and ##l for one piece",
        (
            "tuple(pieces[place : place + 2]) == pair",
            '[p.removeprefix("##") for p in pieces[place : place + 2]] == [p.removeprefix("##") for p in pair]',
        ),
        "two different pieces",
        "visible",
        *TRAIN,
    ),
    (
        "last_piece_lost",
        "stops before the last piece",
        ("while place < len(pieces):", "while place < len(pieces) - 1:"),
        "With (##g, ##s) merged, ##s ##g",
        "visible",
        *TRAIN,
    ),
)

PAIR_LINES = """        piece_counts, pair_counts = count_pieces(splits, counts)
        scores = score(piece_counts, pair_counts)
"""
TRAIN_EXAMPLE = mutants_of(
    "train",
    "train-example",
    (
        "stops_one_early",
        "stops one entry before the vocabulary is full",
        ("while len(vocab) < vocab_size:", "while len(vocab) < vocab_size - 1:"),
        "You stop one merge early",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "stops_one_late",
        "goes on when the vocabulary is full",
        ("while len(vocab) < vocab_size:", "while len(vocab) <= vocab_size:"),
        "You go on one merge too long",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "score_ignored",
        "scores with pair_scores, whatever is passed in",
        ("scores = score(", "scores = pair_scores("),
        "even though another `score` is passed in",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "trains_byte_pairs",
        "takes frequencies for scores",
        ("scores = score(piece_counts, pair_counts)", "scores = dict(pair_counts)"),
        "That is byte-pair encoding",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "counted_once",
        "counts and scores once, before the first merge",
        (
            "    while len(vocab) < vocab_size:\n" + PAIR_LINES,
            PAIR_LINES.replace("        ", "    ")
            + "    while len(vocab) < vocab_size:\n        scores = {p: scores[p] for p in scores if p not in merges}\n",
        ),
        "Count and score anew after each merge",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "pieces_counted_once",
        "keeps the piece counts of the start, and adds only those of new pieces",
        (
            "    while len(vocab) < vocab_size:\n" + PAIR_LINES,
            "    at_start = count_pieces(splits, counts)[0]\n    while len(vocab) < vocab_size:\n"
            "        now, pair_counts = count_pieces(splits, counts)\n"
            "        scores = score({**now, **at_start}, pair_counts)\n",
        ),
        "Count and score anew after each merge",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "alphabet_in_order_of_appearance",
        "lists the first pieces as they appear",
        (
            "*sorted({piece for pieces in splits.values() for piece in pieces})",
            "*dict.fromkeys(p for pieces in splits.values() for p in pieces)",
        ),
        "then first pieces in string order",
        "visible",
        "train-rules",
    ),
    (
        "new_pieces_sorted",
        "sorts the whole vocabulary at the end",
        (
            "return vocab, merges",
            "return [*specials, *sorted(vocab[len(specials) :])], merges",
        ),
        "then new pieces as they were made",
        "visible",
        "train-rules",
    ),
    (
        "vocabulary_as_a_set",
        "returns a set, in which pieces have no place",
        ("return vocab, merges", "return set(vocab), merges"),
        "the vocabulary must be a list; yours is a set",
        "visible",
        "train-rules",
    ),
    (
        "merges_as_strings",
        "writes down the new piece instead of the pair",
        ("merges.append(pair)", "merges.append(join(*pair))"),
        "merge 1 must be ('##g', '##s'); yours is ##gs",
        "visible",
        "train-rules",
        "train-ties",
    ),
    (
        "ready_made_trainer",
        "calls the library's trainer",
        (
            "    splits = {word: first_pieces(word) for word in counts}\n",
            "    from course_lib.wordpiece.training import train_wordpiece\n"
            "    splits = {word: first_pieces(word) for word in counts}\n",
        ),
        "imports course_lib.wordpiece.training.train_wordpiece, which this assignment withholds",
        "visible",
        "train-rules",
        "train-ties",
    ),
)

TRAIN_RULES = mutants_of(
    "train",
    "train-rules",
    (
        "specials_hard_coded",
        "begins with BERT's special tokens, whatever is passed in",
        ("vocab = [*specials,", "vocab = [*SPECIALS,"),
        "Begin with the special tokens that are passed in",
        "visible",
        "train-ties",
    ),
    (
        "specials_forgotten",
        "leaves the special tokens out, and trains more pieces instead",
        ("vocab = [*specials, *sorted", "vocab = [*sorted"),
        "Begin with the special tokens that are passed in",
        "visible",
        "train-example",
        "train-ties",
    ),
    (
        "alphabet_without_prefix",
        "lists characters, but not their forms with ##",
        (
            "sorted({piece for pieces in splits.values() for piece in pieces})",
            "sorted({character for word in counts for character in word})",
        ),
        "written with ##",
        "visible",
        "train-example",
        "train-ties",
    ),
    (
        "no_room_is_no_error",
        "returns a vocabulary that is larger than asked for",
        ("if len(vocab) > vocab_size:", "if False:"),
        "With vocab_size 11 raise a ValueError",
        "visible",
    ),
    (
        "no_pair_left_is_an_error",
        "does not ask whether a pair is left",
        ("if not frequent:", "if False:"),
        "no pair is left after nine merges: stop then",
        "visible",
        "train-ties",
    ),
    (
        "minimum_ignored",
        "does not look at min_frequency",
        ("if pair_counts[p] >= min_frequency}", "}"),
        "You do not use min_frequency",
        "visible",
    ),
    (
        "minimum_excluded",
        "leaves out pairs that occur just min_frequency times",
        ("pair_counts[p] >= min_frequency", "pair_counts[p] > min_frequency"),
        "5 times is not",
        "visible",
        "train-ties",
    ),
    (
        "minimum_for_words",
        "leaves out rare words, not rare pairs",
        (
            "    splits = {word: first_pieces(word) for word in counts}\n",
            "    splits = {word: first_pieces(word) for word in counts if counts[word] >= min_frequency}\n"
            "    all_pairs, min_frequency = min_frequency, 1\n",
        ),
        "For the example with min_frequency 5",
        "visible",
    ),
    (
        "entries_twice",
        "appends a piece that is in the vocabulary already",
        (
            "        if join(*pair) not in vocab:\n            vocab.append(join(*pair))",
            "        vocab.append(join(*pair))",
        ),
        "No entry comes twice",
        "hidden",
    ),
    (
        "special_token_listed_twice",
        "lists a special token again that is a first piece, too",
        (
            "    vocab = list(dict.fromkeys(vocab))  # a special token may be a first piece, too\n",
            "",
        ),
        "No entry comes twice",
        "hidden",
    ),
    (
        "words_changed",
        "drops the words that have become one piece from the caller's table",
        (
            "        merges.append(pair)\n",
            "        merges.append(pair)\n        for word in [w for w in splits if splits[w] == [w]]:\n"
            "            del splits[word], counts[word]\n",
        ),
        "must leave the table of words as it was",
        "visible",
        "train-example",
        "train-ties",
    ),
)

TRAIN_TIES = mutants_of(
    "train",
    "train-ties",
    (
        "first_best_kept",
        "compares with > while it goes through the pairs, and so keeps the first of equals",
        (
            "pair = best_pair(frequent, pair_counts)",
            "pair = max(frequent, key=lambda p: (frequent[p], pair_counts[p]))",
        ),
        "take the first in string order",
        "visible",
    ),
    (
        "words_out_of_hash_order",
        "breaks ties by the order of a set of pairs",
        (
            "pair = best_pair(frequent, pair_counts)",
            "pair = max(set(frequent), key=lambda p: (frequent[p], pair_counts[p]))",
        ),
        "take the first in string order",
        "visible",
    ),
)

WORD_LOOP = """    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = (mark if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces"""
CUTS = """    def cuts(start):
        if start == len(word):
            yield []
        for end in range(len(word), start, -1):
            piece = (mark if start else "") + word[start:end]
            if piece in vocab:
                yield from ([piece, *rest] for rest in cuts(end))

"""
LONGEST = mutants_of(
    "word",
    "encode-word-longest",
    (
        "shortest_match",
        "takes the shortest piece that fits",
        ("range(len(word), start, -1)", "range(start + 1, len(word) + 1)"),
        "Yours takes the shortest piece",
        "visible",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "longest_from_the_right",
        "takes the longest piece from the end of the word",
        (
            WORD_LOOP,
            "    pieces, end = [], len(word)\n    while end > 0:\n        for start in range(end):\n"
            '            piece = (mark if start else "") + word[start:end]\n            if piece in vocab:\n'
            '                break\n        else:\n            return ["[UNK]"]\n        pieces.insert(0, piece)\n'
            "        end = start\n    return pieces",
        ),
        "Yours takes the longest from the right",
        "visible",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "prefix_forgotten",
        "looks all pieces up without ##",
        ('(mark if start else "") + word[start:end]', "word[start:end]"),
        "is looked up with ## in front: ##s, not s",
        "visible",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "looked_up_with_the_mark_of_bert",
        "looks the rest up with ##, whatever mark is passed in",
        ('(mark if start else "")', '("##" if start else "")'),
        "The rest is looked up with the mark that is passed in",
        "visible",
        *OFFSETS,
    ),
    (
        "prefix_on_the_second_piece_alone",
        "forgets ## from the third piece on",
        ('mark if start else ""', 'mark if len(pieces) == 1 else ""'),
        "the third as well as the second",
        "visible",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "rest_forgotten",
        "returns the first piece and drops the rest",
        ("        start = end\n", "        start = len(word)\n"),
        "Go on with what is left of the word",
        "visible",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "fewest_pieces",
        "searches for the cut with the fewest pieces",
        (WORD_LOOP, CUTS + '    return min(cuts(0), key=len, default=["[UNK]"])'),
        "From the left, take the longest piece each time",
        "hidden",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "three_characters_ahead",
        "looks no further than three characters ahead, enough for the example",
        ("range(len(word), start, -1)", "range(min(len(word), start + 3), start, -1)"),
        "however long it is",
        "hidden",
        "encode-word-unknown",
        *OFFSETS,
    ),
    (
        "ready_made_encoder",
        "calls the library's encoder",
        (
            "    if len(word) > max_length:\n",
            "    from course_lib.wordpiece.tokenizer import longest_match\n    if len(word) > max_length:\n",
        ),
        "imports course_lib.wordpiece.tokenizer.longest_match, which this assignment withholds",
        "visible",
        "encode-word-unknown",
        "offsets-spans",
        "offsets-unicode",
    ),
    (
        "ready_made_package",
        "calls the package tokenizers",
        (
            "    if len(word) > max_length:\n",
            "    import tokenizers\n    if len(word) > max_length:\n",
        ),
        "imports tokenizers, which this assignment withholds",
        "visible",
        "encode-word-unknown",
        "offsets-spans",
        "offsets-unicode",
    ),
)

UNKNOWN = mutants_of(
    "word",
    "encode-word-unknown",
    (
        "unknown_per_character",
        "writes [UNK] for the character, and goes on behind it",
        (
            '            return ["[UNK]"]\n        pieces',
            '            piece, end = "[UNK]", start + 1\n        pieces',
        ),
        "One [UNK] stands for the whole word, and nothing beside it.",
        "visible",
        *OFFSETS,
    ),
    (
        "unknown_rest",
        "keeps what was found, and writes [UNK] for the rest",
        (
            '            return ["[UNK]"]\n        pieces',
            '            return [*pieces, "[UNK]"]\n        pieces',
        ),
        "One [UNK] stands for the whole word, and nothing beside it.",
        "visible",
        *OFFSETS,
    ),
    (
        "unknown_rest_dropped",
        "keeps what was found, and drops the rest",
        (
            '            return ["[UNK]"]\n        pieces',
            "            return pieces\n        pieces",
        ),
        "The whole word is [UNK]",
        "visible",
        *OFFSETS,
    ),
    (
        "goes_back",
        "tries another cut when the greedy one fails",
        (WORD_LOOP, CUTS + '    return next(cuts(0), ["[UNK]"])'),
        "nobody goes back",
        "visible",
        "offsets-unicode",
    ),
    (
        "any_form_fits",
        "takes a piece with or without ##, whichever is there",
        (
            "if piece in vocab:",
            "if piece in vocab or mark + piece in vocab or piece.removeprefix(mark) in vocab:",
        ),
        "h begins words only",
        "visible",
        "encode-word-longest",
        *OFFSETS,
    ),
    (
        "unknown_as_a_string",
        "returns the string [UNK], not a list with it",
        (
            '            return ["[UNK]"]\n        pieces',
            '            return "[UNK]"\n        pieces',
        ),
        "must be a list; yours is a str",
        "visible",
        *OFFSETS,
    ),
    (
        "longest_word_excluded",
        "refuses words of just max_length characters",
        ("if len(word) > max_length:", "if len(word) >= max_length:"),
        "is too long; 3 is not",
        "visible",
        "offsets-spans",
    ),
    (
        "no_longest_word",
        "cuts words of any length",
        ("if len(word) > max_length:", "if False:"),
        "is too long, so it is [UNK]; yours has 4 pieces",
        "visible",
        "offsets-spans",
    ),
    (
        "longest_word_hard_coded",
        "writes 100 for max_length",
        ("if len(word) > max_length:", "if len(word) > 100:"),
        "is too long, so it is [UNK]; yours has 4 pieces",
        "visible",
        "offsets-spans",
    ),
    (
        "longest_word_in_bytes",
        "counts bytes, of which é has two",
        ("if len(word) > max_length:", "if len(word.encode()) > max_length:"),
        "Count characters, not bytes",
        "hidden",
    ),
)

ENCODE_LOOP = """    encoded = []
    for word, spans in split_words(text):
        place = 0
        for piece in encode_word(word, vocab, max_length, mark):
            length = len(word) if piece == "[UNK]" else len(piece.removeprefix(mark))
            encoded.append((piece, spans[place][0], spans[place + length - 1][1]))
            place += length
    return encoded"""
APPEND = "encoded.append((piece, spans[place][0], spans[place + length - 1][1]))"


def counted_up(cursor: str, skip: str) -> str:
    """Offsets by counting, without the spans."""
    return (
        f"    encoded, cursor = [], 0\n    for word, spans in split_words(text):\n        {skip}\n"
        "        for piece in encode_word(word, vocab, max_length, mark):\n"
        '            length = len(word) if piece == "[UNK]" else len(piece.removeprefix(mark))\n'
        f"            encoded.append((piece, cursor, cursor + length))\n            cursor += length\n        {cursor}\n"
        "    return encoded"
    )


SPANS = mutants_of(
    "text",
    "offsets-spans",
    (
        "mark_not_passed_to_encode_word",
        "looks pieces up with ##, as the library does, whatever mark is passed in",
        (
            "encode_word(word, vocab, max_length, mark)",
            "encode_word(word, vocab, max_length)",
        ),
        "Hand the mark on to encode_word",
        "visible",
        "offsets-unicode",
    ),
    (
        "mark_counted_for_the_length",
        "takes two characters off a piece that is not the first, whatever the mark is",
        ("len(piece.removeprefix(mark))", 'len(piece.removeprefix("##"))'),
        "IndexError",
        "visible",
        "offsets-unicode",
    ),
    (
        "offsets_in_bytes",
        "counts bytes",
        (
            APPEND,
            "start, end = spans[place][0], spans[place + length - 1][1]\n"
            "            encoded.append((piece, len(text[:start].encode()), len(text[:end].encode())))",
        ),
        "You count bytes",
        "visible",
        "offsets-unicode",
    ),
    (
        "offsets_in_the_normalised_text",
        "counts in the words joined by single spaces",
        (ENCODE_LOOP, counted_up("cursor += 1", "cursor += word in ',!' and -1")),
        "Your places are those in the normalised text",
        "visible",
        "offsets-unicode",
    ),
    (
        "offsets_in_the_word",
        "counts from the start of each word",
        (APPEND, "encoded.append((piece, place, place + length))"),
        "You count from the start of each word",
        "visible",
        "offsets-unicode",
    ),
    (
        "offsets_without_spaces",
        "counts up from piece to piece, and forgets the spaces between words",
        (ENCODE_LOOP, counted_up("pass", "pass")),
        "Your places leave out the spaces",
        "visible",
        "offsets-unicode",
    ),
    (
        "prefix_counted",
        "counts ## as two characters of the text",
        (
            APPEND,
            "encoded.append((piece, spans[place][0], spans[place][0] + len(piece)))",
        ),
        "## is not in the text: do not count it",
        "visible",
        "offsets-unicode",
    ),
    (
        "end_included",
        "gives the last character's place for the end",
        ("spans[place + length - 1][1]", "spans[place + length - 1][0]"),
        "The end is the place behind the last character",
        "visible",
        "offsets-unicode",
    ),
    (
        "span_of_the_word",
        "gives every piece the span of its word",
        (APPEND, "encoded.append((piece, spans[0][0], spans[-1][1]))"),
        "Every piece of a word gets the span of the whole word",
        "visible",
        "offsets-unicode",
    ),
    (
        "unknown_five_long",
        "takes the length of the string [UNK] for the length of the word",
        (
            'len(word) if piece == "[UNK]" else len(piece.removeprefix(mark))',
            "min(len(piece.removeprefix(mark)), len(word))",
        ),
        "[UNK] has 5 characters",
        "visible",
        "offsets-unicode",
    ),
    (
        "unknown_left_out",
        "leaves unknown words out",
        (
            APPEND,
            'encoded += [(piece, spans[place][0], spans[place + length - 1][1])] * (piece != "[UNK]")',
        ),
        "[UNK] stands for all of the word",
        "visible",
        "offsets-unicode",
    ),
    (
        "pieces_alone",
        "returns the pieces without their places",
        (APPEND, "encoded.append(piece)"),
        "Each entry is a tuple (piece, start, end)",
        "visible",
        "offsets-unicode",
    ),
    (
        "places_in_a_tuple_of_their_own",
        "returns (piece, (start, end))",
        (
            APPEND,
            "encoded.append((piece, (spans[place][0], spans[place + length - 1][1])))",
        ),
        "Each entry is a tuple of three",
        "visible",
        "offsets-unicode",
    ),
    (
        "searched_in_the_text",
        "searches each piece in the text in small letters",
        (
            APPEND,
            'start = text.lower().find(piece.removeprefix("##"))\n'
            "            encoded.append((piece, start, start + length))",
        ),
        "What becomes of 'Crème",
        "visible",
        "offsets-unicode",
    ),
    (
        "typed_text_encoded",
        "cuts the text as it was typed, with capitals and accents",
        ("encode_word(word,", "encode_word(text[spans[0][0] : spans[-1][1]],"),
        "What becomes of 'Crème",
        "visible",
        "offsets-unicode",
    ),
    (
        "longest_word_not_handed_on",
        "forgets to hand max_length on",
        (
            "encode_word(word, vocab, max_length, mark)",
            "encode_word(word, vocab, mark=mark)",
        ),
        "Hand max_length on",
        "hidden",
    ),
    (
        "split_at_spaces",
        "cuts the text with split(), and leaves punctuation at the words",
        (
            "split_words(text)",
            "[(w.lower(), [(text.index(w) + i, text.index(w) + i + 1) for i in range(len(w))]) for w in text.split()]",
        ),
        "What becomes of 'Crème",
        "visible",
        "offsets-unicode",
    ),
)

UNICODE = mutants_of(
    "text",
    "offsets-unicode",
    (
        "counted_from_the_start_of_the_word",
        "counts up from where each word begins, as if every character left one behind",
        (
            APPEND,
            "encoded.append((piece, spans[0][0] + place, spans[0][0] + place + length))",
        ),
        "take up a place in the text",
        "hidden",
    ),
    (
        "counted_from_the_start_of_the_piece",
        "takes the start from the spans, and adds the length for the end",
        (APPEND, "encoded.append((piece, spans[place][0], spans[place][0] + length))"),
        "take up a place in the text",
        "hidden",
    ),
    (
        "accent_included",
        "lets a piece end where the next character begins, accents and all",
        (
            "spans[place + length - 1][1]))",
            "next((i for i in range(spans[place + length - 1][1], len(text)) if not unicodedata.combining(text[i])), "
            "len(text))))",
        ),
        "The accent leaves nothing behind",
        "visible",
    ),
    (
        "offsets_in_code_units",
        "counts as JavaScript does, an emoji as two",
        (
            APPEND,
            'units = lambda place: len(text[:place].encode("utf-16-le")) // 2\n'
            "            encoded.append((piece, units(spans[place][0]), units(spans[place + length - 1][1])))",
        ),
        "an emoji takes up one",
        "hidden",
    ),
    (
        "empty_text_is_none",
        "returns nothing for a text without words",
        ("return encoded", "return encoded or None"),
        "What becomes of an empty text must be a list; yours is None",
        "visible",
    ),
)

JOINING = """        if piece.startswith("##"):
            text += piece[2:]"""
DECODE = mutants_of(
    "ids-to-text",
    "decode-text",
    (
        "prefix_left_in",
        "joins the pieces with spaces, and that is all",
        ('if piece.startswith("##"):', "if False:"),
        "Glue a piece with ## to what stands before it, and drop the ##",
        "visible",
    ),
    (
        "prefix_dropped_space_kept",
        "drops ##, and leaves the space before it",
        ("text += piece[2:]", 'text += " " + piece[2:]'),
        "no space there",
        "visible",
    ),
    (
        "glued_with_prefix",
        "glues, and leaves ## in",
        ("text += piece[2:]", "text += piece"),
        "Drop the ## when you glue",
        "visible",
    ),
    (
        "words_glued",
        "writes no space between words",
        ('text += " " + piece', "text += piece"),
        "Words are separated by a space",
        "visible",
    ),
    (
        "specials_kept",
        "writes the special tokens out",
        ('("[PAD]", "[CLS]", "[SEP]", "[MASK]")', "()"),
        "Leave out [PAD], [CLS], [SEP] and [MASK]",
        "visible",
    ),
    (
        "unknown_dropped",
        "leaves out all special tokens",
        ('("[PAD]", "[CLS]", "[SEP]", "[MASK]")', "SPECIALS"),
        "[UNK] stays",
        "visible",
    ),
    (
        "mask_kept",
        "forgets that [MASK] stands for no text",
        ('("[PAD]", "[CLS]", "[SEP]", "[MASK]")', '("[PAD]", "[CLS]", "[SEP]")'),
        "[MASK] stands for no text either",
        "visible",
    ),
    (
        "space_at_the_start",
        "leaves the space before the first word",
        ("text.strip()", "text"),
        "There is a space at the start",
        "visible",
    ),
    (
        "punctuation_glued",
        "removes the space before punctuation",
        ("text.strip()", 'text.strip().replace(" !", "!")'),
        "Leave the space before punctuation",
        "visible",
    ),
    (
        "all_hashes_removed",
        "takes every # out of the text, also one that was typed",
        ("text.strip()", 'text.strip().replace("#", "").strip()'),
        "and no other sign",
        "hidden",
    ),
    (
        "specials_by_id",
        "takes the first five ids for special tokens",
        (
            "for piece in (vocab[number] for number in ids):",
            "for piece in (vocab[n] for n in ids if n >= 5 or n == 1):",
        ),
        "by their names, not by their ids",
        "hidden",
    ),
    (
        "same_piece_once",
        "leaves out a piece that has just been written",
        (
            "(vocab[number] for number in ids)",
            "(vocab[n] for i, n in enumerate(ids) if i == 0 or ids[i - 1] != n)",
        ),
        "and nothing else",
        "hidden",
    ),
    (
        "list_of_words",
        "returns the words in a list",
        ("text.strip()", "text.split()"),
        "must be a string; yours is a list",
        "visible",
    ),
)

CHECK_OF_EXAMPLES = """def check_windows(implementation):
    pieces = 'un ##hug ##able hug ##s a pug'.split()
    assert implementation(pieces, 4, 2) == [(0, 3), (3, 7)]
    assert implementation(pieces, 3, 2) == [(0, 3), (3, 6), (5, 7)]
    assert implementation(pieces, 5, 1) == [(0, 5), (5, 7)]
    assert implementation(['a', 'b', 'c', 'd', 'e'], 3, 2) == [(0, 3), (1, 4), (2, 5)]
    raised = False
    try:
        implementation(['a', '##b'], 1, 0)
    except ValueError:
        raised = True
    assert raised, 'a word of two pieces has no room'"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    assert implementation([], 3, 1) == []
    try:
        implementation(pieces, 2, 1)
    except ValueError as error:
        assert 'pieces' in str(error), 'the error must tell the pieces of the word'"""
)
CHECKS = wrong_checks(
    "windows",
    "implementation(['hug', '##s'], 2, 1)",
    "counting; empty input; errors that are not raised; sizes; the order; ties",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *FIRST_PIECES,
    *COUNTS,
    *SCORES,
    *BEST,
    *MERGE,
    *TRAIN_EXAMPLE,
    *TRAIN_RULES,
    *TRAIN_TIES,
    *LONGEST,
    *UNKNOWN,
    *SPANS,
    *UNICODE,
    *DECODE,
    *CHECKS,
]

BY_INDEX: Changes = {
    "first-pieces": "def first_pieces(word, mark='##'):\n    pieces = []\n    for i in range(len(word)):\n"
    '        pieces.append(word[i] if i == 0 else f"{mark}{word[i]}")\n    return pieces',
    "count": """from collections import defaultdict


def count_pieces(splits, counts, least=1):
    piece_counts, pair_counts = defaultdict(int), defaultdict(int)
    for word in filter(lambda word: counts[word] >= least, splits):
        for i in range(len(splits[word])):
            piece_counts[splits[word][i]] += counts[word]
            if i > 0:
                pair_counts[(splits[word][i - 1], splits[word][i])] += counts[word]
    return piece_counts, pair_counts
""",
    "score": """def pair_scores(piece_counts, pair_counts, discount=0):
    scores = {}
    for pair in pair_counts:
        scores[pair] = Fraction(pair_counts[pair] - discount)
        for piece in pair:
            scores[pair] /= piece_counts[piece]
    return scores
""",
}

STEP_BY_STEP: Changes = {
    "best": """def best_pair(scores, pair_counts):
    greatest = max(scores.values())
    tied = [pair for pair in scores if scores[pair] == greatest]
    most = max(pair_counts[pair] for pair in tied)
    return sorted(pair for pair in tied if pair_counts[pair] == most)[0]
""",
    "merge": """def join(left, right, mark="##"):
    assert right.startswith(mark)
    return f"{left}{right[len(mark):]}"


def merge_pair(pieces, pair, mark="##"):
    if len(pieces) < 2:
        return list(pieces)
    if (pieces[0], pieces[1]) == pair:
        return [join(*pair, mark)] + merge_pair(pieces[2:], pair, mark)
    return [pieces[0]] + merge_pair(pieces[1:], pair, mark)
""",
}

STACK: Changes = {
    "best": """def best_pair(scores, pair_counts):
    ranked = sorted(scores)  # sorts are stable: the last key counts most
    ranked.sort(key=lambda pair: pair_counts[pair], reverse=True)
    ranked.sort(key=lambda pair: scores[pair], reverse=True)
    return ranked[0]
""",
    "merge": """def join(left, right, mark="##"):
    return left + right.replace(mark, "", 1)


def merge_pair(pieces, pair, mark="##"):
    out, fresh = [], False  # fresh: the last entry of out comes from a merge, and is used up
    for piece in pieces:
        if out and not fresh and (out[-1], piece) == pair:
            out[-1], fresh = join(*pair, mark), True
        else:
            out.append(piece)
            fresh = False
    return out
""",
}

INCREMENTAL: Changes = {
    "train": '''def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=pair_scores):
    """Counts are kept up to date instead of counted anew: only words with the pair change."""
    splits = {word: first_pieces(word) for word in counts}
    vocab = list(dict.fromkeys([*specials, *sorted(set(itertools.chain(*splits.values())))]))
    if vocab_size < len(vocab):
        raise ValueError("too small")
    known, merges = set(vocab), []
    piece_counts, pair_counts = map(Counter, count_pieces(splits, counts))
    while len(vocab) < vocab_size:
        scores = score(+piece_counts, +pair_counts)
        for pair in list(scores):
            if pair_counts[pair] < min_frequency:
                del scores[pair]
        if not scores:
            return vocab, merges
        pair = best_pair(scores, pair_counts)
        for word, pieces in splits.items():
            if pair in itertools.pairwise(pieces):
                before = count_pieces({word: pieces}, counts)
                splits[word] = merge_pair(pieces, pair)
                after = count_pieces({word: splits[word]}, counts)
                for table, old, new in zip((piece_counts, pair_counts), before, after):
                    table.subtract(old)
                    table.update(new)
        merges.append(pair)
        if (new := join(*pair)) not in known:
            known.add(new)
            vocab.append(new)
    return vocab, merges
'''
}

ALONE: Changes = {
    "train": '''def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=pair_scores):
    """A corpus of lists, words of the same spelling apart, and none of the functions above but best_pair."""
    corpus = [[[("##" if i else "") + c for i, c in enumerate(word)], n] for word, n in counts.items()]
    vocab = {special: None for special in specials}
    vocab.update({piece: None for piece in sorted({piece for pieces, _ in corpus for piece in pieces})})
    if len(vocab) > vocab_size:
        raise ValueError(f"{vocab_size} < {len(vocab)}")
    merges = []
    for _ in itertools.count():
        pieces_now, pairs_now = {}, {}
        for pieces, n in corpus:
            for piece in pieces:
                pieces_now[piece] = pieces_now.get(piece, 0) + n
            for pair in zip(pieces, pieces[1:]):
                pairs_now[pair] = pairs_now.get(pair, 0) + n
        scores = score(pieces_now, pairs_now)
        candidates = [pair for pair in scores if pairs_now[pair] >= min_frequency]
        if len(vocab) >= vocab_size or not candidates:
            break
        left, right = best_pair({pair: scores[pair] for pair in candidates}, pairs_now)
        for entry in corpus:
            i = 0
            while i + 1 < len(entry[0]):
                if entry[0][i] == left and entry[0][i + 1] == right:
                    entry[0][i : i + 2] = [left + right[2:]]
                i += 1
        merges.append((left, right))
        vocab[left + right[2:]] = None
    return list(vocab), merges
'''
}

RECURSIVE: Changes = {
    "word": """def encode_word(word, vocab, max_length=100, mark="##"):
    def rest(start):
        if start == len(word):
            return []
        ends = [end for end in range(start + 1, len(word) + 1) if mark * (start > 0) + word[start:end] in vocab]
        if not ends:
            return None
        others = rest(ends[-1])
        return None if others is None else [mark * (start > 0) + word[start : ends[-1]], *others]

    return ["[UNK]"] if len(word) > max_length else rest(0) or ["[UNK]"]
"""
}

SHRINKING: Changes = {
    "word": """def encode_word(word, vocab, max_length=100, mark="##"):
    if len(word) >= max_length + 1:
        return ["[UNK]"]
    found, left = [], word
    while left:
        tried, begin = left, mark if found else ""
        while tried != begin and tried not in vocab:
            tried = tried[:-1]
        if tried == begin:
            return ["[UNK]"]
        found.append(tried)
        left = left[len(tried) :]
        left = left and mark + left
    return found
"""
}

TRIE: Changes = {
    "word": '''def encode_word(word, vocab, max_length=100, mark="##"):
    """A tree of characters for the pieces that begin a word, and one for those that continue it."""
    if len(word) > max_length:
        return ["[UNK]"]
    trees = {}, {}
    for piece in vocab:
        node = trees[piece.startswith(mark)]
        for character in piece.removeprefix(mark):
            node = node.setdefault(character, {})
        node["end"] = piece
    found, start = [], 0
    while start < len(word):
        node, best = trees[start > 0], None
        for place in range(start, len(word)):
            node = node.get(word[place])
            if node is None:
                break
            best = (place + 1, node["end"]) if "end" in node else best
        if best is None:
            return ["[UNK]"]
        start = best[0]
        found.append(best[1])
    return found
'''
}

REGEX: Changes = {
    "word": """import re


def encode_word(word, vocab, max_length=100, mark="##"):
    if len(word) > max_length:
        return ["[UNK]"]
    ordered = sorted(vocab, key=len, reverse=True)
    begins = "|".join(re.escape(p) for p in ordered if not p.startswith(mark)) or "(?!)"
    continues = "|".join(re.escape(p[len(mark) :]) for p in ordered if p.startswith(mark)) or "(?!)"
    first = re.match(begins, word)
    if first is None:
        return ["[UNK]"]
    pieces, place = [first.group()], first.end()
    for match in re.compile(continues).finditer(word, place):
        if match.start() != place:
            break
        pieces.append(mark + match.group())
        place = match.end()
    return pieces if place == len(word) else ["[UNK]"]
"""
}

ITERATOR: Changes = {
    "text": """def encode(text, vocab, max_length=100, mark="##"):
    def entries():
        for word, spans in split_words(text):
            pieces = encode_word(word, vocab, max_length, mark)
            if pieces == ["[UNK]"]:
                yield "[UNK]", spans[0][0], spans[-1][1]
                continue
            left = iter(spans)
            for piece in pieces:
                mine = list(itertools.islice(left, len(piece) - len(mark) * piece.startswith(mark)))
                yield piece, mine[0][0], mine[-1][1]

    return list(entries())
"""
}

SPLIT_AND_JOIN: Changes = {
    "ids-to-text": """def decode(ids, vocab):
    kept = [vocab[i] for i in ids if vocab[i] not in {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}]
    return " ".join(kept).replace(" ##", "")
"""
}

WORD_LIST: Changes = {
    "ids-to-text": """def decode(ids, vocab):
    words = []
    for i in ids:
        match vocab[i]:
            case "[PAD]" | "[CLS]" | "[SEP]" | "[MASK]":
                pass
            case piece if piece.startswith("##") and words:
                words[-1] += piece[2:]
            case piece:
                words.append(piece)
    return " ".join(words)
"""
}

CHECK_BY_AN_OWN_ANSWER = """def check_windows(implementation):
    import random

    def own(pieces, room, overlap):
        lengths = []
        for number, piece in enumerate(pieces):
            if number and piece[:2] == '##':
                lengths[-1] += 1
            else:
                lengths.append(1)
        if max(lengths, default=0) > room:
            return 'ValueError'
        found, held = [], []
        for number, length in enumerate(lengths):
            if sum(lengths[n] for n in held) + length > room:
                found.append(held)
                while sum(lengths[n] for n in held) > min(overlap, room - length):
                    held = held[1:]
            held = held + [number]
        found += [held] if held else []
        return [(sum(lengths[: held[0]]), sum(lengths[: held[-1] + 1])) for held in found]

    kinds = ['a', 'b', '##', '##s', '#', 'x##', 'a##b', '##s', '##s']
    for number in range(190):
        room = random.randint(1, 9)
        overlap = random.randint(0, room - 1)
        pieces = random.choices(kinds, k=number % 40)
        if number == 7:
            pieces, room, overlap = ['a'] * 300, 2, 1
        before = pieces[:]
        try:
            found = implementation(pieces, room, overlap)
        except ValueError:
            found = 'ValueError'
        assert found == own(pieces, room, overlap)
        assert pieces == before"""
RIGHT_ANSWERS = [
    RightAnswer(
        "by_index", "counts with indices and defaultdict, and divides twice", BY_INDEX
    ),
    RightAnswer(
        "step_by_step",
        "filters ties step by step, and merges recursively",
        STEP_BY_STEP,
    ),
    RightAnswer(
        "sorts_and_a_stack", "sorts three times, and merges onto a stack", STACK
    ),
    RightAnswer(
        "incremental_counts",
        "keeps counts up to date instead of counting anew",
        INCREMENTAL,
    ),
    RightAnswer(
        "training_on_its_own",
        "trains on lists, without the functions of Parts 1 and 2 but one",
        ALONE,
    ),
    RightAnswer("recursive_encoding", "encodes a word recursively", RECURSIVE),
    RightAnswer(
        "shrinking_word",
        "takes characters off the end until a piece is left",
        SHRINKING,
    ),
    RightAnswer(
        "tree_of_characters", "encodes a word along a tree of characters", TRIE
    ),
    RightAnswer(
        "regular_expression",
        "encodes a word with a regular expression, longest alternatives first",
        REGEX,
    ),
    RightAnswer(
        "iterator_of_spans", "takes spans from an iterator, piece by piece", ITERATOR
    ),
    RightAnswer("split_and_join", "decodes with join and replace", SPLIT_AND_JOIN),
    RightAnswer("list_of_words_joined", "decodes into a list of words", WORD_LIST),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with windows of its own on drawn pieces",
        {"own-check": CHECK_BY_AN_OWN_ANSWER},
    ),
    RightAnswer(
        "all_different",
        "answers every part differently",
        {**BY_INDEX, **STACK, **INCREMENTAL, **TRIE, **ITERATOR, **WORD_LIST},
    ),
]

NO_LIBRARY = "ModuleNotFoundError: No module named 'course_lib.wordpiece'"  # there is none where answers run
IS_A_SET = "the vocabulary must be a list; yours is a set: {"  # and no order in which a set crosses is its own
ACROSS = {
    "ready_made_trainer": {"train-rules": NO_LIBRARY, "train-ties": NO_LIBRARY},
    "ready_made_encoder": dict.fromkeys(("encode-word-unknown", *OFFSETS), NO_LIBRARY),
    "vocabulary_as_a_set": {"train-example": IS_A_SET, "train-rules": IS_A_SET},
}
