"""RoBERTa's positions, ERNIE's units, XLNet's masks, T5's spans, ColBERT's scores and
prompts."""

from itertools import permutations

import pytest
import torch
from expect import assert_near, refusal
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

from course_lib.attention.masks import causal_mask
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertModel
from course_lib.embeddings.gpt import CausalLanguageModel
from course_lib.family.colbert import LateInteraction, maxsim
from course_lib.family.inputs import (
    corrupt_spans,
    entity_ids,
    permutation_masks,
    roberta_positions,
)
from course_lib.family.prompting import choose_continuation, prompt, score_continuations
from course_lib.pretraining.masking import IGNORE, MaskingConfig, VocabIds, mask_tokens
from course_lib.transformer.blocks import EncoderBlock


def test_positions_are_those_of_published_roberta():
    """Reference: transformers' `create_position_ids_from_input_ids`, on which the
    published weights stand."""
    ids = torch.tensor([[0, 31, 64, 2], [0, 31, 2, 1], [0, 2, 1, 1]])
    theirs = RobertaEmbeddings.create_position_ids_from_input_ids(ids, padding_idx=1)
    assert torch.equal(roberta_positions(ids), theirs)
    ids = torch.tensor([[0, 5, 7], [5, 7, 5]])
    theirs = RobertaEmbeddings.create_position_ids_from_input_ids(ids, padding_idx=5)
    assert torch.equal(roberta_positions(ids, pad_token_id=5), theirs)


def test_an_entity_is_one_unit_wherever_it_stands_and_the_longer_wins():
    ids = torch.tensor([[7, 8, 9, 7, 8], [8, 7, 8, 9, 9]])
    assert entity_ids(ids, [[7, 8], [7, 8, 9]]).tolist() == [
        [0, 0, 0, 1, 1],
        [0, 1, 1, 1, 2],
    ]
    assert entity_ids(ids, []).tolist() == [[0, 1, 2, 3, 4]] * 2
    assert entity_ids(ids, [[1, 2, 3, 4, 5, 6]]).tolist() == [[0, 1, 2, 3, 4]] * 2
    with refusal("an entity has no token; leave it out"):
        entity_ids(ids, [[]])


def test_an_entity_is_hidden_whole_or_not_at_all_and_the_rate_stays():
    """Sun et al. 2019, section 3.2: all tokens of an entity are hidden together."""
    vocab = VocabIds(
        mask_id=4, size=60, special_ids=(0, 1, 2, 3, 4), continuation_ids=(59,)
    )
    ids = torch.randint(5, 50, (400, 30), generator=torch.Generator().manual_seed(1))
    ids[:, 10:13] = torch.tensor([50, 51, 52])
    units = entity_ids(ids, [[50, 51, 52]])
    config = MaskingConfig(rate=0.3, mask_share=1.0, random_share=0.0, unit="span")
    generator = torch.Generator().manual_seed(2)
    masked, labels = mask_tokens(
        ids, torch.zeros_like(ids, dtype=torch.bool), generator, vocab, config, units
    )
    hidden = (masked == 4)[:, 10:13]
    assert torch.equal(hidden.all(1), hidden.any(1))
    assert 0.2 < hidden.float().mean() < 0.4
    assert (labels != IGNORE).float().mean().item() == pytest.approx(0.3, abs=0.02)


def test_the_natural_order_gives_the_causal_mask():
    """Yang et al. 2019, section 2.3: a usual language model is the factorisation in the
    order of the text."""
    assert torch.equal(permutation_masks(range(5)).content, causal_mask(5))


def test_every_order_sees_what_comes_before_it_and_a_guess_never_sees_itself():
    for order in permutations(range(4)):
        content, query = permutation_masks(order)
        for place, position in enumerate(order):
            assert set(query[position].nonzero().flatten().tolist()) == set(
                order[:place]
            )
            assert set(content[position].nonzero().flatten().tolist()) == set(
                order[: place + 1]
            )
    with refusal(r"the order is \[0, 2, 2\]; it must hold each position from 0 once"):
        permutation_masks([0, 2, 2])


def test_nothing_flows_against_the_order():
    """Through two layers of ours: change a token, and only those behind it in the order
    may notice."""
    torch.manual_seed(3)
    order = [3, 0, 4, 1, 2]
    blocks = [EncoderBlock(12, 3, 20).eval() for _ in range(2)]
    mask = permutation_masks(order).content[None]
    hidden = torch.randn(1, 5, 12)

    def states(inputs):
        for block in blocks:
            inputs = block(inputs, mask)
        return inputs

    before = states(hidden)
    for place, position in enumerate(order):
        changed = hidden.clone()
        changed[0, position] += 1
        differs = (states(changed) - before).abs().amax(dim=-1)[0] > 1e-6
        assert set(differs.nonzero().flatten().tolist()) == set(order[place:])


