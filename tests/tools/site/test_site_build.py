"""Building: what has changed is executed again, a failure is never forgotten, and
errors are in words."""

import os
import re
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from pages import TRIAL, lay_out_book
from places import BOOK, ROOT
from typer.testing import CliRunner
from whole import whole_only

from course_tools.cli import app
from course_tools.site import pages as site_pages
from course_tools.site.build import SiteError, build, find_root, server, why
from course_tools.site.cost import chapter_cost

PAGE = """\
```{code-cell} ipython3
from pathlib import Path
print("found", Path("../course_lib/word.txt").read_text())
```
"""


@pytest.fixture
def small_book(tmp_path, monkeypatch):
    """A book of one page, with the real settings and extensions, whose cell shows a
    file of its library."""
    monkeypatch.setattr(site_pages, "write_generated_pages", lambda root: None)
    lay_out_book(tmp_path, PAGE)
    (tmp_path / "course_lib" / "word.txt").write_text("amber")
    return tmp_path


@pytest.mark.slow
def test_a_change_in_the_library_executes_an_unchanged_page_again(small_book):
    assert "found amber" in build(small_book).read_text()
    (small_book / "course_lib" / "word.txt").write_text("basalt")
    assert "found basalt" in build(small_book).read_text()
    cached = small_book / "_build" / ".jupyter_cache" / "executed"
    assert len(list(cached.iterdir())) == 1  # the stale page is gone


def cell_that_imports(module: str) -> str:
    """A cell that imports a module, or would, and notes that it was executed."""
    note = f'open("../executed", "a").write("{module} ")'
    code = f"if False:\n    import course_lib.{module}\n{note}"
    return f"{TRIAL}```{{code-cell}} ipython3\n{code}\n```\n"


@whole_only
@pytest.mark.slow
def test_a_changed_module_executes_the_page_that_imports_it_and_no_other(small_book):
    library, book = small_book / "course_lib", small_book / "book"
    (book / "index.md").write_text(cell_that_imports("used"))
    other = cell_that_imports("other").replace("(trial)", "(other)")
    (book / "other.md").write_text(other)
    (book / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n  - file: other\n"
    )
    for name in ("used", "other", "grader"):
        (library / f"{name}.py").write_text("x = 1")
    build(small_book)
    assert sorted((small_book / "executed").read_text().split()) == ["other", "used"]
    (small_book / "executed").write_text("")
    (library / "grader.py").write_text("x = 2")
    (library / "used.py").write_text('"""What it is."""\nx = 1')
    build(small_book)
    assert (small_book / "executed").read_text() == ""
    (library / "used.py").write_text("x = 2")
    assert "will be executed: course_lib/used.py changed" in why(small_book, "index")
    assert "nothing of it has changed" in why(small_book, "other")
    build(small_book)
    assert (small_book / "executed").read_text() == "used "


@pytest.mark.slow
def test_one_page_is_executed_and_opened_alone(small_book, monkeypatch):
    (small_book / "book" / "03-other.md").write_text(
        cell_that_imports("other") + "\nSee {ref}`a-label-elsewhere`.\n"
    )
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    monkeypatch.chdir(small_book / "book")
    result = CliRunner().invoke(app, ["page", "03"])
    assert result.exit_code == 0, result.output
    assert (small_book / "executed").read_text() == "other "
    assert opened == [Path(result.output.split()[-1]).as_uri()]
    assert "a-label-elsewhere" in Path(result.output.split()[-1]).read_text()
    unknown = CliRunner().invoke(app, ["page", "04"])
    assert unknown.exit_code == 1
    assert "no page begins with '04'; there are 03-other, index" in unknown.output


@whole_only
@pytest.mark.slow
def test_a_name_that_the_reference_leaves_out_is_shown_as_code(small_book):
    names = ("course_lab.records.load", "course_lib.attention")
    text = " ".join(f"{{py:obj}}`~{name}`" for name in names)
    (small_book / "book" / "index.md").write_text(f"{TRIAL}{text}\n")
    page = build(small_book).read_text()
    for name in names:
        short = name.rpartition(".")[2]
        assert re.search(rf"<code[^>]*><span class=\"pre\">{short}</span></code>", page)


