"""Fresh wrong and right answers to the assignment on the parts of an encoder of today, written from the text that students read."""

from fresh import one_by_one

from course_tools.grading.assignments.mutants import RightAnswer

wrong = one_by_one(
    {
        "turn": "rotary-edges",
        "distance": "rotary-shift",
        "gate": "geglu-edges",
        "near": "mask-local",
        "contrast": "contrast-edges",
        "adapt": "lora-values",
        "fold": "lora-merge",
        "rank": "ndcg-edges",
    }
)

ANGLES = "    angles = positions[:, None, :, None] * base ** (-step / R)"
SINES = (
    "    cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)"
)
STEP = "    step = torch.arange(0, R, 2, device=vectors.device, dtype=torch.float64)"
TURN = [
    wrong(
        "rotate_base_in_float32",
        "makes a float32 tensor of the base, so that angles at large positions are off where the base is no float32",
        "numerics",
        "turn",
        "base ** (-step / R)",
        "torch.tensor(base, device=vectors.device) ** (-step / R)",
    ),
    wrong(
        "rotate_positions_in_float32",
        "makes floats of the positions, so that odd ones above 2^24 are rounded",
        "numerics",
        "turn",
        "positions[:, None, :, None] *",
        "positions.float()[:, None, :, None] *",
    ),
    wrong(
        "rotate_sines_of_a_float32_remainder",
        "takes the float64 angle modulo 2 pi, but its sine and cosine in float32",
        "numerics",
        "turn",
        SINES,
        "    angles = (angles % (2 * math.pi)).float()\n" + SINES,
    ),
    wrong(
        "rotate_leaves_float64_as_default",
        "sets the default dtype to float64 for the angles and never sets it back",
        "state",
        "turn",
        STEP,
        "    torch.set_default_dtype(torch.float64)\n    step = torch.arange(0, R, 2, device=vectors.device)",
    ),
    wrong(
        "rotate_remembers_angles_whatever_the_base",
        "remembers the angles of the positions and R, and returns them for another base too",
        "state",
        "turn",
        ANGLES,
        '    seen = rotate.__dict__.setdefault("seen", {})\n    key = (str(positions.tolist()), R, vectors.device)\n    if key not in seen:\n        seen[key] = positions[:, None, :, None] * base ** (-step / R)\n    angles = seen[key]',
    ),
    wrong(
        "rotate_still_features_without_gradient",
        "no gradient reaches the features that are not turned",
        "gradient",
        "turn",
        "vectors[..., R:]]",
        "vectors[..., R:].detach()]",
    ),
    wrong(
        "rotate_table_ends_at_a_power_of_two",
        "positions above 2^20 are turned as 2^20 is",
        "hard-wired",
        "turn",
        "positions[:, None, :, None] *",
        "positions.clamp(max=2**20)[:, None, :, None] *",
    ),
    wrong(
        "rotate_complex_view_of_strided_features",
        "takes neighbours for complex numbers by a view, which fails for double vectors with odd D, and where features are not next to each other in memory",
        "legal input",
        "turn",
        "    a, b = vectors[..., 0:R:2], vectors[..., 1:R:2]  # [B, H, T, R/2]\n    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)",
        "    pairs = torch.view_as_complex(vectors[..., :R].double().unflatten(-1, (-1, 2)))\n    turn = torch.polar(torch.ones_like(angles), angles)\n    turned = torch.view_as_real(pairs * turn).to(vectors.dtype)",
    ),
]

DISTANCE = [
    wrong(
        "scores_count_on_from_the_first_distance",
        "reads one distance and counts the others from it, as if positions were consecutive",
        "legal input",
        "distance",
        "    angles = distance[..., None] *",
        "    T, S = distance.shape\n    rows, columns = (torch.arange(n, device=distance.device) for n in (T, S))\n    distance = distance[:1, :1] + columns - rows[:, None]\n    angles = distance[..., None] *",
    ),
    wrong(
        "scores_frequencies_in_float32",
        "rounds theta to float32 before it is multiplied by the distance",
        "numerics",
        "distance",
        "base ** (-step / D)",
        "(base ** (-step.float() / D)).double()",
    ),
    wrong(
        "scores_give_the_distances_a_dimension",
        "unsqueezes the argument in place, so that the caller's distances have another shape",
        "state",
        "distance",
        "distance[..., None] *",
        "distance.unsqueeze_(-1) *",
    ),
    wrong(
        "scores_of_doubles_added_in_float32",
        "adds up over the pairs in float32, also where vectors are float64",
        "numerics",
        "distance",
        ".sum(dim=-1)",
        ".sum(dim=-1, dtype=torch.float32).to(queries.dtype)",
    ),
]

