"""Wrong answers to the pre-training assignment that people give, and right answers that people write differently.

A change is either a pair (text in the reference, text to put there) or the whole cell. "visible" means that the tests
that the student has refuse it already; "hidden" that only the grader's do. Longer than 400 lines because it is a
catalogue: look an entry up, do not read it through.
"""

from course_tools.grading.assignments.mutants import Mutant, RightAnswer, wrong_checks

LEARNING = "step-lowers"


def mutants_of(solution: str, cell: str, *rows: tuple) -> list[Mutant]:
    """Mutants of one solution cell that one test cell must refuse.

    A row is (name, mistake, change, words, caught), and the cells that fail with it, if any.
    """
    return [
        Mutant(name, mistake, cell, words, caught, {solution: change}, tuple(also))
        for name, mistake, change, words, caught, *also in rows
    ]


CHOSEN = "chosen = (torch.rand(input_ids.shape, generator=generator) < rate) & ~special"
LABELS = "labels = input_ids.masked_fill(~chosen, IGNORE)"
CHOICE = mutants_of(
    "mask",
    "masking-choice",
    (
        "special_tokens_masked",
        "chooses among all positions, [CLS], [SEP] and filling included",
        (" & ~special", ""),
        "special tokens are chosen",
        "visible",
    ),
    (
        "filling_alone_left_out",
        "leaves out filling and chooses [CLS] and [SEP]",
        (CHOSEN, CHOSEN.replace("~special", "(input_ids != 0)")),
        "special tokens are chosen",
        "visible",
    ),
    (
        "special_tokens_are_the_smallest_ids",
        "takes the smallest ids for special ones, however many there are",
        (
            "special = torch.isin(input_ids, torch.tensor(special_ids))",
            "special = input_ids < len(special_ids)",
        ),
        "special ids in the middle of the vocabulary, the choice of positions is wrong",
        "hidden",
    ),
    (
        "labels_not_ignored_at_other_positions",
        "returns the original ids as labels everywhere",
        (LABELS, "labels = input_ids.clone()"),
        "special tokens are chosen",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "labels_of_all_words",
        "ignores special tokens only",
        (LABELS, "labels = input_ids.masked_fill(special, IGNORE)"),
        "All positions have one: set the others to -100",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "labels_of_masked_tokens_only",
        "asks only where [MASK] stands",
        (
            "return masked_ids, labels",
            "return masked_ids, labels.masked_fill(masked_ids != mask_id, IGNORE)",
        ),
        "A token was replaced whose label is -100",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "labels_of_changed_tokens_only",
        "does not ask for tokens that stay as they are",
        (
            "return masked_ids, labels",
            "return masked_ids, labels.masked_fill(masked_ids == input_ids, IGNORE)",
        ),
        "Chosen positions that keep their token have a label, too",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "labels_from_the_masked_ids",
        "makes the labels after the holes",
        (
            "return masked_ids, labels",
            "return masked_ids, masked_ids.masked_fill(~chosen, IGNORE)",
        ),
        "input_ids, not masked_ids",
        "visible",
    ),
    (
        "masked_in_place",
        "makes the holes in input_ids itself",
        ("masked_ids = input_ids.clone()", "masked_ids = input_ids"),
        "changes it in place",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "masked_in_place_before_the_labels",
        "makes the holes in input_ids, and then copies the labels from there",
        """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    special = torch.isin(input_ids, torch.tensor(special_ids))
    chosen = (torch.rand(input_ids.shape, generator=generator) < rate) & ~special
    lot = torch.rand(input_ids.shape, generator=generator)
    input_ids[chosen & (lot < 0.8)] = mask_id
    labels = input_ids.masked_fill(~chosen, IGNORE)
    return input_ids, labels""",
        "the labels, and the next epoch, would see [MASK]",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "zero_for_ignored",
        "labels other positions with 0",
        (LABELS, "labels = input_ids.masked_fill(~chosen, 0)"),
        "special tokens are chosen",
        "visible",
        "masking-draws",
        "masking-fates",
    ),
    (
        "minus_one_for_ignored",
        "labels other positions with -1",
        (LABELS, "labels = input_ids.masked_fill(~chosen, -1)"),
        "special tokens are chosen",
        "visible",
        "masking-draws",
        "masking-fates",
        "step-lowers",
    ),
    (
        "rate_of_all_positions",
        "counts special tokens into the share, so that ordinary ones are chosen more often",
        (
            CHOSEN,
            "share = rate * special.numel() / (~special).sum().clamp(min=1)\n"
            "    chosen = (torch.rand(input_ids.shape, generator=generator) < share) & ~special",
        ),
        "count the ordinary tokens only",
        "visible",
    ),
    (
        "rate_typed_in",
        "chooses 15% whatever rate is",
        (CHOSEN, CHOSEN.replace("< rate", "< 0.15")),
        "The share of tokens not chosen is wrong",
        "hidden",
        "masking-fates",
    ),
    (
        "exactly_15_percent_of_each_row",
        "chooses the same number of positions in each row",
        (
            CHOSEN,
            "lots = torch.rand(input_ids.shape, generator=generator).masked_fill(special, 2)\n"
            "    count = round(rate * float((~special).double().sum(1).mean()))\n"
            "    chosen = torch.zeros_like(special)\n"
            "    chosen.scatter_(1, lots.argsort(1)[:, :count], True)\n    chosen &= ~special",
        ),
        "Choose each position by itself",
        "hidden",
        "masking-fates",
        "masking-draws",
    ),
    (
        "every_second_position_at_most",
        "never chooses two neighbours",
        (LABELS, "chosen[:, 1:] &= ~chosen[:, :-1].clone()\n    " + LABELS),
        "The share of ordinary tokens that have a label",
        "visible",
        "masking-fates",
    ),
    (
        "labels_alone",
        "returns the masked ids only",
        ("return masked_ids, labels", "return masked_ids"),
        "mask_tokens must return (masked_ids, labels)",
        "visible",
        "masking-draws",
        "masking-fates",
        "step-lowers",
    ),
    (
        "labels_first",
        "returns the labels first",
        ("return masked_ids, labels", "return labels, masked_ids"),
        "special tokens are chosen",
        "visible",
        "masking-draws",
        "masking-fates",
        "step-lowers",
    ),
    (
        "library_s_masking",
        "takes the library's function",
        (
            "masked_ids = input_ids.clone()",
            "from course_lib.pretraining.masking import mask_tokens as ready\n    masked_ids = input_ids.clone()",
        ),
        "which this assignment withholds",
        "visible",
        "masking-fates",
        "masking-draws",
        "step-lowers",
    ),
)

