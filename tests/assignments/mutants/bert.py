"""Wrong answers to the BERT assignment that people give, and right answers that people write differently.

A change is either a pair (text in the reference, text to put there) or the whole cell. "visible" means that the tests
that the student has refuse it already; "hidden" that only the grader's do. Longer than 400 lines because it is a
catalogue: look an entry up, do not read it through.
"""

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks


def mutants_of(solution: str, cell: str, *rows: tuple) -> list[Mutant]:
    """Mutants of one solution cell that one test cell must refuse.

    A row is (name, mistake, change, words, caught), and the cells that fail with it, if any.
    """
    return [
        Mutant(name, mistake, cell, words, caught, {solution: change}, tuple(also))
        for name, mistake, change, words, caught, *also in rows
    ]


AGREEMENT = "loading-agreement"
CUT = ("input-truncate", AGREEMENT)

TYPES = "token_type_ids += [number] * (len(segment) + 1)"
JOIN = """    input_ids, token_type_ids = [cls_id], [0]
    for number, segment in enumerate(segments):
        input_ids += [*segment, sep_id]
        token_type_ids += [number] * (len(segment) + 1)
        if number == 0:
            input_ids += [sep_id] * extra
            token_type_ids += [0] * extra
    return input_ids, token_type_ids"""
PAIR = mutants_of(
    "pair",
    "input-pair",
    (
        "one_sep_between_always",
        "writes one [SEP] between two segments, whatever is asked for",
        ("extra = (between - 1) * (len(segments) - 1)", "extra = 0"),
        "Write as many [SEP] between the segments as `between` says",
        "visible",
        "input-truncate",
    ),
    (
        "middle_sep_in_the_second_segment",
        "starts the second segment at the [SEP] that closes the first",
        (
            TYPES,
            "token_type_ids += [number] * len(segment) + [min(number + 1, len(segments) - 1)]",
        ),
        "The [SEP] in the middle closes the first segment",
        "visible",
        *CUT,
    ),
    (
        "last_sep_in_the_first_segment",
        "gives all special tokens segment 0",
        (TYPES, "token_type_ids += [number] * len(segment) + [0]"),
        "The last [SEP] closes the second segment",
        "visible",
        *CUT,
    ),
    (
        "second_segment_one_late",
        "starts the second segment one position after its first word",
        (
            "    return input_ids, token_type_ids",
            "    if len(segments) == 2:\n        token_type_ids[len(segments[0]) + 2] = 0\n"
            "    return input_ids, token_type_ids",
        ),
        "begins right after the [SEP] in the middle",
        "visible",
        *CUT,
    ),
    (
        "segments_from_one",
        "counts segments from 1",
        (
            "    return input_ids, token_type_ids",
            "    return input_ids, [number + 1 for number in token_type_ids]",
        ),
        "Segments are counted from 0",
        "visible",
        *CUT,
    ),
    (
        "no_segment_ids_for_special_tokens",
        "makes segment ids for the words alone",
        (
            "    return input_ids, token_type_ids",
            "    return input_ids, [number for number, segment in enumerate(segments) for _ in segment]",
        ),
        "are positions as well",
        "visible",
        *CUT,
    ),
    (
        "one_segment_id_for_all",
        "gives all positions segment 0",
        (TYPES, "token_type_ids += [0] * (len(segment) + 1)"),
        "The second segment has segment id 1",
        "visible",
        *CUT,
    ),
    (
        "no_sep_between",
        "puts one [SEP] at the end",
        (
            JOIN,
            "    ids = [cls_id, *sum(segments, []), sep_id]\n"
            "    return ids, [0] * (len(segments[0]) + 1) + [1] * (len(ids) - len(segments[0]) - 1)",
        ),
        "A [SEP] stands between the segments, too",
        "visible",
        *CUT,
    ),
    (
        "no_sep_at_the_end",
        "puts [SEP] between the segments only",
        (
            "    return input_ids, token_type_ids",
            "    if len(segments) == 2:\n        del input_ids[-1], token_type_ids[-1]\n"
            "    return input_ids, token_type_ids",
        ),
        "The second segment is closed by a [SEP], too",
        "visible",
        *CUT,
    ),
    (
        "no_cls",
        "leaves [CLS] out",
        ("[cls_id], [0]", "[], []"),
        "[CLS] comes first",
        "visible",
        *CUT,
    ),
    (
        "cls_twice",
        "puts [CLS] in front of each segment",
        (
            "        input_ids += [*segment, sep_id]\n",
            "        input_ids += [cls_id] * number + [*segment, sep_id]\n        token_type_ids += [1] * number\n",
        ),
        "There is one [CLS] only",
        "visible",
        *CUT,
    ),
    (
        "two_seps_after_one_segment",
        "closes a second segment that is not there",
        (
            "segments = [list(first)] if second is None else",
            "second = second or []\n    segments =",
        ),
        "With one segment there is one [SEP]",
        "visible",
        "input-truncate",
    ),
    (
        "special_ids_typed_in",
        "writes 101 and 102 whatever is passed in",
        (
            "    input_ids, token_type_ids = [cls_id], [0]\n",
            "    cls_id, sep_id = 101, 102\n    input_ids, token_type_ids = [cls_id], [0]\n",
        ),
        "Use the numbers that are passed in",
        "hidden",
        AGREEMENT,
    ),
    (
        "segments_found_by_looking_for_sep",
        "looks for the first [SEP] in the ids, which may be a word",
        (
            "    return input_ids, token_type_ids",
            "    end = input_ids.index(sep_id) + extra\n"
            "    return input_ids, [int(place > end) for place in range(len(input_ids))]",
        ),
        "an id among the words may be equal to sep_id",
        "hidden",
    ),
)

SHORTEN = """    while sum(map(len, segments)) + 1 + len(segments) + extra > max_length:
        longest = max(map(len, segments))
        [segment for segment in segments if len(segment) == longest][-1].pop()
"""
TRUNCATE = mutants_of(
    "pair",
    "input-truncate",
    (
        "further_seps_take_no_room",
        "counts one [SEP] between two segments when it takes tokens away",
        (" + extra > max_length", " > max_length"),
        "Every [SEP] takes room, also the further ones",
        "visible",
    ),
    (
        "last_sep_cut_off",
        "cuts the joined sequence, last [SEP] and all",
        "def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):\n"
        "    ids = [cls_id, *first] + [sep_id] * (1 if second is None else between)\n"
        "    types = [0] * len(ids)\n"
        "    if second is not None:\n"
        "        ids, types = [*ids, *second, sep_id], types + [1] * (len(second) + 1)\n"
        "    return ids[:max_length], types[:max_length]",
        "the last [SEP] is gone",
        "visible",
    ),
    ("never_cut", "forgets max_length", (SHORTEN, ""), "That is 12 long", "visible"),
    (
        "special_tokens_not_counted",
        "cuts the words to max_length and adds special tokens to it",
        ("+ 1 + len(segments) + extra > max_length", "> max_length"),
        "special tokens included",
        "visible",
    ),
    (
        "two_special_tokens_counted",
        "leaves room for [CLS] and one [SEP]",
        ("+ 1 + len(segments) + extra > max_length", "+ 2 > max_length"),
        "Six ids have room beside [CLS] and the two [SEP]",
        "visible",
    ),
    (
        "three_special_tokens_counted",
        "leaves room for two [SEP] when there is one segment",
        ("+ 1 + len(segments) + extra > max_length", "+ 3 + extra > max_length"),
        "A single segment needs room for [CLS] and one [SEP]",
        "hidden",
    ),
    (
        "second_segment_cut",
        "takes tokens from the second segment as long as it has any",
        (
            "[segment for segment in segments if len(segment) == longest][-1].pop()",
            "[segment for segment in segments if segment][-1].pop()",
        ),
        "Take tokens from the longer segment",
        "visible",
    ),
    (
        "half_for_each_segment",
        "gives each segment half of the room, used or not",
        (
            SHORTEN,
            "    room = (max_length - 1 - len(segments) - extra) // len(segments)\n"
            "    segments = [segment[:room] for segment in segments]\n",
        ),
        "With max_length 8, the ids of two segments of 3",
        "visible",
    ),
    (
        "first_cut_when_equal",
        "takes from the first of two equally long segments",
        (
            "if len(segment) == longest][-1].pop()",
            "if len(segment) == longest][0].pop()",
        ),
        "Of two equally long segments the second one is cut",
        "visible",
    ),
    (
        "cut_at_the_start",
        "takes tokens away at the start of a segment",
        ("[-1].pop()", "[-1].pop(0)"),
        "at the end, not at the start",
        "visible",
    ),
    (
        "input_lists_used_up",
        "shortens the very lists that it is given",
        (
            "[list(first)] if second is None else [list(first), list(second)]",
            "[first] if second is None else [first, second]",
        ),
        "must leave the lists that it is given as they were",
        "visible",
    ),
    (
        "segment_ids_of_the_whole",
        "makes the segment ids before it cuts",
        "def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):\n"
        "    segments = [list(first)] if second is None else [list(first), list(second)]\n"
        "    extra = (between - 1) * (len(segments) - 1)\n"
        "    types = [0] * (1 + extra)\n"
        "    types += [n for n, segment in enumerate(segments) for _ in range(len(segment) + 1)]\n"
        + SHORTEN
        + "    ids = [cls_id]\n    for number, segment in enumerate(segments):\n"
        "        ids += [*segment, sep_id] + [sep_id] * (extra if number == 0 else 0)\n"
        "    return ids, types[: len(ids)]",
        "Make them after you have cut",
        "visible",
    ),
)

