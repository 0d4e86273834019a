"""From which state of the course an assignment was released: its *edition*.

`course release` writes the edition into a notebook's metadata (``course.edition``); a
notebook that names none is of 2026.11. Later editions of the library call modules
otherwise, and what a released notebook withholds must stay withheld under its new name.

A class stays with one edition for its term: `course init` writes it down beside
``nbgrader_config.py``, and what releases or grades refuses to work in another.
"""

import re
from pathlib import Path

from nbformat import NotebookNode

import course_lib
from course_lib.files import write_whole

#: What is released from now on.
EDITION = "2026.12"
#: Beside nbgrader_config.py: the edition that a class keeps to.
PIN = "edition.txt"
#: How CHANGELOG.md names the commit of an edition that has been released.
COMMIT = re.compile(r"^Edition ([\d.]+) is commit `([0-9a-f]{40})`", re.MULTILINE)
#: Modules of `course_lib` that assignments of 2026.11 withhold, and what they are now.
_TABLE = """
masking attention.masks  scores attention.scores  attention attention.multi_head
seq2seq seq2seq.model  decoding seq2seq.search  positions transformer.positions
transformer_layers transformer.blocks  transformer_decoder transformer.decoder
transformer_heads transformer.heads  transformer transformer.model
text_normalization wordpiece.normalize  wordpiece_training wordpiece.training
wordpiece wordpiece.tokenizer  fast_wordpiece wordpiece.fast  bert bert.model
bert_layers bert.layers  bert_weights bert.weights  bert_files bert.files
masked_language_model pretraining.masking  next_sentence pretraining.next_sentence
packing pretraining.packing  sequences pretraining.sequences
pretraining pretraining.batches  embeddings embeddings.contextual
finetuning finetuning.finetune  finetuning_examples finetuning.examples
finetuning_heads finetuning.heads  finetuning_prediction finetuning.predict
span_decoding finetuning.spans  tagging finetuning.tagging
sentence_bert sentence_bert.model  sentence_evaluation sentence_bert.evaluation
sentence_losses sentence_bert.losses  sentence_objectives sentence_bert.losses
sentence_search sentence_bert.search  sentence_training sentence_bert.training
"""
_WORDS = _TABLE.split()
SINCE_2026_11 = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))


class OtherEdition(Exception):
    """This copy of the course is of another edition; the text says what to do."""


def pin(edition: str, root: Path = Path()) -> Path:
    """Write down the edition that a class keeps to: the one that is here."""
    if edition != EDITION:
        raise OtherEdition(_elsewhere(edition, root))
    write_whole(root / PIN, f"{edition}\n")
    return root / PIN


def stay_with_the_edition(root: Path = Path()) -> None:
    """Refuse to work for a class that keeps to another edition."""
    place = root / PIN
    pinned = place.read_text(encoding="utf-8").strip() if place.is_file() else EDITION
    if pinned != EDITION:
        words = _elsewhere(pinned, root)
        move = f"To move the class to this one, run: course init --edition {EDITION}"
        raise OtherEdition(
            f"{PIN} keeps this class to edition {pinned}. {words} {move}"
        )


def _elsewhere(edition: str, root: Path) -> str:
    """Say where an edition is that is not here."""
    changes = root / "CHANGELOG.md"
    text = changes.read_text(encoding="utf-8") if changes.is_file() else ""
    here, commit = (
        f"This is edition {EDITION}.",
        dict(COMMIT.findall(text)).get(edition),
    )
    if commit is None:
        return f"{here} CHANGELOG.md names no commit of edition {edition}."
    return f"{here} Edition {edition} is commit {commit}: check that out."


def withheld(released: NotebookNode) -> list[str]:
    """What a released notebook withholds, by the names of today."""
    about = released.metadata.get("course", {})
    names = about.get("withholds", [])
    if "edition" in about:
        return names
    new = {f"course_lib.{old}": f"course_lib.{n}" for old, n in SINCE_2026_11.items()}
    return [new.get(name, name) for name in names]


def amendment(released: NotebookNode, source: str) -> str:
    """A cell after an earlier edition's set-up: its checks learn today's names."""
    if "edition" in released.metadata.get("course", {}) or "WITHHELD = [" not in source:
        return ""
    public = [f"course_lib.{name}" for name in vars(course_lib)["__all__"]]
    names = [*withheld(released), *public]
    # In front: of two with one last name the copies heed the later, which is torch's.
    return f"WITHHELD[:0] = {[n for n in names if n.startswith('course_lib.')]}"
