"""Wrong answers to the capstone that people give, and right answers that people write differently.

A change is either a pair (text in the reference, text to put there) or the whole cell. "visible" means that the tests
that the student has refuse it already; "hidden" that only the grader's do. What is wrong in a part of an earlier
assignment is that assignment's business; here a few of each show that Part 1 finds it before it does harm. Longer than
400 lines because it is a catalogue: look an entry up, do not read it through.
"""

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks


def mutants_of(solution: str, cell: str, *rows: tuple) -> list[Mutant]:
    """Mutants of one solution cell that one test cell must refuse.

    A row is (name, mistake, change, words, caught), and the cells that fail with it, if any.
    """
    return [
        Mutant(name, mistake, cell, words, caught, {solution: change}, tuple(also))
        for name, mistake, change, words, caught, *also in rows
    ]


STATES, LOGITS, FILL, SCORE, VECTORS, ALIKE = (
    "published-states",
    "head-logits",
    "fill-guesses",
    "score-held-out",
    "sentences-vectors",
    "sentences-alike",
)

BLOCKS = mutants_of(
    "blocks",
    "together-blocks",
    (
        "mask_after_the_softmax",
        "sets masked weights to 0 after the softmax, so that the others do not add up to 1",
        (
            """    return torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)""",
            """    return torch.softmax(scores, dim=-1) * mask""",
        ),
        "Mask before the softmax",
        "visible",
        FILL,
    ),
    (
        "variance_divided_by_one_less",
        "takes the unbiased variance in the layer norm",
        ("correction=0", "correction=1"),
        "Mend LayerNorm in Assignment 2",
        "visible",
        LOGITS,
        FILL,
    ),
    (
        "gain_forgotten",
        "leaves the gain of the layer norm out, which is 1 until weights are loaded",
        ("return self.gain * (hidden", "return (hidden"),
        "times the gain, plus the offset",
        "visible",
        LOGITS,
        FILL,
    ),
    (
        "softmax_pasted",
        "takes the book's masked softmax, which has no sink",
        ("    if sink is not None:", "    if False:"),
        "the sink takes its share",
        "visible",
    ),
    (
        "norm_pasted",
        "takes the book's layer norm, which is always centred",
        ("if not self.centred:", "if False:"),
        "the mean is not taken away",
        "visible",
    ),
)

TOKENS = mutants_of(
    "tokens",
    "together-tokens",
    (
        "shortest_piece_first",
        "takes the shortest piece that fits",
        ("range(len(word), start, -1)", "range(start + 1, len(word) + 1)"),
        "The pieces of 'Returns None.'",
        "visible",
        "published-ids",
        LOGITS,
        FILL,
        SCORE,
        VECTORS,
        ALIKE,
    ),
    (
        "pieces_pasted",
        "takes the book's longest match, whose mark is always ##",
        ('(mark if start else "")', '("##" if start else "")'),
        "where @@ marks what does not begin a word",
        "visible",
    ),
    (
        "places_in_pieces",
        "counts the places in the text from the start of the word",
        (
            "(piece, spans[place][0], spans[place + length - 1][1])",
            "(piece, place, place + length)",
        ),
        "the list of pieces and places is wrong",
        "hidden",
    ),
)

MODEL = mutants_of(
    "model",
    "together-model",
    (
        "mask_not_passed_to_the_layers",
        "calls the layers without the attention mask",
        ("hidden = layer(hidden, attention_mask)", "hidden = layer(hidden)"),
        "is the mask used in every layer",
        "visible",
        STATES,
        VECTORS,
        ALIKE,
    ),
    (
        "last_layer_left_out",
        "stops one layer early",
        (
            "in self.layers[:depth]:",
            "in self.layers[: -1 if depth is None else depth]:",
        ),
        "The states after the first of two layers",
        "visible",
        STATES,
        LOGITS,
        FILL,
        SCORE,
        VECTORS,
        ALIKE,
    ),
    (
        "depth_ignored",
        "runs all layers, as the book's model does",
        ("in self.layers[:depth]:", "in self.layers:"),
        "`depth` says how many layers run",
        "visible",
    ),
    (
        "gelu_by_tanh",
        "approximates GELU by tanh, as GPT-2 does",
        (
            "return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
            "return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))",
        ),
        "the table of states is wrong",
        "hidden",
        LOGITS,
    ),
    (
        "pooled_from_the_last_position",
        "pools the last position in place of [CLS]",
        (
            "return torch.tanh(self.dense(hidden[:, 0]))",
            "return torch.tanh(self.dense(hidden[:, -1]))",
        ),
        "the pooled state is wrong",
        "hidden",
    ),
)

