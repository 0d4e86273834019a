"""Experiments of chapter 5: padding and contexts."""
