"""Fresh wrong and right answers to the assignment on pre-training, written from the text that students read."""

from fresh import Fresh, fresh

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

# Written on 28 November 2026, from the task's text alone, too.
MUTANTS += [
    Fresh(
        "shift_past_unsorted_specials",
        "draws a rank and shifts it past each special id in the order given, which is right only if special_ids is sorted",
        "legal input",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]\n",
                "    drawn = torch.randint(vocab_size - len(special_ids), input_ids.shape, generator=generator)\n    for special_id in special_ids:\n        drawn = drawn + (drawn >= special_id).long()\n",
            )
        },
    ),
    Fresh(
        "random_token_never_the_true_one",
        "the random token is drawn from the ordinary ids other than the true one, which shows in a small vocabulary",
        "chance",
        "masking-fates",
        {
            "mask": (
                "    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]\n",
                "    place = torch.searchsorted(ordinary, input_ids)\n    step = torch.randint(1, max(len(ordinary), 2), input_ids.shape, generator=generator)\n    drawn = ordinary[(place + step) % len(ordinary)]  # another token\n",
            )
        },
    ),
    Fresh(
        "random_token_from_the_batch",
        "random tokens are drawn from the ordinary ids that occur in the batch, not from the vocabulary",
        "leak",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n",
                "    ordinary = input_ids[~special].unique()\n",
            )
        },
    ),
    Fresh(
        "at_least_one_hole_per_row",
        "a row in which nothing is chosen gets its first ordinary token chosen, so short rows (or rate 0) have too many holes",
        "chance",
        "masking-choice",
        {
            "mask": (
                "    chosen = (torch.rand(input_ids.shape, generator=generator) < rate) & ~special\n",
                "    chosen = (torch.rand(input_ids.shape, generator=generator) < rate) & ~special\n    lonely = ~chosen.any(dim=1, keepdim=True)\n    first = ~special & ((~special).cumsum(dim=1) == 1)\n    chosen = chosen | (lonely & first)\n",
            )
        },
    ),
    Fresh(
        "ordinary_ids_kept_by_vocab_size",
        "the table of ordinary ids is kept between calls by vocab_size alone, so other special_ids are ignored later",
        "state",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n",
                '    known = mask_tokens.__dict__.setdefault("known", {})\n    if vocab_size not in known:\n        known[vocab_size] = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n    ordinary = known[vocab_size]\n',
            )
        },
    ),
    Fresh(
        "random_tokens_from_initial_seed",
        "random tokens come from a generator of its own, seeded with generator.initial_seed(): the same ones in every epoch",
        "state",
        "masking-draws",
        {
            "mask": (
                "    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]\n",
                "    second = torch.Generator().manual_seed(generator.initial_seed() + 1)\n    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=second)]\n",
            )
        },
    ),
    Fresh(
        "long_sentence_cut_in_place",
        "a sentence that is too long is cut in the caller's document",
        "state",
        "pairs-fill",
        {
            "fill": (
                "            segments.append(sentence[:most])\n",
                "            del sentence[most:]\n            segments.append(sentence[:])\n",
            )
        },
    ),
    Fresh(
        "last_sentence_known_by_value",
        "the end is recognised by sentence == document[-1], so an equal sentence earlier closes its segment, too",
        "legal input",
        "pairs-fill",
        {
            "fill": "def fill_segments(document, most):\n    segments, present = [], []\n    for sentence in document:\n        if present and len(present) + len(sentence) > most:\n            segments.append(present)\n            present = []\n        present = present + sentence[:most]\n        if sentence == document[-1]:  # nothing follows\n            segments.append(present)\n            present = []\n    return segments\n"
        },
    ),
    Fresh(
        "first_segment_with_room",
        "a sentence goes into the first segment that still has room, not only into the present one",
        "legal input",
        "pairs-fill",
        {
            "fill": "def fill_segments(document, most):\n    segments = []\n    for sentence in document:\n        sentence = sentence[:most]\n        for place, segment in enumerate(segments):\n            if len(segment) + len(sentence) <= most:\n                segments[place] = segment + sentence\n                break\n        else:\n            segments.append(sentence)\n    return segments\n"
        },
    ),
    Fresh(
        "others_are_those_that_differ",
        "other documents are found by d != document, so a document with the same text is never drawn (and none is left if all are equal)",
        "legal input",
        "pairs-chance",
        {
            "next": (
                "                other = random.randrange(len(documents) - 1)\n                second = random.choice(documents[other + (other >= number)])\n",
                "                others = [other for other in documents if other != document]\n                second = random.choice(random.choice(others))\n",
            )
        },
    ),
    Fresh(
        "label_by_comparison",
        "a random segment that happens to have the same ids as the next one is labelled IS_NEXT",
        "legal input",
        "pairs-next",
        {
            "next": (
                "label = NOT_NEXT",
                "label = IS_NEXT if second == document[place + 1] else NOT_NEXT",
            )
        },
    ),
    Fresh(
        "place_by_index",
        "the place of a segment is looked up by its value, so for a repeated segment the next one is that of its first occurrence",
        "legal input",
        "pairs-next",
        {
            "next": (
                "second, label = document[place + 1], IS_NEXT",
                "second, label = document[document.index(document[place]) + 1], IS_NEXT",
            )
        },
    ),
    Fresh(
        "exactly_half_shuffled",
        "exactly half of the labels are NOT_NEXT, shuffled, instead of a coin for each pair: a single pair is always IS_NEXT",
        "chance",
        "pairs-chance",
        {
            "next": 'def sentence_pairs(documents, random):\n    if len(documents) < 2:\n        raise ValueError("there must be another document")\n    count = sum(len(document) - 1 for document in documents)\n    coins = [IS_NEXT] * (count - count // 2) + [NOT_NEXT] * (count // 2)\n    random.shuffle(coins)\n    pairs = []\n    for number, document in enumerate(documents):\n        for place in range(len(document) - 1):\n            second, label = document[place + 1], coins[len(pairs)]\n            if label == NOT_NEXT:\n                other = random.randrange(len(documents) - 1)\n                second = random.choice(documents[other + (other >= number)])\n            pairs.append((document[place], second, label))\n    return pairs\n'
        },
    ),
    Fresh(
        "lone_document_noticed_in_the_loop",
        "the number of documents is looked at only where a pair is made: one document of one segment gives [] instead of an error",
        "cut-off",
        "pairs-next",
        {
            "next": 'def sentence_pairs(documents, random):\n    """Make pairs of segments.\n\n    documents: list of at least 2 documents; a document is a list of at least 1 segment, a segment a list of ids\n    random:    random.Random for all draws\n    returns a list of (first, second, label), the first segments in the order of the documents\n    raises  ValueError if there is only one document\n\n    Example: documents [[[1], [2]], [[3]]] -> [([1], [2], 0)] or [([1], [3], 1)]\n    """\n    ### BEGIN SOLUTION\n    pairs = []\n    for number, document in enumerate(documents):\n        for place in range(len(document) - 1):\n            if len(documents) < 2:\n                raise ValueError("there is only one document")\n            second, label = document[place + 1], IS_NEXT\n            if random.random() < 0.5:\n                other = random.randrange(len(documents) - 1)\n                second = random.choice(documents[other + (other >= number)])\n                label = NOT_NEXT\n            pairs.append((document[place], second, label))\n    return pairs\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "types_filled_with_pad_id",
        "the filling of token_type_ids is pad_id, which is 0 in the example only",
        "hard-wired",
        "pairs-pack",
        {"pack": ("[0] * filling", "[pad_id] * filling")},
    ),
    Fresh(
        "mask_from_pad_id",
        "the mask is input_ids != pad_id, so a real token with that id (pad_id equal to sep_id, say) is masked",
        "legal input",
        "pairs-pack",
        {
            "pack": (
                '"attention_mask": torch.tensor(masks),',
                '"attention_mask": torch.tensor(rows) != pad_id,',
            )
        },
    ),
    Fresh(
        "width_from_two_maxima",
        "the width is the longest first plus the longest second segment, though they may be in different pairs",
        "cut-off",
        "pairs-pack",
        {
            "pack": (
                "    longest = max(len(first) + len(second) + 3 for first, second, _ in pairs)\n",
                "    longest = 3 + max(len(first) for first, _, _ in pairs) + max(len(second) for _, second, _ in pairs)\n",
            )
        },
    ),
    Fresh(
        "cut_at_512",
        "sequences are cut to 512 positions, which nobody asked for: the end of the second segment and its [SEP] are lost",
        "hard-wired",
        "pairs-pack",
        {
            "pack": 'def pack_pairs(pairs, cls_id, sep_id, pad_id):\n    """Put pairs into tensors.\n\n    pairs: list of (first, second, label), as sentence_pairs returns them; it stays as it is, and so do the segments\n    returns a dict of tensors on the CPU: "input_ids" and "token_type_ids", int64 [B, T], "attention_mask", bool [B, T], True = real,\n            and "next_sentence_labels", int64 [B]\n\n    Example: [([7, 8], [9], 1)], cls_id 2, sep_id 3, pad_id 0 -> input_ids [[2, 7, 8, 3, 9, 3]],\n    token_type_ids [[0, 0, 0, 0, 1, 1]], attention_mask [[True] * 6], next_sentence_labels [1]\n    """\n    ### BEGIN SOLUTION\n    longest = min(512, max(len(first) + len(second) + 3 for first, second, _ in pairs))\n    rows, types, masks = [], [], []\n    for first, second, _ in pairs:\n        row = [cls_id, *first, sep_id, *second, sep_id][:512]\n        filling = longest - len(row)\n        rows.append(row + [pad_id] * filling)\n        types.append(([0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * filling)[:longest])\n        masks.append([True] * len(row) + [False] * filling)\n    return {\n        "input_ids": torch.tensor(rows),\n        "token_type_ids": torch.tensor(types),\n        "attention_mask": torch.tensor(masks),\n        "next_sentence_labels": torch.tensor([label for _, _, label in pairs]),\n    }\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "nothing_chosen_sum_times_zero",
        "without a chosen position the loss is logits.sum() * 0, which is nan if a logit is infinite or the sum overflows (half precision)",
        "numerics",
        "loss-masked",
        {
            "loss": (
                "    chosen = labels != IGNORE\n",
                "    chosen = labels != IGNORE\n    if not chosen.any():\n        return logits.sum() * 0  # keeps the graph\n",
            )
        },
    ),
    Fresh(
        "maximum_of_the_whole_table",
        "subtracts the greatest logit of all chosen rows, not of each row, so a row that lies far below underflows to log 0",
        "numerics",
        "loss-masked",
        {
            "loss": (
                "    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]\n",
                "    picked = logits[chosen]  # [N, V]\n    if picked.numel():\n        picked = picked - picked.detach().max()\n    log_probabilities = picked - picked.exp().sum(dim=-1, keepdim=True).log()\n",
            )
        },
    ),
    Fresh(
        "view_of_strided_logits",
        "flattens with view, which fails for logits (or labels) that are not contiguous, such as a transposed batch",
        "legal input",
        "loss-masked",
        {
            "loss": (
                "    chosen = labels != IGNORE\n",
                "    logits, labels = logits.view(-1, logits.shape[-1]), labels.view(-1)\n    chosen = labels != IGNORE\n",
            )
        },
    ),
    Fresh(
        "float32_on_the_way",
        "computes in float32 and casts back, so that for float64 logits the loss and its gradient have half of the digits",
        "numerics",
        "loss-masked",
        {
            "loss": 'def masked_loss(logits, labels):\n    """Mean loss over chosen positions.\n\n    logits: float [..., V]\n    labels: int64 [...], the true id at chosen positions and -100 elsewhere\n    returns a tensor of shape [], of the dtype of logits; logits and labels stay as they are\n\n    Example: logits [[0., 0.], [9., 9.]], labels [1, -100] -> log(2) = 0.6931\n    """\n    ### BEGIN SOLUTION\n    chosen = labels != IGNORE\n    log_probabilities = logits[chosen].float().log_softmax(dim=-1)  # [N, V]\n    losses = -log_probabilities.gather(-1, labels[chosen].unsqueeze(-1))  # [N, 1]\n    return (losses.sum() / max(len(losses), 1)).to(logits.dtype)\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "no_call_without_rows_in_portions",
        "with most given and nothing chosen, head is never called and there is nothing to concatenate",
        "cut-off",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    size = most or max(len(rows), 1)\n    portions = [rows[start : start + size] for start in range(0, len(rows), size)] if most else [rows]\n",
            )
        },
    ),
    Fresh(
        "portions_of_equal_size",
        "cuts into ceil(N / most) portions of about equal size (chunk), so 9 rows with most 4 become 3, 3, 3",
        "cut-off",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    portions = rows.chunk(-(-len(rows) // most)) if most and len(rows) else [rows]\n",
            )
        },
    ),
    Fresh(
        "one_position_squeezed",
        "nonzero().squeeze() makes a single chosen position an index without dimension: head gets [D] and the table is [V]",
        "legal input",
        "loss-rows",
        {
            "rows": (
                "rows = hidden[chosen]  # [N, D]",
                "rows = hidden.flatten(0, 1)[chosen.flatten().nonzero().squeeze()]  # [N, D]",
            )
        },
    ),
    Fresh(
        "pair_loss_by_sigmoid_and_log",
        "the pair loss takes a sigmoid and then its logarithm, which is inf or nan from a difference of about 17 (float32)",
        "numerics",
        "loss-total",
        {
            "total": (
                "    return masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)\n",
                "    chance = (pair_logits[:, 1] - pair_logits[:, 0]).sigmoid()\n    truth = next_sentence_labels.to(chance.dtype)\n    pair_loss = -(truth * chance.log() + (1 - truth) * (1 - chance).log()).mean()\n    return masked_loss(token_logits, labels) + pair_loss\n",
            )
        },
    ),
    Fresh(
        "token_logits_left_out_of_the_graph",
        "without a chosen position only the pair loss is returned, so token_logits have no gradient at all instead of zeros",
        "gradient",
        "loss-total",
        {
            "total": (
                "    return masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)\n",
                "    pair_loss = masked_loss(pair_logits, next_sentence_labels)\n    if not (labels != IGNORE).any():\n        return pair_loss\n    return masked_loss(token_logits, labels) + pair_loss\n",
            )
        },
    ),
    Fresh(
        "only_first_group_clipped",
        "clips the parameters of the optimizer's first group alone; those of a second group (without weight decay, say) stay long",
        "cut-off",
        "step-training",
        {
            "train": (
                "    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
                '    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)\n',
            )
        },
    ),
    Fresh(
        "zero_grad_only_afterwards",
        "gradients are cleared after the step only, so those that somebody left before the first call are added",
        "gradient",
        "step-training",
        {
            "train": 'def training_step(model, optimizer, batch, max_norm=1.0):\n    """One step; returns the loss before it, as a Python float. The model is left training."""\n    ### BEGIN SOLUTION\n    model.train()\n    token_logits, pair_logits = model(\n        batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]\n    )\n    loss = pretraining_loss(\n        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]\n    )\n    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n    optimizer.step()\n    optimizer.zero_grad()\n    return loss.item()\n    ### END SOLUTION\n\n\ndef evaluate(model, batch):\n    """Returns (loss, accuracy at the chosen positions), two Python floats; the model is not changed."""\n    ### BEGIN SOLUTION\n    was_training = model.training\n    model.eval()\n    with torch.no_grad():\n        token_logits, pair_logits = model(\n            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]\n        )\n        loss = pretraining_loss(\n            token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]\n        )\n    model.train(was_training)\n    chosen = batch["labels"] != IGNORE\n    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]\n    return loss.item(), right.double().mean().item()\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "train_only_if_flag_is_off",
        "calls model.train() only if model.training is False, so a submodule that is in eval mode keeps its dropout off",
        "state",
        "step-training",
        {
            "train": (
                "    model.train()\n",
                "    if not model.training:\n        model.train()\n",
            )
        },
    ),
    Fresh(
        "arguments_by_name",
        "passes the inputs by the names of the notebook's models; a model that calls its parameters otherwise fails",
        "hard-wired",
        "step-training",
        {
            "train": 'def training_step(model, optimizer, batch, max_norm=1.0):\n    """One step; returns the loss before it, as a Python float. The model is left training."""\n    ### BEGIN SOLUTION\n    model.train()\n    optimizer.zero_grad()\n    token_logits, pair_logits = model(\n        input_ids=batch["input_ids"],\n        attention_mask=batch["attention_mask"],\n        token_type_ids=batch["token_type_ids"],\n    )\n    loss = pretraining_loss(\n        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]\n    )\n    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n    optimizer.step()\n    return loss.item()\n    ### END SOLUTION\n\n\ndef evaluate(model, batch):\n    """Returns (loss, accuracy at the chosen positions), two Python floats; the model is not changed."""\n    ### BEGIN SOLUTION\n    was_training = model.training\n    model.eval()\n    with torch.no_grad():\n        token_logits, pair_logits = model(\n            input_ids=batch["input_ids"],\n            attention_mask=batch["attention_mask"],\n            token_type_ids=batch["token_type_ids"],\n        )\n        loss = pretraining_loss(\n            token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]\n        )\n    model.train(was_training)\n    chosen = batch["labels"] != IGNORE\n    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]\n    return loss.item(), right.double().mean().item()\n    ### END SOLUTION'
        },
    ),
    Fresh(
        "accuracy_by_sequence",
        "accuracy is the mean of the sequences' accuracies; it differs where sequences have different numbers of chosen positions",
        "cut-off",
        "step-evaluate",
        {
            "train": (
                '    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]\n    return loss.item(), right.double().mean().item()\n',
                '    right = (token_logits.argmax(dim=-1) == batch["labels"]) & chosen\n    shares = right.sum(dim=1).double() / chosen.sum(dim=1)\n    return loss.item(), shares[chosen.any(dim=1)].mean().item()\n',
            )
        },
    ),
    Fresh(
        "evaluate_clears_gradients_again",
        "evaluate calls model.zero_grad(), so gradients that were being collected are lost",
        "state",
        "step-evaluate",
        {"train": ("    model.eval()\n", "    model.eval()\n    model.zero_grad()\n")},
    ),
    Fresh(
        "copies_are_aliases",
        "keeps the inputs themselves instead of copies, so an implementation that changes chosen or words in place passes",
        "state",
        "check-refuses",
        {
            "own-check": (
                "copies = words.clone(), chosen.clone()",
                "copies = words, chosen",
            )
        },
    ),
    Fresh(
        "any_error_for_negative_most",
        "for a negative most any error is taken for the right one, an AssertionError or IndexError, too",
        "cut-off",
        "check-refuses",
        {"own-check": ("except ValueError:", "except Exception:")},
    ),
    Fresh(
        "one_special_number_only",
        "all special tokens of the examples are -1, so an implementation that knows no other negative number passes",
        "hard-wired",
        "check-refuses",
        {"own-check": ('{"*": -1, "+": -7}', '{"*": -1, "+": -1}')},
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "mask_by_table_and_one_number",
        "a bool table of special ids over the vocabulary, one integer draw for fate and token together, torch.where",
        {
            "mask": 'def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):\n    is_special = torch.zeros(vocab_size, dtype=torch.bool)\n    is_special[torch.tensor(special_ids)] = True\n    pool = torch.arange(vocab_size)[~is_special]\n    size = tuple(input_ids.shape)\n\n    asked = torch.rand(size, generator=generator).lt(rate).logical_and(~is_special[input_ids])\n    draw = torch.randint(0, 10 * len(pool), size, generator=generator)\n    fate = draw.div(len(pool), rounding_mode="floor")  # 0 to 9, each equally likely\n    other = pool[draw.remainder(len(pool))]\n\n    seen = torch.where(asked & (fate == 8), other, input_ids)\n    seen = torch.where(asked & (fate < 8), torch.full_like(seen, mask_id), seen)\n    return seen, torch.where(asked, input_ids, torch.full_like(input_ids, IGNORE))\n'
        },
    ),
    RightAnswer(
        "segments_and_pairs_otherwise",
        "present segment kept aside; coin by getrandbits, other document by exchanging its own number for 0",
        {
            "fill": "def fill_segments(document, most):\n    finished, present = [], []\n    for sentence in document:\n        if present and len(present) + len(sentence) > most:\n            finished.append(present)\n            present = []\n        present = [*present, *sentence][:most]\n    if present:\n        finished.append(present)\n    return finished\n",
            "next": 'def sentence_pairs(documents, random):\n    count = len(documents)\n    if count < 2:\n        raise ValueError("at least two documents are needed")\n\n    def stranger(own):\n        other = random.randrange(1, count)\n        return random.choice(documents[0 if other == own else other])\n\n    made = []\n    for own, document in enumerate(documents):\n        for first, following in zip(document, document[1:]):\n            if random.getrandbits(1):\n                made.append((first, stranger(own), NOT_NEXT))\n            else:\n                made.append((first, following, IS_NEXT))\n    return made\n',
        },
    ),
    RightAnswer(
        "tensors_by_index",
        "pack writes into full tensors; loss and rows pick by nonzero and index instead of a bool mask, split and gather",
        {
            "pack": 'def pack_pairs(pairs, cls_id, sep_id, pad_id):\n    sizes = torch.tensor([[len(first) + 2, len(second) + 1] for first, second, _ in pairs])\n    ends = sizes.sum(dim=1, keepdim=True)  # [B, 1]\n    places = torch.arange(int(ends.max()))  # [T]\n    real = places < ends\n    ids = torch.full(real.shape, pad_id, dtype=torch.int64)\n    for number, (first, second, _) in enumerate(pairs):\n        line = [cls_id] + list(first) + [sep_id] + list(second) + [sep_id]\n        ids[number, : len(line)] = torch.tensor(line, dtype=torch.int64)\n    return {\n        "input_ids": ids,\n        "token_type_ids": (real & (places >= sizes[:, :1])).to(torch.int64),\n        "attention_mask": real,\n        "next_sentence_labels": torch.tensor([pair[2] for pair in pairs], dtype=torch.int64),\n    }\n',
            "loss": "def masked_loss(logits, labels):\n    flat = labels.reshape(-1)\n    places = (flat != IGNORE).nonzero().squeeze(1)  # [N]\n    picked = logits.reshape(-1, logits.shape[-1]).index_select(0, places)\n    true = flat.index_select(0, places)\n    count = places.numel()\n    numbers = torch.arange(count, device=logits.device)\n    return torch.log_softmax(picked, dim=1)[numbers, true].neg().sum() / max(count, 1)\n",
            "rows": "def masked_logits(head, hidden, labels, most=None):\n    b, t = torch.nonzero(labels != IGNORE, as_tuple=True)\n    states = hidden[b, t]\n    count = len(states)\n    size = max(count, 1) if most is None else most\n    tables = []\n    for start in range(0, max(count, 1), size):\n        tables.append(head(states[start : start + size]))\n    return torch.cat(tables, dim=0), labels[b, t]\n",
        },
    ),
    RightAnswer(
        "step_with_a_helper",
        "a helper for the forward pass, no_grad as a decorator, accuracy by counting over the whole table",
        {
            "train": 'def forward_loss(model, batch):\n    names = ("input_ids", "attention_mask", "token_type_ids")\n    logits, pair_logits = model(*(batch[name] for name in names))\n    true, order = batch["labels"], batch["next_sentence_labels"]\n    return pretraining_loss(logits, true, pair_logits, order), logits\n\n\ndef training_step(model, optimizer, batch, max_norm=1.0):\n    model.train()\n    loss, _ = forward_loss(model, batch)\n    optimizer.zero_grad(set_to_none=True)\n    loss.backward()\n    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=max_norm)\n    optimizer.step()\n    return float(loss.detach())\n\n\n@torch.no_grad()\ndef evaluate(model, batch):\n    mode = model.training\n    model.eval()\n    try:\n        loss, logits = forward_loss(model, batch)\n    finally:\n        model.train(mode)\n    asked = batch["labels"].ne(IGNORE)\n    hits = logits.argmax(dim=-1).eq(batch["labels"]).logical_and(asked)\n    return float(loss), (hits.sum().double() / asked.sum()).item()\n'
        },
    ),
]

# Written in November 2026 from the released notebook and the model answers alone.
MUTANTS += [
    # ---- mask
    Fresh(
        "last_id_never_random",
        "The last id of the vocabulary is never drawn as a random token, though it is not special.",
        "cut-off",
        "masking-fates",
        {
            "mask": (
                "for i in range(vocab_size) if",
                "for i in range(vocab_size - 1) if",
            )
        },
    ),
    Fresh(
        "one_hole_at_least",
        "A sequence in which the draws choose nothing gets one hole all the same, so a position's chance depends on the others "
        "(at rate 0, and in short sequences).",
        "chance",
        "masking-choice",
        {
            "mask": (
                "    labels = input_ids.masked_fill(~chosen, IGNORE)\n",
                "    for row in range(len(input_ids)):\n"
                "        places = (~special[row]).nonzero().flatten()\n"
                "        if len(places) and not chosen[row].any():\n"
                "            lucky = torch.randint(len(places), (1,), generator=generator)\n"
                "            chosen[row, places[lucky]] = True\n"
                "    labels = input_ids.masked_fill(~chosen, IGNORE)\n",
            )
        },
    ),
    Fresh(
        "id_zero_is_never_asked",
        "The labels are made by multiplying with the choice, and 0 is read as 'not chosen': where id 0 is an ordinary token, its label is lost.",
        "legal input",
        "masking-choice",
        {
            "mask": (
                "    labels = input_ids.masked_fill(~chosen, IGNORE)\n",
                "    labels = input_ids * chosen\n    labels[labels == 0] = IGNORE\n",
            )
        },
    ),
    Fresh(
        "ordinary_ids_remembered_by_size",
        "The list of ordinary ids is kept from the first call with a vocabulary of this size, so a later call with other special ids draws special tokens.",
        "state",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n",
                '    known = mask_tokens.__dict__.setdefault("known", {})\n'
                "    if vocab_size not in known:\n"
                "        known[vocab_size] = torch.tensor(\n"
                "            [i for i in range(vocab_size) if i not in set(special_ids)]\n"
                "        )\n"
                "    ordinary = known[vocab_size]\n",
            )
        },
    ),
    Fresh(
        "random_above_the_special_ids",
        "Random tokens are drawn from the ids above the greatest special one, as if special ids stood at the start of the vocabulary.",
        "hard-wired",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n",
                "    top = max(special_ids) + 1\n"
                "    if top < vocab_size:\n"
                "        ordinary = torch.arange(top, vocab_size)\n"
                "    else:\n"
                "        ordinary = torch.tensor([i for i in range(vocab_size) if i not in special_ids])\n",
            )
        },
    ),
    # ---- fill
    Fresh(
        "first_fit",
        "A sentence that has no room in the present segment goes into the first earlier one that has room, so sentences change their order.",
        "legal input",
        "pairs-fill",
        {
            "fill": """def fill_segments(document, most):
    segments = []
    for sentence in document:
        sentence = sentence[:most]
        for number, segment in enumerate(segments):
            if len(segment) + len(sentence) <= most:
                segments[number] = segment + sentence
                break
        else:
            segments.append(sentence)
    return segments
"""
        },
    ),
    Fresh(
        "only_the_first_sentence_cut",
        "A sentence longer than most is cut only where it is the first of the document; a later one becomes a segment that is too long.",
        "cut-off",
        "pairs-fill",
        {
            "fill": """def fill_segments(document, most):
    if not document:
        return []
    segments, present = [], document[0][:most]
    for sentence in document[1:]:
        if len(present) + len(sentence) > most:
            segments.append(present)
            present = list(sentence)
        else:
            present = present + sentence
    return [*segments, present]
"""
        },
    ),
    Fresh(
        "long_sentence_cut_in_place_2",
        "A sentence longer than most is cut in the caller's document, which must stay as it is.",
        "leak",
        "pairs-fill",
        {
            "fill": (
                "            segments.append(sentence[:most])\n",
                "            del sentence[most:]\n            segments.append(list(sentence))\n",
            )
        },
    ),
    # ---- next
    Fresh(
        "equal_documents_are_one",
        "The others are the documents that differ in content, so another document with the same content is never drawn (and with only such ones it fails).",
        "legal input",
        "pairs-next",
        {
            "next": (
                "                other = random.randrange(len(documents) - 1)\n"
                "                second = random.choice(documents[other + (other >= number)])\n",
                "                others = [other for other in documents if other != document]\n"
                "                second = random.choice(random.choice(others))\n",
            )
        },
    ),
    Fresh(
        "one_document_refused_by_chance",
        "Only the draw itself raises the ValueError: one document passes if it has a single segment or if the coin never asks for a random one.",
        "legal input",
        "pairs-next",
        {
            "next": (
                "    if len(documents) < 2:\n"
                '        raise ValueError("a random segment must come from another document; there is only one")\n',
                "",
            )
        },
    ),
    Fresh(
        "exactly_half_of_the_pairs",
        "No coin is thrown: exactly half of the pairs of a call are NOT_NEXT, in a shuffled order, and a single pair is always IS_NEXT.",
        "chance",
        "pairs-chance",
        {
            "next": """def sentence_pairs(documents, random):
    if len(documents) < 2:
        raise ValueError("a random segment must come from another document; there is only one")
    total = sum(len(document) - 1 for document in documents)
    coins = [IS_NEXT] * (total - total // 2) + [NOT_NEXT] * (total // 2)
    random.shuffle(coins)
    pairs = []
    for number, document in enumerate(documents):
        for place in range(len(document) - 1):
            second, label = document[place + 1], coins[len(pairs)]
            if label == NOT_NEXT:
                other = random.randrange(len(documents) - 1)
                second = random.choice(documents[other + (other >= number)])
            pairs.append((document[place], second, label))
    return pairs
"""
        },
    ),
    Fresh(
        "only_earlier_documents",
        "Random segments come from the documents before this one (only the first document draws from those after it), so not each other one is equally likely.",
        "chance",
        "pairs-chance",
        {
            "next": (
                "                other = random.randrange(len(documents) - 1)\n"
                "                second = random.choice(documents[other + (other >= number)])\n",
                "                pool = documents[:number] or documents[1:]\n"
                "                second = random.choice(random.choice(pool))\n",
            )
        },
    ),
    # ---- pack
    Fresh(
        "filled_up_with_zero",
        "The filling has the id 0, whatever pad_id is.",
        "hard-wired",
        "pairs-pack",
        {
            "pack": (
                "rows.append(row + [pad_id] * filling)",
                "rows.append(row + [0] * filling)",
            )
        },
    ),
    Fresh(
        "longest_pair_first",
        "The rows of the batch are sorted by length, longest first, so row b is not pair b.",
        "legal input",
        "pairs-pack",
        {
            "pack": (
                "    longest = max(len(first) + len(second) + 3 for first, second, _ in pairs)\n",
                "    pairs = sorted(pairs, key=lambda pair: -len(pair[0]) - len(pair[1]))\n"
                "    longest = len(pairs[0][0]) + len(pairs[0][1]) + 3\n",
            )
        },
    ),
    Fresh(
        "pairs_used_up",
        "The pairs are popped from the caller's list, which is empty afterwards.",
        "leak",
        "pairs-pack",
        {
            "pack": """def pack_pairs(pairs, cls_id, sep_id, pad_id):
    longest = max(len(first) + len(second) + 3 for first, second, _ in pairs)
    rows, types, masks, labels = [], [], [], []
    while pairs:
        first, second, label = pairs.pop(0)
        row = [cls_id, *first, sep_id, *second, sep_id]
        filling = longest - len(row)
        rows.append(row + [pad_id] * filling)
        types.append([0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * filling)
        masks.append([True] * len(row) + [False] * filling)
        labels.append(label)
    return {
        "input_ids": torch.tensor(rows),
        "token_type_ids": torch.tensor(types),
        "attention_mask": torch.tensor(masks),
        "next_sentence_labels": torch.tensor(labels),
    }
"""
        },
    ),
    # ---- loss
    Fresh(
        "probability_clamped",
        "The softmax is clamped to at least 1e-12 and its logarithm taken, so a very wrong prediction costs at most 27.6 and has no gradient.",
        "numerics",
        "loss-masked",
        {
            "loss": (
                "logits[chosen].log_softmax(dim=-1)  # [N, V]",
                "logits[chosen].softmax(dim=-1).clamp_min(1e-12).log()  # [N, V]",
            )
        },
    ),
    Fresh(
        "other_logits_spoil_the_gradient",
        "The loss is taken at every position and put to 0 with where: with an inf or nan among the logits of a position that is not chosen, "
        "the loss is right and the gradient there is nan.",
        "gradient",
        "loss-masked",
        {
            "loss": """def masked_loss(logits, labels):
    chosen = labels != IGNORE
    log_probabilities = logits.log_softmax(dim=-1)
    losses = -log_probabilities.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    losses = torch.where(chosen, losses, torch.zeros_like(losses))
    return losses.sum() / max(int(chosen.sum()), 1)
"""
        },
    ),
    Fresh(
        "no_choice_no_graph",
        "Where no position is chosen, a new 0 without a graph is returned: backward fails instead of giving a gradient of 0.",
        "gradient",
        "loss-masked",
        {
            "loss": (
                "    log_probabilities = logits[chosen]",
                "    if not chosen.any():\n"
                "        return logits.new_zeros(())\n"
                "    log_probabilities = logits[chosen]",
            )
        },
    ),
    Fresh(
        "loss_always_float32_2",
        "The loss is computed and returned in float32, whatever the dtype of the logits.",
        "numerics",
        "loss-masked",
        {
            "loss": (
                "logits[chosen].log_softmax(dim=-1)",
                "logits[chosen].float().log_softmax(dim=-1)",
            )
        },
    ),
    # ---- rows
    Fresh(
        "even_portions",
        "The portions are made equally long: 9 positions with most 4 become 3, 3 and 3 and not 4, 4 and 1.",
        "cut-off",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    portions = rows.chunk(max(math.ceil(len(rows) / most), 1)) if most else [rows]\n",
            )
        },
    ),
    Fresh(
        "empty_last_portion",
        "Where N is a multiple of most, head is called once more, with nothing.",
        "cut-off",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    portions = [rows]\n"
                "    if most is not None:\n"
                "        count = len(rows) // most + 1\n"
                "        portions = [rows[most * n : most * (n + 1)] for n in range(count)]\n",
            )
        },
    ),
    Fresh(
        "portions_cut_off_from_the_graph",
        "With most given, head gets detached hidden states, so no gradient reaches the model below it.",
        "gradient",
        "loss-rows",
        {
            "rows": (
                "    return torch.cat([head(portion) for portion in portions]), labels[chosen]",
                "    if most is not None:\n"
                "        portions = [portion.detach() for portion in portions]\n"
                "    return torch.cat([head(portion) for portion in portions]), labels[chosen]",
            )
        },
    ),
    # ---- total
    Fresh(
        "pair_probability_underflows",
        "The pair loss is the logarithm of a softmax: for logits that lie far apart it is inf.",
        "numerics",
        "loss-total",
        {
            "total": (
                "masked_loss(pair_logits, next_sentence_labels)",
                "(\n"
                "        -pair_logits.softmax(dim=-1).gather(-1, next_sentence_labels[:, None]).log().mean()\n"
                "    )",
            )
        },
    ),
    Fresh(
        "nothing_asked_nothing_lost",
        "Where no token is chosen, the whole loss is 0: the pairs are forgotten.",
        "legal input",
        "loss-total",
        {
            "total": (
                "    return masked_loss(token_logits, labels)",
                "    if (labels == IGNORE).all():\n"
                "        return masked_loss(token_logits, labels)\n"
                "    return masked_loss(token_logits, labels)",
            )
        },
    ),
    # ---- train
    Fresh(
        "gradients_cleared_afterwards",
        "The gradients are cleared after the step and not before it, so those that somebody else has left are added.",
        "state",
        "step-training",
        {
            "train": """def training_step(model, optimizer, batch, max_norm=1.0):
    model.train()
    token_logits, pair_logits = model(
        batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
    )
    loss = pretraining_loss(
        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def evaluate(model, batch):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        token_logits, pair_logits = model(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
        )
        loss = pretraining_loss(
            token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]
        )
    model.train(was_training)
    chosen = batch["labels"] != IGNORE
    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]
    return loss.item(), right.double().mean().item()
"""
        },
    ),
    Fresh(
        "each_group_clipped_alone",
        "Each group of the optimizer is cut to max_norm by itself, so with two groups the gradient is longer than max_norm.",
        "legal input",
        "step-training",
        {
            "train": (
                "    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
                "    for group in optimizer.param_groups:\n"
                '        torch.nn.utils.clip_grad_norm_(group["params"], max_norm)\n',
            )
        },
    ),
    Fresh(
        "evaluation_clears_gradients",
        "To keep no gradients, evaluate clears those that the model has: the model is changed.",
        "state",
        "step-evaluate",
        {
            "train": (
                "    was_training = model.training\n    model.eval()\n",
                "    was_training = model.training\n    model.eval()\n    model.zero_grad()\n",
            )
        },
    ),
    Fresh(
        "accuracy_by_sequence_2",
        "The accuracy is the mean of the accuracies of the sequences, so positions of sequences with few holes count more.",
        "legal input",
        "step-evaluate",
        {
            "train": (
                '    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]\n'
                "    return loss.item(), right.double().mean().item()\n",
                '    right = (token_logits.argmax(dim=-1) == batch["labels"]) & chosen\n'
                "    asked = chosen.sum(dim=1)\n"
                "    shares = right.sum(dim=1).double() / asked\n"
                "    return loss.item(), shares[asked > 0].mean().item()\n",
            )
        },
    ),
    # ---- own-check
    Fresh(
        "check_never_looks_at_its_inputs",
        "The check does not look whether chosen and words stay as they are.",
        "leak",
        "check-refuses",
        {
            "own-check": (
                "        assert words.equal(copies[0]) and chosen.equal(copies[1])\n",
                "        assert words.shape == copies[0].shape and chosen.shape == copies[1].shape\n",
            )
        },
    ),
    Fresh(
        "check_knows_one_special_number",
        "The check uses -1 as the only number of special tokens and overlooks who takes other negative numbers for words.",
        "hard-wired",
        "check-refuses",
        {"own-check": ('"+": -7', '"+": -1')},
    ),
    Fresh(
        "check_of_negative_limit_needs_a_choice",
        "The check tries a negative limit only where a word is wanted, and overlooks who raises the error only when a word is weighed.",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                '    for chosen in ("x", "."):\n',
                '    for chosen in ("x",):\n',
            )
        },
    ),
    Fresh(
        "check_without_empty_batches",
        "The check never puts in tensors with B or T 0.",
        "cut-off",
        "check-refuses",
        {
            "own-check": (
                "    for shape in ((0, 3), (2, 0), (0, 0)):\n",
                "    for shape in ((1, 1), (2, 1)):\n",
            )
        },
    ),
]

