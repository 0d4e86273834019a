"""The console command `course`: one thin function a command.

Each command imports what it needs when it runs, so that `course --help` answers at
once, calls the library, and turns the library's own errors into one line of words and
exit status 1. What a command *does* lives in the module that it names, never here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from pathlib import Path

import typer

from course_tools import cli_grading, cli_marks
from course_tools.options import argument, flag, in_words, option

app = typer.Typer(
    name="course",
    help=(
        "From Attention to BERT: build the book, run its experiments, release and check"
        " its assignments."
    ),
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"course {installed_version('course_lib')}")
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: bool = flag(
        "Print the version and stop.",
        "--version",
        callback=_print_version,
        is_eager=True,
    ),
) -> None:
    """From Attention to BERT: build the book, run its experiments, release and check
    its assignments."""


@app.command()
def doctor(
    as_json: bool = flag(
        "Print the findings as JSON, for a program to read.", "--json"
    ),
) -> None:
    """Examine this machine: each thing the course needs is OK, or you are told what to
    do."""
    from course_tools.doctor import CHECKS, examine
    from course_tools.findings import render, to_json
    from course_tools.grading.sandbox.isolation import check_sandbox

    findings = examine([*CHECKS, check_sandbox])
    if as_json:
        typer.echo(to_json(findings))
    else:
        render(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(code=1)


@app.command()
def release(
    names: list[str] | None = argument(
        "Assignments to release; all in solutions/ if left out.", default=None
    ),
    database: bool = option(
        "Record the assignment in gradebook.db, which autograding needs.", default=True
    ),
) -> None:
    """Turn solutions/NAME/NAME.py into the student's notebook
    exercises/NAME/NAME.ipynb."""
    cli_grading.stay_with_the_edition()
    from course_tools.grading.assignments.release import assignments
    from course_tools.grading.assignments.release import release as release_assignment
    from course_tools.grading.assignments.source import AssignmentError

    with in_words(AssignmentError, code=1):
        for name in names or assignments():
            typer.echo(f"released {release_assignment(name, database=database)}")


@app.command()
def mutants(
    names: list[str] | None = argument(
        "Assignments; all in solutions/ if left out.", default=None
    ),
) -> None:
    """Run the known wrong and right answers of assignments, and keep what catches them
    for the instructors' pages."""
    from course_tools.grading.assignments.mutants_page import record_mutants
    from course_tools.grading.assignments.release import assignments
    from course_tools.grading.assignments.source import AssignmentError

    with in_words(AssignmentError, code=1):
        for name in names or assignments():
            typer.echo(f"wrote {record_mutants(name)}")


@app.command()
def build(
    costs: bool = flag("Then print what each page has cost.", "--costs"),
    record: bool = flag("Keep these costs in book/results.", "--record"),
    why: str | None = option(
        "Build nothing; say what a page is made of, and what has changed.",
        metavar="PAGE",
    ),
) -> None:
    """Build the book's website, executing what has changed; any warning is a
    failure."""
    from course_tools.site import build as site

    with _site_errors():
        root = site.find_root()
        if why is not None:
            typer.echo(site.why(root, why))
            return
        typer.echo(site.build(root))
        if costs:
            typer.echo(site.costs_table(root))
        if record:
            typer.echo(site.record_costs(root))


@app.command()
def dist() -> None:
    """Write what a release hands out, from the built website: archives, the book and
    the slides as PDF, notebooks, checksums."""
    from course_tools.site.build import find_root
    from course_tools.site.dist import distribute

    with _site_errors():
        for line in distribute(find_root()):
            typer.echo(line)


@app.command()
def page(name: str = argument("How its name begins, e.g. 03.")) -> None:
    """Execute one page of the book, if something of it has changed, and open it
    alone."""
    from course_tools.site.build import build_page, find_root

    with _site_errors():
        path = build_page(find_root(), name)
        typer.echo(path)
        typer.launch(path.as_uri())


@contextmanager
def _site_errors() -> Iterator[None]:
    """Turn what stops a build into words and an exit status."""
    from course_tools.site.build import SiteError

    try:
        yield
    except SiteError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    except KeyboardInterrupt as stop:
        typer.echo("stopped; the pages that had been executed are kept", err=True)
        raise typer.Exit(code=130) from stop


