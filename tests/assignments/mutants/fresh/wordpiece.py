"""Wrong answers to the WordPiece assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
wordpiece`` says which get full marks.
"""

from fresh import one_by_one

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
