"""Small calls for `course viva wordpiece`."""

SPLITS = "{'so': ['s', '##o'], 'sos': ['s', '##o', '##s']}, {'so': 3, 'sos': 2}"
COUNTS = "{'s': 5, '##o': 5, '##s': 2}, {('s', '##o'): 5, ('##o', '##s'): 2}"
HUGS = "{'h', 'hu', 'hug', '##s', '##gs'}"
VOCAB = "['[PAD]', '[CLS]', '[SEP]', 'hug', '##s']"

CALLS = {
    "first_pieces": [
        "first_pieces('hugs')",
        "first_pieces('hugs', mark='_')",
        "first_pieces('a')",
        "first_pieces('##')",
    ],
    "count_pieces": [
        f"count_pieces({SPLITS})",
        f"count_pieces({SPLITS}, least=3)",
        "count_pieces({'aa': ['a', '##a'], 'b': ['b']}, {'aa': 4, 'b': 2}, least=2)",
        "count_pieces({'ooo': ['o', '##o', '##o']}, {'ooo': 2})",
    ],
    "pair_scores": [
        f"pair_scores({COUNTS})",
        f"pair_scores({COUNTS}, discount=2)",
        "pair_scores({'a': 2, '##b': 4}, {('a', '##b'): 2})",
        "pair_scores({'a': 3}, {('a', 'a'): 6}, discount=3)",
    ],
    "best_pair": [
        "best_pair({('b', 'u'): 2, ('p', 'u'): 2}, {('b', 'u'): 4, ('p', 'u'): 17})",
        "best_pair({('b', 'u'): 3, ('p', 'u'): 2}, {('b', 'u'): 4, ('p', 'u'): 17})",
        "best_pair({('z', 'u'): 2, ('p', 'u'): 2}, {('z', 'u'): 4, ('p', 'u'): 4})",
    ],
    "merge_pair": [
        "merge_pair(['h', '##u', '##g', '##s'], ('##g', '##s'))",
        "merge_pair(['a', '##a', '##a'], ('##a', '##a'))",
        "merge_pair(['a', '@b', '@c', '@b'], ('a', '@b'), mark='@')",
        "merge_pair(['x', '##y', '##z'], ('y', '##z'))",
        "merge_pair(['o', '##o', '##o', '##o', '##o'], ('##o', '##o'))",
    ],
    "train": [
        "sorted(train({'hug': 10, 'pug': 5}, 7, ('[UNK]',))[0])",
        "sorted(train({'hug': 10, 'pug': 5}, 5, ('[UNK]',))[0])",
        "sorted(train({'ab': 3, 'ac': 1}, 9, (), min_frequency=2)[0])",
        "train({'ab': 3, 'cd': 2}, 3, ())[1]",
    ],
    "encode_word": [
        f"encode_word('hugs', {HUGS})",
        f"encode_word('hug', {HUGS})",
        f"encode_word('hux', {HUGS})",
        f"encode_word('hugs', {HUGS}, max_length=3)",
        "encode_word('aab', {'a', '@a', '@ab'}, mark='@')",
    ],
    "encode": [
        "encode('A hug', {'a', 'hu', '##g'})",
        "encode('A hug', {'a', 'hu', '@g'}, mark='@')",
        "encode('no a', {'a'})",
        "encode('hug!', {'hug', '!'}, max_length=2)",
    ],
    "decode": [
        f"decode([1, 3, 4, 0], {VOCAB})",
        f"decode([4, 3], {VOCAB})",
        f"decode([3, 2, 3, 4], {VOCAB})",
        f"decode([0, 0], {VOCAB})",
    ],
}
