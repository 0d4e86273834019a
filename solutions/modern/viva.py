"""Small calls for `course viva modern`."""

<<<<<<< HEAD
ROW = "tensor([[[1., 2.]]])"
PAIR = "tensor([[2., 0.]]), tensor([[3., 0.], [0., 1.], [5., 0.]])"
THIN = "tensor([[[0., 1.]]]), tensor([[[5.]]])"
TWO = "tensor([[[0., 1.]], [[1., 0.]]]), tensor([[[5.]], [[2.]]])"
FOUND = "tensor([[True, True, True]])"

CALLS = {
    "rotate": [
        "rotate(tensor([[[[1., 0., 7.]]]]), tensor([[1]]), features=2)",
        "rotate(tensor([[[[1., 2., 3., 4.]]]]), tensor([[0]]))",
        "rotate(tensor([[[[4., 0.], [4., 0.]]]]), tensor([[0, 3]]))",
        "rotate(tensor([[[[0., 2., 5., 6.]]]]), tensor([[2]]), features=2)",
=======
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
>>>>>>> 227b206 (Viva: small calls of the functions of the assignment on encoders of today)
    ],
    "scores_by_distance": [
        "scores_by_distance(tensor([[[1., 0.]]]), tensor([[[0., 1.]]]), tensor([[1]]))",
        "scores_by_distance(tensor([[[1., 2.]]]), tensor([[[3., 4.]]]), tensor([[0]]))",
<<<<<<< HEAD
        "scores_by_distance(tensor([[[2., 0.]]]), tensor([[[5., 0.]]]), tensor([[-3]]))",
        "scores_by_distance(tensor([[[1., 0.]]]), tensor([[[2., 0.], [0., 2.]]]), tensor([[0, 2]]))",
=======
        "scores_by_distance(tensor([[[2., 0.]]]), tensor([[[3., 0.], [0., 5.]]]), tensor([[0, -1]]))",
>>>>>>> 227b206 (Viva: small calls of the functions of the assignment on encoders of today)
    ],
    "geglu": [
        "geglu(tensor([[[2.]]]), tensor([[1.], [3.]]), tensor([[10.]]))",
        "geglu(tensor([[[0.]]]), tensor([[1.], [3.]]), tensor([[10.]]))",
<<<<<<< HEAD
        "geglu(tensor([[[1., 2.]]]), tensor([[0., 4.], [1., 0.]]), tensor([[1.], [2.]]))",
        "geglu(tensor([[[-9.]]]), tensor([[1.], [3.]]), tensor([[10.]]))",
    ],
    "local_mask": [
        "local_mask(tensor([[4, 4, 4, 4]]), 1).int()",
        "local_mask(tensor([[4, 4, 4, -1]])).int()",
        "local_mask(tensor([[-1, 0, 0, 0, 0]]), 0).int()",
        "local_mask(tensor([[1, 1, 0, 0]]), 1).int()",
    ],
    "info_nce": [
        f"info_nce({PAIR}, tensor([[1, 0, -1]]), 1.0)",
        f"info_nce({PAIR}, tensor([[1, -1, 0]]), 1.0)",
        f"info_nce({PAIR}, tensor([[0, 1, 0]]), 0.5)",
        f"info_nce({PAIR}, tensor([[1, -1, 1]]), 0.5)",
    ],
    "lora": [
        f"lora({ROW}, tensor([[3., 0.]]), None, {THIN}, tensor([0]), 2)",
        f"lora({ROW}, tensor([[3., 0.]]), tensor([4.]), {THIN}, tensor([0]))",
        f"lora({ROW}, tensor([[3., 0.]]), tensor([4.]), {TWO}, tensor([-1]), 2)",
        f"lora({ROW}, tensor([[3., 0.]]), None, {TWO}, tensor([1]), 3)",
    ],
    "merge": [
        f"merge(tensor([[3., 0.]]), {THIN}, tensor([2.]), 0.5)",
        f"merge(tensor([[3., 0.]]), {THIN}, tensor([-1.]))",
        f"merge(tensor([[3., 0.]]), {TWO}, tensor([1., 2.]), 2)",
        f"merge(tensor([[3., 0.]]), {TWO}, tensor([0., 1.]))",
    ],
    "ndcg": [
        f"ndcg(tensor([[0.9, 0.5, 0.7]]), {FOUND}, tensor([[0, 1, 2]]))",
        f"ndcg(tensor([[0.5, 0.5, 0.5]]), {FOUND}, tensor([[2, 0, 0]]))",
        f"ndcg(tensor([[0.9, 0.5, 0.7]]), {FOUND}, tensor([[1, 0, 2]]), k=1)",
        "ndcg(tensor([[0.9, 0.5, 0.7]]), tensor([[False, True, True]]), tensor([[2, 1, 0]]))",
=======
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
>>>>>>> 227b206 (Viva: small calls of the functions of the assignment on encoders of today)
    ],
}