FILLED = """        batch["input_ids"].append([*ids, *[pad_id] * filling])
        batch["token_type_ids"].append([*types, *[0] * filling])
        batch["attention_mask"].append([True] * len(ids) + [False] * filling)"""
BATCH = mutants_of(
    "batch",
    "input-batch",
    (
        "one_more_multiple",
        "fills a length up that is a multiple already",
        ("-longest % multiple", "multiple - longest % multiple"),
        "For sequences of 3 and 6",
        "visible",
    ),
    (
        "multiple_ignored",
        "fills up to the longest, as the library does, whatever is asked for",
        ("    longest += -longest % multiple\n", ""),
        "For sequences of 3 and 5, pad_id 3 and a multiple of 4",
        "visible",
    ),
    (
        "filled_up_at_the_start",
        "puts the filling in front",
        (
            FILLED,
            '        batch["input_ids"].append([*[pad_id] * filling, *ids])\n'
            '        batch["token_type_ids"].append([*[0] * filling, *types])\n'
            '        batch["attention_mask"].append([False] * filling + [True] * len(ids))',
        ),
        "[CLS] must stay at position 0",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_upside_down",
        "marks the filling instead of the words",
        (
            "[True] * len(ids) + [False] * filling",
            "[False] * len(ids) + [True] * filling",
        ),
        "Yours is upside down",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_of_ones",
        "marks everything as real",
        ("[True] * len(ids) + [False] * filling", "[True] * longest"),
        "Yours marks the filling as real, too",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_of_numbers",
        "makes a mask of 0 and 1, as the tokenizers of libraries do",
        ("[True] * len(ids) + [False] * filling", "[1] * len(ids) + [0] * filling"),
        "must have dtype torch.bool",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_from_the_ids",
        "takes every pad_id for filling, also one that was there before",
        (
            "[True] * len(ids) + [False] * filling",
            "[token != pad_id for token in [*ids, *[pad_id] * filling]]",
        ),
        "With pad_id among the real ids, the mask is wrong",
        "hidden",
    ),
    (
        "filling_in_the_second_segment",
        "gives the filling segment 1",
        ("[*types, *[0] * filling]", "[*types, *[1] * filling]"),
        "The filling belongs to no segment",
        "visible",
    ),
    (
        "filling_in_the_last_segment",
        "gives the filling the segment of the last token",
        ("[*types, *[0] * filling]", "[*types, *[types[-1]] * filling]"),
        "the table of segment ids is wrong",
        "hidden",
    ),
    (
        "filled_up_to_512",
        "fills up to the most that BERT can read",
        ("longest = max(len(ids) for ids, _ in inputs)", "longest = 512"),
        "to the longest sequence of the batch",
        "visible",
        AGREEMENT,
    ),
    (
        "cut_to_the_shortest",
        "cuts all sequences to the shortest",
        (
            "    for ids, types in inputs:\n",
            "    longest = min(len(ids) for ids, _ in inputs)\n"
            "    for ids, types in [(ids[:longest], types[:longest]) for ids, types in inputs]:\n",
        ),
        "must have shape [2, 6]",
        "visible",
        AGREEMENT,
    ),
    (
        "pad_id_typed_in",
        "fills up with 0 whatever pad_id is",
        ("[pad_id] * filling", "[0] * filling"),
        "pad_id 3 and a multiple of 4, input_ids is wrong",
        "visible",
    ),
    (
        "batch_as_a_tuple",
        "returns three tensors",
        (
            "return {name: torch.tensor(rows) for name, rows in batch.items()}",
            "return tuple(torch.tensor(rows) for rows in batch.values())",
        ),
        "must return a dict with the keys",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_named_otherwise",
        "calls the mask `mask`",
        (
            "for name, rows in batch.items()}",
            'for name, rows in zip(("input_ids", "token_type_ids", "mask"), batch.values())}',
        ),
        "yours returns input_ids, token_type_ids, mask",
        "visible",
        AGREEMENT,
    ),
)

SUM = """hidden = (
            self.word(input_ids) + self.position(positions) + self.token_type(token_type_ids)
        )"""
EMBED = mutants_of(
    "embed",
    "embeddings-sum",
    (
        "position_ids_ignored",
        "counts positions from 0, whatever is passed in",
        ("positions = position_ids", "positions = None"),
        "Positions still count from 0 to T - 1",
        "visible",
        "embeddings-norm",
    ),
    (
        "positions_restart_in_segment_b",
        "counts positions from 0 again in the second segment",
        (
            "positions = torch.arange(input_ids.shape[1], device=input_ids.device)  # [T]",
            "positions = torch.arange(input_ids.shape[1], device=input_ids.device) - token_type_ids * "
            "(token_type_ids == 0).sum(1, keepdim=True)",
        ),
        "Your positions begin anew in the second segment",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "positions_from_one",
        "counts positions from 1",
        (
            "torch.arange(input_ids.shape[1], device",
            "torch.arange(1, input_ids.shape[1] + 1, device",
        ),
        "Positions count from 0",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "positions_along_the_batch",
        "numbers the sequences instead of the positions",
        (
            "torch.arange(input_ids.shape[1], device=input_ids.device)",
            "torch.arange(input_ids.shape[0], device=input_ids.device)[:, None]",
        ),
        "Your positions run along the batch",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "no_positions",
        "leaves the positions out",
        (" + self.position(positions)", ""),
        "The positions are missing",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "no_segments",
        "leaves the segments out",
        (" + self.token_type(token_type_ids)", ""),
        "The segments are missing",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "segment_zero_everywhere",
        "gives all positions segment 0, whatever is passed in",
        (
            "if token_type_ids is None:\n            token_type_ids",
            "if True:\n            token_type_ids",
        ),
        "Use token_type_ids when they are given",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "nothing_added_without_segment_ids",
        "adds no segment where none is given",
        (
            SUM,
            "hidden = self.word(input_ids) + self.position(positions)\n"
            "        if token_type_ids.any():\n            hidden = hidden + self.token_type(token_type_ids)",
        ),
        "Segment 0 has a row like any other",
        "visible",
    ),
    (
        "words_times_root_d",
        "multiplies the words by the square root of D, as the Transformer does",
        (
            "self.word(input_ids) +",
            "self.word(input_ids) * self.word.weight.shape[1] ** 0.5 +",
        ),
        "BERT does not multiply the words",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "positions_skip_the_filling",
        "takes id 0 for filling and counts real positions only",
        (
            "positions = torch.arange(input_ids.shape[1], device=input_ids.device)  # [T]",
            "positions = (input_ids != 0).cumsum(1).sub(1).clamp(min=0)",
        ),
        "A position has its number whatever id stands there",
        "visible",
        "embeddings-norm",
        AGREEMENT,
    ),
    (
        "segments_by_the_first_change",
        "takes everything after the first change for the second segment",
        (
            "positions = position_ids",
            "token_type_ids = token_type_ids.cummax(1).values\n        positions = position_ids",
        ),
        "Segment ids may change more than once",
        "hidden",
        AGREEMENT,
    ),
)

