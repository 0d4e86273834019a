"""Prints, raises and answers text that no file can hold. Expected: 0 where it is wrong,
and the class goes on."""

EXPECTED = {"count-tests": 0.0}
SCALE = """print("\\ud800 printed")
def scale(x):
    print("\\udfff")
    return 2 * x"""
COUNT = """def count(words): raise ValueError("\\ud800 raised, " + str(words))"""
