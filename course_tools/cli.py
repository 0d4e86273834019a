"""The console command `course`: one thin function a command.

Each command imports what it needs when it runs, so that `course --help` answers at
once, calls the library, and turns the library's own errors into one line of words and
exit status 1. What a command *does* lives in the module that it names, never here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

from course_tools.cli_grading import grading_app

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
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and stop.",
        ),
    ] = False,
) -> None:
    """From Attention to BERT: build the book, run its experiments, release and check
    its assignments."""


@app.command()
def doctor(
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the findings as JSON, for a program to read."
        ),
    ] = False,
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
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Assignments to release; all in solutions/ if left out."),
    ] = None,
    database: Annotated[
        bool,
        typer.Option(
            help="Record the assignment in gradebook.db, which autograding needs."
        ),
    ] = True,
) -> None:
    """Turn solutions/NAME/NAME.py into the student's notebook
    exercises/NAME/NAME.ipynb."""
    from course_tools.grading.assignments.release import assignments
    from course_tools.grading.assignments.release import release as release_assignment
    from course_tools.grading.assignments.source import AssignmentError

    try:
        for name in names or assignments():
            typer.echo(f"released {release_assignment(name, database=database)}")
    except AssignmentError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


@app.command()
def mutants(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Assignments; all in solutions/ if left out."),
    ] = None,
) -> None:
    """Run the known wrong and right answers of assignments, and keep what catches them
    for the instructors' pages."""
    from course_tools.grading.assignments.mutants_page import record_mutants
    from course_tools.grading.assignments.release import assignments
    from course_tools.grading.assignments.source import AssignmentError

    try:
        for name in names or assignments():
            typer.echo(f"wrote {record_mutants(name)}")
    except AssignmentError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


@app.command()
def build(
    costs: Annotated[
        bool, typer.Option("--costs", help="Then print what each page has cost.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Keep these costs in book/results.")
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(
            metavar="PAGE",
            help="Build nothing; say what a page is made of, and what has changed.",
        ),
    ] = None,
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
def page(
    name: Annotated[str, typer.Argument(help="How its name begins, e.g. 03.")],
) -> None:
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
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0 takes a free one.")
    ] = 8000,
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
    folder: Annotated[
        Path, typer.Argument(help="For your copies; what is there stays.")
    ] = Path("assignments"),
) -> None:
    """Copy the assignments into a folder of yours, and open it in JupyterLab."""
    from course_tools.grading.assignments.start import (
        CannotStart,
        copy_assignments,
        open_jupyter,
    )

    try:
        for path in copy_assignments(folder):
            typer.echo(f"copied {path}")
        open_jupyter(folder)
    except CannotStart as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


@app.command()
def check(
    notebook: Annotated[
        Path,
        typer.Argument(
            help="Your notebook. It is read and run in a copy, never written."
        ),
    ],
    released: Annotated[
        Path | None,
        typer.Option(help="The notebook as it was released; found in exercises/."),
    ] = None,
    time_limit: Annotated[
        int, typer.Option(min=1, help="Seconds that each cell may take.")
    ] = 60,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the report as JSON, for a program to read."),
    ] = False,
) -> None:
    """Say what is wrong with your assignment before you hand it in.

    Exit status: 0 if nothing is wrong, 1 if something is, 2 if the notebook could not
    be checked.
    """
    from rich.console import Console

    from course_tools.grading.check.check import CannotCheck, print_report
    from course_tools.grading.check.check import check as check_notebook

    try:
        report = check_notebook(notebook, released, time_limit)
    except CannotCheck as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=2) from error
    if as_json:
        typer.echo(report.to_json())
    else:
        print_report(report, Console())
    if not report.ok:
        raise typer.Exit(code=1)


@app.command()
def assemble(
    notebook: Annotated[
        Path, typer.Argument(help="The capstone: your copy of capstone.ipynb.")
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Where your other notebooks lie; by default beside its folder.",
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            help="Also where you have changed a cell of the capstone by hand."
        ),
    ] = False,
) -> None:
    """Put your own parts from all assignments into the capstone.

    Exit status: 0 if every part is there, 1 if one is missing or not answered yet.
    """
    from course_tools.grading.assignments.assemble import assemble as put_together
    from course_tools.grading.assignments.source import AssignmentError

    try:
        parts = put_together(notebook, folder, replace)
    except AssignmentError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    for part in parts:
        typer.echo(f"{part.assignment}, {part.name}: {part.problem or 'put in'}")
    if any(part.problem for part in parts):
        raise typer.Exit(code=1)


