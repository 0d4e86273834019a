"""What the attention explorer writes into a page: the true weights, escaped words, and
errors in words."""

import json
import re

import numpy as np
import torch
from cases import for_each
from expect import refusal

from course_lib.figures import explorer
from course_lib.figures.explorer import View, attention_explorer

SCRIPT = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)


def softmax(shape: tuple[int, ...], seed: int = 3) -> np.ndarray:
    exponentials = np.exp(np.random.default_rng(seed).normal(size=shape))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def view(
    sentence="old cat here",
    kind="self-attention",
    layers=2,
    heads=3,
    queries=4,
    keys=5,
    seed=3,
    **settings,
):
    words = {
        "query_words": [f"q{n}" for n in range(queries)],
        "key_words": [f"k{n}" for n in range(keys)],
    }
    return View(
        sentence,
        kind,
        **{
            **words,
            "weights": softmax((layers, heads, queries, keys), seed),
            **settings,
        },
    )


def data_of(markup: str) -> dict:
    (text,) = SCRIPT.findall(markup)
    return json.loads(text)


def test_the_page_holds_each_weight_to_the_hundredth_and_then_the_heads_mean():
    shown = view()
    data = data_of(attention_explorer([shown]).markup)
    stored = np.array(data["views"][0][0]["weights"])
    assert stored.shape == (2, 4, 4, 5)
    np.testing.assert_allclose(stored[:, :3] / 100, shown.weights, atol=0.005 + 1e-12)
    np.testing.assert_allclose(
        stored[:, 3] / 100, shown.weights.mean(axis=1), atol=0.005 + 1e-12
    )
    assert data["heads"] == ["1", "2", "3", "mean"]
    assert data["layers"] == ["1", "2"]
    assert data["views"][0][0]["queries"] == ["q0", "q1", "q2", "q3"]


def test_one_head_has_no_mean():
    data = data_of(attention_explorer([view(heads=1)]).markup)
    assert data["heads"] == ["1"]
    assert np.shape(data["views"][0][0]["weights"]) == (2, 1, 4, 5)


def test_sentences_and_kinds_keep_their_order_whatever_the_order_of_the_views():
    grid = [
        view(name, kind, seed=n)
        for n, (name, kind) in enumerate(
            [("b", "x"), ("a", "y"), ("a", "x"), ("b", "y")]
        )
    ]
    data = data_of(attention_explorer(grid).markup)
    assert (data["sentences"], data["kinds"]) == (["b", "a"], ["x", "y"])
    for (row, column), place in {(0, 0): 0, (1, 1): 1, (1, 0): 2, (0, 1): 3}.items():
        stored = np.array(data["views"][row][column]["weights"])[:, :3]
        np.testing.assert_allclose(
            stored / 100, grid[place].weights, atol=0.005 + 1e-12
        )


@for_each(
    "hostile", ["</script>", "<!--<script>", "<b>&amp;", "\u2028", '"', "\\", "'"]
)
def test_no_word_can_leave_its_place_in_the_page(hostile):
    """HTML, "Restrictions for contents of script elements": neither `</script` nor
    `<!--` may stand in one."""
    shown = view(hostile, hostile, query_words=[hostile] * 4, key_words=[hostile] * 5)
    markup = attention_explorer([shown], title=hostile).markup
    data = data_of(markup)
    assert data["sentences"] == data["kinds"] == [hostile]
    assert data["views"][0][0]["queries"] == [hostile] * 4
    assert data["views"][0][0]["keys"] == [hostile] * 5
    assert not re.search("[<>&\u2028]", SCRIPT.findall(markup)[0])
    outside = SCRIPT.sub("", markup)
    assert (
        outside.count("<script") == outside.count("<!--") == outside.count("<b>") == 0
    )
    attribute = re.search(r'aria-label="([^"]*)"', markup)
    assert attribute
    assert "<" not in attribute[1]


def test_a_page_carries_no_handler_no_address_and_no_identifier():
    markup = attention_explorer([view()]).markup
    assert not re.search(r"\son\w+=|https?:|src=|href=|\sid=|style=", markup)


def test_a_table_names_the_largest_weight_of_each_word_in_each_head():
    shown = view(layers=2, heads=2, queries=2, keys=3)
    markup = attention_explorer([shown]).markup
    cells = re.findall(r'<td lang="en">(\w+) ([\d.]+)</td>', markup)
    expected = [
        (f"k{row.argmax()}", f"{row.max():.2f}")
        for query in range(2)
        for row in shown.weights.reshape(4, 2, 3)[:, query]
    ]
    assert cells == expected
    assert (
        re.findall(r'<th scope="col">(layer[^<]*)</th>', markup)[2] == "layer 2, head 1"
    )


