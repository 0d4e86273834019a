"""The diagrams of chapter 8: features of a frozen model, four task formats, and tags of
words and tokens. Shapes and numbers are those of the functions and models that are
drawn. Answers in a text have their own: `span_drawings`.
"""

from collections.abc import Sequence

import torch

from course_lab.ch08_finetuning.features import pad_ids
from course_lib.bert.model import BertConfig, BertModel
from course_lib.figures.diagrams import Diagram, Number
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.finetuning.tagging import align_labels
from course_lib.pretraining.masking import IGNORE
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import WordPiece

Tokenizer = WordPiece | FastWordPiece
PARTS = ("one sentence or a pair", "a tag for each word", "a span", "one of several")
ENDINGS = 4


def feature_pipeline(
    model: BertModel, tokenizer: Tokenizer, sentences: Sequence[str]
) -> Diagram:
    """Sentences, padded ids, states, and position 0 of each as its features."""
    encodings = tokenizer.encode_batch(sentences, padding=None)
    ids, mask = pad_ids([x.ids for x in encodings])
    with torch.no_grad():
        states = model(ids, mask).last_hidden_state
    features = states[:, 0]
    rows, columns = ids.shape
    wide = 360 / columns
    d = Diagram(
        "feature-pipeline",
        346,
        "Features from a frozen BERT",
        f"Read downwards. {rows} sentences become a matrix of ids of shape"
        f" {tuple(ids.shape)}, where shorter sentences end with the id 0. BERT, whose"
        f" weights stay as they are, makes states of shape {tuple(states.shape)}. The"
        f" states at position 0, a matrix of shape {tuple(features.shape)}, are the"
        " input of a logistic regression, the only part that is trained.",
    )
    d.label(20, 14, f"ids {tuple(ids.shape)}; padding is 0", "small start")
    numbers = ids.tolist()
    shade = (0.4 * mask).tolist()
    grid = d.tensor(20, 26, rows, columns, "n", (wide, 22))
    d.tensor(20, 26, rows, columns, "q", (wide, 22), shade=shade)
    for i, j in ((i, j) for i in range(rows) for j in range(columns)):
        faint = "small" if mask[i, j] else "small soft"
        d.label(20 + wide * (j + 0.5), 37 + 22 * i, str(numbers[i][j]), faint)
    bert = d.box(200, grid.bottom[1] + 22, 360, 34, "BERT: weights stay as they are")
    d.arrow(grid.bottom, bert.top)
    top = bert.bottom[1] + 40
    d.arrow(bert.bottom, (200, top))
    d.label(208, top - 12, f"states {tuple(states.shape)}", "small start")
    light = [[0.1] * columns for _ in range(rows)]
    d.tensor(20, top, rows, columns, "r", (wide, 18), shade=light)
    first = d.group(18, top - 3, wide + 4, 18 * rows + 6)
    d.label(first.at(1, 0)[0] + 6, top + 18 * rows + 14, "[CLS] of each", "small start")
    kept = d.tensor(20, top + 18 * rows + 36, rows, 8, "v", (14, 14))
    d.arrow(first.bottom, "|", (first.bottom[0], kept.y))
    d.label(20, kept.bottom[1] + 11, f"features {tuple(features.shape)}", "small start")
    regression = d.box(256, kept.y + 3, 150, 38, "logistic regression:\ntrained", "w")
    middle = regression.right[1]
    d.arrow((kept.right[0], middle), regression.left)
    d.arrow(regression.right, (354, middle))
    d.label(376, middle, "label")
    return d


def format_shapes(vocab: int = 50) -> dict[str, str]:
    """Run each head on an input of the size that is drawn, and write what it returns,
    by part."""
    config = BertConfig.tiny(vocab_size=vocab)
    ids = torch.full((1, 7), 5)
    with torch.no_grad():
        outputs = (
            SequenceClassifier(config, 2).eval()(ids[:, :5]),
            TokenClassifier(config, 3).eval()(ids[:, :5]),
            SpanClassifier(config).eval()(ids).start_logits,
            MultipleChoiceClassifier(config).eval()(ids.expand(1, ENDINGS, 7)),
        )
    return {
        part: str(tuple(scores.shape))
        for part, scores in zip(PARTS, outputs, strict=True)
    }


