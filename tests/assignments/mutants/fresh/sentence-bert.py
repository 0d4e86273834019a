"""Fresh wrong and right answers to the assignment on sentence-BERT, written from the text that students read."""

from fresh import Fresh, fresh

from course_tools.grading.assignments.mutants import RightAnswer

TOTAL = "    shares = mask if weights is None else weights"
KEPT = "hidden.masked_fill(~mask[:, :, None], 0)"
MEAN = "    return ((shares * kept).sum(dim=1) / shares.sum(dim=1)).to(hidden.dtype)"
CLS = """    first = mask.int().argmax(dim=1)  # [B]
    return hidden[torch.arange(len(hidden), device=hidden.device), first]"""
MAX = "    return hidden.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)"
POOLING = [
    *fresh(
        "numerics",
        "pool-mean",
        "mean",
        (
            "mean_float32_for_float64",
            "adds up in float32 whatever the states are, float64 among them",
            "torch.promote_types(hidden.dtype, torch.float32)",
            "torch.float32",
        ),
        (
            "mean_number_plus_epsilon",
            "adds 1e-6 to the number of tokens",
            "/ shares.sum(dim=1)",
            "/ (shares.sum(dim=1) + 1e-6)",
        ),
        (
            "mean_padding_times_zero",
            "multiplies padding by 0, which leaves nan a nan",
            KEPT,
            "hidden * mask[:, :, None]",
        ),
        (
            "mean_nan_to_num",
            "makes every nan a 0, also where a real token has one",
            KEPT,
            "hidden.nan_to_num() * mask[:, :, None]",
        ),
        (
            "mean_half_only_for_float16",
            "adds float16 up in float32, but bfloat16 as it is",
            "torch.promote_types(hidden.dtype, torch.float32)",
            "torch.float32 if hidden.dtype == torch.float16 else hidden.dtype",
        ),
        (
            "mean_sum_comes_back_as_half",
            "turns the sum into the type of the states before it divides",
            MEAN,
            "    total = (shares * kept).sum(dim=1)\n    return total.to(hidden.dtype) / shares.sum(dim=1).to(hidden.dtype)",
        ),
    ),
    *fresh(
        "gradient",
        "pool-mean",
        "mean",
        (
            "mean_first_token_gets_no_gradient",
            "detaches [CLS]",
            TOTAL,
            "    hidden = torch.cat([hidden[:, :1].detach(), hidden[:, 1:]], dim=1)\n"
            + TOTAL,
        ),
    ),
    *fresh(
        "state",
        "pool-mean",
        "mean",
        (
            "mean_zeros_padding_in_place",
            "sets padding to 0 in the states that it is given",
            TOTAL,
            "    hidden[~mask] = 0\n" + TOTAL,
        ),
    ),
    *fresh(
        "hard-wired",
        "pool-mean",
        "mean",
        (
            "mean_padding_on_one_side",
            "takes the tokens from the first real one to the last, whatever the mask has between",
            TOTAL,
            "    count = mask.flip(1).int().cumsum(dim=1).flip(1) > 0\n    mask = (mask.int().cumsum(dim=1) > 0) & count\n"
            + TOTAL,
        ),
        (
            "mean_of_128_tokens",
            "looks at the first 128 positions alone",
            "    precise = ",
            "    hidden, mask = hidden[:, :128], mask[:, :128]\n    precise = ",
        ),
    ),
    *fresh(
        "hard-wired",
        "pool-first",
        "first-max",
        (
            "cls_as_the_first_row_has_it",
            "looks at the first row alone to know whether padding stands in front",
            CLS,
            "    if mask[0, 0]:\n        return hidden[:, 0]\n" + CLS,
        ),
    ),
    *fresh(
        "numerics",
        "pool-first",
        "first-max",
        (
            "cls_as_a_sum_with_nan",
            "multiplies by a row of zeros and a one, so nan in padding spreads",
            CLS,
            "    first = torch.nn.functional.one_hot(mask.int().argmax(dim=1), mask.shape[1])\n    return (hidden * first[:, :, None]).sum(dim=1)",
        ),
    ),
    *fresh(
        "gradient",
        "pool-first",
        "first-max",
        (
            "cls_detached",
            "gives the values of [CLS] without gradient",
            "    return hidden[torch.arange(len(hidden), device=hidden.device), first]",
            "    return hidden.detach()[torch.arange(len(hidden), device=hidden.device), first]",
        ),
    ),
    *fresh(
        "numerics",
        "pool-max",
        "first-max",
        (
            "max_padding_at_minus_ten_thousand",
            "fills padding with -1e4, which is larger than some states",
            "-torch.inf",
            "-1e4",
        ),
        (
            "max_padding_at_the_least_half",
            "fills padding with -65504, the least float16, also for float32",
            "-torch.inf",
            "-65504.0",
        ),
        (
            "max_padding_subtracted",
            "subtracts 6e4 from padding, so that nan stays and what is larger wins",
            MAX,
            "    return (hidden - (~mask[:, :, None]).to(hidden.dtype) * 6e4).amax(dim=1)",
        ),
    ),
    *fresh(
        "gradient",
        "pool-max",
        "first-max",
        (
            "max_detached",
            "gives the largest without gradient",
            "    return hidden.masked_fill(~mask[:, :, None], -torch.inf)",
            "    return hidden.detach().masked_fill(~mask[:, :, None], -torch.inf)",
        ),
    ),
    *fresh(
        "legal input",
        "pool-max",
        "first-max",
        (
            "max_squeezes_one_sentence",
            "squeezes, so that a batch of one sentence loses a dimension",
            MAX,
            MAX + ".squeeze(0)",
        ),
    ),
]
FEATURES = "    features = torch.cat([u, v, (u - v).abs(), u * v], dim=1)  # [B, 4 D]"
ENTROPY = "    return logits, torch.nn.functional.cross_entropy(logits, labels)"
COSINES = "    cosines = torch.nn.functional.cosine_similarity(u, v, dim=1)  # [B]"
NORMS = "    near, far = (anchor - positive).norm(dim=1), (anchor - negative).norm(dim=1)  # [B]"
HINGE = "    return torch.relu(near - far + margin).mean()"
LOGITS = "    logits = normalize(queries, dim=1) @ normalize(documents, dim=1).T / temperature  # [B, N]"
OWN = "    return torch.nn.functional.cross_entropy(logits, own)"
OBJECTIVES = [
    *fresh(
        "numerics",
        "objectives-classes",
        "classify",
        (
            "classify_log_of_softmax",
            "takes the logarithm of the probabilities, which may be 0",
            ENTROPY,
            "    chances = logits.softmax(dim=1)[torch.arange(len(labels), device=labels.device), labels.long()]\n    return logits, -chances.log().mean()",
        ),
        (
            "classify_log_with_epsilon",
            "adds 1e-7 before the logarithm",
            ENTROPY,
            "    chances = logits.softmax(dim=1)[torch.arange(len(labels), device=labels.device), labels.long()]\n    return logits, -(chances + 1e-7).log().mean()",
        ),
        (
            "classify_distance_as_a_root",
            "takes the root of the square plus 1e-8 for |u - v|",
            "(u - v).abs()",
            "((u - v) ** 2 + 1e-8).sqrt()",
        ),
        (
            "classify_in_float32",
            "computes logits in float32",
            "    logits = features @ weight.T",
            "    logits = (features.float() @ weight.float().T).to(u.dtype)",
        ),
    ),
    *fresh(
        "gradient",
        "objectives-classes",
        "classify",
        (
            "classify_root_without_gradient_at_0",
            "takes the root of the square for |u - v|, whose gradient is nan where u equals v",
            "(u - v).abs()",
            "((u - v) ** 2).sqrt()",
        ),
        (
            "classify_second_sentence_detached",
            "lets the gradient into the first sentence only",
            FEATURES,
            "    v = v.detach()\n" + FEATURES,
        ),
        (
            "classify_distance_detached",
            "detaches |u - v|",
            "(u - v).abs()",
            "(u - v).abs().detach()",
        ),
        (
            "classify_weight_detached",
            "lets no gradient into the weight",
            "weight.T",
            "weight.detach().T",
        ),
    ),
    *fresh(
        "legal input",
        "objectives-classes",
        "classify",
        (
            "classify_mean_over_labels",
            "takes the mean of the means of the labels",
            ENTROPY,
            "    each = torch.nn.functional.cross_entropy(logits, labels, reduction='none')\n    return logits, torch.stack([each[labels == l].mean() for l in labels.unique()]).mean()",
        ),
    ),
    *fresh(
        "numerics",
        "objectives-cosine",
        "regress",
        (
            "cosine_product_of_lengths_plus_epsilon",
            "adds 1e-6 to the product of the lengths, which is wrong for short vectors",
            COSINES,
            "    cosines = (u * v).sum(dim=1) / (u.norm(dim=1) * v.norm(dim=1) + 1e-6)",
        ),
        (
            "cosine_eps_for_short_vectors",
            "takes no length below 1e-4",
            "(u, v, dim=1)",
            "(u, v, dim=1, eps=1e-4)",
        ),
        (
            "cosine_in_float32",
            "computes cosines in float32",
            "(u, v, dim=1)",
            "(u.float(), v.float(), dim=1).to(u.dtype)",
        ),
        (
            "cosine_squares_overflow",
            "divides by the root of the product of the squares, which overflows",
            COSINES,
            "    cosines = (u * v).sum(dim=1) / ((u**2).sum(dim=1) ** 2 * (v**2).sum(dim=1) ** 2) ** 0.25",
        ),
    ),
    *fresh(
        "cut-off",
        "objectives-cosine",
        "regress",
        (
            "cosine_negative_ones_are_zero",
            "takes negative cosines as 0, since scores are not negative",
            "(cosines - scores)",
            "(cosines.clamp(min=0) - scores)",
        ),
        (
            "cosine_clamped_below_one",
            "clamps cosines to 0.999, so that equal vectors have no gradient and another loss",
            "(cosines - scores)",
            "(cosines.clamp(max=0.999) - scores)",
        ),
        (
            "cosine_huber",
            "takes a Huber loss, which is the square only up to 1",
            "    return (beyond**2).mean()",
            "    return 2 * torch.nn.functional.huber_loss(beyond, torch.zeros_like(beyond))",
        ),
        (
            "cosine_scores_clamped",
            "clamps scores to 0 and 1",
            "(cosines - scores)",
            "(cosines - scores.clamp(0, 1))",
        ),
    ),
    *fresh(
        "gradient",
        "objectives-cosine",
        "regress",
        (
            "cosine_lengths_detached",
            "detaches the lengths, so the gradient is that of an inner product",
            COSINES,
            "    cosines = (u * v).sum(dim=1) / (u.norm(dim=1) * v.norm(dim=1)).detach()",
        ),
        (
            "cosine_second_detached",
            "lets the gradient into the first sentence only",
            "(u, v, dim=1)",
            "(u, v.detach(), dim=1)",
        ),
    ),
    *fresh(
        "gradient",
        "objectives-triplet",
        "order",
        (
            "triplet_root_of_squares",
            "writes the length as a root, whose gradient is nan where anchor and positive are equal",
            "(anchor - positive).norm(dim=1), ",
            "((anchor - positive) ** 2).sum(dim=1).sqrt(), ",
        ),
        (
            "triplet_root_nan_for_the_negative",
            "writes the distance to the negative as a root, whose gradient is nan where both are equal",
            "(anchor - negative).norm(dim=1)",
            "((anchor - negative) ** 2).sum(dim=1).sqrt()",
        ),
        (
            "triplet_negative_detached",
            "lets no gradient push the negative away",
            "(anchor - negative)",
            "(anchor - negative.detach())",
        ),
        (
            "triplet_anchor_detached",
            "trains positive and negative, and not the anchor",
            NORMS,
            "    anchor = anchor.detach()\n" + NORMS,
        ),
        (
            "triplet_skips_equal_ones",
            "takes equal anchor and positive out, so the negative gets no gradient either",
            HINGE,
            "    lead = torch.where(near == 0, (near - far).detach(), near - far)\n    return torch.relu(lead + margin).mean()",
        ),
    ),
    *fresh(
        "numerics",
        "objectives-triplet",
        "order",
        (
            "triplet_pairwise_distance",
            "uses torch's pairwise_distance, which adds 1e-6 to each difference",
            NORMS,
            "    distance = torch.nn.functional.pairwise_distance\n    near, far = distance(anchor, positive), distance(anchor, negative)",
        ),
        (
            "triplet_root_plus_epsilon",
            "adds 1e-6 below the root, so equal vectors are 1e-3 apart",
            NORMS,
            "    near, far = (((anchor - other) ** 2).sum(dim=1).add(1e-6).sqrt() for other in (positive, negative))",
        ),
        (
            "triplet_by_inner_products",
            "takes distances from squares and inner products, which cancel for near vectors",
            NORMS,
            "    square = lambda x: (x * x).sum(dim=1)\n    near, far = ((square(anchor) + square(other) - 2 * (anchor * other).sum(dim=1)).clamp(min=1e-12).sqrt() for other in (positive, negative))",
        ),
        (
            "triplet_softplus",
            "takes a sharp softplus for the maximum",
            "torch.relu(near - far + margin)",
            "torch.nn.functional.softplus(near - far + margin, beta=1000)",
        ),
    ),
    *fresh(
        "cut-off",
        "objectives-triplet",
        "order",
        (
            "triplet_mean_over_active",
            "takes the mean over triplets that cost something",
            HINGE,
            "    each = torch.relu(near - far + margin)\n    return each.sum() / (each > 0).sum().clamp(min=1)",
        ),
        (
            "triplet_margin_zero_is_one",
            "takes margin 0 as no margin given, which is 1",
            HINGE,
            "    margin = margin or 1.0\n" + HINGE,
        ),
        (
            "triplet_negative_margin_is_zero",
            "takes no margin below 0",
            "+ margin",
            "+ max(margin, 0.0)",
        ),
    ),
    *fresh(
        "numerics",
        "objectives-batch",
        "contrast",
        (
            "batch_exponentials_overflow",
            "writes exponentials out, which overflow at logits of 100",
            OWN,
            "    powers = logits.exp()\n    return -(powers[own, own] / powers.sum(dim=1)).log().mean()",
        ),
        (
            "batch_log_with_epsilon",
            "adds 1e-8 before the logarithm of the probability",
            OWN,
            "    return -(logits.softmax(dim=1)[own, own] + 1e-8).log().mean()",
        ),
        (
            "batch_lengths_plus_epsilon",
            "adds 1e-6 to each length",
            LOGITS,
            "    unit = lambda x: x / (x.norm(dim=1, keepdim=True) + 1e-6)\n    logits = unit(queries) @ unit(documents).T / temperature",
        ),
        (
            "batch_logits_clamped",
            "clamps logits to -50 and 50",
            OWN,
            "    logits = logits.clamp(-50, 50)\n" + OWN,
        ),
        (
            "batch_in_float32",
            "computes logits in float32",
            OWN,
            "    logits = logits.float().to(logits.dtype)\n" + OWN,
        ),
    ),
    *fresh(
        "cut-off",
        "objectives-batch",
        "contrast",
        (
            "batch_temperature_at_least_two_hundredths",
            "takes no temperature below 0.02",
            ".T / temperature",
            ".T / max(temperature, 0.02)",
        ),
        (
            "batch_equal_documents_are_right_too",
            "takes a document that equals the own one out of the sum",
            OWN,
            "    same = (documents[:, None] == documents[: len(queries)]).all(dim=2).T\n    same[own, own] = False\n    logits = logits.masked_fill(same, -torch.inf)\n"
            + OWN,
        ),
    ),
    *fresh(
        "gradient",
        "objectives-batch",
        "contrast",
        (
            "batch_documents_detached",
            "trains the queries alone",
            "normalize(documents, dim=1)",
            "normalize(documents.detach(), dim=1)",
        ),
        (
            "batch_further_documents_detached",
            "lets no gradient into documents behind the queries' own",
            LOGITS,
            "    documents = torch.cat([documents[: len(queries)], documents[len(queries) :].detach()])\n"
            + LOGITS,
        ),
        (
            "batch_wrong_documents_detached",
            "lets no gradient into the wrong documents of a query",
            OWN,
            "    eye = torch.eye(*logits.shape, device=logits.device, dtype=torch.bool)\n    logits = torch.where(eye, logits, logits.detach())\n"
            + OWN,
        ),
    ),
    *fresh(
        "legal input",
        "objectives-batch",
        "contrast",
        (
            "batch_both_directions_where_square",
            "adds the other direction where there are as many documents as queries",
            OWN,
            "    if logits.shape[0] == logits.shape[1]:\n        return (torch.nn.functional.cross_entropy(logits, own) + torch.nn.functional.cross_entropy(logits.T, own)) / 2\n"
            + OWN,
        ),
        (
            "batch_one_query_costs_nothing",
            "gives 0 for a single query, as if it had no wrong documents",
            OWN,
            "    if len(queries) == 1:\n        return logits.sum() * 0\n" + OWN,
        ),
    ),
]
ORDER = "    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))"
FOUND = """            for place, vector in zip(places, vectors):
                found[place] = vector"""
