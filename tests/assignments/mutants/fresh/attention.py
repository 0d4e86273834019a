"""Wrong answers to the attention assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
attention`` says which get full marks.
"""

from fresh import Fresh

from course_tools.grading.assignments.mutants import Changes, RightAnswer

FILLED = 'scores.masked_fill(~mask, float("-inf"))'
LAST_SOFTMAX = 'torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)'
HIDDEN = "torch.tanh((query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen)"
DOT = "query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
VARIANCE = "scores[allowed].var().item()"
ENTROPY = "-(log_weights.exp() * log_weights).sum(dim=-1)"
SCORED = "score(state.unsqueeze(1), encoder_states).squeeze(1)  # [B, S]"
CONTEXT = "context = (weights.unsqueeze(1) @ encoder_states).squeeze(1)"
LOG_PROBS = "torch.log_softmax(combined @ W_output.T, dim=-1)"
BEST = "best = weights[:target_length, :source_length].argmax(dim=-1)"
AER = "    if not predicted and not sure:\n        return 0.0\n"
RATE = "    return 1 - agreed / (len(predicted) + len(sure))"
RANKED = "order = totals.flatten().argsort(descending=True).tolist()"
LOOP_END = "        if not live:\n            break\n"
LIVE_ON = "len(extended) < beam_size"
RETURN = "    return max(finished or unfinished, key=lambda pair: pair[1])"
GATHERED = "state = state[torch.tensor([parent for parent, _, _ in extended], device=state.device)]"


def softmax(
    name: str, mistake: str, kind: str, new: str, old: str = LAST_SOFTMAX
) -> Fresh:
    changes: Changes = {"masked-softmax": (old, new)}
    return Fresh(name, mistake, kind, "masked-softmax-edges", changes)


def dot(name: str, mistake: str, kind: str, new: str) -> Fresh:
    return Fresh(name, mistake, kind, "dot-scores-values", {"dot-scores": (DOT, new)})


def additive(
    name: str, mistake: str, kind: str, new: str, old: str = "hidden @ v"
) -> Fresh:
    changes: Changes = {"additive-scores": (old, new)}
    return Fresh(name, mistake, kind, "additive-scores-values", changes)


def statistics(name: str, mistake: str, kind: str, old: str, new: str) -> Fresh:
    changes: Changes = {"dot-statistics": (old, new)}
    return Fresh(name, mistake, kind, "dot-statistics-values", changes)


def step(name: str, mistake: str, kind: str, old: str, new: str) -> Fresh:
    cell = "decoder-step-prediction"
    return Fresh(name, mistake, kind, cell, {"decoder-step": (old, new)})


def align(name: str, mistake: str, kind: str, new: str, old: str = BEST) -> Fresh:
    return Fresh(name, mistake, kind, "align-pairs", {"align": (old, new)})


def rate(name: str, mistake: str, kind: str, old: str, new: str) -> Fresh:
    return Fresh(name, mistake, kind, "align-error-rate", {"align": (old, new)})


def beam(name: str, mistake: str, kind: str, old: str, new: str) -> Fresh:
    changes: Changes = {"beam-search": (old, new)}
    return Fresh(name, mistake, kind, "beam-search-finds", changes)


MASKED_SOFTMAX = [
    softmax(
        "softmax_minus_ten_thousand",
        "gives masked scores -10000, which is not below every score",
        "numerics",
        "torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1)",
    ),
    softmax(
        "softmax_takes_a_billion_away",
        "takes 1e9 from masked scores, which leaves greater ones ahead",
        "numerics",
        "torch.softmax(scores - 1e9 * (~mask).to(scores.dtype), dim=-1)",
    ),
    softmax(
        "softmax_maximum_of_masked_scores_too",
        "takes away the greatest score of the row, masked or not, so that all may be 0",
        "numerics",
        "(e := (scores - scores.amax(-1, keepdim=True)).exp() * mask) / e.sum(-1, keepdim=True)",
    ),
    softmax(
        "softmax_one_maximum_for_the_table",
        "takes away the greatest score of the whole table; far lower rows vanish",
        "numerics",
        "(e := (scores - scores[mask].max()).exp().masked_fill(~mask, 0)) / e.sum(-1, keepdim=True)",
    ),
    softmax(
        "softmax_renormalised_with_an_epsilon",
        "masks after the softmax and divides by the rest and 1e-9",
        "numerics",
        "(w := torch.softmax(scores, -1) * mask) / (w.sum(-1, keepdim=True) + 1e-9)",
    ),
    softmax(
        "softmax_in_single_precision",
        "computes in float32 and casts back, so that float64 has 7 digits",
        "numerics",
        f"torch.softmax({FILLED}.float(), dim=-1).to(scores.dtype)",
    ),
    softmax(
        "softmax_half_gives_single",
        "gives float32 back for half precision",
        "legal input",
        f"torch.softmax({FILLED}, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))",
    ),
    softmax(
        "softmax_infinite_exponentials_hidden_by_where",
        "hides an exponential that overflowed at a masked place; its gradient is nan",
        "gradient",
        "(e := torch.where(mask, (scores - "
        + FILLED
        + ".amax(-1, keepdim=True)).exp(), torch.zeros_like(scores))) / e.sum(-1, keepdim=True)",
    ),
    softmax(
        "softmax_without_mask_has_no_gradient",
        "cuts the gradient where there is no mask",
        "gradient",
        "return torch.softmax(scores.detach(), dim=-1)",
        "return torch.softmax(scores, dim=-1)",
    ),
    softmax(
        "softmax_without_mask_over_rows",
        "without a mask takes the softmax over dimension 1",
        "legal input",
        "return torch.softmax(scores, dim=min(1, scores.dim() - 1))",
        "return torch.softmax(scores, dim=-1)",
    ),
    softmax(
        "softmax_raises_only_if_all_rows_are_empty",
        "raises only where no row allows anything",
        "cut-off",
        "if not mask.any():",
        "if not mask.any(dim=-1).all():",
    ),
    softmax(
        "softmax_mask_of_sentences_for_every_target",
        "takes a mask with fewer dimensions for one of [B, S]",
        "legal input",
        "mask = (mask.unsqueeze(-2) if mask.dim() < scores.dim() else mask).expand_as(scores)",
        "mask = mask.expand_as(scores)",
    ),
    softmax(
        "softmax_indexes_with_the_mask_as_given",
        "indexes with the mask, which must have the shape of the scores for that",
        "legal input",
        "torch.softmax(scores.clone().index_put((~given,), scores.new_tensor(-math.inf)), dim=-1)",
    )._replace(
        changes={
            "masked-softmax": (
                f"    mask = mask.expand_as(scores)\n    if not mask.any(dim=-1).all():\n"
                "        raise ValueError(\n"
                '            "a row of the mask allows no position: softmax has nothing to share out"\n'
                f"        )\n    return {LAST_SOFTMAX}",
                "    if not mask.any(dim=-1).all():\n"
                '        raise ValueError("a row allows no position")\n'
                "    filled = scores.clone()\n    filled[~mask] = -math.inf\n"
                "    return torch.softmax(filled, dim=-1)",
            )
        }
    ),
    softmax(
        "softmax_turns_the_caller_s_mask_round",
        "negates the mask in place, so that the next step reads it the wrong way round",
        "state",
        'torch.softmax(scores.masked_fill(mask.logical_not_(), float("-inf")), dim=-1)',
    ),
    softmax(
        "softmax_row_by_row",
        "goes through the rows of a table, so that a single row is no table",
        "legal input",
        "torch.stack([torch.softmax(row, -1) for row in "
        + FILLED
        + ".flatten(0, -2)]).view_as(scores)",
    ),
    softmax(
        "softmax_weights_below_a_millionth_are_0",
        "sets small weights to 0 as if they were masked",
        "cut-off",
        f"torch.nn.functional.threshold(torch.softmax({FILLED}, dim=-1), 1e-6, 0.0)",
    ),
]