HOLES = mutants_of(
    "holes",
    "together-holes",
    (
        "special_tokens_hidden_too",
        "asks for special tokens like any others",
        (
            "(torch.rand(input_ids.shape, generator=generator) < rate) & ~special",
            "torch.rand(input_ids.shape, generator=generator) < rate",
        ),
        "never hidden",
        "visible",
        SCORE,
    ),
    (
        "labels_after_masking",
        "makes the labels of the masked ids",
        (
            "    return masked_ids, labels",
            "    return masked_ids, masked_ids.masked_fill(~chosen, IGNORE)",
        ),
        "must be the ids as they were",
        "visible",
        SCORE,
    ),
    (
        "always_masked",
        "masks all that is asked for",
        ("chosen & (lot < 0.8)", "chosen"),
        "The share of [MASK] is wrong",
        "hidden",
        SCORE,
    ),
    (
        "logits_of_all_positions",
        "gives the logits of all positions",
        (
            "return torch.cat([head(portion) for portion in portions]), labels[chosen]",
            "return head(hidden).flatten(0, -2), labels.flatten()",
        ),
        "head must be called once",
        "hidden",
        SCORE,
    ),
    (
        "holes_pasted",
        "chooses a word of every text at least, as the book does",
        (
            "    labels = input_ids.masked_fill(~chosen, IGNORE)",
            "    none = ~chosen.any(dim=1, keepdim=True)\n"
            "    chosen |= none & ~special & ((~special).cumsum(1) == 1)\n"
            "    labels = input_ids.masked_fill(~chosen, IGNORE)",
        ),
        "asks for a word of every text",
        "visible",
    ),
    (
        "special_pieces_swapped_in",
        "swaps in any piece of the vocabulary",
        (
            "torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])",
            "torch.arange(vocab_size)",
        ),
        "Among the random tokens are special ones",
        "hidden",
    ),
)

POOLING = mutants_of(
    "vectors",
    "together-vectors",
    (
        "filling_pooled",
        "takes the mean over filling as well",
        ("words = (attention_mask & ~special)", "words = (~special)"),
        "Mend mean_pool in Assignment 6",
        "visible",
    ),
    (
        "divided_by_all_positions",
        "divides the sum of the words by the number of positions",
        ("words.sum(dim=1).clamp(min=1)", "words.shape[1]"),
        "Mend mean_pool in Assignment 6",
        "visible",
        VECTORS,
    ),
    (
        "cosines_pasted",
        "takes the book's cosines, which know of nothing in common",
        ("vectors = vectors - common", "pass"),
        "subtract first what they have in common",
        "visible",
    ),
    (
        "places_within_the_block",
        "searches block by block and forgets where the block begins",
        (
            "places = torch.arange(begin, begin + len(rows)",
            "places = torch.arange(len(rows)",
        ),
        "Mend search in Assignment 7",
        "visible",
    ),
)

LOADING = mutants_of(
    "load-model",
    STATES,
    (
        "left_in_training",
        "leaves the model in training, where dropout changes its states",
        ("return model.to(device).eval()", "return model.to(device)"),
        "call eval()",
        "visible",
        LOGITS,
        FILL,
        SCORE,
        VECTORS,
        ALIKE,
    ),
    (
        "weights_never_loaded",
        "makes the model and forgets the numbers",
        ("    load_published(model, tensors)\n", ""),
        "The program that wrote the file gives others",
        "visible",
        LOGITS,
        FILL,
        SCORE,
        VECTORS,
        ALIKE,
    ),
    (
        "loads_the_global_file",
        "reads the file of the notebook in place of the tensors that it is given",
        ("load_published(model, tensors)", "load_published(model, PUBLISHED)"),
        "ValueError",
        "hidden",
    ),
)

