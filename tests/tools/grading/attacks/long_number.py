"""A number of five thousand digits in the JSON: json.loads raised ValueError before
anybody had a mark."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0}
PROBLEM = "is not JSON"


def write(folder, text, root):
    (folder / "mini.ipynb").write_text(
        text.replace('"nbformat": 4', f'"x": {"1" * 5000}, "nbformat": 4')
    )
