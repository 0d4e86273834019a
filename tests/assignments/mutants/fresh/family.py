"""Fresh wrong and right answers to the assignment on the family's losses and scores, written from the text that students read."""

from fresh import Fresh, fresh

from course_tools.grading.assignments.mutants import RightAnswer

STUDENT = "    student = student.masked_fill(~mask[..., None], 0)\n"
TEACHER = "    teacher = teacher.detach().masked_fill(~mask[..., None], 0)"
LOG_P = "    log_p = (teacher / temperature).log_softmax(dim=-1)"
LOG_Q = "    log_q = (student / temperature).log_softmax(dim=-1)"
PARTS = "    parts = log_p.exp() * (log_p - log_q)"
DIVERGENCE = "    divergence = torch.where(log_p.isinf(), 0, parts).sum(dim=-1)"
SOFT_RETURN = (
    "    return temperature**2 * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)"
)
SOFT = [
    *fresh(
        "legal input",
        "distillation-soft",
        "soft",
        (
            "soft_targets_padding_only_behind",
            "divides by the place of the last real token, as if padding stood only behind",
            SOFT_RETURN,
            "    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)\n    lengths = (mask * places).amax(dim=1)\n    return temperature**2 * divergence.sum(dim=1) / lengths.clamp(min=1)",
        ),
        (
            "soft_targets_counts_are_single",
            "counts tokens in single precision, so that half precision comes back as single",
            "mask.sum(dim=1).clamp(min=1)",
            "mask.float().sum(dim=1).clamp(min=1)",
        ),
    ),
    *fresh(
        "legal input",
        "distillation-edges",
        "soft",
        (
            "soft_targets_student_may_not_say_it_either",
            "takes the words that the teacher rules out from the student's softmax, too",
            LOG_Q,
            "    student = student.masked_fill(teacher == -torch.inf, -torch.inf)\n"
            + LOG_Q,
        ),
    ),
    *fresh(
        "leak",
        "distillation-edges",
        "soft",
        (
            "soft_targets_ruled_out_once_ruled_out_in_the_sentence",
            "leaves a word out at all tokens of a sentence if the teacher rules it out at one",
            "torch.where(log_p.isinf(), 0, parts)",
            "torch.where(log_p.isinf().any(dim=1, keepdim=True), 0, parts)",
        ),
        (
            "soft_targets_ruled_out_in_the_first_sentence",
            "takes the words that are ruled out from the first sentence, as if they were the same in all",
            "torch.where(log_p.isinf(), 0, parts)",
            "torch.where(log_p[:1].isinf() | parts.isnan(), 0, parts)",
        ),
    ),
    *fresh(
        "hard-wired",
        "distillation-soft",
        "soft",
        (
            "soft_targets_thirty_two_likeliest_words",
            "sums over the 32 words that the teacher finds likeliest",
            DIVERGENCE,
            "    parts = torch.where(log_p.isinf(), 0, parts)\n"
            "    top = log_p.topk(min(32, log_p.shape[-1]), dim=-1).indices\n"
            "    divergence = parts.gather(-1, top).sum(dim=-1)",
        ),
    ),
    *fresh(
        "cut-off",
        "distillation-soft",
        "soft",
        (
            "soft_targets_factor_at_least_one",
            "multiplies by the square only for temperatures above 1, below by 1",
            "temperature**2 *",
            "max(1.0, temperature) ** 2 *",
        ),
        (
            "soft_targets_temperature_at_least_half",
            "raises temperatures below 1/2 to 1/2, against overflow",
            STUDENT,
            "    temperature = max(temperature, 0.5)\n" + STUDENT,
        ),
        (
            "soft_targets_unlikely_words_left_out",
            "takes words that the teacher gives less than 1e-6 for ruled out, however much the student misses them",
            "log_p.isinf()",
            "log_p.exp() < 1e-6",
        ),
    ),
    *fresh(
        "numerics",
        "distillation-soft",
        "soft",
        (
            "soft_targets_student_not_below_minus_100",
            "cuts the student's log-probabilities off at -100, as binary cross-entropy does",
            LOG_Q,
            LOG_Q + ".clamp(min=-100)",
        ),
        (
            "soft_targets_logarithm_of_the_quotient",
            "divides probabilities and takes the logarithm then, which is infinite where the student's underflows",
            PARTS,
            "    parts = torch.xlogy(log_p.exp(), log_p.exp() / log_q.exp())",
        ),
        (
            "soft_targets_a_little_more_than_all_tokens",
            "adds 1e-6 to the number of tokens instead of asking whether there is one",
            "mask.sum(dim=1).clamp(min=1)",
            "(mask.sum(dim=1) + 1e-6)",
        ),
        (
            "soft_targets_square_in_the_dtype",
            "squares the temperature as a tensor, which overflows in half precision above 256",
            "temperature**2 *",
            "torch.tensor(temperature).to(student) ** 2 *",
        ),
    ),
    *fresh(
        "numerics",
        "distillation-edges",
        "soft",
        (
            "soft_targets_teacher_not_below_minus_100",
            "raises the teacher's logits to -100 at least, so that ruled-out words stay possible beside low ones",
            TEACHER,
            TEACHER + ".clamp(min=-100)",
        ),
        (
            "soft_targets_asks_the_logit_whether_infinite",
            "takes out words with an infinite logit, not those whose log-probability has become infinite",
            "torch.where(log_p.isinf(), 0, parts)",
            "torch.where(teacher.isinf(), 0, parts)",
        ),
    ),
    Fresh(
        "soft_targets_padding_left_out_afterwards",
        "leaves the student's padding out of the sum only, where its gradient is nan",
        "gradient",
        "distillation-edges",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    teacher = teacher.detach() / temperature
    p, log_p = teacher.softmax(dim=-1), teacher.log_softmax(dim=-1)
    log_q = (student / temperature).log_softmax(dim=-1)
    divergence = torch.where(p > 0, p * (log_p - log_q), 0).sum(dim=-1)
    divergence = torch.where(mask, divergence, 0)
    return temperature**2 * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
"""
        },
    ),
    *fresh(
        "gradient",
        "distillation-soft",
        "soft",
        (
            "soft_targets_factor_without_gradient",
            "multiplies the value by the square of the temperature, but the gradient by the temperature alone",
            SOFT_RETURN,
            "    loss = temperature * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)\n    return loss + (temperature - 1) * loss.detach()",
        ),
    ),
    *fresh(
        "state",
        "distillation-edges",
        "soft",
        (
            "soft_targets_writes_into_the_teacher",
            "fills the padding of the teacher's logits in place",
            TEACHER,
            "    teacher = teacher.detach().masked_fill_(~mask[..., None], 0)",
        ),
    ),
    *fresh(
        "state",
        "distillation-soft",
        "soft",
        (
            "soft_targets_freezes_the_teacher",
            "detaches the caller's tensor in place, which from then on has no gradient anywhere",
            TEACHER,
            "    teacher = teacher.detach_().masked_fill(~mask[..., None], 0)",
        ),
    ),
]

COUNTED = "    counted = labels >= 0"
RIGHT = "    right = log_q.gather(2, labels.clamp(min=0)[..., None])[..., 0]"
HARD = "    hard = -right.masked_fill(~counted, 0).sum(dim=1) / counted.sum(dim=1)"
MIXED_RETURN = "    return ((1 - weight) * soft + weight * hard).mean(), hard"
LOG_Q_HARD = (
    "    log_q = logits.masked_fill(~counted[..., None], 0).log_softmax(dim=-1)"
)
MIXED = [
    *fresh(
        "gradient",
        "distillation-mixed",
        "mixed",
        (
            "mixed_loss_hard_is_a_number_to_print",
            "detaches the hard losses that it returns beside the loss",
            MIXED_RETURN,
            MIXED_RETURN + ".detach()",
        ),
        (
            "mixed_loss_no_gradient_for_soft_where_all_is_hard",
            "trains the soft losses only where they are the larger part",
            MIXED_RETURN,
            "    soft = soft if weight <= 0.5 else soft.detach()\n" + MIXED_RETURN,
        ),
        (
            "mixed_loss_ignored_by_cross_entropy",
            "leaves tokens without a label to ignore_index, so that nan logits there give a nan gradient",
            HARD,
            "    lost = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-1, reduction='none')\n    hard = lost.sum(dim=1) / counted.sum(dim=1)",
        ),
    ),
    *fresh(
        "cut-off",
        "distillation-mixed",
        "mixed",
        (
            "mixed_loss_no_hard_loss_at_weight_zero",
            "does not compute the hard losses where their share is 0 and returns zeros",
            COUNTED,
            "    if not weight:\n        return soft.mean(), torch.zeros_like(soft)\n"
            + COUNTED,
        ),
        (
            "mixed_loss_soft_not_below_zero",
            "cuts the soft losses off at 0, because a divergence is never less",
            MIXED_RETURN,
            "    return ((1 - weight) * soft.clamp(min=0) + weight * hard).mean(), hard",
        ),
        (
            "mixed_loss_perfect_sentences_not_counted",
            "takes a sentence with a hard loss of 0 for one without labels and leaves it out of the mean",
            MIXED_RETURN,
            "    spoken = hard > 0\n    loss = ((1 - weight) * soft + weight * hard) * spoken\n    return loss.sum() / spoken.sum().clamp(min=1), hard",
        ),
    ),
    *fresh(
        "legal input",
        "distillation-mixed",
        "mixed",
        (
            "mixed_loss_labels_come_first",
            "averages over the first tokens, as many as have a label",
            HARD,
            "    number = counted.sum(dim=1, keepdim=True)\n    first = torch.arange(labels.shape[1], device=labels.device) < number\n    hard = -right.masked_fill(~(counted & first), 0).sum(dim=1) / number[:, 0]",
        ),
        (
            "mixed_loss_logits_must_lie_in_a_row",
            "flattens the logits by view, which fails for transposed ones",
            LOG_Q_HARD,
            "    V = logits.shape[-1]\n    log_q = logits.view(-1, V).masked_fill(~counted.reshape(-1, 1), 0).log_softmax(dim=-1).view(logits.shape)",
        ),
    ),
    *fresh(
        "leak",
        "distillation-mixed",
        "mixed",
        (
            "mixed_loss_tokens_count_the_same",
            "mixes with the mean over all labels of the batch, and returns the means of sentences",
            MIXED_RETURN,
            "    shares = counted.sum(dim=1) / counted.sum() * len(hard)\n    return ((1 - weight) * soft + weight * shares * hard).mean(), hard",
        ),
    ),
    *fresh(
        "numerics",
        "distillation-mixed",
        "mixed",
        (
            "mixed_loss_probability_not_below_1e_12",
            "takes the logarithm of a softmax that is cut off at 1e-12",
            RIGHT,
            "    log_q = log_q.exp().clamp(min=1e-12).log()\n" + RIGHT,
        ),
        (
            "mixed_loss_sum_of_exponentials",
            "writes the log-softmax out without taking off the largest logit",
            LOG_Q_HARD,
            "    shown = logits.masked_fill(~counted[..., None], 0)\n    log_q = shown - shown.exp().sum(dim=-1, keepdim=True).log()",
        ),
    ),
    *fresh(
        "state",
        "distillation-mixed",
        "mixed",
        (
            "mixed_loss_writes_into_the_labels",
            "replaces -1 by 0 in the labels that it was given",
            "labels.clamp(min=0)",
            "labels.clamp_(min=0)",
        ),
    ),
]

QUERIES = "    queries = queries.masked_fill(~query_mask[..., None], 0)\n"
DOCUMENTS = "    documents = documents.masked_fill(~document_mask[..., None], 0)\n"
PRODUCTS = '    products = torch.einsum("qtd,nsd->qnts", queries, documents)'
FILLED = (
    "    products = products.masked_fill(~document_mask[None, :, None], -torch.inf)"
)
BEST = "    best, partners = products.max(dim=-1)"
SOME = "    some = document_mask.any(dim=1)[None, :, None] & query_mask[:, None]"
NONE = "    best = best.masked_fill(~query_mask[:, None], 0)"
SCORES = "    scores = best.sum(dim=-1) / query_mask.sum(dim=1)[:, None]"
EMPTY = "\n    scores = scores.masked_fill(~document_mask.any(dim=1), -torch.inf)"
MAXSIM = [
    *fresh(
        "numerics",
        "maxsim-edges",
        "late-interaction",
        (
            "maxsim_padding_is_minus_ten_thousand",
            "gives padding of documents the product -10,000, which real products may be below",
            "    products = products.masked_fill(~document_mask[None, :, None], -torch.inf)\n    best, partners = products.max(dim=-1)",
            "    products = products.masked_fill(~document_mask[None, :, None], -1e4)\n    best, partners = products.max(dim=-1)\n    best = best.masked_fill(~document_mask.any(dim=1)[:, None], -torch.inf)",
        ),
        (
            "maxsim_padding_is_one_less_than_the_smallest",
            "gives padding the smallest product less 1, which for large numbers is no less",
            FILLED,
            "    products = torch.where(document_mask[None, :, None], products, products.detach().min() - 1)\n    products = products.masked_fill(~document_mask.any(dim=1)[:, None, None], -torch.inf)",
        ),
    ),
    *fresh(
        "cut-off",
        "maxsim-scores",
        "late-interaction",
        (
            "maxsim_nearly_equal_is_equal",
            "chooses as partner the first token within a millionth of the largest product",
            BEST,
            "    best = products.max(dim=-1).values\n    partners = (products >= best[..., None] - 1e-6).int().argmax(dim=-1)",
        ),
        (
            "maxsim_last_of_equal_partners",
            "chooses the last of equal products by searching from behind",
            BEST,
            "    best, partners = products.flip(-1).max(dim=-1)\n    partners = products.shape[-1] - 1 - partners",
        ),
        (
            "maxsim_no_product_below_zero",
            "takes a token of the query without any positive product for one without partner, with product 0",
            NONE,
            "    best = torch.where(best == -torch.inf, best, best.clamp(min=0))\n"
            + NONE,
        ),
    ),
    *fresh(
        "legal input",
        "maxsim-edges",
        "late-interaction",
        (
            "maxsim_partner_among_the_real_tokens",
            "counts the partner's position among the real tokens of the document",
            BEST,
            BEST
            + "\n    places = (document_mask.cumsum(dim=1) - 1)[None, :, None].expand(products.shape)\n    partners = places.gather(3, partners[..., None])[..., 0]",
        ),
        (
            "maxsim_document_without_a_first_token",
            "takes a document whose first token is padding for one of padding alone",
            "document_mask.any(dim=1)[None, :, None] &",
            "document_mask[:, :1][None] &",
        ),
        (
            "maxsim_query_padding_only_behind",
            "divides by the place of the last real token of the query",
            SCORES,
            "    places = torch.arange(1, query_mask.shape[1] + 1, device=query_mask.device)\n    scores = best.sum(dim=-1) / (query_mask * places).amax(dim=1)[:, None]",
        ),
        (
            "maxsim_smallest_product_at_padding",
            "gives padding the smallest product, so that padding in front may be the partner",
            FILLED,
            "    products = torch.where(document_mask[None, :, None], products, products.detach().amin(dim=-1, keepdim=True))\n    products = products.masked_fill(~document_mask.any(dim=1)[:, None, None], -torch.inf)",
        ),
    ),
    *fresh(
        "legal input",
        "maxsim-scores",
        "late-interaction",
        (
            "maxsim_mean_in_single",
            "divides by the number as single precision, so that half precision comes back as single",
            "query_mask.sum(dim=1)[:, None]",
            "query_mask.float().sum(dim=1)[:, None]",
        ),
        (
            "maxsim_one_mask_for_all_queries",
            "divides by the tokens of the longest query",
            "query_mask.sum(dim=1)[:, None]",
            "query_mask.sum(dim=1).max()",
        ),
    ),
    *fresh(
        "hard-wired",
        "maxsim-scores",
        "late-interaction",
        (
            "maxsim_vectors_of_length_one_at_most",
            "cuts products off at 128, as if vectors were never long",
            PRODUCTS,
            PRODUCTS + ".clamp(max=128)",
        ),
    ),
    *fresh(
        "gradient",
        "maxsim-edges",
        "late-interaction",
        (
            "maxsim_query_padding_left_out_afterwards",
            "does not empty the padding of queries before the product, so that nan reaches the documents' gradient",
            QUERIES,
            "",
        ),
        (
            "maxsim_document_padding_left_out_afterwards",
            "does not empty the padding of documents before the product, so that nan reaches the queries' gradient",
            DOCUMENTS,
            "",
        ),
    ),
    *fresh(
        "gradient",
        "maxsim-scores",
        "late-interaction",
        (
            "maxsim_gradient_shared_by_all_tokens",
            "returns the largest product but sends its gradient through a softmax over the document",
            NONE,
            "    smooth = products.logsumexp(dim=-1)\n    best = torch.where(best.isinf(), best, smooth + (best - smooth).detach())\n"
            + NONE,
        ),
        (
            "maxsim_documents_are_an_index",
            "sends no gradient to the documents, as if they were stored vectors",
            DOCUMENTS,
            "    documents = documents.detach().masked_fill(~document_mask[..., None], 0)\n",
        ),
    ),
    *fresh(
        "chance",
        "maxsim-scores",
        "late-interaction",
        (
            "maxsim_equal_partners_drawn",
            "draws one of the tokens with the same product",
            BEST,
            "    best = products.max(dim=-1).values\n    lots = torch.rand(products.shape, device=products.device)\n    partners = lots.masked_fill(products < best[..., None], -1).argmax(dim=-1)",
        ),
    ),
    *fresh(
        "state",
        "maxsim-edges",
        "late-interaction",
        (
            "maxsim_empties_the_padding_it_was_given",
            "writes zeros into the padding of the given documents",
            DOCUMENTS,
            "    with torch.no_grad():\n        documents[~document_mask] = 0\n",
        ),
    ),
]

TOO_LONG = "    if len(start) + len(question) > longest:"
SHOWN = "    shown = [[*asked, *answer, between] for asked, answer in shots]"
WHILE = "    while len(start) + sum(map(len, shown)) + len(question) > longest:"
DROP = "        shown = shown[1:]"
PROMPT_RETURN = "    return [*start, *(index for shot in shown for index in shot), *question], len(shown)"
PROMPT = [
    *fresh(
        "cut-off",
        "prompts-build",
        "few-shot",
        (
            "build_prompt_refuses_an_exact_fit",
            "raises where start and question alone are just as long as the prompt may be",
            TOO_LONG,
            "    if len(start) + len(question) >= longest:",
        ),
        (
            "build_prompt_refuses_to_show_nothing",
            "raises where there are shots and none of them fits",
            PROMPT_RETURN,
            "    if shots and not shown:\n        raise ValueError('no shot fits')\n"
            + PROMPT_RETURN,
        ),
        (
            "build_prompt_takes_earlier_shots_that_still_fit",
            "fills up from behind and goes on to earlier shots where one was too long",
            "    while len(start) + sum(map(len, shown)) + len(question) > longest:\n        shown = shown[1:]",
            "    room, taken = longest - len(start) - len(question), []\n    for shot in reversed(shown):\n        if len(shot) <= room:\n            taken.insert(0, shot)\n            room -= len(shot)\n    shown = taken",
        ),
        (
            "build_prompt_leaves_out_the_longest_shot",
            "leaves out the longest shot first",
            DROP,
            "        shown.pop(max(range(len(shown)), key=lambda i: len(shown[i])))",
        ),
    ),
    *fresh(
        "legal input",
        "prompts-build",
        "few-shot",
        (
            "build_prompt_counts_the_separators",
            "counts the shots by the separators, which may stand in the start, a shot or the question",
            PROMPT_RETURN,
            "    prompt = [*start, *(index for shot in shown for index in shot), *question]\n    return prompt, prompt.count(between)",
        ),
        (
            "build_prompt_leaves_out_equal_shots",
            "leaves out every shot that equals the one it leaves out",
            DROP,
            "        shown = [shot for shot in shown if shot != shown[0]]",
        ),
        (
            "build_prompt_no_shot_without_an_answer",
            "leaves out shots with an empty question or answer",
            "for asked, answer in shots]",
            "for asked, answer in shots if asked and answer]",
        ),
        (
            "build_prompt_nearest_shot_first",
            "writes the kept shots in reverse order",
            "for shot in shown for",
            "for shot in reversed(shown) for",
        ),
    ),
    *fresh(
        "state",
        "prompts-build",
        "few-shot",
        (
            "build_prompt_writes_on_in_the_start",
            "adds shots and question to the given list, so that the next prompt begins with this one",
            PROMPT_RETURN,
            "    kept = len(shown)\n    start += [index for shot in shown for index in shot]\n    start += question\n    return start, kept",
        ),
        (
            "build_prompt_takes_shots_off_the_list",
            "leaves shots out of the given list, so that they are missing from the next prompt, too",
            DROP,
            "        shots.pop(0)\n" + DROP,
        ),
        (
            "build_prompt_finishes_the_answers",
            "adds the separator to the given answers",
            SHOWN,
            "    for _, answer in shots:\n        answer.append(between)\n    shown = [[*asked, *answer] for asked, answer in shots]",
        ),
    ),
]

LENGTH = "    M, begin = max(map(len, answers)), len(prompt)"
ROWS = (
    "    rows = [[*prompt, *answer, *[pad] * (M - len(answer))] for answer in answers]"
)
MODEL = "    log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)"
FOUND = "    found = log_probs.gather(2, ids[:, begin:, None])[..., 0]"
MASK = "    mask = torch.arange(M, device=device) < lengths"
TOKENS_RETURN = "    return found.masked_fill(~mask, 0), mask"
TOKENS = [
    *fresh(
        "legal input",
        "prompts-tokens",
        "tokens",
        (
            "answer_log_probs_pad_ends_no_answer",
            "takes every pad at the end of a row for padding, also that of an answer",
            MASK,
            "    mask = (ids[:, begin:] != pad).flip(1).cumsum(dim=1).flip(1) > 0",
        ),
        (
            "answer_log_probs_drops_dimensions_of_one",
            "drops all dimensions of size 1, so that answers of one token each spread to a square",
            FOUND,
            "    found = log_probs.gather(2, ids[:, begin:, None]).squeeze()",
        ),
        (
            "answer_log_probs_shortest_first",
            "returns the answers in the order of their lengths",
            LENGTH,
            "    answers = sorted(answers, key=len)\n" + LENGTH,
        ),
        (
            "answer_log_probs_last_tokens_not_read",
            "does not show the model the last tokens, so that a row is one shorter than the text says",
            "model(ids)[:, begin - 1 : -1]",
            "model(ids[:, :-1])[:, begin - 1 :]",
        ),
        (
            "answer_log_probs_single_precision",
            "returns single precision whatever the logits are",
            ".log_softmax(dim=-1)",
            ".log_softmax(dim=-1, dtype=torch.float32)",
        ),
        (
            "answer_log_probs_equal_answers_once",
            "reads equal answers once",
            LENGTH,
            "    answers = [list(answer) for answer in dict.fromkeys(map(tuple, answers))]\n"
            + LENGTH,
        ),
    ),
    *fresh(
        "hard-wired",
        "prompts-tokens",
        "tokens",
        (
            "answer_log_probs_fills_up_with_zero",
            "fills up with 0, whatever `pad` is",
            "*[pad] *",
            "*[0] *",
        ),
        (
            "answer_log_probs_prompt_of_four_at_least",
            "fills a short prompt up in front, to four tokens",
            LENGTH,
            "    prompt = [pad] * (4 - len(prompt)) + list(prompt)\n" + LENGTH,
        ),
    ),
    *fresh(
        "gradient",
        "prompts-tokens",
        "tokens",
        (
            "answer_log_probs_only_reads",
            "calls the model without gradients",
            MODEL,
            "    with torch.no_grad():\n        logits = model(ids)\n    log_probs = logits[:, begin - 1 : -1].log_softmax(dim=-1)",
        ),
        (
            "answer_log_probs_gradient_of_the_logit_alone",
            "takes the softmax's sum for a constant in the gradient",
            MODEL,
            "    logits = model(ids)[:, begin - 1 : -1]\n    log_probs = logits - logits.detach().logsumexp(dim=-1, keepdim=True)",
        ),
    ),
    *fresh(
        "numerics",
        "prompts-tokens",
        "tokens",
        (
            "answer_log_probs_not_below_minus_100",
            "cuts log-probabilities off at -100, also that of an impossible word",
            TOKENS_RETURN,
            "    return found.clamp(min=-100).masked_fill(~mask, 0), mask",
        ),
        (
            "answer_log_probs_padding_times_zero",
            "multiplies by the mask, which is nan where `pad` is impossible",
            TOKENS_RETURN,
            "    return found * mask, mask",
        ),
    ),
    *fresh(
        "leak",
        "prompts-tokens",
        "tokens",
        (
            "answer_log_probs_shows_the_longest_answer_on",
            "fills short answers up with what the longest one says in these places",
            ROWS,
            "    longest = max(answers, key=len)\n    rows = [[*prompt, *answer, *longest[len(answer) :]] for answer in answers]",
        ),
    ),
    Fresh(
        "answer_log_probs_remembers_what_it_read",
        "keeps the log-probabilities of a model and answers, also when the model has learned since",
        "state",
        "prompts-tokens",
        {
            "tokens": """known = {}


def answer_log_probs(model, prompt, answers, pad):
    key = (model, tuple(prompt), tuple(map(tuple, answers)), pad)
    if key not in known:
        M, begin = max(map(len, answers)), len(prompt)
        rows = [[*prompt, *answer, *[pad] * (M - len(answer))] for answer in answers]
        ids = torch.tensor(rows, device=device)
        log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)
        found = log_probs.gather(2, ids[:, begin:, None])[..., 0]
        lengths = torch.tensor([[len(answer)] for answer in answers], device=device)
        mask = torch.arange(M, device=device) < lengths
        known[key] = found.masked_fill(~mask, 0), mask
    return known[key]
"""
        },
    ),
    Fresh(
        "answer_log_probs_fills_the_answers_up",
        "fills up the given answers themselves",
        "state",
        "prompts-tokens",
        {
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    lengths = torch.tensor([[len(answer)] for answer in answers], device=device)
    M, begin = int(lengths.max()), len(prompt)
    for answer in answers:
        answer.extend([pad] * (M - len(answer)))
    ids = torch.tensor([prompt + answer for answer in answers], device=device)
    log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)
    found = log_probs.gather(2, ids[:, begin:, None])[..., 0]
    mask = torch.arange(M, device=device) < lengths
    return found.masked_fill(~mask, 0), mask
"""
        },
    ),
]

