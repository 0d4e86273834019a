"""Small calls for `course viva fine-tuning`."""

SETUP = """def mix(*weights):
    made = LayerMix(len(weights))
    made.weights.data = torch.tensor(weights)
    return made"""
WORDS = "mix(a, b) is a LayerMix whose weights are a and b."

CROSS = "tensor([[1., 0.], [0., 1.], [1., 0.]])"
HIDDEN = "tensor([[[9.], [1.], [3.], [9.], [7.]]]), tensor([[2, 50, 60, 3, 0]])"
STATES = "[tensor([[[2.]]]), tensor([[[4.]]])]"
LABELS = "[[21], [22, 23], [24]], [1, 2, 0], 2, 3"
GUESSED = "tensor([[0., 9.], [3., 1.], [0., 9.], [9., 1.]]), [-100, 0, 1, -100]"
START = "tensor([9., 1., 2., 0.])"
PLACES = "[None, (0, 3), (4, 7), (8, 13)]"
SPAN = f"'Jim was there', tensor([5., 1., 2., 0.]), tensor([1., 0., 3., 0.]), {PLACES}"

CALLS = {
    "cosines": [
        "cosines(tensor([[3., 0.], [2., 2.]]))",
        "cosines(tensor([[3., 0.], [2., 2.]]), common=tensor([2., 0.]))",
        "cosines(tensor([[3., 4.], [4., 3.]]))",
        "cosines(tensor([[1., 1.], [2., 0.]]), common=tensor([1., -1.]))",
    ],
    "within_and_between": [
        f"within_and_between({CROSS}, ['a', 'a', 'b'])",
        f"within_and_between({CROSS}, ['a', 'b', 'a'])",
        "within_and_between(tensor([[1., 0.], [-1., 0.], [0., 2.]]), ['a', 'a', 'b'])",
    ],
    "separation": [
        "separation(tensor([[1., 0.], [1., 0.], [0., 1.], [0., 1.]]), ['a', 'a', 'b', 'b'])",
        "separation(tensor([[1., 0.], [0., 1.], [1., 0.], [0., 1.]]), ['a', 'a', 'b', 'b'])",
        f"separation({CROSS}, ['a', 'a', 'b'])",
    ],
    "LayerMix": [
        f"mix(0., 0.)({STATES})",
        f"mix(0., 0.)({STATES}, left_out=(0,))",
        f"mix(9., 0.)({STATES}, left_out=(1,))",
        f"mix(0., 0., 0.)({STATES})",
    ],
    "mean_pool": [
        f"mean_pool({HIDDEN}, tensor([[True, True, True, True, False]]), (2, 3))",
        f"mean_pool({HIDDEN}, tensor([[True, True, True, True, True]]), ())",
        f"mean_pool({HIDDEN}, tensor([[True, True, False, False, False]]), (2,))",
        "mean_pool(tensor([[[4.], [6.]]]), tensor([[2, 3]]), tensor([[True, True]]), (2, 3))",
    ],
    "standardise": [
        "standardise(tensor([[1.], [3.]]), tensor([[5.]]))",
        "standardise(tensor([[2.], [2.]]), tensor([[5.]]))",
        "standardise(tensor([[0., 4.], [4., 8.]]), tensor([[2., 0.]]))",
    ],
    "align_labels": [
        f"align_labels({LABELS}, 10)",
        f"align_labels({LABELS}, 4)",
        "align_labels([[5], [6]], [1, 0], 2, 3, 3)",
        "align_labels([], [], 2, 3, 5)",
    ],
    "word_guesses": [
        f"word_guesses({GUESSED})",
        f"word_guesses({GUESSED}, tensor([[True, False], [True, True]]))",
        "word_guesses(tensor([[1., 2.], [2., 1.]]), [1, 1])",
        "word_guesses(tensor([[1., 2.], [2., 1.]]), [-100, -100])",
    ],
    "best_span": [
        f"best_span({START}, tensor([9., 3., 0., 1.]), {PLACES}, 2)",
        f"best_span({START}, tensor([9., 0., 1., 6.]), {PLACES}, 2)",
        f"best_span({START}, tensor([9., 0., 1., 6.]), {PLACES}, 1)",
        f"best_span({START}, tensor([9., 2., 1., 0.]), [None, (0, 3), None, (4, 7)], 3)",
    ],
    "answer": [
        f"answer({SPAN}, 3)",
        f"answer({SPAN}, 3, threshold=0.0)",
        f"answer({SPAN}, 3, threshold=-2.0)",
        f"answer({SPAN}, 1, threshold=-1.0)",
    ],
    "choose": [
        "choose(tensor([[0., 0.], [0., 4.]]), least=0.6)",
        "choose(tensor([[9., 9., -torch.inf]]))",
        "choose(tensor([[0., 9.], [9., 0.]]), least=0.5)",
    ],
}
