"""Our heads are `transformers`' heads: outputs, losses, gradients, dropout and
checkpoints, both ways."""

import json
import warnings

import pytest
import torch
import torch.nn.functional as F
import transformers
from cases import for_each
from expect import refusal
from safetensors.torch import load_file, save_file
from task_peer import CONFIG, KINDS, TaskInputs, by_their_names, lively_task, theirs_for
from torch import Tensor

from course_lib.bert.files import save_bert
from course_lib.bert.model import BertForPreTraining, BertModel
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.finetuning.task_model import average
from course_lib.wordpiece.tokenizer import SPECIAL_TOKENS, WordPiece

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def logits_of(output) -> Tensor:
    if hasattr(output, "start_logits"):
        return torch.stack([output.start_logits, output.end_logits], dim=-1)
    return output if isinstance(output, Tensor) else output.logits


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


# A softmax over positions, or over choices, does not see what is added to all of its
# logits.
FLAT = {
    "spans": ("qa_outputs.bias", "1.output.LayerNorm.bias"),
    "choices": ("classifier.bias",),
}

# -- numbers
# --------------------------------------------------------------------------------------


@EVERY_KIND
@for_each("dtype", [torch.float64, torch.float32])
def test_logits_loss_and_gradients_are_those_of_transformers(kind, dtype):
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-5}[dtype]
    ours, batch = lively_task(kind, seed=3).to(dtype), TaskInputs(kind, seed=4)
    theirs = theirs_for(ours)
    labels = batch.labels.to(dtype) if kind == "number" else batch.labels
    found = ours(**batch.inputs())
    expected = theirs(
        **batch.inputs(),
        **(batch.their_labels(kind) | ({"labels": labels} if kind == "number" else {})),
    )
    close(logits_of(found), logits_of(expected), tolerance)
    assert logits_of(found).std() > 0.1, (
        "logits that hardly differ would hide a mistake"
    )
    total, count = ours.loss_sum(found, labels)
    loss = total / count
    close(loss, expected.loss, tolerance)
    loss.backward()
    expected.loss.backward()
    mine = by_their_names(ours, {name: x.grad for name, x in ours.named_parameters()})
    its = {name: x.grad for name, x in theirs.named_parameters()}
    assert mine.keys() == its.keys()
    for name in its:
        close(mine[name], its[name], tolerance)
        assert its[name].abs().max() > 1e-6 or name.endswith(
            ("key.bias", *FLAT.get(kind, ()))
        ), f"none reaches {name}"


@EVERY_KIND
def test_without_padding_and_segments_they_agree_too(kind):
    ours = lively_task(kind, seed=5)
    batch = TaskInputs(kind, seed=6, length=9, size=3, choices=5)
    close(
        logits_of(ours(batch.input_ids)), logits_of(theirs_for(ours)(batch.input_ids))
    )


@EVERY_KIND
def test_what_stands_at_padding_does_not_matter(kind):
    ours, batch = lively_task(kind, seed=7), TaskInputs(kind, seed=8)
    before = logits_of(ours(**batch.inputs()))
    batch.input_ids = torch.where(batch.attention_mask, batch.input_ids, 11)
    after = logits_of(ours(**batch.inputs()))
    if kind in ("tags", "spans"):
        before, after = before[batch.attention_mask], after[batch.attention_mask]
    close(before, after, 1e-12)


@pytest.mark.parametrize("kind", ["tags", "spans"])
def test_dropout_falls_where_theirs_falls(kind):
    """Seeded alike, both draw the same places in the same order; spans have no dropout
    before their head."""
    ours, batch = lively_task(kind, seed=9).train(), TaskInputs(kind, seed=9)
    theirs = theirs_for(ours)
    torch.manual_seed(1)
    found = logits_of(ours(**batch.inputs()))
    torch.manual_seed(1)
    close(found, logits_of(theirs(**batch.inputs())))
    assert (found - logits_of(ours.eval()(**batch.inputs()))).abs().max() > 0.1


