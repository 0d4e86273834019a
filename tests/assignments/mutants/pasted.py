"""What students get who paste: ``python tests/assignments/mutants/pasted.py attention bert``.

For each answer cell of an assignment the nearest code there is, of the course's library
(whose text the chapters show), and of torch, stands in the place of the answer, with
nothing changed but names, the order of arguments and what wraps the result. It runs as
a student's notebook does, with what is withheld refused, and the cell's own tests are
marked: those between it and the next answer.

Nearest is what the table :data:`NEAREST` says; where it says nothing of a cell, the
functions and classes of the library with the names of the answers. Where there are none
nothing is pasted.
"""

import ast
import atexit
import functools
import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import is_solution

from course_tools.grading.assignments import mutants_run
from course_tools.grading.assignments.mutants import Outcome
from course_tools.grading.assignments.reach import defined_in, with_what_they_use
from course_tools.grading.assignments.source import parts_of, read_source
from course_tools.grading.check.check_structure import grade_id
from course_tools.grading.run.plan import role

ROOT = Path(__file__).resolve().parents[3]
REGION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION\n?", re.M | re.S)
#: No contract, but the paste itself fails: a name is missing.
BROKEN = ("NameError", "KeyError")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef


@functools.cache
def module_of(name: str) -> ast.Module:
    """Read a module of the library, without docstrings."""
    file = ROOT / "course_lib" / (name.replace(".", "/") + ".py")
    if not file.is_file():
        file = file.with_suffix("") / "__init__.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


@functools.cache
def public_names() -> Mapping[str, str]:
    """By function or class of the library, the module that defines it."""
    found = dict[str, str]()
    for file in sorted((ROOT / "course_lib").rglob("*.py")):
        place = file.relative_to(ROOT / "course_lib").with_suffix("")
        name = ".".join(place.parts).removesuffix(".__init__")
        for node in module_of(name).body if name != "__init__" else ():
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, name)
    return found


@functools.cache
def beside() -> str:
    """Copy what lies beside the library's modules: reading it there is withheld."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    no_code = shutil.ignore_patterns("*.py*")
    shutil.copytree(ROOT / "course_lib", folder, ignore=no_code, dirs_exist_ok=True)
    return folder


def statements(module: str, wanted: set[str], done: set[str]) -> Iterator[str]:
    """Give what of a module's text defines names, and before it what that needs."""
    tree, chosen = module_of(module), list[ast.stmt]()
    while True:
        more = [s for s in tree.body if s not in chosen and defined_in(s) & wanted]
        if not more:
            break
        chosen += more
        wanted = wanted | {
            node.id for s in more for node in ast.walk(s) if isinstance(node, ast.Name)
        }
    for statement in (s for s in tree.body if s in chosen):
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            key = f"{module}:{statement.lineno}"
            if key not in done:
                done.add(key)
                file = repr(f"{beside()}/{module.replace('.', '/')}.py")
                yield ast.unparse(statement).replace("__file__", file)
            continue
        names = [
            alias
            for alias in statement.names
            if (alias.asname or alias.name).partition(".")[0] in wanted
        ]
        source = getattr(statement, "module", None) or ""
        if source.startswith("course_lib"):
            inner = source.removeprefix("course_lib.")
            yield from statements(inner, {alias.name for alias in names}, done)
        else:
            kept = ast.parse(ast.unparse(statement)).body[0]
            kept.names = names  # type: ignore[attr-defined]
            yield ast.unparse(kept)


def library(*names: str) -> str:
    """Write the text of functions and classes of the library, and all that they need,
    as a function that makes them, so that they hide no name of the notebook's."""
    done, text = set[str](), list[str]()
    for name in names:
        text += statements(public_names()[name], {name}, done)
    inside = textwrap.indent("\n".join(text), "    ")
    return f"def their():\n{inside}\n    return locals()\n\nlib = their()\n"


def body(name: str, *renames: tuple[str, str]) -> str:
    """Write the body of a function, or of ``Class.method``, with patterns replaced."""
    owner, _, method = name.rpartition(".")
    node: ast.AST = module_of(public_names()[owner or method])
    for part in name.split("."):
        inner = node.body  # type: ignore[attr-defined]
        node = next(n for n in inner if getattr(n, "name", None) == part)
    text = "\n".join(map(ast.unparse, node.body))  # type: ignore[attr-defined]
    for old, new in renames:
        text, count = re.subn(old, new, text, flags=re.S)
        assert count, f"{name} holds no {old}: the table of what is near is out of date"
    return text


