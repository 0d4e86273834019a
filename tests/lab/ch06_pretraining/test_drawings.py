"""Chapter 6's diagrams: what they say is what the model and the functions that they
draw compute."""

import math
from xml.etree import ElementTree

import pytest
import torch

from course_lab.ch06_pretraining import drawings, masking_drawings
from course_lib.bert.model import BertConfig, BertForPreTraining
from course_lib.pretraining.masking import MaskingConfig, VocabIds, mask_tokens
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

TOKENIZER = FastWordPiece([*SPECIAL_TOKENS, "cat", "dreams", "it", "sleeps", "the"])
PAIR = TOKENIZER.encode("the cat sleeps", "it dreams")
CONFIG = BertConfig(
    vocab_size=10, hidden_size=6, num_hidden_layers=3, num_attention_heads=2
)


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def step(model, here=None):
    return drawings.pretraining_step(
        model.eval(), PAIR, 2, TOKENIZER.vocab["[MASK]"], 1, here
    )


def test_a_step_shows_the_probabilities_of_its_model_at_the_masked_token_and_the_pair():
    model = BertForPreTraining(CONFIG)
    with torch.no_grad():
        model.mlm_head.output.bias[TOKENIZER.vocab["cat"]] = 2.5
        model.nsp_head.output.weight.zero_()
        model.nsp_head.output.bias.copy_(torch.tensor([0.0, 1.0]))
        ids = torch.tensor([PAIR.ids])
        ids[0, 2] = TOKENIZER.vocab["[MASK]"]
        logits = model.eval()(ids, token_type_ids=torch.tensor([PAIR.type_ids]))[0]
    p = logits[0, 2].softmax(-1)[TOKENIZER.vocab["cat"]].item()
    q = 1 / (1 + math.exp(-1))
    found = words(step(model))
    assert {f"p(cat) = {p:.2f}", f"q(NotNext) = {q:.2f}"} < {*found}
    assert f"loss = {-math.log(p):.2f} + {-math.log(q):.2f}" in found
    assert [found.count(text) for text in ("[MASK]", "cat")] == [1, 1]
    assert "BERT: 3 encoder blocks" in found


def test_every_part_can_be_here_and_another_name_is_refused():
    model = BertForPreTraining(CONFIG)
    for part in drawings.PARTS:
        faded = step(model, part).svg().count('class="faded"')
        assert faded == len(drawings.PARTS) - 1
    with pytest.raises(ValueError, match="no part"):
        step(model, "decoder").svg()


def test_only_chosen_positions_have_a_label_and_a_loss():
    tokens, ids = ["the", "cat", "sleeps"], [21, 11987, 5438]
    found = words(
        drawings.mlm_step(tokens, ids, [True, False, True], [0.25, 0.9, 0.10], 50001)
    )
    assert found.count("50001") == found.count("[MASK]") == 2
    assert [found.count(x) for x in ("\N{MINUS SIGN}100", "0.90")] == [1, 0]
    assert {"1.386", "2.303", "sum 3.689 nats", "mean 1.844 nats"} < {*found}


def test_of_200_tokens_as_many_are_drawn_as_the_settings_say():
    found = words(masking_drawings.two_hundred_tokens())
    assert [found.count(fate) for fate in "MR="] == [24, 3, 3]
    more = MaskingConfig(rate=0.4, mask_share=0.5, random_share=0.25)
    found = words(masking_drawings.two_hundred_tokens(more))
    assert [found.count(fate) for fate in "MR="] == [40, 20, 20]


@pytest.mark.parametrize("seed", [0, 282])
def test_the_draws_that_are_shown_lead_to_what_mask_tokens_returns(seed):
    text = "the cat sleeps it dreams the cat dreams it sleeps"
    encoding, vocab = TOKENIZER.encode(text), VocabIds.of(TOKENIZER.vocab)
    ids = torch.tensor([encoding.ids])
    masked, labels = mask_tokens(
        ids, vocab.is_special[ids], torch.Generator().manual_seed(seed), vocab
    )
    steps = masking_drawings.masking_steps(encoding, TOKENIZER.vocab, seed)
    choose, fates, end = (words(step.diagram) for step in steps[1:])
    number = int((labels != -100).sum())
    drawn = [float(text) for text in choose if text.startswith("0.")]
    # rounded, and at least one is chosen whatever it draws
    assert max(1, sum(draw < 0.15 for draw in drawn)) == number
    told = [text for text in fates if text in ("[MASK]", "random", "stays")]
    assert len(told) == number
    read = [TOKENIZER.pieces[token] for token in masked[0].tolist()]
    answers = [TOKENIZER.pieces[i] for i in labels[0].tolist() if i >= 0]
    half = -(-len(read) // 2)
    of_first = int((labels[0, :half] != -100).sum())
    assert end == [*read[:half], *answers[:of_first], *read[half:], *answers[of_first:]]


def test_half_of_the_pairs_exchange_their_second_segments():
    documents = [(f"first {n}", f"second {n}") for n in "abcd"]
    picture = drawings.exchanged_segments(documents, seed=0)
    found = words(picture)
    assert found.count("IsNext") == found.count("NotNext") == 2
    description = ElementTree.fromstring(picture.svg())[1].text
    for n in "abcd":
        assert description.count(f"second {n}") == 1
        follows = f"first {n} / second {n}: IsNext" in description
        assert follows or f"second {n}: NotNext" in description