def test_with_many_heads_a_column_of_the_table_is_a_layer():
    shown = view(layers=2, heads=9)
    markup = attention_explorer([shown]).markup
    heads = re.findall(r'<th scope="col">(layer[^<]*)</th>', markup)
    assert heads == ["layer 1, mean of the heads", "layer 2, mean of the heads"]
    cells = re.findall(r'<td lang="en">(\w+) ([\d.]+)</td>', markup)
    mean = shown.weights.mean(axis=1)
    assert cells == [
        (f"k{row.argmax()}", f"{row.max():.2f}")
        for query in range(4)
        for row in mean[:, query]
    ]


def test_words_say_their_language():
    markup = attention_explorer(
        [view(query_language="fr", key_language="en-GB")]
    ).markup
    assert '<th scope="row" lang="fr">q0</th>' in markup
    assert '<td lang="en-GB">k' in markup
    assert data_of(markup)["views"][0][0]["languages"] == ["fr", "en-GB"]


def test_tensors_of_any_float_type_on_a_graph_are_read():
    weights = torch.tensor(
        softmax((2, 3, 4, 5)), dtype=torch.bfloat16, requires_grad=True
    )
    stored = np.array(
        data_of(attention_explorer([view(weights=weights)]).markup)["views"][0][0][
            "weights"
        ]
    )[:, :3]
    np.testing.assert_allclose(stored / 100, softmax((2, 3, 4, 5)), atol=0.008)


def test_without_html_a_line_says_what_it_is():
    assert (
        repr(attention_explorer([view(layers=1)]))
        == "Attention explorer: 1 sentence, self-attention, 1 layer, 3 heads"
    )


# -- errors
# --------------------------------------------------------------------------------------


def no_softmax() -> np.ndarray:
    weights = softmax((2, 3, 4, 5))
    weights[1, 2, 3] *= 0.9  # what dropout of one weight in ten leaves
    return weights


@for_each(
    ("settings", "words"),
    [
        (
            {"key_words": ["a", "b"]},
            (
                r"shape \(2, 3, 4, 5\); expected \(layers, heads, 4, 2\) for 4 query"
                r" words and 2 "
            ),
        ),
        (
            {"weights": softmax((2, 3, 5, 4))},
            r"transpose: the last dimension is the keys",
        ),
        ({"weights": np.zeros((0, 3, 4, 5))}, r"shape \(0, 3, 4, 5\)"),
        (
            {"weights": -softmax((2, 3, 4, 5))},
            "negative or not a number; are these scores before the softmax",
        ),
        ({"weights": np.full((2, 3, 4, 5), np.nan)}, "negative or not a number"),
        (
            {"weights": no_softmax()},
            (
                r"query word 4 \('q3'\) in layer 2, head 3 sum to 0.900, not to 1; call"
                r" model"
            ),
        ),
        ({"query_language": 'fr" onclick="'}, "is no code of a language"),
    ],
)
def test_weights_that_do_not_fit_are_refused_in_words(settings, words):
    with refusal(f"old cat here, self-attention: .*{words}"):
        view(**settings)


def test_a_row_of_bfloat16_weights_still_counts_as_a_softmax():
    weights = torch.softmax(
        torch.randn(2, 3, 4, 60, generator=torch.Generator().manual_seed(1)), -1
    ).bfloat16()
    assert float((weights.double().sum(-1) - 1).abs().max()) > 1e-4
    assert view(keys=60, weights=weights).values().shape == (2, 3, 4, 60)


@for_each(
    ("views", "words"),
    [
        ([], "no views"),
        (
            [view("a", "x"), view("b", "y")],
            "no view for the y of 'a'; each sentence needs the same kinds: x, y",
        ),
        (
            [view("a", "x"), view("a", "x")],
            "2 views, but only 1 differ in sentence or kind",
        ),
        (
            [view("a"), view("b", heads=2)],
            r"views differ in \(layers, heads\): \[\(2, 2\), \(2, 3\)\]",
        ),
    ],
)
def test_views_that_make_no_grid_are_refused_in_words(views, words):
    with refusal(words):
        attention_explorer(views)


def test_a_page_that_would_grow_heavy_is_refused_with_its_size(monkeypatch):
    size = len(SCRIPT.findall(attention_explorer([view()]).markup)[0])
    monkeypatch.setattr(explorer, "LARGEST", size)
    attention_explorer([view()])
    monkeypatch.setattr(explorer, "LARGEST", size - 1)
    with refusal(
        f"take {size} bytes, more than the {size - 1} .* sentences of up to 5 words"
    ):
        attention_explorer([view()])
