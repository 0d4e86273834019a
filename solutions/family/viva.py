"""Small calls for `course viva family`."""

SETUP = """def even(ids):
    return torch.zeros(*ids.shape, 10)


def next_one(ids):
    return 9.0 * torch.nn.functional.one_hot(ids + 1, 10)"""
WORDS = """The logits of even(ids) are all 0, for 10 words; those of next_one(ids) are 9 for the
word whose id is one larger, and 0 for all others."""

LEVEL = "tensor([[[0., 0.]]])"
SHOTS = "[([5, 6], [7]), ([8], [9])]"
CHOICE = "tensor([[[-1., 9.], [-0.8, -0.8]]]), tensor([[True, False], [True, True]])"

CALLS = {
    "soft_targets": [
        f"soft_targets({LEVEL}, tensor([[[4., 0.]]]), tensor([[True]]), 2.0)",
        f"soft_targets({LEVEL}, tensor([[[2., 0.]]]), tensor([[True]]), 1.0)",
        "soft_targets(tensor([[[0., 0.], [8., 0.]]]), tensor([[[2., 0.], [0., 8.]]]), tensor([[True, False]]), 1.0)",
        f"soft_targets({LEVEL}, {LEVEL}, tensor([[True]]), 2.0)",
    ],
    "mixed_loss": [
        "mixed_loss(tensor([3.]), tensor([[[0., 0.], [5., 7.]]]), tensor([[1, -1]]), 0.25)",
        "mixed_loss(tensor([4.]), tensor([[[0., 50.]]]), tensor([[1]]), 0.5)",
        "mixed_loss(tensor([4.]), tensor([[[0., 10.]]]), tensor([[0]]), 0.5)",
        "mixed_loss(tensor([1., 3.]), tensor([[[0., 0.]], [[9., 0.]]]), tensor([[0], [1]]), 0.0)",
    ],
    "maxsim": [
        "maxsim(tensor([[[1., 0.], [0., 1.]]]), tensor([[[3., 1.], [2., 5.]]]), tensor([[True, True]]), tensor([[True, True]]))",
        "maxsim(tensor([[[1., 0.], [0., 1.]]]), tensor([[[3., 1.], [2., 5.]]]), tensor([[True, False]]), tensor([[True, True]]))",
        "maxsim(tensor([[[1., 2.]]]), tensor([[[1., 0.], [4., 4.]]]), tensor([[True]]), tensor([[True, False]]))",
        "maxsim(tensor([[[2.]]]), tensor([[[1.]], [[-3.]]]), tensor([[True]]), tensor([[True], [True]]))",
    ],
    "build_prompt": [
        f"build_prompt([1], {SHOTS}, [4], 0, 6)",
        f"build_prompt([1], {SHOTS}, [4], 0, 9)",
        f"build_prompt([1, 2], {SHOTS}, [4], 0, 5)",
        f"build_prompt([1, 2], {SHOTS}, [3, 4], 0, 3)",
    ],
    "answer_log_probs": [
        "answer_log_probs(even, [4], [[7], [8, 9]], 0)",
        "answer_log_probs(next_one, [4], [[5, 6]], 0)",
        "answer_log_probs(next_one, [1, 2], [[3], [4]], 0)",
        "answer_log_probs(next_one, [3], [[4, 0], [5]], 8)",
    ],
    "choose_answer": [
        f"choose_answer({CHOICE})",
        f"choose_answer({CHOICE}, alpha=0.0)",
        f"choose_answer({CHOICE}, prior=tensor([[-2., 9.], [-0.3, -0.3]]))",
        "choose_answer(tensor([[[-3., -1.], [-4., 0.]]]), tensor([[True, True], [True, False]]))",
    ],
}
