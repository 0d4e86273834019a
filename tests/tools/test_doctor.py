"""`course doctor`: each thing is OK, or the finding says what to do."""

import collections
import importlib
import json
import re
import sys
from importlib import metadata

import jupyter_client.kernelspec
import jupyter_client.manager
import psutil
import pytest
import torch
from cases import for_each
from typer.testing import CliRunner

from course_tools import doctor, findings
from course_tools.cli import app
from course_tools.findings import Finding

LACK = Finding("disk", ok=False, found="0.1 GiB free", remedy="Free 2 GiB.")
FINE = Finding("python", ok=True, found="3.11")


@pytest.mark.parametrize(("ok", "remedy"), [(True, "do this"), (False, "")])
def test_a_finding_has_a_remedy_exactly_when_something_lacks(ok, remedy):
    with pytest.raises(ValueError, match="exactly when it is not ok"):
        Finding("x", ok=ok, found="y", remedy=remedy)


@for_each(
    ("version", "ok"),
    [
        ((3, 10), False),
        ((3, 11), True),
        ((3, 12), True),
        ((4, 0), True),
        ((2, 20), False),
    ],
)
def test_python_must_be_3_11_or_newer(version, ok):
    finding = doctor.check_python(version)
    assert finding.ok is ok
    assert ok or "PYTHON=" in finding.remedy


def test_the_installed_torch_is_found_with_its_version():
    assert doctor.check_torch() == Finding(
        "torch", True, f"torch {metadata.version('torch')}"
    )


def test_a_torch_outside_the_required_range_is_told_with_both_versions(monkeypatch):
    real = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "2.5.1" if name == "torch" else real(name)
    )
    finding = doctor.check_torch()
    assert not finding.ok
    assert finding.found == "torch 2.5.1; the course needs torch>=2.9"
    assert "constraints.txt" in finding.remedy


@pytest.mark.parametrize(
    "error",
    [
        ImportError("no such module"),
        OSError("libtorch.so: cannot open shared object file"),
    ],
)
def test_a_package_that_does_not_import_is_told_with_its_own_words(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    finding = doctor.check_version("nbgrader", "nbgrader", extra="grading")
    assert not finding.ok
    assert str(error) in finding.found
    assert "'.[grading]'" in finding.remedy


def test_an_unexpected_error_is_not_swallowed(monkeypatch):
    def fail(name):
        raise ZeroDivisionError

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(ZeroDivisionError):
        doctor.check_torch()


def test_a_package_that_the_course_does_not_need_is_an_error_of_the_caller():
    with pytest.raises(LookupError, match="does not depend on 'tensorflow'"):
        doctor.requirement("tensorflow")


def test_the_device_that_every_chapter_uses_is_named(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    finding = doctor.check_device()
    assert finding.ok
    assert re.fullmatch(r"cpu \(\d+ threads\)", finding.found)


def test_a_device_that_does_not_exist_is_told_with_what_to_unset(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "abacus")
    finding = doctor.check_device()
    assert not finding.ok
    assert finding.remedy == "Unset COURSE_DEVICE."


def test_a_device_that_computes_wrongly_is_not_ok(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    monkeypatch.setattr(torch, "ones", torch.zeros)
    finding = doctor.check_device()
    assert not finding.ok
    assert "0.0 for 30.0" in finding.found


def test_the_rates_of_both_precisions_are_told_and_what_auto_takes(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    finding = doctor.check_precision()
    assert finding.ok
    number = r"[\d.e+]+"
    told = (
        rf"float32 {number}, bfloat16 {number} GFLOP/s a thread; precision auto takes"
        r" (float32|bfloat16)"
    )
    assert re.fullmatch(told, finding.found)


def test_without_a_device_no_rate_is_told(monkeypatch):
    monkeypatch.setenv("COURSE_DEVICE", "abacus")
    finding = doctor.check_precision()
    assert not finding.ok
    assert "COURSE_DEVICE is 'abacus'" in finding.found


Memory = collections.namedtuple("Memory", "total available")


@pytest.mark.parametrize(("gib", "ok"), [(3.9, False), (4.0, True)])
def test_memory_must_suffice_for_a_chapter(monkeypatch, gib, ok):
    monkeypatch.setattr(
        psutil,
        "virtual_memory",
        lambda: Memory(total=16 * 2**30, available=int(gib * 2**30)),
    )
    finding = doctor.check_memory()
    assert finding.ok is ok
    assert finding.found == f"{gib} GiB free of 16.0 GiB"


Usage = collections.namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("gib", "ok"), [(1.9, False), (2.0, True)])
def test_disk_must_suffice_for_the_site(monkeypatch, tmp_path, gib, ok):
    monkeypatch.setattr(
        doctor.shutil, "disk_usage", lambda folder: Usage(2**40, 0, int(gib * 2**30))
    )
    finding = doctor.check_disk(tmp_path)
    assert finding.ok is ok
    assert str(tmp_path) in finding.found


@pytest.mark.slow
def test_the_kernel_of_the_notebooks_runs_in_this_environment():
    finding = doctor.check_kernel()
    assert finding.ok, finding.found
    assert sys.prefix in finding.found


def register_kernel(monkeypatch, tmp_path, *argv):
    """Make a kernel of our own the only one that Jupyter finds under its name."""
    folder = tmp_path / "kernels" / "ours"
    folder.mkdir(parents=True)
    spec = {"argv": list(argv), "display_name": "ours", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))


def test_a_kernel_that_dies_at_its_start_is_told_with_its_last_words(
    monkeypatch, tmp_path
):
    register_kernel(
        monkeypatch,
        tmp_path,
        sys.executable,
        "-c",
        "raise SystemExit('no zmq here')",
        "{connection_file}",
    )
    finding = doctor.check_kernel("ours")
    assert not finding.ok
    assert "does not start" in finding.found
    assert "no zmq here" in finding.found
    assert "ipykernel install" in finding.remedy


def test_a_kernel_whose_program_is_gone_is_told(monkeypatch, tmp_path):
    register_kernel(
        monkeypatch,
        tmp_path,
        str(tmp_path / "removed" / "python"),
        "-m",
        "ipykernel",
        "-f",
        "{connection_file}",
    )
    finding = doctor.check_kernel("ours")
    assert not finding.ok
    assert "does not start" in finding.found


class FakeKernel:
    """A kernel, its client and its manager, that gives one answer."""

    def __init__(self, text, status="ok"):
        self.text, self.status, self.stopped = text, status, False

    def execute_interactive(self, code, timeout, output_hook):
        if self.status == "silent":
            raise TimeoutError
        output_hook(
            {
                "content": (
                    {"text": self.text}
                    if self.status == "ok"
                    else {"evalue": self.text}
                )
            }
        )
        return {"content": {"status": self.status}}

    def stop_channels(self):
        pass

    def shutdown_kernel(self, now):
        self.stopped = True


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("/elsewhere/env\n", "ok", "runs in /elsewhere/env, not in"),
        (
            "No module named 'course_lib'",
            "error",
            "cannot import course_lib: No module named 'course_lib'",
        ),
        ("", "silent", "gives no answer in"),
    ],
)
def test_a_kernel_of_another_environment_is_not_ok(monkeypatch, text, status, words):
    kernel = FakeKernel(text, status)
    monkeypatch.setattr(
        jupyter_client.manager,
        "start_new_kernel",
        lambda *args, **kwargs: (kernel, kernel),
    )
    finding = doctor.check_kernel()
    assert not finding.ok
    assert words in finding.found
    assert kernel.stopped


