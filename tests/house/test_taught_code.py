"""What a chapter teaches fits on the page, at most 36 lines without its docstrings, and
is there whole."""

import ast
import inspect
import re
import textwrap
from importlib import import_module
from itertools import chain
from operator import attrgetter

from house import ROOT

LINES = 36
INCLUDED = re.compile(
    r"^`{3,}\{literalinclude\} \.\./course_lib/(\S+)\.py\n(?:[^`].*\n)*?"
    r":pyobject: (\S+)\n(?!(?:[^`].*\n)*?:(?:lines|start-\w+|end-\w+):)",
    re.MULTILINE,
)
#: By chapter, or by its laboratory.
TAUGHT = {
    "01-seq2seq-attention": (
        "attention.masks:masked_softmax",
        "attention.scores:DotScore",
        "attention.scores:BilinearScore",
        "attention.scores:AdditiveScore",
        "attention.multi_head:attend",
        "seq2seq.model:Encoder",
        "seq2seq.model:DecoderState",
        "seq2seq.model:Decoder",
        "seq2seq.model:Seq2Seq",
        "seq2seq.search:greedy",
        "seq2seq.search:sample",
        "seq2seq.search:generate",
        "seq2seq.search:beam_search",
    ),
    "02-self-attention": (
        "attention.masks:causal_mask",
        "attention.multi_head:scaled_dot_product_attention",
        "attention.multi_head:split_heads",
        "attention.multi_head:merge_heads",
        "attention.multi_head:self_attention_loops",
        "attention.multi_head:MultiHeadAttention.__init__",
        "attention.multi_head:MultiHeadAttention.forward",
    ),
    "03-transformer": (
        "transformer.positions:one_hot_lookup",
        "transformer.positions:sinusoidal_positions",
        "transformer.positions:LearnedPositions",
        "transformer.positions:WordAndPosition.forward",
        "transformer.blocks:layer_norm",
        "transformer.blocks:FeedForward",
        "transformer.blocks:EncoderBlock.__init__",
        "transformer.decoder:DecoderBlock.__init__",
        "transformer.decoder:DecoderBlock.forward",
        "transformer.heads:LanguageModelHead",
        "transformer.heads:ClassificationHead",
        "transformer.heads:label_smoothing_loss",
        "transformer.model:TransformerEncoder",
        "transformer.model:Transformer",
        "transformer.cache:attend_cached",
        "transformer.cache:step_block",
        "transformer.cache:CachedDecoding.step",
    ),
    "04-wordpiece": (
        "wordpiece.training:first_pieces",
        "wordpiece.training:merge_pieces",
        "wordpiece.training:pair_scores",
        "wordpiece.training:train_wordpiece",
        "wordpiece.tokenizer:longest_match",
    ),
    "05-bert": (
        "transformer.blocks:EncoderBlock.forward",
        "bert.layers:BertEmbeddings",
        "bert.layers:BertPooler",
        "bert.layers:MaskedLanguageModelHead",
        "bert.layers:NextSentenceHead",
        "bert.model:BertModel",
        "bert.model:BertForPreTraining",
    ),
    "06-pretraining": (
        "pretraining.masking:corrupt",
        "pretraining.batches:pretraining_loss",
    ),
    "07-contextual-embeddings": (
        "embeddings.skip_gram:skip_gram_loss",
        "embeddings.skip_gram:SkipGram",
        "embeddings.elmo:ELMo.forward",
        "embeddings.gpt:CausalLanguageModel.forward",
        "embeddings.contextual:LayerMix",
        "embeddings.contextual:select_layers",
        "embeddings.contextual:sense_separation",
    ),
    "08-fine-tuning": (
        "finetuning.tagging:align_labels",
        "finetuning.spans:best_spans",
    ),
    "09-sentence-bert": (
        "sentence_bert.losses:softmax_features",
        "sentence_bert.losses:cosine_losses",
        "sentence_bert.losses:triplet_losses",
        "sentence_bert.losses:in_batch_losses",
        "sentence_bert.search:closest_pairs",
    ),
    "10-family": (
        "family.albert:AlbertModel",
        "family.distilbert:soft_target_loss",
        "family.colbert:maxsim",
    ),
    "11-encoders-today": (
        "metrics.ranking:ndcg",
        "modern.layers:rotate",
        "modern.layers:local_mask",
        "modern.layers:RotaryAttention",
        "modern.layers:GeGLU",
        "modern.layers:PreNormBlock",
        "modern.model:unpad",
        "modern.model:pad_again",
        "modern.model:ModernBertModel.__init__",
        "modern.model:ModernBertModel.forward",
        "modern.model:ModernBertModel.encode",
        "modern.contrastive:simcse_pairs",
        "modern.contrastive:hard_negatives",
        "modern.contrastive:setfit",
        "modern.retrieval:reciprocal_rank_fusion",
        "modern.retrieval:sparse_vectors",
        "modern.retrieval:flops_loss",
        "modern.lora:LoRALinear",
        "modern.lora:add_lora",
        "modern.lora:merge_lora",
    ),
    "in words": (
        "attention.masks:padding_mask",
        "transformer.positions:WordAndPosition.__init__",
        "pretraining.masking:mask_tokens",
        "pretraining.next_sentence:sentence_pairs",
        "sentence_bert.search:top_k",
        "sentence_bert.losses:MatryoshkaObjective",
        "training.loop:_step",
    ),
}


def lines_of_code(name: str) -> int:
    """Lines that are neither empty nor of a docstring."""
    module, _, attribute = name.partition(":")
    found = attrgetter(attribute)(import_module(f"course_lib.{module}"))
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(found)))
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    lines = enumerate(source.splitlines(), start=1)
    return sum(bool(line.strip()) and n not in docstrings for n, line in lines)


def test_taught_code_fits_on_the_page():
    lengths = {name: lines_of_code(name) for name in chain(*TAUGHT.values())}
    assert {name: n for name, n in lengths.items() if n > LINES} == {}


def shown_on(text: str) -> set[str]:
    """Name the classes and functions of the library that a page shows whole."""
    return {f"{path.replace('/', '.')}:{name}" for path, name in INCLUDED.findall(text)}


def test_each_chapter_shows_whole_what_it_teaches():
    missing = {}
    for chapter in sorted(TAUGHT.keys() - {"in words"}):
        pages = [ROOT / "book" / f"{chapter}{end}.md" for end in ("", "-lab")]
        shown = shown_on("\n".join(page.read_text(encoding="utf-8") for page in pages))
        missing[chapter] = [
            name
            for name in TAUGHT[chapter]
            if name not in shown and re.sub(r"\.\w+$", "", name) not in shown
        ]
    assert {chapter: names for chapter, names in missing.items() if names} == {}


def test_a_part_of_a_class_is_not_shown_whole():
    directive = "```{literalinclude} ../course_lib/a/b.py\n:language: python\n"
    assert shown_on(f"{directive}:pyobject: C\n:without-docstring:\n```\n") == {"a.b:C"}
    assert shown_on(f"{directive}:pyobject: C\n:lines: 1-9\n```\n") == set()
