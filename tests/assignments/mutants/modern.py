"""Wrong answers to the assignment on encoders of today that people give, and right answers that people write differently.

Written from the tasks' texts, before the hidden tests. Longer than 400 lines because it is a catalogue: look an entry up,
do not read it through.
"""

from collections.abc import Callable

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks

# who notices first: the student, or the grader
SEEN, HIDDEN = "visible", "hidden"


def answers(cell: str, test: str) -> Callable[..., Mutant]:
    """Wrong answers in one cell, each one text in the reference exchanged for another."""

    def wrong(
        name: str,
        mistake: str,
        old: str,
        new: str,
        words: str,
        caught: str = SEEN,
        also: str = "",
    ) -> Mutant:
        return Mutant(
            name, mistake, test, words, caught, {cell: (old, new)}, tuple(also.split())
        )

    return wrong


turned = answers("turn", "rotary-values")
far = answers("turn", "rotary-edges")
shift = answers("distance", "rotary-shift")
gates = answers("gate", "geglu-values")
shut = answers("gate", "geglu-edges")
local = answers("near", "mask-local")
losses = answers("contrast", "contrast-losses")
hardest = answers("contrast", "contrast-edges")
adapted = answers("adapt", "lora-values")
frozen = answers("adapt", "lora-gradients")
merged = answers("fold", "lora-merge")
ranked = answers("rank", "ndcg-values")
ties = answers("rank", "ndcg-edges")

ROTARY = [
    turned(
        "rotate_halves",
        "pairs the first half with the second, as the library and published ModernBERTs do",
        "    a, b = vectors[..., 0:R:2], vectors[..., 1:R:2]  # [B, H, T, R/2]\n    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)\n    return torch.cat([turned.flatten(-2), vectors[..., R:]], dim=-1)",
        "    a, b = vectors[..., :R].chunk(2, dim=-1)\n    turned = torch.cat([a * cosine - b * sine, a * sine + b * cosine], dim=-1)\n    return torch.cat([turned, vectors[..., R:]], dim=-1)",
        "yours pairs the two halves",
        also="rotary-edges",
    ),
    turned(
        "rotate_writes_halves",
        "puts all first features before all second ones",
        "turned.flatten(-2)",
        "turned.transpose(-1, -2).flatten(-2)",
        "turned vectors is wrong",
        also="rotary-edges",
    ),
    turned(
        "rotate_other_way",
        "turns the other way round",
        "    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)\n",
        "    turned = torch.stack([a * cosine + b * sine, b * cosine - a * sine], dim=-1)\n",
        "the other way round",
        also="rotary-edges",
    ),
    turned(
        "rotate_counts_from_one",
        "counts positions from 1",
        "positions[:, None, :, None] * base ** (-step / R)",
        "(positions + 1)[:, None, :, None] * base ** (-step / R)",
        "The position is k, not k + 1",
        also="rotary-edges",
    ),
    turned(
        "rotate_exponent_halved",
        "forgets the 2 of the exponent",
        "(-step / R)",
        "(-step / 2 / R)",
        "mind the 2",
        also="rotary-edges",
    ),
    turned(
        "rotate_exponent_positive",
        "forgets the minus of the exponent",
        "(-step / R)",
        "(step / R)",
        "The exponent is negative",
        also="rotary-edges",
    ),
    turned(
        "rotate_divides_by_all",
        "divides by D where R features are turned",
        "(-step / R)",
        "(-step / vectors.shape[-1])",
        "Divide 2i by R, not by D",
    ),
    turned(
        "rotate_base_of_the_paper",
        "always takes base 10,000",
        "* base **",
        "* 10000.0 **",
        "Use the base that is given",
    ),
    turned(
        "rotate_whole_base",
        "takes the base for a whole number",
        "* base **",
        "* int(base) **",
        "a base that is no whole number",
        HIDDEN,
    ),
    turned(
        "rotate_all_features",
        "turns all features",
        "    R = vectors.shape[-1] if features is None else features",
        "    R = vectors.shape[-1] // 2 * 2",
        "turned vectors is wrong",
    ),
    turned(
        "rotate_drops_the_rest",
        "leaves the other features out",
        "    return torch.cat([turned.flatten(-2), vectors[..., R:]], dim=-1)",
        "    return turned.flatten(-2)",
        "must have shape",
    ),
    turned(
        "rotate_zeroes_the_rest",
        "makes the other features 0",
        "vectors[..., R:]]",
        "0 * vectors[..., R:]]",
        "turned vectors is wrong",
    ),
    turned(
        "rotate_turns_the_last",
        "turns the last R features instead of the first",
        "    a, b = vectors[..., 0:R:2], vectors[..., 1:R:2]  # [B, H, T, R/2]\n    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)\n    return torch.cat([turned.flatten(-2), vectors[..., R:]], dim=-1)",
        "    D = vectors.shape[-1]\n    a, b = vectors[..., D - R :: 2], vectors[..., D - R + 1 :: 2]\n    turned = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)\n    return torch.cat([vectors[..., : D - R], turned.flatten(-2)], dim=-1)",
        "turned vectors is wrong",
    ),
    turned(
        "rotate_counts_itself",
        "numbers the tokens itself and ignores the positions",
        "positions[:, None, :, None] * base ** (-step / R)",
        "torch.arange(vectors.shape[2], device=vectors.device)[:, None] * base ** (-step / R)",
        "turned vectors is wrong",
        also="rotary-edges",
    ),
    turned(
        "rotate_first_row",
        "takes the positions of the first row for all",
        "positions[:, None",
        "positions[:1, None",
        "turned vectors is wrong",
        also="rotary-edges",
    ),
    turned(
        "rotate_positions_of_heads",
        "turns each head by the position of its number",
        "positions[:, None, :, None] * base ** (-step / R)",
        "(positions[:, None, :, None] + torch.arange(vectors.shape[1], device=vectors.device)[:, None, None]) * base ** (-step / R)",
        "turned vectors is wrong",
        also="rotary-edges",
    ),
    turned(
        "rotate_degrees",
        "takes the angles for degrees",
        "    cosine, sine =",
        "    angles = angles * math.pi / 180\n    cosine, sine =",
        "turned vectors is wrong",
        also="rotary-edges",
    ),
    turned(
        "rotate_without_gradient",
        "detaches the vectors",
        "    a, b = vectors[",
        "    vectors = vectors.detach()\n    a, b = vectors[",
        "no gradient reaches vectors",
        HIDDEN,
        also="rotary-edges",
    ),
    turned(
        "rotate_periodic",
        "has a table of 2048 positions and begins it anew",
        "positions[:, None, :, None] * base ** (-step / R)",
        "(positions % 2048)[:, None, :, None] * base ** (-step / R)",
        "positions in the thousands",
        HIDDEN,
        also="rotary-edges",
    ),
    far(
        "rotate_float32_angles",
        "computes angles in float32",
        "torch.arange(0, R, 2, device=vectors.device, dtype=torch.float64)",
        "torch.arange(0, R, 2, device=vectors.device, dtype=torch.float32)",
        "Compute angles, sines and cosines in float64",
        also="rotary-values",
    ),
    far(
        "rotate_angles_as_vectors",
        "computes angles in the dtype of the vectors",
        "torch.arange(0, R, 2, device=vectors.device, dtype=torch.float64)",
        "torch.arange(0, R, 2, device=vectors.device, dtype=vectors.dtype)",
        "Compute angles, sines and cosines in float64",
    ),
    far(
        "rotate_positions_rounded",
        "makes the positions float32",
        "positions[:, None, :, None] *",
        "positions.float()[:, None, :, None] *",
        "positions that float32 cannot tell apart",
        HIDDEN,
    ),
    far(
        "rotate_no_farther",
        "ends at position 8191",
        "positions[:, None",
        "positions.clamp(max=8191)[:, None",
        "a turned vector is wrong",
        also="rotary-values",
    ),
    far(
        "rotate_returns_double",
        "returns float64 whatever comes",
        "    cosine, sine = angles.cos().to(vectors.dtype), angles.sin().to(vectors.dtype)",
        "    cosine, sine = angles.cos(), angles.sin()",
        "must have dtype torch.float32",
        also="rotary-values",
    ),
    far(
        "rotate_in_place",
        "turns the caller's vectors",
        "    return torch.cat([turned.flatten(-2), vectors[..., R:]], dim=-1)",
        "    vectors[..., :R] = turned.flatten(-2)\n    return vectors",
        "must leave its arguments",
        also="rotary-values",
    ),
]

