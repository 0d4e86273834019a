"""Fresh wrong and right answers to the assignment on fine-tuning, written from the text that students read."""

from fresh import Fresh, fresh

from course_tools.grading.assignments.mutants import RightAnswer

COSINES = "    unit = vectors / vectors.norm(dim=1, keepdim=True)  # [N, D]\n    return unit @ unit.T"
SAME = "    same = torch.tensor([[a == b for b in senses] for a in senses], device=vectors.device)"
LEAD = """            lead = table[use, same][:, None] - table[use, others]  # [same, others]
            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()"""
SENSES = [
    *fresh(
        "numerics",
        "senses-cosines",
        "cosine",
        (
            "cosines_length_plus_epsilon",
            "adds 1e-6 to each length, which is wrong for short vectors",
            "vectors.norm(dim=1, keepdim=True)",
            "(vectors.norm(dim=1, keepdim=True) + 1e-6)",
        ),
        (
            "cosines_length_at_least_a_thousandth",
            "takes no length below 1e-3, so short vectors get cosines near 0",
            "vectors.norm(dim=1, keepdim=True)",
            "vectors.norm(dim=1, keepdim=True).clamp(min=1e-3)",
        ),
        (
            "cosines_in_float32",
            "computes in float32 and only then returns the dtype of vectors",
            COSINES,
            "    dtype, vectors = vectors.dtype, vectors.float()\n    unit = vectors / vectors.norm(dim=1, keepdim=True)\n    return (unit @ unit.T).to(dtype)",
        ),
        (
            "cosines_always_float32",
            "returns float32 whatever the dtype of vectors",
            "return unit @ unit.T",
            "return (unit @ unit.T).float()",
        ),
        (
            "cosines_rounded_as_in_the_example",
            "rounds to four digits, as the example shows them",
            "return unit @ unit.T",
            "return (unit @ unit.T).round(decimals=4)",
        ),
        (
            "cosines_squares_overflow",
            "squares features in their own dtype, which overflows in half precision",
            "vectors.norm(dim=1, keepdim=True)",
            "(vectors * vectors).sum(dim=1, keepdim=True).sqrt()",
        ),
    ),
    *fresh(
        "state",
        "senses-cosines",
        "cosine",
        (
            "cosines_scale_the_vectors_in_place",
            "divides the vectors that it is given by their lengths, in place",
            "unit = vectors / vectors.norm(dim=1, keepdim=True)  # [N, D]",
            "unit = vectors.div_(vectors.norm(dim=1, keepdim=True))",
        ),
    ),
    *fresh(
        "gradient",
        "senses-cosines",
        "cosine",
        (
            "cosines_without_gradient_of_the_lengths",
            "detaches the lengths, so the gradient of a cosine is that of a scaled inner product",
            "vectors.norm(dim=1, keepdim=True)",
            "vectors.detach().norm(dim=1, keepdim=True)",
        ),
    ),
    *fresh(
        "legal input",
        "senses-means",
        "means",
        (
            "means_senses_compared_by_identity",
            "compares names with `is`, so equal names from two sources are two senses",
            "a == b",
            "a is b",
        ),
        (
            "means_senses_in_small_letters",
            "takes names that differ in capitals alone as one sense",
            "a == b",
            "a.lower() == b.lower()",
        ),
        (
            "means_first_sense_against_the_rest",
            "knows two senses: the first one, and everything else",
            SAME,
            "    first = torch.tensor([s == senses[0] for s in senses], device=vectors.device)\n    same = first[:, None] == first",
        ),
        (
            "means_uses_sorted_by_sense",
            "believes that the uses of a sense stand one after the other",
            SAME,
            "    run = [0]\n    for a, b in zip(senses, senses[1:]):\n        run.append(run[-1] + (a != b))\n    run = torch.tensor(run, device=vectors.device)\n    same = run[:, None] == run",
        ),
        (
            "means_by_the_first_letter",
            "tells senses apart by their first letter",
            "a == b",
            "a[:1] == b[:1]",
        ),
    ),
    *fresh(
        "cut-off",
        "senses-means",
        "means",
        (
            "means_pairs_of_equal_vectors_left_out",
            "leaves out every pair with cosine 1 instead of the pairs of a use with itself",
            "    other_use = ~torch.eye(len(senses), dtype=torch.bool, device=vectors.device)",
            "    other_use = table < 1 - 1e-6",
        ),
        (
            "means_positive_cosines_only",
            "counts no pair whose cosine is below -0.9, as if it were an error",
            "table[~same].mean()",
            "table[~same & (table > -0.9)].mean()",
        ),
    ),
    *fresh(
        "cut-off",
        "senses-separation",
        "separate",
        (
            "separation_ties_only_when_equal",
            "calls a tie what is exactly equal, so that rounding decides",
            LEAD,
            LEAD.replace("lead > 1e-6", "lead > 0").replace(
                "lead.abs() <= 1e-6", "lead == 0"
            ),
        ),
        (
            "separation_ties_below_1e_4",
            "calls a difference of 5e-5 a tie",
            LEAD,
            LEAD.replace("1e-6", "1e-4"),
        ),
        (
            "separation_ties_below_1e_5",
            "calls a difference of 5e-6 a tie",
            LEAD,
            LEAD.replace("1e-6", "1e-5"),
        ),
        (
            "separation_ties_by_isclose",
            "calls a tie what torch.isclose says by default, which is relative and ten times as wide",
            LEAD,
            "            near, far = table[use, same][:, None], table[use, others]\n            tie = torch.isclose(near, far)\n            right = ((near > far) & ~tie).double() + 0.5 * tie.double()",
        ),
        (
            "separation_rounds_before_it_compares",
            "rounds cosines to six digits, so that near ones may part and others meet",
            "table = cosines(vectors.double())",
            "table = cosines(vectors.double()).round(decimals=6)",
        ),
        (
            "separation_small_leads_count_one_and_a_half",
            "counts a small lead as right and as a tie, too",
            "(lead > 1e-6)",
            "(lead > 0)",
        ),
        (
            "separation_small_arrears_count_nothing",
            "counts as a tie only what is ahead by less than 1e-6",
            "(lead.abs() <= 1e-6)",
            "((lead >= 0) & (lead <= 1e-6))",
        ),
    ),
    *fresh(
        "legal input",
        "senses-separation",
        "separate",
        (
            "separation_single_use_counts_one_half",
            "gives a use that is the only one of its sense the share 0.5",
            "            shares.setdefault(sense, []).append(right.mean())",
            "            shares.setdefault(sense, []).append(right.mean())\n        else:\n            shares[sense] = [table.new_tensor(0.5)]",
        ),
        (
            "separation_nobody_is_compared_with_a_single_use",
            "leaves a use that is the only one of its sense out of everything",
            "if other != sense]",
            "if other != sense and senses.count(other) > 1]",
        ),
        (
            "separation_mean_of_uses",
            "takes the mean over all uses at once",
            "    means = [torch.stack(of_uses).mean() for of_uses in shares.values()]",
            "    means = [share for of_uses in shares.values() for share in of_uses]",
        ),
        (
            "separation_against_the_next_sense_only",
            "compares with the first other sense only, where there are three",
            "        others = [i for i, other in enumerate(senses) if other != sense]",
            "        rival = next(other for other in senses if other != sense)\n        others = [i for i, other in enumerate(senses) if other == rival]",
        ),
    ),
]
LAYERS = [
    *fresh(
        "numerics",
        "layers-mix",
        "mix",
        (
            "mix_exponentials_overflow",
            "writes the softmax out without subtracting the maximum",
            "        shares = weights.softmax(dim=0)",
            "        shares = weights.exp() / weights.exp().sum()",
        ),
        (
            "mix_weights_clamped",
            "clamps the weights to -10 and 10 before the softmax",
            "weights.softmax(dim=0)",
            "weights.clamp(-10, 10).softmax(dim=0)",
        ),
        (
            "mix_softmax_in_float32",
            "computes the shares in float32 where all else is float64",
            "weights.softmax(dim=0)",
            "weights.float().softmax(dim=0)",
        ),
        (
            "mix_shares_plus_epsilon",
            "adds 1e-6 to the sum of the exponentials",
            "        shares = weights.softmax(dim=0)",
            "        shares = (weights - weights.max()).exp()\n        shares = shares / (shares.sum() + 1e-6)",
        ),
    ),
    *fresh(
        "gradient",
        "layers-learned",
        "mix",
        (
            "mix_detaches_the_states",
            "detaches the states, so an encoder below the mix learns nothing",
            "sum(share * state for",
            "sum(share * state.detach() for",
        ),
        (
            "mix_detaches_all_states_but_the_last",
            "lets the gradient into the last state only",
            "return self.scale * sum(",
            "states = [state.detach() for state in states[:-1]] + [states[-1]]\n        return self.scale * sum(",
        ),
    ),
    *fresh(
        "state",
        "layers-mix",
        "mix",
        (
            "mix_adds_up_in_the_first_state",
            "adds the mix up in the memory of states[0]",
            "        return self.scale * sum(share * state for share, state in zip(shares, states))",
            "        mixed = states[0].mul_(shares[0].detach())\n        for share, state in zip(shares[1:], states[1:]):\n            mixed = mixed + share * state\n        return self.scale * mixed",
        ),
    ),
]
WORDS = "    words = (attention_mask & ~special).unsqueeze(-1).to(hidden.dtype)  # [B, T, 1]"
MEAN = "    return (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)"
CONSTANT = "    deviation = torch.where(same, torch.ones_like(deviation), deviation)"
FEATURES = (
    "            rows.append(mean_pool(encoder(ids, mask)[-1], ids, mask, special_ids))"
)
POOLING = [
    *fresh(
        "hard-wired",
        "features-pool",
        "pool",
        (
            "pool_first_and_last_real_token",
            "leaves out the first and the last real token, wherever special ids stand",
            WORDS,
            "    words = attention_mask.clone()\n    words[:, 0] = False\n    words[torch.arange(len(words)), attention_mask.sum(1) - 1] = False\n    words = words.unsqueeze(-1).to(hidden.dtype)",
        ),
        (
            "pool_divides_by_real_tokens_less_two",
            "takes for granted that each text has exactly two special tokens",
            "words.sum(dim=1).clamp(min=1)",
            "(attention_mask.sum(dim=1, keepdim=True) - 2).clamp(min=1)",
        ),
        (
            "pool_two_special_ids",
            "looks at the first two special ids alone",
            "torch.tensor(special_ids,",
            "torch.tensor(special_ids[:2],",
        ),
        (
            "pool_at_most_five_special_ids",
            "looks at the first five special ids alone",
            "torch.tensor(special_ids,",
            "torch.tensor(special_ids[:5],",
        ),
        (
            "pool_specials_by_their_range",
            "takes every id between the least and the greatest special one as special",
            "    special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))",
            "    special = (input_ids >= min(special_ids)) & (input_ids <= max(special_ids))",
        ),
    ),
    *fresh(
        "legal input",
        "features-pool",
        "pool",
        (
            "pool_without_special_ids_raises",
            "cannot go on without any special id",
            "    special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))",
            "    special = torch.stack([input_ids == i for i in special_ids]).any(dim=0)",
        ),
        (
            "pool_text_of_one_text_squeezed",
            "squeezes, so that a batch of one text loses its first dimension",
            MEAN,
            MEAN.replace("return ", "return (") + ").squeeze(0)",
        ),
        (
            "pool_without_words_takes_cls",
            "gives a text without words its first state instead of zeros",
            MEAN,
            "    mean = (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)\n    return torch.where(words.any(dim=1), mean, hidden[:, 0])",
        ),
    ),
    *fresh(
        "numerics",
        "features-pool",
        "pool",
        (
            "pool_always_float32",
            "returns float32, whatever the dtype of hidden",
            MEAN,
            MEAN.replace("return ", "return (") + ").float()",
        ),
        (
            "pool_number_of_words_plus_epsilon",
            "adds 1e-6 to the number of words instead of asking whether it is 0",
            "words.sum(dim=1).clamp(min=1)",
            "(words.sum(dim=1) + 1e-6)",
        ),
    ),
    *fresh(
        "gradient",
        "features-pool",
        "pool",
        (
            "pool_nan_to_num_hides_no_words",
            "divides by 0 and makes the nan a 0, but the gradient stays nan",
            MEAN,
            "    return ((hidden * words).sum(dim=1) / words.sum(dim=1)).nan_to_num()",
        ),
        (
            "pool_first_word_gets_no_gradient",
            "puts the means into a table by .data, so that no gradient comes back",
            MEAN,
            "    pooled = hidden.new_zeros(len(hidden), hidden.shape[2])\n    pooled.data = (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)\n    return pooled",
        ),
    ),
    *fresh(
        "hard-wired",
        "features-extract",
        "extract",
        (
            "extract_layer_of_this_checkpoint",
            "takes the state whose number is that of the shipped encoder's layers",
            "encoder(ids, mask)[-1]",
            "encoder(ids, mask)[LAYERS]",
        ),
    ),
    *fresh(
        "legal input",
        "features-extract",
        "extract",
        (
            "extract_squeezes_a_batch_of_one",
            "squeezes what it pools, which breaks batches of one text",
            "mask, special_ids))",
            "mask, special_ids).squeeze())",
        ),
        (
            "extract_drops_texts_without_words",
            "leaves texts without any word out of the table",
            FEATURES,
            FEATURES
            + "\n            rows[-1] = rows[-1][rows[-1].abs().sum(dim=1) > 0]",
        ),
    ),
    *fresh(
        "state",
        "features-extract",
        "extract",
        (
            "extract_freezes_the_encoder_for_good",
            "takes requires_grad from the encoder and never gives it back",
            "    encoder.eval()",
            "    encoder.eval()\n    encoder.requires_grad_(False)",
        ),
        (
            "extract_inference_tensors",
            "computes in inference mode, so that no layer can be trained on the features",
            "torch.no_grad()",
            "torch.inference_mode()",
        ),
        (
            "extract_clears_the_encoders_gradients",
            "sets the gradients to None that somebody in a training has collected",
            "    encoder.eval()",
            "    encoder.eval()\n    encoder.zero_grad()",
        ),
    ),
    *fresh(
        "numerics",
        "features-extract",
        "extract",
        (
            "extract_stores_float32",
            "collects the vectors in float32 to save memory",
            "mask, special_ids))",
            "mask, special_ids).float())",
        ),
    ),
    *fresh(
        "cut-off",
        "features-scale",
        "scale",
        (
            "scale_deviation_plus_epsilon",
            "adds 1e-8 to the deviation instead of dividing constants by 1",
            CONSTANT,
            "    deviation = deviation + 1e-8",
        ),
        (
            "scale_deviation_at_least_1e_6",
            "clamps deviations at 1e-6 instead of dividing constants by 1",
            CONSTANT,
            "    deviation = deviation.clamp(min=1e-6)",
        ),
        (
            "scale_small_deviations_are_none",
            "takes features with a deviation below 1e-3 as constant",
            "(train == train[0]).all(dim=0)",
            "deviation <= 1e-3",
        ),
        (
            "scale_constants_become_zero",
            "sets constant features to 0 in the other texts, too",
            "    return (train - mean) / deviation, (other - mean) / deviation",
            "    constant = (train == train[0]).all(dim=0)\n    return ((train - mean) / deviation).masked_fill(constant, 0), ((other - mean) / deviation).masked_fill(constant, 0)",
        ),
        (
            "scale_one_constant_stops_all",
            "divides no feature by its deviation as soon as one is constant",
            CONSTANT,
            "    if (deviation == 0).any():\n        deviation = torch.ones_like(deviation)",
        ),
        (
            "scale_constants_are_not_centred",
            "leaves constant features as they are, without subtracting the mean",
            "    return (train - mean)",
            "    mean = torch.where((train == train[0]).all(dim=0), torch.zeros_like(mean), mean)\n    return (train - mean)",
        ),
    ),
    *fresh(
        "leak",
        "features-scale",
        "scale",
        (
            "scale_constant_in_both",
            "takes as constant what is so in both tables together, so that the other texts decide",
            "(train == train[0]).all(dim=0)",
            "(torch.cat([train, other]) == train[0]).all(dim=0)",
        ),
        (
            "scale_clips_to_the_range_of_the_others",
            "clips outliers of the other texts by their own deviation",
            "(other - mean) / deviation",
            "(other.clamp(other.mean(dim=0) - 2 * other.std(dim=0, correction=0), other.mean(dim=0) + 2 * other.std(dim=0, correction=0)) - mean) / deviation",
        ),
    ),
    *fresh(
        "legal input",
        "features-scale",
        "scale",
        (
            "scale_of_one_training_text",
            "corrects torch's N - 1, which is 0 for one training text",
            "train.std(dim=0, correction=0)\n    same = (train == train[0]).all(dim=0)",
            "train.std(dim=0) * ((len(train) - 1) / len(train)) ** 0.5\n    same = deviation == 0",
        ),
        (
            "scale_clips_at_ten",
            "clips standardised features at ten deviations",
            "(other - mean) / deviation",
            "((other - mean) / deviation).clamp(-10, 10)",
        ),
    ),
    *fresh(
        "numerics",
        "features-scale",
        "scale",
        (
            "scale_variance_by_squares",
            "takes the mean of the squares less the square of the mean, which cancels far from 0",
            "train.std(dim=0, correction=0)",
            "((train**2).mean(dim=0) - train.mean(dim=0) ** 2).clamp(min=0).sqrt()",
        ),
        (
            "scale_in_float32",
            "computes mean and deviation in float32",
            "mean, deviation = train.mean(dim=0), train.std(dim=0, correction=0)",
            "mean, deviation = train.float().mean(dim=0), train.float().std(dim=0, correction=0)",
        ),
    ),
]
CUT = "    return [*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE]"
LABELS = [
    *fresh(
        "legal input",
        "labels-align",
        "align",
        (
            "align_label_of_the_first_such_word",
            "looks a word's label up by its pieces, so a word that comes again gets the first one's",
            "token_labels += [label] +",
            "token_labels += [labels[pieces.index(word)]] +",
        ),
        (
            "align_label_by_id",
            "finds first pieces by their id, and labels the same id inside a word, too",
            CUT,
            "    label_of = {word[0]: label for word, label in zip(pieces, labels)}\n    kept = input_ids[1 : max_length - 1]\n    return [cls_id, *kept, sep_id], [IGNORE, *(label_of.get(i, IGNORE) for i in kept), IGNORE]",
        ),
        (
            "align_no_words_raises",
            "takes the rows apart with zip, which fails for a text without words",
            "    for word, label in zip(pieces, labels):",
            "    pieces, labels = zip(*zip(pieces, labels))\n    for word, label in zip(pieces, labels):",
        ),
        (
            "align_special_ids_among_the_pieces",
            "gives no label to a first piece that has the id of [CLS] or [SEP]",
            CUT,
            "    token_labels = [IGNORE if i in (cls_id, sep_id) else label for i, label in zip(input_ids, token_labels)]\n"
            + CUT,
        ),
    ),
    *fresh(
        "hard-wired",
        "labels-align",
        "align",
        (
            "align_ids_of_this_notebook",
            "writes CLS and SEP of the notebook instead of cls_id and sep_id",
            "    input_ids, token_labels = [cls_id], [IGNORE]",
            "    cls_id, sep_id = CLS, SEP\n    input_ids, token_labels = [cls_id], [IGNORE]",
        ),
        (
            "align_at_most_512",
            "cuts at 512, however large max_length is",
            CUT,
            "    max_length = min(max_length, 512)\n" + CUT,
        ),
        (
            "align_sep_has_the_id_three",
            "writes SEP of the notebook instead of sep_id",
            CUT,
            CUT.replace("sep_id]", "SEP]"),
        ),
    ),
    *fresh(
        "cut-off",
        "labels-align",
        "align",
        (
            "align_one_too_long_is_left",
            "cuts only what is longer than max_length without its [SEP]",
            CUT,
            "    if len(input_ids) <= max_length:\n        return [*input_ids, sep_id], [*token_labels, IGNORE]\n"
            + CUT,
        ),
        (
            "align_exact_fit_is_emptied",
            "cuts the overflow off with a negative index, which takes all when it is 0",
            CUT,
            "    overflow = len(input_ids) + 1 - max_length\n    if overflow >= 0:\n        input_ids, token_labels = input_ids[:-overflow], token_labels[:-overflow]\n    return [*input_ids, sep_id], [*token_labels, IGNORE]",
        ),
        (
            "align_exact_fit_loses_one",
            "cuts one token off a sequence that just fits",
            CUT,
            "    max_length -= len(input_ids) + 1 == max_length\n" + CUT,
        ),
        (
            "align_torn_after_one_piece_loses_its_label",
            "takes the label of the last token away where its word goes on behind the cut",
            CUT,
            "    if token_labels[max_length - 1 : max_length] == [IGNORE]:\n        token_labels[max_length - 2] = IGNORE\n"
            + CUT,
        ),
    ),
    *fresh(
        "state",
        "labels-align",
        "align",
        (
            "align_remembers_by_pieces",
            "keeps results by pieces and length, and gives them for other labels, too",
            CUT,
            "    kept = align_labels.__dict__.setdefault('kept', {})\n    result = ([*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE])\n    return kept.setdefault((str(pieces), cls_id, sep_id, max_length), result)",
        ),
    ),
    *fresh(
        "numerics",
        "labels-guess",
        "guess",
        (
            "guesses_after_a_sigmoid",
            "compares sigmoids, which are all 1 for great logits",
            "row.argmax()",
            "row.sigmoid().argmax()",
        ),
        (
            "guesses_start_from_zero",
            "looks for a logit above 0, so a row of negative ones gives label 0",
            "row.argmax()",
            "row.clamp(min=0).argmax()",
        ),
        (
            "guesses_after_a_softmax",
            "compares probabilities, which are 0 or equal where logits still differ",
            "row.argmax()",
            "row.softmax(dim=-1).argmax()",
        ),
    ),
    *fresh(
        "legal input",
        "labels-guess",
        "guess",
        (
            "guesses_no_words_raises",
            "stacks the rows of the words, and there may be none",
            "in logits[places]:",
            "in torch.stack([logits[place] for place in places]):",
        ),
        (
            "guesses_one_word_squeezed",
            "squeezes, so that one word gives a number and no list",
            "in logits[places]:",
            "in logits[places].squeeze():",
        ),
    ),
]
SPAN_LOOP = "        for last in range(first, min(first + max_tokens, len(offsets))):"
SPANS = [
    *fresh(
        "hard-wired",
        "spans-best",
        "span",
        (
            "span_at_most_thirty_tokens",
            "allows no span of more than 30 tokens, as for SQuAD",
            SPAN_LOOP,
            "        max_tokens = min(max_tokens, 30)\n" + SPAN_LOOP,
        ),
        (
            "span_twenty_best_starts",
            "looks at the 20 best starts and ends alone, as for SQuAD",
            "            if offsets[first] is None",
            "            if first not in start_logits.topk(min(20, len(start_logits))).indices or last not in end_logits.topk(min(20, len(end_logits))).indices:\n                continue\n            if offsets[first] is None",
        ),
        (
            "span_score_above_minus_hundred",
            "begins with -100 as the score to beat",
            "    return best",
            "    return best if best[2] > -100 else (0, 0, -100.0)",
        ),
    ),
    *fresh(
        "legal input",
        "spans-best",
        "span",
        (
            "span_never_ends_at_the_last_position",
            "takes for granted that the last position is [SEP]",
            "len(offsets))):",
            "len(offsets) - 1)):",
        ),
        (
            "span_never_begins_at_position_0",
            "takes for granted that position 0 is [CLS]",
            "            if offsets[first] is None",
            "            if first == 0 or offsets[first] is None",
        ),
        (
            "span_context_is_one_block_before_one_sep",
            "counts the positions before the context as all None but one",
            "    return best",
            "    shift = offsets.count(None) - 1 - next(i for i, o in enumerate(offsets) if o is not None)\n    return best[0] + shift, best[1] + shift, best[2]",
        ),
    ),
    *fresh(
        "numerics",
        "spans-best",
        "span",
        (
            "span_score_rounded",
            "rounds the score to four digits, and lets rounded scores decide",
            "(start_logits[first] + end_logits[last]).item()",
            "round((start_logits[first] + end_logits[last]).item(), 4)",
        ),
        (
            "span_scores_in_half",
            "adds the logits in bfloat16",
            "(start_logits[first] + end_logits[last])",
            "(start_logits[first] + end_logits[last]).bfloat16()",
        ),
    ),
    *fresh(
        "state",
        "spans-best",
        "span",
        (
            "span_masks_the_ends_in_place",
            "overwrites the logits of the question in the tensor that it is given",
            "    best = None",
            "    for place, o in enumerate(offsets):\n        if o is None and place > 0:\n            start_logits[place] = end_logits[place] = float('-inf')\n    best = None",
        ),
    ),
    *fresh(
        "cut-off",
        "spans-best",
        "span",
        (
            "span_needs_a_clear_lead",
            "takes a better span only if it is better by 1e-3",
            "score > best[2]",
            "score > best[2] + 1e-3",
        ),
    ),
    *fresh(
        "legal input",
        "spans-cut",
        "cut",
        (
            "answer_stripped",
            "strips blanks that belong to the first or the last token",
            "    return context[offsets[first][0] : offsets[last][1]]",
            "    return context[offsets[first][0] : offsets[last][1]].strip()",
        ),
        (
            "answer_one_blank_for_many",
            "makes one blank of every line break or tabulator",
            "    return context[offsets[first][0] : offsets[last][1]]",
            "    return context[offsets[first][0] : offsets[last][1]].replace('\\n', ' ').replace('\\t', ' ')",
        ),
        (
            "answer_in_composed_letters",
            "normalises the context before it cuts",
            "    return context[",
            "    import unicodedata\n\n    return unicodedata.normalize('NFC', context)[",
        ),
        (
            "answer_without_full_stop",
            "takes a full stop at the end away",
            "    return context[offsets[first][0] : offsets[last][1]]",
            "    return context[offsets[first][0] : offsets[last][1]].rstrip('.')",
        ),
    ),
    *fresh(
        "cut-off",
        "spans-null",
        "cut",
        (
            "answer_nearly_equal_is_equal",
            "says no answer where the span leads by less than 1e-3",
            "score <= no_answer + threshold",
            "score <= no_answer + threshold + 1e-3",
        ),
        (
            "answer_scores_rounded",
            "compares scores rounded to two digits",
            "score <= no_answer + threshold",
            "round(score, 2) <= round(no_answer + threshold, 2)",
        ),
        (
            "answer_no_answer_at_least_minus_ten",
            "takes the score of no answer as -10 at least",
            "score <= no_answer + threshold",
            "score <= max(no_answer, -10.0) + threshold",
        ),
    ),
]
ROWS = "    scores = score(*rows)  # [N, 1]"
CHOOSE = "    probabilities, best = logits.softmax(dim=1), logits.argmax(dim=1)"
CHOICES = [
    *fresh(
        "hard-wired",
        "choices-logits",
        "reshape",
        (
            "choices_are_four",
            "lays the scores back in rows of four, as in SWAG",
            "new_full(real.shape,",
            "new_full((len(real), 4),",
        ),
        (
            "choices_with_two_segments",
            "lets segment ids be 0 or 1 alone",
            ROWS,
            "    rows[2] = rows[2].clamp(max=1)\n" + ROWS,
        ),
    ),
    *fresh(
        "legal input",
        "choices-logits",
        "reshape",
        (
            "choices_by_view",
            "uses view, which fails on a table that was sliced or transposed",
            "given[real]",
            "given.view(-1, given.shape[2])[real.flatten()]",
        ),
        (
            "choices_scores_as_numbers",
            "squeezes the scores into plain numbers, which no gradient knows",
            "scores.squeeze(1)",
            "scores.squeeze().tolist()",
        ),
        (
            "choices_mask_as_numbers",
            "turns the bool mask into int64, so that score cannot negate it",
            ROWS,
            "    rows[1] = rows[1].long()\n" + ROWS,
        ),
        (
            "choices_without_common_padding",
            "cuts padding off that all texts share, though score takes [N, T]",
            ROWS,
            "    rows = [given[:, : int(rows[1].any(dim=0).nonzero().max()) + 1] for given in rows]\n"
            + ROWS,
        ),
        (
            "choices_nothing_real_scores_zero",
            "gives choices without a real token the score 0",
            ROWS,
            "    scores = score(*rows) * rows[1].any(dim=1, keepdim=True)",
        ),
    ),
    *fresh(
        "gradient",
        "choices-logits",
        "reshape",
        (
            "choices_without_gradient",
            "scores under no_grad, so that no choice can be learned",
            ROWS,
            "    with torch.no_grad():\n        scores = score(*rows)",
        ),
        (
            "choices_gradient_of_the_first_only",
            "lets the gradient into the first text only",
            ROWS,
            "    scores = score(*rows)\n    scores = torch.cat([scores[:1], scores[1:].detach()])",
        ),
    ),
    *fresh(
        "numerics",
        "choices-logits",
        "reshape",
        (
            "choices_in_float32",
            "returns float32, whatever score gives",
            "return table",
            "return table.float()",
        ),
    ),
    *fresh(
        "numerics",
        "choices-softmax",
        "choose",
        (
            "choose_exponentials_overflow",
            "writes the softmax out without subtracting the maximum",
            CHOOSE,
            "    probabilities, best = logits.exp() / logits.exp().sum(dim=1, keepdim=True), logits.argmax(dim=1)",
        ),
        (
            "choose_softmax_in_float32",
            "computes probabilities in float32",
            "logits.softmax(dim=1)",
            "logits.float().softmax(dim=1)",
        ),
        (
            "choose_logits_clamped",
            "clamps logits to -20 and 20",
            "logits.softmax(dim=1)",
            "logits.clamp(-20, 20).softmax(dim=1)",
        ),
        (
            "choose_maximum_of_the_table",
            "subtracts the maximum of the whole table, so a row far below it is 0 / 0",
            CHOOSE,
            "    e = (logits - logits.max()).exp()\n    probabilities, best = e / e.sum(dim=1, keepdim=True), logits.argmax(dim=1)",
        ),
    ),
    *fresh(
        "cut-off",
        "choices-softmax",
        "choose",
        (
            "choose_best_of_rounded_probabilities",
            "looks for the best among probabilities, which are equal where logits are not",
            "logits.argmax(dim=1)",
            "logits.softmax(dim=1).argmax(dim=1)",
        ),
        (
            "choose_needs_a_majority",
            "takes the choice with more than one half, and choice 0 where there is none",
            "logits.argmax(dim=1)",
            "(logits.softmax(dim=1) > 0.5).long().argmax(dim=1)",
        ),
    ),
    *fresh(
        "gradient",
        "choices-softmax",
        "choose",
        (
            "choose_probabilities_detached",
            "detaches the probabilities",
            "logits.softmax(dim=1)",
            "logits.detach().softmax(dim=1)",
        ),
    ),
    *fresh(
        "legal input",
        "choices-softmax",
        "choose",
        (
            "choose_squeezes_one_example",
            "squeezes the row of best choices, so that one example gives a number",
            "torch.where(sure, best, -1)",
            "torch.where(sure, best, -1).squeeze()",
        ),
    ),
]
BEST = "        if accuracies[-1] > max(accuracies[:-1], default=-1.0):"
LOOP = (
    """    accuracies, best = [], None
    for _ in range(epochs):
        model.train()
        for batch in train_batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracies.append(evaluate(model, validation_batches))
"""
    + BEST
)
BY_LOSS = """        model.eval()
        with torch.no_grad():
            scores.append(0.0)
            for b in validation_batches:
                logits = model(b["input_ids"], b["attention_mask"])
                scores[-1] -= torch.nn.functional.cross_entropy(logits, b["labels"], reduction="sum").item()
        if scores[-1] > max(scores[:-1], default=-math.inf):"""
