"""Multi-head attention four ways: loops, matrices, the fused kernel, and
torch.nn.MultiheadAttention."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from cases import for_each
from expect import assert_near, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import Tensor, nn

from course_lab.peers import gradient_pairs, parameter_pairs, peer
from course_lib.attention.checks import check_attention_inputs
from course_lib.attention.masks import causal_mask, padding_mask
from course_lib.attention.multi_head import (
    MultiHeadAttention,
    scaled_dot_product_attention,
    self_attention_loops,
)
from course_lib.attention.weights import watch_attention
from course_lib.seq2seq.search import reorder_state
from course_lib.training.cpu import speed_up
from course_lib.transformer.cache import KeyValue, attend_cached, project

# All different, so that a transposed or confused dimension cannot go unseen: 3 heads of
# 4 features.
B, H, T, S, D = 2, 3, 5, 7, 12
PRECISIONS = [(torch.float64, 1e-10), (torch.float32, 1e-5)]


def numbers(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(
        shape, dtype=dtype, generator=torch.Generator().manual_seed(seed)
    )


def holes(*shape: int, seed: int = 1) -> Tensor:
    """A mask with holes in which each query keeps at least one key."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[..., 2] = True
    return mask


def make(
    dtype: torch.dtype = torch.float64, dim: int = D, num_heads: int = H, **options
) -> MultiHeadAttention:
    """An attention with random weights; the biases too, which an initialisation to 0
    would hide."""
    torch.manual_seed(3)
    attention = MultiHeadAttention(dim, num_heads, **options).to(dtype)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.3)
    return attention


def by_loops(
    attention: MultiHeadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
) -> Tensor:
    """Each sentence and each head by itself, with attention as the lectures write it:
    two nested loops."""
    dim = query.shape[-1] // attention.num_heads
    w_query, w_key, w_value = (
        layer.weight for layer in (attention.query, attention.key, attention.value)
    )
    b_query, b_key, b_value = (
        layer.bias for layer in (attention.query, attention.key, attention.value)
    )
    sentences = []
    for b in range(query.shape[0]):
        heads = []
        for h in range(attention.num_heads):
            rows = slice(h * dim, (h + 1) * dim)
            q = query[b] @ w_query[rows].T + b_query[rows]
            k = key[b] @ w_key[rows].T + b_key[rows]
            v = value[b] @ w_value[rows].T + b_value[rows]
            heads.append(self_attention_loops(q, k, v, mask[b])[0])
        sentences.append(
            torch.cat(heads, dim=-1) @ attention.output.weight.T + attention.output.bias
        )
    return torch.stack(sentences)


PADDING = padding_mask(torch.tensor([5, 3]))[:, None]
SELF_MASKS = {
    "none": None,
    "padding": PADDING,
    "causal": causal_mask(T, PADDING.device),
    "padding and causal": PADDING & causal_mask(T, PADDING.device),
    "holes": holes(B, T, T),
}
CROSS_MASKS = {
    "none": None,
    "padding": padding_mask(torch.tensor([7, 4]))[:, None],
    "holes": holes(B, T, S),
}
CASES = [("self", name) for name in SELF_MASKS] + [
    ("cross", name) for name in CROSS_MASKS
]


def inputs_of(kind: str, dtype: torch.dtype) -> tuple[list[Tensor], int]:
    """The leaves of the graph (hidden states; or queries, keys and values, all
    different) and the number of keys."""
    shapes = [(B, T, D)] if kind == "self" else [(B, T, D), (B, S, D), (B, S, D)]
    leaves = [
        numbers(*shape, dtype=dtype, seed=seed).requires_grad_()
        for seed, shape in enumerate(shapes, 10)
    ]
    return leaves, T if kind == "self" else S


