"""Missing words: who sees which side, what is trained on, what is measured, and runs
side by side."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lab.ch01_seq2seq.text import PAD, Pair
from course_lab.ch03_transformer import masked_word
from course_lib.training.loop import TrainingConfig, device
from course_lib.transformer.model import TransformerConfig

CONFIG = TransformerConfig(11, 11, dim=12, num_heads=3, num_layers=2, hidden_dim=20)


def sentences(*rows: list[int]) -> list[Pair]:
    return [Pair(row, [1]) for row in rows]


def test_the_missing_word_is_the_label_and_its_place_is_marked():
    batch = masked_word.hide([[7, 8, 9, 10], [5, 6]], places=[2, 0])
    assert batch["ids"].tolist() == [
        [7, 8, masked_word.MASK, 10],
        [masked_word.MASK, 6, PAD, PAD],
    ]
    assert batch["labels"].tolist() == [9, 5]
    assert batch["lengths"].tolist() == [4, 2]


@pytest.mark.parametrize("causal", [True, False])
def test_a_causal_guesser_sees_the_left_side_only(causal):
    torch.manual_seed(0)
    model = masked_word.WordGuesser(CONFIG, causal).double().eval()
    guess = lambda words: model(
        torch.tensor([words]), torch.tensor([5]), torch.tensor([2])
    )
    here = guess([4, 5, 3, 6, 7])
    right_changed, left_changed = guess([4, 5, 3, 6, 8]), guess([4, 9, 3, 6, 7])
    assert torch.equal(here, right_changed) == causal
    assert not torch.allclose(here, left_changed)


def test_padding_changes_no_guess():
    torch.manual_seed(0)
    for causal in (True, False):
        model = masked_word.WordGuesser(CONFIG, causal).double().eval()
        alone = model(torch.tensor([[4, 3, 5]]), torch.tensor([3]), torch.tensor([1]))
        padded = model(
            torch.tensor([[4, 3, 5, 0, 0]]), torch.tensor([3]), torch.tensor([1])
        )
        torch.testing.assert_close(alone, padded, rtol=1e-12, atol=1e-12)


def test_both_sides_solve_what_the_left_side_cannot():
    """Sentences of one word twice: the first, when it is missing, is known from the
    right side alone."""
    pairs = {
        "train": [Pair([w, w], [4]) for w in range(4, 11)] * 20,
        "test": [Pair([w, w], [4]) for w in range(4, 11)],
    }
    training = TrainingConfig(steps=60, learning_rate=1e-2, progress=False)
    first = masked_word.hide([pair.source for pair in pairs["test"]], [0] * 7)
    right = {}
    for causal in (True, False):
        guesses = masked_word.train_guesser(
            CONFIG, pairs, causal, training, batch_size=28
        )
        # its test hides the second word, which the left side tells
        assert guesses.accuracy == 1.0
        batch = {name: tensor.to(device()) for name, tensor in first.items()}
        logits = guesses.model.eval()(batch["ids"], batch["lengths"], batch["places"])
        right[causal] = int((logits.argmax(dim=-1) == batch["labels"]).sum())
    # without the right side every sentence looks alike: one guess, right once
    assert right == {True: 1, False: 7}


def test_frequencies_are_those_of_the_training_words():
    """Counts 3 and 1, one added to each of 8 ids: p = 4/12 and 2/12."""
    pairs = {
        "train": [Pair([4, 4, 5, 4], [1])],
        "test": [Pair([6, 4], [1]), Pair([4, 5, 4], [1])],
    }
    perplexity, accuracy = masked_word.frequency_baseline(pairs, vocab_size=8)
    assert perplexity == pytest.approx((12 / 4 * 12 / 2) ** 0.5)
    assert accuracy == 0.5


def test_perplexity_and_accuracy_are_those_of_the_middle_words_of_a_model_at_rest():
    torch.manual_seed(0)
    model = masked_word.WordGuesser(replace(CONFIG, dropout=0.5), causal=False).to(
        device()
    )
    sources = [[4, 5, 6], [7, 8], [9], [4, 6, 8, 10, 5]]
    perplexity, accuracy = masked_word.evaluate(model.train(), sources)
    losses, right = [], []
    for source in sources:
        word, middle = source[len(source) // 2], len(source) // 2
        hidden = torch.tensor(
            [
                [
                    masked_word.MASK if place == middle else w
                    for place, w in enumerate(source)
                ]
            ]
        )
        with torch.no_grad():
            inputs = (hidden, torch.tensor([len(source)]), torch.tensor([middle]))
            logits = model.eval()(*(tensor.to(device()) for tensor in inputs))[0].cpu()
        losses.append(F.cross_entropy(logits, torch.tensor(word)))
        right.append(float(logits.argmax() == word))
    assert perplexity == pytest.approx(
        torch.stack(losses).mean().exp().item(), rel=1e-5
    )
    assert accuracy == sum(right) / 4


def test_the_loss_is_a_sum_over_sentences():
    model = masked_word.WordGuesser(CONFIG, causal=True).double()
    batch = masked_word.hide([[7, 8, 9], [5, 6]], places=[2, 0])
    total, count = masked_word._loss(model, batch)
    alone = [
        masked_word._loss(model, masked_word.hide([source], [place]))[0]
        for source, place in (([7, 8, 9], 2), ([5, 6], 0))
    ]
    assert count == 2
    torch.testing.assert_close(total, sum(alone), rtol=1e-10, atol=0)


def test_the_head_is_tied_to_the_words_and_they_begin_with_variance_1():
    torch.manual_seed(0)
    model = masked_word.WordGuesser(replace(CONFIG, source_vocab=500), causal=True)
    assert model.head.weight is model.encoder.embed.embedding.weight
    assert (12**0.5 * model.head.weight).std().item() == pytest.approx(1, rel=0.05)


def test_it_learns_from_training_sentences_and_is_measured_on_others():
    pairs = {
        "train": sentences(*([[4, 5, 4], [5, 4, 5]] * 10)),
        "test": sentences([8, 9, 8], [9, 8, 9]),
    }
    training = TrainingConfig(steps=40, learning_rate=1e-2, progress=False)
    guesses = masked_word.train_guesser(CONFIG, pairs, False, training, batch_size=10)
    assert guesses.accuracy == 0
    assert guesses.perplexity > 11, "worse than a blind guess among all words"
    seen = [pair.source for pair in pairs["train"]]
    assert masked_word.evaluate(guesses.model, seen) == (pytest.approx(1, abs=0.1), 1.0)


def test_training_hides_any_word_another_in_each_epoch_and_the_seed_decides_which(
    monkeypatch,
):
    pairs = {
        "train": sentences(*([w, w, w, w] for w in range(4, 10))),
        "test": sentences([4, 5]),
    }
    original = masked_word.hide

    def run(seed):
        hidden = []
        monkeypatch.setattr(
            masked_word,
            "hide",
            lambda *words: (hidden.append(words), original(*words))[1],
        )
        training = TrainingConfig(
            steps=8, learning_rate=1e-12, seed=seed, progress=False
        )
        guesses = masked_word.train_guesser(CONFIG, pairs, True, training, batch_size=3)
        # the last is of the test split
        return (guesses.model.head.weight.detach().cpu(), hidden[:8])

    weights, hidden = run(seed=5)
    same_weights, same = run(seed=5)
    other_weights, other = run(seed=6)
    assert hidden == same
    torch.testing.assert_close(weights, same_weights)
    assert not torch.allclose(weights, other_weights, atol=0.1)
    assert [batch[0] for batch in hidden] != [batch[0] for batch in other], (
        "another order"
    )
    assert [batch[1] for batch in hidden] != [batch[1] for batch in other], (
        "other places"
    )
    epochs = [
        {
            tuple(s): place
            for batch in hidden[at : at + 2]
            for s, place in zip(*batch, strict=True)
        }
        for at in (0, 2)
    ]
    assert epochs[0].keys() == epochs[1].keys()
    assert epochs[0] != epochs[1]
    assert {place for _, places in hidden for place in places} == {0, 1, 2, 3}
