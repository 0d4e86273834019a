"""Wrong answers to the sentence-bert assignment that people give, and right answers that people write differently.

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


FILLED = "hidden.masked_fill(~mask[:, :, None], 0)"
SHARES = "    shares = mask if weights is None else weights\n"
MEAN = mutants_of(
    "mean",
    "pool-mean",
    (
        "padding_pooled",
        "takes the mean over all positions",
        ("((shares * kept).sum(dim=1) / shares.sum(dim=1))", "hidden.mean(dim=1)"),
        "Padding is in it",
        "visible",
    ),
    (
        "mean_divided_by_t",
        "sets padding to 0, and divides by the number of positions",
        ("/ shares.sum(dim=1)", "/ mask.shape[1]"),
        "You divide by T, 5",
        "visible",
    ),
    (
        "padding_summed",
        "divides by the number of tokens, but adds padding up, too",
        ("(shares * kept).sum(dim=1)", "hidden.sum(dim=1)"),
        "set them to 0 first",
        "visible",
    ),
    (
        "divided_by_the_tokens_of_the_batch",
        "divides every row by the number of all tokens",
        ("/ shares.sum(dim=1)", "/ shares.sum()"),
        "yours divides by that of the batch",
        "visible",
    ),
    (
        "cls_and_sep_left_out",
        "leaves the first and the last token out",
        (
            SHARES,
            "    place = mask.cumsum(1)\n    mask = mask & (place > 1) & (place < mask.sum(1, keepdim=True))\n"
            + SHARES,
        ),
        "[CLS] and [SEP] belong to the mean here",
        "visible",
    ),
    (
        "nan_times_zero",
        "multiplies by the mask",
        (FILLED, "hidden"),
        "0 times infinity is nan",
        "visible",
    ),
    (
        "summed_in_half_precision",
        "adds up in the type of the states",
        ("shares.to(precise)", "shares.to(hidden.dtype)"),
        "float16 ends at 65504",
        "hidden",
    ),
    (
        "always_float32",
        "gives float32 back, whatever came in",
        (".to(hidden.dtype)", ".float()"),
        "must have dtype torch.float64; yours is torch.float32",
        "hidden",
    ),
    (
        "weights_ignored",
        "takes the library's mean, in which all tokens count alike",
        (SHARES, "    shares = mask\n"),
        "The weights are missing",
        "visible",
    ),
    (
        "weighted_sum_by_the_number_of_tokens",
        "divides the weighted sum by the number of tokens",
        ("/ shares.sum(dim=1)", "/ mask.sum(dim=1, keepdim=True)"),
        "Divide by the sum of the weights, not by the number of tokens",
        "visible",
    ),
    (
        "weights_of_padding_in_the_sum",
        "divides by the sum of all weights, those of padding among them",
        (
            "/ shares.sum(dim=1)",
            "/ (mask if weights is None else weights).sum(1, keepdim=True)",
        ),
        "The weights of padding are in the sum",
        "visible",
    ),
    (
        "weights_of_padding_times_zero",
        "multiplies the weights of padding by 0, which leaves nan a nan",
        ("masked_fill(~mask, 0)[:, :, None]", "mul(mask)[:, :, None]"),
        "With weights and padding",
        "hidden",
    ),
)

FIRST = mutants_of(
    "first-max",
    "pool-first",
    (
        "cls_by_position",
        "takes position 0",
        (
            "return hidden[torch.arange(len(hidden), device=hidden.device), first]",
            "return hidden[:, 0]",
        ),
        "Position 0 is padding where padding stands in front",
        "visible",
    ),
    (
        "last_token",
        "takes the last real token, as causal models do",
        (
            "first = mask.int().argmax(dim=1)  # [B]",
            "first = mask.shape[1] - 1 - mask.int().flip(1).argmax(dim=1)",
        ),
        "That is the last token, [SEP]",
        "visible",
    ),
    (
        "cls_squeezed",
        "squeezes what has one sentence only",
        ("device=hidden.device), first]", "device=hidden.device), first].squeeze(0)"),
        "With one sentence, the table of vectors must have another shape",
        "hidden",
    ),
    (
        "first_whatever_is_asked",
        "takes the library's [CLS], also where the last token is asked for",
        ("    if last:\n", "    if False:\n"),
        "That is still the first token",
        "visible",
    ),
    (
        "last_position",
        "takes the last position, which may be padding",
        (
            "        hidden, mask = hidden.flip(1), mask.flip(1)\n",
            "        return hidden[:, -1]\n",
        ),
        "The last position may be padding",
        "visible",
    ),
    (
        "last_by_the_number_of_tokens",
        "counts tokens to find the last, as if padding stood behind all of them",
        (
            "        hidden, mask = hidden.flip(1), mask.flip(1)\n",
            "        return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]\n",
        ),
        "With last, and states in float64 and padding",
        "hidden",
    ),
)

LARGEST = mutants_of(
    "first-max",
    "pool-max",
    (
        "padding_in_the_maximum",
        "takes the maximum over all positions",
        ("hidden.masked_fill(~mask[:, :, None], -torch.inf)", "hidden"),
        "Padding takes part. Fill it",
        "visible",
    ),
    (
        "maximum_over_zeros",
        "sets padding to 0 before the maximum",
        ("-torch.inf", "0"),
        "Padding takes part as 0",
        "visible",
    ),
    (
        "largest_without_sign",
        "takes the largest absolute value",
        (
            "hidden.masked_fill(~mask[:, :, None], -torch.inf)",
            "hidden.masked_fill(~mask[:, :, None], 0).abs()",
        ),
        "The largest, with its sign",
        "visible",
    ),
    (
        "minus_1e9_in_half_precision",
        "fills padding with -1e9, which float16 does not have",
        ("-torch.inf", "-1e9"),
        "Fill padding with -torch.inf, which every type has",
        "hidden",
    ),
    (
        "largest_whatever_is_asked",
        "takes the library's maximum, also where the size is asked for",
        ("    if by_size:\n", "    if False:\n"),
        "Those are still the largest",
        "visible",
    ),
    (
        "size_without_its_sign",
        "gives the size back instead of the number",
        ("return hidden.gather(", "return hidden.abs().gather("),
        "give the number back with its sign",
        "visible",
    ),
    (
        "size_of_padding",
        "lets padding win by its size",
        (
            "hidden.detach().abs().masked_fill(~mask[:, :, None], -1)",
            "hidden.detach().abs()",
        ),
        "By size, the vectors",
        "visible",
    ),
)

FEATURES = "torch.cat([u, v, (u - v).abs(), u * v], dim=1)"
CLASSES = mutants_of(
    "classify",
    "objectives-classes",
    (
        "difference_with_sign",
        "takes u - v without the absolute value",
        ("(u - v).abs()", "u - v"),
        "The difference has no sign",
        "visible",
    ),
    (
        "difference_squared",
        "squares the difference",
        ("(u - v).abs()", "(u - v) ** 2"),
        "not its square",
        "visible",
    ),
    (
        "product_for_difference",
        "takes u * v as the third part",
        ("(u - v).abs()", "u * v"),
        "not u * v",
        "visible",
    ),
    (
        "difference_first",
        "puts the difference before the vectors",
        (FEATURES, "torch.cat([(u - v).abs(), u, v, u * v], dim=1)"),
        "|u - v| comes behind u and v",
        "visible",
    ),
    (
        "product_before_distance",
        "puts the product before the distance",
        (FEATURES, "torch.cat([u, v, u * v, (u - v).abs()], dim=1)"),
        "The product comes last",
        "visible",
    ),
    (
        "features_without_the_product",
        "takes the library's three parts and leaves the columns for the product out",
        (
            "features @ weight.T",
            "features[:, : 3 * u.shape[1]] @ weight[:, : 3 * u.shape[1]].T",
        ),
        "The product u * v is missing",
        "visible",
    ),
    (
        "softmax_before_cross_entropy",
        "gives cross_entropy probabilities",
        ("cross_entropy(logits, labels)", "cross_entropy(logits.softmax(1), labels)"),
        "cross_entropy takes the softmax itself",
        "visible",
    ),
    (
        "probabilities_for_logits",
        "returns probabilities",
        ("return logits,", "return logits.softmax(1),"),
        "logits come before the softmax",
        "visible",
    ),
    (
        "log_of_softmax",
        "takes the logarithm of a softmax, which becomes 0 for large logits",
        (
            "torch.nn.functional.cross_entropy(logits, labels)",
            "-logits.softmax(1)[torch.arange(len(u), device=u.device), labels].log().mean()",
        ),
        "With large weights, the loss",
        "hidden",
    ),
)

COSINES = "torch.nn.functional.cosine_similarity(u, v, dim=1)"
REGRESSION = mutants_of(
    "regress",
    "objectives-cosine",
    (
        "cosine_without_lengths",
        "takes inner products",
        (COSINES, "(u * v).sum(dim=1)"),
        "divide by both lengths",
        "visible",
        "experiment-pairs",
    ),
    (
        "cosine_over_the_batch",
        "takes the lengths over the batch",
        (
            COSINES,
            "(torch.nn.functional.normalize(u, dim=0) * torch.nn.functional.normalize(v, dim=0)).sum(dim=1)",
        ),
        "yours goes over the batch",
        "visible",
        "experiment-pairs",
    ),
    (
        "distance_for_cosine",
        "lets 1 less the cosine be the score",
        ("cosines - scores", "1 - cosines - scores"),
        "not 1 less the cosine",
        "visible",
        "experiment-pairs",
    ),
    (
        "error_summed",
        "adds the squared errors up",
        ("(beyond**2).mean()", "(beyond**2).sum()"),
        "Take the mean over pairs, not the sum",
        "visible",
    ),
    (
        "error_without_square",
        "takes absolute differences",
        ("(beyond**2).mean()", "beyond.mean()"),
        "Square the differences",
        "visible",
    ),
    (
        "slack_ignored",
        "takes the library's squared error, in which every difference costs",
        ("torch.relu((cosines - scores).abs() - slack)", "cosines - scores"),
        "The slack is missing",
        "visible",
    ),
    (
        "whole_differences_beyond_the_slack",
        "squares the whole difference where it is beyond the slack",
        ("(beyond**2).mean()", "((cosines - scores) ** 2 * (beyond > 0)).mean()"),
        "Square what is beyond the slack",
        "visible",
    ),
    (
        "slack_after_the_square",
        "takes the slack from the squares",
        (
            "    return (beyond**2).mean()",
            "    return torch.relu((cosines - scores) ** 2 - slack).mean()",
        ),
        "before you square",
        "visible",
    ),
    (
        "slack_on_one_side",
        "lets cosines below the score cost nothing",
        (
            "(cosines - scores).abs() - slack",
            "(cosines - scores if slack else (cosines - scores).abs()) - slack",
        ),
        "A cosine below the score costs as much as one above it",
        "visible",
    ),
)

TRIPLETS = mutants_of(
    "order",
    "objectives-triplet",
    (
        "triplet_upside_down",
        "wants the negative nearer",
        ("near - far + margin", "far - near + margin"),
        "Upside down: the positive is to be nearer",
        "visible",
    ),
    (
        "margin_outside_the_maximum",
        "adds the margin behind the maximum",
        (
            "torch.relu(near - far + margin).mean()",
            "torch.relu(near - far).mean() + margin",
        ),
        "The margin belongs inside the maximum",
        "visible",
    ),
    (
        "margin_subtracted",
        "takes the margin away",
        ("far + margin", "far - margin"),
        "The margin is added",
        "visible",
    ),
    (
        "no_maximum",
        "lets good triplets pay for bad ones",
        ("torch.relu(near - far + margin)", "(near - far + margin)"),
        "costs 0, not less",
        "visible",
    ),
    (
        "distances_squared",
        "compares squared distances",
        ("relu(near - far", "relu(near**2 - far**2"),
        "Those are squared distances",
        "visible",
    ),
    (
        "ready_made_triplet",
        "takes torch's own function",
        (
            "return torch.relu(near - far + margin).mean()",
            "return torch.nn.functional.triplet_margin_loss(anchor, positive, negative, margin)",
        ),
        "which this assignment withholds",
        "visible",
    ),
    (
        "root_of_zero",
        "takes the root of the sum of squares by hand",
        (
            "(anchor - positive).norm(dim=1)",
            "((anchor - positive) ** 2).sum(dim=1).sqrt()",
        ),
        "the root of 0 has no slope",
        "hidden",
    ),
    (
        "swap_ignored",
        "takes the library's loss, in which the positive's distance to the negative plays no part",
        ("    if swap:\n", "    if False:\n"),
        "That is the loss without swap",
        "visible",
    ),
    (
        "distance_to_the_positive_each_time",
        "takes the distance from positive to negative, also where it is the larger",
        (
            "torch.minimum(far, (positive - negative).norm(dim=1))",
            "(positive - negative).norm(dim=1)",
        ),
        "yours takes the distance to the positive each time",
        "visible",
    ),
    (
        "larger_of_two_lengths",
        "takes the larger of the two distances to the negative",
        ("torch.minimum(far,", "torch.maximum(far,"),
        "not the larger",
        "visible",
    ),
    (
        "ready_made_triplet_with_swap",
        "takes torch's other function, which swaps",
        (
            "return torch.relu(near - far + margin).mean()",
            "return torch.nn.functional.triplet_margin_with_distance_loss(anchor, positive, negative, margin=margin, swap=swap)",
        ),
        "which this assignment withholds",
        "visible",
    ),
)

LOWERED = "    logits = logits - torch.eye(*logits.shape).to(logits) * (margin / temperature)\n"
PRODUCT = "normalize(queries, dim=1) @ normalize(documents, dim=1).T / temperature"
BATCH = mutants_of(
    "contrast",
    "objectives-batch",
    (
        "temperature_multiplied",
        "multiplies by the temperature",
        (".T / temperature", ".T * temperature"),
        "yours multiplies by it",
        "visible",
    ),
    (
        "temperature_forgotten",
        "leaves the temperature out",
        (".T / temperature", ".T"),
        "The temperature is missing",
        "visible",
    ),
    (
        "inner_products_in_the_batch",
        "does not divide by the lengths",
        (PRODUCT, "queries @ documents.T / temperature"),
        "Those are inner products",
        "visible",
    ),
    (
        "labels_on_the_other_axis",
        "takes the softmax over queries",
        ("cross_entropy(logits, own)", "cross_entropy(logits.T[: len(queries)], own)"),
        "the other axis",
        "visible",
    ),
    (
        "right_document_not_in_the_sum",
        "leaves the diagonal out of the denominator",
        (
            "return torch.nn.functional.cross_entropy(logits, own)",
            "wrong = logits.clone()\n"
            "    wrong[own, own] = -torch.inf if logits.shape[1] > 1 else 0.0\n"
            "    return (wrong.logsumexp(1) - logits[own, own]).mean()",
        ),
        "belongs to the sum in the denominator",
        "visible",
    ),
    (
        "further_documents_ignored",
        "compares queries with their own documents only",
        ("normalize(documents, dim=1)", "normalize(documents[: len(queries)], dim=1)"),
        "they belong to the sum",
        "visible",
    ),
    (
        "softmax_by_hand_in_the_batch",
        "takes exponentials as they are, which overflow at small temperatures",
        (
            "return torch.nn.functional.cross_entropy(logits, own)",
            "shares = logits.exp() / logits.exp().sum(1, keepdim=True)\n    return -shares[own, own].log().mean()",
        ),
        "With temperature 0.01, in float32",
        "hidden",
    ),
    (
        "margin_ignored",
        "takes the library's loss, without a margin",
        (LOWERED, ""),
        "The margin is missing",
        "visible",
    ),
    (
        "margin_not_over_temperature",
        "takes the margin from the logit instead of the cosine",
        ("* (margin / temperature)", "* margin"),
        "before you divide by the temperature",
        "visible",
    ),
    (
        "margin_added",
        "makes the right document easier to find",
        ("logits = logits - torch.eye", "logits = logits + torch.eye"),
        "Take the margin away from the cosine",
        "visible",
    ),
    (
        "margin_for_all_documents",
        "lowers the cosines of all documents, which changes nothing",
        ("torch.eye(*logits.shape)", "torch.ones(*logits.shape)"),
        "or lowers all cosines alike",
        "visible",
    ),
    (
        "margin_in_the_numerator_alone",
        "leaves the sum of the denominator as it was",
        (
            LOWERED + "    return torch.nn.functional.cross_entropy(logits, own)",
            "    return torch.nn.functional.cross_entropy(logits, own) + margin / temperature",
        ),
        "stands in the sum of the denominator",
        "visible",
    ),
)

LOOP = "            for place, vector in zip(places, vectors):\n                found[place] = vector\n"
ENCODE = mutants_of(
    "many",
    "encode-order",
    (
        "order_not_restored",
        "gives the vectors back in the order of length",
        (
            "    return torch.stack(found)",
            "    return torch.stack([found[place] for place in order])",
        ),
        "put each back where its sentence stood",
        "visible",
    ),
    (
        "sorted_twice",
        "undoes the order by applying it once more",
        (
            "    return torch.stack(found)",
            "    return torch.stack([found[place] for place in order])[order]",
        ),
        "Sorted twice",
        "visible",
    ),
    (
        "dropout_left_on",
        "forgets eval()",
        ("    model.eval()\n", ""),
        "Call eval() on the model",
        "visible",
    ),
    (
        "mode_not_restored",
        "leaves the model in evaluation mode",
        ("    model.train(was_training)\n", ""),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "gradients_kept",
        "forgets no_grad",
        ("torch.no_grad()", "torch.enable_grad()"),
        "Ask the model under torch.no_grad()",
        "visible",
    ),
    (
        "not_sorted",
        "takes the sentences as they come",
        (
            "sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))",
            "list(range(len(sentences)))",
        ),
        "Sort by length first",
        "visible",
    ),
    (
        "last_batch_dropped",
        "drops the last, smaller batch",
        (
            "range(0, len(order), batch_size)",
            "range(0, len(order) - batch_size + 1, batch_size)",
        ),
        "expected Tensor as element",
        "visible",
    ),
    (
        "filled_up_to_the_longest_of_all",
        "fills every batch up to the longest sentence of the list",
        (
            "model(*fill_up([sentences[place] for place in places]))",
            "model(*(side[: len(places)] for side in fill_up([*(sentences[place] for place in places), sentences[order[0]]])))",
        ),
        "fill each batch up to its own longest sentence",
        "visible",
    ),
    (
        "given_list_sorted",
        "sorts the list that it was given",
        ("    order = sorted", "    sentences.sort(key=len)\n    order = sorted"),
        "yours changes it",
        "visible",
    ),
)

SORT = "scores, order = scores.sort(dim=1, descending=True, stable=True)"
SEARCH = mutants_of(
    "find",
    "search-blocks",
    (
        "indices_not_offset",
        "counts indices from the beginning of the block",
        (
            "torch.arange(begin, begin + len(rows), device=queries.device)",
            "torch.arange(len(rows), device=queries.device)",
        ),
        "add where the block begins",
        "visible",
    ),
    (
        "blocks_not_merged",
        "puts the hits of all blocks beside one another",
        (
            f"scores = torch.cat([scores, queries @ rows.T], dim=1)  # [Q, K + block]\n"
            "        indices = torch.cat([indices, places.expand(len(queries), -1)], dim=1)\n"
            f"        {SORT}\n"
            "        scores, indices = scores[:, :k], indices.gather(1, order)[:, :k]",
            "best, order = (queries @ rows.T).sort(dim=1, descending=True, stable=True)\n"
            "        scores = torch.cat([scores, best[:, :k]], dim=1)\n"
            "        indices = torch.cat([indices, places.expand(len(queries), -1).gather(1, order)[:, :k]], dim=1)",
        ),
        "the best of each block must compete",
        "visible",
    ),
    (
        "last_block_wins",
        "keeps the hits of the last block alone",
        (
            "for begin in range(0, len(collection), block):",
            "for begin in range(0, len(collection), block):\n        scores, indices = scores[:, :0], indices[:, :0]",
        ),
        "Those are the hits of one block alone",
        "visible",
    ),
    (
        "ascending",
        "returns the farthest first",
        ("descending=True", "descending=False"),
        "The nearest come first: sort downwards",
        "visible",
    ),
    (
        "nearest_last",
        "finds the nearest, and returns them upwards",
        ("    return scores, indices", "    return scores.flip(1), indices.flip(1)"),
        "The nearest come first: sort downwards",
        "visible",
    ),
    (
        "inner_products_searched",
        "does not divide by the lengths of the collection",
        (
            "rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)",
            "rows = collection[begin : begin + block]",
        ),
        "the scores",
        "visible",
    ),
    (
        "places_among_candidates",
        "returns places in the list of candidates for indices",
        ("indices.gather(1, order)[:, :k]", "order[:, :k]"),
        "the indices",
        "visible",
    ),
    (
        "full_matrix",
        "computes all scores at once",
        (
            "for begin in range(0, len(collection), block):",
            "block = len(collection)\n    for begin in range(0, len(collection), block):",
        ),
        "the full matrix has 20,000",
        "visible",
    ),
    (
        "last_block_left_out",
        "looks at whole blocks only",
        (
            "range(0, len(collection), block)",
            "range(0, len(collection) - block + 1, block)",
        ),
        "The last block, which is shorter, is left out",
        "visible",
    ),
    (
        "ties_in_any_order",
        "takes topk, which promises no order among equal scores",
        (SORT, "scores, order = scores.topk(min(k, scores.shape[1]), dim=1)"),
        "use a stable sort",
        "visible",
    ),
    (
        "ties_later_first",
        "puts each new block before the best so far",
        (
            "torch.cat([scores, queries @ rows.T], dim=1)  # [Q, K + block]\n"
            "        indices = torch.cat([indices, places.expand(len(queries), -1)], dim=1)",
            "torch.cat([queries @ rows.T, scores], dim=1)\n"
            "        indices = torch.cat([places.expand(len(queries), -1), indices], dim=1)",
        ),
        "use a stable sort",
        "visible",
    ),
    (
        "k_larger_than_the_collection",
        "asks topk for more hits than there are",
        (
            "    return scores, indices",
            "    scores, order = scores.topk(k, dim=1)\n    return scores, indices.gather(1, order)",
        ),
        "For many equal vectors in a block",
        "visible",
    ),
    (
        "best_start_at_zero",
        "begins with hits of score 0 and index 0",
        (
            "scores = queries.new_empty(len(queries), 0)\n    indices = torch.empty(len(queries), 0,",
            "scores = queries.new_zeros(len(queries), min(k, len(collection)))\n"
            "    indices = torch.zeros(len(queries), min(k, len(collection)),",
        ),
        "the scores",
        "visible",
    ),
)

RANKS = mutants_of(
    "rank",
    "evaluate-ranks",
    (
        "ties_by_who_comes_first",
        "sorts twice, so that ties get ranks of their own",
        (
            "return (last - (sizes - 1) / 2)[group]",
            "return values.argsort(stable=True).argsort().double() + 1",
        ),
        "by who comes first",
        "visible",
        "evaluate-spearman",
    ),
    (
        "argsort_for_ranks",
        "takes argsort for ranks",
        (
            "return (last - (sizes - 1) / 2)[group]",
            "return values.argsort(stable=True).double() + 1",
        ),
        "That is which number comes when",
        "visible",
        "evaluate-spearman",
    ),
    (
        "least_rank",
        "gives ties the least of their ranks",
        ("(last - (sizes - 1) / 2)", "(last - (sizes - 1))"),
        "yours takes the least",
        "visible",
        "evaluate-spearman",
    ),
    (
        "dense_ranks",
        "counts different numbers only",
        ("return (last - (sizes - 1) / 2)[group]", "return group.double() + 1"),
        "yours counts different numbers only",
        "visible",
        "evaluate-spearman",
    ),
    (
        "ranks_from_zero",
        "begins at 0",
        ("(last - (sizes - 1) / 2)", "(last - (sizes + 1) / 2)"),
        "Ranks begin at 1",
        "visible",
    ),
)

CORRELATION = mutants_of(
    "correlate",
    "evaluate-spearman",
    (
        "pearson_for_spearman",
        "correlates the numbers themselves",
        ("r, s = ranks(x), ranks(y)", "r, s = x.double(), y.double()"),
        "take their ranks first",
        "visible",
    ),
    (
        "formula_without_ties",
        "takes the formula with squared differences",
        (
            "return ((r * s).sum() / (r.norm() * s.norm())).item()",
            "return (1 - 6 * ((r - s) ** 2).sum() / (len(r) ** 3 - len(r))).item()",
        ),
        "wrong where there are ties",
        "visible",
    ),
    (
        "constant_numbers_in_silence",
        "returns 0 where nothing is ranked",
        (
            'raise ValueError("all numbers are equal, so nothing is ranked")',
            "return 0.0",
        ),
        "must raise a ValueError; yours returns 0.0",
        "visible",
    ),
    (
        "ranks_of_one_side",
        "ranks the cosines and leaves the scores",
        ("ranks(x), ranks(y)", "ranks(x), y.double()"),
        "Take the ranks of both",
        "visible",
    ),
    (
        "one_side_downwards",
        "ranks the scores from the largest down",
        ("ranks(x), ranks(y)", "ranks(x), ranks(-y)"),
        "Upside down",
        "visible",
    ),
    (
        "correlation_as_a_tensor",
        "returns a tensor",
        ("(r.norm() * s.norm())).item()", "(r.norm() * s.norm()))"),
        "must be a Python float; yours is a Tensor",
        "visible",
    ),
)

WORTH = "worth = relevant.any(dim=1) / (before + 1).double()"
RECIPROCAL = mutants_of(
    "reciprocal",
    "evaluate-mrr",
    (
        "counted_from_one_too_many",
        "gives the first document rank 2",
        ("(before + 1)", "(before + 2)"),
        "the document at the top has rank 1",
        "visible",
    ),
    (
        "counted_from_zero",
        "gives the first document rank 0",
        ("(before + 1)", "before"),
        "the mean reciprocal rank",
        "visible",
    ),
    (
        "mean_rank",
        "takes the mean of the ranks",
        (WORTH, "worth = (before + 1).double()"),
        "That is the mean rank",
        "visible",
    ),
    (
        "reciprocal_of_the_mean",
        "takes the mean of the ranks, and 1 over it",
        (
            "return worth.mean().item()",
            "return 1 / (before + 1).double().mean().item()",
        ),
        "Take 1 / rank for each query first",
        "visible",
    ),
    (
        "only_the_top",
        "counts queries whose first hit is right",
        (WORTH, "worth = (relevant.any(dim=1) & (before == 0)).double()"),
        "share of queries whose first hit is right",
        "visible",
    ),
    (
        "the_last_right_document",
        "looks for the last right document",
        (
            "best = scores.masked_fill(~relevant, -torch.inf).amax(dim=1, keepdim=True)  # [Q, 1]\n"
            "    before = ((scores >= best) & ~relevant).sum(dim=1)",
            "best = scores.masked_fill(~relevant, torch.inf).amin(dim=1, keepdim=True)\n"
            "    before = (scores > best).sum(dim=1)",
        ),
        "yours takes the last",
        "visible",
    ),
    (
        "ties_won",
        "lets the right document win ties",
        ("scores >= best", "scores > best"),
        "yours lets the right one win",
        "visible",
    ),
    (
        "queries_without_answer_left_out",
        "leaves queries without a right document out of the mean",
        (
            "return worth.mean().item()",
            "return worth[relevant.any(dim=1)].mean().item()",
        ),
        "yours leaves it out of the mean",
        "visible",
    ),
)

EXPERIMENT = mutants_of(
    "experiment",
    "experiment-pairs",
    (
        "never_stepped",
        "forgets the optimizer's step",
        ("            optimizer.step()\n", ""),
        "That is what the model gives untrained",
        "visible",
    ),
    (
        "trained_from_scratch",
        "begins with random weights",
        ("make_model()", "make_model(pretrained=False)"),
        "does it begin with the weights of the file",
        "visible",
    ),
    (
        "rate_too_high",
        "takes a rate that destroys the weights",
        ("lr=3e-3", "lr=0.5"),
        "is the rate not too high",
        "visible",
    ),
    (
        "every_pair_called_a_match",
        "trains with in-batch negatives on all pairs, whatever their score",
        (
            "cosine_loss(model(*first), model(*second), scores)",
            "in_batch_loss(model(*first), model(*second), 0.1)",
        ),
        "Spearman's correlation must be at least 0.88",
        "visible",
    ),
    (
        "model_not_returned",
        "forgets return",
        ("    return model", "    return None"),
        "yours returns nothing",
        "visible",
    ),
)

CHECK_OF_EXAMPLES = """def check_negatives(implementation):
    scores = torch.tensor([[0.75, 0.25, 0.5, 0.625], [0.5, 0.0, -0.5, 0.0]], device=device)
    relevant = torch.tensor([[True, False, False, False]] * 2, device=device)
    numbers, found = implementation(scores, relevant, 2, 0.2)
    assert numbers.tolist() == [[2, 1], [1, 3]]
    assert found.tolist() == [[0.5, 0.25], [0.0, 0.0]]
    numbers, found = implementation(scores, relevant, 4, 0.25)
    assert numbers.tolist() == [[2, 1, -1, -1], [1, 3, 2, -1]]
    assert found.isinf().tolist() == [[False, False, True, True], [False, False, False, True]]
    assert found.dtype == torch.float32 and numbers.dtype == torch.int64"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    table = torch.tensor([[0.4, 0.3]], device=device)
    numbers = implementation(table, table > 0.35, 1, 0.1)[0]
    assert numbers.tolist() == [[1]], '0.4 - 0.1 is 0.3'"""
)
CHECKS = wrong_checks(
    "negatives",
    "implementation(torch.ones(1, 2), torch.ones(1, 2) > 0, 1, 0.0)",
    "a tight fit; a wrong gradient; empty input; errors that are not raised; memory of earlier calls; number types; padding; sizes; small numbers; the formula; ties",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *MEAN,
    *FIRST,
    *LARGEST,
    *CLASSES,
    *REGRESSION,
    *TRIPLETS,
    *BATCH,
    *ENCODE,
    *SEARCH,
    *RANKS,
    *CORRELATION,
    *RECIPROCAL,
    *EXPERIMENT,
    *CHECKS,
]

RIGHT_ANSWERS = [
    RightAnswer(
        "pooled_by_where",
        "pools by torch.where and by products of matrices",
        {
            "mean": """def mean_pool(hidden, mask, weights=None):
    weights = torch.ones_like(hidden[..., 0]) if weights is None else weights
    weights = torch.where(mask, weights, 0).to(torch.promote_types(hidden.dtype, torch.float32))
    weights = weights / weights.sum(1, keepdim=True)
    states = torch.where(mask.unsqueeze(-1), hidden, torch.zeros_like(hidden)).to(weights.dtype)
    return torch.einsum("bt,btd->bd", weights, states).to(hidden.dtype)""",
            "first-max": """def cls_pool(hidden, mask, last=False):
    count = mask.cumsum(1)
    return hidden[mask & (count == (count[:, -1:] if last else 1))]


