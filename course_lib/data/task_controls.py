"""What it takes to beat on a labelled task: guesses that read no sentence, on the data
card of each task.

A model that understands what it reads must do better than one that always says the
same, one that counts words, one that looks at half of the input, and one that remembers
each word's usual tag. They are fitted on the training split and scored on the test
split.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset, DatasetDict
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from course_lib.data.corpus import markdown_table
from course_lib.data.pydocs_tasks import content_words
from course_lib.metrics.entities import entity_scores
from course_lib.metrics.squad import squad_scores

_BEHIND_A_NAME = r"(?<!\w){} : ([^.,(]+)"


class Control(NamedTuple):
    """A guess that reads no sentence, in words, and its score on the test split in
    percent."""

    name: str
    score: float


def controls_card(name: str, data: DatasetDict) -> str:
    """Return the part of a data card that says what guesses without reading reach."""
    measure, make = CONTROLS[name]
    rows = [(control.name, f"{control.score:.1f}") for control in make(data)]
    title = "### What a guess without reading reaches"
    return f"{title}\n\nFitted on train, scored on test.\n\n" + markdown_table(
        ("guess", f"{measure} (%)"), rows
    )


def of_texts(data: DatasetDict, *columns: str) -> list[Control]:
    """Score guesses of a label: the most common one, and logistic regressions on the
    words of each column."""
    train, test = data["train"], data["test"]
    gold = np.array(test["label"])
    common = Counter(train["label"]).most_common(1)[0][0]
    found = [
        Control("always the most common label of training", _percent(gold == common))
    ]
    for column in columns:
        model = words_model().fit(train[column], train["label"])
        guess = model.predict(test[column])
        found.append(
            Control(
                f"logistic regression on the words of `{column}`",
                _percent(guess == gold),
            )
        )
    return found


def of_pairs(data: DatasetDict) -> list[Control]:
    """Score guesses of whether two texts belong together: by either alone, and by the
    words that they share."""

    def shared(rows: Dataset) -> np.ndarray:
        pairs = zip(
            map(content_words, rows["sentence1"]),
            map(content_words, rows["sentence2"]),
            strict=True,
        )
        return np.array(
            [[len(a & b), len(a & b) / max(1, len(a))] for a, b in pairs], dtype=float
        )

    train, test = data["train"], data["test"]
    model = LogisticRegression().fit(shared(train), train["label"])
    guess = model.predict(shared(test))
    counted = Control(
        "logistic regression on how many words they share",
        _percent(guess == np.array(test["label"])),
    )
    return [*of_texts(data, "sentence1", "sentence2"), counted]


def of_choices(data: DatasetDict) -> list[Control]:
    """Score guesses of an ending: by the endings alone, and by the words that they
    share with the context."""

    def endings(rows: Dataset) -> list[list[str]]:
        return [
            list(choice)
            for choice in zip(*(rows[f"ending{i}"] for i in range(4)), strict=True)
        ]

    train, test = data["train"], data["test"]
    gold = np.array(test["label"])
    texts = [text for choice in endings(train) for text in choice]
    right = [int(i == label) for label in train["label"] for i in range(4)]
    scores = (
        words_model()
        .fit(texts, right)
        .decision_function([t for choice in endings(test) for t in choice])
    )
    shared = [
        [len(content_words(context) & content_words(text)) for text in choice]
        for context, choice in zip(test["context"], endings(test), strict=True)
    ]
    ties = [
        choice.count(max(choice)) if choice[label] == max(choice) else 0
        for choice, label in zip(shared, gold, strict=True)
    ]
    return [
        Control("always the most common place of training", of_texts(data)[0].score),
        Control(
            "logistic regression on the endings alone",
            _percent(scores.reshape(-1, 4).argmax(1) == gold),
        ),
        # Where several share most, each is chosen as often: what is expected, not what
        # one draw gives.
        Control(
            "the ending that shares most words with the context",
            _percent([1 / count if count else 0 for count in ties]),
        ),
    ]


def of_tags(data: DatasetDict) -> list[Control]:
    """Score guesses of tags: none at all, each word's usual tag, and a logistic
    regression on it and its neighbours."""
    train, test = data["train"], data["test"]
    names = train.features["ner_tags"].feature.names
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for tokens, tags in zip(train["tokens"], train["ner_tags"], strict=True):
        for token, tag in zip(tokens, tags, strict=True):
            counts[token][tag] += 1
    usual = {token: counter.most_common(1)[0][0] for token, counter in counts.items()}
    model = make_pipeline(
        CountVectorizer(analyzer=list),
        SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0),
    )
    model.fit(
        [features for tokens in train["tokens"] for features in _of_tokens(tokens)],
        [tag for tags in train["ner_tags"] for tag in tags],
    )
    guesses: dict[str, Callable[[Sequence[str]], Iterable[int]]] = {
        "no entity anywhere": lambda tokens: [0] * len(tokens),
        "the tag that a word mostly has in training": lambda tokens: [
            usual.get(token, 0) for token in tokens
        ],
        "logistic regression on a word, its shape and its neighbours": lambda tokens: (
            model.predict(_of_tokens(tokens))
        ),
    }
    gold = [[names[tag] for tag in tags] for tags in test["ner_tags"]]
    tagged = {
        name: [[names[tag] for tag in guess(tokens)] for tokens in test["tokens"]]
        for name, guess in guesses.items()
    }
    return [
        Control(name, 100 * entity_scores(gold, found).f1)
        for name, found in tagged.items()
    ]


def of_spans(data: DatasetDict) -> list[Control]:
    """Score guesses of answers: the usual answer to a form of question, no answer, what
    stands behind a name in it."""
    train, test = data["train"], data["test"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for question, answers in zip(train["question"], train["answers"], strict=True):
        counts[_form(question)].update(answers["text"][:1] or [""])
    usual = {form: counter.most_common(1)[0][0] for form, counter in counts.items()}
    gold = [answers["text"] for answers in test["answers"]]
    pairs = list(zip(test["question"], test["context"], strict=True))
    guesses = {
        "the usual answer to questions that begin so": [
            usual.get(_form(question), "") for question, _ in pairs
        ],
        "no answer to any question": [""] * len(pairs),
        "what stands behind a name of the question and a colon": [
            _behind(*pair) for pair in pairs
        ],
    }
    if all(gold):
        del guesses["no answer to any question"]
    if not any(guesses["what stands behind a name of the question and a colon"]):
        del guesses["what stands behind a name of the question and a colon"]
    return [
        Control(name, squad_scores(guess, gold).exact)
        for name, guess in guesses.items()
    ]


def words_model() -> Pipeline:
    """Return logistic regression on the words of a text, each weighted by how rare it
    is."""
    return make_pipeline(
        TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=300)
    )


def _percent(right: Any) -> float:
    return float(100 * np.mean(right))


def _of_tokens(tokens: Sequence[str]) -> list[list[str]]:
    padded = ["", *tokens, ""]
    return [
        [
            f"word={token}",
            f"shape={re.sub(r'[a-z]+', 'a', re.sub(r'[A-Z]+', 'A', token))}",
            f"before={padded[i]}",
            f"after={padded[i + 2]}",
        ]
        for i, token in enumerate(tokens)
    ]


def _form(question: str) -> str:
    return " ".join(question.split()[:2])


def _behind(question: str, context: str) -> str:
    for word in re.findall(r"[\w*]+", question):
        found = re.search(_BEHIND_A_NAME.format(re.escape(word)), context)
        if found:
            return found[1].strip()
    return ""


CONTROLS: Mapping[str, tuple[str, Callable[[DatasetDict], list[Control]]]] = {
    "pydocs-topic": ("accuracy", lambda data: of_texts(data, "text")),
    "pydocs-pair": ("accuracy", of_pairs),
    "pydocs-span": ("exact match", of_spans),
    "pydocs-tag": ("F1", of_tags),
    "pydocs-choice": ("accuracy", of_choices),
    "reviews": ("accuracy", lambda data: of_texts(data, "text")),
    "entities": ("F1", of_tags),
    "questions": ("exact match", of_spans),
}
