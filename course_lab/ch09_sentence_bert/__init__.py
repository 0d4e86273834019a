"""Experiments of chapter 9: sentence encoders, search, costs."""