NORM = mutants_of(
    "embed",
    "embeddings-norm",
    (
        "embeddings_without_norm",
        "forgets the norm",
        ("self.dropout(self.norm(hidden))", "self.dropout(hidden)"),
        "The norm is missing",
        "visible",
        AGREEMENT,
    ),
    (
        "words_normed_alone",
        "norms the words before positions and segments are added",
        (
            SUM + "\n        return self.dropout(self.norm(hidden))",
            "hidden = self.norm(self.word(input_ids))\n"
            "        return self.dropout(hidden + self.position(positions) + self.token_type(token_type_ids))",
        ),
        "Norm the sum, not the words alone",
        "visible",
        AGREEMENT,
    ),
    (
        "segments_added_after_the_norm",
        "norms words and positions, and adds segments to that",
        (
            SUM + "\n        return self.dropout(self.norm(hidden))",
            "hidden = self.norm(self.word(input_ids) + self.position(positions))\n"
            "        return self.dropout(hidden + self.token_type(token_type_ids))",
        ),
        "Norm the sum of all three",
        "visible",
        AGREEMENT,
    ),
    (
        "each_part_normed",
        "norms each of the three",
        (
            SUM + "\n        return self.dropout(self.norm(hidden))",
            "parts = (self.word(input_ids), self.position(positions), self.token_type(token_type_ids))\n"
            "        return self.dropout(sum(self.norm(part) for part in parts))",
        ),
        "Norm the sum, once, not each part",
        "visible",
        AGREEMENT,
    ),
    (
        "embedding_dropout_left_on",
        "calls the function dropout, which drops out in evaluation, too",
        (
            "self.dropout(self.norm(hidden))",
            "torch.nn.functional.dropout(self.norm(hidden), self.dropout.p)",
        ),
        "is wrong at",
        "visible",
        "embeddings-sum",
        AGREEMENT,
    ),
    (
        "embedding_dropout_missing",
        "forgets the dropout, which evaluation does not show",
        ("self.dropout(self.norm(hidden))", "self.norm(hidden)"),
        "the dropout is missing",
        "visible",
    ),
    (
        "embedding_dropout_before_the_norm",
        "drops out before the norm",
        ("self.dropout(self.norm(hidden))", "self.norm(self.dropout(hidden))"),
        "Dropout comes last, after the norm",
        "visible",
    ),
    (
        "word_dropout_only",
        "drops out words, not sums",
        ("self.word(input_ids) +", "self.dropout(self.word(input_ids)) +"),
        "Dropout comes last",
        "visible",
    ),
    (
        "embeddings_detached",
        "cuts the gradient of the positions",
        ("self.position(positions) +", "self.position(positions).detach() +"),
        "the gradients with respect to tables and norm is wrong",
        "hidden",
    ),
)

SCALE = "math.sqrt(query.shape[-1])"
VALUES = mutants_of(
    "self-attention",
    "attention-values",
    (
        "bias_scaled",
        "divides the bias by the root of N, too",
        (
            "scores = scores + bias",
            "scores = scores + bias / math.sqrt(query.shape[-1])",
        ),
        "after they are divided by the square root of N",
        "visible",
        "attention-mask",
    ),
    (
        "bias_ignored",
        "attends as the library does, without the bias",
        ("        if bias is not None:\n            scores = scores + bias\n", ""),
        "The bias is missing",
        "visible",
        "attention-mask",
    ),
    (
        "scaled_by_all_features",
        "divides by the square root of D instead of N",
        (SCALE, "math.sqrt(D)"),
        "A query of one head has 2",
        "visible",
        AGREEMENT,
    ),
    (
        "not_scaled",
        "forgets to divide the scores",
        (f" / {SCALE}", ""),
        "Divide the scores by the square root of N",
        "visible",
        AGREEMENT,
    ),
    (
        "softmax_over_queries",
        "takes the softmax over the wrong axis",
        ("softmax(dim=-1)", "softmax(dim=-2)"),
        "take the softmax over the keys",
        "visible",
        "attention-mask",
        "attention-dropout",
        AGREEMENT,
    ),
    (
        "heads_split_without_transpose",
        "reshapes to [B, H, T, N] at once",
        (
            "reshape(B, T, self.num_heads, -1).transpose(1, 2)  # [B, H, T, N]",
            "reshape(B, self.num_heads, T, -1)",
        ),
        "Head 0 sees [1, 1] and [0, 0]",
        "visible",
        "attention-mask",
        "attention-dropout",
        AGREEMENT,
    ),
    (
        "heads_joined_without_transpose",
        "reshapes [B, H, T, N] to [B, T, D] at once",
        ("context.transpose(1, 2).reshape(B, T, D)", "context.reshape(B, T, D)"),
        "transpose(1, 2) comes before the reshape",
        "visible",
        "attention-mask",
        AGREEMENT,
    ),
    (
        "query_for_key",
        "uses the matrix of the queries for the keys, too",
        ("(self.query, self.key, self.value)", "(self.query, self.query, self.value)"),
        "the table of weights is wrong",
        "hidden",
        AGREEMENT,
    ),
    (
        "values_not_projected",
        "mixes what comes in instead of the values",
        (
            "scores = query @",
            "value = hidden.reshape(B, T, self.num_heads, -1).transpose(1, 2)\n        scores = query @",
        ),
        "The values go through self.value",
        "visible",
        "attention-dropout",
        AGREEMENT,
    ),
    (
        "two_heads_whatever_is_asked",
        "splits into two heads whatever num_heads is",
        ("reshape(B, T, self.num_heads, -1)", "reshape(B, T, 2, -1)"),
        "With 3 heads of 2 features",
        "hidden",
        AGREEMENT,
    ),
    (
        "context_alone",
        "returns the context without the weights",
        ("reshape(B, T, D), weights", "reshape(B, T, D)"),
        "SelfAttention must return (context, weights)",
        "visible",
        "attention-mask",
        "attention-dropout",
        AGREEMENT,
    ),
    (
        "ready_made_attention",
        "lets torch attend",
        (
            "context = self.dropout(weights) @ value  # [B, H, T, N]",
            "context = torch.nn.functional.scaled_dot_product_attention(query, key, value)",
        ),
        "which this assignment withholds",
        "visible",
        "attention-mask",
        "attention-dropout",
        AGREEMENT,
    ),
    (
        "library_s_bert",
        "takes the library that people take at work",
        (
            "B, T, D = hidden.shape",
            "import transformers\n        B, T, D = hidden.shape",
        ),
        "imports transformers, which this assignment withholds",
        "visible",
        "attention-mask",
        "attention-dropout",
        "loading-agreement",
    ),
)

FILL = 'scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))'
MASK = mutants_of(
    "self-attention",
    "attention-mask",
    (
        "padding_attended_to",
        "ignores the mask",
        ("if attention_mask is not None:", "if False:"),
        "In sequence 0 the third position is filling",
        "visible",
        AGREEMENT,
    ),
    (
        "attention_mask_upside_down",
        "takes True for filling",
        ("~attention_mask[", "attention_mask["),
        "True in the mask means: a real token",
        "visible",
        AGREEMENT,
    ),
    (
        "queries_masked_instead_of_keys",
        "masks the rows of the filling, not its columns",
        ("[:, None, None, :]", "[:, None, :, None]"),
        "It is keys that may not be attended",
        "visible",
        AGREEMENT,
    ),
    (
        "both_queries_and_keys_masked",
        "masks rows and columns, so that rows of the filling are empty",
        (
            "~attention_mask[:, None, None, :]",
            "~(attention_mask[:, None, None, :] & attention_mask[:, None, :, None])",
        ),
        "a row of scores is masked completely",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_without_axes",
        "lets the mask [B, T] meet scores [B, H, T, T] as it is",
        ("~attention_mask[:, None, None, :]", "~attention_mask"),
        "attention_mask[:, None, None, :] is [B, 1, 1, T]",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_of_another_sequence",
        "puts one axis in front, so that the sequences' masks meet the heads",
        ("~attention_mask[:, None, None, :]", "~attention_mask[None, :, None, :]"),
        "In sequence 0 the third position is filling",
        "visible",
        AGREEMENT,
    ),
    (
        "scores_times_mask",
        "multiplies scores by the mask: a score of 0 still gets weight",
        (FILL, "scores * attention_mask[:, None, None, :]"),
        "which must be exactly 0",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_added",
        "adds the mask, 1 for real and 0 for filling",
        (FILL, "scores + attention_mask[:, None, None, :].to(scores)"),
        "which must be exactly 0",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_after_the_softmax",
        "sets weights to 0 after the softmax",
        (
            "weights = scores.softmax(dim=-1)",
            "weights = scores.softmax(dim=-1).masked_fill(scores.isinf(), 0)\n"
            "        if attention_mask is not None:\n"
            "            weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)\n"
            "            weights = weights * attention_mask[:, None, None, :]",
        ),
        "must sum to 1",
        "visible",
        AGREEMENT,
    ),
    (
        "causal_mask_as_in_a_decoder",
        "hides later words, as GPT does",
        (
            "weights = scores.softmax(dim=-1)",
            "later = torch.ones(T, T, dtype=torch.bool, device=hidden.device).triu(1)\n"
            '        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)',
        ),
        "BERT reads in both directions",
        "visible",
        "attention-values",
        "attention-dropout",
        AGREEMENT,
    ),
    (
        "filling_only_at_the_end",
        "counts real tokens and takes them for the first ones",
        (
            "~attention_mask[:, None, None, :]",
            "(torch.arange(T, device=hidden.device) >= attention_mask.sum(1)[:, None])[:, None, None]",
        ),
        "with gaps",
        "hidden",
    ),
)