POWER = "    power = mask.sum(dim=-1).to(log_probs.dtype) ** alpha"
SUM = "    scores = log_probs.masked_fill(~mask, 0).sum(dim=-1) / power"
PRIOR = "        scores = scores - prior.masked_fill(~mask, 0).sum(dim=-1) / power"
CHOICE_RETURN = "    return scores.argmax(dim=-1), scores"
CHOICE = [
    *fresh(
        "numerics",
        "prompts-choose",
        "choice",
        (
            "choose_answer_power_in_single",
            "takes the power in single precision and converts it then",
            POWER,
            "    power = (mask.sum(dim=-1).float() ** alpha).to(log_probs.dtype)",
        ),
        (
            "choose_answer_compares_probabilities",
            "compares the exponentials of the scores, which are all 0 for long answers",
            CHOICE_RETURN,
            "    return scores.exp().argmax(dim=-1), scores",
        ),
        (
            "choose_answer_log_probability_not_below_minus_1000",
            "raises log-probabilities to -1000 at least, also -inf",
            SUM,
            "    log_probs = log_probs.clamp(min=-1000)\n" + SUM,
        ),
    ),
    *fresh(
        "gradient",
        "prompts-choose",
        "choice",
        (
            "choose_answer_prior_is_a_constant",
            "sends no gradient to the prior",
            "scores - prior.masked",
            "scores - prior.detach().masked",
        ),
        (
            "choose_answer_gradient_of_the_best_alone",
            "sends a gradient only to the chosen answer's score",
            CHOICE_RETURN,
            "    best = scores.argmax(dim=-1)\n    chosen = torch.nn.functional.one_hot(best, scores.shape[-1]).bool()\n    return best, torch.where(chosen, scores, scores.detach())",
        ),
    ),
    *fresh(
        "cut-off",
        "prompts-choose",
        "choice",
        (
            "choose_answer_alpha_one_at_most",
            "takes an alpha above 1 for 1",
            "** alpha",
            "** min(alpha, 1.0)",
        ),
        (
            "choose_answer_no_prior_without_a_power",
            "leaves the prior out where alpha is 0",
            "    if prior is not None:",
            "    if prior is not None and alpha:",
        ),
        (
            "choose_answer_last_of_equals_with_a_prior",
            "chooses the last of equal answers where there is a prior",
            PRIOR,
            PRIOR
            + "\n        return scores.shape[-1] - 1 - scores.flip(-1).argmax(dim=-1), scores",
        ),
        (
            "choose_answer_nearly_equal_is_equal",
            "takes scores that differ by a millionth for equal",
            CHOICE_RETURN,
            "    return ((scores * 1e6).round() / 1e6).argmax(dim=-1), scores",
        ),
    ),
    *fresh(
        "hard-wired",
        "prompts-choose",
        "choice",
        (
            "choose_answer_mean_or_sum",
            "divides by the length for every alpha but 0",
            "** alpha",
            "** (alpha > 0)",
        ),
    ),
    *fresh(
        "legal input",
        "prompts-choose",
        "choice",
        (
            "choose_answer_padding_only_behind",
            "takes the place of an answer's last token for its length",
            POWER,
            "    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)\n    power = (mask * places).amax(dim=-1).to(log_probs.dtype) ** alpha",
        ),
    ),
    *fresh(
        "leak",
        "prompts-choose",
        "choice",
        (
            "choose_answer_prior_per_token",
            "spreads the prior of an answer over all its tokens before it leaves padding out, so that padding counts",
            PRIOR,
            "        mean = prior.masked_fill(~mask, 0).mean(dim=-1, keepdim=True)\n        scores = scores - mean.expand(prior.shape).masked_fill(~mask, 0).sum(dim=-1) / power",
        ),
    ),
    *fresh(
        "chance",
        "prompts-choose",
        "choice",
        (
            "choose_answer_equals_drawn",
            "adds a little noise before it looks for the best, so that chance decides between equal answers",
            CHOICE_RETURN,
            "    return (scores + 1e-6 * torch.rand_like(scores)).argmax(dim=-1), scores",
        ),
    ),
    *fresh(
        "state",
        "prompts-choose",
        "choice",
        (
            "choose_answer_empties_the_padding_it_was_given",
            "writes zeros into the padding of the given log-probabilities",
            SUM,
            "    log_probs.detach()[:, ~mask] = 0\n" + SUM,
        ),
        (
            "choose_answer_empties_the_priors_padding",
            "writes zeros into the padding of the given prior",
            "    if prior is not None:",
            "    if prior is not None:\n        prior.detach().masked_fill_(~mask, 0)",
        ),
    ),
]