class Paste:
    """The nearest code of one answer cell."""

    def __init__(self, origin: str, then: str, *bodies: str) -> None:
        self.origin = origin  # for the table that is printed
        self.then = then  # what stands behind the cell as it was handed out
        self.bodies = bodies  # what stands in it, one for each place to answer

    def answer(self, source: str) -> str:
        """Put it into the text of the instructor's cell."""
        bodies = iter(self.bodies)

        def place(match: re.Match[str]) -> str:
            text = next(bodies, "raise NotImplementedError()")
            return textwrap.indent(text, match[1]) + "\n"

        return REGION.sub(place, source) + "\n\n" + self.then

    def with_own(self, name: str, own: str) -> "Paste":
        """The same with a function of the student's where the library has another."""
        return Paste(self.origin, self.then.replace(name, own), *self.bodies)


def called(then: str) -> Paste:
    """Code that calls the library as ``lib["name"]``."""
    names = dict.fromkeys(re.findall(r'lib\["(\w+)"\]', then))
    return Paste(", ".join(names), library(*names) + then)


def of_torch(then: str) -> Paste:
    """Code that calls torch alone."""
    return Paste("torch", then)


def filled(*bodies: str, origin: str, needs: Sequence[str] = ()) -> Paste:
    """Bodies of the library in the skeleton that is handed out."""
    return Paste(origin, library(*needs) if needs else "", *bodies)


def by_name(source: str) -> list[Paste]:
    """What has the name of an answer in the library, if anything has."""
    names = sorted(defined_in(ast.parse(source)) & {*public_names()})
    return [called("".join(f'{n} = lib["{n}"]\n' for n in names))] if names else []


