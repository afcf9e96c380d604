"""Toy tasks whose outputs are no words: letters sorted by pointing, and the class of a word.

Each is trained, exported and searched by what serves every task; torch and ONNX agree.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pytest
import torch
from rich.console import Console

import sightline
from sightline import tasks
from sightline.config import (
    AttentionConfig,
    DecoderConfig,
    LossConfig,
    OptimiserConfig,
    RecurrentConfig,
    SearchConfig,
    TrainingConfig,
)
from sightline.data.vocabulary import BEGIN, END, SPECIALS, VOCAB, Vocabulary
from sightline.errors import CheckpointError
from sightline.export.write import export
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.runtime.codec import Codec
from sightline.runtime.onnx import OnnxStepper
from sightline.search import constrain, finish, greedy
from sightline.search.constraints import Banned, NoRepeatedWords, Prefix
from sightline.search.steppers import SearchError
from sightline.tasks.spec import TaskSpec
from sightline.training.loop import train
from sightline.types import Inputs, Layout, Stream

pytest.importorskip("onnx")
S, LETTERS, CLASSES = len(SPECIALS), "abcdef", ("early", "late")
SOURCE = Vocabulary("char", (*SPECIALS, *LETTERS))
TRAINING = TrainingConfig(
    steps=250,
    evaluate_every=250,
    select="loss",
    tensorboard=False,
    optimiser=OptimiserConfig(learning_rate=1e-2),
)
SHORT = replace(TRAINING, steps=100, evaluate_every=100)


@dataclass(frozen=True)
class SortRecipe:
    task: Literal["sort"] = "sort"
    description: str = "Letters in order"
    encoder: RecurrentConfig = field(
        default_factory=lambda: RecurrentConfig(embedding=8, hidden=16)
    )
    model: DecoderConfig = field(
        default_factory=lambda: DecoderConfig(
            embedding=16, hidden=32, attention=AttentionConfig("none", size=24), head="pointer"
        )
    )
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(default_factory=lambda: SearchConfig(beam=3, max_length=8))
    training: TrainingConfig = TRAINING


@dataclass(frozen=True)
class ClassRecipe(SortRecipe):
    task: Literal["class"] = "class"
    model: DecoderConfig = field(
        default_factory=lambda: DecoderConfig(
            embedding=8, hidden=16, attention=AttentionConfig(size=8), head="class"
        )
    )
    search: SearchConfig = field(default_factory=lambda: SearchConfig(beam=2, max_length=1))
    training: TrainingConfig = SHORT


class PointerCodec(Codec):
    """A token is the letter that it points at."""

    banned = ()

    def names(self, layout):
        return (*SPECIALS, *layout.labels)


class ClassCodec(Codec):
    end = None


class LetterReader:
    takes, batch = "text", 16

    def read(self, source, *, whole=False):
        ids = np.array(SOURCE.encode(source))
        return [Inputs(1, {"tokens": Stream.ragged([ids])}, (Layout.words(source),))]


def sorted_places(word):
    return [BEGIN, *(S + np.argsort(list(word), kind="stable")).tolist(), END]


def label(word):
    """Whether most letters are of the alphabet's second half, or as many."""
    return int(np.mean([letter > "c" for letter in word]) >= 0.5)


def drawn(seed, count):
    """Words of one to six different letters."""
    rng = np.random.default_rng(seed)
    return ["".join(rng.permutation(list(LETTERS))[: rng.integers(1, 7)]) for _ in range(count)]


class Data:
    carries_state, metrics, fingerprint = False, ("loss",), "toy"

    def __init__(self, recipe):
        self.recipe, self.is_pointer = recipe, recipe.task == "sort"
        self.files = {VOCAB: vocabulary(recipe).to_json()}

    def prepare(self):
        pass

    def build_model(self):
        return build_model(self.recipe)

    def batch(self, words):
        inputs = Inputs.batch([LetterReader().read(word)[0] for word in words])
        targets = [sorted_places(w) if self.is_pointer else [BEGIN, S + label(w)] for w in words]
        return Batch(pad(targets), inputs.map(torch.from_numpy))

    def epoch(self, number):
        return [self.batch(drawn([number, at], 64)) for at in range(50)]

    def evaluate(self, model):
        loss, _ = model.loss(self.batch(drawn(7, 50)))
        return {"loss": loss.nats / loss.tokens}

    def samples(self, model):
        return []


def vocabulary(recipe):
    return SOURCE if recipe.task == "sort" else Vocabulary("word", (*SPECIALS, *CLASSES))


def build_model(recipe):
    encoder = TextEncoder(recipe.encoder, len(SOURCE))
    decoder = Decoder(recipe.model, len(vocabulary(recipe)), encoder.dimension)
    return EncoderDecoder(encoder, decoder, Likelihood(recipe.loss))


def spec(recipe, codec):
    return TaskSpec(
        name=recipe.task,
        recipe=recipe,
        data=Data,
        model=lambda folder, recipe: build_model(recipe),
        reader=lambda folder, recipe, about: LetterReader(),
        codec=lambda folder, recipe: codec(Vocabulary.load(folder / VOCAB), recipe.search),
        metrics=("wer",),
    )