@app.command()
def serve(
    port: int = option("Port on this machine; 0 takes a free one.", default=8000),
) -> None:
    """Serve the built website to this machine's browser until you press Ctrl-C."""
    from course_tools.site.build import find_root, server

    with _site_errors():
        site = server(find_root(), port)
    with site:
        typer.echo(f"http://127.0.0.1:{site.server_address[1]}/  (Ctrl-C stops)")
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped")


@app.command()
def start(
    folder: Path = argument(
        "For your copies; what is there stays.", default=Path("assignments")
    ),
) -> None:
    """Copy the assignments into a folder of yours, and open it in JupyterLab."""
    from course_tools.grading.assignments.start import (
        CannotStart,
        copy_assignments,
        open_jupyter,
    )

    with in_words(CannotStart, code=1):
        for path in copy_assignments(folder):
            typer.echo(f"copied {path}")
        open_jupyter(folder)


@app.command()
def check(
    notebook: Path = argument(
        "Your notebook. It is read and run in a copy, never written."
    ),
    released: Path | None = option(
        "The notebook as it was released; found in exercises/."
    ),
    time_limit: int = option("Seconds that each cell may take.", min=1, default=60),
    as_json: bool = flag("Print the report as JSON, for a program to read.", "--json"),
) -> None:
    """Say what is wrong with your assignment before you hand it in.

    Exit status: 0 if nothing is wrong, 1 if something is, 2 if the notebook could not
    be checked.
    """
    from rich.console import Console

    from course_tools.grading.check.check import CannotCheck, print_report
    from course_tools.grading.check.check import check as check_notebook

    with in_words(CannotCheck, code=2):
        report = check_notebook(notebook, released, time_limit)
    if as_json:
        typer.echo(report.to_json())
    else:
        print_report(report, Console())
    if not report.ok:
        raise typer.Exit(code=1)


@app.command()
def assemble(
    notebook: Path = argument("The capstone: your copy of capstone.ipynb."),
    folder: Path | None = option(
        "Where your other notebooks lie; by default beside its folder.", "--from"
    ),
    replace: bool = flag("Also where you have changed a cell of the capstone by hand."),
) -> None:
    """Put your own parts from all assignments into the capstone.

    Exit status: 0 if every part is there, 1 if one is missing or not answered yet.
    """
    from course_tools.grading.assignments.assemble import assemble as put_together
    from course_tools.grading.assignments.source import AssignmentError

    with in_words(AssignmentError, code=1):
        parts = put_together(notebook, folder, replace)
    for part in parts:
        typer.echo(f"{part.assignment}, {part.name}: {part.problem or 'put in'}")
    if any(part.problem for part in parts):
        raise typer.Exit(code=1)


@app.command()
def record(
    name: str = argument("A record, e.g. seq2seq-translation; a wrong name lists all."),
    data: str | None = option("The second part of its name, if NAME is the first."),
    source: str | None = option(
        "Where the data comes from: embedded, hub or a folder."
    ),
    attention: list[str] | None = option("A variant that is called by its attention."),
    variant: list[str] | None = option("Repeat for more, or leave out for all."),
    seed: list[int] | None = option("One run for each; repeat for more."),
    steps: int | None = option("Training steps, if not the recipe's own."),
    checkpoint: str | None = option(
        "For finetuning, errors and sentences: a folder, or a name on the hub."
    ),
) -> None:
    """Train and score the models of an experiment, and record the result in
    book/results/.

    Runs that the record already holds are kept, those of other variants and seeds too;
    a run that was interrupted continues from its checkpoint.
    """
    from course_tools.record_command import ExperimentError, record_experiment

    with in_words(ExperimentError, code=1):
        variants, seeds = attention or variant or [], seed or [0, 1, 2]
        path = record_experiment(name, data, source, variants, seeds, steps, checkpoint)
    typer.echo(path)


@app.command()
def records(
    name: list[str] | None = argument("Records; leave out for all.", default=None),
) -> None:
    """Repeat the probes of what is recorded, and list each variant as current or stale,
    with its runs, their precision and the edition of their data.

    A stale variant's code computes something else than when it was recorded.
    """
    from course_tools.record_command import show_states

    show_states(name or [])


