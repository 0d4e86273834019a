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
#       - published.safetensors
#     withholds:
#       - course_lib
#       - transformers
#       - tokenizers
#       - sentence_transformers
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
# # Capstone · Your own BERT
#
# You have written a softmax that leaves words out, a layer norm, a tokenizer, an encoder, a loss for hidden words, a
# pooling and a search, each in its own notebook, each tested alone. None of them has read a text. Here they become one program: it
# loads a model that somebody has pre-trained and published, reads sentences, guesses words that are hidden from it, and is
# measured on documentation that was never trained on. Then you write a report on what it can do.
#
# You need what you wrote in the assignments before this one, PyTorch, and about three hours, most of them for the
# report. There are {points:total} points. No GPU is needed; if there is one, the notebook uses it.
#
# {set-up}
#
# **How it works.** The cells of Part 1 are filled by a program. In a terminal, type
#
#     course assemble capstone.ipynb
#
# in the folder of this notebook. It looks for your other notebooks beside that folder (or where `--from FOLDER` says),
# and copies your answers. Without it, copy them yourself: each cell says which ones. If a test says that a part of
# yours is wrong, mend it in its own notebook and assemble again. Then replace each `raise NotImplementedError()` by your
# code, and run the tests below it. When your work is graded, the same cells test more. Do not change, copy or delete the
# test cells. Before you hand in, restart the kernel and run everything from the top; `course check capstone.ipynb`
# tells you what is amiss. The file `published.safetensors` belongs to this notebook and lies beside it.
#
# **What you may use.** Your own parts, and everything in PyTorch except what you built. Withheld are: {withholds}.
#
# **Letters for shapes.** B: sequences in the batch. T: positions. D: features of a position. V: entries of the
# vocabulary. N: texts, or positions that are asked for. Masks are bool, and True means: a real token.

# %%
import itertools
import math
import unicodedata  # noqa: F401 (the given cell of Part 1 uses it)
from dataclasses import dataclass

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
IGNORE = -100  # the label of a position that does not count


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