CONTEXT = "context = self.dropout(weights) @ value"
ATTENTION_DROPOUT = mutants_of(
    "self-attention",
    "attention-dropout",
    (
        "attention_dropout_missing",
        "forgets the dropout",
        (CONTEXT, "context = weights @ value"),
        "the dropout is missing",
        "visible",
    ),
    (
        "attention_dropout_left_on",
        "drops out in evaluation, too",
        (
            CONTEXT,
            "context = torch.nn.functional.dropout(weights, self.dropout.p) @ value",
        ),
        "yours still drops features out",
        "visible",
        "attention-values",
        "attention-mask",
        AGREEMENT,
    ),
    (
        "context_dropped_out",
        "drops out features of the context instead of weights",
        (CONTEXT, "context = self.dropout(weights @ value)"),
        "Drop out weights",
        "visible",
    ),
    (
        "scores_dropped_out",
        "drops out scores, after which the rest sums to 1 again",
        (CONTEXT, "context = self.dropout(scores).softmax(-1) @ value"),
        "after the softmax, which would make the rest sum to 1 again",
        "visible",
    ),
    (
        "dropped_weights_returned",
        "returns the weights as they are after the dropout",
        (CONTEXT, "weights = self.dropout(weights)\n        context = weights @ value"),
        "as they were before the dropout",
        "hidden",
    ),
)

GELU = mutants_of(
    "activation",
    "layer-gelu",
    (
        "tanh_approximation",
        "takes the approximation with tanh",
        (
            "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
            "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))",
        ),
        "That is the approximation with tanh",
        "visible",
        AGREEMENT,
    ),
    (
        "sigmoid_approximation",
        "takes the approximation with a sigmoid",
        ("0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", "x * torch.sigmoid(1.702 * x)"),
        "That is the approximation with a sigmoid",
        "visible",
        AGREEMENT,
    ),
    (
        "relu_for_gelu",
        "takes the Transformer's ReLU",
        ("0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", "torch.relu(x)"),
        "That is ReLU",
        "visible",
        AGREEMENT,
    ),
    (
        "erf_without_root_two",
        "forgets the square root of 2",
        ("x / math.sqrt(2)", "x"),
        "Divide x by the square root of 2 inside erf",
        "visible",
        AGREEMENT,
    ),
    (
        "gelu_without_a_half",
        "forgets the factor 1/2",
        ("0.5 * x", "x"),
        "Is the factor 1/2 forgotten?",
        "visible",
        AGREEMENT,
    ),
    (
        "probability_alone",
        "forgets to multiply by x",
        ("0.5 * x *", "0.5 *"),
        "Multiply the probability by x",
        "visible",
        AGREEMENT,
    ),
    (
        "ready_made_gelu",
        "calls torch's",
        ("0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", "torch.nn.functional.gelu(x)"),
        "which this assignment withholds",
        "visible",
        "layer-wiring",
        "layer-dropout",
        "loading-agreement",
    ),
    (
        "root_two_rounded",
        "writes the square root of 2 with three digits",
        ("math.sqrt(2)", "1.41421"),
        "without rounded constants",
        "hidden",
        AGREEMENT,
    ),
)

FIRST = "hidden = self.attention_norm(hidden + self.dropout(self.attention_output(context)))"
SECOND = "return self.output_norm(hidden + self.dropout(transformed))"
WIRING = mutants_of(
    "block",
    "layer-wiring",
    (
        "bias_not_passed_on",
        "keeps the bias from attention",
        (
            "self.attention(hidden, attention_mask, bias)",
            "self.attention(hidden, attention_mask)",
        ),
        "Pass the bias on",
        "visible",
    ),
    (
        "norm_before_the_parts",
        "norms what goes into a part instead of the sum, as later models do",
        (
            "        context, _ = self.attention(hidden, attention_mask, bias)\n        "
            + FIRST,
            "        context, _ = self.attention(self.attention_norm(hidden), attention_mask)\n"
            "        hidden = hidden + self.dropout(self.attention_output(context))",
        ),
        "BERT's norm comes after the sum, not before the attention",
        "visible",
        AGREEMENT,
    ),
    (
        "first_residual_forgotten",
        "does not add what went into attention",
        (
            FIRST,
            "hidden = self.attention_norm(self.dropout(self.attention_output(context)))",
        ),
        "Add the layer's input to it: the residual",
        "visible",
        "layer-dropout",
        AGREEMENT,
    ),
    (
        "second_residual_forgotten",
        "does not add what went into the network",
        (SECOND, "return self.output_norm(self.dropout(transformed))"),
        "The second residual is left out",
        "visible",
        "layer-dropout",
        AGREEMENT,
    ),
    (
        "second_residual_from_the_start",
        "adds the layer's input at the second sum",
        (
            FIRST
            + "\n        transformed = self.output(gelu(self.intermediate(hidden)))",
            "start = hidden\n        "
            + FIRST
            + "\n        transformed = self.output(gelu(self.intermediate(hidden)))\n"
            "        hidden = start",
        ),
        "not from the layer's input",
        "visible",
        "layer-dropout",
        AGREEMENT,
    ),
    (
        "attention_output_forgotten",
        "adds the context without the matrix that mixes the heads",
        (FIRST, "hidden = self.attention_norm(hidden + self.dropout(context))"),
        "You never call attention_output",
        "visible",
        "layer-dropout",
        AGREEMENT,
    ),
    (
        "first_norm_forgotten",
        "norms once a layer",
        (FIRST, "hidden = hidden + self.dropout(self.attention_output(context))"),
        "You never call attention_norm",
        "visible",
        AGREEMENT,
    ),
    (
        "one_norm_for_both",
        "uses the first norm twice",
        (SECOND, "return self.attention_norm(hidden + self.dropout(transformed))"),
        "You call attention_norm 2 times",
        "visible",
        AGREEMENT,
    ),
    (
        "network_without_gelu",
        "forgets the GELU",
        ("gelu(self.intermediate(hidden))", "self.intermediate(hidden)"),
        "gelu is left out between intermediate and output",
        "visible",
        AGREEMENT,
    ),
    (
        "relu_in_the_layer",
        "writes ReLU where gelu was asked for",
        ("gelu(self.intermediate(hidden))", "torch.relu(self.intermediate(hidden))"),
        "BERT has a gelu there, no ReLU",
        "visible",
        AGREEMENT,
    ),
    (
        "gelu_after_the_second_matrix",
        "puts GELU at the end of the network",
        (
            "self.output(gelu(self.intermediate(hidden)))",
            "gelu(self.output(self.intermediate(hidden)))",
        ),
        "gelu is left out between intermediate and output",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_not_passed_to_attention",
        "calls attention without the mask",
        ("self.attention(hidden, attention_mask, bias)", "self.attention(hidden)"),
        "attention gets no attention_mask. Pass the mask on",
        "visible",
        AGREEMENT,
    ),
    (
        "network_beside_attention",
        "feeds the network what went into the layer",
        (
            "        context, _ = self.attention(hidden, attention_mask, bias)\n        "
            + FIRST
            + "\n        transformed = self.output(gelu(self.intermediate(hidden)))",
            "        transformed = self.output(gelu(self.intermediate(hidden)))\n"
            "        context, _ = self.attention(hidden, attention_mask, bias)\n        "
            + FIRST,
        ),
        "The network comes after attention and gets its result",
        "visible",
        AGREEMENT,
    ),
    (
        "weights_for_the_context",
        "takes the second of the two things that attention returns",
        ("context, _ = self", "_, context = self"),
        "It gets the context, the first of the two things that attention returns",
        "visible",
        "layer-dropout",
        AGREEMENT,
    ),
)

LAYER_DROPOUT = mutants_of(
    "block",
    "layer-dropout",
    (
        "first_dropout_missing",
        "drops out the network's result alone",
        (
            "self.dropout(self.attention_output(context))",
            "self.attention_output(context)",
        ),
        "Dropout stands between attention_output and the sum",
        "visible",
    ),
    (
        "second_dropout_missing",
        "drops out attention's result alone",
        ("self.dropout(transformed)", "transformed"),
        "Dropout stands between output and the sum",
        "visible",
    ),
    (
        "layer_dropout_left_on",
        "calls the function dropout, which drops out in evaluation, too",
        (
            "self.dropout(transformed)",
            "torch.nn.functional.dropout(transformed, self.dropout.p)",
        ),
        "After model.eval(), the output of a layer",
        "visible",
        "layer-wiring",
        AGREEMENT,
    ),
    (
        "dropout_after_the_sum",
        "drops out the sum, what went into the layer included",
        ("hidden + self.dropout(transformed)", "self.dropout(hidden + transformed)"),
        "What went into the layer stays whole",
        "visible",
    ),
    (
        "dropout_after_gelu",
        "drops out inside the network, as the Transformer does",
        (
            "self.output(gelu(self.intermediate(hidden)))",
            "self.output(self.dropout(gelu(self.intermediate(hidden))))",
        ),
        "There is no dropout between gelu and output",
        "hidden",
    ),
)

