"""Guesses on raw text: by hand from a model's logits, in order, without dropout, with
nothing lost of long texts."""

import pytest
import torch
from cases import for_each
from expect import refusal
from task_peer import KINDS, lively_task
from tiny import tiny_bert, tiny_tokenizer
from torch import nn

from course_lib.finetuning.finetune import predict
from course_lib.finetuning.predict import predict_answers, predict_tags
from course_lib.finetuning.spans import NO_ANSWER
from course_lib.finetuning.tagging import align_words
from course_lib.finetuning.task_model import TaskModel
from course_lib.wordpiece.tokenizer import WordPiece

WORDS = "jim hen ##son was a puppet ##er who what . , ? film good bad"
TOKENIZER = tiny_tokenizer(WORDS, WordPiece)
CONFIG = tiny_bert(vocab_size=len(TOKENIZER), hidden_size=15, dropout=(0.4, 0.3))
INPUTS = {
    "classes": ["a film", ("good", "a bad film was a bad film ."), "Jim Henson", "bad"],
    "number": ["a film", ("good", "a bad film was a bad film ."), "Jim Henson", "bad"],
    "tags": [
        "Jim Henson, who was a puppeter.",
        ["Jim", "Henson", "was", "?!"],
        "bad",
        "a film was a film",
    ],
    "spans": [
        ("Who was Jim?", "Jim Henson was a puppeter."),
        ("what", "a film"),
        ("who?", "jim, jim, jim"),
    ],
    "choices": [
        ("jim was", ["a film", "a puppeter ."]),
        ("a film was", ["bad", "good, good", "who?"]),
    ],
}


def model_of(kind):
    return lively_task(kind, seed=4, config=CONFIG).float().train()


def logits(model, text, pair=None):
    encoding = TOKENIZER.encode(text, pair)
    model.eval()
    with torch.no_grad():
        return model(
            torch.tensor([encoding.ids]), None, torch.tensor([encoding.type_ids])
        )


@for_each("kind", KINDS)
def test_guesses_do_not_depend_on_batches_order_or_the_models_mode(kind):
    model = model_of(kind)
    one_by_one = [predict(model, TOKENIZER, [entry])[0] for entry in INPUTS[kind]]
    assert model.training, "the mode is as before"
    for size in (1, 2, 99):
        together = predict(model, TOKENIZER, INPUTS[kind], batch_size=size)
        backwards = predict(
            model.eval(), TOKENIZER, INPUTS[kind][::-1], batch_size=size
        )[::-1]
        for found in (together, backwards):
            assert repr_rounded(found) == repr_rounded(one_by_one)
    assert predict(model, TOKENIZER, []) == []


def repr_rounded(guess):
    """All numbers to 4 places: batches are added up in other orders."""
    if isinstance(guess, float):
        return round(guess, 4)
    if isinstance(guess, list | tuple):
        return [repr_rounded(part) for part in guess]
    return guess


def test_a_class_is_the_most_probable_one_by_its_name():
    model = model_of("classes")
    guesses = predict(model, TOKENIZER, INPUTS["classes"])
    for entry, guess in zip(INPUTS["classes"], guesses, strict=True):
        expected = logits(model, *([entry] if isinstance(entry, str) else entry))[
            0
        ].softmax(0)
        assert guess.probabilities == pytest.approx(expected.tolist(), abs=1e-5)
        assert guess.label == model.labels[int(expected.argmax())]
    assert len({guess.probabilities[0] for guess in guesses}) == 4, (
        "inputs that a model cannot tell apart show nothing"
    )


def test_a_number_is_given_as_it_is():
    model = model_of("number")
    found = predict(model, TOKENIZER, INPUTS["number"])
    assert found[0] == pytest.approx(logits(model, "a film").item(), abs=1e-5)
    assert found[1] == pytest.approx(
        logits(model, *INPUTS["number"][1]).item(), abs=1e-5
    )


def test_a_text_that_is_too_long_is_cut():
    model = model_of("classes")
    long, cut = predict(model, TOKENIZER, ["bad " * 40, "bad " * 17])
    assert long.probabilities == pytest.approx(cut.probabilities, abs=1e-6)
    [shorter] = predict(model, TOKENIZER, ["bad " * 40], max_length=7)
    assert shorter.probabilities == pytest.approx(
        predict(model, TOKENIZER, ["bad " * 5])[0].probabilities, abs=1e-6
    )


def test_each_word_has_the_tag_of_its_first_piece_and_its_place_in_the_text():
    model, text = model_of("tags"), "Jim  Henson, who was a PUPPETER."
    # so that the words' tags differ
    model.classifier.bias.data -= logits(model, text)[0].mean(dim=0)
    [tagged] = predict(model, TOKENIZER, [text])
    assert [word.word for word in tagged] == [
        "Jim",
        "Henson",
        ",",
        "who",
        "was",
        "a",
        "PUPPETER",
        ".",
    ]
    assert all(text[word.start : word.end] == word.word for word in tagged)
    rows = logits(model, text)[0].softmax(dim=1)
    # [CLS] jim hen ##son , who was a puppet ##er . [SEP]
    first = [1, 2, 4, 5, 6, 7, 8, 10]
    for word, position in zip(tagged, first, strict=True):
        assert word.label == model.labels[int(rows[position].argmax())]
        assert word.probability == pytest.approx(rows[position].max().item(), abs=1e-5)
    assert len({word.label for word in tagged}) > 1


