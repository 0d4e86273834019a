"""Freed memory is kept: the allocator does not ask the system for pages that it had a
moment before."""

import subprocess
import sys

import pytest

from course_lib.training.cpu import keep_freed_memory

# Blocks that are needed together and freed together, as those of a backward pass are.
# Prints the pages that the system had to clear for each round. It begins with the
# threshold that glibc begins with, which glibc then raises or not.
ROUNDS = """
import ctypes, resource, sys
import torch
from course_lib.training.cpu import keep_freed_memory

ctypes.CDLL(None).mallopt(-3, 128 * 1024)
if sys.argv[1] == "told":
    keep_freed_memory()
def round_of_blocks():
    blocks = [torch.zeros(size * 1_000_000 // 4) for size in (7, 9, 11, 13, 17)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    round_of_blocks()
before = faults()
for _ in range(10):
    round_of_blocks()
print((faults() - before) / 10)
"""
BYTES = 57_000_000  # of a round
SMALL_PAGE = 4096


def faults_per_round(case: str) -> float:
    process = subprocess.run(
        [sys.executable, "-c", ROUNDS, case], capture_output=True, text=True, check=True
    )
    return float(process.stdout)


@pytest.mark.slow
def test_freed_blocks_are_used_again_without_new_pages():
    if not keep_freed_memory():
        pytest.skip("this system's allocator is not glibc's; it has rules of its own")
    whole = BYTES / SMALL_PAGE
    assert faults_per_round("plain") > 0.5 * whole  # what there is to save
    # None as a rule; where the heap happens to lie so that it grows once more, some.
    assert faults_per_round("told") < 0.2 * whole