def three(leaves: list[Tensor]) -> list[Tensor]:
    return leaves * 3 if len(leaves) == 1 else leaves


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS, ids=["float64", "float32"])
@pytest.mark.parametrize(("kind", "mask_name"), CASES)
class TestFourWays:
    """Vaswani et al. 2017, section 3.2.2, and the gradient of every parameter and every
    input."""

    def compare(self, ways, attention, leaves, tolerance):
        """Each way is a function without arguments and the parameters whose gradients
        it leaves behind."""
        # gradients of order 1
        direction = 0.3 * numbers(B, T, D, dtype=leaves[0].dtype, seed=20)
        results = []
        for output_of, parameters in ways:
            for tensor in [*leaves, *parameters]:
                tensor.grad = None
            output = output_of()
            (output * direction).sum().backward()
            results.append(
                [
                    output.detach(),
                    *(tensor.grad.clone() for tensor in [*leaves, *parameters]),
                ]
            )
        for result in results[1:]:
            for got, expected in zip(result, results[0], strict=True):
                assert_near(got, expected, tolerance, tolerance)

    def test_loops_matrices_and_fused_kernel_agree(
        self, kind, mask_name, dtype, tolerance
    ):
        attention, (leaves, keys) = make(dtype), inputs_of(kind, dtype)
        mask = (SELF_MASKS if kind == "self" else CROSS_MASKS)[mask_name]
        everything = torch.ones(B, T, keys, dtype=torch.bool)
        full = everything if mask is None else mask.expand_as(everything)
        parameters = list(attention.parameters())
        fused = speed_up(make(dtype))
        ways = [
            (lambda: by_loops(attention, *three(leaves), full), parameters),
            (lambda: attention(*leaves, mask=mask, return_weights=True)[0], parameters),
            (lambda: fused(*leaves, mask=mask), list(fused.parameters())),
        ]
        self.compare(ways, attention, leaves, tolerance)

    def test_equals_torch(self, kind, mask_name, dtype, tolerance):
        """torch's masks say what is forbidden, and its mask of pairs comes once for
        each sentence and head."""
        attention, (leaves, keys) = make(dtype), inputs_of(kind, dtype)
        theirs = peer(attention)
        mask = (SELF_MASKS if kind == "self" else CROSS_MASKS)[mask_name]
        forbidden = (
            None
            if mask is None
            else ~mask.expand(B, T, keys).repeat_interleave(H, dim=0)
        )

        def torch_output():
            return theirs(
                *three(leaves), attn_mask=forbidden, average_attn_weights=False
            )

        direction = 0.3 * numbers(B, T, D, dtype=dtype, seed=4)
        found = []
        for output in (torch_output()[0], attention(*leaves, mask=mask)):
            for leaf in leaves:
                leaf.grad = None
            (output * direction).sum().backward()
            found.append([output, *(leaf.grad for leaf in leaves)])
        slopes = [(its, mine) for _, mine, its in gradient_pairs(attention, theirs)]
        for expected, got in [*zip(*found, strict=True), *slopes]:
            assert_near(got, expected, tolerance, tolerance)
        _, weights = attention(*leaves, mask=mask, return_weights=True)
        assert_near(weights, torch_output()[1], tolerance, tolerance)
        if mask is not None:
            assert (
                weights[~mask.expand(B, T, keys)[:, None].expand_as(weights)] == 0
            ).all()