DRAWN = "drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]"
ORDINARY = "ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])"
FATE = """    masked_ids[chosen & (lot < 0.8)] = mask_id
    swapped = chosen & (lot >= 0.8) & (lot < 0.9)
    masked_ids[swapped] = drawn[swapped]"""
SECOND_DRAW = "    other = torch.rand(input_ids.shape, generator=generator)\n"
FATES = mutants_of(
    "mask",
    "masking-fates",
    (
        "draws_for_random_and_kept",
        "draws once for the random 10%, once more for the 10% that stay: 81/10/9",
        (
            FATE,
            SECOND_DRAW
            + "    swapped = chosen & (lot < 0.1)\n    masked_ids[chosen & ~swapped & (other >= 0.1)] = mask_id\n"
            "    masked_ids[swapped] = drawn[swapped]",
        ),
        "10% become random, then 10% of the rest stay. One draw must decide",
        "visible",
    ),
    (
        "draws_for_kept_and_random",
        "draws once for the 10% that stay, once more for the random 10%: 81/9/10",
        (
            FATE,
            SECOND_DRAW
            + "    left = chosen & (lot >= 0.1)\n    swapped = left & (other < 0.1)\n"
            "    masked_ids[left & ~swapped] = mask_id\n    masked_ids[swapped] = drawn[swapped]",
        ),
        "10% stay, then 10% of the rest become random. One draw must decide",
        "visible",
    ),
    (
        "random_overwrites_masks",
        "draws for [MASK] and for random tokens independently: 72/10/18",
        (
            FATE,
            SECOND_DRAW
            + "    masked_ids[chosen & (lot < 0.8)] = mask_id\n    swapped = chosen & (other < 0.1)\n"
            "    masked_ids[swapped] = drawn[swapped]",
        ),
        "random tokens overwrite some [MASK]s",
        "visible",
    ),
    (
        "ten_percent_of_the_rest",
        "draws again among the 20% that are left, with 10% instead of half: 80/2/18",
        (
            FATE,
            SECOND_DRAW
            + "    masked_ids[chosen & (lot < 0.8)] = mask_id\n    swapped = chosen & (lot >= 0.8) & (other < 0.1)\n"
            "    masked_ids[swapped] = drawn[swapped]",
        ),
        "random are 10% of what [MASK] has left",
        "visible",
    ),
    (
        "all_masked",
        "replaces every chosen token by [MASK]",
        (FATE, "    masked_ids[chosen] = mask_id"),
        "Only 80% of the chosen become [MASK]",
        "visible",
        "masking-draws",
    ),
    (
        "no_random_tokens",
        "lets all stay that do not become [MASK]",
        ("    masked_ids[swapped] = drawn[swapped]\n", ""),
        "A tenth must become random tokens",
        "visible",
    ),
    (
        "none_kept",
        "replaces all that do not become [MASK] at random",
        (" & (lot < 0.9)", ""),
        "A tenth must stay as it is",
        "visible",
    ),
    (
        "random_special_tokens",
        "draws random tokens from the whole vocabulary",
        (
            DRAWN,
            "drawn = torch.randint(vocab_size, input_ids.shape, generator=generator)",
        ),
        "Draw from all ids that are not special",
        "visible",
        "masking-draws",
    ),
    (
        "random_tokens_from_five_on",
        "takes ids from 5 on for the ordinary ones",
        (
            DRAWN,
            "drawn = torch.randint(min(5, vocab_size - 1), vocab_size, input_ids.shape, generator=generator)",
        ),
        "Among the random tokens are special ones",
        "hidden",
    ),
    (
        "one_random_token_for_all",
        "draws one token and writes it everywhere",
        (
            DRAWN,
            "drawn = ordinary[torch.randint(len(ordinary), (1,), generator=generator)].expand_as(input_ids)",
        ),
        "Draw a new one for each position",
        "visible",
    ),
    (
        "random_tokens_from_the_batch",
        "exchanges tokens with another position, so that frequent ones come more often",
        (
            DRAWN,
            "drawn = input_ids[torch.randperm(len(input_ids), generator=generator)].clone()\n"
            "    drawn[torch.isin(drawn, torch.tensor(special_ids))] = ordinary[0]",
        ),
        "The share of tokens that stay is wrong",
        "hidden",
    ),
    (
        "last_token_never_drawn",
        "counts one too few for the upper end of the draw",
        (
            "torch.randint(len(ordinary),",
            "torch.randint(len(ordinary) - (len(ordinary) > 1),",
        ),
        "Random tokens are drawn one by one, each ordinary id equally likely",
        "hidden",
    ),
)

DRAWS = mutants_of(
    "mask",
    "masking-draws",
    (
        "common_generator_for_the_choice",
        "forgets the generator in one of three draws",
        (CHOSEN, CHOSEN.replace(", generator=generator", "")),
        "Your draws come from torch's common generator",
        "visible",
    ),
    (
        "seeded_inside",
        "makes a generator of its own, with a fixed seed",
        (
            "special = torch.isin",
            "generator = torch.Generator().manual_seed(0)\n    special = torch.isin",
        ),
        "is the seed set inside mask_tokens?",
        "visible",
        "masking-fates",
    ),
    (
        "same_positions_in_every_sequence",
        "draws one row for the whole batch",
        (CHOSEN, CHOSEN.replace("input_ids.shape", "input_ids.shape[1:]")),
        "In every sequence the same positions are chosen",
        "visible",
        "masking-choice",
        "masking-fates",
        "step-lowers",
    ),
    (
        "static_masking",
        "draws from a generator that starts anew with the one it is given each time",
        (
            "special = torch.isin",
            "generator = torch.Generator().manual_seed(generator.initial_seed())\n    special = torch.isin",
        ),
        "In the second epoch the same positions are chosen",
        "visible",
        "masking-fates",
    ),
)