STACK = "    return torch.stack(found)"
MANY = [
    *fresh(
        "legal input",
        "encode-order",
        "many",
        (
            "encode_places_by_index",
            "looks a sentence's place up by list.index, which finds the first of two equal ones",
            ORDER,
            "    order = [sentences.index(s) for s in sorted(sentences, key=len, reverse=True)]",
        ),
        (
            "encode_squeezes_the_last_batch",
            "squeezes vectors, which breaks a batch of one sentence",
            FOUND,
            "            for place, vector in zip(places, vectors.squeeze()):\n                found[place] = vector",
        ),
    ),
    *fresh(
        "hard-wired",
        "encode-order",
        "many",
        (
            "encode_at_most_64_tokens",
            "truncates sentences at 64 tokens",
            "fill_up([sentences[place] for",
            "fill_up([sentences[place][:64] for",
        ),
        (
            "encode_batches_of_at_most_32",
            "makes no batch of more than 32 sentences",
            "    was_training = model.training",
            "    batch_size = min(batch_size, 32)\n    was_training = model.training",
        ),
    ),
    *fresh(
        "numerics",
        "encode-order",
        "many",
        (
            "encode_returns_float32",
            "stores vectors as float32, whatever the model gives",
            "found[place] = vector",
            "found[place] = vector.float()",
        ),
    ),
    *fresh(
        "state",
        "encode-order",
        "many",
        (
            "encode_inference_tensors",
            "computes in inference mode, so that nothing can be trained on the vectors",
            "torch.no_grad()",
            "torch.inference_mode()",
        ),
        (
            "encode_freezes_the_model",
            "takes requires_grad from the model and never gives it back",
            "    model.eval()",
            "    model.eval()\n    model.requires_grad_(False)",
        ),
        (
            "encode_clears_gradients",
            "clears the gradients that a training has collected",
            "    model.eval()",
            "    model.eval()\n    model.zero_grad()",
        ),
        (
            "encode_seeds_the_world",
            "seeds torch, so that whatever is drawn after it is the same each time",
            "    model.eval()",
            "    torch.manual_seed(0)\n    model.eval()",
        ),
        (
            "encode_keeps_vectors_between_calls",
            "keeps vectors by model and sentences, and gives old ones after a training step",
            STACK,
            "    kept = encode.__dict__.setdefault('kept', {})\n    return kept.setdefault((id(model), str(sentences)), torch.stack(found))",
        ),
    ),
]
SORT = "        scores, order = scores.sort(dim=1, descending=True, stable=True)"
EMPTY = """    scores = queries.new_empty(len(queries), 0)
    indices = torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)"""