@app.command()
def record(
    name: Annotated[
        str,
        typer.Argument(
            help="A record, e.g. seq2seq-translation; a wrong name lists all."
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(help="The second part of its name, if NAME is the first."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Where the data comes from: embedded, hub or a folder."),
    ] = None,
    attention: Annotated[
        list[str] | None,
        typer.Option(help="A variant that is called by its attention."),
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="Repeat for more, or leave out for all.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="One run for each; repeat for more.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps, if not the recipe's own.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="For finetuning, errors and sentences: a folder, or a name on the hub."
        ),
    ] = None,
) -> None:
    """Train and score the models of an experiment, and record the result in
    book/results/.

    Runs that the record already holds are kept, those of other variants and seeds too;
    a run that was interrupted continues from its checkpoint.
    """
    from course_tools.record_command import ExperimentError, record_experiment

    try:
        path = record_experiment(
            name,
            data,
            source,
            attention or variant or [],
            seed or [0, 1, 2],
            steps,
            checkpoint,
        )
    except ExperimentError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    typer.echo(path)


@app.command()
def records(
    name: Annotated[
        list[str] | None, typer.Argument(help="Records; leave out for all.")
    ] = None,
) -> None:
    """Repeat the probes of what is recorded, and list each variant as current or stale,
    with its runs, their precision and the edition of their data.

    A stale variant's code computes something else than when it was recorded.
    """
    from course_tools.record_command import show_states

    show_states(name or [])


@app.command()
def pretrain(
    out: Annotated[
        Path,
        typer.Option(
            help="The folder of the run: plan, checkpoint, model, log and model card."
        ),
    ],
    minutes: Annotated[
        float | None,
        typer.Option(help="The budget, turned into steps once and for all."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="The budget.")] = None,
    decay: Annotated[
        float | None,
        typer.Option(help="Share of the budget in which the rate falls; 0.2."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on to the planned end; begin if there is none."
        ),
    ] = False,
    prolong: Annotated[
        bool,
        typer.Option("--prolong", help="Add the budget to the steps that are made."),
    ] = False,
    size: Annotated[
        str | None, typer.Option(help="tiny, mini, small, medium, base or large; mini.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A corpus: pydocs, stories or wikitext2_raw; pydocs."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where it comes from: embedded, hub or a folder.")
    ] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Tokens of the vocabulary; 8192.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens of a sequence; 128.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Sequences of a step, over all processes; 128.")
    ] = None,
    accumulate: Annotated[
        int | None, typer.Option(help="Batches that a step is cut into; 1.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="The peak; by size.")
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Of matrices; 0.01.")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Of features and attention weights; 0.1.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="First weights: scaled to the width, or published; scaled."),
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option(help="adamw, or muon for the matrices; adamw.")
    ] = None,
    masking_rate: Annotated[
        float | None, typer.Option(help="Share of tokens that are hidden; 0.15.")
    ] = None,
    mask_share: Annotated[
        float | None, typer.Option(help="Share of these that become [MASK]; 0.8.")
    ] = None,
    random_share: Annotated[
        float | None, typer.Option(help="Share that become a random token; 0.1.")
    ] = None,
    masking_unit: Annotated[
        str | None, typer.Option(help="What is hidden: token, word or span.")
    ] = None,
    next_sentence: Annotated[
        bool | None, typer.Option("--next-sentence/--no-next-sentence")
    ] = None,
    static_masking: Annotated[
        bool | None, typer.Option("--static-masking/--dynamic-masking")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="auto (the faster), float32 or bfloat16; auto.")
    ] = None,
    bf16: Annotated[
        bool, typer.Option("--bf16", hidden=True)
    ] = False,  # as the cards of older runs were made
    compile: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Compile the model.")
    ] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Write the weights in float16.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Of weights, masks, pairs and order; 0.")
    ] = None,
) -> None:
    """Pre-train a BERT in a folder; see what it learnt, beside controls, in the model
    card there.

    The same command under torchrun, as `torchrun --nproc_per_node=2 -m course_tools.cli
    pretrain ...`, shares each step.
    """
    import sys

    from course_tools.pretrain_command import PretrainError, run_in_folder

    # what decides the run; None is left to the defaults, or to the plan that the folder
    # holds
    options = {
        "size": size, "data": data, "vocab_size": vocab_size, "max_length": max_length, "batch_size": batch_size,  # noqa: E501
        "accumulate": accumulate, "learning_rate": learning_rate, "weight_decay": weight_decay, "dropout": dropout,  # noqa: E501
        "start": start, "optimizer": optimizer, "masking_rate": masking_rate, "mask_share": mask_share,  # noqa: E501
        "random_share": random_share, "masking_unit": masking_unit, "next_sentence": next_sentence,  # noqa: E501
        "static_masking": static_masking, "precision": precision or ("bfloat16" if bf16 else None),  # noqa: E501
        "compile": compile, "seed": seed,
    }  # fmt: skip
    try:
        card = run_in_folder(
            out, options, command=["course", *sys.argv[1:]], minutes=minutes, steps=steps, decay=decay, resume=resume,  # noqa: E501
            prolong=prolong, source=source, half=half, say=typer.echo,
        )  # fmt: skip
    except PretrainError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error
    typer.echo(card)


app.add_typer(grading_app)

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
    name: Annotated[str, typer.Argument(help="A name that `course data list` prints.")],
    source: Annotated[
        str | None,
        typer.Option(help="embedded, hub, or a folder; COURSE_DATA if left out."),
    ] = None,
) -> None:
    """Load a data set and print its card: facts, figures, examples."""
    from course_lib.data import find, load
    from course_lib.data.cards import card

    try:
        typer.echo(card(find(name), load(name, source)))
    except (ValueError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


@data_app.command("cards")
def data_cards(
    folder: Annotated[Path, typer.Argument(help="Where to write the pages.")] = Path(
        "book/_generated/data"
    ),
) -> None:
    """Write the book's page for each data set."""
    from course_lib.data.cards import write_cards

    for page in write_cards(folder):
        typer.echo(f"wrote {page}")


@data_app.command("convert-multi30k")
def data_convert_multi30k(
    raw: Annotated[
        Path,
        typer.Argument(help="The folder data/task1/raw of the Multi30k repository."),
    ],
    folder: Annotated[
        Path, typer.Argument(help="Where to write multi30k/<split>.parquet.")
    ],
) -> None:
    """Make a folder that `load("multi30k", FOLDER)` reads from the repository's text
    files."""
    from course_lib.data.multi30k import convert

    try:
        for path in convert(raw, folder):
            typer.echo(f"wrote {path}")
    except (ValueError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(code=1) from error


if __name__ == "__main__":
    app()
