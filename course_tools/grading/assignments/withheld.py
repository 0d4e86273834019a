"""What an assignment withholds: static checks on the code that a student wrote.

An assignment names, in its notebook's metadata (``course.withholds``), the modules and
functions that the student is to build. The notebook's own tests, ``course check`` and
the grader all call :func:`withheld_uses`, so they refuse the same things. It reads
source, never runs it, and it is self-contained: ``course release`` copies it into the
notebook.

It says where, before anything runs. What the code then does, by other names,
:mod:`course_tools.grading.assignments.guard` sees.
"""


def withheld_uses(source: str, withheld: list[str]) -> list[str]:
    """Say where ``source`` uses something that the assignment withholds."""
    import ast

    lines = [
        "pass" if line.lstrip().startswith(("%", "!", "?")) else line
        for line in source.splitlines()
    ]
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:
        return []
    last_names = {name.rpartition(".")[2]: name for name in withheld}
    found: list[tuple[int, str]] = []

    def refuse(line: int, verb: str, name: str, match: str) -> None:
        found.append(
            (
                line,
                (
                    f"line {line} {verb} {name}, which this assignment withholds: you"
                    f" build {match}"
                ),
            )
        )

    # `course_lib.DotScore` is that of `course_lib.attention.scores`: what is
    # no package of the library may be withheld.
    rooms = {
        *("attention", "seq2seq", "transformer", "wordpiece", "bert", "pretraining"),
        *("embeddings", "finetuning", "sentence_bert", "family", "modern"),
        *("training", "metrics", "figures", "data"),
    }

    def within(name: str) -> str | None:
        root, _, rest = name.partition(".")
        if root == "course_lib" and rest and rest.partition(".")[0] not in rooms:
            return next((w for w in withheld if w.startswith("course_lib")), None)
        return next(
            (w for w in withheld if name == w or name.startswith(w + ".")), None
        )

    library = {"course_lib"} | {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "course_lib" and alias.asname
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if match := within(alias.name):
                    refuse(node.lineno, "imports", alias.name, match)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if match := within(name):
                    refuse(node.lineno, "imports", name, match)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in library:
            if match := within(f"course_lib.{node.attr}"):
                refuse(node.lineno, "uses", ast.unparse(node), match)
        elif isinstance(node, ast.Attribute) and node.attr in last_names:
            match = last_names[node.attr]
            # `model.attention`, `self.layer_norm` are the student's;
            # `course_lib.attention`, `nn.LayerNorm` are not.
            owner = ast.unparse(node.value)
            if owner.startswith("course_lib") or (
                match.startswith("torch.") and owner != "self"
            ):
                refuse(node.lineno, "uses", ast.unparse(node), match)
        elif isinstance(node, ast.Call) and node.args:
            called = ast.unparse(node.func).rpartition(".")[2]
            texts = [
                a.value
                for a in node.args
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            ]
            if called in ("import_module", "__import__"):
                for text in texts:
                    if match := within(text):
                        refuse(node.lineno, "imports", text, match)
            elif called == "getattr":
                for text in texts:
                    if text in last_names and last_names[text].startswith("torch."):
                        refuse(node.lineno, "uses", text, last_names[text])
    return [words for _, words in sorted(found)]