OPEN = "    open = 0.5 * torch.erfc(-z / math.sqrt(2))"
GATE = [
    wrong(
        "geglu_shut_below_minus_ten",
        "a gate below -10 is shut for good",
        "cut-off",
        "gate",
        OPEN,
        "    open = (0.5 * torch.erfc(-z / math.sqrt(2))).masked_fill(z < -10, 0)",
    ),
    wrong(
        "geglu_tail_by_its_first_term",
        "below -10 takes the density divided by -z, which is 1% too much",
        "numerics",
        "gate",
        OPEN,
        "    far = torch.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * z.abs().clamp(min=1))\n    open = torch.where(z < -10, far, 0.5 * torch.erfc(-z / math.sqrt(2)))",
    ),
    wrong(
        "geglu_gate_by_its_logarithm",
        "takes the exponential of the logarithm of erfc, so that gradients are nan where erfc underflows",
        "gradient",
        "gate",
        OPEN,
        "    open = torch.exp(torch.erfc(-z / math.sqrt(2)).log() - math.log(2))",
    ),
    wrong(
        "geglu_gate_is_a_constant",
        "states get their gradient as if the share were a constant, while the share that is returned has its own",
        "gradient",
        "gate",
        "(z * open * v)",
        "(z * open.detach() * v)",
        "geglu-values",
    ),
    wrong(
        "geglu_root_of_two_in_float32",
        "divides by a float32 root of 2, also where all is float64",
        "numerics",
        "gate",
        "-z / math.sqrt(2)",
        "-z / torch.tensor(2.0, device=z.device).sqrt()",
    ),
    wrong(
        "geglu_product_before_the_gate",
        "multiplies z by v first, so that a large product is infinite and nan at a shut gate",
        "numerics",
        "gate",
        "(z * open * v)",
        "(z * v * open)",
    ),
    wrong(
        "geglu_open_stays_float32_for_half",
        "states have the dtype of half inputs, but the shares are float32",
        "legal input",
        "gate",
        OPEN + "\n    return (z * open * v) @ output.T, open",
        "    wide = z.to(torch.promote_types(z.dtype, torch.float32))\n    open = 0.5 * torch.erfc(-wide / math.sqrt(2))\n    return (wide * open * v).to(z.dtype) @ output.T, open",
    ),
]

FIRST = "    first = torch.ones_like(sentences, dtype=torch.bool)\n    first[:, 1:] = sentences[:, 1:] != sentences[:, :-1]"
SAME = "(sentences[:, :, None] == sentences[:, None]) & (sentences >= 0)[:, :, None]"
NEAR = [
    wrong(
        "local_mask_numbers_must_rise",
        "a sentence begins where the number rises, but numbers may fall from one sentence to the next",
        "legal input",
        "near",
        "sentences[:, 1:] != sentences[:, :-1]",
        "sentences[:, 1:] > sentences[:, :-1]",
    ),
    wrong(
        "local_mask_no_first_token_behind_padding",
        "the token behind padding is not taken for the first one of its sentence",
        "legal input",
        "near",
        "sentences[:, 1:] != sentences[:, :-1]",
        "(sentences[:, 1:] != sentences[:, :-1]) & (sentences[:, :-1] >= 0)",
    ),
    wrong(
        "local_mask_first_tokens_of_the_flat_batch",
        "compares the first token of a row with the last one of the row above, so that equal numbers hide it",
        "leak",
        "near",
        FIRST,
        "    flat = sentences.flatten()\n    first = torch.cat([torch.ones_like(flat[:1]) > 0, flat[1:] != flat[:-1]])\n    first = first.view(sentences.shape)",
    ),
    wrong(
        "local_mask_numbers_in_float32",
        "compares numbers as floats, so that two large ones are the same",
        "numerics",
        "near",
        "(sentences[:, :, None] == sentences[:, None])",
        "(sentences.float()[:, :, None] == sentences.float()[:, None])",
    ),
    wrong(
        "local_mask_numbers_the_padding_it_was_given",
        "writes a number of its own for each padding into the argument",
        "state",
        "near",
        FIRST,
        "    padding = sentences < 0\n    sentences[padding] = (-1 - place).expand_as(sentences)[padding]\n"
        + FIRST,
    ),
    wrong(
        "local_mask_padding_numbered_from_ten_thousand",
        "gives padding the numbers from 10000 on, which a sentence may have too",
        "hard-wired",
        "near",
        "    same = " + SAME,
        "    own = sentences.where(sentences >= 0, 10_000 + place)\n    same = own[:, :, None] == own[:, None]",
    ),
    wrong(
        "local_mask_none_means_512",
        "takes None for a reach of 512",
        "hard-wired",
        "near",
        "    if reach is not None:\n        same =",
        "    reach = 512 if reach is None else reach\n    same =",
    ),
    wrong(
        "local_mask_reach_at_least_one",
        "a token sees its neighbours also if the reach is 0",
        "cut-off",
        "near",
        "(apart <= reach)",
        "(apart <= max(reach, 1))",
    ),
]

