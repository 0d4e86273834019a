"""Experiments of chapter 2: what self-attention costs, and its scale."""
