"""The steps of `gpu.py`: what each measures, on a GPU and in a dry run.

A step yields its runs: what tells one from the others, and a call that does it. Runs
that compute by themselves in processes of their own start together and are given as
they end. What is measured is called, not written again: the library's tests, the
benchmarks, the grader, `course pretrain`, the studies of chapter 8, the site's pages.
"""

import gc
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
LIBRARY_TESTS = ROOT / "tests" / "library"
Found: TypeAlias = Mapping[str, Any]
Runs: TypeAlias = Iterator[tuple[Found, Callable[[], Found]]]


@dataclass(frozen=True)
class Given:
    """What a step is told."""

    settings: Any
    held: Sequence[Found]  # what its record has already
    data: str | None  # a folder of public data sets, if there is one
    scratch: Path  # where a run keeps what it resumes from


@dataclass(frozen=True)
class Step:
    """One thing to measure."""

    title: str  # printed above it
    slice: int  # the call in which it is made
    minutes: float  # that it may take
    needs: str  # modules that it imports, from other packages
    #: Of a run on a GPU, and of a dry run: two of one dataclass.
    settings: Any
    tiny: Any
    runs: Callable[[Given], Runs]
    data: tuple[str, ...] = ()  # public data sets that it reads
    more_data: tuple[str, ...] = ()  # and those that it reads where they are


def as_they_end(
    given: Given, pool: Executor, work: Sequence[tuple[Found, tuple[Any, ...]]]
) -> Runs:
    """Start the calls that the record lacks, and give each as it ends."""
    with pool:
        started = {
            pool.submit(*call): key
            for key, call in work
            if not any(row.items() >= key.items() for row in given.held)
        }
        for future in as_completed(started):
            yield started[future], future.result


def in_a_process(call: Callable[..., Found], *words: Any) -> Found:
    """Call in a fresh process: after a kernel fails, a process can compute nothing on a
    GPU, and none that has asked for CUDA can be forked. One that dies ends no other."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        return alone.submit(call, *words).result()


@dataclass(frozen=True)
class Tests:
    """Which of the library's tests run, where, and in how many processes."""

    device: str = "cuda"
    files: str = "test_*.py"
    processes: int = 14


def run_tests(given: Given) -> Runs:
    """Run each file of tests in a process of its own."""
    asked = given.settings
    work = [
        ({"file": file.name}, (test_file, file, asked.device))
        for file in sorted(LIBRARY_TESTS.rglob(asked.files))
    ]
    return as_they_end(given, ThreadPoolExecutor(asked.processes), work)


