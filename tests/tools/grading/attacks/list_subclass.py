"""Returns a number and a list of classes of its own, whose methods lie. Expected: 0,
plain values cross or nothing."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
SCALE = """class Scores(list):
    def tolist(self): return [2.0, -4.0]
    def item(self): return 14638.0
def scale(x): return Scores([0.0])"""
COUNT = """class Count(float):
    def __rmul__(self, other): return 2.0
    __mul__ = __truediv__ = __rmul__
def count(words): return Count(0)"""
