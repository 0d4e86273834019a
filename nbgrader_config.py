"""How this course uses nbgrader. Stock commands read this file from the folder they are
called in.

    nbgrader generate_assignment attention      solutions/   ->  exercises/ and gradebook.db
    nbgrader autograde attention                submitted/   ->  autograded/ and gradebook.db
    nbgrader generate_feedback attention        autograded/  ->  feedback/
    nbgrader export                             gradebook.db ->  grades.csv

Each setting that changes how nbgrader 0.9.6 marks says which fault of the stock
behaviour it mends. `tests/tools/grading/test_settings.py` takes these settings away and sees
the faults come back.
"""  # noqa: E501

import os
import sys
from pathlib import Path

from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import (
    ClearOutput,
    DeduplicateIds,
    OverwriteCells,
    OverwriteKernelspec,
)

from course_tools.grading.nbgrader.give_back import GiveBack
from course_tools.grading.nbgrader.sanitize import ForgetOldMarks, RestoreReleasedCells

c = get_config()  # type: ignore[name-defined]

# ---- Where things lie
# --------------------------------------------------------------------------------------

c.CourseDirectory.course_id = "from-attention-to-bert"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

# nbgrader copies every file beside a notebook: from solutions/ to exercises/ and from
# submitted/ to autograded/, where the notebook runs. A copied attention.py would hand
# out the solutions; a submitted torch.py would replace torch.
c.CourseDirectory.ignore = [
    *CourseDirectory.ignore.default_args[0],
    "*.py",
    "*.so",
    "*.pyd",
    "*.pth",
]

# nbgrader starts its helper program `alembic` by name. Without an activated environment
# (`.venv/bin/nbgrader ...`) the name is not found and the command stops; the program
# lies beside the Python that runs this.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
)

# ---- Release
# --------------------------------------------------------------------------------------

# exercises/ is in git, so the target is always there. Stock nbgrader then skips the
# assignment without entering it in the gradebook, and autograde finds no assignment.
# Releasing again writes the same bytes.
c.GenerateAssignment.force = True

# ---- What runs
# --------------------------------------------------------------------------------------

# Stock: a cell that carries the tag "skip-execution" is not run, has no error in its
# output, and so gets full marks. No cell can carry the empty tag.
c.Execute.skip_cells_with_tag = ""

# An assignment runs in 60 s in all; a cell that takes longer than this has hung. It is
# interrupted and gets 0, and the cells after it still run.
c.Execute.timeout = 60

# Stock: nbgrader asks the kernel to finish. A kernel that is still in an endless loop
# does not hear it, or exit hooks of the student's code keep it alive. Kill it.
c.Execute.shutdown_kernel = "immediate"

# ---- What counts
# --------------------------------------------------------------------------------------

# Stock: anything on stderr (a warning, a progress bar) gives the cell 0, though its
# tests pass. Drop stderr before the marks are counted; a failed test is an error
# output, which stays. `(?s)` lets `.` match line ends.
c.IgnorePattern.enabled = True
c.IgnorePattern.pattern = r"(?s).*"

# Stock: a test that the student deleted is not graded. A first submission lacks the
# marks of the cell, a second one keeps its old ones. Put the cell back, so that it runs
# and is graded.
c.OverwriteCells.add_missing_cells = True

# Stock: late work costs nothing, or everything. This policy takes a share of the marks
# for each day that has begun. It costs nothing until you say so here, and until the
# assignment has a due date in the gradebook.
c.AssignLatePenalties.plugin_class = "course_tools.grading.collect.late.LatePolicy"
c.LatePolicy.percent_per_day = 0.0
c.LatePolicy.grace_minutes = 15.0
c.LatePolicy.most_percent = 50.0

# Stock: a copied cell stops the grading of the whole class; a submission that cannot be
# graded to its end keeps the marks of the one before it; a student who deletes a test
# with its answer is not graded. Our two steps stand among nbgrader's own, in the place
# of CheckCellMetadata, which has nothing left to find here. (`CheckCellMetadata.enabled
# = False` would keep the class going; but OverwriteCells, as set above, then raises
# KeyError for the student with the copy, and the check that finds two cells of one name
# at release would be off.)
c.Autograde.sanitize_preprocessors = [
    ForgetOldMarks,
    ClearOutput,
    DeduplicateIds,
    OverwriteKernelspec,
    RestoreReleasedCells,
    OverwriteCells,
]

# ---- What is given back
# --------------------------------------------------------------------------------------

# Stock: feedback and autograded/ show hidden tests whole, with the values in their
# tracebacks, so that they serve one class. "words" leaves what a test was written to
# say, "outputs" what it printed besides, "code" everything, as stock does.
c.GiveBack.feedback = "words"
c.Autograde.autograde_preprocessors = [*Autograde().autograde_preprocessors, GiveBack]
c.GenerateFeedback.preprocessors = [GiveBack, *GenerateFeedback().preprocessors]
