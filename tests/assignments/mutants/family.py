"""Wrong answers to the assignment on the BERT family that people give, and right answers that people write differently.

Written from the tasks' texts, before the hidden tests. Longer than 400 lines because it is a catalogue: look an entry up,
do not read it through.
"""

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks

SOFT, EDGES, MIXED = "distillation-soft", "distillation-edges", "distillation-mixed"
SCORES, TIES = "maxsim-scores", "maxsim-edges"
BUILD, TOKENS, CHOICE = "prompts-build", "prompts-tokens", "prompts-choose"
TRAINED = "experiment-student"


def wrong(
    cell: str,
    name: str,
    mistake: str,
    old: str,
    new: str,
    test: str,
    words: str,
    caught: str = "visible",
    also: tuple[str, ...] = (),
) -> Mutant:
    """One text in the reference exchanged for another."""
    return Mutant(name, mistake, test, words, caught, {cell: (old, new)}, also)


PARTS = "    parts = log_p.exp() * (log_p - log_q)"
DIVERGENCE = "torch.where(log_p.isinf(), 0, parts).sum(dim=-1)"
RETURN_SOFT = "temperature**2 * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)"
FILL_STUDENT = "    student = student.masked_fill(~mask[..., None], 0)"
LOG_P = "(teacher / temperature).log_softmax(dim=-1)"
LOG_Q = "(student / temperature).log_softmax(dim=-1)"
DISTILLATION = [
    wrong(
        "soft",
        "soft_without_the_factor",
        "leaves out the temperature squared",
        RETURN_SOFT,
        "divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)",
        SOFT,
        "The factor temperature squared is missing",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_factor_not_squared",
        "multiplies by the temperature",
        "temperature**2",
        "temperature",
        SOFT,
        "temperature squared",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_upside_down",
        "takes the divergence in the other direction, weighed by the student",
        PARTS,
        "    parts = log_q.exp() * (log_q - log_p)",
        SOFT,
        "Upside down",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_cross_entropy",
        "takes the cross-entropy, which the teacher's own entropy is part of",
        PARTS,
        "    parts = -log_p.exp() * log_q",
        SOFT,
        "p ln p",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_student_at_one",
        "divides the teacher's logits alone by the temperature",
        LOG_Q,
        "student.log_softmax(dim=-1)",
        SOFT,
        "Divide the student's logits by the temperature, too",
        also=(EDGES, TRAINED),
    ),
    wrong(
        "soft",
        "soft_teacher_at_one",
        "divides the student's logits alone by the temperature",
        LOG_P,
        "teacher.log_softmax(dim=-1)",
        SOFT,
        "Divide the teacher's logits by the temperature, too",
        also=(EDGES, TRAINED),
    ),
    wrong(
        "soft",
        "soft_temperature_of_the_example",
        "always takes temperature 2, that of the example and of DistilBERT",
        FILL_STUDENT,
        f"    temperature = 2.0\n{FILL_STUDENT}",
        SOFT,
        "the loss is wrong",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_whole_temperatures",
        "takes the temperature for a whole number",
        FILL_STUDENT,
        f"    temperature = max(int(temperature), 1)\n{FILL_STUDENT}",
        SOFT,
        "With temperature 1.5 in float64, the loss of each sentence is wrong",
        "hidden",
        (EDGES,),
    ),
    wrong(
        "soft",
        "soft_mean_over_positions",
        "divides by T, padding among it",
        "mask.sum(dim=1).clamp(min=1)",
        "mask.shape[1]",
        SOFT,
        "You divide by T",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_sum_over_tokens",
        "adds up over tokens",
        " / mask.sum(dim=1).clamp(min=1)",
        " * mask.any(dim=1)",
        SOFT,
        "Divide by the number of real tokens",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_tokens_of_the_batch",
        "divides by the number of real tokens of the batch",
        "mask.sum(dim=1).clamp(min=1)",
        "mask.sum().clamp(min=1)",
        SOFT,
        "yours divides by the batch's",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_one_number",
        "gives the mean over all tokens, one number, as the library does",
        RETURN_SOFT,
        "temperature**2 * divergence.sum() / mask.sum()",
        SOFT,
        "It is one number a sentence",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_mean_over_words",
        "takes the mean over the vocabulary",
        DIVERGENCE,
        "torch.where(log_p.isinf(), 0, parts).mean(dim=-1)",
        SOFT,
        "Add up over the vocabulary",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_padding_times_zero",
        "multiplies the loss of padding by 0, which leaves nan a nan",
        FILL_STUDENT,
        "    keep, fill = mask, torch.Tensor.masked_fill\n"
        "    log_p = (teacher.detach() / temperature).log_softmax(dim=-1)\n"
        "    log_q = (student / temperature).log_softmax(dim=-1)\n"
        "    parts = fill(log_p.exp() * (log_p - log_q), log_p.isinf(), 0).sum(dim=-1)\n"
        "    total = temperature**2 * (parts * keep).sum(dim=1)\n"
        "    return total / keep.sum(dim=1).clamp(min=1)",
        EDGES,
        "nan",
        "hidden",
        also=(TRAINED,),
    ),
    wrong(
        "soft",
        "soft_gradient_of_padding",
        "leaves padding out of the loss alone: its nan goes into the gradient",
        FILL_STUDENT,
        "    log_q = (student / temperature).log_softmax(dim=-1)\n"
        "    teacher = teacher.detach()\n"
        "    log_p = (teacher / temperature).log_softmax(dim=-1)\n"
        "    parts = (log_p.exp() * (log_p - log_q)).masked_fill(log_p.isinf(), 0)\n"
        "    total = parts.sum(dim=-1).masked_fill(~mask, 0).sum(dim=1)\n"
        "    return temperature**2 * total / mask.sum(dim=1).clamp(min=1)",
        EDGES,
        "contains nan",
        "hidden",
        also=(TRAINED,),
    ),
    wrong(
        "soft",
        "soft_trains_the_teacher",
        "lets a gradient reach the teacher",
        "teacher.detach().masked_fill",
        "teacher.masked_fill",
        EDGES,
        "A gradient reaches the teacher",
        also=(SOFT,),
    ),
    wrong(
        "soft",
        "soft_without_gradient",
        "detaches the student as well",
        "student.masked_fill",
        "student.detach().masked_fill",
        EDGES,
        "does not require grad",
        also=(SOFT, TRAINED),
    ),
    wrong(
        "soft",
        "soft_words_ruled_out",
        "computes 0 times -inf for words that the teacher rules out",
        DIVERGENCE,
        "parts.sum(dim=-1)",
        EDGES,
        "0 times ln 0 is nan",
    ),
    wrong(
        "soft",
        "soft_ruled_out_at_minus_100",
        "makes -inf a -100, which a high temperature makes likely again",
        LOG_P,
        "(teacher.clamp(min=-100.0) / temperature).log_softmax(dim=-1)",
        EDGES,
        "the loss of each sentence is wrong",
        "hidden",
        also=(SOFT,),
    ),
    wrong(
        "soft",
        "soft_epsilon_in_the_logarithm",
        "adds 1e-8 to the teacher's probabilities before the logarithm",
        LOG_P,
        "((teacher / temperature).softmax(dim=-1) + 1e-8).log()",
        EDGES,
        "A sentence of padding alone costs 0",
        also=(SOFT,),
    ),
    wrong(
        "soft",
        "soft_logarithm_of_softmax",
        "takes the logarithm of a softmax, which is -inf for logits that lie far apart",
        LOG_Q,
        "(student / temperature).softmax(dim=-1).log()",
        SOFT,
        "the logarithm of a softmax is -inf",
        "hidden",
    ),
    wrong(
        "soft",
        "soft_empty_sentence",
        "divides by 0 for a sentence of padding alone",
        ".clamp(min=1)",
        "",
        EDGES,
        "A sentence of padding alone costs 0",
    ),
    wrong(
        "soft",
        "soft_epsilon_in_the_divisor",
        "adds 1e-6 to the number of tokens",
        "mask.sum(dim=1).clamp(min=1)",
        "(mask.sum(dim=1) + 1e-6)",
        SOFT,
        "is wrong",
        "hidden",
        (EDGES,),
    ),
    wrong(
        "soft",
        "soft_in_float32",
        "computes in float32 whatever comes",
        FILL_STUDENT,
        f"    student, teacher = student.float(), teacher.float()\n{FILL_STUDENT}",
        SOFT,
        "must have dtype torch.float64",
        also=(EDGES,),
    ),
    wrong(
        "soft",
        "soft_fills_the_caller_s",
        "fills padding in the caller's logits",
        "student = student.masked_fill(",
        "student = student.masked_fill_(",
        EDGES,
        "in-place",
        also=(SOFT,),
    ),
]

