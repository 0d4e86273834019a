"""Chapter 7's diagrams: what they say is what the models and functions compute."""

from xml.etree import ElementTree

import pytest
import torch

from course_lab.ch07_embeddings import drawings, embeddings_page
from course_lib.bert.model import BertConfig, BertModel
from course_lib.embeddings.contextual import LayerMix
from course_lib.embeddings.elmo import ELMoOutput
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

TOKENIZER = FastWordPiece([*SPECIAL_TOKENS, "cat", "column", "is", "right", "the"])
TEXTS = ("the cat is right", "the right column")


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def one_token(*rows):
    return tuple(torch.tensor([[row]]) for row in rows)


def two_vectors(here=None):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=10, hidden_size=6, num_hidden_layers=3, num_attention_heads=2
    )
    model = BertModel(config).eval()
    return model, drawings.two_vectors(model, TOKENIZER, TEXTS, "right", here)


def test_a_word_has_one_embedding_and_the_states_of_its_two_places():
    model, diagram = two_vectors()
    found = words(diagram)
    row = drawings.short(model.embeddings.token.weight[TOKENIZER.vocab["right"]])[0]
    with torch.no_grad():
        ids = [torch.tensor([TOKENIZER.encode(text).ids]) for text in TEXTS]
        states = [
            model(x).last_hidden_state[0, at] for x, at in zip(ids, (4, 2), strict=True)
        ]
    cosine = torch.nn.functional.cosine_similarity(*states, dim=0).item()
    minus = [number.replace("-", "\N{MINUS SIGN}") for number in row]
    assert found[4:7] == minus
    assert found[10:13] == minus
    assert {"cosine 1.00", f"cosine {cosine:.2f}"} < {*found}
    for state in states:
        texts = [
            text.replace("-", "\N{MINUS SIGN}") for text in drawings.short(state)[0]
        ]
        assert {*texts} < {*found}


def test_every_part_can_be_here_and_another_name_is_refused():
    for part in drawings.PARTS:
        assert two_vectors(part)[1].svg().count('class="faded"') == 1
    with pytest.raises(ValueError, match="no part"):
        two_vectors("middle")[1].svg()


@pytest.mark.parametrize(
    ("window", "neighbours"), [(1, ["cat", "on"]), (2, ["the", "cat", "on", "a"])]
)
def test_the_centre_makes_a_pair_with_each_word_in_its_window(window, neighbours):
    text = ["the", "cat", "sleeps", "on", "a", "mat"]
    found = words(drawings.skip_gram_window(text, "sleeps", window, ("tax",)))
    pairs = [part for part in found if part.startswith("(sleeps")]
    assert pairs == [f"(sleeps, {word})" for word in neighbours]
    assert found[-4:] == [
        neighbours[-1],
        "true: product up",
        "tax",
        "noise: product down",
    ]


def test_elmos_vector_is_its_weighted_sum():
    """By hand: shares 1/4, 1/2, 1/4; sums 2 and -1/4, times 2."""
    halves = one_token([1.0], [2.0], [3.0]), one_token([1.0], [0.0], [-2.0])
    mix = LayerMix(3)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([1.0, 2.0, 1.0]).log())
        mix.scale.fill_(2.0)
    found = words(drawings.elmo_vector("cat", ELMoOutput(*halves), mix))
    assert [text for text in found if "×" in text] == [
        "× s0 = 0.25",
        "× s1 = 0.50",
        "× s2 = 0.25",
    ]
    assert found[-3:] == ["4", "\N{MINUS SIGN}0.5", "the vector of cat"]


def test_each_choice_of_layers_is_written_out():
    """By hand, for states (j, 1) of six layers: 3 + 4 + 5 + 6 = 18; the mean is 3."""
    states = one_token(*([float(layer), 1.0] for layer in range(7)))
    found = words(drawings.layer_choice(states, LayerMix(7)))
    at = found.index("sum of the last four")
    assert found[at + 1 : at + 3] == ["18", "4"]
    at = found.index("concatenation of the last four")
    assert found[at + 1 : at + 9] == list("31415161")
    at = found.index("learned mix, at its start")
    assert found[at + 1 : at + 3] == ["3", "1"]


def test_the_wiring_is_measured_on_five_words():
    assert words(drawings.who_reads_whom(5)).count("bank") == 3


def test_a_bag_of_words_leaves_the_ambiguous_word_out():
    """By hand: the first use is as near to the third as to the second, 1/2; the second
    is nearer to the first, 1; the third has no other of its sense."""
    rows = [
        {"text": text, "start": 0, "end": 4, "word": "bank", "sense": text[-5:]}
        for text in ("bank near river", "bank old river", "bank near money")
    ]
    assert embeddings_page.bags_of_words(rows) == [[0.75]]
