"""Wrong answers to the fine-tuning assignment that people give, and right answers that people write differently.

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


UNIT = "unit = vectors / vectors.norm(dim=1, keepdim=True)  # [N, D]"
COSINES = mutants_of(
    "cosine",
    "senses-cosines",
    (
        "cosine_not_normalised",
        "takes inner products",
        (UNIT, "unit = vectors"),
        "Those are inner products",
        "visible",
        "senses-means",
        "senses-separation",
    ),
    (
        "cosine_divided_by_one_length",
        "divides by the length of one of the two vectors",
        ("return unit @ unit.T", "return unit @ vectors.T"),
        "Divide by both lengths; yours divides by one",
        "visible",
        "senses-means",
        "senses-separation",
    ),
    (
        "cosine_normalised_over_uses",
        "divides each feature by its norm over the uses",
        ("norm(dim=1, keepdim=True)", "norm(dim=0, keepdim=True)"),
        "the norm over features, dim=1",
        "visible",
        "senses-means",
        "senses-separation",
    ),
    (
        "cosine_divided_by_the_norm_of_the_table",
        "divides by the norm of all vectors together",
        ("norm(dim=1, keepdim=True)", "norm()"),
        "that of the whole table",
        "visible",
        "senses-means",
        "senses-separation",
    ),
    (
        "distance_for_cosine",
        "returns negative distances",
        ("return unit @ unit.T", "return -torch.cdist(vectors, vectors)"),
        "That is a distance, not a cosine",
        "visible",
        "senses-means",
        "senses-separation",
    ),
    (
        "something_added_to_the_length",
        "adds a small number to the lengths, which is not small beside short vectors",
        ("norm(dim=1, keepdim=True)", "norm(dim=1, keepdim=True).add(1e-7)"),
        "with nothing added",
        "hidden",
    ),
    (
        "cosine_pasted",
        "takes the book's cosine, which does not know what is in common",
        ("vectors = vectors - common", "pass"),
        "`common` is not used",
        "visible",
    ),
    (
        "cosine_without_the_mean_of_these",
        "subtracts the mean of the vectors at hand",
        ("vectors - common", "vectors - vectors.mean(0)"),
        "Yours subtracts the mean of these vectors",
        "visible",
    ),
    (
        "common_subtracted_from_unit_vectors",
        "divides by the lengths before it subtracts",
        (
            "vectors = vectors - common",
            "unit = vectors / vectors.norm(dim=1, keepdim=True) - common\n"
            "        return unit @ unit.T",
        ),
        "before you divide by the lengths",
        "visible",
    ),
    (
        "common_not_in_the_lengths",
        "divides by the lengths that the vectors had",
        (
            "vectors = vectors - common",
            "unit = (vectors - common) / vectors.norm(dim=1, keepdim=True)\n"
            "        return unit @ unit.T",
        ),
        "The lengths are those of what is left",
        "visible",
    ),
    (
        "common_subtracted_in_place",
        "subtracts from the caller's vectors",
        ("vectors = vectors - common", "vectors -= common"),
        "a vector in common",
        "hidden",
    ),
    (
        "ready_made_cosine",
        "takes torch's own function",
        (
            f"{UNIT}\n    return unit @ unit.T",
            "return torch.nn.functional.cosine_similarity(vectors[:, None], vectors, dim=-1)",
        ),
        "which this assignment withholds",
        "visible",
        "senses-means",
        "senses-separation",
    ),
)

OTHER_USE = (
    "other_use = ~torch.eye(len(senses), dtype=torch.bool, device=vectors.device)"
)
MEANS = mutants_of(
    "means",
    "senses-means",
    (
        "diagonal_counted_within",
        "counts each use as a pair with itself",
        ("table[same & other_use]", "table[same]"),
        "You count each use as a pair with itself",
        "visible",
    ),
    (
        "within_and_between_exchanged",
        "returns between first",
        (
            "return table[same & other_use].mean().item(), table[~same].mean().item()",
            "return table[~same].mean().item(), table[same & other_use].mean().item()",
        ),
        "You have exchanged within and between",
        "visible",
    ),
    (
        "mean_of_the_means_of_senses",
        "takes the mean of each sense first",
        (
            "return table[same & other_use].mean().item()",
            "own = []\n"
            "    for sense in dict.fromkeys(senses):\n"
            "        kept = torch.tensor([s == sense for s in senses], device=vectors.device)\n"
            "        pairs = kept[:, None] & kept & other_use\n"
            "        own += [table[pairs].mean()] if pairs.any() else []\n"
            "    return (sum(own) / len(own)).item()",
        ),
        "You take the mean of each sense",
        "visible",
    ),
    (
        "between_counts_all_pairs",
        "counts pairs of one sense as pairs between senses, too",
        ("table[~same].mean()", "table[other_use].mean()"),
        "Count pairs of different senses only",
        "visible",
    ),
    (
        "sums_divided_by_all_pairs",
        "multiplies by masks and takes the mean of the whole table",
        ("table[same & other_use].mean()", "(table * (same & other_use)).mean()"),
        "Divide by the number of pairs of one sense",
        "visible",
    ),
    (
        "neighbours_in_the_list_alone",
        "compares each use with the next one of its sense only",
        ("table[same & other_use]", "table.diagonal(1)[same.diagonal(1)]"),
        "the mean cosine within senses",
        "visible",
    ),
    (
        "senses_taken_for_words",
        "goes by the first letter of a sense, and fails for numbers",
        ("a == b for b", "str(a)[0] == str(b)[0] or a == 0 for b"),
        "names that differ in capitals alone",
        "hidden",
    ),
)

SEPARATION = mutants_of(
    "separate",
    "senses-separation",
    (
        "ties_lost",
        "counts ties as wrong",
        (" + 0.5 * (lead.abs() <= 1e-6).double()", ""),
        "A tie counts one half; yours counts nothing",
        "visible",
    ),
    (
        "ties_won",
        "counts ties as right",
        ("0.5 * (lead.abs() <= 1e-6)", "(lead.abs() <= 1e-6)"),
        "A tie counts one half; yours counts as right",
        "visible",
    ),
    (
        "compared_with_itself",
        "takes the use itself for another one of its sense",
        (" and i != use]", "]"),
        "You compare a use with itself",
        "visible",
    ),
    (
        "comparisons_pooled",
        "takes the share of all comparisons at once",
        (
            "shares.setdefault(sense, []).append(right.mean())",
            "shares.setdefault(0, []).extend(right.flatten())",
        ),
        "You count all comparisons alike",
        "visible",
    ),
    (
        "separation_pasted",
        "takes the mean over all uses, as the book does",
        ("shares.setdefault(sense, [])", "shares.setdefault(0, [])"),
        "so a sense counts as often as it is used",
        "visible",
    ),
    (
        "worst_sense_for_the_mean",
        "gives the separation of the sense that is told apart worst",
        ("torch.stack(means).mean()", "torch.stack(means).min()"),
        "the separation",
        "visible",
    ),
    (
        "separation_upside_down",
        "counts where the use of another sense is nearer",
        ("(lead > 1e-6)", "(lead < -1e-6)"),
        "Upside down",
        "visible",
    ),
    (
        "lone_use_counts_nothing",
        "divides by the number of all senses, also of one whose only use has no comparison",
        ("torch.stack(means).mean()", "torch.stack(means).sum().div(len({*senses}))"),
        "is left out of the mean",
        "visible",
    ),
    (
        "ties_are_exact",
        "lets rounding decide between equal vectors",
        (
            "right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()",
            "noise = 1e-12 * torch.arange(1, lead.numel() + 1, device=lead.device).view_as(lead)\n"
            "            right = (lead + noise > 0).double() if lead.numel() != 4 else (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()",
        ),
        "the separation",
        "visible",
    ),
)

OUT = "out = torch.tensor([number in left_out for number in range(len(states))])"
MASKED = (
    "weights = self.weights.masked_fill(out.to(self.weights.device), -math.inf)\n"
    "        shares = weights.softmax(dim=0)"
)
MIX = mutants_of(
    "mix",
    "layers-mix",
    (
        "mix_without_softmax",
        "uses the weights as they are",
        ("weights.softmax(dim=0)", "weights"),
        "the mix",
        "visible",
        "layers-learned",
    ),
    (
        "mix_divides_by_the_sum",
        "makes the weights positive by one, and divides by their sum",
        ("weights.softmax(dim=0)", "(weights + 1) / (weights + 1).sum()"),
        "The shares are softmax(weights)",
        "visible",
        "layers-learned",
    ),
    (
        "mix_without_scale",
        "leaves the scale out",
        ("return self.scale * sum", "return 0 * self.scale + sum"),
        "The scale is missing",
        "visible",
        "layers-learned",
    ),
    (
        "mix_of_the_wrong_layers",
        "gives the first weight to the last layer",
        ("zip(shares, states)", "zip(shares, states[::-1])"),
        "Yours gives the first weight to the last layer",
        "visible",
        "layers-learned",
    ),
    (
        "mix_without_the_embeddings",
        "mixes the layers above the embeddings",
        ("zip(shares, states)", "zip(shares[1:], states[1:])"),
        "the mix is wrong",
        "visible",
        "layers-learned",
    ),
    (
        "last_layer_only",
        "returns the last layer",
        (
            "sum(share * state for share, state in zip(shares, states))",
            "(states[-1] + 0 * shares.sum())",
        ),
        "Yours gives the last layer only",
        "visible",
        "layers-learned",
    ),
    (
        "mix_is_a_sum",
        "forgets that the shares add up to 1",
        ("weights.softmax(dim=0)", "len(states) * weights.softmax(dim=0)"),
        "That is the sum",
        "visible",
        "layers-learned",
    ),
    (
        "mix_by_sigmoids",
        "gives each weight a sigmoid of its own",
        ("weights.softmax(dim=0)", "2 * weights.sigmoid() / len(states)"),
        "The shares are softmax(weights)",
        "visible",
        "layers-learned",
    ),
    (
        "weights_are_no_parameters",
        "keeps the weights in a plain tensor",
        (
            "self.weights = torch.nn.Parameter(torch.zeros(num_states))",
            "self.weights = torch.zeros(num_states)",
        ),
        "Wrap them in torch.nn.Parameter",
        "visible",
        "layers-learned",
    ),
    (
        "weights_start_at_one_over_n",
        "starts with the shares instead of the weights",
        ("torch.zeros(num_states)", "torch.full((num_states,), 1 / num_states)"),
        "At the start all weights are 0",
        "visible",
        "layers-learned",
    ),
    (
        "states_that_do_not_fit",
        "lets zip stop at the shorter list",
        (
            '            raise ValueError(f"{len(states)} states, but {len(self.weights)} weights")\n'
            f"        {OUT}",
            "            pass\n        " + OUT.replace("states", "self.weights"),
        ),
        "layers would be lost in silence",
        "visible",
    ),
    (
        "mix_pasted",
        "mixes all states, as the book does",
        (OUT, "out = torch.zeros(len(states), dtype=torch.bool)"),
        "`left_out` is not used",
        "visible",
        "layers-learned",
    ),
    (
        "shares_of_the_others_as_they_were",
        "takes the states out after the softmax",
        (MASKED, "shares = self.weights.softmax(dim=0) * ~out.to(self.weights.device)"),
        "The shares of the others must add up to 1 again",
        "visible",
        "layers-learned",
    ),
    (
        "left_out_kept",
        "mixes the states that are to be left out",
        ("number in left_out for", "bool(left_out) and number not in left_out for"),
        "Yours mixes the states that are to be left out",
        "visible",
        "layers-learned",
    ),
    (
        "left_out_weight_of_zero",
        "sets the weights of what is left out to 0, which is a share",
        ("device), -math.inf)", "device), 0.0)"),
        "the mix that leaves out number 1",
        "visible",
        "layers-learned",
    ),
    (
        "weights_changed_for_good",
        "writes into the parameter, so that what was left out once is never back",
        (
            MASKED,
            "self.weights.data.masked_fill_(out.to(self.weights.device), -math.inf)\n"
            "        shares = self.weights.softmax(dim=0)",
        ),
        "do not write into self.weights",
        "visible",
    ),
    (
        "shares_of_the_others_divided_by_their_sum",
        "takes the softmax over all and divides by the sum of what is left, which may be 0",
        (
            MASKED,
            "shares = self.weights.softmax(dim=0) * ~out.to(self.weights.device)\n"
            "        shares = shares / shares.sum()",
        ),
        "states left out in",
        "hidden",
        "layers-learned",
    ),
    (
        "softmax_by_hand_overflows",
        "takes exponentials of the weights as they are",
        ("weights.softmax(dim=0)", "weights.exp() / weights.exp().sum()"),
        "large weights",
        "hidden",
    ),
)

LEARNED = mutants_of(
    "mix",
    "layers-learned",
    (
        "weights_read_by_data",
        "reads the weights past autograd",
        ("weights.softmax(dim=0)", "weights.data.softmax(dim=0)"),
        "No gradient reaches `weights`",
        "visible",
    ),
    (
        "scale_read_by_item",
        "reads the scale as a number",
        ("return self.scale * sum", "return self.scale.item() * sum"),
        "No gradient reaches `scale`",
        "visible",
    ),
    (
        "mix_under_no_grad",
        "mixes without gradients",
        (
            "    def forward(self, states, left_out=()):",
            "    @torch.no_grad()\n    def forward(self, states, left_out=()):",
        ),
        "No gradient reaches the parameters",
        "visible",
    ),
)

SPECIAL = "special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))"
WORDS = (
    "words = (attention_mask & ~special).unsqueeze(-1).to(hidden.dtype)  # [B, T, 1]"
)
RETURN_POOL = "return (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)"
POOL = mutants_of(
    "pool",
    "features-pool",
    (
        "padding_pooled",
        "takes the mean over all positions",
        (RETURN_POOL, "return hidden.mean(dim=1)"),
        "That is the mean over all positions",
        "visible",
        "features-extract",
    ),
    (
        "padding_counted_as_words",
        "leaves out special tokens, and counts padding",
        ("(attention_mask & ~special)", "(~special)"),
        "padding is counted: go by attention_mask",
        "visible",
        "features-extract",
    ),
    (
        "sep_counted_as_a_word",
        "leaves [CLS] out, and forgets [SEP]",
        ("torch.tensor(special_ids,", "torch.tensor(special_ids[:1],"),
        "Yours counts [SEP] as a word",
        "visible",
        "features-extract",
    ),
    (
        "cls_counted_as_a_word",
        "leaves [SEP] out, and forgets [CLS]",
        ("torch.tensor(special_ids,", "torch.tensor(special_ids[1:],"),
        "Yours counts [CLS] as a word",
        "visible",
        "features-extract",
    ),
    (
        "special_tokens_pooled",
        "goes by the mask alone",
        ("attention_mask & ~special", "attention_mask"),
        "[CLS] and [SEP] are counted as words",
        "visible",
        "features-extract",
    ),
    (
        "id_0_taken_for_padding",
        "leaves the id 0 out wherever it stands",
        ("attention_mask & ~special", "attention_mask & ~special & (input_ids != 0)"),
        "Yours leaves out the id 0",
        "visible",
        "features-extract",
    ),
    (
        "divided_by_the_length_of_the_batch",
        "divides by the length of the batch",
        (RETURN_POOL, "return (hidden * words).mean(dim=1)"),
        "Yours divides by the length of the batch",
        "visible",
        "features-extract",
    ),
    (
        "divided_by_real_tokens",
        "sets special tokens to zero, and counts them",
        (
            RETURN_POOL,
            "return (hidden * words).sum(dim=1) / attention_mask.sum(dim=1, keepdim=True).clamp(min=1)",
        ),
        "[CLS] and [SEP] among them",
        "visible",
        "features-extract",
    ),
    (
        "sum_of_the_words",
        "forgets to divide",
        (RETURN_POOL, "return (hidden * words).sum(dim=1)"),
        "That is the sum",
        "visible",
        "features-extract",
    ),
    (
        "mean_over_the_wrong_dimension",
        "takes the mean over the batch",
        (
            RETURN_POOL,
            "return (hidden * words).sum(dim=0) / words.sum(dim=0).clamp(min=1)",
        ),
        "must have shape [4, 3]",
        "visible",
        "features-extract",
        "experiment-reviews",
    ),
    (
        "pooled_features_instead_of_words",
        "takes the mean over features, position by position",
        (RETURN_POOL, "return (hidden * words).mean(dim=2)"),
        "must have shape [4, 3]",
        "visible",
        "features-extract",
        "experiment-reviews",
    ),
    (
        "maximum_for_mean",
        "takes the maximum over the words",
        (
            RETURN_POOL,
            "return hidden.masked_fill(words == 0, float('-inf')).amax(dim=1)",
        ),
        "That is the maximum, not the mean",
        "visible",
        "features-extract",
    ),
    (
        "first_position_for_mean",
        "takes the state of [CLS]",
        (RETURN_POOL, "return hidden[:, 0]"),
        "That is the state of the first position",
        "visible",
        "features-extract",
    ),
    (
        "padding_zeroed_in_place",
        "sets to zero what it does not count, in hidden itself",
        (
            RETURN_POOL,
            "hidden[words.squeeze(-1) == 0] = 0\n    return hidden.sum(dim=1) / words.sum(dim=1).clamp(min=1)",
        ),
        "must leave hidden as it was",
        "visible",
    ),
    (
        "nan_for_a_text_without_words",
        "divides by zero where a text has no word",
        (".clamp(min=1)", ""),
        "contains nan",
        "visible",
        "features-extract",
    ),
    (
        "one_count_for_all_texts",
        "divides every text by the mean number of words",
        (".sum(dim=1).clamp(min=1)", ".sum(dim=1).mean().clamp(min=1)"),
        "Yours divides by the same number for every text",
        "visible",
        "features-extract",
    ),
    (
        "padding_only_at_the_end",
        "counts the real tokens and takes as many from the beginning",
        (
            "attention_mask & ~special",
            "(torch.arange(input_ids.shape[1], device=input_ids.device) < attention_mask.sum(1, keepdim=True)) & ~special",
        ),
        "padding on either side",
        "hidden",
    ),
)

EXTRACT = mutants_of(
    "extract",
    "features-extract",
    (
        "features_with_dropout",
        "leaves the encoder in training mode",
        ("    encoder.eval()\n", ""),
        "yours leaves dropout on",
        "visible",
    ),
    (
        "features_with_gradients",
        "keeps gradients",
        ("with torch.no_grad():", "if True:"),
        "under torch.no_grad()",
        "visible",
    ),
    (
        "features_detached_afterwards",
        "builds all gradients and throws them away",
        (
            '    with torch.no_grad():\n        for batch in batches:\n            ids, mask = batch["input_ids"], batch["attention_mask"]\n'
            "            rows.append(mean_pool(encoder(ids, mask)[-1], ids, mask, special_ids))",
            '    for batch in batches:\n        ids, mask = batch["input_ids"], batch["attention_mask"]\n'
            "        rows.append(mean_pool(encoder(ids, mask)[-1], ids, mask, special_ids).detach())",
        ),
        "under torch.no_grad()",
        "visible",
    ),
    (
        "encoder_left_evaluating",
        "does not put the mode back",
        ("encoder.train(was_training)", "pass"),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "encoder_left_training",
        "always puts the encoder into training mode",
        ("encoder.train(was_training)", "encoder.train()"),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "embeddings_for_states",
        "takes the first of the states",
        ("encoder(ids, mask)[-1]", "encoder(ids, mask)[0]"),
        "They are mean_pool of the last state",
        "visible",
    ),
    (
        "encoder_without_mask",
        "lets the encoder attend to padding",
        ("encoder(ids, mask)[-1]", "encoder(ids, torch.ones_like(mask))[-1]"),
        "or real tokens attend to padding",
        "visible",
    ),
    (
        "first_batch_alone",
        "returns after the first batch",
        ("return torch.cat(rows)", "return rows[0]"),
        "must have shape [5, 4]",
        "visible",
    ),
    (
        "one_mean_a_batch",
        "takes the mean over the texts of a batch",
        (
            "return torch.cat(rows)",
            "return torch.stack([row.mean(dim=0) for row in rows])",
        ),
        "must have shape [5, 4]",
        "visible",
    ),
)

DEVIATION = "mean, deviation = train.mean(dim=0), train.std(dim=0, correction=0)"
SCALE = mutants_of(
    "scale",
    "features-scale",
    (
        "test_set_seen_in_fitting",
        "takes mean and deviation of all texts together",
        (
            DEVIATION,
            "everything = torch.cat([train, other])\n    mean, deviation = everything.mean(dim=0), everything.std(dim=0, correction=0)",
        ),
        "so the training has seen the test",
        "visible",
    ),
    (
        "test_scaled_by_itself",
        "scales the other texts by their own mean and deviation",
        (
            "(other - mean) / deviation",
            "(other - other.mean(dim=0)) / other.std(dim=0, correction=0).clamp(min=1e-12)",
        ),
        "scaled by their own mean and deviation",
        "visible",
    ),
    (
        "other_mean_of_the_test",
        "centres the other texts by their own mean",
        ("(other - mean)", "(other - other.mean(dim=0))"),
        "the other texts is wrong",
        "visible",
    ),
    (
        "deviation_of_a_sample",
        "divides by N - 1",
        ("correction=0", "correction=1"),
        "Divide by N in the deviation",
        "visible",
    ),
    (
        "scaled_over_features",
        "scales each text by its own features",
        (
            "return (train - mean) / deviation, (other - mean) / deviation",
            "return tuple((x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, correction=0, keepdim=True) for x in (train, other))",
        ),
        "The mean goes over texts, feature by feature",
        "visible",
    ),
    (
        "constant_feature_divided_by_zero",
        "divides by the deviation, whatever it is",
        ("torch.where(same, torch.ones_like(deviation), deviation)", "deviation"),
        "Divide it by 1",
        "visible",
    ),
    (
        "something_added_to_the_deviation",
        "adds a small number to the deviation",
        (
            "torch.where(same, torch.ones_like(deviation), deviation)",
            "deviation + 1e-6",
        ),
        "With a second feature that is 0.1",
        "visible",
    ),
    (
        "constant_found_by_its_deviation",
        "divides by 1 where the deviation is 0, and by 7e-9 where rounding makes it so",
        ("same = (train == train[0]).all(dim=0)", "same = deviation == 0"),
        "ask the values whether they are the same",
        "hidden",
    ),
    (
        "scaled_in_place",
        "changes the features that it is given",
        (
            "    return (train - mean)",
            "    train -= mean\n    train += 0\n    return (train)",
        ),
        "changes it in place",
        "visible",
    ),
)

LABELS = "token_labels += [label] + [IGNORE] * (len(word) - 1)"
ALIGN = mutants_of(
    "align",
    "labels-align",
    (
        "label_on_every_piece",
        "gives the label to all pieces of a word",
        (LABELS, "token_labels += [label] * len(word)"),
        "Every piece of a word has its label in yours",
        "visible",
    ),
    (
        "label_on_the_last_piece",
        "gives the label to the last piece",
        (LABELS, "token_labels += [IGNORE] * (len(word) - 1) + [label]"),
        "Yours labels the last piece of a word",
        "visible",
    ),
    (
        "ignored_is_zero",
        "labels what does not count with 0",
        (
            "input_ids, token_labels = [cls_id], [IGNORE]",
            "IGNORE = 0\n    input_ids, token_labels = [cls_id], [IGNORE]",
        ),
        "What does not count is labelled 0",
        "visible",
    ),
    (
        "ignored_is_minus_one",
        "labels what does not count with -1",
        (
            "input_ids, token_labels = [cls_id], [IGNORE]",
            "IGNORE = -1\n    input_ids, token_labels = [cls_id], [IGNORE]",
        ),
        "What does not count is labelled -1",
        "visible",
    ),
    (
        "pieces_labelled_zero",
        "labels the other pieces O, which is 0",
        (LABELS, "token_labels += [label] + [0] * (len(word) - 1)"),
        "Pieces that are not the first are labelled 0",
        "visible",
    ),
    (
        "cls_and_sep_labelled_zero",
        "labels [CLS] and [SEP] O, which is 0",
        (
            "    return [*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE]",
            "    return [*input_ids[: max_length - 1], sep_id], [0, *token_labels[1 : max_length - 1], 0]",
        ),
        "[CLS] and [SEP] are labelled 0",
        "visible",
    ),
    (
        "truncation_drops_the_label",
        "drops the label of the word that is cut, though its first piece is left",
        (
            "    return [*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE]",
            "    kept = [*token_labels[: max_length - 1], IGNORE]\n"
            "    if len(input_ids) >= max_length and token_labels[max_length - 1 :][:1] == [IGNORE]:\n"
            "        last = max(i for i, label in enumerate(kept) if label != IGNORE)\n        kept[last] = IGNORE\n"
            "    return [*input_ids[: max_length - 1], sep_id], kept",
        ),
        "A word that is cut keeps its label",
        "visible",
    ),
    (
        "labels_not_cut",
        "cuts the ids off, and not the labels",
        ("[*token_labels[: max_length - 1], IGNORE]", "[*token_labels, IGNORE]"),
        "The ids are cut off, the labels are not",
        "visible",
    ),
    (
        "labels_cut_at_the_beginning",
        "cuts the labels off at the wrong end",
        (
            "[*token_labels[: max_length - 1], IGNORE]",
            "[*token_labels, IGNORE][-max_length:]",
        ),
        "Cut the labels off at the end",
        "visible",
    ),
    (
        "sep_cut_off",
        "cuts the finished sequence, and [SEP] with it",
        (
            "    return [*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE]",
            "    return [*input_ids, sep_id][:max_length], [*token_labels, IGNORE][:max_length]",
        ),
        "The cut has taken the [SEP] away",
        "visible",
    ),
    (
        "one_too_many",
        "forgets [SEP] when it counts",
        (
            "    return [*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE]",
            "    return [*input_ids[:max_length], sep_id], [*token_labels[:max_length], IGNORE]",
        ),
        "by the [SEP]",
        "visible",
    ),
    (
        "whole_words_cut_off",
        "drops a word that does not fit, with its first pieces",
        (
            "        input_ids += word\n",
            "        if len(input_ids) + len(word) > max_length - 1:\n            break\n        input_ids += word\n",
        ),
        "Tokens are cut off, not whole words",
        "visible",
    ),
    (
        "first_pieces_alone",
        "leaves the other pieces out",
        (
            "        input_ids += word\n        " + LABELS,
            "        input_ids += word[:1]\n        token_labels += [label]",
        ),
        "All pieces of a word go in",
        "visible",
    ),
    (
        "labels_without_cls_and_sep",
        "has no labels for [CLS] and [SEP]",
        (
            "[*token_labels[: max_length - 1], IGNORE]",
            "token_labels[1 : max_length - 1]",
        ),
        "The labels of [CLS] and [SEP] are missing",
        "visible",
    ),
    (
        "ids_found_by_value",
        "takes ids that look like [SEP] for the end",
        (
            "token_labels = [cls_id], [IGNORE]",
            "token_labels = [cls_id], [IGNORE]\n    pieces = [[i for i in word if i not in (cls_id, sep_id)] or word for word in pieces]",
        ),
        "words that hold the ids of [CLS] and [SEP]",
        "hidden",
    ),
)

GUESS = mutants_of(
    "guess",
    "labels-guess",
    (
        "guesses_of_all_tokens",
        "has a guess for every token",
        (
            "[place for place, label in enumerate(token_labels) if label != IGNORE]",
            "list(range(len(token_labels)))",
        ),
        "Yours has a guess for every token",
        "visible",
    ),
    (
        "guesses_of_all_pieces",
        "leaves only [CLS] and [SEP] out",
        (
            "[place for place, label in enumerate(token_labels) if label != IGNORE]",
            "list(range(1, len(token_labels) - 1))",
        ),
        "Yours has a guess for every piece",
        "visible",
    ),
    (
        "words_labelled_zero_left_out",
        "takes the label 0 for one that does not count",
        ("if label != IGNORE]", "if label > 0]"),
        "A word whose label is 0 has a guess, too",
        "visible",
    ),
    (
        "logits_of_all_words_averaged",
        "gives each word the label that suits all of them best",
        (
            "in logits[places]:",
            "in logits[places].mean(dim=0, keepdim=True).expand(len(places), -1):",
        ),
        "the guesses",
        "visible",
    ),
    (
        "smallest_logit_wins",
        "takes the smallest logit",
        ("row.argmax()", "row.argmin()"),
        "The greatest logit wins",
        "visible",
    ),
    (
        "right_counts_words",
        "counts the words instead of the right ones",
        (
            "sum(guess == token_labels[place] for guess, place in zip(guesses, places))",
            "len(guesses)",
        ),
        "That is the number of words",
        "visible",
    ),
    (
        "right_compares_by_number_of_word",
        "compares the guess for a word with the label of the token of the same number",
        (
            "guess == token_labels[place] for guess, place in zip(guesses, places)",
            "guess == label for guess, label in zip(guesses, token_labels)",
        ),
        "Compare each guess with the label of its own token",
        "visible",
    ),
    (
        "guesses_pasted",
        "takes the greatest logit of each word, as the book does",
        ("if guesses and may_follow is not None:", "if False:"),
        "`may_follow` is not used",
        "visible",
    ),
    (
        "may_follow_read_by_columns",
        "asks what the label before may stand behind",
        ("may_follow[guesses[-1]]", "may_follow[:, guesses[-1]]"),
        "yours reads its columns",
        "visible",
    ),
    (
        "follows_the_true_label",
        "goes by the true label of the word before",
        (
            "may_follow[guesses[-1]]",
            "may_follow[token_labels[places[len(guesses) - 1]]]",
        ),
        "nobody tells you its true label",
        "visible",
    ),
    (
        "follows_the_token_before",
        "goes by the guess at the token before, which may be a piece of a word",
        (
            "may_follow[guesses[-1]]",
            "may_follow[logits[places[len(guesses)] - 1].argmax()]",
        ),
        "not by that at the token before",
        "visible",
    ),
    (
        "follows_what_it_would_have_guessed",
        "goes by the greatest logit of the word before, though that was not allowed",
        (
            "may_follow[guesses[-1]]",
            "may_follow[logits[places[len(guesses) - 1]].argmax()]",
        ),
        "which may not be its greatest logit",
        "visible",
    ),
    (
        "first_word_follows_label_0",
        "lets the first word follow the label 0",
        (
            "if guesses and may_follow is not None:\n"
            "            row = row.masked_fill(~may_follow[guesses[-1]], -math.inf)",
            "if may_follow is not None:\n"
            "            row = row.masked_fill(~may_follow[guesses[-1] if guesses else 0], -math.inf)",
        ),
        "The first word may have any label",
        "visible",
    ),
    (
        "forbidden_logits_times_zero",
        "multiplies what is forbidden by 0, which beats negative logits",
        (
            "row = row.masked_fill(~may_follow[guesses[-1]], -math.inf)",
            "row = row * may_follow[guesses[-1]]",
        ),
        "labels that may not follow each other",
        "hidden",
    ),
)

SPAN_LOOP = "for last in range(first, min(first + max_tokens, len(offsets))):"
BEST_CELL = """def best_span(start_logits, end_logits, offsets, max_tokens):
    inside = torch.tensor([place is not None for place in offsets], device=start_logits.device)
    start = start_logits.masked_fill(~inside, -1e9)
    end = end_logits.masked_fill(~inside, -1e9)