def test_nbgrader_settings_must_lie_in_the_folder(tmp_path):
    finding = doctor.check_nbgrader(tmp_path)
    assert not finding.ok
    assert f"no nbgrader_config.py in {tmp_path}" in finding.found


@pytest.mark.parametrize(
    "text", ["c = get_config(\n", "c = get_confg()\n", "import nothing_of_this_name\n"]
)
def test_broken_nbgrader_settings_are_told(tmp_path, text):
    (tmp_path / "nbgrader_config.py").write_text(text)
    finding = doctor.check_nbgrader(tmp_path)
    assert not finding.ok
    assert "does not load" in finding.found


def test_sound_nbgrader_settings_are_ok(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'x'\n"
    )
    finding = doctor.check_nbgrader(tmp_path)
    assert finding.ok
    assert f"nbgrader {metadata.version('nbgrader')}" in finding.found


def test_the_command_succeeds_when_all_is_well(monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda checks: [FINE])
    result = CliRunner().invoke(app, ["doctor"])
    assert (result.exit_code, result.stdout.split()) == (0, ["python", "OK", "3.11"])


def test_the_command_fails_and_says_what_to_do_when_something_lacks(monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda checks: [FINE, LACK])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "Free 2 GiB." in result.stdout


def test_the_command_speaks_json_to_programs(monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda checks: [FINE, LACK])
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert [finding["name"] for finding in told["findings"]] == ["python", "disk"]
    assert told["findings"][1]["remedy"] == "Free 2 GiB."


def test_words_that_look_like_markup_are_printed_as_they_are(capsys):
    findings.render([Finding("torch", False, "broken", "pip install -e '.[book]'")])
    assert "'.[book]'" in capsys.readouterr().out


def test_the_doctor_examines_what_the_course_needs():
    names = [check.__name__.removeprefix("check_") for check in doctor.CHECKS]
    assert names == [
        "python",
        "torch",
        "device",
        "precision",
        "memory",
        "kernel",
        "nbgrader",
        "disk",
    ]


def test_the_version_is_the_installed_one():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout == f"course {metadata.version('course_lib')}\n"
