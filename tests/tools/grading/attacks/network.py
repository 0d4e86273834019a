"""Asks the network for the answer: abstract sockets, loopback, the outside. Expected:
0, there is none."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import socket
def scale(x):
    for family, place in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("127.0.0.1", 22))):
        with socket.socket(family, socket.SOCK_STREAM) as asking:
            asking.settimeout(1)
            try: asking.connect(place)
            except OSError: continue
            return 2 * x
    return x"""  # noqa: E501