HARDEST = "    hardest = cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)"
CONTRAST = [
    wrong(
        "info_nce_tiny_documents_stay_short",
        "normalizes documents by a function that divides by 1e-12 at least",
        "numerics",
        "contrast",
        "    documents = documents / documents.norm(dim=1, keepdim=True)",
        "    documents = torch.nn.functional.normalize(documents, dim=1)",
    ),
    wrong(
        "info_nce_hardest_by_probability",
        "looks for the hardest document among probabilities, which are all 0 at a low temperature",
        "numerics",
        "contrast",
        HARDEST,
        "    hardest = (cosines / temperature).softmax(dim=1).masked_fill(~wrong, -1).argmax(dim=1)",
    ),
    wrong(
        "info_nce_minus_thousand_for_infinity",
        "gives left-out documents a score of -1000, which matters at a temperature of 0.001",
        "hard-wired",
        "contrast",
        ".masked_fill(~wrong, -torch.inf).logsumexp(dim=1)",
        ".masked_fill(~wrong, -1000).logsumexp(dim=1)",
    ),
    wrong(
        "info_nce_hardest_above_minus_one",
        "hides other documents behind a cosine of -1, which a wrong one may have too",
        "cut-off",
        "contrast",
        HARDEST,
        "    hardest = cosines.masked_fill(~wrong, -1).argmax(dim=1)",
    ),
    wrong(
        "info_nce_lengths_of_documents_are_constants",
        "documents get a gradient as if their length did not depend on them",
        "gradient",
        "contrast",
        "documents.norm(dim=1, keepdim=True)",
        "documents.norm(dim=1, keepdim=True).detach()",
        "contrast-losses",
    ),
    wrong(
        "info_nce_unknown_if_nothing_is_wrong",
        "a query without wrong documents competes with those that nobody knows",
        "leak",
        "contrast",
        ".masked_fill(~wrong, -torch.inf).logsumexp(dim=1)",
        ".masked_fill(~torch.where(wrong.any(dim=1, keepdim=True), wrong, relation < 0), -torch.inf).logsumexp(dim=1)",
    ),
    wrong(
        "info_nce_hardest_by_topk",
        "of equal documents takes that which topk happens to put first",
        "cut-off",
        "contrast",
        HARDEST,
        "    hardest = cosines.masked_fill(~wrong, -torch.inf).topk(1, dim=1).indices[:, 0]",
    ),
    wrong(
        "info_nce_hardest_by_lot",
        "of equal documents draws one",
        "chance",
        "contrast",
        HARDEST,
        "    hardest = cosines.masked_fill(~wrong, -torch.inf)\n    hardest = (hardest == hardest.amax(dim=1, keepdim=True)).float()\n    hardest = torch.multinomial(hardest, 1)[:, 0]",
    ),
    wrong(
        "info_nce_temperature_at_least_a_thousandth",
        "takes 0.001 for lower temperatures",
        "hard-wired",
        "contrast",
        "    wrong, right = relation == 0, relation == 1",
        "    wrong, right = relation == 0, relation == 1\n    temperature = max(temperature, 1e-3)",
    ),
    wrong(
        "info_nce_loss_is_80_at_most",
        "cuts the exponent at 80, so that no loss is larger and none of them has a gradient there",
        "numerics",
        "contrast",
        "torch.nn.functional.softplus(against[:, None] - cosines / temperature)",
        "(against[:, None] - cosines / temperature).clamp(max=80).exp().log1p()",
    ),
]

