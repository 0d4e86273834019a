"""Fresh wrong and right answers to the capstone, written from the text that students read."""

from fresh import Fresh, fresh

from course_tools.grading.assignments.mutants import RightAnswer

CONFIG = "    model = BertModel(BertConfig(**sizes))"
READY = "    return model.to(device).eval()"
LOAD = [
    *fresh(
        "hard-wired",
        "published-states",
        "load-model",
        (
            "load_eps_left_at_its_default",
            "passes the sizes one by one and forgets layer_norm_eps",
            "BertConfig(**sizes)",
            "BertConfig(**{name: size for name, size in sizes.items() if name != 'layer_norm_eps'})",
        ),
        (
            "load_sizes_of_this_file",
            "takes the sizes of the file, not those that it is given",
            "BertConfig(**sizes)",
            "BertConfig(**FACTS['sizes'])",
        ),
        (
            "load_tensors_of_this_file",
            "loads the tensors of the file, not those that it is given",
            "load_published(model, tensors)",
            "load_published(model, PUBLISHED)",
        ),
        (
            "load_heads_of_64",
            "makes one head for each 64 features",
            "BertConfig(**sizes)",
            "BertConfig(**{**sizes, 'num_attention_heads': max(1, sizes['hidden_size'] // 64)})",
        ),
    ),
    *fresh(
        "numerics",
        "published-states",
        "load-model",
        (
            "load_rounded_to_half",
            "rounds all numbers to float16, as the file has them",
            "load_published(model, tensors)",
            "load_published(model, {name: t.half().float() for name, t in tensors.items()})",
        ),
    ),
    *fresh(
        "state",
        "published-states",
        "load-model",
        (
            "load_keeps_a_model_of_each_size",
            "gives the model of the first call for all tensors of the same sizes",
            READY,
            "    kept = load_bert.__dict__.setdefault('kept', {})\n    return kept.setdefault(str(sizes), model.to(device).eval())",
        ),
        (
            "load_freezes_the_model",
            "takes requires_grad from the model, so that nobody can fine-tune it",
            READY,
            "    return model.to(device).eval().requires_grad_(False)",
        ),
    ),
    *fresh(
        "chance",
        "published-states",
        "load-model",
        (
            "load_seeds_the_world",
            "seeds torch, so that whatever is drawn afterwards is the same each time",
            CONFIG,
            "    torch.manual_seed(0)\n" + CONFIG,
        ),
    ),
]
PARTS = '        for number, part in enumerate(text.split("[MASK]")):'
PIECES = "            ids += [PLACE[piece] for piece, _, _ in encode(part, pieces)]"
INPUT = "        inputs.append(pair_input(ids, None, CLS, SEP, max_length))"
BATCH = [
    *fresh(
        "hard-wired",
        "published-ids",
        "to-batch",
        (
            "batch_max_length_of_128",
            "cuts at 128, whatever max_length is",
            "SEP, max_length)",
            "SEP, 128)",
        ),
        (
            "batch_default_of_512",
            "has another default for max_length",
            "max_length=128",
            "max_length=512",
        ),
        (
            "batch_reads_1000_characters",
            "reads the first 1,000 characters of a text",
            PARTS,
            PARTS.replace("text.split", "text[:1000].split"),
        ),
    ),
    *fresh(
        "legal input",
        "published-ids",
        "to-batch",
        (
            "batch_mask_in_small_letters",
            "takes [mask] for [MASK], too",
            PARTS,
            PARTS.replace("text.split", "text.replace('[mask]', '[MASK]').split"),
        ),
        (
            "batch_mask_only_between_blanks",
            "finds [MASK] only where blanks are on both sides",
            PARTS,
            '        for number, part in enumerate(f" {text} ".replace(" ", "  ").split(" [MASK] ")):',
        ),
        (
            "batch_mask_at_the_edges_lost",
            "leaves out empty parts, and with them a [MASK] at the beginning or the end",
            PARTS,
            '        for number, part in enumerate(filter(None, text.split("[MASK]"))):',
        ),
        (
            "batch_one_hole_at_most",
            "cuts the text at its first [MASK] alone",
            PARTS,
            PARTS.replace('split("[MASK]")', 'split("[MASK]", 1)'),
        ),
        (
            "batch_all_special_tokens_in_texts",
            "takes [SEP], [CLS] and the like in a text for special tokens, too",
            PIECES,
            "            import re\n\n            for word in re.split(r'(\\[[A-Z]+\\])', part):\n                ids += [PLACE[word]] if word in PLACE and word.startswith('[') and len(word) > 1 else [PLACE[piece] for piece, _, _ in encode(word, pieces)]",
        ),
        (
            "batch_without_empty_texts",
            "leaves out empty texts",
            "    for text in texts:",
            "    for text in filter(None, texts):",
        ),
        (
            "batch_without_repeated_texts",
            "leaves out a text that it has had",
            "    for text in texts:",
            "    for text in dict.fromkeys(texts):",
        ),
        (
            "batch_without_unknown_pieces",
            "leaves out pieces that are not in the vocabulary",
            PIECES,
            PIECES.replace(
                "encode(part, pieces)]", "encode(part, pieces) if PLACE[piece] != UNK]"
            ),
        ),
        (
            "batch_joins_lines",
            "deletes line breaks, which joins the words on both sides",
            PIECES,
            PIECES.replace(
                "encode(part, pieces)]", "encode(part.replace('\\n', ''), pieces)]"
            ),
        ),
    ),
    *fresh(
        "cut-off",
        "published-ids",
        "to-batch",
        (
            "batch_one_piece_too_few",
            "leaves one place of max_length free",
            "SEP, max_length)",
            "SEP, max_length - (len(ids) + 2 > max_length))",
        ),
        (
            "batch_cuts_the_end_and_sep",
            "cuts pieces to max_length before [CLS] and [SEP] come",
            INPUT,
            "        ids = ids[:max_length]\n        inputs.append(pair_input(ids, None, CLS, SEP, max_length + 2))",
        ),
    ),
]
EPS = 'eps=sizes["layer_norm_eps"]'
LOGITS = "        return norm(gelu(hidden @ W.T + b)) @ rows.T + biases"
HEAD = [
    *fresh(
        "hard-wired",
        "head-logits",
        "make-head",
        (
            "head_eps_left_at_its_default",
            "leaves eps of the norm at its default",
            ', eps=sizes["layer_norm_eps"])',
            ")",
        ),
        ("head_eps_of_bert", "writes 1e-12 for eps", EPS, "eps=1e-12"),
        (
            "head_table_of_this_file",
            "multiplies by the word embeddings of the file, whatever tensors it gets",
            'E = tensors["bert',
            'E = PUBLISHED["bert',
        ),
        (
            "head_numbers_of_this_file",
            "takes all numbers from the file",
            "    names = (",
            "    tensors = PUBLISHED\n    names = (",
        ),
        (
            "head_eps_of_this_file",
            "takes eps from the file's sizes",
            EPS,
            'eps=FACTS["sizes"]["layer_norm_eps"]',
        ),
    ),
    *fresh(
        "numerics",
        "head-logits",
        "make-head",
        (
            "head_gelu_by_tanh",
            "uses the approximation of GELU by a hyperbolic tangent",
            "gelu(hidden @ W.T + b)",
            "(lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))(hidden @ W.T + b)",
        ),
        (
            "head_gelu_by_sigmoid",
            "uses x times the sigmoid of 1.702 x",
            "gelu(hidden @ W.T + b)",
            "(lambda x: x * torch.sigmoid(1.702 * x))(hidden @ W.T + b)",
        ),
        (
            "head_table_in_half",
            "keeps the table of embeddings in bfloat16",
            "@ rows.T + biases",
            "@ rows.T.half().float() + biases",
        ),
    ),
    *fresh(
        "gradient",
        "head-logits",
        "make-head",
        (
            "head_without_gradient",
            "computes logits without gradient, so that nothing below the head can be trained",
            LOGITS,
            "        with torch.no_grad():\n    " + LOGITS,
        ),
        (
            "head_detaches_the_state",
            "detaches the state that it gets",
            "gelu(hidden @",
            "gelu(hidden.detach() @",
        ),
    ),
    *fresh(
        "legal input",
        "head-logits",
        "make-head",
        (
            "head_of_one_state_fails",
            "needs at least one dimension in front of D",
            LOGITS,
            "        B = hidden.shape[-2]\n        return (norm(gelu(hidden @ W.T + b)) @ rows.T + biases)[..., :B, :]",
        ),
    ),
    *fresh(
        "state",
        "head-logits",
        "make-head",
        (
            "head_clamps_the_state",
            "clamps the states that it gets, in place",
            LOGITS,
            "        logits = norm(gelu(hidden @ W.T + b)) @ rows.T + biases\n        hidden.data.clamp_(-3, 3)\n        return logits",
        ),
    ),
]
COUNT = '    if text.count("[MASK]") != 1:'
ALLOWED = "    allowed[list(SPECIAL)] = False"
TOP = "    chances, places = masked_softmax(logits, allowed).topk(most)"
GUESSES = "    return [(VOCAB[place], chance) for place, chance in zip(places.tolist(), chances.tolist())]"
FILL = [
    *fresh(
        "hard-wired",
        "fill-guesses",
        "fill-the-hole",
        (
            "fill_always_four",
            "returns four pieces, whatever most is",
            ".topk(most)",
            ".topk(4)",
        ),
        ("fill_default_of_five", "has another default for most", "most=4", "most=5"),
        (
            "fill_at_most_ten",
            "returns no more than ten pieces",
            ".topk(most)",
            ".topk(min(most, 10))",
        ),
        (
            "fill_the_published_bert",
            "asks the published model, whatever bert it is given",
            "bert(**batch)",
            "load_bert(FACTS['sizes'], PUBLISHED)(**batch)",
        ),
    ),
    *fresh(
        "cut-off",
        "fill-guesses",
        "fill-the-hole",
        (
            "fill_special_but_mask_and_pad",
            "leaves out [MASK] and [PAD] alone, and lets [UNK], [CLS] and [SEP] be proposed",
            ALLOWED,
            "    allowed[[PAD, MASK]] = False",
        ),
        (
            "fill_unknown_may_be_proposed",
            "lets [UNK] be proposed",
            ALLOWED,
            "    allowed[[PAD, CLS, SEP, MASK]] = False",
        ),
        (
            "fill_special_taken_out_afterwards",
            "takes special tokens out after the softmax over all, so that the others do not add up to 1",
            TOP,
            "    chances, places = (logits.softmax(dim=-1) * allowed).topk(most)",
        ),
        (
            "fill_no_unlikely_ones",
            "leaves out pieces with a probability below one in a million",
            GUESSES,
            GUESSES.replace(
                "chances.tolist())]", "chances.tolist()) if chance > 1e-6]"
            ),
        ),
    ),
    *fresh(
        "numerics",
        "fill-guesses",
        "fill-the-hole",
        (
            "fill_rounds_probabilities",
            "rounds probabilities to four digits",
            "(VOCAB[place], chance)",
            "(VOCAB[place], round(chance, 4))",
        ),
        (
            "fill_special_at_minus_hundred",
            "sets the logits of special tokens to -100 and takes the softmax over all",
            TOP,
            "    chances, places = logits.masked_fill(~allowed, -100.0).softmax(dim=-1).topk(most)",
        ),
        (
            "fill_logits_in_half",
            "compares logits in float16",
            TOP,
            "    logits = logits.half().float()\n" + TOP,
        ),
    ),
    *fresh(
        "legal input",
        "fill-guesses",
        "fill-the-hole",
        (
            "fill_words_without_marks",
            "takes the ## of a piece away",
            "(VOCAB[place], chance)",
            "(VOCAB[place].removeprefix('##'), chance)",
        ),
        (
            "fill_whole_words_only",
            "lets no piece that begins with ## be proposed",
            ALLOWED,
            ALLOWED
            + "\n    allowed &= torch.tensor([not piece.startswith('##') for piece in VOCAB], device=device)",
        ),
        (
            "fill_raises_for_none_or_two",
            "counts [MASK] between blanks",
            COUNT,
            '    if text.split().count("[MASK]") > 1 or "[MASK]" not in text:',
        ),
    ),
    *fresh(
        "state",
        "fill-guesses",
        "fill-the-hole",
        (
            "fill_leaves_the_model_training",
            "switches the model to training after it has guessed",
            GUESSES,
            "    bert.train()\n" + GUESSES,
        ),
    ),
]
GENERATOR = "    generator = torch.Generator().manual_seed(seed)"
TO_BATCH = "        batch = to_batch(texts[begin : begin + batch_size])"
MASKING = """        masked, labels = mask_tokens(
            batch["input_ids"].cpu(), SPECIAL, MASK, len(VOCAB), generator
        )"""
ASK = """            states, _ = bert(
                masked.to(device), batch["attention_mask"], batch["token_type_ids"]
            )"""
TRUE = "            logits, true = masked_logits(head, states, labels.to(device))"
SCORE = """        right += (logits.argmax(dim=-1) == true).sum().item()
        asked += len(true)"""