@whole_only
@pytest.mark.slow
def test_figures_are_drawn_whatever_the_backend_and_described_in_measured_numbers(
    small_book, monkeypatch
):
    monkeypatch.setenv("MPLBACKEND", "agg")
    cell = """
```{code-cell} ipython3
import matplotlib.pyplot as plt
```

```{code-cell} ipython3
---
mystnb:
  image:
    alt: "A trial of {glue:text}`length:.1f` and {glue:text}`count:,` again."
---
figure, _ = plt.subplots()
plt.close(figure)
figure
```

```{code-cell} ipython3
from myst_nb import glue
glue("length", 12.34, display=False)
glue("count", 56789, display=False)
```
"""
    (small_book / "book" / "index.md").write_text(TRIAL + PAGE + cell)
    page = build(small_book).read_text()
    assert 'alt="A trial of 12.3 and 56,789 again."' in page
    assert "Figure size" not in page


@pytest.mark.slow
def test_a_cell_that_raises_fails_every_build_until_it_is_mended(small_book):
    word = small_book / "course_lib" / "word.txt"
    word.unlink()
    for _ in range(2):
        with pytest.raises(SiteError, match=r"index, cell 1 .*: FileNotFoundError: "):
            build(small_book)
    word.write_text("copper")
    assert "found copper" in build(small_book).read_text()


FAULTS = {
    "```{image} dot.svg\n```": "image without alt text",
    "```{image} dot.svg\n:alt: It ends at {glue:text}`glued_nowhere`.\n```": (
        "'glued_nowhere' is never glued"
    ),
    "```{quiz}\nquestion: Why?\nchoices: []\n```": "a list of two or more choices",
    "See {py:func}`course_lib.attention.multi_head.no_such_function`.": (
        "no_such_function"
    ),
    "See {ref}`no-such-label`.": "no-such-label",
    "See {assignment}`no-such-assignment`.": "no assignment 'no-such-assignment'",
    "The value is {glue:text}`never_glued`.": "never_glued",
    "It is {verdict}`no-such-claim`.": "no claim has the name 'no-such-claim'",
}


@pytest.mark.slow
def test_a_faulty_page_fails_twice_and_each_fault_is_said(small_book, capfd):
    (small_book / "book" / "dot.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
    )
    (small_book / "book" / "index.md").write_text(
        TRIAL + PAGE + "\n" + "\n\n".join(FAULTS) + "\n"
    )
    for _ in range(2):
        with pytest.raises(SiteError):
            build(small_book)
        said = capfd.readouterr().err
        assert [words for words in FAULTS.values() if words not in said] == []


@pytest.mark.slow
def test_one_warning_alone_fails_a_build(small_book):
    (small_book / "book" / "index.md").write_text(
        TRIAL + PAGE + "\nSee {ref}`no-such-label`.\n"
    )
    with pytest.raises(SiteError):
        build(small_book)


@whole_only
@pytest.mark.slow
def test_a_site_of_which_nothing_has_changed_is_not_laid_out_again(
    small_book, monkeypatch
):
    index = build(small_book)
    laid_out = index.stat().st_mtime_ns
    assert build(small_book) == index
    assert index.stat().st_mtime_ns == laid_out
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/a-fork")
    assert "somebody/a-fork" in build(small_book).read_text()


@pytest.mark.slow
def test_chapters_are_executed_once_each_with_one_thread_and_side_by_side(small_book):
    """Each opens its end of a pipe and waits until the other does: one after the other,
    they would not end."""
    os.mkfifo(small_book / "pipe")
    ends = {"01-first": "r", "02-second": "w"}
    for name, end in ends.items():
        cell = f"""\
```{{code-cell}} ipython3
import os
import re
open("../pipe", "{end}").close()
with open("../threads-{name}", "a") as file:
    file.write(os.environ["OMP_NUM_THREADS"])
print("both", "ends")
```
"""
        (small_book / "book" / f"{name}.md").write_text(
            TRIAL.replace("(trial)", f"({name})") + cell
        )
    entries = "".join(f"  - file: {name}\n" for name in ends)
    (small_book / "book" / "_toc.yml").write_text(
        f"format: jb-book\nroot: index\nchapters:\n{entries}"
    )
    build(small_book)
    for name in ends:
        assert (small_book / f"threads-{name}").read_text() == "1"
        assert (
            "both ends" in (small_book / "_build" / "html" / f"{name}.html").read_text()
        )


