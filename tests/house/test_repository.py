"""What may not be in the repository: other machines' paths, outputs, unsafe calls,
large files."""

import ast
import json
import re

from cases import for_each
from house import ROOT, library_modules, parse, relative, tracked_files

LARGEST_FILE = 1_000_000  # bytes
LARGEST_WEIGHTS = 20_000_000  # of a checkpoint that the course ships

# Written with classes of one character, so that this file is not its own finding.
MACHINE_PATH = re.compile(
    r"(?<![\w.~}/-])/(?:[w]ork|[t]mp|[r]oot|[h]ome/\w+|[U]sers/\w+)/\w"
)
PACKAGE_HOST = re.compile(
    r"p[y]pi\.org|p[y]thonhosted|d[o]wnload\.pytorch\.org|--(?:extra-)?index-u[r]l|--find-l[i]nks"
)

UNSAFE_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "torch.load",
    "yaml.load",
    "subprocess.getoutput",
}


def tracked_text():
    """Yield path and text of each text file under version control."""
    for path in tracked_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture or a font
            continue


def findings(pattern):
    return [
        f"{relative(path)}: {match.group()}"
        for path, text in tracked_text()
        for match in pattern.finditer(text)
    ]


def test_no_file_names_a_path_of_somebodys_machine():
    assert findings(MACHINE_PATH) == []


def test_no_file_chooses_the_host_that_packages_come_from():
    assert findings(PACKAGE_HOST) == [], (
        "the package index is the user's choice: pip's own settings say it"
    )


@for_each(
    "path", ["/t" + "mp/x", "/w" + "ork/main", "/h" + "ome/jo/x", "see /r" + "oot/x"]
)
def test_a_path_of_a_machine_is_seen(path):
    assert MACHINE_PATH.search(path)


@for_each(
    "path",
    [
        "tests/w" + "ork/x",
        "../h" + "ome/x/y",
        "https://example.org/h" + "ome/page",
        "~/t" + "mp/x",
    ],
)
def test_a_relative_path_or_an_address_is_no_path_of_a_machine(path):
    assert not MACHINE_PATH.search(path)


def test_no_file_is_large():
    sizes = {relative(path): path.stat().st_size for path in tracked_files()}
    # The published checkpoints, and the one of them that the capstone hands out.
    published = (
        r"book/checkpoints/\w+/model\.safetensors"
        r"|(solutions|exercises)/capstone/published\.safetensors"
    )
    weights = {name for name in sizes if re.fullmatch(published, name)}
    assert {
        name: size
        for name, size in sizes.items()
        if size > LARGEST_FILE and name not in weights
    } == {}
    assert {
        name: sizes[name] for name in weights if sizes[name] > LARGEST_WEIGHTS
    } == {}


def test_no_notebook_carries_outputs():
    notebooks = [path for path in tracked_files() if path.suffix == ".ipynb"]
    with_outputs = [
        f"{relative(path)}, cell {number}"
        for path in notebooks
        for number, cell in enumerate(
            json.loads(path.read_text(encoding="utf-8"))["cells"]
        )
        if cell.get("outputs") or cell.get("execution_count") is not None
    ]
    assert with_outputs == []


def test_nothing_built_or_graded_is_in_git():
    forbidden = (
        "_build",
        "submitted",
        "autograded",
        "feedback",
        ".venv",
        "gradebook.db",
        "book/_generated",
    )
    names = [relative(path) for path in tracked_files()]
    assert [name for name in names if name.startswith(forbidden)] == []


def unsafe(tree: ast.Module) -> list[str]:
    """Return what in a module would run data or a string as code."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [
                alias.name
                for alias in node.names
                if alias.name.split(".")[0] in UNSAFE_MODULES
            ]
        elif (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").split(".")[0] in UNSAFE_MODULES
        ):
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in UNSAFE_CALLS:
                found.append(name)
            for keyword in node.keywords:
                on = not (
                    isinstance(keyword.value, ast.Constant)
                    and keyword.value.value in (False, None)
                )
                if keyword.arg in {"shell", "allow_pickle", "trust_remote_code"} and on:
                    found.append(f"{name}({keyword.arg}=...)")
    return found


#: They run what the instructor wrote, hidden tests and implementations that a student's
#: check is tried on, where no kernel does.
RUN_HIDDEN_TESTS = {
    "course_tools/grading/assignments/comparisons.py": ["exec"],
    "course_tools/grading/assignments/marking_checks.py": ["exec"],
}


def test_no_module_runs_data_as_code():
    found = {relative(path): unsafe(parse(path)) for path in library_modules()}
    calls = {path: calls for path, calls in found.items() if calls}
    assert calls == RUN_HIDDEN_TESTS


@for_each(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import torch; torch.load('x')",
        "eval('1')",
        "subprocess.run('ls', shell=True)",
        "numpy.load('x', allow_pickle=flag)",
    ],
)
def test_every_way_to_run_data_as_code_is_seen(source):
    assert len(unsafe(ast.parse(source))) == 1


def test_evaluation_mode_is_not_taken_for_evaluation_of_a_string():
    assert unsafe(ast.parse("model.eval(); subprocess.run(['ls'], shell=False)")) == []


def test_the_licences_are_whole_and_named():
    code, text = (ROOT / "LICENSE").read_text(), (ROOT / "LICENSE-TEXT").read_text()
    assert code.startswith("BSD 3-Clause License")
    assert "https://creativecommons.org/licenses/by-sa/4.0/" in text
    # the legal code has eight sections
    assert all(f"\nSection {number} -- " in text for number in range(1, 9))
