"""Is a file of 3 GB (sparse). Expected: 0 and a problem in words, and it is not read
into memory."""

EXPECTED = {"scale-tests": 0.0, "count-tests": 0.0, "why": 0.0}
PROBLEM = "larger than"


def write(folder, text, root):
    with (folder / "mini.ipynb").open("wb") as file:
        file.truncate(3 * 2**30)
