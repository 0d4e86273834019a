# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   # Longer than 400 lines because an assignment is one notebook: six parts, each with its prose, skeleton and tests.
#   course:
#     chapter: pretraining
#     seconds: 60
#     withholds:
#       - course_lib.pretraining.masking
#       - course_lib.pretraining.next_sentence
#       - course_lib.pretraining.packing
#       - course_lib.pretraining.sequences
#       - course_lib.pretraining.batches
#       - course_lib.bert.model
#       - transformers
#       - torch.nn.functional.cross_entropy
#       - torch.nn.functional.nll_loss
#       - torch.nn.CrossEntropyLoss
#       - torch.nn.NLLLoss
# ---

# %% [markdown]
# # Assignment 5 · Pre-train BERT
#
# Nobody told BERT what a noun is. It was shown text with holes in it and had to fill them, and pairs of passages,
# of which it had to say whether they belong together. The texts label themselves, so there is no end of them. What
# can go wrong is the making of the holes: tell the model too much and it learns to copy, hide too much and there is
# nothing to learn from, and count the wrong positions and the loss looks wonderful.
#
# In this notebook you make the holes, the pairs, the loss and the step. At the end a small BERT learns a small
# language with them, in less than a minute, from a loss that you can predict before it starts.
#
# You need chapter 6 of the book, PyTorch, and about three hours. There are {points:total} points. No GPU is needed;
# if there is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell
# you what is wrong. When your work is graded, the same cells test more: other sizes, other special tokens, edge
# cases. Do not change, copy or delete the test cells. You may add cells of your own. Before you hand in, restart
# the kernel and run everything from the top. In a terminal, `course check pretraining.ipynb` tells
# you what is amiss.
#
# **What you may use.** Everything in PyTorch except what you build here. Withheld are: {withholds}.
#
# **Letters for shapes.** B: sequences in the batch. T: positions. D: features of a position. V: entries of the
# vocabulary. N: chosen positions of the whole batch. Masks are bool, and True means: a real token.

# %%
import math
import random

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
IGNORE = -100  # the label of a position that does not count
IS_NEXT, NOT_NEXT = 0, 1

# %% [markdown]
# The next cell holds what the tests need. Run it and leave it as it is. Jupyter shows it folded.

# %% jupyter={"source_hidden": true} cellView="form" nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
WITHHELD = [
    "{withholds}",
]


# {source:course_tools.grading.assignments.withheld.withheld_uses}


# {source:course_tools.grading.assignments.student_checks.cells_that_define}


# {source:course_tools.grading.assignments.student_checks.check_withheld}


# {source:course_tools.grading.assignments.guard.guard_withheld}


withheld_allowed = guard_withheld(WITHHELD)


# {source:course_tools.grading.assignments.student_checks.check_pair}


# {source:course_tools.grading.assignments.student_checks.check_shape}


# {source:course_tools.grading.assignments.student_checks.alike}


# {source:course_tools.grading.assignments.student_checks.check_close}


# {source:course_tools.grading.assignments.student_checks.check_same}


# {source:course_tools.grading.assignments.student_checks.tensor}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def check_share(share, expected, what, hint, tolerance=0.005):
    assert abs(share - expected) <= tolerance, (
        f"{what} must be {100 * expected:.3g}%; yours is {100 * share:.1f}%. {hint}"
    )


def masked_example(
    seed, B=200, T=4000, vocab_size=30000, special_ids=(0, 1, 2, 3, 4), mask_id=4, **options
):
    """Ids with a special token here and there, and what mask_tokens makes of them."""
    ids = torch.randint(vocab_size, (B, T), generator=seeded(seed))
    places = torch.rand(B, T, generator=seeded(seed + 1)) < 0.2
    ids[places] = torch.tensor(special_ids)[torch.arange(int(places.sum())) % len(special_ids)]
    before = ids.clone()
    answer = mask_tokens(ids, special_ids, mask_id, vocab_size, seeded(seed + 2), **options)
    masked_ids, labels = check_pair(answer, "mask_tokens must return (masked_ids, labels)")
    assert torch.equal(ids, before), (
        "mask_tokens must leave input_ids as it was; yours changes it in place, so the labels, and the next "
        "epoch, would see [MASK] where a word was. Work on a copy: input_ids.clone()."
    )
    for name, got in (("masked_ids", masked_ids), ("labels", labels)):
        check_shape(got, before.shape, name)
        assert got.dtype == torch.int64, (
            f"{name} must have dtype torch.int64; yours is {got.dtype}."
        )
    return before, masked_ids, labels, torch.isin(before, torch.tensor(special_ids))


# %% [markdown]
# ## Part 1 · Holes ({points:masking} points)
#
# **Question: which tokens does the model have to guess, and what does it see in their place?**
#
# Each position is *chosen* with probability `rate`, 0.15 in the paper, whatever happens to the others. Special
# tokens are never chosen. What stands at a chosen position afterwards is decided by **one** draw (Devlin et al.
# 2019, section 3.1):
#
# | probability | the model sees |
# |---|---|
# | 80% | `[MASK]` |
# | 10% | a random token, any that is not special, each equally likely |
# | 10% | the token itself |
#
# The label of a chosen position is the token that stood there, in all three cases. Every other position has the
# label -100 (`IGNORE`): nobody asks about it.
#
# All draws come from the `generator` that is passed in, so that a run can be repeated.


# %% nbgrader={"grade": false, "grade_id": "mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):
    """Make holes.

    input_ids:   int64 [B, T] on the CPU; it stays as it is
    special_ids: tuple of the ids of special tokens (padding among them), anywhere in the vocabulary
    mask_id:     the id of [MASK]; one of special_ids
    generator:   torch.Generator for all draws
    returns (masked_ids, labels), int64 [B, T]: what the model sees, and the original ids where it is asked, else -100

    Example: input_ids [[2, 21, 87, 54, 3]], special_ids (0, 1, 2, 3, 4), mask_id 4; if 21 and 54 are chosen, 21 is masked and 54
    stays: masked_ids [[2, 4, 87, 54, 3]], labels [[-100, 21, -100, 54, -100]]
    """
    ### BEGIN SOLUTION
    special = torch.isin(input_ids, torch.tensor(special_ids))
    chosen = (torch.rand(input_ids.shape, generator=generator) < rate) & ~special
    labels = input_ids.masked_fill(~chosen, IGNORE)

    lot = torch.rand(input_ids.shape, generator=generator)
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)])
    drawn = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]
    masked_ids = input_ids.clone()
    masked_ids[chosen & (lot < 0.8)] = mask_id
    swapped = chosen & (lot >= 0.8) & (lot < 0.9)
    masked_ids[swapped] = drawn[swapped]
    return masked_ids, labels
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "masking-choice", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("mask_tokens")
ids, masked_ids, labels, special = masked_example(11)
asked = labels != IGNORE
assert not (asked & special).any(), (
    f"{int((asked & special).sum())} special tokens are chosen. [CLS], [SEP], [PAD] and their like are never chosen: nobody asks for them."
)
assert not ((masked_ids != ids) & special).any(), (
    "A special token has been replaced in masked_ids. Special tokens are never chosen."
)
assert asked.any(), "No label asks for anything: at a chosen position it is the original id."
assert (labels[asked] == ids[asked]).all(), (
    "At a chosen position the label must be the id that stood there before: input_ids, not masked_ids."
    if (labels[asked] == masked_ids[asked]).all()
    else f"A label must be the original id or {IGNORE}; one of yours is {labels[asked & (labels != ids)][0].item()}."
)
assert not ((masked_ids != ids) & ~asked).any(), (
    "A token was replaced whose label is -100, so nobody asks for it. Only chosen positions are replaced, and every chosen one has a label."
)
check_share(
    asked[~special].double().mean().item(),
    0.15,
    "The share of ordinary tokens that have a label",
    "All positions have one: set the others to -100."
    if asked[~special].all()
    else "Chosen positions that keep their token have a label, too."
    if (masked_ids != ids)[asked].all()
    else "Choose each position with probability `rate`, and count the ordinary tokens only.",
    tolerance=0.0025,
)
### BEGIN HIDDEN TESTS
# {compare:choice}
# {compare:holes}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "masking-fates", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}