POST_NORM = ("if self.pre_norm:.*?return .*?\n(?! )", "")
SKIP = (r"self\.(?:skip|dropout)\((\w+)\)", r"\1")
ATTENTION = body(
    "MultiHeadAttention.forward",
    (r"key = query.*?check_attention_inputs\(.*?\)\n", ""),
    (r"if causal:.*?& order\n", ""),
    (r"kernel = [^\n]*\n", ""),
    (r"kernel\((\*heads, mask), self.dropout\)", r"attention(*heads, mask)"),
    (r"self\.(query|key|value|output)\(", r"self.to_\1("),
    (r"return \(output, weights\).*", "return output, weights"),
)
NEAREST: Mapping[str, Mapping[str, list[Paste]]] = {
    "attention": {
        "masked-softmax": [
            called('masked_softmax = lib["masked_softmax"]'),
            of_torch(
                "def masked_softmax(scores, mask=None):\n"
                "    filled = torch.masked.masked_tensor(scores, mask)\n"
                "    return torch.masked.softmax(filled, -1)"
            ),
        ],
        "additive-scores": [
            filled(
                body(
                    "AdditiveScore.forward",
                    (r"self\.project_query\(query\)", "(query @ W.T)"),
                    (r"self\.project_key\(key\)", "(key @ U.T)"),
                    (r"self\.reduce\((.*?)\)\.squeeze\(-1\)", r"\1 @ v"),
                ),
                origin="AdditiveScore",
            )
        ],
        "dot-scores": [
            filled(
                body(
                    "scaled_dot_product_attention",
                    (r"check_scores\(.*?\)\n", ""),
                    (r"if mask.*", "return scores"),
                ),
                origin="scaled_dot_product_attention",
            )
        ],
        "dot-statistics": [
            of_torch(
                "def score_statistics(scores):\n"
                "    entropy = torch.distributions.Categorical(logits=scores).entropy()\n"
                "    return scores.var().item(), entropy.mean().item()"
            )
        ],
        "decoder-step": [
            called(
                "def decoder_step(state, encoder_states, mask, score, W_combine, W_output):\n"
                "    scores = score(state[:, None], encoder_states)\n"
                '    context, weights = lib["attend"](scores, encoder_states, mask[:, None])\n'
                "    combined = torch.cat([context[:, 0], state], dim=-1) @ W_combine.T\n"
                "    return (combined.tanh() @ W_output.T).log_softmax(-1), weights[:, 0]"
            )
        ],
        "align": [
            called(
                "def align(weights, source_length, target_length):\n"
                '    return lib["alignment_from_weights"](weights[:target_length, :source_length])\n'
                "def alignment_error_rate(predicted, sure, possible):\n"
                '    return lib["alignment_error_rate"]([predicted], [sure], [possible])'
            )
        ],
        "beam-search": [
            called(
                "def beam_search(step, state, bos, eos, beam_size, max_length, alpha=0.6):\n"
                '    best = lib["beam_search"](step, state, bos, eos, max_length, beam_size, alpha)\n'
                "    return best.tokens, best.score"
            )
        ],
    },
    "transformer": {
        "by-loops": [
            called(
                "def attention_by_loops(query, key, value):\n"
                '    return lib["self_attention_loops"](query, key, value)[0]'
            ),
            of_torch(
                "attention_by_loops = torch.nn.functional.scaled_dot_product_attention"
            ),
        ],
        "by-matrices": [called('attention = lib["scaled_dot_product_attention"]')],
        "heads": [
            called('split_heads = lib["split_heads"]; merge_heads = lib["merge_heads"]')
        ],
        "multi-head": [filled(ATTENTION, origin="MultiHeadAttention.forward")],
        "masks": [
            called(
                "def padding_mask(lengths, size):\n"
                '    return lib["padding_mask"](lengths, size)[:, None]\n'
                'causal_mask = lib["causal_mask"]\n'
                "def decoder_mask(lengths, size):\n"
                "    return padding_mask(lengths, size) & causal_mask(size, lengths.device)"
            )
        ],
        "encoding": [called('positional_encoding = lib["sinusoidal_positions"]')],
        "embed": [
            called(
                "def embed(tokens, embedding):\n"
                "    table = torch.nn.Embedding.from_pretrained(embedding, freeze=False)\n"
                '    return lib["WordAndPosition"](table).to(embedding)(tokens)'
            )
        ],
        "norm": [
            filled(
                body(
                    "layer_norm",
                    ("gain", "self.gain"),
                    ("bias", "self.offset"),
                    ("eps", "self.eps"),
                ),
                origin="layer_norm",
            ),
            filled(
                "return torch.nn.functional.layer_norm(\n"
                "    hidden, self.gain.shape, self.gain, self.offset, self.eps)",
                origin="torch",
            ),
        ],
        "feed-forward": [
            filled(
                body(
                    "FeedForward.forward",
                    (r"self\.contract", "self.outer"),
                    (r"self\.expand", "self.inner"),
                    (
                        r"self\.dropout\(self\.activation\((.*)\)\)\)",
                        r"torch.relu(\1))",
                    ),
                ),
                origin="FeedForward.forward",
            )
        ],
        "encoder": [
            filled(
                body(
                    "EncoderBlock.forward",
                    POST_NORM,
                    (
                        r"self\.attention\(hidden, mask=mask, causal=causal\)",
                        "self.self_attention(hidden, hidden, hidden, mask)[0]",
                    ),
                    (r"self\.norm1", "self.attention_norm"),
                    (r"self\.norm2", "self.feed_forward_norm"),
                    SKIP,
                ),
                origin="EncoderBlock.forward",
            )
        ],
        "decoder": [
            filled(
                body(
                    "DecoderBlock.forward",
                    POST_NORM,
                    (
                        r"self\.attention\(x, mask=mask, causal=True\)",
                        "self.self_attention(x, x, x, mask)[0]",
                    ),
                    (
                        r"self\.cross_attention\(x, memory, mask=memory_mask\)",
                        "self.cross_attention(x, memory, memory, memory_mask)[0]",
                    ),
                    (r"self\.norm1", "self.self_norm"),
                    (r"self\.norm2", "self.cross_norm"),
                    (r"self\.norm3", "self.feed_forward_norm"),
                    (r"self\.dropout\((self\.feed_forward\(x\))\)", r"\1"),
                    SKIP,
                ),
                origin="DecoderBlock.forward",
            )
        ],
    },
    "wordpiece": {
        "count": [
            filled(
                body(
                    "pair_scores",
                    ("if score ==.*", "return units, pairs"),
                    ("pairwise", "itertools.pairwise"),
                ),
                origin="pair_scores",
            )
        ],
        "score": [
            filled(
                body(
                    "pair_scores",
                    (".*\n(?=return)", ""),
                    ("units", "piece_counts"),
                    ("pairs", "pair_counts"),
                ),
                origin="pair_scores",
            )
        ],
        "merge": [
            called(
                'join = lib["join"]\n'
                'def merge_pair(pieces, pair):\n    return lib["merge_pieces"](pieces, *pair)'
            )
        ],
        "train": [
            called(
                "def train(counts, vocab_size, specials=SPECIALS, min_frequency=1, score=pair_scores):\n"
                '    got = lib["train_wordpiece"](counts, vocab_size, "likelihood", min_frequency,\n'
                "        None, specials)\n"
                "    return got.vocab, [(merge.left, merge.right) for merge in got.merges]"
            )
        ],
        "word": [called('encode_word = lib["longest_match"]')],
        "text": [
            called(
                'def encode(text, vocab, max_length=100, mark="##"):\n'
                '    tokenizer = lib["WordPiece"](sorted({*vocab, "[UNK]"}), max_word_length=max_length)\n'
                "    return [(t.text, *t.offsets) for t in tokenizer._tokens(text)]"
            )
        ],
        "ids-to-text": [
            called(
                "def decode(ids, vocab):\n"
                '    return lib["WordPiece"](vocab).decode(ids)'
            ),
            called(
                "def decode(ids, vocab):\n"
                '    return lib["detokenize"]([vocab[i] for i in ids\n'
                '        if vocab[i] not in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")])'
            ),
        ],
    },
    "bert": {
        "pair": [
            called(
                "def pair_input(first, second=None, cls_id=101, sep_id=102, max_length=512, between=1):\n"
                "    added = 2 if second is None else 3\n"
                '    a, b = lib["truncate"](len(first), len(second or ()), max_length - added)\n'
                '    token = lambda index: lib["Token"](index, "", (0, 0))\n'
                "    rest = None if second is None else list(map(token, second[:b]))\n"
                '    got = lib["assemble"](list(map(token, first[:a])), rest,\n'
                "        token(cls_id), token(sep_id))\n"
                "    return got.ids, got.type_ids"
            )
        ],
        "batch": [
            called(
                "def make_batch(inputs, pad_id=0, multiple=1):\n"
                '    rows = [lib["Example"]([pair]) for pair in inputs]\n'
                '    got = lib["collate"](rows, pad_id)\n'
                "    mask = got.attention_mask\n"
                "    mask = torch.ones_like(got.input_ids) > 0 if mask is None else mask\n"
                '    return {"input_ids": got.input_ids, "attention_mask": mask,\n'
                '        "token_type_ids": got.token_type_ids}'
            )
        ],
        "embed": [
            filled(
                body(
                    "BertEmbeddings.forward",
                    (r"self\.token\b", "self.word"),
                    (r"self\.segment\b", "self.token_type"),
                ),
                origin="BertEmbeddings.forward",
            )
        ],
        "self-attention": [
            filled(
                body(
                    "MultiHeadAttention.forward",
                    (r"key = query.*?(?=heads =)", ""),
                    (r"kernel = [^\n]*\n", ""),
                    (
                        r"kernel\(\*heads, mask,",
                        'lib["scaled_dot_product_attention"](*heads, mask,',
                    ),
                    (
                        r"split_heads\(self\.(\w+)\(\w+\)",
                        r'lib["split_heads"](self.\1(hidden)',
                    ),
                    (
                        r"output = self\.output\((merge_heads)\(mixed\)\)",
                        r'output = lib["\1"](mixed)',
                    ),
                    (r"return \(output, weights\).*", "return output, weights"),
                    (
                        "^",
                        "mask = None if attention_mask is None else attention_mask[:, None, None]\n",
                    ),
                ),
                origin="MultiHeadAttention.forward",
                needs=("scaled_dot_product_attention", "split_heads", "merge_heads"),
            )
        ],
        "activation": [
            of_torch("gelu = torch.nn.functional.gelu"),
            of_torch("gelu = torch.nn.GELU()"),
        ],
        "block": [
            filled(
                body(
                    "EncoderBlock.forward",
                    POST_NORM,
                    (
                        r"self\.attention\(hidden, mask=mask, causal=causal\)",
                        "self.attention_output(self.attention(hidden, attention_mask)[0])",
                    ),
                    (
                        r"self\.feed_forward\(hidden\)",
                        "self.output(gelu(self.intermediate(hidden)))",
                    ),
                    (r"self\.norm1", "self.attention_norm"),
                    (r"self\.norm2", "self.output_norm"),
                    (r"self\.skip\((\w+)\)", r"\1"),
                ),
                origin="EncoderBlock.forward",
            )
        ],
        "pool": [filled(body("BertPooler.forward"), origin="BertPooler.forward")],
        "whole": [
            filled(
                body(
                    "BertModel.forward",
                    (r"check_inputs.*?(?=hidden =)", ""),
                    (r"self\.blocks", "self.layers"),
                    (r"block\(hidden, mask\)", "block(hidden, attention_mask)"),
                    (r"every = .*", "return hidden, self.pooler(hidden)"),
                ),
                origin="BertModel.forward",
            )
        ],
        "names": [
            called(
                "import re\n\n"
                "def published_name(name, old=False):\n"
                '    for old, new in (("layers.", "blocks."), ("attention_norm", "norm1"),\n'
                '        ("attention_output", "attention.output"), ("output_norm", "norm2"),\n'
                '        ("intermediate", "feed_forward.expand"), ("embeddings.word", "embeddings.token"),\n'
                '        ("embeddings.token_type", "embeddings.segment")):\n'
                "        name = name.replace(old, new)\n"
                '    return lib["published_name"](re.sub(r"(?<=\\d)\\.output", ".feed_forward.contract", name))'
            )
        ],
    },
    "pretraining": {
        "mask": [
            called(
                "def mask_tokens(input_ids, special_ids, mask_id, vocab_size, generator, rate=0.15):\n"
                '    vocab = lib["VocabIds"](mask_id, vocab_size, special_ids)\n'
                "    special = torch.isin(input_ids, torch.tensor(special_ids))\n"
                '    return lib["mask_tokens"](input_ids, special, generator, vocab,\n'
                '        lib["MaskingConfig"](rate=rate))'
            )
        ],
        "loss": [
            of_torch(
                "def masked_loss(logits, labels):\n"
                "    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())"
            )
        ],
        "rows": [
            of_torch(
                "def masked_logits(head, hidden, labels, most=None):\n"
                "    positions = torch.nonzero(labels.flatten() != -100).flatten()\n"
                "    return head(hidden.flatten(0, 1)[positions]), labels.flatten()[positions]"
            )
        ],
        "total": [
            called(
                "def pretraining_loss(token_logits, labels, pair_logits, next_sentence_labels):\n"
                '    return lib["pretraining_loss"](token_logits, pair_logits, labels, next_sentence_labels)'
            )
        ],
    },
    "fine-tuning": {
        "cosine": [
            filled(
                body(
                    "sense_separation",
                    (r"^.*(?=unit = )", ""),
                    (r"F\.", "torch.nn.functional."),
                    (r"\.double\(\)", ""),
                    (r"cosines = (unit @ unit\.T).*", r"return \1"),
                ),
                origin="sense_separation",
            ),
            of_torch(
                "def cosines(vectors):\n"
                "    return torch.cosine_similarity(vectors[:, None], vectors[None], dim=-1)"
            ),
        ],
        "separate": [called('separation = lib["sense_separation"]')],
        "mix": [called('LayerMix = lib["LayerMix"]')],
        "pool": [
            called(
                "def mean_pool(hidden, input_ids, attention_mask, special_ids):\n"
                "    ids = torch.tensor(special_ids, device=hidden.device)\n"
                '    return lib["pool"](hidden, attention_mask & ~torch.isin(input_ids, ids))'
            )
        ],
        "guess": [
            called(
                "def word_guesses(logits, token_labels):\n"
                "    first = [place for place, label in enumerate(token_labels) if label != -100]\n"
                '    guesses = lib["word_logits"](logits, first).argmax(dim=1).tolist()\n'
                "    return guesses, sum(g == token_labels[p] for g, p in zip(guesses, first))"
            )
        ],
        "span": [
            called(
                "def best_span(start_logits, end_logits, offsets, max_tokens):\n"
                "    places = [None if p is None else (n, n) for n, p in enumerate(offsets)]\n"
                '    window = lib["Window"]([], [], places, [True] * len(offsets), (0, 0))\n'
                '    place, score = lib["_best_of_window"](start_logits, end_logits, window, 1, max_tokens)[0]\n'
                "    return *place, score"
            )
        ],
        "reshape": [
            filled(
                body(
                    "MultipleChoiceClassifier.forward",
                    ("pooled = .*?\n", ""),
                    (r"self\.classifier.*?\n", "score(*rows)\n"),
                ),
                origin="MultipleChoiceClassifier.forward",
            )
        ],
        "choose": [
            of_torch(
                "def choose(logits):\n    return logits.softmax(1), logits.argmax(1)"
            )
        ],
    },
    "sentence-bert": {
        "mean": [
            called(
                "def mean_pool(hidden, mask, weights=None):\n"
                '    return lib["pool"](hidden, mask)'
            )
        ],
        "first-max": [
            called(
                'def cls_pool(hidden, mask, last=False):\n    return lib["pool"](hidden, mask, "cls")\n'
                'def max_pool(hidden, mask, by_size=False):\n    return lib["pool"](hidden, mask, "max")'
            )
        ],
        "classify": [
            called(
                "def classify(u, v, weight, labels):\n"
                '    features = lib["softmax_features"](u, v)\n'
                "    logits = features @ weight[:, : features.shape[1]].T\n"
                "    return logits, torch.nn.functional.cross_entropy(logits, labels)"
            )
        ],
        "regress": [
            called(
                "def cosine_loss(u, v, scores, slack=0.0):\n"
                '    return lib["cosine_losses"](u, v, scores).mean()'
            )
        ],
        "order": [
            called(
                "def triplet_loss(anchor, positive, negative, margin, swap=False):\n"
                '    return lib["triplet_losses"](anchor, positive, negative, margin).mean()'
            ),
            of_torch(
                "def triplet_loss(anchor, positive, negative, margin, swap=False):\n"
                "    return torch.nn.functional.triplet_margin_loss(anchor, positive, negative, margin,\n"
                "        swap=swap)"
            ),
            of_torch(
                "def triplet_loss(anchor, positive, negative, margin, swap=False):\n"
                "    return torch.nn.functional.triplet_margin_with_distance_loss(anchor, positive,\n"
                "        negative, margin=margin, swap=swap)"
            ),
        ],
        "contrast": [
            called(
                "def in_batch_loss(queries, documents, temperature, margin=0.0):\n"
                '    return lib["in_batch_losses"](queries, documents, temperature).mean()'
            )
        ],
        "find": [
            called(
                "def search(queries, collection, k, block):\n"
                '    hits = lib["top_k"](queries, collection, min(k, len(collection)), True, block)\n'
                "    return hits.scores, hits.indices"
            )
        ],
        "rank": [
            of_torch(
                "def ranks(values):\n"
                "    from scipy.stats import rankdata\n"
                "    return torch.tensor(rankdata(values))"
            )
        ],
        "correlate": [
            of_torch(
                "def spearman(x, y):\n"
                "    from scipy.stats import spearmanr\n"
                "    return float(spearmanr(x, y).statistic)"
            )
        ],
    },
    "family": {
        "soft": [
            called(
                "def soft_targets(student, teacher, mask, temperature):\n"
                '    return torch.stack([lib["soft_target_loss"](s[m], t[m], temperature)\n'
                "        for s, t, m in zip(student, teacher, mask)])"
            )
        ],
        "late-interaction": [called('maxsim = lib["maxsim"]')],
        "few-shot": [
            called(
                "def build_prompt(start, shots, question, between, longest):\n"
                '    return lib["prompt"](question, shots, start), len(shots)'
            )
        ],
    },
    "modern": {
        "turn": [
            called(
                "def rotate(vectors, positions, base=10000.0, features=None):\n"
                "    length, dim = int(positions.max()) + 1, vectors.shape[-1]\n"
                '    waves = lib["sinusoidal_positions"](length, dim, base).to(vectors)\n'
                '    return lib["rotate"](vectors, waves[positions][:, None])'
            )
        ],
        "gate": [
            filled(
                body(
                    "GeGLU.forward",
                    (r"self\.expand\(hidden\)", "(hidden @ weight.T)"),
                    (
                        r"return self\.contract\(self\.dropout\((.*)\)\)",
                        r"return (\1) @ output.T, gate",
                    ),
                    (r"F\.gelu", "torch.nn.functional.gelu"),
                ),
                origin="GeGLU.forward",
            )
        ],
        "near": [
            called(
                "def local_mask(sentences, reach=None):\n"
                "    T = sentences.shape[1]\n"
                "    place, window = torch.arange(T), 2 * (T if reach is None else reach)\n"
                '    near = lib["local_mask"](place, window).to(sentences.device)\n'
                "    return near & (sentences[:, :, None] == sentences[:, None])"
            )
        ],
        "contrast": [
            called(
                "def info_nce(queries, documents, relation, temperature=0.05):\n"
                '    losses = lib["in_batch_losses"](queries, documents, temperature)\n'
                "    own = relation.argmax(1)\n"
                '    scores = lib["in_batch_logits"](queries, documents)\n'
                '    return losses, lib["hard_negatives"](scores, own, 1, 1.0).documents[:, 0]'
            )
        ],
        "adapt": [
            filled(
                body(
                    "LoRALinear.forward",
                    (r"self\.(down|up)\.T", r"\1[adapter].mT"),
                    (
                        r"self\.linear\(hidden\)",
                        "torch.nn.functional.linear(hidden, weight, bias)",
                    ),
                    (r"self\.scale", "(1 if alpha is None else alpha / down.shape[1])"),
                ),
                origin="LoRALinear.forward",
            )
        ],
        "fold": [
            filled(
                body(
                    "LoRALinear.merge",
                    (r"self\.linear\.weight", "weight"),
                    (r"self\.scale", "(1 if alpha is None else alpha / down.shape[1])"),
                    (
                        r"self\.up\.data @ self\.down\.data",
                        "(up.data @ down.data).sum(0)",
                    ),
                    ("return .*", "return weight"),
                ),
                origin="LoRALinear.merge",
            )
        ],
        "rank": [
            called(
                "def ndcg(scores, found, gains, k=10):\n"
                '    return lib["ndcg"](scores, gains, k)'
            ),
            of_torch(
                "def ndcg(scores, found, gains, k=10):\n"
                "    from sklearn.metrics import ndcg_score\n"
                "    rows = zip(2.0**gains.double() - 1, scores)\n"
                "    return torch.tensor([ndcg_score([g], [s], k=k) for g, s in rows]).to(scores)"
            ),
        ],
    },
    "capstone": {
        "load-model": [
            called(
                "def load_bert(sizes, tensors):\n"
                '    model = lib["BertModel"](lib["BertConfig"](**sizes))\n'
                '    names = {lib["published_name"](n): n for n in model.state_dict()}\n'
                "    bert = {n.removeprefix('bert.'): t for n, t in tensors.items()}\n"
                '    lib["fill"](model, {names[n]: t for n, t in bert.items() if n in names})\n'
                "    return model.to(device).eval()"
            )
        ],
        "to-batch": [
            called(
                "def to_batch(texts, max_length=128):\n"
                '    rows = lib["WordPiece"](VOCAB).encode_batch(texts, "longest", max_length)\n'
                "    of = lambda name: tensor([getattr(row, name) for row in rows])\n"
                '    return {"input_ids": of("ids"), "token_type_ids": of("type_ids"),\n'
                '        "attention_mask": of("attention_mask").bool()}'
            )
        ],
        "make-head": [
            called(
                "def make_head(sizes, tensors):\n"
                "    stem = 'cls.predictions.'\n"
                "    words = tensors['bert.embeddings.word_embeddings.weight']\n"
                "    table = torch.nn.Embedding.from_pretrained(words)\n"
                '    config = lib["BertConfig"](**sizes | {"num_hidden_layers": 1})\n'
                '    head = lib["MaskedLanguageModelHead"](config, table)\n'
                "    names = {'dense': 'transform.dense', 'norm': 'transform.LayerNorm'}\n"
                "    head.load_state_dict({f'{new}.{kind}': tensors[f'{stem}{old}.{kind}']\n"
                "        for new, old in names.items() for kind in ('weight', 'bias')}\n"
                "        | {'output.weight': words, 'output.bias': tensors[stem + 'bias']})\n"
                "    return head.to(device)"
            ).with_own("F.gelu", "gelu")
        ],
        "fill-the-hole": [
            of_torch(
                "def fill_mask(bert, head, text, most=4):\n"
                "    batch = to_batch([text])\n"
                "    hidden = batch['input_ids'] == MASK\n"
                "    if hidden.sum() != 1:\n"
                "        raise ValueError(f'{text!r} has {hidden.sum()} [MASK]; it needs one')\n"
                "    with torch.no_grad():\n"
                "        logits = head(bert(**batch)[0][hidden])\n"
                "    chances, best = logits.log_softmax(-1).exp().topk(most, dim=-1)\n"
                "    return [(VOCAB[i], c) for i, c in zip(best[0].tolist(), chances[0].tolist())]"
            )
        ],
        "accuracy": [
            called(
                "def masked_accuracy(bert, head, texts, seed=0, batch_size=16):\n"
                "    generator, right, asked = torch.Generator().manual_seed(seed), 0, 0\n"
                '    vocab = lib["VocabIds"](MASK, len(VOCAB), SPECIAL)\n'
                "    for begin in range(0, len(texts), batch_size):\n"
                "        batch = to_batch(texts[begin : begin + batch_size])\n"
                "        ids = batch['input_ids'].cpu()\n"
                "        special = torch.isin(ids, torch.tensor(SPECIAL))\n"
                '        masked, labels = lib["mask_tokens"](ids, special, generator, vocab)\n'
                "        with torch.no_grad():\n"
                "            states, _ = bert(masked.to(device), batch['attention_mask'])\n"
                "        best, known = head(states).argmax(-1).cpu(), labels != IGNORE\n"
                "        right += (best == labels)[known].sum().item()\n"
                "        asked += known.sum().item()\n"
                "    return right / asked"
            )
        ],
        "embed": [
            called(
                "def embed_texts(bert, texts):\n"
                "    batch = to_batch(texts)\n"
                "    with torch.no_grad():\n"
                '        return lib["pool"](bert(**batch)[0], batch["attention_mask"])'
            )
        ],
        "find-alike": [
            called(
                "def find_alike(bert, query, texts, most=3):\n"
                '    hits = lib["top_k"](embed_texts(bert, [query]), embed_texts(bert, texts), most)\n'
                "    pairs = zip(hits.indices[0].tolist(), hits.scores[0].tolist())\n"
                "    return [(texts[n], score) for n, score in pairs]"
            )
        ],
    },
}


