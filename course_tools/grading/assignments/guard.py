"""What an assignment withholds refuses a student who reaches it, by whatever name.

The scan of :mod:`course_tools.grading.assignments.withheld` reads a student's source;
this looks at what the code does. Calls of torch pass a function mode, which sees
``torch.ops.aten.gelu`` as it sees ``F.gelu``; imports pass a finder; an audit hook sees
who opens a withheld module's file to copy its text.

In the grader it runs in the student's process, in which no test runs. ``course
release`` copies it into the notebook, too, where tests share the process: there it
stops who takes a short cut, not who takes the guard apart.
"""


def guard_withheld(withheld: list[str], *, beside_tests: bool = True) -> object:
    """Refuse what an assignment withholds, from now on.

    Beside tests, as in a notebook, return the context in which a test may use it all
    the same; a set-up cell that runs again gets the one that there is.
    """
    import contextlib
    import os
    import re
    import sys
    import threading
    from importlib.abc import MetaPathFinder
    from typing import Any

    there = sys.__dict__.setdefault("_course_guard", {})
    if beside_tests and there:
        return there["allowed"]
    allowed, places = [False], (sys.prefix, sys.base_prefix)

    def refuse(name: str, use: str, error: type[Exception] = RuntimeError) -> None:
        if not allowed[0]:
            raise error(
                f"{use}: this assignment withholds {name}, because you build it. Take"
                " it out of your code"
            )

    def within(name: str) -> str | None:
        return next(
            (w for w in withheld if name == w or name.startswith(w + ".")), None
        )

    def asked_by_others() -> bool:
        """Whether the grader asks, or torch, which looks for packages to trace; what
        importing, installed packages and the course's library do, they do for who
        called them."""
        frame: Any = sys._getframe(2)
        while frame:
            name = str(frame.f_globals.get("__name__"))
            module = sys.modules.get(name)
            real = getattr(module, "__dict__", None) is frame.f_globals
            root, file = name.partition(".")[0], getattr(module, "__file__", None) or ""
            if real and root in ("course_tools", "torch"):
                return True
            passes_on = root in ("importlib", "_frozen_importlib", "course_lib")
            if not passes_on and not (real and file.startswith(places)):
                return False
            frame = frame.f_back
        return False

    class Finder(MetaPathFinder):
        def find_spec(
            self, fullname: str, path: Any = None, target: Any = None
        ) -> None:
            if (name := within(fullname)) and not asked_by_others():
                refuse(name, f"import of {fullname}", ImportError)

    for name in list(sys.modules):
        if within(name) and name != "course_lib":
            parent, _, last = name.rpartition(".")
            vars(sys.modules.get(parent, sys)).pop(last, None)
            del sys.modules[name]
    sys.meta_path.insert(0, Finder())

    files = {
        name.replace(".", os.sep) + end: name
        for name in withheld
        if name.startswith("course_lib")
        for end in (".py", os.sep)
    }

    def audit(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and isinstance(args[0], str | bytes):
            path = os.path.realpath(os.fsdecode(args[0]))
            for end, name in files.items():
                if f"{os.sep}{end}" in path + os.sep and not asked_by_others():
                    refuse(name, f"reading {end}")
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            words = str(args)
            if re.search(r"python[\d.]*['\"\s]", words) and "pip" not in words:
                refuse("what you build", "a Python of its own")

    if files:
        sys.addaudithook(audit)

    if any(name.startswith("torch.") for name in withheld):
        import _thread
        from operator import attrgetter

        import torch
        from torch.overrides import TorchFunctionMode

        calls: dict[str, str] = {}
        known: dict[Any, Any] = {}  # what was called: what it is withheld as, and how
        for name in withheld:
            if name.startswith("torch."):
                last = name.rpartition(".")[2]
                found: Any = attrgetter(name.removeprefix("torch."))(torch)
                if isinstance(found, type):
                    make = vars(found)["__init__"]

                    def begin(
                        self: Any,
                        *args: Any,
                        name: str = name,
                        make: Any = make,
                        **kwargs: Any,
                    ) -> None:
                        refuse(name, f"{type(self).__name__}(...)")
                        make(self, *args, **kwargs)

                    type.__setattr__(found, "__init__", begin)
                calls[last.removesuffix("_attention")] = name

        class Guard(TorchFunctionMode):
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                if func not in known:
                    called = getattr(func, "__name__", "").strip("_")
                    begin = (begin for begin in calls if called.startswith(begin))
                    known[func] = calls.get(next(begin, "")), f"{called}(...)"
                if known[func][0]:
                    refuse(*known[func])
                return func(*args, **(kwargs or {}))

        hiding: list[tuple[Any, str]] = [(torch, "compile"), (torch.jit, "script")]
        for module, last in hiding:
            compiled = getattr(module, last)

            def refused(
                *args: Any, last: str = last, compiled: Any = compiled, **kwargs: Any
            ) -> Any:
                refuse("what a compiled function would hide", f"{last}(...)")
                return compiled(*args, **kwargs)

            setattr(module, last, refused)
        start = _thread.start_new_thread

        def start_guarded(function: Any, args: Any, kwargs: Any = None) -> int:
            def run() -> None:
                with Guard():
                    function(*args, **(kwargs or {}))

            return start(run, ())

        for place in (_thread, threading):
            name = "start_new_thread" if place is _thread else "_start_new_thread"
            setattr(place, name, start_guarded)
        Guard().__enter__()

    @contextlib.contextmanager
    def withheld_allowed() -> Any:
        before, allowed[0] = allowed[0], True
        try:
            yield
        finally:
            allowed[0] = before

    # in a process without tests, a set-up cell's guard would only refuse the same again
    there["allowed"] = withheld_allowed if beside_tests else contextlib.nullcontext
    return withheld_allowed
