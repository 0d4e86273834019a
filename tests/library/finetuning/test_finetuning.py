"""Fine-tuning: what moves, how fast, how long, and that it is told with which
numbers."""

import math

import pytest
import torch
from cases import for_each
from expect import refusal
from task_peer import CONFIG, KINDS, TaskInputs, lively_task
from tiny import tiny_bert, tiny_tokenizer

from course_lib.finetuning.examples import (
    Example,
    choice_examples,
    collate,
    question_examples,
    tagging_examples,
    text_examples,
)
from course_lib.finetuning.finetune import (
    FineTuningConfig,
    evaluate,
    finetune,
    rate_factors,
)
from course_lib.finetuning.heads import (
    MultipleChoiceClassifier,
    SequenceClassifier,
    SpanClassifier,
    TokenClassifier,
)
from course_lib.finetuning.task_model import looking
from course_lib.training.batches import to_device
from course_lib.wordpiece.tokenizer import WordPiece

TOKENIZER = tiny_tokenizer("jim hen ##son was a puppet ##er who what .", WordPiece)
STEADY = tiny_bert(hidden_size=18, num_hidden_layers=3)


def model_of(kind, seed=0, config=CONFIG):
    torch.manual_seed(seed)
    model_class, labels = KINDS[kind]
    return model_class(config, *labels)


def examples_of(kind, count=7, seed=0):
    """Inputs of every length, from the very batches that heads are compared on."""
    batch = TaskInputs(kind, seed, size=count)
    found = []
    for number in range(count):
        rows = (
            batch.input_ids[number].reshape(-1, 13),
            batch.token_type_ids[number].reshape(-1, 13),
        )
        lengths = batch.attention_mask[number].reshape(-1, 13).sum(1).tolist()
        label = batch.labels[number].tolist()
        if kind == "tags":
            label = [label[0] if label[0] >= 0 else 1, *label[1 : lengths[0]]]
        if kind == "spans":
            label = tuple(min(place, lengths[0] - 1) for place in label)
        pairs = [
            (i[:n].tolist(), s[:n].tolist())
            for i, s, n in zip(*rows, lengths, strict=True)
        ]
        found.append(Example(pairs, label))
    return found


# -- examples and batches
# --------------------------------------------------------------------------------------


def test_a_batch_is_padded_to_its_longest_and_says_where():
    batch = collate(
        [Example([([2, 7, 9, 3], [0, 0, 1, 1])], 4), Example([([2, 3], [0, 0])], 1)],
        pad_id=8,
    )
    assert batch.input_ids.tolist() == [[2, 7, 9, 3], [2, 3, 8, 8]]
    assert batch.token_type_ids.tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]
    assert batch.attention_mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.labels.tolist() == [4, 1]
    assert batch.labels.dtype == torch.int64


def test_a_batch_without_padding_has_no_mask():
    assert collate([Example([([2, 3], [0, 0])], 0)] * 2).attention_mask is None


def test_a_token_with_the_id_of_padding_is_no_padding():
    batch = collate([Example([([2, 0, 3], [0] * 3)], 0), Example([([2], [0])], 0)])
    assert batch.attention_mask.tolist() == [[True] * 3, [True, False, False]]


def test_labels_of_tokens_are_padded_with_what_the_loss_ignores():
    batch = collate(
        [
            Example([([2, 7, 3], [0] * 3)], [-100, 5, -100]),
            Example([([2, 3], [0] * 2)], [0, 1]),
        ]
    )
    assert batch.labels.tolist() == [[-100, 5, -100], [0, 1, -100]]


def test_numbers_stay_numbers_and_unknown_labels_none():
    assert collate([Example([([2], [0])], 4.5)]).labels.dtype == torch.float32
    assert collate([Example([([2], [0])])]).labels is None


def test_choices_are_the_second_dimension():
    examples = choice_examples(
        ["jim", "who was"], [["was a puppet", "."], [".", "hen"]], [1, 0], TOKENIZER
    )
    batch = collate(examples)
    assert batch.input_ids.shape == (2, 2, 7)
    assert (
        TOKENIZER.decode(batch.input_ids[0, 0].tolist(), False)
        == "[CLS] jim [SEP] was a puppet [SEP]"
    )
    assert (
        TOKENIZER.decode(batch.input_ids[1, 1].tolist(), False)
        == "[CLS] who was [SEP] hen [SEP] [PAD]"
    )
    assert batch.token_type_ids[1, 1].tolist() == [0, 0, 0, 0, 1, 1, 0]
    assert batch.attention_mask[0, 1].tolist() == [True] * 5 + [False] * 2
    assert batch.labels.tolist() == [1, 0]