DISTANCE = [
    shift(
        "distance_sine_s_sign",
        "has the sign of the sine wrong",
        "(b * c - a * d)",
        "(a * d - b * c)",
        "The sign of the term with the sine is wrong",
    ),
    shift(
        "distance_no_sine",
        "leaves the sine out",
        "    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1)",
        "    return ((a * c + b * d) * cosine).sum(dim=-1)",
        "the table of scores is wrong",
    ),
    shift(
        "distance_sine_of_sum",
        "adds both parts of the sine",
        "(b * c - a * d)",
        "(b * c + a * d)",
        "the table of scores is wrong",
    ),
    shift(
        "distance_without_sign",
        "takes the distance without its sign",
        "distance[..., None] * base",
        "distance.abs()[..., None] * base",
        "the table of scores is wrong",
    ),
    shift(
        "distance_ignored",
        "computes the products of what is not turned",
        "    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1)",
        "    return (a * c + b * d).sum(dim=-1)",
        "The distances are not in it",
    ),
    shift(
        "distance_scaled",
        "divides by the root of D, as attention does",
        "    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1)",
        "    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1) / D**0.5",
        "Do not divide by the root of D",
    ),
    shift(
        "distance_mean",
        "takes the mean over the pairs",
        ".sum(dim=-1)",
        ".mean(dim=-1)",
        "Add up over the pairs",
    ),
    shift(
        "distance_first_query",
        "takes the distances of the first query for all",
        "distance[..., None] * base",
        "distance[:1, :, None] * base",
        "the table of scores is wrong",
    ),
    shift(
        "distance_base_of_the_paper",
        "always takes base 10,000",
        "* base **",
        "* 10000.0 **",
        "the table of scores is wrong",
    ),
    shift(
        "distance_halves",
        "pairs the two halves",
        "    a, b = queries[:, :, None, 0::2], queries[:, :, None, 1::2]  # [B, T, 1, D/2]\n    c, d = keys[:, None, :, 0::2], keys[:, None, :, 1::2]  # [B, 1, S, D/2]\n",
        "    a, b = queries[:, :, None].chunk(2, dim=-1)\n    c, d = keys[:, None].chunk(2, dim=-1)\n",
        "the table of scores is wrong",
    ),
    shift(
        "distance_transposed",
        "gives keys in rows and queries in columns",
        "    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1)",
        "    return ((a * c + b * d) * cosine + (b * c - a * d) * sine).sum(dim=-1).transpose(1, 2)",
        "must have shape",
    ),
    shift(
        "distance_float32_angles",
        "computes angles in float32",
        "dtype=torch.float64)",
        "dtype=torch.float32)",
        "is wrong",
        HIDDEN,
    ),
    shift(
        "distance_no_farther",
        "ends at a distance of 512",
        "distance[..., None] * base",
        "distance.clamp(-512, 512)[..., None] * base",
        "distances in the thousands",
        HIDDEN,
    ),
    shift(
        "distance_keys_detached",
        "lets no gradient reach the keys",
        "    c, d = keys[",
        "    keys = keys.detach()\n    c, d = keys[",
        "no gradient reaches keys",
        HIDDEN,
    ),
    shift(
        "distance_in_float32",
        "returns float32 whatever comes",
        ".sum(dim=-1)",
        ".sum(dim=-1).float()",
        "must have dtype torch.float64",
    ),
]

GATES = [
    gates(
        "geglu_halves",
        "takes the two halves of the rows, as the library does",
        "    z, v = hidden @ weight[0::2].T, hidden @ weight[1::2].T  # [B, T, F]",
        "    z, v = (hidden @ weight.T).chunk(2, dim=-1)",
        "yours takes the two halves",
        also="geglu-edges",
    ),
    gates(
        "geglu_other_way_round",
        "takes row 0 for v and row 1 for z",
        "    z, v =",
        "    v, z =",
        "yours takes them the other way round",
        also="geglu-edges",
    ),
    gates(
        "geglu_logistic",
        "takes the logistic function",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "z.sigmoid()",
        "That is the logistic function",
        also="geglu-edges",
    ),
    gates(
        "geglu_logistic_1702",
        "takes the logistic function that comes near",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "(1.702 * z).sigmoid()",
        "That is an approximation",
        also="geglu-edges",
    ),
    gates(
        "geglu_tanh",
        "takes the approximation by tanh",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "0.5 + 0.5 * torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))",
        "the table of gates is wrong",
        also="geglu-edges",
    ),
    gates(
        "geglu_gives_gelu",
        "returns the GELU for the gate",
        "(z * open * v) @ output.T, open",
        "(z * open * v) @ output.T, z * open",
        "The gate is Phi(z)",
        also="geglu-edges",
    ),
    gates(
        "geglu_share_above",
        "takes the share above z",
        "torch.erfc(-z",
        "torch.erfc(z",
        "yours is the share above",
        also="geglu-edges",
    ),
    gates(
        "geglu_root_missing",
        "forgets the root of 2",
        "-z / math.sqrt(2)",
        "-z",
        "the table of gates is wrong",
        also="geglu-edges",
    ),
    gates(
        "geglu_z_missing",
        "multiplies v by Phi(z) alone",
        "(z * open * v)",
        "(open * v)",
        "z is missing",
        also="geglu-edges",
    ),
    gates(
        "geglu_v_missing",
        "leaves v out",
        "(z * open * v)",
        "(z * open)",
        "v is missing",
        also="geglu-edges",
    ),
    gates(
        "geglu_adds_v",
        "adds v instead of multiplying",
        "(z * open * v)",
        "(z * open + v)",
        "yours adds it",
        also="geglu-edges",
    ),
    gates(
        "geglu_relu",
        "takes a ReLU",
        "(z * open * v)",
        "(z.relu() * v)",
        "That is a ReLU",
        also="geglu-edges",
    ),
    gates(
        "geglu_residual",
        "adds the states that came in",
        "(z * open * v) @ output.T, open",
        "hidden + (z * open * v) @ output.T, open",
        "the table of states is wrong",
        also="geglu-edges",
    ),
    gates(
        "geglu_output_turned",
        "multiplies by the output's matrix the wrong way",
        "output.T",
        "output",
        "mat1 and mat2 shapes",
        also="geglu-edges",
    ),
    gates(
        "geglu_pair_turned",
        "returns the gates first",
        "(z * open * v) @ output.T, open",
        "open, (z * open * v) @ output.T",
        "must have shape",
        also="geglu-edges",
    ),
    gates(
        "geglu_states_alone",
        "returns the states alone",
        "(z * open * v) @ output.T, open",
        "(z * open * v) @ output.T",
        "not two things",
        also="geglu-edges",
    ),
    gates(
        "geglu_gates_detached",
        "returns gates without a gradient",
        "(z * open * v) @ output.T, open",
        "(z * open * v) @ output.T, open.detach()",
        "the gradient with respect to hidden is wrong",
        HIDDEN,
        also="geglu-edges",
    ),
    gates(
        "geglu_weight_detached",
        "lets no gradient reach the weight",
        "    z, v =",
        "    weight = weight.detach()\n    z, v =",
        "no gradient reaches weight",
        HIDDEN,
        also="geglu-edges",
    ),
    gates(
        "geglu_in_float32",
        "computes in float32",
        "    z, v =",
        "    hidden, weight, output = hidden.float(), weight.float(), output.float()\n    z, v =",
        "must have dtype torch.float64",
        also="geglu-edges",
    ),
    gates(
        "geglu_ready_made",
        "takes torch's GELU",
        "(z * open * v)",
        "(torch.nn.functional.gelu(z) * v)",
        "which this assignment withholds",
        also="geglu-edges",
    ),
    shut(
        "geglu_sum_of_one",
        "adds 1 to the error function",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "0.5 * (1 + torch.erf(z / math.sqrt(2)))",
        "1 plus a number next to -1",
    ),
    shut(
        "geglu_ndtr",
        "takes torch's function, which adds 1 to the error function",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "torch.special.ndtr(z)",
        "1 plus a number next to -1",
    ),
    shut(
        "geglu_shut_at_6",
        "shuts gates below -6",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "torch.where(z < -6, torch.zeros_like(z), 0.5 * torch.erfc(-z / math.sqrt(2)))",
        "a gate is open by 6.2e-16",
    ),
    shut(
        "geglu_never_shut",
        "adds 1e-12 to each gate",
        "0.5 * torch.erfc(-z / math.sqrt(2))",
        "0.5 * torch.erfc(-z / math.sqrt(2)) + 1e-12",
        "a gate is open by 6.2e-16",
    ),
    shut(
        "geglu_states_by_a_sum",
        "gives gates by erfc, but computes the states by a sum with 1",
        "(z * open * v)",
        "(0.5 * z * (1 + torch.erf(z / math.sqrt(2))) * v)",
        "the table of states is wrong",
        HIDDEN,
    ),
]

