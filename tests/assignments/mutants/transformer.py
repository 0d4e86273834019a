"""Wrong answers to the transformer assignment that people give, and right answers that people write differently.

A change is either a pair (text in the reference, text to put there) or the whole cell. "visible" means that the tests
that the student has refuse it already; "hidden" that only the grader's do. A mistake that spoils the translations names
``TRANSLATION`` among the cells that fail with it, where the student reads in which part to look. Longer than 400 lines
because it is a catalogue: look an entry up, do not read it through.
"""

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks

TRANSLATION = "greedy-translation"

LOOPS = [
    Mutant(
        "loops_without_scaling",
        "forgets the square root of D",
        "attention-loops",
        "Did you forget to divide each score by the square root of D?",
        "visible",
        {"by-loops": (" / math.sqrt(len(q))", "")},
    ),
    Mutant(
        "loops_scaled_by_d",
        "divides by D instead of its square root",
        "attention-loops",
        "by the square root of D, not by D",
        "visible",
        {"by-loops": ("math.sqrt(len(q))", "len(q)")},
    ),
    Mutant(
        "loops_capped_before_scaling",
        "caps the dot product and divides after that",
        "attention-loops",
        "Cap each score after it was divided by the square root of D",
        "visible",
        {
            "by-loops": (
                "cap * (score / cap).tanh()",
                "cap * (score * math.sqrt(len(q)) / cap).tanh() / math.sqrt(len(q))",
            )
        },
    ),
    Mutant(
        "loops_overflow",
        "takes exponentials without subtracting the largest score",
        "attention-loops",
        "Subtract the largest score of the row",
        "visible",
        {"by-loops": ("(score - largest).exp()", "score.exp()")},
    ),
    Mutant(
        "as_many_keys_as_queries",
        "compares each query with as many keys as there are queries",
        "attention-loops",
        "The output for the second query alone is wrong",
        "visible",
        {"by-loops": ("for k in key]", "for k in key[: len(query)]]")},
    ),
]

