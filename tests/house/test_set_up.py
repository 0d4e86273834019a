"""The two commands, what continuous integration runs, and what the documents say about them."""

import json
import os
import re
import stat
import subprocess
import tomllib

import jsonschema
import pytest
import yaml
from house import ROOT
from typer.main import get_command

from course_lib.cli import app


def make(*arguments, cwd=ROOT, **environment):
    """Run make away from any outer make's own settings."""
    clean = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON"}
    }
    return subprocess.run(
        ["make", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**clean, **environment},
        stdin=subprocess.DEVNULL,
    )


def program(path, text):
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def clone(tmp_path):
    """A folder with what set-up reads, and no environment."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def planned(*targets, cwd=ROOT):
    """Return the commands that make would run, one line each."""
    result = make("--dry-run", *targets, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def places(lines, *needles):
    """Return where each text first occurs in the lines."""
    return [next(number for number, line in enumerate(lines) if needle in line) for needle in needles]


@pytest.mark.parametrize("target", ["book", "test"])
def test_each_command_sets_up_a_clean_clone_with_the_pinned_set_first(clone, target):
    lines = planned(target, cwd=clone)
    order = places(
        lines, "-m venv", "--constraint constraints.txt --no-build-isolation --editable '.[dev]'", "course build"
    )
    assert order == sorted(order)
    installs = [line for line in lines if line.startswith(".venv/bin/python -m pip") and " install " in line]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in line for line in installs)


def test_book_releases_the_assignments_and_then_builds_the_site():
    order = places(planned("book"), "course release", "course build")
    assert order == sorted(order)


def test_test_checks_style_format_types_and_site_and_ends_with_pytest():
    lines = planned("test")
    order = places(lines, "ruff check", "ruff format --check", "bin/mypy", "course build", "-m pytest")
    assert order == sorted(order)
    assert "-m pytest" in lines[-1]
    assert "-m 'not" not in lines[-1]  # slow and browser tests are part of it


def test_test_does_not_release_exercises_anew_and_so_hide_that_the_committed_ones_are_old():
    assert not any("course release" in line for line in planned("test"))


@pytest.mark.parametrize(
    ("changed", "repeated"), [("Makefile", False), ("constraints.txt", True), ("pyproject.toml", True)]
)
def test_set_up_is_repeated_only_when_the_pinned_set_changes(clone, changed, repeated):
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".ready").touch()
    for seconds, name in [(100, "Makefile"), (100, "pyproject.toml"), (100, "constraints.txt"), (200, ".venv/.ready")]:
        os.utime(clone / name, (seconds, seconds))
    os.utime(clone / changed, (300, 300))
    assert any("pip" in line for line in planned("setup", cwd=clone)) is repeated


def test_an_old_python_is_refused_in_words(clone):
    program(clone / "python3.10", "exit 1")  # it answers the question about its version with no
    result = make("setup", f"PYTHON={clone / 'python3.10'}", cwd=clone)
    assert result.returncode != 0
    assert "No Python 3.11 or newer found" in result.stderr
    assert not (clone / ".venv" / ".ready").exists()


def test_a_python_without_venv_is_refused_with_the_remedy(clone):
    program(clone / "python3.11", 'case "$2" in *ensurepip*) exit 1;; esac')
    result = make("setup", f"PYTHON={clone / 'python3.11'}", cwd=clone)
    assert result.returncode != 0
    assert "has no venv module" in result.stderr
    assert "apt-get install python3-venv" in result.stderr


def test_a_failed_installation_leaves_no_stamp(clone):
    binaries = clone / ".venv" / "bin"
    binaries.mkdir(parents=True)
    program(binaries / "python", '[ "$3" = --version ] || exit 7')  # pip is there, and its install fails
    assert make("setup", cwd=clone).returncode != 0
    assert not (clone / ".venv" / ".ready").exists()


def test_help_names_the_targets():
    listed = set(re.findall(r"^  make ([a-z]+) ", make("help").stdout, re.MULTILINE))
    assert {"book", "test", "serve", "clean", "help"} <= listed


@pytest.fixture
def bare_machine(tmp_path):
    """Run .ci/run on a machine that has only the programs written into `bin`."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("bash", "dirname"):
        (binaries / name).symlink_to(subprocess.check_output(["which", name], text=True).strip())
    program(binaries / "id", "echo 0")
    program(binaries / "make", f'echo "make $* CI=$CI" >> {tmp_path}/log; exit ${{MAKE_STATUS:-0}}')

    def run(**environment):
        ci = subprocess.run(
            [ROOT / ".ci" / "run"],
            capture_output=True,
            text=True,
            env={"PATH": str(binaries), **environment},
            stdin=subprocess.DEVNULL,
        )
        log = tmp_path / "log"
        return ci, log.read_text().splitlines() if log.exists() else []

    run.binaries = binaries
    return run