TRAINED = "    student = make_student()"
STEPS = "    for _ in range(80):"
STEP = "        optimizer.step()\n"
SOFT_CALL = '        soft = soft_targets(logits, data["teacher"], data["mask"], 2.0)'
EXPERIMENT = [
    *fresh(
        "leak",
        "experiment-student",
        "experiment",
        (
            "experiment_asks_the_teacher_herself",
            "trains on all pairs with the teacher of the cell above, not with the stories it was given",
            TRAINED,
            "    every = tensor([[[a, p] for p in range(len(PLACES))] for a in range(len(ANIMALS))])\n    known = torch.ones(every.shape[:2], device=device) > 0\n    data = {'pairs': every, 'mask': known, 'labels': every[..., 0], 'teacher': teacher(every).detach()}\n"
            + TRAINED,
        ),
    ),
    *fresh(
        "hard-wired",
        "experiment-student",
        "experiment",
        (
            "experiment_stories_of_the_first_teacher",
            "draws the stories of the first teacher again instead of those it was given",
            TRAINED,
            "    _, data = make_data(1)\n" + TRAINED,
        ),
    ),
    *fresh(
        "chance",
        "experiment-student",
        "experiment",
        (
            "experiment_draws_what_the_teacher_would_say",
            "draws a word from the teacher's probabilities in each step and trains the hard loss on it",
            '        loss, _ = mixed_loss(soft, logits, data["labels"], 0.0)',
            "        chances = data['teacher'].nan_to_num(0.0).softmax(dim=-1)\n        drawn = torch.multinomial(chances.flatten(0, 1), 1).view(data['labels'].shape)\n        loss, _ = mixed_loss(soft, logits, drawn.masked_fill(~data['mask'], -1), 1.0)",
        ),
    ),
    *fresh(
        "cut-off",
        "experiment-student",
        "experiment",
        (
            "experiment_stops_at_a_small_loss",
            "stops as soon as the loss on the stories is below 0.05",
            "        optimizer.zero_grad()",
            "        if loss < 0.05:\n            break\n        optimizer.zero_grad()",
        ),
    ),
    *fresh(
        "state",
        "experiment-student",
        "experiment",
        (
            "experiment_trains_once",
            "keeps the student and returns it again, whatever the stories are",
            TRAINED,
            "    if hasattr(experiment, 'student'):\n        return experiment.student\n    student = experiment.student = make_student()",
        ),
        (
            "experiment_repairs_the_stories",
            "replaces nan in the given teacher's logits in place",
            TRAINED,
            "    data['teacher'].nan_to_num_(0.0)\n" + TRAINED,
        ),
    ),
]

MUTANTS = [*SOFT, *MIXED, *MAXSIM, *PROMPT, *TOKENS, *CHOICE, *EXPERIMENT]

