"""Small calls for `course viva capstone`: those of the assignments that its parts are
from."""

import runpy
from pathlib import Path

PARTS = {
    "attention": ["masked_softmax"],
    "transformer": ["LayerNorm"],
    "wordpiece": ["encode_word", "encode"],
    "bert": ["pair_input", "make_batch", "BertEmbeddings", "SelfAttention", "Pooler"],
    "pretraining": ["masked_loss"],
    "fine-tuning": ["cosines", "mean_pool"],
    "sentence-bert": ["search"],
}
OF = {part: runpy.run_path(str(Path(__file__).parents[1] / part / "viva.py")) for part in PARTS}
SETUP, WORDS = OF["bert"]["SETUP"], OF["bert"]["WORDS"]
CALLS = {name: OF[part]["CALLS"][name] for part, names in PARTS.items() for name in names}