BATCHING = mutants_of(
    "to-batch",
    "published-ids",
    (
        "ids_of_another_vocabulary",
        "leaves pair_input its defaults, 101 and 102",
        (
            "pair_input(ids, None, CLS, SEP, max_length)",
            "pair_input(ids, None, max_length=max_length)",
        ),
        "here they are 2 and 3",
        "visible",
        LOGITS,
        FILL,
        VECTORS,
        ALIKE,
    ),
    (
        "mask_cut_into_pieces",
        "lets encode cut [MASK] into [, mask and ]",
        ('enumerate(text.split("[MASK]"))', "enumerate([text])"),
        "[MASK] is one piece",
        "visible",
        FILL,
    ),
    (
        "mask_dropped",
        "cuts the text at [MASK] and puts nothing there",
        ("ids += [MASK] * (number > 0)", "ids += []"),
        "MASK is missing",
        "visible",
        FILL,
    ),
    (
        "mask_behind_each_part",
        "puts MASK in front of the first part, too, if there is another behind it",
        ("ids += [MASK] * (number > 0)", 'ids += [MASK] * (number > 0 or part == "")'),
        "With [MASK] at an edge, input_ids",
        "hidden",
        FILL,
    ),
    (
        "never_cut",
        "does not pass on max_length",
        (
            "pair_input(ids, None, CLS, SEP, max_length)",
            "pair_input(ids, None, CLS, SEP)",
        ),
        "With max_length, input_ids must have another shape",
        "hidden",
    ),
)

HEAD = mutants_of(
    "make-head",
    LOGITS,
    (
        "norm_before_gelu",
        "normalises before the activation",
        ("norm(gelu(hidden @ W.T + b))", "gelu(norm(hidden @ W.T + b))"),
        "First the dense layer, then GELU, then the norm",
        "visible",
        FILL,
        SCORE,
    ),
    (
        "dense_not_transposed",
        "multiplies by W instead of its transpose",
        ("hidden @ W.T + b", "hidden @ W + b"),
        "First the dense layer",
        "visible",
        FILL,
        SCORE,
    ),
    (
        "bias_of_the_words_forgotten",
        "leaves the last bias out",
        ("@ rows.T + biases", "@ rows.T"),
        "The likeliest piece at each position",
        "visible",
        FILL,
    ),
    (
        "head_pasted",
        "gives the logits of all pieces, as the book's head does",
        ("(E, c) if only is None else (E[only], c[only])", "(E, c)"),
        "The logits of four pieces alone",
        "visible",
    ),
    (
        "only_sorted",
        "gives the logits of some pieces in the order of the vocabulary, each once",
        ("(E[only], c[only])", "(E[only.unique()], c[only.unique()])"),
        "The logits of four pieces alone",
        "visible",
    ),
    (
        "another_eps",
        "takes the layer norm's usual eps in place of the one of the sizes",
        (
            'LayerNorm(sizes["hidden_size"], eps=sizes["layer_norm_eps"])',
            'LayerNorm(sizes["hidden_size"])',
        ),
        "layer_norm_eps 0.3",
        "hidden",
    ),
)

GUESSING = mutants_of(
    "fill-the-hole",
    FILL,
    (
        "specials_left_out_after_the_softmax",
        "takes the softmax over everything, and skips special tokens in the list",
        (
            "chances, places = masked_softmax(logits, allowed).topk(most)",
            "chances, places = (torch.softmax(logits, -1) * allowed).topk(most)",
        ),
        "Leave them out before the softmax",
        "hidden",
    ),
    (
        "state_of_cls",
        "reads the guess off [CLS]",
        ('head(states[batch["input_ids"] == MASK])[0]', "head(states[:, 0])[0]"),
        "Take the state at the hole",
        "visible",
    ),
    (
        "several_holes_accepted",
        "fills the first of several holes without a word",
        ('if text.count("[MASK]") != 1:', 'if "[MASK]" not in text:'),
        "it has 2 holes",
        "visible",
    ),
    (
        "tensors_returned",
        "returns probabilities as tensors",
        ("zip(places.tolist(), chances.tolist())", "zip(places.tolist(), chances)"),
        "Probabilities are Python floats",
        "visible",
    ),
)