FILL = mutants_of(
    "fill",
    "pairs-fill",
    (
        "segment_shorter_than_most",
        "keeps every segment shorter than most",
        ("+ len(sentence) <= most", "+ len(sentence) < most"),
        "A segment may be as long as most",
        "visible",
    ),
    (
        "room_looked_for_afterwards",
        "adds a sentence as long as the segment is not full",
        ("len(segments[-1]) + len(sentence) <= most", "len(segments[-1]) <= most"),
        "Look whether the next sentence has room before you add it",
        "visible",
    ),
    (
        "one_sentence_a_segment",
        "does not join anything",
        ("if segments and len", "if False and len"),
        "Join sentences as long as there is room",
        "visible",
    ),
    (
        "last_segment_lost",
        "forgets what is left at the end",
        ("return segments", "return segments[:-1] if len(segments) > 1 else segments"),
        "The last segment is missing",
        "visible",
        "step-lowers",
    ),
    (
        "long_sentences_not_cut",
        "lets a long sentence be as long as it is",
        ("sentence[:most]", "sentence[:]"),
        "A sentence longer than most is cut",
        "visible",
    ),
    (
        "long_sentences_dropped",
        "leaves out sentences that have no room",
        (
            "segments.append(sentence[:most])",
            "segments.extend([sentence] * (len(sentence) <= most))",
        ),
        "A sentence longer than most is cut",
        "visible",
    ),
    (
        "document_changed_in_place",
        "joins with +=, and changes the document's first sentence",
        (
            "            segments[-1] = segments[-1] + sentence\n        else:\n            segments.append(sentence[:most])",
            "            segments[-1] += sentence\n        else:\n            segments.append(sentence if len(sentence) <= most else sentence[:most])",
        ),
        "fill_segments must leave the document as it was",
        "visible",
    ),
    (
        "empty_document_is_one_empty_segment",
        "starts with an empty segment",
        ("return segments", "return segments or [[]]"),
        "With no sentences, the list of segments is wrong",
        "hidden",
    ),
)

COIN = "if random.random() < 0.5:"
OTHER = """                other = random.randrange(len(documents) - 1)
                second = random.choice(documents[other + (other >= number)])"""
NEXT = mutants_of(
    "next",
    "pairs-next",
    (
        "random_segment_of_the_same_document",
        "draws the random second segment from the same document",
        (OTHER, "                second = random.choice(document)"),
        "draw from the other documents",
        "visible",
        "pairs-chance",
    ),
    (
        "random_segment_of_the_same_document_but_not_the_next",
        "draws from the same document, the true next one left out",
        (
            OTHER,
            "                second = random.choice([s for i, s in enumerate(document) if i != place + 1])",
        ),
        "of the same document. It may be the true next one, or read like it",
        "visible",
        "pairs-chance",
    ),
    (
        "random_document_may_be_the_same",
        "draws among all documents",
        (OTHER, "                second = random.choice(random.choice(documents))"),
        "draw from the other documents",
        "visible",
        "pairs-chance",
    ),
    (
        "random_segment_of_the_whole_corpus",
        "draws among all segments that there are",
        (
            OTHER,
            "                second = random.choice([s for d in documents for s in d])",
        ),
        "draw from the other documents",
        "visible",
        "pairs-chance",
    ),
    (
        "pairs_across_documents",
        "joins all documents first, so that the last segment of one is followed by the first of the next",
        """def sentence_pairs(documents, random):
    if len(documents) < 2:
        raise ValueError("one document")
    flat = [(number, segment) for number, document in enumerate(documents) for segment in document]
    pairs = []
    for (number, first), (_, second) in zip(flat, flat[1:]):
        label = IS_NEXT
        if random.random() < 0.5:
            other = random.randrange(len(documents) - 1)
            second, label = random.choice(documents[other + (other >= number)]), NOT_NEXT
        pairs.append((first, second, label))
    return pairs""",
        "it has no next one, so it is the first of no pair",
        "visible",
    ),
    (
        "labels_exchanged",
        "calls the true next one 1, as one would guess",
        """def sentence_pairs(documents, random):
    if len(documents) < 2:
        raise ValueError("one document")
    pairs = []
    for number, document in enumerate(documents):
        for place in range(len(document) - 1):
            second, label = document[place + 1], 1
            if random.random() < 0.5:
                other = random.randrange(len(documents) - 1)
                second, label = random.choice(documents[other + (other >= number)]), 0
            pairs.append((document[place], second, label))
    return pairs""",
        "IS_NEXT is 0",
        "visible",
        "pairs-chance",
    ),
    (
        "segments_in_twos",
        "uses each segment once: 0 and 1, 2 and 3",
        ("range(len(document) - 1)", "range(0, len(document) - 1, 2)"),
        "is the first of no pair. Every segment but the last",
        "visible",
    ),
    (
        "first_segment_left_out",
        "begins with the second segment of a document",
        ("range(len(document) - 1)", "range(1, len(document) - 1)"),
        "Segment 0 of document 0 is the first of no pair",
        "visible",
        "step-lowers",
    ),
    (
        "segment_two_places_on",
        "takes the segment after the next one",
        (
            "document[place + 1], IS_NEXT",
            "document[min(place + 2, len(document) - 1)], IS_NEXT",
        ),
        "Labelled IS_NEXT, but after segment 0",
        "visible",
    ),
    (
        "previous_segment_for_the_next",
        "takes the segment itself",
        ("document[place + 1], IS_NEXT", "document[place], IS_NEXT"),
        "Labelled IS_NEXT, but after segment 0",
        "visible",
    ),
    (
        "one_document_loops_or_crashes",
        "does not think of a corpus of one document",
        (
            "    if len(documents) < 2:\n"
            '        raise ValueError("a random segment must come from another document; there is only one")\n',
            "",
        ),
        "With one document only, sentence_pairs must raise ValueError",
        "hidden",
    ),
    (
        "pairs_as_lists",
        "returns lists instead of tuples",
        (
            "pairs.append((document[place], second, label))",
            "pairs.append([document[place], second, label])",
        ),
        "a list of tuples (first, second, label)",
        "visible",
        "pairs-chance",
    ),
)