def made_up_tensors(sizes, seed):
    """A checkpoint with the published names and random numbers."""
    random = torch.Generator().manual_seed(seed)
    D, inner = sizes["hidden_size"], sizes["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (sizes["vocab_size"], D),
        "embeddings.position_embeddings.weight": (sizes["max_position_embeddings"], D),
        "embeddings.token_type_embeddings.weight": (sizes["type_vocab_size"], D),
        "embeddings.LayerNorm.weight": (D,),
        "embeddings.LayerNorm.bias": (D,),
        "pooler.dense.weight": (D, D),
        "pooler.dense.bias": (D,),
    }
    for layer in range(sizes["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes |= {f"{name}.{part}.weight": (D, D), f"{name}.{part}.bias": (D,)}
        for part, (rows, columns) in {
            "attention.output": (D, D),
            "intermediate": (inner, D),
            "output": (D, inner),
        }.items():
            shapes[f"{name}.{part}.dense.weight"] = (rows, columns)
            shapes[f"{name}.{part}.dense.bias"] = (rows,)
        for part in ("attention.output", "output"):
            shapes[f"{name}.{part}.LayerNorm.weight"] = (D,)
            shapes[f"{name}.{part}.LayerNorm.bias"] = (D,)
    shapes = {f"bert.{name}": shape for name, shape in shapes.items()}
    shapes |= {
        "cls.predictions.transform.dense.weight": (D, D),
        "cls.predictions.transform.dense.bias": (D,),
        "cls.predictions.transform.LayerNorm.weight": (D,),
        "cls.predictions.transform.LayerNorm.bias": (D,),
        "cls.predictions.bias": (sizes["vocab_size"],),
    }
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


# %% [markdown]
# ## Part 1 · Your parts ({points:together} points)
#
# **Question: do they fit together?**
#
# `course assemble` fills the five cells of this part. The first takes `masked_softmax` from Assignment 1 and
# `LayerNorm` from Assignment 2. The tests ask each part for all that its assignment asks, a sink for example.

# %% parts=["attention/masked-softmax", "transformer/norm"] nbgrader={"grade": false, "grade_id": "blocks", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
# {parts}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "together-blocks", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("masked_softmax", "LayerNorm")
check_close(
    masked_softmax(
        tensor([[0.0, 5.0, math.log(3.0)]]), torch.tensor([[True, False, True]], device=device)
    ),
    tensor([[0.25, 0.0, 0.75]]),
    "masked_softmax of [0, 5, ln 3] where the second may not be attended to",
    "Mend masked_softmax in Assignment 1.",
    slips=(
        (tensor([[1.0, 148.4131591, 3.0]]) / 152.4131591, "The mask is ignored."),
        (
            tensor([[1.0, 0.0, 3.0]]) / 152.4131591,
            "Mask before the softmax, so that what is left adds up to 1.",
        ),
    ),
)
check_close(
    masked_softmax(
        tensor([0.0, 5.0, math.log(3.0)]), tensor([True, False, True]), sink=math.log(4)
    ),
    tensor([0.125, 0.0, 0.375]),
    "masked_softmax of the same with a sink of score ln 4",
    "Mend masked_softmax in Assignment 1: the sink takes its share.",
)
norm = LayerNorm(4, eps=0.5).to(device)
check_close(
    norm(tensor([[1.0, 2.0, 3.0, 6.0]])).detach(),
    tensor([[-1.0, -0.5, 0.0, 1.5]]),
    "LayerNorm of [1, 2, 3, 6] with eps = 0.5",
    "Mend LayerNorm in Assignment 2.",
)
with torch.no_grad():
    norm.gain.copy_(tensor([3.0, 2.0, 1.0, 4.0]))
    norm.offset.copy_(tensor([0.5, 0.0, -1.0, 1.0]))
check_close(
    norm(tensor([[1.0, 2.0, 3.0, 6.0]])).detach(),
    tensor([[-2.5, -1.0, -1.0, 7.0]]),
    "The same with gains of 3, 2, 1, 4 and offsets of 0.5, 0, -1, 1",
    "Mend LayerNorm in Assignment 2: times the gain, plus the offset.",
)
norm = LayerNorm(4, eps=4.0, centred=False).to(device)
check_close(
    norm(tensor([[1.0, 1.0, 3.0, 3.0]])).detach(),
    tensor([[1 / 3, 1 / 3, 1.0, 1.0]]),
    "LayerNorm of [1, 1, 3, 3] with eps = 4 and not centred",
    "Mend LayerNorm in Assignment 2: the mean is not taken away.",
)
### BEGIN HIDDEN TESTS
# {compare:attention/masked_softmax}
# {compare:attention/masked_softmax_edges}
# {compare:transformer/LayerNorm}
# {compare:transformer/equal_features}
### END HIDDEN TESTS

# %% [markdown]
# Next, the tokenizer of Assignment 3: `encode_word` and `encode`. The cell before it is the one that was given there.

# %% parts=["wordpiece/normaliser"] nbgrader={"grade": false, "grade_id": "normaliser", "locked": true, "schema_version": 3, "solution": false, "task": false}
# {parts}

# %% parts=["wordpiece/word", "wordpiece/text"] nbgrader={"grade": false, "grade_id": "tokens", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
# {parts}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "together-tokens", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("encode_word", "encode")
SYLLABLES = {"re", "##turn", "##t", "##s", "return", "none", ".", "##ed"}
check_same(
    [piece for piece, _, _ in encode("Returns None.", SYLLABLES)],
    ["return", "##s", "none", "."],
    "The pieces of 'Returns None.'",
    "Mend encode_word or encode in Assignment 3.",
    slips=(
        (["re", "##turn", "##s", "none", "."], "Take the longest piece first."),
        (
            ["return", "##s", "[UNK]", "."],
            "The text is made lower case by split_words: use it.",
        ),
    ),
)
check_same(
    encode_word("returned", {"return", "@@ed", "##ed", "re"}, mark="@@"),
    ["return", "@@ed"],
    "The pieces of 'returned', where @@ marks what does not begin a word",
    "Mend encode_word in Assignment 3.",
)
### BEGIN HIDDEN TESTS
# {compare:wordpiece/encode_word_longest}
# {compare:wordpiece/encode_word_unknown}
# {compare:wordpiece/offsets_spans}
# {compare:wordpiece/offsets_unicode}
### END HIDDEN TESTS

# %% [markdown]
# The encoder of Assignment 4, with all that it is made of, and the two functions that load a published file.

# %% parts=["bert/pair", "bert/batch", "bert/embed", "bert/self-attention", "bert/activation", "bert/block", "bert/pool", "bert/whole", "bert/names", "bert/load"] nbgrader={"grade": false, "grade_id": "model", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
# {parts}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "together-model", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld(
    "pair_input",
    "make_batch",
    "gelu",
    "SelfAttention",
    "BertLayer",
    "BertModel",
    "load_published",
)
config = BertConfig(13, 8, 2, 2, 12, 10, 2)
tensors = made_up_tensors(vars(config), seed=1)
trial = BertModel(config).eval()
left = load_published(trial, tensors)
check_same(
    left,
    sorted(name for name in tensors if name.startswith("cls.")),
    "What load_published does not use",
    "Mend load_published in Assignment 4: only the heads are left over.",
)
pair = make_batch([pair_input([7, 8, 9], [5], 2, 3), pair_input([6], None, 2, 3)], pad_id=0)
with torch.no_grad():
    together, _ = trial(**pair)
    alone, _ = trial(torch.tensor([[2, 6, 3]]))
check_close(
    together[1, :3],
    alone[0],
    "The states of a sequence in a batch with filling",
    "They must be those of the sequence alone. Mend SelfAttention in Assignment 4: is the mask used in every layer?",
)
shallow = BertModel(BertConfig(13, 8, 1, 2, 12, 10, 2)).eval()
load_published(shallow, tensors)
with torch.no_grad():
    check_close(
        trial(**pair, depth=1)[0],
        shallow(**pair)[0],
        "The states after the first of two layers",
        "Mend BertModel in Assignment 4: `depth` says how many layers run.",
    )
### BEGIN HIDDEN TESTS


def run_published(sizes, tensors, batch):
    """The states and the pooled state of a model with published numbers."""
    model = BertModel(BertConfig(**sizes)).to(device).eval()
    load_published(model, tensors)
    with torch.no_grad():
        states, pooled = model(**batch)
    return states * batch["attention_mask"][..., None], pooled


# {compare:run_published}
# {compare:bert/pair_input}
# {compare:bert/pair_truncate}
# {compare:bert/make_batch}
# {compare:bert/model_wiring}
# {compare:bert/loading_places}
### END HIDDEN TESTS

# %% [markdown]
# From Assignment 5: the holes, and what is asked of them.

# %% parts=["pretraining/mask", "pretraining/rows", "pretraining/loss"] nbgrader={"grade": false, "grade_id": "holes", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
# {parts}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "together-holes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("mask_tokens", "masked_logits", "masked_loss")
ids = torch.randint(5, 40, (60, 50), generator=torch.Generator().manual_seed(5))
ids[:, 0], ids[:, 30:] = 2, 0
before = ids.clone()
masked, labels = mask_tokens(
    ids, (0, 1, 2, 3, 4), 4, 40, torch.Generator().manual_seed(6), rate=0.4
)
assert torch.equal(ids, before), (
    "mask_tokens changes the ids that it is given. Mend it in Assignment 5."
)
asked = labels != IGNORE
assert not asked[before < 5].any(), (
    "mask_tokens asks for special tokens. Mend it in Assignment 5: they are never hidden."
)
assert torch.equal(labels[asked], before[asked]), (
    "The labels of mask_tokens must be the ids as they were. Mend it in Assignment 5."
)
assert abs(asked[before >= 5].double().mean().item() - 0.4) < 0.06, (
    f"mask_tokens asks for {asked[before >= 5].double().mean().item():.2f} of the words at a rate of 0.4. Mend it in Assignment 5."
)
_, labels = mask_tokens(
    ids[:, :2], (0, 1, 2, 3, 4), 4, 40, torch.Generator().manual_seed(8), rate=0.2
)
assert (labels == IGNORE).all(dim=1).any(), (
    "mask_tokens asks for a word of every text, also of those that have one. Mend it in Assignment 5: each word is chosen "
    "with probability `rate`, so of some texts none is."
)
### BEGIN HIDDEN TESTS
# {compare:pretraining/choice}
# {compare:pretraining/holes}
# {compare:pretraining/fates}
# {compare:pretraining/calls}
# {compare:pretraining/masked_logits}
# {compare:pretraining/masked_loss}
### END HIDDEN TESTS

# %% [markdown]
# Last, what makes one vector of a text and compares vectors, from Assignment 6, and the search of Assignment 7.

# %% parts=["fine-tuning/cosine", "fine-tuning/pool", "sentence-bert/find"] nbgrader={"grade": false, "grade_id": "vectors", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
# {parts}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "together-vectors", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("cosines", "mean_pool", "search")
check_close(
    mean_pool(
        tensor([[[9.0], [1.0], [3.0], [9.0], [7.0]]]),
        tensor([[2, 50, 60, 3, 0]], torch.int64),
        tensor([[1, 1, 1, 1, 0]], torch.bool),
        (2, 3),
    ),
    tensor([[2.0]]),
    "mean_pool of the words 1 and 3 between [CLS] and [SEP], with filling behind",
    "Mend mean_pool in Assignment 6.",
    slips=(
        (tensor([[5.5]]), "[CLS] and [SEP] are no words."),
        (tensor([[5.8]]), "Leave out the filling, [CLS] and [SEP]."),
    ),
)
check_close(
    cosines(tensor([[3.0, 0.0], [2.0, 2.0]])),
    tensor([[1.0, math.sqrt(0.5)], [math.sqrt(0.5), 1.0]]),
    "cosines of [3, 0] and [2, 2]",
    "Mend cosines in Assignment 6.",
)
check_close(
    cosines(tensor([[3.0, 0.0], [2.0, 2.0]]), tensor([2.0, 0.0])),
    tensor([[1.0, 0.0], [0.0, 1.0]]),
    "cosines of [3, 0] and [2, 2] with [2, 0] in common",
    "Mend cosines in Assignment 6: subtract first what they have in common.",
)
scores, indices = check_pair(
    search(tensor([[2.0, 0.0]]), tensor([[1.0, 0.0], [0.0, 9.0], [3.0, 4.0]]), 2, 2),
    "search must return (scores, indices)",
)
check_same(
    indices.tolist(),
    [[0, 2]],
    "The two nearest of [1, 0], [0, 9] and [3, 4] to [2, 0], in blocks of 2",
    "Mend search in Assignment 7.",
)
### BEGIN HIDDEN TESTS
# {compare:fine-tuning/cosines}
# {compare:fine-tuning/mean_pool}
# {compare:sentence-bert/search}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 2 · Published weights ({points:published} points)
#
# **Question: what makes a program of yours a BERT?**
#
# The numbers. The next cell reads `published.safetensors`: the tensors under their published names, the sizes, the
# vocabulary in the order of the ids, and what a right program gives for a few texts. It is *tiny*, with two layers of 128
# features; nothing in your program knows that.

# %% nbgrader={"grade": false, "grade_id": "checkpoint", "locked": true, "schema_version": 3, "solution": false, "task": false}
import hashlib
import json
import pathlib

from safetensors import safe_open

CHECKPOINT = "published.safetensors"
CHECKSUM = "{sha256:published.safetensors}"


def read_published():
    """The tensors of the file, float32, and what it says about itself."""
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
        stored = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118 (a safe_open is no dict)
    return stored, facts


PUBLISHED, FACTS = read_published()
RECORDED = FACTS["recorded"]
VOCAB = FACTS["vocab"]
PLACE = {piece: number for number, piece in enumerate(VOCAB)}
PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = (PAD, UNK, CLS, SEP, MASK)
print(f"{sum(t.numel() for t in PUBLISHED.values()):,} numbers, {len(VOCAB):,} pieces")

# %% [markdown]
# Write `load_bert`, which makes a `BertModel` of these sizes with these numbers, ready to be used: on `device`, and
# switched to evaluation. Its parameters can still be trained.


# %% nbgrader={"grade": false, "grade_id": "load-model", "locked": false, "schema_version": 3, "solution": true, "task": false}
def load_bert(sizes, tensors):
    """A BertModel with published numbers.

    sizes:   dict with the fields of BertConfig, without dropout
    tensors: dict, published name -> tensor
    returns a BertModel on device, in evaluation
    """
    ### BEGIN SOLUTION
    model = BertModel(BertConfig(**sizes))
    load_published(model, tensors)
    return model.to(device).eval()
    ### END SOLUTION


# %% [markdown]
# Then write `to_batch`: texts in, one batch for the model out. A text is cut by your `encode`; a piece becomes its
# place in the vocabulary; `pair_input` adds [CLS] and [SEP], with *this* vocabulary's ids (`CLS`, `SEP`), not the defaults
# of Assignment 4. Where a text says `[MASK]`, the id is `MASK`: `encode` alone would cut it into `[`, `mask` and `]`, so cut
# the text there first.


# %% nbgrader={"grade": false, "grade_id": "to-batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def to_batch(texts, max_length=128):
    """Texts to a batch for BertModel.

    texts: list of strings; "[MASK]" in them is one piece
    returns dict of tensors [B, T] on device: "input_ids", "token_type_ids", "attention_mask"

    Example: ["The [MASK] is"] -> input_ids [[CLS, PLACE["the"], MASK, PLACE["is"], SEP]]
    """
    ### BEGIN SOLUTION
    pieces = set(VOCAB)
    inputs = []
    for text in texts:
        ids = []
        for number, part in enumerate(text.split("[MASK]")):
            ids += [MASK] * (number > 0)
            ids += [PLACE[piece] for piece, _, _ in encode(part, pieces)]
        inputs.append(pair_input(ids, None, CLS, SEP, max_length))
    return {name: value.to(device) for name, value in make_batch(inputs, PAD).items()}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "published-ids", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("to_batch")
for text, expected in zip(RECORDED["texts"], RECORDED["ids"]):
    check_same(
        to_batch([text])["input_ids"].tolist(),
        [expected],
        f"The ids of {text!r}",
        "Cut with encode, look up in PLACE, [CLS] in front and [SEP] behind.",
        slips=(
            ([expected[1:-1]], "[CLS] and [SEP] are missing: use pair_input."),
            (
                [[101, *expected[1:-1], 102]],
                "Pass CLS and SEP to pair_input: here they are 2 and 3.",
            ),
        ),
    )
check_same(
    to_batch(["The [MASK] is"])["input_ids"].tolist(),
    [[CLS, PLACE["the"], MASK, PLACE["is"], SEP]],
    "The ids of 'The [MASK] is'",
    "Cut the text at [MASK], encode what is on both sides, and put MASK between.",
    slips=(
        (
            [[CLS, *(PLACE[piece] for piece in ("the", "[", "mask", "]", "is")), SEP]],
            "[MASK] is one piece; yours is cut into [, mask and ]. Cut the text there first.",
        ),
        ([[CLS, PLACE["the"], PLACE["is"], SEP]], "MASK is missing in the place of [MASK]."),
    ),
)
### BEGIN HIDDEN TESTS
# {compare:to_batch}
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "published-states", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("load_bert")
bert = load_bert(FACTS["sizes"], PUBLISHED)
assert not bert.training, (
    "load_bert must give a model in evaluation: call eval(), or its dropout stays on."
)
rows = [torch.tensor(ids, device=device) for ids in RECORDED["ids"]]
ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
with torch.no_grad():
    states, _ = bert(ids, ids != PAD, torch.zeros_like(ids))
for number, expected in enumerate(RECORDED["hidden"]):
    check_close(
        states[number, : len(expected), :3],
        torch.tensor(expected, device=device),
        f"The first three numbers of each state of text {number}",
        "The program that wrote the file gives others. Do all tensors arrive, and is the filling masked?",
        tolerance=1e-3,
    )
### BEGIN HIDDEN TESTS
# {compare:load_bert}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 3 · The head ({points:head} points)
#
# **Question: how does a state become a word?**
#
# Pre-training had a head that the encoder of Assignment 4 left over. With $h$ the state of a position:
#
# $$ g = \operatorname{LayerNorm}(\operatorname{GELU}(h W^\top + b)), \qquad \text{logits} = g E^\top + c $$
#
# $W$ and $b$ are `cls.predictions.transform.dense.weight` and `.bias`, the norm's gain and offset
# `cls.predictions.transform.LayerNorm.weight` and `.bias`. $E$ is the table of word embeddings itself,
# `bert.embeddings.word_embeddings.weight`: a word is likely if its embedding is like what is expected. $c$ is
# `cls.predictions.bias`. The norm is your `LayerNorm`, with the `layer_norm_eps` of the sizes. Gradients run through the
# head, so that a model below it can be trained.
#
# Often a few words are enough: whoever wants to know whether *is* or *are* fits needs two logits, not V. With `only`, the ids
# of some pieces, the head gives the logits of these alone, in their order, and multiplies by their embeddings alone.


# %% nbgrader={"grade": false, "grade_id": "make-head", "locked": false, "schema_version": 3, "solution": true, "task": false}
def make_head(sizes, tensors):
    """The head that guesses words.

    sizes, tensors: as in load_bert
    returns a function head(hidden, only=None):
        hidden: float [..., D] on device
        only:   int64 [n] on device, ids of pieces. None: all V
        returns logits [..., n], or [..., V]
    """
    ### BEGIN SOLUTION
    names = ("transform.dense.weight", "transform.dense.bias", "bias")
    W, b, c = (tensors[f"cls.predictions.{name}"].to(device) for name in names)
    E = tensors["bert.embeddings.word_embeddings.weight"].to(device)  # [V, D]
    norm = LayerNorm(sizes["hidden_size"], eps=sizes["layer_norm_eps"]).to(device)
    with torch.no_grad():
        norm.gain.copy_(tensors["cls.predictions.transform.LayerNorm.weight"])
        norm.offset.copy_(tensors["cls.predictions.transform.LayerNorm.bias"])

    def head(hidden, only=None):
        rows, biases = (E, c) if only is None else (E[only], c[only])
        return norm(gelu(hidden @ W.T + b)) @ rows.T + biases

    return head
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "head-logits", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("make_head")
bert, head = load_bert(FACTS["sizes"], PUBLISHED), make_head(FACTS["sizes"], PUBLISHED)
with torch.no_grad():
    states, _ = bert(**to_batch(RECORDED["texts"][:1]))
    logits = check_shape(head(states), [1, states.shape[1], len(VOCAB)], "What the head gives")
    highest, best = logits[0].max(dim=-1)
check_same(
    [VOCAB[index] for index in best.tolist()],
    [VOCAB[index] for index, _ in RECORDED["logits"]],
    f"The likeliest piece at each position of {RECORDED['texts'][0]!r}",
    "First the dense layer, then GELU, then the norm; then the product with the embeddings of all words, and the bias.",
)
check_close(
    highest,
    torch.tensor([logit for _, logit in RECORDED["logits"]], device=device),
    "The highest logit of each position",
    "Is the bias added, and is the norm's eps the one of the sizes?",
    tolerance=1e-3,
)
only = torch.tensor([PLACE["the"], best[1], PLACE["is"], best[0]], device=device)
with torch.no_grad():
    check_close(
        head(states, only=only),
        logits[..., only],
        "The logits of four pieces alone",
        "Take the rows of E and the entries of c that `only` names, in its order.",
        tolerance=1e-3,
    )
### BEGIN HIDDEN TESTS
# {compare:make_head}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 4 · Fill the hole ({points:fill} points)
#
# **Question: does it know Python's documentation?**
#
# Write `fill_mask`. It reads a text with one [MASK] and returns the `most` likeliest pieces for the hole with their
# probabilities. Special tokens are no words: they may not be proposed, and the probabilities of all others add up to 1. Your
# `masked_softmax` does that.


# %% nbgrader={"grade": false, "grade_id": "fill-the-hole", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fill_mask(bert, head, text, most=4):
    """Guess the hidden word.

    bert, head: from load_bert and make_head
    text:       string with one [MASK]
    returns list of `most` pairs (piece, probability), the likeliest first; strings and Python floats
    raises  ValueError if the text has no [MASK], or several
    """
    ### BEGIN SOLUTION
    if text.count("[MASK]") != 1:
        raise ValueError(f"{text!r} has {text.count('[MASK]')} [MASK]; it needs one")
    batch = to_batch([text])
    with torch.no_grad():
        states, _ = bert(**batch)
        logits = head(states[batch["input_ids"] == MASK])[0]  # [V]
    allowed = torch.ones(len(VOCAB), dtype=torch.bool, device=device)
    allowed[list(SPECIAL)] = False
    chances, places = masked_softmax(logits, allowed).topk(most)
    return [(VOCAB[place], chance) for place, chance in zip(places.tolist(), chances.tolist())]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fill-guesses", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check_withheld("fill_mask")
bert, head = load_bert(FACTS["sizes"], PUBLISHED), make_head(FACTS["sizes"], PUBLISHED)
for text, expected in RECORDED["holes"].items():
    guesses = fill_mask(bert, head, text)
    check_same(
        [piece for piece, _ in guesses],
        [piece for piece, _ in expected],
        f"The four likeliest pieces for {text!r}",
        "Take the state at the hole, the head, masked_softmax without SPECIAL, then the highest four.",
    )
    for (piece, chance), (_, share) in zip(guesses, expected):
        assert isinstance(chance, float), (
            f"Probabilities are Python floats; {piece} has {chance!r}."
        )
        assert abs(chance - share) < 1e-3, (
            f"For {text!r}, {piece} has probability {share:.4f}; yours is {chance:.4f}. The softmax is over all "
            "pieces but the special ones."
        )
for wrong in ("No hole.", "[MASK] and [MASK]"):
    try:
        fill_mask(bert, head, wrong)
    except ValueError:
        continue
    raise AssertionError(
        f"fill_mask must raise ValueError for {wrong!r}: it has {wrong.count('[MASK]')} holes."
    )
### BEGIN HIDDEN TESTS
# {compare:fill_mask}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 5 · The score ({points:score} points)
#
# **Question: how often is it right about text that nobody trained on?**
#
# The next cell reads documentation of modules that were kept apart when this model was trained, and cuts it into
# paragraphs.

# %% nbgrader={"grade": false, "grade_id": "held-out", "locked": true, "schema_version": 3, "solution": false, "task": false}
import importlib
import inspect
import re
from collections import Counter

HELD_OUT = "xmlrpc.server multiprocessing.shared_memory multiprocessing.spawn queue email.policy netrc xml.dom torch.mps torch.amp.autocast_mode torch.nn.attention.bias"


def documentation(names):
    """What the modules say about themselves, their functions and their classes."""
    for name in names:
        module = importlib.import_module(name)
        yield inspect.getdoc(module) or ""
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) == module.__name__:
                methods = vars(thing).values() if inspect.isclass(thing) else ()
                for described in (thing, *filter(inspect.isfunction, methods)):
                    yield inspect.getdoc(described) or ""


