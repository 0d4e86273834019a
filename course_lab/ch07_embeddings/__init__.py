"""Experiments of chapter 7: senses, layers, static and contextual vectors."""