def test_file(file: Path, device: str) -> dict[str, Any]:
    """How many of a file's fast tests passed, how many of these computed on the device,
    and what the others said."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [
            "-q",
            "-m",
            "not slow",
            "--device",
            device,
            f"--junitxml={report}",
            "-o",
            "junit_family=xunit1",
        ]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                *words,
                str(file),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.is_file():
            said = (done.stdout + done.stderr).strip().splitlines() or [
                f"exit status {done.returncode}"
            ]
            reason = next(
                (line for line in said if "Error" in line or "error:" in line), said[-1]
            )
            return {
                "passed": 0,
                "on_device": 0,
                "skipped": 0,
                "failed": {file.name: reason},
            }
        cases = list(ET.parse(report).iter("testcase"))
    failed, skipped, passed = {}, 0, []
    for case in cases:
        trouble = [part for part in case if part.tag in ("failure", "error")]
        if trouble:
            words = (
                (trouble[0].text or trouble[0].get("message", "")).strip().splitlines()
            )
            failed[case.get("name", "")] = next(
                (line for line in words if line.startswith("E ")), words[-1]
            ).strip()
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed.append(case)
    computed = [
        case
        for case in passed
        if case.find("properties/property[@name='computed_on_device']") is not None
    ]
    return {
        "passed": len(passed),
        "on_device": len(computed),
        "skipped": skipped,
        "failed": failed,
    }


@dataclass(frozen=True)
class Bert:
    """What a training step and an inference read, how they compute, and how often each
    is timed."""

    device: str = "cuda"
    size: str = "base"
    batch: int = 64
    length: int = 512
    precision: str = "bf16"
    compiler: str = "inductor"
    rounds: int = 11


#: Of ours and of transformers: compiled?
COMPILED = ((False, False), (False, True), (True, True))


def race_bert(given: Given) -> Runs:
    """Race ours against `transformers` (attention "sdpa"), each as it is and
    compiled."""
    for mode in ("with optimizer", "inference"):
        for ours, theirs in COMPILED:
            key = {"mode": mode, "ours_compiled": ours, "transformers_compiled": theirs}
            yield key, partial(race_once, given.settings, mode, (ours, theirs))


def race_once(settings: Bert, mode: str, compiled: tuple[bool, bool]) -> dict[str, Any]:
    """Time, tokens a second, the share of the device's matrix rate and the most memory,
    of both sides."""
    import bert
    import bert_sides
    import torch
    from side_by_side import peak_bytes, race

    from course_lib.training.cpu import speed_up
    from course_lib.training.loop import device

    # else its limit on compilations of one function counts those of earlier races
    torch._dynamo.reset()
    where, name, options = device(), settings.precision, bert.Settings()
    vocab = options.base_vocab if settings.size == "base" else options.vocab
    batch = bert_sides.make_batch(settings.batch, settings.length, vocab, False, where)
    model = bert.make_ours(options, settings.size, bert.DROPOUT, where)
    ours = bert_sides.Ours(speed_up(model))
    sides = (ours, bert_sides.Transformers(ours.model))
    bert_sides.check_same(*sides, batch, name, where)
    steps = [bert.steps_of(side, mode, batch, name, where) for side in sides]
    operations = [
        bert.operations(step) for step in steps
    ]  # before compiling, after which they cannot be counted
    for side, wanted in zip(sides, compiled, strict=True):
        if wanted:  # in place; inference calls the encoder alone
            (side.model.bert if mode == "inference" else side.model).compile(
                backend=settings.compiler
            )
    raced = race(*steps, where, settings.rounds)
    found: dict[str, Any] = {"matrix_rate": bert.rate_of(where, name), **raced}
    for who, step, count in zip(("", "peer_"), steps, operations, strict=True):
        seconds = raced[f"{who}milliseconds"] / 1000
        found[f"{who}tokens_a_second"] = settings.batch * settings.length / seconds
        found[f"{who}utilisation"] = count / seconds / found["matrix_rate"]
        found[f"{who}peak_bytes"] = peak_bytes(step, where)
    return found


@dataclass(frozen=True)
class Ladder:
    """Which of BERT's switches are raced, one after the other (`bert.climb`)."""

    device: str = "cuda"
    size: str = "base"
    batch: int = 64
    length: int = 512
    rounds: int = 4
    compiler: str = "inductor"


def climb(given: Given) -> Runs:
    """Race each rung of our training step against `transformers` as it comes."""
    import bert

    from course_lib.training.loop import device

    asked = given.settings
    options = bert.Settings(
        sizes=(asked.size,),
        length=asked.length,
        tiny_batch=asked.batch,
        cuda_length=asked.length,
        cuda_batch=asked.batch,
        ladder_rounds=asked.rounds,
    )
    return bert.climb(options, device(), asked.compiler)


@dataclass(frozen=True)
class Answers:
    """Which right answers to the assignments are run, and in how many processes."""

    device: str = "cuda"
    assignments: tuple[str, ...] = ()  # none named: all
    differently: bool = True  # the right answers that are written differently, too
    processes: int = 12


def run_answers(given: Given) -> Runs:
    """Run each right answer with its tests: the references first."""
    from course_tools.grading.assignments.mutants import load_cases
    from course_tools.grading.assignments.mutants_run import REFERENCE
    from course_tools.grading.assignments.release import assignments

    asked = given.settings
    names = asked.assignments or tuple(assignments(ROOT))
    cases = [(name, REFERENCE) for name in names]
    if asked.differently:
        right = {name: load_cases(name, ROOT)[1] for name in names}
        cases += [(name, answer.name) for name in names for answer in right[name]]
    work = [
        ({"assignment": name, "answer": case}, (in_a_process, mark_answer, name, case))
        for name, case in cases
    ]
    return as_they_end(given, ThreadPoolExecutor(asked.processes), work)