class TestArguments:
    def test_no_key_means_self_attention_and_no_value_means_the_keys(self):
        attention, query, key = make(), numbers(B, T, D), numbers(B, S, D, seed=1)
        assert torch.equal(attention(query), attention(query, query, query))
        assert torch.equal(attention(query, key), attention(query, key, key))
        assert not torch.equal(
            attention(query, key), attention(query, key, key.flip(1))
        )

    def test_a_mask_without_batch_holds_for_every_sentence(self):
        attention = make()
        query = numbers(B, T, D)
        key = numbers(B, S, D, seed=1)
        mask = holes(T, S)
        assert torch.equal(
            attention(query, key, mask=mask),
            attention(query, key, mask=mask.expand(B, T, S)),
        )

    @pytest.mark.parametrize("return_weights", [False, True])
    def test_causal_is_the_causal_mask_and_joins_another(self, return_weights):
        attention, hidden = make(), numbers(B, T, D)
        causal = causal_mask(T, hidden.device)

        def output(**options):
            answer = attention(hidden, return_weights=return_weights, **options)
            return answer[0] if return_weights else answer

        assert_near(output(causal=True), output(mask=causal), 1e-12)
        both = output(mask=PADDING & causal)
        assert_near(output(mask=PADDING, causal=True), both, 1e-12)
        assert not torch.allclose(output(causal=True), both)

    @pytest.mark.cpu  # on a GPU no mask is looked at
    @pytest.mark.parametrize("return_weights", [False, True])
    def test_a_mask_that_leaves_nothing_once_joined_with_the_causal_one_is_refused(
        self, return_weights
    ):
        """Padding on the left: the first word may see only itself, and is padding.
        Unchecked, the answer is nan."""
        mask = torch.tensor([[True] * T, [False, False, True, True, True]])[:, None]
        with refusal("forbids every key for 2 of the queries"):
            make()(
                numbers(B, T, D), mask=mask, causal=True, return_weights=return_weights
            )

    def test_causal_needs_as_many_keys_as_queries(self):
        with refusal("there are 5 queries and 7 keys; pass a mask of shape"):
            make()(numbers(B, T, D), numbers(B, S, D), causal=True)

    def test_a_mask_with_a_row_for_each_head_is_not_needed_and_refused(self):
        with pytest.raises(TypeCheckError):
            make()(numbers(B, T, D), mask=holes(B, H, T, T))

    @for_each(
        "mask",
        [holes(B, T, S + 1), holes(B + 1, T, S), holes(B, T + 1, S), holes(S, T)],
    )
    def test_a_mask_of_another_shape_is_refused(self, mask):
        with pytest.raises(TypeCheckError):
            make()(numbers(B, T, D), numbers(B, S, D), mask=mask)

    def test_a_mask_for_another_number_of_words_is_refused_in_words(self):
        with refusal("the mask speaks of 7 keys, but there are 5"):
            make()(numbers(B, T, D), mask=holes(B, 1, S))

    def test_a_mask_of_floats_is_refused(self):
        """torch adds such a mask to the scores; here a mask says may or may not."""
        with pytest.raises(TypeCheckError):
            make()(numbers(B, T, D), mask=torch.zeros(B, T, T))

    @pytest.mark.cpu  # on a GPU no mask is looked at
    @pytest.mark.parametrize("return_weights", [False, True])
    def test_a_query_that_may_attend_to_nothing_is_refused_in_words(
        self, return_weights
    ):
        mask = torch.ones(B, 1, T, dtype=torch.bool)
        mask[1] = False
        with refusal(r"forbids every key for \d+ of the queries"):
            make()(numbers(B, T, D), mask=mask, return_weights=return_weights)

    @pytest.mark.parametrize("num_heads", [5, 0, -3])
    def test_heads_that_do_not_divide_the_width_are_refused_with_a_remedy(
        self, num_heads
    ):
        with refusal(rf"12.*num_heads={num_heads}; choose one of 1, 2, 3, 4, 6, 12"):
            MultiHeadAttention(D, num_heads)

    @pytest.mark.parametrize("dropout", [-0.1, 1.0])
    def test_dropout_that_is_no_share_is_refused_in_words(self, dropout):
        with refusal(f"dropout is {dropout}"):
            MultiHeadAttention(D, H, dropout=dropout)

    def test_another_width_or_another_batch_is_refused(self):
        with refusal("query has 13 features, but this attention is made for 12"):
            make()(numbers(B, T, D + 1))
        for query, key in (
            (numbers(B, T, D), numbers(B, S, D - 4)),
            (numbers(B, T, D), numbers(B + 1, S, D)),
            (numbers(T, D), None),
        ):
            with pytest.raises(TypeCheckError):
                make()(query, key)

    def test_another_width_of_keys_or_values_is_refused_in_words(self):
        """On a reader's machine nothing checks shapes, and torch would speak of
        matrices that cannot be multiplied."""
        query, narrow = numbers(B, T, D), numbers(B, T, D - 4)
        for name, inputs in {
            "key": (query, narrow, narrow),
            "value": (query, query, narrow),
        }.items():
            with refusal(f"{name} has 8 features, but this attention is made for 12"):
                check_attention_inputs(D, *inputs, mask=None, causal=False)

    def test_values_of_its_own_need_no_keys_of_their_own(self):
        attention, query, value = make(), numbers(B, T, D), numbers(B, T, D, seed=1)
        assert torch.equal(
            attention(query, value=value), attention(query, query, value)
        )
        assert not torch.equal(attention(query, value=value), attention(query))

    def test_a_mask_of_one_column_does_not_stand_for_all_keys(self):
        with refusal("the mask speaks of 1 keys, but there are 5"):
            make()(numbers(B, T, D), mask=torch.ones(B, T, 1, dtype=torch.bool))

    @pytest.mark.parametrize(("queries", "keys"), [(0, S), (T, 0)])
    def test_nothing_to_attend_to_is_refused_and_nobody_to_attend_is_not(
        self, queries, keys
    ):
        attention = make()
        for return_weights in (False, True):
            arguments = numbers(B, queries, D), numbers(B, keys, D)
            if keys == 0:
                with refusal("0 keys"):
                    attention(*arguments, return_weights=return_weights)
            else:
                answer = attention(*arguments, return_weights=return_weights)
                assert (answer[0] if return_weights else answer).shape == (B, 0, D)