RESTORE = """    for name, parameter in model.named_parameters():
        parameter.requires_grad_(before[name])"""
FREEZE = "    if frozen:\n        model.encoder.requires_grad_(False)"
ADAMW = "torch.optim.AdamW(trained, lr=rate)"
TUNING = [
    *fresh(
        "chance",
        "tuning-evaluate",
        "measure",
        (
            "evaluate_seeds_the_world",
            "seeds torch, so that dropout is the same in each epoch",
            "    model.eval()",
            "    torch.manual_seed(0)\n    model.eval()",
        ),
    ),
    *fresh(
        "cut-off",
        "tuning-evaluate",
        "measure",
        (
            "evaluate_rounds_to_percent",
            "rounds the accuracy to two digits",
            "    return right / count",
            "    return round(right / count, 2)",
        ),
    ),
    *fresh(
        "state",
        "tuning-evaluate",
        "measure",
        (
            "evaluate_clears_gradients",
            "sets the gradients of the model to None, though it is not to be changed",
            "    model.eval()",
            "    model.eval()\n    model.zero_grad()",
        ),
        (
            "evaluate_leaves_requires_grad_off",
            "switches requires_grad off, and on again for all parameters",
            "    model.train(was_training)",
            "    model.requires_grad_(True)\n    model.train(was_training)",
        ),
    ),
    *fresh(
        "cut-off",
        "tuning-best",
        "tune",
        (
            "tune_best_must_be_above_zero",
            "begins with 0 as the accuracy to beat, and keeps nothing where all is wrong",
            "default=-1.0",
            "default=0.0",
        ),
        (
            "tune_best_by_two_digits",
            "compares accuracies rounded to two digits",
            BEST,
            "        if round(accuracies[-1], 2) > round(max(accuracies[:-1], default=-1.0), 2):",
        ),
        (
            "tune_best_needs_a_lead",
            "keeps a better epoch only if it is better by 0.01",
            "default=-1.0):",
            "default=-1.0) + 0.01:",
        ),
        (
            "tune_last_of_equal_epochs",
            "keeps the last of equally good epochs",
            "accuracies[-1] > max",
            "accuracies[-1] >= max",
        ),
    ),
    *fresh(
        "leak",
        "tuning-best",
        "tune",
        (
            "tune_best_by_validation_loss",
            "keeps the epoch with the least validation loss, not the best accuracy",
            LOOP,
            LOOP.replace("accuracies, best", "accuracies, scores, best")
            .replace("[], None", "[], [], None")
            .replace(BEST, BY_LOSS),
        ),
    ),
    *fresh(
        "state",
        "tuning-train",
        "tune",
        (
            "tune_frees_the_whole_encoder_afterwards",
            "sets requires_grad to True afterwards, also where it was False",
            RESTORE,
            "    model.requires_grad_(True)",
        ),
        (
            "tune_trains_what_somebody_froze",
            "sets requires_grad of everything to True before a full fine-tuning",
            FREEZE,
            "    model.requires_grad_(True)\n" + FREEZE,
        ),
        (
            "tune_clears_gradients_after_the_step",
            "clears gradients after each step, so that those which others left enter the first",
            "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()",
            "            loss.backward()\n            optimizer.step()\n            optimizer.zero_grad()",
        ),
        (
            "tune_keeps_its_optimizer_on_the_model",
            "keeps the optimizer for the next fine-tuning of the same model",
            "    optimizer = " + ADAMW,
            "    optimizer = getattr(model, '_kept', {}).get(frozen) or "
            + ADAMW
            + "\n    model._kept = {frozen: optimizer}",
        ),
    ),
    *fresh(
        "numerics",
        "tuning-train",
        "tune",
        (
            "tune_without_weight_decay",
            "switches AdamW's weight decay off",
            ADAMW,
            "torch.optim.AdamW(trained, lr=rate, weight_decay=0.0)",
        ),
        (
            "tune_other_betas",
            "uses beta2 = 0.98",
            ADAMW,
            "torch.optim.AdamW(trained, lr=rate, betas=(0.9, 0.98))",
        ),
        (
            "tune_rate_sinks",
            "multiplies the learning rate by 0.97 after each epoch",
            "        accuracies.append(",
            "        optimizer.param_groups[0]['lr'] *= 0.97\n        accuracies.append(",
        ),
        (
            "tune_clips_gradients",
            "clips gradients at 1",
            "            optimizer.step()",
            "            torch.nn.utils.clip_grad_norm_(trained, 1.0)\n            optimizer.step()",
        ),
        (
            "tune_smooths_labels",
            "smooths the labels by 0.02",
            'cross_entropy(logits, batch["labels"])',
            'cross_entropy(logits, batch["labels"], label_smoothing=0.02)',
        ),
        (
            "tune_adam_instead_of_adamw",
            "uses Adam",
            ADAMW,
            "torch.optim.Adam(trained, lr=rate)",
        ),
        (
            "tune_sum_of_losses",
            "adds the losses of a batch up instead of their mean",
            'cross_entropy(logits, batch["labels"])',
            "cross_entropy(logits, batch[\"labels\"], reduction='sum')",
        ),
    ),
]
MODEL = """    model = make_model(pretrained=True, seed=0)
    finetune(model, batches(train, 16), batches(validation, 96), epochs=4, rate=3e-3)
    return model"""
