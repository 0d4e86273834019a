"""Wrong answers to the BERT assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
bert`` says which get full marks.
"""

from fresh import Fresh, one_by_one

from course_tools.grading.assignments.mutants import RightAnswer

SEGMENTS = "segments = [list(first)] if second is None else [list(first), list(second)]"
TOO_LONG = "while sum(map(len, segments)) + 1 + len(segments) + extra > max_length:"
FILLING = "        filling = longest - len(ids)\n"
NORMED = "return self.dropout(self.norm(hidden))"
INFERRED = "token_type_ids = torch.zeros_like(input_ids)"
MASKED = 'scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))'
MIXED = "context = self.dropout(weights) @ value"
GELU = "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))"
ATTENDED = "hidden = self.attention_norm(hidden + self.dropout(self.attention_output(context)))"
LAYER = "return self.output_norm(hidden + self.dropout(transformed))"
LAYERS = "        for layer in self.layers[:depth]:\n"
NETWORK = "D * inner + inner + inner * D + D"
ROWS = "config.vocab_size + config.max_position_embeddings + config.type_vocab_size"
NUMBER = '_, number, part = owner.split(".", 2)'
SHAPE = "if value.shape != parameter.shape:"
COPY = "parameter.copy_(found[name])"
LEFT_OVER = "return sorted(name for name in tensors if name not in used)"
PREFIX = 'plain = name.removeprefix("bert.")'
STORED = '        stored[plain.replace("LayerNorm.beta", "LayerNorm.bias")] = name\n'

GRADED = {  # the graded cell that should refuse a mistake in a cell
    "pair": "input-truncate",
    "batch": "input-batch",
    "embed": "embeddings-sum",
    "self-attention": "attention-values",
    "activation": "layer-gelu",
    "block": "layer-wiring",
    "pool": "model-pooler",
    "whole": "model-wiring",
    "count": "sizes-count",
    "names": "loading-names",
    "load": "loading-places",
}
wrong = one_by_one(GRADED)


