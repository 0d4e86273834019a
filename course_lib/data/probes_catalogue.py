"""The rows of the catalogue for the probes: small sets written by hand."""

from collections.abc import Callable, Mapping

from datasets import Features

from course_lib.data import probes
from course_lib.data.data_set import DataSet
from course_lib.data.pydocs_tasks_catalogue import card_of_task


def _probe(
    name: str,
    title: str,
    description: str,
    features: Features,
    column_notes: Mapping[str, str],
    splits: tuple[str, ...],
    embedded: Callable[[], probes.Rows],
    *quirks: str,
) -> DataSet:
    return DataSet(
        name=name,
        title=title,
        description=description,
        features=features,
        column_notes=column_notes,
        splits=splits,
        licence="CC BY-SA 4.0, as the text of the course",
        citation="Written by hand for this course: `course_lib.data.probes`.",
        quirks=quirks,
        get_it=(
            f'Nothing to get: `load("{name}")` reads it from the course\'s own files.'
        ),
        embedded=embedded,
        more=None if name == "senses" else lambda data: card_of_task(name, data),
        made="written by hand",
    )


PROBE_ROWS = (
    _probe(
        "senses",
        "Senses of ambiguous words in context",
        "Sentences with an ambiguous word in one of its senses: apple, bank, stick,"
        " mouse, python and others.",
        probes.SENSES,
        {
            "word": "the ambiguous word, lower case",
            "sense": "which of its senses it has here",
            "text": "a sentence; the word stands in it once",
            "start": "where the word begins in it, in characters from 0",
            "end": "where it ends, so that `text[start:end]` is the word",
        },
        ("test",),
        probes.senses,
        "For looking at, not for training: there is one split.",
        "As many sentences for each sense; a static vector of the word is the same in"
        " all of them.",
        "Apple and Python have a capital as names, and so have all words that begin a"
        " sentence: lower the case, as an uncased tokenizer does, or a capital tells"
        " the sense.",
        '"Stick" and "light" change the part of speech with the sense.',
    ),
    _probe(
        "reviews",
        "Film reviews, negative or positive, in pairs of opposites",
        "Short reviews. Each has an opposite that uses nearly the same words: who"
        " counts words has little to go by.",
        probes.REVIEWS,
        {"text": "one review", "label": "negative or positive"},
        ("train", "test"),
        probes.reviews,
        "Half are positive. Words for and against occur on both sides, and so do long"
        " and short reviews.",
        "A review and its opposite are neighbours in one split: with them apart, the"
        " words would speak against the truth.",
        "Written to be hard for their size. Real reviews, such as `sst2`, are easier.",
    ),
    _probe(
        "entities",
        "Named entities in sentences",
        "Sentences with people, places and organisations. Many names are of two kinds:"
        " Paris, Amazon, Chelsea.",
        probes.ENTITIES,
        {
            "tokens": "words and signs; 's is a token of its own",
            "ner_tags": (
                "PER, LOC or ORG; B- begins an entity, I- goes on, O is outside"
            ),
        },
        ("train", "test"),
        probes.entities,
        'A title belongs to the name ("Dr Lee"); a team or a museum is an ORG, a square'
        " or a river a LOC.",
        "A name may occur in both splits, often as another kind: remembering names is"
        " not enough.",
        "Some sentences have no entity, and some words that are names elsewhere are"
        " none there (rose, bill, reading).",
    ),
    _probe(
        "questions",
        "Questions on short paragraphs",
        "Paragraphs written for the course, five to seven questions on each; some"
        " cannot be answered from it.",
        probes.QUESTIONS,
        {
            "id": "paragraph and question",
            "title": "of the paragraph: the unit that is split",
            "context": "four or five sentences",
            "question": "one question",
            "answers": (
                "the answer and where it begins, as in SQuAD 2.0: none where the"
                " context does not say"
            ),
        },
        ("train", "test"),
        probes.questions,
        "Questions without an answer ask for something near: the price, the name, the"
        " age that nobody gave.",
        "Each question has one answer; SQuAD's have several, of which the best match"
        " counts.",
        "The paragraphs mix history and invention: learn reading from them, not facts.",
    ),
)
