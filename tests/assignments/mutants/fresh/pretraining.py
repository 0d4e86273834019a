"""Fresh wrong and right answers to the assignment on pre-training, written from the text that students read."""

from fresh import fresh

from course_tools.grading.assignments.mutants import RightAnswer

SPECIAL = "    special = torch.isin(input_ids, torch.tensor(special_ids))"
CHOSEN = (
    "    chosen = (torch.rand(input_ids.shape, generator=generator) < rate) & ~special"
)
LOT = "    lot = torch.rand(input_ids.shape, generator=generator)"
ORDINARY = "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])"
DRAWN = "    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]"
RETURN = "    return masked_ids, labels"
MASKING = [
    *fresh(
        "chance",
        "masking-choice",
        "mask",
        (
            "mask_the_same_number_in_each_row",
            "chooses exactly 15% of the ordinary tokens of each row",
            CHOSEN,
            "    lots = torch.rand(input_ids.shape, generator=generator).masked_fill(special, 2.0)\n    rank = lots.argsort(dim=1).argsort(dim=1)\n    chosen = rank < (rate * (~special).sum(dim=1, keepdim=True)).round()\n    chosen &= ~special",
        ),
        (
            "mask_at_least_one_in_each_row",
            "chooses a token in every row where chance has chosen none",
            CHOSEN,
            "    lots = torch.rand(input_ids.shape, generator=generator).masked_fill(special, 2.0)\n    chosen = (lots < rate) | (lots == lots.min(dim=1, keepdim=True).values)\n    chosen &= ~special",
        ),
        (
            "mask_no_two_neighbours",
            "never chooses a token behind a chosen one, and makes up for it by a higher rate",
            CHOSEN,
            "    chosen = (torch.rand(input_ids.shape, generator=generator) < rate / (1 - rate)) & ~special\n    for t in range(1, chosen.shape[1]):\n        chosen[:, t] &= ~chosen[:, t - 1]",
        ),
        (
            "mask_rows_share_their_draws_by_turns",
            "draws one row of numbers and gives each row the same, moved by one place",
            CHOSEN,
            "    lots = torch.rand(input_ids.shape[1], generator=generator)\n    chosen = torch.stack([lots.roll(b) for b in range(len(input_ids))]) < rate\n    chosen &= ~special",
        ),
        (
            "mask_never_the_first_position",
            "takes the first position for [CLS] and never chooses it",
            CHOSEN,
            CHOSEN + "\n    chosen[:, 0] = False",
        ),
    ),
    *fresh(
        "chance",
        "masking-fates",
        "mask",
        (
            "mask_fates_by_column",
            "draws one fate for each position, the same in all rows",
            LOT,
            "    lot = torch.rand(input_ids.shape[1], generator=generator).expand(input_ids.shape)",
        ),
        (
            "mask_fates_dealt_out",
            "deals 80, 10 and 10 percent of the chosen tokens out exactly",
            LOT,
            "    lot = torch.ones(input_ids.shape)\n    count = int(chosen.sum())\n    lot[chosen] = torch.randperm(count, generator=generator) / max(count, 1)",
        ),
        (
            "mask_random_tokens_by_column",
            "draws one random token for each position, the same in all rows",
            DRAWN,
            "    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape[1:], generator=generator)].expand(input_ids.shape)",
        ),
        (
            "mask_random_tokens_from_the_batch",
            "draws random tokens from the ordinary ones of the batch, so that frequent ones come often",
            ORDINARY,
            "    ordinary = input_ids[~special]\n    ordinary = ordinary if len(ordinary) else torch.tensor([mask_id])",
        ),
        (
            "mask_random_token_never_the_true_one",
            "draws random tokens until they differ from the true one",
            DRAWN,
            DRAWN
            + "\n    while (drawn == input_ids).any() and len(ordinary) > 1:\n        again = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]\n        drawn = torch.where(drawn == input_ids, again, drawn)",
        ),
        (
            "mask_one_random_token_for_neighbours",
            "gives two neighbours the same random token",
            DRAWN,
            DRAWN + "\n    drawn[:, 1::2] = drawn[:, : drawn.shape[1] // 2 * 2 : 2]",
        ),
        (
            "mask_special_random_tokens_become_the_next",
            "draws from all ids and takes the greatest ordinary id where a special one came",
            DRAWN,
            "    drawn = torch.randint(vocab_size, input_ids.shape, generator=generator)\n    drawn[torch.isin(drawn, torch.tensor(special_ids))] = int(ordinary[-1])",
        ),
    ),
    *fresh(
        "hard-wired",
        "masking-fates",
        "mask",
        (
            "mask_special_ids_come_first",
            "draws random tokens from behind the greatest special id",
            ORDINARY,
            "    ordinary = torch.arange(max(special_ids) + 1, max(vocab_size, max(special_ids) + 2))",
        ),
        (
            "mask_as_many_special_ids_in_front",
            "draws random tokens from the number of special ids upwards",
            ORDINARY,
            "    ordinary = torch.arange(len(special_ids), vocab_size)",
        ),
        (
            "mask_last_id_never_drawn",
            "draws from all ordinary ids but the last",
            "torch.randint(len(ordinary), input",
            "torch.randint(max(1, len(ordinary) - 1), input",
        ),
        (
            "mask_first_ordinary_id_never_drawn",
            "draws from all ordinary ids but the first",
            "torch.randint(len(ordinary), input",
            "torch.randint(min(1, len(ordinary) - 1), len(ordinary), input",
        ),
    ),
    *fresh(
        "hard-wired",
        "masking-choice",
        "mask",
        (
            "mask_special_ids_are_a_range",
            "takes all ids from the least special one to the greatest as special",
            SPECIAL,
            "    special = (input_ids >= min(special_ids)) & (input_ids <= max(special_ids))",
        ),
        (
            "mask_rate_of_the_paper",
            "chooses 15%, whatever rate is",
            "< rate)",
            "< 0.15)",
        ),
        (
            "mask_rate_at_most_a_half",
            "takes no rate above one half",
            "< rate)",
            "< min(rate, 0.5))",
        ),
    ),
    *fresh(
        "cut-off",
        "masking-choice",
        "mask",
        (
            "mask_rate_zero_is_the_default",
            "takes rate 0 as none given",
            "< rate)",
            "< (rate or 0.15))",
        ),
    ),
]
FILL = """    segments = []
    for sentence in document:
        if segments and len(segments[-1]) + len(sentence) <= most:
            segments[-1] = segments[-1] + sentence
        else:
            segments.append(sentence[:most])
    return segments"""