def check_fates(ids, masked_ids, labels, mask_id, special_ids, vocab_size):
    asked = labels != IGNORE
    seen, true = masked_ids[asked], ids[asked]
    assert len(seen) > 1000, "Hardly any token is chosen; mend that first."
    drawn = seen[(seen != mask_id) & (seen != true)]
    bad = torch.isin(drawn, torch.tensor(special_ids))
    assert not bad.any(), (
        f"Among the random tokens are special ones, such as {drawn[bad][0].item()}. Draw from all ids that are not special."
    )
    # A random token is the true one once in a while: 1 in as many as there are ordinary tokens.
    others = vocab_size - len(special_ids)
    swapped = (
        ((seen != mask_id) & (seen != true)).double().mean().item() * others / (others - 1)
    )
    masked = (seen == mask_id).double().mean().item()
    kept = 1 - masked - swapped
    yours = f"Yours: {100 * masked:.1f}% [MASK], {100 * swapped:.1f}% random, {100 * kept:.1f}% unchanged. "
    hint = "One draw decides: below 0.8, from 0.8 to 0.9, above."
    for shares, words in (
        (
            (0.81, 0.10, 0.09),
            "You draw twice: 10% become random, then 10% of the rest stay. One draw must decide.",
        ),
        (
            (0.81, 0.09, 0.10),
            "You draw twice: 10% stay, then 10% of the rest become random. One draw must decide.",
        ),
        (
            (0.72, 0.10, 0.18),
            "You draw twice, and random tokens overwrite some [MASK]s. One draw must decide.",
        ),
        (
            (0.80, 0.02, 0.18),
            "You draw twice: random are 10% of what [MASK] has left. One draw must decide.",
        ),
        ((0.80, 0.20, 0.00), "A tenth must stay as it is."),
        ((0.80, 0.00, 0.20), "A tenth must become random tokens."),
        ((1.00, 0.00, 0.00), "Only 80% of the chosen become [MASK]."),
        ((0.50, 0.10, 0.40), "80% of the chosen become [MASK], not `rate` of them."),
    ):
        if all(abs(a - b) < 0.004 for a, b in zip((masked, swapped, kept), shares)):
            hint = words
    check_share(masked, 0.8, "Of the chosen tokens, [MASK]", yours + hint)
    check_share(swapped, 0.1, "Of the chosen tokens, random ones", yours + hint)
    assert ((drawn >= 0) & (drawn < vocab_size)).all(), (
        "A random token is not in the vocabulary."
    )
    return drawn


ids, masked_ids, labels, special = masked_example(21, rate=0.5)
drawn = check_fates(ids, masked_ids, labels, 4, (0, 1, 2, 3, 4), 30000)
assert len(drawn.unique()) > 1000, (
    f"All random tokens are among {len(drawn.unique())} ids. Draw a new one for each position."
)
### BEGIN HIDDEN TESTS
# {compare:fates}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "masking-draws", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
ids = torch.arange(5, 4005).reshape(4, 1000)
arguments = (ids, (0, 1, 2, 3, 4), 4, 5000)
torch.manual_seed(0)
state = torch.get_rng_state()
first, again, other = (mask_tokens(*arguments, seeded(seed)) for seed in (31, 31, 32))
assert torch.equal(state, torch.get_rng_state()), (
    "Your draws come from torch's common generator, so they change with everything else that draws. Pass generator=generator "
    "to every function that draws."
)
assert all(torch.equal(a, b) for a, b in zip(first, again)), (
    "With equal generators the results differ. Pass generator=generator to every function that draws."
)
assert not torch.equal(first[1], other[1]), (
    "With different generators the same positions are chosen: is the seed set inside mask_tokens?"
)
chosen = first[1] != IGNORE
assert not (chosen[0] == chosen[1]).all(), (
    "In every sequence the same positions are chosen. Draw a number for each position of each sequence: shape [B, T]."
)
generator = seeded(33)
epochs = [mask_tokens(*arguments, generator) for _ in range(2)]
assert not torch.equal(epochs[0][1], epochs[1][1]), (
    "In the second epoch the same positions are chosen, though the generator has moved on."
)
### BEGIN HIDDEN TESTS
# {compare:calls}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · Pairs ({points:pairs} points)
#
# **Question: what goes into one sequence?**
#
# BERT reads pairs of *segments*. A segment is not one sentence but as many as have room. Fill segments up first: go
# through a document sentence by sentence and begin a new segment when the next sentence would make the present one
# longer than `most`. A single sentence that is longer than that is cut to its first `most` ids.


# %% nbgrader={"grade": false, "grade_id": "fill", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fill_segments(document, most):
    """Join the sentences of a document into segments.

    document: list of sentences, each a list of at least one id; it stays as it is
    returns a list of segments, each a list of 1 to `most` ids

    Example: [[1, 2], [3], [4, 5, 6], [7]], most 4 -> [[1, 2, 3], [4, 5, 6, 7]]
    """
    ### BEGIN SOLUTION
    segments = []
    for sentence in document:
        if segments and len(segments[-1]) + len(sentence) <= most:
            segments[-1] = segments[-1] + sentence
        else:
            segments.append(sentence[:most])
    return segments
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pairs-fill", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("fill_segments")
document = [[1, 2], [3], [4, 5], [6, 7, 8], [9]]
check_same(
    fill_segments(document, 5),
    [[1, 2, 3, 4, 5], [6, 7, 8, 9]],
    "For sentences of 2, 1, 2, 3 and 1 ids and most 5, the segments",
    "Begin a new segment only when the next sentence has no room.",
    slips=(
        (
            [[1, 2, 3], [4, 5], [6, 7, 8, 9]],
            "A segment may be as long as most, not only shorter.",
        ),
        (
            [[1, 2, 3], [4, 5, 6, 7, 8], [9]],
            "A segment may be as long as most, not only shorter.",
        ),
        (
            [[1, 2, 3], [4, 5], [6, 7, 8], [9]],
            "A segment may be as long as most, not only shorter.",
        ),
        (
            [[1, 2, 3, 4, 5], [6, 7, 8]],
            "The last segment is missing: keep what is left at the end.",
        ),
        ([[1, 2, 3, 4, 5]], "The last segment is missing: keep what is left at the end."),
        (
            [[1, 2, 3, 4, 5], [9]],
            "A sentence that has no room begins the next segment; yours is lost.",
        ),
        (
            [[1, 2, 3, 4, 5, 6, 7, 8], [9]],
            "Look whether the next sentence has room before you add it, not afterwards.",
        ),
        (document, "Join sentences as long as there is room."),
    ),
)
assert document == [[1, 2], [3], [4, 5], [6, 7, 8], [9]], (
    f"fill_segments must leave the document as it was; yours makes it {document}. Do not use += on a sentence of it."
)
check_same(
    fill_segments([[1, 2, 3], [4]], 2),
    [[1, 2], [4]],
    "For sentences of 3 and 1 ids and most 2, the segments",
    "A sentence longer than most is cut to its first `most` ids.",
)
### BEGIN HIDDEN TESTS
# {compare:fill_segments}
### END HIDDEN TESTS

# %% [markdown]
# Now pairs. Every segment of a document but its last is the first of one pair. A coin decides about the second:
#
# * half of the time it is the segment that really comes next (`IS_NEXT`, 0),
# * half of the time a random one of **another** document (`NOT_NEXT`, 1): first draw the document, each of the
#   others equally likely, then one of its segments.
#
# A random segment of the same document may be the true next one, or one that reads like it. The last segment of a
# document has no next one: the next document begins with something else.


