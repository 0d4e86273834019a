"""Small sizes and vocabularies that many tests share."""

from course_lib.bert.config import BertConfig
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece


def tiny_bert(
    dropout: float | tuple[float, float] = 0.0, **changes: object
) -> BertConfig:
    """Sizes of a BERT that all differ, so that two that were exchanged show.

    `dropout` is that of the states and of the attention's weights.
    """
    states, weights = dropout if isinstance(dropout, tuple) else (dropout, dropout)
    sizes = {
        "vocab_size": 41,
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 22,
        "max_position_embeddings": 19,
        "hidden_dropout_prob": states,
        "attention_probs_dropout_prob": weights,
    }
    return BertConfig(**sizes | changes)


def tiny_tokenizer(
    pieces: str, kind: type[WordPiece | FastWordPiece] = FastWordPiece
) -> WordPiece | FastWordPiece:
    """Make a tokenizer of the special tokens and the pieces, which spaces separate."""
    return kind([*SPECIAL_TOKENS, *pieces.split()])