CHANCE = mutants_of(
    "next",
    "pairs-chance",
    (
        "all_next",
        "never draws a random one",
        (COIN, "if random.random() < 0:"),
        "Throw a coin for each pair",
        "visible",
    ),
    (
        "fifteen_percent_random",
        "mixes the share up with that of masking",
        (COIN, "if random.random() < 0.15:"),
        "Throw a coin for each pair",
        "visible",
    ),
    (
        "labels_alternate",
        "makes every second pair a random one",
        (COIN, "if len(pairs) % 2:"),
        "Your labels alternate",
        "visible",
    ),
    (
        "first_segment_of_the_other_document",
        "always takes the first segment of the other document",
        (
            "random.choice(documents[other + (other >= number)])",
            "documents[other + (other >= number)][0]",
        ),
        "ever come up as random ones",
        "visible",
    ),
    (
        "always_the_next_document",
        "takes the random segment from the next document",
        (
            "other = random.randrange(len(documents) - 1)",
            "other = number % (len(documents) - 1)",
        ),
        "First draw the document, each of the others equally likely",
        "visible",
    ),
    (
        "documents_by_their_length",
        "draws among the segments of all other documents, so that long documents come more often",
        (
            OTHER,
            "                others = [s for n, d in enumerate(documents) if n != number for s in d]\n"
            "                second = random.choice(others)",
        ),
        "First draw the document, each of the others equally likely",
        "visible",
    ),
    (
        "draws_from_the_module",
        "imports random and forgets the generator that is passed in",
        ("    pairs = []\n", "    import random\n\n    pairs = []\n"),
        "Your draws come from Python's common generator",
        "visible",
    ),
    (
        "seed_set_inside",
        "makes a generator with a fixed seed",
        (
            "    pairs = []\n",
            "    random = __import__('random').Random(7)\n    pairs = []\n",
        ),
        "is the seed set inside?",
        "visible",
    ),
    (
        "documents_before_never_drawn",
        "draws among the documents that come after, or all others when it is the last",
        (
            "documents[other + (other >= number)]",
            "[*documents[number + 1 :], *documents[: number * (number == len(documents) - 1)]]"
            "[other % max(len(documents) - 1 - number, 1)]",
        ),
        "The share of some random segments is wrong",
        "hidden",
    ),
)

TYPES = "[0] * (len(first) + 2) + [1] * (len(second) + 1)"
PACK = mutants_of(
    "pack",
    "pairs-pack",
    (
        "middle_sep_in_the_second_segment",
        "starts the second segment at the [SEP] that closes the first",
        (TYPES, "[0] * (len(first) + 1) + [1] * (len(second) + 2)"),
        "The [SEP] in the middle closes the first segment",
        "visible",
    ),
    (
        "last_sep_in_the_first_segment",
        "gives the last [SEP] segment 0",
        (TYPES, "[0] * (len(first) + 2) + [1] * len(second) + [0]"),
        "The last [SEP] closes the second segment",
        "visible",
    ),
    (
        "second_segment_one_late",
        "starts the second segment one position late",
        (TYPES, "[0] * (len(first) + 3) + [1] * len(second)"),
        "begins right after the [SEP] in the middle",
        "visible",
    ),
    (
        "filling_in_the_second_segment",
        "gives the filling segment 1",
        ("+ [0] * filling", "+ [1] * filling"),
        "The filling belongs to no segment",
        "visible",
    ),
    (
        "segments_found_by_looking_for_sep",
        "looks for [SEP] in the ids, which may be a word",
        (
            "        types.append(" + TYPES + " + [0] * filling)",
            "        end = row.index(sep_id)\n"
            "        types.append([int(place > end) for place in range(len(row))] + [0] * filling)",
        ),
        "With special ids that are ordinary ones, too",
        "hidden",
    ),
    (
        "padding_mask_upside_down",
        "marks the filling",
        (
            "[True] * len(row) + [False] * filling",
            "[False] * len(row) + [True] * filling",
        ),
        "Yours is upside down",
        "visible",
    ),
    (
        "mask_from_the_ids",
        "takes every pad_id for filling",
        (
            "masks.append([True] * len(row) + [False] * filling)",
            "masks.append([token != pad_id for token in rows[-1]])",
        ),
        "With special ids that are ordinary ones, too",
        "hidden",
    ),
    (
        "labels_upside_down",
        "labels pairs with 1 for next",
        ("[label for _, _, label in pairs]", "[1 - label for _, _, label in pairs]"),
        "Your labels are exchanged",
        "visible",
    ),
    (
        "no_sep_at_the_end",
        "leaves out the last [SEP]",
        ("*second, sep_id]", "*second]"),
        "The second segment is closed by a [SEP], too",
        "visible",
        "step-lowers",
    ),
    (
        "labels_as_floats",
        "returns labels as floats",
        (
            "torch.tensor([label for _, _, label in pairs])",
            "torch.tensor([float(label) for _, _, label in pairs])",
        ),
        "must have dtype torch.int64",
        "visible",
        "step-lowers",
    ),
)

LOSSES = "losses.sum() / max(len(losses), 1)"
LOSS = mutants_of(
    "loss",
    "loss-masked",
    (
        "loss_over_all_positions",
        "divides by all positions",
        (LOSSES, "losses.sum() / labels.numel()"),
        "You divide by all 6 positions",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "ignored_labels_count_as_zero",
        "sets -100 to 0 and counts every position",
        (
            "chosen = labels != IGNORE",
            "labels = labels.clamp(min=0)\n    chosen = labels != IGNORE",
        ),
        "as if their label were 0",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "ignored_labels_count_from_the_end",
        "uses -100 as an index",
        (
            "chosen = labels != IGNORE",
            "labels = labels % logits.shape[-1]\n    chosen = labels != IGNORE",
        ),
        "Your loss counts the positions with label -100, too",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "sum_for_the_mean",
        "adds up and does not divide",
        (LOSSES, "losses.sum()"),
        "That is the sum",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "divided_by_the_sequences",
        "divides by the number of sequences",
        (LOSSES, "losses.sum() / len(labels)"),
        "You divide by the number of sequences",
        "visible",
        "loss-total",
        "step-training",
        "step-evaluate",
        "step-lowers",
    ),
    (
        "mean_of_means",
        "takes the mean of each sequence first",
        (
            "    return " + LOSSES,
            "    if labels.dim() > 1:\n"
            "        rows = [masked_loss(*row) for row in zip(logits, labels) if (row[1] != IGNORE).any()]\n"
            "        return sum(rows, torch.zeros((), dtype=logits.dtype, device=logits.device)) / max(len(rows), 1)\n"
            "    return " + LOSSES,
        ),
        "Each chosen position counts alike",
        "visible",
        "loss-total",
        "step-training",
        "step-evaluate",
        "step-lowers",
    ),
    (
        "sign_forgotten",
        "maximises",
        ("losses = -log", "losses = log"),
        "The sign is wrong",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "logarithm_to_base_two",
        "takes the logarithm to base 2",
        (LOSSES, LOSSES + " / math.log(2)"),
        "Take the natural logarithm",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "probability_for_the_logarithm",
        "takes 1 - P for the loss",
        (
            "losses = -log_probabilities.gather",
            "losses = 1 - log_probabilities.exp().gather",
        ),
        "Take the logarithm of the probability",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "logarithm_of_softmax",
        "takes softmax first and the logarithm afterwards",
        ("logits[chosen].log_softmax(dim=-1)", "logits[chosen].softmax(dim=-1).log()"),
        "Take log_softmax in one step",
        "hidden",
        "loss-total",
    ),
    (
        "softmax_clamped",
        "keeps probabilities above 1e-9, so that the logarithm is finite and wrong",
        (
            "logits[chosen].log_softmax(dim=-1)",
            "logits[chosen].softmax(dim=-1).clamp(min=1e-9).log()",
        ),
        "Take log_softmax in one step",
        "hidden",
        "loss-total",
        "step-training",
        "step-evaluate",
    ),
    (
        "nothing_chosen_is_nan",
        "takes the mean of nothing",
        (LOSSES, "losses.mean()"),
        "contains nan",
        "visible",
        "loss-total",
    ),
    (
        "softmax_over_positions",
        "takes the softmax over the wrong axis",
        ("log_softmax(dim=-1)", "log_softmax(dim=0)"),
        "It is the mean of -log 0.5, -log 0.3 and -log 0.25",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "loss_detached",
        "returns a loss without gradient",
        ("    return " + LOSSES, "    return (" + LOSSES + ").detach()"),
        "no gradient reaches logits",
        "hidden",
        "loss-total",
        "step-training",
        "step-lowers",
    ),
    (
        "label_zero_ignored",
        "takes 0, the id of filling, for ignored as well",
        ("chosen = labels != IGNORE", "chosen = labels > 0"),
        "It is the mean of -log 0.5",
        "visible",
        "loss-total",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "ready_made_loss",
        "calls torch's cross_entropy",
        (
            "    return " + LOSSES,
            "    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())",
        ),
        "which this assignment withholds",
        "visible",
        "loss-total",
        "step-training",
        "step-evaluate",
        "step-lowers",
    ),
)