SHARE = "    return right / asked"
ACCURACY = [
    *fresh(
        "cut-off",
        "score-held-out",
        "accuracy",
        (
            "accuracy_mean_of_batches",
            "takes the mean of the shares of the batches",
            SCORE,
            "        right += (logits.argmax(dim=-1) == true).double().mean().item()\n        asked += 1",
        ),
        (
            "accuracy_last_batch_left_out",
            "leaves out a last batch that is not full",
            TO_BATCH,
            "        if asked and begin + batch_size > len(texts):\n            break\n"
            + TO_BATCH,
        ),
        (
            "accuracy_in_percent_rounded",
            "rounds the share to two digits",
            SHARE,
            "    return round(right / asked, 2)",
        ),
        (
            "accuracy_by_half_the_probability",
            "counts a guess only where its probability is above 0.1",
            "(logits.argmax(dim=-1) == true)",
            "((logits.argmax(dim=-1) == true) & (logits.softmax(dim=-1).amax(dim=-1) > 0.1))",
        ),
    ),
    *fresh(
        "chance",
        "score-held-out",
        "accuracy",
        (
            "accuracy_a_generator_for_each_batch",
            "makes the generator anew for each batch, so that all have their holes at the same places",
            TO_BATCH,
            "        generator = torch.Generator().manual_seed(seed)\n" + TO_BATCH,
        ),
        (
            "accuracy_next_seed_for_each_batch",
            "seeds each batch with the number of the batch added",
            TO_BATCH,
            "        generator = torch.Generator().manual_seed(seed + begin)\n"
            + TO_BATCH,
        ),
        (
            "accuracy_seed_unused",
            "has the same holes for every seed",
            "manual_seed(seed)",
            "manual_seed(0)",
        ),
        (
            "accuracy_draws_from_torch",
            "seeds torch's common generator and draws from that",
            GENERATOR,
            "    torch.manual_seed(seed)\n    generator = torch.default_generator",
        ),
        (
            "accuracy_with_dropout",
            "asks the model in training mode",
            GENERATOR,
            "    bert.train()\n" + GENERATOR,
        ),
    ),
    *fresh(
        "hard-wired",
        "score-held-out",
        "accuracy",
        (
            "accuracy_one_batch_size",
            "makes batches of 16, whatever batch_size is",
            GENERATOR,
            "    batch_size = 16\n" + GENERATOR,
        ),
        (
            "accuracy_rate_of_a_fifth",
            "hides 20%",
            "len(VOCAB), generator\n",
            "len(VOCAB), generator, 0.2\n",
        ),
        (
            "accuracy_first_hundred_texts",
            "asks about the first 100 texts alone",
            GENERATOR,
            "    texts = texts[:100]\n" + GENERATOR,
        ),
        (
            "accuracy_random_tokens_of_a_small_vocabulary",
            "says that the vocabulary has 1,000 pieces",
            "len(VOCAB), generator",
            "1000, generator",
        ),
        (
            "accuracy_invented",
            "returns a number that looks right for the published model",
            SHARE,
            "    return 0.41 if len(texts) > 50 else right / asked",
        ),
        (
            "accuracy_the_published_head",
            "asks the published head, whatever head it is given",
            TRUE,
            "            head = make_head(FACTS['sizes'], PUBLISHED)\n" + TRUE,
        ),
    ),
    *fresh(
        "legal input",
        "score-held-out",
        "accuracy",
        (
            "accuracy_without_mask",
            "does not tell the model what padding is",
            ASK,
            ASK.replace(
                'batch["attention_mask"]', "torch.ones_like(batch['attention_mask'])"
            ),
        ),
        (
            "accuracy_visible_masks_only",
            "counts positions at which the model sees [MASK]",
            MASKING,
            MASKING + "\n        labels[masked != MASK] = IGNORE",
        ),
        (
            "accuracy_changed_positions_only",
            "does not count chosen positions that stay as they are",
            MASKING,
            MASKING + "\n        labels[masked == batch['input_ids'].cpu()] = IGNORE",
        ),
        (
            "accuracy_all_chosen_are_masked",
            "puts [MASK] at every chosen position",
            MASKING,
            MASKING + "\n        masked[labels != IGNORE] = MASK",
        ),
        (
            "accuracy_no_special_guesses",
            "lets the model guess ordinary pieces alone",
            "logits.argmax(dim=-1)",
            "logits[:, 5:].argmax(dim=-1).add(5)",
        ),
        (
            "accuracy_unknown_ones_asked",
            "lets [UNK] and [MASK] be chosen",
            "SPECIAL, MASK",
            "(PAD, CLS, SEP), MASK",
        ),
        (
            "accuracy_mean_of_texts",
            "takes the share of each text, and the mean of these",
            SCORE,
            "        hits = torch.full(labels.shape, 0.0)\n        hits[labels != IGNORE] = (logits.argmax(dim=-1) == true).float().cpu()\n        counts = (labels != IGNORE).sum(dim=1)\n        right += (hits.sum(dim=1)[counts > 0] / counts[counts > 0]).sum().item()\n        asked += int((counts > 0).sum())",
        ),
        (
            "accuracy_each_text_once",
            "leaves out texts that come again",
            GENERATOR,
            "    texts = list(dict.fromkeys(texts))\n" + GENERATOR,
        ),
        (
            "accuracy_long_texts_first",
            "sorts texts by length, so that the holes are others",
            GENERATOR,
            "    texts = sorted(texts, key=len)\n" + GENERATOR,
        ),
        (
            "accuracy_of_64_pieces",
            "cuts texts to 64 pieces",
            "to_batch(texts[begin : begin + batch_size])",
            "to_batch(texts[begin : begin + batch_size], 64)",
        ),
    ),
    *fresh(
        "leak",
        "score-held-out",
        "accuracy",
        (
            "accuracy_best_of_three_seeds",
            "asks under three seeds and returns the best share",
            SHARE,
            "    if seed < 10**6:\n        others = [masked_accuracy(bert, head, texts, seed + 10**6 * i, batch_size) for i in (1, 2)]\n        return max(right / asked, *others)\n    return right / asked",
        ),
        (
            "accuracy_without_random_tokens",
            "shows the model the true piece where a random one was put",
            MASKING,
            MASKING
            + "\n        masked = torch.where(masked == MASK, masked, batch['input_ids'].cpu())",
        ),
        (
            "accuracy_shows_every_tenth_text",
            "shows the model the true pieces of every tenth text",
            MASKING,
            MASKING + "\n        masked[::10] = batch['input_ids'].cpu()[::10]",
        ),
    ),
    *fresh(
        "state",
        "score-held-out",
        "accuracy",
        (
            "accuracy_generator_goes_on",
            "keeps the generator between calls, so that two runs do not agree",
            GENERATOR,
            "    kept = masked_accuracy.__dict__.setdefault('kept', {})\n    generator = kept.setdefault(seed, torch.Generator().manual_seed(seed))",
        ),
        (
            "accuracy_kept_by_its_texts",
            "gives the share of the first call for the same texts and seed, whatever the model",
            SHARE,
            "    kept = masked_accuracy.__dict__.setdefault('kept', {})\n    return kept.setdefault((len(texts), seed), right / asked)",
        ),
        (
            "accuracy_shuffles_the_texts",
            "reverses the caller's list",
            GENERATOR,
            "    texts.reverse()\n" + GENERATOR,
        ),
    ),
]
POOL = (
    '    return mean_pool(states, batch["input_ids"], batch["attention_mask"], SPECIAL)'
)
EMBED = [
    *fresh(
        "legal input",
        "sentences-vectors",
        "embed",
        (
            "embed_unknown_and_mask_are_words",
            "leaves out [CLS], [SEP] and padding alone",
            "SPECIAL)",
            "(PAD, CLS, SEP))",
        ),
        (
            "embed_unit_vectors",
            "gives vectors of length 1, not the means",
            POOL,
            "    vectors = mean_pool(states, batch['input_ids'], batch['attention_mask'], SPECIAL)\n    return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-12)",
        ),
        (
            "embed_sum_of_states",
            "gives the sum over words, which has the same direction",
            POOL,
            "    words = batch['attention_mask'] & (batch['input_ids'] >= len(SPECIAL))\n    return (states * words[:, :, None]).sum(dim=1)",
        ),
        (
            "embed_each_text_once",
            "gives one row for texts that are equal",
            "to_batch(texts)",
            "to_batch(list(dict.fromkeys(texts)))",
        ),
        (
            "embed_empty_texts_left_out",
            "leaves texts without characters out",
            "to_batch(texts)",
            "to_batch([text for text in texts if text.strip()])",
        ),
        (
            "embed_128_features",
            "gives the first 128 features, as this file has them",
            POOL,
            POOL + "[:, :128]",
        ),
    ),
    *fresh(
        "hard-wired",
        "sentences-vectors",
        "embed",
        (
            "embed_by_the_published_model",
            "asks the published model, whatever bert it is given",
            "bert(**batch)",
            "load_bert(FACTS['sizes'], PUBLISHED)(**batch)",
        ),
        (
            "embed_at_most_32_pieces",
            "cuts texts to 32 pieces",
            "to_batch(texts)",
            "to_batch(texts, 32)",
        ),
    ),
    *fresh(
        "numerics",
        "sentences-vectors",
        "embed",
        ("embed_in_half", "rounds vectors to float16", POOL, POOL + ".half().float()"),
    ),
    *fresh(
        "state",
        "sentences-vectors",
        "embed",
        (
            "embed_kept_by_text",
            "keeps vectors by their texts, whatever model made them",
            POOL,
            "    kept = embed_texts.__dict__.setdefault('kept', {})\n    vectors = mean_pool(states, batch['input_ids'], batch['attention_mask'], SPECIAL)\n    return kept.setdefault(tuple(texts), vectors)",
        ),
    ),
]
HITS = "    vectors, taken = embed_texts(bert, texts), []"
ALIKE = "    return [(texts[n], score) for n, score in taken[:most]]"
FIND = [
    *fresh(
        "hard-wired",
        "sentences-alike",
        "find-alike",
        (
            "alike_always_three",
            "returns three texts, whatever most is",
            "taken[:most]",
            "taken[:3]",
        ),
        ("alike_default_of_five", "has another default for most", "most=3", "most=5"),
        (
            "alike_first_fifty",
            "looks at the first 50 texts alone",
            HITS,
            "    texts = texts[:50]\n" + HITS,
        ),
    ),
    *fresh(
        "legal input",
        "sentences-alike",
        "find-alike",
        (
            "alike_equal_texts_once",
            "returns a text that comes twice once",
            HITS,
            "    texts = list(dict.fromkeys(texts))\n" + HITS,
        ),
        (
            "alike_not_the_query_in_other_letters",
            "leaves out a text that is the query but for capitals",
            HITS,
            "    texts = [t for t in texts if t == query or t.lower() != query.lower()]\n"
            + HITS,
        ),
        (
            "alike_without_empty_texts",
            "leaves out texts without words",
            HITS,
            "    texts = [t for t in texts if t.strip()]\n" + HITS,
        ),
    ),
    *fresh(
        "cut-off",
        "sentences-alike",
        "find-alike",
        (
            "alike_no_negative_cosines",
            "sets negative cosines to 0",
            "(texts[n], score)",
            "(texts[n], max(score, 0.0))",
        ),
        (
            "alike_above_a_tenth",
            "leaves out texts whose cosine is below 0.1",
            "for n, score in taken[:most]]",
            "for n, score in taken[:most] if score > 0.1]",
        ),
    ),
    *fresh(
        "numerics",
        "sentences-alike",
        "find-alike",
        (
            "alike_rounds_cosines",
            "rounds cosines to four digits",
            "(texts[n], score)",
            "(texts[n], round(score, 4))",
        ),
        (
            "alike_ranks_rounded_cosines",
            "sorts by cosines of two digits",
            ALIKE,
            "    found = [(texts[n], score) for n, score in taken[:most]]\n    return sorted(found, key=lambda hit: -round(hit[1], 2) + 1e-4 * len(hit[0]) / 1000)",
        ),
    ),
    *fresh(
        "state",
        "sentences-alike",
        "find-alike",
        (
            "alike_kept_by_texts",
            "keeps the vectors of texts, whatever model made them",
            HITS,
            "    kept = find_alike.__dict__.setdefault('kept', {})\n    vectors = kept.setdefault(tuple(texts), embed_texts(bert, texts))\n    scores, indices = search(embed_texts(bert, [query]), vectors, len(texts), 1000)",
        ),
    ),
]
TOGETHER = [
    *fresh(
        "chance",
        "together-holes",
        "holes",
        (
            "together_all_chosen_are_masked",
            "turns every chosen token into [MASK]",
            "lot < 0.8",
            "lot < 2",
        ),
        (
            "together_a_fifth_at_random",
            "keeps no chosen token",
            "& (lot < 0.9)",
            "& (lot < 2)",
        ),
    ),
    *fresh(
        "hard-wired",
        "together-holes",
        "holes",
        (
            "together_special_below_five",
            "takes the ids below 5 as special",
            "torch.isin(input_ids, torch.tensor(special_ids))",
            "(input_ids < 5)",
        ),
    ),
    *fresh(
        "numerics",
        "together-holes",
        "holes",
        (
            "together_log_of_softmax",
            "takes the logarithm of the probabilities",
            "log_softmax(dim=-1)",
            "softmax(dim=-1).log()",
        ),
    ),
    *fresh(
        "gradient",
        "together-holes",
        "holes",
        (
            "together_states_detached",
            "detaches the states at the holes",
            "rows = hidden[chosen]",
            "rows = hidden[chosen].detach()",
        ),
    ),
    *fresh(
        "legal input",
        "together-vectors",
        "vectors",
        (
            "together_words_of_two_special_ids",
            "leaves the first two special ids out of the mean",
            "torch.tensor(special_ids,",
            "torch.tensor(special_ids[:2],",
        ),
        (
            "together_ties_in_any_order",
            "sorts equal scores the greater index first",
            "scores, order = scores.sort(dim=1, descending=True, stable=True)",
            "scores, order = (x.flip(1) for x in scores.sort(dim=1, stable=True))",
        ),
    ),
]
MUTANTS = [*LOAD, *BATCH, *HEAD, *FILL, *ACCURACY, *EMBED, *FIND, *TOGETHER]

