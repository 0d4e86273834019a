"""What is installed is what is written down: requirements, exact pins, and a reason for
each."""

import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import lowest
import pytest
import wheels
from house import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*")
# Not requirements of the package, but of the set-up that installs it.
INSTALLERS = {"pip", "setuptools", "setuptools-scm"}


def pin_lines():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pins():
    return {
        canonicalize_name(name): Version(version)
        for name, version in (line.split("==") for line in pin_lines())
    }


def requirements():
    project = PROJECT["project"]
    extras = [
        line for lines in project["optional-dependencies"].values() for line in lines
    ]
    lines = [*PROJECT["build-system"]["requires"], *project["dependencies"], *extras]
    return [
        requirement
        for requirement in map(Requirement, lines)
        if requirement.name != project["name"]
    ]


def table_of_dependencies():
    """Return the rows of the table of dependencies in DEPENDENCIES.md: package ->
    cells."""
    section = (
        (ROOT / "DEPENDENCIES.md").read_text().split("## Reasons")[1].split("\n#")[0]
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {canonicalize_name(row[0]): row for row in rows[2:]}


def test_every_pin_is_exact():
    inexact = [line for line in pin_lines() if not PIN.fullmatch(line)]
    assert not inexact, "write name==version, without ranges, markers or local versions"


def test_pins_are_sorted_and_unique():
    names = [canonicalize_name(line.split("==")[0]) for line in pin_lines()]
    assert names == sorted(set(names))


def test_every_requirement_is_pinned_inside_its_range():
    pinned = {
        requirement: pins().get(canonicalize_name(requirement.name))
        for requirement in requirements()
    }
    outside = {
        str(r): version
        for r, version in pinned.items()
        if version is None or not r.specifier.contains(version)
    }
    assert outside == {}, (
        "constraints.txt lacks these, or holds a version outside the range of"
        " pyproject.toml"
    )


def test_the_lowest_versions_that_are_tested_are_the_bounds_of_every_requirement():
    tested = dict(line.split("==") for line in lowest.lowest())
    bounds = {
        (requirement.name, bound.version)
        for requirement in requirements()
        for bound in requirement.specifier
        if bound.operator in {">=", "=="} and requirement.name not in INSTALLERS
    }
    assert set(tested.items()) == bounds


def test_every_dependency_has_a_reason_a_licence_and_an_alternative():
    rows = table_of_dependencies()
    assert (
        set(rows)
        == {canonicalize_name(requirement.name) for requirement in requirements()}
        | INSTALLERS
    )
    assert {
        name: len(row) for name, row in rows.items() if len(row) != 4 or not all(row)
    } == {}


def test_the_table_of_wheels_is_of_these_pins():
    title = (
        f"| {len(pin_lines())} pins, {wheels.digest()} | Python"
        f" {' | Python '.join(wheels.PYTHONS)} |"
    )
    assert title in (ROOT / "DEPENDENCIES.md").read_text().splitlines(), (
        "print it anew: see DEPENDENCIES.md"
    )


def test_pip_is_asked_until_it_has_named_each_pin_without_a_wheel(monkeypatch):
    lacking = {"source==1.0", "old==2.0"}

    def pip(command, **settings):
        wanted = Path(command[-1].partition("=")[2]).read_text().splitlines()
        named = next((pin for pin in wanted if pin in lacking), None)
        words = f"ERROR: No matching distribution found for {named}\n" if named else ""
        return subprocess.CompletedProcess(command, bool(named), stderr=words)

    monkeypatch.setattr(wheels.subprocess, "run", pip)
    pins = ["here==1.0", "old==2.0", "source==1.0", "there==3.0"]
    assert wheels.without_wheel(pins, "3.12", ["macosx_14_0_arm64"]) == [
        "old==2.0",
        "source==1.0",
    ]


def test_an_index_that_does_not_answer_is_no_missing_wheel(monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stderr="ERROR: Could not connect")
    monkeypatch.setattr(wheels.subprocess, "run", lambda command, **settings: failed)
    with pytest.raises(SystemExit, match="Could not connect"):
        wheels.without_wheel(["here==1.0"], "3.12", ["macosx_14_0_arm64"])


def needed_distributions():
    """Return what an installation of course_lib[dev] needs here, directly or not."""
    needed: set[str] = set()
    queue = [("course_lib", frozenset({"dev"}))]
    seen = set()
    while queue:
        name, extras = queue.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for requirement in map(Requirement, metadata.requires(name) or []):
            applies = [
                requirement.marker is None or requirement.marker.evaluate({"extra": e})
                for e in {"", *extras}
            ]
            if any(applies):
                needed.add(canonicalize_name(requirement.name))
                queue.append((requirement.name, frozenset(requirement.extras)))
    return sorted(needed - {"course-lib"})


#: What torch's build for NVIDIA GPUs brings, in versions that it pins itself.
OF_CUDA = ("cuda-", "nvidia-", "triton")


def test_every_package_that_is_needed_is_pinned_and_installed_in_that_version():
    pinned = pins()
    installed = {
        name: Version(Version(metadata.version(name)).public)
        for name in needed_distributions()
        if not name.startswith(OF_CUDA)
    }
    assert installed == {name: pinned.get(name) for name in installed}


def test_torch_is_the_version_that_the_course_is_tested_with():
    assert pins()["torch"] == Version("2.13.0")