DISTILLATION += [
    wrong(
        "soft",
        "soft_ready_made",
        "takes torch's divergence",
        PARTS,
        "    parts = torch.nn.functional.kl_div(log_q, log_p, reduction='none', log_target=True)",
        SOFT,
        "which this assignment withholds",
        also=(EDGES, TRAINED),
    )
]

HARD = "-right.masked_fill(~counted, 0).sum(dim=1) / counted.sum(dim=1)"
MIX = "((1 - weight) * soft + weight * hard).mean(), hard"
MIXTURE = [
    wrong(
        "mixed",
        "mixed_by_torch_s_mean",
        "takes torch's cross-entropy, the mean over all labels of the batch",
        HARD,
        "torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1)",
        MIXED,
        "It is one number a sentence",
    ),
    wrong(
        "mixed",
        "mixed_labels_count_the_same",
        "gives a sentence with more labels more weight",
        MIX,
        "(1 - weight) * soft.mean() - weight * right[counted].mean(), hard",
        MIXED,
        "Each sentence counts the same",
    ),
    wrong(
        "mixed",
        "mixed_upside_down",
        "gives the share w to the soft loss",
        MIX,
        "(weight * soft + (1 - weight) * hard).mean(), hard",
        MIXED,
        "w is the share of the hard loss",
        also=(TRAINED,),
    ),
    wrong(
        "mixed",
        "mixed_soft_whole",
        "adds w times the hard loss to the whole soft one",
        MIX,
        "(soft + weight * hard).mean(), hard",
        MIXED,
        "The soft loss has the share 1 - w",
    ),
    wrong(
        "mixed",
        "mixed_half_and_half",
        "always mixes half and half",
        MIX,
        "(0.5 * soft + 0.5 * hard).mean(), hard",
        MIXED,
        "the loss is wrong",
        also=(TRAINED,),
    ),
    wrong(
        "mixed",
        "mixed_sum_over_sentences",
        "adds up over sentences",
        MIX,
        "((1 - weight) * soft + weight * hard).sum(), hard",
        MIXED,
        "Take the mean over sentences",
    ),
    wrong(
        "mixed",
        "mixed_minus_100",
        "takes torch's -100 for no label, so that -1 is one",
        "labels >= 0",
        "labels != -100",
        MIXED,
        "leave out label -1",
    ),
    wrong(
        "mixed",
        "mixed_without_label_0",
        "takes label 0 for none",
        "labels >= 0",
        "labels > 0",
        MIXED,
        "the hard loss is wrong",
    ),
    wrong(
        "mixed",
        "mixed_sum_over_labels",
        "adds up over the labels of a sentence",
        " / counted.sum(dim=1)",
        "",
        MIXED,
        "Divide by the number of labels",
    ),
    wrong(
        "mixed",
        "mixed_mean_over_positions",
        "divides by T",
        "counted.sum(dim=1)",
        "counted.shape[1]",
        MIXED,
        "You divide by T",
    ),
    wrong(
        "mixed",
        "mixed_at_a_temperature",
        "has the hard loss at temperature 2",
        "logits.masked_fill(~counted[..., None], 0)",
        "(logits / 2).masked_fill(~counted[..., None], 0)",
        MIXED,
        "the hard loss is wrong",
    ),
    wrong(
        "mixed",
        "mixed_soft_detached",
        "lets no gradient through the soft loss",
        "(1 - weight) * soft",
        "(1 - weight) * soft.detach()",
        MIXED,
        "gradient",
        "hidden",
        (TRAINED,),
    ),
    wrong(
        "mixed",
        "mixed_hard_detached",
        "gives the hard loss back without a gradient",
        MIX,
        "((1 - weight) * soft + weight * hard).mean(), hard.detach()",
        MIXED,
        "gradient",
        "hidden",
    ),
    wrong(
        "mixed",
        "mixed_gradient_of_padding",
        "leaves padding out of the loss alone: its nan goes into the gradient",
        "logits.masked_fill(~counted[..., None], 0).log_softmax",
        "logits.log_softmax",
        MIXED,
        "contains nan",
        "hidden",
    ),
    wrong(
        "mixed",
        "mixed_short_cut_at_0",
        "computes no hard loss where its share is 0",
        "    return ((1",
        "    if weight == 0:\n        return soft.mean(), torch.zeros_like(soft)\n    return ((1",
        MIXED,
        "hard loss",
        "hidden",
    ),
    wrong(
        "mixed",
        "mixed_labels_changed",
        "makes the caller's -1 a 0",
        "labels.clamp(min=0)",
        "labels.clamp_(min=0)",
        MIXED,
        "must leave its input as it was",
        "hidden",
        (TRAINED,),
    ),
    wrong(
        "mixed",
        "mixed_logarithm_of_softmax",
        "takes the logarithm of a softmax, which is -inf for logits that lie far apart",
        "0).log_softmax(dim=-1)",
        "0).softmax(dim=-1).log()",
        MIXED,
        "is wrong",
        "hidden",
    ),
]

