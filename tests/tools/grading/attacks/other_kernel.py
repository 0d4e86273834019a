"""Asks for a kernel that is a program of its own. Expected: full marks, the released
notebook says what runs."""

EXPECTED: dict = {}


def change(notebook):
    notebook.metadata.kernelspec = {
        "name": "bash",
        "display_name": "Bash",
        "language": "bash",
    }
    notebook.metadata.language_info = {"name": "bash"}