SCORES = [
    additive(
        "additive_one_position_is_squeezed_away",
        "squeezes the last dimension, which goes where there is one source position",
        "legal input",
        "(hidden @ v).squeeze(-1)",
    ),
    additive(
        "additive_divides_by_the_root_of_h",
        "scales as if this were dot attention, which H = 1 does not show",
        "hard-wired",
        "hidden @ v / math.sqrt(v.shape[0])",
    ),
    additive(
        "additive_keys_computed_once_without_gradient",
        "computes the keys without gradient, so that U and the encoder learn nothing",
        "gradient",
        "torch.tanh((query @ W.T).unsqueeze(2) + (key @ U.T).detach().unsqueeze(1) + seen)",
        HIDDEN,
    ),
    additive(
        "additive_v_is_a_constant",
        "reads v through .data, so that it learns nothing",
        "gradient",
        "hidden @ v.data",
    ),
    additive(
        "additive_tanh_by_hand",
        "computes tanh from exp(2x), which overflows",
        "numerics",
        "((e := torch.exp(2 * ((query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen))) - 1) / (e + 1)",
        HIDDEN,
    ),
    additive(
        "additive_table_in_single_precision",
        "writes the scores into a table of float32",
        "numerics",
        "torch.zeros(hidden.shape[:3], device=v.device) + (hidden @ v).float()",
    ),
    additive(
        "additive_keeps_the_keys_of_last_time",
        "keeps what it computed from a tensor of keys, and never computes it again",
        "state",
        "torch.tanh((query @ W.T).unsqueeze(2) + additive_scores.__dict__.setdefault("
        "str(id(key)), key @ U.T).unsqueeze(1) + seen)",
        HIDDEN,
    ),
    additive(
        "additive_first_query_only",
        "scores the first target position for all of them",
        "legal input",
        "torch.tanh((query[:, :1] @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen)",
        HIDDEN,
    ),
    additive(
        "additive_flat_rows_of_queries",
        "adds a row of queries to a row of keys, which needs T = S or one of them 1",
        "legal input",
        "torch.tanh(query @ W.T + key @ U.T).unsqueeze(1)",
        HIDDEN,
    ),
    dot(
        "dot_whole_root",
        "takes the whole part of the square root, right for square D only",
        "hard-wired",
        "query @ key.transpose(-2, -1) / math.isqrt(query.shape[-1])",
    ),
    dot(
        "dot_root_in_single_precision",
        "takes the root of a float32 tensor, too rough for float64",
        "numerics",
        "query @ key.transpose(-2, -1) / torch.tensor(float(query.shape[-1])).sqrt()",
    ),
    dot(
        "dot_in_single_precision",
        "multiplies in float32 and casts back",
        "numerics",
        "(query.float() @ key.float().transpose(-2, -1) / math.sqrt(query.shape[-1])).to(query.dtype)",
    ),
    dot(
        "dot_size_of_all_heads",
        "divides by the root of N D where there are N heads",
        "legal input",
        "query @ key.transpose(-2, -1) / math.sqrt("
        "query.shape[-1] * (query.shape[1] if query.dim() == 4 else 1))",
    ),
    dot(
        "dot_one_leading_dimension_at_most",
        "transposes dimensions 1 and 2, whatever stands before them",
        "legal input",
        "query @ (key.transpose(1, 2) if key.dim() > 2 else key.T) / math.sqrt(query.shape[-1])",
    ),
    dot(
        "dot_keys_without_gradient",
        "treats keys as constants",
        "gradient",
        "query @ key.detach().transpose(-2, -1) / math.sqrt(query.shape[-1])",
    ),
    dot(
        "dot_scales_the_query_in_place",
        "divides the caller's query in place",
        "state",
        "query.div_(math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)",
    ),
]