def test_given_words_stay_whole_and_have_no_place():
    model = model_of("tags")
    [tagged] = predict(model, TOKENIZER, [["Jim", "was,", "good"]])
    assert [(word.word, word.start, word.end) for word in tagged] == [
        (x, None, None) for x in ("Jim", "was,", "good")
    ]
    rows = logits(model, "Jim was, good")[0]
    assert [word.label for word in tagged] == [
        model.labels[int(rows[i].argmax())] for i in (1, 2, 4)
    ]


def test_a_long_text_is_tagged_in_parts_and_no_word_is_without_a_tag():
    """Room for 5 pieces: jim hen ##son was | a jim ... each part is read as a sentence
    of its own."""
    model = model_of("tags")
    words = ["Jim", "Henson", "was", "a", "puppeter", "who", "was", "good", "Henson"]
    [tagged] = predict_tags(model, TOKENIZER, [words], max_length=7)
    assert [word.word for word in tagged] == words
    parts = [
        ["Jim", "Henson", "was", "a"],
        ["puppeter", "who", "was", "good"],
        ["Henson"],
    ]
    assert all(len(align_words(part, TOKENIZER).input_ids) <= 7 for part in parts)
    expected = [
        word for part in parts for word in predict_tags(model, TOKENIZER, [part])[0]
    ]
    assert repr_rounded(tagged) == repr_rounded(expected)


def test_a_word_that_alone_is_too_long_is_tagged_by_what_is_read_of_it():
    [tagged] = predict_tags(
        model_of("tags"), TOKENIZER, [["a", "hen" + "son" * 30, "was"]], max_length=6
    )
    assert [word.word[:3] for word in tagged] == ["a", "hen", "was"]


def test_a_text_without_words_has_no_tags():
    assert predict(model_of("tags"), TOKENIZER, ["", "a", " \t"])[::2] == [[], []]


def test_an_answer_is_the_span_whose_logits_are_highest_together():
    model = model_of("spans")
    question = "who was jim?"
    context = "Jim Henson, was a   PUPPETER."
    [answer] = predict(model, TOKENIZER, [(question, context)])
    output = logits(model, question, context)
    offsets = TOKENIZER.encode(context, add_special_tokens=False).offsets
    scores = {
        (i, j): (output.start_logits[0, 6 + i] + output.end_logits[0, 6 + j]).item()
        for i in range(len(offsets))
        for j in range(i, len(offsets))
    }
    first, last = max(scores, key=scores.get)
    assert (answer.start, answer.end) == (offsets[first][0], offsets[last][1])
    assert answer.text == context[answer.start : answer.end]
    nothing = (output.start_logits[0, 0] + output.end_logits[0, 0]).item()
    assert answer.null_margin == pytest.approx(scores[first, last] - nothing, abs=1e-4)
    assert answer.alternatives[0].score == pytest.approx(scores[first, last], abs=1e-4)
    assert answer.probability == answer.alternatives[0].probability


def test_a_threshold_above_the_margin_silences_and_the_margin_stays():
    model, inputs = model_of("spans"), INPUTS["spans"]
    told = predict(model, TOKENIZER, inputs)
    for entry, answer in zip(inputs, told, strict=True):
        for shift, silent in ((-0.01, False), (0.01, True)):
            [found] = predict(
                model, TOKENIZER, [entry], null_threshold=answer.null_margin + shift
            )
            assert (found.text == "") is silent
            assert ((found.start, found.end) == NO_ANSWER) is silent
            assert found.null_margin == pytest.approx(answer.null_margin, abs=1e-4)


def test_a_long_context_is_read_in_windows_to_its_end():
    """The model is made to like "film" alone, which stands at the far end of 60
    pieces."""
    model = model_of("spans").eval()
    context = "jim was a puppeter . " * 10 + "Film, who"
    with torch.no_grad():
        model.qa_outputs.weight.zero_()
        model.qa_outputs.bias.zero_()

    def likes(module, inputs, output):
        return output._replace(
            start_logits=(inputs[0] == TOKENIZER.vocab["film"]).float() * 9,
            end_logits=(inputs[0] == TOKENIZER.vocab["film"]).float() * 9,
        )

    model.register_forward_hook(likes)
    [answer] = predict_answers(model, TOKENIZER, [("what", context)], stride=7)
    assert answer.text == "Film"
    assert (
        len(
            predict_answers(model, TOKENIZER, [("what", context)], n_best=3, stride=7)[
                0
            ].alternatives
        )
        == 3
    )


def test_a_choice_is_the_ending_with_the_highest_score_whatever_their_number():
    model = model_of("choices")
    for (context, endings), guess in zip(
        INPUTS["choices"], predict(model, TOKENIZER, INPUTS["choices"]), strict=True
    ):
        encodings = [TOKENIZER.encode(context, ending) for ending in endings]
        model.eval()
        scores = [
            model(torch.tensor([[x.ids]]), None, torch.tensor([[x.type_ids]])).item()
            for x in encodings
        ]
        expected = torch.tensor(scores).softmax(0)
        assert guess.probabilities == pytest.approx(expected.tolist(), abs=1e-5)
        assert guess.label == int(expected.argmax())
    assert len(guess.probabilities) == 3


class Tagger(TaskModel):
    """A model for a task that predict does not know."""

    def __init__(self):
        nn.Module.__init__(self)


def test_what_cannot_be_guessed_is_refused():
    with refusal(
        "the model is a Tagger; predict knows SequenceClassifier, TokenClassifier"
    ):
        predict(Tagger(), TOKENIZER, ["a"])
    with refusal("batch_size is 0"):
        predict(model_of("classes"), TOKENIZER, ["a"], batch_size=0)
    with refusal("a context has no ending to choose"):
        predict(model_of("choices"), TOKENIZER, [("a", [])])
