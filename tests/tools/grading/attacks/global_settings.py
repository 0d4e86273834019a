"""A right answer that changes torch's settings for all that follows. Expected: full
marks, the tests keep their own."""

EXPECTED: dict = {}
SCALE = """import torch
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.manual_seed(7)
torch.set_printoptions(precision=1)
def scale(x): return 2 * x"""