def mark_answer(name: str, case: str) -> Found:
    """What an answer earns where its notebook may see a GPU, in a fresh process."""
    import torch

    from course_tools.grading.assignments import mutants_run
    from course_tools.grading.assignments.mutants import load_cases
    from course_tools.grading.assignments.source import read_source

    mutants_run.get_ready()
    folder = ROOT / "solutions" / name
    notebook = read_source(folder / f"{name}.py")
    known = {answer.name: answer.changes for answer in load_cases(name, ROOT)[1]}
    os.chdir(folder)  # beside what the assignment ships
    started = time.perf_counter()
    outcome = mutants_run.run_from_the_start(notebook, known.get(case, {}))
    marks = [*outcome.student.items(), *outcome.grader.items()]
    return {
        "points": sum(mark.points for mark in outcome.grader.values()),
        "most": sum(mark.max_points for mark in outcome.grader.values()),
        "failed": {
            cell: mark.words for cell, mark in marks if mark.points < mark.max_points
        },
        "bytes_on_device": torch.cuda.max_memory_allocated(),
        "took": round(time.perf_counter() - started, 1),
    }


@dataclass(frozen=True)
class Grading:
    """Which assignment `course grade` marks, on what, and behind which walls."""

    device: str = "cuda"
    assignment: str = "attention"
    asks_for: str = "gpu"
    walls: tuple[str, ...] = ("bubblewrap", "unsafe")


def grade_on_workers(given: Given) -> Runs:
    """Grade the reference with a worker that has the GPU, behind each wall."""
    for wall in given.settings.walls:
        yield {"wall": wall}, partial(grade_behind, wall, given.settings)


def grade_behind(wall: str, settings: Grading) -> Found:
    """Release an assignment that asks for a device, hand the reference in, and grade
    it; say why where there is no such wall, or no device behind it."""
    import jupytext
    import nbformat
    from nbgrader.utils import is_grade

    from course_tools.grading.assignments import source
    from course_tools.grading.assignments.release import release
    from course_tools.grading.run.grade import grade
    from course_tools.grading.sandbox.sandbox import NoIsolation

    name = settings.assignment
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder)
        shutil.copy(ROOT / "nbgrader_config.py", course)
        shipped = source.copy_idle(name, ROOT, course)
        text = course / "solutions" / name / f"{name}.py"
        notebook = source.parse_source(text)
        notebook.metadata["course"]["device"] = settings.asks_for
        jupytext.write(notebook, text, fmt="py:percent")
        released = release(name, course)
        place = course / "submitted" / "reference" / name
        place.mkdir(parents=True)
        for file in shipped:
            shutil.copy(released.parent / file, place)
        handed_in = source.answered(
            nbformat.read(released, 4), source.read_source(text)
        )
        nbformat.write(handed_in, place / f"{name}.ipynb")
        started = time.perf_counter()
        try:
            [result] = grade(name, course, isolation=wall).results
        except NoIsolation as error:
            return {"refused": str(error)}
    tests = [x for x in handed_in.cells if x.cell_type == "code" and is_grade(x)]
    return {
        "points": result.earned,
        "most": sum(cell.metadata.nbgrader.points for cell in tests),
        "problem": result.problem,
        "notes": result.notes,
        "took": round(time.perf_counter() - started, 1),
    }


@dataclass(frozen=True)
class Attention:
    """Which layers are measured at which lengths: one sentence, forward and
    backward."""

    device: str = "cuda"
    dim: int = 512
    heads: int = 8
    lengths: tuple[int, ...] = (1024, 2048, 4096, 8192, 16384)
    precisions: tuple[str, ...] = ("fp32", "bf16")
    rounds: int = 5


def measure_attention(given: Given) -> Runs:
    """Memory and time of a training step, ours and torch's, fused and written out."""
    asked = given.settings
    ways = product(asked.precisions, ("ours", "torch"), ("fused", "explicit"))
    for (name, who, path), length in product(ways, asked.lengths):
        key = {"precision": name, "who": who, "path": path, "length": length}
        yield key, partial(attention_cost, asked, **key)


def attention_cost(
    settings: Attention, precision: str, who: str, path: str, length: int
) -> Found:
    """Bytes and milliseconds; neither where the device has too little memory, which is
    a finding too."""
    import attention
    import side_by_side
    import torch

    from course_lib.training.loop import device

    where = device()
    sizes = attention.Settings(memory_dim=settings.dim, memory_heads=settings.heads)
    step = attention.memory_step(sizes, who, path, length, where)

    def in_precision() -> None:
        with side_by_side.precision(precision, where):
            step()

    try:
        peak = side_by_side.peak_bytes(in_precision, where)
        rounds = range(settings.rounds)
        took = [side_by_side.seconds(in_precision, where) for _ in rounds]
    except torch.OutOfMemoryError:
        return {"bytes": None, "milliseconds": None}
    finally:
        del step
        gc.collect()
        torch.cuda.empty_cache()
    return {"bytes": peak, "milliseconds": 1000 * statistics.median(took)}