STATISTICS = [
    statistics(
        "variance_of_rows_averaged",
        "averages the variances of the rows, which leaves out what lies between rows",
        "legal input",
        VARIANCE,
        "scores.var(dim=-1).mean().item()",
    ),
    statistics(
        "variance_of_batches_averaged",
        "averages the variances of the sentences",
        "legal input",
        VARIANCE,
        "scores.flatten(1).var(dim=1).mean().item()",
    ),
    statistics(
        "variance_about_0",
        "takes the mean square: nothing is taken away for the mean",
        "hard-wired",
        VARIANCE,
        "scores.square().mean().item()",
    ),
    statistics(
        "variance_from_the_mean_square",
        "takes the squared mean from the mean square, which cancels for a great mean",
        "numerics",
        VARIANCE,
        "(scores.square().mean() - scores.mean().square()).item()",
    ),
    statistics(
        "variance_with_two_degrees_less",
        "divides by the number of scores without that of rows",
        "cut-off",
        VARIANCE,
        "((scores - scores.mean()).square().sum() / max(1, scores.numel() "
        "- scores[..., 0].numel())).item()",
    ),
    statistics(
        "entropy_with_an_epsilon",
        "adds 1e-5 inside the logarithm",
        "numerics",
        ENTROPY,
        "-(log_weights.exp() * (log_weights.exp() + 1e-5).log()).sum(dim=-1)",
    ),
    statistics(
        "entropy_by_logsumexp_of_raw_scores",
        "subtracts two great numbers, the mean score and the log-sum-exp",
        "numerics",
        ENTROPY,
        "scores.logsumexp(-1) - (log_weights.exp() * scores).sum(dim=-1)",
    ),
    statistics(
        "entropy_median_of_rows",
        "takes the median of the rows",
        "legal input",
        "entropy.mean()",
        "entropy.median()",
    ),
    statistics(
        "entropy_mean_of_sentences_first_row",
        "averages the first row of each sentence only",
        "legal input",
        "entropy.mean()",
        "entropy[..., :1].mean()",
    ),
    statistics(
        "entropy_rows_of_a_table_only",
        "flattens what stands before S, which a single row has not",
        "legal input",
        "torch.log_softmax(scores.masked_fill(~allowed, -math.inf), dim=-1)",
        "torch.log_softmax(scores.masked_fill(~allowed, -math.inf).flatten(0, -2), dim=-1)",
    ),
]

DECODER_STEP = [
    step(
        "step_scores_the_wrong_way_round",
        "gives the score keys as queries, which dot products do not notice",
        "legal input",
        SCORED,
        "score(encoder_states, state.unsqueeze(1)).squeeze(-1)",
    ),
    step(
        "step_scores_scaled_again",
        "divides what the score function gives by the root of D once more",
        "hard-wired",
        SCORED,
        "score(state.unsqueeze(1), encoder_states).squeeze(1) / math.sqrt(state.shape[-1])",
    ),
    step(
        "step_weights_are_only_to_look_at",
        "mixes with weights without gradient, so that attention learns nothing",
        "gradient",
        CONTEXT,
        CONTEXT.replace("weights", "weights.detach()"),
    ),
    step(
        "step_states_mixed_without_gradient",
        "mixes encoder states without gradient",
        "gradient",
        CONTEXT,
        CONTEXT.replace("encoder_states", "encoder_states.detach()"),
    ),
    step(
        "step_state_joined_without_gradient",
        "puts a copy of the decoder state behind the context",
        "gradient",
        "torch.cat([context, state], dim=-1)",
        "torch.cat([context, state.detach()], dim=-1)",
    ),
    step(
        "step_logarithm_with_an_epsilon",
        "adds 1e-9 inside the logarithm, so that no word is less likely",
        "numerics",
        LOG_PROBS,
        "(torch.softmax(combined @ W_output.T, dim=-1) + 1e-9).log()",
    ),
    step(
        "step_logarithm_of_softmax",
        "takes the logarithm of a softmax, -inf for unlikely words",
        "numerics",
        LOG_PROBS,
        "torch.softmax(combined @ W_output.T, dim=-1).log()",
    ),
    step(
        "step_empties_the_padding",
        "sets the caller's padding to 0 in place",
        "state",
        CONTEXT,
        "encoder_states[~mask] = 0\n    " + CONTEXT,
    ),
    step(
        "step_padded_sentence_gets_no_weight",
        "gives weights 0 to a sentence of padding, where masked_softmax raises",
        "cut-off",
        "masked_softmax(scores, mask, sink)",
        'torch.softmax(scores.masked_fill(~mask, float("-inf")), -1).nan_to_num(0.0)',
    ),
    step(
        "step_mask_of_the_first_sentence",
        "masks all sentences as the first one",
        "legal input",
        "masked_softmax(scores, mask, sink)",
        "masked_softmax(scores, mask[:1], sink)",
    ),
    step(
        "step_attends_to_a_prefix",
        "takes the mask for a length, as if padding came last always",
        "hard-wired",
        "masked_softmax(scores, mask, sink)",
        "masked_softmax(scores, torch.arange(mask.shape[1], device=mask.device) < "
        "mask.sum(-1, keepdim=True), sink)",
    ),
]

