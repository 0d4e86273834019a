"""What a page shows of a record of `benchmarks/gpu.py`: a table with device and date,
or nothing."""

from pathlib import Path

import pytest
from pages import build_without_reference, lay_out_book

from course_lab import gpu, records

BOOK = Path(__file__).parents[2] / "book"
#: Laboratory -> the steps whose records it shows.
SHOWN = {
    "02-self-attention": ("attention",),
    "03-transformer": ("words",),
    "05-bert": ("bert", "ladder"),
    "06-pretraining": ("pretraining",),
    "08-fine-tuning": ("finetuning",),
    "09-sentence-bert": ("pairs",),
}
CELL = """```{code-cell} ipython3
:tags: [remove-input]
on_a_gpu("%s"%s)
```
"""
IMPORT = """```{code-cell} ipython3
:tags: [hide-input]
from pathlib import Path
from course_lab.gpu import on_a_gpu
```

"""

RACE = {"milliseconds": 40.0, "tokens_a_second": 8e5, "utilisation": 0.5}
SIDES = {
    **{f"{side}{what}": x for side in ("", "peer_") for what, x in RACE.items()},
    "peak_bytes": 2.5e9,
    "peer_peak_bytes": 3e9,
}
SCORES = {"mlm_accuracy": 0.61, "mlm_accuracy_interval": 0.004}
#: By step, a few results, and words that the table made of them has.
FOUND: dict[str, tuple[list[dict], tuple[str, ...]]] = {
    "tests": (
        [
            {
                "file": "test_a.py",
                "passed": 5,
                "on_device": 4,
                "skipped": 1,
                "failed": {"test_b": "E a | b"},
            }
        ],
        ("5 tests passed, of which 4 computed on the device", r"E a \| b"),
    ),
    "bert": (
        [
            {
                "mode": "inference",
                "ours_compiled": False,
                "transformers_compiled": True,
                **SIDES,
            }
        ],
        ("transformers, compiled", "| 40.0 | 800,000 | 50% | 2.50 |"),
    ),
    "ladder": (
        [
            {"mode": "bf16", "ratio": 2.0, "low": 1.9, "high": 2.25, **RACE},
            {"mode": "on a CPU", "ratio": 2.0, "low": 1.9, "high": 2.25}
            | {"milliseconds": 7.0},
        ],
        ("| bf16 | 40.0 | 2.00 (1.90 to 2.25) | 50% |", "| 2.00 (1.90 to 2.25) |  |"),
    ),
    "answers": (
        [
            {
                "assignment": "bert",
                "answer": "reference",
                "points": 3.0,
                "most": 4.0,
                "failed": {"gelu-tests": "AssertionError: no\nsecond line"},
                "bytes_on_device": 512,
            }
        ],
        ("1 right answers: 0 have full marks, 1 computed", "no second line"),
    ),
    "grading": (
        [
            {"wall": "bubblewrap", "refused": "no such wall here"},
            {"wall": "unsafe", "points": 4.0, "most": 4.0, "problem": ""},
        ],
        ("| bubblewrap | no such wall here |", "| unsafe | 4 of 4 points |"),
    ),
    "attention": (
        [
            {
                **{"precision": "bf16", "who": "ours", "path": path},
                **{"length": length, "bytes": size, "milliseconds": 1.25},
            }
            for path, length, size in (
                ("fused", 1024, 2**20),
                ("fused", 2048, 2**21),
                ("explicit", 1024, None),
            )
        ],
        ("| 1,024 tokens | 2,048 tokens |", "1.2 ms, 2 MiB", "| too large |"),
    ),
    "words": (
        [
            {
                "length": 40,
                "GRU": {"training": [3.0, 5.0, 4.0]},
                "Transformer": {"training": [2.0, 1.0, 1.5]},
            }
        ],
        ("| GRU | Transformer |", "| training | 40 | 4.0 | 1.5 |"),
    ),
    "pretraining": (
        [
            {
                **{"size": "mini", "data": "stories", "seconds": 36.0, "steps": 4000},
                **{"flops": 3.1e15, "tokens_per_second": 2e6, "utilisation": 0.2},
                "test": {
                    "model": SCORES,
                    "untrained": SCORES | {"mlm_accuracy": 0.01},
                    "trigram": SCORES | {"mlm_accuracy": 0.4},
                },
            }
        ],
        ("| mini, stories | 36 s, 4,000 steps | 3.1e+15 |", "| 61.0% ± 0.4% | 40.0% |"),
    ),
    "finetuning": (
        [
            {"variant": "rte, fine-tuned", "seed": x, "scores": {"accuracy": y}}
            for x, y in enumerate((0.6, 0.62))
        ],
        ("| rte | fine-tuned | accuracy | 61.0 ± 12.7 | 2 |",),
    ),
    "pairs": (
        [
            {
                **{"size": "base", "kind": "first state", "milliseconds": 5000.0},
                **{"peer_milliseconds": 1.8e8, "ratio": 36e3, "low": 35e3},
                "high": 37e3,
            }
        ],
        ("| base | first state | 50.00 h | 5.0 s | 36,000 (35,000 to 37,000) |",),
    ),
    "pages": (
        [
            {"page": "02-self-attention", "errors": {}},
            {"page": "05-bert", "errors": {"cell 3 (line 90)": "AssertionError: 0.2"}},
        ],
        ("2 pages: 1 without an error.", "| 05-bert | cell 3 (line 90) |"),
    ),
}