@dataclass(frozen=True)
class Words:
    """Sentences of which lengths are trained on and decoded, how many at a time, and
    how often."""

    device: str = "cuda"
    lengths: tuple[int, ...] = (10, 40, 100)
    batch: int = 32
    repeats: int = 7


def time_words(given: Given) -> Runs:
    """Time chapter 3's two translators, untrained."""
    from course_lab.ch01_seq2seq import seq2seq
    from course_lab.ch03_transformer import transformer

    asked, plan = given.settings, transformer.PLANS["short"]
    corpus = seq2seq.prepare(plan.recipe, source="embedded")
    models = {
        name: seq2seq.build(x.recipe, corpus, x.attention, seed=0)
        for name, x in plan.variants.items()
    }
    for length in asked.lengths:
        yield {"length": length}, partial(words_of, models, length, asked)


def words_of(models: Mapping[str, Any], length: int, settings: Words) -> Found:
    """Microseconds a target word in each repeat, by model and kind."""
    from course_lab.ch03_transformer.speed import microseconds_per_word

    times = microseconds_per_word(models, [length], settings.batch, settings.repeats)
    return {
        model: {kind: [row[0] for row in rows] for kind, rows in of_model.items()}
        for model, of_model in times.items()
    }


@dataclass(frozen=True)
class Pretraining:
    """Which models are pre-trained on which corpora, and for how long."""

    device: str = "cuda"
    sizes: tuple[str, ...] = ("mini", "small")
    corpora: tuple[str, ...] = ("stories", "pydocs", "wikitext2_raw")
    minutes: float | None = 0.5
    steps: int | None = None
    vocab: int = 8192
    batch: int = 128
    learning_rate: float = 5e-4  # as are the next two, that of the recorded mini
    optimizer: str = "muon"
    dropout: float = 0.0


def pretrain_models(given: Given) -> Runs:
    """Pre-train as `course pretrain` does; a run that was ended goes on where it
    stood."""
    asked = given.settings
    for corpus, size in product(asked.corpora, asked.sizes):
        public = corpus == "wikitext2_raw"
        if public and not has_training_split(given.data, corpus):
            print(
                f"{size} on {corpus} left out: name a folder with {corpus}/train.txt,"
                " or train.parquet, with --data"
            )
            continue
        source = given.data if public else "embedded"
        folder = given.scratch / f"{corpus}-{size}"
        run = partial(pretrain_model, asked, size, corpus, source, folder)
        yield {"size": size, "data": corpus}, run


def has_training_split(folder: str | None, name: str) -> bool:
    """Whether a folder of public data sets has rows to train on."""
    return folder is not None and any((Path(folder) / name).glob("train.*"))


def pretrain_model(
    settings: Pretraining, size: str, corpus: str, source: str | None, folder: Path
) -> Found:
    """What a model has learnt and cost, beside the controls of its model card."""
    from course_lab.ch06_pretraining.pretrain_results import LOG
    from course_tools.pretrain_command import run_in_folder

    options = {
        "size": size,
        "data": corpus,
        "vocab_size": settings.vocab,
        "batch_size": settings.batch,
        "learning_rate": settings.learning_rate,
        "optimizer": settings.optimizer,
        "dropout": settings.dropout,
    }
    run_in_folder(
        folder,
        options,
        command=["python", "benchmarks/gpu.py", "pretraining"],
        minutes=settings.minutes,
        steps=settings.steps,
        resume=True,
        source=source,
    )
    log = json.loads((folder / LOG).read_text(encoding="utf-8"))
    found = log["results"]
    return {
        "steps": log["plan"]["training"]["steps"],
        "precision": log["plan"]["training"]["precision"],
        "flops": found["work"]["flops"],
        **found["speed"],
        "test": found["scores"]["test"],
    }


@dataclass(frozen=True)
class FineTuning:
    """Which tasks of chapter 8 are learnt in which ways, from all their rows."""

    device: str = "cuda"
    tasks: tuple[str, ...] = ("rte", "mrpc", "stsb", "cola", "sst2")
    uses: tuple[str, ...] = ("fine-tuned", "frozen", "from scratch")
    checkpoint: str = "mini"
    seeds: int = 5
    steps: int | None = None  # None: as many epochs as the chapter's plan has
    precision: str = "bfloat16"
    processes: int = 8


