"""Wrong answers to the attention assignment that people give, and right answers that people write differently.

A change is either a pair (text in the reference, text to put there) or the whole cell. "visible" means that the tests
that the student has refuse it already; "hidden" that only the grader's do. Longer than 400 lines because it is a
catalogue: look an entry up, do not read it through.
"""

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks

SOFTMAX_LINE = 'torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)'
STEP = ("decoder-step-prediction", "decoder-step-padding")
SINK = """    if sink is not None:
        mask = torch.ones_like(scores) > 0 if mask is None else mask.expand(scores.shape)
        sinks = torch.full_like(scores[..., :1], sink)
        scores, mask = torch.cat([scores, sinks], -1), torch.cat([mask, sinks == sinks], -1)
        return masked_softmax(scores, mask)[..., :-1]
"""


def softmax_mutant(
    name: str,
    mistake: str,
    line: str,
    cell: str,
    words: str,
    caught: str,
    also: tuple[str, ...] = (),
) -> Mutant:
    return Mutant(
        name,
        mistake,
        cell,
        words,
        caught,
        {"masked-softmax": (SOFTMAX_LINE, line)},
        also,
    )


MASKED_SOFTMAX = [
    Mutant(
        "wrong_axis_without_a_mask",
        "takes the softmax over the first dimension where there is no mask",
        "masked-softmax-rows",
        "Without a mask, the table of weights is wrong",
        "visible",
        {
            "masked-softmax": (
                "torch.softmax(scores, dim=-1)",
                "torch.softmax(scores, dim=0)",
            )
        },
        ("masked-softmax-edges",),
    ),
    softmax_mutant(
        "softmax_over_the_wrong_axis",
        "takes the softmax over the dimension before the last",
        'torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-2)',
        "masked-softmax-rows",
        "Did you take the softmax over the wrong dimension",
        "visible",
        ("masked-softmax-edges", *STEP),
    ),
    softmax_mutant(
        "mask_after_softmax",
        "sets masked weights to 0 after the softmax, so that rows no longer sum to 1",
        "torch.softmax(scores, dim=-1) * mask",
        "masked-softmax-rows",
        "or mask after the softmax?",
        "visible",
        ("masked-softmax-edges", *STEP),
    ),
    softmax_mutant(
        "mask_after_softmax_renormalised",
        "masks after the softmax and divides by what is left, which may be 0",
        "(w := torch.softmax(scores, dim=-1) * mask) / w.sum(dim=-1, keepdim=True)",
        "masked-softmax-edges",
        "contains nan",
        "hidden",
        ("decoder-step-prediction",),
    ),
    softmax_mutant(
        "padding_attended",
        "checks the mask and then forgets it",
        "torch.softmax(scores, dim=-1)",
        "masked-softmax-rows",
        "Masked positions must get weight 0",
        "visible",
        ("masked-softmax-edges", *STEP),
    ),
    softmax_mutant(
        "mask_upside_down",
        "takes True for padding",
        'torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)',
        "masked-softmax-rows",
        "True in the mask means: may attend",
        "visible",
        ("masked-softmax-edges", *STEP),
    ),
    softmax_mutant(
        "minus_1e9_for_masked",
        "fills in -1e9, which scores may undercut and float16 cannot hold",
        "torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)",
        "masked-softmax-edges",
        "-1e9 is not smaller than every score",
        "hidden",
    ),
    softmax_mutant(
        "minus_1e4_for_masked",
        "fills in -1e4, the number that people choose so that float16 can hold it",
        "torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1)",
        "masked-softmax-edges",
        "-1e9 is not smaller than every score",
        "hidden",
    ),
    softmax_mutant(
        "exponentials_overflow",
        "takes exponentials without subtracting the largest score",
        "(w := scores.exp() * mask) / w.sum(dim=-1, keepdim=True)",
        "masked-softmax-edges",
        "contains nan",
        "hidden",
        ("decoder-step-prediction",),
    ),
    softmax_mutant(
        "softmax_in_float32_only",
        "computes and returns float32, whatever comes in",
        'torch.softmax(scores.float().masked_fill(~mask, float("-inf")), dim=-1)',
        "masked-softmax-edges",
        "must have dtype torch.float64",
        "hidden",
        ("masked-softmax-rows", "decoder-step-prediction"),
    ),
    softmax_mutant(
        "scores_changed_in_place",
        "fills the mask into the caller's scores",
        'torch.softmax(scores.masked_fill_(~mask, float("-inf")), dim=-1)',
        "masked-softmax-edges",
        "must leave its input as it was",
        "visible",
        ("masked-softmax-rows",),
    ),
    softmax_mutant(
        "hard_argmax",
        "gives all weight to the best position, which a test on saturated scores would pass",
        'torch.nn.functional.one_hot(scores.masked_fill(~mask, float("-inf")).argmax(-1), scores.shape[-1]).to(scores)',
        "masked-softmax-rows",
        "The table of weights is wrong",
        "visible",
        ("masked-softmax-edges", "decoder-step-prediction"),
    ),
    softmax_mutant(
        "sizes_of_the_example",
        "shapes the mask for the sizes of the visible test",
        'torch.softmax(scores.masked_fill(~mask.reshape(scores.shape[0], -1), float("-inf")), dim=-1)',
        "masked-softmax-rows",
        "must match the size",
        "hidden",
        ("masked-softmax-edges",),
    ),
    Mutant(
        "sink_gets_a_column",
        "returns the weight of the sink, too",
        "masked-softmax-rows",
        "With a sink of score 1, the table of weights must have shape [2, 3]; yours has [2, 4]",
        "visible",
        {"masked-softmax": ("allowed)[..., :-1]", "allowed)")},
        ("masked-softmax-edges", *STEP),
    ),
    Mutant(
        "sink_forgotten",
        "takes the sink and leaves it out of the sum",
        "masked-softmax-rows",
        "Add exp(1) to the sum of each row",
        "visible",
        {"masked-softmax": ("    if sink is not None:", "    if False:")},
        ("masked-softmax-edges", "decoder-step-prediction"),
    ),
    Mutant(
        "nan_when_all_is_masked",
        "does not refuse a row that may attend to nothing",
        "masked-softmax-edges",
        "must raise ValueError",
        "visible",
        {"masked-softmax": ("if not mask.any(dim=-1).all():", "if False:")},
        ("decoder-step-prediction",),
    ),
]

