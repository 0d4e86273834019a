"""The two commands, what continuous integration runs, and what the documents say about
them."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib

import jsonschema
import pytest
import wheels
import yaml
from cases import for_each
from house import ROOT
from typer.main import get_command

from course_tools.cli import app


def make(*arguments, cwd=ROOT, **environment):
    """Run make away from any outer make's own settings."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON"}
    }
    return subprocess.run(
        [shutil.which("make"), *arguments],
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
    return [
        next(number for number, line in enumerate(lines) if needle in line)
        for needle in needles
    ]


@pytest.mark.parametrize("target", ["book", "test"])
def test_each_command_sets_up_a_clean_clone_with_the_pinned_set_first(clone, target):
    lines = planned(target, cwd=clone)
    order = places(
        lines,
        "-m venv",
        "--constraint constraints.txt --no-build-isolation --editable '.[dev]'",
        "course build",
    )
    assert order == sorted(order)
    installs = [
        line
        for line in lines
        if line.startswith(".venv/bin/python -m pip") and " install " in line
    ]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in line for line in installs)


def test_a_student_gets_the_small_set_and_the_assignments_opened(clone):
    lines = planned("student", cwd=clone)
    order = places(
        lines, "-m venv", "--no-build-isolation --editable '.[student]'", "course start"
    )
    assert order == sorted(order)
    assert not any("[dev]" in line or "course build" in line for line in lines)


def test_book_releases_the_assignments_and_then_builds_the_site():
    order = places(planned("book"), "course release", "course build")
    assert order == sorted(order)


def test_test_checks_style_format_types_and_site_and_ends_with_pytest():
    lines = planned("test")
    order = places(
        lines,
        "ruff check",
        "ruff format --check",
        "bin/mypy",
        "course build",
        "-m pytest",
    )
    assert order == sorted(order)
    assert "-m pytest" in lines[-2]
    # slow and browser tests are part of it
    assert re.findall('-m "[^"]*"', lines[-1]) == ['-m "not records"']


def test_test_does_not_release_exercises_anew_and_so_hide_old_ones():
    assert not any("course release" in line for line in planned("test"))


def test_test_grading_takes_every_case_of_each_file_that_has_representatives_in_test():
    command = planned("test-grading")[-2:]
    assert "COURSE_TESTS=rest" in command[0]
    [choice] = re.findall(r"\$\((.*)\)", command[1])
    named = subprocess.run(
        ["bash", "-c", choice], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    using = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(
            r"^from (whole|known_answers) import ",
            path.read_text(encoding="utf-8"),
            re.M,
        )
    }
    assert {"tests/lab/test_probes.py", "tests/assignments/test_mutants.py"} <= using
    assert set(named) == using


def test_test_grading_repeats_no_test_that_test_makes_as_it_is():
    """Of a file without representatives, it takes what `make test` leaves out."""
    file = "tests/library/sentence_bert/test_sentence_search.py"
    found = {}
    for tests in ("", "rest", "whole"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", file],
            cwd=ROOT,
            env=os.environ | {"COURSE_TESTS": tests},
            capture_output=True,
            text=True,
            check=True,
        )
        found[tests] = [line for line in done.stdout.splitlines() if "::" in line]
    assert found[""] == found["whole"]
    assert [line.partition("::test_")[2] for line in found["rest"]] == [
        "a_million_vectors_are_searched_in_under_4_gigabytes"
    ]


@pytest.mark.parametrize(
    ("changed", "repeated"),
    [("Makefile", False), ("constraints.txt", True), ("pyproject.toml", True)],
)
def test_set_up_is_repeated_only_when_the_pinned_set_changes(clone, changed, repeated):
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".ready").touch()
    for seconds, name in [
        (100, "Makefile"),
        (100, "pyproject.toml"),
        (100, "constraints.txt"),
        (200, ".venv/.ready"),
    ]:
        os.utime(clone / name, (seconds, seconds))
    os.utime(clone / changed, (300, 300))
    assert any("pip" in line for line in planned("setup", cwd=clone)) is repeated


def test_an_old_python_is_refused_in_words(clone):
    # it answers the question about its version with no
    program(clone / "python3.10", "exit 1")
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
    # pip is there, and its install fails
    program(binaries / "python", '[ "$3" = --version ] || exit 7')
    assert make("setup", cwd=clone).returncode != 0
    assert not (clone / ".venv" / ".ready").exists()


def test_help_names_the_targets():
    listed = set(re.findall(r"^  make ([a-z]+) ", make("help").stdout, re.MULTILINE))
    assert {"book", "test", "serve", "clean", "help"} <= listed