def max_pool(hidden, mask, by_size=False):
    lowest = torch.finfo(hidden.dtype).min
    largest = torch.where(mask[..., None], hidden, lowest).max(dim=1)[0]
    least = torch.where(mask[..., None], hidden, -lowest).min(dim=1)[0]
    return torch.where((-least > largest) & by_size, least, largest)""",
        },
    ),
    RightAnswer(
        "pooled_in_a_loop",
        "pools row by row",
        {
            "mean": """def mean_pool(hidden, mask, weights=None):
    rows = []
    for place, (states, real) in enumerate(zip(hidden, mask)):
        if weights is None:
            rows.append(states[real].double().mean(dim=0))
        else:
            share = weights[place, real].double()
            rows.append(share @ states[real].double() / share.sum())
    return torch.stack(rows).to(hidden.dtype)""",
            "first-max": """def cls_pool(hidden, mask, last=False):
    return torch.stack([states[real][-1 if last else 0] for states, real in zip(hidden, mask)])


def max_pool(hidden, mask, by_size=False):
    rows = [states[real] for states, real in zip(hidden, mask)]
    if not by_size:
        return torch.stack([row.amax(0) for row in rows])
    winners = [row.abs().argmax(0) for row in rows]
    return torch.stack([row[w, torch.arange(len(w), device=w.device)] for row, w in zip(rows, winners)])""",
        },
    ),
    RightAnswer(
        "losses_by_hand",
        "writes every loss from sums and norms, with log_softmax",
        {
            "classify": """def classify(u, v, weight, labels):
    for_u, for_v, for_distance, for_product = weight.chunk(4, dim=1)
    logits = u @ for_u.T + v @ for_v.T + torch.abs(v - u) @ for_distance.T + (v * u) @ for_product.T
    return logits, -logits.log_softmax(dim=-1).gather(1, labels[:, None]).mean()""",
            "regress": """def cosine_loss(u, v, scores, slack=0.0):
    cosines = torch.einsum("bd,bd->b", u, v) / u.norm(dim=1) / v.norm(dim=1)
    nearest = torch.maximum(torch.minimum(cosines, scores + slack), scores - slack)
    return torch.nn.functional.mse_loss(cosines, nearest if slack else scores)""",
            "order": """def triplet_loss(anchor, positive, negative, margin, swap=False):
    distance = torch.nn.PairwiseDistance()
    far = distance(anchor, negative)
    if swap:
        other = distance(positive, negative)
        far = torch.where(other < far, other, far)
    lead = distance(anchor, positive) - far + margin
    return torch.where(lead > 0, lead, torch.zeros_like(lead)).mean()""",
            "contrast": """def in_batch_loss(queries, documents, temperature, margin=0.0):
    table = torch.nn.functional.cosine_similarity(queries[:, None], documents[None], dim=-1)
    place = torch.arange(len(documents), device=table.device)
    table = torch.where(place == place[: len(queries), None], table - margin, table)
    return -(table / temperature).log_softmax(1).diagonal().mean()""",
        },
    ),
    RightAnswer(
        "encoded_upwards",
        "takes the shortest first, and undoes the order with an inverse permutation",
        {
            "many": """@torch.inference_mode()
