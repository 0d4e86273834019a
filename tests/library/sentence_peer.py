"""A small sentence encoder whose vectors differ, for tests."""

import torch
from tiny import tiny_bert, tiny_tokenizer

from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertModel
from course_lib.sentence_bert.model import SentenceBert

WORDS = "jim hen ##son was a puppet ##er who what . , ? film good bad"
TOKENIZER = tiny_tokenizer(WORDS)
CONFIG = tiny_bert(vocab_size=len(TOKENIZER), hidden_size=15, dropout=(0.4, 0.3))
SENTENCES = [
    "Jim Henson was a puppeter.",
    "bad",
    "a film",
    "who was a good puppeter, and what was bad?",
    "",
    "a film",
    "good, good, good film",
]


def lively_bert(seed: int, config: BertConfig = CONFIG) -> BertModel:
    """Weights so large that sentences have vectors of their own; at the start all are
    nearly equal."""
    torch.manual_seed(seed)
    bert = BertModel(config)
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return bert


def encoder(seed: int = 4, **settings) -> SentenceBert:
    return SentenceBert(lively_bert(seed), TOKENIZER, **settings)