# %% nbgrader={"grade": false, "grade_id": "next", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sentence_pairs(documents, random):
    """Make pairs of segments.

    documents: list of at least 2 documents; a document is a list of at least 1 segment, a segment a list of ids
    random:    random.Random for all draws
    returns a list of (first, second, label), the first segments in the order of the documents
    raises  ValueError if there is only one document

    Example: documents [[[1], [2]], [[3]]] -> [([1], [2], 0)] or [([1], [3], 1)]
    """
    ### BEGIN SOLUTION
    if len(documents) < 2:
        raise ValueError("a random segment must come from another document; there is only one")
    pairs = []
    for number, document in enumerate(documents):
        for place in range(len(document) - 1):
            second, label = document[place + 1], IS_NEXT
            if random.random() < 0.5:
                other = random.randrange(len(documents) - 1)
                second = random.choice(documents[other + (other >= number)])
                label = NOT_NEXT
            pairs.append((document[place], second, label))
    return pairs
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pairs-next", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("sentence_pairs")


def corpus(sizes):
    """Segment s of document d is [10000 d + s], so every segment tells where it comes from."""
    return [[[10000 * d + s] for s in range(size)] for d, size in enumerate(sizes)]


def made_pairs(sizes, seed):
    documents = corpus(sizes)
    pairs = sentence_pairs(documents, random.Random(seed))
    assert isinstance(pairs, list) and all(
        isinstance(p, tuple) and len(p) == 3 for p in pairs
    ), "sentence_pairs must return a list of tuples (first, second, label)."
    assert documents == corpus(sizes), "sentence_pairs must leave the documents as they were."
    labels = {label for _, _, label in pairs}
    assert labels <= {IS_NEXT, NOT_NEXT}, (
        f"A label must be 0 or 1; among yours is {labels - {0, 1}}."
    )
    return [
        (divmod(first[0], 10000), divmod(second[0], 10000), label)
        for first, second, label in pairs
    ]


def check_pairs(sizes, pairs):
    wanted = [(d, s) for d, size in enumerate(sizes) for s in range(size - 1)]
    firsts = [first for first, _, _ in pairs]
    lasts = [(d, s) for d, s in firsts if s == sizes[d] - 1]
    assert not lasts, (
        f"Segment {lasts[0][1]} is the last of document {lasts[0][0]}: it has no next one, so it is the first of no pair."
    )
    missing = [place for place in wanted if place not in firsts]
    assert not missing, (
        f"Segment {missing[0][1]} of document {missing[0][0]} is the first of no pair. Every segment but the last of its document is."
    )
    assert firsts == wanted, (
        "Each segment but the last of its document is the first of one pair, in their order."
    )
    for (d, s), second, label in pairs:
        if label == IS_NEXT:
            assert second == (d, s + 1), (
                f"Labelled IS_NEXT, but after segment {s} of document {d} comes segment {s + 1} of it; yours is segment "
                f"{second[1]} of document {second[0]}. "
                + ("Are the labels exchanged? IS_NEXT is 0." if second[0] != d else "")
            )
        else:
            assert second != (d, s + 1), (
                f"Segment {s + 1} of document {d} really comes after segment {s}, but the label says NOT_NEXT. "
                "Draw from another document, and IS_NEXT is 0."
            )
            assert second[0] != d, (
                f"The random second segment for document {d} is of the same document. It may be the true next one, or read like it: "
                "draw from the other documents."
            )


SIZES = [3, 1, 4, 2, 40]
for seed in range(20):
    check_pairs(SIZES, made_pairs(SIZES, seed))
    check_pairs([2, 3], made_pairs([2, 3], seed))
try:
    answer = sentence_pairs(corpus([4]), random.Random(0))
except ValueError:
    pass
else:
    raise AssertionError(
        f"One document has no other to draw from: raise a ValueError; yours returned {answer}."
    )
### BEGIN HIDDEN TESTS
# {compare:next}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "pairs-chance", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
SIZES = [1001, 5, 1, 2]
pairs = made_pairs(SIZES, 41)
own = [pair for pair in pairs if pair[0][0] == 0]
drawn = [second for _, second, label in own if label == NOT_NEXT]
check_share(
    len(drawn) / max(len(own), 1),
    0.5,
    "The share of pairs with the label NOT_NEXT",
    "Throw a coin for each pair.",
    0.08,
)
labels = [label for _, _, label in own]
assert labels not in ([0, 1] * 500, [1, 0] * 500), (
    "Your labels alternate: 0, 1, 0, 1. That is half and half, but no chance. Throw a coin for each pair."
)
for number, size in ((1, 5), (2, 1), (3, 2)):
    found = [place for document, place in drawn if document == number]
    check_share(
        len(found) / max(len(drawn), 1),
        1 / 3,
        f"Of the random segments for document 0, those of document {number}, which has {size} of the 8 segments,",
        "First draw the document, each of the others equally likely, and then one of its segments.",
        0.11,
    )
    assert len({*found}) == size, (
        f"Document {number} has {size} segments, of which only {sorted({*found})} ever come up as random ones. Draw any of them."
    )
random.seed(0)
state = random.getstate()
again = made_pairs(SIZES, 41)
assert state == random.getstate(), (
    "Your draws come from Python's common generator. Use the one that is passed in: random.random(), random.choice(...) of the argument `random`."
)
assert pairs == again, (
    "With equal generators the pairs differ. Use the generator that is passed in for every draw."
)
assert pairs != made_pairs(SIZES, 42), (
    "With different generators the pairs are the same: is the seed set inside?"
)
### BEGIN HIDDEN TESTS
# {compare:coins}
# {compare:throws}
### END HIDDEN TESTS

# %% [markdown]
# Last, pack the pairs of a batch: `[CLS]` first `[SEP]` second `[SEP]`, with segment id 0 up to the first `[SEP]`
# (that one included) and 1 from there on; filled up at the end to the longest sequence of the batch, with segment
# id 0 and masked.


# %% nbgrader={"grade": false, "grade_id": "pack", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack_pairs(pairs, cls_id, sep_id, pad_id):
    """Put pairs into tensors.

    pairs: list of (first, second, label), as sentence_pairs returns them; it stays as it is, and so do the segments
    returns a dict of tensors on the CPU: "input_ids" and "token_type_ids", int64 [B, T], "attention_mask", bool [B, T], True = real,
            and "next_sentence_labels", int64 [B]

    Example: [([7, 8], [9], 1)], cls_id 2, sep_id 3, pad_id 0 -> input_ids [[2, 7, 8, 3, 9, 3]],
    token_type_ids [[0, 0, 0, 0, 1, 1]], attention_mask [[True] * 6], next_sentence_labels [1]
    """
    ### BEGIN SOLUTION
    longest = max(len(first) + len(second) + 3 for first, second, _ in pairs)
    rows, types, masks = [], [], []
    for first, second, _ in pairs:
        row = [cls_id, *first, sep_id, *second, sep_id]
        filling = longest - len(row)
        rows.append(row + [pad_id] * filling)
        types.append([0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * filling)
        masks.append([True] * len(row) + [False] * filling)
    return {
        "input_ids": torch.tensor(rows),
        "token_type_ids": torch.tensor(types),
        "attention_mask": torch.tensor(masks),
        "next_sentence_labels": torch.tensor([label for _, _, label in pairs]),
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pairs-pack", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("pack_pairs")


def check_packed(pairs, expected, what, slips=(), **options):
    batch = pack_pairs(pairs, **options)
    assert isinstance(batch, dict) and {*batch} == {*expected}, (
        f"pack_pairs must return a dict with the keys {', '.join(expected)}; yours returns "
        f"{', '.join(map(str, batch)) if isinstance(batch, dict) else 'a ' + type(batch).__name__}."
    )
    for name, rows in expected.items():
        rows = torch.tensor(rows)
        fitting = [
            (slip, words)
            for key, slip, words in slips
            if key == name and torch.tensor(slip).shape == rows.shape
        ]
        check_close(
            batch[name],
            rows,
            f"{what}, {name}",
            "Compare with the table in the text.",
            slips=fitting,
        )


check_packed(
    [([7, 8], [9, 5], 1), ([6], [4], 0)],
    {
        "input_ids": [[2, 7, 8, 3, 9, 5, 3], [2, 6, 3, 4, 3, 0, 0]],
        "token_type_ids": [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]],
        "attention_mask": [[True] * 7, [True] * 5 + [False] * 2],
        "next_sentence_labels": [1, 0],
    },
    "For pairs of 2 and 2, and of 1 and 1 ids",
    cls_id=2,
    sep_id=3,
    pad_id=0,
    slips=(
        (
            "input_ids",
            [[2, 7, 8, 3, 9, 5, 0], [2, 6, 3, 4, 0, 0, 0]],
            "The second segment is closed by a [SEP], too.",
        ),
        (
            "token_type_ids",
            [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0]],
            "The [SEP] in the middle closes the first segment, so it belongs to that one: 0.",
        ),
        (
            "token_type_ids",
            [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 0, 0, 0]],
            "The last [SEP] closes the second segment, so it belongs to that one: 1.",
        ),
        (
            "token_type_ids",
            [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0, 0]],
            "The second segment begins right after the [SEP] in the middle.",
        ),
        (
            "token_type_ids",
            [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]],
            "The filling belongs to no segment; by convention it has segment id 0.",
        ),
        ("attention_mask", [[False] * 7, [False] * 5 + [True] * 2], "Yours is upside down."),
        ("attention_mask", [[True] * 7] * 2, "Yours marks the filling as real, too."),
        ("next_sentence_labels", [0, 1], "Your labels are exchanged: IS_NEXT is 0."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:pack_pairs}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · The loss ({points:loss} points)
