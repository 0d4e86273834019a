"""What a model has learnt of the `stories`: one hidden word at a time, chosen so that
one kind of knowledge answers it.

    grammar   one of the most frequent words (*the*, *was*, a comma): its neighbours
              tell it
    name      a name that stands elsewhere in the text, among all names: it has to be
              found there and copied
    pronoun   *he* or *she*, where all who are named are of one gender: somebody far
              away decides
    time      *at noon* or *in the evening*, where another time is told before it or
              behind it: time goes forward only

For a pronoun the alternative is the other one; for a time it is one that is too early,
or too late for what is told behind, as often the one as the other. The answer is right
if the hidden word is the likelier of both, so that whoever guesses, or always says
*late*, is right half of the time. Controls read the same input.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from course_lab.ch06_pretraining.pretrain_data import Corpus
from course_lab.ch06_pretraining.pretrain_scores import Guess
from course_lib.data import stories_lexicon as lex
from course_lib.data.sentences import split_sentences
from course_lib.data.stories import WORLDS, generate
from course_lib.pretraining.batches import PreTrainingBatch
from course_lib.wordpiece.training import SPECIAL_TOKENS

KINDS = ("grammar", "name", "pronoun", "time")
PAD, _, CLS, SEP, MASK = SPECIAL_TOKENS
GENDER = (
    {"she": "f", "he": "m"}
    | {name.lower(): "f" for name in lex.WOMEN}
    | {name.lower(): "m" for name in lex.MEN}
)
GENDERED = ("she", "her", "he", "him", "his")
TIMES = {
    tuple(phrase.split()): hour
    for hour, phrases in enumerate(lex.TIMES)
    for phrase in phrases
}
# The most frequent words of the training stories that neither name nor stand for a
# person.
GRAMMAR = frozenset(
    ("the", "was", "a", "and", "to", "at", "in", "it", "had", "for", "on", ",", ".")
)


@dataclass(frozen=True)
class Question:
    """A text with one word to hide."""

    sentences: Sequence[Sequence[str]]  # words of a stretch of a story
    #: sentence, place: Where the hidden word stands.
    sentence: int
    place: int
    #: The alternatives: the answer is right if the hidden word is likelier than each.
    #: None of them: than any word.
    wrong: tuple[str, ...] = ()

    @property
    def right(self) -> str:
        """The hidden word."""
        return self.sentences[self.sentence][self.place]


def ask(
    corpus: Corpus,
    max_length: int,
    number: int,
    split: str = "validation",
    seed: int = 0,
) -> dict[str, list[Question]]:
    """Find questions of each kind in stories that nobody is trained on."""
    found: dict[str, list[Question]] = {
        kind: [] for kind in (*KINDS[:-1], "too early", "too late")
    }
    names = [
        name.lower()
        for world in WORLDS[corpus.name]
        for name in (*world.women, *world.men)
    ]
    for sentences in _stretches(
        corpus, split, max_length - 3, stories=4 * number, seed=seed
    ):
        for kind, question in _questions(sentences, names):
            found[kind].append(question)
    random = np.random.default_rng(seed)
    for kind, questions in found.items():
        count = number // 2 if kind.startswith("too") else number
        if len(questions) < count:
            raise ValueError(
                f"only {len(questions)} questions of the kind {kind!r} were found;"
                f" {count} were asked for"
            )
        found[kind] = [
            questions[index] for index in random.permutation(len(questions))[:count]
        ]
    return {
        **{kind: found[kind] for kind in KINDS[:-1]},
        "time": found["too early"] + found["too late"],
    }


def share_right(
    guess: Guess, questions: Sequence[Question], vocab: Mapping[str, int]
) -> float:
    """Return the share of the questions that are answered rightly."""
    with torch.no_grad():
        scores = guess(as_batch(questions, vocab))[0]
    right = [
        scores[row, vocab[question.right]]
        >= scores[row, [vocab[word] for word in question.wrong] or slice(None)].max()
        for row, question in enumerate(questions)
    ]
    return float(np.mean([answer.item() for answer in right]))


def as_batch(
    questions: Sequence[Question], vocab: Mapping[str, int]
) -> PreTrainingBatch:
    """Lay questions out: the first half of the sentences is the first segment, and the
    word in question is [MASK]."""
    rows = [_row(question, vocab) for question in questions]
    width = -(-max(len(ids) for ids, _, _ in rows) // 8) * 8
    input_ids = torch.full((len(rows), width), vocab[PAD])
    segments = torch.zeros_like(input_ids)
    for number, (ids, second, _) in enumerate(rows):
        input_ids[number, : len(ids)] = torch.tensor(ids)
        segments[number, second : len(ids)] = 1
    lengths = torch.tensor([len(ids) for ids, _, _ in rows])
    places = torch.tensor([place for _, _, place in rows])
    positions: Tensor = torch.arange(len(rows)) * width + places
    labels = torch.tensor([vocab[question.right] for question in questions])
    return PreTrainingBatch(
        input_ids,
        segments,
        torch.arange(width) < lengths[:, None],
        positions,
        labels,
        None,
        1.0,
        1.0,
    )


def _row(question: Question, vocab: Mapping[str, int]) -> tuple[list[int], int, int]:
    """The ids, where the second segment begins, and where [MASK] stands."""
    half = max(1, len(question.sentences) // 2)
    ids, second, place = [vocab[CLS]], 0, 0
    for number, sentence in enumerate(question.sentences):
        if number == half:
            ids.append(vocab[SEP])
            second = len(ids)
        if number == question.sentence:
            place = len(ids) + question.place
        ids += [vocab[word] for word in sentence]
    ids[place] = vocab[MASK]
    return [*ids, vocab[SEP]], second, place


def _stretches(
    corpus: Corpus, split: str, room: int, stories: int, seed: int
) -> Iterator[list[list[str]]]:
    """Cut stories into runs of at least two whole sentences that fit."""
    for story in generate(split, stories, seed, WORLDS[corpus.name]):
        sentences = [
            text
            for paragraph in story["paragraphs"]
            for text in split_sentences(paragraph)
        ]
        run: list[list[str]] = []
        for encoded in corpus.tokenizer.encode_in_rust(
            [*sentences], add_special_tokens=False
        ):
            if sum(map(len, run)) + len(encoded.tokens) > room:
                if len(run) > 1:
                    yield run
                run = []
            run.append(encoded.tokens)
        if len(run) > 1:
            yield run


def _questions(
    sentences: list[list[str]], names: Sequence[str]
) -> Iterator[tuple[str, Question]]:
    named = [
        word
        for sentence in sentences
        for word in sentence
        if word in GENDER and word not in GENDERED
    ]
    genders = {GENDER[word] for word in named}
    for number, sentence in enumerate(sentences):
        # no other word of the sentence tells the gender
        alone = sum(word in GENDERED for word in sentence) == 1
        for place, word in enumerate(sentence):
            if word in GRAMMAR:
                yield "grammar", Question(sentences, number, place)
            if named.count(word) > 1:
                yield (
                    "name",
                    Question(
                        sentences,
                        number,
                        place,
                        tuple(name for name in names if name != word),
                    ),
                )
            if word in ("he", "she") and alone and genders == {GENDER[word]}:
                yield (
                    "pronoun",
                    Question(
                        sentences, number, place, ("he" if word == "she" else "she",)
                    ),
                )
    times = list(_times(sentences))
    for index, (hour, number, place, beginning) in enumerate(times):
        others = {
            phrase[-1]: other
            for phrase, other in TIMES.items()
            if phrase[:-1] == beginning
        }
        before = times[index - 1][0] if index else -1
        behind = times[index + 1][0] if index + 1 < len(times) else len(lex.TIMES)
        for kind, wrong in (
            (
                "too early",
                [word for word, other in others.items() if other <= before < hour],
            ),
            (
                "too late",
                [word for word, other in others.items() if other >= behind > hour],
            ),
        ):
            if wrong:
                yield (
                    kind,
                    Question(
                        sentences,
                        number,
                        place,
                        (wrong[(number + place) % len(wrong)],),
                    ),
                )


def _times(
    sentences: list[list[str]],
) -> Iterator[tuple[int, int, int, tuple[str, ...]]]:
    """The times that are told: hour, sentence, the place of the last word, the words
    before it."""
    for number, sentence in enumerate(sentences):
        for end in range(2, len(sentence) + 1):
            # The longest phrase that ends here: "early in the morning" is another time
            # than "in the morning".
            for length in range(min(end, 4), 1, -1):
                phrase = tuple(sentence[end - length : end])
                if phrase in TIMES:
                    yield TIMES[phrase], number, end - 1, phrase[:-1]
                    break