MASKS = [
    local(
        "mask_window",
        "takes `reach` for a whole window, as the library does",
        "apart <= reach",
        "apart <= reach // 2",
        "yours halves it",
    ),
    local(
        "mask_less_than",
        "ends one position before `reach`",
        "apart <= reach",
        "apart < reach",
        "yours ends one before",
    ),
    local(
        "mask_one_further",
        "goes one position further",
        "apart <= reach",
        "apart <= reach + 1",
        "yours goes one further",
    ),
    local(
        "mask_without_end",
        "does not end at `reach`",
        "(apart <= reach)",
        "(apart >= 0)",
        "The mask does not end at `reach`",
    ),
    local(
        "mask_across_sentences",
        "lets tokens see near ones of other sentences",
        "    return same |",
        "    if reach is not None:\n        same = same | (apart <= reach)\n    return same |",
        "is wrong",
    ),
    local(
        "mask_no_sentences",
        "ignores sentences",
        "(sentences[:, :, None] == sentences[:, None]) & (sentences >= 0)[:, :, None]",
        "torch.ones_like(sentences[:, :, None] == sentences[:, None])",
        "is wrong",
    ),
    local(
        "mask_no_cls",
        "has no first tokens",
        "((apart <= reach) | first[:, :, None] | first[:, None])",
        "(apart <= reach)",
        "The first token sees its whole sentence, and all of it sees the first",
    ),
    local(
        "mask_cls_sees",
        "lets the first token see, but not be seen",
        "((apart <= reach) | first[:, :, None] | first[:, None])",
        "((apart <= reach) | first[:, :, None])",
        "All tokens of a sentence see its first one",
    ),
    local(
        "mask_cls_seen",
        "lets the first token be seen, but not see",
        "((apart <= reach) | first[:, :, None] | first[:, None])",
        "((apart <= reach) | first[:, None])",
        "The first token sees its whole sentence, too",
    ),
    local(
        "mask_first_of_the_row",
        "takes the first token of the row for that of all sentences",
        "    first[:, 1:] = sentences[:, 1:] != sentences[:, :-1]",
        "    first[:, 1:] = False",
        "is wrong",
    ),
    local(
        "mask_cls_sees_all",
        "lets first tokens see other sentences",
        "    return same |",
        "    return same | first[:, :, None] |",
        "is wrong",
    ),
    local(
        "mask_numbers_that_grow",
        "knows the first token by a number that grows",
        "    first[:, 1:] = sentences[:, 1:] != sentences[:, :-1]",
        "    first[:, 1:] = sentences[:, 1:] > sentences[:, :-1]",
        "is wrong",
    ),
    local(
        "mask_padding_sees_padding",
        "takes padding for a sentence",
        " & (sentences >= 0)[:, :, None]",
        "",
        "Padding sees itself alone",
    ),
    local(
        "mask_padding_sees_nothing",
        "leaves rows of padding empty",
        "(apart == 0)",
        "(apart == 0) & (sentences >= 0)[:, :, None]",
        "is wrong",
    ),
    local(
        "mask_sentence_0",
        "takes sentence 0 for padding",
        "(sentences >= 0)",
        "(sentences > 0)",
        "is wrong",
    ),
    local(
        "mask_others_alone",
        "lets no token see itself",
        "    return same | (apart == 0)",
        "    return same & (apart > 0)",
        "Each token sees itself",
    ),
    local(
        "mask_upside_down",
        "means by True: masked",
        "    return same | (apart == 0)",
        "    return ~(same | (apart == 0))",
        "True means: may see",
    ),
    local(
        "mask_of_numbers",
        "returns 0 and 1",
        "    return same | (apart == 0)",
        "    return (same | (apart == 0)).long()",
        "must be bool",
    ),
    local(
        "mask_backwards_alone",
        "sees to the left alone",
        "(place[:, None] - place).abs()",
        "(place[:, None] - place)",
        "is wrong",
    ),
    local(
        "mask_first_sentence_s",
        "has one mask for all rows",
        "    return same | (apart == 0)",
        "    return (same | (apart == 0))[:1].expand_as(same)",
        "is wrong",
    ),
    local(
        "mask_global_sees_all",
        "lets a global layer see all sentences",
        "    return same | (apart == 0)",
        "    return (same | (apart == 0)) if reach is not None else torch.ones_like(same)",
        "A token sees its own sentence alone",
    ),
    local(
        "mask_reach_0",
        "takes `reach` 0 for a global layer",
        "if reach is not None:",
        "if reach:",
        "With a reach of 0",
        HIDDEN,
    ),
    local(
        "mask_reach_cut",
        "sees 64 positions at most on each side",
        "apart <= reach",
        "apart <= min(reach, 64)",
        "With a reach above a hundred",
        HIDDEN,
    ),
]