#
# **Question: what is the model to minimise?**
#
# At a chosen position i, whose true id is $x_i$, the model gives a probability to every entry of the vocabulary.
# The loss there is minus the logarithm of the probability of the true one; the loss of the batch is the mean over
# the *chosen positions*, however many they are:
#
# $$\mathcal L_\mathrm{mlm} = -\frac{1}{N} \sum_{i \in \mathrm{chosen}} \log P[i, x_i], \qquad P[i] = \operatorname{softmax}(\mathrm{logits}_i)$$
#
# Take the logarithm of the softmax in one step (`log_softmax`): a probability may be too small for a float, its
# logarithm is not. The logits of other positions do not matter, whatever they are. If no position is chosen, the
# loss is 0, and so is its gradient.
#
# The chapter's example: *x* = (21, 11987, 5438), positions 1 and 3 are chosen, so the sum is
# $-\log P[1, 21] - \log P[3, 5438]$, and N is 2.


# %% nbgrader={"grade": false, "grade_id": "loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_loss(logits, labels):
    """Mean loss over chosen positions.

    logits: float [..., V]
    labels: int64 [...], the true id at chosen positions and -100 elsewhere
    returns a tensor of shape [], of the dtype of logits; logits and labels stay as they are

    Example: logits [[0., 0.], [9., 9.]], labels [1, -100] -> log(2) = 0.6931
    """
    ### BEGIN SOLUTION
    chosen = labels != IGNORE
    log_probabilities = logits[chosen].log_softmax(dim=-1)  # [N, V]
    losses = -log_probabilities.gather(-1, labels[chosen].unsqueeze(-1))  # [N, 1]
    return losses.sum() / max(len(losses), 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "loss-masked", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("masked_loss")


def logits_of(probabilities):
    return tensor(probabilities).log() + 3  # any constant may be added: softmax takes it away


logits = logits_of(
    [
        [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.3, 0.5]],
        [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.25, 0.5, 0.25]],
    ]
)
labels = tensor([[0, -100, 1], [-100, -100, 2]])
parts = [-math.log(0.5), -math.log(0.3), -math.log(0.25)]
everywhere = tensor([[0, 0, 1], [0, 0, 2]])
all_parts = -logits.log_softmax(-1).gather(-1, everywhere[..., None]).sum().item()
last = -logits.log_softmax(-1).gather(-1, labels[..., None] % 3).sum().item()
check_close(
    masked_loss(logits, labels),
    tensor(sum(parts) / 3),
    "With three chosen positions, whose true ids have probability 0.5, 0.3 and 0.25, the loss",
    "It is the mean of -log 0.5, -log 0.3 and -log 0.25.",
    slips=(
        (sum(parts), "That is the sum: divide by the number of chosen positions."),
        (sum(parts) / 6, "You divide by all 6 positions; 3 of them are chosen."),
        (sum(parts) / 2, "You divide by the number of sequences, 2; 3 positions are chosen."),
        (
            ((parts[0] + parts[1]) / 2 + parts[2]) / 2,
            "You take the mean of each sequence, and then the mean of these. Each chosen position counts alike.",
        ),
        (-sum(parts) / 3, "The sign is wrong: a loss is minus the logarithm."),
        (sum(parts) / 3 / math.log(2), "Take the natural logarithm."),
        (
            all_parts / 6,
            "Your loss counts the positions with label -100, too, as if their label were 0.",
        ),
        (
            all_parts / 3,
            "Your loss counts the positions with label -100, too, as if their label were 0.",
        ),
        (
            last / 6,
            "Your loss counts the positions with label -100, too: as an index, -100 counts from the end.",
        ),
        (1 - (0.5 + 0.3 + 0.25) / 3, "Take the logarithm of the probability."),
    ),
)
dull = torch.zeros(2, 4, 50, device=device)
check_close(
    masked_loss(dull, tensor([[7, -100, 9, -100], [-100, 3, -100, -100]])),
    tensor(math.log(50)),
    "When all 50 ids are equally likely, the loss",
    "It is ln 50, whatever the labels.",
)
for count, chosen in enumerate(([-100, -100, -100], [-100, 9, -100])):
    check_close(
        masked_loss(dull[0, 1:], tensor(chosen)),
        tensor(count * math.log(50)),
        f"With {count} chosen positions, the loss",
        "It is the mean over them, and 0 if there is none.",
    )
### BEGIN HIDDEN TESTS
# {compare:masked_loss}
zeros = torch.zeros(2, 3, device=device, requires_grad=True)
loss = masked_loss(zeros, tensor([-100, -100]))
assert loss.requires_grad, (
    "With no chosen position the loss is 0, and so is its gradient: it must be possible to go backward."
)
loss.backward()
assert (zeros.grad == 0).all(), "With no chosen position the gradient is 0."
### END HIDDEN TESTS

# %% [markdown]
# Logits cost the most: D numbers become V, for every position. Only the chosen ones are asked, 15% of them. So pick
# the chosen positions *before* the head that makes the logits.
#
# With V = 30,522 and a large batch even their logits do not fit the memory of a small GPU at once. So the caller may ask for
# portions, which the book's model does not have: the head then gets `most` chosen positions at a time, in the order of the
# batch, and what is left over in the last call. Return the logits of all portions as one table.


# %% nbgrader={"grade": false, "grade_id": "rows", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_logits(head, hidden, labels, most=None):
    """Logits at the chosen positions, and at no other.

    head:   function, float [N, D] -> logits [N, V]
    hidden: float [B, T, D]
    labels: int64 [B, T], -100 where nobody asks
    most:   how many positions head gets in one call, at least 1; None: all in one
    returns (logits [N, V], labels [N]) of the chosen positions, in the order of the batch; where N is 0, head is
            called once, with hidden states [0, D]

    Example: 5 chosen positions and most 2 -> head is called with 2, 2 and 1 of them
    """
    ### BEGIN SOLUTION
    chosen = labels != IGNORE
    rows = hidden[chosen]  # [N, D]
    portions = rows.split(most or max(len(rows), 1))
    return torch.cat([head(portion) for portion in portions]), labels[chosen]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "loss-rows", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("masked_logits")


