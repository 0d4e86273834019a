"""Small calls for `course viva sentence-bert`."""

HIDDEN = "tensor([[[1., 8.], [3., 4.], [9., 9.]]])"
SIGNED = "tensor([[[-1., 8.], [-3., 4.], [9., 9.]]])"
UNIT = "tensor([[1., 0.], [0., 1.]])"
VECTORS = "tensor([[2., 0.]]), tensor([[1., 0.], [0., 9.], [3., 4.]])"
ANCHOR = "tensor([[0., 0.]]), tensor([[3., 4.]])"
SCORES = "tensor([[0.9, 0.5, 0.7], [0.1, 0.2, 0.3]])"

CALLS = {
    "mean_pool": [
        f"mean_pool({HIDDEN}, tensor([[True, True, False]]))",
        f"mean_pool({HIDDEN}, tensor([[True, True, False]]), tensor([[3., 1., 5.]]))",
        f"mean_pool({HIDDEN}, tensor([[False, True, True]]))",
    ],
    "cls_pool": [
        f"cls_pool({HIDDEN}, tensor([[False, True, True]]))",
        f"cls_pool({HIDDEN}, tensor([[True, True, False]]), last=True)",
        f"cls_pool({HIDDEN}, tensor([[True, True, True]]))",
        "cls_pool(tensor([[[1.], [2.]], [[3.], [4.]]]), tensor([[True, False], [False, True]]))",
    ],
    "max_pool": [
        f"max_pool({SIGNED}, tensor([[True, True, False]]))",
        f"max_pool({SIGNED}, tensor([[True, True, False]]), by_size=True)",
        f"max_pool({SIGNED}, tensor([[False, True, True]]))",
        "max_pool(tensor([[[-5.], [2.]]]), tensor([[True, True]]), by_size=True)",
    ],
    "classify": [
        "classify(tensor([[1.]]), tensor([[3.]]), tensor([[1., 0., 0., 0.], [0., 1., 1., 0.]]), tensor([1]))",
        "classify(tensor([[2.]]), tensor([[5.]]), tensor([[0., 0., 0., 1.], [0., 0., 1., 0.]]), tensor([0]))",
        "classify(tensor([[4.]]), tensor([[1.]]), tensor([[0., 0., 0., 0.], [0., 0., 1., 0.]]), tensor([1]))",
    ],
    "cosine_loss": [
        "cosine_loss(tensor([[3., 4.]]), tensor([[4., 3.]]), tensor([0.5]))",
        "cosine_loss(tensor([[3., 4.]]), tensor([[4., 3.]]), tensor([0.5]), slack=0.2)",
        "cosine_loss(tensor([[1., 0.], [0., 2.]]), tensor([[2., 0.], [0., 1.]]), tensor([1., 0.]))",
        "cosine_loss(tensor([[1., 0.]]), tensor([[0., 1.]]), tensor([0.5]), slack=0.5)",
    ],
    "triplet_loss": [
        f"triplet_loss({ANCHOR}, tensor([[0., 5.5]]), 1.0)",
        f"triplet_loss({ANCHOR}, tensor([[3., 0.]]), 1.0, swap=True)",
        f"triplet_loss({ANCHOR}, tensor([[0., 9.]]), 2.0)",
        f"triplet_loss({ANCHOR}, tensor([[6., 8.]]), 7.0, swap=True)",
    ],
    "in_batch_loss": [
        f"in_batch_loss({UNIT}, {UNIT}, 1.0)",
        f"in_batch_loss({UNIT}, {UNIT}, 0.5)",
        f"in_batch_loss({UNIT}, {UNIT}, 1.0, margin=1.0)",
        f"in_batch_loss(tensor([[0., 3.]]), {UNIT}, 0.1)",
    ],
    "search": [
        f"search({VECTORS}, 2, 3)",
        f"search({VECTORS}, 1, 2)",
        f"search({VECTORS}, 5, 1)",
        "search(tensor([[0., 1.]]), tensor([[3., 4.], [4., 3.]]), 1, 1)",
    ],
    "ranks": [
        "ranks(tensor([8., 5., 9., 8.]))",
        "ranks(tensor([3., 1., 2.]))",
        "ranks(tensor([4., 4., 4.]))",
    ],
    "spearman": [
        "spearman(tensor([0.9, 0.8, 0.1]), tensor([5., 2., 2.5]))",
        "spearman(tensor([1., 2., 3.]), tensor([9., 5., 1.]))",
        "spearman(tensor([1., 2.]), tensor([7., 7.]))",
        "spearman(tensor([1., 2., 3.]), tensor([4., 5., 9.]))",
    ],
    "mean_reciprocal_rank": [
        f"mean_reciprocal_rank({SCORES}, tensor([[False, False, True], [False, False, True]]))",
        f"mean_reciprocal_rank({SCORES}, tensor([[False, True, False], [False, False, False]]))",
        f"mean_reciprocal_rank({SCORES}, tensor([[True, True, False], [True, False, False]]))",
        "mean_reciprocal_rank(tensor([[0.5, 0.5]]), tensor([[True, False]]))",
    ],
}