CONTRAST = [
    losses(
        "nce_right_ones_compete",
        "has other right documents below the line",
        "    losses = torch.nn.functional.softplus(against[:, None] - cosines / temperature)",
        "    losses = -(cosines / temperature).masked_fill(relation < 0, -torch.inf).log_softmax(dim=1)",
        "Right documents do not compete",
        also="contrast-edges",
    ),
    losses(
        "nce_unknown_are_wrong",
        "takes unknown documents for wrong ones",
        "wrong, right = relation == 0, relation == 1",
        "wrong, right = relation != 1, relation == 1",
        "Documents with -1 are left out",
        also="contrast-edges",
    ),
    losses(
        "nce_unknown_are_right",
        "takes unknown documents for right ones",
        "wrong, right = relation == 0, relation == 1",
        "wrong, right = relation == 0, relation.bool()",
        "losses is wrong",
        also="contrast-edges",
    ),
    losses(
        "nce_sum",
        "adds up over the right documents",
        " / right.sum(dim=1)",
        "",
        "yours is the sum",
        also="contrast-edges",
    ),
    losses(
        "nce_mean_over_documents",
        "divides by the number of all documents",
        "right.sum(dim=1)",
        "right.shape[1]",
        "Divide by the number of right documents",
        also="contrast-edges",
    ),
    losses(
        "nce_right_of_the_batch",
        "divides by the mean number of right documents",
        "/ right.sum(dim=1)",
        "/ right.sum() * len(right)",
        "not by the batch's",
        also="contrast-edges",
    ),
    losses(
        "nce_one_number",
        "returns the mean over queries",
        "    return losses,",
        "    return losses.mean(),",
        "It is one number for each query",
        also="contrast-edges",
    ),
    losses(
        "nce_products",
        "takes products for cosines",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n    documents = documents / documents.norm(dim=1, keepdim=True)\n",
        "",
        "the score is a cosine",
        also="contrast-edges",
    ),
    losses(
        "nce_documents_as_they_are",
        "divides by the lengths of the queries alone",
        "    documents = documents / documents.norm(dim=1, keepdim=True)\n",
        "",
        "losses is wrong",
        also="contrast-edges",
    ),
    losses(
        "nce_temperature_times",
        "multiplies by the temperature",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "    temperature = 1 / temperature\n    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "yours multiplies",
        also="contrast-edges",
    ),
    losses(
        "nce_temperature_left_out",
        "leaves the temperature out",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "    temperature = 1.0\n    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "Divide by the temperature",
        also="contrast-edges",
    ),
    losses(
        "nce_temperature_of_the_paper",
        "always takes temperature 0.05",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "    temperature = 0.05\n    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "Use the temperature that is given",
        also="contrast-edges",
    ),
    losses(
        "nce_right_one_missing_below",
        "leaves the right document out below the line",
        "torch.nn.functional.softplus(against[:, None] - cosines / temperature)",
        "against[:, None] - cosines / temperature",
        "stands below the line, too",
        also="contrast-edges",
    ),
    losses(
        "nce_sum_in_the_logarithm",
        "takes the logarithm of the mean share",
        "losses.masked_fill(~right, 0).sum(dim=1) / right.sum(dim=1)",
        "-(((-losses).exp() * right).sum(dim=1) / right.sum(dim=1)).log()",
        "losses is wrong",
        also="contrast-edges",
    ),
    losses(
        "nce_likelihood",
        "forgets the minus",
        "    return losses,",
        "    return -losses,",
        "The loss is minus the logarithm",
        also="contrast-edges",
    ),
    losses(
        "nce_hardest_of_all",
        "takes the nearest of all documents for the hardest",
        "cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "cosines.argmax(dim=1)",
        "It is a wrong document",
        also="contrast-edges",
    ),
    losses(
        "nce_hardest_unknown",
        "may choose an unknown document",
        "cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "cosines.masked_fill(right, -torch.inf).argmax(dim=1)",
        "Documents with -1 are left out",
        also="contrast-edges",
    ),
    losses(
        "nce_easiest",
        "chooses the wrong document with the smallest cosine",
        "cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "cosines.masked_fill(~wrong, torch.inf).argmin(dim=1)",
        "the hardest is wrong",
        also="contrast-edges",
    ),
    losses(
        "nce_hardest_among_wrong",
        "counts the hardest among the wrong ones alone",
        "cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "torch.stack([row[keep].argmax() if keep.any() else keep.sum() for row, keep in zip(cosines, wrong)])",
        "the hardest is wrong",
        also="contrast-edges",
    ),
    losses(
        "nce_both_ways",
        "adds the loss of the documents",
        "    return losses,",
        "    back = (cosines / temperature).masked_fill(relation < 0, -torch.inf).log_softmax(dim=0)\n    losses = (losses - back.masked_fill(~right, 0).sum(dim=1) / right.sum(dim=1)) / 2\n    return losses,",
        "losses is wrong",
        also="contrast-edges",
    ),
    losses(
        "nce_in_float32",
        "computes in float32",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "    queries, documents = queries.float(), documents.float()\n    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "must have dtype torch.float64",
        also="contrast-edges",
    ),
    losses(
        "nce_relation_changed",
        "makes the caller's -1 a 2",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "    relation[relation < 0] = 2\n    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "leave its input as it was",
        HIDDEN,
        also="contrast-edges",
    ),
    hardest(
        "nce_powers",
        "computes powers of e",
        "    losses = torch.nn.functional.softplus(against[:, None] - cosines / temperature)",
        "    share = (cosines / temperature).exp()\n    losses = -(share / (share + (share * wrong).sum(dim=1, keepdim=True))).log()",
        "is infinite",
    ),
    hardest(
        "nce_logarithm_of_powers",
        "adds powers of e, less the largest score of the row",
        "    losses = torch.nn.functional.softplus(against[:, None] - cosines / temperature)",
        "    scores = cosines / temperature\n    share = (scores - scores.amax(dim=1, keepdim=True)).exp()\n    losses = -(share / (share + (share * wrong).sum(dim=1, keepdim=True))).log()",
        "With a small temperature",
        HIDDEN,
    ),
    hardest(
        "nce_minus_1e4",
        "fills with -10,000 for no wrong document",
        "masked_fill(~wrong, -torch.inf).logsumexp",
        "masked_fill(~wrong, -1e4).logsumexp",
        "With a tiny temperature",
        HIDDEN,
    ),
    hardest(
        "nce_no_wrong_one",
        "gives the place of the largest of nothing",
        "    return losses, hardest.masked_fill(~wrong.any(dim=1), -1)",
        "    return losses, hardest",
        "has the loss 0 and the hardest -1",
        also="contrast-losses",
    ),
    hardest(
        "nce_documents_detached",
        "lets no gradient reach the documents",
        "    documents = documents / documents.norm(dim=1, keepdim=True)\n",
        "    documents = documents / documents.norm(dim=1, keepdim=True)\n    documents = documents.detach()\n",
        "A gradient must reach the documents",
        also="contrast-losses",
    ),
    hardest(
        "nce_queries_detached",
        "lets no gradient reach the queries",
        "    documents = documents / documents.norm(dim=1, keepdim=True)\n",
        "    documents = documents / documents.norm(dim=1, keepdim=True)\n    queries = queries.detach()\n",
        "A gradient must reach the queries",
        also="contrast-losses",
    ),
    hardest(
        "nce_lengths_detached",
        "takes lengths for constants",
        "    queries = queries / queries.norm(dim=1, keepdim=True)\n",
        "    queries = queries / queries.detach().norm(dim=1, keepdim=True)\n",
        "the gradient with respect to queries is wrong",
        HIDDEN,
        also="contrast-losses",
    ),
    hardest(
        "nce_wrong_detached",
        "lets no gradient reach the wrong documents",
        "    losses = torch.nn",
        "    against = against.detach()\n    losses = torch.nn",
        "the gradient with respect to",
        HIDDEN,
        also="contrast-losses",
    ),
    hardest(
        "nce_last_of_equals",
        "chooses the last of the hardest",
        "cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "cosines.shape[1] - 1 - cosines.masked_fill(~wrong, -torch.inf).flip(1).argmax(dim=1)",
        "the hardest wrong document is wrong",
        HIDDEN,
        also="contrast-losses",
    ),
    hardest(
        "nce_nearly_equal",
        "takes cosines for equal that agree to five digits",
        "cosines.masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "cosines.round(decimals=5).masked_fill(~wrong, -torch.inf).argmax(dim=1)",
        "the hardest wrong document is wrong",
        HIDDEN,
    ),
    hardest(
        "nce_short_vectors",
        "divides by 0.001 at least",
        "queries.norm(dim=1, keepdim=True)",
        "queries.norm(dim=1, keepdim=True).clamp(min=1e-3)",
        "With very short vectors",
        HIDDEN,
    ),
    hardest(
        "nce_largest_cosine_0",
        "starts the search for the hardest at the cosine 0",
        "~wrong, -torch.inf).argmax",
        "~wrong, 0).argmax",
        "the hardest wrong document is wrong",
        HIDDEN,
        also="contrast-losses",
    ),
]

