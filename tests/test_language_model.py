"""The language model task: tiny trainings that must reach a score, evaluation that is exact."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

import sightline
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    OptimiserConfig,
    TrainingConfig,
)
from sightline.errors import UserError
from sightline.nn.model import Batch
from sightline.runtime.partial import Partial
from sightline.tasks import spec_of
from sightline.tasks.language_model.data import TextData
from sightline.tasks.language_model.data import _stream_nats as torch_nats
from sightline.tasks.language_model.parts import PromptReader, evaluate_text
from sightline.tasks.language_model.parts import _stream_nats as numpy_nats
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.training.load import describer_of
from sightline.training.loop import train
from sightline.types import Inputs

QUIET = Console(quiet=True)
WORDS = ["the cat sat on the mat", "the dog lay by the log", "a bird sang in the tree"]


def verses(count):
    """Lines whose order and words are random: what can be learnt is the spelling."""
    rng = np.random.default_rng(0)
    return "\n".join(WORDS[i] for i in rng.integers(len(WORDS), size=count)) + "\n"


def recipe(path, **changes):
    model = DecoderConfig(
        embedding=16,
        hidden=32,
        attention=AttentionConfig(kind="none"),
        context=(),
        output=changes.pop("output", "plain"),
        cell=changes.pop("cell", "lstm"),
        sampled_softmax=changes.pop("sampled_softmax", 0),
    )
    training = TrainingConfig(
        steps=changes.pop("steps", 200),
        evaluate_every=1000,
        tensorboard=False,
        optimiser=OptimiserConfig(learning_rate=0.01),
    )
    settings = LanguageModelRecipe(
        text=str(path), streams=8, length=24, model=model, training=training, sample_length=5
    )
    return replace(settings, **changes)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(verses(400))
    return path


# The entropy of these lines: log 3 at each line's first letters, nothing after.
CHARACTERS = sum(len(line) + 1 for line in WORDS) / 3
FLOOR = math.log(3) / CHARACTERS


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_each_cell_learns_to_spell(text, tmp_path, cell):
    outcome = train(TextData(recipe(text, cell=cell)), tmp_path / "run", console=QUIET)
    loss = outcome.progress.metrics["loss"]
    assert FLOOR * 0.8 < loss < FLOOR + 0.05
    model = sightline.load(tmp_path / "run")
    written = model.describe("the cat", length=40, temperature=0).text
    assert written.startswith("the cat sat on the mat\n")


@pytest.mark.parametrize("sequence", ["stream", "line"])
@pytest.mark.parametrize("unit", ["word", "bpe"])
def test_words_and_pieces_learn_with_the_same_code(text, tmp_path, sequence, unit):
    size = 30 if unit == "word" else 300
    settings = recipe(
        text,
        unit=unit,
        sequence=sequence,
        vocabulary=size,
        batching=BatchingConfig("token_budget", 200),
        streams=4,
        length=12,
        output="deep",
        steps=150,
    )
    outcome = train(TextData(settings), tmp_path / "run", console=QUIET)
    tokens_per_line = 7 if unit == "word" else 8
    assert outcome.progress.metrics["loss"] < math.log(3) / tokens_per_line + 0.12
    model = sightline.load(tmp_path / "run")
    written = model.describe("the dog", length=12, temperature=0).text
    assert written.split("\n")[0] == "the dog lay by the log"


def test_word_model_trains_with_the_sampled_softmax(text, tmp_path):
    settings = recipe(text, unit="word", streams=4, length=12, sampled_softmax=20, steps=200)
    outcome = train(TextData(settings), tmp_path / "run", console=QUIET)
    assert outcome.progress.metrics["loss"] < math.log(3) / 7 + 0.15


def untrained(text, **changes):
    """Data, an untrained network for it, and that network as a Describer."""
    data = TextData(recipe(text, **changes))
    torch.manual_seed(0)
    network = data.build_model().eval()
    spec, reader = spec_of("language_model"), PromptReader(data.codec)
    return data, network, describer_of(spec, data.recipe, reader, data.codec, network)


def batch(tokens):
    return Batch(tokens, Inputs(len(tokens)))


def test_evaluation_of_a_short_text_is_exact(text):
    data, network, model = untrained(text)
    content = "the cat sat on the mat\na bird sang"
    tokens = torch.tensor([[data.codec.begin, *data.vocab.encode(content)]])
    loss, _ = network.loss(batch(tokens))
    metrics = evaluate_text(model, content)
    assert metrics["loss"] == pytest.approx(loss.nats / len(content), rel=1e-5)
    assert metrics["bits"] == pytest.approx(metrics["loss"] / math.log(2))
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    (forced,) = model.force([""], [content])
    assert -sum(forced.log_probs) == pytest.approx(loss.nats, rel=1e-4)
    assert forced.text == content


def test_evaluation_in_parts_scores_every_token_once_and_nearly_as_in_one(text):
    data, network, model = untrained(text)
    content = verses(700)
    tokens = torch.tensor([[data.codec.begin, *data.vocab.encode(content)]])
    loss, _ = network.loss(batch(tokens))
    stream = data.codec.stream(content)
    for nats, count in (
        torch_nats(network, stream, data.codec.begin),
        numpy_nats(model.stepper, stream),
    ):
        assert count == len(content)
        assert nats == pytest.approx(loss.nats, rel=1e-3)


def test_a_carried_state_continues_where_it_stopped(text):
    """Two halves with the state carried over cost what the whole costs."""
    _, model, _ = untrained(text)
    tokens = torch.randint(4, 20, (3, 41))
    whole, _ = model.loss(batch(tokens))
    first, state = model.loss(batch(tokens[:, :21]))
    second, _ = model.loss(batch(tokens[:, 20:]), state.detach())
    assert first.nats + second.nats == pytest.approx(whole.nats, rel=1e-5)


def test_truncation_cuts_the_gradient(text):
    _, model, _ = untrained(text)
    first, state = model.loss(batch(torch.randint(4, 20, (3, 21))))
    second, _ = model.loss(batch(torch.randint(4, 20, (3, 21))), state.detach())
    model.zero_grad()
    second.total.backward()
    first.total.backward()  # would fail if the graphs were joined and freed
    assert model.decoder.embed.weight.grad.abs().sum() > 0


def test_streams_read_the_text_in_order(text):
    data = TextData(recipe(text))
    epoch = data.epoch(3)
    first, second = epoch[0].targets, epoch[1].targets
    assert torch.equal(first[:, -1], second[:, 0])
    read = data.vocab.decode(first[2].tolist() + second[2, 1:].tolist())
    ring = data.vocab.decode(data.tokens.tolist()) * 2
    assert read in ring


def test_the_same_seed_writes_the_same_text_and_streams_it(text):
    _, _, model = untrained(text)
    options = {"length": 30, "temperature": 0.9, "seed": 5}
    once = model.describe("the", **options).text
    assert model.describe("the", **options).text == once
    *partial, whole = model.stream("the", **options)
    assert all(isinstance(step, Partial) for step in partial)
    assert [step.text for step in partial] == [once[: n + 1] for n in range(len(once))]
    assert whole.text == once
    assert model.describe("the", **{**options, "seed": 6}).text != once
    assert len(model.describe("the", n_best=3, **options).alternatives) == 2


def test_a_given_text_may_have_unknown_words(text):
    _, _, model = untrained(text, unit="word", streams=4, length=12)
    (forced,) = model.force([""], ["the zebra sat"])
    assert forced.tokens == ("the", "zebra", "sat")
    assert forced.text == "the zebra sat"
    assert len(forced.log_probs) == 3
    with pytest.raises(UserError, match="has 'zebra', which is not in the model's vocabulary"):
        model.describe("the zebra")