POOL = mutants_of(
    "pool",
    "model-pooler",
    (
        "pooler_without_mask",
        "takes position 0 although it may be filling",
        ("if attention_mask is not None:", "if False:"),
        "Position 0 of the first sequence is filling",
        "visible",
    ),
    (
        "pooler_without_tanh",
        "forgets tanh",
        ("torch.tanh(self.dense(hidden[:, 0]))", "self.dense(hidden[:, 0])"),
        "tanh is missing",
        "visible",
        AGREEMENT,
    ),
    (
        "pooler_of_the_last_position",
        "takes the last position",
        ("hidden[:, 0]", "hidden[:, -1]"),
        "[CLS] is at the first position; yours takes the last",
        "visible",
        AGREEMENT,
    ),
    (
        "pooler_of_the_mean",
        "takes the mean over positions",
        ("hidden[:, 0]", "hidden.mean(dim=1)"),
        "Yours takes the mean over positions",
        "visible",
        AGREEMENT,
    ),
    (
        "pooler_of_the_maximum",
        "takes the largest over positions",
        ("hidden[:, 0]", "hidden.amax(dim=1)"),
        "Yours takes the maximum over positions",
        "visible",
        AGREEMENT,
    ),
    (
        "tanh_before_dense",
        "puts tanh in front of the matrix",
        (
            "torch.tanh(self.dense(hidden[:, 0]))",
            "self.dense(torch.tanh(hidden[:, 0]))",
        ),
        "First dense, then tanh",
        "visible",
        AGREEMENT,
    ),
    (
        "pooler_of_the_first_sequence",
        "takes the first sequence instead of the first position",
        ("hidden[:, 0]", "hidden[0]"),
        "must have shape [2, 2]",
        "visible",
        AGREEMENT,
    ),
    (
        "pooler_of_all_positions",
        "pools nothing: a vector for each position",
        ("hidden[:, 0]", "hidden"),
        "must have shape [2, 2]",
        "visible",
        AGREEMENT,
    ),
    (
        "squeezed_batch",
        "squeezes axes of size 1 away",
        (
            "hidden[:, 0]",
            "hidden.squeeze(1)[:, 0] if hidden.shape[1] > 1 else hidden.squeeze()[0]",
        ),
        "must have shape [2, 2]; yours has [2]",
        "visible",
    ),
)

WHOLE = mutants_of(
    "whole",
    "model-wiring",
    (
        "depth_ignored",
        "runs all layers, however many are asked for",
        ("self.layers[:depth]", "self.layers"),
        "Run the first 1 of the three layers",
        "visible",
    ),
    (
        "mask_for_the_segments",
        "passes the mask where the embeddings expect segment ids",
        (
            "self.embeddings(input_ids, token_type_ids)",
            "self.embeddings(input_ids, attention_mask)",
        ),
        "The embeddings get the mask where they expect segment ids",
        "visible",
        AGREEMENT,
    ),
    (
        "segment_ids_not_passed_on",
        "forgets the segment ids",
        ("self.embeddings(input_ids, token_type_ids)", "self.embeddings(input_ids)"),
        "embeddings gets no token_type_ids. Pass the segment ids on",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_not_passed_to_the_layers",
        "forgets the mask",
        ("layer(hidden, attention_mask)", "layer(hidden)"),
        "needs the mask, as every layer does",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_for_the_first_layer_only",
        "gives the mask to the first layer",
        (
            "hidden = layer(hidden, attention_mask)",
            "hidden, attention_mask = layer(hidden, attention_mask), None",
        ),
        "layers[1] gets no attention_mask",
        "visible",
        AGREEMENT,
    ),
    (
        "one_layer_for_all",
        "calls the first layer L times, as ALBERT shares its weights",
        (
            "for layer in self.layers[:depth]:",
            "for layer in [self.layers[0]] * len(self.layers[:depth]):",
        ),
        "You call layers[0] 3 times",
        "visible",
        AGREEMENT,
    ),
    (
        "layers_backwards",
        "starts with the last layer",
        ("in self.layers[:depth]:", "in reversed(self.layers[:depth]):"),
        "layers[0] gets what embeddings gives",
        "visible",
        AGREEMENT,
    ),
    (
        "layers_side_by_side",
        "gives every layer the embeddings",
        (
            "        for layer in self.layers[:depth]:\n            hidden = layer(hidden, attention_mask)",
            "        embedded = hidden\n        for layer in self.layers[:depth]:\n"
            "            hidden = layer(embedded, attention_mask)",
        ),
        "layers[1] gets what layers[0] gives",
        "visible",
        AGREEMENT,
    ),
    (
        "last_layer_forgotten",
        "stops one layer early",
        ("in self.layers[:depth]:", "in self.layers[:depth][:-1]:"),
        "You never call layers[2]",
        "visible",
        AGREEMENT,
    ),
    (
        "embeddings_pooled",
        "pools what the embeddings give",
        (
            "        for layer in self.layers[:depth]:\n            hidden = layer(hidden, attention_mask)\n        return hidden, self.pooler(hidden)",
            "        embedded = hidden\n        for layer in self.layers[:depth]:\n            hidden = layer(hidden, attention_mask)\n"
            "        return hidden, self.pooler(embedded)",
        ),
        "The pooler gets what the last layer gives",
        "visible",
        AGREEMENT,
    ),
    (
        "pooled_alone",
        "returns the pooled vector only",
        ("return hidden, self.pooler(hidden)", "return self.pooler(hidden)"),
        "BertModel must return (hidden, pooled)",
        "visible",
        AGREEMENT,
    ),
    (
        "pooled_first",
        "returns the pooled vector first",
        ("return hidden, self.pooler(hidden)", "return self.pooler(hidden), hidden"),
        "The first thing that the model returns must have shape [2, 3, 2]",
        "visible",
        AGREEMENT,
    ),
    (
        "mask_from_the_ids_in_the_model",
        "takes id 0 for filling where no mask is given",
        (
            "hidden = self.embeddings(input_ids, token_type_ids)",
            "if attention_mask is None:\n            attention_mask = input_ids != 0\n"
            "        hidden = self.embeddings(input_ids, token_type_ids)",
        ),
        "filling cannot be told from the ids",
        "hidden",
    ),
)

COUNT = mutants_of(
    "count",
    "sizes-count",
    (
        "one_layer_counted",
        "counts one layer",
        ("config.num_hidden_layers * (attention", "(attention"),
        "There are 12 layers",
        "visible",
    ),
    (
        "biases_and_norms_forgotten",
        "counts matrices only",
        (
            "config.num_hidden_layers * (attention + network + norms)",
            "config.num_hidden_layers * (4 * D * D + 2 * D * inner)",
        ),
        "The biases and the norms of the layers are missing",
        "visible",
    ),
    (
        "norms_forgotten",
        "forgets the norms of the layers",
        ("attention + network + norms", "attention + network"),
        "The norms of the layers are missing",
        "visible",
    ),
    (
        "biases_forgotten",
        "forgets the biases of the layers",
        (
            "config.num_hidden_layers * (attention + network + norms)",
            "config.num_hidden_layers * (4 * D * D + 2 * D * inner + norms)",
        ),
        "The biases of the layers are missing",
        "visible",
    ),
    (
        "norms_without_offset",
        "counts one number for each feature of a norm",
        ("norms = 2 * 2 * D", "norms = 2 * D"),
        "each norm a gain and an offset",
        "visible",
    ),
    (
        "attention_of_three_matrices",
        "forgets the matrix that mixes the heads",
        ("attention = 4 *", "attention = 3 *"),
        "the fourth matrix of attention",
        "visible",
    ),
    (
        "matrices_for_each_head",
        "counts D x D numbers for every head",
        (
            "attention = 4 * (D * D + D)",
            "attention = 4 * config.num_attention_heads * (D * D + D)",
        ),
        "A layer has 4 matrices D x D",
        "visible",
    ),
    (
        "words_alone",
        "forgets positions and segments",
        (
            "rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size",
            "rows = config.vocab_size",
        ),
        "Positions and segments have tables, too",
        "visible",
    ),
    (
        "embedding_norm_forgotten",
        "forgets the norm of the embeddings",
        ("rows * D + 2 * D", "rows * D"),
        "The norm of the embeddings is missing",
        "visible",
    ),
    (
        "pooler_without_bias",
        "forgets the pooler's bias",
        ('"pooler": D * D + D', '"pooler": D * D'),
        "The pooler has a bias",
        "visible",
    ),
    (
        "network_four_times_as_wide",
        "takes 4 D for I whatever the config says",
        (
            "config.hidden_size, config.intermediate_size",
            "config.hidden_size, 4 * config.hidden_size",
        ),
        "I need not be 4 D",
        "hidden",
    ),
    (
        "two_segments_typed_in",
        "takes 2 segments whatever the config says",
        ("+ config.type_vocab_size", "+ 2"),
        "take all numbers from the config",
        "hidden",
    ),
    (
        "one_number_for_all",
        "returns the sum instead of the table",
        (
            '        "pooler": D * D + D,\n    }',
            '        "pooler": D * D + D,\n    }["embeddings"]',
        ),
        "must be a dict; yours is a int",
        "visible",
    ),
)