SCORING = mutants_of(
    "accuracy",
    SCORE,
    (
        "sees_the_true_ids",
        "gives the model the ids as they were",
        ("masked.to(device), batch", 'batch["input_ids"], batch'),
        "too good to be true",
        "visible",
    ),
    (
        "counts_all_positions",
        "compares at every position, which is mostly what the model could read",
        (
            """            logits, true = masked_logits(head, states, labels.to(device))""",
            """            logits, true = head(states).flatten(0, 1), batch["input_ids"].flatten()""",
        ),
        "count the positions that are asked for",
        "hidden",
    ),
    (
        "mean_of_the_batches",
        "takes the mean over batches of each batch's share",
        (
            """        right += (logits.argmax(dim=-1) == true).sum().item()
        asked += len(true)""",
            """        right += (logits.argmax(dim=-1) == true).sum().item() / max(len(true), 1)
        asked += 1""",
        ),
        "divide once",
        "hidden",
    ),
    (
        "compared_with_the_masked_ids",
        "compares guesses with what the model was shown",
        (
            "(logits.argmax(dim=-1) == true)",
            "(logits.argmax(dim=-1) == masked[labels != IGNORE].to(device))",
        ),
        "what the guesses are compared with",
        "visible",
    ),
)

EMBEDDING = mutants_of(
    "embed",
    VECTORS,
    (
        "cls_and_sep_pooled",
        "lets special tokens into the mean",
        ('batch["attention_mask"], SPECIAL)', 'batch["attention_mask"], (PAD,))'),
        "The mean is over words",
        "visible",
        ALIKE,
    ),
    (
        "filling_attended",
        "calls the model without the attention mask",
        ("states, _ = bert(**batch)", 'states, _ = bert(batch["input_ids"])'),
        "The mean is over words",
        "visible",
        ALIKE,
    ),
)

FINDING = mutants_of(
    "find-alike",
    ALIKE,
    (
        "indices_returned",
        "returns the places of the texts",
        ("(texts[n], score)", "(n, score)"),
        "look the indices up in texts",
        "visible",
    ),
    (
        "alike_pasted",
        "gives the nearest texts, as the book's search does",
        ("if same is None or all(table[n, m] < same for m, _ in taken):", "if True:"),
        "`same` is not used",
        "visible",
    ),
    (
        "passed_over_among_the_first",
        "takes as many as are wanted, and passes over some of these",
        ("vectors, len(texts), 1000)", "vectors, min(most, len(texts)), 1000)"),
        "Pass over first, and count then",
        "visible",
    ),
    (
        "what_is_like_the_query_passed_over",
        "passes over what is like the query",
        ("all(table[n, m] < same for m, _ in taken)", "score < same"),
        "pass over what is like a text that is taken",
        "visible",
    ),
    (
        "compared_with_the_last_one_alone",
        "compares with the text that was taken last",
        ("for m, _ in taken)", "for m, _ in taken[-1:])"),
        "texts that say the same from",
        "hidden",
    ),
    (
        "query_and_texts_swapped",
        "looks for each text among the queries",
        (
            "search(embed_texts(bert, [query]), vectors, len(texts), 1000)",
            "search(vectors, embed_texts(bert, [query]), 1, 1000)",
        ),
        "look the indices up in texts",
        "visible",
    ),
)