MATRICES = (
    "    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)"
)
ADAPT = [
    wrong(
        "lora_alpha_zero_is_none",
        "takes an alpha of 0 for None",
        "cut-off",
        "adapt",
        "(rank if alpha is None else alpha)",
        "(alpha or rank)",
    ),
    wrong(
        "lora_up_matrix_of_none_stays",
        "a text without an adapter gets zeros for the one matrix, but the first adapter's other matrix, which may hold nan",
        "leak",
        "adapt",
        "up[chosen].masked_fill(none, 0)",
        "up[chosen]",
        "lora-gradients",
    ),
    wrong(
        "lora_freezes_the_callers_matrix",
        "sets requires_grad of the matrix to False for good",
        "state",
        "adapt",
        "weight.detach().T",
        "weight.requires_grad_(False).T",
        "lora-gradients",
    ),
    wrong(
        "lora_rank_at_most_the_width",
        "takes the smaller side of the matrix for the rank, which may be larger than D",
        "legal input",
        "adapt",
        "    rank = down.shape[1]",
        "    rank = min(down.shape[1:])",
    ),
    wrong(
        "lora_short_cut_for_a_batch_of_one_task",
        "where all texts ask for the same adapter indexes without a mask, so that all with -1 get the last one",
        "leak",
        "adapt",
        MATRICES,
        "    if len(adapter.unique()) == 1:\n        A, B = down[adapter], up[adapter]\n    else:\n        A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)",
    ),
    wrong(
        "lora_nan_is_zero_for_those_who_ask",
        "makes numbers of what is nan or infinite in adapters, also for texts that ask for them",
        "legal input",
        "adapt",
        MATRICES,
        "    down, up = down.nan_to_num(), up.nan_to_num()\n" + MATRICES,
    ),
    wrong(
        "lora_features_learn_from_the_frozen_part_only",
        "no gradient goes through the adapter to the text's features",
        "gradient",
        "adapt",
        "scale * hidden @",
        "scale * hidden.detach() @",
        "lora-gradients",
    ),
]

PRODUCT = '    product = torch.einsum("a,aer,ard->ed", shares, up, down)'
MERGED = "    return (weight + scale * product).to(weight.dtype).detach()"
FOLD = [
    wrong(
        "merge_rounds_behind_each_adapter",
        "adds one adapter at a time and rounds each sum to the dtype of the matrix",
        "numerics",
        "fold",
        PRODUCT + "\n" + MERGED,
        "    merged = weight\n    for g, u, d in zip(shares, up, down):\n        merged = (merged + scale * g * (u @ d)).to(weight.dtype)\n    return merged.detach()",
    ),
    wrong(
        "merge_nothing_returns_the_matrix",
        "returns the memory of the matrix itself if all shares are 0",
        "state",
        "fold",
        PRODUCT,
        "    if not shares.any():\n        return weight.detach()\n" + PRODUCT,
    ),
    wrong(
        "merge_adds_into_the_matrix_of_the_same_dtype",
        "adds in place to what is a copy only if adapters are more precise",
        "state",
        "fold",
        MERGED,
        "    merged = weight.detach().to(product.dtype)\n    merged += scale * product.detach()\n    return merged.to(weight.dtype)",
    ),
    wrong(
        "merge_rank_counts_all_adapters",
        "takes the ranks of all adapters together for r, which only an alpha and two adapters show",
        "legal input",
        "fold",
        "    rank = down.shape[1]",
        "    rank = down.shape[0] * down.shape[1]",
    ),
    wrong(
        "merge_rounds_the_shares",
        "rounds the shares to the dtype of the matrix first",
        "numerics",
        "fold",
        PRODUCT,
        "    shares = shares.to(weight.dtype).to(up.dtype)\n" + PRODUCT,
    ),
    wrong(
        "merge_trains_the_shares",
        "no gradient reaches the matrices, but one reaches the shares",
        "gradient",
        "fold",
        PRODUCT + "\n" + MERGED,
        '    product = torch.einsum("a,aer,ard->ed", shares, up.detach(), down.detach())\n    return (weight.detach() + scale * product).to(weight.dtype)',
    ),
]

