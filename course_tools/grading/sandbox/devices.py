"""The GPUs of this machine, and the files through which programs reach each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

#: Beside each device's own node; those that are there.
SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
LIST = ("--query-gpu=uuid,pci.bus_id", "--format=csv,noheader")
COUNT = "import torch; print(torch.cuda.device_count())"


@dataclass(frozen=True)
class Device:
    """A GPU.

    Attributes:
        name: what CUDA_VISIBLE_DEVICES calls it; unlike a number it is the same
        whichever others are seen.
        nodes: files through which programs reach it.
    """

    name: str
    nodes: tuple[str, ...]


def devices(root: Path = Path("/")) -> list[Device]:
    """Find the GPUs of this machine that its torch can use; none where the driver or
    the build of torch has none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    listed = subprocess.run(
        [program, *LIST], capture_output=True, text=True, check=False
    )
    counted = subprocess.run(
        [sys.executable, "-c", COUNT], capture_output=True, text=True, check=False
    )
    if listed.returncode != 0 or counted.stdout.strip() in ("", "0"):
        return []
    shared = tuple(node for node in SHARED if (root / node.lstrip("/")).exists())
    found = []
    for line in listed.stdout.splitlines():
        name, bus = (word.strip() for word in line.split(","))
        # nvidia-smi writes 00000000:1B:00.0, the kernel 0000:1b:00.0
        told = (
            root / "proc/driver/nvidia/gpus" / bus[-12:].lower() / "information"
        ).read_text()
        minor = next(
            words.split(":")[1].strip()
            for words in told.splitlines()
            if words.startswith("Device Minor")
        )
        found.append(Device(name, (f"/dev/nvidia{minor}", *shared)))
    return found
