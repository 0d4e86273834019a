"""Wrong answers to the WordPiece assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
wordpiece`` says which get full marks.
"""

from fresh import Fresh, one_by_one

from course_tools.grading.assignments.mutants import RightAnswer

FIRST = "[word[0], *(mark + character for character in word[1:])]"
PAIRS = "        for pair in itertools.pairwise(pieces):\n            pair_counts[pair] += counts[word]\n"
FRACTION = "Fraction(count - discount, piece_counts[left] * piece_counts[right])"
BEST = "return min(scores, key=lambda pair: (-scores[pair], -pair_counts[pair], pair))"
JOIN = "return left + right.removeprefix(mark)"
MERGING = "    merged, place = [], 0\n"
FIRST_ENTRIES = (
    "[*specials, *sorted({piece for pieces in splits.values() for piece in pieces})]"
)
TOO_SMALL = "if len(vocab) > vocab_size:"
FREQUENT = (
    "frequent = {p: scores[p] for p in scores if pair_counts[p] >= min_frequency}"
)
LOOP = "while len(vocab) < vocab_size:"
TOO_LONG = "    if len(word) > max_length:\n"
ENDS = "range(len(word), start, -1)"
ENCODED = "encode_word(word, vocab, max_length, mark)"
LENGTH = 'length = len(word) if piece == "[UNK]" else len(piece.removeprefix(mark))'
SPAN = "spans[place + length - 1][1]"
GLUE = '        if piece.startswith("##"):\n            text += piece[2:]\n'
SHOWN = 'elif piece not in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"):'

GRADED = {  # the graded cell that should refuse a mistake in a cell
    "first-pieces": "scores-first-pieces",
    "count": "scores-counts",
    "score": "scores-values",
    "best": "merge-best",
    "merge": "merge-pair",
    "train": "train-rules",
    "word": "encode-word-longest",
    "text": "offsets-spans",
    "ids-to-text": "decode-text",
}
wrong = one_by_one(GRADED)