ADDITIVE = [
    Mutant(
        "additive_without_tanh",
        "leaves out tanh, so that the network is linear",
        "additive-scores-values",
        "Is tanh inside, around the sum",
        "visible",
        {"additive-scores": ("torch.tanh(", "(")},
        ("additive-scores-coverage",),
    ),
    Mutant(
        "tanh_around_everything",
        "takes tanh after v instead of before",
        "additive-scores-values",
        "and v outside?",
        "visible",
        {
            "additive-scores": (
                "return hidden @ v",
                "hidden = (query @ W.T).unsqueeze(2) + (key @ U.T).unsqueeze(1) + seen\n"
                "    return torch.tanh(hidden @ v)",
            )
        },
        ("additive-scores-coverage",),
    ),
    Mutant(
        "product_instead_of_sum",
        "multiplies the two projections",
        "additive-scores-values",
        "The example's table of scores is wrong",
        "visible",
        {"additive-scores": (".unsqueeze(2) + (", ".unsqueeze(2) * (")},
        ("additive-scores-coverage",),
    ),
    Mutant(
        "keys_before_queries",
        "returns the table with keys as rows",
        "additive-scores-values",
        "must have shape [1, 1, 2]; yours has [1, 2, 1]",
        "visible",
        {
            "additive-scores": (
                "return hidden @ v",
                "return (hidden @ v).transpose(1, 2)",
            )
        },
        ("additive-scores-coverage",),
    ),
    Mutant(
        "coverage_outside_tanh",
        "adds the coverage to the scores, outside of tanh",
        "additive-scores-coverage",
        "w times the coverage stands inside tanh",
        "visible",
        {"additive-scores": (".unsqueeze(1) + seen)", ".unsqueeze(1)) + seen")},
    ),
    Mutant(
        "coverage_of_one_position_left_out",
        "takes the coverage of a single source position for none",
        "additive-scores-coverage",
        "one source position",
        "hidden",
        {
            "additive-scores": (
                "if coverage is None",
                "if coverage is None or coverage.shape[2] == 1",
            )
        },
    ),
    Mutant(
        "weights_swapped",
        "multiplies queries by U and keys by W",
        "additive-scores-values",
        "shapes cannot be multiplied",
        "visible",
        {
            "additive-scores": (
                "(query @ W.T).unsqueeze(2) + (key @ U.T)",
                "(query @ U.T).unsqueeze(2) + (key @ W.T)",
            )
        },
        ("additive-scores-coverage",),
    ),
]

