"""Experiments of chapter 1: translation with and without attention."""