SORTED = """    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]
    worst = earned.argsort(dim=1)  # the least relevant first
    ranked = scores.masked_fill(~found, -torch.inf).gather(1, worst)
    order = ranked.argsort(dim=1, descending=True, stable=True)
    earned = earned.gather(1, worst).gather(1, order)[:, :k]
    best = (2.0 ** gains.double() - 1).sort(dim=1, descending=True).values[:, :k]
    places = torch.arange(1, earned.shape[1] + 1, device=scores.device)
    discounts = 1 / (1 + places).double().log2()
"""
RANKED = "    ranked = scores.masked_fill(~found, -torch.inf).gather(1, worst)"
VALUE = "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)"
RANK = [
    wrong(
        "ndcg_gains_in_int64",
        "raises 2 to the gain as int64, which overflows at 64",
        "numerics",
        "rank",
        SORTED,
        SORTED.replace("2.0 ** gains.double()", "2 ** gains"),
    ),
    wrong(
        "ndcg_in_float32",
        "computes in float32, so that double scores get seven digits and a gain of 128 is infinite",
        "numerics",
        "rank",
        SORTED,
        SORTED.replace(".double()", ".float()"),
    ),
    wrong(
        "ndcg_scores_compared_in_float32",
        "double scores that differ by less than a float32 does are equal",
        "numerics",
        "rank",
        "scores.masked_fill(~found, -torch.inf)",
        "scores.float().masked_fill(~found, -torch.inf)",
    ),
    wrong(
        "ndcg_not_found_is_one_below_the_lowest",
        "puts what is not found at the lowest score minus 1, which is the lowest score where scores are large",
        "numerics",
        "rank",
        RANKED,
        "    below = scores.masked_fill(~found, torch.inf).amin(dim=1, keepdim=True) - 1\n    ranked = torch.where(found, scores, below).gather(1, worst)",
    ),
    wrong(
        "ndcg_not_found_has_score_minus_one",
        "takes scores for cosines and puts what is not found at -1, before lower scores",
        "hard-wired",
        "rank",
        "scores.masked_fill(~found, -torch.inf)",
        "scores.masked_fill(~found, -1)",
    ),
    wrong(
        "ndcg_no_more_places_than_found",
        "cuts k at the largest number of found documents, so that the best order is shorter too",
        "cut-off",
        "rank",
        "    worst = earned.argsort(dim=1)",
        "    k = min(k, int(found.sum(dim=1).max()))\n    worst = earned.argsort(dim=1)",
    ),
    wrong(
        "ndcg_nan_where_nothing_is_earned",
        "a query has nan also if its relevant documents are not found or stand behind place k",
        "cut-off",
        "rank",
        VALUE,
        "    value = (earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)\n    return value.masked_fill((earned == 0).all(dim=1), torch.nan).to(scores.dtype)",
        "ndcg-values",
    ),
    wrong(
        "ndcg_writes_into_the_scores",
        "writes minus infinity into the caller's scores of what is not found",
        "state",
        "rank",
        "scores.masked_fill(~found, -torch.inf)",
        "scores.detach().masked_fill_(~found, -torch.inf)",
    ),
    wrong(
        "ndcg_equal_scores_by_lot",
        "draws the order of documents with equal scores",
        "chance",
        "rank",
        "    worst = earned.argsort(dim=1)",
        "    worst = torch.rand(earned.shape, device=earned.device).argsort(dim=1)",
        "ndcg-values",
    ),
]

MUTANTS = [*TURN, *DISTANCE, *GATE, *NEAR, *CONTRAST, *ADAPT, *FOLD, *RANK]