SCALE = "math.sqrt(query.shape[-1])"
DOT = [
    Mutant(
        "return_forgotten",
        "computes the scores and does not return them",
        "dot-scores-values",
        "Did you forget return?",
        "visible",
        {"dot-scores": ("return query @ key", "result = query @ key")},
        ("dot-scores-slope",),
    ),
    Mutant(
        "no_scaling",
        "forgets the square root of D",
        "dot-scores-values",
        "Did you forget to divide by the square root of D?",
        "visible",
        {"dot-scores": (f" / {SCALE}", "")},
        ("dot-scores-slope",),
    ),
    Mutant(
        "scaled_by_d",
        "divides by D instead of its square root",
        "dot-scores-values",
        "not by D",
        "visible",
        {"dot-scores": (SCALE, "query.shape[-1]")},
        ("dot-scores-slope",),
    ),
    Mutant(
        "scaled_by_d_model",
        "divides by the square root of the size of all heads together",
        "dot-scores-values",
        "not of all heads together",
        "hidden",
        {
            "dot-scores": (
                SCALE,
                "math.sqrt(query.shape[-1] * (query.shape[1] if query.dim() == 4 else 1))",
            )
        },
        ("dot-scores-slope",),
    ),
    Mutant(
        "scaled_by_number_of_keys",
        "divides by the square root of S",
        "dot-scores-values",
        "the size of one query",
        "visible",
        {"dot-scores": (SCALE, "math.sqrt(key.shape[-2])")},
        ("dot-scores-slope",),
    ),
    Mutant(
        "scale_of_the_example",
        "divides by 2, which is right for D = 4 only",
        "dot-scores-values",
        "D is the size of one query, not",
        "hidden",
        {"dot-scores": (SCALE, "2")},
        ("dot-scores-slope",),
    ),
    Mutant(
        "slope_with_a_sign",
        "takes away t - j, so that what comes later scores higher",
        "dot-scores-slope",
        "Take away slope times |t - j|",
        "visible",
        {"dot-scores": (".abs().to(", ".to(")},
    ),
    Mutant(
        "negative_slope_ignored",
        "lets a slope only lower the scores",
        "dot-scores-slope",
        "whatever the sign of the slope",
        "hidden",
        {"dot-scores": ("slope * apart", "max(slope, 0.0) * apart")},
    ),
    Mutant(
        "scores_in_float32_only",
        "computes and returns float32, whatever comes in",
        "dot-scores-values",
        "must have dtype torch.float64",
        "hidden",
        {
            "dot-scores": (
                "return query @ key",
                "query, key, apart = query.float(), key.float(), apart.float()\n    return query @ key",
            )
        },
        ("dot-scores-slope",),
    ),
    Mutant(
        "variance_of_weights",
        "measures the variance of the weights instead of the scores",
        "dot-statistics-values",
        "variance: not yet",
        "visible",
        {"dot-statistics": ("scores[allowed].var()", "log_weights.exp().var()")},
    ),
    Mutant(
        "variance_of_what_is_masked_too",
        "takes the variance of all scores, allowed or not",
        "dot-statistics-values",
        "that the mask allows",
        "visible",
        {"dot-statistics": ("scores[allowed].var()", "scores.var()")},
    ),
    Mutant(
        "entropy_in_bits",
        "takes the logarithm to base 2",
        "dot-statistics-values",
        "Use the natural logarithm",
        "visible",
        {
            "dot-statistics": (
                "entropy.mean().item()",
                "entropy.mean().item() / math.log(2)",
            )
        },
    ),
    Mutant(
        "entropy_of_each_row",
        "returns the entropy of each row instead of their mean",
        "dot-statistics-values",
        "Average the entropy over rows, then use .item()",
        "visible",
        {"dot-statistics": ("entropy.mean().item()", "entropy")},
    ),
    Mutant(
        "entropy_of_zero_is_nan",
        "multiplies a weight of 0 by its logarithm",
        "dot-statistics-values",
        "0 times log 0 is nan",
        "visible",
        {
            "dot-statistics": (
                "(log_weights.exp() * log_weights)",
                "(log_weights.exp() * log_weights.exp().log())",
            )
        },
    ),
]