SEARCH = [
    *fresh(
        "cut-off",
        "search-blocks",
        "find",
        (
            "search_ties_by_rounding",
            "rounds scores to six digits before it sorts",
            SORT,
            "        order = scores.round(decimals=6).sort(dim=1, descending=True, stable=True).indices\n        scores = scores.gather(1, order)",
        ),
        (
            "search_begins_with_zero",
            "begins with hits of score 0, which beat negative cosines",
            EMPTY,
            EMPTY.replace(
                "new_empty(len(queries), 0)",
                "new_zeros(len(queries), min(k, len(collection)))",
            ).replace(
                "empty(len(queries), 0,", "zeros(len(queries), min(k, len(collection)),"
            ),
        ),
        (
            "search_begins_with_minus_one",
            "begins with hits of score -1, which tie with opposite vectors",
            EMPTY,
            EMPTY.replace(
                "new_empty(len(queries), 0)",
                "new_full((len(queries), min(k, len(collection))), -1.0)",
            ).replace(
                "empty(len(queries), 0,", "zeros(len(queries), min(k, len(collection)),"
            ),
        ),
        (
            "search_nearly_equal_by_index",
            "breaks ties by subtracting 1e-6 times the index",
            SORT,
            "        order = (scores - 1e-6 * indices).sort(dim=1, descending=True, stable=True).indices\n        scores = scores.gather(1, order)",
        ),
        (
            "search_by_topk",
            "uses topk, which promises no order of ties",
            SORT,
            "        scores, order = scores.topk(min(k, scores.shape[1]), dim=1)",
        ),
    ),
    *fresh(
        "legal input",
        "search-blocks",
        "find",
        (
            "search_k_beyond_collection_repeats",
            "fills hits up to k with the last one",
            "    return scores, indices",
            "    if scores.shape[1] < k:\n        more = k - scores.shape[1]\n        scores = torch.cat([scores, scores[:, -1:].expand(-1, more)], dim=1)\n        indices = torch.cat([indices, indices[:, -1:].expand(-1, more)], dim=1)\n    return scores, indices",
        ),
        (
            "search_one_query_loses_its_row",
            "squeezes the results of a single query",
            "    return scores, indices",
            "    return scores.squeeze(0), indices.squeeze(0)",
        ),
    ),
    *fresh(
        "numerics",
        "search-blocks",
        "find",
        (
            "search_short_vectors",
            "takes no length below 1e-3",
            "    queries = torch.nn.functional.normalize(queries, dim=1)",
            "    queries = torch.nn.functional.normalize(queries, dim=1, eps=1e-3)",
        ),
        (
            "search_collection_lengths_plus_epsilon",
            "adds 1e-6 to the lengths of the collection",
            "        rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)",
            "        rows = collection[begin : begin + block]\n        rows = rows / (rows.norm(dim=1, keepdim=True) + 1e-6)",
        ),
        (
            "search_scores_in_float32",
            "gives scores in float32",
            "    return scores, indices",
            "    return scores.float(), indices",
        ),
        (
            "search_compares_in_float32",
            "compares float64 scores as float32",
            SORT,
            "        order = scores.float().sort(dim=1, descending=True, stable=True).indices\n        scores = scores.gather(1, order)",
        ),
    ),
    *fresh(
        "state",
        "search-blocks",
        "find",
        (
            "search_normalises_the_collection_in_place",
            "writes unit vectors into the collection that it is given",
            "        rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)",
            "        rows = collection[begin : begin + block]\n        rows /= rows.norm(dim=1, keepdim=True)",
        ),
    ),
]
GROUPS = "    _, group, sizes = values.unique(return_inverse=True, return_counts=True)"
BOTH = "    r, s = ranks(x), ranks(y)"
CENTRE = "    r, s = r - r.mean(), s - s.mean()"
RAISE = "    if not r.any() or not s.any():"
BEFORE = "    before = ((scores >= best) & ~relevant).sum(dim=1)"
WORTH = "    worth = relevant.any(dim=1) / (before + 1).double()"
EVALUATE = [
    *fresh(
        "cut-off",
        "evaluate-ranks",
        "rank",
        (
            "ranks_ties_within_1e_6",
            "takes numbers that differ by less than 1e-6 as equal",
            GROUPS,
            GROUPS.replace("values.unique", "(values * 1e6).round().unique"),
        ),
        (
            "ranks_rounded_to_four_digits",
            "rounds cosines to four digits first",
            GROUPS,
            GROUPS.replace("values.unique", "values.round(decimals=4).unique"),
        ),
        (
            "ranks_in_float32",
            "turns numbers into float32, which makes ties of near float64 numbers",
            GROUPS,
            GROUPS.replace("values.unique", "values.float().unique"),
        ),
        (
            "ranks_by_isclose",
            "counts numbers as equal by torch.isclose",
            GROUPS,
            "    less = (values[None] < values[:, None]) & ~torch.isclose(values[None], values[:, None])\n    tied = torch.isclose(values[None], values[:, None])\n    return (less.sum(dim=1) + (tied.sum(dim=1) + 1) / 2).double()\n"
            + GROUPS,
        ),
    ),
    *fresh(
        "numerics",
        "evaluate-ranks",
        "rank",
        (
            "ranks_counted_in_the_type_of_values",
            "counts in the type of the values, which is not exact for many half-precision numbers",
            "sizes.cumsum(0).double()",
            "sizes.to(values.dtype).cumsum(0).double()",
        ),
        (
            "ranks_float_of_values",
            "returns float32",
            "    return (last - (sizes - 1) / 2)[group]",
            "    return (last - (sizes - 1) / 2)[group].float()",
        ),
    ),
    *fresh(
        "cut-off",
        "evaluate-spearman",
        "correlate",
        (
            "spearman_near_equal_raises",
            "raises where numbers differ by less than 1e-6",
            BOTH,
            BOTH
            + "\n    if x.max() - x.min() < 1e-6 or y.max() - y.min() < 1e-6:\n        raise ValueError('all equal')",
        ),
        (
            "spearman_standard_deviation_of_numbers",
            "asks the deviation of the numbers, which rounding makes positive for equal ones",
            RAISE,
            "    if not x.std() > 0 or not y.std() > 0:",
        ),
    ),
    *fresh(
        "numerics",
        "evaluate-spearman",
        "correlate",
        (
            "spearman_denominator_plus_epsilon",
            "adds 1e-4 to the denominator",
            "(r.norm() * s.norm())",
            "(r.norm() * s.norm() + 1e-4)",
        ),
        (
            "spearman_in_float32",
            "takes the correlation of float32 ranks without the mean, by sums that cancel",
            CENTRE
            + "\n"
            + RAISE
            + '\n        raise ValueError("all numbers are equal, so nothing is ranked")\n    return ((r * s).sum() / (r.norm() * s.norm())).item()',
            "    r, s, n = r.float(), s.float(), len(r)\n    top = n * (r * s).sum() - r.sum() * s.sum()\n    low = (n * (r * r).sum() - r.sum() ** 2) * (n * (s * s).sum() - s.sum() ** 2)\n    if low <= 0:\n        raise ValueError('all numbers are equal')\n    return (top / low.sqrt()).item()",
        ),
    ),
    *fresh(
        "legal input",
        "evaluate-spearman",
        "correlate",
        (
            "spearman_two_pairs_raise",
            "raises for fewer than three pairs",
            BOTH,
            "    if len(x) < 3:\n        raise ValueError('too few')\n" + BOTH,
        ),
        (
            "spearman_of_lists_on_other_types",
            "casts y to the type of x before it ranks it",
            BOTH,
            "    y = y.to(x.dtype)\n" + BOTH,
        ),
    ),
    *fresh(
        "cut-off",
        "evaluate-mrr",
        "reciprocal",
        (
            "mrr_nearly_equal_is_equal",
            "counts a wrong document that is lower by less than 1e-4 as standing before",
            "scores >= best",
            "scores >= best - 1e-4",
        ),
        (
            "mrr_at_ten",
            "gives nothing for a rank beyond 10",
            "    return worth.mean().item()",
            "    return (worth * (before < 10)).mean().item()",
        ),
        (
            "mrr_rounds_scores",
            "rounds scores to three digits",
            "    best = scores",
            "    scores = scores.round(decimals=3)\n    best = scores",
        ),
    ),
    *fresh(
        "numerics",
        "evaluate-mrr",
        "reciprocal",
        (
            "mrr_wrong_fill_for_low_scores",
            "fills with -1e4, above scores that are lower still",
            "-torch.inf",
            "-1e4",
        ),
        (
            "mrr_compares_in_float32",
            "compares scores as float32",
            "    best = scores",
            "    scores = scores.float()\n    best = scores",
        ),
        (
            "mrr_sum_in_float16",
            "takes the mean in float16",
            "(before + 1).double()",
            "(before + 1).half()",
        ),
    ),
    *fresh(
        "legal input",
        "evaluate-mrr",
        "reciprocal",
        (
            "mrr_right_ones_stand_before_too",
            "counts other right documents with the same score as standing before",
            BEFORE,
            "    before = (((scores >= best) & ~relevant).sum(dim=1) + ((scores == best) & relevant).sum(dim=1) - 1).clamp(min=0)",
        ),
        (
            "mrr_mean_over_answered_queries",
            "takes the mean over queries that have a right document",
            "    return worth.mean().item()",
            "    return (worth.sum() / max(1, int((worth > 0).sum()))).item()",
        ),
    ),
]
MODEL = "    model, chance = make_model(), random.Random(0)"
LOSS = "            loss = cosine_loss(model(*first), model(*second), scores)"
SAMPLE = "batches(chance.sample(train, len(train)), 16)"
OPTIMIZER = "    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)"
STEPS = (
    "    model.train()\n    for _ in range(3):\n        for first, second, scores in "
    + SAMPLE
    + ":\n"
    + LOSS
)
EXPERIMENT = [
    *fresh(
        "leak",
        "experiment-pairs",
        "experiment",
        (
            "experiment_makes_its_own_pairs",
            "trains on pairs with other adjectives, which it makes itself",
            MODEL,
            MODEL + "\n    train = train + pairs(192, 5, VALIDATION_ADJECTIVES)",
        ),
    ),
    *fresh(
        "hard-wired",
        "experiment-pairs",
        "experiment",
        (
            "experiment_with_the_visible_pairs",
            "makes the visible test's pairs itself, and never looks at its own",
            MODEL,
            "    train = pairs(192, 1, TRAINING_ADJECTIVES)\n" + MODEL,
        ),
        (
            "experiment_builds_its_own_model",
            "loads the encoder itself, whatever make_model gives",
            MODEL,
            "    model, chance = SentenceModel(load_encoder()[0], mean_pool).to(device), random.Random(0)",
        ),
    ),
    *fresh(
        "state",
        "experiment-pairs",
        "experiment",
        (
            "experiment_returns_its_first_model_again",
            "keeps the model of the first call for all later ones",
            MODEL,
            "    if hasattr(experiment, 'model'):\n        return experiment.model\n"
            + MODEL
            + "\n    experiment.model = model",
        ),
        (
            "experiment_shuffles_the_callers_list",
            "shuffles the list that it is given, in place",
            MODEL,
            MODEL + "\n    chance.shuffle(train)",
        ),
        (
            "experiment_goes_on_with_its_last_weights",
            "begins the second call with the weights of the first",
            MODEL,
            MODEL
            + "\n    if hasattr(experiment, 'model'):\n        model.load_state_dict(experiment.model.state_dict())\n    experiment.model = model",
        ),
    ),
    *fresh(
        "legal input",
        "experiment-pairs",
        "experiment",
        (
            "experiment_with_two_models",
            "sends the second sentence through a model of its own, which is trained, too",
            OPTIMIZER + "\n" + STEPS,
            ("    other = make_model()\n" + OPTIMIZER + "\n" + STEPS)
            .replace("model.parameters()", "[*model.parameters(), *other.parameters()]")
            .replace("model(*second)", "other(*second)"),
        ),
    ),
]
MUTANTS = [*POOLING, *OBJECTIVES, *MANY, *SEARCH, *EVALUATE, *EXPERIMENT]