MUTANTS = [
    # Part 1
    wrong(
        "first_pieces_in_small_letters",
        "makes capitals small, which normalising has done or was not to do",
        "legal input",
        "first-pieces",
        FIRST,
        FIRST.replace("word", "word.lower()"),
    ),
    wrong(
        "first_pieces_composed",
        "composes letters and accents first, so that two characters become one",
        "legal input",
        "first-pieces",
        f"return {FIRST}",
        f'word = unicodedata.normalize("NFC", word)\n    return {FIRST}',
    ),
    wrong(
        "first_pieces_of_letters",
        "leaves out characters that are no letters and no digits",
        "legal input",
        "first-pieces",
        f"return {FIRST}",
        "return [word[0], *(mark + c for c in word[1:] if c.isalnum())]",
    ),
    wrong(
        "first_pieces_sign_is_not_marked",
        "gives no ## to a # inside a word, which has one already",
        "legal input",
        "first-pieces",
        "*(mark + character for",
        '*(mark + character.lstrip("#") for',
    ),
    wrong(
        "count_pairs_that_do_not_overlap",
        "counts in aaa the pair once, as merging would find it",
        "cut-off",
        "count",
        PAIRS,
        "        last = None\n        for pair in itertools.pairwise(pieces):\n"
        "            last = None if pair == last and pair[0] == pair[1] else pair\n"
        "            pair_counts[pair] += counts[word] if last else 0\n",
    ),
    wrong(
        "count_pairs_once_in_a_word",
        "counts a pair once in a word where it stands at both ends",
        "legal input",
        "count",
        "itertools.pairwise(pieces)",
        "dict.fromkeys(itertools.pairwise(pieces))",
    ),
    wrong(
        "scores_of_small_denominators",
        "limits denominators to a million",
        "numerics",
        "score",
        FRACTION,
        FRACTION + ".limit_denominator()",
    ),
    wrong(
        "scores_from_floats",
        "divides in float and takes the nearest simple fraction",
        "numerics",
        "score",
        FRACTION,
        "Fraction((count - discount) / (piece_counts[left] * piece_counts[right])).limit_denominator(10**12)",
    ),
    wrong(
        "scores_double_pairs_count_half",
        "halves the score of a piece with itself, whose places may overlap",
        "cut-off",
        "score",
        FRACTION,
        FRACTION + " / (1 + (left == right))",
    ),
    # Part 2
    wrong(
        "best_of_floats",
        "compares scores as floats, where two that differ may be equal",
        "numerics",
        "best",
        "(-scores[pair], ",
        "(-float(scores[pair]), ",
    ),
    wrong(
        "best_of_close_scores",
        "takes scores for equal that differ by less than 1e-9",
        "cut-off",
        "best",
        "(-scores[pair], ",
        "(-round(scores[pair], 9), ",
    ),
    wrong(
        "best_by_the_piece_that_it_makes",
        "compares the pieces that pairs make instead of the pairs",
        "cut-off",
        "best",
        "-pair_counts[pair], pair)",
        '-pair_counts[pair], pair[0] + pair[1].removeprefix("##"))',
    ),
    wrong(
        "best_beginnings_first",
        "compares without ##, so that letters decide",
        "cut-off",
        "best",
        "-pair_counts[pair], pair)",
        '-pair_counts[pair], tuple(p.removeprefix("##") for p in pair), pair)',
    ),
    wrong(
        "best_without_regard_to_case",
        "compares small letters",
        "cut-off",
        "best",
        "-pair_counts[pair], pair)",
        "-pair_counts[pair], tuple(p.lower() for p in pair))",
    ),
    wrong(
        "best_left_piece_alone",
        "leaves pairs with the same left piece to the order of the dict",
        "cut-off",
        "best",
        "-pair_counts[pair], pair)",
        "-pair_counts[pair], pair[0])",
    ),
    wrong(
        "best_is_above_0",
        "starts from a score of 0, so that no logarithm of a probability is chosen",
        "hard-wired",
        "best",
        BEST,
        "best, key = None, (0, 0, ())\n    for pair in scores:\n"
        "        new = (-scores[pair], -pair_counts[pair], pair)\n"
        "        if new < key:\n            best, key = pair, new\n    return best",
    ),
    wrong(
        "best_takes_scores_out",
        "takes pairs out of the caller's table that are not the best",
        "state",
        "best",
        BEST,
        "top = max(scores.values())\n    for pair in [p for p in scores if scores[p] < top]:\n"
        "        del scores[pair]\n    " + BEST,
    ),
    wrong(
        "join_without_any_mark",
        "takes every ## out of the right piece",
        "legal input",
        "merge",
        JOIN,
        'return left + right.replace(mark, "")',
    ),
    wrong(
        "join_without_any_sign",
        "strips all # from the left of the right piece",
        "legal input",
        "merge",
        JOIN,
        'return left + right.lstrip("#")',
    ),
    wrong(
        "join_strips_both_ends",
        "strips # from both ends of the right piece",
        "legal input",
        "merge",
        JOIN,
        'return left + right.strip("#")',
    ),
    wrong(
        "merge_by_pattern",
        "looks for the pair with a regular expression in which a full stop is any character",
        "legal input",
        "merge",
        MERGING,
        "    import re\n\n"
        '    pair_as_typed = re.escape(" ".join(pair)).replace(r"\\.", ".")\n'
        '    pattern = rf"(?<!\\S){pair_as_typed}(?!\\S)"\n'
        '    return re.sub(pattern, lambda _: join(*pair, mark), " ".join(pieces)).split(" ")\n'
        + MERGING,
    ),
    wrong(
        "merge_gives_the_same_list_back",
        "gives the caller's list back where there is nothing to merge",
        "state",
        "merge",
        MERGING,
        "    if pair not in itertools.pairwise(pieces):\n        return pieces\n"
        + MERGING,
    ),
    # Part 3
    wrong(
        "train_without_rare_words",
        "leaves out words rarer than min_frequency",
        "legal input",
        "train",
        "splits = {word: first_pieces(word) for word in counts}",
        "splits = {word: first_pieces(word) for word in counts if counts[word] >= min_frequency}",
    ),
    wrong(
        "train_without_rare_characters",
        "leaves first pieces out of the vocabulary that are rarer than min_frequency",
        "legal input",
        "train",
        FIRST_ENTRIES,
        "[*specials, *sorted(p for p, n in count_pieces(splits, counts)[0].items() "
        "if n >= min_frequency)]",
    ),
    wrong(
        "train_full_at_the_start",
        "raises where the first entries fill the vocabulary exactly",
        "cut-off",
        "train",
        TOO_SMALL,
        "if len(vocab) >= vocab_size:",
    ),
    wrong(
        "train_room_for_first_pieces_alone",
        "compares vocab_size with the first pieces, without the special tokens",
        "cut-off",
        "train",
        TOO_SMALL,
        "if len(vocab) - len(specials) > vocab_size:",
    ),
    wrong(
        "train_counts_merges",
        "stops after as many merges as there is room, though two may make one piece",
        "cut-off",
        "train",
        LOOP,
        "room = vocab_size - len(vocab)\n    while len(merges) < room:",
    ),
    wrong(
        "train_no_specials_are_the_usual_ones",
        "takes no special tokens for the default ones",
        "legal input",
        "train",
        FIRST_ENTRIES,
        FIRST_ENTRIES.replace("*specials", "*(specials or SPECIALS)"),
    ),
    wrong(
        "train_compares_floats",
        "makes floats of scores",
        "numerics",
        "train",
        FREQUENT,
        FREQUENT.replace("p: scores[p]", "p: float(scores[p])"),
    ),
    wrong(
        "train_whole_scores",
        "makes Fractions of scores with denominators up to a million",
        "numerics",
        "train",
        FREQUENT,
        FREQUENT.replace("p: scores[p]", "p: Fraction(scores[p]).limit_denominator()"),
    ),
    wrong(
        "train_stops_at_scores_of_0",
        "stops where no score is above 0, as logarithms of probabilities are not",
        "hard-wired",
        "train",
        "        if not frequent:\n",
        "        if not frequent or max(frequent.values()) <= 0:\n",
    ),
    wrong(
        "train_pieces_of_16_characters",
        "merges no pair to a piece of more than 16 characters",
        "hard-wired",
        "train",
        FREQUENT,
        FREQUENT.replace("min_frequency}", "min_frequency and len(join(*p)) <= 16}"),
    ),
    wrong(
        "train_without_words_of_one_character",
        "takes words of one character out of training, with their pieces",
        "legal input",
        "train",
        "splits = {word: first_pieces(word) for word in counts}",
        "splits = {word: first_pieces(word) for word in counts if len(word) > 1}",
    ),
    wrong(
        "train_piece_of_the_specials_is_new",
        "appends a piece again that is a special token",
        "cut-off",
        "train",
        "if join(*pair) not in vocab:",
        "if join(*pair) not in vocab[len(specials) :]:",
    ),
    # Part 4
    wrong(
        "word_length_in_bytes",
        "counts bytes for max_length",
        "cut-off",
        "word",
        TOO_LONG,
        "    if len(word.encode()) > max_length:\n",
        "encode-word-unknown",
    ),
    wrong(
        "word_longest_beginning",
        "looks for no piece longer than the longest beginning, ## not counted",
        "cut-off",
        "word",
        ENDS,
        'range(min(len(word), start + max((len(p) for p in vocab if p[:2] != "##"), default=1)), '
        "start, -1)",
    ),
    wrong(
        "word_pieces_of_20_characters",
        "looks for no piece of more than 20 characters",
        "hard-wired",
        "word",
        ENDS,
        "range(min(len(word), start + 20), start, -1)",
    ),
    wrong(
        "word_needs_a_vocabulary",
        "takes the longest of no pieces, which raises",
        "legal input",
        "word",
        TOO_LONG,
        "    max(map(len, vocab))\n" + TOO_LONG,
    ),
    wrong(
        "word_in_small_letters",
        "makes capitals small, though vocab has some",
        "legal input",
        "word",
        TOO_LONG,
        "    word = word.lower()\n" + TOO_LONG,
    ),
    wrong(
        "word_composed",
        "composes letters and accents first",
        "legal input",
        "word",
        TOO_LONG,
        '    word = unicodedata.normalize("NFC", word)\n' + TOO_LONG,
    ),
    wrong(
        "word_mark_is_part_of_the_rest",
        "writes ## before the rest and looks for beginnings of that, such as #",
        "legal input",
        "word",
        "    pieces, start = [], 0\n",
        "    pieces, rest = [], word\n    for _ in word:  # so that no # is found for ever\n"
        "        if not rest:\n            break\n"
        "        for end in range(len(rest), 0, -1):\n"
        "            if rest[:end] in vocab:\n                break\n"
        '        else:\n            return ["[UNK]"]\n'
        "        pieces.append(rest[:end])\n"
        '        rest = "##" + rest[end:] if rest[end:] else ""\n'
        "    return pieces\n    pieces, start = [], 0\n",
        "encode-word-unknown",
    ),
    wrong(
        "word_at_most_100_whatever_is_asked",
        "holds 100 for the limit where a greater max_length is given",
        "hard-wired",
        "word",
        TOO_LONG,
        "    if len(word) > min(max_length, 100):\n",
        "encode-word-unknown",
    ),
    wrong(
        "word_kept_by_vocabulary_size",
        "keeps pieces by word and size of the vocabulary",
        "state",
        "word",
        "    return pieces",
        "    key = (word, len(vocab), max_length)\n"
        '    return encode_word.__dict__.setdefault("kept", {}).setdefault(key, pieces)',
    ),
    wrong(
        "word_hands_out_the_same_list",
        "keeps lists of pieces and hands them out again, whatever became of them",
        "state",
        "word",
        "    return pieces",
        "    key = (word, frozenset(vocab), max_length)\n"
        '    return encode_word.__dict__.setdefault("kept", {}).setdefault(key, pieces)',
    ),
    wrong(
        "word_special_tokens_stay",
        "takes a word that is a special token as it stands",
        "legal input",
        "word",
        TOO_LONG,
        "    if word in SPECIALS:\n        return [word]\n" + TOO_LONG,
    ),
    # Part 5
    wrong(
        "text_without_max_length",
        "does not pass max_length on",
        "legal input",
        "text",
        ENCODED,
        "encode_word(word, vocab, mark=mark)",
    ),
    wrong(
        "text_end_by_length",
        "adds the length of a piece to its start, though accents may stand inside",
        "legal input",
        "text",
        SPAN,
        "spans[place][0] + length",
        "offsets-unicode",
    ),
    wrong(
        "text_end_where_the_next_begins",
        "ends a piece where the next one begins, behind an accent between them",
        "cut-off",
        "text",
        SPAN,
        "(spans[place + length][0] if place + length < len(word) else spans[-1][1])",
        "offsets-unicode",
    ),
    wrong(
        "text_start_where_the_last_ended",
        "begins a piece where the last one ended, before an accent between them",
        "cut-off",
        "text",
        "spans[place][0]",
        "(spans[place - 1][1] if place else spans[0][0])",
        "offsets-unicode",
    ),
    wrong(
        "text_unknown_is_what_vocab_lacks",
        "takes a piece for unknown that vocab lacks, but [UNK] is in most",
        "legal input",
        "text",
        'piece == "[UNK]"',
        "piece not in vocab",
    ),
    wrong(
        "text_one_character_is_never_unknown",
        "leaves out an unknown mark of punctuation",
        "cut-off",
        "text",
        "            encoded.append(",
        "            if piece == '[UNK]' and len(word) == 1:\n                continue\n"
        "            encoded.append(",
    ),
    wrong(
        "text_neighbouring_unknowns_are_one",
        "makes one [UNK] of two that follow each other",
        "legal input",
        "text",
        "            encoded.append(",
        "            if piece == '[UNK]' and encoded and encoded[-1][0] == '[UNK]':\n"
        "                encoded[-1] = (piece, encoded[-1][1], spans[-1][1])\n                continue\n"
        "            encoded.append(",
    ),
    wrong(
        "text_end_by_length_where_more",
        "adds the length of a piece to its start where that is more",
        "cut-off",
        "text",
        SPAN,
        "max(spans[place + length - 1][1], spans[place][0] + length)",
        "offsets-unicode",
    ),
    # Part 6
    wrong(
        "decode_first_is_a_word",
        "glues to the last word, which a text that begins with ## has not",
        "legal input",
        "ids-to-text",
        GLUE,
        '        if piece.startswith("##"):\n            assert text\n            text += piece[2:]\n',
    ),
    wrong(
        "decode_first_keeps_its_mark",
        "takes ## away only where it glues",
        "legal input",
        "ids-to-text",
        GLUE,
        '        if piece.startswith("##") and text:\n            text += piece[2:]\n',
    ),
    wrong(
        "decode_without_any_mark",
        "takes every ## out of a piece",
        "legal input",
        "ids-to-text",
        GLUE,
        GLUE.replace("piece[2:]", 'piece.replace("##", "")'),
    ),
    wrong(
        "decode_strips_signs",
        "strips all # from the left of a piece",
        "legal input",
        "ids-to-text",
        GLUE,
        GLUE.replace("piece[2:]", 'piece.lstrip("#")'),
    ),
    wrong(
        "decode_glues_the_sign",
        "glues the word # too",
        "legal input",
        "ids-to-text",
        'piece.startswith("##")',
        'piece.startswith("#")',
    ),
    wrong(
        "decode_leaves_out_low_ids",
        "leaves out ids 0, 2, 3 and 4, whatever stands there",
        "hard-wired",
        "ids-to-text",
        GLUE,
        GLUE.replace(
            "if piece",
            "if vocab.index(piece) in (0, 2, 3, 4):\n            continue\n        if piece",
        ),
    ),
    wrong(
        "decode_leaves_out_brackets",
        "leaves out everything in brackets but [UNK]",
        "legal input",
        "ids-to-text",
        SHOWN,
        'elif piece == "[UNK]" or not (piece[0] == "[" and piece[-1] == "]"):',
    ),
    wrong(
        "decode_stops_at_padding",
        "stops at the first [PAD]",
        "legal input",
        "ids-to-text",
        GLUE,
        '        if piece == "[PAD]":\n            break\n' + GLUE,
    ),
    wrong(
        "decode_stops_at_sep",
        "stops at the first [SEP], before the second segment",
        "legal input",
        "ids-to-text",
        GLUE,
        '        if piece == "[SEP]":\n            break\n' + GLUE,
    ),
    wrong(
        "decode_one_unknown_for_many",
        "writes one [UNK] for several that follow each other",
        "legal input",
        "ids-to-text",
        '            text += " " + piece\n',
        '            text += " " + piece if piece != "[UNK]" or not text.endswith("[UNK]") else ""\n',
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "loops_and_indices",
        "enumerates characters and places, and keeps plain dicts",
        {
            "first-pieces": (FIRST, "[mark * (i > 0) + c for i, c in enumerate(word)]"),
            "count": (
                PAIRS,
                "        for i in range(len(pieces) - 1):\n"
                "            pair = (pieces[i], pieces[i + 1])\n"
                "            pair_counts[pair] = pair_counts.get(pair, 0) + counts[word]\n",
            ),
            "merge": (JOIN, "return left + right[len(mark) :]"),
        },
    ),
    RightAnswer(
        "sorted_before_the_maximum",
        "sorts pairs, then takes the first maximum; divides Fractions",
        {
            "score": (
                FRACTION,
                "Fraction(count - discount) / piece_counts[left] / piece_counts[right]",
            ),
            "best": (
                BEST,
                "return max(sorted(scores), key=lambda pair: (scores[pair], pair_counts[pair]))",
            ),
        },
    ),
    RightAnswer(
        "longest_piece_bounds_the_search",
        "looks for no piece longer than the longest of the vocabulary",
        {
            "word": (
                ENDS,
                "range(min(len(word), start + max(map(len, vocab), default=0)), start, -1)",
            ),
            "text": (
                LENGTH,
                'length = len(word) if piece == "[UNK]" else len(piece) - len(mark) * (place > 0)',
            ),
        },
    ),
    RightAnswer(
        "words_in_a_list_and_counts_kept",
        "glues pieces in a list of words; asks for frequent pairs before it looks at scores",
        {
            "train": (
                FREQUENT,
                "frequent = {p: s for p, s in scores.items() if not pair_counts[p] < min_frequency}",
            ),
            "ids-to-text": (
                '    text = ""\n    for piece in (vocab[number] for number in ids):\n'
                f"{GLUE}        {SHOWN}\n"
                '            text += " " + piece\n    return text.strip()',
                "    words = []\n    for piece in map(vocab.__getitem__, ids):\n"
                '        if piece.startswith("##"):\n'
                '            words[-1:] = ["".join(words[-1:]) + piece[2:]]\n'
                '        elif piece not in {*SPECIALS} - {"[UNK]"}:\n'
                '            words.append(piece)\n    return " ".join(words)',
            ),
        },
    ),
]