LORA = [
    adapted(
        "lora_last_for_none",
        "takes the last adapter for -1",
        "    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)\n",
        "    A, B = down[adapter], up[adapter]\n",
        "index -1 is the last one",
        also="lora-gradients",
    ),
    adapted(
        "lora_first_for_none",
        "takes the first adapter for -1",
        "    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)\n",
        "    A, B = down[chosen], up[chosen]\n",
        "A text with -1 asks for no adapter",
        also="lora-gradients",
    ),
    adapted(
        "lora_first_for_all",
        "takes the first adapter for all texts",
        "chosen = adapter.clamp(min=0)",
        "chosen = torch.zeros_like(adapter)",
        "Each text has an adapter of its own",
        also="lora-gradients",
    ),
    adapted(
        "lora_nothing_for_none",
        "gives 0 to texts without adapter",
        "frozen + scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)",
        "(frozen + scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)).masked_fill(none, 0)",
        "the result is wrong",
        also="lora-gradients",
    ),
    adapted(
        "lora_not_divided",
        "multiplies by alpha",
        "(rank if alpha is None else alpha) / rank",
        "1.0 if alpha is None else alpha",
        "Divide alpha by the rank",
        also="lora-gradients",
    ),
    adapted(
        "lora_not_scaled",
        "leaves the scale out",
        "(rank if alpha is None else alpha) / rank",
        "1.0",
        "Multiply by alpha / r",
        also="lora-gradients",
    ),
    adapted(
        "lora_alpha_1",
        "takes 1 for alpha if there is none",
        "(rank if alpha is None else alpha) / rank",
        "(1 if alpha is None else alpha) / rank",
        "If alpha is None, it is r",
        also="lora-gradients",
    ),
    adapted(
        "lora_whole_scale",
        "divides without a rest",
        "(rank if alpha is None else alpha) / rank",
        "(rank if alpha is None else alpha) // rank",
        "the result is wrong",
        also="lora-gradients",
    ),
    adapted(
        "lora_rank_of_up",
        "takes the number of output features for the rank",
        "rank = down.shape[1]",
        "rank = up.shape[1]",
        "the result is wrong",
        also="lora-gradients",
    ),
    adapted(
        "lora_without_bias",
        "leaves the bias out",
        "frozen + bias.detach()",
        "frozen",
        "The bias is missing",
        also="lora-gradients",
    ),
    adapted(
        "lora_bias_twice",
        "scales the bias, too",
        "frozen + bias.detach()",
        "frozen + scale * bias.detach()",
        "is wrong",
        HIDDEN,
        also="lora-gradients",
    ),
    adapted(
        "lora_if_bias",
        "asks whether a tensor is true",
        "if bias is not None:",
        "if bias:",
        "Boolean value of Tensor",
        also="lora-gradients",
    ),
    adapted(
        "lora_scaled_whole",
        "scales the frozen layer, too",
        "frozen + scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)",
        "scale * (frozen + hidden @ A.transpose(1, 2) @ B.transpose(1, 2))",
        "is wrong",
        also="lora-gradients",
    ),
    adapted(
        "lora_alpha_0",
        "takes alpha 0 for none",
        "rank if alpha is None else alpha",
        "alpha or rank",
        "With alpha 0",
        HIDDEN,
    ),
    adapted(
        "lora_whole_alpha",
        "takes alpha for a whole number",
        "(rank if alpha is None else alpha)",
        "int(rank if alpha is None else alpha)",
        "With an alpha that is no whole number",
        HIDDEN,
    ),
    adapted(
        "lora_adapter_changed",
        "makes the caller's -1 a 0",
        "adapter.clamp(min=0)",
        "adapter.clamp_(min=0)",
        "leave its input as it was",
        HIDDEN,
        also="lora-gradients",
    ),
    adapted(
        "lora_in_float32",
        "returns float32",
        "frozen + scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)",
        "(frozen + scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)).float()",
        "must have dtype torch.float64",
        also="lora-gradients",
    ),
    frozen(
        "lora_trains_the_weight",
        "lets a gradient reach the weight",
        "weight.detach()",
        "weight",
        "A gradient reaches the weight",
        also="lora-values",
    ),
    frozen(
        "lora_trains_the_bias",
        "lets a gradient reach the bias",
        "bias.detach()",
        "bias",
        "A gradient reaches the bias",
        also="lora-values",
    ),
    frozen(
        "lora_frozen_layer_cut",
        "lets no gradient through the frozen layer",
        "    frozen = hidden @ weight.detach().T  # [B, T, E]",
        "    frozen = (hidden @ weight.T).detach()",
        "the gradient with respect to hidden is wrong",
        HIDDEN,
        also="lora-values",
    ),
    frozen(
        "lora_hidden_cut",
        "lets no gradient through the adapter",
        "scale * hidden @",
        "scale * hidden.detach() @",
        "the gradient with respect to hidden is wrong",
        HIDDEN,
        also="lora-values",
    ),
    frozen(
        "lora_hidden_detached",
        "lets no gradient reach the text",
        "    frozen = hidden @",
        "    hidden = hidden.detach()\n    frozen = hidden @",
        "No gradient reaches hidden",
        also="lora-values",
    ),
    frozen(
        "lora_down_detached",
        "trains up alone",
        "down[chosen]",
        "down.detach()[chosen]",
        "No gradient reaches down",
        also="lora-values",
    ),
    frozen(
        "lora_times_zero",
        "multiplies the adapter of a text without one by 0, which leaves nan a nan",
        "    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)\n",
        "    keep = (adapter >= 0)[:, None, None]\n    A, B = down[chosen] * keep, up[chosen] * keep\n",
        "contains nan",
        HIDDEN,
    ),
    frozen(
        "lora_one_hot",
        "multiplies all adapters by 0 or 1, which leaves nan a nan",
        "    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)\n",
        "    which = (adapter[:, None] == torch.arange(len(down), device=down.device)).to(down.dtype)\n    A, B = torch.einsum('ba,ard->brd', which, down), torch.einsum('ba,aer->ber', which, up)\n",
        "contains nan",
        HIDDEN,
    ),
    frozen(
        "lora_filled_late",
        "leaves out the result alone: nan goes into the gradient",
        "    A, B = down[chosen].masked_fill(none, 0), up[chosen].masked_fill(none, 0)\n    frozen = hidden",
        "    A, B = down[chosen], up[chosen]\n    added = (scale * hidden @ A.transpose(1, 2) @ B.transpose(1, 2)).masked_fill(none, 0)\n    return hidden @ weight.detach().T + (0 if bias is None else bias.detach()) + added\n    frozen = hidden",
        "the gradient with respect to hidden contains nan",
        HIDDEN,
    ),
]