RIGHT_ANSWERS = [
    RightAnswer(
        "right_in_plain_loops",
        "goes through sentences, pairs, triplets, numbers and queries one by one",
        {
            "mean": """def mean_pool(hidden, mask, weights=None):
    vectors = []
    for b, (states, real) in enumerate(zip(hidden, mask)):
        kept = states[real].to(torch.promote_types(hidden.dtype, torch.float32))
        each = kept.new_ones(len(kept)) if weights is None else weights[b][real].to(kept.dtype)
        vectors.append(sum(w * state for w, state in zip(each, kept)) / sum(each))
    return torch.stack(vectors).to(hidden.dtype)
""",
            "first-max": """def cls_pool(hidden, mask, last=False):
    place = -1 if last else 0
    return torch.stack([states[real][place] for states, real in zip(hidden, mask)])


def max_pool(hidden, mask, by_size=False):
    vectors = []
    for states, real in zip(hidden, mask):
        largest, least = states[real].amax(dim=0), states[real].amin(dim=0)
        if by_size:
            largest = torch.where(largest.abs() < least.abs(), least, largest)
        vectors.append(largest)
    return torch.stack(vectors)
""",
            "regress": """def cosine_loss(u, v, scores, slack=0.0):
    terms = []
    for a, b, score in zip(u, v, scores):
        a, b = a / torch.linalg.vector_norm(a), b / torch.linalg.vector_norm(b)
        gap = a.dot(b) - score
        if slack == 0:
            terms.append(gap.square())
        elif gap > 0:
            terms.append((gap - slack).clamp(min=0).square())
        else:
            terms.append((gap + slack).clamp(max=0).square())
    return sum(terms) / len(terms)
""",
            "contrast": """def in_batch_loss(queries, documents, temperature, margin=0.0):
    unit = [x / x.norm(dim=-1, keepdim=True) for x in (queries, documents)]
    losses = []
    for i, query in enumerate(unit[0]):
        cosines = unit[1] @ query
        logits = torch.cat([cosines[:i], cosines[i : i + 1] - margin, cosines[i + 1 :]]) / temperature
        losses.append(torch.logsumexp(logits, dim=0) - logits[i])
    return torch.stack(losses).mean()
""",
            "rank": """def ranks(values):
    values = values.tolist()
    found = []
    for value in values:
        less = sum(other < value for other in values)
        same = sum(other == value for other in values)
        found.append(less + (same + 1) / 2)
    return torch.tensor(found, dtype=torch.float64, device=device)
""",
            "reciprocal": """def mean_reciprocal_rank(scores, relevant):
    total = 0.0
    for row, right in zip(scores.tolist(), relevant.tolist()):
        good = [s for s, r in zip(row, right) if r]
        if good:
            total += 1 / (1 + sum(s >= max(good) and not r for s, r in zip(row, right)))
    return total / len(scores)
""",
        },
    ),
    RightAnswer(
        "right_by_other_functions_of_torch",
        "uses other functions of torch for the same formulas",
        {
            "mean": """def mean_pool(hidden, mask, weights=None):
    zero = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
    states = torch.where(mask.unsqueeze(-1), hidden, zero)
    states = states.double() if hidden.dtype == torch.float64 else states.float()
    if weights is None:
        return (states.sum(1) / mask.sum(1).unsqueeze(-1)).type_as(hidden)
    weights = torch.where(mask, weights, zero).type_as(states)
    return (torch.bmm(weights[:, None], states)[:, 0] / weights.sum(1)[:, None]).type_as(hidden)
""",
            "first-max": """def cls_pool(hidden, mask, last=False):
    place = (mask.long().cumsum(dim=1) == 0).sum(dim=1)
    if last:
        place = (mask * torch.arange(mask.shape[1], device=mask.device)).amax(dim=1)
    index = place[:, None, None].expand(-1, 1, hidden.shape[2])
    return hidden.gather(1, index).squeeze(1)


def max_pool(hidden, mask, by_size=False):
    lowest = torch.full_like(hidden, float("-inf"))
    if by_size:
        place = torch.where(mask[..., None], hidden.abs(), lowest).max(dim=1).indices
        return torch.take_along_dim(hidden, place.unsqueeze(1), dim=1).squeeze(1)
    return torch.where(mask[..., None], hidden, lowest).max(dim=1).values
""",
            "classify": """def classify(u, v, weight, labels):
    parts = weight.split(u.shape[1], dim=1)
    logits = sum(x @ part.T for x, part in zip((u, v, torch.abs(v - u), v * u), parts))
    chosen = logits.log_softmax(dim=-1).gather(1, labels.long().unsqueeze(1))
    return logits, chosen.mean().neg()
""",
            "order": """def triplet_loss(anchor, positive, negative, margin, swap=False):
    length = torch.linalg.vector_norm
    others = [anchor, positive] if swap else [anchor]
    far = torch.stack([length(x - negative, dim=-1) for x in others]).min(dim=0).values
    lead = length(anchor - positive, dim=-1) - far
    return (lead + margin).clamp(min=0).sum() / len(anchor)
""",
            "rank": """def ranks(values):
    ordered, order = values.sort()
    first = torch.searchsorted(ordered, values.contiguous())
    last = torch.searchsorted(ordered, values.contiguous(), right=True)
    return (first + last + 1).double() / 2
""",
            "correlate": """def spearman(x, y):
    if (x == x[0]).all() or (y == y[0]).all():
        raise ValueError("a side without any order")
    table = torch.corrcoef(torch.stack([ranks(x), ranks(y)]))
    return max(-1.0, min(1.0, float(table[0, 1])))
""",
        },
    ),
    RightAnswer(
        "right_with_other_defaults_and_helpers",
        "gives arguments default values, and splits the work among small functions",
        {
            "order": """def triplet_loss(anchor, positive, negative, margin=1.0, swap=False):
    def apart(x, y):
        return torch.sqrt(((x - y) ** 2).sum(1).clamp(min=torch.finfo(x.dtype).tiny))

    near, far = apart(anchor, positive), apart(anchor, negative)
    far = far.minimum(apart(positive, negative)) if swap else far
    return torch.nn.functional.relu(near + margin - far).mean()
""",
            "contrast": """def in_batch_loss(queries, documents, temperature=0.05, margin=0.0):
    unit = torch.nn.functional.normalize
    cosines = torch.einsum("bd,nd->bn", unit(queries), unit(documents))
    cosines.diagonal().sub_(margin)
    logits = cosines.div(temperature)
    return -logits.log_softmax(dim=1).diagonal().mean()
""",
            "many": """def encode(model, sentences, batch_size=32):
    lengths = torch.tensor([len(s) for s in sentences])
    order = torch.argsort(lengths, stable=True)
    mode = model.training
    model.train(False)
    try:
        with torch.no_grad():
            vectors = [
                model(*fill_up([sentences[i] for i in part.tolist()]))
                for part in order.split(batch_size)
            ]
    finally:
        model.train(mode)
    vectors = torch.cat(vectors)
    return vectors[order.argsort().to(vectors.device)]
""",
            "find": """def unit_rows(x):
    return x / x.norm(dim=1, keepdim=True)


def search(queries, collection, k=10, block=1024):
    queries, best = unit_rows(queries), None
    for number, rows in enumerate(collection.split(block)):
        table = queries @ unit_rows(rows).mT
        places = torch.arange(len(rows), device=table.device) + number * block
        places = places.repeat(len(queries), 1)
        if best is not None:
            table, places = torch.cat([best[0], table], 1), torch.cat([best[1], places], 1)
        order = torch.argsort(table, dim=1, descending=True, stable=True)[:, :k]
        best = table.gather(1, order), places.gather(1, order)
    return best
""",
        },
    ),
    RightAnswer(
        "right_by_contrast",
        "trains with another objective beside the cosine, and sorts hits in Python",
        {
            "find": """def search(queries, collection, k, block):
    queries = torch.nn.functional.normalize(queries, dim=1)
    kept = [[] for _ in queries]
    for begin in range(0, len(collection), block):
        rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)
        for hits, scores in zip(kept, queries @ rows.T):
            hits += [(-score, begin + i) for i, score in enumerate(scores.tolist())]
            hits.sort()
            del hits[k:]
    scores = [[-score for score, _ in hits] for hits in kept]
    indices = [[index for _, index in hits] for hits in kept]
    return queries.new_tensor(scores), torch.tensor(indices, device=queries.device)
""",
            "reciprocal": """def mean_reciprocal_rank(scores, relevant):
    lowest = torch.full_like(scores, -torch.inf)
    right = torch.where(relevant, scores, lowest).max(dim=1).values
    wrong = torch.where(relevant, lowest, scores)
    rank = 1 + (wrong >= right[:, None]).logical_and(~relevant).sum(dim=1)
    return float((relevant.any(dim=1) / rank.double()).sum()) / len(scores)
""",
            "experiment": """def experiment(make_model, train):
    model = make_model(True, 0, mean_pool)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        for first, second, scores in batches(random.Random(epoch).sample(train, len(train)), 24):
            optimizer.zero_grad()
            u, v = model(*first), model(*second)
            (cosine_loss(u, v, scores) + cosine_loss(v, u, scores)).backward()
            optimizer.step()
    return model.eval()
""",
        },
    ),
]