def paragraphs(names):
    """Paragraphs of prose, each once, in their order."""
    found = {}
    for text in documentation(names):
        for part in re.split(r"\n\s*\n", text):
            line = " ".join(part.split())
            if (
                len(line.split()) >= 6
                and line[0].isupper()
                and not re.search(r">>>|::|[{}=|]", line)
            ):
                found[line] = None
    return list(found)


TEST = paragraphs(HELD_OUT.split())
print(f"{len(TEST)} paragraphs, for example: {TEST[0]}")

# %% [markdown]
# Write `masked_accuracy`. It takes the texts in their order, `batch_size` at a time, hides 15% of the pieces with your
# `mask_tokens`, which leaves `SPECIAL` alone, and lets the model guess at the positions that are asked for. A guess is the
# piece with the highest logit of all. Return the share of right guesses over all texts together. One `torch.Generator`,
# seeded once, serves all batches, so that two runs agree.


# %% nbgrader={"grade": false, "grade_id": "accuracy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_accuracy(bert, head, texts, seed=0, batch_size=16):
    """Share of hidden pieces that are guessed.

    bert, head: from load_bert and make_head
    texts:      list of strings
    seed:       of one torch.Generator for all batches
    returns Python float, right guesses / pieces that were asked for, over all batches
    """
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed)
    right, asked = 0, 0
    for begin in range(0, len(texts), batch_size):
        batch = to_batch(texts[begin : begin + batch_size])
        masked, labels = mask_tokens(
            batch["input_ids"].cpu(), SPECIAL, MASK, len(VOCAB), generator
        )
        with torch.no_grad():
            states, _ = bert(
                masked.to(device), batch["attention_mask"], batch["token_type_ids"]
            )
            logits, true = masked_logits(head, states, labels.to(device))
        right += (logits.argmax(dim=-1) == true).sum().item()
        asked += len(true)
    return right / asked
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "score-held-out", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
check_withheld("masked_accuracy")
bert, head = load_bert(FACTS["sizes"], PUBLISHED), make_head(FACTS["sizes"], PUBLISHED)
accuracy = masked_accuracy(bert, head, TEST)
assert isinstance(accuracy, float), (
    f"masked_accuracy must return a Python float; yours is {accuracy!r}."
)
assert accuracy < 0.6, (
    f"{100 * accuracy:.1f}% is too good to be true: count only the positions that are asked for, and let the model "
    "see the masked ids, not the true ones."
)
assert accuracy > 0.28, (
    f"Your program guesses {100 * accuracy:.1f}% of the hidden pieces; with these weights it must be more than 28%. "
    "If Parts 1 to 4 pass, look at what the model is given, and at what the guesses are compared with."
)
### BEGIN HIDDEN TESTS


