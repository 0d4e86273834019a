"""Pages side by side: every failure is told, Ctrl-C leaves no process, a log never
falls silent, costs are kept."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from pages import TRIAL, lay_out_book

from course_lab import records
from course_lib.training.config import History, TrainingConfig
from course_lib.training.console import progress
from course_tools.site import execute, nest
from course_tools.site.build import SiteError, build
from course_tools.site.cache import PageCache
from course_tools.site.execute import COSTS, errors_of, execute_pages
from course_tools.site.progress import Job, remaining_seconds, watch

PAGES = {
    "01-works": "print('fine')",
    "02-raises": (
        "x = 1\n```\n\n```{code-cell} ipython3\ndef f():\n    raise ValueError('first"
        " line\\nlast line')\nf()"
    ),
    "03-dies": "import os\nos._exit(3)",
}


def cell(code: str) -> str:
    return f"{TRIAL}```{{code-cell}} ipython3\n{code}\n```\n"


@pytest.fixture
def book(tmp_path):
    """A book of three pages: one works, one raises in its second cell, one ends its
    kernel."""
    lay_out_book(tmp_path, "")
    for name, code in PAGES.items():
        (tmp_path / "book" / f"{name}.md").write_text(cell(code))
    return tmp_path


def pages(root: Path) -> list[Path]:
    return sorted((root / "book").glob("0*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("forked_from", [1, 4])
def test_a_page_that_fails_stops_no_other_and_every_failure_is_told_with_its_place(
    book, capsys, monkeypatch, forked_from
):
    monkeypatch.setattr(execute, "FORKED_FROM", forked_from)
    with pytest.raises(SiteError) as raised:
        build(book)
    first, *failures = sorted(str(raised.value).splitlines())
    assert first == "02-raises, cell 2 (line 14): last line"
    assert failures[0].startswith("03-dies, cell 1 (line 10): the kernel died")
    assert failures[1].startswith("2 failed")
    assert "01-works: done in " in capsys.readouterr().out


@pytest.mark.slow
def test_all_that_raises_is_told_where_a_page_goes_on_after_an_error(book):
    page = book / "book" / "02-raises.md"
    page.write_text(
        f"{page.read_text()}\n```{{code-cell}} ipython3\nassert x == 2, x\n```\n"
    )
    told = errors_of(page, PageCache(book).notebook(page), os.environ)
    assert told == {
        "cell 2 (line 14)": "last line",
        "cell 3 (line 20)": "AssertionError: 1",
    }


@pytest.mark.slow
def test_what_was_executed_is_kept_with_its_costs_and_expected_next_time(book, capsys):
    (book / "book" / "01-works.md").write_text(
        cell("import time\nwhile time.process_time() < 1.5: pass")
    )
    (book / "_build").mkdir()
    cache = PageCache(book)
    assert len(execute_pages(cache, pages(book), os.environ)) == 2
    costs = cache.costs(pages(book))
    assert costs.keys() == {"01-works"}
    assert costs["01-works"].processor_seconds >= 1.4  # the kernel counts in hundredths
    assert costs["01-works"].wall_seconds >= 1.5 - 0.1
    capsys.readouterr()
    execute_pages(cache, pages(book), os.environ)
    assert "01-works" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_line_that_the_kernel_sends_in_pieces_is_kept_as_one(book):
    """A busy machine may cut a line anywhere."""
    (page := book / "book" / "01-works.md").write_text(
        cell("print('##g', end='', flush=True)\nprint(' ##s', 4)\nprint(5)")
    )
    (book / "_build").mkdir()
    execute_pages(PageCache(book), [page], os.environ)
    [kept] = (book / "_build" / ".jupyter_cache").glob("executed/*/base.ipynb")
    [printed] = nbformat.read(kept, 4).cells[-1].outputs
    assert printed.text == "##g ##s 4\n5\n"


@pytest.mark.slow
@pytest.mark.parametrize("forked_from", [1, 4])
def test_ctrl_c_ends_every_process_at_once(book, forked_from):
    """The pages' kernels have sessions of their own, so that the terminal's signal does
    not reach them."""
    started = book / "started"
    for name in PAGES:
        code = f"import subprocess, sys\nopen({str(started)!r}, 'a').write('x')\n"
        code += (
            "subprocess.run([sys.executable, '-c', 'import time; time.sleep(3600)'])"
        )
        (book / "book" / f"{name}.md").write_text(cell(code))
    program = (
        "import pathlib, signal, sys; from course_tools.site import build, execute;"
        " signal.signal(signal.SIGINT, signal.default_int_handler);"
        f" execute.FORKED_FROM = {forked_from};"
        " build.build(pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, book]
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    family = []
    while not (started.is_file() and len(started.read_text()) >= 2) or len(family) < 4:
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.1)
        family = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(signal.SIGINT)
    _, words = child.communicate()
    assert words.strip().endswith(b"KeyboardInterrupt")
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []


def test_a_forked_kernel_that_has_ended_by_itself_takes_a_signal_without_complaint():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    kernel = nest.Kernel(ended.pid)
    ended.wait()
    kernel.send_signal(signal.SIGTERM)
    assert kernel.poll() == 0


def test_what_is_left_is_estimated_from_how_this_machine_has_done(monkeypatch):
    """Twice as slow as expected so far: 80 - 10, 60 and 60 seconds are left, two jobs
    at a time."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ended = Job("a", expected=20.0)
    running = Job("b", expected=40.0)
    waiting = [Job("c", expected=30.0), Job("d", expected=30.0)]
    ended.begin()
    now[0] += 40
    ended.end()
    running.begin()
    now[0] += 10
    assert remaining_seconds([ended, running, *waiting], 2) == pytest.approx(
        (80 - 10 + 60 + 60) / 2
    )
    # one job cannot be shared
    assert remaining_seconds([ended, running], 2) == pytest.approx(80 - 10)
    assert remaining_seconds([ended], 2) == 0


def test_a_log_gets_lines_while_nothing_ends_with_cell_and_training_step(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("course_tools.site.progress.SECONDS_BETWEEN_LINES", 0.01)
    job = Job("06-pretraining", expected=90.0, parts=41, steps=tmp_path / "steps")
    job.begin()
    job.part = 12
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "steps"))
    with progress(TrainingConfig(steps=1400), done=0, rank=0) as show:
        show(History(steps=[1, 2, 620]))
    said = ""
    with watch([job, Job("other")], 2):
        while "\n" not in said:
            said += capsys.readouterr().out
    assert re.match(
        r"\[ 0:00\] 0 of 2 done, about 1:\d\d left: 06-pretraining \(0:00, cell 12 of"
        r" 41, step 620 of 1,400\)\n",
        said,
    )


@pytest.mark.records
def test_recorded_costs_keep_to_the_limits_of_the_design():
    """Processor seconds, children included: 600 for all pages, 150 where BERT is
    pre-trained, 45 for any other."""
    costs = {
        result["page"]: result["processor_seconds"]
        for result in records.load(COSTS).results
    }
    assert len(costs) >= 11
    assert sum(costs.values()) <= 600
    assert {
        page: seconds
        for page, seconds in costs.items()
        if seconds > (150 if page.startswith("06") else 45)
    } == {}