class TestFusedPath:
    @pytest.fixture
    def calls(self, monkeypatch):
        """What F.scaled_dot_product_attention is called with."""
        seen = []
        original = F.scaled_dot_product_attention

        def spy(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False):
            seen.append(
                {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal}
            )
            return original(query, key, value, attn_mask, dropout_p, is_causal)

        monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
        return seen

    def test_sped_up_the_fused_kernel_runs_unless_weights_are_asked_for(self, calls):
        attention, hidden = make(), numbers(B, T, D)
        attention(hidden)
        assert not calls
        speed_up(attention)(hidden)
        assert len(calls) == 1
        attention(hidden, return_weights=True)
        assert len(calls) == 1

    def test_dropout_falls_on_the_weights_in_training_alone(self, calls):
        attention, hidden = speed_up(make(dropout=0.3)), numbers(B, T, D)
        attention(hidden)
        attention.eval()(hidden)
        # on a CPU, with dropout, attention is written out
        expected = [0.0] if hidden.device.type == "cpu" else [0.3, 0.0]
        assert [call["dropout_p"] for call in calls] == expected

    def test_dropped_weights_are_made_up_for_on_both_paths(self):
        """Dropout keeps the expectation: 4,000 draws of the same query come within five
        standard errors of none."""
        attention = make(dropout=0.4, dim=4, num_heads=2)
        hidden = numbers(1, 6, 4).expand(4000, 6, 4)
        expected = attention.eval()(hidden[:1])[0]
        attention.train()
        torch.manual_seed(5)
        for answer in (attention(hidden), speed_up(attention)(hidden)):
            assert answer.std(dim=0).min() > 0.01
            error = (answer.mean(dim=0) - expected) / (answer.std(dim=0) / 4000**0.5)
            assert error.abs().max() < 5

    @pytest.mark.parametrize("return_weights", [False, True])
    def test_dropout_takes_a_weight_and_not_a_feature(self, return_weights):
        """Of one key, a head passes on all features of the value or none; those that
        stay are made larger."""
        attention = make(dropout=0.5)
        query = numbers(40, T, D)
        memory = numbers(40, 1, D, seed=1)
        with torch.no_grad():
            attention.output.weight.copy_(torch.eye(D))
            attention.output.bias.zero_()
        torch.manual_seed(5)
        answer = attention(query, memory, return_weights=return_weights)
        shares = (answer[0] if return_weights else answer) / attention.eval()(
            query, memory
        )
        of_heads = shares.unflatten(-1, (H, -1)).round(decimals=9)
        assert torch.equal(of_heads, of_heads[..., :1].expand_as(of_heads))
        assert of_heads.unique().tolist() == [0, 2]

    def test_the_weights_that_come_back_are_those_before_dropout(self):
        attention, hidden = make(dropout=0.5), numbers(B, T, D)
        _, weights = attention(hidden, return_weights=True)
        assert torch.equal(weights, attention.eval()(hidden, return_weights=True)[1])

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_half_precision_stays_half_and_masked_keys_get_exactly_nothing(self, dtype):
        attention, mask = make(dtype), SELF_MASKS["padding"]
        hidden = numbers(B, T, D).to(dtype)
        output, weights = attention(hidden, mask=mask, return_weights=True)
        assert output.dtype == weights.dtype == dtype
        assert (weights[1, ..., 3:] == 0).all()
        exact = make().to(dtype).double()  # the same rounded weights
        exact.load_state_dict(attention.state_dict())
        exact = exact(hidden.double(), mask=mask)
        assert_near(output.double(), exact, 60 * torch.finfo(dtype).eps)
        assert_near(attention(hidden, mask=mask), output, 60 * torch.finfo(dtype).eps)


