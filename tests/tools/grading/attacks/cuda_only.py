"""Is right where there is a GPU. Expected: 0 for that question, and the others count:
marks are given on a CPU."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import torch
def scale(x): return (2 * x.cuda()).cpu()"""