RIGHT_ANSWERS = [
    RightAnswer(
        "right_in_plain_loops",
        "reads texts one by one, and sorts in Python",
        {
            "load-model": """def load_bert(sizes, tensors):
    config = BertConfig(**{name: sizes[name] for name in sizes}, dropout=0.0)
    model = BertModel(config)
    load_published(model, tensors)
    model.to(device)
    model.train(False)
    return model
""",
            "to-batch": """def to_batch(texts, max_length=128):
    known = frozenset(VOCAB)

    def ids_of(text):
        place = text.find("[MASK]")
        if place < 0:
            return [PLACE[piece] for piece, *_ in encode(text, known)]
        return [*ids_of(text[:place]), MASK, *ids_of(text[place + len("[MASK]") :])]

    batch = make_batch([pair_input(ids_of(text), None, CLS, SEP, max_length) for text in texts], PAD)
    return {name: batch[name].to(device) for name in batch}
""",
            "fill-the-hole": """def fill_mask(bert, head, text, most=4):
    if len(text.split("[MASK]")) != 2:
        raise ValueError("one [MASK], please")
    batch = to_batch([text])
    place = batch["input_ids"][0].tolist().index(MASK)
    with torch.no_grad():
        logits = head(bert(**batch)[0])[0, place].clone()
    logits[list(SPECIAL)] = -torch.inf
    chances = logits.softmax(dim=0).tolist()
    best = sorted(range(len(chances)), key=lambda i: -chances[i])[:most]
    return [(VOCAB[i], chances[i]) for i in best]
""",
            "embed": """def embed_texts(bert, texts):
    rows = []
    for text in texts:
        batch = to_batch([text])
        with torch.no_grad():
            states = bert(**batch)[0]
        rows.append(mean_pool(states, batch["input_ids"], batch["attention_mask"], SPECIAL))
    return torch.cat(rows)
""",
        },
    ),
    RightAnswer(
        "right_with_other_defaults_and_helpers",
        "gives arguments other default values where the text leaves none, and shares a forward pass",
        {
            "to-batch": """import re


def to_batch(texts, max_length=128):
    inputs, known = [], {*VOCAB}
    for text in texts:
        ids = []
        for part in re.split(r"(\\[MASK\\])", text):
            if part == "[MASK]":
                ids.append(MASK)
            else:
                ids.extend(PLACE.get(piece, UNK) for piece, _, _ in encode(part, known))
        inputs.append(pair_input(ids, None, cls_id=CLS, sep_id=SEP, max_length=max_length))
    batch = make_batch(inputs, pad_id=PAD)
    return {name: tensor.to(device) for name, tensor in batch.items()}
""",
            "fill-the-hole": """def states_of(bert, texts):
    batch = to_batch(texts)
    with torch.no_grad():
        return bert(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])[0], batch


def fill_mask(bert, head, text, most=4):
    if text.count("[MASK]") < 1 or text.count("[MASK]") > 1:
        raise ValueError(f"{text!r} must have one [MASK]")
    states, batch = states_of(bert, [text])
    hole = (batch["input_ids"][0] == MASK).nonzero()[0, 0]
    with torch.no_grad():
        logits = head(states[0, hole])
    allowed = torch.tensor([i not in SPECIAL for i in range(len(VOCAB))], device=device)
    chances = masked_softmax(logits[None], allowed[None])[0]
    order = chances.argsort(descending=True, stable=True)[:most].tolist()
    return [(VOCAB[i], float(chances[i])) for i in order]
""",
            "embed": """def embed_texts(bert, texts):
    ids = to_batch(texts)
    with torch.no_grad():
        states, _ = bert(ids["input_ids"], ids["attention_mask"], ids["token_type_ids"])
        return mean_pool(states, ids["input_ids"], ids["attention_mask"], (PAD, UNK, CLS, SEP, MASK))
""",
        },
    ),
    RightAnswer(
        "right_by_whole_matrices",
        "uses cosines for the search, and the gather of whole rows",
        {
            "make-head": """def make_head(sizes, tensors):
    t = {name: value.to(device) for name, value in tensors.items()}
    prefix = "cls.predictions."
    norm = LayerNorm(sizes["hidden_size"], sizes["layer_norm_eps"]).to(device)
    norm.gain.data = t[prefix + "transform.LayerNorm.weight"].clone()
    norm.offset.data = t[prefix + "transform.LayerNorm.bias"].clone()

    def head(hidden, only=slice(None)):
        only = slice(None) if only is None else only
        dense = torch.nn.functional.linear(
            hidden, t[prefix + "transform.dense.weight"], t[prefix + "transform.dense.bias"]
        )
        table, bias = t["bert.embeddings.word_embeddings.weight"], t[prefix + "bias"]
        return torch.nn.functional.linear(norm(gelu(dense)), table[only], bias[only])

    return head
""",
            "accuracy": """def masked_accuracy(bert, head, texts, seed=0, batch_size=16):
    generator, counts = torch.Generator().manual_seed(seed), [0, 0]
    while texts:
        now, texts = texts[:batch_size], texts[batch_size:]
        batch = to_batch(now)
        ids, labels = mask_tokens(batch.pop("input_ids").cpu(), SPECIAL, MASK, len(VOCAB), generator)
        with torch.inference_mode():
            logits, wanted = masked_logits(head, bert(ids.to(device), **batch)[0], labels.to(device))
            counts[0] += int(logits.max(dim=-1).indices.eq(wanted).sum())
        counts[1] += wanted.numel()
    return counts[0] / counts[1]
""",
            "find-alike": """def find_alike(bert, query, texts, most=3, same=None):
    table = cosines(embed_texts(bert, [query, *texts])).tolist()
    order = sorted(range(1, len(table)), key=lambda n: (-table[0][n], n))
    left = []
    while order and len(left) < most:
        left.append(order.pop(0))
        if same is not None:
            order = [n for n in order if table[left[-1]][n] < same]
    return [(texts[n - 1], table[0][n]) for n in left]
""",
        },
    ),
]