STEP_MUTANTS = [
    Mutant(
        "weights_not_returned",
        "returns the prediction alone",
        "decoder-step-prediction",
        "must return (log_probs, weights)",
        "visible",
        {"decoder-step": ("dim=-1), weights", "dim=-1)")},
        ("decoder-step-padding",),
    ),
    Mutant(
        "context_from_decoder_state",
        "mixes decoder states instead of encoder states",
        "decoder-step-prediction",
        "The context is [0, 3], the mean of the two encoder states",
        "visible",
        {
            "decoder-step": (
                "(weights.unsqueeze(1) @ encoder_states).squeeze(1)",
                "weights.sum(-1, keepdim=True) * state",
            )
        },
    ),
    Mutant(
        "state_before_context",
        "puts the decoder state in front of the context",
        "decoder-step-prediction",
        "Put it in front of the decoder state",
        "visible",
        {"decoder-step": ("torch.cat([context, state]", "torch.cat([state, context]")},
    ),
    Mutant(
        "prediction_without_tanh",
        "leaves out tanh between the two matrices",
        "decoder-step-prediction",
        "take tanh",
        "visible",
        {"decoder-step": ("combined = torch.tanh(", "combined = (")},
    ),
    Mutant(
        "logits_for_log_probabilities",
        "returns scores of words instead of log-probabilities",
        "decoder-step-prediction",
        "Take log_softmax at the end",
        "visible",
        {
            "decoder-step": (
                "torch.log_softmax(combined @ W_output.T, dim=-1)",
                "combined @ W_output.T",
            )
        },
    ),
    Mutant(
        "score_function_ignored",
        "scores by its own dot product, whatever it is given",
        "decoder-step-prediction",
        "With a score that is a distance",
        "hidden",
        {
            "decoder-step": (
                "score(state.unsqueeze(1), encoder_states)",
                "dot_scores(state.unsqueeze(1), encoder_states)",
            )
        },
    ),
    Mutant(
        "gradient_cut",
        "detaches the context, so that nothing upstream learns",
        "decoder-step-prediction",
        "no .detach(), .data or .item()",
        "hidden",
        {
            "decoder-step": (
                "torch.cat([context, state]",
                "torch.cat([context.detach(), state]",
            )
        },
    ),
    Mutant(
        "mask_not_passed_on",
        "calls masked_softmax without the mask",
        "decoder-step-padding",
        "when only the padding did",
        "visible",
        {
            "decoder-step": (
                "masked_softmax(scores, mask, sink)",
                "masked_softmax(scores, sink=sink)",
            )
        },
        ("decoder-step-prediction",),
    ),
    Mutant(
        "context_renormalised",
        "divides the context by what did not go to the sink",
        "decoder-step-prediction",
        "The context is [0, 2] then",
        "visible",
        {
            "decoder-step": (
                "(weights.unsqueeze(1) @ encoder_states).squeeze(1)",
                "(weights.unsqueeze(1) @ encoder_states).squeeze(1) / weights.sum(1, keepdim=True)",
            )
        },
    ),
    Mutant(
        "ready_made_attention",
        "lets torch do the attending",
        "decoder-step-prediction",
        "which this assignment withholds",
        "visible",
        {
            "decoder-step": (
                "context = (weights.unsqueeze(1) @ encoder_states).squeeze(1)",
                "context = torch.nn.functional.scaled_dot_product_attention(state.unsqueeze(1), encoder_states, "
                "encoder_states, mask.unsqueeze(1)).squeeze(1)",
            )
        },
        ("decoder-step-padding",),
    ),
]

ALIGN = "{(source, target) for target, source in enumerate(best.tolist())}"
RATE = "1 - agreed / (len(predicted) + len(sure))"
ALIGNMENT = [
    Mutant(
        "alignment_transposed",
        "puts the target index first",
        "align-pairs",
        "the source index comes first",
        "visible",
        {"align": (ALIGN, "set(enumerate(best.tolist()))")},
    ),
    Mutant(
        "best_target_for_each_source",
        "looks for the largest weight of each column",
        "align-pairs",
        "Each row is one target word",
        "visible",
        {
            "align": (
                "best = weights[:target_length, :source_length].argmax(dim=-1)\n    pairs = "
                + ALIGN,
                "best = weights[:target_length, :source_length].argmax(dim=0)\n    pairs = set(enumerate(best.tolist()))",
            )
        },
    ),
    Mutant(
        "weights_above_one_half",
        "keeps only pairs with a weight above one half",
        "align-pairs",
        "look for its largest weight",
        "visible",
        {
            "align": (
                ALIGN,
                "{(s, t) for t, s in enumerate(best.tolist()) if weights[t, s] > 0.5}",
            )
        },
    ),
    Mutant(
        "every_word_has_a_partner",
        "aligns a target word however small its weights are",
        "align-pairs",
        "target word 1 has no pair",
        "visible",
        {"align": (" if weights[target, source] >= least}", "}")},
    ),
    Mutant(
        "pairs_of_tensors",
        "makes pairs of tensors, which are never equal to pairs of ints in a set",
        "align-pairs",
        "The pairs must hold Python ints",
        "visible",
        {"align": ("enumerate(best.tolist())", "enumerate(best)")},
    ),
    Mutant(
        "padding_aligned",
        "aligns words with padding",
        "align-pairs",
        "Rows and columns beyond the lengths are padding",
        "hidden",
        {"align": ("weights[:target_length, :source_length].argmax", "weights.argmax")},
    ),
    Mutant(
        "possible_pairs_forgotten",
        "counts sure pairs twice instead of sure and possible ones",
        "align-error-rate",
        "Count with sure once and with possible once",
        "visible",
        {"align": ("len(predicted & possible)", "len(predicted & sure)")},
    ),
    Mutant(
        "precision_for_error_rate",
        "takes one minus precision",
        "align-error-rate",
        "divide by the sizes of predicted and sure",
        "visible",
        {"align": (RATE, "1 - len(predicted & possible) / len(predicted)")},
    ),
    Mutant(
        "sure_and_possible_swapped",
        "divides by the number of possible pairs",
        "align-error-rate",
        "divide by the sizes of predicted and sure",
        "visible",
        {"align": ("(len(predicted) + len(sure))", "(len(predicted) + len(possible))")},
    ),
    Mutant(
        "rate_of_agreement",
        "returns how much is right instead of how much is wrong",
        "align-error-rate",
        "Expected 1 - (1 + 2) / (3 + 2) = 0.4",
        "visible",
        {"align": (RATE, "1 - (" + RATE + ")")},
    ),
    Mutant(
        "nothing_to_align",
        "divides by 0 when both alignments are empty",
        "align-error-rate",
        "division by zero",
        "visible",
        {"align": ("if not predicted and not sure:", "if False:")},
    ),
]