COIN = "            if random.random() < 0.5:"
OTHER = "                other = random.randrange(len(documents) - 1)"
CHOICE = "                second = random.choice(documents[other + (other >= number)])"
DOCUMENTS = "    for number, document in enumerate(documents):"
NEXT = """    for number, document in enumerate(documents):
        for place in range(len(document) - 1):
            second, label = document[place + 1], IS_NEXT
            if random.random() < 0.5:
                other = random.randrange(len(documents) - 1)"""
TENSORS = '        "input_ids": torch.tensor(rows),'
PAIRS = [
    *fresh(
        "legal input",
        "pairs-fill",
        "fill",
        (
            "fill_no_sentences_raises",
            "begins with the first sentence, which an empty document lacks",
            FILL,
            FILL.replace("segments = []", "segments = [document[0][:most]]").replace(
                "in document:", "in document[1:]:"
            ),
        ),
        (
            "fill_skips_a_repeated_sentence",
            "leaves out a sentence that equals the one before",
            FILL,
            FILL.replace(
                "    for sentence in document:",
                "    for number, sentence in enumerate(document):\n        if number and sentence == document[number - 1]:\n            continue",
            ),
        ),
        (
            "fill_goes_back_to_earlier_room",
            "puts a sentence into an earlier segment where that has room",
            FILL,
            FILL.replace(
                "        else:",
                "        elif len(segments) > 1 and len(segments[-2]) + len(sentence) <= most:\n            segments[-2] = segments[-2] + sentence\n        else:",
            ),
        ),
        (
            "fill_uses_up_the_rest_of_a_long_sentence",
            "puts the head of a long sentence into the room that is left",
            FILL,
            FILL.replace(
                "        else:",
                "        elif segments and len(sentence) > most and len(segments[-1]) < most:\n            segments[-1] = segments[-1] + sentence[: most - len(segments[-1])]\n        else:",
            ),
        ),
    ),
    *fresh(
        "hard-wired",
        "pairs-fill",
        "fill",
        (
            "fill_at_most_128",
            "makes no segment longer than 128",
            "    segments = []",
            "    segments, most = [], min(most, 128)",
        ),
    ),
    *fresh(
        "state",
        "pairs-fill",
        "fill",
        (
            "fill_cuts_the_document",
            "cuts long sentences of the document itself",
            "            segments.append(sentence[:most])",
            "            del sentence[most:]\n            segments.append(list(sentence))",
        ),
    ),
    *fresh(
        "chance",
        "pairs-chance",
        "next",
        (
            "next_half_of_each_document",
            "shuffles half zeros and half ones for each document instead of throwing coins",
            NEXT,
            NEXT.replace(
                DOCUMENTS,
                DOCUMENTS
                + "\n        coins = [n % 2 for n in range(len(document) - 1)]\n        random.shuffle(coins)",
            ).replace("random.random() < 0.5", "coins[place]"),
        ),
        (
            "next_never_four_alike",
            "changes the coin after three equal labels",
            COIN,
            "            last = [label for _, _, label in pairs[-3:]]\n            if (random.random() < 0.5 and last != [1, 1, 1]) or last == [0, 0, 0]:",
        ),
        (
            "next_coin_depends_on_the_place",
            "throws a coin loaded one way in the first half of a document and the other way in the second",
            "random.random() < 0.5",
            "random.random() < (0.4 if place < len(document) // 2 else 0.6)",
        ),
        (
            "next_others_in_turn",
            "goes through the other documents in turn instead of drawing one",
            OTHER,
            "                other = len(pairs) % (len(documents) - 1)",
        ),
        (
            "next_from_a_pack_of_cards",
            "shuffles the other documents and uses each once before any comes again",
            NEXT,
            NEXT.replace(DOCUMENTS, DOCUMENTS + "\n        deck = []").replace(
                OTHER,
                "                deck = deck or random.sample(range(len(documents) - 1), len(documents) - 1)\n                other = deck.pop()",
            ),
        ),
        (
            "next_segment_at_the_same_place",
            "takes the segment at the same place of the other document instead of drawing one",
            CHOICE,
            "                stranger = documents[other + (other >= number)]\n                second = stranger[place % len(stranger)]",
        ),
    ),
    *fresh(
        "legal input",
        "pairs-next",
        "next",
        (
            "next_equal_documents_are_one",
            "leaves out documents that equal this one, not this one alone",
            CHOICE,
            "                second = random.choice(random.choice([d for d in documents if d != document] or documents))",
        ),
        (
            "next_raises_only_when_it_draws",
            "raises for one document only when the coin asks for another",
            "    if len(documents) < 2:",
            "    if len(documents) < 2 and len(documents[0]) > 1:",
        ),
        (
            "next_no_stranger_that_reads_like_the_true_one",
            "labels a random segment that equals the true next one as next",
            "                label = NOT_NEXT",
            "                label = IS_NEXT if second == document[place + 1] else NOT_NEXT",
        ),
        (
            "next_skips_equal_segments",
            "makes no pair of a segment that comes twice in its document",
            "            second, label = document[place + 1], IS_NEXT",
            "            if document[place] in document[:place]:\n                continue\n            second, label = document[place + 1], IS_NEXT",
        ),
        (
            "next_place_by_index",
            "looks for the next segment by list.index",
            "document[place + 1], IS_NEXT",
            "document[document.index(document[place]) + 1], IS_NEXT",
        ),
        (
            "next_number_by_index",
            "looks for the number of a document by list.index, so that equal ones share it",
            CHOICE,
            "                number = documents.index(document)\n" + CHOICE,
        ),
    ),
    *fresh(
        "legal input",
        "pairs-pack",
        "pack",
        (
            "pack_mask_by_the_id",
            "takes every pad_id as padding, also one that stands in a segment",
            '"attention_mask": torch.tensor(masks)',
            '"attention_mask": torch.tensor(rows) != pad_id',
        ),
        (
            "pack_types_by_the_first_sep",
            "counts [SEP]s to find the segments, also those that stand in a segment",
            '"token_type_ids": torch.tensor(types)',
            '"token_type_ids": (((ids := torch.tensor(rows)) == sep_id).long().cumsum(1) - (ids == sep_id).long()).clamp(max=1) * torch.tensor(masks)',
        ),
        (
            "pack_one_pair_squeezed",
            "squeezes a batch of one pair",
            TENSORS,
            '        "input_ids": torch.tensor(rows).squeeze(0),',
        ),
        (
            "pack_sorts_by_length",
            "sorts long pairs to the front",
            "    longest =",
            "    pairs = sorted(pairs, key=lambda pair: -len(pair[0]) - len(pair[1]))\n    longest =",
        ),
        (
            "pack_as_long_as_the_longest_parts",
            "adds the longest first and the longest second segment, which need not be of one pair",
            "max(len(first) + len(second) + 3 for first, second, _ in pairs)",
            "max(len(first) for first, _, _ in pairs) + max(len(second) for _, second, _ in pairs) + 3",
        ),
    ),
    *fresh(
        "hard-wired",
        "pairs-pack",
        "pack",
        (
            "pack_fills_with_zero",
            "fills with 0, whatever pad_id is",
            "[pad_id] * filling",
            "[0] * filling",
        ),
        (
            "pack_ids_of_this_notebook",
            "writes 2 and 3 for cls_id and sep_id",
            "[cls_id, *first, sep_id, *second, sep_id]",
            "[2, *first, 3, *second, 3]",
        ),
        (
            "pack_at_most_512",
            "cuts at 512 positions",
            TENSORS,
            '        "input_ids": torch.tensor(rows)[:, :512],',
        ),
    ),
    *fresh(
        "state",
        "pairs-pack",
        "pack",
        (
            "pack_adds_to_the_segments",
            "adds [SEP] to the second segment itself",
            "        row = [cls_id, *first, sep_id, *second, sep_id]",
            "        second.append(sep_id)\n        row = [cls_id, *first, sep_id, *second]\n        second = second[:-1]",
        ),
    ),
]
GATHER = (
    "    losses = -log_probabilities.gather(-1, labels[chosen].unsqueeze(-1))  # [N, 1]"
)
PICK = "    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]"
MEAN = "    return losses.sum() / max(len(losses), 1)"
ROWS = "    rows = hidden[chosen]  # [N, D]\n"
TOTAL = "    return masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)"
LOSS = [
    *fresh(
        "numerics",
        "loss-masked",
        "loss",
        (
            "loss_log_of_softmax",
            "takes the logarithm of the probabilities",
            "log_softmax(dim=-1)",
            "softmax(dim=-1).log()",
        ),
        (
            "loss_log_of_softmax_plus_epsilon",
            "adds 1e-9 before the logarithm",
            "log_softmax(dim=-1)",
            "softmax(dim=-1).add(1e-9).log()",
        ),
        (
            "loss_at_most_a_hundred",
            "lets no position cost more than 100",
            MEAN,
            MEAN.replace("losses.sum()", "losses.clamp(max=100).sum()"),
        ),
        (
            "loss_exponentials_overflow",
            "writes log of the sum of exponentials out",
            PICK,
            "    rows = logits[chosen]\n    log_probabilities = rows - rows.exp().sum(dim=-1, keepdim=True).log()",
        ),
        (
            "loss_maximum_of_the_batch",
            "subtracts the greatest logit of the batch, so that other rows become 0",
            PICK,
            "    rows = logits[chosen]\n    rows = rows - (rows.max() if len(rows) else 0)\n    log_probabilities = rows - rows.exp().sum(dim=-1, keepdim=True).log()",
        ),
        (
            "loss_in_float32",
            "computes in float32 and turns the result back",
            PICK,
            "    dtype, logits = logits.dtype, logits.float()\n" + PICK,
        ),
        (
            "loss_always_float32",
            "returns float32",
            MEAN,
            "    return (losses.sum() / max(len(losses), 1)).float()",
        ),
        (
            "loss_number_plus_epsilon",
            "adds 1e-6 to the number of chosen positions",
            "max(len(losses), 1)",
            "(len(losses) + 1e-6)",
        ),
        (
            "loss_all_positions_times_a_mask",
            "computes all positions and multiplies by the mask, which leaves nan where nobody asks",
            PICK + "\n" + GATHER + "\n" + MEAN,
            "    losses = -logits.log_softmax(dim=-1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)\n    return (losses * chosen).sum() / max(int(chosen.sum()), 1)",
        ),
    ),
    *fresh(
        "gradient",
        "loss-masked",
        "loss",
        (
            "loss_gradient_of_the_true_logit_alone",
            "detaches the normaliser, so that no wrong logit is pushed down",
            PICK,
            "    rows = logits[chosen]\n    log_probabilities = rows - rows.logsumexp(dim=-1, keepdim=True).detach()",
        ),
        (
            "loss_without_holes_has_no_gradient",
            "returns a new 0 where nothing is chosen, which cannot go backward",
            PICK,
            "    if not chosen.any():\n        return torch.zeros((), dtype=logits.dtype, device=logits.device)\n"
            + PICK,
        ),
    ),
    *fresh(
        "legal input",
        "loss-masked",
        "loss",
        (
            "loss_by_view",
            "flattens with view, which fails on a slice",
            "    chosen = labels != IGNORE",
            "    logits, labels = logits.view(-1, logits.shape[-1]), labels.view(-1)\n    chosen = labels != IGNORE",
        ),
        (
            "loss_without_batch_dimension",
            "needs at least one dimension in front of V",
            "    chosen = labels != IGNORE",
            "    assert labels.shape[0] > 0\n    chosen = labels != IGNORE",
        ),
    ),
    *fresh(
        "state",
        "loss-masked",
        "loss",
        (
            "loss_shifts_the_logits_in_place",
            "subtracts the maximum from the logits that it is given",
            PICK,
            "    logits.data -= logits.data.amax(dim=-1, keepdim=True)\n" + PICK,
        ),
        (
            "loss_fills_the_labels_in_place",
            "overwrites -100 in the labels that it is given",
            MEAN,
            "    result = losses.sum() / max(len(losses), 1)\n    labels.masked_fill_(~chosen, 0)\n    return result",
        ),
    ),
    *fresh(
        "gradient",
        "loss-rows",
        "rows",
        (
            "rows_detached",
            "detaches the hidden states",
            ROWS,
            "    rows = hidden.detach()[chosen]\n",
        ),
        (
            "rows_under_no_grad",
            "picks the states under no_grad",
            ROWS,
            "    with torch.no_grad():\n        rows = hidden[chosen]\n",
        ),
    ),
    *fresh(
        "legal input",
        "loss-rows",
        "rows",
        (
            "rows_one_hole_squeezed",
            "squeezes, so that head gets [D] for one chosen position",
            "head(portion)",
            "head(portion.squeeze(0))",
        ),
        (
            "rows_by_view",
            "flattens with view, which fails on a slice",
            ROWS,
            "    rows = hidden.view(-1, hidden.shape[-1])[labels.view(-1) != IGNORE]\n",
        ),
        (
            "rows_without_holes",
            "gives head one row where nothing is chosen",
            ROWS,
            "    if not chosen.any():\n        return head(hidden[:1, 0]), labels[:1, 0]\n"
            + ROWS,
        ),
    ),
    *fresh(
        "numerics",
        "loss-rows",
        "rows",
        (
            "rows_in_float32",
            "gives head float32",
            "head(portion)",
            "head(portion.float())",
        ),
    ),
    *fresh(
        "legal input",
        "loss-total",
        "total",
        (
            "total_nothing_chosen_nothing_lost",
            "returns 0 where no token is chosen, pairs or not",
            TOTAL,
            "    if (labels == IGNORE).all():\n        return masked_loss(token_logits, labels)\n"
            + TOTAL,
        ),
    ),
    *fresh(
        "numerics",
        "loss-total",
        "total",
        (
            "total_pairs_by_a_sigmoid",
            "takes the logarithm of a sigmoid of the difference, which may be 0",
            TOTAL,
            "    chances = (pair_logits[:, 1] - pair_logits[:, 0]).sigmoid()\n    chances = torch.where(next_sentence_labels == 1, chances, 1 - chances)\n    return masked_loss(token_logits, labels) - chances.log().mean()",
        ),
        (
            "total_pairs_in_float32",
            "computes the pair loss in float32",
            "masked_loss(pair_logits, next",
            "masked_loss(pair_logits.float(), next",
        ),
    ),
]
CLIP = "    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)"
STEP = "    optimizer.step()\n    return loss.item()"
ZERO = "    model.train()\n    optimizer.zero_grad()"
EVAL = "    was_training = model.training\n    model.eval()"
BACK = "    model.train(was_training)"
RIGHT = '    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]'
ACCURACY = "right.double().mean().item()"
TRAINING = [
    *fresh(
        "hard-wired",
        "step-training",
        "train",
        (
            "step_clips_the_first_group",
            "cuts the gradients of the optimizer's first group alone",
            "clip_grad_norm_(model.parameters(), max_norm)",
            "clip_grad_norm_(optimizer.param_groups[0]['params'], max_norm)",
        ),
        (
            "step_default_norm_of_five",
            "has max_norm=5.0 for a default",
            "max_norm=1.0",
            "max_norm=5.0",
        ),
        (
            "step_clips_each_group_by_itself",
            "cuts each group of the optimizer to max_norm by itself",
            CLIP,
            "    for group in optimizer.param_groups:\n        torch.nn.utils.clip_grad_norm_(group['params'], max_norm)",
        ),
    ),
    *fresh(
        "cut-off",
        "step-training",
        "train",
        (
            "step_norm_zero_is_no_norm",
            "does not cut at all where max_norm is 0",
            CLIP,
            "    if max_norm:\n    " + CLIP,
        ),
        (
            "step_skips_large_losses",
            "takes no step where the loss is above 20",
            "    optimizer.step()",
            "    if loss < 20:\n        optimizer.step()",
        ),
    ),
    *fresh(
        "state",
        "step-training",
        "train",
        (
            "step_clears_gradients_at_the_end",
            "clears gradients after the step, so that those which others left enter the first",
            STEP,
            "    optimizer.step()\n    optimizer.zero_grad()\n    return loss.item()",
        ),
        (
            "step_leaves_the_model_evaluating",
            "sets the model to evaluation after the step",
            STEP,
            "    optimizer.step()\n    model.eval()\n    return loss.item()",
        ),
        (
            "step_sets_the_top_to_training_only",
            "sets training of the model itself, not of the layers in it",
            ZERO,
            "    model.training = True\n    optimizer.zero_grad()",
        ),
    ),
    *fresh(
        "chance",
        "step-training",
        "train",
        (
            "step_seeds_the_world",
            "seeds torch, so that dropout is the same in each step",
            ZERO,
            "    torch.manual_seed(0)\n" + ZERO,
        ),
        (
            "evaluate_seeds_the_world",
            "seeds torch in evaluate, so that dropout is the same after each evaluation",
            EVAL,
            "    torch.manual_seed(0)\n" + EVAL,
        ),
    ),
    *fresh(
        "numerics",
        "step-training",
        "train",
        (
            "step_norm_of_the_largest",
            "cuts by the largest norm of one parameter",
            CLIP,
            "    norm = max(p.grad.norm() for p in model.parameters() if p.grad is not None)\n    for p in model.parameters():\n        if p.grad is not None:\n            p.grad.mul_((max_norm / norm).clamp(max=1))",
        ),
        (
            "step_returns_four_digits",
            "rounds the loss to four digits",
            STEP,
            "    optimizer.step()\n    return round(loss.item(), 4)",
        ),
    ),
    *fresh(
        "state",
        "step-evaluate",
        "train",
        (
            "evaluate_clears_gradients",
            "sets the gradients of the model to None",
            EVAL,
            EVAL + "\n    model.zero_grad()",
        ),
        (
            "evaluate_frees_what_was_frozen",
            "switches requires_grad on for all parameters afterwards",
            BACK,
            "    model.requires_grad_(True)\n" + BACK,
        ),
    ),
    *fresh(
        "cut-off",
        "step-evaluate",
        "train",
        (
            "evaluate_argmax_of_probabilities",
            "compares sigmoids, which are all 1 for great logits",
            "token_logits[chosen].argmax",
            "token_logits[chosen].sigmoid().argmax",
        ),
        (
            "evaluate_rounds_the_accuracy",
            "rounds the accuracy to four digits",
            ACCURACY,
            "round(right.double().mean().item(), 4)",
        ),
        (
            "evaluate_right_by_probability",
            "counts a position as right where the true id has at least one half",
            RIGHT,
            "    true = batch['labels'][chosen]\n    right = token_logits[chosen].softmax(dim=-1).gather(-1, true[:, None])[:, 0] > 0.5",
        ),
        (
            "evaluate_right_among_equals",
            "counts a position as right where the true id shares the greatest logit",
            RIGHT,
            "    true = batch['labels'][chosen]\n    right = token_logits[chosen].gather(-1, true[:, None])[:, 0] >= token_logits[chosen].amax(dim=-1)",
        ),
    ),
    *fresh(
        "legal input",
        "step-evaluate",
        "train",
        (
            "evaluate_mean_of_sequences",
            "takes the mean of the accuracies of the sequences that have holes",
            ACCURACY,
            "torch.stack([(token_logits[b][c].argmax(-1) == batch['labels'][b][c]).double().mean() for b, c in enumerate(chosen) if c.any()]).mean().item()",
        ),
    ),
]
MUTANTS = [*MASKING, *PAIRS, *LOSS, *TRAINING]