ROWS = mutants_of(
    "rows",
    "loss-rows",
    (
        "portions_forgotten",
        "gives head all positions at once, however many",
        ("rows.split(most or max(len(rows), 1))", "[rows]"),
        "With most 3, how many of five chosen positions head gets in each call",
        "visible",
    ),
    (
        "that_many_portions",
        "takes most for the number of portions",
        ("rows.split(most or max(len(rows), 1))", "rows.chunk(most or 1)"),
        "how many of five chosen positions head gets in each call",
        "visible",
    ),
    (
        "last_portion_forgotten",
        "stops where fewer positions are left than a portion has",
        (
            "for portion in portions]",
            "for portion in portions if len(portion) == (most or len(rows))]",
        ),
        "how many of five chosen positions head gets in each call",
        "visible",
    ),
    (
        "labels_of_the_last_portion",
        "returns the logits of the last portion alone",
        (
            "torch.cat([head(portion) for portion in portions])",
            "[head(portion) for portion in portions][-1]",
        ),
        "With most 3, the table of logits",
        "visible",
    ),
    (
        "head_at_all_positions",
        "asks everywhere and picks afterwards",
        ("torch.cat([head(portion) for portion in portions])", "head(hidden)[chosen]"),
        "What head gets must have shape",
        "visible",
    ),
    (
        "head_for_each_position",
        "calls the head once for each chosen position",
        ("rows.split(most or max(len(rows), 1))", "rows.split(1)"),
        "Call head once",
        "visible",
    ),
    (
        "all_labels_returned",
        "returns all labels",
        (
            "for portion in portions]), labels[chosen]",
            "for portion in portions]), labels",
        ),
        "The list of labels must have shape",
        "visible",
    ),
    (
        "positions_in_another_order",
        "goes position by position instead of sequence by sequence",
        (
            "    rows = hidden[chosen]",
            "    labels, chosen, hidden = labels.T, chosen.T, hidden.transpose(0, 1)\n"
            "    rows = hidden[chosen]",
        ),
        "Those of the chosen positions, in their order",
        "visible",
    ),
    (
        "label_zero_not_asked",
        "takes 0 for ignored, too",
        ("labels != IGNORE", "labels > 0"),
        "What head gets must have shape",
        "visible",
    ),
)

TOTAL_LINE = (
    "masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)"
)
TOTAL = mutants_of(
    "total",
    "loss-total",
    (
        "no_pair_loss",
        "forgets the second task",
        (TOTAL_LINE, "masked_loss(token_logits, labels)"),
        "The pair loss is missing",
        "visible",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "no_token_loss",
        "forgets the first task",
        (TOTAL_LINE, "masked_loss(pair_logits, next_sentence_labels)"),
        "The token loss is missing",
        "visible",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "mean_of_both",
        "divides the sum of both by 2",
        (TOTAL_LINE, f"({TOTAL_LINE}) / 2"),
        "Add the two means; do not divide by 2",
        "visible",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "one_mean_over_everything",
        "takes one mean over positions and pairs together",
        (
            f"return {TOTAL_LINE}",
            "N, B = (labels != IGNORE).sum(), len(next_sentence_labels)\n"
            "    tokens, pairs = masked_loss(token_logits, labels), masked_loss(pair_logits, next_sentence_labels)\n"
            "    return (N * tokens + B * pairs) / (N + B)",
        ),
        "Take the mean of each task by itself, then add",
        "visible",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "pairs_summed",
        "adds up the pair losses",
        (
            "masked_loss(pair_logits, next_sentence_labels)",
            "masked_loss(pair_logits, next_sentence_labels) * len(pair_logits)",
        ),
        "The pair loss is a mean over sequences, too",
        "visible",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "pair_logits_exchanged",
        "takes logit 1 for IS_NEXT",
        ("masked_loss(pair_logits, ", "masked_loss(pair_logits.flip(-1), "),
        "Logit 0 is for IS_NEXT",
        "visible",
        "step-training",
        "step-evaluate",
        "step-lowers",
    ),
    (
        "pair_loss_halved",
        "weights the second task by a half",
        ("+ masked_loss(pair_logits", "+ 0.5 * masked_loss(pair_logits"),
        "It is the sum of the two means",
        "visible",
        "step-evaluate",
        "step-lowers",
        "step-training",
    ),
    (
        "pair_loss_only_where_tokens_are_asked",
        "leaves the pair loss out where no token is chosen",
        (f"return {TOTAL_LINE}", f"return ({TOTAL_LINE}) * (labels != IGNORE).any()"),
        "With no chosen position, where the pair loss is left",
        "hidden",
    ),
)

