"""Batches of a pre-training and their loss: mean over hidden tokens plus mean over
pairs, however they are shared."""

import math
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tiny import tiny_bert

from course_lib.bert.model import BertConfig, BertForPreTraining
from course_lib.pretraining.batches import (
    EpochBatches,
    PreTrainingBatch,
    PreTrainingBatches,
    pretraining_loss,
    pretraining_loss_sum,
)
from course_lib.pretraining.masking import IGNORE, MaskingConfig, corrupt
from course_lib.pretraining.sequences import lay_out
from course_lib.training.loop import TrainingConfig, set_seed, to_device, train
from course_lib.wordpiece.training import SPECIAL_TOKENS

PAD, UNK, CLS, SEP, MASK = range(5)
VOCAB = {
    token: i
    for i, token in enumerate(
        [*SPECIAL_TOKENS, *map(str, range(5, 50)), *(f"##{i}" for i in range(11))]
    )
}
V = len(VOCAB)
MAX_LENGTH = 35


def corpus(documents: int = 60, seed: int = 1) -> SimpleNamespace:
    """Documents of 1 to 9 sentences of 1 to 12 tokens; a store keeps ids in two
    bytes."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 10, documents)
    sentences = np.append(0, np.cumsum(random.integers(1, 13, sizes.sum())))
    ids = random.integers(5, V, sentences[-1]).astype(np.uint16)
    return SimpleNamespace(
        ids=ids,
        sentence_starts=sentences,
        document_starts=np.append(0, np.cumsum(sizes)),
    )


def data(**changes) -> PreTrainingBatches:
    settings = {"max_length": MAX_LENGTH, "batch_size": 4, "seed": 3, **changes}
    return PreTrainingBatches(
        settings.pop("corpus", None) or corpus(), VOCAB, **settings
    )


def small_bert(**changes) -> BertForPreTraining:
    """A BERT in float64 without dropout, so that sums may be compared to the last
    digits."""
    set_seed(5)
    config = tiny_bert(
        vocab_size=V,
        num_hidden_layers=1,
        intermediate_size=20,
        max_position_embeddings=MAX_LENGTH + 5,
        initializer_range=0.5,
    )
    return BertForPreTraining(replace(config, **changes)).double()


def original(epoch: EpochBatches, index: int) -> np.ndarray:
    """The rows of a batch before anything is hidden."""
    width, rows = epoch.plan[epoch.order.ravel()[index]]
    return lay_out(
        epoch.data.corpus.ids, epoch.sequences, rows, width, epoch.data.specials
    ).input_ids


def same(one: PreTrainingBatch, other: PreTrainingBatch) -> bool:
    return all(
        (
            a.equal(b)
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
            else a == b
        )
        for a, b in zip(one, other, strict=True)
    )


def loss_sum(
    model: BertForPreTraining, batch: PreTrainingBatch
) -> tuple[torch.Tensor, torch.Tensor]:
    """As training calls it, with the batch where the model is."""
    where = next(model.parameters()).device
    return pretraining_loss_sum(model, to_device(batch, where))


def losses(
    model: BertForPreTraining, batches: list[PreTrainingBatch]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each hidden token's and each labelled pair's loss, of all batches."""
    tokens, pairs = [], []
    for batch in batches:
        output = model(
            batch.input_ids,
            batch.attention_mask,
            batch.token_type_ids,
            batch.masked_positions,
        )
        tokens.append(
            F.cross_entropy(
                output.prediction_logits, batch.masked_labels, reduction="none"
            )
        )
        known = batch.next_sentence_labels != IGNORE
        pairs.append(
            F.cross_entropy(
                output.seq_relationship_logits[known],
                batch.next_sentence_labels[known],
                reduction="none",
            )
        )
    return torch.cat(tokens), torch.cat(pairs)


