"""Chapter 10's experiments: diffs that are what the models do, studies that load back,
runs that can be done again."""

import pytest
import torch

from course_lab import records
from course_lab.ch10_family import (
    family_page,
    family_pairs,
    family_prompts,
    family_stories,
)
from course_lib.attention.masks import causal_mask
from course_lib.bert.config import BertConfig
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.embeddings.gpt import CausalLanguageModel
from course_lib.pretraining.masking import IGNORE, VocabIds
from course_tools.record_command import ExperimentError, record_experiment

TINY = BertConfig.tiny(
    vocab_size=50, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)
IDS = torch.tensor([[2, 7, 11, 9, 3]])


def plus_minus(text):
    lines = text.splitlines()[1:-1]
    return [[line for line in lines if line.startswith(sign)] for sign in "+-"]


def test_a_diff_has_the_lines_that_differ_and_no_docstring():
    added, removed = plus_minus(
        family_page.difference(family_page.bert_states, family_page.gpt_states)
    )
    assert "+        hidden = block(hidden, causal=True)" in added
    assert "-        hidden = block(hidden)" in removed
    assert not any('"""' in line for line in added + removed)


def test_what_the_diffs_show_is_what_the_models_do():
    torch.manual_seed(1)
    bert, gpt = BertModel(TINY).eval(), CausalLanguageModel(TINY).eval()
    with torch.no_grad():
        states = {bert: family_page.bert_states, gpt: family_page.gpt_states}
        for model, states_of in states.items():
            expected = model(IDS).last_hidden_state
            torch.testing.assert_close(states_of(model, IDS), expected)
        hidden = bert.embeddings(IDS)
        for block in bert.blocks:
            hidden = block(hidden, causal_mask(5)[None])
        content, _ = family_page.xlnet_states(bert, IDS, range(5))
        torch.testing.assert_close(content, hidden)


def test_a_query_state_of_xlnet_sees_the_words_before_it_in_the_order_alone():
    """Yang et al. 2019, equation 4."""
    torch.manual_seed(4)
    bert, order = BertModel(TINY).eval(), [2, 0, 4, 1, 3]
    with torch.no_grad():
        _, query = family_page.xlnet_states(bert, IDS, order)
        for rank, place in enumerate(order):
            changed = IDS.index_fill(1, torch.tensor([place]), 40)
            _, other = family_page.xlnet_states(bert, changed, order)
            moves = (query != other).any(dim=-1)[0].tolist()
            assert moves == [place in order[rank + 1 :] for place in (0, 1, 3, 4)]


def test_entities_are_hidden_whole_by_the_pages_function():
    vocab = VocabIds(
        mask_id=4, size=50, special_ids=(0, 1, 2, 3, 4), continuation_ids=(49,)
    )
    ids = torch.tensor([[2, 7, 8, 9, 10, 11, 3]]).expand(200, -1)
    _, labels = family_page.hide_entities(
        ids, vocab, torch.Generator().manual_seed(2), [[8, 9]]
    )
    chosen = labels != IGNORE
    assert torch.equal(chosen[:, 2], chosen[:, 3])
    _, labels = family_page.hide_tokens(ids, vocab, torch.Generator().manual_seed(2))
    assert not torch.equal((labels != IGNORE)[:, 2], (labels != IGNORE)[:, 3])


def test_one_vector_and_many_are_compared_on_the_same_states():
    torch.manual_seed(3)
    query, document = torch.randn(2, 3, 5), torch.randn(4, 6, 5)
    masks = torch.ones(2, 3, dtype=torch.bool), torch.ones(4, 6, dtype=torch.bool)
    one = family_page.compare_vectors(query, masks[0], document, masks[1])
    torch.testing.assert_close(one, query.mean(1) @ document.mean(1).T)
    assert (
        family_page.compare_tokens(query, masks[0], document, masks[1]).shape
        == one.shape
    )


def test_unknown_studies_and_variants_are_refused_in_words():
    with pytest.raises(ExperimentError, match="family has no study 'poems'"):
        record_experiment("family", "poems", None, [], [0])
    with pytest.raises(ExperimentError, match="family-ends has no variant 'GPT-9'"):
        record_experiment("family", "ends", None, ["GPT-9"], [0])


def test_sizes_compared_are_equal_where_the_page_says_so():
    """ALBERT and the narrow BERT: within 5% in parameters; student: half the layers of
    its teacher."""
    study = family_stories.STUDY
    with torch.device("meta"):
        plan = study.variants["ALBERT"].recipe.stages[0]
        sizes = {
            name: sum(p.numel() for p in kind.parameters())
            for name, kind in {
                "ALBERT": family_stories.AlbertForPreTraining(
                    family_stories.configured(plan, study.variants["ALBERT"], 1588), 18
                ),
                "narrow": BertForPreTraining(
                    family_stories.configured(
                        plan, study.variants["BERT, as few parameters"], 1588
                    )
                ),
            }.items()
        }
    assert sizes["narrow"] == pytest.approx(sizes["ALBERT"], rel=0.05)
    student = family_stories.configured(
        plan, study.variants["student, from scratch"], 1588
    )
    assert student.num_hidden_layers == 1