CALL = """    token_logits, pair_logits = model(
        batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
    )
    loss = pretraining_loss(
        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]
    )
    loss.backward()"""
STEP = mutants_of(
    "train",
    "step-training",
    (
        "gradients_never_cleared",
        "forgets zero_grad",
        ("    optimizer.zero_grad()\n", ""),
        "Gradients of the step before are added",
        "visible",
        "step-lowers",
    ),
    (
        "gradients_cleared_before_the_step",
        "clears the gradients between backward and step",
        ("    loss.backward()\n", "    loss.backward()\n    optimizer.zero_grad()\n"),
        "The optimizer sees no gradient",
        "visible",
        "step-lowers",
    ),
    (
        "no_backward",
        "forgets backward",
        ("    loss.backward()\n", ""),
        "The optimizer sees no gradient",
        "visible",
        "step-lowers",
    ),
    (
        "step_before_backward",
        "moves before it knows where to",
        (
            "    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n    optimizer.step()\n",
            "    optimizer.step()\n    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
        ),
        "The optimizer sees no gradient",
        "visible",
        "step-lowers",
    ),
    (
        "no_step",
        "forgets the optimizer",
        ("    optimizer.step()\n", ""),
        "must be called once a step",
        "visible",
        "step-lowers",
    ),
    (
        "not_clipped",
        "forgets max_norm",
        ("    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n", ""),
        "Cut the gradients to max_norm",
        "visible",
    ),
    (
        "clipped_after_the_step",
        "cuts the gradients when they have been used",
        (
            "    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n    optimizer.step()\n",
            "    optimizer.step()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
        ),
        "Cut the gradients to max_norm",
        "visible",
    ),
    (
        "clipped_number_by_number",
        "cuts each number of the gradient instead of its norm",
        (
            "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)",
            "torch.nn.utils.clip_grad_value_(model.parameters(), max_norm)",
        ),
        "the optimizer sees wrong gradients",
        "visible",
    ),
    (
        "max_norm_typed_in",
        "cuts to 1 whatever max_norm is",
        ("model.parameters(), max_norm)", "model.parameters(), 1.0)"),
        "the optimizer sees wrong gradients",
        "visible",
        "step-lowers",
    ),
    (
        "uphill",
        "goes up the loss instead of down",
        ("    loss.backward()\n", "    (-loss).backward()\n"),
        "The sign is wrong: the loss must go down",
        "visible",
        "step-lowers",
    ),
    (
        "trains_in_evaluation_mode",
        "forgets model.train(), so dropout stays off",
        ("    model.train()\n", ""),
        "Set the model to training first",
        "visible",
    ),
    (
        "loss_as_a_tensor",
        "returns the tensor, and with it the whole graph",
        (
            "    optimizer.step()\n    return loss.item()",
            "    optimizer.step()\n    return loss",
        ),
        "must return a Python float",
        "visible",
    ),
    (
        "segments_and_mask_exchanged",
        "passes segment ids where the mask belongs",
        (
            CALL,
            CALL.replace(
                'batch["attention_mask"], batch["token_type_ids"]',
                'batch["token_type_ids"], batch["attention_mask"]',
            ),
        ),
        "its attention_mask is something else",
        "visible",
        "step-lowers",
    ),
    (
        "mask_left_out",
        "does not tell the model what is filling",
        (CALL, CALL.replace('batch["attention_mask"], ', "None, ")),
        "its attention_mask is something else",
        "visible",
        "step-lowers",
    ),
    (
        "true_ids_shown",
        "shows the model the true ids at the chosen positions",
        (
            CALL,
            CALL.replace(
                'batch["input_ids"], ',
                'torch.where(batch["labels"] < 0, batch["input_ids"], batch["labels"]), ',
            ),
        ),
        "its input_ids is something else",
        "visible",
        "step-lowers",
    ),
    (
        "loss_after_the_step",
        "returns the loss after the step, for which it calls the model again",
        (
            "    optimizer.step()\n    return loss.item()",
            "    optimizer.step()\n    return evaluate(model, batch)[0]",
        ),
        "once a step",
        "visible",
        "step-lowers",
    ),
    (
        "max_norm_five_by_default",
        "changes the default",
        ("batch, max_norm=1.0", "batch, max_norm=5.0"),
        "With max_norm left out",
        "hidden",
    ),
)

EVALUATE = mutants_of(
    "train",
    "step-evaluate",
    (
        "dropout_left_on",
        "evaluates in training mode",
        ("    model.eval()\n", ""),
        "yours leaves dropout on",
        "visible",
    ),
    (
        "gradients_kept",
        "evaluates with gradients",
        ("with torch.no_grad():", "with torch.enable_grad():"),
        "Evaluate under torch.no_grad()",
        "visible",
    ),
    (
        "left_in_evaluation",
        "leaves the model in evaluation",
        ("    model.train(was_training)\n", ""),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "left_in_training",
        "leaves the model in training, however it was",
        ("model.train(was_training)", "model.train()"),
        "Leave it in the mode in which you found it",
        "visible",
    ),
    (
        "accuracy_over_all_positions",
        "divides by all positions",
        (
            "right.double().mean().item()",
            "right.double().sum().item() / chosen.numel()",
        ),
        "You divide by all positions",
        "visible",
        "step-lowers",
    ),
    (
        "number_of_right_ones",
        "counts and does not divide",
        ("right.double().mean().item()", "right.double().sum().item()"),
        "That is how many are right",
        "visible",
    ),
    (
        "accuracy_as_a_tensor",
        "returns a tensor",
        ("right.double().mean().item()", "right.double().mean()"),
        "your accuracy is a Tensor",
        "visible",
    ),
    (
        "accuracy_alone",
        "returns the accuracy only",
        ("return loss.item(), right", "return right"),
        "evaluate must return (loss, accuracy)",
        "visible",
        "step-lowers",
    ),
    (
        "accuracy_of_copying",
        "compares with the ids that the model sees",
        ('== batch["labels"][chosen]', '== batch["input_ids"][chosen]'),
        "so the accuracy is 0.7500",
        "visible",
        "step-lowers",
    ),
    (
        "mean_accuracy_of_sequences",
        "takes the mean of each sequence first",
        (
            "    return loss.item(), right.double().mean().item()",
            '    hits = ((token_logits.argmax(-1) == batch["labels"]) & chosen).double().sum(1)\n'
            "    counts = chosen.double().sum(1)\n"
            "    return loss.item(), (hits / counts.clamp(min=1)).mean().item()",
        ),
        "Count the chosen positions alone, each alike",
        "hidden",
    ),
)

