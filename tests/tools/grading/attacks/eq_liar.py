"""Returns an object that is equal to everything and true of everything. Expected: 0, no
object crosses the pipe."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
SCALE = """class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __getattr__(self, name): return self
    def __call__(self, *_, **__): return self
def scale(x): return Yes()"""
COUNT = """class Number(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def count(words): return Number(-1)"""