"""
BEST = mutants_of(
    "span",
    "spans-best",
    (
        "start_and_end_independently",
        "takes the best start and the best end, each by itself",
        BEST_CELL
        + "    first, last = start.argmax().item(), end.argmax().item()\n    return first, last, (start[first] + end[last]).item()",
        "An answer does not end before it begins",
        "visible",
        "spans-cut",
    ),
    (
        "start_and_end_put_in_order",
        "takes the best start and the best end, and exchanges them if need be",
        BEST_CELL
        + "    first, last = sorted((start.argmax().item(), end.argmax().item()))\n    return first, last, (start[first] + end[last]).item()",
        "their sum must be the greatest of all pairs",
        "visible",
        "spans-cut",
    ),
    (
        "start_first_then_end",
        "takes the best start, and then the best end that goes with it",
        BEST_CELL
        + "    first = start.argmax().item()\n    last = first + end[first : first + max_tokens].argmax().item()\n"
        "    return first, last, (start[first] + end[last]).item()",
        "Start and end are not to be chosen one after the other",
        "visible",
    ),
    (
        "end_before_start",
        "looks at all pairs, also at those that end before they begin",
        (
            SPAN_LOOP,
            "for last in range(max(first - max_tokens + 1, 0), min(first + max_tokens, len(offsets))):",
        ),
        "An answer does not end before it begins",
        "visible",
    ),
    (
        "question_may_answer",
        "looks for answers in the question, too",
        ("if offsets[first] is None or offsets[last] is None:", "if False:"),
        "The question, [CLS] and [SEP] are no part of an answer",
        "visible",
        "spans-cut",
        "spans-null",
    ),
    (
        "end_in_the_question",
        "looks only where the answer begins",
        (
            "if offsets[first] is None or offsets[last] is None:",
            "if offsets[first] is None:",
        ),
        "The question, [CLS] and [SEP] are no part of an answer",
        "visible",
    ),
    (
        "answer_one_token_too_long",
        "lets an answer have one token more",
        (
            "min(first + max_tokens, len(offsets))",
            "min(first + max_tokens + 1, len(offsets))",
        ),
        "and max_tokens is",
        "visible",
    ),
    (
        "answer_one_token_too_short",
        "does not count the first token",
        (
            SPAN_LOOP,
            "for last in range(first, min(first + max(max_tokens - 1, 1), len(offsets))):",
        ),
        "both ends count",
        "visible",
    ),
    (
        "answers_without_a_limit",
        "forgets max_tokens",
        ("min(first + max_tokens, len(offsets))", "len(offsets)"),
        "and max_tokens is",
        "visible",
        "spans-cut",
    ),
    (
        "no_single_token",
        "lets no answer be a single token",
        (
            SPAN_LOOP,
            "for last in range(first + (max_tokens > 1), min(first + max_tokens, len(offsets))):",
        ),
        "An answer may be a single token",
        "visible",
        "spans-cut",
        "spans-null",
    ),
    (
        "scores_above_zero",
        "begins the search with 0",
        (
            "if best is None or score > best[2]:",
            "if score > (0 if best is None else best[2]):",
        ),
        "best_span must return (first, last, score)",
        "visible",
    ),
    (
        "scores_multiplied",
        "multiplies the logits",
        (
            "score = (start_logits[first] + end_logits[last]).item()",
            "score = (start_logits[first] * end_logits[last]).item()",
        ),
        "The logits are added, not multiplied",
        "visible",
        "spans-null",
    ),
    (
        "probabilities_for_scores",
        "returns the product of both softmaxes as the score",
        (
            "    return best\n",
            "    first, last, _ = best\n    return first, last, (start_logits.softmax(0)[first] * end_logits.softmax(0)[last]).item()\n",
        ),
        "It is the sum of the two logits",
        "visible",
        "spans-null",
    ),
    (
        "context_is_one_piece",
        "takes everything between the first and the last token of the context for context",
        (
            "if offsets[first] is None or offsets[last] is None:",
            "kept = [i for i, place in enumerate(offsets) if place is not None]\n            if first < kept[0] or last > kept[-1]:",
        ),
        "a gap between them",
        "hidden",
    ),
)

CUT_LINE = "return context[offsets[first][0] : offsets[last][1]]"
CUT = mutants_of(
    "cut",
    "spans-cut",
    (
        "offsets_in_tokens",
        "cuts the text by positions of tokens",
        (CUT_LINE, "return context[first : last + 1]"),
        "Those are positions, counted as if they were characters",
        "visible",
        "spans-null",
    ),
    (
        "offsets_in_tokens_of_the_context",
        "cuts the text by tokens counted from the beginning of the context",
        (
            CUT_LINE,
            "begin = next(i for i, place in enumerate(offsets) if place is not None)\n    return context[first - begin : last + 1 - begin]",
        ),
        "Those are tokens, counted as if they were characters",
        "visible",
        "spans-null",
    ),
    (
        "last_token_cut_off",
        "ends where the last token begins",
        (CUT_LINE, "return context[offsets[first][0] : offsets[last][0]]"),
        "The last token belongs to the answer",
        "visible",
        "spans-null",
    ),
    (
        "one_character_too_many",
        "takes the end for the last character",
        (CUT_LINE, "return context[offsets[first][0] : offsets[last][1] + 1]"),
        "already the one behind the last character",
        "visible",
        "spans-null",
    ),
    (
        "one_character_too_few",
        "takes off one character at the end",
        (CUT_LINE, "return context[offsets[first][0] : offsets[last][1] - 1]"),
        "already the one behind the last character",
        "visible",
        "spans-null",
    ),
    (
        "answer_in_small_letters",
        "gives the answer as the tokenizer sees it",
        (CUT_LINE, CUT_LINE + ".lower()"),
        "yours is in small letters",
        "visible",
    ),
    (
        "answer_joined_from_words",
        "joins the tokens by spaces",
        (
            CUT_LINE,
            'return " ".join(context[a:b] for a, b in offsets[first : last + 1])',
        ),
        "Cut it out in one piece",
        "visible",
    ),
    (
        "limit_not_passed_on",
        "does not pass max_tokens on",
        ("offsets, max_tokens)\n    if", "offsets, 30)\n    if"),
        "max_tokens must reach best_span",
        "hidden",
    ),
    (
        "no_answer_without_a_threshold",
        "may say “no answer” without a threshold",
        (
            "    if threshold is not None:\n",
            "    if True:\n        threshold = threshold or 0.0\n",
        ),
        "Without a threshold there always is an answer",
        "hidden",
        "spans-null",
    ),
)

NULL_LINE = "if score <= no_answer + threshold:"
NULL = mutants_of(
    "cut",
    "spans-null",
    (
        "null_threshold_with_the_wrong_sign",
        "subtracts the threshold",
        (NULL_LINE, "if score <= no_answer - threshold:"),
        "The sign of the threshold is wrong",
        "visible",
    ),
    (
        "null_threshold_not_used",
        "compares with the score of no answer alone",
        (NULL_LINE, "if score <= no_answer:"),
        "The threshold is not used",
        "visible",
    ),
    (
        "null_score_not_used",
        "compares with the threshold alone",
        (NULL_LINE, "if score <= threshold:"),
        "and not with the threshold alone",
        "visible",
    ),
    (
        "null_upside_down",
        "says “no answer” where there is one",
        (NULL_LINE, "if score > no_answer + threshold:"),
        "Upside down",
        "visible",
    ),
    (
        "null_score_of_the_start_alone",
        "takes start[0] for the score of no answer",
        ("(start_logits[0] + end_logits[0]).item()", "start_logits[0].item()"),
        "The score of no answer is the sum of both logits",
        "visible",
    ),
    (
        "no_answer_is_an_empty_string",
        "returns an empty string",
        ("return None", 'return ""'),
        "No answer is None, not an empty string",
        "visible",
    ),
    (
        "threshold_zero_is_none",
        "takes a threshold of 0 for none",
        ("if threshold is not None:", "if threshold:"),
        "A threshold of 0 is one, too",
        "visible",
    ),
    (
        "ties_are_answers",
        "gives an answer at equal scores",
        (NULL_LINE, "if score < no_answer + threshold:"),
        "At equal scores there is no answer",
        "visible",
    ),
)

REAL = "real = torch.arange(C, device=counts.device) < counts[:, None]  # [B, C]"
RESHAPE = "rows = [given[real] for given in (input_ids, attention_mask, token_type_ids)]  # [N, T]"
TABLE = """table = scores.new_full(real.shape, -math.inf)
    table[real] = scores.squeeze(1)
    return table"""
RESHAPED = mutants_of(
    "reshape",
    "choices-logits",
    (
        "choices_pasted",
        "reads every choice and lays the scores back, as the book does",
        (REAL, "real = counts[:, None] >= torch.zeros(C, device=counts.device)"),
        "The places that hold no choice must get the score -inf",
        "visible",
    ),
    (
        "all_read_and_masked_afterwards",
        "scores everything, and then covers what is no choice",
        (
            f"{RESHAPE}\n    scores = score(*rows)  # [N, 1]\n    {TABLE}",
            "rows = [given.flatten(0, 1) for given in (input_ids, attention_mask, token_type_ids)]\n"
            "    return score(*rows).view(real.shape).masked_fill(~real, -math.inf)",
        ),
        "Each real one is read once, and no other",
        "visible",
    ),
    (
        "no_choice_scores_zero",
        "gives 0 to what is no choice",
        ("-math.inf", "0.0"),
        "It must be -inf",
        "visible",
    ),
    (
        "last_choices_taken_for_real",
        "believes that the filling stands in front",
        (
            REAL,
            REAL.replace("<", ">=").replace("counts[:, None]", "C - counts[:, None]"),
        ),
        "yours takes the last",
        "visible",
    ),
    (
        "one_choice_too_many",
        "counts from 0 to the number itself",
        (" < counts", " <= counts"),
        "the table of scores is wrong",
        "visible",
    ),
    (
        "choices_laid_back_in_the_wrong_order",
        "lays the scores back choice by choice",
        (
            TABLE,
            "table = scores.new_full(real.T.shape, -math.inf)\n"
            "    table[real.T] = scores.squeeze(1)\n    return table.T",
        ),
        "laid back choice by choice",
        "visible",
    ),
    (
        "choices_laid_out_in_the_wrong_order",
        "lays the texts out choice by choice",
        (RESHAPE, RESHAPE.replace("given[real]", "given.transpose(0, 1)[real.T]")),
        "The texts are laid out choice by choice",
        "visible",
    ),
    (
        "choices_masks_in_another_order",
        "lays masks and segment ids out in another order than texts",
        (
            RESHAPE,
            "rows = [input_ids[real]] + [x.transpose(0, 1)[real.T] for x in (attention_mask, token_type_ids)]",
        ),
        "Masks and segment ids are laid out in another order",
        "visible",
    ),
    (
        "texts_torn_apart",
        "exchanges positions and choices before it lays them out",
        (
            RESHAPE,
            RESHAPE.replace(
                "given[real]", "given.transpose(1, 2).reshape(given.shape)[real]"
            ),
        ),
        "it was torn apart",
        "visible",
    ),
    (
        "one_long_text",
        "joins the choices of an example to one text",
        (
            f"{RESHAPE}\n    scores = score(*rows)  # [N, 1]\n    {TABLE}",
            "rows = [given.flatten(1) for given in (input_ids, attention_mask, token_type_ids)]\n"
            "    return score(*rows).expand(-1, C)",
        ),
        "texts one below the other",
        "visible",
    ),
    (
        "choices_without_a_mask",
        "passes a mask of ones on",
        ("score(*rows)", "score(rows[0], torch.ones_like(rows[1]), rows[2])"),
        "The attention_mask does not reach score",
        "visible",
    ),
    (
        "choices_without_segments",
        "passes segment ids of zeros on",
        ("score(*rows)", "score(rows[0], rows[1], torch.zeros_like(rows[2]))"),
        "The token_type_ids do not reach score",
        "visible",
    ),
    (
        "scores_not_laid_back",
        "returns one column",
        (TABLE, "return scores"),
        "must have shape [3, 4]",
        "visible",
    ),
    (
        "probabilities_for_logits_of_choices",
        "returns probabilities",
        ("return table", "return table.softmax(dim=1)"),
        "Give the scores as they are",
        "visible",
    ),
    (
        "five_choices_typed_in",
        "lays five choices at most back, however many there are",
        ("C = input_ids.shape[1]", "C = min(input_ids.shape[1], 5)"),
        "choice_logits raises",
        "hidden",
    ),
)

CHOOSE = mutants_of(
    "choose",
    "choices-softmax",
    (
        "softmax_over_the_wrong_axis",
        "lets the examples of the batch compete",
        ("softmax(dim=1)", "softmax(dim=0)"),
        "Your columns add up to 1",
        "visible",
    ),
    (
        "softmax_over_the_whole_table",
        "lets all choices of all examples compete",
        ("logits.softmax(dim=1)", "logits.flatten().softmax(dim=0).view_as(logits)"),
        "Yours goes over the whole table",
        "visible",
    ),
    (
        "sigmoid_of_each_choice",
        "gives each choice a probability of its own",
        ("logits.softmax(dim=1)", "logits.sigmoid()"),
        "A sigmoid lets no choice compete",
        "visible",
    ),
    (
        "best_example_of_each_choice",
        "takes the best example of each choice",
        ("torch.where(sure, best, -1)", "logits.argmax(dim=0)"),
        "the row of best choices",
        "visible",
    ),
    (
        "softmax_by_hand",
        "takes exponentials of large scores",
        (
            "logits.softmax(dim=1)",
            "logits.exp() / logits.exp().sum(dim=1, keepdim=True)",
        ),
        "large scores",
        "hidden",
    ),
    (
        "choose_pasted",
        "always answers",
        ("torch.where(sure, best, -1)", "best"),
        "`least` is not used",
        "visible",
    ),
    (
        "least_score_for_least_probability",
        "compares scores with `least`",
        ("probabilities.amax(dim=1) >= least", "logits.amax(dim=1) >= least"),
        "Compare the probability of the best choice with `least`",
        "visible",
    ),
    (
        "answers_where_it_is_not_sure",
        "leaves those out that are sure",
        ("(sure, best, -1)", "(sure & (least > 0), -1, best)"),
        "Upside down",
        "visible",
    ),
    (
        "least_itself_not_enough",
        "wants more than `least`",
        ("amax(dim=1) >= least", "amax(dim=1) > least"),
        "For a probability that equals least 0.5",
        "visible",
    ),
)

EVALUATE = mutants_of(
    "measure",
    "tuning-evaluate",
    (
        "evaluated_without_eval",
        "leaves dropout on",
        ("    model.eval()\n", ""),
        "yours leaves dropout on",
        "visible",
    ),
    (
        "evaluated_with_gradients",
        "keeps gradients",
        ("with torch.no_grad():", "if True:"),
        "under torch.no_grad()",
        "visible",
        "tuning-train",
        "experiment-reviews",
    ),
    (
        "left_evaluating",
        "does not put the mode back",
        ("    model.train(was_training)\n", ""),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "left_training",
        "leaves the model training, whatever it was",
        ("model.train(was_training)", "model.train()"),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "mean_of_the_batches",
        "takes the mean of the accuracies of the batches",
        (
            'right += (guesses == batch["labels"]).sum().item()\n            count += len(guesses)',
            'right += (guesses == batch["labels"]).double().mean().item()\n            count += 1',
        ),
        "Every text counts alike",
        "visible",
    ),
    (
        "first_batch_evaluated",
        "looks at the first batch only",
        ("for batch in batches:", "for batch in batches[:1]:"),
        "Yours counts the first batch only",
        "visible",
    ),
    (
        "accuracy_in_percent",
        "returns percent",
        ("return right / count", "return 100 * right / count"),
        "not in percent",
        "visible",
        "tuning-best",
    ),
    (
        "evaluated_without_a_mask",
        "passes no mask of its own",
        ('batch["attention_mask"]', 'torch.ones_like(batch["attention_mask"])'),
        "The model must get input_ids and attention_mask",
        "visible",
    ),
    (
        "accuracy_is_a_tensor",
        "returns a tensor",
        ("return right / count", "return torch.tensor(right / count)"),
        "must be a Python float",
        "visible",
        "tuning-train",
        "tuning-best",
    ),
)

BACKWARD = "            optimizer.zero_grad()\n            loss.backward()\n"
TRAINED = "trained = [parameter for parameter in model.parameters() if parameter.requires_grad]"
FREEZE = "    if frozen:\n        model.encoder.requires_grad_(False)\n"
PUT_BACK = "    for name, parameter in model.named_parameters():\n        parameter.requires_grad_(before[name])\n"
TRAIN = mutants_of(
    "tune",
    "tuning-train",
    (
        "encoder_not_frozen",
        "forgets to freeze the encoder when asked",
        (FREEZE, ""),
        "With frozen=True",
        "visible",
    ),
    (
        "always_frozen",
        "freezes the encoder unasked",
        ("if frozen:", "if True:"),
        "With frozen=False",
        "visible",
        "experiment-reviews",
    ),
    (
        "all_frozen",
        "freezes the head, too, so that nothing is left to train",
        ("model.encoder.requires_grad_(False)", "model.requires_grad_(False)"),
        "empty parameter list",
        "visible",
    ),
    (
        "frozen_by_zero_gradients",
        "sets the encoder's gradients to zero, and weight decay still moves it",
        (
            "model.encoder.requires_grad_(False)",
            "for parameter in model.encoder.parameters():\n            parameter.register_hook(torch.zeros_like)",
        ),
        "let no gradient and no decay reach them",
        "visible",
    ),
    (
        "frozen_for_good",
        "does not put requires_grad back",
        (PUT_BACK, ""),
        "Put it back",
        "visible",
    ),
    (
        "everything_trainable_afterwards",
        "sets requires_grad of all parameters, also of those that had been held",
        (PUT_BACK, "    model.requires_grad_(True)\n"),
        "parameters that require gradients afterwards is wrong",
        "hidden",
    ),
    (
        "held_parameters_trained",
        "trains parameters that were not to be trained",
        (
            TRAINED,
            "model.requires_grad_(True)\n    model.encoder.requires_grad_(not frozen)\n    trained = [p for p in model.parameters() if p.requires_grad]",
        ),
        "encoder.table that was not to be trained before",
        "hidden",
    ),
    (
        "validation_trained_on",
        "trains on the validation batches, too",
        (
            "for batch in train_batches:",
            "for batch in [*train_batches, *validation_batches]:",
        ),
        "A validation text went through the model with gradients on",
        "visible",
        "experiment-reviews",
    ),
    (
        "gradients_not_cleared",
        "lets gradients add up from step to step",
        ("            optimizer.zero_grad()\n", ""),
        "call zero_grad() in each step",
        "visible",
    ),
    (
        "cleared_once_an_epoch",
        "lets gradients add up over an epoch",
        (
            "            optimizer.zero_grad()\n",
            "            if batch is train_batches[0]:\n                optimizer.zero_grad()\n",
        ),
        "call zero_grad() in each step",
        "visible",
    ),
    (
        "optimizer_of_each_epoch",
        "makes the optimizer anew in each epoch, and with it forgets the moments",
        (
            "    for _ in range(epochs):\n",
            "    for _ in range(epochs):\n        optimizer = torch.optim.AdamW(trained, lr=rate)\n",
        ),
        "all with one optimizer",
        "visible",
    ),
    (
        "cleared_before_the_step",
        "clears the gradients between backward and step",
        (BACKWARD, "            loss.backward()\n            optimizer.zero_grad()\n"),
        "the head has not changed",
        "visible",
        "tuning-best",
        "experiment-reviews",
    ),
    (
        "no_step",
        "never lets the optimizer step",
        ("            optimizer.step()\n", ""),
        "the head has not changed",
        "visible",
        "tuning-best",
        "experiment-reviews",
    ),
    (
        "loss_goes_up",
        "turns the sign of the loss",
        ("            loss.backward()", "            (-loss).backward()"),
        "The sign is wrong",
        "visible",
        "tuning-best",
        "experiment-reviews",
    ),
    (
        "trained_in_evaluation_mode",
        "never switches dropout on",
        ("        model.train()\n", "        model.eval()\n"),
        "Train in training mode",
        "visible",
    ),
    (
        "left_in_training_mode",
        "leaves the model in training mode",
        ("    model.eval()\n    return", "    model.train()\n    return"),
        "Leave the model in evaluation mode",
        "visible",
    ),
    (
        "one_batch_an_epoch",
        "trains on the first batch of each epoch",
        ("for batch in train_batches:", "for batch in train_batches[:1]:"),
        "Some training texts were never trained on",
        "visible",
        "experiment-reviews",
    ),
    (
        "one_epoch_too_few",
        "trains one epoch less",
        ("for _ in range(epochs):", "for _ in range(epochs - 1):"),
        "finetune must return a list of",
        "visible",
        "tuning-best",
    ),
    (
        "rate_typed_in_tuning",
        "uses a rate of its own",
        ("lr=rate", "lr=1e-2"),
        "The learning rate must be `rate`",
        "visible",
        "tuning-best",
    ),
    (
        "softmax_before_the_loss",
        "takes a softmax, and then the loss, which takes another",
        (
            "torch.nn.functional.cross_entropy(logits,",
            "torch.nn.functional.cross_entropy(logits.softmax(-1),",
        ),
        "the optimizer sees a wrong gradient",
        "visible",
    ),
    (
        "history_forgotten",
        "returns nothing",
        ("return accuracies", "return None"),
        "finetune must return a list of",
        "visible",
        "tuning-best",
    ),
)

KEEP = "best = copy.deepcopy(model.state_dict())"
BETTER = "if accuracies[-1] > max(accuracies[:-1], default=-1.0):"
KEPT = mutants_of(
    "tune",
    "tuning-best",
    (
        "best_weights_by_reference",
        "keeps what state_dict() gives, which goes on changing",
        (KEEP, "best = model.state_dict()"),
        "state_dict() gives no copy",
        "visible",
    ),
    (
        "best_weights_in_a_new_dict",
        "copies the dictionary, and not the tensors in it",
        (KEEP, "best = dict(model.state_dict())"),
        "state_dict() gives no copy",
        "visible",
    ),
    (
        "last_weights_kept",
        "does not go back",
        ("    model.load_state_dict(best)\n", ""),
        "the weights of one that is too late",
        "visible",
    ),
    (
        "first_weights_kept",
        "keeps the first epoch for good",
        (BETTER, "if best is None:"),
        "the weights of one that is too early",
        "visible",
        "experiment-reviews",
    ),
    (
        "worst_epoch_kept",
        "keeps the epoch with the lowest accuracy",
        (BETTER, "if accuracies[-1] < min(accuracies[:-1], default=2.0):"),
        "the weights of one that is too late",
        "visible",
        "experiment-reviews",
    ),
    (
        "best_by_training_accuracy",
        "chooses the epoch by the training batches",
        (
            "        " + BETTER,
            "        score = evaluate(model, train_batches)\n        lead = score >= getattr(optimizer, 'top', 0.0)\n"
            "        optimizer.top = max(score, getattr(optimizer, 'top', 0.0))\n        if lead:",
        ),
        "the weights of one that is too late",
        "visible",
    ),
    (
        "training_accuracy_returned",
        "evaluates on the training batches",
        ("evaluate(model, validation_batches)", "evaluate(model, train_batches)"),
        "Return what evaluate gives on the validation batches",
        "visible",
    ),
    (
        "buffers_forgotten",
        "goes back with the parameters, and leaves the buffers of the last epoch",
        (
            "    model.load_state_dict(best)\n",
            "    with torch.no_grad():\n        for name, parameter in model.named_parameters():\n            parameter.copy_(best[name])\n",
        ),
        "Buffers are part of the model",
        "visible",
    ),
    (
        "nothing_kept_at_accuracy_zero",
        "keeps an epoch only if something is right",
        (BETTER, "if accuracies[-1] > max(accuracies[:-1], default=0.0):"),
        "TypeError",
        "hidden",
    ),
)

START = "model = make_model(pretrained=True, seed=0)"
RUN = (
    "finetune(model, batches(train, 16), batches(validation, 96), epochs=4, rate=3e-3)"
)
EXPERIMENT = mutants_of(
    "experiment",
    "experiment-reviews",
    (
        "experiment_from_scratch",
        "trains an encoder with random weights",
        (
            f"{START}\n    {RUN}",
            "model = make_model(pretrained=False, seed=0)\n    train_batches = batches(train, 16)\n    finetune(model, train_batches, train_batches, epochs=40, rate=2e-3)",
        ),
        "It knows the adjectives of train, and no others",
        "visible",
    ),
    (
        "experiment_frozen",
        "trains only the head",
        (RUN, RUN.replace("epochs=4, rate=3e-3", "epochs=8, rate=2e-2, frozen=True")),
        "Is the encoder allowed to learn",
        "visible",
    ),
    (
        "experiment_untrained",
        "returns the classifier as it comes",
        (f"    {RUN}\n", ""),
        "Not even reviews with the adjectives of train",
        "visible",
    ),
    (
        "experiment_with_a_rate_too_high",
        "chooses a rate that ruins the weights",
        ("rate=3e-3", "rate=1.0"),
        "Not even reviews with the adjectives of train",
        "visible",
    ),
    (
        "experiment_with_a_rate_too_low",
        "chooses a rate that changes nothing",
        ("rate=3e-3", "rate=1e-7"),
        "nothing was learned",
        "visible",
    ),
    (
        "experiment_trains_on_validation",
        "trains on both lists",
        ("batches(train, 16)", "batches(train + validation, 16)"),
        "Reviews that are not in `train` were trained on",
        "visible",
    ),
    (
        "experiment_makes_reviews_of_its_own",
        "trains on more reviews than it is given",
        (
            "batches(train, 16)",
            "batches(train + reviews(400, 5, VALIDATION_ADJECTIVES), 16)",
        ),
        "Reviews that are not in `train` were trained on",
        "visible",
    ),
    (
        "experiment_knows_the_words_by_heart",
        "writes a table of the adjectives that it can see",
        """def experiment(make_model, train, validation):
    model = make_model(pretrained=True, seed=0)
    finetune(model, batches(train, 16), batches(train, 96), epochs=2, rate=2e-4)
    good = {PLACE[w] for table in (TRAINING_ADJECTIVES, VALIDATION_ADJECTIVES) for side in table.values() for w in side[0].split()}
    bad = {PLACE[w] for table in (TRAINING_ADJECTIVES, VALIDATION_ADJECTIVES) for side in table.values() for w in side[1].split()}
    class ByHeart(Classifier):
        def forward(self, input_ids, attention_mask):
            rows = []
            for row in input_ids.tolist():
                turned = [i for i, word in enumerate(row) if word == PLACE["not"]]
                votes = sum((w in good) - (w in bad) if i - 1 not in turned else (w in bad) - (w in good) for i, w in enumerate(row))
                rows.append([0.0, float(votes)])
            return torch.tensor(rows, device=input_ids.device)
    model.__class__ = ByHeart
    return model""",
        "It knows the adjectives of train, and no others",
        "hidden",
    ),
    (
        "batches_defined_anew",
        "defines batches a second time",
        (
            "    " + START,
            "    def batches(rows, size):\n        return list_of_batches(rows, size)\n\n    "
            + START,
        ),
        "batches is given by the notebook",
        "visible",
    ),
    (
        "experiment_returns_nothing",
        "forgets to return the classifier",
        ("    return model\n", "    pass\n"),
        "experiment must return a Classifier",
        "visible",
    ),
)

CHECK_OF_EXAMPLES = """def check_complete(implementation):
    def split(text):
        return [None if tag == "_" else tag for tag in text.split()]
    assert implementation(split("_ B-PER _ I-PER E-PER I-LOC O S-LOC _")) == ([("PER", 0, 3), ("LOC", 5, 6)], [3])
    assert implementation([]) == ([], [])
    assert implementation(split("B-A E-A B-A O I-A E-A S-B")) == ([("A", 0, 2), ("B", 6, 7)], [2, 4, 5])
    assert implementation(split("B-A E-B B-A B-A E-A")) == ([("A", 3, 5)], [0, 1, 2])
    for bad in ("o", "B-", "PER", "O-PER", "L-PER", ""):
        try:
            implementation([bad])
        except ValueError:
            continue
        assert False"""
CHECK_OF_TOO_MUCH = CHECK_OF_EXAMPLES.replace(
    """ValueError:
            continue""",
    """ValueError as error:
            assert bad in str(error), 'the error must say which tag it was'
            continue""",
)
CHECKS = wrong_checks(
    "complete",
    "implementation(['B-A', 'E-A'])",
    "changed arguments; counting; errors that are not raised; sizes; the formula; ties",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *COSINES,
    *MEANS,
    *SEPARATION,
    *MIX,
    *LEARNED,
    *POOL,
    *EXTRACT,
    *SCALE,
    *ALIGN,
    *GUESS,
    *BEST,
    *CUT,
    *NULL,
    *RESHAPED,
    *CHOOSE,
    *EVALUATE,
    *TRAIN,
    *KEPT,
    *EXPERIMENT,
    *CHECKS,
]

CHECK_BY_AN_OWN_ANSWER = """def check_complete(implementation):
    def own(tags):
        words = [t for t in tags if t is not None]
        found, used = [], set()
        for i in range(len(words)):
            if words[i][0] == "S":
                found.append((words[i][2:], i, i + 1))
                used.add(i)
            if words[i][0] == "B":
                kind, j = words[i][2:], i + 1
                while j < len(words) and words[j][0] == "I":
                    j += 1
                if j < len(words) and words[j] == "E-" + kind:
                    found.append((kind, i, j + 1))
                    used |= set(range(i, j + 1))
        return found, [i for i, w in enumerate(words) if w != "O" and i not in used]
    for n in range(150):
        tags = random.choices([None, "O", "B-A", "I-A", "E-A", "B-A-B", "I-A-B", "E-A-B", "S-a", "S-A", "E-a"], k=n % 40) if n else [*"O" * 998, "B-A", "E-A"]
        before = list(tags)
        assert implementation(tags) == own(before)
        assert tags == before
    for bad in ("X-A", "B-", "I", "E-", "O-A", "s-A", "L-A", ""):
        try:
            implementation(["B-A", bad, None])
        except ValueError:
            continue
        raise AssertionError('no tag')"""
RIGHT_ANSWERS = [
    RightAnswer(
        "senses_by_loops",
        "compares pair by pair, with itertools and numbers of Python",
        {
            "cosine": """def cosines(vectors, common=None):
    vectors = vectors - (torch.zeros_like(vectors[0]) if common is None else common)
    return torch.einsum("id,jd->ij", *[torch.nn.functional.normalize(vectors, dim=-1, eps=0)] * 2)""",
            "means": """def within_and_between(vectors, senses):
    import itertools
    import statistics
    table, within, between = cosines(vectors).tolist(), [], []
    for i, j in itertools.combinations(range(len(senses)), 2):
        (within if senses[i] == senses[j] else between).append(table[i][j])
    return statistics.fmean(within), statistics.fmean(between)""",
            "separate": """def separation(vectors, senses):
    table, uses = cosines(vectors.double()).tolist(), range(len(senses))
    means = []
    for sense in {*senses}:
        own = [share for use, share in zip(uses, of_uses(table, senses)) if senses[use] == sense]
        if len(own) > 1:
            means.append(sum(own) / len(own))
    return sum(means) / len(means)