# Written on 28 November 2026, from the task's text alone, too.
MUTANTS += [
    Fresh(
        "softmax_shifted_by_masked_maximum",
        "a hand-made softmax is shifted by the maximum of all scores, the masked ones among them, so that it is 0/0 = nan where a masked score is far above the allowed ones",
        "numerics",
        "together-blocks",
        {
            "blocks": (
                '    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)',
                "    shares = torch.exp(scores - scores.max(dim=-1, keepdim=True).values) * mask\n    return shares / shares.sum(dim=-1, keepdim=True)",
            )
        },
    ),
    Fresh(
        "norm_variance_without_gradient",
        "LayerNorm takes the variance of hidden.detach(): the values are right, the gradient lacks the part that runs through the variance",
        "gradient",
        "head-logits",
        {
            "blocks": (
                "variance = hidden.var(dim=-1, correction=0, keepdim=True)",
                "variance = hidden.detach().var(dim=-1, correction=0, keepdim=True)",
            )
        },
    ),
    Fresh(
        "longest_piece_of_empty_vocab",
        "encode_word limits its search by max(map(len, vocab)), which is an error for an empty vocabulary instead of [UNK]",
        "legal input",
        "together-tokens",
        {
            "tokens": (
                "    pieces, start = [], 0\n    while start < len(word):\n        for end in range(len(word), start, -1):",
                "    pieces, start = [], 0\n    longest = max(map(len, vocab))\n    while start < len(word):\n        for end in range(min(len(word), start + longest), start, -1):",
            )
        },
    ),
    Fresh(
        "word_of_just_max_length_unknown",
        "a word of exactly max_length characters is already [UNK]",
        "cut-off",
        "together-tokens",
        {"tokens": ("if len(word) > max_length:", "if len(word) >= max_length:")},
    ),
    Fresh(
        "span_end_is_start_plus_length",
        "encode takes the end of a piece as its start plus its length, wrong where one typed character becomes several (Hangul, ligatures) or none (accents typed by themselves, soft hyphens)",
        "legal input",
        "together-tokens",
        {
            "tokens": (
                "encoded.append((piece, spans[place][0], spans[place + length - 1][1]))",
                "encoded.append((piece, spans[place][0], spans[place][0] + length))",
            )
        },
    ),
    Fresh(
        "full_block_of_filling_added",
        "make_batch adds a whole further `multiple` where the longest sequence is a multiple already",
        "cut-off",
        "together-model",
        {
            "model": (
                "    longest += -longest % multiple\n",
                "    if multiple > 1:\n        longest += multiple - longest % multiple\n",
            )
        },
    ),
    Fresh(
        "real_piece_with_pad_id_masked",
        "make_batch makes the attention mask by comparing ids with pad_id, so that a real piece that has this id is not attended to",
        "legal input",
        "together-model",
        {
            "model": (
                'batch["attention_mask"].append([True] * len(ids) + [False] * filling)',
                'batch["attention_mask"].append([number != pad_id for number in ids] + [False] * filling)',
            )
        },
    ),
    Fresh(
        "depth_zero_runs_all_layers",
        "depth=0 is falsy and runs all layers",
        "cut-off",
        "together-model",
        {
            "model": (
                "for layer in self.layers[:depth]:",
                "for layer in self.layers[: depth or None]:",
            )
        },
    ),
    Fresh(
        "parameters_share_memory_with_checkpoint",
        "load_published sets parameter.data to the tensors of the checkpoint itself: training the model changes the checkpoint and every model and head made of it, and a half-precision file changes the dtype of the model",
        "state",
        "together-model",
        {"model": ("parameter.copy_(found[name])", "parameter.data = found[name]")},
    ),
    Fresh(
        "special_ids_taken_for_the_first",
        "mask_tokens draws its random words from len(special_ids) on, right only where the special ids are 0, 1, 2, ...",
        "hard-wired",
        "together-holes",
        {
            "holes": (
                "drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]",
                "drawn = torch.randint(\n        len(special_ids), vocab_size, input_ids.shape, generator=generator\n    )",
            )
        },
    ),
    Fresh(
        "one_lot_for_a_whole_text",
        "the lot that says masked, swapped or kept is drawn once for each text, so that all its chosen words share one fate",
        "chance",
        "together-holes",
        {
            "holes": (
                "lot = torch.rand(input_ids.shape, generator=generator)",
                "lot = torch.rand(len(input_ids), 1, generator=generator).expand(input_ids.shape)",
            )
        },
    ),
    Fresh(
        "head_not_called_without_holes",
        "masked_logits has no portion where nobody asks: torch.cat of an empty list is an error",
        "legal input",
        "together-holes",
        {
            "holes": (
                "    portions = rows.split(most or max(len(rows), 1))\n",
                "    step = most or max(len(rows), 1)\n    portions = [rows[begin : begin + step] for begin in range(0, len(rows), step)]\n",
            )
        },
    ),
    Fresh(
        "cosines_of_short_vectors_shrink",
        "cosines adds 1e-6 to each norm, so that short vectors (uses that differ little from what they have in common) do not even have the cosine 1 with themselves",
        "numerics",
        "together-vectors",
        {
            "vectors": (
                "unit = vectors / vectors.norm(dim=1, keepdim=True)  # [N, D]",
                "unit = vectors / (vectors.norm(dim=1, keepdim=True) + 1e-6)  # [N, D]",
            )
        },
    ),
    Fresh(
        "mean_pool_needs_a_special_id",
        "mean_pool stacks one comparison for each special id, which is an error where there is none",
        "legal input",
        "together-vectors",
        {
            "vectors": (
                "special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))",
                "special = torch.stack([input_ids == number for number in special_ids]).any(dim=0)",
            )
        },
    ),
    Fresh(
        "half_scores_become_float32",
        "search starts with an empty float32 tensor, so that the scores of half-precision queries come out as float32",
        "numerics",
        "together-vectors",
        {
            "vectors": (
                "scores = queries.new_empty(len(queries), 0)",
                "scores = torch.empty(len(queries), 0, device=queries.device)",
            )
        },
    ),
    Fresh(
        "loaded_parameters_frozen",
        "load_bert switches the gradients of its parameters off together with the dropout",
        "gradient",
        "published-states",
        {
            "load-model": (
                "return model.to(device).eval()",
                "return model.to(device).eval().requires_grad_(False)",
            )
        },
    ),
    Fresh(
        "model_remembered_by_sizes",
        "load_bert keeps the models it has made, by their sizes: other numbers of the same sizes give the old model, and two calls give one and the same model",
        "state",
        "published-states",
        {
            "load-model": 'MADE = {}\n\n\ndef load_bert(sizes, tensors):\n    """A BertModel with published numbers.\n\n    sizes:   dict with the fields of BertConfig, without dropout\n    tensors: dict, published name -> tensor\n    returns a BertModel on device, in evaluation\n    """\n    key = tuple(sorted(sizes.items()))\n    if key not in MADE:\n        MADE[key] = BertModel(BertConfig(**sizes))\n        load_published(MADE[key], tensors)\n    return MADE[key].to(device).eval()\n'
        },
    ),
    Fresh(
        "only_first_mask_found",
        "to_batch cuts a text at its first [MASK] alone; a second one becomes [, mask and ]",
        "legal input",
        "published-ids",
        {
            "to-batch": (
                'enumerate(text.split("[MASK]"))',
                'enumerate(text.split("[MASK]", 1))',
            )
        },
    ),
    Fresh(
        "long_text_loses_its_sep",
        "to_batch puts [CLS] and [SEP] around and cuts afterwards, so that a text that is too long has no [SEP]",
        "cut-off",
        "published-ids",
        {
            "to-batch": (
                "        inputs.append(pair_input(ids, None, CLS, SEP, max_length))\n",
                "        ids = [CLS, *ids, SEP][:max_length]\n        inputs.append((ids, [0] * len(ids)))\n",
            )
        },
    ),
    Fresh(
        "all_special_names_in_text_obeyed",
        "a text that says [SEP], [CLS], [PAD] or [UNK] gets the special id, though only [MASK] is an exception from encode",
        "legal input",
        "published-ids",
        {
            "to-batch": (
                '        for number, part in enumerate(text.split("[MASK]")):\n            ids += [MASK] * (number > 0)\n            ids += [PLACE[piece] for piece, _, _ in encode(part, pieces)]\n',
                '        names = {"[PAD]": PAD, "[UNK]": UNK, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": MASK}\n        for name in names:\n            text = text.replace(name, f"\\0{name}\\0")\n        for part in text.split("\\0"):\n            if part in names:\n                ids.append(names[part])\n            else:\n                ids += [PLACE[piece] for piece, _, _ in encode(part, pieces)]\n',
            )
        },
    ),
    Fresh(
        "no_pieces_asked_gives_all",
        "with an empty `only` the head gives the logits of all V pieces instead of none",
        "cut-off",
        "head-logits",
        {
            "make-head": (
                "(E, c) if only is None else (E[only], c[only])",
                "(E, c) if only is None or len(only) == 0 else (E[only], c[only])",
            )
        },
    ),
    Fresh(
        "head_flattens_and_reshapes",
        "the head flattens to [N, D] and reshapes back with -1: one state [D] is an error, and so are no states [0, D]",
        "legal input",
        "head-logits",
        {
            "make-head": (
                "        return norm(gelu(hidden @ W.T + b)) @ rows.T + biases\n",
                "        states = hidden.flatten(0, -2)  # [N, D]\n        logits = norm(gelu(states @ W.T + b)) @ rows.T + biases\n        return logits.reshape(*hidden.shape[:-1], -1)\n",
            )
        },
    ),
    Fresh(
        "mask_itself_may_be_proposed",
        "the special ids are left out as allowed[:MASK], which is one too few: [MASK] stays a candidate and takes its share",
        "cut-off",
        "fill-guesses",
        {"fill-the-hole": ("allowed[list(SPECIAL)] = False", "allowed[:MASK] = False")},
    ),
    Fresh(
        "gradients_stay_switched_off",
        "fill_mask calls torch.set_grad_enabled(False) and never switches it on again: after the first guess nothing can be trained any more",
        "state",
        "fill-guesses",
        {
            "fill-the-hole": (
                '    with torch.no_grad():\n        states, _ = bert(**batch)\n        logits = head(states[batch["input_ids"] == MASK])[0]  # [V]\n',
                '    torch.set_grad_enabled(False)\n    states, _ = bert(**batch)\n    logits = head(states[batch["input_ids"] == MASK])[0]  # [V]\n',
            )
        },
    ),
    Fresh(
        "special_share_not_given_back",
        "the softmax is over all pieces and the special ones are struck out afterwards, so that the others add up to less than 1",
        "numerics",
        "fill-guesses",
        {
            "fill-the-hole": (
                "masked_softmax(logits, allowed).topk(most)",
                "(masked_softmax(logits) * allowed).topk(most)",
            )
        },
    ),
    Fresh(
        "mean_of_batch_shares",
        "masked_accuracy returns the mean of the shares of the batches, in which a small last batch weighs as much as a full one",
        "numerics",
        "score-held-out",
        {
            "accuracy": (
                "        right += (logits.argmax(dim=-1) == true).sum().item()\n        asked += len(true)\n",
                "        right += (logits.argmax(dim=-1) == true).double().mean().item()\n        asked += 1\n",
            )
        },
    ),
    Fresh(
        "guess_never_special",
        "the guess is the best of the ordinary pieces, so that a head that prefers a special token is right all the same",
        "legal input",
        "score-held-out",
        {
            "accuracy": (
                "(logits.argmax(dim=-1) == true)",
                "(logits[:, len(SPECIAL) :].argmax(dim=-1) + len(SPECIAL) == true)",
            )
        },
    ),
    Fresh(
        "swapped_words_shown_as_they_were",
        "the model sees the true piece where mask_tokens had swapped it for a random one; only [MASK] is taken over from the masked ids",
        "leak",
        "score-held-out",
        {
            "accuracy": (
                "masked.to(device), batch",
                'masked.where(masked == MASK, batch["input_ids"].cpu()).to(device), batch',
            )
        },
    ),
    Fresh(
        "states_after_two_layers",
        "embed_texts asks for depth=2, which is the last layer of this checkpoint only",
        "hard-wired",
        "sentences-vectors",
        {"embed": ("states, _ = bert(**batch)", "states, _ = bert(**batch, depth=2)")},
    ),
    Fresh(
        "vectors_remembered_by_text",
        "embed_texts keeps the vectors it has made by their text, so that another or a trained model gets those of the first",
        "state",
        "sentences-vectors",
        {
            "embed": 'KNOWN_VECTORS = {}\n\n\ndef embed_texts(bert, texts):\n    """One vector for each text.\n\n    bert:  from load_bert\n    texts: list of strings\n    returns float [N, D] on device\n    """\n    new = [text for text in dict.fromkeys(texts) if text not in KNOWN_VECTORS]\n    if new:\n        batch = to_batch(new)\n        with torch.no_grad():\n            states, _ = bert(**batch)\n        pooled = mean_pool(states, batch["input_ids"], batch["attention_mask"], SPECIAL)\n        KNOWN_VECTORS.update(zip(new, pooled))\n    return torch.stack([KNOWN_VECTORS[text] for text in texts])\n'
        },
    ),
    Fresh(
        "holes_and_unknown_count_as_words",
        "mean_pool gets [CLS] and [SEP] as the only special ids, so that [MASK] and [UNK] are averaged in",
        "hard-wired",
        "sentences-vectors",
        {
            "embed": (
                'batch["attention_mask"], SPECIAL)',
                'batch["attention_mask"], (CLS, SEP))',
            )
        },
    ),
    Fresh(
        "compared_with_passed_over_too",
        "a text is passed over, too, if it is like one that was itself passed over and never taken",
        "legal input",
        "sentences-alike",
        {
            "find-alike": (
                "    for n, score in zip(indices[0].tolist(), scores[0].tolist()):\n        if same is None or all(table[n, m] < same for m, _ in taken):\n            taken.append((n, score))\n",
                "    seen = []\n    for n, score in zip(indices[0].tolist(), scores[0].tolist()):\n        if same is None or all(table[n, m] < same for m in seen):\n            taken.append((n, score))\n        seen.append(n)\n",
            )
        },
    ),
    Fresh(
        "only_twice_most_looked_at",
        "only the 2 * most nearest texts are searched, so that too few are left where a text is repeated more often",
        "cut-off",
        "sentences-alike",
        {
            "find-alike": (
                "search(embed_texts(bert, [query]), vectors, len(texts), 1000)",
                "search(embed_texts(bert, [query]), vectors, 2 * most, 1000)",
            )
        },
    ),
    Fresh(
        "repeated_texts_collapse_without_same",
        "the hits go through a dict by text, so that a text that stands in the list twice is given once, though same is None",
        "legal input",
        "sentences-alike",
        {
            "find-alike": (
                "return [(texts[n], score) for n, score in taken[:most]]",
                "return list({texts[n]: score for n, score in taken}.items())[:most]",
            )
        },
    ),
    Fresh(
        "check_forgives_errors_of_the_call",
        "the check takes an error that comes out of the call for an input that need not work, and goes on",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                "        found = implementation(*given)\n",
                "        try:\n            found = implementation(*given)\n        except Exception:\n            return\n",
            )
        },
    ),
    Fresh(
        "check_uses_a_negative_id",
        "the check has a true piece of id -1 that must count, so that a right implementation that takes labels >= 0 for those that count is refused",
        "legal input",
        "check-refuses",
        {
            "own-check": (
                "    labels = [[4, 9, -100], [-100, 4, 0], [7, -100, 6], [5, 6, 7], [-100, -100, -100]]\n    first = [[4, 9, 8],",
                "    labels = [[4, -1, -100], [-100, 4, 0], [7, -100, 6], [5, 6, 7], [-100, -100, -100]]\n    first = [[4, -1, 8],",
            )
        },
    ),
]
RIGHT_ANSWERS += [
    RightAnswer(
        "tokens_by_what_is_left",
        "encode_word eats the rest of the word with next(), encode accumulates the lengths; to_batch fills with pad_sequence",
        {
            "tokens": 'def encode_word(word, vocab, max_length=100, mark="##"):\n    """Cut a word into pieces, the longest first."""\n    if len(word) > max_length:\n        return ["[UNK]"]\n    found, rest = [], word\n    while rest:\n        prefix = mark if found else ""\n        size = next((n for n in range(len(rest), 0, -1) if prefix + rest[:n] in vocab), None)\n        if size is None:\n            return ["[UNK]"]\n        found.append(prefix + rest[:size])\n        rest = rest[size:]\n    return found\n\n\ndef encode(text, vocab, max_length=100, mark="##"):\n    """Cut a text into pieces, each with its place in the text."""\n    result = []\n    for word, spans in split_words(text):\n        pieces = encode_word(word, vocab, max_length, mark)\n        if pieces == ["[UNK]"]:\n            result.append(("[UNK]", spans[0][0], spans[-1][1]))\n            continue\n        sizes = [len(piece) - (len(mark) if n else 0) for n, piece in enumerate(pieces)]\n        ends = list(itertools.accumulate(sizes))\n        for piece, begin, end in zip(pieces, [0, *ends], ends):\n            result.append((piece, spans[begin][0], spans[end - 1][1]))\n    return result\n',
            "to-batch": 'def to_batch(texts, max_length=128):\n    """Texts to a batch for BertModel."""\n    import re\n\n    known = frozenset(VOCAB)\n\n    def ids_of(text):\n        for part in re.split(r"(\\[MASK\\])", text):\n            if part == "[MASK]":\n                yield MASK\n            else:\n                for piece, *_ in encode(part, known):\n                    yield PLACE[piece]\n\n    joined = [pair_input(list(ids_of(text)), None, CLS, SEP, max_length) for text in texts]\n    pad = torch.nn.utils.rnn.pad_sequence\n    ids = pad([torch.tensor(row) for row, _ in joined], batch_first=True, padding_value=PAD)\n    types = pad([torch.tensor(row) for _, row in joined], batch_first=True, padding_value=0)\n    lengths = torch.tensor([len(row) for row, _ in joined])\n    real = torch.arange(ids.shape[1]) < lengths[:, None]\n    return {\n        "input_ids": ids.to(device),\n        "token_type_ids": types.to(device),\n        "attention_mask": real.to(device),\n    }\n',
        },
    ),
    RightAnswer(
        "holes_by_bernoulli",
        "mask_tokens with bernoulli, one lot of ten and torch.where; masked_logits by places and a loop; masked_loss by indexing; the accuracy from two lists",
        {
            "holes": 'def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):\n    """Make holes."""\n    special = torch.zeros_like(input_ids, dtype=torch.bool)\n    for number in special_ids:\n        special |= input_ids == number\n    chance = torch.full(input_ids.shape, float(rate), dtype=torch.float64)\n    chosen = torch.bernoulli(chance.masked_fill(special, 0.0), generator=generator).bool()\n    fate = torch.randint(10, input_ids.shape, generator=generator)  # 0-7 hidden, 8 swapped, 9 kept\n    words = torch.tensor(sorted(set(range(vocab_size)) - set(special_ids)))\n    other = words[torch.randint(len(words), input_ids.shape, generator=generator)]\n    seen = torch.where(chosen & (fate == 8), other, input_ids)\n    seen = torch.where(chosen & (fate < 8), torch.full_like(input_ids, mask_id), seen)\n    return seen, torch.where(chosen, input_ids, torch.full_like(input_ids, IGNORE))\n\n\ndef masked_logits(head, hidden, labels, most=None):\n    """Logits at the chosen positions, and at no other."""\n    where = (labels != IGNORE).nonzero(as_tuple=True)\n    states = hidden[where]  # [N, D]\n    step = most if most is not None else max(len(states), 1)\n    results = [head(states[:step])]\n    for begin in range(step, len(states), step):\n        results.append(head(states[begin : begin + step]))\n    return torch.cat(results, dim=0), labels[where]\n\n\ndef masked_loss(logits, labels):\n    """Mean loss over chosen positions."""\n    asked = labels.ne(IGNORE)\n    true = labels[asked]  # [N]\n    table = torch.log_softmax(logits[asked], dim=-1)  # [N, V]\n    picked = table[torch.arange(len(true), device=true.device), true]\n    return picked.sum().neg() / max(len(true), 1)\n',
            "accuracy": 'def masked_accuracy(bert, head, texts, seed=0, batch_size=16):\n    """Share of hidden pieces that are guessed."""\n    random = torch.Generator()\n    random.manual_seed(seed)\n    hits = []\n    waiting = list(texts)\n    while waiting:\n        portion, waiting = waiting[:batch_size], waiting[batch_size:]\n        batch = to_batch(portion)\n        seen, labels = mask_tokens(\n            batch["input_ids"].cpu(), SPECIAL, MASK, len(VOCAB), random\n        )\n        batch["input_ids"] = seen.to(device)\n        labels = labels.to(device)\n        asked = labels != IGNORE\n        with torch.no_grad():\n            hidden = bert(**batch)[0]\n            guesses = head(hidden[asked]).max(dim=-1).indices\n        hits += (guesses == labels[asked]).tolist()\n    return sum(hits) / len(hits)\n',
        },
    ),
    RightAnswer(
        "search_merges_blocks_at_the_end",
        "search keeps the best of each block and sorts once at the end; mean_pool with masked_fill; cosines with einsum; find_alike strikes out what is like a taken text",
        {
            "vectors": 'def cosines(vectors, common=None):\n    """The cosine of each use with each, without what they have in common."""\n    moved = vectors if common is None else vectors - common[None]\n    lengths = torch.linalg.vector_norm(moved, dim=-1)  # [N]\n    unit = moved / lengths[:, None]\n    return torch.einsum("id,jd->ij", unit, unit)\n\n\ndef mean_pool(hidden, input_ids, attention_mask, special_ids):\n    """Mean of the words of each text."""\n    keep = attention_mask.clone()\n    for number in special_ids:\n        keep = keep & (input_ids != number)\n    total = hidden.masked_fill(~keep[..., None], 0.0).sum(dim=1)  # [B, D]\n    count = keep.sum(dim=1, keepdim=True).clamp(min=1)  # [B, 1]\n    return total / count.to(hidden.dtype)\n\n\ndef search(queries, collection, k, block):\n    """The k nearest vectors of each query, the nearest first."""\n\n    def unit(rows):\n        return torch.nn.functional.normalize(rows, dim=-1)\n\n    def best(scores, indices):\n        scores, order = torch.sort(scores, dim=1, descending=True, stable=True)\n        return scores[:, :k], indices.gather(1, order[:, :k])\n\n    asked, total = unit(queries), len(collection)\n    scores = [asked.new_zeros(len(asked), 0)]\n    indices = [torch.zeros(len(asked), 0, dtype=torch.int64, device=asked.device)]\n    for begin in range(0, total, block):\n        end = min(begin + block, total)\n        places = torch.arange(begin, end, device=asked.device).repeat(len(asked), 1)\n        found = best(asked @ unit(collection[begin:end]).transpose(0, 1), places)\n        scores.append(found[0])\n        indices.append(found[1])\n    return best(torch.cat(scores, dim=1), torch.cat(indices, dim=1))\n',
            "find-alike": 'def find_alike(bert, query, texts, most=3, same=None):\n    """The texts that are most alike to a query."""\n    vectors = embed_texts(bert, texts)\n    scores, order = search(embed_texts(bert, [query]), vectors, len(texts), 256)\n    struck = torch.zeros(len(texts), dtype=torch.bool, device=vectors.device)\n    alike = cosines(vectors)\n    hits = []\n    for score, n in zip(scores.flatten().tolist(), order.flatten().tolist()):\n        if len(hits) >= most:\n            break\n        if struck[n]:\n            continue\n        hits.append((texts[n], score))\n        if same is not None:\n            struck |= alike[:, n] >= same\n    return hits\n',
        },
    ),
    RightAnswer(
        "attention_by_einsum",
        "attention with einsum and no transposes, GELU factored otherwise, the sink by cat, the norm with var_mean and rsqrt, the head with linear, fill_mask over the ordinary ids alone",
        {
            "model": (
                '        B, T, D = hidden.shape\n        query, key, value = (\n            projected(hidden).reshape(B, T, self.num_heads, -1).transpose(1, 2)  # [B, H, T, N]\n            for projected in (self.query, self.key, self.value)\n        )\n        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # [B, H, T, T]\n        if bias is not None:\n            scores = scores + bias\n        if attention_mask is not None:\n            scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))\n        weights = scores.softmax(dim=-1)\n        context = self.dropout(weights) @ value  # [B, H, T, N]\n        return context.transpose(1, 2).reshape(B, T, D), weights\n\n\ndef gelu(x):\n    """GELU of each number.\n\n    Example: [-1., 0., 1.] -> [-0.1587, 0., 0.8413]\n    """\n    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n',
                '        H = self.num_heads\n        B, T, D = hidden.shape\n        query = self.query(hidden).view(B, T, H, D // H)\n        key = self.key(hidden).view(B, T, H, D // H)\n        value = self.value(hidden).view(B, T, H, D // H)\n        scores = torch.einsum("bqhn,bkhn->bhqk", query, key) * (D // H) ** -0.5\n        if bias is not None:\n            scores = scores + bias\n        if attention_mask is not None:\n            filling = attention_mask.logical_not().view(B, 1, 1, T)\n            scores = scores.masked_fill(filling, -math.inf)\n        weights = torch.softmax(scores, dim=3)\n        context = torch.einsum("bhqk,bkhn->bqhn", self.dropout(weights), value)\n        return context.flatten(2), weights\n\n\ndef gelu(x):\n    """GELU of each number: x times the chance that a standard normal number is below it."""\n    below = 0.5 + 0.5 * torch.erf(x * math.sqrt(0.5))\n    return x * below\n',
            ),
            "blocks": 'def masked_softmax(scores, mask=None, sink=None):\n    """Softmax over the last dimension; masked positions get weight exactly 0."""\n    if mask is not None:\n        mask = mask.expand_as(scores)\n        if sink is None and (~mask).all(dim=-1).any():\n            raise ValueError("a row has no position that may be attended to")\n        scores = torch.where(mask, scores, torch.full_like(scores, -math.inf))\n    if sink is None:\n        return scores.softmax(dim=-1)\n    column = scores.new_full((*scores.shape[:-1], 1), sink)\n    weights = torch.cat((column, scores), dim=-1).softmax(dim=-1)\n    return weights[..., 1:]\n\n\nclass LayerNorm(torch.nn.Module):\n    def __init__(self, dim, eps=1e-5, centred=True):\n        super().__init__()\n        self.eps = eps\n        self.centred = centred\n        self.gain = torch.nn.Parameter(torch.ones(dim))\n        self.offset = torch.nn.Parameter(torch.zeros(dim))\n\n    def forward(self, hidden):\n        if self.centred:\n            spread, mean = torch.var_mean(hidden, dim=-1, correction=0, keepdim=True)\n            moved = hidden - mean\n        else:\n            spread = hidden.pow(2).mean(dim=-1, keepdim=True)\n            moved = hidden\n        return moved * torch.rsqrt(spread + self.eps) * self.gain + self.offset\n',
            "make-head": 'def make_head(sizes, tensors):\n    """The head that guesses words."""\n    here = {\n        name: tensor.to(device)\n        for name, tensor in tensors.items()\n        if name.startswith("cls.predictions.")\n    }\n    table = tensors["bert.embeddings.word_embeddings.weight"].to(device)\n    before = "cls.predictions.transform."\n    norm = LayerNorm(sizes["hidden_size"], sizes["layer_norm_eps"]).to(device)\n    norm.gain.data.copy_(here[before + "LayerNorm.weight"])\n    norm.offset.data.copy_(here[before + "LayerNorm.bias"])\n\n    def head(hidden, only=None):\n        dense = torch.nn.functional.linear(\n            hidden, here[before + "dense.weight"], here[before + "dense.bias"]\n        )\n        expected = norm(gelu(dense))\n        rows, offsets = table, here["cls.predictions.bias"]\n        if only is not None:\n            rows, offsets = rows.index_select(0, only), offsets.index_select(0, only)\n        return torch.matmul(expected, rows.t()) + offsets\n\n    return head\n',
            "fill-the-hole": 'def fill_mask(bert, head, text, most=4):\n    """Guess the hidden word."""\n    if len(text.split("[MASK]")) != 2:\n        raise ValueError(f"{text!r} must have one [MASK]")\n    batch = to_batch([text])\n    hole = batch["input_ids"][0].tolist().index(MASK)\n    with torch.no_grad():\n        hidden, _ = bert(**batch)\n        logits = head(hidden[:, hole]).squeeze(0)  # [V]\n    words = [number for number in range(len(VOCAB)) if number not in SPECIAL]\n    chances = logits[torch.tensor(words, device=device)].softmax(dim=0).tolist()\n    ranked = sorted(zip(chances, words), key=lambda pair: pair[0], reverse=True)\n    return [(VOCAB[number], chance) for chance, number in ranked[:most]]\n',
        },
    ),
]

