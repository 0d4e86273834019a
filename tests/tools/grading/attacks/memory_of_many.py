"""Takes memory in many processes, each below the limit of one. Expected: ended
together, 0 for that question."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import mmap, os, time
def scale(x):
    for _ in range(7):
        if os.fork() == 0:
            taken = mmap.mmap(-1, 300 * 2**20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
            while True: time.sleep(1)
    while True: time.sleep(1)"""  # noqa: E501