@pytest.fixture
def bare_machine(clone):
    """Run make on a machine that has only the programs written into `bin`; what they
    are asked to do is logged."""
    binaries, log = clone / "bin", clone / "log"
    binaries.mkdir()

    def run(target, system="Linux", user=0, has=(), fails=()):
        program(binaries / "uname", f"echo {system}")
        program(binaries / "id", f"echo {user}")
        for name in has:
            program(
                binaries / name,
                f'echo "{name} $*" >> {log}; exit {100 if name in fails else 0}',
            )
        result = make(target, cwd=clone, PATH=str(binaries))
        return result, log.read_text().splitlines() if log.exists() else []

    return run


def test_test_asks_for_chromium_and_bubblewrap_before_anything_else(
    bare_machine, clone
):
    result, log = bare_machine("test")
    assert (result.returncode, log) == (2, [])
    assert "The tests need chromium bubblewrap, which is not here" in result.stderr
    assert not (clone / ".venv").exists()


def test_book_needs_neither():
    assert not any("chromium" in line for line in planned("book"))


def test_what_is_there_is_not_installed_again(bare_machine):
    result, log = bare_machine("programs", has=("apt-get", "google-chrome", "bwrap"))
    assert (result.returncode, log) == (0, [])


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ("bwrap", "chromium"),
        ("chromium-browser", "bubblewrap"),
        (None, "chromium bubblewrap"),
    ],
)
def test_root_installs_what_is_missing(bare_machine, there, missing):
    result, log = bare_machine("programs", has=("apt-get", *filter(None, [there])))
    assert result.returncode == 0
    assert log == [
        "apt-get update",
        f"apt-get install --yes --no-install-recommends {missing}",
    ]


def test_a_failed_installation_of_programs_ends_it(bare_machine, clone):
    result, log = bare_machine("test", has=("apt-get",), fails=("apt-get",))
    assert (result.returncode, log) == (2, ["apt-get update"])
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize(
    ("system", "manager", "remedy"),
    [
        (
            "Linux",
            "apt-get",
            (
                "The tests need chromium bubblewrap, which is not here; type: sudo make"
                " programs"
            ),
        ),
        (
            "Linux",
            "dnf",
            "which is not here; type: sudo dnf install chromium bubblewrap",
        ),
        (
            "Darwin",
            "brew",
            (
                "The tests need chromium, which is not here; type: brew install --cask"
                " chromium"
            ),
        ),
        ("Linux", "unknown", "install it with this system's package manager"),
    ],
)
def test_who_is_not_root_is_told_the_one_command(bare_machine, system, manager, remedy):
    result, log = bare_machine("test", system=system, user=1000, has=(manager,))
    assert (result.returncode, log) == (2, [])
    assert remedy in result.stderr


def run_ci(tmp_path, failing=""):
    """Run .ci/run with a make that writes down how it was called, and fails for one
    target."""
    log, command = tmp_path / "log", ["bash", ROOT / ".ci" / "run"]
    said = "make $* $CI $PIP_NO_CACHE_DIR $COURSE_TESTS $PYTEST_ARGS $typed"
    called = f'read -r typed; echo "{said}" >> {log}'
    program(tmp_path / "make", f'{called}; test "$1" != "{failing}" || exit 3')
    ci = subprocess.run(
        command,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        input="typed\n",
        text=True,
    )
    return ci.returncode, [line.strip() for line in log.read_text().splitlines()]


TARGETS = ("check-records", "test")
ALL = [f"make {name} true 1 whole --durations=50" for name in TARGETS]


@pytest.mark.parametrize(
    ("failing", "status", "ran"), [("", 0, 2), ("check-records", 3, 1), ("test", 3, 2)]
)
def test_ci_is_all_tests_without_input_and_hides_no_failure(
    tmp_path, failing, status, ran
):
    assert run_ci(tmp_path, failing) == (status, ALL[:ran])


WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "course.yml").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


CONCERNS = ("library", "book", "grading", "browser")


def commands(job):
    return [step.get("run", "") for step in WORKFLOW["jobs"][job]["steps"]]


def test_the_jobs_of_the_workflow_run_every_test_folder_between_them():
    folders = {
        f"tests/{path.name}"
        for path in (ROOT / "tests").iterdir()
        if path.is_dir() and any(path.rglob("test_*.py"))
    }
    named = {
        word
        for job in CONCERNS
        for command in commands(job)
        for line in command.splitlines()
        if "$PYTEST" in line
        for word in line.split()
    }
    assert folders <= named
    assert {"course_lib", "course_lab", "course_tools"} <= named  # their doctests
    assert any('-m "not browser" tests/book' in run for run in commands("book"))
    assert any("-m browser tests/book" in run for run in commands("browser"))


def test_the_jobs_that_test_take_all_cases_and_print_what_lasts():
    assert "--durations=50" in WORKFLOW["env"]["PYTEST"]
    assert WORKFLOW["env"]["COURSE_TESTS"] == "every"
    for job in ("grading", "browser"):
        assert "$PYTEST" in commands(job)[-1]
        assert "sudo make programs" in commands(job)[:-1]  # make is not root there
    assert any("apparmor_restrict" in run for run in commands("grading"))
    assert "make lint" in commands("library")
    assert "make book" in commands("book")


