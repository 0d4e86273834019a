"""Chapters 1 and 2: masks, scores, and attention with one head or many."""
