"""What a chapter teaches is shown whole, so it fits on the page: at most 36 lines of 88
columns, docstrings left out."""

import ast
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "course_lib"
MOST = 36  # lines

#: By module: functions and classes that a chapter explains.
TAUGHT = {
    "attention/masks.py": ["padding_mask", "causal_mask", "masked_softmax"],
    "attention/scores.py": ["DotScore", "BilinearScore", "AdditiveScore"],
    "attention/multi_head.py": [
        "attend",
        "scaled_dot_product_attention",
        "split_heads",
        "merge_heads",
        "self_attention_loops",
        "MultiHeadAttention.__init__",
        "MultiHeadAttention.forward",
    ],
    "transformer/positions.py": [
        "one_hot_lookup",
        "sinusoidal_positions",
        "LearnedPositions",
        "WordAndPosition.__init__",
        "WordAndPosition.forward",
    ],
    "transformer/blocks.py": [
        "layer_norm",
        "FeedForward",
        "EncoderBlock.__init__",
        "EncoderBlock.forward",
    ],
    "transformer/decoder.py": ["DecoderBlock.__init__", "DecoderBlock.forward"],
    "transformer/heads.py": [
        "LanguageModelHead",
        "ClassificationHead",
        "label_smoothing_loss",
    ],
    "transformer/model.py": ["TransformerEncoder", "Transformer"],
    "bert/layers.py": [
        "BertEmbeddings",
        "BertPooler",
        "MaskedLanguageModelHead",
        "NextSentenceHead",
    ],
    "bert/model.py": ["BertModel", "BertForPreTraining"],
    "family/albert.py": ["AlbertModel"],
    "family/distilbert.py": ["soft_target_loss"],
    "family/colbert.py": ["maxsim"],
}


def lines_of(source: str, name: str) -> int:
    """Count the lines of a function or class, without docstrings and empty lines."""
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        node = next(
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name == part
        )
    counted = set(range(node.lineno, node.end_lineno + 1))
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            inner
        ):
            text = inner.body[0]
            counted -= set(range(text.lineno, text.end_lineno + 1))
    lines = source.splitlines()
    return sum(bool(lines[number - 1].strip()) for number in counted)


def test_what_is_taught_fits_on_the_page():
    too_long = []
    for module, names in TAUGHT.items():
        source = (LIBRARY / module).read_text(encoding="utf-8")
        for name in names:
            if (count := lines_of(source, name)) > MOST:
                too_long.append(f"{module}: {name} has {count} lines")
    assert not too_long, f"longer than {MOST} lines: {too_long}"