def task_formats(here: str | None = None) -> Diagram:
    """Four kinds of tasks on one BERT (Devlin et al. 2019, figure 4), read upwards."""
    shapes = format_shapes()
    d = Diagram(
        f"task-formats-{(here or 'all').replace(' ', '-')}",
        604,
        "Four task formats" + f": {here}" * bool(here),
        "Four rows, each read upwards from tokens through BERT to a new layer. One"
        " sentence or a pair: the layer reads [CLS] and scores the labels, shape"
        f" {shapes[PARTS[0]]}. A tag for each word: the layer reads every state, shape"
        f" {shapes[PARTS[1]]}. A span: two vectors S and E score every state as start"
        f" and as end, shape {shapes[PARTS[2]]} each. One of several: each of {ENDINGS}"
        " endings is read with the context, a vector V gives each a score, and the"
        f" softmax goes over the endings, shape {shapes[PARTS[3]]}.",
        here,
    )
    sentence = ("[CLS]", "the", "cat", "sleeps", "[SEP]")
    question = ("[CLS]", "who", "sleeps", "[SEP]", "the", "cat", "[SEP]")
    animal = ("", "O", "B", "O", "")
    with d.part(PARTS[0]):
        places = _row(d, 8, PARTS[0], sentence, shapes)
        d.box(places[0] + 46, 40, 130, 22, "W on [CLS] alone", "w")
        d.arrow((places[0], 76), (places[0], 62))
        d.arrow((places[0], 40), (places[0], 30), gap=0)
        d.label(places[0] + 8, 22, "label of the text", "start")
    with d.part(PARTS[1]):
        places = _row(d, 158, PARTS[1], sentence, shapes)
        d.box(sum(places[1:4]) / 3, 190, 190, 22, "W on every word", "w")
        for x, tag in zip(places[1:4], animal[1:4], strict=True):
            d.arrow((x, 226), (x, 212))
            d.arrow((x, 190), (x, 180), gap=0)
            d.label(x, 171, tag)
    with d.part(PARTS[2]):
        places = _row(d, 308, PARTS[2], question, shapes)
        d.box(sum(places) / 7, 340, 290, 22, "S and E on every state", "w")
        for x in places:
            d.arrow((x, 376), (x, 362))
        for x, name in zip(places[4:6], ("start", "end"), strict=True):
            d.arrow((x, 340), (x, 330), gap=0)
            d.label(x, 321, name)
    with d.part(PARTS[3]):
        d.label(8, 462, PARTS[3], "bold start")
        d.label(8, 504, shapes[PARTS[3]], "small soft start")
        d.box(244, 480, 290, 22, "softmax over the endings", "w")
        d.arrow((208, 480), (208, 470), gap=0)
        d.label(214, 462, "the right ending", "start")
        d.label(8, 563, "context +", "small soft start")
        for number in range(ENDINGS):
            x = 136 + 72 * number
            bert = d.box(x, 552, 56, 22, "BERT")
            score = d.box(x, 517, 56, 20, "V", "w")
            d.arrow(bert.top, score.bottom)
            d.arrow(score.top, (x, 502), gap=0)
            d.arrow((x, 586), bert.bottom)
            d.label(x, 595, f"ending {number + 1}", "small")
    return d


def _row(
    d: Diagram, top: Number, part: str, tokens: Sequence[str], shapes: dict[str, str]
) -> list[float]:
    """Draw tokens, BERT and states of one format; return where the tokens stand."""
    left, right = 112, 376
    step = (right - left) / (len(tokens) - 1)
    places = [left + step * i for i in range(len(tokens))]
    d.label(8, top + 13, part.replace(" or ", "\nor "), "bold start")
    d.label(8, top + 46, shapes[part], "small soft start")
    d.box((left + right) / 2, top + 88, right - left + 40, 22, "BERT")
    for x, token in zip(places, tokens, strict=True):
        d.label(x, top + 127, token, "small")
        d.arrow((x, top + 120), (x, top + 110), gap=0)
        d.tensor(x - 12, top + 69, 1, 3, "r", (8, 12))
    return places


def word_tags(
    words: Sequence[str], tags: Sequence[str], tokenizer: Tokenizer
) -> Diagram:
    """Words with their tags, the tokens that they become, and the label of each
    token."""
    names = sorted(set(tags))
    ids, labels = align_labels(words, [names.index(tag) for tag in tags], tokenizer)
    tokens = [tokenizer.pieces[index] for index in ids]
    shown = ["X" if label == IGNORE else names[label] for label in labels]
    step = 394 / len(tokens)
    places = [3 + step * (i + 0.5) for i in range(len(tokens))]
    firsts = [x for x, label in zip(places, labels, strict=True) if label != IGNORE]
    d = Diagram(
        "word-tags",
        214,
        "Words, tokens and tags",
        "Words with their tags: "
        + ", ".join(f"{w} {t}" for w, t in zip(words, tags, strict=True))
        + ". Tokens with their labels, where X means that the loss leaves it out: "
        + ", ".join(f"{t} {s}" for t, s in zip(tokens, shown, strict=True))
        + ".",
    )
    d.label(8, 14, "words and their tags", "small soft start")
    d.label(8, 202, "labels; X: left out of the loss", "small soft start")
    for word, tag, x in zip(words, tags, firsts, strict=True):
        d.label(x, 36, tag, "small bold")
        d.label(x, 54, word)
        d.arrow((x, 64), (x, 112))
    for x, token, text in zip(places, tokens, shown, strict=True):
        counts = text != "X"
        draw_token(d, x, 114, token, "q" if counts else "n", step - 2)
        draw_token(d, x, 164, text, "w" if counts else "n", step - 2)
        d.arrow((x, 136), (x, 164), dash=not counts)
    return d


def draw_token(
    d: Diagram, x: Number, y: Number, text: str, role: str, width: Number = 47
) -> None:
    """Draw one token in small letters, centred on x."""
    area = d.box(x, y, width, 22, "", role)
    d.label(*area.at(0.5, 0.5), text, "small")
