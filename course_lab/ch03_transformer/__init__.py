"""Experiments of chapter 3: translation, pronouns, masked words, speed."""
