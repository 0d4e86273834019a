"""A file is written whole or not at all."""

import pytest

from course_lib.files import write_whole


def names(folder):
    """Return what lies in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())


def test_text_arrives_as_it_is_with_the_ends_of_its_lines(tmp_path):
    write_whole(tmp_path / "vocab.txt", "a\n\r\nä\n")
    assert (tmp_path / "vocab.txt").read_bytes() == b"a\n\r\n\xc3\xa4\n"


def test_a_function_writes_elsewhere_and_the_file_has_its_name_only_when_it_is_complete(
    tmp_path,
):
    path = tmp_path / "model.safetensors"
    seen = []

    def write(unfinished):
        unfinished.write_bytes(b"half")
        seen.append((path.exists(), unfinished.parent))
        unfinished.write_bytes(b"whole")

    write_whole(path, write)
    assert seen == [(False, tmp_path)], (
        "beside its place: a rename between file systems is not one step"
    )
    assert path.read_bytes() == b"whole"
    assert names(tmp_path) == ["model.safetensors"]


@pytest.mark.parametrize(
    "error",
    [OSError("no space left on device"), KeyboardInterrupt()],
    ids=["full", "interrupted"],
)
def test_where_writing_fails_the_earlier_file_is_as_it_was_and_nothing_else_is_left(
    tmp_path, error
):
    path = tmp_path / "plan.json"
    path.write_text("earlier")

    def write(unfinished):
        unfinished.write_text("half")
        raise error

    with pytest.raises(type(error)):
        write_whole(path, write)
    assert path.read_text() == "earlier"
    assert names(tmp_path) == ["plan.json"]


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "vocab.txt", "a\n")
    assert names(tmp_path) == []