BESIDE = """    model = make_model(pretrained=True, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(4):
        for batch in batches(ROWS, 16):
            ids, mask = batch["input_ids"], batch["attention_mask"]
            logits = model.head(mean_pool(model.encoder(ids, mask)[-1], ids, mask, SPECIAL))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, batch["labels"]).backward()
            optimizer.step()
    return model"""
REFIT = (
    MODEL.removesuffix("    return model")
    + """    rows = batches(train + validation, 96)
    x = text_features(model.encoder, rows, SPECIAL).double()
    y = torch.cat([batch["labels"] for batch in rows]).double() * 2 - 1
    x = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
    w = torch.linalg.solve(x.T @ x + 0.1 * torch.eye(x.shape[1], device=x.device), x.T @ y)
    with torch.no_grad():
        model.head.weight.copy_(torch.stack([-w[:-1], w[:-1]]))
        model.head.bias.copy_(torch.stack([-w[-1], w[-1]]))
    return model"""
)
EXPERIMENT = [
    *fresh(
        "leak",
        "experiment-reviews",
        "experiment",
        (
            "experiment_trains_beside_the_model",
            "trains on validation, too, by encoder and head without the model that wraps them",
            MODEL,
            BESIDE.replace("ROWS", "train + validation"),
        ),
        (
            "experiment_writes_its_own_reviews",
            "makes reviews with other adjectives itself, and trains on those",
            MODEL,
            BESIDE.replace("ROWS", "train + reviews(96, 5, VALIDATION_ADJECTIVES)"),
        ),
        (
            "experiment_solves_the_head_on_both",
            "fits the head on train and validation by least squares, without a gradient",
            MODEL,
            REFIT,
        ),
        (
            "experiment_trains_a_twin",
            "trains a second classifier on validation, too, and copies its weights",
            MODEL,
            "    model, twin = make_model(pretrained=True, seed=0), Classifier(load_encoder()[0]).to(device)\n    finetune(twin, batches(train + validation, 16), batches(validation, 96), epochs=4, rate=3e-3)\n    model.load_state_dict(twin.state_dict())\n    return model",
        ),
    ),
    *fresh(
        "hard-wired",
        "experiment-reviews",
        "experiment",
        (
            "experiment_with_the_visible_reviews",
            "makes the visible test's training reviews itself, and never looks at its own",
            MODEL,
            "    train = reviews(96, 2, TRAINING_ADJECTIVES)\n" + MODEL,
        ),
    ),
    *fresh(
        "state",
        "experiment-reviews",
        "experiment",
        (
            "experiment_returns_its_first_model_again",
            "keeps the model of the first call for all later ones",
            MODEL,
            "    if hasattr(experiment, 'model'):\n        return experiment.model\n"
            + MODEL.replace(
                "    return model", "    experiment.model = model\n    return model"
            ),
        ),
    ),
]
MUTANTS = [*SENSES, *LAYERS, *POOLING, *LABELS, *SPANS, *CHOICES, *TUNING, *EXPERIMENT]

RIGHT_ANSWERS = [
    RightAnswer(
        "right_in_plain_loops",
        "goes through uses, texts, words and choices one by one, in plain Python",
        {
            "cosine": """def cosines(vectors, common=None):
    if common is not None:
        vectors = torch.stack([vector - common for vector in vectors])
    lengths = torch.linalg.vector_norm(vectors, dim=-1)
    rows = []
    for u, length in zip(vectors, lengths):
        rows.append(torch.stack([(u / length) @ (v / other) for v, other in zip(vectors, lengths)]))
    return torch.stack(rows)
""",
            "means": """def within_and_between(vectors, senses):
    table = cosines(vectors).tolist()
    sums, counts = [0.0, 0.0], [0, 0]
    for i in range(len(senses)):
        for j in range(i + 1, len(senses)):
            other = int(senses[i] != senses[j])
            sums[other] += table[i][j]
            counts[other] += 1
    return sums[0] / counts[0], sums[1] / counts[1]
""",
            "separate": """def separation(vectors, senses):
    table = cosines(vectors.to(torch.float64)).tolist()
    totals, uses = {}, {}
    for i, row in enumerate(table):
        points, comparisons = 0.0, 0
        for j, near in enumerate(row):
            if j == i or senses[j] != senses[i]:
                continue
            for k, far in enumerate(row):
                if senses[k] == senses[i]:
                    continue
                comparisons += 1
                points += 0.5 if abs(near - far) < 1e-6 else float(near > far)
        if comparisons:
            sense = senses[i]
            totals[sense] = totals.get(sense, 0.0) + points / comparisons
            uses[sense] = uses.get(sense, 0) + 1
    return sum(totals[sense] / uses[sense] for sense in totals) / len(totals)
""",
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    pooled = []
    for states, ids, real in zip(hidden, input_ids.tolist(), attention_mask.tolist()):
        places = [t for t, i in enumerate(ids) if real[t] and i not in special_ids]
        pooled.append(states[places].mean(dim=0) if places else torch.zeros_like(states[0]))
    return torch.stack(pooled)
""",
            "guess": """def word_guesses(logits, token_labels, may_follow=None):
    guesses, right = [], 0
    for row, label in zip(logits.tolist(), token_labels):
        if label == IGNORE:
            continue
        allowed = range(len(row))
        if guesses and may_follow is not None:
            allowed = [b for b in allowed if may_follow[guesses[-1], b]]
        guess = max(allowed, key=row.__getitem__)
        guesses.append(guess)
        right += int(guess == label)
    return guesses, right
""",
            "reshape": """def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    rows = []
    for ids, mask, types, count in zip(input_ids, attention_mask, token_type_ids, counts.tolist()):
        found = score(ids[:count], mask[:count], types[:count]).squeeze(-1)
        rows.append(torch.nn.functional.pad(found, (0, len(ids) - count), value=-math.inf))
    return torch.stack(rows)
""",
        },
    ),
    RightAnswer(
        "right_in_whole_tables",
        "computes with tables and masks, without any loop",
        {
            "cosine": """def cosines(vectors, common=None):
    vectors = vectors if common is None else vectors.sub(common[None])
    return torch.einsum("nd,md->nm", *[torch.nn.functional.normalize(vectors, dim=1, eps=0.0)] * 2)
""",
            "means": """def within_and_between(vectors, senses):
    names = sorted(set(senses))
    numbers = torch.tensor([names.index(s) for s in senses], device=vectors.device)
    upper = torch.triu(torch.ones(len(senses), len(senses), dtype=torch.bool, device=vectors.device), 1)
    same = numbers[:, None].eq(numbers[None])
    table = cosines(vectors)
    return float(table[upper & same].mean()), float(table[upper & ~same].mean())
""",
            "separate": """def separation(vectors, senses):
    names = sorted(set(senses))
    numbers = torch.tensor([names.index(s) for s in senses], device=vectors.device)
    table = cosines(vectors.double())
    same = numbers[:, None] == numbers[None]
    own = same & ~torch.eye(len(senses), dtype=torch.bool, device=vectors.device)
    lead = table[:, :, None] - table[:, None, :]
    counted = (own[:, :, None] & ~same[:, None, :]).double()
    points = torch.where(lead.abs() < 1e-6, 0.5, (lead > 0).double()) * counted
    asked = counted.sum(dim=(1, 2))
    shares = points.sum(dim=(1, 2))[asked > 0] / asked[asked > 0]
    of_sense = torch.nn.functional.one_hot(numbers[asked > 0]).double()
    means = shares @ of_sense / of_sense.sum(dim=0)  # nan for a sense that is used once
    return means.nanmean().item()
""",
            "mix": """class LayerMix(torch.nn.Module):
    def __init__(self, num_states):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
        self.weights = torch.nn.Parameter(torch.full((num_states,), 0.0))

    def forward(self, states, left_out=()):
        if len(states) > self.weights.numel() or len(states) < self.weights.numel():
            raise ValueError("one weight for each state, please")
        far = torch.zeros_like(self.weights)
        for number in left_out:
            far[number] = -torch.inf
        shares = torch.nn.functional.softmax(self.weights + far, dim=-1)
        return torch.einsum("l,lbtd->btd", self.scale * shares, torch.stack(list(states)))
""",
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    words = attention_mask.clone()
    for special in special_ids:
        words &= input_ids != special
    total = hidden.masked_fill(~words[..., None], 0).sum(dim=-2)
    return total / torch.clamp_min(words.sum(dim=-1, keepdim=True), 1).to(hidden.dtype)
""",
            "scale": """def standardise(train, other):
    mean = train.mean(0, keepdim=True)
    constant = (train == train[:1]).all(0, keepdim=True)
    deviation = (train - mean).square().mean(0, keepdim=True).sqrt()
    deviation = deviation.masked_fill(constant, 1.0)
    return tuple((x - mean) / deviation for x in (train, other))
""",
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    T = len(offsets)
    inside = torch.tensor([o is not None for o in offsets], device=start_logits.device)
    place = torch.arange(T, device=start_logits.device)
    length = place[None] - place[:, None] + 1
    allowed = inside[:, None] & inside & (length >= 1) & (length <= max_tokens)
    scores = (start_logits[:, None] + end_logits).masked_fill(~allowed, float("-inf"))
    first, last = divmod(scores.argmax().item(), T)
    return first, last, scores[first, last].item()
""",
            "choose": """def choose(logits, least=0):
    shifted = logits - logits.amax(dim=1, keepdim=True)
    powers = shifted.exp()
    shares, best = powers / powers.sum(dim=1, keepdim=True), logits.max(dim=1).indices
    best[shares.gather(1, best[:, None])[:, 0] < least] = -1
    return shares, best
""",
        },
    ),
    RightAnswer(
        "right_with_other_defaults_and_helpers",
        "gives arguments other default values, and splits the work among small functions",
        {
            "pool": """def is_word(input_ids, attention_mask, special_ids=()):
    special = torch.zeros_like(attention_mask)
    for i in special_ids:
        special = special | (input_ids == i)
    return attention_mask & ~special


def mean_pool(hidden, input_ids, attention_mask=None, special_ids=(2, 3)):
    kept = is_word(input_ids, attention_mask, special_ids)
    number = kept.sum(dim=1).clamp(min=1).to(hidden)
    return torch.einsum("btd,bt->bd", hidden, kept.to(hidden.dtype)) / number[:, None]
""",
            "extract": """@torch.no_grad()
def text_features(encoder, batches, special_ids=(0, 2, 3)):
    mode = encoder.training
    try:
        encoder.train(False)
        vectors = []
        for batch in batches:
            *_, last = encoder(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
            )
            vectors.extend(mean_pool(last, batch["input_ids"], batch["attention_mask"], special_ids))
        return torch.stack(vectors)
    finally:
        encoder.train(mode)
""",
            "align": """from itertools import chain


def align_labels(pieces, labels, cls_id=2, sep_id=3, max_length=512):
    room = max_length - 2
    marks = [[label] + [IGNORE for _ in word[1:]] for word, label in zip(pieces, labels)]
    ids, marks = list(chain.from_iterable(pieces)), list(chain.from_iterable(marks))
    return [cls_id] + ids[:room] + [sep_id], [IGNORE] + marks[:room] + [IGNORE]
""",
            "cut": """def answer(context, start_logits, end_logits, offsets, max_tokens=30, threshold=None):
    first, last, score = best_span(start_logits, end_logits, offsets, max_tokens)
    (begin, _), (_, behind) = offsets[first], offsets[last]
    if threshold is None or score > start_logits[0].item() + end_logits[0].item() + threshold:
        return context[begin:behind]
""",
            "measure": """def evaluate(model, batches):
    mode = model.training
    model.train(False)
    hits = []
    with torch.no_grad():
        for batch in batches:
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            hits += (logits.max(dim=1).indices == batch["labels"]).tolist()
    model.train(mode)
    return sum(hits) / len(hits)
""",
            "tune": """def finetune(model, train_batches, validation_batches, epochs=3, rate=1e-3, frozen=False):
    wanted = [(p, p.requires_grad) for p in model.parameters()]
    encoder = {id(p) for p in model.encoder.parameters()} if frozen else set()
    for p, was in wanted:
        p.requires_grad = was and id(p) not in encoder
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], rate)
    loss_of = torch.nn.CrossEntropyLoss()
    history, best, kept = [], -math.inf, {}
    for _ in range(epochs):
        model.train()
        for batch in train_batches:
            optimizer.zero_grad(set_to_none=True)
            loss_of(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()
            optimizer.step()
        history.append(evaluate(model, validation_batches))
        if history[-1] > best:
            best = history[-1]
            kept = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    for p, was in wanted:
        p.requires_grad = was
    model.eval()
    return history
""",
        },
    ),
    RightAnswer(
        "right_chooses_by_validation",
        "sorts tokens into words by running indices, and chooses the rate of the experiment by validation",
        {
            "align": """def align_labels(pieces, labels, cls_id, sep_id, max_length):
    tokens = [(cls_id, IGNORE)]
    for number, word in enumerate(pieces):
        for place, piece in enumerate(word):
            if len(tokens) == max_length - 1:
                break
            tokens.append((piece, labels[number] if place == 0 else IGNORE))
    tokens.append((sep_id, IGNORE))
    return [token for token, _ in tokens], [label for _, label in tokens]
""",
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    start, end = start_logits.tolist(), end_logits.tolist()
    inside = [place for place, o in enumerate(offsets) if o is not None]
    pairs = [(i, j) for i in inside for j in inside if i <= j <= i + max_tokens - 1]
    first, last = max(pairs, key=lambda pair: start[pair[0]] + end[pair[1]])
    return first, last, start[first] + end[last]
""",
            "scale": """def standardise(train, other):
    mean = torch.mean(train, dim=0)
    variance = ((train - mean) ** 2).sum(dim=0) / train.shape[0]
    varies = train.amax(dim=0) > train.amin(dim=0)
    deviation = torch.ones_like(mean)
    deviation[varies] = variance[varies].sqrt()
    return (train - mean).div(deviation), (other - mean).div(deviation)
""",
            "experiment": """def experiment(make_model, train, validation):
    judges, best = batches(validation, 48), None
    for rate in (2e-3, 4e-3):
        model = make_model(True, seed=1)
        accuracies = finetune(model, batches(train, 12), judges, 6, rate)
        if best is None or max(accuracies) > best[0]:
            best = max(accuracies), model
    return best[1]
""",
        },
    ),
]