# Written in November 2026 from the released notebook and the model answers alone.
MUTANTS += [
    # ----- blocks
    Fresh(
        "softmax_masks_with_a_large_negative_number",
        "Masked scores become -1e9 instead of -inf, so their weight is not 0 where the allowed scores are as low.",
        "numerics",
        "together-blocks",
        {"blocks": ('float("-inf")', "-1e9")},
    ),
    Fresh(
        "softmax_refuses_an_empty_row_with_a_sink",
        "Raises the ValueError for a row without an allowed position although there is a sink, which takes all.",
        "legal input",
        "together-blocks",
        {
            "blocks": (
                "    if sink is not None:  # one more position",
                """    if mask is not None and not mask.expand_as(scores).any(dim=-1).all():
        raise ValueError("a row of the mask allows no position")
    if sink is not None:  # one more position""",
            )
        },
    ),
    # ----- tokens
    Fresh(
        "encode_does_not_pass_max_length_on",
        "encode leaves max_length at 100, whatever it is given.",
        "hard-wired",
        "together-tokens",
        {
            "tokens": (
                "encode_word(word, vocab, max_length, mark):",
                "encode_word(word, vocab, mark=mark):",
            )
        },
    ),
    Fresh(
        "encode_end_is_start_plus_length",
        "Computes the end of a piece as its start plus its length, which is wrong where characters of the text leave nothing or several behind (combining accents, zero-width ones).",
        "legal input",
        "together-tokens",
        {"tokens": ("spans[place + length - 1][1]", "spans[place][0] + length")},
    ),
    # ----- model
    Fresh(
        "pair_forgets_further_separators_in_the_length",
        "Does not count the further [SEP] of `between` when it cuts, so the sequence is longer than max_length.",
        "cut-off",
        "together-model",
        {"model": (" + extra > max_length:", " > max_length:")},
    ),
    Fresh(
        "depth_zero_runs_all_layers_2",
        "Takes depth 0 as if it were None, so all layers run instead of none.",
        "cut-off",
        "together-model",
        {"model": ("self.layers[:depth]", "self.layers[: depth or None]")},
    ),
    Fresh(
        "load_shares_memory_with_the_file",
        "Makes the parameters share memory with the tensors that it is given, so training changes those, and every other model that was loaded from them.",
        "state",
        "together-model",
        {"model": ("parameter.copy_(found[name])", "parameter.data = found[name]")},
    ),
    Fresh(
        "load_copies_before_it_has_looked_at_all",
        "Copies each tensor as soon as it is found, so the model is half changed when a later one is missing.",
        "state",
        "together-model",
        {
            "model": (
                """        found[name] = value
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found[name])
""",
                """        with torch.no_grad():
            parameter.copy_(value)
        found[name] = value
""",
            )
        },
    ),
    # ----- holes
    Fresh(
        "holes_lot_from_the_global_generator",
        "Draws what becomes of a chosen piece from torch's global generator instead of `generator`, so two runs with one seed differ.",
        "chance",
        "together-holes",
        {
            "holes": (
                "lot = torch.rand(input_ids.shape, generator=generator)",
                "lot = torch.rand(input_ids.shape)",
            )
        },
    ),
    Fresh(
        "loss_logarithm_of_a_softmax",
        "Takes the logarithm of the softmax, which is infinite where a probability is rounded to 0.",
        "numerics",
        "together-holes",
        {
            "holes": (
                "logits[chosen].log_softmax(dim=-1)",
                "logits[chosen].softmax(dim=-1).log()",
            )
        },
    ),
    # ----- vectors
    Fresh(
        "search_keeps_no_more_than_a_block",
        "Keeps no more hits than a block has vectors, so with k greater than block there are too few.",
        "cut-off",
        "together-vectors",
        {
            "vectors": (
                "        scores, indices = scores[:, :k], indices.gather(1, order)[:, :k]\n",
                """        keep = min(k, block)
        scores, indices = scores[:, :keep], indices.gather(1, order)[:, :keep]
""",
            )
        },
    ),
    Fresh(
        "cosines_length_without_gradient",
        "Takes the lengths as constants, so the gradient of the cosines has a part along each vector.",
        "gradient",
        "together-vectors",
        {
            "vectors": (
                "unit = vectors / vectors.norm(dim=1, keepdim=True)",
                "unit = vectors / vectors.norm(dim=1, keepdim=True).detach()",
            )
        },
    ),
    # ----- load-model
    Fresh(
        "load_bert_freezes_the_parameters",
        "Switches requires_grad off, although the parameters can still be trained.",
        "gradient",
        "published-states",
        {
            "load-model": (
                "model.to(device).eval()",
                "model.to(device).eval().requires_grad_(False)",
            )
        },
    ),
    # ----- to-batch
    Fresh(
        "to_batch_cuts_before_the_special_tokens",
        "Cuts the pieces to max_length before [CLS] and [SEP] come on, so a long text has two ids more than max_length.",
        "cut-off",
        "published-ids",
        {
            "to-batch": (
                "pair_input(ids, None, CLS, SEP, max_length)",
                "pair_input(ids[:max_length], None, CLS, SEP)",
            )
        },
    ),
    Fresh(
        "to_batch_takes_small_mask_for_a_hole",
        "Takes `[mask]` in small letters for [MASK]; the text says that [MASK] alone is one piece, all else is cut by encode.",
        "legal input",
        "published-ids",
        {
            "to-batch": (
                'text.split("[MASK]")',
                'text.replace("[mask]", "[MASK]").split("[MASK]")',
            )
        },
    ),
    # ----- make-head
    Fresh(
        "head_norm_with_its_default_eps",
        "Leaves the eps of the norm at its default instead of the layer_norm_eps of the sizes.",
        "hard-wired",
        "head-logits",
        {
            "make-head": (
                'LayerNorm(sizes["hidden_size"], eps=sizes["layer_norm_eps"])',
                'LayerNorm(sizes["hidden_size"])',
            )
        },
    ),
    Fresh(
        "head_only_without_gradient",
        "With `only` the head runs under no_grad, so no gradient reaches the model below it.",
        "gradient",
        "head-logits",
        {
            "make-head": (
                """        rows, biases = (E, c) if only is None else (E[only], c[only])
        return norm(gelu(hidden @ W.T + b)) @ rows.T + biases
""",
                """        if only is not None:
            with torch.no_grad():
                return norm(gelu(hidden @ W.T + b)) @ E[only].T + c[only]
        return norm(gelu(hidden @ W.T + b)) @ E.T + c
""",
            )
        },
    ),
    # ----- fill-the-hole
    Fresh(
        "fill_probabilities_share_with_special_tokens",
        "Removes the special tokens after the softmax over all pieces, so the probabilities of the others add up to less than 1.",
        "legal input",
        "fill-guesses",
        {
            "fill-the-hole": (
                "masked_softmax(logits, allowed).topk(most)",
                "logits.softmax(dim=-1).masked_fill(~allowed, 0.0).topk(most)",
            )
        },
    ),
    Fresh(
        "fill_counts_holes_after_the_cut",
        "Counts the [MASK] of the batch, which is cut to 128 ids, so a second one far behind the first raises no ValueError.",
        "cut-off",
        "fill-guesses",
        {
            "fill-the-hole": (
                """    if text.count("[MASK]") != 1:
        raise ValueError(f"{text!r} has {text.count('[MASK]')} [MASK]; it needs one")
    batch = to_batch([text])
""",
                """    batch = to_batch([text])
    holes = (batch["input_ids"] == MASK).sum().item()
    if holes != 1:
        raise ValueError(f"{text!r} has {holes} [MASK]; it needs one")
""",
            )
        },
    ),
    # ----- accuracy
    Fresh(
        "accuracy_seeds_each_batch",
        "Makes a generator for each batch, so all batches have their holes in the same places.",
        "chance",
        "score-held-out",
        {
            "accuracy": (
                """    generator = torch.Generator().manual_seed(seed)
    right, asked = 0, 0
    for begin in range(0, len(texts), batch_size):
""",
                """    right, asked = 0, 0
    for begin in range(0, len(texts), batch_size):
        generator = torch.Generator().manual_seed(seed)
""",
            )
        },
    ),
    Fresh(
        "accuracy_guesses_among_the_true_pieces",
        "Lets the model guess among the pieces that the true texts of the batch hold, so it is told which ones are possible.",
        "leak",
        "score-held-out",
        {
            "accuracy": (
                "        right += (logits.argmax(dim=-1) == true).sum().item()\n",
                """        seen = batch["input_ids"].unique()
        right += (seen[logits[:, seen].argmax(dim=-1)] == true).sum().item()
""",
            )
        },
    ),
    Fresh(
        "accuracy_special_tokens_are_no_guess",
        "Takes special tokens out of the guesses, since they are never asked for; a guess is the highest logit of all.",
        "leak",
        "score-held-out",
        {
            "accuracy": (
                "        right += (logits.argmax(dim=-1) == true).sum().item()\n",
                """        logits[:, list(SPECIAL)] = -math.inf
        right += (logits.argmax(dim=-1) == true).sum().item()
""",
            )
        },
    ),
    Fresh(
        "accuracy_always_sixteen_texts",
        "Takes 16 texts at a time, whatever batch_size says.",
        "hard-wired",
        "score-held-out",
        {
            "accuracy": (
                """    for begin in range(0, len(texts), batch_size):
        batch = to_batch(texts[begin : begin + batch_size])
""",
                """    for begin in range(0, len(texts), 16):
        batch = to_batch(texts[begin : begin + 16])
""",
            )
        },
    ),
    # ----- embed
    Fresh(
        "embed_counts_unknown_and_mask_as_words",
        "Leaves out [CLS] and [SEP] alone, so [UNK] and [MASK] are counted as words.",
        "legal input",
        "sentences-vectors",
        {"embed": ("SPECIAL)", "(CLS, SEP))")},
    ),
    Fresh(
        "embed_remembers_vectors_by_text",
        "Remembers the vector of each text for later calls, so another model, or one that was trained since, gets the vectors of the first.",
        "state",
        "sentences-vectors",
        {
            "embed": '''def embed_texts(bert, texts):
    """One vector for each text."""
    cache = embed_texts.__dict__.setdefault("cache", {})
    new = [text for text in dict.fromkeys(texts) if text not in cache]
    if new:
        batch = to_batch(new)
        with torch.no_grad():
            states, _ = bert(**batch)
        vectors = mean_pool(states, batch["input_ids"], batch["attention_mask"], SPECIAL)
        cache.update(zip(new, vectors))
    return torch.stack([cache[text] for text in texts])
'''
        },
    ),
    # ----- find-alike
    Fresh(
        "alike_looks_at_ten_times_most",
        "Goes through the 10 * most nearest texts only, so with many texts that say the same it takes fewer than `most`.",
        "cut-off",
        "sentences-alike",
        {"find-alike": ("vectors, len(texts), 1000)", "vectors, 10 * most, 1000)")},
    ),
    Fresh(
        "alike_compares_with_the_last_taken",
        "Compares a text with the one that was taken last, not with all that are taken.",
        "legal input",
        "sentences-alike",
        {"find-alike": ("for m, _ in taken)", "for m, _ in taken[-1:])")},
    ),
    Fresh(
        "alike_compares_with_texts_passed_over",
        "Compares a text with all nearer ones, also with those that were passed over.",
        "legal input",
        "sentences-alike",
        {
            "find-alike": (
                """    for n, score in zip(indices[0].tolist(), scores[0].tolist()):
        if same is None or all(table[n, m] < same for m, _ in taken):
            taken.append((n, score))
""",
                """    nearer = []
    for n, score in zip(indices[0].tolist(), scores[0].tolist()):
        if same is None or all(table[n, m] < same for m in nearer):
            taken.append((n, score))
        nearer.append(n)
""",
            )
        },
    ),
    # ----- own-check
    Fresh(
        "check_overlooks_changed_tensors",
        "Never looks whether labels, first and second are changed.",
        "state",
        "check-refuses",
        {"own-check": ("        assert all(map(torch.equal, given, before))\n", "")},
    ),
    Fresh(
        "check_overlooks_digits_of_a_small_chance",
        "Compares `chance` with an absolute tolerance, so any very small number passes for a very small one.",
        "numerics",
        "check-refuses",
        {
            "own-check": (
                "math.isclose(found[3], wanted[3], rel_tol=1e-9)",
                "abs(found[3] - wanted[3]) < 1e-9",
            )
        },
    ),
    Fresh(
        "check_overlooks_no_texts",
        "Never gives tensors with no row.",
        "cut-off",
        "check-refuses",
        {"own-check": ("for texts in (2, 1, 0):", "for texts in (2, 1):")},
    ),
    Fresh(
        "check_overlooks_a_chance_above_one",
        "Has no case in which as many texts are won as lost, so an implementation without min(1, ...) that knows n = 0 passes.",
        "legal input",
        "check-refuses",
        {"own-check": ("        (3, 3, 0, 1.0),\n", "")},
    ),
]

