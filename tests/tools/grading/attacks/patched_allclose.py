"""Makes torch.allclose agree to everything. Expected: 0, the tests compare with a torch
of their own."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import torch
torch.allclose = torch.equal = lambda *_, **__: True
torch.Tensor.__eq__ = lambda *_: True
def scale(x): return x"""