def test_spans_are_those_of_the_paper():
    """Raffel et al. 2020, figure 2; X, Y and Z are its sentinels."""
    words = [
        "Thank",
        "you",
        "for",
        "inviting",
        "me",
        "to",
        "your",
        "party",
        "last",
        "week",
        ".",
    ]
    numbers = {word: number for number, word in enumerate([*words, "X", "Y", "Z"])}
    sentinels = [numbers[mark] for mark in "XYZ"]
    source, target = corrupt_spans(
        [numbers[word] for word in words], [(2, 4), (8, 9)], sentinels
    )
    names = list(numbers)
    assert " ".join(names[i] for i in source) == "Thank you X me to your party Y week ."
    assert " ".join(names[i] for i in target) == "X for inviting Y last Z"
    with refusal("2 spans need 3 sentinels, one to end with; got 2"):
        corrupt_spans([1, 2, 3, 4], [(0, 1), (2, 3)], [8, 9])
    for spans in ([(1, 1)], [(0, 2), (2, 3)], [(3, 5)], [(2, 3), (0, 1)]):
        with refusal("is empty, not behind the one before, or not in 4 ids"):
            corrupt_spans([1, 2, 3, 4], spans, [7, 8, 9])


def test_maxsim_is_the_sum_of_the_best_over_tokens_written_as_loops():
    torch.manual_seed(4)
    query, document = torch.randn(2, 3, 5), torch.randn(4, 6, 5)
    query_lengths, document_lengths = [3, 2], [6, 1, 4, 5]
    masks = [
        torch.arange(width) < torch.tensor(lengths)[:, None]
        for width, lengths in ((3, query_lengths), (6, document_lengths))
    ]
    found = maxsim(query, document, *masks)
    for row, q_length in enumerate(query_lengths):
        for column, d_length in enumerate(document_lengths):
            expected = sum(
                max(float(query[row, t] @ document[column, s]) for s in range(d_length))
                for t in range(q_length)
            )
            assert found[row, column].item() == pytest.approx(expected, abs=1e-5)


def test_padding_changes_no_score_and_a_query_of_padding_is_refused():
    torch.manual_seed(5)
    model = LateInteraction(BertModel(BertConfig.tiny(vocab_size=40)), dim=16).eval()
    short = torch.tensor([[2, 7, 9, 3]])
    padded = torch.tensor([[2, 7, 9, 3, 0, 0]])
    mask = padded != 0
    documents = torch.tensor([[2, 8, 3], [2, 9, 3]])
    with torch.no_grad():
        alone = model.score((short, None), (documents, None))
        together = model.score((padded, mask), (documents, None))
        assert_near(alone, together, 1e-5, 1e-5)
        assert_near(
            model.score((documents, None), (short, None)),
            model.score((documents, None), (padded, mask)),
            1e-5,
            1e-5,
        )
    with refusal("the mask forbids every key"):
        maxsim(torch.ones(1, 2, 3), torch.ones(1, 2, 3), torch.tensor([[False, False]]))
    with refusal("dim is 0"):
        LateInteraction(model.bert, dim=0)


def test_a_text_finds_itself_with_one_for_each_of_its_tokens():
    model = LateInteraction(BertModel(BertConfig.tiny(vocab_size=40)), dim=16).eval()
    texts = torch.tensor([[2, 7, 9, 3], [2, 8, 5, 3]])
    with torch.no_grad():
        scores = model.score((texts, None), (texts, None))
    assert_near(scores.diagonal(), torch.full((2,), 4.0), 1e-5)
    assert (scores <= 4 + 1e-5).all()


@pytest.fixture(scope="module")
def writer():
    torch.manual_seed(6)
    return CausalLanguageModel(
        BertConfig.tiny(vocab_size=40, hidden_dropout_prob=0.0)
    ).eval()


def test_the_score_of_an_option_is_the_chain_rule_written_as_a_loop(writer):
    prompts, options = [[2, 7, 8], [2, 9]], [[30], [31, 32, 33]]
    found = score_continuations(writer, prompts, options)
    for row, begin in enumerate(prompts):
        for column, option in enumerate(options):
            text, expected = list(begin), 0.0
            for index in option:
                logits = writer.output(
                    writer(torch.tensor([text])).last_hidden_state[0, -1]
                )
                expected += logits.log_softmax(-1)[index].item()
                text.append(index)
            assert found[row, column].item() == pytest.approx(expected, abs=1e-4)
    assert choose_continuation(writer, prompts, options) == found.argmax(1).tolist()


def test_calibration_takes_off_what_an_option_has_on_average_over_prompts(writer):
    prompts, options = [[2, 7, 8], [2, 9], [2, 30, 5, 6]], [[30], [31], [32, 33]]
    scores = score_continuations(writer, prompts, options).tolist()
    means = [sum(column) / len(prompts) for column in zip(*scores, strict=True)]
    leads = [[x - mean for x, mean in zip(row, means, strict=True)] for row in scores]
    expected = [row.index(max(row)) for row in leads]
    assert choose_continuation(writer, prompts, options, calibrated=True) == expected
    assert choose_continuation(writer, prompts, options) != expected


def test_options_that_are_all_single_tokens_share_one_softmax(writer):
    everything = score_continuations(writer, [[2, 7]], [[index] for index in range(40)])
    assert everything.exp().sum().item() == pytest.approx(1, abs=1e-5)


def test_shots_stand_before_the_query_with_their_answers():
    assert prompt([7], [([5], [50, 51])], start=[2]) == [2, 5, 50, 51, 7]
    assert prompt([7]) == [7]


def test_an_empty_prompt_or_option_is_refused(writer):
    for prompts, options in (([[]], [[3]]), ([[2]], [[3], []]), ([], [[3]])):
        with refusal("a prompt or an option has no token"):
            score_continuations(writer, prompts, options)