@pytest.mark.parametrize("kind", ["classes", "number", "choices"])
def test_dropout_falls_on_the_pooled_state_once(kind):
    ours, batch = lively_task(kind, seed=10), TaskInputs(kind, seed=10)
    rows = [x.reshape(-1, x.shape[-1]) for x in batch.inputs().values()]
    pooled = ours.bert(*rows).pooler_output
    ours.dropout.train()
    torch.manual_seed(2)
    found = ours(**batch.inputs())
    torch.manual_seed(2)
    expected = F.linear(
        F.dropout(pooled, CONFIG.hidden_dropout_prob),
        ours.classifier.weight,
        ours.classifier.bias,
    )
    close(found, expected.view(found.shape))


def test_a_number_is_trained_on_squared_errors():
    """(1.5 − 1)² + (−2 − 0)² = 4.25, over 2."""
    model = SequenceClassifier(CONFIG, 1)
    total, count = model.loss_sum(
        torch.tensor([[1.5], [-2.0]]), torch.tensor([1.0, 0.0])
    )
    assert (total.item(), count) == (4.25, 2)


def test_choices_are_compared_with_each_other_and_not_with_those_of_other_examples():
    """Uniform over 3 choices: ln 3 each; a softmax over the batch of 2 would
    give ln 2."""
    model = MultipleChoiceClassifier(CONFIG)
    total, count = model.loss_sum(torch.zeros(2, 3), torch.tensor([2, 0]))
    assert total.item() / count == pytest.approx(torch.tensor(3.0).log().item())


def test_right_guesses_by_hand():
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    assert SequenceClassifier(CONFIG, 3).right(
        logits, torch.tensor([1, 1])
    ).tolist() == [True, False]
    assert MultipleChoiceClassifier(CONFIG).right(
        logits, torch.tensor([1, 0])
    ).tolist() == [True, True]
    tags = TokenClassifier(CONFIG, 3).right(logits[None], torch.tensor([[-100, 0]]))
    assert tags.tolist() == [True], (
        "a position without a label is neither right nor wrong"
    )
    spans = SpanClassifier(CONFIG)
    output = spans(torch.randint(5, 40, (3, 7)))._replace(
        start_logits=torch.tensor([[0, 1.0], [0, 1.0], [1.0, 0]]),
        end_logits=torch.tensor([[0, 1.0], [1.0, 0], [0, 1.0]]),
    )
    assert spans.right(output, torch.tensor([[1, 1], [1, 1], [0, 1]])).tolist() == [
        True,
        False,
        True,
    ]


@EVERY_KIND
def test_the_first_weights_of_a_head_are_as_small_as_berts(kind):
    """Devlin et al. 2019, their code: a normal distribution of 0.02, cut off at two
    standard deviations."""
    model_class, labels = KINDS[kind]
    torch.manual_seed(0)
    head = getattr(model_class(CONFIG, *labels), model_class.head)
    assert head.bias.abs().max() == 0
    assert 0.01 < head.weight.std() < 0.025
    assert head.weight.abs().max() <= 0.04


# -- checkpoints
# --------------------------------------------------------------------------------------


@EVERY_KIND
def test_a_checkpoint_of_ours_loads_with_transformers(kind, tmp_path):
    ours, batch = lively_task(kind, seed=11).float(), TaskInputs(kind, seed=12)
    pieces = [*SPECIAL_TOKENS, *(chr(97 + number) for number in range(26))]
    ours.save_pretrained(tmp_path, WordPiece(pieces))
    theirs, told = getattr(transformers, ours.architecture).from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(told.values()), told
    close(
        logits_of(ours.double()(**batch.inputs())),
        logits_of(theirs.double().eval()(**batch.inputs())),
        1e-12,
    )
    if not ours.fixed_labels:
        assert theirs.config.id2label == dict(enumerate(ours.labels))
        assert theirs.config.label2id == {
            name: index for index, name in enumerate(ours.labels)
        }
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)("a b")["input_ids"] == [
        2,
        5,
        6,
        3,
    ]


