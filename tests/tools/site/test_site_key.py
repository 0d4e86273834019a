"""What the key of executed pages sees: imported code and its imports, but no docstring,
comment or unused module."""

from pathlib import Path

import pytest

from course_lib._files import digest_of_code
from course_tools.site.key import cells_of, digest_of_files, imported_modules

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
def library(tmp_path: Path) -> Path:
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
def test_imports_are_followed_into_functions_packages_and_upwards(
    library: Path, source: str
):
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
def test_a_docstring_or_comment_changes_no_key_and_code_does(
    tmp_path: Path, changed: str, same: bool
):
    file = tmp_path / "module.py"
    file.write_text('"""Say it."""\nx = 1\n')
    before = digest_of_code([file])
    file.write_text(changed)
    assert (digest_of_code([file]) == before) is same


def test_a_digest_of_files_sees_content_names_and_nothing_else(tmp_path: Path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1")
    first = digest_of_files([folder])
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert digest_of_files([folder]) == first
    (folder / "a.py").write_text("x = 2")
    changed = digest_of_files([folder])
    (folder / "a.py").write_text("x = 1")
    (folder / "a.py").rename(folder / "b.py")
    assert len({first, changed, digest_of_files([folder])}) == 3