def said(ids, real):
    """What the stand-in says: at [MASK] one of two words, by all that it reads; else what it sees."""
    odd = ((ids + 1) * real).sum(dim=1, keepdim=True) % 2
    return torch.where(ids == MASK, odd * PLACE["list"] + (1 - odd) * PLACE["the"], ids)


class Says(torch.nn.Module):
    """Stands in for a model: the state of a position is the id that it says, and in training 0."""

    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = said(input_ids, real.long()).float() * (not self.training)
        return states.unsqueeze(-1), states[:, :1]


def sure(hidden):
    """Logits of 1 for the piece that is said."""
    return torch.nn.functional.one_hot(hidden[..., 0].long(), len(VOCAB)).float()


def unsure(hidden):
    """The same, and 2 for [UNK] where the piece has an odd id."""
    logits = sure(hidden)
    logits[..., UNK] = 2 * (hidden[..., 0] % 2)
    return logits


def replayed(texts, head, seed=0, batch_size=16):
    """The share that is right, with the holes that the seed makes."""
    generator, hits = torch.Generator().manual_seed(seed), []
    for begin in range(0, len(texts), batch_size):
        batch = to_batch(texts[begin : begin + batch_size])
        ids, real = batch["input_ids"].cpu(), batch["attention_mask"].cpu()
        masked, labels = mask_tokens(ids, SPECIAL, MASK, len(VOCAB), generator, 0.15)
        states = said(masked, real.long())[labels != IGNORE].float()
        hits += (head(states[:, None]).argmax(dim=-1) == labels[labels != IGNORE]).tolist()
    return sum(hits) / len(hits)


