"""Answers in a shell, which looks for the other submissions and copies one. Expected:
0, there are none to be seen."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """%%bash
cp -r / . 2>/dev/null
find / -name "*.ipynb" -exec cp {} mini.ipynb ";" 2>/dev/null
echo "def scale(x): return 2 * x" > scale.py"""
