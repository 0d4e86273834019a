"""The public names of the course's library, in the order of the chapters.

This list is the one place where they stand: `course_lib/__init__.py` imports them from
it when they are first used, editors and mypy read their types from it, the reference on
the site and the rules for docstrings follow it.
"""

# Chapter 1: sequence to sequence, and attention
from course_lib.attention.masks import (
    padding_mask as padding_mask,
    causal_mask as causal_mask,
    masked_softmax as masked_softmax,
)
from course_lib.attention.scores import (
    DotScore as DotScore,
    BilinearScore as BilinearScore,
    AdditiveScore as AdditiveScore,
)
from course_lib.attention.multi_head import attend as attend
from course_lib.seq2seq.model import (
    Seq2SeqConfig as Seq2SeqConfig,
    Encoder as Encoder,
    Decoder as Decoder,
    Seq2Seq as Seq2Seq,
)
from course_lib.seq2seq.search import (
    greedy as greedy,
    sample as sample,
    beam_search as beam_search,
)

# Chapter 2: self-attention
from course_lib.attention.multi_head import (
    scaled_dot_product_attention as scaled_dot_product_attention,
    split_heads as split_heads,
    merge_heads as merge_heads,
    self_attention_loops as self_attention_loops,
    MultiHeadAttention as MultiHeadAttention,
)

# Chapter 3: the Transformer
from course_lib.transformer.positions import (
    one_hot_lookup as one_hot_lookup,
    sinusoidal_positions as sinusoidal_positions,
    LearnedPositions as LearnedPositions,
)
from course_lib.transformer.blocks import (
    layer_norm as layer_norm,
    FeedForward as FeedForward,
    EncoderBlock as EncoderBlock,
)
from course_lib.transformer.decoder import DecoderBlock as DecoderBlock
from course_lib.transformer.heads import (
    LanguageModelHead as LanguageModelHead,
    ClassificationHead as ClassificationHead,
    label_smoothing_loss as label_smoothing_loss,
)
from course_lib.transformer.model import (
    TransformerConfig as TransformerConfig,
    TransformerEncoder as TransformerEncoder,
    Transformer as Transformer,
)

# Chapter 4: WordPiece
from course_lib.wordpiece.normalize import (
    normalize as normalize,
    normalize_text as normalize_text,
    split_words as split_words,
)
from course_lib.wordpiece.training import (
    count_words as count_words,
    first_pieces as first_pieces,
    merge_pieces as merge_pieces,
    pair_scores as pair_scores,
    train_wordpiece as train_wordpiece,
)
from course_lib.wordpiece.tokenizer import (
    longest_match as longest_match,
    WordPiece as WordPiece,
)
from course_lib.wordpiece.fast import FastWordPiece as FastWordPiece

# Chapter 5: BERT, the encoder
from course_lib.bert.config import BertConfig as BertConfig
from course_lib.bert.layers import (
    BertEmbeddings as BertEmbeddings,
    BertPooler as BertPooler,
    MaskedLanguageModelHead as MaskedLanguageModelHead,
    NextSentenceHead as NextSentenceHead,
)
from course_lib.bert.model import (
    BertModel as BertModel,
    BertForPreTraining as BertForPreTraining,
)
from course_lib.bert.weights import published_name as published_name
from course_lib.bert.files import load_bert as load_bert, save_bert as save_bert

# Chapter 6: pre-training
from course_lib.pretraining.masking import (
    MaskingConfig as MaskingConfig,
    VocabIds as VocabIds,
    corrupt as corrupt,
    mask_tokens as mask_tokens,
)
from course_lib.pretraining.next_sentence import sentence_pairs as sentence_pairs
from course_lib.pretraining.packing import pack as pack
from course_lib.pretraining.batches import (
    PreTrainingBatches as PreTrainingBatches,
    pretraining_loss as pretraining_loss,
)