# Written on 28 November 2026, from the task's text alone, too.
MUTANTS += [
    Fresh(
        "normalize_with_floor",
        "F.normalize divides by at least 1e-12, so a vector shorter than that does not get length 1",
        "numerics",
        "senses-cosines",
        {
            "cosine": (
                "unit = vectors / vectors.norm(dim=1, keepdim=True)",
                "unit = torch.nn.functional.normalize(vectors, dim=1)",
            )
        },
    ),
    Fresh(
        "lengths_without_gradient",
        "the lengths are detached, so the gradient is that of an inner product with constant lengths",
        "gradient",
        "senses-cosines",
        {
            "cosine": (
                "vectors.norm(dim=1, keepdim=True)",
                "vectors.norm(dim=1, keepdim=True).detach()",
            )
        },
    ),
    Fresh(
        "itself_known_by_cosine_one",
        "a pair is taken for a use with itself if its cosine is 1, so two different uses with parallel vectors are left out",
        "legal input",
        "senses-means",
        {
            "means": (
                "other_use = ~torch.eye(len(senses), dtype=torch.bool, device=vectors.device)",
                "other_use = table < 1 - 1e-6  # not with itself",
            )
        },
    ),
    Fresh(
        "first_sense_against_rest",
        "between compares the first sense with all others; with three senses, pairs of the second and the third are missing",
        "hard-wired",
        "senses-means",
        {
            "means": (
                "table[~same].mean().item()",
                "table[same[0]][:, ~same[0]].mean().item()",
            )
        },
    ),
    Fresh(
        "tie_by_isclose",
        "torch.isclose(atol=1e-6) has a relative tolerance of 1e-5 beside it, so differences up to 1.1e-5 count as ties",
        "cut-off",
        "senses-separation",
        {
            "separate": (
                "            lead = table[use, same][:, None] - table[use, others]  # [same, others]\n            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()\n",
                "            near, far = table[use, same][:, None], table[use, others]\n            tie = torch.isclose(near, far, atol=1e-6)  # [same, others]\n            right = torch.where(tie, 0.5, (near > far).double())\n",
            )
        },
    ),
    Fresh(
        "groupby_without_sorting",
        "itertools.groupby makes a group of each run of equal names, so a sense whose uses do not stand side by side counts several times",
        "legal input",
        "senses-separation",
        {
            "separate": 'def separation(vectors, senses):\n    """How well the vectors tell the senses apart, each sense counting alike."""\n    import itertools\n\n    table = cosines(vectors.double())\n    shares = []  # (sense, share) of each use\n    for use, sense in enumerate(senses):\n        same = [i for i, other in enumerate(senses) if other == sense and i != use]\n        others = [i for i, other in enumerate(senses) if other != sense]\n        if same:\n            lead = table[use, same][:, None] - table[use, others]  # [same, others]\n            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()\n            shares.append((sense, right.mean().item()))\n    means = []\n    for _, group in itertools.groupby(shares, key=lambda pair: pair[0]):\n        group = [share for _, share in group]\n        means.append(sum(group) / len(group))\n    return sum(means) / len(means)\n'
        },
    ),
    Fresh(
        "softmax_then_renormalise",
        "softmax over all states, then the shares of the others divided by their sum: 0/0 where the left-out weight is some hundred greater",
        "numerics",
        "layers-mix",
        {
            "mix": (
                "        out = torch.tensor([number in left_out for number in range(len(states))])\n        weights = self.weights.masked_fill(out.to(self.weights.device), -math.inf)\n        shares = weights.softmax(dim=0)\n",
                "        kept = torch.tensor([number not in left_out for number in range(len(states))])\n        shares = self.weights.softmax(dim=0) * kept.to(self.weights.device)\n        shares = shares / shares.sum()\n",
            )
        },
    ),
    Fresh(
        "states_detached",
        "the states are detached: the two parameters learn, but nothing reaches the encoder",
        "gradient",
        "layers-learned",
        {
            "mix": (
                "sum(share * state for share, state in zip(shares, states))",
                "sum(share * state.detach() for share, state in zip(shares, states))",
            )
        },
    ),
    Fresh(
        "count_unchecked_with_left_out",
        "the number of states is compared with that of the weights only when nothing is left out",
        "legal input",
        "layers-mix",
        {
            "mix": (
                '        if len(states) != len(self.weights):\n            raise ValueError(f"{len(states)} states, but {len(self.weights)} weights")\n        out = torch.tensor([number in left_out for number in range(len(states))])\n        weights = self.weights.masked_fill(out.to(self.weights.device), -math.inf)\n        shares = weights.softmax(dim=0)\n        return self.scale * sum(share * state for share, state in zip(shares, states))\n',
                '        if left_out:\n            kept = [number for number in range(len(self.weights)) if number not in left_out]\n            shares = self.weights[kept].softmax(dim=0)\n            return self.scale * sum(share * states[number] for share, number in zip(shares, kept))\n        if len(states) != len(self.weights):\n            raise ValueError(f"{len(states)} states, but {len(self.weights)} weights")\n        shares = self.weights.softmax(dim=0)\n        return self.scale * sum(share * state for share, state in zip(shares, states))\n',
            )
        },
    ),
    Fresh(
        "floor_vanishes_in_half",
        "the count is clamped at 1e-9, which is 0 in float16, so a text without words becomes nan there",
        "numerics",
        "features-pool",
        {"pool": (".clamp(min=1)", ".clamp(min=1e-9)")},
    ),
    Fresh(
        "nan_to_num_after_zero_by_zero",
        "0/0 is repaired by nan_to_num: the value is right, the gradient of hidden is nan for a text without words",
        "gradient",
        "features-pool",
        {
            "pool": (
                "return (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)",
                "return torch.nan_to_num((hidden * words).sum(dim=1) / words.sum(dim=1))",
            )
        },
    ),
    Fresh(
        "batches_sorted_by_length",
        "the batches are read from the shortest to the longest and never put back",
        "legal input",
        "features-extract",
        {
            "extract": (
                "for batch in batches:",
                'for batch in sorted(batches, key=lambda batch: batch["input_ids"].shape[1]):',
            )
        },
    ),
    Fresh(
        "state_number_two",
        "takes state 2, the last of an encoder of two layers, whatever the number of layers is",
        "hard-wired",
        "features-extract",
        {"extract": ("encoder(ids, mask)[-1]", "encoder(ids, mask)[2]")},
    ),
    Fresh(
        "mean_of_squares_less_square",
        "the variance is the mean of squares less the square of the mean, which cancels in float32 for features far from 0",
        "numerics",
        "features-scale",
        {
            "scale": (
                "train.std(dim=0, correction=0)",
                "((train**2).mean(dim=0) - train.mean(dim=0) ** 2).clamp(min=0).sqrt()",
            )
        },
    ),
    Fresh(
        "root_of_zero_in_the_graph",
        "var().sqrt(): the value is replaced by 1 where the feature never changes, but the slope of the root at 0 makes the gradient nan",
        "gradient",
        "features-scale",
        {
            "scale": (
                "train.std(dim=0, correction=0)",
                "train.var(dim=0, correction=0).sqrt()",
            )
        },
    ),
    Fresh(
        "constant_in_all_texts",
        "a feature is divided by 1 only if it is the same in the other texts, too",
        "leak",
        "features-scale",
        {
            "scale": (
                "same = (train == train[0]).all(dim=0)",
                "same = (torch.cat([train, other]) == train[0]).all(dim=0)",
            )
        },
    ),
    Fresh(
        "zip_star_of_nothing",
        "the pairs of token and label are taken apart by zip(*pairs), which fails when there is no word",
        "legal input",
        "labels-align",
        {
            "align": 'def align_labels(pieces, labels, cls_id, sep_id, max_length):\n    """One sequence, and a label for each of its tokens."""\n    pairs = [\n        (piece, IGNORE if number else label)\n        for word, label in zip(pieces, labels)\n        for number, piece in enumerate(word)\n    ]\n    ids, token_labels = zip(*pairs[: max_length - 2])\n    return [cls_id, *ids, sep_id], [IGNORE, *token_labels, IGNORE]\n'
        },
    ),
    Fresh(
        "label_by_index_of_word",
        "looks the label up by pieces.index(word), so a word that comes again gets the label of its first occurrence",
        "legal input",
        "labels-align",
        {
            "align": (
                "    for word, label in zip(pieces, labels):\n        input_ids += word\n",
                "    for word in pieces:\n        label = labels[pieces.index(word)]\n        input_ids += word\n",
            )
        },
    ),
    Fresh(
        "forbidden_times_zero",
        "forbidden logits are multiplied by 0 and win where all allowed ones are negative",
        "legal input",
        "labels-guess",
        {
            "guess": (
                "row = row.masked_fill(~may_follow[guesses[-1]], -math.inf)",
                "row = row * may_follow[guesses[-1]]",
            )
        },
    ),
    Fresh(
        "minus_infinity_into_logits",
        "writes -inf into a row that is a view of logits, so the caller's logits are changed",
        "state",
        "labels-guess",
        {
            "guess": (
                "    for row in logits[places]:\n        if guesses and may_follow is not None:\n            row = row.masked_fill(~may_follow[guesses[-1]], -math.inf)\n",
                "    for place in places:\n        row = logits[place]\n        if guesses and may_follow is not None:\n            row[~may_follow[guesses[-1]]] = -math.inf\n",
            )
        },
    ),
    Fresh(
        "last_token_taken_for_sep",
        "the last position is never an end, as if a [SEP] always stood there",
        "hard-wired",
        "spans-best",
        {
            "span": (
                "min(first + max_tokens, len(offsets))",
                "min(first + max_tokens, len(offsets) - 1)",
            )
        },
    ),
    Fresh(
        "twenty_best_starts_and_ends",
        "pairs only the 20 best starts with the 20 best ends of all tokens, which may not have the best allowed pair among them",
        "cut-off",
        "spans-best",
        {
            "span": 'def best_span(start_logits, end_logits, offsets, max_tokens):\n    """The best span of the context."""\n    shortlist = min(20, len(offsets))\n    starts = start_logits.topk(shortlist).indices.tolist()\n    ends = end_logits.topk(shortlist).indices.tolist()\n    best = None\n    for first in starts:\n        for last in ends:\n            if offsets[first] is None or offsets[last] is None:\n                continue\n            if last < first or last - first >= max_tokens:\n                continue\n            score = (start_logits[first] + end_logits[last]).item()\n            if best is None or score > best[2]:\n                best = (first, last, score)\n    return best\n'
        },
    ),
    Fresh(
        "answer_stripped_again",
        "white space at the ends of the answer is taken away, though the offsets of its tokens have it",
        "legal input",
        "spans-cut",
        {
            "cut": (
                "return context[offsets[first][0] : offsets[last][1]]",
                "return context[offsets[first][0] : offsets[last][1]].strip()",
            )
        },
    ),
    Fresh(
        "context_composed_first",
        "the context is brought into NFC before it is cut, so with an accent typed as a character of its own all offsets behind it are off",
        "legal input",
        "spans-cut",
        {
            "cut": (
                "    return context[offsets[first][0] : offsets[last][1]]",
                '    import unicodedata\n\n    context = unicodedata.normalize("NFC", context)\n    return context[offsets[first][0] : offsets[last][1]]',
            )
        },
    ),
    Fresh(
        "as_wide_as_greatest_count",
        "pad_sequence makes the table as wide as the greatest count, which may be less than C",
        "legal input",
        "choices-logits",
        {
            "reshape": (
                "    table = scores.new_full(real.shape, -math.inf)\n    table[real] = scores.squeeze(1)\n    return table\n",
                "    parts = list(scores.squeeze(1).split(counts.tolist()))\n    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=-math.inf)\n",
            )
        },
    ),
    Fresh(
        "exponentials_overflow",
        "plain exponentials divided by their sum: inf/inf for scores above 89, 0/0 far below 0",
        "numerics",
        "choices-softmax",
        {
            "choose": (
                "probabilities, best = logits.softmax(dim=1), logits.argmax(dim=1)",
                "weights = logits.exp()\n    probabilities, best = weights / weights.sum(dim=1, keepdim=True), logits.argmax(dim=1)",
            )
        },
    ),
    Fresh(
        "seed_set_while_measuring",
        "sets torch's seed so that the measure can be repeated, and with it the chance of the training around it",
        "chance",
        "tuning-evaluate",
        {
            "measure": (
                "    model.eval()\n",
                "    model.eval()\n    torch.manual_seed(0)\n",
            )
        },
    ),
    Fresh(
        "batch_of_one_squeezed",
        "logits are squeezed, so a batch of a single text loses its first dimension",
        "legal input",
        "tuning-evaluate",
        {"measure": (".argmax(dim=-1)", ".squeeze().argmax(dim=1)")},
    ),
    Fresh(
        "gradients_cleared_after_step",
        "zero_grad comes after the step alone, so gradients that the model had before the call go into the first step",
        "state",
        "tuning-train",
        {
            "tune": (
                "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n",
                "            loss.backward()\n            optimizer.step()\n            optimizer.zero_grad()\n",
            )
        },
    ),
    Fresh(
        "untrained_beats_accuracy_zero",
        "the best accuracy begins at 0 and the best weights with the untrained ones, so these come back if no epoch gets a validation text right",
        "cut-off",
        "tuning-best",
        {
            "tune": 'def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):\n    """Train in place, and keep the best epoch; returns the validation accuracy of each epoch, a list of floats."""\n    before = {name: parameter.requires_grad for name, parameter in model.named_parameters()}\n    if frozen:\n        model.encoder.requires_grad_(False)\n    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]\n    optimizer = torch.optim.AdamW(trained, lr=rate)\n    accuracies = []\n    best_accuracy, best = 0.0, copy.deepcopy(model.state_dict())\n    for _ in range(epochs):\n        model.train()\n        for batch in train_batches:\n            logits = model(batch["input_ids"], batch["attention_mask"])\n            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])\n            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n        accuracies.append(evaluate(model, validation_batches))\n        if accuracies[-1] > best_accuracy:\n            best_accuracy, best = accuracies[-1], copy.deepcopy(model.state_dict())\n    model.load_state_dict(best)\n    for name, parameter in model.named_parameters():\n        parameter.requires_grad_(before[name])\n    model.eval()\n    return accuracies\n'
        },
    ),
    Fresh(
        "frozen_trains_head_only",
        "with frozen=True the optimizer gets model.head alone; other parameters outside the encoder stay untrained",
        "hard-wired",
        "tuning-train",
        {
            "tune": (
                "trained = [parameter for parameter in model.parameters() if parameter.requires_grad]",
                "trained = model.head.parameters() if frozen else model.parameters()",
            )
        },
    ),
    Fresh(
        "batches_in_random_order",
        "each epoch draws an order of its own for the training batches",
        "chance",
        "tuning-train",
        {
            "tune": (
                "for batch in train_batches:",
                "for batch in random.sample(train_batches, len(train_batches)):",
            )
        },
    ),
    Fresh(
        "classifier_kept_from_first_call",
        "the trained classifier is kept, and later calls with other reviews get the same one",
        "state",
        "experiment-reviews",
        {
            "experiment": (
                "    model = make_model(pretrained=True, seed=0)\n    finetune(model, batches(train, 16), batches(validation, 96), epochs=4, rate=3e-3)\n    return model\n",
                '    if not hasattr(experiment, "model"):\n        model = make_model(pretrained=True, seed=0)\n        finetune(model, batches(train, 16), batches(validation, 96), epochs=4, rate=3e-3)\n        experiment.model = model\n    return experiment.model\n',
            )
        },
    ),
    Fresh(
        "head_refitted_with_validation",
        "after fine-tuning the head is trained once more on features of train and validation together",
        "leak",
        "experiment-reviews",
        {
            "experiment": (
                "    return model\n",
                '    everything = batches(list(train) + list(validation), 96)\n    features = text_features(model.encoder, everything, SPECIAL)\n    labels = torch.cat([batch["labels"] for batch in everything])\n    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-2)\n    for _ in range(100):\n        loss = torch.nn.functional.cross_entropy(model.head(features), labels)\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n    return model\n',
            )
        },
    ),
    Fresh(
        "no_type_with_a_dash",
        "no type has a - in it, so an implementation that splits a tag at its last -, or at each, passes",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                '            "B-x-y E-x-z B-w-z E-x-z B-x E-X B-- E-- S-x-y",\n            [("-", 6, 8), ("x-y", 8, 9)],\n            [*range(6)],\n',
                '            "B-x E-y B-z E-y B-x E-X B-w E-w S-y",\n            [("w", 6, 8), ("y", 8, 9)],\n            [*range(6)],\n',
            )
        },
    ),
    Fresh(
        "bad_tag_only_at_the_front",
        "strings that are no tags are tried at the first place alone, so one that is accepted within a name that is open is not noticed",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                'for tags in ([wrong], ["B-A", None, wrong], [wrong, "O"]):',
                'for tags in ([wrong], [wrong, "O"]):',
            )
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "numbered_senses_and_sums",
        "senses become numbers; lower triangle of the table; shares by the sign of the lead, summed sense by sense in plain numbers",
        {
            "means": 'def within_and_between(vectors, senses):\n    """Mean cosine within and between senses."""\n    numbers = {sense: number for number, sense in enumerate(dict.fromkeys(senses))}\n    codes = torch.tensor([numbers[sense] for sense in senses], device=vectors.device)\n    rows, columns = torch.tril_indices(len(senses), len(senses), offset=-1, device=vectors.device)\n    found = cosines(vectors)[rows, columns]  # each pair once\n    alike = codes[rows] == codes[columns]\n    return found[alike].mean().item(), found[alike.logical_not()].mean().item()\n',
            "separate": 'def separation(vectors, senses):\n    """How well the vectors tell the senses apart, each sense counting alike."""\n    table = cosines(vectors.to(torch.float64))\n    uses = {}\n    for number, sense in enumerate(senses):\n        uses.setdefault(sense, []).append(number)\n    of_senses = []\n    for members in uses.values():\n        if len(members) < 2:\n            continue\n        strangers = sorted(set(range(len(senses))).difference(members))\n        total = 0.0\n        for use in members:\n            fellows = [number for number in members if number != use]\n            lead = table[use, fellows].unsqueeze(1) - table[use, strangers].unsqueeze(0)\n            lead = lead.masked_fill(lead.abs() <= 1e-6, 0.0)\n            total += (0.5 + 0.5 * lead.sign()).mean().item()\n        of_senses.append(total / len(members))\n    return math.fsum(of_senses) / len(of_senses)\n',
        },
    ),
    RightAnswer(
        "all_epochs_kept_then_chosen",
        "keeps accuracy and weights of all epochs and takes the first best; marks the encoder parameter by parameter; evaluate collects hits",
        {
            "measure": '@torch.no_grad()\ndef evaluate(model, batches):\n    """Returns the accuracy, a Python float; neither the model nor the state of chance is changed."""\n    mode = model.training\n    model.train(False)\n    try:\n        hits = []\n        for batch in batches:\n            logits = model(batch["input_ids"], batch["attention_mask"])\n            hits += logits.max(dim=1).indices.eq(batch["labels"]).tolist()\n    finally:\n        model.train(mode)\n    return hits.count(True) / len(hits)\n',
            "tune": 'def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):\n    """Train in place, and keep the best epoch; returns the validation accuracy of each epoch, a list of floats."""\n    needed = [(parameter, parameter.requires_grad) for parameter in model.parameters()]\n    criterion = torch.nn.CrossEntropyLoss()\n    history = []  # accuracy and weights of each epoch\n    try:\n        if frozen:\n            for parameter in model.encoder.parameters():\n                parameter.requires_grad = False\n        optimizer = torch.optim.AdamW(\n            filter(lambda parameter: parameter.requires_grad, model.parameters()), lr=rate\n        )\n        while len(history) < epochs:\n            for batch in train_batches:\n                model.train()\n                optimizer.zero_grad(set_to_none=True)\n                criterion(model(batch["input_ids"], batch["attention_mask"]), batch["labels"]).backward()\n                optimizer.step()\n            accuracy = evaluate(model, validation_batches)\n            history.append((accuracy, copy.deepcopy(model.state_dict())))\n    finally:\n        for parameter, flag in needed:\n            parameter.requires_grad = flag\n    _, weights = max(history, key=lambda epoch: epoch[0])\n    model.load_state_dict(weights)\n    model.eval()\n    return [accuracy for accuracy, _ in history]\n',
        },
    ),
    RightAnswer(
        "tables_for_spans_lists_for_labels",
        "the best span from a table of all pairs, guesses in plain lists, labels by counting the pieces of each word",
        {
            "align": 'def align_labels(pieces, labels, cls_id, sep_id, max_length):\n    """One sequence, and a label for each of its tokens."""\n    room = max_length - 2\n    ids, marks = [], []\n    for number, word in enumerate(pieces):\n        taken = word[: room - len(ids)]\n        if not taken:\n            break\n        ids.extend(taken)\n        marks.append(labels[number])\n        marks.extend([IGNORE] * (len(taken) - 1))\n    return [cls_id] + ids + [sep_id], [IGNORE] + marks + [IGNORE]\n',
            "guess": 'def word_guesses(logits, token_labels, may_follow=None):\n    """The guesses for the words of one sequence, and how many of them are right."""\n    follows = None if may_follow is None else may_follow.tolist()\n    guesses, right = [], 0\n    for row, label in zip(logits.tolist(), token_labels):\n        if label == IGNORE:\n            continue\n        allowed = range(len(row))\n        if follows is not None and guesses:\n            allowed = [b for b in allowed if follows[guesses[-1]][b]]\n        guess = max(allowed, key=lambda b: row[b])\n        guesses.append(guess)\n        right += int(guess == label)\n    return guesses, right\n',
            "span": 'def best_span(start_logits, end_logits, offsets, max_tokens):\n    """The best span of the context."""\n    where = start_logits.device\n    inside = torch.tensor([offset is not None for offset in offsets], device=where)\n    place = torch.arange(len(offsets), device=where)\n    further = place[None, :] - place[:, None]  # how far the end lies behind the start\n    allowed = inside[:, None] & inside[None, :] & (further >= 0) & (further < max_tokens)\n    scores = (start_logits[:, None] + end_logits[None, :])[allowed]\n    number = scores.argmax().item()\n    first, last = allowed.nonzero()[number].tolist()\n    return first, last, scores[number].item()\n',
            "cut": 'def answer(context, start_logits, end_logits, offsets, max_tokens, threshold=None):\n    """The answer as it stands in the text, a string, or None for no answer."""\n    first, last, score = best_span(start_logits, end_logits, offsets, max_tokens)\n    if threshold is None or score > float(start_logits[0] + end_logits[0]) + threshold:\n        (begin, _), (_, behind) = offsets[first], offsets[last]\n        return context[begin:behind]\n    return None\n',
        },
    ),
    RightAnswer(
        "chosen_states_and_index_copy",
        "mixes the kept states alone, pools with masked_fill and a whole number of words, lays choices back by index_copy, einsum, gather, masked_fill",
        {
            "cosine": 'def cosines(vectors, common=None):\n    """The cosine of each use with each, without what they have in common."""\n    left = vectors if common is None else torch.sub(vectors, common.unsqueeze(0))\n    directions = left / torch.linalg.vector_norm(left, dim=-1).unsqueeze(-1)\n    return torch.einsum("id,jd->ij", directions, directions)\n',
            "mix": 'class LayerMix(torch.nn.Module):\n    """A weighted mean of layers, times a scale, all learned."""\n\n    def __init__(self, num_states):\n        super().__init__()\n        self.register_parameter("weights", torch.nn.Parameter(torch.full((num_states,), 0.0)))\n        self.register_parameter("scale", torch.nn.Parameter(torch.tensor(1.0)))\n\n    def forward(self, states, left_out=()):\n        """states: list of float [B, T, D], the embeddings first -> float [B, T, D]"""\n        if len(states) != self.weights.numel():\n            raise ValueError("the number of states is not that of the weights")\n        kept = sorted(set(range(len(states))) - set(left_out))\n        shares = torch.nn.functional.softmax(self.weights[kept], dim=0).unbind()\n        mixed = shares[0] * states[kept[0]]\n        for share, number in zip(shares[1:], kept[1:]):\n            mixed = mixed + share * states[number]\n        return mixed * self.scale\n',
            "pool": 'def mean_pool(hidden, input_ids, attention_mask, special_ids):\n    """Mean of the words of each text."""\n    words = attention_mask\n    for special in special_ids:\n        words = words & input_ids.ne(special)\n    total = hidden.masked_fill(words.logical_not()[:, :, None], 0.0).sum(dim=1)\n    return total / words.sum(dim=1, keepdim=True).clamp(min=1)\n',
            "extract": '@torch.no_grad()\ndef text_features(encoder, batches, special_ids):\n    """One vector for each text: mean_pool of the last layer."""\n    mode = encoder.training\n    encoder.train(False)\n    try:\n        return torch.cat(\n            [\n                mean_pool(\n                    encoder(batch["input_ids"], batch["attention_mask"])[-1],\n                    batch["input_ids"],\n                    batch["attention_mask"],\n                    special_ids,\n                )\n                for batch in batches\n            ],\n            dim=0,\n        )\n    finally:\n        encoder.train(mode)\n',
            "scale": 'def standardise(train, other):\n    """Bring features on the scale of the training texts."""\n    never_changes = train.amax(dim=0) == train.amin(dim=0)\n    middle = train.mean(dim=0, keepdim=True)\n    spread = torch.std(train, dim=0, correction=0).masked_fill(never_changes, 1.0)\n    first, second = ((texts - middle) / spread for texts in (train, other))\n    return first, second\n',
            "reshape": 'def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):\n    """The score of every choice that is real."""\n    B, C, T = input_ids.shape\n    places = [b * C + c for b, count in enumerate(counts.tolist()) for c in range(count)]\n    places = torch.tensor(places, device=input_ids.device)\n    ids, mask, types = (\n        given.reshape(B * C, T).index_select(0, places)\n        for given in (input_ids, attention_mask, token_type_ids)\n    )\n    scores = score(ids, mask, types).flatten()\n    empty = torch.full((B * C,), -math.inf, dtype=scores.dtype, device=scores.device)\n    return empty.index_copy(0, places, scores).view(B, C)\n',
            "choose": 'def choose(logits, least=0.0):\n    """Probabilities of the choices, and the best one, or -1 where that is not sure enough."""\n    probabilities = torch.nn.functional.softmax(logits, dim=-1)\n    best = logits.max(dim=-1).indices\n    its_own = probabilities.gather(1, best.unsqueeze(1)).squeeze(1)\n    return probabilities, best.masked_fill(its_own < least, -1)\n',
        },
    ),
]

