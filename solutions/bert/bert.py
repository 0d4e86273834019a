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
#   # Longer than 400 lines because an assignment is one notebook: nine parts, each with its prose, skeleton and tests.
#   course:
#     chapter: bert
#     seconds: 60
#     withholds:
#       - course_lib.attention.masks
#       - course_lib.attention.scores
#       - course_lib.attention.multi_head
#       - course_lib.transformer.blocks
#       - course_lib.transformer.heads
#       - course_lib.transformer.model
#       - course_lib.bert.model
#       - course_lib.bert.layers
#       - course_lib.bert.weights
#       - course_lib.bert.files
#       - course_lib.pretraining.masking
#       - course_lib.pretraining.next_sentence
#       - course_lib.pretraining.packing
#       - course_lib.pretraining.sequences
#       - course_lib.pretraining.batches
#       - transformers
#       - torch.nn.functional.gelu
#       - torch.nn.GELU
#       - torch.nn.functional.scaled_dot_product_attention
#       - torch.nn.functional.multi_head_attention_forward
#       - torch.nn.MultiheadAttention
#       - torch.nn.Transformer
#       - torch.nn.TransformerEncoder
#       - torch.nn.TransformerEncoderLayer
# ---

# %% [markdown]
# # Assignment 4 · Build BERT
#
# A published BERT is a file with a few hundred named tables of numbers. It holds no code. Whoever wants to use it
# needs a program in which every table finds its place, and in which every sum, norm and mask is the one of the
# training. One habit from another model (a scale, a norm in front, a position that starts at 1) and the numbers
# that come out look like BERT's and mean nothing. You write that program, and at the end it reads a file in the
# published layout and must give the published numbers.
#
# You need chapter 5 of the book, PyTorch, and about four hours. There are {points:total} points. No GPU is needed;
# if there is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** Replace each `raise NotImplementedError()` by your code, and run the tests below it. They tell
# you what is wrong. When your work is graded, the same cells test more: other sizes, other number types, edge
# cases. Do not change, copy or delete the test cells. You may add cells of your own. In classes, `__init__` is
# given: leave it as it is, Part 7 finds the tables by the names that it sets. What your code is given stays as it
# was, unless the text says that it is changed. Before you hand in, restart the kernel and run everything from the
# top. In a terminal, `course check bert.ipynb` tells you what is amiss.
#
# **What you may use.** Everything in PyTorch except what you build here. Layer norm you have built in Assignment 2;
# here you may take `torch.nn.LayerNorm`. Withheld are: {withholds}. Read each task with care: nearly all parts take one
# argument more than those of the book. Left out, it makes them BERT's.
#
# **Letters for shapes.** B: sequences in the batch. T: positions. D: features of a position. H: heads. N = D / H:
# features of a head. I: features inside the feed-forward network. V: entries of the vocabulary. L: layers. Masks
# are bool, and True means: a real token, may be attended to.

# %%
import math
from dataclasses import dataclass

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT. The names are those of a published config.json."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    dropout: float = 0.1
    layer_norm_eps: float = 1e-12


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