CHECK_OF_EXAMPLES = """def check_sign_test(implementation):
    labels = torch.tensor([[5, -100, 7], [2, 3, -100], [4, 6, 8]], device=device)
    first = torch.tensor([[5, -100, 7], [2, 9, 1], [4, 6, 8]], device=device)
    second = torch.tensor([[5, -100, 8], [9, 3, 1], [1, 1, 1]], device=device)
    difference, won, lost, chance = implementation(labels, first, second)
    assert abs(difference - 4 / 7) < 1e-6 and (won, lost, chance) == (2, 0, 0.5)
    difference, won, lost, chance = implementation(labels[:2], second[:2], first[:2])
    assert abs(difference + 1 / 4) < 1e-6 and (won, lost, chance) == (0, 1, 1.0)
    found = implementation(labels[:1], labels[:1], labels[:1])
    assert found == (0.0, 0, 0, 1.0)"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    labels = torch.arange(7, device=device)[None].repeat(140, 1)
    first, second = labels.clone(), labels.clone()
    first[:, 0], second[:, 1:3], second[0] = 9, 9, labels[0]
    difference, won, lost, chance = implementation(labels, first, second)
    assert (won, lost) == (139, 1) and chance == 2 * 141 / 2**140"""
)
CHECKS = wrong_checks(
    "sign_test",
    "implementation(*torch.ones(3, 1, 1, device=device).long())",
    "changed arguments; empty input; memory of earlier calls; number types; padding; sizes; small numbers; the formula",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *BLOCKS,
    *TOKENS,
    *MODEL,
    *HOLES,
    *POOLING,
    *LOADING,
    *BATCHING,
    *HEAD,
    *GUESSING,
    *SCORING,
    *EMBEDDING,
    *FINDING,
    *CHECKS,
]