@EVERY_KIND
def test_a_checkpoint_of_ours_has_the_names_of_transformers(kind, tmp_path):
    """They would load it without the prefix ``bert.`` too; other readers of the layout
    would not."""
    ours = lively_task(kind)
    ours.save_pretrained(tmp_path / "ours")
    theirs_for(ours).save_pretrained(tmp_path / "theirs")
    mine, its = (
        load_file(tmp_path / folder / "model.safetensors")
        for folder in ("ours", "theirs")
    )
    assert {name: x.shape for name, x in mine.items()} == {
        name: x.shape for name, x in its.items()
    }
    assert all(torch.equal(mine[name], its[name]) for name in its)


@EVERY_KIND
def test_a_checkpoint_of_transformers_loads_here(kind, tmp_path):
    ours, batch = lively_task(kind, seed=13).float(), TaskInputs(kind, seed=14)
    theirs = theirs_for(ours)
    theirs.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is new, and nothing left aside
        found = type(ours).from_pretrained(tmp_path)
    assert found.labels == ours.labels
    assert not found.training
    close(logits_of(found(**batch.inputs())), logits_of(theirs(**batch.inputs())), 1e-5)


@EVERY_KIND
def test_a_checkpoint_comes_back_bit_for_bit(kind, tmp_path):
    ours = lively_task(kind, seed=15).float()
    ours.save_pretrained(tmp_path)
    found = type(ours).from_pretrained(tmp_path)
    assert found.labels == ours.labels
    assert found.state_dict().keys() == ours.state_dict().keys()
    assert all(
        torch.equal(tensor, ours.state_dict()[name])
        for name, tensor in found.state_dict().items()
    )
    assert not list(tmp_path.glob("*unfinished*"))


def test_weights_may_be_kept_in_half_precision(tmp_path):
    lively_task("classes").float().save_pretrained(tmp_path, dtype=torch.float16)
    assert {
        tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()
    } == {torch.float16}
    assert (
        next(SequenceClassifier.from_pretrained(tmp_path).parameters()).dtype
        == torch.float32
    )
    assert (
        SequenceClassifier.from_pretrained(
            tmp_path, torch.float64
        ).classifier.weight.dtype
        == torch.float64
    )


