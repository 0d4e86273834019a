"""From Attention to BERT: one module a concept, in the order of the chapters.

Read :mod:`course_lib.attention`, :mod:`course_lib.seq2seq` and :mod:`course_lib.decoding` first: that is chapter 1.
"""
