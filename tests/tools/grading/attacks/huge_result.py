"""Gives back a gigabyte. Expected: 0 for that question; the grader reads no such
message, and the others count."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import torch
def scale(x): return torch.zeros(2**28).to(torch.float32)"""