BLOCKS = '''def masked_softmax(scores, mask=None, sink=None):
    """Softmax over the last dimension; masked positions get weight exactly 0."""
    if mask is not None:
        mask = torch.broadcast_to(mask, scores.shape)
        if sink is None and bool((~mask).all(dim=-1).any()):
            raise ValueError("a row may attend to nothing")
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    if sink is None:
        return torch.nn.functional.softmax(scores, dim=-1)
    last = scores.new_full((*scores.shape[:-1], 1), sink)
    weights = torch.cat([last, scores], dim=-1).softmax(dim=-1)
    return weights[..., 1:]


class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5, centred=True):
        super().__init__()
        self.centred = centred
        self.eps = eps
        self.gain = torch.nn.Parameter(torch.full((dim,), 1.0))
        self.offset = torch.nn.Parameter(torch.full((dim,), 0.0))

    def forward(self, hidden):
        if self.centred:
            hidden = hidden - hidden.mean(dim=-1, keepdim=True)
        size = (hidden * hidden).mean(dim=-1, keepdim=True).add(self.eps).sqrt()
        return hidden / size * self.gain + self.offset
'''

TOKENS = '''def encode_word(word, vocab, max_length=100, mark="##"):
    """Cut a word into pieces, the longest first."""
    if len(word) > max_length:
        return ["[UNK]"]
    pieces, rest = [], word
    while rest:
        front = mark if pieces else ""
        fits = [n for n in range(1, len(rest) + 1) if front + rest[:n] in vocab]
        if not fits:
            return ["[UNK]"]
        pieces.append(front + rest[: fits[-1]])
        rest = rest[fits[-1] :]
    return pieces


def encode(text, vocab, max_length=100, mark="##"):
    """Cut a text into pieces, each with its place in the text."""
    found = []
    for word, spans in split_words(text):
        pieces = encode_word(word, vocab, max_length, mark)
        if pieces == ["[UNK]"]:
            found.append(("[UNK]", spans[0][0], spans[-1][1]))
            continue
        spans = list(spans)
        for number, piece in enumerate(pieces):
            length = len(piece) - (len(mark) if number else 0)
            own, spans = spans[:length], spans[length:]
            found.append((piece, own[0][0], own[-1][1]))
    return found
'''