ALIGNMENT = [
    align(
        "align_padding_may_win",
        "looks for the greatest weight among padding too",
        "legal input",
        "best = weights[:target_length].argmax(dim=-1)",
    ),
    align(
        "align_lengths_the_wrong_way_round",
        "cuts rows at the source's length and columns at the target's",
        "legal input",
        "best = weights[:source_length, :target_length].argmax(dim=-1)",
    ),
    align(
        "align_nearly_the_greatest",
        "takes the first weight that is close to the greatest",
        "cut-off",
        "rows = weights[:target_length, :source_length]\n"
        "    best = torch.isclose(rows, rows.amax(-1, keepdim=True)).int().argmax(dim=-1)",
    ),
    align(
        "align_whole_percent",
        "compares whole percents",
        "cut-off",
        "best = (100 * weights[:target_length, :source_length]).round().argmax(dim=-1)",
    ),
    align(
        "align_in_single_precision",
        "compares in float32",
        "numerics",
        "best = weights[:target_length, :source_length].float().argmax(dim=-1)",
    ),
    align(
        "align_in_numpy",
        "goes to numpy, which weights with a gradient refuse",
        "legal input",
        "best = weights.numpy()[:target_length, :source_length].argmax(axis=-1)",
    ),
    align(
        "align_overwrites_padding",
        "sets the caller's padding to -1 in place",
        "state",
        "weights[:, source_length:] = -1\n    best = weights[:target_length].argmax(dim=-1)",
    ),
    align(
        "align_more_than_its_share",
        "leaves out a target word whose weights are all equal",
        "cut-off",
        "    best = weights[:target_length, :source_length].max(dim=-1)\n"
        "    pairs = {(source, target) for target, source in enumerate(best.indices.tolist())"
        " if best.values[target] > 1 / source_length}",
        f"    {BEST}\n    pairs = {{(source, target) for target, source in enumerate(best.tolist())}}",
    ),
    rate(
        "rate_0_without_sure_pairs",
        "is 0 where there is no sure pair, whatever was predicted",
        "cut-off",
        "if not predicted and not sure:",
        "if not sure:",
    ),
    rate(
        "rate_1_without_a_prediction",
        "is 1 where nothing was predicted, although nothing was sure either",
        "cut-off",
        AER,
        "    if not predicted:\n        return 1.0\n",
    ),
    rate(
        "rate_0_where_either_is_empty",
        "is 0 where nothing was predicted, although pairs were sure",
        "cut-off",
        "if not predicted and not sure:",
        "if not predicted or not sure:",
    ),
    rate(
        "rate_whole_number_without_pairs",
        "gives the int 0 for two empty sets",
        "legal input",
        "return 0.0",
        "return 0",
    ),
    rate(
        "rate_whole_number_at_the_best",
        "gives max(0, rate), which is the int 0 where the rate is 0.0",
        "cut-off",
        RATE,
        "    return max(0, 1 - agreed / (len(predicted) + len(sure)))",
    ),
    rate(
        "rate_of_four_digits",
        "rounds to four digits",
        "cut-off",
        RATE,
        "    return round(1 - agreed / (len(predicted) + len(sure)), 4)",
    ),
    rate(
        "rate_keeps_of_the_prediction_what_is_possible",
        "takes impossible pairs out of the caller's prediction",
        "state",
        RATE,
        "    total = len(predicted) + len(sure)\n    predicted &= possible\n    return 1 - agreed / total",
    ),
]

BEAM_SEARCH = [
    beam(
        "beam_one_token_more",
        "takes max_length without eos",
        "cut-off",
        "range(1, max_length + 1)",
        "range(1, max_length + 2)",
    ),
    beam(
        "beam_one_token_less",
        "stops before the last token",
        "cut-off",
        "range(1, max_length + 1)",
        "range(1, max(2, max_length))",
    ),
    beam(
        "beam_finishes_among_twice_as_many",
        "sets aside an eos among the 2 K best",
        "cut-off",
        "rank < beam_size",
        "rank < 2 * beam_size",
    ),
    beam(
        "beam_finishes_one_too_many",
        "sets aside an eos that is just behind the K best",
        "cut-off",
        "rank < beam_size",
        "rank <= beam_size",
    ),
    beam(
        "beam_ends_take_a_place",
        "lets K less those that ended live on",
        "cut-off",
        LIVE_ON,
        "len(extended) < beam_size - len(finished)",
    ),
    beam(
        "beam_ends_of_this_step_take_a_place",
        "keeps K extensions, eos among them",
        "cut-off",
        "elif len(extended) < beam_size:",
        "elif rank < beam_size:",
    ),
    beam(
        "beam_one_candidate_to_spare",
        "looks at the K + 1 best extensions, as if one eos could be among them",
        "cut-off",
        RANKED,
        RANKED + "[: beam_size + 1]",
    ),
    beam(
        "beam_k_best_of_each",
        "looks at the K best extensions of each hypothesis, eos among them",
        "cut-off",
        RANKED,
        "best = log_probs.topk(min(beam_size, log_probs.shape[-1]))[0][:, -1:]\n"
        "        order = [i for i in totals.flatten().argsort(descending=True).tolist()"
        " if (log_probs >= best).flatten()[i]]",
    ),
    beam(
        "beam_stops_when_k_have_ended",
        "stops as soon as K hypotheses are finished",
        "cut-off",
        LOOP_END,
        "        if not live or len(finished) >= beam_size:\n            break\n",
    ),
    beam(
        "beam_stops_when_no_total_can_win",
        "stops when an end has a better score than every live total, but a longer"
        " sentence divides by more",
        "cut-off",
        LOOP_END,
        "        if not live or (finished and max(s for _, s in finished)"
        " >= live[0][1] / penalty(length)):\n            break\n",
    ),
    beam(
        "beam_unfinished_may_win",
        "chooses among finished and live ones at the end",
        "legal input",
        "max(finished or unfinished,",
        "max(finished + unfinished,",
    ),
    beam(
        "beam_unfinished_without_penalty",
        "gives an unfinished translation its log-probability as score",
        "legal input",
        "[(words, total / penalty(len(words))) for words, total in live]",
        "list(live)",
    ),
    beam(
        "beam_unfinished_counts_an_eos",
        "counts an eos that was never written in the length",
        "cut-off",
        "penalty(len(words))",
        "penalty(len(words) + 1)",
    ),
    beam(
        "beam_forces_an_end",
        "ends the live ones at the last step as if eos were certain",
        "legal input",
        RETURN,
        RETURN.replace(
            "finished or unfinished", "finished + [(w[:-1], s) for w, s in unfinished]"
        ),
    ),
    beam(
        "beam_states_stay_in_their_rows",
        "keeps the first rows of the state instead of the parents' ones",
        "state",
        GATHERED,
        "state = state[[min(row, len(state) - 1) for row in range(len(extended))]]",
    ),
    beam(
        "beam_states_are_flattened",
        "flattens each hypothesis's state to a vector",
        "legal input",
        GATHERED,
        GATHERED + ".flatten(1)",
    ),
    beam(
        "beam_states_are_rows_of_a_table",
        "takes the state for a table [k, size]",
        "legal input",
        GATHERED,
        GATHERED.replace("device=state.device)]", "device=state.device), :]"),
    ),
    beam(
        "beam_never_writes_bos",
        "forbids the word bos",
        "legal input",
        "        totals = so_far + log_probs  # [k, V]\n",
        "        totals = so_far + log_probs\n        totals[:, bos] = -math.inf\n",
    ),
    beam(
        "beam_never_writes_word_0",
        "forbids word 0 as padding, which is a word unless the model says so",
        "hard-wired",
        "        totals = so_far + log_probs  # [k, V]\n",
        "        totals = so_far + log_probs\n        totals[:, 0] = -math.inf\n",
    ),
    beam(
        "beam_adds_to_what_step_returned",
        "adds the totals to the step's own table in place",
        "state",
        "so_far + log_probs  # [k, V]",
        "log_probs.add_(so_far)",
    ),
    beam(
        "beam_step_for_each_hypothesis",
        "calls step once for each hypothesis",
        "legal input",
        "log_probs, state = step(state, tokens)",
        "rows = [step(state[i : i + 1], tokens[i : i + 1]) for i in range(len(tokens))]\n"
        "        log_probs, state = torch.cat([r[0] for r in rows]), torch.cat([r[1] for r in rows])",
    ),
    beam(
        "beam_multiplies_probabilities",
        "multiplies probabilities, which become 0 in long sentences",
        "numerics",
        "totals = so_far + log_probs  # [k, V]",
        "totals = (so_far.exp() * log_probs.exp()).log()",
    ),
    beam(
        "beam_in_half_precision",
        "adds up in half precision, so that close hypotheses change places",
        "numerics",
        "totals = so_far + log_probs  # [k, V]",
        "totals = (so_far + log_probs).half().to(log_probs.dtype)",
    ),
    beam(
        "beam_default_penalty_of_1",
        "has another default for alpha",
        "hard-wired",
        "alpha=0.6",
        "alpha=1.0",
    ),
    beam(
        "beam_drops_words_seen_twice",
        "takes one of two hypotheses that end in the same word",
        "legal input",
        "elif len(extended) < beam_size:",
        "elif len(extended) < beam_size and word not in [w for _, w, _ in extended]:",
    ),
]