# Chapter 7: contextual embeddings
from course_lib.embeddings.static import StaticVectors as StaticVectors
from course_lib.embeddings.skip_gram import (
    SkipGramConfig as SkipGramConfig,
    SkipGram as SkipGram,
    skip_gram_loss as skip_gram_loss,
)
from course_lib.embeddings.elmo import ELMoConfig as ELMoConfig, ELMo as ELMo
from course_lib.embeddings.gpt import CausalLanguageModel as CausalLanguageModel
from course_lib.embeddings.contextual import (
    select_layers as select_layers,
    LayerMix as LayerMix,
    sense_separation as sense_separation,
)

# Chapter 8: transfer, features and fine-tuning
from course_lib.finetuning.examples import (
    text_examples as text_examples,
    tagging_examples as tagging_examples,
    question_examples as question_examples,
    choice_examples as choice_examples,
)
from course_lib.finetuning.heads import (
    SequenceClassifier as SequenceClassifier,
    TokenClassifier as TokenClassifier,
    SpanClassifier as SpanClassifier,
    MultipleChoiceClassifier as MultipleChoiceClassifier,
)
from course_lib.finetuning.tagging import align_labels as align_labels
from course_lib.finetuning.spans import (
    windows as windows,
    answer_positions as answer_positions,
    best_spans as best_spans,
)
from course_lib.finetuning.finetune import (
    FineTuningConfig as FineTuningConfig,
    finetune as finetune,
    rate_factors as rate_factors,
)
from course_lib.finetuning.losses import consistency_loss as consistency_loss
from course_lib.finetuning.averaging import keep_average as keep_average
from course_lib.finetuning.predict import predict as predict

# Chapter 9: Sentence-BERT
from course_lib.sentence_bert.model import pool as pool, SentenceBert as SentenceBert
from course_lib.sentence_bert.model import SentenceClassifier as SentenceClassifier
from course_lib.sentence_bert.losses import (
    softmax_features as softmax_features,
    cosine_losses as cosine_losses,
    triplet_losses as triplet_losses,
    in_batch_losses as in_batch_losses,
)
from course_lib.sentence_bert.losses import (
    SoftmaxObjective as SoftmaxObjective,
    CosineObjective as CosineObjective,
    TripletObjective as TripletObjective,
    InBatchObjective as InBatchObjective,
    MatryoshkaObjective as MatryoshkaObjective,
)
from course_lib.sentence_bert.training import train_sentences as train_sentences
from course_lib.sentence_bert.search import (
    top_k as top_k,
    closest_pairs as closest_pairs,
)
from course_lib.sentence_bert.evaluation import probe as probe

# Chapter 10: the family
from course_lib.family.albert import AlbertModel as AlbertModel
from course_lib.family.distilbert import (
    DistilBertModel as DistilBertModel,
    soft_target_loss as soft_target_loss,
)
from course_lib.family.colbert import (
    maxsim as maxsim,
    LateInteraction as LateInteraction,
)
from course_lib.family.prompting import prompt as prompt
from course_lib.family.inputs import (
    roberta_positions as roberta_positions,
    permutation_masks as permutation_masks,
)

# Chapter 11: encoders today
from course_lib.modern.layers import (
    rotate as rotate,
    local_mask as local_mask,
    GeGLU as GeGLU,
)
from course_lib.modern.model import (
    ModernBertConfig as ModernBertConfig,
    unpad as unpad,
    ModernBertModel as ModernBertModel,
)
from course_lib.modern.contrastive import hard_negatives as hard_negatives
from course_lib.modern.retrieval import (
    reciprocal_rank_fusion as reciprocal_rank_fusion,
    sparse_vectors as sparse_vectors,
)
from course_lib.modern.lora import LoRALinear as LoRALinear

# What serves all chapters
from course_lib.data import load as load
from course_lib.training.loop import device as device, train as train
from course_lib.training.config import TrainingConfig as TrainingConfig
from course_lib.training.batches import set_seed as set_seed
from course_lib.metrics.scores import bleu as bleu, mean_interval as mean_interval
from course_lib.metrics.ranking import ndcg as ndcg
from course_lib.metrics.squad import squad_exact as squad_exact, squad_f1 as squad_f1
from course_lib.figures.explorer import attention_explorer as attention_explorer
from course_lib.figures.stepper import stepped_figure as stepped_figure
