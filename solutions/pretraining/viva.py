"""Small calls for `course viva pretraining`."""

SETUP = """import random as chances


class Rigged(chances.Random):
    def __new__(cls, value):
        return super().__new__(cls)

    def __init__(self, value):
        super().__init__(0)
        self.value = value

    def random(self):
        return self.value

    def randrange(self, *_):
        return 0

    def choice(self, values):
        return values[0]


def double(hidden):
    return 2 * hidden"""
WORDS = """Rigged(x).random() is always x, its randrange gives 0 and its choice the first.
double(hidden) is 2 * hidden."""

TEXTS = "[[[1], [2], [3]], [[4], [5]]]"
PAIRS = "[([7, 8], [9], 1), ([5], [6], 0)], 2, 3, 0"
HIDDEN = "tensor([[[1.], [2.], [3.]]])"

CALLS = {
    "fill_segments": [
        "fill_segments([[1, 2], [3], [4, 5, 6], [7]], 4)",
        "fill_segments([[1, 2], [3]], 2)",
        "fill_segments([[1, 2, 3], [4]], 2)",
        "fill_segments([[1], [2], [3]], 3)",
    ],
    "sentence_pairs": [
        f"sentence_pairs({TEXTS}, Rigged(0.9))",
        f"sentence_pairs({TEXTS}, Rigged(0.1))",
        "sentence_pairs([[[1], [2]]], Rigged(0.9))",
        "sentence_pairs([[[1]], [[2], [3]]], Rigged(0.5))",
    ],
    "pack_pairs": [
        f"pack_pairs({PAIRS})['input_ids']",
        f"pack_pairs({PAIRS})['token_type_ids']",
        f"pack_pairs({PAIRS})['attention_mask']",
        f"pack_pairs({PAIRS})['next_sentence_labels']",
    ],
    "masked_loss": [
        "masked_loss(tensor([[0., 0.], [9., 9.]]), tensor([1, -100]))",
        "masked_loss(tensor([[0., 9.], [9., 0.]]), tensor([0, 0]))",
        "masked_loss(tensor([[5., 1.]]), tensor([-100]))",
        "masked_loss(tensor([[0., 0., 0., 0.], [0., 0., 0., 50.]]), tensor([2, 3]))",
    ],
    "masked_logits": [
        f"masked_logits(double, {HIDDEN}, tensor([[-100, 7, 8]]))",
        f"masked_logits(double, {HIDDEN}, tensor([[5, -100, 6]]), most=1)",
        f"masked_logits(double, {HIDDEN}, tensor([[-100, -100, -100]]))",
        f"masked_logits(double, {HIDDEN}, tensor([[0, 1, 2]]), most=2)",
    ],
    "pretraining_loss": [
        "pretraining_loss(tensor([[0., 0.]]), tensor([1]), tensor([[0., 0.]]), tensor([0]))",
        "pretraining_loss(tensor([[0., 9.]]), tensor([-100]), tensor([[9., 0.]]), tensor([1]))",
        "pretraining_loss(tensor([[0., 5.]]), tensor([0]), tensor([[50., 0.]]), tensor([0]))",
    ],
}