MUTANTS = [
    *MASKED_SOFTMAX,
    *SCORES,
    *STATISTICS,
    *DECODER_STEP,
    *ALIGNMENT,
    *BEAM_SEARCH,
]

RIGHT_ANSWERS = [
    RightAnswer(
        "by_where_einsum_and_sorted_sets",
        "masks by torch.where, scores by einsum, aligns row by row",
        {
            "masked-softmax": (FILLED, 'torch.where(mask, scores, float("-inf"))'),
            "additive-scores": (
                HIDDEN,
                'torch.tanh(torch.einsum("btd,hd->bth", query, W)[:, :, None] '
                '+ torch.einsum("bsd,hd->bsh", key, U)[:, None] + seen)',
            ),
            "dot-scores": (
                DOT,
                'torch.einsum("...td,...sd->...ts", query, key) * query.size(-1) ** -0.5',
            ),
            "align": (
                BEST,
                "best = torch.tensor([int(row[:source_length].argmax()) for row in "
                "weights[:target_length]], dtype=torch.long)",
            ),
        },
    ),
    RightAnswer(
        "by_hand_with_safe_exponentials",
        "subtracts the greatest allowed score, without torch.softmax",
        {
            "masked-softmax": (
                f"return {LAST_SOFTMAX}",
                f"filled = {FILLED}\n"
                "    e = (filled - filled.amax(-1, keepdim=True).detach()).exp()\n"
                "    return e / e.sum(-1, keepdim=True)",
            ),
            "dot-scores": (DOT, "query / query.shape[-1] ** 0.5 @ key.mT"),
            "decoder-step": (
                CONTEXT,
                'context = torch.einsum("bs,bsd->bd", weights, encoder_states)',
            ),
        },
    ),
    RightAnswer(
        "statistics_by_entr_and_population",
        "takes torch's own entropy and the variance of a population",
        {
            "dot-statistics": (
                f"    entropy = {ENTROPY}\n    return {VARIANCE}, entropy.mean().item()",
                "    entropy = torch.special.entr(log_weights.exp().masked_fill(~allowed, 0)).sum(-1)\n"
                "    return float(scores[allowed].var(correction=0)), float(entropy.mean())",
            )
        },
    ),
    RightAnswer(
        "beam_takes_twice_as_many_candidates",
        "looks at the 2 K best, of which at most K end, and adds in Python",
        {
            "beam-search": (
                RANKED,
                "order = totals.flatten().topk(min(2 * beam_size, totals.numel())).indices.tolist()",
            ),
            "decoder-step": (SCORED, "score(state[:, None], encoder_states)[:, 0]"),
        },
    ),
]

# Another reader's list.