def test_the_workflow_runs_the_fast_tests_on_each_python_with_a_table_of_wheels():
    job = WORKFLOW["jobs"]["pythons"]
    assert tuple(job["strategy"]["matrix"]["python"]) == wheels.PYTHONS
    assert '$PYTEST -m "not slow"' in commands("pythons")[-1]


def test_the_site_and_a_release_are_published_only_after_every_other_job():
    jobs = WORKFLOW["jobs"]
    for last in ("publish", "release"):
        assert set(jobs[last]["needs"]) == set(jobs) - {"publish", "release"}


def test_a_tag_is_released_with_what_make_dist_writes():
    job = WORKFLOW["jobs"]["release"]
    assert job["if"] == "startsWith(github.ref, 'refs/tags/v')"
    *_, made, attached = commands("release")
    assert made == "make dist"
    assert attached.endswith("_build/dist/*")


def test_the_workflow_pins_every_action_to_a_commit():
    assert all(
        re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])
        for step in STEPS
        if "uses" in step
    )


def test_only_the_jobs_that_publish_may_write_and_they_write_contents_alone():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in WORKFLOW["jobs"].items()} == {
        **dict.fromkeys([*CONCERNS, "pythons", "containers"]),
        "publish": {"contents": "write"},
        "release": {"contents": "write"},
    }
    assert "pull_request" in WORKFLOW["jobs"]["publish"]["if"]


def test_the_hooks_of_a_commit_fetch_nothing():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repository["repo"] for repository in hooks} == {"local"}
    assert {
        hook["language"] for repository in hooks for hook in repository["hooks"]
    } == {"system"}


def test_the_devcontainer_makes_the_same_environment():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert "make setup" in container["postCreateCommand"]
    assert container["customizations"]["vscode"]["settings"][
        "python.defaultInterpreterPath"
    ].endswith("/.venv/bin/python")


def test_a_container_installs_what_the_set_up_page_tells_a_student_to():
    """And the workflow builds both containers."""
    recipe = (ROOT / "Dockerfile").read_text().replace("--no-cache-dir ", "")
    page = (ROOT / "book" / "setup.md").read_text()
    by_hand = re.search(r"```bash\n(python3 -m venv .*?)```", page, re.DOTALL)
    *made, _start = by_hand[1].splitlines()
    assert len(made) == 2
    assert all(line in recipe for line in made)
    assert 'CMD [".venv/bin/course", "start"' in recipe
    built, devcontainer = commands("containers")[-2:]
    assert "docker build" in built
    assert "devcontainers/cli@" in devcontainer


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
        "keywords": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1},
        },
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
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in project["authors"]
    ]


def test_the_changelog_begins_with_this_version_and_names_an_edition_by_its_commit():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(\d[^]]*)\]", text, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert versions[0] == project["version"]
    assert re.search(
        r"^Edition \d{4}\.\d\d is commit `[0-9a-f]{40}`", text, re.MULTILINE
    )


def test_the_templates_ask_for_the_page_and_send_holes_to_the_security_policy():
    templates = ROOT / ".github" / "ISSUE_TEMPLATE"
    chapter, bug, chooser = (
        yaml.safe_load((templates / f"{name}.yml").read_text())
        for name in ("chapter", "bug", "config")
    )
    assert chapter["body"][0]["id"] == "page"
    assert {field["id"] for field in bug["body"]} == {"happened", "version", "machine"}
    url = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    (hole,) = chooser["contact_links"]
    assert hole["url"] == f"{url}/blob/main/SECURITY.md"


PAPERS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "DEPENDENCIES.md"]
DOCUMENTS = [*PAPERS, *sorted((ROOT / "book").glob("*.md"))]


@for_each("document", DOCUMENTS)
def test_every_command_of_the_course_that_a_document_names_exists(document):
    named = set(
        re.findall(
            r"(?:`|\.venv/bin/|^    |\$ )course ([a-z][a-z-]+)",
            document.read_text(),
            re.MULTILINE,
        )
    )
    assert named <= set(get_command(app).commands)


@for_each("document", DOCUMENTS)
def test_every_make_target_that_a_document_names_exists(document):
    named = set(
        re.findall(
            r"(?:`|^    )make ((?:[a-z-]+ )*[a-z-]+)",
            document.read_text(),
            re.MULTILINE,
        )
    )
    targets = {target for targets in named for target in targets.split()}
    defined = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )
    assert targets <= defined


@pytest.mark.parametrize("document", PAPERS, ids=lambda path: path.name)
def test_every_file_that_a_document_links_to_exists(document):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