def check_rows(hidden, labels):
    asked = []

    head = lambda rows: asked.append(rows) or torch.cat([10 * rows, rows], dim=-1)
    logits, kept = check_pair(
        masked_logits(head, hidden.clone(), labels.clone()),
        "masked_logits must return (logits, labels)",
    )
    assert len(asked) == 1, (
        f"Call head once, with all chosen positions; yours calls it {len(asked)} times."
    )
    chosen = labels != IGNORE
    check_shape(
        asked[0],
        [int(chosen.sum()), hidden.shape[-1]],
        "What head gets",
        "It gets the hidden states of the chosen positions alone.",
    )
    check_close(
        kept,
        labels[chosen],
        "The list of labels",
        "Those of the chosen positions, in their order.",
    )
    rows = torch.stack([hidden[b, t] for b, t in chosen.nonzero().tolist()])
    check_close(
        logits,
        torch.cat([10 * rows, rows], dim=-1),
        "The table of logits",
        "Row n must belong to label n: chosen positions in the order of the batch.",
    )


check_rows(
    torch.arange(24.0, device=device).reshape(2, 3, 4), tensor([[-100, 5, -100], [0, -100, 7]])
)
states = torch.arange(16.0, device=device).reshape(2, 4, 2)
asked_for = tensor([[-100, 5, 2, 0], [6, -100, -100, 7]])
sizes = []
logits, kept = masked_logits(
    lambda rows: sizes.append(len(rows)) or rows.repeat(1, 3) + 1, states, asked_for, most=3
)
check_same(
    sizes,
    [3, 2],
    "With most 3, how many of five chosen positions head gets in each call",
    "Give head `most` positions at a time, and what is left in the last call.",
)
check_close(
    logits,
    states[asked_for != IGNORE].repeat(1, 3) + 1,
    "With most 3, the table of logits",
    "It holds the logits of all portions, in the order of the batch.",
)
check_close(kept, tensor([5, 2, 0, 6, 7]), "The list of labels", "Those of all portions.")
### BEGIN HIDDEN TESTS
# {compare:masked_logits}
### END HIDDEN TESTS

# %% [markdown]
# The second task has two logits for each sequence: `IS_NEXT` first, `NOT_NEXT` second. Its loss is the mean over
# the sequences, and the whole loss is the sum of the two means.


# %% nbgrader={"grade": false, "grade_id": "total", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):
    """Mean loss over chosen positions, plus mean loss over sequences.

    token_logits: float [..., V]     labels: int64 [...], -100 where nobody asks
    pair_logits:  float [B, 2]       next_sentence_labels: int64 [B], 0 or 1
    returns a tensor of shape []
    """
    ### BEGIN SOLUTION
    return masked_loss(token_logits, labels) + masked_loss(pair_logits, next_sentence_labels)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "loss-total", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("pretraining_loss")
token_logits = logits_of([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]] * 2)
labels = tensor([[0, 0, -100], [0, -100, -100]])
pair_logits = logits_of([[0.8, 0.2], [0.6, 0.4]])
tokens, pairs = (2 * math.log(2) + math.log(4)) / 3, -(math.log(0.8) + math.log(0.4)) / 2
flipped = -(math.log(0.2) + math.log(0.6)) / 2
check_close(
    pretraining_loss(token_logits, labels, pair_logits, tensor([0, 1])),
    tensor(tokens + pairs),
    f"With a token loss of {tokens:.4f} and a pair loss of {pairs:.4f}, the whole loss",
    "It is the sum of the two means. If loss-masked fails, mend that first.",
    slips=(
        (tokens, "The pair loss is missing."),
        (pairs, "The token loss is missing."),
        ((tokens + pairs) / 2, "Add the two means; do not divide by 2."),
        ((3 * tokens + 2 * pairs) / 5, "Take the mean of each task by itself, then add."),
        (tokens + 2 * pairs, "The pair loss is a mean over sequences, too."),
        (3 * tokens + 2 * pairs, "Take means, not sums."),
        (
            tokens + flipped,
            "Logit 0 is for IS_NEXT, logit 1 for NOT_NEXT: the label is the index.",
        ),
        (tokens - math.log(0.8) / 2, "Pairs with the label NOT_NEXT count, too."),
        (tokens - math.log(0.4) / 2, "Pairs with the label IS_NEXT, 0, count, too."),
    ),
)
for V, B in ((1000, 3), (30522, 2)):
    check_close(
        pretraining_loss(
            torch.zeros(5, V, device=device),
            tensor([7, -100, 9, 0, V - 1]),
            torch.zeros(B, 2, device=device),
            tensor([0, 1, 1][:B]),
        ),
        tensor(math.log(V) + math.log(2)),
        f"For a model that knows nothing, with {V} entries, the loss",
        "It is ln V + ln 2.",
    )
### BEGIN HIDDEN TESTS
# {compare:pretraining_loss}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · The step ({points:step} points)
#
# **Question: how does the loss go down?**
#
# A batch is a dict of tensors: `input_ids` (with holes), `labels`, `attention_mask`, `token_type_ids` and
# `next_sentence_labels`. A model takes the first, third and fourth, in this order, and gives two things: logits [B,
# T, V] and pair logits [B, 2].
#
# One step of training: set the model to training (`model.train()`, so that dropout works), compute the loss, its
# gradient, cut the gradient to a norm of at most `max_norm` (`torch.nn.utils.clip_grad_norm_`), and let the
# optimizer move. Gradients that are there when it begins, whoever has left them, must be gone first.
#
# To *evaluate*, switch to `model.eval()` (dropout off), keep no gradients, and leave the model in the mode in which
# you found it. Accuracy is the share of the chosen positions at which the greatest logit is that of the true id.
#
# At the end of this part you train a BERT. The next cell gives you one (it is the one of Assignment 4, made of
# torch's own layers) and a small language: stories of a few sentences, each about one person and one kind of thing.
# Run it.


# %% nbgrader={"grade": false, "grade_id": "world", "locked": true, "schema_version": 3, "solution": false, "task": false}
class SmallBert(torch.nn.Module):
    def __init__(self, vocab_size, dim=64, layers=2, heads=2, longest=40, dropout=0.0):
        super().__init__()
        self.word = torch.nn.Embedding(vocab_size, dim)
        self.position = torch.nn.Embedding(longest, dim)
        self.token_type = torch.nn.Embedding(2, dim)
        self.norm = torch.nn.LayerNorm(dim)
        layer = torch.nn.TransformerEncoderLayer(
            dim, heads, 4 * dim, dropout, activation="gelu", batch_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.transform = torch.nn.Sequential(
            torch.nn.Linear(dim, dim), torch.nn.GELU(), torch.nn.LayerNorm(dim)
        )
        self.bias = torch.nn.Parameter(torch.zeros(vocab_size))
        self.pooler = torch.nn.Sequential(torch.nn.Linear(dim, dim), torch.nn.Tanh())
        self.pair = torch.nn.Linear(dim, 2)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = (
            self.word(input_ids) + self.position(positions) + self.token_type(token_type_ids)
        )
        hidden = self.layers(self.norm(hidden), src_key_padding_mask=~attention_mask)
        logits = self.transform(hidden) @ self.word.weight.T + self.bias
        return logits, self.pair(self.pooler(hidden[:, 0]))


PEOPLE = {"she": ("anna", "emma", "lina", "nora"), "he": ("paul", "tom", "karl", "otto")}
THINGS = {
    "reads": ("book", "letter", "poem", "newspaper"),
    "eats": ("apple", "cake", "soup", "bread"),
    "paints": ("house", "tree", "boat", "bridge"),
    "repairs": ("car", "clock", "radio", "bicycle"),
}
ENDINGS = {"reads": "wise", "eats": "full", "paints": "proud", "repairs": "tired"}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "a", "then", "is", *PEOPLE]
WORDS += [word for group in (*PEOPLE.values(), *THINGS.values()) for word in group]
WORDS += [*THINGS, *ENDINGS.values()]
PLACE = {word: number for number, word in enumerate(WORDS)}
SPECIAL = (0, 1, 2, 3, 4)