def check_replay(kind, hint, texts, head=sure, **options):
    before, state = [*texts], torch.get_rng_state()
    expected = replayed(texts, head, **options)
    for run in ("first", "second"):
        share = masked_accuracy(Says().eval(), head, texts, **options)
        assert abs(share - expected) < 1e-9, (
            f"With {kind}, the share of right guesses is wrong in the {run} run. {hint}"
        )
    assert texts == before, "masked_accuracy must leave the list of texts as it was."
    assert torch.equal(torch.get_rng_state(), state), (
        "Draw from a torch.Generator of your own, not from torch's common one."
    )


words, snowman = ("the", "list", "a"), "\N{SNOWMAN} the \N{SNOWMAN}"
short = [" ".join(words[(n + k * k) % 3] for k in range(n % 5 + 1)) for n in range(110)]
hint = "Give the model the masked ids and the mask, and count the positions that are asked for."
check_replay("texts of a few words", hint, short[2:5] * 5)
hint = "One generator serves all batches. Add up right and asked-for over all, and divide once."
several = ["the " * 90, "list a " * 40, "a the the " * 25, "list " * 70, *short[:20]]
check_replay("long texts and short ones", hint, several, batch_size=3)
check_replay("another seed", "Seed the generator with it.", short, seed=5)
hint = "They are special, and never hidden."
check_replay("[UNK] and [MASK] in the texts", hint, [snowman, "a [MASK]"] * 20)
check_replay("a head that prefers [UNK]", "Then [UNK] is the guess.", short, unsure, seed=5)
### END HIDDEN TESTS