def test_of_a_long_pair_the_longer_text_is_cut():
    [example] = text_examples(
        [("jim", "was a puppet was a puppet")], [0], TOKENIZER, max_length=7
    )
    assert (
        TOKENIZER.decode(example.rows[0][0], False)
        == "[CLS] jim [SEP] was a puppet [SEP]"
    )


def test_a_long_context_gives_one_example_for_each_window_and_one_of_them_the_answer():
    """Room for 4 pieces, stride 3; "puppeter" is in the second window: [CLS] who [SEP]
    was a puppet ##er [SEP]."""
    context = "Jim Henson was a puppeter."
    place = context.index("puppeter")
    made = question_examples(
        ["who"], [context], [(place, place + 8)], TOKENIZER, max_length=8, stride=3
    )
    assert [example.label for example in made] == [(0, 0), (5, 6), (0, 0)]
    assert [
        x.label for x in question_examples(["who"], [context], [None], TOKENIZER)
    ] == [(0, 0)]


@for_each(
    ("make", "expected"),
    [
        (lambda: text_examples(["a"], [1, 0], TOKENIZER), "1 inputs but 2 labels"),
        (
            lambda: tagging_examples([["a"]], [[1], [0]], TOKENIZER),
            "1 inputs but 2 labels",
        ),
        (
            lambda: question_examples(["a"], ["b", "c"], [None], TOKENIZER),
            "1 questions, 2 contexts and 1 answers",
        ),
        (
            lambda: choice_examples(["a", "b"], [["c", "d"], ["e"]], None, TOKENIZER),
            r"with \[1, 2\] endings each",
        ),
        (
            lambda: choice_examples(["a"], [["c", "d"]], [2], TOKENIZER),
            "a label is not among the 2 choices",
        ),
        (
            lambda: choice_examples(["a"], [[]], [0], TOKENIZER),
            r"with \[0\] endings each",
        ),
    ],
)
def test_examples_that_do_not_fit_together_are_refused(make, expected):
    with refusal(expected):
        make()


# -- evaluation
# --------------------------------------------------------------------------------------