class TestStructure:
    def test_it_has_the_parameters_of_torch_in_number(self):
        for bias in (True, False):
            ours = MultiHeadAttention(D, H, bias=bias)
            theirs = nn.MultiheadAttention(D, H, bias=bias)
            count = sum(parameter.numel() for parameter in ours.parameters())
            assert count == sum(parameter.numel() for parameter in theirs.parameters())
            assert count == 4 * D * D + 4 * D * bias

    def test_it_begins_as_torch_s_does(self):
        """Uniform weights between the same bounds, and biases of 0."""
        torch.manual_seed(0)
        ours, theirs = MultiHeadAttention(96, 4), nn.MultiheadAttention(96, 4)
        for name, mine, its in parameter_pairs(ours, theirs):
            assert mine.abs().max().item() == pytest.approx(
                its.abs().max().item(), rel=0.01
            ), name
            assert mine.norm().item() == pytest.approx(its.norm().item(), rel=0.03), (
                name
            )

    def test_without_biases_it_is_the_same_with_biases_of_0(self):
        query, memory = numbers(B, T, D), numbers(B, S, D, seed=1)
        bare, zeros = make(bias=False), make()
        with torch.no_grad():
            for name in ("query", "key", "value", "output"):
                layer = getattr(zeros, name)
                layer.bias.zero_()
                layer.weight.copy_(getattr(bare, name).weight)
        ways = (
            lambda attention: attention(query),
            lambda attention: attention(query, memory),
            lambda attention: attend_cached(
                attention, query, project(attention, memory)
            ),
        )
        for way in ways:
            assert_near(way(bare), way(zeros), 1e-12)

    def test_eight_heads_have_as_many_parameters_as_one(self):
        """Vaswani et al. 2017, section 3.2.2: the total cost is that of one head of
        full width."""
        one, eight = MultiHeadAttention(16, 1), MultiHeadAttention(16, 8)
        assert [p.shape for p in one.parameters()] == [
            p.shape for p in eight.parameters()
        ]

    def test_one_head_is_attention_between_two_projections(self):
        attention, hidden = make(num_heads=1), numbers(B, T, D)
        projected = [
            layer(hidden) for layer in (attention.query, attention.key, attention.value)
        ]
        expected = attention.output(scaled_dot_product_attention(*projected)[0])
        assert_near(attention(hidden), expected, 1e-12)

    def test_each_head_acts_on_its_own(self):
        """Cut head 1 out of the output projection: where it looks no longer matters;
        where head 2 looks does."""
        attention, hidden = make(), numbers(B, T, D)
        with torch.no_grad():
            attention.output.weight[:, 4:8] = 0
            before = attention(hidden)
            attention.query.weight[4:8] += 1
            attention.key.weight[4:8] += 1
            assert torch.equal(attention(hidden), before)
            attention.query.weight[8:12] += 1  # of head 2
            assert not torch.allclose(attention(hidden), before)

    def test_permuting_the_words_permutes_the_outputs_and_nothing_else(self):
        """Without positions, attention sees a set (chapter 3 opens with this)."""
        attention = make()
        hidden = numbers(B, T, D)
        order = torch.tensor([3, 0, 4, 1, 2])
        assert_near(attention(hidden[:, order]), attention(hidden)[:, order], 1e-12)
        output, weights = attention(hidden, return_weights=True)
        permuted, permuted_weights = attention(hidden[:, order], return_weights=True)
        assert_near(permuted_weights, weights[:, :, order][..., order], 1e-12)
        assert not torch.allclose(permuted, output)

    def test_permuting_the_memory_changes_nothing(self):
        attention, query, memory = make(), numbers(B, T, D), numbers(B, S, D, seed=1)
        order = torch.randperm(S, generator=torch.Generator().manual_seed(2))
        assert_near(attention(query, memory[:, order]), attention(query, memory), 1e-12)

    @pytest.mark.parametrize("return_weights", [False, True])
    def test_a_later_word_cannot_change_an_earlier_output(self, return_weights):
        """Bit for bit: a masked score contributes exp(-inf) = 0 exactly, wherever the
        sum begins."""
        attention, hidden = make(), numbers(B, T, D)
        changed = hidden.clone()
        changed[:, 3] *= -7
        before, after = (
            attention(x, causal=True, return_weights=return_weights)
            for x in (hidden, changed)
        )
        if return_weights:
            before, after = before[0], after[0]
        assert torch.equal(after[:, :3], before[:, :3])
        assert (after[:, 3:] != before[:, 3:]).any(dim=-1).all()

    @for_each("return_weights", [False, True])
    @for_each("junk", [1e30, -1e30])
    def test_what_stands_in_the_padding_cannot_matter(self, return_weights, junk):
        attention, query, memory = make(), numbers(B, T, D), numbers(B, S, D, seed=1)
        lengths = torch.tensor([4, 7])
        mask = padding_mask(lengths)[:, None]
        poisoned = memory.masked_fill(~padding_mask(lengths)[..., None], junk)
        before, after = (
            attention(query, x, mask=mask, return_weights=return_weights)
            for x in (memory, poisoned)
        )
        if return_weights:
            before, after = before[0], after[0]
        assert torch.equal(after, before)