# %% [markdown]
# And now look at your program. Change nothing in the next cell; read what it prints, you will need it for the report.

# %% tags=["demonstration"] nbgrader={"grade": false, "grade_id": "look", "locked": true, "schema_version": 3, "solution": false, "task": false}
torch.manual_seed(0)
untrained = BertModel(BertConfig(**FACTS["sizes"])).to(device).eval()
counts = Counter(
    itertools.chain.from_iterable(to_batch([text])["input_ids"][0].tolist() for text in TEST)
)
most_common = max((piece for piece in counts if piece not in SPECIAL), key=counts.get)


def always(piece):
    """A head that says one piece, whatever it sees."""

    def made_up_head(hidden):
        logits = torch.zeros(*hidden.shape[:-1], len(VOCAB), device=hidden.device)
        logits[..., piece] = 1.0
        return logits

    return made_up_head


print(f"share of hidden pieces that are guessed, {len(TEST)} paragraphs, three seeds")
for name, model, its_head in (
    ("your BERT", bert, head),
    ("untrained encoder, same head", untrained, head),
    (f"always {VOCAB[most_common]!r}", bert, always(most_common)),
):
    found = [100 * masked_accuracy(model, its_head, TEST, seed) for seed in range(3)]
    print(f"{name:30}{sum(found) / 3:6.1f}%   ({min(found):.1f} to {max(found):.1f})")
for text in (
    "Raise a ValueError [MASK] the file does not exist.",
    "The queue is [MASK] .",
    "Return True if the two [MASK] are equal.",
    "Paris is the [MASK] of France.",
):
    print(
        text, " ".join(f"{piece} {chance:.2f}" for piece, chance in fill_mask(bert, head, text))
    )

# %% [markdown]
# ## Part 6 · One vector for a text ({points:sentences} points)
#
# **Question: are texts alike that mean something alike?**
#
# Write `embed_texts`: the states of the last layer, one vector for each text by your `mean_pool`, without special tokens.


# %% nbgrader={"grade": false, "grade_id": "embed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def embed_texts(bert, texts):
    """One vector for each text.

    bert:  from load_bert
    texts: list of strings
    returns float [N, D] on device
    """
    ### BEGIN SOLUTION
    batch = to_batch(texts)
    with torch.no_grad():
        states, _ = bert(**batch)
    return mean_pool(states, batch["input_ids"], batch["attention_mask"], SPECIAL)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sentences-vectors", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check_withheld("embed_texts")