BEAM = ("beam-search-finds", "beam-search-length")
SEARCH = [
    Mutant(
        "greedy_for_beam",
        "always follows the best next word",
        "beam-search-finds",
        "Do you keep the two best beginnings",
        "visible",
        {
            "beam-search": (
                "live, finished = [([], 0.0)], []",
                "live, finished, beam_size = [([], 0.0)], [], 1",
            )
        },
        ("beam-search-length",),
    ),
    Mutant(
        "beam_begins_with_copies",
        "begins with K equal hypotheses, which stay equal",
        "beam-search-finds",
        "expected [3]",
        "visible",
        {
            "beam-search": (
                "live, finished = [([], 0.0)], []\n    tokens = torch.tensor([bos], device=state.device)",
                "live, finished = [([], 0.0)] * beam_size, []\n    state = state.expand(beam_size, *state.shape[1:])\n"
                "    tokens = torch.tensor([bos] * beam_size, device=state.device)",
            )
        },
        ("beam-search-length",),
    ),
    Mutant(
        "top_k_of_each_hypothesis",
        "keeps K extensions of each hypothesis, so that the beam grows",
        "beam-search-finds",
        "Keep the K best extensions of all hypotheses together, not K of each",
        "visible",
        {
            "beam-search": (
                "elif len(extended) < beam_size:",
                "elif sum(p == parent for p, _, _ in extended) < beam_size:",
            )
        },
        ("beam-search-length",),
    ),
    Mutant(
        "beam_forgets_length",
        "compares log-probabilities without the length penalty",
        "beam-search-length",
        "Is the length of each hypothesis, with eos, in its score?",
        "visible",
        {"beam-search": ("((5 + length) / 6) ** alpha", "1.0")},
        ("beam-search-finds",),
    ),
    Mutant(
        "length_without_eos",
        "does not count <eos> in the length",
        "beam-search-length",
        "The score of a b is",
        "visible",
        {"beam-search": ("total / penalty(length)))", "total / penalty(length - 1)))")},
        ("beam-search-finds",),
    ),
    Mutant(
        "average_log_probability",
        "divides by the number of tokens whatever alpha is",
        "beam-search-length",
        "With alpha 0 the empty sentence wins",
        "visible",
        {"beam-search": ("((5 + length) / 6) ** alpha", "length")},
        ("beam-search-finds",),
    ),
    Mutant(
        "stops_at_the_first_end",
        "returns as soon as one hypothesis ends",
        "beam-search-length",
        "With alpha 1, a b wins",
        "visible",
        {
            "beam-search": (
                "        if not live:\n",
                "        if finished or not live:\n",
            )
        },
        ("beam-search-finds",),
    ),
    Mutant(
        "beam_ignores_finished",
        "returns a live hypothesis though others have finished",
        "beam-search-finds",
        "With beam_size 1 the search is greedy",
        "visible",
        {"beam-search": ("max(finished or unfinished", "max(unfinished")},
        ("beam-search-length",),
    ),
    Mutant(
        "last_finished_wins",
        "forgets earlier finished hypotheses when later ones finish",
        "beam-search-length",
        "With alpha 0 the empty sentence wins",
        "visible",
        {
            "beam-search": (
                "finished.append((live[parent][0], total / penalty(length)))",
                "finished = [(live[parent][0], total / penalty(length))]",
            )
        },
        ("beam-search-finds",),
    ),
    Mutant(
        "state_of_another_hypothesis",
        "keeps states where they are while hypotheses change places",
        "beam-search-finds",
        "carry on with the state of the one that it extends?",
        "hidden",
        {
            "beam-search": (
                "[parent for parent, _, _ in extended]",
                "[i % len(state) for i in range(len(extended))]",
            )
        },
        ("beam-search-length",),
    ),
    Mutant(
        "only_the_last_word_counts",
        "forgets to add up log-probabilities",
        "beam-search-finds",
        "With beam_size 1 the search is greedy",
        "visible",
        {
            "beam-search": (
                "totals = so_far + log_probs",
                "totals = 0 * so_far + log_probs",
            )
        },
        ("beam-search-length",),
    ),
    Mutant(
        "end_among_the_words",
        "returns <eos> as a word of the translation",
        "beam-search-finds",
        "With beam_size 1 the search is greedy",
        "visible",
        {
            "beam-search": (
                "finished.append((live[parent][0], total",
                "finished.append((live[parent][0] + [eos], total",
            )
        },
        ("beam-search-length",),
    ),
    Mutant(
        "early_end_allowed",
        "lets a translation end as soon as it likes",
        "beam-search-finds",
        "With least 3 no translation ends before its third token",
        "visible",
        {"beam-search": (" and length >= least", "")},
        ("beam-search-length",),
    ),
    Mutant(
        "nothing_finished",
        "has no answer when max_length cuts everything off",
        "beam-search-length",
        "empty",
        "visible",
        {"beam-search": ("max(finished or unfinished", "max(finished")},
        ("beam-search-finds",),
    ),
]

