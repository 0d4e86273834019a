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
