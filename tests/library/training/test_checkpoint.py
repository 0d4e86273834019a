"""A checkpoint is written whole or not at all, and a damaged one is named in words."""

import errno
import os
import resource
import signal

import pytest
import torch
from expect import refusal
from torch import Tensor, nn

from course_lib.training import state
from course_lib.training.state import (
    CheckpointError,
    check_weights,
    load_tensors,
    save_tensors,
)

OLD = {
    "weight": torch.arange(6.0).view(2, 3),
    "bias": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
}
NEW = {
    "weight": torch.full((2, 3), 7.0),
    "bias": torch.zeros(2, dtype=torch.bfloat16),
    "extra": torch.ones(4000),
}


def equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and torch.equal(left[name], right[name])
        for name in left
    )


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.safetensors"
    save_tensors(path, OLD, {"step": 4})
    return path


def test_tensors_and_facts_come_back_as_they_were(saved):
    tensors, facts = load_tensors(saved)
    assert equal(tensors, OLD)
    assert facts == {"step": 4}
    assert [file.name for file in saved.parent.iterdir()] == ["run.safetensors"]


def test_scalars_empty_tensors_and_shared_memory_can_be_saved(tmp_path):
    shared = torch.arange(4.0)
    tensors = {
        "a": shared,
        "b": shared[1:3],
        "t": shared.view(2, 2).T,
        "scalar": torch.tensor(3),
        "none": torch.zeros(0, 2),
    }
    save_tensors(tmp_path / "odd.safetensors", tensors)
    assert equal(load_tensors(tmp_path / "odd.safetensors")[0], tensors)


# Each place where a save touches the disk, in order.
INSTANTS = ["open", "write", "half a write", "replace", "after replace"]


def die_at(instant: str, patch, death) -> None:
    """Arrange for ``death()`` at one instant of the next save."""
    opened, replaced = open, os.replace

    class Dying:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, content):
            if instant == "half a write":
                self.file.write(content[: len(content) // 2])
                self.file.flush()
            if instant in ("write", "half a write"):
                death()
            return self.file.write(content)

        def __getattr__(self, name):
            return getattr(self.file, name)

    def open_or_die(path, mode="r"):
        if instant == "open":
            death()
        return Dying(opened(path, mode))

    def replace_or_die(source, target):
        if instant == "replace":
            death()
        replaced(source, target)
        if instant == "after replace":
            death()

    patch.setattr(state, "open", open_or_die, raising=False)
    patch.setattr(os, "replace", replace_or_die)


@pytest.mark.cpu  # a forked process cannot read a GPU
@pytest.mark.parametrize("instant", INSTANTS)
def test_a_process_killed_at_any_instant_of_a_save_leaves_one_whole_checkpoint(
    saved, instant, monkeypatch
):
    # a real process that really dies; forking spares it the import of torch
    child = os.fork()
    if child == 0:
        die_at(instant, monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
        save_tensors(saved, NEW, {"step": 8})
        os._exit(0)  # not reached
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    tensors, facts = load_tensors(saved)
    is_new = instant == "after replace"
    assert equal(tensors, NEW if is_new else OLD)
    assert facts == {"step": 8 if is_new else 4}
    # what the dead process left behind is in nobody's way
    save_tensors(saved, NEW, {"step": 12})
    assert load_tensors(saved)[1] == {"step": 12}
    assert [file.name for file in saved.parent.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize("instant", INSTANTS[:-1])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_an_error_of_the_disk_at_any_instant_is_told_in_words_and_leaves_no_debris(
    saved, instant, number, monkeypatch
):
    def fail():
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        die_at(instant, patch, fail)
        with pytest.raises(CheckpointError) as caught:
            save_tensors(saved, NEW, {"step": 8})
    assert f"could not save {saved}: {os.strerror(number)}" in str(caught.value)
    assert (
        "free at least 0.0 MB" if number == errno.ENOSPC else "check that the folder"
    ) in str(caught.value)
    assert "The earlier checkpoint is intact" in str(caught.value)
    assert equal(load_tensors(saved)[0], OLD)
    assert [file.name for file in saved.parent.iterdir()] == ["run.safetensors"]


@pytest.mark.parametrize("instant", ["half a write", "replace"])
def test_an_interrupt_while_saving_stays_an_interrupt_and_leaves_no_debris(
    saved, instant, monkeypatch
):
    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        die_at(instant, patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_tensors(saved, NEW)
    assert equal(load_tensors(saved)[0], OLD)
    assert [file.name for file in saved.parent.iterdir()] == ["run.safetensors"]


@pytest.mark.cpu  # a forked process cannot read a GPU
def test_a_disk_that_really_refuses_the_bytes_is_told_in_words(saved):
    """The kernel itself cuts the file off (RLIMIT_FSIZE), as a full disk would."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that write() fails instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        try:
            save_tensors(saved, NEW)
        except CheckpointError as error:
            told = "free at least" in str(error) and "intact" in str(error)
            clean = [file.name for file in saved.parent.iterdir()] == [
                "run.safetensors"
            ]
            os._exit(0 if told and clean else 3)
        os._exit(4)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert equal(load_tensors(saved)[0], OLD)


def test_a_first_save_that_fails_says_that_there_is_nothing_earlier(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with refusal("There is no earlier checkpoint", CheckpointError):
        save_tensors(tmp_path / "file" / "run.safetensors", OLD)


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 60, -1])
def test_a_truncated_checkpoint_is_named_and_left_untouched(saved, kept):
    content = saved.read_bytes()
    saved.write_bytes(content[:kept])
    with refusal(
        r"run\.safetensors .*left untouched: restore it from a copy, or move it",
        CheckpointError,
    ):
        load_tensors(saved)
    assert saved.read_bytes() == content[:kept]


def test_no_single_changed_byte_goes_unnoticed(saved):
    """Only spaces that pad the header may change unseen: they carry nothing."""
    content = saved.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x11
        saved.write_bytes(bytes(changed))
        try:
            tensors, facts = load_tensors(saved)
        except CheckpointError:
            continue
        assert equal(tensors, OLD), place
        assert facts == {"step": 4}, place


def test_a_safetensors_file_of_another_program_is_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"weight": torch.ones(2)}, tmp_path / "other.safetensors")
    with refusal("was not written by this course", CheckpointError):
        load_tensors(tmp_path / "other.safetensors")


def test_a_pickle_is_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    torch.save(Bomb(), tmp_path / "bomb.safetensors")
    with refusal("no complete safetensors file", CheckpointError):
        load_tensors(tmp_path / "bomb.safetensors")
    assert not (tmp_path / "exploded").exists()


def test_weights_that_do_not_fit_are_told_apart(tmp_path):
    path = tmp_path / "m.safetensors"
    save_tensors(path, {"weight": torch.ones(2, 4), "gain": torch.ones(1)})
    model = nn.Linear(3, 2)
    with pytest.raises(CheckpointError) as caught:
        check_weights(model, load_tensors(path)[0], path)
    assert (
        "missing: bias; unexpected: gain; of another shape: weight is (2, 4) in the"
        " file, (2, 3) in the model" in str(caught.value)
    )