RIGHT_ANSWERS = [
    RightAnswer(
        "model_by_load_state_dict",
        "renames the published tensors and lets PyTorch load them",
        {
            "load-model": (
                "    load_published(model, tensors)\n",
                "    model.load_state_dict(\n"
                '        {name: tensors["bert." + published_name(name)] for name in model.state_dict()}\n'
                "    )\n",
            )
        },
    ),
    RightAnswer(
        "batch_by_a_regular_expression",
        "cuts the text with re, keeping [MASK]",
        {
            "to-batch": """import re as regular


def to_batch(texts, max_length=128):
    known = set(VOCAB)
    inputs = []
    for text in texts:
        ids = []
        for part in regular.split(r"(\\[MASK\\])", text):
            if part == "[MASK]":
                ids.append(MASK)
            else:
                ids.extend(PLACE[piece] for piece, *_ in encode(part, known))
        inputs.append(pair_input(ids, cls_id=CLS, sep_id=SEP, max_length=max_length))
    batch = make_batch(inputs, pad_id=PAD)
    return {name: batch[name].to(device) for name in batch}"""
        },
    ),
    RightAnswer(
        "head_as_a_module",
        "writes the head as a class with torch's linear layers",
        {
            "make-head": """class TokenHead(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()
        D, V = sizes["hidden_size"], sizes["vocab_size"]
        self.dense = torch.nn.Linear(D, D)
        self.norm = LayerNorm(D, sizes["layer_norm_eps"])
        self.words = torch.nn.Linear(D, V)

    def forward(self, hidden, only=None):
        hidden = self.norm(gelu(self.dense(hidden)))
        if only is None:
            return self.words(hidden)
        some = self.words.weight.index_select(0, only), self.words.bias.index_select(0, only)
        return torch.nn.functional.linear(hidden, *some)


def make_head(sizes, tensors):
    head = TokenHead(sizes)
    stem = "cls.predictions."
    head.load_state_dict(
        {
            "dense.weight": tensors[stem + "transform.dense.weight"],
            "dense.bias": tensors[stem + "transform.dense.bias"],
            "norm.gain": tensors[stem + "transform.LayerNorm.weight"],
            "norm.offset": tensors[stem + "transform.LayerNorm.bias"],
            "words.weight": tensors["bert.embeddings.word_embeddings.weight"],
            "words.bias": tensors[stem + "bias"],
        }
    )
    return head.to(device)"""
        },
    ),
    RightAnswer(
        "guesses_by_sorting",
        "leaves special tokens out by minus infinity, and sorts",
        {
            "fill-the-hole": """def fill_mask(bert, head, text, most=4):
    pieces = text.split("[MASK]")
    if len(pieces) != 2:
        raise ValueError("one [MASK], please")
    batch = to_batch([text])
    place = batch["input_ids"][0].tolist().index(MASK)
    with torch.no_grad():
        logits = head(bert(**batch)[0])[0, place]
    logits[: len(SPECIAL)] = -math.inf
    chances = logits.softmax(0)
    order = chances.argsort(descending=True)[:most].tolist()
    return [(VOCAB[index], float(chances[index])) for index in order]"""
        },
    ),
    RightAnswer(
        "all_texts_masked_first",
        "makes all holes first, and counts afterwards",
        {
            "accuracy": """def masked_accuracy(bert, head, texts, seed=0, batch_size=16):
    generator = torch.Generator().manual_seed(seed)
    parts = [texts[n : n + batch_size] for n in range(0, len(texts), batch_size)]
    batches = [to_batch(part) for part in parts]
    holes = [
        mask_tokens(b["input_ids"].cpu(), SPECIAL, MASK, len(VOCAB), generator, 0.15) for b in batches
    ]
    hits = []
    for batch, (masked, labels) in zip(batches, holes):
        labels = labels.to(device)
        with torch.inference_mode():
            states = bert(masked.to(device), attention_mask=batch["attention_mask"])[0]
            logits, true = masked_logits(head, states, labels)
        hits += (logits.argmax(-1) == true).tolist()
    return sum(hits) / len(hits)"""
        },
    ),
    RightAnswer(
        "texts_compared_one_by_one",
        "goes through the hits and compares each with those that are kept",
        {
            "find-alike": """def find_alike(bert, query, texts, most=3, same=math.inf):
    everything = embed_texts(bert, [query, *texts])
    with_query = cosines(everything)[0, 1:].tolist()
    hits = []
    for place in sorted(range(len(texts)), key=lambda n: with_query[n], reverse=True):
        if len(hits) == most:
            break
        if same is not None and same < math.inf:
            pairs = [cosines(everything[[place + 1, other + 1]])[0, 1] for other in hits]
            if any(pair >= same for pair in pairs):
                continue
        hits.append(place)
    return [(texts[place], with_query[place]) for place in hits]"""
        },
    ),
    RightAnswer(
        "check_of_random_texts",
        "counts with loops, and compares on texts drawn at random",
        {
            "own-check": """def check_sign_test(implementation):
    def own(labels, first, second):
        places = [
            [(l == a, l == b) for l, a, b in zip(*rows) if l != IGNORE]
            for rows in zip(labels.tolist(), first.tolist(), second.tolist())
        ]
        leads = [sum(a - b for a, b in row) for row in places]
        won, lost = sum(n > 0 for n in leads), sum(n < 0 for n in leads)
        n, ways, twice = won + lost, 1, 0
        for k in range(min(won, lost) + 1):
            twice += 2 * ways
            ways = ways * (n - k) // (k + 1)
        return sum(leads) / (sum(map(len, places)) or 1), won, lost, min(1.0, twice / 2**n)

    def compare(*given):
        given = [part.to(device) for part in given]
        kept = [part.clone() for part in given]
        (difference, *votes, chance), wanted = implementation(*given), own(*kept)
        assert all(a.equal(b) for a, b in zip(given, kept))
        assert isinstance(difference, float) and isinstance(chance, float)
        assert tuple(votes) == wanted[1:3] and all(isinstance(vote, int) for vote in votes)
        assert abs(difference - wanted[0]) <= 1e-10
        assert abs(chance - wanted[3]) <= 1e-9 * wanted[3]

    for B in (0, 1, 2, 3, 5, 8, 13, 50, 140):
        for better in (0.0, 0.2, 0.9):
            for T in (1, 2, 7):
                labels, second = torch.randint(4, (2, B, T))
                first = torch.where(torch.rand(B, T) < better, labels, torch.randint(4, (B, T)))
                labels = labels.masked_fill(torch.rand(B, T) < 0.25, IGNORE)
                second = second.masked_fill(torch.rand(B, T) < 0.1, 7)
                beside = torch.where(labels == IGNORE, labels, second)
                compare(labels, first, beside)
                compare(labels, beside, first)
    many = torch.zeros(900, 1).long()
    compare(many, many, many + 1)
    compare(many - 100, many, many - 100)"""
        },
    ),
]