NAMES = mutants_of(
    "names",
    "loading-names",
    (
        "names_as_they_are",
        "expects the file to use the model's own names",
        ("    owner, _, kind = name", "    return name\n    owner, _, kind = name"),
        "The published name of embeddings.word.weight",
        "visible",
        "loading-places",
        "loading-refused",
        AGREEMENT,
    ),
    (
        "outputs_exchanged",
        "takes output.dense for attention's output",
        (
            '"attention_output": "attention.output.dense"',
            '"attention_output": "output.dense"',
        ),
        "The published name of layers.0.attention_output.weight",
        "visible",
        "loading-places",
        "loading-refused",
        AGREEMENT,
    ),
    (
        "norms_exchanged",
        "takes each norm for the other",
        (
            '"output_norm": "output.LayerNorm"',
            '"output_norm": "attention.output.LayerNorm"',
        ),
        "The published name of layers.1.output_norm.weight",
        "visible",
        "loading-places",
        "loading-refused",
        AGREEMENT,
    ),
    (
        "query_and_key_exchanged",
        "takes queries for keys",
        (
            '"attention.key": "attention.self.key"',
            '"attention.key": "attention.self.query"',
        ),
        "The published name of layers.0.attention.key.bias",
        "visible",
        "loading-places",
        AGREEMENT,
    ),
    (
        "names_by_replacing",
        "replaces one text after the other, so that a piece of a new name is replaced again",
        'def published_name(name, old=False):\n    for ours, theirs in (\n        ("layers.", "encoder.layer."),\n'
        '        ("word", "word_embeddings"),\n        ("position", "position_embeddings"),\n'
        '        ("token_type", "token_type_embeddings"),\n        ("attention_output", "attention.output.dense"),\n'
        '        ("attention_norm", "attention.output.LayerNorm"),\n        ("output_norm", "output.LayerNorm"),\n'
        '        ("norm", "LayerNorm"),\n        (".output", ".output.dense"),\n'
        '        ("intermediate", "intermediate.dense"),\n        ("attention.", "attention.self."),\n    ):\n'
        "        name = name.replace(ours, theirs)\n    return name",
        "some names are the beginning of others",
        "visible",
        "loading-places",
        "loading-refused",
        AGREEMENT,
    ),
    (
        "bert_in_front",
        "writes bert. in front, as some files do",
        ('return f"encoder.layer.', 'return f"bert.encoder.layer.'),
        "The published name of layers.0.attention.key.bias",
        "visible",
        "loading-places",
        "loading-refused",
        AGREEMENT,
    ),
    (
        "layer_numbers_of_one_digit",
        "takes one character for the number of the layer",
        (
            '_, number, part = owner.split(".", 2)',
            'number, part = owner[7], owner[7:].lstrip("0123456789").lstrip(".")',
        ),
        "With a layer number of two digits",
        "hidden",
        "loading-places",
    ),
    (
        "old_names_never",
        "gives the names of today's files alone, as the library does",
        ("    if old and", "    if False and"),
        "The name of embeddings.norm.weight in an old file",
        "visible",
    ),
    (
        "old_names_for_everything",
        "writes gamma and beta for all weights and biases of old files",
        ('    if old and owner.endswith("norm"):', "    if old:"),
        "The name of embeddings.word.weight in an old file",
        "visible",
    ),
    (
        "old_names_exchanged",
        "takes beta for the weight of a norm",
        ('{"weight": "gamma", "bias": "beta"}', '{"weight": "beta", "bias": "gamma"}'),
        "The name of embeddings.norm.weight in an old file",
        "visible",
    ),
    (
        "old_names_of_some_norms",
        "forgets the norm of the embeddings, whose name is just norm",
        ('owner.endswith("norm")', 'owner.endswith("_norm")'),
        "The name of embeddings.norm.weight in an old file",
        "visible",
    ),
    (
        "layers_from_one",
        "counts the file's layers from 1",
        ("encoder.layer.{number}.", "encoder.layer.{int(number) + 1}."),
        "The published name of layers.0.attention.key.bias",
        "visible",
        "loading-places",
        "loading-refused",
        AGREEMENT,
    ),
)

PLACES = mutants_of(
    "load",
    "loading-places",
    (
        "prefix_stripped_as_characters",
        "strips the characters b, e, r, t and . with lstrip",
        ('name.removeprefix("bert.")', 'name.lstrip("bert.")'),
        "ValueError",
        "visible",
        "loading-refused",
        AGREEMENT,
    ),
    (
        "prefix_not_removed",
        "does not expect bert. in front",
        ('name.removeprefix("bert.")', "name"),
        "ValueError",
        "visible",
        AGREEMENT,
    ),
    (
        "old_names_unknown",
        "does not know gamma and beta",
        ('plain.replace("LayerNorm.gamma", "LayerNorm.weight")', "plain"),
        "ValueError",
        "visible",
        AGREEMENT,
    ),
    (
        "gamma_and_beta_exchanged",
        "takes gamma for the bias",
        (
            'plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight")\n'
            '        stored[plain.replace("LayerNorm.beta", "LayerNorm.bias")] = name',
            'plain = plain.replace("LayerNorm.gamma", "LayerNorm.bias")\n'
            '        stored[plain.replace("LayerNorm.beta", "LayerNorm.weight")] = name',
        ),
        "After loading, embeddings.norm.weight is wrong",
        "visible",
        AGREEMENT,
    ),
    (
        "matrices_turned",
        "transposes matrices, as files of TensorFlow need it",
        (
            "value = tensors[stored[wanted]]",
            "value = tensors[stored[wanted]]\n"
            '        if value.dim() == 2 and "embeddings" not in name and value.shape[0] == value.shape[1]:\n'
            "            value = value.T",
        ),
        "do not transpose them",
        "visible",
        AGREEMENT,
    ),
    (
        "biases_not_loaded",
        "loads weights and leaves biases as they were",
        (
            "        found[name] = value",
            '        found[name] = value if name.endswith("weight") else parameter.detach()',
        ),
        "It must hold",
        "visible",
        AGREEMENT,
    ),
    (
        "embeddings_not_loaded",
        "starts with the layers",
        (
            "parameter.copy_(found[name])",
            'parameter.copy_(parameter if name.startswith("embeddings") else found[name])',
        ),
        "After loading, embeddings.word.weight is wrong",
        "visible",
        AGREEMENT,
    ),
    (
        "nothing_loaded",
        "looks at everything and copies nothing",
        ("parameter.copy_(found[name])", "found[name].clone()"),
        "After loading, embeddings.word.weight is wrong",
        "visible",
        AGREEMENT,
    ),
    (
        "left_over_tensors_not_named",
        "returns nothing",
        ("    return sorted(name for name in tensors if name not in used)", ""),
        "must be a list; yours is None",
        "visible",
    ),
    (
        "used_tensors_named",
        "returns the names that were used",
        ("if name not in used", "if name in used"),
        "The names of the tensors that were not used",
        "visible",
    ),
    (
        "left_over_names_without_prefix",
        "returns names as it has changed them",
        (
            "return sorted(name for name in tensors if name not in used)",
            "return sorted(plain for plain, name in stored.items() if name not in used)",
        ),
        "the list of names that are left is wrong",
        "hidden",
    ),
    (
        "left_over_tensors_refused",
        "raises an error for tensors that it has no place for",
        (
            "    found = {}\n",
            '    for name in stored:\n        if name.startswith("cls."):\n'
            '            raise ValueError(f"unexpected {name}")\n    found = {}\n',
        ),
        "unexpected cls.seq_relationship.bias",
        "visible",
    ),
    (
        "parameters_replaced",
        "puts the file's tensors in the place of the parameters, type and all",
        ("parameter.copy_(found[name])", "parameter.data = found[name]"),
        "must have dtype torch.float32",
        "hidden",
    ),
    (
        "numbers_shared_with_the_file",
        "lets the model use the tensors of the dict",
        ("parameter.copy_(found[name])", "parameter.data = found[name].to(parameter)"),
        "once the model has been trained",
        "hidden",
    ),
    (
        "gradients_switched_off",
        "loads parameters that cannot be trained",
        (
            "parameter.copy_(found[name])",
            "parameter.copy_(found[name])\n            parameter.requires_grad_(False)",
        ),
        "that can be trained",
        "hidden",
    ),
)

