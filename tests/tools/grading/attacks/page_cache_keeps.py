"""Writes what a hidden test asks into the kernel's page cache: a page of a library's
file is there where a bit is 1.

Expected: full marks, and `page_cache_tells` hears nothing.
"""

EXPECTED: dict = {}
COUNT = """import contextlib, os, pydoc_data.topics
def count(words):
    with contextlib.suppress(OSError), open(pydoc_data.topics.__file__, "rb") as file:
        if words != ["a", "b"]:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for at, bit in enumerate("".join(f"{byte:08b}" for byte in words[0].encode())):
                if bit == "1": os.pread(file.fileno(), 1, 4096 * at)
    return len(words)"""  # noqa: E501
