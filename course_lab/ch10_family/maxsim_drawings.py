"""The MaxSim grid of chapter 10, row by row: its numbers are those of `maxsim`."""

from collections.abc import Sequence

from torch import Tensor

from course_lib.family.colbert import maxsim
from course_lib.figures.diagrams import Diagram, Number
from course_lib.figures.stepper import Step

MINUS = "\N{MINUS SIGN}"


def maxsim_grid(
    query: Sequence[str], document: Sequence[str], q: Tensor, vectors: Tensor, done: int
) -> Diagram:
    """The products of all tokens, with the best of the first `done` rows marked."""
    products = q @ vectors.T
    best = products.max(dim=1)
    score = float(maxsim(q[None], vectors[None]))
    assert abs(score - float(best.values.sum())) < 1e-6
    rows, columns, high, left = len(query), len(document), 36, 78
    wide = min(76, (310 - left) / columns)
    found = [
        f"{query[i]} finds {document[int(best.indices[i])]}, {best.values[i]:.2f}"
        for i in range(done)
    ]
    d = Diagram(
        f"maxsim-{'-'.join(document)}-{done}",
        50 + high * rows + 40,
        f"MaxSim, {done} of {rows} tokens of the query",
        "Products, row by row: "
        + "; ".join(
            f"{query[i]} with "
            + ", ".join(
                f"{document[j]} {_signed(products[i, j])}" for j in range(columns)
            )
            for i in range(rows)
        )
        + f". Best so far: {'; '.join(found) or 'none'}."
        + f" Score {score:.2f}." * (done == rows),
    )
    for j, token in enumerate(document):
        d.label(left + wide * (j + 0.5), 30, token, "small")
    d.label(left + wide * columns / 2, 10, "document", "small soft")
    d.tensor(left, 42, rows, columns, "n", (wide, high))
    for i, token in enumerate(query):
        y = 42 + high * i
        d.label(left - 8, y + high / 2, token, "end" + " bold" * (i == done - 1))
        for j in range(columns):
            x, mine = left + wide * j, i < done and j == int(best.indices[i])
            if mine:
                d.group(x + 3, y + 3, wide - 6, high - 6, here=True)
            text = _signed(products[i, j])
            d.label(x + wide / 2, y + high / 2, text, "bold" if mine else "")
        if i < done:
            right = left + wide * columns
            d.arrow((right + 2, y + high / 2), (right + 26, y + high / 2))
            d.label(right + 32, y + high / 2, f"{best.values[i]:.2f}", "start")
    foot = 42 + high * rows
    d.label(4, foot + 24, "query: rows", "small soft start")
    if done == rows:
        d.label(left + wide * columns + 32, foot + 24, f"{score:.2f}", "start bold")
        d.label(left + wide * columns + 22, foot + 24, "sum", "end")
    return d


def maxsim_steps(
    query: Sequence[str], document: Sequence[str], q: Tensor, vectors: Tensor
) -> list[Step]:
    """One step for each token of the query."""
    best = (q @ vectors.T).max(dim=1)
    steps = [
        Step(
            "All products",
            text="Every token of the query meets every token of the document.",
            diagram=maxsim_grid(query, document, q, vectors, 0),
        )
    ]
    for i, token in enumerate(query):
        text = f"The best partner of {token} is {document[int(best.indices[i])]}."
        if i == len(query) - 1:
            text += " The score is the sum of the maxima."
        steps.append(
            Step(
                token,
                text=text,
                diagram=maxsim_grid(query, document, q, vectors, i + 1),
            )
        )
    return steps


def _signed(number: Number | Tensor) -> str:
    return f"{float(number) + 0.0:.2f}".replace("-", MINUS)