LOWERS = mutants_of(
    "train",
    LEARNING,
    (
        "loss_defined_again_at_the_end",
        "defines pretraining_loss again, below its own test, with a mean over everything",
        (
            "def training_step(",
            "def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):\n"
            "    return 0.1 * (masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels))\n\n\n"
            "def training_step(",
        ),
        "Look at pretraining_loss",
        "visible",
        "step-evaluate",
        "step-training",
    ),
    (
        "moves_twice_as_an_afterthought",
        "undoes the step for models of more than one layer",
        (
            "    optimizer.step()\n",
            "    before = [parameter.detach().clone() for parameter in model.parameters()]\n    optimizer.step()\n"
            "    if len(before) > 2:\n        for parameter, old in zip(model.parameters(), before):\n"
            "            parameter.data.copy_(old)\n",
        ),
        "The step does not learn",
        "visible",
        "step-training",
    ),
)

CHECK_OF_EXAMPLES = """def check_whole_words(implementation):
    def taken(chosen, words, most):
        chosen = torch.tensor([chosen], device=device) > 0
        return implementation(chosen, torch.tensor([words], device=device), most).tolist()[0]

    words = [-1, 0, 0, 1, 2, 2, 2, -1, 0, 0]
    chosen = [1, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    assert taken(chosen, words, None) == [False, True, True, False, True, True, True, False, True, True]
    assert taken(chosen, words, 4) == [False, True, True, False, False, False, False, False, True, True]
    assert taken(chosen, words, 1) == [False] * 10
    assert taken([1, 1, 1], [5, 5, 7], 2) == [True, True, False]"""
CHECK_OF_TOO_MUCH = (
    CHECK_OF_EXAMPLES
    + """
    try:
        taken(chosen, words, -1)
    except ValueError as error:
        assert 'negative' in str(error), 'the error must say that the limit is negative'"""
)
CHECKS = wrong_checks(
    "whole_words",
    "implementation(torch.ones(1, 2, device=device) > 0, torch.tensor([[0, 0]], device=device), None)",
    "a tight fit; changed arguments; counting; empty input; errors that are not raised; number types; padding; sizes; the formula",
    CHECK_OF_EXAMPLES,
    CHECK_OF_TOO_MUCH,
)

MUTANTS = [
    *CHOICE,
    *FATES,
    *DRAWS,
    *FILL,
    *NEXT,
    *CHANCE,
    *PACK,
    *LOSS,
    *ROWS,
    *TOTAL,
    *STEP,
    *EVALUATE,
    *LOWERS,
    *CHECKS,
]

CHECK_BY_AN_OWN_ANSWER = """def check_whole_words(implementation):
    def own(chosen, words, most):
        answer = []
        for picks, row in zip(chosen.tolist(), words.tolist()):
            spans, out, used = [], [False] * len(row), 0
            for place, number in enumerate(row):
                if place and number == row[place - 1]:
                    spans[-1].append(place)
                else:
                    spans.append([place])
            for span in spans:
                if row[span[0]] < 0 or not any(picks[place] for place in span):
                    continue
                if most is None or used + len(span) <= most:
                    used += len(span)
                    for place in span:
                        out[place] = True
            answer.append(out)
        return answer

    sizes = [(3, 9), (1, 14), (2, 40), (4, 1), (0, 2), (2, 0)]
    for number in range(180):
        chosen = (torch.rand(sizes[number % 6]) < (0.1, 0.3, 0.8)[number % 3]).to(device)
        words = torch.randint(-3, 4, chosen.shape).to(device)
        words = words.repeat_interleave(3, 1)[:, : chosen.shape[1]] if number % 4 else words
        most = (None, 0, 2, 3, 5, 7, 30)[number % 7]
        given = chosen.clone(), words.clone()
        found = implementation(chosen, words, most)
        assert chosen.equal(given[0]) and words.equal(given[1])
        assert found.dtype == torch.bool and found.shape == chosen.shape
        assert found.tolist() == own(chosen, words, most)
    for picks in (chosen[:0], ~chosen & chosen, chosen | ~chosen):
        try:
            implementation(picks, torch.zeros_like(picks).long(), -2)
        except ValueError:
            continue
        raise AssertionError('a negative limit is an error')"""