def test_ranks_count_those_that_score_as_high():
    pairs = family_pairs.Pairs([[2, 5, 3], [2, 6, 3]], [[2, 5, 3], [2, 6, 3]])

    class Equal(torch.nn.Module):
        def forward(self, input_ids, attention_mask=None):
            return torch.ones(*input_ids.shape, 4)

    assert family_pairs.ranks(Equal(), pairs).tolist() == [2, 2]
    scores = family_pairs.retrieval_scores(torch.tensor([1, 2, 20]))
    assert scores["mrr"] == pytest.approx((1 + 0.5 + 0.05) / 3)
    assert scores["recall_1"] == pytest.approx(1 / 3)
    assert scores["recall_10"] == pytest.approx(2 / 3)


@pytest.fixture(scope="module")
def vocabulary():
    words = {
        word for form in family_prompts.FORMS.values() for word in form.split()
    } | {".", "[CLS]"}
    words |= {*family_prompts.STATES, *family_prompts.ANSWERS}
    words |= {
        name.lower() for name in (*family_prompts.lex.WOMEN, *family_prompts.lex.MEN)
    }
    return {word: number for number, word in enumerate(sorted(words))}


def test_no_name_that_is_asked_for_is_among_the_examples():
    for form in family_prompts.FORMS:
        asked = family_prompts.tasks_of(form, False)
        pool = family_prompts.tasks_of(form, True)
        assert not {x.name for x in asked} & {x.name for x in pool}
        assert [x.answer for x in asked].count(0) == [x.answer for x in asked].count(1)


def test_prompts_end_where_the_answer_begins_and_wrong_answers_are_wrong(vocabulary):
    asked = family_prompts.tasks_of("a list", False)
    pool = family_prompts.tasks_of("a list", True)
    words = list(vocabulary)
    gender = {x.name: family_prompts.ANSWERS[x.answer] for x in pool}
    for wrong in (False, True):
        made = family_prompts.prompts_of(
            asked, pool, 2, vocabulary, seed=6, wrong=wrong
        )
        for task, ids in zip(asked, made, strict=True):
            text = [words[index] for index in ids]
            assert text[0] == "[CLS]"
            assert text[-4:] == [task.name, ",", task.state, ","]
            for start in (1, 7):
                name, _, _, _, answer, end = text[start : start + 6]
                assert end == "."
                assert (answer == gender[name]) is not wrong


def test_a_model_that_always_says_she_is_right_half_of_the_time(vocabulary):
    """Calibration takes away what is said of all names alike."""
    tasks = family_prompts.tasks_of("a sentence", False)
    prompts = family_prompts.prompts_of(tasks, [], 0, vocabulary, seed=0)

    class Biased(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.output = torch.nn.Identity()
            self.unused = torch.nn.Parameter(torch.zeros(()))

        def forward(self, ids):
            hidden = torch.zeros(*ids.shape, len(vocabulary))
            hidden[..., vocabulary["she"]] = 5
            women = torch.tensor([task.answer == 0 for task in tasks]).float()
            hidden[..., vocabulary["she"]] += women[:, None]
            return type("Output", (), {"last_hidden_state": hidden})

    assert family_prompts.accuracies(Biased(), tasks, prompts, vocabulary) == (0.5, 1.0)


def scores_by(name, figure):
    """Variant -> seed -> a figure of a record."""
    found = {}
    for run in records.load(name).results:
        found.setdefault(run["variant"], {})[run["seed"]] = run["scores"][figure]
    return found


@pytest.mark.records
def test_token_by_token_finds_more_than_one_vector_with_every_seed():
    """What the page says; the direction is that of Khattab and Zaharia 2020."""
    mrr = scores_by("family-pydocs-pair", "mrr")
    for seed in (0, 1, 2):
        assert mrr["late interaction"][seed] > mrr["single vector"][seed] + 0.03
        assert (
            mrr["late interaction, as it is"][seed]
            > mrr["single vector, as it is"][seed] + 0.03
        )


def test_ends_are_told_with_leads_or_by_their_command(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    names = ["BERT", "ALBERT"]
    command = "`course record family --data ends`"
    assert command in family_page.ends_tables(names, [])
    runs = [
        {
            "variant": name,
            "seed": seed,
            "scores": {"mlm_accuracy": right + seed / 10, "entity_accuracy": 0.5},
            "parameters": 1234,
            "steps": 200 * (seed + 1),
        }
        for name, right in zip(names, (0.6, 0.5), strict=True)
        for seed in (0, 1, 2)
    ]
    made_on = {"name": "x", "threads": 1, "torch": "2"}
    record = records.Record(
        "family-ends", "course", {}, [0], runs, "0" * 40, made_on, "2026-01-01"
    )
    records.save(record, tmp_path)
    lines = family_page.ends_tables(names, [("BERT", "ALBERT")]).splitlines()
    assert "| BERT | 1,234 | 200 to 600 | 70.0 ± 24.8 | 50.0 ± 0.0 |" in lines
    assert lines[-1] == "| BERT minus ALBERT | **+10.0 ± 0.0** |"


def test_the_page_tables_have_a_row_for_each_way():
    found = records.load("family-pydocs-pair")
    rows = family_page.pairs_table(found).splitlines()
    assert rows[-1].startswith("| BM25 | 0 |")
    assert sum(row.startswith(("| single", "| late")) for row in rows) == 4
    prompts = records.load("family-prompts")
    asked = family_page.prompt_rows(prompts)
    assert len(asked) == len(family_page.PROMPTS) * len(prompts.seeds)
