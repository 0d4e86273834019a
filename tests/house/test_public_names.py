"""The library's public names: listed once, imported when they are used."""

import importlib
import subprocess
import sys

import pytest
from public_names import public_names

import course_lib


def test_each_public_name_is_what_its_module_has():
    names = public_names()
    assert course_lib.__all__ == list(names)
    homes = {name: importlib.import_module(module) for name, module in names.items()}
    assert {name: getattr(course_lib, name) for name in names} == {
        name: getattr(home, name) for name, home in homes.items()
    }


def test_importing_the_library_imports_no_torch():
    program = "import sys, course_lib; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_name_that_is_not_there_is_refused_in_words():
    with pytest.raises(AttributeError, match="course_lib has no 'NoSuchModel'"):
        getattr(course_lib, "NoSuchModel")  # noqa: B009 - mypy would find it
