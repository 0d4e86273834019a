"""What fine-tuning reads: examples of each kind of task, and batches of them.

Other letters: C, choices.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from course_lib.finetuning.spans import NO_ANSWER, answer_positions, windows
from course_lib.finetuning.tagging import align_labels
from course_lib.pretraining.masking import IGNORE
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import Text, WordPiece

Tokenizer = WordPiece | FastWordPiece


class Example(NamedTuple):
    """One example, as ids."""

    rows: list[tuple[list[int], list[int]]]
    label: Any = None

    @property
    def length(self) -> int:
        """Tokens of its longest input."""
        return max(len(input_ids) for input_ids, _ in self.rows)


class TaskBatch(NamedTuple):
    """A batch: what a model reads, and what it is to guess."""

    input_ids: Int[Tensor, "..."]
    attention_mask: Bool[Tensor, "..."] | None
    token_type_ids: Int[Tensor, "..."]
    labels: Int[Tensor, "..."] | Float[Tensor, "..."] | None


def text_examples(
    texts: Sequence[Text],
    labels: Sequence[int | float] | None,
    tokenizer: Tokenizer,
    max_length: int | None = 128,
) -> list[Example]:
    """Make examples of sentences or pairs of sentences, for a `SequenceClassifier`.

    Parameters
    ----------
    texts
        Strings, or tuples of two.
    labels
        Classes, or numbers to guess; None if not known.
    tokenizer
        Of the model.
    max_length
        Tokens of an example with its special ones; of a pair the longer text is cut
        first.

    Returns
    -------
    list of Example
        One for each text.

    Raises
    ------
    ValueError
        If there are more or fewer labels than texts.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "it", "is"])
    >>> text_examples(["it is", ("is it", "it is")], [1, 0], tokenizer)[1]
    Example(rows=[([2, 6, 5, 3, 5, 6, 3], [0, 0, 0, 0, 1, 1, 1])], label=0)
    """
    _check_labels(len(texts), labels)
    encodings = tokenizer.encode_batch(texts, padding=None, max_length=max_length)
    known = labels if labels is not None else [None] * len(texts)
    return [
        Example([(x.ids, x.type_ids)], label)
        for x, label in zip(encodings, known, strict=True)
    ]


def tagging_examples(
    sentences: Sequence[Sequence[str]],
    labels: Sequence[Sequence[int]],
    tokenizer: Tokenizer,
    max_length: int | None = 128,
) -> list[Example]:
    """Make examples of sentences whose words have labels, for a `TokenClassifier`.

    Parameters
    ----------
    sentences
        Their words.
    labels
        One for each word.
    tokenizer, max_length
        As in `course_lib.finetuning.tagging.align_words`.

    Returns
    -------
    list of Example
        One for each sentence; labels at the first piece of each word, `IGNORE`
        elsewhere.

    Raises
    ------
    ValueError
        If there are more or fewer labels than words or sentences.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "hen", "##son"])
    >>> tagging_examples([["Henson"]], [[4]], tokenizer)[0].label
    [-100, 4, -100, -100]
    """
    _check_labels(len(sentences), labels)
    examples = []
    for words, of_words in zip(sentences, labels, strict=True):
        ids, of_tokens = align_labels(words, of_words, tokenizer, max_length)
        examples.append(Example([(ids, [0] * len(ids))], of_tokens))
    return examples


def question_examples(
    questions: Sequence[str],
    contexts: Sequence[str],
    answers: Sequence[tuple[int, int] | None],
    tokenizer: Tokenizer,
    max_length: int = 384,
    stride: int = 128,
) -> list[Example]:
    """Make examples of questions on a text, for a `SpanClassifier`: one for each
    window.

    Parameters
    ----------
    questions, contexts
        One context for each question.
    answers
        Where each answer starts and ends, in characters; None for a question that the
        context does not answer.
    tokenizer, max_length, stride
        As in `course_lib.finetuning.spans.windows`.

    Returns
    -------
    list of Example
        Labels are positions; a window that does not hold the whole answer has
        `NO_ANSWER`.

    Raises
    ------
    ValueError
        If there are more or fewer contexts or answers than questions.

    Notes
    -----
    Devlin et al. 2019, sections 4.2 and 4.3.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "who", "jim", "was", "there"])
    >>> question_examples(["who"], ["Jim was there"], [(0, 3)], tokenizer)[0].label
    (3, 3)
    """
    if not len(questions) == len(contexts) == len(answers):
        raise ValueError(
            f"{len(questions)} questions, {len(contexts)} contexts and {len(answers)}"
            " answers; give one of each"
        )
    examples = []
    for question, context, answer in zip(questions, contexts, answers, strict=True):
        for window in windows(question, context, tokenizer, max_length, stride):
            positions = (
                NO_ANSWER if answer is None else answer_positions(window, *answer)
            )
            examples.append(
                Example([(window.input_ids, window.token_type_ids)], positions)
            )
    return examples


def choice_examples(
    contexts: Sequence[str],
    endings: Sequence[Sequence[str]],
    labels: Sequence[int] | None,
    tokenizer: Tokenizer,
    max_length: int | None = 128,
) -> list[Example]:
    """Make examples of a context with several endings, for a
    `MultipleChoiceClassifier`.

    Parameters
    ----------
    contexts
        What stands before the ending.
    endings
        Equally many for each context.
    labels
        The number of the right one, from 0; None if not known.
    tokenizer, max_length
        As in `text_examples`; each input is the pair of the context and one ending.

    Returns
    -------
    list of Example
        One for each context.

    Raises
    ------
    ValueError
        If the numbers of contexts, endings and labels do not fit together, or a label
        is none of the choices.

    Notes
    -----
    Devlin et al. 2019, section 4.4.

    Examples
    --------
    >>> from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS
    >>> tokenizer = WordPiece([*SPECIAL_TOKENS, "jim", "sat", "ran"])
    >>> choice_examples(["Jim"], [["sat", "ran"]], [1], tokenizer)
    [Example(rows=[([2, 5, 3, 6, 3], [0, 0, 0, 1, 1]), ([2, 5, 3, 7, 3], [0, 0, 0, 1,
    1])], label=1)]
    """
    _check_labels(len(contexts), labels)
    counts = sorted({len(of_one) for of_one in endings})
    if len(endings) != len(contexts) or len(counts) > 1 or counts == [0]:
        raise ValueError(
            f"{len(contexts)} contexts, {len(endings)} lists of endings with {counts}"
            " endings each; give each context equally many"
        )
    if labels is not None and any(not 0 <= label < counts[0] for label in labels):
        raise ValueError(
            f"a label is not among the {counts[0]} choices; count them from 0"
        )
    pairs = [
        (context, ending)
        for context, of_one in zip(contexts, endings, strict=True)
        for ending in of_one
    ]
    rows = [
        (x.ids, x.type_ids)
        for x in tokenizer.encode_batch(pairs, padding=None, max_length=max_length)
    ]
    known = labels if labels is not None else [None] * len(contexts)
    return [
        Example(rows[i * counts[0] : (i + 1) * counts[0]], label)
        for i, label in enumerate(known)
    ]


def collate(examples: Sequence[Example], pad_id: int = 0) -> TaskBatch:
    """Make a batch: pad all inputs to the longest, and mark the padding."""
    rows = [row for example in examples for row in example.rows]
    choices = len(examples[0].rows)

    def shaped(tensor: Tensor) -> Tensor:
        # (B C, T) -> (B, C, T)
        return tensor if choices == 1 else tensor.view(len(examples), choices, -1)

    input_ids, segments = (
        pad_sequence(
            [torch.tensor(row[part]) for row in rows],
            batch_first=True,
            padding_value=fill,
        )
        for part, fill in ((0, pad_id), (1, 0))
    )
    lengths = torch.tensor([len(ids) for ids, _ in rows])
    mask = torch.arange(input_ids.shape[1]) < lengths[:, None]
    return TaskBatch(
        shaped(input_ids),
        None if mask.all() else shaped(mask),
        shaped(segments),
        _labels([x.label for x in examples]),
    )


def _labels(labels: Sequence[Any]) -> Tensor | None:
    if labels[0] is None:
        return None
    if isinstance(labels[0], list):  # one for each token
        return pad_sequence(
            [torch.tensor(label) for label in labels],
            batch_first=True,
            padding_value=IGNORE,
        )
    return torch.tensor(labels)


def _check_labels(texts: int, labels: Sequence[Any] | None) -> None:
    if labels is not None and len(labels) != texts:
        raise ValueError(f"{texts} inputs but {len(labels)} labels; give each one")