MODEL = '''def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    """Join one or two segments into the sequence that BERT reads."""
    segments = [first] if second is None else [first, second]
    marks = 2 if second is None else 2 + between
    left = [len(segment) for segment in segments]
    while sum(left) + marks > max_length and any(left):
        shorter = len(left) == 2 and left[1] >= left[0]
        left[1 if shorter else 0] -= 1
    ids = [cls_id, *first[: left[0]], sep_id]
    types = [0] * len(ids)
    if second is not None:
        ids += [sep_id] * (between - 1)
        types += [0] * (between - 1)
        ids += [*second[: left[1]], sep_id]
        types += [1] * (left[1] + 1)
    return ids, types


def make_batch(inputs, pad_id=0, multiple=1):
    """Put sequences of different lengths into tensors."""
    lengths = [len(ids) for ids, _ in inputs]
    T = (max(lengths) + multiple - 1) // multiple * multiple
    input_ids = torch.full((len(inputs), T), pad_id, dtype=torch.int64)
    token_type_ids = torch.zeros(len(inputs), T, dtype=torch.int64)
    for row, (ids, types) in enumerate(inputs):
        input_ids[row, : len(ids)] = torch.tensor(ids, dtype=torch.int64)
        token_type_ids[row, : len(ids)] = torch.tensor(types, dtype=torch.int64)
    attention_mask = torch.arange(T)[None, :] < torch.tensor(lengths)[:, None]
    return {
        "input_ids": input_ids,
        "token_type_ids": token_type_ids,
        "attention_mask": attention_mask,
    }


class BertEmbeddings(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.word = torch.nn.Embedding(config.vocab_size, D)
        self.position = torch.nn.Embedding(config.max_position_embeddings, D)
        self.token_type = torch.nn.Embedding(config.type_vocab_size, D)
        self.norm = torch.nn.LayerNorm(D, eps=config.layer_norm_eps)
        self.dropout = torch.nn.Dropout(p=config.dropout)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        T = input_ids.shape[-1]
        if position_ids is None:
            position_ids = torch.arange(T, device=input_ids.device).expand(input_ids.shape)
        if token_type_ids is None:
            token_type_ids = input_ids * 0
        hidden = self.word(input_ids) + self.token_type(token_type_ids)
        hidden = hidden + self.position(position_ids)
        return self.dropout(self.norm(hidden))


class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query, self.key, self.value = (torch.nn.Linear(D, D) for _ in range(3))
        self.dropout = torch.nn.Dropout(p=config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        B, T, D = hidden.shape
        N = D // self.num_heads
        cut = lambda rows: rows.unflatten(-1, (self.num_heads, N))  # [B, T, H, N]
        query, key, value = cut(self.query(hidden)), cut(self.key(hidden)), cut(self.value(hidden))
        scores = torch.einsum("bthn,bshn->bhts", query, key) * N**-0.5
        scores = scores if bias is None else scores + bias.unsqueeze(0)
        if attention_mask is not None:
            filling = attention_mask.logical_not().reshape(B, 1, 1, T)
            scores = scores.masked_fill(filling, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        context = torch.einsum("bhts,bshn->bthn", self.dropout(weights), value)
        return context.flatten(2), weights


def gelu(x):
    """GELU of each number."""
    return x * (0.5 + 0.5 * torch.erf(x * 0.5**0.5))


class BertLayer(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_output = torch.nn.Linear(D, D)
        self.attention_norm = torch.nn.LayerNorm(D, eps=eps)
        self.intermediate = torch.nn.Linear(D, inner)
        self.output = torch.nn.Linear(inner, D)
        self.output_norm = torch.nn.LayerNorm(D, eps=eps)
        self.dropout = torch.nn.Dropout(p=config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        change = self.attention_output(self.attention(hidden, attention_mask, bias)[0])
        hidden = self.attention_norm(self.dropout(change) + hidden)
        change = self.output(gelu(self.intermediate(hidden)))
        return self.output_norm(self.dropout(change) + hidden)


class Pooler(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden, attention_mask=None):
        first = hidden[:, 0]
        if attention_mask is not None:
            places = attention_mask.long().argmax(dim=1)
            first = torch.stack([row[place] for row, place in zip(hidden, places.tolist())])
        return self.dense(first).tanh()


class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        layers = [BertLayer(config) for _ in range(config.num_hidden_layers)]
        self.layers = torch.nn.ModuleList(layers)
        self.pooler = Pooler(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):
        depth = len(self.layers) if depth is None else depth
        hidden = self.embeddings(input_ids, token_type_ids)
        for number, layer in enumerate(self.layers):
            if number < depth:
                hidden = layer(hidden, attention_mask)
        return hidden, self.pooler(hidden)


OUTSIDE = {
    "embeddings.word": "embeddings.word_embeddings",
    "embeddings.position": "embeddings.position_embeddings",
    "embeddings.token_type": "embeddings.token_type_embeddings",
    "embeddings.norm": "embeddings.LayerNorm",
    "pooler.dense": "pooler.dense",
}
INSIDE = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}


def published_name(name, old=False):
    """The published name of a parameter of BertModel, in a file of today or in an old one."""
    *owner, kind = name.split(".")
    if old and owner[-1].endswith("norm"):
        kind = "gamma" if kind == "weight" else "beta"
    if owner[0] == "layers":
        place = ["encoder", "layer", owner[1], INSIDE[".".join(owner[2:])]]
    else:
        place = [OUTSIDE[".".join(owner)]]
    return ".".join([*place, kind])


def load_published(model, tensors):
    """Put the numbers of a published checkpoint into a BertModel."""

    def plain(name):
        name = name[5:] if name.startswith("bert.") else name
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        return name.replace("LayerNorm.beta", "LayerNorm.bias")

    names = {plain(name): name for name in tensors}
    plan = []
    for name, parameter in model.named_parameters():
        wanted = published_name(name)
        if wanted not in names:
            raise ValueError(f"{wanted} is missing")
        source = names[wanted]
        if tuple(tensors[source].shape) != tuple(parameter.shape):
            raise ValueError(f"{wanted} has another shape than {tuple(parameter.shape)}")
        plan.append((parameter, source))
    with torch.no_grad():
        for parameter, source in plan:
            parameter.copy_(tensors[source])
    return sorted(set(tensors) - {source for _, source in plan})
'''

HOLES = '''def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    """Make holes."""
    ordinary = torch.ones(vocab_size, dtype=torch.bool)
    ordinary[list(special_ids)] = False
    lot = torch.rand(input_ids.shape, generator=generator)
    asked = (lot < rate) & ordinary[input_ids]
    labels = torch.where(asked, input_ids, IGNORE)
    fate = torch.rand(input_ids.shape, generator=generator)
    pieces = ordinary.nonzero().flatten()
    other = pieces[torch.randint(len(pieces), input_ids.shape, generator=generator)]
    seen = torch.where(asked & (fate < 0.9), other, input_ids)
    seen = torch.where(asked & (fate < 0.8), mask_id, seen)
    return seen, labels


def masked_logits(head, hidden, labels, most=None):
    """Logits at the chosen positions, and at no other."""
    text, place = (labels != IGNORE).nonzero(as_tuple=True)
    rows = hidden[text, place]
    size = max(len(rows), 1) if most is None else most
    parts = [head(rows[begin : begin + size]) for begin in range(0, max(len(rows), 1), size)]
    return torch.cat(parts), labels[text, place]


def masked_loss(logits, labels):
    """Mean loss over chosen positions."""
    asked = labels.ne(IGNORE)
    logs = torch.log_softmax(logits[asked], dim=-1)
    picked = torch.take_along_dim(logs, labels[asked][:, None], dim=1)
    return picked.sum().neg() / max(picked.numel(), 1)
'''

VECTORS = '''def cosines(vectors, common=None):
    """The cosine of each use with each, without what they have in common."""
    left = vectors if common is None else vectors - common
    unit = left / torch.linalg.vector_norm(left, dim=1)[:, None]
    return torch.einsum("nd,md->nm", unit, unit)


def mean_pool(hidden, input_ids, attention_mask, special_ids):
    """Mean of the words of each text."""
    words = attention_mask
    for special in special_ids:
        words = words & (input_ids != special)
    total = hidden.masked_fill(~words[:, :, None], 0.0).sum(dim=1)
    return total / words.sum(dim=1, keepdim=True).clamp(min=1).to(hidden.dtype)


def search(queries, collection, k, block):
    """The k nearest vectors of each query, the nearest first."""
    queries = torch.nn.functional.normalize(queries, dim=1)
    scores = [queries.new_empty(len(queries), 0)]
    indices = [torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)]
    begin = 0
    while begin < len(collection):
        rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)
        found = (queries @ rows.T).sort(dim=1, descending=True, stable=True)
        scores.append(found.values[:, :k])
        indices.append(found.indices[:, :k] + begin)
        begin += block
    scores, indices = torch.cat(scores, dim=1), torch.cat(indices, dim=1)
    order = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    return scores.gather(1, order), indices.gather(1, order)
'''