def write(step: str, folder: Path) -> None:
    results, _ = FOUND[step]
    made = {"device": "cuda", "name": "NVIDIA H100", "threads": 8, "torch": "2.11"}
    record = records.Record(
        f"gpu-{step}",
        f"python benchmarks/gpu.py {step}",
        {},
        [],
        results,
        "c0ffee" * 6,
        made,
        "2026-11-25T14:00:00+00:00",
    )
    records.save(record, folder)


def test_every_step_has_a_table_that_is_tested_here():
    assert gpu.TABLES.keys() == FOUND.keys()


@pytest.mark.parametrize("step", FOUND)
def test_a_record_is_shown_with_device_date_and_figures(step, tmp_path):
    write(step, tmp_path)
    shown = gpu.on_a_gpu(step, tmp_path)
    assert shown is not None
    text = shown.data
    assert text.startswith("**On a GPU**\n")
    assert "2026-11-25 (NVIDIA H100, 8 threads, torch 2.11, commit c0ffeec0ff)" in text
    for words in FOUND[step][1]:
        assert words in text


@pytest.mark.parametrize("step", FOUND)
def test_without_a_record_nothing_is_shown(step, tmp_path):
    assert gpu.on_a_gpu(step, tmp_path) is None


def test_a_page_that_looks_for_a_record_opens_it_so_that_a_build_knows(tmp_path):
    """`course_tools.site.reads` notes what a page opens."""
    with pytest.MonkeyPatch.context() as patch:
        opened = []
        real = Path.open
        patch.setattr(
            Path, "open", lambda path, *words: opened.append(path) or real(path, *words)
        )
        assert gpu.on_a_gpu("words", tmp_path) is None
    assert opened == [tmp_path / "gpu-words.json"]


def test_a_laboratory_has_a_cell_of_its_own_for_each_step_that_it_shows():
    for name, steps in SHOWN.items():
        page = (BOOK / f"{name}-lab.md").read_text(encoding="utf-8")
        shown = [step for step in gpu.TABLES if f'on_a_gpu("{step}")' in page]
        assert sorted(shown) == sorted(steps), name
        assert all(CELL % (step, "") in page for step in steps), name


@pytest.mark.slow
def test_a_page_shows_one_of_two_records_that_is_there_and_nothing_of_the_other(
    tmp_path,
):
    (tmp_path / "found").mkdir()
    write("words", tmp_path / "found")
    place = f', Path("{tmp_path}/found")'
    cells = [CELL % (step, place) for step in ("pairs", "words")]
    lay_out_book(tmp_path, IMPORT + "Before.\n\n" + "\n\nBetween.\n\n".join(cells))
    build_without_reference(tmp_path)
    page = (tmp_path / "_build/html/index.html").read_text(encoding="utf-8")
    before, _, after = page.partition("Between.")
    assert "On a GPU" not in before
    assert "On a GPU" in after
    assert "2026-11-25 (NVIDIA H100" in after
    assert "<td><p>training</p></td>" in after
    assert "cell_output" not in before


@pytest.mark.records
def test_what_laboratories_say_of_a_gpu_is_what_was_measured_there():
    words = sorted(records.load("gpu-words").results, key=lambda row: row["length"])
    for row in words:
        transformer, gru = row["Transformer"], row["GRU with attention"]
        for kind in ("decoding", "decoding one"):  # "the GRU still decodes faster"
            assert min(transformer[kind]) > max(gru[kind]), row["length"]
        slower = min(transformer["training"]) > max(gru["training"])
        assert slower == (row is not words[-1]), "catches up on the longest sentences"
    ratio = {x["mode"]: x["ratio"] for x in records.load("gpu-ladder").results}
    before = ratio["dropout 0"] / ratio["ours, nothing switched on"]
    assert ratio["bf16 autocast"] / ratio["dropout 0"] > before
