"""Chapter 5's diagrams: what they say is what the model that they draw computes."""

from xml.etree import ElementTree

import pytest
import torch

from course_lab.ch05_bert import contexts, drawings
from course_lib.bert.layers import BertEmbeddings
from course_lib.bert.model import BertConfig, BertForPreTraining
from course_lib.wordpiece.fast import FastWordPiece
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS

TOKENIZER = FastWordPiece([*SPECIAL_TOKENS, "cat", "dreams", "it", "sleeps", "the"])
PAIR = TOKENIZER.encode("the cat sleeps", "it dreams")
CONFIG = BertConfig(
    vocab_size=10,
    hidden_size=6,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=9,
)


def words(diagram):
    """All text of a drawing; XML that does not parse is an error."""
    tree = ElementTree.fromstring(diagram.svg())
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in texts]


def stack(here=None):
    model = BertForPreTraining(CONFIG).eval()
    ids = torch.tensor([PAIR.ids])
    return drawings.bert_stack(model, PAIR.tokens, ids, here)


def test_the_stack_has_the_shapes_and_blocks_of_its_model():
    assert {"(1, 8)", "(1, 8, 6)", "(1, 6)", "(1, 8, 10)", "(1, 2)", "× 3 blocks"} < {
        *words(stack())
    }


def test_every_part_can_be_here_and_another_name_is_refused():
    for part in drawings.PARTS:
        assert stack(part).svg().count('class="faded"') == len(drawings.PARTS) - 1
    with pytest.raises(ValueError, match="no part"):
        stack("decoder").svg()


def test_a_line_of_the_input_is_the_sum_that_the_embeddings_compute():
    embeddings = BertEmbeddings(CONFIG)
    with torch.no_grad():
        for table, size in (("token", 100), ("segment", 20), ("position", 1)):
            rows = getattr(embeddings, table).weight
            rows.copy_(size * torch.arange(len(rows))[:, None].expand_as(rows))
    found = words(drawings.input_sum(PAIR, embeddings))
    start = found.index("dreams")
    assert found[start : start + 7] == ["dreams", "E6", "+", "Z1", "+", "P6", "="]
    assert found[start + 7 : start + 13] == ["626"] * 6
    assert found.index("A") < found.index("B") < found.index("[CLS]")


def test_padding_has_mask_0_segment_0_and_no_weight():
    batch = TOKENIZER.encode_batch([("the cat sleeps", "it dreams"), "the cat sleeps"])
    found = words(drawings.padded_batch(batch))
    assert found[1:17] == [*PAIR.tokens, *PAIR.tokens[:5], *["[PAD]"] * 3]
    assert found[18:34] == ["1"] * 13 + ["0"] * 3
    weights = [text for text in found[53:] if text in ("0.2", "0")]
    assert weights == (["0.2"] * 5 + ["0"] * 3) * 8


def test_the_wiring_lights_what_bank_may_read():
    """Of BERT all 25 lines below and 5 above, of GPT 6 and 3, of ELMo's halves 3 words
    each: an arrow up for each word and layer, one along for each step, one to the
    top."""
    connected = contexts.connections(contexts.measure([0]))
    assert connected["BERT"].all()
    picture = drawings.wiring(connected).svg()
    assert picture.count('class="line q"') == 25 + 5 + 6 + 3
    for role in ("k", "v"):
        assert picture.count(f'class="line {role}"') == 2 * (3 + 2) + 1
    assert words(drawings.wiring(connected)).count("bank") == 3
