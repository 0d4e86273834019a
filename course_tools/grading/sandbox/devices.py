"""The GPUs of this machine, and the files through which programs reach each."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Beside each device's own node; those that are there.
SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
LIST = ("--query-gpu=uuid,pci.bus_id", "--format=csv,noheader")
COUNT = "import torch; print(torch.cuda.device_count())"


@dataclass(frozen=True)
class Device:
    """A GPU."""

    name: str  # what CUDA_VISIBLE_DEVICES calls it, whichever others are seen
    nodes: tuple[str, ...]  # files through which programs reach it


def devices(root: Path = Path("/")) -> list[Device]:
    """Find the GPUs that this machine's driver lists and its torch can use."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    say: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
    listed = subprocess.run([program, *LIST], **say)
    counted = subprocess.run([sys.executable, "-c", COUNT], **say)
    if listed.returncode != 0 or counted.stdout.strip() in ("", "0"):
        return []
    shared = tuple(node for node in SHARED if (root / node.lstrip("/")).exists())
    found = []
    for line in listed.stdout.splitlines():
        name, bus = (word.strip() for word in line.split(","))
        # nvidia-smi writes 00000000:1B:00.0, the kernel 0000:1b:00.0
        place = root / "proc/driver/nvidia/gpus" / bus[-12:].lower() / "information"
        lines = [line.split(":") for line in place.read_text().splitlines()]
        minor = next(line[1].strip() for line in lines if line[0] == "Device Minor")
        found.append(Device(name, (f"/dev/nvidia{minor}", *shared)))
    return found