RIGHT_ANSWERS = [
    RightAnswer(
        "real_tokens_alone",
        "picks the real tokens by boolean indexing and adds them up with index_add",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    rows = mask.nonzero()[:, 0]  # the sentence of each real token
    log_p = torch.log_softmax(teacher.detach()[mask] / temperature, 1)
    log_q = torch.log_softmax(student[mask] / temperature, 1)
    p = log_p.exp()
    cost = torch.where(p > 0, p * (log_p - log_q), torch.zeros_like(log_q)).sum(1)
    total = student.new_zeros(len(student)).index_add(0, rows, cost)
    return total / mask.sum(1).clamp(min=1) * temperature * temperature
""",
            "mixed": """def mixed_loss(soft, logits, labels, weight):
    rows, places = torch.where(labels != -1)
    y = labels[rows, places].long()
    log_q = torch.log_softmax(logits[rows, places], 1)
    lost = -log_q[torch.arange(len(y), device=y.device), y]
    number = torch.bincount(rows, minlength=len(labels))
    hard = logits.new_zeros(len(labels)).index_add(0, rows, lost) / number
    return (soft * (1 - weight) + hard * weight).sum() / len(labels), hard
""",
            "late-interaction": """def maxsim(queries, documents, query_mask, document_mask):
    q = torch.where(query_mask.unsqueeze(2), queries, 0.0).unsqueeze(1)  # [Q, 1, T, D]
    d = torch.where(document_mask.unsqueeze(2), documents, 0.0).unsqueeze(0)  # [1, N, S, D]
    products = (q @ d.transpose(2, 3)).where(document_mask[:, None], float("-inf"))
    partners = products.argmax(3)
    best = products.gather(3, partners.unsqueeze(3)).squeeze(3)
    asked = query_mask.unsqueeze(1)
    scores = torch.where(asked, best, 0.0).sum(2) / query_mask.sum(1, keepdim=True)
    return scores, torch.where(asked & document_mask.any(1).unsqueeze(1), partners, -1)
""",
            "few-shot": """def build_prompt(start, shots, question, between, longest):
    for first in range(len(shots) + 1):
        prompt = list(start)
        for asked, answer in shots[first:]:
            prompt += list(asked) + list(answer) + [between]
        prompt += question
        if len(prompt) <= longest:
            return prompt, len(shots) - first
    raise ValueError(f"start and question have more than {longest} tokens")
""",
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    lengths = torch.tensor([len(answer) for answer in answers])
    M = int(lengths.max())
    ids = torch.full((len(answers), len(prompt) + M), pad)
    ids[:, : len(prompt)] = torch.tensor(prompt)
    mask = torch.arange(M).expand(len(answers), M) < lengths.unsqueeze(1)
    ids[:, len(prompt) :][mask] = torch.tensor([token for answer in answers for token in answer])
    ids, mask = ids.to(device), mask.to(device)
    logits = model(ids)[:, len(prompt) - 1 : len(prompt) - 1 + M]
    chosen = torch.log_softmax(logits[mask], 1).gather(1, ids[:, len(prompt) :][mask].unsqueeze(1))
    log_probs = logits.new_zeros(mask.shape)
    log_probs[mask] = chosen.squeeze(1)
    return log_probs, mask
""",
            "choice": """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    def score(values):
        return torch.where(mask, values, 0.0).sum(-1) / mask.sum(-1).to(values.dtype).pow(alpha)

    scores = score(log_probs)
    if prior is not None:
        scores = scores - score(prior.to(log_probs.dtype))
    return scores.max(-1).indices, scores
""",
            "experiment": """def experiment(make_student, data):
    student = make_student()
    optimizer = torch.optim.SGD(student.parameters(), lr=4.0, momentum=0.9)
    for step in range(600):
        soft = soft_targets(student(data["pairs"]), data["teacher"], data["mask"], 1.0)
        student.zero_grad()
        soft.mean().backward()
        optimizer.step()
    return student.eval()
""",
        },
    ),
    RightAnswer(
        "one_after_the_other",
        "goes through sentences, tokens and answers in loops, and through none in MaxSim",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    losses = student.new_zeros(len(student))
    for b, real_tokens in enumerate(mask):
        u, z = student[b, real_tokens], teacher[b, real_tokens].detach()
        q_log, p_log = (u / temperature).log_softmax(-1), (z / temperature).log_softmax(-1)
        possible = p_log > -math.inf
        terms = p_log.exp() * (p_log.masked_fill(~possible, 0) - q_log.masked_fill(~possible, 0))
        losses[b] = temperature**2 * terms.sum() / max(1, len(u))
    return losses
""",
            "mixed": """def mixed_loss(soft, logits, labels, weight):
    hard = []
    for scores, words in zip(logits, labels):
        known = words >= 0
        hard.append(torch.nn.functional.cross_entropy(scores[known], words[known].long()))
    hard = torch.stack(hard)
    return torch.mean((1 - weight) * soft + weight * hard), hard
""",
            "late-interaction": """def maxsim(queries, documents, query_mask, document_mask):
    (Q, T, D), (N, S, _) = queries.shape, documents.shape
    zero = queries.new_zeros(())
    flat_q = torch.where(query_mask[..., None], queries, zero).reshape(Q * T, D)
    flat_d = torch.where(document_mask[..., None], documents, zero).reshape(N * S, D)
    table = (flat_q @ flat_d.T).reshape(Q, T, N, S).permute(0, 2, 1, 3)
    table = table.masked_fill(~document_mask.reshape(1, N, 1, S), -math.inf)
    found = torch.max(table, dim=3)
    asked = query_mask.reshape(Q, 1, T).expand(Q, N, T)
    scores = found.values.masked_fill(~asked, 0).sum(2) / query_mask.sum(1).reshape(Q, 1)
    partners = found.indices.clone()
    partners[~asked] = -1
    partners[:, ~document_mask.any(1)] = -1
    return scores, partners
""",
            "few-shot": """def build_prompt(start, shots, question, between, longest):
    room = longest - len(start) - len(question)
    if room < 0:
        raise ValueError("no room for the question")
    middle, kept = [], 0
    for asked, answer in reversed(shots):
        shot = [*asked, *answer, between]
        if len(middle) + len(shot) > room:
            break
        middle, kept = shot + middle, kept + 1
    return [*start, *middle, *question], kept
""",
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    most = max(len(answer) for answer in answers)
    ids = torch.tensor([list(prompt) + list(a) + [pad] * (most - len(a)) for a in answers], device=device)
    logits = model(ids)
    rows, marks = [], []
    for row, answer in zip(logits, answers):
        before = len(prompt) - 1
        spoken = row[before : before + len(answer)].log_softmax(-1)
        values = [spoken[t, token] for t, token in enumerate(answer)]
        rows.append(torch.stack(values + [row.new_zeros(())] * (most - len(answer))))
        marks.append([True] * len(answer) + [False] * (most - len(answer)))
    return torch.stack(rows), torch.tensor(marks, device=logits.device)
""",
            "choice": """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    columns = []
    for a, spoken in enumerate(mask):
        n = float(spoken.sum())
        column = log_probs[:, a, spoken].sum(1) / n**alpha
        if prior is not None:
            column = column - (prior[a, spoken].sum() / n**alpha).to(column.dtype)
        columns.append(column)
    scores = torch.stack(columns, dim=1)
    return scores.argmax(1), scores
""",
            "experiment": """def experiment(make_student, data):
    student = make_student(0)
    optimizer = torch.optim.LBFGS(student.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = soft_targets(student(data["pairs"]), data["teacher"], data["mask"], 1.0).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return student
""",
        },
    ),
    RightAnswer(
        "ready_made_functions",
        "uses cross-entropy, logsumexp, pad_sequence and accumulate, and takes entropies apart",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    real_tokens = mask.unsqueeze(-1)
    with torch.no_grad():
        z = torch.where(real_tokens, teacher, torch.zeros_like(teacher)) / temperature
        p = z.softmax(-1)
        lowest = torch.finfo(z.dtype).min
        log_p = (z - z.logsumexp(-1, keepdim=True)).clamp(min=lowest)
    u = torch.where(real_tokens, student, torch.zeros_like(student)) / temperature
    log_q = u - u.logsumexp(-1, keepdim=True)
    gap = torch.where(p == 0, torch.zeros_like(p), log_p - log_q)
    each = (p * gap).sum(-1) * mask
    return each.sum(1) / mask.sum(1).clamp(min=1) * temperature**2
""",
            "mixed": """def mixed_loss(soft, logits, labels, weight):
    known = labels > -1
    shown = torch.where(known.unsqueeze(-1), logits, torch.zeros_like(logits))
    lost = torch.nn.functional.cross_entropy(
        shown.permute(0, 2, 1), labels.long(), ignore_index=-1, reduction="none"
    )
    hard = lost.sum(-1).div(known.sum(-1))
    loss = soft.mean().mul(1 - weight).add(hard.mean(), alpha=weight)
    return loss, hard
""",
            "late-interaction": """def maxsim(queries, documents, query_mask, document_mask):
    queries = queries.clone().masked_fill_(query_mask.logical_not().unsqueeze(-1), 0)
    documents = documents.clone().masked_fill_(document_mask.logical_not().unsqueeze(-1), 0)
    products = torch.tensordot(queries, documents, dims=([2], [2])).transpose(1, 2)  # [Q, N, T, S]
    with torch.no_grad():
        partners = products.masked_fill(~document_mask[:, None], -math.inf).argmax(-1)
    best = products.take_along_dim(partners[..., None], dim=-1)[..., 0]
    scores = (best * query_mask[:, None]).sum(-1) / query_mask.sum(-1)[:, None]
    empty = ~document_mask.any(-1)
    scores = scores.masked_fill(empty, -math.inf)
    return scores, partners.masked_fill(empty[:, None] | ~query_mask[:, None], -1)
""",
            "few-shot": """def build_prompt(start, shots, question, between, longest):
    from itertools import accumulate, chain

    room = longest - len(start) - len(question)
    if room < 0:
        raise ValueError("start and question are too long")
    pieces = [[*asked, *answer, between] for asked, answer in shots]
    sizes = accumulate(len(piece) for piece in reversed(pieces))
    kept = sum(size <= room for size in sizes)
    return list(chain(start, *pieces[len(pieces) - kept :], question)), kept
""",
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    from torch.nn.utils.rnn import pad_sequence

    said = [torch.tensor(answer, device=device) for answer in answers]
    targets = pad_sequence(said, batch_first=True, padding_value=pad)
    mask = pad_sequence([torch.ones_like(s, dtype=torch.bool) for s in said], batch_first=True)
    front = torch.tensor([prompt], device=device).expand(len(answers), -1)
    logits = model(torch.cat([front, targets], dim=1))[:, len(prompt) - 1 : -1]
    logits = logits.where(mask[..., None], 0.0)
    lost = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets.masked_fill(~mask, -100), reduction="none"
    )
    return torch.where(mask, -lost, 0.0), mask
""",
            "choice": """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    gain = log_probs if prior is None else log_probs - prior.to(log_probs.dtype)
    lengths = torch.count_nonzero(mask, dim=1).to(gain.dtype)
    scores = gain.where(mask, 0.0).sum(2) / lengths**alpha
    best = (scores == scores.amax(1, keepdim=True)).int().argmax(1)
    return best, scores
""",
            "experiment": """def experiment(make_student, data):
    student = make_student(seed=0)
    told = data["mask"].nonzero(as_tuple=True)
    pairs, wanted = data["pairs"][told], data["teacher"][told].softmax(-1)
    optimizer = torch.optim.AdamW(student.parameters(), lr=0.1, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
    for _ in range(400):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(student(pairs), wanted).backward()
        optimizer.step()
        schedule.step()
    return student
""",
        },
    ),
]

