"""The IPython shell of both processes: made once, empty for each use."""

import ast
import contextlib
import functools
import sys
import types
import warnings
from pathlib import Path
from typing import Any

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@functools.cache
def shell() -> Any:
    """The shell of this process; it writes nothing of its own."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.autoawait = False
    made: Any = InteractiveShell(config=config)
    made.showtraceback = made.showsyntaxerror = lambda *_, **__: None
    for step in ("write_output_prompt", "write_format_data", "finish_displayhook"):
        setattr(made.displayhook, step, lambda *_, **__: None)
    made.enable_gui = lambda *_, **__: None  # `%matplotlib inline` asks for none
    made.displayhook.compute_format_data = lambda result: ({}, {})
    made.transform_cell = _Transform(made)
    # imports what the first cell needs: once, before the forks
    made.run_cell("pass", store_history=False)
    return made


def put_files(files: dict[str, bytes]) -> None:
    """Write what an assignment ships; its modules can be imported, as in a kernel."""
    for name, data in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)
    if any(name.endswith(".py") for name in files):
        sys.path.insert(0, "")


class _Transform:
    """Lets IPython rewrite its magics, but not, which takes long, plain Python."""

    def __init__(self, here: Any) -> None:
        self.here, self.transform = here, here.transform_cell
        self.usual = self._transformers()

    def _transformers(self) -> list[Any]:
        manager = self.here.input_transformer_manager
        own = manager.cleanup_transforms, manager.line_transforms
        others = manager.token_transformers, self.here.input_transformers_post
        return [list(steps) for steps in (*own, *others)]

    def __call__(self, source: str) -> str:
        text = source.strip()
        plain = "\n" in text and not text.startswith("In ")
        if plain and self._transformers() == self.usual:
            with contextlib.suppress(*NO_PYTHON), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(source)
                return source if source.endswith("\n") else source + "\n"
        return self.transform(source)


def fresh_shell() -> tuple[Any, dict[str, Any]]:
    """Give the shell an empty ``__main__`` to run cells in."""
    here = shell()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    here.user_module, here.user_ns = module, module.__dict__
    here.user_ns_hidden = {}
    here.init_user_ns()
    return here, here.user_ns