def fine_tune(given: Given) -> Runs:
    """Train every model of every task with one seed before the next seed begins."""
    asked = given.settings
    ways = product(range(asked.seeds), asked.tasks, asked.uses)
    work = [
        (
            {"variant": f"{task}, {use}", "seed": seed},
            (in_a_process, tune, asked, task, use, seed, given.data),
        )
        for seed, task, use in ways
    ]
    return as_they_end(given, ThreadPoolExecutor(asked.processes), work)


def tune(
    settings: FineTuning, task: str, use: str, seed: int, data: str | None
) -> Found:
    """One run of chapter 8's study of a task, with all labels, tested on all rows."""
    from course_lab.ch08_finetuning import finetuning_plans
    from course_lib.files import CHECKPOINTS

    study = finetuning_plans.PLANS[task]
    planned = next(x for x in study.variants.values() if x.use == use)
    config = replace(planned.config, precision=settings.precision, progress=False)
    if settings.steps is not None:
        config = replace(config, steps=settings.steps)
    variant = replace(planned, labels=None, whole=False, config=config)
    study = replace(study, variants={use: variant})
    study = replace(study, shared={**study.shared, "tested": None})
    checkpoint = str(CHECKPOINTS / settings.checkpoint)
    inputs = finetuning_plans.read(study, data, checkpoint)._replace(kept=None)
    return finetuning_plans.run(study, use, seed, inputs)


@dataclass(frozen=True)
class Pairs:
    """Which models read sentences alone and in pairs, and how many of them."""

    device: str = "cuda"
    sizes: tuple[str, ...] = ("mini", "base")
    sentences: int = 1000
    pairs: int = 1000
    rounds: int = 3
    length: int = 128
    paragraphs: int = 10_000  # of pydocs that are drawn from; 0: generated sentences


def compare_costs(given: Given) -> Runs:
    """Time both ways to find the closest of 10,000 sentences, extrapolated from
    samples."""
    from course_lab import stand_ins
    from course_lab.ch09_sentence_bert.sentence_cost import KINDS
    from course_lab.ch09_sentence_bert.sentences import draw_paragraphs

    asked = given.settings
    number = asked.paragraphs
    texts = draw_paragraphs(number).texts if number else list(stand_ins.sentences())
    for size, kind in product(asked.sizes, KINDS):
        yield {"size": size, "kind": kind}, partial(cost_of, asked, texts, size, kind)


def cost_of(settings: Pairs, texts: Sequence[str], size: str, kind: Any) -> Found:
    """Milliseconds of a bi-encoder and of a cross-encoder, and their ratio. The weights
    are drawn: no time depends on them."""
    import sentence_bert

    from course_lab.ch06_pretraining.pretrain import SIZES
    from course_lab.ch09_sentence_bert.sentence_cost import measure_cost
    from course_lib.bert.files import save_bert
    from course_lib.bert.model import BertForPreTraining
    from course_lib.files import CHECKPOINTS
    from course_lib.training.loop import device, set_seed
    from course_lib.wordpiece.fast import FastWordPiece

    tokenizer = FastWordPiece.load(CHECKPOINTS / "mini")
    set_seed(0)
    model = BertForPreTraining(SIZES[size](vocab_size=len(tokenizer)))
    with tempfile.TemporaryDirectory() as folder:
        save_bert(model, folder, tokenizer)
        cost = measure_cost(
            Path(folder),
            texts,
            settings.sentences,
            settings.pairs,
            settings.rounds,
            settings.length,
            kind,
            device().type,
        )
    return sentence_bert.told(cost)


@dataclass(frozen=True)
class Pages:
    """Which pages are executed, how many at a time, and how many cells of each."""

    device: str = "cuda"
    pages: str = "*"
    cells: int | None = None  # None: all
    processes: int = 10


def execute_pages(given: Given) -> Runs:
    """Execute pages, each in a kernel of its own."""
    from course_tools.site.build import executed_pages

    asked = given.settings
    pages = [page for page in executed_pages(ROOT) if page.match(f"{asked.pages}.md")]
    work = [
        ({"page": page.stem}, (execute_page, page, asked.device, asked.cells))
        for page in pages
    ]
    return as_they_end(given, ThreadPoolExecutor(asked.processes), work)


