"""What we do otherwise than the original BERT: theirs as published, ours from plans and
logs, why, and what it did.

Ours is read, not typed: from the configurations and logs of the shipped checkpoints,
and from chapter 6's live recipe.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from course_lab.ch06_pretraining.pretrain import ADAMW, plan_from
from course_lab.ch06_pretraining.pretraining_plans import BASE
from course_lab.ch06_pretraining.pretraining_stories import LIVE
from course_lab.ch06_pretraining.shipped import CHECKPOINTS, read_log
from course_lab.ch08_finetuning.finetuning_plans import PLANS as FINETUNING
from course_tools.claims.measured import number
from course_tools.claims.sources import Lead, Recorded, Source

NAMES = ("tiny", "mini")
STORIES = "pretraining-stories"


@dataclass(frozen=True)
class Deviation:
    """One thing that we do otherwise.

    Parameters
    ----------
    what
        It is about.
    theirs
        As published, in Markdown without the citation.
    cite
        Keys of the references, separated by commas.
    ours
        Writes what we do, from plans and logs.
    why
        The reason.
    what_changes
        What the measured effect is; empty where no record has one.
    effect
        Ours minus theirs, or the other way round, as `what_changes` says.
    """

    what: str
    theirs: str
    cite: str
    ours: Callable[[], str]
    why: str
    what_changes: str = ""
    effect: Source | None = None


def _logs() -> Mapping[str, dict[str, Any]]:
    return {name: read_log(name) for name in NAMES}


def shipped(write: Callable[[dict[str, Any]], str]) -> str:
    """Write something of each shipped checkpoint, once if it is the same of all."""
    texts = {name: write(log) for name, log in _logs().items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text}" for name, text in texts.items())


def everywhere(write: Callable[[Any], str]) -> str:
    """Write something of each plan of pre-training, shipped and live, once where it is
    the same."""
    texts = {name: write(plan_from(log["plan"])) for name, log in _logs().items()}
    texts["live"] = write(LIVE.last)
    kinds: dict[str, list[str]] = {}
    for name, text in texts.items():
        kinds.setdefault(text, []).append(name)
    if len(kinds) == 1:
        return next(iter(kinds))
    return "; ".join(f"{' and '.join(names)}: {text}" for text, names in kinds.items())


def _lead(ahead: str, behind: str, *path: str | int) -> Lead:
    figure = path or ("scores", "mlm_accuracy")
    first, second = (
        Recorded(STORIES, figure, {"variant": name}, scale=100.0)
        for name in (ahead, behind)
    )
    return Lead(first, second)


def _text() -> str:
    read = shipped(lambda log: f"{log['results']['sizes']['train']['tokens']:,} pieces")
    return (
        f"documentation of Python packages (`pydocs`), {read}; live: generated stories"
    )


def _sizes() -> str:
    def write(plan: Any) -> str:
        config = plan.config(plan.vocab_size)
        return (
            f"{config.num_hidden_layers} layers, {config.hidden_size} features,"
            f" {config.num_attention_heads} heads"
        )

    return everywhere(write)


def _rate(plan: Any) -> str:
    training = plan.training
    falls = (
        f", then {training.decay_steps:,} steps of decay"
        if training.decay_steps
        else ""
    )
    return (
        f"{training.learning_rate:g} after {training.warmup_steps:,} steps of warm-up,"
        f" {training.schedule}{falls}"
    )


def _optimizer(plan: Any) -> str:
    return {
        "muon": "Muon for the matrices of the layers, AdamW for the rest",
        "adamw": "AdamW",
    }[plan.optimizer]


def _beta() -> str:
    return f"{ADAMW.keywords['betas'][1]:g}, with ε = {ADAMW.keywords['eps']:g}"


def _start(plan: Any) -> str:
    config = plan.config(plan.vocab_size)
    scaled = f"1/√d = {config.hidden_size**-0.5:.3f}, positions begin as sinusoids"
    return {"published": "as published", "scaled": scaled}[plan.start]


def _precision() -> str:
    training = everywhere(
        lambda plan: (
            "bfloat16 where it is safe"
            if plan.training.precision == "bfloat16"
            else "float32"
        )
    )
    dtypes = {str(_config(name)["dtype"]) for name in NAMES}
    return (
        f"{training}; the shipped weights are stored as {' and '.join(sorted(dtypes))}"
    )


def _config(name: str) -> dict[str, Any]:
    return dict(
        json.loads((CHECKPOINTS / name / "config.json").read_text(encoding="utf-8"))
    )


def _masking(plan: Any) -> str:
    return f"{100 * plan.masking.rate:.0f}%"


def _finetuning() -> str:
    config = FINETUNING["pydocs-topic"].variants["fine-tuned, 200"].config
    steps, rate = config.steps or 0, number(config.learning_rate, -2)
    passes = steps * config.batch_size / 200
    return (
        f"for 200 labels, e.g. topics: {steps} steps of {config.batch_size},"
        f" {passes:.0f} passes, rate {rate}"
    )


DEVIATIONS = (
    Deviation(
        "Text",
        "BooksCorpus and English Wikipedia, 3,300 million words",
        "devlin2019",
        _text,
        "A book that anybody can build needs text that is on the machine already. It"
        " has one kind of language.",
    ),
    Deviation(
        "Vocabulary",
        "30,522 pieces, from a trainer that was never published",
        "devlin2019,bert2018",
        lambda: (
            everywhere(lambda plan: f"at most {plan.vocab_size:,} pieces")
            + ", merged by frequency"
        ),
        "A small text fills a small vocabulary, and rows that are hardly met learn"
        " little (chapter 4).",
    ),
    Deviation(
        "Size",
        "12 layers, 768 features, 12 heads (base); 24, 1,024 and 16 (large)",
        "devlin2019",
        _sizes,
        "What a CPU trains in minutes. The live model has smaller heads, so that a"
        " narrow state has several.",
        "hidden words guessed on stories, tiny minus mini with equal operations",
        _lead(BASE, "mini, equal compute"),
    ),
    Deviation(
        "Length",
        "128 pieces for nine tenths of the steps, then 512",
        "devlin2019",
        lambda: everywhere(lambda plan: f"{plan.max_length} pieces"),
        "Paragraphs of documentation and stories are short. Positions behind the"
        " longest are not learnt.",
    ),
    Deviation(
        "Batch",
        "256 sequences",
        "devlin2019",
        lambda: everywhere(lambda plan: f"{plan.batch_size} sequences"),
        "Small batches give more steps for the same work.",
    ),
    Deviation(
        "Steps",
        "1,000,000, about 40 passes through the text",
        "devlin2019",
        lambda: (
            shipped(
                lambda log: (
                    f"{log['plan']['training']['steps']:,},"
                    f" {log['results']['work']['tokens'] / log['results']['sizes']['train']['tokens']:.0f}"  # noqa: E501
                    " passes"
                )
            )
            + f"; live: {LIVE.steps:,}"
        ),
        "The time there is: minutes, not days.",
    ),
    Deviation(
        "Optimizer",
        "Adam with weight decay",
        "devlin2019",
        lambda: everywhere(_optimizer),
        "Muon {cite:p}`jordan2024` moves what is hardly learnt as far as what is.",
        "hidden words guessed on stories, Muon minus AdamW at twice the rate that it"
        " has beside Muon",
        _lead(BASE, "AdamW"),
    ),
    Deviation(
        "Second moment of Adam",
        "β₂ = 0.999",
        "devlin2019",
        _beta,
        "With 0.999 the loss leaps where gradients suddenly grow after the plateau."
        " RoBERTa made the same change {cite:p}`liu2019`.",
    ),
    Deviation(
        "Learning rate",
        "0.0001 after 10,000 steps of warm-up, then falling on a line",
        "devlin2019",
        lambda: everywhere(_rate),
        "Small models stand, and need, higher rates. A level schedule can be prolonged;"
        " the fall comes at the end.",
    ),
    Deviation(
        "Dropout",
        "0.1",
        "devlin2019",
        lambda: everywhere(lambda plan: f"{plan.dropout:g}"),
        "A small model that reads each text a few times has no time to learn it by"
        " heart.",
    ),
    Deviation(
        "Share that is hidden",
        "15%",
        "devlin2019",
        lambda: everywhere(_masking),
        "Two minutes are short, and more hidden words are more lessons.",
        "hidden words guessed on stories, 30% minus 15%",
        _lead("rate 0.30", "rate 0.15"),
    ),
    Deviation(
        "Masks",
        "drawn before training, ten times for each text",
        "devlin2019,liu2019",
        lambda: everywhere(
            lambda plan: (
                "drawn once" if plan.static_masking else "drawn anew in each epoch"
            )
        ),
        "It costs nothing, and later work does so {cite:p}`liu2019`.",
        "hidden words guessed on stories, new masks minus masks drawn once",
        _lead(BASE, "static masking"),
    ),
    Deviation(
        "Unit that is hidden",
        "single pieces; whole words in a later release",
        "devlin2019,bert2018",
        lambda: everywhere(lambda plan: f"single {plan.masking.unit}s"),
        "As first published. `MaskingConfig` has whole words and spans.",
    ),
    Deviation(
        "Wrong pairs",
        "the second segment is from a random document",
        "devlin2019",
        lambda: (
            "pairs exchange their second segments, so both labels have the same ones"
        ),
        "Otherwise a model could tell the label from the second segment alone.",
        "probes of the last layer, with next sentences minus without",
        _lead(BASE, "no next sentence", "downstream"),
    ),
    Deviation(
        "First weights",
        "normal with deviation 0.02 at every width",
        "devlin2019,bert2018",
        lambda: everywhere(_start),
        "At 128 features 0.02 makes all attention weights nearly equal, and a model"
        " stays on the first plateau.",
    ),
    Deviation(
        "Precision",
        "float32 on TPUs",
        "bert2018",
        _precision,
        "Half the bits, less time and smaller files; norms and losses stay in float32.",
    ),
    Deviation(
        "Fine-tuning",
        "2 to 4 passes in batches of 16 or 32, rates of 2 to 5 · 10⁻⁵",
        "devlin2019",
        _finetuning,
        "Small models stand higher rates {cite:p}`bert2018`, and few labels need more"
        " passes {cite:p}`mosbach2021`.",
    ),
)
