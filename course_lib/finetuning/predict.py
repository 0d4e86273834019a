"""From raw text to guesses: what a fine-tuned model is for.

Tokens, batches, windows and padding stay inside. Letters of this module: B examples in
a batch, T positions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.finetuning.examples import Example, collate, text_examples
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.finetuning.spans import Span, best_spans, null_score, windows
from course_lib.finetuning.tagging import align_words, chunks, word_logits
from course_lib.finetuning.task_model import TaskModel, looking
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.normalize import split_words
from course_lib.wordpiece.tokenizer import Text, WordPiece

Tokenizer = WordPiece | FastWordPiece


class Guess(NamedTuple):
    """A class for a text, or a choice."""

    label: str | int
    probabilities: tuple[float, ...]


class TaggedWord(NamedTuple):
    """A word with its tag."""

    word: str
    label: str
    probability: float
    start: int | None
    end: int | None


class Answer(NamedTuple):
    """An answer to a question."""

    text: str
    start: int
    end: int
    probability: float
    null_margin: float
    alternatives: list[Span]


def predict(
    model: TaskModel, tokenizer: Tokenizer, inputs: Sequence[Any], **options: Any
) -> list[Any]:
    """Guess on raw text, whatever the task.

    Parameters
    ----------
    model
        A fine-tuned model.
    tokenizer
        The one that it was trained with.
    inputs
        What the kind of model reads: texts or pairs of texts for a
        `SequenceClassifier`; texts or lists of words for a `TokenClassifier`; pairs
        (question, context) for a `SpanClassifier`; pairs (context, endings) for a
        `MultipleChoiceClassifier`.
    options
        Those of `predict_labels`, `predict_tags`, `predict_answers` and
        `predict_choices`.

    Returns
    -------
    list
        One guess for each input, in their order: `Guess` or a number, a list of
        `TaggedWord`, `Answer`, `Guess`.

    Raises
    ------
    ValueError
        If the model is of another kind.

    Examples
    --------
    >>> from course_lib.bert.config import BertConfig
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "a", "film"])
    >>> model = SequenceClassifier(
    ...     BertConfig.tiny(vocab_size=len(tokenizer)), ["bad", "good"]
    ... )
    >>> [guess] = predict(model, tokenizer, ["A film"])
    >>> guess.label in ("bad", "good"), round(sum(guess.probabilities), 6)
    (True, 1.0)
    """
    kinds: Mapping[type[TaskModel], Any] = {
        SequenceClassifier: predict_labels,
        TokenClassifier: predict_tags,
        SpanClassifier: predict_answers,
        MultipleChoiceClassifier: predict_choices,
    }
    for kind, function in kinds.items():
        if isinstance(model, kind):
            return function(model, tokenizer, inputs, **options)
    raise ValueError(
        f"the model is a {type(model).__name__}; predict knows"
        f" {', '.join(x.__name__ for x in kinds)}"
    )


def predict_labels(
    model: SequenceClassifier,
    tokenizer: Tokenizer,
    texts: Sequence[Text],
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[Guess] | list[float]:
    """Classify texts or pairs of texts, or guess their numbers."""
    examples = text_examples(
        texts, None, tokenizer, max_length or model.config.max_position_embeddings
    )
    rows = _outputs(model, examples, batch_size)
    if model.guesses_number:
        return [float(row) for row in rows]
    return [
        Guess(model.labels[int(row.argmax())], tuple(row.softmax(0).tolist()))
        for row in rows
    ]


def predict_tags(
    model: TokenClassifier,
    tokenizer: Tokenizer,
    texts: Sequence[str | Sequence[str]],
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[list[TaggedWord]]:
    """Tag every word of texts; the guess at a word is that at its first piece."""
    longest = max_length or model.config.max_position_embeddings
    of_texts = [_words(text, tokenizer) for text in texts]
    examples, parts = [], []
    for number, words in enumerate(of_texts):
        strings = [word for word, _, _ in words]
        for begin, end in chunks(strings, tokenizer, longest) if strings else []:
            ids, first = align_words(strings[begin:end], tokenizer, longest)
            examples.append(Example([(ids, [0] * len(ids))]))
            parts.append((number, words[begin:end], first))
    tagged: list[list[TaggedWord]] = [[] for _ in texts]
    outputs = _outputs(model, examples, batch_size)
    for (number, of_part, first), logits in zip(parts, outputs, strict=True):
        best = word_logits(logits, first).softmax(dim=1).max(dim=1)
        for (word, begins, ends), index, share in zip(
            of_part, best.indices.tolist(), best.values.tolist(), strict=True
        ):
            tagged[number].append(
                TaggedWord(word, model.labels[index], share, begins, ends)
            )
    return tagged


def predict_answers(
    model: SpanClassifier,
    tokenizer: Tokenizer,
    questions: Sequence[tuple[str, str]],
    batch_size: int = 32,
    max_length: int | None = None,
    stride: int = 128,
    n_best: int = 20,
    max_answer_length: int = 30,
    null_threshold: float | None = None,
) -> list[Answer]:
    """Answer questions with stretches of their contexts, however long these are."""
    longest = max_length or min(384, model.config.max_position_embeddings)
    of_questions = [
        windows(question, context, tokenizer, longest, stride)
        for question, context in questions
    ]
    examples = [
        Example([(x.input_ids, x.token_type_ids)])
        for of_one in of_questions
        for x in of_one
    ]
    outputs = iter(_outputs(model, examples, batch_size))
    answers = []
    for (_, context), of_one in zip(questions, of_questions, strict=True):
        rows = [next(outputs) for _ in of_one]
        starts, ends = [row[0] for row in rows], [row[1] for row in rows]
        spans = best_spans(
            starts, ends, of_one, n_best, max_answer_length, null_threshold
        )
        scores = [span.score for span in spans if span.end > 0]
        margin = max(scores, default=float("-inf")) - null_score(starts, ends)
        start, end, _, probability = spans[0]
        text = spans[0].text(context)
        answers.append(Answer(text, start, end, probability, margin, spans))
    return answers


def predict_choices(
    model: MultipleChoiceClassifier,
    tokenizer: Tokenizer,
    questions: Sequence[tuple[str, Sequence[str]]],
    batch_size: int = 32,
    max_length: int | None = None,
) -> list[Guess]:
    """Choose the ending that fits a context best."""
    longest = max_length or model.config.max_position_embeddings
    if any(not endings for _, endings in questions):
        raise ValueError("a context has no ending to choose; give it at least one")
    # Each ending is an input of its own, so that contexts with few and with many share
    # a batch.
    pairs = [(context, ending) for context, endings in questions for ending in endings]
    rows = _outputs(model, text_examples(pairs, None, tokenizer, longest), batch_size)
    scores = torch.tensor([float(row) for row in rows])
    of_questions = scores.split([len(endings) for _, endings in questions])
    return [
        Guess(int(row.argmax()), tuple(row.softmax(0).tolist())) for row in of_questions
    ]


def _outputs(
    model: TaskModel, examples: Sequence[Example], batch_size: int
) -> list[Float[Tensor, "..."]]:
    """What the model gives for each example, in their order; short ones are looked at
    together."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    order = sorted(range(len(examples)), key=lambda index: examples[index].length)
    found: dict[int, Tensor] = {}
    with looking(model) as where:
        for start in range(0, len(order), batch_size):
            indices = order[start : start + batch_size]
            batch = collate(
                [examples[index] for index in indices], model.config.pad_token_id or 0
            )
            inputs = [None if x is None else x.to(where) for x in batch[:3]]
            if isinstance(model, MultipleChoiceClassifier):  # (B, T) -> (B, 1, T)
                inputs = [None if x is None else x[:, None] for x in inputs]
            output = model(*inputs)
            # (B, T) and (B, T) -> (B, 2, T)
            rows = torch.stack(output, dim=1) if isinstance(output, tuple) else output
            found |= zip(indices, rows.float().cpu(), strict=True)
    return [found[index] for index in range(len(examples))]


def _words(
    text: str | Sequence[str], tokenizer: Tokenizer
) -> list[tuple[str, int | None, int | None]]:
    if not isinstance(text, str):
        return [(word, None, None) for word in text]
    settings = tokenizer.settings
    return [
        (text[x.start : x.end], x.start, x.end)
        for x in split_words(text, settings.lowercase, settings.strip)
    ]
