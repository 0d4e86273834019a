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
#   # Longer than 400 lines because an assignment is one notebook: ten parts, each with its prose, skeleton and tests.
#   course:
#     chapter: fine-tuning
#     seconds: 60
#     ships:
#       - reviewer.safetensors
#     withholds:
#       - course_lib.embeddings.contextual
#       - course_lib.finetuning.finetune
#       - course_lib.finetuning.examples
#       - course_lib.finetuning.heads
#       - course_lib.finetuning.predict
#       - course_lib.finetuning.spans
#       - course_lib.finetuning.tagging
#       - sklearn
#       - transformers
#       - torch.cosine_similarity
#       - torch.nn.functional.cosine_similarity
#       - torch.nn.CosineSimilarity
# ---

# %% [markdown]
# # Assignment 6 · Put BERT to use
#
# The file `reviewer.safetensors` beside this notebook holds 45,216 trained numbers: a small BERT that has read short
# reviews of food, music and sport, with holes in them, and nothing else. Nobody told it what a good review is. You show it
# 96 reviews with labels. Then the grader asks it about reviews whose adjectives none of the 96 contains.
#
# On the way you build what stands between a pre-trained encoder and an answer: vectors of words and of texts, labels that
# fit its tokens, answers cut out of a text, choices. Each is short, and each has a mistake that raises no error and
# makes the numbers a little worse, or, which is harder to notice, better than they are.
#
# You need chapters 7 and 8 of the book, PyTorch, and about four hours. There are {points:total} points. No GPU is needed;
# if there is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge cases, and in
# Part 8 other reviews. Unless the text says otherwise, a function leaves what it is given as it was, remembers nothing
# from one call to the next, and lets gradients flow from the tensors that it returns to those that it is given. Do not
# change, copy or delete the test cells. You may add cells of your own. Before you hand in, restart the kernel and run
# everything from the top. In a terminal, `course check fine-tuning.ipynb` tells you what is amiss.
#
# **The file beside it.** Keep `reviewer.safetensors` in the folder of the notebook. On Colab, open the *Files* panel on
# the left and upload it there. Hand in the notebook alone: the grader has the file.
#
# **What you may use.** Everything in PyTorch except what you build here. Withheld are: {withholds}.
# Read each task with care: its function is not quite the one of the book.
#
# **Letters for shapes.** B: texts in the batch. T: positions. D: features of a position. N: uses of a word, or texts of a
# whole set. C: choices. L: labels. Masks are bool, and True means: a real token, not padding.

# %%
import copy
import math
import random

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
IGNORE = -100  # the label of a position that does not count

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


# {source:course_tools.grading.assignments.student_checks.normal}


# {source:course_tools.grading.assignments.student_checks.check_given}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def check_number(got, expected, what, hint="", tolerance=1e-5, slips=()):
    """Compare a plain number with what is expected."""
    assert got is not None, f"{what} must be a number; yours is None. Did you forget return?"
    assert isinstance(got, (int, float)) and not isinstance(got, bool), (
        f"{what} must be a Python float; yours is a {type(got).__name__}. Use .item()."
    )
    if not abs(got - expected) <= tolerance:
        for slip, words in slips:
            hint = words if abs(got - slip) <= tolerance else hint
        raise AssertionError(f"{what} must be {expected:.4f}; yours is {got:.4f}. {hint}")


# %% [markdown]
# The next two hold the encoder and the language that it has read. Run them, and look at what they print.

# %% nbgrader={"grade": false, "grade_id": "language", "locked": true, "schema_version": 3, "solution": false, "task": false}
PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = (PAD, UNK, CLS, SEP, MASK)


class SmallBert(torch.nn.Module):
    """A BERT of torch's own layers; gives the embeddings and the output of every layer."""

    def __init__(self, vocab_size, dim, layers, heads, hidden, longest, dropout=0.0):
        super().__init__()
        self.word = torch.nn.Embedding(vocab_size, dim)
        self.position = torch.nn.Embedding(longest, dim)
        self.norm = torch.nn.LayerNorm(dim)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(
                dim, heads, hidden, dropout, activation="gelu", batch_first=True
            )
            for _ in range(layers)
        )
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, input_ids, attention_mask):
        """input_ids [B, T], attention_mask bool [B, T] -> list of hidden states [B, T, D], the embeddings first"""
        states = [self.norm(self.word(input_ids) + self.position.weight[: input_ids.shape[1]])]
        for layer in self.layers:
            states.append(layer(states[-1], src_key_padding_mask=~attention_mask))
        return states


PEOPLE = {"she": ("anna", "emma", "lina", "nora"), "he": ("paul", "tom", "karl", "otto")}
VERBS = {
    "food": ("ate", "ordered", "tasted", "cooked"),
    "music": ("heard", "sang", "recorded", "composed"),
    "sport": ("watched", "won", "lost", "refereed"),
}
NOUNS = {
    "food": ("soup", "cake", "apple", "bread", "salad", "pasta"),
    "music": ("song", "opera", "waltz", "concert", "ballad", "hymn"),
    "sport": ("game", "race", "final", "regatta", "marathon", "tournament"),
}
AMBIGUOUS = {
    "bass": ("food", "music"),
    "jam": ("food", "music"),
    "squash": ("food", "sport"),
    "punch": ("food", "sport"),
    "score": ("music", "sport"),
    "record": ("music", "sport"),
}
# By topic: good ones and bad ones.
TRAINING_ADJECTIVES = {
    "food": ("tasty delicious juicy crisp", "stale salty burnt bland"),
    "music": ("melodic stirring harmonious soulful", "shrill droning tuneless monotonous"),
    "sport": ("thrilling gripping tense fair", "dull sluggish lopsided scrappy"),
}
VALIDATION_ADJECTIVES = {
    "food": ("sweet fragrant tender", "soggy rotten greasy"),
    "music": ("lyrical tuneful catchy", "clumsy toneless noisy"),
    "sport": ("swift close heroic", "brutal sloppy chaotic"),
}


def review(chance, adjectives, nouns=NOUNS):
    """A review (words, label, topic, pronoun): somebody does something with a thing, and what it was like.

    "not" turns an adjective into its opposite, so that no single word gives the label, 1 for good and 0 for bad, away.
    """
    topic, label = chance.choice(sorted(nouns)), chance.randrange(2)
    alike, opposite = adjectives[topic][1 - label].split(), adjectives[topic][label].split()
    pronoun = chance.choice(sorted(PEOPLE))
    last, other, turned = chance.choice(alike), chance.choice(alike), chance.choice(opposite)
    opinion = chance.choice(
        (last, f"not {turned}", f"{other} and {last}", f"not {turned} but {last}")
    )
    name, verb = chance.choice(PEOPLE[pronoun]), chance.choice(VERBS[topic])
    words = f"{name} {verb} the {chance.choice(nouns[topic])} . it was {opinion} ."
    return words.split(), label, topic, pronoun


def reviews(count, seed, adjectives):
    """A list of (words, label)."""
    chance = random.Random(seed)
    return [review(chance, adjectives)[:2] for _ in range(count)]


def batches(rows, size):
    """Batches of rows (words, label), in their order, each filled up to its own longest text."""
    made = []
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        ids = [[CLS, *(PLACE[word] for word in words), SEP] for words, _ in part]
        longest = max(map(len, ids))
        filled = torch.tensor([row + [PAD] * (longest - len(row)) for row in ids])
        batch = {"input_ids": filled, "attention_mask": filled != PAD}
        batch["labels"] = torch.tensor([label for _, label in part])
        made.append({name: value.to(device) for name, value in batch.items()})
    return made


# %% nbgrader={"grade": false, "grade_id": "checkpoint", "locked": true, "schema_version": 3, "solution": false, "task": false}
import hashlib
import json
import pathlib

from safetensors import safe_open

CHECKPOINT = "reviewer.safetensors"
CHECKSUM = "{sha256:reviewer.safetensors}"


def load_encoder(pretrained=True, seed=0):
    """The encoder, with trained weights or with random ones, and what the file says about itself."""
    path = pathlib.Path(CHECKPOINT)
    if not path.is_file():
        raise FileNotFoundError(
            f"{CHECKPOINT} is not in the folder of this notebook ({pathlib.Path.cwd()}). It lies beside the notebook where you "
            "got that: download it, too, and put it here. On Colab, open the Files panel on the left and upload it."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != CHECKSUM:
        raise ValueError(
            f"{CHECKPOINT} is not the file that belongs to this notebook: it was changed, cut off on its way, or comes "
            "from another release. Get it anew from where you got the notebook."
        )
    with safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["course"])
        weights = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118 (a safe_open is no dict)
    torch.manual_seed(seed)
    encoder = SmallBert(len(facts["words"]), **facts["sizes"])
    if pretrained:
        encoder.load_state_dict(weights)
    return encoder.to(device), facts


encoder, FACTS = load_encoder()
WORDS = FACTS["words"]
PLACE = {word: number for number, word in enumerate(WORDS)}
LAYERS, DIM = FACTS["sizes"]["layers"], FACTS["sizes"]["dim"]
print(f"{sum(p.numel() for p in encoder.parameters()):,} trained numbers, {len(WORDS)} words")
for words, label in reviews(4, 0, TRAINING_ADJECTIVES):
    print("good" if label else "bad ", " ".join(words))

# %% [markdown]
# ## Part 1 · One word, two senses ({points:senses} points)
#
# **Question: does the vector of a word say which of its senses is meant?**
#
# In this language *bass* is eaten or heard. Collect uses of it, N of them, each with a vector and the name of its sense.
# Vectors are compared by their cosine, which does not care how long they are:
#
# $$\cos(u, v) = \frac{u \cdot v}{\lVert u\rVert \, \lVert v\rVert}$$
#
# In many models all vectors point in about the same direction, so even words that have nothing to do with each other
# have a high cosine (Ethayarajh 2019). A remedy is to subtract from each vector what all have in **common**, for example
# the mean $c$ of many vectors, and to take the cosine of what is left, $\cos(u - c, v - c)$.