def test_ci_calls_make_test_where_chromium_and_bubblewrap_are_there(bare_machine):
    for name in ("chromium", "bwrap"):
        program(bare_machine.binaries / name, "")
    result, log = bare_machine()
    assert (result.returncode, log) == (0, ["make test CI=true"])


def test_ci_hides_no_failure_of_the_tests(bare_machine):
    for name in ("chromium", "bwrap"):
        program(bare_machine.binaries / name, "")
    assert bare_machine(MAKE_STATUS="3")[0].returncode == 3


def test_ci_installs_chromium_and_bubblewrap_where_they_lack(bare_machine):
    program(bare_machine.binaries / "apt-get", f'echo "apt-get $*" >> {bare_machine.binaries.parent}/log')
    result, log = bare_machine()
    assert result.returncode == 0
    installed = [
        step
        for name in ("chromium", "bubblewrap")
        for step in ("apt-get update", f"apt-get install --yes --no-install-recommends {name}")
    ]
    assert log == [*installed, "make test CI=true"]


def test_ci_stops_where_chromium_cannot_be_installed(bare_machine):
    program(bare_machine.binaries / "apt-get", "exit 100")
    result, log = bare_machine()
    assert (result.returncode, log) == (100, [])


def test_ci_says_what_to_do_without_chromium_and_apt(bare_machine):
    result, log = bare_machine()
    assert (result.returncode, log) == (1, [])
    assert "Install Chromium" in result.stderr


def test_ci_says_what_to_do_without_root_and_sudo(bare_machine):
    program(bare_machine.binaries / "id", "echo 1000")
    program(bare_machine.binaries / "apt-get", "exit 0")
    result, log = bare_machine()
    assert (result.returncode, log) == (1, [])
    assert "Run it as root" in result.stderr


WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "course.yml").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_the_workflow_runs_the_same_two_commands():
    commands = [step.get("run", "") for step in WORKFLOW["jobs"]["check"]["steps"]]
    assert ".ci/run" in commands
    assert "make book" in commands


def test_the_workflow_pins_every_action_to_a_commit():
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in STEPS if "uses" in step)


def test_only_the_job_that_publishes_may_write_and_it_writes_contents_alone():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in WORKFLOW["jobs"].items()} == {
        "check": None,
        "publish": {"contents": "write"},
    }
    assert "pull_request" in WORKFLOW["jobs"]["publish"]["if"]


def test_the_hooks_of_a_commit_fetch_nothing():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repository["repo"] for repository in hooks} == {"local"}
    assert {hook["language"] for repository in hooks for hook in repository["hooks"]} == {"system"}


def test_the_devcontainer_makes_the_same_environment():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert "make setup" in container["postCreateCommand"]
    assert container["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"].endswith(
        "/.venv/bin/python"
    )


# The part of the Citation File Format 1.2.0 schema that our file uses.
CITATION_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["authors", "cff-version", "message", "title"],
    "properties": {
        "abstract": {"type": "string", "minLength": 1},
        "authors": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name"],
                "properties": {"name": {"type": "string", "minLength": 1}},
            },
        },
        "cff-version": {"const": "1.2.0"},
        "keywords": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string", "minLength": 1}},
        "license": {"const": "BSD-3-Clause"},
        "message": {"type": "string", "minLength": 1},
        "title": {"type": "string", "minLength": 1},
        "type": {"enum": ["software", "dataset"]},
        "version": {"type": "string", "minLength": 1},
    },
}


def test_the_citation_follows_its_schema_and_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    jsonschema.validate(citation, CITATION_SCHEMA)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_the_course_that_a_document_names_exists(document):
    named = set(re.findall(r"(?:`|\.venv/bin/|^    |\$ )course ([a-z][a-z-]+)", document.read_text(), re.MULTILINE))
    assert named <= set(get_command(app).commands)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_that_a_document_names_exists(document):
    named = set(re.findall(r"(?:`|^    )make ((?:[a-z]+ )*[a-z]+)", document.read_text(), re.MULTILINE))
    targets = {target for targets in named for target in targets.split()}
    defined = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets <= defined


@pytest.mark.parametrize("document", DOCUMENTS[:2], ids=lambda path: path.name)
def test_every_file_that_a_document_links_to_exists(document):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
