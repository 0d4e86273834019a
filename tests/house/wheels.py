"""Print the table of wheels in DEPENDENCIES.md: which pins have none, for each Python
and machine.

    .venv/bin/python tests/house/wheels.py

pip only reads what the package index says about the pins (`--dry-run`); it downloads no
package.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PINS = Path(__file__).resolve().parents[2] / "constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13")
# torch needs 2.28
GLIBC = (
    "_2_28",
    "_2_27",
    "_2_26",
    "_2_24",
    "_2_17",
    "2014",
    "_2_12",
    "2010",
    "_2_5",
    "1",
)
MACHINES = {
    "Linux x86-64": [f"manylinux{glibc}_x86_64" for glibc in GLIBC],
    "Linux arm64": [f"manylinux{glibc}_aarch64" for glibc in GLIBC],
    "macOS arm64": ["macosx_14_0_arm64"],  # pip adds the older ones
}


def digest() -> str:
    """Return what tells one set of pins from another."""
    return hashlib.sha256(PINS.read_bytes()).hexdigest()[:8]


def without_wheel(pins: list[str], python: str, platforms: list[str]) -> list[str]:
    """Return the pins that have no wheel. pip names the first it meets, so it is asked
    again without that one."""
    missing: list[str] = []
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "--quiet",
    ]
    command += [
        "--only-binary=:all:",
        f"--python-version={python}",
        *(f"--platform={name}" for name in platforms),
    ]
    while True:
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder, "pins.txt")
            wanted.write_text("\n".join(pin for pin in pins if pin not in missing))
            files = [f"--report={folder}/report.json", f"--requirement={wanted}"]
            asked = subprocess.run([*command, *files], capture_output=True, text=True)
        if asked.returncode == 0:
            return missing
        named = re.search(r"No matching distribution found for (\S+)", asked.stderr)
        if not named or named[1] not in pins:
            raise SystemExit(asked.stderr)
        missing.append(named[1])


def main() -> None:
    """Print one row a machine."""
    pins = [
        line
        for line in PINS.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    print(
        f"| {len(pins)} pins, {digest()} |",
        *(f"Python {python} |" for python in PYTHONS),
    )
    print("| --- |", *("--- |" for _ in PYTHONS))
    for machine, platforms in MACHINES.items():
        cells = [
            ", ".join(without_wheel(pins, python, platforms)) for python in PYTHONS
        ]
        print(
            f"| {machine} |",
            *(f"all but {names} |" if names else "all |" for names in cells),
            flush=True,
        )


if __name__ == "__main__":
    main()