# Written on 28 November 2026, from the task's text alone, too.
MUTANTS += [
    Fresh(
        "split_at_the_mark",
        "puts the mark between all characters and splits there: a word that has the mark in it (a##b, or c# with mark #) falls apart in the wrong places",
        "legal input",
        "scores-first-pieces",
        {
            "first-pieces": (
                "return [word[0], *(mark + character for character in word[1:])]",
                "first, *rest = mark.join(word).split(mark)\n    return [first] + [mark + character for character in rest]",
            )
        },
    ),
    Fresh(
        "one_character_word_has_no_pieces",
        "builds the list from neighbouring characters, so a word of one character gives []",
        "cut-off",
        "scores-first-pieces",
        {
            "first-pieces": 'def first_pieces(word, mark="##"):\n    """Cut a word into characters, all but the first with the mark in front.\n\n    word, mark: strings of at least one character\n    returns a list of strings\n\n    Example: "hugs" -> ["h", "##u", "##g", "##s"]; with mark "_" -> ["h", "_u", "_g", "_s"]\n    """\n    ### BEGIN SOLUTION\n    pieces = []\n    for before, character in itertools.pairwise(word):\n        if not pieces:\n            pieces.append(before)\n        pieces.append(mark + character)\n    return pieces\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "pair_once_per_word",
        "a pair that stands twice in one word (##a ##b ##a ##b) is counted once for each time the word occurs",
        "legal input",
        "scores-counts",
        {
            "count": (
                "in itertools.pairwise(pieces):",
                "in set(itertools.pairwise(pieces)):",
            )
        },
    ),
    Fresh(
        "finished_words_not_counted",
        "words that are one piece have no pair, so they are skipped, and their piece is missing from the piece counts",
        "legal input",
        "scores-counts",
        {
            "count": (
                "if counts[word] < least:",
                "if counts[word] < least or len(pieces) < 2:",
            )
        },
    ),
    Fresh(
        "rare_words_deleted_from_splits",
        "takes the words that are too rare out of the caller's splits",
        "state",
        "scores-counts",
        {
            "count": 'def count_pieces(splits, counts, least=1):\n    """Count pieces, and pairs of neighbours, in a corpus.\n\n    splits: dict, word -> list of its pieces as they stand now\n    counts: dict, word -> how often the word occurs in the corpus\n    least:  how often a word must occur to be counted\n    returns (piece_counts, pair_counts): dict piece -> int, and dict (left, right) -> int\n\n    Example: splits {"so": ["s", "##o"], "sos": ["s", "##o", "##s"]}, counts {"so": 3, "sos": 2} ->\n    ({"s": 5, "##o": 5, "##s": 2}, {("s", "##o"): 5, ("##o", "##s"): 2});\n    with least 3 -> ({"s": 3, "##o": 3}, {("s", "##o"): 3})\n    """\n    ### BEGIN SOLUTION\n    for word in list(splits):\n        if counts[word] < least:\n            del splits[word]\n    piece_counts, pair_counts = Counter(), Counter()\n    for word, pieces in splits.items():\n        for piece in pieces:\n            piece_counts[piece] += counts[word]\n        for pair in itertools.pairwise(pieces):\n            pair_counts[pair] += counts[word]\n    return piece_counts, pair_counts\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "fraction_recovered_from_float",
        "divides floats and recovers a Fraction with limit_denominator: right only while the denominator is at most 1,000,000",
        "numerics",
        "scores-values",
        {
            "score": (
                "Fraction(count - discount, piece_counts[left] * piece_counts[right])",
                "Fraction((count - discount) / (piece_counts[left] * piece_counts[right])).limit_denominator()",
            )
        },
    ),
    Fresh(
        "zero_score_left_out",
        "a pair that occurs just `discount` times, with score 0, is missing from the result",
        "cut-off",
        "scores-values",
        {
            "score": (
                "in pair_counts.items()",
                "in pair_counts.items()\n        if count != discount",
            )
        },
    ),
    Fresh(
        "discount_taken_in_place",
        "subtracts the discount in the caller's pair_counts, so they are changed and a second call subtracts again",
        "state",
        "scores-values",
        {
            "score": 'def pair_scores(piece_counts, pair_counts, discount=0):\n    """Score each pair of neighbours.\n\n    piece_counts, pair_counts: as count_pieces returns them\n    discount: an int; a score may be below 0\n    returns dict (left, right) -> Fraction\n\n    Example: {"s": 5, "##o": 5, "##s": 2}, {("s", "##o"): 5, ("##o", "##s"): 2} ->\n    {("s", "##o"): Fraction(1, 5), ("##o", "##s"): Fraction(1, 5)};\n    with discount 2 -> {("s", "##o"): Fraction(3, 25), ("##o", "##s"): Fraction(0, 1)}\n    """\n    ### BEGIN SOLUTION\n    for pair in pair_counts:\n        pair_counts[pair] -= discount\n    return {\n        (left, right): Fraction(count, piece_counts[left] * piece_counts[right])\n        for (left, right), count in pair_counts.items()\n    }\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "scores_compared_as_floats",
        "compares float(score): Fractions that differ by less than a double can hold count as a tie, and the less good but more frequent pair wins",
        "numerics",
        "merge-best",
        {"best": ("-scores[pair], -pair_counts", "-float(scores[pair]), -pair_counts")},
    ),
    Fresh(
        "ties_by_the_piece_they_make",
        "orders ties by the merged piece, not by the pair: (ab, ##c) comes before (a, ##z) because abc < az",
        "legal input",
        "merge-best",
        {
            "best": (
                "-pair_counts[pair], pair))",
                '-pair_counts[pair], pair[0] + pair[1].removeprefix("##")))',
            )
        },
    ),
    Fresh(
        "pairs_without_score_count_as_zero",
        "goes through pair_counts and takes 0 for a pair that scores does not have: when all scores are below 0, it returns a pair that is not to be chosen",
        "legal input",
        "merge-best",
        {
            "best": (
                "min(scores, key=lambda pair: (-scores[pair],",
                "min(pair_counts, key=lambda pair: (-scores.get(pair, 0),",
            )
        },
    ),
    Fresh(
        "negated_ords_prefer_the_longer",
        "max with negated character codes for ties: of (x, ##b) and (x, ##ba) it takes the longer, because a longer list is greater than its beginning",
        "cut-off",
        "merge-best",
        {
            "best": (
                "return min(scores, key=lambda pair: (-scores[pair], -pair_counts[pair], pair))",
                "return max(\n        scores,\n        key=lambda pair: (\n            scores[pair],\n            pair_counts[pair],\n            [-ord(character) for character in pair[0] + pair[1]],\n        ),\n    )",
            )
        },
    ),
    Fresh(
        "lstrip_eats_the_characters_too",
        "lstrip takes a set of characters: of the right piece ### (the mark and a #) nothing is left, and @@s with mark @ loses its own @",
        "legal input",
        "merge-pair",
        {"merge": ("right.removeprefix(mark)", "right.lstrip(mark)")},
    ),
    Fresh(
        "same_list_when_nothing_merges",
        "returns the caller's own list when the left piece does not stand in the word",
        "state",
        "merge-pair",
        {
            "merge": (
                "    merged, place = [], 0\n",
                "    if pair[0] not in pieces:\n        return pieces\n    merged, place = [], 0\n",
            )
        },
    ),
    Fresh(
        "backslash_in_the_replacement",
        "merges by re.sub on the pieces with spaces between (Sennrich's code): a new piece with a backslash is read as an escape, so it raises or comes out changed",
        "legal input",
        "merge-pair",
        {
            "merge": 'def join(left, right, mark="##"):\n    """The piece that two neighbours make; right begins with the mark.\n\n    Example: "hu", "##gs" -> "hugs";  "##g", "##s" -> "##gs";  "@g", "@s", mark "@" -> "@gs"\n    """\n    ### BEGIN SOLUTION\n    return left + right.removeprefix(mark)\n    ### END SOLUTION\n\n\ndef merge_pair(pieces, pair, mark="##"):\n    """Make one piece of each occurrence of a pair in a word, from left to right.\n\n    pieces: list of the pieces of one word; it stays as it is\n    pair:   (left, right);  mark: that of the pieces\n    returns a new list\n\n    Example: ["h", "##u", "##g", "##s"], ("##g", "##s") -> ["h", "##u", "##gs"]\n    """\n    ### BEGIN SOLUTION\n    import re\n\n    both = re.compile(r"(?<!\\S)" + re.escape(" ".join(pair)) + r"(?!\\S)")\n    return both.sub(join(*pair, mark), " ".join(pieces)).split()\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "as_many_merges_as_free_entries",
        "counts merges, not entries: a merge that makes a piece which is there already uses up an entry, and the vocabulary stays too small",
        "cut-off",
        "train-rules",
        {
            "train": (
                "while len(vocab) < vocab_size:",
                "for _ in range(vocab_size - len(vocab)):",
            )
        },
    ),
    Fresh(
        "room_counted_before_duplicates_go",
        "looks for room before duplicates are taken out: a special token that is a first piece, too, is counted twice, and a ValueError comes though all fits",
        "cut-off",
        "train-rules",
        {
            "train": (
                '    vocab = list(dict.fromkeys(vocab))  # a special token may be a first piece, too\n    if len(vocab) > vocab_size:\n        raise ValueError(f"vocab_size={vocab_size} is less than the {len(vocab)} first entries")\n',
                '    if len(vocab) > vocab_size:\n        raise ValueError(f"vocab_size={vocab_size} is less than the {len(vocab)} first entries")\n    vocab = list(dict.fromkeys(vocab))\n',
            )
        },
    ),
    Fresh(
        "inner_pieces_sorted_before_the_others",
        'sorts the pieces with ## and those without it apart: wrong for !, " and #, which come before ## in string order',
        "legal input",
        "train-rules",
        {
            "train": (
                "*sorted({piece for pieces in splits.values() for piece in pieces})]",
                "*sorted({piece for pieces in splits.values() for piece in pieces[1:]})]\n    vocab += sorted({pieces[0] for pieces in splits.values()})",
            )
        },
    ),
    Fresh(
        "stops_at_scores_not_above_zero",
        "stops when the best score is 0 or less, which a score with a discount has, though pairs are left",
        "legal input",
        "train-rules",
        {
            "train": (
                "pair = best_pair(frequent, pair_counts)\n",
                "pair = best_pair(frequent, pair_counts)\n        if frequent[pair] <= 0:\n            break\n",
            )
        },
    ),
    Fresh(
        "length_in_bytes",
        "measures the word in UTF-8 bytes: Greek or accented words of more than half of max_length are [UNK]",
        "legal input",
        "encode-word-unknown",
        {"word": ("if len(word) > max_length:", "if len(word.encode()) > max_length:")},
    ),
    Fresh(
        "max_over_an_empty_vocabulary",
        "tries no piece longer than the longest of the vocabulary, by max(), which raises for an empty one",
        "legal input",
        "encode-word-unknown",
        {
            "word": 'def encode_word(word, vocab, max_length=100, mark="##"):\n    """Cut a word into pieces, the longest first.\n\n    word:  a string of at least one character\n    vocab: set of pieces; it may be empty\n    mark:  what stands in front of pieces that do not begin a word\n    returns a list of pieces, or ["[UNK]"]\n\n    Example: "hugs" with {"h", "hu", "hug", "##s", "##gs"} -> ["hug", "##s"]\n    """\n    ### BEGIN SOLUTION\n    if len(word) > max_length:\n        return ["[UNK]"]\n    longest = max(len(piece) for piece in vocab)\n    pieces, start = [], 0\n    while start < len(word):\n        for end in range(min(len(word), start + longest), start, -1):\n            piece = (mark if start else "") + word[start:end]\n            if piece in vocab:\n                break\n        else:\n            return ["[UNK]"]\n        pieces.append(piece)\n        start = end\n    return pieces\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "memory_without_the_vocabulary",
        "remembers the pieces by word, max_length and mark, not by vocabulary: a second vocabulary gets the pieces of the first",
        "state",
        "encode-word-longest",
        {
            "word": 'known_words = {}\n\n\ndef encode_word(word, vocab, max_length=100, mark="##"):\n    """Cut a word into pieces, the longest first.\n\n    word:  a string of at least one character\n    vocab: set of pieces; it may be empty\n    mark:  what stands in front of pieces that do not begin a word\n    returns a list of pieces, or ["[UNK]"]\n\n    Example: "hugs" with {"h", "hu", "hug", "##s", "##gs"} -> ["hug", "##s"]\n    """\n    ### BEGIN SOLUTION\n    key = (word, max_length, mark)\n    if key in known_words:\n        return list(known_words[key])\n    pieces, start = [], 0\n    while start < len(word) <= max_length:\n        for end in range(len(word), start, -1):\n            piece = (mark if start else "") + word[start:end]\n            if piece in vocab:\n                break\n        else:\n            pieces = []\n            break\n        pieces.append(piece)\n        start = end\n    known_words[key] = pieces or ["[UNK]"]\n    return list(known_words[key])\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "max_length_counts_pieces",
        "compares the number of pieces with max_length, not that of characters: a too long word of few pieces is not [UNK]",
        "cut-off",
        "encode-word-unknown",
        {
            "word": 'def encode_word(word, vocab, max_length=100, mark="##"):\n    """Cut a word into pieces, the longest first.\n\n    word:  a string of at least one character\n    vocab: set of pieces; it may be empty\n    mark:  what stands in front of pieces that do not begin a word\n    returns a list of pieces, or ["[UNK]"]\n\n    Example: "hugs" with {"h", "hu", "hug", "##s", "##gs"} -> ["hug", "##s"]\n    """\n    ### BEGIN SOLUTION\n    pieces, start = [], 0\n    while start < len(word):\n        for end in range(len(word), start, -1):\n            piece = (mark if start else "") + word[start:end]\n            if piece in vocab:\n                break\n        else:\n            return ["[UNK]"]\n        pieces.append(piece)\n        if len(pieces) > max_length:\n            return ["[UNK]"]\n        start = end\n    return pieces\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "max_length_not_handed_on",
        "calls encode_word without max_length, so it is always 100",
        "hard-wired",
        "offsets-spans",
        {
            "text": (
                "encode_word(word, vocab, max_length, mark)",
                "encode_word(word, vocab, mark=mark)",
            )
        },
    ),
    Fresh(
        "unknown_told_by_the_vocabulary",
        "takes a piece for [UNK] if it is not in the vocabulary: with a vocabulary that has [UNK], as every trained one, [UNK] has 5 characters",
        "legal input",
        "offsets-spans",
        {"text": ('if piece == "[UNK]" else', "if piece not in vocab else")},
    ),
    Fresh(
        "end_is_start_and_length",
        "end = start + number of characters: wrong where an accent of its own or a soft hyphen is inside the piece, and for Korean, of which one typed character becomes three",
        "legal input",
        "offsets-unicode",
        {"text": ("spans[place + length - 1][1]", "spans[place][0] + length")},
    ),
    Fresh(
        "text_stripped_first",
        "strips the text before it is cut: all places are too small by the number of spaces at the start",
        "legal input",
        "offsets-spans",
        {"text": ("split_words(text)", "split_words(text.strip())")},
    ),
    Fresh(
        "ids_of_specials_hard_wired",
        "leaves out the ids 0, 2, 3 and 4, where BERT's special tokens are in the tests, wherever they are in this vocabulary",
        "hard-wired",
        "decode-text",
        {
            "ids-to-text": 'def decode(ids, vocab):\n    """Read ids as text.\n\n    ids:   list of ints; the first piece that is not left out begins a word\n    vocab: list of pieces\n    returns a string, without spaces at its ends\n\n    Example: [1, 3, 4, 0], vocab ["[PAD]", "[CLS]", "[SEP]", "hug", "##s"] -> "hugs"\n    """\n    ### BEGIN SOLUTION\n    text = ""\n    for number in ids:\n        if number in (0, 2, 3, 4):\n            continue\n        piece = vocab[number]\n        text += piece[2:] if piece.startswith("##") else " " + piece\n    return text.strip()\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "stops_at_the_first_sep",
        "stops at the first [SEP]: the second text of a pair is lost",
        "cut-off",
        "decode-text",
        {
            "ids-to-text": 'def decode(ids, vocab):\n    """Read ids as text.\n\n    ids:   list of ints; the first piece that is not left out begins a word\n    vocab: list of pieces\n    returns a string, without spaces at its ends\n\n    Example: [1, 3, 4, 0], vocab ["[PAD]", "[CLS]", "[SEP]", "hug", "##s"] -> "hugs"\n    """\n    ### BEGIN SOLUTION\n    text = ""\n    for number in ids:\n        piece = vocab[number]\n        if piece == "[SEP]":\n            break\n        if piece.startswith("##"):\n            text += piece[2:]\n        elif piece not in ("[PAD]", "[CLS]", "[MASK]"):\n            text += " " + piece\n    return text.strip()\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "glued_before_specials_go",
        "glues first and takes the special tokens out afterwards: in hug [MASK] ##s the ##s hangs on [MASK], and hug s comes out, not hugs",
        "legal input",
        "decode-text",
        {
            "ids-to-text": 'def decode(ids, vocab):\n    """Read ids as text.\n\n    ids:   list of ints; the first piece that is not left out begins a word\n    vocab: list of pieces\n    returns a string, without spaces at its ends\n\n    Example: [1, 3, 4, 0], vocab ["[PAD]", "[CLS]", "[SEP]", "hug", "##s"] -> "hugs"\n    """\n    ### BEGIN SOLUTION\n    text = " ".join(vocab[number] for number in ids).replace(" ##", "")\n    for special in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"):\n        text = text.replace(special, "")\n    return " ".join(text.split())\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "padding_popped_from_the_list",
        "takes the padding off the end of the caller's list of ids",
        "state",
        "decode-text",
        {
            "ids-to-text": (
                '    text = ""\n',
                '    while ids and vocab[ids[-1]] == "[PAD]":\n        ids.pop()\n    text = ""\n',
            )
        },
    ),
    Fresh(
        "all_brackets_are_special",
        "leaves out every piece in brackets but [UNK]: [unused1] or [E1] are lost, too",
        "legal input",
        "decode-text",
        {
            "ids-to-text": (
                'elif piece not in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"):',
                'elif piece == "[UNK]" or not (piece.startswith("[") and piece.endswith("]")):',
            )
        },
    ),
    Fresh(
        "check_any_error_will_do",
        "takes any exception for a too long word, so an IndexError passes for the ValueError",
        "legal input",
        "check-refuses",
        {"own-check": ("except ValueError:", "except Exception:")},
    ),
    Fresh(
        "check_list_may_be_changed",
        "does not look whether the list is as it was",
        "state",
        "check-refuses",
        {
            "own-check": (
                '        assert pieces == text.split(), "the list is changed"\n',
                "",
            )
        },
    ),
    Fresh(
        "check_few_windows_only",
        "has no input with hundreds of windows, so a recursion without a floor or a loop with a limit passes",
        "cut-off",
        "check-refuses",
        {
            "own-check": (
                '        ("a " * 300, 3, 2, [(n, n + 3) for n in range(298)]),\n',
                "",
            )
        },
    ),
    Fresh(
        "check_too_long_word_first_only",
        "tries too long words only at the start of the list, so an implementation that looks at the first word alone passes",
        "hard-wired",
        "check-refuses",
        {
            "own-check": (
                '((words, 2), ("a ##b", 1), ("##a ##b c", 1), ("a b ##c ##d e", 2))',
                '(("a ##b", 1), ("##a ##b c", 1))',
            )
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "train_with_ordered_dict_as_set",
        "the vocabulary is a dict's keys, and only words that have the pair are cut anew",
        {
            "train": 'def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=pair_scores):\n    """Learn a vocabulary.\n\n    counts: dict, word -> how often it occurs in the corpus; it stays as it is\n    score:  function (piece_counts, pair_counts) -> dict (left, right) -> number\n    returns (vocab, merges): a list of strings without duplicates, and a list of pairs (left, right) in the order in\n            which they were merged\n    raises  ValueError if vocab_size has no room for the special tokens and the first pieces\n\n    Example: {"hug": 10, "pug": 5}, vocab_size 7, specials ("[UNK]",) ->\n    (["[UNK]", "##g", "##u", "h", "p", "##ug", "hug"], [("##u", "##g"), ("h", "##ug")])\n    """\n    ### BEGIN SOLUTION\n    known = dict.fromkeys(specials)\n    cuts = {}\n    for word in counts:\n        cuts[word] = first_pieces(word)\n    for piece in sorted(set(itertools.chain.from_iterable(cuts.values()))):\n        known.setdefault(piece)\n    if vocab_size < len(known):\n        raise ValueError(f"{len(known)} special tokens and first pieces, but vocab_size is {vocab_size}")\n    history = []\n    while len(known) != vocab_size:\n        singles, neighbours = count_pieces(cuts, counts)\n        allowed = {}\n        for candidate, value in score(singles, neighbours).items():\n            if not neighbours[candidate] < min_frequency:\n                allowed[candidate] = value\n        if len(allowed) == 0:\n            break\n        chosen = best_pair(allowed, neighbours)\n        for word in counts:\n            if chosen in itertools.pairwise(cuts[word]):\n                cuts[word] = merge_pair(cuts[word], chosen)\n        history.append(chosen)\n        known.setdefault(join(*chosen))\n    return list(known), history\n    ### END SOLUTION'
        },
    ),
    RightAnswer(
        "encode_by_shrinking_the_rest",
        "the word is eaten from the front with next(); places come from itertools.accumulate, [UNK] apart",
        {
            "word": 'def encode_word(word, vocab, max_length=100, mark="##"):\n    """Cut a word into pieces, the longest first.\n\n    word:  a string of at least one character\n    vocab: set of pieces; it may be empty\n    mark:  what stands in front of pieces that do not begin a word\n    returns a list of pieces, or ["[UNK]"]\n\n    Example: "hugs" with {"h", "hu", "hug", "##s", "##gs"} -> ["hug", "##s"]\n    """\n    ### BEGIN SOLUTION\n    if max_length < len(word):\n        return ["[UNK]"]\n    found, rest, front = [], word, ""\n    while rest:\n        sizes = range(len(rest), 0, -1)\n        size = next((n for n in sizes if front + rest[:n] in vocab), None)\n        if size is None:\n            return ["[UNK]"]\n        found.append(front + rest[:size])\n        rest, front = rest[size:], mark\n    return found\n    ### END SOLUTION',
            "text": 'def encode(text, vocab, max_length=100, mark="##"):\n    """Cut a text into pieces, each with its place in the text.\n\n    vocab, max_length, mark: as in encode_word\n    returns a list of tuples (piece, start, end)\n\n    Example: "A hug" with {"a", "hu", "##g"} -> [("a", 0, 1), ("hu", 2, 4), ("##g", 4, 5)];\n             with {"a", "hu", "@@g"} and mark "@@" -> [("a", 0, 1), ("hu", 2, 4), ("@@g", 4, 5)]\n    """\n    ### BEGIN SOLUTION\n    result = []\n    for word, spans in split_words(text):\n        pieces = encode_word(word, vocab, max_length=max_length, mark=mark)\n        if pieces == ["[UNK]"]:\n            result.append(("[UNK]", spans[0][0], spans[-1][1]))\n            continue\n        sizes = [len(piece) - len(mark) * (number > 0) for number, piece in enumerate(pieces)]\n        for piece, size, behind in zip(pieces, sizes, itertools.accumulate(sizes)):\n            result.append((piece, spans[behind - size][0], spans[behind - 1][1]))\n    return result\n    ### END SOLUTION',
        },
    ),
    RightAnswer(
        "plain_dicts_and_filters",
        "counts with zip and dict.get, divides Fractions twice, chooses in three passes, merges with a flag over zip_longest",
        {
            "count": 'def count_pieces(splits, counts, least=1):\n    """Count pieces, and pairs of neighbours, in a corpus.\n\n    splits: dict, word -> list of its pieces as they stand now\n    counts: dict, word -> how often the word occurs in the corpus\n    least:  how often a word must occur to be counted\n    returns (piece_counts, pair_counts): dict piece -> int, and dict (left, right) -> int\n\n    Example: splits {"so": ["s", "##o"], "sos": ["s", "##o", "##s"]}, counts {"so": 3, "sos": 2} ->\n    ({"s": 5, "##o": 5, "##s": 2}, {("s", "##o"): 5, ("##o", "##s"): 2});\n    with least 3 -> ({"s": 3, "##o": 3}, {("s", "##o"): 3})\n    """\n    ### BEGIN SOLUTION\n    singles, neighbours = {}, {}\n    for word in splits:\n        times = counts[word]\n        if times >= least:\n            for piece in splits[word]:\n                singles[piece] = singles.get(piece, 0) + times\n            for pair in zip(splits[word], splits[word][1:]):\n                neighbours[pair] = neighbours.get(pair, 0) + times\n    return singles, neighbours\n    ### END SOLUTION',
            "score": 'def pair_scores(piece_counts, pair_counts, discount=0):\n    """Score each pair of neighbours.\n\n    piece_counts, pair_counts: as count_pieces returns them\n    discount: an int; a score may be below 0\n    returns dict (left, right) -> Fraction\n\n    Example: {"s": 5, "##o": 5, "##s": 2}, {("s", "##o"): 5, ("##o", "##s"): 2} ->\n    {("s", "##o"): Fraction(1, 5), ("##o", "##s"): Fraction(1, 5)};\n    with discount 2 -> {("s", "##o"): Fraction(3, 25), ("##o", "##s"): Fraction(0, 1)}\n    """\n    ### BEGIN SOLUTION\n    table = {}\n    for pair in pair_counts:\n        left, right = pair\n        table[pair] = Fraction(pair_counts[pair] - discount) / piece_counts[left] / piece_counts[right]\n    return table\n    ### END SOLUTION',
            "best": 'def best_pair(scores, pair_counts):\n    """Choose the pair to merge.\n\n    scores:      dict (left, right) -> number, a Fraction if it is from pair_scores; at least one pair\n    pair_counts: dict (left, right) -> int; it has all the pairs of scores, and maybe more\n    returns the pair (left, right)\n\n    Example: scores {("b", "##u"): Fraction(1, 9), ("p", "##u"): Fraction(1, 9)},\n    pair_counts {("b", "##u"): 4, ("p", "##u"): 17} -> ("p", "##u")\n    """\n    ### BEGIN SOLUTION\n    top = max(scores.values())\n    tied = [pair for pair in scores if scores[pair] == top]\n    most = max(pair_counts[pair] for pair in tied)\n    return min(pair for pair in tied if pair_counts[pair] == most)\n    ### END SOLUTION',
            "merge": 'def join(left, right, mark="##"):\n    """The piece that two neighbours make; right begins with the mark.\n\n    Example: "hu", "##gs" -> "hugs";  "##g", "##s" -> "##gs";  "@g", "@s", mark "@" -> "@gs"\n    """\n    ### BEGIN SOLUTION\n    return left + right[len(mark) :]\n    ### END SOLUTION\n\n\ndef merge_pair(pieces, pair, mark="##"):\n    """Make one piece of each occurrence of a pair in a word, from left to right.\n\n    pieces: list of the pieces of one word; it stays as it is\n    pair:   (left, right);  mark: that of the pieces\n    returns a new list\n\n    Example: ["h", "##u", "##g", "##s"], ("##g", "##s") -> ["h", "##u", "##gs"]\n    """\n    ### BEGIN SOLUTION\n    left, right = pair\n    merged, used = [], False\n    for here, after in itertools.zip_longest(pieces, pieces[1:]):\n        if used:\n            used = False\n        elif here == left and after == right:\n            merged.append(join(left, right, mark=mark))\n            used = True\n        else:\n            merged.append(here)\n    return merged\n    ### END SOLUTION',
        },
    ),
    RightAnswer(
        "check_with_an_own_implementation",
        "check_windows compares with an implementation of its own on drawn texts; decode collects words in a list; first_pieces enumerates",
        {
            "first-pieces": 'def first_pieces(word, mark="##"):\n    """Cut a word into characters, all but the first with the mark in front.\n\n    word, mark: strings of at least one character\n    returns a list of strings\n\n    Example: "hugs" -> ["h", "##u", "##g", "##s"]; with mark "_" -> ["h", "_u", "_g", "_s"]\n    """\n    ### BEGIN SOLUTION\n    pieces = []\n    for place, character in enumerate(word):\n        pieces.append(mark + character if place else character)\n    return pieces\n    ### END SOLUTION',
            "ids-to-text": 'def decode(ids, vocab):\n    """Read ids as text.\n\n    ids:   list of ints; the first piece that is not left out begins a word\n    vocab: list of pieces\n    returns a string, without spaces at its ends\n\n    Example: [1, 3, 4, 0], vocab ["[PAD]", "[CLS]", "[SEP]", "hug", "##s"] -> "hugs"\n    """\n    ### BEGIN SOLUTION\n    silent = {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}\n    words = []\n    for piece in map(vocab.__getitem__, ids):\n        if piece in silent:\n            continue\n        if piece.startswith("##") and words:\n            words[-1] += piece.removeprefix("##")\n        else:\n            words.append(piece)\n    return " ".join(words)\n    ### END SOLUTION',
            "own-check": 'def check_windows(implementation):\n    """Raise an error if an implementation of `windows` is wrong; return nothing if it is right."""\n    ### BEGIN SOLUTION\n    import random\n\n    def mine(pieces, room, overlap):\n        # where words begin, and the end; None if a word is too long\n        bounds = [n for n, piece in enumerate(pieces) if n == 0 or not piece.startswith("##")]\n        bounds.append(len(pieces))\n        if any(end - start > room for start, end in itertools.pairwise(bounds)):\n            return None\n        last, answer, first = len(bounds) - 1, [], 0\n        while first < last:\n            behind = first + 1\n            while behind < last and bounds[behind + 1] - bounds[first] <= room:\n                behind += 1\n            answer.append((bounds[first], bounds[behind]))\n            if behind == last:\n                break\n            first = behind\n            while (\n                bounds[behind] - bounds[first - 1] <= overlap\n                and bounds[behind + 1] - bounds[first - 1] <= room\n            ):\n                first -= 1\n        return answer\n\n    cases = [\n        ([], 1, 0),\n        ([], 4, 3),\n        (["##a"], 1, 0),\n        (["a", "##b"], 1, 0),\n        (["##a", "##b", "c"], 1, 0),\n        (["a", "b", "##c", "##d"], 2, 1),\n        (["a", "b", "##c", "##d", "e"], 2, 0),\n        ("##x ##y # #z x## ## x##".split(), 2, 1),\n        ("##x ##y # #z x## ## x##".split(), 3, 2),\n        ("a b c d ##e g".split(), 4, 3),\n        ("a b ##c d e".split(), 4, 3),\n        ("a b ##c d e ##f ##g".split(), 5, 3),\n        (["a"] * 900, 3, 2),\n        (["a", "##b"] * 300, 5, 2),\n        (["a", "b", "##c"] * 300, 512, 128),\n    ]\n    draw = random.Random(4)\n    kinds = ["a", "b", "c", "a", "##d", "##e", "##", "f##", "#", "#g"]\n    for _ in range(20):\n        pieces = draw.choices(kinds, k=draw.randint(1, 16))\n        for _ in range(8):\n            room = draw.randint(1, 8)\n            cases.append((pieces, room, draw.randrange(room)))\n    for pieces, room, overlap in cases + cases[6:12]:\n        wanted, given = mine(pieces, room, overlap), list(pieces)\n        try:\n            got = implementation(given, room, overlap)\n        except ValueError:\n            assert wanted is None, f"{pieces}, {room}, {overlap}: no word is too long"\n        else:\n            assert wanted is not None, f"{pieces}, {room}: a word is too long"\n            assert got == wanted, f"{pieces}, {room}, {overlap}: {got}, not {wanted}"\n        assert given == pieces, "the list is changed"\n    ### END SOLUTION',
        },
    ),
]

# Another reader's list.

MUTANTS += [
    # first-pieces
    Fresh(
        "first_pieces_cached",
        "the function is cached, so that each call hands out the same list: who changes one list changes all later answers",
        "state",
        "scores-first-pieces",
        {
            "first-pieces": (
                'def first_pieces(word, mark="##"):',
                'import functools\n\n\n@functools.cache\ndef first_pieces(word, mark="##"):',
            )
        },
    ),
    Fresh(
        "first_pieces_last_apart",
        "first, middle and last character are written apart: a word of one character gives two pieces",
        "cut-off",
        "scores-first-pieces",
        {
            "first-pieces": (
                "return [word[0], *(mark + character for character in word[1:])]",
                "return [word[0], *(mark + character for character in word[1:-1]), mark + word[-1]]",
            )
        },
    ),
    # count
    Fresh(
        "count_pair_once_per_word",
        "a pair that stands twice in one word is counted once for each time the word occurs",
        "legal input",
        "scores-counts",
        {
            "count": (
                "in itertools.pairwise(pieces):",
                "in set(itertools.pairwise(pieces)):",
            )
        },
    ),
    Fresh(
        "count_skips_words_of_one_piece",
        "words that are one piece have no pairs and are skipped, and so their piece is not counted either",
        "cut-off",
        "scores-counts",
        {
            "count": (
                "if counts[word] < least:",
                "if counts[word] < least or len(pieces) < 2:",
            )
        },
    ),
    Fresh(
        "count_drops_rare_words_from_counts",
        "the words that are too rare are taken out of the caller's table",
        "state",
        "scores-counts",
        {
            "count": (
                "            continue\n",
                "            counts.pop(word)\n            continue\n",
            )
        },
    ),
    # score
    Fresh(
        "score_limit_denominator",
        "the score is divided as floats and made a fraction by limit_denominator(), which rounds where the product of the frequencies is above a million",
        "numerics",
        "scores-values",
        {
            "score": (
                "Fraction(count - discount, piece_counts[left] * piece_counts[right])",
                "Fraction((count - discount) / (piece_counts[left] * piece_counts[right])).limit_denominator()",
            )
        },
    ),
    Fresh(
        "score_discounts_callers_counts",
        "the discount is taken from the entries of the table of pairs that is passed in",
        "state",
        "scores-values",
        {
            "score": (
                "    return {\n        (left, right): Fraction(count - discount, ",
                "    for pair in pair_counts:\n        pair_counts[pair] -= discount\n"
                "    return {\n        (left, right): Fraction(count, ",
            )
        },
    ),
    Fresh(
        "score_negative_discount_ignored",
        "a discount below 0 is taken for 0, although it may be any int",
        "cut-off",
        "scores-values",
        {
            "score": (
                "Fraction(count - discount, ",
                "Fraction(count - max(discount, 0), ",
            )
        },
    ),
    # best
    Fresh(
        "best_compares_floats",
        "the scores are compared as floats: fractions that differ by less than a float can show are taken for equal",
        "numerics",
        "merge-best",
        {"best": ("(-scores[pair], ", "(-float(scores[pair]), ")},
    ),
    Fresh(
        "best_orders_by_str_of_pair",
        "ties are ordered by str(pair), quotes and comma included, not as Python compares pairs: (a, ##x) comes behind (a!, ##x)",
        "legal input",
        "merge-best",
        {"best": ("-pair_counts[pair], pair))", "-pair_counts[pair], str(pair)))")},
    ),
    Fresh(
        "best_starts_from_score_zero",
        "the search begins with a score of 0, so that no pair is found if all scores are below 0",
        "cut-off",
        "merge-best",
        {
            "best": (
                "    return min(scores, key=lambda pair: (-scores[pair], -pair_counts[pair], pair))",
                "    best, rank = None, (0, 0)\n"
                "    for pair in sorted(scores):\n"
                "        if (scores[pair], pair_counts[pair]) > rank:\n"
                "            best, rank = pair, (scores[pair], pair_counts[pair])\n"
                "    return best",
            )
        },
    ),
    Fresh(
        "best_of_all_counted_pairs",
        "the choice is among the pairs of pair_counts, those without a score at 0: such a pair beats scores below 0",
        "legal input",
        "merge-best",
        {
            "best": (
                "min(scores, key=lambda pair: (-scores[pair], ",
                "min(pair_counts, key=lambda pair: (-scores.get(pair, 0), ",
            )
        },
    ),
    # merge
    Fresh(
        "join_drops_two_marks",
        "BERT's ## is dropped beside the mark that is passed in: of a right piece #### or, with mark #, ##x too much is gone",
        "hard-wired",
        "merge-pair",
        {
            "merge": (
                "right.removeprefix(mark)",
                'right.removeprefix("##").removeprefix(mark)',
            )
        },
    ),
    Fresh(
        "merge_same_list_if_nothing_to_merge",
        "a word without the left piece is handed back itself, not as a new list",
        "state",
        "merge-pair",
        {
            "merge": (
                "    merged, place = [], 0\n",
                "    if pair[0] not in pieces:\n        return pieces\n    merged, place = [], 0\n",
            )
        },
    ),
    Fresh(
        "merge_by_regular_expression",
        "the pair is looked for by a regular expression without re.escape: signs such as . and + in pieces match something else",
        "legal input",
        "merge-pair",
        {
            "merge": (
                "    merged, place = [], 0\n"
                "    while place < len(pieces):\n"
                "        if tuple(pieces[place : place + 2]) == pair:\n"
                "            merged.append(join(*pair, mark))\n"
                "            place += 2\n"
                "        else:\n"
                "            merged.append(pieces[place])\n"
                "            place += 1\n"
                "    return merged\n",
                "    import re\n\n"
                '    both = rf"(?<!\\S){pair[0]} {pair[1]}(?!\\S)"\n'
                '    return re.sub(both, join(*pair, mark), " ".join(pieces)).split(" ")\n',
            )
        },
    ),
    Fresh(
        "merge_whatever_makes_the_same_piece",
        "two neighbours are merged if they make the same piece as the pair, even if they are cut elsewhere: (##an, ##a) for (##a, ##na)",
        "legal input",
        "merge-pair",
        {
            "merge": (
                "if tuple(pieces[place : place + 2]) == pair:",
                "if place + 1 < len(pieces) and join(*pieces[place : place + 2], mark) == join(*pair, mark):",
            )
        },
    ),
    # train
    Fresh(
        "train_counts_merges_not_entries",
        "the loop runs once for each free entry: a merge whose piece is there already (say, as a special token) costs an entry, and the vocabulary stays too small",
        "cut-off",
        "train-rules",
        {
            "train": (
                "    while len(vocab) < vocab_size:",
                "    for _ in range(vocab_size - len(vocab)):",
            )
        },
    ),
    Fresh(
        "train_piece_that_is_a_special",
        "a new piece is looked up among the pieces only: one that is a special token as well stands twice in the vocabulary",
        "legal input",
        "train-rules",
        {
            "train": (
                "if join(*pair) not in vocab:",
                "if join(*pair) not in vocab[len(specials) :]:",
            )
        },
    ),
    Fresh(
        "train_room_with_duplicates",
        "the room for special tokens and first pieces is checked with those counted twice that are both",
        "cut-off",
        "train-rules",
        {
            "train": (
                "    vocab = list(dict.fromkeys(vocab))  # a special token may be a first piece, too\n"
                "    if len(vocab) > vocab_size:",
                "    needed = len(vocab)\n"
                "    vocab = list(dict.fromkeys(vocab))  # a special token may be a first piece, too\n"
                "    if needed > vocab_size:",
            )
        },
    ),
    Fresh(
        "train_stops_at_score_zero",
        "pairs whose score is not above 0 are never merged, although pairs are left and the vocabulary has room",
        "cut-off",
        "train-rules",
        {
            "train": (
                "if pair_counts[p] >= min_frequency}",
                "if pair_counts[p] >= min_frequency and scores[p] > 0}",
            )
        },
    ),
    Fresh(
        "train_first_pieces_min_frequency",
        "first pieces that occur fewer than min_frequency times are left out, although that rule is for pairs",
        "legal input",
        "train-rules",
        {
            "train": (
                "    vocab = [*specials, *sorted({piece for pieces in splits.values() for piece in pieces})]",
                "    first_counts, _ = count_pieces(splits, counts)\n"
                "    vocab = [*specials, *sorted(piece for piece, n in first_counts.items() if n >= min_frequency)]",
            )
        },
    ),
    # word
    Fresh(
        "word_in_vocab_before_length",
        "a word that is a piece is returned before its length is looked at: one of more than max_length characters is not [UNK]",
        "cut-off",
        "encode-word-unknown",
        {
            "word": (
                "    if len(word) > max_length:",
                "    if word in vocab:\n        return [word]\n    if len(word) > max_length:",
            )
        },
    ),
    Fresh(
        "word_pieces_of_20_at_most",
        "no piece of more than 20 characters is tried, because BERT has none",
        "hard-wired",
        "encode-word-longest",
        {
            "word": (
                "range(len(word), start, -1)",
                "range(min(len(word), start + 20), start, -1)",
            )
        },
    ),
    # text
    Fresh(
        "text_stripped",
        "the text is stripped before it is cut, so that all places are too small in a text that begins with spaces",
        "legal input",
        "offsets-spans",
        {"text": ("split_words(text)", "split_words(text.strip())")},
    ),
    Fresh(
        "text_lowered_first",
        "the text is made lower-case before it is cut: the Turkish capital I with a dot becomes two characters, and all later places are one too great",
        "legal input",
        "offsets-unicode",
        {"text": ("split_words(text)", "split_words(text.lower())")},
    ),
    Fresh(
        "text_words_remembered",
        "the pieces of words are remembered from call to call by the id of the vocabulary: one that has grown since gives the old pieces",
        "state",
        "offsets-spans",
        {
            "text": (
                "    encoded = []\n"
                "    for word, spans in split_words(text):\n"
                "        place = 0\n"
                "        for piece in encode_word(word, vocab, max_length, mark):\n",
                "    encoded = []\n"
                '    known = encode.__dict__.setdefault("known", {})\n'
                "    for word, spans in split_words(text):\n"
                "        place = 0\n"
                "        key = word, id(vocab), max_length, mark\n"
                "        if key not in known:\n"
                "            known[key] = encode_word(word, vocab, max_length, mark)\n"
                "        for piece in known[key]:\n",
            )
        },
    ),
    # ids-to-text
    Fresh(
        "decode_stops_at_pad",
        "reading stops at the first [PAD]: of ids that are padded on the left, or between two texts, the rest is lost",
        "legal input",
        "decode-text",
        {
            "ids-to-text": (
                '        elif piece not in ("[PAD]",',
                '        elif piece == "[PAD]":\n            break\n        elif piece not in ("[PAD]",',
            )
        },
    ),
    Fresh(
        "decode_takes_ids_out",
        "the ids are taken out of the caller's list one by one",
        "state",
        "decode-text",
        {
            "ids-to-text": (
                "    for piece in (vocab[number] for number in ids):\n",
                "    while ids:\n        piece = vocab[ids.pop(0)]\n",
            )
        },
    ),
    Fresh(
        "decode_drops_all_in_brackets",
        "every piece that begins with a bracket is left out but [UNK]: so are the piece [ and tokens such as [unused1]",
        "hard-wired",
        "decode-text",
        {
            "ids-to-text": (
                'elif piece not in ("[PAD]", "[CLS]", "[SEP]", "[MASK]"):',
                'elif piece == "[UNK]" or not piece.startswith("["):',
            )
        },
    ),
    # own-check
    Fresh(
        "check_takes_any_error",
        "for a word that is too long any error is taken for the ValueError",
        "legal input",
        "check-refuses",
        {"own-check": ("        except ValueError:", "        except Exception:")},
    ),
    Fresh(
        "check_compares_list_with_itself",
        "what the list was before the call is remembered under a second name, not copied: a list that is changed is compared with itself",
        "state",
        "check-refuses",
        {
            "own-check": (
                "        pieces = text.split()\n"
                "        assert implementation(pieces, room, overlap) == wanted, text\n"
                '        assert pieces == text.split(), "the list is changed"',
                "        pieces = before = text.split()\n"
                "        assert implementation(pieces, room, overlap) == wanted, text\n"
                '        assert pieces == before, "the list is changed"',
            )
        },
    ),
    Fresh(
        "check_some_examples_by_chance",
        "only ten of the examples, drawn at random, are tried: a wrong implementation that just one of them refuses often passes",
        "chance",
        "check-refuses",
        {
            "own-check": (
                "    for text, room, overlap, wanted in examples:",
                "    import random\n\n    for text, room, overlap, wanted in random.sample(examples, 10):",
            )
        },
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "filters_and_running_counts",
        "training keeps the counts and mends them for the words that a merge changes; the best pair is found by three filters",
        {
            "first-pieces": """def first_pieces(word, mark="##"):
    return [mark * (place > 0) + character for place, character in enumerate(word)]
""",
            "score": """def pair_scores(piece_counts, pair_counts, discount=0):
    scores = {}
    for pair in pair_counts:
        score = Fraction(pair_counts[pair] - discount)
        for piece in pair:
            score /= piece_counts[piece]
        scores[pair] = score
    return scores
""",
            "best": """def best_pair(scores, pair_counts):
    top = max(scores.values())
    tied = [pair for pair in scores if scores[pair] == top]
    most = max(pair_counts[pair] for pair in tied)
    return min(pair for pair in tied if pair_counts[pair] == most)
""",
            "merge": """def join(left, right, mark="##"):
    return left + right[len(mark) :]


def merge_pair(pieces, pair, mark="##"):
    rest, merged = list(reversed(pieces)), []
    while rest:
        piece = rest.pop()
        if rest and (piece, rest[-1]) == tuple(pair):
            piece = join(piece, rest.pop(), mark)
        merged.append(piece)
    return merged
""",
            "train": """def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=pair_scores):
    splits = {word: first_pieces(word) for word in counts}
    vocab = []
    for piece in itertools.chain(specials, sorted(set(itertools.chain.from_iterable(splits.values())))):
        if piece not in vocab:
            vocab.append(piece)
    if vocab_size < len(vocab):
        raise ValueError(f"{vocab_size} entries have no room for {len(vocab)} special tokens and first pieces")
    piece_counts, pair_counts, merges = Counter(), Counter(), []

    def book(word, sign):
        pieces, times = splits[word], sign * counts[word]
        for piece in pieces:
            piece_counts[piece] += times
        for pair in zip(pieces, pieces[1:]):
            pair_counts[pair] += times

    for word in splits:
        book(word, 1)
    while len(vocab) < vocab_size:
        now_pieces, now_pairs = +piece_counts, +pair_counts
        if not now_pairs:
            break
        scores = score(now_pieces, now_pairs)
        pairs = {pair: value for pair, value in scores.items() if pair_counts[pair] >= min_frequency}
        if not pairs:
            break
        pair = best_pair(pairs, +pair_counts)
        merges.append(pair)
        for word, pieces in splits.items():
            if pair in zip(pieces, pieces[1:]):
                book(word, -1)
                splits[word] = merge_pair(pieces, pair)
                book(word, 1)
        new = join(*pair)
        if new not in vocab:
            vocab.append(new)
    return vocab, merges
""",
        },
    ),
    RightAnswer(
        "all_ends_and_cuts",
        "a word is cut at the greatest of all ends that fit; a text gets its places from running sums of the lengths; ids are read word by word",
        {
            "count": """def count_pieces(splits, counts, least=1):
    kept = [word for word in splits if counts[word] >= least]
    piece_counts, pair_counts = {}, {}
    for word in kept:
        pieces = splits[word]
        for place, piece in enumerate(pieces):
            piece_counts[piece] = piece_counts.get(piece, 0) + counts[word]
            if place:
                pair = (pieces[place - 1], piece)
                pair_counts[pair] = pair_counts.get(pair, 0) + counts[word]
    return piece_counts, pair_counts
""",
            "word": """def encode_word(word, vocab, max_length=100, mark="##"):
    unknown = ["[UNK]"]
    if len(word) > max_length:
        return unknown
    pieces, rest, before = [], word, ""
    while rest:
        fits = [end for end in range(1, len(rest) + 1) if before + rest[:end] in vocab]
        if not fits:
            return unknown
        pieces.append(before + rest[: fits[-1]])
        rest, before = rest[fits[-1] :], mark
    return pieces
""",
            "text": """def encode(text, vocab, max_length=100, mark="##"):
    encoded = []
    for word, spans in split_words(text):
        pieces = encode_word(word, vocab, max_length, mark)
        if pieces == ["[UNK]"]:
            cuts = [0, len(word)]
        else:  # all pieces but the first have the mark
            lengths = (len(piece) - (len(mark) if place else 0) for place, piece in enumerate(pieces))
            cuts = list(itertools.accumulate(lengths, initial=0))
        for piece, first, behind in zip(pieces, cuts, cuts[1:]):
            encoded.append((piece, spans[first][0], spans[behind - 1][1]))
    return encoded
""",
            "ids-to-text": """def decode(ids, vocab):
    silent = {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}
    read = []
    for number in ids:
        piece = vocab[number]
        if piece in silent:
            continue
        if read and piece[:2] == "##":
            read[-1] += piece[2:]
        else:
            read.append(piece)
    return " ".join(read)
""",
        },
    ),
    RightAnswer(
        "check_against_a_slow_one",
        "the check draws small texts at random and compares with windows found by trying all ends and starts",
        {
            "own-check": '''def check_windows(implementation):
    """Raise an error if an implementation of `windows` is wrong; return nothing if it is right."""
    import random

    def wanted_windows(pieces, room, overlap):
        starts = [n for n, piece in enumerate(pieces) if n == 0 or not piece.startswith("##")]
        edges = [*starts, len(pieces)] if pieces else []
        if any(b - a > room for a, b in zip(edges, edges[1:])):
            return ValueError
        found, start = [], 0
        while pieces:
            end = max(edge for edge in edges if start < edge <= start + room)
            found.append((start, end))
            if end == len(pieces):
                break
            following = edges[edges.index(end) + 1]
            start = min(s for s in edges if start < s <= end and end - s <= overlap and following - s <= room)
        return found

    def compare(pieces, room, overlap):
        given, wanted = list(pieces), wanted_windows(pieces, room, overlap)
        try:
            got = implementation(given, room, overlap)
        except ValueError:
            got = ValueError
        assert got == wanted, (pieces, room, overlap)
        assert given == pieces, "the list is changed"

    # calls: 1 + 2 + 12 + 150 = 165
    compare([], 1, 0)
    compare(["a"] * 400, 3, 2)
    compare(["a", "##b"] * 300, 5, 2)
    for text in ("a ##b", "##a ##b c", "c a ##b", "a b ##c ##d e", "## ## a", "a b c ##d ##e ##f"):
        compare(text.split(), 1, 0)
        compare(text.split(), 2, 1)
    draw = random.Random(11)
    signs = ["a", "a", "b", "#", "x##", "#z", "c"]
    for turn in range(150):
        pieces = []
        longest = draw.choice((1, 2, 3, 4))
        for _ in range(draw.randint(1, 9)):
            length = draw.randint(1, longest)
            pieces += [draw.choice(signs), *draw.choices(["##", "##a", "###", "##b"], k=length - 1)]
        if turn % 4 == 0:
            pieces[0] = "##x"
        room = max(1, longest + draw.choice((0, 0, 1, 1, 2, 3, 5, -1 if turn % 8 == 1 else 0)))
        compare(pieces, room, draw.choice((0, room - 1, draw.randrange(room), draw.randrange(room))))
'''
        },
    ),
]