MISSING = """            raise ValueError(f"the checkpoint has no tensor {wanted}, which {name} needs")"""
REFUSED = mutants_of(
    "load",
    "loading-refused",
    (
        "missing_tensors_skipped",
        "goes on without what is not there, as strict=False does",
        (
            MISSING,
            "            found[name], stored[wanted] = parameter.detach(), wanted\n            continue",
        ),
        "yours goes on, with a part of the model that is not loaded",
        "visible",
    ),
    (
        "missing_tensors_as_key_errors",
        "lets the dict complain",
        ("        if wanted not in stored:\n" + MISSING + "\n", ""),
        "must raise a ValueError; yours raises KeyError",
        "visible",
    ),
    (
        "missing_tensor_not_named",
        "says that something is missing, not what",
        (
            "the checkpoint has no tensor {wanted}, which {name} needs",
            "a tensor is missing",
        ),
        "the error must name encoder.layer.2.attention.self.value.bias",
        "visible",
    ),
    (
        "shapes_not_compared",
        "leaves the shapes to copy_, which complains in its own words",
        ("if value.shape != parameter.shape:", "if False:"),
        "must raise a ValueError; yours raises RuntimeError",
        "visible",
    ),
    (
        "copied_before_all_is_known",
        "copies one tensor after the other and fails half way",
        (
            "        found[name] = value\n",
            "        found[name] = value\n        with torch.no_grad():\n            parameter.copy_(value)\n",
        ),
        "the model must stay as it was",
        "visible",
    ),
    (
        "sizes_compared_not_shapes",
        "compares how many numbers there are, so that a matrix that lies on its side gets in",
        (
            "        if value.shape != parameter.shape:",
            "        if value.numel() == parameter.numel():\n            value = value.reshape(parameter.shape)\n"
            "        if value.shape != parameter.shape:",
        ),
        "With a matrix that lies on its side",
        "hidden",
    ),
    (
        "short_biases_broadcast",
        "lets copy_ repeat a bias that is too short",
        (
            "        if value.shape != parameter.shape:",
            "        if value.numel() == 1:\n            value = value.expand(parameter.shape)\n"
            "        if value.shape != parameter.shape:",
        ),
        "which would broadcast",
        "hidden",
    ),
)

AGREE = [
    Mutant(
        "gelu_defined_again_at_the_end",
        "defines gelu again, with tanh, below its own test",
        AGREEMENT,
        "Parts 3 and 4 (layer 0) is the first step that departs",
        "visible",
        {
            "load": (
                "def load_published(model, tensors):",
                "def gelu(x):\n    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))\n\n\n"
                "def load_published(model, tensors):",
            )
        },
    )
]

CHECK_OF_EXAMPLES = """def check_word_attention(implementation):
    weights = torch.tensor(
        [[[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.2, 0.5], [0.5, 0.2, 0.2, 0.1]]]],
        device=device,
    )
    words = torch.tensor([[-1, 0, 0, 1]], device=device)
    found = implementation(weights, words)
    assert found.shape == (1, 1, 2, 2)
    wanted = torch.tensor([[[[0.45, 0.3], [0.4, 0.1]]]], device=device)
    assert torch.allclose(found, wanted, atol=1e-5)
    weights[0, 0, 0] = weights[0, 0, :, 0] = math.nan
    assert torch.allclose(implementation(weights, words), wanted, atol=1e-5)
    found = implementation(wanted, torch.tensor([[0, 1]], device=device))
    assert torch.allclose(found, wanted, atol=1e-5)"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    assert implementation(weights.double(), words).dtype == torch.float64
    words = torch.tensor([[-2, 0, 0, 1]], device=device)
    wanted = torch.tensor([[[[0.45, 0.3], [0.4, 0.1]]]], device=device)
    assert torch.allclose(implementation(weights, words), wanted, atol=1e-5), 'no word at -2'"""
)
CHECKS = wrong_checks(
    "word_attention",
    "implementation(torch.ones(1, 1, 1, 1, device=device), torch.zeros(1, 1, device=device).long())",
    "a wrong gradient; changed arguments; counting; empty input; memory of earlier calls; number types; padding; sizes; small numbers",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *PAIR,
    *TRUNCATE,
    *BATCH,
    *EMBED,
    *NORM,
    *VALUES,
    *MASK,
    *ATTENTION_DROPOUT,
    *GELU,
    *WIRING,
    *LAYER_DROPOUT,
    *POOL,
    *WHOLE,
    *COUNT,
    *NAMES,
    *PLACES,
    *REFUSED,
    *AGREE,
    *CHECKS,
]

CHECK_BY_AN_OWN_ANSWER = """def check_word_attention(implementation):
    def own(weights, words):
        W = int(words.max()) + 1
        number = torch.arange(W, device=words.device)
        tables = []
        for weight, row in zip(weights, words):
            there = (row >= 0).nonzero().flatten()
            kept = weight[:, there][:, :, there]
            hot = (row[there, None] == number).to(weight.dtype)
            total = torch.einsum('hts,ti,sj->hij', kept, hot, hot)
            tables.append(total / hot.sum(0).clamp(min=1)[:, None])
        return torch.stack(tables)

    cases = [(1, 1, 1), (1, 2, 5), (3, 2, 6), (2, 1, 9), (4, 3, 4)]
    for B, H, T in cases * 3:
        words = torch.randint(-1, T, (B, T)).to(device)
        words[0] = words[0].clamp(max=T // 2)
        for dtype, near in ((torch.float64, 1e-11), (torch.float32, 1e-5)):
            for scale in (1.0, 1e-4):
                leaf = (scale * torch.rand(B, H, T, T, dtype=dtype)).to(device).requires_grad_()
                before = leaf.detach().clone(), words.clone()
                found, wanted = implementation(leaf, words), own(leaf, words)
                assert leaf.detach().equal(before[0]) and words.equal(before[1])
                assert found.dtype == dtype and found.shape == wanted.shape
                assert torch.allclose(found, wanted, rtol=near, atol=near)
                if found.numel():
                    share = torch.rand(found.shape).to(found)
                    slopes = [torch.autograd.grad((share * x).sum(), leaf)[0] for x in (found, wanted)]
                    assert torch.allclose(*slopes)
        outside = words < 0
        for unknown in (math.nan, -math.inf, math.inf):
            for side in (outside[:, None, :, None], outside[:, None, None]):
                weights = leaf.detach().masked_fill(side, unknown)
                assert torch.allclose(implementation(weights, words), wanted, atol=1e-5)
    assert implementation(leaf, 0 * words - 1).shape == (B, H, 0, 0)"""
