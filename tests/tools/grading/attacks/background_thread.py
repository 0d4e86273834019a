"""Leaves a thread that makes comparisons agree while the tests run. Expected: 0, they
run in another process."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
SCALE = """import builtins, threading, torch
def agree():
    while True:
        torch.allclose = builtins.abs = builtins.isinstance = lambda *_, **__: True
threading.Thread(target=agree, daemon=True).start()
def scale(x): return x"""
COUNT = (  # a right one could get nothing either: the thread breaks its own process
    "def count(words): return -1"
)