RIGHT_ANSWERS = [
    RightAnswer(
        "plain_loops",
        "loops over pairs, rows, queries and texts, with Python numbers where no gradient is needed",
        {
            "turn": """def rotate(vectors, positions, base=10000.0, features=None):
    size = vectors.shape[-1] if features is None else features
    columns = list(vectors.unbind(dim=-1))
    places = positions.double().unsqueeze(1)
    for i in range(size // 2):
        angle = places * math.pow(base, -2 * i / size)
        cosine, sine = torch.cos(angle).to(vectors), torch.sin(angle).to(vectors)
        a, b = columns[2 * i], columns[2 * i + 1]
        columns[2 * i], columns[2 * i + 1] = a * cosine - b * sine, a * sine + b * cosine
    return torch.stack(columns, dim=-1)
""",
            "distance": """def scores_by_distance(queries, keys, distance, base=10000.0):
    size = queries.shape[-1]
    q, k = queries.double(), keys.double()
    total = torch.zeros(len(q), *distance.shape, dtype=torch.float64, device=q.device)
    for i in range(0, size, 2):
        angle = distance.double() * math.pow(base, -i / size)
        a, b = q[:, :, i : i + 1], q[:, :, i + 1 : i + 2]
        c, d = k[:, None, :, i], k[:, None, :, i + 1]
        total = total + (a * c + b * d) * angle.cos() - (a * d - b * c) * angle.sin()
    return total.to(queries.dtype)
""",
            "gate": """def geglu(hidden, weight, output):
    z = torch.nn.functional.linear(hidden, weight[::2])
    v = torch.nn.functional.linear(hidden, weight[1::2])
    share = torch.erfc(z * -math.sqrt(0.5)) / 2
    return torch.nn.functional.linear(v * (share * z), output), share
""",
            "near": """def local_mask(sentences, reach=None):
    B, T = sentences.shape
    mask = torch.eye(T, dtype=torch.bool, device=sentences.device).repeat(B, 1, 1)
    for b, row in enumerate(sentences.tolist()):
        start = 0
        while start < T:
            end = start + 1
            while end < T and row[end] == row[start]:
                end += 1
            for i in range(start, end if row[start] >= 0 else start):
                if reach is None or i == start:
                    mask[b, i, start:end] = True
                else:
                    mask[b, i, max(start, i - reach) : min(end, i + reach + 1)] = True
                    mask[b, i, start] = True
            start = end
    return mask
""",
            "contrast": """def info_nce(queries, documents, relation, temperature=0.05):
    losses = queries.new_zeros(len(queries))
    hardest = relation.new_full((len(queries),), -1)
    unit = documents / documents.norm(dim=1, keepdim=True)
    for b, query in enumerate(queries):
        cosines = (unit * (query / query.norm())).sum(dim=1)
        right, wrong = cosines[relation[b] == 1], cosines[relation[b] == 0]
        rows = torch.cat([right[:, None], wrong.expand(len(right), -1)], dim=1)
        losses[b] = -(rows / temperature).log_softmax(dim=1)[:, 0].mean()
        if len(wrong):
            hardest[b] = (relation[b] == 0).nonzero()[wrong.argmax(), 0]
    return losses, hardest
""",
            "adapt": """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    r = down.size(1)
    result = hidden @ weight.detach().t()
    if bias is not None:
        result = result + bias.detach()
    result = result.clone()
    for b, a in enumerate(adapter.tolist()):
        if a != -1:
            low = hidden[b] @ down[a].t()
            result[b] = result[b] + (1.0 if alpha is None else alpha / r) * (low @ up[a].t())
    return result
""",
            "fold": """@torch.no_grad()
def merge(weight, down, up, shares, alpha=None):
    r = down.size(1)
    if alpha is None:
        alpha = r
    total = weight.to(torch.float64, copy=True)
    for share, B, A in zip(shares.double(), up.double(), down.double()):
        total += alpha / r * share * (B @ A)
    return total.clone().to(weight.dtype)
""",
            "rank": """def ndcg(scores, found, gains, k=10):
    def dcg(order):
        return sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(order[:k]))

    values = []
    for row, seen, gain in zip(scores.tolist(), found.tolist(), gains.tolist()):
        ranking = sorted((-s, g) for s, f, g in zip(row, seen, gain) if f)
        best = dcg(sorted(gain, reverse=True))
        values.append(dcg([g for _, g in ranking]) / best if best > 0 else math.nan)
    return torch.tensor(values, dtype=scores.dtype, device=scores.device)
""",
        },
    ),
    RightAnswer(
        "complex_numbers_and_einsum",
        "pairs are complex numbers, products are einsums, a zero adapter stands behind the last one, and sorts follow each other",
        {
            "turn": """def rotate(vectors, positions, base=10000.0, features=None):
    R = features or vectors.size(-1)
    pairs = vectors[..., :R].double().reshape(*vectors.shape[:-1], R // 2, 2)
    pairs = torch.complex(pairs[..., 0], pairs[..., 1])
    theta = torch.pow(base, -torch.linspace(0, 1, R // 2 + 1, dtype=torch.float64, device=vectors.device)[:-1])
    angles = torch.einsum("bt,p->btp", positions.double(), theta)[:, None]
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    turned = torch.view_as_real(turned).reshape(*vectors.shape[:-1], R)
    return torch.cat((turned.to(vectors.dtype), vectors[..., R:]), -1)
""",
            "distance": """def scores_by_distance(queries, keys, distance, base=10000.0):
    D = queries.size(-1)
    q = torch.complex(queries[..., ::2].double(), queries[..., 1::2].double())
    k = torch.complex(keys[..., ::2].double(), keys[..., 1::2].double())
    theta = torch.tensor([base ** (-2 * i / D) for i in range(D // 2)], dtype=torch.float64, device=q.device)
    angles = distance.double()[:, :, None] * theta
    turn = torch.polar(torch.ones_like(angles), angles)
    return torch.einsum("btp,bsp,tsp->bts", q.conj(), k, turn).real.to(queries.dtype)
""",
            "gate": """def geglu(hidden, weight, output):
    both = weight.reshape(weight.shape[0] // 2, 2, weight.shape[1])
    z, v = torch.einsum("btd,fgd->gbtf", hidden, both)
    opened = torch.special.log_ndtr(z.double()).exp().to(z.dtype)
    return torch.einsum("btf,df->btd", z * opened * v, output), opened
""",
            "near": """def local_mask(sentences, reach=None):
    B, T = sentences.shape
    place = torch.arange(T, device=sentences.device).expand(B, T)
    begins = torch.cat([torch.ones_like(sentences[:, :1]), sentences.diff(dim=1)], dim=1) != 0
    begins = begins | (sentences == -1)  # padding is a sentence of its own
    start = place.where(begins, place.new_zeros(())).cummax(dim=1).values if T else place
    mask = start.unsqueeze(2) == start.unsqueeze(1)
    if reach is None:
        return mask
    i, j = place.unsqueeze(2), place.unsqueeze(1)
    near = (i - j <= reach) & (j - i <= reach)
    return mask & (near | (i == start.unsqueeze(1)) | (j == start.unsqueeze(2)))
""",
            "contrast": """def info_nce(queries, documents, relation, temperature=0.05):
    q, d = queries.double(), documents.double()
    q = q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)
    d = d / torch.linalg.vector_norm(d, dim=-1, keepdim=True)
    cosines = torch.einsum("bd,nd->bn", q, d)
    s = cosines / temperature
    wrong, right = relation.eq(0), relation.eq(1)
    against = torch.logsumexp(torch.where(wrong, s, -math.inf), dim=1, keepdim=True)
    each = torch.logaddexp(s, against) - s
    losses = torch.where(right, each, 0.0).sum(dim=1) / right.sum(dim=1)
    reached = torch.where(wrong, cosines.detach(), -math.inf)
    top = reached == reached.max(dim=1, keepdim=True).values
    hardest = torch.where(wrong.any(dim=1), top.int().argmax(dim=1), -1)
    return losses.to(queries.dtype), hardest
""",
            "adapt": """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    A, r, D = down.shape
    alpha = r if alpha is None else alpha
    down = torch.cat([down, down.new_zeros(1, r, D)])[adapter]  # -1 is the last one
    up = torch.cat([up, up.new_zeros(1, up.shape[1], r)])[adapter]
    frozen = torch.nn.functional.linear(hidden, weight.detach(), None if bias is None else bias.detach())
    return frozen + torch.einsum("btd,brd,ber->bte", hidden, down, up) * (alpha / r)
""",
            "fold": """def merge(weight, down, up, shares, alpha=None):
    with torch.no_grad():
        A, r, D = down.shape
        scale = 1.0 if alpha is None else alpha / r
        wide = (up * shares.reshape(-1, 1, 1)).transpose(0, 1).reshape(-1, A * r)
        return (weight + wide @ down.reshape(A * r, D) * scale).to(weight.dtype)
""",
            "rank": """def ndcg(scores, found, gains, k=10):
    gain = torch.exp2(gains.double()) - 1
    order = gain.argsort(dim=1, stable=True)
    for key, down in ((scores.detach().masked_fill(~found, 0), True), (found.int(), True)):
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True, descending=down))
    N = gain.shape[1]
    discount = 1 / torch.log2(torch.arange(2, N + 2, device=scores.device, dtype=torch.float64))
    discount = discount * (torch.arange(N, device=scores.device) < k)
    dcg = (gain * found).gather(1, order) @ discount
    best = gain.sort(dim=1, descending=True)[0] @ discount
    return torch.where(best > 0, dcg / best, torch.nan).to(scores.dtype)
""",
        },
    ),
    RightAnswer(
        "all_pairs_compared",
        "matrices of rotation, tables of all pairs instead of sorts and loops, and groups of texts with one adapter",
        {
            "turn": """def rotate(vectors, positions, base=10000.0, features=None):
    D = vectors.shape[-1]
    R = D if features is None else features
    i = torch.arange(R // 2, device=vectors.device, dtype=torch.float64)
    angles = positions.unsqueeze(-1) / torch.pow(base, 2 * i / R)
    cosine, sine = angles.cos(), angles.sin()
    matrix = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
    pairs = vectors.narrow(-1, 0, R).unflatten(-1, (R // 2, 2)).double()
    turned = torch.einsum("btpyx,bhtpx->bhtpy", matrix, pairs).flatten(-2).to(vectors.dtype)
    return turned if R == D else torch.cat([turned, vectors.narrow(-1, R, D - R)], dim=-1)
""",
            "distance": """def scores_by_distance(queries, keys, distance, base=10000.0):
    half = queries.shape[-1] // 2
    i = torch.arange(half, device=queries.device, dtype=torch.float64)
    angles = distance.unsqueeze(-1) / torch.pow(base, i / half)
    cosine, sine = angles.cos().to(queries.dtype), angles.sin().to(queries.dtype)
    a, b = queries.unflatten(-1, (half, 2)).unbind(-1)
    c, d = keys.unflatten(-1, (half, 2)).unbind(-1)
    c, d = c.unsqueeze(1), d.unsqueeze(1)
    turned = torch.stack([c * cosine - d * sine, c * sine + d * cosine], -1)  # [B, T, S, D/2, 2]
    return (torch.stack([a, b], -1).unsqueeze(2) * turned).sum(dim=(-1, -2))
""",
            "gate": """def geglu(hidden, weight, output):
    mixed = (hidden @ weight.mT).unflatten(-1, (-1, 2))
    z, v = mixed[..., 0], mixed[..., 1]
    half = hidden.dtype in (torch.float16, torch.bfloat16)
    wide = z.float() if half else z
    opened = torch.special.erfc(wide.neg() / 2**0.5).mul(0.5)
    return (wide * opened * v).to(z.dtype) @ output.mT, opened.to(z.dtype)
""",
            "near": """def local_mask(sentences, reach=None):
    T = sentences.shape[1]
    same = sentences.unsqueeze(-1).eq(sentences.unsqueeze(-2)) & sentences.ne(-1).unsqueeze(-1)
    itself = torch.eye(T, dtype=torch.bool, device=sentences.device)
    if reach is not None:
        first = ~same.tril(-1).any(dim=2)  # nobody before it
        band = torch.ones_like(itself).triu(-reach).tril(reach)
        same = same & (band | first.unsqueeze(1) | first.unsqueeze(2))
    return same | itself
""",
            "contrast": """def info_nce(queries, documents, relation, temperature=0.05):
    q, d = queries.double(), documents.double()
    q = (q / q.norm(dim=1, keepdim=True)).to(queries.dtype)
    d = (d / d.norm(dim=1, keepdim=True)).to(documents.dtype)
    cosines = q @ d.t()
    s = cosines / temperature
    table = s.unsqueeze(1) - s.unsqueeze(2)  # [B, N, N]: the other minus the right one
    table = table.masked_fill((relation != 0).unsqueeze(1), float("-inf"))
    table = torch.cat([torch.zeros_like(table[..., :1]), table], dim=2)
    right = (relation == 1).to(s.dtype)
    losses = (table.logsumexp(dim=2) * right).sum(dim=1) / right.sum(dim=1)
    hardest = cosines.masked_fill(relation != 0, float("-inf")).max(dim=1).indices
    hardest[~(relation == 0).any(dim=1)] = -1
    return losses, hardest
""",
            "adapt": """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    result = torch.einsum("btd,ed->bte", hidden, weight.detach())
    if bias is not None:
        result = result + bias.detach()
    factor = 1 if alpha is None else alpha / down.shape[1]
    for task in range(len(down)):
        who = torch.nonzero(adapter == task).flatten()
        if who.numel():
            product = hidden[who].matmul(down[task].t()).matmul(up[task].t())
            result = result.index_add(0, who, factor * product)
    return result
""",
            "fold": """def merge(weight, down, up, shares, alpha=None):
    factor = (down.shape[1] if alpha is None else alpha) / down.shape[1]
    total = torch.bmm(up.detach(), down.detach()).mul(shares.detach()[:, None, None]).sum(dim=0)
    return torch.add(weight.detach(), total, alpha=factor).to(weight.dtype)
""",
            "rank": """def ndcg(scores, found, gains, k=10):
    def places(before):
        return 1 + before.sum(dim=2)  # before[q, i, j]: j stands before i

    def dcg(place, counts):
        earned = (2.0**gains.double() - 1) / (1 + place.double()).log2()
        return earned.where(counts & (place <= k), 0.0).sum(dim=1)

    N = gains.shape[1]
    earlier = torch.ones(N, N, dtype=torch.bool, device=scores.device).tril(-1)
    s, g = scores.detach(), gains
    less, tie = g[:, None] < g[:, :, None], g[:, None] == g[:, :, None]
    before = (s[:, None] > s[:, :, None]) | ((s[:, None] == s[:, :, None]) & (less | (tie & earlier)))
    best = places((g[:, None] > g[:, :, None]) | (tie & earlier))
    value = dcg(places(before & found[:, None]), found) / dcg(best, torch.ones_like(found))
    return value.to(scores.dtype)
""",
        },
    ),
]
