"""Which layer's vectors serve a tagging task best: frozen features of each selection,
one linear tagger (chapter 7).

As in table 7 of Devlin et al. 2019, the encoder is frozen and a word is the vector of
its first piece. Their tagger on top is a two-layer BiLSTM of 768 features; ours is
logistic regression, word by word, so that what is compared is the vectors. Controls:
the tagger on the embeddings ("first"), which know no context, and on the same model
untrained.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from course_lab import stand_ins
from course_lab.ch07_embeddings.real_senses import sense_scores
from course_lab.probing import start
from course_lab.records import lead_text, mean_text
from course_lab.study import Study
from course_lib.bert.files import checkpoint_folder, load_bert
from course_lib.bert.model import BertModel
from course_lib.data import load
from course_lib.data.corpus import markdown_table
from course_lib.embeddings.contextual import (
    SELECTIONS,
    EncodedWords,
    LayerMix,
    encode_words,
    pool_words,
    select_layers,
)
from course_lib.files import CHECKPOINTS
from course_lib.metrics.entities import EntityScore, entity_scores
from course_lib.metrics.scores import mean_interval
from course_lib.training.batches import set_seed
from course_lib.wordpiece.fast import FastWordPiece

#: Devlin et al. 2019, table 7: F1 on the development set of CoNLL-2003, in percent;
#: their sums are weighted.
PUBLISHED: Mapping[str, float] = {
    "first": 91.0,
    "last": 94.9,
    "second_to_last": 95.6,
    "sum_last_4": 95.9,
    "concat_last_4": 96.1,
    "sum": 95.5,
}
NAMES: Mapping[str, str] = {
    "first": "first (embeddings)",
    "last": "last",
    "second_to_last": "second to last",
    "sum_last_4": "sum of the last four",
    "concat_last_4": "concatenation of the last four",
    "sum": "sum of all",
    "mix": "learned mix of all",
}
MIX_STEPS = 300
STRENGTH = 0.1  # C of all taggers


class WordStates(NamedTuple):
    """The states of the words of many sentences."""

    #: The embeddings and each layer's states, one row a word: ``(1, N, D)`` each.
    layers: list[torch.Tensor]
    lengths: list[int]  # words of each sentence that were read


@torch.no_grad()
def read_words(
    model: BertModel,
    tokenizer: FastWordPiece,
    sentences: Sequence[Sequence[str]],
    max_length: int,
    batch: int = 32,
) -> WordStates:
    """Let a model read sentences, and keep the states at the first piece of each
    word."""
    encoded = [encode_words(tokenizer, words, max_length) for words in sentences]
    lengths = [max(sentence.word_ids) + 1 for sentence in encoded]
    order = sorted(range(len(encoded)), key=lambda number: len(encoded[number].ids))
    found: dict[int, list[torch.Tensor]] = {}
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        ids, mask, word_ids = _padded([encoded[number] for number in chosen])
        states = model(ids, mask, return_hidden_states=True).hidden_states
        assert states is not None
        words = [pool_words(state, word_ids, "first") for state in states]
        for row, number in enumerate(chosen):
            found[number] = [state[row, : lengths[number]] for state in words]
    layers = [
        torch.cat([found[number][layer] for number in range(len(encoded))])
        for layer in range(len(found[0]))
    ]
    return WordStates([layer[None] for layer in layers], lengths)


def _padded(
    encoded: Sequence[EncodedWords],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    width = max(len(sentence.ids) for sentence in encoded)
    ids = torch.tensor(
        [sentence.ids + [0] * (width - len(sentence.ids)) for sentence in encoded]
    )
    word_ids = torch.tensor(
        [sentence.word_ids + [-1] * (width - len(sentence.ids)) for sentence in encoded]
    )
    return (
        ids,
        torch.arange(width)
        < torch.tensor([[len(sentence.ids)] for sentence in encoded]),
        word_ids,
    )


class Tagged(NamedTuple):
    """Sentences with the names of their tags."""

    tokens: list[list[str]]
    tags: list[list[str]]


def tagged(rows: Dataset) -> Tagged:
    """Read the sentences of a split and name their tags."""
    names = rows.features["ner_tags"].feature.names
    tokens = [list(words) for words in rows["tokens"]]
    return Tagged(
        tokens, [[names[tag] for tag in sentence] for sentence in rows["ner_tags"]]
    )


def tag_scores(
    train: WordStates,
    train_tags: Sequence[Sequence[str]],
    test: WordStates,
    test_tags: Sequence[Sequence[str]],
    mix: bool = False,
) -> dict[str, EntityScore]:
    """Fit a linear tagger to each selection of layers that the model has, and score it
    on the test; to a mix whose weights it learns too, if asked for."""
    wanted = [
        tag
        for tags, length in zip(train_tags, train.lengths, strict=True)
        for tag in tags[:length]
    ]
    scores: dict[str, EntityScore] = {}
    for how in (*SELECTIONS, *(("mix",) if mix else ())):
        if how.endswith("last_4") and len(train.layers) < 5:
            continue
        if how == "mix":
            guesses = iter(learned_mix(train.layers, wanted, test.layers))
        else:
            features = [
                select_layers(states.layers, how)[0].numpy() for states in (train, test)
            ]
            tagger = make_pipeline(
                StandardScaler(), LogisticRegression(C=STRENGTH, max_iter=200)
            )
            found = tagger.fit(features[0], wanted).predict(features[1])
            guesses = iter(found.tolist())
        sentences = [
            [next(guesses) for _ in range(length)] + ["O"] * (len(tags) - length)
            for tags, length in zip(test_tags, test.lengths, strict=True)
        ]
        scores[how] = entity_scores(test_tags, sentences)
    return scores


def learned_mix(
    train: Sequence[torch.Tensor], wanted: Sequence[str], test: Sequence[torch.Tensor]
) -> list[str]:
    """Fit the weights of a `LayerMix` of standardised layers together with the tagger
    on it, which has the same penalty as the others, and tag the test."""
    scale = [(x.mean(dim=1), x.std(dim=1) + 1e-6) for x in train]
    parts = [
        [(x - mean) / size for x, (mean, size) in zip(part, scale, strict=True)]
        for part in (train, test)
    ]
    names = sorted(set(wanted))
    targets = torch.tensor([names.index(tag) for tag in wanted])
    mix, head = LayerMix(len(train)), nn.Linear(train[0].shape[-1], len(names))
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    weights = [*mix.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(weights, lr=0.02)
    for _ in range(MIX_STEPS):
        loss = F.cross_entropy(head(mix(parts[0]))[0], targets)
        loss = loss + head.weight.square().sum() / (2 * STRENGTH * len(targets))
        slopes = torch.autograd.grad(loss, weights)
        for weight, slope in zip(weights, slopes, strict=True):
            weight.grad = slope
        optimizer.step()
    with torch.no_grad():
        return [names[i] for i in head(mix(parts[1]))[0].argmax(dim=1).tolist()]


def untrained_like(model: BertModel, seed: int) -> BertModel:
    """Build a model of the same sizes with random weights."""
    set_seed(seed)
    return start(BertModel(model.config)).eval()


def layer_scores(
    model: BertModel,
    tokenizer: FastWordPiece,
    train: Tagged,
    test: Tagged,
    sentences: int,
    max_length: int,
    seed: int,
    mix: bool = False,
) -> dict[str, float]:
    """Draw sentences to train on, and return F1 of each selection."""
    drawn = (
        np.random.default_rng(seed).permutation(len(train.tokens))[:sentences].tolist()
    )
    read = read_words(
        model, tokenizer, [train.tokens[number] for number in drawn], max_length
    )
    held = read_words(model, tokenizer, test.tokens, max_length)
    tags = [train.tags[number] for number in drawn]
    scores = tag_scores(read, tags, held, test.tags, mix)
    return {how: score.f1 for how, score in scores.items()}


def layer_rows(columns: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Write a layer table: the published figures, and for each column the mean over
    seeds ± 95% interval, in percent. What has neither is left out."""
    rows = [
        (
            name,
            f"{PUBLISHED[how]:.1f}" if how in PUBLISHED else "",
            *(
                mean_text([100 * x[how] for x in seeds if how in x]) or "not measured"
                for seeds in columns.values()
            ),
        )
        for how, name in NAMES.items()
        if how in PUBLISHED
        or any(how in x for seeds in columns.values() for x in seeds)
    ]
    return markdown_table(("vectors", "published, CoNLL-2003", *columns), rows)


