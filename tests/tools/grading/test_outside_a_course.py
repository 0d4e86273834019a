"""The instructor's commands say where to run them, and write nothing, in a folder that
is no course."""

import pytest
from typer.testing import CliRunner

from course_tools.cli import app


@pytest.mark.parametrize(
    "words",
    [
        ["init", "--edition", "2026.12"],
        ["collect", "attention", "download.zip"],
        ["grade", "attention"],
        ["grade", "attention", "--question", "softmax"],
        ["init"],
        ["replay", "attention"],
        ["report", "attention"],
        ["export", "attention"],
    ],
    ids=" ".join,
)
def test_a_command_outside_a_course_folder_says_where_to_run_it(
    words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    # anything else would be a traceback
    assert isinstance(done.exception, SystemExit), done.exception
    message = " ".join(done.stderr.split())
    assert message.startswith(
        f"{tmp_path} is no course folder: it holds no nbgrader_config.py. Go to the"
        " folder"
    )
    assert list(tmp_path.iterdir()) == []
