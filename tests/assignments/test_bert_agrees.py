"""The reference answers of `bert` and `pretraining` are the published program and the
library: the same numbers."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from expect import assert_near
from reference import answers
from safetensors.torch import load_file, save_file

from course_lib.bert.files import load_bert
from course_lib.pretraining.batches import pretraining_loss

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bert():
    return answers("bert", "loading-places", "loading-agreement")


def theirs(config: Any, tensors: dict[str, torch.Tensor]) -> transformers.BertModel:
    """The published program with these numbers."""
    settings = transformers.BertConfig(**fields(config))
    model = (
        transformers.BertModel(settings).to(next(iter(tensors.values())).dtype).eval()
    )
    model.load_state_dict(tensors)
    return model


def fields(config: Any) -> dict[str, Any]:
    """The assignment's config under the names of config.json."""
    values = {name: value for name, value in vars(config).items() if name != "dropout"}
    return {
        **values,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
    }


def test_the_numbers_in_the_notebook_are_those_of_the_published_program(bert):
    config = bert["small_config"]()
    model = theirs(
        config, bert["checkpoint"](config, 81, dtype=torch.float64, scale=0.6)
    )
    pairs = [([7, 8, 3], [9, 5]), ([4], [6])]
    batch = bert["make_batch"](
        [bert["pair_input"](*pair, cls_id=1, sep_id=2) for pair in pairs]
    )
    with torch.no_grad():
        output = model(
            **{**batch, "attention_mask": batch["attention_mask"].long()},
            output_hidden_states=True,
        )
    last, pooled = output.last_hidden_state, output.pooler_output
    steps = [*output.hidden_states, pooled, last, pooled]
    assert [
        [[round(x, 6) for x in row] for row in state.flatten(1)[:, :2].tolist()]
        for state in steps
    ] == bert["STEPS"]


@pytest.mark.parametrize(
    ("seed", "sizes"), [(1, (17, 12, 2, 3, 7, 9)), (2, (11, 10, 5, 2, 23, 14))]
)
def test_the_student_s_bert_the_library_s_and_the_published_one_are_one(
    bert, tmp_path, seed, sizes
):
    config = bert["BertConfig"](*sizes)
    tensors = bert["checkpoint"](config, seed, dtype=torch.float64)
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "bert", **fields(config)}), encoding="utf-8"
    )
    ours = load_bert(tmp_path, dtype=torch.float64).eval()
    student = bert["BertModel"](config).double().eval()
    assert bert["load_published"](student, tensors) == []
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(sizes[0], (3, 8), generator=generator)
    types = torch.randint(2, (3, 8), generator=generator)
    mask = torch.arange(8) < torch.tensor([8, 3, 5])[:, None]
    with torch.no_grad():
        published = theirs(config, tensors)(ids, mask.long(), types)
        library = ours(ids, mask, types)
        hidden, pooled = student(ids, mask, types)
    for output in (published, library):
        assert_near(hidden[mask], output.last_hidden_state[mask], 1e-10, 1e-10)
        assert_near(pooled, output.pooler_output, 1e-10, 1e-10)


@pytest.mark.real_data
def test_the_student_s_bert_reads_a_real_checkpoint(bert):
    data = Path(
        os.environ.get("COURSE_DATA") or ROOT.parent / "shared" / "data"
    ).expanduser()
    folder = data.parent / "models" / "all-MiniLM-L6-v2"
    if not folder.is_dir():
        pytest.skip(
            "no public model: no folder models/all-MiniLM-L6-v2 beside the folder of"
            " public data sets"
        )
    config = bert["BertConfig"](30522, 384, 6, 12, 1536)
    model = bert["BertModel"](config).eval()
    tensors = load_file(folder / "model.safetensors")
    assert bert["load_published"](model, tensors) == ["embeddings.position_ids"] * (
        "embeddings.position_ids" in tensors
    )
    assert sum(bert["count_parameters"](config).values()) == sum(
        p.numel() for p in model.parameters()
    )
    batch = bert["make_batch"](
        [bert["pair_input"]([2026, 3899], [2002, 22455]), bert["pair_input"]([7592])]
    )
    with torch.no_grad():
        hidden, pooled = model(
            batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
        )
        batch["attention_mask"] = batch["attention_mask"].long()
        published = transformers.BertModel.from_pretrained(
            folder, dtype=torch.float32
        ).eval()(**batch)
    assert_near(hidden[0], published.last_hidden_state[0], 1e-4, 1e-4)
    assert_near(pooled, published.pooler_output, 1e-4, 1e-4)


def test_the_student_s_loss_is_the_library_s():
    pretraining = answers("pretraining")
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(4, 6, 19, generator=generator, dtype=torch.float64)
    pairs = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    ids = torch.randint(5, 19, (4, 6), generator=generator)
    _, labels = pretraining["mask_tokens"](
        ids, (0, 1, 2, 3, 4), 4, 19, generator, rate=0.5
    )
    arguments = labels, pairs, torch.tensor([0, 1, 1, 0])
    expected = pretraining_loss(logits, pairs, labels, arguments[2])
    assert_near(pretraining["pretraining_loss"](logits, *arguments), expected, 0, 1e-12)