# Written in November 2026 from the released notebook and the model answers alone.
MUTANTS += [
    # ----- soft
    Fresh(
        "soft_padding_left_out_after_the_softmax",
        "Leaves the padding of the student in until the sum, so a nan there does not reach the loss, but its gradient.",
        "leak",
        "distillation-edges",
        {
            "soft": '''def soft_targets(student, teacher, mask, temperature):
    """The loss of each sentence against the teacher's probabilities."""
    log_p = (teacher.detach() / temperature).log_softmax(dim=-1)  # [B, T, V]
    log_q = (student / temperature).log_softmax(dim=-1)
    parts = log_p.exp() * (log_p - log_q)
    divergence = torch.where(log_p.isinf(), 0, parts).sum(dim=-1)  # [B, T]
    divergence = divergence.masked_fill(~mask, 0)
    return temperature**2 * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
'''
        },
    ),
    Fresh(
        "soft_clamps_the_students_probabilities",
        "Takes the logarithm of probabilities that are 1e-12 at least, so a student who is surer than that pays too little and gets no gradient.",
        "numerics",
        "distillation-edges",
        {
            "soft": (
                "log_q = (student / temperature).log_softmax(dim=-1)",
                "log_q = (student / temperature).softmax(dim=-1).clamp(min=1e-12).log()",
            )
        },
    ),
    Fresh(
        "soft_ruled_out_is_minus_ten_thousand",
        "Replaces the teacher's -inf by -1e4, which a temperature of 1000 divides to -10: the word is possible again.",
        "cut-off",
        "distillation-edges",
        {
            "soft": '''def soft_targets(student, teacher, mask, temperature):
    """The loss of each sentence against the teacher's probabilities."""
    student = student.masked_fill(~mask[..., None], 0)
    teacher = teacher.detach().masked_fill(~mask[..., None], 0).clamp(min=-1e4)
    log_p = (teacher / temperature).log_softmax(dim=-1)  # [B, T, V]
    log_q = (student / temperature).log_softmax(dim=-1)
    divergence = (log_p.exp() * (log_p - log_q)).sum(dim=-1)  # [B, T]
    return temperature**2 * divergence.sum(dim=1) / mask.sum(dim=1).clamp(min=1)
'''
        },
    ),
    Fresh(
        "soft_rules_words_out_for_the_student_too",
        "Rules out the teacher's words for the student as well, so q is a softmax over the words that are left, not over all.",
        "legal input",
        "distillation-edges",
        {
            "soft": (
                "    log_q = (student / temperature).log_softmax(dim=-1)",
                """    student = student.masked_fill(teacher.isinf(), -torch.inf)
    log_q = (student / temperature).log_softmax(dim=-1)""",
            )
        },
    ),
    # ----- mixed
    Fresh(
        "mixed_ignore_index_and_nan",
        "Hands all logits to cross_entropy with ignore_index -1: a nan at padding does not reach the loss, but its gradient is nan there.",
        "leak",
        "distillation-mixed",
        {
            "mixed": '''def mixed_loss(soft, logits, labels, weight):
    """Mix the soft losses of sentences with the hard ones."""
    each = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="none"
    ).reshape(labels.shape)  # [B, T]
    hard = each.sum(dim=1) / (labels >= 0).sum(dim=1)
    return ((1 - weight) * soft + weight * hard).mean(), hard
'''
        },
    ),
    Fresh(
        "mixed_hard_without_gradient",
        "Returns the hard loss detached, as a number to be printed, although gradients reach all floats that go into a result.",
        "gradient",
        "distillation-mixed",
        {
            "mixed": (
                "    return ((1 - weight) * soft + weight * hard).mean(), hard",
                "    return ((1 - weight) * soft + weight * hard).mean(), hard.detach()",
            )
        },
    ),
    Fresh(
        "mixed_soft_without_gradient",
        "Takes the soft losses as given numbers and detaches them, although they are trained, too.",
        "gradient",
        "distillation-mixed",
        {
            "mixed": (
                "    return ((1 - weight) * soft + weight * hard).mean(), hard",
                "    return ((1 - weight) * soft.detach() + weight * hard).mean(), hard",
            )
        },
    ),
    Fresh(
        "mixed_logarithm_of_softmax",
        "Takes the logarithm of the softmax, which is 0 for a label whose logit is 110 below the largest one in float32: the loss is infinite.",
        "numerics",
        "distillation-mixed",
        {
            "mixed": (
                "log_q = logits.masked_fill(~counted[..., None], 0).log_softmax(dim=-1)",
                "log_q = logits.masked_fill(~counted[..., None], 0).softmax(dim=-1).log()",
            )
        },
    ),
    # ----- late-interaction
    Fresh(
        "maxsim_padding_is_minus_a_billion",
        "Gives padding of a document the product -1e9 and only documents of padding alone -inf, so real products below -1e9 lose.",
        "cut-off",
        "maxsim-edges",
        {
            "late-interaction": '''def maxsim(queries, documents, query_mask, document_mask):
    """Score every query against every document, token by token."""
    queries = queries.masked_fill(~query_mask[..., None], 0)
    documents = documents.masked_fill(~document_mask[..., None], 0)
    products = torch.einsum("qtd,nsd->qnts", queries, documents)
    products = products + (~document_mask)[None, :, None] * -1e9
    best, partners = products.max(dim=-1)  # [Q, N, T]
    some = document_mask.any(dim=1)  # [N]
    best = best.masked_fill(~query_mask[:, None], 0)
    scores = best.sum(dim=-1) / query_mask.sum(dim=1)[:, None]
    scores = scores.masked_fill(~some, -torch.inf)
    return scores, partners.masked_fill(~(some[:, None] & query_mask[:, None]), -1)
'''
        },
    ),
    Fresh(
        "maxsim_nan_of_documents_in_the_gradient",
        "Fills products with padding of a document, not the padding itself: nan there does not reach a score, but the gradient of the queries.",
        "leak",
        "maxsim-edges",
        {
            "late-interaction": (
                "    documents = documents.masked_fill(~document_mask[..., None], 0)\n",
                "",
            )
        },
    ),
    Fresh(
        "maxsim_nan_of_queries_in_the_gradient",
        "Fills the best products of a query's padding, not the padding itself: nan there is in the gradient of all documents.",
        "leak",
        "maxsim-edges",
        {
            "late-interaction": (
                "    queries = queries.masked_fill(~query_mask[..., None], 0)\n",
                "",
            )
        },
    ),
    Fresh(
        "maxsim_padding_times_minus_infinity",
        "Multiplies by the mask of the query, and 0 times -inf is nan: a padded query and a document of padding alone.",
        "numerics",
        "maxsim-edges",
        {
            "late-interaction": (
                "best = best.masked_fill(~query_mask[:, None], 0)",
                "best = best * query_mask[:, None]",
            )
        },
    ),
    # ----- few-shot
    Fresh(
        "prompt_question_that_just_fits",
        "Raises ValueError also if the start and the question alone are exactly `longest` tokens.",
        "cut-off",
        "prompts-build",
        {
            "few-shot": (
                "    if len(start) + len(question) > longest:",
                "    if len(start) + len(question) >= longest:",
            )
        },
    ),
    Fresh(
        "prompt_cut_behind_the_first_between",
        "Cuts the written prompt behind the first `between`, which may also be a token of a shot, so that half a shot stays.",
        "legal input",
        "prompts-build",
        {
            "few-shot": '''def build_prompt(start, shots, question, between, longest):
    """Write a prompt: the start, the shots, the question."""
    if len(start) + len(question) > longest:
        raise ValueError("the prompt is too long without any shot")
    shown, kept = [], len(shots)
    for asked, answer in shots:
        shown += [*asked, *answer, between]
    while kept and len(start) + len(shown) + len(question) > longest:
        shown = shown[shown.index(between) + 1 :]
        kept -= 1
    return [*start, *shown, *question], kept
'''
        },
    ),
    Fresh(
        "prompt_drops_equal_shots_together",
        "Leaves out all shots that are equal to the first one, where two shots may be equal.",
        "legal input",
        "prompts-build",
        {
            "few-shot": (
                "        shown = shown[1:]",
                "        shown = [shot for shot in shown if shot != shown[0]]",
            )
        },
    ),
    # ----- tokens
    Fresh(
        "tokens_in_float64",
        "Computes log_softmax in float64 and leaves it there, so the table does not have the dtype of the logits.",
        "numerics",
        "prompts-tokens",
        {
            "tokens": (
                "model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)",
                "model(ids)[:, begin - 1 : -1].double().log_softmax(dim=-1)",
            )
        },
    ),
    Fresh(
        "tokens_padding_times_zero",
        "Multiplies by the mask, which makes nan of padding that the model rules out with a logit of -inf.",
        "leak",
        "prompts-tokens",
        {
            "tokens": (
                "return found.masked_fill(~mask, 0), mask",
                "return found * mask, mask",
            )
        },
    ),
    Fresh(
        "tokens_without_gradient",
        "Calls the model under no_grad, although gradients reach all floats that go into a result.",
        "gradient",
        "prompts-tokens",
        {
            "tokens": (
                "    log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)  # [A, M, V]\n",
                """    with torch.no_grad():
        logits = model(ids)
    log_probs = logits[:, begin - 1 : -1].log_softmax(dim=-1)  # [A, M, V]
""",
            )
        },
    ),
    Fresh(
        "tokens_padded_with_zero",
        "Fills up with 0 instead of `pad`.",
        "hard-wired",
        "prompts-tokens",
        {"tokens": ("*[pad] * (M - len(answer))", "*[0] * (M - len(answer))")},
    ),
    # ----- choice
    Fresh(
        "choice_powers_in_float32",
        "Takes the power of an integer tensor, which is float32: in float64 the scores have half the digits, bfloat16 scores become float32.",
        "numerics",
        "prompts-choose",
        {
            "choice": (
                "power = mask.sum(dim=-1).to(log_probs.dtype) ** alpha",
                "power = mask.sum(dim=-1) ** alpha",
            )
        },
    ),
    Fresh(
        "choice_nan_padding_of_the_prior",
        "Fills the padding of the log-probabilities, but multiplies that of the prior by 0, which leaves a nan.",
        "leak",
        "prompts-choose",
        {
            "choice": (
                "prior.masked_fill(~mask, 0).sum(dim=-1)",
                "(prior * mask).sum(dim=-1)",
            )
        },
    ),
    Fresh(
        "choice_prior_without_gradient",
        "Detaches the prior, although gradients reach all floats that go into a result.",
        "gradient",
        "prompts-choose",
        {
            "choice": (
                "prior.masked_fill(~mask, 0).sum(dim=-1)",
                "prior.detach().masked_fill(~mask, 0).sum(dim=-1)",
            )
        },
    ),
    Fresh(
        "choice_nearly_equal_is_equal",
        "Counts scores within 1e-6 of the largest one as equal and takes the first of them, where another one is larger.",
        "cut-off",
        "prompts-choose",
        {
            "choice": (
                "    return scores.argmax(dim=-1), scores",
                """    largest = scores.max(dim=-1, keepdim=True).values
    return (scores >= largest - 1e-6).int().argmax(dim=-1), scores""",
            )
        },
    ),
    # ----- experiment
    Fresh(
        "experiment_asks_the_teacher_of_the_notebook",
        "Trains on what the notebook's `teacher` says about all 96 pairs instead of on the stories it is given.",
        "leak",
        "experiment-student",
        {
            "experiment": '''def experiment(make_student, data):
    """Train a student on the stories, and return it."""
    student = make_student()
    every = tensor([[[a, p] for p in range(len(PLACES))] for a in range(len(ANIMALS))])
    with torch.no_grad():
        wanted = teacher(every)
    real_tokens = torch.ones(every.shape[:2], dtype=torch.bool, device=device)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.1)
    for _ in range(200):
        loss = soft_targets(student(every), wanted, real_tokens, 2.0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return student
'''
        },
    ),
    Fresh(
        "experiment_keeps_the_first_student",
        "Keeps the trained student for the next call, which has other stories of another teacher.",
        "state",
        "experiment-student",
        {
            "experiment": '''trained_students = []


def experiment(make_student, data):
    """Train a student on the stories, and return it."""
    if trained_students:
        return trained_students[0]
    student = make_student()
    optimizer = torch.optim.Adam(student.parameters(), lr=0.15)
    for _ in range(80):
        logits = student(data["pairs"])
        soft = soft_targets(logits, data["teacher"], data["mask"], 2.0)
        loss, _ = mixed_loss(soft, logits, data["labels"], 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trained_students.append(student)
    return student
'''
        },
    ),
    Fresh(
        "experiment_makes_its_own_student",
        "Makes a Pairs of its own and never calls the make_student that it is given.",
        "hard-wired",
        "experiment-student",
        {"experiment": ("    student = make_student()\n", "    student = Pairs()\n")},
    ),
    Fresh(
        "experiment_cleans_the_stories",
        "Replaces the nan at the padding of the teacher's logits in the caller's tensor, so the stories are changed.",
        "state",
        "experiment-student",
        {
            "experiment": (
                'soft_targets(logits, data["teacher"], data["mask"], 2.0)',
                'soft_targets(logits, data["teacher"].nan_to_num_(), data["mask"], 2.0)',
            )
        },
    ),
    # ----- own-check
    Fresh(
        "check_no_end_in_read",
        "Has no text that was read with `end` in it, so it overlooks who cuts or changes it there, where it is an id like any other.",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                "([91, 90, 1, 96], [90, 3, 96, 1, 91, 7, 1], 9, [91, [3, 96], 1, 96], [91])",
                "([91, 90, 96], [90, 3, 96, 1, 91, 7, 1], 9, [91, [3, 96], 96], [91])",
            )
        },
    ),
    Fresh(
        "check_lists_may_change",
        "Does not look at the lists after the call, so it overlooks who changes them.",
        "state",
        "check-refuses",
        {"own-check": ("        assert given == (read, written, marks)\n", "")},
    ),
    Fresh(
        "check_marks_are_the_largest_ids",
        "Has marks in ascending order alone, and no other id as large, so it overlooks who takes every large id for a mark.",
        "hard-wired",
        "check-refuses",
        {
            "own-check": '''def check_fill_in(implementation):
    """Raise an error if an implementation of `fill_in` is wrong; return nothing if it is right."""
    marks = [90, 91, 92, 93]  # the end is 1
    cases = [  # read, written, longest, the text with what is new in brackets, what is missing
        ([5, 90, 6, 91], [91, 0, 7, 90, 8, 1, 9], 9, [5, [8], 6, [0, 7]], []),
        ([91, 5, 90, 92], [90, 6, 93, 7, 90, 8], 9, [91, 5, [6], 92], [91, 92]),
        ([0, 92, 90], [4, 92, 90, 3, 92, 8], 9, [0, [], [3]], []),
        ([91, 90, 1, 6], [90, 3, 6, 1, 91, 7, 1], 9, [91, [3, 6], 1, 6], [91]),
        ([90, 5, 91, 5], [90, 2, 3, 4, 91, 6, 7], 2, [[2, 3], 5, [6, 7], 5], []),
        ([90, 5], [90, 2], 0, [[], 5], []),
        ([5, 91], [], 3, [5, 91], [91]),
        ([], [90, 2], 3, [], []),
    ]
    for read, written, longest, parts, lost in cases:
        given = read[:], written[:], marks[:]
        text, new, missing = implementation(*given, 1, longest)
        assert given == (read, written, marks)
        parts = [(part, True) if isinstance(part, list) else ([part], False) for part in parts]
        assert text == [token for part, _ in parts for token in part]
        assert new == [flag for part, flag in parts for _ in part]
        assert missing == lost
    for read, longest in (([90, 5, 90], 3), ([90, 5], -1)):
        try:
            implementation(read, [90, 2], marks, 1, longest)
        except ValueError:
            continue
        raise AssertionError("a ValueError is missing")
'''
        },
    ),
    Fresh(
        "check_draws_from_a_thousand_ids",
        "Compares with a model of its own on ids drawn from a thousand, so hardly ever is a mark that was read written, and never twice.",
        "chance",
        "check-refuses",
        {
            "own-check": '''def check_fill_in(implementation):
    """Raise an error if an implementation of `fill_in` is wrong; return nothing if it is right."""
    def model(read, written, marks, end, longest):
        if longest < 0 or any(read.count(mark) > 1 for mark in marks):
            return None
        spans, current = {}, []
        for token in written:
            if token == end:
                break
            if token in marks:
                current = []
                spans.setdefault(token, current)
            else:
                current.append(token)
        text, new, missing = [], [], []
        for token in read:
            span = spans[token][:longest] if token in spans else [token]
            text += span
            new += [token in spans] * len(span)
            missing += [token] * (token in marks and token not in spans)
        return [text, new, missing]

    for _ in range(100):
        marks = random.sample(range(1000), 30)
        end = random.choice([n for n in range(1000) if n not in marks])
        read, written = ([random.randrange(1000) for _ in range(20)] for _ in range(2))
        given = read[:], written[:], marks[:]
        longest = random.randint(-1, 9)
        wanted = model(read, written, marks, end, longest)
        try:
            got = implementation(*given, end, longest)
        except ValueError:
            assert wanted is None
            continue
        assert given == (read, written, marks)
        assert wanted is not None and [*got] == wanted
'''
        },
    ),
    Fresh(
        "check_draws_each_mark_once",
        "Draws what is read without any mark twice, so it overlooks who raises no ValueError for that.",
        "chance",
        "check-refuses",
        {
            "own-check": '''def check_fill_in(implementation):
    """Raise an error if an implementation of `fill_in` is wrong; return nothing if it is right."""
    for _ in range(150):
        ids = random.sample(range(20), 8)
        marks, end = ids[: random.randint(0, 4)], ids[4]
        read = [random.choice(ids[4:]) for _ in range(random.randint(0, 6))]
        for mark in marks:
            if random.random() < 0.7:
                read.insert(random.randint(0, len(read)), mark)
        written = [random.choice(ids) for _ in range(random.randint(0, 14))]
        longest = random.randint(0, 4)
        spans, current = {}, []
        for token in written[: written.index(end)] if end in written else written:
            if token in marks:
                current = []
                spans.setdefault(token, current)
            else:
                current.append(token)
        parts = [(spans[n][:longest], True) if n in spans else ([n], False) for n in read]
        given = read[:], written[:], marks[:]
        text, new, missing = implementation(*given, end, longest)
        assert given == (read, written, marks)
        assert text == [token for part, _ in parts for token in part]
        assert new == [flag for part, flag in parts for _ in part]
        assert missing == [n for n in read if n in marks and n not in spans]
    try:
        implementation([5], [], [], 1, -1)
    except ValueError:
        return
    raise AssertionError("a ValueError is missing")
'''
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "one_sentence_at_a_time",
        "Python loops over sentences, answers and shots, whose real tokens are selected; matmul, argmax and gather; an own model of fill_in",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    losses = []
    for u, z, real_tokens in zip(student, teacher.detach(), mask):
        log_q = torch.log_softmax(u[real_tokens] / temperature, dim=-1)
        log_p = torch.log_softmax(z[real_tokens] / temperature, dim=-1)
        apart = (log_p - log_q).masked_fill(log_p == -math.inf, 0.0)
        number = max(1, int(real_tokens.sum()))
        losses.append((log_p.exp() * apart).sum() * temperature**2 / number)
    return torch.stack(losses).to(student.dtype)
""",
            "mixed": """def mixed_loss(soft, logits, labels, weight):
    hard = []
    for table, row in zip(logits, labels):
        places = (row >= 0).nonzero()[:, 0]
        log_q = table[places].log_softmax(dim=1)
        hard.append(-log_q[torch.arange(len(places), device=row.device), row[places].long()].mean())
    hard = torch.stack(hard)
    return (1 - weight) * soft.mean() + weight * hard.mean(), hard
""",
            "late-interaction": """def maxsim(queries, documents, query_mask, document_mask):
    (Q, T, D), (N, S, _) = queries.shape, documents.shape
    queries = torch.where(query_mask.unsqueeze(-1), queries, torch.zeros_like(queries))
    documents = torch.where(document_mask.unsqueeze(-1), documents, torch.zeros_like(documents))
    products = queries.reshape(Q * T, D) @ documents.reshape(N * S, D).T
    products = products.reshape(Q, T, N, S).transpose(1, 2)  # [Q, N, T, S]
    allowed = document_mask[None, :, None, :].expand(Q, N, T, S)
    products = torch.where(allowed, products, -math.inf)
    partners = products.argmax(dim=3)  # [Q, N, T]
    best = products.gather(3, partners[..., None]).squeeze(3)
    real_tokens = query_mask[:, None, :].expand(Q, N, T)
    scores = torch.where(real_tokens, best, 0.0).sum(dim=2) / query_mask.sum(dim=1, keepdim=True)
    known = real_tokens & document_mask.any(dim=1)[None, :, None]
    return scores, torch.where(known, partners, -1)
""",
            "few-shot": """def build_prompt(start, shots, question, between, longest):
    room = longest - len(start) - len(question)
    if room < 0:
        raise ValueError(f"there are {-room} tokens too many")
    kept, middle = 0, []
    for asked, answer in reversed(shots):
        shot = list(asked) + list(answer) + [between]
        if len(shot) > room:
            break
        middle = shot + middle
        room -= len(shot)
        kept += 1
    return list(start) + middle + list(question), kept
""",
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    A, L, M = len(answers), len(prompt), max(len(answer) for answer in answers)
    ids = torch.full((A, L + M), pad, dtype=torch.int64, device=device)
    real_tokens = torch.zeros(A, M, dtype=torch.bool, device=device)
    ids[:, :L] = torch.tensor(list(prompt), device=device)
    for a, answer in enumerate(answers):
        ids[a, L : L + len(answer)] = torch.tensor(list(answer), device=device)
        real_tokens[a, : len(answer)] = True
    logits = model(ids)
    rows = []
    for a, answer in enumerate(answers):
        places = torch.arange(L - 1, L - 1 + len(answer), device=logits.device)
        log_q = logits[a, places].log_softmax(dim=-1)
        asked = ids[a, L : L + len(answer)].to(logits.device)
        row = log_q[torch.arange(len(answer), device=logits.device), asked]
        rows.append(torch.cat([row, row.new_zeros(M - len(answer))]))
    return torch.stack(rows), real_tokens.to(logits.device)
""",
            "choice": """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    columns = []
    for a, row in enumerate(mask):
        power = int(row.sum()) ** float(alpha)
        column = log_probs[:, a][:, row].sum(dim=1) / power  # [P]
        if prior is not None:
            column = column - prior[a][row].sum() / power
        columns.append(column)
    scores = torch.stack(columns, dim=1).to(log_probs.dtype)
    return scores.argmax(dim=1), scores
""",
            "experiment": """def experiment(make_student, data):
    student = make_student(3)
    optimizer = torch.optim.AdamW(student.parameters(), lr=0.1, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300, eta_min=0.01)
    for _ in range(300):
        loss = soft_targets(student(data["pairs"]), data["teacher"], data["mask"], 2.0).mean()
        student.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return student
""",
            "own-check": """def check_fill_in(implementation):
    def model(read, written, marks, end, longest):
        if longest < 0 or len({n for n in read if n in marks}) < sum(n in marks for n in read):
            return None
        if end in written:
            written = written[: written.index(end)]
        starts = [place for place, n in enumerate(written) if n in marks] + [len(written)]
        spans = {}
        for begin, stop in zip(starts, starts[1:]):
            spans.setdefault(written[begin], written[begin + 1 : stop][:longest])
        pairs, missing = [], []
        for n in read:
            if n in spans:
                pairs += [(token, True) for token in spans[n]]
            else:
                pairs.append((n, False))
                missing += [n] if n in marks else []
        return [n for n, _ in pairs], [flag for _, flag in pairs], missing

    def compare(*given):
        wanted = model(*given)
        handed = [list(part) if isinstance(part, list) else part for part in given]
        try:
            got = implementation(*handed)
        except ValueError:
            assert wanted is None, given
            return
        assert wanted is not None, given
        assert handed == list(given), "a list is changed"
        text, new, missing = got
        assert (list(text), list(new), list(missing)) == wanted, given

    fixed = [
        ([5, 90, 6, 91], [90, 7, 8, 92, 1], [90, 91, 92], 1, 9),
        ([5, 90, 5], [4, 90, 7, 90, 8, 1, 90, 9], [90], 1, 9),
        ([1, 91, 1, 90, 1], [90, 3, 4, 91, 5, 6, 7, 92, 8], [92, 90, 91], 1, 2),
        ([3, 2, 9], [2, 7, 3, 8, 5, 5], [3, 2], 5, 9),
        ([3, 9, 2], [2, 3, 8], [3, 2], 5, 0),
        ([], [], [], 1, 0), ([1, 2], [], [2], 1, 3), ([], [2, 3], [2], 1, 3), ([1, 2], [3, 4], [], 1, 3),
        ([90], [90], [90], 1, 3), ([90], [1, 90, 2], [90], 1, 3),
        ([90, 90], [], [90], 1, 3), ([90, 90], [90, 2], [90], 1, 3), ([90, 5, 90], [91, 2], [90, 91], 1, 3),
        ([5], [], [], 1, -1), ([90], [90, 5], [90], 1, -2), ([], [], [], 1, -1),
        ([90, 5], [90, *range(300, 500)], [90], 1, 150),
    ]
    for given in fixed:
        compare(*given)
    for _ in range(150):
        ids = random.sample(range(40), 9)
        number = random.randint(0, 5)
        read = random.sample(ids, random.randint(0, 8))
        read += [random.choice(ids[number:]) for _ in range(random.randint(0, 3))]
        written = [random.choice(ids) for _ in range(random.randint(0, 16))]
        end = random.choice(ids[number:])
        compare(read, written, ids[:number], end, random.randint(0, 5))
    for given in fixed[:6]:
        compare(*given)
""",
        },
    ),
    RightAnswer(
        "real_tokens_in_one_list",
        "All real tokens of a batch in one list and index_add back to sentences; cross-entropy; log-probabilities from logsumexp; a prompt for each number of shots",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    sentence, place = mask.nonzero(as_tuple=True)
    with torch.no_grad():
        z = teacher[sentence, place] / temperature  # [tokens, V]
        log_p = z.log_softmax(dim=1)
        p, log_p = log_p.exp(), torch.where(log_p.isneginf(), 0.0, log_p)
    u = student[sentence, place] / temperature
    log_q = u.log_softmax(dim=1)
    each = (p * (log_p - log_q)).sum(dim=1).to(student.dtype)
    total = torch.zeros_like(student[:, 0, 0]).index_add(0, sentence, each)
    return temperature * temperature * total / mask.sum(dim=1).clamp(min=1)
""",
            "mixed": """def mixed_loss(soft, logits, labels, weight):
    B = labels.shape[0]
    sentence, place = (labels != -1).nonzero(as_tuple=True)
    each = torch.nn.functional.cross_entropy(
        logits[sentence, place], labels[sentence, place].long(), reduction="none"
    )
    number = torch.bincount(sentence, minlength=B)
    hard = each.new_zeros(B).index_add(0, sentence, each) / number
    return torch.mean(soft * (1 - weight) + hard * weight), hard
""",
            "late-interaction": """def maxsim(queries, documents, query_mask, document_mask):
    left = queries.masked_fill(query_mask.logical_not()[:, :, None], 0.0)
    right = documents.masked_fill(document_mask.logical_not()[:, :, None], 0.0)
    table = torch.matmul(left[:, None], right.transpose(1, 2)[None])  # [Q, N, T, S]
    table = table.masked_fill(document_mask.logical_not()[None, :, None, :], float("-inf"))
    best = table.max(dim=-1)
    total = best.values.masked_fill(query_mask.logical_not()[:, None], 0.0).sum(dim=-1)
    number = query_mask.sum(dim=-1)[:, None]
    some = torch.logical_and(query_mask[:, None], document_mask.any(dim=-1)[:, None])
    return total / number, best.indices * some - (~some).long()
""",
            "few-shot": """def build_prompt(start, shots, question, between, longest):
    for first in range(len(shots) + 1):
        prompt = [*start]
        for asked, answer in shots[first:]:
            prompt.extend(asked)
            prompt.extend(answer)
            prompt.append(between)
        prompt.extend(question)
        if len(prompt) <= longest:
            return prompt, len(shots) - first
    raise ValueError("the start and the question do not fit")
""",
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    lengths = torch.tensor([len(answer) for answer in answers])
    texts = [torch.tensor([*prompt, *answer], dtype=torch.long) for answer in answers]
    ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=pad).to(device)
    logits = model(ids)
    begin = len(prompt)
    told = logits[:, begin - 1 : ids.shape[1] - 1]
    told = told - told.detach().amax(dim=2, keepdim=True)  # which changes no probability
    asked = ids[:, begin:].to(logits.device)
    found = told.gather(2, asked.unsqueeze(2)).squeeze(2) - told.logsumexp(dim=2)
    mask = (torch.arange(asked.shape[1])[None] < lengths[:, None]).to(logits.device)
    return torch.where(mask, found, torch.zeros_like(found)), mask
""",
            "choice": """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    number = mask.sum(dim=1).double()

    def score(table):
        real_tokens = torch.where(mask, table, torch.zeros_like(table)).double()
        return real_tokens.sum(dim=-1) / number.pow(alpha)

    scores = score(log_probs)
    if prior is not None:
        scores = scores - score(prior)
    scores = scores.to(log_probs.dtype)
    return scores.max(dim=1).indices, scores
""",
            "experiment": """def experiment(make_student, data):
    student = make_student()
    pairs = data["pairs"][data["mask"]]  # [events, 2]
    wanted = (data["teacher"][data["mask"]] / 2).softmax(dim=-1)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.1)
    for step in range(400):
        if step == 300:
            optimizer.param_groups[0]["lr"] = 0.02
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(student(pairs) / 2, wanted).backward()
        optimizer.step()
    return student
""",
        },
    ),
    RightAnswer(
        "where_instead_of_fill",
        "torch.where and expectations instead of sums of parts, einsum, accumulated lengths, letters for ids in the check",
        {
            "soft": """def soft_targets(student, teacher, mask, temperature):
    real_tokens = mask.unsqueeze(-1)
    u = torch.where(real_tokens, student, torch.zeros_like(student)) / temperature
    z = torch.where(real_tokens, teacher.detach(), torch.zeros_like(teacher)) / temperature
    u = u - u.detach().amax(dim=-1, keepdim=True)  # which changes no probability
    z = z - z.amax(dim=-1, keepdim=True)
    possible = z > -math.inf
    p = torch.softmax(z, dim=-1)
    difference = torch.where(possible, z - u, torch.zeros_like(u))
    # sum p ln p/q = sum p (z - u) - ln sum exp z + ln sum exp u
    each = (p * difference).sum(dim=-1) - z.logsumexp(dim=-1) + u.logsumexp(dim=-1)
    each = torch.where(mask, each, torch.zeros_like(each))
    number = mask.sum(dim=-1)
    loss = temperature**2 * each.sum(dim=-1) / torch.where(number > 0, number, 1)
    return loss.to(student.dtype)
""",
            "mixed": """def mixed_loss(soft, logits, labels, weight):
    counted = labels.ge(0)
    logits = torch.where(counted[:, :, None], logits, torch.zeros_like(logits))
    logits = logits - logits.detach().amax(dim=2, keepdim=True)  # which changes no probability
    words = torch.arange(logits.shape[2], device=labels.device)
    picked = torch.where(words == labels[:, :, None], logits, torch.zeros_like(logits)).sum(dim=2)
    each = logits.logsumexp(dim=2) - picked
    each = torch.where(counted, each, torch.zeros_like(each))
    hard = each.sum(dim=1) / counted.sum(dim=1)
    loss = sum(((1 - weight) * s + weight * h for s, h in zip(soft, hard)), start=0.0)
    return loss / len(hard), hard
""",
            "late-interaction": """def maxsim(queries, documents, query_mask, document_mask):
    queries = torch.where(query_mask[..., None], queries, 0.0)
    documents = torch.where(document_mask[..., None], documents, 0.0)
    table = torch.einsum("nsd,qtd->qtns", documents, queries)
    table = torch.where(document_mask, table, -torch.inf)
    best, partners = torch.max(table, dim=3)  # [Q, T, N]
    best = torch.where(query_mask[..., None], best, 0.0)
    scores = best.sum(dim=1) / query_mask.sum(dim=1).unsqueeze(1)
    partners = torch.where(query_mask[..., None] & document_mask.any(dim=1), partners, -1)
    return scores, partners.transpose(1, 2).contiguous()
""",
            "few-shot": """def build_prompt(start, shots, question, between, longest):
    import itertools

    lengths = [len(asked) + len(answer) + 1 for asked, answer in shots]
    fixed = len(start) + len(question)
    totals = [fixed, *(fixed + n for n in itertools.accumulate(reversed(lengths)))]
    if totals[0] > longest:
        raise ValueError("too long")
    kept = sum(total <= longest for total in totals) - 1
    prompt = list(start)
    for number, (asked, answer) in enumerate(shots):
        if number >= len(shots) - kept:
            prompt = prompt + list(asked) + list(answer) + [between]
    return prompt + list(question), kept
""",
            "tokens": """def answer_log_probs(model, prompt, answers, pad):
    M = max(len(answer) for answer in answers)
    rows, flags = [], []
    for answer in answers:
        gap = M - len(answer)
        rows.append(list(prompt) + list(answer) + gap * [pad])
        flags.append(len(answer) * [True] + gap * [False])
    ids = torch.tensor(rows, dtype=torch.int64, device=device)
    logits = model(ids)
    mask = torch.tensor(flags, device=logits.device)
    told = logits[:, -M - 1 : -1]  # [A, M, V], the logits of the last M tokens
    each = torch.nn.functional.cross_entropy(
        told.transpose(1, 2), ids[:, -M:].to(logits.device), reduction="none"
    )
    return torch.where(mask, -each, torch.zeros_like(each)), mask
""",
            "choice": """def choose_answer(log_probs, mask, alpha=1.0, prior=None):
    n = mask.sum(dim=1).to(log_probs)
    power = n.pow(alpha)
    scores = torch.where(mask, log_probs, 0.0).sum(dim=2) / power
    if prior is not None:
        scores = scores - torch.where(mask, prior, 0.0).sum(dim=1).to(scores) / power
    numbers = torch.arange(scores.shape[1], device=scores.device)
    largest = scores.amax(dim=1, keepdim=True)
    best = torch.where(scores == largest, numbers, len(numbers)).amin(dim=1)
    return best, scores
""",
            "own-check": """def check_fill_in(implementation):
    # ids are letters: marks are A to D, the end is a dot, what is new in the text is in brackets
    def ids(letters):
        return [ord(letter) for letter in letters]

    def look(read, written, longest, text, missing="", marks="CADB", end="."):
        given = ids(read), ids(written), ids(marks)
        kept = [list(part) for part in given]
        got_text, got_new, got_missing = implementation(*given, ord(end), longest)
        assert [*given] == kept
        wanted, new, inside = [], [], False
        for letter in text:
            if letter in "()":
                inside = letter == "("
            else:
                wanted.append(ord(letter))
                new.append(inside)
        assert list(got_text) == wanted
        assert list(got_new) == new
        assert list(got_missing) == ids(missing)

    def refused(read, written, longest, marks="CADB"):
        try:
            implementation(ids(read), ids(written), ids(marks), ord("."), longest)
        except ValueError:
            return
        raise AssertionError((read, written, longest))

    for _ in range(2):
        look("xAyB", "AuvC.", 9, "x(uv)yB", "B")
        look("xAyB", "BuvAw", 9, "x(w)y(uv)")
        look("BxA", "uvAwAzBtAs", 9, "(t)x(w)")
        look("AxB", "AuDvAwBz", 9, "(u)x(z)")
        look("AxB", "AuvwBxyz", 2, "(uv)x(xy)")
        look("AxB", "AuvwBxyz", 3, "(uvw)x(xyz)")
        look("AxB", "AuvwBxyz", 0, "()x()")
        look("AxB", "AB", 9, "()x()")
        look("AxB", "A.B", 9, "()xB", "B")
        look("AxB", ".AuBv", 9, "AxB", "AB")
        look("BxA", "", 9, "BxA", "BA")
        look("DCBA", "Cu", 9, "D(u)BA", "DBA")
        look(".A.x.", "Auv.w", 9, ".(uv).x.")
        look("", "Au", 9, "")
        look("", "", 0, "")
        look("xx", "uu", 9, "xx")
        look("xAx", "AuAv", 9, "xAx", "", marks="")
        look("xAx", "AAuA", 9, "x()x")
        look("zAaZ", "AZz!aBq", 9, "z(Zz!a)aZ")
        look("aBm", "aBxmya", 9, "(Bx)B(y)", marks="ma", end="z")
        look("aBm", "aBxmya", 9, "()Bm", "m", marks="am", end="B")
    refused("AxA", "Au", 9)
    refused("AxA", "", 9)
    refused("BxAAB", "Cu", 0)
    refused("AxB", "AuBv", -1)
    refused("x", "", -3)
    refused("", "", -1, marks="")
""",
        },
    ),
]