# Written in November 2026 from the released notebook and the model answers alone.
MUTANTS += [
    # ----- cosine
    Fresh(
        "cosine_common_without_gradient",
        "No gradient flows to `common`, although gradients flow to all tensors that a function is given.",
        "gradient",
        "senses-cosines",
        {
            "cosine": (
                "vectors = vectors - common",
                "vectors = vectors - common.detach()",
            )
        },
    ),
    Fresh(
        "cosine_length_plus_small_number",
        "Adds 1e-8 to each length against a division by zero, so the cosine of short vectors depends on their length.",
        "numerics",
        "senses-cosines",
        {
            "cosine": (
                "vectors.norm(dim=1, keepdim=True)",
                "(vectors.norm(dim=1, keepdim=True) + 1e-8)",
            )
        },
    ),
    # ----- means
    Fresh(
        "means_names_compared_by_identity",
        "Compares names with `is`, so equal names that are two strings (read from a file, put together) count as different senses.",
        "legal input",
        "senses-means",
        {"means": ("a == b for b in senses", "a is b for b in senses")},
    ),
    Fresh(
        "means_leave_out_all_cosines_of_one",
        "Leaves out all pairs whose cosine is 1 instead of a use with itself, so two different uses with parallel vectors are lost.",
        "legal input",
        "senses-means",
        {"means": ("table[same & other_use]", "table[same & (table < 1 - 1e-6)]")},
    ),
    # ----- separate
    Fresh(
        "separation_tie_by_isclose",
        "Ties are found by torch.isclose, whose tolerance is relative and ten times too wide: cosines of 0.5 and 0.500003 tie.",
        "cut-off",
        "senses-separation",
        {
            "separate": (
                """            lead = table[use, same][:, None] - table[use, others]  # [same, others]
            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()
""",
                """            own, other = table[use, same][:, None], table[use, others]
            tie = torch.isclose(own, other)  # [same, others]
            right = ((own > other) & ~tie).double() + 0.5 * tie.double()
""",
            )
        },
    ),
    Fresh(
        "separation_groups_runs_of_a_sense",
        "Groups uses with itertools.groupby without sorting them, so a sense whose uses do not stand together counts several times.",
        "legal input",
        "senses-separation",
        {
            "separate": '''def separation(vectors, senses):
    """How well the vectors tell the senses apart, each sense counting alike: 0.5 is chance, 1 is all."""
    import itertools

    table = cosines(vectors.double())
    shares = []
    for use, sense in enumerate(senses):
        same = [i for i, other in enumerate(senses) if other == sense and i != use]
        others = [i for i, other in enumerate(senses) if other != sense]
        if same:
            lead = table[use, same][:, None] - table[use, others]  # [same, others]
            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()
            shares.append((sense, right.mean().item()))
    means = []
    for _, group in itertools.groupby(shares, key=lambda pair: pair[0]):
        found = [share for _, share in group]
        means.append(sum(found) / len(found))
    return sum(means) / len(means)
'''
        },
    ),
    # ----- mix
    Fresh(
        "mix_left_out_gets_a_large_negative_weight",
        "A state that is left out gets the weight -1e9 instead of -inf, so it has a share where the others have weights as low, as the -1e9 of the example.",
        "numerics",
        "layers-mix",
        {"mix": ("-math.inf", "-1e9")},
    ),
    Fresh(
        "mix_counts_states_after_leaving_out",
        "Compares the numbers of states and weights after leaving some out, so a state too many raises no error if it is left out.",
        "legal input",
        "layers-mix",
        {
            "mix": '''class LayerMix(torch.nn.Module):
    """A weighted mean of layers, times a scale, all learned."""

    def __init__(self, num_states):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(num_states))
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, states, left_out=()):
        """states: list of float [B, T, D], the embeddings first -> float [B, T, D]"""
        states = [state for number, state in enumerate(states) if number not in left_out]
        kept = [number for number in range(len(self.weights)) if number not in left_out]
        if len(states) != len(kept):
            raise ValueError(f"{len(states)} states, but {len(kept)} weights")
        shares = self.weights[kept].softmax(dim=0)
        return self.scale * sum(share * state for share, state in zip(shares, states))
'''
        },
    ),
    # ----- pool
    Fresh(
        "pool_special_ids_of_the_notebook",
        "Leaves out the CLS and SEP of the notebook instead of the `special_ids` that it is given.",
        "hard-wired",
        "features-pool",
        {
            "pool": (
                "special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))",
                "special = (input_ids == CLS) | (input_ids == SEP)",
            )
        },
    ),
    Fresh(
        "pool_no_words_nan_gradient",
        "Divides by 0 where a text has no words and puts zeros there afterwards with torch.where, so the gradient of that text is nan.",
        "gradient",
        "features-pool",
        {
            "pool": (
                "    return (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)",
                """    count = words.sum(dim=1)  # [B, 1]
    mean = (hidden * words).sum(dim=1) / count
    return torch.where(count > 0, mean, torch.zeros_like(mean))""",
            )
        },
    ),
    # ----- extract
    Fresh(
        "extract_sets_the_flag_of_the_top_module",
        "Writes encoder.training = False instead of calling eval(), so a Dropout inside the encoder stays on.",
        "chance",
        "features-extract",
        {
            "extract": '''def text_features(encoder, batches, special_ids):
    """One vector for each text: mean_pool of the last layer."""
    was_training = encoder.training
    encoder.training = False
    rows = []
    with torch.no_grad():
        for batch in batches:
            ids, mask = batch["input_ids"], batch["attention_mask"]
            rows.append(mean_pool(encoder(ids, mask)[-1], ids, mask, special_ids))
    encoder.training = was_training
    return torch.cat(rows)
'''
        },
    ),
    Fresh(
        "extract_second_layer",
        "Takes state number 2, which is the last of an encoder of two layers, and of no other.",
        "hard-wired",
        "features-extract",
        {"extract": ("encoder(ids, mask)[-1]", "encoder(ids, mask)[2]")},
    ),
    # ----- scale
    Fresh(
        "scale_same_in_both_sets",
        "Asks training and other texts together whether a feature is always the same, so one that varies in the others alone is divided by 0 (or 7e-9).",
        "leak",
        "features-scale",
        {
            "scale": (
                "same = (train == train[0]).all(dim=0)",
                "same = (torch.cat([train, other]) == train[0]).all(dim=0)",
            )
        },
    ),
    Fresh(
        "scale_constant_feature_nan_gradient",
        "Takes the square root of a variance of 0 before it is replaced by 1, so the gradient of a constant feature is nan.",
        "gradient",
        "features-scale",
        {
            "scale": (
                "    mean, deviation = train.mean(dim=0), train.std(dim=0, correction=0)\n",
                "    mean = train.mean(dim=0)\n    deviation = (train - mean).square().mean(dim=0).sqrt()\n",
            )
        },
    ),
    # ----- align
    Fresh(
        "align_label_of_the_first_equal_word",
        "Looks the label up by pieces.index(word), so a word that occurs twice has the label of its first occurrence at both.",
        "legal input",
        "labels-align",
        {
            "align": (
                "    for word, label in zip(pieces, labels):\n",
                "    for word in pieces:\n        label = labels[pieces.index(word)]\n",
            )
        },
    ),
    # ----- guess
    Fresh(
        "guess_no_rule_after_label_zero",
        "Takes a guess of 0 for the word before as if there were no word before, so any label may follow label 0.",
        "cut-off",
        "labels-guess",
        {
            "guess": (
                """        if guesses and may_follow is not None:
            row = row.masked_fill(~may_follow[guesses[-1]], -math.inf)
""",
                """        previous = guesses[-1] if guesses else None
        if previous and may_follow is not None:
            row = row.masked_fill(~may_follow[previous], -math.inf)
""",
            )
        },
    ),
    # ----- span
    Fresh(
        "span_of_the_twenty_best_starts_and_ends",
        "Looks at pairs of the 20 best starts and the 20 best ends alone (over all positions), so in a longer text the best allowed pair may be missed.",
        "cut-off",
        "spans-best",
        {
            "span": (
                """    for first, _ in enumerate(offsets):
        for last in range(first, min(first + max_tokens, len(offsets))):
            if offsets[first] is None or offsets[last] is None:
                continue
""",
                """    candidates = min(20, len(offsets))
    for first in start_logits.topk(candidates).indices.tolist():
        for last in end_logits.topk(candidates).indices.tolist():
            if offsets[first] is None or offsets[last] is None:
                continue
            if last < first or last - first + 1 > max_tokens:
                continue
""",
            )
        },
    ),
    # ----- cut
    Fresh(
        "cut_strips_spaces",
        "Strips white space from the answer, so it is not as it stands in the text where offsets include a space, as those of byte-level tokenizers do.",
        "legal input",
        "spans-cut",
        {
            "cut": (
                "context[offsets[first][0] : offsets[last][1]]",
                "context[offsets[first][0] : offsets[last][1]].strip()",
            )
        },
    ),
    # ----- reshape
    Fresh(
        "choices_table_as_wide_as_the_greatest_count",
        "Takes C from counts.max(), so the table is too narrow where no example of the batch has C choices.",
        "cut-off",
        "choices-logits",
        {
            "reshape": (
                """    C = input_ids.shape[1]
    real = torch.arange(C, device=counts.device) < counts[:, None]  # [B, C]
    rows = [given[real] for given in (input_ids, attention_mask, token_type_ids)]  # [N, T]
""",
                """    C = int(counts.max())
    real = torch.arange(C, device=counts.device) < counts[:, None]  # [B, C]
    rows = [given[:, :C][real] for given in (input_ids, attention_mask, token_type_ids)]
""",
            )
        },
    ),
    Fresh(
        "choices_scored_without_gradient",
        "Calls score under torch.no_grad(), so a model behind it cannot be trained on the table.",
        "gradient",
        "choices-logits",
        {
            "reshape": (
                "    scores = score(*rows)  # [N, 1]\n",
                "    with torch.no_grad():  # every text costs a whole pass\n        scores = score(*rows)  # [N, 1]\n",
            )
        },
    ),
    # ----- choose
    Fresh(
        "choose_best_by_rounded_probability",
        "Takes the choice with the greatest probability, which is the first one where logits that differ have probabilities that are equal after rounding.",
        "numerics",
        "choices-softmax",
        {"choose": ("logits.argmax(dim=1)", "logits.softmax(dim=1).argmax(dim=1)")},
    ),
    # ----- measure
    Fresh(
        "evaluate_through_a_dataloader",
        "Goes through the batches with a DataLoader, which draws a seed from torch's global generator: the state of chance is changed.",
        "chance",
        "tuning-evaluate",
        {
            "measure": (
                "for batch in batches:",
                "for batch in torch.utils.data.DataLoader(batches, batch_size=None):",
            )
        },
    ),
    Fresh(
        "evaluate_unfreezes_the_model",
        "Switches requires_grad of all parameters off and then on, so parameters that were frozen are not frozen afterwards.",
        "state",
        "tuning-evaluate",
        {
            "measure": '''def evaluate(model, batches):
    """Returns the accuracy, a Python float; neither the model nor the state of chance is changed."""
    was_training = model.training
    model.eval().requires_grad_(False)
    right, count = 0, 0
    with torch.no_grad():
        for batch in batches:
            guesses = model(batch["input_ids"], batch["attention_mask"]).argmax(dim=-1)
            right += (guesses == batch["labels"]).sum().item()
            count += len(guesses)
    model.train(was_training).requires_grad_(True)
    return right / count
'''
        },
    ),
    # ----- tune
    Fresh(
        "tune_freezes_by_the_beginning_of_names",
        "With frozen=True freezes every parameter whose name begins with `encoder`, also those of a module `encoder_norm` beside the encoder.",
        "legal input",
        "tuning-train",
        {
            "tune": (
                """    if frozen:
        model.encoder.requires_grad_(False)
""",
                """    for name, parameter in model.named_parameters():
        if frozen and name.startswith("encoder"):
            parameter.requires_grad_(False)
""",
            )
        },
    ),
    Fresh(
        "tune_clears_gradients_after_the_step_2",
        "Clears gradients after each step only, so gradients that the model has from before the call go into the first step.",
        "state",
        "tuning-train",
        {
            "tune": (
                """            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
""",
                """            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
""",
            )
        },
    ),
    Fresh(
        "tune_training_texts_vote_too",
        "Evaluates on the training batches and the validation batches together, so the accuracies are too high and the wrong epoch may be kept.",
        "leak",
        "tuning-best",
        {
            "tune": (
                "evaluate(model, validation_batches)",
                "evaluate(model, [*train_batches, *validation_batches])",
            )
        },
    ),
    # ----- experiment
    Fresh(
        "experiment_trains_on_reviews_of_its_own",
        "Trains on the reviews that the visible test happens to draw instead of on `train`.",
        "hard-wired",
        "experiment-reviews",
        {
            "experiment": (
                "    finetune(model, batches(train, 16),",
                "    train = reviews(96, 2, TRAINING_ADJECTIVES)\n    finetune(model, batches(train, 16),",
            )
        },
    ),
    Fresh(
        "experiment_keeps_its_first_classifier",
        "Keeps the classifier of the first call and returns it at each later one, whatever reviews it is given.",
        "state",
        "experiment-reviews",
        {
            "experiment": '''def experiment(make_model, train, validation):
    """Returns a classifier that tells good reviews from bad ones."""
    if not hasattr(experiment, "model"):
        model = make_model(pretrained=True, seed=0)
        finetune(model, batches(train, 16), batches(validation, 96), epochs=4, rate=3e-3)
        experiment.model = model
    return experiment.model
'''
        },
    ),
    # ----- own-check
    Fresh(
        "check_overlooks_changed_tags",
        "Never looks whether the list of tags is changed.",
        "state",
        "check-refuses",
        {"own-check": ('        assert tags == copied, "the list is changed"\n', "")},
    ),
    Fresh(
        "check_overlooks_hyphens_and_capitals_in_types",
        "Has no type with a `-` in it, and no two that differ in capitals alone.",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                """        (
            "B-x-y E-x-z B-w-z E-x-z B-x E-X B-- E-- S-x-y",
            [("-", 6, 8), ("x-y", 8, 9)],
            [*range(6)],
        ),
""",
                "",
            )
        },
    ),
    Fresh(
        "check_overlooks_wrong_tags_in_a_name",
        "Puts a string that is no tag at the beginning only, so an implementation that takes one for the end of an open name passes.",
        "cut-off",
        "check-refuses",
        {
            "own-check": (
                '([wrong], ["B-A", None, wrong], [wrong, "O"])',
                '([wrong], [wrong, "O"])',
            )
        },
    ),
    Fresh(
        "check_overlooks_the_order_of_lost",
        "Compares `lost` as a set, so numbers that stand twice or in another order pass.",
        "hard-wired",
        "check-refuses",
        {
            "own-check": (
                "        assert implementation(tags) == (found, lost), text\n",
                """        answer = implementation(tags)
        assert answer[0] == found and set(answer[1]) == set(lost), text
""",
            )
        },
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "loops_and_lists",
        "Python lists and loops wherever no gradient must flow; modes of all modules are put back one by one; gradients by autograd.grad",
        {
            "cosine": """def cosines(vectors, common=None):
    left = vectors if common is None else vectors - common[None, :]
    lengths = torch.linalg.vector_norm(left, dim=-1)
    unit = left / lengths[:, None]
    return unit.mm(unit.t())
""",
            "means": """def within_and_between(vectors, senses):
    table = cosines(vectors).tolist()
    within, between = [], []
    for i, sense in enumerate(senses):
        for j in range(i):
            (within if senses[j] == sense else between).append(table[i][j])
    return math.fsum(within) / len(within), math.fsum(between) / len(between)
""",
            "separate": """def points(nearer, other):
    lead = nearer - other
    if abs(lead) <= 1e-6:
        return 0.5
    return float(lead > 0)


def separation(vectors, senses):
    rows = cosines(vectors.to(torch.float64)).tolist()
    shares = {sense: [] for sense in senses}
    for i, row in enumerate(rows):
        same = [c for j, c in enumerate(row) if j != i and senses[j] == senses[i]]
        other = [c for j, c in enumerate(row) if senses[j] != senses[i]]
        found = [points(a, b) for a in same for b in other]
        if found:
            shares[senses[i]].append(sum(found) / len(found))
    means = [sum(of_sense) / len(of_sense) for of_sense in shares.values() if of_sense]
    return sum(means) / len(means)
""",
            "mix": """class LayerMix(torch.nn.Module):
    def __init__(self, num_states):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.full((num_states,), 0.0))
        self.scale = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, states, left_out=()):
        if len(states) != self.weights.numel():
            raise ValueError("one state for each weight, please")
        kept = [number for number in range(len(states)) if number not in left_out]
        shares = torch.softmax(self.weights[kept], dim=0)
        stacked = torch.stack([states[number] for number in kept])
        shares = shares.reshape(-1, *[1] * (stacked.dim() - 1))
        return (shares * stacked).sum(dim=0) * self.scale
""",
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    words = attention_mask
    for special in special_ids:
        words = words & (input_ids != special)
    total = hidden.masked_fill(~words[:, :, None], 0.0).sum(dim=1)
    number = words.sum(dim=1, keepdim=True).clamp(min=1)
    return total / number.to(hidden.dtype)
""",
            "extract": """@torch.no_grad()
def text_features(encoder, batches, special_ids):
    modes = [(module, module.training) for module in encoder.modules()]
    encoder.train(False)
    try:
        rows = []
        for batch in batches:
            states = encoder(batch["input_ids"], batch["attention_mask"])
            pooled = mean_pool(
                states[-1], batch["input_ids"], batch["attention_mask"], special_ids
            )
            rows.extend(pooled.unbind(0))
        return torch.stack(rows)
    finally:
        for module, mode in modes:
            module.training = mode
""",
            "scale": """def standardise(train, other):
    variance, mean = torch.var_mean(train, dim=0, correction=0)
    never_changes = train.amax(dim=0) == train.amin(dim=0)
    deviation = variance.masked_fill(never_changes, 1.0).sqrt()
    return tuple((features - mean) / deviation for features in (train, other))
""",
            "align": """def align_labels(pieces, labels, cls_id, sep_id, max_length):
    tokens = [
        (piece, IGNORE if place else label)
        for word, label in zip(pieces, labels)
        for place, piece in enumerate(word)
    ]
    tokens = [(cls_id, IGNORE), *tokens[: max_length - 2], (sep_id, IGNORE)]
    return [piece for piece, _ in tokens], [label for _, label in tokens]
""",
            "guess": """def word_guesses(logits, token_labels, may_follow=None):
    rules = None if may_follow is None else may_follow.tolist()
    guesses, right = [], 0
    for row, label in zip(logits.tolist(), token_labels):
        if label == IGNORE:
            continue
        options = range(len(row))
        if guesses and rules is not None:
            options = [b for b in options if rules[guesses[-1]][b]]
        guesses.append(max(options, key=row.__getitem__))
        right += int(guesses[-1] == label)
    return guesses, right
""",
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    where = start_logits.device
    inside = torch.tensor([offset is not None for offset in offsets], device=where)
    place = torch.arange(len(offsets), device=where)
    behind = place[None, :] - place[:, None]  # [first, last]
    fits = inside[:, None] & inside[None, :] & (behind >= 0) & (behind < max_tokens)
    scores = (start_logits[:, None] + end_logits[None, :])[fits]
    best = scores.argmax()
    first, last = fits.nonzero()[best].tolist()
    return first, last, scores[best].item()
""",
            "cut": """def answer(context, start_logits, end_logits, offsets, max_tokens, threshold=None):
    first, last, score = best_span(start_logits, end_logits, offsets, max_tokens)
    none = (start_logits[0] + end_logits[0]).item()
    if threshold is None or score > none + threshold:
        (begin, _), (_, end) = offsets[first], offsets[last]
        return context[begin:end]
    return None
""",
            "reshape": """def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    B, C, T = input_ids.shape
    numbers = counts.tolist()
    join = lambda given: torch.cat([given[b, :number] for b, number in enumerate(numbers)])
    scores = score(join(input_ids), join(attention_mask), join(token_type_ids))[:, 0]
    rows = [
        torch.nn.functional.pad(part, (0, C - len(part)), value=-math.inf)
        for part in scores.split(numbers)
    ]
    return torch.stack(rows)
""",
            "choose": """def choose(logits, least=0.0):
    probabilities = torch.nn.functional.softmax(logits, dim=-1)
    best = logits.max(dim=-1).indices
    its = probabilities.gather(1, best[:, None]).squeeze(1)
    return probabilities, best.masked_fill(its < least, -1)
""",
            "measure": """@torch.no_grad()
def evaluate(model, batches):
    modes = {module: module.training for module in model.modules()}
    model.train(False)
    right = []
    for batch in batches:
        logits = model(batch["input_ids"], batch["attention_mask"])
        right += (logits.max(dim=-1).indices == batch["labels"]).tolist()
    for module, mode in modes.items():
        module.training = mode
    return sum(right) / len(right)
""",
            "tune": """def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):
    still = {id(parameter) for parameter in model.encoder.parameters()} if frozen else set()
    trained = [p for p in model.parameters() if p.requires_grad and id(p) not in still]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    accuracies, snapshots = [], []
    for _ in range(epochs):
        model.train()
        for batch in train_batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
            gradients = torch.autograd.grad(loss, trained, allow_unused=True)
            for parameter, gradient in zip(trained, gradients):
                parameter.grad = gradient
            optimizer.step()
        accuracies.append(evaluate(model, validation_batches))
        snapshots.append(copy.deepcopy(model.state_dict()))
    optimizer.zero_grad()
    model.load_state_dict(snapshots[max(range(epochs), key=accuracies.__getitem__)])
    model.eval()
    return accuracies
""",
            "experiment": """def experiment(make_model, train, validation):
    model = make_model()
    finetune(model, batches(train, 16), batches(validation, 48), 15, 2e-3)
    return model
""",
            "own-check": """def check_complete(implementation):
    def right(tags):
        found, lost, begin, kind = [], [], None, None
        words = [tag for tag in tags if tag is not None]
        for place, word in enumerate(words):
            letter, _, what = word.partition("-")
            if letter == "B":
                begin, kind = place, what
            elif letter == "S":
                found.append((what, place, place + 1))
                begin = None
            elif letter == "E" and begin is not None and what == kind:
                found.append((kind, begin, place + 1))
                begin = None
            elif letter != "I":
                begin = None
        named = {place for _, first, end in found for place in range(first, end)}
        for place, word in enumerate(words):
            if word != "O" and place not in named:
                lost.append(place)
        return found, lost

    def ask(tags):
        given = list(tags)
        assert implementation(given) == right(tags), tags
        assert given == list(tags), "the list is changed"

    chance = random.Random(5)
    usual = [None, "O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"]
    odd = [None, "O", "B-A", "B-a", "E-A", "E-a", "B-A-B", "I-A-B", "E-A-B", "E-B-A", "E-B", "S-A-B", "B--", "E--", "E---"]
    for number in range(110):
        tags = chance.choices(odd if number % 3 == 0 else usual, k=chance.randrange(16))
        ask(tags)
    for tags in (
        [],
        [None],
        ["O"],
        ["B-A"],
        ["B-A", "E-A"],
        ["B-A", None, "I-B", None, None, "I-C", "E-A"],
        ["B-A", "O", "E-A"],
        ["B-A", "S-A", "E-A"],
        ["B-A", "E-B", "E-A"],
        ["B-A", "B-A", "I-A", "E-A", "E-A"],
        ["B-A-B", "E-A-C", "B-A-B", "E-A-B"],
        ["B-A", *["I-A"] * 998, "E-A"],
        ["S-A"] * 1000,
        [None] * 999 + ["S-A"],
        ["B-A"] * 1000,
        ["S-A"],
        ["S-A"],
    ):
        ask(tags)
    for wrong in ("", "o", "b-A", "A", "B", "B-", "I-", "E-", "S-", "-A", "O-", "O-A", "PER", "L-A", "U-A", "I", "E", "S", "BA", "-", "OO"):
        for tags in ([wrong], ["B-A", "I-A", wrong, "E-A"], ["O", None, "S-A", wrong]):
            try:
                implementation(list(tags))
            except ValueError:
                continue
            raise AssertionError(f"{wrong!r} is no tag")
""",
        },
    ),
    RightAnswer(
        "tensor_algebra",
        "einsum, index arithmetic, masked_scatter and scatter, early breaks, two runs of the experiment of which validation chooses one",
        {
            "cosine": """def cosines(vectors, common=None):
    if common is not None:
        vectors = torch.sub(vectors, common)
    unit = torch.nn.functional.normalize(vectors, dim=1, eps=0.0)
    return torch.einsum("nd,md->nm", unit, unit)
""",
            "means": """def within_and_between(vectors, senses):
    number = {sense: place for place, sense in enumerate(dict.fromkeys(senses))}
    codes = torch.tensor([number[sense] for sense in senses], device=vectors.device)
    i, j = torch.triu_indices(len(senses), len(senses), offset=1, device=vectors.device)
    found, alike = cosines(vectors)[i, j], codes[i] == codes[j]
    return found[alike].mean().item(), found[~alike].mean().item()
""",
            "separate": """def separation(vectors, senses):
    table = cosines(vectors.double())
    number = {sense: place for place, sense in enumerate(dict.fromkeys(senses))}
    codes = torch.tensor([number[sense] for sense in senses], device=vectors.device)
    places = torch.arange(len(senses), device=vectors.device)
    means = []
    for code in range(len(number)):
        uses = places[codes == code]
        if len(uses) < 2:
            continue
        shares = []
        for use in uses:
            own = table[use, uses[uses != use]]
            lead = own[:, None] - table[use, places[codes != code]][None, :]
            side = torch.sign(lead) * (lead.abs() > 1e-6)  # -1, 0 or 1
            shares.append((0.5 + 0.5 * side).mean().item())
        means.append(sum(shares) / len(shares))
    return sum(means) / len(means)
""",
            "mix": """class LayerMix(torch.nn.Module):
    def __init__(self, num_states):
        super().__init__()
        self.register_parameter("weights", torch.nn.Parameter(torch.zeros(num_states)))
        self.register_parameter("scale", torch.nn.Parameter(torch.tensor(1.0)))

    def forward(self, states, left_out=()):
        if len(states) != len(self.weights):
            raise ValueError("the numbers of states and of weights differ")
        kept = sorted(set(range(len(states))) - set(left_out))
        weights = self.weights[kept]
        parts = (weights - weights.max().detach()).exp()
        shares = parts / parts.sum()
        mixed = 0
        for share, number in zip(shares.unbind(), kept):
            mixed = mixed + states[number] * share
        return mixed * self.scale
""",
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    special = torch.zeros_like(attention_mask)
    for number in special_ids:
        special |= input_ids == number
    words = attention_mask & ~special
    total = torch.einsum("bt,btd->bd", words.to(hidden.dtype), hidden)
    return total / words.sum(dim=1).clamp(min=1).to(hidden.dtype)[:, None]
""",
            "extract": """def text_features(encoder, batches, special_ids):
    def pooled(batch):
        ids, mask = batch["input_ids"], batch["attention_mask"]
        *_, last = encoder(ids, mask)
        return mean_pool(last, ids, mask, special_ids)

    mode = encoder.training
    encoder.eval()
    with torch.set_grad_enabled(False):
        features = torch.cat([*map(pooled, batches)], dim=0)
    encoder.train(mode)
    return features
""",
            "scale": """def standardise(train, other):
    deviation, mean = torch.std_mean(train, dim=0, correction=0)
    deviation = deviation.masked_fill((train[:1] == train).all(dim=0), 1.0)

    def scaled(features):
        return features.sub(mean).div(deviation)

    return scaled(train), scaled(other)
""",
            "align": """def align_labels(pieces, labels, cls_id, sep_id, max_length):
    ids, marks = [cls_id], [IGNORE]
    for word, label in zip(pieces, labels):
        for number, piece in enumerate(word):
            if len(ids) == max_length - 1:
                break
            ids.append(piece)
            marks.append(IGNORE if number else label)
    ids.append(sep_id)
    marks.append(IGNORE)
    return ids, marks
""",
            "guess": """def word_guesses(logits, token_labels, may_follow=None):
    if may_follow is None:
        L = logits.shape[1]
        may_follow = torch.ones(L, L, dtype=torch.bool, device=logits.device)
    allowed = torch.ones_like(may_follow[0])
    guesses, truths = [], []
    for place, truth in enumerate(token_labels):
        if truth != IGNORE:
            options = allowed.nonzero().flatten().to(logits.device)
            guess = int(options[logits[place, options].argmax()])
            guesses.append(guess)
            truths.append(truth)
            allowed = may_follow[guess]
    return guesses, len([1 for guess, truth in zip(guesses, truths) if guess == truth])
""",
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    context = [place for place, offset in enumerate(offsets) if offset is not None]
    spans = []
    for first in context:
        ends = [place for place in context if first <= place < first + max_tokens]
        last = ends[end_logits[ends].argmax().item()]
        spans.append((first, last, (start_logits[first] + end_logits[last]).item()))
    return max(spans, key=lambda span: span[2])
""",
            "cut": """def answer(context, start_logits, end_logits, offsets, max_tokens, threshold=None):
    first, last, score = best_span(start_logits, end_logits, offsets, max_tokens)
    if threshold is not None:
        least = torch.add(start_logits[0], end_logits[0]).item() + threshold
        if not score > least:
            return None
    return context[slice(offsets[first][0], offsets[last][1])]
""",
            "reshape": """def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    B, C, T = input_ids.shape
    where = input_ids.device
    index = torch.cat(
        [torch.arange(b * C, b * C + n, device=where) for b, n in enumerate(counts.tolist())]
    )
    rows = (given.reshape(B * C, T)[index] for given in (input_ids, attention_mask, token_type_ids))
    scores = score(*rows).reshape(-1)
    table = torch.full((B * C,), -math.inf, dtype=scores.dtype, device=scores.device)
    return table.scatter(0, index, scores).reshape(B, C)
""",
            "choose": """def choose(logits, least=0.0):
    probabilities = torch.softmax(logits, 1)
    best = torch.argmax(logits, 1)
    rows = torch.arange(len(logits), device=logits.device)
    sure = probabilities[rows, best] >= least
    return probabilities, best * sure - (~sure).long()
""",
            "measure": """def evaluate(model, batches):
    mode = model.training
    model.eval()
    found = []
    with torch.set_grad_enabled(False):
        for batch in batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            found.append(logits.argmax(-1).eq(batch["labels"]))
    model.train(mode)
    return torch.cat(found).double().mean().item()
""",
            "tune": """def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):
    paused = [p for p in model.encoder.parameters() if frozen and p.requires_grad]
    for parameter in paused:
        parameter.requires_grad = False
    try:
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW([{"params": trained}], lr=rate)
        accuracies = []
        for _ in range(epochs):
            model.train(True)
            for batch in train_batches:
                optimizer.zero_grad(set_to_none=True)
                logits = model(batch["input_ids"], batch["attention_mask"])
                torch.nn.CrossEntropyLoss()(logits, batch["labels"]).backward()
                optimizer.step()
            accuracy = evaluate(model, validation_batches)
            if not accuracies or accuracy > max(accuracies):
                best = copy.deepcopy(model.state_dict())
            accuracies.append(accuracy)
        model.load_state_dict(best)
    finally:
        for parameter in paused:
            parameter.requires_grad = True
    model.train(False)
    return accuracies
""",
            "experiment": """def experiment(make_model, train, validation):
    best = (-1.0, None)
    judges = batches(validation, 32)
    for seed in (0, 1):
        model = make_model(True, seed)
        highest = max(finetune(model, batches(train, 16), judges, epochs=5, rate=3e-3))
        if highest > best[0]:
            best = (highest, model)
    return best[1]
""",
        },
    ),
    RightAnswer(
        "helpers_and_indices",
        "products of all pairs, index_add over words, itertools, stable sorts, masked_scatter, recursion over words",
        {
            "cosine": """def cosines(vectors, common=None):
    rows = vectors.unsqueeze(0) if common is None else (vectors - common).unsqueeze(0)
    rows = rows / rows.norm(p=2, dim=-1, keepdim=True)
    return torch.bmm(rows, rows.transpose(1, 2)).squeeze(0)
""",
            "means": """def within_and_between(vectors, senses):
    table = cosines(vectors)
    N = len(senses)
    pairs = [(i, j) for i in range(N) for j in range(N) if i != j]

    def mean_of(wanted):
        rows, columns = zip(*[(i, j) for i, j in pairs if (senses[i] == senses[j]) is wanted])
        return float(table[list(rows), list(columns)].mean())

    return mean_of(True), mean_of(False)
""",
            "mix": """class LayerMix(torch.nn.Module):
    def __init__(self, num_states):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones([]))
        self.weights = torch.nn.Parameter(torch.zeros([num_states]))

    def forward(self, states, left_out=()):
        if len(states) - self.weights.shape[0]:
            raise ValueError(f"this mix is one of {self.weights.shape[0]} states")
        kept = [n for n, _ in enumerate(states) if n not in set(left_out)]
        logs = torch.stack([self.weights[n] for n in kept])
        shares = torch.nn.functional.softmax(logs, dim=0)
        return torch.stack([states[n] for n in kept], dim=-1).mul(shares).sum(dim=-1).mul(self.scale)
""",
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    B, T, D = hidden.shape
    ids = set(special_ids)
    common = torch.tensor(
        [[number in ids for number in row] for row in input_ids.tolist()],
        dtype=torch.bool,
        device=hidden.device,
    ).reshape(B, T)
    text, place = (attention_mask & ~common).nonzero(as_tuple=True)
    total = hidden.new_zeros(B, D).index_add(0, text, hidden[text, place])
    number = torch.bincount(text, minlength=B).clamp(min=1)
    return total / number[:, None].to(hidden.dtype)
""",
            "scale": """def standardise(train, other):
    mean = train.mean(dim=0, keepdim=True)
    variance = (train - mean).pow(2).mean(dim=0, keepdim=True)
    constant = (train - train[:1]).eq(0).all(dim=0, keepdim=True)
    deviation = torch.where(constant, torch.ones_like(variance), variance).sqrt()
    return (train - mean) / deviation, (other - mean) / deviation
""",
            "align": """def align_labels(pieces, labels, cls_id, sep_id, max_length):
    import itertools

    room = max_length - 2
    ids = itertools.islice(itertools.chain.from_iterable(pieces), room)
    marks = itertools.chain.from_iterable(
        [label, *itertools.repeat(IGNORE, len(word) - 1)] for word, label in zip(pieces, labels)
    )
    return [cls_id, *ids, sep_id], [IGNORE, *itertools.islice(marks, room), IGNORE]
""",
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    best = (-1, -1, -math.inf)
    for last, behind in enumerate(offsets):
        if behind is None:
            continue
        for length in range(1, max_tokens + 1):
            first = last - length + 1
            if first < 0:
                break
            if offsets[first] is None:
                continue
            score = (start_logits[first] + end_logits[last]).item()
            if best[0] < 0 or score > best[2]:
                best = (first, last, score)
    return best
""",
            "reshape": """def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    B, C = input_ids.shape[:2]
    real = torch.zeros(B, C, dtype=torch.bool, device=input_ids.device)
    for row, number in zip(real, counts):
        row[: int(number)] = True
    flags = real.flatten()
    scores = score(
        input_ids.flatten(0, 1)[flags],
        attention_mask.flatten(0, 1)[flags],
        token_type_ids.flatten(0, 1)[flags],
    )
    empty = torch.full_like(real, -math.inf, dtype=scores.dtype)
    return empty.masked_scatter(real, scores)
""",
            "choose": """def choose(logits, least=0.0):
    probabilities = logits.softmax(-1)
    best = logits.sort(dim=-1, descending=True, stable=True).indices[:, 0]
    unsure = torch.take_along_dim(probabilities, best[:, None], dim=1)[:, 0] < least
    answer = best.clone()
    answer[unsure] = -1
    return probabilities, answer
""",
            "measure": """def evaluate(model, batches):
    training, counts = model.training, [0, 0]
    try:
        model.eval()
        for batch in batches:
            with torch.no_grad():
                best = model(batch["input_ids"], batch["attention_mask"]).max(-1)[1]
            counts[0] += int(torch.count_nonzero(best == batch["labels"]))
            counts[1] += batch["labels"].numel()
    finally:
        model.train(training)
    return counts[0] / counts[1]
""",
            "tune": """def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):
    parameters = [*model.parameters()]
    needed = [parameter.requires_grad for parameter in parameters]
    if frozen:
        model.encoder.requires_grad_(False)
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, parameters), lr=rate)

    def step(batch):
        logits = model(batch["input_ids"], batch["attention_mask"])
        chances = logits.log_softmax(dim=-1)
        loss = -chances.gather(1, batch["labels"][:, None]).mean()
        model.zero_grad()
        loss.backward()
        optimizer.step()

    accuracies, kept, highest = [], None, -math.inf
    for _ in range(epochs):
        model.train()
        for batch in train_batches:
            step(batch)
        accuracies.append(evaluate(model, validation_batches))
        if accuracies[-1] > highest:
            highest = accuracies[-1]
            kept = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    for parameter, need in zip(parameters, needed):
        parameter.requires_grad_(need)
    model.eval()
    return accuracies
""",
            "experiment": """def experiment(make_model, train, validation):
    model = make_model(pretrained=True, seed=3)
    finetune(model, batches(train, 8), batches(validation, 100), epochs=6, rate=2e-3, frozen=False)
    return model
""",
        },
    ),
]


