"""Output layers and the loss with smoothed labels."""

import math

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.transformer.heads import (
    ClassificationHead,
    LanguageModelHead,
    label_smoothing_loss,
)

N, V, D = 6, 5, 4


def example(
    dtype: torch.dtype = torch.float64, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(N, V, dtype=dtype, generator=generator)
    return logits, torch.tensor([3, 0, 4, 1, 0, 3])


class TestLabelSmoothing:
    """Szegedy et al. 2016, section 7."""

    @for_each(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
    @for_each("smoothing", [0.0, 0.1, 0.45])
    @for_each("ignore_index", [0, 3, -100])
    def test_equals_torch_with_gradients(
        self, smoothing, ignore_index, dtype, tolerance
    ):
        logits, labels = example(dtype)
        ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        total, count = label_smoothing_loss(ours, labels, smoothing, ignore_index)
        expected = F.cross_entropy(
            theirs,
            labels,
            label_smoothing=smoothing,
            ignore_index=ignore_index,
            reduction="sum",
        )
        torch.testing.assert_close(total, expected, rtol=0, atol=tolerance)
        assert count == (labels != ignore_index).sum()
        total.backward()
        expected.backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=tolerance)

    def test_is_the_cross_entropy_against_the_smoothed_target_written_out(self):
        logits, labels = example()
        smoothing, total = 0.3, 0.0
        for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
            if label == 0:
                continue
            log_sum = math.log(sum(math.exp(x) for x in row))
            target = [smoothing / V + (1 - smoothing) * (v == label) for v in range(V)]
            total -= sum(q * (x - log_sum) for q, x in zip(target, row, strict=True))
        assert label_smoothing_loss(logits, labels, smoothing)[
            0
        ].item() == pytest.approx(total, rel=1e-14)

    @settings(max_examples=40, deadline=None)
    @given(seed=st.integers(0, 9999), smoothing=st.floats(0, 0.9))
    def test_no_model_can_do_better_than_the_entropy_of_the_target(
        self, seed, smoothing
    ):
        logits, labels = example(seed=seed)
        total, count = label_smoothing_loss(logits, labels, smoothing)
        mass = [smoothing / V] * (V - 1) + [smoothing / V + 1 - smoothing]
        entropy = -sum(q * math.log(q) for q in mass if q > 0)
        assert total.item() >= count.item() * entropy - 1e-9

    def test_nothing_but_padding_sums_to_0_over_0_without_nan(self):
        logits, _ = example()
        logits.requires_grad_()
        total, count = label_smoothing_loss(logits, torch.zeros(N, dtype=torch.long))
        total.backward()
        assert (total.item(), count.item()) == (0, 0)
        assert (logits.grad == 0).all()

    def test_a_prediction_at_padding_may_be_anything(self):
        """0 times infinity is not 0: what does not count must be left out, not
        multiplied away."""
        logits, labels = example()
        expected, _ = label_smoothing_loss(logits, labels)
        logits[1, 2] = -torch.inf  # label 1 is padding
        assert label_smoothing_loss(logits, labels)[0].item() == expected.item()

    def test_the_share_is_the_paper_s_unless_another_is_given(self):
        """Vaswani et al. 2017, section 5.4."""
        assert (
            label_smoothing_loss(*example())[0]
            == label_smoothing_loss(*example(), smoothing=0.1)[0]
        )

    def test_half_precision_is_summed_in_single(self):
        logits, labels = example()
        half = logits.to(torch.bfloat16)
        total, _ = label_smoothing_loss(half, labels)
        assert total.dtype == torch.float32
        exact, _ = label_smoothing_loss(half.double(), labels)
        assert total.item() == pytest.approx(exact.item(), rel=1e-6)

    @pytest.mark.parametrize("smoothing", [-0.1, 1.0])
    def test_a_share_that_is_none_is_refused_in_words(self, smoothing):
        with refusal(
            f"smoothing is {smoothing}; it is a share, at least 0 and below 1"
        ):
            label_smoothing_loss(*example(), smoothing)


class TestHeads:
    def test_the_tied_head_scores_a_word_by_its_own_embedding(self):
        """Press and Wolf 2017: no second matrix, and both uses move the one
        there is."""
        embedding = nn.Embedding(V, D).double()
        head = LanguageModelHead(embedding).double()
        hidden = torch.randn(2, 3, D, dtype=torch.float64)
        with torch.no_grad():
            head.bias.copy_(torch.arange(V))
        logits = head(hidden)
        expected = torch.stack(
            [hidden @ row for row in embedding.weight], dim=-1
        ) + torch.arange(V)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-14)
        assert head.weight is embedding.weight
        assert sum(parameter.numel() for parameter in head.parameters()) == V * D + V

    def test_the_offsets_of_the_words_begin_at_0(self):
        assert not LanguageModelHead(nn.Embedding(V, D)).bias.any()

    def test_classes_are_scored_from_the_first_position_alone(self):
        head = ClassificationHead(D, num_classes=3).double()
        hidden = torch.randn(2, 5, D, dtype=torch.float64)
        logits = head(hidden)
        assert logits.shape == (2, 3)
        changed = hidden.clone()
        changed[:, 1:] += 1
        assert torch.equal(head(changed), logits)
        changed[:, 0] += 1
        assert not torch.allclose(head(changed), logits)

    def test_its_dropout_is_active_in_training_alone(self):
        head = ClassificationHead(D, num_classes=3, dropout=0.5)
        hidden = torch.randn(2, 5, D)
        assert not torch.equal(head(hidden), head(hidden))
        assert (head(hidden) != 0).all(), "features are dropped, not classes"
        head.eval()
        assert torch.equal(head(hidden), head(hidden))