@app.command()
def pretrain(
    out: Path = option(
        "The folder of the run: plan, checkpoint, model, log and model card.",
        default=...,
    ),
    minutes: float | None = option("The budget, turned into steps once and for all."),
    steps: int | None = option("The budget."),
    decay: float | None = option("Share of the budget in which the rate falls; 0.2."),
    resume: bool = flag(
        "Go on to the planned end; begin if there is none.", "--resume"
    ),
    prolong: bool = flag("Add the budget to the steps that are made.", "--prolong"),
    size: str | None = option("tiny, mini, small, medium, base or large; mini."),
    data: str | None = option("A corpus: pydocs, stories or wikitext2_raw; pydocs."),
    source: str | None = option("Where it comes from: embedded, hub or a folder."),
    vocab_size: int | None = option("Tokens of the vocabulary; 8192."),
    max_length: int | None = option("Tokens of a sequence; 128."),
    batch_size: int | None = option("Sequences of a step, over all processes; 128."),
    accumulate: int | None = option("Batches that a step is cut into; 1."),
    learning_rate: float | None = option("The peak; by size."),
    weight_decay: float | None = option("Of matrices; 0.01."),
    dropout: float | None = option("Of features and attention weights; 0.1."),
    start: str | None = option(
        "First weights: scaled to the width, or published; scaled."
    ),
    optimizer: str | None = option("adamw, or muon for the matrices; adamw."),
    masking_rate: float | None = option("Share of tokens that are hidden; 0.15."),
    mask_share: float | None = option("Share of these that become [MASK]; 0.8."),
    random_share: float | None = option("Share that become a random token; 0.1."),
    masking_unit: str | None = option("What is hidden: token, word or span."),
    next_sentence: bool | None = option("", "--next-sentence/--no-next-sentence"),
    static_masking: bool | None = option("", "--static-masking/--dynamic-masking"),
    precision: str | None = option("auto (the faster), float32 or bfloat16; auto."),
    bf16: bool = flag(
        "", "--bf16", hidden=True
    ),  # as the cards of older runs were made
    compile: bool | None = option("Compile the model.", "--compile/--no-compile"),
    half: bool = flag("Write the weights in float16.", "--half"),
    seed: int | None = option("Of weights, masks, pairs and order; 0."),
) -> None:
    """Pre-train a BERT in a folder; see what it learnt, beside controls, in the model
    card there.

    The same command under torchrun, as `torchrun --nproc_per_node=2 -m course_tools.cli
    pretrain ...`, shares each step.
    """
    asked = dict(locals())
    import sys

    from course_tools.pretrain_command import PretrainError, run_in_folder

    how = ("minutes", "steps", "decay", "resume", "prolong", "source", "half")
    run = {name: asked.pop(name) for name in how}
    folder, bf16 = asked.pop("out"), asked.pop("bf16")
    asked["precision"] = asked["precision"] or ("bfloat16" if bf16 else None)
    run |= {"command": ["course", *sys.argv[1:]], "say": typer.echo}
    with in_words(PretrainError, code=1):
        # what decides the run; None is left to the defaults, or to the folder's plan
        card = run_in_folder(folder, asked, **run)
    typer.echo(card)


app.add_typer(cli_marks.grading_app)

data_app = typer.Typer(
    help="The data sets: what is in them, where they come from.", no_args_is_help=True
)
app.add_typer(data_app, name="data")


@data_app.command("list")
def data_list() -> None:
    """Name every data set and the sources it can be loaded from."""
    from course_lib.data import DATASETS

    for entry in DATASETS.values():
        typer.echo(f"{entry.name:<14} {entry.title} ({', '.join(entry.sources)})")


@data_app.command("show")
def data_show(
    name: str = argument("A name that `course data list` prints."),
    source: str | None = option("embedded, hub, or a folder; COURSE_DATA if left out."),
) -> None:
    """Load a data set and print its card: facts, figures, examples."""
    from course_lib.data import find, load
    from course_lib.data.cards import card

    with in_words(ValueError, OSError, code=1):
        typer.echo(card(find(name), load(name, source)))


@data_app.command("cards")
def data_cards(
    folder: Path = argument("Where to.", default=Path("book/_generated/data")),
) -> None:
    """Write the book's page for each data set."""
    from course_lib.data.cards import write_cards

    for page in write_cards(folder):
        typer.echo(f"wrote {page}")


@data_app.command("convert-multi30k")
def data_convert_multi30k(
    raw: Path = argument("The folder data/task1/raw of the Multi30k repository."),
    folder: Path = argument("Where to write multi30k/<split>.parquet."),
) -> None:
    """Make a folder that `load("multi30k", FOLDER)` reads from the repository's text
    files."""
    from course_lib.data.multi30k import convert

    with in_words(ValueError, OSError, code=1):
        for path in convert(raw, folder):
            typer.echo(f"wrote {path}")


if __name__ == "__main__":
    app()