class TestCalledLayers:
    def test_a_hook_on_each_projection_fires_once(self):
        attention, fired = make(), []
        for name, layer in attention.named_children():
            layer.register_forward_hook(lambda *_, name=name: fired.append(name))
        attention(numbers(B, T, D), numbers(B, S, D))
        assert fired == ["query", "key", "value", "dropout", "output"]

    @for_each(
        ("query", "key", "value", "name"),
        [
            ((T, D), None, None, "query"),
            ((B, T, D), (S, D), None, "key"),
            ((B, T, D), (1, S, D), None, "key"),
            ((B, T, D), (B, S, D), (1, S, D), "value"),
        ],
    )
    @pytest.mark.usefixtures("unchecked")
    def test_what_lacks_a_batch_is_refused_and_not_broadcast(
        self, query, key, value, name
    ):
        given = [
            None if shape is None else numbers(*shape) for shape in (query, key, value)
        ]
        with refusal(rf"^{name} is .* with the batch of the"):
            make()(*given)

    def test_weights_are_kept_while_they_are_looked_at_and_outputs_stay(self):
        attention, hidden = make(), numbers(B, T, D)
        before, expected = attention(hidden, return_weights=True)
        with watch_attention(attention) as weights:
            assert torch.equal(attention(hidden), before)
        assert torch.equal(weights[""][0], expected)
        assert isinstance(attention(hidden), Tensor)