GAIN = """\
```{code-cell} ipython3
:tags: [remove-cell]
from pathlib import Path
from myst_nb import glue
gain = float(Path("../course_lib/word.txt").read_text())
halves = {"beam_bleu_gain_half": 0.25, "beam_log_prob_gain_half": 0.5}
for key, value in {"beam_bleu_gain": gain, "beam_log_prob_gain": 1.5, **halves}.items():
    glue(key, value, display=False)
```
"""


@whole_only
@pytest.mark.slow
def test_a_claim_shows_what_its_chapter_measured_in_this_very_build(small_book):
    """Its own page does not change from build to build, and the chapter comes after it
    in the table of contents."""
    book = small_book / "book"
    (book / "01-trial.md").write_text(
        TRIAL.replace("(trial)", "(seq2seq-attention)") + GAIN
    )
    (book / "index.md").write_text(
        "# Claims\n\n{verdict}`beam-search` {ours}`beam-search`\n"
    )
    (book / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n  - file: 01-trial\n"
    )
    for gain, shown in (
        ("0.75", ("direction only", "0.8 ± 0.2 BLEU")),
        ("0.125", ("not at this scale", "0.1 ± 0.2")),
    ):
        (small_book / "course_lib" / "word.txt").write_text(gain)
        page = build(small_book).read_text()
        assert all(
            words in page
            for words in (*shown, "95% interval over test sentences of one model")
        ), gain
    (small_book / "course_lib" / "word.txt").write_text("0.5")
    (book / "01-trial.md").write_text(
        (book / "01-trial.md").read_text().replace('"beam_bleu_gain_half"', '"other"')
    )
    with pytest.raises(SiteError):
        build(small_book)


BUSY = (
    "import time\nwhile time.process_time() < 0.5: pass\nprint('done',"
    " flush=True)\nimport sys\nsys.stdin.read()"
)


def test_chapter_cost_counts_a_process_while_that_runs_and_when_it_has_ended():
    before = chapter_cost().cpu_seconds
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"done\n"
    assert chapter_cost().cpu_seconds >= before + 0.4  # the system counts in hundredths
    child.communicate()
    assert chapter_cost().cpu_seconds >= before + 0.4


def test_chapter_cost_counts_the_work_of_this_process():
    before = chapter_cost()
    held = bytearray(64 * 2**20)
    total = sum(n * n for n in range(2_000_000))
    after = chapter_cost()
    assert total
    assert held
    assert after.cpu_seconds > before.cpu_seconds
    assert after.peak_memory_gib >= before.peak_memory_gib > 0.01


def test_a_folder_without_a_book_is_refused_in_words(tmp_path):
    with pytest.raises(SiteError, match="run this in the repository"):
        find_root(tmp_path)
    assert find_root(BOOK / "_ext") == ROOT


def test_serving_an_unbuilt_site_says_what_to_do(tmp_path):
    with pytest.raises(SiteError, match="run `course build` first"):
        server(tmp_path)


def test_the_server_answers_this_machine_alone(tmp_path):
    folder = tmp_path / "_build" / "html"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("<p>the book</p>")
    with server(tmp_path, port=0) as running:
        host, port = running.server_address[:2]
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port}/index.html"
            ) as answer:
                assert answer.read() == b"<p>the book</p>"
            with pytest.raises(SiteError, match=f"cannot serve on port {port}"):
                server(tmp_path, port=port)
        finally:
            running.shutdown()
            thread.join()
    assert host == "127.0.0.1"