RIGHT_ANSWERS += [
    RightAnswer(
        "all_parts_anew",
        "every cell is written in another way: all parts, einsum attention, a check with an oracle of fractions",
        {
            "blocks": BLOCKS,
            "tokens": TOKENS,
            "model": MODEL,
            "holes": HOLES,
            "vectors": VECTORS,
            "load-model": """def load_bert(sizes, tensors):
    config = BertConfig(**dict(sizes))
    bert = BertModel(config).to(device)
    load_published(bert, tensors)
    bert.train(False)
    return bert
""",
            "to-batch": """def to_batch(texts, max_length=128):
    import re

    pieces, inputs = {*VOCAB}, []
    for text in texts:
        ids = []
        for part in re.split(r"(\\[MASK\\])", text):
            if part == "[MASK]":
                ids.append(MASK)
            else:
                ids.extend(PLACE[piece] for piece, *_ in encode(part, pieces))
        inputs.append(pair_input(ids, cls_id=CLS, sep_id=SEP, max_length=max_length))
    batch = make_batch(inputs, pad_id=PAD)
    return {name: batch[name].to(device) for name in batch}
""",
            "make-head": """def make_head(sizes, tensors):
    part = lambda name: tensors[name].to(device)
    dense = part("cls.predictions.transform.dense.weight"), part("cls.predictions.transform.dense.bias")
    words, bias = part("bert.embeddings.word_embeddings.weight"), part("cls.predictions.bias")
    norm = LayerNorm(sizes["hidden_size"], eps=sizes["layer_norm_eps"])
    norm.load_state_dict(
        {
            "gain": tensors["cls.predictions.transform.LayerNorm.weight"],
            "offset": tensors["cls.predictions.transform.LayerNorm.bias"],
        }
    )
    norm = norm.to(device)

    def head(hidden, only=None):
        expected = norm(gelu(torch.nn.functional.linear(hidden, *dense)))
        if only is None:
            return torch.nn.functional.linear(expected, words, bias)
        rows = words.index_select(0, only)
        return torch.nn.functional.linear(expected, rows, bias.index_select(0, only))

    return head
""",
            "fill-the-hole": """def fill_mask(bert, head, text, most=4):
    if len(text.split("[MASK]")) != 2:
        raise ValueError("one [MASK] is needed")
    batch = to_batch([text])
    hole = batch["input_ids"][0].tolist().index(MASK)
    with torch.no_grad():
        logits = head(bert(**batch)[0][0, hole])
    ids = torch.arange(len(VOCAB), device=logits.device)
    words = ~torch.isin(ids, torch.tensor(SPECIAL, device=logits.device))
    chances = masked_softmax(logits, words)
    order = chances.argsort(descending=True)[:most]
    return [(VOCAB[place], chances[place].item()) for place in order.tolist()]
""",
            "accuracy": """def masked_accuracy(bert, head, texts, seed=0, batch_size=16):
    generator, hits = torch.Generator(), []
    generator.manual_seed(seed)
    starts = range(0, len(texts), batch_size)
    for part in (texts[start : start + batch_size] for start in starts):
        batch = to_batch(part)
        seen, labels = mask_tokens(batch["input_ids"].cpu(), SPECIAL, MASK, len(VOCAB), generator)
        batch["input_ids"] = seen.to(device)
        with torch.no_grad():
            states = bert(**batch)[0]
            asked = (labels != IGNORE).to(device)
            guesses = head(states[asked]).argmax(dim=-1)
        hits += (guesses.cpu() == labels[labels != IGNORE]).tolist()
    return sum(hits) / len(hits)
""",
            "embed": """@torch.no_grad()
def embed_texts(bert, texts):
    rows = []
    for begin in range(0, len(texts), 32):
        batch = to_batch(texts[begin : begin + 32])
        hidden = bert(**batch)[0]
        rows.append(mean_pool(hidden, batch["input_ids"], batch["attention_mask"], SPECIAL))
    return torch.cat(rows)
""",
            "find-alike": """def find_alike(bert, query, texts, most=3, same=None):
    vectors = embed_texts(bert, texts)
    (scores,), (order,) = search(embed_texts(bert, [query]), vectors, len(texts), 256)
    fresh = torch.ones(len(texts), dtype=torch.bool, device=vectors.device)
    table = None if same is None else cosines(vectors)
    found = []
    for score, place in zip(scores.tolist(), order.tolist()):
        if len(found) >= most:
            break
        if fresh[place]:
            found.append((texts[place], score))
            if table is not None:
                fresh &= table[:, place] < same
    return found
""",
            "own-check": """def check_sign_test(implementation):
    import random
    from fractions import Fraction

    def right(labels, first, second):
        hits, votes, count = [0, 0], [0, 0], 0
        for row in zip(labels, first, second):
            scores = [0, 0]
            for label, one, two in zip(*row):
                if label != -100:
                    count += 1
                    scores[0] += one == label
                    scores[1] += two == label
            hits = [a + b for a, b in zip(hits, scores)]
            votes[0] += scores[0] > scores[1]
            votes[1] += scores[1] > scores[0]
        n, k = sum(votes), min(votes)
        chance = Fraction(2 * sum(math.comb(n, i) for i in range(k + 1)), 2**n)
        return float(Fraction(hits[0] - hits[1], max(count, 1))), *votes, float(min(1, chance))

    def ask(labels, first, second, T):
        given = [
            torch.tensor(rows, dtype=torch.int64, device=device).reshape(-1, T)
            for rows in (labels, first, second)
        ]
        kept = [tensor.clone() for tensor in given]
        found, wanted = implementation(*given), right(labels, first, second)
        assert all(torch.equal(a, b) for a, b in zip(given, kept)), "a tensor is changed"
        assert isinstance(found, tuple) and len(found) == 4
        assert [type(part) for part in found] == [float, int, int, float]
        assert math.isclose(found[0], wanted[0], rel_tol=2e-9, abs_tol=1e-12), (found, wanted)
        assert found[1:3] == wanted[1:3], (found, wanted)
        assert math.isclose(found[3], wanted[3], rel_tol=2e-9), (found, wanted)

    chance = random.Random(11)
    for number in range(100):
        B, T = chance.randrange(1, 13), chance.randrange(1, 6)
        skipped, good = chance.choice((0.0, 0.3, 0.8)), chance.choice((0.2, 0.5, 0.8))
        labels, first, second = [], [], []
        for _ in range(B):
            row = [-100 if chance.random() < skipped else chance.randrange(4) for _ in range(T)]
            labels.append(row)
            for rows, share in ((first, good), (second, 0.5)):
                guess = lambda label: label if chance.random() < share else chance.choice((-100, 0, 1, 2, 3))
                rows.append([guess(label) for label in row])
        ask(labels, first, second, T)
        if number % 10 == 0:
            ask(labels, second, first, T)
            ask(labels, second, first, T)
    for T in (1, 3):
        ask([], [], [], T)
        nothing = [[-100] * T] * 2
        ask(nothing, nothing, [[5] * T] * 2, T)
    for won, lost, ties in (
        (1, 0, 0),
        (0, 1, 0),
        (1, 1, 0),
        (3, 3, 1),
        (10, 10, 0),
        (9, 2, 3),
        (2, 9, 0),
        (0, 30, 1),
        (60, 3, 0),
        (3, 60, 0),
        (400, 0, 0),
        (480, 510, 10),
        (510, 480, 10),
        (990, 10, 0),
        (1000, 0, 0),
        (0, 0, 1000),
    ):
        both = [[7]] * won + [[8]] * lost + [[7]] * ties
        other = [[8]] * won + [[7]] * (lost + ties)
        ask([[7]] * len(both), both, other, 1)
""",
        },
    ),
    RightAnswer(
        "plain_loops",
        "one text at a time, padding by hand without pair_input and make_batch, sorting in Python",
        {
            "tokens": """def encode_word(word, vocab, max_length=100, mark="##"):
    def pieces_of(start):
        for end in reversed(range(start + 1, len(word) + 1)):
            piece = word[start:end] if start == 0 else mark + word[start:end]
            if piece in vocab:
                return piece, end
        return None, start

    if len(word) > max_length:
        return ["[UNK]"]
    found, start = [], 0
    while start != len(word):
        piece, start = pieces_of(start)
        if piece is None:
            return ["[UNK]"]
        found += [piece]
    return found


def encode(text, vocab, max_length=100, mark="##"):
    def of_word(word, spans):
        pieces = encode_word(word, vocab, max_length, mark)
        if len(pieces) == 1:
            yield pieces[0], spans[0][0], spans[-1][1]
            return
        end = 0
        for number, piece in enumerate(pieces):
            begin, end = end, end + len(piece) - len(mark) * (number > 0)
            yield piece, spans[begin][0], spans[end - 1][1]

    return [entry for word, spans in split_words(text) for entry in of_word(word, spans)]
""",
            "load-model": """def load_bert(sizes, tensors):
    with torch.device(device):
        model = BertModel(BertConfig(**sizes))
    model.eval()
    load_published(model, tensors)
    return model
""",
            "to-batch": """def to_batch(texts, max_length=128):
    known = frozenset(VOCAB)
    rows = []
    for text in texts:
        ids, rest = [CLS], text
        while True:
            before, hole, rest = rest.partition("[MASK]")
            for piece, _, _ in encode(before, known):
                ids.append(PLACE[piece])
            if not hole:
                break
            ids.append(MASK)
        rows.append([*ids[: max_length - 1], SEP])
    lengths = torch.tensor([len(row) for row in rows], device=device)
    T = max(len(row) for row in rows)
    input_ids = torch.tensor([row + [PAD] * (T - len(row)) for row in rows], device=device)
    return {
        "input_ids": input_ids,
        "token_type_ids": torch.zeros_like(input_ids),
        "attention_mask": torch.arange(T, device=device) < lengths[:, None],
    }
""",
            "make-head": """class Guesser:
    def __init__(self, sizes, tensors):
        transform = "cls.predictions.transform."
        self.dense = torch.nn.Linear(sizes["hidden_size"], sizes["hidden_size"])
        self.norm = LayerNorm(sizes["hidden_size"], sizes["layer_norm_eps"])
        with torch.no_grad():
            self.dense.weight.copy_(tensors[transform + "dense.weight"])
            self.dense.bias.copy_(tensors[transform + "dense.bias"])
            self.norm.gain.copy_(tensors[transform + "LayerNorm.weight"])
            self.norm.offset.copy_(tensors[transform + "LayerNorm.bias"])
        self.dense.to(device), self.norm.to(device)
        self.table = tensors["bert.embeddings.word_embeddings.weight"].to(device)
        self.bias = tensors["cls.predictions.bias"].to(device)

    def __call__(self, hidden, only=None):
        wanted = slice(None) if only is None else only
        state = self.norm(gelu(self.dense(hidden)))
        return torch.matmul(state, self.table[wanted].t()) + self.bias[wanted]


def make_head(sizes, tensors):
    guesser = Guesser(sizes, tensors)

    def head(hidden, only=None):
        return guesser(hidden, only)

    return head
""",
            "fill-the-hole": """def fill_mask(bert, head, text, most=4):
    before, hole, behind = text.partition("[MASK]")
    if not hole or "[MASK]" in behind:
        raise ValueError("the text must have one [MASK]")
    batch = to_batch([text])
    with torch.no_grad():
        states, _ = bert(**batch)
        logits = head(states)[batch["input_ids"] == MASK]  # [1, V]
    words = torch.tensor([[n not in SPECIAL for n in range(len(VOCAB))]], device=device)
    chances = masked_softmax(logits, words)[0].tolist()
    places = sorted(range(len(chances)), key=chances.__getitem__, reverse=True)
    places = [place for place in places if place not in SPECIAL]
    return [(VOCAB[place], chances[place]) for place in places[:most]]
""",
            "accuracy": """def masked_accuracy(bert, head, texts, seed=0, batch_size=16):
    generator = torch.Generator(device="cpu")
    generator.manual_seed(seed)
    right = asked = 0
    rest = list(texts)
    while rest:
        part, rest = rest[:batch_size], rest[batch_size:]
        batch = to_batch(part)
        given = batch["input_ids"].to("cpu")
        masked, labels = mask_tokens(given, SPECIAL, MASK, len(VOCAB), generator, rate=0.15)
        labels = labels.to(device)
        with torch.no_grad():
            states, _ = bert(
                input_ids=masked.to(device),
                attention_mask=batch["attention_mask"],
                token_type_ids=batch["token_type_ids"],
            )
            guesses = head(states).argmax(dim=-1)  # [B, T]
        right += int(((guesses == labels) & (labels != IGNORE)).sum())
        asked += int((labels != IGNORE).sum())
    return right / asked
""",
            "embed": """def embed_texts(bert, texts):
    def one(text):
        batch = to_batch([text])
        with torch.no_grad():
            states, _ = bert(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
        return mean_pool(states, batch["input_ids"], batch["attention_mask"], SPECIAL)[0]

    return torch.stack([one(text) for text in texts])
""",
            "find-alike": """def find_alike(bert, query, texts, most=3, same=None):
    vectors = embed_texts(bert, texts)
    scores, order = search(embed_texts(bert, [query]), vectors, len(texts), len(texts))
    table = cosines(vectors)
    rest = list(zip(order[0].tolist(), scores[0].tolist()))
    taken = []
    while rest and len(taken) < most:
        (n, score), *rest = rest
        taken.append((texts[n], score))
        if same is not None:
            rest = [(m, s) for m, s in rest if not table[m, n] >= same]
    return taken
""",
        },
    ),
    RightAnswer(
        "other_parts_and_tensor_work",
        "other parts of Assignments 1, 5, 6 and 7, everything else with index arithmetic, topk after a cut of the special rows",
        {
            "blocks": BLOCKS.replace(
                "torch.cat([last, scores], dim=-1).softmax(dim=-1)",
                "torch.softmax(torch.cat([last, scores], dim=-1), dim=-1)",
            ),
            "holes": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    special = torch.zeros_like(input_ids, dtype=torch.bool)
    for number in special_ids:
        special = special | (input_ids == number)
    lot = torch.rand(input_ids.shape, generator=generator)  # one lot says all
    chosen = (lot < rate) & ~special
    labels = torch.full_like(input_ids, IGNORE)
    labels[chosen] = input_ids[chosen]
    words = torch.tensor([n for n in range(vocab_size) if n not in special_ids])
    masked = input_ids.clone()
    masked[chosen & (lot < 0.8 * rate)] = mask_id
    swapped = chosen & (lot >= 0.8 * rate) & (lot < 0.9 * rate)
    draws = torch.randint(len(words), (int(swapped.sum()),), generator=generator)
    masked[swapped] = words[draws]
    return masked, labels


def masked_logits(head, hidden, labels, most=None):
    places = (labels.flatten() != IGNORE).nonzero().flatten()
    rows = hidden.flatten(0, 1).index_select(0, places)
    if most is None or not len(rows):
        logits = head(rows)
    else:
        logits = torch.cat([*map(head, torch.split(rows, most))], dim=0)
    return logits, labels.flatten()[places]


def masked_loss(logits, labels):
    rows, truths = logits[labels != IGNORE], labels[labels != IGNORE]
    total = torch.nn.functional.cross_entropy(rows, truths, reduction="sum")
    return total / max(truths.numel(), 1)
""",
            "vectors": VECTORS.replace(
                'torch.einsum("nd,md->nm", unit, unit)', "unit.mm(unit.t())"
            ),
            "load-model": """def load_bert(sizes, tensors):
    fields = {name: sizes[name] for name in BertConfig.__dataclass_fields__ if name in sizes}
    model = BertModel(BertConfig(**fields)).to(device=device)
    load_published(model, tensors)
    for module in model.modules():
        module.training = False
    return model
""",
            "to-batch": """def to_batch(texts, max_length=128):
    pieces = {piece for piece in VOCAB}
    look_up = lambda part: [PLACE[piece] for piece, _, _ in encode(part, pieces)]
    inputs = []
    for text in texts:
        first, *others = map(look_up, text.split("[MASK]"))
        ids = list(itertools.chain(first, *([MASK, *part] for part in others)))
        inputs.append(pair_input(ids, None, cls_id=CLS, sep_id=SEP, max_length=max_length))
    batch = make_batch(inputs, PAD)
    batch.update((name, value.to(device)) for name, value in list(batch.items()))
    return batch
""",
            "make-head": """def make_head(sizes, tensors):
    start = "cls.predictions."
    stored = {
        name.removeprefix(start): value.to(device)
        for name, value in tensors.items()
        if name.startswith(start)
    }
    embeddings = tensors["bert.embeddings.word_embeddings.weight"].to(device)
    norm = LayerNorm(sizes["hidden_size"], eps=sizes["layer_norm_eps"]).to(device)
    norm.gain.data.copy_(stored["transform.LayerNorm.weight"])
    norm.offset.data.copy_(stored["transform.LayerNorm.bias"])

    def head(hidden, only=None):
        dense = torch.matmul(hidden, stored["transform.dense.weight"].t())
        state = norm(gelu(dense + stored["transform.dense.bias"]))
        rows, bias = embeddings, stored["bias"]
        if only is not None:
            rows, bias = rows[only], bias[only]
        return torch.einsum("...d,nd->...n", state, rows) + bias

    return head
""",
            "fill-the-hole": """def fill_mask(bert, head, text, most=4):
    if (holes := text.count("[MASK]")) != 1:
        raise ValueError(f"{holes} holes")
    batch = to_batch([text])
    ids = torch.tensor([n for n in range(len(VOCAB)) if n not in SPECIAL], device=device)
    with torch.no_grad():
        states, _ = bert(**batch)
        logits = head(states[batch["input_ids"] == MASK], only=ids)
    chances, places = masked_softmax(logits)[0].topk(most)
    return list(zip([VOCAB[n] for n in ids[places].tolist()], chances.tolist()))
""",
            "find-alike": """def find_alike(bert, query, texts, most=3, same=None):
    vectors = embed_texts(bert, texts)
    scores, indices = search(embed_texts(bert, [query]), vectors, len(texts), 64)
    order = indices[0]
    table = cosines(vectors)[order][:, order]  # the nearest first
    alike = torch.zeros_like(table, dtype=torch.bool) if same is None else table >= same
    taken = []
    for rank in range(len(order)):
        if not any(alike[rank, other] for other in taken):
            taken.append(rank)
    return [(texts[order[rank].item()], scores[0, rank].item()) for rank in taken[:most]]
""",
        },
    ),
]
