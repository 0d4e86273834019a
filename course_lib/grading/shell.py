"""The IPython shell in which both processes run cells: made once, before the fork, and empty for each use."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any


@functools.cache
def shell() -> Any:
    """The shell of this process; it writes no history, no results and no tracebacks of its own."""
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
    return made


def fresh_shell() -> tuple[Any, dict[str, Any]]:
    """Give the shell an empty ``__main__`` to run cells in.

    Returns:
        The shell, and the namespace of that module.
    """
    here = shell()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    here.user_module, here.user_ns = module, module.__dict__
    here.user_ns_hidden = {}
    here.init_user_ns()
    return here, here.user_ns