def filled(module, seed, dtype=torch.float32):
    """A module with random weights that are the same on every machine, set to evaluation."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=random))
    return module.to(device=device, dtype=dtype).eval()


def small_config(**changes):
    sizes = {
        "vocab_size": 11,
        "hidden_size": 4,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 6,
        "max_position_embeddings": 9,
    }
    return BertConfig(**{**sizes, **changes})


class StandIn(torch.nn.Module):
    """Takes the place of a part and notes what it is given: a mistake in the real part costs nothing here."""

    def __init__(self, name, result):
        super().__init__()
        self.name, self.result = name, result
        self.calls, self.given = 0, {}

    def note(self, **given):
        self.calls, self.given = self.calls + 1, given
        return self.result(next(iter(given.values())))

    def check(self, name, expected, hint, slips=()):
        """Refuse, in words, that this part is given something else."""
        assert self.calls > 0, f"You never call {self.name}. {hint}"
        assert self.calls == 1, f"You call {self.name} {self.calls} times instead of once."
        assert self.given[name] is not None, f"{self.name} gets no {name}. {hint}"
        check_close(
            self.given[name], expected, f"The {name} that {self.name} gets", hint, slips=slips
        )


class LayerStandIn(StandIn):
    def forward(self, hidden):
        return self.note(input=hidden)


class MaskedStandIn(StandIn):
    """For a part that takes hidden states and a mask."""

    def forward(self, hidden, attention_mask=None):
        return self.note(hidden=hidden, attention_mask=attention_mask)


class EmbeddingStandIn(StandIn):
    def forward(self, input_ids, token_type_ids=None):
        return self.note(input_ids=input_ids, token_type_ids=token_type_ids)


def check_dropout(function, plain, dropped, what, hint):
    """Refuse dropout that is left on in evaluation, missing in training, or applied to something else.

    function: calls the student's part; it returns a tensor and takes whether to train
    plain:    what the part gives without dropout
    dropped:  from an output of training, bools that are all True where dropout stands at the right place
    """
    for _ in range(3):
        with torch.no_grad():
            got = function(False)
        assert got.shape == plain.shape and alike(got, plain, 1e-4).all(), (
            f"After model.eval(), {what} must be the same each time; yours still drops features out. "
            "Use self.dropout, which eval() switches off."
        )
    torch.manual_seed(0)
    with torch.no_grad():
        first, second = function(True), function(True)
    assert not alike(first, second, 1e-4).all(), (
        f"In training, {what} must differ from call to call: the dropout is missing, or stands where it changes nothing. {hint}"
    )
    assert dropped(first).all(), (
        f"In training, {what} is not what dropout at the right place gives. {hint}"
    )


# %% [markdown]
# ## Part 1 · The input ({points:input} points)
#
# **Question: how do two texts become one sequence?**
#
# BERT reads one segment, or two, as one sequence of ids. `[CLS]` stands in front, and `[SEP]` closes each segment:
#
# | token | [CLS] | my | dog | [SEP] | he | barks | [SEP] |
# |---|---|---|---|---|---|---|---|
# | segment | 0 | 0 | 0 | 0 | 1 | 1 | 1 |
#
# The segment ids (`token_type_ids`) say to which of the two a position belongs; each `[SEP]` belongs to the segment
# that it closes.
#
# There are only so many positions. If the sequence is longer than `max_length`, special tokens included, take
# tokens away one by one, each time from the end of the longer segment, and of the second one if both are equally
# long. The special tokens stay.
#
# BERT's heirs differ in the tokens between two segments: RoBERTa writes its separator twice there (Liu et al. 2019). So
# `between` says how many `[SEP]` stand between the first segment and the second. All of them belong to the first segment, and
# all of them take room. Behind the last segment there is always one.


# %% nbgrader={"grade": false, "grade_id": "pair", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):
    """Join one or two segments into the sequence that BERT reads.

    first, second: lists of ids, which stay as they are; second None: there is one segment only; an empty list is a
                   segment, too
    between: how many [SEP] there are between the two segments, at least 1
    returns (input_ids, token_type_ids): two lists of ints, equally long, at most max_length

    Example: [7, 8], [9] -> ([101, 7, 8, 102, 9, 102], [0, 0, 0, 0, 1, 1]);
             between 2 -> ([101, 7, 8, 102, 102, 9, 102], [0, 0, 0, 0, 0, 1, 1])
    """
    ### BEGIN SOLUTION
    segments = [list(first)] if second is None else [list(first), list(second)]
    extra = (between - 1) * (len(segments) - 1)
    while sum(map(len, segments)) + 1 + len(segments) + extra > max_length:
        longest = max(map(len, segments))
        [segment for segment in segments if len(segment) == longest][-1].pop()
    input_ids, token_type_ids = [cls_id], [0]
    for number, segment in enumerate(segments):
        input_ids += [*segment, sep_id]
        token_type_ids += [number] * (len(segment) + 1)
        if number == 0:
            input_ids += [sep_id] * extra
            token_type_ids += [0] * extra
    return input_ids, token_type_ids
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "input-pair", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("pair_input")
ids, types = check_pair(
    pair_input([7, 8], [9, 5, 6]), "pair_input must return (input_ids, token_type_ids)"
)
check_same(
    ids,
    [101, 7, 8, 102, 9, 5, 6, 102],
    "The ids of the segments [7, 8] and [9, 5, 6]",
    "[CLS] (101) comes first, [SEP] (102) after each segment.",
    slips=(
        (
            [101, 7, 8, 9, 5, 6, 102],
            "A [SEP] stands between the segments, too: it closes the first.",
        ),
        ([101, 7, 8, 102, 9, 5, 6], "The second segment is closed by a [SEP], too."),
        ([7, 8, 102, 9, 5, 6, 102], "[CLS] comes first."),
        (
            [101, 7, 8, 102, 101, 9, 5, 6, 102],
            "There is one [CLS] only, at the start of the sequence.",
        ),
    ),
)
check_same(
    types,
    [0, 0, 0, 0, 1, 1, 1, 1],
    "The segment ids of [7, 8] and [9, 5, 6]",
    "0 up to the first [SEP], and 1 from there on, up to the last.",
    slips=(
        (
            [0, 0, 0, 1, 1, 1, 1, 1],
            "The [SEP] in the middle closes the first segment, so it belongs to that one: 0.",
        ),
        (
            [0, 0, 0, 0, 1, 1, 1, 0],
            "The last [SEP] closes the second segment, so it belongs to that one: 1.",
        ),
        (
            [0, 0, 0, 0, 0, 1, 1, 1],
            "The second segment begins right after the [SEP] in the middle.",
        ),
        ([1, 1, 1, 1, 2, 2, 2, 2], "Segments are counted from 0."),
        ([0, 0, 1, 1, 1], "[CLS] and [SEP] are positions as well and need a segment id each."),
        ([0, 0, 0, 0, 0, 0, 0, 0], "The second segment has segment id 1."),
    ),
)
check_same(
    list(pair_input([7, 8])),
    [[101, 7, 8, 102], [0, 0, 0, 0]],
    "Input and segment ids of [7, 8] alone",
    "With one segment there is one [SEP], and all segment ids are 0.",
)
check_same(
    list(pair_input([7, 8], [9, 5, 6], between=3)),
    [[101, 7, 8, 102, 102, 102, 9, 5, 6, 102], [0] * 6 + [1] * 4],
    "With three [SEP] between them, input and segment ids of [7, 8] and [9, 5, 6]",
    "All of these belong to the first segment; one [SEP] closes the second.",
    slips=(
        (
            [[101, 7, 8, 102, 9, 5, 6, 102], [0] * 4 + [1] * 4],
            "Write as many [SEP] between the segments as `between` says.",
        ),
        (
            [[101, 7, 8, 102, 102, 102, 9, 5, 6, 102, 102, 102], [0] * 6 + [1] * 6],
            "Behind the last segment there is one [SEP].",
        ),
    ),
)
check_same(
    list(pair_input([7, 8], between=3)),
    [[101, 7, 8, 102], [0, 0, 0, 0]],
    "With three [SEP] between two segments, input and segment ids of [7, 8] alone",
    "There is nothing to stand between: one [SEP].",
)
### BEGIN HIDDEN TESTS
# {compare:pair_input}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "input-truncate", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
first, second = [11, 12, 13, 14, 15, 16], [21, 22, 23]
answer = pair_input(first, second, max_length=9)
assert (first, second) == ([11, 12, 13, 14, 15, 16], [21, 22, 23]), (
    f"pair_input must leave the lists that it is given as they were; yours makes them {first} and {second}. Copy them."
)
ids, types = check_pair(answer, "pair_input must return (input_ids, token_type_ids)")
check_same(
    ids,
    [101, 11, 12, 13, 102, 21, 22, 23, 102],
    "With max_length 9, the ids of a segment of 6 (11 to 16) and one of 3 (21 to 23)",
    "Six ids have room beside [CLS] and the two [SEP]. Take away from the end of the longer segment.",
    slips=(
        (
            [101, 11, 12, 13, 14, 15, 16, 102, 21],
            "You cut the joined sequence: the last [SEP] is gone. Shorten the segments before you join them.",
        ),
        (
            [101, 11, 12, 13, 14, 15, 16, 102, 102],
            "Take tokens from the longer segment, here the first, not from the second.",
        ),
        (
            [101, 11, 12, 13, 14, 15, 16, 102, 21, 22, 23, 102],
            "That is 12 long. Take tokens away until all of it, special tokens included, has room.",
        ),
        (
            [101, 14, 15, 16, 102, 21, 22, 23, 102],
            "Take tokens away at the end, not at the start.",
        ),
    ),
)
check_same(
    types,
    [0, 0, 0, 0, 0, 1, 1, 1, 1],
    "Its segment ids",
    "Make them after you have cut. If input-pair fails, mend that first.",
)
check_same(
    pair_input([11, 12, 13], [21, 22, 23], max_length=7)[0],
    [101, 11, 12, 102, 21, 22, 102],
    "With max_length 7, the ids of two segments of 3",
    "Of two equally long segments the second one is cut first, then the first one is the longer.",
)
check_same(
    pair_input([11, 12, 13], [21, 22, 23], max_length=8)[0],
    [101, 11, 12, 13, 102, 21, 22, 102],
    "With max_length 8, the ids of two segments of 3",
    "Of two equally long segments the second one is cut.",
)
check_same(
    pair_input([11, 12, 13, 14], [21, 22, 23], max_length=9, between=2)[0],
    [101, 11, 12, 13, 102, 102, 21, 22, 102],
    "With max_length 9 and two [SEP] between them, the ids of segments of 4 and 3",
    "Every [SEP] takes room, also the further ones between the segments.",
)
answer = pair_input(second, first, max_length=9)[0]
assert (first, second) == ([11, 12, 13, 14, 15, 16], [21, 22, 23]), (
    f"pair_input must leave the lists that it is given as they were; yours makes them {second} and {first}. Copy both."
)
check_same(
    answer,
    [101, 21, 22, 23, 102, 11, 12, 13, 102],
    "With max_length 9, the ids of a segment of 3 and one of 6",
    "Take away from the end of the longer segment, here the second.",
)
### BEGIN HIDDEN TESTS
# {compare:pair_truncate}
### END HIDDEN TESTS

# %% [markdown]
# Sequences of a batch have different lengths. Fill the short ones up at the end, to the longest of the batch and no
# further, and say in a mask which positions are real. Filling has the id `pad_id` and segment id 0.
#
# A GPU multiplies fastest where sizes are multiples of 8. So the caller may name a `multiple`: the batch is then as long as
# its longest sequence, or longer by as few positions as make the length a multiple of it.


# %% nbgrader={"grade": false, "grade_id": "batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def make_batch(inputs, pad_id=0, multiple=1):
    """Put sequences of different lengths into tensors.

    inputs: list of pairs (input_ids, token_type_ids), as pair_input returns them
    multiple: what T is to be a multiple of, at least 1
    returns a dict of tensors [B, T] on the CPU, T the length of the longest, made up to a multiple: "input_ids" and
            "token_type_ids", int64, and "attention_mask", bool, True = real

    Example: [([101, 102], [0, 0]), ([101, 7, 102], [0, 0, 0])] -> input_ids [[101, 102, 0], [101, 7, 102]],
    token_type_ids [[0, 0, 0], [0, 0, 0]], attention_mask [[True, True, False], [True, True, True]]
    """
    ### BEGIN SOLUTION
    longest = max(len(ids) for ids, _ in inputs)
    longest += -longest % multiple
    batch = {"input_ids": [], "token_type_ids": [], "attention_mask": []}
    for ids, types in inputs:
        filling = longest - len(ids)
        batch["input_ids"].append([*ids, *[pad_id] * filling])
        batch["token_type_ids"].append([*types, *[0] * filling])
        batch["attention_mask"].append([True] * len(ids) + [False] * filling)
    return {name: torch.tensor(rows) for name, rows in batch.items()}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "input-batch", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("make_batch")


def check_batch(inputs, expected, what, slips=(), **options):
    batch = make_batch([(list(ids), list(types)) for ids, types in inputs], **options)
    assert isinstance(batch, dict) and {*batch} == {*expected}, (
        f"make_batch must return a dict with the keys {', '.join(expected)}; yours returns "
        f"{', '.join(map(str, batch)) if isinstance(batch, dict) else 'a ' + type(batch).__name__}."
    )
    for name, rows in expected.items():
        check_close(
            batch[name],
            torch.tensor(rows),
            f"{what}, {name}",
            "Fill up at the end, to the longest sequence of the batch.",
            slips=[
                (slip, words)
                for key, slip, words in slips
                if key == name
                and list(torch.tensor(slip).shape) == list(torch.tensor(rows).shape)
            ],
        )


check_batch(
    [([101, 7, 102], [0, 0, 0]), ([101, 7, 8, 102, 9, 102], [0, 0, 0, 0, 1, 1])],
    {
        "input_ids": [[101, 7, 102, 0, 0, 0], [101, 7, 8, 102, 9, 102]],
        "token_type_ids": [[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]],
        "attention_mask": [[True] * 3 + [False] * 3, [True] * 6],
    },
    "For sequences of 3 and 6",
    slips=(
        (
            "input_ids",
            [[0, 0, 0, 101, 7, 102], [101, 7, 8, 102, 9, 102]],
            "You fill up at the start. [CLS] must stay at position 0.",
        ),
        (
            "attention_mask",
            [[False] * 3 + [True] * 3, [False] * 6],
            "Yours is upside down. True means: a real token.",
        ),
        ("attention_mask", [[True] * 6] * 2, "Yours marks the filling as real, too."),
        (
            "token_type_ids",
            [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]],
            "The filling belongs to no segment; by convention it has segment id 0.",
        ),
    ),
)
check_batch(
    [([101, 7, 102], [0, 0, 0]), ([101, 8, 9, 5, 102], [0, 0, 0, 0, 0])],
    {
        "input_ids": [[101, 7, 102, 3, 3, 3, 3, 3], [101, 8, 9, 5, 102, 3, 3, 3]],
        "token_type_ids": [[0] * 8, [0] * 8],
        "attention_mask": [[True] * 3 + [False] * 5, [True] * 5 + [False] * 3],
    },
    "For sequences of 3 and 5, pad_id 3 and a multiple of 4",
    pad_id=3,
    multiple=4,
)
### BEGIN HIDDEN TESTS
# {compare:make_batch}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · Embeddings ({points:embeddings} points)
#
# **Question: what does a position know before it has looked at any other?**
#
# Three tables, all learned: one row for each entry of the vocabulary, one for each position, one for each segment.
# What enters the first layer at position t, with word $x_t$ and segment $s_t$, is (Devlin et al. 2019, figure 2)
#
# $$e_t = \mathrm{Dropout}\left(\mathrm{LayerNorm}(W_\mathrm{word}[x_t] + W_\mathrm{position}[t] + W_\mathrm{segment}[s_t])\right)$$
#
# Positions count from 0 to T - 1 along the whole sequence, whatever the segments are. Where no segment ids are
# given, all positions are of segment 0. Unlike the Transformer of Assignment 2, BERT multiplies nothing by
# $\sqrt{D}$.
#
# Where several short texts are packed into one sequence, each of them counts its positions from 0. The caller then gives
# `position_ids`, and $W_\mathrm{position}[p_t]$ stands in the place of $W_\mathrm{position}[t]$.


# %% nbgrader={"grade": false, "grade_id": "embed", "locked": false, "schema_version": 3, "solution": true, "task": false}
class BertEmbeddings(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = torch.nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type = torch.nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = torch.nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        """
        input_ids, token_type_ids: int [B, T]; token_type_ids None: segment 0 everywhere
        position_ids: int [B, T]; None: 0 to T - 1 in each sequence
        returns [B, T, D]
        """
        ### BEGIN SOLUTION
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        positions = position_ids
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)  # [T]
        hidden = (
            self.word(input_ids) + self.position(positions) + self.token_type(token_type_ids)
        )
        return self.dropout(self.norm(hidden))
        ### END SOLUTION


# %% [markdown]
# The first test looks at the sum alone: it takes the norm away and fills the tables with numbers that can be told
# apart.

# %% nbgrader={"grade": true, "grade_id": "embeddings-sum", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("BertEmbeddings")
embeddings = BertEmbeddings(small_config(hidden_size=3)).to(device).eval()
embeddings.norm = torch.nn.Identity()
with torch.no_grad():
    for number, (table, start, step) in enumerate(
        ((embeddings.word, 0, 1), (embeddings.position, 10, 1), (embeddings.token_type, 5, 2))
    ):
        table.weight.zero_()
        table.weight[:, number] = start + step * torch.arange(len(table.weight))
input_ids = tensor([[2, 4, 3, 1, 3], [2, 1, 3, 0, 0]])
token_type_ids = tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
words = input_ids.float()
places = torch.arange(10.0, 15.0, device=device).expand(2, 5)
kinds = 5.0 + 2 * token_type_ids
check_close(
    embeddings(input_ids, token_type_ids),
    torch.stack([words, places, kinds], dim=-1),
    "The sum (feature 0 shows the word id, feature 1 is 10 + position, feature 2 is 5 + 2 times the segment)",
    "Add the row of the word, of the position and of the segment.",
    slips=(
        (
            torch.stack(
                [words, tensor([[10.0, 11, 12, 10, 11], [10, 11, 12, 13, 14]]), kinds], dim=-1
            ),
            "Your positions begin anew in the second segment. They count along the whole sequence.",
        ),
        (torch.stack([words, places + 1, kinds], dim=-1), "Positions count from 0."),
        (
            torch.stack(
                [words, tensor([places[0].tolist(), [10.0, 11, 12, 12, 12]]), kinds], dim=-1
            ),
            "A position has its number whatever id stands there: 0 as well.",
        ),
        (torch.stack([words, 0 * places, kinds], dim=-1), "The positions are missing."),
        (
            torch.stack([words, tensor([[10.0], [11.0]]).expand(2, 5), kinds], dim=-1),
            "Your positions run along the batch: T is the second axis of input_ids.",
        ),
        (torch.stack([words, places, 0 * kinds], dim=-1), "The segments are missing."),
        (
            torch.stack([words, places, 5 + 0 * kinds], dim=-1),
            "Every position gets segment 0. Use token_type_ids when they are given.",
        ),
        (
            torch.stack([3**0.5 * words, places, kinds], dim=-1),
            "BERT does not multiply the words by the square root of D.",
        ),
    ),
)
check_close(
    embeddings(input_ids),
    torch.stack([words, places, torch.full_like(places, 5)], dim=-1),
    "Without segment ids, the sum",
    "Everything is of segment 0 then, and the row of segment 0 is added.",
    slips=(
        (
            torch.stack([words, places, 0 * places], dim=-1),
            "You add no segment at all. Segment 0 has a row like any other.",
        ),
    ),
)
anew = tensor([[0, 1, 2, 0, 1], [0, 0, 1, 2, 3]])
check_close(
    embeddings(input_ids, token_type_ids, anew),
    torch.stack([words, 10.0 + anew, kinds], dim=-1),
    "With position ids, the sum",
    "They say which rows of the table of positions are added.",
    slips=(
        (
            torch.stack([words, 10.0 + torch.arange(5, device=device).expand(2, 5), kinds], -1),
            "Positions still count from 0 to T - 1: take those that are given.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:embeddings_sum}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "embeddings-norm", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
embeddings = filled(BertEmbeddings(small_config(dropout=0.5)), 33)
input_ids, token_type_ids = tensor([[2, 4, 3, 1, 3]]), tensor([[0, 0, 0, 1, 1]])
tables = (
    embeddings.word.weight[input_ids],
    embeddings.position.weight[None, :5],
    embeddings.token_type.weight[token_type_ids],
)
with torch.no_grad():
    normed = embeddings.norm(sum(tables))
    check_close(
        embeddings(input_ids, token_type_ids),
        normed,
        "What the first layer gets",
        "Norm the sum of the three, once, with self.norm. If embeddings-sum fails, mend that first.",
        tolerance=1e-4,
        slips=(
            (sum(tables), "The norm is missing: use self.norm."),
            (
                embeddings.norm(tables[0]) + tables[1] + tables[2],
                "Norm the sum, not the words alone.",
            ),
            (
                embeddings.norm(tables[0] + tables[1]) + tables[2],
                "Norm the sum of all three, not of two.",
            ),
            (sum(map(embeddings.norm, tables)), "Norm the sum, once, not each part."),
        ),
    )
    at = tensor([[3, 0, 1, 0, 8]])
    check_close(
        embeddings(input_ids, token_type_ids, at),
        embeddings.norm(tables[0] + embeddings.position.weight[at] + tables[2]),
        "With position ids, what the first layer gets",
        "Norm the sum, with the positions that are given.",
        tolerance=1e-4,
    )
check_dropout(
    lambda training: embeddings.train(training)(input_ids, token_type_ids),
    normed,
    lambda got: (got == 0) | alike(got, 2 * normed, 1e-4),
    "the output of BertEmbeddings",
    "Dropout comes last, after the norm: some features are 0, and with a rate of 0.5 the others are doubled.",
)
### BEGIN HIDDEN TESTS
# {compare:embeddings_norm}
# {compare:embeddings_dropout}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · Attention to real tokens ({points:attention} points)
#
# **Question: which positions does a position of BERT look at?**
#
# At all real ones, before and behind it. There is no causal mask. Filling is the only thing that may not be
# attended to, so the mask is one row for each sequence, [B, T], the same for all its queries and all heads.
#
# With one matrix for queries, one for keys and one for values, and N = D / H features for each head:
#
# $$A_h = \operatorname{softmax}\left(\frac{Q_h K_h^\top}{\sqrt{N}}\right), \qquad
# C = [\mathrm{Dropout}(A_1) V_1; \dots; \mathrm{Dropout}(A_H) V_H]$$
#
# Head 0 owns the first N features, head 1 the next N, and so on. BERT drops out *weights*, after the softmax: a
# position loses sight of some others, and the weights that are left are scaled up. Return the weights as they were
# before the dropout.
#
# Models after BERT tell attention, and not the embeddings, how far apart two words stand: T5 adds a number to each score, its
# own for each head and pair of positions (Raffel et al. 2020). Your attention can do so, too: the `bias` is added to the scores,
# after they are divided by $\sqrt{N}$.


# %% nbgrader={"grade": false, "grade_id": "self-attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SelfAttention(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query = torch.nn.Linear(D, D)
        self.key = torch.nn.Linear(D, D)
        self.value = torch.nn.Linear(D, D)
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        """
        hidden: [B, T, D]
        attention_mask: bool [B, T], True = real, may be attended to; at least one in each row. None: all are real
        bias: float [H, T, T], added to the scores of each sequence; None: none is
        returns (context [B, T, D], weights [B, H, T, T])
        """
        ### BEGIN SOLUTION
        B, T, D = hidden.shape
        query, key, value = (
            projected(hidden).reshape(B, T, self.num_heads, -1).transpose(1, 2)  # [B, H, T, N]
            for projected in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # [B, H, T, T]
        if bias is not None:
            scores = scores + bias
        if attention_mask is not None:
            scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))
        weights = scores.softmax(dim=-1)
        context = self.dropout(weights) @ value  # [B, H, T, N]
        return context.transpose(1, 2).reshape(B, T, D), weights
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "attention-values", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("SelfAttention")
part = SelfAttention(small_config()).to(device).eval()
with torch.no_grad():
    for linear, scale in ((part.query, 1.0), (part.key, 1.0), (part.value, 10.0)):
        linear.weight.copy_(scale * torch.eye(4))
        linear.bias.zero_()
hidden = tensor([[[1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]]])
context, weights = check_pair(part(hidden), "SelfAttention must return (context, weights)")
check_close(
    weights,
    tensor([[[[0.8044, 0.1956], [0.5, 0.5]], [[0.9442, 0.0558], [0.5, 0.5]]]]),
    "The table of weights of the two heads",
    "Head 0 sees [1, 1] and [0, 0] as queries and keys, head 1 sees [0, 2] and [0, 0].",
    tolerance=1e-4,
    slips=(
        (
            [[[[0.7311, 0.2689], [0.5, 0.5]], [[0.8808, 0.1192], [0.5, 0.5]]]],
            "You divide by the square root of all features, 4. A query of one head has 2.",
        ),
        (
            [[[[0.8808, 0.1192], [0.5, 0.5]], [[0.9820, 0.0180], [0.5, 0.5]]]],
            "Divide the scores by the square root of N.",
        ),
        (
            [[[[0.8044, 0.5], [0.1956, 0.5]], [[0.9442, 0.5], [0.0558, 0.5]]]],
            "Your columns sum to 1: take the softmax over the keys, the last dimension.",
        ),
    ),
)
expected = tensor([[[8.0439, 8.0439, 0.0, 18.8843], [5.0, 5.0, 0.0, 10.0]]])
check_close(
    context,
    expected,
    "The context",
    "Each head mixes its own share of the values, here ten times the input; then the heads are put side by side.",
    tolerance=1e-4,
    slips=(
        (expected / 10, "The values go through self.value, as the queries through self.query."),
        (
            [[[8.0439, 8.0439, 5.0, 5.0], [0.0, 18.8843, 0.0, 10.0]]],
            "Your heads are joined without swapping the axes back: transpose(1, 2) comes before the reshape to [B, T, D].",
        ),
    ),
)
away = tensor([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 40.0], [0.0, math.log(3)]]])
_, weights = part(hidden, bias=away)
check_close(
    weights,
    tensor([[[[0.8044, 0.1956], [0.5, 0.5]], [[0.0, 1.0], [0.25, 0.75]]]]),
    "With a bias for head 1, the table of weights",
    "Add the bias to the scores, after they are divided by the square root of N.",
    tolerance=1e-4,
    slips=(
        (
            tensor([[[[0.8044, 0.1956], [0.5, 0.5]], [[0.9442, 0.0558], [0.5, 0.5]]]]),
            "The bias is missing.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:attention_values}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "attention-mask", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
part = filled(SelfAttention(small_config()), 43)
(hidden,) = normal(44, (2, 3, 4), dtype=torch.float32)
with torch.no_grad():
    _, weights = check_pair(part(hidden), "SelfAttention must return (context, weights)")
assert (weights[:, :, 0, 1:] > 0).all(), (
    "Without a mask, position 0 must attend to all that comes after it, too: BERT reads in both directions."
)
attention_mask = tensor([[True, True, False], [True, True, True]])
(bias,) = normal(45, (2, 3, 3), dtype=torch.float32)
try:
    answer = part(hidden, attention_mask, bias)
except RuntimeError as error:
    raise AssertionError(
        f"With a mask [2, 3] for 2 sequences of 3 positions: {error}. The scores are [B, H, T, T]; "
        "attention_mask[:, None, None, :] is [B, 1, 1, T], which fits."
    ) from error
context, weights = check_pair(answer, "SelfAttention must return (context, weights)")
check_shape(weights, [2, 2, 3, 3], "With a mask, the weights")
assert not (weights[0, :, :, :2] == 0).all(), (
    "Your weights are 0 just where the mask is True. True in the mask means: a real token."
)
assert not weights.isnan().any(), (
    "With a mask, the weights contain nan: a row of scores is masked completely. It is keys that may not be attended "
    "to, the last axis of the scores; queries at the filling are left alone."
)
assert (weights[0, :, :, 2] == 0).all() and (weights[1, :, :, 2] > 0).all(), (
    "In sequence 0 the third position is filling, in sequence 1 it is real. Yours attend to it with "
    f"{weights[0, :, :, 2].max().item():.2f} in sequence 0, which must be exactly 0, and with at least "
    f"{weights[1, :, :, 2].min().item():.2f} in sequence 1, which must be more. "
    "Mask the scores, before the softmax, with attention_mask[:, None, None, :]."
)
for row, total in enumerate(weights.sum(-1).flatten().tolist()):
    assert abs(total - 1) < 1e-5, (
        f"The weights of each row must sum to 1; row {row} sums to {total:.2f}. Mask the scores, before the softmax."
    )
with torch.no_grad():
    alone, _ = part(hidden[:1, :2], bias=bias[:, :2, :2])
    check_close(
        context[:1, :2],
        alone,
        "The context of a sequence in a batch with filling",
        "It must be the one of the sequence alone.",
    )
    real = part(hidden)[1] * attention_mask[:, None, None, :]
    biased = real * bias.exp()
    check_close(
        weights,
        biased / biased.sum(-1, keepdim=True),
        "With a mask and a bias, the table of weights",
        "Add the bias to the scores, mask them, then take the softmax.",
        tolerance=1e-4,
        slips=((real / real.sum(-1, keepdim=True), "The bias is missing."),),
    )
### BEGIN HIDDEN TESTS
# {compare:attention_mask}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "attention-dropout", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Every value is 1, so the context is the sum of the weights: 1, unless some of them are dropped out.
part = filled(SelfAttention(small_config(dropout=0.5)), 48)
with torch.no_grad():
    part.value.weight.zero_()
    part.value.bias.fill_(1.0)
(hidden,) = normal(49, (2, 7, 4), dtype=torch.float32)
check_dropout(
    lambda training: part.train(training)(hidden)[0],
    torch.ones(2, 7, 4, device=device),
    # All features of a head share the sum; if features of the context are dropped out, each is 0 or 2.
    lambda got: alike(got[..., ::2], got[..., 1::2], 1e-4),
    "the context of SelfAttention",
    "Drop out weights: after the softmax, which would make the rest sum to 1 again, and before they meet the values.",
)
### BEGIN HIDDEN TESTS
# {compare:attention_dropout}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · The layer ({points:layer} points)
#
# **Question: what is one of BERT's layers?**
#
# Between the two matrices of its network, BERT has no ReLU but a GELU (Hendrycks and Gimpel 2016). Each number is
# multiplied by the probability that a standard normal number is smaller:
#
# $$\mathrm{GELU}(x) = x \cdot \Phi(x) = \frac{x}{2} \left(1 + \operatorname{erf}\left(\frac{x}{\sqrt 2}\right)\right)$$
#
# Other models approximate it with a tanh or a sigmoid. The published files of BERT ask for the exact one: their
# config.json says `"hidden_act": "gelu"`.


# %% nbgrader={"grade": false, "grade_id": "activation", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gelu(x):
    """GELU of each number.

    Example: [-1., 0., 1.] -> [-0.1587, 0., 0.8413]
    """
    ### BEGIN SOLUTION
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "layer-gelu", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("gelu")
x = tensor([-2.0, -1.0, -0.5, 0.0, 1.0, 3.0])
probability = torch.distributions.Normal(0.0, 1.0).cdf(x)
check_close(
    gelu(x),
    tensor([-0.04550026, -0.15865525, -0.15426877, 0.0, 0.84134475, 2.9959502]),
    "GELU of [-2, -1, -0.5, 0, 1, 3]",
    "Multiply x by the probability that a standard normal number is smaller than x.",
    slips=(
        (
            0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))),
            "That is the approximation with tanh. BERT's files ask for the exact one, with erf.",
        ),
        (
            x * torch.sigmoid(1.702 * x),
            "That is the approximation with a sigmoid. BERT's files ask for the exact one, with erf.",
        ),
        (x.clamp(min=0), "That is ReLU."),
        (probability, "Multiply the probability by x."),
        (0.5 * x * (1 + torch.erf(x)), "Divide x by the square root of 2 inside erf."),
        (x * (1 + torch.erf(x / 2**0.5)), "Is the factor 1/2 forgotten?"),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:gelu}
### END HIDDEN TESTS

# %% [markdown]
# Attention mixes what *other* positions say. A matrix (`attention_output`) mixes the heads; then the network works
# at each position. Both results are dropped out, added to what went in, and the sum is normed. The norm comes after
# the sum ("post-norm"). With $X$ for what goes in:
#
# $$A = \mathrm{LN}_1\left(X + \mathrm{Dropout}(C W_O + b_O)\right), \qquad
# Y = \mathrm{LN}_2\left(A + \mathrm{Dropout}(\mathrm{GELU}(A W_1 + b_1) W_2 + b_2)\right)$$
#
# There is no dropout between GELU and $W_2$. The layer hands the `bias` of Part 3 on to its attention, as it does the mask.


# %% nbgrader={"grade": false, "grade_id": "block", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
        self.dropout = torch.nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None, bias=None):
        """
        hidden: [B, T, D]     attention_mask: bool [B, T], True = real     bias: as in SelfAttention
        returns [B, T, D]
        """
        ### BEGIN SOLUTION
        context, _ = self.attention(hidden, attention_mask, bias)
        hidden = self.attention_norm(hidden + self.dropout(self.attention_output(context)))
        transformed = self.output(gelu(self.intermediate(hidden)))
        return self.output_norm(hidden + self.dropout(transformed))
        ### END SOLUTION


# %% [markdown]
# The next test puts simple parts in the place of yours ("times 10", "plus 1") and looks what the layer passes to
# which.

# %% nbgrader={"grade": true, "grade_id": "layer-wiring", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check_withheld("BertLayer")


class AttentionStandIn(StandIn):
    def forward(self, hidden, attention_mask=None, bias=None):
        context = self.note(hidden=hidden, attention_mask=attention_mask, bias=bias)
        return context, torch.zeros(len(hidden), 2, 1, 1, device=device)


def layer_of_stand_ins(**changes):
    layer = BertLayer(small_config(hidden_size=2, intermediate_size=2, **changes)).to(device)
    layer.attention = AttentionStandIn("attention", lambda x: -2 * x)
    layer.attention_output = LayerStandIn("attention_output", lambda x: 5 * x)
    layer.attention_norm = LayerStandIn("attention_norm", lambda x: x / 10)
    layer.intermediate = LayerStandIn("intermediate", lambda x: x + 0.25)
    layer.output = LayerStandIn("output", lambda x: 100 * x)
    layer.output_norm = LayerStandIn("output_norm", lambda x: x - 3)
    return layer.eval()


layer = layer_of_stand_ins()
X = tensor([[[1.0, 2.0], [-1.0, 0.5]]])
attention_mask = tensor([[True, False]])
(bias,) = normal(46, (2, 2, 2))
Y = layer(X.clone(), attention_mask, bias)
A = -0.9 * X
G = gelu(A + 0.25)
layer.attention.check(
    "hidden",
    X,
    "Attention gets what goes into the layer.",
    slips=((X / 10, "BERT's norm comes after the sum, not before the attention."),),
)
layer.attention.check(
    "attention_mask", attention_mask, "Pass the mask on, or filling is attended to."
)
layer.attention.check("bias", bias, "Pass the bias on, as you pass on the mask.")
layer.attention_output.check(
    "input",
    -2 * X,
    "It gets the context, the first of the two things that attention returns.",
    slips=((-X, "Add the input of the layer after attention_output, not before it."),),
)
layer.attention_norm.check(
    "input",
    -9 * X,
    "It gets the sum of the layer's input and of what attention_output gives.",
    slips=(
        (-10 * X, "Add the layer's input to it: the residual."),
        (X, "BERT's norm comes after the sum, not before the attention."),
        (-X, "attention_output is left out."),
    ),
)
layer.intermediate.check(
    "input",
    A,
    "It gets what attention_norm gives.",
    slips=(
        (-9 * X, "attention_norm is left out."),
        (X, "The network comes after attention and gets its result."),
    ),
)
layer.output.check(
    "input",
    G,
    "It gets gelu of what intermediate gives.",
    slips=(
        (A + 0.25, "gelu is left out between intermediate and output."),
        ((A + 0.25).clamp(min=0), "BERT has a gelu there, no ReLU."),
        (gelu(A) + 0.25, "gelu comes after intermediate, not before it."),
    ),
)
layer.output_norm.check(
    "input",
    A + 100 * G,
    "It gets the sum of what went into intermediate and of what output gives.",
    slips=(
        (100 * G, "The second residual is left out: add what went into intermediate."),
        (
            X + 100 * G,
            "The second residual starts from what attention_norm gives, not from the layer's input.",
        ),
        (
            -9 * X + 100 * G,
            "The second residual starts from what attention_norm gives, not from the sum before it.",
        ),
        (A, "BERT's norm comes after the sum, not before the network."),
    ),
)
check_close(Y, A + 100 * G - 3, "What the layer returns", "It is what output_norm gives.")
layer = BertLayer(small_config(hidden_size=2, layer_norm_eps=0.5)).to(device)
for name in ("attention_norm", "output_norm"):
    check_close(
        getattr(layer, name)(tensor([1.0, 2.0])),
        tensor([-0.5, 0.5]) / math.sqrt(0.75),
        f"With layer_norm_eps 0.5, what {name} makes of [1, 2]",
        "Its eps must be that of the config.",
    )
### BEGIN HIDDEN TESTS
# {compare:layer_wiring}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "layer-dropout", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}


def check_layer_dropout(name, part, other, value):
    """A layer in which one part adds a number to everything and the other one nothing."""
    layer = layer_of_stand_ins(dropout=0.5)
    setattr(layer, part, LayerStandIn(part, lambda x: torch.full_like(x, value)))
    setattr(layer, other, LayerStandIn(other, torch.zeros_like))
    layer.attention_norm = layer.output_norm = layer.intermediate = torch.nn.Identity()
    X = torch.ones(1, 3, 20, device=device)
    check_dropout(
        lambda training: layer.train(training)(X, bias=torch.zeros(2, 3, 3, device=device)),
        X + value,
        lambda got: alike(got, X, 1e-4) | alike(got, X + 2 * value, 1e-4),
        f"the output of a layer in which only {name} adds something",
        f"Dropout stands between {part} and the sum. What went into the layer stays whole.",
    )


check_layer_dropout("attention", "attention_output", "output", 8.0)
check_layer_dropout("the network", "output", "attention_output", 6.0)
### BEGIN HIDDEN TESTS
# {compare:layer_dropout}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · The model ({points:model} points)
#
# **Question: what comes out of BERT?**
#
# Embeddings, then L layers, each with weights of its own, each told which positions are real. Out come two things:
# a vector for each position, and one for the whole sequence. The second is made by the pooler from the position of
# `[CLS]`, the first:
#
# $$p = \tanh(W_p\, y_{[\mathrm{CLS}]} + b_p)$$
#
# Some programs fill sequences up in front. So the pooler may be given a mask, and then takes the first *real* position of each
# sequence. (In the model below `[CLS]` always stands in front, so there the pooler needs no mask.)


# %% nbgrader={"grade": false, "grade_id": "pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Pooler(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden, attention_mask=None):
        """
        hidden: [B, T, D]
        attention_mask: bool [B, T], True = real, at least one in each row; None: position 0 is [CLS]
        returns [B, D]
        """
        ### BEGIN SOLUTION
        if attention_mask is not None:
            first = attention_mask.int().argmax(dim=1)  # [B]
            hidden = hidden[torch.arange(len(first), device=hidden.device), first, None]
        return torch.tanh(self.dense(hidden[:, 0]))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "model-pooler", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check_withheld("Pooler")
pooler = Pooler(small_config(hidden_size=2)).to(device)
with torch.no_grad():
    pooler.dense.weight.copy_(tensor([[1.0, 0.0], [1.0, 1.0]]))
    pooler.dense.bias.copy_(tensor([0.5, 0.0]))
hidden = tensor([[[0.1, 0.3], [0.9, -0.4], [0.2, 0.7]], [[-0.6, 0.2], [0.8, 0.0], [0.0, 0.3]]])
before = tensor([[0.6, 0.4], [-0.1, -0.4]])  # of the first position, before tanh
check_close(
    pooler(hidden),
    before.tanh(),
    "The pooler's output",
    "Take the first position of each sequence, dense, tanh, in this order.",
    slips=(
        (before, "tanh is missing."),
        (
            torch.tanh(hidden[:, -1] @ pooler.dense.weight.T + pooler.dense.bias).detach(),
            "[CLS] is at the first position; yours takes the last.",
        ),
        (
            torch.tanh(hidden.mean(1) @ pooler.dense.weight.T + pooler.dense.bias).detach(),
            "Yours takes the mean over positions; BERT's pooler looks at [CLS] alone.",
        ),
        (
            torch.tanh(hidden.amax(1) @ pooler.dense.weight.T + pooler.dense.bias).detach(),
            "Yours takes the maximum over positions; BERT's pooler looks at [CLS] alone.",
        ),
        (
            (hidden[:, 0].tanh() @ pooler.dense.weight.T + pooler.dense.bias).detach(),
            "First dense, then tanh.",
        ),
    ),
)
check_close(
    pooler(hidden, tensor([[False, True, True], [True, True, False]])),
    tensor([[1.4, 0.5], [-0.1, -0.4]]).tanh(),
    "With filling in front of the first sequence, the pooler's output",
    "[CLS] is the first position whose mask is True.",
    slips=(
        (
            before.tanh(),
            "Position 0 of the first sequence is filling: look for the first True.",
        ),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:pooler}
### END HIDDEN TESTS

# %% [markdown]
# The lower layers of a BERT know much already, and half of them cost half the time. So the caller may name a `depth`: only that
# many layers run, from the first on, and the pooler gets what the last of these gives.


# %% nbgrader={"grade": false, "grade_id": "whole", "locked": false, "schema_version": 3, "solution": true, "task": false}
class BertModel(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layers = torch.nn.ModuleList(
            BertLayer(config) for _ in range(config.num_hidden_layers)
        )
        self.pooler = Pooler(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, depth=None):
        """
        input_ids, token_type_ids: int [B, T]     attention_mask: bool [B, T], True = real
        depth: how many layers run, from 0, which leaves the embeddings, to all of them; None: all
        returns (hidden [B, T, D] of the last layer that runs, pooled [B, D], made of it)
        """
        ### BEGIN SOLUTION
        hidden = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers[:depth]:
            hidden = layer(hidden, attention_mask)
        return hidden, self.pooler(hidden)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "model-wiring", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("BertModel")
model = BertModel(small_config(hidden_size=2)).to(device).eval()
one_hot = torch.nn.functional.one_hot
model.embeddings = EmbeddingStandIn("embeddings", lambda ids: one_hot(ids % 2, 2).float())
model.layers = torch.nn.ModuleList(
    MaskedStandIn(f"layers[{n}]", lambda x, n=n: (n + 2) * x + n) for n in range(3)
)
model.pooler = MaskedStandIn("pooler", lambda x: x[:, 0] - 7)
input_ids = tensor([[2, 5, 3], [2, 3, 0]])
token_type_ids = tensor([[0, 0, 1], [0, 0, 0]])
attention_mask = tensor([[True, True, True], [True, True, False]])
answer = model(input_ids, attention_mask, token_type_ids)
hidden, pooled = check_pair(answer, "BertModel must return (hidden, pooled)")
model.embeddings.check("input_ids", input_ids, "The embeddings get the ids.")
given = model.embeddings.given["token_type_ids"]
assert given is None or given.dtype != torch.bool, (
    "The embeddings get the mask where they expect segment ids. They take (input_ids, token_type_ids)."
)
model.embeddings.check("token_type_ids", token_type_ids, "Pass the segment ids on.")
step = one_hot(input_ids % 2, 2).float()
for n, layer in enumerate(model.layers):
    layer.check(
        "hidden",
        step,
        f"{layer.name} gets what {'layers[' + str(n - 1) + ']' if n else 'embeddings'} gives.",
    )
    layer.check(
        "attention_mask", attention_mask, f"{layer.name} needs the mask, as every layer does."
    )
    step = (n + 2) * step + n
model.pooler.check("hidden", step, "The pooler gets what the last layer gives.")
check_close(
    hidden, step, "The first thing that the model returns", "It is what the last layer gives."
)
check_close(pooled, step[:, 0] - 7, "The second", "It is what the pooler gives.")
first = one_hot(input_ids % 2, 2).float()
for depth, expected in ((1, 2 * first), (0, first), (2, 6 * first + 1)):
    hidden, pooled = model(input_ids, attention_mask, token_type_ids, depth)
    words = f"With depth {depth}, the table of hidden states"
    check_close(hidden, expected, words, f"Run the first {depth} of the three layers.")
    words = f"With depth {depth}, the table of pooled vectors"
    check_close(
        pooled, expected[:, 0] - 7, words, "The pooler gets what the last of them gives."
    )
### BEGIN HIDDEN TESTS
# {compare:model_wiring}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 6 · Sizes ({points:sizes} points)
#
# **Question: how large is a BERT, and where do the numbers sit?**
#
# Count the parameters of a `BertModel` from its config alone: no model is made. Every matrix but those of the
# embeddings has a bias; every layer norm has a gain and an offset for each feature; the heads share the features,
# so their number does not matter.


# %% nbgrader={"grade": false, "grade_id": "count", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(config):
    """How many numbers a BertModel has.

    config: BertConfig
    returns dict with the ints "embeddings" (tables and their norm), "layers" (all of them) and "pooler"

    Example: BERT-base -> {"embeddings": 23837184, "layers": 85054464, "pooler": 590592}, together 109,482,240
    """
    ### BEGIN SOLUTION
    D, inner = config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    attention = 4 * (D * D + D)  # query, key, value, output
    network = D * inner + inner + inner * D + D
    norms = 2 * 2 * D
    return {
        "embeddings": rows * D + 2 * D,
        "layers": config.num_hidden_layers * (attention + network + norms),
        "pooler": D * D + D,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sizes-count", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("count_parameters")
base = BertConfig()
right = {"embeddings": 23837184, "layers": 85054464, "pooler": 590592}
check_same(
    count_parameters(base),
    right,
    "The table for BERT-base",
    "A layer has 4 matrices D x D, one D x I and one I x D, 6 biases and 2 norms.",
    slips=(
        ({**right, "layers": 85054464 // 12}, "There are 12 layers."),
        ({**right, "layers": 84934656}, "The biases and the norms of the layers are missing."),
        (
            {**right, "layers": 85017600},
            "The norms of the layers are missing, 2 in each, 2 D numbers a norm.",
        ),
        ({**right, "layers": 84971520}, "The biases of the layers are missing."),
        (
            {**right, "layers": 85036032},
            "Each layer has two norms, and each norm a gain and an offset.",
        ),
        (
            {**right, "layers": 77967360},
            "attention_output is missing: the fourth matrix of attention.",
        ),
        (
            {**right, "embeddings": 23835648},
            "The norm of the embeddings is missing: 2 D numbers.",
        ),
        ({**right, "embeddings": 23442432}, "Positions and segments have tables, too."),
        (
            {**right, "embeddings": 23835648 - 1536},
            "Segments have a table of 2 rows, and the norm has a gain and an offset.",
        ),
        ({**right, "pooler": 589824}, "The pooler has a bias."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:count_parameters}
### END HIDDEN TESTS

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "sizes-table", "locked": true, "schema_version": 3, "solution": false, "task": false}
print(f"{'':8}{'L':>4}{'D':>6}{'embeddings':>14}{'layers':>14}{'pooler':>12}{'together':>14}")
for name, *sizes in (
    ("tiny", 128, 2, 2, 512),
    ("mini", 256, 4, 4, 1024),
    ("small", 512, 4, 8, 2048),
    ("medium", 512, 8, 8, 2048),
    ("base", 768, 12, 12, 3072),
    ("large", 1024, 24, 16, 4096),
):
    counted = count_parameters(BertConfig(30522, *sizes))
    print(
        f"{name:8}{sizes[1]:4}{sizes[0]:6}"
        + "".join(f"{counted[part]:>{w},}" for part, w in zip(counted, (14, 14, 12)))
        + f"{sum(counted.values()):14,}   {counted['embeddings'] / sum(counted.values()):.0%} in the embeddings"
    )

# %% [markdown]
# ## Part 7 · A published checkpoint ({points:loading} points)
#
# **Question: which number belongs where?**
#
# The first BERTs were published with names that everybody has kept since. These are the ones of your modules, and
# theirs; `N` counts layers from 0:
#
# | yours | published |
# |---|---|
# | embeddings.word | embeddings.word_embeddings |
# | embeddings.position | embeddings.position_embeddings |
# | embeddings.token_type | embeddings.token_type_embeddings |
# | embeddings.norm | embeddings.LayerNorm |
# | layers.N.attention.query (.key, .value) | encoder.layer.N.attention.self.query (.key, .value) |
# | layers.N.attention_output | encoder.layer.N.attention.output.dense |
# | layers.N.attention_norm | encoder.layer.N.attention.output.LayerNorm |
# | layers.N.intermediate | encoder.layer.N.intermediate.dense |
# | layers.N.output | encoder.layer.N.output.dense |
# | layers.N.output_norm | encoder.layer.N.output.LayerNorm |
# | pooler.dense | pooler.dense |
#
# Each is followed by `.weight` or `.bias`. The oldest files, those of 2018, call the two numbers of a norm otherwise: `gamma`
# is its weight and `beta` its bias. All else has the same name in old files.
#
# First translate one name, into that of today's files or into that of the old ones.


# %% nbgrader={"grade": false, "grade_id": "names", "locked": false, "schema_version": 3, "solution": true, "task": false}
def published_name(name, old=False):
    """The published name of a parameter of BertModel, in a file of today or in an old one.

    Example: "layers.3.attention.query.weight" -> "encoder.layer.3.attention.self.query.weight";
             "embeddings.norm.bias" -> "embeddings.LayerNorm.bias", old: "embeddings.LayerNorm.beta"
    """
    ### BEGIN SOLUTION
    published = {
        "embeddings.word": "embeddings.word_embeddings",
        "embeddings.position": "embeddings.position_embeddings",
        "embeddings.token_type": "embeddings.token_type_embeddings",
        "embeddings.norm": "embeddings.LayerNorm",
        "attention.query": "attention.self.query",
        "attention.key": "attention.self.key",
        "attention.value": "attention.self.value",
        "attention_output": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "intermediate": "intermediate.dense",
        "output": "output.dense",
        "output_norm": "output.LayerNorm",
        "pooler.dense": "pooler.dense",
    }
    owner, _, kind = name.rpartition(".")
    if old and owner.endswith("norm"):
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    if not owner.startswith("layers."):
        return f"{published[owner]}.{kind}"
    _, number, part = owner.split(".", 2)
    return f"encoder.layer.{number}.{published[part]}.{kind}"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "loading-names", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("published_name")
for name, expected in (
    ("embeddings.word.weight", "embeddings.word_embeddings.weight"),
    ("embeddings.norm.bias", "embeddings.LayerNorm.bias"),
    ("layers.0.attention.key.bias", "encoder.layer.0.attention.self.key.bias"),
    ("layers.0.attention_output.weight", "encoder.layer.0.attention.output.dense.weight"),
    ("layers.0.attention_norm.bias", "encoder.layer.0.attention.output.LayerNorm.bias"),
    ("layers.1.intermediate.weight", "encoder.layer.1.intermediate.dense.weight"),
    ("layers.1.output.weight", "encoder.layer.1.output.dense.weight"),
    ("layers.1.output_norm.weight", "encoder.layer.1.output.LayerNorm.weight"),
    ("pooler.dense.weight", "pooler.dense.weight"),
):
    check_same(
        published_name(name),
        expected,
        f"The published name of {name}",
        "Compare with the table; some names are the beginning of others (output, output_norm).",
    )
for name, expected in (
    ("embeddings.norm.weight", "embeddings.LayerNorm.gamma"),
    ("embeddings.word.weight", "embeddings.word_embeddings.weight"),
    ("layers.0.attention_norm.bias", "encoder.layer.0.attention.output.LayerNorm.beta"),
    ("layers.0.output.bias", "encoder.layer.0.output.dense.bias"),
    ("layers.1.output_norm.weight", "encoder.layer.1.output.LayerNorm.gamma"),
):
    check_same(
        published_name(name, old=True),
        expected,
        f"The name of {name} in an old file",
        "The weight of a norm is called gamma there, and its bias beta; nothing else changes.",
    )
### BEGIN HIDDEN TESTS
# {compare:published_name}
### END HIDDEN TESTS

# %% [markdown]
# Now load. A file is a dict from name to tensor, and files differ:
#
# * A BERT that was saved with its heads has `bert.` in front of each name of the table, and tensors of the heads
#   beside them (`cls.` ...). Tensors that you have no place for are left over; you return their names.
# * The oldest files have the old names of the numbers of norms, `gamma` and `beta`.
# * Numbers may be stored in another type, such as float16. Your model keeps its own type and device.
#
# If a tensor that you need is not there, or has another shape, loading fails, in words, and the model stays as it
# was: a model with half of its weights random is worse than none, because it runs.


# %% nbgrader={"grade": false, "grade_id": "load", "locked": false, "schema_version": 3, "solution": true, "task": false}
def load_published(model, tensors):
    """Put the numbers of a published checkpoint into a BertModel.

    model:   BertModel; the numbers of its parameters are changed in place, and nothing else of it
    tensors: dict, name -> tensor, as a file holds them; it stays as it is
    returns the sorted names, as the file has them, of the tensors that were not used
    raises  ValueError that names the tensor which is missing or has another shape; then nothing is changed
    """
    ### BEGIN SOLUTION
    stored = {}
    for name in tensors:
        plain = name.removeprefix("bert.")
        plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight")
        stored[plain.replace("LayerNorm.beta", "LayerNorm.bias")] = name
    found = {}
    for name, parameter in model.named_parameters():
        wanted = published_name(name)
        if wanted not in stored:
            raise ValueError(f"the checkpoint has no tensor {wanted}, which {name} needs")
        value = tensors[stored[wanted]]
        if value.shape != parameter.shape:
            raise ValueError(
                f"{wanted} has shape {list(value.shape)}, but {name} has {list(parameter.shape)}: "
                "is it a checkpoint of another size?"
            )
        found[name] = value
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found[name])
    used = {stored[published_name(name)] for name in found}
    return sorted(name for name in tensors if name not in used)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "loading-places", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("load_published")
LAYER = {
    "attention.self.query": ("D", "D"),
    "attention.self.key": ("D", "D"),
    "attention.self.value": ("D", "D"),
    "attention.output.dense": ("D", "D"),
    "attention.output.LayerNorm": ("D",),
    "intermediate.dense": ("I", "D"),
    "output.dense": ("D", "I"),
    "output.LayerNorm": ("D",),
}


def checkpoint(config, seed, prefix="", old=False, dtype=torch.float32, scale=0.5):
    """Random numbers under published names, the same on every machine."""
    letters = {
        "D": config.hidden_size,
        "I": config.intermediate_size,
        "V": config.vocab_size,
        "P": config.max_position_embeddings,
        "S": config.type_vocab_size,
    }
    sizes = {
        "embeddings.word_embeddings": ("V", "D"),
        "embeddings.position_embeddings": ("P", "D"),
        "embeddings.token_type_embeddings": ("S", "D"),
        "embeddings.LayerNorm": ("D",),
        **{
            f"encoder.layer.{n}.{part}": size
            for n in range(config.num_hidden_layers)
            for part, size in LAYER.items()
        },
        "pooler.dense": ("D", "D"),
    }
    random, tensors = torch.Generator().manual_seed(seed), {}
    for owner, size in sizes.items():
        shape = [letters[letter] for letter in size]
        weight, bias = (
            scale * torch.randn(s, generator=random, dtype=torch.float64)
            for s in (shape, shape[:1])
        )
        norm = owner.endswith("LayerNorm")
        kinds = ("gamma", "beta") if norm and old else ("weight", "bias")
        tensors[f"{prefix}{owner}.{kinds[0]}"] = (weight + norm).to(device, dtype)
        if not owner.endswith("embeddings"):
            tensors[f"{prefix}{owner}.{kinds[1]}"] = bias.to(device, dtype)
    return tensors


def check_loaded(config, left_over=(), **options):
    """Load a random checkpoint and refuse, in words, a number that is not in its place."""
    tensors = checkpoint(config, **options)
    extra = {name: torch.zeros(3, device=device) for name in left_over}
    model = BertModel(config).to(device)
    names = load_published(model, {**tensors, **extra})
    prefix, old = options.get("prefix", ""), options.get("old")
    for name, parameter in model.named_parameters():
        wanted = prefix + REFERENCE_NAME(name)
        if old:
            wanted = wanted.replace("LayerNorm.weight", "LayerNorm.gamma")
            wanted = wanted.replace("LayerNorm.bias", "LayerNorm.beta")
        slips = [
            (tensor, f"Yours is {other}.")
            for other, tensor in tensors.items()
            if tensor.shape == parameter.shape and other != wanted
        ]
        if parameter.dim() == 2 and parameter.shape[0] == parameter.shape[1]:
            slips.append(
                (
                    tensors[wanted].T,
                    "Yours is turned: published weights have the layout of torch.nn.Linear, do not transpose them.",
                )
            )
        check_close(
            parameter.detach(),
            tensors[wanted].to(torch.float32),
            f"After loading, {name}",
            f"It must hold {wanted}.",
            tolerance=1e-6,
            slips=slips,
        )
    check_same(
        names,
        sorted(extra),
        "The names of the tensors that were not used",
        "Return them sorted, as the file has them.",
    )


def REFERENCE_NAME(name):
    """By the table above, its rows in the order in which a model has its parts."""
    ours = [f"attention.{part}" for part in ("query", "key", "value")]
    ours += ["attention_output", "attention_norm", "intermediate", "output", "output_norm"]
    owner, _, kind = name.rpartition(".")
    head, _, part = owner.partition(".")
    if head == "layers":
        number, _, part = part.partition(".")
        return f"encoder.layer.{number}.{list(LAYER)[ours.index(part)]}.{kind}"
    if head == "embeddings":
        return f"embeddings.{'LayerNorm' if part == 'norm' else part + '_embeddings'}.{kind}"
    return name


check_loaded(small_config(), seed=71)
check_loaded(small_config(), seed=72, prefix="bert.", left_over=["cls.seq_relationship.bias"])
check_loaded(small_config(), seed=73, old=True)
### BEGIN HIDDEN TESTS
# {compare:loading_places}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "loading-refused", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}


def check_refused(config, tensors, name, what):
    model = filled(BertModel(config), 79)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    try:
        load_published(model, tensors)
    except ValueError as error:
        message = str(error)
    except (NotImplementedError, AssertionError):
        raise
    except Exception as error:
        raise AssertionError(
            f"{what}, loading must raise a ValueError; yours raises {type(error).__name__}: {error}"
        ) from error
    else:
        raise AssertionError(
            f"{what}, loading must raise a ValueError; yours goes on, with a part of the model that is not loaded."
        )
    assert name in message, (
        f"{what}, the error must name {name}; yours says {message!r}. If loading-places fails, mend that first."
    )
    for parameter_name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[parameter_name]), (
            f"{what}, the model must stay as it was; yours has changed {parameter_name} before it failed. "
            "Look at all tensors first, then copy."
        )


tensors = checkpoint(small_config(), 80)
missing = "encoder.layer.2.attention.self.value.bias"
check_refused(
    small_config(),
    {name: value for name, value in tensors.items() if name != missing},
    missing,
    "When the value's bias of the last layer is missing",
)
check_refused(
    small_config(vocab_size=12),
    tensors,
    "embeddings.word_embeddings.weight",
    "When the file has 11 words and the model 12",
)
### BEGIN HIDDEN TESTS
# {compare:loading_refused}
### END HIDDEN TESTS

# %% [markdown]
# And now all of it. The next test makes a checkpoint in the published layout, loads it with your function into your
# model, lets it read two pairs of segments, and compares with what the published program gives for these numbers.
# If something departs, it says at which step.

# %% nbgrader={"grade": true, "grade_id": "loading-agreement", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
STEPS = [
    [[-0.233954, -1.934839], [-0.233954, -1.934839]],
    [[0.941651, 0.771185], [0.56956, 1.354039]],
    [[-2.50381, -0.95186], [-2.485798, -0.968665]],
    [[-0.713404, -0.136272], [-0.701278, -0.33278]],
    [[0.983223, -0.503845], [0.985599, -0.439234]],
    [[-0.713404, -0.136272], [-0.701278, -0.33278]],
    [[0.983223, -0.503845], [0.985599, -0.439234]],
]


def check_agreement(config, seed, segments, steps, dtype=torch.float64, tolerance=1e-5):
    """Go through a model step by step; say which step is the first that departs."""
    model = BertModel(config).to(device, dtype).eval()
    load_published(
        model, checkpoint(config, seed, prefix="bert.", old=True, dtype=dtype, scale=0.6)
    )
    batch = make_batch([pair_input(*pair, cls_id=1, sep_id=2) for pair in segments])
    ids, types, mask = (
        batch[name].to(device) for name in ("input_ids", "token_type_ids", "attention_mask")
    )
    with torch.no_grad():
        hidden = model.embeddings(ids, types)
        states = {"Part 2 (BertEmbeddings)": hidden}
        for number, layer in enumerate(model.layers):
            hidden = layer(hidden, mask)
            states[f"Parts 3 and 4 (layer {number})"] = hidden
        states["Part 5 (Pooler)"] = model.pooler(hidden)
        last, pooled = model(ids, mask, types)
        states["Part 5 (BertModel), the hidden states"] = last
        states["Part 5 (BertModel), the pooled vector"] = pooled
    for (name, state), expected in zip(states.items(), steps):
        assert state.isfinite().all(), f"{name} gives numbers that are not finite."
        # Two numbers of each sequence, at its first position: those at the filling are nobody's business.
        got = state.flatten(1)[:, :2].double().cpu()
        assert alike(got, torch.tensor(expected, dtype=torch.float64), tolerance).all(), (
            f"{name} is the first step that departs from the published program: the first two numbers of each sequence "
            f"are {expected}; yours are {[[round(x, 4) for x in row] for row in got.tolist()]}."
        )


check_agreement(small_config(), 81, [([7, 8, 3], [9, 5]), ([4], [6])], STEPS)
### BEGIN HIDDEN TESTS
# {compare:agreement}
### END HIDDEN TESTS

# %% [markdown]
# ### What each position sees
#
# The next cell takes the loaded model apart without opening it. It changes one word of the input and looks which
# outputs change; then the same for every word. A mark in row t, column j says: what comes out at position t depends
# on word j. It does so for your model, for the same input without its mask, and for your model when each position
# reads no further than itself, as GPT does. Change nothing in it; read what it prints.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "sight", "locked": true, "schema_version": 3, "solution": false, "task": false}
config = small_config()
model = BertModel(config).to(device, torch.float64).eval()
load_published(model, checkpoint(config, 81, dtype=torch.float64, scale=0.6))
batch = make_batch(
    [pair_input([7, 8], [9], cls_id=1, sep_id=2), ([1, 5, 5, 5, 5, 5, 5, 2], [0] * 8)]
)
ids, types, mask = (
    batch[k][:1].to(device) for k in ("input_ids", "token_type_ids", "attention_mask")
)
names = ["[CLS]", "my", "dog", "[SEP]", "barks", "[SEP]", "[PAD]", "[PAD]"]


def dependence(run):
    """For each word, the positions at which another word there changes the output."""
    table = torch.zeros(8, 8, dtype=torch.bool)
    with torch.no_grad():
        before = run(ids)
        for j in range(8):
            changed = ids.clone()
            changed[0, j] = 10
            table[:, j] = ((run(changed) - before).abs().amax(-1) > 1e-9)[0].cpu()
    return table


def one_at_a_time(ids):
    """Under a causal mask position t sees words 0 to t: so read t + 1 words and keep what comes out last."""
    return torch.cat(
        [model(ids[:, : t + 1], None, types[:, : t + 1])[0][:, -1:] for t in range(8)], 1
    )


for title, run in (
    ("BERT", lambda ids: model(ids, mask, types)[0]),
    ("BERT without its mask", lambda ids: model(ids, None, types)[0]),
    ("each position reads to itself, as GPT does", one_at_a_time),
):
    print(f"\n{title}\n{'':8}" + "".join(f"{name:>7}" for name in names))
    for name, row in zip(names, dependence(run).tolist()):
        print(f"{name:8}" + "".join(f"{'x' if seen else '.':>7}" for seen in row))

with torch.no_grad():
    plain = model(ids, mask, types)[0][:, :6]
    print("\nBy how much the outputs at the 6 real positions move, at most")
    for title, (other, _) in (
        ("the two segments exchange their ids", model(ids, mask, 1 - types)),
        ("no segment ids", model(ids, mask)),
        ("the two [PAD]s are taken away", model(ids[:, :6], mask[:, :6], types[:, :6])),
        ("the mask is taken away", model(ids, None, types)),
    ):
        print(f"{title:40}{(other[:, :6] - plain).abs().max():.6f}")

# %% [markdown]
# ## Part 8 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# BERT's attention goes from piece to piece. Who asks what it knows of language wants to read it from word to word. Clark et al. (2019) therefore add up what the pieces of a
# word get, and take the mean of what they give. Somebody, or something, wrote `word_attention(weights, words)`, which does so. You do not see its code. Write
# `check_word_attention(implementation)`, which raises an error if an implementation is wrong and returns nothing if it is right. This is what a right one does:
#
# * `weights` is a float32 or float64 tensor [B, H, T, T]. In `weights[b, h, t, s]` stands what position t gives to position s. B, H and T are at least 1.
# * `words` is an int64 tensor [B, T]. It has, for each position, the number of the word of which a piece stands there, counted from 0, or -1 where no word is, as at `[CLS]`, `[SEP]`
#   and `[PAD]`. Such positions may be anywhere, and so may the pieces of a word.
# * It returns a tensor [B, H, W, W] of the dtype of `weights`. W is the largest number in `words`, that of all sequences, plus 1; so it is 0 if there is no word.
# * In row i, column j stands what word i gives to word j: for each piece of word i, the sum of what it gives to all pieces of word j; and of these sums the mean over the
#   pieces of word i.
# * Nothing is divided by anything else. Where `[SEP]` gets much, the words get little, and their row has a sum far below 1.
# * A sequence may have no piece of a word. Such a word gives 0 and gets 0 there.
# * What positions without a word give and get does not matter, even if it is `nan` or `inf`.
# * A gradient flows to `weights`, and is that of the formula.
# * Numbers are as exact as their dtype allows; their last digits may differ. `weights` and `words` stay as they are, and an answer depends on no earlier call.
#
# For example, weights [[[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]]] and words [[0, 0, 1]] give [[[[0.45, 0.55], [0.6, 0.4]]]].
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_word_attention(implementation):
    """Raise an error if an implementation of `word_attention` is wrong; return nothing if it is right."""

    ### BEGIN SOLUTION
    def wanted(weights, words):
        W = int(words.max()) + 1
        table = weights.new_zeros(*weights.shape[:2], W, W)
        for b, row in enumerate(words.tolist()):
            for t, i in enumerate(row):
                for s, j in enumerate(row):
                    if min(i, j) >= 0:
                        table[b, :, i, j] += weights[b, :, t, s] / row.count(i)
        return table

    def compare(weights, words, near=1e-10):
        copies = weights.clone(), words.clone()
        found, right = implementation(weights, words), wanted(weights, words)
        assert words.equal(copies[1]) and weights.nan_to_num().equal(copies[0].nan_to_num())
        assert found.dtype == weights.dtype and found.shape == right.shape
        assert (found - right).abs().le(near).all()

    rows = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]
    three = torch.tensor([[rows]], device=device)
    found = implementation(three, torch.tensor([[0, 0, 1]], device=device))
    assert (found.cpu() - torch.tensor([[[[0.45, 0.55], [0.6, 0.4]]]])).abs().max() < 1e-5
    for numbers in (
        [[-1, 0, 0, 1], [2, -1, 0, 2]],
        [[0, 0, 1, 0], [4, 3, -1, 3]],
        [[-1, 0, 1, -1], [-1, -1, -1, -1]],
        [[-1] * 4] * 2,
    ):
        words = torch.tensor(numbers, device=device)
        weights = (3 * torch.randn(2, 3, 4, 4, dtype=torch.float64)).softmax(3).to(device)
        compare(weights, words)
        compare(weights.float(), words, 1e-5)
        compare(weights / 3e4, words)
        compare(weights[:, :1, 2:3, 2:3], words[:, 2:3])
        for nothing in (math.nan, math.inf):
            for side in (words[:, None, :, None], words[:, None, None, :]):
                compare(weights.masked_fill(side < 0, nothing), words)
        if words.max() >= 0:
            leaf, share = weights.requires_grad_(), torch.rand_like(wanted(weights, words))
            tables = implementation(leaf, words), wanted(leaf, words)
            slopes = [torch.autograd.grad((share * table).sum(), leaf)[0] for table in tables]
            assert torch.allclose(*slopes)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_word_attention}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_word_attention hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 9 · In your own words ({points:explain} points)
#
# Look at what the last cell of Part 7 printed. Then write at most 200 words:
#
# 1. In the first table the columns of `[PAD]` are empty but for the diagonal, and its rows are not. What does each
#    of these say about `[PAD]`, and does it matter that the rows are not empty?
# 2. Which marks of the first table are missing in the third, and why can a model that reads like the first not be
#    trained to predict the next word at every position?
# 3. What do the numbers for the segment ids say, and what would the model not know about the input if they were
#    left out, though it still sees both `[SEP]`s?
# 4. Which of the last four lines is a control, that is, must show nothing if the model is right, and which mistake
#    would show there?
#
# **How it is marked.** Each line earns one of the {points:explain} points:
#
# * You say what follows from the columns and what from the rows.
# * You compare the two tables, and the reason follows from what such a model is trained to do.
# * You cite a number, and say what the model learns from segment ids and from nothing else.
# * The control stands beside a mistake that it would show.

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**, a point each:
#
# * It says that no real position depends on a `[PAD]` (empty columns), that the outputs at `[PAD]` are computed all
#   the same (rows), and that nobody reads them.
# * It names the marks right of the diagonal (later words), and says that the word to be predicted would be among the
#   inputs, so it could be copied.
# * It cites a number and says that the same word gets another vector in the other segment; without it the segment
#   must be inferred from the position of `[SEP]` by attention.
# * It names the line on filling that is taken away, and a mistake such as a mask that is ignored or upside down.
#
# **All of it:**
#
# The columns of [PAD] are empty at all real positions: whatever stands there, no real output changes, because its
# keys get weight 0. (The diagonal is its own residual.) Its rows are not empty: a [PAD] is a query like any other
# and mixes real words into a vector. Nobody reads that vector, so it does not matter. The third table lacks all
# marks right of the diagonal: there a position depends on itself and on earlier words alone. In the first table
# every position depends on every real word, the next one included. A model that is to predict it would find it in
# its input and copy it, and would learn nothing. With the segment ids exchanged or left out all outputs move: each
# position gets the row of its segment, so the same word is another input in the first segment and in the second.
# Without them the model would have to find out by attention on which side of the [SEP] it stands. The control is
# the line on the two [PAD]s: taking them away must change nothing (0 up to rounding). A mask that is ignored or
# upside down would show there.
#
# **Two of four:** [PAD] gets weight 0, so its columns are empty; its rows are computed all the same, but nobody uses
# them. The line on the two [PAD]s that are taken away is the control: if the mask were ignored, the number would not
# be 0. The third table has fewer marks because the model is causal. Segment ids tell the two sentences apart.
#
# **None of it:** [PAD] is not a word, so the model does not look at it. The third table is a triangle because later
# words are masked. Segment ids are needed for two sentences. All four lines are controls.
# ### END SOLUTION