class TestDerivatives:
    def test_it_is_differentiable_twice(self):
        attention = make(dim=4, num_heads=2)
        hidden = numbers(1, 3, 4).requires_grad_()
        assert torch.autograd.gradgradcheck(attention, hidden)

    def test_forward_mode_gives_the_slope_along_a_direction(self):
        attention, hidden = make(), numbers(B, T, D)
        direction = numbers(B, T, D, seed=9)
        _, slope = torch.func.jvp(attention, (hidden,), (direction,))
        step = 1e-6
        expected = attention(hidden + step * direction) - attention(
            hidden - step * direction
        )
        assert_near(slope, expected / (2 * step), 1e-7)


class TestCache:
    def test_projected_once_a_memory_serves_every_query(self):
        attention = make()
        query = numbers(B, T, D)
        memory = numbers(B, S, D, seed=1)
        mask = CROSS_MASKS["padding"]
        cache = project(attention, memory)
        assert cache.key.shape == cache.value.shape == (B, H, S, D // H)
        expected = attention(query, memory, mask=mask)
        assert_near(attend_cached(attention, query, cache, mask), expected, 1e-12)
        for t in range(T):
            word = attend_cached(attention, query[:, t : t + 1], cache, mask)
            assert_near(word, expected[:, t : t + 1], 1e-12)

    def test_word_by_word_gives_what_the_causal_mask_gives(self):
        attention, hidden = make(), numbers(B, T, D)
        expected, cache = attention(hidden, causal=True), None
        for t in range(T):
            word = hidden[:, t : t + 1]
            new = project(attention, word)
            cache = new if cache is None else cache.append(new)
            assert_near(
                attend_cached(attention, word, cache), expected[:, t : t + 1], 1e-12
            )

    def test_appending_leaves_the_old_cache_as_it_was(self):
        """A beam may go on from the same cache twice."""
        attention, hidden = make(), numbers(B, T, D)
        first, second = (project(attention, hidden[:, t : t + 1]) for t in (0, 1))
        kept = first.key.clone(), first.value.clone()
        first.append(second)
        assert torch.equal(first.key, kept[0])
        assert torch.equal(first.value, kept[1])

    def test_a_search_can_drop_and_copy_its_rows(self):
        cache = project(make(), numbers(B, T, D))
        picked = reorder_state(cache, torch.tensor([1, 1, 0]))
        assert isinstance(picked, KeyValue)
        assert torch.equal(picked.key, cache.key[[1, 1, 0]])
        assert torch.equal(picked.value, cache.value[[1, 1, 0]])


@settings(max_examples=40, deadline=None)
@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 4),
    queries=st.integers(1, 6),
    keys=st.integers(1, 7),
    scale=st.floats(0.1, 30),
    seed=st.integers(0, 9999),
)
def test_weights_sum_to_one_masked_keys_get_nothing_and_outputs_are_averages(
    batch, heads, queries, keys, scale, seed
):
    generator = torch.Generator().manual_seed(seed)
    dim = 2 * heads
    attention = make(dim=dim, num_heads=heads)
    query = scale * torch.randn(
        batch, queries, dim, dtype=torch.float64, generator=generator
    )
    memory = scale * torch.randn(
        batch, keys, dim, dtype=torch.float64, generator=generator
    )
    mask = torch.rand(batch, queries, keys, generator=generator) < 0.5
    for b, t in itertools.product(range(batch), range(queries)):
        mask[b, t, int(torch.randint(keys, (), generator=generator))] = True
    output, weights = attention(query, memory, mask=mask, return_weights=True)
    assert weights.shape == (batch, heads, queries, keys)
    assert (weights >= 0).all()
    assert (weights[~mask[:, None].expand_as(weights)] == 0).all()
    ones = torch.ones(batch, heads, queries, dtype=torch.float64)
    assert_near(weights.sum(-1), ones, 1e-14)
    # A query that may attend to one key alone gets that key's value, whatever the
    # scores.
    alone = F.one_hot(mask.int().argmax(-1), keys).bool()
    answer = attention(query, memory, mask=alone)
    value = attention.value(memory)
    chosen = value.gather(1, mask.int().argmax(-1)[..., None].expand(-1, -1, dim))
    assert_near(answer, attention.output(chosen), 1e-11, 1e-11)
    assert output.shape == (batch, queries, dim)
