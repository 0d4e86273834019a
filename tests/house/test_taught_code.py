"""What a chapter teaches fits on the page: at most 36 lines without its docstrings."""

import ast
import inspect
import textwrap
from importlib import import_module
from operator import attrgetter

LINES = 36
TAUGHT = (
    "attention.masks:padding_mask",
    "attention.masks:causal_mask",
    "attention.masks:masked_softmax",
    "attention.scores:DotScore",
    "attention.scores:BilinearScore",
    "attention.scores:AdditiveScore",
    "attention.multi_head:attend",
    "attention.multi_head:scaled_dot_product_attention",
    "attention.multi_head:split_heads",
    "attention.multi_head:merge_heads",
    "attention.multi_head:self_attention_loops",
    "attention.multi_head:MultiHeadAttention.__init__",
    "attention.multi_head:MultiHeadAttention.forward",
    "transformer.positions:one_hot_lookup",
    "transformer.positions:sinusoidal_positions",
    "transformer.positions:LearnedPositions",
    "transformer.positions:WordAndPosition.__init__",
    "transformer.positions:WordAndPosition.forward",
    "transformer.blocks:layer_norm",
    "transformer.blocks:FeedForward",
    "transformer.blocks:EncoderBlock.__init__",
    "transformer.blocks:EncoderBlock.forward",
    "transformer.decoder:DecoderBlock.__init__",
    "transformer.decoder:DecoderBlock.forward",
    "transformer.heads:LanguageModelHead",
    "transformer.heads:ClassificationHead",
    "transformer.heads:label_smoothing_loss",
    "transformer.model:TransformerEncoder",
    "transformer.model:Transformer",
    "bert.layers:BertEmbeddings",
    "bert.layers:BertPooler",
    "bert.layers:MaskedLanguageModelHead",
    "bert.layers:NextSentenceHead",
    "bert.model:BertModel",
    "bert.model:BertForPreTraining",
    "family.albert:AlbertModel",
    "family.distilbert:soft_target_loss",
    "family.colbert:maxsim",
    "seq2seq.model:Encoder",
    "seq2seq.model:Decoder",
    "seq2seq.model:Seq2Seq",
    "seq2seq.search:greedy",
    "seq2seq.search:sample",
    "seq2seq.search:generate",
    "seq2seq.search:beam_search",
    "wordpiece.training:first_pieces",
    "wordpiece.training:merge_pieces",
    "wordpiece.training:pair_scores",
    "wordpiece.training:train_wordpiece",
    "wordpiece.tokenizer:longest_match",
    "pretraining.masking:corrupt",
    "pretraining.masking:mask_tokens",
    "pretraining.next_sentence:sentence_pairs",
    "pretraining.batches:pretraining_loss",
    "embeddings.skip_gram:skip_gram_loss",
    "embeddings.skip_gram:SkipGram",
    "embeddings.elmo:ELMo.forward",
    "embeddings.gpt:CausalLanguageModel.forward",
    "embeddings.contextual:LayerMix",
    "embeddings.contextual:select_layers",
    "embeddings.contextual:sense_separation",
    "finetuning.tagging:align_labels",
    "finetuning.spans:best_spans",
    "sentence_bert.losses:softmax_features",
    "sentence_bert.losses:cosine_losses",
    "sentence_bert.losses:triplet_losses",
    "sentence_bert.losses:in_batch_losses",
    "sentence_bert.search:top_k",
    "sentence_bert.search:closest_pairs",
    "training.loop:_step",
)


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
    lengths = {name: lines_of_code(name) for name in TAUGHT}
    assert {name: n for name, n in lengths.items() if n > LINES} == {}