MUTANTS = [
    # Part 1
    wrong(
        "pair_three_special_tokens_always",
        "makes room for two [SEP]s where there is one segment",
        "cut-off",
        "pair",
        TOO_LONG,
        "while sum(map(len, segments)) + 3 > max_length:",
    ),
    wrong(
        "pair_one_segment_is_never_cut",
        "cuts only where there are two segments",
        "cut-off",
        "pair",
        TOO_LONG,
        "while len(segments) > 1 and sum(map(len, segments)) + 3 > max_length:",
    ),
    wrong(
        "pair_empty_second_is_none",
        "takes an empty second segment for none",
        "legal input",
        "pair",
        "[list(first)] if second is None else",
        "[list(first)] if not second else",
        "input-pair",
    ),
    wrong(
        "pair_segments_from_the_first_sep",
        "looks for the first [SEP] id to know where the second segment begins",
        "legal input",
        "pair",
        "    return input_ids, token_type_ids",
        "    end = input_ids.index(sep_id) + 1\n"
        "    return input_ids, [0] * end + [1] * (len(input_ids) - end)",
        "input-pair",
    ),
    wrong(
        "pair_never_empties_a_segment",
        "leaves each segment its last token",
        "cut-off",
        "pair",
        TOO_LONG,
        TOO_LONG.replace(":", " and max(map(len, segments)) > 1:"),
    ),
    wrong(
        "pair_ids_of_bert_base",
        "writes 102 whatever sep_id is",
        "hard-wired",
        "pair",
        "input_ids += [*segment, sep_id]",
        "input_ids += [*segment, 102]",
        "input-pair",
    ),
    wrong(
        "pair_at_most_512",
        "never makes a sequence longer than 512",
        "hard-wired",
        "pair",
        TOO_LONG,
        TOO_LONG.replace("max_length", "min(max_length, 512)"),
    ),
    wrong(
        "batch_segment_ids_filled_with_pad",
        "fills segment ids with pad_id",
        "hard-wired",
        "batch",
        "[*types, *[0] * filling]",
        "[*types, *[pad_id] * filling]",
    ),
    wrong(
        "batch_mask_from_the_ids",
        "takes every token with the id pad_id for filling",
        "legal input",
        "batch",
        "[True] * len(ids) + [False] * filling",
        "[i != pad_id for i in ids] + [False] * filling",
    ),
    wrong(
        "batch_fills_the_caller_s_lists",
        "extends the lists that it is given",
        "state",
        "batch",
        FILLING,
        FILLING
        + "        n = len(ids)\n        ids += [pad_id] * filling\n        types += [0] * filling\n",
    )._replace(
        changes={
            "batch": (
                '        batch["input_ids"].append([*ids, *[pad_id] * filling])\n'
                '        batch["token_type_ids"].append([*types, *[0] * filling])\n'
                '        batch["attention_mask"].append([True] * len(ids) + [False] * filling)\n',
                '        batch["attention_mask"].append([True] * len(ids) + [False] * filling)\n'
                "        ids += [pad_id] * filling\n        types += [0] * filling\n"
                '        batch["input_ids"].append(ids)\n'
                '        batch["token_type_ids"].append(types)\n',
            )
        }
    ),
    wrong(
        "batch_at_most_512",
        "cuts what is longer than 512",
        "hard-wired",
        "batch",
        "return {name: torch.tensor(rows) for name, rows in batch.items()}",
        "return {name: torch.tensor(rows)[:, :512] for name, rows in batch.items()}",
    ),
    wrong(
        "batch_of_ids_of_16_bits",
        "goes through int16 as if no vocabulary had more than 32,767 entries",
        "cut-off",
        "batch",
        "return {name: torch.tensor(rows) for name, rows in batch.items()}",
        'batch["input_ids"] = torch.tensor(batch["input_ids"]).short().tolist()\n'
        "    return {name: torch.tensor(rows) for name, rows in batch.items()}",
    ),
    # Part 2
    wrong(
        "embeddings_word_0_learns_nothing",
        "takes word 0 for filling, whose row gets no gradient",
        "gradient",
        "embed",
        "self.word(input_ids)",
        "torch.nn.functional.embedding(input_ids, self.word.weight, padding_idx=0)",
    ),
    wrong(
        "embeddings_two_segments_at_most",
        "takes every segment but 0 for segment 1",
        "hard-wired",
        "embed",
        "self.token_type(token_type_ids)",
        "self.token_type((token_type_ids > 0).long())",
    ),
    wrong(
        "embeddings_positions_are_fixed",
        "reads positions without gradient, as sines would be",
        "gradient",
        "embed",
        "self.position(positions)",
        "self.position(positions).detach()",
    ),
    wrong(
        "embeddings_segment_0_is_a_constant",
        "adds segment 0 without gradient where no segment ids are given",
        "gradient",
        "embed",
        INFERRED,
        "return self.dropout(self.norm(self.word(input_ids) + self.position.weight"
        "[: input_ids.shape[1]] + self.token_type.weight[0].detach()))",
    ),
    wrong(
        "embeddings_one_draw_for_the_batch",
        "drops out the same features in all sequences of a batch",
        "chance",
        "embed",
        NORMED,
        "return self.norm(hidden) * self.dropout(torch.ones_like(hidden[:1]))",
        "embeddings-norm",
    ),
    wrong(
        "embeddings_whole_positions_drop_out",
        "drops out all features of a position together",
        "chance",
        "embed",
        NORMED,
        "return self.norm(hidden) * self.dropout(torch.ones_like(hidden[..., :1]))",
        "embeddings-norm",
    ),
    wrong(
        "embeddings_same_features_at_all_positions",
        "drops out the same features at all positions",
        "chance",
        "embed",
        NORMED,
        "return self.norm(hidden) * self.dropout(torch.ones_like(hidden[:, :1]))",
        "embeddings-norm",
    ),
    wrong(
        "embeddings_keep_what_they_should_drop",
        "takes the rate for the share that stays, the same at 0.5",
        "hard-wired",
        "embed",
        NORMED,
        "return torch.nn.functional.dropout(self.norm(hidden), 1 - self.dropout.p, self.training)",
        "embeddings-norm",
    ),
    wrong(
        "embeddings_toss_a_coin",
        "drops out half of the features whatever the rate is",
        "hard-wired",
        "embed",
        NORMED,
        "return torch.nn.functional.dropout(self.norm(hidden), 0.5, "
        "self.training and self.dropout.p > 0)",
        "embeddings-norm",
    ),
    wrong(
        "embeddings_dropout_with_a_seed",
        "sets torch's seed before each dropout",
        "state",
        "embed",
        NORMED,
        "torch.manual_seed(0)\n        " + NORMED,
        "embeddings-norm",
    ),
    # Part 3
    wrong(
        "attention_minus_ten_thousand",
        "takes 10000 from masked scores, as the first program did",
        "numerics",
        "self-attention",
        MASKED,
        "scores - 1e4 * (~attention_mask[:, None, None, :]).to(scores.dtype)",
        "attention-mask",
    ),
    wrong(
        "attention_filled_with_minus_ten_thousand",
        "sets masked scores to -10000, which is not below every score",
        "numerics",
        "self-attention",
        MASKED,
        "scores.masked_fill(~attention_mask[:, None, None, :], -1e4)",
        "attention-mask",
    ),
    wrong(
        "attention_in_single_precision",
        "takes the softmax in float32, whatever the dtype",
        "numerics",
        "self-attention",
        "weights = scores.softmax(dim=-1)",
        "weights = scores.float().softmax(dim=-1).to(scores.dtype)",
    ),
    wrong(
        "attention_exponentials_hidden_by_where",
        "hides an exponential that overflowed at a masked place; its gradient is nan",
        "gradient",
        "self-attention",
        f"            scores = {MASKED}\n        weights = scores.softmax(dim=-1)",
        f"            largest = {MASKED}.amax(-1, keepdim=True)\n"
        "            e = (scores - largest).exp()\n"
        "            e = torch.where(attention_mask[:, None, None, :], e, 0.0)\n"
        "            weights = e / e.sum(-1, keepdim=True)\n"
        "        else:\n            weights = scores.softmax(dim=-1)",
        "attention-mask",
    ),
    wrong(
        "attention_mixes_without_gradient",
        "mixes values by weights without gradient",
        "gradient",
        "self-attention",
        MIXED,
        "context = self.dropout(weights.detach()) @ value",
    ),
    wrong(
        "attention_one_draw_for_all_heads",
        "drops out the same weights in all heads",
        "chance",
        "self-attention",
        MIXED,
        "context = (weights * self.dropout(torch.ones_like(weights[:, :1]))) @ value",
        "attention-dropout",
    ),
    wrong(
        "attention_one_draw_for_all_queries",
        "drops out keys: the same for all queries",
        "chance",
        "self-attention",
        MIXED,
        "context = (weights * self.dropout(torch.ones_like(weights[:, :, :1]))) @ value",
        "attention-dropout",
    ),
    wrong(
        "attention_one_draw_for_the_batch",
        "drops out the same weights in all sequences",
        "chance",
        "self-attention",
        MIXED,
        "context = (weights * self.dropout(torch.ones_like(weights[:1]))) @ value",
        "attention-dropout",
    ),
    wrong(
        "attention_keeps_what_it_should_drop",
        "takes the rate for the share that stays, the same at 0.5",
        "hard-wired",
        "self-attention",
        MIXED,
        "context = torch.nn.functional.dropout(weights, 1 - self.dropout.p, self.training) @ value",
        "attention-dropout",
    ),
    wrong(
        "attention_drops_only_what_is_seen",
        "never drops out the weight of a position for itself",
        "chance",
        "self-attention",
        MIXED,
        "itself = torch.eye(T, dtype=torch.bool, device=hidden.device)\n"
        "        context = torch.where(itself, weights, self.dropout(weights)) @ value",
        "attention-dropout",
    ),
    wrong(
        "attention_drops_out_in_place",
        "drops out in place, so that the weights returned have lost some too",
        "state",
        "self-attention",
        MIXED,
        "context = torch.nn.functional.dropout(weights, self.dropout.p, self.training, "
        "inplace=True) @ value",
        "attention-dropout",
    ),
    wrong(
        "attention_turns_the_mask_round",
        "negates the caller's mask in place",
        "state",
        "self-attention",
        MASKED,
        'scores.masked_fill(attention_mask.logical_not_()[:, None, None, :], float("-inf"))',
        "attention-mask",
    ),
    wrong(
        "attention_mask_as_a_length",
        "takes the mask for a length, as if filling came last always",
        "hard-wired",
        "self-attention",
        MASKED,
        "scores.masked_fill(torch.arange(T, device=hidden.device) >= "
        'attention_mask.sum(-1)[:, None, None, None], float("-inf"))',
        "attention-mask",
    ),
    # Part 4
    wrong(
        "gelu_root_of_four_digits",
        "writes 1.4142 for the root of 2",
        "hard-wired",
        "activation",
        "math.sqrt(2)",
        "1.4142",
    ),
    wrong(
        "gelu_polynomial_for_erf",
        "approximates erf by a polynomial, right to 1.5e-7",
        "numerics",
        "activation",
        GELU,
        "(lambda t, e: 0.5 * x * (1 + torch.sign(x) * (1 - e * t * (0.254829592 + t * "
        "(-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))))))"
        "(1 / (1 + 0.3275911 * x.abs() / math.sqrt(2)), torch.exp(-x * x / 2))",
    ),
    wrong(
        "gelu_is_relu_beyond_5",
        "gives x above 5 and 0 below -5",
        "cut-off",
        "activation",
        GELU,
        f"torch.where(x.abs() > 5, x.clamp(min=0), {GELU})",
    ),
    wrong(
        "gelu_in_single_precision",
        "computes in float32 and casts back",
        "numerics",
        "activation",
        GELU,
        "(0.5 * x.float() * (1 + torch.erf(x.float() / math.sqrt(2)))).to(x.dtype)",
    ),
    wrong(
        "gelu_probability_is_a_constant",
        "takes the probability for a constant of the gradient",
        "gradient",
        "activation",
        GELU,
        "0.5 * x * (1 + torch.erf(x / math.sqrt(2)).detach())",
    ),
    wrong(
        "gelu_in_place",
        "overwrites the numbers that it is given",
        "state",
        "activation",
        GELU,
        "x.mul_(0.5 * (1 + torch.erf(x / math.sqrt(2))))",
    ),
    wrong(
        "layer_adds_in_place",
        "adds to the caller's tensor",
        "state",
        "block",
        ATTENDED,
        "hidden += self.dropout(self.attention_output(context))\n"
        "        hidden = self.attention_norm(hidden)",
    ),
    wrong(
        "layer_residual_without_gradient",
        "adds the input without its gradient",
        "gradient",
        "block",
        ATTENDED,
        ATTENDED.replace("(hidden +", "(hidden.detach() +"),
    ),
    wrong(
        "layer_second_residual_without_gradient",
        "adds what went into the network without its gradient",
        "gradient",
        "block",
        LAYER,
        LAYER.replace("(hidden +", "(hidden.detach() +"),
    ),
    wrong(
        "layer_whole_positions_drop_out",
        "drops out what attention says at a position, or nothing of it",
        "chance",
        "block",
        ATTENDED,
        "attended = self.attention_output(context)\n"
        "        attended = attended * self.dropout(torch.ones_like(attended[..., :1]))\n"
        "        hidden = self.attention_norm(hidden + attended)",
        "layer-dropout",
    ),
    wrong(
        "layer_one_draw_for_the_batch",
        "drops out the same features of the network in all sequences",
        "chance",
        "block",
        LAYER,
        "return self.output_norm("
        "hidden + transformed * self.dropout(torch.ones_like(transformed[:1])))",
        "layer-dropout",
    ),
    wrong(
        "layer_one_draw_for_both_sums",
        "drops out the same features after attention and after the network",
        "chance",
        "block",
        "        context, _ = self.attention(hidden, attention_mask, bias)\n        "
        + ATTENDED
        + "\n        transformed = self.output(gelu(self.intermediate(hidden)))\n        "
        + LAYER,
        "        context, _ = self.attention(hidden, attention_mask, bias)\n"
        "        kept = self.dropout(torch.ones_like(hidden))\n"
        "        hidden = self.attention_norm(hidden + kept * self.attention_output(context))\n"
        "        transformed = self.output(gelu(self.intermediate(hidden)))\n"
        "        return self.output_norm(hidden + kept * transformed)",
        "layer-dropout",
    ),
    wrong(
        "layer_keeps_what_it_should_drop",
        "takes the rate for the share that stays, the same at 0.5",
        "hard-wired",
        "block",
        LAYER,
        "return self.output_norm(hidden + torch.nn.functional.dropout("
        "transformed, 1 - self.dropout.p, self.training))",
        "layer-dropout",
    ),
    # Part 5
    wrong(
        "pooler_without_gradient",
        "reads [CLS] without gradient, so that what stands on it trains no layer",
        "gradient",
        "pool",
        "hidden[:, 0]",
        "hidden[:, 0].detach()",
    ),
    wrong(
        "pooler_tanh_of_clipped_numbers",
        "clips at 4 before tanh",
        "cut-off",
        "pool",
        "torch.tanh(self.dense(hidden[:, 0]))",
        "torch.tanh(self.dense(hidden[:, 0]).clamp(-4, 4))",
    ),
    wrong(
        "model_without_mask_hides_id_0",
        "takes id 0 for filling where no mask is given",
        "hard-wired",
        "whole",
        LAYERS,
        "        if attention_mask is None:\n            attention_mask = input_ids != 0\n"
        + LAYERS,
    ),
    wrong(
        "model_twelve_layers_at_most",
        "goes through the first twelve layers",
        "hard-wired",
        "whole",
        "in self.layers[:depth]:",
        "in self.layers[:depth][:12]:",
    ),
    wrong(
        "model_embeddings_are_frozen",
        "cuts the gradient between embeddings and layers",
        "gradient",
        "whole",
        LAYERS,
        "        hidden = hidden.detach()\n" + LAYERS,
    ),
    wrong(
        "model_switches_dropout_off",
        "calls eval() on itself, so that there is no dropout in training",
        "state",
        "whole",
        LAYERS,
        "        self.eval()\n" + LAYERS,
    ),
    wrong(
        "model_without_segment_ids_guesses_them",
        "counts id 102 where no segment ids are given",
        "hard-wired",
        "whole",
        "hidden = self.embeddings(input_ids, token_type_ids)",
        "if token_type_ids is None:\n"
        "            seps = (input_ids == 102).long()\n"
        "            token_type_ids = (seps.cumsum(1) - seps).clamp(max=1)\n"
        "        hidden = self.embeddings(input_ids, token_type_ids)",
    ),
    wrong(
        "model_pools_the_first_real_position",
        "pools where the mask is True for the first time",
        "legal input",
        "whole",
        "self.pooler(hidden)",
        "self.pooler(hidden if attention_mask is None else hidden[torch.arange(len(hidden)), "
        "attention_mask.int().argmax(1)].unsqueeze(1))",
    ),
    # Part 6
    wrong(
        "count_network_four_times_as_wide",
        "takes I for 4 D",
        "hard-wired",
        "count",
        NETWORK,
        "8 * D * D + 5 * D",
    ),
    wrong(
        "count_two_segments",
        "takes the segment table to have two rows",
        "hard-wired",
        "count",
        ROWS,
        ROWS.replace("config.type_vocab_size", "2"),
    ),
    wrong(
        "count_512_positions",
        "takes the position table to have 512 rows",
        "hard-wired",
        "count",
        ROWS,
        ROWS.replace("config.max_position_embeddings", "512"),
    ),
    wrong(
        "count_heads_of_64",
        "counts the matrices of attention as heads of 64 features",
        "hard-wired",
        "count",
        "4 * (D * D + D)",
        "4 * (D * config.num_attention_heads * 64 + D)",
    ),
    # Part 7
    wrong(
        "names_one_digit",
        "reads one digit of the number of a layer",
        "hard-wired",
        "names",
        NUMBER,
        "number, part = owner[7], owner[9:]",
    ),
    wrong(
        "load_prefix_of_the_first_name",
        "decides by the first name of the file whether all have a prefix",
        "legal input",
        "load",
        PREFIX,
        'prefixed = next(iter(tensors)).startswith("bert.")\n'
        '        plain = name.removeprefix("bert.") if prefixed else name',
    ),
    wrong(
        "load_names_without_prefix",
        "gives back the names that are left without the file's prefix",
        "legal input",
        "load",
        LEFT_OVER,
        'return sorted(name.removeprefix("bert.") for name in tensors if name not in used)',
    ),
    wrong(
        "load_only_heads_are_left_over",
        "gives back names of heads alone",
        "hard-wired",
        "load",
        LEFT_OVER,
        'return sorted(n for n in tensors if n not in used and n.startswith("cls."))',
    ),
    wrong(
        "load_names_in_the_order_of_the_file",
        "does not sort the names that are left",
        "legal input",
        "load",
        LEFT_OVER,
        "return [name for name in tensors if name not in used]",
    ),
    wrong(
        "load_names_without_regard_to_case",
        "sorts names as a dictionary does, whatever their case",
        "cut-off",
        "load",
        LEFT_OVER,
        "return sorted((name for name in tensors if name not in used), key=str.lower)",
    ),
    wrong(
        "load_shares_the_file_s_tensors",
        "puts the file's own tensors into the model, so that training changes them",
        "state",
        "load",
        COPY,
        "parameter.data = found[name].to(parameter)",
    ),
    wrong(
        "load_new_parameters",
        "puts new parameters into the modules; an optimizer keeps the old ones",
        "state",
        "load",
        COPY,
        'owner, _, kind = name.rpartition(".")\n'
        "            new = torch.nn.Parameter(found[name].to(parameter).clone())\n"
        "            setattr(model.get_submodule(owner), kind, new)",
    ),
    wrong(
        "load_through_single_precision",
        "casts to float32 before it copies",
        "numerics",
        "load",
        COPY,
        "parameter.copy_(found[name].float())",
    ),
    wrong(
        "load_large_tables_in_half_precision",
        "copies large tables by way of bfloat16 to save memory",
        "numerics",
        "load",
        COPY,
        "parameter.copy_(found[name].bfloat16() if found[name].numel() > 4096 else found[name])",
    ),
    wrong(
        "load_as_many_numbers",
        "compares how many numbers there are, not the shape",
        "legal input",
        "load",
        "        if value.shape != parameter.shape:\n",
        "        value = value.reshape(parameter.shape) if value.numel() == parameter.numel() "
        "else value\n        if value.shape != parameter.shape:\n",
        "loading-refused",
    ),
    wrong(
        "load_what_can_be_broadcast",
        "takes every shape that can be copied, such as one row for a table",
        "legal input",
        "load",
        SHAPE,
        "try:\n            value = value.expand_as(parameter)\n"
        "        except RuntimeError:\n            pass\n        " + SHAPE,
        "loading-refused",
    ),
    wrong(
        "load_first_size_alone",
        "compares the first size alone",
        "cut-off",
        "load",
        SHAPE,
        "if value.shape[:1] != parameter.shape[:1]:",
        "loading-refused",
    ),
    wrong(
        "load_takes_tensors_out",
        "takes tensors out of the caller's dict",
        "state",
        "load",
        "        found[name] = value\n",
        "        found[name] = value\n    for name in found:\n        del tensors[stored[published_name(name)]]\n",
    )._replace(
        changes={
            "load": (
                f"    {LEFT_OVER}",
                "    for name in used:\n        tensors.pop(name)\n    return sorted(tensors)",
            )
        }
    ),
    wrong(
        "load_ends_in_eval",
        "switches the model to eval",
        "state",
        "load",
        f"    {LEFT_OVER}",
        f"    model.eval()\n    {LEFT_OVER}",
    ),
    wrong(
        "load_freezes",
        "leaves parameters that need no gradient",
        "state",
        "load",
        COPY,
        "parameter.requires_grad_(False).copy_(found[name])",
    ),
    wrong(
        "load_by_the_end_of_a_name",
        "takes the first name of the file that ends in the one that is needed",
        "legal input",
        "load",
        STORED,
        STORED
        + "    ends = {}\n    for name in map(published_name, dict(model.named_parameters())):\n"
        "        for plain in stored:\n            if plain.endswith(name):\n"
        "                ends.setdefault(name, stored[plain])\n    stored = ends\n",
    ),
    wrong(
        "load_one_missing_tensor_may_be_a_bias",
        "sets a bias to 0 that the file does not have",
        "legal input",
        "load",
        "        if wanted not in stored:\n",
        '        if wanted not in stored and wanted.startswith("pooler."):\n'
        "            found[name] = torch.zeros_like(parameter)\n            continue\n"
        "        if wanted not in stored:\n",
        "loading-refused",
    )._replace(
        changes={
            "load": (
                "    for name, parameter in model.named_parameters():\n"
                "        wanted = published_name(name)\n",
                "    for name, parameter in model.named_parameters():\n"
                "        wanted = published_name(name)\n"
                '        if wanted not in stored and wanted.startswith("pooler."):\n'
                "            stored[wanted], found[name] = None, parameter.clone()\n"
                "            continue\n",
            )
        },
        name="load_without_a_pooler",
        mistake="leaves the pooler random where the file has none",
    ),
    wrong(
        "load_beta_of_anything",
        "calls every gamma weight and every beta bias, in the names that are left too",
        "legal input",
        "load",
        LEFT_OVER,
        'return sorted(name.replace("LayerNorm.gamma", "LayerNorm.weight").replace('
        '"LayerNorm.beta", "LayerNorm.bias") for name in tensors if name not in used)',
    ),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "lengths_computed_and_pad_sequence",
        "computes how much of each segment stays; fills with pad_sequence",
        {
            "pair": (
                f"    {TOO_LONG}\n        longest = max(map(len, segments))\n"
                "        [segment for segment in segments if len(segment) == longest][-1].pop()\n",
                "    room = max_length - 1 - len(segments) - extra\n"
                "    if len(segments) == 1:\n        segments[0] = segments[0][:room]\n"
                "    elif sum(map(len, segments)) > room:\n"
                "        a, b = map(len, segments)\n"
                "        a, b = (room - b, b) if b <= room // 2 else (\n"
                "            (a, room - a) if a <= (room + 1) // 2 else ((room + 1) // 2, room // 2)\n"
                "        )\n"
                "        segments = [segments[0][:a], segments[1][:b]]\n",
            ),
            "batch": (
                "return {name: torch.tensor(rows) for name, rows in batch.items()}",
                "pad = torch.nn.utils.rnn.pad_sequence\n"
                "    ids = [torch.tensor(list(i)) for i, _ in inputs]\n"
                "    types = [torch.tensor(list(t)) for _, t in inputs]\n"
                "    real = [torch.ones_like(i, dtype=torch.bool) for i in ids]\n"
                '    filled = {"input_ids": pad(ids, True, pad_id), "token_type_ids": pad(types, True),\n'
                '              "attention_mask": pad(real, True)}\n'
                '    more = -filled["input_ids"].size(1) % multiple\n'
                '    values = {"input_ids": pad_id, "token_type_ids": 0, "attention_mask": False}\n'
                "    return {name: torch.nn.functional.pad(rows, (0, more), value=values[name])\n"
                "            for name, rows in filled.items()}",
            ),
        },
    ),
    RightAnswer(
        "slices_einsum_and_erfc",
        "slices the position table, mixes by einsum, takes erfc",
        {
            "embed": ("self.position(positions)", "self.position.weight[positions]"),
            "self-attention": (
                MIXED,
                'context = torch.einsum("bhts,bhsn->bhtn", self.dropout(weights), value)',
            ),
            "activation": (GELU, "x * torch.erfc(-x / 2**0.5) / 2"),
            "pool": (
                "torch.tanh(self.dense(hidden[:, 0]))",
                "self.dense(hidden.select(1, 0)).tanh()",
            ),
        },
    ),
    RightAnswer(
        "dropout_by_function_with_the_config_s_rate",
        "calls the function with the module's rate and mode; masks with torch.where",
        {
            "embed": (
                NORMED,
                "return torch.nn.functional.dropout(self.norm(hidden), self.dropout.p, self.training)",
            ),
            "self-attention": (
                MASKED,
                'torch.where(attention_mask[:, None, None, :], scores, float("-inf"))',
            ),
            "count": (NETWORK, "inner * (2 * D + 1) + D"),
        },
    ),
    RightAnswer(
        "names_by_a_table_of_ends_and_load_state_dict",
        "translates names by ends; checks, then calls load_state_dict",
        {
            "names": (
                f'    if not owner.startswith("layers."):\n'
                f'        return f"{{published[owner]}}.{{kind}}"\n    {NUMBER}\n',
                '    if owner in published and not owner.startswith("layers."):\n'
                '        return published[owner] + "." + kind\n'
                '    number, _, part = owner.removeprefix("layers.").partition(".")\n',
            ),
            "load": (
                "    with torch.no_grad():\n        for name, parameter in model.named_parameters():\n"
                f"            {COPY}\n",
                "    model.load_state_dict(found, strict=False)\n",
            ),
        },
    ),
]