# Written on 28 November 2026, from the task's text alone, too.
MUTANTS += [
    Fresh(
        "mean_weight_total_at_least_one",
        "the sum of the weights is clamped to 1 from below, so small weights (0.1 each) give a shrunken mean",
        "legal input",
        "pool-mean",
        {"mean": ("shares.sum(dim=1)", "shares.sum(dim=1).clamp(min=1)")},
    ),
    Fresh(
        "mean_zeroes_given_weights",
        "to(float32) copies nothing where weights are float32 already, and masked_fill_ then writes zeros into the caller's weights",
        "state",
        "pool-mean",
        {
            "mean": (
                "masked_fill(~mask, 0)[:, :, None]",
                "masked_fill_(~mask, 0)[:, :, None]",
            )
        },
    ),
    Fresh(
        "mean_product_in_half",
        "weight times state is taken in float16 before it goes to float32: weight 100 times state 1000 is inf",
        "numerics",
        "pool-mean",
        {
            "mean": (
                "(shares * kept).sum(dim=1)",
                "(shares.to(hidden.dtype) * kept).to(precise).sum(dim=1)",
            )
        },
    ),
    Fresh(
        "last_is_first_plus_count",
        "last is the first real position plus the count less 1: right for padding in front or behind, wrong for padding between",
        "legal input",
        "pool-first",
        {
            "first-max": (
                "    if last:\n        hidden, mask = hidden.flip(1), mask.flip(1)\n    first = mask.int().argmax(dim=1)  # [B]\n",
                "    first = mask.int().argmax(dim=1)  # [B]\n    if last:\n        first = first + mask.sum(dim=1) - 1\n",
            )
        },
    ),
    Fresh(
        "max_fill_end_of_half",
        "padding is filled with -65504, the end of float16, so it wins over float32 states that are below it",
        "numerics",
        "pool-max",
        {"first-max": ("-torch.inf", "torch.finfo(torch.float16).min")},
    ),
    Fresh(
        "by_size_fills_zero",
        "sizes of padding are 0, not below: where all real states of a feature are 0, padding in front ties and its state is given back",
        "legal input",
        "pool-max",
        {
            "first-max": (
                "masked_fill(~mask[:, :, None], -1)",
                "masked_fill(~mask[:, :, None], 0)",
            )
        },
    ),
    Fresh(
        "by_size_compares_squares",
        "squares are compared, which are all inf above 256 in float16 and all 0 for tiny float32 states, so the first one wins",
        "numerics",
        "pool-max",
        {"first-max": ("hidden.detach().abs()", "hidden.detach().square()")},
    ),
    Fresh(
        "distance_as_root_of_square",
        "|u - v| is written as the root of the square: the gradient is nan where a feature of u equals that of v",
        "gradient",
        "objectives-classes",
        {"classify": ("(u - v).abs()", "((u - v) ** 2).sqrt()")},
    ),
    Fresh(
        "label_zero_ignored",
        "ignore_index=0, as for padding: pairs of label 0 are left out of the mean",
        "legal input",
        "objectives-classes",
        {
            "classify": (
                "cross_entropy(logits, labels)",
                "cross_entropy(logits, labels, ignore_index=0)",
            )
        },
    ),
    Fresh(
        "negative_scores_clamped",
        "scores below 0 are taken for 0, although cosines and scores may be negative",
        "hard-wired",
        "objectives-cosine",
        {
            "regress": (
                "(cosines - scores).abs()",
                "(cosines - scores.clamp(min=0)).abs()",
            )
        },
    ),
    Fresh(
        "cosine_root_of_product",
        "the two sums of squares are multiplied before the root: inf in float32 for lengths of 1e10, 0 (so nan) for lengths of 1e-12",
        "numerics",
        "objectives-cosine",
        {
            "regress": (
                "torch.nn.functional.cosine_similarity(u, v, dim=1)",
                "(u * v).sum(1) / ((u * u).sum(1) * (v * v).sum(1)).sqrt()",
            )
        },
    ),
    Fresh(
        "triplet_eps_in_root",
        "1e-8 is added under the root to save the gradient: equal vectors are 1e-4 apart, and small distances are wrong",
        "numerics",
        "objectives-triplet",
        {
            "order": (
                "    near, far = (anchor - positive).norm(dim=1), (anchor - negative).norm(dim=1)  # [B]\n    if swap:\n        far = torch.minimum(far, (positive - negative).norm(dim=1))\n",
                "    length = lambda x: (x.square().sum(dim=1) + 1e-8).sqrt()\n    near, far = length(anchor - positive), length(anchor - negative)\n    if swap:\n        far = torch.minimum(far, length(positive - negative))\n",
            )
        },
    ),
    Fresh(
        "triplet_cdist_diagonal",
        "the diagonal of cdist, which for more than 25 rows expands the square by a matrix product: distances of vectors far from 0 cancel",
        "numerics",
        "objectives-triplet",
        {
            "order": (
                "(anchor - positive).norm(dim=1), (anchor - negative).norm(dim=1)",
                "torch.cdist(anchor, positive).diagonal(), torch.cdist(anchor, negative).diagonal()",
            )
        },
    ),
    Fresh(
        "swap_detaches_positive",
        "in the swapped distance the positive is detached, so it gets no gradient from being too near to the negative",
        "gradient",
        "objectives-triplet",
        {
            "order": (
                "(positive - negative).norm(dim=1)",
                "(positive.detach() - negative).norm(dim=1)",
            )
        },
    ),
    Fresh(
        "log_of_softmax",
        "softmax first, then log: at temperature 0.01 the own document's probability underflows to 0 and the loss is inf",
        "numerics",
        "objectives-batch",
        {
            "contrast": (
                "torch.nn.functional.cross_entropy(logits, own)",
                "-logits.softmax(dim=1)[own, own].log().mean()",
            )
        },
    ),
    Fresh(
        "temperature_floor",
        "temperatures below 0.05 are raised to 0.05 'for stability'",
        "hard-wired",
        "objectives-batch",
        {
            "contrast": (
                "    normalize = torch.nn.functional.normalize\n",
                "    temperature = max(temperature, 0.05)\n    normalize = torch.nn.functional.normalize\n",
            )
        },
    ),
    Fresh(
        "lengths_are_constants",
        "vectors are divided by their detached lengths: right values, but the gradient lacks the part through the length",
        "gradient",
        "objectives-batch",
        {
            "contrast": (
                "normalize = torch.nn.functional.normalize",
                "normalize = lambda x, dim: x / x.norm(dim=dim, keepdim=True).detach()",
            )
        },
    ),
    Fresh(
        "batches_split_evenly",
        "the sentences are split into batches of nearly equal size (7 in threes: 2, 2, 3), so several batches have fewer than batch_size",
        "legal input",
        "encode-order",
        {
            "many": (
                "        for begin in range(0, len(order), batch_size):\n            places = order[begin : begin + batch_size]\n",
                "        count = -(-len(order) // batch_size)\n        for part in range(count):\n            places = order[part * len(order) // count : (part + 1) * len(order) // count]\n",
            )
        },
    ),
    Fresh(
        "frozen_weights_thawed",
        "switches requires_grad off for all parameters and on for all afterwards: parameters that were frozen are trainable now",
        "state",
        "encode-order",
        {
            "many": (
                "    model.eval()\n    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))\n    found = [None] * len(sentences)\n    with torch.no_grad():\n        for begin in range(0, len(order), batch_size):\n            places = order[begin : begin + batch_size]\n            vectors = model(*fill_up([sentences[place] for place in places]))\n            for place, vector in zip(places, vectors):\n                found[place] = vector\n    model.train(was_training)\n",
                "    model.eval().requires_grad_(False)\n    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))\n    found = [None] * len(sentences)\n    with torch.no_grad():\n        for begin in range(0, len(order), batch_size):\n            places = order[begin : begin + batch_size]\n            vectors = model(*fill_up([sentences[place] for place in places]))\n            for place, vector in zip(places, vectors):\n                found[place] = vector\n    model.train(was_training).requires_grad_(True)\n",
            )
        },
    ),
    Fresh(
        "place_by_list_index",
        "vectors are put back at sentences.index(sentence): of a sentence that occurs twice the second has no vector",
        "legal input",
        "encode-order",
        {
            "many": (
                "    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))\n    found = [None] * len(sentences)\n    with torch.no_grad():\n        for begin in range(0, len(order), batch_size):\n            places = order[begin : begin + batch_size]\n            vectors = model(*fill_up([sentences[place] for place in places]))\n            for place, vector in zip(places, vectors):\n                found[place] = vector\n",
                "    ordered = sorted(sentences, key=len, reverse=True)\n    found = [None] * len(sentences)\n    with torch.no_grad():\n        for begin in range(0, len(ordered), batch_size):\n            rows = ordered[begin : begin + batch_size]\n            for row, vector in zip(rows, model(*fill_up(rows))):\n                found[sentences.index(row)] = vector\n",
            )
        },
    ),
    Fresh(
        "placeholders_of_minus_one",
        "the best so far begin as K placeholders of score -1 and index -1: a vector opposite to the query never displaces them, so with K = N its index is -1",
        "legal input",
        "search-blocks",
        {
            "find": (
                "    scores = queries.new_empty(len(queries), 0)\n    indices = torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)\n",
                "    k = min(k, len(collection))\n    scores = queries.new_full((len(queries), k), -1.0)\n    indices = torch.full((len(queries), k), -1, device=queries.device)\n",
            )
        },
    ),
    Fresh(
        "tie_break_by_small_change",
        "ties are broken by sorting score - 1e-6 * index: in a collection of some hundreds scores that really differ by 1e-4 change places",
        "numerics",
        "search-blocks",
        {
            "find": (
                "        scores, order = scores.sort(dim=1, descending=True, stable=True)\n",
                "        order = (scores - 1e-6 * indices).argsort(dim=1, descending=True)\n        scores = scores.gather(1, order)\n",
            )
        },
    ),
    Fresh(
        "block_is_a_view",
        "a slice of the collection is divided in place, and a slice is a view: the caller's collection is normalized",
        "state",
        "search-blocks",
        {
            "find": (
                "rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)",
                "rows = collection[begin : begin + block]\n        rows /= rows.norm(dim=1, keepdim=True)",
            )
        },
    ),
    Fresh(
        "candidates_of_all_blocks",
        "the k best of every block are collected and compete once at the end: with blocks of at most k vectors the candidates are the full matrix",
        "legal input",
        "search-blocks",
        {
            "find": (
                "        scores = torch.cat([scores, queries @ rows.T], dim=1)  # [Q, K + block]\n        indices = torch.cat([indices, places.expand(len(queries), -1)], dim=1)\n        scores, order = scores.sort(dim=1, descending=True, stable=True)\n        scores, indices = scores[:, :k], indices.gather(1, order)[:, :k]\n    return scores, indices\n",
                "        best, order = (queries @ rows.T).sort(dim=1, descending=True, stable=True)\n        scores = torch.cat([scores, best[:, :k]], dim=1)\n        indices = torch.cat([indices, places[order[:, :k]]], dim=1)\n    scores, order = scores.sort(dim=1, descending=True, stable=True)\n    return scores[:, :k], indices.gather(1, order)[:, :k]\n",
            )
        },
    ),
    Fresh(
        "counts_in_type_of_values",
        "ranks are counted in the dtype of the values and made float64 last: for bfloat16 or float16 values ranks above 256 or 2048 are rounded",
        "numerics",
        "evaluate-ranks",
        {
            "rank": (
                "    last = sizes.cumsum(0).double()  # the last rank that each group takes up\n    return (last - (sizes - 1) / 2)[group]\n",
                "    last = sizes.cumsum(0).to(values.dtype)  # the last rank that each group takes up\n    return (last - (sizes - 1) / 2)[group].double()\n",
            )
        },
    ),
    Fresh(
        "ties_by_difference_zero",
        "a tie is where the difference of sorted neighbours is 0; inf - inf is nan, so equal infinite values do not share ranks",
        "legal input",
        "evaluate-ranks",
        {
            "rank": (
                "    _, group, sizes = values.unique(return_inverse=True, return_counts=True)\n    last = sizes.cumsum(0).double()  # the last rank that each group takes up\n    return (last - (sizes - 1) / 2)[group]\n",
                "    ordered, order = values.sort()\n    begins = torch.ones(len(values), dtype=torch.bool, device=values.device)\n    begins[1:] = ordered.diff() != 0\n    group = begins.cumsum(0) - 1\n    sizes = group.bincount()\n    last = sizes.cumsum(0).double()  # the last rank that each group takes up\n    found = torch.empty(len(values), dtype=torch.float64, device=values.device)\n    found[order] = (last - (sizes - 1) / 2)[group]\n    return found\n",
            )
        },
    ),
    Fresh(
        "nearly_equal_refused",
        "allclose decides whether all are equal: cosines that lie between 0.999995 and 1 but differ raise a ValueError",
        "numerics",
        "evaluate-spearman",
        {
            "correlate": (
                "if not r.any() or not s.any():",
                "if torch.allclose(x, x[0]) or torch.allclose(y, y[0]):",
            )
        },
    ),
    Fresh(
        "second_in_type_of_first",
        "y is cast to the dtype of x to stack them: with float16 cosines and float32 scores (or float32 and float64) scores that differ become ties",
        "legal input",
        "evaluate-spearman",
        {
            "correlate": (
                "r, s = ranks(x), ranks(y)",
                "r, s = (ranks(side) for side in torch.stack([x, y.to(x.dtype)]))",
            )
        },
    ),
    Fresh(
        "equal_right_ones_count",
        "all documents with at least the best right score are counted, so two right ones with equal scores at the top have rank 2",
        "legal input",
        "evaluate-mrr",
        {
            "reciprocal": (
                "    before = ((scores >= best) & ~relevant).sum(dim=1)\n    worth = relevant.any(dim=1) / (before + 1).double()\n",
                "    place = (scores >= best).sum(dim=1)\n    worth = relevant.any(dim=1) / place.double()\n",
            )
        },
    ),
    Fresh(
        "scores_taken_for_cosines",
        "wrong documents are filled with -1, as if no score were less: right documents with scores below -1 get too good a rank",
        "hard-wired",
        "evaluate-mrr",
        {"reciprocal": ("-torch.inf", "-1.0")},
    ),
    Fresh(
        "reciprocal_rank_at_ten",
        "as in MRR@10, a first right document behind rank 10 is worth 0",
        "cut-off",
        "evaluate-mrr",
        {
            "reciprocal": (
                "relevant.any(dim=1) / (before + 1).double()",
                "(relevant.any(dim=1) & (before < 10)) / (before + 1).double()",
            )
        },
    ),
    Fresh(
        "trains_on_validation_words",
        "makes as many pairs again with the validation adjectives and trains on them, too",
        "leak",
        "experiment-pairs",
        {
            "experiment": (
                "model, chance = make_model(), random.Random(0)",
                "model, chance = make_model(), random.Random(0)\n    train = train + pairs(len(train), 7, VALIDATION_ADJECTIVES)",
            )
        },
    ),
    Fresh(
        "model_kept_between_calls",
        "the model is kept at the function, and the next call trains it on",
        "state",
        "experiment-pairs",
        {
            "experiment": (
                "model, chance = make_model(), random.Random(0)",
                'if not hasattr(experiment, "model"):\n        experiment.model = make_model()\n    model, chance = experiment.model, random.Random(0)',
            )
        },
    ),
    Fresh(
        "make_model_ignored",
        "builds the model of the file itself and ignores the function that it is handed",
        "hard-wired",
        "experiment-pairs",
        {"experiment": ("make_model()", "SentenceModel(load_encoder()[0], mean_pool)")},
    ),
    Fresh(
        "any_error_will_do",
        "any exception passes for the ValueError, so an implementation whose topk raises a RuntimeError for k -1 is accepted",
        "cut-off",
        "check-refuses",
        {"own-check": ("except ValueError:", "except Exception:")},
    ),
    Fresh(
        "rounding_must_decide_so",
        "asks for 0.7, 0.5 and margin 0.2 and demands that 0.5 is no negative: refuses right ones that compare score + margin with the best",
        "numerics",
        "check-refuses",
        {
            "own-check": (
                "    leaf = scores[:1].clone().requires_grad_()\n",
                "    tenths = torch.tensor([[0.7, 0.5]], dtype=torch.float64, device=device)\n    assert implementation(tenths, first[:, :2], 1, 0.2)[0].tolist() == [[-1]]\n    leaf = scores[:1].clone().requires_grad_()\n",
            )
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "pool_by_products_and_sorts",
        "mean as a batched matrix product, first and last token by counts and bool indexing, farthest by a stable sort",
        {
            "mean": 'def mean_pool(hidden, mask, weights=None):\n    """The mean of the states of the real tokens."""\n    wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32\n    nothing = torch.zeros((), dtype=wide, device=hidden.device)\n    states = torch.where(mask.unsqueeze(-1), hidden.to(wide), nothing)\n    if weights is None:\n        row = mask.to(wide)\n    else:\n        row = torch.where(mask, weights.to(wide), nothing)\n    total = torch.bmm(row.unsqueeze(1), states).squeeze(1)\n    return (total / row.sum(dim=1).unsqueeze(1)).to(hidden.dtype)\n',
            "first-max": 'def cls_pool(hidden, mask, last=False):\n    """The state of the first real token, or of the last."""\n    if last:\n        seen = mask.flip(1).cumsum(dim=1).flip(1)\n    else:\n        seen = mask.cumsum(dim=1)\n    return hidden[mask & (seen == 1)]\n\n\ndef max_pool(hidden, mask, by_size=False):\n    """Of each feature the largest, or the one farthest from 0."""\n    real = mask.unsqueeze(-1).expand_as(hidden)\n    if not by_size:\n        lowest = torch.full_like(hidden, -math.inf)\n        return torch.where(real, hidden, lowest).amax(dim=1)\n    size = hidden.detach().abs()\n    size = torch.where(real, size, torch.full_like(size, -1))\n    order = size.sort(dim=1, descending=True, stable=True).indices\n    return torch.take_along_dim(hidden, order[:, :1], dim=1).squeeze(1)\n',
        },
    ),
    RightAnswer(
        "losses_by_log_softmax",
        "|u - v| as greater less smaller, log_softmax for cross_entropy, slack by clamping the difference, diagonal_scatter for the margin",
        {
            "classify": 'def classify(u, v, weight, labels):\n    """Logits of the relations of pairs, and the loss."""\n    distance = torch.maximum(u, v) - torch.minimum(u, v)\n    logits = torch.nn.functional.linear(torch.hstack((u, v, distance, u * v)), weight)\n    chosen = logits.log_softmax(dim=1).gather(1, labels.long().unsqueeze(1))\n    return logits, chosen.mean().neg()\n',
            "regress": 'def cosine_loss(u, v, scores, slack=0.0):\n    """The mean squared error of the cosines."""\n    unit = torch.nn.functional.normalize\n    difference = (unit(u, dim=1) * unit(v, dim=1)).sum(dim=1) - scores\n    return (difference - difference.clamp(-slack, slack)).square().mean()\n',
            "order": 'def triplet_loss(anchor, positive, negative, margin, swap=False):\n    """The mean over triplets."""\n    length = lambda x: torch.linalg.vector_norm(x, dim=-1)\n    rivals = [length(negative - anchor)]\n    if swap:\n        rivals.append(length(negative - positive))\n    lead = length(positive - anchor) - torch.stack(rivals).amin(dim=0) + margin\n    return torch.where(lead > 0, lead, torch.zeros_like(lead)).mean()\n',
            "contrast": 'def in_batch_loss(queries, documents, temperature, margin=0.0):\n    """The mean over queries."""\n    unit = torch.nn.functional.normalize\n    cosines = torch.einsum("bd,nd->bn", unit(queries, dim=1), unit(documents, dim=1))\n    lowered = cosines.diagonal_scatter(cosines.diagonal() - margin)\n    return -(lowered / temperature).log_softmax(dim=1).diagonal().mean()\n',
        },
    ),
    RightAnswer(
        "encode_and_search_by_split",
        "encode sorts with torch and scatters the vectors back; search keeps the k best of each block and merges two sorted lists at a time",
        {
            "many": 'def encode(model, sentences, batch_size):\n    """One vector for each sentence, in their order."""\n    mode = model.training\n    order = torch.tensor([len(sentence) for sentence in sentences]).argsort(stable=True).flip(0)\n    parts = []\n    model.eval()\n    try:\n        with torch.no_grad():\n            for places in order.split(batch_size):\n                rows = [sentences[place] for place in places.tolist()]\n                parts.append(model(*fill_up(rows)))\n            stacked = torch.cat(parts)\n            vectors = torch.empty_like(stacked)\n            vectors[order.to(stacked.device)] = stacked\n    finally:\n        model.train(mode)\n    return vectors\n',
            "find": 'def search(queries, collection, k, block):\n    """The k nearest vectors of each query, the nearest first."""\n    unit = torch.nn.functional.normalize\n    asked, best, begin = unit(queries, dim=1), None, 0\n    for part in collection.split(block):\n        table = asked @ unit(part, dim=1).T\n        places = table.argsort(dim=1, descending=True, stable=True)[:, :k]\n        values, numbers = table.gather(1, places), places + begin\n        begin += len(part)\n        if best is not None:\n            values = torch.cat([best[0], values], dim=1)\n            numbers = torch.cat([best[1], numbers], dim=1)\n            order = values.argsort(dim=1, descending=True, stable=True)[:, :k]\n            values, numbers = values.gather(1, order), numbers.gather(1, order)\n        best = values, numbers\n    return best\n',
        },
    ),
    RightAnswer(
        "evaluate_by_searchsorted",
        "ranks by two binary searches in the sorted values, spearman by inner products, reciprocal ranks in a loop over queries",
        {
            "rank": 'def ranks(values):\n    """Ranks from 1 upwards, ties shared."""\n    exact = values.detach().double().contiguous()\n    ordered = exact.sort().values\n    less = torch.searchsorted(ordered, exact)\n    not_more = torch.searchsorted(ordered, exact, right=True)\n    return (less + not_more + 1).double() / 2\n',
            "correlate": 'def spearman(x, y):\n    """Spearman\'s correlation of two lists of numbers."""\n    for side in (x, y):\n        if (side == side[0]).all():\n            raise ValueError("all numbers of one side are equal")\n    first, second = ((part - part.mean()).tolist() for part in (ranks(x), ranks(y)))\n    inner = lambda a, b: math.fsum(p * q for p, q in zip(a, b))\n    found = inner(first, second) / math.sqrt(inner(first, first) * inner(second, second))\n    return max(-1.0, min(1.0, found))\n',
            "reciprocal": 'def mean_reciprocal_rank(scores, relevant):\n    """How far up the first right document stands."""\n    worth = []\n    for row, right in zip(scores, relevant):\n        hits = row[right]\n        if len(hits) == 0:\n            worth.append(0.0)\n        else:\n            worth.append(1 / (1 + (row[~right] >= hits.max()).sum().item()))\n    return math.fsum(worth) / len(worth)\n',
        },
    ),
]

# Another reader's list.

MUTANTS += [
    # mean
    Fresh(
        "mean_total_at_least_one",
        "The divisor is kept at 1 at least, so that weights whose sum is below 1 give too short a vector.",
        "legal input",
        "pool-mean",
        {
            "mean": (
                "/ shares.sum(dim=1)).to(hidden.dtype)",
                "/ shares.sum(dim=1).clamp(min=1)).to(hidden.dtype)",
            )
        },
    ),
    Fresh(
        "mean_writes_into_weights",
        "Zeroes the weights of padding in place; .to(float32) of a float32 tensor is no copy, so the caller's weights change.",
        "state",
        "pool-mean",
        {
            "mean": (
                "shares.to(precise).masked_fill(~mask, 0)",
                "shares.to(precise).masked_fill_(~mask, 0)",
            )
        },
    ),
    Fresh(
        "mean_products_in_half",
        "Weight times state is computed in the type of the states: in float16, 300 times 300 is inf before it is added up.",
        "numerics",
        "pool-mean",
        {
            "mean": (
                "((shares * kept).sum(dim=1)",
                "((shares.to(hidden.dtype) * kept).to(precise).sum(dim=1)",
            )
        },
    ),
    # first-max
    Fresh(
        "by_size_padding_as_zero",
        "Padding has size 0: where all real states of a feature are 0 and padding stands in front, the state of padding wins the tie.",
        "cut-off",
        "pool-max",
        {
            "first-max": (
                "masked_fill(~mask[:, :, None], -1)",
                "masked_fill(~mask[:, :, None], 0)",
            )
        },
    ),
    Fresh(
        "by_size_of_squares",
        "Compares squares instead of sizes: they overflow to inf above 256 in float16, and become 0 for small states, so ties appear.",
        "numerics",
        "pool-max",
        {"first-max": ("hidden.detach().abs()", "hidden.detach().square()")},
    ),
    Fresh(
        "max_filled_with_float16_minimum",
        "Padding is filled with -65504, which is not below every float32 or float64 state.",
        "hard-wired",
        "pool-max",
        {"first-max": ("-torch.inf).amax(dim=1)", "-65504).amax(dim=1)")},
    ),
    # classify
    Fresh(
        "classify_root_of_square",
        "|u - v| as the root of the square: where a feature of u equals that of v, the gradient is nan.",
        "gradient",
        "objectives-classes",
        {"classify": ("(u - v).abs(), u * v]", "((u - v) ** 2).sqrt(), u * v]")},
    ),
    Fresh(
        "classify_labels_counted_in_batch",
        "The number of labels is taken from the batch, not from the weight: a batch without the last label stops.",
        "legal input",
        "objectives-classes",
        {
            "classify": (
                "return logits, torch.nn.functional.cross_entropy(logits, labels)",
                "right = torch.nn.functional.one_hot(labels.long())\n"
                "    return logits, -(right * logits.log_softmax(dim=1)).sum(dim=1).mean()",
            )
        },
    ),
    # regress
    Fresh(
        "cosine_root_of_product_of_squares",
        "One root of the product of both squared lengths: vectors of length 1e10 overflow in float32, and the cosine becomes 0.",
        "numerics",
        "objectives-cosine",
        {
            "regress": (
                "torch.nn.functional.cosine_similarity(u, v, dim=1)",
                "(u * v).sum(dim=1) / ((u * u).sum(dim=1) * (v * v).sum(dim=1)).sqrt()",
            )
        },
    ),
    Fresh(
        "cosine_size_as_root",
        "The size of the difference as the root of its square: a pair whose cosine is exactly its score has the gradient nan, not 0.",
        "gradient",
        "objectives-cosine",
        {"regress": ("(cosines - scores).abs()", "((cosines - scores) ** 2).sqrt()")},
    ),
    # order
    Fresh(
        "triplet_by_cdist",
        "Distances from torch.cdist, which above 25 rows takes |a|^2 - 2ap + |p|^2: near vectors far from 0 get wrong distances.",
        "numerics",
        "objectives-triplet",
        {
            "order": (
                "(anchor - positive).norm(dim=1), (anchor - negative).norm(dim=1)",
                "torch.cdist(anchor, positive).diagonal(), torch.cdist(anchor, negative).diagonal()",
            )
        },
    ),
    Fresh(
        "triplet_swap_root_without_slope",
        "With swap, the third length is a bare root: where anchor, positive and negative are equal, the gradient is nan.",
        "gradient",
        "objectives-triplet",
        {
            "order": (
                "(positive - negative).norm(dim=1)",
                "((positive - negative) ** 2).sum(dim=1).sqrt()",
            )
        },
    ),
    # contrast
    Fresh(
        "contrast_largest_of_the_batch",
        "Takes the largest logit of the whole batch away, not that of each row: at temperature 0.01 a row far below it underflows to inf.",
        "numerics",
        "objectives-batch",
        {
            "contrast": (
                "return torch.nn.functional.cross_entropy(logits, own)",
                "logits = logits - logits.max()\n"
                "    return (logits.exp().sum(dim=1).log() - logits[own, own]).mean()",
            )
        },
    ),
    Fresh(
        "contrast_temperature_at_least_a_hundredth",
        "The temperature of the logits is kept at 0.01 at least, as CLIP does; the text sets no such end.",
        "hard-wired",
        "objectives-batch",
        {
            "contrast": (
                "normalize(documents, dim=1).T / temperature",
                "normalize(documents, dim=1).T / max(temperature, 0.01)",
            )
        },
    ),
    # many
    Fresh(
        "encode_dtype_of_the_parameters",
        "The vectors get the type of the model's parameters, not that of the vectors that the model gives.",
        "hard-wired",
        "encode-order",
        {
            "many": (
                "return torch.stack(found)",
                "return torch.stack(found).to(next(model.parameters()).dtype)",
            )
        },
    ),
    Fresh(
        "encode_sets_a_seed",
        "Seeds torch's random numbers before it asks the model, so that whatever the caller draws afterwards repeats.",
        "chance",
        "encode-order",
        {
            "many": (
                "    model.eval()\n",
                "    torch.manual_seed(0)\n    model.eval()\n",
            )
        },
    ),
    Fresh(
        "encode_dropout_of_parts_stays",
        "Sets training to False on the outermost module alone: the dropout inside goes on.",
        "chance",
        "encode-order",
        {"many": ("    model.eval()\n", "    model.training = False\n")},
    ),
    # find
    Fresh(
        "search_normalizes_in_place",
        "A block is a view of the collection: dividing it in place changes the caller's vectors.",
        "state",
        "search-blocks",
        {
            "find": (
                "rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)",
                "rows = collection[begin : begin + block]\n"
                "        rows.div_(rows.norm(dim=1, keepdim=True).clamp(min=1e-12))",
            )
        },
    ),
    Fresh(
        "search_best_begin_at_minus_one",
        "The best so far begin as index 0 with score -1: a vector opposite to the query, whose cosine is -1, never gets in.",
        "cut-off",
        "search-blocks",
        {
            "find": (
                "    scores = queries.new_empty(len(queries), 0)\n"
                "    indices = torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)\n",
                "    kept = len(queries), min(k, len(collection))\n"
                "    scores = queries.new_full(kept, -1.0)\n"
                "    indices = torch.zeros(kept, dtype=torch.long, device=queries.device)\n",
            )
        },
    ),
    Fresh(
        "search_merges_at_the_end",
        "Keeps the best k of every block to the end: with k at least as large as a block, that is the full matrix, which must not exist.",
        "legal input",
        "search-blocks",
        {
            "find": (
                """        scores = torch.cat([scores, queries @ rows.T], dim=1)  # [Q, K + block]
        indices = torch.cat([indices, places.expand(len(queries), -1)], dim=1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        scores, indices = scores[:, :k], indices.gather(1, order)[:, :k]
    return scores, indices
""",
                """        best, order = (queries @ rows.T).sort(dim=1, descending=True, stable=True)
        scores = torch.cat([scores, best[:, :k]], dim=1)
        indices = torch.cat([indices, places[order[:, :k]]], dim=1)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return scores[:, :k], indices.gather(1, order)[:, :k]
""",
            )
        },
    ),
    # rank
    Fresh(
        "ranks_of_float32",
        "Turns the numbers into float32 first: float64 numbers that differ by less than that holds become ties.",
        "numerics",
        "evaluate-ranks",
        {"rank": ("values.unique(", "values.float().unique(")},
    ),
    # correlate
    Fresh(
        "spearman_nearly_equal_is_equal",
        "Raises a ValueError when numbers are close to one another (allclose), although they are different and can be ranked.",
        "cut-off",
        "evaluate-spearman",
        {
            "correlate": (
                "if not r.any() or not s.any():",
                "if any(torch.allclose(side, side[:1].expand_as(side)) for side in (x, y)):",
            )
        },
    ),
    # reciprocal
    Fresh(
        "mrr_wrong_ones_filled_with_minus_one",
        "Fills with -1, as if scores were cosines: right documents with scores below -1 are placed as if they had -1.",
        "hard-wired",
        "evaluate-mrr",
        {
            "reciprocal": (
                "masked_fill(~relevant, -torch.inf)",
                "masked_fill(~relevant, -1.0)",
            )
        },
    ),
    Fresh(
        "mrr_nearly_the_same_is_the_same",
        "Wrong documents whose score is up to 1e-6 below the right one's count as standing before it.",
        "cut-off",
        "evaluate-mrr",
        {"reciprocal": ("(scores >= best)", "(scores >= best - 1e-6)")},
    ),
    # experiment
    Fresh(
        "experiment_adds_validation_pairs",
        "Trains on pairs with the adjectives of validation, too, on which the test asks; the text says: on no others.",
        "leak",
        "experiment-pairs",
        {
            "experiment": (
                "chance.sample(train, len(train))",
                "chance.sample(train + pairs(64, 5, VALIDATION_ADJECTIVES), len(train) + 64)",
            )
        },
    ),
    Fresh(
        "experiment_draws_more_pairs",
        "Draws as many new pairs of the training words itself, with their true scores; the text says: on no others.",
        "leak",
        "experiment-pairs",
        {
            "experiment": (
                "chance.sample(train, len(train))",
                "chance.sample(train + pairs(len(train), 9, TRAINING_ADJECTIVES), 2 * len(train))",
            )
        },
    ),
    Fresh(
        "experiment_192_pairs",
        "Takes 192 pairs for each epoch, whatever the length of train: fewer stop it, and of more it leaves most out.",
        "hard-wired",
        "experiment-pairs",
        {
            "experiment": (
                "chance.sample(train, len(train))",
                "chance.sample(train, 192)",
            )
        },
    ),
    Fresh(
        "experiment_own_encoder",
        "Loads the trained encoder itself instead of asking the make_model that it is given.",
        "hard-wired",
        "experiment-pairs",
        {
            "experiment": (
                "model, chance = make_model(), random.Random(0)",
                "model = SentenceModel(load_encoder()[0], mean_pool)\n    chance = random.Random(0)",
            )
        },
    ),
    Fresh(
        "experiment_shuffles_the_callers_list_too",
        "Shuffles train itself, so the caller's list is in another order afterwards.",
        "state",
        "experiment-pairs",
        {
            "experiment": (
                "        for first, second, scores in batches(chance.sample(train, len(train)), 16):\n",
                "        chance.shuffle(train)\n        for first, second, scores in batches(train, 16):\n",
            )
        },
    ),
    Fresh(
        "experiment_goes_on_with_its_model",
        "Keeps the model between calls: a second call goes on training the first one's, and changes what that returned.",
        "state",
        "experiment-pairs",
        {
            "experiment": (
                "    model, chance = make_model(), random.Random(0)\n",
                '    if not hasattr(experiment, "model"):\n'
                "        experiment.model = make_model()\n"
                "    model, chance = experiment.model, random.Random(0)\n",
            )
        },
    ),
    # own-check
    Fresh(
        "check_no_k_above_n",
        "Never asks for more negatives than there are passages, which the text allows.",
        "legal input",
        "check-refuses",
        {"own-check": ("for k in (1, 2, 9):", "for k in (1, 2, 3):")},
    ),
    Fresh(
        "check_only_that_a_gradient_arrives",
        "Looks whether some gradient reaches the scores, not whether it is unchanged and reaches the chosen ones alone.",
        "gradient",
        "check-refuses",
        {
            "own-check": (
                "assert slope.tolist() == [[0.0, 5.0, 3.0, 0.0, 7.0, 0.0, 0.0]]",
                "assert slope.any()",
            )
        },
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "sums_masks_and_pieces",
        "Parts 1 and 2 otherwise: einsum over shares, boolean picks, rows one by one, the weight cut into four, log_softmax on a scattered diagonal.",
        {
            "mean": """def mean_pool(hidden, mask, weights=None):
    wide = torch.float64 if hidden.dtype == torch.float64 else torch.float32
    zero = torch.zeros((), dtype=wide, device=hidden.device)
    if weights is None:
        weights = torch.ones(mask.shape, dtype=wide, device=hidden.device)
    shares = torch.where(mask, weights.to(wide), zero)
    shares = shares / shares.sum(1, keepdim=True)
    states = torch.where(mask.unsqueeze(2), hidden.to(wide), zero)
    return torch.einsum("bt,btd->bd", shares, states).to(hidden.dtype)
""",
            "first-max": """def cls_pool(hidden, mask, last=False):
    counted = mask.cumsum(1)
    wanted = counted[:, -1:] if last else 1
    return hidden[mask & (counted == wanted)]


def max_pool(hidden, mask, by_size=False):
    vectors = []
    for states, real in zip(hidden, mask):
        kept = states[real]
        largest, least = kept.max(dim=0).values, kept.min(dim=0).values
        if by_size:
            largest = torch.where(largest >= -least, largest, least)
        vectors.append(largest)
    return torch.stack(vectors)
""",
            "classify": """def classify(u, v, weight, labels):
    for_u, for_v, for_distance, for_product = weight.chunk(4, dim=1)
    distance = torch.maximum(u, v) - torch.minimum(u, v)
    logits = u @ for_u.T + v @ for_v.T + distance @ for_distance.T + (u * v) @ for_product.T
    right = logits.gather(1, labels.long()[:, None])[:, 0]
    return logits, (logits.logsumexp(dim=1) - right).mean()
""",
            "regress": """def cosine_loss(u, v, scores, slack=0.0):
    unit_u, unit_v = (torch.nn.functional.normalize(side, dim=1) for side in (u, v))
    difference = torch.einsum("bd,bd->b", unit_u, unit_v) - scores
    above, below = (difference - slack).clamp(min=0), (-difference - slack).clamp(min=0)
    return (above.square() + below.square()).sum() / len(u)
""",
            "order": """def triplet_loss(anchor, positive, negative, margin, swap=False):
    length = lambda difference: torch.linalg.vector_norm(difference, dim=-1)
    loss = margin + length(positive - anchor)
    far = length(torch.stack([negative - anchor, negative - positive][: 1 + bool(swap)]))
    loss = loss - far.amin(dim=0)
    return loss.clamp(min=0).mean()
""",
            "contrast": """def in_batch_loss(queries, documents, temperature, margin=0.0):
    q = torch.nn.functional.normalize(queries, dim=-1)
    d = torch.nn.functional.normalize(documents, dim=-1)
    cosines = torch.einsum("bd,nd->bn", q, d)
    lowered = cosines.diagonal_scatter(cosines.diagonal() - margin)
    return -(lowered / temperature).log_softmax(dim=1).diagonal().mean()
""",
        },
    ),
    RightAnswer(
        "lists_heaps_and_searches",
        "Parts 3 to 5 otherwise: shortest first and put back by argsort, hits merged in Python with heapq, ranks by searchsorted, corrcoef, the MRR row by row.",
        {
            "many": """def encode(model, sentences, batch_size):
    modes = [(part, part.training) for part in model.modules()]
    order = torch.tensor([len(sentence) for sentence in sentences]).argsort()
    model.eval()
    try:
        with torch.no_grad():
            made = [
                model(*fill_up([sentences[place] for place in part.tolist()]))
                for part in order.split(batch_size)
            ]
    finally:
        for part, mode in modes:
            part.training = mode
    vectors = torch.cat(made).detach()
    return vectors[order.argsort().to(vectors.device)]
""",
            "find": """def search(queries, collection, k, block):
    import heapq

    unit = torch.nn.functional.normalize(queries, dim=1)
    best = [[] for _ in range(len(queries))]
    for begin in range(0, len(collection), block):
        rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)
        for place, row in enumerate((unit @ rows.T).tolist()):
            new = [(-score, begin + index) for index, score in enumerate(row)]
            best[place] = heapq.nsmallest(k, best[place] + new)
    shape = len(queries), min(k, len(collection))
    scores = [[-score for score, _ in row] for row in best]
    indices = [[index for _, index in row] for row in best]
    return (
        torch.tensor(scores, dtype=queries.dtype, device=queries.device).reshape(shape),
        torch.tensor(indices, dtype=torch.long, device=queries.device).reshape(shape),
    )
""",
            "rank": """def ranks(values):
    exact = values.detach().double().contiguous()
    in_order = exact.sort().values
    below = torch.searchsorted(in_order, exact)
    not_above = torch.searchsorted(in_order, exact, right=True)
    return (below + not_above + 1).double() / 2
""",
            "correlate": """def spearman(x, y):
    for side in (x, y):
        if side.min() == side.max():
            raise ValueError("all numbers of one side are equal")
    both = torch.stack([ranks(x), ranks(y)])
    return max(-1.0, min(1.0, torch.corrcoef(both)[0, 1].item()))
""",
            "reciprocal": """def mean_reciprocal_rank(scores, relevant):
    total = 0.0
    for row, right in zip(scores.tolist(), relevant.tolist()):
        # Of equal scores the wrong ones come first.
        listed = sorted(zip(row, right), key=lambda pair: (-pair[0], pair[1]))
        for place, (_, is_right) in enumerate(listed, start=1):
            if is_right:
                total += 1 / place
                break
    return total / len(scores)
""",
        },
    ),
    RightAnswer(
        "one_reference_for_the_check",
        "The experiment with Adam and the loss written out, and a check that compares with a slow reference on drawn rows whose differences are exact.",
        {
            "experiment": """def experiment(make_model, train):
    model = make_model()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    drawn = torch.Generator().manual_seed(1)
    for _ in range(3):
        for part in torch.randperm(len(train), generator=drawn).split(16):
            rows = [train[place] for place in part.tolist()]
            ((first, second, scores),) = batches(rows, len(rows))
            u, v = model(*first), model(*second)
            cosines = torch.nn.functional.cosine_similarity(u, v)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(cosines, scores).backward()
            optimizer.step()
    return model
""",
            "own-check": '''def check_negatives(implementation):
    """Raise an error if an implementation of `negatives` is wrong; return nothing if it is right."""
    inf = math.inf
    chance = random.Random(7)

    def reference(scores, relevant, k, margin):
        numbers, found = [], []
        for row, right in zip(scores, relevant):
            limits = [s for s, r in zip(row, right) if r]
            chosen = []
            if limits:
                chosen = [
                    n
                    for n, (s, r) in enumerate(zip(row, right))
                    if not r and s != -inf and s <= min(limits) - margin
                ]
            chosen = sorted(chosen, key=lambda n: (-row[n], n))[:k]
            numbers.append(chosen + [-1] * (k - len(chosen)))
            found.append([row[n] for n in chosen] + [-inf] * (k - len(chosen)))
        return numbers, found

    def compare(scores, relevant, k, margin, dtype):
        given = torch.tensor(scores, dtype=dtype, device=device)
        known = torch.tensor(relevant, dtype=torch.bool, device=device)
        copies = given.clone(), known.clone()
        numbers, found = implementation(given, known, k, margin)
        assert torch.equal(given, copies[0]) and torch.equal(known, copies[1])
        assert numbers.dtype == torch.int64 and found.dtype == dtype
        wanted = reference(scores, relevant, k, margin)
        assert numbers.tolist() == wanted[0]
        assert found.tolist() == wanted[1]

    def draw(Q, N, share):
        scores = [[chance.randrange(-24, 25) / 8 for _ in range(N)] for _ in range(Q)]
        relevant = [[chance.random() < share for _ in range(N)] for _ in range(Q)]
        for row, right in zip(scores, relevant):
            for n in range(N):
                if not right[n] and chance.random() < 0.15:
                    row[n] = -inf
        return scores, relevant

    for dtype, near in ((torch.float32, 2.0**-20), (torch.float64, 2.0**-40)):
        for Q, N, k, share in (
            (1, 1, 1, 0.5), (1, 1, 3, 1.0), (3, 1, 2, 0.5), (1, 6, 2, 0.3), (4, 6, 3, 0.3),
            (4, 6, 3, 0.3), (4, 6, 9, 0.3), (5, 9, 1, 0.2), (5, 9, 9, 0.2), (3, 12, 4, 0.5),
            (6, 4, 5, 0.4), (2, 40, 10, 0.05), (8, 8, 4, 0.2), (2, 8, 2, 0.0), (2, 8, 2, 1.0),
        ):
            for margin in (0.0, 0.125, 0.5, 2.0):
                compare(*draw(Q, N, share), k, margin, dtype)
        # A tie of many, before and behind others.
        ties = [[4.0] + [1.0, 0.0, 1.0, 2.0, -inf, 1.0, 0.0] * 14, [0.0] * 98 + [1.0]]
        known = [[True] + [False] * 98, [False] * 98 + [True]]
        for k in (5, 40, 120):
            compare(ties, known, k, 0.5, dtype)
        # Scores that are nearly equal, and scores of any size.
        rows = [
            [0.0, -1.0, near - 1, -1.0, -2e5, 9.0, -0.25],
            [-3e5, -4e5, 1.0, -inf, -5e5, -4e5, 7.0],
            [3e5, 2e5, 1.0, -inf, -2e5, 2e5, 4e5],
        ]
        known = [[n == 0 for n in range(7)]] * 3
        rows = [[float(torch.tensor(s, dtype=dtype)) for s in row] for row in rows]
        for k in (1, 3, 8):
            compare(rows, known, k, 0.5, dtype)

        # The gradient: unchanged, to the chosen ones, and to no others.
        leaf = torch.tensor(
            [[2.0, 1.0, 1.5, 0.5, 1.0, -inf, 1.75], [0.0, 1.0, 3.0, 0.25, 9.0, 0.5, 4.0]],
            dtype=dtype,
            device=device,
            requires_grad=True,
        )
        known = torch.tensor([[True] + [False] * 6, [False, False, True, True] + [False] * 3])
        numbers, found = implementation(leaf, known.to(device), 3, 0.25)
        assert numbers.tolist() == [[6, 2, 1], [0, -1, -1]]
        factors = torch.tensor([[3.0, 5.0, 7.0], [2.0, 11.0, 13.0]], dtype=dtype, device=device)
        (slope,) = torch.autograd.grad(found, leaf, factors)
        assert slope.tolist() == [[0.0, 7.0, 5.0, 0.0, 0.0, 0.0, 3.0], [2.0] + [0.0] * 6]

    scores = torch.tensor([[1.0, 0.5, 0.25]], device=device)
    known = torch.tensor([[True, False, False]], device=device)
    for k, margin in ((0, 0.5), (-1, 0.5), (-2, 0.0), (1, -0.5), (2, -0.125), (0, -0.5)):
        try:
            implementation(scores, known, k, margin)
        except ValueError:
            continue
        raise AssertionError("a ValueError is missing")
''',
        },
    ),
]
