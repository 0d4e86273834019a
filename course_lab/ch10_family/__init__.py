"""Experiments of chapter 10: the family, pairs, prompts."""