# Written in November 2026 from the released notebook and the model answers alone.
MUTANTS += [
    # ---- pair
    Fresh(
        "empty_second_is_none",
        "An empty second segment is taken for none: its [SEP] (and those between) is missing.",
        "legal input",
        "input-pair",
        {"pair": ("if second is None else", "if not second else")},
    ),
    Fresh(
        "room_for_what_is_not_there",
        "The further [SEP] between two segments take room also where there is one segment only, which is cut too short.",
        "cut-off",
        "input-truncate",
        {
            "pair": (
                "+ len(segments) + extra > max_length",
                "+ len(segments) + between - 1 > max_length",
            )
        },
    ),
    Fresh(
        "half_for_each",
        "If the pair is too long, each segment gets half of the room, even where the other one needs less than its half.",
        "cut-off",
        "input-truncate",
        {
            "pair": (
                "    while sum(map(len, segments)) + 1 + len(segments) + extra > max_length:\n"
                "        longest = max(map(len, segments))\n"
                "        [segment for segment in segments if len(segment) == longest][-1].pop()\n",
                "    room = max_length - 1 - len(segments) - extra\n"
                "    if sum(map(len, segments)) > room:\n"
                "        if len(segments) == 1:\n"
                "            segments = [segments[0][:room]]\n"
                "        else:\n"
                "            segments = [segments[0][: room - room // 2], segments[1][: room // 2]]\n",
            )
        },
    ),
    Fresh(
        "second_list_is_cut_itself",
        "The second segment is not copied: where it must be cut, the caller's list is.",
        "leak",
        "input-truncate",
        {"pair": ("else [list(first), list(second)]", "else [list(first), second]")},
    ),
    # ---- batch
    Fresh(
        "mask_by_pad_id",
        "Real tokens whose id equals pad_id are marked as filling.",
        "legal input",
        "input-batch",
        {
            "batch": (
                'batch["attention_mask"].append([True] * len(ids) + [False] * filling)',
                'batch["attention_mask"].append([i != pad_id for i in ids] + [False] * filling)',
            )
        },
    ),
    Fresh(
        "one_multiple_too_many",
        "Where the longest sequence is a multiple already, the batch is made longer by another multiple.",
        "cut-off",
        "input-batch",
        {
            "batch": (
                "    longest += -longest % multiple\n",
                "    if multiple > 1:\n        longest = (longest // multiple + 1) * multiple\n",
            )
        },
    ),
    Fresh(
        "sequences_grow",
        "The filling is appended to the caller's own lists.",
        "leak",
        "input-batch",
        {
            "batch": (
                '        batch["input_ids"].append([*ids, *[pad_id] * filling])\n'
                '        batch["token_type_ids"].append([*types, *[0] * filling])\n'
                '        batch["attention_mask"].append([True] * len(ids) + [False] * filling)\n',
                '        batch["attention_mask"].append([True] * len(ids) + [False] * filling)\n'
                "        ids += [pad_id] * filling\n"
                "        types += [0] * filling\n"
                '        batch["input_ids"].append(ids)\n'
                '        batch["token_type_ids"].append(types)\n',
            )
        },
    ),
    # ---- embed
    Fresh(
        "two_kinds_of_segments",
        "Only the rows 0 and 1 of the segment table are used: a model with more segments gets row 1 for all but the first.",
        "hard-wired",
        "embeddings-sum",
        {
            "embed": (
                "self.word(input_ids) + self.position(positions) + self.token_type(token_type_ids)",
                "self.word(input_ids) + self.position(positions) + self.token_type(token_type_ids.clamp(max=1))",
            )
        },
    ),
    Fresh(
        "default_segment_does_not_learn",
        "Without segment ids the row of segment 0 is added as plain data, so it gets no gradient, though the tables are learned.",
        "gradient",
        "embeddings-sum",
        {
            "embed": (
                """        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        positions = position_ids
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)  # [T]
        hidden = (
            self.word(input_ids) + self.position(positions) + self.token_type(token_type_ids)
        )
""",
                """        if token_type_ids is None:
            kinds = self.token_type.weight.data[0]
        else:
            kinds = self.token_type(token_type_ids)
        positions = position_ids
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)  # [T]
        hidden = self.word(input_ids) + self.position(positions) + kinds
""",
            )
        },
    ),
    # ---- self-attention
    Fresh(
        "weights_after_dropout",
        "In training the weights are returned as they are after the dropout.",
        "chance",
        "attention-dropout",
        {
            "self-attention": (
                "        weights = scores.softmax(dim=-1)\n"
                "        context = self.dropout(weights) @ value",
                "        weights = self.dropout(scores.softmax(dim=-1))\n"
                "        context = weights @ value",
            )
        },
    ),
    Fresh(
        "softmax_by_hand",
        "The softmax is exp divided by its sum, which overflows for great scores: nan.",
        "numerics",
        "attention-values",
        {
            "self-attention": (
                "        weights = scores.softmax(dim=-1)\n",
                "        weights = scores.exp()\n"
                "        weights = weights / weights.sum(dim=-1, keepdim=True)\n",
            )
        },
    ),
    Fresh(
        "bias_does_not_learn",
        "The bias is detached before it is added, so it gets no gradient.",
        "gradient",
        "attention-values",
        {
            "self-attention": (
                "scores = scores + bias",
                "scores = scores + bias.detach()",
            )
        },
    ),
    # ---- activation
    Fresh(
        "erf_by_a_polynomial",
        "erf is an approximation by a polynomial (Abramowitz and Stegun, 7.1.26), wrong in the seventh digit, which float64 shows.",
        "numerics",
        "layer-gelu",
        {
            "activation": (
                "    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n",
                "    z = x.abs() / math.sqrt(2)\n"
                "    t = 1 / (1 + 0.3275911 * z)\n"
                "    series = 1.421413741 + t * (-1.453152027 + t * 1.061405429)\n"
                "    series = t * (0.254829592 + t * (-0.284496736 + t * series))\n"
                "    erf = x.sign() * (1 - series * torch.exp(-z * z))\n"
                "    return 0.5 * x * (1 + erf)\n",
            )
        },
    ),
    Fresh(
        "probability_without_gradient",
        "The probability is computed without a gradient, so the slope is Phi(x) and lacks x times the density.",
        "gradient",
        "layer-gelu",
        {
            "activation": (
                "    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n",
                "    with torch.no_grad():\n"
                "        probability = 0.5 * (1 + torch.erf(x / math.sqrt(2)))\n"
                "    return x * probability\n",
            )
        },
    ),
    # ---- block
    Fresh(
        "dropout_after_gelu",
        "In training there is a dropout between GELU and the second matrix, too.",
        "chance",
        "layer-dropout",
        {
            "block": (
                "self.output(gelu(self.intermediate(hidden)))",
                "self.output(self.dropout(gelu(self.intermediate(hidden))))",
            )
        },
    ),
    Fresh(
        "residual_without_gradient",
        "What is added to the attention's result is detached: the sums are right, and no gradient flows along the first residual.",
        "gradient",
        "layer-wiring",
        {
            "block": (
                "self.attention_norm(hidden + self.dropout(",
                "self.attention_norm(hidden.detach() + self.dropout(",
            )
        },
    ),
    # ---- pool
    Fresh(
        "all_filling_is_in_front",
        "If position 0 is filling, all filling of the sequence is taken to be in front: with filling on both sides the position is wrong.",
        "legal input",
        "model-pooler",
        {
            "pool": (
                "            first = attention_mask.int().argmax(dim=1)  # [B]\n",
                "            filling = attention_mask.shape[1] - attention_mask.sum(dim=1)\n"
                "            first = filling.masked_fill(attention_mask[:, 0], 0)  # [B]\n",
            )
        },
    ),
    Fresh(
        "first_by_a_product",
        "The first real position is picked by multiplying all positions with 0 or 1, so a nan or inf at the filling spoils it.",
        "numerics",
        "model-pooler",
        {
            "pool": (
                "            first = attention_mask.int().argmax(dim=1)  # [B]\n"
                "            hidden = hidden[torch.arange(len(first), device=hidden.device), first, None]\n",
                "            first = attention_mask & (attention_mask.cumsum(dim=1) == 1)  # [B, T]\n"
                "            hidden = (hidden * first[:, :, None]).sum(dim=1, keepdim=True)\n",
            )
        },
    ),
    # ---- whole
    Fresh(
        "mask_from_id_zero",
        "Without a mask the model makes one of its own: every id 0 is taken for filling, whatever 0 means in the vocabulary.",
        "hard-wired",
        "model-wiring",
        {
            "whole": (
                "        hidden = self.embeddings(input_ids, token_type_ids)\n",
                "        if attention_mask is None:\n"
                "            attention_mask = input_ids != 0\n"
                "        hidden = self.embeddings(input_ids, token_type_ids)\n",
            )
        },
    ),
    Fresh(
        "all_layers_run",
        "All layers run, and what the wanted one gave is picked afterwards.",
        "cut-off",
        "model-wiring",
        {
            "whole": (
                "        for layer in self.layers[:depth]:\n"
                "            hidden = layer(hidden, attention_mask)\n",
                "        states = [hidden]\n"
                "        for layer in self.layers:\n"
                "            states.append(layer(states[-1], attention_mask))\n"
                "        hidden = states[-1 if depth is None else depth]\n",
            )
        },
    ),
    Fresh(
        "depth_is_remembered",
        "The model remembers the depth, so a later call without one runs as many layers as the call before.",
        "state",
        "model-wiring",
        {
            "whole": (
                "        for layer in self.layers[:depth]:\n",
                "        if depth is not None:\n"
                "            self.depth = depth\n"
                '        for layer in self.layers[: getattr(self, "depth", None)]:\n',
            )
        },
    ),
    # ---- count
    Fresh(
        "inner_is_four_times_d",
        "The network inside a layer is taken to be 4 D wide, whatever intermediate_size says.",
        "hard-wired",
        "sizes-count",
        {
            "count": (
                "D, inner = config.hidden_size, config.intermediate_size",
                "D, inner = config.hidden_size, 4 * config.hidden_size",
            )
        },
    ),
    Fresh(
        "heads_of_64",
        "Each head is taken to have 64 features, so the number of heads matters.",
        "hard-wired",
        "sizes-count",
        {
            "count": (
                "    attention = 4 * (D * D + D)  # query, key, value, output\n",
                "    wide = 64 * config.num_attention_heads\n"
                "    attention = 3 * (D * wide + wide) + wide * D + D  # query, key, value, output\n",
            )
        },
    ),
    # ---- names
    Fresh(
        "layers_of_one_digit",
        "Only the first digit of a layer's number is taken: layer 10 and 11 become layer 1.",
        "cut-off",
        "loading-names",
        {
            "names": (
                '    _, number, part = owner.split(".", 2)\n',
                '    number, part = owner[len("layers.")], owner.split(".", 2)[2]\n',
            )
        },
    ),
    # ---- load
    Fresh(
        "parameters_share_the_file",
        "The parameters get the file's tensors themselves where type and device agree, so training the model changes the file's dict.",
        "leak",
        "loading-places",
        {
            "load": (
                "            parameter.copy_(found[name])\n",
                "            parameter.data = found[name].to(parameter.device, parameter.dtype)\n",
            )
        },
    ),
    Fresh(
        "left_over_without_prefix",
        "The names of what was not used are returned without bert. and with the new names of norms, not as the file has them.",
        "legal input",
        "loading-places",
        {
            "load": (
                "    return sorted(name for name in tensors if name not in used)",
                "    return sorted(plain for plain, name in stored.items() if name not in used)",
            )
        },
    ),
    Fresh(
        "shapes_of_equal_size",
        "A tensor of another shape is taken, and reshaped, if it has as many numbers: a matrix I x D in the place of D x I.",
        "legal input",
        "loading-refused",
        {
            "load": (
                """        if value.shape != parameter.shape:
            raise ValueError(
                f"{wanted} has shape {list(value.shape)}, but {name} has {list(parameter.shape)}: "
                "is it a checkpoint of another size?"
            )
        found[name] = value
""",
                """        if value.numel() != parameter.numel():
            raise ValueError(
                f"{wanted} has shape {list(value.shape)}, but {name} has {list(parameter.shape)}: "
                "is it a checkpoint of another size?"
            )
        found[name] = value.reshape(parameter.shape)
""",
            )
        },
    ),
    Fresh(
        "loading_ends_training",
        "The loaded model is switched to evaluation, though nothing but the numbers of its parameters may change.",
        "state",
        "loading-places",
        {
            "load": (
                "    used = {stored[published_name(name)] for name in found}\n",
                "    model.eval()\n    used = {stored[published_name(name)] for name in found}\n",
            )
        },
    ),
    # ---- own-check
    Fresh(
        "check_that_a_gradient_is_there",
        "The check looks whether a gradient arrives, not whether it is that of the formula.",
        "gradient",
        "check-refuses",
        {
            "own-check": (
                "            assert torch.allclose(*slopes)\n",
                "            assert slopes[0].shape == slopes[1].shape and (slopes[0] != 0).any()\n",
            )
        },
    ),
    Fresh(
        "check_without_nan",
        "The check puts plain numbers where no word is, never nan or inf.",
        "numerics",
        "check-refuses",
        {
            "own-check": (
                "for nothing in (math.nan, math.inf):",
                "for nothing in (7.0, -3.0):",
            )
        },
    ),
    Fresh(
        "check_without_an_empty_table",
        "The check never asks for a batch without any word, where W is 0.",
        "cut-off",
        "check-refuses",
        {"own-check": ("        [[-1] * 4] * 2,\n", "")},
    ),
    Fresh(
        "check_gives_away_copies",
        "The check hands out copies and never looks at them again, so it overlooks who writes into weights or words.",
        "leak",
        "check-refuses",
        {
            "own-check": """def check_word_attention(implementation):
    def wanted(weights, words):
        W = int(words.max()) + 1
        table = weights.new_zeros(*weights.shape[:2], W, W)
        for b, row in enumerate(words.tolist()):
            for t, i in enumerate(row):
                for s, j in enumerate(row):
                    if min(i, j) >= 0:
                        table[b, :, i, j] += weights[b, :, t, s] / row.count(i)
        return table

    def compare(weights, words, near=1e-10):
        found, right = implementation(weights.clone(), words.clone()), wanted(weights, words)
        assert found.dtype == weights.dtype and found.shape == right.shape
        assert (found - right).abs().le(near).all()

    rows = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]
    three = torch.tensor([[rows]], device=device)
    found = implementation(three, torch.tensor([[0, 0, 1]], device=device))
    assert (found.cpu() - torch.tensor([[[[0.45, 0.55], [0.6, 0.4]]]])).abs().max() < 1e-5
    for numbers in (
        [[-1, 0, 0, 1], [2, -1, 0, 2]],
        [[0, 0, 1, 0], [4, 3, -1, 3]],
        [[-1, 0, 1, -1], [-1, -1, -1, -1]],
        [[-1] * 4] * 2,
    ):
        words = torch.tensor(numbers, device=device)
        weights = (3 * torch.randn(2, 3, 4, 4, dtype=torch.float64)).softmax(3).to(device)
        compare(weights, words)
        compare(weights.float(), words, 1e-5)
        compare(weights / 3e4, words)
        compare(weights[:, :1, 2:3, 2:3], words[:, 2:3])
        for nothing in (math.nan, math.inf):
            for side in (words[:, None, :, None], words[:, None, None, :]):
                compare(weights.masked_fill(side < 0, nothing), words)
        if words.max() >= 0:
            leaf, share = weights.requires_grad_(), torch.rand_like(wanted(weights, words))
            tables = implementation(leaf.clone(), words.clone()), wanted(leaf, words)
            slopes = [torch.autograd.grad((share * table).sum(), leaf)[0] for table in tables]
            assert torch.allclose(*slopes)
"""
        },
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "ranks",
        "Cutting by the rank of each token, slices into full tensors, einsum, erfc, gather, islice, names by pieces, candidates looked up in the file, "
        "and a check by matrix products",
        {
            "pair": """def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    if second is None:
        kept = list(first)[: max(max_length - 2, 0)]
        return [cls_id, *kept, sep_id], [0] * (len(kept) + 2)
    # Always the token farthest from the start of its segment goes, of two the second's: that is the longer segment's last.
    ranks = sorted([(i, 0) for i in range(len(first))] + [(i, 1) for i in range(len(second))])
    ranks = ranks[: max(max_length - 2 - between, 0)]
    a = sum(1 for _, segment in ranks if segment == 0)
    b = len(ranks) - a
    ids = [cls_id] + list(first[:a]) + [sep_id] * between + list(second[:b]) + [sep_id]
    return ids, [0] * (1 + a + between) + [1] * (b + 1)
""",
            "batch": """def make_batch(inputs, pad_id=0, multiple=1):
    T = multiple * math.ceil(max(len(ids) for ids, _ in inputs) / multiple)
    shape = len(inputs), T
    input_ids = torch.full(shape, pad_id, dtype=torch.int64)
    token_type_ids = torch.zeros(shape, dtype=torch.int64)
    attention_mask = torch.zeros(shape, dtype=torch.bool)
    for b, (ids, types) in enumerate(inputs):
        input_ids[b, : len(ids)] = torch.tensor(ids)
        token_type_ids[b, : len(ids)] = torch.tensor(types)
        attention_mask[b, : len(ids)] = True
    return {
        "input_ids": input_ids,
        "token_type_ids": token_type_ids,
        "attention_mask": attention_mask,
    }
""",
            "embed": """class BertEmbeddings(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = torch.nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type = torch.nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = torch.nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        T = input_ids.shape[1]
        words = self.word(input_ids)
        places = self.position.weight[:T] if position_ids is None else self.position(position_ids)
        kinds = self.token_type.weight[0] if token_type_ids is None else self.token_type(token_type_ids)
        return self.dropout(self.norm(words + places + kinds))
""",
            "self-attention": """class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query = torch.nn.Linear(D, D)
        self.key = torch.nn.Linear(D, D)
        self.value = torch.nn.Linear(D, D)
        self.dropout = torch.nn.Dropout(config.dropout)

    def heads(self, table):
        return table.unflatten(-1, (self.num_heads, -1))  # [B, T, H, N]

    def forward(self, hidden, attention_mask=None, bias=None):
        query, key = self.heads(self.query(hidden)), self.heads(self.key(hidden))
        scores = torch.einsum("bthn,bshn->bhts", query, key) * query.shape[-1] ** -0.5
        if bias is not None:
            scores = scores + bias[None]
        if attention_mask is not None:
            real = attention_mask[:, None, None, :]
            scores = torch.where(real, scores, torch.full_like(scores, -math.inf))
        weights = torch.softmax(scores, dim=-1)
        value = self.heads(self.value(hidden))
        context = torch.einsum("bhts,bshn->bthn", self.dropout(weights), value)
        return context.flatten(2), weights
""",
            "activation": """def gelu(x):
    return x * (0.5 * torch.erfc(x * -math.sqrt(0.5)))
""",
            "block": """class BertLayer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_output = torch.nn.Linear(D, D)
        self.attention_norm = torch.nn.LayerNorm(D, eps=eps)
        self.intermediate = torch.nn.Linear(D, inner)
        self.output = torch.nn.Linear(inner, D)
        self.output_norm = torch.nn.LayerNorm(D, eps=eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        mixed = self.attention(hidden, attention_mask=attention_mask, bias=bias)[0]
        added = self.dropout(self.attention_output(mixed))
        middle = self.attention_norm(torch.add(added, hidden))
        added = self.dropout(self.output(gelu(self.intermediate(middle))))
        return self.output_norm(torch.add(added, middle))
""",
            "pool": """class Pooler(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden, attention_mask=None):
        if attention_mask is None:
            chosen = hidden[:, 0]
        else:
            B, T, D = hidden.shape
            places = torch.arange(T, device=hidden.device).expand(B, T)
            first = places.masked_fill(~attention_mask, T).amin(dim=1)
            chosen = hidden.gather(1, first.view(B, 1, 1).expand(B, 1, D)).squeeze(1)
        return self.dense(chosen).tanh()
""",
            "whole": """class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layers = torch.nn.ModuleList(
            BertLayer(config) for _ in range(config.num_hidden_layers)
        )
        self.pooler = Pooler(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):
        hidden = self.embeddings(input_ids, token_type_ids)
        for number, layer in enumerate(self.layers):
            if depth is not None and number >= depth:
                break
            hidden = layer(hidden, attention_mask)
        return hidden, self.pooler(hidden)
""",
            "count": """def count_parameters(config):
    D, inner = config.hidden_size, config.intermediate_size

    def linear(wide, out):
        return (wide + 1) * out

    layer = 4 * linear(D, D) + linear(D, inner) + linear(inner, D) + 2 * (D + D)
    tables = (config.vocab_size, config.max_position_embeddings, config.type_vocab_size)
    return {
        "embeddings": sum(rows * D for rows in tables) + D + D,
        "layers": sum(layer for _ in range(config.num_hidden_layers)),
        "pooler": linear(D, D),
    }
""",
            "names": """def published_name(name, old=False):
    head, *parts, kind = name.split(".")
    norm = parts[-1] in ("norm", "attention_norm", "output_norm")
    if norm and old:
        kind = "gamma" if kind == "weight" else "beta"
    if head == "pooler":
        return name
    if head == "embeddings":
        return f"embeddings.{'LayerNorm' if norm else parts[0] + '_embeddings'}.{kind}"
    number, *parts = parts
    if parts[0] == "attention":
        place = f"attention.self.{parts[1]}"
    elif parts[0] == "intermediate":
        place = "intermediate.dense"
    else:
        place = "attention.output." if parts[0].startswith("attention") else "output."
        place += "LayerNorm" if norm else "dense"
    return f"encoder.layer.{number}.{place}.{kind}"
""",
            "load": """def load_published(model, tensors):
    plan, unused = [], set(tensors)
    for name, parameter in model.named_parameters():
        today = published_name(name)
        names = [
            prefix + wanted
            for prefix in ("", "bert.")
            for wanted in (today, published_name(name, old=True))
        ]
        there = [candidate for candidate in names if candidate in tensors]
        if not there:
            raise ValueError(f"{today} is missing; looked for {' and '.join(names)}")
        value = tensors[there[0]]
        if tuple(value.shape) != tuple(parameter.shape):
            raise ValueError(
                f"{there[0]} ({today}) has shape {tuple(value.shape)}, {tuple(parameter.shape)} is needed"
            )
        plan.append((parameter, value))
        unused.discard(there[0])
    for parameter, value in plan:
        parameter.detach().copy_(value.detach())
    return sorted(unused)
""",
            "own-check": '''def check_word_attention(implementation):
    """Raise an error if an implementation of `word_attention` is wrong; return nothing if it is right."""

    def parts(words, dtype):
        """[B, T, W]: which word a position belongs to, and the same, each word's column divided by its pieces."""
        W = int(words.max()) + 1
        member = (words[:, :, None] == torch.arange(W, device=words.device)).to(dtype)
        return member, member / member.sum(dim=1, keepdim=True).clamp(min=1)

    def wanted(weights, words):
        real = words >= 0
        clean = torch.where(
            real[:, None, :, None] & real[:, None, None, :], weights, torch.zeros_like(weights)
        )
        member, mean = parts(words, weights.dtype)
        return mean.transpose(1, 2)[:, None] @ clean @ member[:, None]

    def ask(weights, words):
        weights_before, words_before = weights.clone(), words.clone()
        answer, right = implementation(weights, words), wanted(weights_before, words_before)
        assert torch.equal(words, words_before), "words was changed"
        assert torch.allclose(weights, weights_before, rtol=0, atol=0, equal_nan=True), "weights was"
        assert answer.dtype == weights.dtype, "another dtype"
        assert answer.shape == right.shape, "another shape"
        near = 1e-10 if weights.dtype == torch.float64 else 1e-5
        assert torch.allclose(answer, right, rtol=near, atol=near * 1e-3 if near < 1e-8 else 1e-6)

    def numbers(*shape):
        return torch.rand(*shape, dtype=torch.float64, device=device)

    example = [[[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]]]
    answer = implementation(
        torch.tensor(example, device=device), torch.tensor([[0, 0, 1]], device=device)
    )
    right = torch.tensor([[[[0.45, 0.55], [0.6, 0.4]]]], device=device)
    assert answer.shape == right.shape and torch.allclose(answer, right, atol=1e-5)

    batches = [
        [[0]],
        [[-1]],
        [[0, 0, 0, 1, -1]],
        [[-1, 0, 1, 1, 2, -1], [-1, 0, -1, -1, -1, -1]],
        [[2, 0, 2, 1, 0, 2], [0, 0, 0, 0, 0, 0], [-1, 5, -1, 5, 5, 1]],
        [[-1, -1, -1], [-1, -1, -1]],
        [[3, 3, -1, 1], [1, -1, 0, 0]],
    ]
    batches += [torch.randint(-1, 4, (3, 5)).tolist() for _ in range(6)]
    for rows in batches:
        words = torch.tensor(rows, device=device)
        B, T = words.shape
        for H in (1, 3):
            weights = (4 * numbers(B, H, T, T)).softmax(dim=-1)
            ask(weights, words)
            ask(weights.float(), words)
            ask(weights * 1e-4, words)
        for waste in (math.nan, math.inf):
            nowhere = words < 0
            for where in (nowhere[:, None, :, None], nowhere[:, None, None, :]):
                ask(weights.masked_fill(where, waste), words)
        if words.max() < 0:
            continue
        leaf = weights.clone().requires_grad_()
        share = numbers(*wanted(weights, words).shape)
        (slope,) = torch.autograd.grad((implementation(leaf, words) * share).sum(), leaf)
        member, mean = parts(words, torch.float64)
        right = mean[:, None] @ share @ member[:, None].transpose(2, 3)
        assert torch.allclose(slope, right, rtol=1e-9, atol=1e-12), "another gradient"
''',
        },
    ),
    RightAnswer(
        "formulas",
        "The lengths after cutting by a formula, pad_sequence, a loop over heads, ndtr, the first True of each row by itself, a sum of sizes, regular expressions, load_state_dict",
        {
            "pair": """def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    a = len(first)
    if second is None:
        a = min(a, max_length - 2)
        return [cls_id, *first[:a], sep_id], [0] * (a + 2)
    b = len(second)
    room = max_length - 2 - between
    if a + b > room:
        if b <= room // 2:
            a = room - b
        elif a <= (room + 1) // 2:
            b = room - a
        else:
            a, b = (room + 1) // 2, room // 2
    front = [cls_id, *first[:a], *([sep_id] * between)]
    back = [*second[:b], sep_id]
    return front + back, [0 for _ in front] + [1 for _ in back]
""",
            "batch": """def make_batch(inputs, pad_id=0, multiple=1):
    from torch.nn.utils.rnn import pad_sequence

    lengths = torch.tensor([len(ids) for ids, _ in inputs])
    missing = -int(lengths.max()) % multiple

    def table(rows, value):
        filled = pad_sequence(
            [torch.tensor(row, dtype=torch.int64) for row in rows], True, value
        )
        return torch.nn.functional.pad(filled, (0, missing), value=value)

    input_ids = table([ids for ids, _ in inputs], pad_id)
    return {
        "input_ids": input_ids,
        "token_type_ids": table([types for _, types in inputs], 0),
        "attention_mask": torch.arange(input_ids.shape[1]) < lengths[:, None],
    }
""",
            "embed": """class BertEmbeddings(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = torch.nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type = torch.nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = torch.nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        B, T = input_ids.shape
        if position_ids is None:
            position_ids = torch.arange(T, device=input_ids.device).repeat(B, 1)
        if token_type_ids is None:
            token_type_ids = input_ids.new_zeros(B, T)
        tables = (self.word, input_ids), (self.position, position_ids), (self.token_type, token_type_ids)
        total = sum(torch.nn.functional.embedding(rows, table.weight) for table, rows in tables)
        return self.dropout(self.norm(total))
""",
            "self-attention": """class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query = torch.nn.Linear(D, D)
        self.key = torch.nn.Linear(D, D)
        self.value = torch.nn.Linear(D, D)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        query, key, value = (
            part(hidden).chunk(self.num_heads, dim=-1)
            for part in (self.query, self.key, self.value)
        )
        contexts, tables = [], []
        for head in range(self.num_heads):
            scale = math.sqrt(query[head].shape[-1])
            scores = torch.bmm(query[head] / scale, key[head].mT)  # [B, T, T]
            if bias is not None:
                scores = scores + bias[head]
            if attention_mask is not None:
                scores = scores.masked_fill(attention_mask.logical_not()[:, None], -math.inf)
            tables.append(scores.softmax(dim=2))
            contexts.append(self.dropout(tables[-1]) @ value[head])
        return torch.cat(contexts, dim=-1), torch.stack(tables, dim=1)
""",
            "activation": """def gelu(x):
    return x * torch.special.ndtr(x)
""",
            "block": """class BertLayer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_output = torch.nn.Linear(D, D)
        self.attention_norm = torch.nn.LayerNorm(D, eps=eps)
        self.intermediate = torch.nn.Linear(D, inner)
        self.output = torch.nn.Linear(inner, D)
        self.output_norm = torch.nn.LayerNorm(D, eps=eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        def attend(x):
            context, _ = self.attention(x, attention_mask, bias)
            return self.attention_output(context)

        def think(x):
            return self.output(gelu(self.intermediate(x)))

        for work, norm in ((attend, self.attention_norm), (think, self.output_norm)):
            hidden = norm(hidden + self.dropout(work(hidden)))
        return hidden
""",
            "pool": """class Pooler(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden, attention_mask=None):
        first = [0] * len(hidden)
        if attention_mask is not None:
            first = [row.index(True) for row in attention_mask.tolist()]
        chosen = torch.stack([rows[place] for rows, place in zip(hidden, first)])
        return torch.tanh(self.dense(chosen))
""",
            "whole": """class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layers = torch.nn.ModuleList(
            BertLayer(config) for _ in range(config.num_hidden_layers)
        )
        self.pooler = Pooler(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):
        from functools import reduce

        running = list(self.layers)
        if depth is not None:
            running = running[:depth]
        hidden = reduce(
            lambda state, layer: layer(state, attention_mask),
            running,
            self.embeddings(input_ids, token_type_ids),
        )
        return hidden, self.pooler(hidden)
""",
            "count": """def count_parameters(config):
    D, I, L = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    return dict(
        embeddings=D
        * (config.vocab_size + config.max_position_embeddings + config.type_vocab_size + 2),
        layers=L * (4 * D**2 + 2 * D * I + 9 * D + I),
        pooler=D * (D + 1),
    )
""",
            "names": r"""def published_name(name, old=False):
    import re

    for pattern, text in (
        (r"^embeddings\.(word|position|token_type)\.", r"embeddings.\1_embeddings."),
        (r"^embeddings\.norm\.", "embeddings.LayerNorm."),
        (r"^layers\.(\d+)\.output\.", r"layers.\1.output.dense."),
        (r"^layers\.(\d+)\.output_norm\.", r"layers.\1.output.LayerNorm."),
        (r"^layers\.(\d+)\.intermediate\.", r"layers.\1.intermediate.dense."),
        (r"^layers\.(\d+)\.attention_output\.", r"layers.\1.attention.output.dense."),
        (r"^layers\.(\d+)\.attention_norm\.", r"layers.\1.attention.output.LayerNorm."),
        (r"^layers\.(\d+)\.attention\.(query|key|value)\.", r"layers.\1.attention.self.\2."),
    ):
        name, count = re.subn(pattern, text, name)
        if count:
            break
    name = re.sub(r"^layers\.", "encoder.layer.", name)
    if old:
        name = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)
        name = re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)
    return name
""",
            "load": r"""def load_published(model, tensors):
    import re

    def plain(name):
        name = re.sub(r"^bert\.", "", name)
        return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)

    names = {re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", plain(name)): name for name in tensors}
    state, used = {}, set()
    for name, parameter in model.named_parameters():
        wanted = published_name(name)
        try:
            stored = names[wanted]
        except KeyError:
            raise ValueError(f"no tensor {wanted} in the checkpoint") from None
        if tensors[stored].size() != parameter.size():
            raise ValueError(
                f"{stored}, that is {wanted}: {[*tensors[stored].size()]} is not {[*parameter.size()]}"
            )
        state[name] = tensors[stored]
        used.add(stored)
    model.load_state_dict(state, strict=False)
    return sorted(set(tensors) - used)
""",
        },
    ),
    RightAnswer(
        "step_by_step",
        "Counting down the lengths, nested comprehensions, index tables, one product for all heads, erf spread out, argmax of a cumulative sum, tables of names, a check with plain loops",
        {
            "pair": """def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    a, b = len(first), 0 if second is None else len(second)
    special = 2 if second is None else 2 + between
    while a + b + special > max_length:
        if a > b:
            a -= 1
        else:
            b -= 1
    ids, types = [cls_id], [0]
    for i in first[:a]:
        ids.append(i)
        types.append(0)
    for _ in range(1 if second is None else between):
        ids.append(sep_id)
        types.append(0)
    if second is not None:
        for i in [*second[:b], sep_id]:
            ids.append(i)
            types.append(1)
    return ids, types
""",
            "batch": """def make_batch(inputs, pad_id=0, multiple=1):
    T = max(map(len, (ids for ids, _ in inputs)))
    while T % multiple:
        T += 1

    def cell(row, t, filling):
        return row[t] if t < len(row) else filling

    return {
        "input_ids": torch.tensor([[cell(ids, t, pad_id) for t in range(T)] for ids, _ in inputs]),
        "token_type_ids": torch.tensor([[cell(kinds, t, 0) for t in range(T)] for _, kinds in inputs]),
        "attention_mask": torch.tensor([[t < len(ids) for t in range(T)] for ids, _ in inputs]),
    }
""",
            "embed": """class BertEmbeddings(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = torch.nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type = torch.nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = torch.nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        if position_ids is None:
            position_ids = torch.ones_like(input_ids).cumsum(dim=1) - 1
        if token_type_ids is None:
            token_type_ids = torch.full_like(input_ids, 0)
        hidden = self.word.weight[input_ids.long()]
        hidden = hidden + self.position.weight[position_ids.long()]
        hidden = hidden + self.token_type.weight[token_type_ids.long()]
        return self.dropout(self.norm(hidden))
""",
            "self-attention": """class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query = torch.nn.Linear(D, D)
        self.key = torch.nn.Linear(D, D)
        self.value = torch.nn.Linear(D, D)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        B, T, D = hidden.shape
        H, N = self.num_heads, D // self.num_heads

        def split(table):
            return table.reshape(B, T, H, N).permute(0, 2, 1, 3)

        scores = torch.matmul(split(self.query(hidden)), split(self.key(hidden)).mT).div(N**0.5)
        if bias is not None:
            scores = scores + bias.unsqueeze(0)
        if attention_mask is not None:
            hidden_keys = (~attention_mask).view(B, 1, 1, T).expand(B, H, T, T)
            scores = scores.masked_fill(hidden_keys, float("-inf"))
        weights = torch.nn.functional.softmax(scores, dim=3)
        context = torch.matmul(self.dropout(weights), split(self.value(hidden)))
        return context.permute(0, 2, 1, 3).contiguous().view(B, T, D), weights
""",
            "activation": """def gelu(x):
    half = x / 2
    return half + half * torch.erf(x * 0.5**0.5)
""",
            "block": """class BertLayer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_output = torch.nn.Linear(D, D)
        self.attention_norm = torch.nn.LayerNorm(D, eps=eps)
        self.intermediate = torch.nn.Linear(D, inner)
        self.output = torch.nn.Linear(inner, D)
        self.output_norm = torch.nn.LayerNorm(D, eps=eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        answer = self.attention(hidden, attention_mask, bias)
        a = self.attention_output(answer[0])
        a = self.attention_norm(self.dropout(a) + hidden)
        y = self.intermediate(a)
        y = self.output(gelu(y))
        return self.output_norm(self.dropout(y) + a)
""",
            "pool": """class Pooler(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden, attention_mask=None):
        if attention_mask is None:
            attention_mask = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device)
        first = attention_mask & (attention_mask.cumsum(dim=1) == 1)  # True once in each row
        return self.dense(hidden[first]).tanh()
""",
            "whole": """class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layers = torch.nn.ModuleList(
            BertLayer(config) for _ in range(config.num_hidden_layers)
        )
        self.pooler = Pooler(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):
        count = len(self.layers) if depth is None else depth
        state = self.embeddings(input_ids, token_type_ids)
        for number in range(count):
            state = self.layers[number](state, attention_mask)
        return state, self.pooler(state)
""",
            "count": """def count_parameters(config):
    D, inner = config.hidden_size, config.intermediate_size
    matrices = 4 * [(D, D)] + [(inner, D), (D, inner)]
    vectors = 4 * [D] + [inner, D] + 4 * [D]
    layer = sum(map(math.prod, matrices)) + sum(vectors)
    tables = [config.vocab_size, config.max_position_embeddings, config.type_vocab_size]
    return {
        "embeddings": sum(math.prod((rows, D)) for rows in tables) + sum([D, D]),
        "layers": layer * config.num_hidden_layers,
        "pooler": math.prod((D, D)) + D,
    }
""",
            "names": """def published_name(name, old=False):
    table = '''
        embeddings.word        embeddings.word_embeddings
        embeddings.position    embeddings.position_embeddings
        embeddings.token_type  embeddings.token_type_embeddings
        embeddings.norm        embeddings.LayerNorm
        attention.query        attention.self.query
        attention.key          attention.self.key
        attention.value        attention.self.value
        attention_output       attention.output.dense
        attention_norm         attention.output.LayerNorm
        intermediate           intermediate.dense
        output                 output.dense
        output_norm            output.LayerNorm
        pooler.dense           pooler.dense
    '''
    rows = dict(line.split() for line in table.strip().splitlines())
    parts = name.split(".")
    front = ""
    if parts[0] == "layers":
        front, parts = f"encoder.layer.{parts[1]}.", parts[2:]
    place, kind = rows[".".join(parts[:-1])], parts[-1]
    if old and place.endswith("LayerNorm"):
        kind = dict(weight="gamma", bias="beta")[kind]
    return front + place + "." + kind
""",
            "load": """def load_published(model, tensors):
    places = {}
    for name, parameter in model.named_parameters():
        for old in (True, False):
            for prefix in ("bert.", ""):
                places[prefix + published_name(name, old)] = name
    found = {places[stored]: stored for stored in tensors if stored in places}
    for name, parameter in model.named_parameters():
        wanted = published_name(name)
        if name not in found:
            raise ValueError(f"missing: {wanted}")
        value = tensors[found[name]]
        if value.shape != parameter.shape:
            raise ValueError(
                f"{found[name]} (today {wanted}) must be {list(parameter.shape)} and is {list(value.shape)}"
            )
    for name, parameter in model.named_parameters():
        parameter.data.copy_(tensors[found[name]])
    return sorted(stored for stored in tensors if stored not in found.values())
""",
            "own-check": '''def check_word_attention(implementation):
    """Raise an error if an implementation of `word_attention` is wrong; return nothing if it is right."""

    def wanted(weights, words):
        """The text, number by number, in Python's own floats."""
        B, H, T, _ = weights.shape
        W = max(max(row) for row in words.tolist()) + 1
        table = torch.zeros(B, H, W, W, dtype=torch.float64)
        for b, row in enumerate(words.tolist()):
            for h in range(H):
                given = weights[b, h].tolist()
                for i in {*row} - {-1}:
                    pieces = [t for t in range(T) if row[t] == i]
                    for j in {*row} - {-1}:
                        sums = [sum(given[t][s] for s in range(T) if row[s] == j) for t in pieces]
                        table[b, h, i, j] = sum(sums) / len(pieces)
        return table

    def ask(weights, words):
        saved = weights.detach().clone(), words.clone()
        answer = implementation(weights, words)
        assert torch.equal(words, saved[1])
        assert torch.equal(weights.isnan(), saved[0].isnan())
        assert torch.equal(weights.nan_to_num(), saved[0].nan_to_num())
        assert answer.dtype == weights.dtype
        right = wanted(*saved)
        assert list(answer.shape) == list(right.shape)
        gap = (answer.detach().cpu().double() - right).abs()
        limit = 1e-12 if weights.dtype == torch.float64 else 1e-6
        assert (gap <= limit * (saved[0].nan_to_num(0, 0, 0).abs().max().item() * 8 + 1e-30)).all()
        return answer

    plans = (
        [[0, 0, 1]],
        [[-1, 0, 0, 1, -1], [-1, 2, 0, 0, -1]],
        [[1, 0, 1, 0, 1], [-1, -1, -1, -1, -1]],
        [[-1, 4, -1, 2, 4], [0, 0, 0, 0, 3], [2, -1, -1, 1, 2]],
        [[-1, -1]],
        [[-1], [-1]],
        [[0], [1]],
        [[0, 1, 2, 3]],
    )
    for plan in plans:
        words = torch.tensor(plan, device=device)
        B, T = words.shape
        for dtype in (torch.float64, torch.float32):
            for H in (2, 1):
                weights = torch.randn(B, H, T, T, dtype=dtype).softmax(-1).to(device)
                ask(weights, words)
                ask(weights / 1000, words)
            for waste in (math.nan, math.inf):
                dirty = weights.clone()
                for b, row in enumerate(plan):
                    for t, number in enumerate(row):
                        if number < 0:
                            dirty[b, :, t, :] = waste
                            dirty[b, :, :, t] = waste
                ask(dirty, words)
        if max(map(max, plan)) < 0:
            continue
        leaf = torch.rand(B, 2, T, T, dtype=torch.float64).to(device).requires_grad_()
        answer = ask(leaf, words)
        share = torch.rand(answer.shape, dtype=torch.float64).to(device)
        (slope,) = torch.autograd.grad(answer, leaf, share)
        for b, row in enumerate(plan):
            for t, i in enumerate(row):
                for s, j in enumerate(row):
                    right = share[b, :, i, j] / row.count(i) if min(i, j) >= 0 else 0 * share[b, :, 0, 0]
                    assert (slope[b, :, t, s] - right).abs().max() < 1e-10
''',
        },
    ),
]