@for_each("kind", KINDS)
def test_loss_and_accuracy_do_not_depend_on_batches(kind):
    """By hand from each example alone: means over all terms, not means of batches'
    means."""
    model, examples = lively_task(kind).float().train(), examples_of(kind)
    # their softmax goes over padding too, so that lengths must be equal
    if kind == "spans":
        examples = [
            Example([([*ids, *[9] * (13 - len(ids))], [0] * 13)], x)
            for [(ids, _)], x in examples
        ]
    total = terms = right = guesses = 0.0
    model.eval()
    for example in examples:
        batch = to_device(collate([example]), next(model.parameters()).device)
        logits = model(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        loss, count = model.loss_sum(logits, batch.labels)
        total, terms = total + loss.item(), terms + float(count)
        if kind != "number":
            found = model.right(logits, batch.labels)
            right, guesses = right + float(found.sum()), guesses + found.numel()
    expected = {"loss": total / terms} | (
        {} if kind == "number" else {"accuracy": right / guesses}
    )
    model.train()
    for size in (1, 3, 32):
        assert evaluate(model, examples, size) == pytest.approx(expected, rel=1e-5)
    assert model.training, "the mode is as before"


def test_looking_leaves_modes_and_gradients_as_they_were():
    model = lively_task("classes").train()
    seen = []

    def look():
        with looking(model):
            seen.append((model.dropout.training, torch.is_grad_enabled()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        look()
    assert seen == [(False, False)]
    with looking(model.eval()):
        pass
    assert not model.dropout.training
    model.train()
    assert model.dropout.training
    assert torch.is_grad_enabled()


# -- learning
# --------------------------------------------------------------------------------------


@for_each("kind", KINDS)
def test_a_model_learns_a_few_examples_by_heart(kind):
    model, examples = model_of(kind, config=STEADY), examples_of(kind)
    before = evaluate(model, examples)["loss"]
    config = FineTuningConfig(
        steps=40, learning_rate=0.01, batch_size=7, evaluate_every=40
    )
    history = finetune(model, examples, examples, config)
    assert history.metrics["loss"][-1] < before / 5
    assert kind == "number" or history.metrics["accuracy"] == [1]
    assert not model.training


def test_one_step_is_adamw_on_the_mean_loss_of_the_batch():
    """Against a step by hand: warm-up over, clipping off, no decay."""
    examples = examples_of("tags", count=5)
    model, twin = model_of("tags", config=STEADY), model_of("tags", config=STEADY)
    settings = {
        "learning_rate": 0.02,
        "weight_decay": 0.0,
        "clip_norm": None,
        "warmup": 0.0,
        "schedule": "constant",
    }
    finetune(
        model, examples, config=FineTuningConfig(steps=1, batch_size=5, **settings)
    )
    optimizer = torch.optim.AdamW(twin.parameters(), lr=0.02, weight_decay=0.0)
    batch = collate(examples)
    logits = twin.train()(batch.input_ids, batch.attention_mask, batch.token_type_ids)
    torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=-100
    ).backward()
    optimizer.step()
    for (name, mine), its in zip(
        model.named_parameters(), twin.parameters(), strict=True
    ):
        # a key's offset has no gradient but by rounding, which Adam enlarges
        if "attention.key.bias" not in name:
            torch.testing.assert_close(mine, its, rtol=0, atol=2e-5, msg=name)


def test_the_same_seed_gives_the_same_weights_and_another_one_others():
    def run(seed, config):
        model = model_of("classes", seed=3, config=config)
        finetune(
            model,
            examples_of("classes"),
            config=FineTuningConfig(epochs=1, batch_size=3, seed=seed),
        )
        return model.classifier.weight

    # with dropout; and without it, where the order of the examples is all that is drawn
    for config in (CONFIG, STEADY):
        assert torch.equal(run(1, config), run(1, config))
        assert not torch.equal(run(1, config), run(2, config))


def test_epochs_are_counted_in_batches_and_the_rate_warms_up_and_falls_to_nothing():
    """7 examples in batches of 3 are 3 steps an epoch; 4 epochs are 12 steps, of which
    25% warm up."""
    config = FineTuningConfig(epochs=4, batch_size=3, warmup=0.25, learning_rate=0.004)
    history = finetune(
        model_of("classes"), examples_of("classes"), examples_of("classes"), config
    )
    assert len(history.steps) == 12
    assert history.learning_rates[:4] == pytest.approx(
        [0.004 / 3, 0.008 / 3, 0.004, 0.004 * 9 / 10], rel=1e-12
    )
    assert history.learning_rates[-1] == pytest.approx(0.004 / 10, rel=1e-12), (
        "the step after the last would have none"
    )
    assert history.metric_steps == [3, 6, 9, 12], "a look at the end of each epoch"
    assert history.tokens[-1] == 4 * 7, "every example once an epoch"


def test_every_label_of_a_token_counts_the_same_whatever_its_batch():
    examples = examples_of("tags")
    history = finetune(
        model_of("tags"), examples, config=FineTuningConfig(epochs=1, batch_size=3)
    )
    assert history.tokens[-1] == sum(
        label != -100 for example in examples for label in example.label
    )


def test_steps_come_before_epochs():
    assert FineTuningConfig(epochs=9, steps=5).total_steps(1000) == 5
    assert FineTuningConfig(epochs=0.5, batch_size=10).total_steps(101) == 6


def test_patience_stops_and_goes_back_to_the_best_weights():
    """The labels of validation are turned round: the better the model learns, the worse
    it does there."""
    examples = examples_of("classes", count=12)
    turned = [example._replace(label=(example.label + 1) % 4) for example in examples]
    model = model_of("classes", config=STEADY)
    config = FineTuningConfig(
        steps=40, learning_rate=3e-3, batch_size=12, evaluate_every=2, patience=3
    )
    history = finetune(model, examples, turned, config)
    assert history.stopped_early
    assert len(history.steps) == history.best_step + 6
    assert evaluate(model, turned)["loss"] == pytest.approx(
        min(history.metrics["loss"]), rel=1e-6
    )


def test_patience_can_watch_a_score_of_ones_own():
    calls = iter([0.1, 0.5, 0.5, 0.4, 0.9])
    config = FineTuningConfig(
        steps=9,
        batch_size=7,
        evaluate_every=1,
        patience=2,
        metric="mine",
        maximize=True,
    )
    history = finetune(
        model_of("classes"),
        examples_of("classes"),
        None,
        config,
        score=lambda model: {"mine": next(calls)},
    )
    assert history.metrics == {"mine": [0.1, 0.5, 0.5, 0.4]}
    assert history.best_step == 2


# -- rates and freezing
# --------------------------------------------------------------------------------------


def changed(model, before):
    return {
        name
        for name, x in model.state_dict().items()
        if not torch.equal(x, before[name])
    }


def run_frozen(frozen, kind="classes"):
    model = model_of(kind, config=STEADY)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    finetune(
        model,
        examples_of(kind),
        config=FineTuningConfig(
            steps=2, batch_size=7, learning_rate=0.01, frozen=frozen
        ),
    )
    assert all(x.requires_grad and x.grad is None for x in model.parameters()), (
        "as before, for the next run"
    )
    return changed(model, before), set(before)


@for_each(
    ("frozen", "kept"),
    [
        ("nothing", ()),
        ("embeddings", ("bert.embeddings",)),
        (1, ("bert.embeddings", "bert.blocks.0.")),
        (3, ("bert.embeddings", "bert.blocks.0.", "bert.blocks.1.", "bert.blocks.2.")),
        ("encoder", ("bert.",)),
    ],
)
def test_what_is_frozen_keeps_its_weights_and_all_else_moves(frozen, kept):
    moved, names = run_frozen(frozen)
    assert moved == {name for name in names if not (kept and name.startswith(kept))}


def test_a_frozen_encoder_is_not_even_differentiated():
    model = model_of("classes", config=STEADY)
    seen = []
    model.bert.register_forward_hook(
        lambda module, inputs, output: seen.append(output.pooler_output.requires_grad)
    )
    finetune(
        model,
        examples_of("classes"),
        config=FineTuningConfig(steps=1, frozen="encoder"),
    )
    assert seen == [False]


def test_what_was_frozen_before_stays_marked_so():
    model = model_of("classes", config=STEADY)
    model.bert.embeddings.requires_grad_(False)
    finetune(model, examples_of("classes"), config=FineTuningConfig(steps=1))
    assert {x.requires_grad for x in model.bert.embeddings.parameters()} == {False}


def test_rates_fall_by_the_layer_from_the_top():
    """Howard and Ruder 2018, section 3.2: each layer's rate is a share of that of the
    layer above it."""
    factors = rate_factors(
        model_of("classes", config=STEADY), FineTuningConfig(layer_decay=0.8)
    )
    of = {
        name.removeprefix("bert.").rsplit(".", 1)[0]: factor
        for name, factor in factors.items()
    }
    assert of["classifier"] == of["pooler.dense"] == of["blocks.2.attention.query"] == 1
    assert of["blocks.1.feed_forward.expand"] == pytest.approx(0.8)
    assert of["blocks.0.norm1"] == pytest.approx(0.64)
    assert of["embeddings.position"] == of["embeddings.norm"] == pytest.approx(0.512)


def test_a_first_step_moves_each_layer_by_its_own_rate():
    """Adam's first step moves every weight by the rate, whatever the gradient."""
    model = model_of("classes", config=STEADY)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    config = FineTuningConfig(
        steps=1,
        learning_rate=0.01,
        layer_decay=0.5,
        weight_decay=0.0,
        clip_norm=None,
        warmup=0.0,
        schedule="constant",
    )
    history = finetune(model, examples_of("classes"), config=config)
    rates = {
        "classifier.weight": 0.01,
        "bert.pooler.dense.weight": 0.01,
        "bert.blocks.2.feed_forward.expand.weight": 0.01,
        "bert.blocks.1.feed_forward.expand.weight": 0.005,
        "bert.blocks.0.feed_forward.expand.weight": 0.0025,
        "bert.embeddings.segment.weight": 0.00125,
    }
    for name, rate in rates.items():
        moved = (model.state_dict()[name] - before[name]).abs().max().item()
        assert moved == pytest.approx(rate, rel=1e-2), name
    assert history.learning_rates == [0.01]


def test_rates_stay_multiplied_in_every_step_and_not_ever_smaller():
    """Ten steps at half of a constant rate move a weight whose gradient keeps its sign
    ten times as far as one."""
    model = model_of("number", config=STEADY)
    examples = [example._replace(label=1000.0) for example in examples_of("number")]
    before = model.bert.blocks[1].feed_forward.contract.bias.detach().clone()
    config = FineTuningConfig(
        steps=10,
        learning_rate=1e-4,
        layer_decay=0.5,
        weight_decay=0.0,
        warmup=0.0,
        schedule="constant",
        batch_size=7,
    )
    finetune(model, examples, config=config)
    moved = (
        (model.bert.blocks[1].feed_forward.contract.bias - before).abs().max().item()
    )
    assert moved == pytest.approx(10 * 0.5e-4, rel=0.02)


def test_weights_decay_and_offsets_and_gains_do_not():
    """Without a gradient (padding's embedding has none) a weight shrinks by rate ·
    decay a step."""
    model = model_of("classes", config=STEADY)
    with torch.no_grad():
        model.bert.embeddings.token.weight[40] = 1.0  # a token that no example has
        model.bert.embeddings.position.weight[18] = 1.0
    examples = [Example([([2, 7, 3], [0] * 3)], 1)]
    config = FineTuningConfig(
        steps=1,
        learning_rate=0.1,
        weight_decay=0.3,
        layer_decay=0.5,
        warmup=0.0,
        schedule="constant",
    )
    finetune(model, examples, config=config)
    expected = 1 - 0.1 * 0.5**3 * 0.3
    torch.testing.assert_close(
        model.bert.embeddings.token.weight[40], torch.full((18,), expected)
    )
    norm = model.bert.embeddings.norm.weight
    assert (norm - 1).abs().max().item() == pytest.approx(0.1 * 0.125, rel=0.05), (
        "moved by Adam, and not decayed"
    )


def test_a_run_can_be_resumed_with_its_rates(tmp_path):
    def run(steps, file):
        model = model_of("classes", config=STEADY)
        settings = {
            "learning_rate": 1e-3,
            "layer_decay": 0.6,
            "batch_size": 3,
            "schedule": "constant",
            "warmup": 0.0,
        }
        finetune(
            model,
            examples_of("classes"),
            config=FineTuningConfig(steps=steps, checkpoint=file, **settings),
        )
        return model.state_dict()

    whole = run(6, None)
    run(4, tmp_path / "run.safetensors")
    halves = run(6, tmp_path / "run.safetensors")
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


# -- what is refused
# --------------------------------------------------------------------------------------


@for_each(
    ("settings", "expected"),
    [
        ({"layer_decay": 0.0}, "layer_decay is 0.0; it is a share, above 0"),
        ({"layer_decay": 1.1}, "layer_decay is 1.1"),
        ({"warmup": 1.5}, "warmup is 1.5; it is a share of the steps"),
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": math.inf}, "epochs is inf"),
        ({"batch_size": 0}, "batch_size is 0"),
        (
            {"frozen": "head"},
            (
                "frozen is 'head'; choose one of nothing, embeddings, encoder, or a"
                " number of blocks"
            ),
        ),
        ({"frozen": True}, "frozen is True"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0"),
        ({"steps": -2}, "steps is -2"),
        ({"patience": 0}, "patience is 0"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, expected):
    with refusal(expected):
        FineTuningConfig(**settings)


@pytest.mark.parametrize("frozen", [0, 4])
def test_blocks_that_are_not_there_cannot_be_frozen(frozen):
    with refusal(f"frozen is {frozen}, but the model has 3 blocks; choose 1 to 3"):
        rate_factors(
            model_of("classes", config=STEADY), FineTuningConfig(frozen=frozen)
        )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([],), "train_examples is empty"),
        (([Example([([2, 3], [0, 0])])],), "an example in train_examples has no label"),
        (([Example([([2, 3], [0, 0])], 1)], []), "validation_examples is empty"),
    ],
)
def test_examples_without_labels_are_refused(arguments, expected):
    with refusal(expected):
        finetune(model_of("classes"), *arguments)


def test_patience_without_anything_to_look_at_is_refused():
    with refusal("patience and evaluate_every need"):
        finetune(
            model_of("classes"),
            examples_of("classes"),
            config=FineTuningConfig(patience=2),
        )


def test_all_kinds_can_be_imported_from_here():
    from course_lib.finetuning import finetune as finetuning

    assert finetuning.SequenceClassifier is SequenceClassifier
    assert {TokenClassifier, SpanClassifier, MultipleChoiceClassifier} <= {
        getattr(finetuning, name) for name in finetuning.__all__
    }