def encode(model, sentences, batch_size):
    mode = model.training
    model.train(False)
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    order = lengths.argsort()
    parts = [model(*fill_up([sentences[i] for i in part])) for part in order.split(batch_size)]
    model.train(mode)
    vectors = torch.cat(parts)
    return vectors[order.argsort().to(vectors.device)]"""
        },
    ),
    RightAnswer(
        "searched_by_heaps",
        "keeps the best of each query in a Python list",
        {
            "find": """def search(queries, collection, k, block):
    unit = lambda x: x / x.norm(dim=-1, keepdim=True)
    best = [[] for _ in queries]
    for begin in range(0, len(collection), block):
        part = unit(queries) @ unit(collection[begin:][:block]).T
        for kept, row in zip(best, part.tolist()):
            kept += [(-score, begin + place) for place, score in enumerate(row)]
            kept.sort()
            del kept[k:]
    scores = torch.tensor([[-score for score, _ in kept] for kept in best], dtype=queries.dtype)
    indices = torch.tensor([[index for _, index in kept] for kept in best])
    return scores.to(queries.device), indices.to(queries.device)"""
        },
    ),
    RightAnswer(
        "searched_block_by_block_then_merged",
        "takes the best of each block by a stable sort, and merges these at the end",
        {
            "find": """def search(queries, collection, k, block):
    queries = queries / queries.norm(dim=1, keepdim=True)
    scores, indices = [], []
    for begin in range(0, collection.shape[0], block):
        rows = collection[begin : begin + block]
        found = queries @ (rows / rows.norm(dim=1, keepdim=True)).T
        order = (-found).argsort(dim=1, stable=True)[:, :k]
        scores.append(found.gather(1, order))
        indices.append(order + begin)
    scores, indices = torch.cat(scores, 1), torch.cat(indices, 1)
    order = torch.argsort(scores, dim=1, descending=True, stable=True)[:, :k]
    return scores.gather(1, order), indices.gather(1, order)"""
        },
    ),
    RightAnswer(
        "ranked_by_comparisons",
        "ranks by comparing all with all, correlates with corrcoef, sorts for the reciprocal rank",
        {
            "rank": """def ranks(values):
    less = (values[None] < values[:, None]).sum(1)
    same = (values[None] == values[:, None]).sum(1)
    return less.double() + (same.double() + 1) / 2""",
            "correlate": """def spearman(x, y):
    if len(x.unique()) == 1 or len(y.unique()) == 1:
        raise ValueError("nothing to rank")
    return float(torch.corrcoef(torch.stack([ranks(x), ranks(y)]))[0, 1])""",
            "reciprocal": """def mean_reciprocal_rank(scores, relevant):
    worth = []
    for row, right in zip(scores.tolist(), relevant.tolist()):
        order = sorted(zip(row, right), key=lambda pair: (-pair[0], pair[1]))
        places = [place for place, (_, is_right) in enumerate(order, 1) if is_right]
        wrong = [place - number for number, place in enumerate(places)]
        worth.append(1 / wrong[0] if wrong else 0.0)
    return sum(worth) / len(worth)""",
        },
    ),
    RightAnswer(
        "trained_on_cls",
        "pools by [CLS], in other batches at another rate",
        {
            "experiment": """def experiment(make_model, train):
    model = make_model(pool=cls_pool)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    for epoch in range(6):
        for first, second, scores in batches(random.Random(epoch).sample(train, len(train)), 24):
            optimizer.zero_grad()
            cosine_loss(model(*first), model(*second), scores).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return model"""
        },
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with negatives that it sorts itself, on drawn inputs",
        {
            "own-check": """def check_negatives(implementation):
    def own(row, right, k, margin):
        known = [score for score, is_right in zip(row, right) if is_right]
        if not known:
            return []
        wrong = [n for n in range(len(row)) if not right[n] and row[n] > -math.inf]
        wrong = [n for n in wrong if row[n] + margin <= min(known)]
        return sorted(wrong, key=lambda n: row[n], reverse=True)[:k]

    for number in range(120):
        Q, N = [(1, 1), (1, 6), (4, 3), (5, 8), (2, 9)][number % 5]
        dtype = (torch.float64, torch.float32)[number % 2]
        scores = torch.randint(-9, 10, (Q, N)).to(dtype) / 2
        if number % 3 == 0:  # of nearly equal scores
            scores = 1 + torch.randint(0, 4, (Q, N)).to(dtype) * (1e-12, 1e-6)[number % 2]
        relevant = torch.rand(Q, N) < 0.25
        scores[(torch.rand(Q, N) < 0.15) & ~relevant] = -math.inf
        scores, relevant = scores.to(device), relevant.to(device)
        leaf = scores.clone().requires_grad_(number % 4 == 0)
        margin = (0.0, 0.5, 1.5, 4.0)[number % 4] if number % 3 else 0.0
        before = relevant.clone()
        for k in (1, 3, 10)[number % 2 : 3 - number % 3]:
            numbers, found = implementation(leaf, relevant, k, margin)
            assert leaf.detach().equal(scores) and relevant.equal(before)
            assert (numbers.dtype, found.dtype) == (torch.int64, dtype)
            rows = [own(*row, k, margin) for row in zip(scores.tolist(), before.tolist())]
            assert numbers.tolist() == [row + [-1] * (k - len(row)) for row in rows]
            assert found.shape == (Q, k) and (found.isinf() == (numbers < 0)).all()
            for q, row in enumerate(rows):
                for place, n in enumerate(row):
                    assert found[q, place] == scores[q, n]
                    if leaf.requires_grad and place < 2:
                        slope = torch.autograd.grad(found[q, place], leaf, retain_graph=True)[0]
                        wanted = torch.zeros_like(leaf)
                        wanted[q, n] = 1
                        assert slope.equal(wanted)
    refused = []
    for k, margin in ((0, 1.0), (-2, 1.0), (3, -0.1)):
        try:
            implementation(scores, relevant, k, margin)
        except ValueError:
            refused.append(k)
    assert len(refused) == 3"""
        },
    ),
]
