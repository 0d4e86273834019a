"""Little data of the shapes that experiments read, all of it generated here: what
probes are taken on in place of folders, `pydocs` and large corpora.
"""

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from datasets import Dataset

from course_lab.ch01_seq2seq.seq2seq import Corpus as Translations
from course_lab.ch01_seq2seq.text import encode_pairs, train_tokenizer
from course_lab.ch06_pretraining.pretrain_data import Corpus, documents
from course_lab.ch06_pretraining.pretraining_stories import SUBJECTS
from course_lab.ch07_embeddings.pseudo_words import tokens_of
from course_lab.probing import fill
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining
from course_lib.data import pronouns, stories, translation
from course_lib.pretraining.token_store import TokenStore
from course_lib.sentence_bert.model import SentenceBert
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
from course_lib.wordpiece.training import count_words

SIZES = {"train": 96, "validation": 24, "test": 24}  # rows of most tables
FEW_STORIES = 7  # less than a probe of pre-training reads: it begins a second epoch
LONGEST = 16  # words of a sentence
Rows = list[dict[str, Any]]


@cache
def sentences() -> tuple[str, ...]:
    """Return different English sentences."""
    made = translation.generate(400, seed=1, max_length=LONGEST)
    return tuple(pair["en"] for pair in made)


def translations(data: str, tokenizer: str, vocab_size: int) -> Translations:
    """Return sentence pairs, encoded: of pronouns if `data` is called so."""
    if data == "pronouns":
        rows = {split: pronouns.generate(split)[:most] for split, most in SIZES.items()}
    else:
        made = translation.generate(sum(SIZES.values()), seed=2, max_length=LONGEST)
        rows = {
            split: [made.pop() for _ in range(most)] for split, most in SIZES.items()
        }
    text = {
        split: {name: [row[name] for row in part] for name in part[0]}
        for split, part in rows.items()
    }
    tokenizers = (
        train_tokenizer(text["train"]["en"], tokenizer, min(vocab_size, 400)),
        train_tokenizer(text["train"]["fr"], tokenizer, min(vocab_size, 400)),
    )
    pairs = {
        split: encode_pairs(columns["en"], columns["fr"], tokenizers)
        for split, columns in text.items()
    }
    return Translations(text, pairs, tokenizers)


@cache
def story_corpus(data: str = "stories", train: int = 600) -> Corpus:
    """Return few stories as a tokenised corpus, each word a token."""
    worlds = stories.WORLDS[data]
    numbers = {"train": train, "validation": 40, "test": 60}
    texts = {
        split: list(documents(stories.generate(split, number, 3, worlds)))
        for split, number in numbers.items()
    }
    told = [document for part in texts.values() for document in part]
    told += documents(stories.generate("train", 3000, 4))  # for rare words
    words = count_words(sentence for document in told for sentence in document)
    tokenizer = FastWordPiece([*SPECIAL_TOKENS, *sorted({*words, *SUBJECTS})])
    stores = {
        split: TokenStore(
            Path(split),
            part.ids,
            part.sentence_starts,
            part.document_starts,
            len(tokenizer),
            {},
        )
        for split, part in (
            (split, tokens_of(told, tokenizer)) for split, told in texts.items()
        )
    }
    return Corpus(data, tokenizer, stores, {})


@cache
def tokenizer() -> FastWordPiece:
    """Return a tokenizer of the words of `sentences`, and of all letters."""
    words = {word for sentence in sentences() for word in sentence.split()}
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = {*letters, *(f"##{x}" for x in letters), ".", "?", "'"}
    return FastWordPiece([*SPECIAL_TOKENS, *sorted(words | pieces)])


_folder = TemporaryDirectory(prefix="stand-ins-")


@cache
def checkpoint() -> Path:
    """Return the folder of a small BERT, which is a sentence encoder too; its weights
    are `fill`'s."""
    config = BertConfig(
        vocab_size=len(tokenizer()),
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForPreTraining(config)
    fill(model, salt="checkpoint ")  # not what a model from scratch starts with
    folder = Path(_folder.name) / "checkpoint"
    SentenceBert(model.bert, tokenizer(), normalize=True).save_pretrained(folder)
    return folder


def table(columns: tuple[str, ...], classes: int, number: int, seed: int) -> Rows:
    """Return rows of sentences with a class that one of their words decides."""
    draw = random.Random(seed)
    rows = []
    for _ in range(number):
        texts = {name: f"{draw.choice(sentences())} ." for name in columns}
        rows.append({**texts, "label": len(texts[columns[0]].split()[0]) % classes})
    return rows


@cache
def folder_of_tables() -> str:
    """Return a folder that `course_lib.data.load` reads, with the tables of chapters 9
    and 10."""
    root = Path(_folder.name) / "data"
    pair = ("sentence1", "sentence2")
    tables = {
        "snli": (("premise", "hypothesis"), 3),
        "mnli": (("premise", "hypothesis"), 3),
        "stsb": (pair, 6),
        "subj": (("text",), 2),
        "trec": (("text",), 3),
        "mrpc": (pair, 2),
        "sst2": (("sentence",), 2),
        "pydocs-pair": (pair, 2),
    }
    for name, (columns, classes) in tables.items():
        splits = {"all": 80} if name == "subj" else SIZES
        for seed, (split, number) in enumerate(splits.items()):
            rows = table(columns, classes, number, seed)
            if name == "stsb":
                rows = [{**row, "label": float(row["label"])} for row in rows]
            if name == "trec":
                rows = [
                    {"text": row["text"], "coarse_label": row["label"]} for row in rows
                ]
            (root / name).mkdir(parents=True, exist_ok=True)
            Dataset.from_list(rows).to_parquet(root / name / f"{split}.parquet")
    return str(root)
