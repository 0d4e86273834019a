"""From which state of the course an assignment was released: its *edition*.

`course release` writes the edition into a notebook's metadata (``course.edition``); a
notebook that names none is of 2026.11. Later editions of the library call modules
otherwise, and what a released notebook withholds must stay withheld under its new name.
"""

from nbformat import NotebookNode

import course_lib

#: What is released from now on.
EDITION = "2026.12"
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