class TestLoss:
    def test_worked_example_of_three_tokens(self):
        """x = (21, 11987, 5438), hidden 1 and 3: the loss is -log P[1, 21] - log P[3,
        5438], here as a mean of two."""
        x = torch.tensor([[21, 11987, 5438]])
        chosen = torch.tensor([[True, False, True]])
        _, labels = corrupt(x, chosen, torch.zeros(1, 3), x, mask_id=50001)
        logits = torch.randn(
            1, 3, 50002, generator=torch.Generator().manual_seed(0), dtype=torch.float64
        )
        log_p = logits.log_softmax(-1)
        expected = -(log_p[0, 0, 21] + log_p[0, 2, 5438]) / 2
        loss = pretraining_loss(logits, torch.zeros(1, 2).double(), labels)
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
        positions = torch.tensor([0, 2])
        at_chosen = pretraining_loss(
            logits.flatten(0, 1)[positions],
            torch.zeros(1, 2).double(),
            torch.tensor([21, 5438]),
        )
        torch.testing.assert_close(at_chosen, expected, rtol=1e-12, atol=0)

    def test_the_pairs_add_their_own_mean_and_a_single_segment_none(self):
        logits = torch.randn(7, V, generator=torch.Generator().manual_seed(1))
        labels = torch.arange(7)
        relation = torch.tensor([[2.0, -1.0], [0.5, 0.0], [9.0, -9.0]])
        pairs = torch.tensor([0, 1, IGNORE])
        tokens_alone = pretraining_loss(logits, relation, labels)
        expected = (math.log1p(math.exp(-3.0)) + math.log1p(math.exp(0.5))) / 2
        with_pairs = pretraining_loss(logits, relation, labels, pairs)
        assert (with_pairs - tokens_alone).item() == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize("size", ["tiny", "mini"])
    def test_at_initialisation_it_is_the_log_of_the_vocabulary_plus_the_log_of_two(
        self, size
    ):
        """Weights of 0.02 leave the logits a standard deviation of 0.02 sqrt(H), which
        costs half its square."""
        set_seed(8)
        model = getattr(BertConfig, size)(vocab_size=V)
        model = BertForPreTraining(model).eval()
        batches = list(data(batch_size=16)(0))
        sums = [loss_sum(model, batch) for batch in batches]
        spread = 0.02**2 * model.config.hidden_size / 2
        for loss, count in sums:
            assert loss.item() / count == pytest.approx(
                math.log(V) + math.log(2), abs=4 * spread
            )

    @pytest.mark.parametrize("batches_per_step", [1, 2, 5])
    def test_the_sums_of_a_step_are_its_mean_over_tokens_plus_its_mean_over_pairs(
        self, batches_per_step
    ):
        """To rounding in float64, though batches differ in width, in hidden tokens and
        in pairs."""
        model = small_bert()
        epoch = data(batches_per_step=batches_per_step)(0)
        step = epoch.step(1)
        total, count = (
            sum(column)
            for column in zip(*(loss_sum(model, b) for b in step), strict=True)
        )
        tokens, pairs = losses(model, step)
        expected = tokens.mean() + pairs.mean()
        torch.testing.assert_close(total / count, expected, rtol=1e-13, atol=0)
        if batches_per_step > 1:
            mean_of_means = sum(
                sum(part.mean() for part in losses(model, [batch])) for batch in step
            ) / len(step)
            assert abs(mean_of_means - expected) > 1e-3, (
                "the example must tell the two apart"
            )

    def test_training_reports_that_loss_and_takes_its_gradient(self):
        model = small_bert()
        batches = data(batches_per_step=3)
        tokens, pairs = losses(model, batches(0).step(0))
        loss = tokens.mean() + pairs.mean()
        norm = torch.cat(
            [g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]
        ).norm()
        config = TrainingConfig(
            steps=1, accumulate=3, learning_rate=1e-4, clip_norm=None
        )
        history = train(model, batches, pretraining_loss_sum, config)
        assert history.losses == pytest.approx([loss.item()], rel=1e-12)
        assert history.gradient_norms == pytest.approx([norm.item()], rel=1e-12)

    def test_without_next_sentences_the_pooler_gets_no_gradient(self):
        model = small_bert()
        loss, _ = loss_sum(model, data(next_sentence=False)(0)[0])
        loss.backward()
        assert model.bert.pooler.dense.weight.grad is None
        assert model.bert.embeddings.token.weight.grad is not None

    @pytest.mark.slow
    def test_training_steps_lower_it_below_what_knows_only_frequencies(self):
        """Sentences that repeat two words: frequencies cost log 40, the other half of a
        sentence tells the word."""
        random = np.random.default_rng(0)
        ids = np.repeat(random.integers(5, 45, 3000), 4).astype(np.uint16)
        made = SimpleNamespace(
            ids=ids,
            sentence_starts=np.arange(0, 12_001, 4),
            document_starts=np.arange(0, 3001, 10),
        )
        model = small_bert(
            hidden_size=48, intermediate_size=96, initializer_range=0.05
        ).float()
        config = TrainingConfig(steps=300, learning_rate=3e-3, warmup_steps=20)
        history = train(
            model, data(corpus=made, batch_size=16), pretraining_loss_sum, config
        )
        assert np.mean(history.losses[-20:]) < 0.5 * math.log(40) + math.log(2)


