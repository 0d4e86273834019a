"""Small calls for `course viva bert`."""

SETUP = """def plain(kind):
    module = kind(BertConfig(4, 2, 2, 1, 2, 4, 2, 0.0)).eval()
    for part in list(module.modules()):
        for name, inner in list(part.named_children()):
            if isinstance(inner, torch.nn.LayerNorm):
                setattr(part, name, torch.nn.Identity())
        if isinstance(part, torch.nn.Linear):
            torch.nn.init.eye_(part.weight)
            torch.nn.init.zeros_(part.bias)
        if isinstance(part, torch.nn.Embedding):
            part.weight.data = torch.arange(2.0 * len(part.weight)).reshape(-1, 2)
    return module"""
WORDS = """plain(kind) is such a module with two features, one head, two layers and no dropout,
whose norms pass on what they get, whose linear layers hold an identity matrix and a bias of
0, and whose embedding tables hold 0, 1 in row 0, then 2, 3 and so on."""

ROWS = "[([101, 102], [0, 0]), ([101, 7, 102], [0, 0, 0])]"
SAME = "tensor([[[2., 0.], [2., 0.]]])"
CONFIG = "BertConfig(10, 2, {}, 1, 3, 4)"

CALLS = {
    "pair_input": [
        "pair_input([7, 8], [9])",
        "pair_input([7, 8], [9], between=2)",
        "pair_input([7, 8, 9])",
        "pair_input([5, 6], [7, 8], max_length=6)",
        "pair_input([5, 6, 7], max_length=4)",
    ],
    "make_batch": [
        f"make_batch({ROWS})['input_ids']",
        f"make_batch({ROWS}, pad_id=9, multiple=4)['input_ids']",
        f"make_batch({ROWS})['attention_mask']",
        "make_batch([([101, 5, 102, 6, 102], [0, 0, 0, 1, 1])], multiple=2)['token_type_ids']",
    ],
    "BertEmbeddings": [
        "plain(BertEmbeddings)(tensor([[1, 3]]))",
        "plain(BertEmbeddings)(tensor([[0, 0]]), tensor([[0, 1]]))",
        "plain(BertEmbeddings)(tensor([[2, 2]]), position_ids=tensor([[3, 0]]))",
        "plain(BertEmbeddings)(tensor([[1], [0]]))",
    ],
    "SelfAttention": [
        f"plain(SelfAttention)({SAME})",
        "plain(SelfAttention)(tensor([[[9., 0.], [0., 9.]]]), tensor([[True, False]]))[0]",
        "plain(SelfAttention)(tensor([[[9., 0.], [0., 9.]]]))[0]",
        f"plain(SelfAttention)({SAME}, bias=tensor([[[0., 99.], [0., 0.]]]))[1]",
    ],
    "gelu": ["gelu(tensor([0., 9.]))", "gelu(tensor([-1., 1.]))", "gelu(tensor([2.]))"],
    "BertLayer": [
        "plain(BertLayer)(tensor([[[0., 9.]]]))",
        "plain(BertLayer)(tensor([[[9., 0.], [0., 9.]]]), tensor([[True, False]]))",
        "plain(BertLayer)(tensor([[[-4., 0.]]]))",
    ],
    "Pooler": [
        "plain(Pooler)(tensor([[[0., 9.], [9., 0.]]]))",
        "plain(Pooler)(tensor([[[0., 9.], [9., 0.]]]), tensor([[False, True]]))",
        "plain(Pooler)(tensor([[[-9., 0.], [9., 9.]], [[0., 0.], [9., -9.]]]))",
    ],
    "count_parameters": [
        f"count_parameters({CONFIG.format(1)})",
        f"count_parameters({CONFIG.format(2)})",
        "count_parameters(BertConfig(10, 2, 0, 1, 1, 4))",
    ],
    "published_name": [
        "published_name('layers.3.attention.query.weight')",
        "published_name('embeddings.norm.bias', old=True)",
        "published_name('layers.0.output.bias')",
        "published_name('pooler.dense.weight', old=True)",
    ],
}