MERGE = [
    merged(
        "merge_without_shares",
        "adds each adapter whole",
        'torch.einsum("a,aer,ard->ed", shares, up, down)',
        'torch.einsum("aer,ard->ed", up, down)',
        "Multiply each adapter by its share",
    ),
    merged(
        "merge_first_alone",
        "adds the first adapter alone",
        'torch.einsum("a,aer,ard->ed", shares, up, down)',
        "shares[0] * up[0] @ down[0]",
        "Add all adapters",
    ),
    merged(
        "merge_not_divided",
        "multiplies by alpha",
        "(rank if alpha is None else alpha) / rank",
        "1.0 * (rank if alpha is None else alpha)",
        "Divide alpha by the rank",
    ),
    merged(
        "merge_alpha_1",
        "takes 1 for alpha if there is none",
        "(rank if alpha is None else alpha) / rank",
        "(1 if alpha is None else alpha) / rank",
        "the matrix is wrong",
    ),
    merged(
        "merge_update_alone",
        "returns the update without W",
        "(weight + scale * product)",
        "(scale * product)",
        "W itself is missing",
    ),
    merged(
        "merge_softmax",
        "makes shares add up to 1",
        "shares, up, down)",
        "shares.softmax(0), up, down)",
        "made to add up to 1",
    ),
    merged(
        "merge_normalised",
        "divides the shares by their sum",
        "shares, up, down)",
        "shares / shares.sum(), up, down)",
        "the matrix is wrong",
    ),
    merged(
        "merge_adds_first",
        "adds up ups and downs, and multiplies then",
        'torch.einsum("a,aer,ard->ed", shares, up, down)',
        "(shares[:, None, None] * up).sum(0) @ down.sum(0)",
        "yours adds first",
    ),
    merged(
        "merge_positive_shares",
        "takes shares without their sign",
        "shares, up, down)",
        "shares.abs(), up, down)",
        "the matrix is wrong",
    ),
    merged(
        "merge_in_place",
        "adds to the caller's matrix",
        "    return (weight + scale * product).to(weight.dtype).detach()",
        "    weight.data += (scale * product).to(weight.dtype)\n    return weight.detach()",
        "must leave its arguments",
    ),
    merged(
        "merge_trained",
        "leaves the result with a gradient",
        ".to(weight.dtype).detach()",
        ".to(weight.dtype)",
        "A merged matrix is not trained",
    ),
    merged(
        "merge_dtype_of_adapters",
        "returns the dtype of the adapters",
        ".to(weight.dtype).detach()",
        ".detach()",
        "With adapters that are more precise than the matrix",
        HIDDEN,
    ),
    merged(
        "merge_rounds_adapters",
        "rounds the product before it is added",
        "scale * product)",
        "(scale * product).to(weight.dtype))",
        "With adapters that nearly take the matrix away",
        HIDDEN,
    ),
    merged(
        "merge_rounds_shares",
        "makes shares and adapters as imprecise as the matrix",
        'torch.einsum("a,aer,ard->ed", shares, up, down)',
        'torch.einsum("a,aer,ard->ed", shares.to(weight.dtype), up.to(weight.dtype), down.to(weight.dtype))',
        "With adapters that nearly take the matrix away",
        HIDDEN,
    ),
    merged(
        "merge_alpha_0",
        "takes alpha 0 for none",
        "rank if alpha is None else alpha",
        "alpha or rank",
        "With alpha 0",
        HIDDEN,
    ),
    merged(
        "merge_rank_of_up",
        "takes the number of output features for the rank",
        "rank = down.shape[1]",
        "rank = up.shape[1]",
        "the matrix is wrong",
    ),
]

NDCG = [
    ranked(
        "ndcg_linear",
        "has documents earn g, as the library does",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    gains = (gains.double() + 1).log2()\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "yours earns g",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_power",
        "does not subtract 1",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    gains = (2.0 ** gains.double() + 1).log2()\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "Subtract 1",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_best_of_found",
        "takes the best order of what was found",
        "(2.0 ** gains.double() - 1).sort(dim=1, descending=True).values[:, :k]",
        "earned.sort(dim=1, descending=True).values[:, :k]",
        "that of all documents, found or not",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_ranks_what_is_lost",
        "ranks what was not found by its score",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    found = torch.ones_like(found)\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "stands nowhere in the ranking",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_lost_at_0",
        "gives what was not found the score 0",
        "scores.masked_fill(~found, -torch.inf)",
        "scores.masked_fill(~found, 0)",
        "nDCG is wrong",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_whole_ranking",
        "does not end at place k",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    k = scores.shape[1]\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "Only the first k places count",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_at_10",
        "always takes k = 10",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    k = 10\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "Only the first k places count",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_best_whole",
        "ends the ranking at place k, but not the best order",
        "(best * discounts).sum(dim=1)",
        "((2.0 ** gains.double() - 1).sort(dim=1, descending=True).values / torch.arange(2, 2 + gains.shape[1], device=gains.device).double().log2()).sum(dim=1)",
        "nDCG is wrong",
        HIDDEN,
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_places_from_0",
        "begins with log2(2 + place)",
        "torch.arange(1, earned",
        "torch.arange(2, 1 + earned",
        "Places are counted from 1",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_first_two_alike",
        "discounts from the second place on, by log2 of the place",
        "discounts = 1 / (1 + places).double().log2()",
        "discounts = 1 / places.clamp(min=2).double().log2()",
        "nDCG is wrong",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_reciprocal",
        "discounts by the place",
        "1 / (1 + places).double().log2()",
        "1 / places.double()",
        "nDCG is wrong",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_ascending",
        "puts the smallest score first",
        "order = ranked.argsort(dim=1, descending=True",
        "order = ranked.argsort(dim=1, descending=False",
        "nDCG is wrong",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_not_divided",
        "returns DCG",
        " / (best * discounts).sum(dim=1)",
        "",
        "nDCG is wrong",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_mean",
        "returns the mean over the queries",
        "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)",
        "    return (((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)).mean()",
        "must have shape",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_k_places",
        "has a discount for each of k places, even if there are fewer documents",
        "torch.arange(1, earned.shape[1] + 1",
        "torch.arange(1, k + 1",
        "must match",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_grades_to_3",
        "knows grades up to 3",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    gains = gains.clamp(max=3)\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "nDCG is wrong",
    ),
    ranked(
        "ndcg_returns_double",
        "returns float64 whatever comes",
        ".to(scores.dtype)",
        "",
        "must have dtype torch.float32",
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_small_integers",
        "computes powers in 8 bits",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    gains = gains.clamp(max=6)\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "With grades above 6",
        HIDDEN,
    ),
    ranked(
        "ndcg_in_float32",
        "computes discounts in float32",
        "(1 + places).double().log2()",
        "(1 + places).log2()",
        "is wrong",
        HIDDEN,
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_scores_changed",
        "fills the caller's scores",
        "scores.masked_fill(",
        "scores.masked_fill_(",
        "leave its input as it was",
        HIDDEN,
        also="ndcg-edges",
    ),
    ranked(
        "ndcg_lost_at_minus_1e9",
        "gives what was not found the score -1e9",
        "scores.masked_fill(~found, -torch.inf)",
        "scores.masked_fill(~found, -1e9)",
        "With scores that are very negative",
        HIDDEN,
    ),
    ties(
        "ndcg_first_of_equals",
        "leaves equal scores as they stand",
        "worst = earned.argsort(dim=1)  # the least relevant first",
        "worst = torch.arange(earned.shape[1], device=earned.device).expand_as(gains)",
        "Of equal scores the least relevant",
    ),
    ties(
        "ndcg_last_of_equals",
        "has the last of equal scores first, as TREC's program does",
        "worst = earned.argsort(dim=1)  # the least relevant first",
        "worst = torch.arange(earned.shape[1] - 1, -1, -1, device=earned.device).expand_as(gains)",
        "Of equal scores the least relevant",
    ),
    ties(
        "ndcg_best_of_equals",
        "has the most relevant of equal scores first",
        "earned.argsort(dim=1)",
        "earned.argsort(dim=1, descending=True)",
        "Of equal scores the least relevant",
    ),
    ties(
        "ndcg_mean_of_equals",
        "has equal scores share what they earn, as scikit-learn does",
        "    best =",
        "    marks = ranked.gather(1, order)\n    alike = (marks[:, :, None] == marks[:, None]).double()\n    whole = (2.0 ** gains.double() - 1).masked_fill(~found, 0).gather(1, worst).gather(1, order)\n    earned = ((alike @ whole[:, :, None])[..., 0] / alike.sum(2))[:, :k]\n    best =",
        "Of equal scores the least relevant",
    ),
    ties(
        "ndcg_nothing_to_find_0",
        "gives 0 where nothing is relevant",
        "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)",
        "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype).nan_to_num(0.0)",
        "has the value nan",
        also="ndcg-values",
    ),
    ties(
        "ndcg_nothing_to_find_1",
        "gives 1 where nothing is relevant",
        "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype)",
        "    return ((earned * discounts).sum(dim=1) / (best * discounts).sum(dim=1)).to(scores.dtype).nan_to_num(1.0)",
        "has the value nan",
        also="ndcg-values",
    ),
    ties(
        "ndcg_refuses_nothing_to_find",
        "raises an error where nothing is relevant",
        "    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "    if not (gains > 0).any(dim=1).all():\n        raise ValueError('nothing to find')\n    earned = (2.0 ** gains.double() - 1).masked_fill(~found, 0)  # [Q, N]\n",
        "nothing to find",
        also="ndcg-values",
    ),
    ties(
        "ndcg_lost_times_0",
        "multiplies what was not found by 0, which leaves nan a nan",
        "scores.masked_fill(~found, -torch.inf)",
        "(scores * found - 1e30 * ~found)",
        "Its score may be nan",
    ),
    ties(
        "ndcg_nearly_equal",
        "takes scores for equal that agree to six digits",
        "scores.masked_fill(~found, -torch.inf)",
        "scores.round(decimals=6).masked_fill(~found, -torch.inf)",
        "With scores that are nearly equal",
        HIDDEN,
    ),
    ties(
        "ndcg_unstable",
        "breaks ties by a tiny amount of the gain",
        "    ranked = ",
        "    scores = scores - 1e-7 * gains\n    ranked = ",
        "With scores that are nearly equal",
        HIDDEN,
    ),
]

