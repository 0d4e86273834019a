"""Experiments of chapter 4: vocabularies and trainers."""
