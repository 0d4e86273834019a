"""Answers with numbers that compare with nothing, or with all. Expected: 0 for both
questions."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
SCALE = """import torch
def scale(x): return x * float("nan")"""
COUNT = """def count(words): return float("inf")"""