CHECK_OF_EXAMPLES = """def check_focus(implementation):
    weights = torch.tensor([[[0.2, 0.2, 0.5], [0.5, 0.25, 0.0]]], device=device)
    bits, first = implementation(weights, torch.tensor([[True, True, False]], device=device))
    assert torch.allclose(bits, torch.tensor([[1.0, 0.9183]], device=device), atol=1e-3)
    assert first.tolist() == [[0, 0]]
    behind = torch.tensor([[False, True, True]], device=device)
    assert implementation(weights.flip(-1), behind)[1].tolist() == [[1, 2]]
    empty = implementation(torch.zeros(1, 1, 2, device=device).double(), weights[:, 0, :2] > 0)
    assert [part.tolist() for part in empty] == [[[0.0]], [[-1]]] and empty[0].dtype == torch.float64"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    leaf = weights.clone().requires_grad_()
    implementation(leaf, torch.ones(1, 3, device=device) > 0)[0].sum().backward()
    assert leaf.grad.all(), 'a gradient must reach weights of 0, too'"""
)
CHECKS = wrong_checks(
    "focus",
    "implementation(torch.ones(1, 1, 1, device=device), torch.ones(1, 1, device=device) > 0)",
    "a wrong gradient; changed arguments; number types; padding; small numbers; the formula; ties",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *MASKED_SOFTMAX,
    *ADDITIVE,
    *DOT,
    *STEP_MUTANTS,
    *ALIGNMENT,
    *SEARCH,
    *CHECKS,
]