FILL_PRODUCTS = "products.masked_fill(~document_mask[None, :, None], -torch.inf)"
FILL_BEST = "best.masked_fill(~query_mask[:, None], 0)"
DIVIDE = "best.sum(dim=-1) / query_mask.sum(dim=1)[:, None]"
EINSUM = 'torch.einsum("qtd,nsd->qnts", queries, documents)'
FILL_Q = "    queries = queries.masked_fill(~query_mask[..., None], 0)"
FILL_D = "    documents = documents.masked_fill(~document_mask[..., None], 0)"
MAXSIM = [
    wrong(
        "late-interaction",
        "maxsim_sum",
        "adds up over the query's tokens, as ColBERT does",
        DIVIDE,
        "best.sum(dim=-1)",
        SCORES,
        "yours is the sum",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_mean_over_positions",
        "divides by T, padding among it",
        DIVIDE,
        "best.mean(dim=-1)",
        SCORES,
        "You divide by T",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_padding_as_0",
        "lets padding of a document take part with the product 0",
        "    products = products.masked_fill(~document_mask[None, :, None], -torch.inf)\n",
        "",
        SCORES,
        "Padding takes part as 0",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_query_padding_counted",
        "lets padding of a query take part with the product 0, and counts it",
        DIVIDE,
        "best.sum(dim=-1) / query_mask.shape[1]",
        SCORES,
        "You divide by T",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_mask_of_the_first_query",
        "takes the mask of the first query for all",
        FILL_BEST,
        "best.masked_fill(~query_mask[:1, None], 0)",
        SCORES,
        "the scores is wrong",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_over_the_query",
        "takes the largest over the query, and the mean over the document",
        "    best, partners = products.max(dim=-1)  # [Q, N, T]",
        "    partners = products.max(dim=-1).indices\n"
        "    over = products.masked_fill(~query_mask[:, None, :, None], -torch.inf).amax(dim=2)\n"
        "    over = over.masked_fill(~document_mask, 0).sum(-1) / document_mask.sum(-1)\n"
        "    some = document_mask.any(dim=1)[None, :, None] & query_mask[:, None]\n"
        "    return over, partners.masked_fill(~some, -1)",
        SCORES,
        "The maximum runs over the document",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_unit_documents",
        "makes the documents' vectors as long as 1",
        EINSUM,
        'torch.einsum("qtd,nsd->qnts", queries, torch.nn.functional.normalize(documents, dim=-1))',
        SCORES,
        "the scores is wrong",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_loop_over_documents",
        "computes the products of one document after the other",
        EINSUM,
        "torch.stack([queries @ document.T for document in documents], dim=1)",
        SCORES,
        "has a loop",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_ready_made",
        "takes the library's",
        FILL_Q,
        f"    from course_lib.family.colbert import maxsim as scored\n{FILL_Q}",
        SCORES,
        "which this assignment withholds",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_minus_1e9",
        "fills in -1e9, so that an empty document has a score",
        FILL_PRODUCTS,
        "products.masked_fill(~document_mask[None, :, None], -1e9)",
        TIES,
        "has the score -inf",
        also=(SCORES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_minus_1e4",
        "fills in -1e4, and -inf for an empty document alone",
        f"    products = {FILL_PRODUCTS}\n    best, partners = products.max(dim=-1)",
        "    products = products.masked_fill(~document_mask[None, :, None], -1e4)\n"
        "    best, partners = products.max(dim=-1)\n"
        "    best = best.masked_fill(~document_mask.any(dim=1)[None, :, None], -torch.inf)",
        SCORES,
        "is wrong",
        "hidden",
        ("maxsim-edges",),
    ),
    wrong(
        "late-interaction",
        "maxsim_empty_document_times_0",
        "multiplies by the mask of the query: -inf times 0 is nan",
        FILL_BEST,
        "best * query_mask[:, None]",
        TIES,
        "contains nan",
        "hidden",
    ),
    wrong(
        "late-interaction",
        "maxsim_gradient_of_padding",
        "leaves padding of documents out of the maximum alone: its nan goes into the gradient",
        FILL_D,
        "",
        TIES,
        "contains nan",
        "hidden",
    ),
    wrong(
        "late-interaction",
        "maxsim_gradient_of_padding_in_queries",
        "leaves padding of queries out of the sum alone: its nan goes into the gradient",
        FILL_Q,
        "",
        TIES,
        "contains nan",
        "hidden",
    ),
    wrong(
        "late-interaction",
        "maxsim_last_of_ties",
        "takes the last of the best",
        "    best, partners = products.max(dim=-1)  # [Q, N, T]",
        "    best, partners = products.flip(-1).max(dim=-1)\n"
        "    partners = products.shape[-1] - 1 - partners",
        TIES,
        "the first of the two",
    ),
    wrong(
        "late-interaction",
        "maxsim_nearly_equal",
        "takes products for equal that differ by less than 1e-6",
        "    best, partners = products.max(dim=-1)  # [Q, N, T]",
        "    best = products.amax(dim=-1)\n"
        "    partners = (products > best[..., None] - 1e-6).int().argmax(dim=-1)",
        TIES,
        "the table of partners is wrong",
        "hidden",
        also=(SCORES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_partner_of_padding",
        "gives padding of the query a partner",
        "& query_mask[:, None]  #",
        "| ~query_mask[:, None]  #",
        SCORES,
        "has the partner -1",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_partner_in_an_empty_document",
        "names a partner in a document that has none",
        "document_mask.any(dim=1)[None, :, None] & query_mask[:, None]",
        "(document_mask.any(dim=1)[None, :, None] | True) & query_mask[:, None]",
        TIES,
        "and the partner -1",
    ),
    wrong(
        "late-interaction",
        "maxsim_partner_among_real_tokens",
        "counts partners among the real tokens of the document",
        "    return scores, partners",
        "    places = document_mask.cumsum(dim=1)[None, :, None] - 1\n"
        "    partners = places.expand(products.shape).gather(-1, partners[..., None])[..., 0]\n"
        "    return scores, partners",
        TIES,
        "counted with padding",
        also=(SCORES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_partners_int32",
        "gives partners as int32",
        "partners.masked_fill(~some, -1)",
        "partners.int().masked_fill(~some, -1)",
        SCORES,
        "must have dtype torch.int64",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_in_float32",
        "computes in float32 whatever comes",
        EINSUM,
        'torch.einsum("qtd,nsd->qnts", queries.float(), documents.float())',
        SCORES,
        "must have dtype torch.float64",
        also=(TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_without_gradient",
        "lets no gradient reach the documents, as if they were stored",
        "queries, documents)",
        "queries, documents.detach())",
        SCORES,
        "no gradient reaches documents",
        "hidden",
        (TIES,),
    ),
    wrong(
        "late-interaction",
        "maxsim_at_least_minus_1",
        "takes products for cosines, which are not below -1",
        FILL_BEST,
        "torch.where(best.isinf(), best, best.clamp(min=-1)).masked_fill(~query_mask[:, None], 0)",
        SCORES,
        "is wrong",
        "hidden",
        also=(TIES,),
    ),
]

WHILE = "len(start) + sum(map(len, shown)) + len(question) > longest"
GLUED = "[*start, *(index for shot in shown for index in shot), *question], len(shown)"
REFUSE = """    if len(start) + len(question) > longest:
        raise ValueError("the prompt is too long without any shot")
"""
SHOWN = "    shown = [[*asked, *answer, between] for asked, answer in shots]\n"
PROMPTS = [
    wrong(
        "few-shot",
        "build_drops_the_last",
        "leaves out the last shots",
        "shown = shown[1:]",
        "shown = shown[:-1]",
        BUILD,
        "the first one first",
    ),
    wrong(
        "few-shot",
        "build_cuts_a_shot",
        "cuts off the front of the prompt, in the middle of a shot",
        f"    while {WHILE}:\n        shown = shown[1:]\n    return {GLUED}",
        "    whole = [*start, *(index for shot in shown for index in shot), *question]\n"
        "    return whole[-longest:], len(shown)",
        BUILD,
        "Leave out whole shots",
    ),
    wrong(
        "few-shot",
        "build_must_be_shorter",
        "leaves out a shot where the prompt fits exactly",
        WHILE,
        "len(start) + sum(map(len, shown)) + len(question) >= longest and shown",
        BUILD,
        "they fit exactly",
    ),
    wrong(
        "few-shot",
        "build_fills_the_gaps",
        "leaves out shots that are too long, and keeps shorter ones before them",
        f"    while {WHILE}:\n        shown = shown[1:]",
        "    room, kept = longest - len(start) - len(question), []\n"
        "    for shot in shown[::-1]:\n"
        "        if len(shot) <= room:\n"
        "            kept, room = [shot, *kept], room - len(shot)\n"
        "    shown = kept",
        BUILD,
        "so that none is left",
    ),
    wrong(
        "few-shot",
        "build_nothing_between_the_last_and_the_question",
        "puts the separator between shots only",
        "*(index for shot in shown for index in shot), *question]",
        "*[index for shot in shown for index in shot][:-1], *question]",
        BUILD,
        "there is room for all",
    ),
    wrong(
        "few-shot",
        "build_counts_the_dropped",
        "counts the shots that were left out",
        "*question], len(shown)",
        "*question], len(shots) - len(shown)",
        BUILD,
        "there is room for all",
    ),
    wrong(
        "few-shot",
        "build_start_not_counted",
        "does not count the start",
        WHILE,
        "sum(map(len, shown)) + len(question) > longest",
        BUILD,
        "one token too many",
    ),
    wrong(
        "few-shot",
        "build_question_not_counted",
        "does not count the question",
        WHILE,
        "len(start) + sum(map(len, shown)) > longest",
        BUILD,
        "one token too many",
    ),
    wrong(
        "few-shot",
        "build_separators_not_counted",
        "does not count the separators",
        WHILE,
        "len(start) + sum(len(s) - 1 for s in shown) + len(question) > longest",
        BUILD,
        "one token too many",
    ),
    wrong(
        "few-shot",
        "build_too_long_all_the_same",
        "gives a prompt that is too long where no shot is left",
        f"{REFUSE}{SHOWN}    while ",
        f"{SHOWN}    while shown and ",
        BUILD,
        "must raise ValueError",
    ),
    wrong(
        "few-shot",
        "build_refuses_what_fits_exactly",
        "refuses a start and a question that fill the prompt",
        "    if len(start) + len(question) > longest:",
        "    if len(start) + len(question) >= longest:",
        BUILD,
        "raises ValueError",
        "hidden",
    ),
    wrong(
        "few-shot",
        "build_empties_the_shots",
        "takes shots out of the caller's list",
        "    shown = [[",
        "    while shots and len(start) + len(question) + sum(len(a) + len(b) + 1 for a, b in shots) > longest:\n"
        "        shots.pop(0)\n"
        "    shown = [[",
        BUILD,
        "must leave the caller's shots as they were",
    ),
    wrong(
        "few-shot",
        "build_eight_shots",
        "takes the last eight shots at most",
        "for asked, answer in shots]",
        "for asked, answer in shots[-8:]]",
        BUILD,
        "is wrong",
        "hidden",
    ),
    wrong(
        "few-shot",
        "build_needs_a_shot",
        "raises where there is no shot to show",
        "    while len(start)",
        '    if not shots:\n        raise ValueError("no shots")\n    while len(start)',
        BUILD,
        "raises ValueError",
        "hidden",
    ),
]

READ = "model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)"
PAD_ROWS = "[[*prompt, *answer, *[pad] * (M - len(answer))] for answer in answers]"
LIKELY = [
    wrong(
        "tokens",
        "tokens_read_at_their_own_place",
        "reads the logits at the token, which are those of the next one",
        READ,
        "model(ids)[:, begin:].log_softmax(dim=-1)",
        TOKENS,
        "read one earlier",
    ),
    wrong(
        "tokens",
        "tokens_one_call_each",
        "calls the model for each answer",
        "model(ids)[",
        "torch.cat([model(row[None]) for row in ids])[",
        TOKENS,
        "Put all answers into one batch",
    ),
    wrong(
        "tokens",
        "tokens_padded_in_front",
        "fills up in front of the prompt",
        PAD_ROWS,
        "[[*[pad] * (M - len(answer)), *prompt, *answer] for answer in answers]",
        TOKENS,
        "the table is wrong",
    ),
    wrong(
        "tokens",
        "tokens_that_are_pad",
        "takes every pad for padding, also in an answer",
        "torch.arange(M, device=device) < lengths",
        "ids[:, begin:] != pad",
        TOKENS,
        "By lengths",
    ),
    wrong(
        "tokens",
        "tokens_of_padding",
        "leaves log-probabilities at padding",
        "found.masked_fill(~mask, 0), mask",
        "found, mask",
        TOKENS,
        "must be 0 at padding",
    ),
    wrong(
        "tokens",
        "tokens_as_probabilities",
        "gives probabilities",
        ".log_softmax(dim=-1)",
        ".softmax(dim=-1)",
        TOKENS,
        "take the logarithm",
    ),
    wrong(
        "tokens",
        "tokens_softmax_over_places",
        "takes the softmax over positions",
        ".log_softmax(dim=-1)",
        ".log_softmax(dim=1)",
        TOKENS,
        "the table is wrong",
    ),
    wrong(
        "tokens",
        "tokens_logits",
        "gives logits",
        ".log_softmax(dim=-1)",
        "",
        TOKENS,
        "the table is wrong",
    ),
    wrong(
        "tokens",
        "tokens_logarithm_of_softmax",
        "takes the logarithm of a softmax, which is -inf for logits that lie far apart",
        ".log_softmax(dim=-1)",
        ".softmax(dim=-1).log()",
        TOKENS,
        "is wrong",
        "hidden",
    ),
    wrong(
        "tokens",
        "tokens_filled_with_0",
        "fills up with 0 whatever pad is",
        "[pad]",
        "[0]",
        TOKENS,
        "pad",
        "hidden",
    ),
    wrong(
        "tokens",
        "tokens_in_float32",
        "computes in float32 whatever comes",
        "model(ids)[:, begin - 1 : -1]",
        "model(ids)[:, begin - 1 : -1].float()",
        TOKENS,
        "must have dtype torch.float64",
    ),
    wrong(
        "tokens",
        "tokens_after_the_last_of_the_prompt",
        "shows the model the last token of the prompt alone",
        "M, begin = max(map(len, answers)), len(prompt)",
        "M, begin, prompt = max(map(len, answers)), 1, prompt[-1:]",
        TOKENS,
        "the table is wrong",
    ),
    wrong(
        "tokens",
        "tokens_without_the_answer_before",
        "predicts each token from the prompt alone",
        READ,
        "model(ids)[:, begin - 1 : begin].log_softmax(dim=-1).expand(-1, M, -1)",
        TOKENS,
        "the table is wrong",
    ),
    wrong(
        "tokens",
        "tokens_remembered",
        "remembers what it gave for a prompt, also for another model",
        "found.masked_fill(~mask, 0), mask",
        'globals().setdefault("known", {}).setdefault('
        "str((prompt, answers)), (found.masked_fill(~mask, 0), mask))",
        TOKENS,
        "is wrong",
        "hidden",
    ),
]

SUM = "log_probs.masked_fill(~mask, 0).sum(dim=-1) / power"
POWER = "mask.sum(dim=-1).to(log_probs.dtype) ** alpha"
PRIOR = "        scores = scores - prior.masked_fill(~mask, 0).sum(dim=-1) / power"
CHOSEN = [
    wrong(
        "choice",
        "choice_by_the_sum",
        "does not divide by the length",
        POWER,
        "mask.sum(dim=-1).to(log_probs.dtype) ** 0",
        CHOICE,
        "Divide by the number of tokens",
    ),
    wrong(
        "choice",
        "choice_by_the_mean",
        "always takes the mean",
        POWER,
        "mask.sum(dim=-1).to(log_probs.dtype)",
        CHOICE,
        "The length has the power alpha",
    ),
    wrong(
        "choice",
        "choice_alpha_0_by_default",
        "has another default",
        "alpha=1.0",
        "alpha=0.0",
        CHOICE,
        "Divide by the number of tokens",
    ),
    wrong(
        "choice",
        "choice_length_penalty",
        "takes the length penalty of machine translation",
        POWER,
        "((5 + mask.sum(dim=-1).to(log_probs.dtype)) / 6) ** alpha",
        CHOICE,
        "the scores is wrong",
    ),
    wrong(
        "choice",
        "choice_length_of_the_longest",
        "divides by M",
        POWER,
        "torch.tensor(mask.shape[1], dtype=log_probs.dtype) ** alpha",
        CHOICE,
        "own length",
    ),
    wrong(
        "choice",
        "choice_padding_counted",
        "adds up padding, too",
        "log_probs.masked_fill(~mask, 0).sum",
        "log_probs.sum",
        CHOICE,
        "Padding is in the sum",
    ),
    wrong(
        "choice",
        "choice_padding_times_0",
        "multiplies padding by 0, which leaves nan a nan",
        "log_probs.masked_fill(~mask, 0)",
        "(log_probs * mask)",
        CHOICE,
        "What stands at padding may be any number",
        "hidden",
    ),
    wrong(
        "choice",
        "choice_prior_s_padding",
        "adds up the padding of the prior",
        "prior.masked_fill(~mask, 0).sum(",
        "prior.sum(",
        CHOICE,
        "is wrong",
    ),
    wrong(
        "choice",
        "choice_without_prior",
        "ignores the prior",
        PRIOR,
        "        pass",
        CHOICE,
        "Subtract the score of the prior",
    ),
    wrong(
        "choice",
        "choice_prior_added",
        "adds the prior",
        "scores = scores - prior",
        "scores = scores + prior",
        CHOICE,
        "Subtract the prior's score",
    ),
    wrong(
        "choice",
        "choice_prior_s_sum",
        "subtracts the prior's sum, not divided by the length",
        PRIOR,
        "        scores = scores - prior.masked_fill(~mask, 0).sum(dim=-1)",
        CHOICE,
        "Divide the prior's sum by the power, too",
    ),
    wrong(
        "choice",
        "choice_mean_of_the_prompts",
        "takes the mean over the prompts for the prior, as the library does",
        PRIOR,
        "        scores = scores - scores.mean(dim=0)",
        CHOICE,
        "the scores is wrong",
    ),
    wrong(
        "choice",
        "choice_if_prior",
        "asks whether a tensor is true",
        "if prior is not None:",
        "if prior:",
        CHOICE,
        "Boolean value of Tensor",
    ),
    wrong(
        "choice",
        "choice_if_prior_has_something",
        "leaves out a prior whose numbers add up to 0",
        "if prior is not None:",
        "if prior is not None and prior[0, 0] != 0:",
        CHOICE,
        "is wrong",
        "hidden",
    ),
    wrong(
        "choice",
        "choice_least",
        "chooses the smallest score",
        "scores.argmax(dim=-1), scores",
        "scores.argmin(dim=-1), scores",
        CHOICE,
        "The largest score",
    ),
    wrong(
        "choice",
        "choice_last_of_ties",
        "chooses the last of the best",
        "scores.argmax(dim=-1), scores",
        "scores.shape[1] - 1 - scores.flip(-1).argmax(dim=-1), scores",
        CHOICE,
        "is wrong",
        "hidden",
    ),
    wrong(
        "choice",
        "choice_nearly_equal",
        "takes scores for equal that agree to six digits",
        "scores.argmax(dim=-1), scores",
        "scores.round(decimals=6).argmax(dim=-1), scores",
        CHOICE,
        "is wrong",
        "hidden",
    ),
    wrong(
        "choice",
        "choice_as_list",
        "gives a list of numbers",
        "scores.argmax(dim=-1), scores",
        "scores.argmax(dim=-1).tolist(), scores",
        CHOICE,
        "must be a tensor",
    ),
    wrong(
        "choice",
        "choice_impossible_made_finite",
        "makes -inf a finite number",
        "log_probs.masked_fill(~mask, 0)",
        "log_probs.nan_to_num().masked_fill(~mask, 0)",
        CHOICE,
        "is wrong",
        "hidden",
    ),
    wrong(
        "choice",
        "choice_without_gradient",
        "detaches the log-probabilities",
        "scores = log_probs.masked_fill",
        "scores = log_probs.detach().masked_fill",
        CHOICE,
        "no gradient reaches log_probs",
        "hidden",
    ),
    wrong(
        "choice",
        "choice_in_float32",
        "has the power in float32",
        POWER,
        "mask.sum(dim=-1) ** alpha",
        CHOICE,
        "is wrong",
        "hidden",
    ),
]

LOSS = 'mixed_loss(soft, logits, data["labels"], 0.0)'
EXPERIMENT = [
    wrong(
        "experiment",
        "experiment_on_labels",
        "trains on the labels alone",
        LOSS,
        'mixed_loss(soft, logits, data["labels"], 1.0)',
        TRAINED,
        "learns from the labels alone",
    ),
    wrong(
        "experiment",
        "experiment_half_and_half",
        "gives the labels half of the loss",
        LOSS,
        'mixed_loss(soft, logits, data["labels"], 0.5)',
        TRAINED,
        "must be at most 0.03 nats",
    ),
    wrong(
        "experiment",
        "experiment_without_mask",
        "trains on padding",
        'data["mask"]',
        'torch.ones_like(data["mask"])',
        TRAINED,
        "must be at most 0.03 nats",
    ),
    wrong(
        "experiment",
        "experiment_without_step",
        "never steps",
        "        optimizer.step()\n",
        "",
        TRAINED,
        "does it step?",
    ),
    wrong(
        "experiment",
        "experiment_returns_nothing",
        "forgets to return the student",
        "    return student",
        "    pass",
        TRAINED,
        "yours returns nothing",
    ),
    wrong(
        "experiment",
        "experiment_too_short",
        "stops after ten steps",
        "range(80)",
        "range(10)",
        TRAINED,
        "must be at most 0.03 nats",
    ),
    wrong(
        "experiment",
        "experiment_fills_the_stories",
        "fills the labels of padding in the caller's data",
        "    student = make_student()",
        '    data["labels"].clamp_(min=0)\n    student = make_student()',
        TRAINED,
        "must leave the stories as they are",
    ),
    wrong(
        "experiment",
        "experiment_on_the_visible_teacher",
        "learns from the stories that the notebook shows, whatever it is given",
        "    student = make_student()",
        "    data = make_data(1)[1]\n    student = make_student()",
        TRAINED,
        "For 24 stories of another teacher",
        "hidden",
    ),
]

CHECK_OF_EXAMPLES = """def check_fill_in(implementation):
    marks = [90, 91, 92]
    text, new, missing = implementation([5, 90, 6, 91], [90, 7, 8, 92, 1], marks, 1, 9)
    assert text == [5, 7, 8, 6, 91] and missing == [91]
    assert new == [False, True, True, False, False]
    text, new, missing = implementation([5, 90, 6, 91], [91, 7, 90, 8, 1, 9], marks, 1, 9)
    assert text == [5, 8, 6, 7] and missing == []"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    try:
        implementation([90, 90], [], marks, 1, 9)
    except ValueError as error:
        assert 'once' in str(error)"""
)
CHECKS = wrong_checks(
    "fill_in",
    "implementation([5], [], [90], 1, 9)",
    "a tight fit; changed arguments; counting; empty input; errors that are not raised; padding; small numbers; the formula; the order; ties",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *DISTILLATION,
    *MIXTURE,
    *MAXSIM,
    *PROMPTS,
    *LIKELY,
    *CHOSEN,
    *EXPERIMENT,
    *CHECKS,
]
SOFT_BY_SENTENCE = """def soft_targets(student, teacher, mask, temperature):
    losses = []
    for u, z, real_tokens in zip(student, teacher.detach(), mask):
        u, z = u[real_tokens] / temperature, z[real_tokens] / temperature
        if len(u) == 0:
            losses.append(student.new_zeros(()))
            continue
        p = z.softmax(1)
        entropy = -torch.special.xlogy(p, p).sum(1)
        crossed = -(p * u.log_softmax(1)).sum(1)
        losses.append(((crossed - entropy) * temperature * temperature).mean())
    return torch.stack(losses)"""
SOFT_BY_TOKEN = """def soft_targets(student, teacher, mask, temperature):
    with torch.no_grad():
        z = torch.where(mask.unsqueeze(2), teacher, torch.zeros_like(teacher))
        log_p = z.div(temperature) - z.div(temperature).logsumexp(2, keepdim=True)
        p = log_p.exp()
        log_p = log_p.nan_to_num(neginf=0.0)
    u = torch.where(mask.unsqueeze(2), student, torch.zeros_like(student)) / temperature
    log_q = u - u.logsumexp(2, keepdim=True)
    share = mask.to(u.dtype) / mask.sum(1, keepdim=True).clamp(min=1)
    return (temperature * temperature * share[:, :, None] * p * (log_p - log_q)).sum((1, 2))"""
MIXED_BY_TORCH = """def mixed_loss(soft, logits, labels, weight):
    B, T, V = logits.shape
    safe = torch.where((labels == -1)[:, :, None], torch.zeros_like(logits), logits)
    each = torch.nn.functional.cross_entropy(
        safe.reshape(B * T, V), labels.reshape(-1), ignore_index=-1, reduction="none"
    )
    hard = each.reshape(B, T).sum(1) / (labels != -1).sum(1)
    return soft.mean() + weight * (hard.mean() - soft.mean()), hard"""
MIXED_BY_SENTENCE = """def mixed_loss(soft, logits, labels, weight):
    hard = []
    for rows, wanted in zip(logits, labels):
        rows, wanted = rows[wanted >= 0], wanted[wanted >= 0]
        chosen = rows[torch.arange(len(rows), device=rows.device), wanted]
        hard.append((rows.logsumexp(1) - chosen).mean())
    hard = torch.stack(hard)
    return torch.lerp(soft, hard, weight).mean(), hard"""
MAXSIM_BROADCAST = """def maxsim(queries, documents, query_mask, document_mask):
    q = torch.where(query_mask.unsqueeze(-1), queries, torch.zeros_like(queries))
    d = torch.where(document_mask.unsqueeze(-1), documents, torch.zeros_like(documents))
    table = (q[:, None, :, None] * d[None, :, None]).sum(-1)  # [Q, N, T, S]
    real_pair = query_mask[:, None, :, None] & document_mask[None, :, None, :]
    table = torch.where(real_pair, table, torch.full_like(table, -math.inf))
    partners = torch.where(real_pair.any(-1), table.argmax(-1), -1)
    best = torch.where(query_mask[:, None], table.amax(-1), torch.zeros_like(table[..., 0]))
    return best.sum(-1).div(query_mask.sum(-1, keepdim=True)), partners"""
MAXSIM_BY_GATHER = """def maxsim(queries, documents, query_mask, document_mask):
    Q, T, D = queries.shape
    N, S = document_mask.shape
    q = queries.masked_fill(~query_mask[:, :, None], 0).reshape(Q * T, D)
    d = documents.masked_fill(~document_mask[:, :, None], 0).reshape(N * S, D)
    table = (q @ d.T).reshape(Q, T, N, S).transpose(1, 2)
    allowed = document_mask[None, :, None].expand_as(table)
    order = table.detach().masked_fill(~allowed, -math.inf)
    first = (order == order.amax(3, keepdim=True)).int().argmax(3)
    best = table.gather(3, first[..., None])[..., 0]
    weights = query_mask.to(table.dtype) / query_mask.sum(1, keepdim=True)
    scores = (best * weights[:, None]).sum(2)
    empty = ~document_mask.any(1)
    scores = scores.masked_fill(empty[None], -math.inf)
    keep = query_mask[:, None] & ~empty[None, :, None]
    return scores, torch.where(keep, first, torch.full_like(first, -1))"""
BUILD_FROM_BEHIND = """def build_prompt(start, shots, question, between, longest):
    room = longest - len(start) - len(question)
    if room < 0:
        raise ValueError(f"{-room} tokens too many")
    middle, kept = [], 0
    for asked, answer in reversed(shots):
        shot = list(asked) + list(answer) + [between]
        if len(middle) + len(shot) > room:
            break
        middle, kept = shot + middle, kept + 1
    return list(start) + middle + list(question), kept"""
TOKENS_ONE_BY_ONE = """def answer_log_probs(model, prompt, answers, pad):
    rows = [torch.tensor(list(prompt) + list(answer)) for answer in answers]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad).to(device)
    logits = model(ids)
    longest = ids.shape[1] - len(prompt)
    table, mask = logits.new_zeros(len(answers), longest), torch.zeros(len(answers), longest) > 0
    mask = mask.to(logits.device)
    for a, answer in enumerate(answers):
        for t, index in enumerate(answer):
            before = logits[a, len(prompt) + t - 1]
            table[a, t] = before[index] - before.logsumexp(0)
            mask[a, t] = True
    return table, mask"""
TOKENS_BY_CROSS_ENTROPY = """def answer_log_probs(model, prompt, answers, pad):
    L = len(prompt) + max(len(answer) for answer in answers)
    ids = torch.full((len(answers), L), pad, device=device)
    mask = torch.zeros_like(ids, dtype=torch.bool)
    for row, answer in enumerate(answers):
        ids[row, : len(prompt) + len(answer)] = torch.tensor([*prompt, *answer], device=device)
        mask[row, len(prompt) : len(prompt) + len(answer)] = True
    logits = model(ids)[:, :-1].transpose(1, 2)
    wanted = ids[:, 1:].masked_fill(~mask[:, 1:], -100)
    costs = torch.nn.functional.cross_entropy(logits, wanted, reduction="none")
    return -costs[:, len(prompt) - 1 :], mask[:, len(prompt) :]"""
CHOICE_ONE_BY_ONE = """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    columns = []
    for a, keep in enumerate(mask):
        score = log_probs[:, a, keep].sum(1)
        if prior is not None:
            score = score - prior[a, keep].sum()
        columns.append(score / len(keep.nonzero()) ** alpha)
    scores = torch.stack(columns, dim=1)
    return scores.max(dim=1).indices, scores"""
EXPERIMENT_BY_STORIES = """def experiment(make_student, data):
    student = make_student(3)
    optimizer = torch.optim.AdamW(student.parameters(), lr=0.05, weight_decay=0.0)
    for epoch in range(60):
        for rows in torch.arange(len(data["mask"])).split(8):
            part = {name: table[rows.to(table.device)] for name, table in data.items()}
            soft = soft_targets(student(part["pairs"]), part["teacher"], part["mask"], 4.0)
            optimizer.zero_grad()
            soft.mean().backward()
            optimizer.step()
    return student"""
EXPERIMENT_BY_LBFGS = """def experiment(make_student, data):
    student = make_student()
    keep = data["mask"]
    wanted = data["teacher"][keep].softmax(-1)
    optimizer = torch.optim.LBFGS(student.parameters(), lr=1, max_iter=200)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(student(data["pairs"][keep]), wanted)
        loss.backward()
        return loss

    optimizer.step(closure)
    return student"""
CHECK_BY_AN_OWN_ANSWER = """def check_fill_in(implementation):
    def own(read, written, marks, end, longest):
        spans = []
        for token in written:
            if token == end:
                break
            if token in marks:
                spans.append((token, []))
            elif spans:
                spans[-1][1].append(token)
        first = {mark: ids[:longest] for mark, ids in reversed(spans)}
        pieces = [[(x, 1) for x in first[t]] if t in first else [(t, 0)] for t in read]
        flat = sum(pieces, [])
        lost = [t for t in read if t in marks and t not in first]
        return [x for x, _ in flat], [bool(y) for _, y in flat], lost

    chance = random.Random(5)
    for number in range(190):
        marks = chance.sample((8, 9, 10, 11, 12), number % 6)
        plain = [token for token in range(15) if token not in marks]
        read = chance.choices(plain, k=number % 5) + chance.sample(marks, len(marks) * 2 // 3)
        chance.shuffle(read)
        written = chance.choices([*plain[:3], *marks, *marks, *plain[-2:]], k=number % 13)
        given = read[:], written[:], marks[:]
        got = implementation(*given, 2, number % 4)
        assert given == (read, written, marks)
        assert list(got) == list(own(read, written, marks, 2, number % 4))
    for read, longest in (([3, 9, 9], 1), ([9, 3, 8, 9], 4), ([9, 8], -1)):
        raised = False
        try:
            implementation(read, [9, 1], [8, 9], 2, longest)
        except ValueError:
            raised = True
        assert raised"""
RIGHT_ANSWERS = [
    RightAnswer(
        "one_by_one",
        "sentences, tokens and answers in loops, cross-entropy less entropy, real tokens picked out",
        {
            "soft": SOFT_BY_SENTENCE,
            "mixed": MIXED_BY_SENTENCE,
            "tokens": TOKENS_ONE_BY_ONE,
            "choice": CHOICE_ONE_BY_ONE,
        },
    ),
    RightAnswer(
        "all_at_once",
        "log-sum-exp by hand, weights that leave padding out, torch's cross-entropy for the hard loss",
        {
            "soft": SOFT_BY_TOKEN,
            "mixed": MIXED_BY_TORCH,
            "tokens": TOKENS_BY_CROSS_ENTROPY,
        },
    ),
    RightAnswer(
        "maxsim_by_broadcasting",
        "multiplies and adds up, argmax beside amax, one mask for pairs",
        {"late-interaction": MAXSIM_BROADCAST},
    ),
    RightAnswer(
        "maxsim_by_gather",
        "one matrix product, the first of the best, and the product picked at it",
        {"late-interaction": MAXSIM_BY_GATHER},
    ),
    RightAnswer(
        "prompt_from_behind",
        "puts shots in front of the question while there is room",
        {"few-shot": BUILD_FROM_BEHIND},
    ),
    RightAnswer(
        "experiment_in_batches",
        "a few stories at a time, at temperature 4, by AdamW",
        {"experiment": EXPERIMENT_BY_STORIES},
    ),
    RightAnswer(
        "experiment_by_lbfgs",
        "the teacher's probabilities as targets of torch's cross-entropy, by LBFGS",
        {"experiment": EXPERIMENT_BY_LBFGS},
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with a text that it fills in itself, on drawn inputs",
        {"own-check": CHECK_BY_AN_OWN_ANSWER},
    ),
]

#: Where an answer's words are others across the bridge.
ACROSS = {"soft_fills_the_caller_s": {"distillation-edges": "in-place operation"}}
