"""Whatever takes a mask refuses one of numbers in words: torch would add 0 and 1 to the
scores, and forbid nothing."""

from collections.abc import Callable

import pytest
import torch
from cases import for_each
from tiny import tiny_bert
from torch import Tensor

from course_lib.attention.masks import check_mask, masked_softmax
from course_lib.attention.multi_head import (
    MultiHeadAttention,
    attend,
    scaled_dot_product_attention,
    self_attention_loops,
)
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.embeddings.elmo import ELMo, ELMoConfig, reverse_within_length
from course_lib.embeddings.gpt import (
    CausalLanguageModel,
    LanguageModelBatch,
    neighbour_labels,
)
from course_lib.family.colbert import LateInteraction, maxsim
from course_lib.family.distilbert import DistilBertForMaskedLM
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.modern.layers import PreNormBlock
from course_lib.modern.model import ModernBertConfig, ModernBertForMaskedLM
from course_lib.pretraining.masking import VocabIds, mask_tokens
from course_lib.sentence_bert.model import SentenceClassifier, pool
from course_lib.transformer.blocks import EncoderBlock
from course_lib.transformer.cache import attend_cached, project
from course_lib.transformer.decoder import DecoderBlock
from course_lib.transformer.model import Transformer, TransformerConfig

T, D, H = 4, 6, 2
CONFIG = tiny_bert(
    vocab_size=9,
    hidden_size=D,
    num_hidden_layers=1,
    num_attention_heads=H,
    intermediate_size=8,
    max_position_embeddings=T,
    dropout=0.1,
)
HIDDEN = torch.ones(1, T, D)
IDS = torch.ones(1, T, dtype=torch.long)
ATTENTION = MultiHeadAttention(D, H)
ENCODER = EncoderBlock(D, H, 8)
DECODER = DecoderBlock(D, H, 8)
VOCAB = VocabIds(mask_id=2, size=9, special_ids=(0, 2))
TRANSFORMER = Transformer(
    TransformerConfig(9, 9, dim=D, num_heads=H, num_layers=1, hidden_dim=8)
)

#: By the name of the argument that they blame: calls that take a mask of one row, ``(1,
#: T)``, or a row for each query.
CALLS: dict[str, dict[str, Callable[[Tensor], object]]] = {
    "mask": {
        "check_mask": check_mask,
        "masked_softmax": lambda mask: masked_softmax(torch.zeros(1, T), mask),
        "attend": lambda mask: attend(torch.zeros(1, 1, T), HIDDEN, mask[:, None]),
        "scaled_dot_product_attention": lambda mask: scaled_dot_product_attention(
            HIDDEN, HIDDEN, HIDDEN, mask
        ),
        "self_attention_loops": lambda mask: self_attention_loops(
            *[HIDDEN[0]] * 3, mask.expand(T, T)
        ),
        "MultiHeadAttention": lambda mask: ATTENTION(HIDDEN, mask=mask),
        "attend_cached": lambda mask: attend_cached(
            ATTENTION, HIDDEN, project(ATTENTION, HIDDEN), mask[:, None]
        ),
        "EncoderBlock": lambda mask: ENCODER(HIDDEN, mask),
        "PreNormBlock": lambda mask: PreNormBlock(D, 1, 8)(
            HIDDEN, torch.zeros(1, T, D), mask[:, None]
        ),
        "DecoderBlock": lambda mask: DECODER(HIDDEN, HIDDEN, mask=mask.expand(T, T)),
        "DecoderBlock, memory": lambda mask: DECODER(HIDDEN, HIDDEN, memory_mask=mask),
        "the Transformer's encoder": lambda mask: TRANSFORMER.encoder(
            IDS, mask[:, None]
        ),
    },
    "attention_mask": {
        "BertModel": lambda mask: BertModel(CONFIG)(IDS, mask),
        "BertForPreTraining": lambda mask: BertForPreTraining(CONFIG)(IDS, mask),
        "SequenceClassifier": lambda mask: SequenceClassifier(CONFIG, 2)(IDS, mask),
        "SentenceClassifier": lambda mask: SentenceClassifier(CONFIG, 2)(IDS, mask),
        "TokenClassifier": lambda mask: TokenClassifier(CONFIG, 2)(IDS, mask),
        "SpanClassifier": lambda mask: SpanClassifier(CONFIG)(IDS, mask),
        "MultipleChoiceClassifier": lambda mask: MultipleChoiceClassifier(CONFIG)(
            IDS[None], mask[None]
        ),
        "LateInteraction": lambda mask: LateInteraction(BertModel(CONFIG), dim=3)(
            IDS, mask
        ),
        "DistilBertForMaskedLM": lambda mask: DistilBertForMaskedLM(CONFIG)(IDS, mask),
        "ModernBertForMaskedLM": lambda mask: ModernBertForMaskedLM(
            ModernBertConfig.tiny(vocab_size=9, pad_token_id=0), unpadded=True
        )(IDS, mask),
        "CausalLanguageModel": lambda mask: CausalLanguageModel(CONFIG)(IDS, mask),
        "ELMo": lambda mask: ELMo(ELMoConfig(9, dim=D, hidden_dim=D, num_layers=1))(
            IDS, mask
        ),
        "reverse_within_length": lambda mask: reverse_within_length(HIDDEN, mask),
        "neighbour_labels": lambda mask: neighbour_labels(
            LanguageModelBatch(IDS, mask)
        ),
        "pool": lambda mask: pool(HIDDEN, mask),
    },
    "query_mask": {
        "maxsim, queries": lambda mask: maxsim(HIDDEN, HIDDEN, query_mask=mask)
    },
    "document_mask": {
        "maxsim, documents": lambda mask: maxsim(HIDDEN, HIDDEN, document_mask=mask)
    },
    "special_tokens_mask": {
        "mask_tokens": lambda mask: mask_tokens(IDS, mask, torch.Generator(), VOCAB)
    },
}


@pytest.mark.usefixtures("unchecked")
@for_each(
    ("argument", "name"),
    [(argument, name) for argument in CALLS for name in CALLS[argument]],
)
def test_a_mask_of_numbers_is_refused_in_words_and_a_boolean_one_is_taken(
    argument, name
):
    call = CALLS[argument][name]
    call(torch.tensor([[True, True, True, False]]))
    for dtype, word in ((torch.float32, "float32"), (torch.int64, "int64")):
        message = (
            rf"^{argument} has dtype {word}; expected bool \(True = .*\): pass"
            r" mask\.bool\(\)$"
        )
        with pytest.raises(ValueError, match=message):
            call(torch.tensor([[1, 1, 1, 0]], dtype=dtype))


@pytest.mark.usefixtures("unchecked")
def test_ids_without_a_batch_are_refused_in_words():
    message = (
        r"input_ids has shape \(4,\), but a batch of sequences is \(B, T\); pass"
        r" input_ids\[None\]"
    )
    for model in (BertModel(CONFIG), BertForPreTraining(CONFIG)):
        with pytest.raises(ValueError, match=message):
            model(IDS[0])