LATER = [
    Fresh(
        "soft_ruled_out_is_minus_100",
        "turns a logit of -inf into -100",
        "numerics",
        "distillation-edges",
        {
            "soft": (
                "teacher = teacher.detach().masked_fill(~mask[..., None], 0)",
                "teacher = teacher.detach().masked_fill(~mask[..., None], 0)\n    teacher = teacher.nan_to_num(neginf=-100.0)  # so that p ln p is never nan",
            )
        },
    ),
    Fresh(
        "soft_student_ruled_out_too",
        "takes the ruled-out words out of the student's softmax, too",
        "legal input",
        "distillation-edges",
        {
            "soft": (
                "log_q = (student / temperature).log_softmax(dim=-1)",
                "student = student.masked_fill(teacher.isinf(), -torch.inf)\n    log_q = (student / temperature).log_softmax(dim=-1)",
            )
        },
    ),
    Fresh(
        "soft_skips_tokens_with_ruled_out_words",
        "lets a token with a ruled-out word cost 0",
        "legal input",
        "distillation-edges",
        {
            "soft": (
                "divergence = torch.where(log_p.isinf(), 0, parts).sum(dim=-1)",
                "ruled_out = log_p.isinf().any(dim=-1, keepdim=True)\n    divergence = torch.where(ruled_out, 0, parts).sum(dim=-1)",
            )
        },
    ),
    Fresh(
        "soft_padding_only_behind",
        "takes the first n tokens for the n real ones",
        "legal input",
        "distillation-soft",
        {
            "soft": (
                "    student = student.masked_fill(~mask[..., None], 0)\n",
                "    T = mask.shape[1]\n    mask = torch.arange(T, device=mask.device) < mask.sum(dim=1, keepdim=True)\n    student = student.masked_fill(~mask[..., None], 0)\n",
            )
        },
    ),
    Fresh(
        "mixed_labels_only_in_front",
        "takes the first n tokens for the n that have a label",
        "legal input",
        "distillation-mixed",
        {
            "mixed": (
                "counted = labels >= 0",
                "number = (labels >= 0).sum(dim=1, keepdim=True)\n    counted = torch.arange(labels.shape[1], device=labels.device) < number",
            )
        },
    ),
    Fresh(
        "mixed_hard_returned_detached",
        "returns the hard losses without their gradient",
        "gradient",
        "distillation-mixed",
        {
            "mixed": (
                "return ((1 - weight) * soft + weight * hard).mean(), hard",
                "return ((1 - weight) * soft + weight * hard).mean(), hard.detach()",
            )
        },
    ),
    Fresh(
        "mixed_no_hard_at_weight_0",
        "returns zeros for the hard losses if their share is 0",
        "legal input",
        "distillation-mixed",
        {
            "mixed": (
                "    counted = labels >= 0\n",
                "    if weight == 0:  # nothing to compute\n        return soft.mean(), torch.zeros_like(soft)\n    counted = labels >= 0\n",
            )
        },
    ),
    Fresh(
        "mixed_squeezes_every_axis",
        "squeezes all axes of length 1 after gather",
        "legal input",
        "distillation-mixed",
        {
            "mixed": (
                "log_q.gather(2, labels.clamp(min=0)[..., None])[..., 0]",
                "log_q.gather(2, labels.clamp(min=0)[..., None]).squeeze()",
            )
        },
    ),
    Fresh(
        "maxsim_padding_is_minus_10000",
        "fills products with padding of the document with -10000",
        "numerics",
        "maxsim-scores",
        {
            "late-interaction": (
                "    products = products.masked_fill(~document_mask[None, :, None], -torch.inf)\n    best, partners = products.max(dim=-1)  # [Q, N, T]\n",
                "    products = products.masked_fill(~document_mask[None, :, None], -1e4)\n    best, partners = products.max(dim=-1)  # [Q, N, T]\n    empty = ~document_mask.any(dim=1)[None, :, None]\n    best = best.masked_fill(empty, -torch.inf)\n",
            )
        },
    ),
    Fresh(
        "maxsim_mask_times_minus_inf",
        "multiplies the best products by the query's mask",
        "numerics",
        "maxsim-edges",
        {
            "late-interaction": (
                "best = best.masked_fill(~query_mask[:, None], 0)",
                "best = best * query_mask[:, None]",
            )
        },
    ),
    Fresh(
        "maxsim_any_over_all_documents",
        "asks whether all documents together are padding, not each",
        "leak",
        "maxsim-edges",
        {
            "late-interaction": (
                "some = document_mask.any(dim=1)[None, :, None] & query_mask[:, None]",
                "some = document_mask.any() & query_mask[:, None]",
            )
        },
    ),
    Fresh(
        "maxsim_partner_by_product_0",
        "tells padding of the query by a best product of 0",
        "legal input",
        "maxsim-edges",
        {
            "late-interaction": (
                "    scores = best.sum(dim=-1) / query_mask.sum(dim=1)[:, None]\n    return scores, partners.masked_fill(~some, -1)\n",
                "    scores = best.sum(dim=-1) / query_mask.sum(dim=1)[:, None]\n    some = some & (best != 0)  # padding of the query is 0\n    return scores, partners.masked_fill(~some, -1)\n",
            )
        },
    ),
    Fresh(
        "maxsim_half_becomes_float",
        "divides by the sum of a float32 mask",
        "numerics",
        "maxsim-edges",
        {
            "late-interaction": (
                "/ query_mask.sum(dim=1)[:, None]",
                "/ query_mask.float().sum(dim=1)[:, None]",
            )
        },
    ),
    Fresh(
        "prompt_grows_the_start",
        "appends shots and question to the caller's start",
        "state",
        "prompts-build",
        {
            "few-shot": (
                "    return [*start, *(index for shot in shown for index in shot), *question], len(shown)\n",
                "    prompt = start\n    for shot in shown:\n        prompt += shot\n    prompt += question\n    return prompt, len(shown)\n",
            )
        },
    ),
    Fresh(
        "prompt_kept_counts_separators",
        "counts the ids `between` in the prompt to say how many shots are in it",
        "legal input",
        "prompts-build",
        {
            "few-shot": (
                "    return [*start, *(index for shot in shown for index in shot), *question], len(shown)\n",
                "    prompt = [*start, *(index for shot in shown for index in shot), *question]\n    return prompt, prompt.count(between)\n",
            )
        },
    ),
    Fresh(
        "prompt_cut_at_first_separator",
        "cuts the prompt behind the first `between` to leave out the first shot",
        "legal input",
        "prompts-build",
        {
            "few-shot": (
                "    while len(start) + sum(map(len, shown)) + len(question) > longest:\n        shown = shown[1:]\n    return [*start, *(index for shot in shown for index in shot), *question], len(shown)\n",
                "    middle = [index for shot in shown for index in shot]\n    kept = len(shown)\n    while len(start) + len(middle) + len(question) > longest:\n        middle = middle[middle.index(between) + 1 :]\n        kept -= 1\n    return [*start, *middle, *question], kept\n",
            )
        },
    ),
    Fresh(
        "prompt_no_shots_no_check",
        "returns at once if there are no shots, before the length is checked",
        "legal input",
        "prompts-build",
        {
            "few-shot": (
                "    if len(start) + len(question) > longest:\n",
                "    if not shots:  # nothing to leave out\n        return [*start, *question], 0\n    if len(start) + len(question) > longest:\n",
            )
        },
    ),
    Fresh(
        "tokens_zero_times_minus_inf",
        "multiplies by the mask, so that -inf at padding becomes nan",
        "numerics",
        "prompts-tokens",
        {
            "tokens": (
                "return found.masked_fill(~mask, 0), mask",
                "return found * mask, mask",
            )
        },
    ),
    Fresh(
        "tokens_pads_with_0",
        "fills up with 0 whatever pad is",
        "hard-wired",
        "prompts-tokens",
        {"tokens": ("*[pad] * (M - len(answer))]", "*[0] * (M - len(answer))]")},
    ),
    Fresh(
        "tokens_last_column_not_read",
        "calls the model without the last column of ids",
        "legal input",
        "prompts-tokens",
        {
            "tokens": (
                "model(ids)[:, begin - 1 : -1]",
                "model(ids[:, :-1])[:, begin - 1 :]",
            )
        },
    ),
    Fresh(
        "tokens_clamps_probabilities",
        "clamps probabilities at 1e-12 before the logarithm",
        "numerics",
        "prompts-tokens",
        {"tokens": (".log_softmax(dim=-1)", ".softmax(dim=-1).clamp(min=1e-12).log()")},
    ),
    Fresh(
        "tokens_fills_up_callers_answers",
        "appends pad to the caller's answers",
        "state",
        "prompts-tokens",
        {
            "tokens": (
                "    rows = [[*prompt, *answer, *[pad] * (M - len(answer))] for answer in answers]\n    ids = torch.tensor(rows, device=device)  # [A, L]\n    log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)  # [A, M, V]\n    found = log_probs.gather(2, ids[:, begin:, None])[..., 0]  # [A, M]\n    lengths = torch.tensor([[len(answer)] for answer in answers], device=device)\n",
                "    lengths = torch.tensor([[len(answer)] for answer in answers], device=device)\n    for answer in answers:\n        answer += [pad] * (M - len(answer))\n    ids = torch.tensor([prompt + answer for answer in answers], device=device)  # [A, L]\n    log_probs = model(ids)[:, begin - 1 : -1].log_softmax(dim=-1)  # [A, M, V]\n    found = log_probs.gather(2, ids[:, begin:, None])[..., 0]  # [A, M]\n",
            )
        },
    ),
    Fresh(
        "choice_prior_times_mask",
        "multiplies the prior by the mask",
        "numerics",
        "prompts-choose",
        {
            "choice": (
                "prior.masked_fill(~mask, 0).sum(dim=-1)",
                "(prior * mask).sum(dim=-1)",
            )
        },
    ),
    Fresh(
        "choice_last_of_equal",
        "sorts the scores and takes the last, so of equal ones the last",
        "legal input",
        "prompts-choose",
        {
            "choice": (
                "scores.argmax(dim=-1)",
                "scores.argsort(dim=-1, stable=True)[:, -1]",
            )
        },
    ),
    Fresh(
        "choice_minus_inf_made_finite",
        "cleans nan with nan_to_num, which makes -inf finite",
        "numerics",
        "prompts-choose",
        {
            "choice": (
                "scores = log_probs.masked_fill(~mask, 0).sum(dim=-1) / power",
                "log_probs = torch.nan_to_num(log_probs)  # padding may be nan\n    scores = log_probs.masked_fill(~mask, 0).sum(dim=-1) / power",
            )
        },
    ),
    Fresh(
        "choice_counts_what_is_not_0",
        "counts the log-probabilities that are not 0 instead of the mask",
        "legal input",
        "prompts-choose",
        {
            "choice": (
                "power = mask.sum(dim=-1).to(log_probs.dtype) ** alpha  # [A]",
                "tokens = log_probs.masked_fill(~mask, 0) != 0  # padding is 0\n    power = tokens.sum(dim=-1).to(log_probs.dtype) ** alpha  # [P, A]",
            )
        },
    ),
    Fresh(
        "experiment_own_stories",
        "trains on make_data(1), not on the data it is given",
        "hard-wired",
        "experiment-student",
        {
            "experiment": (
                "    student = make_student()\n",
                "    _, data = make_data(1)\n    student = make_student()\n",
            )
        },
    ),
    Fresh(
        "experiment_keeps_best_for_global_teacher",
        "returns the state that is nearest to the notebook's first teacher",
        "state",
        "experiment-student",
        {
            "experiment": (
                '    for _ in range(80):\n        logits = student(data["pairs"])\n        soft = soft_targets(logits, data["teacher"], data["mask"], 2.0)\n        loss, _ = mixed_loss(soft, logits, data["labels"], 0.0)\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n    return student\n',
                '    nearest = math.inf\n    for _ in range(80):\n        logits = student(data["pairs"])\n        soft = soft_targets(logits, data["teacher"], data["mask"], 2.0)\n        loss, _ = mixed_loss(soft, logits, data["labels"], 0.0)\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n        far = distance(teacher, student)\n        if far < nearest:\n            nearest = far\n            best = {name: table.clone() for name, table in student.state_dict().items()}\n    student.load_state_dict(best)\n    return student\n',
            )
        },
    ),
    Fresh(
        "check_missing_in_any_order",
        "compares the missing marks as sets",
        "legal input",
        "check-refuses",
        {"own-check": ("assert missing == lost", "assert set(missing) == set(lost)")},
    ),
    Fresh(
        "check_any_error_will_do",
        "takes any error for the ValueError",
        "legal input",
        "check-refuses",
        {"own-check": ("except ValueError:", "except Exception:")},
    ),
]
MUTANTS += LATER
RIGHT_ANSWERS += [
    RightAnswer(
        "packed_tokens_and_suffixes",
        "Pack the real tokens and add them up by sentence; a loop over sentences; the longest suffix of shots that fits.",
        {
            "soft": "def soft_targets(student, teacher, mask, temperature):\n    row, _ = mask.nonzero(as_tuple=True)  # the sentence of each real token\n    z = teacher.detach()[mask] / temperature  # [tokens, V]\n    u = student[mask] / temperature\n    p = torch.softmax(z, dim=1)\n    log_p = torch.log_softmax(z, dim=1)\n    log_p = log_p.masked_fill(log_p == -math.inf, 0.0)\n    each = (p * (log_p - torch.log_softmax(u, dim=1))).sum(dim=1)\n    total = student.new_zeros(len(mask)).index_add(0, row, each.to(student.dtype))\n    number = torch.bincount(row, minlength=len(mask))\n    number[number == 0] = 1\n    return total / number * temperature * temperature\n",
            "mixed": "def mixed_loss(soft, logits, labels, weight):\n    hard = []\n    for u, y in zip(logits, labels):\n        kept = y != -1\n        log_q = torch.log_softmax(u[kept], dim=1)\n        hard.append(-log_q[torch.arange(len(log_q), device=u.device), y[kept].long()].mean())\n    hard = torch.stack(hard)\n    total = weight * hard.sum() + (1 - weight) * soft.sum()\n    return total / len(labels), hard\n",
            "few-shot": 'def build_prompt(start, shots, question, between, longest):\n    room = longest - len(start) - len(question)\n    if room < 0:\n        raise ValueError("the start and the question do not fit")\n    middle, kept = [], 0\n    for asked, answer in reversed(shots):\n        shot = list(asked) + list(answer) + [between]\n        if len(shot) > room:\n            break\n        middle, kept, room = shot + middle, kept + 1, room - len(shot)\n    return list(start) + middle + list(question), kept\n',
        },
    ),
    RightAnswer(
        "one_matrix_product_and_columns",
        "All tokens against all tokens in one matrix product; each answer's real columns alone.",
        {
            "late-interaction": "def maxsim(queries, documents, query_mask, document_mask):\n    (Q, T, D), (N, S, _) = queries.shape, documents.shape\n    zero = queries.new_zeros(())\n    q = torch.where(query_mask.unsqueeze(-1), queries, zero).reshape(Q * T, D)\n    d = torch.where(document_mask.unsqueeze(-1), documents, zero).reshape(N * S, D)\n    table = (q @ d.T).reshape(Q, T, N, S).transpose(1, 2)  # [Q, N, T, S]\n    real_d = document_mask[None, :, None, :].expand(Q, N, T, S)\n    place = torch.where(real_d, table.detach(), zero - math.inf).argmax(-1)  # [Q, N, T]\n    best = table.take_along_dim(place.unsqueeze(-1), -1).squeeze(-1)\n    best = torch.where(query_mask.unsqueeze(1), best, zero)\n    empty = ~document_mask.any(-1)  # [N]\n    scores = best.sum(-1) / query_mask.sum(-1, keepdim=True)\n    scores = torch.where(empty, zero - math.inf, scores)\n    nobody = empty[None, :, None] | ~query_mask[:, None, :]\n    return scores, torch.where(nobody, -1, place)\n",
            "choice": "def choose_answer(log_probs, mask, alpha=1.0, prior=None):\n    columns = []\n    for a, kept in enumerate(mask):\n        n = kept.sum().double() ** alpha  # without axes, so that the dtype stays\n        score = log_probs[:, a, kept].sum(dim=1) / n  # [P]\n        if prior is not None:\n            score = score - prior[a, kept].sum() / n\n        columns.append(score)\n    scores = torch.stack(columns, dim=1)\n    largest = scores == scores.max(dim=1, keepdim=True).values\n    return largest.long().argmax(dim=1), scores\n",
        },
    ),
    RightAnswer(
        "answers_row_by_row_and_lbfgs",
        "Take each answer's logits out of the one call and pad what was found; train with LBFGS at temperature 1.",
        {
            "tokens": "def answer_log_probs(model, prompt, answers, pad):\n    sizes = [len(answer) for answer in answers]\n    ids = torch.full((len(answers), len(prompt) + max(sizes)), pad, device=device)\n    for row, answer in zip(ids, answers):\n        row[: len(prompt) + len(answer)] = torch.tensor([*prompt, *answer], device=device)\n    logits = model(ids)\n    pieces = []\n    for table, answer in zip(logits, answers):\n        before = len(prompt) - 1\n        log_p = table[before : before + len(answer)].log_softmax(-1)\n        pieces.append(log_p[list(range(len(answer))), answer])\n    found = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True)\n    ones = [torch.ones(size, dtype=torch.bool, device=logits.device) for size in sizes]\n    return found, torch.nn.utils.rnn.pad_sequence(ones, batch_first=True)\n",
            "experiment": 'def experiment(make_student, data):\n    student = make_student(0)\n    optimizer = torch.optim.LBFGS(\n        student.parameters(), lr=1.0, max_iter=60, line_search_fn="strong_wolfe"\n    )\n    share = data["mask"].sum(dim=1) / data["mask"].sum()\n\n    def closure():\n        optimizer.zero_grad()\n        soft = soft_targets(student(data["pairs"]), data["teacher"], data["mask"], 1.0)\n        loss = (soft * share).sum()\n        loss.backward()\n        return loss\n\n    optimizer.step(closure)\n    return student\n',
        },
    ),
]
