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
#   # Longer than 400 lines because an assignment is one notebook: eight parts, each with its prose, skeleton and tests.
#   course:
#     chapter: sentence-bert
#     seconds: 60
#     ships:
#       - reviewer.safetensors
#     withholds:
#       - course_lib.sentence_bert.model
#       - course_lib.sentence_bert.evaluation
#       - course_lib.sentence_bert.losses
#       - course_lib.sentence_bert.search
#       - course_lib.sentence_bert.training
#       - scipy
#       - sentence_transformers
#       - sklearn
#       - torch.nn.CosineEmbeddingLoss
#       - torch.nn.TripletMarginLoss
#       - torch.nn.TripletMarginWithDistanceLoss
#       - torch.nn.functional.cosine_embedding_loss
#       - torch.nn.functional.triplet_margin_loss
#       - torch.nn.functional.triplet_margin_with_distance_loss
# ---

# %% [markdown]
# # Assignment 7 · Sentences as vectors
#
# The file `reviewer.safetensors` beside this notebook holds 45,216 trained numbers: the small BERT of assignment 6, which
# has read short reviews with holes in them, and nothing else. Ask it how alike two reviews are by the cosine of their mean
# states, and its answer is poor. You show it 192 pairs of reviews, each with a number that says how alike they are. Then
# the grader asks it about pairs whose adjectives none of the 192 contains.
#
# On the way you build what makes a search engine out of an encoder: a vector for a sentence, what such vectors are trained
# on, batches that waste little, a search that never holds all scores at once, and the numbers that say how good all this
# is. Each is short, and each has a mistake that raises no error.
#
# You need chapter 9 of the book, PyTorch, and about three hours. There are {points:total} points. No GPU is needed; if there
# is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell you
# what is wrong. No function may change what it is given. When your work is graded, the same cells test more: other sizes,
# other number types, edge cases, and in Part 6 other reviews. Do not change, copy or delete the test cells. You may add
# cells of your own. Before you hand in, restart the kernel and run everything from the top. In a terminal, `course check
# sentence-bert.ipynb` tells you what is amiss.
#
# **The file beside it.** Keep `reviewer.safetensors` in the folder of the notebook. On Colab, open the *Files* panel on
# the left and upload it there. Hand in the notebook alone: the grader has the file.
#
# **What you may use.** Everything in PyTorch except what you build here. Withheld are: {withholds}. Read each
# task with care: its function is not quite the one of the book.
#
# **Letters for shapes.** B: sentences or pairs in a batch. T: positions. D: features. L: labels. Q: queries. N: vectors of a
# collection. K: hits of a query. Masks are bool, and True means: a real token, not padding.

# %%
import math
import random

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

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


# {source:course_tools.grading.assignments.student_checks.tensor}


# {source:course_tools.grading.assignments.student_checks.normal}


# {source:course_tools.grading.assignments.student_checks.check_given}


def number(got, what):
    """Refuse what is no plain number, and give back what is, as a tensor."""
    assert got is not None, f"{what} must be a number; yours is None. Did you forget return?"
    assert isinstance(got, (int, float)) and not isinstance(got, bool), (
        f"{what} must be a Python float; yours is a {type(got).__name__}. Use .item()."
    )
    return tensor(float(got), torch.float64)


# %% [markdown]
# The next two hold the encoder and the language that it has read. Run them, and look at what they print.

# %% nbgrader={"grade": false, "grade_id": "language", "locked": true, "schema_version": 3, "solution": false, "task": false}
PAD, UNK, CLS, SEP, MASK = range(5)


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


def pairs(count, seed, adjectives):
    """A list of (first words, second words, score): 0.6 for the same opinion, and 0.4 for the same topic."""
    chance, found = random.Random(seed), []
    while len(found) < count:
        first, wanted = (
            review(chance, adjectives),
            (chance.random() < 0.5, chance.random() < 0.5),
        )
        second = None
        while second is None or (second[1] == first[1], second[2] == first[2]) != wanted:
            second = review(chance, adjectives)
        found.append((first[0], second[0], 0.6 * wanted[0] + 0.4 * wanted[1]))
    return found


def ids_of(words):
    """The tokens of a sentence."""
    return [CLS, *(PLACE[word] for word in words), SEP]


def fill_up(rows):
    """Lists of ids -> input_ids [B, T], attention_mask [B, T], filled up to the longest."""
    longest = max(map(len, rows))
    ids = torch.tensor(
        [list(row) + [PAD] * (longest - len(row)) for row in rows], device=device
    )
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return ids, torch.arange(longest, device=device) < lengths[:, None]


def batches(rows, size):
    """Batches of pairs, in their order: (input_ids, attention_mask) of the first, the same of the second, scores [B]."""
    made = []
    for begin in range(0, len(rows), size):
        first, second, scores = zip(*rows[begin : begin + size])
        sides = [fill_up([ids_of(words) for words in side]) for side in (first, second)]
        made.append((*sides, tensor(scores)))
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
PLACE = {word: place for place, word in enumerate(FACTS["words"])}
print(f"{sum(p.numel() for p in encoder.parameters()):,} trained numbers, {len(PLACE)} words")
for first, second, score in pairs(4, 3, TRAINING_ADJECTIVES):
    print(f"{score:.1f}  {' '.join(first):58}{' '.join(second)}")

# %% [markdown]
# ## Part 1 · One vector of many ({points:pool} points)
#
# **Question: a sentence has as many states as tokens, and some of them are padding. What is its vector?**
#
# Three answers (Reimers and Gurevych 2019, section 3): the mean of the states of all its tokens, [CLS] and [SEP] among
# them; the state of [CLS]; or of each feature the largest.
#
# Padding has no part in any of them. It may stand behind the tokens, in front of them or between them, and its states
# may be anything: large, or `nan`. (A `nan` of a real token stays `nan` in the mean: it tells that something is wrong.)
#
# Not every token says equally much, so the mean may be **weighted** (Muennighoff 2022): add up weight times state over the
# real tokens, and divide by the sum of their weights. The weights of padding count for nothing, whatever they are.
#
# States may be `float16`, which ends at 65504: add them up in `float32` at least, those in `float64` in `float64`, and
# give the vector the type of the states.


# %% nbgrader={"grade": false, "grade_id": "mean", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_pool(hidden, mask, weights=None):
    """The mean of the states of the real tokens.

    hidden: float [B, T, D]
    mask:   bool [B, T], at least one True in each row
    weights: float [B, T], of the dtype of hidden, above 0 at real tokens; None: all tokens count alike
    returns float [B, D], of the dtype of hidden

    Example: hidden [[[1., 8.], [3., 4.], [9., 9.]]], mask [[True, True, False]] -> [[2., 6.]];
             with weights [[3., 1., 5.]] -> [[1.5, 7.]]
    """
    ### BEGIN SOLUTION
    precise = torch.promote_types(hidden.dtype, torch.float32)
    shares = mask if weights is None else weights
    shares = shares.to(precise).masked_fill(~mask, 0)[:, :, None]  # [B, T, 1]
    kept = hidden.masked_fill(~mask[:, :, None], 0)
    return ((shares * kept).sum(dim=1) / shares.sum(dim=1)).to(hidden.dtype)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pool-mean", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("mean_pool")


def padded_states(seed, lengths, T, D, front=False):
    """States whose padding is as large as other states, and their mask."""
    (hidden,) = normal(seed, (len(lengths), T, D), dtype=torch.float32)
    mask = torch.arange(T, device=device) < tensor(lengths)[:, None]
    return hidden, mask.flip(1) if front else mask


def row_by_row(hidden, mask, pool):
    return torch.stack([pool(states[real]) for states, real in zip(hidden, mask)])


def check_mean(hidden, mask, what):
    expected = row_by_row(hidden, mask, lambda kept: kept.mean(0))
    T, count = hidden.shape[1], mask.sum(1, keepdim=True)
    kept = hidden.masked_fill(~mask[:, :, None], 0)
    slips = (
        (hidden.mean(1), "Padding is in it. Set its states to 0, and do not count them."),
        (
            kept.mean(1),
            f"You divide by T, {T}: divide by the number of real tokens of each row.",
        ),
        (kept.sum(1), "Divide by the number of real tokens of each row."),
        (
            kept.sum(1) / mask.sum(),
            "Divide each row by its own number of tokens; yours divides by that of the batch.",
        ),
        (
            hidden.sum(1) / count,
            "The states of padding are in the sum: set them to 0 first.",
        ),
        (
            row_by_row(hidden, mask, lambda k: k[1:-1].mean(0)),
            "[CLS] and [SEP] belong to the mean here.",
        ),
    )
    check_close(
        mean_pool(hidden, mask),
        expected,
        f"{what}, the mean",
        "Add up the states of the real tokens, and divide by how many these are.",
        slips=slips,
    )