def answers(name: str) -> dict[str, tuple[str, str, str]]:
    """By paste, its cell, where it is from, and the cell's new text."""
    notebook = read_source(ROOT / "solutions" / name / f"{name}.py")
    found = {}
    for cell in notebook.cells:
        if is_solution(cell) and cell.cell_type == "code":
            place = cell.metadata.nbgrader.grade_id
            pastes = NEAREST.get(name, {}).get(place) or by_name(cell.source)
            if parts_of(cell):
                pastes = [of_parts(parts_of(cell))]
            for number, paste in enumerate(pastes):
                text = paste.answer(cell.source)
                found[f"{place} {number}"] = place, paste.origin, text
    return found


def of_parts(parts: list[tuple[str, str]]) -> Paste:
    """Put the nearest code of each cell of other assignments in the place of its
    answer, one after the other. Where nothing is near, or it is refused wherever it
    stands, the student has answered: what is missing costs no points here, so that the
    share is that of what is pasted."""
    text, origins = "", []
    for number, (name, part) in enumerate(parts):
        source = read_source(ROOT / "solutions" / name / f"{name}.py")
        cell = next(cell for cell in source.cells if cell["id"] == part)
        near = NEAREST[name].get(part, []) if is_solution(cell) else []
        near = [paste for paste in near if "gelu" not in paste.then]
        pasted = near[0].answer(cell.source) if near else cell.source
        # each has a library of its own
        text += "\n\n" + re.sub(r"\b(their|lib)\b", rf"\1_{number}", pasted)
        origins += [paste.origin for paste in near[:1]]
    return Paste(", ".join(origins), "", text)


