"""Experiments of chapter 6: pre-training on stories and pydocs."""