@EVERY_KIND
def test_the_encoder_of_a_pre_trained_model_gets_a_new_head_and_says_so(kind, tmp_path):
    model_class, labels = KINDS[kind]
    source = BertForPreTraining(CONFIG)
    save_bert(source, tmp_path)
    options = {"labels": labels[0]} if labels else {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = model_class.from_pretrained(tmp_path, **options)
    words = [str(warning.message) for warning in told]
    assert len(words) == 2
    assert "left aside" in words[0]
    assert "cls.predictions.bias" in words[0]
    assert words[1] == f"the head of this {model_class.__name__} is new, to be trained"
    encoder = {
        name: x
        for name, x in source.bert.state_dict().items()
        if found.pools or not name.startswith("pooler")
    }
    assert found.bert.state_dict().keys() == encoder.keys()
    assert all(
        torch.equal(tensor, encoder[name])
        for name, tensor in found.bert.state_dict().items()
    )


def test_what_is_new_is_drawn_from_the_seed_and_disturbs_no_other_draws(tmp_path):
    bert = BertModel(CONFIG)
    save_bert(bert, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(
        {name: x for name, x in weights.items() if "pooler" not in name},
        tmp_path / "model.safetensors",
    )

    def load(seed):
        model = quietly(
            SequenceClassifier.from_pretrained, tmp_path, labels=3, seed=seed
        )
        return torch.cat(
            [
                model.classifier.weight.flatten(),
                model.bert.pooler.dense.weight.flatten(),
            ]
        )

    torch.manual_seed(5)
    first, drawn = load(1), torch.rand(2)
    torch.manual_seed(6)
    assert torch.equal(load(1), first)
    assert (load(2)[:45] - first[:45]).abs().max() > 0.01
    assert (load(2)[45:] - first[45:]).abs().max() > 0.01
    torch.manual_seed(5)
    assert torch.equal(torch.rand(2), drawn)
    with pytest.warns(
        UserWarning, match="the pooler and the head of this SequenceClassifier are new"
    ):
        SequenceClassifier.from_pretrained(tmp_path, labels=3)


def test_a_head_is_kept_for_its_own_labels_and_replaced_for_others(tmp_path):
    ours = lively_task("classes").float()
    ours.save_pretrained(tmp_path)
    same = SequenceClassifier.from_pretrained(
        tmp_path, labels=["neutral", "good", "bad", "mixed"]
    )
    assert torch.equal(same.classifier.weight, ours.classifier.weight)
    by_number = SequenceClassifier.from_pretrained(tmp_path, labels=4)
    assert by_number.labels == ours.labels
    assert torch.equal(by_number.classifier.weight, ours.classifier.weight)
    for others in (["bad", "good", "neutral", "mixed"], ["bad", "good"]):
        with pytest.warns(
            UserWarning, match="left aside|the head of this SequenceClassifier is new"
        ):
            other = SequenceClassifier.from_pretrained(tmp_path, labels=others)
        assert other.labels == tuple(others)
        assert other.classifier.weight.shape == (len(others), 15)
        assert other.classifier.weight.abs().max() <= 0.04


def test_labels_that_a_file_numbers_are_named_by_the_caller(tmp_path):
    """So say checkpoints of ``transformers`` whose maker named nothing."""
    ours = SequenceClassifier(CONFIG, 2)
    theirs_for(ours).save_pretrained(tmp_path)
    found = SequenceClassifier.from_pretrained(tmp_path, labels=["bad", "good"])
    assert found.labels == ("bad", "good")
    assert torch.equal(found.classifier.weight, ours.classifier.weight)


def test_a_head_of_another_kind_of_task_is_not_taken_though_its_name_and_shape_fit(
    tmp_path,
):
    """A number and choices both have a "classifier" of one row."""
    lively_task("number").float().save_pretrained(tmp_path)
    with (
        pytest.warns(
            UserWarning,
            match=(
                "left aside, since this MultipleChoiceClassifier has no place for it:"
                " classifier"
            ),
        ),
        pytest.warns(
            UserWarning, match="the head of this MultipleChoiceClassifier is new"
        ),
    ):
        found = MultipleChoiceClassifier.from_pretrained(tmp_path)
    assert found.classifier.weight.abs().max() <= 0.04


def test_labels_must_be_known(tmp_path):
    save_bert(BertModel(CONFIG), tmp_path)
    with refusal(
        "holds no BertForTokenClassification whose labels could be taken; pass labels"
    ):
        TokenClassifier.from_pretrained(tmp_path)
    with refusal(
        "the outputs of a SpanClassifier are the same in all tasks; leave labels out"
    ):
        SpanClassifier.from_pretrained(tmp_path, labels=2)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (0, "labels is 0"),
        ([], r"labels is \[\]"),
        (["O", "B-X", "O"], "labels has 'O' twice"),
    ],
)
def test_labels_that_cannot_be_told_apart_are_refused(labels, expected):
    with refusal(expected):
        SequenceClassifier(CONFIG, labels)


# -- files from anywhere
# --------------------------------------------------------------------------------------


