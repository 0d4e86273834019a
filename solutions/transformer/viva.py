"""Small calls for `course viva transformer`: three or more of each function, which take
different ways through it."""

SETUP = """def plain(module):
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            torch.nn.init.eye_(part.weight)
            torch.nn.init.zeros_(part.bias)
    return module"""
WORDS = "In plain(module) every linear layer holds an identity matrix and a bias of 0."

KEYS = "tensor([[1., 0.], [0., 1.]])"
HEADS = "tensor([[[1., 0., 2., 0.], [0., 1., 0., 2.]]])"
STATES = "tensor([[[4., 0.], [0., 4.]]])"
BLOCK = "plain({}(2, 1, 2{})).eval()"

CALLS = {
    "attention_by_loops": [
        f"attention_by_loops(tensor([[0., 0.]]), {KEYS}, tensor([[10.], [20.]]))",
        f"attention_by_loops(tensor([[4., 0.]]), {KEYS}, tensor([[10.], [20.]]))",
        f"attention_by_loops(tensor([[9., 0.]]), {KEYS}, tensor([[0.], [4.]]), cap=1.0)",
        "attention_by_loops(tensor([[0.], [3.]]), tensor([[1.], [2.], [3.]]), tensor([[3.], [6.], [9.]]))",
    ],
    "attention": [
        f"attention(tensor([[0., 0.]]), {KEYS}, tensor([[10.], [20.]]))",
        f"attention(tensor([[4., 0.], [0., 0.]]), {KEYS}, tensor([[10.], [20.]]))",
        f"attention(tensor([[9., 0.]]), {KEYS}, tensor([[0.], [4.]]), cap=1.0)",
        f"attention(tensor([[2., 0.]]), {KEYS}, tensor([[8.], [4.]]), mask=tensor([[False, True]]))",
    ],
    "split_heads": [
        f"split_heads({HEADS}, 2)",
        f"split_heads({HEADS}, 2, dealt=True)",
        f"split_heads({HEADS}, 1)",
        "split_heads(tensor([[[1, 2, 3]]]), 3, dealt=True)",
    ],
    "merge_heads": [
        "merge_heads(tensor([[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]))",
        "merge_heads(tensor([[[[1, 2]], [[3, 4]]]]), dealt=True)",
        "merge_heads(tensor([[[[1], [2], [3]]]]))",
        "merge_heads(tensor([[[[1], [2]], [[3], [4]]]]), dealt=True)",
    ],
    "MultiHeadAttention": [
        f"plain(MultiHeadAttention(2, 1))({STATES}, {STATES}, {STATES})[0]",
        f"plain(MultiHeadAttention(2, 2))({STATES}, {STATES}, {STATES})[0]",
        f"plain(MultiHeadAttention(2, 2))({STATES}, {STATES}, {STATES}, active=tensor([True, False]))[0]",
        f"plain(MultiHeadAttention(2, 1))({STATES}, {STATES}, {STATES}, mask=tensor([[[True, False]]]))",
    ],
    "padding_mask": [
        "padding_mask(tensor([2, 3]), 3)",
        "padding_mask(tensor([1]), 4)",
        "padding_mask(tensor([1, 2]), 3, left=True)",
        "padding_mask(tensor([3]), 3)",
    ],
    "causal_mask": [
        "causal_mask(3)",
        "causal_mask(2)",
        "causal_mask(3, window=2)",
        "causal_mask(3, window=1)",
    ],
    "positional_encoding": [
        "positional_encoding(2, 2)",
        "positional_encoding(1, 4)",
        "positional_encoding(1, 4, base=4.0, first=2)",
        "positional_encoding(2, 2, first=1)",
    ],
    "embed": [
        "embed(tensor([[0]]), tensor([[1., 0., 2., 0.], [0., 1., 0., 2.]]))",
        "embed(tensor([[1, 0]]), tensor([[1., 0., 2., 0.], [0., 1., 0., 2.]]))",
        "embed(tensor([[1], [0]]), tensor([[1., 0., 2., 0.], [0., 1., 0., 2.]]))",
    ],
    "LayerNorm": [
        "LayerNorm(4, eps=0.5)(tensor([[1., 2., 3., 6.]]))",
        "LayerNorm(2, eps=0.0)(tensor([[1., 5.], [3., 1.]]))",
        "LayerNorm(4, eps=4.0, centred=False)(tensor([[1., 1., 3., 3.]]))",
        "LayerNorm(2, eps=3.0)(tensor([[1., 3.]]))",
    ],
    "FeedForward": [
        "plain(FeedForward(2, 2))(tensor([[1., -3.]]))",
        "plain(FeedForward(2, 3))(tensor([[-1., 2.], [3., 0.]]))",
        "plain(FeedForward(2, 2, gated=True))(tensor([[2., 3.]]))",
        "plain(FeedForward(2, 2, gated=True))(tensor([[-2., 4.]]))",
    ],
    "EncoderBlock": [
        f"{BLOCK.format('EncoderBlock', '')}({STATES})",
        f"{BLOCK.format('EncoderBlock', ', alpha=0.0')}({STATES})",
        f"{BLOCK.format('EncoderBlock', ', alpha=0.0')}({STATES}, tensor([[[False, True]]]))",
    ],
    "DecoderBlock": [
        f"{BLOCK.format('DecoderBlock', '')}({STATES}, {STATES})",
        f"{BLOCK.format('DecoderBlock', ', alpha=0.0')}({STATES}, tensor([[[0., 3.]]]))",
        f"{BLOCK.format('DecoderBlock', '')}({STATES}, {STATES}, memory_mask=tensor([[[False, True]]]))",
    ],
}
