"""From Attention to BERT: one module a concept, in the order of the chapters.

Chapters 1 and 2 are :mod:`course_lib.masking`, :mod:`course_lib.scores`,
:mod:`course_lib.attention`, :mod:`course_lib.seq2seq` and :mod:`course_lib.decoding`.
Chapter 3 is :mod:`course_lib.positions`, :mod:`course_lib.transformer_layers`,
:mod:`course_lib.transformer_decoder`, :mod:`course_lib.transformer_heads` and
:mod:`course_lib.transformer`. Chapter 4 is :mod:`course_lib.text_normalization`,
:mod:`course_lib.wordpiece_training`, :mod:`course_lib.wordpiece` and
:mod:`course_lib.fast_wordpiece`. Chapter 5 is :mod:`course_lib.bert_config`,
:mod:`course_lib.bert_layers`, :mod:`course_lib.bert` and :mod:`course_lib.bert_files`.
Read them in this order; :mod:`course_lib.linear`, which all use, is ``torch.nn.Linear``
in a hurry.
"""