RIGHT_ANSWERS = [
    RightAnswer(
        "right_in_plain_loops",
        "goes through tokens, sentences, pairs and positions one by one",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    ordinary = sorted(set(range(vocab_size)) - set(special_ids))
    masked_ids, labels = input_ids.clone(), torch.full_like(input_ids, -100)
    special = sum((input_ids == i for i in special_ids), torch.zeros_like(input_ids, dtype=torch.bool))
    lots = torch.rand(input_ids.shape, generator=generator).masked_fill(special > 0, 1.0)
    for b, t in (lots < rate).nonzero().tolist():
        labels[b, t] = input_ids[b, t]
        lot = torch.randint(10, (), generator=generator).item()
        if lot < 8:
            masked_ids[b, t] = mask_id
        elif lot == 8:
            place = torch.randint(len(ordinary), (), generator=generator).item()
            masked_ids[b, t] = ordinary[place]
    return masked_ids, labels
""",
            "fill": """def fill_segments(document, most):
    segments, present = [], []
    for sentence in document:
        sentence = list(sentence[:most])
        if len(present) + len(sentence) > most:
            segments.append(present)
            present = []
        present = present + sentence
    return segments + [present] if present else segments
""",
            "loss": """def masked_loss(logits, labels):
    rows = logits.reshape(-1, logits.shape[-1])
    total, count = 0 * rows[:0].sum(), 0
    for row, label in zip(rows, labels.reshape(-1).tolist()):
        if label != IGNORE:
            total = total + torch.logsumexp(row, dim=0) - row[label]
            count += 1
    return total / (count or 1)
""",
            "rows": """def masked_logits(head, hidden, labels, most=None):
    places = (labels.reshape(-1) != IGNORE).nonzero().squeeze(1)
    picked = hidden.reshape(-1, hidden.shape[-1]).index_select(0, places)
    logits = head(picked) if most is None else torch.cat([head(part) for part in picked.split(most)])
    return logits, labels.reshape(-1)[places]
""",
        },
    ),
    RightAnswer(
        "right_with_one_draw_for_all",
        "uses one uniform number for choice and fate, and draws of other shapes and order",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    is_special = torch.zeros(vocab_size, dtype=torch.bool)
    is_special[list(special_ids)] = True
    u = torch.rand(input_ids.shape, generator=generator, dtype=torch.float64)
    chosen = torch.logical_and(u < rate, ~is_special[input_ids])
    labels = torch.where(chosen, input_ids, IGNORE)
    swap = chosen & (u < 0.1 * rate)
    mask = chosen & (u >= 0.2 * rate)
    weights = (~is_special).double()
    drawn = torch.multinomial(weights, max(int(swap.sum()), 1), replacement=True, generator=generator)
    masked_ids = input_ids.masked_fill(mask, mask_id)
    masked_ids = masked_ids.masked_scatter(swap, drawn)
    return masked_ids, labels
""",
            "next": """def sentence_pairs(documents, random):
    total = len(documents)
    if total == 1:
        raise ValueError("one document has no other")
    made = []
    for i in range(total):
        others = [j for j in range(total) if j != i]
        for first, following in zip(documents[i], documents[i][1:]):
            if random.choice((True, False)):
                made.append((first, following, IS_NEXT))
            else:
                made.append((first, random.choice(documents[random.choice(others)]), NOT_NEXT))
    return made
""",
            "pack": """def pack_pairs(pairs, cls_id, sep_id, pad_id):
    firsts, seconds, labels = zip(*pairs)
    rows = [torch.tensor([cls_id, *a, sep_id, *b, sep_id]) for a, b in zip(firsts, seconds)]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)
    place = torch.arange(ids.shape[1])
    length = torch.tensor([[len(row)] for row in rows])
    begin = torch.tensor([[len(a) + 2] for a in firsts])
    return {
        "next_sentence_labels": torch.tensor(labels, dtype=torch.int64),
        "attention_mask": place < length,
        "token_type_ids": ((place >= begin) & (place < length)).long(),
        "input_ids": ids,
    }
""",
            "loss": """def masked_loss(logits, labels):
    chosen = labels.ne(IGNORE)
    chances = torch.log_softmax(logits[chosen], -1)
    truth = labels[chosen]
    picked = chances[torch.arange(len(truth), device=truth.device), truth]
    return -picked.sum() / chosen.sum().clamp(min=1)
""",
        },
    ),
    RightAnswer(
        "right_with_other_defaults_and_helpers",
        "gives arguments default values, and shares the forward pass between step and evaluation",
        {
            "fill": """def fill_segments(document, most=128):
    segments = []
    room = 0
    for sentence in document:
        if not segments or len(sentence) > room:
            segments.append([])
            room = most
        segments[-1].extend(sentence[:room])
        room -= min(len(sentence), room)
    return segments
""",
            "pack": """def pack_pairs(pairs, cls_id=2, sep_id=3, pad_id=0):
    lengths = [3 + len(a) + len(b) for a, b, _ in pairs]
    B, T = len(pairs), max(lengths)
    batch = {
        "input_ids": torch.full((B, T), pad_id, dtype=torch.long),
        "token_type_ids": torch.zeros(B, T, dtype=torch.long),
        "attention_mask": torch.zeros(B, T, dtype=torch.bool),
        "next_sentence_labels": torch.zeros(B, dtype=torch.long),
    }
    for i, (a, b, label) in enumerate(pairs):
        batch["input_ids"][i, : lengths[i]] = torch.tensor([cls_id] + list(a) + [sep_id] + list(b) + [sep_id])
        batch["token_type_ids"][i, 2 + len(a) : lengths[i]] = 1
        batch["attention_mask"][i, : lengths[i]] = True
        batch["next_sentence_labels"][i] = label
    return batch
""",
            "total": """def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    rows = torch.arange(len(pair_logits), device=pair_logits.device)
    pairs = torch.logsumexp(pair_logits, dim=1) - pair_logits[rows, next_sentence_labels]
    return pairs.mean() + masked_loss(token_logits, labels)
""",
            "train": """def forward(model, batch):
    names = ("input_ids", "attention_mask", "token_type_ids")
    token_logits, pair_logits = model(*(batch[name] for name in names))
    labels = batch["labels"]
    return token_logits, pretraining_loss(
        token_logits, labels, pair_logits, batch["next_sentence_labels"]
    )


def training_step(model, optimizer, batch, max_norm=1.0):
    if not model.training:
        model.train(True)
    model.zero_grad()
    optimizer.zero_grad(set_to_none=True)
    _, loss = forward(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([*model.parameters()], max_norm=max_norm)
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def evaluate(model, batch):
    mode = model.training
    try:
        token_logits, loss = forward(model.eval(), batch)
    finally:
        model.train(mode)
    labels = batch["labels"]
    hits = (token_logits.max(dim=-1).indices == labels).sum().item()
    return float(loss), hits / (labels != IGNORE).sum().item()
""",
        },
    ),
    RightAnswer(
        "right_by_integers_and_lists",
        "throws dice with ten sides, and compares lists",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    special = torch.isin(input_ids, torch.tensor(list(special_ids)))
    chosen = torch.bernoulli(torch.full(input_ids.shape, float(rate)), generator=generator).bool()
    chosen[special] = False
    dice = torch.randint(0, 10, input_ids.shape, generator=generator)
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in special_ids])
    random_ids = ordinary[(torch.rand(input_ids.shape, generator=generator, dtype=torch.float64) * len(ordinary)).long()]
    masked_ids = torch.where(chosen & (dice > 1), mask_id, input_ids)
    masked_ids = torch.where(chosen & (dice == 1), random_ids, masked_ids)
    return masked_ids, input_ids.where(chosen, torch.tensor(IGNORE))
""",
            "next": """def sentence_pairs(documents, random):
    if len(documents) < 2:
        raise ValueError("at least two documents, please")

    def stranger(number):
        other = number
        while other == number:
            other = random.randint(0, len(documents) - 1)
        return documents[other][random.randrange(len(documents[other]))]

    pairs = []
    for number, document in enumerate(documents):
        for place, first in enumerate(document[:-1]):
            label = random.getrandbits(1)
            second = stranger(number) if label == NOT_NEXT else document[place + 1]
            pairs.append((first, second, label))
    return pairs
""",
            "rows": """def masked_logits(head, hidden, labels, most=None):
    b, t = torch.where(labels != IGNORE)
    size = most or max(len(b), 1)
    logits = [head(hidden[b[i : i + size], t[i : i + size]]) for i in range(0, max(len(b), 1), size)]
    return torch.cat(logits), labels[b, t]
""",
            "total": """def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    pairs = -pair_logits.log_softmax(1).gather(1, next_sentence_labels.view(-1, 1))
    return torch.add(masked_loss(token_logits, labels), pairs.mean())
""",
        },
    ),
]
