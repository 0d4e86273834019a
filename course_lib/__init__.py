"""From Attention to BERT: the library behind the course.

Eleven packages are the chapters, in their order:
:mod:`attention <course_lib.attention>`, :mod:`seq2seq <course_lib.seq2seq>`,
:mod:`transformer <course_lib.transformer>`,
:mod:`wordpiece <course_lib.wordpiece>`, :mod:`bert <course_lib.bert>`,
:mod:`pretraining <course_lib.pretraining>`, :mod:`embeddings <course_lib.embeddings>`,
:mod:`finetuning <course_lib.finetuning>`,
:mod:`sentence_bert <course_lib.sentence_bert>`, :mod:`family <course_lib.family>` and
:mod:`modern <course_lib.modern>`. Four serve them all: :mod:`data <course_lib.data>`,
:mod:`training <course_lib.training>`, :mod:`metrics <course_lib.metrics>` and
:mod:`figures <course_lib.figures>`.

``__init__.pyi`` lists the public names. Each is imported when it is first used, so that
``import course_lib`` is quick:

>>> from course_lib import BertConfig, BertModel
>>> BertModel(BertConfig.tiny()).config.hidden_size
128

Shapes are written in letters: B sequences in a batch; T positions, or queries or target
words; S keys or source words; D features of a hidden state; H heads; V tokens in the
vocabulary. A module says which other letters it has.
"""

import ast
import importlib
from pathlib import Path

_HOME: dict[str, str] = {
    alias.name: str(statement.module)
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"course_lib has no {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
