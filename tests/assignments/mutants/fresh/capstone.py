"""Fresh wrong and right answers to the capstone, written from the text that students read."""

from fresh import fresh

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
        "right_by_modules",
        "makes the head a module, and counts hits by comparing whole tables",
        {
            "make-head": """class Head(torch.nn.Module):
    def __init__(self, sizes, tensors):
        super().__init__()
        V, D = sizes["vocab_size"], sizes["hidden_size"]
        self.dense = torch.nn.Linear(D, D)
        self.norm = LayerNorm(D, sizes["layer_norm_eps"])
        self.words = torch.nn.Linear(D, V)
        numbers = {
            "dense.weight": "cls.predictions.transform.dense.weight",
            "dense.bias": "cls.predictions.transform.dense.bias",
            "norm.gain": "cls.predictions.transform.LayerNorm.weight",
            "norm.offset": "cls.predictions.transform.LayerNorm.bias",
            "words.weight": "bert.embeddings.word_embeddings.weight",
            "words.bias": "cls.predictions.bias",
        }
        self.load_state_dict({mine: tensors[theirs] for mine, theirs in numbers.items()})

    def forward(self, hidden):
        return self.words(self.norm(gelu(self.dense(hidden))))


def make_head(sizes, tensors):
    return Head(sizes, tensors).to(device).eval()
""",
            "accuracy": """def masked_accuracy(bert, head, texts, seed=0, batch_size=16):
    generator = torch.Generator()
    generator.manual_seed(seed)
    hits = []
    for first in range(0, len(texts), batch_size):
        batch = to_batch(list(texts[first : first + batch_size]))
        masked, labels = mask_tokens(
            batch["input_ids"].cpu(), SPECIAL, MASK, len(VOCAB), generator, rate=0.15
        )
        batch = {**batch, "input_ids": masked.to(device)}
        with torch.no_grad():
            guesses = head(bert(**batch)[0]).argmax(dim=-1).cpu()
        hits += (guesses == labels)[labels != IGNORE].tolist()
    return sum(hits) / len(hits)
""",
            "find-alike": """def find_alike(bert, query, texts, most=3, same=None):
    vectors = embed_texts(bert, [query, *texts])
    scores, indices = search(vectors[:1], vectors[1:], len(texts), len(texts))
    kept = torch.zeros(0, dtype=torch.int64, device=indices.device)
    for n in indices[0]:
        near = cosines(vectors[1:][[*kept, n]])[-1, :-1]
        if same is None or not (near >= same).any():
            kept = torch.cat([kept, n[None]])
    kept = kept[:most].tolist()
    score = dict(zip(indices[0].tolist(), scores[0].tolist()))
    return [(texts[n], score[n]) for n in kept]
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