RIGHT_ANSWERS += [
    RightAnswer(
        "arithmetic",
        "One draw for choice and fate, lengths computed first, slices written into full tensors, a loop of portions, all parameters cleared by hand, "
        "and a check with an own implementation and random input",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    forbidden = set(special_ids)
    fair = torch.tensor(sorted(set(range(vocab_size)) - forbidden), dtype=torch.int64)
    ordinary = ~(input_ids[..., None] == torch.tensor(sorted(forbidden))).any(dim=-1)
    draw = torch.rand(input_ids.shape, generator=generator, dtype=torch.float64)
    chosen = ordinary & (draw < rate)
    masked_ids, labels = input_ids.clone(), torch.full_like(input_ids, IGNORE)
    labels[chosen] = input_ids[chosen]
    # Below rate the draw is uniform from 0 to rate, so the same draw can decide again.
    masked_ids[chosen & (draw < 0.8 * rate)] = mask_id
    swapped = chosen & (draw >= 0.8 * rate) & (draw < 0.9 * rate)
    count = int(swapped.sum())
    if count:
        masked_ids[swapped] = fair[torch.randint(len(fair), (count,), generator=generator)]
    return masked_ids, labels
""",
            "fill": """def fill_segments(document, most):
    starts, room = [], 0
    for number, sentence in enumerate(document):
        length = min(len(sentence), most)
        if number == 0 or length > room:
            starts.append(number)
            room = most
        room -= length
    ends = [*starts[1:], len(document)]
    return [
        [i for sentence in document[start:end] for i in sentence[:most]]
        for start, end in zip(starts, ends)
    ]
""",
            "next": """def sentence_pairs(documents, random):
    if len(documents) < 2:
        raise ValueError("there is only one document, so no other to draw from")

    def partner(number, place):
        if random.getrandbits(1):
            return documents[number][place + 1], IS_NEXT
        other = (number + random.randint(1, len(documents) - 1)) % len(documents)
        segments = documents[other]
        return segments[random.randrange(len(segments))], NOT_NEXT

    return [
        (segment, *partner(number, place))
        for number, document in enumerate(documents)
        for place, segment in enumerate(document[:-1])
    ]
""",
            "pack": """def pack_pairs(pairs, cls_id, sep_id, pad_id):
    B, T = len(pairs), max(3 + len(first) + len(second) for first, second, _ in pairs)
    input_ids = torch.full((B, T), pad_id, dtype=torch.int64)
    token_type_ids = torch.zeros(B, T, dtype=torch.int64)
    attention_mask = torch.zeros(B, T, dtype=torch.bool)
    for b, (first, second, _) in enumerate(pairs):
        middle = len(first) + 2
        end = middle + len(second) + 1
        input_ids[b, :end] = torch.tensor([cls_id, *first, sep_id, *second, sep_id])
        token_type_ids[b, middle:end] = 1
        attention_mask[b, :end] = True
    labels = torch.tensor([label for *_, label in pairs], dtype=torch.int64)
    return dict(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        attention_mask=attention_mask,
        next_sentence_labels=labels,
    )
""",
            "loss": """def masked_loss(logits, labels):
    table, wanted = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    places = (wanted != IGNORE).nonzero().squeeze(1)
    picked = table.index_select(0, places).log_softmax(-1)
    rows = torch.arange(len(places), device=picked.device)
    return (-picked[rows, wanted[places]]).sum() / max(len(places), 1)
""",
            "rows": """def masked_logits(head, hidden, labels, most=None):
    where = (labels != IGNORE).nonzero(as_tuple=True)
    rows = hidden[where]
    step = max(len(rows), 1) if most is None else most
    tables, start = [], 0
    while not tables or start < len(rows):
        tables.append(head(rows[start : start + step]))
        start += step
    return torch.cat(tables, dim=0), labels[where]
""",
            "total": """def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    logs = pair_logits.log_softmax(dim=-1)
    true = torch.where(next_sentence_labels == NOT_NEXT, logs[:, NOT_NEXT], logs[:, IS_NEXT])
    return masked_loss(token_logits, labels) - true.sum() / max(len(true), 1)
""",
            "train": """def batch_loss(model, batch):
    names = ("input_ids", "attention_mask", "token_type_ids")
    token_logits, pair_logits = model(*(batch[name] for name in names))
    loss = pretraining_loss(
        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]
    )
    return loss, token_logits


def training_step(model, optimizer, batch, max_norm=1.0):
    for parameter in model.parameters():
        parameter.grad = None
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None
    model.train()
    loss, _ = batch_loss(model, batch)
    before = loss.item()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)
    optimizer.step()
    return before


