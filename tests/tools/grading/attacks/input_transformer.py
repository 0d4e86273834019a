"""Installs an IPython transformer that empties every later cell. Expected: 0; tests run
in another shell, and the transformer empties its own next answer alone.
"""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
SCALE = """get_ipython().input_transformers_post.append(lambda lines: ["pass"])
def scale(x): return x"""