def story(random):
    """Four sentences: somebody does one kind of thing to several things, and is what one is after that."""
    pronoun = random.choice([*PEOPLE])
    verb = random.choice([*THINGS])
    first, second, third = random.sample(THINGS[verb], 3)
    name = random.choice(PEOPLE[pronoun])
    sentences = (
        f"{name} {verb} the {first} .",
        f"then {pronoun} {verb} a {second} .",
        f"then {name} {verb} the {third} .",
        f"{pronoun} is {ENDINGS[verb]} .",
    )
    return [[PLACE[word] for word in sentence.split()] for sentence in sentences]


def batches(count, size, seed, rate=0.15):
    """Batches of a stream of stories that never repeats, made with your functions."""
    chance, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(count):
        while len(pairs) < size:
            documents = [fill_segments(story(chance), 11) for _ in range(2 * size)]
            made = sentence_pairs(documents, chance)
            assert made, (
                f"{len(documents)} stories give no pair at all: mend fill_segments and sentence_pairs first."
            )
            pairs += made
        packed = pack_pairs(pairs[:size], cls_id=2, sep_id=3, pad_id=0)
        pairs = pairs[size:]
        masked_ids, labels = mask_tokens(
            packed["input_ids"], SPECIAL, 4, len(WORDS), generator, rate
        )
        batch = {**packed, "input_ids": masked_ids, "labels": labels}
        yield {name: value.to(device) for name, value in batch.items()}


# %% nbgrader={"grade": false, "grade_id": "train", "locked": false, "schema_version": 3, "solution": true, "task": false}
def training_step(model, optimizer, batch, max_norm=1.0):
    """One step; returns the loss before it, as a Python float. The model is left training."""
    ### BEGIN SOLUTION
    model.train()
    optimizer.zero_grad()
    token_logits, pair_logits = model(
        batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
    )
    loss = pretraining_loss(
        token_logits, batch["labels"], pair_logits, batch["next_sentence_labels"]
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()
    ### END SOLUTION


def evaluate(model, batch):
    """Returns (loss, accuracy at the chosen positions), two Python floats; the model is not changed."""
    ### BEGIN SOLUTION
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
    ### END SOLUTION


# %% [markdown]
# The next test uses no BERT but a model of a few numbers, which notes what it is given, and an optimizer which
# notes the gradients that it sees.

# %% nbgrader={"grade": true, "grade_id": "step-training", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("training_step")


class Guess(torch.nn.Module):
    """Gives every position the same logits, and notes its calls."""

    def __init__(self, V=5):
        super().__init__()
        self.tokens = torch.nn.Parameter(torch.linspace(-1, 1, V))
        self.pairs = torch.nn.Parameter(torch.tensor([0.5, -0.5]))
        self.calls, self.modes, self.graphs = [], [], []

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        self.calls.append((input_ids, attention_mask, token_type_ids))
        self.modes.append(self.training)
        self.graphs.append(torch.is_grad_enabled())
        B, T = input_ids.shape
        return self.tokens.expand(B, T, -1), self.pairs.expand(B, 2)


class Recorder(torch.optim.SGD):
    """Notes the gradients that each step sees."""

    def __init__(self, parameters, lr=0.5):
        super().__init__(parameters, lr=lr)
        self.seen = []

    def step(self, closure=None):
        self.seen.append(
            [None if p.grad is None else p.grad.clone() for p in self.param_groups[0]["params"]]
        )
        super().step()


def small_batch():
    return {
        "input_ids": tensor([[2, 4, 1, 3], [2, 1, 3, 0]]),
        "labels": tensor([[-100, 3, -100, -100], [-100, 1, -100, -100]]),
        "attention_mask": tensor([[True] * 4, [True] * 3 + [False]]),
        "token_type_ids": tensor([[0, 0, 1, 1], [0, 0, 0, 0]]),
        "next_sentence_labels": tensor([1, 0]),
    }


def true_gradients(model, batch, max_norm):
    """The loss and the clipped gradients, with torch's own loss."""
    twin = Guess().to(device)
    twin.load_state_dict(model.state_dict())
    token_logits, pair_logits = twin(batch["input_ids"])
    with withheld_allowed():
        cross = torch.nn.functional.cross_entropy
        loss = cross(token_logits.flatten(0, 1), batch["labels"].flatten())
        loss = loss + cross(pair_logits, batch["next_sentence_labels"])
    loss.backward()
    gradients = [parameter.grad for parameter in twin.parameters()]
    raw = [gradient.clone() for gradient in gradients]
    torch.nn.utils.clip_grad_norm_(twin.parameters(), max_norm)
    return float(loss.detach()), raw, gradients


def check_step(max_norm):
    model, batch = Guess().to(device), small_batch()
    optimizer = Recorder(model.parameters())
    for turn in range(3):
        model.eval()
        expected, raw, clipped = true_gradients(model, batch, max_norm)
        loss = training_step(model, optimizer, batch, max_norm)
        assert len(model.calls) == turn + 1, (
            f"In {turn + 1} steps the model was called {len(model.calls)} times: once a step."
        )
        assert model.modes[-1], (
            "Set the model to training first, model.train(): dropout would be off."
        )
        for given, name in zip(
            model.calls[-1], ("input_ids", "attention_mask", "token_type_ids")
        ):
            assert given is not None and torch.equal(given, batch[name]), (
                f"The model must get input_ids, attention_mask and token_type_ids, in this order; its {name} is something else."
            )
        assert len(optimizer.seen) == turn + 1, (
            f"step() must be called once a step; after {turn + 1} it was called {len(optimizer.seen)} times."
        )
        assert isinstance(loss, float), (
            f"training_step must return a Python float; yours returns a {type(loss).__name__}. Use loss.item()."
        )
        assert abs(loss - expected) < 1e-4, (
            f"The loss must be {expected:.4f}, that of pretraining_loss before the step; yours is {loss:.4f}. If loss-total fails, mend that first."
        )
        for got, right, plain in zip(optimizer.seen[-1], clipped, raw):
            assert got is not None and (got != 0).any(), (
                "The optimizer sees no gradient: the loss must go backward before the optimizer steps, and old gradients go before that."
            )
            if not torch.allclose(got, right, atol=1e-5):
                hint = "First backward, then clip_grad_norm_, then step, all in this order."
                if torch.allclose(got, plain, atol=1e-5):
                    hint = "Cut the gradients to max_norm, between backward and step."
                elif turn:
                    hint = (
                        "Gradients of the step before are added: call zero_grad() in each step."
                    )
                elif torch.allclose(got, -right, atol=1e-5) or torch.allclose(
                    got, -plain, atol=1e-5
                ):
                    hint = "The sign is wrong: the loss must go down."
                raise AssertionError(
                    f"In step {turn + 1} the optimizer sees wrong gradients. {hint}"
                )


check_step(max_norm=100.0)
check_step(max_norm=0.1)
### BEGIN HIDDEN TESTS
# {compare:training_step}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "step-evaluate", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("evaluate")


class Wavering(Guess):
    """Guesses the id that it is told for each position, and something else while it trains."""

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        super().forward(input_ids, attention_mask, token_type_ids)
        best = (input_ids + 1) % 5
        if self.training:
            best = (best + 1) % 5
        logits = 4.0 * torch.nn.functional.one_hot(best, 5) + 0 * self.tokens
        return logits, self.pairs.expand(len(input_ids), 2)


def check_evaluate(labels, expected):
    batch = {**small_batch(), "labels": labels}
    for training in (True, False):
        model = Wavering().to(device).train(training)
        answer = check_pair(evaluate(model, batch), "evaluate must return (loss, accuracy)")
        assert model.modes and not any(model.modes), (
            "Evaluate with model.eval(): yours leaves dropout on, so the result changes from call to call."
        )
        assert not any(model.graphs), (
            "Evaluate under torch.no_grad(): gradients cost memory, and nobody needs them here."
        )
        assert model.training == training, (
            f"The model was {'training' if training else 'evaluating'} before and is {'not ' if training else ''}training afterwards. "
            "Leave it in the mode in which you found it."
        )
        for name, value in zip(("loss", "accuracy"), answer):
            assert isinstance(value, float), (
                f"evaluate must return two Python floats; your {name} is a {type(value).__name__}. Use .item()."
            )
        with torch.no_grad():
            token_logits, pair_logits = Wavering().to(device).eval()(batch["input_ids"])
            with withheld_allowed():
                cross = torch.nn.functional.cross_entropy
                loss = cross(token_logits.flatten(0, 1), labels.flatten())
                loss = (loss + cross(pair_logits, batch["next_sentence_labels"])).item()
        assert abs(answer[0] - loss) < 1e-4, (
            f"The loss must be {loss:.4f}; yours is {answer[0]:.4f}. If loss-total fails, mend that first."
        )
        right = (token_logits.argmax(-1) == labels).double()
        chosen = labels != IGNORE
        hint = "Count the chosen positions alone."
        if abs(answer[1] - right.mean().item()) < 1e-6:
            hint = "You divide by all positions; only the chosen ones are asked."
        elif abs(answer[1] - right.sum().item()) < 1e-6:
            hint = "That is how many are right; divide by the number of chosen positions."
        assert abs(answer[1] - expected) < 1e-6, (
            f"Of {int(chosen.sum())} chosen positions {int(right.sum())} are guessed right, so the accuracy is {expected:.4f}; "
            f"yours is {answer[1]:.4f}. {hint}"
        )


check_evaluate(tensor([[-100, 0, -100, 4], [-100, 2, -100, 4]]), 0.75)
### BEGIN HIDDEN TESTS
# {compare:evaluate}
### END HIDDEN TESTS

# %% [markdown]
# And now the BERT and the stories. With your functions the loss must go down.


# %% nbgrader={"grade": true, "grade_id": "step-lowers", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
START = math.log(len(WORDS)) + math.log(2)


def check_learning(seed, steps, most):
    """Train on one batch, again and again; a step that works learns it by heart."""
    torch.manual_seed(seed)
    model = SmallBert(len(WORDS), dim=32).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, fused=True)
    (batch,) = batches(1, 8, seed)
    seen, true = batch["input_ids"], batch["labels"]
    where = true != IGNORE
    assert where.any() and ((seen == 4) & where).any(), (
        "The batch has no holes: mend mask_tokens first."
    )
    losses = [training_step(model, optimizer, batch) for _ in range(steps)]
    assert abs(losses[0] - START) < 0.4, (
        f"Before the first step the model knows nothing, so the loss must be close to ln {len(WORDS)} + ln 2 = {START:.2f}; "
        f"yours is {losses[0]:.2f}. Look at pretraining_loss, and mend the cells above that fail."
    )
    assert all(map(math.isfinite, losses)), "The loss is not finite."
    assert losses[-1] < most, (
        f"After {steps} steps on one batch the loss must be below {most}; yours went from {losses[0]:.2f} to {losses[-1]:.2f}. "
        "The step does not learn: look at the order of backward, zero_grad and step."
    )
    _, accuracy = evaluate(model, batch)
    assert accuracy > 0.5, (
        f"After {steps} steps on one batch most of its holes must be filled; your accuracy is {accuracy:.2f}."
    )


