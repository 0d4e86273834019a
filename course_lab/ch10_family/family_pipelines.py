"""Our checkpoints through the pipelines of ``transformers``, beside our own `predict`,
which must say the same.

``transformers`` is needed for this module's functions only, and is imported by them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from course_lab.ch06_pretraining.pretrain_scores import guess_with
from course_lab.ch06_pretraining.shipped import fill_gaps
from course_lib.bert.files import load_bert
from course_lib.bert.model import BertForPreTraining
from course_lib.finetuning.predict import predict
from course_lib.finetuning.task_model import TaskModel
from course_lib.wordpiece.fast import FastWordPiece


def open_pipeline(kind: str, folder: str | Path, **options: Any) -> Any:
    """Open a folder that we wrote with a pipeline."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    # its declared overloads know literal names only
    open_one: Any = transformers.pipeline
    return open_one(
        kind,
        model=str(folder),
        tokenizer=str(folder),
        device="cpu",
        dtype=torch.float32,
        **options,
    )


def fill_mask(
    folder: Path, texts: Sequence[str], most: int = 3
) -> list[tuple[list[Any], list[Any]]]:
    """Fill the gap of each text: what the pipeline says, and what we say, as (piece,
    probability)."""
    pipe = open_pipeline("fill-mask", folder, top_k=most)
    model = load_bert(folder, BertForPreTraining, dtype=torch.float32)
    tokenizer = FastWordPiece.load(folder)
    ours = fill_gaps(guess_with(model), texts, tokenizer, most)
    theirs = [
        [(guess["token_str"], guess["score"]) for guess in pipe(text)] for text in texts
    ]
    return list(zip(theirs, ours, strict=True))


def classify(
    model: TaskModel, tokenizer: FastWordPiece, folder: Path, texts: Sequence[str]
) -> list[tuple[tuple[str, float], tuple[str, float]]]:
    """Classify texts: what the pipeline says and what we say, each as (label,
    probability)."""
    model.save_pretrained(folder, tokenizer)
    pipe = open_pipeline("text-classification", folder)
    theirs = [(guess["label"], guess["score"]) for guess in pipe(list(texts))]
    ours = [
        (guess.label, max(guess.probabilities))
        for guess in predict(model, tokenizer, texts)
    ]
    return list(zip(theirs, ours, strict=True))


def tag(
    model: TaskModel, tokenizer: FastWordPiece, folder: Path, texts: Sequence[str]
) -> list[tuple[dict[int, tuple[str, float]], dict[int, tuple[str, float]]]]:
    """Tag words: what the pipeline says and what we say: where a word starts -> (label,
    probability)."""
    model.save_pretrained(folder, tokenizer)
    pipe = open_pipeline(
        "token-classification", folder, aggregation_strategy="none", ignore_labels=[]
    )
    found = []
    for text, words in zip(texts, predict(model, tokenizer, texts), strict=True):
        ours = {word.start: (word.label, word.probability) for word in words}
        # The pipeline tags every piece; a word's tag is that of its first.
        theirs = {
            x["start"]: (x["entity"], float(x["score"]))
            for x in pipe(text)
            if x["start"] in ours
        }
        found.append((theirs, ours))
    return found


def answer(
    model: TaskModel,
    tokenizer: FastWordPiece,
    folder: Path,
    questions: Sequence[tuple[str, str]],
    most: int = 15,
) -> list[tuple[str, str]]:
    """Answer questions on short texts: what the model of ``transformers`` says, and
    what we say."""
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    model.save_pretrained(folder, tokenizer)
    reader = AutoModelForQuestionAnswering.from_pretrained(folder)
    cutter = AutoTokenizer.from_pretrained(folder)
    theirs = []
    for question, context in questions:
        inputs = cutter(
            question, context, return_tensors="pt", return_offsets_mapping=True
        )
        places = inputs.pop("offset_mapping")[0].tolist()
        owners = inputs.sequence_ids(0)
        with torch.no_grad():
            found = reader(**inputs)
        start, end = found.start_logits[0], found.end_logits[0]
        text = [index for index, owner in enumerate(owners) if owner == 1]
        spans = [(i, j) for i in text for j in text if i <= j < i + most]
        first, last = max(spans, key=lambda span: float(start[span[0]] + end[span[1]]))
        theirs.append(context[places[first][0] : places[last][1]])
    ours = [
        guess.text
        for guess in predict(model, tokenizer, list(questions), max_answer_length=most)
    ]
    return list(zip(theirs, ours, strict=True))


def features(
    folder: Path, texts: Sequence[str]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Read the last layer's states: those of the pipeline, and ours, one row for each
    token."""
    pipe = open_pipeline("feature-extraction", folder)
    model, tokenizer = (
        load_bert(folder, BertForPreTraining, dtype=torch.float32),
        FastWordPiece.load(folder),
    )
    found = []
    for text in texts:
        with torch.no_grad():
            ours = model.bert(
                torch.tensor([tokenizer.encode(text).ids])
            ).last_hidden_state[0]
        found.append((torch.tensor(pipe(text)[0]), ours))
    return found
