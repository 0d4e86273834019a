"""Small calls for `course viva attention`."""

SETUP = """def chain(state, tokens):
    # the log probabilities of the next token, whatever came before the last one
    table = torch.tensor([[-9.0, -1.0, -2.0, -9.0], [-9.0, -9.0, -1.0, -3.0], [-9.0, -4.0, -9.0, -1.0]])
    return table[tokens], state"""
WORDS = """chain(state, tokens) gives state back, and for the last token 0, 1 or 2 the row
[-9, -1, -2, -9], [-9, -9, -1, -3] or [-9, -4, -9, -1] of log probabilities."""

ONES = "tensor([[1., 1., 1., 1.]])"
PAIR = "tensor([[1., 1., 1., 1.], [2., 0., 0., 0.]])"
GOLD = "{(0, 0), (1, 2)}"

CALLS = {
    "masked_softmax": [
        "masked_softmax(tensor([[0., 0., 5.]]), tensor([[True, True, False]]))",
        "masked_softmax(tensor([[3., 3.], [0., 9.]]))",
        "masked_softmax(tensor([[0., 0.]]), sink=0.0)",
        "masked_softmax(tensor([[1., 2.]]), tensor([[False, False]]))",
        "masked_softmax(tensor([[4., 0.], [7., 7.]]), tensor([[False, True], [True, True]]))",
    ],
    "additive_scores": [
        "additive_scores(tensor([[[1.]]]), tensor([[[0.], [-1.]]]), tensor([[1.]]), tensor([[1.]]), tensor([2.]))",
        "additive_scores(tensor([[[0.], [9.]]]), tensor([[[0.]]]), tensor([[1.]]), tensor([[3.]]), tensor([4.]))",
        "additive_scores(tensor([[[0.]]]), tensor([[[0.], [8.]]]), tensor([[1.]]), tensor([[1.]]), tensor([2.]), tensor([[[9., 0.]]]), tensor([1.]))",
    ],
    "dot_scores": [
        f"dot_scores({ONES}, {PAIR})",
        f"dot_scores({ONES}, {PAIR}, slope=0.5)",
        "dot_scores(tensor([[3.], [1.]]), tensor([[2.], [4.]]))",
        "dot_scores(tensor([[2.], [2.]]), tensor([[1.], [0.]]), slope=1.0)",
    ],
    "score_statistics": [
        "score_statistics(tensor([[0., 0.], [2., 2.]]))",
        "score_statistics(tensor([[0., 0.], [1., 1.]]), tensor([[True, True], [True, False]]))",
        "score_statistics(tensor([[1., 99.], [3., 99.]]))",
        "score_statistics(tensor([[5., 5., 5., 1.]]), tensor([[True, True, False, False]]))",
    ],
    "align": [
        "align(tensor([[0.1, 0.9], [0.8, 0.2]]), 2, 2)",
        "align(tensor([[0.1, 0.9], [0.8, 0.2]]), 2, 2, least=0.85)",
        "align(tensor([[0.2, 0.3, 0.5], [0.4, 0.6, 0.0], [1.0, 0.0, 0.0]]), 2, 2)",
        "align(tensor([[0.5, 0.2], [0.3, 0.7]]), 1, 2, least=0.5)",
    ],
    "alignment_error_rate": [
        f"alignment_error_rate({GOLD}, {{(0, 0)}}, {{(0, 0), (1, 1)}})",
        f"alignment_error_rate({GOLD}, {GOLD}, {GOLD})",
        f"alignment_error_rate(set(), {GOLD}, {GOLD})",
        "alignment_error_rate(set(), set(), {(0, 0)})",
        f"alignment_error_rate({GOLD}, {{(0, 0), (0, 1)}}, {{(0, 0), (0, 1), (1, 2)}})",
    ],
    "beam_search": [
        "beam_search(chain, torch.zeros(1, 1), 0, 3, 1, 4, alpha=0.0)",
        "beam_search(chain, torch.zeros(1, 1), 0, 3, 2, 4, alpha=0.0)",
        "beam_search(chain, torch.zeros(1, 1), 0, 3, 2, 1, alpha=0.0)",
        "beam_search(chain, torch.zeros(1, 1), 0, 3, 2, 5, alpha=0.0, least=4)",
    ],
}