bert = load_bert(FACTS["sizes"], PUBLISHED)
vectors = check_shape(
    embed_texts(bert, RECORDED["texts"]),
    [len(RECORDED["texts"]), 128],
    "What embed_texts gives",
)
check_close(
    cosines(vectors),
    torch.tensor(RECORDED["cosines"], device=device),
    "The cosines of the recorded texts",
    "The mean is over words: no filling, no [CLS], no [SEP].",
    tolerance=1e-3,
)
### BEGIN HIDDEN TESTS
# {compare:embed_texts}
### END HIDDEN TESTS

# %% [markdown]
# And now a search that knows no keyword: `find_alike` returns the texts whose vectors are nearest to the query's, by your
# `search`.
#
# Documentation repeats itself, so three hits may say one thing three times. With `same`, go through the texts from the
# nearest on, and **pass a text over if its cosine with one that you have taken already is `same` or more**; your `cosines`
# tells. Go on until `most` are taken or no text is left.


# %% nbgrader={"grade": false, "grade_id": "find-alike", "locked": false, "schema_version": 3, "solution": true, "task": false}
def find_alike(bert, query, texts, most=3, same=None):
    """The texts that are most alike to a query.

    bert:  from load_bert
    query: string
    texts: list of strings
    same:  Python float, the cosine from which on two texts say the same. None: no text is passed over.
    returns list of at most `most` pairs (text, cosine with the query), the most alike first; strings and Python floats

    Example: if "a list" and "A list." have a cosine of 0.95 and are the nearest, with same 0.9 only the nearer is taken
    """
    ### BEGIN SOLUTION
    vectors, taken = embed_texts(bert, texts), []
    scores, indices = search(embed_texts(bert, [query]), vectors, len(texts), 1000)
    table = cosines(vectors)
    for n, score in zip(indices[0].tolist(), scores[0].tolist()):
        if same is None or all(table[n, m] < same for m, _ in taken):
            taken.append((n, score))
    return [(texts[n], score) for n, score in taken[:most]]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sentences-alike", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check_withheld("find_alike")
bert, known = load_bert(FACTS["sizes"], PUBLISHED), RECORDED["texts"]
for number, row in enumerate(RECORDED["cosines"]):
    order = sorted(range(len(known)), key=lambda n: -row[n])[:3]
    found = find_alike(bert, known[number], known)
    check_same(
        [text for text, _ in found],
        [known[n] for n in order],
        f"The three texts most alike to {known[number]!r}, itself among them",
        "Embed the query and the texts, search, and look the indices up in texts.",
    )
    for (text, cosine), n in zip(found, order):
        assert isinstance(cosine, float), f"Cosines are Python floats; {text!r} has {cosine!r}."
        assert abs(cosine - row[n]) < 1e-3, (
            f"{text!r} has the cosine {row[n]:.4f}; yours is {cosine:.4f}."
        )
    first, second, third = (known[n] for n in order)
    check_same(
        [text for text, _ in find_alike(bert, known[number], [*known, *known], 3, same=0.999)],
        [first, second, third],
        f"The three texts most alike to {known[number]!r}, where each stands twice and same is 0.999",
        "Pass a text over if its cosine with one that is taken is `same` or more.",
        slips=(
            ([first, first, second], "`same` is not used."),
            (
                [first, second],
                "Pass over first, and count then: the next nearest is taken instead.",
            ),
            (
                [second, second, third],
                "What is like the query is wanted; pass over what is like a text that is taken.",
            ),
        ),
    )
### BEGIN HIDDEN TESTS
# {compare:find_alike}
### END HIDDEN TESTS

# %% [markdown]
# ## Part 7 · Test what somebody else wrote ({points:check} points)
#
# **Question: how do you find out whether code is right that you did not write?**
#
# Two models predict the same masked pieces, and one has the higher accuracy. Would it be better on other texts, too? If both were equally good, each text would favour
# either of them with probability one half, as a fair coin does. The *sign test* says how likely it then is that the votes of the texts are divided at least as unevenly
# as they are. Somebody, or something, wrote `sign_test(labels, first, second)`. You do not see its code. Write `check_sign_test(implementation)`, which raises an error
# if an implementation is wrong and returns nothing if it is right. This is what a right one does:
#
# * `labels` is an int64 tensor [B, T]. It holds the id of the true piece at each position that counts, and -100 at all others, which may stand anywhere. Ids are 0 or more.
# * `first` and `second` are int64 tensors [B, T], the ids that two models predict. What they hold at positions that do not count does not matter. It may be -100, too.
# * Each row is a text. There may be none of them, and up to 1,000. T is at least 1.
# * A text votes for the model that is right at more of its positions that count. If both are right equally often, it does not vote.
# * It returns a tuple `(difference, won, lost, chance)`: a Python float, two Python ints and a Python float.
# * `difference` is the accuracy of the first model minus that of the second. Either accuracy is taken over all positions of the batch that count. If none counts,
#   `difference` is 0.
# * `won` texts vote for the first model, `lost` texts for the second.
# * With $n$ = `won` + `lost`, and $k$ the smaller of the two, `chance` is $\min\bigl(1,\ 2 \sum_{i=0}^{k} \binom{n}{i} / 2^n\bigr)$. So it is 1 if no text votes.
# * At least nine digits of each float are right, also of a very small one.
# * `labels`, `first` and `second` stay as they are, and an answer depends on no earlier call.
#
# For example, labels [[5, -100, 7]], first [[5, 9, 7]] and second [[5, 9, 8]] give (0.5, 1, 0, 1.0). Four such texts give (0.5, 4, 0, 0.125).
#
# {marked-by}


