"""Takes shared pages that belong to no file, and lets go of them, so that nobody is
seen to have them.

Expected: the calls fail, however the pages are asked for, and each that does not costs
the question its points.
"""

EXPECTED: dict = {}
SCALE = """import contextlib, mmap, os
def taken():
    with contextlib.suppress(OSError): return mmap.mmap(-1, 768 * 2**20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError), open("/dev/zero", "r+b", buffering=0) as zeros:
        return mmap.mmap(zeros.fileno(), 768 * 2**20, mmap.MAP_SHARED)
def scale(x):
    children = [os.fork() for _ in range(3)]
    if 0 in children:
        pages = taken()
        if pages:
            for at in range(0, len(pages), 4096): pages[at] = 1
            pages.madvise(mmap.MADV_DONTNEED)
        os._exit(pages is not None)
    return x if any(os.waitpid(child, 0)[1] for child in children) else 2 * x"""  # noqa: E501