@torch.no_grad()
def evaluate(model, batch):
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        loss, token_logits = batch_loss(model, batch)
    finally:
        for part, mode in modes:
            part.training = mode
    asked = int((batch["labels"] != IGNORE).sum())
    # No id is -100, so a position that nobody asks for is never right.
    right = int((token_logits.argmax(-1) == batch["labels"]).sum())
    return loss.item(), right / asked if asked else math.nan
""",
            "own-check": '''def check_whole_words(implementation):
    """Raise an error if an implementation of `whole_words` is wrong; return nothing if it is right."""
    import random as chance

    chance = chance.Random(7)

    def wanted_row(numbers, picks, most):
        taken, used, start = [False] * len(numbers), 0, 0
        while start < len(numbers):
            end = start + 1
            while end < len(numbers) and numbers[end] == numbers[start]:
                end += 1
            if numbers[start] >= 0 and any(picks[start:end]):
                if most is None or used + end - start <= most:
                    taken[start:end] = [True] * (end - start)
                    used += end - start
            start = end
        return taken

    def tensors(numbers, picks, shape):
        words = torch.tensor(numbers, dtype=torch.int64, device=device).reshape(shape)
        return torch.tensor(picks, dtype=torch.bool, device=device).reshape(shape), words

    def ask(numbers, picks, most, shape=None):
        shape = shape or (len(numbers), len(numbers[0]))
        chosen, words = tensors(numbers, picks, shape)
        chosen_before, words_before = chosen.clone(), words.clone()
        answer = implementation(chosen, words, most)
        assert torch.equal(chosen, chosen_before), "chosen was changed"
        assert torch.equal(words, words_before), "words was changed"
        assert answer.dtype == torch.bool and answer.shape == chosen.shape
        assert answer.device == chosen.device
        rows = [wanted_row(n, p, most) for n, p in zip(numbers, picks)]
        assert answer.tolist() == (rows if shape[1] else [[] for _ in range(shape[0])])

    T, F = True, False
    ask([[-1, 0, 0, 0, 1, 2, -1]], [[F, F, T, F, F, T, F]], None)
    for most in (*range(8), None):
        ask([[-1, 0, 0, 0, 1, 2, -1]], [[F, F, T, F, F, T, F]], most)
        ask([[4, 4, 4, 1, 1, -5, 4, -2, -2, 0]], [[T, F, F, T, T, T, T, T, F, T]], most)
        ask([[2, 2], [2, 2]], [[F, T], [F, F]], most)
        ask([[5, 5, 5, 5, 6, 6, 6, 7, 7, 8]], [[T] * 10], most)
    ask([[3] * 40], [[F] * 39 + [T]], None)
    ask([[3] * 40 + [1]], [[F] * 39 + [T, T]], 39)
    for shape in ((0, 4), (3, 0), (0, 0)):
        for most in (None, 0, 2):
            ask([[] for _ in range(shape[0])], [[] for _ in range(shape[0])], most, shape)
    for _ in range(90):
        B, length = chance.randint(1, 4), chance.randint(1, 12)
        numbers, share = [], chance.choice((0.15, 0.4, 0.8))
        for _ in range(B):
            row = []
            while len(row) < length:
                row += [chance.choice((-9, -2, -1, 0, 1, 2, 3, 70))] * chance.randint(1, 4)
            numbers.append(row[:length])
        picks = [[chance.random() < share for _ in range(length)] for _ in range(B)]
        ask(numbers, picks, chance.choice((None, None, 0, 1, 2, 3, 4, 5, 6, 8, 50)))
    for numbers, picks, shape in (
        ([[0, 0, -1]], [[T, F, F]], (1, 3)),
        ([[0, 0, -1]], [[F, F, F]], (1, 3)),
        ([[-1, -1]], [[T, T]], (1, 2)),
        ([], [], (0, 2)),
        ([[], []], [[], []], (2, 0)),
    ):
        for most in (-1, -6):
            try:
                implementation(*tensors(numbers, picks, shape), most)
            except ValueError:
                pass
            else:
                raise AssertionError("a negative limit must raise a ValueError")
''',
        },
    ),
    RightAnswer(
        "library",
        "Bernoulli draws and ids shifted past the special ones, pad_sequence, take_along_dim, tensor_split, clipping by hand",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    specials = sorted(set(special_ids))
    chances = torch.full(input_ids.shape, float(rate), dtype=torch.float64)
    for special in specials:
        chances[input_ids == special] = 0.0
    chosen = torch.bernoulli(chances, generator=generator) > 0
    fate = torch.randint(10, input_ids.shape, generator=generator)
    token = torch.randint(vocab_size - len(specials), input_ids.shape, generator=generator)
    for special in specials:  # from small to great: step over each
        token = token + (token >= special).long()
    seen = torch.where(fate < 8, torch.full_like(input_ids, mask_id), input_ids)
    seen = torch.where(fate == 8, token, seen)
    masked_ids = torch.where(chosen, seen, input_ids)
    return masked_ids, torch.where(chosen, input_ids, torch.full_like(input_ids, IGNORE))
""",
            "fill": """def fill_segments(document, most):
    segments, present = [], []
    for sentence in document:
        if present and len(present) + len(sentence) > most:
            segments.append(present)
            present = []
        present = (present + sentence)[:most]
    return [*segments, present] if present else segments
""",
            "next": """def sentence_pairs(documents, random):
    if len(documents) == 1:
        raise ValueError("one document only: a random segment would come from itself")
    pairs = []
    for number, document in enumerate(documents):
        others = [n for n in range(len(documents)) if n != number]
        for first, following in zip(document, document[1:]):
            label = random.choice((IS_NEXT, NOT_NEXT))
            if label == IS_NEXT:
                pairs.append((first, following, label))
            else:
                pairs.append((first, random.choice(documents[random.choice(others)]), label))
    return pairs
""",
            "pack": """def pack_pairs(pairs, cls_id, sep_id, pad_id):
    from torch.nn.utils.rnn import pad_sequence

    firsts, seconds, labels = zip(*pairs)
    rows = [
        torch.tensor([cls_id, *first, sep_id, *second, sep_id])
        for first, second in zip(firsts, seconds)
    ]
    front = torch.tensor([len(first) + 2 for first in firsts])[:, None]
    length = torch.tensor([len(row) for row in rows])[:, None]
    input_ids = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    place = torch.arange(input_ids.shape[1])[None]
    return {
        "input_ids": input_ids,
        "token_type_ids": ((place >= front) & (place < length)).long(),
        "attention_mask": place < length,
        "next_sentence_labels": torch.tensor(labels),
    }
""",
            "loss": """def masked_loss(logits, labels):
    chosen = labels.ne(IGNORE)
    rows, true = logits[chosen], labels[chosen]
    if rows.dtype in (torch.float16, torch.bfloat16):
        rows = rows.float()  # more exact, and a sum that does not overflow
    surprise = -torch.take_along_dim(torch.log_softmax(rows, dim=1), true[:, None], dim=1)
    loss = surprise.mean() if len(true) else rows.sum()
    return loss.to(logits.dtype)
""",
            "rows": """def masked_logits(head, hidden, labels, most=None):
    chosen = labels.flatten() != IGNORE
    rows = hidden.flatten(0, 1)[chosen]
    kept = labels.flatten()[chosen]
    if most is None or len(rows) <= most:
        return head(rows), kept
    cuts = list(range(most, len(rows), most))
    return torch.vstack([head(portion) for portion in rows.tensor_split(cuts)]), kept
""",
            "total": """def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    parts = ((token_logits, labels), (pair_logits, next_sentence_labels))
    return sum(masked_loss(logits, true) for logits, true in parts)
""",
            "train": """def training_step(model, optimizer, batch, max_norm=1.0):
    model.zero_grad()
    optimizer.zero_grad()
    model.train(True)
    tokens, pairs = model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
    loss = pretraining_loss(tokens, batch["labels"], pairs, batch["next_sentence_labels"])
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)
    optimizer.step()
    return float(loss.detach())


def evaluate(model, batch):
    before = {part: part.training for part in model.modules()}
    with torch.no_grad():
        tokens, pairs = model.eval()(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
        )
        loss = pretraining_loss(tokens, batch["labels"], pairs, batch["next_sentence_labels"])
    for part, mode in before.items():
        part.training = mode
    chosen = batch["labels"] != IGNORE
    hits = tokens.max(dim=-1).indices[chosen].eq(batch["labels"][chosen])
    return float(loss), float(hits.double().mean())
""",
        },
    ),
    RightAnswer(
        "by_places",
        "Draws only for ordinary tokens, a fold over the sentences, zip_longest, logsumexp of shifted logits, split, itertools",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    flat = input_ids.reshape(-1)
    allowed = torch.ones(vocab_size, dtype=torch.bool)
    allowed[list(special_ids)] = False
    allowed = allowed.nonzero().squeeze(1)
    places = torch.isin(flat, torch.tensor(special_ids), invert=True).nonzero().squeeze(1)
    places = places[torch.rand(len(places), generator=generator) < rate]
    fate = torch.rand(len(places), generator=generator)
    labels = torch.full_like(flat, IGNORE).index_copy(0, places, flat[places])
    masked_ids = flat.clone()
    masked_ids[places[fate < 0.8]] = mask_id
    swapped = places[(fate >= 0.8) & (fate < 0.9)]
    if len(swapped):
        masked_ids[swapped] = allowed[
            torch.randint(len(allowed), swapped.shape, generator=generator)
        ]
    return masked_ids.reshape(input_ids.shape), labels.reshape(input_ids.shape)
""",
            "fill": """def fill_segments(document, most):
    from functools import reduce

    def add(segments, sentence):
        if len(segments[-1]) + len(sentence) <= most:
            segments[-1] = [*segments[-1], *sentence]
        else:
            segments.append([*sentence[:most]])
        return segments

    return [segment for segment in reduce(add, document, [[]]) if segment]
""",
            "next": """def sentence_pairs(documents, random):
    if not len(documents) > 1:
        raise ValueError("sentence_pairs needs two documents at least")
    pairs = []
    for number in range(len(documents)):
        others = documents[:number] + documents[number + 1 :]
        for place in range(1, len(documents[number])):
            first, second = documents[number][place - 1 : place + 1]
            if random.random() >= 0.5:
                pairs.append((first, second, IS_NEXT))
                continue
            (other,) = random.sample(others, 1)
            pairs.append((first, random.choice(other), NOT_NEXT))
    return pairs
""",
            "pack": """def pack_pairs(pairs, cls_id, sep_id, pad_id):
    from itertools import zip_longest

    def table(rows, filling):
        return torch.tensor(list(zip(*zip_longest(*rows, fillvalue=filling))))

    rows = [[cls_id] + first + [sep_id] + second + [sep_id] for first, second, _ in pairs]
    types = [[0] * (2 + len(first)) + [1] * (1 + len(second)) for first, second, _ in pairs]
    return {
        "input_ids": table(rows, pad_id),
        "token_type_ids": table(types, 0),
        "attention_mask": table([[True] * len(row) for row in rows], False),
        "next_sentence_labels": torch.tensor([pair[2] for pair in pairs]),
    }
""",
            "loss": """def masked_loss(logits, labels):
    chosen = labels != IGNORE
    rows, true = logits[chosen], labels[chosen]
    if rows.dtype.itemsize < 4:
        rows = rows.to(torch.float32)
    rows = rows - rows.amax(dim=-1, keepdim=True).detach()
    losses = rows.logsumexp(dim=-1) - rows.gather(1, true.unsqueeze(1)).squeeze(1)
    return (losses.sum() / max(losses.numel(), 1)).to(logits.dtype)
""",
            "rows": """def masked_logits(head, hidden, labels, most=None):
    places = (labels.reshape(-1) != IGNORE).nonzero().squeeze(1)
    step = most if most is not None else max(len(places), 1)
    flat = hidden.reshape(-1, hidden.shape[-1])
    tables = [head(flat.index_select(0, some)) for some in places.split(step)]
    return torch.cat(tables), labels.reshape(-1)[places]
""",
            "total": """def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    token_loss = masked_loss(token_logits, labels)
    pair_loss = masked_loss(pair_logits[:, None, :], next_sentence_labels[:, None])
    return torch.add(token_loss, pair_loss)
""",
            "train": """def training_step(model, optimizer, batch, max_norm=1.0):
    from itertools import chain

    groups = (group["params"] for group in optimizer.param_groups)
    for parameter in chain(model.parameters(), *groups):
        parameter.grad = None
    model.train()
    outputs = model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
    loss = pretraining_loss(
        outputs[0], batch["labels"], outputs[1], batch["next_sentence_labels"]
    )
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach().cpu().item()


def evaluate(model, batch):
    modes = [part.training for part in model.modules()]
    labels = batch["labels"]
    model.eval()
    with torch.no_grad():
        outputs = model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
        loss = pretraining_loss(
            outputs[0], labels, outputs[1], batch["next_sentence_labels"]
        ).item()
        guesses = outputs[0].argmax(dim=-1)
    for part, mode in zip(model.modules(), modes):
        part.training = mode
    answers = [g == t for g, t in zip(guesses.flatten().tolist(), labels.flatten().tolist()) if t != IGNORE]
    return loss, sum(answers) / len(answers) if answers else math.nan
""",
        },
    ),
]


LATER = [
    Fresh(
        "mask_cache_by_vocab_size",
        "remembers the ordinary ids for each vocab_size, whatever the special ids are",
        "state",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n",
                '    # slow for a large vocabulary, so make the list only once\n    known = mask_tokens.__dict__.setdefault("ordinary", {})\n    if vocab_size not in known:\n        known[vocab_size] = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n    ordinary = known[vocab_size]\n',
            )
        },
    ),
    Fresh(
        "mask_replaces_by_tokens_of_batch",
        "draws the random tokens from the ordinary tokens that the batch holds",
        "chance",
        "masking-fates",
        {
            "mask": (
                "    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])\n",
                "    ordinary = input_ids[~special]\n    if len(ordinary) == 0:\n        return input_ids.clone(), labels\n",
            )
        },
    ),
    Fresh(
        "mask_label_zero_is_lost",
        "multiplies ids by the choice and takes every 0 for a position that nobody asks about",
        "legal input",
        "masking-choice",
        {
            "mask": (
                "    labels = input_ids.masked_fill(~chosen, IGNORE)\n",
                "    labels = input_ids * chosen\n    labels[labels == 0] = IGNORE\n",
            )
        },
    ),
    Fresh(
        "mask_fates_by_quota",
        "deals exactly eight, one and one tenth of the chosen positions of a batch out instead of drawing for each",
        "chance",
        "masking-draws",
        {
            "mask": (
                "    lot = torch.rand(input_ids.shape, generator=generator)\n",
                "    count = int(chosen.sum())\n    lot = torch.ones(input_ids.shape)\n    lot[chosen] = torch.randperm(count, generator=generator) / count\n",
            )
        },
    ),
    Fresh(
        "fill_long_sentence_begins_in_old_segment",
        "fills the present segment up with the beginning of a sentence that is too long for any segment",
        "legal input",
        "pairs-fill",
        {
            "fill": (
                "            segments.append(sentence[:most])\n",
                "            if segments and len(sentence) > most:\n                room = most - len(segments[-1])\n                segments[-1] = segments[-1] + sentence[:room]\n                sentence = sentence[room:]\n            segments.append(sentence[:most])\n",
            )
        },
    ),
    Fresh(
        "fill_last_sentence_by_value",
        "finds the end of the document by comparing each sentence with the last one",
        "legal input",
        "pairs-fill",
        {
            "fill": (
                "    for sentence in document:\n        if segments and len(segments[-1]) + len(sentence) <= most:\n            segments[-1] = segments[-1] + sentence\n        else:\n            segments.append(sentence[:most])\n",
                "    current = []\n    for sentence in document:\n        if current and len(current) + len(sentence) > most:\n            segments.append(current)\n            current = []\n        current = (current + sentence)[:most]\n        if sentence == document[-1]:\n            segments.append(current)\n",
            )
        },
    ),
    Fresh(
        "fill_first_segment_with_room",
        "puts a sentence into the first segment that has room, not into the present one",
        "legal input",
        "pairs-fill",
        {
            "fill": (
                "        if segments and len(segments[-1]) + len(sentence) <= most:\n            segments[-1] = segments[-1] + sentence\n        else:\n",
                "        for place, segment in enumerate(segments):\n            if len(segment) + len(sentence) <= most:\n                segments[place] = segment + sentence\n                break\n        else:\n",
            )
        },
    ),
    Fresh(
        "next_equal_documents_are_not_others",
        "leaves out all documents that are equal to the present one, not the present one alone",
        "chance",
        "pairs-next",
        {
            "next": (
                "                other = random.randrange(len(documents) - 1)\n                second = random.choice(documents[other + (other >= number)])\n",
                "                others = [other for other in documents if other != document]\n                second = random.choice(random.choice(others))\n",
            )
        },
    ),
    Fresh(
        "next_place_by_index_again",
        "finds the place of a segment with list.index",
        "legal input",
        "pairs-next",
        {
            "next": (
                "        for place in range(len(document) - 1):\n",
                "        for segment in document[:-1]:\n            place = document.index(segment)\n",
            )
        },
    ),
    Fresh(
        "next_relabels_equal_segment",
        "labels a random segment of another document IS_NEXT if it reads like the true next one",
        "legal input",
        "pairs-chance",
        {
            "next": (
                "                label = NOT_NEXT\n",
                "                label = IS_NEXT if second == document[place + 1] else NOT_NEXT\n",
            )
        },
    ),
    Fresh(
        "next_shuffles_half_and_half",
        "shuffles a list with exactly half of each label instead of throwing a coin for each pair",
        "chance",
        "pairs-chance",
        {
            "next": (
                "    pairs = []\n    for number, document in enumerate(documents):\n        for place in range(len(document) - 1):\n            second, label = document[place + 1], IS_NEXT\n            if random.random() < 0.5:\n",
                "    total = sum(len(document) - 1 for document in documents)\n    coins = [IS_NEXT] * (total - total // 2) + [NOT_NEXT] * (total // 2)\n    random.shuffle(coins)\n    pairs = []\n    for number, document in enumerate(documents):\n        for place in range(len(document) - 1):\n            second, label = document[place + 1], IS_NEXT\n            if coins.pop() == NOT_NEXT:\n",
            )
        },
    ),
    Fresh(
        "next_draws_from_later_documents",
        "draws from the documents behind the present one, and from the earlier ones only for the last",
        "chance",
        "pairs-chance",
        {
            "next": (
                "                other = random.randrange(len(documents) - 1)\n                second = random.choice(documents[other + (other >= number)])\n",
                "                others = documents[number + 1 :] or documents[:number]\n                second = random.choice(random.choice(others))\n",
            )
        },
    ),
    Fresh(
        "pack_filling_has_type_pad_id",
        "fills token_type_ids up with pad_id",
        "legal input",
        "pairs-pack",
        {
            "pack": (
                "[1] * (len(second) + 1) + [0] * filling)",
                "[1] * (len(second) + 1) + [pad_id] * filling)",
            )
        },
    ),
    Fresh(
        "pack_cuts_at_512",
        "cuts sequences to BERT's 512 positions, the last [SEP] with them",
        "hard-wired",
        "pairs-pack",
        {
            "pack": (
                "    longest = max(len(first) + len(second) + 3 for first, second, _ in pairs)\n    rows, types, masks = [], [], []\n    for first, second, _ in pairs:\n        row = [cls_id, *first, sep_id, *second, sep_id]\n        filling = longest - len(row)\n        rows.append(row + [pad_id] * filling)\n        types.append([0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * filling)\n",
                "    longest = min(512, max(len(first) + len(second) + 3 for first, second, _ in pairs))\n    rows, types, masks = [], [], []\n    for first, second, _ in pairs:\n        row = [cls_id, *first, sep_id, *second, sep_id][:longest]\n        filling = longest - len(row)\n        rows.append(row + [pad_id] * filling)\n        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * filling\n        types.append(segments[:longest])\n",
            )
        },
    ),
    Fresh(
        "pack_longest_first_plus_longest_second",
        "adds the longest first segment and the longest second one up, which may be of different pairs",
        "legal input",
        "pairs-pack",
        {
            "pack": (
                "    longest = max(len(first) + len(second) + 3 for first, second, _ in pairs)\n",
                "    longest = max(len(first) for first, _, _ in pairs) + max(len(second) for _, second, _ in pairs) + 3\n",
            )
        },
    ),
    Fresh(
        "loss_where_after_softmax",
        "takes the softmax at all positions and sets the losses of the others to 0 afterwards",
        "gradient",
        "loss-masked",
        {
            "loss": (
                "    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]\n    losses = -log_probabilities.gather(-1, labels[chosen].unsqueeze(-1))  # [N, 1]\n    return losses.sum() / max(len(losses), 1)\n",
                "    log_probabilities = logits.log_softmax(dim=-1)\n    true = labels.clamp(min=0).unsqueeze(-1)\n    losses = -log_probabilities.gather(-1, true).squeeze(-1)\n    return torch.where(chosen, losses, 0.0).sum() / chosen.sum().clamp(min=1)\n",
            )
        },
    ),
    Fresh(
        "loss_nothing_chosen_times_zero",
        "multiplies the sum of all logits by 0 where no position is chosen",
        "numerics",
        "loss-masked",
        {
            "loss": (
                "    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]\n",
                "    if not chosen.any():\n        return 0 * logits.sum()  # 0, with a gradient\n    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]\n",
            )
        },
    ),
    Fresh(
        "loss_one_maximum_for_all_rows",
        "subtracts one maximum of all chosen positions before exp, not that of each position",
        "numerics",
        "loss-masked",
        {
            "loss": (
                "    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]\n",
                "    rows = logits[chosen]  # [N, V]\n    if len(rows) > 0:\n        rows = rows - rows.max()  # so that exp does not overflow\n    log_probabilities = rows - rows.exp().sum(dim=-1, keepdim=True).log()\n",
            )
        },
    ),
    Fresh(
        "rows_equal_chunks",
        "takes chunk, which makes portions of equal size, instead of split",
        "legal input",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    calls = math.ceil(len(rows) / most) if most else 1\n    portions = rows.chunk(max(calls, 1))\n",
            )
        },
    ),
    Fresh(
        "rows_empty_last_call",
        "calls head once more with nothing if most divides the number of chosen positions",
        "legal input",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    most = most or len(rows) + 1\n    calls = len(rows) // most + 1\n    portions = [rows[most * call : most * (call + 1)] for call in range(calls)]\n",
            )
        },
    ),
    Fresh(
        "rows_portions_within_a_sequence",
        "makes the portions within each sequence, so that none reaches over two",
        "legal input",
        "loss-rows",
        {
            "rows": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    portions = []\n    if most is not None:\n        for states, where in zip(hidden, chosen):\n            if where.any():\n                portions += states[where].split(most)\n    if not portions:\n        portions = [rows]\n",
            )
        },
    ),
    Fresh(
        "rows_table_of_float32",
        "collects the logits in a new table, which has torch's default dtype",
        "numerics",
        "loss-rows",
        {
            "rows": (
                "    return torch.cat([head(portion) for portion in portions]), labels[chosen]\n",
                "    table, place = None, 0\n    for portion in portions:\n        part = head(portion)\n        if table is None:\n            table = torch.empty(len(rows), part.shape[-1], device=part.device)\n        table[place : place + len(part)] = part\n        place += len(part)\n    return table, labels[chosen]\n",
            )
        },
    ),
    Fresh(
        "total_balances_the_two_labels",
        "takes the mean of each of the two labels and then the mean of these",
        "legal input",
        "loss-total",
        {
            "total": (
                "    return masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)\n",
                "    means = []\n    for label in next_sentence_labels.unique():\n        these = next_sentence_labels == label\n        means.append(masked_loss(pair_logits[these], next_sentence_labels[these]))\n    return masked_loss(token_logits, labels) + sum(means) / len(means)\n",
            )
        },
    ),
    Fresh(
        "total_nothing_chosen_no_pair_loss",
        "leaves the pair loss out where no position is chosen",
        "legal input",
        "loss-total",
        {
            "total": (
                "    return masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)\n",
                "    token_loss = masked_loss(token_logits, labels)\n    if (labels == IGNORE).all():\n        return token_loss  # no holes: nothing to learn here\n    return token_loss + masked_loss(pair_logits, next_sentence_labels)\n",
            )
        },
    ),
    Fresh(
        "train_clips_each_group",
        "cuts the gradient of each parameter group of the optimizer by itself",
        "gradient",
        "step-training",
        {
            "train": (
                "    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
                '    for group in optimizer.param_groups:\n        torch.nn.utils.clip_grad_norm_(group["params"], max_norm)\n',
            )
        },
    ),
    Fresh(
        "train_looks_at_the_outer_mode",
        "calls model.train() only if the model itself is not training, whatever its modules are",
        "state",
        "step-training",
        {
            "train": (
                "    model.train()\n",
                "    if not model.training:\n        model.train()\n",
            )
        },
    ),
    Fresh(
        "evaluate_mean_of_sequence_accuracies",
        "takes the accuracy of each sequence and then the mean of these",
        "legal input",
        "step-evaluate",
        {
            "train": (
                '    right = token_logits[chosen].argmax(dim=-1) == batch["labels"][chosen]\n    return loss.item(), right.double().mean().item()\n',
                '    right = (token_logits.argmax(dim=-1) == batch["labels"]) & chosen\n    asked = chosen.any(dim=1)\n    shares = right[asked].double().sum(dim=1) / chosen[asked].sum(dim=1)\n    return loss.item(), shares.mean().item()\n',
            )
        },
    ),
    Fresh(
        "evaluate_throws_gradients_away",
        "calls model.zero_grad() in evaluate, so gradients that the caller has collected are gone",
        "state",
        "step-evaluate",
        {
            "train": (
                "    was_training = model.training\n    model.eval()\n",
                "    was_training = model.training\n    model.eval()\n    model.zero_grad()  # keep no gradients\n",
            )
        },
    ),
    Fresh(
        "check_compares_inputs_with_themselves",
        "keeps the inputs themselves, not copies, so it never sees that they were changed",
        "state",
        "check-refuses",
        {
            "own-check": (
                "        copies = words.clone(), chosen.clone()\n",
                "        copies = words, chosen\n",
            )
        },
    ),
    Fresh(
        "check_numbers_never_come_again",
        "tries only words whose numbers rise, each once, and specials of -1 alone",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                '        ("aabb*aa+aa", "x...x.x...", None, "xx...xx..."),\n        ("+a*+", "x.xx", None, "...."),\n        ("cbabc", "xx...", None, "xx..."),\n',
                '        ("*ab*", "x.xx", None, "..x."),\n',
            )
        },
    ),
]
MUTANTS += LATER
RIGHT_ANSWERS += [
    RightAnswer(
        "right_one_number_and_gaps",
        "one number in float64 decides choice and fate; random ids by leaving gaps; segments as groups of sentence numbers; loss by logsumexp",
        {
            "mask": 'def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):\n    """One number for each position decides whether it is chosen and what becomes of it."""\n    special = torch.zeros_like(input_ids, dtype=torch.bool)\n    for number in special_ids:\n        special |= input_ids == number\n    number = torch.rand(input_ids.shape, generator=generator, dtype=torch.float64)\n    number = number.masked_fill(special, 2.0)  # 2: never\n    drawn = torch.randint(\n        vocab_size - len(set(special_ids)), input_ids.shape, generator=generator\n    )\n    for special_id in sorted(set(special_ids)):  # leave gaps for the special ones\n        drawn = drawn + (drawn >= special_id).long()\n    seen = torch.where(number < 0.9 * rate, drawn, input_ids)\n    seen = torch.where(number < 0.8 * rate, torch.full_like(input_ids, mask_id), seen)\n    return seen, torch.where(number < rate, input_ids, torch.full_like(input_ids, IGNORE))\n',
            "fill": 'def fill_segments(document, most):\n    """First the numbers of the sentences in each segment, then the ids."""\n    groups, room = [], 0\n    for number, sentence in enumerate(document):\n        if not groups or len(sentence) > room:\n            groups.append([])\n            room = most\n        groups[-1].append(number)\n        room -= min(len(sentence), most)\n    return [[i for number in group for i in document[number]][:most] for group in groups]\n',
            "loss": 'def masked_loss(logits, labels):\n    """-log P = log of the sum of exp of all logits, minus the true logit."""\n    table = logits.reshape(-1, logits.shape[-1])\n    true = labels.reshape(-1)\n    places = (true != IGNORE).nonzero().squeeze(1)\n    if places.numel() == 0:\n        return table[places].sum()  # of nothing: 0, and so is the gradient\n    table, true = table.index_select(0, places), true.index_select(0, places)\n    return (table.logsumexp(dim=1) - table[torch.arange(len(true), device=true.device), true]).mean()\n',
        },
    ),
    RightAnswer(
        "right_circle_tables_and_modes",
        "the other document by steps in a circle; tables from comparisons of places with ends; a shared helper for the loss, and each module's own mode restored",
        {
            "next": 'def sentence_pairs(documents, random):\n    """The other document is so many steps further, in a circle."""\n    count = len(documents)\n    if count == 1:\n        raise ValueError("there is no other document")\n\n    def pair(number, first, following):\n        if random.choice((True, False)):\n            return first, following, IS_NEXT\n        other = documents[(number + random.randint(1, count - 1)) % count]\n        return first, other[random.randrange(len(other))], NOT_NEXT\n\n    return [\n        pair(number, first, following)\n        for number, document in enumerate(documents)\n        for first, following in zip(document, document[1:])\n    ]\n',
            "pack": 'def pack_pairs(pairs, cls_id, sep_id, pad_id):\n    """Fill tables that are empty at first."""\n    ends = torch.tensor([[len(a) + 2, len(a) + len(b) + 3] for a, b, _ in pairs])\n    places = torch.arange(int(ends.max()))\n    mask = places < ends[:, 1:]\n    input_ids = torch.full(mask.shape, pad_id, dtype=torch.int64)\n    for row, (a, b, _) in zip(input_ids, pairs):\n        text = [cls_id] + list(a) + [sep_id] + list(b) + [sep_id]\n        row[: len(text)] = torch.tensor(text, dtype=torch.int64)\n    return {\n        "input_ids": input_ids,\n        "token_type_ids": (mask & (places >= ends[:, :1])).long(),\n        "attention_mask": mask,\n        "next_sentence_labels": torch.tensor([pair[2] for pair in pairs], dtype=torch.int64),\n    }\n',
            "train": 'def loss_and_logits(model, batch):\n    names = ("input_ids", "attention_mask", "token_type_ids")\n    token_logits, pair_logits = model(*(batch[name] for name in names))\n    loss = pretraining_loss(\n        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]\n    )\n    return loss, token_logits\n\n\ndef training_step(model, optimizer, batch, max_norm=1.0):\n    """The old gradients go just before the new ones come."""\n    model.train()\n    loss, _ = loss_and_logits(model, batch)\n    optimizer.zero_grad()\n    model.zero_grad()\n    loss.backward()\n    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm)\n    optimizer.step()\n    return float(loss.detach())\n\n\ndef evaluate(model, batch):\n    """Every module gets its own mode back."""\n    modes = [(module, module.training) for module in model.modules()]\n    model.eval()\n    try:\n        with torch.no_grad():\n            loss, token_logits = loss_and_logits(model, batch)\n    finally:\n        for module, mode in modes:\n            module.training = mode\n    labels = batch["labels"]\n    # no logit is greatest at a label of -100, so these are right nowhere\n    right = (token_logits.argmax(dim=-1) == labels).sum().double()\n    return float(loss), float(right / (labels != IGNORE).sum())\n',
        },
    ),
    RightAnswer(
        "right_flat_softplus_and_slow_check",
        "chosen positions by index_select in the flat batch; pair loss by softplus; a check against a slow groupby implementation, at random",
        {
            "rows": 'def masked_logits(head, hidden, labels, most=None):\n    """By the numbers of the chosen positions in the flat batch."""\n    flat = labels.flatten()\n    places = torch.nonzero(flat != IGNORE).flatten()\n    states = hidden.reshape(-1, hidden.shape[-1]).index_select(0, places)\n    count = len(places)\n    if most is None or most >= count:\n        return head(states), flat[places]\n    table = [head(states[begin : begin + most]) for begin in range(0, count, most)]\n    return torch.cat(table, dim=0), flat[places]\n',
            "total": 'def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):\n    """With two logits, -log P of one is softplus of the other minus it."""\n    true = next_sentence_labels.unsqueeze(1)\n    lead = pair_logits.gather(1, 1 - true) - pair_logits.gather(1, true)\n    pair_loss = torch.nn.functional.softplus(lead).sum() / max(len(lead), 1)\n    return masked_loss(token_logits, labels) + pair_loss\n',
            "own-check": 'def check_whole_words(implementation):\n    """Compare with a slow implementation of my own, by hand and at random."""\n    import itertools\n    import random as dice\n\n    def slow(chosen, words, most):\n        table = []\n        for picks, numbers in zip(chosen, words):\n            row, place = [], 0\n            for number, group in itertools.groupby(numbers):\n                size = len(list(group))\n                wanted = number >= 0 and any(picks[place : place + size])\n                fits = most is None or sum(row) + size <= most\n                row += [wanted and fits] * size\n                place += size\n            table.append(row)\n        return table\n\n    def compare(chosen, words, most, shape):\n        wanted = torch.tensor(slow(chosen, words, most), dtype=torch.bool, device=device).reshape(shape)\n        a = torch.tensor(chosen, dtype=torch.bool, device=device).reshape(shape)\n        b = torch.tensor(words, dtype=torch.int64, device=device).reshape(shape)\n        a_before, b_before = a.clone(), b.clone()\n        got = implementation(a, b, most)\n        assert isinstance(got, torch.Tensor), "no tensor"\n        assert got.dtype == torch.bool and got.device == a.device, "no bool tensor"\n        assert got.shape == wanted.shape, "shape"\n        assert torch.equal(got, wanted), "wrong"\n        assert torch.equal(a, a_before) and torch.equal(b, b_before), "inputs changed"\n\n    def one(chosen, words, most):\n        compare([[sign == "x" for sign in chosen]], [words], most, (1, len(words)))\n\n    for most in (None, 0, 1, 2, 3, 4, 5, 6, 100):\n        one("..x..x.", [-1, 0, 0, 0, 1, 2, -1], most)\n        one("x..x.x", [5, 5, 5, 4, 4, 9], most)\n        one("x.xx", [-3, 0, -1, -100], most)\n        one("x...x.x...", [0, 0, 1, 1, -1, 0, 0, -2, 0, 0], most)\n        one("xxx", [0, 0, 0], most)\n    one("xx...", [2, 1, 0, 1, 2], None)\n    one("x" + "." * 99, [7] * 100, None)\n    one("." * 99 + "x", [7] * 100, 100)\n    one("." * 99 + "x", [7] * 100, 99)\n    for shape in ((0, 3), (2, 0), (0, 0)):\n        for most in (None, 0, 2):\n            compare([[]] * shape[0] if shape[1] == 0 else [], [[]] * shape[0] if shape[1] == 0 else [], most, shape)\n    draw = dice.Random(5)\n    for turn in range(80):\n        B, T = draw.randint(1, 4), draw.randint(1, 14)\n        words = [[draw.choice((-9, -2, -1, 0, 0, 1, 1, 2, 3)) for _ in range(T)] for _ in range(B)]\n        for row in words:  # longer words\n            for place in range(1, T):\n                if draw.random() < 0.5:\n                    row[place] = row[place - 1]\n        chosen = [[draw.random() < 0.35 for _ in range(T)] for _ in range(B)]\n        compare(chosen, words, draw.choice((None, 0, 1, 2, 3, 4, 5, 7)), (B, T))\n    for shape in ((1, 2), (0, 2), (2, 0)):\n        for fill in (True, False):\n            for most in (-1, -5):\n                a = torch.full(shape, fill, dtype=torch.bool, device=device)\n                for number in (0, -1):\n                    try:\n                        implementation(a, torch.full(shape, number, dtype=torch.int64, device=device), most)\n                    except ValueError:\n                        continue\n                    raise AssertionError("a negative limit must raise a ValueError")\n',
        },
    ),
]