# %% nbgrader={"grade": false, "grade_id": "own-check", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_sign_test(implementation):
    """Raise an error if an implementation of `sign_test` is wrong; return nothing if it is right."""

    ### BEGIN SOLUTION
    def compare(rows, *wanted):
        given = [torch.as_tensor(part, device=device) for part in rows]
        before = [part.clone() for part in given]
        found = implementation(*given)
        assert all(map(torch.equal, given, before))
        assert [type(part) for part in found] == [float, int, int, float]
        assert math.isclose(found[0], wanted[0], rel_tol=1e-9, abs_tol=1e-12)
        assert found[1:3] == wanted[1:3]
        assert math.isclose(found[3], wanted[3], rel_tol=1e-9)

    # won by two, lost by one, undecided, won by one, and nothing that counts
    labels = [[4, 9, -100], [-100, 4, 0], [7, -100, 6], [5, 6, 7], [-100, -100, -100]]
    first = [[4, 9, 8], [-100, 4, 2], [7, 3, 1], [5, 6, 0], [-100, 2, 3]]
    second = [[1, 1, -100], [2, 4, 0], [0, -100, 6], [5, 0, 0], [1, 2, -100]]
    for times, chance in ((1, 1.0), (3, 2 * (1 + 9 + 36 + 84) / 2**9)):
        both = first * times, second * times
        compare((labels * times, *both), 2 / 9, 2 * times, times, chance)
        compare((labels * times, *both[::-1]), -2 / 9, times, 2 * times, chance)
    nothing = torch.full((2, 3), -100, device=device)
    for texts in (2, 1, 0):
        rows = nothing[:texts]
        compare((rows, rows, rows + 101), 0.0, 0, 0, 1.0)
    for won, lost, ties, chance in (
        (5, 1, 0, 2 * (1 + 6) / 2**6),
        (1, 4, 1, 2 * (1 + 5) / 2**5),
        (3, 3, 0, 1.0),
        (0, 0, 6, 1.0),
        (0, 45, 2, 2 / 2**45),
        (38, 2, 0, 2 * (1 + 40 + 40 * 39 // 2) / 2**40),
        (400, 0, 1, 2 / 2**400),
    ):
        right, wrong = [[3, -100]], [[2, -100]]
        ids = right * (won + ties) + wrong * lost, wrong * won + right * (ties + lost)
        texts = won + lost + ties
        compare((right * texts, *ids), (won - lost) / texts, won, lost, chance)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "check-refuses", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Three wrong implementations and a right one, packed so that nobody reads them first.
# {checks:check_sign_test}
assert not slipped, slipped
### BEGIN HIDDEN TESTS
# {checks:check_sign_test hidden}
float(points)
### END HIDDEN TESTS

# %% [markdown]
# ## Part 8 · Your report ({points:report} points)
#
# Write at most 500 words for somebody who has read chapters 1 to 6 and has not seen your program.
#
# 1. **What it is.** Follow one text through your program, from characters to a guess, and name for each step the part of
#    yours that does it, and the shape of what it gives.
# 2. **What it can do.** Cite the three lines that the cell of Part 5 printed. Which of the two controls is the harder one to
#    beat, and what does each tell? Is the difference more than the seeds make?
# 3. **Where it fails.** Take two of the holes that were printed, one where the guesses are good and one where they are not, and
#    find one more of your own of each kind. Say what the model would have to have read, or to be, to mend the failures.
# 4. **What you would do next** with one hour of a GPU, what you expect of it, and which number would tell you that you were
#    wrong.
#
# **How it is marked.** Each line earns one of the {points:report} points:
#
# * Every step from characters to a guess is there, in order, with its part and a right shape.
# * Ids, states, logits and probabilities are kept apart.
# * The three shares are cited with their ranges, and the difference is compared with the spread.
# * It says what each of the two controls rules out, and which is the harder one.
# * Two good and two bad guesses are shown, at least one of each from the student.
# * The reason given for the failures fits what this model was trained on, or its size.
# * The proposal is one that the course has shown, or is argued from it.
# * A measurement is named that could prove the expectation wrong.

# %% [markdown] nbgrader={"grade": true, "grade_id": "report", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# **Key**: the eight lines above, a point each.
#
# **All of it:**
#
# (Go by what the student's own cell printed; the documentation, and with it the numbers, differ a little between versions.)
#
# A text is cut into words and pieces (encode), the pieces become ids with [CLS] and [SEP] and are filled up to a batch, [B, T]
# (pair_input, make_batch). BertEmbeddings adds three tables, [B, T, D] with D = 128; two BertLayers mix positions
# (SelfAttention) and change each (feed-forward); the head makes logits [B, T, V] with V = 8,192, of which masked_logits takes
# those of the holes, [N, V]; masked_softmax makes probabilities of them, special tokens left out.
#
# The program guesses about a third of the hidden pieces. The same head on an untrained encoder guesses next to none, so what
# is known is in the weights, not in the program. Always saying the commonest piece is the harder control: it needs
# no context, and gets some percent. The ranges over three seeds are three points wide at most, and far apart.
#
# Where the neighbours decide ("Raise a ValueError [MASK] the file") it is nearly sure, and right. Of capitals it knows
# nothing: it has read documentation of Python packages only. It is also tiny: two layers, a vector of 128 numbers for a word.
#
# With an hour I would train mini's four layers longer on the same text: chapter 6 shows that it was still improving. I expect
# some points more on held-out modules. If the loss on the training text falls and the one on held-out modules does not, I was
# wrong: then text is what is short, not size.
#
# **Four of eight:** Text is cut into pieces, the pieces become ids, the ids go through BERT, and the head gives the most
# probable word; shapes are [B, T], [B, T, 128] and [B, T, 8192]. The program guesses (share and range cited) of the
# hidden pieces, the untrained one nearly none, and the commonest piece some percent, so mine is better. "Raise a
# [MASK]" is guessed well; "The capital of France is [MASK]" is not, because the model has read documentation only.
# Next I would train a larger model on more data, which would be better.
#
# **None of it:** The program uses BERT to guess hidden words. It gets about a third of them right, which is not bad for
# a small model. It is good at easy words and bad at hard ones. With a GPU I would train it longer, and it would
# become better.
# ### END SOLUTION