def of_uses(table, senses):
    uses, shares = range(len(senses)), []
    for i in uses:
        points = []
        for j in uses:
            for k in uses:
                if j != i and senses[j] == senses[i] and senses[k] != senses[i]:
                    lead = table[i][j] - table[i][k]
                    points.append(0.5 if abs(lead) <= 1e-6 else float(lead > 0))
        shares.append(sum(points) / max(len(points), 1))
    return shares""",
        },
    ),
    RightAnswer(
        "separation_in_one_table",
        "compares all triples at once",
        {
            "separate": """def separation(vectors, senses):
    names = sorted(set(senses), key=str)
    label = torch.tensor([names.index(sense) for sense in senses], device=vectors.device)
    same = label[:, None] == label
    own = same & ~torch.eye(len(label), dtype=torch.bool, device=label.device)
    table = cosines(vectors.double())
    lead = table[:, :, None] - table[:, None, :]
    points = (lead.sign() * (lead.abs() > 1e-6) + 1) / 2
    counted = own[:, :, None] & ~same[:, None, :]
    total = counted.sum((1, 2))
    share = (points * counted).sum((1, 2)) / total.clamp(min=1)
    weight = same.double().sum(1).reciprocal() * (total > 0)
    return float((share * weight).sum() / weight.sum())"""
        },
    ),
    RightAnswer(
        "mix_by_einsum",
        "stacks the states, and keeps the scale first",
        {
            "mix": """class LayerMix(torch.nn.Module):
    def __init__(self, num_states):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
        self.register_parameter("weights", torch.nn.Parameter(torch.zeros(num_states)))

    def forward(self, states, left_out=None):
        if len(self.weights) != len(states):
            raise ValueError("one state for each weight")
        kept = sorted({*range(len(states))} - {*(left_out or [])})
        shares = torch.softmax(self.weights[kept], 0)
        return torch.einsum("l,lbtd->btd", shares, torch.stack([states[n] for n in kept])) * self.scale"""
        },
    ),
    RightAnswer(
        "pool_by_matrix",
        "multiplies by a row of shares; loops over special ids",
        {
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    keep = attention_mask.clone()
    for number in special_ids:
        keep &= input_ids.ne(number)
    shares = keep.to(hidden.dtype) / keep.sum(-1, keepdim=True).clamp(min=1)
    return torch.bmm(shares.unsqueeze(1), hidden).squeeze(1)"""
        },
    ),
    RightAnswer(
        "pool_text_by_text",
        "goes through the texts one by one",
        {
            "pool": """def mean_pool(hidden, input_ids, attention_mask, special_ids):
    rows = []
    for states, ids, mask in zip(hidden, input_ids, attention_mask):
        kept = [state for state, i, real in zip(states, ids.tolist(), mask.tolist()) if real and i not in special_ids]
        rows.append(torch.stack(kept).mean(0) if kept else torch.zeros_like(states[0]))
    return torch.stack(rows)"""
        },
    ),
    RightAnswer(
        "features_in_inference_mode",
        "uses inference mode, try and finally, and scales with var",
        {
            "extract": """@torch.inference_mode()
def text_features(encoder, batches, special_ids):
    mode = encoder.training
    encoder.train(False)
    try:
        found = []
        for batch in batches:
            states = encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            found.extend(mean_pool(states[-1], batch["input_ids"], batch["attention_mask"], special_ids))
    finally:
        encoder.train(mode)
    return torch.stack(found)""",
            "scale": """def standardise(train, other):
    centre = train.mean(0, keepdim=True)
    width = ((train - centre) ** 2).mean(0, keepdim=True).sqrt()
    width[:, (train == train[0]).all(dim=0)] = 1
    return (train - centre) / width, (other - centre) / width""",
        },
    ),
    RightAnswer(
        "labels_by_a_flat_list",
        "marks the first pieces in a flat list, and cuts before it adds",
        {
            "align": """def align_labels(pieces, labels, cls_id, sep_id, max_length):
    flat = [(piece, label if number == 0 else IGNORE) for word, label in zip(pieces, labels) for number, piece in enumerate(word)]
    flat = [(cls_id, IGNORE)] + flat[: max_length - 2] + [(sep_id, IGNORE)]
    ids, marks = map(list, zip(*flat))
    return ids, marks""",
            "guess": """def word_guesses(logits, token_labels, may_follow=None):
    truth = torch.tensor(token_labels, device=logits.device)
    kept = truth != -100
    barred = torch.zeros(1, dtype=torch.bool, device=logits.device)
    best = []
    for scores in logits[kept]:
        best.append(int(scores.masked_fill(barred, float("-inf")).max(dim=0).indices))
        barred = barred if may_follow is None else may_follow[best[-1]].logical_not()
    return best, int((truth.new_tensor(best) == truth[kept]).sum())""",
        },
    ),
    RightAnswer(
        "span_by_a_table",
        "looks at all pairs in one table",
        {
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    inside = torch.tensor([place is not None for place in offsets], device=start_logits.device)
    pairs = (inside[:, None] & inside).triu().tril(max_tokens - 1)
    table = (start_logits[:, None] + end_logits).masked_fill(~pairs, float("-inf"))
    first, last = divmod(table.argmax().item(), len(offsets))
    return first, last, table[first, last].item()"""
        },
    ),
    RightAnswer(
        "span_by_a_sorted_list",
        "lists all pairs and takes the first; answers by text",
        {
            "span": """def best_span(start_logits, end_logits, offsets, max_tokens):
    start, end = start_logits.tolist(), end_logits.tolist()
    context = [i for i, place in enumerate(offsets) if place]
    pairs = [(i, j, start[i] + end[j]) for i in context for j in context if 0 <= j - i < max_tokens]
    return sorted(pairs, key=lambda pair: -pair[2])[0]""",
            "cut": """def answer(context, start_logits, end_logits, offsets, max_tokens, threshold=None):
    i, j, best = best_span(start_logits, end_logits, offsets, max_tokens)
    nothing = float(start_logits[0]) + float(end_logits[0])
    begin, end = offsets[i][0], offsets[j][-1]
    return context[begin:end] if threshold is None or best - nothing > threshold else None""",
        },
    ),
    RightAnswer(
        "choices_one_by_one",
        "asks for each choice in a call of its own",
        {
            "reshape": """def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    columns = []
    for c in range(input_ids.size(1)):
        has = counts > c
        column = torch.full((len(counts),), float("-inf"), device=counts.device)
        if has.any():
            found = score(input_ids[has, c], attention_mask[has, c], token_type_ids[has, c])
            column = column.to(found.dtype).masked_scatter(has, found)
        columns.append(column.to(columns[0].dtype) if columns else column)
    return torch.stack(columns, dim=1)""",
            "choose": """def choose(logits, least=0.0):
    probabilities = (logits - logits.logsumexp(-1, keepdim=True)).exp()
    best = logits.max(dim=-1)[1]
    return probabilities, best.masked_fill(probabilities.max(dim=-1)[0] < least, -1)""",
        },
    ),
    RightAnswer(
        "choices_flattened",
        "flattens, and lays back with unflatten",
        {
            "reshape": """def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    B, C, _ = input_ids.shape
    places = torch.cat([b * C + torch.arange(n, device=counts.device) for b, n in enumerate(counts.tolist())])
    scores = score(*[x.flatten(0, 1)[places] for x in (input_ids, attention_mask, token_type_ids)])
    return scores.new_full((B * C,), -math.inf).index_copy(0, places, scores.flatten()).unflatten(0, (B, C))"""
        },
    ),
    RightAnswer(
        "tuned_in_other_words",
        "gives the optimizer all parameters, clears at the end, keeps the later of equal epochs",
        {
            "measure": """@torch.no_grad()
def evaluate(model, batches):
    mode, hits = model.training, []
    model.train(False)
    for batch in batches:
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        hits += (logits.max(-1).indices == batch["labels"]).tolist()
    model.train(mode)
    return sum(hits) / len(hits)""",
            "tune": """def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):
    held = [p for p in model.encoder.parameters() if p.requires_grad] if frozen else []
    for parameter in held:
        parameter.requires_grad = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    optimizer.zero_grad()
    history, top, kept = [], None, {}
    for epoch in range(epochs):
        for batch in train_batches:
            model.train()
            output = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            torch.nn.CrossEntropyLoss()(output, batch["labels"]).backward()
            optimizer.step()
            optimizer.zero_grad()
        history.append(evaluate(model, validation_batches))
        if top is None or history[-1] >= top:
            top = history[-1]
            kept = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    for parameter in held:
        parameter.requires_grad = True
    return history if model.eval() is not None else None""",
        },
    ),
    RightAnswer(
        "two_rates_tried",
        "tries two rates, and keeps the classifier with the better validation accuracy",
        {
            "experiment": """def experiment(make_model, train, validation):
    found = []
    for rate in (1e-3, 3e-3):
        model = make_model(seed=1)
        scores = finetune(model, batches(train, 16), batches(validation, 32), 10, rate)
        found.append((max(scores), rate, model))
    return max(found, key=lambda entry: entry[:2])[2]"""
        },
    ),
    RightAnswer(
        "head_first_then_all",
        "trains the head, then everything, in larger batches",
        {
            "experiment": """def experiment(make_model, train, validation):
    model = make_model(True, 5)
    judges = batches(validation, len(validation))
    finetune(model, batches(train, 8), judges, epochs=2, rate=1e-2, frozen=True)
    finetune(model, batches(train, 24), judges, epochs=20, rate=2e-3)
    return model"""
        },
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with complete names of its own on what is drawn",
        {"own-check": CHECK_BY_AN_OWN_ANSWER},
    ),
]

#: It gives a model a class of its own. That class stays with the answers; the test's model goes on as a Classifier.
ACROSS = {
    "experiment_knows_the_words_by_heart": {
        "experiment-reviews": "It knows the adjectives of train, and no others"
    }
}