CHECK_OF_EXAMPLES = """def check_join(implementation):
    sentences, positions = implementation([2, 3, 1], 4)
    assert sentences.tolist() == [[0, 0, 2, -1], [1, 1, 1, -1]]
    assert positions.tolist() == [[0, 1, 0, 0], [0, 1, 2, 0]]
    assert implementation([2, 3, 0, 2], 4)[0].tolist() == [[0, 0, 3, 3], [1, 1, 1, -1]]"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    for lengths in ([3, 1, 1, 4], [4, 0, 2, 3]):
        sentences, positions = implementation(lengths, 4)
        assert (sentences >= 0).sum() == sum(lengths) and (positions[sentences < 0] == 0).all()
    try:
        implementation([5], 4)
    except ValueError as error:
        assert 'a row' in str(error)"""
)
CHECKS = wrong_checks(
    "join",
    "implementation([1], 2)",
    "a tight fit; changed arguments; empty input; errors that are not raised; number types; the order",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [*ROTARY, *DISTANCE, *GATES, *MASKS, *CONTRAST, *LORA, *MERGE, *NDCG, *CHECKS]

ROTATE_COMPLEX = """def rotate(vectors, positions, base=10000.0, features=None):
    R = features or vectors.size(-1)
    i = torch.arange(R // 2, dtype=torch.float64, device=vectors.device)
    angles = torch.einsum("bt,i->bti", positions.double(), torch.pow(base, -2 * i / R))
    turns = torch.polar(torch.ones_like(angles), angles).unsqueeze(1)
    pairs = torch.complex(vectors[..., 0:R:2].double(), vectors[..., 1:R:2].double())
    turned = torch.view_as_real(pairs * turns).reshape(*vectors.shape[:-1], R)
    return torch.cat((turned.to(vectors.dtype), vectors[..., R:]), dim=3)"""
ROTATE_IN_A_COPY = """def rotate(vectors, positions, base=10000.0, features=None):
    R = vectors.shape[-1] if features is None else features
    result = vectors.clone()
    for i in range(R // 2):
        angle = (positions.double() * math.exp(-2 * i * math.log(base) / R))[:, None]
        sine, cosine = angle.sin(), angle.cos()
        a, b = vectors[..., 2 * i].double(), vectors[..., 2 * i + 1].double()
        result[..., 2 * i] = (a * cosine - b * sine).to(vectors.dtype)
        result[..., 2 * i + 1] = (b * cosine + a * sine).to(vectors.dtype)
    return result"""
DISTANCE_BY_ROTATE = """def scores_by_distance(queries, keys, distance, base=10000.0):
    rows = []
    for away in distance:
        turned = rotate(keys[:, None], away.expand(len(keys), -1), base)[:, 0]
        rows.append(turned)
    turned = torch.stack(rows, dim=1)
    return torch.einsum("btd,btsd->bts", queries, turned)"""
DISTANCE_COMPLEX = """def scores_by_distance(queries, keys, distance, base=10000.0):
    halves = queries.shape[-1] // 2
    speed = base ** (-torch.arange(halves, device=queries.device).double() / halves)
    q = torch.view_as_complex(queries.double().unflatten(-1, (halves, 2)))
    k = torch.view_as_complex(keys.double().unflatten(-1, (halves, 2)))
    angle = distance.double().unsqueeze(-1) * speed
    turn = torch.complex(angle.cos(), angle.sin())
    return torch.einsum("bti,bsi,tsi->bts", q.conj(), k, turn).real.to(queries.dtype)"""
GEGLU_BY_LOGARITHM = """def geglu(hidden, weight, output):
    pairs = torch.einsum("btd,fpd->btfp", hidden, weight.reshape(-1, 2, weight.shape[1]))
    z, v = pairs.unbind(-1)
    gates = torch.special.log_ndtr(z).exp()
    return torch.einsum("btf,df->btd", z * gates * v, output), gates"""
GEGLU_BY_LINEAR = """def geglu(hidden, weight, output):
    both = torch.nn.functional.linear(hidden, weight).unflatten(2, (-1, 2))
    z = both.select(3, 0)
    opened = torch.special.erfc(z.neg().mul(0.5**0.5)).div(2)
    return torch.nn.functional.linear(opened.mul(z) * both.select(3, 1), output), opened"""
MASK_BY_LOOPS = """def local_mask(sentences, reach=None):
    B, T = sentences.shape
    mask = torch.zeros(B, T, T, dtype=torch.bool)
    for b, row in enumerate(sentences.tolist()):
        for i in range(T):
            mask[b, i, i] = True
            if row[i] < 0:
                continue
            begin = row.index(row[i])
            end = begin + row.count(row[i])
            width = T if reach is None or i == begin else reach
            mask[b, i, max(begin, i - width) : min(end, i + width + 1)] = True
            mask[b, i, begin] = True
    return mask.to(sentences.device)"""
MASK_BY_FIRST = """def local_mask(sentences, reach=None):
    T, names = sentences.shape[1], sentences.unsqueeze(2)
    real = torch.ne(names, -1)
    together = torch.logical_and(names.eq(sentences.unsqueeze(1)), real)
    begin = together.int().argmax(dim=2)
    place = torch.arange(T, device=sentences.device)
    heads = begin.eq(place) & real[..., 0]
    if reach is not None:
        band = torch.ones(T, T, dtype=torch.bool, device=sentences.device)
        band = band.triu(-reach).tril(reach)
        together &= band | heads[:, None] | heads[:, :, None]
    together.diagonal(dim1=1, dim2=2).fill_(True)
    return together"""
NCE_BY_QUERY = """def info_nce(queries, documents, relation, temperature=0.05):
    losses, hardest = [], []
    for query, row in zip(queries, relation):
        cosines = torch.nn.functional.normalize(documents, dim=1) @ (query / torch.linalg.norm(query))
        scores = cosines / temperature
        bad = torch.nonzero(row == 0).flatten()
        costs = []
        for d in torch.nonzero(row == 1).flatten():
            below = torch.cat([scores[d : d + 1], scores[bad]])
            costs.append(torch.logsumexp(below, dim=0) - scores[d])
        losses.append(sum(costs) / len(costs))
        hardest.append(bad[cosines[bad].argmax()].item() if len(bad) else -1)
    return torch.stack(losses), torch.tensor(hardest, device=relation.device)"""
NCE_BY_CROSS_ENTROPY = """def info_nce(queries, documents, relation, temperature=0.05):
    cosines = torch.nn.functional.normalize(queries) @ torch.nn.functional.normalize(documents).t()
    b, d = (relation == 1).nonzero(as_tuple=True)
    scores = (cosines / temperature)[b]
    shown = (relation[b] == 0).scatter(1, d[:, None], True)
    each = torch.nn.functional.cross_entropy(
        torch.where(shown, scores, torch.full_like(scores, -math.inf)), d, reduction="none"
    )
    count = torch.bincount(b, minlength=len(queries)).to(each.dtype)
    losses = torch.zeros_like(cosines[:, 0]).index_add(0, b, each) / count
    with torch.no_grad():
        masked = torch.where(relation == 0, cosines, -2.0)
        best, place = masked.max(dim=1)
        return_place = torch.where(best > -1.5, place, -1)
    return losses, return_place"""
LORA_BY_TEXT = """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    r = down.size(1)
    alpha = r if alpha is None else alpha
    with torch.no_grad():
        W = weight.clone()
        b = None if bias is None else bias.clone()
    rows = []
    for text, a in zip(hidden, adapter.tolist()):
        y = torch.nn.functional.linear(text, W, b)
        if a >= 0:
            y = y + torch.nn.functional.linear(torch.nn.functional.linear(text, down[a]), up[a]) * (alpha / r)
        rows.append(y)
    return torch.stack(rows)"""
LORA_BY_GROUP = """def lora(hidden, weight, bias, down, up, adapter, alpha=None):
    scale = 1.0 if alpha is None else alpha / down.shape[-2]
    result = torch.einsum("btd,ed->bte", hidden, weight.detach())
    if bias is not None:
        result = result + bias.detach()
    for a in adapter.unique().tolist():
        if a == -1:
            continue
        rows = (adapter == a).nonzero().squeeze(1)
        result = result.index_add(0, rows, hidden[rows] @ (scale * down[a].T) @ up[a].T)
    return result"""
MERGE_ONE_BY_ONE = """def merge(weight, down, up, shares, alpha=None):
    with torch.no_grad():
        scale = 1.0 if alpha is None else alpha / down.shape[1]
        total = weight.to(torch.promote_types(weight.dtype, down.dtype), copy=True)
        for share, A, B in zip(shares, down, up):
            total += scale * share * (B @ A)
        return total.to(weight.dtype)"""
MERGE_WIDE = """@torch.no_grad()
def merge(weight, down, up, shares, alpha=None):
    A, r, D = down.shape
    wide = (up * shares[:, None, None]).permute(1, 0, 2).reshape(-1, A * r)
    update = wide.double() @ down.reshape(A * r, D).double()
    return (weight.double() + update * ((alpha if alpha is not None else r) / r)).type_as(weight)"""
NDCG_BY_SORTED = """def ndcg(scores, found, gains, k=10):
    results = []
    for q in range(len(scores)):
        earned = [2**g - 1 for g in gains[q].tolist()]
        listed = [n for n in range(len(earned)) if found[q, n]]
        listed.sort(key=lambda n: (-scores[q, n].item(), earned[n]))
        total = sum(earned[n] / math.log2(i + 2) for i, n in enumerate(listed[:k]))
        ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(earned)[::-1][:k]))
        results.append(total / ideal if ideal > 0 else float("nan"))
    return torch.tensor(results, dtype=scores.dtype, device=scores.device)"""
NDCG_BY_COUNTING = """def ndcg(scores, found, gains, k=10):
    earned = torch.exp2(gains.double()) - 1
    s = scores[:, :, None]
    place = torch.arange(scores.shape[1], device=scores.device)
    behind = (gains[:, None] < gains[:, :, None]) | (
        (gains[:, None] == gains[:, :, None]) & (place < place[:, None])
    )
    before = (scores[:, None] > s) | ((scores[:, None] == s) & behind)
    rank = 1 + (before & found[:, None]).sum(2)
    best = 1 + ((gains[:, None] > gains[:, :, None]) | ((gains[:, None] == gains[:, :, None]) & (place < place[:, None]))).sum(2)
    dcg = lambda rank, keep: torch.where(keep & (rank <= k), earned / torch.log2(1.0 + rank.double()), 0.0).sum(1)
    return (dcg(rank, found) / dcg(best, found | True)).to(scores)"""
RIGHT_ANSWERS = [
    RightAnswer(
        "complex_numbers",
        "pairs as complex numbers, the gate's logarithm, a band of ones, cross-entropy of right pairs, adapters in one wide product",
        {
            "turn": ROTATE_COMPLEX,
            "distance": DISTANCE_COMPLEX,
            "gate": GEGLU_BY_LOGARITHM,
            "near": MASK_BY_FIRST,
            "contrast": NCE_BY_CROSS_ENTROPY,
            "adapt": LORA_BY_GROUP,
            "fold": MERGE_WIDE,
            "rank": NDCG_BY_COUNTING,
        },
    ),
    RightAnswer(
        "one_by_one",
        "pairs, tokens, queries, texts and documents in loops",
        {
            "turn": ROTATE_IN_A_COPY,
            "near": MASK_BY_LOOPS,
            "contrast": NCE_BY_QUERY,
            "adapt": LORA_BY_TEXT,
            "fold": MERGE_ONE_BY_ONE,
            "rank": NDCG_BY_SORTED,
        },
    ),
    RightAnswer(
        "keys_turned_by_the_distance",
        "turns the keys by their distances with the own `rotate`, and leaves queries as they are",
        {"distance": DISTANCE_BY_ROTATE},
    ),
    RightAnswer(
        "torch_s_linear",
        "torch's linear layers and its methods for both parts of the gate",
        {"gate": GEGLU_BY_LINEAR},
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with a first fit of its own on drawn inputs",
        {
            "own-check": """def check_join(implementation):
    def own(lengths, width):
        rows = []
        for n, length in enumerate(lengths):
            tokens = [(n, k) for k in range(length)]
            with_room = [row for row in rows if len(row) + length <= width]
            if not with_room and length:
                rows.append(tokens)
            elif length:
                with_room[0].extend(tokens)
        return [row + [(-1, 0)] * (width - len(row)) for row in rows]

    lists = [[], [0], [0, 0, 2], [9, 9], [1] * 200, [3, 4, 5, 0, 5, 0, 1, 2]]
    lists += [torch.randint(0, 6, (n,)).tolist() for n in (1, 5, 9, 13, 30, 50)]
    for lengths in lists:
        for width in (max([1, *lengths]), 9, 13):
            before = lengths[:]
            sentences, positions = implementation(lengths, width)
            assert lengths == before and (sentences.dtype, positions.dtype) == (torch.int64,) * 2
            rows = own(lengths, width)
            assert tuple(sentences.shape) == tuple(positions.shape) == (len(rows), width)
            assert sentences.tolist() == [[n for n, _ in row] for row in rows]
            assert positions.tolist() == [[k for _, k in row] for row in rows]
    try:
        implementation([1, 5, 2], 4)
        raised = False
    except ValueError:
        raised = True
    assert raised"""
        },
    ),
]