def spoil(folder, tensors=None, **settings):
    if tensors:
        weights = load_file(folder / "model.safetensors")
        save_file(
            tensors(weights), folder / "model.safetensors", metadata={"format": "pt"}
        )
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | settings))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {
                "tensors": lambda x: {
                    name: value
                    for name, value in x.items()
                    if name != "classifier.bias"
                }
            },
            (
                "lacks classifier.bias, though config.json says that it is a"
                " BertForSequenceClassification"
            ),
        ),
        (
            {"tensors": lambda x: x | {"classifier.weight": torch.zeros(4, 14)}},
            r"matrix of \(4, 14\)",
        ),
        (
            {"tensors": lambda x: x | {"classifier.bias": torch.zeros(3)}},
            r"an offset of \(3,\)",
        ),
        (
            {"id2label": {"0": "a", "1": "b"}},
            "id2label does not name the labels 0 to 3",
        ),
        (
            {"id2label": ["a", "b", "c", "d"]},
            "id2label does not name the labels 0 to 3",
        ),
        (
            {"id2label": {"0": "a", "1": "b", "2": "c", "3": 7}},
            "id2label holds a name that is no word",
        ),
        ({"id2label": {"0": "a", "1": "b", "2": "c", "3": "a"}}, "'a' twice"),
    ],
)
def test_a_head_that_does_not_fit_its_configuration_is_refused(
    change, expected, tmp_path
):
    lively_task("classes").float().save_pretrained(tmp_path)
    spoil(tmp_path, **change)
    with refusal(expected):
        SequenceClassifier.from_pretrained(tmp_path)


def test_a_span_head_with_another_number_of_rows_is_refused(tmp_path):
    lively_task("spans").float().save_pretrained(tmp_path)
    spoil(
        tmp_path,
        lambda x: (
            x
            | {
                "qa_outputs.weight": torch.zeros(3, 15),
                "qa_outputs.bias": torch.zeros(3),
            }
        ),
    )
    with refusal("qa_outputs has 3 rows; a SpanClassifier has 2"):
        SpanClassifier.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "architectures", [None, "BertForSequenceClassification", 3, []]
)
def test_a_configuration_that_does_not_list_the_kind_of_model_gives_no_head(
    architectures, tmp_path
):
    lively_task("classes").float().save_pretrained(tmp_path)
    spoil(tmp_path, architectures=architectures)
    with refusal("holds no BertForSequenceClassification"):
        SequenceClassifier.from_pretrained(tmp_path)


# -- published weights
# --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.real_data
@EVERY_KIND
def test_published_weights_with_a_new_head_go_to_transformers_and_back(
    kind, real_data, tmp_path
):
    folder = real_data.parent / "models" / "all-MiniLM-L6-v2"
    if not (folder / "model.safetensors").is_file():
        pytest.skip(
            f"no published weights: there is no {folder.parent.name}/{folder.name}"
            " beside the public data"
        )
    model_class, labels = KINDS[kind]
    ours = quietly(
        model_class.from_pretrained, folder, **({"labels": labels[0]} if labels else {})
    )
    ours.save_pretrained(tmp_path / "ours")
    theirs, told = getattr(transformers, ours.architecture).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(told.values()), told
    batch = TaskInputs(kind)
    with torch.no_grad():
        expected = logits_of(theirs.eval()(**batch.inputs()))
        close(logits_of(ours(**batch.inputs())), expected, 1e-5)
        theirs.save_pretrained(tmp_path / "theirs")
        close(
            logits_of(
                model_class.from_pretrained(tmp_path / "theirs")(**batch.inputs())
            ),
            expected,
            1e-5,
        )


# -- means
# --------------------------------------------------------------------------------------


@EVERY_KIND
def test_an_average_has_the_means_of_all_weights_and_leaves_its_models_as_they_were(
    kind,
):
    models = [lively_task(kind, seed=seed) for seed in (0, 1, 2)]
    before = [
        {name: tensor.clone() for name, tensor in model.state_dict().items()}
        for model in models
    ]
    mean = average(models)
    assert type(mean) is type(models[0])
    assert not mean.training
    for name, tensor in mean.state_dict().items():
        if tensor.is_floating_point():
            close(tensor, sum(state[name] for state in before) / 3, 1e-14)
    for model, state in zip(models, before, strict=True):
        assert all(
            torch.equal(tensor, state[name])
            for name, tensor in model.state_dict().items()
        )


def test_models_that_cannot_be_averaged_are_refused():
    with refusal("there are no models"):
        average([])
    with refusal("differ in their kind"):
        average([SequenceClassifier(CONFIG, 2), SequenceClassifier(CONFIG, 3)])
