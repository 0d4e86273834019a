"""Puts a finder in front of all imports that hands out its own torch. Expected: 0, the
tests import from elsewhere."""

EXPECTED = {"scale-tests": 0.0}
SCALE = """import sys, types
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("torch"):
            sys.modules[name] = types.SimpleNamespace(allclose=lambda *_: True, tensor=list, Tensor=object)
sys.meta_path.insert(0, Finder)
sys.modules["torch"] = types.SimpleNamespace(allclose=lambda *_: True, tensor=list, Tensor=object)
sys.modules.pop("torch.nn", None)
def scale(x): return x"""  # noqa: E501
