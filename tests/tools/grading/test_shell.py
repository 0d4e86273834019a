"""The shell in which both processes run cells, made before they are forked."""

from __future__ import annotations

import subprocess
import sys

FIRST_CELL = """
import sys
from course_tools.grading.run.shell import fresh_shell, shell
shell()
before = set(sys.modules)
here, _ = fresh_shell()
here.run_cell("x = 1\\nx", store_history=True)
print(sorted(set(sys.modules) - before), here.execution_count)
"""


def test_the_first_cell_of_a_process_imports_nothing_that_its_fork_could_have_brought():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CELL], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] 2\n"