check_learning(seed=61, steps=25, most=3.0)
### BEGIN HIDDEN TESTS
torch.manual_seed(62)
model, twin = (SmallBert(len(WORDS), dim=32).double().to(device) for _ in range(2))
twin.load_state_dict(model.state_dict())
ours, torchs = (torch.optim.Adam(one.parameters(), lr=1e-2) for one in (model, twin))
for number, batch in enumerate(batches(6, 16, 62)):
    torchs.zero_grad()
    token_logits, pair_logits = twin(
        batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
    )
    with withheld_allowed():
        cross = torch.nn.functional.cross_entropy
        expected = cross(token_logits.flatten(0, 1), batch["labels"].flatten())
        expected = expected + cross(pair_logits, batch["next_sentence_labels"])
    expected.backward()
    torchs.step()
    loss = training_step(model, ours, batch, max_norm=1e6)
    _, share = evaluate(model, batch)
    assert abs(loss - expected.item()) < 1e-9, (
        f"In step {number + 1} of a BERT in float64 the loss differs from that of the same BERT which torch trains."
    )
### END HIDDEN TESTS

# %% [markdown]
# ### A pre-training
#
# The next cell trains a small BERT on stories for some seconds and measures it on stories that it has not seen, at
# masked positions, beside what one gets without a model. Change nothing in it; read what it prints.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "pretrain", "locked": true, "schema_version": 3, "solution": false, "task": false}
STEPS = 300
held_out = list(batches(4, 64, seed=99))


def measure(model):
    """Loss, accuracy at chosen positions, share of pairs that are told apart."""
    scores, told = [evaluate(model, batch) for batch in held_out], []
    model.eval()
    with torch.no_grad():
        for b in held_out:
            _, pair_logits = model(b["input_ids"], b["attention_mask"], b["token_type_ids"])
            told.append(pair_logits.argmax(-1) == b["next_sentence_labels"])
    model.train()
    loss, accuracy = (sum(column) / len(scores) for column in zip(*scores))
    return loss, accuracy, torch.cat(told).double().mean().item()


def show(name, loss, accuracy, told):
    print(f"{name:34}{loss:8.2f}{100 * accuracy:10.1f}%{100 * told:10.1f}%")


def pretrained(change=lambda batch: batch):
    torch.manual_seed(0)
    model = SmallBert(len(WORDS), longest=30).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for step, batch in enumerate(batches(STEPS, 32, seed=1)):
        if step in (0, 50, 150):
            show(f"after {step} steps", *measure(model))
        # The learning rate rises for 50 steps and falls to 0, as chapter 3 has it.
        optimizer.param_groups[0]["lr"] = 2e-3 * min(1, (step + 1) / 50) * (1 - step / STEPS)
        training_step(model, optimizer, change(batch))
    show(f"after {STEPS} steps", *measure(model))
    return model


print(f"ln {len(WORDS)} + ln 2 = {START:.2f}\n")
print(f"{'':34}{'loss':>8}{'tokens':>11}{'pairs':>11}")
counts = torch.zeros(len(WORDS))
for batch in batches(50, 64, seed=2):
    counts += torch.bincount(
        batch["labels"][batch["labels"] != IGNORE].cpu(), minlength=len(WORDS)
    )
frequency = (counts + 1) / (counts + 1).sum()
true = torch.cat([b["labels"][b["labels"] != IGNORE].cpu() for b in held_out])
loss = -frequency.log()[true].mean().item() + math.log(2)
show("word frequencies alone", loss, (true == counts.argmax()).double().mean().item(), 0.5)
model = pretrained()
print("\nfilling a hole")
for text in (
    "[CLS] anna eats the apple . then [MASK] eats a cake . [SEP] she is full . [SEP]",
    "[CLS] paul eats the apple . then [MASK] eats a cake . [SEP] he is full . [SEP]",
    "[CLS] paul [MASK] the clock . then he repairs a car . [SEP] he is tired . [SEP]",
    "[CLS] nora paints the boat . then she paints a house . [SEP] she is [MASK] . [SEP]",
):
    ids = tensor([[PLACE[word] for word in text.split()]])
    types = (ids == 3).long().cumsum(1) - (ids == 3).long()
    model.eval()
    with torch.no_grad():
        chances = model(ids, torch.ones_like(ids, dtype=torch.bool), types)[0][ids == 4][
            0
        ].softmax(-1)
    best = chances.topk(3)
    print(
        text,
        "\n    ",
        ", ".join(f"{WORDS[i]} {p:.2f}" for p, i in zip(*map(torch.Tensor.tolist, best))),
    )