def lead_rows(columns: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Write by how many points each selection of layers differs from the last layer,
    draw by draw."""
    rows = [
        (
            name,
            *(
                lead_text(mean_interval([100 * (x[how] - x["last"]) for x in draws]))
                for draws in columns.values()
            ),
        )
        for how, name in NAMES.items()
        if how != "last" and all(how in x for of in columns.values() for x in of)
    ]
    return markdown_table(("minus the last layer", *columns), rows)


class Inputs(NamedTuple):
    """Sentences, and where the checkpoint of a name lies."""

    data: DatasetDict
    folder_of: Callable[[str], Path]


def read(study: Study, source: str | None, _: str | None) -> Inputs:
    """Read the sentences."""
    return Inputs(load(study.shared["data"], source), _folder_of)


def _folder_of(name: str) -> Path:
    return CHECKPOINTS / name if name == MINI else checkpoint_folder(name)


def run(study: Study, variant: str, seed: int, inputs: Inputs) -> dict[str, Any]:
    """Measure a checkpoint, or a model of its sizes with random weights."""
    folder = inputs.folder_of(variant.removesuffix(UNTRAINED))
    model, tokenizer = load_bert(folder), FastWordPiece.load(folder)
    if variant.endswith(UNTRAINED):
        model = untrained_like(model, seed)
    asked, test = study.shared, inputs.data["test"]
    held = test.take(min(asked["test_sentences"], len(test)))
    if asked["data"] == "senses":
        return {"separation": sense_scores(model, tokenizer, held.to_list())}
    scores = layer_scores(
        model,
        tokenizer,
        tagged(inputs.data["train"]),
        tagged(held),
        asked["train_sentences"],
        asked["max_length"],
        seed,
        asked.get("mix", False),
    )
    return {"f1": scores}


MINILM, MINI = "sentence-transformers/all-MiniLM-L6-v2", "mini"
UNTRAINED = ", untrained"


def study_of(data: str, sentences: int = 1000, model: str = MINILM) -> Study:
    """Return the study of a data set with the columns ``tokens`` and ``ner_tags``, or
    of ``senses``, whose words' senses are told apart.

    So many sentences are drawn for each seed from the train split; as many are the
    first of the test split.
    """
    shared = {
        "data": data,
        "models": (model,),
        "train_sentences": sentences,
        "test_sentences": sentences,
        "max_length": 96,
        "untrained": True,
    }
    names = dict.fromkeys((model, model + UNTRAINED))
    name = f"layers-{data}"
    if model == MINI:
        name, shared["mix"] = f"layers-mini-{data}", True
    return Study(name, names, read, run, probe, shared, (data,), listed=None)


# -- probes
# --------------------------------------------------------------------------------------


def probe(study: Study, _: str) -> tuple[Study, Inputs]:
    """Return a study with a stand-in of its checkpoint, and few sentences."""
    data = _senses() if study.shared["data"] == "senses" else _tagged()
    return study, Inputs(data, lambda _: stand_ins.checkpoint())


def _tagged() -> DatasetDict:
    """Sentences whose long words are entities."""
    of_words = [sentence.split() for sentence in stand_ins.sentences()[:120]]
    tags = [[int(len(word) > 6) for word in words] for words in of_words]
    names = ClassLabel(names=["O", "B-LONG"])
    features = Features({"tokens": List(Value("string")), "ner_tags": List(names)})
    table = Dataset.from_dict({"tokens": of_words, "ner_tags": tags}, features=features)
    return DatasetDict(train=table.select(range(80)), test=table.select(range(80, 120)))


def _senses() -> DatasetDict:
    """The word "the" before short words, and before others."""
    rows = []
    for text in stand_ins.sentences():
        if text.startswith("the "):
            sense = str(len(text.split()[1]) > 5)
            rows.append(
                {"text": text, "start": 0, "end": 3, "word": "the", "sense": sense}
            )
    return DatasetDict(test=Dataset.from_list(rows[:60]))


STUDIES = {
    "pydocs-tag": study_of("pydocs-tag"),
    "senses": study_of("senses"),
    "wnut17": study_of("wnut17", 2000),
    "mini-pydocs-tag": study_of("pydocs-tag", model=MINI),
    "mini-wnut17": study_of("wnut17", 2000, MINI),
}