RIGHT_ANSWERS = [
    RightAnswer(
        "categories_by_bucketize",
        "one draw, three categories; where instead of indexing; special ids one by one",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    ordinary_token = torch.ones_like(input_ids, dtype=torch.bool)
    for number in special_ids:
        ordinary_token &= input_ids != number
    chosen = torch.bernoulli(torch.full(input_ids.shape, rate), generator=generator).bool() & ordinary_token
    fate = torch.bucketize(torch.rand(input_ids.shape, generator=generator), torch.tensor([0.8, 0.9]))
    allowed = torch.ones(vocab_size)
    allowed[list(special_ids)] = 0
    words = torch.multinomial(allowed, input_ids.numel(), replacement=True, generator=generator).view_as(input_ids)
    masked_ids = torch.where(chosen & (fate == 0), mask_id, input_ids)
    masked_ids = torch.where(chosen & (fate == 1), words, masked_ids)
    return masked_ids, torch.where(chosen, input_ids, IGNORE)"""
        },
    ),
    RightAnswer(
        "one_draw_for_everything",
        "one number decides about choice and fate: 12%, 1.5%, 1.5%",
        {
            "mask": """def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    lot = torch.rand(*input_ids.shape, generator=generator, dtype=torch.float64)
    lot[torch.isin(input_ids, torch.tensor(list(special_ids)))] = 2.0
    labels = torch.full_like(input_ids, IGNORE)
    labels[lot < rate] = input_ids[lot < rate]
    masked_ids = input_ids + 0
    masked_ids[lot < 0.8 * rate] = mask_id
    swapped = (lot >= 0.8 * rate) & (lot < 0.9 * rate)
    ordinary = torch.tensor(sorted(set(range(vocab_size)) - set(special_ids)))
    masked_ids[swapped] = ordinary[torch.randint(0, len(ordinary), (int(swapped.sum()),), generator=generator)]
    return masked_ids, labels"""
        },
    ),
    RightAnswer(
        "half_of_the_rest",
        "80% first, then half of the rest, as a well-known library does",
        {
            "mask": (
                FATE,
                SECOND_DRAW
                + "    replaced = chosen & (lot < 0.8)\n    masked_ids[replaced] = mask_id\n"
                "    swapped = chosen & ~replaced & (other < 0.5)\n    masked_ids[swapped] = drawn[swapped]",
            )
        },
    ),
    RightAnswer(
        "segments_by_a_running_list",
        "keeps the present segment in a list of its own",
        {
            "fill": """def fill_segments(document, most):
    segments, present = [], []
    for sentence in document:
        sentence = sentence[:most]
        if present and len(present) + len(sentence) > most:
            segments.append(present)
            present = []
        present = [*present, *sentence]
    if present:
        segments.append(present)
    return segments"""
        },
    ),
    RightAnswer(
        "pairs_by_rejection",
        "draws documents until another one comes, and the coin first",
        {
            "next": """def sentence_pairs(documents, random):
    if len(documents) == 1:
        raise ValueError("only one document")
    result = []
    for d, document in enumerate(documents):
        for first, following in zip(document, document[1:]):
            if random.choice((IS_NEXT, NOT_NEXT)) == IS_NEXT:
                result.append((first, following, IS_NEXT))
            else:
                e = d
                while e == d:
                    e = random.randint(0, len(documents) - 1)
                result.append((first, documents[e][int(random.random() * len(documents[e]))], NOT_NEXT))
    return result"""
        },
    ),
    RightAnswer(
        "others_in_a_list",
        "lists the other documents, and a shuffled choice",
        {
            "next": (
                OTHER,
                "                others = documents[:number] + documents[number + 1 :]\n"
                "                second = random.sample(random.choices(others)[0], 1)[0]",
            )
        },
    ),
    RightAnswer(
        "packed_with_pad_sequence",
        "lets torch fill up",
        {
            "pack": """def pack_pairs(pairs, cls_id, sep_id, pad_id):
    pad = torch.nn.utils.rnn.pad_sequence
    ids = [torch.tensor([cls_id] + a + [sep_id] + b + [sep_id]) for a, b, _ in pairs]
    types = [torch.cat([torch.zeros(len(a) + 2).long(), torch.ones(len(b) + 1).long()]) for a, b, _ in pairs]
    return {
        "next_sentence_labels": torch.tensor([pair[2] for pair in pairs]),
        "input_ids": pad(ids, True, pad_id),
        "token_type_ids": pad(types, True),
        "attention_mask": pad([torch.ones(len(row), dtype=torch.bool) for row in ids], True, False),
    }"""
        },
    ),
    RightAnswer(
        "loss_by_logsumexp",
        "subtracts logits from logsumexp, and multiplies by the mask",
        {
            "loss": """def masked_loss(logits, labels):
    chosen = labels.ne(IGNORE)
    true = logits.gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    losses = torch.where(chosen, torch.logsumexp(logits, dim=-1) - true, torch.zeros_like(true))
    return losses.sum() / chosen.sum().clamp(min=1)""",
            "total": (
                TOTAL_LINE,
                "sum(masked_loss(*part) for part in ((pair_logits, next_sentence_labels), (token_logits, labels)))",
            ),
        },
    ),
    RightAnswer(
        "loss_by_one_hot",
        "multiplies by one-hot rows",
        {
            "loss": """def masked_loss(logits, labels):
    flat, labels = logits.reshape(-1, logits.size(-1)), labels.reshape(-1)
    keep = (labels != -100).nonzero().squeeze(1)
    if len(keep) == 0:
        return flat.sum() * 0
    rows = torch.nn.functional.log_softmax(flat[keep], dim=1)
    return -(rows * torch.nn.functional.one_hot(labels[keep], flat.size(1))).sum(1).mean()"""
        },
    ),
    RightAnswer(
        "rows_by_indices",
        "flattens and selects by index",
        {
            "rows": """def masked_logits(head, hidden, labels, most=None):
    where = labels.flatten().ne(IGNORE).nonzero().flatten()
    parts = [where] if most is None else [where[i : i + most] for i in range(0, max(len(where), 1), most)]
    logits = [head(hidden.flatten(0, 1).index_select(0, part)) for part in parts]
    return torch.cat(logits), labels.flatten()[where]"""
        },
    ),
    RightAnswer(
        "step_in_other_words",
        "clears the gradients at the end as well, keywords, and a helper for both functions",
        {
            "train": """def loss_of(model, batch):
    tokens, pairs = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        token_type_ids=batch["token_type_ids"],
    )
    return pretraining_loss(tokens, batch["labels"], pairs, batch["next_sentence_labels"]), tokens


def training_step(model, optimizer, batch, max_norm=1.0):
    model.train(True)
    model.zero_grad(set_to_none=True)
    loss, _ = loss_of(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return float(loss)


@torch.inference_mode()
def evaluate(model, batch):
    mode = model.training
    model.train(False)
    try:
        loss, tokens = loss_of(model, batch)
    finally:
        model.train(mode)
    asked = batch["labels"] >= 0
    hits = (tokens.max(-1).indices == batch["labels"]) & asked
    return float(loss), int(hits.sum()) / int(asked.sum())"""
        },
    ),
    RightAnswer(
        "gradients_by_autograd",
        "asks for the gradients and cuts them by hand",
        {
            "train": (
                "    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n",
                "    parameters = list(model.parameters())\n    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)\n"
                "    gradients = [torch.zeros_like(p) if g is None else g for g, p in zip(gradients, parameters)]\n"
                "    norm = torch.stack([g.norm() for g in gradients]).norm()\n"
                "    factor = (max_norm / (norm + 1e-6)).clamp(max=1)\n"
                "    for parameter, gradient in zip(parameters, gradients):\n        parameter.grad = gradient * factor\n",
            )
        },
    ),
    RightAnswer(
        "check_by_an_own_answer",
        "compares with whole words of its own on what is drawn",
        {"own-check": CHECK_BY_AN_OWN_ANSWER},
    ),
]

NO_LIBRARY = "ModuleNotFoundError: No module named 'course_lib.pretraining'"  # there is none where answers run
ACROSS = {
    "library_s_masking": dict.fromkeys(
        ("masking-fates", "masking-draws", "step-lowers"), NO_LIBRARY
    )
}