class TestBatch:
    @given(
        st.integers(0, 10**6),
        st.integers(0, 50),
        st.booleans(),
        st.sampled_from(["token", "word", "span"]),
    )
    @settings(deadline=None, max_examples=25)
    def test_labels_are_the_original_ids_at_the_hidden_positions_and_only_these_differ(
        self, seed, epoch, pairs, unit
    ):
        made = data(
            seed=seed, next_sentence=pairs, masking=MaskingConfig(unit=unit, rate=0.3)
        )(epoch)
        for index, batch in enumerate(made):
            before = torch.from_numpy(original(made, index))
            hidden = torch.zeros(before.shape, dtype=torch.bool)
            hidden.view(-1)[batch.masked_positions] = True
            assert batch.masked_labels.equal(before[hidden])
            assert batch.input_ids[~hidden].equal(before[~hidden])
            assert (batch.masked_labels > MASK).all()
            assert hidden.any(dim=1).all()
            attended = before != PAD
            if batch.attention_mask is None:
                assert attended.all()
            else:
                assert batch.attention_mask.equal(attended)
                assert not attended.all(), (
                    "None says that nothing is padded, and is faster"
                )
            assert (batch.next_sentence_labels is None) is not pairs

    def test_segments_change_behind_the_first_separator(self):
        for batch in data()(0):
            for ids, segments, label in zip(
                batch.input_ids.tolist(),
                batch.token_type_ids.tolist(),
                batch.next_sentence_labels.tolist(),
                strict=True,
            ):
                first = ids.index(SEP) + 1
                if label == IGNORE:
                    assert sum(segments) == 0
                else:
                    end = ids.index(SEP, first) + 1
                    assert segments == [0] * first + [1] * (end - first) + [0] * (
                        len(ids) - end
                    )

    def test_weights_are_sequences_over_hidden_tokens_and_over_pairs_of_the_step(self):
        epoch, alone = data(batches_per_step=3)(0), 0
        for index in range(len(epoch) // 3):
            step = epoch.step(index)
            sequences = sum(len(batch.input_ids) for batch in step)
            hidden = sum(len(batch.masked_labels) for batch in step)
            labelled = sum(
                int((batch.next_sentence_labels != IGNORE).sum()) for batch in step
            )
            assert {batch.mlm_weight for batch in step} == {sequences / hidden}
            assert {batch.nsp_weight for batch in step} == {sequences / labelled}
            alone += sequences - labelled
        assert alone > 0, (
            "the example has sequences of one segment, which have no label"
        )

    def test_packed_sequences_have_one_segment_and_no_label(self):
        for across in (True, False):
            made = data(next_sentence=False, across_documents=across, drop_last=False)(
                0
            )
            assert all(
                batch.next_sentence_labels is None and batch.token_type_ids.sum() == 0
                for batch in made
            )
            separators = max(
                int((batch.input_ids == SEP).sum(dim=1).max()) for batch in made
            )
            assert (separators > 1) is across

    def test_the_model_reads_what_the_settings_of_masking_say(self):
        made = list(
            data(masking=MaskingConfig(rate=0.4, mask_share=1.0, random_share=0.0))(0)
        )
        hidden = torch.cat(
            [batch.input_ids.flatten()[batch.masked_positions] for batch in made]
        )
        assert (hidden == MASK).all()
        ordinary = sum(int((batch.input_ids > MASK).sum()) for batch in made)
        low, high = binom.interval(1 - 1e-6, ordinary + len(hidden), 0.4)
        assert low <= len(hidden) <= high


def full_rows(**changes) -> PreTrainingBatches:
    """Sentences of 14 tokens, so that [CLS], one of them and [SEP] are 16: every batch
    is full, and has one shape."""
    ids = np.random.default_rng(0).integers(5, V, 14 * 48)
    made = SimpleNamespace(
        ids=ids,
        sentence_starts=np.arange(0, 14 * 48 + 1, 14),
        document_starts=np.arange(0, 49, 4),
    )
    return data(corpus=made, max_length=16, next_sentence=False, **changes)


class TestDraws:
    def test_where_nothing_is_padded_there_is_no_mask(self):
        made = list(full_rows()(0))
        assert {tuple(batch.input_ids.shape) for batch in made} == {(4, 16)}
        assert all(batch.attention_mask is None for batch in made)

    def test_every_batch_hides_other_places(self):
        places = [tuple(batch.masked_positions.tolist()) for batch in full_rows()(0)]
        assert len(set(places)) == len(places) == 12

    def test_another_seed_hides_other_places_of_the_same_text(self):
        epoch = full_rows(seed=3)(0)
        other = replace(epoch, data=full_rows(seed=4))
        for index, batch in enumerate(epoch):
            assert np.array_equal(original(epoch, index), original(other, index))
            assert (
                batch.masked_positions.tolist()
                != other[index].masked_positions.tolist()
            )


class TestEpoch:
    def test_every_token_of_the_corpus_is_read_once_where_nothing_is_dropped(self):
        for pairs in (True, False):
            made = data(drop_last=False, next_sentence=pairs)(4)
            read = np.concatenate(
                [original(made, index).ravel() for index in range(len(made))]
            )
            assert (
                np.bincount(read, minlength=V)[5:].tolist()
                == np.bincount(corpus().ids, minlength=V)[5:].tolist()
            )

    def test_batches_have_few_shapes_and_no_more_positions_than_full_sequences(self):
        made = list(data(corpus=corpus(documents=900), batch_size=8)(0))
        shapes = {tuple(batch.input_ids.shape) for batch in made}
        assert all(width % 8 == 0 and rows == 8 * 40 // width for rows, width in shapes)
        assert 2 <= len(shapes) <= 5, "40 / 8 widths, one number of rows for each"

    def test_steps_are_whole(self):
        for count in (1, 2, 3, 4):
            assert len(data(batches_per_step=count)(0)) % count == 0

    def test_a_batch_is_the_same_however_it_is_reached(self):
        """So a run that is resumed, and a second process, draw what one run in one go
        draws."""
        made, again = data(batches_per_step=2)(7), data(batches_per_step=2)(7)
        for index, batch in enumerate(made):
            assert same(batch, again[index])
            assert same(batch, again[index - len(made)])
        assert all(same(a, b) for a, b in zip(list(made)[3:9], again[3:9], strict=True))
        with pytest.raises(IndexError):
            made[len(made)]

    @pytest.mark.parametrize("change", [{"seed": 4}, {"epoch": 8}])
    def test_another_seed_and_another_epoch_give_other_pairs_masks_and_order(
        self, change
    ):
        epoch = change.pop("epoch", 7)
        one, other = data()(7), data(**change)(epoch)
        assert one.sequences.starts.tolist() != other.sequences.starts.tolist()
        assert one.order.tolist() != other.order.tolist()
        assert not any(same(a, b) for a, b in zip(one, other, strict=False))

    def test_static_masking_gives_each_epoch_the_batches_of_the_first_in_another_order(
        self,
    ):
        made = data(static_masking=True, drop_last=False)
        first, later = list(made(0)), list(made(5))
        places = [
            next(i for i, other in enumerate(later) if same(batch, other))
            for batch in first
        ]
        assert sorted(places) == list(range(len(later)))
        assert places != sorted(places)

    def test_static_sequences_keep_the_text_and_hide_other_tokens(self):
        made = data(static_sequences=True, drop_last=False)
        first, later = made(0), made(5)
        assert first.sequences.starts.tolist() == later.sequences.starts.tolist()
        by_batch = {
            int(batch): index for index, batch in enumerate(later.order.ravel())
        }
        for index, batch in enumerate(first.order.ravel().tolist()):
            assert np.array_equal(
                original(first, index), original(later, by_batch[batch])
            )
            assert not same(first[index], later[by_batch[batch]])

    def test_dynamic_masking_hides_every_token_sooner_or_later(self):
        """Of 100 epochs a token misses all with probability 0.85^100, below one in ten
        million."""
        made = data(
            static_sequences=True,
            drop_last=False,
            corpus=corpus(documents=6),
            batch_size=2,
        )
        hidden = {}
        for number in range(100):
            epoch = made(number)
            for index, batch in zip(epoch.order.ravel().tolist(), epoch, strict=True):
                hidden.setdefault(index, set()).update(batch.masked_positions.tolist())
        epoch = made(0)
        for index, places in hidden.items():
            place = epoch.order.ravel().tolist().index(index)
            assert places == set(
                np.flatnonzero(original(epoch, place).ravel() > MASK).tolist()
            )

    def test_a_memory_map_will_do(self, tmp_path):
        made = corpus()
        np.asarray(made.ids).tofile(tmp_path / "ids.bin")
        mapped = SimpleNamespace(
            **{
                **vars(made),
                "ids": np.memmap(tmp_path / "ids.bin", dtype=np.uint16, mode="r"),
            }
        )
        assert all(
            same(a, b) for a, b in zip(data()(1), data(corpus=mapped)(1), strict=True)
        )


@for_each(
    ("changes", "words"),
    [
        ({"max_length": 4}, "max_length is 4; it must be at least 5"),
        (
            {"max_length": 2, "next_sentence": False},
            "max_length is 2; it must be at least 3",
        ),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"batches_per_step": 0}, "batches_per_step is 0; it must be at least 1"),
        (
            {"batches_per_step": 2, "drop_last": False},
            "drop_last=False keeps batches that fill no step",
        ),
        (
            {"batch_size": 4000},
            "the corpus makes 0 batches of 4000 sequences, but a step takes 1",
        ),
        (
            {"batches_per_step": 999},
            "but a step takes 999; take a smaller batch_size or a larger corpus",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(changes, words):
    with pytest.raises(ValueError, match=words):
        data(**changes)(0)


@pytest.mark.slow
def test_a_batch_is_made_in_a_fraction_of_the_step_that_learns_from_it():
    """In one process, in turn: making 64 sequences of 128 tokens against a training
    step of `tiny` on them."""
    made = data(corpus=corpus(documents=6000), max_length=128, batch_size=64)(0)
    model = BertForPreTraining(BertConfig.tiny(vocab_size=V)).train()
    ratios = []
    for index in range(7):
        started = time.process_time()
        batch = made[index]
        between = time.process_time()
        loss_sum(model, batch)[0].backward()
        ratios.append((between - started) / (time.process_time() - between))
    assert np.median(ratios) < 0.1