check_mean(*padded_states(1, [5, 3, 4], T=5, D=3), "For lengths 5, 3 and 4")
check_mean(*padded_states(2, [3, 6], T=7, D=4, front=True), "With padding in front")
hidden, mask = padded_states(2, [3, 5], T=6, D=4)
hidden[~mask] = torch.inf
check_mean(hidden, mask, "With infinite states of padding (0 times infinity is nan)")
hidden, mask = padded_states(3, [3, 6, 4], T=6, D=2)
weights = normal(4, (3, 6), dtype=torch.float32)[0].abs() + 0.5
totals = torch.stack([w[real] @ h[real] for w, h, real in zip(weights, hidden, mask)])
kept = weights.masked_fill(~mask, 0)
check_close(
    mean_pool(hidden, mask, weights),
    totals / kept.sum(1, keepdim=True),
    "With weights, the mean",
    "Add up weight times state over the real tokens, and divide by the sum of their weights.",
    slips=(
        (row_by_row(hidden, mask, lambda kept: kept.mean(0)), "The weights are missing."),
        (
            totals / mask.sum(1, keepdim=True),
            "Divide by the sum of the weights, not by the number of tokens.",
        ),
        (
            totals / weights.sum(1, keepdim=True),
            "The weights of padding are in the sum by which you divide: set them to 0 first.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:mean_pool}
### END HIDDEN TESTS

# %% [markdown]
# And the other two, each with a variant that the book does not have. A model that reads from left to right has seen the whole
# sentence at its **last** token alone: with `last`, take the state of that one. And a feature may also say something by a
# number far below 0: with `by_size`, take of each feature the number that is farthest from 0, with its sign.


# %% nbgrader={"grade": false, "grade_id": "first-max", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cls_pool(hidden, mask, last=False):
    """The state of [CLS], the first real token; or that of the last real token.

    hidden: float [B, T, D], mask: bool [B, T] -> float [B, D]

    Example: hidden [[[9., 9.], [1., 8.], [3., 4.]]], mask [[False, True, True]] -> [[1., 8.]];
             the last -> [[3., 4.]]
    """
    ### BEGIN SOLUTION
    if last:
        hidden, mask = hidden.flip(1), mask.flip(1)
    first = mask.int().argmax(dim=1)  # [B]
    return hidden[torch.arange(len(hidden), device=hidden.device), first]
    ### END SOLUTION


def max_pool(hidden, mask, by_size=False):
    """Of each feature the largest among the states of the real tokens; or the one farthest from 0.

    hidden: float [B, T, D], mask: bool [B, T] -> float [B, D]

    Example: hidden [[[-1., 8.], [-3., 4.], [9., 9.]]], mask [[True, True, False]] -> [[-1., 8.]];
             by size -> [[-3., 8.]]
    """
    ### BEGIN SOLUTION
    if by_size:
        far = hidden.detach().abs().masked_fill(~mask[:, :, None], -1)
        return hidden.gather(1, far.argmax(dim=1, keepdim=True))[:, 0]
    return hidden.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pool-first", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("cls_pool")


def check_first(hidden, mask, what):
    check_close(
        cls_pool(hidden, mask),
        row_by_row(hidden, mask, lambda kept: kept[0]),
        f"{what}, the state of [CLS]",
        "It is the first token that is no padding.",
        slips=(
            (
                hidden[:, 0],
                "Position 0 is padding where padding stands in front: look for the first True of the mask.",
            ),
            (hidden[:, -1], "That is the last position; [CLS] is the first token."),
            (
                row_by_row(hidden, mask, lambda kept: kept[-1]),
                "That is the last token, [SEP]; [CLS] is the first.",
            ),
        ),
    )


check_first(*padded_states(6, [4, 2], T=5, D=3), "With padding behind")
check_first(*padded_states(7, [2, 4, 6], T=6, D=4, front=True), "With padding in front")
hidden, mask = padded_states(8, [2, 4, 5], T=6, D=4)
check_close(
    cls_pool(hidden, mask, last=True),
    row_by_row(hidden, mask, lambda kept: kept[-1]),
    "With last, and padding behind, the state",
    "It is that of the last token that is no padding.",
    slips=(
        (
            hidden[:, -1],
            "The last position may be padding: look for the last True of the mask.",
        ),
        (hidden[:, 0], "That is still the first token."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:cls_pool}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "pool-max", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("max_pool")


def check_max(hidden, mask, what):
    kept = hidden.masked_fill(~mask[:, :, None], 0)
    check_close(
        max_pool(hidden, mask),
        row_by_row(hidden, mask, lambda states: states.max(0).values),
        f"{what}, the largest",
        "Of each feature the largest over the real tokens.",
        slips=(
            (hidden.amax(1), "Padding takes part. Fill it with -torch.inf first."),
            (
                kept.amax(1),
                "Padding takes part as 0, which is larger than every negative state. Fill it with -torch.inf.",
            ),
            (kept.abs().amax(1), "The largest, with its sign."),
        ),
    )


hidden, mask = padded_states(10, [3, 5, 1], T=5, D=4)
check_max(hidden, mask, "For lengths 3, 5 and 1")
check_max(-1 - hidden.abs(), mask, "When all states are negative")
largest, least = (
    row_by_row(hidden, mask, lambda kept, take=take: take(kept, 0).values)
    for take in (torch.max, torch.min)
)
farthest = torch.where(largest > -least, largest, least)
check_close(
    max_pool(hidden, mask, by_size=True),
    farthest,
    "By size, the vectors",
    "Compare numbers without their signs, and give back the winner with its sign.",
    slips=(
        (largest, "Those are still the largest."),
        (farthest.abs(), "Compare without signs, but give the number back with its sign."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:max_pool}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · What vectors are trained on ({points:objectives} points)
#
# **Question: what do you ask of two vectors so that similar sentences get similar ones?**
#
# *A class.* Put both vectors, and the distance and the product of each feature, beside one another, and let a linear layer
# name the relation of the sentences: softmax of $W (u, v, |u - v|, u \odot v)$, trained with cross-entropy. So did Conneau et
# al. (2017, section 3.1); Sentence-BERT, and the book, leave the product out.


# %% nbgrader={"grade": false, "grade_id": "classify", "locked": false, "schema_version": 3, "solution": true, "task": false}
def classify(u, v, weight, labels):
    """Logits of the relations of pairs, and the loss.

    u, v:   float [B, D]
    weight: float [L, 4 D], first the columns for u, then those for v, for |u - v| and for u times v
    labels: int [B]
    returns (logits, loss): float [B, L], and the mean cross-entropy over the pairs, float []

    Example: u [[1.]], v [[3.]], weight [[1., 0., 0., 0.], [0., 1., 1., 0.]], labels [1] -> [[1., 5.]], 0.0181
    """
    ### BEGIN SOLUTION
    features = torch.cat([u, v, (u - v).abs(), u * v], dim=1)  # [B, 4 D]
    logits = features @ weight.T
    return logits, torch.nn.functional.cross_entropy(logits, labels)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "objectives-classes", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("classify")


def check_classes(seed, B, D, L, what, tolerance=1e-4):
    u, v, weight = normal(seed, (B, D), (B, D), (L, 4 * D), dtype=torch.float32)
    labels = (torch.arange(B, device=device) * 2 + 1) % L
    logits_of = lambda *parts: torch.cat([*parts, u * v][:4], 1) @ weight.T
    logits = logits_of(u, v, (u - v).abs())
    got, loss = check_pair(
        classify(u, v, weight, labels), "classify must return (logits, loss)"
    )
    check_close(
        got,
        logits,
        f"{what}, the logits",
        "They are (u, v, |u - v|, u * v) times the weight, transposed.",
        tolerance,
        slips=(
            (
                logits_of(u, v, u - v),
                "The difference has no sign: to a pair it makes no difference who comes first. Take |u - v|.",
            ),
            (
                logits_of(u, v, v - u),
                "The difference has no sign: to a pair it makes no difference who comes first. Take |u - v|.",
            ),
            (logits_of(u, v, (u - v) ** 2), "The third part is |u - v|, not its square."),
            (logits_of(u, v, u * v), "The third part is |u - v|, not u * v."),
            (logits_of(v, u, (u - v).abs()), "u comes first, then v."),
            (logits_of((u - v).abs(), u, v), "|u - v| comes behind u and v."),
            (logits_of(u, v, u * v, (u - v).abs()), "The product comes last."),
            (
                torch.cat([u, v, (u - v).abs()], 1) @ weight[:, : 3 * D].T,
                "The product u * v is missing.",
            ),
            (logits.softmax(1), "Those are probabilities; logits come before the softmax."),
        ),
    )
    each = logits.logsumexp(1) - logits[torch.arange(B, device=device), labels]
    check_close(
        loss,
        each.mean(),
        f"{what}, the loss",
        "It is the mean cross-entropy of the right labels.",
        tolerance,
        slips=(
            (each.sum(), "Take the mean over pairs, not the sum."),
            (
                torch.nn.functional.cross_entropy(logits.softmax(1), labels),
                "cross_entropy takes the softmax itself: give it logits, not probabilities.",
            ),
        ),
    )


check_classes(20, 5, 3, 4, "For 5 pairs, 3 features and 4 labels")
### BEGIN HIDDEN TESTS
# {compare:classify}
### END HIDDEN TESTS

# %% [markdown]
# *A number.* People have said how alike the sentences of each pair are. The cosine of the two vectors is to be that number:
# the loss is the mean of $(\cos(u, v) - \text{score})^2$ over pairs. People do not agree to the last digit, so let a difference
# of at most `slack` cost nothing, and square of a greater one only what is beyond it:
#
# $$\max(|\cos(u, v) - \text{score}| - \text{slack},\ 0)^2$$


# %% nbgrader={"grade": false, "grade_id": "regress", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cosine_loss(u, v, scores, slack=0.0):
    """The mean squared error of the cosines.

    u, v:   float [B, D], none of them zero
    scores: float [B]
    slack:  a Python float, at least 0
    returns float []

    Example: u [[3., 4.]], v [[4., 3.]], scores [0.5] -> (0.96 - 0.5)^2 = 0.2116; with slack 0.2 -> 0.26^2 = 0.0676
    """
    ### BEGIN SOLUTION
    cosines = torch.nn.functional.cosine_similarity(u, v, dim=1)  # [B]
    beyond = torch.relu((cosines - scores).abs() - slack)
    return (beyond**2).mean()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "objectives-cosine", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("cosine_loss")


def check_regression(seed, B, D, what):
    u, v = normal(seed, (B, D), (B, D), dtype=torch.float32)
    scores = torch.linspace(0.2, 0.9, B, device=device)
    inner = (u * v).sum(1)
    cosines = inner / (u.norm(dim=1) * v.norm(dim=1))
    over_batch = (u / u.norm(dim=0) * v / v.norm(dim=0)).sum(1)
    loss = lambda found: ((found - scores) ** 2).mean()
    check_close(
        cosine_loss(u, v, scores),
        loss(cosines),
        f"{what}, the loss",
        "For each pair the cosine less the score, squared; then the mean.",
        slips=(
            (loss(inner), "Those are inner products: divide by both lengths."),
            (loss(inner / v.norm(dim=1)), "Divide by both lengths; yours divides by one."),
            (loss(inner / u.norm(dim=1)), "Divide by both lengths; yours divides by one."),
            (
                loss(over_batch),
                "The length of a vector goes over its features, dim=1; yours goes over the batch.",
            ),
            (loss(1 - cosines), "The score is to be the cosine itself, not 1 less the cosine."),
            (
                (cosines - scores).abs().mean(),
                "Square the differences; yours takes them without sign.",
            ),
            (((cosines - scores) ** 2).sum(), "Take the mean over pairs, not the sum."),
            (
                (cosines.mean() - scores.mean()) ** 2,
                "Square for each pair first, then take the mean.",
            ),
        ),
    )


check_regression(23, 4, 3, "For 4 pairs")
check_regression(24, 6, 6, "For 6 pairs of 6 features")
u, v = (
    tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]),
    tensor([[4.0, 3.0], [0.0, 5.0], [0.0, 1.0]]),
)
scores, differences = tensor([0.5, 0.1, 1.4]), tensor([0.46, -0.1, -0.4])
check_close(
    cosine_loss(u, v, scores, slack=0.2),
    tensor((0.26**2 + 0.2**2) / 3),
    "For cosines 0.96, 0 and 1, scores 0.5, 0.1 and 1.4, and a slack of 0.2, the loss",
    "The differences are 0.46, 0.1 and 0.4 in size; 0.26, 0 and 0.2 of them are beyond the slack.",
    slips=(
        ((differences**2).mean(), "The slack is missing."),
        (
            ((differences**2) * (differences.abs() > 0.2)).mean(),
            "Square what is beyond the slack, not the whole difference.",
        ),
        (
            (differences**2 - 0.2).clamp(min=0).mean(),
            "Take the slack from the difference, before you square.",
        ),
        (
            ((differences - 0.2).clamp(min=0) ** 2).mean(),
            "A cosine below the score costs as much as one above it: take differences without sign.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:cosine_loss}
### END HIDDEN TESTS

# %% [markdown]
# *An order.* Of an anchor $a$, something like it, $p$, and something unlike it, $n$: the loss is
#
# $$\max(\lVert a - p \rVert - \lVert a - n \rVert + \text{margin},\ 0)$$
#
# for each triplet, and the mean over triplets. The lengths are Euclidean. Where the anchor equals the positive or
# the negative, the loss has no slope of its own; its gradient must still be a number.
#
# The positive is like the anchor, so the negative should be far from both. With `swap`, the smaller of
# $\lVert a - n \rVert$ and $\lVert p - n \rVert$ stands in the place of $\lVert a - n \rVert$ (Balntas et al. 2016).


# %% nbgrader={"grade": false, "grade_id": "order", "locked": false, "schema_version": 3, "solution": true, "task": false}
def triplet_loss(anchor, positive, negative, margin, swap=False):
    """The mean over triplets.

    anchor, positive, negative: float [B, D]; margin: a Python float
    returns float []

    Example: anchor [[0., 0.]], positive [[3., 4.]], negative [[0., 5.5]], margin 1.0 -> 5 - 5.5 + 1 = 0.5;
             with swap -> 5 - 3.3541 + 1 = 2.6459
    """
    ### BEGIN SOLUTION
    near, far = (anchor - positive).norm(dim=1), (anchor - negative).norm(dim=1)  # [B]
    if swap:
        far = torch.minimum(far, (positive - negative).norm(dim=1))
    return torch.relu(near - far + margin).mean()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "objectives-triplet", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("triplet_loss")


def check_triplets(seed, B, D, margin, what):
    a, p, n = normal(seed, (B, D), (B, D), (B, D), dtype=torch.float32)
    near, far = (a - p).norm(dim=1), (a - n).norm(dim=1)
    cosine = torch.nn.functional.cosine_similarity
    loss = lambda lead: lead.clamp(min=0).mean()
    check_close(
        triplet_loss(a, p, n, margin),
        loss(near - far + margin),
        f"{what}, the loss",
        "Distance to the positive, less distance to the negative, plus the margin, at least 0; then the mean.",
        slips=(
            (
                loss(far - near + margin),
                "Upside down: the positive is to be nearer than the negative.",
            ),
            (
                loss(near - far) + margin,
                "The margin belongs inside the maximum: a triplet that keeps it costs nothing.",
            ),
            (loss(near - far), "The margin is missing."),
            (loss(near - far - margin), "The margin is added: near alone is not near enough."),
            (
                (near - far + margin).mean().clamp(min=0),
                "Take the maximum for each triplet, before the mean.",
            ),
            (
                (near - far + margin).mean(),
                "A triplet that is as it should be costs 0, not less.",
            ),
            (loss(near**2 - far**2 + margin), "Those are squared distances: take the root."),
            (
                loss(cosine(a, n) - cosine(a, p) + margin),
                "That compares cosines; the lengths are Euclidean.",
            ),
            (
                (near - far + margin).clamp(min=0).sum(),
                "Take the mean over triplets, not the sum.",
            ),
        ),
    )


check_triplets(105, 6, 3, 0.8, "For 6 triplets and margin 0.8")
triplets = (
    tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
    tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]),
    tensor([[0.0, 5.5], [-2.0, 0.0], [0.0, 3.0]]),
)
check_close(
    triplet_loss(*triplets, 1.5, swap=True),
    tensor((5 - 11.25**0.5 + 1.5 + 0.5 + 2.5) / 3),
    "With swap and margin 1.5, for three triplets, the loss",
    "The negatives are 5.5, 2 and 3 from the anchor and 3.354, 3 and 1 from the positive: the smaller of the two counts.",
    slips=(
        (tensor((5 - 5.5 + 1.5 + 0.5 + 0.5) / 3), "That is the loss without swap."),
        (
            tensor((5 - 11.25**0.5 + 1.5 + 0.0 + 2.5) / 3),
            "Take the smaller of the two lengths; yours takes the distance to the positive each time.",
        ),
        (
            tensor((5 - 5.5 + 1.5 + 0.0 + 0.5) / 3),
            "Take the smaller of the two lengths, not the larger.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:triplet_loss}
# {compare:triplet_loss_where_equal}
### END HIDDEN TESTS

# %% [markdown]
# *Its own among all.* Each query has a document that answers it. The other documents of the batch cost nothing to encode, and
# are wrong for this query. With $\tau$ for the temperature, the loss of query $i$ is
#
# $$-\log \frac{\exp(\cos(q_i, d_i)/\tau)}{\sum_j \exp(\cos(q_i, d_j)/\tau)}$$
#
# where $j$ goes over all documents of the batch, $d_i$ among them. There may be more documents than queries: the first are
# the queries' own, in their order, and further ones are wrong for all. Temperatures are small: 0.01 gives logits up to 100.
#
# To win by a hair is not enough. With a **margin** $m$, the document of the query must win although its cosine is lowered:
# $\cos(q_i, d_i) - m$ stands for $\cos(q_i, d_i)$, above and in the sum, and the other cosines stay (Yang et al. 2019).


# %% nbgrader={"grade": false, "grade_id": "contrast", "locked": false, "schema_version": 3, "solution": true, "task": false}
def in_batch_loss(queries, documents, temperature, margin=0.0):
    """The mean over queries.

    queries: float [B, D], documents: float [N, D], N at least B; temperature, margin: Python floats
    returns float []

    Example: queries = documents = [[1., 0.], [0., 1.]], temperature 1.0 -> log(1 + exp(-1)) = 0.3133;
             with margin 0.4 -> log(1 + exp(-0.6)) = 0.4375
    """
    ### BEGIN SOLUTION
    normalize = torch.nn.functional.normalize
    logits = normalize(queries, dim=1) @ normalize(documents, dim=1).T / temperature  # [B, N]
    own = torch.arange(len(queries), device=logits.device)
    logits = logits - torch.eye(*logits.shape).to(logits) * (margin / temperature)
    return torch.nn.functional.cross_entropy(logits, own)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "objectives-batch", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("in_batch_loss")


def check_batch(seed, B, N, D, temperature, what, **margin):
    q, d = normal(seed, (B, D), (N, D), dtype=torch.float32)
    unit = lambda x, dim=1: x / x.norm(dim=dim, keepdim=True)
    own = torch.arange(B, device=device)
    loss = lambda logits: (logits.logsumexp(1) - logits[own, own]).mean()
    plain = unit(q) @ unit(d).T
    lowered = torch.eye(B, N, device=device) * margin.get("margin", 0.0)
    cosines = plain - lowered
    logits = cosines / temperature
    others = logits.masked_fill(torch.eye(B, N, dtype=torch.bool, device=device), -torch.inf)
    columns = logits.logsumexp(0)[:B] - logits[own, own]
    square = logits[:, :B]
    slips = [
        (loss(cosines * temperature), "Divide by the temperature; yours multiplies by it."),
        (loss(cosines), "The temperature is missing."),
        (loss(q @ d.T / temperature), "Those are inner products: take cosines."),
        (
            loss(unit(q, 0) @ unit(d, 0).T / temperature),
            "The length of a vector goes over its features, dim=1; yours goes over the batch.",
        ),
        (
            columns.mean(),
            "Each query looks for its document among all; yours has each document look for its query (the other axis).",
        ),
        (
            loss(square.T),
            "Each query looks for its document among all; yours has each document look for its query (the other axis).",
        ),
        (loss(logits) * B, "Take the mean over queries, not the sum."),
        (-loss(logits), "That is the mean log probability: the loss is the negative of it."),
        (
            -logits[own, own].mean(),
            "Only the right document counts in yours: the sum over all documents is missing.",
        ),
        (
            (others.logsumexp(1) - logits[own, own]).mean(),
            "The right document belongs to the sum in the denominator, too.",
        ),
        ((logits.logsumexp(1) - logits[:, -1]).mean(), "Query i belongs to document i."),
    ]
    if margin:
        undone = (plain / temperature)[own, own]
        slips += [
            (loss(plain / temperature), "The margin is missing, or lowers all cosines alike."),
            (loss((plain + lowered) / temperature), "Take the margin away from the cosine."),
            (
                loss(plain / temperature - lowered),
                "Take the margin from the cosine, before you divide by the temperature.",
            ),
            (
                ((plain / temperature).logsumexp(1) - logits[own, own]).mean(),
                "The lowered cosine stands in the sum of the denominator, too.",
            ),
            (
                (logits.logsumexp(1) - undone).mean(),
                "The lowered cosine stands in the numerator, too.",
            ),
        ]
    if N > B:
        slips.append(
            (
                loss(square),
                "Further documents, behind the queries' own, are wrong for all: they belong to the sum.",
            )
        )
    check_close(
        in_batch_loss(q, d, temperature, **margin),
        loss(logits),
        f"{what}, the loss",
        "Cosines over temperature are logits over documents; the right one of query i is i.",
        1e-4,
        slips=slips,
    )


check_batch(40, 4, 4, 3, 0.5, "For 4 queries and 4 documents")
check_batch(41, 3, 5, 4, 0.2, "For 3 queries and 5 documents")
check_batch(42, 4, 6, 3, 0.5, "For 4 queries, 6 documents and margin 0.3", margin=0.3)
### BEGIN HIDDEN TESTS
# {compare:in_batch_loss}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · Many sentences ({points:encode} points)
#
# **Question: a batch is as long as its longest sentence. Which sentences do you put together?**
#
# Those of similar length: then little is padding. Sort the sentences by length, encode them in batches, and give the vectors
# back **in the order in which the sentences came**. Nothing is trained here: no dropout, no gradient, no seed. The
# model is left as you found it, in the same mode and with the same gradients.


# %% nbgrader={"grade": false, "grade_id": "many", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(model, sentences, batch_size):
    """One vector for each sentence, in their order.

    model:      model(input_ids [B, T], attention_mask [B, T]) -> float [B, D]
    sentences:  list of N lists of ids, at least one
    batch_size: the sentences of a batch; only one batch may have fewer
    returns float [N, D], of the dtype of the model's vectors, without gradient
    fill_up(rows) makes the two inputs from lists of ids

    Example: sentences of 9, 3 and 8 tokens in batches of 2 make the batches (9, 8) and (3), or (3, 8) and (9)
    """
    ### BEGIN SOLUTION
    was_training = model.training
    model.eval()
    order = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))
    found = [None] * len(sentences)
    with torch.no_grad():
        for begin in range(0, len(order), batch_size):
            places = order[begin : begin + batch_size]
            vectors = model(*fill_up([sentences[place] for place in places]))
            for place, vector in zip(places, vectors):
                found[place] = vector
    model.train(was_training)
    return torch.stack(found)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "encode-order", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("encode")
check_given("fill_up")


class Watched(torch.nn.Module):
    """A model which notes how it is called, and answers something else while it trains."""

    def __init__(self, V=30, D=3):
        super().__init__()
        self.table = torch.nn.Parameter(normal(50, (V, D), dtype=torch.float32)[0])
        self.modes, self.graphs, self.shapes, self.masked = [], [], [], []

    def forward(self, input_ids, attention_mask):
        self.modes.append(self.training)
        self.graphs.append(torch.is_grad_enabled())
        self.shapes.append(tuple(input_ids.shape))
        self.masked.append(attention_mask.sum().item())
        states = self.table[input_ids] * (2 if self.training else 1)
        places = torch.arange(1, input_ids.shape[1] + 1, device=device)[None, :, None]
        return (states / places).masked_fill(~attention_mask[:, :, None], 0).sum(1)


def check_encode(lengths, batch_size, seed, what):
    chance = random.Random(seed)
    sentences = [[chance.randrange(30) for _ in range(length)] for length in lengths]
    copied = [list(sentence) for sentence in sentences]
    for training in (True, False):
        model = Watched().to(device).eval()
        with torch.no_grad():
            expected = torch.cat([model(*fill_up([sentence])) for sentence in sentences])
        in_training = 2 * expected
        model.train(training)
        for notes in (model.modes, model.graphs, model.shapes, model.masked):
            notes.clear()
        got = encode(model, sentences, batch_size)
        assert sentences == copied, (
            "encode must leave the list of sentences as it was; yours changes it."
        )
        assert not any(model.modes), (
            "Call eval() on the model before you ask it: yours leaves dropout on, so vectors change from call to call."
        )
        assert not any(model.graphs), (
            "Ask the model under torch.no_grad(): the gradients of all sentences do not fit into memory."
        )
        assert model.training == training, (
            f"The model was {'training' if training else 'evaluating'} before and is {'not ' if training else ''}training afterwards. "
            "Leave it in the mode in which you found it."
        )
        by_length = sorted(range(len(lengths)), key=lambda i: lengths[i])
        sizes = [B for B, _ in model.shapes]
        slips = [
            (
                expected[order],
                "Those are the vectors in the order of length: put each back where its sentence stood.",
            )
            for order in (
                by_length,
                sorted(range(len(lengths)), key=lambda i: -lengths[i]),
                by_length[::-1],
            )
        ]
        back = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        slips += [
            (
                expected[order][order],
                "Sorted twice: vectors[order] sorts once more. The vector of the i-th batch row belongs at order[i].",
            )
            for order in (by_length, back)
        ]
        slips.append((in_training, "Call eval() on the model before you ask it."))
        check_close(
            got,
            expected,
            f"{what}, the vectors",
            "Each sentence has one, in the order given.",
            slips=slips,
        )
        assert not got.requires_grad, "The vectors must have no gradient."
        assert sum(sizes) == len(lengths), (
            f"{what}, the model must read each sentence once; yours has it read {sum(sizes)}."
        )
        assert max(sizes) <= batch_size, (
            f"{what}, a batch has at most {batch_size} sentences; yours has one of {max(sizes)}."
        )
        assert len(sizes) == -(-len(lengths) // batch_size), (
            f"{what}, {-(-len(lengths) // batch_size)} batches of at most {batch_size} are enough; yours makes {len(sizes)}."
        )
        read = sum(B * T for B, T in model.shapes)
        cost = lambda order: sum(
            len(part) * max(lengths[i] for i in part)
            for part in (order[b : b + batch_size] for b in range(0, len(order), batch_size))
        )
        least = max(cost(by_length), cost(back))
        assert read <= least, (
            f"{what}, the model reads {read} positions, padding included; in batches of similar length it reads {least}. "
            "Sort by length first, and fill each batch up to its own longest sentence."
        )


check_encode([3, 9, 4, 8, 2, 7, 3], 3, 51, "For 7 sentences in batches of 3")
### BEGIN HIDDEN TESTS
check_encode([4], 8, 53, "For one sentence")
check_encode([2, 12, 7], 1, 54, "In batches of 1")
check_encode([1 + 7 * i % 11 for i in range(75)], 70, 55, "For 75 sentences in batches of 70")
# {compare:encode}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · Search ({points:search} points)
#
# **Question: a million queries against a million vectors make 4 terabytes of scores. Who needs them?**
#
# Nobody: each query keeps its K best. Take the collection a block at a time, and let what each block has compete with the
# best so far. The result is exact, the same as from the full matrix, which must never exist.
#
# Scores are cosines. Of equal scores, the one with the smaller index comes first (`torch.topk` promises no such order; a
# stable sort does). If the collection has fewer than k vectors, all of them are hits.


# %% nbgrader={"grade": false, "grade_id": "find", "locked": false, "schema_version": 3, "solution": true, "task": false}
def search(queries, collection, k, block):
    """The k nearest vectors of each query, the nearest first.

    queries:    float [Q, D]
    collection: float [N, D]
    k:          hits of a query
    block:      vectors of the collection that are looked at together
    returns (scores, indices), each [Q, K], where K is k, or N if that is less; scores have the
    dtype of queries

    Example: queries [[2., 0.]], collection [[1., 0.], [0., 9.], [3., 4.]], k 2 -> [[1.0, 0.6]], [[0, 2]]
    """
    ### BEGIN SOLUTION
    queries = torch.nn.functional.normalize(queries, dim=1)
    scores = queries.new_empty(len(queries), 0)
    indices = torch.empty(len(queries), 0, dtype=torch.long, device=queries.device)
    for begin in range(0, len(collection), block):
        rows = torch.nn.functional.normalize(collection[begin : begin + block], dim=1)
        places = torch.arange(begin, begin + len(rows), device=queries.device)
        scores = torch.cat([scores, queries @ rows.T], dim=1)  # [Q, K + block]
        indices = torch.cat([indices, places.expand(len(queries), -1)], dim=1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        scores, indices = scores[:, :k], indices.gather(1, order)[:, :k]
    return scores, indices
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "search-blocks", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
from torch.overrides import TorchFunctionMode

check_withheld("search")


class Largest(TorchFunctionMode):
    """Notes the size of the largest tensor that any call of torch gives."""

    most = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(part, torch.Tensor):
                self.most = max(self.most, part.numel())
        return result


def best_of(table, k, begin=0):
    scores, order = table.sort(dim=1, descending=True, stable=True)
    return scores[:, :k], order[:, :k] + begin


def check_search(queries, collection, k, block, what):
    N, unit = len(collection), lambda x: x / x.norm(dim=1, keepdim=True)
    table = unit(queries) @ unit(collection).T
    scores, expected = best_of(table, k)
    starts = list(range(0, N, block))
    found = [best_of(table[:, b : b + block], k, b) for b in starts]
    each = torch.cat([s for s, _ in found], 1), torch.cat([i for _, i in found], 1)
    merged = best_of(each[0], k)
    try:
        answer = search(queries, collection, k, block)
    except RuntimeError as error:
        raise AssertionError(
            f"{what}, yours stops: {error}. A block, or the whole collection, may hold fewer than k vectors."
        ) from error
    got, indices = check_pair(answer, "search must return (scores, indices)")
    if isinstance(got, torch.Tensor) and got.shape == each[0].shape != scores.shape:
        raise AssertionError(
            f"{what}, each query has {got.shape[1]} hits in yours: the best of each block must compete with one another."
        )
    close = lambda other: (
        isinstance(got, torch.Tensor)
        and got.shape == other.shape
        and alike(got, other, 1e-5).all()
    )
    check_close(
        got,
        scores,
        f"{what}, the scores",
        "They are the largest cosines of each query, the largest first.",
        slips=[
            (-best_of(-table, k)[0], "The nearest come first: sort downwards."),
            (scores.flip(1), "The nearest come first: sort downwards."),
            (best_of(queries @ collection.T, k)[0], "Those are inner products: take cosines."),
            (
                best_of(unit(queries) @ collection.T, k)[0],
                "The vectors of the collection must have length 1, too.",
            ),
            (
                best_of(queries @ unit(collection).T, k)[0],
                "The queries must have length 1, too.",
            ),
            *(
                (
                    s,
                    "Those are the hits of one block alone: let the best of all blocks compete.",
                )
                for s, _ in found
                if close(s)
            ),
            (
                best_of(table[:, : N - N % block], k)[0]
                if N % block and N - N % block >= k
                else scores,
                "The last block, which is shorter, is left out.",
            ),
        ],
    )
    slips = [
        (
            expected % block,
            "Indices within a block start at 0 again: add where the block begins.",
        ),
        (
            merged[1],
            "Those are places in the list of candidates: look up which index stands there (gather).",
        ),
    ]
    at_ties = (
        isinstance(indices, torch.Tensor)
        and indices.shape == expected.shape
        and alike(table.gather(1, indices.clamp(0, N - 1)), scores, 1e-5).all()
    )
    hint = (
        "Of equal scores, the one with the smaller index comes first: use a stable sort."
        if at_ties
        else "Each belongs to the score at the same place."
    )
    check_close(indices, expected, f"{what}, the indices", hint, slips=slips)


queries, collection = normal(60, (3, 4), (11, 4), dtype=torch.float32)
collection = collection * torch.arange(1, 12, device=device)[:, None]
check_search(queries, collection, 3, 4, "For 3 hits of 11 vectors in blocks of 4")
check_search(queries, collection, 5, 2, "For 5 hits in blocks of 2")
axes = torch.eye(3, device=device)
check_search(
    axes[[0, 2]], axes[[1, 0, 0, 2, 0, 2, 2, 1]], 3, 3, "For equal vectors in different blocks"
)
check_search(axes[[1]], axes[[0, 1] * 20], 4, 32, "For many equal vectors in a block")
queries, collection = normal(61, (40, 4), (500, 4), dtype=torch.float32)
with Largest() as watch:
    search(queries, collection, 3, 32)
assert watch.most < 10_000, (
    f"For 40 queries, 500 vectors and blocks of 32, yours makes a tensor of {watch.most:,} numbers: the full matrix has 20,000, "
    "and must not exist. Look at one block at a time, and keep the k best."
)
### BEGIN HIDDEN TESTS
# {compare:search}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · How good is it? ({points:evaluate} points)
#
# **Question: cosines of one model lie between 0.7 and 1, those of another between -1 and 1. How do you compare them with
# what people say?**
#
# By the order alone. *Spearman's correlation* takes ranks for numbers: the smallest has rank 1. Equal numbers share the mean
# of the ranks that they take up together: 5, 8, 8, 9 have ranks 1, 2.5, 2.5, 4. People give few different scores, so ties
# are the rule.


# %% nbgrader={"grade": false, "grade_id": "rank", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ranks(values):
    """Ranks from 1 upwards, ties shared.

    values: float [N]
    returns float64 [N]

    Example: [8., 5., 9., 8.] -> [2.5, 1., 4., 2.5]
    """
    ### BEGIN SOLUTION
    _, group, sizes = values.unique(return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()  # the last rank that each group takes up
    return (last - (sizes - 1) / 2)[group]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "evaluate-ranks", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("ranks")


def rank_table(values):
    """By name, ranks of several kinds."""
    less = [sum(b < a for b in values) for a in values]
    same = [sum(b == a for b in values) for a in values]
    dense = [len({b for b in values if b < a}) + 1 for a in values]
    order = sorted(range(len(values)), key=lambda i: values[i])
    kinds = {
        "shared": [x + (y + 1) / 2 for x, y in zip(less, same)],
        "least": [x + 1 for x in less],
        "most": [x + y for x, y in zip(less, same)],
        "dense": dense,
        "in order": [order.index(i) + 1 for i in range(len(values))],
        "order": [i + 1 for i in order],
    }
    return {name: tensor(kind, torch.float64) for name, kind in kinds.items()}


def check_ranks(values, what):
    kinds = rank_table(values)
    given = tensor(values)
    before = given.clone()
    tie = "Equal numbers share the mean of the ranks that they take up together"
    got = ranks(given)
    assert torch.equal(given, before), (
        "ranks must leave what it is given as it was; yours changes it."
    )
    check_close(
        got,
        kinds["shared"],
        f"{what}, the ranks",
        "The smallest number has rank 1.",
        1e-9,
        slips=(
            (
                kinds["order"],
                "That is which number comes when (argsort); asked is the place of each number.",
            ),
            (kinds["shared"] - 1, "Ranks begin at 1."),
            (kinds["in order"] - 1, "Ranks begin at 1."),
            (len(values) + 1 - kinds["shared"], "Upside down: the smallest number has rank 1."),
            (kinds["least"], f"{tie}; yours takes the least of them."),
            (kinds["most"], f"{tie}; yours takes the greatest of them."),
            (kinds["dense"], f"{tie}; yours counts different numbers only."),
            (
                kinds["in order"],
                f"{tie}; yours gives each a rank of its own, by who comes first.",
            ),
        ),
    )


check_ranks([0.5, 0.1, 0.9, -0.3, 0.7], "For five different numbers")
check_ranks([3.0, 1.0, 3.0, 0.0, 3.0, 1.0], "With ties")
### BEGIN HIDDEN TESTS
# {compare:ranks}
### END HIDDEN TESTS

# %% [markdown]
# Spearman's correlation is Pearson's, of the ranks: with $r$ and $s$ for the ranks less their means,
#
# $$\rho = \frac{\sum_i r_i s_i}{\sqrt{\sum_i r_i^2 \, \sum_i s_i^2}}$$
#
# (The formula with $6 \sum d^2$ holds without ties only.) If all numbers of one side are equal, nothing is ranked: raise a
# ValueError, so that nobody takes a broken model for one without correlation.


# %% nbgrader={"grade": false, "grade_id": "correlate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def spearman(x, y):
    """Spearman's correlation of two lists of numbers.

    x, y: float [N], N at least 2
    returns a Python float from -1 to 1, computed in float64
    raises ValueError if all of x, or all of y, are equal

    Example: [0.9, 0.8, 0.1], [5., 2., 2.5] -> 0.5
    """
    ### BEGIN SOLUTION
    r, s = ranks(x), ranks(y)
    r, s = r - r.mean(), s - s.mean()
    if not r.any() or not s.any():
        raise ValueError("all numbers are equal, so nothing is ranked")
    return ((r * s).sum() / (r.norm() * s.norm())).item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "evaluate-spearman", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("spearman")


def correlation(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / (a.norm() * b.norm())


def check_spearman(x, y, what):
    first, second = rank_table(x), rank_table(y)
    of_ranks = correlation(first["shared"], second["shared"])
    N = len(x)
    short = 1 - 6 * ((first["shared"] - second["shared"]) ** 2).sum() / (N * (N**2 - 1))
    check_close(
        number(spearman(tensor(x), tensor(y)), f"{what}, the correlation"),
        of_ranks,
        f"{what}, the correlation",
        "It is Pearson's correlation of the ranks. If evaluate-ranks fails, mend that first.",
        1e-5,
        slips=(
            (
                correlation(tensor(x, torch.float64), tensor(y, torch.float64)),
                "That is Pearson's correlation of the numbers: take their ranks first.",
            ),
            (
                correlation(first["in order"], second["in order"]),
                "Ties must share their ranks: yours gives each number one of its own.",
            ),
            (
                correlation(tensor(x, torch.float64), second["shared"]),
                "Take the ranks of both.",
            ),
            (correlation(first["shared"], tensor(y, torch.float64)), "Take the ranks of both."),
            (
                short,
                "The short formula with the squared differences is wrong where there are ties.",
            ),
            (-of_ranks, "Upside down: two lists in the same order have 1."),
        ),
    )


check_spearman([0.9, 0.1, 0.5, 0.4, -0.8], [5.0, 1.0, 2.0, 0.0, 0.5], "For five pairs")
check_spearman([0.9, 0.2, 0.5, 0.8, 0.3, 0.2], [1.0, 0.0, 0.4, 0.4, 0.0, 0.4], "With ties")
for x, y in (([0.3] * 4, [1.0, 2.0, 3.0, 4.0]), ([1.0, 2.0, 3.0, 4.0], [0.3] * 4)):
    try:
        got = spearman(tensor(x), tensor(y))
    except ValueError:
        continue
    raise AssertionError(
        f"When all numbers of one side are equal, spearman must raise a ValueError; yours returns {got}."
    )
### BEGIN HIDDEN TESTS
# {compare:spearman}
### END HIDDEN TESTS

# %% [markdown]
# Of a search one asks where the first right document stands. A query whose first right document has rank $r$ is worth $1/r$;
# the *mean reciprocal rank* is the mean over queries. A query without any right document in the collection is worth 0. And
# a wrong document with the **same** score as the right one counts as standing before it: a model that gives all documents
# the same score must not look perfect.


# %% nbgrader={"grade": false, "grade_id": "reciprocal", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_reciprocal_rank(scores, relevant):
    """How far up the first right document stands.

    scores:   float [Q, N], finite
    relevant: bool [Q, N], True for the documents that are right for the query
    returns a Python float from 0 to 1

    Example: scores [[0.9, 0.5, 0.7], [0.1, 0.2, 0.3]], relevant [[False, False, True], [False, False, True]]
    -> ranks 2 and 1: 0.75
    """
    ### BEGIN SOLUTION
    best = scores.masked_fill(~relevant, -torch.inf).amax(dim=1, keepdim=True)  # [Q, 1]
    before = ((scores >= best) & ~relevant).sum(dim=1)
    worth = relevant.any(dim=1) / (before + 1).double()
    return worth.mean().item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "evaluate-mrr", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("mean_reciprocal_rank")


def check_mrr(scores, relevant, what):
    first, won, later, rows = [], [], [], []
    for row, right in zip(scores, relevant):
        hits = [s for s, r in zip(row, right) if r]
        places = [1 + sum(t >= s and not r for t, r in zip(row, right)) for s in hits]
        lucky = [1 + sum(t > s for t in row) for s in hits]
        first.append(min(places, default=None))
        won.append(min(lucky, default=None))
        later.append(max(lucky, default=None))
        rows.append([1 / place for place in lucky])
    Q, has = len(scores), [place for place in first if place]
    mean = lambda places, more=0: tensor(
        sum(1 / (p + more) for p in places if p) / Q, torch.float64
    )
    # Several may fit: the last that does speaks.
    slips = [
        (
            tensor(sum(sum(r) for r in rows) / max(sum(map(len, rows)), 1), torch.float64),
            "Only the first right document of a query counts.",
        ),
        (
            tensor(sum(p == 1 for p in first) / Q, torch.float64),
            "That is the share of queries whose first hit is right.",
        ),
        (mean(later), "The first right document counts; yours takes the last."),
        (tensor(sum(has) / Q, torch.float64), "That is the mean rank: take 1 / rank first."),
        (
            tensor(Q / sum(has) if has else 0.0, torch.float64),
            "Take 1 / rank for each query first, then the mean.",
        ),
        (
            mean(first, 1),
            "Ranks begin at 1: the document at the top has rank 1, worth 1.",
        ),
        (
            mean(won),
            "A wrong document with the same score counts as standing before the right one; yours lets the right one win.",
        ),
        (
            tensor(sum(1 / p for p in has) / max(len(has), 1), torch.float64),
            "A query without a right document is worth 0; yours leaves it out of the mean.",
        ),
    ]
    check_close(
        number(
            mean_reciprocal_rank(tensor(scores), tensor(relevant)),
            f"{what}, the mean reciprocal rank",
        ),
        mean(first),
        f"{what}, the mean reciprocal rank",
        "The greater the score, the nearer to rank 1.",
        1e-6,
        slips=slips,
    )


TABLE = [[0.9, 0.5, 0.7, 0.1], [0.1, 0.2, 0.3, 0.8], [0.4, 0.6, 0.5, 0.3]]
check_mrr(
    TABLE,
    [[False, False, True, False], [False, False, False, True], [False, False, False, True]],
    "For ranks 2, 1 and 4",
)
check_mrr(
    TABLE,
    [[True, False, False, True], [True, True, False, False], [True, False, False, True]],
    "With two right documents each",
)
check_mrr(
    TABLE,
    [[False, False, False, True], [False] * 4, [False, True, False, False]],
    "With a query that has no right document",
)
check_mrr(
    [[0.5, 0.5, 0.5, 0.5]] * 2,
    [[True, False, False, False], [False, False, True, False]],
    "For a model that gives all the same score",
)
### BEGIN HIDDEN TESTS
# {compare:mean_reciprocal_rank}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · How alike are two reviews? ({points:experiment} points)
#
# **Question: what do 192 pairs teach a model that has read so much?**
#
# `make_model(pretrained=True, seed=0, pool=mean_pool)` gives you a sentence encoder: the encoder of the file, or the same with
# random weights, and one of your poolings. `train` is a list of pairs (words, words, score); `batches(rows, size)` makes
# batches ((input_ids, attention_mask), (input_ids, attention_mask), scores) of them. The score is 0.6 for the same opinion
# and 0.4 for the same topic, together 1.
#
# Write an experiment that trains a model on the pairs of `train`, as they are and on no others, and returns it. Each call
# begins anew, with a model as `make_model` gives it. Both sentences of a pair go through **one** model. Choose the objective,
# the rate, the epochs. It needs about a second; the tests give it 30 seconds of processor time. The grader takes the cosines
# that your model gives to pairs with adjectives that are not in `train`, and Spearman's correlation of these with the scores.
# It must reach 0.88.


# %% nbgrader={"grade": false, "grade_id": "model", "locked": true, "schema_version": 3, "solution": false, "task": false}
class SentenceModel(torch.nn.Module):
    """The encoder, and a pooling over its last layer."""

    def __init__(self, encoder, pool):
        super().__init__()
        self.encoder, self.pool = encoder, pool

    def forward(self, input_ids, attention_mask):
        """input_ids [B, T], attention_mask [B, T] -> vectors [B, D]"""
        return self.pool(self.encoder(input_ids, attention_mask)[-1], attention_mask)


def make_model(pretrained=True, seed=0, pool=None):
    return SentenceModel(load_encoder(pretrained, seed)[0], pool or mean_pool).to(device)


# %% nbgrader={"grade": false, "grade_id": "experiment", "locked": false, "schema_version": 3, "solution": true, "task": false}
def experiment(make_model, train):
    """Returns a SentenceModel whose cosines say how alike two reviews are.

    make_model: function of pretrained, seed and pool, gives a SentenceModel
    train:      list of (words, words, score)
    """
    ### BEGIN SOLUTION
    model, chance = make_model(), random.Random(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(3):
        for first, second, scores in batches(chance.sample(train, len(train)), 16):
            loss = cosine_loss(model(*first), model(*second), scores)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "experiment-pairs", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
import time

check_withheld("experiment")
check_given(
    "SmallBert", "load_encoder", "review", "pairs", "batches", "SentenceModel", "make_model"
)


def agreement(model, rows):
    """Spearman's correlation of cosines and scores."""
    found, wanted = [], []
    with torch.no_grad():
        for first, second, scores in batches(rows, 200):
            found.append(torch.nn.functional.cosine_similarity(model(*first), model(*second)))
            wanted.append(scores)
    places = [rank_table(torch.cat(part).tolist())["shared"] for part in (found, wanted)]
    return correlation(*places).item() if len({*torch.cat(found).tolist()}) > 1 else 0.0


def run_experiment(seed):
    """Train a model on 192 pairs."""
    train = pairs(192, seed, TRAINING_ADJECTIVES)
    begin = time.process_time()
    model = experiment(make_model, list(train))
    spent = time.process_time() - begin
    assert isinstance(model, SentenceModel), (
        f"experiment must return a SentenceModel, as make_model gives it; yours returns {'nothing' if model is None else 'a ' + type(model).__name__}."
    )
    assert spent < 30, (
        f"The experiment took {spent:.0f} s of processor time; it must take less than 30."
    )
    model.train(False)
    return model


def check_agreement(model, seed, adjectives, what, least=0.88):
    asked = pairs(200, seed, adjectives)
    found = agreement(model, asked)
    if found >= least:
        return
    raw = agreement(make_model(pool=model.pool), asked)
    seen = agreement(model, pairs(200, seed + 1, TRAINING_ADJECTIVES))
    hint = "More epochs, another rate, another objective?"
    if abs(found - raw) < 1e-3:
        hint = "That is what the model gives untrained. Does the optimizer know its parameters, and does it step?"
    elif seen < 0.6:
        hint = (
            "Not even pairs with the adjectives of train are told apart: was the right thing asked of the model, does it begin "
            "with the weights of the file, and is the rate not too high?"
        )
    elif found < 0.6:
        hint = "It knows the adjectives of train, and no others: it has learned words by heart, and lost what the encoder knew."
    raise AssertionError(
        f"For 200 pairs {what}, Spearman's correlation must be at least {least}; yours is {found:.3f}, untrained {raw:.3f}, and with the "
        f"adjectives of train {seen:.3f}. {hint}"
    )


trained = run_experiment(1)
check_agreement(trained, 70, VALIDATION_ADJECTIVES, "with adjectives that train does not have")
### BEGIN HIDDEN TESTS
UNHEARD = {
    "food": ("creamy spicy savoury", "mouldy watery sour"),
    "music": ("soothing graceful rousing", "jarring screechy plodding"),
    "sport": ("dramatic lively daring", "timid lifeless rigged"),
}
check_agreement(trained, 72, UNHEARD, "with adjectives that you have never seen")


class Reader(SentenceModel):
    """Notes which sentences it reads, and with which weights it begins."""

    read, begun = frozenset(), None

    def forward(self, input_ids, attention_mask):
        if self.begun is None:
            self.begun = weights_of(self)
        rows = zip(input_ids, attention_mask)
        self.read = self.read | {tuple(ids[real].tolist()) for ids, real in rows}
        return super().forward(input_ids, attention_mask)


def weights_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def read_by(pretrained=True, seed=0, pool=None):
    model = Reader(load_encoder(pretrained, seed)[0], pool or mean_pool).to(device)
    made.append((model, weights_of(model)))
    return model


made, train = [], pairs(48, 2, TRAINING_ADJECTIVES)
given = list(train)
reader = experiment(read_by, given)
assert given == train, "experiment must leave the list of pairs as it was; yours changes it."
assert isinstance(reader, Reader), (
    "experiment must train and return a model of the make_model that it is given; yours returns another."
)
assert all(one.begun is None or torch.equal(one.begun, first) for one, first in made), (
    "experiment must begin with the weights that make_model gives; yours begins with others, e.g. those of an earlier call."
)
first, second = ({tuple(ids_of(pair[side])) for pair in train} for side in (0, 1))
assert all(one.read <= first | second for one, _ in made), (
    "experiment must train on the pairs that it is given; yours reads other sentences."
)
assert reader.read & (first - second) and reader.read & (second - first), (
    "Both sentences of a pair must go through the model that is returned; yours reads one of them."
)
### END HIDDEN TESTS

# %% [markdown]
# ### What has the training changed?
#
# The next cell compares raw and trained vectors, with your functions. Change nothing in it; read what it prints. The first
# three columns are Spearman's correlation: on the 192 pairs, on other pairs of the same words, on pairs with adjectives that
# are not in them. (The model with random weights is shown the 192 four times as often.) *Search*: 100 reviews look for one of
# the same topic and opinion that has no name, verb, thing or adjective in common with them, by the mean reciprocal rank.
# *Mean cosine*: of all pairs of two different reviews, whatever they say.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "worth", "locked": true, "schema_version": 3, "solution": false, "task": false}
chance = random.Random(80)
reviews = [review(chance, VALIDATION_ADJECTIVES) for _ in range(500)]
asking, asked = reviews[:100], reviews[100:]
content = lambda words: {*words} - {"the", ".", "it", "was", "not", "and", "but"}
same = tensor([[a[1:3] == b[1:3] for b in asked] for a in asking])
shared = tensor([[bool(content(a[0]) & content(b[0])) for b in asked] for a in asking])
lessons = pairs(192, 1, TRAINING_ADJECTIVES)
tests = {
    "the 192 pairs": lessons,
    "others, same words": pairs(300, 81, TRAINING_ADJECTIVES),
    "other words": pairs(300, 82, VALIDATION_ADJECTIVES),
}
models = {
    "raw, mean": make_model(pool=mean_pool),
    "raw, [CLS]": make_model(pool=cls_pool),
    "raw, largest": make_model(pool=max_pool),
    "trained": experiment(make_model, lessons),
    "trained from random weights": experiment(
        lambda pretrained=True, seed=0, pool=None: make_model(False, seed, pool), lessons * 4
    ),
}
heads = (*tests, "search", "mean cosine")
print(f"{'':30}" + "".join(f"{head:>20}" for head in heads))
for name, model in models.items():
    row = f"{name:30}"
    for rows in tests.values():
        u, v = (encode(model, [ids_of(pair[side]) for pair in rows], 50) for side in (0, 1))
        cosines = torch.nn.functional.cosine_similarity(u, v)
        row += f"{spearman(cosines, tensor([pair[2] for pair in rows])):20.2f}"
    q, d = (encode(model, [ids_of(r[0]) for r in part], 50) for part in (asking, asked))
    q, d = (torch.nn.functional.normalize(part, dim=1) for part in (q, d))
    every = d @ d.T
    mean_cosine = (every.sum() - every.diagonal().sum()) / (len(d) * (len(d) - 1))
    cosines = (q @ d.T).masked_fill(same & shared, -2)
    found = mean_reciprocal_rank(cosines, same & ~shared)
    print(row + f"{found:20.2f}{mean_cosine.item():20.2f}")

model = models["trained"]
q, d = (encode(model, [ids_of(r[0]) for r in part], 50) for part in (asking[:3], asked))
scores, indices = search(q, d, k=2, block=100)
for row, (words, *_) in enumerate(asking[:3]):
    print("\n" + " ".join(words))
    for score, index in zip(scores[row].tolist(), indices[row].tolist()):
        print(f"  {score:.2f}  {' '.join(asked[index][0])}")

# %% [markdown]
# ## Part 7 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# A model learns most from *hard negatives*: passages that are wrong for a query, although it gives them a high score.
# But nobody has read all passages, so one whose score is nearly that of a right one may be right itself, and is better
# left out. Somebody, or something, wrote `negatives(scores, relevant, k, margin)`, which chooses them. You do not see
# its code. Write `check_negatives(implementation)`, which raises an error if an implementation is wrong and returns
# nothing if it is right. This is what a right one does:
#
# * `scores` is a float32 or float64 tensor [Q, N], a row for each query, and `relevant` a bool tensor [Q, N], True for
#   the passages that are known to be right for the query. `k` is an int, `margin` a Python float; k may be larger than
#   N. Q and N are at least 1.
# * A passage is a negative of a query if it is not known to be right for this query, and its score is at least `margin`
#   below that of **every** passage that is. Where rounding alone decides, both answers are right.
# * Scores are any finite numbers, or `-inf`, which says that the passage is ruled out: it is never a negative. Passages
#   that are known to be right have finite scores.
# * A query for which no passage is known to be right has no negatives.
# * It returns `(numbers, found)`, two tensors [Q, k]: for each query the k negatives with the largest scores, the
#   largest first, and these scores. Of equal scores the passage with the smaller number comes first. Passages are
#   counted from 0, among all N. `numbers` is int64, `found` has the dtype of `scores`.
# * If a query has fewer than k negatives, the rest of its row is -1 in `numbers` and `-inf` in `found`.
# * The gradient of `found` reaches the scores of the chosen negatives, each unchanged, and no others.
# * A `k` below 1 or a `margin` below 0 raises a ValueError.
# * `scores` and `relevant` stay as they are, and an answer depends on no earlier call.
#
# For example, scores [[0.75, 0.25, 0.5, 0.625]], relevant [[True, False, False, False]], k 2 and margin 0.2 give
# numbers [[2, 1]] and found [[0.5, 0.25]].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_negatives(implementation):
    """Raise an error if an implementation of `negatives` is wrong; return nothing if it is right."""
    ### BEGIN SOLUTION
    inf = math.inf
    for dtype, near in ((torch.float64, 2.0**-40), (torch.float32, 2.0**-20)):
        rows = [  # scores, which are right, the negatives for a margin of 0.5
            ([2.0, 1.0, 1.5, 0.5, 1.0, -inf, 1.75], [0], [2, 1, 4, 3]),  # up to 1.5; a tie
            ([3.0, -1.0, -2.5, 0.0, -1.5, -9.0, 2.0], [0, 1, 3], [4, 2, 5]),  # up to -1.5
            ([0.0, -1.0, near - 1, -1.0, -2e5, 9.0, -0.25], [0], [2, 1, 3, 4]),  # nearly equal
            ([0.25, 0.75, 0.5, 0.5, 0.125, -inf, 0.25], [2], []),  # all too near
            ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [], []),
            ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0, 1, 2, 3, 4, 5, 6], []),
        ]
        for chosen in (rows, rows[:1], rows[4:], rows[:4]):
            scores = torch.tensor([row for row, _, _ in chosen], dtype=dtype, device=device)
            relevant = [[n in right for n in range(7)] for _, right, _ in chosen]
            relevant = torch.tensor(relevant, device=device)
            for k in (1, 2, 9):
                before = scores.clone(), relevant.clone()
                numbers, found = implementation(scores, relevant, k, 0.5)
                assert scores.equal(before[0]) and relevant.equal(before[1])
                assert numbers.dtype == torch.int64 and found.dtype == dtype
                assert numbers.tolist() == [(best + [-1] * k)[:k] for _, _, best in chosen]
                wanted = [([row[n] for n in best] + [-inf] * k)[:k] for row, _, best in chosen]
                assert found.equal(torch.tensor(wanted, dtype=dtype, device=device))
    one = torch.tensor([[1.0, 0.5, 1.0, 2.0]], dtype=dtype, device=device)
    first = torch.tensor([[True, False, False, False]], device=device)
    for margin, wanted in ((0.0, [2, 1, -1]), (0.5, [1, -1, -1]), (0.625, [-1, -1, -1])):
        assert implementation(one, first, 3, margin)[0].tolist() == [wanted]
    leaf = scores[:1].clone().requires_grad_()
    found = implementation(leaf, relevant[:1], 3, 0.5)[1]
    weights = torch.tensor([[3.0, 5.0, 7.0]], dtype=dtype, device=device)
    (slope,) = torch.autograd.grad((weights * found).sum(), leaf)
    assert slope.tolist() == [[0.0, 5.0, 3.0, 0.0, 7.0, 0.0, 0.0]]
    for k, margin in ((0, 0.5), (-1, 0.5), (1, -0.5)):
        try:
            implementation(one, first, k, margin)
        except ValueError:
            continue
        raise AssertionError("a ValueError is missing")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_negatives}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_negatives hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 8 · In your own words ({points:explain} points)
#
# Look at what the last cell of Part 6 printed. Then write at most 200 words:
#
# 1. Compare *raw, mean* with *trained* on pairs of other words; cite both numbers. The 192 pairs hold none of these words.
#    What did the encoder know before, and what did the training do?
# 2. Read the first three columns of *trained from random weights*; cite them. What has that model learned, and what do they
#    say about number 1?
# 3. Look at the mean cosine of *raw, mean*. Somebody calls two sentences alike if their cosine is above 0.7. Why is that
#    no good rule for this model, and why does Spearman's correlation not suffer from it?
# 4. A model that reads both sentences of a pair together is often better at telling how alike they are. How often must each
#    kind of model be called to find the most similar pair among 10,000 sentences, and how can you use both for a search?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * Both numbers are cited, and you tell apart what the encoder knew and what the training did.
# * The three numbers are cited, with what they say about your first answer.
# * You cite the mean, and say why the rule fails and why the correlation does not.
# * Both counts are there, and a way to use the two models together.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It cites both numbers, and says that the encoder knew the words before, and that training changed what the cosine
#   of its vectors listens to.
# * It cites the three numbers, and says that this model has learned the 192 pairs by heart and next to nothing that
#   holds for others, so that what number 1 shows was read, not learned from the 192 pairs.
# * It says that with this model reviews that have nothing in common can have a high cosine, so that a fixed threshold
#   means different things for different models, and that ranks depend on the order alone.
# * It says 49,995,000 calls (10,000 · 9,999 / 2) against 10,000, and that vectors choose candidates which the other
#   model puts in order.
#
# **All of it:**
#
# (Go by what the student's own cell printed; numbers differ a little between machines.)
#
# The raw mean orders pairs of other words poorly, the trained model nearly as well as scores of four kinds allow. No pair
# says what these words mean, so the encoder knew it from what it had read; training has not taught it words, but made
# opinion and topic what decides about the direction of a vector. The control shows it: the same pairs, shown
# four times as often, teach random weights these very pairs and next to nothing about any others, of the same words or not.
# So the figure for other words in the first comparison is owed to reading. In the raw model the mean cosine of two reviews that were put together by chance is high:
# all vectors point to one side, most of what they share says nothing, and 0.7 calls nearly every pair alike. In another
# model the same number would be strict. Spearman takes ranks, and they stay what they are if all cosines move up together.
# A model that reads pairs must be called once for each pair, 10,000 · 9,999 / 2 = 49,995,000 times; one that makes vectors is
# called 10,000 times, and the rest are products. For a search, let vectors find a hundred candidates among all documents, and
# let the slow model read the query with each of these and put them in order.
#
# **Two of four:** Raw, mean is poor on pairs of other words and trained is good (both cited): the encoder knew the
# words, and training made the cosine listen to what the scores are about. A pair model needs 49,995,000 calls and a
# sentence model 10,000; one lets the vectors choose a hundred and the pair model put these in order. Random weights
# are worse because they are random. 0.7 is too low.
#
# **None of it:** Training helps, since the number is higher afterwards. From random weights it is lower because it has
# not seen enough. 0.7 is a bad threshold and one should use 0.9. The model that reads both sentences is slower.
# ### END SOLUTION