@pytest.fixture(scope="module", autouse=True)
def registered():
    specs = [spec(SortRecipe, PointerCodec), spec(ClassRecipe, ClassCodec)]
    for each in specs:
        tasks.register(each)
    yield
    for each in specs:
        tasks.unregister(each.name)


def trained_and_exported(folder, recipe):
    train(Data(recipe), folder / "run", console=Console(quiet=True))
    export(folder / "run", folder / "export")
    return folder


@pytest.fixture(scope="module")
def sorter(tmp_path_factory):
    return trained_and_exported(tmp_path_factory.mktemp("sort"), SortRecipe())


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return trained_and_exported(tmp_path_factory.mktemp("class"), ClassRecipe())


def both(folder):
    model, ours = sightline.load(folder / "run"), sightline.load(folder / "export")
    assert isinstance(ours.stepper, OnnxStepper)
    return model, ours


def same(one, other):
    """As near as 16-bit weights are."""
    assert one.text == other.text
    assert one.tokens == other.tokens
    np.testing.assert_allclose(one.log_probs, other.log_probs, atol=0.02)
    np.testing.assert_allclose(one.attention, other.attention, atol=0.01)
    assert one.layout == other.layout
    assert [each.text for each in one.alternatives] == [each.text for each in other.alternatives]


WORDS = drawn(11, 60)


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"beam": 8}, {"temperature": 0.0}])
def test_pointers_search_alike_in_torch_and_onnx(sorter, options):
    model, ours = both(sorter)
    assert ours.stepper.vocab_size == model.stepper.vocab_size == 0
    theirs = model.describe(WORDS, **options)
    for mine, its in zip(ours.describe(WORDS, **options), theirs, strict=True):
        same(mine, its)
        pointed = mine.attention[np.arange(len(mine.tokens)), mine.attention.argmax(1)]
        assert mine.log_probs == pytest.approx(np.log(pointed), abs=1e-4)  # the weights point
    right = [d.text == "".join(sorted(w)) for d, w in zip(theirs, WORDS, strict=True)]
    assert np.mean(right) > 0.8


def test_a_pointers_batch_equals_its_singles_and_streams(sorter):
    _, ours = both(sorter)
    together = ours.describe(WORDS[:6], n_best=2)
    for word, mine in zip(WORDS, together, strict=False):
        same(mine, ours.describe(word, n_best=2))
    for options in ({"beam": 3}, {"temperature": 0.0}):
        *partial, last = ours.stream("cab", **options)
        assert partial[-1].text == last.text == ours.describe("cab", **options).text
        assert {node.token for each in partial for node in each.nodes} <= {*"abc", "<end>"}


@pytest.mark.parametrize("constraint", [Banned([END, S]), Prefix([[S + 1]]), NoRepeatedWords([S])])
def test_constraints_hold_for_pointers(sorter, constraint):
    results = []
    for model in both(sorter):
        context = model.encode(model.reader.read("fbd")[0])
        stepper = constrain(model.stepper, constraint)
        ((hypothesis,),) = finish(greedy(stepper, context, max_length=5))
        results.append(hypothesis)
    mine, its = results
    assert mine.tokens == its.tokens
    np.testing.assert_allclose(mine.log_probs, its.log_probs, atol=0.02)
    if isinstance(constraint, Banned):
        assert not {END, S} & set(mine.tokens)


def test_a_prefix_beyond_the_positions_is_refused(sorter):
    for model in both(sorter):
        context = model.encode(model.reader.read("fbd")[0])
        with pytest.raises(SearchError, match="ids are 0 to 6"):
            constrain(model.stepper, Prefix([[S + 3]])).start(context)


@pytest.mark.parametrize("options", [{}, {"n_best": 2}, {"temperature": 0.0}])
def test_classes_are_the_same_in_torch_and_onnx(classifier, options):
    model, ours = both(classifier)
    theirs = model.describe(WORDS, **options)
    for mine, its in zip(ours.describe(WORDS, **options), theirs, strict=True):
        same(mine, its)
        assert mine.text in CLASSES
        every = [mine, *mine.alternatives]
        if len(every) == 2:  # all the classes there are
            assert sum(np.exp(each.log_probs[0]) for each in every) == pytest.approx(1, abs=1e-4)
    right = [d.text == CLASSES[label(word)] for d, word in zip(theirs, WORDS, strict=True)]
    assert np.mean(right) > 0.9


def test_graphs_of_another_head_are_refused(sorter, classifier):
    from sightline.runtime.model_folder import Export, read_export

    points, names = (read_export(folder / "export") for folder in (sorter, classifier))
    for first, second in ((points, names), (names, points)):
        mixed = Export(first.folder, {}, {**first.graphs, "step.onnx": second.graphs["step.onnx"]})
        with pytest.raises(CheckpointError, match="do not fit together"):
            OnnxStepper(mixed, BEGIN, END)