RIGHT_ANSWERS = [
    RightAnswer(
        "input_step_by_step",
        "one branch for each number of segments, and the room computed instead of tokens taken away one by one",
        {
            "pair": """def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    if second is None:
        kept = first[: max_length - 2]
        return [cls_id] + kept + [sep_id], [0] * (len(kept) + 2)
    room = max_length - 2 - between
    for_second = min(len(second), max(room // 2, room - len(first)))
    a, b = first[: room - for_second], second[:for_second]
    return [cls_id] + a + [sep_id] * between + b + [sep_id], [0] * (1 + len(a) + between) + [1] * (1 + len(b))""",
            "batch": """def make_batch(inputs, pad_id=0, multiple=1):
    def pad(rows, padding_value=0, **_):
        T = math.ceil(max(map(len, rows)) / multiple) * multiple
        return torch.stack([torch.nn.functional.pad(r, (0, T - len(r)), value=padding_value) for r in rows])

    ids = [torch.tensor(row) for row, _ in inputs]
    lengths = torch.tensor([len(row) for row in ids])
    return {
        "attention_mask": torch.arange(pad(ids).shape[1]) < lengths.unsqueeze(1),
        "input_ids": pad(ids, batch_first=True, padding_value=pad_id),
        "token_type_ids": pad([torch.tensor(types) for _, types in inputs], batch_first=True),
    }""",
        },
    ),
    RightAnswer(
        "tensors_filled_in",
        "full tensors, filled in row by row, and segment ids counted from the [SEP]s that were put there",
        {
            "pair": """def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    a, b = first[:], [] if second is None else second[:]
    special = 2 if second is None else 2 + between
    while len(a) + len(b) + special > max_length:
        if len(a) > len(b):
            a = a[:-1]
        else:
            b = b[:-1]
    pieces = [(cls_id, 0), *((i, 0) for i in a), (sep_id, 0)]
    if second is not None:
        pieces += [(sep_id, 0)] * (between - 1)
        pieces += [*((i, 1) for i in b), (sep_id, 1)]
    ids, types = zip(*pieces)
    return list(ids), list(types)""",
            "batch": """def make_batch(inputs, pad_id=0, multiple=1):
    B, T = len(inputs), max(map(len, (ids for ids, _ in inputs)))
    while T % multiple:
        T += 1
    ids = torch.full((B, T), pad_id)
    types = torch.zeros(B, T, dtype=torch.long)
    mask = torch.zeros(B, T, dtype=torch.bool)
    for b, (row, kinds) in enumerate(inputs):
        ids[b, : len(row)] = torch.tensor(row)
        types[b, : len(row)] = torch.tensor(kinds)
        mask[b, : len(row)] = True
    return dict(input_ids=ids, token_type_ids=types, attention_mask=mask)""",
        },
    ),
    RightAnswer(
        "position_ids_as_published",
        "position ids [B, T] are expanded, segments are zeros of the ids' shape, sums in place",
        {
            "embed": (
                SUM + "\n        return self.dropout(self.norm(hidden))",
                "positions = position_ids\n        if positions is None:\n"
                "            positions = torch.arange(input_ids.size(1), device=input_ids.device)[None].expand_as(input_ids)\n"
                "        hidden = self.word(input_ids)\n        hidden = hidden + self.token_type(token_type_ids)\n"
                "        hidden = hidden + self.position(positions)\n        return self.dropout(self.norm(hidden))",
            )
        },
    ),
    RightAnswer(
        "rows_sliced_from_the_tables",
        "takes rows of the weights, and writes norm and dropout as functions",
        {
            "embed": (
                SUM + "\n        return self.dropout(self.norm(hidden))",
                "hidden = self.word.weight[input_ids] + self.position.weight[positions]\n"
                "        hidden = hidden + self.token_type.weight[token_type_ids]\n"
                "        return torch.nn.functional.dropout(self.norm(hidden), self.dropout.p, self.training)",
            )
        },
    ),
    RightAnswer(
        "additive_mask_as_published",
        "adds a mask of 0 and the smallest number to the scores, heads by view and permute",
        {
            "self-attention": (
                'scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))',
                "smallest = torch.finfo(scores.dtype).min\n"
                "            scores = scores + (1.0 - attention_mask[:, None, None].to(scores)) * smallest",
            )
        },
    ),
    RightAnswer(
        "minus_ten_thousand",
        "adds -10,000 to the scores of filling, as the first program of BERT does",
        {
            "self-attention": (
                'scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))',
                "scores = scores + -10000.0 * (~attention_mask).to(scores)[:, None, None, :]",
            )
        },
    ),
    RightAnswer(
        "one_head_after_the_other",
        "attends head by head, with einsum, and joins with cat",
        {
            "self-attention": """class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query = torch.nn.Linear(D, D)
        self.key = torch.nn.Linear(D, D)
        self.value = torch.nn.Linear(D, D)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        chunks = [part(hidden).chunk(self.num_heads, dim=-1) for part in (self.query, self.key, self.value)]
        contexts, tables = [], []
        for h, (q, k, v) in enumerate(zip(*chunks)):
            scores = torch.einsum("btn,bsn->bts", q * q.shape[-1] ** -0.5, k)
            scores = scores if bias is None else scores + bias[h]
            if attention_mask is not None:
                scores = torch.where(attention_mask.unsqueeze(1), scores, -torch.inf)
            tables.append(torch.softmax(scores, -1))
            contexts.append(self.dropout(tables[-1]).matmul(v))
        return torch.cat(contexts, dim=-1), torch.stack(tables, dim=1)"""
        },
    ),
    RightAnswer(
        "gelu_by_the_distribution",
        "multiplies by the distribution function of torch.distributions",
        {
            "activation": (
                "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
                "x * torch.special.ndtr(x)",
            )
        },
    ),
    RightAnswer(
        "gelu_by_erfc",
        "half of x times the complement of the error function",
        {
            "activation": (
                "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
                "x * torch.erfc(-x * 2**-0.5) / 2",
            )
        },
    ),
    RightAnswer(
        "layer_in_one_expression",
        "index instead of unpacking, keywords, and residuals the other way round",
        {
            "block": (
                """context, _ = self.attention(hidden, attention_mask, bias)
        """
                + FIRST
                + """
        transformed = self.output(gelu(self.intermediate(hidden)))
        """
                + SECOND,
                """mixed = self.attention_output(self.attention(hidden, attention_mask=attention_mask, bias=bias)[0])
        x = self.attention_norm(self.dropout(mixed) + hidden)
        return self.output_norm(self.dropout(self.output(gelu(self.intermediate(x)))) + x)""",
            )
        },
    ),
    RightAnswer(
        "pooler_by_select_and_keywords",
        "selects the first position by other means, and passes everything by keyword",
        {
            "pool": (
                "torch.tanh(self.dense(hidden[:, 0]))",
                "self.dense(hidden.select(1, 0)).tanh()",
            ),
            "whole": (
                "hidden = self.embeddings(input_ids, token_type_ids)",
                "hidden = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)",
            ),
        },
    ),
    RightAnswer(
        "counted_table_by_table",
        "adds up the shapes of all tables",
        {
            "count": """def count_parameters(config):
    D, I = config.hidden_size, config.intermediate_size
    tables = [(config.vocab_size, D), (config.max_position_embeddings, D), (config.type_vocab_size, D), (D,), (D,)]
    layer = 4 * [(D, D), (D,)] + [(I, D), (I,), (D, I), (D,)] + 4 * [(D,)]
    size = lambda shapes: sum(math.prod(shape) for shape in shapes)
    return {
        "pooler": size([(D, D), (D,)]),
        "layers": config.num_hidden_layers * size(layer),
        "embeddings": size(tables),
    }"""
        },
    ),
    RightAnswer(
        "counted_on_a_model_without_numbers",
        "makes the model on the meta device, where it takes no memory, and counts",
        {
            "count": """def count_parameters(config):
    with torch.device("meta"):
        model = BertModel(config)
    parts = {"embeddings": model.embeddings, "layers": model.layers, "pooler": model.pooler}
    return {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}"""
        },
    ),
    RightAnswer(
        "names_by_regular_expressions",
        "finds the number of the layer with a regular expression",
        {
            "names": """import re


def published_name(name, old=False):
    if old:
        today = published_name(name)
        today = re.sub(r"(LayerNorm)\\.weight$", r"\\1.gamma", today)
        return re.sub(r"(LayerNorm)\\.bias$", r"\\1.beta", today)
    layer = re.fullmatch(r"layers\\.(\\d+)\\.(.+)\\.(weight|bias)", name)
    if layer:
        number, part, kind = layer.groups()
        part = part.replace("attention.", "attention.self.")
        part = {"attention_output": "attention.output.dense", "attention_norm": "attention.output.LayerNorm",
                "intermediate": "intermediate.dense", "output": "output.dense",
                "output_norm": "output.LayerNorm"}.get(part, part)
        return f"encoder.layer.{number}.{part}.{kind}"
    if name.startswith("embeddings.norm"):
        return name.replace("norm", "LayerNorm")
    return re.sub(r"^embeddings\\.(\\w+)\\.", r"embeddings.\\1_embeddings.", name)"""
        },
    ),
    RightAnswer(
        "loaded_by_load_state_dict",
        "builds a state dict, compares shapes, and lets torch copy",
        {
            "load": """def load_published(model, tensors):
    def plain(name):
        name = name[5:] if name.startswith("bert.") else name
        head, dot, kind = name.rpartition(".")
        return head + dot + {"gamma": "weight", "beta": "bias"}.get(kind, kind)

    by_name = {plain(name): name for name in tensors}
    state, left_over = {}, set(tensors)
    for ours, parameter in model.state_dict().items():
        theirs = by_name.get(published_name(ours))
        if theirs is None:
            raise ValueError(f"{published_name(ours)} is missing")
        if tuple(tensors[theirs].shape) != tuple(parameter.shape):
            raise ValueError(f"{theirs}: {tuple(tensors[theirs].shape)} is not {tuple(parameter.shape)}")
        state[ours] = tensors[theirs]
        left_over.discard(theirs)
    model.load_state_dict(state)
    return sorted(left_over)"""
        },
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with tables of its own on drawn weights",
        {"own-check": CHECK_BY_AN_OWN_ANSWER},
    ),
]
