"""Fresh wrong and right answers to the assignment on the parts of an encoder of today, written from the text that students read."""

from fresh import Fresh, one_by_one

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

# Written in November 2026 from the released notebook and the model answers alone.
MUTANTS += [
    # ----- turn
    Fresh(
        "rotate_positions_in_float32_2",
        "Converts the positions to float32 before they meet float64 numbers, so odd positions above 16.7 million are off by one.",
        "numerics",
        "rotary-edges",
        {
            "turn": (
                "positions[:, None, :, None] * base",
                "positions.float()[:, None, :, None] * base",
            )
        },
    ),
    Fresh(
        "rotate_cosines_in_float32",
        "Computes in float64, but rounds cosines and sines to float32 whatever the vectors are: float64 vectors are turned by rounded numbers, and bfloat16 ones come back as float32.",
        "numerics",
        "rotary-edges",
        {
            "turn": (
                "angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)",
                "angles.cos().float(), angles.sin().float()",
            )
        },
    ),
    Fresh(
        "rotate_remembers_speeds_without_base",
        "Keeps the angles per position by the numbers of features alone, so a second call with another base uses the first one's.",
        "state",
        "rotary-values",
        {
            "turn": '''_speeds = {}


def rotate(vectors, positions, base=10000.0, features=None):
    """Turn pairs of neighbouring features by angles that grow with the position."""
    R = vectors.shape[-1] if features is None else features
    key = vectors.shape[-1], features
    if key not in _speeds:
        step = torch.arange(0, R, 2, dtype=torch.float64)
        _speeds[key] = base ** (-step / R)
    angles = positions[:, None, :, None] * _speeds[key].to(vectors.device)  # [B, 1, T, R/2]
    cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
    a, b = vectors[..., 0:R:2], vectors[..., 1:R:2]  # [B, H, T, R/2]
    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)
    return torch.cat([turned.flatten(-2), vectors[..., R:]], dim=-1)
'''
        },
    ),
    Fresh(
        "rotate_rest_without_gradient",
        "Writes the turned features into a detached copy, so no gradient reaches the features that are not turned.",
        "gradient",
        "rotary-values",
        {
            "turn": '''def rotate(vectors, positions, base=10000.0, features=None):
    """Turn pairs of neighbouring features by angles that grow with the position."""
    R = vectors.shape[-1] if features is None else features
    step = torch.arange(0, R, 2, device=vectors.device, dtype=torch.float64)
    angles = positions[:, None, :, None] * base ** (-step / R)  # [B, 1, T, R/2]
    cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)
    a, b = vectors[..., 0:R:2], vectors[..., 1:R:2]  # [B, H, T, R/2]
    turned = vectors.detach().clone()
    turned[..., 0:R:2] = a * cosine - b * sine
    turned[..., 1:R:2] = a * sine + b * cosine
    return turned
'''
        },
    ),
    # ----- distance
    Fresh(
        "distance_angles_in_the_dtype_of_queries",
        "Rounds the angles to the queries' dtype before it takes cosines and sines, so in float32 a distance of millions is off.",
        "numerics",
        "rotary-shift",
        {
            "distance": (
                "angles.cos().to(queries.dtype), angles.sin().to(queries.dtype)",
                "angles.to(queries.dtype).cos(), angles.to(queries.dtype).sin()",
            )
        },
    ),
    Fresh(
        "distance_exponents_by_steps_of_a_fraction",
        "Counts exponents from 0 to 1 in steps of 2/D, which rounding makes one too many for 98, 196 or 206 features.",
        "numerics",
        "rotary-shift",
        {
            "distance": '''def scores_by_distance(queries, keys, distance, base=10000.0):
    """The products of turned queries and turned keys, from their distances."""
    D = queries.shape[-1]
    exponents = torch.arange(0, 1, 2 / D, device=queries.device, dtype=torch.float64)
    angles = distance[..., None] * base**-exponents  # [T, S, D/2]
    cosine, sine = angles.cos().to(queries.dtype), angles.sin().to(queries.dtype)
    a, b = queries[:, :, None, 0::2], queries[:, :, None, 1::2]  # [B, T, 1, D/2]
    c, d = keys[:, None, :, 0::2], keys[:, None, :, 1::2]  # [B, 1, S, D/2]
    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1)
'''
        },
    ),
    # ----- gate
    Fresh(
        "geglu_gates_without_gradient",
        "Returns the table of gates detached, although gradients reach all floats that go into a float result.",
        "gradient",
        "geglu-values",
        {
            "gate": (
                "    return (z * open * v) @ output.T, open",
                "    return (z * open * v) @ output.T, open.detach()",
            )
        },
    ),
    Fresh(
        "geglu_states_by_one_plus_erf",
        "Returns exact gates, but computes the states with 1 + erf(z), so what passes a nearly shut gate is 0.",
        "numerics",
        "geglu-edges",
        {
            "gate": (
                "    return (z * open * v) @ output.T, open",
                """    gelu = 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))
    return (gelu * v) @ output.T, open""",
            )
        },
    ),
    Fresh(
        "geglu_nan_gradient_of_open_gates",
        "Takes the scaled erfcx for negative z by torch.where, and erfcx of a large positive z is infinite: the gradient is nan there.",
        "gradient",
        "geglu-edges",
        {
            "gate": (
                "    open = 0.5 * torch.erfc(-z / math.sqrt(2))",
                """    tail = 0.5 * torch.special.erfcx(-z / math.sqrt(2)) * torch.exp(-z.square() / 2)
    open = torch.where(z < 0, tail, 1 - 0.5 * torch.erfc(z / math.sqrt(2)))""",
            )
        },
    ),
    # ----- near
    Fresh(
        "mask_first_by_roll",
        "Compares each token with the one before by roll, so in a row that is one sentence without padding no token is the first.",
        "legal input",
        "mask-local",
        {
            "near": (
                """    first = torch.ones_like(sentences, dtype=torch.bool)
    first[:, 1:] = sentences[:, 1:] != sentences[:, :-1]""",
                "    first = sentences != sentences.roll(1, dims=1)",
            )
        },
    ),
    Fresh(
        "mask_reach_zero_is_none",
        "Asks `if reach`, so reach 0 is a global layer.",
        "cut-off",
        "mask-local",
        {"near": ("    if reach is not None:", "    if reach:")},
    ),
    Fresh(
        "mask_numbers_below_the_width",
        "Goes through the numbers 0 to T - 1, so in a sentence with a larger number each token sees itself alone.",
        "hard-wired",
        "mask-local",
        {
            "near": '''def local_mask(sentences, reach=None):
    """Say which token may see which."""
    B, T = sentences.shape
    place = torch.arange(T, device=sentences.device)
    apart = (place[:, None] - place).abs()  # [T, T]
    mask = (apart == 0).repeat(B, 1, 1)
    for number in range(T):
        own = sentences == number  # [B, T]
        first = own & (own.cumsum(dim=1) == 1)
        both = own[:, :, None] & own[:, None]
        if reach is not None:
            both = both & ((apart <= reach) | first[:, :, None] | first[:, None])
        mask |= both
    return mask
'''
        },
    ),
    Fresh(
        "mask_renumbers_padding_in_place",
        "Gives each padding a number of its own in the tensor that was handed in, so the argument is changed.",
        "state",
        "mask-local",
        {
            "near": '''def local_mask(sentences, reach=None):
    """Say which token may see which."""
    padding = sentences < 0
    sentences[padding] = -torch.arange(1, 1 + int(padding.sum()), device=sentences.device)
    place = torch.arange(sentences.shape[1], device=sentences.device)
    apart = (place[:, None] - place).abs()  # [T, T]
    first = torch.ones_like(sentences, dtype=torch.bool)
    first[:, 1:] = sentences[:, 1:] != sentences[:, :-1]
    same = sentences[:, :, None] == sentences[:, None]
    if reach is not None:
        same = same & ((apart <= reach) | first[:, :, None] | first[:, None])
    return same
'''
        },
    ),
    # ----- contrast
    Fresh(
        "info_nce_cosine_of_short_vectors",
        "Takes torch's cosine_similarity, which counts a length below 1e-8 as 1e-8, so short vectors have no cosine.",
        "numerics",
        "contrast-losses",
        {
            "contrast": (
                """    queries = queries / queries.norm(dim=1, keepdim=True)
    documents = documents / documents.norm(dim=1, keepdim=True)
    cosines = queries @ documents.T  # [B, N]""",
                "    cosines = torch.nn.functional.cosine_similarity(queries[:, None], documents[None], dim=2)",
            )
        },
    ),
    Fresh(
        "info_nce_hardest_filled_with_minus_one",
        "Fills the other documents with the cosine -1, so where the only wrong document points the other way, one before it is the hardest.",
        "cut-off",
        "contrast-edges",
        {
            "contrast": (
                "masked_fill(~wrong, -torch.inf).argmax(dim=1)",
                "masked_fill(~wrong, -1.0).argmax(dim=1)",
            )
        },
    ),
    Fresh(
        "info_nce_masks_with_minus_ten_thousand",
        "Masks with -1e4 instead of -inf, which is larger than a cosine of -0.5 divided by a temperature of 1e-5.",
        "hard-wired",
        "contrast-edges",
        {
            "contrast": (
                "masked_fill(~wrong, -torch.inf).logsumexp(dim=1)",
                "masked_fill(~wrong, -1e4).logsumexp(dim=1)",
            )
        },
    ),
    Fresh(
        "info_nce_lengths_without_gradient",
        "Detaches the lengths, so the gradient has a part along the vector, which changes no cosine.",
        "gradient",
        "contrast-edges",
        {
            "contrast": (
                """    queries = queries / queries.norm(dim=1, keepdim=True)
    documents = documents / documents.norm(dim=1, keepdim=True)
""",
                """    queries = queries / queries.detach().norm(dim=1, keepdim=True)
    documents = documents / documents.detach().norm(dim=1, keepdim=True)
""",
            )
        },
    ),
    # ----- adapt
    Fresh(
        "lora_texts_without_adapter_times_zero",
        "Multiplies the first adapter by 0 for texts that ask for none, and 0 times its nan is nan.",
        "leak",
        "lora-values",
        {
            "adapt": (
                "A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)",
                "A, B = down[chosen] * ~none, up[chosen] * ~none",
            )
        },
    ),
    Fresh(
        "lora_where_on_the_result",
        "Chooses between both results by torch.where, so a nan in adapter 0 is in the gradient of texts that ask for none.",
        "leak",
        "lora-gradients",
        {
            "adapt": '''def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    """A frozen linear layer, with an adapter for each text."""
    rank = down.shape[1]
    scale = (rank if alpha is None else alpha) / rank
    chosen = adapter.clamp(min=0)
    frozen = hidden @ weight.detach().T  # [B, T, E]
    if bias is not None:
        frozen = frozen + bias.detach()
    change = scale * hidden @ down[chosen].transpose(1, 2) @ up[chosen].transpose(1, 2)
    return torch.where((adapter < 0)[:, None, None], frozen, frozen + change)
'''
        },
    ),
    Fresh(
        "lora_alpha_zero_is_none_2",
        "Writes `alpha or rank`, so alpha 0, which switches adapters off, counts as r.",
        "legal input",
        "lora-values",
        {
            "adapt": (
                "scale = (rank if alpha is None else alpha) / rank",
                "scale = (alpha or rank) / rank",
            )
        },
    ),
    Fresh(
        "lora_frozen_path_under_no_grad",
        "Computes the frozen layer under no_grad, so the features get the gradient of the adapter alone.",
        "gradient",
        "lora-gradients",
        {
            "adapt": (
                """    frozen = hidden @ weight.detach().T  # [B, T, E]
    if bias is not None:
        frozen = frozen + bias.detach()
""",
                """    with torch.no_grad():
        frozen = torch.nn.functional.linear(hidden, weight, bias)  # [B, T, E]
""",
            )
        },
    ),
    # ----- fold
    Fresh(
        "merge_rounds_twice",
        "Rounds the product to the dtype of W before it adds it, so a bfloat16 matrix is rounded twice.",
        "numerics",
        "lora-merge",
        {
            "fold": (
                "return (weight + scale * product).to(weight.dtype).detach()",
                "return (weight + (scale * product).to(weight.dtype)).detach()",
            )
        },
    ),
    Fresh(
        "merge_in_float32",
        "Computes everything in float32 so that a bfloat16 matrix is exact, and loses half the digits of float64 adapters.",
        "numerics",
        "lora-merge",
        {
            "fold": '''def merge(weight, down, up, shares, alpha=None):
    """Add adapters to a matrix."""
    rank = down.shape[1]
    scale = (rank if alpha is None else alpha) / rank
    product = torch.einsum("a,aer,ard->ed", shares.float(), up.float(), down.float())
    return (weight.float() + scale * product).to(weight.dtype).detach()
'''
        },
    ),
    Fresh(
        "merge_nothing_returns_the_matrix_itself",
        "Returns W detached if all shares are 0, which is not a tensor of its own: who changes it changes W.",
        "state",
        "lora-merge",
        {
            "fold": (
                "    rank = down.shape[1]\n",
                "    if not shares.any():\n        return weight.detach()\n    rank = down.shape[1]\n",
            )
        },
    ),
    # ----- rank
    Fresh(
        "ndcg_ties_by_a_small_price",
        "Takes 1e-9 from a score for each step of relevance, which turns scores round that are that near, and leaves ties of large scores.",
        "cut-off",
        "ndcg-edges",
        {
            "rank": '''def ndcg(scores, found, gains, k=10):
    """How good the ranking of each query is, from 0 to 1."""
    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]
    unlucky = scores.double() - 1e-9 * gains
    order = unlucky.masked_fill(~found, -torch.inf).argsort(dim=1, descending=True, stable=True)
    earned = earned.gather(1, order)[:, :k]
    best = (2.0 ** gains.double() - 1).sort(dim=1, descending=True).values[:, :k]
    places = torch.arange(1, earned.shape[1] + 1, device=scores.device)
    discounts = 1 / (1 + places).double().log2()
    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)
'''
        },
    ),
    Fresh(
        "ndcg_gains_as_integers",
        "Computes 2 to the power g in int64, which overflows from relevance 63 on.",
        "numerics",
        "ndcg-values",
        {
            "rank": '''def ndcg(scores, found, gains, k=10):
    """How good the ranking of each query is, from 0 to 1."""
    worth = (2**gains - 1).double()  # [Q, N]
    earned = worth.masked_fill(~found, 0)
    worst = gains.argsort(dim=1)  # the least relevant first
    ranked = scores.masked_fill(~found, -torch.inf).gather(1, worst)
    order = ranked.argsort(dim=1, descending=True, stable=True)
    earned = earned.gather(1, worst).gather(1, order)[:, :k]
    best = worth.sort(dim=1, descending=True).values[:, :k]
    places = torch.arange(1, earned.shape[1] + 1, device=scores.device)
    discounts = 1 / (1 + places).double().log2()
    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)
'''
        },
    ),
    Fresh(
        "ndcg_nan_if_nothing_relevant_is_found",
        "Gives nan, not 0, to a query whose relevant documents exist but were not found.",
        "cut-off",
        "ndcg-edges",
        {
            "rank": (
                "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)",
                """    value = (earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)
    nothing = ~(found & (gains > 0)).any(dim=1)
    return value.masked_fill(nothing, torch.nan).to(scores.dtype)""",
            )
        },
    ),
    Fresh(
        "ndcg_ten_places_at_most",
        "Has discounts for ten places, so a larger k counts ten places alone.",
        "hard-wired",
        "ndcg-values",
        {
            "rank": '''DISCOUNTS = [1 / math.log2(1 + place) for place in range(1, 11)]


def ndcg(scores, found, gains, k=10):
    """How good the ranking of each query is, from 0 to 1."""
    k = min(k, scores.shape[1], len(DISCOUNTS))
    discounts = torch.tensor(DISCOUNTS[:k], dtype=torch.float64, device=scores.device)
    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]
    worst = earned.argsort(dim=1)  # the least relevant first
    ranked = scores.masked_fill(~found, -torch.inf).gather(1, worst)
    order = ranked.argsort(dim=1, descending=True, stable=True)
    earned = earned.gather(1, worst).gather(1, order)[:, :k]
    best = (2.0 ** gains.double() - 1).sort(dim=1, descending=True).values[:, :k]
    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)
'''
        },
    ),
    # ----- own-check
    Fresh(
        "check_no_sentence_without_tokens",
        "Has no sentence of no tokens, so it overlooks who numbers the sentences behind one wrongly, or opens a row for it.",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                """        (9, (2, 0, 3, 0)): [[0, 0, 2, 2, 2]],
        (3, (2, 2, 0)): [[0, 0], [1, 1]],
        (1, (1, 0, 1)): [[0], [2]],
        (5, ()): [],
        (3, (0, 0)): [],
""",
                """        (9, (2, 3)): [[0, 0, 1, 1, 1]],
        (3, (2, 2)): [[0, 0], [1, 1]],
        (1, (1, 1)): [[0], [1]],
        (5, ()): [],
""",
            )
        },
    ),
    Fresh(
        "check_draws_hardly_fill_a_row",
        "Compares with a model of its own on random lengths in rows of 100 to 200, where a sentence hardly ever fills its row to the last place.",
        "chance",
        "check-refuses",
        {
            "own-check": '''def check_join(implementation):
    """Raise an error if an implementation of `join` is wrong; return nothing if it is right."""
    import random

    for _ in range(10):
        width = random.randint(100, 200)
        lengths = [random.choice([0, random.randint(1, width // 2)]) for _ in range(8)]
        rows = []
        for number, length in enumerate(lengths):
            if not length:
                continue
            row = next((row for row in rows if len(row) + length <= width), None)
            if row is None:
                row = []
                rows.append(row)
            row += [(number, place) for place in range(length)]
        given = list(lengths)
        sentences, positions = implementation(given, width)
        assert given == lengths
        for table, part, filler in ((sentences, 0, -1), (positions, 1, 0)):
            assert table.dtype == torch.int64 and list(table.shape) == [len(rows), width]
            for found, row in zip(table.tolist(), rows):
                wanted = [pair[part] for pair in row]
                assert found == wanted + [filler] * (width - len(row))
    many, _ = implementation([1] * 300, 100 + 3)
    assert sorted(n for n in many.flatten().tolist() if n >= 0) == [*range(300)]
    for lengths in ([], [0, 0]):
        for table in implementation(lengths, 3):
            assert table.dtype == torch.int64 and list(table.shape) == [0, 3]
    for lengths in ([5], [2, 1, 6], [4, 5]):
        try:
            implementation(lengths, 4)
        except ValueError:
            continue
        raise AssertionError("a sentence that is longer than a row must raise ValueError")
'''
        },
    ),
    Fresh(
        "check_draws_three_sentences_at_most",
        "Compares with a model of its own on random lengths, but draws three sentences at most, although there may be hundreds.",
        "chance",
        "check-refuses",
        {
            "own-check": '''def check_join(implementation):
    """Raise an error if an implementation of `join` is wrong; return nothing if it is right."""
    import random

    def fails(lengths, width):
        try:
            implementation(lengths, width)
        except ValueError:
            return True
        return False

    for _ in range(40):
        width = random.randint(1, 8)
        lengths = [random.randint(0, width + 1) for _ in range(random.randint(0, 3))]
        if max([0, *lengths]) > width:
            assert fails(lengths, width)
            continue
        rows = []
        for number, length in enumerate(lengths):
            for row in rows:
                if len(row) + length <= width:
                    break
            else:
                row = []
                if length:
                    rows.append(row)
            row += [(number, place) for place in range(length)]
        given = list(lengths)
        sentences, positions = implementation(given, width)
        assert given == lengths
        for table, part, filler in ((sentences, 0, -1), (positions, 1, 0)):
            assert table.dtype == torch.int64 and list(table.shape) == [len(rows), width]
            wanted = [[pair[part] for pair in row] for row in rows]
            assert table.tolist() == [row + [filler] * (width - len(row)) for row in wanted]
'''
        },
    ),
    Fresh(
        "check_calls_once",
        "Puts all that can happen into one long list and looks at the tables of one call alone, so it overlooks who remembers an earlier call.",
        "state",
        "check-refuses",
        {
            "own-check": '''def check_join(implementation):
    """Raise an error if an implementation of `join` is wrong; return nothing if it is right."""
    lengths, width = [3, 5, 4, 0, 2, 1, 2, 7, 0, 6, 3, 3] + [1, 2] * 120 + [0], 7
    rows = []
    for number, length in enumerate(lengths):
        if length:
            room = [row for row in rows if len(row) + length <= width] or [[]]
            if not room[0]:
                rows.append(room[0])
            room[0].extend((number, place) for place in range(length))
    given = list(lengths)
    sentences, positions = implementation(given, width)
    assert given == lengths, "the list is changed"
    for table, part, filler in ((sentences, 0, -1), (positions, 1, 0)):
        assert table.dtype == torch.int64 and list(table.shape) == [len(rows), width]
        wanted = [[pair[part] for pair in row] for row in rows]
        assert table.tolist() == [row + [filler] * (width - len(row)) for row in wanted]
    for lengths in ([5], [2, 1, 6], [4, 5]):
        try:
            implementation(lengths, 4)
        except ValueError:
            continue
        raise AssertionError("a sentence that is longer than a row must raise ValueError")
'''
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "complex_numbers_and_loops",
        "Turns complex numbers; Python loops over queries, texts, adapters and documents; an own model of join in the check",
        {
            "turn": '''def speeds(number, base, device):
    """How far each pair turns at one position, in float64."""
    exact = [float(base) ** (-2 * i / number) for i in range(number // 2)]
    return torch.tensor(exact, dtype=torch.float64, device=device)


def rotate(vectors, positions, base=10000.0, features=None):
    D = vectors.shape[-1]
    R = D if features is None else features
    left, rest = vectors.split([R, D - R], dim=-1)
    left = left.double()
    pairs = torch.complex(left[..., 0::2], left[..., 1::2])
    angles = positions.double()[:, None, :, None] * speeds(R, base, vectors.device)
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    turned = torch.view_as_real(turned).flatten(-2).to(vectors.dtype)
    return torch.cat([turned, rest], dim=-1)
''',
            "distance": """def scores_by_distance(queries, keys, distance, base=10000.0):
    D = queries.shape[-1]
    q, k = (
        torch.complex(part.double()[..., 0::2], part.double()[..., 1::2])
        for part in (queries, keys)
    )
    i = torch.arange(D // 2, device=queries.device, dtype=torch.float64)
    angles = distance.double()[..., None] * torch.pow(base, -2 * i / D)
    turn = torch.polar(torch.ones_like(angles), angles)  # [T, S, D/2]
    products = q.conj()[:, :, None] * k[:, None] * turn  # [B, T, S, D/2]
    return torch.view_as_real(products)[..., 0].sum(dim=-1).to(queries.dtype)
""",
            "gate": """def geglu(hidden, weight, output):
    both = torch.nn.functional.linear(hidden, weight)
    z, v = both.unflatten(-1, (weight.shape[0] // 2, 2)).unbind(dim=-1)
    gates = torch.erfc(z * -math.sqrt(0.5)) / 2
    return torch.nn.functional.linear(gates * z * v, output), gates
""",
            "near": """def local_mask(sentences, reach=None):
    B, T = sentences.shape
    place = torch.arange(T, device=sentences.device)
    real = sentences >= 0
    same = real[:, :, None] & real[:, None, :] & sentences[:, :, None].eq(sentences[:, None, :])
    if reach is None:
        seen = same
    else:
        first = same.long().argmax(dim=2) == place  # [B, T]: nobody of my sentence before me
        band = (place[None, :] <= place[:, None] + reach) & (place[None, :] >= place[:, None] - reach)
        seen = same & (band[None] | first[:, None, :] | first[:, :, None])
    return seen | torch.eye(T, dtype=torch.bool, device=sentences.device)[None]
""",
            "contrast": '''def unit(vectors):
    """Vectors of length 1; first the largest entry becomes 1, so that no square is too small."""
    vectors = vectors / vectors.detach().abs().amax(dim=1, keepdim=True)
    return vectors / vectors.square().sum(dim=1, keepdim=True).sqrt()


def info_nce(queries, documents, relation, temperature=0.05):
    table = unit(queries) @ unit(documents).T
    losses, hardest = [], []
    for row, related in zip(table, relation):
        right = (related == 1).nonzero()[:, 0]
        wrong = (related == 0).nonzero()[:, 0]
        of = []
        for d in right.tolist():
            lead = (row[wrong] - row[d]) / temperature
            of.append(torch.cat([lead.new_zeros(1), lead]).logsumexp(dim=0))
        losses.append(sum(of) / len(of))
        hardest.append(wrong[row[wrong].argmax()].item() if len(wrong) else -1)
    return torch.stack(losses), torch.tensor(hardest, device=queries.device)
''',
            "adapt": """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    scale = 1.0 if alpha is None else alpha / down.shape[1]
    fixed = None if bias is None else bias.detach()
    results = []
    for text, number in zip(hidden, adapter.tolist()):
        result = torch.nn.functional.linear(text, weight.detach(), fixed)
        if number >= 0:
            result = result + scale * (text @ down[number].T @ up[number].T)
        results.append(result)
    return torch.stack(results)
""",
            "fold": """@torch.no_grad()
def merge(weight, down, up, shares, alpha=None):
    scale = 1.0 if alpha is None else alpha / down.shape[1]
    dtype = torch.promote_types(torch.promote_types(weight.dtype, up.dtype), torch.float32)
    total = weight.to(dtype, copy=True)
    for share, thin, thick in zip(shares.to(dtype), down.to(dtype), up.to(dtype)):
        total += scale * share * (thick @ thin)
    return total.to(weight.dtype)
""",
            "rank": """def ndcg(scores, found, gains, k=10):
    values = []
    for row, there, relevance in zip(scores.tolist(), found.tolist(), gains.tolist()):
        listed = [n for n in range(len(row)) if there[n]]
        listed.sort(key=lambda n: (-row[n], relevance[n]))
        earned = sum(
            (2.0 ** relevance[n] - 1) / math.log2(place + 1)
            for place, n in enumerate(listed[:k], 1)
        )
        most = sum(
            (2.0**g - 1) / math.log2(place + 1)
            for place, g in enumerate(sorted(relevance, reverse=True)[:k], 1)
        )
        values.append(earned / most if most > 0 else math.nan)
    return torch.tensor(values, dtype=scores.dtype, device=scores.device)
""",
            "own-check": """def check_join(implementation):
    import random

    def model(lengths, width):
        if any(length > width for length in lengths):
            return None
        free, rows = [], []
        for number, length in enumerate(lengths):
            if length == 0:
                continue
            where = next((r for r, room in enumerate(free) if room >= length), len(free))
            if where == len(free):
                free.append(width)
                rows.append([])
            free[where] -= length
            rows[where].extend((number, place) for place in range(length))
        return [row + [(-1, 0)] * room for row, room in zip(rows, free)]

    def compare(lengths, width):
        wanted, given = model(lengths, width), list(lengths)
        try:
            got = implementation(given, width)
        except ValueError:
            assert wanted is None, (lengths, width)
            return
        assert wanted is not None, (lengths, width)
        assert given == list(lengths), "the list is changed"
        sentences, positions = got
        for part, table in enumerate((sentences, positions)):
            assert table.dtype == torch.int64
            assert tuple(table.shape) == (len(wanted), width)
            assert table.tolist() == [[pair[part] for pair in row] for row in wanted]

    fixed = [
        ([2, 3, 1], 4), ([], 3), ([0], 1), ([0, 0, 0], 5), ([1], 1), ([1, 0, 1], 1),
        ([3, 5, 4, 2, 1, 2, 7], 7), ([4, 5, 5, 1, 2], 6), ([4, 3, 2, 1], 6), ([3, 3, 3, 1, 1, 1], 4),
        ([5], 4), ([0, 5], 4), ([2, 2, 5], 4), ([5, 1], 4), ([2, 1, 6, 1], 4), ([2, 2], 4),
        ([4, 4, 4], 4), ([1] * 300, 3), ([1] * 300, 7), ([3, 2] * 100, 3), ([2] + [3] * 150 + [1] * 2, 4),
    ]
    for lengths, width in fixed:
        compare(lengths, width)
    for _ in range(100):
        width = random.randint(1, 9)
        most = width + (random.random() < 0.15)
        compare([random.randint(0, most) for _ in range(random.randint(0, 14))], width)
    for lengths, width in fixed[:10]:
        compare(lengths, width)
""",
        },
    ),
    RightAnswer(
        "tables_of_zeros_and_counted_places",
        "Partners of features by sign and flip; an adapter of zeros in front; nDCG from counted places without any sort",
        {
            "turn": """def rotate(vectors, positions, base=10000.0, features=None):
    if features is None:
        features = vectors.size(-1)
    number = torch.arange(features, device=vectors.device) // 2  # 0, 0, 1, 1, ...
    theta = torch.exp(number.double() * (-2.0 * math.log(base) / features))
    angles = positions.unsqueeze(1).unsqueeze(-1) * theta  # [B, 1, T, R]
    turned = vectors[..., :features]
    other = turned.unflatten(-1, (features // 2, 2)).flip(-1).flatten(-2)  # b, a, d, c, ...
    sign = torch.where(torch.arange(features, device=vectors.device) % 2 == 0, -1.0, 1.0)
    turned = turned * angles.cos().to(vectors.dtype) + other * (sign * angles.sin()).to(vectors.dtype)
    return torch.cat((turned, vectors[..., features:]), dim=-1)
""",
            "distance": """def scores_by_distance(queries, keys, distance, base=10000.0):
    D = queries.size(-1)
    total = 0
    for i in range(D // 2):
        angle = distance.double() * base ** (-2 * i / D)  # [T, S]
        cosine, sine = torch.cos(angle).to(queries.dtype), torch.sin(angle).to(queries.dtype)
        a, b = queries[..., 2 * i], queries[..., 2 * i + 1]
        c, d = keys[..., 2 * i], keys[..., 2 * i + 1]
        along = torch.einsum("bt,bs->bts", a, c) + torch.einsum("bt,bs->bts", b, d)
        across = torch.einsum("bt,bs->bts", b, c) - torch.einsum("bt,bs->bts", a, d)
        total = total + along * cosine + across * sine
    return total
""",
            "gate": """def geglu(hidden, weight, output):
    z = torch.einsum("btd,fd->btf", hidden, weight[::2])
    v = torch.einsum("btd,fd->btf", hidden, weight[1::2])
    share = (torch.special.erfc(z.double() * (-1 / math.sqrt(2))) / 2).to(z.dtype)
    return torch.einsum("btf,df->btd", z * share * v, output), share
""",
            "near": """def local_mask(sentences, reach=None):
    B, T = sentences.shape
    begins = torch.cat(
        [torch.ones_like(sentences[:, :1]).bool(), sentences.diff(dim=1) != 0], dim=1
    )
    run = begins.long().cumsum(dim=1)  # [B, T]: 1, 1, 2, 2, 2, 3, ...
    allowed = run.unsqueeze(2) == run.unsqueeze(1)
    allowed = allowed.masked_fill((sentences == -1).unsqueeze(2), False)
    if reach is not None:
        width = min(reach, T)
        band = torch.ones(T, T, dtype=torch.int64, device=sentences.device).tril(width).triu(-width)
        allowed = allowed & ((band == 1) | begins.unsqueeze(1) | begins.unsqueeze(2))
    itself = torch.arange(T, device=sentences.device)
    allowed[:, itself, itself] = True
    return allowed
""",
            "contrast": """def info_nce(queries, documents, relation, temperature=0.05):
    lengths = [torch.linalg.vector_norm(part, dim=-1) for part in (queries, documents)]
    cosines = (queries / lengths[0][:, None]) @ (documents / lengths[1][:, None]).T
    wrong = relation.eq(0)
    scores = cosines / temperature
    rivals = scores.masked_fill(~wrong, -math.inf).logsumexp(dim=1, keepdim=True)
    each = -torch.nn.functional.logsigmoid(scores - rivals)  # [B, N]
    right = relation.eq(1)
    losses = torch.where(right, each, 0.0).sum(dim=1) / right.sum(dim=1)
    largest, index = cosines.detach().masked_fill(~wrong, -math.inf).max(dim=1)
    return losses, torch.where(largest == -math.inf, -1, index)
""",
            "adapt": """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    rank = down.size(1)
    alpha = rank if alpha is None else alpha
    nothing = [part.new_zeros((1, *part.shape[1:])) for part in (down, up)]
    thin = torch.cat([nothing[0], down])[adapter + 1]  # [B, r, D], zeros for -1
    thick = torch.cat([nothing[1], up])[adapter + 1]
    change = torch.bmm(torch.bmm(hidden, thin.mT), thick.mT)
    result = torch.matmul(hidden, weight.detach().t()) + (alpha / rank) * change
    return result if bias is None else result + bias.detach()
""",
            "fold": """def merge(weight, down, up, shares, alpha=None):
    A, rank, D = down.shape
    factor = 1 if alpha is None else alpha / rank
    with torch.no_grad():
        thick = (shares[:, None, None] * up).transpose(0, 1).reshape(-1, A * rank)
        whole = weight + factor * (thick @ down.reshape(A * rank, D))
        return whole.to(weight.dtype)
""",
            "rank": '''def places_of(ahead):
    """bool [Q, N, N], True if document m stands before document n -> places from 1"""
    return 1 + ahead.sum(dim=2)


def ndcg(scores, found, gains, k=10):
    N = scores.shape[1]
    number = torch.arange(N, device=scores.device)
    earlier = number[None, :] < number[:, None]  # [n, m]
    mine, other = gains[:, :, None], gains[:, None, :]
    tie = (other < mine) | ((other == mine) & earlier)
    higher = scores[:, None, :] > scores[:, :, None]
    equal = scores[:, None, :] == scores[:, :, None]
    real = places_of((higher | (equal & tie)) & found[:, None, :])
    best = places_of((other > mine) | ((other == mine) & earlier))
    worth = torch.pow(2.0, gains.double()) - 1
    total = []
    for place, counted in ((real, found), (best, torch.ones_like(found))):
        share = worth / torch.log2(1.0 + place.double())
        total.append(torch.where(counted & (place <= k), share, 0.0).sum(dim=1))
    return (total[0] / total[1]).to(scores.dtype)
''',
        },
    ),
    RightAnswer(
        "matrices_runs_and_levels",
        "A matrix for each turn, scores from turned keys, log_ndtr, runs of sentences, cross-entropy, levels of scores as integers",
        {
            "turn": """def rotate(vectors, positions, base=10000.0, features=None):
    D = vectors.shape[-1]
    R = features if features is not None else D
    theta = torch.logspace(0, -2 * (R // 2 - 1) / R, R // 2, base=base, dtype=torch.float64)
    angles = positions.to(torch.float64).unsqueeze(-1) * theta.to(vectors.device)
    cosine, sine = angles.cos(), angles.sin()  # [B, T, R/2]
    turns = torch.stack(
        [torch.stack([cosine, -sine], dim=-1), torch.stack([sine, cosine], dim=-1)], dim=-2
    ).to(vectors.dtype)  # [B, T, R/2, 2, 2]
    pairs = vectors[..., :R].unflatten(-1, (R // 2, 2))
    turned = torch.einsum("btixy,bhtiy->bhtix", turns, pairs).flatten(-2)
    return turned if R == D else torch.cat([turned, vectors[..., R:]], dim=-1)
""",
            "distance": """def scores_by_distance(queries, keys, distance, base=10000.0):
    # for each query the keys are turned by their distances from it
    T = queries.shape[1]
    turned = rotate(keys.expand(T, *keys.shape), distance, base)  # [T, B, S, D]
    return torch.einsum("btd,tbsd->bts", queries, turned)
""",
            "gate": """def geglu(hidden, weight, output):
    z, v = (hidden @ rows.T for rows in (weight[0::2], weight[1::2]))
    open = torch.special.log_ndtr(z.double()).exp().to(z.dtype)
    return (open * (z * v)) @ output.mT, open
""",
            "near": """def local_mask(sentences, reach=None):
    import itertools

    B, T = sentences.shape
    mask = torch.zeros(B, T, T, dtype=torch.bool)
    for table, row in zip(mask, sentences.tolist()):
        begin = 0
        for number, run in itertools.groupby(row):
            end = begin + len([*run])
            for i in range(begin, end):
                if number < 0:
                    table[i, i] = True
                elif reach is None:
                    table[i, begin:end] = True
                else:
                    table[i, max(begin, i - reach) : min(end, i + reach + 1)] = True
            if number >= 0:
                table[begin, begin:end] = True
                table[begin:end, begin] = True
            begin = end
    return mask.to(sentences.device)
""",
            "contrast": """def info_nce(queries, documents, relation, temperature=0.05):
    B, N = relation.shape
    cosines = (queries / queries.norm(dim=1, keepdim=True)) @ (
        documents / documents.norm(dim=1, keepdim=True)
    ).T
    others = cosines.masked_fill(relation != 0, -torch.inf)
    b, d = (relation == 1).nonzero(as_tuple=True)  # each pair of a query and a right document
    logits = torch.cat([cosines[b, d][:, None], others[b]], dim=1) / temperature
    each = torch.nn.functional.cross_entropy(logits, torch.zeros_like(b), reduction="none")
    count = torch.bincount(b, minlength=B)
    losses = torch.zeros_like(cosines[:, 0]).index_add(0, b, each / count[b])
    some = (relation == 0).any(dim=1)
    return losses, torch.where(some, others.argmax(dim=1), torch.full_like(count, -1))
""",
            "adapt": """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    scale = 1.0 if alpha is None else alpha / down.shape[1]
    result = hidden @ weight.detach().T
    if bias is not None:
        result = result + bias.detach()
    for number in adapter.unique().tolist():
        if number >= 0:
            texts = (adapter == number).nonzero()[:, 0]
            change = hidden[texts] @ down[number].T @ up[number].T
            result = result.index_add(0, texts, scale * change)
    return result
""",
            "fold": """def merge(weight, down, up, shares, alpha=None):
    weight_, down, up, shares = (t.detach().double() for t in (weight, down, up, shares))
    scale = 1.0 if alpha is None else alpha / down.shape[1]
    change = torch.tensordot(shares[:, None, None] * up, down, dims=([0, 2], [0, 1]))
    return torch.add(weight_, change, alpha=scale).to(weight.dtype)
""",
            "rank": """def ndcg(scores, found, gains, k=10):
    k = min(k, scores.shape[1])
    levels = scores[found].double().unique()  # all different scores, ascending
    level = torch.searchsorted(levels, scores.double().contiguous())
    key = level * (gains.max() + 1) + gains.max() - gains  # of equal scores the less relevant first
    order = key.masked_fill(~found, -1).topk(k, dim=1).indices
    worth = torch.expm1(gains.double() * math.log(2.0)).round()
    earned = worth.masked_fill(~found, 0).gather(1, order)
    best = worth.topk(k, dim=1).values
    places = torch.arange(2, k + 2, device=scores.device, dtype=torch.float64)
    dcg, most = ((part / places.log2()).sum(dim=1) for part in (earned, best))
    return (dcg / most).to(scores.dtype)
""",
            "own-check": """def check_join(implementation):
    def text(rows, width):
        sentences, positions = [], []
        for row in rows:  # as strings: one letter for a token, its sentence's
            filled = row.ljust(width, ".")
            sentences.append([-1 if c == "." else ord(c) - ord("a") for c in filled])
            positions.append([0 if c == "." else n - filled.index(c) for n, c in enumerate(filled)])
        return sentences, positions

    def look(lengths, width, rows):
        given = list(lengths)
        result = implementation(given, width)
        assert given == list(lengths)
        assert len(result) == 2
        for table, wanted in zip(result, text(rows, width)):
            assert isinstance(table, torch.Tensor) and table.dtype is torch.int64
            assert table.shape == (len(rows), width)
            assert table.tolist() == wanted

    for _ in range(2):
        look([2, 3, 1], 4, ["aac", "bbb"])
        look([], 4, [])
        look([0, 0], 4, [])
        look([4], 4, ["aaaa"])
        look([4, 1], 4, ["aaaa", "b"])
        look([0, 2, 0, 2, 0], 4, ["bbdd"])
        look([0, 2, 0, 2, 0], 5, ["bbdd"])
        look([3, 2, 3, 2, 1, 1], 5, ["aaabb", "cccdd", "ef"])
        look([4, 5, 3, 2, 1], 6, ["aaaadd", "bbbbbe", "ccc"])
        look([4, 5, 5, 1, 2], 6, ["aaaad", "bbbbb", "ccccc", "ee"])
        look([3, 5, 4, 2, 1, 2, 7], 7, ["aaacccc", "bbbbbdd", "eff", "ggggggg"])
        look([2, 2, 2, 1, 1, 1], 3, ["aad", "bbe", "ccf"])
        look([1, 0, 1, 1], 1, ["a", "c", "d"])
        look([5, 4, 3, 2, 1], 9, ["aaaaabbbb", "cccdde"])
    for number in (130, 300):
        sentences, positions = implementation([2, 1] * number, 2)
        assert sentences.dtype == positions.dtype == torch.int64
        rows, waiting = [], None
        for n in range(2 * number):
            if n % 2 == 0:
                rows.append([n, n])
            elif waiting is None:
                waiting = len(rows)
                rows.append([n, -1])
            else:
                rows[waiting][1], waiting = n, None
        assert sentences.tolist() == rows
        assert positions.tolist() == [[0, int(a == b)] for a, b in rows]
    for lengths, width in (([5], 4), ([1, 5], 4), ([5, 1], 4), ([0, 2, 5, 2], 4), ([2], 1), ([300], 9)):
        try:
            implementation(lengths, width)
        except ValueError:
            pass
        else:
            raise AssertionError((lengths, width))
""",
        },
    ),
]