LATER = [
    Fresh(
        "cosine_clamps_length",
        "clamps the lengths at 1e-6",
        "numerics",
        "senses-cosines",
        {
            "cosine": (
                "vectors.norm(dim=1, keepdim=True)",
                "vectors.norm(dim=1, keepdim=True).clamp(min=1e-6)",
            )
        },
    ),
    Fresh(
        "cosine_lengths_without_gradient",
        "computes the lengths under no_grad",
        "gradient",
        "senses-cosines",
        {
            "cosine": (
                "    unit = vectors / vectors.norm(dim=1, keepdim=True)  # [N, D]\n",
                "    with torch.no_grad():\n        lengths = vectors.norm(dim=1, keepdim=True)\n    unit = vectors / lengths  # [N, D]\n",
            )
        },
    ),
    Fresh(
        "cosine_common_of_float32_zeros",
        "subtracts float32 zeros when nothing is in common",
        "numerics",
        "senses-cosines",
        {
            "cosine": (
                "    if common is not None:\n        vectors = vectors - common\n",
                "    if common is None:\n        common = torch.zeros(vectors.shape[1], device=vectors.device)\n    vectors = vectors - common\n",
            )
        },
    ),
    Fresh(
        "means_skip_equal_vectors",
        "leaves out every pair with cosine 1, not the diagonal",
        "legal input",
        "senses-means",
        {
            "means": (
                "other_use = ~torch.eye(len(senses), dtype=torch.bool, device=vectors.device)",
                "other_use = table < 1 - 1e-6  # a use has the cosine 1 with itself",
            )
        },
    ),
    Fresh(
        "means_first_sense_against_rest",
        "takes all senses but the first for one",
        "legal input",
        "senses-means",
        {
            "means": (
                "[[a == b for b in senses] for a in senses]",
                "[[(a == senses[0]) == (b == senses[0]) for b in senses] for a in senses]",
            )
        },
    ),
    Fresh(
        "separation_relative_ties",
        "calls it a tie where torch.isclose does",
        "numerics",
        "senses-separation",
        {
            "separate": (
                "            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()\n",
                "            tie = torch.isclose(table[use, same][:, None], table[use, others])\n            right = (~tie & (lead > 0)).double() + 0.5 * tie.double()\n",
            )
        },
    ),
    Fresh(
        "mix_masks_with_minus_billion",
        "leaves states out with -1e9 instead of -inf",
        "numerics",
        "layers-mix",
        {"mix": ("-math.inf", "-1e9")},
    ),
    Fresh(
        "mix_leaves_out_in_training_only",
        "uses left_out in training mode only, like dropout",
        "legal input",
        "layers-mix",
        {"mix": ("number in left_out for", "self.training and number in left_out for")},
    ),
    Fresh(
        "mix_deletes_from_behind",
        "deletes the left-out numbers one after the other, the last of the tuple first",
        "legal input",
        "layers-mix",
        {
            "mix": (
                "        out = torch.tensor([number in left_out for number in range(len(states))])\n        weights = self.weights.masked_fill(out.to(self.weights.device), -math.inf)\n        shares = weights.softmax(dim=0)\n        return self.scale * sum(share * state for share, state in zip(shares, states))\n",
                "        kept = list(range(len(states)))\n        for number in reversed(left_out):  # from behind, so that places do not move\n            del kept[number]\n        shares = self.weights[kept].softmax(dim=0)\n        return self.scale * sum(share * states[number] for share, number in zip(shares, kept))\n",
            )
        },
    ),
    Fresh(
        "pool_takes_range_of_special_ids",
        "leaves out all ids from the least special one to the greatest",
        "legal input",
        "features-pool",
        {
            "pool": (
                "    special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))\n",
                "    least, greatest = min(special_ids, default=0), max(special_ids, default=-1)\n    special = (input_ids >= least) & (input_ids <= greatest)\n",
            )
        },
    ),
    Fresh(
        "pool_clamps_count_at_tiny_number",
        "clamps the number of words at 1e-9",
        "numerics",
        "features-pool",
        {"pool": (".clamp(min=1)", ".clamp(min=1e-9)")},
    ),
    Fresh(
        "features_freeze_encoder_for_good",
        "sets requires_grad of the encoder to False and leaves it so",
        "state",
        "features-extract",
        {
            "extract": (
                "    encoder.eval()\n",
                "    encoder.eval()\n    encoder.requires_grad_(False)  # it stands still\n",
            )
        },
    ),
    Fresh(
        "scale_relative_threshold",
        "takes a deviation below a millionth of the mean for none",
        "numerics",
        "features-scale",
        {
            "scale": (
                "    same = (train == train[0]).all(dim=0)  # the deviation of seven times 0.1 is 7e-9\n",
                "    same = deviation <= 1e-6 * mean.abs()  # the deviation of seven times 0.1 is 7e-9\n",
            )
        },
    ),
    Fresh(
        "scale_any_equal_neighbours",
        "takes a feature for constant if any two neighbouring texts agree in it",
        "legal input",
        "features-scale",
        {
            "scale": (
                "(train == train[0]).all(dim=0)",
                "(train == train.roll(1, dims=0)).any(dim=0)",
            )
        },
    ),
    Fresh(
        "align_looks_words_up",
        "looks the label up by the first place of an equal word",
        "legal input",
        "labels-align",
        {
            "align": (
                "    for word, label in zip(pieces, labels):\n",
                "    for word in pieces:\n        label = labels[pieces.index(word)]\n",
            )
        },
    ),
    Fresh(
        "guess_masks_with_least_logit",
        "gives forbidden labels the least logit of the row",
        "legal input",
        "labels-guess",
        {"guess": ("-math.inf", "row.min().item()")},
    ),
    Fresh(
        "guess_needs_a_word",
        "fails on a sequence without a word",
        "legal input",
        "labels-guess",
        {
            "guess": (
                "for row in logits[places]:",
                "for row in torch.stack([logits[place] for place in places]):",
            )
        },
    ),
    Fresh(
        "span_of_twenty_likeliest",
        "looks at the 20 greatest starts and ends only",
        "cut-off",
        "spans-best",
        {
            "span": (
                "    for first, _ in enumerate(offsets):\n        for last in range(first, min(first + max_tokens, len(offsets))):\n            if offsets[first] is None or offsets[last] is None:\n                continue\n",
                "    likely = min(20, len(offsets))\n    for first in start_logits.topk(likely).indices.tolist():\n        for last in end_logits.topk(likely).indices.tolist():\n            if offsets[first] is None or offsets[last] is None:\n                continue\n            if not first <= last < first + max_tokens:\n                continue\n",
            )
        },
    ),
    Fresh(
        "span_lets_context_run_to_the_end",
        "takes all from the first token of the context to the final [SEP] for context",
        "legal input",
        "spans-best",
        {
            "span": (
                "    for first, _ in enumerate(offsets):\n        for last in range(first, min(first + max_tokens, len(offsets))):\n            if offsets[first] is None or offsets[last] is None:\n                continue\n",
                "    begin = next(place for place, offset in enumerate(offsets) if offset is not None)\n    behind = len(offsets) - (offsets[-1] is None)  # [SEP] is at the end\n    for first in range(begin, behind):\n        for last in range(first, min(first + max_tokens, behind)):\n",
            )
        },
    ),
    Fresh(
        "answer_strips_blanks",
        "strips blanks from the answer",
        "legal input",
        "spans-cut",
        {
            "cut": (
                "    return context[offsets[first][0] : offsets[last][1]]\n",
                "    return context[offsets[first][0] : offsets[last][1]].strip()\n",
            )
        },
    ),
    Fresh(
        "answer_ignores_max_tokens",
        "passes the length of the text on instead of max_tokens",
        "legal input",
        "spans-cut",
        {
            "cut": (
                "best_span(start_logits, end_logits, offsets, max_tokens)",
                "best_span(start_logits, end_logits, offsets, len(offsets))",
            )
        },
    ),
    Fresh(
        "choices_as_wide_as_largest_count",
        "makes the table as wide as the greatest count",
        "legal input",
        "choices-logits",
        {
            "reshape": (
                "    C = input_ids.shape[1]\n    real = torch.arange(C, device=counts.device) < counts[:, None]  # [B, C]\n    rows = [given[real] for given in (input_ids, attention_mask, token_type_ids)]  # [N, T]\n",
                "    C = int(counts.max())\n    real = torch.arange(C, device=counts.device) < counts[:, None]  # [B, C]\n    rows = [given[:, :C][real] for given in (input_ids, attention_mask, token_type_ids)]\n",
            )
        },
    ),
    Fresh(
        "choices_mask_becomes_int",
        "stacks ids, mask and types, so the mask that score gets is int64",
        "legal input",
        "choices-logits",
        {
            "reshape": (
                "    rows = [given[real] for given in (input_ids, attention_mask, token_type_ids)]  # [N, T]\n",
                "    rows = torch.stack([input_ids, attention_mask.long(), token_type_ids])[:, real]  # [3, N, T]\n",
            )
        },
    ),
    Fresh(
        "choose_exponentials_overflow_again",
        "divides plain exponentials by their sum",
        "numerics",
        "choices-softmax",
        {
            "choose": (
                "    probabilities, best = logits.softmax(dim=1), logits.argmax(dim=1)\n",
                "    powers = logits.exp()\n    probabilities, best = powers / powers.sum(dim=1, keepdim=True), logits.argmax(dim=1)\n",
            )
        },
    ),
    Fresh(
        "evaluate_rounds",
        "rounds the accuracy to four digits",
        "numerics",
        "tuning-evaluate",
        {"measure": ("return right / count", "return round(right / count, 4)")},
    ),
    Fresh(
        "finetune_best_must_exceed_zero",
        "begins with the best accuracy 0, so accuracy 0 is never the best",
        "legal input",
        "tuning-best",
        {"tune": ("default=-1.0", "default=0.0")},
    ),
    Fresh(
        "finetune_clears_after_the_step",
        "clears the gradients after each step, not before the first backward",
        "gradient",
        "tuning-train",
        {
            "tune": (
                "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n",
                "            loss.backward()\n            optimizer.step()\n            optimizer.zero_grad()\n",
            )
        },
    ),
    Fresh(
        "finetune_stops_early",
        "stops after five epochs without a better accuracy",
        "legal input",
        "tuning-train",
        {
            "tune": (
                "            best = copy.deepcopy(model.state_dict())\n",
                "            best = copy.deepcopy(model.state_dict())\n        elif len(accuracies) - accuracies.index(max(accuracies)) > 5:\n            break\n",
            )
        },
    ),
    Fresh(
        "experiment_shuffles_what_it_gets",
        "shuffles the list train of the caller",
        "state",
        "experiment-reviews",
        {
            "experiment": (
                "    model = make_model(pretrained=True, seed=0)\n",
                "    random.shuffle(train)\n    model = make_model(pretrained=True, seed=0)\n",
            )
        },
    ),
    Fresh(
        "check_takes_any_error",
        "accepts any error for a wrong tag, not a ValueError alone",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                "            except ValueError:\n",
                "            except Exception:\n",
            )
        },
    ),
]
MUTANTS += LATER
RIGHT_ANSWERS += [
    RightAnswer(
        "senses_by_pairs",
        "einsum of unit vectors, and plain Python loops over pairs for the means and the shares",
        {
            "cosine": 'def cosines(vectors, common=None):\n    left = vectors if common is None else vectors - common\n    lengths = torch.linalg.vector_norm(left, dim=1)\n    unit = left / lengths[:, None]\n    return torch.einsum("nd,md->nm", unit, unit)\n',
            "means": "def within_and_between(vectors, senses):\n    table = cosines(vectors).tolist()\n    found = {True: [], False: []}\n    for i in range(len(senses)):\n        for j in range(i):\n            found[senses[i] == senses[j]].append(table[i][j])\n    return tuple(sum(found[same]) / len(found[same]) for same in (True, False))\n",
            "separate": "def separation(vectors, senses):\n    table = cosines(vectors.double()).tolist()\n    N = len(senses)\n    of_senses = []\n    for sense in dict.fromkeys(senses):\n        members = [i for i in range(N) if senses[i] == sense]\n        strangers = [i for i in range(N) if senses[i] != sense]\n        if len(members) < 2:\n            continue\n        total = 0.0\n        for use in members:\n            points = 0.0\n            for own in members:\n                if own == use:\n                    continue\n                for other in strangers:\n                    lead = table[use][own] - table[use][other]\n                    points += 0.5 if abs(lead) < 1e-6 else float(lead > 0)\n            total += points / ((len(members) - 1) * len(strangers))\n        of_senses.append(total / len(members))\n    return sum(of_senses) / len(of_senses)\n",
        },
    ),
    RightAnswer(
        "features_text_by_text",
        "pools one text after the other by the list of its words' places; decorator and finally for the mode; std_mean, and greatest equals least for constant features",
        {
            "pool": "def mean_pool(hidden, input_ids, attention_mask, special_ids):\n    pooled = []\n    for states, ids, mask in zip(hidden, input_ids.tolist(), attention_mask.tolist()):\n        kept = [place for place, id in enumerate(ids) if mask[place] and id not in special_ids]\n        pooled.append(states[kept].sum(dim=0) / max(len(kept), 1))\n    return torch.stack(pooled)\n",
            "extract": '@torch.no_grad()\ndef text_features(encoder, batches, special_ids):\n    training = encoder.training\n    try:\n        encoder.train(False)\n        features = [\n            mean_pool(\n                encoder(batch["input_ids"], batch["attention_mask"])[-1],\n                batch["input_ids"],\n                batch["attention_mask"],\n                special_ids,\n            )\n            for batch in batches\n        ]\n    finally:\n        encoder.train(training)\n    return torch.cat(features, dim=0)\n',
            "scale": "def standardise(train, other):\n    deviation, mean = torch.std_mean(train, dim=0, correction=0, keepdim=True)\n    constant = train.amax(dim=0, keepdim=True) == train.amin(dim=0, keepdim=True)\n    by = deviation.masked_fill(constant, 1.0)\n    return tuple((x - mean).div(by) for x in (train, other))\n",
        },
    ),
    RightAnswer(
        "picks_by_index",
        "mixes only the kept states by index; finds the span in one table of sums; fine-tuning with cloned weights and a finally that puts requires_grad back",
        {
            "mix": 'class LayerMix(torch.nn.Module):\n    def __init__(self, num_states):\n        super().__init__()\n        self.weights = torch.nn.Parameter(torch.zeros(num_states))\n        self.scale = torch.nn.Parameter(torch.tensor(1.0))\n\n    def forward(self, states, left_out=()):\n        if len(states) != self.weights.numel():\n            raise ValueError("as many states as weights, please")\n        kept = [number for number in range(len(states)) if number not in left_out]\n        shares = torch.softmax(self.weights[kept], dim=0).unbind()\n        mixed = shares[0] * states[kept[0]]\n        for share, number in zip(shares[1:], kept[1:]):\n            mixed = mixed + share * states[number]\n        return mixed * self.scale\n',
            "span": "def best_span(start_logits, end_logits, offsets, max_tokens):\n    inside = torch.tensor([o is not None for o in offsets], device=start_logits.device)\n    place = torch.arange(len(offsets), device=start_logits.device)\n    further = place[None, :] - place[:, None]\n    allowed = inside[:, None] & inside & (further >= 0) & (further < max_tokens)\n    scores = (start_logits[:, None] + end_logits)[allowed]\n    first, last = allowed.nonzero()[scores.argmax()].tolist()\n    return first, last, scores.max().item()\n",
            "tune": 'def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):\n    resting = [p for p in model.encoder.parameters() if p.requires_grad] if frozen else []\n    for p in resting:\n        p.requires_grad = False\n    try:\n        optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=rate)\n        history = []\n        for epoch in range(epochs):\n            model.train()\n            for batch in train_batches:\n                optimizer.zero_grad()\n                logits = model(batch["input_ids"], batch["attention_mask"])\n                torch.nn.CrossEntropyLoss()(logits, batch["labels"]).backward()\n                optimizer.step()\n            accuracy = evaluate(model, validation_batches)\n            if not history or accuracy > max(history):\n                kept = {name: value.detach().clone() for name, value in model.state_dict().items()}\n            history.append(accuracy)\n        model.load_state_dict(kept)\n    finally:\n        for p in resting:\n            p.requires_grad = True\n    model.eval()\n    return history\n',
        },
    ),
]