RIGHT_ANSWERS = [
    RightAnswer(
        "einsum_everywhere",
        "every product is an einsum",
        {
            "additive-scores": """def additive_scores(query, key, W, U, v, coverage=None, w=None):
    left, right = torch.einsum("btd,hd->bth", query, W), torch.einsum("bsd,hd->bsh", key, U)
    inside = left[:, :, None] + right[:, None]
    if coverage is not None:
        inside = inside + torch.einsum("bts,h->btsh", coverage, w)
    return torch.einsum("btsh,h->bts", torch.tanh(inside), v)""",
            "dot-scores": """def dot_scores(query, key, slope=0.0):
    scores = torch.einsum("...td,...sd->...ts", query, key) * key.shape[-1] ** -0.5
    T, S = scores.shape[-2:]
    apart = [[abs(t - s) for s in range(S)] for t in range(T)]
    return scores - torch.tensor(apart).to(scores) * slope""",
            "decoder-step": """def decoder_step(state, encoder_states, mask, score, W_combine, W_output, sink=None):
    weights = masked_softmax(score(state[:, None], encoder_states), mask[:, None], sink=sink)
    context = torch.einsum("bts,bsd->btd", weights, encoder_states)[:, 0]
    combined = torch.einsum("bd,hd->bh", torch.cat((context, state), 1), W_combine).tanh()
    return torch.einsum("bh,vh->bv", combined, W_output).log_softmax(1), weights[:, 0]""",
        },
    ),
    RightAnswer(
        "loops_everywhere",
        "one number at a time, in Python loops",
        {
            "masked-softmax": f"""def masked_softmax(scores, mask=None, sink=None):
{SINK}    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    rows = []
    for row, allowed in zip(scores.reshape(-1, scores.shape[-1]), mask.reshape(-1, scores.shape[-1])):
        if not any(allowed.tolist()):
            raise ValueError("nothing to attend to")
        biggest = max(x for x, ok in zip(row, allowed) if ok)
        parts = [(x - biggest).exp() if ok else torch.zeros_like(x) for x, ok in zip(row, allowed)]
        rows.append(torch.stack(parts) / sum(parts))
    return torch.stack(rows).reshape(scores.shape)""",
            "additive-scores": """def additive_scores(query, key, W, U, v, coverage=None, w=None):
    def score(b, t, s):
        seen = 0 if coverage is None else coverage[b, t, s] * w
        return torch.dot(v, torch.tanh(torch.mv(W, query[b, t]) + torch.mv(U, key[b, s]) + seen))

    B, T, S = len(query), query.shape[1], key.shape[1]
    return torch.stack([torch.stack([torch.stack([score(b, t, s) for s in range(S)]) for t in range(T)])
                        for b in range(B)])""",
            "align": """def align(weights, source_length, target_length, least=0.0):
    pairs = set()
    for target in range(target_length):
        row = [float(weights[target][source]) for source in range(source_length)]
        if not max(row) < least:
            pairs.add((row.index(max(row)), target))
    return pairs

def alignment_error_rate(predicted, sure, possible):
    hits = sum((pair in sure) + (pair in possible) for pair in predicted)
    size = len(predicted) + len(sure)
    return 1.0 - hits / size if size else 0.0""",
        },
    ),
    RightAnswer(
        "where_instead_of_masked_fill",
        "torch.where, exponentials of differences, and a sum",
        {
            "masked-softmax": f"""def masked_softmax(scores, mask=None, sink=None):
{SINK}    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    mask = torch.broadcast_to(mask, scores.shape)
    if (mask.sum(-1) == 0).any():
        raise ValueError("softmax over an empty set")
    open_scores = torch.where(mask, scores, torch.tensor(-math.inf, dtype=scores.dtype, device=scores.device))
    exponentials = torch.exp(open_scores - open_scores.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True)"""
        },
    ),
    RightAnswer(
        "log_space",
        "weights as exponentials of log-softmax, entropy from them",
        {
            "masked-softmax": (
                SOFTMAX_LINE,
                'torch.log_softmax(scores.masked_fill(~mask, float("-inf")), dim=-1).exp()',
            ),
            "dot-statistics": """def score_statistics(scores, mask=None):
    allowed = torch.ones(scores.shape) > 0 if mask is None else torch.broadcast_to(mask, scores.shape)
    weights, some = torch.where(allowed, scores, -math.inf).softmax(-1), scores[allowed]
    return float(((some - some.mean()) ** 2).mean()), float(torch.special.entr(weights).sum(-1).mean())""",
        },
    ),
    RightAnswer(
        "smallest_number_of_the_type",
        "fills in the smallest number that the type can hold, instead of -inf",
        {
            "masked-softmax": (
                SOFTMAX_LINE,
                "torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)",
            )
        },
    ),
    RightAnswer(
        "float64_inside",
        "computes in float64 and gives back the type that came in",
        {
            "masked-softmax": (
                SOFTMAX_LINE,
                'scores.double().masked_fill(~mask, float("-inf")).softmax(-1).to(scores.dtype)',
            ),
            "dot-scores": """def dot_scores(query, key, slope=0.0):
    scores = query.double() @ key.double().mT / query.shape[-1] ** 0.5
    places = torch.arange(max(scores.shape[-2:]), device=scores.device, dtype=torch.float64)
    apart = torch.cdist(places[: scores.shape[-2], None], places[: scores.shape[-1], None])
    return (scores - slope * apart).to(query.dtype)""",
        },
    ),
    RightAnswer(
        "batched_matrix_products",
        "bmm, baddbmm and linear; the scale inside the product",
        {
            "dot-scores": """def dot_scores(query, key, slope=0.0):
    lead, (T, D), S = query.shape[:-2], query.shape[-2:], key.shape[-2]
    flat = torch.baddbmm(query.new_zeros(()), query.reshape(-1, T, D), key.reshape(-1, S, D).transpose(1, 2),
                         beta=0, alpha=1 / math.sqrt(D))
    far = torch.stack([torch.arange(S, device=query.device).sub(t).abs() for t in range(T)])
    return flat.reshape(*lead, T, S) - slope * far.to(flat.dtype)""",
            "decoder-step": """def decoder_step(state, encoder_states, mask, score, W_combine, W_output, sink=None):
    scores = score(state.view(len(state), 1, -1), encoder_states)
    weights = masked_softmax(scores[:, 0], mask, sink)
    context = torch.bmm(weights.unsqueeze(1), encoder_states)[:, 0]
    D = state.shape[1]
    hidden = torch.nn.functional.linear(context, W_combine[:, :D]) + torch.nn.functional.linear(state, W_combine[:, D:])
    logits = torch.nn.functional.linear(hidden.tanh(), W_output)
    return logits - logits.logsumexp(-1, keepdim=True), weights""",
        },
    ),
    RightAnswer(
        "beam_in_a_heap",
        "hypotheses as records with their own state, the best taken from a heap",
        {
            "beam-search": """import heapq

def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6, least=1):
    beam, done = [(0.0, (), state)], []
    for _ in range(max_length):
        if not beam:
            break
        rows, states = step(torch.cat([s for _, _, s in beam]),
                            torch.tensor([t[-1] if t else bos for _, t, _ in beam], device=state.device))
        candidates = [(total + float(p), tokens, i, word)
                      for i, (total, tokens, _) in enumerate(beam) for word, p in enumerate(rows[i])
                      if word != eos or len(tokens) + 1 >= least]
        best = heapq.nlargest(beam_size, candidates, key=lambda c: c[0])
        done += [(total / ((5 + len(tokens) + 1) / 6) ** alpha, tokens) for total, tokens, _, word in best if word == eos]
        others = heapq.nlargest(beam_size, (c for c in candidates if c[3] != eos), key=lambda c: c[0])
        beam = [(total, (*tokens, word), states[i : i + 1]) for total, tokens, i, word in others]
    if not done:
        done = [(total / ((5 + len(tokens)) / 6) ** alpha, tokens) for total, tokens, _ in beam]
    score, tokens = max(done)
    return list(tokens), score"""
        },
    ),
    RightAnswer(
        "beam_in_tensors",
        "the beam as tensors of fixed size, extended by topk",
        {
            "beam-search": """def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6, least=1):
    sequences = torch.full((1, 1), bos, device=state.device)
    totals = torch.zeros(1, device=state.device)
    best_score, best_tokens = -math.inf, None
    for length in range(1, max_length + 1):
        log_probs, state = step(state, sequences[:, -1])
        V = log_probs.shape[1]
        table = (totals[:, None] + log_probs).flatten()
        if length < least:
            table.view(-1, V)[:, eos] = -math.inf
        top = table.topk(min(beam_size, table.numel()))
        for total, place in zip(top.values, top.indices):
            score = total.item() / ((5 + length) / 6) ** alpha
            if place % V == eos and score > best_score and length >= least:
                best_score, best_tokens = score, sequences[place // V, 1:].tolist()
        table.view(-1, V)[:, eos] = -math.inf
        totals, places = table.topk(min(beam_size, table.numel() - len(sequences)))
        keep = totals > -math.inf
        totals, places = totals[keep], places[keep]
        if not len(places):
            break
        sequences = torch.cat([sequences[places // V], (places % V)[:, None]], dim=1)
        state = state[places // V]
    if best_tokens is None:
        best_score, best_tokens = (totals[0] / ((5 + max_length) / 6) ** alpha).item(), sequences[0, 1:].tolist()
    return best_tokens, best_score"""
        },
    ),
    RightAnswer(
        "beam_that_stops_early",
        "stops when no live hypothesis can still win",
        {
            "beam-search": (
                "        if not live:\n",
                "        if not live or (finished and live[0][1] / penalty(max_length) <= max(s for _, s in finished)):\n",
            )
        },
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with plain Python on drawn inputs",
        {
            "own-check": """def check_focus(implementation):
    def wanted(row, there):
        kept = [w if ok else 0.0 for w, ok in zip(row, there)]
        total = sum(kept)
        shares = [w / total for w in kept if w > 0]
        return sum(-s * math.log2(s) for s in shares), kept.index(max(kept)) if total else -1

    def compare(weights, real, tolerance):
        copies = weights.clone(), real.clone()
        bits, first = implementation(weights, real)
        assert copies[0].nan_to_num(7).equal(weights.nan_to_num(7)) and copies[1].equal(real)
        assert (bits.dtype, first.dtype) == (weights.dtype, torch.int64)
        for b, table in enumerate(weights.tolist()):
            own = [wanted(row, real[b].tolist()) for row in table]
            for (entropy, place), yours, there in zip(own, bits[b].tolist(), first[b].tolist(), strict=True):
                assert place == there and abs(entropy - yours) < tolerance

    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-10)):
        for B, T, S in ((3, 4, 6), (3, 4, 6), (1, 1, 5), (5, 1, 3), (1, 4, 1)):
            weights = torch.randint(0, 4, (B, T, S)).to(device, dtype) / 3
            real = torch.rand(B, S).to(device) < 0.6
            weights.transpose(1, 2)[~real] = 5.0 if T == 4 else math.nan
            compare(weights, real, tolerance)
    every = torch.ones(1, 4, device=device) > 0
    for row in ([0.5, 1e-4, 0.4999, 0.0], [0.3, 0.3001, 0.2, 0.1], [0.0] * 4, [1e-4] * 4):
        compare(torch.tensor([[row]], dtype=torch.float64, device=device), every, 1e-8)
        compare(torch.tensor([[row]], dtype=torch.float64, device=device), ~every, 1e-8)
    for row in ([0.2, 0.3, 0.4], [0.0, 0.0, 0.4], [0.0, 0.0, 0.0]):
        weights = torch.tensor([[[*row, 9.0]]], dtype=torch.float64, device=device).requires_grad_()
        implementation(weights, torch.arange(4, device=device)[None] < 3)[0].sum().backward()
        slope = weights.grad.flatten()
        assert slope.isfinite().all() and slope[3] == 0
        if min(row) > 0:
            shares = torch.tensor(row, device=device).double() / sum(row)
            entropy = -(shares * shares.log2()).sum()
            assert torch.allclose(slope[:3], -(shares.log2() + entropy) / sum(row), atol=1e-6)"""
        },
    ),
]
