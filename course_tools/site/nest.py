"""Kernels that begin with torch and Matplotlib imported, which takes seconds a page.

A nest has imported them, and forks for each command of Jupyter's that it reads: the
child becomes that kernel, and imports what it knows of the course itself. macOS and
Windows cannot fork safely, so kernels begin there as everywhere else.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

#: What kernels share, packages that start no thread: a fork would have none of them.
SHARED = ("ipykernel.kernelapp", "matplotlib.pyplot", "torch", "torch._dynamo")


class Nest:
    """The process that kernels are forked from; usable by several threads."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # as kernels have: Ctrl-C is the build's alone
        )

    def start(self, command: list[str], cwd: str, env: Mapping[str, str]) -> int:
        """Start a kernel, and return its process id."""
        arguments = command[command.index("ipykernel_launcher") + 1 :]
        asked = json.dumps({"arguments": arguments, "cwd": cwd, "env": dict(env)})
        assert self._process.stdout is not None
        with self._turn:
            print(asked, file=self._process.stdin, flush=True)
            return int(self._process.stdout.readline())

    def manager(self) -> AsyncKernelManager:
        """Make a manager of one kernel of this nest."""
        manager = AsyncKernelManager(kernel_name="python3")
        spec = manager.kernel_spec
        manager.provisioner = _Provisioner(parent=manager, kernel_spec=spec)
        manager.provisioner.nest = self
        return manager

    def close(self) -> None:
        """Let it end; its kernels have ended before."""
        self._process.communicate()


class Kernel(psutil.Process):
    """A kernel, as Jupyter knows its own children."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return None if self.is_running() else 0

    def send_signal(self, sig: int) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself
            super().send_signal(sig)


class _Provisioner(LocalProvisioner):
    """Starts a kernel in a nest."""

    nest: Nest

    async def launch_kernel(self, cmd: list[str], **settings: Any) -> Any:
        self.pid = self.nest.start(cmd, str(settings["cwd"]), settings["env"])
        self.process, self.pgid = Kernel(self.pid), self.pid
        return self.connection_info


def _become_kernel(arguments: list[str], cwd: str, env: Mapping[str, str]) -> None:
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))
    sys.argv[1:] = arguments
    sys.exit(launch_new_instance())


def main() -> None:
    """Fork a kernel for each line."""
    for module in SHARED:
        __import__(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for its kernels
    for line in sys.stdin:
        kernel = os.fork()
        if kernel == 0:
            _become_kernel(**json.loads(line))
        print(kernel, flush=True)


if __name__ == "__main__":
    main()
