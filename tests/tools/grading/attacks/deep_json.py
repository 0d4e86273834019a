"""Is nested a hundred thousand levels deep. Expected: 0 and a problem in words; the
class goes on."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "nested too deeply"


def write(folder, text, root):
    (folder / "mini.ipynb").write_text("[" * 100_000)
