"""Asks the referee's process to run code and to hand out its tests. Expected: 0, it
serves no such request."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import gc
def scale(x):
    for peer in gc.get_objects():
        if type(peer).__name__ == "Peer":
            for key in ("name:__builtins__", "name:exec", "name:In", "#1", "eval"):
                try: return peer.call(key, ("print",), {})
                except NameError: pass
            for request in (("run", "1", 5.0), ("value", "In"), ("names", ["In"])):
                return peer.ask(request)"""