SCALE = "math.sqrt(query.shape[-1])"
MATRICES = [
    Mutant(
        "no_scaling",
        "forgets the square root of D",
        "attention-matrices",
        "Did you forget to divide by the square root of D?",
        "visible",
        {"by-matrices": (f" / {SCALE}", "")},
        ("attention-mask", "multi-head-values", TRANSLATION),
    ),
    Mutant(
        "scaled_by_d",
        "divides by D instead of its square root",
        "attention-matrices",
        "by the square root of D, not by D",
        "visible",
        {"by-matrices": (SCALE, "query.shape[-1]")},
        ("attention-mask", "multi-head-values", TRANSLATION),
    ),
    Mutant(
        "scaled_by_d_model",
        "divides by the square root of the features of all heads together",
        "attention-matrices",
        "not of all heads together",
        "hidden",
        {
            "by-matrices": (
                SCALE,
                "math.sqrt(query.shape[-1] * (query.shape[1] if query.dim() == 4 else 1))",
            )
        },
        ("attention-mask", "multi-head-values", TRANSLATION),
    ),
    Mutant(
        "scaled_by_number_of_keys",
        "divides by the square root of S",
        "attention-matrices",
        "not the number of keys",
        "hidden",
        {"by-matrices": (SCALE, "math.sqrt(key.shape[-2])")},
        ("attention-mask", "multi-head-values", "multi-head-mask"),
    ),
    Mutant(
        "scores_cut_off_at_the_cap",
        "cuts scores off at the cap instead of bending them",
        "attention-matrices",
        "Cap the scores after the division",
        "visible",
        {"by-matrices": ("cap * torch.tanh(scores / cap)", "scores.clamp(-cap, cap)")},
        ("attention-mask",),
    ),
    Mutant(
        "softmax_over_queries",
        "takes the softmax over the queries, so that columns sum to 1",
        "attention-matrices",
        "take the softmax over the keys, the last dimension",
        "visible",
        {
            "by-matrices": (
                "torch.softmax(scores, dim=-1)",
                "torch.softmax(scores, dim=-2)",
            )
        },
        ("attention-mask", "multi-head-values", "multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "still_a_loop",
        "loops over the queries instead of multiplying matrices",
        "attention-matrices",
        "Here matrices do the work",
        "visible",
        {
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    rows = []
    for t in range(query.shape[-2]):
        scores = (query[..., t : t + 1, :] * key).sum(-1) / math.sqrt(query.shape[-1])
        scores = scores if cap is None else cap * torch.tanh(scores / cap)
        if mask is not None:
            allowed = mask.expand(*mask.shape[:-2], query.shape[-2], key.shape[-2])[..., t, :]
            scores = scores.masked_fill(~allowed, float("-inf"))
        rows.append(torch.softmax(scores, dim=-1))
    weights = torch.stack(rows, dim=-2)
    return weights @ value, weights"""
        },
    ),
    Mutant(
        "ready_made_attention",
        "lets torch do the attending",
        "attention-matrices",
        "which this assignment withholds",
        "visible",
        {
            "by-matrices": (
                "return weights @ value, weights",
                "return torch.nn.functional.scaled_dot_product_attention(query, key, value, mask), weights",
            )
        },
        (
            "attention-mask",
            "multi-head-values",
            "multi-head-mask",
            "greedy-translation",
        ),
    ),
    Mutant(
        "weights_not_returned",
        "returns the output alone",
        "attention-matrices",
        "attention must return (output, weights)",
        "visible",
        {"by-matrices": ("return weights @ value, weights", "return weights @ value")},
        ("attention-mask", "multi-head-values", "multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "gradient_cut",
        "detaches the weights, so that nothing upstream learns",
        "attention-matrices",
        "no gradient reaches query",
        "hidden",
        {
            "by-matrices": (
                "weights = torch.softmax(scores, dim=-1)",
                "weights = torch.softmax(scores, dim=-1).detach()",
            )
        },
        ("attention-mask", "multi-head-values"),
    ),
    Mutant(
        "mask_after_softmax",
        "sets masked weights to 0 after the softmax, so that rows no longer sum to 1",
        "attention-mask",
        "Mask the scores, before the softmax",
        "visible",
        {
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights"""
        },
        ("multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "mask_after_softmax_renormalised",
        "masks after the softmax and divides by what is left, which may be 0",
        "attention-mask",
        "contains nan",
        "hidden",
        {
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True)
    return weights @ value, weights"""
        },
    ),
    Mutant(
        "mask_upside_down",
        "takes True for padding",
        "attention-mask",
        "True in the mask means: may attend",
        "visible",
        {"by-matrices": ("masked_fill(~mask", "masked_fill(mask")},
        ("multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "mask_ignored",
        "forgets the mask",
        "attention-mask",
        "Masked positions must get weight exactly 0",
        "visible",
        {"by-matrices": ("if mask is not None:", "if False:")},
        ("multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "scores_times_mask",
        "multiplies scores by the mask: a score of 0 still gets weight",
        "attention-mask",
        "Masked positions must get weight exactly 0",
        "visible",
        {"by-matrices": ('scores.masked_fill(~mask, float("-inf"))', "scores * mask")},
        ("multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "minus_1e9_for_masked",
        "fills in -1e9, which scores may undercut and float16 cannot hold",
        "attention-mask",
        "-1e9 is not smaller than every score",
        "hidden",
        {"by-matrices": ('float("-inf")', "-1e9")},
    ),
    Mutant(
        "minus_1e4_for_masked",
        "fills in -1e4, the number that people choose so that float16 can hold it",
        "attention-mask",
        "-1e9 is not smaller than every score",
        "hidden",
        {"by-matrices": ('float("-inf")', "-1e4")},
    ),
]

MULTI_HEAD = [
    Mutant(
        "heads_split_without_transpose",
        "reshapes to [B, H, T, N] at once, which mixes positions",
        "multi-head-split",
        "Reshape to [B, T, H, N], then swap T and H",
        "visible",
        {
            "heads": (
                "hidden.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)",
                "hidden.reshape(B, num_heads, T, D // num_heads)",
            )
        },
        ("multi-head-values", "multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "features_dealt_out",
        "gives head h every H-th feature",
        "multi-head-split",
        "Your head 0 owns every second feature",
        "visible",
        {
            "heads": (
                "hidden.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)",
                "hidden.reshape(B, T, D // num_heads, num_heads).permute(0, 3, 1, 2)",
            )
        },
        ("multi-head-values", TRANSLATION),
    ),
    Mutant(
        "dealt_heads_merged_side_by_side",
        "deals features out, and puts heads side by side again",
        "multi-head-split",
        "It is the inverse of split_heads",
        "visible",
        {
            "heads": (
                "heads.permute(0, 2, 3, 1).flatten(2)",
                "heads.transpose(1, 2).flatten(2)",
            )
        },
    ),
    Mutant(
        "heads_merged_without_transpose",
        "reshapes [B, H, T, N] to [B, T, D] at once",
        "multi-head-split",
        "Swap T and H back with transpose(1, 2) before you reshape",
        "visible",
        {
            "heads": (
                "heads.transpose(1, 2).reshape(B, T, H * N)",
                "heads.reshape(B, T, H * N)",
            )
        },
        ("multi-head-values", "multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "two_heads_only",
        "merges the two heads of the example by hand",
        "multi-head-split",
        "the table of merged heads must have another shape",
        "hidden",
        {
            "heads": (
                "heads.transpose(1, 2).reshape(B, T, H * N)",
                "torch.cat([heads[:, 0], heads[:, 1]], dim=-1)",
            )
        },
        ("multi-head-values", "multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "output_projection_forgotten",
        "returns the merged heads without the last matrix",
        "multi-head-values",
        "Is to_output forgotten?",
        "visible",
        {"multi-head": ("self.to_output(merge_heads(mixed))", "merge_heads(mixed)")},
        (TRANSLATION,),
    ),
    Mutant(
        "values_not_projected",
        "mixes the values as they come in",
        "multi-head-values",
        "Is to_value forgotten?",
        "visible",
        {"multi-head": ("split_heads(self.to_value(value)", "split_heads((value)")},
        (TRANSLATION,),
    ),
    Mutant(
        "scaled_by_all_features",
        "computes the scores itself and divides by the square root of D instead of N",
        "multi-head-values",
        "A query of one head has 2",
        "visible",
        {
            "multi-head": (
                "mixed, weights = attention(query, key, value, mask)",
                "mixed, weights = attention(query / self.num_heads**0.5, key, value, mask)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "one_big_head",
        "does not split: one head with all features",
        "multi-head-values",
        "The weights of the two heads must have shape [1, 2, 2, 2]",
        "visible",
        {
            "multi-head": """class MultiHeadAttention(torch.nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = 1
        self.to_query = torch.nn.Linear(dim, dim)
        self.to_key = torch.nn.Linear(dim, dim)
        self.to_value = torch.nn.Linear(dim, dim)
        self.to_output = torch.nn.Linear(dim, dim)

    def forward(self, query, key, value, mask=None, active=None):
        mixed, weights = attention(self.to_query(query), self.to_key(key), self.to_value(value), mask)
        return self.to_output(mixed), weights.unsqueeze(1)"""
        },
        ("multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "weights_averaged_over_heads",
        "returns the mean of the heads' weights",
        "multi-head-values",
        "The weights of the two heads must have shape [1, 2, 2, 2]",
        "visible",
        {
            "multi-head": (
                "merge_heads(mixed)), weights",
                "merge_heads(mixed)), weights.mean(1)",
            )
        },
        ("multi-head-mask",),
    ),
    Mutant(
        "inactive_heads_still_biased",
        "leaves inactive heads in",
        "multi-head-values",
        "What head 0 gives is 0 when the heads are merged",
        "visible",
        {"multi-head": ("if active is not None:", "if False:")},
        ("multi-head-mask",),
    ),
    Mutant(
        "keys_from_the_query",
        "projects the query to keys, which is right for self-attention only",
        "multi-head-values",
        "Expected size",
        "visible",
        {
            "multi-head": (
                "query = split_heads(self.to_query(query)",
                "key = query\n        query = split_heads(self.to_query(query)",
            )
        },
        ("multi-head-mask", TRANSLATION),
    ),
    Mutant(
        "values_from_the_keys",
        "projects the key to values, though values may be others",
        "multi-head-values",
        "each goes through its own matrix",
        "hidden",
        {
            "multi-head": (
                "query = split_heads(self.to_query(query)",
                "value = key\n        query = split_heads(self.to_query(query)",
            )
        },
    ),
    Mutant(
        "ready_made_multi_head",
        "wraps torch's own module",
        "multi-head-values",
        "which this assignment withholds",
        "visible",
        {
            "multi-head": (
                "query = split_heads(self.to_query(query)",
                "torch.nn.MultiheadAttention(4, 2)\n        query = split_heads(self.to_query(query)",
            )
        },
        ("multi-head-mask", "greedy-translation"),
    ),
    Mutant(
        "mask_on_the_wrong_axis",
        "puts the axis of the heads in front of the batch",
        "multi-head-mask",
        "with mask.unsqueeze(1), so that it broadcasts to [B, H, T, S]",
        "visible",
        {"multi-head": ("mask = mask.unsqueeze(1)", "mask = mask.unsqueeze(0)")},
        (TRANSLATION,),
    ),
    Mutant(
        "mask_without_axis",
        "leaves the mask [B, 1, S] as it is, so that B meets H",
        "multi-head-mask",
        "The mask [B, 1, S] has no axis for heads",
        "visible",
        {"multi-head": ("mask = mask.unsqueeze(1)", "mask = mask")},
        (TRANSLATION,),
    ),
    Mutant(
        "mask_not_passed_on",
        "calls attention without the mask",
        "multi-head-mask",
        "In sentence 0 the third position is padding",
        "visible",
        {
            "multi-head": (
                "attention(query, key, value, mask)",
                "attention(query, key, value)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "first_row_of_the_mask",
        "uses the first row of the mask for all queries",
        "multi-head-mask",
        "With a mask [B, T, S]",
        "hidden",
        {"multi-head": ("mask = mask.unsqueeze(1)", "mask = mask[:, :1].unsqueeze(1)")},
        (TRANSLATION,),
    ),
]

MASKS = [
    Mutant(
        "padding_upside_down",
        "marks the padding instead of the words",
        "masks-padding",
        "Yours is upside down",
        "visible",
        {"masks": ("places < lengths", "places >= lengths")},
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "padding_one_too_long",
        "counts the position behind the last word as a word",
        "masks-padding",
        "Positions count from 0",
        "visible",
        {"masks": ("places < lengths", "places <= lengths")},
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "padding_one_too_short",
        "leaves out the last word",
        "masks-padding",
        "The last word is missing",
        "visible",
        {
            "masks": (
                "places < lengths.unsqueeze(1)",
                "places < lengths.unsqueeze(1) - 1",
            )
        },
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "padding_without_axis",
        "returns [B, S]",
        "masks-padding",
        "must have shape [2, 1, 3]; yours has [2, 3]",
        "visible",
        {
            "masks": (
                "(places < lengths.unsqueeze(1)).unsqueeze(1)",
                "places < lengths.unsqueeze(1)",
            )
        },
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "size_of_the_longest",
        "makes the mask as wide as the longest sentence",
        "masks-padding",
        "must have shape [2, 1, 4]; yours has [2, 1, 3]",
        "visible",
        {"masks": ("torch.arange(size,", "torch.arange(lengths.max(),")},
        ("masks-both",),
    ),
    Mutant(
        "causal_upside_down",
        "is True where nothing may be attended to",
        "masks-causal",
        "Yours is upside down",
        "visible",
        {"masks": (".tril()", ".triu(1)")},
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "causal_transposed",
        "lets each position see itself and what comes later",
        "masks-causal",
        "itself and what comes later",
        "visible",
        {"masks": (".tril()", ".triu()")},
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "causal_off_by_one_below",
        "does not let a position attend to itself",
        "masks-causal",
        "A position may attend to itself",
        "visible",
        {"masks": (".tril()", ".tril(-1)")},
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "causal_off_by_one_above",
        "lets each position see the next one",
        "masks-causal",
        "the very word that it is to predict",
        "visible",
        {"masks": (".tril()", ".tril(1)")},
        ("masks-both", TRANSLATION),
    ),
    Mutant(
        "filling_always_behind",
        "takes no notice of the side of the filling",
        "masks-padding",
        "The words stand at the end",
        "visible",
        {"masks": ("    if left:", "    if False:")},
    ),
    Mutant(
        "window_one_too_wide",
        "lets a position see as many others as the window is wide",
        "masks-causal",
        "Each position sees itself and the one before it",
        "visible",
        {"masks": ("mask.triu(1 - window)", "mask.triu(-window)")},
        ("masks-both",),
    ),
    Mutant(
        "causal_or_padding",
        "joins the two masks with or",
        "masks-both",
        "join the masks with &",
        "visible",
        {
            "masks": (
                "padding_mask(lengths, size) & causal",
                "padding_mask(lengths, size) | causal",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "padding_of_queries",
        "masks the rows of padding instead of its columns",
        "masks-both",
        "its third column is False everywhere",
        "visible",
        {
            "masks": (
                "padding_mask(lengths, size) & causal",
                "padding_mask(lengths, size).mT & causal",
            )
        },
    ),
    Mutant(
        "decoder_mask_forgets_padding",
        "returns the causal mask for each sentence",
        "masks-both",
        "its third column is False everywhere",
        "visible",
        {
            "masks": (
                "padding_mask(lengths, size) & causal_mask(size, lengths.device, window)",
                "causal_mask(size, lengths.device).expand(len(lengths), size, size)",
            )
        },
    ),
]

TABLE = "table[:, 0::2] = torch.sin(place * frequency)\n    table[:, 1::2] = torch.cos(place * frequency)"
POSITIONS = [
    Mutant(
        "sines_then_cosines",
        "puts all sines in the first half and all cosines in the second",
        "positions-encoding",
        "Yours has all sines first",
        "visible",
        {
            "encoding": (
                TABLE,
                "table[:, : dim // 2] = torch.sin(place * frequency)\n    table[:, dim // 2 :] = torch.cos(place * frequency)",
            )
        },
        ("positions-embed", TRANSLATION),
    ),
    Mutant(
        "sine_and_cosine_swapped",
        "puts cosines in the even columns",
        "positions-encoding",
        "Sines belong to the even columns",
        "visible",
        {
            "encoding": (
                TABLE,
                "table[:, 1::2] = torch.sin(place * frequency)\n    table[:, 0::2] = torch.cos(place * frequency)",
            )
        },
        ("positions-embed", TRANSLATION),
    ),
    Mutant(
        "cosines_then_sines",
        "puts all cosines in the first half and all sines in the second",
        "positions-encoding",
        "Sines belong to the even columns",
        "visible",
        {
            "encoding": (
                TABLE,
                "table[:, dim // 2 :] = torch.sin(place * frequency)\n    table[:, : dim // 2] = torch.cos(place * frequency)",
            )
        },
        ("positions-embed", TRANSLATION),
    ),
    Mutant(
        "exponent_without_the_two",
        "raises the base to i / D instead of 2i / D",
        "positions-encoding",
        "The exponent of the second pair is 2i / D",
        "visible",
        {
            "encoding": (
                "-torch.arange(0, dim, 2) / dim",
                "-torch.arange(dim // 2) / dim",
            )
        },
        ("positions-embed", TRANSLATION),
    ),
    Mutant(
        "positions_from_one",
        "numbers positions from 1",
        "positions-encoding",
        "is wrong at [0, 0]: expected 0.0000, yours is 0.8415",
        "visible",
        {
            "encoding": (
                "torch.arange(first, first + length).unsqueeze(1)",
                "torch.arange(1, length + 1).unsqueeze(1)",
            )
        },
        ("positions-embed",),
    ),
    Mutant(
        "positions_always_from_zero",
        "takes no notice of the first position",
        "positions-encoding",
        "Its first row is that of position 2",
        "visible",
        {"encoding": ("torch.arange(first, first + length)", "torch.arange(length)")},
    ),
    Mutant(
        "base_ignored",
        "always uses 10,000",
        "positions-encoding",
        "with 4 features and base 100",
        "visible",
        {"encoding": ("base **", "10000.0 **")},
    ),
    Mutant(
        "frequency_not_inverted",
        "multiplies by the power instead of dividing",
        "positions-encoding",
        "divided by the base to the power 2i / D",
        "visible",
        {
            "encoding": (
                "(-torch.arange(0, dim, 2) / dim)",
                "(torch.arange(0, dim, 2) / dim)",
            )
        },
        ("positions-embed", TRANSLATION),
    ),
    Mutant(
        "embedding_not_scaled",
        "adds the position to the embedding as it is",
        "positions-embed",
        "Multiply the embedding by the square root of D",
        "visible",
        {"embed": (" * math.sqrt(D)", "")},
        (TRANSLATION,),
    ),
    Mutant(
        "embedding_times_d",
        "multiplies by D",
        "positions-embed",
        "not by D",
        "visible",
        {"embed": ("math.sqrt(D)", "D")},
        (TRANSLATION,),
    ),
    Mutant(
        "positions_scaled_too",
        "scales the sum",
        "positions-embed",
        "Scale the embedding alone",
        "visible",
        {
            "embed": (
                "embedding[tokens] * math.sqrt(D) + positional_encoding(T, D).to(embedding)",
                "(embedding[tokens] + positional_encoding(T, D).to(embedding)) * math.sqrt(D)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "positions_forgotten",
        "adds no positions",
        "positions-embed",
        "The positions are missing",
        "visible",
        {"embed": (" + positional_encoding(T, D).to(embedding)", "")},
        (TRANSLATION,),
    ),
    Mutant(
        "positions_along_the_batch",
        "gives the positions to the sentences instead of the words",
        "positions-embed",
        "Your positions run along the batch",
        "visible",
        {
            "embed": (
                "positional_encoding(T, D).to(embedding)",
                "positional_encoding(len(tokens), D).to(embedding)[:, None]",
            )
        },
        (TRANSLATION,),
    ),
]

LAYER_NORM = [
    Mutant(
        "unbiased_variance",
        "divides the sum of squares by D - 1, which is torch's default",
        "layer-norm-values",
        "not by D - 1: torch.var needs correction=0",
        "visible",
        {"norm": ("correction=0, ", "")},
    ),
    Mutant(
        "eps_outside_the_root",
        "adds eps to the standard deviation",
        "layer-norm-values",
        "eps belongs under the root",
        "visible",
        {
            "norm": (
                "torch.sqrt(variance + self.eps)",
                "(torch.sqrt(variance) + self.eps)",
            )
        },
        ("layer-norm-positions",),
    ),
    Mutant(
        "eps_and_variance_of_torch_std",
        "divides by torch.std plus eps, as a well-known tutorial does",
        "layer-norm-values",
        "Divide by D, not by D - 1, and put eps under the root",
        "visible",
        {
            "norm": (
                "torch.sqrt(variance + self.eps)",
                "(hidden.std(dim=-1, keepdim=True) + self.eps)",
            )
        },
    ),
    Mutant(
        "always_centred",
        "takes the mean away in any case",
        "layer-norm-values",
        "Nothing is taken away",
        "visible",
        {"norm": ("if not self.centred:", "if False:")},
        ("layer-norm-positions",),
    ),
    Mutant(
        "eps_forgotten",
        "divides by 0 where all features are equal",
        "layer-norm-values",
        "Use self.eps, here 0.5, under the root",
        "visible",
        {"norm": ("variance + self.eps", "variance")},
        ("layer-norm-positions",),
    ),
    Mutant(
        "eps_typed_in",
        "uses 1e-5 whatever eps was asked for",
        "layer-norm-values",
        "Use self.eps, here 0.5, under the root",
        "visible",
        {"norm": ("self.eps)", "1e-5)")},
    ),
    Mutant(
        "divided_by_the_variance",
        "forgets the root",
        "layer-norm-values",
        "the root of the variance plus eps",
        "visible",
        {"norm": ("torch.sqrt(variance + self.eps)", "(variance + self.eps)")},
        ("layer-norm-positions", TRANSLATION),
    ),
    Mutant(
        "gain_and_offset_forgotten",
        "returns the normed features as they are",
        "layer-norm-values",
        "Are self.gain and self.offset forgotten?",
        "visible",
        {
            "norm": (
                "self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset",
                "(hidden - mean) / torch.sqrt(variance + self.eps)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "offset_before_gain",
        "adds the offset and then multiplies by the gain",
        "layer-norm-values",
        "Multiply by self.gain first, then add self.offset",
        "visible",
        {
            "norm": (
                "self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset",
                "self.gain * ((hidden - mean) / torch.sqrt(variance + self.eps) + self.offset)",
            )
        },
    ),
    Mutant(
        "ready_made_norm",
        "calls torch's function",
        "layer-norm-values",
        "which this assignment withholds",
        "visible",
        {
            "norm": (
                "mean = hidden.mean",
                "torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])\n        mean = hidden.mean",
            )
        },
        ("layer-norm-positions", "greedy-translation"),
    ),
    Mutant(
        "normed_over_the_batch",
        "takes mean and variance over the sentences, as batch norm does",
        "layer-norm-positions",
        "not over the batch",
        "visible",
        {
            "norm": (
                "mean = hidden.mean(dim=-1, keepdim=True)\n        variance = hidden.var(dim=-1,",
                "mean = hidden.mean(dim=0, keepdim=True)\n        variance = hidden.var(dim=0,",
            )
        },
        ("layer-norm-values", TRANSLATION),
    ),
    Mutant(
        "normed_over_time",
        "takes mean and variance over the positions",
        "layer-norm-positions",
        "of one position alone, dim=-1",
        "visible",
        {
            "norm": (
                "mean = hidden.mean(dim=-1, keepdim=True)\n        variance = hidden.var(dim=-1,",
                "mean = hidden.mean(dim=-2, keepdim=True)\n        variance = hidden.var(dim=-2,",
            )
        },
        ("layer-norm-values", TRANSLATION),
    ),
    Mutant(
        "normed_over_the_sentence",
        "takes mean and variance over positions and features together",
        "layer-norm-positions",
        "of one position alone, dim=-1",
        "visible",
        {
            "norm": (
                "mean = hidden.mean(dim=-1, keepdim=True)\n        variance = hidden.var(dim=-1,",
                "mean = hidden.mean(dim=(-2, -1), keepdim=True)\n        variance = hidden.var(dim=(-2, -1),",
            )
        },
        ("layer-norm-values", TRANSLATION),
    ),
]

ENCODER = [
    Mutant(
        "feed_forward_without_relu",
        "leaves out the activation, so that two matrices are one",
        "encoder-block-feed-forward",
        "Is ReLU between the two layers forgotten?",
        "visible",
        {"feed-forward": ("torch.relu(self.inner(hidden))", "self.inner(hidden)")},
        (TRANSLATION,),
    ),
    Mutant(
        "gated_unit_behind_a_relu",
        "puts ReLU on both sides of the gate",
        "encoder-block-feed-forward",
        "The inner layer has no ReLU then",
        "visible",
        {"feed-forward": ("* self.inner(hidden))", "* self.inner(hidden).relu())")},
    ),
    Mutant(
        "relu_at_the_end",
        "applies the activation to the output",
        "encoder-block-feed-forward",
        "between the two layers, not at the end",
        "visible",
        {
            "feed-forward": (
                "self.outer(torch.relu(self.inner(hidden)))",
                "torch.relu(self.outer(self.inner(hidden)))",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "gelu_for_relu",
        "uses GELU, as BERT does",
        "encoder-block-feed-forward",
        "ReLU [1, 0, 2]",
        "visible",
        {"feed-forward": ("torch.relu(", "torch.nn.functional.gelu(")},
    ),
    Mutant(
        "residual_inside_the_network",
        "adds the residual in the network and again in the block",
        "encoder-block-feed-forward",
        "The block adds the residual",
        "visible",
        {
            "feed-forward": (
                "return self.outer(torch",
                "return hidden + self.outer(torch",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "norm_before_instead_of_after",
        "norms what goes into each step instead of the sum",
        "encoder-block-wiring",
        "The norm comes after the sum, not before the attention",
        "visible",
        {
            "encoder": (
                "attended, _ = self.self_attention(hidden, hidden, hidden, mask)\n        hidden = self.attention_norm(self.alpha * hidden + attended)\n"
                "        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))",
                "normed = self.attention_norm(hidden)\n        hidden = self.alpha * hidden + self.self_attention(normed, normed, normed, mask)[0]\n"
                "        return self.alpha * hidden + self.feed_forward(self.feed_forward_norm(hidden))",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "norm_of_attention_only",
        "norms what attention gives and adds the residual after that",
        "encoder-block-wiring",
        "Add the block's input to what attention gives: the residual",
        "visible",
        {
            "encoder": (
                "self.attention_norm(self.alpha * hidden + attended)",
                "self.alpha * hidden + self.attention_norm(attended)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "no_first_residual",
        "forgets the residual around the attention",
        "encoder-block-wiring",
        "the residual",
        "visible",
        {
            "encoder": (
                "self.attention_norm(self.alpha * hidden + attended)",
                "self.attention_norm(attended)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "no_second_residual",
        "forgets the residual around the network",
        "encoder-block-wiring",
        "The second residual is left out",
        "visible",
        {
            "encoder": (
                "self.alpha * hidden + self.feed_forward(hidden)",
                "self.feed_forward(hidden)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "residual_from_the_block_input",
        "adds the block's input to the network's output",
        "encoder-block-wiring",
        "not from the block's input",
        "visible",
        {
            "encoder": (
                "        hidden = self.attention_norm(self.alpha * hidden + attended)\n        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))",
                "        normed = self.attention_norm(self.alpha * hidden + attended)\n        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(normed))",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "residual_from_before_the_norm",
        "adds the sum before the first norm to the network's output",
        "encoder-block-wiring",
        "not from the sum before it",
        "visible",
        {
            "encoder": (
                "        hidden = self.attention_norm(self.alpha * hidden + attended)\n        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))",
                "        hidden = self.alpha * hidden + attended\n        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(self.attention_norm(hidden)))",
            )
        },
    ),
    Mutant(
        "norm_only_once",
        "leaves out the first norm",
        "encoder-block-wiring",
        "The block never calls attention_norm",
        "visible",
        {
            "encoder": (
                "hidden = self.attention_norm(self.alpha * hidden + attended)",
                "hidden = self.alpha * hidden + attended",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "one_norm_for_both",
        "uses the first norm twice",
        "encoder-block-wiring",
        "The block calls attention_norm 2 times instead of once",
        "visible",
        {"encoder": ("return self.feed_forward_norm(", "return self.attention_norm(")},
    ),
    Mutant(
        "encoder_mask_forgotten",
        "does not pass the mask to the self-attention",
        "encoder-block-wiring",
        "padding would be attended to",
        "visible",
        {
            "encoder": (
                "self.self_attention(hidden, hidden, hidden, mask)",
                "self.self_attention(hidden, hidden, hidden)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "alpha_on_the_network",
        "multiplies what the network gives",
        "encoder-block-wiring",
        "With alpha = 3, what went in counts three times",
        "visible",
        {
            "encoder": (
                "(self.alpha * hidden + self.feed_forward(hidden))",
                "(hidden + self.alpha * self.feed_forward(hidden))",
            )
        },
    ),
]

CROSS = "self.cross_attention(hidden, memory, memory, memory_mask)"
DECODER = [
    Mutant(
        "alpha_once_in_the_decoder",
        "multiplies the input of the block alone",
        "decoder-block-wiring",
        "With alpha = 3, what went in counts three times",
        "visible",
        {
            "decoder": (
                "self.cross_norm(self.alpha * hidden + attended)",
                "self.cross_norm(hidden + attended)",
            )
        },
        ("decoder-block-masks",),
    ),
    Mutant(
        "cross_attention_keys_from_the_decoder",
        "takes keys and values of the cross-attention from the decoder",
        "decoder-block-wiring",
        "The keys of the cross-attention come from the encoder: the memory. Yours come from the decoder",
        "visible",
        {"decoder": (CROSS, "self.cross_attention(hidden, hidden, hidden)")},
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_attention_values_from_the_decoder",
        "takes the keys from the memory and the values from the decoder",
        "decoder-block-wiring",
        "The values of the cross-attention come from the encoder",
        "visible",
        {
            "decoder": (
                CROSS,
                "self.cross_attention(hidden, memory, hidden, memory_mask)",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_attention_queries_from_the_memory",
        "swaps who asks and who is asked",
        "decoder-block-wiring",
        "The queries come from the decoder; the memory gives keys and values",
        "visible",
        {"decoder": (CROSS, "self.cross_attention(memory, hidden, hidden)")},
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_attention_asked_by_the_input",
        "takes the queries of the cross-attention from the block's input",
        "decoder-block-wiring",
        "what the first norm gave, not the block's input",
        "visible",
        {
            "decoder": (
                "        hidden = self.self_norm(self.alpha * hidden + attended)\n        attended, _ = "
                + CROSS,
                "        asking, hidden = hidden, self.self_norm(self.alpha * hidden + attended)\n        attended, _ = self.cross_attention(asking, memory, memory, memory_mask)",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_residual_from_the_memory",
        "adds the memory to what cross-attention gives, which fails unless both are equally long",
        "decoder-block-wiring",
        "not from the memory",
        "visible",
        {
            "decoder": (
                "self.cross_norm(self.alpha * hidden + attended)",
                "self.cross_norm(memory + attended)",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_residual_forgotten",
        "forgets the residual around the cross-attention",
        "decoder-block-wiring",
        "The second residual is left out",
        "visible",
        {
            "decoder": (
                "self.cross_norm(self.alpha * hidden + attended)",
                "self.cross_norm(attended)",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "decoder_norm_before_instead_of_after",
        "norms what goes into the self-attention",
        "decoder-block-wiring",
        "The norm comes after the sum, not before the attention",
        "visible",
        {
            "decoder": (
                "attended, _ = self.self_attention(hidden, hidden, hidden, mask)\n        hidden = self.self_norm(self.alpha * hidden + attended)",
                "normed = self.self_norm(hidden)\n        hidden = self.alpha * hidden + self.self_attention(normed, normed, normed, mask)[0]",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_norm_forgotten",
        "leaves out the second norm",
        "decoder-block-wiring",
        "The block never calls cross_norm",
        "visible",
        {
            "decoder": (
                "self.cross_norm(self.alpha * hidden + attended)",
                "self.alpha * hidden + attended",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "cross_attention_left_out",
        "builds an encoder block again",
        "decoder-block-wiring",
        "The block never calls cross_attention",
        "visible",
        {
            "decoder": (
                "        attended, _ = "
                + CROSS
                + "\n        hidden = self.cross_norm(self.alpha * hidden + attended)\n",
                "",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "third_residual_from_the_first_norm",
        "adds what the first norm gave to the network's output",
        "decoder-block-wiring",
        "The third residual starts from the second norm's output",
        "visible",
        {
            "decoder": (
                "        hidden = self.cross_norm(self.alpha * hidden + attended)\n        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(hidden))",
                "        crossed = self.cross_norm(self.alpha * hidden + attended)\n        return self.feed_forward_norm(self.alpha * hidden + self.feed_forward(crossed))",
            )
        },
        ("decoder-block-masks", TRANSLATION),
    ),
    Mutant(
        "causal_mask_in_cross_attention",
        "gives the mask of the self-attention to the cross-attention",
        "decoder-block-masks",
        "which may look at all of the source, before and behind",
        "visible",
        {"decoder": (CROSS, "self.cross_attention(hidden, memory, memory, mask)")},
        (TRANSLATION,),
    ),
    Mutant(
        "source_padding_forgotten",
        "lets the cross-attention look at padding",
        "decoder-block-masks",
        "No mask reaches cross_attention",
        "visible",
        {"decoder": (CROSS, "self.cross_attention(hidden, memory, memory)")},
        (TRANSLATION,),
    ),
    Mutant(
        "causal_mask_forgotten",
        "lets the written words see later ones",
        "decoder-block-masks",
        "No mask reaches self_attention",
        "visible",
        {
            "decoder": (
                "self.self_attention(hidden, hidden, hidden, mask)",
                "self.self_attention(hidden, hidden, hidden)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "masks_swapped",
        "gives each attention the other one's mask",
        "decoder-block-masks",
        "it belongs to the self-attention",
        "visible",
        {
            "decoder": (
                "attended, _ = self.self_attention(hidden, hidden, hidden, mask)",
                "mask, memory_mask = memory_mask, mask\n        attended, _ = self.self_attention(hidden, hidden, hidden, mask)",
            )
        },
        (TRANSLATION,),
    ),
]

GREEDY = [
    Mutant(
        "never_stops_at_eos",
        "writes max_length words whatever happens",
        "greedy-words",
        "Stop when each has written eos",
        "visible",
        {
            "search": (
                "while not ended.all() and target.shape[1] <= max_length:",
                "while target.shape[1] <= max_length:",
            )
        },
        ("greedy-batch",),
    ),
    Mutant(
        "best_word_of_the_first_position",
        "reads the scores after the first word, which never change",
        "greedy-words",
        "After [5] the best word is 6, but the target goes on with 5",
        "visible",
        {"search": ("[:, -1].argmax", "[:, 0].argmax")},
        ("greedy-batch", TRANSLATION),
    ),
    Mutant(
        "last_word_alone",
        "feeds the decoder the last word only",
        "greedy-words",
        "hold all words written so far, not the last one alone",
        "visible",
        {
            "search": (
                "model.decode(target, memory",
                "model.decode(target[:, -1:], memory",
            )
        },
        ("greedy-batch", TRANSLATION),
    ),
    Mutant(
        "eos_among_the_words",
        "returns eos as a word",
        "greedy-words",
        "Leave eos out of the answer",
        "visible",
        {"search": ("row[: row.index(eos)]", "row[: row.index(eos) + 1]")},
        ("greedy-batch", TRANSLATION),
    ),
    Mutant(
        "bos_among_the_words",
        "returns bos as a word",
        "greedy-words",
        "Leave bos out of the answer",
        "visible",
        {"search": ("target[:, 1:].tolist()", "target.tolist()")},
        ("greedy-batch", TRANSLATION),
    ),
    Mutant(
        "encodes_at_each_step",
        "reads the source again for each word",
        "greedy-words",
        "encode it once, before the loop",
        "visible",
        {
            "search": (
                "model.decode(target, memory, lengths)",
                "model.decode(target, model.encode(source, lengths), lengths)",
            )
        },
        ("greedy-batch",),
    ),
    Mutant(
        "one_word_too_many",
        "writes one word more than max_length",
        "greedy-words",
        "is cut after three words",
        "visible",
        {
            "search": (
                "target.shape[1] <= max_length",
                "target.shape[1] <= max_length + 1",
            )
        },
        ("greedy-batch",),
    ),
    Mutant(
        "tensors_for_words",
        "returns a list of tensors",
        "greedy-words",
        "Use .tolist() or .item()",
        "visible",
        {
            "search": (
                "rows = target[:, 1:].tolist()",
                "rows = [list(row) for row in target[:, 1:]]",
            )
        },
        ("greedy-batch",),
    ),
    Mutant(
        "special_words_typed_in",
        "starts with 0 whatever bos is",
        "greedy-words",
        "The target must begin with bos",
        "hidden",
        {
            "search": (
                "torch.full((len(source), 1), bos,",
                "torch.full((len(source), 1), 0,",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "one_end_ends_all",
        "stops the whole batch when one sentence ends",
        "greedy-batch",
        "One sentence that ends does not end the others",
        "visible",
        {"search": ("ended.all()", "ended.any()")},
        (TRANSLATION,),
    ),
    Mutant(
        "words_after_the_end",
        "takes eos out and keeps what comes after it",
        "greedy-batch",
        "Cut each sentence at its own first eos",
        "visible",
        {
            "search": (
                "return [row[: row.index(eos)] if eos in row else row for row in rows]",
                "return [[word for word in row if word != eos] for row in rows]",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "first_sentence_only",
        "translates the first sentence of the batch",
        "greedy-batch",
        "Three sources need three translations",
        "visible",
        {
            "search": (
                "memory = model.encode(source, lengths)",
                "source, lengths = source[:1], lengths[:1]\n    memory = model.encode(source, lengths)",
            )
        },
        (TRANSLATION,),
    ),
    Mutant(
        "a_translator_of_ones_own",
        "defines load_translator again, to load other weights",
        TRANSLATION,
        "load_translator is given by the notebook",
        "visible",
        {
            "search": (
                "def greedy_decode(",
                "def load_translator():\n    return None\n\n\ndef greedy_decode(",
            )
        },
    ),
    Mutant(
        "a_part_rewritten_wrongly_at_the_end",
        "defines causal_mask again, wrongly, below the tests of Part 3",
        TRANSLATION,
        "Part 3 (decoder_mask)",
        "visible",
        {
            "search": (
                "def greedy_decode(",
                "def causal_mask(size, device=None):\n    return torch.ones(size, size, dtype=torch.bool, device=device)\n\n\ndef greedy_decode(",
            )
        },
    ),
]

CHECK_OF_EXAMPLES = """def check_smoothed_loss(implementation):
    logits = torch.tensor([[[0.0, 1.0, 2.0, 4.0], [5.0, 0.0, 3.0, 1.0]]], device=device)
    loss = implementation(logits, torch.tensor([[3, 1]], device=device), 0.1, 1)
    logs = logits[0, 0].log_softmax(0)
    assert abs(loss + 0.9 * logs[3] + 0.05 * (logs[0] + logs[2])) < 1e-4
    assert implementation(logits.double(), torch.ones(1, 2, device=device).long(), 0.2, 1) == 0
    more = torch.cat([logits, -logits]), torch.tensor([[3, 1], [2, 3]], device=device)
    far = more[0] * torch.tensor([1.0, 2.0], device=device)[None, :, None]
    logs = far.log_softmax(2)
    own = logs.gather(2, more[1][..., None])[..., 0]
    each = 0.7 * own + 0.15 * (logs.sum(2) - own - logs[..., 1])
    assert abs(implementation(far, more[1], 0.3, 1) + each[[0, 1, 1], [0, 0, 1]].mean()) < 1e-3"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    from_the_end = implementation(logits[:, :1], torch.tensor([[3]], device=device), 0.1, 2 - 4)
    assert abs(from_the_end - implementation(logits[:, :1], torch.tensor([[3]], device=device), 0.1, 2)) < 1e-6"""
)
CHECKS = wrong_checks(
    "smoothed_loss",
    "implementation(torch.ones(1, 1, 3), torch.ones(1, 1).long(), 0.1, 0)",
    "a wrong gradient; changed arguments; memory of earlier calls; number types; padding; small numbers",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *LOOPS,
    *MATRICES,
    *MULTI_HEAD,
    *MASKS,
    *POSITIONS,
    *LAYER_NORM,
    *ENCODER,
    *DECODER,
    *GREEDY,
    *CHECKS,
]

BLOCK_HEAD = """class EncoderBlock(torch.nn.Module):
    def __init__(self, dim, num_heads, hidden_dim, alpha=1.0):
        super().__init__()
        self.alpha = alpha
        self.self_attention = MultiHeadAttention(dim, num_heads)
        self.attention_norm = LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.feed_forward_norm = LayerNorm(dim)
"""

RIGHT_ANSWERS = [
    RightAnswer(
        "einsum_everywhere",
        "every product is an einsum, and heads are split and merged by it",
        {
            "by-loops": """def attention_by_loops(query, key, value, cap=None):
    scores = torch.einsum("td,sd->ts", query, key) * key.shape[1] ** -0.5
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    return torch.einsum("ts,se->te", scores.softmax(1), value)""",
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    scores = torch.einsum("...td,...sd->...ts", query, key) * key.shape[-1] ** -0.5
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = scores.softmax(-1)
    return torch.einsum("...ts,...se->...te", weights, value), weights""",
            "multi-head": (
                "mixed, weights = attention(query, key, value, mask)\n        return self.to_output(merge_heads(mixed)), weights",
                'mixed, weights = attention(query, key, value, mask)\n        W = self.to_output.weight.reshape(-1, self.num_heads, mixed.shape[-1])\n        return torch.einsum("bhtn,dhn->btd", mixed, W) + self.to_output.bias, weights',
            ),
        },
    ),
    RightAnswer(
        "loops_over_heads",
        "one head after the other, joined with cat, and the mask used as it comes",
        {
            "heads": """def split_heads(hidden, num_heads, dealt=False):
    parts = [hidden[..., h::num_heads] for h in range(num_heads)] if dealt else hidden.chunk(num_heads, dim=-1)
    return torch.stack(tuple(parts), dim=1)


def merge_heads(heads, dealt=False):
    if dealt:
        return torch.stack(heads.unbind(1), dim=-1).flatten(2)
    return torch.cat([heads[:, h] for h in range(heads.shape[1])], dim=-1)""",
            "multi-head": (
                """query = split_heads(self.to_query(query), self.num_heads)  # [B, H, T, N]
        key = split_heads(self.to_key(key), self.num_heads)  # [B, H, S, N]
        value = split_heads(self.to_value(value), self.num_heads)  # [B, H, S, N]
        if active is not None:
            value = value * active[:, None, None]
        if mask is not None:
            mask = mask.unsqueeze(1)  # [B, 1, 1 or T, S]: the same for every head
        mixed, weights = attention(query, key, value, mask)
        return self.to_output(merge_heads(mixed)), weights""",
                """chunks = (layer(x).chunk(self.num_heads, -1) for layer, x in
                  ((self.to_query, query), (self.to_key, key), (self.to_value, value)))
        pairs = [attention(q, k, v, mask) for q, k, v in zip(*chunks)]
        works = [True] * self.num_heads if active is None else active.tolist()
        mixed = torch.cat([o * yes for (o, _), yes in zip(pairs, works)], -1)
        return self.to_output(mixed), torch.stack([w for _, w in pairs], 1)""",
            ),
        },
    ),
    RightAnswer(
        "masks_that_are_added",
        "a float mask of 0 and -inf is added to the scores; masks are compared into being",
        {
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    scores = torch.matmul(query, key.mT) / query.size(-1) ** 0.5
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask.logical_not(), -math.inf)
    weights = scores.softmax(dim=-1)
    return weights.matmul(value), weights""",
            "masks": """def padding_mask(lengths, size, left=False):
    rows = [[[place >= size - n if left else place < n for place in range(size)]] for n in lengths.tolist()]
    return torch.tensor(rows, device=lengths.device)


def causal_mask(size, device=None, window=None):
    places = torch.arange(size, device=device)
    back = places[:, None] - places[None]
    return (back >= 0) & (back < (window or size))


def decoder_mask(lengths, size, window=None):
    return torch.logical_and(causal_mask(size, lengths.device, window)[None], padding_mask(lengths, size))""",
        },
    ),
    RightAnswer(
        "smallest_number_of_the_type",
        "fills in the smallest number that the type can hold, and takes the softmax by hand",
        {
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    scores = (query / query.shape[-1] ** 0.25) @ (key / query.shape[-1] ** 0.25).transpose(-1, -2)
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(mask == False, torch.finfo(scores.dtype).min)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ value, weights"""
        },
    ),
    RightAnswer(
        "norms_written_otherwise",
        "var with unbiased=False, mean of squares, rsqrt, addcmul; ReLU as a clamp",
        {
            "norm": (
                """mean = hidden.mean(dim=-1, keepdim=True)
        variance = hidden.var(dim=-1, correction=0, keepdim=True)
        return self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset""",
                """variance, mean = torch.var_mean(hidden, -1, unbiased=False, keepdim=True)
        return torch.addcmul(self.offset, self.gain, (hidden - mean) * torch.rsqrt(variance + self.eps))""",
            ),
            "feed-forward": (
                "self.outer(torch.relu(self.inner(hidden)))",
                "self.outer(self.inner(hidden).clamp(min=0))",
            ),
        },
    ),
    RightAnswer(
        "squares_minus_squared_mean",
        "the variance from centred squares, position by position, and one expression for each block",
        {
            "norm": (
                """mean = hidden.mean(dim=-1, keepdim=True)
        variance = hidden.var(dim=-1, correction=0, keepdim=True)
        return self.gain * (hidden - mean) / torch.sqrt(variance + self.eps) + self.offset""",
                """D = hidden.shape[-1]
        centred = hidden - hidden.sum(-1, keepdim=True) / D
        deviation = ((centred * centred).sum(-1, keepdim=True) / D + self.eps) ** 0.5
        return centred / deviation * self.gain + self.offset""",
            ),
            "encoder": BLOCK_HEAD
            + """
    def forward(self, hidden, mask=None):
        attended = self.self_attention(query=hidden, key=hidden, value=hidden, mask=mask)[0]
        x = self.attention_norm(attended + hidden * self.alpha)
        return self.feed_forward_norm(self.feed_forward(x) + x * self.alpha)""",
        },
    ),
    RightAnswer(
        "positions_by_exponentials",
        "frequencies as exponentials of logarithms, pairs by stack and flatten; the look-up as a one-hot product",
        {
            "encoding": """def positional_encoding(length, dim, base=10000.0, first=0):
    frequency = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(base) / dim))
    angle = torch.outer(torch.arange(length).float() + first, frequency)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)""",
            "embed": """def embed(tokens, embedding):
    one_hot = torch.nn.functional.one_hot(tokens, len(embedding)).to(embedding.dtype)
    x = one_hot @ embedding * embedding.shape[1] ** 0.5
    return x + positional_encoding(x.shape[1], x.shape[2]).to(x.device, x.dtype)""",
        },
    ),
    RightAnswer(
        "positions_one_by_one",
        "the table number by number, in Python loops",
        {
            "encoding": """def positional_encoding(length, dim, base=10000.0, first=0):
    table = torch.empty(length, dim)
    for k in range(length):
        for d in range(0, dim, 2):
            angle = (first + k) / base ** (d / dim)
            table[k, d], table[k, d + 1] = math.sin(angle), math.cos(angle)
    return table"""
        },
    ),
    RightAnswer(
        "sentence_by_sentence",
        "decodes each sentence of the batch on its own, in Python lists",
        {
            "search": """def greedy_decode(model, source, lengths, bos, eos, max_length):
    translations = []
    for row, length in zip(source, lengths):
        memory = model.encode(row[None, :length], length[None])
        words = [bos]
        while len(words) <= max_length:
            scores = model.decode(torch.tensor([words], device=source.device), memory, length[None])
            word = int(scores[0, -1].argmax())
            if word == eos:
                break
            words.append(word)
        translations.append(words[1:])
    return translations"""
        },
    ),
    RightAnswer(
        "ended_sentences_leave_the_batch",
        "decodes the batch and drops the sentences that have ended",
        {
            "search": """def greedy_decode(model, source, lengths, bos, eos, max_length):
    words = [[] for _ in range(len(source))]
    memory, alive = model.encode(source, lengths), list(range(len(source)))
    for _ in range(max_length):
        if not alive:
            break
        target = torch.tensor([[bos, *words[i]] for i in alive], device=source.device)
        best = model.decode(target, memory[alive], lengths[alive])[:, -1].max(dim=-1).indices.tolist()
        for i, word in zip(list(alive), best):
            if word == eos:
                alive.remove(i)
            else:
                words[i].append(word)
    return words"""
        },
    ),
    RightAnswer(
        "padding_written_after_the_end",
        "fills ended sentences with padding, as batched decoders do",
        {
            "search": (
                "best = model.decode(target, memory, lengths)[:, -1].argmax(dim=-1)",
                "best = model.decode(target, memory, lengths)[:, -1].argmax(dim=-1).masked_fill(ended, eos)",
            )
        },
    ),
    RightAnswer(
        "linear_layers_by_hand",
        "view and permute, weights through functional.linear, torch.bmm for the products",
        {
            "heads": """def split_heads(hidden, num_heads, dealt=False):
    if dealt:
        return hidden.view(hidden.size(0), hidden.size(1), -1, num_heads).permute(0, 3, 1, 2)
    return hidden.view(hidden.size(0), -1, num_heads, hidden.size(2) // num_heads).permute(0, 2, 1, 3).contiguous()


def merge_heads(heads, dealt=False):
    if dealt:
        return heads.permute(0, 2, 3, 1).contiguous().view(heads.size(0), heads.size(2), -1)
    return heads.permute(0, 2, 1, 3).contiguous().view(heads.size(0), heads.size(2), -1)""",
            "by-matrices": """def attention(query, key, value, mask=None, cap=None):
    lead = query.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    scores = torch.bmm(q, k.transpose(1, 2)).mul(1 / math.sqrt(q.shape[2]))
    scores = scores.reshape(*lead, *scores.shape[1:])
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    weights = torch.nn.functional.softmax(scores, dim=-1)
    output = torch.bmm(weights.reshape(-1, *weights.shape[-2:]), v)
    return output.reshape(*lead, *output.shape[1:]), weights""",
            "feed-forward": (
                "return self.outer(torch.relu(self.inner(hidden)))",
                "linear = torch.nn.functional.linear\n        hidden = torch.nn.functional.relu(linear(hidden, self.inner.weight, self.inner.bias))\n        return linear(hidden, self.outer.weight, self.outer.bias)",
            ),
        },
    ),
    RightAnswer(
        "check_by_torch",
        "compares with torch's cross-entropy of a distribution",
        {
            "own-check": """def check_smoothed_loss(implementation):
    F = torch.nn.functional

    def own(logits, targets, smoothing, padding):
        keep = targets.flatten() != padding
        rows, words = logits.flatten(0, 1)[keep].double(), targets.flatten()[keep]
        if not len(rows):
            return 0.0 * logits.nan_to_num().sum()
        wanted = torch.full_like(rows, smoothing / (rows.shape[1] - 2))
        wanted[:, padding] = 0
        wanted[torch.arange(len(rows)), words] = 1 - smoothing
        return F.cross_entropy(rows, wanted)

    cases = [(2, 3, 4, 0), (3, 5, 6, 5), (1, 7, 9, 4), (4, 2, 3, 1), (1, 1, 5, 2)]
    for number, (B, T, V, padding) in enumerate(cases * 2):
        for scale in (0.1, 4.0, 3000.0):
            logits = (scale * torch.randn(B, T, V)).to(device)
            logits = logits.double() if number % 3 else logits
            targets = torch.randint(V, (B, T)).to(device)
            targets[0] = padding if number % 4 == 3 else targets[0]
            smoothing = (0.0, 0.1, 0.4, 0.9)[number % 4]
            for leaf in (logits.clone().requires_grad_(), logits):
                before = leaf.detach().clone(), targets.clone()
                loss = implementation(leaf, targets, smoothing, padding)
                assert leaf.detach().equal(before[0]) and targets.equal(before[1])
                assert loss.dtype == leaf.dtype and loss.dim() == 0
                wanted = own(leaf, targets, smoothing, padding)
                near = 1e-9 if leaf.dtype == torch.float64 else 1e-4
                assert abs(loss.item() - wanted.item()) <= near * max(1.0, abs(wanted.item()))
                if leaf.requires_grad and (targets != padding).any():
                    found, right = (torch.autograd.grad(x, leaf)[0] for x in (loss, wanted))
                    assert (found - right).abs().max() < 1e-5
    targets = torch.tensor([[2, 1, 2], [2, 2, 0]], device=device)
    logits = torch.randn(2, 3, 4).to(device)
    known = implementation(logits, targets, 0.2, 2)
    logits[targets == 2] = math.nan
    assert implementation(logits, targets, 0.2, 2) == known
    assert implementation(logits, targets * 0 + 2, 0.2, 2) == 0"""
        },
    ),
]
