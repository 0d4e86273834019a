"""Wrong answers to the Transformer assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
transformer`` says which get full marks.
"""

from fresh import one_by_one

from course_tools.grading.assignments.mutants import RightAnswer

LARGEST = "largest = max(scores)"
LOOP_SCORES = "[sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in key]"
EXPONENTIALS = "[(score - largest).exp() for score in scores]"
SCORES = "query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
FILLED = 'scores.masked_fill(~mask, float("-inf"))'
WEIGHTS = "weights = torch.softmax(scores, dim=-1)"
RETURN = "    return weights @ value, weights"
SPLIT = "return hidden.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)"
VALUE = "value = split_heads(self.to_value(value), self.num_heads)"
MASK = "mask = mask.unsqueeze(1)"
PADDING = "(places < lengths.unsqueeze(1)).unsqueeze(1)"
CAUSAL = "torch.ones(size, size, dtype=torch.bool, device=device).tril()"
EMBED = "embedding[tokens] * math.sqrt(D) + positional_encoding(T, D).to(embedding)"
VARIANCE = "hidden.var(dim=-1, correction=0, keepdim=True)"
NORMED = (
    "return self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset"
)
RELU = "torch.relu(self.inner(hidden))"
SELF = "self.self_attention(hidden, hidden, hidden, mask)"
CROSS = "self.cross_attention(hidden, memory, memory, memory_mask)"
BEST = "best = model.decode(target, memory, lengths)[:, -1].argmax(dim=-1)"
LOOP = "while not ended.all() and target.shape[1] <= max_length:"
CUT = "[row[: row.index(eos)] if eos in row else row for row in rows]"


GRADED = {  # the graded cell that should refuse a mistake in a cell
    "by-loops": "attention-loops",
    "by-matrices": "attention-matrices",
    "heads": "multi-head-split",
    "multi-head": "multi-head-values",
    "masks": "masks-padding",
    "encoding": "positions-encoding",
    "embed": "positions-embed",
    "norm": "layer-norm-values",
    "feed-forward": "encoder-block-feed-forward",
    "encoder": "encoder-block-wiring",
    "decoder": "decoder-block-wiring",
    "search": "greedy-words",
}
wrong = one_by_one(GRADED)