def execute_page(page: Path, device: str, most: int | None) -> Found:
    """Which cells of a page raise, and what: the first is the fault, what follows may
    stem from it."""
    from course_tools.site.build import kernel_environment
    from course_tools.site.cache import PageCache
    from course_tools.site.execute import errors_of

    notebook = PageCache(ROOT).notebook(page)
    code = [x for x, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    chosen = code[:most]
    notebook.cells = notebook.cells[: chosen[-1] + 1]
    environment = kernel_environment(ROOT / "_build") | {"COURSE_DEVICE": device}
    started = time.perf_counter()
    errors = errors_of(page, notebook, environment)
    took = round(time.perf_counter() - started, 1)
    return {"cells": len(chosen), "took": took, "errors": errors}


#: What the library's own modules need.
LIBRARY = (
    "torch numpy scipy sklearn jaxtyping datasets pyarrow tokenizers safetensors"
    " huggingface_hub sacrebleu filelock tqdm"
)
PEERS = f"{LIBRARY} transformers rich"
GRADER = (
    f"{LIBRARY} nbgrader nbformat nbclient jupytext jupyter_client traitlets IPython"
    " sqlalchemy typer rich"
)
SITE = (
    f"{LIBRARY} nbclient ipykernel jupyter_cache jupytext myst_nb myst_parser"
    " matplotlib psutil packaging yaml transformers sentence_transformers"
)
#: In the order of their worth. A slice takes nine minutes at most, all of them 25.
STEPS = {
    "tests": Step(
        "the library's fast tests",
        1,
        2.5,
        f"{LIBRARY} matplotlib pytest hypothesis beartype",
        Tests(),
        Tests("cpu", "test_mu*.py", 1),
        run_tests,
    ),
    "bert": Step(
        "BERT-base on sequences of 512 tokens, beside transformers",
        1,
        4,
        PEERS,
        Bert(),
        Bert(
            "cpu",
            "tiny",
            batch=2,
            length=16,
            precision="fp32",
            compiler="eager",
            rounds=2,
        ),
        race_bert,
    ),
    "ladder": Step(
        "BERT-base's training step, one switch after the other",
        1,
        2.5,
        PEERS,
        Ladder(),
        Ladder("cpu", "tiny", 2, 16, 1, "eager"),
        climb,
    ),
    "answers": Step(
        "the right answers to all assignments",
        2,
        2,
        GRADER,
        Answers(),
        Answers("cpu", ("wordpiece",), False, 1),
        run_answers,
    ),
    "grading": Step(
        "course grade, with a worker that has the GPU",
        2,
        1.25,
        GRADER,
        Grading(),
        Grading("cpu", "wordpiece", "gpu or cpu"),
        grade_on_workers,
    ),
    "attention": Step(
        "attention's memory and time to 16,384 tokens",
        2,
        0.75,
        f"{LIBRARY} rich",
        Attention(),
        Attention("cpu", 8, 2, (8, 16), ("fp32",), 1),
        measure_attention,
    ),
    "words": Step(
        "a Transformer and a GRU, a word at a time and all at once",
        2,
        0.5,
        f"{LIBRARY} matplotlib",
        Words(),
        Words("cpu", (3, 5), 2, 1),
        time_words,
    ),
    "pretraining": Step(
        "mini and small, pre-trained for half a minute",
        2,
        4.5,
        LIBRARY,
        Pretraining(),
        Pretraining("cpu", ("tiny",), ("wikitext2_raw",), None, 2, 200, 8),
        pretrain_models,
        more_data=("wikitext2_raw",),
    ),
    "finetuning": Step(
        "chapter 8's models of GLUE's tasks, from all labels, five seeds",
        3,
        3,
        LIBRARY,
        FineTuning(),
        FineTuning(
            "cpu", ("cola", "stsb"), ("fine-tuned",), "tiny", 1, 2, "float32", 1
        ),
        fine_tune,
        data=("rte", "mrpc", "stsb", "cola", "sst2"),
    ),
    "pairs": Step(
        "10,000 sentences, read in pairs and alone",
        3,
        1,
        f"{PEERS} sentence_transformers",
        Pairs(),
        Pairs("cpu", ("tiny",), 4, 2, 1, 16, 0),
        compare_costs,
    ),
    "pages": Step(
        "the chapters and their laboratories",
        3,
        3,
        SITE,
        Pages(),
        Pages("cpu", "04-*-lab", 1, 1),
        execute_pages,
    ),
}