# %% nbgrader={"grade": false, "grade_id": "cosine", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cosines(vectors, common=None):
    """The cosine of each use with each, without what they have in common.

    vectors: float [N, D]
    common:  float [D], subtracted from every vector first, of the dtype of vectors. None: nothing is subtracted.
    returns float [N, N], of the dtype of vectors. No vector is zero, before `common` is subtracted or after.

    Example: [[3., 0.], [2., 2.]] -> [[1., 0.7071], [0.7071, 1.]]; with common [2., 0.] -> [[1., 0.], [0., 1.]]
    """
    ### BEGIN SOLUTION
    if common is not None:
        vectors = vectors - common
    unit = vectors / vectors.norm(dim=1, keepdim=True)  # [N, D]
    return unit @ unit.T
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "senses-cosines", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("cosines")
vectors = tensor([[3.0, 4.0], [8.0, 6.0], [0.0, -2.0]])
lengths = tensor([5.0, 10.0, 2.0])
check_close(
    cosines(vectors),
    tensor([[1.0, 0.96, -0.8], [0.96, 1.0, -0.6], [-0.8, -0.6, 1.0]]),
    "The table of cosines of (3, 4), (8, 6) and (0, -2)",
    "Divide the inner product by both lengths, which are 5, 10 and 2.",
    slips=(
        (vectors @ vectors.T, "Those are inner products: divide by both lengths."),
        (vectors @ vectors.T / lengths, "Divide by both lengths; yours divides by one."),
        (
            vectors @ vectors.T / lengths[:, None],
            "Divide by both lengths; yours divides by one.",
        ),
        (
            (vectors / vectors.norm(dim=0)) @ (vectors / vectors.norm(dim=0)).T,
            "Each vector is divided by its own length: the norm over features, dim=1.",
        ),
        (
            vectors @ vectors.T / vectors.norm() ** 2,
            "Each vector is divided by its own length; yours divides by that of the whole table.",
        ),
        (-torch.cdist(vectors, vectors), "That is a distance, not a cosine."),
    ),
)
common, left = tensor([0.0, 1.0]), tensor([[3.0, 3.0], [8.0, 5.0], [0.0, -3.0]])
unit, centred = vectors / lengths[:, None], vectors - vectors.mean(0)
check_close(
    cosines(vectors, common),
    left @ left.T / left.norm(dim=1) / left.norm(dim=1)[:, None],
    "With (0, 1) in common, the table of cosines of (3, 4), (8, 6) and (0, -2)",
    "These are the cosines of (3, 3), (8, 5) and (0, -3).",
    slips=(
        (unit @ unit.T, "`common` is not used: subtract it from each vector."),
        (
            centred @ centred.T / centred.norm(dim=1) / centred.norm(dim=1)[:, None],
            "Yours subtracts the mean of these vectors: subtract `common`.",
        ),
        (
            (unit - common) @ (unit - common).T,
            "Subtract `common` before you divide by the lengths.",
        ),
        (
            left @ left.T / lengths / lengths[:, None],
            "The lengths are those of what is left when `common` is subtracted.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:cosines}
### END HIDDEN TESTS

# %% [markdown]
# Two means say how near the uses are: *within* a sense, over all pairs of two **different** uses of one sense, and
# *between* senses, over all pairs of uses of different senses. Every pair counts alike. A use is no pair with itself: its
# cosine with itself is 1, whatever the model is.


# %% nbgrader={"grade": false, "grade_id": "means", "locked": false, "schema_version": 3, "solution": true, "task": false}
def within_and_between(vectors, senses):
    """Mean cosine within and between senses.

    vectors: float [N, D]
    senses:  list of N names; at least two differ, and at least two are equal
    returns (within, between), two Python floats

    Example: [[1., 0.], [0., 1.], [1., 0.]], ["eaten", "eaten", "heard"] -> (0.0, 0.5)
    """
    ### BEGIN SOLUTION
    table = cosines(vectors)
    same = torch.tensor([[a == b for b in senses] for a in senses], device=vectors.device)
    other_use = ~torch.eye(len(senses), dtype=torch.bool, device=vectors.device)
    return table[same & other_use].mean().item(), table[~same].mean().item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "senses-means", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("within_and_between")


def unit_vectors(*degrees):
    """Vectors of length 1, 2, 3, ... at these angles: the cosine of two is that of the angle between them."""
    angles = torch.deg2rad(tensor(degrees, torch.float64))
    lengths = torch.arange(1, len(degrees) + 1, device=device)
    return torch.stack([angles.cos(), angles.sin()], dim=1) * lengths[:, None]


def degrees(angle):
    return math.cos(math.radians(angle))


def check_means(angles, senses, what):
    pairs = [
        (degrees(a - b), s == t)
        for i, (a, s) in enumerate(zip(angles, senses))
        for b, t in zip(angles[:i], senses)
    ]
    own = [cosine for cosine, same in pairs if same]
    other = [cosine for cosine, same in pairs if not same]
    expected = sum(own) / len(own), sum(other) / len(other)
    by_sense = []
    for sense in {*senses}:
        group = [a for a, s in zip(angles, senses) if s == sense]
        found = [degrees(a - b) for i, a in enumerate(group) for b in group[:i]]
        by_sense += [sum(found) / len(found)] if found else []
    N = len(angles)
    answer = check_pair(
        within_and_between(unit_vectors(*angles), senses),
        "within_and_between must return (within, between)",
    )
    slips = (
        (
            (2 * sum(own) + N) / (2 * len(own) + N),
            "You count each use as a pair with itself, with cosine 1. Leave the diagonal out.",
        ),
        (2 * expected[0], "Divide by the number of the pairs that you add up."),
        (expected[0] / 2, "Divide by the number of the pairs that you add up."),
        (
            sum(by_sense) / len(by_sense),
            "You take the mean of each sense, and then the mean of these. Every pair counts alike.",
        ),
        ((2 * sum(own) + N) / N**2, "Divide by the number of pairs of one sense, not by all."),
        (2 * sum(own) / N**2, "Divide by the number of pairs of one sense, not by all."),
        (expected[1], "You have exchanged within and between."),
    )
    check_number(
        answer[0],
        expected[0],
        f"{what}, the mean cosine within senses",
        "If senses-cosines fails, mend that first.",
        slips=slips,
    )
    slips = (
        ((sum(own) + sum(other)) / len(pairs), "Count pairs of different senses only."),
        (sum(other) / len(pairs), "Divide by the number of pairs of different senses."),
        (2 * sum(other) / N**2, "Divide by the number of pairs of different senses."),
    )
    check_number(
        answer[1],
        expected[1],
        f"{what}, the mean cosine between senses",
        "If senses-cosines fails, mend that first.",
        slips=slips,
    )


check_means(
    [0, 20, 50, 90, 170], ["eaten", "eaten", "eaten", "heard", "heard"], "For five uses"
)
### BEGIN HIDDEN TESTS
# {compare:within_and_between}
### END HIDDEN TESTS

# %% [markdown]
# Means depend on the model: in some, all cosines are high. A *share of comparisons* does not. Take a use, another one
# of the same sense, and one of another sense: is the first of them the nearer one, by cosine? A tie, a difference below
# 1e-6, counts one half. For each use take the share of its comparisons that come out right.
#
# The book takes the mean of these shares over the uses, so a sense that is used often decides, and a rare one hardly
# shows. Here **every sense counts alike**: take the mean over the uses of each sense, then the mean of these means over
# the senses; that is the **separation**. A use that is the only one of its sense has no comparison, so its sense is left
# out of the mean, but others are compared with it.


# %% nbgrader={"grade": false, "grade_id": "separate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def separation(vectors, senses):
    """How well the vectors tell the senses apart, each sense counting alike: 0.5 is chance, 1 is all.

    vectors: float [N, D]
    senses:  list of N names; at least two differ, and at least two are equal
    returns a Python float

    Example: four equal vectors, ["eaten", "eaten", "heard", "heard"] -> 0.5. If the three uses of one sense have the
    shares 1, 1 and 1, and the two of another 0.5 and 0, the separation is the mean of 1 and 0.25, 0.625
    """
    ### BEGIN SOLUTION
    table = cosines(vectors.double())
    shares = {}  # by sense, of each use
    for use, sense in enumerate(senses):
        same = [i for i, other in enumerate(senses) if other == sense and i != use]
        others = [i for i, other in enumerate(senses) if other != sense]
        if same:
            lead = table[use, same][:, None] - table[use, others]  # [same, others]
            right = (lead > 1e-6).double() + 0.5 * (lead.abs() <= 1e-6).double()
            shares.setdefault(sense, []).append(right.mean())
    means = [torch.stack(of_uses).mean() for of_uses in shares.values()]
    return torch.stack(means).mean().item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "senses-separation", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("separation")


def share_table(angles, senses, tie=0.5, itself=False):
    """For each use (comparisons that come out right, comparisons, sense)."""
    rows = []
    for i, (a, s) in enumerate(zip(angles, senses)):
        own = [
            degrees(a - b)
            for j, (b, t) in enumerate(zip(angles, senses))
            if t == s and (itself or j != i)
        ]
        other = [degrees(a - b) for b, t in zip(angles, senses) if t != s]
        right = [
            1.0 if p - q > 1e-6 else tie if abs(p - q) <= 1e-6 else 0.0
            for p in own
            for q in other
        ]
        rows.append((sum(right), len(right), s))
    return [row for row in rows if row[1]]


def check_separation(angles, senses, what):
    rows = share_table(angles, senses)
    average = lambda numbers: sum(numbers) / len(numbers)
    of_senses = lambda rows: [
        average([right / count for right, count, own in rows if own == sense])
        for sense in dict.fromkeys(own for *_, own in rows)
    ]
    mean = lambda rows: average(of_senses(rows))
    expected = mean(rows)
    slips = (
        (
            average([right / count for right, count, _ in rows]),
            "You take the mean over all uses, so a sense counts as often as it is used. Take that of each sense first.",
        ),
        (
            sum(r for r, *_ in rows) / sum(n for _, n, _ in rows),
            "You count all comparisons alike. Take the share of each use first, then the mean of each sense.",
        ),
        (
            mean(share_table(angles, senses, tie=0.0)),
            "A tie counts one half; yours counts nothing.",
        ),
        (
            mean(share_table(angles, senses, tie=1.0)),
            "A tie counts one half; yours counts as right.",
        ),
        (
            mean(share_table(angles, senses, itself=True)),
            "You compare a use with itself: that is always the nearest. Leave it out.",
        ),
        (1 - expected, "Upside down: the use of the same sense is to be the nearer one."),
        (
            sum(of_senses(rows)) / len({*senses}),
            "A use that is the only one of its sense is left out of the mean, and its sense with it.",
        ),
    )
    check_number(
        separation(unit_vectors(*angles), senses),
        expected,
        f"{what}, the separation",
        "If senses-cosines fails, mend that first.",
        slips=slips,
    )


check_separation(
    [0, 10, 60, 40, 90], ["eaten", "eaten", "eaten", "heard", "heard"], "For five uses"
)
check_separation(
    [0, 30, 30, 30, 90],
    ["eaten", "eaten", "eaten", "heard", "heard"],
    "With some equal vectors",
)
check_separation(
    [0, 10, 60, 40, 90, 35],
    ["eaten", "eaten", "eaten", "heard", "heard", "seen"],
    "When a third sense has a single use",
)
check_separation(
    [25] * 5,
    ["eaten", "heard", "eaten", "heard", "heard"],
    "For a static vector, which is the same at all uses",
)
### BEGIN HIDDEN TESTS
# {compare:separation}
### END HIDDEN TESTS

# %% [markdown]
# And now the words of the checkpoint. Change nothing in this cell; read what it prints.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "look-at-senses", "locked": true, "schema_version": 3, "solution": false, "task": false}


def uses_of(word, count, seed):
    """Reviews of an ambiguous word, the opinion left out; the topic is the sense."""
    chance, rows = random.Random(seed), []
    nouns = dict.fromkeys(AMBIGUOUS[word], (word,))
    for _ in range(count):
        words, _, topic, _ = review(chance, TRAINING_ADJECTIVES, nouns)
        rows.append((words[:5], topic))
    return rows


print(f"{'':28}" + "".join(f"{'layer ' + str(n):>10}" for n in range(LAYERS + 1)))
for name, model in (("trained", load_encoder()[0]), ("untrained", load_encoder(False)[0])):
    by_word, last = [], []
    for word in AMBIGUOUS:
        rows = uses_of(word, 40, seed=1)
        (batch,) = batches([(words, 0) for words, _ in rows], 40)
        with torch.no_grad():
            states = model(batch["input_ids"], batch["attention_mask"])
        topics = [topic for _, topic in rows]
        at_word = batch["input_ids"] == PLACE[word]
        by_word.append([separation(state[at_word], topics) for state in states])
        last.append(states[-1][at_word])
        if name == "trained":
            means = within_and_between(states[-1][at_word], topics)
            print(
                f"{word:28}"
                + "".join(f"{score:10.2f}" for score in by_word[-1])
                + "   last layer: within {:.2f}, between {:.2f}".format(*means)
            )
    print(
        f"{name + ', mean of 6 words':28}"
        + "".join(f"{sum(column) / 6:10.2f}" for column in zip(*by_word))
    )
    uses = torch.cat(last)
    found = [cosines(uses, common).mean().item() for common in (None, uses.mean(dim=0))]
    print(
        "   all uses of all words, last layer: mean cosine {:.2f}, centred {:.2f}".format(
            *found
        )
    )

# %% [markdown]
# ## Part 2 · Which layer? ({points:layers} points)
#
# **Question: must somebody choose the layer?**
#
# A task can learn how much of each it wants (Peters et al. 2018, equation 1): with one weight $w_j$ for the embeddings
# and for each layer, and one scale $\gamma$,
#
# $$\gamma \sum_j s_j h_j, \qquad s = \operatorname{softmax}(w)$$
#
# At the start all $w_j$ are 0 and $\gamma$ is 1, so the mix is the mean of the layers.
#
# Is a layer needed? Leave it out and see. A state that is left out gets the share 0, and the shares of the others still
# add up to 1: the softmax goes over the others alone. Kondratyuk and Straka (2019) leave some out at random at each
# training step, so that a mix does not come to rely on one layer; here the caller says which.


# %% nbgrader={"grade": false, "grade_id": "mix", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LayerMix(torch.nn.Module):
    """A weighted mean of layers, times a scale, all learned.

    Its parameters are `weights`, float [number of states], and `scale`, float [].

    Example: after mix.weights.data = [0., 0., -1e9], the states 2.0, 4.0 and 100.0 mix to 3.0, and to 4.0 with left_out=(0,)
    """

    def __init__(self, num_states):
        super().__init__()
        ### BEGIN SOLUTION
        self.weights = torch.nn.Parameter(torch.zeros(num_states))
        self.scale = torch.nn.Parameter(torch.ones(()))
        ### END SOLUTION

    def forward(self, states, left_out=()):
        """states: list of float [B, T, D], the embeddings first -> float [B, T, D]

        left_out: tuple of numbers of states, 0 for the embeddings, that have no part in the mix; never all of them
        raises ValueError if there are more or fewer states than weights
        """
        ### BEGIN SOLUTION
        if len(states) != len(self.weights):
            raise ValueError(f"{len(states)} states, but {len(self.weights)} weights")
        out = torch.tensor([number in left_out for number in range(len(states))])
        weights = self.weights.masked_fill(out.to(self.weights.device), -math.inf)
        shares = weights.softmax(dim=0)
        return self.scale * sum(share * state for share, state in zip(shares, states))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "layers-mix", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("LayerMix")


def new_mix(num_states, dtype=torch.float32):
    """A mix that has what it is to have."""
    mix = LayerMix(num_states)
    found = {name: list(parameter.shape) for name, parameter in mix.named_parameters()}
    wanted = {"weights": [num_states], "scale": []}
    assert found == wanted, (
        f"LayerMix({num_states}) must have the parameters and shapes {wanted}; yours has {found}. Wrap them in torch.nn.Parameter, "
        "or no optimizer will know them."
    )
    assert not mix.weights.any() and mix.scale == 1, (
        "At the start all weights are 0 and the scale is 1; yours are "
        f"{mix.weights.tolist()} and {mix.scale.item():g}."
    )
    return mix.to(device, dtype)


def check_mix(sizes, weights, scale, seed, what, dtype=torch.float32, tolerance=1e-5):
    states = normal(seed, *[sizes] * len(weights), dtype=dtype)
    mix = new_mix(len(weights), dtype)
    mean = sum(states) / len(states)
    with torch.no_grad():
        check_close(
            mix(states),
            mean,
            f"{what} before any training, the mix",
            "Equal weights: the mean of all states, the embeddings among them.",
            tolerance,
            slips=(
                (sum(states), "That is the sum: softmax makes the shares add up to 1."),
                (states[-1], "Yours gives the last layer only."),
            ),
        )
        mix.weights.copy_(tensor(weights, dtype))
        mix.scale.fill_(scale)
        shares = torch.tensor([math.exp(w) for w in weights], dtype=torch.float64)
        shares = (shares / shares.sum()).tolist()
        expected = scale * sum(share * state for share, state in zip(shares, states))
        raw = sum(w * state for w, state in zip(weights, states))
        later = torch.tensor(weights[1:], dtype=torch.float64).softmax(0).tolist()
        check_close(
            mix(states),
            expected,
            f"{what} with weights {weights} and scale {scale}, the mix",
            f"The shares are softmax(weights) = {', '.join(f'{share:.3f}' for share in shares)}, in the order of the states.",
            tolerance,
            slips=(
                (expected / scale, "The scale is missing."),
                (
                    scale * raw,
                    "Yours uses the weights as they are: the shares are their softmax.",
                ),
                (raw, "Yours uses the weights as they are: the shares are their softmax."),
                (
                    scale * raw / sum(weights),
                    "Dividing by the sum is no softmax: a weight may be negative. Take exponentials.",
                ),
                (
                    scale * sum(s * h for s, h in zip(shares[::-1], states)),
                    "Yours gives the first weight to the last layer.",
                ),
                (
                    scale * sum(s * h for s, h in zip(later, states[1:])),
                    "Yours leaves the embeddings out: states[0] has a weight, too.",
                ),
                (
                    scale * sum(s * h for s, h in zip(shares[1:], states[1:])),
                    "Yours leaves the embeddings out: states[0] has a weight, too.",
                ),
                (scale * mean, "Yours takes the plain mean, whatever the weights are."),
                (scale * states[-1], "Yours gives the last layer only."),
                (states[-1], "Yours gives the last layer only."),
                (
                    scale * sum(1 / (1 + math.exp(-w)) * h for w, h in zip(weights, states)),
                    "That is a sigmoid of each weight: softmax makes the shares add up to 1.",
                ),
            ),
        )
        rest = sum(shares[:1] + shares[2:])
        without = scale * sum(s * h for s, h in zip(shares, states) if h is not states[1])
        check_close(
            mix(states, left_out=(1,)),
            without / rest,
            f"{what} with weights {weights} and scale {scale}, the mix that leaves out number 1",
            "The softmax goes over the weights of the other states alone.",
            tolerance,
            slips=(
                (expected, "`left_out` is not used."),
                (without, "The shares of the others must add up to 1 again."),
                (scale * states[1], "Yours mixes the states that are to be left out."),
            ),
        )
        check_close(
            mix(states),
            expected,
            f"{what}, the mix of all states, after one that left some out,",
            "`left_out` is for one call: do not write into self.weights.",
            tolerance,
        )


check_mix((2, 5, 4), [1.0, -0.5, 0.5], 2.0, 21, "For three states")
for count in (2, 4):
    try:
        new_mix(3)(normal(22, *[(2, 5, 4)] * count, dtype=torch.float32))
    except NotImplementedError:
        raise
    except ValueError:
        continue
    except Exception as error:
        raise AssertionError(
            f"For {count} states and 3 weights raise a ValueError; yours raises a {type(error).__name__}."
        ) from error
    raise AssertionError(
        f"{count} states and 3 weights do not fit: raise a ValueError. Without it, zip would stop at the shorter, and layers would be lost in silence."
    )
### BEGIN HIDDEN TESTS
# {compare:layer_mix}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "layers-learned", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}


def check_learned(weights, scale, seed, left_out=()):
    """A training moves along the gradient, so both parameters must get theirs."""
    *states, direction = normal(seed, *[(3, 2, 5)] * (len(weights) + 1))
    mix = new_mix(len(weights), torch.float64)
    kept = [number for number in range(len(weights)) if number not in left_out]
    values = tensor(weights, torch.float64), tensor(scale, torch.float64)
    true = [value.clone().requires_grad_() for value in values]
    mixed = torch.stack(states, dim=-1)[..., kept] @ true[0][kept].softmax(0)
    (true[1] * mixed * direction).sum().backward()
    with torch.no_grad():
        mix.weights.copy_(values[0])
        mix.scale.copy_(values[1])
    loss = (mix(states, left_out) * direction).sum()
    assert loss.requires_grad, (
        "No gradient reaches the parameters, so no task can learn them: is there a detach(), a .data or a no_grad() on the way?"
    )
    loss.backward()
    for name, right in zip(("weights", "scale"), true):
        got = getattr(mix, name).grad
        assert got is not None, (
            f"No gradient reaches `{name}`, so no task can learn it: is there a detach(), a .data or an .item() on the way?"
        )
        check_close(
            got,
            right.grad,
            f"The gradient of `{name}`{f' with left_out={left_out}' * bool(left_out)}",
            "Use the parameters themselves in forward. If layers-mix fails, mend that first.",
            1e-9,
        )


check_learned([0.5, -1.0, 0.25], 2.0, seed=26)
check_learned([0.5, -1.0, 0.25, 0.75], 2.0, seed=27, left_out=(0, 2))
### BEGIN HIDDEN TESTS
# {compare:layer_mix_learned}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · One vector for a text ({points:features} points)
#
# **Question: what may go into it?**
#
# Take the mean over the words of a text: its real tokens that are not special. Padding is there because another text of the
# batch is longer, and [CLS] and [SEP] are no words. What is padding, the mask says, not the id. A text without
# any word gets zeros.


# %% nbgrader={"grade": false, "grade_id": "pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_pool(hidden, input_ids, attention_mask, special_ids):
    """Mean of the words of each text.

    hidden:         float [B, T, D]
    input_ids:      int64 [B, T]
    attention_mask: bool [B, T], True = real
    special_ids:    tuple of ids that are no words, such as those of [CLS] and [SEP]; it may be empty
    returns float [B, D]

    Example: hidden [[[9.], [1.], [3.], [9.], [7.]]], input_ids [[2, 50, 60, 3, 0]], attention_mask [[True, True, True, True, False]],
    special_ids (2, 3) -> [[2.]]
    """
    ### BEGIN SOLUTION
    special = torch.isin(input_ids, torch.tensor(special_ids, device=input_ids.device))
    words = (attention_mask & ~special).unsqueeze(-1).to(hidden.dtype)  # [B, T, 1]
    return (hidden * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "features-pool", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("mean_pool")


def mean_over(hidden, kept, count=None):
    kept = kept[..., None].to(hidden.dtype)
    return (hidden * kept).sum(1) / (kept.sum(1).clamp(min=1) if count is None else count)


def check_pool(hidden, ids, mask, specials, what, tolerance=1e-5):
    ids, mask = tensor(ids), tensor(mask)
    special = torch.isin(ids, tensor(specials))

    mean = lambda kept, count=None: mean_over(hidden, kept, count)
    words, everywhere = mask & ~special, torch.ones_like(mask)
    cls, sep = ids == specials[0], ids == specials[1]
    before = hidden.clone()
    got = mean_pool(hidden, ids, mask, specials)
    assert torch.equal(hidden, before), (
        "mean_pool must leave hidden as it was; yours changes it in place."
    )
    length = hidden.shape[1]
    check_close(
        got,
        mean(words),
        f"{what}, the table of means",
        "Add up the states of the words and divide by their number, text by text.",
        tolerance,
        slips=(
            (
                mean(everywhere),
                "That is the mean over all positions: padding and special tokens are no words.",
            ),
            (mean(mask), "Padding is left out, but [CLS] and [SEP] are counted as words."),
            (mean(mask & ~cls), "Yours counts [SEP] as a word."),
            (mean(mask & ~sep), "Yours counts [CLS] as a word."),
            (
                mean(~special),
                "Special tokens are left out, but padding is counted: go by attention_mask.",
            ),
            (
                mean(mask & ~special & (ids != 0)),
                "Yours leaves out the id 0. Here it is a word; the mask says what padding is.",
            ),
            (mean(words, 1), "That is the sum: divide by the number of words."),
            (
                mean(words, length),
                "Yours divides by the length of the batch, T: divide by the number of words of each text.",
            ),
            (
                mean(words, mask.sum(1, keepdim=True).clamp(min=1)),
                "Yours divides by the number of real tokens, [CLS] and [SEP] among them.",
            ),
            (
                mean(words, words.sum() / len(ids)),
                "Yours divides by the same number for every text. Count the words of each.",
            ),
            (
                hidden.masked_fill(~words[..., None], -torch.inf).amax(1),
                "That is the maximum, not the mean.",
            ),
            (hidden[:, 0], "That is the state of the first position."),
        ),
    )


(hidden,) = normal(31, (4, 6, 3), dtype=torch.float32)
check_pool(
    hidden,
    [[2, 7, 8, 5, 9, 3], [2, 6, 0, 3, 0, 0], [2, 3, 0, 0, 0, 0], [2, 4, 3, 0, 0, 0]],
    [[True] * n + [False] * (6 - n) for n in (6, 4, 2, 3)],
    (2, 3),
    "For texts of 4, 2, 0 and 1 words (0 stands for padding, but is also the id of a word here)",
)
### BEGIN HIDDEN TESTS
# {compare:mean_pool}
### END HIDDEN TESTS

# %% [markdown]
# Now a whole set of texts. Features are taken from an encoder that stands still: in evaluation mode (dropout off), without
# gradients. Whoever calls this may be in the middle of a training, so leave the encoder in the mode in which you found it.


# %% nbgrader={"grade": false, "grade_id": "extract", "locked": false, "schema_version": 3, "solution": true, "task": false}
def text_features(encoder, batches, special_ids):
    """One vector for each text: mean_pool of the last layer.

    encoder: takes (input_ids, attention_mask), gives a list of hidden states [B, T, D]
    batches: list of dicts with input_ids and attention_mask; T differs from batch to batch
    returns float [N, D], in the order of the texts, without gradients
    """
    ### BEGIN SOLUTION
    was_training = encoder.training
    encoder.eval()
    rows = []
    with torch.no_grad():
        for batch in batches:
            ids, mask = batch["input_ids"], batch["attention_mask"]
            rows.append(mean_pool(encoder(ids, mask)[-1], ids, mask, special_ids))
    encoder.train(was_training)
    return torch.cat(rows)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "features-extract", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("text_features")


class Watched(torch.nn.Module):
    """An encoder of two layers which notes how it is called, and answers something else while it trains."""

    def __init__(self, V=12, D=4):
        super().__init__()
        self.table = torch.nn.Parameter(normal(34, (V, D), dtype=torch.float32)[0])
        self.modes, self.graphs, self.masks = [], [], []

    def forward(self, input_ids, attention_mask):
        self.modes.append(self.training)
        self.graphs.append(torch.is_grad_enabled())
        self.masks.append(attention_mask)
        first = self.table[input_ids] * (3 if self.training else 1)
        return [first, first + 1, first.flip(-1) ** 2]


def check_extract(lengths, specials, seed, dtype):
    chance, given, rows = seeded(seed), [], []
    encoder = Watched().to(device, dtype)
    for sizes in lengths:
        T = max(sizes) + 1
        ids = torch.randint(12, (len(sizes), T), generator=chance).to(device)
        mask = (torch.arange(T) < torch.tensor(sizes)[:, None]).to(device)
        given.append({"input_ids": ids, "attention_mask": mask, "labels": ids[:, 0]})
        for row, kept in zip(ids, mask):
            kept = [
                i for i, real in zip(row.tolist(), kept.tolist()) if real and i not in specials
            ]
            state = encoder.table.detach()[kept].flip(-1) ** 2
            rows.append(state.mean(0) if kept else torch.zeros(4, device=device, dtype=dtype))
    for training in (True, False):
        encoder.train(training)
        encoder.modes.clear(), encoder.graphs.clear(), encoder.masks.clear()
        got = text_features(encoder, given, specials)
        assert encoder.modes and not any(encoder.modes), (
            "Call eval() on the encoder before you ask it: yours leaves dropout on, so the features change from call to call."
        )
        assert not any(encoder.graphs), (
            "Ask the encoder under torch.no_grad(): the gradients of a whole set do not fit into memory."
        )
        assert encoder.training == training, (
            f"The encoder was {'training' if training else 'evaluating'} before and is {'not ' if training else ''}training afterwards. "
            "Leave it in the mode in which you found it."
        )
        assert all(
            any(torch.equal(m, b["attention_mask"]) for b in given) for m in encoder.masks
        ), (
            "The encoder must get each batch's own attention_mask, or real tokens attend to padding."
        )
        check_close(
            got,
            torch.stack(rows),
            f"The features of {len(rows)} texts",
            "They are mean_pool of the last state, in the order of the texts. If features-pool fails, mend that first.",
            slips=((torch.stack(rows).flip(0), "Yours are in another order."),),
        )
        assert not got.requires_grad, "The features must have no gradient."


check_extract([[3, 5], [2, 7, 4]], (2, 3), 35, torch.float32)
### BEGIN HIDDEN TESTS
# {compare:text_features}
### END HIDDEN TESTS

# %% [markdown]
# A classifier on features likes them on one scale: subtract from each feature its mean and divide by its standard
# deviation (that of the texts at hand: divide by N, not N - 1). Both come from the **training** texts alone, and the
# same numbers are used for any other texts. A mean over test texts is something learned from the test. Features that
# are the same in all training texts are divided by 1. Ask the values themselves whether they are the same: in float32
# the mean of seven times 0.1 is not quite 0.1, so its deviation is 7e-9 instead of 0.


# %% nbgrader={"grade": false, "grade_id": "scale", "locked": false, "schema_version": 3, "solution": true, "task": false}
def standardise(train, other):
    """Bring features on the scale of the training texts.

    train: float [N, D], other: float [M, D]
    returns (train, other), both standardised

    Example: train [[1.], [3.]], other [[5.]] -> [[-1.], [1.]], [[3.]]
    """
    ### BEGIN SOLUTION
    mean, deviation = train.mean(dim=0), train.std(dim=0, correction=0)
    same = (train == train[0]).all(dim=0)  # the deviation of seven times 0.1 is 7e-9
    deviation = torch.where(same, torch.ones_like(deviation), deviation)
    return (train - mean) / deviation, (other - mean) / deviation
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "features-scale", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("standardise")


def scaled(x, by, correction=0, dim=0):
    deviation = by.std(dim, correction=correction, keepdim=True)
    deviation = deviation.masked_fill((by == by.narrow(dim, 0, 1)).all(dim, keepdim=True), 1.0)
    return (x - by.mean(dim, keepdim=True)) / deviation


def check_scale(train, other, what, tolerance=1e-5):
    everything = torch.cat([train, other])

    before = train.clone(), other.clone()
    got = check_pair(standardise(train, other), "standardise must return (train, other)")
    assert torch.equal(train, before[0]) and torch.equal(other, before[1]), (
        "standardise must leave what it is given as it was; yours changes it in place."
    )
    for name, found, x in (
        ("the training texts", got[0], train),
        ("the other texts", got[1], other),
    ):
        if isinstance(found, torch.Tensor):
            assert found.isfinite().all(), (
                f"{what}, {name} become nan or infinite: a feature that never changes has deviation 0. Divide it by 1."
            )
        check_close(
            found,
            scaled(x, train),
            f"{what}, {name}",
            "Subtract the mean of the training texts and divide by their deviation, feature by feature.",
            tolerance,
            slips=(
                (
                    scaled(x, everything),
                    "Mean and deviation come from all texts together, so the training has seen the test. Take those of train.",
                ),
                (
                    scaled(x, x),
                    "The other texts are scaled by their own mean and deviation. Use those of train.",
                ),
                (
                    scaled(x, train, correction=1),
                    "Divide by N in the deviation, not by N - 1: correction=0.",
                ),
                (
                    scaled(x, x, dim=1),
                    "The mean goes over texts, feature by feature; yours goes over the features of each text.",
                ),
                (x - train.mean(0), "Divide by the deviation, too."),
                (x / train.std(0, correction=0), "Subtract the mean, too."),
            ),
        )


train, other = normal(37, (5, 3), (4, 3), dtype=torch.float32)
check_scale(3 * train + 1, other - 2, "For 5 training texts and 4 others")
same, others = train.clone(), other.clone()
same[:, 1], others[:, 1] = 0.1, tensor([0.1, 0.2, 0.1, 0.3])
check_scale(same, others, "With a second feature that is 0.1 in all training texts")
alone = standardise(train, other[:1])[1]
check_close(
    standardise(train, other)[1][:1],
    alone,
    "The first of four other texts",
    "It must come out as it does when it is the only one: what becomes of a test text must not depend on the rest of the test.",
)
### BEGIN HIDDEN TESTS
# {compare:standardise}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · Labels of words, tokens of a model ({points:labels} points)
#
# **Question: a word has one label and three tokens. Which of them gets it?**
#
# The first. *Jim Hen ##son was a puppet ##eer* with one label for each of five words becomes (Devlin et al. 2019, section 5.3)
#
# | [CLS] | Jim | Hen | ##son | was | a | puppet | ##eer | [SEP] |
# |---|---|---|---|---|---|---|---|---|
# | -100 | I-PER | I-PER | -100 | O | O | O | -100 | -100 |
#
# where -100 (`IGNORE`) counts neither in training nor in the score. If that is longer than `max_length`, tokens are cut off at the
# end, labels with them, and [SEP] stays the last. A word of which the first token is left keeps its label.


# %% nbgrader={"grade": false, "grade_id": "align", "locked": false, "schema_version": 3, "solution": true, "task": false}
def align_labels(pieces, labels, cls_id, sep_id, max_length):
    """One sequence, and a label for each of its tokens.

    pieces:     list of words, each a list of at least one id; there may be no word
    labels:     list of ints, one for each word
    max_length: the most tokens of the sequence, [CLS] and [SEP] among them; at least 3
    returns (input_ids, token_labels), two lists of ints, of equal length

    Example: pieces [[21], [22, 23], [24]], labels [1, 2, 0], cls_id 2, sep_id 3, max_length 10
    -> [2, 21, 22, 23, 24, 3], [-100, 1, 2, -100, 0, -100]; with max_length 4 -> [2, 21, 22, 3], [-100, 1, 2, -100]
    """
    ### BEGIN SOLUTION
    input_ids, token_labels = [cls_id], [IGNORE]
    for word, label in zip(pieces, labels):
        input_ids += word
        token_labels += [label] + [IGNORE] * (len(word) - 1)
    return [*input_ids[: max_length - 1], sep_id], [*token_labels[: max_length - 1], IGNORE]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "labels-align", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("align_labels")


def check_align(pieces, labels, what, cls_id=2, sep_id=3, max_length=99):
    ids, firsts = [cls_id], {}
    for word, label in zip(pieces, labels):
        firsts[len(ids)] = label
        ids = ids + word
    end = min(len(ids), max_length - 1)
    expected_ids = [*ids[:end], sep_id]
    expected = [firsts.get(place, IGNORE) for place in range(end)] + [IGNORE]
    copied = copy.deepcopy(pieces), list(labels)
    got_ids, got = check_pair(
        align_labels(pieces, labels, cls_id, sep_id, max_length),
        "align_labels must return (input_ids, token_labels)",
    )
    assert (pieces, labels) == copied, (
        "align_labels must leave pieces and labels as they were; yours changes them."
    )
    whole = [cls_id]
    for word in pieces:
        if len(whole) + len(word) > max_length - 1:
            break
        whole = whole + word
    check_same(
        got_ids,
        expected_ids,
        f"{what}, the input_ids",
        "[CLS], the pieces of all words, [SEP]; what is too long is cut off before the [SEP].",
        slips=(
            (expected_ids[:-1], "The [SEP] at the end is missing."),
            (expected_ids[1:], "The [CLS] at the beginning is missing."),
            (expected_ids[1:-1], "[CLS] and [SEP] are missing."),
            (
                ([*ids, sep_id])[:max_length],
                "The cut has taken the [SEP] away: leave room for it.",
            ),
            ([*ids, sep_id], "Yours is longer than max_length."),
            ([*ids[:max_length], sep_id], "Yours is longer than max_length, by the [SEP]."),
            (
                [*ids[: max_length - 2], sep_id],
                "There is room for one token more: [CLS] and [SEP] are two of max_length.",
            ),
            (
                [*whole, sep_id],
                "Tokens are cut off, not whole words: the first pieces of the last word have room.",
            ),
            (
                [cls_id] + [word[0] for word in pieces] + [sep_id],
                "All pieces of a word go in, not the first alone.",
            ),
        ),
    )
    spread = [IGNORE] + [label for word, label in zip(pieces, labels) for _ in word]
    lasts = [IGNORE] + [
        x for word, label in zip(pieces, labels) for x in [IGNORE] * (len(word) - 1) + [label]
    ]
    fill = lambda value: [firsts.get(place, value) for place in range(end)] + [value]
    torn = max(place for place in (0, *firsts) if place < end) if len(whole) < end else None
    dropped = [IGNORE if place == torn else label for place, label in enumerate(expected)]
    rests = lambda value: [
        x if place in firsts or place in (0, end) else value for place, x in enumerate(expected)
    ]
    edges = lambda value: [value, *expected[1:-1], value]
    rows = [firsts.get(place, IGNORE) for place in range(len(ids))] + [IGNORE]
    check_same(
        got,
        expected,
        f"{what}, the token_labels",
        f"The first piece of a word has its label, every other token {IGNORE}.",
        slips=(
            (
                [*spread[:end], IGNORE],
                f"Every piece of a word has its label in yours; only the first may. The others have {IGNORE}.",
            ),
            (
                dropped,
                "A word that is cut keeps its label as long as its first piece is left.",
            ),
            ([*lasts[:end], IGNORE], "Yours labels the last piece of a word; it is the first."),
            (
                fill(0),
                f"What does not count is labelled 0 in yours, and 0 is a label. Use IGNORE, {IGNORE}.",
            ),
            (
                fill(-1),
                f"What does not count is labelled -1 in yours. Use IGNORE, {IGNORE}: that is what losses look for.",
            ),
            (
                rests(0),
                f"Pieces that are not the first are labelled 0 in yours, and 0 is a label. Use {IGNORE}.",
            ),
            (
                edges(0),
                f"[CLS] and [SEP] are labelled 0 in yours, and 0 is a label: they are no words. Use {IGNORE}.",
            ),
            (
                expected[1:-1],
                "The labels of [CLS] and [SEP] are missing: there is one for every token.",
            ),
            (
                [*expected[1:], IGNORE],
                "Your labels are one place too early: [CLS] has one, too.",
            ),
            (rows, "The ids are cut off, the labels are not: there is one for every token."),
            (expected[:-1], "Your labels are one too few: [SEP] has one, too."),
            (
                rows[-len(expected) :],
                "Cut the labels off at the end, as the ids; yours cuts at the beginning.",
            ),
        ),
    )


check_align(
    [[21], [22, 23], [24], [25], [26, 27, 28]],
    [1, 2, 0, 0, 3],
    "For words of 1, 2, 1, 1 and 3 pieces",
)
check_align(
    [[21], [22, 23, 24], [25]],
    [1, 2, 4],
    "With max_length 5, which cuts into the second word",
    max_length=5,
)
### BEGIN HIDDEN TESTS
# {compare:align_labels}
### END HIDDEN TESTS

# %% [markdown]
# And back: the model guesses at every token, the label with the greatest logit, and what it guesses at the first piece is
# its guess for the word. Compare logits: their probabilities may be equal after rounding where they are not.
#
# Not every label may follow every other. Where the first word of a name is labelled B-PER and its further words I-PER, an
# I-PER right after an O is nonsense, and a model that looks at each word by itself writes it now and then. So go through
# the words from left to right: the guess for a word is the label with the greatest logit **among those that may follow
# the guess for the word before it**. The first word may have any label.


# %% nbgrader={"grade": false, "grade_id": "guess", "locked": false, "schema_version": 3, "solution": true, "task": false}
def word_guesses(logits, token_labels, may_follow=None):
    """The guesses for the words of one sequence, and how many of them are right.

    logits:       float [T, L]
    token_labels: list of T ints, as align_labels makes them
    may_follow:   bool [L, L]; may_follow[a, b] says whether label b may follow label a. Every label may be followed by
                  one at least. None: every label may follow every label.
    returns (guesses, right): a list of ints, one for each word that has a token, and the number of right ones, an int

    Example: logits [[0., 9.], [3., 1.], [0., 9.], [9., 1.]], token_labels [-100, 0, 1, -100] -> ([0, 1], 2);
    with may_follow [[True, False], [True, True]], in which 1 may not follow 0, -> ([0, 0], 1)
    """
    ### BEGIN SOLUTION
    places = [place for place, label in enumerate(token_labels) if label != IGNORE]
    guesses = []
    for row in logits[places]:
        if guesses and may_follow is not None:
            row = row.masked_fill(~may_follow[guesses[-1]], -math.inf)
        guesses.append(row.argmax().item())
    return guesses, sum(guess == token_labels[place] for guess, place in zip(guesses, places))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "labels-guess", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("word_guesses")


def guessed(logits, places, may_follow, before):
    """The guesses at these places, where `before` names the label before, if any, from the place and the guesses so far."""
    found = []
    for place in places:
        label, row = before(place, found), logits[place].tolist()
        allowed = [b for b in range(len(row)) if label is None or may_follow[label][b]]
        found.append(max(allowed, key=row.__getitem__))
    return found


def check_guesses(logits, labels, what, may_follow=None):
    best = logits.argmax(-1).tolist()
    kept = [place for place, label in enumerate(labels) if label != IGNORE]
    table = None if may_follow is None else may_follow.tolist()
    last = lambda place, found: found[-1] if found and table else None
    guesses = guessed(logits, kept, table, last)
    right = sum(guess == labels[place] for guess, place in zip(guesses, kept))
    answer = check_pair(
        word_guesses(logits, labels, *(() if may_follow is None else (may_follow,))),
        "word_guesses must return (guesses, right)",
    )
    slips = ()
    if table:
        true = [labels[place] for place in kept]
        numbered = lambda place: kept.index(place)
        slips = (
            ([best[place] for place in kept], "`may_follow` is not used."),
            (
                guessed(logits, kept, [*zip(*table)], last),
                "Row a of may_follow says what may follow a; yours reads its columns.",
            ),
            (
                guessed(
                    logits,
                    kept,
                    table,
                    lambda place, found: true[numbered(place) - 1] if found else None,
                ),
                "Go by your own guess for the word before: nobody tells you its true label when you tag a new text.",
            ),
            (
                guessed(
                    logits, kept, table, lambda place, found: best[place - 1] if found else None
                ),
                "Go by the guess for the word before, not by that at the token before.",
            ),
            (
                guessed(
                    logits,
                    kept,
                    table,
                    lambda place, found: best[kept[numbered(place) - 1]] if found else None,
                ),
                "Go by the guess that you have made for the word before, which may not be its greatest logit.",
            ),
            (
                guessed(logits, kept, table, lambda place, found: found[-1] if found else 0),
                "The first word may have any label.",
            ),
        )
    got = answer[0].tolist() if isinstance(answer[0], torch.Tensor) else answer[0]
    check_same(
        got,
        guesses,
        f"{what}, the guesses",
        "The label with the greatest logit, at the tokens that carry a label.",
        slips=(
            *slips,
            (
                best,
                "Yours has a guess for every token; a word has one, at the token that carries its label.",
            ),
            (
                best[1:-1],
                "Yours has a guess for every piece; a word has one, at the token that carries its label.",
            ),
            (logits.argmin(-1)[kept].tolist(), "The greatest logit wins, not the smallest."),
            (
                [g for p, g in zip(kept, guesses) if labels[p] != 0],
                "A word whose label is 0 has a guess, too: only IGNORE is left out.",
            ),
        ),
    )
    assert isinstance(answer[1], int) and not isinstance(answer[1], bool), (
        f"The number of right guesses must be an int; yours is a {type(answer[1]).__name__}."
    )
    hint = "Compare each guess with the label of its own token."
    if answer[1] == len(kept) != right:
        hint = "That is the number of words."
    assert answer[1] == right, (
        f"{what}, {right} guesses are right; yours says {answer[1]}. {hint}"
    )


(logits,) = normal(41, (7, 4), dtype=torch.float32)
best = logits.argmax(-1).tolist()
check_guesses(
    logits,
    [-100, best[1], 0, -100, (best[4] + 1) % 4, best[5], -100],
    "For four words on seven tokens",
)
LOGITS = [
    [2, 0, 1],
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
    [1, 2, 0],
]
check_guesses(
    tensor(LOGITS).float(),
    [-100, 2, -100, 0, 2, -100, 1, 1, -100],
    "For five words on nine tokens, and three labels of which not each may follow each,",
    tensor([[True, False, False], [True, True, False], [False, True, True]]),
)
### BEGIN HIDDEN TESTS
# {compare:word_guesses}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · Answers cut out of a text ({points:spans} points)
#
# **Question: two rows of scores, one for the first token of the answer, one for its last. What is the answer?**
#
# The score of a span from token *i* to token *j* is start[*i*] + end[*j*] (Devlin et al. 2019, section 4.2). Not every pair is an
# answer: it does not end before it begins, both lie in the context, and it has at most `max_tokens` tokens. The best *pair* is
# wanted; the best start and the best end, each by itself, may be none.
#
# `offsets` says for each token which characters of the context it is: (first, behind the last), and None for [CLS], the question
# and [SEP], which are no part of an answer.


# %% nbgrader={"grade": false, "grade_id": "span", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_span(start_logits, end_logits, offsets, max_tokens):
    """The best span of the context.

    start_logits, end_logits: float [T]
    offsets:    list of T entries, each (first character, the one behind the last) or None; at least one is not None
    max_tokens: the most tokens of an answer, at least 1
    returns (first, last, score): positions of its first and last token, two ints, and a Python float

    Example: start [9., 1., 2., 0.], end [9., 3., 0., 1.], offsets [None, (0, 3), (4, 7), (8, 9)], max_tokens 2 -> (1, 1, 4.0)
    """
    ### BEGIN SOLUTION
    best = None
    for first, _ in enumerate(offsets):
        for last in range(first, min(first + max_tokens, len(offsets))):
            if offsets[first] is None or offsets[last] is None:
                continue
            score = (start_logits[first] + end_logits[last]).item()
            if best is None or score > best[2]:
                best = (first, last, score)
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "spans-best", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("best_span")


def spaced(count, before):
    """Offsets of words of three characters with a space between them, after a question and its special tokens."""
    return [None] * before + [(4 * i, 4 * i + 3) for i in range(count)] + [None]


def check_span(start, end, offsets, max_tokens, what):
    T = len(offsets)
    scores = {(i, j): (start[i] + end[j]).item() for i in range(T) for j in range(T)}
    inside = lambda i, j: offsets[i] is not None and offsets[j] is not None
    best = lambda fits: max(((i, j) for i, j in scores if fits(i, j)), key=scores.get)
    wanted = best(lambda i, j: inside(i, j) and i <= j < i + max_tokens)
    alone = start.argmax().item(), end.argmax().item()
    i = max((i for i in range(T) if offsets[i]), key=lambda i: start[i].item())
    j = max((j for j in range(T) if offsets[j]), key=lambda j: end[j].item())
    greedy = best(lambda a, b: inside(a, b) and a == i and a <= b < a + max_tokens)
    backwards = [b for b in range(T) if inside(b, j) and b <= j < b + max_tokens]
    greedy_end = (max(backwards, key=lambda b: start[b].item()), j)
    got = best_span(start, end, offsets, max_tokens)
    assert isinstance(got, tuple) and len(got) == 3, (
        f"best_span must return (first, last, score); yours returns {'nothing' if got is None else got!r}."
    )
    for name, value in zip(("first", "last"), got):
        assert isinstance(value, int), (
            f"{name} must be an int; yours is a {type(value).__name__}. Use .item()."
        )
    if got[:2] != wanted:
        first, last = got[:2]
        hint = "Look at every pair that is allowed."
        if not (0 <= first < T and 0 <= last < T):
            hint = "There is no such token."
        elif last < first:
            hint = "An answer does not end before it begins."
        elif not inside(first, last):
            hint = "The question, [CLS] and [SEP] are no part of an answer: their offsets are None."
        elif last - first >= max_tokens:
            hint = f"It has {last - first + 1} tokens, and max_tokens is {max_tokens}."
        elif got[:2] == best(
            lambda i, j: (
                (inside(i, j) and i <= j < i + max_tokens - 1) or (i == j and inside(i, j))
            )
        ):
            hint = f"An answer may have max_tokens tokens, {max_tokens}: both ends count."
        elif got[:2] == best(lambda i, j: inside(i, j) and i < j < i + max_tokens + 1):
            hint = "An answer may be a single token."
        elif got[:2] in (greedy, greedy_end, (i, j), alone, (j, i)):
            hint = "Start and end are not to be chosen one after the other: their sum must be the greatest of all pairs."
        raise AssertionError(
            f"{what} the best span is from token {wanted[0]} to token {wanted[1]}, with {scores[wanted]:.4f}; yours is from {first} to {last}. {hint}"
        )
    check_number(
        got[2],
        scores[wanted],
        f"{what} the score of the best span",
        "It is the sum of the two logits.",
        slips=(
            (
                start[wanted[0]].item() * end[wanted[1]].item(),
                "The logits are added, not multiplied.",
            ),
        ),
    )


offsets = spaced(5, before=3)
start = tensor([9.0, 9.0, 0.0, 1.0, 0.0, 2.0, 3.0, 0.0, 8.0])
check_span(
    start,
    tensor([9.0, 9.0, 0.0, 4.0, 3.5, 0.0, 0.5, 1.0, 8.0]),
    offsets,
    5,
    "When the best end lies before the best start,",
)
check_span(
    start,
    tensor([9.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 8.0]),
    offsets,
    2,
    "With max_tokens 2, and an answer of two tokens,",
)
check_span(
    tensor([0.0, 0.0, 0.0, 5.0, 0.0, 3.0, 0.0, 0.0, 0.0]),
    tensor([0.0, 0.0, 0.0, -3.0, -4.0, -1.0, -5.0, 4.0, 0.0]),
    offsets,
    4,
    "When the best end is out of reach of the best start,",
)
check_span(
    tensor([5.0, 5.0, 5.0, -4.0, -6.0, -9.0, -7.0, -8.0, 5.0]),
    tensor([5.0, 5.0, 5.0, -6.0, -4.0, -9.0, -7.0, -8.0, 5.0]),
    offsets,
    4,
    "When all scores in the context are negative,",
)
### BEGIN HIDDEN TESTS
# {compare:best_span}
### END HIDDEN TESTS

# %% [markdown]
# The answer is cut out of the text as it was typed, by its characters. And some questions have no answer in the text. Then start
# and end are to be at [CLS], position 0, and the score of *no answer* is start[0] + end[0]. With a `threshold` there is an answer
# only if (Devlin et al. 2019, section 4.3)
#
# $$\text{score of the best span} > \text{score of no answer} + \text{threshold}$$
#
# so a larger threshold says "no answer" more often. Without one (None) there always is an answer.


# %% nbgrader={"grade": false, "grade_id": "cut", "locked": false, "schema_version": 3, "solution": true, "task": false}
def answer(context, start_logits, end_logits, offsets, max_tokens, threshold=None):
    """The answer as it stands in the text, a string, or None for no answer.

    Example: context "Jim was there", start [5., 1., 2., 0.], end [1., 0., 3., 0.], offsets [None, (0, 3), (4, 7), (8, 13)], max_tokens 3
    -> "was", whose score is 5; no answer has 6, so with threshold 0.0 -> None, and with threshold -2.0 -> "was"
    """
    ### BEGIN SOLUTION
    first, last, score = best_span(start_logits, end_logits, offsets, max_tokens)
    if threshold is not None:
        no_answer = (start_logits[0] + end_logits[0]).item()
        if score <= no_answer + threshold:
            return None
    return context[offsets[first][0] : offsets[last][1]]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "spans-cut", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("answer")
CONTEXT = "The N7, which is red, leaves  Zürich at 0:10."
PIECES = [
    "the",
    "n",
    "##7",
    ",",
    "which",
    "is",
    "red",
    ",",
    "leaves",
    "zur",
    "##ich",
    "at",
    "0",
    ":",
    "10",
    ".",
]
PLACES = [
    (0, 3),
    (4, 5),
    (5, 6),
    (6, 7),
    (8, 13),
    (14, 16),
    (17, 20),
    (20, 21),
    (22, 28),
    (30, 33),
    (33, 36),
    (37, 39),
    (40, 41),
    (41, 42),
    (42, 44),
    (44, 45),
]
OFFSETS = [
    None,
    None,
    None,
    None,
    *PLACES,
    None,
]  # [CLS] two words of a question [SEP] the context [SEP]


def peaks(first, last, no_answer=0.0, high=4.0):
    start, end = torch.zeros(2, len(OFFSETS), device=device)
    start[0] = end[0] = no_answer / 2
    start[4 + first] = end[4 + last] = high / 2
    return start, end


def check_cut(first, last, expected, what):
    start, end = peaks(first, last)
    got = answer(CONTEXT, start, end, OFFSETS, 30)
    begin, behind = PLACES[first][0], PLACES[last][1]
    tokens = "".join(
        " " * (i > 0 and not p.startswith("##")) + p.removeprefix("##")
        for i, p in enumerate(PIECES[first : last + 1])
    )
    check_same(
        got,
        expected,
        f"{what}, the answer",
        "Cut it out of the context by the characters of its first and last token. If spans-best fails, mend that first.",
        slips=(
            (
                CONTEXT[first : last + 1],
                "Those are tokens, counted as if they were characters. offsets has the characters.",
            ),
            (
                CONTEXT[4 + first : 4 + last + 1],
                "Those are positions, counted as if they were characters. offsets has the characters.",
            ),
            (
                CONTEXT[first:last],
                "Those are tokens, counted as if they were characters. offsets has the characters.",
            ),
            (
                CONTEXT[4 + first : 4 + last],
                "Those are positions, counted as if they were characters. offsets has the characters.",
            ),
            (
                CONTEXT[begin : PLACES[last][0]],
                "The last token belongs to the answer: go to the end of its characters.",
            ),
            (
                CONTEXT[begin : behind - 1],
                "The second number of an offset is already the one behind the last character.",
            ),
            (
                CONTEXT[begin : behind + 1],
                "The second number of an offset is already the one behind the last character.",
            ),
            (
                expected.lower(),
                "An answer is cut out as it was typed; yours is in small letters.",
            ),
            (
                tokens,
                "An answer is cut out as it was typed; yours is put together from tokens.",
            ),
            (
                " ".join(CONTEXT[a:b] for a, b in PLACES[first : last + 1]),
                "Cut it out in one piece: what stands between the tokens belongs to it, as it was typed.",
            ),
            (
                "".join(CONTEXT[a:b] for a, b in PLACES[first : last + 1]),
                "Cut it out in one piece: what stands between the tokens belongs to it, as it was typed.",
            ),
        ),
    )


check_cut(8, 10, "leaves  Zürich", "For tokens 8 to 10 of the context")
check_cut(1, 2, "N7", "For tokens 1 and 2 of the context")
check_cut(6, 6, "red", "For one token")
### BEGIN HIDDEN TESTS
# {compare:answer}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "spans-null", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}


MISTAKES = (  # what a mistake makes of (best span, no answer, threshold): whether there is an answer
    (
        lambda span, none, by: span > none - by,
        "The sign of the threshold is wrong: a larger one says “no answer” more often.",
    ),
    (lambda span, none, by: span > none, "The threshold is not used."),
    (
        lambda span, none, by: span > by,
        "Compare with the score of no answer, start[0] + end[0], and not with the threshold alone.",
    ),
    (
        lambda span, none, by: span > none / 2 + by,
        "The score of no answer is the sum of both logits at [CLS], start[0] + end[0].",
    ),
    (
        lambda span, none, by: span >= none + by,
        "At equal scores there is no answer: the span must have more.",
    ),
    (lambda span, none, by: span <= none + by, "Upside down: the better one wins."),
    (
        lambda span, none, by: not by or span > none + by,
        "A threshold of 0 is one, too; only None is none.",
    ),
)


def check_null(*cases):
    """Each case: score of the best span, of no answer, threshold, and whether there is an answer."""
    got = [
        answer(CONTEXT, *peaks(6, 6, none, span), OFFSETS, 30, by)
        for span, none, by, _ in cases
    ]
    assert "" not in got, "No answer is None, not an empty string."
    hint = "There is an answer if the best span has more than no answer plus the threshold."
    tried = [i for i, case in enumerate(cases) if case[2] is not None]
    for there, words in MISTAKES:
        if all((got[i] is not None) == there(*cases[i][:3]) for i in tried):
            hint = words
            break
    for (span, none, by, wanted), found in zip(cases, got):
        what = f"With {span:g} for the best span, {none:g} for no answer and {f'threshold {by:g}' if by is not None else 'no threshold'}"
        expected = "red" if wanted else None
        if by is None:
            hint = "Without a threshold there always is an answer."
        assert found == expected, (
            f"{what}, the answer must be {expected!r}; yours is {found!r}. {hint}"
        )


check_null(
    (4.0, 3.0, 0.0, True),
    (4.0, 5.0, 0.0, False),
    (4.0, 3.0, 2.0, False),
    (4.0, 5.0, -2.0, True),
    (4.0, 6.0, 3.0, False),
    (4.0, 2.0, 2.0, False),
    (1.0, -3.0, 3.0, True),
    (4.0, 9.0, None, True),
)
start, end = peaks(6, 6, 0, 4.0)
start[0] = 3.0  # end[0] is 0
assert answer(CONTEXT, start, end, OFFSETS, 30, 0.0) == "red", (
    "With 4 for the best span and the logits 3 and 0 at [CLS], the answer must be 'red'. The score of no answer is "
    "start[0] + end[0]."
)
### BEGIN HIDDEN TESTS
# {compare:answer_or_none}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · Choices ({points:choices} points)
#
# **Question: how does an encoder that reads texts one by one compare four of them?**
#
# In SWAG each example has four endings. Each is read with the context as an input of its own, and gets one score (Devlin et
# al. 2019, section 4.4). So a batch [B, C, T] is laid out as texts for the encoder, one below the other, and their scores
# are laid back into a table [B, C].
#
# Elsewhere the number of choices varies: the questions of ARC have three to five (Clark et al. 2018). Then C is the
# greatest number, and examples with fewer choices are filled up. `counts` says how many each one has: the first
# `counts[b]` of example b are real. The encoder reads each of these once and no other, since every text costs a whole pass
# through it, and the places of the others get the score -inf.


# %% nbgrader={"grade": false, "grade_id": "reshape", "locked": false, "schema_version": 3, "solution": true, "task": false}
def choice_logits(score, input_ids, attention_mask, token_type_ids, counts):
    """The score of every choice that is real.

    score:          function of input_ids, attention_mask and token_type_ids, each [N, T], that gives float [N, 1]
    input_ids:      int64 [B, C, T];   attention_mask: bool [B, C, T];   token_type_ids: int64 [B, C, T]
    counts:         int64 [B], from 1 to C: the first counts[b] choices of example b are real. score gets no other text.
    returns float [B, C], of the dtype of the scores, -inf where no choice is

    Example: if score gives the number of real tokens, and attention_mask is [[[True, True], [True, False], [True, True]]],
    with counts [2] -> [[2., 1., -inf]]
    """
    ### BEGIN SOLUTION
    C = input_ids.shape[1]
    real = torch.arange(C, device=counts.device) < counts[:, None]  # [B, C]
    rows = [given[real] for given in (input_ids, attention_mask, token_type_ids)]  # [N, T]
    scores = score(*rows)  # [N, 1]
    table = scores.new_full(real.shape, -math.inf)
    table[real] = scores.squeeze(1)
    return table
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "choices-logits", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("choice_logits")


class Scorer:
    """Scores texts, and notes them."""

    def __init__(self, T, one):
        self.T, self.one, self.texts, self.read = T, one, set(), 0

    def __call__(self, *given):
        assert len(given) == 3, (
            f"score takes input_ids, attention_mask and token_type_ids; yours gives {len(given)}."
        )
        assert all(g.dim() == 2 and g.shape[1] == self.T for g in given), (
            f"score takes [N, T], T = {self.T}: texts one below the other. Yours gives {[list(g.shape) for g in given]}."
        )
        self.texts |= {tuple(row) for row in given[0].tolist()}
        self.read += len(given[0])
        return self.one(*given)


def check_choices(B, C, T, seed, counts=None, dtype=torch.float32):
    ids = torch.randint(5, 90, (B, C, T), generator=seeded(seed)).to(device)
    mask = torch.rand(B, C, T, generator=seeded(seed + 1)).to(device) < 0.7
    types = torch.randint(2, (B, C, T), generator=seeded(seed + 2)).to(device)
    weights = torch.arange(1, T + 1, device=device, dtype=dtype)
    one = lambda i, m, t: ((i + 100 * t) * m * weights).sum(-1, keepdim=True) / 1000
    score = Scorer(T, one)
    given = tensor([C] * B if counts is None else counts)
    got = choice_logits(score, ids.clone(), mask.clone(), types.clone(), given.clone())
    real = torch.arange(C, device=device) < given[:, None]
    every = one(ids, mask, types).squeeze(-1)
    expected = every.masked_fill(~real, -math.inf)
    texts = {tuple(row) for row in ids.flatten(0, 1).tolist()}
    assert score.texts <= texts, (
        "A text that score gets is none of the batch: it was torn apart. Flatten the first two dimensions, and leave T as it is."
    )
    mixed = lambda m, t: one(ids, m, t).squeeze(-1).masked_fill(~real, -math.inf)
    turned = lambda x: x.transpose(0, 1).reshape(B, C, T)
    numbers = "" if counts is None else f", of which {counts} are real"
    scores = expected[real]  # without the places of the others
    by_column = torch.full_like(every.T, -math.inf)
    by_column[real.T] = scores
    check_close(
        got,
        expected,
        f"For {B} examples of {C} choices{numbers}, the table of scores",
        "Row b holds the scores of the choices of example b, in their order; where no choice is, -inf.",
        slips=(
            (every, "The places that hold no choice must get the score -inf: use `counts`."),
            (
                every.masked_fill(~real, 0.0),
                "The places that hold no choice get 0 in yours, which is a score like others. It must be -inf.",
            ),
            (
                every.masked_fill(~real.flip(1), -math.inf),
                "The first counts[b] choices of example b are real; yours takes the last.",
            ),
            (
                by_column.T,
                "The scores are laid back choice by choice, and the texts were laid out example by example.",
            ),
            (
                one(*map(turned, (ids, mask, types))).squeeze(-1),
                "The texts are laid out choice by choice, and laid back example by example. Flatten [B, C, T] as it is, without transposing.",
            ),
            (
                mixed(turned(mask), turned(types)),
                "Masks and segment ids are laid out in another order than the texts.",
            ),
            (
                mixed(torch.ones_like(mask), types),
                "The attention_mask does not reach score: it marks everything as real.",
            ),
            (
                mixed(mask, torch.zeros_like(types)),
                "The token_type_ids do not reach score: they are all 0.",
            ),
            (mixed(types.bool(), mask.long()), "attention_mask comes before token_type_ids."),
            (expected.softmax(1), "Give the scores as they are, without a softmax."),
            (expected.flip(1), "The choices are in reverse order."),
        ),
    )

    assert score.read == len(scores), (
        f"There are {len(scores)} choices{numbers}; score has read {score.read} texts. Each real one is read once, and no other."
    )


check_choices(3, 4, 5, seed=61)
check_choices(3, 5, 4, seed=64, counts=[4, 2, 5])
### BEGIN HIDDEN TESTS
# {compare:choice_logits}
### END HIDDEN TESTS

# %% [markdown]
# The softmax goes over the choices of one example: they compete with each other, not with those of other examples. The best
# choice is the one with the greatest score, even where rounded probabilities are equal.
#
# Sometimes it is better not to answer, as in an examination that takes points away for wrong answers. With `least`, the
# best choice counts only if its probability is at least `least`; otherwise the number of the best choice is -1.


# %% nbgrader={"grade": false, "grade_id": "choose", "locked": false, "schema_version": 3, "solution": true, "task": false}
def choose(logits, least=0.0):
    """Probabilities of the choices, and the best one, or -1 where that is not sure enough.

    logits: float [B, C], as choice_logits gives them: -inf where no choice is
    least:  a Python float, the least probability with which the best choice counts
    returns (probabilities, best): float [B, C], and int64 [B]

    Example: logits [[0., 0.], [0., 4.]] -> probabilities [[0.5, 0.5], [0.0180, 0.9820]]; with least 0.6, best is [-1, 1]
    """
    ### BEGIN SOLUTION
    probabilities, best = logits.softmax(dim=1), logits.argmax(dim=1)
    sure = probabilities.amax(dim=1) >= least
    return probabilities, torch.where(sure, best, -1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "choices-softmax", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("choose")


def check_choose(logits, what, tolerance=1e-5, least=None):
    given = (logits,) if least is None else (logits, least)
    probabilities, best = check_pair(choose(*given), "choose must return (probabilities, best)")
    check_close(
        probabilities,
        torch.softmax(logits, dim=1),
        f"{what}, the table of probabilities",
        "In each row they add up to 1.",
        tolerance,
        slips=(
            (
                torch.softmax(logits, dim=0),
                "Your columns add up to 1: the softmax goes over the examples of the batch. It goes over the choices, dim=1.",
            ),
            (
                torch.softmax(logits.flatten(), 0).view_as(logits),
                "Yours goes over the whole table. It goes over the choices of each example, dim=1.",
            ),
            (
                torch.sigmoid(logits),
                "A sigmoid lets no choice compete with another. Take a softmax over the choices.",
            ),
            (torch.log_softmax(logits, 1), "Those are logarithms."),
        ),
    )
    greatest = [row.index(max(row)) for row in logits.tolist()]
    by = least or 0.0
    rows = zip(greatest, torch.softmax(logits, dim=1).tolist())
    sure = [place if row[place] >= by else -1 for place, row in rows]
    hint = "For each example the number of the choice with the greatest score."
    if least is not None:
        hint += f" Where its probability is less than {least:g}, it is -1."
    check_close(
        best,
        tensor(sure),
        f"{what}, the row of best choices",
        hint,
        slips=()
        if least is None
        else (
            (tensor(greatest), "`least` is not used."),
            (
                tensor(
                    [g if max(row) >= by else -1 for g, row in zip(greatest, logits.tolist())]
                ),
                "Compare the probability of the best choice with `least`, not its score.",
            ),
            (
                tensor([-1 if s >= 0 else g for s, g in zip(sure, greatest)]),
                "Upside down: -1 is for those that are not sure enough.",
            ),
        ),
    )


(logits,) = normal(66, (3, 4), dtype=torch.float32)
check_choose(2 * logits, "For 3 examples of 4 choices")
logits = tensor([[0.0, 3.0, 1.0], [0.9, 0.6, 0.7], [-9.0, -3.0, -5.0], [0.2, -math.inf, 0.1]])
check_choose(logits, "For 4 examples of 3 choices and least 0.6", least=0.6)
logits = tensor([[0.0, 0.0], [-1.0, 2.0]])
check_choose(logits, "For a probability that equals least 0.5", least=0.5)
### BEGIN HIDDEN TESTS
# {compare:choose}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 7 · Fine-tuning ({points:tuning} points)
#
# **Question: what is trained, on what, and which of the models on the way do you keep?**
#
# A classifier is an encoder, `model.encoder`, with a new layer on top. It takes `input_ids` and `attention_mask` and gives
# logits [B, L]. A batch has both, and `labels` [B].
#
# First the measure: the share of *texts* that get the right label, over all batches, however many texts each has. As in
# Part 3: evaluation mode, no gradients, and the model is left in the mode in which you found it.


# %% nbgrader={"grade": false, "grade_id": "measure", "locked": false, "schema_version": 3, "solution": true, "task": false}
def evaluate(model, batches):
    """Returns the accuracy, a Python float; neither the model nor the state of chance is changed."""
    ### BEGIN SOLUTION
    was_training = model.training
    model.eval()
    right, count = 0, 0
    with torch.no_grad():
        for batch in batches:
            guesses = model(batch["input_ids"], batch["attention_mask"]).argmax(dim=-1)
            right += (guesses == batch["labels"]).sum().item()
            count += len(guesses)
    model.train(was_training)
    return right / count
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tuning-evaluate", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("evaluate")


class Wavering(torch.nn.Module):
    """Guesses the first id of each text, and something else while it trains; notes how it is called."""

    def __init__(self, L=4):
        super().__init__()
        self.L, self.bias = L, torch.nn.Parameter(torch.zeros(L))
        self.modes, self.graphs, self.masks = [], [], []

    def forward(self, input_ids, attention_mask):
        self.modes.append(self.training)
        self.graphs.append(torch.is_grad_enabled())
        self.masks.append(attention_mask)
        guesses = (input_ids[:, 0] + self.training) % self.L
        return torch.nn.functional.one_hot(guesses, self.L) + self.bias


def check_evaluate(parts, what):
    """parts: by batch, the guesses and the labels."""
    given = [
        {
            "input_ids": tensor([[guess, 1, 2] for guess in guesses]),
            "attention_mask": tensor([[True, True, i > 0] for i in range(len(guesses))]),
            "labels": tensor(labels),
        }
        for guesses, labels in parts
    ]
    right = [[g == y for g, y in zip(*part)] for part in parts]
    expected = sum(map(sum, right)) / sum(map(len, right))
    for training in (True, False):
        model = Wavering().to(device).train(training)
        got = evaluate(model, given)
        assert model.modes and not any(model.modes), (
            "Call eval() on the model before you ask it: yours leaves dropout on, so the accuracy changes from call to call."
        )
        assert not any(model.graphs), (
            "Ask the model under torch.no_grad(): nobody needs gradients here, and they cost memory."
        )
        assert model.training == training, (
            f"The model was {'training' if training else 'evaluating'} before and is {'not ' if training else ''}training afterwards. "
            "Leave it in the mode in which you found it."
        )
        assert all(
            m is not None and any(torch.equal(m, b["attention_mask"]) for b in given)
            for m in model.masks
        ), "The model must get input_ids and attention_mask."
        check_number(
            got,
            expected,
            f"{what}, the accuracy",
            "Right texts, divided by all texts.",
            slips=(
                (
                    sum(sum(r) / len(r) for r in right) / len(right),
                    "You take the mean of the accuracies of the batches; the last batch is smaller. Every text counts alike.",
                ),
                (sum(right[0]) / len(right[0]), "Yours counts the first batch only."),
                (sum(right[-1]) / len(right[-1]), "Yours counts the last batch only."),
                (1 - expected, "That is the share of the wrong ones."),
                (100 * expected, "The share, from 0 to 1, not in percent."),
            ),
        )


check_evaluate(
    [([0, 1, 2, 3], [0, 1, 2, 0]), ([3, 1], [1, 2])],
    "With 3 of 4 right in one batch, and none of 2 in the other",
)
### BEGIN HIDDEN TESTS
# {compare:evaluate}
### END HIDDEN TESTS

# %% [markdown]
# Now the training. For each of `epochs` epochs go through the training batches once, in their order, with cross-entropy
# and AdamW at the learning rate `rate`, and all else as torch has it by default: no clipping, no schedule. Then
# evaluate on the validation batches. In the end the model has the weights of the epoch with the best validation
# accuracy, and is in evaluation mode.
#
# * The validation texts choose among models. They train none: no gradient ever comes from them.
# * One optimizer serves all epochs: AdamW remembers the gradients of earlier steps.
# * `state_dict()` gives the weights themselves, not a copy. What the optimizer changes, it changes there, too.
# * With `frozen=True` the weights of `model.encoder` stay as they are, to the last bit, and all others are trained. Afterwards
#   every parameter has the `requires_grad` that it had before; otherwise the next fine-tuning of the same model would
#   be frozen, too.


# %% nbgrader={"grade": false, "grade_id": "tune", "locked": false, "schema_version": 3, "solution": true, "task": false}
def finetune(model, train_batches, validation_batches, epochs, rate, frozen=False):
    """Train in place, and keep the best epoch; returns the validation accuracy of each epoch, a list of floats."""
    ### BEGIN SOLUTION
    before = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    if frozen:
        model.encoder.requires_grad_(False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    accuracies, best = [], None
    for _ in range(epochs):
        model.train()
        for batch in train_batches:
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracies.append(evaluate(model, validation_batches))
        if accuracies[-1] > max(accuracies[:-1], default=-1.0):
            best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(before[name])
    model.eval()
    return accuracies
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tuning-train", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("finetune")


class Embedder(torch.nn.Module):
    """The smallest encoder: the mean of word vectors."""

    def __init__(self, V, D):
        super().__init__()
        self.table = torch.nn.Parameter(normal(71, (V, D), dtype=torch.float32)[0])
        self.norm = torch.nn.LayerNorm(D)

    def forward(self, input_ids, attention_mask):
        kept = attention_mask[..., None].float()
        return self.norm((self.table[input_ids] * kept).sum(1) / kept.sum(1))


class Small(torch.nn.Module):
    """An encoder and a head; notes of each call what came, in which mode, with which weights, and what backward sends."""

    def __init__(self, V=20, D=6, L=2):
        super().__init__()
        torch.manual_seed(72)
        self.encoder, self.head = Embedder(V, D), torch.nn.Linear(D, L)
        self.calls = []

    def forward(self, input_ids, attention_mask):
        logits = self.head(self.encoder(input_ids, attention_mask))
        sent = []
        if logits.requires_grad:
            logits.register_hook(lambda gradient: sent.append(gradient.detach().clone()))
        self.calls.append(
            {
                "ids": input_ids.clone(),
                "texts": {tuple(row) for row in input_ids.tolist()},
                "training": self.training,
                "graph": torch.is_grad_enabled(),
                "weights": copy.deepcopy(self.state_dict()),
                "sent": sent,
            }
        )
        return logits


def cosine_of(a, b):
    return (a @ b / (a.norm() * b.norm()).clamp(min=1e-12)).item()


class Twin:
    """AdamW on a model of its own, with or without zero_grad: says where a step takes the weights."""

    def __init__(self, trained, rate, clears):
        self.model, self.clears = Small().to(device), clears
        self.trained = [self.model.get_parameter(name) for name in trained]
        self.optimizer = torch.optim.AdamW(self.trained, lr=rate)

    def step(self, weights, ids, labels):
        self.model.load_state_dict(weights)
        before = torch.cat([p.detach().flatten() for p in self.trained])
        if self.clears:
            self.optimizer.zero_grad()
        logits = self.model(ids, torch.ones_like(ids, dtype=torch.bool))
        torch.nn.functional.cross_entropy(logits, labels).backward()
        self.optimizer.step()
        return torch.cat([p.detach().flatten() for p in self.trained]) - before


def check_steps(lessons, given, rate, trained):
    """From one lesson to the next the weights must go where AdamW takes them with the gradient of this batch alone."""
    label_of = {
        tuple(row): label
        for batch in given
        for row, label in zip(batch["input_ids"].tolist(), batch["labels"].tolist())
    }
    twins = {clears: Twin(trained, rate, clears) for clears in (True, False)}
    off, way = dict.fromkeys(twins, 0.0), 0.0
    for number in range(1, len(lessons)):
        lesson, then = lessons[number - 1], lessons[number]
        labels = tensor([label_of[tuple(row)] for row in lesson["ids"].tolist()])
        expected = {
            clears: twin.step(lesson["weights"], lesson["ids"], labels)
            for clears, twin in twins.items()
        }
        right = twins[True].model.calls[-1]["sent"][0]
        direction = cosine_of(sum(lesson["sent"]).flatten(), right.flatten())
        hint = "Its direction must be that of the gradient of the cross-entropy of this batch."
        if direction < -0.99:
            hint = "The sign is wrong: the loss must go down."
        assert direction > 0.999, (
            f"In step {number} the optimizer sees a wrong gradient. {hint}"
        )
        moved = torch.cat(
            [(then["weights"][name] - lesson["weights"][name]).flatten() for name in trained]
        )
        first = expected[True]
        share = (moved @ first / (first @ first)).item()
        assert number > 1 or 0.8 < share < 1.25, (
            f"The learning rate must be `rate`, {rate}; by the first step yours is {share * rate:.2g}."
        )
        way += moved.square().sum().item()
        for clears in twins:
            off[clears] += (moved - expected[clears]).square().sum().item()
    assert off[True] <= off[False], (
        "After the first step the optimizer sees a wrong gradient. Gradients of the step before are added: call zero_grad() "
        "in each step."
    )
    assert off[True] < 1e-6 * way, (
        "The weights do not move as AdamW moves them with the gradients of your batches. Take one step for each batch, all "
        "with one optimizer, the learning rate `rate` and nothing else of your own."
    )


def small_batches(count, size, seed, V=20):
    """Texts of three words; the label is 1 if the ids add up to much."""
    made = []
    for number in range(count):
        ids = torch.randint(V, (size, 3), generator=seeded(100 * seed + number)).to(device)
        mask = torch.ones_like(ids, dtype=torch.bool)
        made.append(
            {
                "input_ids": ids,
                "attention_mask": mask,
                "labels": (ids.sum(1) >= 3 * V // 2).long(),
            }
        )
    return made


def texts_of(given):
    return {tuple(row) for batch in given for row in batch["input_ids"].tolist()}


def changed(before, module):
    return [
        name
        for name, value in module.state_dict().items()
        if not torch.equal(before[name], value)
    ]


def check_tuned(seed, epochs, frozen, held=()):
    model = Small().to(device).eval()
    for name in held:
        model.get_parameter(name).requires_grad_(False)
    needed = {name: p.requires_grad for name, p in model.named_parameters()}
    train, validation = small_batches(4, 8, seed), small_batches(2, 5, seed + 1)
    encoder, head = (copy.deepcopy(part.state_dict()) for part in (model.encoder, model.head))
    found = finetune(
        model, copy.deepcopy(train), copy.deepcopy(validation), epochs, 0.02, frozen
    )
    kind = "frozen=True" if frozen else "frozen=False"
    assert (
        isinstance(found, list)
        and len(found) == epochs
        and all(isinstance(a, float) for a in found)
    ), (
        f"finetune must return a list of {epochs} floats, the validation accuracy of each epoch; yours returns {found!r:.100}."
    )
    learned = [call for call in model.calls if call["graph"]]
    seen = set().union(*(call["texts"] for call in learned))
    assert not seen & (texts_of(validation) - texts_of(train)), (
        "A validation text went through the model with gradients on. Validation chooses among models and trains none: "
        "evaluate() is the only one that sees it."
    )
    assert texts_of(train) <= seen, (
        "Some training texts were never trained on. Each epoch goes through all training batches."
    )
    lessons = [call for call in learned if call["texts"] <= texts_of(train)]
    assert len(lessons) == epochs * len(train), (
        f"With {epochs} epochs of {len(train)} batches the model must be trained on {epochs * len(train)} batches; yours was on {len(lessons)}."
    )
    assert all(call["training"] for call in learned), (
        "Train in training mode: call train() on the model in each epoch, since evaluate() may leave another. Dropout would be off."
    )
    assert changed(head, model.head), (
        f"With {kind} the head has not changed. Is it given to the optimizer, and does it step?"
    )
    moved = changed(encoder, model.encoder)
    if frozen:
        assert not moved, (
            f"With frozen=True {moved[0]} of the encoder has changed. Its weights must stay as they are: let no gradient and no decay reach them."
        )
    else:
        expected = [name for name in encoder if f"encoder.{name}" not in held]
        assert moved == expected, (
            f"With frozen=False all of the encoder that may be trained is; of yours {moved or 'nothing'} has changed."
        )
    trained = [
        name for name in needed if needed[name] and not (frozen and name.startswith("encoder."))
    ]
    check_steps(lessons, train, 0.02, trained)
    after = {name: p.requires_grad for name, p in model.named_parameters()}
    wrong = [name for name in needed if needed[name] != after[name]]
    assert not wrong, (
        f"With {kind} requires_grad of {wrong[0]} was {needed[wrong[0]] if wrong else ''} before and is {after[wrong[0]] if wrong else ''} afterwards. Put it back, "
        "or the next fine-tuning goes wrong."
    )
    assert not model.training, (
        "Leave the model in evaluation mode: whoever uses it next would have dropout on."
    )


check_tuned(73, 3, frozen=True)
check_tuned(74, 4, frozen=False)
### BEGIN HIDDEN TESTS
# {compare:finetune}
### END HIDDEN TESTS

# %% [markdown]
# The next test has a model of one number. Training pushes it up and up; validation likes it best on the way.

# %% nbgrader={"grade": true, "grade_id": "tuning-best", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}


class OneNumber(torch.nn.Module):
    """Says 1 if its number is greater than the id over 100."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Identity()
        self.number = torch.nn.Parameter(torch.zeros(()))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, input_ids, attention_mask):
        if self.training:
            self.steps += 1
        border = input_ids[:, 0] / 100
        return torch.stack([border, self.number.expand(len(border))], dim=1)


def one_batch(*rows):
    ids, labels = zip(*rows)
    return {
        "input_ids": tensor([[i] for i in ids]),
        "attention_mask": torch.ones(len(ids), 1, dtype=torch.bool, device=device),
        "labels": tensor(labels),
    }


def check_best(low, high, epochs, what):
    """Between low and high (in hundredths) all of validation is right."""
    model = OneNumber().to(device)
    train = [one_batch((0, 1), (0, 1), (0, 1))]
    validation = [one_batch((low, 1), (high, 0)), one_batch((low, 1), (high, 0), (high, 0))]
    found = finetune(model, train, validation, epochs, 0.1)
    rounded = [round(a, 2) for a in found]
    assert len(found) == epochs, (
        f"{what} finetune must return the accuracy of each of the {epochs} epochs; yours returns {len(found)}."
    )
    assert max(found) == 1.0 and found[-1] < 1.0, (
        f"{what} some epoch must have accuracy 1, and the last must not; yours has {rounded}. Return what evaluate gives on "
        "the validation batches, and do not change `rate`."
    )
    number = model.number.item()
    kept = "one that is too early" if number <= low / 100 else "one that is too late"
    hint = ""
    if number >= high / 100 and model.steps.item() == epochs:
        hint = " Does your copy of the weights change with the model? state_dict() gives no copy: use copy.deepcopy."
    assert low / 100 < number < high / 100, (
        f"{what} the validation accuracies are {rounded}: the best epoch has 1.0. The model that you leave has {number:.2f}, the weights of {kept}.{hint}"
    )
    assert model.steps.item() < epochs, (
        "Buffers are part of the model: go back to the best epoch with load_state_dict, all of it."
    )


check_best(20, 60, 30, "When the best epochs lie in the middle,")
### BEGIN HIDDEN TESTS
# {compare:finetune_best}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 8 · Good or bad? ({points:experiment} points)
#
# **Question: what is pre-training worth?**
#
# `make_model(pretrained=True, seed=0)` gives you a classifier: the encoder of the file, or the same with random
# weights, your `mean_pool` over its last layer, and a new layer for two labels. That is what you train, or a copy of
# it. `train` and `validation` are lists of reviews (words, label); `batches(rows, size)` makes batches of them. Their
# adjectives differ: what is in `validation` is not in `train`.
#
# Write an experiment that returns a classifier. Choose the rate, the epochs, the size of the batches, frozen or not,
# with your own functions and with the reviews that you get. One of them takes a second or two; the tests give it 40
# seconds of processor time. The grader calls it with other training reviews, and asks your classifier about reviews
# with adjectives that are in neither list. It must be right about 80 of 100.


# %% nbgrader={"grade": false, "grade_id": "classifier", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Classifier(torch.nn.Module):
    """The encoder, your mean_pool, and a new layer."""

    def __init__(self, encoder, labels=2):
        super().__init__()
        self.encoder = encoder
        self.head = torch.nn.Linear(DIM, labels)

    def forward(self, input_ids, attention_mask):
        hidden = self.encoder(input_ids, attention_mask)[-1]
        return self.head(mean_pool(hidden, input_ids, attention_mask, SPECIAL))


def make_model(pretrained=True, seed=0):
    return Classifier(load_encoder(pretrained, seed)[0]).to(device)


# %% nbgrader={"grade": false, "grade_id": "experiment", "locked": false, "schema_version": 3, "solution": true, "task": false}
def experiment(make_model, train, validation):
    """Returns a classifier that tells good reviews from bad ones.

    make_model:        function of pretrained and seed, gives a Classifier
    train, validation: lists of (words, label)
    """
    ### BEGIN SOLUTION
    model = make_model(pretrained=True, seed=0)
    finetune(model, batches(train, 16), batches(validation, 96), epochs=4, rate=3e-3)
    return model
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "experiment-reviews", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
import time

check_withheld("experiment")
check_given(
    "SmallBert", "load_encoder", "review", "reviews", "batches", "Classifier", "make_model"
)


class Watch:
    """make_model, with a note of the texts that anything is learned from, by a model, its encoder or copies of them."""

    def __init__(self):
        self.learned, self.made = set(), 0

    def __call__(self, pretrained=True, seed=0):
        model, learned = make_model(pretrained, seed), self.learned
        self.made += 1

        def note(module, given, named, output):  # a function: who copies a model, copies no set
            ids = given[0] if given else named["input_ids"]
            if (output[-1] if isinstance(output, list) else output).requires_grad:
                learned.update(tuple(i for i in row if i != PAD) for row in ids.tolist())

        for part in (model, model.encoder):
            part.register_forward_hook(note, with_kwargs=True)
        return model


def share_right(model, rows):
    right = []
    with torch.no_grad():
        for batch in batches(rows, 100):
            guesses = model(batch["input_ids"], batch["attention_mask"]).argmax(-1)
            right.append(guesses == batch["labels"])
    return torch.cat(right).double().mean().item()


def check_experiment(seed, adjectives, what, least=0.8):
    """Run the experiment on 96 reviews, and ask it about 400 others."""
    train = reviews(96, 2 * seed, TRAINING_ADJECTIVES)
    validation = reviews(96, 2 * seed + 1, VALIDATION_ADJECTIVES)
    texts = {(CLS, *(PLACE[word] for word in words), SEP) for words, _ in train}
    watched = Watch()
    begin = time.process_time()
    lists = list(train), list(validation)
    model = experiment(watched, *lists)
    assert lists == (train, validation), (
        "experiment must leave the lists that it is given as they were; yours changes them."
    )
    spent = time.process_time() - begin
    assert isinstance(model, Classifier), (
        f"experiment must return a Classifier, as make_model gives it; yours returns {'nothing' if model is None else 'a ' + type(model).__name__}."
    )
    assert watched.made, (
        "experiment did not call make_model: begin with a new model each time, and train it on the `train` of this call."
    )
    assert not watched.learned - texts, (
        "Reviews that are not in `train` were trained on. Validation is there to choose; what it has trained, it cannot judge."
    )
    given = dict(load_encoder()[0].named_parameters())
    assert watched.learned or all(
        torch.equal(p, given[name]) for name, p in model.encoder.named_parameters()
    ), (
        "The encoder has learned, but not within a classifier of make_model's. Train what make_model gives you, so that one can "
        "see on what."
    )
    assert spent < 40, (
        f"The experiment took {spent:.0f} s of processor time; it must take less than 40."
    )
    share = lambda rows: share_right(model.train(False), rows)
    asked = share(reviews(400, 2 * seed + 10_001, adjectives))
    if asked >= least:
        return
    seen = share(reviews(400, 2 * seed + 10_000, TRAINING_ADJECTIVES))
    hint = "More epochs, another rate?"
    if seen < 0.58:
        hint = "Not even reviews with the adjectives of train are told apart: nothing was learned, or the rate is so high that the weights are gone."
    elif asked < 0.6:
        hint = "It knows the adjectives of train, and no others: it has learned words by heart. Only an encoder that has read the others before can know what they mean."
    elif asked < 0.75:
        hint = "Something was learned that holds for other adjectives, but “not” is too much for it. Is the encoder allowed to learn, and does it have enough steps?"
    raise AssertionError(
        f"Of 400 {what}, at least {100 * least:.0f}% must be told apart; yours tells {100 * asked:.1f}% apart, and of those with the "
        f"adjectives of train {100 * seen:.1f}%. {hint}"
    )


check_experiment(1, VALIDATION_ADJECTIVES, "reviews with adjectives that train does not have")
### BEGIN HIDDEN TESTS
UNHEARD = {
    "food": ("creamy spicy savoury", "mouldy watery sour"),
    "music": ("soothing graceful rousing", "jarring screechy plodding"),
    "sport": ("dramatic lively daring", "timid lifeless rigged"),
}
check_experiment(2, UNHEARD, "reviews with adjectives that neither train nor validation has")
### END HIDDEN TESTS

# %% [markdown]
# ### What is pre-training worth?
#
# The next cell trains classifiers with your functions, from few labels and from many, three times each, and asks them about
# new reviews. Change nothing in it; read what it prints.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "worth", "locked": true, "schema_version": 3, "solution": false, "task": false}
KINDS = {
    "fine-tuned": {"pretrained": True, "frozen": False, "rate": 2e-3, "steps": 90},
    "frozen": {"pretrained": True, "frozen": True, "rate": 2e-2, "steps": 90},
    "from scratch": {"pretrained": False, "frozen": False, "rate": 2e-3, "steps": 180},
}
asked = {
    "adjectives of train": batches(reviews(300, 900, TRAINING_ADJECTIVES), 100),
    "other adjectives": batches(reviews(300, 901, VALIDATION_ADJECTIVES), 100),
}
judges = batches(reviews(60, 902, TRAINING_ADJECTIVES), 60)
print(
    "accuracy in %, mean of 3 runs (least to most)\n"
    f"{'':24}" + "".join(f"{name:>26}" for name in asked)
)
for count in (16, 96):
    for kind, how in KINDS.items():
        scores = {name: [] for name in asked}
        for seed in range(3):
            model = make_model(how["pretrained"], seed)
            lessons = batches(reviews(count, 910 + seed, TRAINING_ADJECTIVES), 16)
            lessons = lessons * (6 // len(lessons))  # six steps, then the judges
            epochs = how["steps"] // len(lessons)
            finetune(model, lessons, judges, epochs, how["rate"], how["frozen"])
            for name, given in asked.items():
                scores[name].append(100 * evaluate(model, given))
        found = "".join(
            f"{sum(s) / 3:13.1f} ({min(s):3.0f} to {max(s):3.0f})" for s in scores.values()
        )
        print(f"{count:3} labels, {kind:12}{found}")

print("\naccuracy of one layer on standardised features of the frozen encoder, 96 labels")
still, _ = load_encoder()
lessons = batches(reviews(96, 910, TRAINING_ADJECTIVES), 32)
y = torch.cat([batch["labels"] for batch in lessons])
for name, special in (("mean of the words", SPECIAL), ("with [CLS] and [SEP]", (PAD,))):
    row = f"{name:24}"
    for given in asked.values():
        x, unseen = standardise(
            text_features(still, lessons, special), text_features(still, given, special)
        )
        torch.manual_seed(0)
        layer = torch.nn.Linear(DIM, 2).to(device)
        optimizer = torch.optim.AdamW(layer.parameters(), lr=0.02)
        for _ in range(200):
            loss = torch.nn.functional.cross_entropy(layer(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        truth = torch.cat([batch["labels"] for batch in given])
        row += (
            f"{100 * (layer(unseen).argmax(-1) == truth).double().mean().item():13.1f}{'':13}"
        )
    print(row)

# %% [markdown]
# ## Part 9 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# Names may have several words, so some tags say where each ends, too: `B-` at its first word, `E-` at its last one, `I-` at those between, `S-` at a name of one word. But a model
# may forget an end, or begin in the middle. Somebody, or something, wrote `complete(tags)`, which takes complete names alone. You do not see its code. Write
# `check_complete(implementation)`, which raises an error if an implementation is wrong and returns nothing if it is right. This is what a right one does:
#
# * `tags` is a list with an entry for each token: a string, or `None`, as at `[CLS]`, at `[SEP]` and at the later pieces of a word. Entries that are `None` are passed over, as if
#   they were not there. So words are counted, not tokens: word 0 is the first entry that is not `None`.
# * A tag is `O`, or one of `B-`, `I-`, `E-` and `S-` and behind it a type. The type is all that stands behind the first `-`. It has at least one character, and may have a `-` in it.
#   Types that differ in any character, be it in capitals, are different.
# * A complete name is a `B-`, then any number of `I-`, or none, then an `E-` of the type of the `B-`, word after word. Of which types the `I-` are does not matter. An `S-` is a
#   complete name by itself.
# * Nothing else is one. Any other word behind a `B-` and its `I-`, be it an `E-` of another type, breaks that name off; none of its words belongs to a complete name. A `B-` or `S-`
#   that breaks one off begins a name of its own.
# * It returns a tuple `(found, lost)` of two lists.
# * `found` has a tuple `(type, begin, end)` for each complete name, in the order of the text: `begin` is the number of its first word, `end` that of the word behind its last.
# * `lost` has the numbers of all words that belong to no complete name although their tag is not `O`, the lowest first. Either list may be empty.
# * Any other string raises a `ValueError`, wherever it stands: `o`, `B-`, `PER`, `O-PER`, `L-PER`, the empty one and so on.
# * There may be 1,000 entries. `tags` stays as it is, and an answer depends on no earlier call.
#
# For example, the tags None, B-PER, None, I-PER, E-PER, I-LOC, O, S-LOC, None give found [("PER", 0, 3), ("LOC", 5, 6)] and lost [3].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_complete(implementation):
    """Raise an error if an implementation of `complete` is wrong; return nothing if it is right."""
    ### BEGIN SOLUTION
    examples = [  # `_` stands for None
        ("_ B-PER _ I-PER E-PER I-LOC O S-LOC _", [("PER", 0, 3), ("LOC", 5, 6)], [3]),
        ("B-A E-A S-B B-A I-A I-A I-A E-A", [("A", 0, 2), ("B", 2, 3), ("A", 3, 8)], []),
        ("B-B E-B S-A B-B E-B", [("B", 0, 2), ("A", 2, 3), ("B", 3, 5)], []),
        ("_ O B-A _ _ E-A _ _ E-A _ O B-A", [("A", 1, 3)], [3, 5]),
        ("B-A E-B E-A B-A I-B E-B B-A I-B I-C E-A", [("A", 6, 10)], [*range(6)]),
        ("B-A B-A E-A B-B I-B O I-B E-B", [("A", 1, 3)], [0, 3, 4, 6, 7]),
        ("B-A S-A E-A I-A E-A", [("A", 1, 2)], [0, 2, 3, 4]),
        ("B-A O E-A B-A I-A B-A", [], [0, 2, 3, 4, 5]),
        (
            "B-x-y E-x-z B-w-z E-x-z B-x E-X B-- E-- S-x-y",
            [("-", 6, 8), ("x-y", 8, 9)],
            [*range(6)],
        ),
        ("O O _ O", [], []),
        ("_ _", [], []),
        ("", [], []),
        ("O " * 998 + "B-A E-A", [("A", 998, 1000)], []),
    ]
    for text, found, lost in examples:
        tags = [None if tag == "_" else tag for tag in text.split()]
        copied = list(tags)
        assert implementation(tags) == (found, lost), text
        assert tags == copied, "the list is changed"
    for wrong in ("o", "b-A", "s-A", "B", "E-", "S-", "A", "O-", "O-A", "L-A", "U-A", "-A", ""):
        for tags in ([wrong], ["B-A", None, wrong], [wrong, "O"]):
            try:
                implementation(tags)
            except ValueError:
                continue
            raise AssertionError(f"{wrong!r} is no tag")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_complete}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_complete hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 10 · In your own words ({points:explain} points)
#
# Look at what the last cell of Part 8 printed, and the table of senses at the end of Part 1. Then write at most 200 words:
#
# 1. *From scratch*, 96 labels: compare the two columns. What has that model learned, and why can more labels of the same
#    adjectives not mend it? Cite both numbers.
# 2. *Frozen* and *fine-tuned*, 96 labels: cite both numbers for other adjectives, and the two lines below them, of one layer
#    on features of the same frozen encoder. What do the four numbers say together: what did the encoder know before it saw
#    a label, and what did fine-tuning change?
# 3. Suppose somebody computes mean and deviation of the features over training and test texts together, and chooses the
#    number of epochs by the test accuracy. What is wrong with each of the two, and what would the reported number be an
#    estimate of?
# 4. Which layer separates the senses best, what does an untrained encoder reach, and why must its number be cited, too?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * Both numbers are cited, and the reason follows from what that model was shown.
# * All four numbers are cited, and what you conclude fits all of them.
# * You say what is wrong with each of the two, and what the reported number then stands for.
# * The layer and both numbers are cited, with what their comparison allows you to say.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It cites both numbers, and says that the model knows the words that had labels and nothing about the others, so
#   that more reviews of the same words tell it nothing new.
# * It cites the four numbers, and says that what is needed was in the encoder before, though not all of it in the
#   mean of the words; features choose among what the states hold, and fine-tuning changes what they hold.
# * It says that both let the test decide about the model, by its features and by the choice, and that the number is
#   no longer one for texts that nobody has seen; it is too high on average.
# * It cites the layer, its number and the untrained one's, and says that only what lies above the untrained one was
#   learned.
#
# **All of it:**
#
# (Go by what the student's own cell printed; numbers differ a little between machines.)
#
# From scratch, the model is right about most reviews whose adjectives it has been shown, and about half of the others,
# which is chance. A label says something about the adjectives of its own review. No number of reviews of the same adjectives
# tells what another one means; only text that has both can, and that is what the encoder had read. The frozen encoder and the
# fine-tuned one begin with the same weights. A head on the mean of the words, trained as the others are, tells some of
# the new reviews apart; on standardised features, trained longer, a good deal more; and once [CLS] and [SEP] are let in,
# which are no words, nearly all. So the encoder knew what the adjectives are like, and what *not* does to them, before it saw a
# label, and holds much of it where a text ends. Features choose among what is there, and one has to guess where to look.
# Fine-tuning moves it to where the head looks. Mean and deviation over all texts are learned from the test texts, if only a
# little; the number of epochs chosen by the test accuracy is one that suits these very texts. The number is then an estimate of how
# good the best of several models looks on texts that helped to choose it, and it is too high for new ones. The senses
# are told apart best by a layer above the embeddings; the embeddings have 0.5, which is chance. An untrained encoder is above
# chance, too, since it mixes in its neighbours. Without its number one would take all of that for something learned.
#
# **Two of four:** From scratch with 96 labels the model has learned the adjectives that had labels (both numbers
# cited) and knows nothing about the others; more reviews of the same words hold nothing new. The test texts were
# used twice, for the features and for the number of epochs, so the accuracy is too high for new texts. Fine-tuning is
# better than frozen because more weights can be trained. The last layer separates the senses best.
#
# **None of it:** From scratch is worst because it has too few labels. Fine-tuned is best because all weights are
# trained. Using the test set is overfitting. The highest layer is the best one.
# ### END SOLUTION
