"""Plant plausible mistakes in a copy of the course, one at a time, and ask its tests.

`python tests/house/planted_faults.py` says of each fault in `planted_faults.yaml` which
test catches it. Run it before and after files are moved or simplified: a fault that
nothing catches any more shows what was lost. The repository itself is never changed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ("-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not slow")


@dataclass(frozen=True)
class Fault:
    """One mistake: what stands in the file, what would be wrong, who must notice."""

    name: str
    file: str
    find: str
    replace: str
    why: str
    tests: tuple[str, ...]

    def matches(self, source: str) -> list[re.Match[str]]:
        """Return where the text stands, however its lines are broken."""
        tokens = re.findall(r"\w+|[^\w\s]", self.find)
        pattern = r"(?<!\w)" if re.match(r"\w", tokens[0]) else ""
        for before, token in zip(["", *tokens], tokens, strict=False):
            both_words = re.fullmatch(r"\w\w", before[-1:] + token[0])
            pattern += (r"\s+" if both_words else r"\s*") if before else ""
            pattern += (r"(?:,\s*)?" if token in ")]}" else "") + re.escape(token)
        pattern += r"(?!\w)" if re.match(r"\w", tokens[-1]) else ""
        return list(re.finditer(pattern, source))

    def planted(self, source: str) -> str:
        """Return the source with the mistake in the one place that there is for it."""
        (match,) = self.matches(source)
        return source[: match.start()] + self.replace + source[match.end() :]


def read_faults() -> list[Fault]:
    """Return the faults in the order of their file."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    rows = yaml.safe_load(text)
    return [Fault(**row | {"tests": tuple(row["tests"])}) for row in rows]


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a copy, where it looks for modules before anywhere else."""
    told = {"cwd": folder, "env": os.environ | {"PYTHONPATH": str(folder)}}
    words = (sys.executable, *words)
    return subprocess.run(words, capture_output=True, text=True, **told)


def copy_of_repository(folder: Path) -> Path:
    """Copy what is under version control, and see to it that the copy is imported."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    for name in listing.stdout.decode().split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for package in [path.parent.name for path in folder.glob("course_*/__init__.py")]:
        found = python(folder, "-c", f"import {package}; print({package}.__file__)")
        if not found.stdout.startswith(str(folder)):
            raise SystemExit(f"not the copy's: {package}, {found.stdout}{found.stderr}")
    return folder


def failing(tests: tuple[str, ...], folder: Path) -> str:
    """Return the first test that fails in a copy, or "" if all pass."""
    done = python(folder, *PYTEST, *tests)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", done.stdout, re.MULTILINE)
    return "" if done.returncode == 0 else failed[1] if failed else "none could run"


def verdict(fault: Fault, number: int, folder: Path, sound: bool) -> str:
    """Plant one fault in a copy, run its tests, and put the file back."""
    path = folder / fault.file
    source = path.read_text(encoding="utf-8") if path.is_file() else ""
    if (count := len(fault.matches(source))) != 1:
        return f"does not apply: its text stands {count} times in {fault.file}"
    if not sound:
        return f"tests fail without the fault: {' '.join(fault.tests)}"
    kept = path.replace(path.with_suffix(".kept"))
    path.write_text(fault.planted(source), encoding="utf-8")
    os.utime(path, (number, number))  # nothing compiled before is taken for this
    test = failing(fault.tests, folder)
    kept.replace(path)
    return f"caught by {test}" if "::" in test else f"not caught: {test or 'all pass'}"


def main() -> int:
    """Say of each fault what became of it; return 1 unless all were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults alone")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options, began = parser.parse_args(), time.monotonic()
    faults = [f for f in read_faults() if not options.only or f.name in options.only]
    sets = {fault.tests: True for fault in faults}
    pool, jobs = ThreadPoolExecutor(options.jobs), range(options.jobs)
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch).resolve() / str(job) for job in jobs]
        copies = [copy_of_repository(folder) for folder in folders]
        every = tuple(dict.fromkeys(test for tests in sets for test in tests))
        if failing(every, copies[0]):  # then ask for each set of tests by itself
            sets = {tests: not failing(tests, copies[0]) for tests in sets}

        def judge(job: int) -> int:
            caught = 0
            for number, fault in list(enumerate(faults, start=1))[job :: len(jobs)]:
                said = verdict(fault, number, copies[job], sets[fault.tests])
                print(f"{fault.name:<34} {said}", flush=True)
                caught += said.startswith("caught")
            return caught

        caught = sum(pool.map(judge, jobs))
    print(f"{caught} of {len(faults)} caught in {time.monotonic() - began:.0f} s")
    return 0 if faults and caught == len(faults) else 1


if __name__ == "__main__":
    raise SystemExit(main())
