"""What the key of executed pages sees: imported code and its imports, but no docstring,
comment or unused module."""

import pytest
from places import ROOT

from course_lib.files import digest_of_code
from course_tools.site.build import executed_pages
from course_tools.site.key import (
    cells_of,
    code_state,
    digest_of_files,
    files_read,
    files_state,
    imported_modules,
)

FILES = {
    "__init__.py": "",
    "attention.py": "from . import scores\n",
    "scores.py": "def score():\n    from course_lib.inner.deep import late\n",
    "unused.py": "import course_lib.attention\n",
    "inner/__init__.py": "from course_lib.inner.open import thing\n",
    "inner/open.py": "thing = 1\n",
    "inner/deep.py": "from ..aside import word\nlate = word\n",
    "aside.py": "word = 'a'\n",
}


@pytest.fixture
def library(tmp_path):
    """A package of eight modules."""
    for name, code in FILES.items():
        path = tmp_path / "course_lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return tmp_path / "course_lib"


@pytest.mark.parametrize(
    "source",
    [
        "import course_lib.attention",
        "from course_lib import attention",
        "from course_lib.attention import scores as s",
        "import torch",
    ],
)
def test_imports_are_followed_into_functions_packages_and_upwards(library, source):
    found = {
        path.relative_to(library).as_posix()
        for path in imported_modules([source], library.parent)
    }
    assert found == (set(FILES) - {"unused.py"} if "course_lib" in source else set())


PAGE = """\
Words, and `import course_lib.unused` in them.

```{code-cell} ipython3
:tags: [hide-input]

import course_lib.attention
```

````{code-cell} ipython3
---
mystnb: {image: {alt: import course_lib.unused}}
---
%matplotlib inline
text = '''
```
'''
````

```python
import course_lib.unused
```
"""


def test_code_of_cells_is_told_from_words_options_and_examples():
    assert cells_of(PAGE).split() == [
        "import",
        "course_lib.attention",
        "text",
        "=",
        "'''",
        "```",
        "'''",
    ]


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ('"""Say what it is."""\nx = 1\n', True),
        ("# why\nx = 1\n", True),
        ("x  =  1", True),
        ("x = 2\n", False),
        ("x = 1\ny = 1\n", False),
        ("x = 'Say what it is.'\n", False),
    ],
)
def test_a_docstring_or_comment_changes_no_key_and_code_does(tmp_path, changed, same):
    file = tmp_path / "module.py"
    file.write_text('"""Say it."""\nx = 1\n')
    before = digest_of_code([file])
    file.write_text(changed)
    assert (digest_of_code([file]) == before) is same


def test_a_digest_of_files_sees_content_names_and_nothing_else(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1")
    first = digest_of_files([folder])
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    (folder / ".ruff_cache").mkdir()
    (folder / ".ruff_cache" / "CACHEDIR.TAG").write_text("ruff's, not ours")
    assert digest_of_files([folder]) == first
    (folder / "a.py").write_text("x = 2")
    changed = digest_of_files([folder])
    (folder / "a.py").write_text("x = 1")
    (folder / "a.py").rename(folder / "b.py")
    assert len({first, changed, digest_of_files([folder])}) == 3


STUB = """\
from course_lib.scores import score as score
from course_lib.aside import x as x
"""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from course_lib import score", {"scores.py", "inner/deep.py", "aside.py"}),
        ("from course_lib import x as y", {"aside.py"}),
        ("import course_lib as c\nc.x", {"aside.py"}),
        ("import course_lib\ncourse_lib.no_such_name", set()),
        ("from course_lib import *", {"scores.py", "inner/deep.py", "aside.py"}),
        ("from course_lib import unused", {"unused.py", "attention.py", "scores.py"}),
    ],
)
def test_a_public_name_stands_for_the_module_that_has_it(library, source, found):
    (library / "__init__.pyi").write_text(STUB)
    modules = imported_modules([source], library.parent)
    names = {path.relative_to(library).as_posix() for path in modules}
    assert names >= found | {"__init__.py"}
    assert "unused.py" not in names or "unused.py" in found
    assert "scores.py" not in names or "scores.py" in found


def test_a_pin_counts_for_a_page_that_imports_its_package(library):
    page = library / "page.md"
    page.write_text("```{code-cell} ipython3\nimport sklearn\n```\n")
    pins = {"scikit-learn": "1.5", "torch": "2.6", "rich": "13.9"}

    def state() -> dict[str, str]:
        lines = "\n".join(f"{name}=={pin}" for name, pin in pins.items())
        (library.parent / "constraints.txt").write_text(lines)
        return code_state(page, library.parent)

    before = state()
    pins["rich"] = "14.0"
    assert state() == before
    pins["scikit-learn"] = "1.6"
    assert before | {"the pin of scikit-learn": "1.6"} == state() != before


def test_of_what_a_kernel_opened_the_course_s_own_data_count(tmp_path):
    files = [
        *("book/results/a.json", "course_lib/data/b.json", "course_lib/__init__.pyi"),
        *(
            "book/checkpoints/tiny/config.json",
            "book/checkpoints/tiny/model.safetensors",
        ),
        "_build/c.json",
    ]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    opened = [f"{tmp_path}/{name}" for name in files if "model" not in name]
    found = files_read([*opened, f"{tmp_path}/book/gone.json", "/etc/hosts"], tmp_path)
    assert found == sorted([*files[:2], *files[3:5]])


def test_a_record_that_a_page_looked_for_counts_although_it_is_not_there(tmp_path):
    (tmp_path / "book/results").mkdir(parents=True)
    looked_for = "book/results/gpu-none.json"
    assert files_read([f"{tmp_path}/{looked_for}"], tmp_path) == [looked_for]
    before = files_state([looked_for], tmp_path)
    (tmp_path / looked_for).write_text("{}")
    assert files_state([looked_for], tmp_path) != before


def pages_that_import(part: str) -> set[str]:
    """The chapters, by their numbers, that import a module of this part of the tree."""
    return {
        page.stem.partition("-")[0]
        for page in executed_pages(ROOT)
        if any(name.startswith(part) for name in code_state(page, ROOT))
    }


def test_what_changes_in_a_late_chapter_or_in_the_grader_executes_no_early_page():
    assert pages_that_import("course_lab/ch11_encoders_today/") == {"11"}
    assert pages_that_import("course_lib/family/colbert.py") == {"10", "11"}
    assert pages_that_import("course_tools/grading/") == set()
    assert pages_that_import("course_lib/attention/") >= {"01", "02", "10"}