# %% [markdown]
# And now a mistake that is easily made, and easily overlooked: the same, with a loss that counts *every* position.


# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "everywhere", "locked": true, "schema_version": 3, "solution": false, "task": false}
def asked_everywhere(batch):
    """Labels at all positions: those that are not chosen stand in the input already."""
    labels = torch.where(batch["labels"] == IGNORE, batch["input_ids"], batch["labels"])
    return {**batch, "labels": labels}


print(f"{'at masked positions':34}{'loss':>8}{'tokens':>11}{'pairs':>11}")
copier = pretrained(asked_everywhere)
scores = [evaluate(copier, asked_everywhere(batch)) for batch in held_out]
loss, accuracy = (sum(column) / len(scores) for column in zip(*scores))
print(f"\nover all positions it says of itself: loss {loss:.2f}, tokens {100 * accuracy:.1f}%")

# %% [markdown]
# ## Part 5 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# If `##har` is hidden and `phil` and `##monic` are not, there is little to guess. So later models of BERT's authors hide *whole words*. Somebody, or something, wrote
# `whole_words(chosen, words, most)`, which extends a choice of tokens to whole words. You do not see its code. Write `check_whole_words(implementation)`, which raises an error if
# an implementation is wrong and returns nothing if it is right. This is what a right one does:
#
# * `chosen` is a bool tensor [B, T], True where a token is chosen. `words` is an int64 tensor [B, T] on the same device. B or T may be 0. `most` is an integer, or `None`.
# * Each row is for itself. A negative number in `words`, whichever it is, means a special token. Any other is the number of the word that the token belongs to.
# * A word is as many tokens as stand side by side with the same number. The numbers may begin anew, rise or fall, so a number that comes again later, behind a special token or
#   another word, is another word.
# * A word is wanted if at least one of its tokens is chosen. Special tokens are never taken, and that one is chosen has no effect at all.
# * Words are taken whole or not at all. At most `most` tokens of each row are taken; `None` means that there is no limit.
# * It goes through the wanted words of a row from left to right, and takes each that has room: one whose tokens and those taken before are `most` or fewer. It passes over a
#   word that has no room; later, shorter ones may have it.
# * A negative `most` raises a `ValueError`, whatever else it is given.
# * It returns a bool tensor [B, T] on the device of `chosen`, True at the tokens that are taken. `chosen` and `words` stay as they are, and an answer depends on no earlier call.
#
# For example, words [[-1, 0, 0, 0, 1, 2, -1]] with the third and the sixth token chosen give [[F, T, T, T, F, T, F]] without a limit; with `most` 2 the first word has no room,
# and [[F, F, F, F, F, T, F]] is given.
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_whole_words(implementation):
    """Raise an error if an implementation of `whole_words` is wrong; return nothing if it is right."""

    ### BEGIN SOLUTION
    numbers = {"*": -1, "+": -7} | {letter: n for n, letter in enumerate("abc")}
    signs = {"x": True, ".": False}

    def read(text, known):
        rows = [[known[sign] for sign in row] for row in text.split()]
        return torch.tensor(rows, device=device)

    def compare(words, chosen, most, wanted):
        copies = words.clone(), chosen.clone()
        taken = implementation(chosen, words, most)
        assert words.equal(copies[0]) and chosen.equal(copies[1])
        assert taken.dtype == torch.bool and taken.equal(wanted)

    examples = [  # words, the choice, the limit, what is taken
        ("*aaabc*", "..x..x.", None, ".xxx.x."),
        ("*aaabc*", "..x..x.", 2, ".....x."),
        ("*aaabc*", "..x..x.", 0, "......."),
        ("aabb*aa+aa", "x...x.x...", None, "xx...xx..."),
        ("+a*+", "x.xx", None, "...."),
        ("cbabc", "xx...", None, "xx..."),
        ("aabbbc", "x.x..x", 3, "xx...x"),
        ("aabbbc", "x.x..x", 4, "xx...x"),
        ("aaabb", "x..x.", 3, "xxx.."),
        ("aabb", "x.x.", 3, "xx.."),
        ("*aa", "xx.", 2, ".xx"),
        ("aab bba", "..x ..x", 1, "..x ..x"),
        ("aab bba", "..x ...", None, "..x ..."),
        ("a" * 30, "x" + 29 * ".", None, "x" * 30),
    ]
    for words, chosen, most, wanted in examples:
        compare(read(words, numbers), read(chosen, signs), most, read(wanted, signs))
    for shape in ((0, 3), (2, 0), (0, 0)):
        nothing = torch.ones(shape, device=device) > 0
        compare(nothing.long(), nothing, 3, nothing)
    for chosen in ("x", "."):
        try:
            implementation(read(chosen, signs), read("a", numbers), -1)
        except ValueError:
            continue
        raise AssertionError("a negative limit must raise ValueError")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_whole_words}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_whole_words hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · In your own words ({points:explain} points)
#
# Look at what the last two cells of Part 4 printed. Then write at most 200 words:
#
# 1. Why does the loss start where it does, and where is it when the model knows how often each word occurs and
#    nothing more? Cite both numbers, and the accuracy of that control.
# 2. The model whose loss counts all positions reports a lower loss of its own. Cite it, cite its loss and accuracy
#    at masked positions, and say what most of its loss is about.
# 3. A tenth of the chosen tokens stay as they are. What could a model conclude from seeing a word that is not
#    `[MASK]`, if none stayed and none was replaced at random?
# 4. Suppose the random second segments were drawn from the same document. What would happen to the share of pairs
#    that are told apart, and why?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * Both losses and the accuracy are cited, with the reason for where the loss starts.
# * The numbers are cited, with what follows for comparing the two models.
# * You say what the model could conclude, and why that would matter later.
# * You say which way the share would move, with a reason that lies in how these texts are made.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It says that a model without knowledge gives every entry 1/V and every pair 1/2, and cites the loss at the start
#   and that of word frequencies.
# * It cites the numbers of both models, and says that most positions can be copied from the input.
# * It says that such a model would know that a visible word is right, and need not keep anything about it, while in
#   fine-tuning nothing is masked.
# * It says that it would fall, because person and kind of thing are the same in both segments, so that only the order
#   could tell.
#
# **All of it:**
#
# (Go by what the student's own cell printed; numbers differ a little between machines.)
#
# A model that knows nothing gives each entry of the vocabulary 1/V and each of the two labels 1/2, so the loss
# starts at ln V + ln 2. Word frequencies alone bring it down by three quarters, and guess the most frequent word
# each time, which is right about once in five. The second model reports a loss of its own that is a fraction of
# what it has at masked positions: 85% of the positions stand in the input and only have to be copied, so what its
# number says is mostly how well it copies. It cannot be compared with the first one's. If every chosen token became
# [MASK], a model could conclude that every other word is right and needs no thought; in fine-tuning there is no
# [MASK], and it would have learned little about the words that it sees. If the random segments came from the same
# document, person and kind of thing would be the same in both segments, whatever the label. Then only the order of
# events could tell, the share would fall, and some of the random segments would be the true next ones, labelled
# wrongly.
#
# **Two of four:** At the start all words are equally likely, so the loss is ln V + ln 2 (cited), and with word
# frequencies it is lower (cited, with the accuracy). The second model has a lower loss (cited) because 85% of the
# positions only have to be copied, so the two losses cannot be compared. Keeping a tenth makes the model more robust.
# The pairs would be harder to tell apart.
#
# **None of it:** The loss starts high because the model is untrained, and falls as it learns. The second model has a
# lower loss, so it has learned more. Keeping some tokens is noise that helps against overfitting.
# ### END SOLUTION
