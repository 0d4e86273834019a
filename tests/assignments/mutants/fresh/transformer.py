"""Wrong answers to the Transformer assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
transformer`` says which get full marks.
"""

from fresh import Fresh, one_by_one

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

# Written on 28 November 2026, from the task's text alone, too.
MUTANTS += [
    Fresh(
        "loops_largest_of_whole_table",
        "subtracts the largest score of all queries instead of that of the row: a row far below it underflows to 0 / 0",
        "numerics",
        "attention-loops",
        {
            "by-loops": 'def attention_by_loops(query, key, value, cap=None):\n    """Attend, one query and one key at a time.\n\n    query: [T, D]     key: [S, D]     value: [S, E]\n    cap:   a Python float; None: scores are not capped\n    returns [T, E], same dtype and device\n\n    Example: query [[0., 0.]], key [[1., 0.], [0., 1.]], value [[10.], [20.]] -> [[15.]]:\n    a query of zeros fits both keys equally well\n    """\n    ### BEGIN SOLUTION\n    rows, table = [], []\n    for q in query:\n        scores = [sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in key]\n        if cap is not None:\n            scores = [cap * (score / cap).tanh() for score in scores]\n        table.append(scores)\n    largest = max(max(scores) for scores in table)\n    for scores in table:\n        exponentials = [(score - largest).exp() for score in scores]\n        total = sum(exponentials)\n        rows.append(sum(e / total * v for e, v in zip(exponentials, value)))\n    return torch.stack(rows)\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "loops_cap_through_math_tanh",
        "caps with math.tanh on Python numbers: with a cap no gradient reaches query and key",
        "gradient",
        "attention-loops",
        {
            "by-loops": (
                "cap * (score / cap).tanh()",
                "score.new_tensor(cap * math.tanh(score / cap))",
            )
        },
    ),
    Fresh(
        "loops_root_of_number_of_keys",
        "divides by the square root of S, the number of keys, which is D only in the examples",
        "hard-wired",
        "attention-loops",
        {"by-loops": ("math.sqrt(len(q))", "math.sqrt(len(key))")},
    ),
    Fresh(
        "mask_after_softmax_then_rescale",
        "masks the weights after the softmax and divides by their sum: 0 / 0 where a masked score is 200 above the others",
        "numerics",
        "attention-mask",
        {
            "by-matrices": 'def attention(query, key, value, mask=None, cap=None):\n    """Attend, all queries and keys at once.\n\n    query: [..., T, D]     key: [..., S, D]     value: [..., S, E]\n    mask:  bool, broadcasts to [..., T, S]; True = may attend. None: all may.\n    cap:   as in attention_by_loops\n    returns (output [..., T, E], weights [..., T, S]), same dtype and device\n\n    Example: query [[0., 0.]], key [[1., 0.], [0., 1.]], value [[10.], [20.]], mask [[False, True]]\n    -> ([[20.]], [[0., 1.]])\n    """\n    ### BEGIN SOLUTION\n    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # [..., T, S]\n    if cap is not None:\n        scores = cap * torch.tanh(scores / cap)\n    weights = torch.softmax(scores, dim=-1)\n    if mask is not None:\n        weights = weights * mask\n        weights = weights / weights.sum(dim=-1, keepdim=True)\n    return weights @ value, weights\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "mask_with_minus_ten_thousand",
        "masks with -1e4, which is above legal scores such as -20000",
        "numerics",
        "attention-mask",
        {"by-matrices": ('float("-inf")', "-1e4")},
    ),
    Fresh(
        "smaller_mask_gets_axis_at_one",
        "puts an axis at place 1 of a mask that has fewer dimensions than the scores, instead of aligning it from the right: [T, S] for a batch, [S], [H, T, S]",
        "legal input",
        "attention-mask",
        {
            "by-matrices": (
                "    if mask is not None:\n",
                "    if mask is not None:\n        if mask.dim() < scores.dim():\n            mask = mask.unsqueeze(1)  # for the heads\n",
            )
        },
    ),
    Fresh(
        "returned_weights_detached",
        "returns the weights detached: a loss on the weights has no gradient",
        "gradient",
        "attention-matrices",
        {
            "by-matrices": (
                "return weights @ value, weights",
                "return weights @ value, weights.detach()",
            )
        },
    ),
    Fresh(
        "merge_dealt_through_numpy",
        "merges dealt heads in numpy: the gradient is cut, and only there",
        "gradient",
        "multi-head-split",
        {
            "heads": (
                "        return heads.permute(0, 2, 3, 1).flatten(2)\n",
                "        B, H, T, N = heads.shape\n        dealt_out = heads.detach().cpu().numpy().transpose(0, 2, 3, 1).reshape(B, T, N * H)\n        return torch.from_numpy(dealt_out).to(heads.device)\n",
            )
        },
    ),
    Fresh(
        "merge_dealt_takes_n_for_t",
        "merging dealt heads, reads the shape as [B, H, N, T]: right only if T = N, as in the visible test",
        "hard-wired",
        "multi-head-split",
        {
            "heads": (
                "        return heads.permute(0, 2, 3, 1).flatten(2)\n",
                "        B, H, N, T = heads.shape\n        return heads.permute(0, 2, 3, 1).reshape(B, T, H * N)\n",
            )
        },
    ),
    Fresh(
        "values_made_of_keys",
        "to_value gets the key: wrong wherever key and value are different tensors",
        "legal input",
        "multi-head-values",
        {
            "multi-head": (
                "        key = split_heads(self.to_key(key), self.num_heads)  # [B, H, S, N]\n        value = split_heads(self.to_value(value), self.num_heads)  # [B, H, S, N]\n",
                "        key, value = (\n            split_heads(linear(key), self.num_heads) for linear in (self.to_key, self.to_value)\n        )\n",
            )
        },
    ),
    Fresh(
        "no_active_head_means_all",
        "if no head is active, all of them work",
        "cut-off",
        "multi-head-values",
        {
            "multi-head": (
                "if active is not None:",
                "if active is not None and active.any():",
            )
        },
    ),
    Fresh(
        "inactive_zeroed_behind_autograd",
        "zeroes what idle heads give through .data: values are right, but gradient still flows into the values of idle heads",
        "gradient",
        "multi-head-values",
        {
            "multi-head": 'class MultiHeadAttention(torch.nn.Module):\n    """H attentions side by side."""\n\n    def __init__(self, dim, num_heads):\n        super().__init__()\n        if dim % num_heads:\n            raise ValueError(f"{num_heads} heads cannot share {dim} features equally")\n        self.num_heads = num_heads\n        self.to_query = torch.nn.Linear(dim, dim)\n        self.to_key = torch.nn.Linear(dim, dim)\n        self.to_value = torch.nn.Linear(dim, dim)\n        self.to_output = torch.nn.Linear(dim, dim)\n\n    def forward(self, query, key, value, mask=None, active=None):\n        """\n        query: [B, T, D]     key, value: [B, S, D]\n        mask:  bool [B, 1, S] or [B, T, S]; None: all may be attended to\n        active: bool [H]; None: all heads work\n        returns (output [B, T, D], weights [B, H, T, S])\n        """\n        ### BEGIN SOLUTION\n        query = split_heads(self.to_query(query), self.num_heads)  # [B, H, T, N]\n        key = split_heads(self.to_key(key), self.num_heads)  # [B, H, S, N]\n        value = split_heads(self.to_value(value), self.num_heads)  # [B, H, S, N]\n        if mask is not None:\n            mask = mask.unsqueeze(1)  # [B, 1, 1 or T, S]: the same for every head\n        mixed, weights = attention(query, key, value, mask)\n        if active is not None:\n            mixed.data[:, ~active] = 0\n        return self.to_output(merge_heads(mixed)), weights\n        ### END SOLUTION'
        },
    ),
    Fresh(
        "window_much_larger_than_size",
        "adds one diagonal for each step of the window: an error if the window is larger than the mask by two or more",
        "cut-off",
        "masks-causal",
        {
            "masks": (
                "    mask = torch.ones(size, size, dtype=torch.bool, device=device).tril()\n    return mask if window is None else mask.triu(1 - window)\n",
                "    mask = torch.zeros(size, size, device=device)\n    for back in range(size if window is None else window):\n        mask += torch.diag(torch.ones(size - back, device=device), -back)\n    return mask.bool()\n",
            )
        },
    ),
    Fresh(
        "causal_mask_kept_between_calls",
        "keeps each mask and returns the same tensor again: what a caller writes into it stays, and another device is ignored",
        "state",
        "masks-causal",
        {
            "masks": (
                "    mask = torch.ones(size, size, dtype=torch.bool, device=device).tril()\n    return mask if window is None else mask.triu(1 - window)\n",
                '    known = causal_mask.__dict__.setdefault("known", {})\n    if (size, window) not in known:\n        mask = torch.ones(size, size, dtype=torch.bool, device=device).tril()\n        known[size, window] = mask if window is None else mask.triu(1 - window)\n    return known[size, window]\n',
            )
        },
    ),
    Fresh(
        "left_filling_changes_lengths",
        "with the filling on the left, lengths -= size writes into the caller's lengths",
        "state",
        "masks-padding",
        {
            "masks": (
                "    if left:\n        places = places.flip(0)\n",
                "    if left:\n        lengths -= size  # minus the number of fillings\n        return (places >= -lengths.unsqueeze(1)).unsqueeze(1)\n",
            )
        },
    ),
    Fresh(
        "table_of_5000_positions",
        "cuts the rows out of a table of 5000 positions: later positions are missing",
        "cut-off",
        "positions-encoding",
        {
            "encoding": 'def positional_encoding(length, dim, base=10000.0, first=0):\n    """The table of sines and cosines of positions first, first + 1, and so on.\n\n    returns float32 [length, dim], on the CPU\n\n    Example: length 2, dim 2 -> [[0., 1.], [0.8415, 0.5403]]: sin and cos of 0 and of 1;\n             with first 1 -> [[0.8415, 0.5403], [0.9093, -0.4161]]\n    """\n    ### BEGIN SOLUTION\n    place = torch.arange(5000).unsqueeze(1)  # [T, 1]\n    frequency = base ** (-torch.arange(0, dim, 2) / dim)  # [D/2]\n    table = torch.zeros(5000, dim)\n    table[:, 0::2] = torch.sin(place * frequency)\n    table[:, 1::2] = torch.cos(place * frequency)\n    return table[first : first + length]\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "one_row_without_its_axis",
        "a table of one row comes back as [dim] instead of [1, dim]",
        "legal input",
        "positions-encoding",
        {"encoding": ("    return table\n", "    return table.squeeze(0)\n")},
    ),
    Fresh(
        "half_becomes_single_in_embed",
        "moves the positions to the device but not to the dtype: a float16 or bfloat16 embedding gives float32 (float64 is promoted and looks right)",
        "legal input",
        "positions-embed",
        {
            "embed": (
                "positional_encoding(T, D).to(embedding)",
                "positional_encoding(T, D).to(embedding.device)",
            )
        },
    ),
    Fresh(
        "word_zero_is_not_trained",
        "looks up with padding_idx=0: same values, but row 0 of the embedding gets no gradient",
        "gradient",
        "positions-embed",
        {
            "embed": (
                "embedding[tokens]",
                "torch.nn.functional.embedding(tokens, embedding, padding_idx=0)",
            )
        },
    ),
    Fresh(
        "variance_as_mean_of_squares_less_square",
        "variance as E[x^2] - E[x]^2: cancels for features with a large common part, and the root of a negative number is nan",
        "numerics",
        "layer-norm-positions",
        {
            "norm": (
                "hidden.var(dim=-1, correction=0, keepdim=True)",
                "hidden.square().mean(dim=-1, keepdim=True) - mean.square()",
            )
        },
    ),
    Fresh(
        "root_squared_again",
        "takes the root of the variance and squares it again under the root: the gradient is nan where all features are equal",
        "gradient",
        "layer-norm-positions",
        {
            "norm": (
                "        variance = hidden.var(dim=-1, correction=0, keepdim=True)\n        return self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset\n",
                "        deviation = (hidden - mean).square().mean(dim=-1, keepdim=True).sqrt()\n        return self.gain * (hidden - mean) / torch.sqrt(deviation**2 + self.eps) + self.offset\n",
            )
        },
    ),
    Fresh(
        "bessel_taken_back",
        "takes torch.var's default and multiplies by (D - 1) / D: nan for D = 1",
        "legal input",
        "layer-norm-values",
        {
            "norm": (
                "hidden.var(dim=-1, correction=0, keepdim=True)",
                "hidden.var(dim=-1, keepdim=True) * (len(self.gain) - 1) / len(self.gain)",
            )
        },
    ),
    Fresh(
        "gate_sees_the_mean_of_the_sentence",
        "the gate reads the mean over all positions: other positions leak in (the visible gate has weights of 0)",
        "leak",
        "encoder-block-feed-forward",
        {
            "feed-forward": (
                "self.gate(hidden).relu()",
                "self.gate(hidden.mean(dim=-2, keepdim=True)).relu()",
            )
        },
    ),
    Fresh(
        "network_takes_three_dimensions_only",
        "unpacks hidden.shape into B, T, D: [D], [T, D] and [B, H, T, D] are errors",
        "legal input",
        "encoder-block-feed-forward",
        {
            "feed-forward": (
                "        if self.gate is not None:\n            return self.outer(self.gate(hidden).relu() * self.inner(hidden))\n        return self.outer(torch.relu(self.inner(hidden)))\n",
                "        B, T, D = hidden.shape\n        rows = hidden.reshape(B * T, D)\n        if self.gate is not None:\n            units = self.gate(rows).relu() * self.inner(rows)\n        else:\n            units = torch.relu(self.inner(rows))\n        return self.outer(units).reshape(B, T, D)\n",
            )
        },
    ),
    Fresh(
        "alpha_multiplied_into_the_input",
        "multiplies the block's input by alpha in place: the caller's tensor changes where alpha is not 1, and training fails",
        "state",
        "encoder-block-wiring",
        {
            "encoder": (
                "self.attention_norm(self.alpha * hidden + attended)",
                "self.attention_norm(hidden.mul_(self.alpha) + attended)",
            )
        },
    ),
    Fresh(
        "encoder_takes_first_row_of_mask",
        "passes on the first row of the mask only: right for [B, 1, T], wrong for [B, T, T]",
        "legal input",
        "encoder-block-wiring",
        {
            "encoder": (
                "        attended, _ = self.self_attention(hidden, hidden, hidden, mask)\n",
                "        if mask is not None:\n            mask = mask[:, :1]  # every query sees the same words\n        attended, _ = self.self_attention(hidden, hidden, hidden, mask)\n",
            )
        },
    ),
    Fresh(
        "memory_detached",
        "detaches the memory: no gradient reaches the encoder",
        "gradient",
        "decoder-block-wiring",
        {
            "decoder": (
                "self.cross_attention(hidden, memory, memory, memory_mask)",
                "self.cross_attention(hidden, memory.detach(), memory.detach(), memory_mask)",
            )
        },
    ),
    Fresh(
        "no_mask_becomes_causal",
        "without a mask the decoder block makes a causal one by itself",
        "legal input",
        "decoder-block-masks",
        {
            "decoder": (
                "        attended, _ = self.self_attention(hidden, hidden, hidden, mask)\n",
                "        if mask is None:\n            mask = causal_mask(hidden.shape[1], hidden.device).unsqueeze(0)\n        attended, _ = self.self_attention(hidden, hidden, hidden, mask)\n",
            )
        },
    ),
    Fresh(
        "memory_kept_from_first_call",
        "keeps the memory of the first call and uses it again for later ones of the same shape",
        "state",
        "decoder-block-wiring",
        {
            "decoder": (
                "        attended, _ = self.cross_attention(hidden, memory, memory, memory_mask)\n",
                '        kept = getattr(self, "kept", None)\n        if kept is None or kept.shape != memory.shape:\n            self.kept = kept = memory  # the source does not change\n        attended, _ = self.cross_attention(hidden, kept, kept, memory_mask)\n',
            )
        },
    ),
    Fresh(
        "every_bos_taken_out",
        "takes every bos out of the answer, also one that the model wrote in the middle",
        "legal input",
        "greedy-words",
        {
            "search": (
                "rows = target[:, 1:].tolist()",
                "rows = [[word for word in row if word != bos] for row in target.tolist()]",
            )
        },
    ),
    Fresh(
        "bos_that_is_eos_ends_at_once",
        "looks for eos in the whole target, bos included: where bos and eos are the same word, all sentences end after one word",
        "legal input",
        "greedy-words",
        {"search": ("ended |= best == eos", "ended = (target == eos).any(dim=1)")},
    ),
    Fresh(
        "argmax_of_softmax",
        "takes the argmax of the softmax: scores that differ by less than its rounding become ties",
        "numerics",
        "greedy-words",
        {
            "search": (
                "[:, -1].argmax(dim=-1)",
                "[:, -1].softmax(dim=-1).argmax(dim=-1)",
            )
        },
    ),
    Fresh(
        "empty_translation_is_not_cut",
        "row[: row.index(eos) or None]: a sentence whose first word is eos is not cut at all",
        "cut-off",
        "greedy-batch",
        {"search": ("row[: row.index(eos)] if", "row[: row.index(eos) or None] if")},
    ),
    Fresh(
        "at_most_fifty_more_than_the_source",
        "stops 50 words after the length of the source, as Vaswani et al. did, even if max_length allows more",
        "hard-wired",
        "greedy-words",
        {
            "search": (
                "target.shape[1] <= max_length",
                "target.shape[1] <= min(max_length, source.shape[1] + 50)",
            )
        },
    ),
    Fresh(
        "check_gives_away_copies",
        "hands copies to the implementation and looks whether the originals have changed: who changes inputs in place passes",
        "state",
        "check-refuses",
        {
            "own-check": (
                "    def wanted(logits, targets, smoothing, padding):\n",
                "    tested = implementation\n\n    def implementation(logits, targets, smoothing, padding):\n        return tested(logits.clone(), targets.clone(), smoothing, padding)\n\n    def wanted(logits, targets, smoothing, padding):\n",
            )
        },
    ),
    Fresh(
        "check_never_all_padding",
        "never tries a batch in which no position counts: who returns nan there passes",
        "cut-off",
        "check-refuses",
        {
            "own-check": 'def check_smoothed_loss(implementation):\n    """Raise an error if an implementation of `smoothed_loss` is wrong; return nothing if it is right."""\n\n    ### BEGIN SOLUTION\n    def wanted(logits, targets, smoothing, padding):\n        losses = []\n        for row, word in zip(logits.double().flatten(0, -2), targets.flatten().tolist()):\n            if word != padding:\n                shares = [smoothing / (len(row) - 2)] * len(row)\n                shares[padding], shares[word] = 0.0, 1 - smoothing\n                logs = (row - row.max() - (row - row.max()).exp().sum().log()).tolist()\n                losses.append(-sum(s * log for s, log in zip(shares, logs) if s))\n        return sum(losses) / max(1, len(losses))\n\n    def compare(logits, targets, smoothing, padding, near=1e-9):\n        copies = logits.clone(), targets.clone()\n        loss = implementation(logits, targets, smoothing, padding)\n        assert logits.equal(copies[0]) and targets.equal(copies[1])\n        assert loss.dtype == logits.dtype and loss.shape == ()\n        expected = wanted(logits, targets, smoothing, padding)\n        assert abs(loss.item() - expected) <= near * max(1, abs(expected))\n\n    for B, T, V in ((3, 4, 7), (3, 4, 3), (2, 5, 5)):\n        for padding, smoothing in ((0, 0.1), (V - 1, 0.3), (1, 0.0), (V // 2, 0.25)):\n            targets = torch.randint(0, V, (B, T), device=device)\n            logits = 3 * torch.randn(B, T, V, dtype=torch.float64, device=device)\n            compare(logits, targets, smoothing, padding)\n            compare(logits.float(), targets, smoothing, padding, 1e-4)\n    some, words = torch.tensor([[1, 0, 2, 0], [0, 0, 0, 3]], device=device), logits[:, :4]\n    compare(words, some, 0.2, 0)\n    compare(900 * words, some, 0.2, 0)\n    compare(900 * words.float(), some, 0.2, 0, 1e-4)\n    unknown = torch.where(some[..., None] == 0, math.nan, words)\n    assert implementation(unknown, some, 0.2, 0) == implementation(words, some, 0.2, 0)\n    leaf = words.clone().requires_grad_()\n    (slope,) = torch.autograd.grad(implementation(leaf, some, 0.2, 0), leaf)\n    shares = torch.full_like(words, 0.2 / 3).scatter(2, some[..., None], 0.8)\n    shares[..., 0] = 0.0\n    right = (words.softmax(2) - shares).masked_fill((some == 0)[..., None], 0) / 3\n    assert torch.allclose(slope, right, atol=1e-9)\n    ### END SOLUTION'
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "running_softmax_and_einsum",
        "loops: one pass with a running maximum and a running mean; matrices: einsum, where, exp and sum instead of masked_fill and softmax",
        {
            "by-loops": 'def attention_by_loops(query, key, value, cap=None):\n    """Attend, one query and one key at a time.\n\n    query: [T, D]     key: [S, D]     value: [S, E]\n    cap:   a Python float; None: scores are not capped\n    returns [T, E], same dtype and device\n\n    Example: query [[0., 0.]], key [[1., 0.], [0., 1.]], value [[10.], [20.]] -> [[15.]]:\n    a query of zeros fits both keys equally well\n    """\n    outputs = []\n    for t in range(query.shape[0]):\n        for j in range(key.shape[0]):\n            score = (query[t] * key[j]).sum() / math.sqrt(query.shape[1])\n            if cap is not None:\n                score = torch.tanh(score / cap) * cap\n            if j == 0:\n                largest, total, mixed = score, torch.ones_like(score), value[0]\n            else:\n                bound = torch.maximum(largest, score).detach()\n                before, now = total * (largest - bound).exp(), (score - bound).exp()\n                largest, total = bound, before + now\n                mixed = mixed * (before / total) + value[j] * (now / total)\n        outputs.append(mixed)\n    return torch.stack(outputs)\n',
            "by-matrices": 'def attention(query, key, value, mask=None, cap=None):\n    """Attend, all queries and keys at once.\n\n    query: [..., T, D]     key: [..., S, D]     value: [..., S, E]\n    mask:  bool, broadcasts to [..., T, S]; True = may attend. None: all may.\n    cap:   as in attention_by_loops\n    returns (output [..., T, E], weights [..., T, S]), same dtype and device\n\n    Example: query [[0., 0.]], key [[1., 0.], [0., 1.]], value [[10.], [20.]], mask [[False, True]]\n    -> ([[20.]], [[0., 1.]])\n    """\n    table = torch.einsum("...td,...sd->...ts", query, key) / query.shape[-1] ** 0.5\n    if cap is not None:\n        table = (table / cap).tanh() * cap\n    if mask is not None:\n        table = torch.where(mask, table, -torch.inf)\n    grown = (table - table.detach().amax(dim=-1, keepdim=True)).exp()\n    weights = grown / grown.sum(dim=-1, keepdim=True)\n    return torch.einsum("...ts,...se->...te", weights, value), weights\n',
        },
    ),
    RightAnswer(
        "heads_by_index_one_after_the_other",
        "split_heads by a table of feature numbers, merge_heads by cat or stack, and one attention call for each head",
        {
            "heads": 'def split_heads(hidden, num_heads, dealt=False):\n    """Give each head its share of the features.\n\n    hidden: [B, T, D]\n    returns [B, H, T, N] with N = D / H\n\n    Example: [[[0, 1, 2, 3], [4, 5, 6, 7]]], 2 heads -> [[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]];\n             dealt -> [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]\n    """\n    numbers = torch.arange(hidden.shape[-1], device=hidden.device)\n    numbers = numbers.view(-1, num_heads).T if dealt else numbers.view(num_heads, -1)\n    return hidden[:, :, numbers].permute(0, 2, 1, 3)\n\n\ndef merge_heads(heads, dealt=False):\n    """Put the heads side by side again: the inverse of split_heads, dealt or not.\n\n    heads: [B, H, T, N]\n    returns [B, T, D] with D = H N\n    """\n    each = heads.unbind(dim=1)\n    return torch.stack(each, dim=-1).flatten(2) if dealt else torch.cat(each, dim=-1)\n',
            "multi-head": 'class MultiHeadAttention(torch.nn.Module):\n    """H attentions side by side."""\n\n    def __init__(self, dim, num_heads):\n        super().__init__()\n        if dim % num_heads:\n            raise ValueError(f"{num_heads} heads cannot share {dim} features equally")\n        self.num_heads = num_heads\n        self.to_query = torch.nn.Linear(dim, dim)\n        self.to_key = torch.nn.Linear(dim, dim)\n        self.to_value = torch.nn.Linear(dim, dim)\n        self.to_output = torch.nn.Linear(dim, dim)\n\n    def forward(self, query, key, value, mask=None, active=None):\n        """\n        query: [B, T, D]     key, value: [B, S, D]\n        mask:  bool [B, 1, S] or [B, T, S]; None: all may be attended to\n        active: bool [H]; None: all heads work\n        returns (output [B, T, D], weights [B, H, T, S])\n        """\n        queries, keys, values = (\n            split_heads(linear(given), self.num_heads)\n            for linear, given in (\n                (self.to_query, query),\n                (self.to_key, key),\n                (self.to_value, value),\n            )\n        )\n        outputs, tables = [], []\n        for head in range(self.num_heads):\n            output, table = attention(queries[:, head], keys[:, head], values[:, head], mask)\n            if active is not None:\n                output = output.masked_fill(~active[head], 0.0)\n            outputs.append(output)\n            tables.append(table)\n        mixed = merge_heads(torch.stack(outputs, dim=1))\n        return self.to_output(mixed), torch.stack(tables, dim=1)\n',
        },
    ),
    RightAnswer(
        "masks_by_distance_positions_in_double",
        "masks by comparing positions; the table of positions computed in float64 and rounded once; var_mean and rsqrt in the norm; F.embedding",
        {
            "masks": 'def padding_mask(lengths, size, left=False):\n    """Let everybody attend to the words of a sentence and to nothing behind them, or in front of them.\n\n    lengths: int64 or int32 [B], words in each sentence, from 1 to size\n    left:    True: the filling stands in front, and the last word at the last position\n    returns bool [B, 1, size], on the device of lengths\n\n    Example: lengths [2, 3], size 3 -> [[[True, True, False]], [[True, True, True]]];\n             left -> [[[False, True, True]], [[True, True, True]]]\n    """\n    first = size - lengths if left else torch.zeros_like(lengths)\n    behind = first + lengths\n    place = torch.arange(size, device=lengths.device)[None, None, :]\n    return (place >= first[:, None, None]) & (place < behind[:, None, None])\n\n\ndef causal_mask(size, device=None, window=None):\n    """Let each position attend to itself and to those before it.\n\n    window: the most positions that one may attend to, itself among them, at least 1; None: there is no window\n    returns bool [size, size] on that device; row t belongs to the query at position t\n\n    Example: size 2 -> [[True, False], [True, True]]; with window 1 -> [[True, False], [False, True]]\n    """\n    place = torch.arange(size, device=device)\n    distance = place[:, None] - place[None, :]\n    allowed = distance >= 0\n    if window is not None:\n        allowed = allowed & (distance < window)\n    return allowed\n\n\ndef decoder_mask(lengths, size, window=None):\n    """Both: words only, filled up at the end, and none that comes later.\n\n    lengths: int64 or int32 [B];  window: as in causal_mask\n    returns bool [B, size, size], on the device of lengths\n    """\n    place = torch.arange(size, device=lengths.device)\n    query, key = place[None, :, None], place[None, None, :]\n    nearest = query - (size if window is None else window)\n    return (key <= query) & (key > nearest) & (key < lengths[:, None, None])\n',
            "encoding": 'def positional_encoding(length, dim, base=10000.0, first=0):\n    """The table of sines and cosines of positions first, first + 1, and so on.\n\n    returns float32 [length, dim], on the CPU\n\n    Example: length 2, dim 2 -> [[0., 1.], [0.8415, 0.5403]]: sin and cos of 0 and of 1;\n             with first 1 -> [[0.8415, 0.5403], [0.9093, -0.4161]]\n    """\n    place = torch.arange(first, first + length, dtype=torch.float64)\n    wavelength = base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)\n    angle = place[:, None] / wavelength\n    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()\n',
            "embed": 'def embed(tokens, embedding):\n    """Turn tokens into what the first block reads.\n\n    tokens:    int [B, T]\n    embedding: [V, D]\n    returns [B, T, D], dtype and device of embedding\n    """\n    rows = torch.nn.functional.embedding(tokens, embedding)\n    places = positional_encoding(rows.shape[-2], rows.shape[-1])\n    return rows.mul(rows.shape[-1] ** 0.5).add(places.to(rows.device, rows.dtype))\n',
            "norm": 'class LayerNorm(torch.nn.Module):\n    def __init__(self, dim, eps=1e-5, centred=True):\n        super().__init__()\n        self.eps, self.centred = eps, centred\n        self.gain = torch.nn.Parameter(torch.ones(dim))\n        self.offset = torch.nn.Parameter(torch.zeros(dim))\n\n    def forward(self, hidden):\n        """\n        hidden: [..., D]\n        returns [..., D], same dtype and device\n\n        Example: [[1., 2., 3., 6.]] with eps = 0.5, gain 1 and offset 0 -> [[-1., -0.5, 0., 1.5]];\n                 [[1., 1., 3., 3.]] with eps = 4 and not centred -> [[0.3333, 0.3333, 1., 1.]]\n        """\n        if self.centred:\n            variance, mean = torch.var_mean(hidden, dim=-1, correction=0, keepdim=True)\n            hidden = hidden - mean\n        else:\n            variance = hidden.pow(2).mean(dim=-1, keepdim=True)\n        return hidden * torch.rsqrt(variance + self.eps) * self.gain + self.offset\n',
            "feed-forward": 'class FeedForward(torch.nn.Module):\n    def __init__(self, dim, hidden_dim, gated=False):\n        super().__init__()\n        self.inner = torch.nn.Linear(dim, hidden_dim)\n        self.outer = torch.nn.Linear(hidden_dim, dim)\n        self.gate = torch.nn.Linear(dim, hidden_dim) if gated else None\n\n    def forward(self, hidden):\n        """hidden: [..., D] -> [..., D]"""\n        units = self.inner(hidden)\n        if self.gate is None:\n            units = torch.nn.functional.relu(units)\n        else:\n            units = units * torch.nn.functional.relu(self.gate(hidden))\n        return self.outer(units)\n',
        },
    ),
    RightAnswer(
        "search_drops_ended_sentences",
        "the search keeps only sentences that have not ended in the batch and collects words in lists; blocks sum with torch.add(..., alpha=)",
        {
            "search": 'def greedy_decode(model, source, lengths, bos, eos, max_length):\n    """Translate a batch, the best next word at each step.\n\n    model:   model.encode(source, lengths) -> memory [B, S, D];\n             model.decode(target [B, T], memory, lengths) -> scores [B, T, V]; target begins with bos\n    source:  int [B, S]\n    lengths: int [B], words in each source sentence\n    returns a list of B lists of Python ints, without the bos at the beginning, and without eos and what comes after it\n    """\n    memory = model.encode(source, lengths)\n    words = [[] for _ in range(len(source))]\n    going = torch.arange(len(source), device=source.device)\n    target = torch.full((len(source), 1), bos, dtype=torch.int64, device=source.device)\n    for _ in range(max_length):\n        if len(going) == 0:\n            break\n        scores = model.decode(target, memory[going], lengths[going])\n        best = scores[:, -1, :].max(dim=-1).indices\n        for place, word in zip(going.tolist(), best.tolist()):\n            if word != eos:\n                words[place].append(word)\n        stay = best != eos\n        target = torch.cat((target, best[:, None]), dim=1)[stay]\n        going = going[stay]\n    return words\n',
            "encoder": 'class EncoderBlock(torch.nn.Module):\n    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):\n        super().__init__()\n        self.alpha = alpha\n        self.self_attention = MultiHeadAttention(dim, num_heads)\n        self.attention_norm = LayerNorm(dim)\n        self.feed_forward = FeedForward(dim, hidden_dim)\n        self.feed_forward_norm = LayerNorm(dim)\n\n    def forward(self, hidden, mask=None):\n        """\n        hidden: [B, T, D]\n        mask:   bool [B, 1, T] or [B, T, T], for the self-attention; None: all may be attended to\n        returns [B, T, D]\n        """\n        def joined(given, result, norm):\n            return norm(torch.add(result, given, alpha=self.alpha))\n\n        attended = self.self_attention(hidden, hidden, hidden, mask=mask)[0]\n        A = joined(hidden, attended, self.attention_norm)\n        return joined(A, self.feed_forward(A), self.feed_forward_norm)\n',
            "decoder": 'class DecoderBlock(torch.nn.Module):\n    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):\n        super().__init__()\n        self.alpha = alpha\n        self.self_attention = MultiHeadAttention(dim, num_heads)\n        self.self_norm = LayerNorm(dim)\n        self.cross_attention = MultiHeadAttention(dim, num_heads)\n        self.cross_norm = LayerNorm(dim)\n        self.feed_forward = FeedForward(dim, hidden_dim)\n        self.feed_forward_norm = LayerNorm(dim)\n\n    def forward(self, hidden, memory, mask=None, memory_mask=None):\n        """\n        hidden: [B, T, D]     mask: bool [B, 1, T] or [B, T, T]\n        memory: [B, S, D]     memory_mask: bool [B, 1, S] or [B, T, S]\n        a mask that is None allows everything\n        returns [B, T, D]\n        """\n        def joined(given, result, norm):\n            return norm(torch.add(result, given, alpha=self.alpha))\n\n        attended = self.self_attention(hidden, hidden, hidden, mask=mask)[0]\n        A = joined(hidden, attended, self.self_norm)\n        attended = self.cross_attention(A, memory, memory, mask=memory_mask)[0]\n        C = joined(A, attended, self.cross_norm)\n        return joined(C, self.feed_forward(C), self.feed_forward_norm)\n',
        },
    ),
]

# Another reader's list.

MUTANTS += [
    # by-loops
    Fresh(
        "largest_by_absolute_size",
        "subtracts the score that is largest in absolute size, so that with a row of scores like -1000 and 5 the exponential of 1005 is infinite",
        "numerics",
        "attention-loops",
        {"by-loops": ("largest = max(scores)", "largest = max(scores, key=abs)")},
    ),
    Fresh(
        "capped_scores_as_plain_numbers",
        "caps with math.tanh, which gives plain numbers: with a cap no gradient reaches query and key, and float64 is computed in float32",
        "gradient",
        "attention-loops",
        {
            "by-loops": (
                "[cap * (score / cap).tanh() for score in scores]",
                "[torch.tensor(cap * math.tanh(score / cap)) for score in scores]",
            )
        },
    ),
    # by-matrices
    Fresh(
        "masked_score_is_minus_ten_thousand",
        "masks with -10000 instead of minus infinity: where the scores that may be attended to are lower than that, the masked position gets the weight",
        "numerics",
        "attention-mask",
        {"by-matrices": ('float("-inf")', "-1e4")},
    ),
    Fresh(
        "mask_after_softmax_and_renormalise",
        "sets the masked weights to 0 after the softmax and divides by what is left: nan where a masked score is far above the others",
        "numerics",
        "attention-mask",
        {
            "by-matrices": (
                "    if mask is not None:\n"
                '        scores = scores.masked_fill(~mask, float("-inf"))\n'
                "    weights = torch.softmax(scores, dim=-1)\n",
                "    weights = torch.softmax(scores, dim=-1)\n"
                "    if mask is not None:\n"
                "        weights = weights * mask\n"
                "        weights = weights / weights.sum(dim=-1, keepdim=True)\n",
            )
        },
    ),
    Fresh(
        "three_axes_mean_batch",
        "takes a mask of three axes for [B, T, S] when the scores are [B, H, T, S], although [H, T, S] broadcasts to them from the right",
        "legal input",
        "attention-mask",
        {
            "by-matrices": (
                '        scores = scores.masked_fill(~mask, float("-inf"))',
                "        if mask.dim() == 3 and scores.dim() == 4:\n"
                "            mask = mask.unsqueeze(1)\n"
                '        scores = scores.masked_fill(~mask, float("-inf"))',
            )
        },
    ),
    # heads
    Fresh(
        "merge_dealt_by_view",
        "merges dealt heads with view, which works for what split_heads has just made and raises an error for heads that lie in memory as [B, H, T, N]",
        "legal input",
        "multi-head-split",
        {
            "heads": (
                "heads.permute(0, 2, 3, 1).flatten(2)",
                "heads.permute(0, 2, 3, 1).view(heads.shape[0], heads.shape[2], -1)",
            )
        },
    ),
    # multi-head
    Fresh(
        "active_is_float32",
        "makes active float32, so that the values of a bfloat16 or float16 module become float32 and no longer fit its weights",
        "hard-wired",
        "multi-head-values",
        {
            "multi-head": (
                "value * active[:, None, None]",
                "value * active[:, None, None].float()",
            )
        },
    ),
    Fresh(
        "no_active_head_means_all_too",
        "if not a single head is active, all work, instead of the last matrix getting zeros",
        "cut-off",
        "multi-head-values",
        {
            "multi-head": (
                "if active is not None:",
                "if active is not None and active.any():",
            )
        },
    ),
    Fresh(
        "returned_weights_detached_too",
        "returns the weights of the heads detached: a loss on them trains nothing",
        "gradient",
        "multi-head-values",
        {
            "multi-head": (
                "return self.to_output(merge_heads(mixed)), weights",
                "return self.to_output(merge_heads(mixed)), weights.detach()",
            )
        },
    ),
    # masks
    Fresh(
        "causal_part_on_default_device",
        "decoder_mask does not tell causal_mask the device of lengths, so that it fails when they are not on the CPU",
        "hard-wired",
        "masks-both",
        {
            "masks": (
                "causal_mask(size, lengths.device, window)",
                "causal_mask(size, window=window)",
            )
        },
    ),
    Fresh(
        "window_wider_than_size",
        "adds one diagonal for each position of the window, and raises an error when the window is wider than the sentence",
        "cut-off",
        "masks-causal",
        {
            "masks": (
                "    return mask if window is None else mask.triu(1 - window)",
                "    if window is not None:\n"
                "        mask = torch.zeros_like(mask)\n"
                "        for back in range(window):\n"
                "            ones = torch.ones(size - back, dtype=torch.bool, device=device)\n"
                "            mask = mask | torch.diag_embed(ones, -back)\n"
                "    return mask",
            )
        },
    ),
    # encoding
    Fresh(
        "one_cached_table_for_all",
        "keeps the table of each call and hands out the same tensor again: who changes it in place changes all later answers",
        "state",
        "positions-encoding",
        {
            "encoding": (
                "def positional_encoding(",
                "import functools\n\n\n@functools.lru_cache(maxsize=None)\ndef positional_encoding(",
            )
        },
    ),
    Fresh(
        "single_row_loses_its_axis",
        "a table of one position comes out as [dim] instead of [1, dim]",
        "cut-off",
        "positions-encoding",
        {"encoding": ("return table", "return table.squeeze(0)")},
    ),
    # embed
    Fresh(
        "word_zero_gets_no_gradient",
        "looks the rows up with padding_idx=0: the numbers are right, but the row of word 0 is never trained",
        "gradient",
        "positions-embed",
        {
            "embed": (
                "embedding[tokens] *",
                "torch.nn.functional.embedding(tokens, embedding, padding_idx=0) *",
            )
        },
    ),
    Fresh(
        "at_most_512_positions",
        "cuts the positions from a table of 512 rows: a longer sentence raises an error",
        "hard-wired",
        "positions-embed",
        {"embed": ("positional_encoding(T, D)", "positional_encoding(512, D)[:T]")},
    ),
    Fresh(
        "positions_stay_float32",
        "brings the positions to the device of the embedding, not to its dtype: float16 and bfloat16 embeddings come out as float32",
        "hard-wired",
        "positions-embed",
        {"embed": (".to(embedding)", ".to(embedding.device)")},
    ),
    Fresh(
        "tokens_must_be_int64",
        "multiplies a one-hot table by the embedding; one_hot raises an error for int32 tokens",
        "legal input",
        "positions-embed",
        {
            "embed": (
                "embedding[tokens] *",
                "torch.nn.functional.one_hot(tokens, len(embedding)).to(embedding) @ embedding *",
            )
        },
    ),
    # norm
    Fresh(
        "root_squared_again_too",
        "computes sigma with a root and squares it again under the outer root: where all features are equal the gradient is nan",
        "gradient",
        "layer-norm-positions",
        {
            "norm": (
                "hidden.var(dim=-1, correction=0, keepdim=True)",
                "(hidden - mean).square().mean(dim=-1, keepdim=True).sqrt().square()",
            )
        },
    ),
    Fresh(
        "uncentred_divides_in_place",
        "if not centred, divides what it was given in place",
        "state",
        "layer-norm-positions",
        {
            "norm": (
                "            return self.gain * hidden / size + self.offset",
                "            hidden /= size\n            return self.gain * hidden + self.offset",
            )
        },
    ),
    # feed-forward
    Fresh(
        "gate_multiplied_in_place",
        "multiplies in place what ReLU needs for its gradient: the numbers are right, and backward raises an error",
        "gradient",
        "encoder-block-feed-forward",
        {
            "feed-forward": (
                "self.gate(hidden).relu() * self.inner(hidden)",
                "self.gate(hidden).relu().mul_(self.inner(hidden))",
            )
        },
    ),
    # encoder
    Fresh(
        "second_residual_detached",
        "keeps a detached copy for the second residual: past the network no gradient flows",
        "gradient",
        "encoder-block-wiring",
        {
            "encoder": (
                "        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))",
                "        residual = hidden.clone().detach()\n"
                "        return self.feed_forward_norm(self.alpha * residual + self.feed_forward(hidden))",
            )
        },
    ),
    Fresh(
        "alpha_multiplies_in_place",
        "multiplies the block's input by alpha in place: with an alpha other than 1 the caller's tensor changes",
        "state",
        "encoder-block-wiring",
        {
            "encoder": (
                "        hidden = self.attention_norm(self.alpha * hidden + attended)",
                "        hidden *= self.alpha\n"
                "        hidden = self.attention_norm(hidden + attended)",
            )
        },
    ),
    # decoder
    Fresh(
        "causal_without_being_asked",
        "makes a causal mask when mask is None, although None allows everything",
        "legal input",
        "decoder-block-masks",
        {
            "decoder": (
                "        attended, _ = self.self_attention(hidden, hidden, hidden, mask)",
                "        if mask is None:\n"
                "            mask = causal_mask(hidden.shape[1], hidden.device).unsqueeze(0)\n"
                "        attended, _ = self.self_attention(hidden, hidden, hidden, mask)",
            )
        },
    ),
    Fresh(
        "memory_detached_too",
        "detaches the memory: the decoder's loss does not train the encoder",
        "gradient",
        "decoder-block-wiring",
        {
            "decoder": (
                "self.cross_attention(hidden, memory, memory, memory_mask)",
                "self.cross_attention(hidden, memory.detach(), memory.detach(), memory_mask)",
            )
        },
    ),
    # search
    Fresh(
        "every_bos_taken_out_too",
        "takes out each bos, not only the one at the beginning: one that the model writes in the middle is lost",
        "legal input",
        "greedy-words",
        {
            "search": (
                "rows = target[:, 1:].tolist()",
                "rows = [[word for word in row if word != bos] for row in target.tolist()]",
            )
        },
    ),
    Fresh(
        "softmax_before_argmax",
        "takes the best probability instead of the best score: two scores that differ little become equal, and the first word wins",
        "numerics",
        "greedy-words",
        {
            "search": (
                "[:, -1].argmax(dim=-1)",
                "[:, -1].softmax(dim=-1).argmax(dim=-1)",
            )
        },
    ),
    Fresh(
        "model_left_in_eval_mode",
        "puts the model into eval mode and leaves it there: the caller's model has changed",
        "state",
        "greedy-translation",
        {
            "search": (
                "    memory = model.encode(source, lengths)",
                "    if isinstance(model, torch.nn.Module):\n"
                "        model.eval()\n"
                "    memory = model.encode(source, lengths)",
            )
        },
    ),
    # own-check
    Fresh(
        "check_lends_copies_only",
        "gives the implementation copies and looks at the originals: one that overwrites the targets it is given (padding by 0, say) passes",
        "state",
        "check-refuses",
        {
            "own-check": (
                "loss = implementation(logits, targets, smoothing, padding)",
                "loss = implementation(logits.clone(), targets.clone(), smoothing, padding)",
            )
        },
    ),
    Fresh(
        "check_float64_as_loosely_as_float32",
        "allows an error of 1e-4 in float64: an implementation that computes everything in float32 and casts back passes",
        "numerics",
        "check-refuses",
        {"own-check": ("near=1e-9", "near=1e-4")},
    ),
    Fresh(
        "check_wants_gradient_of_nan",
        "asks for a gradient of 0 at padding whose logits are nan, where the text allows anything: right implementations are refused",
        "gradient",
        "check-refuses",
        {
            "own-check": (
                "leaf = words.clone().requires_grad_()",
                "leaf = unknown.clone().requires_grad_()",
            )
        },
    ),
    Fresh(
        "check_never_draws_word_zero",
        "draws targets from 1 on: with another padding, word 0 is never a target, and an implementation that never counts it passes",
        "chance",
        "check-refuses",
        {
            "own-check": (
                "torch.randint(0, V, (B, T), device=device)",
                "torch.randint(1, V, (B, T), device=device)",
            )
        },
    ),
    Fresh(
        "check_without_smoothing_zero",
        "never tries a smoothing of exactly 0: an implementation that takes 0 for not given, or gives nan for 0 times ln 0, passes",
        "cut-off",
        "check-refuses",
        {"own-check": ("(1, 0.0)", "(1, 0.15)")},
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "running_softmax_and_einsum_too",
        "the loops keep a running maximum, total and mixture in one pass; the matrices use einsum, where, and exponentials divided by their sum",
        {
            "by-loops": '''
def attention_by_loops(query, key, value, cap=None):
    """Attend in one pass over the keys, with a running maximum."""
    rows = []
    for q in query:
        peak = total = mixture = None
        for k, v in zip(key, value):
            score = (q * k).sum() / q.shape[0] ** 0.5
            if cap is not None:
                score = torch.tanh(score / cap) * cap
            if peak is None:
                peak, total, mixture = score, torch.ones_like(score), v
            elif score > peak:
                shrink = torch.exp(peak - score)
                peak, total, mixture = score, total * shrink + 1, mixture * shrink + v
            else:
                part = torch.exp(score - peak)
                total, mixture = total + part, mixture + part * v
        rows.append(mixture / total)
    return torch.stack(rows)
''',
            "by-matrices": '''
def attention(query, key, value, mask=None, cap=None):
    """Attend, all queries and keys at once."""
    scores = torch.einsum("...td,...sd->...ts", query, key).div(query.size(-1) ** 0.5)
    if cap is not None:
        scores = scores.div(cap).tanh().mul(cap)
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -math.inf))
    powers = torch.exp(scores - scores.detach().amax(dim=-1, keepdim=True))
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return torch.einsum("...ts,...se->...te", weights, value), weights
''',
        },
    ),
    RightAnswer(
        "head_by_head_and_distances",
        "heads are chunks or strided slices that are stacked; each attends by itself in a loop; masks compare positions and their distances",
        {
            "heads": '''
def split_heads(hidden, num_heads, dealt=False):
    """Give each head its share of the features."""
    if dealt:
        shares = [hidden[:, :, head::num_heads] for head in range(num_heads)]
    else:
        shares = hidden.split(hidden.shape[2] // num_heads, dim=2)
    return torch.stack(tuple(shares), dim=1)


def merge_heads(heads, dealt=False):
    """Put the heads side by side again."""
    if dealt:
        return torch.stack(heads.unbind(1), dim=-1).flatten(-2)
    return torch.cat(heads.unbind(1), dim=-1)
''',
            "multi-head": '''
class MultiHeadAttention(torch.nn.Module):
    """H attentions side by side."""

    def __init__(self, dim, num_heads):
        super().__init__()
        if dim % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {dim} features equally")
        self.num_heads = num_heads
        self.to_query = torch.nn.Linear(dim, dim)
        self.to_key = torch.nn.Linear(dim, dim)
        self.to_value = torch.nn.Linear(dim, dim)
        self.to_output = torch.nn.Linear(dim, dim)

    def forward(self, query, key, value, mask=None, active=None):
        queries = split_heads(self.to_query(query), self.num_heads).unbind(1)
        keys = split_heads(self.to_key(key), self.num_heads).unbind(1)
        values = split_heads(self.to_value(value), self.num_heads).unbind(1)
        mixtures, tables = [], []
        for head in range(self.num_heads):
            mixture, table = attention(queries[head], keys[head], values[head], mask)
            if active is not None:
                mixture = torch.where(active[head], mixture, torch.zeros_like(mixture))
            mixtures.append(mixture)
            tables.append(table)
        return self.to_output(torch.cat(mixtures, dim=-1)), torch.stack(tables, dim=1)
''',
            "masks": '''
def padding_mask(lengths, size, left=False):
    """Let everybody attend to the words of a sentence."""
    place = torch.arange(1, size + 1, device=lengths.device)[None, None, :]
    words = lengths[:, None, None]
    return place > size - words if left else place <= words


def causal_mask(size, device=None, window=None):
    """Let each position attend to itself and to those before it."""
    place = torch.arange(size, device=device)
    back = place[:, None] - place[None, :]
    seen = back >= 0
    if window is not None:
        seen = torch.logical_and(seen, back < window)
    return seen


def decoder_mask(lengths, size, window=None):
    """Words only, and none that comes later."""
    seen = causal_mask(size, device=lengths.device, window=window)
    return torch.where(padding_mask(lengths, size), seen, torch.zeros_like(seen))
''',
        },
    ),
    RightAnswer(
        "other_operators_from_positions_to_search",
        "positions as stacked pairs of an outer product, rows by index_select, norm by rsqrt of a mean of squares, ReLU by where, sums by torch.add, and a search that keeps Python lists",
        {
            "encoding": '''
def positional_encoding(length, dim, base=10000.0, first=0):
    """The table of sines and cosines of positions first, first + 1, and so on."""
    places = torch.arange(first, first + length, dtype=torch.float64)
    exponents = torch.arange(dim // 2, dtype=torch.float64) * 2 / dim
    angles = torch.outer(places, torch.exp(-math.log(base) * exponents))
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).to(torch.float32)
''',
            "embed": '''
def embed(tokens, embedding):
    """Turn tokens into what the first block reads."""
    (B, T), D = tokens.shape, embedding.shape[1]
    rows = torch.index_select(embedding, 0, tokens.reshape(-1)).reshape(B, T, D)
    places = positional_encoding(T, D).to(device=embedding.device, dtype=embedding.dtype)
    return places.unsqueeze(0) + D**0.5 * rows
''',
            "norm": """
class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5, centred=True):
        super().__init__()
        self.eps, self.centred = eps, centred
        self.gain = torch.nn.Parameter(torch.ones(dim))
        self.offset = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, hidden):
        moved = hidden - hidden.mean(dim=-1, keepdim=True) if self.centred else hidden
        moment = (moved * moved).mean(dim=-1, keepdim=True)
        return moved * torch.rsqrt(moment + self.eps) * self.gain + self.offset
""",
            "feed-forward": '''
class FeedForward(torch.nn.Module):
    def __init__(self, dim, hidden_dim, gated=False):
        super().__init__()
        self.inner = torch.nn.Linear(dim, hidden_dim)
        self.outer = torch.nn.Linear(hidden_dim, dim)
        self.gate = torch.nn.Linear(dim, hidden_dim) if gated else None

    def forward(self, hidden):
        """hidden: [..., D] -> [..., D]"""
        units = self.inner(hidden)
        switch = units if self.gate is None else self.gate(hidden)
        through = units if self.gate is None else switch * units
        return self.outer(torch.where(switch > 0, through, torch.zeros_like(through)))
''',
            "encoder": """
class EncoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.attention_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)

    def forward(self, hidden, mask=None):
        attended = self.self_attention(hidden, hidden, hidden, mask=mask)[0]
        middle = self.attention_norm(torch.add(attended, hidden, alpha=self.alpha))
        fed = self.feed_forward(middle)
        return self.feed_forward_norm(torch.add(fed, middle, alpha=self.alpha))
""",
            "decoder": """
class DecoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.self_norm = LayerNorm(dim)
        self.cross_attention = MultiHeadAttention(dim, num_heads)
        self.cross_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)

    def forward(self, hidden, memory, mask=None, memory_mask=None):
        steps = (
            (self.self_norm, lambda x: self.self_attention(x, x, x, mask=mask)[0]),
            (
                self.cross_norm,
                lambda x: self.cross_attention(x, memory, memory, mask=memory_mask)[0],
            ),
            (self.feed_forward_norm, lambda x: self.feed_forward(x)),
        )
        for norm, part in steps:
            hidden = norm(torch.add(part(hidden), hidden, alpha=self.alpha))
        return hidden
""",
            "search": '''
def greedy_decode(model, source, lengths, bos, eos, max_length):
    """Translate a batch, the best next word at each step."""
    memory = model.encode(source, lengths)
    texts = [[] for _ in range(len(source))]
    going = set(range(len(source)))
    for _ in range(max_length):
        if not going:
            break
        target = torch.tensor(
            [[bos, *text] for text in texts], dtype=torch.int64, device=source.device
        )
        scores = model.decode(target, memory, lengths)
        for place, word in enumerate(scores[:, -1, :].max(dim=-1).indices.tolist()):
            texts[place].append(word)
            if word == eos:
                going.discard(place)
    answers = []
    for text in texts:
        answer = []
        for word in text:
            if word == eos:
                break
            answer.append(word)
        answers.append(answer)
    return answers
''',
        },
    ),
]