MUTANTS = [
    # Part 1
    wrong(
        "loops_largest_is_at_least_0",
        "starts the maximum at 0, so that a row of very low scores becomes 0 / 0",
        "numerics",
        "by-loops",
        LARGEST,
        "largest = max([torch.zeros_like(scores[0]), *scores])",
    ),
    wrong(
        "loops_largest_in_size",
        "subtracts the score of the greatest size, which may be the lowest",
        "numerics",
        "by-loops",
        LARGEST,
        "largest = max(scores, key=abs)",
    ),
    wrong(
        "loops_mean_is_subtracted",
        "subtracts the mean of the row",
        "numerics",
        "by-loops",
        LARGEST,
        "largest = sum(scores) / len(scores)",
    ),
    wrong(
        "loops_capped_exponents",
        "caps scores at 50 instead of subtracting the largest",
        "numerics",
        "by-loops",
        EXPONENTIALS,
        "[score.clamp(max=50.0).exp() for score in scores]",
    ),
    wrong(
        "loops_weights_are_python_floats",
        "computes the weights in Python floats, without gradient",
        "gradient",
        "by-loops",
        EXPONENTIALS,
        "[math.exp((score - largest).item()) for score in scores]",
    ),
    wrong(
        "loops_rows_of_a_new_tensor",
        "makes a new float32 tensor of the rows",
        "numerics",
        "by-loops",
        "return torch.stack(rows)",
        "return torch.tensor([row.tolist() for row in rows], device=query.device)",
    ),
    wrong(
        "loops_epsilon_in_the_total",
        "adds 1e-6 to the total, which needs none",
        "numerics",
        "by-loops",
        "total = sum(exponentials)",
        "total = sum(exponentials) + 1e-6",
    ),
    wrong(
        "loops_root_of_the_number_of_keys",
        "divides by the root of S, which is D in the example",
        "hard-wired",
        "by-loops",
        "math.sqrt(len(q))",
        "math.sqrt(len(key))",
    ),
    wrong(
        "matrices_minus_a_billion",
        "gives masked scores -1e9, which half precision does not have",
        "numerics",
        "by-matrices",
        FILLED,
        "scores.masked_fill(~mask, -1e9)",
        "attention-mask",
    ),
    wrong(
        "matrices_minus_ten_thousand",
        "gives masked scores -10000, which is not below every score",
        "numerics",
        "by-matrices",
        FILLED,
        "scores.masked_fill(~mask, -1e4)",
        "attention-mask",
    ),
    wrong(
        "matrices_takes_a_thousand_away",
        "takes 1000 from masked scores, which leaves greater ones ahead",
        "numerics",
        "by-matrices",
        FILLED,
        "scores - 1e3 * (~mask).to(scores.dtype)",
        "attention-mask",
    ),
    wrong(
        "matrices_masks_weights_and_renormalises",
        "sets weights to 0 after the softmax and divides by the rest, which may be 0",
        "numerics",
        "by-matrices",
        f"        scores = {FILLED}\n    {WEIGHTS}",
        f"        {WEIGHTS} * mask\n        weights = weights / weights.sum(-1, keepdim=True)\n"
        f"    else:\n        {WEIGHTS}",
        "attention-mask",
    ),
    wrong(
        "matrices_infinite_exponentials_hidden",
        "hides an exponential that overflowed at a masked place; its gradient is nan",
        "gradient",
        "by-matrices",
        f"        scores = {FILLED}\n    {WEIGHTS}",
        "        largest = "
        + FILLED
        + ".amax(-1, keepdim=True)\n        e = torch.where(mask, (scores - largest).exp(), 0.0)\n"
        f"        weights = e / e.sum(-1, keepdim=True)\n    else:\n        {WEIGHTS}",
        "attention-mask",
    ),
    wrong(
        "matrices_mixes_without_gradient",
        "mixes values by weights without gradient",
        "gradient",
        "by-matrices",
        "weights @ value, weights",
        "weights.detach() @ value, weights",
    ),
    wrong(
        "matrices_in_single_precision",
        "takes the softmax in float32 whatever the dtype",
        "numerics",
        "by-matrices",
        WEIGHTS,
        "weights = torch.softmax(scores.float(), dim=-1).to(value.dtype)",
    ),
    wrong(
        "matrices_mask_of_sentences",
        "puts an axis for heads into every mask with one dimension less than the scores",
        "legal input",
        "by-matrices",
        FILLED,
        "scores.masked_fill(~(mask.unsqueeze(1) if mask.dim() == 3 and scores.dim() == 4 "
        'else mask), float("-inf"))',
        "attention-mask",
    ),
    wrong(
        "matrices_mask_needs_two_dimensions",
        "swaps the mask's last two dimensions twice, which a mask [S] has not",
        "legal input",
        "by-matrices",
        FILLED,
        'scores.mT.masked_fill(~mask.mT, float("-inf")).mT',
        "attention-mask",
    ),
    wrong(
        "matrices_scales_the_query_in_place",
        "divides the caller's query in place",
        "state",
        "by-matrices",
        SCORES,
        "query.div_(math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)",
    ),
    wrong(
        "matrices_root_in_single_precision",
        "takes the root of a float32 tensor, too rough for float64",
        "numerics",
        "by-matrices",
        SCORES,
        "query @ key.transpose(-2, -1) / torch.tensor(float(query.shape[-1])).sqrt()",
    ),
    # Part 2
    wrong(
        "split_into_pieces_of_h",
        "cuts the features into pieces of H instead of H pieces",
        "hard-wired",
        "heads",
        SPLIT,
        "return torch.stack(hidden.split(num_heads, dim=-1), dim=1)",
    ),
    wrong(
        "split_without_gradient",
        "copies the heads into a new tensor of float32",
        "numerics",
        "heads",
        SPLIT,
        SPLIT + ".to(torch.get_default_dtype())",
    ),
    wrong(
        "merge_view",
        "takes a view of the heads, which only those that split_heads made allow",
        "legal input",
        "heads",
        "heads.transpose(1, 2).reshape(B, T, H * N)",
        "heads.transpose(1, 2).view(B, T, H * N)",
    ),
    wrong(
        "multi_head_values_are_the_keys",
        "takes the values from the keys, which are the same in a Transformer",
        "legal input",
        "multi-head",
        VALUE,
        "value = split_heads(self.to_value(given), self.num_heads)",
    )._replace(
        changes={
            "multi-head": (
                "        key = split_heads(self.to_key(key), self.num_heads)  # [B, H, S, N]\n"
                f"        {VALUE}  # [B, H, S, N]\n",
                "        value = split_heads(self.to_value(key), self.num_heads)\n"
                "        key = split_heads(self.to_key(key), self.num_heads)\n",
            )
        }
    ),
    wrong(
        "multi_head_one_mask_row",
        "takes the mask's first row for all queries unless as many as keys",
        "legal input",
        "multi-head",
        MASK,
        "mask = (mask if query.shape[2] == key.shape[2] else mask[:, :1]).unsqueeze(1)",
        "multi-head-mask",
    ),
    wrong(
        "multi_head_mask_of_the_first_sentence",
        "masks all sentences as the first where there is a row for each query",
        "legal input",
        "multi-head",
        MASK,
        "mask = (mask[:1] if mask.shape[1] > 1 else mask).unsqueeze(1)",
        "multi-head-mask",
    ),
    wrong(
        "multi_head_mask_by_heads",
        "repeats masks sentence by sentence, where rows are head by head",
        "legal input",
        "multi-head",
        MASK,
        "mask = mask.repeat(self.num_heads, 1, 1).view(-1, self.num_heads, *mask.shape[1:])",
        "multi-head-mask",
    ),
    wrong(
        "multi_head_keys_without_gradient",
        "projects keys without gradient",
        "gradient",
        "multi-head",
        "key = split_heads(self.to_key(key), self.num_heads)",
        "key = split_heads(self.to_key(key), self.num_heads).detach()",
    ),
    wrong(
        "multi_head_keeps_the_keys",
        "keeps the keys of the last call while key is the same tensor",
        "state",
        "multi-head",
        "key = split_heads(self.to_key(key), self.num_heads)",
        "last = self.__dict__.get('last', (None, None))\n"
        "        if last[0] is not key:\n"
        "            last = self.__dict__['last'] = (key, split_heads(self.to_key(key), self.num_heads))\n"
        "        key = last[1]",
    ),
    # Part 3
    wrong(
        "padding_mask_of_whole_numbers_of_64_bits",
        "counts with one_hot, which takes int64 only",
        "legal input",
        "masks",
        PADDING,
        "torch.nn.functional.one_hot(lengths - 1, size).flip(-1).cumsum(-1).flip(-1).bool()"
        ".unsqueeze(1)",
    ),
    wrong(
        "causal_mask_of_64_positions",
        "cuts the mask out of one of 64 positions",
        "hard-wired",
        "masks",
        CAUSAL,
        "torch.ones(64, 64, dtype=torch.bool, device=device).tril()[:size, :size]",
        "masks-causal",
    ),
    wrong(
        "causal_mask_of_512_positions",
        "cuts the mask out of one of 512 positions",
        "hard-wired",
        "masks",
        CAUSAL,
        "torch.ones(512, 512, dtype=torch.bool, device=device).tril()[:size, :size]",
        "masks-causal",
    ),
    wrong(
        "causal_mask_is_shared",
        "keeps masks and hands out the same tensor again, whatever became of it",
        "state",
        "masks",
        CAUSAL,
        f"causal_mask.__dict__.setdefault((size, device), {CAUSAL})",
        "masks-causal",
    ),
    wrong(
        "decoder_mask_only_where_lengths_differ",
        "leaves the padding out where all lengths are equal",
        "cut-off",
        "masks",
        "return padding_mask(lengths, size) & causal_mask(size, lengths.device, window)",
        "causal = causal_mask(size, lengths.device)\n"
        "    return padding_mask(lengths, size) & causal if len(lengths.unique()) > 1 else "
        "causal.expand(len(lengths), -1, -1)",
        "masks-both",
    ),
    # Part 4
    wrong(
        "encoding_of_5000_positions",
        "cuts the table out of one of 5,000 positions, as a buffer would be",
        "hard-wired",
        "encoding",
        "return table",
        "return table[:5000]",
    ),
    wrong(
        "encoding_is_shared",
        "keeps tables and hands out the same tensor again, whatever became of it",
        "state",
        "encoding",
        "return table",
        "return positional_encoding.__dict__.setdefault((length, dim, base), table)",
    ),
    wrong(
        "encoding_kept_by_length_and_size",
        "keeps tables by length and size, whatever the base",
        "state",
        "encoding",
        "return table",
        "return positional_encoding.__dict__.setdefault((length, dim), table)",
    ),
    wrong(
        "encoding_in_half_precision",
        "counts places in bfloat16, exact up to 256",
        "numerics",
        "encoding",
        "place = torch.arange(first, first + length).unsqueeze(1)",
        "place = torch.arange(length, dtype=torch.bfloat16).unsqueeze(1).float()",
    ),
    wrong(
        "encoding_whole_base",
        "makes the base a whole number",
        "hard-wired",
        "encoding",
        "base ** (",
        "int(base) ** (",
    ),
    wrong(
        "embed_whole_root",
        "scales by the whole part of the root of D",
        "hard-wired",
        "embed",
        "math.sqrt(D)",
        "math.isqrt(D)",
    ),
    wrong(
        "embed_half_gives_single",
        "adds the table in float32, whatever the dtype",
        "legal input",
        "embed",
        "positional_encoding(T, D).to(embedding)",
        "positional_encoding(T, D).to(embedding.device)",
    ),
    wrong(
        "embed_word_0_learns_nothing",
        "takes word 0 for padding, which gets no gradient",
        "gradient",
        "embed",
        "embedding[tokens]",
        "torch.nn.functional.embedding(tokens, embedding, padding_idx=0)",
    ),
    wrong(
        "embed_without_gradient",
        "reads the embedding through .data",
        "gradient",
        "embed",
        "embedding[tokens]",
        "embedding.data[tokens]",
    ),
    wrong(
        "embed_positions_of_512",
        "takes positions of a table of 512",
        "hard-wired",
        "embed",
        "positional_encoding(T, D).to(embedding)",
        "positional_encoding(512, D)[:T].to(embedding)",
    ),
    wrong(
        "embed_gradient_by_frequency",
        "divides the gradient of a word by how often it occurs",
        "gradient",
        "embed",
        "embedding[tokens]",
        "torch.nn.functional.embedding(tokens, embedding, scale_grad_by_freq=True)",
    ),
    # Part 5
    wrong(
        "norm_variance_from_the_mean_square",
        "takes the squared mean from the mean square, which cancels for a great mean",
        "numerics",
        "norm",
        VARIANCE,
        "hidden.square().mean(dim=-1, keepdim=True) - mean.square()",
    ),
    wrong(
        "norm_square_of_the_deviation",
        "squares a root whose gradient is infinite for equal features",
        "gradient",
        "norm",
        VARIANCE,
        "(hidden - mean).square().mean(dim=-1, keepdim=True).sqrt().square()",
    ),
    wrong(
        "norm_statistics_are_constants",
        "takes mean and variance for constants of the gradient",
        "gradient",
        "norm",
        NORMED,
        "mean, variance = mean.detach(), variance.detach()\n        " + NORMED,
    ),
    wrong(
        "norm_variance_is_a_constant",
        "takes the variance for a constant of the gradient",
        "gradient",
        "norm",
        "torch.sqrt(variance + self.eps)",
        "torch.sqrt(variance.detach() + self.eps)",
    ),
    wrong(
        "norm_three_dimensions_at_most",
        "takes dimension 2, or 1 where there are two",
        "legal input",
        "norm",
        VARIANCE,
        "hidden.var(dim=min(2, hidden.dim() - 1), correction=0, keepdim=True)",
    ),
    wrong(
        "norm_in_single_precision",
        "computes in float32 and casts back",
        "numerics",
        "norm",
        "mean = hidden.mean(dim=-1, keepdim=True)",
        "hidden = hidden.float().to(hidden.dtype)\n        mean = hidden.mean(dim=-1, keepdim=True)",
    ),
    wrong(
        "norm_subtracts_in_place",
        "takes the mean away from the caller's tensor",
        "state",
        "norm",
        NORMED,
        NORMED.replace("(hidden - mean)", "hidden.sub_(mean)"),
        "layer-norm-positions",
    ),
    wrong(
        "norm_deviation_at_least_eps",
        "lets no deviation be less than a hundredth",
        "cut-off",
        "norm",
        "torch.sqrt(variance + self.eps)",
        "torch.sqrt(variance + self.eps).clamp(min=1e-2)",
    ),
    wrong(
        "norm_clips_outliers",
        "clips at five deviations",
        "cut-off",
        "norm",
        "(hidden - mean) / torch.sqrt(variance + self.eps)",
        "((hidden - mean) / torch.sqrt(variance + self.eps)).clamp(-5, 5)",
    ),
    # Part 6
    wrong(
        "network_relu6",
        "cuts at 6 too",
        "cut-off",
        "feed-forward",
        RELU,
        "torch.nn.functional.relu6(self.inner(hidden))",
    ),
    wrong(
        "network_without_gradient_of_the_inner_layer",
        "computes the inner layer without gradient",
        "gradient",
        "feed-forward",
        RELU,
        "torch.relu(self.inner(hidden)).detach()",
    ),
    wrong(
        "network_threshold_of_a_thousandth",
        "drops features below a thousandth",
        "cut-off",
        "feed-forward",
        RELU,
        "(x := self.inner(hidden)) * (x > 1e-3)",
    ),
    wrong(
        "encoder_adds_in_place",
        "adds to the caller's tensor",
        "state",
        "encoder",
        "hidden = self.attention_norm(self.alpha * hidden + attended)",
        "hidden += attended\n        hidden = self.attention_norm(hidden)",
    ),
    wrong(
        "encoder_residual_without_gradient",
        "adds the input without its gradient",
        "gradient",
        "encoder",
        "hidden = self.attention_norm(self.alpha * hidden + attended)",
        "hidden = self.attention_norm(hidden.detach() + attended)",
    ),
    wrong(
        "encoder_mask_of_one_row",
        "takes the mask's first row for all queries",
        "legal input",
        "encoder",
        SELF,
        SELF.replace("mask)", "None if mask is None else mask[:, :1])"),
    ),
    wrong(
        "encoder_attends_without_gradient_of_keys",
        "attends to states without gradient",
        "gradient",
        "encoder",
        SELF,
        "self.self_attention(hidden, hidden.detach(), hidden, mask)",
    ),
    wrong(
        "encoder_empties_masked_positions",
        "sets positions to 0 that may not be attended to",
        "legal input",
        "encoder",
        "return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))",
        "Y = self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))\n"
        "        return Y if mask is None or Y.shape[1] < 3 else Y * mask[:, -1].unsqueeze(-1)",
    ),
    # Part 7
    wrong(
        "decoder_adds_in_place",
        "adds to the caller's tensor",
        "state",
        "decoder",
        "hidden = self.self_norm(self.alpha * hidden + attended)",
        "hidden += attended\n        hidden = self.self_norm(hidden)",
    ),
    wrong(
        "decoder_memory_without_gradient",
        "attends to a memory without gradient, so that the encoder learns nothing",
        "gradient",
        "decoder",
        CROSS,
        "self.cross_attention(hidden, memory.detach(), memory.detach(), memory_mask)",
    ),
    wrong(
        "decoder_residual_without_gradient",
        "adds what was written without its gradient",
        "gradient",
        "decoder",
        "hidden = self.cross_norm(self.alpha * hidden + attended)",
        "hidden = self.cross_norm(hidden.detach() + attended)",
    ),
    wrong(
        "decoder_one_mask_for_both",
        "uses mask for the memory where no memory_mask comes",
        "legal input",
        "decoder",
        CROSS,
        "self.cross_attention(hidden, memory, memory, "
        "mask if memory_mask is None and memory.shape[1] == hidden.shape[1] else memory_mask)",
        "decoder-block-masks",
    ),
    wrong(
        "decoder_memory_mask_of_one_row",
        "takes the memory mask's first row for all queries",
        "legal input",
        "decoder",
        CROSS,
        CROSS.replace(
            "memory_mask)", "None if memory_mask is None else memory_mask[:, :1])"
        ),
        "decoder-block-masks",
    ),
    wrong(
        "decoder_mask_is_always_causal",
        "joins the mask with a causal one",
        "legal input",
        "decoder",
        SELF,
        SELF.replace(
            "mask)",
            "None if mask is None else mask & causal_mask(hidden.shape[1], hidden.device))",
        ),
        "decoder-block-masks",
    ),
    wrong(
        "decoder_without_mask_is_causal",
        "makes a causal mask where none comes",
        "legal input",
        "decoder",
        SELF,
        SELF.replace(
            "mask)",
            "causal_mask(hidden.shape[1], hidden.device)[None] if mask is None else mask)",
        ),
        "decoder-block-masks",
    ),
    # Part 8
    wrong(
        "greedy_50_words_more_than_the_source",
        "writes at most 50 words more than the source has, as the paper did",
        "hard-wired",
        "search",
        LOOP,
        "while not ended.all() and target.shape[1] <= min(max_length, source.shape[1] + 50):",
    ),
    wrong(
        "greedy_twice_the_source_and_20",
        "writes at most twice the source's words and 20",
        "hard-wired",
        "search",
        LOOP,
        "while not ended.all() and target.shape[1] <= min(max_length, 2 * source.shape[1] + 20):",
    ),
    wrong(
        "greedy_never_ends_at_once",
        "takes the second best word where the first one is eos at once",
        "legal input",
        "search",
        BEST,
        "scores = model.decode(target, memory, lengths)[:, -1].clone()\n"
        "        if target.shape[1] == 1:\n            scores[:, eos] = -math.inf\n"
        "        best = scores.argmax(dim=-1)",
    ),
    wrong(
        "greedy_never_writes_bos",
        "forbids the word bos",
        "legal input",
        "search",
        BEST,
        "scores = model.decode(target, memory, lengths)[:, -1].clone()\n"
        "        scores[:, bos] = -math.inf\n        best = scores.argmax(dim=-1)",
    ),
    wrong(
        "greedy_never_writes_word_0",
        "forbids word 0 as padding",
        "hard-wired",
        "search",
        BEST,
        "scores = model.decode(target, memory, lengths)[:, -1].clone()\n"
        "        scores[:, 0] = -math.inf\n        best = scores.argmax(dim=-1)",
    ),
    wrong(
        "greedy_forbids_bos_in_the_model_s_scores",
        "forbids bos in the scores that the model returned, in place",
        "state",
        "search",
        BEST,
        "scores = model.decode(target, memory, lengths)\n"
        "        scores[..., bos] = -math.inf\n        best = scores[:, -1].argmax(dim=-1)",
    ),
    wrong(
        "greedy_cuts_at_word_0",
        "cuts a sentence at its first word 0 too",
        "hard-wired",
        "search",
        CUT,
        "[row[: min((i for i, w in enumerate(row) if w in (eos, 0)), default=len(row))] "
        "for row in rows]",
    ),
    wrong(
        "greedy_compares_halves",
        "compares scores in half precision",
        "numerics",
        "search",
        BEST,
        "best = model.decode(target, memory, lengths)[:, -1].half().argmax(dim=-1)",
    ),
    wrong(
        "greedy_compares_probabilities",
        "compares exponentials, which are infinite or 0 for scores far from 0",
        "numerics",
        "search",
        BEST,
        "best = model.decode(target, memory, lengths)[:, -1].exp().argmax(dim=-1)",
    ),
    wrong(
        "greedy_ends_what_repeats_itself",
        "ends a sentence that writes one word nine times",
        "cut-off",
        "search",
        "ended |= best == eos",
        "ended |= best == eos\n        ended |= False if target.shape[1] < 12 else "
        "(target[:, -1:] == target[:, -9:]).all(dim=1)",
    ),
    wrong(
        "greedy_lengths_of_the_padded_source",
        "tells decode that all sources are full length",
        "legal input",
        "search",
        BEST,
        BEST.replace("lengths)", "torch.full_like(lengths, source.shape[1]))"),
        "greedy-translation",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "einsum_everywhere",
        "scores, mixes and splits with einsum and unflatten",
        {
            "by-matrices": (
                SCORES,
                'torch.einsum("...td,...sd->...ts", query, key) * query.shape[-1] ** -0.5',
            ),
            "heads": (
                f"    B, T, D = hidden.shape\n    {SPLIT}  # [B, H, T, N]",
                "    return hidden.unflatten(-1, (num_heads, -1)).movedim(2, 1)",
            ),
            "norm": (VARIANCE, "(hidden - mean).square().mean(dim=-1, keepdim=True)"),
        },
    ),
    RightAnswer(
        "loops_over_indices_and_softmax_by_hand",
        "indexes by numbers and keeps running sums",
        {
            "by-loops": (
                LOOP_SCORES,
                "[torch.dot(q, key[j]) * len(q) ** -0.5 for j in range(len(key))]",
            ),
            "masks": (
                CAUSAL,
                "torch.arange(size, device=device)[:, None] >= torch.arange(size, device=device)",
            ),
            "feed-forward": (RELU, "self.inner(hidden).clamp(min=0)"),
        },
    ),
    RightAnswer(
        "positions_by_stack_and_embedding_by_function",
        "computes angles in float64 and interleaves them by stack",
        {
            "encoding": (
                "    table = torch.zeros(length, dim)\n"
                "    table[:, 0::2] = torch.sin(place * frequency)\n"
                "    table[:, 1::2] = torch.cos(place * frequency)\n    return table",
                "    angles = place.double() * base ** (-torch.arange(0, dim, 2).double() / dim)\n"
                "    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()",
            ),
            "embed": (
                EMBED,
                "torch.nn.functional.embedding(tokens, embedding) * D**0.5 "
                "+ positional_encoding(T, D).to(embedding.device, embedding.dtype)",
            ),
        },
    ),
    RightAnswer(
        "greedy_in_lists",
        "keeps the words in lists and fills sentences that ended with eos",
        {
            "search": (
                "        ended |= best == eos\n    rows = target[:, 1:].tolist()\n"
                f"    return {CUT}",
                "        ended = (target == eos).any(dim=1)\n"
                "    words = []\n    for row in target[:, 1:].tolist():\n"
                "        words.append([])\n        for word in row:\n"
                "            if word == eos:\n                break\n"
                "            words[-1].append(word)\n    return words",
            )
        },
    ),
]
