"""Wrong answers to the BERT assignment, written from the task's text alone.

Whoever wrote them had not seen the hidden tests. ``python tests/assignments/fresh.py
bert`` says which get full marks.
"""

from fresh import one_by_one

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