LATER = [
    Fresh(
        "single_pays_for_between",
        "counts the further [SEP] between segments as room when there is one segment only",
        "legal input",
        "input-truncate",
        {
            "pair": (
                "+ 1 + len(segments) + extra > max_length:",
                "+ 1 + len(segments) + between - 1 > max_length:",
            )
        },
    ),
    Fresh(
        "tie_takes_turns",
        "takes turns at a tie, so cuts the first segment if the second was cut last",
        "legal input",
        "input-truncate",
        {
            "pair": (
                "    while sum(map(len, segments)) + 1 + len(segments) + extra > max_length:\n        longest = max(map(len, segments))\n        [segment for segment in segments if len(segment) == longest][-1].pop()\n",
                "    turn = 0\n    while sum(map(len, segments)) + 1 + len(segments) + extra > max_length:\n        sizes = [len(segment) for segment in segments]\n        if len(sizes) == 2 and sizes[0] == sizes[1]:\n            turn = 1 - turn\n        else:\n            turn = sizes.index(max(sizes))\n        segments[turn].pop()\n",
            )
        },
    ),
    Fresh(
        "single_not_copied",
        "shortens the caller's list when there is one segment only",
        "state",
        "input-truncate",
        {
            "pair": (
                "segments = [list(first)] if second is None else",
                "segments = [first] if second is None else",
            )
        },
    ),
    Fresh(
        "further_sep_is_102",
        "writes the further [SEP] as 102 instead of sep_id",
        "hard-wired",
        "input-pair",
        {"pair": ("input_ids += [sep_id] * extra", "input_ids += [102] * extra")},
    ),
    Fresh(
        "filling_keeps_last_segment",
        "gives the filling the segment id of the last token",
        "legal input",
        "input-batch",
        {"batch": ("[*types, *[0] * filling]", "[*types, *types[-1:] * filling]")},
    ),
    Fresh(
        "fills_callers_lists",
        "appends the filling to the lists of the caller",
        "state",
        "input-batch",
        {
            "batch": (
                '        batch["input_ids"].append([*ids, *[pad_id] * filling])\n        batch["token_type_ids"].append([*types, *[0] * filling])\n        batch["attention_mask"].append([True] * len(ids) + [False] * filling)\n',
                '        batch["attention_mask"].append([True] * len(ids) + [False] * filling)\n        ids += [pad_id] * filling\n        types += [0] * filling\n        batch["input_ids"].append(ids)\n        batch["token_type_ids"].append(types)\n',
            )
        },
    ),
    Fresh(
        "no_segments_no_position_ids",
        "drops the position ids when no segment ids are given",
        "legal input",
        "embeddings-sum",
        {
            "embed": (
                "            token_type_ids = torch.zeros_like(input_ids)\n",
                "            return self.forward(input_ids, torch.zeros_like(input_ids))\n",
            )
        },
    ),
    Fresh(
        "positions_do_not_learn",
        "reads the rows of the positions from weight.data, so that no gradient reaches them",
        "gradient",
        "embeddings-norm",
        {"embed": ("self.position(positions)", "self.position.weight.data[positions]")},
    ),
    Fresh(
        "positions_of_first_call",
        "keeps the positions of the first call and only cuts them later",
        "state",
        "embeddings-sum",
        {
            "embed": (
                "            positions = torch.arange(input_ids.shape[1], device=input_ids.device)  # [T]\n",
                '            if not hasattr(self, "places"):\n                self.places = torch.arange(input_ids.shape[1], device=input_ids.device)\n            positions = self.places[: input_ids.shape[1]]\n',
            )
        },
    ),
    Fresh(
        "returns_dropped_weights",
        "returns the weights after the dropout",
        "legal input",
        "attention-dropout",
        {
            "self-attention": (
                "        weights = scores.softmax(dim=-1)\n        context = self.dropout(weights) @ value  # [B, H, T, N]\n",
                "        weights = self.dropout(scores.softmax(dim=-1))\n        context = weights @ value  # [B, H, T, N]\n",
            )
        },
    ),
    Fresh(
        "context_of_filling_is_zero",
        "sets the context at filling to 0",
        "legal input",
        "attention-dropout",
        {
            "self-attention": (
                "        return context.transpose(1, 2).reshape(B, T, D), weights\n",
                "        context = context.transpose(1, 2).reshape(B, T, D)\n        if attention_mask is not None:\n            context = context * attention_mask[:, :, None]\n        return context, weights\n",
            )
        },
    ),
    Fresh(
        "mask_read_as_length",
        "turns the mask into lengths, as if filling stood at the end always",
        "legal input",
        "attention-mask",
        {
            "self-attention": (
                '            scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))\n',
                '            lengths = attention_mask.sum(dim=1, keepdim=True)  # [B, 1]\n            real = torch.arange(T, device=hidden.device) < lengths  # [B, T]\n            scores = scores.masked_fill(~real[:, None, None, :], float("-inf"))\n',
            )
        },
    ),
    Fresh(
        "dropout_rate_fixed",
        "drops out weights at a rate of 0.1 whatever the config says",
        "hard-wired",
        "attention-dropout",
        {
            "self-attention": (
                "self.dropout(weights) @ value",
                "torch.nn.functional.dropout(weights, 0.1, self.training) @ value",
            )
        },
    ),
    Fresh(
        "softmax_by_hand_overflows",
        "takes the softmax by hand without subtracting the maximum",
        "numerics",
        "attention-values",
        {
            "self-attention": (
                "        weights = scores.softmax(dim=-1)\n",
                "        powers = scores.exp()\n        weights = powers / powers.sum(dim=-1, keepdim=True)\n",
            )
        },
    ),
    Fresh(
        "probability_without_gradient_again",
        "computes the probability without gradient, as if it were a constant",
        "gradient",
        "layer-gelu",
        {
            "activation": (
                "    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n",
                "    with torch.no_grad():\n        probability = 0.5 * (1 + torch.erf(x / math.sqrt(2)))\n    return x * probability\n",
            )
        },
    ),
    Fresh(
        "relu_in_the_tails",
        "takes ReLU for everything more than 4 standard deviations out",
        "numerics",
        "layer-gelu",
        {
            "activation": (
                "    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n",
                "    exact = 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n    return torch.where(x.abs() > 4, x.clamp(min=0), exact)\n",
            )
        },
    ),
    Fresh(
        "dropout_inside_network",
        "drops out between GELU and the second matrix, too",
        "legal input",
        "layer-dropout",
        {
            "block": (
                "transformed = self.output(gelu(self.intermediate(hidden)))",
                "transformed = self.output(self.dropout(gelu(self.intermediate(hidden))))",
            )
        },
    ),
    Fresh(
        "bias_only_beside_mask",
        "hands the bias on only if there is a mask",
        "legal input",
        "layer-dropout",
        {
            "block": (
                "        context, _ = self.attention(hidden, attention_mask, bias)\n",
                "        if attention_mask is None:\n            context, _ = self.attention(hidden)\n        else:\n            context, _ = self.attention(hidden, attention_mask, bias)\n",
            )
        },
    ),
    Fresh(
        "one_filling_in_front_at_most",
        "takes position 1 whenever position 0 is filling",
        "legal input",
        "model-pooler",
        {
            "pool": (
                "first = attention_mask.int().argmax(dim=1)  # [B]",
                "first = (~attention_mask[:, 0]).long()  # [B]",
            )
        },
    ),
    Fresh(
        "moves_cls_in_callers_hidden",
        "writes the first real position into position 0 of the caller's hidden states",
        "state",
        "model-pooler",
        {
            "pool": (
                "            hidden = hidden[torch.arange(len(first), device=hidden.device), first, None]\n",
                "            hidden[:, 0] = hidden[torch.arange(len(first), device=hidden.device), first]\n",
            )
        },
    ),
    Fresh(
        "mask_guessed_from_ids",
        "takes id 0 for filling when no mask is given",
        "legal input",
        "model-wiring",
        {
            "whole": (
                "        for layer in self.layers[:depth]:\n",
                "        if attention_mask is None:\n            attention_mask = input_ids != 0\n        for layer in self.layers[:depth]:\n",
            )
        },
    ),
    Fresh(
        "depth_without_mask",
        "forgets the mask when a depth is given",
        "legal input",
        "model-wiring",
        {
            "whole": (
                "        for layer in self.layers[:depth]:\n            hidden = layer(hidden, attention_mask)\n",
                "        if depth is None:\n            for layer in self.layers:\n                hidden = layer(hidden, attention_mask)\n        else:\n            for number in range(depth):\n                hidden = self.layers[number](hidden)\n",
            )
        },
    ),
    Fresh(
        "inner_is_four_d",
        "takes four times D for the width of the network instead of intermediate_size",
        "hard-wired",
        "sizes-count",
        {
            "count": (
                "D, inner = config.hidden_size, config.intermediate_size",
                "D, inner = config.hidden_size, 4 * config.hidden_size",
            )
        },
    ),
    Fresh(
        "floats_for_layers",
        "counts by heads with N = D / H and returns a float for the layers",
        "legal input",
        "sizes-count",
        {
            "count": (
                "    attention = 4 * (D * D + D)  # query, key, value, output\n",
                "    heads = config.num_attention_heads\n    N = D / heads\n    attention = heads * 3 * (D * N + N) + D * D + D  # query, key, value of each head, output\n",
            )
        },
    ),
    Fresh(
        "one_digit_layers",
        "reads the number of a layer as one digit",
        "legal input",
        "loading-names",
        {
            "names": (
                '    _, number, part = owner.split(".", 2)\n',
                "    number, part = owner[7], owner[9:]\n",
            )
        },
    ),
    Fresh(
        "first_name_decides_prefix",
        "looks for the prefix bert. in the first name of the file only",
        "legal input",
        "loading-places",
        {
            "load": (
                '    for name in tensors:\n        plain = name.removeprefix("bert.")\n',
                '    prefix = "bert." if next(iter(tensors), "").startswith("bert.") else ""\n    for name in tensors:\n        plain = name.removeprefix(prefix)\n',
            )
        },
    ),
    Fresh(
        "loads_and_switches_to_eval",
        "switches the model to evaluation after loading",
        "state",
        "loading-places",
        {
            "load": (
                "    used = {stored[published_name(name)] for name in found}\n",
                "    model.eval()\n    used = {stored[published_name(name)] for name in found}\n",
            )
        },
    ),
    Fresh(
        "left_over_without_prefix_again",
        "returns the names that are left over without their bert.",
        "legal input",
        "loading-places",
        {
            "load": (
                "return sorted(name for name in tensors if name not in used)",
                'return sorted(name.removeprefix("bert.") for name in tensors if name not in used)',
            )
        },
    ),
    Fresh(
        "as_many_entries_will_do",
        "compares the number of entries and reshapes instead of comparing shapes",
        "legal input",
        "loading-refused",
        {
            "load": (
                '        if value.shape != parameter.shape:\n            raise ValueError(\n                f"{wanted} has shape {list(value.shape)}, but {name} has {list(parameter.shape)}: "\n                "is it a checkpoint of another size?"\n            )\n        found[name] = value\n',
                '        if value.numel() != parameter.numel():\n            raise ValueError(\n                f"{wanted} has shape {list(value.shape)}, but {name} has {list(parameter.shape)}: "\n                "is it a checkpoint of another size?"\n            )\n        found[name] = value.reshape(parameter.shape)\n',
            )
        },
    ),
    Fresh(
        "nan_received_never_given",
        "puts nan and inf only into what positions without a word get, never into what they give",
        "numerics",
        "check-refuses",
        {
            "own-check": (
                "for side in (words[:, None, :, None], words[:, None, None, :]):",
                "for side in (words[:, None, None, :],):",
            )
        },
    ),
]
MUTANTS += LATER
RIGHT_ANSWERS += [
    RightAnswer(
        "closed_form_and_padding",
        "works out in closed form how much each segment keeps, writes rows into tensors full of filling, and translates names word by word with regular expressions",
        {
            "pair": 'def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):\n    """Join one or two segments into the sequence that BERT reads."""\n    if second is None:\n        kept = first[: max_length - 2]\n        return [cls_id, *kept, sep_id], [0] * (len(kept) + 2)\n    room = max_length - 2 - between\n    a, b = len(first), len(second)\n    over = max(a + b - room, 0)\n    # first the longer one comes down to the shorter, as far as needed\n    even = min(over, abs(a - b))\n    if a > b:\n        a -= even\n    else:\n        b -= even\n    # then they take turns, and the second begins\n    rest = over - even\n    a, b = a - rest // 2, b - (rest + 1) // 2\n    front = [cls_id] + list(first[:a]) + [sep_id] * between\n    back = list(second[:b]) + [sep_id]\n    return front + back, [0] * len(front) + [1] * len(back)\n',
            "batch": 'def make_batch(inputs, pad_id=0, multiple=1):\n    """Put sequences of different lengths into tensors."""\n    lengths = torch.tensor([len(ids) for ids, _ in inputs])\n    T = math.ceil(int(lengths.max()) / multiple) * multiple\n    input_ids = torch.full((len(inputs), T), pad_id, dtype=torch.int64)\n    token_type_ids = torch.zeros(len(inputs), T, dtype=torch.int64)\n    for row, (ids, types) in enumerate(inputs):\n        input_ids[row, : len(ids)] = torch.tensor(ids)\n        token_type_ids[row, : len(ids)] = torch.tensor(types)\n    return {\n        "input_ids": input_ids,\n        "token_type_ids": token_type_ids,\n        "attention_mask": torch.arange(T)[None, :] < lengths[:, None],\n    }\n',
            "names": 'def published_name(name, old=False):\n    """The published name of a parameter of BertModel, in a file of today or in an old one."""\n    import re\n\n    for pattern, theirs in (\n        (r"^layers\\.(\\d+)\\.", r"encoder.layer.\\1."),\n        (r"^embeddings\\.(word|position|token_type)\\.", r"embeddings.\\1_embeddings."),\n        (r"^embeddings\\.norm\\.", "embeddings.LayerNorm."),\n        (r"\\.attention\\.(query|key|value)\\.", r".attention.self.\\1."),\n        (r"\\.intermediate\\.", ".intermediate.dense."),\n        (r"(?<!attention)\\.output\\.(?!dense)", ".output.dense."),\n        (r"\\.output_norm\\.", ".output.LayerNorm."),\n        (r"\\.attention_output\\.", ".attention.output.dense."),\n        (r"\\.attention_norm\\.", ".attention.output.LayerNorm."),\n    ):\n        name = re.sub(pattern, theirs, name)\n    if old:\n        name = re.sub(r"LayerNorm\\.weight$", "LayerNorm.gamma", name)\n        name = re.sub(r"LayerNorm\\.bias$", "LayerNorm.beta", name)\n    return name\n',
        },
    ),
    RightAnswer(
        "einsum_erfc_gather",
        "attends with einsum over [B, T, H, N] and torch.where for the mask, writes the normal probability with erfc, and gathers the first real position by a running count",
        {
            "self-attention": 'class SelfAttention(torch.nn.Module):\n    def __init__(self, config):\n        super().__init__()\n        D = config.hidden_size\n        self.num_heads = config.num_attention_heads\n        self.query = torch.nn.Linear(D, D)\n        self.key = torch.nn.Linear(D, D)\n        self.value = torch.nn.Linear(D, D)\n        self.dropout = torch.nn.Dropout(config.dropout)\n\n    def forward(self, hidden, attention_mask=None, bias=None):\n        q, k, v = (\n            part(hidden).unflatten(-1, (self.num_heads, -1))  # [B, T, H, N]\n            for part in (self.query, self.key, self.value)\n        )\n        scores = torch.einsum("bthn,bshn->bhts", q, k) * q.shape[-1] ** -0.5\n        if bias is not None:\n            scores = scores + bias[None]\n        if attention_mask is not None:\n            nothing = torch.full_like(scores, -math.inf)\n            scores = torch.where(attention_mask[:, None, None], scores, nothing)\n        weights = torch.softmax(scores, -1)\n        context = torch.einsum("bhts,bshn->bthn", self.dropout(weights), v)\n        return context.flatten(2), weights\n',
            "activation": 'def gelu(x):\n    """GELU of each number."""\n    smaller = torch.erfc(x * -math.sqrt(0.5)) / 2  # how probable a smaller number is\n    return smaller * x\n',
            "pool": "class Pooler(torch.nn.Module):\n    def __init__(self, config):\n        super().__init__()\n        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)\n\n    def forward(self, hidden, attention_mask=None):\n        if attention_mask is None:\n            chosen = hidden[:, 0]\n        else:\n            skipped = (attention_mask.long().cumsum(1) == 0).sum(1)  # [B]\n            at = skipped[:, None, None].expand(-1, 1, hidden.shape[-1])\n            chosen = hidden.gather(1, at).squeeze(1)\n        return self.dense(chosen).tanh()\n",
        },
    ),
    RightAnswer(
        "sizes_from_shapes",
        "counts by a list of shapes, runs the layers by number, and loads by asking for every spelling of a name that a file may have",
        {
            "count": 'def count_parameters(config):\n    """How many numbers a BertModel has."""\n\n    def linear(inside, outside):\n        return (inside + 1) * outside\n\n    D, I = config.hidden_size, config.intermediate_size\n    norm = 2 * D\n    tables = (config.vocab_size, config.max_position_embeddings, config.type_vocab_size)\n    layer = sum([linear(D, D)] * 4 + [linear(D, I), linear(I, D), norm, norm])\n    return dict(\n        embeddings=sum(rows * D for rows in tables) + norm,\n        layers=sum(layer for _ in range(config.num_hidden_layers)),\n        pooler=linear(D, D),\n    )\n',
            "whole": "class BertModel(torch.nn.Module):\n    def __init__(self, config):\n        super().__init__()\n        self.config = config\n        self.embeddings = BertEmbeddings(config)\n        self.layers = torch.nn.ModuleList(\n            BertLayer(config) for _ in range(config.num_hidden_layers)\n        )\n        self.pooler = Pooler(config)\n\n    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):\n        depth = len(self.layers) if depth is None else depth\n        states = [self.embeddings(input_ids, token_type_ids=token_type_ids)]\n        for number in range(depth):\n            states.append(self.layers[number](states[-1], attention_mask=attention_mask))\n        return states[-1], self.pooler(states[-1])\n",
            "load": 'def load_published(model, tensors):\n    """Put the numbers of a published checkpoint into a BertModel."""\n    left_over = set(tensors)\n    pairs = []\n    for ours, parameter in model.named_parameters():\n        spellings = [\n            prefix + published_name(ours, old=old) for prefix in ("", "bert.") for old in (False, True)\n        ]\n        there = [name for name in spellings if name in tensors]\n        if not there:\n            raise ValueError(f"There is no {spellings[0]} in the file.")\n        name = there[0]\n        if tuple(tensors[name].shape) != tuple(parameter.shape):\n            raise ValueError(\n                f"{name} is {tuple(tensors[name].shape)} in the file and {tuple(parameter.shape)} in the model."\n            )\n        pairs.append((parameter, tensors[name]))\n        left_over.discard(name)\n    for parameter, value in pairs:\n        parameter.data.copy_(value)\n    return sorted(left_over)\n',
        },
    ),
]