def own_tests(
    cells: Sequence[NotebookNode], changed: Sequence[NotebookNode]
) -> set[str]:
    """Name the tests of the cell that is changed, and those that define what they use."""
    pairs = zip(cells, changed, strict=True)
    place = next(n for n, (old, new) in enumerate(pairs) if old.source != new.source)
    return with_what_they_use(cells, own(cells[place:]))


def own(cells: Sequence[NotebookNode]) -> list[str]:
    """Name the tests between an answer, the first of the cells, and the next one; of
    these those that call what the answer defines, if any do."""
    found: list[NotebookNode] = []
    for cell in cells[1:]:
        if role(cell) == "test":
            found.append(cell)
        elif is_solution(cell) and found:
            break
    names = [getattr(node, "name", "") for node in ast.parse(cells[0].source).body]
    calls = "|".join(name for name in names if name)
    mine = [c for c in found if re.search(rf"\b(?:{calls})\b", c.source)] or found
    return [cell.metadata.nbgrader.grade_id for cell in mine]


def shares(name: str) -> dict[str, list[tuple[str, float]]]:
    """By answer cell, of each paste where it is from and its share of the points. Call
    it in a fresh process: it forks."""
    notebook = read_source(ROOT / "solutions" / name / f"{name}.py")
    pasted = answers(name)
    # of the marks that the reference would lend to other tests none is looked at
    mutants_run.run_from_the_start = lambda _: Outcome()  # type: ignore[assignment]
    mutants_run.reached = own_tests  # type: ignore[attr-defined]
    os.chdir(ROOT / "solutions" / name)
    cases = {case: {cell: text} for case, (cell, _, text) in pasted.items()}
    outcomes = mutants_run.in_processes(notebook, cases)
    cells = mutants_run.code_cells(notebook)
    by_id = {grade_id(cell): place for place, cell in enumerate(cells)}
    found: dict[str, list[tuple[str, float]]] = {}
    for case, (cell, origin, _) in pasted.items():
        marks = Outcome.read(outcomes[case]).grader
        mine = [marks[test] for test in own(cells[by_id[cell] :])]
        broken = [mark.words for mark in mine if mark.words.startswith(BROKEN)]
        assert not broken, f"{name}, {case}: what is pasted is not tried: {broken}"
        if "-v" in sys.argv:
            print(case, [mark.words[:150] for mark in mine], file=sys.stderr)
        most = sum(mark.max_points for mark in mine)
        share = sum(mark.points for mark in mine) / most
        found.setdefault(cell, []).append((origin, share))
    return found


def shares_of_all(names: list[str]) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """The shares of assignments, each in a process of its own, with one torch."""
    mutants_run.get_ready()
    fork, found = multiprocessing.get_context("fork"), {}
    for name in names:
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=lambda: sender.send(shares(name)))  # noqa: B023
        process.start()
        sender.close()
        found[name] = receiver.recv()
        process.join()
    return found


if __name__ == "__main__":
    # as `run_cases` does: no GPU, and sets in the same order each time
    settings = {"CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}
    if any(os.environ.get(key) != value for key, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)
    wanted = [name for name in sys.argv[1:] if name != "-v"]
    print(json.dumps(shares_of_all(wanted), indent=1))
