"""Small calls for `course viva modern`."""

PAIR = "tensor([[[[1., 0., 7.]]]])"
ROW = "tensor([[[[0., 2., 1., 0.]]]])"
ADAPTERS = "tensor([[[0., 1.]]]), tensor([[[5.]]])"
HIDDEN = "tensor([[[1., 2.]]]), tensor([[3., 0.]])"
SCORES = "tensor([[0.9, 0.5, 0.7]])"

CALLS = {
    "rotate": [
        f"rotate({PAIR}, tensor([[0]]), features=2)",
        f"rotate({PAIR}, tensor([[1]]), features=2)",
        f"rotate({ROW}, tensor([[1]]), base=4.0)",
        f"rotate({ROW}, tensor([[2]]), base=100.0, features=2)",
    ],
    "scores_by_distance": [
        "scores_by_distance(tensor([[[1., 0.]]]), tensor([[[0., 1.]]]), tensor([[1]]))",
        "scores_by_distance(tensor([[[1., 2.]]]), tensor([[[3., 4.]]]), tensor([[0]]))",
        "scores_by_distance(tensor([[[2., 0.]]]), tensor([[[3., 0.], [0., 5.]]]), tensor([[0, -1]]))",
    ],
    "geglu": [
        "geglu(tensor([[[2.]]]), tensor([[1.], [3.]]), tensor([[10.]]))",
        "geglu(tensor([[[0.]]]), tensor([[1.], [3.]]), tensor([[10.]]))",
        "geglu(tensor([[[9.]]]), tensor([[1.], [2.], [-1.], [3.]]), tensor([[1., 1.]]))",
    ],
    "local_mask": [
        "local_mask(tensor([[4, -1]]))",
        "local_mask(tensor([[4, 4, 4]]), reach=1)",
        "local_mask(tensor([[0, 1, 1]]), reach=0)",
        "local_mask(tensor([[2, 2, 3]]))",
    ],
    "info_nce": [
        "info_nce(tensor([[2., 0.]]), tensor([[3., 0.], [0., 1.], [5., 0.]]), tensor([[1, 0, -1]]), 1.0)",
        "info_nce(tensor([[2., 0.]]), tensor([[3., 0.], [0., 1.]]), tensor([[0, 1]]), 0.5)",
        "info_nce(tensor([[0., 1.]]), tensor([[0., 2.], [0., 3.]]), tensor([[1, -1]]), 1.0)",
    ],
    "lora": [
        f"lora({HIDDEN}, None, {ADAPTERS}, tensor([0]), alpha=2)",
        f"lora({HIDDEN}, tensor([4.]), {ADAPTERS}, tensor([-1]))",
        f"lora({HIDDEN}, tensor([4.]), {ADAPTERS}, tensor([0]))",
        "lora(tensor([[[2.]]]), tensor([[1.]]), None, tensor([[[1.], [2.]]]), tensor([[[3., 0.]]]), tensor([0]), alpha=4)",
    ],
    "merge": [
        f"merge(tensor([[3., 0.]]), {ADAPTERS}, tensor([2.]), alpha=0.5)",
        f"merge(tensor([[3., 0.]]), {ADAPTERS}, tensor([0.]))",
        "merge(tensor([[1.]]), tensor([[[2.], [1.]]]), tensor([[[3., 4.]]]), tensor([1.]))",
    ],
    "ndcg": [
        f"ndcg({SCORES}, tensor([[True, True, True]]), tensor([[0, 1, 2]]))",
        f"ndcg({SCORES}, tensor([[True, True, True]]), tensor([[2, 0, 0]]))",
        f"ndcg({SCORES}, tensor([[False, True, True]]), tensor([[2, 0, 1]]))",
        f"ndcg({SCORES}, tensor([[True, True, True]]), tensor([[1, 0, 1]]), k=1)",
    ],
}
