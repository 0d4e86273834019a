"""Experiments of chapter 8: features, fine-tuning, errors."""
