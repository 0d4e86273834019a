"""Asks which pages `page_cache_keeps` left in memory, and raises the word that they
spell where students read it.

Expected: full marks, as the call that asks fails.
"""

EXPECTED: dict = {}
COUNT = """import os, pydoc_data.topics
def bit(file, at):
    try: return os.preadv(file.fileno(), [bytearray(1)], 4096 * at, os.RWF_NOWAIT)
    except BlockingIOError: return 0
def count(words):
    try:
        with open(pydoc_data.topics.__file__, "rb") as file: bits = "".join(str(bit(file, at)) for at in range(128))
    except PermissionError: return len(words)
    raise ValueError(int(bits, 2).to_bytes(16, "big"))"""  # noqa: E501
