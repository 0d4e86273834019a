"""Lays a torch.py and a sitecustomize.py beside the notebook. Expected: 0, nothing
beside it is taken along."""

EXPECTED = {"scale-tests": 0.0}
SCALE = "def scale(x): return x"


def write(folder, text, root):
    (folder / "mini.ipynb").write_text(text)
    for name in ("torch.py", "sitecustomize.py", "usercustomize.py"):
        (folder / name).write_text("allclose = lambda *_: True")