MUTANTS += [
    # masked-softmax
    Fresh(
        "softmax_fills_with_lowest_number",
        "Masked scores are filled with the lowest number of the dtype and not with minus infinity, so padding gets weight where the allowed scores are that low too (-65504 in float16).",
        "numerics",
        "masked-softmax-edges",
        {
            "masked-softmax": (
                'scores.masked_fill(~mask, float("-inf"))',
                "scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
            )
        },
    ),
    Fresh(
        "softmax_adds_minus_infinity",
        "The mask is added as 0 and minus infinity, so a padding whose score is inf or nan makes the whole row nan, although padding gets weight 0 whatever its score.",
        "legal input",
        "masked-softmax-edges",
        {
            "masked-softmax": (
                'scores.masked_fill(~mask, float("-inf"))',
                'scores + torch.zeros_like(scores).masked_fill(~mask, float("-inf"))',
            )
        },
    ),
    Fresh(
        "softmax_sink_needs_a_mask",
        "Without a mask the sink is forgotten.",
        "legal input",
        "masked-softmax-rows",
        {
            "masked-softmax": (
                "if sink is not None:  # one",
                "if sink is not None and mask is not None:  # one",
            )
        },
    ),
    Fresh(
        "softmax_sink_column_in_default_dtype",
        "The column of the sink is made in the default dtype, so with a sink the weights of half-precision scores come out as float32.",
        "hard-wired",
        "masked-softmax-rows",
        {
            "masked-softmax": (
                "longer = torch.nn.functional.pad(scores, (0, 1), value=sink)",
                "column = torch.full((*scores.shape[:-1], 1), sink, device=scores.device)\n"
                "        longer = torch.cat([scores, column], dim=-1)",
            )
        },
    ),
    Fresh(
        "softmax_masks_after_exp",
        "The weights are right, but exp of a high padding score is inf before it is masked, and the gradient is then nan (0 times inf).",
        "gradient",
        "masked-softmax-edges",
        {
            "masked-softmax": (
                'return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)',
                'top = scores.masked_fill(~mask, float("-inf")).amax(dim=-1, keepdim=True)\n'
                "    exps = (scores - top).exp().masked_fill(~mask, 0)\n"
                "    return exps / exps.sum(dim=-1, keepdim=True)",
            )
        },
    ),
    Fresh(
        "softmax_goes_through_float32",
        "With a mask the softmax is taken in float32 and cast back: float64 weights have seven digits, and float64 scores of 1e39 give nan.",
        "numerics",
        "masked-softmax-rows",
        {
            "masked-softmax": (
                'torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)',
                'torch.softmax(scores.float().masked_fill(~mask, float("-inf")), dim=-1).to(scores.dtype)',
            )
        },
    ),
    Fresh(
        "softmax_sink_mask_not_broadcast",
        "With a sink the mask is lengthened without broadcasting it first, so a mask whose last dimension is 1 becomes one of two columns and no longer fits.",
        "legal input",
        "masked-softmax-edges",
        {
            "masked-softmax": (
                "if mask is None else mask.expand_as(scores)",
                "if mask is None else mask",
            )
        },
    ),
    # additive-scores
    Fresh(
        "additive_tanh_by_hand_too",
        "tanh is written out with exp(2x), which overflows for large sums: inf / inf is nan instead of 1.",
        "numerics",
        "additive-scores-values",
        {
            "additive-scores": (
                "hidden = torch.tanh((query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen)",
                "inside = (query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen\n"
                "    hidden = (torch.exp(2 * inside) - 1) / (torch.exp(2 * inside) + 1)",
            )
        },
    ),
    Fresh(
        "additive_no_coverage_in_float32",
        "Without coverage a float32 zero is added, so half-precision input is promoted to float32 and the product with v fails.",
        "hard-wired",
        "additive-scores-values",
        {
            "additive-scores": (
                "seen = 0 if coverage is None",
                "seen = torch.zeros(1, device=query.device) if coverage is None",
            )
        },
    ),
    Fresh(
        "additive_coverage_reshaped_in_place",
        "unsqueeze_ gives the caller's coverage a fourth dimension, so a second call with it fails.",
        "state",
        "additive-scores-coverage",
        {
            "additive-scores": (
                "coverage.unsqueeze(3) * w",
                "coverage.unsqueeze_(3) * w",
            )
        },
    ),
    Fresh(
        "additive_coverage_detached",
        "The coverage is cut out of the graph, so no gradient flows from the scores to the attention of earlier steps.",
        "gradient",
        "additive-scores-coverage",
        {
            "additive-scores": (
                "coverage.unsqueeze(3) * w",
                "coverage.detach().unsqueeze(3) * w",
            )
        },
    ),
    # dot-scores
    Fresh(
        "dot_positions_in_low_precision",
        "Positions are counted in the dtype of the query before they are subtracted: in bfloat16 position 301 is rounded, so the distance to its neighbour is wrong.",
        "numerics",
        "dot-scores-slope",
        {
            "dot-scores": (
                "torch.arange(part.shape[-2], device=part.device)",
                "torch.arange(part.shape[-2], device=part.device, dtype=part.dtype)",
            )
        },
    ),
    Fresh(
        "dot_positions_on_the_device_of_the_notebook",
        "Positions are made on the notebook's global device, not on that of the query, so tensors on any other device fail.",
        "hard-wired",
        "dot-scores-slope",
        {"dot-scores": ("device=part.device", "device=device")},
    ),
    Fresh(
        "dot_negative_slope_ignored",
        "A negative slope, which is a Python float as any other, is taken for 0.",
        "legal input",
        "dot-scores-slope",
        {"dot-scores": ("- slope * apart", "- max(slope, 0.0) * apart")},
    ),
    Fresh(
        "dot_slope_changes_the_dtype",
        "A slope other than 0 is multiplied by integer distances, which gives float32: half-precision scores come out as float32, and float64 ones lose digits.",
        "hard-wired",
        "dot-scores-slope",
        {
            "dot-scores": (
                "apart = (of_query.unsqueeze(1) - of_key).abs().to(query.dtype)  # [T, S]\n"
                "    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) - slope * apart",
                "apart = (of_query.unsqueeze(1) - of_key).abs()  # [T, S]\n"
                "    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])\n"
                "    return scores - slope * apart if slope else scores",
            )
        },
    ),
    # dot-statistics
    Fresh(
        "statistics_variance_in_one_pass",
        "The variance is the mean square less the square of the mean, which cancels when scores lie far from 0 (10,000 and some).",
        "numerics",
        "dot-statistics-values",
        {
            "dot-statistics": (
                "scores[allowed].var().item()",
                "(scores[allowed].square().mean() - scores[allowed].mean().square()).item()",
            )
        },
    ),
    Fresh(
        "statistics_epsilon_in_the_log",
        "log of weight plus 1e-12 instead of log_softmax: in half precision the sum is 0 again, and a weight of 0 makes the entropy nan.",
        "numerics",
        "dot-statistics-values",
        {
            "dot-statistics": (
                "log_weights = log_weights.masked_fill(~allowed, 0)  # -inf times 0 is nan\n"
                "    entropy = -(log_weights.exp() * log_weights).sum(dim=-1)",
                "weights = log_weights.exp()\n"
                "    entropy = -(weights * (weights + 1e-12).log()).sum(dim=-1)",
            )
        },
    ),
    Fresh(
        "statistics_variance_masked_by_product",
        "Scores that are not allowed are multiplied by 0 for the variance, so one of minus infinity or nan makes it nan, although it does not count.",
        "legal input",
        "dot-statistics-values",
        {
            "dot-statistics": (
                "return scores[allowed].var().item(), entropy.mean().item()",
                "mean = (scores * allowed).sum() / allowed.sum()\n"
                "    variance = ((scores - mean).square() * allowed).sum() / allowed.sum()\n"
                "    return variance.item(), entropy.mean().item()",
            )
        },
    ),
    # decoder-step
    Fresh(
        "decoder_swaps_query_and_key",
        "The encoder states are handed to score as queries and the decoder state as the key, which only a symmetric score forgives.",
        "legal input",
        "decoder-step-prediction",
        {
            "decoder-step": (
                "score(state.unsqueeze(1), encoder_states).squeeze(1)",
                "score(encoder_states, state.unsqueeze(1)).squeeze(2)",
            )
        },
    ),
    Fresh(
        "decoder_returns_detached_weights",
        "The weights are returned without their graph, so a loss on them (or coverage made from them) trains nothing.",
        "gradient",
        "decoder-step-prediction",
        {"decoder-step": ("dim=-1), weights", "dim=-1), weights.detach()")},
    ),
    Fresh(
        "decoder_log_of_softmax",
        "The log is taken after the softmax, so a word far behind gets minus infinity instead of its log-probability.",
        "numerics",
        "decoder-step-prediction",
        {
            "decoder-step": (
                "torch.log_softmax(combined @ W_output.T, dim=-1)",
                "torch.softmax(combined @ W_output.T, dim=-1).log()",
            )
        },
    ),
    # align
    Fresh(
        "align_through_numpy",
        "The greatest weight is looked for in NumPy, which has no bfloat16, so weights of a model in that dtype fail.",
        "legal input",
        "align-pairs",
        {
            "align": (
                "weights[:target_length, :source_length].argmax(dim=-1)",
                "weights[:target_length, :source_length].detach().cpu().numpy().argmax(axis=-1)",
            )
        },
    ),
    Fresh(
        "error_rate_asks_for_possible",
        "0.0 is returned if there is no possible pair: then a wrong prediction has no error, and nothing predicted, nothing sure but something possible divides by 0.",
        "cut-off",
        "align-error-rate",
        {"align": ("if not predicted and not sure:", "if not possible:")},
    ),
    Fresh(
        "error_rate_of_nothing_is_an_int",
        "If predicted and sure are both empty the int 0 is returned, not a float.",
        "cut-off",
        "align-error-rate",
        {"align": ("return 0.0", "return 0")},
    ),
    # beam-search
    Fresh(
        "beam_stops_when_a_finished_one_leads",
        "The search stops as soon as the best finished score is at least that of the best live one at its present length, although the length penalty may still lift a live one above it.",
        "cut-off",
        "beam-search-length",
        {
            "beam-search": (
                "        if not live:\n",
                "        if not live or (\n"
                "            finished and max(s for _, s in finished) >= live[0][1] / penalty(length)\n"
                "        ):\n",
            )
        },
    ),
    Fresh(
        "beam_state_with_two_dimensions",
        "The states of the survivors are taken with [rows, :], so a state of shape [1], with nothing behind its first dimension, fails.",
        "hard-wired",
        "beam-search-finds",
        {
            "beam-search": (
                "state[torch.tensor([parent for parent, _, _ in extended], device=state.device)]",
                "state[torch.tensor([parent for parent, _, _ in extended], device=state.device), :]",
            )
        },
    ),
    Fresh(
        "beam_multiplies_probabilities_too",
        "Probabilities are multiplied and the log is taken after, so a long or unlikely translation underflows to minus infinity.",
        "numerics",
        "beam-search-length",
        {
            "beam-search": (
                "totals = so_far + log_probs  # [k, V]",
                "totals = (so_far.exp() * log_probs.exp()).log()  # [k, V]",
            )
        },
    ),
    Fresh(
        "beam_forbids_eos_in_place",
        "Before least tokens are out, minus infinity is written into the table that step returned, which may be (a view of) the step function's own.",
        "state",
        "beam-search-finds",
        {
            "beam-search": (
                "totals = so_far + log_probs  # [k, V]",
                "if length < least:\n"
                "            log_probs[:, eos] = -math.inf\n"
                "        totals = so_far + log_probs  # [k, V]",
            )
        },
    ),
    Fresh(
        "beam_unfinished_counts_an_eos_too",
        "What did not finish is scored as if it had one token more, an eos that it has not got.",
        "cut-off",
        "beam-search-length",
        {"beam-search": ("penalty(len(words))", "penalty(len(words) + 1)")},
    ),
    # own-check
    Fresh(
        "check_keeps_no_copy",
        "The weights are compared with themselves and not with a copy, so an implementation that writes into them passes.",
        "state",
        "check-refuses",
        {
            "own-check": (
                "kept, mask = weights.clone(), real[chosen]",
                "kept, mask = weights, real[chosen]",
            )
        },
    ),
    Fresh(
        "check_draws_weights_that_are_never_zero",
        "The weights for the gradient are drawn at random, and what is drawn is never 0, so a gradient that is nan at weights of 0 passes.",
        "chance",
        "check-refuses",
        {
            "own-check": (
                "for weights in ([0.2, 0.3, 0.1, 0.6], [0.2, 0.0, 0.0, 0.6]):",
                "for weights in (torch.rand(2, 4) + 0.1).tolist():",
            )
        },
    ),
    Fresh(
        "check_gradient_only_finite",
        "The gradient is only asked to be finite and 0 at padding, not to be right, so one that misses a part (the sum taken as a constant) passes.",
        "gradient",
        "check-refuses",
        {
            "own-check": (
                "assert abs(found[0, 0, 0].item() - slope) < 1e-4",
                "assert math.isfinite(slope)",
            )
        },
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "softmax_by_shares_and_split_projection",
        "Weights as exponentials below the row's maximum (sink among them) divided by their sum, and W_combine taken apart into a half for the context and one for the state.",
        {
            "masked-softmax": '''def masked_softmax(scores, mask=None, sink=None):
    """Softmax over the last dimension; masked positions get weight exactly 0."""
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if mask is not None:
        mask = torch.broadcast_to(mask, scores.shape)
        if sink is None and bool((mask.sum(dim=-1) == 0).any()):
            raise ValueError("there is a row in which no position may be attended to")
        wide = torch.where(mask, wide, torch.full_like(wide, -math.inf))
    top = wide.detach().amax(dim=-1, keepdim=True)
    if sink is not None:
        top = top.clamp(min=sink)
    shares = torch.exp(wide - top)
    total = shares.sum(dim=-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - top)
    return (shares / total).to(scores.dtype)
''',
            "decoder-step": '''def decoder_step(state, encoder_states, mask, score, W_combine, W_output, sink=None):
    """Attend to the source from one decoder state per sentence, and predict the next word."""
    size = state.shape[-1]
    for_context, for_state = W_combine[:, :size], W_combine[:, size:]
    scores = score(state[:, None, :], encoder_states)  # [B, 1, S]
    weights = masked_softmax(scores, mask[:, None, :], sink=sink)[:, 0]
    context = torch.einsum("bs,bsd->bd", weights, encoder_states)
    linear = torch.nn.functional.linear
    hidden = (linear(context, for_context) + linear(state, for_state)).tanh()
    return torch.nn.functional.log_softmax(linear(hidden, W_output), dim=-1), weights
''',
        },
    ),
    RightAnswer(
        "beam_search_with_heaps_and_links",
        "Plain Python numbers, two heap selections per step (all extensions, and those without eos), linked words, and only the best finished translation is kept.",
        {
            "beam-search": '''import heapq


def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6, least=1):
    """Search for the best translation of one sentence, for any step function."""

    def score_of(total, length):
        return total * (6 / (5 + length)) ** alpha

    def unroll(link):
        words = []
        while link is not None:
            link, word = link
            words.append(word)
        return words[::-1]

    def total_of(extension):
        return extension[0]

    beam = [(0.0, None, bos)]  # log-probability, linked words, last word
    winner = None
    length = 0
    while beam and length < max_length:
        length += 1
        last = torch.tensor([word for _, _, word in beam], device=state.device)
        log_probs, state = step(state, last)
        extensions = [
            (beam[row][0] + value, row, word)
            for row, values in enumerate(log_probs.tolist())
            for word, value in enumerate(values)
            if word != eos or length >= least
        ]
        for total, row, word in heapq.nlargest(beam_size, extensions, key=total_of):
            if word == eos:
                score = score_of(total, length)
                if winner is None or score > winner[0]:
                    winner = score, beam[row][1]
        open_ones = [extension for extension in extensions if extension[2] != eos]
        kept = heapq.nlargest(beam_size, open_ones, key=total_of)
        beam = [(total, (beam[row][1], word), word) for total, row, word in kept]
        if kept:
            rows = torch.tensor([row for _, row, _ in kept], device=state.device)
            state = state.index_select(0, rows)
    if winner is None:
        total, link, _ = beam[0]  # all are of one length, and the best comes first
        winner = score_of(total, length), link
    return unroll(winner[1]), float(winner[0])
'''
        },
    ),
    RightAnswer(
        "one_projection_and_counts",
        "Additive scores by one matrix over features side by side, distances by cumulative sums, entropy as log Z less the mean shifted score, alignment by max, and the error rate counted pair by pair.",
        {
            "additive-scores": '''def additive_scores(query, key, W, U, v, coverage=None, w=None):
    """Score every query against every key with a one-layer network."""
    T, S = query.shape[1], key.shape[1]
    features = [query[:, :, None, :].expand(-1, -1, S, -1), key[:, None, :, :].expand(-1, T, -1, -1)]
    matrices = [W, U]
    if coverage is not None:
        features.append(coverage[..., None])
        matrices.append(w[:, None])
    side_by_side = torch.cat(features, dim=-1)  # [B, T, S, Dq + Dk (+ 1)]
    hidden = torch.nn.functional.linear(side_by_side, torch.cat(matrices, dim=1)).tanh()
    return torch.einsum("btsh,h->bts", hidden, v)
''',
            "dot-scores": '''def dot_scores(query, key, slope=0.0):
    """Scaled dot product of every query with every key."""
    T, S, D = query.shape[-2], key.shape[-2], query.shape[-1]
    scores = torch.einsum("...td,...sd->...ts", query, key) * D**-0.5
    if slope == 0:
        return scores
    ones = torch.ones(T, S, dtype=torch.int64, device=query.device)
    apart = (ones.cumsum(0) - ones.cumsum(1)).abs()  # [T, S]
    return scores - (apart.double() * slope).to(scores.dtype)
''',
            "dot-statistics": '''def score_statistics(scores, mask=None):
    """Measure the variance of scores, and the mean entropy of their softmax over the last dimension."""
    scores = scores.detach().double()
    if mask is None:
        mask = torch.ones(scores.shape[-1], dtype=torch.bool, device=scores.device)
    mask = torch.broadcast_to(mask, scores.shape)
    kept = torch.masked_select(scores, mask)
    variance = (kept - kept.mean()).square().mean()
    # With shifted scores x and Z, the sum of exp(x), the entropy is log Z less the mean of x.
    filled = scores.masked_fill(~mask, -math.inf)
    shifted = filled - filled.amax(dim=-1, keepdim=True)
    shares = shifted.exp()
    total = shares.sum(dim=-1)
    mean = (shares * shifted.masked_fill(~mask, 0.0)).sum(dim=-1) / total
    entropy = total.log() - mean
    return float(variance), float(entropy.mean())
''',
            "align": '''def align(weights, source_length, target_length, least=0.0):
    """Align each target word with the source word of the greatest weight."""
    greatest, sources = weights.detach()[:target_length, :source_length].max(dim=-1)
    targets = (greatest >= least).nonzero().flatten()
    return set(zip(sources[targets].tolist(), targets.tolist()))


def alignment_error_rate(predicted, sure, possible):
    """Compare an alignment with gold (Och and Ney 2003)."""
    size = len(predicted) + len(sure)
    if size == 0:
        return 0.0
    agreed = sum((pair in sure) + (pair in possible) for pair in predicted)
    return (size - agreed) / size
''',
        },
    ),
]
