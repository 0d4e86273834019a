"""Fills the buffers of sockets in many processes: memory of no process. Expected:
ended, 0 for that question."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import contextlib, os, socket, time
def scale(x):
    for _ in range(12):
        if os.fork() == 0:
            pairs = []
            with contextlib.suppress(OSError):
                while True:
                    pairs.append(socket.socketpair())
                    for one in pairs[-1]:
                        one.setblocking(False)
                        with contextlib.suppress(BlockingIOError):
                            while True: one.send(bytes(32768))
            while True: time.sleep(1)
    while True: time.sleep(1)"""
